//! Natives of module `erlang` that convert atoms, integers and floats to text and back, and the
//! number readers of module `string`.

use super::reschedule::dirty_if;
use crate::cx::{BifResult, Env, Fail};
use crate::lazy_atoms;
use crate::long;
use purlin_term::arith::{self, ParseError};
use purlin_term::atom::{self, AtomError, MAX_CHARS};
use purlin_term::print::{format_float_short, write_float_scientific};
use purlin_term::{Alloc, NIL, Term, am};
use smallvec::SmallVec;
use std::fmt::Write as _;

lazy_atoms! {
    no_integer = "no_integer";
    no_float = "no_float";
    not_a_list = "not_a_list";
}

/// Returns the atom of that name, and notes the caller if it did not exist. `system_limit` if it is
/// too long, or there are too many atoms.
fn new_atom(cx: &mut Env, name: &str) -> BifResult {
    if let Some(t) = atom::existing(name) {
        return Ok(t);
    }
    crate::atom_makers::note(cx.bif_pc);
    match atom::try_intern(name) {
        Ok(t) => Ok(t),
        Err(AtomError::TooLong | AtomError::TableFull) => Err(Fail::SystemLimit),
    }
}

/// Returns the characters of a list of code points, which is as long as an atom may be.
fn atom_chars(l: Term) -> Result<String, Fail> {
    let mut s = String::new();
    let mut it = l.list_iter();
    for (n, x) in it.by_ref().enumerate() {
        // Characters beyond the longest atom are not looked at.
        if n == MAX_CHARS {
            return Err(Fail::SystemLimit);
        }
        let c = x.as_small().and_then(|v| u32::try_from(v).ok());
        s.push(c.and_then(char::from_u32).ok_or(Fail::Badarg)?);
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    Ok(s)
}

fn atom_to_list_1(cx: &mut Env, [a]: [Term; 1]) -> BifResult {
    if !a.is_atom() {
        return Err(Fail::Badarg);
    }
    Ok(cx.string(atom::name(a)))
}
fn list_to_atom_1(cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    new_atom(cx, &atom_chars(l)?)
}
fn list_to_existing_atom_1(_cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    let s = atom_chars(l).map_err(|_| Fail::Badarg)?;
    atom::existing(&s).ok_or(Fail::Badarg)
}

/// Encodings of text in binaries.
enum Encoding {
    Latin1,
    Utf8,
}

fn encoding(t: Term) -> Result<Encoding, Fail> {
    if t == am::LATIN1 {
        Ok(Encoding::Latin1)
    } else if t == am::UTF8 || t == am::UNICODE {
        Ok(Encoding::Utf8)
    } else {
        Err(Fail::Badarg)
    }
}

fn atom_to_binary_2(cx: &mut Env, [a, enc]: [Term; 2]) -> BifResult {
    if !a.is_atom() {
        return Err(Fail::Badarg);
    }
    let name = atom::name(a);
    match encoding(enc)? {
        Encoding::Utf8 => Ok(cx.binary(name.as_bytes())),
        Encoding::Latin1 => {
            let bytes: Result<Vec<u8>, _> = name.chars().map(u8::try_from).collect();
            Ok(cx.binary(&bytes.map_err(|_| Fail::Badarg)?))
        }
    }
}

/// Returns the text of a binary that names an atom.
fn binary_name(b: Term, enc: Term) -> Result<String, Fail> {
    let bytes = b.as_binary().ok_or(Fail::Badarg)?;
    match encoding(enc)? {
        Encoding::Latin1 => {
            if bytes.len() > MAX_CHARS {
                return Err(Fail::SystemLimit);
            }
            Ok(bytes.iter().map(|&c| c as char).collect())
        }
        // If there are more bytes than an atom can have they are not looked at; nor is the
        // character after the last that it may have.
        Encoding::Utf8 if bytes.len() > 4 * MAX_CHARS => Err(Fail::SystemLimit),
        Encoding::Utf8 => match std::str::from_utf8(&bytes) {
            Ok(s) => Ok(s.to_owned()),
            Err(e) => {
                let good = &bytes[..e.valid_up_to()];
                match std::str::from_utf8(good) {
                    Ok(s) if s.chars().count() >= MAX_CHARS => Err(Fail::SystemLimit),
                    _ => Err(Fail::Badarg),
                }
            }
        },
    }
}
fn binary_to_atom_2(cx: &mut Env, [b, enc]: [Term; 2]) -> BifResult {
    new_atom(cx, &binary_name(b, enc)?)
}
fn binary_to_existing_atom_2(_cx: &mut Env, [b, enc]: [Term; 2]) -> BifResult {
    let s = binary_name(b, enc).map_err(|_| Fail::Badarg)?;
    atom::existing(&s).ok_or(Fail::Badarg)
}

/// Maximum length of the text of integers that is converted on a scheduler; longer text is
/// converted on a dirty thread. For an integer, six bits count as a character, as in the largest
/// base.
const LONG_TEXT: usize = 20_000;
fn is_long_integer(n: Term) -> bool {
    n.as_big()
        .is_some_and(|(_, d)| d.len() * 64 / 6 > LONG_TEXT)
}

/// Returns a base of numbers.
fn base(t: Term) -> Result<u32, Fail> {
    match t.as_small() {
        Some(v @ 2..=36) => Ok(v as u32),
        _ => Err(Fail::Badarg),
    }
}

fn integer_text(cx: &mut Env, n: Term, base: u32) -> Result<String, Fail> {
    let s = arith::print(n, base).ok_or(Fail::Badarg)?;
    // The digits of a long number cost more than the cons cells that hold them.
    cx.bump(s.len() / 16);
    Ok(s)
}
fn integer_to_list_1(cx: &mut Env, [n]: [Term; 1]) -> BifResult {
    if let Some(v) = n.as_small() {
        return Ok(cx.byte_list(arith::decimal(v, &mut [0; 20]), NIL));
    }
    dirty_if(cx, long!("erlang":"integer_to_list"/1).call(&[n]), || {
        is_long_integer(n)
    })?;
    let s = integer_text(cx, n, 10)?;
    Ok(cx.byte_list(s.as_bytes(), NIL))
}
fn integer_to_list_2(cx: &mut Env, [n, b]: [Term; 2]) -> BifResult {
    let base = base(b)?;
    dirty_if(
        cx,
        long!("erlang":"integer_to_list"/2).call(&[n, b]),
        || is_long_integer(n),
    )?;
    let s = integer_text(cx, n, base)?;
    Ok(cx.byte_list(s.as_bytes(), NIL))
}
fn integer_to_binary_1(cx: &mut Env, [n]: [Term; 1]) -> BifResult {
    if let Some(v) = n.as_small() {
        return Ok(cx.binary(arith::decimal(v, &mut [0; 20])));
    }
    dirty_if(cx, long!("erlang":"integer_to_binary"/1).call(&[n]), || {
        is_long_integer(n)
    })?;
    let s = integer_text(cx, n, 10)?;
    Ok(cx.binary(s.as_bytes()))
}
fn integer_to_binary_2(cx: &mut Env, [n, b]: [Term; 2]) -> BifResult {
    let base = base(b)?;
    dirty_if(
        cx,
        long!("erlang":"integer_to_binary"/2).call(&[n, b]),
        || is_long_integer(n),
    )?;
    let s = integer_text(cx, n, base)?;
    Ok(cx.binary(s.as_bytes()))
}

fn parse_integer(cx: &mut Env, text: &[u8], base: u32) -> BifResult {
    cx.bump(text.len() / 16);
    arith::parse(cx, text, base).map_err(|e| match e {
        ParseError::Syntax => Fail::Badarg,
        ParseError::SystemLimit => Fail::SystemLimit,
    })
}

/// Number of digits that always fit into a small integer, in any base, and cost no reductions.
const FEW_DIGITS: usize = 11;

/// Returns the integer at the start of a list, if there is one, and the rest. `None`: it has more
/// than a few digits.
fn few_digits(l: Term, base: u32) -> Option<Option<(Term, Term)>> {
    let mut rest = l;
    let mut negative = false;
    let mut value = 0;
    for n in 0..=FEW_DIGITS {
        let next = rest.as_cons().and_then(|(h, t)| Some((h.as_small()?, t)));
        if n == 0
            && let Some((c, t)) = next
            && (c == i64::from(b'-') || c == i64::from(b'+'))
        {
            negative = c == i64::from(b'-');
            let first = t.as_cons().and_then(|(h, t)| Some((h.as_small()?, t)));
            let Some((d, t)) = first.and_then(|(c, t)| Some((digit(c, base)?, t))) else {
                return Some(None);
            };
            (value, rest) = (d, t);
            continue;
        }
        match next.and_then(|(c, t)| Some((digit(c, base)?, t))) {
            Some((d, t)) => {
                value = value * i64::from(base) + d;
                rest = t;
            }
            None if n == 0 => return Some(None),
            None => {
                let number = Term::small(if negative { -value } else { value });
                return Some(Some((number, rest)));
            }
        }
    }
    None
}

/// Returns the value of a character as a digit.
#[inline(always)]
fn digit(c: i64, base: u32) -> Option<i64> {
    let d = match c {
        0x30..=0x39 => c - 0x30,
        0x41..=0x5A => c - 0x41 + 10,
        0x61..=0x7A => c - 0x61 + 10,
        _ => return None,
    };
    (d < i64::from(base)).then_some(d)
}

/// Returns the sign and the digits at the start of a list, and the rest. `None`: there is no digit.
fn leading_integer(l: Term, base: u32) -> Option<(SmallVec<[u8; 24]>, Term)> {
    let mut text = SmallVec::new();
    let mut rest = l;
    let mut digits = 0;
    while let Some((h, t)) = rest.as_cons() {
        let Some(c) = h.as_small().and_then(|v| u8::try_from(v).ok()) else {
            break;
        };
        let sign = text.is_empty() && (c == b'-' || c == b'+');
        if !sign {
            if (c as char).to_digit(base).is_none() {
                break;
            }
            digits += 1;
        }
        text.push(c);
        rest = t;
    }
    (digits > 0).then_some((text, rest))
}

fn list_to_integer(cx: &mut Env, l: Term, base: u32) -> BifResult {
    if let Some(few) = few_digits(l, base) {
        return few
            .filter(|few| few.1.is_nil())
            .map(|few| few.0)
            .ok_or(Fail::Badarg);
    }
    match leading_integer(l, base) {
        Some((text, rest)) if rest.is_nil() => parse_integer(cx, &text, base),
        _ => Err(Fail::Badarg),
    }
}
fn list_to_integer_1(cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    let long = || l.list_iter().nth(LONG_TEXT).is_some();
    dirty_if(cx, long!("erlang":"list_to_integer"/1).call(&[l]), long)?;
    list_to_integer(cx, l, 10)
}
fn list_to_integer_2(cx: &mut Env, [l, b]: [Term; 2]) -> BifResult {
    let base = base(b)?;
    let long = || l.list_iter().nth(LONG_TEXT).is_some();
    dirty_if(cx, long!("erlang":"list_to_integer"/2).call(&[l, b]), long)?;
    list_to_integer(cx, l, base)
}
fn binary_to_integer_1(cx: &mut Env, [b]: [Term; 1]) -> BifResult {
    let text = b.as_binary().ok_or(Fail::Badarg)?;
    let long = text.len() > LONG_TEXT;
    dirty_if(cx, long!("erlang":"binary_to_integer"/1).call(&[b]), || {
        long
    })?;
    parse_integer(cx, &text, 10)
}
fn binary_to_integer_2(cx: &mut Env, [b, radix]: [Term; 2]) -> BifResult {
    let text = b.as_binary().ok_or(Fail::Badarg)?;
    let base = base(radix)?;
    let long = text.len() > LONG_TEXT;
    dirty_if(
        cx,
        long!("erlang":"binary_to_integer"/2).call(&[b, radix]),
        || long,
    )?;
    parse_integer(cx, &text, base)
}

/// Whether Erlang code must decide about text that is no number, or too large a one (`big`): it has
/// more digits than stock's emulator converts at once, which are those that always fit into a small
/// integer.
fn judged_in_erlang(text: &[u8], base: u32) -> bool {
    let digits = match text {
        [b'+' | b'-', digits @ ..] => digits,
        digits => digits,
    };
    let zeros = digits.iter().take_while(|&&c| c == b'0').count();
    let most = (59.0 / f64::from(base).log2()) as usize;
    digits.len() - zeros > most
}

/// The core of `erlang:list_to_integer` since OTP 26: returns the number and the rest of the list,
/// or an atom with the reason of a failure.
fn internal_list_to_integer_2(cx: &mut Env, [l, b]: [Term; 2]) -> BifResult {
    if l.is_nil() {
        return Ok(no_integer());
    }
    if !l.is_list() {
        return Ok(not_a_list());
    }
    let Ok(base) = base(b) else {
        return Ok(am::BADARG);
    };
    match few_digits(l, base) {
        Some(Some((n, rest))) => return Ok(cx.tuple(&[n, rest])),
        Some(None) => return Ok(no_integer()),
        None => {}
    }
    let long = || l.list_iter().nth(LONG_TEXT).is_some();
    dirty_if(
        cx,
        long!("erts_internal":"list_to_integer"/2).call(&[l, b]),
        long,
    )?;
    let Some((text, rest)) = leading_integer(l, base) else {
        return Ok(no_integer());
    };
    if !rest.is_nil() && judged_in_erlang(&text, base) {
        return Ok(am::BIG);
    }
    match parse_integer(cx, &text, base) {
        Err(Fail::SystemLimit) => Ok(am::BIG),
        n => Ok(cx.tuple(&[n?, rest])),
    }
}
/// The same for binaries; a binary must be a number to its end.
fn internal_binary_to_integer_2(cx: &mut Env, [b, radix]: [Term; 2]) -> BifResult {
    let (Some(text), Ok(base)) = (b.as_binary(), base(radix)) else {
        return Ok(am::BADARG);
    };
    let long = text.len() > LONG_TEXT;
    let args = [b, radix];
    dirty_if(
        cx,
        long!("erts_internal":"binary_to_integer"/2).call(&args),
        || long,
    )?;
    match parse_integer(cx, &text, base) {
        Err(Fail::SystemLimit) => Ok(am::BIG),
        Err(Fail::Badarg) if judged_in_erlang(&text, base) => Ok(am::BIG),
        Err(Fail::Badarg) => Ok(am::BADARG),
        other => other,
    }
}

/// `{error, What}`
fn no_number(cx: &mut Env, what: Term) -> BifResult {
    Ok(cx.err(what))
}

fn string_list_to_integer_1(cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    if !l.is_list() {
        return no_number(cx, not_a_list());
    }
    match few_digits(l, 10) {
        Some(Some((n, rest))) => return Ok(cx.tuple(&[n, rest])),
        Some(None) => return no_number(cx, no_integer()),
        None => {}
    }
    match leading_integer(l, 10) {
        Some((text, rest)) => {
            let n = parse_integer(cx, &text, 10)?;
            Ok(cx.tuple(&[n, rest]))
        }
        None => no_number(cx, no_integer()),
    }
}

/// Parses the float `text`: sign, digits, point or comma, digits, and perhaps an exponent. It ends
/// at a zero byte, if there is one.
fn parse_float(text: &[u8]) -> Option<f64> {
    let text = text.split(|b| *b == 0).next()?;
    let digits = |at: usize| text[at..].iter().take_while(|c| c.is_ascii_digit()).count();
    let sign = |at: usize| matches!(text.get(at), Some(b'+' | b'-')) as usize;
    let mut at = sign(0);
    let n = digits(at);
    at += n;
    let point = at;
    if n == 0 || !matches!(text.get(at), Some(b'.' | b',')) {
        return None;
    }
    at += 1;
    let n = digits(at);
    at += n;
    if n == 0 {
        return None;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += sign(at);
        let n = digits(at);
        at += n;
        if n == 0 {
            return None;
        }
    }
    if at != text.len() {
        return None;
    }
    let mut owned = text.to_vec();
    owned[point] = b'.';
    let f: f64 = std::str::from_utf8(&owned).ok()?.parse().ok()?;
    f.is_finite().then_some(f)
}

/// Returns the elements of a proper list of bytes.
pub(super) fn bytes_of(l: Term) -> Option<Vec<u8>> {
    let mut it = l.list_iter();
    let mut v = Vec::new();
    for x in it.by_ref() {
        v.push(u8::try_from(x.as_small()?).ok()?);
    }
    it.tail().is_nil().then_some(v)
}

fn list_to_float_1(cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    let f = bytes_of(l).and_then(|v| parse_float(&v));
    Ok(cx.float(f.ok_or(Fail::Badarg)?))
}
fn binary_to_float_1(cx: &mut Env, [b]: [Term; 1]) -> BifResult {
    let f = b.as_binary().and_then(|v| parse_float(&v));
    Ok(cx.float(f.ok_or(Fail::Badarg)?))
}

/// The characters that may come next in text that starts with a float.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Sign,
    /// Digits before the point.
    Whole,
    Fraction,
    ExponentSign,
    FirstOfExponent,
    Exponent,
    /// The float has ended.
    Nothing,
}

fn string_list_to_float_1(cx: &mut Env, [l]: [Term; 1]) -> BifResult {
    use Expect::*;
    if l.is_nil() {
        return no_number(cx, no_float());
    }
    if !l.is_list() {
        return no_number(cx, not_a_list());
    }
    let mut text: Vec<u8> = Vec::new();
    let mut rest = l;
    // The position of an `e`: it is not part of the float unless an exponent follows.
    let mut before_e = (0, l);
    let mut expect = Sign;
    while let Some((h, t)) = rest.as_cons() {
        let Some(c) = h.as_small().and_then(|v| u8::try_from(v).ok()) else {
            break;
        };
        expect = match (c, expect) {
            (b'+', Sign) => {
                rest = t;
                expect = Whole;
                continue;
            }
            (b'-', Sign) => Whole,
            (b'+' | b'-', ExponentSign) => FirstOfExponent,
            (b'.' | b',', Whole) => Fraction,
            (b'e' | b'E', Fraction) => {
                before_e = (text.len(), rest);
                ExponentSign
            }
            (b'0'..=b'9', Sign) => Whole,
            (b'0'..=b'9', ExponentSign | FirstOfExponent) => Exponent,
            (b'0'..=b'9', e) => e,
            (b'+' | b'-' | b'.' | b',' | b'e' | b'E', ExponentSign | FirstOfExponent) => {
                text.truncate(before_e.0);
                rest = before_e.1;
                Nothing
            }
            (b'+' | b'-' | b'.' | b',' | b'e' | b'E', _) => Nothing,
            _ => break,
        };
        if expect == Nothing {
            break;
        }
        text.push(c);
        rest = t;
    }
    if matches!(expect, ExponentSign | FirstOfExponent) {
        text.truncate(before_e.0);
        rest = before_e.1;
    }
    match parse_float(&text) {
        Some(f) => {
            let f = cx.float(f);
            Ok(cx.tuple(&[f, rest]))
        }
        None => no_number(cx, no_float()),
    }
}

/// Maximum length of the text of a float.
const MAX_FLOAT_CHARS: usize = 255;
/// Maximum number of decimals for the fast method; more are computed exactly.
const MAX_FAST_DECIMALS: i64 = 18;

/// The text of a float. It has room for a little more than allowed: longer text is refused.
struct FloatText {
    bytes: [u8; MAX_FLOAT_CHARS + 1],
    len: usize,
}

impl FloatText {
    fn new() -> FloatText {
        FloatText {
            bytes: [0; MAX_FLOAT_CHARS + 1],
            len: 0,
        }
    }
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
    /// Appends the digits of `n`, with leading zeros up to that width.
    fn push_digits(&mut self, mut n: u64, width: usize) -> Option<()> {
        let mut digits = [b'0'; 20];
        let mut at = digits.len();
        while n > 0 || at > digits.len() - width.min(digits.len()) {
            at -= 1;
            digits[at] = b'0' + (n % 10) as u8;
            n /= 10;
        }
        self.push(&digits[at..])
    }
    fn push(&mut self, text: &[u8]) -> Option<()> {
        let to = self.bytes.get_mut(self.len..self.len + text.len())?;
        to.copy_from_slice(text);
        self.len += text.len();
        Some(())
    }
}

impl std::fmt::Write for FloatText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text.as_bytes()).ok_or(std::fmt::Error)
    }
}

/// Appends `d.ddd` with that many decimals. With few decimals the fraction is rounded as a product
/// of floats, in which halves may have moved, as in stock.
fn fixed(text: &mut FloatText, f: f64, decimals: i64, compact: bool) -> Option<()> {
    let exact = f.abs() > (1u64 << 53) as f64 || decimals > MAX_FAST_DECIMALS;
    if exact {
        if decimals > MAX_FLOAT_CHARS as i64 {
            return None;
        }
        write!(text, "{f:.*}", decimals as usize).ok()?;
    } else {
        let a = f.abs();
        if f.is_sign_negative() {
            text.push(b"-")?;
        }
        if decimals == 0 {
            text.push_digits(a.round() as u64, 1)?;
        } else {
            let scale = 10u64.pow(decimals as u32);
            let mut whole = a.floor() as u64;
            let part = ((a - a.floor()) * scale as f64).round();
            let part = if part >= scale as f64 {
                whole += 1;
                0
            } else {
                part as u64
            };
            text.push_digits(whole, 1)?;
            text.push(b".")?;
            text.push_digits(part, decimals as usize)?;
        }
    }
    if text.len > MAX_FLOAT_CHARS {
        return None;
    }
    // Without decimals, a number that large loses the zeros before the point, as in OTP 25.
    if compact && (exact || text.as_bytes().contains(&b'.')) {
        let zeros = text.as_bytes().iter().rev().take_while(|c| **c == b'0');
        let n = text.len - zeros.count();
        text.len = match n.checked_sub(1).map(|last| text.bytes[last]) {
            Some(b'.') => n + 1,
            _ => n,
        };
    }
    Some(())
}

lazy_atoms! {
    a_decimals = "decimals";
    a_scientific = "scientific";
    a_compact = "compact";
    a_short = "short";
}

/// Writes a float as text with the options of `float_to_list/2`.
fn float_text(text: &mut FloatText, f: Term, options: Term) -> Option<()> {
    enum Form {
        Short,
        Fixed(i64),
        Scientific(i64),
    }
    let f = f.as_float()?;
    let mut form = Form::Scientific(20);
    let mut compact = false;
    let mut it = options.list_iter();
    for o in it.by_ref() {
        match o.as_tuple() {
            Some(&[key, n]) => {
                let n = n.as_small()?;
                form = match key {
                    k if k == a_decimals() => Form::Fixed(n),
                    k if k == a_scientific() => Form::Scientific(n),
                    _ => return None,
                };
            }
            Some(_) => return None,
            None if o == a_compact() => compact = true,
            None if o == a_short() => form = Form::Short,
            None => return None,
        }
    }
    if !it.tail().is_nil() {
        return None;
    }
    match form {
        Form::Short => text.push(format_float_short(f).as_bytes()),
        Form::Fixed(n) if n < 0 => None,
        Form::Fixed(n) => fixed(text, f, n, compact),
        Form::Scientific(n) if n > MAX_FLOAT_CHARS as i64 => None,
        Form::Scientific(n) => {
            // A negative number of digits means the default number, as in C.
            let n = if n < 0 { 6 } else { n as usize };
            write_float_scientific(text, f, n).ok()?;
            (text.len <= MAX_FLOAT_CHARS).then_some(())
        }
    }
}
fn float_to_list_1(cx: &mut Env, [f]: [Term; 1]) -> BifResult {
    float_to_list_2(cx, [f, NIL])
}
fn float_to_list_2(cx: &mut Env, [f, options]: [Term; 2]) -> BifResult {
    let mut s = FloatText::new();
    float_text(&mut s, f, options).ok_or(Fail::Badarg)?;
    Ok(cx.byte_list(s.as_bytes(), NIL))
}
fn float_to_binary_1(cx: &mut Env, [f]: [Term; 1]) -> BifResult {
    float_to_binary_2(cx, [f, NIL])
}
fn float_to_binary_2(cx: &mut Env, [f, options]: [Term; 2]) -> BifResult {
    let mut s = FloatText::new();
    float_text(&mut s, f, options).ok_or(Fail::Badarg)?;
    Ok(cx.binary(s.as_bytes()))
}

crate::bifs! {
    Plain "erlang":"atom_to_list"/1 = atom_to_list_1;
    Plain "erlang":"list_to_atom"/1 = list_to_atom_1;
    Plain "erlang":"list_to_existing_atom"/1 = list_to_existing_atom_1;
    Plain "erlang":"atom_to_binary"/2 = atom_to_binary_2;
    Plain "erlang":"binary_to_atom"/2 = binary_to_atom_2;
    Plain "erlang":"binary_to_existing_atom"/2 = binary_to_existing_atom_2;
    Plain "erlang":"integer_to_list"/1 = integer_to_list_1 [long];
    Plain "erlang":"integer_to_list"/2 = integer_to_list_2 [long];
    Plain "erlang":"integer_to_binary"/1 = integer_to_binary_1 [long];
    Plain "erlang":"integer_to_binary"/2 = integer_to_binary_2 [long];
    Plain "erlang":"list_to_integer"/1 = list_to_integer_1 [long before(26)];
    Plain "erlang":"list_to_integer"/2 = list_to_integer_2 [long before(26)];
    Plain "erlang":"binary_to_integer"/1 = binary_to_integer_1 [long before(26)];
    Plain "erlang":"binary_to_integer"/2 = binary_to_integer_2 [long before(26)];
    Plain "erts_internal":"list_to_integer"/2 = internal_list_to_integer_2 [long since(26)];
    Plain "erts_internal":"binary_to_integer"/2 = internal_binary_to_integer_2 [long since(26)];
    Plain "string":"list_to_integer"/1 = string_list_to_integer_1 [before(26)];
    Plain "string":"list_to_float"/1 = string_list_to_float_1;
    Plain "erlang":"list_to_float"/1 = list_to_float_1;
    Plain "erlang":"binary_to_float"/1 = binary_to_float_1;
    Plain "erlang":"float_to_list"/1 = float_to_list_1;
    Plain "erlang":"float_to_list"/2 = float_to_list_2;
    Plain "erlang":"float_to_binary"/1 = float_to_binary_1;
    Plain "erlang":"float_to_binary"/2 = float_to_binary_2;
}
