//! Messages of other nodes that are not decoded yet.
//!
//! They wait in the mailbox as the bytes in which they arrived. The receiver decodes them, a time
//! slice at a time, so no other process pays for that, and a message that is never examined costs
//! nothing. One that is not a valid term is dropped when it is examined, and its connection ends.
//!
//! A mailbox counts its undecoded messages, so that a receive which walks a queue without any only
//! looks at the count.

use super::token::Token;
use super::{Kind, Sequel, Signal};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::{NIL, Term};

/// Progress of decoding.
pub enum Step {
    /// There is more to do.
    More,
    /// The decoded message.
    Whole(Term),
    /// The bytes are not a valid term.
    Bad,
}

/// The bytes of a message, and how far they are decoded.
pub trait Undecoded: Send {
    /// Decodes up to `budget` more terms into `to`, the same fragment each time. Returns the number
    /// of bytes, too. Not called again after [`Step::Whole`] or [`Step::Bad`].
    fn step(&mut self, to: &mut Fragment, budget: usize) -> (Step, usize);
    /// Returns the name of the node that it is from.
    fn node(&self) -> Term;
    /// Reports that it was not a valid term and has been dropped.
    fn refused(&self);
}

/// The data that a signal of [`Kind::External`] owns.
pub(crate) struct External {
    /// `None` once it is decoded.
    undecoded: Option<Box<dyn Undecoded>>,
    /// The decoded term.
    place: Fragment,
    /// The token that came with it, and the token as a term in `place`.
    token: Option<Token>,
    token_term: Term,
    /// The alias that it was sent to, until that is checked.
    alias: Option<OwnedTerm>,
    /// Whether it was sent with priority.
    urgent: bool,
    /// Words that the mailbox counts for it: those of its term. Undecoded bytes are counted as
    /// binaries.
    words: usize,
}

impl Drop for External {
    fn drop(&mut self) {
        // Frees what the terms own.
        drop(OwnedTerm::from_parts(NIL, std::mem::take(&mut self.place)));
    }
}

/// Bytes decoded per reduction.
const REDUCTION_BYTES: usize = 64;

impl Signal {
    /// Returns a message that its receiver decodes.
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
        // SAFETY: a fresh signal. The kind says what the pointer points to.
        unsafe {
            (*s).off_heap = Box::into_raw(e) as *mut Term;
            (*s).sequel = Sequel::Ends;
        }
        s
    }
    /// Returns the data that a signal of [`Kind::External`] owns; `None` for any other kind.
    #[inline]
    pub(crate) fn as_external(&self) -> Option<&External> {
        // SAFETY: such a signal owns the box until it is freed.
        (self.kind == Kind::External).then(|| unsafe { &*(self.off_heap as *const External) })
    }
    #[inline]
    pub(super) fn as_external_mut(&mut self) -> Option<&mut External> {
        // SAFETY: such a signal owns the box until it is freed, and `self` is borrowed mutably.
        (self.kind == Kind::External).then(|| unsafe { &mut *(self.off_heap as *mut External) })
    }
    /// Whether it is not decoded yet.
    #[inline]
    pub fn is_undecoded(&self) -> bool {
        self.as_external().is_some_and(|e| e.undecoded.is_some())
    }
    /// Gives priority to a message to an alias.
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
    /// Returns the node that it is from, as long as it is not decoded.
    pub(crate) fn origin(&self) -> Option<Term> {
        let u = self.as_external()?.undecoded.as_ref();
        u.map(|u| u.node())
    }
    /// Takes the alias that it was sent to.
    pub(crate) fn take_alias(&mut self) -> Option<OwnedTerm> {
        self.as_external_mut()?.alias.take()
    }
    /// Decodes some of it, and sets its term once it is complete. Returns the reductions used, too.
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
    /// Takes the decoder of a message that is to be dropped. The caller reports the refusal
    /// afterwards.
    pub(crate) fn take_undecoded(&mut self) -> Option<Box<dyn Undecoded>> {
        self.as_external_mut()?.undecoded.take()
    }
    /// Takes the fragment of a decoded term. The signal can then be freed.
    pub(crate) fn take_place(&mut self) -> Option<Fragment> {
        let e = self.as_external_mut()?;
        Some(std::mem::take(&mut e.place))
    }
}

impl External {
    /// Returns the token that came with it.
    pub(super) fn token(&self) -> Term {
        self.token_term
    }
    /// Words that the mailbox counts for it.
    pub(super) fn words(&self) -> usize {
        self.words
    }
    /// Updates the count to the words of the decoded term, and returns it.
    pub(super) fn recount(&mut self) -> usize {
        self.words = self.place.used_words();
        self.words
    }
}
