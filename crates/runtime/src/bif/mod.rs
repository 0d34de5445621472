//! Natives: functions of Erlang modules that are written in Rust. One file per Erlang module (or part of a large
//! one); each ends with its table of rows, and `TABLES` here lists the tables. All else (export stubs, guard calls,
//! `module_info`, what is missing) derives from the rows.

mod apart;
pub mod asn1rt_nif;
pub mod atomics;
pub mod binary;
pub mod checksum;
pub mod code;
pub mod convert;
pub mod crypto;
mod crypto_cipher;
pub mod debug;
pub mod decode_packet;
pub mod erl_ddll;
pub mod erl_tracer;
pub mod errors;
pub mod ets;
pub mod ets_info;
pub mod ets_select;
pub mod exceptions;
pub mod ext_term;
pub mod funs;

pub mod gather;
pub mod halt;
pub mod identifiers;
pub mod inspect;
pub mod iolist;
pub mod limits;
pub mod links;
pub mod lists;
pub mod long;
pub mod maps;
pub mod math;
pub mod memory;
pub mod monitor_stats;
pub mod native_state;
pub mod node;
pub mod operators;
pub mod os;
pub mod persistent;
pub mod pkey;
pub mod ports;
pub mod prim_buffer;
pub mod prim_file;
pub mod prim_file_names;
pub mod prim_net;
pub mod process;
pub mod process_info;
pub mod re;
mod re_syntax;
pub mod settings;
pub mod sharing;
pub mod socket;
pub mod statistics;
pub mod system_flag;
pub mod system_info;
pub mod time;
pub mod timers;
pub mod trace;
pub mod tuples;
pub mod types;
pub mod unicode;
pub mod zlib;

use crate::cx::{BifResult, Cx};
use purlin_term::Term;

/// How a native may be called and what it may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Allowed in guards too: has no side effect and never traps.
    Guard,
    /// An ordinary native.
    Plain,
    /// Blocks on the operating system: run on the dirty I/O pool.
    DirtyIo,
    /// Computes long without being able to yield: run on the dirty CPU pool.
    DirtyCpu,
}

/// One native.
pub struct Bif {
    pub module: &'static str,
    pub name: &'static str,
    pub arity: u8,
    pub kind: Kind,
    /// Calls it with the `arity` arguments at that address.
    pub call: unsafe fn(&mut Cx, *const Term) -> BifResult,
}

/// The rows of a file: `bifs! { Guard "erlang":"abs"/1 = abs_1; … }`, the implementation being
/// `fn abs_1(cx: &mut Cx, args: [Term; 1]) -> BifResult`.
#[macro_export]
macro_rules! bifs {
    ($($kind:ident $m:literal : $n:literal / $a:literal = $f:path;)*) => {
        /// The natives of this file.
        pub const BIFS: &[$crate::bif::Bif] = &[$($crate::bif::Bif {
            module: $m,
            name: $n,
            arity: $a,
            kind: $crate::bif::Kind::$kind,
            call: {
                /// # Safety
                /// As many argument words as the row's arity are at `args`.
                unsafe fn shim(cx: &mut $crate::cx::Cx, args: *const purlin_term::Term) -> $crate::cx::BifResult {
                    // SAFETY: by the contract of the shim.
                    $f(cx, unsafe { *(args as *const [purlin_term::Term; $a]) })
                }
                shim
            },
        }),*];
    };
}

/// All tables. A row's index in their concatenation is its number.
pub const TABLES: &[&[Bif]] = &[
    asn1rt_nif::BIFS,
    atomics::BIFS,
    binary::BIFS,
    checksum::BIFS,
    code::BIFS,
    convert::BIFS,
    crypto::BIFS,
    crypto_cipher::BIFS,
    debug::BIFS,
    decode_packet::BIFS,
    erl_ddll::BIFS,
    erl_tracer::BIFS,
    ets::BIFS,
    ets_info::BIFS,
    ets_select::BIFS,
    exceptions::BIFS,
    ext_term::BIFS,
    funs::BIFS,
    halt::BIFS,
    identifiers::BIFS,
    inspect::BIFS,
    iolist::BIFS,
    limits::BIFS,
    sharing::BIFS,
    links::BIFS,
    lists::BIFS,
    long::BIFS,
    maps::BIFS,
    math::BIFS,
    memory::BIFS,
    monitor_stats::BIFS,
    node::BIFS,
    operators::BIFS,
    os::BIFS,
    persistent::BIFS,
    pkey::BIFS,
    pkey::dh::BIFS,
    pkey::ec::BIFS,
    pkey::edwards::BIFS,
    pkey::rsa::BIFS,
    ports::BIFS,
    prim_buffer::BIFS,
    prim_file::BIFS,
    prim_file_names::BIFS,
    prim_net::BIFS,
    process::BIFS,
    process_info::BIFS,
    re::BIFS,
    socket::BIFS,
    settings::BIFS,
    statistics::BIFS,
    system_flag::BIFS,
    system_info::BIFS,
    time::BIFS,
    timers::BIFS,
    trace::BIFS,
    tuples::BIFS,
    types::BIFS,
    unicode::BIFS,
    zlib::BIFS,
];
