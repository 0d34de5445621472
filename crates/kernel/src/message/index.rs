//! An index of a long mailbox by one element of its messages, for receives that wait for one value
//! of it: the reference of a reply, a tag, a pid.
//!
//! A receive that tests for a tuple of some size with that element equal to a value takes the first
//! message behind its place that has it. All of these have one key here, in their order, so the
//! receive finds the message or learns that there is none without a look at the others. The key is
//! a hash: the code tests the message that is found.
//!
//! The mailbox says what is appended and removed. Everything else that changes its order or its
//! messages drops the index.
//!
//! A long mailbox is taken in from its first message on, a part at each search: what lies behind
//! the part is not known yet.

use super::Signal;
use super::queue::Link;
use purlin_term::Term;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The messages that a receive waits for: tuples with this header, of which this word has this key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sought {
    pub header: u64,
    /// Words from the header to the element.
    pub at: usize,
    pub key: u64,
}

/// Returns the key of an immediate.
pub fn key_of_word(t: Term) -> u64 {
    mixed(t.raw())
}

/// Returns the key of a reference with these words.
pub fn key_of_reference(words: [u64; 3]) -> u64 {
    words.iter().fold(0, |k, w| mixed(k ^ w))
}

/// Spreads a number over all bits.
fn mixed(w: u64) -> u64 {
    let w = (w ^ w >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    w ^ w >> 29
}

/// Keys are spread already, and addresses by this.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|&b| self.0 = mixed(self.0 ^ u64::from(b)));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = mixed(n);
    }
    fn write_usize(&mut self, n: usize) {
        self.0 = mixed(n as u64);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// A message of the mailbox.
struct Place {
    /// The link that leads to it.
    link: *mut *mut Link,
    /// Its turn: messages that came later have higher numbers.
    turn: u64,
    key: Key,
    /// Its neighbours among those with the same key, or null.
    before: *mut Signal,
    behind: *mut Signal,
}

/// The key of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    /// Its element is one with a key.
    Of(u64),
    /// No value with a key equals its element, or it is another tuple.
    None,
    /// Its element may equal one that has another key.
    Odd,
}

/// See the head of this module.
pub(crate) struct Index {
    header: u64,
    at: usize,
    /// The first and the last message of each key.
    ends: Map<u64, (*mut Signal, *mut Signal)>,
    places: Map<usize, Place>,
    /// The turn of the next message.
    next: u64,
    /// Number of messages with an odd element.
    odd: usize,
    /// The message that was found last, while it is here.
    found: *mut Signal,
    /// Number of messages that came since something was looked for.
    unused: usize,
    /// The link behind the last message that was taken in.
    end: *mut *mut Link,
}

/// The answer of an index.
pub(crate) enum Found {
    /// The link that leads to the message.
    At(*mut *mut Link),
    /// There is none before this link, behind the last message that was taken in.
    Before(*mut *mut Link),
    /// It does not know.
    Unknown,
}

/// Number of messages that come without a use of the index before it is dropped.
const UNUSED: usize = 1 << 12;

impl Index {
    /// Returns an index of no messages for what is like `sought`, which begins at the link `first`.
    pub fn new(sought: &Sought, first: *mut *mut Link) -> Index {
        Index {
            header: sought.header,
            at: sought.at,
            ends: Map::default(),
            places: Map::default(),
            next: 0,
            odd: 0,
            found: std::ptr::null_mut(),
            unused: 0,
            end: first,
        }
    }
    /// The link that leads to the first message that it does not have.
    pub fn end(&self) -> *mut *mut Link {
        self.end
    }
    /// Counts a message that came. Returns whether the index is still of use.
    pub fn counts_unused(&mut self) -> bool {
        self.unused += 1;
        self.unused <= UNUSED
    }
    /// Whether it has the keys by which that is looked for.
    pub fn is_of(&self, sought: &Sought) -> bool {
        (self.header, self.at) == (sought.header, sought.at)
    }
    /// Returns the key of a message.
    ///
    /// # Safety
    /// The term can be read.
    unsafe fn key(&self, t: Term) -> Key {
        // SAFETY: by the contract. The tuple has the element if it has this header.
        let e = unsafe {
            if !t.is_boxed() || (*t.ptr()).raw() != self.header {
                return Key::None;
            }
            *t.ptr().add(self.at)
        };
        if e.is_immed() {
            return Key::Of(key_of_word(e));
        }
        match e.plain_ref() {
            Some(words) => Key::Of(key_of_reference(words)),
            None if e.is_ref() => Key::Odd,
            None => Key::None,
        }
    }
    /// Takes in the message to which [`Index::end`] leads.
    ///
    /// # Safety
    /// There is one, and it is decoded.
    pub unsafe fn append(&mut self) {
        let link = self.end;
        // SAFETY: by the contract, the link leads to a message that can be read.
        let (s, key) = unsafe {
            let s = *link as *mut Signal;
            self.end = &mut (*s).link.next;
            (s, self.key((*s).term))
        };
        let mut before = std::ptr::null_mut();
        match key {
            Key::Of(k) => {
                let ends = self.ends.entry(k).or_insert((s, s));
                if ends.1 != s {
                    before = ends.1;
                    ends.1 = s;
                }
            }
            Key::Odd => self.odd += 1,
            Key::None => {}
        }
        if let Some(p) = self.places.get_mut(&(before as usize)) {
            p.behind = s;
        }
        let place = Place {
            link,
            turn: self.next,
            key,
            before,
            behind: std::ptr::null_mut(),
        };
        self.places.insert(s as usize, place);
        self.next += 1;
    }
    /// Forgets message `s` with the link `behind`. `link` led to it, and leads to `next` now, or to
    /// none.
    pub fn remove(
        &mut self,
        s: *mut Signal,
        behind: *mut *mut Link,
        link: *mut *mut Link,
        next: *mut Signal,
    ) {
        if self.end == behind {
            self.end = link;
        }
        if let Some(p) = self.places.get_mut(&(next as usize)) {
            p.link = link;
        }
        if self.found == s {
            self.found = std::ptr::null_mut();
        }
        let Some(gone) = self.places.remove(&(s as usize)) else {
            return;
        };
        if let Some(p) = self.places.get_mut(&(gone.before as usize)) {
            p.behind = gone.behind;
        }
        if let Some(p) = self.places.get_mut(&(gone.behind as usize)) {
            p.before = gone.before;
        }
        match gone.key {
            Key::Of(k) if gone.before.is_null() && gone.behind.is_null() => {
                self.ends.remove(&k);
            }
            Key::Of(k) => {
                if let Some(ends) = self.ends.get_mut(&k) {
                    if ends.0 == s {
                        ends.0 = gone.behind;
                    }
                    if ends.1 == s {
                        ends.1 = gone.before;
                    }
                }
            }
            Key::Odd => self.odd -= 1,
            Key::None => {}
        }
    }
    /// Looks for the first message with the key from the message `from` on.
    pub fn find(&mut self, sought: &Sought, from: *mut Signal) -> Found {
        self.unused = 0;
        if self.odd > 0 {
            return Found::Unknown;
        }
        let Some(turn) = self.places.get(&(from as usize)).map(|p| p.turn) else {
            return Found::Unknown;
        };
        // What was found last was refused if the receive is beyond it.
        let last = self.places.get(&(self.found as usize));
        let last = last.filter(|p| p.key == Key::Of(sought.key) && p.turn < turn);
        let mut s = match last {
            Some(p) => p.behind,
            None => self
                .ends
                .get(&sought.key)
                .map_or(std::ptr::null_mut(), |e| e.0),
        };
        while let Some(p) = self.places.get(&(s as usize)) {
            if p.turn >= turn {
                self.found = s;
                return Found::At(p.link);
            }
            s = p.behind;
        }
        Found::Before(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Kind;
    use crate::message::mailbox::Mailbox;
    use purlin_term::word::{Subtag, header};

    /// Messages come, are passed and are taken out at random; each search finds what a walk finds.
    #[test]
    fn searches_find_what_walks_find() {
        let mut x = 7u64;
        let mut below = |n: u64| {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        let sought = |v: u64| Sought {
            header: header(Subtag::Tuple, 2),
            at: 1,
            key: key_of_word(Term::small(v as i64)),
        };
        let m = Mailbox::boxed();
        let mut early = 0;
        // SAFETY: a mailbox that only this test uses, with messages of its own.
        unsafe {
            for round in 0..20_000 {
                if round % 1000 == 100 {
                    (*m).make_index(&sought(0));
                }
                if below(8) == 0 {
                    (*m).extend_index(below(9) as usize);
                }
                let n = if (*m).len() < 60 { 3 } else { 0 };
                for _ in 0..below(n + 1) {
                    let words = [Term::small(below(8) as i64), Term::small(1), Term::small(2)];
                    (*m).append(Signal::tuple_of(
                        Kind::Message,
                        &words[..1 + below(3) as usize],
                    ));
                }
                (*m).save = &mut (*m).first;
                for _ in 0..below(1 + (*m).len() as u64 / 2) {
                    (*m).save = &mut (**(*m).save).next;
                }
                let wanted = below(9);
                for _ in 0..3 {
                    if !(*m).has_current() {
                        break;
                    }
                    let mut walked = (*m).save;
                    while !(*walked).is_null() {
                        let t = (*(*walked as *mut Signal)).term;
                        if t.as_tuple()
                            .is_some_and(|e| e.len() == 2 && e[0] == Term::small(wanted as i64))
                        {
                            break;
                        }
                        walked = &mut (**walked).next;
                    }
                    let whole = (*m).is_indexed();
                    if (*m).find(&sought(wanted)) {
                        // It ends at what was not taken in yet.
                        let mut at = (*m).save;
                        while at != walked {
                            assert!(!whole && !(*at).is_null());
                            at = &mut (**at).next;
                        }
                        early += u32::from((*m).save != walked);
                        if !(*m).has_current() {
                            break;
                        }
                    }
                    if below(2) == 0 {
                        (*m).save = walked;
                        if (*m).has_current() {
                            (*m).save = &mut (**(*m).save).next;
                        }
                    }
                }
                if (*m).has_current() && below(2) == 0 {
                    Signal::free((*m).unlink_current());
                }
            }
            Mailbox::destroy(m);
        }
        assert!(
            early > 100,
            "few searches end before what was not taken in: {early}"
        );
    }
}
