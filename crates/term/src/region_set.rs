//! The counted regions that one holder refers to: a heap (by generation), a message, a stored
//! object, another region.
//!
//! Most holders have none, and nearly all others have one, which costs no block of memory. A few
//! are a sorted list, and more are a table: a heap that refers to ten thousand small regions notes
//! all of them with each collection.
//!
//! Invariant: the set owns one count of each region in it.

use crate::region::{Region, region_of};
use crate::word::Term;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// See the module head.
#[derive(Default)]
pub struct RegionSet(Repr);

/// One word: the address of a region, or that of a box with several regions plus [`SEVERAL`].
#[derive(Default)]
struct Repr(Option<std::ptr::NonNull<u8>>);

// SAFETY: regions are shared between threads, and the box has no other owner; it is changed by
// `&mut` only.
unsafe impl Send for Repr {}
// SAFETY: a reference to it only reads, and regions are shared between threads.
unsafe impl Sync for Repr {}

/// Heads of regions and boxes have a larger alignment.
const SEVERAL: usize = 1;

/// Several regions, and the bytes of terms in all of them.
#[derive(Default)]
struct Several {
    bytes: usize,
    all: All,
}

enum All {
    /// Sorted by the addresses of their heads.
    Few(Vec<&'static Region>),
    Many(HashMap<usize, &'static Region, BuildHasherDefault<Mix>>),
}

impl Default for All {
    fn default() -> All {
        All::Few(Vec::new())
    }
}

/// Maximum number of regions in a list: with more, a table takes less time.
const FEW: usize = 32;

/// Hashes the address of a region's head.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_usize(b.into()));
    }
    fn write_usize(&mut self, n: usize) {
        let n = (self.0 ^ n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = n ^ n >> 32;
    }
}

#[inline]
fn key(r: &'static Region) -> usize {
    r as *const Region as usize
}

impl All {
    fn has(&self, r: &'static Region) -> bool {
        match self {
            All::Few(v) => v.binary_search_by_key(&key(r), |&h| key(h)).is_ok(),
            All::Many(m) => m.contains_key(&key(r)),
        }
    }
    /// Adds `r`. Returns false if it was there.
    fn add(&mut self, r: &'static Region) -> bool {
        match self {
            All::Few(v) => {
                let Err(i) = v.binary_search_by_key(&key(r), |&h| key(h)) else {
                    return false;
                };
                if v.len() < FEW {
                    v.insert(i, r);
                    return true;
                }
                let mut m: HashMap<_, _, _> = v.iter().map(|&r| (key(r), r)).collect();
                m.insert(key(r), r);
                *self = All::Many(m);
                true
            }
            All::Many(m) => m.insert(key(r), r).is_none(),
        }
    }
}

impl RegionSet {
    #[inline]
    fn one(&self) -> Option<&'static Region> {
        let p = self.0.0?.as_ptr();
        // SAFETY: not a box, so the head of a region, of which this set has a count.
        (p as usize & SEVERAL == 0).then(|| unsafe { &*(p as *const Region) })
    }
    #[inline]
    fn several(&self) -> Option<&Several> {
        let p = self.0.0?.as_ptr();
        // SAFETY: from `Box::into_raw`, and this is its only owner.
        (p as usize & SEVERAL != 0).then(|| unsafe { &*(p.sub(SEVERAL) as *const Several) })
    }
    #[inline]
    fn several_mut(&mut self) -> Option<&mut Several> {
        let p = self.0.0?.as_ptr();
        // SAFETY: from `Box::into_raw`, and this is its only owner, which is borrowed mutably.
        (p as usize & SEVERAL != 0).then(|| unsafe { &mut *(p.sub(SEVERAL) as *mut Several) })
    }
    fn set_one(&mut self, r: &'static Region) {
        self.0 = Repr(std::ptr::NonNull::new(r as *const Region as *mut u8));
    }
    fn set_several(&mut self, s: Several) {
        let p = Box::into_raw(Box::new(s)) as *mut u8;
        self.0 = Repr(std::ptr::NonNull::new(p.wrapping_add(SEVERAL)));
    }
    /// Takes the box, if there is one.
    fn take_several(&mut self) -> Option<Box<Several>> {
        let p = self.0.0?.as_ptr();
        if p as usize & SEVERAL == 0 {
            return None;
        }
        self.0 = Repr::default();
        // SAFETY: from `Box::into_raw`; the set forgets it.
        Some(unsafe { Box::from_raw(p.sub(SEVERAL) as *mut Several) })
    }
    /// Adds a region, without a count. Returns false if it was there.
    fn add(&mut self, r: &'static Region) -> bool {
        if let Some(s) = self.several_mut() {
            let fresh = s.all.add(r);
            s.bytes += usize::from(fresh) * r.words * 8;
            return fresh;
        }
        match self.one() {
            Some(one) if std::ptr::eq(one, r) => return false,
            Some(one) => {
                let mut all = All::default();
                all.add(one);
                all.add(r);
                let bytes = (one.words + r.words) * 8;
                self.set_several(Several { bytes, all });
            }
            None => self.set_one(r),
        }
        true
    }
    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.0.is_none()
    }
    /// The regions, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &'static Region> + '_ {
        let (few, many) = match self.several().map(|s| &s.all) {
            Some(All::Few(v)) => (&v[..], None),
            Some(All::Many(m)) => (&[][..], Some(m)),
            None => (&[][..], None),
        };
        let many = many.into_iter().flat_map(|m| m.values().copied());
        self.one()
            .into_iter()
            .chain(few.iter().copied())
            .chain(many)
    }
    /// Bytes of terms in the regions.
    pub fn bytes(&self) -> usize {
        match self.several() {
            Some(s) => s.bytes,
            None => self.one().map_or(0, |r| r.words * 8),
        }
    }
    /// Takes the region that it holds, with its count, if it holds exactly one.
    pub fn take_one(&mut self) -> Option<&'static Region> {
        let r = self.one()?;
        self.0 = Repr::default();
        Some(r)
    }
    /// The region that it holds, if it holds exactly one.
    #[inline]
    pub fn only(&self) -> Option<&'static Region> {
        self.one()
    }
    /// Takes the regions, with their counts.
    fn take_all(&mut self) -> impl Iterator<Item = &'static Region> + use<> {
        let one = self.take_one();
        let (few, many) = match self.take_several().map(|s| s.all) {
            Some(All::Few(v)) => (v, HashMap::default()),
            Some(All::Many(m)) => (Vec::new(), m),
            None => (Vec::new(), HashMap::default()),
        };
        one.into_iter().chain(few).chain(many.into_values())
    }
    /// The regions, with their counts.
    pub(crate) fn into_iter(mut self) -> impl Iterator<Item = &'static Region> {
        self.take_all()
    }
    /// Whether it holds `r`.
    pub(crate) fn has(&self, r: &'static Region) -> bool {
        match self.several() {
            Some(s) => s.all.has(r),
            None => self.one().is_some_and(|one| std::ptr::eq(one, r)),
        }
    }
    /// Holds `r`, which has another holder at this moment.
    pub fn hold(&mut self, r: &'static Region) {
        if self.add(r) {
            r.retain();
        }
    }
    /// Takes over a count of `r`.
    pub fn adopt(&mut self, r: &'static Region) {
        if !self.add(r) {
            // SAFETY: one count stays with this set.
            unsafe { r.release() };
        }
    }
    /// Holds the region that `p`, a pointer of a term in hand, points into.
    #[cold]
    pub fn hold_pointer(&mut self, p: *const Term) {
        if let Some(r) = region_of(p) {
            self.hold(r);
        }
    }
    /// Whether a region that `p` points into is among the first few.
    pub fn covers(&self, p: *const Term) -> bool {
        let a = p as usize;
        self.iter()
            .take(16)
            .any(|r| a.wrapping_sub(r.base as usize) < r.words * 8)
    }
    /// Moves the regions of `other` to this set.
    pub fn append(&mut self, other: &mut RegionSet) {
        if other.is_empty() {
            return;
        }
        let less = |a: &RegionSet, b: &RegionSet| match (a.several(), b.several()) {
            (Some(a), Some(b)) => a.all.len() < b.all.len(),
            (None, Some(_)) => true,
            _ => a.is_empty(),
        };
        if less(self, other) {
            std::mem::swap(self, other);
        }
        for r in other.take_all() {
            self.adopt(r);
        }
    }
    /// Replaces the set by `seen`, and releases the regions that were held before.
    ///
    /// # Safety
    /// No term of this heap points into a region outside `seen`.
    pub(crate) unsafe fn keep_only(&mut self, seen: RegionSet) {
        let mut old = std::mem::replace(self, seen);
        // SAFETY: by the contract, no term points into the old regions any more.
        unsafe { old.release_all() };
    }
    /// Releases everything.
    ///
    /// # Safety
    /// No term of this heap points into a region any more.
    pub unsafe fn release_all(&mut self) {
        if self.is_empty() {
            return;
        }
        // SAFETY: by the contract; the set owns a count of each region.
        unsafe {
            for r in self.take_all() {
                r.release();
            }
        }
    }
}

impl All {
    fn len(&self) -> usize {
        match self {
            All::Few(v) => v.len(),
            All::Many(m) => m.len(),
        }
    }
}
