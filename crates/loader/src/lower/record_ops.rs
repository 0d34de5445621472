//! Lowering of native records.

use super::emit::{Arg, count};
use super::lowering::Lower;
use super::words::NIL;
use crate::error::{Fault, LoadError};
use crate::generic::Operand;
use purlin_isa::genops::{self as g};
use purlin_isa::ops::Op;

/// The records that an instruction accepts.
enum Which {
    /// Those of that name (a word) that the module itself declares.
    Own(u64),
    /// Those of that module and name, as far as other modules may access them.
    Of(u64, u64),
    /// Any that the module may access.
    Any,
}

/// Lowers an instruction on native records.
pub(super) fn lower(l: &mut Lower, op: u8, a: &[Operand]) -> Result<(), LoadError> {
    match op {
        g::IS_ANY_NATIVE_RECORD => {
            let s = l.s(a[1]);
            l.e.op(Op::IsRecord, &[l.label(a[0]), s]);
        }
        g::IS_NATIVE_RECORD => {
            let s = l.s(a[1]);
            let (module, name) = (atom(l, a[2], 2)?, atom(l, a[3], 3)?);
            l.e.op(
                Op::IsRecordOf,
                &[l.label(a[0]), s, Arg::N(module), Arg::N(name)],
            );
        }
        g::IS_RECORD_ACCESSIBLE => {
            let s = l.s(a[1]);
            atom(l, a[2], 2)?;
            let from = match a[2] {
                Operand::Atom(n) if l.file.atom(n) != "external" => own(l),
                _ => NIL,
            };
            l.e.op(Op::IsRecordOpen, &[l.label(a[0]), s, Arg::N(from)]);
        }
        g::GET_RECORD_ELEMENTS => {
            keys(l, a[2], 2)?;
            l.map_list(Op::GetRecordFields, a);
        }
        g::GET_RECORD_FIELD => {
            let (s, d) = (l.s(a[1]), l.s(a[4]));
            // As in stock, the module of records that are named without one is not checked here.
            let (module, name) = match which(l, a[2], 2)? {
                Which::Own(name) => (NIL, name),
                Which::Of(module, name) => (module, name),
                Which::Any => (NIL, NIL),
            };
            let field = atom(l, a[3], 3)?;
            let [module, name, field] = [module, name, field].map(Arg::N);
            l.e.op(
                Op::GetRecordField,
                &[l.label(a[0]), s, d, module, name, field],
            );
        }
        _ => put(l, a)?,
    }
    Ok(())
}

/// `put_record`: makes a record, if its source is nil, or updates one.
fn put(l: &mut Lower, a: &[Operand]) -> Result<(), LoadError> {
    let pairs = keys(l, a[5], 5)?;
    let fail = l.label(a[0]);
    let (d, live) = (l.s(a[3]), l.h(a[4]));
    let n = count(pairs.len() as u32);
    let which = which(l, a[1], 1)?;
    if a[2] != Operand::Nil {
        let (module, name, open) = match which {
            Which::Own(name) => (own(l), name, own(l)),
            Which::Of(module, name) => (module, name, NIL),
            Which::Any => (NIL, NIL, own(l)),
        };
        let s = l.s(a[2]);
        let [module, name, open] = [module, name, open].map(Arg::N);
        l.e.op_list(
            Op::ChangeRecord,
            &[fail, s, d, module, name, open, live, n],
            &pairs,
        );
        return Ok(());
    }
    match which {
        Which::Own(_) => {
            let known = match a[1] {
                Operand::Atom(n) => l.env.record(n),
                _ => None,
            };
            match known {
                Some(w) => {
                    let args = [fail, Arg::C(w), d, live, n];
                    l.e.op_list(Op::NewRecord, &args, &pairs);
                }
                None => return Err(Fault::Operand(1).into()),
            }
        }
        Which::Of(module, name) => {
            let words = [Arg::N(module), Arg::N(name)];
            let id = l.s(a[1]);
            l.e.op_list(
                Op::NewRecordOf,
                &[fail, id, d, words[0], words[1], live, n],
                &pairs,
            );
        }
        Which::Any => return Err(Fault::Operand(1).into()),
    }
    Ok(())
}

fn own(l: &mut Lower) -> u64 {
    l.env.atom(1)
}

/// Returns the word of an operand that is an atom.
fn atom(l: &mut Lower, o: Operand, at: u8) -> Result<u64, LoadError> {
    match o {
        Operand::Atom(n) => Ok(l.env.atom(n)),
        _ => Err(Fault::Operand(at).into()),
    }
}

fn which(l: &mut Lower, o: Operand, at: u8) -> Result<Which, LoadError> {
    match o {
        Operand::Atom(n) if l.file.atom(n) == "_" => Ok(Which::Any),
        Operand::Atom(n) => Ok(Which::Own(l.env.atom(n))),
        Operand::Literal(i) => {
            let word = l.env.literal(i);
            match l.env.pair_of_atoms(word) {
                Some((module, name)) => Ok(Which::Of(module, name)),
                None => Err(Fault::Operand(at).into()),
            }
        }
        _ => Err(Fault::Operand(at).into()),
    }
}

/// Returns the words of a list whose every second member, from the first on, is the name of a
/// field.
fn keys(l: &mut Lower, list: Operand, at: u8) -> Result<Vec<Arg>, LoadError> {
    let members = l.code.list(list);
    if !members
        .iter()
        .step_by(2)
        .all(|m| matches!(m, Operand::Atom(_)))
    {
        return Err(Fault::Operand(at).into());
    }
    Ok(l.list_words(list))
}
