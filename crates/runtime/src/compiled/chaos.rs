//! Chaos mode, `PURLIN_JIT=chaos:SEED`: everything that may happen to machine code happens at
//! random and all the time.
//!
//! - Code exits before any instruction, and returns through the table of return points
//!   (`purlin_jit::chaos`).
//! - Functions lose their machine code and get it again; freed code is overwritten with traps.
//! - Time slices are cut into pieces of any length.
//! - At each exit the stack is walked. Each frame must be what the code at its address has there,
//!   and each live register must hold a term ([`check`]).
//!
//! Threads draw from one sequence of numbers. So with one scheduler a seed gives the same run, as
//! far as the program is deterministic.

use super::{OWNER, Owner};
use purlin_isa::ops::Op;
use purlin_isa::view::{Code, Extent, Frame, FunctionView};
use purlin_kernel::code::{self, Module};
use purlin_kernel::cx::{Cx, Exit};
use purlin_loader::lower::LoweredFunction;
use purlin_term::test_modes::mixed;
use purlin_term::{Term, atom};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// The byte with which freed machine code is overwritten: `int3`, or of words `udf #0`.
pub(super) const TRAP: u8 = if cfg!(target_arch = "aarch64") {
    0
} else {
    0xCC
};

/// One in this many exits is checked.
const CHECKED: u64 = 4;
/// Instructions that a thread keeps decoded, about.
const KEPT: usize = 1 << 17;
/// Number of frames that a thorough check looks at, from the top.
const FRAMES: usize = 24;
/// Number of frames that the other checks look at.
const FEW: usize = 3;
/// The lowest address that may be mapped.
const LOWEST: u64 = 4096;

static NUMBERS: AtomicU64 = AtomicU64::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);
static ENTER: AtomicUsize = AtomicUsize::new(0);

/// Turns the mode on if `mode` names it, with the seed in it. Returns whether it does.
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

/// Returns a random number below `n`, which is not 0.
fn below(n: u64) -> u64 {
    let x = NUMBERS.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
    mixed(x) % n
}
pub(super) fn one_in(n: u64) -> bool {
    below(n) == 0
}

/// Returns the function that enters machine code, instead of the stub at that address.
pub(super) fn enter_by(stub: u64) -> u64 {
    ENTER.store(stub as usize, Ordering::Relaxed);
    enter as *const () as u64
}

/// # Safety
/// As for the stub that it replaces.
unsafe extern "C" fn enter(cx: *mut Cx, at: u64) -> u64 {
    // SAFETY: called like the stub, whose address this is.
    let (next, pc) = unsafe {
        // The next exit mostly comes soon, and seldom late: long stretches are covered, too.
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
        // SAFETY: the process is about to continue there.
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
    /// Returns a short time slice at random, for a process that is about to run.
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
    /// Takes the machine code of one function, or compiles one that has none.
    fn forget_or_make(&self) {
        let mut s = self.state.lock();
        self.tidy(&mut s);
        let n = s.objects.len() as u64;
        if one_in(2) && n > 0 {
            // Chooses by an address in the range of their entries, so that each is found in the
            // end.
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

/// Decodes a function as it was loaded, without a patch at its entry.
fn view<R>(m: &Module, f: &LoweredFunction, look: impl FnOnce(&FunctionView) -> R) -> Option<R> {
    let mut words = m.code.words()[f.start as usize..f.end as usize].to_vec();
    let entry = (f.entry - f.start) as usize;
    // SAFETY: the entry of a function whose module is held.
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

/// The frame and the registers that code expects at the start of an instruction.
struct Place {
    frame: Frame,
    op: Op,
    /// Where its live registers are among those of the function: X registers, then Y registers.
    from: u32,
    middle: u32,
    to: u32,
}

/// The places of a function, by offset in it.
struct Places {
    at: Vec<Option<Place>>,
    live: Vec<u16>,
}

impl Places {
    fn of(v: &FunctionView) -> Places {
        let mut at = Vec::new();
        at.resize_with(v.extent.end as usize, || None);
        let mut live = Vec::new();
        for (i, o) in v.ops.iter().enumerate() {
            let from = live.len() as u32;
            live.extend(v.live_x(i).map(|n| n as u16));
            let middle = live.len() as u32;
            live.extend(v.live_y(i).map(|n| n as u16));
            at[o.at as usize] = Some(Place {
                frame: o.frame,
                op: o.instruction.op,
                from,
                middle,
                to: live.len() as u32,
            });
        }
        Places { at, live }
    }
    fn live_x(&self, p: &Place) -> &[u16] {
        &self.live[p.from as usize..p.middle as usize]
    }
    fn live_y(&self, p: &Place) -> &[u16] {
        &self.live[p.middle as usize..p.to as usize]
    }
}

/// Functions that a thread has decoded, by address, and their size. A module that is gone leaves
/// its address to others, but not that of its count, which the weak reference keeps.
#[derive(Default)]
struct Decoded {
    functions: HashMap<usize, (Weak<Module>, Rc<Places>)>,
    words: usize,
}

thread_local! {
    // Decoding takes far longer than a check, and programs exit at the same places repeatedly.
    static DECODED: RefCell<Decoded> = RefCell::default();
}

/// Returns what the instructions of a function expect; `None` if its words are no code.
fn places(m: &Arc<Module>, f: &LoweredFunction) -> Option<Rc<Places>> {
    let start = m.at(f.start) as usize;
    DECODED.with_borrow_mut(|d| {
        if let Some((of, found)) = d.functions.get(&start)
            && std::ptr::eq(of.as_ptr(), Arc::as_ptr(m))
        {
            return Some(found.clone());
        }
        let made = Rc::new(view(m, f, Places::of)?);
        if d.words > KEPT {
            *d = Decoded::default();
        }
        d.words += made.at.len();
        d.functions.insert(start, (Arc::downgrade(m), made.clone()));
        Some(made)
    })
}

struct Fault<'a> {
    m: &'a Module,
    f: &'a LoweredFunction,
    at: u32,
}

impl Fault<'_> {
    #[cold]
    fn abort(&self, what: std::fmt::Arguments) -> ! {
        // SAFETY: the word of an atom.
        let name = unsafe { Term::from_raw(self.f.name) };
        purlin_term::say!(
            "chaos mode found a fault (PURLIN_JIT=chaos:{}): {}:{}/{} at word {}: {what}",
            SEED.load(Ordering::Relaxed),
            atom::name(self.m.name),
            atom::name(name),
            self.f.arity,
            self.at - self.f.start,
        );
        std::process::abort();
    }
}

/// Whether a word is a term: an immediate, or a pointer to an object of its kind.
///
/// # Safety
/// It must be a term of the running process.
unsafe fn is_term(w: Term) -> bool {
    // SAFETY: by the contract, which this function exists to check.
    let first = || unsafe { *w.ptr() };
    if w.is_boxed() {
        return first().is_header();
    }
    match w.is_list_ptr() {
        true => w.raw() > LOWEST && !first().is_header(),
        false => !w.is_header(),
    }
}

/// Returns the word `n` words above `p`.
///
/// # Safety
/// It must be part of the stack of the running process.
unsafe fn word(p: *const Term, n: usize) -> Term {
    // SAFETY: by the contract.
    unsafe { p.add(n).read() }
}

/// Checks that the stack and the live registers are what the code at `pc` expects.
///
/// # Safety
/// The process in the context must be about to run the code at `pc`.
unsafe fn check(cx: &Cx, pc: *const u64) {
    // SAFETY: each frame is above the one before, and the last ends with the stack.
    let word = |p, n| unsafe { word(p, n) };
    // SAFETY: words of the running process.
    let is_term = |w| unsafe { is_term(w) };
    let (mut pc, mut p) = (pc, cx.heap.stop as *const Term);
    let most = if one_in(8) { FRAMES } else { FEW };
    for depth in 0..most {
        // Stubs, return instructions of traces and the like have frames of their own.
        let Some(m) = code::module_at(pc) else { return };
        let Some(f) = m.function_at(pc).copied() else {
            return;
        };
        let at = ((pc as usize - m.code.as_ptr() as usize) / 8) as u32;
        let fault = Fault { m: &m, f: &f, at };
        let Some(all) = places(&m, &f) else { return };
        let Some(Some(place)) = all.at.get((at - f.start) as usize) else {
            fault.abort(format_args!("no instruction begins there"));
        };
        let size = match place.frame {
            Frame::None => None,
            Frame::Of(n) => Some(n as usize),
            // Only errors, or the code after a call that never returns.
            Frame::Unreached | Frame::AtLeast(_) => return,
        };
        if depth > 0 {
            // After a call, collections look at the whole frame. The target of a trap of a
            // tail-called native returns to the instruction after the call.
            let Some(n) = size else { return };
            for k in 0..n {
                let w = word(p, k + 1);
                if !is_term(w) {
                    fault.abort(format_args!("frame {depth}: y{k} is {:#x}", w.raw()));
                }
            }
        } else {
            // A frame that is dropped at once may keep the return address: slot 0 is not read.
            let drops = matches!(
                place.op,
                Op::Deallocate
                    | Op::DeallocateReturn
                    | Op::MoveDeallocate
                    | Op::MoveDeallocateReturn
            );
            if drops && size.is_none() {
                // After a tail call of a native: the target of its trap returns here, to a frame
                // that the call would have dropped.
                return;
            }
            if size.is_some() && !drops && word(p, 0).raw() != 0 {
                fault.abort(format_args!("slot 0 is {:#x}", word(p, 0).raw()));
            }
            let name = place.op.row().name;
            for &n in all.live_x(place) {
                let w = cx.x[usize::from(n)];
                // An exception that passes its handler has no value.
                let thrown =
                    n == 0 && w == Term::NON_VALUE && matches!(name, "catch_end" | "try_case");
                if !is_term(w) && !thrown {
                    fault.abort(format_args!("{name}: x{n} is {:#x}", w.raw()));
                }
            }
            for &n in all.live_y(place) {
                let w = word(p, usize::from(n) + 1);
                if !is_term(w) {
                    fault.abort(format_args!("{name}: y{n} is {:#x}", w.raw()));
                }
            }
        }
        if let Some(n) = size {
            p = p.wrapping_add(n + 1);
        }
        if p >= cx.heap.hend as *const Term {
            if p > cx.heap.hend as *const Term {
                fault.abort(format_args!("the frame goes beyond the stack"));
            }
            return;
        }
        let to = word(p, 0).raw();
        if to & 7 != 0 || to == 0 {
            fault.abort(format_args!("frame {depth}: {to:#x} is returned to"));
        }
        pc = to as *const u64;
    }
}
