//! An assembler for aarch64: only the forms that machine code needs.
//!
//! Source of the encodings: Arm Architecture Reference Manual for A-profile architecture, part C. A
//! test checks each form against a disassembler.
//!
//! The final address of the code is not known while it is made. Calls and jumps out of it
//! (`bl_abs`, `b_abs`) are recorded, and [`Code::place`] fills them in.
//!
//! A form that has no encoding for its number or distance does not exist: the functions that end in
//! `fits` say so beforehand. A branch whose label turns out to be too far away makes
//! [`Asm::finish`] fail.

use super::{Code, Field, Label, Labels, Reloc, UNBOUND};

/// A general register, by its number in encodings. Number 31 is the stack pointer in some operands,
/// and zero in others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reg(pub u8);

/// Zero, or a register whose value is lost.
pub const ZR: Reg = Reg(31);
/// The stack pointer.
pub const SP: Reg = Reg(31);
/// The return address of a call.
pub const LR: Reg = Reg(30);

/// A vector register, of which the low double is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vec64(pub u8);

/// Conditions, by their number in encodings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Cond {
    Eq = 0,
    Ne = 1,
    /// Higher or same, unsigned.
    Hs = 2,
    /// Lower, unsigned.
    Lo = 3,
    /// Negative.
    Mi = 4,
    Pl = 5,
    /// Overflow.
    Vs = 6,
    Vc = 7,
    /// Higher, unsigned.
    Hi = 8,
    Ls = 9,
    Ge = 10,
    Lt = 11,
    Gt = 12,
    Le = 13,
}

impl Cond {
    /// Returns the opposite condition.
    pub fn negated(self) -> Cond {
        const ALL: [Cond; 14] = [
            Cond::Eq,
            Cond::Ne,
            Cond::Hs,
            Cond::Lo,
            Cond::Mi,
            Cond::Pl,
            Cond::Vs,
            Cond::Vc,
            Cond::Hi,
            Cond::Ls,
            Cond::Ge,
            Cond::Lt,
            Cond::Gt,
            Cond::Le,
        ];
        ALL[(self as u8 ^ 1) as usize]
    }
}

/// Width of an operation on general registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Width {
    /// 32 bits; the upper half of a written register becomes 0.
    W = 0,
    /// 64 bits.
    X = 1,
}
use Width::{W, X};

/// Sums and differences, by their number in encodings. Those that end in `s` set the flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Sum {
    Add = 0,
    Adds = 1,
    Sub = 2,
    Subs = 3,
}

/// Operations on bits, by their number in encodings. Those that end in `s` set the flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Logic {
    And = 0,
    /// And not.
    Bic = 1,
    Orr = 2,
    /// Or not.
    Orn = 3,
    Eor = 4,
    /// Exclusive or not.
    Eon = 5,
    Ands = 6,
    Bics = 7,
}

/// Shifts of an operand or of a register, by their number in encodings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Shift {
    Lsl = 0,
    Lsr = 1,
    Asr = 2,
    Ror = 3,
}

/// Sizes of words in memory, by their number in encodings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Size {
    B = 0,
    H = 1,
    W = 2,
    X = 3,
}

/// Operations of three registers, by their number in encodings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Float {
    Mul = 0b000010,
    Div = 0b000110,
    Add = 0b001010,
    Sub = 0b001110,
}

/// How an access with a displacement changes its base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Index {
    /// The displacement is added afterwards.
    Post = 1,
    /// The base stays.
    Offset = 2,
    /// The displacement is added before.
    Pre = 3,
}

/// The field of an instruction that holds the distance of a label.
#[derive(Clone, Copy)]
enum Distance {
    /// Words: bits 0 to 25.
    Branch26,
    /// Words: bits 5 to 23.
    Branch19,
    /// Words: bits 5 to 18.
    Branch14,
    /// Bytes: bits 5 to 23, the lowest two in bits 29 and 30.
    Adr21,
    /// Bytes from another offset: the word itself.
    From(u32),
}

/// Returns a distance of whole words as a field of that many bits.
pub(super) fn words(bytes: i64, bits: u32) -> Option<u32> {
    let n = bytes >> 2;
    let fits = bytes % 4 == 0 && n >> (bits - 1) == n >> 63;
    fits.then_some((n as u64 & ((1 << bits) - 1)) as u32)
}

/// Whether an immediate of [`Asm::sum_i`] has this value.
pub fn sum_fits(n: u64) -> bool {
    n < 1 << 12 || n & 0xFFF == 0 && n < 1 << 24
}

/// Returns the encoding of an immediate of [`Asm::logic_i`]: `N`, `immr` and `imms`. There is one
/// for a pattern of a power of two bits that repeats, of which the ones are adjacent, its ends
/// taken as adjacent, too.
pub fn logic_fits(w: Width, value: u64) -> Option<u32> {
    let value = match w {
        W if value >> 32 != 0 => return None,
        W => value | value << 32,
        X => value,
    };
    if value == 0 || value == u64::MAX {
        return None;
    }
    let mut size = 64u32;
    while size > 2 {
        let half = size / 2;
        let mask = (1u64 << half) - 1;
        if value & mask != value >> half & mask {
            break;
        }
        size = half;
    }
    let mask = u64::MAX >> (64 - size);
    let pattern = value & mask;
    let ones = pattern.count_ones();
    // Rotates the pattern to the right until its ones are the lowest bits.
    let lowest = (1u64 << ones) - 1;
    for turn in 0..size {
        let turned = match turn {
            0 => pattern,
            n => (pattern >> n | pattern << (size - n)) & mask,
        };
        if turned == lowest {
            let immr = (size - turn) % size;
            let imms = (!(size * 2 - 1) & 0x3F) | (ones - 1);
            let n = u32::from(size == 64);
            return Some(n << 12 | immr << 6 | imms);
        }
    }
    None
}

/// Code under construction.
#[derive(Default)]
pub struct Asm {
    bytes: Vec<u8>,
    labels: Labels,
    fixups: Vec<(u32, Distance, Label)>,
    addresses: Vec<(u32, Label)>,
    relocs: Vec<Reloc>,
}

fn rd(r: Reg) -> u32 {
    u32::from(r.0)
}
fn rn(r: Reg) -> u32 {
    u32::from(r.0) << 5
}
fn rm(r: Reg) -> u32 {
    u32::from(r.0) << 16
}
fn sf(w: Width) -> u32 {
    (w as u32) << 31
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
        self.labels.make(self.here())
    }
    /// Makes a label at an offset that has been written already.
    pub fn label_at(&mut self, offset: u32) -> Label {
        self.labels.make(offset)
    }
    /// Returns where a label is; `None` if it has no place yet.
    pub fn offset(&self, l: Label) -> Option<u32> {
        self.labels.offset(l)
    }
    /// Returns the finished code; `None` if the target of a branch has no place, or is too far.
    pub fn finish(mut self) -> Option<Code> {
        for &(at, field, l) in &self.fixups {
            let to = i64::from(self.labels.offset(l)?);
            let d = to - i64::from(at);
            let bits = match field {
                Distance::Branch26 => words(d, 26)?,
                Distance::Branch19 => words(d, 19)? << 5,
                Distance::Branch14 => words(d, 14)? << 5,
                Distance::Adr21 => Self::adr_bits(d)?,
                Distance::From(from) => (to - i64::from(from)) as u32,
            };
            let field = &mut self.bytes[at as usize..at as usize + 4];
            for (k, b) in bits.to_le_bytes().into_iter().enumerate() {
                field[k] |= b;
            }
        }
        let mut addresses = Vec::with_capacity(self.addresses.len());
        for &(at, l) in &self.addresses {
            addresses.push((at, self.labels.offset(l)?));
        }
        Some(Code {
            bytes: self.bytes,
            relocs: self.relocs,
            depths: Vec::new(),
            addresses,
        })
    }
    fn adr_bits(d: i64) -> Option<u32> {
        let fits = d >> 20 == d >> 63;
        fits.then_some((d as u32 & 3) << 29 | (d as u32 >> 2 & 0x7_FFFF) << 5)
    }
    fn i(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }
    /// Takes back the last instruction, to which no label, address or place refers.
    pub(crate) fn take_back(&mut self) {
        self.bytes.truncate(self.bytes.len() - 4);
    }
    /// Makes the last instruction, which writes a register and refers to no label, write another
    /// one.
    pub(crate) fn write_to(&mut self, d: Reg) {
        let last = self.bytes.len() - 4;
        self.bytes[last] = self.bytes[last] & !0x1F | d.0;
    }
    fn to(&mut self, word: u32, field: Distance, l: Label) {
        self.fixups.push((self.here(), field, l));
        self.i(word);
    }

    // Moves.

    /// `d = s`; no code if they are the same.
    pub fn mov(&mut self, d: Reg, s: Reg) {
        if d != s {
            self.logic(X, Logic::Orr, d, ZR, s);
        }
    }
    /// `d = s`, the lower 32 bits; the upper become 0.
    pub fn mov32(&mut self, d: Reg, s: Reg) {
        self.logic(W, Logic::Orr, d, ZR, s);
    }
    /// `d = s`, where either may be the stack pointer.
    pub fn mov_sp(&mut self, d: Reg, s: Reg) {
        self.sum_i(X, Sum::Add, d, s, 0);
    }
    /// `d = n << 16 * part`
    pub fn movz(&mut self, w: Width, d: Reg, n: u16, part: u32) {
        self.wide(0x5280_0000, w, d, n, part);
    }
    /// `d = !(n << 16 * part)`
    pub fn movn(&mut self, w: Width, d: Reg, n: u16, part: u32) {
        self.wide(0x1280_0000, w, d, n, part);
    }
    /// Sets 16 bits of `d`.
    pub fn movk(&mut self, w: Width, d: Reg, n: u16, part: u32) {
        self.wide(0x7280_0000, w, d, n, part);
    }
    fn wide(&mut self, op: u32, w: Width, d: Reg, n: u16, part: u32) {
        debug_assert!(part < 2 + 2 * w as u32);
        self.i(op | sf(w) | part << 21 | u32::from(n) << 5 | rd(d));
    }
    /// `d = value`, in at most four instructions that keep the flags.
    pub fn mov_i(&mut self, d: Reg, value: u64) {
        let parts = [0, 1, 2, 3].map(|k| (value >> (16 * k)) as u16);
        let not = |n: u16| parts.iter().filter(|&&p| p != n).count();
        let (zeros, ones) = (not(0), not(0xFFFF));
        if zeros.min(ones) > 1 && logic_fits(X, value).is_some() {
            return self.logic_i(X, Logic::Orr, d, ZR, value);
        }
        // A number of 32 bits that is mostly ones.
        if value >> 32 == 0 && zeros == 2 && (parts[0] == 0xFFFF || parts[1] == 0xFFFF) {
            let k = u32::from(parts[0] == 0xFFFF);
            return self.movn(W, d, !parts[k as usize], k);
        }
        let filler = if ones < zeros { 0xFFFF } else { 0 };
        let mut first = true;
        for (k, &p) in parts.iter().enumerate() {
            if p == filler && !(first && k == 3) {
                continue;
            }
            match first {
                true if filler == 0 => self.movz(X, d, p, k as u32),
                true => self.movn(X, d, !p, k as u32),
                false => self.movk(X, d, p, k as u32),
            }
            first = false;
        }
    }
    /// `d = address of the label`
    pub fn adr(&mut self, d: Reg, l: Label) {
        self.to(0x1000_0000 | rd(d), Distance::Adr21, l);
    }

    // Memory.

    /// Whether [`Asm::load`] and [`Asm::store`] have this displacement.
    pub fn displacement_fits(size: Size, disp: i64) -> bool {
        let scale = size as u32;
        let scaled = disp >= 0 && disp & ((1 << scale) - 1) == 0 && disp >> scale < 1 << 12;
        scaled || (-256..256).contains(&disp)
    }
    fn access(&mut self, op: u32, size: Size, t: u32, n: Reg, disp: i64) {
        debug_assert!(Self::displacement_fits(size, disp));
        let scale = size as u32;
        let op = op | scale << 30 | rn(n) | t;
        if disp >= 0 && disp & ((1 << scale) - 1) == 0 {
            self.i(op | 0x0100_0000 | ((disp >> scale) as u32) << 10);
        } else {
            self.i(op | (disp as u32 & 0x1FF) << 12);
        }
    }
    /// `t = [n + disp]`; the upper bits of a smaller word become 0.
    pub fn load(&mut self, size: Size, t: Reg, n: Reg, disp: i64) {
        self.access(0x3840_0000, size, rd(t), n, disp);
    }
    /// `[n + disp] = t`
    pub fn store(&mut self, size: Size, t: Reg, n: Reg, disp: i64) {
        self.access(0x3800_0000, size, rd(t), n, disp);
    }
    /// `t = [n + disp]`, 32 bits, sign-extended.
    pub fn load_signed32(&mut self, t: Reg, n: Reg, disp: i64) {
        self.access(0x3880_0000, Size::W, rd(t), n, disp);
    }
    /// `t = [n + m]`, or `[n + m * size]` if `scaled`.
    pub fn load_r(&mut self, size: Size, t: Reg, n: Reg, m: Reg, scaled: bool) {
        self.access_r(0x3860_6800, size, t, n, m, scaled);
    }
    /// `[n + m] = t`, or `[n + m * size] = t` if `scaled`.
    pub fn store_r(&mut self, size: Size, t: Reg, n: Reg, m: Reg, scaled: bool) {
        self.access_r(0x3820_6800, size, t, n, m, scaled);
    }
    /// `t = [n + m]`, or `[n + m * 4]` if `scaled`; 32 bits, sign-extended.
    pub fn load_signed32_r(&mut self, t: Reg, n: Reg, m: Reg, scaled: bool) {
        self.access_r(0x38A0_6800, Size::W, t, n, m, scaled);
    }
    fn access_r(&mut self, op: u32, size: Size, t: Reg, n: Reg, m: Reg, scaled: bool) {
        let scale = (size as u32) << 30 | u32::from(scaled) << 12;
        self.i(op | scale | rm(m) | rn(n) | rd(t));
    }
    /// `t = [n]`, and `n` is changed by `disp` before or after.
    pub fn load_indexed(&mut self, t: Reg, n: Reg, disp: i64, index: Index) {
        self.indexed(0xF840_0000, t, n, disp, index);
    }
    /// `[n] = t`, and `n` is changed by `disp` before or after.
    pub fn store_indexed(&mut self, t: Reg, n: Reg, disp: i64, index: Index) {
        self.indexed(0xF800_0000, t, n, disp, index);
    }
    fn indexed(&mut self, op: u32, t: Reg, n: Reg, disp: i64, index: Index) {
        debug_assert!((-256..256).contains(&disp) && index != Index::Offset);
        self.i(op | (disp as u32 & 0x1FF) << 12 | (index as u32) << 10 | rn(n) | rd(t));
    }
    /// Whether the forms for pairs have this displacement.
    pub fn pair_fits(disp: i64) -> bool {
        disp & 7 == 0 && (-512..512).contains(&disp)
    }
    /// `t, u = [n + disp], [n + disp + 8]`
    pub fn load_pair(&mut self, t: Reg, u: Reg, n: Reg, disp: i64, index: Index) {
        self.pair(0xA840_0000, (rd(t), rd(u)), n, disp, index);
    }
    /// `[n + disp], [n + disp + 8] = t, u`
    pub fn store_pair(&mut self, t: Reg, u: Reg, n: Reg, disp: i64, index: Index) {
        self.pair(0xA800_0000, (rd(t), rd(u)), n, disp, index);
    }
    /// The same with doubles.
    pub fn load_pair_d(&mut self, t: Vec64, u: Vec64, n: Reg, disp: i64, index: Index) {
        self.pair(0x6C40_0000, (t.0.into(), u.0.into()), n, disp, index);
    }
    /// The same with doubles.
    pub fn store_pair_d(&mut self, t: Vec64, u: Vec64, n: Reg, disp: i64, index: Index) {
        self.pair(0x6C00_0000, (t.0.into(), u.0.into()), n, disp, index);
    }
    fn pair(&mut self, op: u32, (t, u): (u32, u32), n: Reg, disp: i64, index: Index) {
        debug_assert!(Self::pair_fits(disp));
        let disp = ((disp >> 3) as u32 & 0x7F) << 15;
        self.i(op & !0x0180_0000 | (index as u32) << 23 | disp | u << 10 | rn(n) | t);
    }
    /// `t = [n]`; no later access is done before it.
    pub fn load_acquire(&mut self, t: Reg, n: Reg) {
        self.i(0xC8DF_FC00 | rn(n) | rd(t));
    }
    /// `[n] = t`, behind all accesses before it.
    pub fn store_release(&mut self, t: Reg, n: Reg) {
        self.i(0xC89F_FC00 | rn(n) | rd(t));
    }
    /// Asks for the line of memory at `n + disp`, a multiple of 8 below 32 KiB.
    pub fn prefetch(&mut self, n: Reg, disp: i64) {
        debug_assert!(disp & 7 == 0 && (0..1 << 15).contains(&disp));
        self.i(0xF980_0000 | ((disp >> 3) as u32) << 10 | rn(n));
    }

    // Arithmetic.

    /// `d = n op m`
    pub fn sum(&mut self, w: Width, op: Sum, d: Reg, n: Reg, m: Reg) {
        self.sum_shifted(w, op, d, n, m, (Shift::Lsl, 0));
    }
    /// `d = n op m << by`, or one of the other shifts but a rotation.
    pub fn sum_shifted(&mut self, w: Width, op: Sum, d: Reg, n: Reg, m: Reg, by: (Shift, u32)) {
        let (s, by) = by;
        debug_assert!(by < 32 << w as u32 && s != Shift::Ror);
        let op = 0x0B00_0000 | sf(w) | (op as u32) << 29 | (s as u32) << 22;
        self.i(op | rm(m) | by << 10 | rn(n) | rd(d));
    }
    /// `d = n op m << by`, where `d` and `n` may be the stack pointer, and the lower 32 bits of `m`
    /// count if `narrow`; at most 4 bits.
    pub fn sum_extended(&mut self, op: Sum, d: Reg, n: Reg, m: Reg, narrow: bool, by: u32) {
        debug_assert!(by <= 4);
        let option = if narrow { 0b010 } else { 0b011 };
        let op = 0x8B20_0000 | (op as u32) << 29 | option << 13;
        self.i(op | rm(m) | by << 10 | rn(n) | rd(d));
    }
    /// `d = n op value`, where [`sum_fits`]. A register that is not compared may be the stack
    /// pointer.
    pub fn sum_i(&mut self, w: Width, op: Sum, d: Reg, n: Reg, value: u64) {
        debug_assert!(sum_fits(value));
        let field = match value < 1 << 12 {
            true => (value as u32) << 10,
            false => 1 << 22 | ((value >> 12) as u32) << 10,
        };
        self.i(0x1100_0000 | sf(w) | (op as u32) << 29 | field | rn(n) | rd(d));
    }
    /// Compares.
    pub fn cmp(&mut self, w: Width, n: Reg, m: Reg) {
        self.sum(w, Sum::Subs, ZR, n, m);
    }
    /// Compares with a number, where [`sum_fits`].
    pub fn cmp_i(&mut self, w: Width, n: Reg, value: u64) {
        self.sum_i(w, Sum::Subs, ZR, n, value);
    }
    /// Compares with a negative number, given without its sign, where [`sum_fits`].
    pub fn cmn_i(&mut self, w: Width, n: Reg, value: u64) {
        self.sum_i(w, Sum::Adds, ZR, n, value);
    }
    /// `d = -m`
    pub fn neg(&mut self, w: Width, d: Reg, m: Reg) {
        self.sum(w, Sum::Sub, d, ZR, m);
    }
    /// Compares if the condition holds, otherwise the flags become `nzcv`.
    pub fn ccmp(&mut self, w: Width, n: Reg, m: Reg, nzcv: u32, c: Cond) {
        self.i(0x7A40_0000 | sf(w) | rm(m) | (c as u32) << 12 | rn(n) | nzcv);
    }
    /// The same with a number below 32.
    pub fn ccmp_i(&mut self, w: Width, n: Reg, value: u32, nzcv: u32, c: Cond) {
        debug_assert!(value < 32 && nzcv < 16);
        self.i(0x7A40_0800 | sf(w) | value << 16 | (c as u32) << 12 | rn(n) | nzcv);
    }
    /// `d = n op m`
    pub fn logic(&mut self, w: Width, op: Logic, d: Reg, n: Reg, m: Reg) {
        self.logic_shifted(w, op, d, n, m, (Shift::Lsl, 0));
    }
    /// `d = n op m << by`, or one of the other shifts.
    pub fn logic_shifted(&mut self, w: Width, op: Logic, d: Reg, n: Reg, m: Reg, by: (Shift, u32)) {
        let (s, by) = by;
        debug_assert!(by < 32 << w as u32);
        let op = (op as u32 >> 1) << 29 | (op as u32 & 1) << 21;
        let op = 0x0A00_0000 | sf(w) | op | (s as u32) << 22;
        self.i(op | rm(m) | by << 10 | rn(n) | rd(d));
    }
    /// `d = n op value`, where [`logic_fits`] and `op` inverts nothing. `d` may be the stack
    /// pointer, unless the flags are set.
    pub fn logic_i(&mut self, w: Width, op: Logic, d: Reg, n: Reg, value: u64) {
        debug_assert!(op as u32 & 1 == 0);
        let Some(field) = logic_fits(w, value) else {
            debug_assert!(false, "no immediate: {value:#x}");
            return;
        };
        self.i(0x1200_0000 | sf(w) | (op as u32 >> 1) << 29 | field << 10 | rn(n) | rd(d));
    }
    /// Sets the flags of `n & value`, where [`logic_fits`].
    pub fn test_i(&mut self, w: Width, n: Reg, value: u64) {
        self.logic_i(w, Logic::Ands, ZR, n, value);
    }
    /// `d = n << by`, or one of the other shifts.
    pub fn shift_i(&mut self, w: Width, s: Shift, d: Reg, n: Reg, by: u32) {
        let bits = 32 << w as u32;
        debug_assert!(by < bits);
        match s {
            Shift::Lsl => self.field(2, w, d, n, (bits - by) % bits, bits - 1 - by),
            Shift::Lsr => self.field(2, w, d, n, by, bits - 1),
            Shift::Asr => self.field(0, w, d, n, by, bits - 1),
            Shift::Ror => {
                let op = 0x1380_0000 | sf(w) | (w as u32) << 22;
                self.i(op | rm(n) | by << 10 | rn(n) | rd(d));
            }
        }
    }
    fn field(&mut self, op: u32, w: Width, d: Reg, n: Reg, immr: u32, imms: u32) {
        let op = 0x1300_0000 | sf(w) | op << 29 | (w as u32) << 22;
        self.i(op | immr << 16 | imms << 10 | rn(n) | rd(d));
    }
    /// `d` = `bits` bits of `n` from bit `from` on.
    pub fn ubfx(&mut self, w: Width, d: Reg, n: Reg, from: u32, bits: u32) {
        self.field(2, w, d, n, from, from + bits - 1);
    }
    /// The same, sign-extended.
    pub fn sbfx(&mut self, w: Width, d: Reg, n: Reg, from: u32, bits: u32) {
        self.field(0, w, d, n, from, from + bits - 1);
    }
    /// `bits` bits of `d` from bit `to` on become the lower ones of `n`.
    pub fn bfi(&mut self, w: Width, d: Reg, n: Reg, to: u32, bits: u32) {
        let all = 32 << w as u32;
        self.field(1, w, d, n, (all - to) % all, bits - 1);
    }
    /// `d` = the lower `bits` bits of `n`, from bit `to` on, and zeros.
    pub fn ubfiz(&mut self, w: Width, d: Reg, n: Reg, to: u32, bits: u32) {
        let all = 32 << w as u32;
        self.field(2, w, d, n, (all - to) % all, bits - 1);
    }
    /// `d = n << m`, or one of the other shifts, by the lower bits of `m`.
    pub fn shift(&mut self, w: Width, s: Shift, d: Reg, n: Reg, m: Reg) {
        self.two(8 + s as u32, w, d, n, m);
    }
    fn two(&mut self, op: u32, w: Width, d: Reg, n: Reg, m: Reg) {
        self.i(0x1AC0_0000 | sf(w) | rm(m) | op << 10 | rn(n) | rd(d));
    }
    /// `d = n / m`, unsigned; 0 if `m` is 0.
    pub fn udiv(&mut self, w: Width, d: Reg, n: Reg, m: Reg) {
        self.two(2, w, d, n, m);
    }
    /// `d = n / m`, signed; 0 if `m` is 0.
    pub fn sdiv(&mut self, w: Width, d: Reg, n: Reg, m: Reg) {
        self.two(3, w, d, n, m);
    }
    /// `d = a + n * m`
    pub fn madd(&mut self, w: Width, d: Reg, n: Reg, m: Reg, a: Reg) {
        self.i(0x1B00_0000 | sf(w) | rm(m) | u32::from(a.0) << 10 | rn(n) | rd(d));
    }
    /// `d = a - n * m`
    pub fn msub(&mut self, w: Width, d: Reg, n: Reg, m: Reg, a: Reg) {
        self.i(0x1B00_8000 | sf(w) | rm(m) | u32::from(a.0) << 10 | rn(n) | rd(d));
    }
    /// `d = n * m`
    pub fn mul(&mut self, w: Width, d: Reg, n: Reg, m: Reg) {
        self.madd(w, d, n, m, ZR);
    }
    /// `d` = the upper 64 bits of `n * m`, signed.
    pub fn smulh(&mut self, d: Reg, n: Reg, m: Reg) {
        self.i(0x9B40_7C00 | rm(m) | rn(n) | rd(d));
    }
    fn one(&mut self, op: u32, w: Width, d: Reg, n: Reg) {
        self.i(0x5AC0_0000 | sf(w) | op << 10 | rn(n) | rd(d));
    }
    /// Reverses the bytes.
    pub fn rev(&mut self, w: Width, d: Reg, n: Reg) {
        self.one(2 + w as u32, w, d, n);
    }
    /// Reverses the bytes of each 16 bits.
    pub fn rev16(&mut self, w: Width, d: Reg, n: Reg) {
        self.one(1, w, d, n);
    }
    /// `d` = number of zeros above the highest one of `n`.
    pub fn clz(&mut self, w: Width, d: Reg, n: Reg) {
        self.one(4, w, d, n);
    }
    /// `d` = number of bits below the sign of `n` that equal it.
    pub fn cls(&mut self, w: Width, d: Reg, n: Reg) {
        self.one(5, w, d, n);
    }
    /// `d` = `n` if the condition holds, otherwise `m`.
    pub fn csel(&mut self, w: Width, d: Reg, n: Reg, m: Reg, c: Cond) {
        self.i(0x1A80_0000 | sf(w) | rm(m) | (c as u32) << 12 | rn(n) | rd(d));
    }
    /// `d` = 1 if the condition holds, otherwise 0.
    pub fn cset(&mut self, w: Width, d: Reg, c: Cond) {
        self.csinc(w, d, ZR, ZR, c.negated());
    }
    /// `d` = `n` if the condition holds, otherwise `m + 1`.
    pub fn csinc(&mut self, w: Width, d: Reg, n: Reg, m: Reg, c: Cond) {
        self.i(0x1A80_0400 | sf(w) | rm(m) | (c as u32) << 12 | rn(n) | rd(d));
    }

    // Control flow.

    /// Jumps to the label: at most 128 MiB away.
    pub fn b(&mut self, l: Label) {
        self.to(0x1400_0000, Distance::Branch26, l);
    }
    /// Calls the code at the label.
    pub fn bl(&mut self, l: Label) {
        self.to(0x9400_0000, Distance::Branch26, l);
    }
    /// Jumps to the label, at most 1 MiB away, if the condition holds.
    pub fn b_cond(&mut self, c: Cond, l: Label) {
        self.to(0x5400_0000 | c as u32, Distance::Branch19, l);
    }
    /// Jumps to the label, at most 1 MiB away, if `t` is 0.
    pub fn cbz(&mut self, w: Width, t: Reg, l: Label) {
        self.to(0x3400_0000 | sf(w) | rd(t), Distance::Branch19, l);
    }
    /// Jumps to the label, at most 1 MiB away, unless `t` is 0.
    pub fn cbnz(&mut self, w: Width, t: Reg, l: Label) {
        self.to(0x3500_0000 | sf(w) | rd(t), Distance::Branch19, l);
    }
    /// Jumps to the label, at most 32 KiB away, if bit `n` of `t` is 0.
    pub fn tbz(&mut self, t: Reg, n: u32, l: Label) {
        self.to(0x3600_0000 | Self::bit(n) | rd(t), Distance::Branch14, l);
    }
    /// Jumps to the label, at most 32 KiB away, unless bit `n` of `t` is 0.
    pub fn tbnz(&mut self, t: Reg, n: u32, l: Label) {
        self.to(0x3700_0000 | Self::bit(n) | rd(t), Distance::Branch14, l);
    }
    fn bit(n: u32) -> u32 {
        debug_assert!(n < 64);
        n >> 5 << 31 | (n & 31) << 19
    }
    fn out(&mut self, word: u32, to: u64) {
        self.relocs.push(Reloc {
            at: self.here(),
            field: Field::Branch26,
            to,
        });
        self.i(word);
    }
    /// Jumps to an address outside of the code, at most 128 MiB away.
    pub fn b_abs(&mut self, to: u64) {
        self.out(0x1400_0000, to);
    }
    /// Calls an address outside of the code, at most 128 MiB away.
    pub fn bl_abs(&mut self, to: u64) {
        self.out(0x9400_0000, to);
    }
    /// Jumps to the address in `n`.
    pub fn br(&mut self, n: Reg) {
        self.i(0xD61F_0000 | rn(n));
    }
    /// Calls the address in `n`.
    pub fn blr(&mut self, n: Reg) {
        self.i(0xD63F_0000 | rn(n));
    }
    /// Returns to the address in [`LR`].
    pub fn ret(&mut self) {
        self.i(0xD65F_0000 | rn(LR));
    }
    /// An instruction that must not be reached.
    pub fn udf(&mut self) {
        self.i(0);
    }
    /// Stops in a debugger.
    pub fn brk(&mut self, n: u16) {
        self.i(0xD420_0000 | u32::from(n) << 5);
    }
    /// Instructions without effect up to a multiple of `n`, a power of two of at least 4.
    pub fn align(&mut self, n: u32) {
        while !self.here().is_multiple_of(n) {
            self.i(0xD503_201F);
        }
    }
    /// Later loads are done behind all loads before it.
    pub fn dmb_ishld(&mut self) {
        self.i(0xD503_39BF);
    }
    /// Later accesses are done behind all accesses before it.
    pub fn dmb_ish(&mut self) {
        self.i(0xD503_3BBF);
    }
    /// Later instructions are fetched again.
    pub fn isb(&mut self) {
        self.i(0xD503_3FDF);
    }
    /// Eight bytes of data: the address of the label.
    pub fn address_of(&mut self, l: Label) {
        self.addresses.push((self.here(), l));
        self.i(0);
        self.i(0);
    }
    /// Four bytes of data: the distance of the label from an offset, in bytes.
    pub fn distance(&mut self, from: u32, l: Label) {
        self.to(0, Distance::From(from), l);
    }

    // Doubles.

    /// `t = [n + disp]`
    pub fn load_d(&mut self, t: Vec64, n: Reg, disp: i64) {
        self.access(0x3C40_0000, Size::X, t.0.into(), n, disp);
    }
    /// `[n + disp] = t`
    pub fn store_d(&mut self, t: Vec64, n: Reg, disp: i64) {
        self.access(0x3C00_0000, Size::X, t.0.into(), n, disp);
    }
    /// `d = n op m`
    pub fn float(&mut self, op: Float, d: Vec64, n: Vec64, m: Vec64) {
        let m = u32::from(m.0) << 16;
        self.i(0x1E60_0000 | (op as u32) << 10 | m | u32::from(n.0) << 5 | u32::from(d.0));
    }
    /// `d = n`
    pub fn fmov(&mut self, d: Vec64, n: Vec64) {
        self.i(0x1E60_4000 | u32::from(n.0) << 5 | u32::from(d.0));
    }
    /// `d = n` without its sign.
    pub fn fabs(&mut self, d: Vec64, n: Vec64) {
        self.i(0x1E60_C000 | u32::from(n.0) << 5 | u32::from(d.0));
    }
    /// Copies the bits of `n`.
    pub fn fmov_from(&mut self, d: Reg, n: Vec64) {
        self.i(0x9E66_0000 | u32::from(n.0) << 5 | rd(d));
    }
    /// Copies the bits of `n`.
    pub fn fmov_to(&mut self, d: Vec64, n: Reg) {
        self.i(0x9E67_0000 | rn(n) | u32::from(d.0));
    }
    /// `d = n`, a signed integer, as a double.
    pub fn scvtf(&mut self, d: Vec64, n: Reg) {
        self.i(0x9E62_0000 | rn(n) | u32::from(d.0));
    }
    /// Compares; if either is not a number, `Vs`, `Lt`, `Le`, `Hs` and `Hi` hold.
    pub fn fcmp(&mut self, n: Vec64, m: Vec64) {
        self.i(0x1E60_2000 | u32::from(m.0) << 16 | u32::from(n.0) << 5);
    }
    /// `d` = number of set bits of each of the eight bytes of `n`.
    pub fn cnt(&mut self, d: Vec64, n: Vec64) {
        self.i(0x0E20_5800 | u32::from(n.0) << 5 | u32::from(d.0));
    }
    /// `d` = sum of the eight bytes of `n`.
    pub fn addv(&mut self, d: Vec64, n: Vec64) {
        self.i(0x0E31_B800 | u32::from(n.0) << 5 | u32::from(d.0));
    }
}
