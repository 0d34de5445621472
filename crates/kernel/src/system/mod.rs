//! The emulator as a whole: how it ends (`halt.rs`), its reports about itself (`report.rs`), and
//! its behaviour near the memory limit (`memory.rs`) and those of budgets (`budget_memory.rs`).

pub mod budget_memory;
pub mod halt;
pub mod memory;
pub mod report;
