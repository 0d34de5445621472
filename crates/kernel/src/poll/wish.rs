//! The events that a receiver of reports waits for, from one report to the next.
//!
//! # Protocol
//! A report removes the reported events from the wish, under the table's lock, and reaches the
//! receiver later, without the lock. The receiver decides by its own state what a report still
//! means, and says again what it waits for. The kernel reports a descriptor once per request, so it
//! is asked again if the wish has changed, or if a report leaves events to wait for.
//!
//! While schedulers poll ([`super::duty`]), a request for input lasts: the kernel reports input as
//! long as there is some, and isn't asked again by a receiver that reads what there is and waits
//! for more. Input that is not waited for ends such a request. If several threads learn of the same
//! input, all but one find that it is not waited for.

/// Whether a descriptor is readable, is writable, and has an error or urgent data.
pub type Events = (bool, bool, bool);

/// The wish and what the kernel has been asked for.
#[derive(Clone, Copy, Default)]
pub struct Asked {
    pub wish: Wish,
    /// Whether the kernel reports input until it is asked for something else.
    lasting: bool,
}

/// How to ask the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    Once,
    Lasting,
}

impl Asked {
    /// Replaces the wish. Returns how to ask the kernel for it, if it must be asked. `lasts`:
    /// requests for input may last.
    pub fn replace(&mut self, events: Events, lasts: bool) -> Option<How> {
        if !self.wish.replace(events) {
            return None;
        }
        let Wish { read, write, error } = self.wish;
        if self.lasting && lasts && !write && !error {
            return None;
        }
        self.lasting = lasts && read && !write && !error;
        Some(if self.lasting {
            How::Lasting
        } else {
            How::Once
        })
    }
    /// Removes from the wish what the kernel has reported. Returns the part of it that was waited
    /// for, and whether the kernel must be asked once for what is left.
    pub fn take(&mut self, events: Events) -> (Events, bool) {
        if !self.lasting {
            return self.wish.take(events);
        }
        let unwanted = !self.wish.read;
        self.lasting = !unwanted;
        (self.wish.take(events).0, unwanted)
    }
    /// Notes that the kernel has forgotten what it was asked for.
    pub fn forgotten(&mut self) {
        self.lasting = false;
    }
}

/// See the module docs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish {
    pub read: bool,
    pub write: bool,
    /// Whether errors and urgent data are waited for, on their own or with others.
    pub error: bool,
}

impl Wish {
    /// Waits for these events instead of the previous ones. Returns whether the kernel must be
    /// asked again.
    pub fn replace(&mut self, (read, write, error): Events) -> bool {
        let before = std::mem::replace(self, Wish { read, write, error });
        before != *self
    }
    /// Whether input or output is waited for.
    pub fn any(&self) -> bool {
        self.read || self.write
    }
    /// Removes what the kernel has reported. Returns the part of it that was waited for, and
    /// whether the kernel must be asked for the rest. A receiver that waits for errors only is not
    /// asked for again after an event that was no error; see `kernel.rs`.
    pub fn take(&mut self, (readable, writable, failed): Events) -> (Events, bool) {
        let reported = (
            readable && self.read,
            writable && self.write,
            failed && self.error,
        );
        self.read &= !reported.0;
        self.write &= !reported.1;
        self.error &= !reported.2;
        let again = self.any() || (self.error && (reported.0 || reported.1));
        (reported, again)
    }
}
