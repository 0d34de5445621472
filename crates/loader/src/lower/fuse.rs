//! Two instructions that often follow each other, as one: by the parts in the rows of ops, see `purlin_isa::contract`.
//!
//! Only neighbours with no label between them are fused, so nothing can jump to the second.

use super::emit::Arg;
use purlin_isa::codec::part_operand;
use purlin_isa::contract::{Part, PartArg, join_of, joins};
use purlin_isa::ops::{Form, Kind, Op};

/// The op that does `a` and then `b`, if there is one.
pub(super) fn fuse(a: (Op, &[Arg]), b: (Op, &[Arg])) -> Option<(Op, Vec<Arg>)> {
    let mut all = joins(a.0).filter(|j| j.second == b.0);
    all.find_map(|j| {
        let operands = bound(j.whole, a, b)?;
        is_allowed(j.whole, &operands).then_some((j.whole, operands))
    })
}

/// The operands of `whole` which make its parts those of `a` and `b`.
fn bound(whole: Op, a: (Op, &[Arg]), b: (Op, &[Arg])) -> Option<Vec<Arg>> {
    let row = whole.row();
    let mut out = vec![None; row.operands.len()];
    let mut parts = row.contract.parts.iter();
    for (op, operands) in [a, b] {
        let own = op.row().contract.parts;
        if own.is_empty() {
            bind(parts.next()?, operands.iter().copied(), &mut out)?;
        }
        for p in own {
            let kinds = p.op.row().operands.iter();
            let values = p.args.iter().zip(kinds);
            let values = values.map(|(&a, o)| part_operand(a, o.kind, operands));
            bind(parts.next()?, values, &mut out)?;
        }
    }
    let kinds = row.operands.iter().map(|o| o.kind);
    out.iter()
        .zip(kinds)
        .map(|(v, kind)| match v {
            Some(v) => fitting(*v, kind),
            // A label that no part has.
            None if kind == Kind::Label => Some(Arg::NO_LABEL),
            None => None,
        })
        .collect()
}

/// Notes what a part with those operands says of the operands of the whole. `None`: they don't fit.
fn bind(part: &Part, operands: impl Iterator<Item = Arg>, out: &mut [Option<Arg>]) -> Option<()> {
    for (&a, v) in part.args.iter().zip(operands) {
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

/// The operand as one of that kind.
fn fitting(v: Arg, kind: Kind) -> Option<Arg> {
    match (v, kind.forms()) {
        (Arg::C(w), [Form::Q]) => Some(Arg::N(w)),
        _ => v.form(kind).map(|_| v),
    }
}

/// Whether these operands do for the whole what they do for the parts: it reads them at once.
fn is_allowed(whole: Op, operands: &[Arg]) -> bool {
    match (whole, operands) {
        (Op::AllocateMove | Op::AllocateGetList, [_, _, src, ..]) => matches!(src, Arg::X(_)),
        (Op::IsInRange, &[_, _, least, most]) => [least, most]
            .iter()
            .all(|v| v.word() & 15 == purlin_term::word::TAG_SMALL),
        (Op::BsContextPosition, [context, position, ..]) => context != position,
        (Op::GetTupleElements2, [src, _, dst, _]) => src != dst,
        _ => true,
    }
}

/// An op with its operands.
type Split = (Op, Vec<Arg>);

/// Splits `a` into all but its last part, and that part: so that the last move of several can go with `next`, which takes one to
/// x0.
pub(super) fn split(a: Op, args: &[Arg], next: Op) -> Option<(Split, Split)> {
    let parts = a.row().contract.parts;
    let takes_x0 = |j: &purlin_isa::contract::Join| {
        j.second == next && j.whole.row().contract.parts[0].args[1] == PartArg::X(0)
    };
    let last = parts.last().filter(|p| p.op == Op::Move)?;
    joins(Op::Move).find(|j| takes_x0(j))?;
    let before = join_of(a, Op::Move)?.first;
    let of = |p: &Part| {
        let all = p.args.iter().zip(p.op.row().operands);
        all.map(|(&a, o)| part_operand(a, o.kind, args))
            .collect::<Vec<Arg>>()
    };
    let rest = &parts[..parts.len() - 1];
    let row = before.row();
    let operands = match row.is_fused() {
        false => of(&rest[0]),
        true => {
            let mut out = vec![None; row.operands.len()];
            for (own, p) in row.contract.parts.iter().zip(rest) {
                bind(own, of(p).into_iter(), &mut out)?;
            }
            out.into_iter().collect::<Option<Vec<Arg>>>()?
        }
    };
    Some(((before, operands), (Op::Move, of(last))))
}
