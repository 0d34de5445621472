//! Random delays where locks are released, so that interleavings which need bad luck occur often.
//!
//! `PURLIN_DELAYS=SEED` turns them on; 0 is off. A thread that has just released a
//! [`crate::sync::Mutex`] continues late: it yields, or sleeps for up to some milliseconds. So
//! whatever it read under the lock is old when it acts on it. Builds with debug assertions have
//! more of them ([`where_hot`]): at locks that are released all the time, and between the steps of
//! protocols without locks.
//!
//! Each thread draws its own numbers from the seed. For a while it has a mood, in which it is
//! delayed hardly ever, now and then, or most of the time: races need one thread that is slow while
//! another one is not.
//!
//! While they are off, a place costs a load of a byte that nobody writes.

use crate::test_modes::Switch;
use std::cell::Cell;
use std::time::Duration;

static SWITCH: Switch = Switch::new("PURLIN_DELAYS", |seed| seed);

/// A place where a thread may be delayed.
#[inline(always)]
pub fn here() {
    if SWITCH.is_on() {
        draw();
    }
}

/// The same in builds with debug assertions, and nothing in others: for places that are passed all
/// the time.
#[inline(always)]
pub fn where_hot() {
    if cfg!(debug_assertions) {
        here();
    }
}

/// Maximum length of a mood, in random numbers.
const MOOD: u64 = 2000;

thread_local! {
    static NUMBERS: Cell<u64> = const { Cell::new(0) };
    /// Length left of the present mood, and the number N for which one in N draws is a delay.
    static MOODS: Cell<(u64, u64)> = const { Cell::new((0, 1)) };
}

fn next() -> u64 {
    NUMBERS.with(|numbers| SWITCH.next(numbers))
}

#[cold]
#[inline(never)]
fn draw() {
    let (left, one_in) = MOODS.get();
    if left == 0 {
        let one_in = [4096, 256, 256, 32, 32, 6][next() as usize % 6];
        MOODS.set((next() % MOOD + 1, one_in));
        return;
    }
    MOODS.set((left - 1, one_in));
    if next().is_multiple_of(one_in) {
        delay(next());
    }
}

/// Waits as the number says. Keeps `errno`, which callers may read after they released a lock.
fn delay(n: u64) {
    // SAFETY: the address of this thread's `errno`, which is valid as long as the thread.
    let errno = unsafe { *crate::errno::place() };
    let kind = n % 64;
    let n = n / 64;
    match kind {
        0 => std::thread::sleep(Duration::from_micros(n % 5000)),
        1..=8 => std::thread::sleep(Duration::from_micros(n % 500)),
        9..=24 => std::thread::sleep(Duration::from_micros(n % 50)),
        _ => std::thread::yield_now(),
    }
    // SAFETY: the address of this thread's `errno`, which is valid as long as the thread.
    unsafe { *crate::errno::place() = errno };
}
