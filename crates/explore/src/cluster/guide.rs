//! The order in which faults are tried.
//!
//! First single faults at the messages of the program, each kind of them once: the first message
//! of a kind, then the last one, then other extents and the message in the middle; and in turn
//! with these at the messages of libraries, together with clocks that differ from the start. A run
//! that comes to messages that no run before came to shows what the fault has set in motion; from
//! it follow pairs, whose second fault is at a message after the first. Between these, and after
//! them, faults are drawn at random, with random orders of the processes within nodes.
//!
//! Most failures of real clusters need one or two faults at a place of their own protocol (Alquraan
//! and others: An analysis of network-partitioning failures in cloud systems, OSDI 2018), which is
//! why places are messages first, and moments last.

use super::fault::{
    At, Class, Fault, Harm, LATE_AT_MOST, MS, Message, Node, Profile, Scope, Seen, Wanted, When,
};
use purlin_world::clock::RATES;
use purlin_world::streams::Stream;
use std::collections::{BTreeSet, VecDeque};

/// Maximum number of pairs that follow from one run.
const MOST_PAIRS: usize = 120;

/// See the module's documentation.
pub(super) struct Guide {
    wanted: Vec<Wanted>,
    /// Single faults at messages of the program, and of libraries.
    singles: VecDeque<Vec<Fault>>,
    of_libraries: VecDeque<Vec<Fault>>,
    /// Pairs by the run that they follow from, those that may show most first.
    pairs: VecDeque<VecDeque<Vec<Fault>>>,
    /// Messages that some run came to: how often, in steps.
    seen: BTreeSet<(Message, bool, u32)>,
    /// All that was tried.
    given: BTreeSet<String>,
}

/// The usual extents of faults that are aimed.
const CUT: u64 = 5000 * MS;
const LONG_CUT: u64 = 20_000 * MS;
const BACK: u64 = 100 * MS;
const LATER: u64 = 2000 * MS;
/// The difference of a wall clock from the others.
const SKEW: i64 = 10_000 * MS as i64;

/// How long aimed faults last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Usual,
    /// Longer cuts, later restarts, shorter delays.
    Other,
    /// As usual, for a fault beside another one: one direction alone is not cut.
    Second,
}

/// Returns the faults that are wanted at a message.
fn aimed(
    wanted: &[Wanted],
    profile: &Profile,
    message: &Message,
    arrives: bool,
    nth: u64,
    extent: Extent,
) -> Vec<Fault> {
    let (a, b) = (message.from, message.to);
    if a == 0 || b == 0 {
        return Vec::new();
    }
    let many = profile.nodes.len() > 2;
    let usual = extent != Extent::Other;
    let mut all = Vec::new();
    let mut add = |when, what| {
        all.push(Fault {
            place: At::Message(when, message.clone(), nth),
            what,
        });
    };
    let mortal = |n: Node| profile.mortal.contains(&n);
    for Wanted { class, scope } in wanted {
        match class {
            Class::Delay => {
                let time = if usual { LATE_AT_MOST } else { 1200 * MS };
                match arrives {
                    true => add(When::Arrives, Harm::Pause(b, time)),
                    false => {
                        add(When::Before, Harm::Delay(a, b, time));
                        add(When::Before, Harm::Stall(a, time));
                        add(When::Before, Harm::Pause(a, time));
                    }
                }
            }
            Class::Overtaken if arrives => {
                let time = if usual { LATE_AT_MOST } else { 1200 * MS };
                add(When::Arrives, Harm::Overtaken(b, time));
            }
            Class::Reset if !arrives => {
                let when = if usual { When::Before } else { When::After };
                add(when, Harm::Reset(a, b));
            }
            Class::Cut if !arrives => {
                let time = if usual { CUT } else { LONG_CUT };
                add(When::Before, Harm::Cut(a, b, time));
                if many {
                    add(When::Before, Harm::Alone(a, time));
                    add(When::Before, Harm::Alone(b, time));
                }
                if profile.nodes.len() > 3 || *scope == Scope::Halves {
                    add(When::Before, Harm::Halves(half(profile, a, b), time));
                }
                if extent != Extent::Second || matches!(scope, Scope::Way(..)) {
                    add(When::Before, Harm::OneWay(a, b, time));
                    add(When::Before, Harm::OneWay(b, a, time));
                }
            }
            Class::Kill | Class::Power => {
                let back = Some(if usual { BACK } else { LATER });
                let harm = |n| match class {
                    Class::Kill => Harm::Kill(n, back),
                    _ => Harm::Power(n, back),
                };
                match arrives {
                    false if mortal(a) => add(When::After, harm(a)),
                    true if mortal(b) => add(When::Arrives, harm(b)),
                    _ => {}
                }
            }
            Class::Clock if !arrives => {
                let by = 2 * LATER as i64;
                add(When::Before, Harm::Step(a, if usual { -by } else { by }));
            }
            _ => {}
        }
    }
    all.retain(|f| wanted.iter().any(|w| w.has(&f.what)));
    all
}

/// Returns a half of the nodes that has the first one, and not the second.
fn half(profile: &Profile, a: Node, b: Node) -> u32 {
    let others = profile.nodes.iter().filter(|n| **n != a && **n != b);
    let more = (profile.nodes.len() / 2).saturating_sub(1);
    let all = others.take(more).chain([&a]);
    all.fold(0, |half, n| half | 1 << (n - 1))
}

/// Returns faults of one node's clocks each: its wall clock differs from the start, or its clocks
/// run at another rate.
fn other_clocks(base: &Profile) -> Vec<Vec<Fault>> {
    let early = At::Time(base.begins.unwrap_or(0));
    let of = |place: At, what: fn(Node) -> Harm| {
        let one = move |n: &Node| Fault {
            place: place.clone(),
            what: what(*n),
        };
        base.nodes.iter().map(one).map(|f| vec![f])
    };
    let mut all: Vec<Vec<Fault>> = of(early.clone(), |n| Harm::Rate(n, -RATES)).collect();
    all.extend(of(At::Time(0), |n| Harm::Step(n, SKEW)));
    all.extend(of(At::Time(0), |n| Harm::Step(n, -SKEW)));
    all.extend(of(early, |n| Harm::Rate(n, RATES)));
    all
}

/// Messages of a profile, with whether they arrive.
fn messages(profile: &Profile) -> impl Iterator<Item = (&Message, &Seen, bool)> {
    let sent = profile.sent.iter().map(|(m, s)| (m, s, false));
    sent.chain(profile.arrived.iter().map(|(m, s)| (m, s, true)))
}

impl Guide {
    /// `base`: the profile of a run without faults.
    pub fn new(wanted: &[Wanted], base: &Profile) -> Guide {
        let mut guide = Guide {
            wanted: wanted.to_vec(),
            singles: VecDeque::new(),
            of_libraries: VecDeque::new(),
            pairs: VecDeque::new(),
            seen: BTreeSet::new(),
            given: BTreeSet::new(),
        };
        guide.learn_messages(base);
        let clocks = other_clocks(base).into_iter();
        let clocks = clocks.filter(|all| all.iter().all(|f| wanted.iter().any(|w| w.has(&f.what))));
        guide.of_libraries.extend(clocks);
        let first = |_: &Seen| 1_u64;
        let last = |s: &Seen| s.turns.len() as u64;
        let middle = |s: &Seen| s.turns.len() as u64 / 2 + 1;
        guide.add_singles(base, true, Extent::Usual, &first);
        guide.add_singles(base, true, Extent::Usual, &last);
        guide.add_singles(base, true, Extent::Other, &first);
        guide.add_singles(base, true, Extent::Usual, &middle);
        guide.add_singles(base, false, Extent::Usual, &first);
        guide
    }

    /// Adds single faults at one message of each kind, the kinds of faults in turn.
    fn add_singles(
        &mut self,
        base: &Profile,
        is_program: bool,
        extent: Extent,
        which: &dyn Fn(&Seen) -> u64,
    ) {
        let of = messages(base).filter(|(_, s, _)| s.is_program == is_program);
        let mut of: Vec<_> = of.collect();
        of.sort_by_key(|(_, s, _)| s.turns.first().copied());
        let lists = of.into_iter().map(|(m, s, arrives)| {
            let all = aimed(&self.wanted, base, m, arrives, which(s), extent);
            VecDeque::from(all)
        });
        let mut lists: Vec<VecDeque<Fault>> = lists.collect();
        while lists.iter().any(|l| !l.is_empty()) {
            let next = lists.iter_mut().filter_map(VecDeque::pop_front);
            let to = match is_program {
                true => &mut self.singles,
                false => &mut self.of_libraries,
            };
            to.extend(next.map(|f| vec![f]));
        }
    }

    /// Notes the messages that a run came to. Returns how many kinds of the program's are new.
    fn learn_messages(&mut self, profile: &Profile) -> usize {
        let mut new = 0;
        for (m, s, arrives) in messages(profile).filter(|(_, s, _)| s.is_program) {
            // 1, 2 to 3, 4 to 7 ...
            let steps = s.turns.len().ilog2();
            new += usize::from(self.seen.insert((m.clone(), arrives, steps)));
        }
        new
    }

    /// Learns from a run with faults that has passed.
    pub fn learn(&mut self, faults: &[Fault], profile: &Profile) {
        let new = self.learn_messages(profile);
        let [first] = faults else { return };
        let At::Message(when, m, nth) = &first.place else {
            return;
        };
        if new == 0 || matches!(first.what, Harm::Order(..)) {
            return;
        }
        let all = match when {
            When::Arrives => &profile.arrived,
            _ => &profile.sent,
        };
        let nth = usize::try_from(*nth).unwrap_or(usize::MAX);
        let Some(begun) = all.get(m).and_then(|s| s.turns.get(nth - 1)).copied() else {
            return;
        };
        let mut behind: Vec<(u64, Vec<Fault>)> = Vec::new();
        for (m, s, arrives) in messages(profile).filter(|(_, s, _)| s.is_program) {
            let before = s.turns.partition_point(|t| *t < begun);
            let Some(turn) = s.turns.get(before) else {
                continue;
            };
            let n = before as u64 + 1;
            let all = aimed(&self.wanted, profile, m, arrives, n, Extent::Second);
            behind.push((*turn, all));
        }
        behind.sort_by_key(|(turn, _)| *turn);
        let all = behind.into_iter().flat_map(|(_, all)| all);
        let all = all.filter(|f| f != first && f.late() + first.late() <= LATE_AT_MOST);
        // Another kind of fault shows more than the same again.
        let class = first.what.class();
        let (other, same): (Vec<Fault>, Vec<Fault>) = all.partition(|f| f.what.class() != class);
        let pairs = other.into_iter().chain(same).take(MOST_PAIRS);
        self.pairs
            .push_back(pairs.map(|f| vec![first.clone(), f]).collect());
    }

    /// Returns the next pair, of the runs in turn.
    fn pair(&mut self) -> Option<Vec<Fault>> {
        while let Some(mut all) = self.pairs.pop_front() {
            if let Some(pair) = all.pop_front() {
                self.pairs.push_back(all);
                return Some(pair);
            }
        }
        None
    }

    fn drawn(&self, base: &Profile, numbers: &mut Stream) -> Vec<Fault> {
        let faults = base.draw(&self.wanted, numbers);
        // Orders within nodes alone, beside faults, or not at all.
        match numbers.below(4) {
            _ if faults.is_empty() => faults,
            0 => base.draw_orders(numbers),
            1 => {
                let mut all = base.draw_orders(numbers);
                all.extend(faults);
                all
            }
            _ => faults,
        }
    }

    /// Returns the faults of the schedule of that number, from 1 on.
    pub fn next(&mut self, base: &Profile, n: usize, numbers: &mut Stream) -> Vec<Fault> {
        for _ in 0..1000 {
            let own = |g: &mut Guide| g.singles.pop_front();
            let others = |g: &mut Guide| g.of_libraries.pop_front();
            let faults = match n % 4 {
                0 => None,
                1 => own(self).or_else(|| self.pair()).or_else(|| others(self)),
                2 => self.pair().or_else(|| own(self)).or_else(|| others(self)),
                _ => others(self).or_else(|| own(self)).or_else(|| self.pair()),
            };
            let faults = faults.unwrap_or_else(|| self.drawn(base, numbers));
            let text: Vec<String> = faults.iter().map(Fault::text).collect();
            if self.given.insert(text.join("\n")) {
                return faults;
            }
        }
        self.drawn(base, numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(from: Node, to: Node, name: &str) -> Message {
        Message {
            from,
            to,
            name: name.into(),
        }
    }

    fn seen(turns: &[u64]) -> Seen {
        Seen {
            is_program: true,
            turns: turns.to_vec(),
        }
    }

    fn base() -> Profile {
        Profile {
            sent: [(message(1, 2, "ask"), seen(&[5, 9]))].into(),
            arrived: [(message(1, 2, "ask"), seen(&[6, 10]))].into(),
            packets: [((1, 2, 1), 40)].into(),
            nodes: vec![1, 2, 3],
            mortal: vec![1, 2, 3],
            took: 1000 * MS,
            ..Profile::default()
        }
    }

    fn places(all: &[Fault]) -> Vec<String> {
        all.iter().map(Fault::text).collect()
    }

    #[test]
    fn singles_come_first_and_pairs_follow_from_what_is_new() {
        let mut numbers = Stream::from_state(1);
        let mut guide = Guide::new(&[Class::Cut.into(), Class::Kill.into()], &base());
        let first = guide.next(&base(), 1, &mut numbers);
        assert_eq!(
            places(&first),
            ["message before 1 2 1 cut 1 2 5000000000 of ask"]
        );
        // Nothing is new.
        guide.learn(&first, &base());
        assert!(guide.pair().is_none());
        let mut other = base();
        let asks = message(3, 2, "ask");
        other.sent.insert(asks.clone(), seen(&[12]));
        other.arrived.insert(asks, seen(&[13]));
        guide.learn(&first, &other);
        let all: Vec<Vec<Fault>> = std::iter::from_fn(|| guide.pair()).collect();
        assert!(all.iter().all(|p| p.len() == 2 && p[0] == first[0]));
        let has = |text: &str| all.iter().any(|p| p[1].text() == text);
        assert!(
            has("message after 3 2 1 kill 3 100000000 of ask"),
            "{all:?}"
        );
        assert!(has("message arrives 3 2 1 kill 2 100000000 of ask"));
        // What follows from one run is given once.
        guide.learn(&first, &other);
        assert!(guide.pair().is_none());
    }

    #[test]
    fn nothing_is_given_twice_while_there_is_more() {
        let mut numbers = Stream::from_state(1);
        let mut guide = Guide::new(&[Class::Delay.into()], &base());
        let mut all = BTreeSet::new();
        for n in 1..20 {
            let faults = guide.next(&base(), n, &mut numbers);
            assert!(all.insert(places(&faults)), "{faults:?}");
        }
    }
}
