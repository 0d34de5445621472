//! The types that operands of instructions are read as. Layout: see `purlin_isa::ops`; which instruction has which: `instr`.

use crate::collect::Also;
use crate::cx::Cx;
use purlin_isa::codec;
use purlin_term::Term;
use std::marker::PhantomData;

/// X register.
pub struct X;
/// Y register.
pub(crate) struct Y;
/// Constant.
pub struct C;

/// An operand that is read; `p` is its first unit.
pub trait Src {
    /// Units it takes.
    const U: usize;
    /// # Safety
    /// The operand at `p` is of this form, in an instruction that runs; the register that it names holds a term.
    unsafe fn get(cx: *mut Cx, e: *mut Term, p: *const u16) -> Term;
}
/// A register that is written.
pub trait Dst: Src {
    /// The mark in its unit where registers are told apart at run time.
    const MARK: u16;
    /// # Safety
    /// The operand at `p` is of this form, in an instruction that runs.
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

/// A source that is told apart at run time.
///
/// # Safety
/// `w` is a source of an instruction that runs, `e` the top of the stack; the register that it names holds a term.
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
/// `w` is a source of an instruction that runs, and names a register; `e` is the top of the stack.
#[inline(always)]
pub(crate) unsafe fn set_source(cx: *mut Cx, e: *mut Term, w: u64, t: Term) {
    let base = if codec::source::is_y(w) {
        e as *mut u8
    } else {
        cx as *mut u8
    };
    *(base.add(codec::source::offset(w)) as *mut Term) = t
}

/// Writes a register told apart at run time.
///
/// # Safety
/// `d` is a destination of an instruction that runs, `e` the top of the stack.
#[inline(always)]
unsafe fn set_dst(cx: *mut Cx, e: *mut Term, d: u16, t: Term) {
    let base = if codec::dest::is_y(d) {
        e as *mut u8
    } else {
        cx as *mut u8
    };
    *(base.add(codec::dest::offset(d)) as *mut Term) = t
}

/// An operand that is a register or a constant, by the type parameter of the instruction.
pub(crate) struct Reg<A> {
    p: *const u16,
    of: PhantomData<A>,
}
impl<A> Reg<A> {
    /// The operand that starts at `p`.
    #[inline(always)]
    pub(super) fn at(p: *const u16) -> Reg<A> {
        Reg { p, of: PhantomData }
    }
}
impl<A: Src> Reg<A> {
    /// The term that it holds.
    ///
    /// # Safety
    /// The operand is of an instruction that runs in `cx` with its stack at `e`.
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
    /// The same register as one that is told apart at run time.
    ///
    /// # Safety
    /// As for [`Reg::get`].
    #[inline(always)]
    pub(crate) unsafe fn dest(self) -> Dest {
        Dest(*self.p | A::MARK)
    }
}

/// A source that is told apart at run time; also a member of a list of such.
#[derive(Clone, Copy)]
pub struct Source(pub u64);
impl Source {
    /// The term that it holds.
    ///
    /// # Safety
    /// As for [`Reg::get`].
    #[inline(always)]
    pub unsafe fn get(self, cx: *mut Cx, e: *mut Term) -> Term {
        source(cx, e, self.0)
    }
    /// The term that it holds, where the stack is the one that the context tells.
    ///
    /// # Safety
    /// As for [`Reg::get`].
    #[inline(always)]
    pub unsafe fn value(self, cx: &mut Cx) -> Term {
        let e = cx.heap.stop;
        source(cx, e, self.0)
    }
    /// Writes the register that it is, where the stack is the one that the context tells.
    ///
    /// # Safety
    /// As for [`Reg::get`]; it is no constant.
    pub unsafe fn put(self, cx: &mut Cx, t: Term) {
        let e = cx.heap.stop;
        set_source(cx, e, self.0, t)
    }
    /// As a root of a collection; it is no constant.
    pub fn also(self) -> Also {
        Also::dst(codec::source::as_dest(self.0))
    }
    /// Whether it is that constant.
    pub(crate) fn is(self, t: Term) -> bool {
        codec::Value::of_source(self.0) == codec::Value::C(t.raw())
    }
    /// The number of the X register that it is.
    pub(crate) fn x_register(self) -> Option<usize> {
        match codec::Value::of_source(self.0) {
            codec::Value::X(n) => Some(n as usize),
            _ => None,
        }
    }
}

/// A register that is written, told apart at run time.
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
    /// Writes it where the stack is the one that the context tells.
    ///
    /// # Safety
    /// As for [`Reg::get`].
    #[inline(always)]
    pub unsafe fn put(self, cx: &mut Cx, t: Term) {
        set_dst(cx, cx.heap.stop, self.0, t)
    }
    /// The term that it holds.
    ///
    /// # Safety
    /// As for [`Reg::get`]; something has been written to it.
    pub unsafe fn value(self, cx: &mut Cx) -> Term {
        let base = if codec::dest::is_y(self.0) {
            cx.heap.stop as *const u8
        } else {
            cx as *const Cx as *const u8
        };
        *(base.add(codec::dest::offset(self.0)) as *const Term)
    }
    /// As a root of a collection.
    #[inline(always)]
    pub fn also(self) -> Also {
        Also::dst(self.0)
    }
    /// The number of the X register that it is.
    pub(crate) fn x_register(self) -> Option<usize> {
        (!codec::dest::is_y(self.0)).then(|| codec::dest::offset(self.0) / size_of::<Term>())
    }
}

/// Where an instruction may lead.
#[derive(Clone, Copy)]
pub(crate) struct Label {
    pc: *const u64,
    words: i32,
}
impl Label {
    /// So many words from the instruction at `pc`; 0: nowhere.
    #[inline(always)]
    pub(super) fn new(pc: *const u64, words: i32) -> Label {
        Label { pc, words }
    }
    /// The address; that of the instruction itself if there is no label.
    #[inline(always)]
    pub fn to(self) -> *const u64 {
        // SAFETY: a label leads to an instruction of the same module.
        unsafe { self.pc.offset(self.words as isize) }
    }
    /// The address, if there is a label.
    #[inline(always)]
    pub fn given(self) -> Option<*const u64> {
        (self.words != 0).then(|| self.to())
    }
}
