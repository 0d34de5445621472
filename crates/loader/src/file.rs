//! A parsed `.beam` file with checked tables.
//!
//! Atom numbers are those of the file: 1 is the module's name, 0 (the empty list as an operand)
//! never occurs in a table. Chunks that the loader doesn't use remain accessible as bytes by their
//! name.

use crate::debug::{self, DebugItem};
use crate::error::{Fault, LoadError, Table};
use crate::iff::{self, Chunk};
use crate::reader::{Compact, Reader, tag};
use md5::{Digest, Md5};
use purlin_isa::genops;
use purlin_isa::known::{Known, known};
use purlin_isa::types::{Type, kind};
use purlin_term::etf;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

/// Maximum number of arguments of a function.
pub(crate) const MAX_ARITY: u32 = 255;

/// Maximum number of characters of an atom.
const MAX_ATOM_CHARS: usize = 255;

/// A function of another module (or a native) that the code calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Import {
    /// Atom number.
    pub module: u32,
    /// Atom number.
    pub function: u32,
    pub arity: u32,
}

/// A function of this module with its entry label; also used for those that aren't exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Export {
    /// Atom number.
    pub function: u32,
    pub arity: u32,
    pub label: u32,
}

/// A fun that the code makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lambda {
    /// Atom number of the function that holds the body.
    pub function: u32,
    /// Arguments of that function: those of the fun, then the captured values.
    pub arity: u32,
    /// Entry label of that function.
    pub label: u32,
    /// Number of the fun within the module, as `erlang:fun_info(F, index)` gives it.
    pub index: u32,
    /// Number of values that it captures.
    pub num_free: u32,
    /// As `erlang:fun_info(F, uniq)` gives it.
    pub old_uniq: u32,
}

/// A line with this number or a higher one is an unknown place, as in stock, which has 24 bits for
/// it.
const UNKNOWN_LINE: u32 = (1 << 24) - 1;

/// The line table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lines {
    /// File (index of `names`) and line. Item 0 is the unknown place, (0, 0).
    pub items: Vec<(u32, u32)>,
    /// File names. Name 0 is the module's name with `.erl`, which the file omits.
    pub names: Vec<String>,
    /// The compiler requests that lines are counted, whatever the emulator's options say.
    pub always_counted: bool,
    /// Number of `line` instructions, according to the compiler.
    pub instr_count: u32,
}

/// The type table, undecoded: the layout of the entries depends on the version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Types {
    pub version: u32,
    /// Number of types; typed operands are checked against it.
    pub count: u32,
    /// Offset of the entries in the chunk `Type`.
    pub entries_at: usize,
}

/// A native record that the module declares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Atom number.
    pub name: u32,
    pub exported: bool,
    /// Atom number of each field and its default, in the order of the declaration.
    pub fields: Vec<(u32, Option<FieldDefault>)>,
}

/// The default value of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldDefault {
    Nil,
    /// Atom number.
    Atom(u32),
    /// An integer: its sign, and its magnitude in little-endian order.
    Int {
        negative: bool,
        magnitude: Vec<u8>,
    },
    /// Index of the literal.
    Literal(u32),
}

/// A parsed file. See the head of this module.
pub struct BeamFile<'a> {
    data: Cow<'a, [u8]>,
    chunks: Vec<Chunk>,
    /// The atoms; atom `n` is at `n - 1`, see [`BeamFile::atom`].
    pub atoms: Vec<String>,
    pub imports: Vec<Import>,
    pub exports: Vec<Export>,
    pub lambdas: Vec<Lambda>,
    /// `None` if the file has no line table, or one of an unknown version: then `line` instructions
    /// mean nothing.
    pub lines: Option<Lines>,
    /// `None` if the file has no types, or types of an unknown version.
    pub types: Option<Types>,
    /// No two of them have the same name.
    pub records: Vec<Record>,
    /// The description of each `debug_line`, in the order of their numbers.
    pub debug: Vec<DebugItem>,
    /// Whether the file has a chunk of them.
    pub has_debug: bool,
    /// One more than the highest label.
    pub label_count: u32,
    pub function_count: u32,
    /// The highest opcode in use, according to the header.
    pub max_opcode: u32,
    code: Range<usize>,
    literal_data: Vec<u8>,
    literals: Vec<Range<usize>>,
}

impl<'a> BeamFile<'a> {
    /// Returns the types that operands refer to by index.
    pub fn type_table(&self) -> Vec<Type> {
        let data = self.types.as_ref().zip(self.chunk(b"Type"));
        data.and_then(|(t, d)| type_entries(t, d))
            .unwrap_or_default()
    }

    /// Parses a file. The bytes are borrowed, unless they are gzipped.
    pub fn parse(data: &'a [u8]) -> Result<Self, LoadError> {
        let data = iff::unpack(data)?;
        let chunks = iff::chunks(&data)?;
        let mut file = BeamFile {
            data,
            chunks,
            atoms: Vec::new(),
            imports: Vec::new(),
            exports: Vec::new(),
            lambdas: Vec::new(),
            lines: None,
            types: None,
            records: Vec::new(),
            debug: Vec::new(),
            has_debug: false,
            label_count: 0,
            function_count: 0,
            max_opcode: 0,
            code: 0..0,
            literal_data: Vec::new(),
            literals: Vec::new(),
        };
        // The order decides which of several faults is reported; it is stock's.
        file.parse_code_header()?;
        file.parse_atoms()?;
        file.parse_imports()?;
        file.parse_exports()?;
        file.parse_lambdas()?;
        file.parse_literals()?;
        file.parse_lines()?;
        file.parse_types()?;
        file.parse_debug()?;
        file.parse_records()?;
        if file.max_opcode > u32::from(genops::MAX) {
            return Err(Fault::TooNew(file.max_opcode).into());
        }
        Ok(file)
    }

    /// Returns the same with its own copy of the bytes.
    pub fn into_owned(self) -> BeamFile<'static> {
        BeamFile {
            data: Cow::Owned(self.data.into_owned()),
            chunks: self.chunks,
            atoms: self.atoms,
            imports: self.imports,
            exports: self.exports,
            lambdas: self.lambdas,
            lines: self.lines,
            types: self.types,
            records: self.records,
            debug: self.debug,
            has_debug: self.has_debug,
            label_count: self.label_count,
            function_count: self.function_count,
            max_opcode: self.max_opcode,
            code: self.code,
            literal_data: self.literal_data,
            literals: self.literals,
        }
    }

    /// Returns the bytes of a chunk. An empty chunk counts as missing, as in stock.
    pub fn chunk(&self, name: &[u8; 4]) -> Option<&[u8]> {
        self.chunk_range(name).map(|range| &self.data[range])
    }

    /// Returns names and sizes in bytes of all chunks, in the order of the file.
    pub fn chunk_sizes(&self) -> impl Iterator<Item = ([u8; 4], usize)> + '_ {
        self.chunks.iter().map(|(name, range)| (*name, range.len()))
    }

    fn chunk_range(&self, name: &[u8; 4]) -> Option<Range<usize>> {
        let (_, range) = self.chunks.iter().rev().find(|(n, _)| n == name)?;
        (!range.is_empty()).then(|| range.clone())
    }

    /// Returns the module's name.
    pub fn module(&self) -> &str {
        self.atoms.first().map_or("", String::as_str)
    }

    /// Returns the text of the atom with this number, which must come from a table or an operand of
    /// this file; the empty text for a number that is none.
    pub fn atom(&self, number: u32) -> &str {
        self.atoms
            .get((number as usize).wrapping_sub(1))
            .map_or("", String::as_str)
    }

    /// Returns the loader's knowledge about an imported function, given its index in `imports`.
    pub fn known(&self, import: usize) -> Option<&'static Known> {
        let i = self.imports[import];
        known(self.atom(i.module), self.atom(i.function), i.arity)
    }

    /// Returns the bytes of the instructions.
    pub fn code(&self) -> &[u8] {
        &self.data[self.code.clone()]
    }

    /// Returns the string table, to which `bs_put_string`, `bs_match_string` and `bs_create_bin`
    /// refer.
    pub fn strings(&self) -> &[u8] {
        self.chunk(b"StrT").unwrap_or_default()
    }

    pub fn literal_count(&self) -> usize {
        self.literals.len()
    }

    /// Returns a literal in external term format, including the version byte.
    pub fn literal(&self, index: u32) -> Option<&[u8]> {
        self.literals
            .get(index as usize)
            .map(|range| &self.literal_data[range.clone()])
    }

    /// Returns the module attributes in external term format.
    pub fn attributes(&self) -> Option<&[u8]> {
        self.chunk(b"Attr")
    }

    /// Returns the compilation information in external term format.
    pub fn compile_info(&self) -> Option<&[u8]> {
        self.chunk(b"CInf")
    }

    /// Returns file and line of a line item; `None` if the place is unknown.
    pub fn line(&self, item: u32) -> Option<(&str, u32)> {
        let lines = self.lines.as_ref()?;
        let &(file, line) = lines.items.get(item as usize)?;
        let name = lines.names.get(file as usize)?;
        (line != 0).then_some((name.as_str(), line))
    }

    /// Returns the functions that aren't exported. Nothing that runs needs them, so they are read
    /// on demand.
    pub fn locals(&self) -> Result<Vec<Export>, LoadError> {
        match self.chunk(b"LocT") {
            None => Ok(Vec::new()),
            Some(data) => Ok(self
                .read_exports(data)
                .ok_or(Fault::Corrupt(Table::Locals))?),
        }
    }

    /// Returns the checksum that `M:module_info(md5)` and `beam_lib:md5/1` give. It covers atoms,
    /// code, strings, imports, exports, funs (without their `old_uniq`), literals, meta data,
    /// records and debug information, as they are in the file. Computed on demand: it costs more
    /// than all other parsing.
    pub fn md5(&self) -> [u8; 16] {
        let mut md5 = Md5::new();
        for name in [
            b"Atom", b"AtU8", b"Code", b"StrT", b"ImpT", b"ExpT", b"FunT", b"LitT", b"Meta",
            b"Recs", b"DbgB",
        ] {
            let Some(data) = self.chunk(name) else {
                continue;
            };
            if name != b"FunT" {
                md5.update(data);
                continue;
            }
            let (count, entries) = data.split_at(data.len().min(4));
            md5.update(count);
            for entry in entries.chunks(LAMBDA_BYTES) {
                if entry.len() == LAMBDA_BYTES {
                    md5.update(&entry[..LAMBDA_BYTES - 4]);
                    md5.update([0; 4]);
                } else {
                    md5.update(entry);
                }
            }
        }
        md5.finalize().into()
    }

    fn parse_code_header(&mut self) -> Result<(), Fault> {
        let range = self
            .chunk_range(b"Code")
            .ok_or(Fault::Missing(Table::Code))?;
        self.read_code_header(range)
            .ok_or(Fault::Corrupt(Table::Code))
    }

    fn read_code_header(&mut self, range: Range<usize>) -> Option<()> {
        let mut reader = Reader::new(&self.data[range.clone()]);
        let head_size = reader.u32()? as usize;
        let mut head = Reader::new(reader.bytes(head_size)?);
        let instruction_set = head.u32()?;
        let (max_opcode, label_count, function_count) = (head.u32()?, head.u32()?, head.u32()?);
        // A label takes two bytes of code where it is defined, and a compiler skips few numbers. So
        // a count far beyond the size of the code is false, and would only cost memory.
        let code_bytes = reader.remaining();
        let most_labels = code_bytes.saturating_mul(4) + 1024;
        let most_functions = code_bytes;
        if instruction_set != 0
            || label_count as usize > most_labels
            || function_count as usize > most_functions
        {
            return None;
        }
        self.code = range.start + reader.pos()..range.end;
        (self.max_opcode, self.label_count, self.function_count) =
            (max_opcode, label_count, function_count);
        Some(())
    }

    fn parse_atoms(&mut self) -> Result<(), Fault> {
        let atoms = match (self.chunk(b"AtU8"), self.chunk(b"Atom")) {
            (Some(data), _) => read_atoms(data),
            (None, Some(data)) => read_latin1_atoms(data),
            (None, None) => return Err(Fault::Missing(Table::Atoms)),
        };
        self.atoms = atoms
            .filter(|atoms| !atoms.is_empty())
            .ok_or(Fault::Corrupt(Table::Atoms))?;
        Ok(())
    }

    pub(crate) fn is_atom(&self, number: u32) -> bool {
        number != 0 && number as usize <= self.atoms.len()
    }

    fn parse_imports(&mut self) -> Result<(), Fault> {
        let data = self.chunk(b"ImpT").ok_or(Fault::Missing(Table::Imports))?;
        self.imports = self
            .read_imports(data)
            .ok_or(Fault::Corrupt(Table::Imports))?;
        Ok(())
    }

    fn read_imports(&self, data: &[u8]) -> Option<Vec<Import>> {
        let mut reader = Reader::new(data);
        let count = reader.count(12)?;
        let mut imports = Vec::with_capacity(count);
        for _ in 0..count {
            let import = Import {
                module: reader.u32()?,
                function: reader.u32()?,
                arity: reader.u32()?,
            };
            if !self.is_atom(import.module)
                || !self.is_atom(import.function)
                || import.arity > MAX_ARITY
            {
                return None;
            }
            imports.push(import);
        }
        Some(imports)
    }

    fn parse_exports(&mut self) -> Result<(), Fault> {
        let data = self.chunk(b"ExpT").ok_or(Fault::Missing(Table::Exports))?;
        self.exports = self
            .read_exports(data)
            .ok_or(Fault::Corrupt(Table::Exports))?;
        Ok(())
    }

    fn read_exports(&self, data: &[u8]) -> Option<Vec<Export>> {
        let mut reader = Reader::new(data);
        let count = reader.count(12)?;
        let mut exports = Vec::with_capacity(count);
        for _ in 0..count {
            let export = Export {
                function: reader.u32()?,
                arity: reader.u32()?,
                label: reader.u32()?,
            };
            if !self.is_atom(export.function)
                || export.arity > MAX_ARITY
                || export.label >= self.label_count
            {
                return None;
            }
            exports.push(export);
        }
        Some(exports)
    }

    fn parse_lambdas(&mut self) -> Result<(), Fault> {
        let Some(data) = self.chunk(b"FunT") else {
            return Ok(());
        };
        self.lambdas = self
            .read_lambdas(data)
            .ok_or(Fault::Corrupt(Table::Lambdas))?;
        Ok(())
    }

    fn read_lambdas(&self, data: &[u8]) -> Option<Vec<Lambda>> {
        let mut reader = Reader::new(data);
        let count = reader.count(LAMBDA_BYTES)?;
        let mut lambdas = Vec::with_capacity(count);
        for _ in 0..count {
            let lambda = Lambda {
                function: reader.u32()?,
                arity: reader.u32()?,
                label: reader.u32()?,
                index: reader.u32()?,
                num_free: reader.u32()?,
                old_uniq: reader.u32()?,
            };
            if !self.is_atom(lambda.function)
                || lambda.arity > MAX_ARITY
                || lambda.num_free > lambda.arity
                || lambda.label >= self.label_count
            {
                return None;
            }
            lambdas.push(lambda);
        }
        Some(lambdas)
    }

    fn parse_literals(&mut self) -> Result<(), Fault> {
        let Some(data) = self.chunk(b"LitT") else {
            return Ok(());
        };
        let (data, literals) = read_literals(data).ok_or(Fault::Corrupt(Table::Literals))?;
        (self.literal_data, self.literals) = (data, literals);
        Ok(())
    }

    fn parse_lines(&mut self) -> Result<(), Fault> {
        let Some(data) = self.chunk(b"Line") else {
            return Ok(());
        };
        self.lines = read_lines(data, self.module()).ok_or(Fault::Corrupt(Table::Lines))?;
        Ok(())
    }

    fn parse_types(&mut self) -> Result<(), Fault> {
        let Some(data) = self.chunk(b"Type") else {
            return Ok(());
        };
        self.types = read_types(data).ok_or(Fault::Corrupt(Table::Types))?;
        Ok(())
    }

    fn parse_debug(&mut self) -> Result<(), Fault> {
        let Some(data) = self.chunk(b"DbgB") else {
            return Ok(());
        };
        self.debug = debug::read(self, data).ok_or(Fault::Corrupt(Table::Debug))?;
        self.has_debug = true;
        Ok(())
    }

    fn parse_records(&mut self) -> Result<(), Fault> {
        let Some(data) = self.chunk(b"Recs") else {
            return Ok(());
        };
        self.records = self
            .read_records(data)
            .ok_or(Fault::Corrupt(Table::Records))?;
        Ok(())
    }

    /// The table has a version, the number of records and of all their fields. Then each record is
    /// an instruction with its name, whether it is exported, and a list of alternating fields and
    /// defaults, where the number 0 stands for no default.
    fn read_records(&self, data: &[u8]) -> Option<Vec<Record>> {
        /// Minimum size of a record and of a field, in bytes.
        const RECORD_BYTES: usize = 5;
        const FIELD_BYTES: usize = 2;
        let mut reader = Reader::new(data);
        if reader.u32()? != 0 {
            return None;
        }
        let count = reader.u32()? as usize;
        let mut left = reader.u32()? as usize;
        if count > reader.remaining() / RECORD_BYTES || left > reader.remaining() / FIELD_BYTES {
            return None;
        }
        let atom = |(t, value): (u8, Compact)| match value {
            Compact::Small(n) if t == tag::A && self.is_atom(n) => Some(n),
            _ => None,
        };
        let mut records: Vec<Record> = Vec::with_capacity(count);
        let mut names = HashSet::new();
        for _ in 0..count {
            if reader.u8()? != genops::CALL_LAST {
                return None;
            }
            let name = atom(reader.compact()?)?;
            let exported = match self.atom(atom(reader.compact()?)?) {
                "true" => true,
                "false" => false,
                _ => return None,
            };
            if !names.insert(name) || reader.compact()? != (tag::Z, LIST) {
                return None;
            }
            let (tag::U, Compact::Small(words)) = reader.compact()? else {
                return None;
            };
            let n = words as usize / 2;
            if words % 2 != 0 || n > left {
                return None;
            }
            left -= n;
            let mut fields = Vec::with_capacity(n);
            for _ in 0..n {
                let field = atom(reader.compact()?)?;
                let default = match reader.compact()? {
                    (tag::U, Compact::Small(0)) => None,
                    (tag::A, Compact::Small(0)) => Some(FieldDefault::Nil),
                    (tag::I, value) => Some(integer(value)),
                    (tag::Z, LITERAL) => match reader.compact()? {
                        (tag::U, Compact::Small(n)) if (n as usize) < self.literals.len() => {
                            Some(FieldDefault::Literal(n))
                        }
                        _ => return None,
                    },
                    other => Some(FieldDefault::Atom(atom(other)?)),
                };
                fields.push((field, default));
            }
            let mut keys: Vec<u32> = fields.iter().map(|f| f.0).collect();
            keys.sort_unstable();
            if keys.windows(2).any(|w| w[0] == w[1]) {
                return None;
            }
            records.push(Record {
                name,
                exported,
                fields,
            });
        }
        (reader.remaining() == 0 && left == 0).then_some(records)
    }
}

/// The values of compact tag Z for lists and literals.
pub(crate) const LIST: Compact = Compact::Small(1);
pub(crate) const LITERAL: Compact = Compact::Small(4);

pub(crate) fn integer(value: Compact) -> FieldDefault {
    let (negative, mut magnitude) = match value {
        Compact::Small(n) => (false, n.to_le_bytes().to_vec()),
        Compact::Long(bytes) => {
            let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
            let mut carry = negative;
            let digit = |b: &u8| {
                if !negative {
                    return *b;
                }
                // The two's complement is inverted from the lowest byte on.
                let (d, over) = (!b).overflowing_add(u8::from(carry));
                carry = over;
                d
            };
            (negative, bytes.iter().rev().map(digit).collect())
        }
    };
    while magnitude.last() == Some(&0) {
        magnitude.pop();
    }
    FieldDefault::Int {
        negative,
        magnitude,
    }
}

const LAMBDA_BYTES: usize = 24;

/// A positive count is followed by texts with a length byte each; a negative one (OTP 28) by texts
/// with a compact number as their length.
fn read_atoms(data: &[u8]) -> Option<Vec<String>> {
    let mut reader = Reader::new(data);
    let count = reader.i32()?;
    let compact = count < 0;
    let count = count.unsigned_abs() as usize;
    if count > reader.remaining() {
        return None;
    }
    let mut atoms = Vec::with_capacity(count);
    for _ in 0..count {
        let size = if compact {
            reader.compact_u32()?
        } else {
            u32::from(reader.u8()?)
        };
        let text = std::str::from_utf8(reader.bytes(size as usize)?).ok()?;
        if text.len() > MAX_ATOM_CHARS && text.chars().count() > MAX_ATOM_CHARS {
            return None;
        }
        atoms.push(text.to_owned());
    }
    Some(atoms)
}

fn read_latin1_atoms(data: &[u8]) -> Option<Vec<String>> {
    let mut reader = Reader::new(data);
    let count = reader.count(1)?;
    let mut atoms = Vec::with_capacity(count);
    for _ in 0..count {
        let size = usize::from(reader.u8()?);
        atoms.push(reader.bytes(size)?.iter().map(|&b| char::from(b)).collect());
    }
    Some(atoms)
}

/// The first word is the size of the table when inflated, or 0 if it isn't compressed (OTP 28). The
/// table: a count, then for each literal its size and its bytes.
fn read_literals(chunk: &[u8]) -> Option<(Vec<u8>, Vec<Range<usize>>)> {
    let mut reader = Reader::new(chunk);
    let inflated_size = reader.u32()? as usize;
    let rest = reader.bytes(reader.remaining())?;
    let data = if inflated_size == 0 {
        rest.to_vec()
    } else {
        iff::inflate(rest, inflated_size)?
    };
    let mut reader = Reader::new(&data);
    let count = reader.count(4)?;
    let mut literals = Vec::with_capacity(count);
    for _ in 0..count {
        let size = reader.u32()? as usize;
        let start = reader.pos();
        if reader.bytes(size)?.first() != Some(&etf::VERSION) {
            return None;
        }
        literals.push(start..start + size);
    }
    Some((data, literals))
}

/// A table of unknown version is skipped, as in stock: `Some(None)`.
fn read_lines(data: &[u8], module: &str) -> Option<Option<Lines>> {
    let mut reader = Reader::new(data);
    if reader.u32()? != 0 {
        return Some(None);
    }
    const ALWAYS_COUNTED: u32 = 2;
    let flags = reader.u32()?;
    let instr_count = reader.u32()?;
    let item_count = reader.u32()? as usize;
    let name_count = reader.u32()? as usize;
    if item_count > reader.remaining() || name_count > reader.remaining() / 2 {
        return None;
    }
    let mut items = Vec::with_capacity(item_count + 1);
    items.push((0, 0));
    let mut file = 0;
    while items.len() <= item_count {
        match reader.compact()? {
            (tag::A, value) => {
                file = value
                    .to_u32()
                    .filter(|&index| index as usize <= name_count)?;
            }
            (tag::I, value) => {
                let line = match value {
                    Compact::Small(line) => line,
                    Compact::Long(bytes) => {
                        let line = crate::reader::signed(bytes).filter(|&line| line >= 0)?;
                        u32::try_from(line).unwrap_or(UNKNOWN_LINE)
                    }
                };
                items.push(if line < UNKNOWN_LINE {
                    (file, line)
                } else {
                    (0, 0)
                });
            }
            _ => return None,
        }
    }
    let mut names = Vec::with_capacity(name_count + 1);
    names.push(format!("{module}.erl"));
    for _ in 0..name_count {
        let size = usize::from(reader.u16()?);
        let name = std::str::from_utf8(reader.bytes(size)?).ok()?;
        // An empty name stands for the module's own, as in stock.
        names.push(if name.is_empty() {
            names[0].clone()
        } else {
            name.to_owned()
        });
    }
    Some(Some(Lines {
        items,
        names,
        always_counted: flags & ALWAYS_COUNTED != 0,
        instr_count,
    }))
}

/// Returns the entries of a type table, according to its version; `None` if it is damaged, since
/// types only help to choose faster instructions.
fn type_entries(t: &Types, data: &[u8]) -> Option<Vec<Type>> {
    const LOWER: u16 = 1 << 13;
    const UPPER: u16 = 1 << 14;
    const UNIT: u16 = 1 << 15;
    let mut reader = Reader::new(data);
    reader.skip(t.entries_at);
    let mut out = Vec::with_capacity(t.count as usize);
    for _ in 0..t.count {
        let mut bits = reader.u16()?;
        // Before the third version, match contexts had a bit of their own; later, native records
        // got the thirteenth.
        if t.version <= 2 {
            bits = bits & 3 | (bits & !3) >> 1;
        }
        if t.version <= 3 {
            bits = bits & 0xFFF | bits << 1 & (LOWER | UPPER | UNIT);
        }
        let mut kinds = bits & kind::ANY;
        if t.version <= 3 && kinds == kind::ANY & !kind::RECORD {
            kinds = kind::ANY;
        }
        let mut made = Type { kinds, ..Type::ANY };
        if t.version == 1 {
            let (least, most) = (reader.i64()?, reader.i64()?);
            if least <= most {
                (made.least, made.most) = (Some(least), Some(most));
            }
        } else {
            if bits & LOWER != 0 {
                made.least = Some(reader.i64()?);
            }
            if bits & UPPER != 0 {
                made.most = Some(reader.i64()?);
            }
            if bits & UNIT != 0 {
                made.unit = u16::from(reader.u8()?) + 1;
            }
        }
        out.push(made);
    }
    Some(out)
}

/// Versions 1 (OTP 25) to 4 (OTP 29) begin alike. A table of another version is skipped, as in
/// stock (`Some(None)`): types only help to choose faster instructions.
fn read_types(data: &[u8]) -> Option<Option<Types>> {
    /// Entries of version 1 have a fixed size; those of later versions are at least two bytes.
    const V1_ENTRY_BYTES: usize = 18;
    const MIN_ENTRY_BYTES: usize = 2;
    let mut reader = Reader::new(data);
    let version = reader.u32()?;
    let entry_bytes = match version {
        1 => V1_ENTRY_BYTES,
        2..=4 => MIN_ENTRY_BYTES,
        _ => return Some(None),
    };
    let count = reader.count(entry_bytes)?;
    (count > 0).then(|| {
        Some(Types {
            version,
            count: count as u32,
            entries_at: reader.pos(),
        })
    })
}
