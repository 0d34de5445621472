//! Disassembler of loaded code, one instruction to a line.
//!
//! A line starts with the offset of the instruction in words. Registers print as `x3` and `y3`,
//! labels as `->` and an offset; the members of a list stand in brackets.

use super::load::{LoadFailure, prepare};
use super::{Module, opcode_at};
use purlin_isa::bit_fields::{Command, Segment};
use purlin_isa::codec::{Instruction, Members, Value};
use purlin_isa::ops::Kind;
use purlin_term::fun::{Export, FunEntry};
use purlin_term::print::{Style, format_term};
use purlin_term::{Term, atom};
use std::fmt::Write;

/// Maximum number of characters of a constant that are shown.
const MAX_CHARS: usize = 60;

/// Disassembles every function of a module file, prepared but not made current.
pub fn disasm_specific(bytes: &[u8]) -> Result<String, LoadFailure> {
    let m = prepared_module(bytes)?;
    let mut out = String::new();
    let _ = writeln!(out, "module {}", atom::name(m.name));
    for f in &m.functions {
        // SAFETY: the word of an atom.
        let name = unsafe { Term::from_raw(f.name) };
        let name = format_term(name, Style::Write, MAX_CHARS);
        let _ = writeln!(out, "\nfunction {name}/{} entry {}", f.arity, f.entry);
        let mut at = f.start as usize;
        while at < f.end as usize {
            at += instruction(&mut out, m.code.words(), at);
        }
    }
    Ok(out)
}

/// Prepares the module of a file without making it current.
pub fn prepared_module(bytes: &[u8]) -> Result<Module, LoadFailure> {
    purlin_term::region::init();
    Ok(prepare(bytes)?.into_module())
}

/// Returns the instruction at word `at` of a module's code as text, without its offset.
pub fn instruction_text(m: &Module, at: u32) -> String {
    let mut out = String::new();
    instruction(&mut out, m.code.words(), at as usize);
    let text = out.trim_start();
    let text = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text.trim().to_owned()
}

/// One disassembled instruction.
pub struct Disassembled {
    pub text: String,
    /// Address of the next instruction.
    pub next: *const u64,
    /// The function that contains it.
    pub module: Term,
    pub function: Term,
    pub arity: u32,
}

/// Returns the instruction at an address; None if none starts there.
pub fn disasm_at(pc: *const u64) -> Option<Disassembled> {
    let m = super::module_at(pc)?;
    let f = m.function_at(pc)?;
    let wanted = (pc as usize).checked_sub(m.code.as_ptr() as usize)?;
    let mut at = f.start as usize;
    // Words between instructions may look like an instruction whose operands are no addresses.
    while at * 8 < wanted {
        at += size(m.code.words(), at);
    }
    if at * 8 != wanted {
        return None;
    }
    let mut text = String::new();
    let n = instruction(&mut text, m.code.words(), at);
    Some(Disassembled {
        text,
        next: m.at((at + n) as u32),
        module: m.name,
        // SAFETY: the word of an atom.
        function: unsafe { Term::from_raw(f.name) },
        arity: f.arity,
    })
}

/// Decodes the instruction at word `at`, ignoring patches; None if there is none.
fn instruction_at(code: &[u64], at: usize) -> Option<Instruction<'_>> {
    // SAFETY: the first unit of a word of code. If the instruction is patched, this returns the
    // original.
    let number = unsafe { opcode_at(code.get(at..)?.first()?) };
    Instruction::of(code, at, number)
}

/// Size of the instruction at word `at`, in words.
fn size(code: &[u64], at: usize) -> usize {
    instruction_at(code, at).map_or(1, |i| i.words)
}

fn term(w: u64) -> String {
    // SAFETY: a constant in the code of a module: an immediate, or an object of its literals.
    let t = unsafe { Term::from_raw(w) };
    format_term(t, Style::Write, MAX_CHARS)
}

/// Formats a branch target `words` words from the instruction at word `at`.
fn label(at: usize, words: i32) -> String {
    match words {
        0 => "->none".to_owned(),
        n => format!("->{}", at as i64 + i64::from(n)),
    }
}

/// Writes the instruction at word `at` and returns its size in words.
fn instruction(out: &mut String, code: &[u64], at: usize) -> usize {
    let Some(i) = instruction_at(code, at) else {
        let _ = writeln!(out, "{at:6} ?");
        return 1;
    };
    let row = i.row();
    let operands = row.operands.iter().zip(&i.operands[..]);
    let operands = operands.map(|(o, &v)| value(at, o.kind, v));
    let _ = write!(out, "{at:6} {}", row.name.trim_end_matches('_'));
    for (k, text) in operands.enumerate() {
        out.push_str(if k == 0 { " " } else { ", " });
        out.push_str(&text);
    }
    if row.list.is_some() {
        let all = i.members().map_or_else(Vec::new, |m| members(at, &m));
        let _ = write!(out, " [{}]", all.join(", "));
    }
    out.push('\n');
    i.words
}

fn value(at: usize, kind: Kind, v: Value) -> String {
    match v {
        Value::X(n) => format!("x{n}"),
        Value::Y(n) => format!("y{n}"),
        Value::C(w) => term(w),
        Value::L(words) => label(at, words),
        Value::N(n) => number(kind, n),
    }
}

/// Formats each member of a list.
fn members(at: usize, all: &Members) -> Vec<String> {
    let source = |v: Value| value(at, Kind::Source, v);
    let arm = |w: String, l: i32| [w, label(at, l)];
    match all {
        Members::Sources(all) | Members::Registers(all) => all.iter().map(|&v| source(v)).collect(),
        Members::Fetches(all) => all
            .iter()
            .flat_map(|&(k, r)| [source(k), source(r)])
            .collect(),
        Members::Labels(all) => all.iter().map(|&l| label(at, l)).collect(),
        Members::Switch(all) => {
            let values = all.iter().map(|a| term(a.0));
            values.chain(all.iter().map(|a| label(at, a.1))).collect()
        }
        Members::Arms(all) => all.iter().flat_map(|&(w, l)| arm(term(w), l)).collect(),
        Members::ArityArms(all) => {
            let header = |w| number(Kind::Header, w);
            all.iter().flat_map(|&(w, l)| arm(header(w), l)).collect()
        }
        Members::Updates(all) => all
            .iter()
            .flat_map(|&(i, v)| [i.to_string(), source(v)])
            .collect(),
        Members::Segments(all) => {
            let of = |s: &Segment| {
                let flags = s.flags | u64::from(s.number) << 32;
                let (v, size) = match s.value {
                    Value::N(address) => (number(Kind::Bytes, address), s.size.word().to_string()),
                    v => (source(v), source(s.size)),
                };
                [
                    s.kind.to_string(),
                    s.unit.to_string(),
                    format!("{flags:#x}"),
                    v,
                    size,
                ]
            };
            all.iter().flat_map(of).collect()
        }
        Members::Commands(all) => {
            let operand = |&v: &Value| match v {
                Value::N(n) => n.to_string(),
                v => source(v),
            };
            let of = |c: &Command| {
                let operands: Vec<String> = c.operands().iter().map(operand).collect();
                format!("{} {}", c.name(), operands.join(" "))
            };
            all.iter().map(of).collect()
        }
    }
}

/// Formats a number, by name if it is the address of something that has a name.
fn number(kind: Kind, v: u64) -> String {
    match kind {
        Kind::Export => {
            // SAFETY: the operand is the address of an export; exports are never freed.
            let e = unsafe { &*(v as *const Export) };
            let (m, f) = (atom::name(e.module), atom::name(e.function));
            format!("{m}:{f}/{}", e.arity)
        }
        Kind::Entry => {
            // SAFETY: the operand is the address of a fun entry, which is never freed.
            let e = unsafe { &*(v as *const FunEntry) };
            atom::name(e.function()).to_owned()
        }
        // Their targets are clear from the export beside them and from the module's text.
        Kind::Native => "native".to_owned(),
        Kind::Slot => "slot".to_owned(),
        Kind::Counter => "counter".to_owned(),
        Kind::Mark => "mark".to_owned(),
        Kind::Bytes => "bytes".to_owned(),
        Kind::Term => term(v),
        Kind::Header => format!("arity {}", purlin_term::word::header_arity(v)),
        Kind::Integer => format!("{}", v as i64),
        Kind::Float => format!("fr{}", v / 8),
        _ => format!("{v}"),
    }
}
