//! Tests of [`super::queue`], on threads of the system. `crates/models` compiles the same file for
//! its models.

use super::queue::*;
use std::sync::Arc;

#[repr(C)]
struct Sig {
    link: Link,
    from: usize,
    n: usize,
}
fn sig(from: usize, n: usize) -> *mut Link {
    Box::into_raw(Box::new(Sig {
        link: Link {
            next: std::ptr::null_mut(),
        },
        from,
        n,
    })) as *mut Link
}
fn drain(mut p: *mut Link, mut f: impl FnMut(&Sig)) {
    while !p.is_null() {
        // SAFETY: made by `sig`, taken from the queue once.
        let b = unsafe { Box::from_raw(p as *mut Sig) };
        p = b.link.next;
        f(&b);
    }
}

#[test]
fn signals_of_one_sender_keep_their_order() {
    let q = Arc::new(InTransit::closed());
    q.open();
    const N: usize = 20_000;
    let senders: Vec<_> = (0..3)
        .map(|from| {
            let q = q.clone();
            std::thread::spawn(move || {
                for n in 0..N {
                    // SAFETY: a fresh signal.
                    assert!(unsafe { q.push(sig(from, n), || true) }.is_ok());
                }
            })
        })
        .collect();
    let mut next = [0; 3];
    while next.iter().sum::<usize>() < 3 * N {
        drain(q.take(), |s| {
            assert_eq!(s.n, next[s.from]);
            next[s.from] += 1;
        });
    }
    for s in senders {
        assert!(s.join().is_ok());
    }
    assert!(q.is_empty());
}

#[test]
fn a_closed_queue_refuses_and_gives_back_the_rest() {
    let q = InTransit::closed();
    let s = sig(0, 0);
    // SAFETY: `s` stays ours on refusal.
    unsafe {
        assert_eq!(q.push(s, || true), Err(Closed));
        q.open();
        assert_eq!(q.push(s, || false), Err(Closed));
        assert_eq!(q.push(s, || true), Ok(()));
        assert_eq!(q.push(sig(0, 1), || true), Ok(()));
    }
    let mut seen = vec![];
    drain(q.close(), |s| seen.push(s.n));
    assert_eq!(seen, [0, 1]);
    let s = sig(0, 2);
    // SAFETY: refused, so still ours.
    unsafe {
        assert_eq!(q.push(s, || true), Err(Closed));
        drop(Box::from_raw(s as *mut Sig));
    }
}
