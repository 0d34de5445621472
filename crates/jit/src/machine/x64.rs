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

fn r(r: Reg) -> x64::Reg {
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

impl Machine for Asm {
    const INNER: u32 = 9;
    #[cfg(target_arch = "x86_64")]
    fn counts_bits() -> bool {
        std::is_x86_feature_detected!("popcnt") && std::is_x86_feature_detected!("bmi2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    fn counts_bits() -> bool {
        false
    }

    fn begin(bytes: usize, _near: bool) -> Asm {
        Asm::with_capacity(bytes)
    }
    fn here(&self) -> u32 {
        self.here()
    }
    fn label(&mut self) -> Label {
        self.label()
    }
    fn bind(&mut self, l: Label) {
        self.bind(l);
    }
    fn offset(&self, l: Label) -> Option<u32> {
        self.offset(l)
    }
    fn finish(self) -> Option<Code> {
        self.finish()
    }
    fn align(&mut self, n: u32) {
        self.align(n);
    }
    fn trap(&mut self) {
        self.ud2();
    }

    fn mov(&mut self, d: Reg, s: Reg) {
        self.mov(r(d), r(s));
    }
    fn mov32(&mut self, d: Reg, s: Reg) {
        self.mov32(r(d), r(s));
    }
    fn mov_i(&mut self, d: Reg, value: u64) {
        self.mov_i(r(d), value);
    }
    fn zero(&mut self, d: Reg) {
        self.alu(D, x64::Alu::Xor, r(d), r(d));
    }
    fn load(&mut self, d: Reg, from: Mem) {
        self.load(r(d), m(from));
    }
    fn load32(&mut self, d: Reg, from: Mem) {
        self.load32(r(d), m(from));
    }
    fn load16(&mut self, d: Reg, from: Mem) {
        self.load16(r(d), m(from));
    }
    fn load8(&mut self, d: Reg, from: Mem) {
        self.load8(r(d), m(from));
    }
    fn load_acquire(&mut self, d: Reg, from: Mem) {
        // Loads are done in order.
        self.load(r(d), m(from));
    }
    fn store(&mut self, to: Mem, s: Reg) {
        self.store(m(to), r(s));
    }
    fn store8(&mut self, to: Mem, s: Reg) {
        self.store8(m(to), r(s));
    }
    fn store_i(&mut self, to: Mem, value: i32) {
        self.store_i(m(to), value);
    }
    fn store8_i(&mut self, to: Mem, value: u8) {
        self.store8_i(m(to), value);
    }
    fn store_word(&mut self, to: Mem, value: u64, by: Reg) {
        match i32::try_from(value as i64) {
            Ok(n) => self.store_i(m(to), n),
            Err(_) => {
                self.mov_i(r(by), value);
                self.store(m(to), r(by));
            }
        }
    }
    fn lea(&mut self, d: Reg, of: Mem) {
        self.lea(r(d), m(of));
    }
    fn save(&mut self, reg: Reg) {
        self.push(r(reg));
    }
    fn restore(&mut self, reg: Reg) {
        self.pop(r(reg));
    }
    fn saved(&mut self, d: Reg) {
        self.load(r(d), x64::at(x64::RSP, 0));
    }
    fn or_saved(&mut self, s: Reg) {
        self.alu_mr(Q, x64::Alu::Or, x64::at(x64::RSP, 0), r(s));
    }
    fn spare(&mut self) {
        self.push(r(T));
        self.push(r(U));
    }
    fn unspare(&mut self) {
        self.pop(r(U));
        self.pop(r(T));
    }

    fn alu(&mut self, width: Width, op: Alu, d: Reg, s: Reg) {
        self.alu(w(width), o(op), r(d), r(s));
    }
    fn alu_i(&mut self, width: Width, op: Alu, d: Reg, value: i32) {
        self.alu_i(w(width), o(op), r(d), value);
    }
    fn alu_m(&mut self, op: Alu, d: Reg, from: Mem) {
        self.alu_m(Q, o(op), r(d), m(from));
    }
    fn inc(&mut self, d: Reg) {
        self.inc(r(d));
    }
    fn dec(&mut self, d: Reg) {
        self.dec(r(d));
    }
    fn shift_i(&mut self, width: Width, op: Shift, d: Reg, n: u8) {
        self.shift_i(w(width), s(op), r(d), n);
    }
    fn shift_by_r(&mut self, width: Width, op: Shift, d: Reg) {
        // The number is in CL.
        self.shift_cl(w(width), s(op), r(d));
    }
    fn mul(&mut self, d: Reg, s: Reg) {
        self.imul(r(d), r(s));
    }
    fn bswap(&mut self, width: Width, d: Reg) {
        self.bswap(w(width), r(d));
    }
    fn popcount(&mut self, d: Reg) {
        self.popcnt(r(d), r(d));
    }
    fn bits_below(&mut self, d: Reg, n: Reg) {
        self.bzhi(r(d), r(d), r(n));
    }

    fn sum_or(&mut self, op: Alu, d: Reg, s: Reg, overflow: Option<Label>) {
        self.alu(Q, o(op), r(d), r(s));
        overflows(self, overflow);
    }
    fn sum_i_or(&mut self, op: Alu, d: Reg, value: u64, overflow: Option<Label>) {
        match i32::try_from(value as i64) {
            Ok(n) => self.alu_i(Q, o(op), r(d), n),
            Err(_) => {
                self.mov_i(r(B), value);
                self.alu(Q, o(op), r(d), r(B));
            }
        }
        overflows(self, overflow);
    }
    fn add_m_or(&mut self, d: Reg, from: Mem, overflow: Label) {
        self.alu_m(Q, x64::Alu::Add, r(d), m(from));
        overflows(self, Some(overflow));
    }
    fn mul_or(&mut self, d: Reg, s: Reg, overflow: Option<Label>) {
        self.imul(r(d), r(s));
        overflows(self, overflow);
    }
    fn mul_i_or(&mut self, d: Reg, value: i32, overflow: Option<Label>) {
        self.imul_i(r(d), r(d), value);
        overflows(self, overflow);
    }
    fn sub_i_or_below(&mut self, d: Reg, value: i32, l: Label) {
        self.alu_i(Q, x64::Alu::Sub, r(d), value);
        self.jcc(x64::Cond::B, l);
    }
    fn untag_or(&mut self, d: Reg, cond: Cond, l: Label) {
        self.shift_i(Q, x64::Shift::Sar, r(d), SMALL_SHIFT as u8);
        self.jcc(c(cond), l);
    }
    fn dec_if(&mut self, cond: Cond, d: Reg, l: Label) {
        self.dec(r(d));
        self.jcc(c(cond), l);
    }
    fn divide(&mut self, quotient: bool) {
        // The division has fixed registers, those of X0 and X1.
        let (x0, x1) = (x64::at(r(CX), 0), x64::at(r(CX), 8));
        self.store(x0, x64::RAX);
        self.store(x1, x64::RDX);
        self.mov(x64::RAX, r(B));
        self.shift_i(Q, x64::Shift::Sar, x64::RAX, SMALL_SHIFT as u8);
        self.cqo();
        self.idiv(r(R));
        self.mov(r(R), if quotient { x64::RAX } else { x64::RDX });
        self.load(x64::RAX, x0);
        self.load(x64::RDX, x1);
    }

    fn untag(&mut self, d: Reg, s: Reg) {
        self.mov(r(d), r(s));
        self.shift_i(Q, x64::Shift::Sar, r(d), SMALL_SHIFT as u8);
    }
    fn tag(&mut self, width: Width, d: Reg) {
        self.shift_i(w(width), x64::Shift::Shl, r(d), SMALL_SHIFT as u8);
        self.alu_i(w(width), x64::Alu::Or, r(d), TAG_SMALL as i32);
    }
    fn if_not_small(&mut self, reg: Reg, by: Reg, l: Label) {
        test_sum(self, reg, 1, by, TAG4_MASK);
        self.jcc(x64::Cond::Ne, l);
    }
    fn if_small(&mut self, reg: Reg, by: Reg, l: Label) {
        test_sum(self, reg, 1, by, TAG4_MASK);
        self.jcc(x64::Cond::E, l);
    }
    fn if_not_both_small(&mut self, a: Reg, b: Reg, l: Label) {
        self.mov32(r(R), r(a));
        self.alu(D, x64::Alu::And, r(R), r(b));
        self.invert(r(R));
        self.test8_i(r(R), TAG4_MASK as u8);
        self.jcc(x64::Cond::Ne, l);
    }
    fn if_both_immediate(&mut self, a: Reg, b: Reg, l: Label) {
        self.mov32(r(R), r(a));
        self.alu(D, x64::Alu::And, r(R), r(b));
        self.invert(r(R));
        self.test8_i(r(R), TAG_MASK as u8);
        self.jcc(x64::Cond::E, l);
    }
    fn if_not_boxed(&mut self, reg: Reg, by: Reg, l: Label) {
        test_sum(self, reg, -(TAG_BOXED as i32), by, TAG_MASK);
        self.jcc(x64::Cond::Ne, l);
    }
    fn if_boxed(&mut self, reg: Reg, by: Reg, l: Label) {
        test_sum(self, reg, -(TAG_BOXED as i32), by, TAG_MASK);
        self.jcc(x64::Cond::E, l);
    }
    fn if_not_cons(&mut self, reg: Reg, by: Reg, l: Label) {
        test_sum(self, reg, -(TAG_LIST as i32), by, TAG_MASK);
        self.jcc(x64::Cond::Ne, l);
    }
    fn if_immediate(&mut self, reg: Reg, by: Reg, is: bool, l: Label) {
        test_sum(self, reg, 1, by, TAG_MASK);
        self.jcc(if is { x64::Cond::E } else { x64::Cond::Ne }, l);
    }
    fn if_masked(&mut self, cond: Cond, reg: Reg, mask: u32, value: u32, by: Reg, l: Label) {
        self.mov32(r(by), r(reg));
        self.alu_i(D, x64::Alu::And, r(by), mask as i32);
        self.alu_i(D, x64::Alu::Cmp, r(by), value as i32);
        self.jcc(c(cond), l);
    }

    fn if_r(&mut self, cond: Cond, width: Width, a: Reg, b: Reg, l: Label) {
        self.alu(w(width), x64::Alu::Cmp, r(a), r(b));
        self.jcc(c(cond), l);
    }
    fn if_r_restoring(&mut self, cond: Cond, a: Reg, b: Reg, l: Label) {
        self.alu(Q, x64::Alu::Cmp, r(a), r(b));
        // Keeps the flags.
        self.pop(r(b));
        self.jcc(c(cond), l);
    }
    fn if_i(&mut self, cond: Cond, width: Width, reg: Reg, value: i32, l: Label) {
        self.alu_i(w(width), x64::Alu::Cmp, r(reg), value);
        self.jcc(c(cond), l);
    }
    fn if_word(&mut self, cond: Cond, reg: Reg, word: u64, l: Label) {
        cmp_word(self, r(reg), word);
        self.jcc(c(cond), l);
    }
    fn if_m(&mut self, cond: Cond, reg: Reg, with: Mem, l: Label) {
        self.alu_m(Q, x64::Alu::Cmp, r(reg), m(with));
        self.jcc(c(cond), l);
    }
    fn if_mi(&mut self, cond: Cond, of: Mem, value: i32, l: Label) {
        self.alu_mi(Q, x64::Alu::Cmp, m(of), value);
        self.jcc(c(cond), l);
    }
    fn if_mem_word(&mut self, cond: Cond, of: Mem, word: u64, l: Label) {
        match i32::try_from(word as i64) {
            Ok(n) => {
                self.alu_mi(Q, x64::Alu::Cmp, m(of), n);
                self.jcc(c(cond), l);
            }
            Err(_) => {
                self.mov_i(r(B), word);
                self.alu_m(Q, x64::Alu::Cmp, r(B), m(of));
                self.jcc(c(cond.turned()), l);
            }
        }
    }
    fn if_byte(&mut self, cond: Cond, of: Mem, value: u8, l: Label) {
        self.cmp8_mi(m(of), value);
        self.jcc(c(cond), l);
    }
    fn if_zero(&mut self, cond: Cond, width: Width, reg: Reg, l: Label) {
        self.test(w(width), r(reg), r(reg));
        self.jcc(c(cond), l);
    }
    fn if_bits(&mut self, cond: Cond, reg: Reg, mask: u8, l: Label) {
        self.test8_i(r(reg), mask);
        self.jcc(c(cond), l);
    }
    fn if_bits32(&mut self, cond: Cond, reg: Reg, mask: u32, l: Label) {
        self.test32_i(r(reg), mask);
        self.jcc(c(cond), l);
    }
    fn if_no_bit(&mut self, reg: Reg, n: Reg, l: Label) {
        self.bt(D, r(reg), r(n));
        self.jcc(x64::Cond::Ae, l);
    }

    fn select(&mut self, cond: Cond, operands: Operands, d: Reg, s: Reg) {
        cmp(self, operands);
        self.cmov(c(cond), r(d), r(s));
    }
    fn choose(&mut self, cond: Cond, operands: Operands, t: u64, f: u64) {
        cmp(self, operands);
        // These keep the flags.
        self.mov_i(r(R), t);
        self.mov_i(r(B), f);
        self.cmov(c(cond.negated()), r(R), r(B));
    }

    fn enter_function(&mut self, used_up: Label) {
        self.dec(r(REDS));
        self.jcc_near(x64::Cond::Le, used_up);
    }
    fn call_self(&mut self) {
        let start = self.label_at(0);
        self.call(start);
    }
    fn jump_self(&mut self, _used_up: Label) {
        let start = self.label_at(0);
        self.jmp(start);
    }
    fn jmp(&mut self, l: Label) {
        self.jmp(l);
    }
    fn call_code(&mut self, reg: Reg) {
        self.call_r(r(reg));
    }
    fn jump_code(&mut self, reg: Reg) {
        self.jmp_r(r(reg));
    }
    fn ret(&mut self) {
        self.ret();
    }
    fn call_stub(&mut self, to: u64) {
        self.call_abs(to);
    }
    fn tail_stub(&mut self, to: u64) {
        self.jmp_abs(to);
    }
    fn leave_to(&mut self, to: u64) {
        self.jmp_abs(to);
    }
    fn drop_stack(&mut self, base: i32, to: u64) {
        self.load(x64::RSP, x64::at(r(CX), base));
        self.jmp_abs(to);
    }
    fn if_chance(&mut self, stub: u64, l: Label) {
        self.call_abs(stub);
        self.jcc(x64::Cond::E, l);
    }
    fn jump_by_table(&mut self, table: Label) {
        self.lea_label(r(B), table);
        self.jmp_m(x64::indexed(r(B), r(R), 8, 0));
    }
    fn table_entry(&mut self, l: Label) {
        self.address_of(l);
    }

    fn stub_ret(&mut self) {
        self.ret();
    }
    fn call_from_stub(&mut self, l: Label) {
        self.call(l);
    }
    fn jump_from_stub(&mut self, reg: Reg) {
        self.jmp_r(r(reg));
    }

    fn load_float(&mut self, d: Vector, from: Mem) {
        self.movsd_load(v(d), m(from));
    }
    fn store_float(&mut self, to: Mem, s: Vector) {
        self.movsd_store(m(to), v(s));
    }
    fn mov_float(&mut self, d: Vector, s: Vector) {
        self.movapd(v(d), v(s));
    }
    fn float(&mut self, op: Float, d: Vector, s: Vector) {
        let op = match op {
            Float::Add => x64::Sse::Add,
            Float::Sub => x64::Sse::Sub,
            Float::Mul => x64::Sse::Mul,
            Float::Div => x64::Sse::Div,
        };
        self.sse_op(op, v(d), v(s));
    }
    fn to_float(&mut self, d: Vector, s: Reg) {
        self.cvtsi2sd(v(d), r(s));
    }
    fn if_not_finite(&mut self, of: Vector, by: Reg, l: Label) {
        // All bits of the exponent are set.
        self.movq_from(r(by), v(of));
        self.shift_i(Q, x64::Shift::Shr, r(by), 52);
        self.invert(r(by));
        self.test32_i(r(by), 0x7FF);
        self.jcc(x64::Cond::E, l);
    }
    fn if_float_above(&mut self, a: Vector, b: Vector, l: Label) {
        self.ucomisd(v(a), v(b));
        self.jcc(x64::Cond::A, l);
    }
}
