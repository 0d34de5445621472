//! Receiving: what the instructions of `receive` do with the mailbox ([`crate::message::mailbox`]).
//!
//! `loop_rec` gives the current message. A small one at the head of the queue is copied to the heap, and forgotten
//! again if it doesn't match; any other is read where it is. `remove_message` frees the block of a message that was
//! copied, and hangs any other block on the heap, as a fragment that the next collection empties.
//!
//! Between looking at a message where it is and removing it lies a window: what the code makes there (sub-binaries, match
//! contexts, tuples that a guard compares) may point into the message's block, which is not the heap's yet. A collection
//! in the window leaves the block alone, and so leaves all that points to it young ([`Heap::window`]): once the block has
//! become a fragment and moves, everything that may point to it is found. A message that is refused leaves nothing behind:
//! no register that code reads afterwards holds anything made in the window.
//!
//! [`Heap::window`]: purlin_term::heap::Heap::window

use super::{handle, token};
use crate::collect::{self, Also, Collect, Sweep};
use crate::cx::Cx;
use crate::events;
use crate::keys::RefKey;
use crate::message::mailbox::{Decoded, Mailbox, Marker};
use crate::message::queue::{Link, prefetch};
use crate::message::{Sequel, Signal};
use crate::process::{self, IN_RECEIVE};
use purlin_term::sync::{AtomicUsize, Ordering};
use purlin_term::{Alloc, NIL, Term, copy, gc};

/// Largest message in words that is copied when it is looked at.
const COPY_WORDS: usize = 128;
/// The same; 0 in the stress mode, where small messages are copied or not.
static COPIED_WORDS: AtomicUsize = AtomicUsize::new(COPY_WORDS);

/// Markers kept at a time.
const MARKERS: usize = 8;

/// To be called before there are processes.
pub fn init() {
    let words = if gc::stress() { 0 } else { COPY_WORDS };
    COPIED_WORDS.store(words, Ordering::Relaxed);
}

/// Whether there is a current message, fetching from outside if need be. Unlike [`loop_rec`], it leaves the heap and the
/// registers as they are.
#[inline]
pub fn has_current(cx: &mut Cx) -> bool {
    loop {
        // SAFETY: as in `loop_rec`.
        let current = unsafe { (*cx.proc).mailbox.as_ref() }.is_some_and(|m| m.has_current());
        if current || !handle::fetch(cx) {
            return current;
        }
    }
}

/// The message to look at, if there is one.
#[derive(Debug)]
pub enum Current {
    Message(Term),
    /// No message, or none that hasn't been looked at.
    Nothing,
    /// A message that isn't decoded yet: the turn is over.
    Later,
}

/// The current message, fetching from outside if need be. It may collect: no register is live.
pub fn loop_rec(cx: &mut Cx) -> Current {
    cx.heap.window = false;
    // SAFETY: the running process is owned by this thread.
    let p = unsafe { &mut *cx.proc };
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

/// Terms that are decoded for a reduction.
const REDUCTION_TERMS: usize = 32;

/// Decodes the current message, for as long as the turn lasts: false if that is over before. One that is no term is gone
/// afterwards.
///
/// # Safety
/// There is a current message; the caller owns the process.
#[cold]
unsafe fn decode_current(cx: &mut Cx, m: &mut Mailbox) -> bool {
    let mut budget = (cx.reds.max(1) as usize).saturating_mul(REDUCTION_TERMS);
    if gc::stress_roll(2) {
        budget = 7;
    }
    match m.decode(m.save, budget) {
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

/// Decodes all messages of other nodes that nobody has looked at. Those that are no terms are gone afterwards.
pub fn decode_all(cx: &mut Cx) {
    let mut refused = Vec::new();
    // SAFETY: the running process is owned by this thread; null or its mailbox, of which each link is gone along once.
    unsafe {
        let Some(m) = (*cx.proc).mailbox.as_mut().filter(|m| !m.is_decoded()) else {
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

/// Whether the receive has looked at messages, and is at one that can be read where it is. If not, there is more to do:
/// see [`loop_rec`].
///
/// # Safety
/// The caller owns the process.
#[inline(always)]
pub unsafe fn walks(p: *mut process::Process) -> bool {
    let Some(m) = p.as_mut().and_then(|p| p.mailbox.as_mut()) else {
        return false;
    };
    !(*m.save).is_null() && !m.at_marker && !std::ptr::eq(m.save, &m.first) && m.is_decoded()
}

/// For a receive that [`walks`]: the first message from the current one on that `passes`, and what is left of `reds`, of
/// which each that doesn't costs one. The last one is not spent: what comes then passes, too. None behind the last
/// message.
///
/// # Safety
/// The caller owns the process.
#[inline(always)]
pub unsafe fn walk(
    p: *mut process::Process,
    mut reds: i64,
    passes: impl Fn(Term) -> bool,
) -> (Option<Term>, i64) {
    let m = &mut *(*p).mailbox;
    m.copied_end = std::ptr::null_mut();
    let mut save = m.save;
    let found = loop {
        let s = *save as *mut Signal;
        if s.is_null() {
            break None;
        }
        fetch_ahead(s);
        let t = (*s).term;
        if reds <= 1 || passes(t) {
            break Some(t);
        }
        reds -= 1;
        save = &mut (*s).link.next;
    };
    m.save = save;
    (found, reds)
}

/// Fetches the message behind `s` while `s` is compared, and the place where a few messages later would lie, had all come
/// from one place.
///
/// # Safety
/// `s` is a message of the queue of a process that the caller owns. Where the next ones may lie is not read, only fetched.
#[inline(always)]
unsafe fn fetch_ahead(s: *mut Signal) {
    let next = (*s).link.next as *const u8;
    prefetch(next);
    let stride = (next as isize).wrapping_sub(s as isize);
    prefetch(next.wrapping_offset(stride * 8));
}

/// On to the next message; false if there is more to do: see [`loop_rec_end`].
///
/// # Safety
/// The caller owns the process.
#[inline(always)]
pub unsafe fn walk_on(p: *mut process::Process) -> bool {
    let Some(m) = p.as_mut().and_then(|p| p.mailbox.as_mut()) else {
        return false;
    };
    let s = *m.save;
    if s.is_null() || !m.copied_end.is_null() || !m.is_decoded() {
        return false;
    }
    m.save = &mut (*s).next;
    true
}

/// The term of message `s`, in a place where code may use it.
///
/// # Safety
/// `m` is the mailbox of the process in the context, which is this thread's, and [`Mailbox::save`] leads to `s`, which is decoded.
/// No register holds anything.
unsafe fn look(cx: &mut Cx, m: &mut Mailbox, s: *mut Signal) -> Term {
    debug_assert!(!cx.heap.window);
    m.copied_end = std::ptr::null_mut();
    let t = (*s).term;
    if t.is_immed() {
        return t;
    }
    // The first behind a marker is likely to be the one that is waited for.
    let likely = std::mem::take(&mut m.at_marker) || std::ptr::eq(m.save, &m.first);
    if !likely {
        fetch_ahead(s);
        cx.heap.window = true;
        return t;
    }
    prefetch((*s).link.next as *const u8);
    let n = (*s).words();
    if n > COPIED_WORDS.load(Ordering::Relaxed) || !(*s).refers_only() {
        // A small one is copied all the same, now and then, if it comes here at all.
        if n > COPY_WORDS || !(*s).refers_only() || gc::stress_roll(3) {
            cx.heap.window = true;
            return t;
        }
    }
    if cx.heap.free_words() < n {
        // No register holds anything where a process looks at its messages, since it might have waited here. Left where
        // it is the message would keep a block, and the next collection would have to come to it. One whose heap is limited might
        // end by that, for what is in its queue, and has not asked for it.
        if cx.process().ext().is_none_or(|e| e.max_heap.is_none()) {
            (*cx).collect(n, 0, Also::NONE, Sweep::Due);
        }
        if cx.heap.free_words() < n {
            cx.heap.window = true;
            return t;
        }
    }
    let before = cx.heap.htop;
    if let Some((c, n)) = (*s).move_to(before) {
        cx.heap.htop = before.add(n);
        m.copied_end = cx.heap.htop;
        m.copied_words = n as u32;
        m.copied_at = cx.heap.collections;
        return c;
    }
    let c = copy::copy(t, &mut cx.heap);
    m.copied_end = cx.heap.htop;
    m.copied_words = cx.heap.htop.offset_from(before) as u32;
    m.copied_at = cx.heap.collections;
    c
}

/// The current message does not match: on to the next.
pub fn loop_rec_end(cx: &mut Cx) {
    // SAFETY: as in `loop_rec`.
    unsafe {
        let Some(m) = (*cx.proc).mailbox.as_mut() else {
            return;
        };
        cx.heap.window = false;
        let end = std::mem::replace(&mut m.copied_end, std::ptr::null_mut());
        // Nothing was made since, and no register that is read later holds it: the receive loop starts anew.
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

/// The current message was received.
pub fn remove_message(cx: &mut Cx) {
    if !gc::stress() {
        return take_current(cx);
    }
    let mailbox = cx.process().mailbox;
    // SAFETY: null or the mailbox of this process; the heap's pointers are current, and since registers were forgotten at the
    // start of the receive they hold terms.
    unsafe {
        // Parts of those that were refused may still be in registers.
        let refused = mailbox
            .as_ref()
            .is_some_and(|m| !std::ptr::eq(m.save, &m.first));
        take_current(cx);
        collect::verify_received(cx, refused);
    }
}

/// The current message was received, if nobody is told of that and nothing of its block is kept: it
/// was copied to the heap, or is an immediate. False: nothing has happened, and [`remove_message`]
/// does it.
pub fn remove_copied(cx: &mut Cx) -> bool {
    if gc::stress() {
        return false;
    }
    // SAFETY: as in `loop_rec`.
    unsafe {
        let p = &mut *cx.proc;
        let Some(m) = p.mailbox.as_mut() else {
            return false;
        };
        let s = *m.save as *mut Signal;
        if s.is_null() || m.watched || p.has(process::TIMER | process::SAVES) {
            return false;
        }
        let untold = match (*s).sequel {
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
    // SAFETY: as in `loop_rec`.
    unsafe {
        let p = &mut *cx.proc;
        stop_timer(p);
        // From here on the block is a fragment of the heap, or nothing points to it.
        cx.heap.window = false;
        let Some(m) = p.mailbox.as_mut() else { return };
        if (*m.save).is_null() {
            return;
        }
        if p.has(process::SAVES) {
            process::saved::note(&mut *cx.proc, process::saved::Call::Receive);
        }
        let current = *m.save as *const Signal;
        match (*current).sequel {
            Sequel::None => {}
            Sequel::Ends if !p.has(process::SEQUENTIAL) => {}
            _ => token::receiving(&mut *cx.proc, current),
        }
        let copied = !std::mem::replace(&mut m.copied_end, std::ptr::null_mut()).is_null();
        let s = m.unlink_current();
        if m.watched {
            events::queue_changed(&mut *cx.proc);
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
            // The decoded term lies elsewhere.
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
        // What natives build goes into a fragment of its own: see `Heap::alloc_fragment`, which uses the last one
        // only if it has room, and this one has none.
        h.frags.push(f);
        // A small one that found no room is not alone for long.
        let crowded = words <= COPY_WORDS && plain && h.free_words() < words;
        // A collection walks the stack: a deep one is not to be walked for a few messages.
        let most = 64.max(h.stack_words() / 32);
        if crowded || h.frag_words > h.block_words() / 2 + 1024 || h.frags.len() > most {
            h.gc_wanted = true;
        }
    }
}

/// The receive timer, if it runs, is stopped, and a timeout that came at the same time is forgotten.
#[inline]
pub(crate) fn stop_timer(p: &mut process::Process) {
    p.flags &= !IN_RECEIVE;
    if p.has(process::TIMER) {
        p.flags &= !process::TIMER;
        crate::timer::disarm_receive(process::table().index(p));
        let _ = p.state.take_timeout();
    }
}

/// The receive ended by its timeout: the next one starts at the first message.
pub fn timeout(cx: &mut Cx) {
    // SAFETY: as in `loop_rec`.
    unsafe {
        let p = &mut *cx.proc;
        stop_timer(p);
        cx.heap.window = false;
        crate::events::timed_out(p);
        if let Some(m) = p.mailbox.as_mut() {
            m.save = &mut m.first;
        }
    }
}

/// The receive has raised an exception: the next one starts at the first message.
#[inline]
pub fn restart(cx: &mut Cx) {
    cx.heap.window = false;
    // SAFETY: as in `loop_rec`.
    unsafe {
        if let Some(m) = (*cx.proc).mailbox.as_mut() {
            m.save = &mut m.first;
        }
    }
}

/// A new marker at the end of the queue.
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

/// The marker is for `reference`.
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

/// No receive will use the marker of `reference` any more.
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

/// The receive that starts now need not look at messages before the marker of `reference`.
pub fn marker_use(cx: &mut Cx, reference: Term) {
    let m = cx.process().mailbox_mut();
    let Some(k) = RefKey::of(reference) else {
        return;
    };
    // A receive that was under way (woken by a message) goes on where it was.
    if std::ptr::eq(m.save, &m.first) {
        let at = m.markers().iter().find(|x| x.reference == Some(k));
        if let Some(at) = at.map(|x| x.at) {
            m.save = at;
            m.at_marker = true;
        }
    }
}

/// Shows the messages of a process that the caller owns, oldest first, until `f` has enough; not those that nobody has decoded.
pub fn each_message(p: &process::Process, mut f: impl FnMut(Term) -> bool) {
    // SAFETY: called by the owner.
    if let Some(m) = unsafe { p.mailbox.as_ref() } {
        let mut decoded = m.iter().filter(|s| !s.is_undecoded());
        let _ = decoded.all(|s| f(s.term));
    }
}

/// The messages in the queue; not those that [`decode_all`] would decode.
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

/// Has the first messages in the queue of a process looked at, in their order.
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

    /// Looks at a message that is copied to the heap, does `meanwhile`, and refuses it; whether the copy was taken back.
    fn refused(meanwhile: impl FnOnce(&mut Cx)) -> bool {
        let mut cx = Cx::boxed(0);
        let mut cell: Box<MaybeUninit<Process>> = Box::new(MaybeUninit::zeroed());
        // SAFETY: a receive uses the mailbox of the process, its flags and nothing else; the stack is empty.
        unsafe {
            cx.proc = cell.as_mut_ptr();
            gc::collect(&mut cx.heap, 100, &mut [], false);
            let m = Mailbox::boxed();
            (*cx.proc).mailbox = m;
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
