//! C drivers, through the interface declared by `erl_driver.h`, version 3.3, and their module
//! `erl_ddll`. OTP documents the interface (`erl_driver` and `driver_entry` in ERTS, `erl_ddll` in
//! Kernel).

mod abi;
mod block;
mod calls;
mod code;
pub(crate) mod driver_natives;
mod io_queue;
mod lock;
mod pool;
mod port;
mod shared;
mod system;
mod table;
mod terms;

pub(crate) use port::{watched_by, watched_down};
pub use table::owner_exit;

/// Functions that drivers find by name.
pub(crate) const EXPORTED: &[&[crate::Exported]] = &[
    block::EXPORTED,
    calls::EXPORTED,
    lock::EXPORTED,
    pool::EXPORTED,
    system::EXPORTED,
    table::EXPORTED,
    terms::EXPORTED,
];

/// Data that drivers find by name.
pub(crate) fn data() -> *const () {
    &raw const terms::driver_term_nil as *const ()
}
