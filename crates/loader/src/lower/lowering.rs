//! The state of lowering a module, and operands of generic instructions as those of ops.

use super::emit::{Arg, Emitter, count};
use super::flow;
use super::interface::{Env, Lowered};
use super::words::{NIL, alloc_words, small};
use crate::file::BeamFile;
use crate::generic::{BigInt, GenericCode, Operand};
use purlin_isa::ops::Op;
use purlin_isa::types::Type;
use purlin_term::word::{MAX_SMALL, MIN_SMALL};

/// The X register that lowering itself uses within one instruction.
const SCRATCH: u32 = 1023;

/// The state of lowering a module.
pub(super) struct Lower<'a> {
    /// See [`Env::lines_can_break`].
    pub(super) lines_can_break: bool,
    /// Entry label of the function being lowered.
    pub(super) entry: u32,
    pub(super) types: Vec<Type>,
    pub(super) file: &'a BeamFile<'a>,
    pub(super) code: &'a GenericCode,
    pub(super) e: Emitter,
    pub(super) env: &'a mut dyn Env,
    pub(super) out: Lowered,
    /// Arity of the function being lowered.
    pub(super) live: u32,
    /// Whether its frames are cleared when they are made.
    pub(super) clear_frames: bool,
    pub(super) kept: flow::Kept,
    /// Its labels that control must not fall into.
    pub(super) guarded: Vec<u32>,
    /// Its labels whose tests a preceding `type_switch` leads to.
    pub(super) switched: Vec<u32>,
    /// Whether a native library may replace it.
    pub(super) nif: bool,
    /// Number of places in the code with a `line` or `executable_line` of their own, as stock
    /// counts them.
    pub(super) places: usize,
    /// Item of the line table of the last of them.
    pub(super) place: Option<u32>,
    /// The module loads a library, and its compiler is of a version for which a library could
    /// replace any function.
    pub(super) all_nifs: bool,
}

impl Lower<'_> {
    /// Returns a source as an operand.
    pub(super) fn s(&mut self, o: Operand) -> Arg {
        match o.untyped() {
            Operand::X(n) => Arg::X(n),
            Operand::Y(n) => Arg::Y(n),
            Operand::Atom(n) => Arg::C(self.env.atom(n)),
            Operand::Nil => Arg::C(NIL),
            Operand::Int(v) => Arg::C(self.int(v)),
            Operand::BigInt(i) => Arg::C(self.env.bigint(&self.code.bigints[i as usize])),
            Operand::Literal(i) => Arg::C(self.env.literal(i)),
            Operand::U(n) => match i64::try_from(n) {
                Ok(v) => Arg::C(self.int(v)),
                Err(_) => Arg::C(self.env.bigint(&BigInt {
                    negative: false,
                    magnitude: n.to_le_bytes().to_vec(),
                })),
            },
            // A size that no memory holds: any bignum of that magnitude has the same effect.
            Operand::Huge => {
                let mut magnitude = vec![0; 9];
                magnitude[8] = 1;
                Arg::C(self.env.bigint(&BigInt {
                    negative: false,
                    magnitude,
                }))
            }
            Operand::Fr(n) => count(n * 8),
            Operand::Label(n) => Arg::L(n as i32),
            Operand::Alloc { .. }
            | Operand::List { .. }
            | Operand::TypedX(..)
            | Operand::TypedY(..) => Arg::C(NIL),
        }
    }
    pub(super) fn int(&mut self, v: i64) -> u64 {
        if (MIN_SMALL..=MAX_SMALL).contains(&v) {
            return small(v);
        }
        let mut magnitude = v.unsigned_abs().to_le_bytes().to_vec();
        while magnitude.last() == Some(&0) {
            magnitude.pop();
        }
        self.env.bigint(&BigInt {
            negative: v < 0,
            magnitude,
        })
    }
    pub(super) fn u(&self, o: Operand) -> u64 {
        match o {
            Operand::U(n) => n,
            _ => 0,
        }
    }
    /// Returns the words to reserve. A fun takes five words and its environment, which the compiler
    /// counts as words.
    pub(super) fn heap(&self, o: Operand) -> Arg {
        match o {
            Operand::Alloc { .. } => count(alloc_words(o)),
            o => count(self.u(o) as u32),
        }
    }
    pub(super) fn h(&self, o: Operand) -> Arg {
        count(self.u(o) as u32)
    }
    pub(super) fn label(&self, o: Operand) -> Arg {
        match o {
            Operand::Label(n) => Arg::L(n as i32),
            _ => Arg::L(0),
        }
    }
    /// Returns a register for an op that takes registers only: constants pass through x1023, which
    /// no code uses across ops.
    pub(super) fn r(&mut self, o: Operand) -> Arg {
        match self.s(o) {
            Arg::C(w) => {
                self.e.op(Op::Move, &[Arg::C(w), Arg::X(SCRATCH)]);
                Arg::X(SCRATCH)
            }
            a => a,
        }
    }
    pub(super) fn list_words(&mut self, o: Operand) -> Vec<Arg> {
        let code = self.code;
        code.list(o).iter().map(|&m| self.s(m)).collect()
    }

    /// Emits an op whose operands are sources and registers only.
    pub(super) fn ss(&mut self, op: Op, a: &[Operand]) {
        let v: Vec<Arg> = a.iter().map(|&o| self.s(o)).collect();
        self.e.op(op, &v);
    }
}
