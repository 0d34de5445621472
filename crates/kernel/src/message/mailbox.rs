//! The mailbox: messages that the process has fetched and not received, in order of arrival. How they are received is in
//! [`crate::signal::receive`].
//!
//! Messages stay in the blocks they came in, so no collection walks them, however many there are. What the current
//! message is, is a pointer to the link that leads to it, so that removing is O(1).
//!
//! # Markers
//! A marker remembers the end of the queue at the time a reference was made: no message before it can hold the
//! reference.
//!
//! # Messages with priority
//! They go behind those of their kind and before all others. A receive that has looked at what is behind them looks at them,
//! and at that, again; and so does one with a marker, since what it waits for may have come with priority.

use super::external::{External, Step, Undecoded};
use super::queue::Link;
use super::{HEAD_WORDS, Signal, blocks};
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

/// See the module head. Boxed, since `first` is pointed to.
pub struct Mailbox {
    pub(crate) first: *mut Link,
    /// The link that the next message is hung on.
    pub(crate) last: *mut *mut Link,
    /// The link that leads to the current message.
    pub(crate) save: *mut *mut Link,
    /// The link that the next message with priority is hung on; null: the first.
    urgent_end: *mut *mut Link,
    len: usize,
    /// The current message was copied to the heap, whose top was this afterwards; else null.
    pub(crate) copied_end: *mut Term,
    /// Words of that copy.
    pub(crate) copied_words: u32,
    /// Collections of the heap until then. After another one `copied_end` is an address and no more: the block may have
    /// come back to it.
    pub(crate) copied_at: u32,
    /// Words of the blocks of the messages.
    words: usize,
    /// Messages of other nodes that nobody has looked at.
    undecoded: usize,
    /// `save` was taken from a marker, and what it leads to was not looked at yet.
    pub(crate) at_marker: bool,
    /// Somebody is to hear when fewer messages are left.
    pub(crate) watched: bool,
    /// Null until the process uses markers.
    pub(crate) markers: Option<Box<Markers>>,
}

/// The outcome of decoding a message of another node.
pub(crate) enum Decoded {
    /// There is more to do; so many reductions were used.
    More(usize),
    /// It is a term; as above.
    Whole(usize),
    /// It was no term, and isn't in the queue any more. The process that has decoded it is to hear of that.
    Dropped(Option<Box<dyn Undecoded>>),
}

#[derive(Default)]
pub(crate) struct Markers {
    pub(crate) list: Vec<Marker>,
    /// The last number that was given.
    pub(crate) last: i64,
}

/// Where compiled code finds the current message, of a process that has the address of its mailbox
/// at `mailbox`.
pub const fn places(mailbox: usize) -> Mail {
    const { assert!(offset_of!(Signal, link) == 0 && offset_of!(Link, next) == 0) };
    Mail {
        mailbox: mailbox as i32,
        first: offset_of!(Mailbox, first) as i32,
        save: offset_of!(Mailbox, save) as i32,
        copied_end: offset_of!(Mailbox, copied_end) as i32,
        undecoded: offset_of!(Mailbox, undecoded) as i32,
        at_marker: offset_of!(Mailbox, at_marker) as i32,
        term: offset_of!(Signal, term) as i32,
    }
}

impl Mailbox {
    /// An empty mailbox.
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
            watched: false,
            markers: None,
        });
        // SAFETY: just made; the box doesn't move.
        unsafe {
            (*b).last = &mut (*b).first;
            (*b).save = &mut (*b).first;
        }
        b
    }
    /// Whether it says no more than no mailbox would.
    #[inline]
    pub(crate) fn is_unused(&self) -> bool {
        self.len == 0 && self.markers.as_ref().is_none_or(|m| m.list.is_empty())
    }
    #[inline]
    pub(crate) fn markers(&mut self) -> &mut [Marker] {
        self.markers.as_deref_mut().map_or(&mut [], |m| &mut m.list)
    }
    /// Messages in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Puts a message at the end.
    ///
    /// # Safety
    /// `s` is a message owned by the caller.
    #[inline]
    pub(crate) unsafe fn append(&mut self, s: *mut Signal) {
        (*s).link.next = std::ptr::null_mut();
        *self.last = &mut (*s).link;
        self.last = &mut (*s).link.next;
        self.len += 1;
        self.words += HEAD_WORDS + (*s).words();
    }
    /// Puts a message behind those that have priority.
    ///
    /// # Safety
    /// `s` is a message owned by the caller, and no message is being looked at.
    pub(crate) unsafe fn put_first(&mut self, s: *mut Signal) {
        let first: *mut *mut Link = &mut self.first;
        let at = match self.urgent_end {
            end if end.is_null() => first,
            end => end,
        };
        // Whether a reader that stands at `place` will still come to the new message.
        let before = |place: *mut *mut Link| {
            let mut p = first;
            while p != at {
                if p == place {
                    return true;
                }
                p = &mut (**p).next;
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
        let next: *mut *mut Link = &mut (*s).link.next;
        (*s).link.next = *at;
        *at = &mut (*s).link;
        if self.last == at {
            self.last = next;
        }
        self.urgent_end = next;
        self.len += 1;
        self.words += HEAD_WORDS + (*s).words();
    }
    /// A message of another node has been put in.
    pub(crate) fn count_external(&mut self, s: &Signal) {
        self.words += s.as_external().map_or(0, External::words);
        self.undecoded += usize::from(s.is_undecoded());
    }
    /// Whether all messages are terms.
    #[inline]
    pub(crate) fn is_decoded(&self) -> bool {
        self.undecoded == 0
    }
    /// Decodes up to `budget` terms of the message that the link `at` leads to.
    ///
    /// # Safety
    /// It is a link of the queue, and there is a message.
    pub(crate) unsafe fn decode(&mut self, at: *mut *mut Link, budget: usize) -> Decoded {
        let s = *at as *mut Signal;
        let (step, cost) = (*s).decode(budget);
        match step {
            Step::More => Decoded::More(cost),
            Step::Whole(_) => {
                self.undecoded -= 1;
                if let Some(e) = (*s).as_external_mut() {
                    self.words -= e.words();
                    self.words += e.recount();
                }
                Decoded::Whole(cost)
            }
            Step::Bad => {
                let s = self.remove(at);
                let u = (*s).take_undecoded();
                Signal::free(s);
                Decoded::Dropped(u)
            }
        }
    }
    /// Whether messages are there that the current receive has not looked at.
    #[inline]
    pub(crate) fn has_current(&self) -> bool {
        // SAFETY: `save` is the address of `first` or of the link of a message in the queue.
        unsafe { !(*self.save).is_null() }
    }
    /// All messages, oldest first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Signal> + '_ {
        let mut p = self.first;
        std::iter::from_fn(move || {
            // SAFETY: links of messages in the queue; a link is the first word of its signal.
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
        let mut p = (*m).first;
        while !p.is_null() {
            let next = (*p).next;
            Signal::free(p as *mut Signal);
            p = next;
        }
        blocks::unbox(m);
    }
    /// Takes the current message out of the queue; the next receive starts at the first.
    ///
    /// # Safety
    /// There is a current message. It is the caller's afterwards.
    #[inline]
    pub(crate) unsafe fn unlink_current(&mut self) -> *mut Signal {
        let s = self.remove(self.save);
        self.save = &mut self.first;
        s
    }
    /// Takes the message out of the queue that the link `at` leads to.
    ///
    /// # Safety
    /// It is a link of the queue, and there is a message. That is the caller's afterwards.
    #[inline]
    unsafe fn remove(&mut self, at: *mut *mut Link) -> *mut Signal {
        let s = *at;
        let next: *mut *mut Link = &mut (*s).next;
        *at = (*s).next;
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
        self.len -= 1;
        self.words -= HEAD_WORDS + (*s).words();
        if let Some(e) = (*s).as_external() {
            self.words -= e.words();
            self.undecoded -= usize::from((*s).is_undecoded());
        }
        s
    }
}
