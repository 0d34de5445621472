//! Specific code as text: what the interpreter runs, one instruction to a line.
//!
//! A line starts with the instruction's offset in words. Registers are `x3` and `y3`, labels `->` and an offset, the
//! members of a list stand in brackets.

use super::load::{LoadFailure, prepare};
use purlin_isa::ops::{Form, Opnd, SpecOp, lookup, words};
use purlin_term::fun::{Export, FunEntry};
use purlin_term::print::{Style, format_term};
use purlin_term::{Term, atom};
use std::fmt::Write;

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
            at += instruction(&mut out, &m.code, at);
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
    // What lies between instructions may look like one, with operands that are no addresses.
    while at * 8 < wanted {
        at += size(&m.code, at);
    }
    if at * 8 != wanted {
        return None;
    }
    let mut text = String::new();
    let n = instruction(&mut text, &m.code, at);
    Some(Disassembled {
        text,
        next: m.at((at + n) as u32),
        module: m.name,
        // SAFETY: the word of an atom.
        function: unsafe { Term::from_raw(f.name) },
        arity: f.arity,
    })
}

/// Words that the instruction at word `at` takes.
fn size(code: &[u64], at: usize) -> usize {
    let Some((row, variant)) = lookup(unit(code, at * 4) as u16) else {
        return 1;
    };
    let forms = row.forms(variant);
    let before: usize = forms.iter().rev().skip(1).map(|f| f.units()).sum();
    let last = forms.last().map_or(0, |f| {
        let from = at * 4 + 1 + before;
        (0..f.units()).fold(0, |v, k| v | unit(code, from + k) << (16 * k))
    });
    words(&forms) + list_words(row, last as usize)
}

/// Words of the list behind an instruction whose last operand is `count`.
fn list_words(row: &SpecOp, count: usize) -> usize {
    match row.name {
        _ if row.operands.last() != Some(&Opnd::List) => 0,
        "select_val" | "update_record" => 2 * count,
        _ => count,
    }
}

fn unit(code: &[u64], i: usize) -> u64 {
    code[i / 4] >> (16 * (i % 4)) & 0xFFFF
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

/// Writes the instruction at word `at`: how many words it takes.
fn instruction(out: &mut String, code: &[u64], at: usize) -> usize {
    let Some((row, variant)) = lookup(unit(code, at * 4) as u16) else {
        let _ = writeln!(out, "{at:6} ?");
        return 1;
    };
    let forms = row.forms(variant);
    let _ = write!(out, "{at:6} {}", row.name.trim_end_matches('_'));
    let mut u = at * 4 + 1;
    let mut count = 0;
    for (i, f) in forms.iter().enumerate() {
        out.push_str(if i == 0 { " " } else { ", " });
        let v = (0..f.units()).fold(0, |v, k| v | unit(code, u + k) << (16 * k));
        u += f.units();
        count = v as usize;
        let _ = match f {
            Form::X => write!(out, "x{}", v / 8),
            Form::Y => write!(out, "y{}", (v / 8).wrapping_sub(1)),
            Form::D if v & 1 == 0 => write!(out, "x{}", v / 8),
            Form::D => write!(out, "y{}", (v / 8).wrapping_sub(1)),
            Form::C => write!(out, "{}", term(v)),
            Form::S => write!(out, "{}", source(v)),
            Form::L if v == 0 => write!(out, "->none"),
            Form::L => write!(out, "->{}", at as i64 + i64::from(v as u32 as i32)),
            Form::H | Form::W => write!(out, "{v}"),
            Form::Q => write!(out, "{}", address(row.name, i, v)),
        };
    }
    let fixed = words(&forms);
    if row.operands.last() != Some(&Opnd::List) {
        out.push('\n');
        return fixed;
    }
    let n = list_words(row, count);
    out.push_str(" [");
    for (i, &w) in code[at + fixed..].iter().take(n).enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        let label = match row.name {
            "select_val" => i >= count,
            "jump_table" | "bs_next_byte_table" | "type_switch" => true,
            "select_linear" | "select_arity" => i % 2 == 1,
            _ => false,
        };
        let _ = match row.name {
            _ if label && w == 0 => write!(out, "->none"),
            _ if label => write!(out, "->{}", at as i64 + w as i64),
            "bs_match" | "bs_create_bin" | "select_arity" => write!(out, "{w:#x}"),
            "update_record" if i % 2 == 0 => write!(out, "{w}"),
            _ => write!(out, "{}", source(w)),
        };
    }
    out.push_str("]\n");
    fixed + n
}

/// A 64-bit operand of an op, named where it is the address of something that has a name.
fn address(op: &str, operand: usize, v: u64) -> String {
    let export = matches!(
        (op, operand),
        ("call_ext" | "call_ext_last" | "call_ext_only", 0)
            | (
                "move_call_ext" | "move_call_ext_last" | "move_call_ext_only",
                1
            )
            | ("call_bif" | "call_bif_last" | "call_bif_only", 0)
            | ("bif1", 4)
            | ("bif2", 5)
            | ("bif3", 6)
    );
    if export {
        // SAFETY: these operands are addresses of exports, which are never freed.
        let e = unsafe { &*(v as *const Export) };
        let (m, f) = (atom::name(e.module), atom::name(e.function));
        return format!("{m}:{f}/{}", e.arity);
    }
    match op {
        "make_fun" if operand == 0 => {
            // SAFETY: as above, a fun entry.
            let e = unsafe { &*(v as *const FunEntry) };
            atom::name(e.function()).to_owned()
        }
        "is_eq_immed" | "is_ne_immed" | "func_info" | "is_in_range" => term(v),
        "is_tagged_tuple" if operand == 3 => term(v),
        "is_tuple_of_arity" | "test_arity" | "is_tagged_tuple" => {
            format!("arity {}", purlin_term::word::header_arity(v))
        }
        "jump_table" | "bs_next_byte_table" => format!("{}", v as i64),
        _ => format!("{v:#x}"),
    }
}
