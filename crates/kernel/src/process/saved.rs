//! Saved calls: the last ones that a process has made of functions that modules export, `process_flag(save_calls, N)`.
//!
//! A process that saves them ([`SAVES`] in its flags) has one reduction at a time, so that each of its calls goes the way
//! of those that end a time slice, which is where they are noted: other processes pay nothing. What is left of its slice
//! stands in [`Cx::kept_reds`] meanwhile.

use crate::cx::Cx;
use crate::lazy_atoms;
use crate::process::{Process, SAVES, SENSITIVE};
use purlin_term::{Alloc, Term, am};
use std::collections::VecDeque;

lazy_atoms! {
    receive = "receive";
}

/// The saved parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Module, function, arity.
    Function(Term, Term, usize),
    Send,
    Receive,
    Timeout,
}

/// The calls of a process, oldest first.
#[derive(Default)]
pub struct Saved {
    most: usize,
    calls: VecDeque<Call>,
}

/// Has a process that the caller owns save that many calls, and forget those it has saved; 0: none. How many it did before.
pub fn set(p: &mut Process, most: usize) -> usize {
    let new = (most != 0).then(|| {
        Box::new(Saved {
            most,
            calls: VecDeque::new(),
        })
    });
    p.set_flag(SAVES, most != 0);
    let old = std::mem::replace(&mut p.ext_mut().saved, new);
    old.map_or(0, |s| s.most)
}

/// Notes a call of a process that saves them.
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
        if s.calls.len() >= s.most {
            s.calls.pop_front();
        }
        s.calls.push_back(c);
    }
}

/// `false`, or the saved calls, newest first where there was a list.
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

/// A time slice begins, or goes on, of a process that saves its calls.
pub fn begin(cx: &mut Cx) {
    cx.kept_reds = (cx.reds - 1).max(0);
    cx.reds -= cx.kept_reds;
    cx.charged -= cx.kept_reds;
}

/// The running process has used up its reduction. Notes the call that it makes; whether its slice goes on.
#[cold]
#[inline(never)]
pub fn goes_on(cx: &mut Cx, call: Option<Call>) -> bool {
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
