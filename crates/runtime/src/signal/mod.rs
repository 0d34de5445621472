//! Signals: everything that one process does to another.

pub mod queue;
