//! The targets of fun terms: entries of local funs, and exports.
//!
//! `purlin_native::exports` makes both, and the kernel's `code` sets their addresses; they are
//! declared here because comparing, printing and encoding a fun reads their names.
//!
//! # Invariant
//! Machine code is found by the address: a word in front of it leads there ([`lead_word`]).
//!
//! # Orderings
//! * The address is stored with release once the code is complete, and loaded with acquire by each
//!   call: the call sees whole code.
//! * The name is stored with release and loaded with acquire: a reader sees the entry of the atom.

use crate::counts::{self, SHARES};
use crate::word::Term;
use std::mem::offset_of;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The place where calls of a function go.
#[repr(C)]
struct Target {
    /// The first instruction, or null.
    address: AtomicPtr<u64>,
}

impl Target {
    const fn new(to: *const u64) -> Target {
        Target {
            address: AtomicPtr::new(to as *mut u64),
        }
    }
    /// Acquire: code that another thread has just loaded is seen whole.
    #[inline(always)]
    fn address(&self) -> *const u64 {
        self.address.load(Ordering::Acquire)
    }
    fn lead(&self, to: *const u64) {
        self.address.store(to as *mut u64, Ordering::Release);
    }
}

/// One `fun` expression of one loaded module.
///
/// Found by everything that an external term says of a fun (module, uniq, index, arity, free
/// variables), so that a reload of the same code finds its old funs, and no fun that only pretends
/// to belong to it: code reads as many registers as it has arguments and free variables. Counted by
/// the fun terms that refer to it (each on an off-heap list) and once by the module.
#[repr(C)]
pub struct FunEntry {
    target: Target,
    /// A part of the count, see [`FunEntry::count`]; initially 1.
    refc: AtomicUsize,
    pub module: Term,
    /// See [`FunEntry::function`].
    name: AtomicU64,
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

/// The change that a thread has made to the count of one entry since it began with that entry.
/// Several threads make, send and forget funs all the time, of a few entries each, and the count is
/// only needed on request.
struct Change {
    entry: AtomicPtr<FunEntry>,
    by: AtomicUsize,
}

/// Number of entries whose changes a thread collects, each in the place of its address.
const CHANGES: usize = 32;

/// By thread, as numbered by [`counts::share`]; an entry has one place only.
static CHANGED: [[Change; CHANGES]; SHARES + 1] = [const {
    [const {
        Change {
            entry: AtomicPtr::new(std::ptr::null_mut()),
            by: AtomicUsize::new(0),
        }
    }; CHANGES]
}; SHARES + 1];

/// The name of a fun in an external term, which identifies its entry.
#[derive(Clone, Copy)]
pub struct FunName {
    pub module: Term,
    pub old_uniq: i64,
    pub old_index: u32,
    pub uniq: [u8; 16],
    pub index: u32,
    pub arity: u8,
    pub num_free: u8,
}

impl FunEntry {
    /// Offset of the field that machine code reads: the address of the code.
    pub const ADDRESS: usize = offset_of!(FunEntry, target) + offset_of!(Target, address);

    /// An entry without an address.
    pub fn new(name: FunName, function: Term) -> FunEntry {
        FunEntry {
            target: Target::new(std::ptr::null()),
            refc: AtomicUsize::new(1),
            module: name.module,
            name: AtomicU64::new(function.raw()),
            code_arity: name.arity.saturating_add(name.num_free),
            arity: name.arity,
            num_free: name.num_free,
            index: name.index,
            old_uniq: name.old_uniq,
            old_index: name.old_index,
            uniq: name.uniq,
        }
    }
    /// Start of the code of the fun; null if it is gone, or while a purge is under way.
    #[inline(always)]
    pub fn address(&self) -> *const u64 {
        self.target.address()
    }
    /// Directs calls of the fun to `to`.
    pub fn lead(&self, to: *const u64) {
        self.target.lead(to);
    }
    /// Removes the address of the fun.
    pub fn unlead(&self) {
        self.target.lead(std::ptr::null());
    }
    /// Name of the function that holds the code, such as `'-f/1-fun-0-'`; nil as long as the fun is
    /// only known from external terms, which do not name it.
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
    /// Adds to the count. It frees nothing, since entries stay.
    #[inline]
    fn add(&self, n: usize) {
        let share = counts::share();
        if share == 0 {
            self.refc.fetch_add(n, Ordering::Relaxed);
            return;
        }
        // Only this thread writes to it.
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
    /// Counts one more fun.
    #[inline]
    pub fn retain(&self) {
        self.add(1);
    }
    /// Counts one fun less.
    #[inline]
    pub fn release(&self) {
        self.add(1usize.wrapping_neg());
    }
    /// Number of funs that refer to it, plus one; exact if none is made or released at this moment.
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
/// Its address is that of the instruction to run for a call: the function's code, a stub of a
/// native, or a stub that calls the error handler. Interpreted calls load the address every time,
/// so that loading code is one store.
#[repr(C)]
pub struct Export {
    target: Target,
    pub module: Term,
    pub function: Term,
    /// Over 255 only if a forged external term named it. A call has as many arguments as the low
    /// byte says.
    pub arity: u32,
    /// Row in the table of natives plus one; 0 if it is no native.
    pub bif: AtomicU32,
    /// The word in front of the stub: see [`lead_word`].
    before: AtomicU64,
    /// Stub code, used while nothing is loaded. In the interpreter's own format.
    pub stub: [AtomicU64; 4],
    /// How often the loaded code had changed when the export was made.
    pub made: u64,
}

impl Export {
    /// Offset of the field that machine code reads: the address of the code.
    pub const ADDRESS: usize = offset_of!(Export, target) + offset_of!(Target, address);

    /// An export with the address `to`, without a stub yet.
    pub fn new(module: Term, function: Term, arity: u32, to: *const u64) -> Export {
        Export {
            target: Target::new(to),
            module,
            function,
            arity,
            bif: AtomicU32::new(0),
            before: AtomicU64::new(lead_word(arity)),
            stub: [const { AtomicU64::new(0) }; 4],
            made: 0,
        }
    }
    /// The address of calls. Null only before it is known to anybody.
    #[inline(always)]
    pub fn address(&self) -> *const u64 {
        self.target.address()
    }
    /// Directs calls to `to`.
    pub fn lead(&self, to: *const u64) {
        self.target.lead(to);
    }
    /// Directs calls to the stub: to the native, or the error handler.
    pub fn unlead(&self) {
        self.target.lead(self.stub.as_ptr() as *const u64);
    }
    /// Marks a native that changes code: [`LEADS_ELSEWHERE`].
    pub fn changes_code(&self) {
        self.before
            .fetch_or(u64::from(LEADS_ELSEWHERE), Ordering::Relaxed);
    }
    /// Whether calls go to loaded code rather than the stub.
    pub fn is_led(&self) -> bool {
        self.address() != self.stub.as_ptr() as *const u64
    }
}

/// Address of the machine code for functions that have none: it exits to the interpreter. 0 if
/// there is no machine code at all.
static UNCOMPILED: AtomicU32 = AtomicU32::new(0);

/// Sets the machine code for functions that have none. Called before any code is loaded or named.
pub fn set_uncompiled(address: u32) {
    UNCOMPILED.store(address, Ordering::Relaxed);
}

/// See [`set_uncompiled`].
#[inline]
pub fn uncompiled() -> u32 {
    UNCOMPILED.load(Ordering::Relaxed)
}

/// In the first byte of the word in front of the stub of a native: it changes code, and machine
/// code exits before it runs.
pub const LEADS_ELSEWHERE: u8 = 1;

/// Offsets from an instruction that may be called to the parts of the word in front of it
/// ([`lead_word`]): a byte, 16 bits, 32 bits.
pub const LEAD_FLAGS: i32 = -8;
pub const LEAD_ARITY: i32 = -6;
pub const LEAD_CODE: i32 = -4;

/// The word in front of every instruction that may be called; the last one of `func_info`, if there
/// is one.
///
/// ```text
/// bit 0          in front of the stub of a native: [`LEADS_ELSEWHERE`]
/// bits 16 to 31  number of arguments
/// bits 32 to 63  address of the machine code, or of its substitute
/// ```
/// [`LEAD_FLAGS`], [`LEAD_ARITY`] and [`LEAD_CODE`] are their offsets.
#[inline]
pub fn lead_word(arity: u32) -> u64 {
    u64::from(arity & 0xFF) << 16 | u64::from(uncompiled()) << 32
}
