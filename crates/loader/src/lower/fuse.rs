//! Two instructions that often follow each other, as one.
//!
//! Only neighbours with no label between them are fused, so nothing can jump to the second.

use super::emit::Arg;
use purlin_isa::ops::Op;

const X0: Arg = Arg::X(0);
const NONE: Arg = Arg::L(0);

fn is_register(a: Arg) -> bool {
    matches!(a, Arg::X(_) | Arg::Y(_))
}

/// The op that does `a` and then `b`, if there is one.
pub(super) fn fuse(a: (Op, &[Arg]), b: (Op, &[Arg])) -> Option<(Op, Vec<Arg>)> {
    let join = |op: Op, x: &[Arg], y: &[Arg]| Some((op, [x, y].concat()));
    match (a, b) {
        ((Op::Move, &[s, X0]), (op, rest)) if called_with_move(op).is_some() => {
            join(called_with_move(op)?, &[s], rest)
        }
        ((Op::Move2, m), (Op::Call, n)) => join(Op::Move2Call, m, n),
        ((Op::Move2, m), (Op::CallLast, n)) => join(Op::Move2CallLast, m, n),
        ((Op::Move2, m), (Op::CallOnly, n)) => join(Op::Move2CallOnly, m, n),
        ((Op::Move3, m), (Op::Call, n)) => join(Op::Move3Call, m, n),
        ((Op::Trim, m), (Op::Call, n)) => join(Op::TrimCall, m, n),
        ((Op::IsLt, t), (Op::MoveReturn, m)) => join(Op::IsLtReturn, t, m),
        ((Op::IsGe, t), (Op::MoveReturn, m)) => join(Op::IsGeReturn, t, m),
        ((Op::IsNil, t), (Op::MoveReturn, m)) => join(Op::IsNilReturn, t, m),
        ((Op::IsEqImmed, t), (Op::MoveReturn, m)) => join(Op::IsEqImmedReturn, t, m),
        ((Op::Add, &[NONE, a, b, d, _]), (Op::DeallocateReturn, &[n])) => {
            Some((Op::AddReturn, vec![NONE, a, b, d, n]))
        }
        ((Op::TestHeapPutList, p), (Op::DeallocateReturn, n)) => {
            join(Op::TestHeapPutListReturn, p, n)
        }
        ((Op::Allocate, n), (Op::InitY, y)) => join(Op::AllocateInitY, n, y),
        ((Op::Move, m), (Op::Move, n)) => join(Op::Move2, m, n),
        ((Op::Move2, m), (Op::Move, n)) if m.iter().chain(n).all(|&r| is_register(r)) => {
            join(Op::Move3, m, n)
        }
        ((Op::Move, m), (Op::Jump, n)) => join(Op::MoveJump, m, n),
        ((Op::Deallocate, n), (Op::Return, _)) => Some((Op::DeallocateReturn, n.to_vec())),
        ((Op::MoveDeallocate, n), (Op::Return, _)) => Some((Op::MoveDeallocateReturn, n.to_vec())),
        ((Op::Allocate, n), (Op::Move, &[s @ Arg::X(_), d])) => join(Op::AllocateMove, n, &[s, d]),
        ((Op::Allocate, n), (Op::GetList, &[s @ Arg::X(_), h, t])) => {
            join(Op::AllocateGetList, n, &[s, h, t])
        }
        ((Op::IsNonemptyList, &[l, s]), (Op::GetList, g)) if g[0] == s => {
            join(Op::IsNonemptyGetList, &[l], g)
        }
        ((Op::TestHeap, &[Arg::W(2), live]), (Op::PutList, p)) => {
            join(Op::TestHeapPutList, &[live], p)
        }
        // A value that is matched without a label is known to be a bit string.
        ((Op::BsContext, &[NONE, c, live]), (Op::BsGetPosition, &[s, p, _]))
            if s == c && p != c && is_register(p) =>
        {
            Some((Op::BsContextPosition, vec![c, p, live]))
        }
        ((Op::BsContext, &[NONE, c, live]), (Op::BsGetByte, &[l, s, d])) if s == c => {
            Some((Op::BsNextByte, vec![l, c, d, live]))
        }
        ((Op::BsNextByte, &[l, c, d, live]), (Op::JumpTable, &[r, to, lo, n])) if d == r => {
            join(Op::BsNextByteTable, &[l, c, d, live], &[to, lo, n])
        }
        ((Op::BsContextPosition, &[c, p, live]), (Op::BsGetByte, &[l, s, d])) if s == c => {
            Some((Op::BsNextBytePosition, vec![l, c, p, d, live]))
        }
        ((Op::Add, &[NONE, a, b, d, _]), (Op::CallOnly, &[to, n])) => {
            Some((Op::AddCallOnly, vec![NONE, a, b, d, to, n]))
        }
        ((Op::Sub, &[NONE, a, b, d, _]), (Op::CallOnly, &[to, n])) => {
            Some((Op::SubCallOnly, vec![NONE, a, b, d, to, n]))
        }
        ((Op::IsGe, &[l, s, Arg::C(lo)]), (Op::IsGe, &[l2, Arg::C(hi), s2]))
            if l == l2 && s == s2 && is_register(s) && is_small(lo) && is_small(hi) =>
        {
            Some((Op::IsInRange, vec![l, s, Arg::Q(lo), Arg::Q(hi)]))
        }
        _ => None,
    }
}

/// The op that is `op` with a move to x0 before it.
fn called_with_move(op: Op) -> Option<Op> {
    Some(match op {
        Op::Call => Op::MoveCall,
        Op::CallLast => Op::MoveCallLast,
        Op::CallOnly => Op::MoveCallOnly,
        Op::CallExt => Op::MoveCallExt,
        Op::CallExtLast => Op::MoveCallExtLast,
        Op::CallExtOnly => Op::MoveCallExtOnly,
        Op::Return => Op::MoveReturn,
        Op::Deallocate => Op::MoveDeallocate,
        _ => return None,
    })
}

fn is_small(w: u64) -> bool {
    w & 15 == purlin_term::word::TAG_SMALL
}

/// An op with its operands.
type Part = (Op, Vec<Arg>);

/// Splits `a` into all but its last part, and that part: so that the last move of several can go with `next`, a call.
pub(super) fn split(a: Op, args: &[Arg], next: Op) -> Option<(Part, Part)> {
    called_with_move(next)?;
    let (op, at) = match a {
        Op::Move2 => (Op::Move, 2),
        Op::Move3 => (Op::Move2, 4),
        Op::AllocateMove => (Op::Allocate, 2),
        _ => return None,
    };
    let (x, y) = args.split_at(at);
    Some(((op, x.to_vec()), (Op::Move, y.to_vec())))
}
