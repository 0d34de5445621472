//! Terms as text: for `erlang:display/1`, log lines and dumps; and the formats of floats.
//!
//! Output is bounded by a number of characters; nothing recurses.

use crate::atom;
use crate::layout::Bits;
use crate::node;
use crate::parts::{hashmap_pairs, pid_parts, port_parts, ref_parts};
use crate::release::{self, LARGE_MAPS_SHOWN_BACK};
use crate::word::Term;
use std::fmt::{self, Write};

/// The printer of stock to imitate where they differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// `erlang:display/1`: strings as such, floats with six decimals.
    Display,
    /// `io:format("~w")`: strings as lists, floats as short as possible.
    Write,
}

/// A short text in a buffer of its own: the shortest form of a float has at most a sign, 17 digits,
/// a point, and an exponent with its sign.
#[derive(Clone, Copy)]
pub struct Short {
    bytes: [u8; 32],
    len: usize,
}

impl Short {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
    fn push_zeros(&mut self, n: usize) {
        self.bytes[self.len..self.len + n].fill(b'0');
        self.len += n;
    }
}

impl std::ops::Deref for Short {
    type Target = str;
    fn deref(&self) -> &str {
        // Only ASCII is pushed.
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

/// The digits of a positive number without zeros at either end (one zero for 0.0), their number,
/// and the position of the point, which may lie outside of them.
fn shortest_digits(text: &[u8]) -> ([u8; 17], usize, i32) {
    let mut digits = [b'0'; 17];
    let (mut n, mut zeros, mut point, mut behind) = (0, 0, 0, false);
    let mut rest = text.iter();
    for &c in rest.by_ref() {
        match c {
            b'.' => behind = true,
            b'e' => break,
            // A zero counts if a digit stands on both sides of it.
            b'0' => {
                match n {
                    0 => point -= i32::from(behind),
                    _ => zeros += 1,
                }
                point += i32::from(n > 0 && !behind);
            }
            c => {
                n += zeros;
                zeros = 0;
                digits[n] = c;
                n += 1;
                point += i32::from(!behind);
            }
        }
    }
    let exponent = std::str::from_utf8(rest.as_slice()).unwrap_or_default();
    point += exponent.parse::<i32>().unwrap_or(0);
    match n {
        0 => (digits, 1, 1),
        n => (digits, n, point),
    }
}

/// Whether the decimal form of a positive number below 2^53 is quickly seen to be no longer than
/// the scientific form: it has no zero before a point that only a zero follows, and not three zeros
/// behind the point of a number below 1.
fn is_plainly_decimal(text: &[u8]) -> bool {
    match text {
        [b'0', b'.', b'0', b'0', b'0', ..] => false,
        [.., b'0', b'.', b'0'] => text.len() == 3,
        _ => true,
    }
}

/// The shortest text that reads back as `f`: the decimal form unless the scientific one is shorter.
pub fn format_float_short(f: f64) -> Short {
    let mut text = Short {
        bytes: [0; 32],
        len: 0,
    };
    // The crate's output is nearly always right already. It uses the scientific form only if the
    // other is longer.
    let mut buffer = ryu::Buffer::new();
    let made = buffer.format_finite(f).as_bytes();
    let unsigned = &made[usize::from(f.is_sign_negative())..];
    let scientific = match unsigned {
        [_, b'e', ..] | [_, b'.', ..] => made.iter().position(|&c| c == b'e'),
        _ => None,
    };
    if let Some(at) = scientific {
        let (digits, exponent) = made.split_at(at);
        text.push(digits);
        if unsigned[1] == b'e' {
            text.push(b".0");
        }
        text.push(exponent);
        return text;
    }
    if f.abs() < (1u64 << 53) as f64 && is_plainly_decimal(unsigned) {
        text.push(made);
        return text;
    }
    let (digits, n, point) = shortest_digits(unsigned);
    let digits = &digits[..n];
    if f.is_sign_negative() {
        text.push(b"-");
    }
    let exponent = point - 1;
    let exponent_chars = match exponent.unsigned_abs() {
        0..10 => 1,
        10..100 => 2,
        _ => 3,
    } + usize::from(exponent < 0);
    let scientific = 2 + (n - 1).max(1) + 1 + exponent_chars;
    let decimal = match usize::try_from(point) {
        Ok(before) if before > 0 => before + 1 + n.saturating_sub(before).max(1),
        _ => 2 + point.unsigned_abs() as usize + n,
    };
    // From 2^53 on not every integer is a float: decimal digits would claim a precision that is not
    // there.
    if decimal > scientific || f.abs() >= (1u64 << 53) as f64 {
        text.push(&digits[..1]);
        text.push(b".");
        text.push(if n > 1 { &digits[1..] } else { b"0" });
        text.push(b"e");
        if exponent < 0 {
            text.push(b"-");
        }
        let e = exponent.unsigned_abs();
        for (over, unit) in [(100, 100), (10, 10), (0, 1)] {
            if e >= over {
                text.push(&[b'0' + (e / unit % 10) as u8]);
            }
        }
        return text;
    }
    match usize::try_from(point) {
        Ok(before) if before >= n => {
            text.push(digits);
            text.push_zeros(before - n);
            text.push(b".0");
        }
        Ok(before) if before > 0 => {
            text.push(&digits[..before]);
            text.push(b".");
            text.push(&digits[before..]);
        }
        _ => {
            text.push(b"0.");
            text.push_zeros(point.unsigned_abs() as usize);
            text.push(digits);
        }
    }
    text
}

/// `d.ddde±dd` with this many decimals, as C's `%.*e`.
pub fn format_float_scientific(f: f64, decimals: usize) -> String {
    let mut s = String::with_capacity(decimals + 8);
    // Writing to a String cannot fail.
    let _ = write_float_scientific(&mut s, f, decimals);
    s
}

/// Writes the text that [`format_float_scientific`] returns.
pub fn write_float_scientific(to: &mut impl Write, f: f64, decimals: usize) -> std::fmt::Result {
    let mut parts = Mantissa {
        to,
        exponent: None,
        negative: false,
    };
    write!(parts, "{f:.decimals$e}")?;
    let (exponent, negative) = (parts.exponent.unwrap_or(0), parts.negative);
    write!(to, "e{}{exponent:02}", if negative { '-' } else { '+' })
}

/// Passes the text on up to the exponent, which it keeps.
struct Mantissa<'a, W> {
    to: &'a mut W,
    exponent: Option<u32>,
    negative: bool,
}

impl<W: Write> Write for Mantissa<'_, W> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let mut rest = text;
        if self.exponent.is_none() {
            let Some((before, behind)) = text.split_once('e') else {
                return self.to.write_str(text);
            };
            self.to.write_str(before)?;
            rest = behind;
        }
        for c in rest.bytes() {
            self.negative |= c == b'-';
            let digit = u32::from(c.wrapping_sub(b'0'));
            self.exponent =
                Some(self.exponent.unwrap_or(0) * 10 + if digit < 10 { digit } else { 0 });
        }
        self.exponent.get_or_insert(0);
        Ok(())
    }
}

const RESERVED: &[&str] = &[
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case",
    "catch", "cond", "div", "end", "fun", "if", "let", "not", "of", "or", "orelse", "receive",
    "rem", "try", "when", "xor",
];

/// The atom as source text, quoted if necessary.
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
            _ => escape(&mut s, c, '\'', style),
        }
    }
    s.push('\'');
    s
}

fn escape(s: &mut String, c: char, quote: char, style: Style) {
    match c {
        '\n' => s.push_str("\\n"),
        '\t' => s.push_str("\\t"),
        '\r' => s.push_str("\\r"),
        '\x0b' => s.push_str("\\v"),
        '\x08' => s.push_str("\\b"),
        '\x0c' => s.push_str("\\f"),
        '\x1b' if style == Style::Write => s.push_str("\\e"),
        '\x7f' if style == Style::Display => s.push(c),
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

/// Whether a list with this character may be shown as a string. As in stock's locale: Latin-1,
/// without two control characters that are white space.
fn in_string(b: u8) -> bool {
    (32..127).contains(&b) || (160..).contains(&b) || matches!(b, b'\n' | b'\t' | b'\r')
}

enum Todo {
    Term(Term),
    Text(&'static str),
    /// The rest of a list, behind its first element.
    Tail(Term),
    Pairs(Vec<(Term, Term)>, usize),
    Elements(*const Term, usize),
    /// Fields of a record, from that index on.
    Fields(Vec<(Term, Term)>, usize),
}

/// Maximum length of a text that a program or a report shows of a term, in characters.
pub const LONGEST_TEXT: usize = 100_000;

/// The text of `t`, cut off with `...` after about `limit` characters.
pub fn format_term(t: Term, style: Style, limit: usize) -> String {
    let mut latin1 = Vec::new();
    format(t, style, limit, &mut latin1)
}

/// The text that `erlang:display/1` writes: characters of strings as bytes, everything else in
/// UTF-8.
pub fn display(t: Term) -> Vec<u8> {
    let mut latin1 = Vec::new();
    let text = format(t, Style::Display, usize::MAX, &mut latin1);
    if latin1.is_empty() {
        return text.into_bytes();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut done = 0;
    for at in latin1 {
        bytes.extend_from_slice(&text.as_bytes()[done..at]);
        let c = text[at..].chars().next().map_or(0, u32::from);
        bytes.push(c as u8);
        done = at + 2;
    }
    bytes.extend_from_slice(&text.as_bytes()[done..]);
    bytes
}

/// As [`format_term`]; `latin1` gets the positions of characters of strings that have two bytes
/// here.
fn format(t: Term, style: Style, limit: usize, latin1: &mut Vec<usize>) -> String {
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
            Todo::Term(t) => term(&mut s, t, style, &mut todo, limit, latin1),
        }
    }
    s
}

/// The first number of an identifier: 0 for this node's name, whichever its creation.
fn channel(name: Term) -> u32 {
    if name == node::this_node().0 {
        0
    } else {
        name.atom_index()
    }
}

/// Whether a list is shown as a string.
fn is_text(t: Term) -> bool {
    let mut it = t.list_iter();
    let byte = |c: Term| c.as_small().filter(|v| (0..256).contains(v));
    it.all(|c| byte(c).is_some_and(|v| in_string(v as u8))) && it.tail().is_nil()
}

/// Writes a list of characters as a string. `latin1` gets the positions of those with two bytes.
fn text(s: &mut String, t: Term, limit: usize, latin1: &mut Vec<usize>) {
    s.push('"');
    for c in t.list_iter() {
        if s.len() >= limit {
            s.push_str("...");
            break;
        }
        match c.small_value() as u8 as char {
            '\n' => s.push_str("\\n"),
            '"' => s.push_str("\\\""),
            c => {
                if !c.is_ascii() {
                    latin1.push(s.len());
                }
                s.push(c);
            }
        }
    }
    s.push('"');
}

fn bits(s: &mut String, b: &Bits, style: Style, limit: usize) {
    let bytes = b.shifted();
    let left = b.bit_len & 7;
    s.push_str("<<");
    if style == Style::Display
        && left == 0
        && !bytes.is_empty()
        && bytes.iter().all(|c| (32..127).contains(c))
    {
        s.push('"');
        for &c in bytes.iter().take(limit) {
            match c {
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
}

fn term(
    s: &mut String,
    t: Term,
    style: Style,
    todo: &mut Vec<Todo>,
    limit: usize,
    latin1: &mut Vec<usize>,
) {
    // Writing to a String cannot fail.
    if let Some(v) = t.as_small() {
        let _ = write!(s, "{v}");
    } else if t.is_atom() {
        s.push_str(&format_atom(t, style));
    } else if t.is_nil() {
        s.push_str("[]");
    } else if let Some((h, tl)) = t.as_cons() {
        if style == Style::Display && is_text(t) {
            text(s, t, limit, latin1);
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
        match style {
            Style::Display => s.push_str(&format_float_scientific(f, 6)),
            Style::Write => s.push_str(&format_float_short(f)),
        }
    } else if let Some(b) = t.as_bits() {
        bits(s, &b, style, limit);
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
            // As in stock the name stands without quotes, whatever its characters.
            let name = atom::name(e.module);
            let _ = write!(s, "#Fun<{name}.{}.{}>", e.old_index, e.old_uniq);
        }
    } else if let Some((num, serial, name, _)) = pid_parts(t) {
        let _ = write!(s, "<{}.{num}.{serial}>", channel(name));
    } else if let Some((num, name, _)) = port_parts(t) {
        let _ = write!(s, "#Port<{}.{num}>", channel(name));
    } else if let Some((nums, name, _)) = ref_parts(t) {
        let _ = write!(s, "#Ref<{}", channel(name));
        for n in nums.iter().rev() {
            let _ = write!(s, ".{n}");
        }
        s.push('>');
    } else {
        // A match context: no program ever sees one.
        let _ = write!(s, "<match context>");
    }
}

/// An integer with this sign and magnitude in decimal.
fn decimal(negative: bool, digits: &[u64]) -> String {
    let words: Vec<dashu_int::Word> = digits.iter().map(|&d| d as dashu_int::Word).collect();
    let u = dashu_int::UBig::from_words(&words);
    if negative {
        format!("-{u}")
    } else {
        u.to_string()
    }
}

/// A short form for messages of tests and assertions. Does not follow pointers.
impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_small() {
            write!(f, "{}", self.small_value())
        } else if self.is_atom() {
            write!(f, "'{}'", atom::name(*self))
        } else if self.is_nil() {
            write!(f, "[]")
        } else {
            write!(f, "#{:x}", self.raw())
        }
    }
}
