//! UTF-8 of subjects: those that have been checked already, and offsets within a character.

use super::matching::LONG;
use crate::binary::nomatch;
use crate::cx::{BifResult, Fail};
use crate::iolist::IoSlice;
use purlin_term::Term;
use purlin_term::release::{self, NO_MATCH_WITHIN_CHARACTERS};
use purlin_term::sync::Mutex;
use std::cell::RefCell;

/// Returns where the character begins and ends that contains `offset`; `None` at a character's
/// first byte, or if `bytes` aren't UTF-8.
pub(super) fn within_character(bytes: &[u8], offset: usize) -> Option<(usize, usize)> {
    if bytes.get(offset)? & 0xC0 != 0x80 || std::str::from_utf8(bytes).is_err() {
        return None;
    }
    let goes_on = |&&b: &&u8| b & 0xC0 == 0x80;
    let at = offset - bytes[..=offset].iter().rev().take_while(goes_on).count() + 1;
    Some((
        at - 1,
        offset + bytes[offset..].iter().take_while(goes_on).count(),
    ))
}

/// Returns the result of a match that begins within a character, or after text that is no UTF-8.
pub(super) fn fails_within(bytes: &[u8]) -> BifResult {
    // Stock looks at this many characters in a time slice, and has forgotten that one was cut when
    // it continues.
    const LONG: usize = 39_900;
    let long = || std::str::from_utf8(bytes).is_ok_and(|s| s.chars().count() >= LONG);
    match release::has(NO_MATCH_WITHIN_CHARACTERS) && bytes.len() >= LONG && long() {
        true => Ok(nomatch()),
        false => Err(Fail::Badarg),
    }
}

/// Minimum size of subjects that are remembered as valid UTF-8, in bytes.
const REMEMBER_FROM: usize = 4096;

/// Number of subjects that all threads remember together as valid UTF-8.
const REMEMBERED: usize = 4;

/// Subjects above [`LONG`] that are valid UTF-8, the last one first. They stay while they are
/// here, so an address means the same subject.
static VALID: Mutex<Vec<IoSlice>> = Mutex::new(Vec::new());

fn is_slice(s: &IoSlice, bytes: &[u8]) -> bool {
    let b = s.as_bytes();
    b.as_ptr() == bytes.as_ptr() && b.len() == bytes.len()
}

/// Whether the subject with this data, which is longer than [`LONG`], was found to be valid UTF-8.
pub(super) fn is_remembered(bytes: &[u8]) -> bool {
    VALID.lock().iter().any(|s| is_slice(s, bytes))
}

/// Whether `bytes`, the data of `subject`, are known to be UTF-8 with a character starting at
/// `offset`, so that many matches in one long subject (`global`) check it once. The subject is kept
/// alive until another replaces it, so remembering it is sound.
pub(super) fn known_utf8(subject: Term, bytes: &[u8], offset: usize) -> bool {
    thread_local! {
        static LAST: RefCell<Option<IoSlice>> = const { RefCell::new(None) };
    }
    if bytes.len() < REMEMBER_FROM || bytes.get(offset).is_none_or(|b| b & 0xC0 == 0x80) {
        return false;
    }
    let slice = || {
        IoSlice::of_binary(subject)
            .filter(|s| is_slice(s, bytes) && std::str::from_utf8(s.as_bytes()).is_ok())
    };
    if bytes.len() > LONG {
        if is_remembered(bytes) {
            return true;
        }
        let Some(new) = slice() else {
            return false;
        };
        let mut valid = VALID.lock();
        valid.insert(0, new);
        let forgotten = match valid.len() > REMEMBERED {
            true => valid.pop(),
            false => None,
        };
        drop(valid);
        drop(forgotten);
        return true;
    }
    LAST.with_borrow_mut(|last| {
        if last.as_ref().is_some_and(|s| is_slice(s, bytes)) {
            return true;
        }
        *last = slice();
        last.is_some()
    })
}
