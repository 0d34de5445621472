//! `PURLIN_JIT=chaos:SEED`: what may happen to machine code happens by chance and all the time.
//!
//! * Code leaves before any instruction, and returns by the table of return points (`purlin_jit::chaos`).
//! * Functions lose their machine code and get it again; what is freed is filled with traps.
//! * Time slices are cut in pieces of any length.
//! * Wherever code leaves, the stack is walked: each frame must be what the code at its address has there, and each register that
//!   is live must hold a term ([`check`]).
//!
//! Threads draw from one sequence of numbers, so with one scheduler a seed gives the same run as far as the program does.

use super::{OWNER, Owner};
use purlin_isa::ops::Op;
use purlin_isa::view::{Code, Extent, Frame, FunctionView};
use purlin_kernel::code::{self, Module};
use purlin_kernel::cx::{Cx, Exit};
use purlin_loader::lower::LoweredFunction;
use purlin_term::{Term, atom};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The byte that freed machine code is filled with: `int3`.
pub(super) const TRAP: u8 = 0xCC;

/// One in so many exits is looked at, of functions of more words than `LARGE` one in so many of those: what is known of a function is
/// found anew each time.
const CHECKED: u64 = 4;
const LARGE: u32 = 400;
/// Frames that are looked at, from the top: at most, and as a rule.
const FRAMES: usize = 24;
const FEW: usize = 3;
/// Nothing is mapped below that address.
const LOWEST: u64 = 4096;

static NUMBERS: AtomicU64 = AtomicU64::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);
static ENTER: AtomicUsize = AtomicUsize::new(0);

/// Whether the mode is this one; takes its seed.
pub(super) fn begin(mode: &str) -> bool {
    let Some(seed) = mode.strip_prefix("chaos") else {
        return false;
    };
    let seed = match seed.strip_prefix(':').and_then(|s| s.parse().ok()) {
        Some(n) => n,
        None => u64::from(std::process::id()),
    };
    SEED.store(seed, Ordering::Relaxed);
    NUMBERS.store(seed.wrapping_mul(0xD134_2543_DE82_EF95), Ordering::Relaxed);
    true
}

/// A number below `n`, which is not 0.
fn below(n: u64) -> u64 {
    let x = NUMBERS.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x ^ x >> 31) % n
}
pub(super) fn one_in(n: u64) -> bool {
    below(n) == 0
}

/// The function that enters machine code, in the place of the stub at that address.
pub(super) fn enter_by(stub: u64) -> u64 {
    ENTER.store(stub as usize, Ordering::Relaxed);
    enter as *const () as u64
}

/// # Safety
/// As for the stub that it stands in for.
unsafe extern "C" fn enter(cx: *mut Cx, at: u64) -> u64 {
    // SAFETY: called as the stub is, whose address this is.
    let (next, pc) = unsafe {
        // Mostly soon; seldom late, so that long runs are seen too.
        (*cx).chaos = 1 + below(2 << below(12)) as i64;
        let stub: extern "C" fn(*mut Cx, u64) -> u64 =
            std::mem::transmute(ENTER.load(Ordering::Relaxed));
        let next = stub(cx, at);
        let pc = match next {
            0 if (*cx).interp.exit == Exit::Yield => (*cx).interp.pc,
            0 => std::ptr::null(),
            n => (n & !1) as *const u64,
        };
        (next, pc)
    };
    if !pc.is_null() && one_in(CHECKED) {
        // SAFETY: the process is about to go on there.
        unsafe { check(&*cx, pc) };
    }
    if one_in(32)
        && let Some(o) = OWNER.get()
    {
        o.forget_or_make();
    }
    next
}

impl Owner {
    /// A process is about to run: perhaps for a few reductions only.
    pub(super) fn by_chance(&self) -> Option<i64> {
        if one_in(4) {
            self.forget_or_make();
        }
        match below(3) {
            0 => None,
            1 => Some(1 + below(20) as i64),
            _ => Some(1 + below(1000) as i64),
        }
    }
    /// A function loses its machine code, or one that has none gets some.
    fn forget_or_make(&self) {
        let mut s = self.state.lock();
        self.tidy(&mut s);
        let n = s.objects.len() as u64;
        if one_in(2) && n > 0 {
            // One at any address of the range that they are in, so that all are found in the end.
            let (first, last) = match (s.objects.keys().next(), s.objects.keys().next_back()) {
                (Some(&a), Some(&b)) => (a, b),
                _ => return,
            };
            let from = first + below((last - first + 1) as u64) as usize;
            if let Some((&entry, _)) = s.objects.range(from..).next() {
                self.take_back(&mut s, entry);
                s.left_out.push(entry);
            }
        } else if !s.left_out.is_empty() {
            let i = below(s.left_out.len() as u64) as usize;
            let entry = s.left_out.swap_remove(i);
            let pc = entry as *const u64;
            if let Some(m) = code::module_at(pc)
                && let Some(f) = m.function_at(pc).copied()
            {
                self.make(&mut s, &m, &f);
            }
        }
    }
}

/// The code of a function as it was loaded, without what stands at its entry.
fn view<R>(m: &Module, f: &LoweredFunction, look: impl FnOnce(&FunctionView) -> R) -> Option<R> {
    let mut words = m.code.words()[f.start as usize..f.end as usize].to_vec();
    let entry = (f.entry - f.start) as usize;
    // SAFETY: the entry of a function of a module that is held.
    let own = unsafe { code::opcode_at(m.at(f.entry)) };
    words[entry] = words[entry] & !0xFFFF | u64::from(own);
    let code = Code {
        words: &words,
        lines: &[],
        facts: &[],
        types: &[],
    };
    let extent = Extent {
        start: 0,
        entry: f.entry - f.start,
        end: f.end - f.start,
        arity: f.arity,
    };
    FunctionView::new(code, extent).as_ref().map(look)
}

struct Fault<'a> {
    m: &'a Module,
    f: &'a LoweredFunction,
    at: u32,
}

impl Fault<'_> {
    #[cold]
    fn ends(&self, what: std::fmt::Arguments) -> ! {
        // SAFETY: the word of an atom.
        let name = unsafe { Term::from_raw(self.f.name) };
        purlin_term::say!(
            "machine code left a fault (PURLIN_JIT=chaos:{}): {}:{}/{} at word {}: {what}",
            SEED.load(Ordering::Relaxed),
            atom::name(self.m.name),
            atom::name(name),
            self.f.arity,
            self.at - self.f.start,
        );
        std::process::abort();
    }
}

/// Whether a word is a term, and what it leads to begins as such an object does.
///
/// # Safety
/// Terms of the process that runs.
unsafe fn is_term(w: Term) -> bool {
    // SAFETY: by the contract; where it is not kept, this is the place to find out.
    let first = || unsafe { *w.ptr() };
    if w.is_boxed() {
        return first().is_header();
    }
    match w.is_list_ptr() {
        true => w.raw() > LOWEST && !first().is_header(),
        false => !w.is_header(),
    }
}

/// The word `n` words above `p`.
///
/// # Safety
/// It is part of the stack of the process that runs.
unsafe fn word(p: *const Term, n: usize) -> Term {
    // SAFETY: by the contract.
    unsafe { p.add(n).read() }
}

/// The stack, and the registers that are live, are what the code at `pc` takes them to be.
///
/// # Safety
/// The process in the context is about to run what is at `pc`.
unsafe fn check(cx: &Cx, pc: *const u64) {
    // SAFETY: frames lie above each other, and the last ends where the stack does.
    let word = |p, n| unsafe { word(p, n) };
    // SAFETY: words of the process that runs.
    let is_term = |w| unsafe { is_term(w) };
    let (mut pc, mut p) = (pc, cx.heap.stop as *const Term);
    let most = if one_in(8) { FRAMES } else { FEW };
    for depth in 0..most {
        // Stubs, gates of traces and the like have frames of their own.
        let Some(m) = code::module_at(pc) else { return };
        let Some(f) = m.function_at(pc).copied() else {
            return;
        };
        if f.end - f.start > LARGE && !one_in(CHECKED * 4) {
            return;
        }
        let at = ((pc as usize - m.code.as_ptr() as usize) / 8) as u32;
        let fault = Fault { m: &m, f: &f, at };
        let size = view(&m, &f, |v| {
            let Some(i) = v.ops.iter().position(|o| o.at == at - f.start) else {
                fault.ends(format_args!("no instruction begins there"));
            };
            let op = &v.ops[i];
            let size = match op.frame {
                Frame::None => None,
                Frame::Of(n) => Some(n as usize),
                // Errors only, or the code behind a call that never returns.
                Frame::Unreached | Frame::AtLeast(_) => return None,
            };
            if depth > 0 {
                // Behind a call: all of the frame is looked at by collections.
                // What a native that is called last has trapped to returns behind that.
                let n = size?;
                for k in 0..n {
                    let w = word(p, k + 1);
                    if !is_term(w) {
                        fault.ends(format_args!("frame {depth}: y{k} is {:#x}", w.raw()));
                    }
                }
                return Some(size);
            }
            // A frame that is dropped at once may keep the address: nothing looks at it in between.
            let drops = matches!(
                op.instruction.op,
                Op::Deallocate
                    | Op::DeallocateReturn
                    | Op::MoveDeallocate
                    | Op::MoveDeallocateReturn
            );
            if drops && size.is_none() {
                // Behind a native that is called last: what that has trapped to returns here, to a frame that the call would have dropped.
                return None;
            }
            if size.is_some() && !drops && word(p, 0).raw() != 0 {
                fault.ends(format_args!("slot 0 is {:#x}", word(p, 0).raw()));
            }
            let name = op.instruction.row().name;
            for n in v.live_x(i) {
                let w = cx.x[n as usize];
                // What is thrown past its handler has no value.
                let thrown =
                    n == 0 && w == Term::NON_VALUE && matches!(name, "catch_end" | "try_case");
                if !is_term(w) && !thrown {
                    fault.ends(format_args!("{name}: x{n} is {:#x}", w.raw()));
                }
            }
            for n in v.live_y(i) {
                let w = word(p, n as usize + 1);
                if !is_term(w) {
                    fault.ends(format_args!("{name}: y{n} is {:#x}", w.raw()));
                }
            }
            Some(size)
        });
        let Some(Some(size)) = size else { return };
        if let Some(n) = size {
            p = p.wrapping_add(n + 1);
        }
        if p >= cx.heap.hend as *const Term {
            if p > cx.heap.hend as *const Term {
                fault.ends(format_args!("the frame goes beyond the stack"));
            }
            return;
        }
        let to = word(p, 0).raw();
        if to & 7 != 0 || to == 0 {
            fault.ends(format_args!("frame {depth}: {to:#x} is returned to"));
        }
        pc = to as *const u64;
    }
}
