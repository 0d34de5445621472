//! Fusion of two instructions that often follow each other, by the parts in the rows of ops. See
//! `purlin_isa::contract`.
//!
//! Only neighbours with no label between them are fused, so nothing can jump to the second.

use super::emit::Arg;
use purlin_isa::codec::{MOST_OPERANDS, part_operands};
use purlin_isa::contract::{Part, PartArg, join_of, joins};
use purlin_isa::ops::{Form, Kind, Op};

/// Returns the op that does `a` and then `b`, if there is one.
#[inline]
pub(super) fn fuse(a: (Op, &[Arg]), b: (Op, &[Arg])) -> Option<(Op, Vec<Arg>)> {
    let whole = joins(a.0).iter().find(|j| j.second == b.0)?.whole;
    let operands = bound(whole, a, b)?;
    is_allowed(whole, &operands).then_some((whole, operands))
}

/// Operands of an op, as far as its parts have determined them.
type Bindings = [Option<Arg>; MOST_OPERANDS];

/// Returns the operands of `whole` for which its parts are `a` and `b`.
fn bound(whole: Op, a: (Op, &[Arg]), b: (Op, &[Arg])) -> Option<Vec<Arg>> {
    let row = whole.row();
    let mut out = [None; MOST_OPERANDS];
    let mut parts = row.contract.parts.iter();
    for (op, operands) in [a, b] {
        let own = op.row().contract.parts;
        if own.is_empty() {
            bind(parts.next()?, operands, &mut out)?;
        }
        for p in own {
            bind(parts.next()?, &part_operands(p, operands), &mut out)?;
        }
    }
    finished(whole, &out)
}

/// Returns its operands, as those of that op.
fn finished(op: Op, bindings: &Bindings) -> Option<Vec<Arg>> {
    let kinds = op.row().operands.iter().map(|o| o.kind);
    let operand = |(v, kind): (&Option<Arg>, Kind)| match v {
        Some(v) => fitting(*v, kind),
        // A label that no part has.
        None if kind == Kind::Label => Some(Arg::NO_LABEL),
        None => None,
    };
    bindings.iter().zip(kinds).map(operand).collect()
}

/// Records the operands of the whole that follow from a part with those operands. `None`: they
/// don't fit.
fn bind(part: &Part, operands: &[Arg], out: &mut Bindings) -> Option<()> {
    for (&a, &v) in part.args.iter().zip(operands) {
        let (at, v) = match a {
            PartArg::Operand(i) => (i, v),
            PartArg::Plus(i, n) => (i, Arg::N(v.word().checked_sub(u64::from(n))?)),
            PartArg::X(n) if v == Arg::X(u32::from(n)) => continue,
            PartArg::None if v == Arg::NO_LABEL => continue,
            PartArg::Number(n) if v == Arg::N(u64::from(n)) => continue,
            PartArg::AboutOperand(_) | PartArg::About(_) => continue,
            _ => return None,
        };
        let place = &mut out[at as usize];
        match place {
            Some(known) if *known != v => return None,
            _ => *place = Some(v),
        }
    }
    Some(())
}

/// Returns the operand as one of that kind.
fn fitting(v: Arg, kind: Kind) -> Option<Arg> {
    match (v, kind.forms()) {
        (Arg::C(w), [Form::Q]) => Some(Arg::N(w)),
        _ => v.form(kind).map(|_| v),
    }
}

/// Whether these operands have the same effect in the whole, which reads them all at once.
fn is_allowed(whole: Op, operands: &[Arg]) -> bool {
    match (whole, operands) {
        (Op::AllocateMove | Op::AllocateGetList, [_, _, src, ..]) => matches!(src, Arg::X(_)),
        (Op::IsInRange, &[_, _, least, most]) => [least, most]
            .iter()
            .all(|v| purlin_term::word::is_small_word(v.word())),
        (Op::BsContextPosition, [context, position, ..]) => context != position,
        (Op::GetTupleElements2, [src, _, dst, _]) => src != dst,
        _ => true,
    }
}

/// An op with its operands.
type Split = (Op, Vec<Arg>);

/// Splits `a` into all parts but the last, and the last part, so that the last of several moves can
/// be fused with `next`, which takes one to x0.
pub(super) fn split(a: Op, args: &[Arg], next: Op) -> Option<(Split, Split)> {
    let parts = a.row().contract.parts;
    let (last, rest) = parts.split_last()?;
    if last.op != Op::Move {
        return None;
    }
    let with_move = joins(Op::Move).iter().find(|j| j.second == next)?.whole;
    if with_move.row().contract.parts[0].args[1] != PartArg::X(0) {
        return None;
    }
    let before = join_of(a, Op::Move)?.first;
    let operands = match (before.row().contract.parts, rest) {
        ([], [one]) => part_operands(one, args).to_vec(),
        (own, rest) => {
            let mut out = [None; MOST_OPERANDS];
            for (own, p) in own.iter().zip(rest) {
                bind(own, &part_operands(p, args), &mut out)?;
            }
            finished(before, &out)?
        }
    };
    let moved = part_operands(last, args).to_vec();
    Some(((before, operands), (Op::Move, moved)))
}
