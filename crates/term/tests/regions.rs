//! Regions: their holders, and when they are freed.

use purlin_term::frag::Fragment;
use purlin_term::graph::{self, Graph};
use purlin_term::heap::Heap;
use purlin_term::region::{self, Builder, Region, is_region_ptr};
use purlin_term::verify::{verify, verify_region};
use purlin_term::{Alloc, NIL, Term, compare, copy, gc};

fn numbers(h: &mut impl Alloc, n: i64) -> Term {
    let v: Vec<Term> = (0..n).map(Term::small).collect();
    h.list(&v)
}

fn in_region(t: Term) -> (Term, &'static Region) {
    let mut b = Builder::counted(copy::size_of(t));
    let s = copy::copy(t, &mut b);
    (s, b.finish())
}

fn holders(r: &Region) -> u64 {
    r.holders.count()
}

fn sound(h: &Heap, roots: &[Term]) {
    // SAFETY: the heap's own pointers are right.
    unsafe { verify(h, &[roots]) }.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn what_was_sent_is_left_to_the_region_by_the_next_collection() {
    region::init();
    for full in [false, true] {
        let mut h = Heap::empty();
        let mut roots = [NIL, NIL];
        let l = numbers(&mut h, 10_000);
        roots[0] = h.tuple(&[l, Term::small(1)]);
        roots[1] = l;
        let (s, r) = in_region(l);
        // SAFETY: the roots are all that is used.
        unsafe {
            verify_region(r).unwrap_or_else(|e| panic!("{e}"));
            h.remember_sent(l, s, r);
            assert_eq!(h.sent_as(l), Some(s));
            gc::collect(&mut h, 0, &mut [&mut roots], full);
            sound(&h, &roots);
            assert!(roots[1] == s && roots[0].as_tuple().unwrap_or(&[])[0] == s);
            assert!(h.all_words() < 100 && h.sent_as(l).is_none());
            // Ours, and the heap's: of one generation, unless it is left to chance.
            let stress = gc::stress();
            assert!(holders(r) == 2 || (stress && holders(r) == 3));
            roots = [NIL, NIL];
            gc::collect(&mut h, 0, &mut [&mut roots], full || stress);
            assert_eq!(holders(r), 1);
            gc::destroy(&mut h);
            r.release();
        }
    }
}

#[test]
fn a_term_of_the_old_generation_is_left_by_a_full_sweep() {
    region::init();
    let mut h = Heap::empty();
    let mut roots = [numbers(&mut h, 10_000)];
    // SAFETY: the roots are all that is used.
    unsafe {
        // It survives twice, so it is old.
        gc::collect(&mut h, 0, &mut [&mut roots], false);
        gc::collect(&mut h, 0, &mut [&mut roots], false);
        let stress = gc::stress();
        let (s, r) = in_region(roots[0]);
        h.remember_sent(roots[0], s, r);
        gc::collect(&mut h, 0, &mut [&mut roots], false);
        assert!(stress || h.sent_as(roots[0]) == Some(s));
        assert_eq!(holders(r), 2);
        gc::collect(&mut h, 0, &mut [&mut roots], true);
        sound(&h, &roots);
        assert!(roots[0] == s && h.all_words() == 0);
        gc::destroy(&mut h);
        assert_eq!(holders(r), 1);
        r.release();
    }
}

#[test]
fn minor_collections_release_what_only_young_terms_referred_to() {
    region::init();
    let mut h = Heap::empty();
    let mut f = purlin_term::frag::Fragment::new();
    let l = numbers(&mut f, 5000);
    let (s, r) = in_region(l);
    let (s2, r2) = in_region(l);
    h.off_heap.regions.hold(r);
    h.off_heap.regions.hold(r2);
    let mut roots = [h.tuple(&[s]), h.tuple(&[s2])];
    // SAFETY: the roots are all that is used.
    unsafe {
        for _ in 0..3 {
            gc::collect(&mut h, 0, &mut [&mut roots], false);
            sound(&h, &roots);
            assert_eq!((holders(r), holders(r2) > 1), (2, true));
        }
        roots[1] = NIL;
        gc::collect(&mut h, 0, &mut [&mut roots], true);
        assert_eq!((holders(r), holders(r2)), (2, 1));
        h.off_heap.regions.hold(r2);
        gc::collect(&mut h, 0, &mut [&mut roots], false);
        assert_eq!((holders(r), holders(r2)), (2, 1));
        gc::destroy(&mut h);
        assert_eq!(holders(r), 1);
        r.release();
        r2.release();
        f.destroy();
    }
}

#[test]
fn a_small_part_is_copied_out_of_a_large_region() {
    region::init();
    let mut f = purlin_term::frag::Fragment::new();
    let parts: Vec<Term> = (0..20_000)
        .map(|i| {
            let b = f.binary(&[7; 100]);
            f.tuple(&[Term::small(i), b])
        })
        .collect();
    let t = f.list(&parts);
    let (s, r) = in_region(t);
    let mut h = Heap::empty();
    h.off_heap.regions.hold(r);
    let third = s.list_iter().nth(2).unwrap_or(NIL);
    let mut roots = [third, h.tuple(&[third, third])];
    // SAFETY: the roots are all that is used.
    unsafe {
        gc::collect(&mut h, 0, &mut [&mut roots], true);
        sound(&h, &roots);
        assert_eq!(holders(r), 1);
        assert!(!is_region_ptr(roots[0].ptr()));
        assert!(compare::eq_exact(roots[0], third));
        // Once.
        let e = roots[1].as_tuple().unwrap_or(&[]);
        assert!(e[0] == roots[0] && e[1] == roots[0]);
        // All of it stays.
        h.off_heap.regions.hold(r);
        let mut roots = [s];
        gc::collect(&mut h, 0, &mut [&mut roots], true);
        assert!(roots[0] == s && holders(r) == 2);
        gc::destroy(&mut h);
        assert_eq!(holders(r), 1);
        r.release();
        f.destroy();
    }
}

#[test]
fn what_is_reached_twice_is_copied_once() {
    region::init();
    let mut f = purlin_term::frag::Fragment::new();
    let mut t = NIL;
    for _ in 0..40 {
        t = f.cons(t, t);
    }
    assert!(Graph::<true>::of(t, None, 39).is_none());
    let Some(g) = Graph::<true>::of(t, None, 1000) else {
        panic!("it has no more words");
    };
    assert!(g.words() == 80 && g.any_twice());
    let mut b = Builder::counted(80);
    let s = g.copy(t, &mut b);
    let r = b.finish();
    // In a region, which has a map of its own; and as a part of a larger term.
    let Some(g) = Graph::<false>::of(s, None, 1000) else {
        panic!("it has no more words");
    };
    assert!(g.words() == 80 && g.any_twice());
    let pair = f.tuple(&[s, t, s, NIL]);
    let Some(g) = Graph::<false>::of(pair, None, 1000) else {
        panic!("it has no more words");
    };
    assert_eq!(g.words(), 5 + 2 * 80);
    let mut frag = purlin_term::frag::Fragment::new();
    let copy = g.copy(pair, &mut frag);
    let e = copy.as_tuple().unwrap_or_default();
    assert!(e.len() == 4 && e[0] == e[2] && e[0] != e[1] && e[0] != s);
    assert_eq!(frag.used_words(), 5 + 2 * 80);
    // If nothing is reached twice it is the same as a plain copy.
    let l = f.list(&[Term::small(1), Term::small(2)]);
    let Some(g) = Graph::<true>::of(l, None, 1000) else {
        panic!("it has no more words");
    };
    assert!(g.words() == 4 && !g.any_twice());
    let mut depth = 0;
    let mut c = s;
    while let Some((a, d)) = c.as_cons() {
        assert!(a == d);
        c = a;
        depth += 1;
    }
    assert_eq!(depth, 40);
    // SAFETY: not used after.
    unsafe {
        verify_region(r).unwrap_or_else(|e| panic!("{e}"));
        r.release();
        f.destroy();
        frag.destroy();
    }
}

#[test]
fn counts_return_to_where_they_were() {
    region::init();
    let threads: Vec<_> = (0..4u64)
        .map(|seed| {
            std::thread::spawn(move || {
                // A generator of numbers, so that the run is the same each time.
                let mut x = seed * 7919 + 1;
                let mut next = |n: u64| {
                    x = x
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    (x >> 33) % n
                };
                let mut heaps: Vec<(Heap, [Term; 4])> =
                    (0..4).map(|_| (Heap::empty(), [NIL; 4])).collect();
                for _ in 0..2000 {
                    let (from, to) = (next(4) as usize, next(4) as usize);
                    let slot = next(4) as usize;
                    match next(4) {
                        0 => {
                            let (h, roots) = &mut heaps[from];
                            let n = 1 + next(3000) as i64;
                            let l = numbers(h, n);
                            roots[slot] = h.tuple(&[l, roots[next(4) as usize]]);
                            if next(8) == 0 {
                                *roots = [roots[slot], NIL, NIL, NIL];
                            }
                        }
                        // "Sends" one of the heap's terms.
                        1 => {
                            let t = heaps[from].1[slot];
                            if t.is_immed() || copy::size_within(t, 1 << 16).is_none() {
                                continue;
                            }
                            let (h, _) = &mut heaps[from];
                            let mut f = purlin_term::frag::Fragment::new();
                            let s = match h.sent_as(t) {
                                Some(s) => s,
                                None if h.owns(t.ptr()) => {
                                    let (s, r) = in_region(t);
                                    f.off_heap.regions.adopt(r);
                                    // SAFETY: a copy.
                                    unsafe { h.remember_sent(t, s, r) };
                                    s
                                }
                                None => t,
                            };
                            let m = copy::copy(s, &mut f);
                            let (h, roots) = &mut heaps[to];
                            h.receive_regions(&mut f.off_heap.regions);
                            h.frags.push(f);
                            roots[next(4) as usize] = m;
                        }
                        _ => {
                            let full = next(3) == 0;
                            let (h, roots) = &mut heaps[from];
                            // SAFETY: the roots are all that is used.
                            unsafe { gc::collect(h, 0, &mut [&mut roots[..]], full) };
                            sound(h, &roots[..]);
                        }
                    }
                }
                for (mut h, _) in heaps {
                    // SAFETY: not used after.
                    unsafe { gc::destroy(&mut h) };
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap_or_else(|_| panic!("a thread died"));
    }
}

#[test]
fn a_graph_refers_to_what_was_sent_before() {
    region::init();
    let mut h = Heap::empty();
    let l = numbers(&mut h, 1000);
    let (s, r) = in_region(l);
    // SAFETY: `s` is a copy of `l`, which stays until the heap goes.
    unsafe { h.remember_sent(l, s, r) };
    let again = h.cons(l, l);
    let t = h.tuple(&[l, again, NIL]);
    let Some(g) = Graph::<true>::of(t, Some(&h), 1000) else {
        panic!("it has no more words");
    };
    assert!(g.words() == 4 + 2 && g.any_twice());
    let mut b = Builder::counted(g.words());
    let c = g.copy(t, &mut b);
    let outer = b.finish();
    let e = c.as_tuple().unwrap_or_default();
    assert!(e[0] == s && e[1].as_cons() == Some((s, s)) && outer.holds(s.ptr()));
    // SAFETY: nothing is used after.
    unsafe {
        outer.release();
        gc::destroy(&mut h);
        assert_eq!(holders(r), 1);
        r.release();
    }
}

/// A copy of a term in a region equals it, shares what it shared, and takes as many words as were
/// measured, whatever was copied before: the previous term decides whether the next is measured
/// first.
#[test]
fn regions_are_the_same_whether_or_not_terms_are_measured_first() {
    region::init();
    let mut h = Heap::empty();
    let other = numbers(&mut h, 100);
    let (held, of_other) = in_region(other);
    let mut terms = Vec::new();
    for n in [1, 5000, 6000, 20, 11_000, 4000, 40_000, 1] {
        let plain = numbers(&mut h, n);
        terms.push(plain);
        let v: Vec<Term> = (0..n.min(3000))
            .map(|i| {
                let x = [Term::small(i), held, h.float(i as f64)];
                let big = h.binary(&[i as u8; 100]);
                let small = h.binary(&[i as u8; 3]);
                let part = h.sub_binary(big, 8, 400);
                let few = h.sub_binary(big, 16, 80);
                let t = h.tuple(&x);
                h.tuple(&[t, big, small, part, few])
            })
            .collect();
        let mixed = h.list(&v);
        terms.push(mixed);
        terms.push(h.tuple(&[mixed, plain, held, NIL]));
        terms.push(h.tuple(&[mixed, mixed]));
        terms.push(h.list_tail(&[plain, mixed], mixed));
    }
    for round in 0..3 {
        for (i, &t) in terms.iter().enumerate() {
            let measured = Graph::<true>::whole(t, Some(&h)).words();
            let (s, r) = graph::to_region(t, &h);
            assert!(compare::eq_exact(s, t), "term {i} of round {round}");
            assert_eq!(r.words, measured, "term {i} of round {round}");
            assert_eq!(r.holds(held.ptr()), i % 5 != 0);
            // SAFETY: held here.
            unsafe {
                verify_region(r).unwrap_or_else(|e| panic!("{e}"));
                if let (3, Some(e)) = (i % 5, s.as_tuple()) {
                    assert!(e[0] == e[1]);
                }
                r.release();
            }
        }
    }
    assert_eq!(holders(of_other), 1);
    // SAFETY: nothing is used after.
    unsafe {
        gc::destroy(&mut h);
        of_other.release();
    }
}

#[test]
fn lengths_of_lists_in_regions_are_remembered() {
    region::init();
    let length = |t: Term| region::list_length(t);
    let mut h = Heap::empty();
    for round in 0..3 {
        let n = 5000 + round;
        let private = numbers(&mut h, n as i64);
        assert_eq!(length(private), Some((n, n)));
        let (s, r) = in_region(private);
        assert_eq!(length(s), Some((n, n)));
        assert_eq!(length(s), Some((n, 0)));
        // A part of it is another list, and so is one that starts outside.
        let (mut tail, mut front) = (s, s);
        for i in 1..=3 {
            front = h.cons(Term::small(i as i64), front);
            assert_eq!(length(front), Some((n + i, i)));
        }
        for i in 1..=3 {
            tail = tail.as_cons().map_or(NIL, |c| c.1);
            assert_eq!(length(tail).map(|l| l.0), Some(n - i));
        }
        assert_eq!(length(s).map(|l| l.0), Some(n));
        // Nobody refers to it any more, and the next region lies in its place.
        // SAFETY: the terms are not used.
        unsafe { r.release() };
    }
}

#[test]
fn what_is_no_proper_list_has_no_length() {
    region::init();
    let mut h = Heap::empty();
    let mut t = Term::small(1);
    for i in 0..3000 {
        t = h.cons(Term::small(i), t);
    }
    let (s, _) = in_region(t);
    for _ in 0..2 {
        assert_eq!(region::list_length(s), None);
        assert_eq!(region::list_length(t), None);
    }
    assert_eq!(region::list_length(NIL), Some((0, 0)));
    assert_eq!(region::list_length(Term::small(1)), None);
    // Many lists in one region: each place holds the last of those that share it.
    let lists: Vec<Term> = (0..50).map(|i| numbers(&mut h, 1000 + i)).collect();
    let all = h.list(&lists);
    let (all, r) = in_region(all);
    for _ in 0..3 {
        for (i, l) in all.list_iter().enumerate() {
            assert_eq!(region::list_length(l).map(|x| x.0), Some(1000 + i));
        }
    }
    // SAFETY: the terms are not used.
    unsafe { r.release() };
}

#[test]
fn the_parts_of_a_message_are_found_behind_closures_and_maps() {
    region::init();
    let mut h = Heap::empty();
    let stand_in = Term::small(77);
    let near = |h: &mut Heap, t: Term| {
        let map = h.flatmap(&[Term::small(0)], &[t]);
        let list = h.list(&[map, t]);
        h.tuple(&[list])
    };
    let found = |t: Term, made: Option<Term>| {
        let (mut f, mut seen) = (Fragment::new(), Vec::new());
        let got = copy::replace_parts(t, &mut f, &mut |p| {
            seen.push(p);
            stand_in
        });
        if let Some(m) = made {
            assert!(compare::eq_exact(got, m));
        }
        // SAFETY: the terms made are not used any more.
        unsafe { f.destroy() };
        seen
    };
    let large = numbers(&mut h, 1000);
    let (t, made) = (near(&mut h, large), near(&mut h, stand_in));
    // Once, although it is there twice.
    assert_eq!(found(t, Some(made)), [large]);
    // Too deep: some term around it.
    let mut deep = large;
    for _ in 0..20 {
        deep = h.tuple(&[deep]);
    }
    let seen = found(deep, None);
    assert!(seen.len() == 1 && seen[0] != large);
    // Only some of many, however deep.
    let mut wide = NIL;
    for _ in 0..5 {
        let v: Vec<Term> = (0..8).map(|_| copy::copy(wide, &mut h)).collect();
        wide = h.tuple(&v);
    }
    assert!((1..200).contains(&found(wide, None).len()));
    // SAFETY: its terms are not used any more.
    unsafe { gc::destroy(&mut h) };
}
