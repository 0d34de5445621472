//! Models the queue of signals in transit, and the table that leads to it. Each signal reaches the
//! process to which it was sent, whole, once and in order, or it goes back to its sender.

#[path = "../../kernel/src/message/queue.rs"]
#[allow(dead_code)]
mod queue;
#[path = "../../kernel/src/process/slots.rs"]
#[allow(dead_code)]
mod slots;
use purlin_models::{explore, sync};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use queue::{InTransit, Link};
use slots::{Cells, Slots};
use sync::{AtomicU32, Ordering};

#[repr(C)]
struct Signal {
    link: Link,
    to: u32,
    /// Written by the sender, read by the receiver: loom reports it if that is not ordered.
    number: UnsafeCell<u32>,
}

fn signal(to: u32, number: u32) -> *mut Signal {
    let s = Box::new(Signal {
        link: Link {
            next: std::ptr::null_mut(),
        },
        to,
        number: UnsafeCell::new(0),
    });
    // SAFETY: loom checks that nobody else has it.
    s.number.with_mut(|p| unsafe { *p = number });
    Box::into_raw(s)
}

/// Frees a chain and returns the numbers in it.
fn read(mut chain: *mut Link, me: u32) -> Vec<u32> {
    let mut v = Vec::new();
    while !chain.is_null() {
        // SAFETY: made by `signal`, and taken from the queue once.
        let s = unsafe { Box::from_raw(chain as *mut Signal) };
        chain = s.link.next;
        assert_eq!(s.to, me, "it was sent to this process");
        // SAFETY: loom checks that it is ordered after the write.
        v.push(s.number.with(|p| unsafe { *p }));
    }
    v
}

/// Two senders, and a receiver that takes the pending signals now and then and closes the queue at
/// last.
#[test]
fn signals_arrive_whole_and_in_order() {
    explore("signals arrive whole and in order", Some(3), || {
        let q = Arc::new(InTransit::closed());
        q.open();
        let senders: Vec<_> = (0..2)
            .map(|from| {
                let q = q.clone();
                thread::spawn(move || {
                    let mut sent = 0;
                    for n in 0..2 {
                        let s = signal(7, 10 * from + n);
                        // SAFETY: a fresh signal, still ours if it is refused.
                        unsafe {
                            match q.push(&mut (*s).link, || true) {
                                Ok(()) => sent += 1,
                                Err(_) => drop(Box::from_raw(s)),
                            }
                        }
                    }
                    sent
                })
            })
            .collect();
        let mut got = read(q.take(), 7);
        got.extend(read(q.close(), 7));
        let sent: usize = senders.into_iter().map(|s| s.join().expect("runs")).sum();
        assert_eq!(got.len(), sent);
        for from in 0..2 {
            let mine: Vec<u32> = got.iter().copied().filter(|n| n / 10 == from).collect();
            assert!(mine.is_sorted(), "{got:?}");
        }
    });
}

const NOBODY: u32 = u32::MAX;
const SLOTS: usize = 8;

/// Cells as far as senders see them; they are zeroed until they are used.
struct Memory {
    slots: [AtomicU32; SLOTS],
    ids: [AtomicU32; 4],
    queues: [InTransit; 4],
}

impl Cells for Memory {
    const FIRST_SLOTS: usize = 4;
    const MAX_SLOTS: usize = SLOTS;
    const DATA_MASK: u64 = 31;
    const NO_ID: u32 = NOBODY;
    fn slot(&self, i: usize) -> &AtomicU32 {
        &self.slots[i]
    }
    fn id(&self, cell: u32) -> &AtomicU32 {
        &self.ids[cell as usize]
    }
    fn prepare(&self, cell: u32) {
        self.queues[cell as usize].close_if_zeroed();
    }
}

fn table() -> Arc<Slots<Memory>> {
    let memory = Memory {
        slots: std::array::from_fn(|_| AtomicU32::new(0)),
        ids: std::array::from_fn(|_| AtomicU32::new(0)),
        queues: std::array::from_fn(|_| InTransit::zeroed()),
    };
    let t = Arc::new(Slots::closed(memory));
    t.open(SLOTS);
    // The first process, which has the data 0, never ends.
    assert_eq!(t.reserve(None), Ok((0, 0)));
    t.cells.queues[0].open();
    t
}

/// Sends as `signal::send` does; returns whether the signal was accepted.
fn send(t: &Slots<Memory>, to: u32, number: u32) -> bool {
    let Some(cell) = t.find(to) else {
        return false;
    };
    let s = signal(to, number);
    // SAFETY: a fresh signal, still ours if it is refused.
    unsafe {
        let q = &t.cells.queues[cell as usize];
        let ok = q
            .push(&mut (*s).link, || {
                t.cells.id(cell).load(Ordering::Acquire) == to
            })
            .is_ok();
        if !ok {
            drop(Box::from_raw(s));
        }
        ok
    }
}

fn exit(t: &Slots<Memory>, cell: u32, me: u32) -> usize {
    let got = read(t.cells.queues[cell as usize].close(), me).len();
    t.withdraw(cell, None);
    t.release(cell);
    got
}

/// A process ends, and its cell is reused at once, while another process sends to it.
#[test]
fn no_signal_comes_to_the_next_process_of_a_cell() {
    explore(
        "no signal comes to the next process of a cell",
        Some(3),
        || {
            let t = table();
            let Ok((cell, first)) = t.reserve(None) else {
                unreachable!("there is room")
            };
            t.cells.queues[cell as usize].open();
            let to = t.clone();
            let sender = thread::spawn(move || {
                let n = usize::from(send(&to, first, 1));
                n + usize::from(send(&to, first, 2))
            });
            let mut got = exit(&t, cell, first);
            let Ok((cell, second)) = t.reserve(None) else {
                unreachable!("there is room")
            };
            t.cells.queues[cell as usize].open();
            assert_eq!(t.find(second), Some(cell));
            got += exit(&t, cell, second);
            assert_eq!(sender.join().expect("runs"), got);
            assert_eq!(t.find(first), None);
            assert_eq!(t.live(), 1);
        },
    );
}

/// A process sends to a guessed pid, of a process that is being made in a cell that was never used.
#[test]
fn an_early_signal_is_refused() {
    explore("an early signal is refused", Some(4), || {
        let t = table();
        let to = t.clone();
        let sender = thread::spawn(move || {
            let all = to.all();
            all.into_iter()
                .filter(|&p| p != 0)
                .map(|p| usize::from(send(&to, p, 1)))
                .sum::<usize>()
        });
        let Ok((cell, me)) = t.reserve(None) else {
            unreachable!("there is room")
        };
        t.cells.queues[cell as usize].open();
        let sent = sender.join().expect("runs");
        assert_eq!(exit(&t, cell, me), sent);
    });
}

/// The table grows while one thread looks a process up, and another lists all.
#[test]
fn a_process_is_found_while_the_table_grows() {
    explore("a process is found while the table grows", Some(3), || {
        let t = table();
        // Processes 0, 3 and 5; the last is in slot 1 of 4, and will be in slot 5 of 8.
        for _ in 0..2 {
            assert!(t.reserve(None).is_ok());
        }
        exit(&t, 1, 1);
        exit(&t, 2, 2);
        assert_eq!((t.reserve(None), t.reserve(None)), (Ok((2, 3)), Ok((1, 5))));
        let (a, b) = (t.clone(), t.clone());
        let finder = thread::spawn(move || assert_eq!(a.find(5), Some(1)));
        let lister = thread::spawn(move || {
            let mut all = b.all();
            all.retain(|&p| p <= 5);
            all.sort_unstable();
            assert_eq!(all, [0, 3, 5]);
        });
        assert_eq!((t.size(), t.reserve(None).is_ok(), t.size()), (4, true, 8));
        finder.join().expect("runs");
        lister.join().expect("runs");
    });
}
