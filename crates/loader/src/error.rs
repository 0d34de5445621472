//! Why a file can't be loaded, the place in it, and the message of stock.
//!
//! For the program that loads it, every fault of a file is the atom `badfile`. In addition stock
//! writes a text to the logger, which [`LoadError::log_text`] returns. `Display` is for Purlin's
//! own tools and gives the exact fault.

use crate::text::atom_text;
use purlin_isa::genops;
use purlin_isa::release::OTHER_RELEASE_ADVISED;
use purlin_messages::{self as messages, Code};
use std::fmt;

/// The chunk that has a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    Atoms,
    Code,
    Debug,
    Exports,
    Imports,
    Lambdas,
    Lines,
    Literals,
    Locals,
    Records,
    Types,
}

/// The error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The flow of control breaks a rule on which running the code relies.
    Flow(&'static str),
    /// Not an IFF form of type BEAM, or chunks that don't add up.
    Header,
    Missing(Table),
    Corrupt(Table),
    /// The caller wanted another module than the file holds (its name).
    ModuleName(String),
    /// Made for a later release: the highest opcode in the header.
    TooNew(u32),
    /// The code ends within an instruction or without `int_code_end`.
    Truncated,
    UnknownOpcode(u8),
    /// An instruction that no compiler since OTP 21 emits.
    Obsolete,
    /// A tag or extended tag that doesn't exist, or a number that is too large for its field.
    Encoding,
    /// Number of the operand, from 1, that isn't of the kind that the instruction takes.
    Operand(u8),
    /// An extended list whose length doesn't fit the instruction.
    ListLength(u32),
    Atom(u32),
    Literal(u32),
    Import(u32),
    /// An import whose arity isn't that of the call.
    ImportArity(u32),
    Lambda(u32),
    Type(u32),
    Register(u32),
    Line(u32),
    /// Offset and length in bits of a piece that isn't inside the string table.
    StringRange(u64, u64),
    Label(u32),
    LabelTwice(u32),
    /// A label that is used but defined nowhere.
    LabelUndefined(u32),
    /// A call, export or fun that names a label which doesn't start a function.
    NotFunction(u32),
    /// `func_info` that isn't between two labels, or code outside a function.
    FunctionStructure,
    /// Number of functions in the header.
    TooManyFunctions(u32),
    /// Number of functions that were found, and the number in the header.
    TooFewFunctions(u32, u32),
}

/// A fault and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadError(Box<Inner>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Inner {
    fault: Fault,
    offset: Option<u32>,
    op: Option<u8>,
    function: Option<(String, u32)>,
}

impl LoadError {
    /// An error without a place.
    pub fn new(fault: Fault) -> Self {
        LoadError(Box::new(Inner {
            fault,
            offset: None,
            op: None,
            function: None,
        }))
    }

    pub(crate) fn in_code(
        fault: Fault,
        offset: usize,
        op: u8,
        function: Option<(String, u32)>,
    ) -> Self {
        let offset = u32::try_from(offset).ok();
        LoadError(Box::new(Inner {
            fault,
            offset,
            op: Some(op),
            function,
        }))
    }

    pub fn fault(&self) -> &Fault {
        &self.0.fault
    }

    /// Returns the code of the message about it.
    pub fn code(&self) -> Code {
        match self.fault() {
            Fault::Header => messages::NOT_BEAM,
            Fault::Missing(_) => messages::MISSING_CHUNK,
            Fault::Corrupt(_) => messages::DAMAGED_CHUNK,
            Fault::ModuleName(_) => messages::OTHER_MODULE,
            Fault::TooNew(_) => messages::TOO_NEW,
            Fault::Obsolete => messages::TOO_OLD,
            Fault::Flow(_) => messages::UNSAFE_CODE,
            _ => messages::DAMAGED_CODE,
        }
    }

    /// Returns name and arity of the function that has the fault.
    pub fn function(&self) -> Option<(&str, u32)> {
        self.0
            .function
            .as_ref()
            .map(|(name, arity)| (name.as_str(), *arity))
    }

    /// Returns the atom that `erlang:prepare_loading/2` and its like return as `{error, Atom}`.
    pub fn reason(&self) -> &'static str {
        "badfile"
    }

    /// Returns the text that stock sends to the logger. `module` is the name that the caller gave,
    /// `release` the OTP release whose libraries run ("25").
    pub fn log_text(&self, module: &str, release: &str) -> String {
        let (line, message) = self.stock_message(release);
        let place = match self.function() {
            Some((name, arity)) => {
                format!("function {}:{}/{arity}", atom_text(module), atom_text(name))
            }
            None => format!("module {}", atom_text(module)),
        };
        format!("beam/beam_load.c({line}): Error loading {place}:\n  {message}\n")
    }

    /// Returns line and message of stock's report. Anything that stock's reader of instructions
    /// refuses, it calls an invalid opcode.
    fn stock_message(&self, release: &str) -> (u32, String) {
        let recompile = || {
            let other = match release.parse() {
                Ok(n) if OTHER_RELEASE_ADVISED.is_in(n) => " or update your Erlang/OTP version",
                _ => "",
            };
            format!("please re-compile this module with an Erlang/OTP {release} compiler{other}")
        };
        match &self.0.fault {
            Fault::Header => (144, "corrupt file header".into()),
            Fault::Missing(table) => (
                table.stock_line(true),
                format!("missing {}", table.stock_name()),
            ),
            Fault::Corrupt(table) => (
                table.stock_line(false),
                format!("corrupt {}", table.stock_name()),
            ),
            Fault::ModuleName(name) => (
                180,
                format!("module name in object code is {}", atom_text(name)),
            ),
            Fault::TooNew(opcode) => (
                184,
                format!(
                    "This BEAM file was compiled for a later version of the runtime system than the current \
                     (Erlang/OTP {release}).\n  To fix this, {}.\n  (Use of opcode {opcode}; this emulator \
                     supports only up to {}.)",
                    recompile(),
                    genops::MAX
                ),
            ),
            Fault::Obsolete => (551, recompile()),
            Fault::Operand(_) | Fault::Flow(_) => (575, "no specific operation found".into()),
            Fault::Import(index) => (428, format!("invalid import table index {index}")),
            Fault::LabelTwice(label) => (419, format!("label {label} defined more than once")),
            Fault::LabelUndefined(label) => (481, format!("label {label} not resolved")),
            Fault::TooManyFunctions(header) => (
                519,
                format!("too many functions in module (header said {header})"),
            ),
            Fault::TooFewFunctions(found, header) => (
                581,
                format!("too few functions ({found}) in module (header said {header})"),
            ),
            _ => (400, "invalid opcode".into()),
        }
    }
}

impl Table {
    fn stock_name(self) -> &'static str {
        match self {
            Table::Atoms => "atom table",
            Table::Code => "code chunk",
            Table::Debug => "BEAM debug information table",
            Table::Exports => "export table",
            Table::Imports => "import table",
            Table::Lambdas => "lambda table",
            Table::Lines => "line table",
            Table::Literals => "literal table",
            Table::Locals => "locals table",
            Table::Records => "table of records",
            Table::Types => "type table",
        }
    }

    fn stock_line(self, missing: bool) -> u32 {
        match (self, missing) {
            (Table::Atoms, true) => 146,
            (Table::Atoms, false) => 150,
            (Table::Code, true) => 152,
            (Table::Code, false) => 154,
            (Table::Exports, true) => 156,
            (Table::Exports, false) => 158,
            (Table::Imports, true) => 160,
            (Table::Imports, false) => 162,
            (Table::Lambdas, _) => 164,
            (Table::Lines, _) => 166,
            (Table::Literals, _) => 168,
            (Table::Locals, _) => 170,
            (Table::Types, _) => 172,
            (Table::Records, _) => 174,
            (Table::Debug, _) => 176,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Header => write!(f, "not a BEAM file, or its chunks don't add up"),
            Fault::Missing(table) => write!(f, "no {}", table.stock_name()),
            Fault::Corrupt(table) => write!(f, "damaged {}", table.stock_name()),
            Fault::ModuleName(name) => write!(f, "the file holds module {}", atom_text(name)),
            Fault::TooNew(opcode) => write!(f, "made for a later release (opcode {opcode})"),
            Fault::Truncated => write!(f, "the code ends too early"),
            Fault::UnknownOpcode(op) => write!(f, "no instruction has opcode {op}"),
            Fault::Obsolete => write!(f, "the instruction is older than OTP 21"),
            Fault::Encoding => write!(f, "malformed operand"),
            Fault::Flow(what) => write!(f, "{what}"),
            Fault::Operand(number) => write!(f, "operand {number} is of the wrong kind"),
            Fault::ListLength(count) => write!(f, "a list of {count} operands doesn't fit here"),
            Fault::Atom(index) => write!(f, "no atom {index}"),
            Fault::Literal(index) => write!(f, "no literal {index}"),
            Fault::Import(index) => write!(f, "no import {index}"),
            Fault::ImportArity(index) => write!(f, "import {index} has another arity"),
            Fault::Lambda(index) => write!(f, "no fun {index}, or one of other size"),
            Fault::Type(index) => write!(f, "no type {index}"),
            Fault::Register(number) => write!(f, "register number {number} is too large"),
            Fault::Line(index) => write!(f, "no line item {index}"),
            Fault::StringRange(offset, bits) => {
                write!(f, "{bits} bits at {offset} are not inside the string table")
            }
            Fault::Label(label) => write!(f, "no label {label}"),
            Fault::LabelTwice(label) => write!(f, "label {label} is defined twice"),
            Fault::LabelUndefined(label) => write!(f, "label {label} is used but not defined"),
            Fault::NotFunction(label) => write!(f, "label {label} does not start a function"),
            Fault::FunctionStructure => {
                write!(f, "code outside a function, or a malformed function head")
            }
            Fault::TooManyFunctions(header) => {
                write!(f, "more functions than the {header} of the header")
            }
            Fault::TooFewFunctions(found, header) => {
                write!(f, "{found} functions where the header says {header}")
            }
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.fault)?;
        if let Some(offset) = self.0.offset {
            write!(f, " (code offset {offset}")?;
            if let Some(op) = self.0.op.filter(|&op| op != 0) {
                write!(f, ", {}", genops::name(op))?;
            }
            if let Some((name, arity)) = self.function() {
                write!(f, ", in {}/{arity}", atom_text(name))?;
            }
            write!(f, ")")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

impl From<Fault> for LoadError {
    fn from(fault: Fault) -> Self {
        LoadError::new(fault)
    }
}
