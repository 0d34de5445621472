//! The terms that a heap has sent: those that now lie in regions, and those that will with another
//! copy.
//!
//! When a term of some size is copied out of a heap, its address is noted: a *hint*. If a noted
//! term is to be copied once more, it is put in a region instead, and is *remembered* with its
//! region: sending it again costs nothing, and the next collection turns the heap's references to
//! it into references to the region.
//!
//! # Invariants
//! * A remembered term is the heap's own and stays in place until a collection forgets it. The
//!   region is held.
//! * A hint keeps nothing alive. A collection that moves the term updates the hint. One that finds
//!   the term dead removes the hint, and so does one that finds the term outside the heap, in a
//!   message. A hint may still be wrong, for a term that was released since. Then a region is made
//!   where a copy would have been enough, but nothing worse: nobody looks at the target of a hint.

use crate::region::{Region, is_region_ptr};
use crate::stress;
use crate::word::Term;
use std::cell::RefCell;

/// See the module head.
pub struct Sent {
    pub(crate) entries: Vec<SentTerm>,
    /// A bit for each of `entries`, by [`hash`].
    bits: u64,
    /// Number of the last message of which something was put in a region.
    message: u64,
    /// Terms as raw words, each in its place by [`hash`], perhaps with [`SMALL`]; 0: none. The last
    /// one noted has the place.
    hints: [u64; HINTS],
    /// A bit for each place in `hints` that is taken.
    taken: u32,
}

/// Number of hints, each in the place of its term's hash.
const HINTS: usize = 32;
/// Marks a hint whose term has too few words for a region.
const SMALL: u64 = 1 << 63;

/// Number of messages whose parts are remembered, the last ones sent: until its next collection the
/// sender keeps their regions alive.
const SENT_MESSAGES: u64 = 2;
/// Maximum number of those parts.
const SENT_TERMS: usize = 64;
/// Parts of fewer than `SENT_WORDS` words are remembered until the next collection, at most
/// `SENT_SMALL` of them, with as many words in all: each copy checks whether it has come to one.
const SENT_WORDS: usize = 32_768;
const SENT_SMALL: usize = 16;

/// An entry of [`Sent`]; holds its region.
pub(crate) struct SentTerm {
    pub term: Term,
    pub shared: Term,
    region: &'static Region,
    hits: u32,
    /// The last message that it was sent with.
    message: u64,
}

impl Drop for SentTerm {
    fn drop(&mut self) {
        // SAFETY: `shared` goes with it.
        unsafe { self.region.release() };
    }
}

/// Knowledge about a term that is to be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// It lies in a region: see [`Sent::shared_copy`].
    Known,
    /// It was copied before.
    Again,
    /// Nothing is known, or it is small.
    Nothing,
}

#[inline(always)]
fn hash(t: Term) -> u64 {
    t.raw().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 53
}
#[inline(always)]
fn bit(t: Term) -> u64 {
    1 << (hash(t) & 63)
}
#[inline(always)]
fn place(t: Term) -> usize {
    (hash(t) >> 6) as usize % HINTS
}

/// The term of a hint, which is not 0.
fn hinted(hint: u64) -> Term {
    // SAFETY: it was made of a term, and nobody looks into it without knowing that the term still
    // exists.
    unsafe { Term::from_raw(hint & !SMALL) }
}

thread_local! {
    /// Memory that a heap has released, for the next one: most processes that need it live only
    /// briefly.
    static SPARE: RefCell<Option<Box<Sent>>> = const { RefCell::new(None) };
}

/// An empty one.
#[inline(never)]
pub(crate) fn fresh() -> Box<Sent> {
    SPARE
        .with(|s| s.borrow_mut().take())
        .unwrap_or_else(|| Box::new(Sent::NONE))
}

/// Releases that of a heap which goes.
pub(crate) fn give_up(mut s: Box<Sent>) {
    s.entries.clear();
    (s.bits, s.message) = (0, 0);
    s.follow(|_| None);
    SPARE.with(|spare| *spare.borrow_mut() = Some(s));
}

impl Sent {
    const NONE: Sent = Sent {
        entries: Vec::new(),
        bits: 0,
        message: 0,
        hints: [0; HINTS],
        taken: 0,
    };
    /// The terms that lie in regions, and their copies there.
    pub fn terms(&self) -> impl Iterator<Item = (Term, Term)> + '_ {
        self.entries.iter().map(|e| (e.term, e.shared))
    }
    /// The terms of the hints.
    pub fn hints(&self) -> impl Iterator<Item = Term> + '_ {
        let taken = self.hints.iter().filter(|h| **h != 0);
        taken.map(|&h| hinted(h))
    }
    /// Whether the term lies in a region.
    #[inline]
    pub fn knows(&self, t: Term) -> bool {
        self.bits & bit(t) != 0 && self.entries.iter().any(|e| e.term == t)
    }
    /// Returns what is known of the list, tuple or map `t`, and notes it.
    #[inline]
    pub fn look(&mut self, t: Term) -> Look {
        if self.knows(t) {
            return Look::Known;
        }
        let hint = &mut self.hints[place(t)];
        if *hint & !SMALL != t.raw() {
            *hint = t.raw();
            self.taken |= 1 << place(t);
            return match stress::roll(4) {
                true => Look::Again,
                false => Look::Nothing,
            };
        }
        match *hint & SMALL {
            0 => Look::Again,
            _ => Look::Nothing,
        }
    }
    /// Notes that the term just looked at turned out to be small.
    pub fn is_small(&mut self, t: Term) {
        self.hints[place(t)] = t.raw() | SMALL;
    }
    /// The copy of a term in a region, if there is one; and the words of the region if this is the
    /// second request.
    pub(crate) fn shared_copy(&mut self, t: Term) -> Option<(Term, Option<usize>)> {
        let e = self.entries.iter_mut().find(|e| e.term == t)?;
        e.hits += 1;
        e.message = self.message;
        Some((e.shared, (e.hits == 2).then_some(e.region.words)))
    }
    /// Words of the region that holds a copy of `t`; 0 if there is none.
    pub fn words_of(&self, t: Term) -> usize {
        let e = self.entries.iter().find(|e| e.term == t);
        e.map_or(0, |e| e.region.words)
    }
    pub(crate) fn remember(&mut self, term: Term, shared: Term, region: &'static Region) {
        let message = self.message;
        let is_small = |e: &SentTerm| e.region.words < SENT_WORDS;
        self.entries
            .retain(|e| is_small(e) || message - e.message < SENT_MESSAGES);
        let small = self.entries.iter().filter(|e| is_small(e));
        let (mut n, mut words) = small.fold((0, region.words), |(n, words), e| {
            (n + 1, words + e.region.words)
        });
        while (n >= SENT_SMALL || words > SENT_WORDS)
            && region.words < SENT_WORDS
            && let Some(i) = self.entries.iter().position(is_small)
        {
            n -= 1;
            words -= self.entries.remove(i).region.words;
        }
        if self.entries.len() >= SENT_TERMS {
            self.entries.remove(0);
        }
        region.retain();
        self.entries.push(SentTerm {
            term,
            shared,
            region,
            hits: 0,
            message,
        });
        self.count_bits();
    }
    pub(crate) fn next_message(&mut self) {
        self.message += 1;
    }
    fn count_bits(&mut self) {
        self.bits = self.entries.iter().fold(0, |b, e| b | bit(e.term));
    }
    /// Takes out the remembered terms that a collection moves.
    pub(crate) fn take(&mut self, moves: impl Fn(usize) -> bool) -> Vec<SentTerm> {
        if self.entries.is_empty() {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.entries);
        let (moved, rest) = all.into_iter().partition(|e| moves(e.term.ptr() as usize));
        self.entries = rest;
        self.count_bits();
        moved
    }
    /// Forgets the remembered terms and hints for which `lives` is false. Returns false if nothing
    /// is left.
    pub(crate) fn keep(&mut self, lives: impl Fn(Term) -> bool) -> bool {
        self.entries.retain(|e| lives(e.term));
        self.count_bits();
        self.follow(|t| lives(t).then_some(t));
        !self.is_empty()
    }
    /// Updates each hint to the present place of its term, or removes it.
    #[inline]
    pub(crate) fn follow(&mut self, mut to: impl FnMut(Term) -> Option<Term>) {
        let mut before = [0; HINTS];
        let mut n = 0;
        let mut taken = std::mem::take(&mut self.taken);
        while taken != 0 {
            let i = taken.trailing_zeros() as usize;
            taken &= taken - 1;
            before[n] = std::mem::take(&mut self.hints[i]);
            n += 1;
        }
        for &hint in &before[..n] {
            let t = to(hinted(hint));
            if let Some(t) = t.filter(|t| !is_region_ptr(t.ptr())) {
                self.hints[place(t)] = t.raw() | hint & SMALL;
                self.taken |= 1 << place(t);
            }
        }
    }
    /// Whether it has neither entries nor hints.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.taken == 0
    }
}
