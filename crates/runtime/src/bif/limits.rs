//! Limits that stock fixes when it is compiled, read and set while the runtime runs.
//!
//! `purlin:limit(Name)` tells one, `purlin:set_limit(Name, Value)` sets it and tells what it was, and `purlin:limits()` is
//! all of them. The flags `+F…` set them at start. Work under way may still go by the value before.

use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, signal};
use purlin_term::iolist;
use purlin_term::layout::{heap_bin_limit, set_heap_bin_limit};
use purlin_term::{Alloc, Term, atom, gc};
use std::sync::atomic::Ordering;

/// A limit: name, how it is read, how it is set.
type Row = (&'static str, fn() -> usize, fn(usize));

/// All of them. 0 for `region` is never.
const LIMITS: &[Row] = &[
    // Parts of an I/O list of fewer bytes are copied together with their neighbours when it is written.
    ("merge", iolist::small_limit, iolist::set_small_limit),
    // Most parts that one system call is given.
    ("iov", iolist::max_parts, iolist::set_max_parts),
    // Bytes that are copied together before they are written.
    ("scratch", iolist::scratch_bytes, iolist::set_scratch_bytes),
    // Binaries of more bytes are made off the heap, and counted.
    ("refc", heap_bin_limit, set_heap_bin_limit),
    // Words from which on a term is shared when it is sent.
    ("region", region, set_region),
    // Most words that a full sweep copies out of a region to give it up; 0 for never.
    ("leave", leave, set_leave),
];

fn leave() -> usize {
    gc::LEAVE_AT_MOST_WORDS.load(Ordering::Relaxed)
}
fn set_leave(n: usize) {
    gc::LEAVE_AT_MOST_WORDS.store(n, Ordering::Relaxed);
}

fn region() -> usize {
    match signal::share::asked_threshold() {
        usize::MAX => 0,
        n => n,
    }
}
fn set_region(n: usize) {
    signal::share::set_threshold(n);
}

fn row(name: Term) -> Result<&'static Row, Fail> {
    let mut rows = LIMITS.iter();
    rows.find(|r| name.is_atom() && atom::name(name) == r.0)
        .ok_or(Fail::Badarg)
}

fn limits_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let mut all = Vec::with_capacity(LIMITS.len());
    for (name, get, _) in LIMITS {
        let n = cx.uint(get() as u64);
        all.push(cx.tuple(&[atom::intern(name), n]));
    }
    Ok(cx.list(&all))
}

fn limit_1(cx: &mut Cx, [name]: [Term; 1]) -> BifResult {
    let (_, get, _) = row(name)?;
    Ok(cx.uint(get() as u64))
}

fn set_limit_2(cx: &mut Cx, [name, value]: [Term; 2]) -> BifResult {
    let (_, get, set) = row(name)?;
    let value = value.as_small().and_then(|n| usize::try_from(n).ok());
    let value = value.ok_or(Fail::Badarg)?;
    let old = cx.uint(get() as u64);
    set(value);
    Ok(old)
}

bifs! {
    Plain "purlin":"limits"/0 = limits_0;
    Plain "purlin":"limit"/1 = limit_1;
    Plain "purlin":"set_limit"/2 = set_limit_2;
}
