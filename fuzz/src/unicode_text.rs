//! Module `unicode`. Input: the function to call, then its data as a small program that builds
//! nested lists of binaries, unaligned binaries and integers.

use crate::Input;
use crate::world::World;
use purlin_term::{Alloc, NIL, Term, atom};

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let what = input.byte();
    let mut w = World::new();
    let encoding = atom::intern(["utf8", "latin1", "unicode"][(what >> 4) as usize % 3]);
    if what & 8 != 0 {
        plain(&mut w, input.0);
        return;
    }
    let data = nested(&mut w, &mut input);
    let f = ["characters_to_binary", "characters_to_list"][what as usize & 1];
    let _ = w.apply("unicode", f, &[data, encoding], 1000);
}

/// One binary as UTF-8, against Rust's own idea of it.
fn plain(w: &mut World, bytes: &[u8]) {
    let utf8 = atom::intern("utf8");
    let expected = std::str::from_utf8(bytes).ok();
    for f in ["characters_to_binary", "characters_to_list"] {
        let t = w.cx.binary(bytes);
        let got = w.apply("unicode", f, &[t, utf8], 1000).value();
        let agrees = match (expected, got) {
            (Some(s), Some(t)) if f == "characters_to_list" => {
                let chars = t.list_to_vec();
                chars.is_some_and(|v| v.into_iter().eq(s.chars().map(|c| Term::small(c as i64))))
            }
            (Some(_), Some(t)) => t.as_binary().is_some_and(|b| *b == *bytes),
            (None, Some(t)) => t.as_tuple().is_some(),
            (_, None) => false,
        };
        assert!(agrees, "{f} of {bytes:?}");
    }
    let t = w.cx.binary(bytes);
    let _ = w.apply("unicode", "bin_is_7bit", &[t], 10);
}

fn nested(w: &mut World, input: &mut Input) -> Term {
    let mut open: Vec<Vec<Term>> = vec![Vec::new()];
    while !input.0.is_empty() {
        let op = input.byte();
        let item = match op & 7 {
            0 | 1 => {
                let b = input.short();
                w.cx.binary(b)
            }
            2 => {
                // Begins inside a byte, and may end there.
                let b = input.short();
                let t = w.cx.binary(b);
                let (skip, bits) = ((op >> 3) as usize & 7, b.len() * 8);
                let cut = if op & 0x40 == 0 { bits & !7 } else { bits };
                w.cx.sub_binary(t, skip.min(bits), cut.saturating_sub(8).min(bits))
            }
            3 => Term::small(input.byte() as i64),
            4 => {
                let (a, b) = (input.byte() as i64, input.byte() as i64);
                Term::small((((op >> 3) as i64) << 16 | a << 8 | b) - i64::from(op >> 7))
            }
            5 => {
                open.push(Vec::new());
                continue;
            }
            _ => match open.pop() {
                Some(items) if !open.is_empty() => {
                    let tail = if op & 8 == 0 {
                        NIL
                    } else {
                        w.cx.binary(input.short())
                    };
                    w.cx.list_tail(&items, tail)
                }
                items => {
                    open.push(items.unwrap_or_default());
                    continue;
                }
            },
        };
        if let Some(items) = open.last_mut() {
            items.push(item);
        }
    }
    let mut t = NIL;
    while let Some(mut items) = open.pop() {
        if !t.is_nil() {
            items.push(t);
        }
        t = w.cx.list(&items);
    }
    t
}
