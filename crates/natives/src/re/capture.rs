//! The groups of a match: which of them are wanted, and as what terms.

use super::pattern::Code;
use super::shared::{all_but_first, all_names, first, index};
use crate::cx::Env;
use crate::iolist;
use purlin_term::{Alloc, NIL, Term, am, atom};
use smallvec::SmallVec;

/// A group in the result of a match.
pub(super) enum Group {
    Number(i64),
    /// The first of these groups that took part.
    AnyOf(Vec<usize>),
}

/// The result that is wanted of a match.
pub(super) enum Wanted {
    Nothing,
    /// All groups from that one on.
    From(usize),
    These(Vec<Group>),
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum As {
    Index,
    List,
    Binary,
}

fn group_named(code: &Code, name: &[u8]) -> Group {
    let all: Vec<usize> = (code.names.iter())
        .filter(|(n, _)| n == name)
        .map(|e| e.1)
        .collect();
    match all[..] {
        [] => Group::Number(-1),
        [n] => Group::Number(n as i64),
        _ => Group::AnyOf(all),
    }
}

pub(super) fn wanted(code: &Code, spec: Option<(Term, Term)>) -> Option<(Wanted, As)> {
    let Some((what, kind)) = spec else {
        return Some((Wanted::From(0), As::Index));
    };
    let kind = if kind == index() {
        As::Index
    } else if kind == am::LIST {
        As::List
    } else if kind == am::BINARY {
        As::Binary
    } else {
        return None;
    };
    let w = if what == am::ALL {
        Wanted::From(0)
    } else if what == am::NONE || what.is_nil() {
        Wanted::Nothing
    } else if what == all_but_first() {
        Wanted::From(1)
    } else if what == first() {
        Wanted::These(vec![Group::Number(0)])
    } else if what == all_names() {
        let names = code.name_list();
        if names.is_empty() {
            Wanted::Nothing
        } else {
            Wanted::These(names.iter().map(|n| group_named(code, n)).collect())
        }
    } else {
        let mut v = Vec::new();
        for t in what.list_to_vec()? {
            v.push(if let Some(n) = t.as_small().filter(|&n| n >= 0) {
                Group::Number(n)
            } else if t.is_atom() {
                group_named(code, atom::name(t).as_bytes())
            } else if t.is_list() || t.is_binary() {
                group_named(code, &iolist::to_vec(t).ok()?)
            } else {
                return None;
            });
        }
        Wanted::These(v)
    };
    Some((w, kind))
}

/// Ranges of the groups of a match; `None` for groups that took no part. It is large, so it stays
/// in the frame of who asked for the match.
pub(super) type Groups = SmallVec<[Option<(usize, usize)>; 8]>;

pub(super) fn group_term(
    cx: &mut Env,
    kind: As,
    subject: Term,
    bytes: &[u8],
    g: Option<(usize, usize)>,
) -> Term {
    match (kind, g) {
        (As::Index, None) => cx.tuple(&[Term::small(-1), Term::small(0)]),
        (As::Index, Some((a, b))) => {
            cx.tuple(&[Term::small(a as i64), Term::small((b - a) as i64)])
        }
        (As::List, g) => {
            let (a, b) = g.unwrap_or((0, 0));
            cx.byte_list(&bytes[a..b], NIL)
        }
        (As::Binary, g) => {
            let (a, b) = g.unwrap_or((0, 0));
            if subject.is_list() {
                cx.binary(&bytes[a..b])
            } else {
                cx.part(subject, a, b - a)
            }
        }
    }
}

/// Returns the range of a group of a match.
pub(super) fn range_of(found: &Groups, g: &Group) -> Option<(usize, usize)> {
    match g {
        Group::Number(n) => usize::try_from(*n)
            .ok()
            .and_then(|n| found.get(n).copied().flatten()),
        Group::AnyOf(v) => v.iter().find_map(|&n| found.get(n).copied().flatten()),
    }
}
