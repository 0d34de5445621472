//! Receiving: the effect of the instructions of `receive` on the mailbox
//! ([`crate::message::mailbox`]).
//!
//! `loop_rec` returns the current message. A small one at the head of the queue is copied to the
//! heap, and dropped from there if it doesn't match; any other is read in place. `remove_message`
//! frees the block of a copied message, and attaches any other block to the heap, as a fragment
//! that the next collection empties.
//!
//! Between reading a message in place and removing it lies a window: what the code builds there
//! (sub-binaries, match contexts, tuples that a guard compares) may point into the message's block,
//! which does not belong to the heap yet. A collection in the window leaves the block alone, and
//! keeps everything that points to it young ([`Heap::window`]). Once the block has become a
//! fragment and moves, all that may point to it is found. A refused message leaves nothing behind:
//! no register that code reads afterwards holds anything built in the window.
//!
//! [`Heap::window`]: purlin_term::heap::Heap::window

use super::{bounds, handle, token};
use crate::collect::{self, Also, Collect, Sweep};
use crate::cx::Cx;
use crate::events;
use crate::keys::RefKey;
use crate::message::index::Sought;
use crate::message::mailbox::{Decoded, Mailbox, Marker};
use crate::message::queue::{Link, prefetch};
use crate::message::{Kind, Sequel, Signal};
use crate::process::{self, IN_RECEIVE};
use purlin_term::sync::{AtomicUsize, Ordering};
use purlin_term::{Alloc, NIL, Term, copy, gc};

/// Maximum number of words of a message that `loop_rec` copies.
const COPY_WORDS: usize = 128;
/// Effective value of [`COPY_WORDS`]; 0 in stress mode, where small messages are copied at random.
static COPIED_WORDS: AtomicUsize = AtomicUsize::new(COPY_WORDS);

/// Maximum number of markers per mailbox.
const MARKERS: usize = 8;

/// Sets up the stress mode. Must be called before there are processes.
pub fn init() {
    let words = if gc::stress() { 0 } else { COPY_WORDS };
    COPIED_WORDS.store(words, Ordering::Relaxed);
}

/// Whether there is a current message, fetching from transit if necessary. Unlike [`loop_rec`], it
/// leaves the heap and the registers alone.
#[inline]
pub fn has_current(cx: &mut Cx) -> bool {
    loop {
        // SAFETY: null or the mailbox of this process.
        let current = unsafe { (*cx.proc.get()).mailbox.as_ref() }.is_some_and(|m| m.has_current());
        if current || !handle::fetch(cx) {
            return current;
        }
    }
}

/// The result of looking for a message.
#[derive(Debug)]
pub enum Current {
    Message(Term),
    /// No message, or none that hasn't been examined.
    Nothing,
    /// A message that isn't decoded yet: the time slice is over.
    Later,
}

/// Returns the current message, fetching from transit if necessary. It may collect: no register is
/// live.
pub fn loop_rec(cx: &mut Cx) -> Current {
    cx.heap.window = false;
    // SAFETY: the running process is owned by this thread.
    let p = unsafe { &mut *cx.proc.get() };
    loop {
        // SAFETY: null or the mailbox of this process.
        if let Some(m) = unsafe { p.mailbox.as_mut() } {
            // SAFETY: `save` leads to a message of the queue, or to null.
            unsafe {
                let s = *m.save as *mut Signal;
                if !s.is_null() {
                    if !m.is_decoded() && (*s).is_undecoded() {
                        match decode_current(cx, m) {
                            true => continue,
                            false => return Current::Later,
                        }
                    }
                    if gc::stress() {
                        collect::forget_registers(cx, 0, Also::NONE);
                    }
                    return Current::Message(look(cx, m, s));
                }
            }
        }
        if !handle::fetch(cx) {
            return Current::Nothing;
        }
    }
}

/// Terms decoded per reduction.
const REDUCTION_TERMS: usize = 32;

/// Decodes the current message for as long as the time slice lasts. Returns false if that ends
/// first. A message that is not a valid term is dropped.
///
/// # Safety
/// There is a current message, and the caller owns the process.
#[cold]
unsafe fn decode_current(cx: &mut Cx, m: &mut Mailbox) -> bool {
    let mut budget = (cx.reds.max(1) as usize).saturating_mul(REDUCTION_TERMS);
    if gc::stress_roll(2) {
        budget = 7;
    }
    // SAFETY: by the contract, `save` leads to a message.
    match unsafe { m.decode(m.save, budget) } {
        Decoded::More(cost) => {
            cx.bump(cost);
            false
        }
        Decoded::Whole(cost) => {
            cx.bump(cost);
            true
        }
        Decoded::Dropped(u) => {
            u.iter().for_each(|u| u.refused());
            true
        }
    }
}

/// Decodes all undecoded messages of other nodes. Those that are not valid terms are dropped.
pub fn decode_all(cx: &mut Cx) {
    let mut refused = Vec::new();
    // SAFETY: the running process is owned by this thread. The pointer is null or to its mailbox,
    // whose links are followed once each.
    unsafe {
        let Some(m) = (*cx.proc.get())
            .mailbox
            .as_mut()
            .filter(|m| !m.is_decoded())
        else {
            return;
        };
        let mut at: *mut *mut Link = &mut m.first;
        while !(*at).is_null() {
            if (*(*at as *mut Signal)).is_undecoded() {
                match m.decode(at, usize::MAX) {
                    Decoded::More(cost) | Decoded::Whole(cost) => cx.bump(cost),
                    Decoded::Dropped(u) => {
                        refused.extend(u);
                        continue;
                    }
                }
            }
            at = &mut (**at).next;
        }
    }
    refused.iter().for_each(|u| u.refused());
}

/// Whether the receive is beyond the first message, at one that can be read in place. Otherwise
/// [`loop_rec`] has more to do.
///
/// # Safety
/// The caller owns the process.
#[inline(always)]
pub unsafe fn scans(p: *mut process::Process) -> bool {
    // SAFETY: by the contract, the caller owns the process, and its mailbox, if there is one.
    let Some(m) = (unsafe { p.as_mut().and_then(|p| p.mailbox.as_mut()) }) else {
        return false;
    };
    m.has_current() && !m.at_marker && !std::ptr::eq(m.save, &m.first) && m.is_decoded()
}

/// For a receive that [`scans`]: returns the first message from the current one on that `passes`,
/// and what is left of `reds`. Each refused message costs one reduction. The last reduction is
/// never spent: the message at that point is returned too. `None` if there is no further message.
///
/// # Safety
/// The caller owns the process, for which [`scans`] holds.
#[inline(always)]
pub unsafe fn scan(
    p: *mut process::Process,
    mut reds: i64,
    passes: impl Fn(Term) -> bool,
) -> (Option<Term>, i64) {
    // SAFETY: by the contract, the caller owns the process, which has a mailbox if it `scans`.
    let m = unsafe { &mut *(*p).mailbox };
    m.copied_end = std::ptr::null_mut();
    let mut save = m.save;
    let found = loop {
        // SAFETY: `save` is the address of `first` or of the link of a message in the queue.
        let s = unsafe { *save } as *mut Signal;
        if s.is_null() {
            break None;
        }
        // SAFETY: a message of the queue.
        let t = unsafe {
            fetch_ahead(s);
            (*s).term
        };
        if reds <= 1 || passes(t) {
            break Some(t);
        }
        reds -= 1;
        // SAFETY: a message of the queue, which stays in it.
        save = unsafe { &mut (*s).link.next };
    };
    m.save = save;
    (found, reds)
}

/// Number of messages that scans return without a test after one that the test has accepted. In
/// machine code a test costs a few nanoseconds, and what prepares it here as much as some twenty.
const UNFILTERED: u8 = 127;

/// Whether a scan should apply the first test of the receive. Once that test has accepted a
/// message, it probably accepts the next ones too, which the tests behind it refuse. To prepare it
/// for each of them would cost more than it saves.
///
/// # Safety
/// The caller owns the process, for which [`scans`] holds.
#[inline(always)]
pub unsafe fn filters(p: *mut process::Process) -> bool {
    // SAFETY: by the contract, the caller owns the process, which has a mailbox if it `scans`.
    let m = unsafe { &mut *(*p).mailbox };
    let left = m.unfiltered;
    m.unfiltered = left.saturating_sub(1);
    left == 0
}

/// As [`scan`], with a test that is worth its preparation only where it refuses messages: see
/// [`filters`].
///
/// # Safety
/// As for [`scan`].
#[inline(always)]
pub unsafe fn filter(
    p: *mut process::Process,
    reds: i64,
    passes: impl Fn(Term) -> bool,
) -> (Option<Term>, i64) {
    // SAFETY: by the contract.
    unsafe {
        let r = scan(p, reds, passes);
        if r.1 == reds && r.0.is_some() {
            (*(*p).mailbox).unfiltered = UNFILTERED;
        }
        r
    }
}

/// Number of messages that are looked at one by one before an index is asked.
const FEW: i64 = 16;
/// Number of messages that a search passes before there is an index.
const MANY: i64 = 64;
/// Messages that are taken into an index per reduction.
const INDEXED_PER_REDUCTION: i64 = 8;

/// As [`filter`], for a test that only messages pass that have what is `sought`: an index leads to
/// them where there is one, and is made where the search has passed many messages.
///
/// # Safety
/// As for [`scan`].
#[inline(always)]
pub unsafe fn search(
    p: *mut process::Process,
    reds: i64,
    sought: Option<Sought>,
    passes: impl Fn(Term) -> bool,
) -> (Option<Term>, i64) {
    let few = if gc::stress() { 2 } else { FEW };
    // SAFETY: by the contract.
    unsafe {
        let Some(sought) = sought.filter(|_| reds > few) else {
            return filter(p, reds, passes);
        };
        // The scan keeps one.
        let (found, left) = filter(p, few, &passes);
        let reds = reds - few + left;
        if left > 1 || found.is_none() {
            return (found, reds);
        }
        let m = (*p).mailbox;
        if (*m).has_index(&sought) {
            let reds = extended(m, reds);
            if (*m).find(&sought) {
                let s = *(*m).save as *const Signal;
                return (s.as_ref().map(|s| s.term), reds);
            }
            return scan(p, reds, passes);
        }
        let (found, left) = scan(p, reds, passes);
        index_after(m, &sought, reds - left);
        (found, left)
    }
}

/// Takes further messages into the index of a mailbox, for most of the reductions `reds`. Returns
/// the reductions that are left.
///
/// # Safety
/// `m` is the mailbox of a process that the caller owns, and its messages are decoded.
#[inline(never)]
unsafe fn extended(m: *mut Mailbox, reds: i64) -> i64 {
    let most = if gc::stress() {
        3
    } else {
        (reds - 1) * INDEXED_PER_REDUCTION
    };
    // SAFETY: by the contract.
    let n = unsafe { (*m).extend_index(most.max(0) as usize) };
    reds - n as i64 / INDEXED_PER_REDUCTION
}

/// Makes an index for what is sought, if a search has passed enough messages to be worth one.
///
/// # Safety
/// `m` is the mailbox of a process that the caller owns.
#[inline(never)]
unsafe fn index_after(m: *mut Mailbox, sought: &Sought, passed: i64) {
    // SAFETY: by the contract.
    let m = unsafe { &mut *m };
    let many = if gc::stress() { 2 } else { MANY };
    if passed >= many && m.has_passed(passed as usize) {
        m.make_index(sought);
    }
}

/// Prefetches the message behind `s` while `s` is compared, and the probable address of one a few
/// messages later, assuming that all come from one place.
///
/// # Safety
/// `s` is a message of the queue of a process that the caller owns. The probable addresses are only
/// prefetched, never read.
#[inline(always)]
unsafe fn fetch_ahead(s: *mut Signal) {
    // SAFETY: by the contract, a message of the queue.
    let next = unsafe { (*s).link.next } as *const u8;
    prefetch(next);
    let stride = (next as isize).wrapping_sub(s as isize);
    prefetch(next.wrapping_offset(stride * 8));
}

/// Moves on to the next message. Returns false if [`loop_rec_end`] has more to do.
///
/// # Safety
/// The caller owns the process.
#[inline(always)]
pub unsafe fn scan_next(p: *mut process::Process) -> bool {
    // SAFETY: by the contract, the caller owns the process, and its mailbox, if there is one.
    let Some(m) = (unsafe { p.as_mut().and_then(|p| p.mailbox.as_mut()) }) else {
        return false;
    };
    // SAFETY: `save` is the address of `first` or of the link of a message in the queue.
    let s = unsafe { *m.save };
    if s.is_null() || !m.copied_end.is_null() || !m.is_decoded() {
        return false;
    }
    // SAFETY: a message of the queue.
    m.save = unsafe { &mut (*s).next };
    true
}

/// Returns the term of message `s`, at an address that code may use.
///
/// # Safety
/// `m` is the mailbox of the process in the context, which is this thread's. [`Mailbox::save`]
/// points to the link to `s`, which is decoded. No register holds anything.
unsafe fn look(cx: &mut Cx, m: &mut Mailbox, s: *mut Signal) -> Term {
    debug_assert!(!cx.heap.window);
    m.copied_end = std::ptr::null_mut();
    // SAFETY: by the contract, a message of the queue. It stays there while this runs.
    let msg = unsafe { &*s };
    let t = msg.term;
    if t.is_immed() {
        return t;
    }
    // The first message behind a marker probably matches.
    let likely = std::mem::take(&mut m.at_marker) || std::ptr::eq(m.save, &m.first);
    if !likely {
        // SAFETY: a message of the queue.
        unsafe { fetch_ahead(s) };
        cx.heap.window = true;
        return t;
    }
    prefetch(msg.link.next as *const u8);
    let n = msg.words();
    if n > COPIED_WORDS.load(Ordering::Relaxed) || !msg.refers_only() {
        // Stress mode copies some of the small ones nevertheless.
        if n > COPY_WORDS || !msg.refers_only() || gc::stress_roll(3) {
            cx.heap.window = true;
            return t;
        }
    }
    if cx.heap.free_words() < n {
        // No register holds anything when a process looks at its messages, since it might have
        // waited here. A message left in place would keep its block, and the next collection would
        // have to handle it. A process with a heap limit might end by this collection, on account
        // of messages that it has not asked for.
        if cx.process().ext().is_none_or(|e| e.max_heap.is_none()) {
            // SAFETY: no register is live, and the stack is in order.
            unsafe { (*cx).collect(n, 0, Also::NONE, Sweep::Due) };
        }
        if cx.heap.free_words() < n {
            cx.heap.window = true;
            return t;
        }
    }
    let before = cx.heap.htop;
    // SAFETY: there is room for the message's words.
    if let Some((c, n)) = unsafe { msg.move_to(before) } {
        // SAFETY: the message's words were copied there.
        cx.heap.htop = unsafe { before.add(n) };
        m.copied_end = cx.heap.htop;
        m.copied_words = n as u32;
        m.copied_at = cx.heap.collections;
        return c;
    }
    let c = copy::copy(t, &mut cx.heap);
    m.copied_end = cx.heap.htop;
    // SAFETY: the copy lies between the two.
    m.copied_words = unsafe { cx.heap.htop.offset_from(before) } as u32;
    m.copied_at = cx.heap.collections;
    c
}

/// Moves on from the current message, which does not match.
pub fn loop_rec_end(cx: &mut Cx) {
    // SAFETY: null or the mailbox of this process; its current message stays in the queue.
    unsafe {
        let Some(m) = (*cx.proc.get()).mailbox.as_mut() else {
            return;
        };
        cx.heap.window = false;
        let end = std::mem::replace(&mut m.copied_end, std::ptr::null_mut());
        // Nothing was built since, and no register that is read later holds the copy: the receive
        // loop starts anew.
        if !end.is_null() && cx.heap.htop == end && cx.heap.collections == m.copied_at {
            cx.heap.htop = end.sub(m.copied_words as usize);
            if gc::stress() {
                collect::forget_registers(cx, 0, Also::NONE);
            }
        }
        let s = *m.save;
        if !s.is_null() {
            m.save = &mut (*s).next;
        }
    }
}

/// Removes the current message, which was received.
pub fn remove_message(cx: &mut Cx) {
    if !gc::stress() {
        return take_current(cx);
    }
    let mailbox = cx.process().mailbox;
    // SAFETY: null or the mailbox of this process. The heap's pointers are current, and since
    // registers were cleared at the start of the receive they hold terms.
    unsafe {
        // Registers may still hold parts of refused messages.
        let refused = mailbox
            .as_ref()
            .is_some_and(|m| !std::ptr::eq(m.save, &m.first));
        take_current(cx);
        collect::verify_received(cx, refused);
    }
}

/// The current message was received, if no tracer or budget must learn of that and nothing of its
/// block is kept: it was copied to the heap, or is an immediate. False: nothing has happened, and
/// [`remove_message`] does it.
pub fn remove_copied(cx: &mut Cx) -> bool {
    if gc::stress() {
        return false;
    }
    // SAFETY: null or the mailbox of this process.
    unsafe {
        let p = &mut *cx.proc.get();
        let Some(m) = p.mailbox.as_mut() else {
            return false;
        };
        let s = *m.save as *mut Signal;
        if s.is_null() || m.watched || p.has(process::TIMER | process::SAVES) {
            return false;
        }
        let untold = match (*s).sequel() {
            Sequel::None => true,
            Sequel::Ends => !p.has(process::SEQUENTIAL),
            Sequel::Token => false,
        };
        let kept = m.copied_end.is_null() && !(*s).term.is_immed();
        if !untold || kept || !(*s).plain() {
            return false;
        }
        p.flags &= !IN_RECEIVE;
        cx.heap.window = false;
        m.copied_end = std::ptr::null_mut();
        Signal::free(m.unlink_current());
    }
    true
}

fn take_current(cx: &mut Cx) {
    // SAFETY: null or the mailbox of this process, which owns the message that is removed.
    unsafe {
        let p = &mut *cx.proc.get();
        stop_timer(p);
        // From here on the block is a fragment of the heap, or nothing points to it.
        cx.heap.window = false;
        let Some(m) = p.mailbox.as_mut() else { return };
        if (*m.save).is_null() {
            return;
        }
        if p.has(process::SAVES) {
            process::saved::note(&mut *cx.proc.get(), process::saved::Call::Receive);
        }
        let current = *m.save as *const Signal;
        match (*current).sequel() {
            Sequel::None => {}
            Sequel::Ends if !p.has(process::SEQUENTIAL) => {}
            _ => token::receiving(&mut *cx.proc.get(), current),
        }
        let copied = !std::mem::replace(&mut m.copied_end, std::ptr::null_mut()).is_null();
        let s = m.unlink_current();
        if m.watched {
            events::queue_changed(&mut *cx.proc.get());
            if crate::budgets::on() {
                bounds::took(&mut *cx.proc.get());
            }
        }
        let h = &mut cx.heap;
        if copied || (*s).term.is_immed() {
            if !(*s).plain() {
                h.receive_regions(&mut (*s).take_regions());
            }
            Signal::free(s);
            return;
        }
        h.receive_regions(&mut (*s).take_regions());
        let (words, plain) = ((*s).words(), (*s).plain());
        let mut f = match (*s).take_place() {
            // The decoded term lies in a block of its own.
            Some(f) => {
                Signal::free(s);
                f
            }
            None if words == 0 => {
                Signal::free(s);
                return;
            }
            None => Signal::into_fragment(s).1,
        };
        h.frag_words += f.used_words();
        h.off_heap.append(&mut f.off_heap);
        h.off_heap_grew();
        // Natives build in a fragment of their own: `Heap::alloc_fragment` uses the last one only
        // if it has room, and this one has none.
        h.frags.push(f);
        // A small message that found no room will not be the only one.
        let crowded = words <= COPY_WORDS && plain && h.free_words() < words;
        // A collection scans the stack. A deep one should not be scanned for a few messages.
        let most = 64.max(h.stack_words() / 32);
        if crowded || h.frag_words > h.block_words() / 2 + 1024 || h.frags.len() > most {
            h.gc_wanted = true;
        }
    }
}

/// Stops the receive timer, if it runs, and discards a timeout that has fired meanwhile.
#[inline]
pub(crate) fn stop_timer(p: &mut process::Process) {
    p.flags &= !IN_RECEIVE;
    if p.has(process::TIMER) {
        p.flags &= !process::TIMER;
        crate::timer::disarm_receive(process::table().index(p));
        let _ = p.state.take_timeout();
    }
}

/// Ends the receive by its timeout. The next one starts at the first message.
pub fn timeout(cx: &mut Cx) {
    // SAFETY: null or the mailbox of this process.
    unsafe {
        let p = &mut *cx.proc.get();
        stop_timer(p);
        cx.heap.window = false;
        crate::events::timed_out(p);
        if let Some(m) = p.mailbox.as_mut() {
            m.save = &mut m.first;
        }
    }
}

/// Restarts after an exception in the receive. The next one starts at the first message.
#[inline]
pub fn restart(cx: &mut Cx) {
    cx.heap.window = false;
    // SAFETY: null or the mailbox of this process.
    unsafe {
        if let Some(m) = (*cx.proc.get()).mailbox.as_mut() {
            m.save = &mut m.first;
        }
    }
}

/// Returns a new marker at the end of the queue.
pub fn marker_reserve(cx: &mut Cx) -> Term {
    let m = cx.process().mailbox_mut();
    let at = m.last;
    let m = m.markers.get_or_insert_default();
    if m.list.len() == MARKERS {
        m.list.remove(0);
    }
    m.last += 1;
    let id = m.last;
    m.list.push(Marker {
        id,
        reference: None,
        at,
    });
    Term::small(id)
}

/// Binds a marker to `reference`.
#[inline]
pub fn marker_bind(cx: &mut Cx, marker: Term, reference: Term) {
    let (Some(id), Some(k)) = (marker.as_small(), RefKey::of(reference)) else {
        return;
    };
    let m = cx.process().mailbox_mut();
    if let Some(x) = m.markers().iter_mut().find(|x| x.id == id) {
        x.reference = Some(k);
    }
}

/// Removes the marker of `reference`.
pub fn marker_clear(cx: &mut Cx, reference: Term) {
    let Some(m) = cx.process().mailbox_mut().markers.as_mut() else {
        return;
    };
    if let Some(id) = reference.as_small() {
        m.list.retain(|x| x.id != id);
    } else if let Some(k) = RefKey::of(reference) {
        m.list.retain(|x| x.reference != Some(k));
    }
}

/// Lets the receive that starts now skip the messages before the marker of `reference`.
pub fn marker_use(cx: &mut Cx, reference: Term) {
    let Some(k) = RefKey::of(reference) else {
        return;
    };
    if crate::budgets::on() {
        bounds::awaits(cx, k);
    }
    let m = cx.process().mailbox_mut();
    // A receive in progress (woken by a message) continues where it was.
    if std::ptr::eq(m.save, &m.first) {
        let at = m.markers().iter().find(|x| x.reference == Some(k));
        if let Some(at) = at.map(|x| x.at) {
            m.save = at;
            m.at_marker = true;
        }
    }
}

/// Calls `f` for the messages of a process that the caller owns, oldest first, until it returns
/// false. Undecoded ones are skipped.
pub fn each_message(p: &process::Process, mut f: impl FnMut(Term) -> bool) {
    // SAFETY: called by the owner.
    if let Some(m) = unsafe { p.mailbox.as_ref() } {
        let mut decoded = m.iter().filter(|s| !s.is_undecoded());
        let _ = decoded.all(|s| f(s.term));
    }
}

/// Calls `f` for the terms of the signals in transit to a process, in a copy of the emulator in
/// which the process does not run. Undecoded ones are skipped.
pub fn each_in_transit(p: &process::Process, mut f: impl FnMut(Term)) {
    let mut at = p.in_transit.newest();
    // SAFETY: a chain of signals, which stay there in the copy; a link is the first word of its
    // signal.
    while let Some(s) = unsafe { (at as *const Signal).as_ref() } {
        if !matches!(s.kind, Kind::Run | Kind::External) {
            f(s.term);
        }
        at = s.link.next;
    }
}

/// Returns the list of messages in the queue, without those that [`decode_all`] would decode.
#[inline]
pub fn messages_list<A: Alloc + ?Sized>(p: &process::Process, to: &mut A) -> Term {
    // SAFETY: called by the owner.
    let Some(m) = (unsafe { p.mailbox.as_ref() }) else {
        return NIL;
    };
    let decoded = m.iter().filter(|s| !s.is_undecoded());
    let v: Vec<Term> = decoded.map(|s| copy::copy(s.term, to)).collect();
    to.list(&v)
}

/// Calls `look` for the first messages in the queue of a process, in their order.
pub fn first_messages(p: &process::Process, most: usize, mut look: impl FnMut(Term)) {
    // SAFETY: called by the owner.
    if let Some(m) = unsafe { p.mailbox.as_ref() } {
        m.iter().take(most).for_each(|s| look(s.term));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use crate::signal::Kind;
    use std::mem::MaybeUninit;

    /// Looks at a message that is copied to the heap, runs `meanwhile`, and refuses the message.
    /// Returns whether the copy was dropped.
    fn refused(meanwhile: impl FnOnce(&mut Cx)) -> bool {
        let mut cx = Cx::boxed(0);
        let mut cell: Box<MaybeUninit<Process>> = Box::new(MaybeUninit::zeroed());
        // SAFETY: a receive uses the mailbox of the process, its flags and nothing else. The stack
        // is empty.
        unsafe {
            cx.proc.set(cell.as_mut_ptr());
            gc::collect(&mut cx.heap, 100, &mut [], false);
            let m = Mailbox::boxed();
            (*cx.proc.get()).mailbox = m;
            let words = [Term::small(1), Term::small(2)];
            (*m).append(Signal::tuple_of(Kind::Message, &words));
            let before = cx.heap.htop;
            assert!(matches!(loop_rec(&mut cx), Current::Message(_)));
            assert_eq!(cx.heap.htop, before.add(words.len() + 1), "not copied");
            meanwhile(&mut cx);
            loop_rec_end(&mut cx);
            let back = cx.heap.htop == before;
            Mailbox::destroy(m);
            back
        }
    }

    #[test]
    fn the_copy_of_a_refused_message_is_taken_back() {
        assert!(refused(|_| ()));
    }

    #[test]
    fn nothing_is_taken_back_after_a_collection_that_leads_to_the_same_address() {
        assert!(!refused(|cx| cx.heap.collections += 1));
    }

    #[test]
    fn nothing_is_taken_back_where_more_was_made() {
        assert!(!refused(|cx| {
            cx.heap.cons(Term::small(1), purlin_term::NIL);
        }));
    }
}
