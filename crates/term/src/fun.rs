//! What fun terms point at: entries of local funs, and exports.
//!
//! The code server in the runtime crate owns both; they are declared here because comparing, printing and encoding
//! a fun reads their names.

use crate::word::Term;
use std::sync::atomic::{AtomicPtr, AtomicU64};

/// One `fun` expression of one loaded module.
///
/// Found by (module, old uniq, index), so that a reload of the same code meets its old funs. Counted by the fun
/// terms that refer to it (each on an off-heap list) and once by the module.
#[repr(C)]
pub struct FunEntry {
    /// Where the code of the fun starts; the address of a routine that loads the module where that is gone.
    pub address: AtomicPtr<u64>,
    pub refc: AtomicU64,
    pub module: Term,
    /// Name of the function that holds the code, such as `'-f/1-fun-0-'`.
    pub function: Term,
    /// Arity of the code: the fun's own plus `num_free`.
    pub code_arity: u8,
    /// Arguments of the fun.
    pub arity: u8,
    pub num_free: u8,
    pub index: u32,
    pub old_uniq: i64,
    pub old_index: u32,
    /// MD5 of the module.
    pub uniq: [u8; 16],
}

/// A function known by name: `module:function/arity`, loaded or not. Never freed.
///
/// `address` points at the instruction to run for a call: the function's code, a BIF stub, or a stub that calls the
/// error handler. Interpreted calls load it on every call, so that loading code is one store.
#[repr(C)]
pub struct Export {
    pub address: AtomicPtr<u64>,
    pub module: Term,
    pub function: Term,
    pub arity: u32,
    /// Row in the BIF table plus one; 0 where it is no BIF.
    pub bif: std::sync::atomic::AtomicU32,
    /// Stub code: what `address` points at while nothing is loaded. The interpreter's own format.
    pub stub: [AtomicU64; 4],
}
