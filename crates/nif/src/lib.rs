//! Native libraries (NIFs): C functions that replace Erlang functions, through the interface
//! declared by `erl_nif.h`, version 2.18 and all earlier ones. OTP documents the interface
//! (`erl_nif` in ERTS).
//!
//! `docs/nif.md` has the invariants and their reasons. In short:
//! * An environment is a place where terms are made: the heap of the calling process, or a fragment
//!   of its own. Neither collects nor moves what was made. `ERL_NIF_TERM` is the term word, and
//!   pointers into terms stay valid for the call.
//!
//! # Contract of the interface
//! All functions of the interface are `extern "C"` and take raw pointers. They rely on what the
//! interface makes C code promise, and on nothing else:
//! * An environment, a resource, a port handle or any other object came from here, is of the type
//!   that the function expects, and was not freed. Only one thread at a time uses an environment.
//! * A term is used with the environment that it belongs to, while that lives.
//! * A pointer to a result may be written to, and is null only where the interface allows it.
//! * A buffer has at least the given length, a C string ends in a zero byte, and both stay in place
//!   during the call.
//! * A function that C code passes has the type that the interface specifies.
//!
//! This crate knows how to make requests to processes, ports and files. It does not know how code
//! runs.
#![allow(clippy::missing_safety_doc)]

/// Defines functions that native libraries call, and a list of them that keeps them in the
/// executable.
macro_rules! exported {
    ($($(#[$m:meta])* fn $name:ident($($a:ident: $t:ty),* $(,)?) $(-> $r:ty)? $b:block)*) => {
        $(
        $(#[$m])*
        // Some functions do nothing unsafe, and some have blocks with reasons of their own.
        #[allow(unused_unsafe)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($a: $t),*) $(-> $r)? {
            // SAFETY: C code keeps the contract of the interface, see the module documentation.
            unsafe {
                $crate::holds!($($a),*; $($a),*);
                $b
            }
        })*
        /// The functions of this module.
        pub(crate) static EXPORTED: &[crate::Exported] =
            &[$(crate::Exported($name as *const ())),*];
    };
}

/// Holds the process of the environment that is a function's first argument while the function
/// runs.
macro_rules! holds {
    (env $(, $_rest:ident)*; $env:ident $(, $_more:ident)*) => {
        let _held = $crate::env::hold($env);
    };
    ($($_all:ident),*; $($_more:ident),*) => {};
}
pub(crate) use holds;

mod abi;
mod binary;
mod driver;
mod env;
pub mod fault;
mod ioq;
mod library;
mod load;
mod map_functions;
mod resource;
mod select;
mod send;
mod system;
mod terms;
mod threads;
mod tracer;

pub use driver::owner_exit;
pub use library::loaded;
pub use load::{minor_of, taints};
pub use select::count as selected;
pub use tracer::{Kind, TracerModule, tracer_module};

use purlin_native::bif::Bif;
use purlin_term::{Alloc, Term};

/// Handles the end of a process that a resource or a driver watches by that reference.
pub fn watched_down(reference: Term, pid: Term) {
    if let Some(num) = reference.as_ref_view().and_then(|r| r.local_nums())
        && !resource::watched_down(num, pid)
    {
        driver::watched_down(num);
    }
}

/// Returns the watcher with that reference: a resource, or the port of a driver.
pub fn watched_by(num: [u32; 3], to: &mut dyn Alloc) -> Option<Term> {
    resource::watched_by(num, to).unwrap_or_else(|| driver::watched_by(num))
}

/// The tables of natives of this crate.
pub const TABLES: &[&[Bif]] = &[load::BIFS, driver::driver_natives::BIFS];

/// The address of a function that libraries find by name.
struct Exported(#[allow(dead_code)] *const ());

// SAFETY: the address of a function is the same for all threads.
unsafe impl Sync for Exported {}

/// Returns the number of functions that libraries find by name. Calling this keeps them in the
/// executable.
pub(crate) fn all_exported() -> usize {
    let lists = [
        binary::EXPORTED,
        env::EXPORTED,
        ioq::EXPORTED,
        library::EXPORTED,
        map_functions::EXPORTED,
        system::EXPORTED,
        resource::EXPORTED,
        select::EXPORTED,
        send::EXPORTED,
        terms::EXPORTED,
        threads::EXPORTED,
        system::OF_C,
    ];
    std::hint::black_box(driver::data());
    let of_drivers = std::hint::black_box(driver::EXPORTED).iter();
    let lists = std::hint::black_box(lists);
    lists.iter().chain(of_drivers).map(|l| l.len()).sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_interface_is_whole() {
        // 176 functions of version 2.18, 111 of `erl_driver.h`, and those that the C file calls.
        assert_eq!(super::all_exported(), 176 + 111 + 5);
    }
}
