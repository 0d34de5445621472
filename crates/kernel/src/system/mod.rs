//! The emulator as a whole: how it ends (`halt.rs`), what it reports of itself (`report.rs`), what it does near the limit of
//! its memory (`memory.rs`), and the door from processes to ports,
//! tables and nodes (`outside.rs`).

pub mod halt;
pub mod memory;
pub mod outside;
pub mod report;
