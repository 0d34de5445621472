//! The heap verifier: walks a process heap and says what is wrong with it.
//!
//! The table at the head of [`crate::gc`] says what is checked of each kind of memory.

use crate::bin::RcBin;
use crate::fun::FunEntry;
use crate::heap::Heap;
use crate::layout::{self, NEXT};
use crate::magic::MagicRef;
use crate::node::Node;
use crate::region;
use crate::stress;
use crate::word::{Subtag, TAG_BOXED, TAG_HEADER, TAG_LIST, Term, header_arity, header_subtag};
use std::collections::HashSet;
use std::sync::atomic::Ordering;

/// Objects of one generation.
#[derive(Default)]
struct Found {
    /// Where boxed objects start, sorted once the walk is over.
    starts: Vec<usize>,
    /// Those that must be on the off-heap list.
    owners: Vec<usize>,
    /// Words that are terms: (address, word).
    terms: Vec<(usize, Term)>,
    /// Start and end addresses, sorted once the walk is over.
    areas: Vec<(usize, usize)>,
}

impl Found {
    fn holds(&self, a: usize) -> bool {
        let i = self.areas.partition_point(|&(lo, _)| lo <= a);
        i > 0 && a < self.areas[i - 1].1
    }
}

/// Walks the block, the fragments, the old block and the stack.
///
/// # Safety
/// The heap's own pointers (block bounds, lists) are right; `roots` are initialised.
pub unsafe fn verify(heap: &Heap, roots: &[&[Term]]) -> Result<(), String> {
    verify_with(heap, roots, Some(&[]))
}

/// As [`verify`]; `extra` are (start, end) addresses that may be pointed into besides, such as a queued message.
/// None allows any pointer that leads out of the heap.
///
/// # Safety
/// As for [`verify`].
pub unsafe fn verify_with(
    heap: &Heap,
    roots: &[&[Term]],
    extra: Option<&[(usize, usize)]>,
) -> Result<(), String> {
    verify_all(heap, roots, extra, false)
}

/// The free runs of the old generation, as sorted start and end addresses: each is what an object of its size would be there.
unsafe fn free_runs(heap: &Heap, old: &Found) -> Result<Vec<(usize, usize)>, String> {
    let Some(r) = &heap.runs else {
        return Ok(Vec::new());
    };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut words = 0;
    for &(p, n) in r.free_runs() {
        let at = p as usize;
        let is_one = old.starts.binary_search(&at).is_ok()
            && header_subtag((*p).raw()) as u8 == Subtag::PosBig as u8
            && layout::object_words(p) == n;
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

/// As [`verify_with`]. `ran`: code ran since the last collection, so that what is young may point to regions which others
/// hold that are held: it found them there.
unsafe fn verify_all(
    heap: &Heap,
    roots: &[&[Term]],
    extra: Option<&[(usize, usize)]>,
    ran: bool,
) -> Result<(), String> {
    let mut young = Found::default();
    let mut old = Found::default();
    if heap.htop > heap.stop || heap.high_water > heap.htop || heap.high_water < heap.heap {
        return Err("the heap's bounds are out of order".into());
    }
    walk(heap.heap, heap.used_words(), &mut young)?;
    let mut frag_owners = Vec::new();
    for f in &heap.frags {
        for (p, n) in f.areas() {
            walk(p, n, &mut young)?;
        }
        list_objects(f.off_heap.first, &mut frag_owners)?;
    }
    let old_words = (heap.old_htop as usize - heap.old_heap as usize) >> 3;
    walk(heap.old_heap, old_words, &mut old)?;
    // Dead objects may lead to some that were taken apart already.
    if let Some(r) = &heap.runs {
        old.terms.retain(|&(at, _)| !r.is_dead(at));
    }
    for found in [&mut young, &mut old] {
        found.starts.sort_unstable();
        found.areas.sort_unstable();
    }
    let free = free_runs(heap, &old)?;
    list_objects(heap.off_heap.first, &mut frag_owners)?;
    same_objects("young", &mut young.owners, frag_owners)?;
    let mut old_list = Vec::new();
    list_objects(heap.old_off_heap.first, &mut old_list)?;
    same_objects("old", &mut old.owners, old_list)?;

    // Regions that young terms refer to are held by either generation, those of old terms by theirs.
    let of = |s: &region::RegionSet| s.iter().map(|r| r as *const region::Region).collect();
    let old_held: HashSet<*const region::Region> = of(&heap.old_off_heap.regions);
    let mut held: HashSet<*const region::Region> = of(&heap.off_heap.regions);
    for f in &heap.frags {
        held.extend(of(&f.off_heap.regions));
    }
    if ran {
        held.extend(&old_held);
        let mut todo: Vec<*const region::Region> = held.iter().copied().collect();
        while let Some(r) = todo.pop() {
            todo.extend((*r).held().filter(|&h| held.insert(h)));
        }
    }
    // What is old or will be with the next collection points to what is older, or to regions: not to a fragment, nor to a
    // message that is looked at and will be one.
    let mature = heap.heap as usize..heap.high_water as usize;
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
    let mut live = Live {
        heap,
        roots,
        young: &young,
        old: &old,
        ran,
        young_words: None,
        words: None,
    };
    for &(at, t) in &young.terms {
        let a = t.ptr() as usize;
        let stays = t.is_immed() || mature.contains(&a) || old.holds(a);
        let younger = mature.contains(&at) && !stays && !region::is_region_ptr(t.ptr());
        if younger && !live.excuses(at) {
            return Err(format!("mature word {at:x} points to younger {a:x}"));
        }
    }
    // Whether it leads to memory that is known, or nowhere; false: to a message, perhaps.
    let check = |at: usize, t: Term| -> Result<bool, String> {
        match t.raw() & 3 {
            TAG_LIST | TAG_BOXED => {}
            _ => return Ok(true),
        }
        let a = t.ptr() as usize;
        if a & 7 != 0 || a == 0 || a >> 47 != 0 {
            return Err(format!("word {at:x} is no pointer: {:x}", t.raw()));
        }
        if heap.runs.as_ref().is_some_and(|r| r.is_dead(a)) {
            return Err(format!(
                "word {at:x} points to what a sweep found dead, at {a:x}"
            ));
        }
        let i = free.partition_point(|&(lo, _)| lo <= a);
        if i > 0 && a < free[i - 1].1 {
            return Err(format!("word {at:x} points into a free run, at {a:x}"));
        }
        for g in [&young, &old] {
            if !g.holds(a) {
                continue;
            }
            if t.is_boxed() {
                if g.starts.binary_search(&a).is_err() {
                    return Err(format!("word {at:x} points into an object, at {a:x}"));
                }
            } else if !g.holds(a + 8) || (*t.ptr()).is_header() || (*t.ptr().add(1)).is_header() {
                return Err(format!("word {at:x} points to no cell, at {a:x}"));
            }
            return Ok(true);
        }
        if region::is_region_ptr(t.ptr()) {
            let Some(r) = region::region_of(t.ptr()) else {
                return Err(format!("word {at:x} points to a freed region, at {a:x}"));
            };
            object_in_region(r, t).map_err(|e| format!("word {at:x} points {e}, at {a:x}"))?;
            let in_old = old.holds(at);
            // A message that is looked at where it lies holds its regions itself, and code its literals.
            let may_be_queued = !in_old && (extra.is_none() || r.is_code());
            if region::is_counted_ptr(t.ptr())
                && !may_be_queued
                && !old_held.contains(&(r as *const _))
                && (in_old || !held.contains(&(r as *const _)))
            {
                return Err(format!(
                    "word {at:x} points to a region that isn't held, at {a:x}"
                ));
            }
            return Ok(true);
        }
        match extra {
            None => Ok(false),
            Some(v) if v.iter().any(|&(lo, hi)| a >= lo && a < hi) => Ok(false),
            Some(_) => Err(format!("word {at:x} points nowhere known: {a:x}")),
        }
    };
    for g in [&young, &old] {
        // Words of what is not reached that may lead to memory of others by now: nobody may look there.
        let mut lost: HashSet<usize> = HashSet::new();
        for &(at, t) in &g.terms {
            let checked = check(at, t);
            if checked != Ok(true) && live.excuses(at) {
                lost.insert(at);
            } else {
                checked?;
            }
        }
        for &p in &g.starts {
            let (a, b) = layout::term_range(p as *mut Term);
            let is_lost = !lost.is_empty() && (a..b).any(|k| lost.contains(&(p + k * 8)));
            if is_lost || heap.runs.as_ref().is_some_and(|r| r.is_dead(p)) {
                continue;
            }
            if let Err(e) = check_object(p as *const Term)
                && !live.excuses_object(p)
            {
                return Err(e);
            }
        }
    }
    for (t, shared) in heap.sent.iter().flat_map(|s| s.terms()) {
        let a = t.ptr() as usize;
        if heap.runs.as_ref().is_some_and(|r| r.is_dead(a)) {
            return Err(format!("what was sent as {:x} died at {a:x}", shared.raw()));
        }
        if !(young.holds(a) || old.holds(a)) || region::region_of(shared.ptr()).is_none() {
            return Err(format!("what was sent as {:x} lies at {a:x}", shared.raw()));
        }
    }
    for i in 0..heap.stack_words() {
        let p = heap.stop.add(i);
        check(p as usize, *p).map_err(|e| format!("stack slot {i}: {e}"))?;
    }
    for (k, r) in roots.iter().enumerate() {
        for (i, &t) in r.iter().enumerate() {
            check(i, t).map_err(|e| format!("root {i} of slice {k}: {e}"))?;
        }
    }
    Ok(())
}

/// Tells who is alive, and is asked when something is wrong. Two kinds of dead objects are no damage:
/// * What was made while a message was looked at that was refused points into the message yet, which may have gone since: by another
///   receive, which has copied it, or because it was flushed.
/// * A match context over a binary that has been appended to, and given other memory for that, has the address of before.
struct Live<'a> {
    heap: &'a Heap,
    roots: &'a [&'a [Term]],
    young: &'a Found,
    old: &'a Found,
    /// Code ran since the last collection, which has left nothing young that is not reached.
    ran: bool,
    /// Words of young objects that are reached, once somebody has asked; and of all objects.
    young_words: Option<HashSet<usize>>,
    words: Option<HashSet<usize>>,
}

impl Live<'_> {
    /// Whether the word at address `at` is a young object's that is not reached: what it says may lead nowhere. What is old only
    /// refers to what is old, and to regions that the generation holds: so nothing there is excused.
    unsafe fn excuses(&mut self, at: usize) -> bool {
        if !self.ran || !self.young.holds(at) {
            return false;
        }
        let (heap, roots, young) = (self.heap, self.roots, self.young);
        let words = self
            .young_words
            .get_or_insert_with(|| reached(heap, roots, &[young]));
        !words.contains(&at)
    }
    /// Whether the object at `p`, which refers to others, is not reached: they may have changed.
    unsafe fn excuses_object(&mut self, p: usize) -> bool {
        if !self.ran && self.young.holds(p) {
            return false;
        }
        let (heap, roots, both) = (self.heap, self.roots, [self.young, self.old]);
        let words = self
            .words
            .get_or_insert_with(|| reached(heap, roots, &both));
        let (a, b) = layout::term_range(p as *mut Term);
        a < b && !(a..b).any(|k| words.contains(&(p + k * 8)))
    }
}

/// The addresses of those words of the objects in `found` that can be reached from the roots and the stack by way of these.
unsafe fn reached(heap: &Heap, roots: &[&[Term]], found: &[&Found]) -> HashSet<usize> {
    let stack = (0..heap.stack_words()).map(|i| *heap.stop.add(i));
    let mut todo: Vec<Term> = stack.filter(|t| !t.is_header()).collect();
    todo.extend(roots.iter().flat_map(|r| r.iter()));
    let mut words = HashSet::new();
    while let Some(t) = todo.pop() {
        let p = t.ptr();
        if t.is_immed() || !found.iter().any(|g| g.holds(p as usize)) {
            continue;
        }
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
    words
}

/// Whether the old generation holds what it refers to of `regions`, which code held until now: a message for the first word that
/// leads into one that it does not hold.
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
    walk(heap.old_heap, heap.old_words(), &mut old)?;
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

/// Stress mode: a heap for which [`verify_old_holds`] is not true ends the runtime.
///
/// # Safety
/// As there.
#[cold]
pub unsafe fn check_old_holds(heap: &Heap, regions: &[&region::Region]) {
    if let Err(e) = verify_old_holds(heap, regions) {
        damaged("as literals are purged", &e);
    }
}

/// A region refers to regions only, and holds those of them that are counted. An object that owns something is on its list.
///
/// # Safety
/// The region is alive.
pub unsafe fn verify_region(r: &region::Region) -> Result<(), String> {
    let mut f = Found::default();
    let (p, n) = r.area();
    walk(p, n, &mut f)?;
    let mut listed = Vec::new();
    list_objects(r.owners(), &mut listed)?;
    same_objects("region's", &mut f.owners, listed)?;
    for (at, t) in f.terms {
        if t.is_immed() {
            continue;
        }
        // One that is verified before it is published is in no table yet.
        let own = (t.ptr() as usize).wrapping_sub(p as usize) < n * 8;
        let to = if own {
            Some(r)
        } else {
            region::region_of(t.ptr())
        };
        let Some(to) = to else {
            return Err(format!("region word {at:x} points out: {:x}", t.raw()));
        };
        object_in_region(to, t)
            .map_err(|e| format!("region word {at:x} points {e}: {:x}", t.raw()))?;
        if !own && region::is_counted_ptr(t.ptr()) && !r.holds(t.ptr()) {
            return Err(format!(
                "region word {at:x} points to a region that isn't held: {:x}",
                t.raw()
            ));
        }
    }
    for p in f.starts {
        check_object(p as *const Term)?;
    }
    Ok(())
}

/// Stress mode: a heap that does not verify ends the runtime, with the reason. `ran`: code ran since the last collection.
pub(crate) unsafe fn check(heap: &Heap, roots: &[&mut [Term]], when: &str, ran: bool) {
    let roots: Vec<&[Term]> = roots.iter().map(|r| &**r).collect();
    // Only in the window is there a message that may be pointed to.
    let extra: Option<&[(usize, usize)]> = if heap.window { None } else { Some(&[]) };
    if let Err(e) = verify_all(heap, &roots, extra, ran) {
        damaged(when, &e);
    }
}

/// As [`check`], after code ran.
pub(crate) unsafe fn check_after(heap: &Heap, roots: &[&[Term]], when: &str) {
    let extra: Option<&[(usize, usize)]> = if heap.window { None } else { Some(&[]) };
    if let Err(e) = verify_all(heap, roots, extra, true) {
        damaged(when, &e);
    }
}

fn damaged(when: &str, e: &str) -> ! {
    eprintln!("purlin: damaged heap {when}: {e}{}", stress::told());
    std::process::abort();
}

/// Stress mode: as [`check`], for a region that was just filled.
pub(crate) unsafe fn check_region(r: &region::Region) {
    if let Err(e) = verify_region(r) {
        eprintln!("purlin: damaged region: {e}{}", stress::told());
        std::process::abort();
    }
}

/// A term that leads to a region leads to an object of its kind there.
unsafe fn object_in_region(r: &region::Region, t: Term) -> Result<(), &'static str> {
    let (base, words) = r.area();
    // One that was published empty is filled by its owner afterwards.
    let words = if words == 0 { r.room() } else { words };
    let at = (t.ptr() as usize).wrapping_sub(base as usize) >> 3;
    if at >= words {
        return Err("behind a region");
    }
    if t.is_boxed() {
        let p = t.ptr();
        if !(*p).is_header() || layout::object_words(p) > words - at {
            return Err("into an object of a region");
        }
    } else if at + 2 > words || (*t.ptr()).is_header() || (*t.ptr().add(1)).is_header() {
        return Err("to no cell of a region");
    }
    Ok(())
}

unsafe fn walk(base: *mut Term, words: usize, found: &mut Found) -> Result<(), String> {
    if words == 0 {
        return Ok(());
    }
    found.areas.push((base as usize, base as usize + words * 8));
    let mut i = 0;
    while i < words {
        let p = base.add(i);
        let w = (*p).raw();
        if w & 3 != TAG_HEADER {
            if (*p).is_catch() {
                return Err(format!("a catch mark on the heap, at {p:?}"));
            }
            if w == stress::POISON {
                return Err(format!("poison on the heap, at {p:?}"));
            }
            found.terms.push((p as usize, *p));
            i += 1;
            continue;
        }
        // Filler of one word.
        if *p == Term::NON_VALUE {
            i += 1;
            continue;
        }
        let sub = header_subtag(w);
        if sub as u8 == Subtag::UnusedB as u8 {
            return Err(format!("header {w:x} of no object, at {p:?}"));
        }
        if sub as u8 == Subtag::Map as u8 && i + 1 >= words {
            return Err(format!("map {w:x} cut off, at {p:?}"));
        }
        let n = layout::object_words(p);
        if n > words - i {
            return Err(format!("object {w:x} is longer than the heap, at {p:?}"));
        }
        let least = match sub {
            Subtag::Tuple => 1,
            Subtag::PosBig
            | Subtag::NegBig
            | Subtag::Float
            | Subtag::HeapBin
            | Subtag::Record
            | Subtag::Map => 2,
            Subtag::Ref => layout::REF_WORDS,
            Subtag::Fun => layout::FUN_WORDS,
            Subtag::RefcBin => layout::REFC_BIN_WORDS,
            Subtag::SubBin => layout::SUB_BIN_WORDS,
            Subtag::MatchContext => layout::MATCH_CONTEXT_WORDS,
            _ => layout::EXT_PID_WORDS,
        };
        if n < least {
            return Err(format!("object {w:x} is too short, at {p:?}"));
        }
        found.starts.push(p as usize);
        let owns = match sub {
            Subtag::Ref => layout::is_magic(p),
            Subtag::Fun => (*p.add(3)).raw() >> 16 & 1 == 0,
            s => layout::may_be_off_heap(s),
        };
        if owns {
            found.owners.push(p as usize);
        }
        let (a, b) = layout::term_range(p);
        for k in a..b {
            let t = *p.add(k);
            if t.is_header() || t.is_catch() || t.raw() == stress::POISON {
                return Err(format!(
                    "word {k} of object {w:x} at {p:?} is {:x}",
                    t.raw()
                ));
            }
            found.terms.push((p.add(k) as usize, t));
        }
        i += n;
    }
    Ok(())
}

/// Bits of a binary that is the original of others: those that are there, for one that its writer may append to.
unsafe fn bits_there(orig: *const Term) -> usize {
    match header_subtag((*orig).raw()) {
        Subtag::RefcBin => {
            let b = (*orig.add(3)).raw() as *const RcBin;
            match RcBin::is_foreign(b) {
                true => (*orig.add(1)).raw() as usize * 8,
                false => (*b).capacity * 8,
            }
        }
        _ => (*orig.add(1)).raw() as usize * 8,
    }
}

/// A count of something that an object in hand refers to.
fn counted(what: &str, n: u64, p: *const Term) -> Result<(), String> {
    match n {
        1..0x7FFF_FFFF_FFFF => Ok(()),
        _ => Err(format!("{what} of {p:?} has a count of {n}")),
    }
}

/// Checks what takes a look at other objects, or outside the heap. Pointers to terms were checked before.
unsafe fn check_object(p: *const Term) -> Result<(), String> {
    let w = (*p).raw();
    match header_subtag(w) {
        Subtag::Fun => {
            let free = (*p.add(3)).raw() >> 8 & 0xFF;
            if header_arity(w) != 4 + free as usize {
                return Err(format!("fun at {p:?} has {free} free variables in {w:x}"));
            }
            let (entry, external) = ((*p.add(1)).raw(), (*p.add(3)).raw() >> 16 & 1);
            if entry == 0 || entry & 7 != 0 || entry >> 47 != 0 {
                return Err(format!("fun at {p:?} leads to {entry:x}"));
            }
            // An entry's count is kept by several threads: what is looked at is that it is one.
            if external == 0 && !(*(entry as *const FunEntry)).module.is_immed() {
                return Err(format!("fun at {p:?} leads to no entry"));
            }
        }
        Subtag::Ref if layout::is_magic(p) => {
            let m = (*p.add(1)).raw() as *const MagicRef;
            counted("the value", (*m).refc.load(Ordering::Relaxed), p)?;
        }
        Subtag::ExtPid | Subtag::ExtPort | Subtag::ExtRef => {
            let n = (*p.add(1)).raw() as *const Node;
            counted("the node", (*n).refc.load(Ordering::Relaxed), p)?;
        }
        Subtag::HeapBin => {
            let size = (*p.add(1)).raw() as usize;
            if header_arity(w) != 1 + size.div_ceil(8) {
                return Err(format!("heap binary at {p:?} of {size} bytes in {w:x}"));
            }
        }
        Subtag::RefcBin => {
            let b = (*p.add(3)).raw() as *const RcBin;
            counted("the binary", (*b).refc.load(Ordering::Relaxed), p)?;
            let (size, at) = ((*p.add(1)).raw() as usize, (*p.add(4)).raw() as usize);
            let (first, room) = (RcBin::bytes(b) as usize, (*b).capacity);
            if RcBin::is_foreign(b) {
                return Ok(());
            }
            if at < first || at - first > room || size > room - (at - first) {
                return Err(format!("binary at {p:?} goes beyond its bytes"));
            }
        }
        Subtag::SubBin | Subtag::MatchContext => {
            let sub = header_subtag(w) as u8 == Subtag::SubBin as u8;
            let orig = *p.add(if sub { 4 } else { 1 });
            if !matches!(orig.subtag(), Some(Subtag::HeapBin | Subtag::RefcBin)) {
                return Err(format!("original of {p:?} is {:x}", orig.raw()));
            }
            let (from, end) = if sub {
                let m = (*p.add(3)).raw();
                let from = (*p.add(2)).raw() as usize * 8 + (m >> 8 & 0xFF) as usize;
                let bits = (*p.add(1)).raw() as usize * 8 + (m & 0xFF) as usize;
                (from, from.saturating_add(bits))
            } else {
                ((*p.add(3)).raw() as usize, (*p.add(4)).raw() as usize)
            };
            if from > end || end > bits_there(orig.ptr()) {
                return Err(format!("{p:?} goes beyond its original"));
            }
            let base = match orig.as_bits() {
                Some(b) => b.base as u64,
                None => 0,
            };
            if !sub && (*p.add(2)).raw() != base {
                return Err(format!("match context at {p:?} has a stale base"));
            }
        }
        Subtag::Record => {
            let n = header_arity(w) - 1;
            let parts = (*p.add(1)).as_tuple().unwrap_or_default();
            let [order, hash, module, name, exported, keys @ ..] = parts else {
                return Err(format!("record at {p:?} has no definition"));
            };
            let places = order.as_tuple().unwrap_or_default();
            let named = [module, name, exported].into_iter().chain(keys);
            if keys.len() != n
                || places.len() != n
                || !hash.is_small()
                || !named.into_iter().all(|t| t.is_atom())
                || !places
                    .iter()
                    .all(|i| i.as_small().is_some_and(|i| (0..n as i64).contains(&i)))
            {
                return Err(format!("record at {p:?} is not of its definition"));
            }
        }
        Subtag::Map if w == layout::FLATMAP_HEADER => {
            let n = (*p.add(1)).raw() as usize;
            if (*p.add(2)).as_tuple().map(|k| k.len()) != Some(n) {
                return Err(format!("flat map at {p:?} of {n} pairs has other keys"));
            }
        }
        _ => {}
    }
    Ok(())
}

unsafe fn list_objects(first: *mut Term, into: &mut Vec<usize>) -> Result<(), String> {
    let mut p = first;
    while !p.is_null() {
        if (p as usize) & 7 != 0 || (p as u64) == stress::POISON {
            return Err(format!("an off-heap list leads to {p:?}"));
        }
        into.push(p as usize);
        if into.len() > 1 << 40 {
            return Err("an off-heap list without end".into());
        }
        p = (*p.add(NEXT)).raw() as *mut Term;
    }
    Ok(())
}

fn same_objects(which: &str, found: &mut [usize], mut listed: Vec<usize>) -> Result<(), String> {
    found.sort_unstable();
    listed.sort_unstable();
    if found != &listed[..] {
        return Err(format!(
            "the {which} off-heap list holds {} objects, the heap {}",
            listed.len(),
            found.len()
        ));
    }
    Ok(())
}

/// The mode, for code outside collections: verifies a heap after code ran, or not, as collections do. `when` tells what was
/// done last. `roots`: as of a collection.
///
/// # Safety
/// The heap's own pointers are right, and the roots are initialised.
#[cold]
#[inline(never)]
pub unsafe fn look_after(heap: &Heap, roots: &[&[Term]], when: &str) {
    if due(heap) {
        check_after(heap, roots, when);
    }
}

fn due(heap: &Heap) -> bool {
    stress::once_in(1, heap.all_words() + heap.stack_words())
}

/// Verifies a heap, or not: as often as [`stress::once_in`] says. `ran`: code ran since the last collection.
pub(crate) unsafe fn look(heap: &Heap, roots: &[&mut [Term]], when: &str, ran: bool) {
    if due(heap) {
        check(heap, roots, when, ran);
    }
}
