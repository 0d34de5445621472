//! Upkeep: periodic work of the runtime, on one thread that sleeps while nothing happens.
//!
//! Each round ([`ROUND`]) it
//! - compacts processes that have waited since the last round ([`crate::collect::compact`]);
//! - gives memory back to the system: that of free process cells after many processes have ended,
//!   that of freed heaps which was not used again, and what the C library holds free;
//! - tells the allocator of heaps whether there is a crowd of processes;
//! - lets others steal from a scheduler that has been in one native since the last round;
//! - checks whether there is a memory limit by now, which another thread watches then
//!   ([`super::watch`]);
//! - checks whether the usable processors have changed, and follows, unless the program has set the
//!   number of schedulers.

use super::watch;
use crate::collect::compact;
use crate::cx::Cx;
use crate::msacc::{self, State};
use crate::options::memory::resident;
use crate::process::state::{Age, Wait};
use crate::process::table;
use crate::sched::{self, context_switches, reductions, rest_if_stopped, spawned};
use crate::system::memory;
use purlin_term::gc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROUND: Duration = Duration::from_millis(500);
/// Near the memory limit, waiting processes are compacted sooner.
const ROUND_IN_SHORT: Duration = Duration::from_millis(100);
/// Pause between two checks whether there is a memory limit.
const LIMITED: Duration = Duration::from_secs(2);
/// The pause after a round is a multiple of its length, up to a maximum.
const REST: u32 = 20;
const LONGEST: Duration = Duration::from_millis(1000);
/// Number of ended processes after which memory is given back even if programs are busy.
const MANY_ENDED: usize = 50_000;
/// Number of ended processes that may have left something once programs are idle.
const SOME_ENDED: usize = 5_000;
/// Growth of resident memory, in bytes, that is worth a look at what the C library holds free.
const WORTH_BYTES: usize = 16 << 20;
/// Reductions per round below which programs count as idle.
const QUIET_REDUCTIONS: u64 = 5_000_000;

/// Whether the program (or its user) has set the number of schedulers.
static CHOSEN: AtomicBool = AtomicBool::new(false);

/// Records that the program or its user has chosen the number of schedulers. From then on it does
/// not follow the number of processors.
pub fn count_chosen() {
    CHOSEN.store(true, Ordering::Relaxed);
}

/// Starts the thread.
pub fn start() {
    crate::os::thread::start("upkeep", sched::stack_size(), serve);
}

#[derive(Default)]
struct Seen {
    switches: u64,
    reductions: u64,
    /// Number of processes that had ended when free cells, and free memory of the C library, were
    /// last given back.
    ended_cells: usize,
    ended_trim: usize,
    /// Whether memory was given back while programs were busy: what they freed meanwhile and
    /// afterwards is still there, and doesn't show in the resident size.
    untidy: bool,
    /// Resident bytes after that.
    resident: usize,
    /// Whether there has been a crowd of processes.
    crowd: bool,
    /// Bytes freed by compaction since then.
    compacted: usize,
    processors: u32,
    /// Time of the last check for a memory limit.
    limited: Option<Instant>,
    /// State of [`sched::rescue`].
    picks: Vec<usize>,
}

fn serve() {
    msacc::begin_thread(msacc::Kind::Aux, 1);
    sched::processor::request_long_slices();
    let mut cx = Cx::boxed(sched::MAX_SCHEDULERS);
    let mut seen = Seen {
        processors: crate::options::current().flags.schedulers.cpus.usable(),
        ..Seen::default()
    };
    let mut pause = ROUND;
    loop {
        if gc::stress() {
            compact_often(&mut cx, &mut seen, pause);
        }
        msacc::asleep(true);
        std::thread::sleep(pause);
        msacc::asleep(false);
        rest_if_stopped();
        let _state = msacc::within(State::Aux);
        crate::recorder::goes_on();
        let begun = Instant::now();
        sched::rescue(&mut seen.picks);
        let switches = context_switches();
        let quiet = reductions() - seen.reductions < QUIET_REDUCTIONS;
        seen.reductions = reductions();
        let crowded = table().live() >= compact::CROWD;
        purlin_term::pressure::set_crowded(crowded);
        if crowded && !std::mem::replace(&mut seen.crowd, true) {
            memory::give_back_at_once();
        }
        let waiting = compact_all(&mut cx, &mut seen);
        let kept = purlin_term::blocks::release_unused()
            | purlin_term::binary_blocks::release_unused()
            | purlin_term::small_blocks::release_unused();
        let left = give_back(&mut seen, quiet) | kept;
        follow_processors(&mut seen);
        follow_memory(&mut seen);
        pause = (begun.elapsed() * REST).clamp(ROUND, LONGEST);
        if purlin_term::pressure::is_short() {
            pause = pause.min(ROUND_IN_SHORT);
        }
        if switches == seen.switches && !waiting && !left {
            sleep(switches);
        }
        seen.switches = switches;
    }
}

/// Sleeps until a scheduler finds work, unless one has any, or has had some since `switches`.
fn sleep(switches: u64) {
    sched::UPKEEP.park(|| context_switches() != switches || sched::working().contains(&true));
}

/// In stress mode, compacts waiting processes at once, for `time`.
fn compact_often(cx: &mut Cx, seen: &mut Seen, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        let begun = Instant::now();
        rest_if_stopped();
        compact_all(cx, seen);
        std::thread::sleep((begun.elapsed() * 4).max(Duration::from_micros(200)));
    }
}

/// Compacts processes that have waited since the last round. Returns true if more may be due in the
/// next.
fn compact_all(cx: &mut Cx, seen: &mut Seen) -> bool {
    let mut more = false;
    for i in 0..table().used_cells() {
        let p = table().cell(i);
        // SAFETY: cells are never unmapped; the state word is an atomic. `Age::Owned` says that the
        // process is ours.
        unsafe {
            match (*p).state.age() {
                Age::Nothing => {}
                Age::First => more = true,
                Age::Owned => {
                    rest_if_stopped();
                    seen.compacted +=
                        purlin_term::pressure::give_back_in(|| compact::compact(cx, p));
                    if (*p).state.try_wait(false) == Wait::Awake {
                        let prio = (*p).state.requeue();
                        sched::enqueue(p, prio);
                    }
                }
            }
        }
    }
    cx.proc.clear();
    more
}

/// Gives free memory back to the system. Returns true if there is some left for a later round.
fn give_back(seen: &mut Seen, quiet: bool) -> bool {
    let spawned = spawned() as usize;
    let ended = spawned.saturating_sub(table().live());
    if ended - seen.ended_cells.min(ended) > MANY_ENDED {
        table().release_free_cells(crate::timer::release_nodes);
        seen.ended_cells = ended;
    }
    let now = resident();
    seen.resident = seen.resident.min(now);
    let since = ended - seen.ended_trim.min(ended);
    let more = now > seen.resident + WORTH_BYTES || seen.untidy || since > SOME_ENDED;
    let many = since > MANY_ENDED || seen.compacted > 4 * WORTH_BYTES;
    if more && (quiet || many) {
        trim();
        seen.untidy = !quiet;
        seen.resident = resident();
        seen.ended_trim = ended;
        seen.compacted = 0;
        return false;
    }
    more
}

fn trim() {
    crate::message::blocks::clear();
    purlin_term::small_blocks::return_free_memory();
}

fn follow_processors(seen: &mut Seen) {
    if CHOSEN.load(Ordering::Relaxed) {
        return;
    }
    let n = crate::options::CpuCounts::detect().usable();
    if n != seen.processors {
        seen.processors = n;
        sched::multi_scheduling::set_online(n as usize);
    }
}

/// Checks whether there is a memory limit by now, and has it watched.
fn follow_memory(seen: &mut Seen) {
    if seen.limited.is_none_or(|t| t.elapsed() > LIMITED) {
        seen.limited = Some(Instant::now());
        if memory::limit().is_none() {
            memory::measure();
        }
        watch::start();
    }
}
