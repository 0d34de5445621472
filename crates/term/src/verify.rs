//! The heap verifier: walks a process heap and reports what is wrong with it.
//!
//! The list at the head of [`crate::gc`] says what is checked for each kind of memory.

mod objects;

pub(crate) use objects::check_region;
pub use objects::verify_region;
use objects::{Found, check_object, list_objects, object_in_region, same_objects, walk};

use crate::heap::Heap;
use crate::layout;
use crate::region;
use crate::region_set::RegionSet;
use crate::stress;
use crate::word::{Subtag, TAG_BOXED, TAG_LIST, Term, header_subtag};
use std::collections::HashSet;

/// Walks the block, the fragments, the old block and the stack.
///
/// # Safety
/// The heap's own pointers (block bounds, lists) are right; `roots` are initialised.
pub unsafe fn verify(heap: &Heap, roots: &[&[Term]]) -> Result<(), String> {
    // SAFETY: by the contract, which is that of [`verify`].
    unsafe { verify_with(heap, roots, Some(&[])) }
}

/// As [`verify`]; `extra` are further areas (start, end) that may be pointed into, such as a queued
/// message. None allows any pointer that leads out of the heap.
///
/// # Safety
/// As for [`verify`].
pub unsafe fn verify_with(
    heap: &Heap,
    roots: &[&[Term]],
    extra: Option<&[(usize, usize)]>,
) -> Result<(), String> {
    // SAFETY: by the contract, which is that of [`verify`].
    unsafe { verify_all(heap, roots, extra, false) }
}

/// The free runs of the old generation, as sorted start and end addresses: each looks like an
/// object of its size.
///
/// # Safety
/// As for [`verify`]; `old` has all objects of the old generation.
unsafe fn free_runs(heap: &Heap, old: &Found) -> Result<Vec<(usize, usize)>, String> {
    let Some(r) = &heap.runs else {
        return Ok(Vec::new());
    };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut words = 0;
    for &(p, n) in r.free_runs() {
        let at = p as usize;
        // SAFETY: the word is read only if an object starts there.
        let is_one = unsafe {
            old.starts.binary_search(&at).is_ok()
                && header_subtag((*p).raw()) as u8 == Subtag::PosBig as u8
                && layout::object_words(p) == n
        };
        if !is_one {
            return Err(format!("there is no free run of {n} words at {at:x}"));
        }
        words += n;
        runs.push((at, at + n * 8));
    }
    runs.sort_unstable();
    if let Some(w) = runs.windows(2).find(|w| w[0].1 > w[1].0) {
        return Err(format!("two free runs hold the words at {:x}", w[1].0));
    }
    if words != r.free_words() {
        return Err(format!(
            "free runs have {words} words, not {}",
            r.free_words()
        ));
    }
    Ok(runs)
}

/// The objects of the young generation (with the fragments) and of the old one. Both are checked
/// against their off-heap lists.
///
/// # Safety
/// As for [`verify`].
unsafe fn find_objects(heap: &Heap) -> Result<(Found, Found), String> {
    let mut young = Found::default();
    let mut old = Found::default();
    if heap.htop > heap.stop || heap.high_water > heap.htop || heap.high_water < heap.heap {
        return Err("the heap's bounds are out of order".into());
    }
    let mut young_list = Vec::new();
    let mut old_list = Vec::new();
    let old_words = (heap.old_htop as usize - heap.old_heap as usize) >> 3;
    // SAFETY: by the contract, the words below `htop` are initialised, as are those of the
    // fragments and of the old generation.
    unsafe {
        walk(heap.heap, heap.used_words(), &mut young)?;
        for f in &heap.frags {
            for (p, n) in f.areas() {
                walk(p, n, &mut young)?;
            }
            list_objects(f.off_heap.first, &mut young_list)?;
        }
        walk(heap.old_heap, old_words, &mut old)?;
    }
    // Dead objects may point to some that were taken apart already.
    if let Some(r) = &heap.runs {
        old.terms.retain(|&(at, _)| !r.is_dead(at));
    }
    for found in [&mut young, &mut old] {
        found.starts.sort_unstable();
        found.areas.sort_unstable();
    }
    // SAFETY: by the contract, the lists are right.
    unsafe {
        list_objects(heap.off_heap.first, &mut young_list)?;
        list_objects(heap.old_off_heap.first, &mut old_list)?;
    }
    same_objects("young", &mut young.owners, young_list)?;
    same_objects("old", &mut old.owners, old_list)?;
    Ok((young, old))
}

type Regions = HashSet<*const region::Region>;

/// The regions that terms of the young generation may refer to, and those of the old one. Either
/// generation may hold regions that young terms refer to; the old one holds those of old terms.
///
/// # Safety
/// As for [`verify`].
unsafe fn held_regions(heap: &Heap, ran: bool) -> (Regions, Regions) {
    let of = |s: &RegionSet| s.iter().map(|r| r as *const region::Region).collect();
    let old_held: Regions = of(&heap.old_off_heap.regions);
    let mut held: Regions = of(&heap.off_heap.regions);
    for f in &heap.frags {
        held.extend(of(&f.off_heap.regions));
    }
    if ran {
        held.extend(&old_held);
        let mut todo: Vec<*const region::Region> = held.iter().copied().collect();
        while let Some(r) = todo.pop() {
            // SAFETY: the region is held by a region or a generation.
            let r = unsafe { &*r };
            todo.extend(r.held().filter(|&h| held.insert(h)));
        }
    }
    (held, old_held)
}

/// Checks that what is old, or will be with the next collection, points to older objects or to
/// regions: not to a fragment, nor to a message that is looked at and will become one.
///
/// # Safety
/// As for [`verify`]; `live` has the objects that a walk of the heap has found.
unsafe fn check_ages(heap: &Heap, live: &mut Live) -> Result<(), String> {
    let (young, old) = (live.young, live.old);
    for &(at, t) in &old.terms {
        let a = t.ptr() as usize;
        if t.is_immed() || old.holds(a) || region::is_region_ptr(t.ptr()) {
            continue;
        }
        if young.holds(a) {
            return Err(format!("old word {at:x} points to young {a:x}"));
        }
        return Err(format!("old word {at:x} points out of the heap: {a:x}"));
    }
    let mature = heap.heap as usize..heap.high_water as usize;
    for &(at, t) in &young.terms {
        let a = t.ptr() as usize;
        let stays = t.is_immed() || mature.contains(&a) || old.holds(a);
        let younger = mature.contains(&at) && !stays && !region::is_region_ptr(t.ptr());
        // SAFETY: `at` is the address of a word that a walk has found.
        if younger && !unsafe { live.excuses(at) } {
            return Err(format!("mature word {at:x} points to younger {a:x}"));
        }
    }
    Ok(())
}

/// Memory that terms of a heap may point to.
struct Targets<'a> {
    heap: &'a Heap,
    young: &'a Found,
    old: &'a Found,
    /// Free runs of the old generation, as in [`free_runs`].
    free: Vec<(usize, usize)>,
    held: Regions,
    old_held: Regions,
    extra: Option<&'a [(usize, usize)]>,
}

impl Targets<'_> {
    /// Whether the term `t` at address `at` leads to known memory. False: perhaps to a message.
    /// Err: nowhere.
    ///
    /// # Safety
    /// The areas of `young` and `old` are initialised.
    unsafe fn check(&self, at: usize, t: Term) -> Result<bool, String> {
        match t.raw() & 3 {
            TAG_LIST | TAG_BOXED => {}
            _ if t.is_atom() && !crate::atom::is_known(t) => {
                return Err(format!(
                    "word {at:x} is an atom without a name: {:x}",
                    t.raw()
                ));
            }
            _ => return Ok(true),
        }
        let a = t.ptr() as usize;
        if a & 7 != 0 || a == 0 || a >> 47 != 0 {
            return Err(format!("word {at:x} is no pointer: {:x}", t.raw()));
        }
        if self.heap.runs.as_ref().is_some_and(|r| r.is_dead(a)) {
            return Err(format!(
                "word {at:x} points to what a sweep found dead, at {a:x}"
            ));
        }
        let i = self.free.partition_point(|&(lo, _)| lo <= a);
        if i > 0 && a < self.free[i - 1].1 {
            return Err(format!("word {at:x} points into a free run, at {a:x}"));
        }
        if let Some(g) = [self.young, self.old].into_iter().find(|g| g.holds(a)) {
            if t.is_boxed() {
                if g.starts.binary_search(&a).is_err() {
                    return Err(format!("word {at:x} points into an object, at {a:x}"));
                }
                return Ok(true);
            }
            // SAFETY: by the contract, and the generation holds the address.
            if !unsafe { is_cell(g, t) } {
                return Err(format!("word {at:x} points to no cell, at {a:x}"));
            }
            return Ok(true);
        }
        if region::is_region_ptr(t.ptr()) {
            let Some(r) = region::region_of(t.ptr()) else {
                return Err(format!("word {at:x} points to a freed region, at {a:x}"));
            };
            // SAFETY: `region_of` returns live regions, and `t` points into this one.
            let found = unsafe { object_in_region(r, t) };
            found.map_err(|e| format!("word {at:x} points {e}, at {a:x}"))?;
            let in_old = self.old.holds(at);
            // A message that is looked at in place holds its regions itself, and code its literals.
            let may_be_queued = !in_old && (self.extra.is_none() || r.is_code());
            if region::is_counted_ptr(t.ptr())
                && !may_be_queued
                && !self.old_held.contains(&(r as *const _))
                && (in_old || !self.held.contains(&(r as *const _)))
            {
                return Err(format!(
                    "word {at:x} points to a region that isn't held, at {a:x}"
                ));
            }
            return Ok(true);
        }
        match self.extra {
            None => Ok(false),
            Some(v) if v.iter().any(|&(lo, hi)| a >= lo && a < hi) => Ok(false),
            Some(_) => Err(format!("word {at:x} points nowhere known: {a:x}")),
        }
    }
}

/// Whether the list pointer `t` leads to a cons cell.
///
/// # Safety
/// `g` holds the address, and its areas are initialised.
unsafe fn is_cell(g: &Found, t: Term) -> bool {
    // SAFETY: by the contract; the second word is read only if it is there.
    unsafe {
        g.holds(t.ptr() as usize + 8) && !(*t.ptr()).is_header() && !(*t.ptr().add(1)).is_header()
    }
}

/// Checks the words and objects of one generation.
///
/// # Safety
/// `g` is a generation that a walk of the heap has found.
unsafe fn check_generation(g: &Found, targets: &Targets, live: &mut Live) -> Result<(), String> {
    // Words of unreachable objects that may lead to memory of others by now: nobody may look there.
    let mut lost: HashSet<usize> = HashSet::new();
    // SAFETY: words and objects are those that the walk has found, and pointers are checked before
    // the objects.
    unsafe {
        for &(at, t) in &g.terms {
            let checked = targets.check(at, t);
            if checked != Ok(true) && live.excuses(at) {
                lost.insert(at);
            } else {
                checked?;
            }
        }
        for &p in &g.starts {
            let (a, b) = layout::term_range(p as *mut Term);
            let is_lost = !lost.is_empty() && (a..b).any(|k| lost.contains(&(p + k * 8)));
            if is_lost || targets.heap.runs.as_ref().is_some_and(|r| r.is_dead(p)) {
                continue;
            }
            if let Err(e) = check_object(p as *const Term)
                && !live.excuses_object(p)
            {
                return Err(e);
            }
        }
    }
    Ok(())
}

/// Checks the sent terms and the hints.
///
/// # Safety
/// `young` and `old` are the generations that a walk of the heap has found.
unsafe fn check_sent(heap: &Heap, young: &Found, old: &Found, ran: bool) -> Result<(), String> {
    let is_dead = |a: usize| heap.runs.as_ref().is_some_and(|r| r.is_dead(a));
    for (t, shared) in heap.sent.iter().flat_map(|s| s.terms()) {
        let a = t.ptr() as usize;
        if is_dead(a) {
            return Err(format!("what was sent as {:x} died at {a:x}", shared.raw()));
        }
        if !(young.holds(a) || old.holds(a)) || region::region_of(shared.ptr()).is_none() {
            return Err(format!("what was sent as {:x} lies at {a:x}", shared.raw()));
        }
    }
    // Until the next collection a hint may be of a term that was released since, or of one in a
    // message.
    let sent = heap.sent.as_ref().filter(|_| !ran);
    for t in sent.iter().flat_map(|s| s.hints()) {
        let a = t.ptr() as usize;
        for g in [young, old].into_iter().filter(|g| g.holds(a)) {
            let starts = match t.is_boxed() {
                true => g.starts.binary_search(&a).is_ok(),
                // SAFETY: by the contract, and the generation holds the address.
                false => unsafe { is_cell(g, t) },
            };
            if is_dead(a) || !starts {
                return Err(format!(
                    "a hint of what was sent leads to no term, at {a:x}"
                ));
            }
        }
    }
    Ok(())
}

/// As [`verify_with`]. `ran`: code ran since the last collection, so that young objects may point
/// to regions that others hold: they found them there.
///
/// # Safety
/// As for [`verify`].
unsafe fn verify_all(
    heap: &Heap,
    roots: &[&[Term]],
    extra: Option<&[(usize, usize)]>,
    ran: bool,
) -> Result<(), String> {
    // SAFETY: by the contract, which is that of [`verify`].
    let (young, old) = unsafe { find_objects(heap) }?;
    // SAFETY: by the contract; the walk has found all objects.
    let (free, (held, old_held)) = unsafe { (free_runs(heap, &old)?, held_regions(heap, ran)) };
    let mut live = Live {
        heap,
        roots,
        young: &young,
        old: &old,
        ran,
        young_words: None,
        words: None,
    };
    let targets = Targets {
        heap,
        young: &young,
        old: &old,
        free,
        held,
        old_held,
        extra,
    };
    // SAFETY: the walk has found the words and objects, and the stack has that many words.
    unsafe {
        check_ages(heap, &mut live)?;
        for g in [&young, &old] {
            check_generation(g, &targets, &mut live)?;
        }
        check_sent(heap, &young, &old, ran)?;
        for i in 0..heap.stack_words() {
            let p = heap.stop.add(i);
            let checked = targets.check(p as usize, *p);
            checked.map_err(|e| format!("stack slot {i}: {e}"))?;
        }
        for (k, r) in roots.iter().enumerate() {
            for (i, &t) in r.iter().enumerate() {
                let checked = targets.check(i, t);
                checked.map_err(|e| format!("root {i} of slice {k}: {e}"))?;
            }
        }
    }
    Ok(())
}

/// Determines what is reachable, on demand when something is wrong. Two kinds of dead objects are
/// no damage:
/// * What was made while a message was looked at that was then refused still points into the
///   message, which may be gone: another receive has copied it, or it was flushed.
/// * A match context over a binary that has been appended to, and got other memory for that, has
///   the old address.
struct Live<'a> {
    heap: &'a Heap,
    roots: &'a [&'a [Term]],
    young: &'a Found,
    old: &'a Found,
    /// Code ran since the last collection, which has left no unreachable young objects.
    ran: bool,
    /// Words of reachable young objects, once they were needed; and of all objects.
    young_words: Option<HashSet<usize>>,
    words: Option<HashSet<usize>>,
}

impl Live<'_> {
    /// Whether the word at address `at` belongs to an unreachable young object: it may lead
    /// nowhere. Old objects only refer to old ones, and to regions that the generation holds: so
    /// nothing there is excused.
    ///
    /// # Safety
    /// `at` is the address of a word of an object that was found in the heap; the heap is as for
    /// [`verify`].
    unsafe fn excuses(&mut self, at: usize) -> bool {
        if !self.ran || !self.young.holds(at) {
            return false;
        }
        let (heap, roots, young) = (self.heap, self.roots, self.young);
        // SAFETY: by the contract; `young` has whole objects of the heap.
        let words = unsafe {
            self.young_words
                .get_or_insert_with(|| reached(heap, roots, &[young]))
        };
        !words.contains(&at)
    }
    /// Whether the object at `p`, which refers to others, is unreachable: they may have changed.
    ///
    /// # Safety
    /// `p` is the address of an object that was found in the heap; the heap is as for [`verify`].
    unsafe fn excuses_object(&mut self, p: usize) -> bool {
        if !self.ran && self.young.holds(p) {
            return false;
        }
        let (heap, roots, both) = (self.heap, self.roots, [self.young, self.old]);
        // SAFETY: by the contract; `p` is the start of a whole object.
        unsafe {
            let words = self
                .words
                .get_or_insert_with(|| reached(heap, roots, &both));
            let (a, b) = layout::term_range(p as *mut Term);
            a < b && !(a..b).any(|k| words.contains(&(p + k * 8)))
        }
    }
}

/// The addresses of the words of objects in `found` that are reachable from the roots and the stack
/// through these objects.
///
/// # Safety
/// The heap is as for [`verify`], and `found` are whole objects of it, by their areas.
unsafe fn reached(heap: &Heap, roots: &[&[Term]], found: &[&Found]) -> HashSet<usize> {
    // SAFETY: by the contract, the stack has that many words.
    let stack = unsafe { (0..heap.stack_words()).map(|i| *heap.stop.add(i)) };
    let mut todo: Vec<Term> = stack.filter(|t| !t.is_header()).collect();
    todo.extend(roots.iter().flat_map(|r| r.iter()));
    let mut words = HashSet::new();
    while let Some(t) = todo.pop() {
        let p = t.ptr();
        if t.is_immed() || !found.iter().any(|g| g.holds(p as usize)) {
            continue;
        }
        // SAFETY: `t` points into one of the areas, which are whole objects.
        unsafe {
            let (a, b) = match t.is_list_ptr() {
                true => (0, 2),
                false => layout::term_range(p),
            };
            for k in a..b {
                if words.insert(p.add(k) as usize) {
                    todo.push(*p.add(k));
                }
            }
        }
    }
    words
}

/// Whether the old generation holds those of `regions` that it refers to, which code held until
/// now. Err has a message for the first word that leads into a region that it does not hold.
///
/// # Safety
/// The heap's own pointers are right; the regions are alive.
pub unsafe fn verify_old_holds(heap: &Heap, regions: &[&region::Region]) -> Result<(), String> {
    let of_old = &heap.old_off_heap.regions;
    let areas: Vec<(usize, usize)> = regions
        .iter()
        .filter(|r| !of_old.iter().any(|h| std::ptr::eq(h, **r)))
        .map(|r| (r.base as usize, r.base as usize + r.words * 8))
        .collect();
    if areas.is_empty() {
        return Ok(());
    }
    let mut old = Found::default();
    // SAFETY: by the contract, the words below `old_htop` are initialised.
    unsafe { walk(heap.old_heap, heap.old_words(), &mut old) }?;
    let lost = old.terms.iter().find(|&&(at, t)| {
        let a = t.ptr() as usize;
        let leads = !t.is_immed() && areas.iter().any(|&(lo, hi)| (lo..hi).contains(&a));
        leads && !heap.runs.as_ref().is_some_and(|r| r.is_dead(at))
    });
    match lost {
        None => Ok(()),
        Some(&(at, t)) => Err(format!(
            "old word {at:x} points to literals that are purged and not held, at {:x}",
            t.ptr() as usize
        )),
    }
}

/// Stress mode: ends the runtime unless [`verify_old_holds`].
///
/// # Safety
/// As for [`verify_old_holds`].
#[cold]
pub unsafe fn check_old_holds(heap: &Heap, regions: &[&region::Region]) {
    // SAFETY: by the contract, which is that of [`verify_old_holds`].
    if let Err(e) = unsafe { verify_old_holds(heap, regions) } {
        damaged("as literals are purged", &e);
    }
}

/// Stress mode: ends the runtime, with the reason, if a heap does not verify. `ran`: code ran since
/// the last collection.
///
/// # Safety
/// As for [`verify`].
pub(crate) unsafe fn check(heap: &Heap, roots: &[&mut [Term]], when: &str, ran: bool) {
    let roots: Vec<&[Term]> = roots.iter().map(|r| &**r).collect();
    // Only in the window may a message be pointed to.
    let extra: Option<&[(usize, usize)]> = if heap.window { None } else { Some(&[]) };
    // SAFETY: by the contract, which is that of [`verify`].
    if let Err(e) = unsafe { verify_all(heap, &roots, extra, ran) } {
        damaged(when, &e);
    }
}

/// As [`check`], after code ran.
///
/// # Safety
/// As for [`verify`].
pub(crate) unsafe fn check_after(heap: &Heap, roots: &[&[Term]], when: &str) {
    let extra: Option<&[(usize, usize)]> = if heap.window { None } else { Some(&[]) };
    // SAFETY: by the contract, which is that of [`verify`].
    if let Err(e) = unsafe { verify_all(heap, roots, extra, true) } {
        damaged(when, &e);
    }
}

fn damaged(when: &str, e: &str) -> ! {
    crate::say!("purlin: damaged heap {when}: {e}{}", stress::seed_note());
    std::process::abort();
}

/// Stress mode, outside collections: verifies a heap after code ran, or not, as often as
/// collections do. `when` says what was done last. `roots`: as for a collection.
///
/// # Safety
/// The heap's own pointers are right, and the roots are initialised.
#[cold]
#[inline(never)]
pub unsafe fn look_after(heap: &Heap, roots: &[&[Term]], when: &str) {
    if due(heap) {
        // SAFETY: by the contract, which is that of [`verify`].
        unsafe { check_after(heap, roots, when) };
    }
}

fn due(heap: &Heap) -> bool {
    stress::once_in(1, heap.all_words() + heap.stack_words())
}

/// Verifies a heap, or not: as often as [`stress::once_in`] says. `ran`: code ran since the last
/// collection.
///
/// # Safety
/// As for [`verify`].
pub(crate) unsafe fn look(heap: &Heap, roots: &[&mut [Term]], when: &str, ran: bool) {
    if due(heap) {
        // SAFETY: by the contract, which is that of [`verify`].
        unsafe { check(heap, roots, when, ran) };
    }
}
