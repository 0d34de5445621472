//! Costs of a running system: copies, allocations and reductions by lines of code (`accounts.rs`),
//! waiting times of processes (`waits.rs`), stack samples (`profile.rs`), the accounts of selected
//! processes for some time (`selection.rs`), and how threads spend their time (`msacc.rs`). Events
//! for the record of the last minute are beside them (`recorder.rs`).
//!
//! # Invariant
//! Measuring does not change what runs. Counters that are always on cost a few instructions;
//! everything else is off until someone turns it on.

pub mod accounts;
pub mod budget_weights;
pub mod budgets;
pub mod msacc;
pub mod profile;
pub mod recorder;
pub mod selection;
pub mod waits;
