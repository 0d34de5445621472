//! The heap verifier: walks a process heap and says what is wrong with it.
//!
//! Checked: every word has a tag that may stand there; headers and sizes are sane; pointers lead to an object of
//! their kind in this heap, a region or an area that the caller names; nothing old points to something young or to a
//! message, nor does what the next collection promotes; the off-heap lists hold exactly the objects that own something;
//! counted regions that are pointed into are held. A region points to regions only, and holds those of them that are
//! counted.

use crate::heap::Heap;
use crate::layout::{self, NEXT};
use crate::region;
use crate::word::{Subtag, TAG_BOXED, TAG_HEADER, TAG_LIST, Term, header_arity, header_subtag};
use std::collections::HashSet;

/// Objects of one generation.
#[derive(Default)]
struct Found {
    /// Where boxed objects start, sorted once the walk is over.
    starts: Vec<usize>,
    /// Those that must be on the off-heap list.
    owners: Vec<usize>,
    /// Words that are terms: (address, word).
    terms: Vec<(usize, Term)>,
    /// Start and end addresses.
    areas: Vec<(usize, usize)>,
}

impl Found {
    fn holds(&self, a: usize) -> bool {
        self.areas.iter().any(|&(lo, hi)| a >= lo && a < hi)
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
    young.starts.sort_unstable();
    old.starts.sort_unstable();
    list_objects(heap.off_heap.first, &mut frag_owners)?;
    same_objects("young", &mut young.owners, frag_owners)?;
    let mut old_list = Vec::new();
    list_objects(heap.old_off_heap.first, &mut old_list)?;
    same_objects("old", &mut old.owners, old_list)?;

    // What young terms refer to is held by either generation, what old ones do by theirs.
    let of = |s: &region::RegionSet| s.iter().map(|r| r as *const region::Region).collect();
    let old_held: HashSet<*const region::Region> = of(&heap.old_off_heap.regions);
    let mut held: HashSet<*const region::Region> = of(&heap.off_heap.regions);
    for f in &heap.frags {
        held.extend(of(&f.off_heap.regions));
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
    for &(at, t) in &young.terms {
        let a = t.ptr() as usize;
        let stays = t.is_immed() || mature.contains(&a) || old.holds(a);
        if mature.contains(&at) && !stays && !region::is_region_ptr(t.ptr()) {
            return Err(format!("mature word {at:x} points to younger {a:x}"));
        }
    }
    let check = |at: usize, t: Term| -> Result<(), String> {
        match t.raw() & 3 {
            TAG_LIST | TAG_BOXED => {}
            _ => return Ok(()),
        }
        let a = t.ptr() as usize;
        if a & 7 != 0 || a == 0 || a >> 47 != 0 {
            return Err(format!("word {at:x} is no pointer: {:x}", t.raw()));
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
            return Ok(());
        }
        if region::is_region_ptr(t.ptr()) {
            let Some(r) = region::region_of(t.ptr()) else {
                return Err(format!("word {at:x} points to a freed region, at {a:x}"));
            };
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
            return Ok(());
        }
        match extra {
            None => Ok(()),
            Some(v) if v.iter().any(|&(lo, hi)| a >= lo && a < hi) => Ok(()),
            Some(_) => Err(format!("word {at:x} points nowhere known: {a:x}")),
        }
    };
    for g in [&young, &old] {
        for &(at, t) in &g.terms {
            check(at, t)?;
        }
        for &p in &g.starts {
            check_object(p as *const Term)?;
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

/// A region refers to regions only, and holds those of them that are counted.
///
/// # Safety
/// The region is alive.
pub unsafe fn verify_region(r: &region::Region) -> Result<(), String> {
    let mut f = Found::default();
    let (p, n) = r.area();
    walk(p, n, &mut f)?;
    for (at, t) in f.terms {
        if t.is_immed() {
            continue;
        }
        if !region::is_region_ptr(t.ptr()) {
            return Err(format!("region word {at:x} points out: {:x}", t.raw()));
        }
        let own = (t.ptr() as usize).wrapping_sub(p as usize) < n * 8;
        if !own && region::is_counted_ptr(t.ptr()) && !r.holds(t.ptr()) {
            return Err(format!(
                "region word {at:x} points to a region that isn't held: {:x}",
                t.raw()
            ));
        }
    }
    Ok(())
}

/// Stress mode: a heap that does not verify ends the runtime, with the reason.
pub(crate) unsafe fn check(heap: &Heap, roots: &[&mut [Term]], when: &str) {
    let roots: Vec<&[Term]> = roots.iter().map(|r| &**r).collect();
    if let Err(e) = verify_with(heap, &roots, None) {
        eprintln!("purlin: damaged heap {when}: {e}");
        std::process::abort();
    }
}

/// Stress mode: as [`check`], for a region that was just filled.
pub(crate) unsafe fn check_region(r: &region::Region) {
    if let Err(e) = verify_region(r) {
        eprintln!("purlin: damaged region: {e}");
        std::process::abort();
    }
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
            if w == crate::gc::POISON {
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
        if matches!(sub, Subtag::Unused7 | Subtag::UnusedB) {
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
            Subtag::PosBig | Subtag::NegBig | Subtag::Float | Subtag::HeapBin | Subtag::Map => 2,
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
            if t.is_header() || t.is_catch() || t.raw() == crate::gc::POISON {
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

/// What takes other objects to check. Pointers were checked before.
unsafe fn check_object(p: *const Term) -> Result<(), String> {
    let w = (*p).raw();
    match header_subtag(w) {
        Subtag::Fun => {
            let free = (*p.add(3)).raw() >> 8 & 0xFF;
            if header_arity(w) != 4 + free as usize {
                return Err(format!("fun at {p:?} has {free} free variables in {w:x}"));
            }
        }
        Subtag::HeapBin => {
            let size = (*p.add(1)).raw() as usize;
            if header_arity(w) != 1 + size.div_ceil(8) {
                return Err(format!("heap binary at {p:?} of {size} bytes in {w:x}"));
            }
        }
        Subtag::SubBin | Subtag::MatchContext => {
            let at = if header_subtag(w) as u8 == Subtag::SubBin as u8 {
                4
            } else {
                1
            };
            let orig = *p.add(at);
            if !matches!(orig.subtag(), Some(Subtag::HeapBin | Subtag::RefcBin)) {
                return Err(format!("original of {p:?} is {:x}", orig.raw()));
            }
            let base = match orig.as_bits() {
                Some(b) => b.base as u64,
                None => 0,
            };
            if at == 1 && (*p.add(2)).raw() != base {
                return Err(format!("match context at {p:?} has a stale base"));
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
        if (p as usize) & 7 != 0 || (p as u64) == crate::gc::POISON {
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
