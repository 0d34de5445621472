//! A processor as the compiler sees it: operations that carry a meaning, on registers with roles.
//!
//! Templates and the stubs that need nothing of the system are written once, over [`Machine`]. Each
//! processor implements it with its assembler ([`asm`](crate::asm)), and has its own stubs that
//! enter and leave machine code ([`stubs`](crate::stubs)).
//!
//! # Rules
//! - No flag lives from one operation to the next: a comparison and its jump are one operation.
//! - An operation that both processors do in the same way is a primitive: a load, a sum, a
//!   comparison. One that wants another shape on each has a name for its meaning, as
//!   [`if_not_small`](Machine::if_not_small).
//! - An operation changes no register but its results and those that it names. A processor may have
//!   temporaries of its own, which mean nothing between two operations.
//! - Sums, shifts and loads have two operands, the result replaces the first. A processor with
//!   three operands loses a move there, until an operation of meaning replaces the pair.
//!
//! # To add a processor
//! Give each role a register, implement the trait, and write the stubs that `stubs/x64.rs` has.
//! Nothing else names a register. The memory of machine code has to make it visible to all threads
//! before an entry leads there (`crates/runtime/src/compiled/memory.rs`).

mod a64;
mod x64;

pub(crate) use a64::r as a64_register;

/// The implementors.
pub(crate) mod processors {
    pub(crate) use super::a64::A64;
    pub(crate) use super::x64::X64;
}

pub(crate) use x64::r as x64_register;

use crate::asm::{Code, Label};
use purlin_term::word::{TAG_BOXED, TAG_LIST};

/// The machine that this program runs on; x86-64 where there is no machine code.
#[cfg(target_arch = "aarch64")]
pub type Host = processors::A64;
/// The machine that this program runs on; x86-64 where there is no machine code.
#[cfg(not(target_arch = "aarch64"))]
pub type Host = processors::X64;

/// A processor that has machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Processor {
    X64,
    A64,
}

impl Processor {
    /// The processor that this program runs on; x86-64 where there is no machine code.
    pub const HOST: Processor = match cfg!(target_arch = "aarch64") {
        true => Processor::A64,
        false => Processor::X64,
    };
}

/// A register, by its role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reg(u8);

/// The registers of X0 to X5.
pub const X_REGS: [Reg; 6] = [Reg(0), Reg(1), Reg(2), Reg(3), Reg(4), Reg(5)];
/// The context.
pub const CX: Reg = Reg(6);
/// Top of the Erlang stack.
pub const E: Reg = Reg(7);
/// Top of the heap.
pub const HP: Reg = Reg(8);
/// Reductions.
pub const REDS: Reg = Reg(9);
/// The result of operations and helpers, and scratch of most operations.
pub const R: Reg = Reg(10);
/// The first operand of helpers and stubs; scratch.
pub const A: Reg = Reg(11);
/// The second operand of stubs, the code of a callee; scratch. Some operations overwrite it, as
/// their docs say.
pub const B: Reg = Reg(12);
/// The third operand of helpers and stubs, an operand that lasts; scratch.
pub const K: Reg = Reg(13);
/// Scratch within [`Machine::spare`].
pub const T: Reg = Reg(14);
/// Likewise.
pub const U: Reg = Reg(15);
/// Number of roles.
const ROLES: usize = 16;

impl Reg {
    const fn role(self) -> usize {
        self.0 as usize
    }
}

/// A vector register, of which the low double is used. The first four are scratch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vector(pub u8);

/// A memory operand: base, index times scale, displacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mem {
    pub base: Reg,
    pub index: Option<(Reg, u8)>,
    pub disp: i32,
}

impl Mem {
    /// Returns the operand `bytes` further on.
    pub const fn plus(mut self, bytes: i32) -> Mem {
        self.disp += bytes;
        self
    }
}

/// `disp` bytes from the address in `base`.
pub const fn at(base: Reg, disp: i32) -> Mem {
    Mem {
        base,
        index: None,
        disp,
    }
}
/// `index * scale + disp` bytes from the address in `base`; `scale` is 1, 2, 4 or 8.
pub const fn indexed(base: Reg, index: Reg, scale: u8, disp: i32) -> Mem {
    Mem {
        base,
        index: Some((index, scale)),
        disp,
    }
}
/// Returns word `n` of the object that is made at the top of the heap; its header is word 0.
pub(crate) fn new(n: usize) -> Mem {
    at(HP, n as i32 * 8)
}
/// Returns word `n` of the cons cell that a list points at.
pub(crate) fn cons(r: Reg, n: usize) -> Mem {
    at(r, n as i32 * 8 - TAG_LIST as i32)
}
/// Returns word `n` of the object that a boxed term points at; its header is word 0.
pub(crate) fn boxed(r: Reg, n: usize) -> Mem {
    at(r, n as i32 * 8 - TAG_BOXED as i32)
}

/// Results of a comparison of a first operand with a second one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cond {
    E,
    Ne,
    /// Below, unsigned.
    B,
    Ae,
    Be,
    /// Above, unsigned.
    A,
    /// Less, signed.
    L,
    Ge,
    Le,
    G,
    /// Negative, of a single operand or of a result.
    S,
    Ns,
}

impl Cond {
    /// Returns the opposite result.
    pub fn negated(self) -> Cond {
        match self {
            Cond::E => Cond::Ne,
            Cond::Ne => Cond::E,
            Cond::B => Cond::Ae,
            Cond::Ae => Cond::B,
            Cond::Be => Cond::A,
            Cond::A => Cond::Be,
            Cond::L => Cond::Ge,
            Cond::Ge => Cond::L,
            Cond::Le => Cond::G,
            Cond::G => Cond::Le,
            Cond::S => Cond::Ns,
            Cond::Ns => Cond::S,
        }
    }
    /// Returns the result of the comparison with its operands exchanged.
    pub fn turned(self) -> Cond {
        match self {
            Cond::B => Cond::A,
            Cond::A => Cond::B,
            Cond::Ae => Cond::Be,
            Cond::Be => Cond::Ae,
            Cond::L => Cond::G,
            Cond::G => Cond::L,
            Cond::Ge => Cond::Le,
            Cond::Le => Cond::Ge,
            c => c,
        }
    }
}

/// Width of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// 32 bits; the upper half of a written register becomes 0.
    D,
    /// 64 bits.
    Q,
}

/// Operations of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alu {
    Add,
    Sub,
    And,
    Or,
    Xor,
}

/// Shifts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shift {
    Shl,
    Shr,
    Sar,
}

/// Operations on doubles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Float {
    Add,
    Sub,
    Mul,
    Div,
}

/// Two operands that are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operands {
    Regs(Reg, Reg),
    /// A register and a word.
    Word(Reg, u64),
}

/// Operations, each of which writes its code at the end. See the head of this module.
pub trait Machine: Sized + 'static {
    /// Bytes from the entry of a function, for compiled callers, to the place where the interpreter
    /// enters it, which has counted the call.
    const INNER: u32;
    /// Whether an operation takes its first operand from another register than that of its result.
    const THREE_OPERANDS: bool;
    /// Whether [`popcount`](Machine::popcount) and [`bits_below`](Machine::bits_below) exist.
    fn counts_bits() -> bool;

    // Code and labels.

    /// Returns no code, with room for that many bytes of it. `near`: no two places will be farther
    /// from each other than 32 KiB, or [`finish`](Machine::finish) fails.
    fn begin(bytes: usize, near: bool) -> Self;
    /// Bytes so far.
    fn here(&self) -> u32;
    /// Makes a label without a place.
    fn label(&mut self) -> Label;
    /// Places the label here.
    fn bind(&mut self, l: Label);
    /// Makes a label here.
    fn here_label(&mut self) -> Label {
        let l = self.label();
        self.bind(l);
        l
    }
    /// Returns where a label is; `None` if it has no place yet.
    fn offset(&self, l: Label) -> Option<u32>;
    /// Returns the finished code; `None` if the target of a jump has no place, or is too far away.
    fn finish(self) -> Option<Code>;
    /// Instructions without effect up to a multiple of `n`, a power of two.
    fn align(&mut self, n: u32);
    /// An instruction that must not be reached.
    fn trap(&mut self);

    // Moves.

    /// `d = s`; no code if they are the same.
    fn mov(&mut self, d: Reg, s: Reg);
    /// `d = s`, after which `s` is undefined.
    fn mov_result(&mut self, d: Reg, s: Reg) {
        self.mov(d, s);
    }
    /// `d = s`, the lower 32 bits; the upper become 0.
    fn mov32(&mut self, d: Reg, s: Reg);
    /// `d = value`
    fn mov_i(&mut self, d: Reg, value: u64);
    /// `d = 0`
    fn zero(&mut self, d: Reg);
    /// `d = [m]`
    fn load(&mut self, d: Reg, m: Mem);
    /// `d = [m]`, 32 bits; the upper become 0.
    fn load32(&mut self, d: Reg, m: Mem);
    /// `d = [m]`, 16 bits; the upper become 0.
    fn load16(&mut self, d: Reg, m: Mem);
    /// `d = [m]`, 8 bits; the upper become 0.
    fn load8(&mut self, d: Reg, m: Mem);
    /// `[m] = s`
    fn store(&mut self, m: Mem, s: Reg);
    /// `[m] = s`, 8 bits.
    fn store8(&mut self, m: Mem, s: Reg);
    /// `[m] = value`, 64 bits, sign-extended.
    fn store_i(&mut self, m: Mem, value: i32);
    /// `[m] = value`, 8 bits.
    fn store8_i(&mut self, m: Mem, value: u8);
    /// `[m] = value`; may use `by`.
    fn store_word(&mut self, m: Mem, value: u64, by: Reg);
    /// `d = address of m`
    fn lea(&mut self, d: Reg, m: Mem);
    /// Keeps a register on the machine's stack until [`restore`](Machine::restore).
    fn save(&mut self, r: Reg);
    /// Takes back what was saved last.
    fn restore(&mut self, r: Reg);
    /// `d` = what was saved last, which stays.
    fn saved(&mut self, d: Reg);
    /// Replaces the word that was saved last by itself or `s`, bit by bit.
    fn or_saved(&mut self, s: Reg);
    /// Makes [`T`] and [`U`] usable until [`unspare`](Machine::unspare).
    fn spare(&mut self);
    /// Ends [`spare`](Machine::spare), on each way out of it.
    fn unspare(&mut self);

    // Arithmetic.

    /// `d = d op s`
    fn alu(&mut self, w: Width, op: Alu, d: Reg, s: Reg);
    /// `d = d op value`, sign-extended.
    fn alu_i(&mut self, w: Width, op: Alu, d: Reg, value: i32);
    /// `d = d + [m]`, or `-`.
    fn alu_m(&mut self, op: Alu, d: Reg, m: Mem);
    /// `d = d + 1`
    fn inc(&mut self, d: Reg);
    /// `d = d - 1`
    fn dec(&mut self, d: Reg);
    /// `d = d << n`, or one of the other shifts.
    fn shift_i(&mut self, w: Width, op: Shift, d: Reg, n: u8);
    /// The same by the number in [`R`], below the width.
    fn shift_by_r(&mut self, w: Width, op: Shift, d: Reg);
    /// `d = d * s`
    fn mul(&mut self, d: Reg, s: Reg);
    /// Reverses the bytes.
    fn bswap(&mut self, w: Width, d: Reg);
    /// `d` = number of set bits of `d`, which has at most 16.
    fn popcount(&mut self, d: Reg);
    /// `d` = `d` without its bits from number `n` on, below 32.
    fn bits_below(&mut self, d: Reg, n: Reg);

    // Arithmetic with a way out. On the way out the result is undefined.

    /// `d = d op s`, a sum or a difference; to the label if it overflows.
    fn sum_or(&mut self, op: Alu, d: Reg, s: Reg, overflow: Option<Label>);
    /// `d = n op m` of a small integer and one without its tag, which `by` has; to the label unless
    /// both are small integers and it does not overflow.
    fn small_sum_or(&mut self, op: Alu, d: Reg, n: Reg, m: Reg, by: Reg, l: Label) {
        self.if_not_both_small(n, by, l);
        self.mov(d, n);
        self.sum_or(op, d, m, Some(l));
    }
    /// `d = d op value`, to the label if it overflows; may use [`B`].
    fn sum_i_or(&mut self, op: Alu, d: Reg, value: u64, overflow: Option<Label>);
    /// `d = d + [m]`, likewise.
    fn add_m_or(&mut self, d: Reg, m: Mem, overflow: Label);
    /// `d = d * s`, likewise.
    fn mul_or(&mut self, d: Reg, s: Reg, overflow: Option<Label>);
    /// `d = d * value`, likewise.
    fn mul_i_or(&mut self, d: Reg, value: i32, overflow: Option<Label>);
    /// `d = d - value`; to the label if that is below 0, where `d` is unsigned.
    fn sub_i_or_below(&mut self, d: Reg, value: i32, l: Label);
    /// Removes the tag of a small integer; to the label if the result is as the condition says.
    fn untag_or(&mut self, d: Reg, c: Cond, l: Label);
    /// `d = d - 1`; to the label if the result is as the condition says.
    fn dec_if(&mut self, c: Cond, d: Reg, l: Label);
    /// [`R`] = quotient or rest of the small integer in [`B`], with its tag, and the number in
    /// [`R`], which is neither 0 nor -1 if a quotient is wanted. Uses `B`. The words of X0 and X1
    /// in the context are undefined afterwards.
    fn divide(&mut self, quotient: bool);

    // Terms.

    /// `d` = number of the small integer `s`.
    fn untag(&mut self, d: Reg, s: Reg);
    /// `d` becomes the small integer of a number.
    fn tag(&mut self, w: Width, d: Reg);
    /// Jumps unless `r` is a small integer; may use `by`.
    fn if_not_small(&mut self, r: Reg, by: Reg, l: Label);
    /// Jumps if `r` is a small integer; may use `by`.
    fn if_small(&mut self, r: Reg, by: Reg, l: Label);
    /// Jumps unless both are small integers; uses [`R`].
    fn if_not_both_small(&mut self, a: Reg, b: Reg, l: Label);
    /// Jumps if both are immediates; uses [`R`].
    fn if_both_immediate(&mut self, a: Reg, b: Reg, l: Label);
    /// Jumps unless `r` is boxed; may use `by`.
    fn if_not_boxed(&mut self, r: Reg, by: Reg, l: Label);
    /// Jumps if `r` is boxed; may use `by`.
    fn if_boxed(&mut self, r: Reg, by: Reg, l: Label);
    /// Jumps unless `r` is a cons cell; may use `by`.
    fn if_not_cons(&mut self, r: Reg, by: Reg, l: Label);
    /// Jumps if `r` is an immediate, or if not; may use `by`.
    fn if_immediate(&mut self, r: Reg, by: Reg, is: bool, l: Label);
    /// Jumps if the comparison of the lower 32 bits of `r & mask` with a word, both below 2^12,
    /// has that result. May use `by`.
    fn if_masked(&mut self, c: Cond, r: Reg, mask: u32, value: u32, by: Reg, l: Label);

    // Comparisons: a jump if the result is as the condition says.

    /// Compares `a` with `b`.
    fn if_r(&mut self, c: Cond, w: Width, a: Reg, b: Reg, l: Label);
    /// Compares `a` with `b`, which then takes back what was saved last.
    fn if_r_restoring(&mut self, c: Cond, a: Reg, b: Reg, l: Label);
    /// Compares `r` with a number, sign-extended.
    fn if_i(&mut self, c: Cond, w: Width, r: Reg, value: i32, l: Label);
    /// Compares `r` with a word; may use [`B`].
    fn if_word(&mut self, c: Cond, r: Reg, word: u64, l: Label);
    /// Compares `r` with `[m]`.
    fn if_m(&mut self, c: Cond, r: Reg, m: Mem, l: Label);
    /// Compares `[m]` with a number, sign-extended.
    fn if_mi(&mut self, c: Cond, m: Mem, value: i32, l: Label);
    /// The same with a count that other threads change: what a thread did before it stored the
    /// number is seen by what follows.
    fn if_count(&mut self, c: Cond, m: Mem, value: i32, l: Label);
    /// Compares `[m]` with a word, where only equality and order without signs count; may use
    /// [`B`].
    fn if_mem_word(&mut self, c: Cond, m: Mem, word: u64, l: Label);
    /// Compares the byte at `m` with a number: equality.
    fn if_byte(&mut self, c: Cond, m: Mem, value: u8, l: Label);
    /// Compares `r` with 0: equality and sign.
    fn if_zero(&mut self, c: Cond, w: Width, r: Reg, l: Label);
    /// Compares `r & mask` with 0: equality.
    fn if_bits(&mut self, c: Cond, r: Reg, mask: u8, l: Label);
    /// The same with a mask of adjacent bits from the lowest on.
    fn if_bits32(&mut self, c: Cond, r: Reg, mask: u32, l: Label);
    /// Jumps if a bit of `r` is 0, whose number is in `n`, below 32.
    fn if_no_bit(&mut self, r: Reg, n: Reg, l: Label);
    /// Compares operands; may use [`B`].
    fn if_operands(&mut self, c: Cond, o: Operands, l: Label) {
        match o {
            Operands::Regs(a, b) => self.if_r(c, Width::Q, a, b, l),
            Operands::Word(a, w) => self.if_word(c, a, w, l),
        }
    }

    // Choices.

    /// `d = s` if the comparison of the operands has that result; may use [`B`] if it compares with
    /// a word of more than 32 bits.
    fn select(&mut self, c: Cond, o: Operands, d: Reg, s: Reg);
    /// [`R`] = `t` if the comparison has that result, otherwise `f`; uses [`B`].
    fn choose(&mut self, c: Cond, o: Operands, t: u64, f: u64);

    // Control flow.

    /// The entry of a function: counts the call, and goes to the label if the time slice ends.
    fn enter_function(&mut self, used_up: Label);
    /// Calls the function that is being made.
    fn call_self(&mut self);
    /// A tail call of the function that is being made; the labels are those of
    /// [`enter_function`](Machine::enter_function).
    fn jump_self(&mut self, used_up: Label);
    /// Jumps to the label.
    fn jmp(&mut self, l: Label);
    /// Calls a function: the code in `r`.
    fn call_code(&mut self, r: Reg);
    /// A tail call of a function.
    fn jump_code(&mut self, r: Reg);
    /// Returns from the function.
    fn ret(&mut self);
    /// Calls a stub, or a function by a stub.
    fn call_stub(&mut self, to: u64);
    /// A tail call of a function by a stub.
    fn tail_stub(&mut self, to: u64);
    /// Goes to a stub that does not return here.
    fn leave_to(&mut self, to: u64);
    /// Drops the machine's stack, whose base the context has at that offset, and goes to a stub.
    fn drop_stack(&mut self, base: i32, to: u64);
    /// Jumps if the stub of chaos mode says so.
    fn if_chance(&mut self, stub: u64, l: Label);
    /// Jumps to the place in the table whose number is in [`R`]; uses [`B`].
    fn jump_by_table(&mut self, table: Label);
    /// An entry of a table: aligned to 8 bytes, one behind the other.
    fn table_entry(&mut self, l: Label);

    // Within stubs.

    /// Returns from a stub.
    fn stub_ret(&mut self);
    /// Calls another stub from a stub that returns.
    fn call_from_stub(&mut self, l: Label);
    /// Goes on in the function whose code is in `r`, which returns to the caller of the stub.
    fn jump_from_stub(&mut self, r: Reg);

    // Doubles.

    /// `d = [m]`
    fn load_float(&mut self, d: Vector, m: Mem);
    /// `[m] = s`
    fn store_float(&mut self, m: Mem, s: Vector);
    /// `d = s`
    fn mov_float(&mut self, d: Vector, s: Vector);
    /// `d = d op s`
    fn float(&mut self, op: Float, d: Vector, s: Vector);
    /// `d` = `s`, a signed integer, as a double.
    fn to_float(&mut self, d: Vector, s: Reg);
    /// Jumps if a double is infinite or not a number; uses `by`.
    fn if_not_finite(&mut self, v: Vector, by: Reg, l: Label);
    /// Jumps if `a` is greater than `b`; if either is not a number, it is not.
    fn if_float_above(&mut self, a: Vector, b: Vector, l: Label);
}
