//! Atoms of the module, the continuation of a native in Erlang code, and where a native runs.

use crate::cx::{Env, Fail};
use crate::lazy_atoms;
use purlin_term::Term;

lazy_atoms! {
    pub(super) re = "re";
    pub(super) re_pattern = "re_pattern";
    pub(super) re_exported_pattern = "re_exported_pattern";
    pub(super) ucompile = "ucompile";
    pub(super) urun = "urun";
    pub(super) grun = "grun";
    pub(super) match_ = "match";
    pub(super) match_limit = "match_limit";
    pub(super) match_limit_recursion = "match_limit_recursion";
    pub(super) capture = "capture";
    pub(super) offset = "offset";
    pub(super) newline = "newline";
    pub(super) index = "index";
    pub(super) first = "first";
    pub(super) all_names = "all_names";
    pub(super) all_but_first = "all_but_first";
    pub(super) purlin = "purlin";
    pub(super) re_long = "re_long";
    pub(super) namelist = "namelist";
}

pub(super) fn continue_in(cx: &mut Env, function: Term, args: &[Term]) -> Fail {
    continue_at(cx, re(), function, args)
}

pub(super) fn continue_at(cx: &mut Env, module: Term, function: Term, args: &[Term]) -> Fail {
    let target = crate::exports::export(module, function, args.len() as u32);
    cx.trap(target, args)
}

/// Where a match runs.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum At {
    /// On a scheduler: one that turns out to be long starts over elsewhere.
    Scheduler,
    DirtyThread,
}
