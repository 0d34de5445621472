//! The clock of a match on a scheduler: a callout at each place where it may start.

use crate::reschedule;
use pcre2_sys as sys;
use purlin_term::ending;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

unsafe extern "C" {
    /// Makes a match with this context call `f` with `data` at each callout; a negative result ends
    /// the match with that error.
    pub(super) fn pcre2_set_callout_8(
        ctx: *mut sys::pcre2_match_context_8,
        f: Option<extern "C" fn(*mut c_void, *mut c_void) -> c_int>,
        data: *mut c_void,
    ) -> c_int;
}

/// A callout of a match on a dirty thread: ends it if the result is no longer wanted.
pub(super) extern "C" fn at_callout(_: *mut c_void, _: *mut c_void) -> c_int {
    match ending::is_over() {
        true => sys::PCRE2_ERROR_CALLOUT,
        false => 0,
    }
}

/// Maximum time of a match on a scheduler, but for what it takes from its last place.
const SHORT_TIME: Duration = Duration::from_millis(1);

/// Aim of the time between two looks at the clock.
const LOOK_EVERY: Duration = Duration::from_micros(20);

/// Number of places between two looks at the clock, at first and at most.
const PLACES: std::ops::RangeInclusive<u32> = 4..=32;

/// The time that a match on a scheduler has.
pub(super) struct Watch {
    /// Places at which a match was tried.
    places: u32,
    /// Number of places at the next look at the clock.
    pub(super) next: u32,
    /// Number of places from the last look to that one.
    step: u32,
    /// First and last look.
    looks: Option<(Instant, Instant)>,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch {
            places: 0,
            next: *PLACES.start(),
            step: *PLACES.start(),
            looks: None,
        }
    }
    /// Whether the time is over.
    #[cold]
    fn look(&mut self) -> bool {
        let now = Instant::now();
        let (first, last) = self.looks.unwrap_or((now, now));
        self.looks = Some((first, now));
        if now.duration_since(first) > SHORT_TIME && !reschedule::is_untimed() {
            return true;
        }
        let quick = now.duration_since(last) < LOOK_EVERY;
        self.step = match quick {
            true => (self.step * 2).min(*PLACES.end()),
            false => (self.step / 4).max(1),
        };
        self.next = self.places.saturating_add(self.step);
        false
    }
}

/// A callout of a match on a scheduler, at each place where it may start.
pub(super) extern "C" fn at_place(_: *mut c_void, watch: *mut c_void) -> c_int {
    // SAFETY: `exec` sets it to a watch that it has borrowed for the match, which is all on this
    // thread.
    let watch = unsafe { &mut *watch.cast::<Watch>() };
    watch.places = watch.places.saturating_add(1);
    match watch.places >= watch.next && watch.look() {
        true => sys::PCRE2_ERROR_CALLOUT,
        false => 0,
    }
}
