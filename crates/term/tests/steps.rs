//! Sweeps in steps: the purpose of each of their rules. In stress mode collections behave at
//! random, so none of this can be arranged: the random graphs of `gc.rs` and the programs cover it.

use purlin_term::heap::Heap;
use purlin_term::region::{self, Builder, Region};
use purlin_term::verify::{verify, verify_old_holds};
use purlin_term::{Alloc, NIL, Term, copy, gc};
use std::sync::atomic::Ordering;

const KEPT: usize = 24;

/// Serialises tests that change the collector's settings.
static SETTINGS: purlin_term::sync::Mutex<()> = purlin_term::sync::Mutex::new(());

/// A heap with an old generation of any size, with `KEPT` lists in the roots, each of them in one
/// piece.
fn old_lists(h: &mut Heap) -> Vec<Term> {
    region::init();
    gc::STEPS_ABOVE_WORDS.store(0, Ordering::Relaxed);
    gc::STEP_SLOTS.store(40, Ordering::Relaxed);
    h.keep_generations();
    let mut roots: Vec<Term> = (0..KEPT).map(|i| list(h, i)).collect();
    promote(h, &mut roots);
    assert!(h.old_words() >= KEPT * 80);
    roots
}

fn list(h: &mut Heap, i: usize) -> Term {
    let v: Vec<Term> = (0..40).map(|k| Term::small((i * 100 + k) as i64)).collect();
    h.list(&v)
}

fn is_list(t: Term, i: usize) -> bool {
    (0..40).try_fold(t, |t, k| {
        let (x, rest) = t.as_cons()?;
        (x == Term::small((i * 100 + k) as i64)).then_some(rest)
    }) == Some(NIL)
}

/// A minor collection of a process that waited; a sweep begins after it if one may.
fn minor(h: &mut Heap, roots: &mut [Term]) {
    h.waited = true;
    // SAFETY: the roots are all that is used.
    unsafe { gc::collect(h, 0, &mut [roots], false) };
    sound(h, roots);
}

/// Promotes everything young: what is built lies in fragments first.
fn promote(h: &mut Heap, roots: &mut [Term]) {
    for _ in 0..3 {
        minor(h, roots);
    }
}

fn step(h: &mut Heap) {
    // SAFETY: the heap belongs to this thread.
    unsafe { gc::step(h) };
}

/// Begins a sweep that takes more than one step. A sweep under way counts as live what lived when
/// it began.
fn begin(h: &mut Heap, roots: &mut [Term]) {
    finish(h, roots);
    gc::sweep_soon(h);
    minor(h, roots);
    assert!(h.is_swept_in_steps());
}

fn finish(h: &mut Heap, roots: &[Term]) {
    while h.is_swept_in_steps() {
        step(h);
        sound(h, roots);
    }
}

fn sound(h: &Heap, roots: &[Term]) {
    // SAFETY: the heap's own pointers are right.
    unsafe { verify(h, &[roots]) }.unwrap_or_else(|e| panic!("{e}"));
}

fn in_region(t: Term) -> (Term, &'static Region) {
    let mut b = Builder::counted(copy::size_of(t));
    let s = copy::copy(t, &mut b);
    (s, b.finish())
}

/// Runs of the previous sweep are filled while the next one continues, at any point of it.
#[test]
fn what_is_promoted_to_an_old_run_while_a_sweep_is_on_lives() {
    if gc::stress() {
        return;
    }
    let _alone = SETTINGS.lock();
    for after in 0..400 {
        let mut h = Heap::empty();
        let mut roots = old_lists(&mut h);
        roots[8..16].fill(NIL);
        begin(&mut h, &mut roots);
        finish(&mut h, &roots);
        let free = h.old_free_words();
        assert!(free >= 8 * 80, "{free}");
        begin(&mut h, &mut roots);
        for _ in 0..after {
            step(&mut h);
        }
        let late = !h.is_swept_in_steps();
        for (i, root) in roots.iter_mut().enumerate().take(12).skip(8) {
            *root = list(&mut h, i);
        }
        promote(&mut h, &mut roots);
        finish(&mut h, &roots);
        // Everything promoted finds room in runs: nothing else may come to lie there, and no run is
        // in the table twice.
        let all = h.old_words();
        for _ in 0..4 {
            roots[20] = list(&mut h, 20);
            promote(&mut h, &mut roots);
        }
        assert!(h.old_free_words() <= all);
        for (i, &t) in roots.iter().enumerate() {
            let none = (12..16).contains(&i);
            assert!(if none { t == NIL } else { is_list(t, i) }, "{after}, {i}");
        }
        // SAFETY: nothing of it is used any more.
        unsafe { gc::destroy(&mut h) };
        if late {
            return;
        }
    }
    panic!("the sweep doesn't end");
}

/// A region held for an old object that died is found again, as a persistent term is, before the
/// sweep is over.
#[test]
fn a_region_found_while_a_sweep_is_on_stays_held() {
    if gc::stress() {
        return;
    }
    let _alone = SETTINGS.lock();
    let mut h = Heap::empty();
    let mut roots = old_lists(&mut h);
    let l = list(&mut h, 7);
    let (s, r) = in_region(l);
    h.off_heap.regions.hold(r);
    roots[1] = h.tuple(&[s]);
    promote(&mut h, &mut roots);
    assert!(h.old_off_heap.regions.covers(s.ptr()));
    // The young generation does not hold it any more, once it was collected.
    minor(&mut h, &mut roots);
    assert!(!h.off_heap.regions.covers(s.ptr()));
    roots[1] = NIL;
    begin(&mut h, &mut roots);
    assert!(h.old_off_heap.regions.covers(s.ptr()));
    roots[2] = s;
    while h.is_swept_in_steps() {
        step(&mut h);
    }
    sound(&h, &roots);
    assert!(h.off_heap.regions.covers(s.ptr()) && r.holders.count() == 2);
    minor(&mut h, &mut roots);
    assert!(is_list(roots[2], 7));
    roots[2] = NIL;
    minor(&mut h, &mut roots);
    assert_eq!(r.holders.count(), 1);
    // SAFETY: nothing of it is used any more; ours is the last count.
    unsafe {
        gc::destroy(&mut h);
        r.release();
    }
}

/// A term of a region that only code holds is written to an old tuple: before a sweep, at any step
/// of one, and after it. From then on the generation holds the region, as long as the tuple lives.
#[test]
fn what_is_written_to_an_old_tuple_holds_its_region() {
    if gc::stress() {
        return;
    }
    let _alone = SETTINGS.lock();
    for before in 0..400 {
        let mut h = Heap::empty();
        let mut roots = old_lists(&mut h);
        roots[1] = h.tuple(&[NIL, NIL]);
        promote(&mut h, &mut roots);
        let l = list(&mut h, 7);
        let (s, r) = in_region(l);
        begin(&mut h, &mut roots);
        for _ in 0..before {
            step(&mut h);
        }
        let late = !h.is_swept_in_steps();
        // SAFETY: nobody else knows the tuple, and the new term is not younger than it.
        unsafe { h.write_to(roots[1].ptr().add(2), s) };
        // The code goes.
        unsafe { r.release() };
        finish(&mut h, &roots);
        minor(&mut h, &mut roots);
        assert_eq!(r.holders.count(), 1, "{before}");
        // SAFETY: the heap is whole, and `r` is still there: its holders have just been counted.
        let held = unsafe { verify_old_holds(&h, &[r]) };
        assert_eq!(held, Ok(()), "{before}");
        assert!(is_list(roots[1].as_tuple().unwrap()[1], 7));
        r.retain();
        roots[1] = NIL;
        begin(&mut h, &mut roots);
        finish(&mut h, &roots);
        minor(&mut h, &mut roots);
        assert_eq!(r.holders.count(), 1, "{before}");
        // SAFETY: nothing of it is used any more; ours is the last count.
        unsafe {
            gc::destroy(&mut h);
            r.release();
        }
        if late {
            return;
        }
    }
    panic!("the sweep doesn't end");
}

/// Elements of an old tuple are written at any step of a sweep, when some of them are met and not
/// yet visited. What is written leads out of the generation, or nowhere.
#[test]
fn an_old_tuple_may_be_written_to_at_any_step() {
    if gc::stress() {
        return;
    }
    let _alone = SETTINGS.lock();
    for before in 0..400 {
        let mut h = Heap::empty();
        let mut roots = old_lists(&mut h);
        let elements: Vec<Term> = (0..60).map(|i| h.list(&[Term::small(i)])).collect();
        roots[1] = h.tuple(&elements);
        promote(&mut h, &mut roots);
        let l = list(&mut h, 7);
        let (s, r) = in_region(l);
        begin(&mut h, &mut roots);
        for _ in 0..before {
            step(&mut h);
        }
        let late = !h.is_swept_in_steps();
        let written = [s, Term::small(-1), NIL, Term::small(7), roots[2]];
        for i in 0..60 {
            // SAFETY: only this test knows the tuple, and the new terms are not younger than it.
            unsafe { h.write_to(roots[1].ptr().add(1 + i), written[i % 5]) };
        }
        finish(&mut h, &roots);
        minor(&mut h, &mut roots);
        let now = roots[1].as_tuple().unwrap();
        assert!(is_list(now[0], 7) && now[59] == roots[2], "{before}");
        assert!(
            is_list(roots[2], 2) && now[58] == Term::small(7),
            "{before}"
        );
        // SAFETY: nothing of it is used any more; ours is the last count.
        unsafe {
            gc::destroy(&mut h);
            r.release();
        }
        if late {
            return;
        }
    }
    panic!("the sweep doesn't end");
}

/// The verifier finds a word of an old object that leads to a region which its generation does not
/// hold, whatever other holders there are.
#[test]
fn an_old_word_that_nobody_holds_is_found() {
    if gc::stress() {
        return;
    }
    let _alone = SETTINGS.lock();
    let mut h = Heap::empty();
    let mut roots = old_lists(&mut h);
    roots[1] = h.tuple(&[NIL, NIL]);
    promote(&mut h, &mut roots);
    let l = list(&mut h, 7);
    let (s, r) = in_region(l);
    r.set_code(true);
    h.off_heap.regions.hold(r);
    // SAFETY: the words are those of the tuple; ours is a count.
    unsafe {
        assert_eq!(verify_old_holds(&h, &[r]), Ok(()));
        *roots[1].ptr().add(2) = s;
        assert!(verify(&h, &[&roots]).is_err());
        let lost = verify_old_holds(&h, &[r]).unwrap_err();
        assert!(lost.contains("purged and not held"), "{lost}");
        *roots[1].ptr().add(2) = NIL;
        h.write_to(roots[1].ptr().add(2), s);
        assert_eq!(verify_old_holds(&h, &[r]), Ok(()));
        assert_eq!(verify(&h, &[&roots]), Ok(()));
        gc::destroy(&mut h);
        r.release();
    }
}

/// A sent term that died is not taken for another that comes to lie in its place.
#[test]
fn what_was_sent_is_forgotten_when_it_died() {
    if gc::stress() {
        return;
    }
    let _alone = SETTINGS.lock();
    let mut h = Heap::empty();
    let mut roots = old_lists(&mut h);
    let (s, r) = in_region(roots[9]);
    let was = roots[9];
    // SAFETY: they are equal.
    unsafe { h.remember_sent(was, s, r) };
    minor(&mut h, &mut roots);
    assert!(h.knows_sent(was));
    roots[9] = NIL;
    begin(&mut h, &mut roots);
    finish(&mut h, &roots);
    assert!(!h.knows_sent(was));
    for i in 0..20 {
        roots[9] = list(&mut h, i);
        promote(&mut h, &mut roots);
        assert!(is_list(roots[9], i));
    }
    // SAFETY: nothing of it is used any more; ours is the last count.
    unsafe {
        gc::destroy(&mut h);
        r.release();
    }
}

/// The stack is looked at as a sweep begins.
#[test]
fn what_only_the_stack_holds_lives_through_a_sweep() {
    if gc::stress() {
        return;
    }
    let _alone = SETTINGS.lock();
    let mut h = Heap::empty();
    h.stack_reserve = 2;
    let mut roots = old_lists(&mut h);
    finish(&mut h, &roots);
    assert!(h.free_words() > 0);
    // SAFETY: there is room for it, and nothing of the heap is used at the end.
    unsafe {
        h.stop = h.stop.sub(1);
        *h.stop = std::mem::replace(&mut roots[11], NIL);
        begin(&mut h, &mut roots);
        finish(&mut h, &roots);
        for i in 0..20 {
            roots[12] = list(&mut h, i);
            promote(&mut h, &mut roots);
            assert!(is_list(*h.stop, 11));
        }
        gc::destroy(&mut h);
    }
}

/// Built terms are old once their process waits: no later collection copies them, unless the old
/// generation has no room.
#[test]
fn what_was_built_is_old_after_settling() {
    if gc::stress() {
        return;
    }
    let _alone = SETTINGS.lock();
    region::init();
    let mut h = Heap::empty();
    let mut roots: Vec<Term> = (0..KEPT).map(|i| list(&mut h, i)).collect();
    assert!(!h.frags.is_empty());
    // SAFETY: the roots are all that is used, and nothing of the heap at the end.
    unsafe {
        gc::settle(&mut h, &mut [&mut roots]);
        sound(&h, &roots);
        assert!(h.used_words() == 0 && h.old_words() == KEPT * 80);
        for round in 0..40 {
            for (i, root) in roots.iter_mut().enumerate() {
                if i % 3 == round % 3 {
                    *root = list(&mut h, i);
                }
            }
            gc::collect(&mut h, 4000, &mut [&mut roots], false);
            gc::settle(&mut h, &mut [&mut roots]);
            sound(&h, &roots);
            assert!(roots.iter().enumerate().all(|(i, &t)| is_list(t, i)));
        }
        gc::destroy(&mut h);
    }
}

/// The terms of a process multiply. Its generation grows in place, if the addresses behind it are
/// free.
#[test]
fn a_generation_grows_where_it_lies() {
    if gc::stress() || purlin_term::fence::on() {
        return;
    }
    let _alone = SETTINGS.lock();
    region::init();
    gc::STEPS_ABOVE_WORDS.store(0, Ordering::Relaxed);
    let mut h = Heap::empty();
    let mut roots = vec![NIL; 40];
    // SAFETY: the roots are all that is used, and nothing of the heap at the end.
    unsafe {
        for (round, root) in (0..40).zip(0..) {
            gc::collect(&mut h, 60_000, &mut [&mut roots], false);
            let v: Vec<Term> = (0..30_000).map(|k| Term::small(k + round)).collect();
            roots[root] = h.list(&v);
            h.waited = true;
            match round {
                0..6 => gc::settle(&mut h, &mut [&mut roots]),
                _ => gc::collect(&mut h, 0, &mut [&mut roots], false),
            };
            for _ in 0..100 {
                step(&mut h);
            }
        }
        sound(&h, &roots);
        for (round, &root) in roots.iter().enumerate() {
            let (mut t, mut k) = (root, round as i64);
            while let Some((x, rest)) = t.as_cons() {
                assert!(x == Term::small(k));
                (t, k) = (rest, k + 1);
            }
            assert_eq!(k, 30_000 + round as i64);
        }
        assert!(h.old_words() > 1_800_000);
        gc::destroy(&mut h);
    }
}

/// If the old generation has no room, it is collected, and then the built terms are promoted all
/// the same.
#[test]
fn what_has_no_room_is_old_after_settling_too() {
    if gc::stress() {
        return;
    }
    let _alone = SETTINGS.lock();
    let mut h = Heap::empty();
    let mut roots = old_lists(&mut h);
    finish(&mut h, &roots);
    let room = (h.old_hend as usize - h.old_htop as usize) / 8;
    let new: Vec<Term> = (0..2000).map(|i| list(&mut h, i)).collect();
    assert!(new.len() * 80 > room);
    roots.extend(new);
    // SAFETY: the roots are all that is used, and nothing of the heap at the end.
    unsafe {
        gc::settle(&mut h, &mut [&mut roots]);
        sound(&h, &roots);
        assert!(h.used_words() == 0 && h.old_words() >= (KEPT + 2000) * 80);
        assert!((0..2000).all(|i| is_list(roots[KEPT + i], i)));
        gc::destroy(&mut h);
    }
}

/// A sweep that begins because a process waits for long moves nothing old, and leaves no spare room
/// in front of it.
#[test]
fn the_sweep_of_who_waits_for_long_moves_nothing() {
    if gc::stress() {
        return;
    }
    let _alone = SETTINGS.lock();
    let mut h = Heap::empty();
    let mut roots = old_lists(&mut h);
    finish(&mut h, &roots);
    roots[10] = list(&mut h, 10);
    roots[14..].fill(NIL);
    let was = roots.clone();
    // SAFETY: the roots are all that is used, and nothing of the heap at the end.
    unsafe {
        assert!(gc::is_swept_idle(&h));
        gc::sweep_idle(&mut h, &mut [&mut roots]);
        assert!(h.is_swept_in_steps() && !gc::is_sparse(&h));
        assert!(h.used_words() == 0 && h.free_words() == h.stack_reserve);
        finish(&mut h, &roots);
        assert!(gc::is_sparse(&h));
        let same = |i: usize| i == 10 || roots[i].raw() == was[i].raw();
        assert!((0..14).all(|i| is_list(roots[i], i) && same(i)));
        // First cells lie one after the other, the rest of each list in one piece: a replaced list
        // leaves a run without its first cell.
        assert_eq!(h.old_free_words(), (KEPT - 14) * 80 + 78);
        promote(&mut h, &mut roots);
        assert!(!gc::is_swept_idle(&Heap::empty()));
        gc::destroy(&mut h);
    }
}

/// The pages of a long run go back to the system a part at a time, and nothing is promoted there
/// before.
#[test]
fn a_long_run_is_used_when_all_of_it_was_given_back() {
    if gc::stress() || purlin_term::fence::on() {
        return;
    }
    let _alone = SETTINGS.lock();
    let mut h = Heap::empty();
    let mut roots = old_lists(&mut h);
    gc::STEP_SLOTS.store(30_000, Ordering::Relaxed);
    let long: Vec<Term> = (0..1_500_000).map(Term::small).collect();
    roots[20] = h.list(&long);
    promote(&mut h, &mut roots);
    finish(&mut h, &roots);
    // So much lives that gathering it does not pay.
    roots.push(h.list(&long[..200_000]));
    promote(&mut h, &mut roots);
    roots[20] = NIL;
    begin(&mut h, &mut roots);
    let mut steps = 0;
    while h.is_swept_in_steps() {
        step(&mut h);
        roots[steps % 20] = list(&mut h, steps % 20);
        promote(&mut h, &mut roots);
        steps += 1;
    }
    assert!(h.old_free_words() > 2 << 20, "{}", h.old_free_words());
    finish(&mut h, &roots);
    for i in (0..20).chain(21..KEPT) {
        assert!(is_list(roots[i], i), "{i}");
    }
    // SAFETY: nothing of it is used any more.
    unsafe { gc::destroy(&mut h) };
}
