//! Tests of [`super::order`]: the order of turns, and a model of a scheduler with its processes.
//! The model compares that order with two others: round robin, as in stock, and woken processes
//! before all others, sixteen to one.
//!
//! Time is counted in reductions. `cargo test -p purlin-kernel order_tests -- --nocapture` prints
//! the results of each kind of load with each order.

use super::order::*;
use crate::process::state::Priority;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Picks the process of normal priority to run next.
trait Order {
    fn put(&mut self, cell: u32, cause: Cause);
    /// Records the reductions of the process taken last.
    fn next(&mut self, ran: i64) -> Option<u32>;
}

impl Order for Queues {
    fn put(&mut self, cell: u32, cause: Cause) {
        self.push(cell, Priority::Normal, cause);
    }
    fn next(&mut self, ran: i64) -> Option<u32> {
        self.ran(ran, 0);
        self.pop()
    }
}

/// One queue for all.
#[derive(Default)]
struct InTurn(VecDeque<u32>);

impl Order for InTurn {
    fn put(&mut self, cell: u32, _: Cause) {
        self.0.push_back(cell);
    }
    fn next(&mut self, _: i64) -> Option<u32> {
        self.0.pop_front()
    }
}

/// Woken processes first; after sixteen of them, one of the others.
#[derive(Default)]
struct WokenFirst {
    woken: VecDeque<u32>,
    others: VecDeque<u32>,
    in_a_row: u32,
}

impl Order for WokenFirst {
    fn put(&mut self, cell: u32, cause: Cause) {
        match cause {
            Cause::Woken | Cause::New => self.woken.push_back(cell),
            _ => self.others.push_back(cell),
        }
    }
    fn next(&mut self, _: i64) -> Option<u32> {
        if (self.in_a_row < 16 || self.others.is_empty())
            && let Some(c) = self.woken.pop_front()
        {
            self.in_a_row += 1;
            return Some(c);
        }
        self.in_a_row = 0;
        self.others.pop_front()
    }
}

/// Behaviour of a process.
#[derive(Clone, Copy)]
enum Behaviour {
    /// Computes all the time.
    Computes,
    /// Is woken, works for a number of reductions between two bounds, and makes the next `hops`
    /// processes do so, one after another. The next request follows after a pause.
    Serves {
        work: (i64, i64),
        hops: u32,
        pause: i64,
    },
    /// One of the processes behind such a server.
    Hop,
}

const SHORT: Behaviour = serves(SLICE / 8, SLICE / 8);

/// Client that asks again at once.
const fn serves(from: i64, to: i64) -> Behaviour {
    Behaviour::Serves {
        work: (from, to),
        hops: 0,
        pause: 0,
    }
}

struct Outcome {
    /// Response times of servers from wake-up to completion, sorted, in slices, for the first kind
    /// of load.
    took: Vec<f64>,
    /// Fraction of the time that went to computing processes.
    computed: f64,
}

impl Outcome {
    fn at(&self, part: f64) -> f64 {
        self.took[((self.took.len() - 1) as f64 * part) as usize]
    }
}

/// Runs a `load` (number of processes per behaviour) for `slices`. The first fifth isn't counted.
fn run(order: &mut dyn Order, load: &[(u32, Behaviour)], slices: i64) -> Outcome {
    let mut behaviours: Vec<(usize, Behaviour)> = Vec::new();
    for (kind, &(n, what)) in load.iter().enumerate() {
        for _ in 0..n {
            behaviours.push((kind, what));
            if let Behaviour::Serves { hops, .. } = what {
                behaviours.extend((0..hops).map(|_| (kind, Behaviour::Hop)));
            }
        }
    }
    let mut random = 88_172_645_463_325_252_u64;
    let mut between = |from: i64, to: i64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        from + (random % (to - from + 1) as u64) as i64
    };
    let n = behaviours.len();
    let (mut left, mut had, mut began) = (vec![0; n], vec![0u16; n], vec![0i64; n]);
    // The server that a process works for.
    let server = |c: usize| {
        (0..=c)
            .rev()
            .find(|&s| !matches!(behaviours[s].1, Behaviour::Hop))
    };
    let mut wakes: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    for (c, d) in behaviours.iter().enumerate() {
        match d.1 {
            Behaviour::Computes => {
                left[c] = i64::MAX;
                order.put(c as u32, Cause::New);
            }
            Behaviour::Serves { .. } => wakes.push(Reverse((between(0, SLICE * 20), c))),
            Behaviour::Hop => {}
        }
    }
    let (end, counted) = (slices * SLICE, slices * SLICE / 5);
    let (mut now, mut ran, mut computed) = (0, 0, 0);
    let mut took = Vec::new();
    while now < end {
        while let Some(&Reverse((at, c))) = wakes.peek()
            && at <= now
        {
            wakes.pop();
            if let Behaviour::Serves { work, .. } = behaviours[c].1 {
                (began[c], left[c], had[c]) = (at, between(work.0, work.1), 0);
            }
            order.put(c as u32, Cause::Woken);
        }
        let Some(c) = order.next(ran) else {
            let Some(&Reverse((at, _))) = wakes.peek() else {
                break;
            };
            (now, ran) = (now.max(at), 0);
            continue;
        };
        let c = c as usize;
        ran = left[c].min(SLICE);
        now += ran + PICK;
        left[c] -= ran;
        if matches!(behaviours[c].1, Behaviour::Computes) && now > counted {
            computed += ran;
        }
        if left[c] > 0 {
            had[c] = (had[c] + 1).min(TURN_SLICES);
            let cause = match had[c] == TURN_SLICES {
                true => Cause::Long,
                false => Cause::Spent,
            };
            order.put(c as u32, cause);
            continue;
        }
        let Some(s) = server(c) else { continue };
        let Behaviour::Serves { work, hops, pause } = behaviours[s].1 else {
            continue;
        };
        if c < s + hops as usize {
            (left[c + 1], had[c + 1]) = (between(work.0, work.1), 0);
            order.put(c as u32 + 1, Cause::Woken);
            continue;
        }
        if behaviours[s].0 == 0 && now > counted {
            took.push((now - began[s]) as f64 / SLICE as f64);
        }
        wakes.push(Reverse((now + pause, s)));
    }
    took.sort_by(f64::total_cmp);
    Outcome {
        took,
        computed: computed as f64 / (now - counted) as f64,
    }
}

/// Prints the figures of a load with this order, round robin, and woken processes first.
fn compare(name: &str, load: &[(u32, Behaviour)]) -> [Outcome; 3] {
    let slices = 200_000;
    let orders: [Box<dyn Order>; 3] = [
        Box::new(Queues::new()),
        Box::<InTurn>::default(),
        Box::<WokenFirst>::default(),
    ];
    let all = orders.map(|mut o| run(&mut *o, load, slices));
    for (o, order) in all.iter().zip(["shares", "in turn", "16 to 1"]) {
        println!(
            "{name:60} {order:8} {:8.1} {:8.1} {:8.1} slices, {:3.0}% computed",
            o.at(0.5),
            o.at(0.99),
            o.at(1.0),
            100.0 * o.computed
        );
    }
    all
}

/// Each of 64 clients asks again as soon as it has its answer.
#[test]
fn at_saturation_the_tail_is_no_longer_than_if_all_went_in_turn() {
    let mixed = [(64, serves(SLICE * 3 / 4, SLICE * 5 / 4))];
    let few = [(64, serves(2 * SLICE, 4 * SLICE))];
    let some = [(64, serves(12 * SLICE, 18 * SLICE))];
    let many = [(64, serves(30 * SLICE, 50 * SLICE))];
    // Two processes pass each request on.
    let hops = Behaviour::Serves {
        work: (SLICE / 2, 3 * SLICE),
        hops: 2,
        pause: 0,
    };
    let beside = [(16, serves(3 * SLICE, 5 * SLICE)), (48, SHORT)];
    for (name, load) in [
        ("64 clients, about a slice", &mixed[..]),
        ("64 clients, 2 to 4 slices", &few[..]),
        ("64 clients, 12 to 18 slices", &some[..]),
        ("64 clients, 30 to 50 slices", &many[..]),
        (
            "64 clients, three processes of half a slice to 3",
            &[(64, hops)],
        ),
        (
            "16 clients, 3 to 5 slices, beside 48 of short requests",
            &beside[..],
        ),
    ] {
        let [ours, in_turn, _] = compare(name, load);
        let (a, b) = (ours.at(0.99), in_turn.at(0.99));
        assert!(a <= 1.1 * b, "{name}: {a} slices, in turn {b}");
    }
}

#[test]
fn who_is_woken_waits_for_a_slice_beside_a_thousand_that_compute() {
    let tick = |work, hops| Behaviour::Serves {
        work: (work, work),
        hops,
        pause: 100 * SLICE,
    };
    let thousand = (1000, Behaviour::Computes);
    for (name, what, most) in [
        ("a tick beside 1,000 that compute", (1, tick(200, 0)), 1.2),
        (
            "20 ticks beside 1,000 that compute",
            (20, tick(200, 0)),
            3.0,
        ),
        (
            "ten that hand on, beside 1,000 that compute",
            (1, tick(200, 9)),
            1.8,
        ),
        (
            "a request of 4 slices beside 1,000 that compute",
            (1, tick(4 * SLICE, 0)),
            9.0,
        ),
    ] {
        let [ours, in_turn, _] = compare(name, &[what, thousand]);
        assert!(ours.at(0.99) <= most, "{name}: {}", ours.at(0.99));
        assert!(ours.at(0.99) * 100.0 < in_turn.at(0.99), "{name}");
    }
}

#[test]
fn nobody_takes_more_than_a_share() {
    // Many short processes don't wait for the few that compute, which would take longer,
    let [ours, in_turn, _] = compare(
        "1,000 clients, short, beside 4 that compute",
        &[(1000, SHORT), (4, Behaviour::Computes)],
    );
    assert!(ours.at(0.99) <= 2.5 * in_turn.at(0.99));
    // and computing processes always get something.
    assert!(ours.computed > 0.05, "{}", ours.computed);
    let (request, computes) = (
        (64, serves(3 * SLICE, 5 * SLICE)),
        (64, Behaviour::Computes),
    );
    let [ours, in_turn, _] = compare(
        "64 clients, 3 to 5 slices, beside 64 that compute",
        &[request, computes],
    );
    assert!(ours.at(0.99) <= in_turn.at(0.99));
    assert!(ours.computed > 0.2, "{}", ours.computed);
}

#[test]
fn higher_priorities_go_first() {
    let mut q = Queues::new();
    q.push(1, Priority::Low, Cause::Spent);
    q.push(2, Priority::Normal, Cause::Spent);
    q.push(3, Priority::High, Cause::Spent);
    q.push(4, Priority::Max, Cause::Spent);
    let order: Vec<u32> = std::iter::from_fn(|| q.pop()).collect();
    assert_eq!(order, [4, 3, 2, 1]);
    assert_eq!(q.len, 0);
}

#[test]
fn each_low_process_has_an_eighth_of_the_turns_of_a_normal_one() {
    for (normal, low) in [(1, 1), (500, 500), (1000, 4), (4, 1000), (3, 50)] {
        let mut q = Queues::new();
        for i in 0..normal + low {
            let prio = if i < normal {
                Priority::Normal
            } else {
                Priority::Low
            };
            q.push(i, prio, Cause::Spent);
        }
        let mut turns = [0u32; 2];
        for _ in 0..200_000 {
            let c = q.pop().expect("something is always queued");
            let is_low = c >= normal;
            turns[usize::from(is_low)] += 1;
            let prio = [Priority::Normal, Priority::Low][usize::from(is_low)];
            q.push(c, prio, Cause::Spent);
        }
        let share = |n: u32, of: u32| f64::from(n) / f64::from(of);
        let ratio = share(turns[1], low) / share(turns[0], normal);
        assert!((0.1..0.15).contains(&ratio), "{normal} {low}: {ratio}");
    }
}
