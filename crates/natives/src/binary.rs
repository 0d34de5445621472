//! Natives of module `binary`: searching, splitting, parts, numbers.
//!
//! A search for several patterns has the result of stock: the earliest match, and the longest of
//! those that start together.

use super::iolist::{self, part_range};
use super::native_state;
use super::reschedule::{self, LongCall, dirty_if};
use crate::cx::{BifResult, Env, Fail};
use crate::long;
use crate::{bifs, lazy_atoms};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use memchr::memmem;
use purlin_term::bin::RcBin;
use purlin_term::bits::is_small_part;
use purlin_term::iolist::Gathered;
use purlin_term::refusal::may_fail;
use purlin_term::release::{
    self, COPIES_WHOLE_BYTES, EMPTY_SUBJECTS_NEED_PATTERNS, OWN_SIZE_IN_BITS, SMALL_PARTS_COPIED,
};
use purlin_term::word::Subtag;
use purlin_term::{Alloc, NIL, Term, am, ending};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::{Mutex, OnceLock};

lazy_atoms! {
    bm = "bm";
    ac = "ac";
    pub(crate) nomatch = "nomatch";
    scope = "scope";
    global = "global";
    trim = "trim";
    trim_all = "trim_all";
}

/// A search prepared by `compile_pattern/1`, or for one call.
enum Pattern<'a> {
    One(memmem::Finder<'a>),
    /// For so few bytes that preparing the search would cost more than the search.
    Plain(Cow<'a, [u8]>),
    /// Several words, as [`Pattern::Plain`]: building an automaton takes some microseconds.
    Few(Few<'a>),
    Many(AhoCorasick),
    /// Several words, of which some are long. Building an automaton may take time quadratic in the
    /// length of a repetitive word.
    Long(Vec<memmem::Finder<'a>>),
}

/// A few short words.
struct Few<'a> {
    /// Sorted by first byte, and those with the same first byte by descending length.
    words: Vec<Cow<'a, [u8]>>,
    /// For each first byte, the range of its words: the first, and the first after them.
    groups: SmallVec<[(u8, u8); 8]>,
    /// For each byte one more than the number of its group, or 0.
    group_of: [u8; 256],
    /// The automaton for searches of [`FEW_BELOW_BYTES`] and more, built by the first of them.
    /// Programs also compile patterns for a single short search: `string:trim/1` does.
    automaton: OnceLock<Option<Box<AhoCorasick>>>,
}

/// Minimum length of a word for which several words get no automaton, and the number of words up to
/// which that holds; with more words the length must be eight times as large.
const LONG_BYTES: usize = 256;
const MOST_LONG: usize = 64;

/// Limits up to which several words are [`Few`]: number of words and bytes of each; and the bytes
/// to search from which they use an automaton.
const FEW_WORDS: usize = 64;
const FEW_BYTES: usize = 16;
const FEW_BELOW_BYTES: usize = 16 * 1024;

impl<'a> Few<'a> {
    fn new(mut words: Vec<Cow<'a, [u8]>>) -> Few<'a> {
        debug_assert!(words.len() <= FEW_WORDS);
        words.sort_by(|a, b| (a.first(), b.len()).cmp(&(b.first(), a.len())));
        let mut f = Few {
            words,
            groups: SmallVec::new(),
            group_of: [0; 256],
            automaton: OnceLock::new(),
        };
        for (k, w) in f.words.iter().enumerate() {
            let Some(&first) = w.first() else { continue };
            let group = &mut f.group_of[first as usize];
            if *group == 0 {
                f.groups.push((k as u8, k as u8));
                *group = f.groups.len() as u8;
            }
            if let Some(g) = f.groups.last_mut() {
                g.1 = k as u8 + 1;
            }
        }
        f
    }
    /// Returns the first byte of the words of a group.
    fn first(&self, group: usize) -> u8 {
        let words = self.groups.get(group).map(|g| g.0 as usize);
        words.and_then(|k| self.words[k].first()).map_or(0, |b| *b)
    }
    /// Returns the first place in `hay` where a word may begin.
    fn start(&self, hay: &[u8]) -> Option<usize> {
        match self.groups.len() {
            1 => memchr::memchr(self.first(0), hay),
            2 => memchr::memchr2(self.first(0), self.first(1), hay),
            3 => memchr::memchr3(self.first(0), self.first(1), self.first(2), hay),
            _ => hay.iter().position(|&b| self.group_of[b as usize] != 0),
        }
    }
    /// As [`Pattern::find`].
    fn find(&self, hay: &[u8], from: usize) -> Option<(usize, usize)> {
        if hay.len().saturating_sub(from) >= FEW_BELOW_BYTES {
            let built = || automaton(&self.words, hay.len()).map(Box::new);
            if let Some(a) = self.automaton.get_or_init(built) {
                return find_by(a, hay, from);
            }
        }
        let mut at = from;
        loop {
            at += self.start(hay.get(at..)?)?;
            let here = &hay[at..];
            let group = self.group_of[here[0] as usize].checked_sub(1);
            if let Some(&(a, b)) = group.and_then(|g| self.groups.get(g as usize))
                && let Some(w) = self.words[a as usize..b as usize]
                    .iter()
                    .find(|w| here.starts_with(w))
            {
                return Some((at, w.len()));
            }
            at += 1;
        }
    }
}

/// Where a search has ended.
enum Place {
    None,
    /// At a match: its start and length.
    Match(usize, usize),
    /// Before this place, from which it should continue later.
    Later(usize),
}

/// Bytes of start positions that are searched between two checks whether the result is still
/// wanted.
const PART: usize = 8 << 20;

/// Minimum number of bytes to search for which a search is prepared.
const PLAIN_BELOW_BYTES: usize = 64;

impl<'a> Pattern<'a> {
    /// Prepares one word for a search of `hay` bytes.
    fn one(word: Cow<'a, [u8]>, hay: usize) -> Pattern<'a> {
        match word {
            _ if hay < PLAIN_BELOW_BYTES => Pattern::Plain(word),
            Cow::Borrowed(w) => Pattern::One(memmem::Finder::new(w)),
            Cow::Owned(w) => Pattern::One(memmem::Finder::new(&w).into_owned()),
        }
    }
    fn into_owned(self) -> Pattern<'static> {
        match self {
            Pattern::One(f) => Pattern::One(f.into_owned()),
            Pattern::Plain(w) => Pattern::Plain(Cow::Owned(w.into_owned())),
            Pattern::Few(f) => Pattern::Few(Few {
                words: f.words.into_iter().map(|w| w.into_owned().into()).collect(),
                groups: f.groups,
                group_of: f.group_of,
                automaton: f.automaton,
            }),
            Pattern::Many(a) => Pattern::Many(a),
            Pattern::Long(v) => Pattern::Long(v.into_iter().map(|f| f.into_owned()).collect()),
        }
    }
    /// Returns the first match in `hay` at or after `from`: its start and length. `next` belongs to
    /// the search, whose matches come in order: where each of the long words occurs next.
    fn find(&self, hay: &[u8], from: usize, next: &mut Vec<usize>) -> Option<(usize, usize)> {
        match self {
            Pattern::One(f) => f
                .find(hay.get(from..)?)
                .map(|i| (from + i, f.needle().len())),
            Pattern::Plain(w) => memmem::find(hay.get(from..)?, w).map(|i| (from + i, w.len())),
            Pattern::Few(f) => f.find(hay, from),
            Pattern::Many(a) => find_by(a, hay, from),
            Pattern::Long(v) => {
                next.resize(v.len(), 0);
                for (f, at) in v.iter().zip(next.iter_mut()) {
                    if *at < from || from == 0 {
                        let rest = hay.get(from..).unwrap_or_default();
                        *at = f.find(rest).map_or(usize::MAX, |i| from + i);
                    }
                }
                let all = v.iter().zip(next.iter());
                let first = all.map(|(f, &at)| (at, f.needle().len()));
                let first = first.filter(|m| m.0 != usize::MAX);
                first.min_by_key(|&(at, n)| (at, std::cmp::Reverse(n)))
            }
        }
    }
    /// As [`Pattern::find`], but in successive parts of `hay`, so that a long search notices that
    /// its result is no longer wanted.
    fn find_in_parts(&self, hay: &[u8], from: usize, next: &mut Vec<usize>) -> Result<Place, Fail> {
        let place =
            |found: Option<(usize, usize)>| found.map_or(Place::None, |m| Place::Match(m.0, m.1));
        if hay.len() - from <= PART || matches!(self, Pattern::Long(_)) {
            return Ok(place(self.find(hay, from, next)));
        }
        let behind = self.longest();
        let mut part = from;
        loop {
            // The range contains all words that begin in this part.
            let end = hay.len().min(part + PART + behind);
            match self.find(&hay[..end], part, next) {
                Some(m) if m.0 < part + PART || end == hay.len() => return Ok(place(Some(m))),
                _ if end == hay.len() => return Ok(Place::None),
                _ => part += PART,
            }
            reschedule::go_on()?;
            if reschedule::is_asked() {
                return Ok(Place::Later(part));
            }
        }
    }
    /// Returns the length of the longest word in bytes.
    fn longest(&self) -> usize {
        match self {
            Pattern::One(f) => f.needle().len(),
            Pattern::Plain(w) => w.len(),
            Pattern::Few(f) => f.words.iter().map(|w| w.len()).max().unwrap_or(0),
            Pattern::Many(a) => a.max_pattern_len(),
            Pattern::Long(v) => v.iter().map(|f| f.needle().len()).max().unwrap_or(0),
        }
    }
    fn tag(&self) -> Term {
        match self {
            Pattern::One(_) | Pattern::Plain(_) => bm(),
            Pattern::Few(_) | Pattern::Many(_) | Pattern::Long(_) => ac(),
        }
    }
}

/// Makes a pattern from a binary or a non-empty list of binaries, none empty. `hay` is the number
/// of bytes to search.
fn pattern<'a>(t: Term, hay: usize) -> Option<Pattern<'a>> {
    if let Some(b) = t.as_binary() {
        return (!b.is_empty()).then(|| Pattern::one(b, hay));
    }
    let items = t.list_to_vec()?;
    let mut words: Vec<Cow<[u8]>> = items
        .iter()
        .map(|t| t.as_binary().filter(|b| !b.is_empty()))
        .collect::<Option<_>>()?;
    match words.len() {
        0 => None,
        1 => words.pop().map(|w| Pattern::one(w, hay)),
        n if n <= FEW_WORDS && words.iter().all(|w| w.len() <= FEW_BYTES) => {
            Some(Pattern::Few(Few::new(words)))
        }
        n if words.iter().any(|w| {
            w.len()
                > if n <= MOST_LONG {
                    LONG_BYTES
                } else {
                    8 * LONG_BYTES
                }
        }) =>
        {
            let finder = |w| match w {
                Cow::Borrowed(w) => memmem::Finder::new(w),
                Cow::Owned(w) => memmem::Finder::new(&w).into_owned(),
            };
            Some(Pattern::Long(words.into_iter().map(finder).collect()))
        }
        _ => automaton(&words, hay).map(Pattern::Many),
    }
}

/// Builds an automaton that finds the earliest of the words, and of those the longest. `hay` is the
/// number of bytes to search.
fn automaton(words: &[Cow<[u8]>], hay: usize) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind((hay < 16 * 1024).then_some(AhoCorasickKind::NoncontiguousNFA))
        .build(words)
        .ok()
}

fn find_by(a: &AhoCorasick, hay: &[u8], from: usize) -> Option<(usize, usize)> {
    let m = a.find(aho_corasick::Input::new(hay).range(from..))?;
    Some((m.start(), m.end() - m.start()))
}

/// Bytes of words that an automaton takes for one reduction.
const AUTOMATON_BYTES_PER_REDUCTION: usize = 8;

/// Reductions that it takes to compile a pattern.
fn compiling(pattern: Term) -> usize {
    let len = |t: Term| t.as_bits().map_or(0, |b| b.bit_len / 8);
    len(pattern) / BYTES_PER_REDUCTION
        + pattern.list_iter().map(len).sum::<usize>() / AUTOMATON_BYTES_PER_REDUCTION
}

/// Calls `f` with the pattern `t`, which is compiled already, or is compiled now.
fn with_pattern<R>(
    cx: &mut Env,
    t: Term,
    hay: usize,
    f: impl FnOnce(&Pattern<'_>) -> R,
) -> Result<R, Fail> {
    if let Some(&[tag, r]) = t.as_tuple() {
        let p = native_state::get::<Pattern<'static>>(r)
            .filter(|p| p.tag() == tag)
            .ok_or(Fail::Badarg)?;
        return Ok(f(p));
    }
    let p = pattern(t, hay).ok_or(Fail::Badarg)?;
    cx.bump(compiling(t));
    Ok(f(&p))
}

fn compile_pattern_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let p = pattern(t, usize::MAX).ok_or(Fail::Badarg)?.into_owned();
    cx.bump(compiling(t));
    let tag = p.tag();
    let r = native_state::make(cx, p);
    Ok(cx.tuple(&[tag, r]))
}

/// Options of the searching functions.
struct Options {
    /// Range of the subject in bytes.
    scope: (usize, usize),
    global: bool,
    trim: bool,
    trim_all: bool,
}

fn options(t: Term, size: usize, splitting: bool) -> Result<Options, Fail> {
    let mut o = Options {
        scope: (0, size),
        global: false,
        trim: false,
        trim_all: false,
    };
    for item in t.list_to_vec().ok_or(Fail::Badarg)? {
        match item.as_tuple() {
            Some(&[k, v]) if k == scope() => match v.as_tuple() {
                Some(&[p, l]) => o.scope = part_range(size, p, l).ok_or(Fail::Badarg)?,
                _ => return Err(Fail::Badarg),
            },
            None if splitting && item == global() => o.global = true,
            None if splitting && item == trim() => o.trim = true,
            None if splitting && item == trim_all() => o.trim_all = true,
            _ => return Err(Fail::Badarg),
        }
    }
    Ok(o)
}

fn bytes<'a>(t: Term) -> Result<Cow<'a, [u8]>, Fail> {
    t.as_binary().ok_or(Fail::Badarg)
}

fn pair(cx: &mut Env, (at, n): (usize, usize)) -> Term {
    let (a, b) = (cx.uint(at as u64), cx.uint(n as u64));
    cx.tuple(&[a, b])
}

/// How far a search has come: the matches found, and where it continues.
#[derive(Default)]
struct Search {
    found: Vec<(usize, usize)>,
    from: usize,
}

/// Returns the matches for which `opts` ask (the first, or all), in order.
fn search(
    cx: &mut Env,
    subject: Term,
    pat: Term,
    o: &Options,
    all: bool,
) -> Result<Vec<(usize, usize)>, Fail> {
    let s = bytes(subject)?;
    if o.scope.0 + o.scope.1 == 0 {
        // As in stock the pattern was not looked at then.
        if release::has(EMPTY_SUBJECTS_NEED_PATTERNS) {
            with_pattern(cx, pat, 0, |_| ())?;
        }
        return Ok(Vec::new());
    }
    let end = o.scope.0 + o.scope.1;
    let fresh = Mutex::new(Search {
        found: Vec::new(),
        from: o.scope.0,
    });
    // It stays in the state: the native may have to be called once more after a collection.
    let state = reschedule::resumed();
    let so_far = match state {
        None => &fresh,
        Some(state) => native_state::get(state).ok_or(Fail::Badarg)?,
    };
    let mut so_far = so_far.lock().unwrap_or_else(|e| e.into_inner());
    let done = with_pattern(cx, pat, o.scope.1, |p| {
        let hay = &s[..end];
        let Search { found, from } = &mut *so_far;
        let mut next = Vec::new();
        loop {
            let (at, n) = match p.find_in_parts(hay, *from, &mut next)? {
                Place::None => return Ok(true),
                Place::Match(at, n) => (at, n),
                Place::Later(at) => {
                    *from = at;
                    return Ok(false);
                }
            };
            found.push((at, n));
            *from = at + n;
            if !all {
                return Ok(true);
            }
            if found.len().is_multiple_of(LOOK_EVERY) {
                reschedule::go_on()?;
                // The result will take at least as much.
                iolist::admit_list(found.len().saturating_mul(CELLS_OF_MATCH))?;
                if reschedule::is_asked() {
                    return Ok(false);
                }
            }
        }
    })??;
    if !done {
        let state = match state {
            Some(state) => state,
            None => native_state::make(cx, Mutex::new(std::mem::take(&mut *so_far))),
        };
        return Err(reschedule::pause(cx, state));
    }
    let found = match state {
        Some(_) => so_far.found.clone(),
        None => std::mem::take(&mut so_far.found),
    };
    // Data after the wanted match was not looked at.
    let seen = match found.last() {
        Some((at, n)) if !all => at + n - o.scope.0,
        _ => o.scope.1,
    };
    cx.bump(seen / BYTES_PER_REDUCTION + found.len() / 8 + 1);
    Ok(found)
}

/// Bytes that are searched for one reduction.
const BYTES_PER_REDUCTION: usize = 512;
/// Number of bytes in which a long search looks for its first match before it moves to a dirty
/// thread: a program that takes lines off a long binary finds each of them near.
const NEAR: usize = 1 << 16;

/// Returns the length of the longest word of a pattern in bytes, without compiling the pattern.
fn longest(cx: &mut Env, pattern: Term) -> Result<usize, Fail> {
    if pattern.as_tuple().is_some() {
        return with_pattern(cx, pattern, 0, |p| p.longest());
    }
    let len = |t: Term| t.as_bits().map_or(0, |b| b.bit_len.div_ceil(8));
    Ok(pattern.list_iter().map(len).max().unwrap_or(len(pattern)))
}

/// Returns the first match of `p` in `s` for which the options of `call` ask.
fn first(
    cx: &mut Env,
    [s, p]: [Term; 2],
    o: &Options,
    call: LongCall<'_>,
) -> Result<Option<(usize, usize)>, Fail> {
    if reschedule::BINARY.exceeded(o.scope.1) && !cx.dirty {
        let scope = (o.scope.0, NEAR.min(reschedule::BINARY.most()));
        let near = Options { scope, ..*o };
        if let Some(&(at, n)) = search(cx, s, p, &near, false)?.first()
            // A longer word that begins there as well may extend beyond.
            && at + longest(cx, p)? <= scope.0 + scope.1
        {
            return Ok(Some((at, n)));
        }
        leave_if_long(cx, call, o.scope.1)?;
    }
    Ok(search(cx, s, p, o, false)?.first().copied())
}

/// Matches after which a long search checks whether to continue.
const LOOK_EVERY: usize = 1 << 14;
/// Factor by which a byte counts more if all matches are wanted, since there may be one per byte.
const ALL: usize = 16;

/// Moves the call to a dirty thread if `size` bytes are too many to handle here.
fn leave_if_long(cx: &mut Env, call: LongCall<'_>, size: usize) -> Result<(), Fail> {
    dirty_if(cx, call, || reschedule::BINARY.exceeded(size))
}

fn match_3(cx: &mut Env, [s, p, o]: [Term; 3]) -> BifResult {
    let options = options(o, bytes(s)?.len(), false)?;
    let found = first(
        cx,
        [s, p],
        &options,
        long!("binary":"match"/3).call(&[s, p, o]),
    )?;
    Ok(found.map_or(nomatch(), |m| pair(cx, m)))
}
fn match_2(cx: &mut Env, [s, p]: [Term; 2]) -> BifResult {
    let options = options(NIL, bytes(s)?.len(), false)?;
    let found = first(
        cx,
        [s, p],
        &options,
        long!("binary":"match"/2).call(&[s, p]),
    )?;
    Ok(found.map_or(nomatch(), |m| pair(cx, m)))
}

/// Cells of a list that take as much memory as a match with its cell, and as a part with its cell.
const CELLS_OF_MATCH: usize = 3;
const CELLS_OF_PART: usize = 4;

fn matches_3(cx: &mut Env, [s, p, o]: [Term; 3]) -> BifResult {
    let size = bytes(s)?.len();
    let native = long!("binary":"matches"/3);
    leave_if_long(cx, native.call(&[s, p, o]), size.saturating_mul(ALL))?;
    let o = options(o, size, false)?;
    let found = search(cx, s, p, &o, true)?;
    iolist::admit_list(found.len().saturating_mul(CELLS_OF_MATCH))?;
    let mut v: Vec<Term> = Vec::with_capacity(found.len());
    for m in found {
        if v.len().is_multiple_of(LOOK_EVERY) {
            reschedule::go_on()?;
        }
        v.push(pair(cx, m));
    }
    Ok(cx.list(&v))
}
fn matches_2(cx: &mut Env, [s, p]: [Term; 2]) -> BifResult {
    let size = bytes(s)?.len();
    let native = long!("binary":"matches"/2);
    leave_if_long(cx, native.call(&[s, p]), size.saturating_mul(ALL))?;
    matches_3(cx, [s, p, NIL])
}

fn split_3(cx: &mut Env, [s, p, o]: [Term; 3]) -> BifResult {
    split(cx, [s, p, o], long!("binary":"split"/3).call(&[s, p, o]))
}
/// `binary:split/2,3`. `call` is the one of them that was called.
fn split(cx: &mut Env, [s, p, o]: [Term; 3], call: LongCall<'_>) -> BifResult {
    let size = bytes(s)?.len();
    let o = options(o, size, true)?;
    let found: SmallVec<[(usize, usize); 4]> = match o.global {
        true => {
            leave_if_long(cx, call, size.saturating_mul(ALL))?;
            search(cx, s, p, &o, true)?.into()
        }
        false => first(cx, [s, p], &o, call)?.into_iter().collect(),
    };
    let mut ranges: Vec<(usize, usize)> = Vec::with_capacity(found.len() + 1);
    let mut from = 0;
    for (at, n) in found {
        reschedule::go_on_at(ranges.len())?;
        ranges.push((from, at - from));
        from = at + n;
    }
    ranges.push((from, size - from));
    if o.trim_all {
        ranges.retain(|r| r.1 != 0);
    } else if o.trim {
        while ranges.last().is_some_and(|r| r.1 == 0) {
            ranges.pop();
        }
    }
    let v: Vec<Term> = match &ranges[..] {
        [(0, n)] if *n == size => vec![s],
        _ => {
            iolist::admit_list(ranges.len().saturating_mul(CELLS_OF_PART))?;
            let mut v = Vec::with_capacity(ranges.len());
            for (at, n) in ranges {
                if v.len().is_multiple_of(LOOK_EVERY) {
                    reschedule::go_on()?;
                }
                v.push(cx.part(s, at, n));
            }
            v
        }
    };
    Ok(cx.list(&v))
}
fn split_2(cx: &mut Env, [s, p]: [Term; 2]) -> BifResult {
    split(cx, [s, p, NIL], long!("binary":"split"/2).call(&[s, p]))
}

fn at_2(_: &mut Env, [s, i]: [Term; 2]) -> BifResult {
    let b = s.as_bits().ok_or(Fail::Badarg)?;
    let n = b.bit_len / 8;
    match i.as_small() {
        Some(i) if b.bit_len & 7 == 0 && i >= 0 && (i as u64) < n as u64 => {
            Ok(byte_at(s, i as usize))
        }
        _ => Err(Fail::Badarg),
    }
}

/// Returns byte `i` of a binary that has it.
fn byte_at(s: Term, i: usize) -> Term {
    let whole = s.as_bits().filter(|b| i < b.bit_len / 8);
    let one = whole.map(|b| purlin_term::layout::Bits {
        // SAFETY: the binary has this byte.
        base: unsafe { b.base.add(i) },
        bit_len: 8,
        ..b
    });
    let byte = one.and_then(|b| b.to_bytes().map(|b| b[0]));
    Term::small(byte.unwrap_or(0) as i64)
}

fn first_1(_: &mut Env, [s]: [Term; 1]) -> BifResult {
    match s.as_bits() {
        Some(b) if b.bit_len & 7 == 0 && b.bit_len > 0 => Ok(byte_at(s, 0)),
        _ => Err(Fail::Badarg),
    }
}
fn last_1(_: &mut Env, [s]: [Term; 1]) -> BifResult {
    match s.as_bits() {
        Some(b) if b.bit_len & 7 == 0 && b.bit_len > 0 => Ok(byte_at(s, b.bit_len / 8 - 1)),
        _ => Err(Fail::Badarg),
    }
}

fn copy_2(cx: &mut Env, [s, n]: [Term; 2]) -> BifResult {
    // Before, stock checked the last bits only if there was something to copy.
    if n == Term::small(0) && s.as_bits().is_some() && !release::has(COPIES_WHOLE_BYTES) {
        return Ok(cx.binary(&[]));
    }
    let b = bytes(s)?;
    let times = n
        .as_small()
        .and_then(|n| usize::try_from(n).ok())
        .ok_or(Fail::Badarg)?;
    let total = b
        .len()
        .checked_mul(times)
        .filter(|&t| may_fail(|| Vec::<u8>::new().try_reserve_exact(t).is_ok()))
        .ok_or(Fail::SystemLimit)?;
    if !reschedule::is_resumed() {
        iolist::admit(total)?;
        leave_if_long(cx, long!("binary":"copy"/2).call(&[s, n]), total)?;
        cx.bump(total / 1024 + 1);
    }
    let repeat = |out: &mut [u8]| match *b {
        [] => {}
        [one] => out.fill(one),
        _ => {
            for c in out.chunks_mut(b.len()) {
                c.copy_from_slice(&b[..c.len()]);
            }
        }
    };
    if !reschedule::BINARY.exceeded(total) {
        return Ok(iolist::build_binary(cx, total, repeat));
    }
    let period: Cow<[u8]> = match b.len() < ending::BYTES {
        true => {
            let mut some = vec![0; ending::BYTES / b.len() * b.len()];
            repeat(&mut some);
            some.into()
        }
        false => b,
    };
    iolist::build_in_parts(cx, total, |_| {
        move |_: &mut Env, out: &mut Gathered| {
            let at = out.len() % period.len();
            let n = ending::BYTES.min(period.len() - at).min(total - out.len());
            out.extend(&period[at..at + n]);
            reschedule::is_asked().then_some(NIL)
        }
    })
}
fn copy_1(cx: &mut Env, [s]: [Term; 1]) -> BifResult {
    leave_if_long(cx, long!("binary":"copy"/1).call(&[s]), bytes(s)?.len())?;
    copy_2(cx, [s, Term::small(1)])
}

fn list_to_bin_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    iolist::list_to_binary(cx, long!("binary":"list_to_bin"/1), t)
}

/// Maximum number of bytes of a number that are converted where the native is called.
const NUMBER_BYTES: usize = 1 << 20;

/// Whether `t` asks for little-endian.
fn little(t: Term) -> Result<bool, Fail> {
    if t == am::LITTLE {
        Ok(true)
    } else if t == am::BIG {
        Ok(false)
    } else {
        Err(Fail::Badarg)
    }
}

fn decode_unsigned_2(cx: &mut Env, [s, e]: [Term; 2]) -> BifResult {
    let b = bytes(s)?;
    let le = little(e)?;
    dirty_if(
        cx,
        long!("binary":"decode_unsigned"/2).call(&[s, e]),
        || b.len() > NUMBER_BYTES,
    )?;
    cx.bump(b.len() / 256 + 1);
    let digits: Vec<u64> = if le {
        b.chunks(8)
            .map(|c| c.iter().rev().fold(0, |d, &x| d << 8 | x as u64))
            .collect()
    } else {
        b.rchunks(8)
            .map(|c| c.iter().fold(0, |d, &x| d << 8 | x as u64))
            .collect()
    };
    Ok(cx.big(false, &digits))
}
fn decode_unsigned_1(cx: &mut Env, [s]: [Term; 1]) -> BifResult {
    decode_unsigned_2(cx, [s, am::BIG])
}

fn encode_unsigned_2(cx: &mut Env, [n, e]: [Term; 2]) -> BifResult {
    let le = little(e)?;
    dirty_if(
        cx,
        long!("binary":"encode_unsigned"/2).call(&[n, e]),
        || n.as_big().is_some_and(|(_, d)| d.len() > NUMBER_BYTES / 8),
    )?;
    let mut v: Vec<u8> = match (n.as_small(), n.as_big()) {
        (Some(n), _) if n >= 0 => n.to_le_bytes().to_vec(),
        (_, Some((false, d))) => d.iter().flat_map(|d| d.to_le_bytes()).collect(),
        _ => return Err(Fail::Badarg),
    };
    let len = v.iter().rposition(|&b| b != 0).map_or(1, |i| i + 1);
    v.truncate(len);
    if !le {
        v.reverse();
    }
    cx.bump(len / 256 + 1);
    Ok(cx.binary(&v))
}
fn encode_unsigned_1(cx: &mut Env, [n]: [Term; 1]) -> BifResult {
    encode_unsigned_2(cx, [n, am::BIG])
}

fn common(cx: &mut Env, t: Term, suffix: bool) -> BifResult {
    let items = t.list_to_vec().ok_or(Fail::Badarg)?;
    let all: Vec<Cow<[u8]>> = items.iter().map(|&t| bytes(t)).collect::<Result<_, _>>()?;
    let native = match suffix {
        true => long!("binary":"longest_common_suffix"/1),
        false => long!("binary":"longest_common_prefix"/1),
    };
    let shortest = all.iter().map(|b| b.len()).min().unwrap_or(0);
    leave_if_long(cx, native.call(&[t]), shortest.saturating_mul(all.len()))?;
    let (first, rest) = all.split_first().ok_or(Fail::Badarg)?;
    let mut n = first.len();
    for b in rest {
        reschedule::go_on()?;
        // Number of equal bytes at the front or at the end.
        let alike = |x: &[u8], y: &[u8]| match suffix {
            true => {
                let pairs = x.iter().rev().zip(y.iter().rev());
                pairs.take_while(|(x, y)| x == y).count()
            }
            false => {
                let pairs = x.iter().zip(y.iter());
                pairs.take_while(|(x, y)| x == y).count()
            }
        };
        let most = n.min(b.len());
        let mut same = 0;
        while same < most {
            let part = ending::BYTES.min(most - same);
            let [x, y] = [&first[..], &b[..]].map(|s| match suffix {
                true => &s[s.len() - same - part..s.len() - same],
                false => &s[same..same + part],
            });
            let here = alike(x, y);
            same += here;
            if here < part {
                break;
            }
            reschedule::go_on()?;
        }
        n = n.min(same);
        cx.bump(same / 256 + 1);
    }
    Ok(cx.uint(n as u64))
}
fn longest_common_prefix_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    common(cx, t, false)
}
fn longest_common_suffix_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    common(cx, t, true)
}

fn referenced_byte_size_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let bits = t.as_bits().ok_or(Fail::Badarg)?;
    let own = t.subtag() == Some(Subtag::HeapBin) || is_small_part(t);
    if own && release::has(SMALL_PARTS_COPIED) {
        let n = match release::has(OWN_SIZE_IN_BITS) {
            true => bits.bit_len,
            false => bits.bit_len / 8,
        };
        return Ok(cx.uint(n as u64));
    }
    let whole = t.whole();
    let n = match whole.block() {
        // SAFETY: the block of a live term.
        Some(block) => unsafe { RcBin::kept_bytes(block) },
        None => whole.as_bits().unwrap_or(bits).bit_len.div_ceil(8),
    };
    Ok(cx.uint(n as u64))
}

bifs! {
    Plain "binary":"compile_pattern"/1 = compile_pattern_1;
    Plain "binary":"match"/2 = match_2 [long];
    Plain "binary":"match"/3 = match_3 [long];
    Plain "binary":"matches"/2 = matches_2 [long];
    Plain "binary":"matches"/3 = matches_3 [long];
    Plain "binary":"split"/2 = split_2 [long];
    Plain "binary":"split"/3 = split_3 [long];
    Plain "binary":"at"/2 = at_2;
    Plain "binary":"first"/1 = first_1;
    Plain "binary":"last"/1 = last_1;
    Plain "binary":"part"/2 = iolist::binary_part_2;
    Plain "binary":"part"/3 = iolist::binary_part_3;
    Plain "binary":"copy"/1 = copy_1 [long];
    Plain "binary":"copy"/2 = copy_2 [long];
    Plain "binary":"list_to_bin"/1 = list_to_bin_1 [long];
    Plain "binary":"decode_unsigned"/1 = decode_unsigned_1 [long];
    Plain "binary":"decode_unsigned"/2 = decode_unsigned_2 [long];
    Plain "binary":"encode_unsigned"/1 = encode_unsigned_1 [long];
    Plain "binary":"encode_unsigned"/2 = encode_unsigned_2 [long];
    Plain "binary":"longest_common_prefix"/1 = longest_common_prefix_1 [long];
    Plain "binary":"longest_common_suffix"/1 = longest_common_suffix_1 [long];
    Plain "binary":"referenced_byte_size"/1 = referenced_byte_size_1;
}
