//! x86-64.
//!
//! ```text
//! rbx  context                       rax rdx rsi rdi r8 r9   X0 to X5
//! r13  top of the Erlang stack (E)   rcx r10 r11 r12         R, A, B, K
//! r15  top of the heap (HP)          rax rdx                 T, U, saved meanwhile
//! r14  reductions                    rbp                     not used: profilers walk frames by it
//! ```
//! The first four are saved by any function that follows the C calling convention of the system
//! (System V). Return addresses are those of `call`, on the machine's stack.

use super::*;
use crate::asm::x64::{self, Asm};
use purlin_term::word::{SMALL_SHIFT, TAG_LIST, TAG_MASK, TAG_SMALL, TAG4_MASK};

/// Code for x86-64 under construction.
pub struct X64 {
    a: Asm,
}

impl X64 {
    /// Returns the assembler, for stubs.
    pub(crate) fn assembler(&mut self) -> &mut Asm {
        &mut self.a
    }
}

/// The register of each role.
const OF: [x64::Reg; ROLES] = [
    x64::RAX,
    x64::RDX,
    x64::RSI,
    x64::RDI,
    x64::R8,
    x64::R9,
    x64::RBX,
    x64::R13,
    x64::R15,
    x64::R14,
    x64::RCX,
    x64::R10,
    x64::R11,
    x64::R12,
    x64::RAX,
    x64::RDX,
];

/// Returns the register of a role.
pub(crate) const fn r(r: Reg) -> x64::Reg {
    OF[r.role()]
}
fn v(v: Vector) -> x64::Xmm {
    x64::Xmm(v.0)
}
fn m(m: Mem) -> x64::Mem {
    x64::Mem {
        base: Some(r(m.base)),
        index: m.index.map(|(i, scale)| (r(i), scale)),
        disp: m.disp,
    }
}
fn w(w: Width) -> x64::Width {
    match w {
        Width::D => x64::Width::D,
        Width::Q => x64::Width::Q,
    }
}
fn c(c: Cond) -> x64::Cond {
    match c {
        Cond::E => x64::Cond::E,
        Cond::Ne => x64::Cond::Ne,
        Cond::B => x64::Cond::B,
        Cond::Ae => x64::Cond::Ae,
        Cond::Be => x64::Cond::Be,
        Cond::A => x64::Cond::A,
        Cond::L => x64::Cond::L,
        Cond::Ge => x64::Cond::Ge,
        Cond::Le => x64::Cond::Le,
        Cond::G => x64::Cond::G,
        Cond::S => x64::Cond::S,
        Cond::Ns => x64::Cond::Ns,
    }
}
fn o(op: Alu) -> x64::Alu {
    match op {
        Alu::Add => x64::Alu::Add,
        Alu::Sub => x64::Alu::Sub,
        Alu::And => x64::Alu::And,
        Alu::Or => x64::Alu::Or,
        Alu::Xor => x64::Alu::Xor,
    }
}
fn s(op: Shift) -> x64::Shift {
    match op {
        Shift::Shl => x64::Shift::Shl,
        Shift::Shr => x64::Shift::Shr,
        Shift::Sar => x64::Shift::Sar,
    }
}
const Q: x64::Width = x64::Width::Q;
const D: x64::Width = x64::Width::D;

/// Compares a register with a word, through `B` if necessary.
fn cmp_word(a: &mut Asm, reg: x64::Reg, word: u64) {
    match i32::try_from(word as i64) {
        Ok(n) => a.alu_i(Q, x64::Alu::Cmp, reg, n),
        Err(_) => {
            a.mov_i(r(B), word);
            a.alu(Q, x64::Alu::Cmp, reg, r(B));
        }
    }
}
fn cmp(a: &mut Asm, operands: Operands) {
    match operands {
        Operands::Regs(x, y) => a.alu(Q, x64::Alu::Cmp, r(x), r(y)),
        Operands::Word(x, word) => cmp_word(a, r(x), word),
    }
}
/// Tests the lower bits of the sum of a register and a number.
fn test_sum(a: &mut Asm, reg: Reg, n: i32, by: Reg, mask: u64) {
    a.lea(r(by), x64::at(r(reg), n));
    a.test8_i(r(by), mask as u8);
}
fn overflows(a: &mut Asm, overflow: Option<Label>) {
    if let Some(l) = overflow {
        a.jcc(x64::Cond::O, l);
    }
}

impl Machine for X64 {
    const INNER: u32 = 9;
    const THREE_OPERANDS: bool = false;
    #[cfg(target_arch = "x86_64")]
    fn counts_bits() -> bool {
        std::is_x86_feature_detected!("popcnt") && std::is_x86_feature_detected!("bmi2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    fn counts_bits() -> bool {
        false
    }

    fn begin(bytes: usize, _near: bool) -> X64 {
        X64 {
            a: Asm::with_capacity(bytes),
        }
    }
    fn here(&self) -> u32 {
        self.a.here()
    }
    fn label(&mut self) -> Label {
        self.a.label()
    }
    fn bind(&mut self, l: Label) {
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
        self.a.ud2();
    }

    fn mov(&mut self, d: Reg, s: Reg) {
        self.a.mov(r(d), r(s));
    }
    fn mov32(&mut self, d: Reg, s: Reg) {
        self.a.mov32(r(d), r(s));
    }
    fn mov_i(&mut self, d: Reg, value: u64) {
        self.a.mov_i(r(d), value);
    }
    fn zero(&mut self, d: Reg) {
        self.a.alu(D, x64::Alu::Xor, r(d), r(d));
    }
    fn load(&mut self, d: Reg, from: Mem) {
        self.a.load(r(d), m(from));
    }
    fn load32(&mut self, d: Reg, from: Mem) {
        self.a.load32(r(d), m(from));
    }
    fn load16(&mut self, d: Reg, from: Mem) {
        self.a.load16(r(d), m(from));
    }
    fn load8(&mut self, d: Reg, from: Mem) {
        self.a.load8(r(d), m(from));
    }
    fn store(&mut self, to: Mem, s: Reg) {
        self.a.store(m(to), r(s));
    }
    fn store8(&mut self, to: Mem, s: Reg) {
        self.a.store8(m(to), r(s));
    }
    fn store_i(&mut self, to: Mem, value: i32) {
        self.a.store_i(m(to), value);
    }
    fn store8_i(&mut self, to: Mem, value: u8) {
        self.a.store8_i(m(to), value);
    }
    fn store_word(&mut self, to: Mem, value: u64, by: Reg) {
        match i32::try_from(value as i64) {
            Ok(n) => self.a.store_i(m(to), n),
            Err(_) => {
                self.a.mov_i(r(by), value);
                self.a.store(m(to), r(by));
            }
        }
    }
    fn lea(&mut self, d: Reg, of: Mem) {
        self.a.lea(r(d), m(of));
    }
    fn save(&mut self, reg: Reg) {
        self.a.push(r(reg));
    }
    fn restore(&mut self, reg: Reg) {
        self.a.pop(r(reg));
    }
    fn saved(&mut self, d: Reg) {
        self.a.load(r(d), x64::at(x64::RSP, 0));
    }
    fn or_saved(&mut self, s: Reg) {
        self.a.alu_mr(Q, x64::Alu::Or, x64::at(x64::RSP, 0), r(s));
    }
    fn spare(&mut self) {
        self.a.push(r(T));
        self.a.push(r(U));
    }
    fn unspare(&mut self) {
        self.a.pop(r(U));
        self.a.pop(r(T));
    }

    fn alu(&mut self, width: Width, op: Alu, d: Reg, s: Reg) {
        self.a.alu(w(width), o(op), r(d), r(s));
    }
    fn alu_i(&mut self, width: Width, op: Alu, d: Reg, value: i32) {
        self.a.alu_i(w(width), o(op), r(d), value);
    }
    fn alu_m(&mut self, op: Alu, d: Reg, from: Mem) {
        self.a.alu_m(Q, o(op), r(d), m(from));
    }
    fn inc(&mut self, d: Reg) {
        self.a.inc(r(d));
    }
    fn dec(&mut self, d: Reg) {
        self.a.dec(r(d));
    }
    fn shift_i(&mut self, width: Width, op: Shift, d: Reg, n: u8) {
        self.a.shift_i(w(width), s(op), r(d), n);
    }
    fn shift_by_r(&mut self, width: Width, op: Shift, d: Reg) {
        // The number is in CL.
        self.a.shift_cl(w(width), s(op), r(d));
    }
    fn mul(&mut self, d: Reg, s: Reg) {
        self.a.imul(r(d), r(s));
    }
    fn bswap(&mut self, width: Width, d: Reg) {
        self.a.bswap(w(width), r(d));
    }
    fn popcount(&mut self, d: Reg) {
        self.a.popcnt(r(d), r(d));
    }
    fn bits_below(&mut self, d: Reg, n: Reg) {
        self.a.bzhi(r(d), r(d), r(n));
    }

    fn sum_or(&mut self, op: Alu, d: Reg, s: Reg, overflow: Option<Label>) {
        self.a.alu(Q, o(op), r(d), r(s));
        overflows(&mut self.a, overflow);
    }
    fn sum_i_or(&mut self, op: Alu, d: Reg, value: u64, overflow: Option<Label>) {
        match i32::try_from(value as i64) {
            Ok(n) => self.a.alu_i(Q, o(op), r(d), n),
            Err(_) => {
                self.a.mov_i(r(B), value);
                self.a.alu(Q, o(op), r(d), r(B));
            }
        }
        overflows(&mut self.a, overflow);
    }
    fn add_m_or(&mut self, d: Reg, from: Mem, overflow: Label) {
        self.a.alu_m(Q, x64::Alu::Add, r(d), m(from));
        overflows(&mut self.a, Some(overflow));
    }
    fn mul_or(&mut self, d: Reg, s: Reg, overflow: Option<Label>) {
        self.a.imul(r(d), r(s));
        overflows(&mut self.a, overflow);
    }
    fn mul_i_or(&mut self, d: Reg, value: i32, overflow: Option<Label>) {
        self.a.imul_i(r(d), r(d), value);
        overflows(&mut self.a, overflow);
    }
    fn sub_i_or_below(&mut self, d: Reg, value: i32, l: Label) {
        self.a.alu_i(Q, x64::Alu::Sub, r(d), value);
        self.a.jcc(x64::Cond::B, l);
    }
    fn untag_or(&mut self, d: Reg, cond: Cond, l: Label) {
        self.a.shift_i(Q, x64::Shift::Sar, r(d), SMALL_SHIFT as u8);
        self.a.jcc(c(cond), l);
    }
    fn dec_if(&mut self, cond: Cond, d: Reg, l: Label) {
        self.a.dec(r(d));
        self.a.jcc(c(cond), l);
    }
    fn divide(&mut self, quotient: bool) {
        // The division has fixed registers, those of X0 and X1.
        let (x0, x1) = (x64::at(r(CX), 0), x64::at(r(CX), 8));
        self.a.store(x0, x64::RAX);
        self.a.store(x1, x64::RDX);
        self.a.mov(x64::RAX, r(B));
        self.a
            .shift_i(Q, x64::Shift::Sar, x64::RAX, SMALL_SHIFT as u8);
        self.a.cqo();
        self.a.idiv(r(R));
        self.a.mov(r(R), if quotient { x64::RAX } else { x64::RDX });
        self.a.load(x64::RAX, x0);
        self.a.load(x64::RDX, x1);
    }

    fn untag(&mut self, d: Reg, s: Reg) {
        self.a.mov(r(d), r(s));
        self.a.shift_i(Q, x64::Shift::Sar, r(d), SMALL_SHIFT as u8);
    }
    fn tag(&mut self, width: Width, d: Reg) {
        self.a
            .shift_i(w(width), x64::Shift::Shl, r(d), SMALL_SHIFT as u8);
        self.a.alu_i(w(width), x64::Alu::Or, r(d), TAG_SMALL as i32);
    }
    fn if_not_small(&mut self, reg: Reg, by: Reg, l: Label) {
        test_sum(&mut self.a, reg, 1, by, TAG4_MASK);
        self.a.jcc(x64::Cond::Ne, l);
    }
    fn if_small(&mut self, reg: Reg, by: Reg, l: Label) {
        test_sum(&mut self.a, reg, 1, by, TAG4_MASK);
        self.a.jcc(x64::Cond::E, l);
    }
    fn if_not_both_small(&mut self, a: Reg, b: Reg, l: Label) {
        self.a.mov32(r(R), r(a));
        self.a.alu(D, x64::Alu::And, r(R), r(b));
        self.a.invert(r(R));
        self.a.test8_i(r(R), TAG4_MASK as u8);
        self.a.jcc(x64::Cond::Ne, l);
    }
    fn if_both_immediate(&mut self, a: Reg, b: Reg, l: Label) {
        self.a.mov32(r(R), r(a));
        self.a.alu(D, x64::Alu::And, r(R), r(b));
        self.a.invert(r(R));
        self.a.test8_i(r(R), TAG_MASK as u8);
        self.a.jcc(x64::Cond::E, l);
    }
    fn if_not_boxed(&mut self, reg: Reg, by: Reg, l: Label) {
        test_sum(&mut self.a, reg, -(TAG_BOXED as i32), by, TAG_MASK);
        self.a.jcc(x64::Cond::Ne, l);
    }
    fn if_boxed(&mut self, reg: Reg, by: Reg, l: Label) {
        test_sum(&mut self.a, reg, -(TAG_BOXED as i32), by, TAG_MASK);
        self.a.jcc(x64::Cond::E, l);
    }
    fn if_not_cons(&mut self, reg: Reg, by: Reg, l: Label) {
        test_sum(&mut self.a, reg, -(TAG_LIST as i32), by, TAG_MASK);
        self.a.jcc(x64::Cond::Ne, l);
    }
    fn if_immediate(&mut self, reg: Reg, by: Reg, is: bool, l: Label) {
        test_sum(&mut self.a, reg, 1, by, TAG_MASK);
        self.a.jcc(if is { x64::Cond::E } else { x64::Cond::Ne }, l);
    }
    fn if_masked(&mut self, cond: Cond, reg: Reg, mask: u32, value: u32, by: Reg, l: Label) {
        self.a.mov32(r(by), r(reg));
        self.a.alu_i(D, x64::Alu::And, r(by), mask as i32);
        self.a.alu_i(D, x64::Alu::Cmp, r(by), value as i32);
        self.a.jcc(c(cond), l);
    }

    fn if_r(&mut self, cond: Cond, width: Width, a: Reg, b: Reg, l: Label) {
        self.a.alu(w(width), x64::Alu::Cmp, r(a), r(b));
        self.a.jcc(c(cond), l);
    }
    fn if_r_restoring(&mut self, cond: Cond, a: Reg, b: Reg, l: Label) {
        self.a.alu(Q, x64::Alu::Cmp, r(a), r(b));
        // Keeps the flags.
        self.a.pop(r(b));
        self.a.jcc(c(cond), l);
    }
    fn if_i(&mut self, cond: Cond, width: Width, reg: Reg, value: i32, l: Label) {
        self.a.alu_i(w(width), x64::Alu::Cmp, r(reg), value);
        self.a.jcc(c(cond), l);
    }
    fn if_word(&mut self, cond: Cond, reg: Reg, word: u64, l: Label) {
        cmp_word(&mut self.a, r(reg), word);
        self.a.jcc(c(cond), l);
    }
    fn if_m(&mut self, cond: Cond, reg: Reg, with: Mem, l: Label) {
        self.a.alu_m(Q, x64::Alu::Cmp, r(reg), m(with));
        self.a.jcc(c(cond), l);
    }
    fn if_mi(&mut self, cond: Cond, of: Mem, value: i32, l: Label) {
        self.a.alu_mi(Q, x64::Alu::Cmp, m(of), value);
        self.a.jcc(c(cond), l);
    }
    fn if_count(&mut self, cond: Cond, of: Mem, value: i32, l: Label) {
        // Loads are done in order.
        self.if_mi(cond, of, value, l);
    }
    fn if_mem_word(&mut self, cond: Cond, of: Mem, word: u64, l: Label) {
        match i32::try_from(word as i64) {
            Ok(n) => {
                self.a.alu_mi(Q, x64::Alu::Cmp, m(of), n);
                self.a.jcc(c(cond), l);
            }
            Err(_) => {
                self.a.mov_i(r(B), word);
                self.a.alu_m(Q, x64::Alu::Cmp, r(B), m(of));
                self.a.jcc(c(cond.turned()), l);
            }
        }
    }
    fn if_byte(&mut self, cond: Cond, of: Mem, value: u8, l: Label) {
        self.a.cmp8_mi(m(of), value);
        self.a.jcc(c(cond), l);
    }
    fn if_zero(&mut self, cond: Cond, width: Width, reg: Reg, l: Label) {
        self.a.test(w(width), r(reg), r(reg));
        self.a.jcc(c(cond), l);
    }
    fn if_bits(&mut self, cond: Cond, reg: Reg, mask: u8, l: Label) {
        self.a.test8_i(r(reg), mask);
        self.a.jcc(c(cond), l);
    }
    fn if_bits32(&mut self, cond: Cond, reg: Reg, mask: u32, l: Label) {
        self.a.test32_i(r(reg), mask);
        self.a.jcc(c(cond), l);
    }
    fn if_no_bit(&mut self, reg: Reg, n: Reg, l: Label) {
        self.a.bt(D, r(reg), r(n));
        self.a.jcc(x64::Cond::Ae, l);
    }

    fn select(&mut self, cond: Cond, operands: Operands, d: Reg, s: Reg) {
        cmp(&mut self.a, operands);
        self.a.cmov(c(cond), r(d), r(s));
    }
    fn choose(&mut self, cond: Cond, operands: Operands, t: u64, f: u64) {
        cmp(&mut self.a, operands);
        // These keep the flags.
        self.a.mov_i(r(R), t);
        self.a.mov_i(r(B), f);
        self.a.cmov(c(cond.negated()), r(R), r(B));
    }

    fn enter_function(&mut self, used_up: Label) {
        self.a.dec(r(REDS));
        self.a.jcc_near(x64::Cond::Le, used_up);
    }
    fn call_self(&mut self) {
        let start = self.a.label_at(0);
        self.a.call(start);
    }
    fn jump_self(&mut self, _used_up: Label) {
        let start = self.a.label_at(0);
        self.a.jmp(start);
    }
    fn jmp(&mut self, l: Label) {
        self.a.jmp(l);
    }
    fn call_code(&mut self, reg: Reg) {
        self.a.call_r(r(reg));
    }
    fn jump_code(&mut self, reg: Reg) {
        self.a.jmp_r(r(reg));
    }
    fn ret(&mut self) {
        self.a.ret();
    }
    fn call_stub(&mut self, to: u64) {
        self.a.call_abs(to);
    }
    fn tail_stub(&mut self, to: u64) {
        self.a.jmp_abs(to);
    }
    fn leave_to(&mut self, to: u64) {
        self.a.jmp_abs(to);
    }
    fn drop_stack(&mut self, base: i32, to: u64) {
        self.a.load(x64::RSP, x64::at(r(CX), base));
        self.a.jmp_abs(to);
    }
    fn if_chance(&mut self, stub: u64, l: Label) {
        self.a.call_abs(stub);
        self.a.jcc(x64::Cond::E, l);
    }
    fn jump_by_table(&mut self, table: Label) {
        self.a.lea_label(r(B), table);
        self.a.jmp_m(x64::indexed(r(B), r(R), 8, 0));
    }
    fn table_entry(&mut self, l: Label) {
        self.a.address_of(l);
    }

    fn stub_ret(&mut self) {
        self.a.ret();
    }
    fn call_from_stub(&mut self, l: Label) {
        self.a.call(l);
    }
    fn jump_from_stub(&mut self, reg: Reg) {
        self.a.jmp_r(r(reg));
    }

    fn load_float(&mut self, d: Vector, from: Mem) {
        self.a.movsd_load(v(d), m(from));
    }
    fn store_float(&mut self, to: Mem, s: Vector) {
        self.a.movsd_store(m(to), v(s));
    }
    fn mov_float(&mut self, d: Vector, s: Vector) {
        self.a.movapd(v(d), v(s));
    }
    fn float(&mut self, op: Float, d: Vector, s: Vector) {
        let op = match op {
            Float::Add => x64::Sse::Add,
            Float::Sub => x64::Sse::Sub,
            Float::Mul => x64::Sse::Mul,
            Float::Div => x64::Sse::Div,
        };
        self.a.sse_op(op, v(d), v(s));
    }
    fn to_float(&mut self, d: Vector, s: Reg) {
        self.a.cvtsi2sd(v(d), r(s));
    }
    fn if_not_finite(&mut self, of: Vector, by: Reg, l: Label) {
        // All bits of the exponent are set.
        self.a.movq_from(r(by), v(of));
        self.a.shift_i(Q, x64::Shift::Shr, r(by), 52);
        self.a.invert(r(by));
        self.a.test32_i(r(by), 0x7FF);
        self.a.jcc(x64::Cond::E, l);
    }
    fn if_float_above(&mut self, a: Vector, b: Vector, l: Label) {
        self.a.ucomisd(v(a), v(b));
        self.a.jcc(x64::Cond::A, l);
    }
}
