//! Saved calls: the last calls of exported functions that a process has made,
//! `process_flag(save_calls, N)`.
//!
//! A process that saves calls ([`SAVES`] in its flags) has one reduction at a time. Each of its
//! calls thus takes the path of those that end a time slice, which records it; other processes pay
//! nothing. [`Cx::kept_reds`] holds the rest of its slice meanwhile.

use crate::cx::Cx;
use crate::lazy_atoms;
use crate::process::{Process, SAVES, SENSITIVE};
use purlin_term::{Alloc, Term, am};
use std::collections::VecDeque;

lazy_atoms! {
    receive = "receive";
}

/// A saved event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Module, function, arity.
    Function(Term, Term, usize),
    Send,
    Receive,
    Timeout,
}

/// The saved calls of a process, oldest first.
#[derive(Default)]
pub struct Saved {
    most: usize,
    calls: VecDeque<Call>,
    /// Number of messages to come that stock's natives return as their result.
    results: usize,
}

/// Sets how many calls a process that the caller owns saves (0 for none), and forgets the saved
/// ones. Returns the previous number.
pub fn set(p: &mut Process, most: usize) -> usize {
    let new = (most != 0).then(|| {
        Box::new(Saved {
            most,
            calls: VecDeque::new(),
            results: 0,
        })
    });
    p.set_flag(SAVES, most != 0);
    let old = std::mem::replace(&mut p.ext_mut().saved, new);
    old.map_or(0, |s| s.most)
}

/// Records a call of a process that saves calls.
#[cold]
pub fn note(p: &mut Process, c: Call) {
    if p.has(SENSITIVE) {
        return;
    }
    if let Some(s) = p
        .ext()
        .and_then(|e| e.rare())
        .and_then(|r| r.saved.as_mut())
    {
        if c == Call::Receive && s.results > 0 {
            s.results -= 1;
            return;
        }
        if s.calls.len() >= s.most {
            s.calls.pop_front();
        }
        s.calls.push_back(c);
    }
}

/// Does not record the next received message, which stock's native returns as its result.
#[cold]
pub fn returns_result(p: &mut Process) {
    if let Some(s) = p
        .ext()
        .and_then(|e| e.rare())
        .and_then(|r| r.saved.as_mut())
    {
        s.results += 1;
    }
}

/// Removes the record of the call `c` if it is the last one: the native runs again later, which
/// records it again.
#[cold]
pub fn retract(p: &mut Process, c: Call) {
    if let Some(s) = p
        .ext()
        .and_then(|e| e.rare())
        .and_then(|r| r.saved.as_mut())
        && s.calls.back() == Some(&c)
    {
        s.calls.pop_back();
    }
}

/// Returns `false`, or the list of saved calls, oldest first.
pub fn shown(p: &mut Process, a: &mut dyn Alloc) -> Term {
    let Some(s) = p
        .ext()
        .and_then(|e| e.rare())
        .and_then(|r| r.saved.as_ref())
    else {
        return am::FALSE;
    };
    let calls: Vec<Term> = s
        .calls
        .iter()
        .map(|c| match *c {
            Call::Function(m, f, n) => a.tuple(&[m, f, Term::small(n as i64)]),
            Call::Send => am::SEND,
            Call::Receive => receive(),
            Call::Timeout => am::TIMEOUT,
        })
        .collect();
    a.list(&calls)
}

/// Starts or continues a time slice of a process that saves its calls.
pub fn begin(cx: &mut Cx) {
    cx.kept_reds = (cx.reds - 1).max(0);
    cx.reds -= cx.kept_reds;
    cx.charged -= cx.kept_reds;
}

/// Handles the exhausted reduction of the running process: records the call that it makes. Returns
/// whether its time slice continues.
#[cold]
#[inline(never)]
pub fn continue_slice(cx: &mut Cx, call: Option<Call>) -> bool {
    if cx.proc.is_null() || !cx.process().has(SAVES) {
        return false;
    }
    if let Some(c) = call {
        note(cx.process(), c);
    }
    let need = 1 - cx.reds;
    if cx.kept_reds < need {
        return false;
    }
    cx.kept_reds -= need;
    cx.reds += need;
    cx.charged += need;
    true
}
