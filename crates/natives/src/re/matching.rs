//! Matches within the limits of a scheduler: steps, time, and the part of a long subject that is
//! seen at first.

use super::callouts::Watch;
use super::capture::Groups;
use super::exec::{exec, exec_within};
use super::options::Options;
use super::pattern::Code;
use pcre2_sys as sys;
use purlin_term::{ending, gc};
use std::ffi::c_int;
use std::sync::Arc;

/// Maximum number of bytes for a match without a watch on a scheduler. A longer one goes by the
/// clock, too, for which it has a callout at each place where a match may start: that takes some
/// nanoseconds.
const UNWATCHED: usize = 1024;

/// Steps of a match without a watch, by bytes of the subject, as there may be as many places to
/// start at. A step takes some twenty nanoseconds.
const UNWATCHED_STEPS: usize = 20_000;

/// Steps of a match with a watch from one place in the subject, by bytes of it: between two steps,
/// a match may go through all of it (`a*b`).
const WATCHED_STEPS: usize = 4_000_000;

/// Bounds of these numbers. A match that needs more starts over on a dirty thread: PCRE2 can't
/// pause, and some patterns take as many steps as they get.
const SHORT_STEPS: std::ops::RangeInclusive<usize> = 16..=20_000;

/// Number of bytes that a match on a scheduler may see of a longer subject. Where that isn't
/// enough, a dirty thread matches.
const WINDOW: usize = 64 << 10;

/// Maximum length of a subject, from where the match begins, that is seen whole on a scheduler.
pub(super) const LONG: usize = WINDOW + 2 * WINDOW_SLACK;

/// Maximum number of bytes by which a window is shorter than [`WINDOW`].
const WINDOW_SLACK: usize = 4096;

/// Returns where a window into a subject ends, at most at `most`. A match can't tell the places
/// around it from those around the end of the subject, so they are no newlines, and a character is
/// whole. `None` if there is no such place nearby.
fn window_end(bytes: &[u8], most: usize, utf: bool) -> Option<usize> {
    let plain = |b: u8| (b' '..=b'~').contains(&b);
    // First bytes of characters of UTF-8 that are no newlines.
    let wide = |b: u8| utf && matches!(b, 0xC3..=0xE1 | 0xE3..=0xF4);
    let first = |b: u8| plain(b) || wide(b);
    let fits = |&end: &usize| {
        let before = bytes[..end].iter().rposition(|b| b & 0xC0 != 0x80);
        let before = before.filter(|&at| at + 4 >= end && (utf || at + 1 == end));
        first(bytes[end]) && before.is_some_and(|at| first(bytes[at]))
    };
    let least = most.saturating_sub(WINDOW_SLACK.min(most / 2));
    (least..=most).rev().find(fits)
}

/// Maximum number of steps of a match on a dirty thread from one place, by bytes of the subject,
/// before it starts over with a callout before each item of the pattern. Those make it take twice
/// as long.
const UNTOLD_STEPS: usize = 4_000_000_000;

/// Bounds of that number. The upper one is PCRE2's default limit, and takes a sixth of a second.
const FEW_CALLOUTS: std::ops::RangeInclusive<usize> = 1_000..=10_000_000;

/// A match of a pattern with a subject.
pub(super) struct Match<'a> {
    pub(super) code: &'a Arc<Code>,
    pub(super) bytes: &'a [u8],
    pub(super) groups: &'a mut Groups,
    /// The character that contains the offset.
    pub(super) within: Option<(usize, usize)>,
    /// PCRE2 checks that the subject is UTF-8.
    pub(super) check: bool,
}

impl Match<'_> {
    /// Returns the number of bytes from the offset on.
    fn rest(&self, o: &Options) -> usize {
        self.bytes.len().saturating_sub(o.offset)
    }
    fn exec(
        &mut self,
        form: &Arc<Code>,
        o: &mut Options,
        short: Option<&mut Watch>,
    ) -> Result<(), c_int> {
        match self.within {
            Some(character) => exec_within(form, self.bytes, character, o, short, self.groups),
            None => exec(form, self.bytes, o, self.check, short, false, self.groups),
        }
    }
    /// Matches on a scheduler. `None`: that would take long.
    pub(super) fn here(&mut self, o: &mut Options) -> Option<Result<(), c_int>> {
        let asked = o.match_limit;
        let steps = |all: usize, bytes: usize| {
            let n = (all / (bytes + 1)).clamp(*SHORT_STEPS.start(), *SHORT_STEPS.end()) as u32;
            (n.min(asked.unwrap_or(n)), asked.is_none_or(|a| a > n))
        };
        let rest = self.rest(o);
        if gc::stress() {
            if gc::stress_roll(4) {
                return None;
            }
            if gc::stress_roll(2) && rest > 8 {
                return self.in_window(o, o.offset + rest / 2, steps(WATCHED_STEPS, rest).0);
            }
        }
        if rest > LONG {
            return self.in_window(o, o.offset + WINDOW, steps(WATCHED_STEPS, WINDOW).0);
        }
        if rest <= UNWATCHED && !gc::stress_roll(2) {
            let (limit, cut) = steps(UNWATCHED_STEPS, rest);
            o.match_limit = Some(limit);
            match self.exec(self.code, o, Some(&mut Watch::new())) {
                Err(sys::PCRE2_ERROR_MATCHLIMIT) if cut => {}
                Err(sys::PCRE2_ERROR_HEAPLIMIT) => return None,
                result => return Some(result),
            }
        }
        let (limit, cut) = steps(WATCHED_STEPS, rest);
        o.match_limit = Some(limit);
        match self.exec(self.code.watched()?, o, Some(&mut Watch::new())) {
            Err(sys::PCRE2_ERROR_MATCHLIMIT) if cut => None,
            Err(sys::PCRE2_ERROR_HEAPLIMIT | sys::PCRE2_ERROR_CALLOUT) => None,
            result => Some(result),
        }
    }
    /// Matches with the first part of a long subject, up to about `most`. `None` if that doesn't
    /// decide the result.
    fn in_window(&mut self, o: &mut Options, most: usize, steps: u32) -> Option<Result<(), c_int>> {
        let checks = self.check && self.code.utf;
        if checks || self.within.is_some() || o.run & sys::PCRE2_NOTEOL != 0 {
            return None;
        }
        let end = window_end(self.bytes, most, self.code.utf).filter(|&end| end > o.offset)?;
        o.match_limit = Some(steps);
        let window = &self.bytes[..end];
        let watch = &mut Watch::new();
        let form = self.code.watched()?;
        exec(form, window, o, false, Some(watch), true, self.groups)
            .ok()
            .map(Ok)
    }
    /// Matches on a dirty thread.
    pub(super) fn run_whole(&mut self, o: &mut Options) -> Result<(), c_int> {
        if !ending::may_come() {
            return self.exec(self.code, o, None);
        }
        let asked = o.match_limit;
        let (few, most) = (FEW_CALLOUTS.start(), FEW_CALLOUTS.end());
        let limit = (UNTOLD_STEPS / (self.rest(o) + 1)).clamp(*few, *most) as u32;
        let cut = asked.map_or(limit < *most as u32, |n| n > limit);
        if let Some(form) = self.code.watched() {
            o.match_limit = Some(limit.min(asked.unwrap_or(limit)));
            let found = self.exec(form, o, None);
            o.match_limit = asked;
            if !cut || !matches!(found, Err(sys::PCRE2_ERROR_MATCHLIMIT)) {
                return found;
            }
        }
        self.exec(&self.code.calling_out(), o, None)
    }
}
