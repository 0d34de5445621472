//! Generic code as text: one instruction on each line, with names instead of indices.
//!
//! `f(7)` is a label, `f(-)` its absence. `x3`/`y3`/`fr3` are registers, `x3:5` is one whose value
//! has type 5 of the type table. `mod:fun/2` is an import, `fun:1 name/2` a lambda, `"file.erl":12`
//! a place in the source. Literals are shown up to a fixed depth and length; a term (or a part of
//! one) that isn't shown is `...`.

use crate::error::LoadError;
use crate::file::BeamFile;
use crate::generic::{GenericCode, Instr, Operand};
use crate::reader::Reader;
use crate::text::atom_text;
use purlin_isa::genops::{self, Kind};
use std::fmt::Write;

/// Maximum depth and length of literals.
const MAX_DEPTH: usize = 4;
const MAX_MEMBERS: usize = 16;
const MAX_BYTES: usize = 64;

/// Returns all code of a file as text, or why it can't be decoded.
pub fn disasm_generic(file: &BeamFile) -> Result<String, LoadError> {
    let code = GenericCode::decode(file)?;
    let mut out = String::new();
    let _ = writeln!(out, "module {}", atom_text(file.module()));
    for export in &file.exports {
        let name = atom_text(file.atom(export.function));
        let _ = writeln!(out, "export {name}/{} f({})", export.arity, export.label);
    }
    for function in &code.functions {
        let name = atom_text(file.atom(function.name));
        let _ = writeln!(
            out,
            "\nfunction {name}/{} entry f({})",
            function.arity, function.entry_label
        );
        for instr in &code.instrs[function.start as usize..function.end as usize] {
            if instr.op != genops::LABEL {
                out.push_str("    ");
            }
            disasm_instr(&mut out, file, &code, instr);
            out.push('\n');
        }
    }
    Ok(out)
}

/// Appends one instruction of the code of a file, without a line end.
pub fn disasm_instr(out: &mut String, file: &BeamFile, code: &GenericCode, instr: &Instr) {
    let args = code.args(instr);
    let kinds = genops::row(instr.op).map_or(&[][..], |row| row.kinds);
    if instr.op == genops::LABEL {
        if let Some(Operand::U(label)) = args.first() {
            let _ = write!(out, "f({label}):");
        }
        return;
    }
    out.push_str(genops::name(instr.op));
    let string = match (instr.op, args) {
        (genops::BS_PUT_STRING, &[Operand::U(bytes), Operand::U(offset)]) => Some((offset, bytes)),
        (genops::BS_MATCH_STRING, &[_, _, Operand::U(bits), Operand::U(offset)]) => {
            Some((offset, bits.div_ceil(8)))
        }
        _ => None,
    };
    for (i, (&arg, &kind)) in args.iter().zip(kinds).enumerate() {
        out.push_str(if i == 0 { " " } else { ", " });
        if let Operand::List { .. } = arg {
            out.push('[');
            for (i, &member) in code.list(arg).iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                operand(out, file, code, Kind::Any, member);
            }
            out.push(']');
        } else {
            operand(out, file, code, kind, arg);
        }
    }
    if let Some((offset, bytes)) = string {
        let range = offset as usize..(offset.saturating_add(bytes)) as usize;
        if let Some(bytes) = file.strings().get(range) {
            out.push_str(" ; ");
            bytes_text(out, bytes);
        }
    }
}

fn operand(out: &mut String, file: &BeamFile, code: &GenericCode, kind: Kind, operand: Operand) {
    let _ = match operand {
        Operand::X(n) => write!(out, "x{n}"),
        Operand::Y(n) => write!(out, "y{n}"),
        Operand::TypedX(n, index) => write!(out, "x{n}:{index}"),
        Operand::TypedY(n, index) => write!(out, "y{n}:{index}"),
        Operand::Fr(n) => write!(out, "fr{n}"),
        Operand::Atom(n) => write!(out, "{}", atom_text(file.atom(n))),
        Operand::Nil => write!(out, "[]"),
        Operand::Int(n) => write!(out, "{n}"),
        Operand::BigInt(index) => match code.bigints.get(index as usize) {
            Some(big) => write!(out, "{}", big_text(big.negative, &big.magnitude)),
            None => Ok(()),
        },
        Operand::Literal(index) => {
            let _ = write!(out, "lit#{index}=");
            literal(out, file.literal(index).unwrap_or_default());
            Ok(())
        }
        Operand::Label(0) => write!(out, "f(-)"),
        Operand::Label(n) => write!(out, "f({n})"),
        Operand::Huge => write!(out, "u(huge)"),
        Operand::Alloc {
            words,
            floats: 0,
            funs: 0,
        } => write!(out, "{words}"),
        Operand::Alloc {
            words,
            floats,
            funs,
        } => {
            write!(out, "{{words {words}, floats {floats}, funs {funs}}}")
        }
        Operand::List { .. } => Ok(()),
        Operand::U(n) => match (kind, u32::try_from(n)) {
            (Kind::Import, Ok(index)) => match file.imports.get(index as usize) {
                Some(import) => {
                    let (module, function) = (file.atom(import.module), file.atom(import.function));
                    write!(
                        out,
                        "{}:{}/{}",
                        atom_text(module),
                        atom_text(function),
                        import.arity
                    )
                }
                None => Ok(()),
            },
            (Kind::Lambda | Kind::Tag, Ok(index)) => match file.lambdas.get(index as usize) {
                Some(fun) => {
                    write!(
                        out,
                        "fun:{index} {}/{}",
                        atom_text(file.atom(fun.function)),
                        fun.arity
                    )
                }
                None => Ok(()),
            },
            (Kind::Line, Ok(item)) => match file.line(item) {
                Some((name, line)) => write!(out, "{name:?}:{line}"),
                None => write!(out, "-"),
            },
            _ => write!(out, "u({n})"),
        },
    };
}

/// Returns a number of any length, in hexadecimal as in Erlang source.
fn big_text(negative: bool, magnitude: &[u8]) -> String {
    let mut text = String::from(if negative { "-16#" } else { "16#" });
    for (i, byte) in magnitude.iter().rev().enumerate() {
        let _ = if i == 0 {
            write!(text, "{byte:X}")
        } else {
            write!(text, "{byte:02X}")
        };
    }
    text
}

fn bytes_text(out: &mut String, bytes: &[u8]) {
    let printable = |b: &u8| b.is_ascii_graphic() || *b == b' ';
    if bytes.iter().all(printable) && bytes.len() <= MAX_BYTES {
        let _ = write!(out, "<<{:?}>>", String::from_utf8_lossy(bytes));
        return;
    }
    out.push_str("<<");
    for (i, byte) in bytes.iter().take(MAX_MEMBERS).enumerate() {
        let _ = write!(out, "{}{byte}", if i == 0 { "" } else { "," });
    }
    out.push_str(if bytes.len() > MAX_MEMBERS {
        ",...>>"
    } else {
        ">>"
    });
}

fn literal(out: &mut String, term: &[u8]) {
    let mut reader = Reader::new(term);
    let shown = reader.u8() == Some(131) && show(out, &mut reader, 0).is_some();
    if !shown {
        out.push_str("...");
    }
}

/// Shows the term at the reader. `None`: the reader's position is lost, and nothing more can be
/// shown. The depth is bounded, and so is the recursion.
fn show(out: &mut String, reader: &mut Reader, depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    match reader.u8()? {
        97 => {
            let _ = write!(out, "{}", reader.u8()?);
        }
        98 => {
            let _ = write!(out, "{}", reader.i32()?);
        }
        70 => {
            let bits = reader.bytes(8)?.try_into().ok()?;
            let _ = write!(out, "{:?}", f64::from_be_bytes(bits));
        }
        110 => {
            let size = usize::from(reader.u8()?);
            let negative = reader.u8()? != 0;
            out.push_str(&big_text(negative, reader.bytes(size)?));
        }
        106 => out.push_str("[]"),
        119 => {
            let size = usize::from(reader.u8()?);
            out.push_str(&atom_text(std::str::from_utf8(reader.bytes(size)?).ok()?));
        }
        118 => {
            let size = usize::from(reader.u16()?);
            out.push_str(&atom_text(std::str::from_utf8(reader.bytes(size)?).ok()?));
        }
        100 => {
            let size = usize::from(reader.u16()?);
            let text: String = reader.bytes(size)?.iter().map(|&b| char::from(b)).collect();
            out.push_str(&atom_text(&text));
        }
        107 => {
            let size = usize::from(reader.u16()?);
            let text: String = reader
                .bytes(size)?
                .iter()
                .take(MAX_BYTES)
                .map(|&b| char::from(b))
                .collect();
            let _ = write!(out, "{text:?}{}", if size > MAX_BYTES { "..." } else { "" });
        }
        109 => {
            let size = reader.u32()? as usize;
            bytes_text(out, reader.bytes(size)?);
        }
        104 => {
            let size = usize::from(reader.u8()?);
            out.push('{');
            show_members(out, reader, depth, size)?;
            out.push('}');
        }
        108 => {
            let size = reader.u32()? as usize;
            out.push('[');
            show_members(out, reader, depth, size)?;
            let mut tail = String::new();
            show(&mut tail, reader, depth + 1)?;
            if tail != "[]" {
                let _ = write!(out, "|{tail}");
            }
            out.push(']');
        }
        116 => {
            let size = reader.u32()?;
            out.push_str("#{");
            for i in 0..size {
                if i as usize == MAX_MEMBERS {
                    return None;
                }
                out.push_str(if i == 0 { "" } else { "," });
                show(out, reader, depth + 1)?;
                out.push_str(" => ");
                show(out, reader, depth + 1)?;
            }
            out.push('}');
        }
        113 => {
            let mut parts = [String::new(), String::new(), String::new()];
            for part in &mut parts {
                show(part, reader, depth + 1)?;
            }
            let [module, function, arity] = parts;
            let _ = write!(out, "fun {module}:{function}/{arity}");
        }
        _ => return None,
    }
    Some(())
}

fn show_members(out: &mut String, reader: &mut Reader, depth: usize, count: usize) -> Option<()> {
    for i in 0..count {
        if i == MAX_MEMBERS {
            return None;
        }
        out.push_str(if i == 0 { "" } else { "," });
        show(out, reader, depth + 1)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoms_are_quoted_where_erlang_does() {
        let cases = [
            ("ok", "ok"),
            ("fooBar@1_", "fooBar@1_"),
            ("Elixir.Enum", "'Elixir.Enum'"),
            ("", "''"),
            ("a-b", "'a-b'"),
            ("it's", "'it\\'s'"),
            ("été", "été"),
            ("日本", "'日本'"),
        ];
        for (text, expected) in cases {
            assert_eq!(atom_text(text), expected);
        }
    }

    #[test]
    fn literals_are_shown() {
        let cases: [(&[u8], &str); 5] = [
            (&[131, 104, 2, 97, 1, 119, 2, b'o', b'k'], "{1,ok}"),
            (&[131, 108, 0, 0, 0, 1, 97, 1, 97, 2], "[1|2]"),
            (&[131, 109, 0, 0, 0, 2, 0, 255], "<<0,255>>"),
            (&[131, 107, 0, 2, b'h', b'i'], "\"hi\""),
            (&[131, 108, 0xff, 0xff, 0xff, 0xff], "[..."),
        ];
        for (bytes, expected) in cases {
            let mut out = String::new();
            literal(&mut out, bytes);
            assert_eq!(out, expected);
        }
    }
}
