//! Large terms go from process to process, and to tables, without being copied again and again.
//!
//! A message is small things around large ones: `{Reference, {ok, Map}}`, a closure with a list in it. Each part above the
//! threshold is copied once to a region of its own, which the message refers to; the small things are copied with the
//! message. The sender remembers where the part lies (`Heap::sent`): sending it again costs nothing, and the sender's next
//! collection, in place of copying the part, has the sender's references lead to the region. So nothing is paid beyond
//! what a plain copy costs, and there is one copy in memory however many processes hold it.

use crate::cx::Cx;
use purlin_term::frag::Fragment;
use purlin_term::heap::Heap;
use purlin_term::region::{self, Builder, Region, RegionSet, is_region_ptr, region_of};
use purlin_term::{Term, am, atom, copy, map};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Words from which on a part of a term is shared. `usize::MAX`: never.
pub static THRESHOLD: AtomicUsize = AtomicUsize::new(DEFAULT_THRESHOLD);

/// Sets [`THRESHOLD`]: words; 0 and `usize::MAX` are for never. Gives what it was.
pub fn set_threshold(words: usize) -> usize {
    let n = if words == 0 { usize::MAX } else { words };
    THRESHOLD.swap(n, Ordering::Relaxed)
}

/// 64 KiB: copying less than that costs about as much as making a region.
pub const DEFAULT_THRESHOLD: usize = 8192;

/// Words that were copied from process to process, and words that were shared instead.
pub static COPIED: AtomicU64 = AtomicU64::new(0);
/// See [`COPIED`].
pub static SHARED: AtomicU64 = AtomicU64::new(0);
/// Words that were copied to regions, which is done once.
pub static MOVED: AtomicU64 = AtomicU64::new(0);

/// Trees of more words than this are looked at for parts that are reached again and again: what is small as a graph can
/// be without end as a tree.
const GRAPH_ABOVE_WORDS: usize = 16 << 20;
/// Objects of such a graph.
const GRAPH_OBJECTS: usize = 1 << 18;

/// A part of at least so many words, if it is most of the sender's heap, is worth a collection at once.
const FORGET_ABOVE_WORDS: usize = 1 << 18;

/// What a shared term needs until it has been handed on.
#[derive(Default)]
pub struct Held {
    frag: Option<Fragment>,
    words: Option<usize>,
}

impl Held {
    /// Words that a copy of the term takes, where they are known.
    pub fn words(&self) -> Option<usize> {
        self.words
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(f) = self.frag.take() {
            // SAFETY: whoever uses the term has a copy, which holds the regions.
            unsafe { f.destroy() };
        }
    }
}

/// `t`, or what stands for it with its large parts in regions. The caller copies it to where it goes (which holds the
/// regions) and then drops the second part.
pub fn share(cx: &mut Cx, t: Term) -> (Term, Held) {
    let threshold = THRESHOLD.load(Ordering::Relaxed);
    if t.is_immed() || threshold == usize::MAX || is_region_ptr(t.ptr()) {
        return (t, Held::default());
    }
    let h = &mut cx.heap;
    let mut frag = Fragment::new();
    let mut hit = false;
    if h.sent.is_some() {
        copy::parts(t, &mut frag, &mut |p| {
            hit |= h.knows_sent(p);
            p
        });
    }
    if !hit {
        if let Some(n) = copy::size_within(t, threshold.saturating_sub(1)) {
            destroy(frag);
            let words = Some(n);
            return (t, Held { frag: None, words });
        }
    }
    let mut stand_ins: SmallVec<[Term; 8]> = SmallVec::new();
    let mut any = false;
    let mut held = RegionSet::default();
    copy::parts(t, &mut frag, &mut |p| {
        let s = part(h, &mut held, p, threshold);
        any |= s.is_some();
        stand_ins.push(s.unwrap_or(p));
        p
    });
    destroy(frag);
    let mut frag = Fragment::new();
    let term = if any {
        let mut next = stand_ins.into_iter();
        copy::parts(t, &mut frag, &mut |p| next.next().unwrap_or(p))
    } else {
        // Many things, none of them large.
        let n = measure(h, t);
        region_for(h, &mut held, t, n)
    };
    frag.off_heap.regions.append(&mut held);
    let frag = Some(frag);
    (term, Held { frag, words: None })
}

/// A value of [`THRESHOLD`] as programs see it: words, or `infinity`.
pub fn threshold_term(words: usize) -> Term {
    if words == usize::MAX {
        return am::INFINITY;
    }
    Term::small(words.min(i64::MAX as usize >> 5) as i64)
}

/// The value of `system_info(sharing)`: a map of counts. Words copied from process to process with their messages; words
/// copied to regions; words that were sent or stored again without being copied; regions alive and bytes in them.
pub fn info(cx: &mut Cx) -> Term {
    let count = |n: u64| Term::small(n.min(i64::MAX as u64 >> 5) as i64);
    let (bytes, regions) = region::counted_totals();
    let pairs = [
        ("words_copied", COPIED.load(Ordering::Relaxed)),
        ("words_moved", MOVED.load(Ordering::Relaxed)),
        ("words_shared", SHARED.load(Ordering::Relaxed)),
        ("regions", regions as u64),
        ("region_bytes", bytes as u64),
    ]
    .map(|(k, n)| (atom::intern(k), count(n)));
    map::from_pairs(cx, &pairs)
}

/// What stands in a region for a part of `n` words of an object that goes to a table, if it is large; `held` gets a
/// count of the region.
pub fn large_part(cx: &mut Cx, held: &mut RegionSet, t: Term, n: usize) -> Option<Term> {
    let threshold = THRESHOLD.load(Ordering::Relaxed);
    if n < threshold || threshold == usize::MAX {
        return None;
    }
    part(&mut cx.heap, held, t, threshold)
}

fn destroy(f: Fragment) {
    // SAFETY: its terms are not used.
    unsafe { f.destroy() };
}

/// What stands for a part in a region, if it is large.
fn part(h: &mut Heap, held: &mut RegionSet, t: Term, threshold: usize) -> Option<Term> {
    if is_region_ptr(t.ptr()) {
        return None;
    }
    if let Some(s) = h.sent_as(t) {
        held.hold_pointer(s.ptr());
        SHARED.fetch_add(words_of(s) as u64, Ordering::Relaxed);
        return Some(s);
    }
    let n = measure(h, t);
    match n {
        Size::Tree(n) if n < threshold => None,
        n => Some(region_for(h, held, t, n)),
    }
}

/// Words of the region that a term starts, which is the measure of what was not copied.
fn words_of(t: Term) -> usize {
    region_of(t.ptr()).map_or(0, |r| r.words)
}

#[derive(Clone, Copy)]
enum Size {
    Tree(usize),
    /// With things that are reached more than once.
    Graph(usize),
}

fn measure(h: &Heap, t: Term) -> Size {
    if let Some(n) = copy::size_within(t, GRAPH_ABOVE_WORDS) {
        return Size::Tree(n);
    }
    if let Some(n) = copy::size_distinct(t, GRAPH_OBJECTS) {
        return Size::Graph(n);
    }
    // A tree of more words than there are must reach something twice.
    match copy::size_within(t, h.all_words().max(GRAPH_ABOVE_WORDS)) {
        Some(n) => Size::Tree(n),
        None => Size::Graph(copy::size_distinct(t, usize::MAX).unwrap_or(0)),
    }
}

/// Copies `t` to a region, of which `held` gets a count.
fn region_for(h: &mut Heap, held: &mut RegionSet, t: Term, n: Size) -> Term {
    let (s, r) = to_region(t, n);
    let (Size::Tree(n) | Size::Graph(n)) = n;
    MOVED.fetch_add(n as u64, Ordering::Relaxed);
    if (t.is_list_ptr() || t.is_tuple() || t.is_map()) && h.owns(t.ptr()) {
        // SAFETY: terms do not change, and `s` is a copy of `t`.
        unsafe { h.remember_sent(t, s, r) };
        if n >= FORGET_ABOVE_WORDS && n >= h.all_words() / 2 {
            h.forget_copy(t);
        }
    }
    held.adopt(r);
    s
}

fn to_region(t: Term, n: Size) -> (Term, &'static Region) {
    match n {
        Size::Tree(n) => {
            let mut b = Builder::counted(n);
            let s = copy::copy(t, &mut b);
            (s, b.finish())
        }
        Size::Graph(n) => {
            let mut b = Builder::counted(n);
            let s = copy::copy_distinct(t, &mut b);
            (s, b.finish())
        }
    }
}
