//! Sizes of processes: what each one is charged for, and which ones are the largest.
//!
//! A process is weighed by the thread that runs it, in a collection or when its time slice ends.

use super::counts::{Excess, count, excess, share};
use super::row::{Counted, ROOT};
use super::seats::{PLACE_FRAMES, Place, Seat, members, of, seat, settle_net};
use super::tree::upwards;
use crate::accounts::{self, Frame};
use crate::process::{Cx, Process, table};
use purlin_term::{Term, payer};
use std::sync::atomic::Ordering;

impl Place {
    /// Records the place of the process in the context, which is at `pc` and has `bytes` bytes.
    #[cold]
    fn note(&self, cx: &Cx, pc: *const u64, bytes: i64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        let all = accounts::addresses_at(cx, pc);
        for (to, a) in self.addresses.iter().zip(all) {
            to.store(a, Ordering::Relaxed);
        }
        self.freed.store(accounts::freed(), Ordering::Relaxed);
    }
    fn frames(&self) -> Vec<Frame> {
        let freed = self.freed.load(Ordering::Relaxed);
        let all: [usize; PLACE_FRAMES] =
            std::array::from_fn(|i| self.addresses[i].load(Ordering::Relaxed));
        match freed == accounts::freed() {
            true => accounts::frames(&all),
            false => Vec::new(),
        }
    }
}

/// Counts bytes that the process that this thread runs had twice while a collection copied them.
pub fn note_copy(p: *const Process, bytes: usize) {
    let index = of(p);
    upwards(index, ROOT).for_each(|b| b.note_peak(Counted::Memory, bytes as i64));
}

/// Records where the process in the context is, at `pc`, if it has grown by an eighth since that
/// was last recorded.
pub fn note_place(s: &Seat, cx: &Cx, pc: *const u64, bytes: i64) {
    let before = s.place.bytes.load(Ordering::Relaxed);
    if bytes > before + before / 8 {
        s.place.note(cx, pc, bytes);
    } else if bytes < before / 2 {
        s.place.bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Records the size of the process that this thread runs, and how much of it another budget is
/// billed for, too. Returns the excess of the memory limit, if there is one. Before it are the
/// bytes that the process has made outside of its heap since its budget was last below the limit,
/// and whether it has grown since then.
pub fn weigh(s: &Seat, bytes: i64, shared: i64) -> (i64, bool, Option<Excess>) {
    let index = s.budget();
    let shared_before = s.shared.swap(shared, Ordering::Relaxed);
    if shared != shared_before {
        share(index, shared - shared_before);
    }
    // What was billed ahead of this is part of its bytes.
    let ahead = payer::take_billed_fragments() as i64;
    let before = s.bytes.swap(bytes, Ordering::Relaxed) + ahead;
    if bytes != before {
        count(index, ROOT, Counted::Memory, bytes - before);
    }
    let made = settle_net(s);
    let excess = excess(index);
    if excess.is_none() {
        s.calm.store(bytes, Ordering::Relaxed);
        s.made.store(0, Ordering::Relaxed);
        return (0, false, None);
    }
    let calm = s.calm.load(Ordering::Relaxed);
    (made, bytes > calm + calm / 64 || made > 0, excess)
}

/// A process of a budget: its size in bytes when it was last weighed, and where it was when it grew
/// to that, innermost first, if that is known.
pub struct Holder {
    pub pid: Term,
    pub bytes: i64,
    pub frames: Vec<Frame>,
}

/// The `most` largest processes of a budget and of those below it, the largest first.
pub fn largest(index: u32, most: usize) -> Vec<Holder> {
    let mut all: Vec<(Term, &Seat, i64)> = members(index)
        .into_iter()
        .filter_map(|pid| {
            let s = seat(table().index(table().find(pid)?))?;
            Some((pid, s, s.bytes.load(Ordering::Relaxed)))
        })
        .collect();
    all.sort_unstable_by_key(|x| std::cmp::Reverse(x.2));
    let first = all.into_iter().take(most);
    first
        .map(|(pid, s, bytes)| Holder {
            pid,
            bytes,
            frames: s.place.frames(),
        })
        .collect()
}
