//! aarch64.
//!
//! ```text
//! x19  context                     x25 to x28, x13, x14  X0 to X5
//! x20  top of the Erlang stack     x12 x9 x10 x23        R, A, B, K
//! x21  top of the heap             x11 x15               T, U
//! x22  reductions                  x16 x17               temporaries of one operation
//! x24  15, the tag of integers     x0 to x8              arguments of C
//! d0 to d3  scratch                x18 x29               not used: the system's, frames of C
//! d8 to d15 float registers
//! ```
//! A function of C keeps x19 to x29 and d8 to d15.
//!
//! A function pushes the return address when it is entered, and pops it before it returns or makes
//! a tail call. So its code may call stubs anywhere, and its return points and exception handlers
//! find the address at the top of the machine's stack.

use super::*;
use crate::asm::a64::{self, Asm, Index, Logic, SP, Size, Sum, Vec64, ZR, logic_fits, sum_fits};
use purlin_term::word::{SMALL_SHIFT, TAG_LIST, TAG_MASK, TAG_SMALL, TAG4_MASK};
use std::cell::Cell;

/// Code for aarch64 under construction.
pub struct A64 {
    a: Asm,
    /// Whether any place is within 32 KiB of any other.
    near: bool,
    /// Where a move ends, its destination and its source: the operation behind it takes its first
    /// operand from there. Forgotten where the place is asked for, which may then be a target.
    moved: Cell<Option<(u32, a64::Reg, a64::Reg)>>,
    /// Where an operation ends, and the register it writes: its result goes elsewhere at once.
    made: Cell<Option<(u32, a64::Reg)>>,
    /// The access to memory that ends the code: one to the word next to it joins it.
    access: Cell<Option<Access>>,
    /// Where a store ends behind which `V` has that word.
    held: Cell<Option<(u32, u64)>>,
}

/// A load or a store of 64 bits with a displacement.
#[derive(Clone, Copy)]
struct Access {
    end: u32,
    is_load: bool,
    of: a64::Reg,
    base: a64::Reg,
    disp: i64,
    /// By how much the base was changed before.
    moves: Option<i64>,
}

/// The register of each role.
const OF: [a64::Reg; ROLES] = [
    a64::Reg(25),
    a64::Reg(26),
    a64::Reg(27),
    a64::Reg(28),
    a64::Reg(13),
    a64::Reg(14),
    a64::Reg(19),
    a64::Reg(20),
    a64::Reg(21),
    a64::Reg(22),
    a64::Reg(12),
    a64::Reg(9),
    a64::Reg(10),
    a64::Reg(23),
    a64::Reg(11),
    a64::Reg(15),
];
/// Temporaries: values that are compared or stored, and addresses.
const V: a64::Reg = a64::Reg(16);
const P: a64::Reg = a64::Reg(17);
/// Always [`TAG4_MASK`]: the bits that it has and a term lacks tell whether that is a small
/// integer, in one instruction. The stub that enters machine code sets it, and C keeps it.
pub(crate) const SMALL_TAG: a64::Reg = a64::Reg(24);

/// Returns the register of a role.
pub(crate) fn r(r: Reg) -> a64::Reg {
    OF[r.role()]
}
/// Returns the register of a vector: the scratch ones, then those that C keeps.
fn v(v: Vector) -> Vec64 {
    Vec64(if v.0 < 4 { v.0 } else { v.0 + 4 })
}
fn w(w: Width) -> a64::Width {
    match w {
        Width::D => a64::Width::W,
        Width::Q => a64::Width::X,
    }
}
fn c(c: Cond) -> a64::Cond {
    match c {
        Cond::E => a64::Cond::Eq,
        Cond::Ne => a64::Cond::Ne,
        Cond::B => a64::Cond::Lo,
        Cond::Ae => a64::Cond::Hs,
        Cond::Be => a64::Cond::Ls,
        Cond::A => a64::Cond::Hi,
        Cond::L => a64::Cond::Lt,
        Cond::Ge => a64::Cond::Ge,
        Cond::Le => a64::Cond::Le,
        Cond::G => a64::Cond::Gt,
        Cond::S => a64::Cond::Mi,
        Cond::Ns => a64::Cond::Pl,
    }
}
fn s(op: Shift) -> a64::Shift {
    match op {
        Shift::Shl => a64::Shift::Lsl,
        Shift::Shr => a64::Shift::Lsr,
        Shift::Sar => a64::Shift::Asr,
    }
}
const X: a64::Width = a64::Width::X;
const W: a64::Width = a64::Width::W;

/// Returns a number as an operand of that width.
fn extended(width: Width, value: i32) -> u64 {
    match width {
        Width::D => u64::from(value as u32),
        Width::Q => value as u64,
    }
}

impl A64 {
    /// Returns the first operand of an operation whose result goes to `d`, and which reads `d` as
    /// nothing else: what was moved there just now.
    fn source(&mut self, d: a64::Reg) -> a64::Reg {
        match self.moved.take() {
            Some((end, to, from)) if end == self.a.here() && to == d => {
                self.a.take_back();
                from
            }
            _ => d,
        }
    }
    /// The place is one that others may know.
    fn fixed(&self) {
        self.moved.set(None);
        self.made.set(None);
        self.access.set(None);
        self.held.set(None);
    }
    /// Notes that the last instruction makes the value of `d`.
    fn made(&mut self, d: a64::Reg) {
        self.made.set(Some((self.a.here(), d)));
    }
    /// Returns the assembler, for stubs.
    pub(crate) fn assembler(&mut self) -> &mut Asm {
        self.fixed();
        &mut self.a
    }
    /// Returns base and displacement of a memory operand for an access of that size; uses `P`.
    fn place(&mut self, size: Size, m: Mem) -> (a64::Reg, i64) {
        let mut base = r(m.base);
        if let Some((i, scale)) = m.index {
            let by = scale.trailing_zeros();
            self.a
                .sum_shifted(X, Sum::Add, P, base, r(i), (a64::Shift::Lsl, by));
            base = P;
        }
        let disp = i64::from(m.disp);
        if Asm::displacement_fits(size, disp) {
            return (base, disp);
        }
        // The access has room for the rest.
        let (far, rest) = (disp & !0xFFF, disp & 0xFFF);
        if (1..1 << 24).contains(&far) && Asm::displacement_fits(size, rest) {
            self.a.sum_i(X, Sum::Add, P, base, far as u64);
            return (P, rest);
        }
        self.add(P, base, disp);
        (P, 0)
    }
    /// `d = n + disp`; uses `P`, which may be either.
    fn add(&mut self, d: a64::Reg, n: a64::Reg, disp: i64) {
        let (op, by) = match disp {
            0.. => (Sum::Add, disp as u64),
            _ => (Sum::Sub, disp.unsigned_abs()),
        };
        if by == 0 {
            self.a.mov(d, n);
        } else if sum_fits(by) {
            self.a.sum_i(X, op, d, n, by);
        } else if by < 1 << 24 {
            self.a.sum_i(X, op, d, n, by & !0xFFF);
            self.a.sum_i(X, op, d, d, by & 0xFFF);
        } else {
            self.a.mov_i(V, by);
            self.a.sum(X, op, d, n, V);
        }
    }
    /// `t = [base + disp]`, or a store. Joins the access before it to the word next to it. Returns
    /// whether it has.
    fn access(&mut self, is_load: bool, t: a64::Reg, base: a64::Reg, disp: i64) -> bool {
        let end = self.a.here();
        let before = self.access.take().filter(|b| {
            let same = b.end == end && b.is_load == is_load && b.base == base;
            // The first load must leave the base, and a pair has two registers.
            same && !(is_load && (b.of == base || b.of == t))
        });
        if let Some(b) = before {
            let pair = match disp - b.disp {
                8 => Some((b.of, t, b.moves.unwrap_or(b.disp))),
                -8 if b.moves.is_none() => Some((t, b.of, disp)),
                _ => None,
            };
            let index = if b.moves.is_some() {
                Index::Pre
            } else {
                Index::Offset
            };
            if let Some((t, u, at)) = pair.filter(|p| Asm::pair_fits(p.2)) {
                self.a.take_back();
                match is_load {
                    true => self.a.load_pair(t, u, base, at, index),
                    false => self.a.store_pair(t, u, base, at, index),
                }
                self.made.set(None);
                return true;
            }
        }
        match is_load {
            true => self.a.load(Size::X, t, base, disp),
            false => self.a.store(Size::X, t, base, disp),
        }
        self.accessed(is_load, t, base, disp, None);
        false
    }
    fn accessed(&self, is_load: bool, of: a64::Reg, base: a64::Reg, disp: i64, moves: Option<i64>) {
        self.access.set(Some(Access {
            end: self.a.here(),
            is_load,
            of,
            base,
            disp,
            moves,
        }));
    }
    fn load_sized(&mut self, size: Size, d: a64::Reg, m: Mem) {
        match m.index {
            Some((i, scale)) if m.disp == 0 && (scale == 1 || scale == 1 << size as u8) => {
                self.a.load_r(size, d, r(m.base), r(i), scale > 1);
            }
            _ => {
                let (base, disp) = self.place(size, m);
                match size {
                    Size::X if self.access(true, d, base, disp) => return,
                    Size::X => {}
                    _ => self.a.load(size, d, base, disp),
                }
            }
        }
        self.made(d);
    }
    fn store_sized(&mut self, size: Size, m: Mem, t: a64::Reg) {
        match m.index {
            Some((i, scale)) if m.disp == 0 && (scale == 1 || scale == 1 << size as u8) => {
                self.a.store_r(size, t, r(m.base), r(i), scale > 1);
            }
            _ => {
                let (base, disp) = self.place(size, m);
                match size {
                    Size::X => _ = self.access(false, t, base, disp),
                    _ => self.a.store(size, t, base, disp),
                }
            }
        }
    }
    /// Returns a register with a word: zero, or `V`.
    fn value(&mut self, value: u64) -> a64::Reg {
        if value == 0 {
            return ZR;
        }
        if self.held.get() != Some((self.a.here(), value)) {
            self.a.mov_i(V, value);
        }
        V
    }
    /// Compares a register with a word; uses `V`.
    fn cmp_word(&mut self, width: a64::Width, n: a64::Reg, word: u64) {
        let minus = match width {
            a64::Width::W => u64::from((word as u32).wrapping_neg()),
            a64::Width::X => word.wrapping_neg(),
        };
        if sum_fits(word) {
            self.a.cmp_i(width, n, word);
        } else if sum_fits(minus) {
            self.a.cmn_i(width, n, minus);
        } else {
            self.a.mov_i(V, word);
            self.a.cmp(width, n, V);
        }
    }
    fn cmp(&mut self, o: Operands) {
        match o {
            Operands::Regs(x, y) => self.a.cmp(X, r(x), r(y)),
            Operands::Word(x, word) => self.cmp_word(X, r(x), word),
        }
    }
    fn jcc(&mut self, cond: Cond, l: Label) {
        self.a.b_cond(c(cond), l);
    }
    /// Jumps if a bit is set, or if it is not.
    fn if_bit(&mut self, n: a64::Reg, bit: u32, set: bool, l: Label) {
        match (self.near, set) {
            (true, true) => self.a.tbnz(n, bit, l),
            (true, false) => self.a.tbz(n, bit, l),
            (false, _) => {
                self.a.test_i(X, n, 1 << bit);
                self.a
                    .b_cond(if set { a64::Cond::Ne } else { a64::Cond::Eq }, l);
            }
        }
    }
    fn logic(op: Alu) -> Logic {
        match op {
            Alu::And => Logic::And,
            Alu::Or => Logic::Orr,
            _ => Logic::Eor,
        }
    }
    /// Returns two immediates of which a mask is made, if there are such: one has the ones up to
    /// the highest one of the mask.
    fn two_masks(width: Width, mask: u64) -> Option<(u64, u64)> {
        let all = extended(width, -1);
        let low = u64::MAX.checked_shr(mask.leading_zeros())?;
        let rest = (mask | !low) & all;
        (logic_fits(w(width), rest).is_some() && logic_fits(w(width), low).is_some())
            .then_some((rest, low))
    }
    fn overflows(&mut self, overflow: Option<Label>) {
        if let Some(l) = overflow {
            self.a.b_cond(a64::Cond::Vs, l);
        }
    }
    /// `d = n op m`, a sum or a difference.
    fn sum(&mut self, op: Alu, d: a64::Reg, n: a64::Reg, m: a64::Reg, overflow: Option<Label>) {
        let op = match (op, overflow.is_some()) {
            (Alu::Add, false) => Sum::Add,
            (Alu::Add, true) => Sum::Adds,
            (_, false) => Sum::Sub,
            (_, true) => Sum::Subs,
        };
        self.a.sum(X, op, d, n, m);
        self.made(d);
        self.overflows(overflow);
    }
    /// Pushes the return address.
    fn push_return(&mut self) {
        self.a.store_indexed(a64::LR, SP, -16, Index::Pre);
    }
    /// Pops the return address.
    fn pop_return(&mut self) {
        self.a.load_indexed(a64::LR, SP, 16, Index::Post);
    }
}

impl Machine for A64 {
    /// The count, the jump if it is used up, and the push of the return address: code that enters
    /// behind them has pushed one.
    const INNER: u32 = 12;
    const THREE_OPERANDS: bool = true;
    fn counts_bits() -> bool {
        true
    }

    fn begin(bytes: usize, near: bool) -> A64 {
        A64 {
            a: Asm::with_capacity(bytes),
            near,
            moved: Cell::default(),
            made: Cell::default(),
            access: Cell::default(),
            held: Cell::default(),
        }
    }
    fn here(&self) -> u32 {
        self.fixed();
        self.a.here()
    }
    fn label(&mut self) -> Label {
        self.a.label()
    }
    fn bind(&mut self, l: Label) {
        self.fixed();
        self.a.bind(l);
    }
    fn offset(&self, l: Label) -> Option<u32> {
        self.a.offset(l)
    }
    fn finish(self) -> Option<Code> {
        self.a.finish()
    }
    fn align(&mut self, n: u32) {
        self.a.align(n);
    }
    fn trap(&mut self) {
        self.a.udf();
    }

    fn mov(&mut self, d: Reg, s: Reg) {
        let (d, s) = (r(d), r(s));
        if d != s {
            self.a.mov(d, s);
            self.moved.set(Some((self.a.here(), d, s)));
        }
    }
    fn mov_result(&mut self, d: Reg, s: Reg) {
        match self.made.take() {
            Some((end, made)) if end == self.a.here() && made == r(s) => {
                self.a.write_to(r(d));
                self.access.set(None);
            }
            _ => self.mov(d, s),
        }
    }
    fn mov32(&mut self, d: Reg, s: Reg) {
        self.a.mov32(r(d), r(s));
    }
    fn mov_i(&mut self, d: Reg, value: u64) {
        // Addresses of bytecode that follow each other differ little.
        if let Some((end, near)) = self.held.get()
            && end == self.a.here()
        {
            let (up, down) = (value.wrapping_sub(near), near.wrapping_sub(value));
            if sum_fits(up) {
                return self.a.sum_i(X, Sum::Add, r(d), V, up);
            }
            if sum_fits(down) {
                return self.a.sum_i(X, Sum::Sub, r(d), V, down);
            }
        }
        self.a.mov_i(r(d), value);
    }
    fn zero(&mut self, d: Reg) {
        self.a.mov_i(r(d), 0);
    }
    fn load(&mut self, d: Reg, m: Mem) {
        self.load_sized(Size::X, r(d), m);
    }
    fn load32(&mut self, d: Reg, m: Mem) {
        self.load_sized(Size::W, r(d), m);
    }
    fn load16(&mut self, d: Reg, m: Mem) {
        self.load_sized(Size::H, r(d), m);
    }
    fn load8(&mut self, d: Reg, m: Mem) {
        self.load_sized(Size::B, r(d), m);
    }
    fn store(&mut self, m: Mem, s: Reg) {
        self.store_sized(Size::X, m, r(s));
    }
    fn store8(&mut self, m: Mem, s: Reg) {
        self.store_sized(Size::B, m, r(s));
    }
    fn store_i(&mut self, m: Mem, value: i32) {
        self.store_value(Size::X, m, value as u64);
    }
    fn store8_i(&mut self, m: Mem, value: u8) {
        self.store_value(Size::B, m, u64::from(value));
    }
    fn store_word(&mut self, m: Mem, value: u64, _by: Reg) {
        self.store_value(Size::X, m, value);
    }
    fn lea(&mut self, d: Reg, m: Mem) {
        self.lea_to(r(d), m);
    }
    fn move_stack(&mut self, bytes: i32) {
        if !(-256..256).contains(&bytes) {
            self.alu_i(Width::Q, Alu::Add, E, bytes);
            return self.store_i(at(E, 0), 0);
        }
        self.a.store_indexed(ZR, r(E), bytes.into(), Index::Pre);
        self.accessed(false, ZR, r(E), 0, Some(bytes.into()));
    }
    fn save(&mut self, reg: Reg) {
        self.a.store_indexed(r(reg), SP, -16, Index::Pre);
    }
    fn restore(&mut self, reg: Reg) {
        self.a.load_indexed(r(reg), SP, 16, Index::Post);
    }
    fn saved(&mut self, d: Reg) {
        self.a.load(Size::X, r(d), SP, 0);
    }
    fn or_saved(&mut self, s: Reg) {
        self.a.load(Size::X, V, SP, 0);
        self.a.logic(X, Logic::Orr, V, V, r(s));
        self.a.store(Size::X, V, SP, 0);
    }
    // T and U are registers of their own.
    fn spare(&mut self) {}
    fn unspare(&mut self) {}

    fn alu(&mut self, width: Width, op: Alu, d: Reg, s: Reg) {
        let (d, m) = (r(d), r(s));
        let n = if d == m { d } else { self.source(d) };
        match op {
            Alu::Add => self.a.sum(w(width), Sum::Add, d, n, m),
            Alu::Sub => self.a.sum(w(width), Sum::Sub, d, n, m),
            _ => self.a.logic(w(width), Self::logic(op), d, n, m),
        }
        self.made(d);
    }
    fn alu_i(&mut self, width: Width, op: Alu, d: Reg, value: i32) {
        let (d, by) = (r(d), extended(width, value));
        let n = self.source(d);
        match op {
            Alu::Add | Alu::Sub => {
                let adds = (op == Alu::Add) == (value >= 0);
                let op = if adds { Sum::Add } else { Sum::Sub };
                let by = u64::from(value.unsigned_abs());
                if sum_fits(by) {
                    self.a.sum_i(w(width), op, d, n, by);
                } else {
                    self.a.mov_i(V, by);
                    self.a.sum(w(width), op, d, n, V);
                }
            }
            _ if logic_fits(w(width), by).is_some() => {
                self.a.logic_i(w(width), Self::logic(op), d, n, by);
            }
            _ => match Self::two_masks(width, by).filter(|_| op == Alu::And) {
                Some((one, other)) => {
                    self.a.logic_i(w(width), Logic::And, d, n, one);
                    self.a.logic_i(w(width), Logic::And, d, d, other);
                }
                None => {
                    let by = self.value(by);
                    self.a.logic(w(width), Self::logic(op), d, n, by);
                }
            },
        }
        self.made(d);
    }
    fn alu_m(&mut self, op: Alu, d: Reg, m: Mem) {
        self.load_sized(Size::X, V, m);
        self.sum(op, r(d), r(d), V, None);
    }
    fn inc(&mut self, d: Reg) {
        self.a.sum_i(X, Sum::Add, r(d), r(d), 1);
    }
    fn dec(&mut self, d: Reg) {
        self.a.sum_i(X, Sum::Sub, r(d), r(d), 1);
    }
    fn shift_i(&mut self, width: Width, op: Shift, d: Reg, n: u8) {
        let d = r(d);
        let from = self.source(d);
        self.a.shift_i(w(width), s(op), d, from, n.into());
        self.made(d);
    }
    fn shift_by_r(&mut self, width: Width, op: Shift, d: Reg) {
        self.a.shift(w(width), s(op), r(d), r(d), r(R));
    }
    fn mul(&mut self, d: Reg, s: Reg) {
        self.a.mul(X, r(d), r(d), r(s));
    }
    fn bswap(&mut self, width: Width, d: Reg) {
        self.a.rev(w(width), r(d), r(d));
    }
    fn popcount(&mut self, d: Reg) {
        let by = Vec64(0);
        self.a.fmov_to(by, r(d));
        self.a.cnt(by, by);
        self.a.addv(by, by);
        self.a.fmov_from(r(d), by);
    }
    fn bits_below(&mut self, d: Reg, n: Reg) {
        self.a.mov_i(V, u64::MAX);
        self.a.shift(X, a64::Shift::Lsl, V, V, r(n));
        self.a.logic(X, Logic::Bic, r(d), r(d), V);
    }

    fn sum_or(&mut self, op: Alu, d: Reg, s: Reg, overflow: Option<Label>) {
        let (d, m) = (r(d), r(s));
        let n = if d == m { d } else { self.source(d) };
        self.sum(op, d, n, m, overflow);
    }
    fn sum_i_or(&mut self, op: Alu, d: Reg, value: u64, overflow: Option<Label>) {
        let plus = (value as i64) >= 0;
        let by = (value as i64).unsigned_abs();
        let d = r(d);
        let n = self.source(d);
        if !sum_fits(by) {
            self.a.mov_i(V, value);
            return self.sum(op, d, n, V, overflow);
        }
        let op = match ((op == Alu::Add) == plus, overflow.is_some()) {
            (true, false) => Sum::Add,
            (true, true) => Sum::Adds,
            (false, false) => Sum::Sub,
            (false, true) => Sum::Subs,
        };
        self.a.sum_i(X, op, d, n, by);
        self.made(d);
        self.overflows(overflow);
    }
    fn add_m_or(&mut self, d: Reg, m: Mem, overflow: Label) {
        self.load_sized(Size::X, V, m);
        self.sum(Alu::Add, r(d), r(d), V, Some(overflow));
    }
    fn mul_or(&mut self, d: Reg, s: Reg, overflow: Option<Label>) {
        self.product(r(d), r(s), overflow);
    }
    fn mul_i_or(&mut self, d: Reg, value: i32, overflow: Option<Label>) {
        self.a.mov_i(V, value as u64);
        self.product(r(d), V, overflow);
    }
    fn sub_i_or_below(&mut self, d: Reg, value: i32, l: Label) {
        let d = r(d);
        let n = value as u64;
        if sum_fits(n) {
            self.a.sum_i(X, Sum::Subs, d, d, n);
        } else {
            self.a.mov_i(V, n);
            self.a.sum(X, Sum::Subs, d, d, V);
        }
        self.a.b_cond(a64::Cond::Lo, l);
    }
    fn untag_or(&mut self, d: Reg, cond: Cond, l: Label) {
        self.untag(d, d);
        self.if_zero(cond, Width::Q, d, l);
    }
    fn dec_if(&mut self, cond: Cond, d: Reg, l: Label) {
        self.a.sum_i(X, Sum::Subs, r(d), r(d), 1);
        self.jcc(cond, l);
    }
    fn divide(&mut self, quotient: bool) {
        let (by, d) = (r(B), r(R));
        let from = self.source(by);
        self.a
            .shift_i(X, a64::Shift::Asr, by, from, SMALL_SHIFT as u32);
        if quotient {
            return self.a.sdiv(X, d, by, d);
        }
        self.a.sdiv(X, V, by, d);
        self.a.msub(X, d, V, d, by);
    }

    fn untag(&mut self, d: Reg, s: Reg) {
        self.a
            .shift_i(X, a64::Shift::Asr, r(d), r(s), SMALL_SHIFT as u32);
    }
    fn tag(&mut self, width: Width, d: Reg) {
        let d = r(d);
        self.a
            .shift_i(w(width), a64::Shift::Lsl, d, d, SMALL_SHIFT as u32);
        self.a.logic_i(w(width), Logic::Orr, d, d, TAG_SMALL);
        self.made(d);
    }
    fn if_not_small(&mut self, reg: Reg, _by: Reg, l: Label) {
        self.small(r(reg));
        self.jcc(Cond::Ne, l);
    }
    fn if_small(&mut self, reg: Reg, _by: Reg, l: Label) {
        self.small(r(reg));
        self.jcc(Cond::E, l);
    }
    fn if_not_both_small(&mut self, a: Reg, b: Reg, l: Label) {
        self.a.logic(X, Logic::And, V, r(a), r(b));
        self.small(V);
        self.jcc(Cond::Ne, l);
    }
    fn if_both_immediate(&mut self, a: Reg, b: Reg, l: Label) {
        self.a.logic(X, Logic::And, V, r(a), r(b));
        self.both_bits(V);
        self.if_bit(V, 0, true, l);
    }
    // A term has the tag of a list, of a boxed term, or both bits: one bit tells.
    fn if_not_boxed(&mut self, reg: Reg, _by: Reg, l: Label) {
        const { assert!(TAG_BOXED == 2 && TAG_LIST == 1 && TAG_MASK == 3) }
        self.if_bit(r(reg), 0, true, l);
    }
    fn if_boxed(&mut self, reg: Reg, _by: Reg, l: Label) {
        self.if_bit(r(reg), 0, false, l);
    }
    fn if_not_cons(&mut self, reg: Reg, _by: Reg, l: Label) {
        self.if_bit(r(reg), 1, true, l);
    }
    fn if_immediate(&mut self, reg: Reg, _by: Reg, is: bool, l: Label) {
        self.both_bits(r(reg));
        self.if_bit(V, 0, is, l);
    }
    fn if_masked(&mut self, cond: Cond, reg: Reg, mask: u32, value: u32, _by: Reg, l: Label) {
        let n = u64::from(mask);
        match logic_fits(W, n) {
            Some(_) => self.a.logic_i(W, Logic::And, V, r(reg), n),
            None => {
                self.a.mov_i(V, n);
                self.a.logic(W, Logic::And, V, V, r(reg));
            }
        }
        self.a.cmp_i(W, V, value.into());
        self.jcc(cond, l);
    }

    fn if_r(&mut self, cond: Cond, width: Width, a: Reg, b: Reg, l: Label) {
        self.a.cmp(w(width), r(a), r(b));
        self.jcc(cond, l);
    }
    fn if_r_restoring(&mut self, cond: Cond, a: Reg, b: Reg, l: Label) {
        self.a.cmp(X, r(a), r(b));
        self.restore(b);
        self.jcc(cond, l);
    }
    fn if_i(&mut self, cond: Cond, width: Width, reg: Reg, value: i32, l: Label) {
        self.if_value(cond, width, r(reg), extended(width, value), l);
    }
    fn if_word(&mut self, cond: Cond, reg: Reg, word: u64, l: Label) {
        self.if_value(cond, Width::Q, r(reg), word, l);
    }
    fn if_m(&mut self, cond: Cond, reg: Reg, m: Mem, l: Label) {
        self.load_sized(Size::X, V, m);
        self.a.cmp(X, r(reg), V);
        self.jcc(cond, l);
    }
    fn if_mi(&mut self, cond: Cond, m: Mem, value: i32, l: Label) {
        self.if_mem_word(cond, m, value as u64, l);
    }
    fn if_count(&mut self, cond: Cond, m: Mem, value: i32, l: Label) {
        self.lea_to(P, m);
        self.a.load_acquire(P, P);
        self.if_value(cond, Width::Q, P, value as u64, l);
    }
    fn if_mem_word(&mut self, cond: Cond, m: Mem, word: u64, l: Label) {
        // The address is not needed any more when the word is made.
        self.load_sized(Size::X, P, m);
        self.if_value(cond, Width::Q, P, word, l);
    }
    fn if_byte(&mut self, cond: Cond, m: Mem, value: u8, l: Label) {
        self.load_sized(Size::B, V, m);
        self.if_value(cond, Width::D, V, value.into(), l);
    }
    fn if_zero(&mut self, cond: Cond, width: Width, reg: Reg, l: Label) {
        let n = r(reg);
        match cond {
            Cond::E => self.a.cbz(w(width), n, l),
            Cond::Ne => self.a.cbnz(w(width), n, l),
            _ => {
                self.a.cmp_i(w(width), n, 0);
                self.jcc(cond, l);
            }
        }
    }
    fn if_bits(&mut self, cond: Cond, reg: Reg, mask: u8, l: Label) {
        self.if_bits32(cond, reg, mask.into(), l);
    }
    fn if_bits32(&mut self, cond: Cond, reg: Reg, mask: u32, l: Label) {
        let n = r(reg);
        if mask.is_power_of_two() {
            return self.if_bit(n, mask.trailing_zeros(), cond == Cond::Ne, l);
        }
        match logic_fits(W, mask.into()) {
            Some(_) => self.a.test_i(W, n, mask.into()),
            None => {
                let by = self.value(mask.into());
                self.a.logic(W, Logic::Ands, ZR, n, by);
            }
        }
        self.jcc(cond, l);
    }
    fn if_no_bit(&mut self, reg: Reg, n: Reg, l: Label) {
        self.a.shift(W, a64::Shift::Lsr, V, r(reg), r(n));
        self.if_bit(V, 0, false, l);
    }

    fn select(&mut self, cond: Cond, o: Operands, d: Reg, s: Reg) {
        self.cmp(o);
        self.a.csel(X, r(d), r(s), r(d), c(cond));
    }
    fn choose(&mut self, cond: Cond, o: Operands, t: u64, f: u64) {
        self.cmp(o);
        self.a.mov_i(V, f);
        self.a.mov_i(r(R), t);
        self.a.csel(X, r(R), r(R), V, c(cond));
    }

    fn enter_function(&mut self, used_up: Label) {
        self.a.sum_i(X, Sum::Subs, r(REDS), r(REDS), 1);
        self.a.b_cond(a64::Cond::Le, used_up);
        self.push_return();
    }
    fn call_self(&mut self) {
        let start = self.a.label_at(0);
        self.a.bl(start);
    }
    fn jump_self(&mut self, used_up: Label) {
        // The return address stays where it is: who leaves drops it.
        self.a.sum_i(X, Sum::Subs, r(REDS), r(REDS), 1);
        self.a.b_cond(a64::Cond::Le, used_up);
        let inner = self.a.label_at(Self::INNER);
        self.a.b(inner);
    }
    fn jmp(&mut self, l: Label) {
        self.a.b(l);
    }
    fn call_code(&mut self, reg: Reg) {
        self.a.blr(r(reg));
    }
    fn jump_code(&mut self, reg: Reg) {
        self.pop_return();
        self.a.br(r(reg));
    }
    fn ret(&mut self) {
        self.pop_return();
        self.a.ret();
    }
    fn call_stub(&mut self, to: u64) {
        self.a.bl_abs(to);
    }
    fn tail_stub(&mut self, to: u64) {
        self.pop_return();
        self.a.b_abs(to);
    }
    fn leave_to(&mut self, to: u64) {
        self.a.b_abs(to);
    }
    fn drop_stack(&mut self, base: i32, to: u64) {
        self.load_sized(Size::X, V, at(CX, base));
        self.a.mov_sp(SP, V);
        self.a.b_abs(to);
    }
    fn if_chance(&mut self, stub: u64, l: Label) {
        self.a.bl_abs(stub);
        self.a.b_cond(a64::Cond::Eq, l);
    }
    fn jump_by_table(&mut self, table: Label) {
        self.a.adr(P, table);
        self.a.load_r(Size::X, P, P, r(R), true);
        self.a.br(P);
    }
    fn table_entry(&mut self, l: Label) {
        self.a.address_of(l);
    }

    fn stub_ret(&mut self) {
        self.a.ret();
    }
    fn call_from_stub(&mut self, l: Label) {
        self.push_return();
        self.a.bl(l);
        self.pop_return();
    }
    fn jump_from_stub(&mut self, reg: Reg) {
        self.a.br(r(reg));
    }

    fn load_float(&mut self, d: Vector, m: Mem) {
        let (base, disp) = self.place(Size::X, m);
        self.a.load_d(v(d), base, disp);
    }
    fn store_float(&mut self, m: Mem, s: Vector) {
        let (base, disp) = self.place(Size::X, m);
        self.a.store_d(v(s), base, disp);
    }
    fn mov_float(&mut self, d: Vector, s: Vector) {
        self.a.fmov(v(d), v(s));
    }
    fn float(&mut self, op: Float, d: Vector, s: Vector) {
        let op = match op {
            Float::Add => a64::Float::Add,
            Float::Sub => a64::Float::Sub,
            Float::Mul => a64::Float::Mul,
            Float::Div => a64::Float::Div,
        };
        self.a.float(op, v(d), v(d), v(s));
    }
    fn to_float(&mut self, d: Vector, s: Reg) {
        self.a.scvtf(v(d), r(s));
    }
    fn if_not_finite(&mut self, of: Vector, by: Reg, l: Label) {
        self.a.fmov_from(r(by), v(of));
        self.a.ubfx(X, r(by), r(by), 52, 11);
        self.a.cmp_i(W, r(by), 0x7FF);
        self.jcc(Cond::E, l);
    }
    fn if_float_above(&mut self, a: Vector, b: Vector, l: Label) {
        self.a.fcmp(v(a), v(b));
        // Not if either is not a number: `Hi` would hold then.
        self.a.b_cond(a64::Cond::Gt, l);
    }
}

impl A64 {
    /// `d` = address of `m`; uses `P` and `V`.
    fn lea_to(&mut self, d: a64::Reg, m: Mem) {
        let mut base = r(m.base);
        if let Some((i, scale)) = m.index {
            let by = scale.trailing_zeros();
            let to = if m.disp == 0 { d } else { P };
            self.a
                .sum_shifted(X, Sum::Add, to, base, r(i), (a64::Shift::Lsl, by));
            base = to;
        }
        self.add(d, base, m.disp.into());
    }
    fn store_value(&mut self, size: Size, m: Mem, value: u64) {
        // The address comes first: it may take both temporaries.
        let (base, disp) = match m.index {
            None if Asm::displacement_fits(size, m.disp.into()) => (r(m.base), m.disp.into()),
            _ => {
                self.lea_to(P, m);
                (P, 0)
            }
        };
        let t = self.value(value);
        match size {
            Size::X => _ = self.access(false, t, base, disp),
            _ => self.a.store(size, t, base, disp),
        }
        if t == V {
            self.held.set(Some((self.a.here(), value)));
        }
    }
    /// Compares the tag of `n` with that of small integers.
    fn small(&mut self, n: a64::Reg) {
        const { assert!(TAG_SMALL == TAG4_MASK) }
        self.a.logic(W, Logic::Bics, ZR, SMALL_TAG, n);
    }
    /// The lowest bit of `V` becomes 1 if the lowest two of `n` are.
    fn both_bits(&mut self, n: a64::Reg) {
        const { assert!(TAG_MASK == 3) }
        self.a
            .logic_shifted(W, Logic::And, V, n, n, (a64::Shift::Lsr, 1));
    }
    /// `d = d * m`; `m` may be `V`.
    fn product(&mut self, d: a64::Reg, m: a64::Reg, overflow: Option<Label>) {
        let Some(l) = overflow else {
            return self.a.mul(X, d, d, m);
        };
        // The upper half is but the sign of the lower one.
        self.a.smulh(P, d, m);
        self.a.mul(X, d, d, m);
        self.a
            .sum_shifted(X, Sum::Subs, ZR, P, d, (a64::Shift::Asr, 63));
        self.a.b_cond(a64::Cond::Ne, l);
    }
    fn if_value(&mut self, cond: Cond, width: Width, n: a64::Reg, value: u64, l: Label) {
        match (cond, value) {
            (Cond::E, 0) => self.a.cbz(w(width), n, l),
            (Cond::Ne, 0) => self.a.cbnz(w(width), n, l),
            _ => {
                self.cmp_word(w(width), n, value);
                self.jcc(cond, l);
            }
        }
    }
}
