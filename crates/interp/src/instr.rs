//! Instructions in the code, with their operands by name: one type per op, made from the rows of
//! [`purlin_isa::ops`].
//!
//! `Move::<S, D>::at(pc)` is the instruction at `pc`; `.src()` and `.dst()` are its operands. An
//! operand that has variants is a type parameter, in the order of the row: `X`, `Y` or `C`.
//! An operand is only read when its accessor is called, and every offset is a constant.
//!
//! The types of operands are:
//!
//! | kind in the row | type |
//! | --- | --- |
//! | `Read`, `Value`, `Write`, `Change` | [`Reg`] of the type parameter |
//! | `Source`, `ChangeSource` | [`Source`] |
//! | `Dest` | [`Dest`] |
//! | `Label`, `Callee`, `Handler` | [`Label`] |
//! | `Export`, `Native`, `Entry`, `Bytes`, `Slot`, `Counter` | what is at that address |
//! | `Term`, `Header`, `Mark`, `Integer` | a term, a word, an address without code, a number |
//! | `Float` | the number of the register |
//! | others | `usize` |
//!
//! A list has its name in the row too: `.elements()` is its first word.
#![allow(non_camel_case_types)]

use super::operands::{Dest, Dst, Label, Reg, Source, Src};
use purlin_isa::ops::List;
use purlin_native::nif::NifSlot;
use purlin_term::Term;
use purlin_term::fun::{Export, FunEntry};
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;

/// A function that implements a native.
pub use crate::bif::Call as Native;

/// Makes the types: `[type parameters] (units before the operand) {accessors}`, then the remaining
/// operands.
macro_rules! instruction {
    (@ $c:ident $doc:literal [$($g:ident: $b:ident)*] ($at:expr) {$($items:tt)*}) => {
        #[doc = $doc]
        pub struct $c<$($g: $b),*>(*const u64, PhantomData<($($g,)*)>);
        #[allow(dead_code)]
        impl<$($g: $b),*> $c<$($g),*> {
            /// Length of the instruction in words, without its list.
            pub const WORDS: usize = usize::div_ceil($at, 4);
            /// Returns the instruction at `pc`.
            ///
            /// # Safety
            /// At `pc` there must be an instruction of this op with operands of these forms, in
            /// code that stays as long as the value is used.
            #[inline(always)]
            pub unsafe fn at(pc: *const u64) -> Self {
                Self(pc, PhantomData)
            }
            /// Returns the address of a 16-bit unit.
            #[inline(always)]
            fn place<T>(&self, unit: usize) -> *const T {
                // SAFETY: within the instruction, by the contract of `at`.
                unsafe { (self.0 as *const u16).add(unit) as *const T }
            }
            /// Returns the end of the part that all instructions of this type share: the next
            /// instruction, or the list.
            #[inline(always)]
            pub fn behind(&self) -> *const u64 {
                // SAFETY: an instruction is never the last of a module's code.
                unsafe { self.0.add(Self::WORDS) }
            }
            $($items)*
        }
    };
    (@ $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} next, $($rest:tt)*) => {
        instruction! { @ $c $d [$($g)*] ($at) {$($i)*
            /// Returns the next instruction.
            #[inline(always)]
            pub fn next(&self) -> *const u64 {
                self.behind()
            }
        } $($rest)* }
    };
    (@ $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} list $o:ident: $k:ident, $($rest:tt)*) => {
        instruction! { @ $c $d [$($g)*] ($at) {$($i)*
            /// Returns the first word of the list.
            #[inline(always)]
            pub fn $o(&self) -> *const u64 {
                self.behind()
            }
            /// Returns the next instruction, after the list.
            #[inline(always)]
            pub fn next(&self) -> *const u64 {
                // SAFETY: the list belongs to the instruction, and an instruction is never the last
                // of a module's code.
                unsafe { self.behind().add(List::$k.words(self.count())) }
            }
        } $($rest)* }
    };
    (@ $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} $o:ident: Read, $($rest:tt)*) => {
        instruction! { @reg $c $d [$($g)*] ($at) {$($i)*} $o: Src, $($rest)* }
    };
    (@ $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} $o:ident: Value, $($rest:tt)*) => {
        instruction! { @reg $c $d [$($g)*] ($at) {$($i)*} $o: Src, $($rest)* }
    };
    (@ $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} $o:ident: Write, $($rest:tt)*) => {
        instruction! { @reg $c $d [$($g)*] ($at) {$($i)*} $o: Dst, $($rest)* }
    };
    (@ $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} $o:ident: Change, $($rest:tt)*) => {
        instruction! { @reg $c $d [$($g)*] ($at) {$($i)*} $o: Dst, $($rest)* }
    };
    (@reg $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} $o:ident: $b:ident, $($rest:tt)*) => {
        instruction! { @ $c $d [$($g)* $o: $b] ($at + $o::U) {$($i)*
            #[inline(always)]
            pub fn $o(&self) -> Reg<$o> {
                Reg::at(self.place($at))
            }
        } $($rest)* }
    };
    (@ $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} $o:ident: Callee, $($rest:tt)*) => {
        instruction! { @ $c $d [$($g)*] ($at) {$($i)*} $o: Label, $($rest)* }
    };
    (@ $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} $o:ident: Handler, $($rest:tt)*) => {
        instruction! { @ $c $d [$($g)*] ($at) {$($i)*} $o: Label, $($rest)* }
    };
    (@ $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} $o:ident: Label, $($rest:tt)*) => {
        instruction! { @ $c $d [$($g)*] ($at + 2) {$($i)*
            #[inline(always)]
            pub fn $o(&self) -> Label {
                // SAFETY: the operand is there.
                Label::new(self.0, unsafe { self.place::<i32>($at).read_unaligned() })
            }
        } $($rest)* }
    };
    (@ $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} $o:ident: $k:ident, $($rest:tt)*) => {
        instruction! { @num $c $d [$($g)*] ($at) {$($i)*} $o: (kind::$k), $($rest)* }
    };
    (@num $c:ident $d:literal [$($g:tt)*] ($at:expr) {$($i:tt)*} $o:ident: ($($t:tt)*), $($rest:tt)*) => {
        instruction! { @ $c $d [$($g)*] ($at + <$($t)* as Plain>::UNITS) {$($i)*
            #[inline(always)]
            pub fn $o(&self) -> <$($t)* as Plain>::Value {
                // SAFETY: the operand is there, and has the kind that the row says.
                unsafe { <$($t)* as Plain>::read(self.place($at)) }
            }
        } $($rest)* }
    };
}

/// A kind of operand that has one form.
pub trait Plain {
    const UNITS: usize;
    type Value;
    /// # Safety
    /// An operand of the kind must start at `p`.
    unsafe fn read(p: *const u16) -> Self::Value;
}

macro_rules! plain_kinds {
    ($($k:ident: $raw:ty => $v:ty, |$w:ident| $value:expr;)*) => {
        /// A type for each kind of operand that has one form, under its name.
        pub mod kind { $(pub struct $k;)* }
        $(impl Plain for kind::$k {
            const UNITS: usize = size_of::<$raw>() / 2;
            type Value = $v;
            /// # Safety
            /// The operand must be at `p`, as the loader packed it.
            #[inline(always)]
            unsafe fn read(p: *const u16) -> $v {
                // SAFETY: by the contract.
                let $w = unsafe { (p as *const $raw).read_unaligned() };
                $value
            }
        })*
    };
}
plain_kinds! {
    Source: u64 => Source, |w| Source(w);
    ChangeSource: u64 => Source, |w| Source(w);
    Dest: u16 => Dest, |d| Dest(d);
    Live: u16 => usize, |n| n as usize;
    Arity: u16 => usize, |n| n as usize;
    Frame: u16 => usize, |n| n as usize;
    Few: u16 => usize, |n| n as usize;
    Element: u16 => usize, |n| n as usize;
    Float: u16 => usize, |n| n as usize / 8;
    Number: u16 => usize, |n| n as usize;
    Heap: u32 => usize, |n| n as usize;
    Count: u32 => usize, |n| n as usize;
    Size: u32 => usize, |n| n as usize;
    FarElement: u32 => usize, |n| n as usize;
    Integer: u64 => i64, |n| n as i64;
    Header: u64 => u64, |w| w;
    Mark: u64 => u64, |w| w;
    // SAFETY: an immediate term, which the loader wrote.
    Term: u64 => Term, |w| unsafe { Term::from_raw(w) };
    // SAFETY: the address of an export, which is never freed.
    Export: u64 => &'static Export, |w| unsafe { &*(w as *const Export) };
    // SAFETY: the address of a function of that type.
    Native: u64 => Native, |w| unsafe { std::mem::transmute::<u64, Native>(w) };
    Entry: u64 => *const FunEntry, |w| w as *const FunEntry;
    Bytes: u64 => *const u8, |w| w as *const u8;
    // SAFETY: the address of a slot of the instruction's module.
    Slot: u64 => &'static NifSlot, |w| unsafe { &*(w as *const NifSlot) };
    // SAFETY: the address of a counter of the instruction's module.
    Counter: u64 => &'static AtomicU64, |w| unsafe { &*(w as *const AtomicU64) };
}

macro_rules! all {
    ($( $c:ident $name:ident {$($operands:tt)*} [$($fx:ident)*] $mc:ident $($what:ident($($w:tt)*))* $doc:literal; )*) => {
        $(all! { @one $c $doc $($operands)* })*
    };
    (@one $c:ident $doc:literal $($o:ident: $k:ident),*) => {
        instruction! { @ $c $doc [] (1) {} $($o: $k,)* next, }
    };
    (@one $c:ident $doc:literal $($o:ident: $k:ident),*; $l:ident: $lk:ident) => {
        instruction! { @ $c $doc [] (1) {} $($o: $k,)* list $l: $lk, }
    };
}
purlin_isa::for_each_specific_op!(all);
