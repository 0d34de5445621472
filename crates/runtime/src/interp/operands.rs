//! Reading operands out of the instruction stream. Layout: see `purlin_isa::ops`.

use crate::cx::Cx;
use purlin_term::Term;

/// X register.
pub struct X;
/// Y register.
pub struct Y;
/// Constant.
pub struct C;

/// An operand that is read; `p` is its first unit.
pub trait Src {
    /// Units it takes.
    const U: usize;
    unsafe fn get(cx: *mut Cx, e: *mut Term, p: *const u16) -> Term;
}
/// A register that is written.
pub trait Dst: Src {
    /// What is added to its unit where registers are told apart at run time.
    const MARK: u16;
    unsafe fn set(cx: *mut Cx, e: *mut Term, p: *const u16, t: Term);
}

impl Src for X {
    const U: usize = 1;
    #[inline(always)]
    unsafe fn get(cx: *mut Cx, _: *mut Term, p: *const u16) -> Term {
        *((cx as *const u8).add(*p as usize) as *const Term)
    }
}
impl Src for Y {
    const U: usize = 1;
    #[inline(always)]
    unsafe fn get(_: *mut Cx, e: *mut Term, p: *const u16) -> Term {
        *((e as *const u8).add(*p as usize) as *const Term)
    }
}
impl Src for C {
    const U: usize = 4;
    #[inline(always)]
    unsafe fn get(_: *mut Cx, _: *mut Term, p: *const u16) -> Term {
        (p as *const Term).read_unaligned()
    }
}
impl Dst for X {
    const MARK: u16 = 0;
    #[inline(always)]
    unsafe fn set(cx: *mut Cx, _: *mut Term, p: *const u16, t: Term) {
        *((cx as *mut u8).add(*p as usize) as *mut Term) = t
    }
}
impl Dst for Y {
    const MARK: u16 = 1;
    #[inline(always)]
    unsafe fn set(_: *mut Cx, e: *mut Term, p: *const u16, t: Term) {
        *((e as *mut u8).add(*p as usize) as *mut Term) = t
    }
}

/// Words of an instruction whose operands take `units`.
pub const fn words(units: usize) -> usize {
    (1 + units).div_ceil(4)
}

/// A source that is told apart at run time.
#[inline(always)]
pub unsafe fn source(cx: *mut Cx, e: *mut Term, w: u64) -> Term {
    if w & 3 != 0 {
        return Term::from_raw(w);
    }
    let base = if w & 4 != 0 {
        e as *const u8
    } else {
        cx as *const u8
    };
    *(base.add((w >> 4) as usize) as *const Term)
}

/// Writes the register of a source word.
#[inline(always)]
pub unsafe fn set_source(cx: *mut Cx, e: *mut Term, w: u64, t: Term) {
    let base = if w & 4 != 0 {
        e as *mut u8
    } else {
        cx as *mut u8
    };
    *(base.add((w >> 4) as usize) as *mut Term) = t
}

/// Writes a register told apart at run time.
#[inline(always)]
pub unsafe fn set_dst(cx: *mut Cx, e: *mut Term, d: u16, t: Term) {
    let base = if d & 1 != 0 {
        e as *mut u8
    } else {
        cx as *mut u8
    };
    *(base.add((d & !1) as usize) as *mut Term) = t
}

/// Reads the operands of a slow op in order.
pub struct Rd {
    p: *const u16,
}

impl Rd {
    /// At the first operand of the instruction at `pc`.
    pub unsafe fn new(pc: *const u64) -> Rd {
        Rd {
            p: (pc as *const u16).add(1),
        }
    }
    /// The value of a source.
    pub unsafe fn s(&mut self, cx: &mut Cx) -> Term {
        let w = self.q();
        let e = cx.heap.stop;
        source(cx, e, w)
    }
    /// A register to be written.
    pub unsafe fn d(&mut self) -> u16 {
        self.h()
    }
    pub unsafe fn h(&mut self) -> u16 {
        let v = *self.p;
        self.p = self.p.add(1);
        v
    }
    pub unsafe fn w(&mut self) -> u32 {
        let v = (self.p as *const u32).read_unaligned();
        self.p = self.p.add(2);
        v
    }
    pub unsafe fn q(&mut self) -> u64 {
        let v = (self.p as *const u64).read_unaligned();
        self.p = self.p.add(4);
        v
    }
    /// A label: words from the instruction, 0 for none.
    pub unsafe fn l(&mut self) -> isize {
        self.w() as i32 as isize
    }
    /// Behind the fixed part: the next instruction, or the list.
    pub fn end(&self) -> *const u64 {
        ((self.p as usize + 7) & !7) as *const u64
    }
}
