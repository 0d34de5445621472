//! The watch over the memory limit: one thread, which starts as soon as there is a limit.
//!
//! It measures ([`crate::system::memory`]) the more often the less is left, and sleeps while
//! nothing happens. When memory is short, it releases freed blocks and asks large processes,
//! including waiting ones, to collect themselves. While the limit is exceeded, these also check
//! themselves against it.

use crate::collect::{Also, Collect, Sweep};
use crate::process::state::Priority;
use crate::process::table;
use crate::sched::{self, context_switches, rest_if_stopped};
use crate::signal::Task;
use crate::signal::send::run_in_at;
use crate::system::memory;
use purlin_term::pressure::{is_over, is_short};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of bytes that programs are assumed to fill per second: it determines how long the
/// thread may sleep.
const FILLED_PER_SECOND: isize = 2 << 30;
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(500);
/// Pause between two releases of freed blocks; and between two requests to collect while the limit
/// is exceeded.
const GIVEN_BACK: Duration = Duration::from_millis(1000);
const COLLECTED_OVER: Duration = Duration::from_millis(30);
/// Below the limit, processes are asked when the use has grown by this fraction of the limit since
/// they were asked before.
const COLLECTED_PART: usize = 64;
/// Number of processes that are asked at a time. Those with at least [`memory::SMALL`] bytes
/// collect themselves.
const ASKED: usize = 2000;

/// Number of processes that were asked and haven't examined themselves yet.
static LOOKING: AtomicUsize = AtomicUsize::new(0);

/// One of them, until it has examined itself or is gone.
struct Looking;

impl Looking {
    fn new() -> Looking {
        LOOKING.fetch_add(1, Ordering::Relaxed);
        Looking
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        LOOKING.fetch_sub(1, Ordering::Relaxed);
    }
}

static RUNS: AtomicBool = AtomicBool::new(false);

/// Starts the thread, if there is a limit and it doesn't run yet.
pub(super) fn start() {
    if memory::limit().is_none() || RUNS.swap(true, Ordering::Relaxed) {
        return;
    }
    crate::os::thread::start("memory", sched::stack_size(), serve);
}

#[derive(Default)]
struct Done {
    collected: Option<Instant>,
    /// Bytes in use at that time.
    used: usize,
    given_back: Option<Instant>,
    /// Time when the processes that still examine themselves were asked.
    looking: Option<Instant>,
    /// Time that the processes asked last took to examine themselves.
    took: Duration,
    /// Cell of the process that is asked next.
    next: u32,
}

fn serve() {
    let mut done = Done::default();
    let mut switches = 0;
    loop {
        memory::measure();
        let pause = pause();
        match is_short() {
            true => relieve(&mut done),
            false => done = Done::default(),
        }
        std::thread::sleep(pause);
        rest_if_stopped();
        let now = context_switches();
        if now == switches && !is_over() {
            sched::WATCH.park(|| context_switches() != now || sched::working().contains(&true));
        }
        switches = now;
    }
}

/// Returns the time in which the memory that is left can't be used up.
fn pause() -> Duration {
    match memory::left() {
        None => LONGEST,
        Some(left) => {
            let micros = left.max(0) as i128 * 1_000_000 / FILLED_PER_SECOND as i128;
            Duration::from_micros(micros as u64).clamp(SHORTEST, LONGEST)
        }
    }
}

/// Frees memory.
fn relieve(done: &mut Done) {
    let due = |last: Option<Instant>, after| last.is_none_or(|t: Instant| t.elapsed() > after);
    if due(done.given_back, GIVEN_BACK) {
        memory::relieve();
        done.given_back = Some(Instant::now());
    }
    let (limit, used) = memory::limit().unwrap_or_default();
    done.used = done.used.min(used);
    // The processes asked before come first, and then run for as long undisturbed: otherwise a slow
    // system would do nothing else.
    if LOOKING.load(Ordering::Relaxed) > 0 {
        return;
    }
    if let Some(asked) = done.looking.take() {
        done.took = asked.elapsed();
        done.collected = Some(Instant::now());
    }
    let asks = match is_over() {
        true => due(done.collected, COLLECTED_OVER.max(done.took)),
        false => done.collected.is_none() || used > done.used + limit / COLLECTED_PART,
    };
    if asks {
        done.looking = Some(Instant::now());
        ask_to_collect(done);
        done.collected = Some(Instant::now());
        done.used = used;
    }
}

/// Asks some processes to examine themselves, others each time.
fn ask_to_collect(done: &mut Done) {
    let all = table().used_cells();
    let n = (ASKED as u32).min(all);
    for i in 0..n {
        let cell = (done.next + i) % all;
        let p = table().cell(cell);
        // SAFETY: cells are never unmapped; the id and the state word are atomics.
        let (id, alive) = unsafe {
            (
                (*p).id.load(Ordering::Relaxed),
                (*p).state.load().is_alive(),
            )
        };
        if alive && id != crate::process::NO_ID {
            let looking = Looking::new();
            let look: Task = Box::new(move |cx| {
                let _looking = looking;
                if let Some(cx) = cx
                    && memory::is_worth_asking(cx, large())
                {
                    cx.process()
                        .ext_mut()
                        .deferred
                        .push((Priority::Normal, collects()));
                }
            });
            run_in_at(purlin_term::Term::pid(id), Priority::Normal, look);
        }
    }
    done.next = if all == 0 { 0 } else { (done.next + n) % all };
}

fn large() -> usize {
    match is_over() {
        true => memory::SMALL.min(memory::least()),
        false => memory::SMALL,
    }
}

/// Returns a task that collects the process that runs it.
fn collects() -> Task {
    Box::new(|cx| {
        if let Some(cx) = cx {
            let live = cx.interp.live;
            // SAFETY: deferred tasks run between time slices, when only the first `live` registers
            // hold terms.
            unsafe { cx.collect(0, live, Also::NONE, Sweep::Full) };
            memory::has_collected(cx);
        }
    })
}
