//! Natives of module `erlang` that convert pids, ports and references to text. The opposite
//! direction needs the table of nodes.

use super::convert::bytes_of;
use crate::cx::{BifResult, Env, Fail};
use purlin_term::print::{Style, format_term};
use purlin_term::{Alloc, NIL, Term};

/// Returns a term's text as a list.
pub(super) fn text_of(cx: &mut Env, t: Term) -> Term {
    let s = format_term(t, Style::Display, usize::MAX);
    cx.byte_list(s.as_bytes(), NIL)
}

fn pid_to_list_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    if !t.is_pid() {
        return Err(Fail::Badarg);
    }
    Ok(text_of(cx, t))
}
fn port_to_list_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    if !t.is_port() {
        return Err(Fail::Badarg);
    }
    Ok(text_of(cx, t))
}
fn ref_to_list_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    if !t.is_ref() {
        return Err(Fail::Badarg);
    }
    Ok(text_of(cx, t))
}

/// Parses the numbers in text such as `<0.5.0>` between `open` and `>`, separated by points.
pub fn numbers(l: Term, open: &str, most: usize) -> Option<Vec<u64>> {
    // Longer text is not read.
    if l.list_iter().nth(most).is_some() {
        return None;
    }
    let text = bytes_of(l)?;
    let inner = text
        .strip_prefix(open.as_bytes())
        .and_then(|s| s.strip_suffix(b">"))?;
    inner
        .split(|&c| c == b'.')
        .map(|d| {
            if d.is_empty() || !d.iter().all(u8::is_ascii_digit) {
                return None;
            }
            // As on stock, what a number has above its 64 bits is lost.
            let add = |n: u64, &c: &u8| n.wrapping_mul(10).wrapping_add(u64::from(c - b'0'));
            Some(d.iter().fold(0, add))
        })
        .collect()
}

crate::bifs! {
    Plain "erlang":"pid_to_list"/1 = pid_to_list_1;
    Plain "erlang":"port_to_list"/1 = port_to_list_1;
    Plain "erlang":"ref_to_list"/1 = ref_to_list_1;
}
