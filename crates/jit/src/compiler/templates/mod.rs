//! The templates: the machine code of each op. See the head of [`compiler`](super).
//!
//! A row of `purlin_isa::ops` whose machine code is `template` has a function of its name here, in
//! the file of its family. The function gets the operands of the row. If operands are unusual it
//! runs the step instead ([`Gen::step`]), or does so in a cold part ([`Gen::step_aside`]).

use super::*;
use purlin_term::layout::TUPLE_FIRST;

mod arith_ops;
mod bit_ops;
mod build_ops;
mod call_ops;
mod exceptions;
mod floats;
mod frame_ops;
mod fun_ops;
mod lists;
mod map_ops;
mod message_ops;
mod native_ops;
mod registers;
mod select_ops;
mod shortcuts;
mod tuples;
mod type_tests;

macro_rules! by_row {
    ($( $c:ident $name:ident {$($operands:tt)*} [$($fx:ident)*] $mc:ident $($what:ident($($w:tt)*))* $doc:literal; )*) => {
        impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
            /// The machine code of an instruction, or of a part of one.
            pub(super) fn template(&mut self, i: &'a Instruction<'a>) {
                self.part = i;
                match i.op { $(Op::$c => by_row! { @ $mc self i $c $name },)* }
            }
        }
    };
    (@ template $g:ident $i:ident $c:ident $name:ident) => { $g.$name(operands::$c::of($i)) };
    (@ step $g:ident $i:ident $c:ident $name:ident) => { $g.step() };
    (@ raises $g:ident $i:ident $c:ident $name:ident) => { $g.raises($i) };
    (@ leaves $g:ident $i:ident $c:ident $name:ident) => { $g.leaves() };
    // A fused op is compiled as its parts, and a function with an op that `refuses` was refused
    // when it was decoded.
    (@ fused $g:ident $i:ident $c:ident $name:ident) => { $g.has_no_template() };
    (@ refuses $g:ident $i:ident $c:ident $name:ident) => { $g.has_no_template() };
}
purlin_isa::for_each_specific_op!(by_row);

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    /// Refuses the function: no instruction of this kind gets here.
    fn has_no_template(&mut self) {
        debug_assert!(false, "{:?} has no template", self.part.op);
        self.refused = Some(Refusal::Instructions);
    }
    /// Exits to the interpreter at the instruction.
    fn leaves(&mut self) {
        let pc = self.pc(self.part.at);
        self.leave_to(pc);
        // The function that it calls returns to compiled code.
        let effects = self.part.op.row().effects;
        if effects.calls && !effects.ends {
            self.return_point();
        }
    }
    /// Makes the next instruction a return point: a function that returns there continues in
    /// machine code.
    fn return_point(&mut self) {
        let next = self.part.next;
        if let Some(l) = self.label_at(next) {
            self.returns.push((self.pc(next), l));
        }
    }
    /// A cold part that runs the step of the whole instruction and continues after its template.
    pub(super) fn step_aside(&mut self) -> Label {
        let l = self.a.label();
        let i = self.whole;
        self.later("a step of the whole", move |g| {
            g.a.bind(l);
            g.whole = i;
            g.step_of(i);
            match g.label_at(i.next) {
                Some(next) => g.a.jmp(next),
                None => {
                    let pc = g.pc(i.next);
                    g.leave_to(pc);
                }
            }
        });
        l
    }
    /// Returns the value of a constant that is a small integer.
    fn small(a: Src) -> Option<i64> {
        match a {
            Src::C(w) if is_small_word(w) => Some((w as i64) >> SMALL_SHIFT),
            _ => None,
        }
    }
    fn add_word(&mut self, r: Reg, n: u64) {
        match i32::try_from(n) {
            Ok(n) => self.a.alu_i(Q, Add, r, n),
            Err(_) => {
                self.a.mov_i(R, n);
                self.a.alu(Q, Add, r, R);
            }
        }
    }
    /// Stores the number in `R` as a term.
    fn put_small(&mut self, dst: Dst) {
        self.a.tag(Q, R);
        self.put_result(dst, R);
    }
    /// Ends the object of that many words at the top of the heap, and stores its term.
    fn made(&mut self, dst: Dst, tag: u64, words: i32) {
        let d = self.dst(dst, R);
        self.a.lea(d, at(HP, tag as i32));
        self.put(dst, d);
        self.a.alu_i(Q, Add, HP, words * 8);
    }
}
