//! Specific code as text: what the interpreter runs, one instruction to a line.
//!
//! A line starts with the instruction's offset in words. Registers are `x3` and `y3`, labels `->` and an offset, the
//! members of a list stand in brackets.

use super::load::{LoadFailure, prepare};
use super::opcode_at;
use purlin_isa::ops::{Form, Kind, List, SpecOp, lookup, words};
use purlin_loader::lower::bits::seg;
use purlin_term::fun::{Export, FunEntry};
use purlin_term::print::{Style, format_term};
use purlin_term::{Term, atom};
use smallvec::SmallVec;
use std::fmt::Write;

/// Words of a segment of `bs_create_bin`.
const SEGMENT_WORDS: usize = 5;
/// Most characters of a constant that are shown.
const MAX_CHARS: usize = 60;

/// Every function of a module file, ready to run but not made current.
pub fn disasm_specific(bytes: &[u8]) -> Result<String, LoadFailure> {
    purlin_term::region::init();
    let m = prepare(bytes)?.into_module();
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

/// One instruction of loaded code.
pub struct Disassembled {
    pub text: String,
    /// The address behind it.
    pub next: *const u64,
    pub module: Term,
    pub function: Term,
    pub arity: u32,
}

/// The instruction at an address; None if none starts there.
pub fn disasm_at(pc: *const u64) -> Option<Disassembled> {
    let m = super::module_at(pc)?;
    let f = m.function_at(pc)?;
    let wanted = (pc as usize).checked_sub(m.code.as_ptr() as usize)?;
    let mut at = f.start as usize;
    // Words between instructions may look like one, with operands that are no addresses.
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

fn unit(code: &[u64], i: usize) -> u64 {
    code[i / 4] >> (16 * (i % 4)) & 0xFFFF
}

/// An instruction in code, taken apart as its row says.
struct Instruction<'a> {
    op: &'static SpecOp,
    /// Each operand as it stands in the code.
    operands: SmallVec<[(Kind, Form, u64); 8]>,
    /// The words behind it that belong to it.
    list: &'a [u64],
    /// Words of all.
    words: usize,
}

impl<'a> Instruction<'a> {
    /// The one at word `at`; None if there is none.
    fn at(code: &'a [u64], at: usize) -> Option<Instruction<'a>> {
        // SAFETY: the first unit of a word of code; if it is that of an instruction that is patched, this tells what was there.
        let number = unsafe { opcode_at(code.get(at..)?.first()?) };
        let (op, variant) = lookup(number)?;
        let forms = op.forms(variant);
        let mut u = at * 4 + 1;
        let mut operands: SmallVec<[_; 8]> = SmallVec::new();
        for (o, &form) in op.operands.iter().zip(&forms) {
            let v = (0..form.units()).fold(0, |v, k| v | unit(code, u + k) << (16 * k));
            u += form.units();
            operands.push((o.kind, form, v));
        }
        let fixed = words(&forms);
        let count = operands.last().map_or(0, |o| o.2 as usize);
        let list = op.list.map_or(0, |l| l.words(count));
        let list = code.get(at + fixed..)?.get(..list)?;
        Some(Instruction {
            op,
            operands,
            list,
            words: fixed + list.len(),
        })
    }
}

/// Words that the instruction at word `at` takes.
fn size(code: &[u64], at: usize) -> usize {
    Instruction::at(code, at).map_or(1, |i| i.words)
}

fn term(w: u64) -> String {
    // SAFETY: a constant in the code of a module: an immediate, or an object of its literals.
    let t = unsafe { Term::from_raw(w) };
    format_term(t, Style::Write, MAX_CHARS)
}

/// A word that is a register or a constant.
fn source(w: u64) -> String {
    match w & 7 {
        0 => format!("x{}", w >> 7),
        4 => format!("y{}", (w >> 7).wrapping_sub(1)),
        _ => term(w),
    }
}

/// The place so many words from the instruction at word `at`.
fn label(at: usize, words: i64) -> String {
    match words {
        0 => "->none".to_owned(),
        n => format!("->{}", at as i64 + n),
    }
}

/// Writes the instruction at word `at`: how many words it takes.
fn instruction(out: &mut String, code: &[u64], at: usize) -> usize {
    let Some(i) = Instruction::at(code, at) else {
        let _ = writeln!(out, "{at:6} ?");
        return 1;
    };
    let _ = write!(out, "{at:6} {}", i.op.name.trim_end_matches('_'));
    for (k, &(kind, form, v)) in i.operands.iter().enumerate() {
        out.push_str(if k == 0 { " " } else { ", " });
        out.push_str(&operand(at, kind, form, v));
    }
    if let Some(list) = i.op.list {
        out.push_str(" [");
        for k in 0..i.list.len() {
            out.push_str(if k == 0 { "" } else { ", " });
            out.push_str(&member(at, list, k, i.list));
        }
        out.push(']');
    }
    out.push('\n');
    i.words
}

fn operand(at: usize, kind: Kind, form: Form, v: u64) -> String {
    match form {
        Form::X => format!("x{}", v / 8),
        Form::Y => format!("y{}", (v / 8).wrapping_sub(1)),
        Form::D if v & 1 == 0 => format!("x{}", v / 8),
        Form::D => format!("y{}", (v / 8).wrapping_sub(1)),
        Form::C => term(v),
        Form::S => source(v),
        Form::L => label(at, i64::from(v as u32 as i32)),
        Form::H | Form::W if kind == Kind::Float => format!("fr{}", v / 8),
        Form::H | Form::W => format!("{v}"),
        Form::Q => word(kind, v),
    }
}

/// Word `k` of a list.
fn member(at: usize, list: List, k: usize, words: &[u64]) -> String {
    let (w, n) = (words[k], words.len());
    let is_string = list == List::Segments && words[k - k % SEGMENT_WORDS] == seg::STRING;
    match list {
        List::Labels => label(at, w as i64),
        List::Switch if k >= n / 2 => label(at, w as i64),
        List::Arms | List::ArityArms if k % 2 == 1 => label(at, w as i64),
        List::ArityArms => word(Kind::Header, w),
        List::Updates if k.is_multiple_of(2) => format!("{w}"),
        // Kind, unit, flags, value, size.
        List::Segments => match k % SEGMENT_WORDS {
            2 => format!("{w:#x}"),
            3 if is_string => word(Kind::Bytes, w),
            3 | 4 if !is_string => source(w),
            _ => format!("{w}"),
        },
        List::Commands => format!("{w:#x}"),
        List::Sources
        | List::Registers
        | List::Fetches
        | List::Switch
        | List::Arms
        | List::Updates => source(w),
    }
}

/// A 64-bit operand, named where it is the address of something that has a name.
fn word(kind: Kind, v: u64) -> String {
    match kind {
        Kind::Export => {
            // SAFETY: these operands are addresses of exports, which are never freed.
            let e = unsafe { &*(v as *const Export) };
            let (m, f) = (atom::name(e.module), atom::name(e.function));
            format!("{m}:{f}/{}", e.arity)
        }
        Kind::Entry => {
            // SAFETY: as above, a fun entry.
            let e = unsafe { &*(v as *const FunEntry) };
            atom::name(e.function()).to_owned()
        }
        // Their targets are seen from the export beside them, and the module's text.
        Kind::Native => "native".to_owned(),
        Kind::Slot => "slot".to_owned(),
        Kind::Counter => "counter".to_owned(),
        Kind::Mark => "mark".to_owned(),
        Kind::Bytes => "bytes".to_owned(),
        Kind::Term => term(v),
        Kind::Header => format!("arity {}", purlin_term::word::header_arity(v)),
        Kind::Integer => format!("{}", v as i64),
        _ => format!("{v:#x}"),
    }
}
