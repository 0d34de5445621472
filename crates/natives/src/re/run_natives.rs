//! `run`, on a scheduler or on a dirty thread.

use super::cache::{compiled, compiles_long};
use super::capture::{Groups, Wanted, group_term, range_of, wanted};
use super::compile::{Found, as_pattern, compiled_from, fault_term, flat, pattern_term};
use super::matching::{LONG, Match};
use super::options::{Options, badopt, options};
use super::pattern::Code;
use super::shared::{
    At, continue_at, continue_in, grun, match_, match_limit, match_limit_recursion, purlin, re,
    re_long, urun,
};
use super::utf8::{fails_within, is_remembered, known_utf8, within_character};
use crate::binary::nomatch;
use crate::cx::{BifResult, Env, Fail};
use crate::reschedule;
use pcre2_sys as sys;
use purlin_term::release::{self, PATTERNS_OF_PCRE2};
use purlin_term::{Alloc, NIL, Term, am, atom};
use smallvec::SmallVec;
use std::ffi::c_int;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The maximum number of reductions of a match on a scheduler that starts over.
const SHORT_REDUCTIONS: usize = 1_000;

/// Minimum size of a subject whose UTF-8 only a dirty thread checks, in bytes.
const LONG_CHECK: usize = 1 << 20;

pub(super) fn run(cx: &mut Env, subject: Term, pat: Term, opts: Term, first: bool) -> BifResult {
    run_at(cx, subject, pat, opts, first, At::Scheduler)
}

/// Returns the compiled form of the pattern of a match, or the result of the match if that is a
/// fault of the pattern. Fails if the Erlang half of the module continues. `None`: compiling the
/// pattern takes too long for a scheduler.
fn to_run(
    cx: &mut Env,
    subject: Term,
    pat: Term,
    opts: Term,
    o: &Options,
    place: At,
) -> Result<ControlFlow<Term, Option<Arc<Code>>>, Fail> {
    let lists = o.capture.is_some_and(|(_, k)| k == am::LIST) && !o.global;
    let code = match pat.as_tuple() {
        Some(t) if t.len() == 5 => {
            if o.compile_only {
                return Err(Fail::Badarg);
            }
            let (bin, unicode) = as_pattern(pat).ok_or(Fail::Badarg)?;
            if unicode && (!subject.is_binary() || lists) {
                return Err(continue_in(cx, urun(), &[subject, pat, opts]));
            }
            if o.global {
                let r = cx.tuple(&[opts, am::FALSE]);
                return Err(continue_in(cx, grun(), &[subject, pat, r]));
            }
            match compiled_from(&bin, o.newline, o.bsr, place) {
                Found::Nothing => return Err(Fail::Badarg),
                Found::Long => None,
                Found::Here(code) => Some(code),
            }
        }
        _ => {
            if !pat.is_binary() && !pat.is_list() {
                return Err(Fail::Badarg);
            }
            if o.unicode() && (!pat.is_binary() || !subject.is_binary() || lists) {
                return Err(continue_in(cx, urun(), &[subject, pat, opts]));
            }
            let here = place == At::Scheduler;
            let Some(text) = flat(pat, here)? else {
                return Ok(ControlFlow::Continue(None));
            };
            let src = o.source(text);
            if here && compiles_long(&src) {
                return Ok(ControlFlow::Continue(None));
            }
            cx.bump(src.text.len() / 8 + 1);
            let code = match compiled(&src) {
                Ok(c) => c,
                Err(f) if o.report_errors => {
                    let t = fault_term(cx, f);
                    let t = cx.tuple(&[am::COMPILE, t]);
                    return Ok(ControlFlow::Break(cx.err(t)));
                }
                Err(_) => return Err(Fail::Badarg),
            };
            if o.global {
                let p = pattern_term(cx, &src, &code);
                let r = cx.tuple(&[opts, Term::bool(o.compile_only), pat]);
                return Err(continue_in(cx, grun(), &[subject, p, r]));
            }
            Some(code)
        }
    };
    Ok(ControlFlow::Continue(code))
}

/// Returns the result of a match that ended with PCRE2's error `e`.
fn no_match(cx: &mut Env, e: c_int, report_errors: bool, bytes: &[u8]) -> BifResult {
    match e {
        sys::PCRE2_ERROR_MATCHLIMIT if report_errors => Ok(cx.err(match_limit())),
        sys::PCRE2_ERROR_DEPTHLIMIT | sys::PCRE2_ERROR_HEAPLIMIT if report_errors => {
            Ok(cx.err(match_limit_recursion()))
        }
        sys::PCRE2_ERROR_NOMATCH
        | sys::PCRE2_ERROR_MATCHLIMIT
        | sys::PCRE2_ERROR_DEPTHLIMIT
        | sys::PCRE2_ERROR_HEAPLIMIT
        | sys::PCRE2_ERROR_RECURSELOOP => Ok(nomatch()),
        sys::PCRE2_ERROR_UTF8_ERR21..=sys::PCRE2_ERROR_UTF8_ERR1 => Err(Fail::Badarg),
        sys::PCRE2_ERROR_BADUTFOFFSET => fails_within(bytes),
        // PCRE has another error for an offset beyond the end, which stock doesn't know.
        sys::PCRE2_ERROR_BADOFFSET if release::has(PATTERNS_OF_PCRE2) => Err(Fail::Badarg),
        sys::PCRE2_ERROR_CALLOUT => Err(Fail::Exited),
        _ => {
            let f = cx.error(am::INTERNAL_ERROR);
            cx.exc.error_info = true;
            Err(f)
        }
    }
}

fn run_at(cx: &mut Env, subject: Term, pat: Term, opts: Term, first: bool, place: At) -> BifResult {
    let Some(mut o) = options(opts) else {
        return Err(badopt(cx));
    };
    let here = place == At::Scheduler;
    let leave = |cx: &mut Env| {
        let args = [subject, pat, opts, Term::bool(first)];
        Err(continue_at(cx, purlin(), re_long(), &args))
    };
    let code = match to_run(cx, subject, pat, opts, &o, place)? {
        ControlFlow::Continue(Some(code)) => code,
        ControlFlow::Continue(None) => return leave(cx),
        ControlFlow::Break(result) => return Ok(result),
    };
    let (want, kind) = wanted(&code, o.capture).ok_or(Fail::Badarg)?;
    let owned;
    let bytes: &[u8] = match subject.as_bits().and_then(|b| b.as_bytes()) {
        Some(b) => b,
        None => match flat(subject, here)? {
            Some(bytes) => {
                owned = bytes;
                &owned
            }
            None => return leave(cx),
        },
    };
    let remembers = code.unicode && (!first || bytes.len() > LONG);
    if here && code.utf && bytes.len() > LONG_CHECK && !(remembers && is_remembered(bytes)) {
        return leave(cx);
    }
    let known = remembers && known_utf8(subject, bytes, o.offset);
    // PCRE2 only looks at data after the offset; PCRE looks at all of it.
    let before = bytes.get(..o.offset).unwrap_or_default();
    let looks_at_all = !known && !release::has(PATTERNS_OF_PCRE2);
    if looks_at_all && first && code.unicode && std::str::from_utf8(before).is_err() {
        return fails_within(bytes);
    }
    // `global` advances byte by byte if the pattern, not the options, says that the subject is
    // UTF-8.
    let within = match !first && code.utf {
        true => within_character(bytes, o.offset),
        false => None,
    };
    let mut groups = Groups::new();
    let mut this = Match {
        code: &code,
        bytes,
        groups: &mut groups,
        within,
        check: !known,
    };
    let found = match place {
        At::Scheduler => this.here(&mut o),
        At::DirtyThread => Some(this.run_whole(&mut o)),
    };
    let Some(found) = found else {
        cx.bump(SHORT_REDUCTIONS);
        return leave(cx);
    };
    // Data after the match was not looked at, unless it was checked.
    let seen = match &found {
        Ok(()) if known || !code.utf => groups.first().copied().flatten().map_or(0, |g| g.1),
        _ => bytes.len(),
    };
    cx.bump(seen.saturating_sub(o.offset) / 64 + 10);
    if let Err(e) = found {
        return no_match(cx, e, o.report_errors, bytes);
    }
    let mut term = |g| group_term(cx, kind, subject, bytes, g);
    let terms: SmallVec<[Term; 8]> = match want {
        Wanted::Nothing => return Ok(match_()),
        Wanted::From(n) => groups.iter().skip(n).map(|&g| term(g)).collect(),
        Wanted::These(v) => v.iter().map(|g| term(range_of(&groups, g))).collect(),
    };
    let l = cx.list(&terms);
    Ok(cx.tuple(&[match_(), l]))
}

pub(super) fn run_2(cx: &mut Env, [s, p]: [Term; 2]) -> BifResult {
    run(cx, s, p, NIL, true)
}

pub(super) fn run_3(cx: &mut Env, [s, p, o]: [Term; 3]) -> BifResult {
    run(cx, s, p, o, true)
}

pub(super) fn internal_run_4(cx: &mut Env, [s, p, o, is_first]: [Term; 4]) -> BifResult {
    let is_first = is_first.as_bool().ok_or(Fail::Badarg)?;
    run(cx, s, p, o, is_first)
}

/// Returns the native that `purlin:re_long/4` continues, by its last two arguments.
pub fn called(options: Term, is_first: Term) -> reschedule::Name {
    let (f, arity) = match (is_first == am::TRUE, options.is_nil()) {
        (true, true) => ("run", 2),
        (true, false) => ("run", 3),
        _ => ("internal_run", 4),
    };
    (re(), atom::intern(f), arity)
}

/// `purlin:re_long(Subject, Pattern, Options, IsFirst)`: a long match, from its beginning.
pub(super) fn re_long_4(cx: &mut Env, [s, p, o, is_first]: [Term; 4]) -> BifResult {
    let name = called(o, is_first);
    let is_first = is_first.as_bool().ok_or(Fail::Badarg)?;
    reschedule::open(cx, name, |cx| {
        run_at(cx, s, p, o, is_first, At::DirtyThread)
    })
}
