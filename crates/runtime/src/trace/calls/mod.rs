//! Tracing of calls: breakpoints in functions.
//!
//! [`crate::code::breakpoint`] and [`crate::code::entries`] say what a breakpoint is and who
//! patches it into code. This module decides what it does. Breakpoints are set and cleared while
//! other threads run the code. A thread that reaches one that has just been cleared still finds its
//! purpose, since entries of the table stay.
//!
//! A call whose return is traced gets a frame between its own and its caller's. The code that such
//! a frame returns to reports the return, and returns in turn. Layout: address of that code,
//! module, function, arity, kind (see [`kind`](crate::code::breakpoint::kind)), and the receiver:
//! the tracer of the process (`[]`), that of a session (its number), or another tracer.
//!
//! Natives have no code of their own: the breakpoint is in the stub of their export, and
//! instructions that call them directly go there while
//! [`natives`](crate::code::breakpoint::natives) says that some native has one.
//!
//! Sessions have their own wishes for a function, beside those of tracing without one
//! ([`All`](wanted::All)). If one session wants only calls from other modules and another wants all
//! calls, both places have a breakpoint. Calls through the export are then reported to all, and
//! continue behind the breakpoint of the entry, which reports calls from within the module.

pub(crate) mod effects;
pub(crate) mod measures;
pub(crate) mod pass;
pub mod spec;
pub(crate) mod table;
pub mod wanted;

pub use spec::Spec;
pub(crate) use table::{change, on_load, wanted, wanted_of_loaded, wants_loaded, who_wants};
pub use wanted::Wanted;
