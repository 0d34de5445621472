//! Memory usage: the figures behind `erlang:memory/0,1` and `system_info({allocator, _})`.
//!
//! Stock's allocators are reported as far as this runtime has the kind of memory: heaps of
//! processes, binaries, tables, literals (regions), and everything else under `ll_alloc`. Large
//! blocks, and those of native code, are the C library's, which reports them. The functions of
//! `erlang` and `erts_internal` that assemble the answers expect one message from each thread with
//! allocators of its own; here a single message carries everything.

use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, code, lazy_atoms, process, signal, timer};
use purlin_term::{Alloc, NIL, Term, am, atom, bin, blocks, counts, gc, region, small_blocks};
use std::sync::atomic::{AtomicUsize, Ordering};

lazy_atoms! {
    mbcs = "mbcs";
    sbcs = "sbcs";
    blocks_ = "blocks";
    carriers_size = "carriers_size";
    bif_timer = "bif_timer";
    fix_types = "fix_types";
    proc_ = "proc";
    options = "options";
}

/// Kinds of memory, by the names of stock's allocators.
const KINDS: &[&str] = &[
    "temp_alloc",
    "sl_alloc",
    "std_alloc",
    "ll_alloc",
    "eheap_alloc",
    "ets_alloc",
    "literal_alloc",
    "fix_alloc",
    "binary_alloc",
    "driver_alloc",
];

/// The allocator below those.
const SEGMENTS: &str = "mseg_alloc";

/// A requested allocator.
#[derive(Clone, Copy)]
enum Wanted {
    /// Index in [`KINDS`].
    Kind(usize),
    System,
    Segments,
}

/// The largest use of each kind seen by any request so far.
static PEAKS: [Peaks; KINDS.len()] = [const { Peaks::none() }; KINDS.len()];

struct Peaks {
    blocks: AtomicUsize,
    bytes: AtomicUsize,
    taken: AtomicUsize,
}

impl Peaks {
    const fn none() -> Peaks {
        Peaks {
            blocks: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
        }
    }
}

/// Memory in use, in bytes.
pub struct Usage {
    pub total: usize,
    /// Heaps and cells of processes.
    pub processes: usize,
    pub processes_used: usize,
    pub atom: usize,
    pub binary: usize,
    pub code: usize,
    pub ets: usize,
    /// Literals and other shared regions.
    pub regions: usize,
}

impl Usage {
    /// Everything except processes.
    pub fn system(&self) -> usize {
        self.total.saturating_sub(self.processes)
    }
    /// The items of `erlang:memory/0`, in its order.
    pub fn named(&self) -> [(&'static str, usize); 9] {
        [
            ("total", self.total),
            ("processes", self.processes),
            ("processes_used", self.processes_used),
            ("system", self.system()),
            ("atom", self.atom),
            ("atom_used", self.atom),
            ("binary", self.binary),
            ("code", self.code),
            ("ets", self.ets),
        ]
    }
}

fn code_bytes() -> usize {
    code::loaded()
        .into_iter()
        .map(|name| {
            code::with_versions(name, |v| {
                v.current.as_ref().map_or(0, |m| m.bytes())
                    + v.old.as_ref().map_or(0, |m| m.bytes())
            })
        })
        .sum::<usize>()
        + code::compiled::compiler().map_or(0, |c| c.bytes())
}

/// Bytes allocated from the C library, and in small blocks.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn allocated() -> usize {
    // SAFETY: takes no arguments and returns a plain structure.
    let i = unsafe { libc::mallinfo2() };
    i.uordblks + i.hblkhd + small_blocks::usage().used
}
/// Other C libraries do not report it, so this counts what the runtime knows of.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn allocated() -> usize {
    let (names, table) = atom::bytes();
    gc::heap_bytes().saturating_sub(gc::mapped_bytes())
        + bin::total_bytes()
        + names
        + table
        + code_bytes()
}

/// The current memory usage.
pub fn usage() -> Usage {
    let (cells, slots) = process::table().bytes();
    // Processes may be created between the two looks at the table.
    let live = (process::table().live() * process::table::CELL_BYTES).min(cells);
    let heaps = gc::heap_bytes();
    let (names, table) = atom::bytes();
    let (regions, _) = region::totals();
    let mapped = match purlin_term::fence::on() {
        true => heaps + bin::total_bytes(),
        false => gc::mapped_bytes(),
    };
    Usage {
        // Cells, slots, regions and large blocks of heaps are mapped, not allocated. With the fence
        // on, all blocks and binaries are mapped.
        total: allocated() + mapped + cells + slots + regions,
        processes: heaps + cells + slots,
        processes_used: heaps + live + slots,
        atom: names + table,
        binary: bin::total_bytes(),
        code: code_bytes(),
        ets: crate::ets::totals().1,
        regions,
    }
}

/// Memory in use of one kind.
struct InUse {
    blocks: usize,
    bytes: usize,
    /// Bytes taken from the system for it, free blocks included.
    taken: usize,
}

/// Bytes of free blocks that the C library and the allocator of small blocks hold.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn kept_free() -> usize {
    let small = small_blocks::usage();
    // SAFETY: takes no arguments and returns a plain structure.
    unsafe { libc::mallinfo2() }.fordblks + small.kept + small.spans.saturating_sub(small.used)
}
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn kept_free() -> usize {
    let small = small_blocks::usage();
    small.kept + small.spans.saturating_sub(small.used)
}

/// Blocks of tables: one per object and one per table.
fn ets_blocks() -> usize {
    let (tables, _) = crate::ets::totals();
    tables + crate::ets::objects()
}

fn in_use(u: &Usage, kind: &str) -> InUse {
    let (cells, _) = process::table().bytes();
    let heap_blocks = counts::sum(|c| &c.heap_blocks);
    let all_of_it = |blocks, bytes| InUse {
        blocks,
        bytes,
        taken: bytes,
    };
    match kind {
        "eheap_alloc" => InUse {
            blocks: heap_blocks,
            bytes: gc::heap_bytes(),
            taken: gc::heap_bytes() + blocks::kept_bytes(),
        },
        "fix_alloc" => {
            let live = process::table().live();
            InUse {
                blocks: live,
                bytes: (live * process::table::CELL_BYTES).min(cells),
                taken: cells,
            }
        }
        "ets_alloc" => all_of_it(ets_blocks(), u.ets),
        "binary_alloc" => all_of_it(counts::sum(|c| &c.binaries), u.binary),
        "literal_alloc" => InUse {
            blocks: region::totals().1,
            bytes: u.regions,
            taken: region::touched_bytes().max(u.regions),
        },
        "ll_alloc" => {
            let others = gc::heap_bytes() + cells + u.ets + u.binary + u.regions;
            let bytes = u.total.saturating_sub(others);
            // Large blocks of heaps, regions and cells are mapped, not allocated.
            let heaps = heap_blocks.saturating_sub(blocks::SEGMENTS.in_use());
            let others = match purlin_term::fence::on() {
                // All other blocks have mappings of their own then.
                true => ets_blocks(),
                false => heaps + counts::sum(|c| &c.binaries) + ets_blocks(),
            };
            InUse {
                blocks: counts::sum(|c| &c.blocks).saturating_sub(others),
                bytes,
                taken: bytes + kept_free(),
            }
        }
        _ => all_of_it(0, 0),
    }
}

fn three<A: Alloc + ?Sized>(a: &mut A, key: Term, [x, y, z]: [usize; 3]) -> Term {
    let n = [x, y, z].map(|n| Term::small(n as i64));
    a.tuple(&[key, n[0], n[1], n[2]])
}

/// Figures of mapped heap blocks, in the form of stock's segment allocator: one instance, which
/// caches freed blocks for a while.
fn segments<A: Alloc + ?Sized>(a: &mut A, detail: Detail) -> Term {
    let s = &blocks::SEGMENTS;
    let get = |n: &AtomicUsize| n.load(Ordering::Relaxed);
    let bytes = blocks::mapped_bytes();
    let most_bytes = get(&s.most_bytes).max(bytes);
    let size = three(
        a,
        atom::intern("segments_size"),
        [bytes, most_bytes, most_bytes],
    );
    if detail != Detail::All {
        return a.list(&[size]);
    }
    let none = a.tuple(&[options(), NIL]);
    let pair = |a: &mut A, k: &str, v: Term| a.tuple(&[atom::intern(k), v]);
    let number = |n: usize| Term::small(n as i64);
    let name = b"all memory".map(|c| number(c.into()));
    let name = a.list(&name);
    let name = pair(a, "name", name);
    let cached = pair(a, "cached_segments", number(blocks::kept_blocks()));
    let hits = pair(a, "cache_hits", number(get(&s.hits)));
    let most = get(&s.most);
    let in_use = three(a, atom::intern("segments"), [s.in_use(), most, most]);
    let mark = pair(a, "segments_watermark", number(most));
    let status = a.list(&[cached, hits, in_use, mark, size]);
    let status = pair(a, "status", status);
    let calls = [
        ("mseg_alloc", get(&s.taken)),
        ("mseg_dealloc", get(&s.freed)),
        ("mseg_create", get(&s.created)),
        ("mseg_destroy", get(&s.destroyed)),
        ("mseg_recreate", get(&s.resized)),
    ];
    // Billions, and the remainder.
    let calls = calls.map(|(k, n)| {
        let (giga, rest) = (n / 1_000_000_000, n % 1_000_000_000);
        a.tuple(&[atom::intern(k), number(giga), number(rest)])
    });
    let calls = a.list(&calls);
    let calls = pair(a, "calls", calls);
    let kind = a.list(&[name, status, calls]);
    let kind = pair(a, "memkind", kind);
    a.list(&[none, kind])
}

/// Level of detail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Memory,
    Sizes,
    All,
}

/// The parts of the answer for one kind.
fn answer<A: Alloc + ?Sized>(a: &mut A, i: usize, n: &InUse, detail: Detail) -> Term {
    let name = atom::intern(KINDS[i]);
    let with_peak = |n: usize, most: &AtomicUsize| {
        let most = most.fetch_max(n, Ordering::Relaxed).max(n);
        [n, most, most]
    };
    // `erlang:memory/0` counts all memory mapped for cells as that of processes, so it is in the
    // total.
    let bytes = match detail {
        Detail::Memory if KINDS[i] == "fix_alloc" => n.taken,
        _ => n.bytes,
    };
    let sizes = with_peak(bytes, &PEAKS[i].bytes);
    let counts = with_peak(n.blocks, &PEAKS[i].blocks);
    let taken = with_peak(n.taken, &PEAKS[i].taken);
    let size = three(a, am::SIZE, sizes);
    let in_use = match detail {
        Detail::All => {
            let count = three(a, am::COUNT, counts);
            a.list(&[count, size])
        }
        Detail::Memory | Detail::Sizes => a.list(&[size]),
    };
    let entry = a.tuple(&[name, in_use]);
    let list = if n.bytes == 0 { NIL } else { a.list(&[entry]) };
    let mut parts = Vec::new();
    if KINDS[i] == "fix_alloc" {
        let live = process::table().live() * process::table::CELL_BYTES;
        let n = [n.taken, live].map(|n| Term::small(n as i64));
        let cells = a.tuple(&[proc_(), n[0], n[1]]);
        // Tools look for the timers of processes among these.
        let bytes = Term::small(timer::message::usage().1 as i64);
        let timers = a.tuple(&[bif_timer(), bytes, bytes]);
        let cells = a.list(&[cells, timers]);
        parts.push(a.tuple(&[fix_types(), cells]));
    }
    let pool = |a: &mut A, list: Term, n: [usize; 3]| {
        let b = a.tuple(&[blocks_(), list]);
        let s = three(a, carriers_size(), n);
        a.list(&[b, s])
    };
    if detail == Detail::All {
        let e = a.tuple(&[atom::intern("e"), am::TRUE]);
        let l = a.list(&[e]);
        parts.push(a.tuple(&[options(), l]));
    }
    let m = pool(a, list, taken);
    parts.push(a.tuple(&[mbcs(), m]));
    let s = pool(a, NIL, [0, 0, 0]);
    parts.push(a.tuple(&[sbcs(), s]));
    a.list(&parts)
}

/// `{What, Reference, Kinds}`, answered by a message; or `{What, Kinds}`, for which
/// `erlang:alloc_info/1` or `erlang:alloc_sizes/1` combines messages.
pub fn request(cx: &mut Cx, t: &[Term]) -> BifResult {
    let name = atom::name(t[0]);
    let detail = match name {
        "memory_internal" => Detail::Memory,
        "allocator_sizes" => Detail::Sizes,
        _ => Detail::All,
    };
    let known = |k: Term| k.is_atom().then(|| atom::name(k));
    if t.len() == 2 && detail != Detail::Memory {
        let mut all = t[1].list_iter();
        let valid = |k: Term| {
            known(k).is_some_and(|k| KINDS.contains(&k) || k == "sys_alloc" || k == SEGMENTS)
        };
        let ok = if t[1].is_atom() {
            valid(t[1])
        } else {
            all.by_ref().all(valid) && all.tail().is_nil()
        };
        if !ok {
            return Err(Fail::Badarg);
        }
        let f = match detail {
            Detail::Sizes => "alloc_sizes",
            _ => "alloc_info",
        };
        let e = code::export(am::ERLANG, atom::intern(f), 1);
        return Err(cx.trap(e, &[t[1]]));
    }
    let &[_, reference, kinds] = t else {
        return Err(Fail::Badarg);
    };
    let mut wanted = Vec::new();
    let mut it = kinds.list_iter();
    for k in it.by_ref() {
        let k = known(k).ok_or(Fail::Badarg)?;
        match KINDS.iter().position(|n| *n == k) {
            Some(i) => wanted.push(Wanted::Kind(i)),
            None if k == "sys_alloc" => wanted.push(Wanted::System),
            None if k == SEGMENTS => wanted.push(Wanted::Segments),
            None => return Err(Fail::Badarg),
        }
    }
    if !it.tail().is_nil() || !reference.is_ref() {
        return Err(Fail::Badarg);
    }
    let u = usage();
    let me = cx.self_pid();
    signal::send_with(me, |a| {
        let mut list = Vec::new();
        for w in &wanted {
            list.push(match *w {
                Wanted::Segments => {
                    let parts = segments(a, detail);
                    a.tuple(&[atom::intern(SEGMENTS), Term::small(0), parts])
                }
                Wanted::Kind(i) => {
                    let parts = answer(a, i, &in_use(&u, KINDS[i]), detail);
                    a.tuple(&[atom::intern(KINDS[i]), Term::small(0), parts])
                }
                Wanted::System if detail != Detail::All => {
                    a.tuple(&[atom::intern("sys_alloc"), Term::small(0), NIL])
                }
                Wanted::System => {
                    let l = of_library(a);
                    let o = a.tuple(&[options(), l]);
                    let l = a.list(&[o]);
                    a.tuple(&[atom::intern("sys_alloc"), Term::small(0), l])
                }
            });
        }
        let list = a.list(&list);
        let r = purlin_term::copy::copy(reference, a);
        a.tuple(&[r, Term::small(0), list])
    });
    Ok(am::TRUE)
}

/// The answer for `alloc_util_allocators`.
pub fn names(cx: &mut Cx) -> Term {
    let v: Vec<Term> = KINDS.iter().map(|n| atom::intern(n)).collect();
    cx.list(&v)
}

/// Settings of the C library: whether it is in use, its name, and the settings of its arenas that
/// `+MYtt` and `+MYtp` change.
fn of_library<A: Alloc + ?Sized>(a: &mut A) -> Term {
    let [trim, pad] = purlin_kernel::system::memory::arena();
    let e = a.tuple(&[atom::intern("e"), am::TRUE]);
    let m = a.tuple(&[atom::intern("m"), atom::intern("libc")]);
    let tt = a.tuple(&[atom::intern("tt"), Term::small(trim as i64)]);
    let tp = a.tuple(&[atom::intern("tp"), Term::small(pad as i64)]);
    a.list(&[e, m, tt, tp])
}

/// The answer for `allocator`: the allocating library, its version, and the kinds of memory.
pub(crate) fn allocator(cx: &mut Cx) -> Term {
    let (library, version) = library(cx);
    let mut kinds: Vec<Term> = vec![atom::intern("sys_alloc")];
    kinds.extend(KINDS.iter().map(|n| atom::intern(n)));
    kinds.push(atom::intern(SEGMENTS));
    let kinds = cx.list(&kinds);
    let l = of_library(cx);
    let s = cx.tuple(&[atom::intern("sys_alloc"), l]);
    let settings = cx.list(&[s]);
    cx.tuple(&[library, version, kinds, settings])
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn library(cx: &mut Cx) -> (Term, Term) {
    // SAFETY: returns a string that lives as long as the program.
    let v = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    let v: Vec<Term> = v
        .to_string_lossy()
        .split('.')
        .filter_map(|n| n.parse().ok().map(Term::small))
        .collect();
    (atom::intern("glibc"), cx.list(&v))
}
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn library(_: &mut Cx) -> (Term, Term) {
    (am::UNDEFINED, NIL)
}

/// The answer for `allocated_areas`: memory that is counted under other names.
pub(crate) fn areas(cx: &mut Cx) -> Term {
    let (names, table) = atom::bytes();
    let (_, slots) = process::table().bytes();
    let (_, timers) = timer::message::usage();
    let one = |cx: &mut Cx, k: &str, n: usize| cx.tuple(&[atom::intern(k), Term::small(n as i64)]);
    let used = Term::small(names as i64);
    let v = [
        cx.tuple(&[atom::intern("atom_space"), used, used]),
        one(cx, "atom_table", table),
        one(cx, "loaded_code", code_bytes()),
        one(cx, "bif_timer", timers),
        one(cx, "process_table", slots),
    ];
    cx.list(&v)
}

/// The answer of one thread has all parts of stock's `allocated_areas` and allocators that tools
/// count.
fn no_aux_work_threads_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(Term::small(2))
}

/// Tells `instrument` how many answers will come from an allocator on a scheduler.
///
/// Memory is neither taken from carriers here nor tagged by its user, so none come, as in stock
/// when the allocator is disabled.
fn gather_1(_: &mut Cx, [request]: [Term; 1]) -> BifResult {
    // Later releases put flags before the reference.
    let Some(&[kind, scheduler, _, _, reference] | &[kind, scheduler, _, _, _, reference]) =
        request.as_tuple()
    else {
        return Err(Fail::Badarg);
    };
    let known = kind.is_atom() && {
        let kind = atom::name(kind);
        KINDS.contains(&kind) || kind == "sys_alloc"
    };
    let number = scheduler.as_small().and_then(|n| usize::try_from(n).ok());
    let there = number.is_some_and(|n| n <= purlin_native::bif::schedulers());
    match known && there && reference.is_ref() {
        true => Ok(Term::small(0)),
        false => Err(Fail::Badarg),
    }
}

bifs! {
    Plain "erts_internal":"gather_alloc_histograms"/1 = gather_1;
    Plain "erts_internal":"gather_carrier_info"/1 = gather_1;
    Plain "erts_internal":"no_aux_work_threads"/0 = no_aux_work_threads_0;
}
