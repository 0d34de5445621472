//! The mailbox: messages that the process has fetched and not received, in order of arrival.
//! [`crate::signal::receive`] receives them.
//!
//! Messages stay in the blocks in which they arrived, so no collection scans them, however many
//! there are. The current message is a pointer to the link that leads to it, so removal takes
//! constant time.
//!
//! # Markers
//! A marker records the end of the queue at the time when a reference was made: no message before
//! it can hold the reference.
//!
//! # Messages with priority
//! They go behind those of their kind and before all others. A receive that has already examined
//! what is behind them goes back to them; so does one with a marker, since its message may have
//! come with priority.
//!
//! # Index
//! While receives pass many messages to find those with one value of an element, an index leads to
//! them: see [`super::index`].

use super::external::{External, Step, Undecoded};
use super::index::{Found, Index, Sought};
use super::queue::Link;
use super::{HEAD_WORDS, Signal, blocks, lengths};
use crate::keys::RefKey;
use purlin_isa::context::Mail;
use purlin_term::Term;
use std::mem::offset_of;

pub(crate) struct Marker {
    pub(crate) id: i64,
    pub(crate) reference: Option<RefKey>,
    /// The link that leads to the first message behind it.
    pub(crate) at: *mut *mut Link,
}

/// See the module docs. Boxed, since other fields point to `first`.
pub struct Mailbox {
    pub(crate) first: *mut Link,
    /// The link that gets the next message.
    pub(crate) last: *mut *mut Link,
    /// The link that leads to the current message.
    pub(crate) save: *mut *mut Link,
    /// The link that gets the next message with priority; null for the first link.
    urgent_end: *mut *mut Link,
    len: usize,
    /// The top of the heap after the current message was copied there; null if it was not.
    pub(crate) copied_end: *mut Term,
    /// Words of that copy.
    pub(crate) copied_words: u32,
    /// Number of collections of the heap at that time. After another one, `copied_end` may be equal
    /// by chance: the block may have come back to the address.
    pub(crate) copied_at: u32,
    /// Words of the blocks of the messages.
    words: usize,
    /// Number of undecoded messages of other nodes.
    undecoded: usize,
    /// Whether `save` was taken from a marker, and its message was not examined yet.
    pub(crate) at_marker: bool,
    /// Whether a monitor is to be notified when fewer messages are left.
    pub(crate) watched: bool,
    /// Number of messages that scans still return without applying the receive's first test: see
    /// [`crate::signal::receive::filters`].
    pub(crate) unfiltered: u8,
    /// The class in which [`lengths`] counts it.
    pub(crate) class: u8,
    /// An index of the messages, while receives pass many of them.
    index: Option<Box<Index>>,
    /// Number of messages that long searches have passed since there was an index or the mailbox
    /// was short. It is not 0 while there is an index.
    passed: usize,
    /// `None` until the process uses markers.
    pub(crate) markers: Option<Box<Markers>>,
}

/// Number of messages below which an index is dropped.
const INDEXED_FROM: usize = 16;
/// Number of searches through all messages that are worth an index.
const SEARCHES: usize = 2;
/// Number of messages from which on there is no index: one takes some 150 bytes a message.
const MOST_INDEXED: usize = 1 << 18;

/// The outcome of decoding a message of another node.
pub(crate) enum Decoded {
    /// There is more to do. Has the number of reductions used.
    More(usize),
    /// It is complete. Has the number of reductions used.
    Whole(usize),
    /// It was not a valid term, and is no longer in the queue. The caller must report the refusal.
    Dropped(Option<Box<dyn Undecoded>>),
}

#[derive(Default)]
pub(crate) struct Markers {
    pub(crate) list: Vec<Marker>,
    /// The last number that was given to a marker.
    pub(crate) last: i64,
}

/// Where compiled code finds the current message, of a process that has the address of its mailbox
/// at `mailbox` and the data of its pid at `pid`.
pub const fn places(mailbox: usize, pid: usize) -> Mail {
    const { assert!(offset_of!(Signal, link) == 0 && offset_of!(Link, next) == 0) };
    Mail {
        mailbox: mailbox as i32,
        pid: pid as i32,
        first: offset_of!(Mailbox, first) as i32,
        save: offset_of!(Mailbox, save) as i32,
        copied_end: offset_of!(Mailbox, copied_end) as i32,
        undecoded: offset_of!(Mailbox, undecoded) as i32,
        at_marker: offset_of!(Mailbox, at_marker) as i32,
        unfiltered: offset_of!(Mailbox, unfiltered) as i32,
        term: offset_of!(Signal, term) as i32,
    }
}

impl Mailbox {
    /// Returns an empty mailbox.
    pub(crate) fn boxed() -> *mut Mailbox {
        let b = blocks::boxed(Mailbox {
            first: std::ptr::null_mut(),
            last: std::ptr::null_mut(),
            save: std::ptr::null_mut(),
            urgent_end: std::ptr::null_mut(),
            len: 0,
            copied_end: std::ptr::null_mut(),
            copied_words: 0,
            copied_at: 0,
            words: 0,
            undecoded: 0,
            at_marker: false,
            unfiltered: 0,
            class: lengths::UNCOUNTED,
            watched: false,
            index: None,
            passed: 0,
            markers: None,
        });
        // SAFETY: just made; the box doesn't move.
        unsafe {
            (*b).last = &mut (*b).first;
            (*b).save = &mut (*b).first;
        }
        b
    }
    /// Whether it is equivalent to having no mailbox.
    #[inline]
    pub(crate) fn is_unused(&self) -> bool {
        self.len == 0 && self.markers.as_ref().is_none_or(|m| m.list.is_empty())
    }
    #[inline]
    pub(crate) fn markers(&mut self) -> &mut [Marker] {
        self.markers.as_deref_mut().map_or(&mut [], |m| &mut m.list)
    }
    /// Number of messages.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there are no messages.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Appends a message.
    ///
    /// # Safety
    /// `s` is a message owned by the caller.
    #[inline]
    pub(crate) unsafe fn append(&mut self, s: *mut Signal) {
        // SAFETY: the message is the caller's, and `last` is the address of `first` or of the last
        // message's link.
        unsafe {
            (*s).link.next = std::ptr::null_mut();
            *self.last = &mut (*s).link;
            if self.index.is_some() {
                self.index_appended(s);
            }
            self.last = &mut (*s).link.next;
            self.words += HEAD_WORDS + (*s).words();
        }
        self.len += 1;
    }
    /// Takes message `s` into the index, which is dropped if it can't be or is of no use.
    ///
    /// # Safety
    /// The message is the last one, and `last` still leads to it.
    #[cold]
    unsafe fn index_appended(&mut self, s: *mut Signal) {
        // SAFETY: by the contract, a message in the queue.
        let plain = unsafe { (*s).as_external().is_none() };
        let keeps = plain && self.len < MOST_INDEXED;
        let Some(index) = self.index.as_mut() else {
            return;
        };
        if !keeps || !index.counts_unused() {
            self.index = None;
        } else if index.end() == self.last {
            // There are none before it that were not taken in.
            // SAFETY: `last` leads to the message; one of this node is a term.
            unsafe { index.append() }
        }
    }
    /// Forgets message `s`, which `at` led to, in the index; and all that was passed, if the
    /// mailbox is short.
    ///
    /// # Safety
    /// `s` is a message that was just removed from this queue. `at` is the link that led to it.
    #[cold]
    unsafe fn passed_removed(&mut self, s: *mut Signal, at: *mut *mut Link) {
        if self.len <= INDEXED_FROM {
            self.index = None;
            self.passed = 0;
        }
        if let Some(index) = &mut self.index {
            // SAFETY: by the contract, the message is the caller's. `at` is a link of the queue. It
            // now leads to the next message, or is null.
            let (behind, next) = unsafe { (&raw mut (*s).link.next, *at as *mut Signal) };
            index.remove(s, behind, at, next);
        }
    }
    /// Records that a search has passed this many messages. Returns whether searches have passed so
    /// many that an index is worth its making and its keeping: a program that has skipped the
    /// messages once may now take them in their order.
    pub(crate) fn has_passed(&mut self, n: usize) -> bool {
        self.passed += n;
        self.passed >= SEARCHES * self.len
    }
    /// Makes an index for receives that look for what is like `sought`, of no messages yet; not if
    /// there are too many.
    pub(crate) fn make_index(&mut self, sought: &Sought) {
        self.index = None;
        if self.len < MOST_INDEXED {
            self.index = Some(Box::new(Index::new(sought, &mut self.first)));
            self.passed = 1;
        }
    }
    /// Takes up to `most` further messages into the index. Returns the number of those that it took
    /// in. All messages are decoded.
    pub(crate) fn extend_index(&mut self, most: usize) -> usize {
        let Some(index) = &mut self.index else {
            return 0;
        };
        let mut n = 0;
        while n < most && index.end() != self.last {
            // SAFETY: `end` is a link of the queue, not the last one, so it leads to a message,
            // which is decoded.
            unsafe { index.append() }
            n += 1;
        }
        n
    }
    /// Whether there is an index, and it has all messages.
    #[cfg(test)]
    pub(crate) fn is_indexed(&self) -> bool {
        self.index.as_ref().is_some_and(|i| i.end() == self.last)
    }
    /// Whether there is an index for that.
    pub(crate) fn has_index(&self, sought: &Sought) -> bool {
        self.index.as_ref().is_some_and(|i| i.is_of(sought))
    }
    /// Moves on from the current message to the first one that is sought, or else to the first one
    /// that the index does not have, or behind the last one. If the index doesn't know, nothing
    /// happens, and the result is false.
    pub(crate) fn find(&mut self, sought: &Sought) -> bool {
        // SAFETY: `save` is the address of `first` or of the link of a message in the queue.
        let from = unsafe { *self.save } as *mut Signal;
        let index = self.index.as_mut().filter(|i| i.is_of(sought));
        let found = index.map_or(Found::Unknown, |i| i.find(sought, from));
        match found {
            Found::At(link) | Found::Before(link) => self.save = link,
            Found::Unknown => return false,
        }
        true
    }
    /// Inserts a message behind those with priority.
    ///
    /// # Safety
    /// `s` is a message owned by the caller, and no message is being examined.
    pub(crate) unsafe fn put_first(&mut self, s: *mut Signal) {
        self.index = None;
        let first: *mut *mut Link = &mut self.first;
        let at = match self.urgent_end {
            end if end.is_null() => first,
            end => end,
        };
        // Whether a reader at `place` will still come to the new message.
        let before = |place: *mut *mut Link| {
            let mut p = first;
            while p != at {
                if p == place {
                    return true;
                }
                // SAFETY: from `first` links lead to `at`, so `p` leads to a message here.
                p = unsafe { &mut (**p).next };
            }
            false
        };
        if !before(self.save) {
            self.save = at;
            self.at_marker = false;
        }
        for m in self
            .markers
            .as_deref_mut()
            .into_iter()
            .flat_map(|m| &mut m.list)
        {
            if !before(m.at) {
                m.at = at;
            }
        }
        // SAFETY: the message is the caller's, and `at` is a link of the queue.
        let next: *mut *mut Link = unsafe {
            (*s).link.next = *at;
            *at = &mut (*s).link;
            self.words += HEAD_WORDS + (*s).words();
            &mut (*s).link.next
        };
        if self.last == at {
            self.last = next;
        }
        self.urgent_end = next;
        self.len += 1;
    }
    /// Counts the words of a message of another node that was put in.
    pub(crate) fn count_external(&mut self, s: &Signal) {
        self.words += s.as_external().map_or(0, External::words);
        self.undecoded += usize::from(s.is_undecoded());
    }
    /// Whether all messages are decoded.
    #[inline]
    pub(crate) fn is_decoded(&self) -> bool {
        self.undecoded == 0
    }
    /// Decodes up to `budget` terms of the message that the link `at` leads to.
    ///
    /// # Safety
    /// `at` is a link of the queue, and leads to a message.
    pub(crate) unsafe fn decode(&mut self, at: *mut *mut Link, budget: usize) -> Decoded {
        self.index = None;
        // SAFETY: by the contract, the link leads to a message of this mailbox.
        let s = unsafe { &mut *(*at as *mut Signal) };
        let (step, cost) = s.decode(budget);
        match step {
            Step::More => Decoded::More(cost),
            Step::Whole(_) => {
                self.undecoded -= 1;
                if let Some(e) = s.as_external_mut() {
                    self.words -= e.words();
                    self.words += e.recount();
                }
                Decoded::Whole(cost)
            }
            // SAFETY: by the contract, the link leads to a message of this mailbox. The message is
            // ours once it is removed.
            Step::Bad => unsafe {
                let s = self.remove(at);
                let u = (*s).take_undecoded();
                Signal::free(s);
                Decoded::Dropped(u)
            },
        }
    }
    /// Whether there are messages that the current receive has not examined.
    #[inline]
    pub(crate) fn has_current(&self) -> bool {
        // SAFETY: `save` is the address of `first` or of the link of a message in the queue.
        unsafe { !(*self.save).is_null() }
    }
    /// Iterates over all messages, oldest first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Signal> + '_ {
        let mut p = self.first;
        std::iter::from_fn(move || {
            // SAFETY: these are links of messages in the queue; a link is the first word of its
            // signal.
            let s = unsafe { (p as *const Signal).as_ref() }?;
            p = s.link.next;
            Some(s)
        })
    }
    /// Bytes of the blocks of its messages.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.words * 8
    }
    /// Frees the messages and the mailbox.
    ///
    /// # Safety
    /// `m` came from [`Mailbox::boxed`] and is not used afterwards.
    #[inline]
    pub unsafe fn destroy(m: *mut Mailbox) {
        // SAFETY: by the contract, nobody uses the mailbox or its messages any more.
        unsafe {
            let mut p = (*m).first;
            while !p.is_null() {
                let next = (*p).next;
                Signal::free(p as *mut Signal);
                p = next;
            }
            lengths::forget(&mut (*m).class);
            blocks::unbox(m);
        }
    }
    /// Removes the current message. The next receive starts at the first one.
    ///
    /// # Safety
    /// There is a current message. The caller owns it afterwards.
    #[inline]
    pub(crate) unsafe fn unlink_current(&mut self) -> *mut Signal {
        // SAFETY: by the contract, `save` leads to a message.
        let s = unsafe { self.remove(self.save) };
        self.save = &mut self.first;
        s
    }
    /// Removes the message that the link `at` leads to.
    ///
    /// # Safety
    /// `at` is a link of the queue, and leads to a message. The caller owns that afterwards.
    #[inline]
    unsafe fn remove(&mut self, at: *mut *mut Link) -> *mut Signal {
        // SAFETY: by the contract, `at` is a link of the queue and leads to a message.
        let (s, next): (*mut Link, *mut *mut Link) = unsafe {
            let s = *at;
            *at = (*s).next;
            (s, &mut (*s).next)
        };
        if self.last == next {
            self.last = at;
        }
        if self.save == next {
            self.save = at;
        }
        if self.urgent_end == next {
            self.urgent_end = at;
        }
        for m in self.markers() {
            if m.at == next {
                m.at = at;
            }
        }
        let s = s as *mut Signal;
        if self.passed != 0 {
            // SAFETY: `s` was removed above, where `at` led to it.
            unsafe { self.passed_removed(s, at) };
        }
        // SAFETY: a link is the first word of its signal, which is out of the queue now.
        let message = unsafe { &*s };
        self.len -= 1;
        self.words -= HEAD_WORDS + message.words();
        if let Some(e) = message.as_external() {
            self.words -= e.words();
            self.undecoded -= usize::from(message.is_undecoded());
        }
        s
    }
}
