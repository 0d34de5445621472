//! The emulator as a whole: how it ends (`halt.rs`), its reports about itself (`report.rs`), its
//! behaviour near the memory limit (`memory.rs`), and the interface from processes to ports, tables
//! and nodes (`outside.rs`).

pub mod budget_memory;
pub mod halt;
pub mod memory;
pub mod outside;
pub mod report;
