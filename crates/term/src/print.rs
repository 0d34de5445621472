//! Terms as text: for `erlang:display/1`, log lines and dumps; and the forms of floats.
//!
//! Output is bounded by a number of characters; nothing recurses.

use crate::atom;
use crate::compare::{hashmap_pairs, pid_parts, port_parts, ref_parts};
use crate::node;
use crate::release::{self, LARGE_MAPS_SHOWN_BACK};
use crate::word::Term;
use std::fmt::Write;

/// The printer of stock whose habits to follow where they differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// `erlang:display/1`: strings as such, floats with six decimals.
    Display,
    /// `io:format("~w")`: strings as lists, floats as short as possible.
    Write,
}

/// The shortest text that reads back as `f`: the plainer of the decimal and the scientific form unless it is longer.
pub fn format_float_short(f: f64) -> String {
    let mut sci = format!("{f:e}");
    // Where two texts of that length are equally near, the one that ends with an even digit is taken.
    let digits = sci
        .bytes()
        .take_while(|&c| c != b'e')
        .filter(u8::is_ascii_digit);
    let digits = digits.count();
    if digits > 15 {
        let even = format!("{f:.*e}", digits - 1);
        if even.parse() == Ok(f) {
            sci = even;
        }
    }
    let (mant, exp) = sci.split_once('e').unwrap_or((&sci, "0"));
    let exp: i32 = exp.parse().unwrap_or(0);
    let (sign, mant) = mant.strip_prefix('-').map_or(("", mant), |m| ("-", m));
    let (whole, rest) = mant.split_once('.').unwrap_or((mant, "0"));
    let sci = format!("{sign}{whole}.{rest}e{exp}");
    // From 2^53 on not every integer is a float: digits would promise what is not there.
    if f.abs() >= (1u64 << 53) as f64 {
        return sci;
    }
    // The same digits, with the point where it belongs.
    let digits = if rest == "0" {
        whole.to_string()
    } else {
        format!("{whole}{rest}")
    };
    let point = exp + 1;
    let dec = match usize::try_from(point) {
        Ok(n) if n >= digits.len() => format!("{sign}{digits}{:0<1$}.0", "", n - digits.len()),
        Ok(n) if n > 0 => format!("{sign}{}.{}", &digits[..n], &digits[n..]),
        _ => format!("{sign}0.{:0<1$}{digits}", "", point.unsigned_abs() as usize),
    };
    if dec.len() <= sci.len() { dec } else { sci }
}

/// `d.ddde±dd` with that many decimals, as C's `%.*e`.
pub fn format_float_scientific(f: f64, decimals: usize) -> String {
    let s = format!("{f:.decimals$e}");
    let (mant, exp) = s.split_once('e').unwrap_or((&s, "0"));
    let (sign, digits) = match exp.strip_prefix('-') {
        Some(d) => ('-', d),
        None => ('+', exp),
    };
    format!("{mant}e{sign}{digits:0>2}")
}

const RESERVED: &[&str] = &[
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case",
    "catch", "cond", "div", "end", "fun", "if", "let", "not", "of", "or", "orelse", "receive",
    "rem", "try", "when", "xor",
];

/// The atom as source text, quoted where it has to be.
pub fn format_atom(t: Term, style: Style) -> String {
    let name = atom::name(t);
    let lower = |c: char| c.is_ascii_lowercase() || ('ß'..='ÿ').contains(&c) && c != '÷';
    let word = |c: char| {
        c.is_ascii_alphanumeric()
            || c == '_'
            || (c == '@' && style == Style::Write)
            || ('À'..='ÿ').contains(&c) && c != '×' && c != '÷'
    };
    let plain = name.chars().next().is_some_and(lower)
        && name.chars().all(word)
        && !(style == Style::Write && RESERVED.contains(&name));
    if plain {
        return name.to_string();
    }
    let mut s = String::with_capacity(name.len() + 2);
    s.push('\'');
    for c in name.chars() {
        match c as u32 {
            w @ 256.. if style == Style::Write => {
                let _ = write!(s, "\\x{{{w:X}}}");
            }
            _ => escape(&mut s, c, '\''),
        }
    }
    s.push('\'');
    s
}

fn escape(s: &mut String, c: char, quote: char) {
    match c {
        '\n' => s.push_str("\\n"),
        '\t' => s.push_str("\\t"),
        '\r' => s.push_str("\\r"),
        '\x0b' => s.push_str("\\v"),
        '\x08' => s.push_str("\\b"),
        '\x0c' => s.push_str("\\f"),
        '\x1b' => s.push_str("\\e"),
        '\\' => s.push_str("\\\\"),
        c if c == quote => {
            s.push('\\');
            s.push(c);
        }
        c if (c as u32) < 32 || (127..160).contains(&(c as u32)) => {
            let _ = write!(s, "\\{:03o}", c as u32);
        }
        c => s.push(c),
    }
}

fn printable(b: u8) -> bool {
    (32..127).contains(&b) || (9..=13).contains(&b)
}

enum Todo {
    Term(Term),
    Text(&'static str),
    /// The rest of a list, behind its first element.
    Tail(Term),
    Pairs(Vec<(Term, Term)>, usize),
    Elements(*const Term, usize),
    /// Fields of a record, from that one on.
    Fields(Vec<(Term, Term)>, usize),
}

/// The text of `t`, cut off with `...` after about `limit` characters.
pub fn format_term(t: Term, style: Style, limit: usize) -> String {
    let mut s = String::new();
    let mut todo = vec![Todo::Term(t)];
    while let Some(x) = todo.pop() {
        if s.len() >= limit {
            s.push_str("...");
            return s;
        }
        match x {
            Todo::Text(x) => s.push_str(x),
            Todo::Tail(t) => match t.as_cons() {
                Some((h, tl)) => {
                    s.push(',');
                    todo.push(Todo::Tail(tl));
                    todo.push(Todo::Term(h));
                }
                None if t.is_nil() => s.push(']'),
                None => {
                    s.push('|');
                    todo.push(Todo::Text("]"));
                    todo.push(Todo::Term(t));
                }
            },
            Todo::Elements(p, n) => {
                if n > 0 {
                    // SAFETY: n elements of a tuple in hand are left there.
                    unsafe {
                        todo.push(Todo::Elements(p.add(1), n - 1));
                        if n > 1 {
                            todo.push(Todo::Text(","));
                        }
                        todo.push(Todo::Term(*p));
                    }
                }
            }
            Todo::Pairs(v, i) => {
                if let Some(&(k, x)) = v.get(i) {
                    if i > 0 {
                        s.push(',');
                    }
                    todo.push(Todo::Pairs(v, i + 1));
                    todo.push(Todo::Term(x));
                    todo.push(Todo::Text(match style {
                        Style::Display => "=>",
                        Style::Write => " => ",
                    }));
                    todo.push(Todo::Term(k));
                }
            }
            Todo::Fields(v, i) => {
                if let Some(&(k, x)) = v.get(i) {
                    if i > 0 {
                        s.push(',');
                    }
                    s.push_str(&format_atom(k, style));
                    s.push('=');
                    todo.push(Todo::Fields(v, i + 1));
                    todo.push(Todo::Term(x));
                }
            }
            Todo::Term(t) => term(&mut s, t, style, &mut todo, limit),
        }
    }
    s
}

fn channel(name: Term, creation: u32) -> u32 {
    if name == node::this_name() && creation == node::this_creation() {
        0
    } else {
        name.atom_index()
    }
}

fn term(s: &mut String, t: Term, style: Style, todo: &mut Vec<Todo>, limit: usize) {
    // Writing to a String cannot fail.
    if let Some(v) = t.as_small() {
        let _ = write!(s, "{v}");
    } else if t.is_atom() {
        s.push_str(&format_atom(t, style));
    } else if t.is_nil() {
        s.push_str("[]");
    } else if let Some((h, tl)) = t.as_cons() {
        let mut it = t.list_iter();
        let text = style == Style::Display
            && it.all(|c| {
                c.as_small()
                    .is_some_and(|v| (0..256).contains(&v) && printable(v as u8))
            })
            && it.tail().is_nil();
        if text {
            s.push('"');
            for c in t.list_iter() {
                if s.len() >= limit {
                    s.push_str("...");
                    break;
                }
                match c.small_value() as u8 as char {
                    '\n' => s.push_str("\\n"),
                    '"' => s.push_str("\\\""),
                    c => s.push(c),
                }
            }
            s.push('"');
        } else {
            s.push('[');
            todo.push(Todo::Tail(tl));
            todo.push(Todo::Term(h));
        }
    } else if let Some(e) = t.as_tuple() {
        s.push('{');
        todo.push(Todo::Text("}"));
        todo.push(Todo::Elements(e.as_ptr(), e.len()));
    } else if let Some((neg, d)) = t.as_big() {
        s.push_str(&decimal(neg, d));
    } else if let Some(f) = t.as_float() {
        s.push_str(&match style {
            Style::Display => format_float_scientific(f, 6),
            Style::Write => format_float_short(f),
        });
    } else if let Some(b) = t.as_bits() {
        let bytes = b.shifted();
        let left = b.bit_len & 7;
        s.push_str("<<");
        if style == Style::Display
            && left == 0
            && !bytes.is_empty()
            && bytes.iter().all(|&c| printable(c))
        {
            s.push('"');
            for &c in bytes.iter().take(limit) {
                match c {
                    b'\n' => s.push_str("\\n"),
                    b'"' => s.push_str("\\\""),
                    c => s.push(c as char),
                }
            }
            s.push('"');
        } else {
            for (i, &c) in bytes.iter().enumerate() {
                if s.len() >= limit {
                    break;
                }
                if i > 0 {
                    s.push(',');
                }
                if left > 0 && i + 1 == bytes.len() {
                    let _ = write!(s, "{}:{left}", c >> (8 - left));
                } else {
                    let _ = write!(s, "{c}");
                }
            }
        }
        s.push_str(">>");
    } else if let Some(r) = t.as_record() {
        let _ = write!(
            s,
            "#{}:{}{{",
            format_atom(r.definition.module(), style),
            format_atom(r.definition.name(), style)
        );
        todo.push(Todo::Text("}"));
        todo.push(Todo::Fields(r.ordered().collect(), 0));
    } else if t.is_map() {
        let mut v = Vec::new();
        hashmap_pairs(t, &mut v);
        let large = t.as_flatmap().is_none();
        if large && style == Style::Display && release::has(LARGE_MAPS_SHOWN_BACK) {
            v.reverse();
        }
        s.push_str("#{");
        todo.push(Todo::Text("}"));
        todo.push(Todo::Pairs(v, 0));
    } else if let Some(f) = t.as_fun() {
        if let Some(e) = f.export() {
            let _ = write!(
                s,
                "fun {}:{}/{}",
                format_atom(e.module, style),
                format_atom(e.function, style),
                e.arity
            );
        } else if let Some(e) = f.local() {
            let _ = write!(
                s,
                "#Fun<{}.{}.{}>",
                format_atom(e.module, style),
                e.old_index,
                e.old_uniq
            );
        }
    } else if let Some((num, serial, name, creation)) = pid_parts(t) {
        let _ = write!(s, "<{}.{num}.{serial}>", channel(name, creation));
    } else if let Some((num, name, creation)) = port_parts(t) {
        let _ = write!(s, "#Port<{}.{num}>", channel(name, creation));
    } else if let Some((nums, name, creation)) = ref_parts(t) {
        let _ = write!(s, "#Ref<{}", channel(name, creation));
        for n in nums.iter().rev() {
            let _ = write!(s, ".{n}");
        }
        s.push('>');
    } else {
        // A match context: no program ever sees one.
        let _ = write!(s, "<match context>");
    }
}

/// An integer of that sign and magnitude in decimal.
fn decimal(negative: bool, digits: &[u64]) -> String {
    let words: Vec<dashu_int::Word> = digits.iter().map(|&d| d as dashu_int::Word).collect();
    let u = dashu_int::UBig::from_words(&words);
    if negative {
        format!("-{u}")
    } else {
        u.to_string()
    }
}
