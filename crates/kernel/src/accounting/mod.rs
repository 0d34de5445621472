//! Costs of a running system: copies, allocations and reductions by lines of code (`accounts.rs`), how long processes
//! wait (`waits.rs`), samples of stacks (`profile.rs`), what threads do with their time (`msacc.rs`).
//!
//! # Invariant
//! Nobody who asks changes what runs. What is counted always costs a few instructions; the rest is off until somebody asks.

pub mod accounts;
pub mod msacc;
pub mod profile;
pub mod waits;
