//! The table of debug information (chunk `DbgB`): for each `debug_line` of the code, the size of
//! its frame, the places of its variables, and the calls on that line.
//!
//! The entries are encoded as `call` instructions: the kind of entry, then its value. An item
//! begins with the size of the frame.

use crate::file::{BeamFile, FieldDefault, LIST, LITERAL, integer};
use crate::reader::{Compact, Reader, tag};
use purlin_isa::genops;

/// The frame at a `debug_line`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DebugFrame {
    None,
    /// The line is the head of the function.
    Entry,
    Of(u32),
}

/// A variable's name or value, or a part of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DebugValue {
    X(u32),
    Y(u32),
    Constant(FieldDefault),
}

/// A call on a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DebugCall {
    /// Module, function, arity.
    Remote(DebugValue, DebugValue, u32),
    /// Function, arity.
    Local(DebugValue, u32),
    /// The value of a variable.
    Value(DebugValue),
}

/// The description of a `debug_line`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DebugItem {
    pub frame: DebugFrame,
    /// Names and places.
    pub vars: Vec<(DebugValue, DebugValue)>,
    pub calls: Vec<DebugCall>,
}

/// The kinds of entries, in their order within an item. Later ones are skipped.
mod entry {
    pub(super) const FRAME: u32 = 0;
    pub(super) const VARS: u32 = 1;
    pub(super) const CALLS: u32 = 2;
}

/// Added to the arity of a call of a function of the module.
const LOCAL: u32 = 256;
/// Minimum size of an entry in bytes.
const ENTRY_BYTES: usize = 3;

/// An operand of an entry.
enum Part {
    Number(u32),
    Value(DebugValue),
}

impl Part {
    fn value(self) -> Option<DebugValue> {
        match self {
            Part::Value(v) => Some(v),
            Part::Number(_) => None,
        }
    }
    /// Returns the name in a call: an atom, or a literal.
    fn name(self) -> Option<DebugValue> {
        let named = |v: &DebugValue| {
            matches!(
                v,
                DebugValue::Constant(FieldDefault::Atom(_) | FieldDefault::Literal(_))
            )
        };
        self.value().filter(named)
    }
}

/// Reads the items of the chunk; `None` if its version is unknown.
pub(crate) fn read(file: &BeamFile, data: &[u8]) -> Option<Vec<DebugItem>> {
    let mut reader = Reader::new(data);
    if reader.u32()? != 1 {
        return Some(Vec::new());
    }
    let mut count = reader.count(ENTRY_BYTES)?;
    let mut left = reader.u32()?;
    let mut items: Vec<DebugItem> = Vec::with_capacity(count);
    let mut last = u32::MAX;
    while count > 0 || left > 0 {
        if reader.u8()? != genops::CALL {
            return None;
        }
        let kind = reader.compact_u32()?;
        if kind == entry::FRAME {
            count = count.checked_sub(1)?;
            let frame = match part(file, &mut reader)? {
                Part::Number(n) => DebugFrame::Of(n),
                Part::Value(DebugValue::Constant(FieldDefault::Nil)) => DebugFrame::None,
                Part::Value(DebugValue::Constant(FieldDefault::Atom(n)))
                    if file.atom(n) == "entry" =>
                {
                    DebugFrame::Entry
                }
                _ => return None,
            };
            items.push(DebugItem {
                frame,
                vars: Vec::new(),
                calls: Vec::new(),
            });
            last = kind;
            continue;
        }
        if kind < last || reader.compact()? != (tag::Z, LIST) {
            return None;
        }
        last = kind;
        let n = reader.compact_u32()?;
        left = left.checked_sub(n)?;
        let mut parts = (0..n).map(|_| part(file, &mut reader));
        let item = items.last_mut()?;
        match kind {
            entry::VARS => {
                while let Some(name) = parts.next() {
                    let (name, place) = (name?.value()?, parts.next()??.value()?);
                    item.vars.push((name, place));
                }
            }
            entry::CALLS => {
                while let Some(first) = parts.next() {
                    let call = match first? {
                        Part::Number(n) if n >= LOCAL => {
                            DebugCall::Local(parts.next()??.name()?, arity(n - LOCAL)?)
                        }
                        Part::Number(n) => {
                            let (module, function) = (parts.next()??, parts.next()??);
                            DebugCall::Remote(module.name()?, function.name()?, arity(n)?)
                        }
                        Part::Value(v) => DebugCall::Value(v),
                    };
                    item.calls.push(call);
                }
            }
            _ => {
                for p in parts {
                    p?;
                }
            }
        }
    }
    Some(items)
}

fn arity(n: u32) -> Option<u32> {
    (n <= crate::file::MAX_ARITY).then_some(n)
}

fn part(file: &BeamFile, reader: &mut Reader) -> Option<Part> {
    let value = match reader.compact()? {
        (tag::U, n) => return n.to_u32().map(Part::Number),
        (tag::X, n) => DebugValue::X(n.to_u32()?),
        (tag::Y, n) => DebugValue::Y(n.to_u32()?),
        (tag::A, Compact::Small(0)) => DebugValue::Constant(FieldDefault::Nil),
        (tag::A, n) => {
            let n = n.to_u32().filter(|&n| file.is_atom(n))?;
            DebugValue::Constant(FieldDefault::Atom(n))
        }
        (tag::I, n) => DebugValue::Constant(integer(n)),
        (tag::Z, LITERAL) => {
            let n = reader.compact_u32()?;
            if n as usize >= file.literal_count() {
                return None;
            }
            DebugValue::Constant(FieldDefault::Literal(n))
        }
        _ => return None,
    };
    Some(Part::Value(value))
}
