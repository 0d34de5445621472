//! Natives of module `erlang` that turn pids, ports and references into text and back.

use super::convert::bytes_of;
use crate::cx::{BifResult, Env, Fail};
use purlin_term::print::{Style, format_term};
use purlin_term::word::{PID_DATA_BITS, PID_NUM_BITS};
use purlin_term::{Alloc, NIL, Term};

/// A term's text as a list.
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

/// The numbers in text such as `<0.5.0>` between `open` and `>`, with points between them.
fn numbers(l: Term, open: &str) -> Option<Vec<u64>> {
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
            std::str::from_utf8(d).ok()?.parse().ok()
        })
        .collect()
}

/// The first number names the node: 0 is this one. Pids of others cannot be made from text while they are not
/// connected.
fn list_to_pid_1(_cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    match numbers(l, "<").as_deref() {
        Some(&[0, num, serial])
            if num >> PID_NUM_BITS == 0 && serial >> (PID_DATA_BITS - PID_NUM_BITS) == 0 =>
        {
            Ok(Term::pid(num as u32 | (serial as u32) << PID_NUM_BITS))
        }
        _ => Err(Fail::Badarg),
    }
}
fn list_to_port_1(_cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    match numbers(l, "#Port<").as_deref() {
        Some(&[0, num]) if num >> PID_DATA_BITS == 0 => Ok(Term::port(num as u32)),
        _ => Err(Fail::Badarg),
    }
}
fn list_to_ref_1(cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    match numbers(l, "#Ref<").as_deref() {
        // The text has the numbers in reverse; the first has 18 bits.
        Some(&[0, c, b, a]) if a < 1 << 18 && b <= u32::MAX as u64 && c <= u32::MAX as u64 => {
            Ok(cx.local_ref([a as u32, b as u32, c as u32]))
        }
        _ => Err(Fail::Badarg),
    }
}

crate::bifs! {
    Plain "erlang":"pid_to_list"/1 = pid_to_list_1;
    Plain "erlang":"list_to_pid"/1 = list_to_pid_1;
    Plain "erlang":"port_to_list"/1 = port_to_list_1;
    Plain "erlang":"list_to_port"/1 = list_to_port_1;
    Plain "erlang":"ref_to_list"/1 = ref_to_list_1;
    Plain "erlang":"list_to_ref"/1 = list_to_ref_1;
}
