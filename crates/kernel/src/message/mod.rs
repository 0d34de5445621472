//! Signals in memory, and the queues in which they wait: in transit, and in mailboxes. Every effect
//! of one process on another is a signal; [`crate::signal`] handles them.
//!
//! # A signal in memory
//! A signal is one block: a head, then the words of its terms. Its root term points into the block
//! or into regions, or is an immediate. Senders build it, push it on the receiver's queue in
//! transit, and no longer use it. The receiver takes the whole queue, moves messages into its
//! mailbox as they are (the block is the message) and handles the others.

pub mod blocks;
pub mod external;
pub mod index;
pub mod keys;
pub mod lengths;
pub mod mailbox;
pub mod queue;
#[cfg(test)]
mod queue_tests;
pub mod sharing;
pub mod token;

use purlin_term::copy::Flat;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::off_heap::OffHeap;
use purlin_term::region::is_region_ptr;
use purlin_term::region_set::RegionSet;
use purlin_term::{Alloc, Term, copy, gc};
use queue::Link;
use smallvec::SmallVec;
use token::Token;

/// The kind of a signal, and its term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Term: the message.
    Message,
    /// Term: `[Reference | Message]`; a message only if the reference is an active alias.
    AliasMessage,
    /// As `AliasMessage`; it has priority if the alias has.
    UrgentMessage,
    /// Term: `{'EXIT', From, Reason}`; the link to From broke.
    LinkExit,
    /// Term: `{'EXIT', From, Reason}`, sent by `exit/2`.
    Exit,
    /// Term: pid or port that links.
    Link,
    /// Term: `{From, Id}`.
    Unlink,
    /// Term: `{From, Id}`.
    UnlinkAck,
    /// Term: `{Reference, From, Name}`; From starts monitoring.
    Monitor,
    /// Term: `{Reference, From}`.
    Demonitor,
    /// Term: `{'DOWN', Reference, Type, Object, Reason}`.
    Down,
    /// A task to run in the receiver: see [`crate::process::task`].
    Run,
    /// A message of another node, which its receiver decodes; see [`external`].
    External,
}

impl Kind {
    /// Whether its only effect is that it may go into the mailbox.
    #[inline]
    pub(crate) fn is_message(self) -> bool {
        matches!(
            self,
            Kind::Message | Kind::AliasMessage | Kind::UrgentMessage
        )
    }
}

/// The effect of a message on sequential tracing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Sequel {
    /// No process sent it: the receiver keeps its token.
    None,
    /// It was sent without a token: the receiver loses its token.
    Ends,
    /// The first words of the block are a cons cell: `[Token | Message]`.
    Token,
}

/// Head of a signal. The words of its terms follow.
#[repr(C)]
pub struct Signal {
    pub link: Link,
    pub(crate) kind: Kind,
    /// Whether the term of a message is `[Sender | Message]`, for tracing by sender.
    pub(crate) sent_by: bool,
    /// For messages; see [`Sequel`]. `Token` says what the first words of the block are, so only
    /// this module sets it.
    sequel: Sequel,
    /// [`FLAT`] if the words were made from a [`Flat`], which `off_heap` describes; above that bit,
    /// the upper bits of the number of words that follow.
    form: u8,
    /// The lower bits of the number of words.
    words: u32,
    pub term: Term,
    /// First object of the off-heap list. In a flat signal, which owns nothing: a mask of the words
    /// that point into the block (32 bits), and the first and the end of the message's words (8
    /// bits each). In a [`Kind::External`]: its box.
    off_heap: *mut Term,
    /// Regions that its terms point into.
    regions: RegionSet,
}

/// See [`Signal::form`].
const FLAT: u8 = 1;
/// Maximum number of words of a signal, as [`Signal::form`] and [`Signal::words`] can express:
/// terabytes.
const MOST_WORDS: usize = (1 << 39) - 1;

/// Splits a number of words into the fields of a head.
#[inline]
fn split(words: usize) -> (u8, u32) {
    (((words >> 32) << 1) as u8, words as u32)
}

#[inline]
fn joined(form: u8, words: u32) -> usize {
    (form as usize >> 1) << 32 | words as usize
}

/// Words of the head.
pub const HEAD_WORDS: usize = size_of::<Signal>() / 8;

/// Number of signals that [`bytes_in_transit`] looks at.
const LOOKED_AT: usize = 4096;

/// Bytes of the newest signals in transit to a process that this thread runs.
pub(crate) fn bytes_in_transit(q: &queue::InTransit) -> usize {
    let mut at = q.newest();
    let mut words = 0;
    for _ in 0..LOOKED_AT {
        // SAFETY: only this thread, which owns the process, takes signals away. The push of each
        // has made its words visible. A link is the first word of its signal.
        let Some(s) = (unsafe { (at as *const Signal).as_ref() }) else {
            break;
        };
        words += HEAD_WORDS + s.words();
        at = s.link.next;
    }
    words * 8
}
const _: () = assert!(size_of::<Signal>() == 40);

/// Fills the words of a fresh signal.
struct Builder {
    at: *mut Term,
    end: *mut Term,
    off_heap: OffHeap,
}

impl Alloc for Builder {
    #[inline]
    fn alloc(&mut self, words: usize) -> *mut Term {
        let p = self.at;
        // SAFETY: compared with the end of the block before it is used.
        let next = unsafe { p.add(words) };
        assert!(next <= self.end, "a signal is larger than was measured");
        self.at = next;
        p
    }
    #[inline]
    fn off_heap(&mut self) -> &mut OffHeap {
        &mut self.off_heap
    }
}

impl Signal {
    /// The effect of the message on the sequential tracing of its receiver.
    #[inline]
    pub fn sequel(&self) -> Sequel {
        self.sequel
    }
    /// Notes that it was sent without a token: the receiver loses its token.
    #[inline]
    pub fn end_sequel(&mut self) {
        debug_assert!(self.sequel != Sequel::Token, "it has a token");
        self.sequel = Sequel::Ends;
    }
    /// Returns a signal with room for `words` words, whose term is what `f` builds in it.
    #[inline]
    pub fn build(kind: Kind, words: usize, f: impl FnOnce(&mut dyn Alloc) -> Term) -> *mut Signal {
        Self::build_with(kind, words, |b| f(b))
    }
    fn build_with(kind: Kind, words: usize, f: impl FnOnce(&mut Builder) -> Term) -> *mut Signal {
        if words > MOST_WORDS {
            // No memory can hold it.
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<Signal>());
        }
        // SAFETY: the whole head is written.
        unsafe {
            let p = blocks::alloc(words);
            let at = (p as *mut Term).add(HEAD_WORDS);
            let (form, low) = split(words);
            let mut b = Builder {
                at,
                end: at.add(words),
                off_heap: OffHeap::default(),
            };
            let term = f(&mut b);
            p.write(Signal {
                link: Link {
                    next: std::ptr::null_mut(),
                },
                kind,
                sent_by: false,
                sequel: Sequel::None,
                form,
                words: low,
                term,
                off_heap: b.off_heap.first,
                regions: b.off_heap.regions,
            });
            p
        }
    }
    /// Returns a signal that holds a copy of `t`.
    #[inline]
    pub fn copy_of(kind: Kind, t: Term) -> *mut Signal {
        if t.is_immed() {
            return Self::build_with(kind, 0, |_| t);
        }
        Self::copy_sized(kind, t, copy::size_of(t), RegionSet::default())
    }
    /// Returns a signal that holds what was gathered. `part` is the range of words that belong to
    /// the message.
    #[inline]
    pub(crate) fn of_flat(
        kind: Kind,
        sequel: Sequel,
        f: &Flat,
        part: (usize, usize),
    ) -> *mut Signal {
        let info = f.inside() as usize | part.0 << 32 | part.1 << 40;
        // SAFETY: the whole head is written, and the words are those of the block.
        unsafe {
            let p = blocks::alloc(f.len());
            let term = f.put((p as *mut Term).add(HEAD_WORDS));
            p.write(Signal {
                link: Link {
                    next: std::ptr::null_mut(),
                },
                kind,
                sent_by: false,
                sequel,
                form: FLAT,
                words: f.len() as u32,
                term,
                off_heap: std::ptr::without_provenance_mut(info),
                regions: RegionSet::default(),
            });
            p
        }
    }
    /// Returns a message that is an immediate.
    #[inline]
    pub(crate) fn of_immed(sequel: Sequel, term: Term) -> *mut Signal {
        // SAFETY: the whole head is written.
        unsafe {
            let p = blocks::alloc(0);
            p.write(Signal {
                link: Link {
                    next: std::ptr::null_mut(),
                },
                kind: Kind::Message,
                sent_by: false,
                sequel,
                form: 0,
                words: 0,
                term,
                off_heap: std::ptr::null_mut(),
                regions: RegionSet::default(),
            });
            p
        }
    }
    /// Copies the message to `to`, if it is flat. Returns the term and the words that it takes.
    ///
    /// # Safety
    /// There is room for [`Signal::words`] words.
    #[inline]
    pub(crate) unsafe fn move_to(&self, to: *mut Term) -> Option<(Term, usize)> {
        if !self.is_flat() {
            return None;
        }
        let t = self.term;
        if is_region_ptr(t.ptr()) {
            return Some((t, 0));
        }
        let info = self.off_heap.addr();
        let (first, end) = (info >> 32 & 0xFF, info >> 40 & 0xFF);
        // SAFETY: the words of a flat signal follow its head, and `info` describes them; there is
        // room at `to`.
        let t = unsafe {
            let words = (self as *const Signal as *const Term).add(HEAD_WORDS);
            copy::move_flat(t, words, (first, end), info as u32, to)
        };
        Some((t, end - first))
    }
    /// Returns a signal that holds a copy of `t`, which takes `n` words. It takes over the counts
    /// of `held`, regions that the term refers to.
    #[inline]
    pub(crate) fn copy_sized(kind: Kind, t: Term, n: usize, held: RegionSet) -> *mut Signal {
        sharing::COPIED.add(n);
        Self::build_with(kind, n, |b| {
            b.off_heap.regions = held;
            copy::copy(t, b)
        })
    }
    /// As [`Signal::pair_of`], where `d` is known to take `n` words, and with regions as for
    /// [`Signal::copy_sized`].
    #[inline]
    pub(crate) fn pair_sized(
        kind: Kind,
        a: Term,
        d: Term,
        n: usize,
        held: RegionSet,
    ) -> *mut Signal {
        Self::build_with(kind, copy::size_of(a) + n + 2, |b| {
            b.off_heap.regions = held;
            let (a, d) = (copy::copy(a, b), copy::copy(d, b));
            b.cons(a, d)
        })
    }
    /// Returns a signal with a tuple of copies of `items`.
    pub fn tuple_of(kind: Kind, items: &[Term]) -> *mut Signal {
        let mut f = Flat::new();
        if !sharing::as_if_large() && f.set_tuple(items) {
            return Self::of_flat(kind, Sequel::None, &f, (0, f.len()));
        }
        let n: usize = items.iter().map(|&t| copy::size_of(t)).sum();
        Self::build_with(kind, n + 1 + items.len(), |b| {
            let v: SmallVec<[Term; 8]> = items.iter().map(|&t| copy::copy(t, b)).collect();
            b.tuple(&v)
        })
    }
    /// Returns a signal with a cons cell of copies.
    #[inline]
    pub fn pair_of(kind: Kind, a: Term, d: Term) -> *mut Signal {
        let n = copy::size_of(a) + copy::size_of(d) + 2;
        Self::build_with(kind, n, |b| {
            let (a, d) = (copy::copy(a, b), copy::copy(d, b));
            b.cons(a, d)
        })
    }
    /// Returns a message with its sender, behind the reference of an alias if there is one.
    pub fn sent(alias: Option<Term>, from: Term, msg: Term) -> *mut Signal {
        let kind = alias.map_or(Kind::Message, |_| Kind::AliasMessage);
        let n = copy::size_of(msg) + 2 + alias.map_or(0, |r| copy::size_of(r) + 2);
        let s = Self::build_with(kind, n, |b| {
            let msg = copy::copy(msg, b);
            let sent = b.cons(from, msg);
            match alias {
                None => sent,
                Some(r) => {
                    let r = copy::copy(r, b);
                    b.cons(r, sent)
                }
            }
        });
        // SAFETY: fresh, and not shared yet.
        unsafe { (*s).sent_by = true };
        s
    }
    /// Returns a message with a token. `from`: the message also has its sender.
    pub fn with_token(
        alias: Option<Term>,
        token: &Token,
        from: Option<Term>,
        msg: Term,
    ) -> *mut Signal {
        let kind = alias.map_or(Kind::Message, |_| Kind::AliasMessage);
        // Exactly as many as are built: the words become a fragment of the receiver's heap, all of
        // which is scanned.
        let n = 2
            + token.words()
            + copy::size_of(msg)
            + from.map_or(0, |_| 2)
            + alias.map_or(0, |r| copy::size_of(r) + 2);
        let s = Self::build_with(kind, n, |b| {
            // The cell comes first, so that it can be found again.
            let cell = b.alloc(2);
            let token = token.term(b);
            let mut msg = copy::copy(msg, b);
            if let Some(from) = from {
                msg = b.cons(from, msg);
            }
            // SAFETY: two fresh words.
            let pair = unsafe {
                cell.write(token);
                cell.add(1).write(msg);
                Term::cons_at(cell)
            };
            match alias {
                None => pair,
                Some(r) => {
                    let r = copy::copy(r, b);
                    b.cons(r, pair)
                }
            }
        });
        // SAFETY: fresh, and not shared yet.
        unsafe {
            (*s).sequel = Sequel::Token;
            (*s).sent_by = from.is_some();
        }
        s
    }
    /// Returns the token that came with a message.
    #[inline]
    pub fn token(&self) -> Option<Term> {
        if let Some(e) = self.as_external() {
            return (self.sequel == Sequel::Token).then(|| e.token());
        }
        // SAFETY: the words follow the head, and `Sequel::Token` says that the first two are a
        // cell.
        (self.sequel == Sequel::Token)
            .then(|| unsafe { *(self as *const Signal as *const Term).add(HEAD_WORDS) })
    }
    /// Words of its terms.
    #[inline]
    pub fn words(&self) -> usize {
        joined(self.form, self.words)
    }
    #[inline]
    fn is_flat(&self) -> bool {
        self.form & FLAT != 0
    }
    /// Whether its terms own nothing outside the block.
    #[inline]
    pub fn plain(&self) -> bool {
        self.is_flat() || self.off_heap.is_null() && self.regions.is_empty()
    }
    /// Whether its terms own nothing outside the block except counts of regions.
    #[inline]
    pub(crate) fn refers_only(&self) -> bool {
        self.is_flat() || self.off_heap.is_null()
    }
    fn take_off_heap(&mut self) -> OffHeap {
        if self.is_flat() {
            return OffHeap::default();
        }
        OffHeap {
            first: std::mem::replace(&mut self.off_heap, std::ptr::null_mut()),
            bytes: 0,
            regions: std::mem::take(&mut self.regions),
        }
    }
    /// Takes the regions that its terms point into.
    #[inline]
    pub(crate) fn take_regions(&mut self) -> RegionSet {
        std::mem::take(&mut self.regions)
    }
    /// Frees it with what its terms own.
    ///
    /// # Safety
    /// The caller owns `s`, which is not a [`Kind::Run`]. Its terms are not used afterwards.
    #[inline]
    pub unsafe fn free(s: *mut Signal) {
        // SAFETY: by the contract, the signal is the caller's, and its block has this many words.
        unsafe {
            if !(*s).plain() {
                Self::release(s);
            }
            blocks::free(s, (*s).words());
        }
    }
    /// Releases what a signal owns outside its block.
    ///
    /// # Safety
    /// As for [`Signal::free`], once.
    unsafe fn release(s: *mut Signal) {
        // SAFETY: the signal is the caller's. The kind says what `off_heap` is.
        unsafe {
            if (*s).kind == Kind::External {
                drop(Box::from_raw((*s).off_heap as *mut external::External));
            } else {
                gc::release_off_heap(&mut (*s).take_off_heap());
            }
        }
    }
    /// Turns it into a fragment that holds its term.
    ///
    /// # Safety
    /// The caller owns `s`, which is neither a [`Kind::Run`] nor a [`Kind::External`].
    #[inline]
    pub(crate) unsafe fn into_fragment(s: *mut Signal) -> (Term, Fragment) {
        // SAFETY: by the contract, the signal is the caller's. Its block has as many words, and the
        // terms in them own what its off-heap list has.
        unsafe {
            let term = (*s).term;
            let words = (*s).words();
            let mut o = (*s).take_off_heap();
            o.bytes = gc::off_heap_bytes(&o);
            let f = Fragment::from_block(s as *mut Term, HEAD_WORDS + words, HEAD_WORDS, o);
            (term, f)
        }
    }
    /// Turns it into an owned term.
    ///
    /// # Safety
    /// As for [`Signal::into_fragment`].
    #[inline]
    pub unsafe fn into_owned(s: *mut Signal) -> OwnedTerm {
        // SAFETY: the contract is the same.
        let (t, f) = unsafe { Self::into_fragment(s) };
        OwnedTerm::from_parts(t, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_beyond_32_bits_are_kept() {
        for n in [0, 1, u32::MAX as usize, 1 << 32, (5 << 32) | 7, MOST_WORDS] {
            let (form, low) = split(n);
            assert_eq!(joined(form, low), n);
            assert!(form & FLAT == 0 && joined(form | FLAT, low) == n);
        }
    }
}
