//! Limits that are compile-time constants in stock, readable and settable at run time.
//!
//! `purlin:limit(Name)` reads one, `purlin:set_limit(Name, Value)` sets it and returns the old
//! value, and `purlin:limits()` returns all. The flags `+F…` set them at start. Work in progress
//! may still use the old value.

use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, signal};
use purlin_term::iolist;
use purlin_term::layout::{heap_bin_limit, set_heap_bin_limit};
use purlin_term::{Alloc, Term, atom, gc};
use std::sync::atomic::Ordering;

/// A limit: its name, getter and setter.
type Row = (&'static str, fn() -> usize, fn(usize));

/// All limits. For `region`, 0 means never.
const LIMITS: &[Row] = &[
    // Parts of an I/O list smaller than this many bytes are copied together with their neighbours
    // when it is written.
    ("merge", iolist::small_limit, iolist::set_small_limit),
    // Maximum number of parts that one system call gets.
    ("iov", iolist::max_parts, iolist::set_max_parts),
    // Maximum number of bytes that are copied together before a write.
    ("scratch", iolist::scratch_bytes, iolist::set_scratch_bytes),
    // Binaries larger than this many bytes are allocated off the heap and counted.
    ("refc", heap_bin_limit, set_heap_bin_limit),
    // Terms of at least this many words are shared when sent.
    ("region", region, set_region),
    // Maximum number of words that a full sweep copies out of a region to release it; 0 is never.
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
