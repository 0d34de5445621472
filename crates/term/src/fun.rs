//! The targets of fun terms: entries of local funs, and exports.
//!
//! The code server in the runtime crate owns both; they are declared here because comparing, printing and encoding
//! a fun reads their names.

use crate::counts::{self, SHARES};
use crate::word::Term;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// One `fun` expression of one loaded module.
///
/// Found by all that an external term says of a fun (module, uniq, index, arity, free variables), so that a reload of the
/// same code meets its old funs, and none that only pretends to be of it: code reads as many registers as it has arguments
/// and free variables. Counted by the fun terms that refer to it (each on an off-heap list) and once by the module.
#[repr(C)]
pub struct FunEntry {
    /// Where the code of the fun starts; the address of a routine that loads the module where that is gone.
    pub address: AtomicPtr<u64>,
    /// A part of the count, see [`FunEntry::count`]; 1 at first.
    pub refc: AtomicUsize,
    pub module: Term,
    /// See [`FunEntry::function`].
    pub name: AtomicU64,
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

/// How a thread has changed the count of one entry since it began with that entry. Funs are made, sent and forgotten all
/// the time, of a few entries each, by several threads at once, and nobody needs the count but who asks for it.
struct Change {
    entry: AtomicPtr<FunEntry>,
    by: AtomicUsize,
}

const CHANGES: usize = 32;

/// By thread, as numbered by [`counts::share`]; of an entry in one place only.
static CHANGED: [[Change; CHANGES]; SHARES + 1] = [const {
    [const {
        Change {
            entry: AtomicPtr::new(std::ptr::null_mut()),
            by: AtomicUsize::new(0),
        }
    }; CHANGES]
}; SHARES + 1];

impl FunEntry {
    /// Name of the function that holds the code, such as `'-f/1-fun-0-'`; nil as long as only external terms have told of
    /// the fun, which don't name it.
    pub fn function(&self) -> Term {
        // SAFETY: the word of an atom or nil.
        unsafe { Term::from_raw(self.name.load(Ordering::Acquire)) }
    }
    /// Sets [`FunEntry::function`]: an atom.
    pub fn set_function(&self, name: Term) {
        self.name.store(name.raw(), Ordering::Release);
    }
    fn place(&self) -> usize {
        (self as *const FunEntry as usize >> 4).wrapping_mul(0x9E37_79B1) >> 16 & (CHANGES - 1)
    }
    /// Adds to the count, of which no entry is ever freed.
    #[inline]
    fn add(&self, n: usize) {
        let share = counts::share();
        if share == 0 {
            self.refc.fetch_add(n, Ordering::Relaxed);
            return;
        }
        // Written by this thread alone.
        let c = &CHANGED[share][self.place()];
        let me = self as *const FunEntry as *mut FunEntry;
        let before = c.entry.load(Ordering::Relaxed);
        let mut by = c.by.load(Ordering::Relaxed);
        if before != me {
            // SAFETY: entries are never freed.
            if let Some(e) = unsafe { before.as_ref() } {
                e.refc.fetch_add(by, Ordering::Relaxed);
            }
            c.entry.store(me, Ordering::Relaxed);
            by = 0;
        }
        c.by.store(by.wrapping_add(n), Ordering::Relaxed);
    }
    /// One more fun refers to it.
    #[inline]
    pub fn retain(&self) {
        self.add(1);
    }
    /// One less.
    #[inline]
    pub fn release(&self) {
        self.add(1usize.wrapping_neg());
    }
    /// Funs that refer to it, and one; right where none is made or forgotten at this moment.
    pub fn count(&self) -> usize {
        let me = self as *const FunEntry as *mut FunEntry;
        let mut n = self.refc.load(Ordering::Relaxed);
        for thread in &CHANGED {
            let c = &thread[self.place()];
            if c.entry.load(Ordering::Relaxed) == me {
                n = n.wrapping_add(c.by.load(Ordering::Relaxed));
            }
        }
        n
    }
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
    /// Stands before the stub: see [`lead_word`].
    pub lead: AtomicU64,
    /// Stub code: what `address` points at while nothing is loaded. The interpreter's own format.
    pub stub: [AtomicU64; 4],
}

/// Address of the machine code that stands for a function which has none: it leaves to the interpreter. 0 where there is no
/// machine code at all.
static UNCOMPILED: AtomicU32 = AtomicU32::new(0);

/// Says what stands for functions without machine code. Before any code is loaded or named.
pub fn set_uncompiled(address: u32) {
    UNCOMPILED.store(address, Ordering::Relaxed);
}

/// See [`set_uncompiled`].
#[inline]
pub fn uncompiled() -> u32 {
    UNCOMPILED.load(Ordering::Relaxed)
}

/// The word that stands before every instruction that a call may lead to; the last one of `func_info`, where there is one.
///
/// ```text
/// bits 16 to 31  arguments
/// bits 32 to 63  address of the machine code, or of what stands for it
/// ```
#[inline]
pub fn lead_word(arity: u32) -> u64 {
    u64::from(arity & 0xFFFF) << 16 | u64::from(uncompiled()) << 32
}
