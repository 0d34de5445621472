//! The `Code` chunk as generic instructions, every operand checked.
//!
//! All operands of a module are in one vector, those of an instruction side by side. An extended
//! list is one operand that names a range, which directly follows. So decoding allocates four
//! vectors for a module, however large.
//!
//! Everything that is checked here need not be checked again:
//! - Operands are of the kind that the table of generic opcodes states.
//! - Indices of atoms, literals, imports, lambdas, types and line items exist, as do pieces of the
//!   string table.
//! - Register numbers are below 1024.
//! - Labels are defined once, and those in use are defined.
//! - Calls, exports and lambdas lead to the entry of a function.
//! - Each function begins with a label, `func_info` and its entry label; `int_code_end` ends the
//!   code.

use crate::error::{Fault, LoadError};
use crate::file::{BeamFile, MAX_ARITY};
use crate::reader::{Compact, Reader, signed, tag, unsigned};
use purlin_isa::genops::{self, Kind, Status};

/// The number of X registers, of Y registers and of float registers.
const MAX_REGS: u32 = 1024;

/// In [`GenericCode::labels`]: no instruction defines this label.
pub const NO_INSTR: u32 = u32::MAX;

/// One operand. Atom numbers and other indices are those of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    X(u32),
    Y(u32),
    /// X register and the index of its value's type.
    TypedX(u32, u32),
    /// Y register and the index of its value's type.
    TypedY(u32, u32),
    /// Float register.
    Fr(u32),
    /// Atom number, from 1.
    Atom(u32),
    Nil,
    Int(i64),
    /// Index of [`GenericCode::bigints`].
    BigInt(u32),
    Literal(u32),
    /// 0 stands for "none": the instruction raises instead of jumping.
    Label(u32),
    /// Unsigned number: count, size, index, or flags.
    U(u64),
    /// An unsigned number of more than 64 bits, which is only allowed as a size: no memory holds
    /// it.
    Huge,
    /// Heap to reserve. A plain number of words has this form too.
    Alloc {
        words: u32,
        floats: u32,
        funs: u32,
    },
    /// Extended list; see [`GenericCode::list`].
    List {
        start: u32,
        len: u32,
    },
}

/// One instruction. [`GenericCode::args`] returns its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instr {
    /// Generic opcode, always one of the table.
    pub op: u8,
    argc: u8,
    start: u32,
    /// Offset in bytes from the start of the code.
    pub offset: u32,
}

/// An integer that doesn't fit into 64 bits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BigInt {
    pub negative: bool,
    /// The absolute value in little-endian order, without zeros at the end.
    pub magnitude: Vec<u8>,
}

/// A function of the module and its instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    /// Atom number.
    pub name: u32,
    pub arity: u32,
    /// The label before `func_info`, where a call that matches no clause ends.
    pub func_label: u32,
    /// The label that calls go to.
    pub entry_label: u32,
    /// Index of the first instruction, the one that defines `func_label`.
    pub start: u32,
    /// Index after the last instruction.
    pub end: u32,
}

/// Decoded code. See the head of this module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GenericCode {
    pub instrs: Vec<Instr>,
    operands: Vec<Operand>,
    pub bigints: Vec<BigInt>,
    pub functions: Vec<Function>,
    /// For each label the index of the instruction that defines it, or [`NO_INSTR`].
    pub labels: Vec<u32>,
}

impl Operand {
    /// Returns the operand without its type, if it has one.
    pub fn untyped(self) -> Operand {
        match self {
            Operand::TypedX(register, _) => Operand::X(register),
            Operand::TypedY(register, _) => Operand::Y(register),
            other => other,
        }
    }

    /// Whether it names an X or Y register.
    pub(crate) fn is_reg(self) -> bool {
        matches!(
            self,
            Operand::X(_) | Operand::Y(_) | Operand::TypedX(..) | Operand::TypedY(..)
        )
    }

    /// Whether it is a constant in the code.
    pub(crate) fn is_constant(self) -> bool {
        use Operand::*;
        matches!(self, Atom(_) | Nil | Int(_) | BigInt(_) | Literal(_))
    }
}

impl GenericCode {
    /// Decodes and checks the code of a file.
    pub fn decode(file: &BeamFile) -> Result<GenericCode, LoadError> {
        GenericCode::default().reuse(file)
    }

    /// Does the same in the memory of another module's code, whose content is lost. This saves most
    /// of the time when many modules are loaded, since fresh memory costs more than decoding into
    /// it.
    pub fn reuse(self, file: &BeamFile) -> Result<GenericCode, LoadError> {
        Decoder::new(file, self).run()
    }

    /// Returns the operands of an instruction of this code, as many as its row in the table has
    /// kinds.
    pub fn args(&self, instr: &Instr) -> &[Operand] {
        let start = instr.start as usize;
        &self.operands[start..start + usize::from(instr.argc)]
    }

    /// Returns the members of an extended list of this code; none for any other operand.
    pub fn list(&self, operand: Operand) -> &[Operand] {
        match operand {
            Operand::List { start, len } => &self.operands[start as usize..(start + len) as usize],
            _ => &[],
        }
    }
}

/// The state of a label.
mod seen {
    pub(crate) const USED: u8 = 1;
    /// Used as the target of a call.
    pub(crate) const CALLED: u8 = 2;
    pub(crate) const ENTRY: u8 = 4;
}

struct Decoder<'f, 'a> {
    file: &'f BeamFile<'a>,
    reader: Reader<'f>,
    code: GenericCode,
    /// Bits of `seen` for each label.
    seen: Vec<u8>,
    /// Set when a method returns `None`. It is not part of the return values, so that those fit
    /// into registers.
    fault: Option<Fault>,
    /// `func_info` was read, and its entry label must follow.
    expect_entry: bool,
}

impl<'f, 'a> Decoder<'f, 'a> {
    fn new(file: &'f BeamFile<'a>, mut code: GenericCode) -> Self {
        let bytes = file.code().len();
        let labels = file.label_count as usize;
        code.instrs.clear();
        code.operands.clear();
        code.bigints.clear();
        code.functions.clear();
        code.labels.clear();
        // Rough averages of compiled code; the vectors grow if a module differs.
        code.instrs.reserve(bytes / 4);
        code.operands.reserve(bytes * 3 / 4);
        code.labels.resize(labels, NO_INSTR);
        Decoder {
            file,
            reader: Reader::new(file.code()),
            code,
            seen: vec![0; labels],
            fault: None,
            expect_entry: false,
        }
    }

    fn run(mut self) -> Result<GenericCode, LoadError> {
        loop {
            let offset = self.reader.pos();
            let Some(op) = self.reader.u8() else {
                return Err(self.error(Fault::Truncated, offset, 0));
            };
            if self.instr(op, offset).is_none() {
                let fault = self.fault.take().unwrap_or(Fault::Truncated);
                return Err(self.error(fault, offset, op));
            }
            if op == genops::INT_CODE_END {
                break;
            }
        }
        self.finish()
    }

    #[cold]
    fn error(&self, fault: Fault, offset: usize, op: u8) -> LoadError {
        let function = self
            .code
            .functions
            .last()
            .map(|f| (self.file.atom(f.name).to_owned(), f.arity));
        LoadError::in_code(fault, offset, op, function)
    }

    #[cold]
    fn fail<T>(&mut self, fault: Fault) -> Option<T> {
        self.fault = Some(fault);
        None
    }

    fn check(&mut self, holds: bool, fault: impl FnOnce() -> Fault) -> Option<()> {
        if holds { Some(()) } else { self.fail(fault()) }
    }

    /// Reads the rest of an instruction. `None` with no fault set: the data ended.
    #[inline]
    fn instr(&mut self, op: u8, offset: usize) -> Option<()> {
        let Some(row) = genops::row(op) else {
            return self.fail(Fault::UnknownOpcode(op));
        };
        if row.status == Status::Gone {
            return self.fail(Fault::Obsolete);
        }
        let start = self.code.operands.len();
        for (i, &kind) in row.kinds.iter().enumerate() {
            if kind.is_list() {
                self.list(kind)?;
                continue;
            }
            if let Some(operand) = self.short(kind) {
                self.code.operands.push(operand);
                continue;
            }
            let operand = self.operand()?;
            let Some(operand) = self.checked(kind, operand) else {
                let number = i as u8 + 1;
                self.fault.get_or_insert(Fault::Operand(number));
                return None;
            };
            self.code.operands.push(operand);
        }
        self.special(op, start)?;
        let argc = row.kinds.len() as u8;
        self.code.instrs.push(Instr {
            op,
            argc,
            start: start as u32,
            offset: offset as u32,
        });
        Some(())
    }

    /// Reads an operand of the form that is by far the commonest for its kind: a register or number
    /// below 16. For anything else it reads nothing and returns `None`. The kinds of an opcode are
    /// always the same, so the processor predicts this branch, unlike one by the tag.
    #[inline(always)]
    fn short(&mut self, kind: Kind) -> Option<Operand> {
        match kind {
            Kind::Src | Kind::Dst | Kind::Reg => {
                let first = self.reader.peek()?;
                let number = u32::from(first >> 4);
                let operand = match first & 0x0f {
                    tag::X => Operand::X(number),
                    tag::Y => Operand::Y(number),
                    _ => return None,
                };
                self.reader.skip(1);
                Some(operand)
            }
            Kind::U | Kind::Live | Kind::Arity | Kind::Flags => {
                let first = self.reader.peek()?;
                if first & 0x0f != tag::U {
                    return None;
                }
                self.reader.skip(1);
                Some(Operand::U(u64::from(first >> 4)))
            }
            _ => None,
        }
    }

    /// Reads one simple operand and checks everything that doesn't depend on the instruction.
    #[inline(always)]
    fn operand(&mut self) -> Option<Operand> {
        let (tag, value) = self.compact()?;
        Some(match tag {
            tag::X => Operand::X(self.register(value)?),
            tag::Y => Operand::Y(self.register(value)?),
            tag::U => match value {
                Compact::Small(n) => Operand::U(u64::from(n)),
                Compact::Long(bytes) => unsigned(bytes).map_or(Operand::Huge, Operand::U),
            },
            tag::A => match self.word(value)? {
                0 => Operand::Nil,
                n if n as usize <= self.file.atoms.len() => Operand::Atom(n),
                n => return self.fail(Fault::Atom(n)),
            },
            tag::F => {
                let label = self.word(value)?;
                let Some(seen) = self.seen.get_mut(label as usize) else {
                    return self.fail(Fault::Label(label));
                };
                *seen |= seen::USED;
                Operand::Label(label)
            }
            tag::I => match value {
                Compact::Small(n) => Operand::Int(i64::from(n)),
                Compact::Long(bytes) => self.integer(bytes),
            },
            tag::Z => return self.extended(value),
            _ => return self.fail(Fault::Encoding),
        })
    }

    #[inline(always)]
    fn compact(&mut self) -> Option<(u8, Compact<'f>)> {
        self.reader.compact()
    }

    #[inline(always)]
    fn word(&mut self, value: Compact) -> Option<u32> {
        match value.to_u32() {
            Some(n) => Some(n),
            None => self.fail(Fault::Encoding),
        }
    }

    #[inline(always)]
    fn register(&mut self, value: Compact) -> Option<u32> {
        let number = self.word(value)?;
        if number < MAX_REGS {
            Some(number)
        } else {
            self.fail(Fault::Register(number))
        }
    }

    fn unsigned_word(&mut self) -> Option<u32> {
        match self.compact()? {
            (tag::U, value) => self.word(value),
            _ => self.fail(Fault::Encoding),
        }
    }

    fn integer(&mut self, bytes: &[u8]) -> Operand {
        match signed(bytes) {
            Some(n) => Operand::Int(n),
            None => {
                self.code.bigints.push(BigInt::from_twos_complement(bytes));
                Operand::BigInt(self.code.bigints.len() as u32 - 1)
            }
        }
    }

    /// Reads the operands of the extended tag. 0 was a float long ago. 1 is the list, which has its
    /// own method since it is only allowed where the instruction has one.
    fn extended(&mut self, value: Compact) -> Option<Operand> {
        match self.word(value)? {
            2 => {
                let index = self.unsigned_word()?;
                self.check(index < MAX_REGS, || Fault::Register(index))?;
                Some(Operand::Fr(index))
            }
            3 => self.alloc_list(),
            4 => {
                let index = self.unsigned_word()?;
                self.check((index as usize) < self.file.literal_count(), || {
                    Fault::Literal(index)
                })?;
                Some(Operand::Literal(index))
            }
            5 => {
                let (tag, value) = self.compact()?;
                self.check(tag == tag::X || tag == tag::Y, || Fault::Encoding)?;
                let register = self.register(value)?;
                let index = self.unsigned_word()?;
                match &self.file.types {
                    // Without a table (stripped, or of unknown version) the type says nothing.
                    None if tag == tag::X => Some(Operand::X(register)),
                    None => Some(Operand::Y(register)),
                    Some(types) if index >= types.count => self.fail(Fault::Type(index)),
                    Some(_) if tag == tag::X => Some(Operand::TypedX(register, index)),
                    Some(_) => Some(Operand::TypedY(register, index)),
                }
            }
            _ => self.fail(Fault::Encoding),
        }
    }

    /// Pairs of what is allocated (0 words, 1 floats, 2 funs) and how much.
    fn alloc_list(&mut self) -> Option<Operand> {
        let count = self.unsigned_word()?;
        self.check(count <= 3, || Fault::ListLength(count))?;
        let mut sums = [0u32; 3];
        for _ in 0..count {
            let what = self.unsigned_word()?;
            let number = self.unsigned_word()?;
            self.check(number <= MAX_ALLOC, || Fault::Encoding)?;
            match sums.get_mut(what as usize) {
                // Three times the maximum fits into the word.
                Some(sum) => *sum += number,
                None => return self.fail(Fault::Encoding),
            }
        }
        let [words, floats, funs] = sums;
        // No sum that is computed from them overflows, nor do the words of a frame added to them.
        let all = u64::from(words) + u64::from(floats) * 2 + u64::from(funs) * 8;
        self.check(all <= u64::from(MAX_ALLOC) * 2, || Fault::Encoding)?;
        Some(Operand::Alloc {
            words,
            floats,
            funs,
        })
    }

    /// Checks an operand against the kind that the instruction takes there. `None` with no fault
    /// set: it is of another kind.
    #[inline(always)]
    fn checked(&mut self, kind: Kind, operand: Operand) -> Option<Operand> {
        use Operand::*;
        let fits = match (kind, operand) {
            (Kind::Src, Fr(_) | Label(_) | U(_) | Huge | Alloc { .. } | List { .. }) => false,
            (Kind::Src, _) => true,
            (
                Kind::Dst | Kind::Reg | Kind::FDst | Kind::FSrc,
                X(_) | Y(_) | TypedX(..) | TypedY(..),
            ) => true,
            (Kind::Fail, Label(_)) => true,
            (Kind::Target, Label(label)) => label != 0,
            (Kind::Def, U(label)) => return self.define(label).map(|()| operand),
            (Kind::U | Kind::Flags, U(_)) => true,
            (Kind::Live | Kind::Frame, U(n)) => n <= u64::from(MAX_REGS),
            (Kind::Arity, U(n)) => n <= u64::from(MAX_ARITY),
            (Kind::Y, Y(_) | TypedY(..)) => true,
            (Kind::Atom, Atom(_)) => true,
            (Kind::Line, U(n)) => return self.line(n).map(|()| operand),
            (Kind::Func, Label(label)) => {
                // `operand` has checked that the label is one.
                self.seen[label as usize] |= seen::CALLED;
                true
            }
            (Kind::Import, U(n)) => {
                if n >= self.file.imports.len() as u64 {
                    return self.fail(Fault::Import(saturated(n)));
                }
                true
            }
            (Kind::Lambda, U(n)) => return self.lambda(n).map(|()| operand),
            (Kind::Alloc, Alloc { .. }) => true,
            (Kind::Alloc, U(n)) if n <= u64::from(MAX_ALLOC) => {
                return Some(Alloc {
                    words: n as u32,
                    floats: 0,
                    funs: 0,
                });
            }
            (Kind::FReg | Kind::FDst | Kind::FSrc, Fr(_)) => true,
            (Kind::FSrc, _) => operand.is_constant(),
            (Kind::FailOrAtom, Atom(_)) => true,
            (Kind::FailOrAtom, Label(_)) => true,
            (Kind::Tag, Atom(_)) => true,
            (Kind::Tag, U(n)) => return self.lambda(n).map(|()| operand),
            // The previous operand, the length, decides whether the piece is inside the table.
            (Kind::StrOff, U(_)) => true,
            (Kind::Size, U(_) | Huge) => true,
            (Kind::Size, _) => operand.is_reg() || operand.is_constant(),
            (Kind::Any, _) => true,
            _ => false,
        };
        fits.then_some(operand)
    }

    #[inline]
    fn define(&mut self, label: u64) -> Option<()> {
        let instr = self.code.instrs.len() as u32;
        match self.code.labels.get_mut(label as usize) {
            Some(slot) if label != 0 => {
                if *slot != NO_INSTR {
                    return self.fail(Fault::LabelTwice(label as u32));
                }
                *slot = instr;
                Some(())
            }
            _ => self.fail(Fault::Label(saturated(label))),
        }
    }

    #[inline]
    fn line(&mut self, item: u64) -> Option<()> {
        match &self.file.lines {
            Some(lines) if item >= lines.items.len() as u64 => {
                self.fail(Fault::Line(saturated(item)))
            }
            _ => Some(()),
        }
    }

    fn lambda(&mut self, index: u64) -> Option<()> {
        let known = index < self.file.lambdas.len() as u64;
        self.check(known, || Fault::Lambda(saturated(index)))
    }

    /// Reads an extended list: the operand itself, then its members.
    fn list(&mut self, kind: Kind) -> Option<()> {
        let (tag, value) = self.compact()?;
        self.check(tag == tag::Z && value == Compact::Small(1), || {
            Fault::Encoding
        })?;
        let len = self.unsigned_word()?;
        // A member takes at least a byte.
        self.check(len as usize <= self.reader.remaining(), || {
            Fault::ListLength(len)
        })?;
        let start = self.code.operands.len() as u32 + 1;
        self.code.operands.push(Operand::List { start, len });
        let members: &[Kind] = match kind {
            Kind::SrcList | Kind::EnvList => &[Kind::Src],
            Kind::PairList => &[Kind::Src, Kind::Src],
            Kind::FetchList => &[Kind::Src, Kind::Dst],
            Kind::ValueList => &[Kind::Src, Kind::Target],
            Kind::ArityList => &[Kind::U, Kind::Target],
            Kind::UpdateList => &[Kind::U, Kind::Src],
            Kind::YList => &[Kind::Y],
            Kind::SegList => &[Kind::Any; 6],
            _ => &[Kind::Any],
        };
        self.check(len % members.len() as u32 == 0, || Fault::ListLength(len))?;
        for _ in 0..len / members.len() as u32 {
            for &kind in members {
                let operand = self.operand()?;
                let Some(operand) = self.checked(kind, operand) else {
                    self.fault.get_or_insert(Fault::Encoding);
                    return None;
                };
                self.code.operands.push(operand);
            }
        }
        Some(())
    }

    /// Makes checks that concern more than one operand, or the place of the instruction.
    #[inline]
    fn special(&mut self, op: u8, start: usize) -> Option<()> {
        if self.expect_entry {
            self.check(op == genops::LABEL, || Fault::FunctionStructure)?;
        }
        match op {
            genops::LABEL => {
                if std::mem::take(&mut self.expect_entry)
                    && let Some(Operand::U(label)) = self.code.operands.get(start).copied()
                    && let Some(function) = self.code.functions.last_mut()
                {
                    function.entry_label = label as u32;
                    self.seen[label as usize] |= seen::ENTRY;
                }
                Some(())
            }
            genops::FUNC_INFO => self.function(start),
            genops::LINE | genops::INT_CODE_END => Some(()),
            _ if self.code.functions.is_empty() => self.fail(Fault::FunctionStructure),
            genops::CALL_EXT | genops::CALL_EXT_LAST | genops::CALL_EXT_ONLY => {
                let arity = self.number(start);
                self.import_arity(start + 1, arity)
            }
            genops::BIF0 => self.import_arity(start, 0),
            genops::BIF1 => self.import_arity(start + 1, 1),
            genops::BIF2 => self.import_arity(start + 1, 2),
            genops::BIF3 => self.import_arity(start + 1, 3),
            genops::GC_BIF1 => self.import_arity(start + 2, 1),
            genops::GC_BIF2 => self.import_arity(start + 2, 2),
            genops::GC_BIF3 => self.import_arity(start + 2, 3),
            genops::MAKE_FUN3 => {
                let captured = self.code.operands.len() - (start + 3);
                let lambda = self.number(start);
                let matches = self
                    .file
                    .lambdas
                    .get(lambda as usize)
                    .map(|l| l.num_free as usize);
                self.check(matches == Some(captured), || {
                    Fault::Lambda(saturated(lambda))
                })
            }
            genops::BS_PUT_STRING => {
                let (bytes, offset) = (self.number(start), self.number(start + 1));
                self.string(offset, bytes.saturating_mul(8))
            }
            genops::BS_MATCH_STRING => {
                let (bits, offset) = (self.number(start + 2), self.number(start + 3));
                self.string(offset, bits)
            }
            genops::BS_CREATE_BIN => self.segments(start + 6),
            _ => Some(()),
        }
    }

    /// Returns the unsigned number at that index of the operands.
    fn number(&self, at: usize) -> u64 {
        match self.code.operands.get(at) {
            Some(&Operand::U(n)) => n,
            _ => u64::MAX,
        }
    }

    fn import_arity(&mut self, at: usize, arity: u64) -> Option<()> {
        let index = self.number(at);
        let import = self.file.imports.get(index as usize);
        let same = import.is_some_and(|import| u64::from(import.arity) == arity);
        self.check(same, || Fault::ImportArity(saturated(index)))
    }

    fn string(&mut self, offset: u64, bits: u64) -> Option<()> {
        let end = offset.checked_add(bits.div_ceil(8));
        let inside = end.is_some_and(|end| end <= self.file.strings().len() as u64);
        self.check(inside, || Fault::StringRange(offset, bits))
    }

    /// Checks the segments of `bs_create_bin` whose bytes are in the string table: the value is the
    /// offset, the size the number of bytes.
    fn segments(&mut self, start: usize) -> Option<()> {
        for at in (start..self.code.operands.len()).step_by(6) {
            match self.code.operands[at] {
                Operand::Atom(n) if self.file.atom(n) == "string" => {}
                _ => continue,
            }
            let bytes = match self.code.operands[at + 5] {
                Operand::Int(n) => u64::try_from(n).unwrap_or(u64::MAX),
                Operand::U(n) => n,
                _ => u64::MAX,
            };
            self.string(self.number(at + 4), bytes.saturating_mul(8))?;
        }
        Some(())
    }

    /// Begins a function: `label`, an optional `line`, and now `func_info`.
    fn function(&mut self, start: usize) -> Option<()> {
        let instrs = &self.code.instrs;
        let before =
            instrs.len() - usize::from(instrs.last().is_some_and(|i| i.op == genops::LINE));
        let head = before.checked_sub(1).and_then(|i| instrs.get(i)).copied();
        let Some(head) = head.filter(|i| i.op == genops::LABEL) else {
            return self.fail(Fault::FunctionStructure);
        };
        let first = before as u32 - 1;
        // The entry label of a function isn't the head of the next.
        let shared = self.code.functions.last().is_some_and(|previous| {
            self.code.labels.get(previous.entry_label as usize) == Some(&first)
        });
        self.check(!shared, || Fault::FunctionStructure)?;
        let header_count = self.file.function_count;
        self.check(self.code.functions.len() < header_count as usize, || {
            Fault::TooManyFunctions(header_count)
        })?;
        if let Some(previous) = self.code.functions.last_mut() {
            previous.end = first;
        }
        let name = match self.code.operands.get(start + 1) {
            Some(&Operand::Atom(number)) => number,
            _ => 0,
        };
        self.code.functions.push(Function {
            name,
            arity: self.number(start + 2) as u32,
            func_label: self.number(head.start as usize) as u32,
            entry_label: 0,
            start: first,
            end: first,
        });
        self.expect_entry = true;
        Some(())
    }

    /// Makes the checks that are only possible when all code has been read.
    fn finish(mut self) -> Result<GenericCode, LoadError> {
        let end = self.reader.pos();
        let (found, header) = (self.code.functions.len() as u32, self.file.function_count);
        if found != header {
            return Err(self.error(
                Fault::TooFewFunctions(found, header),
                end,
                genops::INT_CODE_END,
            ));
        }
        if let Some(last) = self.code.functions.last_mut() {
            last.end = self.code.instrs.len() as u32 - 1;
        }
        // Label 0 is "none" and never defined.
        for label in 1..self.seen.len() {
            if self.seen[label] != 0 && self.code.labels[label] == NO_INSTR {
                return Err(Fault::LabelUndefined(label as u32).into());
            }
        }
        let called = self
            .seen
            .iter()
            .map(|&seen| seen & (seen::CALLED | seen::ENTRY) == seen::CALLED);
        let stray = called
            .into_iter()
            .position(|stray| stray)
            .map(|label| label as u32);
        let exports = self.file.exports.iter().map(|export| export.label);
        let mut tables = exports.chain(self.file.lambdas.iter().map(|lambda| lambda.label));
        let is_entry = |label: u32| {
            self.seen
                .get(label as usize)
                .is_some_and(|s| s & seen::ENTRY != 0)
        };
        if let Some(label) = stray.or_else(|| tables.find(|&label| !is_entry(label))) {
            return Err(Fault::NotFunction(label).into());
        }
        Ok(self.code)
    }
}

/// Maximum amount of heap that one instruction may reserve, of each sort, so that sums stay far
/// from overflow.
const MAX_ALLOC: u32 = 1 << 28;

fn saturated(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl BigInt {
    /// Converts from big-endian two's complement.
    fn from_twos_complement(bytes: &[u8]) -> BigInt {
        let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
        let mut carry = negative;
        let mut magnitude: Vec<u8> = bytes
            .iter()
            .rev()
            .map(|&byte| {
                if !negative {
                    return byte;
                }
                let (byte, overflow) = (!byte).overflowing_add(u8::from(carry));
                carry = overflow;
                byte
            })
            .collect();
        while magnitude.last() == Some(&0) {
            magnitude.pop();
        }
        BigInt {
            negative,
            magnitude,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_integers() {
        let cases: [(&[u8], bool, &[u8]); 4] = [
            (
                &[0, 0x80, 0, 0, 0, 0, 0, 0, 0],
                false,
                &[0, 0, 0, 0, 0, 0, 0, 0x80],
            ),
            (
                &[0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                true,
                &[1, 0, 0, 0, 0, 0, 0, 0x80],
            ),
            (
                &[0x80, 0, 0, 0, 0, 0, 0, 0, 0],
                true,
                &[0, 0, 0, 0, 0, 0, 0, 0, 0x80],
            ),
            (
                &[0xff, 0, 0, 0, 0, 0, 0, 0, 0],
                true,
                &[0, 0, 0, 0, 0, 0, 0, 0, 1],
            ),
        ];
        for (bytes, negative, magnitude) in cases {
            let expected = BigInt {
                negative,
                magnitude: magnitude.to_vec(),
            };
            assert_eq!(BigInt::from_twos_complement(bytes), expected);
        }
    }

    #[test]
    fn operands_are_small() {
        assert_eq!(size_of::<Operand>(), 16);
        assert_eq!(size_of::<Option<Operand>>(), 16);
        assert_eq!(size_of::<Instr>(), 12);
    }
}
