//! An assembler for x86-64: only the forms that templates need.
//!
//! Source of the encodings: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
//! A test checks each form with all registers against a disassembler.
//!
//! The final address of the code is not known while it is made. Calls and jumps out of it
//! (`call_abs`, `jmp_abs`) are recorded, and [`Code::place`] fills them in.

use super::{Code, Field, Label, Labels, Reloc, UNBOUND};

/// A general register, by its number in encodings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reg(pub u8);

// The registers by name.

pub const RAX: Reg = Reg(0);
pub const RCX: Reg = Reg(1);
pub const RDX: Reg = Reg(2);
pub const RBX: Reg = Reg(3);
pub const RSP: Reg = Reg(4);
pub const RBP: Reg = Reg(5);
pub const RSI: Reg = Reg(6);
pub const RDI: Reg = Reg(7);
pub const R8: Reg = Reg(8);
pub const R9: Reg = Reg(9);
pub const R10: Reg = Reg(10);
pub const R11: Reg = Reg(11);
pub const R12: Reg = Reg(12);
pub const R13: Reg = Reg(13);
pub const R14: Reg = Reg(14);
pub const R15: Reg = Reg(15);

/// A vector register, of which the low double is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Xmm(pub u8);

/// Conditions of jumps, by their number in encodings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Cond {
    O = 0,
    No = 1,
    /// Below, unsigned.
    B = 2,
    Ae = 3,
    E = 4,
    Ne = 5,
    Be = 6,
    /// Above, unsigned.
    A = 7,
    S = 8,
    Ns = 9,
    P = 10,
    Np = 11,
    /// Less, signed.
    L = 12,
    Ge = 13,
    Le = 14,
    G = 15,
}

impl Cond {
    /// Returns the opposite condition.
    pub fn negated(self) -> Cond {
        const ALL: [Cond; 16] = [
            Cond::O,
            Cond::No,
            Cond::B,
            Cond::Ae,
            Cond::E,
            Cond::Ne,
            Cond::Be,
            Cond::A,
            Cond::S,
            Cond::Ns,
            Cond::P,
            Cond::Np,
            Cond::L,
            Cond::Ge,
            Cond::Le,
            Cond::G,
        ];
        ALL[(self as u8 ^ 1) as usize]
    }
}

/// Operations of two operands that share one encoding scheme; the number is that of the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Alu {
    Add = 0,
    Or = 1,
    And = 4,
    Sub = 5,
    Xor = 6,
    Cmp = 7,
}

/// Shifts, by their number in the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Shift {
    Rol = 0,
    Shl = 4,
    Shr = 5,
    Sar = 7,
}

/// Operations on doubles, by opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Sse {
    Add = 0x58,
    Mul = 0x59,
    Sub = 0x5C,
    Div = 0x5E,
}

/// Width of an operation on general registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// 32 bits; the upper half of a written register becomes 0.
    D,
    /// 64 bits.
    Q,
}
use Width::{D, Q};

/// A memory operand: base, index times scale, displacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mem {
    pub base: Option<Reg>,
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
        base: Some(base),
        index: None,
        disp,
    }
}
/// `index * scale + disp` bytes from the address in `base`; `scale` is 1, 2, 4 or 8.
pub const fn indexed(base: Reg, index: Reg, scale: u8, disp: i32) -> Mem {
    Mem {
        base: Some(base),
        index: Some((index, scale)),
        disp,
    }
}
/// An address below 2^31.
pub const fn absolute(disp: i32) -> Mem {
    Mem {
        base: None,
        index: None,
        disp,
    }
}

/// Code under construction.
#[derive(Default)]
pub struct Asm {
    bytes: Vec<u8>,
    labels: Labels,
    fixups: Vec<(u32, Label)>,
    /// Words of eight bytes that hold the address of a label.
    addresses: Vec<(u32, Label)>,
    relocs: Vec<Reloc>,
    /// See [`Code::depths`].
    depths: Vec<(u32, u8)>,
}

impl Asm {
    /// Begins without code.
    pub fn new() -> Asm {
        Asm::default()
    }
    /// Returns no code, with room for that many bytes of it.
    pub fn with_capacity(bytes: usize) -> Asm {
        Asm {
            bytes: Vec::with_capacity(bytes),
            ..Asm::default()
        }
    }
    /// Bytes so far.
    pub fn here(&self) -> u32 {
        self.bytes.len() as u32
    }
    /// Makes a label without a place.
    pub fn label(&mut self) -> Label {
        self.labels.make(UNBOUND)
    }
    /// Places the label here.
    pub fn bind(&mut self, l: Label) {
        self.labels.bind(l, self.here());
    }
    /// Makes a label here.
    pub fn here_label(&mut self) -> Label {
        let l = self.label();
        self.bind(l);
        l
    }
    /// Makes a label at an offset that has been written already.
    pub fn label_at(&mut self, offset: u32) -> Label {
        self.labels.make(offset)
    }
    /// Returns where a label is; `None` if it has no place yet.
    pub fn offset(&self, l: Label) -> Option<u32> {
        self.labels.offset(l)
    }
    /// Returns the finished code; `None` if the target of a jump has no place.
    pub fn finish(mut self) -> Option<Code> {
        for &(at, l) in &self.fixups {
            let to = self.labels.offset(l)?;
            let d = to as i32 - (at as i32 + 4);
            self.bytes[at as usize..at as usize + 4].copy_from_slice(&d.to_le_bytes());
        }
        let mut addresses = Vec::with_capacity(self.addresses.len());
        for &(at, l) in &self.addresses {
            let to = self.labels.offset(l)?;
            addresses.push((at, to));
        }
        Some(Code {
            bytes: self.bytes,
            relocs: self.relocs,
            addresses,
            depths: self.depths,
        })
    }
    /// Records the number of words on the stack from here on.
    fn depth(&mut self, words: impl FnOnce(u8) -> u8) {
        let before = self.depths.last().map_or(0, |d| d.1);
        let now = words(before);
        if now != before {
            self.depths.push((self.here(), now));
        }
    }

    fn reloc(&mut self, to: u64) {
        self.relocs.push(Reloc {
            at: self.here(),
            field: Field::Rel32,
            to,
        });
    }
    fn b(&mut self, b: u8) {
        self.bytes.push(b);
    }
    fn d(&mut self, v: i32) {
        self.bytes.extend_from_slice(&v.to_le_bytes());
    }
    fn q(&mut self, v: u64) {
        self.bytes.extend_from_slice(&v.to_le_bytes());
    }
    /// Prefix, opcode and operands of an instruction with a register, or an extension of the
    /// opcode, and a register.
    fn rr(&mut self, w: Width, op: &[u8], reg: u8, rm: u8) {
        self.rex(w == Q, reg, 0, rm, false);
        self.bytes.extend_from_slice(op);
        self.b(0xC0 | (reg & 7) << 3 | rm & 7);
    }
    fn rex(&mut self, wide: bool, reg: u8, index: u8, base: u8, force: bool) {
        let r = 0x40
            | (wide as u8) << 3
            | (reg >> 3 & 1) << 2
            | (index >> 3 & 1) << 1
            | (base >> 3 & 1);
        if r != 0x40 || force {
            self.b(r);
        }
    }
    /// The same with a memory operand. `force`: the register is one byte wide.
    fn rm_forced(&mut self, w: Width, op: &[u8], reg: u8, m: Mem, force: bool) {
        let base = m.base.map_or(0, |r| r.0);
        let index = m.index.map_or(0, |i| i.0.0);
        self.rex(w == Q, reg, index, base, force);
        self.bytes.extend_from_slice(op);
        let reg = (reg & 7) << 3;
        let Some(b) = m.base else {
            // No base and no index: a SIB byte encodes that, and 32 bits follow.
            self.b(reg | 4);
            self.b(0x25);
            return self.d(m.disp);
        };
        // There is no form without a displacement if the base is RBP or R13.
        let (mode, bytes) = match m.disp {
            0 if b.0 & 7 != 5 => (0x00, 0),
            -128..=127 => (0x40, 1),
            _ => (0x80, 4),
        };
        match m.index {
            None if b.0 & 7 != 4 => self.b(mode | reg | b.0 & 7),
            None => {
                self.b(mode | reg | 4);
                self.b(0x24);
            }
            Some((i, scale)) => {
                debug_assert!(i != RSP && scale.is_power_of_two() && scale <= 8);
                self.b(mode | reg | 4);
                self.b((scale.trailing_zeros() as u8) << 6 | (i.0 & 7) << 3 | b.0 & 7);
            }
        }
        match bytes {
            0 => {}
            1 => self.b(m.disp as u8),
            _ => self.d(m.disp),
        }
    }
    fn rm(&mut self, w: Width, op: &[u8], reg: u8, m: Mem) {
        self.rm_forced(w, op, reg, m, false);
    }

    // Moves.

    /// `dst = src`; no code if they are the same.
    pub fn mov(&mut self, dst: Reg, src: Reg) {
        if dst != src {
            self.rr(Q, &[0x89], src.0, dst.0);
        }
    }
    /// `dst = src`, the lower 32 bits; the upper become 0.
    pub fn mov32(&mut self, dst: Reg, src: Reg) {
        self.rr(D, &[0x89], src.0, dst.0);
    }
    /// `dst = value`, in the shortest form that keeps the flags.
    pub fn mov_i(&mut self, dst: Reg, value: u64) {
        if let Ok(v) = u32::try_from(value) {
            self.rex(false, 0, 0, dst.0, false);
            self.b(0xB8 | dst.0 & 7);
            self.d(v as i32);
        } else if let Ok(v) = i32::try_from(value as i64) {
            self.rr(Q, &[0xC7], 0, dst.0);
            self.d(v);
        } else {
            self.rex(true, 0, 0, dst.0, false);
            self.b(0xB8 | dst.0 & 7);
            self.q(value);
        }
    }
    /// `dst = [m]`
    pub fn load(&mut self, dst: Reg, m: Mem) {
        self.rm(Q, &[0x8B], dst.0, m);
    }
    /// `dst = [m]`, 32 bits.
    pub fn load32(&mut self, dst: Reg, m: Mem) {
        self.rm(D, &[0x8B], dst.0, m);
    }
    /// `dst = [m]`, 16 bits unsigned.
    pub fn load16(&mut self, dst: Reg, m: Mem) {
        self.rm(D, &[0x0F, 0xB7], dst.0, m);
    }
    /// `dst = [m]`, 8 bits unsigned.
    pub fn load8(&mut self, dst: Reg, m: Mem) {
        self.rm(D, &[0x0F, 0xB6], dst.0, m);
    }
    /// `[m] = src`
    pub fn store(&mut self, m: Mem, src: Reg) {
        self.rm(Q, &[0x89], src.0, m);
    }
    /// `[m] = src`, 8 bits.
    pub fn store8(&mut self, m: Mem, src: Reg) {
        self.rm_forced(D, &[0x88], src.0, m, src.0 >= 4);
    }
    /// `[m] = value`, 64 bits, sign-extended.
    pub fn store_i(&mut self, m: Mem, value: i32) {
        self.rm(Q, &[0xC7], 0, m);
        self.d(value);
    }
    /// `[m] = value`, 8 bits.
    pub fn store8_i(&mut self, m: Mem, value: u8) {
        self.rm(D, &[0xC6], 0, m);
        self.b(value);
    }
    /// `dst = address of m`
    pub fn lea(&mut self, dst: Reg, m: Mem) {
        self.rm(Q, &[0x8D], dst.0, m);
    }
    /// `dst = address of the label`
    pub fn lea_label(&mut self, dst: Reg, l: Label) {
        self.rex(true, dst.0, 0, 0, false);
        self.b(0x8D);
        self.b((dst.0 & 7) << 3 | 5);
        self.fixups.push((self.here(), l));
        self.d(0);
    }
    /// Exchanges both.
    pub fn xchg(&mut self, a: Reg, b: Reg) {
        self.rr(Q, &[0x87], a.0, b.0);
    }
    /// `dst = src` if the condition holds.
    pub fn cmov(&mut self, c: Cond, dst: Reg, src: Reg) {
        self.rr(Q, &[0x0F, 0x40 | c as u8], dst.0, src.0);
    }

    // Arithmetic.

    /// `dst = dst op src`
    pub fn alu(&mut self, w: Width, op: Alu, dst: Reg, src: Reg) {
        self.rr(w, &[(op as u8) << 3 | 1], src.0, dst.0);
    }
    /// `dst = dst op value`, sign-extended.
    pub fn alu_i(&mut self, w: Width, op: Alu, dst: Reg, value: i32) {
        if let Ok(v) = i8::try_from(value) {
            self.rr(w, &[0x83], op as u8, dst.0);
            self.b(v as u8);
        } else {
            self.rr(w, &[0x81], op as u8, dst.0);
            self.d(value);
        }
    }
    /// `dst = dst op [m]`
    pub fn alu_m(&mut self, w: Width, op: Alu, dst: Reg, m: Mem) {
        self.rm(w, &[(op as u8) << 3 | 3], dst.0, m);
    }
    /// `[m] = [m] op src`
    pub fn alu_mr(&mut self, w: Width, op: Alu, m: Mem, src: Reg) {
        self.rm(w, &[(op as u8) << 3 | 1], src.0, m);
    }
    /// `[m] = [m] op value`, sign-extended.
    pub fn alu_mi(&mut self, w: Width, op: Alu, m: Mem, value: i32) {
        if let Ok(v) = i8::try_from(value) {
            self.rm(w, &[0x83], op as u8, m);
            self.b(v as u8);
        } else {
            self.rm(w, &[0x81], op as u8, m);
            self.d(value);
        }
    }
    /// Compares the byte at `m` with `value`.
    pub fn cmp8_mi(&mut self, m: Mem, value: u8) {
        self.rm(D, &[0x80], Alu::Cmp as u8, m);
        self.b(value);
    }
    /// Sets the flags of `a & b`.
    pub fn test(&mut self, w: Width, a: Reg, b: Reg) {
        self.rr(w, &[0x85], b.0, a.0);
    }
    /// Sets the flags of the lowest byte of `a & value`.
    pub fn test8_i(&mut self, a: Reg, value: u8) {
        self.rex(false, 0, 0, a.0, a.0 >= 4);
        self.b(0xF6);
        self.b(0xC0 | a.0 & 7);
        self.b(value);
    }
    /// Sets the flags of `a & value`, 32 bits.
    pub fn test32_i(&mut self, a: Reg, value: u32) {
        self.rr(D, &[0xF7], 0, a.0);
        self.d(value as i32);
    }
    /// `dst = dst << n`, or one of the other shifts.
    pub fn shift_i(&mut self, w: Width, op: Shift, dst: Reg, n: u8) {
        self.rr(w, &[0xC1], op as u8, dst.0);
        self.b(n);
    }
    /// The same by the number in `CL`.
    pub fn shift_cl(&mut self, w: Width, op: Shift, dst: Reg) {
        self.rr(w, &[0xD3], op as u8, dst.0);
    }
    /// `dst = dst * src`
    pub fn imul(&mut self, dst: Reg, src: Reg) {
        self.rr(Q, &[0x0F, 0xAF], dst.0, src.0);
    }
    /// `dst = src * value`
    pub fn imul_i(&mut self, dst: Reg, src: Reg, value: i32) {
        self.rr(Q, &[0x69], dst.0, src.0);
        self.d(value);
    }
    /// `RAX, RDX = RDX:RAX divided by src, and the remainder`, signed.
    pub fn idiv(&mut self, src: Reg) {
        self.rr(Q, &[0xF7], 7, src.0);
    }
    /// Sign-extends `RAX` into `RDX`.
    pub fn cqo(&mut self) {
        self.b(0x48);
        self.b(0x99);
    }
    /// `dst = -dst`
    pub fn neg(&mut self, dst: Reg) {
        self.rr(Q, &[0xF7], 3, dst.0);
    }
    /// `dst = !dst`
    pub fn invert(&mut self, dst: Reg) {
        self.rr(Q, &[0xF7], 2, dst.0);
    }
    /// `dst = dst + 1`; keeps the carry.
    pub fn inc(&mut self, dst: Reg) {
        self.rr(Q, &[0xFF], 0, dst.0);
    }
    /// `dst = dst - 1`; keeps the carry.
    pub fn dec(&mut self, dst: Reg) {
        self.rr(Q, &[0xFF], 1, dst.0);
    }
    /// `dst` = number of set bits of `src`.
    pub fn popcnt(&mut self, dst: Reg, src: Reg) {
        self.b(0xF3);
        self.rr(Q, &[0x0F, 0xB8], dst.0, src.0);
    }
    /// Sets the carry to the bit of `src` whose number is in the lower bits of `n`.
    pub fn bt(&mut self, w: Width, src: Reg, n: Reg) {
        self.rr(w, &[0x0F, 0xA3], n.0, src.0);
    }
    /// `dst` = `src` without its bits from number `n` on, where the low byte of `n` counts. From
    /// BMI2.
    pub fn bzhi(&mut self, dst: Reg, src: Reg, n: Reg) {
        let lacks = |r: Reg| r.0 >> 3 & 1 ^ 1;
        self.b(0xC4);
        self.b(lacks(dst) << 7 | 1 << 6 | lacks(src) << 5 | 0b00010);
        self.b(1 << 7 | (!n.0 & 15) << 3);
        self.b(0xF5);
        self.b(0b11 << 6 | (dst.0 & 7) << 3 | src.0 & 7);
    }
    /// Reverses the bytes.
    pub fn bswap(&mut self, w: Width, dst: Reg) {
        self.rex(w == Q, 0, 0, dst.0, false);
        self.b(0x0F);
        self.b(0xC8 | dst.0 & 7);
    }

    // Control flow.

    /// Jumps to the label.
    pub fn jmp(&mut self, l: Label) {
        if let Some(to) = self.offset(l) {
            let d = to as i32 - (self.here() as i32 + 2);
            if let Ok(d) = i8::try_from(d) {
                self.b(0xEB);
                self.b(d as u8);
                return self.depth(|_| 0);
            }
        }
        self.b(0xE9);
        self.fixups.push((self.here(), l));
        self.d(0);
        self.depth(|_| 0);
    }
    /// Jumps to the label if the condition holds.
    pub fn jcc(&mut self, c: Cond, l: Label) {
        if let Some(to) = self.offset(l) {
            let d = to as i32 - (self.here() as i32 + 2);
            if let Ok(d) = i8::try_from(d) {
                self.b(0x70 | c as u8);
                return self.b(d as u8);
            }
        }
        self.b(0x0F);
        self.b(0x80 | c as u8);
        self.fixups.push((self.here(), l));
        self.d(0);
    }
    /// As [`Asm::jcc`], always in the form of six bytes.
    pub fn jcc_near(&mut self, c: Cond, l: Label) {
        self.b(0x0F);
        self.b(0x80 | c as u8);
        self.fixups.push((self.here(), l));
        self.d(0);
    }
    /// Calls the code at the label.
    pub fn call(&mut self, l: Label) {
        self.b(0xE8);
        self.fixups.push((self.here(), l));
        self.d(0);
    }
    /// Calls an address outside of the code.
    pub fn call_abs(&mut self, to: u64) {
        self.b(0xE8);
        self.reloc(to);
        self.d(0);
    }
    /// Jumps to an address outside of the code.
    pub fn jmp_abs(&mut self, to: u64) {
        self.b(0xE9);
        self.reloc(to);
        self.d(0);
        self.depth(|_| 0);
    }
    /// Jumps to an address outside of the code if the condition holds.
    pub fn jcc_abs(&mut self, c: Cond, to: u64) {
        self.b(0x0F);
        self.b(0x80 | c as u8);
        self.reloc(to);
        self.d(0);
    }
    /// Jumps to the address in `to`.
    pub fn jmp_r(&mut self, to: Reg) {
        self.rr(D, &[0xFF], 4, to.0);
    }
    /// Jumps to the address at `m`.
    pub fn jmp_m(&mut self, m: Mem) {
        self.rm(D, &[0xFF], 4, m);
    }
    /// Calls the address in `to`.
    pub fn call_r(&mut self, to: Reg) {
        self.rr(D, &[0xFF], 2, to.0);
    }
    /// Calls the address at `m`.
    pub fn call_m(&mut self, m: Mem) {
        self.rm(D, &[0xFF], 2, m);
    }
    /// `ret`
    pub fn ret(&mut self) {
        self.b(0xC3);
        // What follows is reached by a jump, and most of it without words on the stack.
        self.depth(|_| 0);
    }
    /// `push r`
    pub fn push(&mut self, r: Reg) {
        self.rex(false, 0, 0, r.0, false);
        self.b(0x50 | r.0 & 7);
        self.depth(|n| n.saturating_add(1));
    }
    /// `pop r`
    pub fn pop(&mut self, r: Reg) {
        self.rex(false, 0, 0, r.0, false);
        self.b(0x58 | r.0 & 7);
        self.depth(|n| n.saturating_sub(1));
    }
    /// `push` of a word of memory.
    pub fn push_m(&mut self, m: Mem) {
        self.rm(D, &[0xFF], 6, m);
    }
    /// `pop` to a word of memory.
    pub fn pop_m(&mut self, m: Mem) {
        self.rm(D, &[0x8F], 0, m);
    }
    /// An instruction that must not be reached.
    pub fn ud2(&mut self) {
        self.b(0x0F);
        self.b(0x0B);
    }
    /// Instructions without effect up to a multiple of `n`, a power of two.
    pub fn align(&mut self, n: u32) {
        const NOPS: [&[u8]; 10] = [
            &[],
            &[0x90],
            &[0x66, 0x90],
            &[0x0F, 0x1F, 0x00],
            &[0x0F, 0x1F, 0x40, 0x00],
            &[0x0F, 0x1F, 0x44, 0x00, 0x00],
            &[0x66, 0x0F, 0x1F, 0x44, 0x00, 0x00],
            &[0x0F, 0x1F, 0x80, 0x00, 0x00, 0x00, 0x00],
            &[0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
            &[0x66, 0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
        ];
        while !self.here().is_multiple_of(n) {
            let left = n - self.here() % n;
            self.bytes.extend_from_slice(NOPS[left.min(9) as usize]);
        }
    }
    /// Eight bytes of data: the address of the label.
    pub fn address_of(&mut self, l: Label) {
        self.addresses.push((self.here(), l));
        self.q(0);
    }
    /// Four bytes of data: the distance of the label from `from`.
    pub fn distance(&mut self, from: Label, to: Label) -> Option<()> {
        let d = self.offset(to)? as i32 - self.offset(from)? as i32;
        self.d(d);
        Some(())
    }

    // Doubles.

    fn sse(&mut self, prefix: u8, op: u8, reg: u8, rm: u8, wide: bool) {
        self.b(prefix);
        self.rex(wide, reg, 0, rm, false);
        self.b(0x0F);
        self.b(op);
        self.b(0xC0 | (reg & 7) << 3 | rm & 7);
    }
    fn sse_m(&mut self, prefix: u8, op: u8, reg: u8, m: Mem) {
        self.b(prefix);
        self.rm(D, &[0x0F, op], reg, m);
    }
    /// `dst = [m]`
    pub fn movsd_load(&mut self, dst: Xmm, m: Mem) {
        self.sse_m(0xF2, 0x10, dst.0, m);
    }
    /// `[m] = src`
    pub fn movsd_store(&mut self, m: Mem, src: Xmm) {
        self.sse_m(0xF2, 0x11, src.0, m);
    }
    /// `dst = dst op src`
    pub fn sse_op(&mut self, op: Sse, dst: Xmm, src: Xmm) {
        self.sse(0xF2, op as u8, dst.0, src.0, false);
    }
    /// `dst = dst op [m]`
    pub fn sse_op_m(&mut self, op: Sse, dst: Xmm, m: Mem) {
        self.sse_m(0xF2, op as u8, dst.0, m);
    }
    /// `dst = src`, a signed integer, as a double.
    pub fn cvtsi2sd(&mut self, dst: Xmm, src: Reg) {
        self.sse(0xF2, 0x2A, dst.0, src.0, true);
    }
    /// Copies the bits of `src`.
    pub fn movq_from(&mut self, dst: Reg, src: Xmm) {
        self.sse(0x66, 0x7E, src.0, dst.0, true);
    }
    /// Copies the bits of `src`.
    pub fn movq_to(&mut self, dst: Xmm, src: Reg) {
        self.sse(0x66, 0x6E, dst.0, src.0, true);
    }
    /// Compares; an unordered result sets parity.
    pub fn ucomisd(&mut self, a: Xmm, b: Xmm) {
        self.sse(0x66, 0x2E, a.0, b.0, false);
    }
    /// `dst = src`, all bits.
    pub fn movapd(&mut self, dst: Xmm, src: Xmm) {
        self.sse(0x66, 0x28, dst.0, src.0, false);
    }
    /// All bits 0.
    pub fn xorpd(&mut self, dst: Xmm, src: Xmm) {
        self.sse(0x66, 0x57, dst.0, src.0, false);
    }
}
