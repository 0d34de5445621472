//! Natives of module `unicode`: from character data in Latin-1 or UTF-8 to binaries and lists.
//!
//! Data is walked with an explicit stack that keeps every tail, because the rest in an error must
//! nest like the input.

use super::iolist::admit;
use super::native_state;
use super::reschedule::{self, Long, dirty_if};
use crate::cx::{BifResult, Env, Fail};
use crate::long;
use crate::{bifs, lazy_atoms};
use purlin_term::layout::Bits;
use purlin_term::{Alloc, NIL, Term, am, atom, ending};
use std::sync::Mutex;

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
    /// It should continue later with the rest of the innermost list.
    Later(Term),
}

/// How far the conversion of a binary has come.
enum Taken {
    All,
    /// As far as this rest, in which a character is broken.
    Broken(Term),
    /// As far as this rest, with which it should continue later.
    Later(Term),
}

/// Bytes of a binary that are converted between two looks whether to continue later.
const PART_BYTES: usize = 1 << 20;

/// Returns the length of the next part of a text to convert.
fn part_of(s: &str) -> usize {
    match s.len() > PART_BYTES {
        true => s.floor_char_boundary(PART_BYTES),
        false => s.len(),
    }
}

/// A destination of characters.
trait Sink: Send + 'static {
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

    /// Takes a binary. If a character is broken that began in an earlier one, all of it is left.
    fn binary(&mut self, t: Term, bits: Bits) -> Result<Taken, Fail> {
        let bytes = bits.to_bytes().ok_or(Fail::Badarg)?;
        self.cx.bump(bytes.len() / 64 + 1);
        let rest = |cx: &mut Env, from: usize| cx.sub_binary(t, from * 8, bits.bit_len - from * 8);
        if self.latin1 {
            let mut done = 0;
            for part in bytes.chunks(PART_BYTES) {
                self.out.latin1(part);
                done += part.len();
                if done < bytes.len() && reschedule::is_asked() {
                    return Ok(Taken::Later(rest(self.cx, done)));
                }
            }
            return Ok(Taken::All);
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
                return Ok(Taken::All);
            }
            match decode(&joined) {
                Head::Char(c, n) => {
                    self.out.char(c);
                    self.left.clear();
                    from = n - had;
                }
                Head::Short | Head::Bad => return Ok(Taken::Broken(t)),
            }
        }
        let s = &bytes[from..];
        let (mut good, broken) = match std::str::from_utf8(s) {
            Ok(s) => (s, false),
            // Checked just now.
            Err(e) => {
                let good = std::str::from_utf8(&s[..e.valid_up_to()]);
                (good.unwrap_or_default(), true)
            }
        };
        while !good.is_empty() {
            let (part, more) = good.split_at(part_of(good));
            self.out.utf8(part);
            from += part.len();
            good = more;
            if !more.is_empty() && reschedule::is_asked() {
                return Ok(Taken::Later(rest(self.cx, from)));
            }
        }
        if !broken {
            return Ok(Taken::All);
        }
        // By its length only: the bytes after it are checked together with the next binary.
        let s = &bytes[from..];
        if s.len() < char_bytes(s[0]) {
            self.left = s.to_vec();
            return Ok(Taken::All);
        }
        Ok(Taken::Broken(rest(self.cx, from)))
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
                if reschedule::is_asked() {
                    return Ok(End::Later(at));
                }
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
                    match self.binary(h, b)? {
                        Taken::All => at = t,
                        Taken::Broken(r) => {
                            let here = self.cx.cons(r, t);
                            return Ok(End::Error(self.rest(here)));
                        }
                        Taken::Later(r) => return Ok(End::Later(self.cx.cons(r, t))),
                    }
                }
            } else if at.is_nil() {
                match self.stack.pop() {
                    Some(t) => at = t,
                    None => break,
                }
            } else {
                let b = at.as_bits().ok_or(Fail::Badarg)?;
                match self.binary(at, b)? {
                    Taken::All => at = NIL,
                    Taken::Broken(r) => return Ok(End::Error(self.rest(r))),
                    Taken::Later(r) => return Ok(End::Later(r)),
                }
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
    [data, enc]: [Term; 2],
    native: Long<2>,
    bytes_each: usize,
    finish: fn(&mut Env, &S) -> Term,
) -> BifResult {
    let state = reschedule::resumed();
    let Some(latin1) = encoding(enc) else {
        // The module itself handles the other encodings, and raises if there is no such encoding.
        let other = atom::intern(&format!("{}_int", native.name()));
        let target = crate::exports::export(atom::intern("unicode"), other, 2);
        return Err(cx.trap(target, &[data, enc]));
    };
    // On a scheduler it is enough to know that there is too much: a dirty thread counts all of it.
    let most = match cx.dirty || cx.proc.is_null() {
        true => usize::MAX,
        false => reschedule::UNICODE.most(),
    };
    let (mut data, mut stack, mut left) = (data, Vec::new(), Vec::new());
    let mut out = match state {
        None => {
            let size = chardata_size(data, most).ok_or(Fail::Badarg)?;
            dirty_if(cx, native.call(&[data, enc]), || {
                reschedule::UNICODE.exceeded(size)
            })?;
            admit(size.saturating_mul(bytes_each))?;
            S::with_room(size)
        }
        Some(state) => {
            let Some(&[out, at, tails, bytes]) = state.as_tuple() else {
                return Err(Fail::Badarg);
            };
            data = at;
            stack.extend(tails.list_iter());
            left.extend_from_slice(&bytes.as_binary().unwrap_or_default());
            let out = native_state::get::<Mutex<Option<S>>>(out);
            let out = out.and_then(|s| s.lock().ok()?.take());
            out.ok_or(Fail::Badarg)?
        }
    };
    let mut conversion = Conv {
        cx,
        out: &mut out,
        latin1,
        stack,
        left,
    };
    let end = conversion.run(data)?;
    if let End::Later(at) = end {
        let Conv { stack, left, .. } = conversion;
        let (tails, left) = (cx.list(&stack), cx.binary(&left));
        let out = native_state::make(cx, Mutex::new(Some(out)));
        let state = cx.tuple(&[out, at, tails, left]);
        return Err(reschedule::pause(cx, state));
    }
    let done = finish(cx, &out);
    Ok(match end {
        End::Later(_) => return Err(Fail::Again),
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
    let native = long!("unicode":"characters_to_binary"/2);
    convert::<Vec<u8>>(cx, [data, enc], native, 2, |cx, v| cx.binary(v))
}

fn characters_to_list_2(cx: &mut Env, [data, enc]: [Term; 2]) -> BifResult {
    // A word of each character is copied to a cell.
    let native = long!("unicode":"characters_to_list"/2);
    convert::<Vec<Term>>(cx, [data, enc], native, 24, |cx, v| cx.list(v))
}

/// Maximum number of bytes that are processed where the native is called: a few milliseconds.
const BYTES_LOOKED_AT: usize = 16 << 20;

fn bin_is_7bit_1(cx: &mut Env, [b]: [Term; 1]) -> BifResult {
    Ok(Term::bool(match b.as_binary() {
        Some(s) => {
            dirty_if(cx, long!("unicode":"bin_is_7bit"/1).call(&[b]), || {
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
