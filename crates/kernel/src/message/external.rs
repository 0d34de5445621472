//! Messages of other nodes that nobody has looked at.
//!
//! They wait in the mailbox as the bytes in which they came. The receiver decodes them, for as long as its turn lasts at a time,
//! so nobody else pays for that, and a message that is never looked at costs nothing. One that is no term is dropped
//! when it is looked at, and its connection ends.
//!
//! A mailbox counts those that it has, so that a receive which walks a queue without any looks at no more than the count.

use super::token::Token;
use super::{Kind, Sequel, Signal};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::{NIL, Term};

/// How far decoding has come.
pub enum Step {
    /// There is more to do.
    More,
    /// The message.
    Whole(Term),
    /// It is no term.
    Bad,
}

/// The bytes of a message, and how far they are decoded.
pub trait Undecoded: Send {
    /// Goes on for up to `budget` terms, which are made in `to`: the same each time. Behind [`Step::Whole`] and [`Step::Bad`] it
    /// is not called again. Tells how many bytes that were, too.
    fn step(&mut self, to: &mut Fragment, budget: usize) -> (Step, usize);
    /// The name of the node that it is from.
    fn node(&self) -> Term;
    /// It was no term, and has been dropped.
    fn refused(&self);
}

/// The data that a signal of [`Kind::External`] owns.
pub(crate) struct External {
    /// None: it is decoded.
    undecoded: Option<Box<dyn Undecoded>>,
    /// The term decoded from it.
    place: Fragment,
    /// The token that came with it, and as a term in `place`.
    token: Option<Token>,
    token_term: Term,
    /// By which alias it was sent, until that is looked at.
    alias: Option<OwnedTerm>,
    /// Whether it was sent with priority.
    urgent: bool,
    /// Words that the mailbox counts for it: those of its term. Bytes that are not decoded yet are told as binaries.
    words: usize,
}

impl Drop for External {
    fn drop(&mut self) {
        // It frees what the terms own.
        drop(OwnedTerm::from_parts(NIL, std::mem::take(&mut self.place)));
    }
}

/// Bytes that are decoded for a reduction.
const REDUCTION_BYTES: usize = 64;

impl Signal {
    /// A message that is decoded by its receiver.
    pub fn external(
        undecoded: Box<dyn Undecoded>,
        alias: Option<OwnedTerm>,
        token: Option<Token>,
    ) -> *mut Signal {
        let e = Box::new(External {
            undecoded: Some(undecoded),
            place: Fragment::new(),
            token,
            token_term: NIL,
            alias,
            urgent: false,
            words: 0,
        });
        let s = Signal::build(Kind::External, 0, |_| NIL);
        // SAFETY: a fresh signal. The kind says what the pointer leads to.
        unsafe {
            (*s).off_heap = Box::into_raw(e) as *mut Term;
            (*s).sequel = Sequel::Ends;
        }
        s
    }
    /// The data that a signal of [`Kind::External`] owns; None of any other.
    #[inline]
    pub(crate) fn as_external(&self) -> Option<&External> {
        // SAFETY: such a signal owns the box until it is freed.
        (self.kind == Kind::External).then(|| unsafe { &*(self.off_heap as *const External) })
    }
    #[inline]
    pub(super) fn as_external_mut(&mut self) -> Option<&mut External> {
        // SAFETY: as above.
        (self.kind == Kind::External).then(|| unsafe { &mut *(self.off_heap as *mut External) })
    }
    /// Whether nobody has looked at it yet.
    #[inline]
    pub fn is_undecoded(&self) -> bool {
        self.as_external().is_some_and(|e| e.undecoded.is_some())
    }
    /// Says that a message by an alias is sent with priority.
    pub fn set_urgent(&mut self) {
        if self.kind == Kind::AliasMessage {
            self.kind = Kind::UrgentMessage;
        } else if let Some(e) = self.as_external_mut() {
            e.urgent = true;
        }
    }
    pub(crate) fn is_urgent(&self) -> bool {
        self.as_external().is_some_and(|e| e.urgent)
    }
    /// The node that it is from, as long as it is not decoded.
    pub(crate) fn origin(&self) -> Option<Term> {
        let u = self.as_external()?.undecoded.as_ref();
        u.map(|u| u.node())
    }
    /// The alias that it was sent by; None from then on.
    pub(crate) fn take_alias(&mut self) -> Option<OwnedTerm> {
        self.as_external_mut()?.alias.take()
    }
    /// Decodes some of it. Afterwards, if all of it is there, its term is the message. The reductions that it took are told, too.
    pub(crate) fn decode(&mut self, budget: usize) -> (Step, usize) {
        let Some(e) = self.as_external_mut() else {
            return (Step::Whole(self.term), 0);
        };
        let Some(u) = &mut e.undecoded else {
            return (Step::Whole(self.term), 0);
        };
        let (step, bytes) = u.step(&mut e.place, budget);
        if let Step::Whole(t) = step {
            e.undecoded = None;
            let token = e.token.take();
            if let Some(token) = &token {
                e.token_term = token.term(&mut e.place);
            }
            self.term = t;
            if token.is_some() {
                self.sequel = Sequel::Token;
            }
        }
        (step, 1 + bytes / REDUCTION_BYTES)
    }
    /// The decoder of a message that is to be dropped: it is told that afterwards.
    pub(crate) fn take_undecoded(&mut self) -> Option<Box<dyn Undecoded>> {
        self.as_external_mut()?.undecoded.take()
    }
    /// Where the term lies of a message that was decoded. It belongs to the caller, and the signal can be freed.
    pub(crate) fn take_place(&mut self) -> Option<Fragment> {
        let e = self.as_external_mut()?;
        Some(std::mem::take(&mut e.place))
    }
}

impl External {
    /// The token that came with it.
    pub(super) fn token(&self) -> Term {
        self.token_term
    }
    /// Words that the mailbox counts for it.
    pub(super) fn words(&self) -> usize {
        self.words
    }
    /// Words that it counts from now on: those of the term.
    pub(super) fn recount(&mut self) -> usize {
        self.words = self.place.used_words();
        self.words
    }
}
