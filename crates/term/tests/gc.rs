//! The collector against a shadow model: random graphs keep their structure through every kind of
//! collection, the heap verifies before and after, and every count is given back at the end.

use purlin_term::fun::{FunEntry, FunName};
use purlin_term::gc;
use purlin_term::heap::Heap;
use purlin_term::layout::{self, RefView};
use purlin_term::magic::MagicRef;
use purlin_term::verify::{verify, verify_with};
use purlin_term::word::{Subtag, header};
use purlin_term::{Alloc, NIL, Term};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

struct Rng(u64);
impl Rng {
    fn next(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

fn fun_entry() -> FunEntry {
    let name = FunName {
        module: NIL,
        old_uniq: 0,
        old_index: 0,
        uniq: [0; 16],
        index: 0,
        arity: 1,
        num_free: 0,
    };
    FunEntry::new(name, NIL)
}

/// The structure of a term, up to a limit: graphs that share much would print without end.
fn show(root: Term, out: &mut String) {
    let mut todo = vec![root];
    let mut left = 3000;
    while let Some(t) = todo.pop() {
        left -= 1;
        if left == 0 {
            break;
        }
        if let Some((h, tl)) = t.as_cons() {
            out.push('[');
            todo.push(tl);
            todo.push(h);
        } else if let Some(b) = t.as_bits() {
            let _ = write!(out, "<<{}:{:?}>>", b.bit_len, b.shifted());
        } else if let Some(f) = t.as_fun() {
            let _ = write!(out, "fun{:x}", f.entry);
            todo.extend(f.env);
        } else if let Some(RefView::Magic(m)) = t.as_ref_view() {
            let _ = write!(out, "ref{:?}", m.num);
        } else if let Some((neg, d)) = t.as_big() {
            let _ = write!(out, "big{neg}{d:?}");
        } else if let Some(f) = t.as_float() {
            let _ = write!(out, "{f}");
        } else if let Some((k, v)) = t.as_flatmap() {
            let _ = write!(out, "map{}", k.len());
            todo.extend(k);
            todo.extend(v);
        } else if let Some(e) = t.as_tuple() {
            let _ = write!(out, "{{{}", e.len());
            todo.extend(e);
        } else if t.is_match_context() {
            // SAFETY: layout of match contexts; the collector must keep the base right.
            unsafe {
                let p = t.ptr();
                let (off, end) = ((*p.add(3)).raw() as usize, (*p.add(4)).raw() as usize);
                let s = std::slice::from_raw_parts((*p.add(2)).raw() as *const u8, end / 8);
                let _ = write!(out, "ms{off}{s:?}");
                todo.push(*p.add(1));
            }
        } else {
            let _ = write!(out, "i{:x},", t.raw());
        }
    }
}

fn show_all(roots: &[Term], h: &Heap) -> String {
    let mut s = String::new();
    for &t in roots {
        show(t, &mut s);
        s.push('\n');
    }
    for i in 0..h.stack_words() {
        // SAFETY: within the stack.
        show(unsafe { *h.stop.add(i) }, &mut s);
        s.push('\n');
    }
    s
}

/// Makes a random object of terms in `pool`.
///
/// # Safety
/// The terms in `pool` are in `h` or immediate.
unsafe fn make(h: &mut Heap, r: &mut Rng, pool: &[Term], e: &FunEntry, owned: &Arc<()>) -> Term {
    let pick = |r: &mut Rng| match pool.len() {
        0 => NIL,
        n => pool[r.next(n)],
    };
    match r.next(15) {
        0..=3 => {
            let (a, b) = (pick(r), pick(r));
            h.cons(a, b)
        }
        4 => {
            let v: Vec<Term> = (0..r.next(6)).map(|_| pick(r)).collect();
            h.tuple(&v)
        }
        5 => h.big(r.next(2) == 0, &[r.0, r.0 | 1, 1 << 60]),
        6 => h.float(r.next(1000) as f64 / 7.0),
        7 => {
            let v: Vec<u8> = (0..65 + r.next(300)).map(|i| i as u8).collect();
            h.binary(&v)
        }
        8 => {
            let v: Vec<u8> = (0..r.next(64)).map(|i| i as u8).collect();
            h.binary(&v)
        }
        9 => {
            let t = pick(r);
            match t.as_bits() {
                Some(b) if b.bit_len > 8 => {
                    let o = r.next(8);
                    h.sub_binary(t, o, r.next(b.bit_len - o))
                }
                _ => Term::small(r.next(1000) as i64),
            }
        }
        10 => {
            let n = r.next(5);
            let k: Vec<Term> = (0..n).map(|i| Term::small(i as i64)).collect();
            let v: Vec<Term> = (0..n).map(|_| pick(r)).collect();
            h.flatmap(&k, &v)
        }
        11 => {
            let n = r.next(3);
            let v: Vec<Term> = (0..n).map(|_| pick(r)).collect();
            let p = h.alloc(layout::FUN_WORDS + n);
            let w = p as *mut u64;
            e.retain();
            // SAFETY: the block has the words of a fun and of its environment, and all are written
            // but the one that `link` writes.
            unsafe {
                w.write(header(Subtag::Fun, layout::FUN_WORDS - 1 + n));
                w.add(1).write(e as *const FunEntry as u64);
                w.add(3).write(1 | (n as u64) << 8);
                p.add(4).write(Term::pid(5));
                for (i, t) in v.into_iter().enumerate() {
                    p.add(5 + i).write(t);
                }
                h.off_heap().link(p);
                Term::boxed_at(p)
            }
        }
        12 => {
            let m = MagicRef::new([1, 2, r.next(1000) as u32], Box::new(owned.clone()));
            // SAFETY: it has just been made, and nothing has freed it.
            unsafe { h.magic_ref(m) }
        }
        // A list of immediates in front of something, sometimes with something else among them.
        13 => {
            let (n, other) = (r.next(20), r.next(40));
            (0..n).fold(pick(r), |t, i| match i == other {
                true => {
                    let x = pick(r);
                    h.cons(x, t)
                }
                false => h.cons(Term::small(i as i64), t),
            })
        }
        _ => {
            let t = pick(r);
            match t.subtag() {
                Some(Subtag::HeapBin | Subtag::RefcBin) => {
                    let b = t.as_bits().map(|b| (b.base as u64, b.bit_len as u64));
                    let (base, len) = b.unwrap_or((0, 0));
                    let p = h.alloc(layout::MATCH_CONTEXT_WORDS);
                    let w = p as *mut u64;
                    // SAFETY: the block has the words of a match context, and all are written.
                    unsafe {
                        w.write(header(Subtag::MatchContext, 4));
                        p.add(1).write(t);
                        w.add(2).write(base);
                        w.add(3).write(len / 2);
                        w.add(4).write(len);
                        Term::boxed_at(p)
                    }
                }
                _ => Term::small(3),
            }
        }
    }
}

/// One round of a program: objects that are made, then a collection. Each part has a random source
/// of its own, so that a program without some of its parts is a program.
#[derive(Clone, Debug)]
struct Round {
    makes: Vec<u64>,
    /// A word that is pushed onto the stack, if there is room.
    pushes: Option<u64>,
    kind: usize,
    need: usize,
}

/// Returns a random program.
fn program(seed: u64) -> Vec<Round> {
    let mut r = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let source = |r: &mut Rng| {
        r.next(1);
        r.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1
    };
    (0..40)
        .map(|_| Round {
            makes: (0..r.next(200)).map(|_| source(&mut r)).collect(),
            pushes: (r.next(2) == 0).then(|| source(&mut r)),
            kind: r.next(8),
            need: r.next(400),
        })
        .collect()
}

/// Runs a program. Returns whether it had an old generation, and whether it had fragments; or what
/// is wrong.
fn run(program: &[Round], e: &FunEntry, owned: &Arc<()>) -> Result<(bool, bool), String> {
    let (mut seen_old, mut seen_frag) = (false, false);
    let mut h = Heap::empty();
    h.stack_reserve = 2;
    // SAFETY: every term in use is in `roots` or on the stack; what `make` writes is whole.
    unsafe {
        let mut roots: Vec<Term> = vec![NIL; 24];
        gc::collect(&mut h, 50, &mut [&mut roots], false);
        for (n, round) in program.iter().enumerate() {
            for &source in &round.makes {
                let mut r = Rng(source);
                let t = make(&mut h, &mut r, &roots, e, owned);
                let i = r.next(roots.len());
                // A match context is not a term that others may refer to, but the collector does
                // not mind.
                roots[i] = t;
            }
            if let Some(source) = round.pushes.filter(|_| h.free_words() > 10) {
                let mut r = Rng(source);
                h.stop = h.stop.sub(1);
                *h.stop = match r.next(4) {
                    0 => Term::from_raw(0x1000),
                    _ => roots[r.next(roots.len())],
                };
            }
            seen_frag |= !h.frags.is_empty();
            verify(&h, &[&roots]).map_err(|e| format!("round {n} before: {e}"))?;
            let s = show_all(&roots, &h);
            let (kind, need) = (round.kind, round.need);
            let (a, b) = roots.split_at_mut(7);
            match kind {
                0 => {
                    gc::collect(&mut h, need, &mut [a, b], true);
                }
                1 => {
                    gc::shrink_to_fit(&mut h, &mut [a, b]);
                    assert_eq!(h.free_words(), h.stack_reserve);
                }
                2 => {
                    gc::settle(&mut h, &mut [a, b]);
                }
                _ => {
                    gc::collect(&mut h, need, &mut [a, b], false);
                }
            }
            if kind > 2 || kind == 0 {
                assert!(h.free_words() >= need + h.stack_reserve);
            }
            seen_old |= !h.old_heap.is_null();
            verify(&h, &[&roots]).map_err(|e| format!("round {n} after: {e}"))?;
            if s != show_all(&roots, &h) {
                return Err(format!("round {n} changed"));
            }
        }
        gc::destroy(&mut h);
    }
    Ok((seen_old, seen_frag))
}

/// Leaves out parts of a list, first halves and single ones in the end, as long as it fails.
fn reduced<T: Clone>(mut all: Vec<T>, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut size = all.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < all.len() {
            let end = all.len().min(from + size);
            let fewer = [&all[..from], &all[end..]].concat();
            match fails(&fewer) {
                true => all = fewer,
                false => from = end,
            }
        }
        size /= 2;
    }
    all
}

/// Returns the least program that still fails, as far as leaving out parts leads to it.
fn least(program: Vec<Round>, fails: impl Fn(&[Round]) -> bool) -> Vec<Round> {
    let mut all = reduced(program, &fails);
    for i in 0..all.len() {
        let makes = all[i].makes.clone();
        let with = |makes: &[u64]| {
            let mut all = all.clone();
            all[i].makes = makes.to_vec();
            all
        };
        let makes = reduced(makes, |m| fails(&with(m)));
        all = with(&makes);
    }
    all
}

#[test]
fn reduction_finds_the_parts_that_matter() {
    let fails = |all: &[i32]| all.contains(&17) && all.contains(&63);
    assert_eq!(reduced((0..100).collect(), fails), [17, 63]);
    assert!(reduced((0..100).collect(), |_| true).is_empty());
    // Something is made in a round that collects everything, at first one of 4,000 objects.
    let bad = |all: &[Round]| all.iter().any(|r| r.kind == 0 && !r.makes.is_empty());
    let small = least(program(1), bad);
    assert_eq!((small.len(), small[0].makes.len()), (1, 1));
}

#[test]
fn random_graphs_survive_every_kind_of_collection() {
    purlin_term::region::init();
    let e = fun_entry();
    let owned = Arc::new(());
    let _alone = SETTINGS.lock();
    let before = purlin_term::bin::total_bytes();
    let (mut seen_old, mut seen_frag) = (false, false);
    let large = gc::IN_PLACE_WORDS.load(Ordering::Relaxed);
    for seed in 1..120u64 {
        // In every other round, generations of any size are collected in place.
        let limit = if seed % 2 == 0 { 16 } else { large };
        gc::IN_PLACE_WORDS.store(limit, Ordering::Relaxed);
        let all = program(seed);
        // What fails may also be an assertion within the collector.
        let failure = |all: &[Round]| match catch_unwind(AssertUnwindSafe(|| run(all, &e, &owned)))
        {
            Ok(r) => r.err(),
            Err(_) => Some("panicked".to_string()),
        };
        match catch_unwind(AssertUnwindSafe(|| run(&all, &e, &owned))) {
            Ok(Ok((old, frag))) => {
                seen_old |= old;
                seen_frag |= frag;
            }
            _ => {
                let small = least(all, |all| failure(all).is_some());
                panic!("{seed}: {:?}, by {small:#?}", failure(&small));
            }
        }
    }
    gc::IN_PLACE_WORDS.store(large, Ordering::Relaxed);
    assert!(seen_old && seen_frag);
    assert_eq!(e.count(), 1);
    assert_eq!(Arc::strong_count(&owned), 1);
    assert_eq!(purlin_term::bin::total_bytes(), before);
}

/// A generation swept a few slots at a time, and collected, promoted to and verified in all states
/// of the sweep.
#[test]
fn sweeps_in_steps_keep_the_structure() {
    purlin_term::region::init();
    let _alone = SETTINGS.lock();
    let e = fun_entry();
    let owned = Arc::new(());
    let before = purlin_term::bin::total_bytes();
    let large = gc::STEPS_ABOVE_WORDS.swap(0, Ordering::Relaxed);
    let slots = gc::STEP_SLOTS.load(Ordering::Relaxed);
    let (mut sweeps, mut filled, mut given_up) = (0, 0, 0);
    for seed in 1..=30u64 {
        let mut r = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
        gc::STEP_SLOTS.store([1, 7, 40, 1000][r.next(4)], Ordering::Relaxed);
        let mut h = Heap::empty();
        h.keep_generations();
        // SAFETY: every term in use is in `roots` or on the stack; what `make` writes is whole.
        unsafe {
            let mut roots: Vec<Term> = vec![NIL; 60];
            gc::collect(&mut h, 50, &mut [&mut roots], false);
            for round in 0..150 {
                for _ in 0..r.next(60) {
                    let t = make(&mut h, &mut r, &roots, &e, &owned);
                    let i = r.next(roots.len());
                    roots[i] = t;
                }
                let what = |e| panic!("{seed}/{round}: {e}");
                verify(&h, &[&roots]).unwrap_or_else(what);
                let s = show_all(&roots, &h);
                let (on, free) = (h.is_swept_in_steps(), h.old_free_words());
                let (a, b) = roots.split_at_mut(7);
                match r.next(60) {
                    0 => {
                        gc::collect(&mut h, r.next(400), &mut [a, b], true);
                    }
                    1 => {
                        gc::shrink_to_fit(&mut h, &mut [a, b]);
                    }
                    2 => {
                        gc::settle(&mut h, &mut [a, b]);
                    }
                    3 => {
                        gc::sweep_idle(&mut h, &mut [a, b]);
                        assert_eq!(h.free_words(), h.stack_reserve);
                    }
                    4..=30 => {
                        gc::step(&mut h);
                    }
                    _ => {
                        h.waited = r.next(4) != 0;
                        if r.next(4) == 0 {
                            gc::sweep_soon(&mut h);
                        }
                        gc::collect(&mut h, r.next(100), &mut [a, b], false);
                    }
                }
                sweeps += usize::from(on && !h.is_swept_in_steps() && h.runs.is_some());
                given_up += usize::from(on && h.runs.is_none());
                filled += usize::from(h.runs.is_some() && h.old_free_words() < free);
                verify(&h, &[&roots]).unwrap_or_else(what);
                assert!(s == show_all(&roots, &h), "{seed}/{round} changed");
            }
            gc::destroy(&mut h);
        }
    }
    gc::STEPS_ABOVE_WORDS.store(large, Ordering::Relaxed);
    gc::STEP_SLOTS.store(slots, Ordering::Relaxed);
    println!("{sweeps} sweeps, {filled} times runs were filled, {given_up} sweeps given up");
    // In stress mode most sweeps are abandoned for a full one.
    assert!(gc::stress() || (sweeps > 100 && filled > 100 && given_up > 50));
    assert_eq!(e.count(), 1);
    assert_eq!(Arc::strong_count(&owned), 1);
    assert_eq!(purlin_term::bin::total_bytes(), before);
}

/// For tests that change the collector's settings or make or count binaries.
static SETTINGS: purlin_term::sync::Mutex<()> = purlin_term::sync::Mutex::new(());

/// A step of a process that looks at a message in place.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Make objects, half of which point into the message.
    Make,
    Minor,
    Full,
    Shrink,
    /// A collection that needs more room than the block has.
    Grow,
}

/// A received message: a block of its own, with binaries in it.
fn message(r: &mut Rng) -> (purlin_term::frag::Fragment, Vec<Term>) {
    let mut f = purlin_term::frag::Fragment::with_capacity(400);
    let mut all = Vec::new();
    for i in 0..8 {
        let b = f.binary(&[i as u8; 40]);
        let big = f.binary(&[i as u8 + 100; 200]);
        let l = f.list(&[b, Term::small(r.next(1000) as i64), big]);
        let t = f.tuple(&[l, b]);
        all.extend([b, big, l, t]);
    }
    (f, all)
}

/// Looks at a message, does `steps`, receives or refuses it, does `after`, and compares everything
/// that was made.
///
/// # Safety
/// `roots` are all the terms of `h` that are in use.
unsafe fn look(h: &mut Heap, r: &mut Rng, roots: &mut [Term], steps: &[Step], after: &[Step]) {
    let (mut f, parts) = message(r);
    let area: Vec<(usize, usize)> = f
        .areas()
        .map(|(p, n)| (p as usize, p as usize + n * 8))
        .collect();
    let n = roots.len() / 2;
    h.window = true;
    for (k, &s) in steps.iter().chain(after).enumerate() {
        if k == steps.len() {
            h.window = false;
            h.frag_words += f.used_words();
            // SAFETY: the heap takes the fragment over in the next statement.
            unsafe { h.off_heap.append(&mut f.off_heap) };
            h.frags.push(std::mem::take(&mut f));
        }
        let extra: &[(usize, usize)] = if h.window { &area } else { &[] };
        let what = format!("{steps:?}, {after:?}, step {k}");
        // SAFETY: the roots are all terms in use.
        let sound = unsafe { verify_with(h, &[roots], Some(extra)) };
        sound.unwrap_or_else(|e| panic!("{what}, before: {e}"));
        let (before, count, old) = (show_all(roots, h), h.collections, h.old_words());
        match s {
            Step::Make => {
                for i in 0..30 {
                    let x = match h.window {
                        true => parts[r.next(parts.len())],
                        false => roots[r.next(n)],
                    };
                    let y = roots[r.next(roots.len())];
                    let t = match r.next(4) {
                        0 => h.cons(x, y),
                        1 => h.tuple(&[x, y]),
                        2 => match x.as_bits() {
                            Some(b) => h.sub_binary(x, 3, b.bit_len - 5),
                            None => h.flatmap(&[Term::small(1)], &[x]),
                        },
                        _ => match (x.subtag(), x.as_bits()) {
                            (Some(Subtag::HeapBin | Subtag::RefcBin), Some(b)) => {
                                let p = h.alloc(layout::MATCH_CONTEXT_WORDS);
                                let w = p as *mut u64;
                                // SAFETY: the block has the words of a match context, and all are
                                // written.
                                unsafe {
                                    w.write(header(Subtag::MatchContext, 4));
                                    p.add(1).write(x);
                                    w.add(2).write(b.base as u64);
                                    w.add(3).write(8);
                                    w.add(4).write(b.bit_len as u64);
                                    Term::boxed_at(p)
                                }
                            }
                            _ => h.cons(y, x),
                        },
                    };
                    // Those of the second half have lived since before the message.
                    roots[i % n] = t;
                }
                continue;
            }
            // SAFETY: the roots are all terms in use, here and in the other kinds of collection.
            Step::Minor => unsafe { gc::collect(h, 20, &mut [roots], false) },
            // SAFETY: as above.
            Step::Full => unsafe { gc::collect(h, 20, &mut [roots], true) },
            // SAFETY: as above.
            Step::Shrink => unsafe { gc::shrink_to_fit(h, &mut [roots]) },
            // SAFETY: as above.
            Step::Grow => unsafe { gc::collect(h, h.block_words() + 100, &mut [roots], false) },
        };
        assert_ne!(h.collections, count, "{what}: not counted");
        if h.window {
            assert_eq!(h.high_water, h.heap, "{what}: the mark was raised");
            let later = steps[..k].iter().any(|&s| s != Step::Make);
            let promoted = later && h.old_words() > old;
            assert!(!promoted, "{what}: promoted");
        } else {
            assert!(h.high_water == h.htop || h.high_water == h.heap);
        }
        let extra: &[(usize, usize)] = if h.window { &area } else { &[] };
        // SAFETY: the roots are all terms in use.
        let sound = unsafe { verify_with(h, &[roots], Some(extra)) };
        sound.unwrap_or_else(|e| panic!("{what}, after: {e}"));
        assert!(before == show_all(roots, h), "{what}: changed");
    }
}

#[test]
fn what_is_made_out_of_a_message_stays_young_until_it_is_received() {
    use Step::*;
    purlin_term::region::init();
    let _alone = SETTINGS.lock();
    let large = gc::IN_PLACE_WORDS.load(Ordering::Relaxed);
    let bytes = purlin_term::bin::total_bytes();
    let steps: [&[Step]; 9] = [
        &[Make],
        &[Make, Minor],
        &[Make, Minor, Make, Minor, Make],
        &[Make, Full, Make, Minor, Minor],
        &[Make, Minor, Full, Make, Full],
        &[Make, Shrink, Make, Minor],
        &[Make, Grow, Make, Minor, Make, Minor],
        &[Minor, Make, Minor, Minor, Minor],
        &[Make, Full, Full, Make, Minor, Grow],
    ];
    let after: [&[Step]; 4] = [
        &[Minor, Make, Minor, Minor],
        &[Full, Make, Minor, Full],
        &[Shrink, Make, Minor],
        &[Make, Minor, Make, Minor, Full],
    ];
    // In place and settled at any size; and by default.
    for limit in [16, large] {
        gc::IN_PLACE_WORDS.store(limit, Ordering::Relaxed);
        for old in [0, 600] {
            for (i, s) in steps.iter().enumerate() {
                for (j, a) in after.iter().enumerate() {
                    let mut r = Rng(1 + (i * 10 + j) as u64);
                    let mut h = Heap::empty();
                    h.keep_generations();
                    // SAFETY: everything that is used is in `roots`.
                    unsafe {
                        let mut roots = vec![NIL; 24];
                        // An old generation, and survivors of one collection.
                        for round in 0..3 {
                            for k in 0..old / 3 {
                                let at = 12 + k % 12;
                                roots[at] = h.cons(Term::small(k as i64 + round), roots[at]);
                            }
                            gc::collect(&mut h, 10, &mut [&mut roots], false);
                        }
                        for _ in 0..2 {
                            look(&mut h, &mut r, &mut roots, s, a);
                        }
                        gc::destroy(&mut h);
                    }
                }
            }
        }
    }
    gc::IN_PLACE_WORDS.store(large, Ordering::Relaxed);
    assert_eq!(purlin_term::bin::total_bytes(), bytes);
}

#[test]
fn a_large_generation_is_not_promoted_at_once_in_front_of_a_message() {
    purlin_term::region::init();
    let _alone = SETTINGS.lock();
    let mut r = Rng(7);
    let mut h = Heap::empty();
    // SAFETY: everything that is used is in `roots`.
    unsafe {
        let mut roots = vec![NIL; 4];
        let list = |h: &mut Heap, roots: &mut [Term], n: usize| {
            for k in 0..n {
                if h.free_words() < 2 {
                    gc::collect(h, 2, &mut [roots], false);
                }
                roots[0] = h.cons(Term::small(k as i64), roots[0]);
            }
        };
        list(&mut h, &mut roots, 200_000);
        // Without the window, the next collection would promote everything.
        let at_once =
            |h: &Heap| h.all_survives && h.old_block_words() - h.old_words() > h.used_words() + 10;
        while !at_once(&h) {
            assert!(h.all_words() < 1 << 24);
            list(&mut h, &mut roots, 10_000);
            gc::collect(&mut h, 2, &mut [&mut roots], false);
        }
        let (mut f, parts) = message(&mut r);
        let area: Vec<(usize, usize)> = f
            .areas()
            .map(|(p, n)| (p as usize, p as usize + n * 8))
            .collect();
        h.window = true;
        roots[1] = h.tuple(&[parts[3], roots[0]]);
        let s = show_all(&roots, &h);
        for _ in 0..2 {
            gc::collect(&mut h, 2, &mut [&mut roots], false);
            verify_with(&h, &[&roots], Some(&area)).unwrap_or_else(|e| panic!("{e}"));
            assert!(h.high_water == h.heap && h.used_words() >= 3);
        }
        h.window = false;
        h.frag_words += f.used_words();
        h.off_heap.append(&mut f.off_heap);
        h.frags.push(f);
        for _ in 0..3 {
            gc::collect(&mut h, 2, &mut [&mut roots], false);
            verify(&h, &[&roots]).unwrap_or_else(|e| panic!("{e}"));
        }
        assert!(s == show_all(&roots, &h));
        gc::destroy(&mut h);
    }
}

#[test]
fn long_lists_take_no_native_stack() {
    let mut h = Heap::empty();
    let mut roots = [NIL];
    for i in 0..2_000_000 {
        if h.free_words() < 2 {
            // SAFETY: the list is the only term in use.
            unsafe { gc::collect(&mut h, 2, &mut [&mut roots], false) };
        }
        roots[0] = h.cons(Term::small(i), roots[0]);
    }
    // SAFETY: as above.
    unsafe { gc::collect(&mut h, 2, &mut [&mut roots], true) };
    assert_eq!(roots[0].list_iter().count(), 2_000_000);
    // SAFETY: nothing is used after.
    unsafe { gc::destroy(&mut h) };
}

#[test]
fn heap_sizes_are_the_documented_series() {
    let s = gc::heap_sizes();
    assert_eq!(&s[..6], &[12, 38, 51, 90, 142, 233]);
    assert_eq!(
        &s[21..26],
        &[514838, 833026, 999631, 1199557, 1439468].map(|n: usize| n)[..]
    );
    assert_eq!(gc::heap_size_for(234), 376);
}
