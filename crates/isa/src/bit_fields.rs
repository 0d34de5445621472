//! The bit syntax as rows: flags of segments, segments of `bs_create_bin`, commands of `bs_match`.

use crate::value::Value;

/// Bits of the flags of a segment.
pub mod flags {
    /// The compiler knew that the segment begins at a whole byte; nothing here relies on that.
    pub const ALIGNED: u64 = 1;
    /// Least significant byte first.
    pub const LITTLE: u64 = 2;
    /// An integer with a sign.
    pub const SIGNED: u64 = 4;
    /// A hint in generic code; nothing here reads it.
    pub const EXACT: u64 = 8;
    /// Bytes in the order of the machine.
    pub const NATIVE: u64 = 16;
    /// Names of the flags in the operands of generic instructions.
    pub const NAMES: &[(&str, u64)] = &[
        ("aligned", ALIGNED),
        ("little", LITTLE),
        ("signed", SIGNED),
        ("exact", EXACT),
        ("native", NATIVE),
    ];
}

/// Words of a segment in the list of `bs_create_bin`: kind, unit, flags, value, size. The upper
/// half of the flags is the number of the segment in the source.
pub const SEGMENT_WORDS: usize = 5;

/// The kind of a segment's value and size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Both are read as sources.
    Terms,
    /// The value is an address, the size a number of bytes.
    Bytes,
}

macro_rules! segments {
    ($($c:ident $n:literal $name:literal $content:ident;)*) => {
        /// Kinds of segments.
        pub mod seg { $(pub const $c: u64 = $n;)* }
        /// Names of the kinds in generic code, and what their segments hold; the index is the kind.
        pub const SEGMENTS: &[(&str, Content)] = &[$(($name, Content::$content)),*];
        const _: () = { let mut n = 0; $(assert!($n == n); n += 1;)* let _ = n; };
    };
}
segments! {
    INTEGER 0 "integer" Terms;
    FLOAT 1 "float" Terms;
    BINARY 2 "binary" Terms;
    APPEND 3 "append" Terms;
    PRIVATE_APPEND 4 "private_append" Terms;
    STRING 5 "string" Bytes;
    UTF8 6 "utf8" Terms;
    UTF16 7 "utf16" Terms;
    UTF32 8 "utf32" Terms;
}

/// A segment of `bs_create_bin`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// One of [`seg`].
    pub kind: u64,
    pub unit: u64,
    /// Bits of [`flags`].
    pub flags: u64,
    /// Its number in the source, from 1.
    pub number: u32,
    /// A source. For a string: the address of its bytes, as [`Value::N`].
    pub value: Value,
    /// A source. For a string: its number of bytes, as [`Value::N`].
    pub size: Value,
}

impl Segment {
    /// Returns the segment of the words of a list; `None` if there is no such kind.
    pub fn of(words: &[u64]) -> Option<Segment> {
        let &[kind, unit, flags, value, size] = words else {
            return None;
        };
        let operand = match SEGMENTS.get(usize::try_from(kind).ok()?)?.1 {
            Content::Terms => Value::of_source,
            Content::Bytes => Value::N,
        };
        Some(Segment {
            kind,
            unit,
            flags: flags & 0xFFFF_FFFF,
            number: (flags >> 32) as u32,
            value: operand(value),
            size: operand(size),
        })
    }
    /// Returns the segment as words of the list.
    pub fn words(&self) -> [u64; SEGMENT_WORDS] {
        let flags = self.flags | u64::from(self.number) << 32;
        let (value, size) = (self.value.source_word(), self.size.source_word());
        [self.kind, self.unit, flags, value, size]
    }
    /// Returns the values that the segment reads.
    pub fn reads(&self) -> impl Iterator<Item = Value> + use<> {
        [self.value, self.size]
            .into_iter()
            .filter(|v| !matches!(v, Value::N(_)))
    }
}

/// An operand of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// A pattern of bits to match.
    Bits,
    Unit,
    /// Number of X registers that hold terms: the command may collect.
    Live,
    Flags,
    /// A term.
    Term,
    /// A register that is written, encoded as a source.
    Write,
}

macro_rules! commands {
    ($($c:ident $n:literal $name:literal [$($f:ident),*];)*) => {
        /// Numbers of commands.
        pub mod cmd { $(pub const $c: u64 = $n;)* }
        /// Names of the commands in generic code, and their operands; the index is the number.
        pub const COMMANDS: &[(&str, &[Field])] = &[$(($name, &[$(Field::$f),*])),*];
        const _: () = { let mut n = 0; $(assert!($n == n); n += 1;)* let _ = n; };
    };
}
commands! {
    ENSURE_AT_LEAST 0 "ensure_at_least" [Bits, Unit];
    ENSURE_EXACTLY 1 "ensure_exactly" [Bits];
    INTEGER 2 "integer" [Live, Flags, Bits, Write];
    BINARY 3 "binary" [Live, Flags, Bits, Write];
    SKIP 4 "skip" [Bits];
    GET_TAIL 5 "get_tail" [Live, Unit, Write];
    EQ 6 "=:=" [Bits, Term];
}

/// Maximum number of operands of a command.
const MOST_FIELDS: usize = 4;

/// Returns the length of a command in words, with its operands; `None` if there is no such command.
pub fn command_words(number: u64) -> Option<usize> {
    let row = COMMANDS.get(usize::try_from(number).ok()?)?;
    Some(1 + row.1.len())
}

/// A command of `bs_match`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// One of [`cmd`].
    pub number: u64,
    operands: [Value; MOST_FIELDS],
}

impl Command {
    /// Splits a list into its commands; `None` if one of them does not exist.
    pub fn all(mut words: &[u64]) -> Option<Vec<Command>> {
        let mut out = Vec::new();
        while let [number, rest @ ..] = words {
            let fields = COMMANDS.get(usize::try_from(*number).ok()?)?.1;
            let mut operands = [Value::N(0); MOST_FIELDS];
            for ((f, &w), to) in fields
                .iter()
                .zip(rest.get(..fields.len())?)
                .zip(&mut operands)
            {
                *to = match f {
                    Field::Write => Value::of_source(w),
                    Field::Term => Value::C(w),
                    _ => Value::N(w),
                };
            }
            out.push(Command {
                number: *number,
                operands,
            });
            words = &rest[fields.len()..];
        }
        Some(out)
    }
    /// Returns its name in generic code.
    pub fn name(&self) -> &'static str {
        COMMANDS[self.number as usize].0
    }
    fn fields(&self) -> &'static [Field] {
        COMMANDS[self.number as usize].1
    }
    /// Returns its operands, in the order of its row.
    pub fn operands(&self) -> &[Value] {
        &self.operands[..self.fields().len()]
    }
    /// Returns its operand with that meaning.
    pub fn field(&self, f: Field) -> Option<Value> {
        let at = self.fields().iter().position(|&g| g == f)?;
        Some(self.operands[at])
    }
    /// Returns the register that it writes.
    pub fn write(&self) -> Option<Value> {
        self.field(Field::Write)
    }
}
