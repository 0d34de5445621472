//! The options of `compile/2` and `run/3`.

use super::pattern::Source;
use super::shared::{capture, index, match_limit, match_limit_recursion, newline, offset};
use crate::cx::{Env, Fail};
use pcre2_sys as sys;
use purlin_term::release::{self, EXPORTED_PATTERNS, NUL_ENDS_LINES, PATTERNS_OF_PCRE2};
use purlin_term::{Term, am, atom};

/// The number of an option that is given several times. The last one counts with PCRE2. With PCRE,
/// they are bits of one number, which may be that of another option, or of none.
fn one_of_several(before: u8, option: u32) -> u8 {
    match release::has(PATTERNS_OF_PCRE2) {
        true => option as u8,
        false => before | option as u8,
    }
}

/// Options of `compile` and `run`.
#[derive(Default)]
pub(super) struct Options {
    compile: u32,
    pub(super) run: u32,
    pub(super) newline: u8,
    pub(super) bsr: u8,
    /// An option that only `run` takes was given.
    pub(super) run_only: bool,
    /// An option that only `compile` takes was given.
    pub(super) compile_only: bool,
    /// The compiled pattern is to be exported.
    pub(super) export: bool,
    pub(super) global: bool,
    pub(super) report_errors: bool,
    pub(super) offset: usize,
    pub(super) match_limit: Option<u32>,
    pub(super) depth_limit: Option<u32>,
    /// The parts to return, and their form.
    pub(super) capture: Option<(Term, Term)>,
}

pub(super) fn limit(t: Term) -> Option<u32> {
    t.as_small()
        .filter(|n| (0..=i32::MAX as i64).contains(n))
        .map(|n| n as u32)
}

pub(super) fn options(list: Term) -> Option<Options> {
    let mut o = Options::default();
    let mut it = list.list_iter();
    for item in it.by_ref() {
        match item.as_tuple() {
            Some(&[k, what, kind]) if k == capture() => {
                o.capture = Some((what, kind));
                o.run_only = true;
            }
            Some(&[k, v]) if k == newline() && v.is_atom() => {
                let newline = match atom::name(v) {
                    "cr" => sys::PCRE2_NEWLINE_CR,
                    "lf" => sys::PCRE2_NEWLINE_LF,
                    "crlf" => sys::PCRE2_NEWLINE_CRLF,
                    "any" => sys::PCRE2_NEWLINE_ANY,
                    "anycrlf" => sys::PCRE2_NEWLINE_ANYCRLF,
                    "nul" if release::has(NUL_ENDS_LINES) => sys::PCRE2_NEWLINE_NUL,
                    _ => return None,
                };
                o.newline = one_of_several(o.newline, newline);
            }
            Some(&[k, v]) => {
                o.run_only = true;
                if k == capture() {
                    o.capture = Some((v, index()));
                } else if k == offset() {
                    o.offset = limit(v)? as usize;
                } else if k == match_limit() {
                    o.match_limit = Some(limit(v)?);
                } else if k == match_limit_recursion() {
                    o.depth_limit = Some(limit(v)?);
                } else {
                    return None;
                }
            }
            Some(_) => return None,
            None if item.is_atom() => atom_option(&mut o, atom::name(item))?,
            None => return None,
        }
    }
    it.tail().is_nil().then_some(o)
}

fn atom_option(o: &mut Options, name: &str) -> Option<()> {
    let compile = match name {
        "anchored" => {
            o.compile |= sys::PCRE2_ANCHORED;
            o.run |= sys::PCRE2_ANCHORED;
            return Some(());
        }
        "export" if release::has(EXPORTED_PATTERNS) => {
            o.export = true;
            o.compile_only = true;
            return Some(());
        }
        "bsr_anycrlf" => {
            o.bsr = one_of_several(o.bsr, sys::PCRE2_BSR_ANYCRLF);
            return Some(());
        }
        "bsr_unicode" => {
            o.bsr = one_of_several(o.bsr, sys::PCRE2_BSR_UNICODE);
            return Some(());
        }
        "notempty" | "notempty_atstart" | "notbol" | "noteol" | "report_errors" | "global" => {
            o.run_only = true;
            match name {
                "notempty" => o.run |= sys::PCRE2_NOTEMPTY,
                "notempty_atstart" => o.run |= sys::PCRE2_NOTEMPTY_ATSTART,
                "notbol" => o.run |= sys::PCRE2_NOTBOL,
                "noteol" => o.run |= sys::PCRE2_NOTEOL,
                "report_errors" => o.report_errors = true,
                _ => o.global = true,
            }
            return Some(());
        }
        "no_start_optimize" => sys::PCRE2_NO_START_OPTIMIZE,
        "caseless" => sys::PCRE2_CASELESS,
        "dollar_endonly" => sys::PCRE2_DOLLAR_ENDONLY,
        "dotall" => sys::PCRE2_DOTALL,
        "extended" => sys::PCRE2_EXTENDED,
        "firstline" => sys::PCRE2_FIRSTLINE,
        "multiline" => sys::PCRE2_MULTILINE,
        "no_auto_capture" => sys::PCRE2_NO_AUTO_CAPTURE,
        "dupnames" => sys::PCRE2_DUPNAMES,
        "ungreedy" => sys::PCRE2_UNGREEDY,
        "ucp" => sys::PCRE2_UCP,
        "never_utf" => sys::PCRE2_NEVER_UTF,
        "unicode" => sys::PCRE2_UTF,
        _ => return None,
    };
    o.compile |= compile;
    o.compile_only = true;
    Some(())
}

impl Options {
    pub(super) fn unicode(&self) -> bool {
        self.compile & sys::PCRE2_UTF != 0
    }
    pub(super) fn source(&self, text: Vec<u8>) -> Source {
        Source {
            options: self.compile,
            newline: self.newline,
            bsr: self.bsr,
            text,
        }
    }
}

pub(super) fn badopt(cx: &mut Env) -> Fail {
    cx.badarg_cause(am::BADOPT)
}
