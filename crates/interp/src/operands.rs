//! The types of operands of instructions. Their layout is in `purlin_isa::ops`; `instr` says which
//! instruction has which.

use crate::collect::Also;
use crate::cx::Cx;
use purlin_isa::codec;
use purlin_term::Term;
use std::marker::PhantomData;

/// An X register.
pub struct X;
/// A Y register.
pub(crate) struct Y;
/// A constant.
pub struct C;

/// An operand that is read; `p` is its first unit.
pub trait Src {
    /// Its size in units.
    const U: usize;
    /// # Safety
    /// The operand at `p` must be of this form, in a running instruction; the register that it
    /// names must hold a term.
    unsafe fn get(cx: *mut Cx, e: *mut Term, p: *const u16) -> Term;
}
/// A register that is written.
pub trait Dst: Src {
    /// The mark in its unit if registers are distinguished at run time.
    const MARK: u16;
    /// # Safety
    /// The operand at `p` must be of this form, in a running instruction.
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
    const MARK: u16 = codec::dest::MARK_X;
    #[inline(always)]
    unsafe fn set(cx: *mut Cx, _: *mut Term, p: *const u16, t: Term) {
        *((cx as *mut u8).add(*p as usize) as *mut Term) = t
    }
}
impl Dst for Y {
    const MARK: u16 = codec::dest::MARK_Y;
    #[inline(always)]
    unsafe fn set(_: *mut Cx, e: *mut Term, p: *const u16, t: Term) {
        *((e as *mut u8).add(*p as usize) as *mut Term) = t
    }
}

/// Reads a source that is decoded at run time.
///
/// # Safety
/// `w` must be a source of a running instruction, `e` the top of the stack; the register that it
/// names must hold a term.
#[inline(always)]
pub(crate) unsafe fn source(cx: *mut Cx, e: *mut Term, w: u64) -> Term {
    if codec::source::is_constant(w) {
        return Term::from_raw(w);
    }
    let base = if codec::source::is_y(w) {
        e as *const u8
    } else {
        cx as *const u8
    };
    *(base.add(codec::source::offset(w)) as *const Term)
}

/// Writes the register of a source word.
///
/// # Safety
/// `w` must be a source of a running instruction, and name a register; `e` must be the top of the
/// stack.
#[inline(always)]
pub(crate) unsafe fn set_source(cx: *mut Cx, e: *mut Term, w: u64, t: Term) {
    let base = if codec::source::is_y(w) {
        e as *mut u8
    } else {
        cx as *mut u8
    };
    *(base.add(codec::source::offset(w)) as *mut Term) = t
}

/// Writes a register that is decoded at run time.
///
/// # Safety
/// `d` must be a destination of a running instruction, `e` the top of the stack.
#[inline(always)]
unsafe fn set_dst(cx: *mut Cx, e: *mut Term, d: u16, t: Term) {
    let base = if codec::dest::is_y(d) {
        e as *mut u8
    } else {
        cx as *mut u8
    };
    *(base.add(codec::dest::offset(d)) as *mut Term) = t
}

/// An operand that is a register or a constant, according to the type parameter of the instruction.
pub(crate) struct Reg<A> {
    p: *const u16,
    of: PhantomData<A>,
}
impl<A> Reg<A> {
    /// Returns the operand that starts at `p`.
    #[inline(always)]
    pub(super) fn at(p: *const u16) -> Reg<A> {
        Reg { p, of: PhantomData }
    }
}
impl<A: Src> Reg<A> {
    /// Returns the term that it holds.
    ///
    /// # Safety
    /// The operand must belong to an instruction that runs in `cx` with its stack at `e`.
    #[inline(always)]
    pub unsafe fn get(self, cx: *mut Cx, e: *mut Term) -> Term {
        A::get(cx, e, self.p)
    }
}
impl<A: Dst> Reg<A> {
    /// Writes it.
    ///
    /// # Safety
    /// As for [`Reg::get`].
    #[inline(always)]
    pub unsafe fn set(self, cx: *mut Cx, e: *mut Term, t: Term) {
        A::set(cx, e, self.p, t)
    }
    /// Returns the same register as one that is decoded at run time.
    ///
    /// # Safety
    /// As for [`Reg::get`].
    #[inline(always)]
    pub(crate) unsafe fn dest(self) -> Dest {
        Dest(*self.p | A::MARK)
    }
}

/// A source that is decoded at run time; also a member of a list of such.
#[derive(Clone, Copy)]
pub struct Source(pub u64);
impl Source {
    /// Returns the term that it holds.
    ///
    /// # Safety
    /// As for [`Reg::get`].
    #[inline(always)]
    pub unsafe fn get(self, cx: *mut Cx, e: *mut Term) -> Term {
        source(cx, e, self.0)
    }
    /// Returns the term that it holds, with the stack of the context.
    ///
    /// # Safety
    /// As for [`Reg::get`].
    #[inline(always)]
    pub unsafe fn value(self, cx: &mut Cx) -> Term {
        let e = cx.heap.stop;
        source(cx, e, self.0)
    }
    /// Writes the register that it is, with the stack of the context.
    ///
    /// # Safety
    /// As for [`Reg::get`]; it must be no constant.
    pub unsafe fn put(self, cx: &mut Cx, t: Term) {
        let e = cx.heap.stop;
        set_source(cx, e, self.0, t)
    }
    /// Returns it as a root of a collection; it must be no constant.
    pub fn also(self) -> Also {
        Also::dst(codec::source::as_dest(self.0))
    }
    /// Whether it is that constant.
    pub(crate) fn is(self, t: Term) -> bool {
        codec::Value::of_source(self.0) == codec::Value::C(t.raw())
    }
    /// Returns the number of the X register that it is.
    pub(crate) fn x_register(self) -> Option<usize> {
        match codec::Value::of_source(self.0) {
            codec::Value::X(n) => Some(n as usize),
            _ => None,
        }
    }
}

/// A register that is written, decoded at run time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Dest(pub u16);
impl Dest {
    /// Writes it.
    ///
    /// # Safety
    /// As for [`Reg::get`].
    #[inline(always)]
    pub unsafe fn set(self, cx: *mut Cx, e: *mut Term, t: Term) {
        set_dst(cx, e, self.0, t)
    }
    /// Writes it, with the stack of the context.
    ///
    /// # Safety
    /// As for [`Reg::get`].
    #[inline(always)]
    pub unsafe fn put(self, cx: &mut Cx, t: Term) {
        set_dst(cx, cx.heap.stop, self.0, t)
    }
    /// Returns the term that it holds.
    ///
    /// # Safety
    /// As for [`Reg::get`]; it must have been written.
    pub unsafe fn value(self, cx: &mut Cx) -> Term {
        let base = if codec::dest::is_y(self.0) {
            cx.heap.stop as *const u8
        } else {
            cx as *const Cx as *const u8
        };
        *(base.add(codec::dest::offset(self.0)) as *const Term)
    }
    /// Returns it as a root of a collection.
    #[inline(always)]
    pub fn also(self) -> Also {
        Also::dst(self.0)
    }
    /// Returns the number of the X register that it is.
    pub(crate) fn x_register(self) -> Option<usize> {
        (!codec::dest::is_y(self.0)).then(|| codec::dest::offset(self.0) / size_of::<Term>())
    }
}

/// A label of an instruction.
#[derive(Clone, Copy)]
pub(crate) struct Label {
    pc: *const u64,
    words: i32,
}
impl Label {
    /// Makes a label `words` words from the instruction at `pc`; 0 means none.
    #[inline(always)]
    pub(super) fn new(pc: *const u64, words: i32) -> Label {
        Label { pc, words }
    }
    /// Returns the address; that of the instruction itself if there is no label.
    #[inline(always)]
    pub fn to(self) -> *const u64 {
        // SAFETY: a label leads to an instruction of the same module.
        unsafe { self.pc.offset(self.words as isize) }
    }
    /// Returns the address, if there is a label.
    #[inline(always)]
    pub fn given(self) -> Option<*const u64> {
        (self.words != 0).then(|| self.to())
    }
}
