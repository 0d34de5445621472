//! Natives of module `unicode`: from character data in Latin-1 or UTF-8 to binaries and lists.
//!
//! Data is walked with an explicit stack that keeps every tail, because the rest in an error must
//! nest like the input.

use super::iolist::admit;
use super::reschedule::{self, dirty_if};
use crate::cx::{BifResult, Env, Fail};
use crate::{bifs, lazy_atoms};
use purlin_term::layout::Bits;
use purlin_term::{Alloc, NIL, Term, am, atom, ending};

lazy_atoms! {
    incomplete = "incomplete";
}

/// The kind of the bytes at the start of `s`.
enum Head {
    /// A character and its length in bytes.
    Char(char, usize),
    /// All of `s` may be the beginning of a character.
    Short,
    Bad,
}

/// Decodes one UTF-8 character: no overlong forms, no surrogates, nothing above U+10FFFF. If the
/// data ends after valid continuation bytes it is short, even if no end could make it a valid
/// character.
fn decode(s: &[u8]) -> Head {
    let b0 = s[0];
    let (n, min) = match b0 {
        0..=0x7F => return Head::Char(b0 as char, 1),
        0xC0..=0xDF => (2, 0x80),
        0xE0..=0xEF => (3, 0x800),
        0xF0..=0xF7 => (4, 0x1_0000),
        _ => return Head::Bad,
    };
    debug_assert_eq!(n, char_bytes(b0));
    let mut c = b0 as u32 & (0x7F >> n);
    for i in 1..n {
        match s.get(i) {
            None => return Head::Short,
            Some(&b) if b & 0xC0 == 0x80 => c = c << 6 | (b & 0x3F) as u32,
            Some(_) => return Head::Bad,
        }
    }
    match char::from_u32(c) {
        Some(ch) if c >= min => Head::Char(ch, n),
        _ => Head::Bad,
    }
}

/// Returns the length of the character that starts with `b0`, by that byte alone.
fn char_bytes(b0: u8) -> usize {
    match b0 {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        _ => 1,
    }
}

/// Counts cons cells and bytes of character data: integers, binaries and lists of them. Anything
/// else (`None`) is `badarg`, before any conversion. Counting ends at an integer that isn't small,
/// since the conversion ends there. It also stops when the count exceeds `most`.
fn chardata_size(t: Term, most: usize) -> Option<usize> {
    let mut at = t;
    let mut stack = Vec::new();
    let mut size = 0;
    loop {
        // Most are consecutive characters.
        while let Some((h, t)) = at.as_cons()
            && h.is_small()
            && size <= most
            && !ending::is_over_at(size)
        {
            size += 1;
            at = t;
        }
        size += at.as_bits().map_or(1, |b| b.bit_len / 8);
        if size > most || ending::is_over() {
            return Some(size);
        }
        if let Some((h, t)) = at.as_cons() {
            at = t;
            if h.is_list_ptr() {
                if !t.is_nil() {
                    stack.push(t);
                }
                at = h;
            } else if h.is_integer() && !h.is_small() {
                return Some(size);
            } else if !(h.is_nil() || h.is_integer() || h.is_binary()) {
                return None;
            } else {
                size += h.as_bits().map_or(0, |b| b.bit_len / 8);
            }
        } else if at.is_nil() || at.is_binary() {
            match stack.pop() {
                Some(t) => at = t,
                None => return Some(size),
            }
        } else {
            return None;
        }
    }
}

/// Steps of a long conversion after which it checks whether to continue.
const LOOK_EVERY: usize = 1 << 16;

/// How a conversion ended.
enum End {
    Done,
    /// The rest as a term: nested like the input.
    Error(Term),
    /// Bytes of a character whose end is missing.
    Incomplete(Vec<u8>),
}

/// A destination of characters.
trait Sink {
    /// Makes one with room for about `n` characters.
    fn with_room(n: usize) -> Self;
    /// Appends valid UTF-8.
    fn utf8(&mut self, s: &str);
    /// Appends bytes of Latin-1.
    fn latin1(&mut self, s: &[u8]);
    fn char(&mut self, c: char);
}

/// Passes on the items as long as the result is wanted.
fn unless_over<T>(all: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let more = |(i, t): (usize, T)| (!ending::is_over_at(i)).then_some(t);
    all.enumerate().map_while(more)
}

impl Sink for Vec<u8> {
    fn with_room(n: usize) -> Self {
        Vec::with_capacity(n)
    }
    fn utf8(&mut self, s: &str) {
        self.extend_from_slice(s.as_bytes());
    }
    fn latin1(&mut self, s: &[u8]) {
        for &b in unless_over(s.iter()) {
            self.char(b as char);
        }
    }
    #[inline]
    fn char(&mut self, c: char) {
        if c.is_ascii() {
            self.push(c as u8);
        } else {
            self.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

impl Sink for Vec<Term> {
    fn with_room(n: usize) -> Self {
        Vec::with_capacity(n)
    }
    fn utf8(&mut self, s: &str) {
        let all = s.chars().map(|c| Term::small(c as i64));
        self.extend(unless_over(all));
    }
    fn latin1(&mut self, s: &[u8]) {
        let all = s.iter().map(|&b| Term::small(b as i64));
        self.extend(unless_over(all));
    }
    #[inline]
    fn char(&mut self, c: char) {
        self.push(Term::small(c as i64));
    }
}

struct Conv<'a, S> {
    cx: &'a mut Env,
    out: &'a mut S,
    latin1: bool,
    /// Tails of the lists around the current place.
    stack: Vec<Term>,
    /// Bytes of an incomplete character at the end of the last binary.
    left: Vec<u8>,
}

impl<S: Sink> Conv<'_, S> {
    /// Returns the rest for an error at `here`, the remaining part of the innermost list.
    fn rest(&mut self, here: Term) -> Term {
        let mut r = here;
        while let Some(t) = self.stack.pop() {
            r = self.cx.cons(r, t);
        }
        if self.left.is_empty() {
            r
        } else {
            let l = self.cx.binary(&self.left);
            self.cx.list(&[l, r])
        }
    }

    /// Takes a binary. `Some(term)`: an error, with the rest of the binary as a term (all of it if
    /// the broken character began in an earlier one).
    fn binary(&mut self, t: Term, bits: Bits) -> Result<Option<Term>, Fail> {
        let bytes = bits.to_bytes().ok_or(Fail::Badarg)?;
        self.cx.bump(bytes.len() / 64 + 1);
        if self.latin1 {
            self.out.latin1(&bytes);
            return Ok(None);
        }
        let mut from = 0;
        if !self.left.is_empty() && !bytes.is_empty() {
            let had = self.left.len();
            let need = char_bytes(self.left[0]);
            let mut joined = self.left.clone();
            joined.extend_from_slice(&bytes[..bytes.len().min(need - had)]);
            if joined.len() < need {
                // Whether they are valid together shows when the character is complete or the data
                // ends.
                self.left = joined;
                return Ok(None);
            }
            match decode(&joined) {
                Head::Char(c, n) => {
                    self.out.char(c);
                    self.left.clear();
                    from = n - had;
                }
                Head::Short | Head::Bad => return Ok(Some(t)),
            }
        }
        let s = &bytes[from..];
        match std::str::from_utf8(s) {
            Ok(s) => {
                self.out.utf8(s);
                Ok(None)
            }
            Err(e) => {
                let good = e.valid_up_to();
                // Checked just now.
                self.out
                    .utf8(std::str::from_utf8(&s[..good]).unwrap_or_default());
                // By its length only: the bytes after it are checked together with the next binary.
                if s.len() - good < char_bytes(s[good]) {
                    self.left = s[good..].to_vec();
                    return Ok(None);
                }
                let from = from + good;
                Ok(Some(self.cx.sub_binary(
                    t,
                    from * 8,
                    bits.bit_len - from * 8,
                )))
            }
        }
    }

    /// Takes an integer; returns false if it is no character of the encoding, or is inside an
    /// incomplete one.
    fn integer(&mut self, t: Term) -> bool {
        if !self.left.is_empty() {
            return false;
        }
        let max = if self.latin1 { 0xFF } else { 0x10FFFF };
        match t.as_small() {
            Some(n) if (0..=max).contains(&n) => match char::from_u32(n as u32) {
                Some(c) => {
                    self.out.char(c);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    fn run(&mut self, data: Term) -> Result<End, Fail> {
        let mut at = data;
        let mut steps = 0usize;
        loop {
            steps += 1;
            if steps.is_multiple_of(LOOK_EVERY) {
                reschedule::go_on()?;
            }
            // Most are consecutive characters, which are the same in both encodings. A check is due
            // after this many.
            while let Some((h, t)) = at.as_cons()
                && let Some(n @ 0..0x80) = h.as_small()
                && self.left.is_empty()
                && !(steps + 1).is_multiple_of(LOOK_EVERY)
            {
                self.out.char(n as u8 as char);
                at = t;
                steps += 1;
            }
            if let Some((h, t)) = at.as_cons() {
                if h.is_integer() {
                    if !self.integer(h) {
                        return Ok(End::Error(self.rest(at)));
                    }
                    at = t;
                } else if h.is_list_ptr() {
                    self.stack.push(t);
                    at = h;
                } else if h.is_nil() {
                    at = t;
                } else {
                    let b = h.as_bits().ok_or(Fail::Badarg)?;
                    if let Some(r) = self.binary(h, b)? {
                        let here = self.cx.cons(r, t);
                        return Ok(End::Error(self.rest(here)));
                    }
                    at = t;
                }
            } else if at.is_nil() {
                match self.stack.pop() {
                    Some(t) => at = t,
                    None => break,
                }
            } else {
                let b = at.as_bits().ok_or(Fail::Badarg)?;
                if let Some(r) = self.binary(at, b)? {
                    return Ok(End::Error(self.rest(r)));
                }
                at = NIL;
            }
        }
        self.cx.bump(steps / 64);
        if self.left.is_empty() {
            return Ok(End::Done);
        }
        let left = std::mem::take(&mut self.left);
        Ok(match decode(&left) {
            Head::Short => End::Incomplete(left),
            _ => End::Error(self.cx.binary(&left)),
        })
    }
}

/// Whether the encoding named by `t` is Latin-1; `None` if the natives don't know it.
fn encoding(t: Term) -> Option<bool> {
    if t == am::LATIN1 {
        Some(true)
    } else if t == am::UTF8 || t == am::UNICODE {
        Some(false)
    } else {
        None
    }
}

fn convert<S: Sink>(
    cx: &mut Env,
    data: Term,
    enc: Term,
    name: &str,
    bytes_each: usize,
    finish: fn(&mut Env, &S) -> Term,
) -> BifResult {
    let Some(latin1) = encoding(enc) else {
        // The module itself handles the other encodings, and raises if there is no such encoding.
        let other = atom::intern(&format!("{name}_int"));
        let target = crate::exports::export(atom::intern("unicode"), other, 2);
        return Err(cx.trap(target, &[data, enc]));
    };
    // On a scheduler it is enough to know that there is too much: a dirty thread counts all of it.
    let most = match cx.dirty || cx.proc.is_null() {
        true => usize::MAX,
        false => reschedule::UNICODE.most(),
    };
    let size = chardata_size(data, most).ok_or(Fail::Badarg)?;
    dirty_if(cx, "unicode", name, &[data, enc], || {
        reschedule::UNICODE.exceeded(size)
    })?;
    admit(size.saturating_mul(bytes_each))?;
    let mut out = S::with_room(size);
    let end = Conv {
        cx,
        out: &mut out,
        latin1,
        stack: Vec::new(),
        left: Vec::new(),
    }
    .run(data)?;
    let done = finish(cx, &out);
    Ok(match end {
        End::Done => done,
        End::Error(rest) => cx.tuple(&[am::ERROR, done, rest]),
        End::Incomplete(left) => {
            let b = cx.binary(&left);
            cx.tuple(&[incomplete(), done, b])
        }
    })
}

fn characters_to_binary_2(cx: &mut Env, [data, enc]: [Term; 2]) -> BifResult {
    // A binary alone in a list counts as one outside of a list, which the rest in an error shows.
    let data = match data.as_cons() {
        Some((h, t)) if t.is_nil() && h.as_bits().is_some() && encoding(enc).is_some() => h,
        _ => data,
    };
    // The bytes are copied to the binary.
    convert::<Vec<u8>>(cx, data, enc, "characters_to_binary", 2, |cx, v| {
        cx.binary(v)
    })
}

fn characters_to_list_2(cx: &mut Env, [data, enc]: [Term; 2]) -> BifResult {
    // A word of each character is copied to a cell.
    convert::<Vec<Term>>(cx, data, enc, "characters_to_list", 24, |cx, v| cx.list(v))
}

/// Maximum number of bytes that are processed where the native is called: a few milliseconds.
const BYTES_LOOKED_AT: usize = 16 << 20;

fn bin_is_7bit_1(cx: &mut Env, [b]: [Term; 1]) -> BifResult {
    Ok(Term::bool(match b.as_binary() {
        Some(s) => {
            dirty_if(cx, "unicode", "bin_is_7bit", &[b], || {
                s.len() > BYTES_LOOKED_AT
            })?;
            cx.bump(s.len() / 1024 + 1);
            s.is_ascii()
        }
        None => false,
    }))
}

bifs! {
    Plain "unicode":"characters_to_binary"/2 = characters_to_binary_2 [long];
    Plain "unicode":"characters_to_list"/2 = characters_to_list_2 [long];
    Plain "unicode":"bin_is_7bit"/1 = bin_is_7bit_1 [long];
}
