//! Verifies consecutive objects, and regions, which consist of nothing else.
//!
//! [`walk`] goes from header to header and collects where objects begin. The checks after it rely
//! on that: a pointer is valid if it leads to one of these places.

use crate::bin::RcBin;
use crate::fun::FunEntry;
use crate::layout::{self, NEXT};
use crate::magic::MagicRef;
use crate::node::Node;
use crate::region;
use crate::stress;
use crate::word::{Subtag, TAG_HEADER, Term, header_arity, header_subtag};
use std::sync::atomic::Ordering;

/// Objects of one generation.
#[derive(Default)]
pub(super) struct Found {
    /// Start addresses of boxed objects, sorted once the walk is over.
    pub(super) starts: Vec<usize>,
    /// Objects that must be on the off-heap list.
    pub(super) owners: Vec<usize>,
    /// Words that are terms: (address, word).
    pub(super) terms: Vec<(usize, Term)>,
    /// Start and end addresses, sorted once the walk is over.
    pub(super) areas: Vec<(usize, usize)>,
}

impl Found {
    pub(super) fn holds(&self, a: usize) -> bool {
        let i = self.areas.partition_point(|&(lo, _)| lo <= a);
        i > 0 && a < self.areas[i - 1].1
    }
}

/// Checks that a region refers to regions only, and holds the counted ones among them, and that its
/// objects that own something are on its list.
///
/// # Safety
/// The region is alive.
pub unsafe fn verify_region(r: &region::Region) -> Result<(), String> {
    let mut f = Found::default();
    let (p, n) = r.area();
    // SAFETY: by the contract, the words of the region are initialised.
    unsafe { walk(p, n, &mut f) }?;
    let mut listed = Vec::new();
    // SAFETY: by the contract, its list is right.
    unsafe { list_objects(r.owners(), &mut listed) }?;
    same_objects("region's", &mut f.owners, listed)?;
    for (at, t) in f.terms {
        if t.is_immed() {
            continue;
        }
        // A region that is verified before it is published is in no table yet.
        let own = (t.ptr() as usize).wrapping_sub(p as usize) < n * 8;
        let to = if own {
            Some(r)
        } else {
            region::region_of(t.ptr())
        };
        let Some(to) = to else {
            return Err(format!("region word {at:x} points out: {:x}", t.raw()));
        };
        // SAFETY: the region is live: it is this one, or `region_of` has returned it.
        unsafe {
            object_in_region(to, t)
                .map_err(|e| format!("region word {at:x} points {e}: {:x}", t.raw()))?;
        }
        if !own && region::is_counted_ptr(t.ptr()) && !r.holds(t.ptr()) {
            return Err(format!(
                "region word {at:x} points to a region that isn't held: {:x}",
                t.raw()
            ));
        }
    }
    for p in f.starts {
        // SAFETY: the walk has found that an object starts there, and its pointers were checked.
        unsafe { check_object(p as *const Term) }?;
    }
    Ok(())
}

/// Stress mode: ends the runtime if a region that was just filled does not verify.
///
/// # Safety
/// As for [`verify_region`].
pub(crate) unsafe fn check_region(r: &region::Region) {
    // SAFETY: by the contract, the region is alive.
    if let Err(e) = unsafe { verify_region(r) } {
        crate::say!("purlin: damaged region: {e}{}", stress::seed_note());
        std::process::abort();
    }
}

/// Checks that a term that leads to a region leads to an object of its kind there.
///
/// # Safety
/// The region is alive, and `t` is a tagged pointer into it.
pub(super) unsafe fn object_in_region(r: &region::Region, t: Term) -> Result<(), &'static str> {
    let (base, words) = r.area();
    // A region that was published empty is filled by its owner afterwards.
    let words = if words == 0 { r.room() } else { words };
    let at = (t.ptr() as usize).wrapping_sub(base as usize) >> 3;
    if at >= words {
        return Err("behind a region");
    }
    // SAFETY: `at` is less than the number of words, and the second word of a cell is read only if
    // it is there.
    unsafe {
        if t.is_boxed() {
            let p = t.ptr();
            if !(*p).is_header() || layout::object_words(p) > words - at {
                return Err("into an object of a region");
            }
        } else if at + 2 > words || (*t.ptr()).is_header() || (*t.ptr().add(1)).is_header() {
            return Err("to no cell of a region");
        }
    }
    Ok(())
}

/// Collects the objects in some words.
///
/// # Safety
/// The words are initialised, and stay while they are looked at.
pub(super) unsafe fn walk(base: *mut Term, words: usize, found: &mut Found) -> Result<(), String> {
    if words == 0 {
        return Ok(());
    }
    found.areas.push((base as usize, base as usize + words * 8));
    let mut i = 0;
    while i < words {
        // SAFETY: by the contract: `i` is less than `words`.
        let (p, t) = unsafe { (base.add(i), *base.add(i)) };
        let w = t.raw();
        if w & 3 != TAG_HEADER {
            if t.is_catch() {
                return Err(format!("a catch mark on the heap, at {p:?}"));
            }
            if w == stress::POISON {
                return Err(format!("poison on the heap, at {p:?}"));
            }
            found.terms.push((p as usize, t));
            i += 1;
            continue;
        }
        // Filler of one word.
        if t == Term::NON_VALUE {
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
        // SAFETY: a map's second word is there, as checked, and no other header needs one.
        let n = unsafe { layout::object_words(p) };
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
        // SAFETY: the object has as many words as its kind needs, and fits the area.
        let owns = unsafe {
            match sub {
                Subtag::Ref => layout::is_magic(p),
                Subtag::Fun => (*p.add(3)).raw() >> 16 & 1 == 0,
                s => layout::may_be_off_heap(s),
            }
        };
        if owns {
            found.owners.push(p as usize);
        }
        // SAFETY: the object has as many words as its kind needs, and fits the area.
        unsafe {
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
        }
        i += n;
    }
    Ok(())
}

/// Number of valid bits of a binary that is the original of others; for a writable binary those
/// that are in use.
///
/// # Safety
/// `orig` is the header of a heap binary or of a counted one, whose block is alive.
unsafe fn bits_there(orig: *const Term) -> usize {
    // SAFETY: by the contract, it is a binary whose block is alive.
    unsafe {
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
}

/// Checks the count of something that an object in hand refers to.
fn counted(what: &str, n: u64, p: *const Term) -> Result<(), String> {
    match n {
        1..0x7FFF_FFFF_FFFF => Ok(()),
        _ => Err(format!("{what} of {p:?} has a count of {n}")),
    }
}

/// Checks a sub-binary or match context against its original.
///
/// # Safety
/// As for [`check_object`].
unsafe fn check_part(p: *const Term) -> Result<(), String> {
    // SAFETY: by the contract; fields are read as `layout` draws them.
    unsafe {
        let w = (*p).raw();
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
    Ok(())
}

/// Checks a record of `n` values against its definition.
///
/// # Safety
/// As for [`check_object`].
unsafe fn check_record(p: *const Term, n: usize) -> Result<(), String> {
    // SAFETY: by the contract, word 1 of a record is its definition.
    let definition = unsafe { *p.add(1) };
    let parts = definition.as_tuple().unwrap_or_default();
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
    Ok(())
}

/// Checks what requires a look at other objects, or outside the heap. Pointers to terms were
/// checked before.
///
/// # Safety
/// `p` is the start of a whole object; the pointers in it lead to whole objects.
pub(super) unsafe fn check_object(p: *const Term) -> Result<(), String> {
    // SAFETY: by the contract; fields are read as `layout` draws them, and pointers to terms were
    // checked.
    unsafe {
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
                // Several threads change an entry's count: only whether it is an entry is checked.
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
            Subtag::SubBin | Subtag::MatchContext => check_part(p)?,
            Subtag::Record => check_record(p, header_arity(w) - 1)?,
            Subtag::Map if w == layout::FLATMAP_HEADER => {
                let n = (*p.add(1)).raw() as usize;
                if (*p.add(2)).as_tuple().map(|k| k.len()) != Some(n) {
                    return Err(format!("flat map at {p:?} of {n} pairs has other keys"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Collects the objects on an off-heap list.
///
/// # Safety
/// The links lead to words of the heap that may be read, or to addresses that are refused.
pub(super) unsafe fn list_objects(first: *mut Term, into: &mut Vec<usize>) -> Result<(), String> {
    let mut p = first;
    // SAFETY: by the contract, links lead to words that may be read; others are refused here.
    unsafe {
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
}

pub(super) fn same_objects(
    which: &str,
    found: &mut [usize],
    mut listed: Vec<usize>,
) -> Result<(), String> {
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
