//! The faults of a cluster: what happens, where, and for how long.

use crate::deviation::Sampling;
use crate::operation::Point;
use purlin_world::clock::RATES;
use purlin_world::streams::Stream;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Number of a node, from 1 on.
pub type Node = u32;

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;

/// The kinds of faults that a search may use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    Delay,
    Reset,
    Cut,
    Kill,
    Power,
    Disk,
    Clock,
    Udp,
}

impl Class {
    /// Reads names, separated by commas.
    pub fn list(text: &str) -> Option<Vec<Class>> {
        let one = |word: &str| match word {
            "delay" => Some(Class::Delay),
            "reset" => Some(Class::Reset),
            "cut" => Some(Class::Cut),
            "kill" => Some(Class::Kill),
            "power" => Some(Class::Power),
            "disk" => Some(Class::Disk),
            "clock" => Some(Class::Clock),
            "udp" => Some(Class::Udp),
            _ => None,
        };
        text.split(',').map(one).collect()
    }

    /// The names that [`Class::list`] reads.
    pub const NAMES: &str = "delay, reset, cut, kill, power, disk, clock, udp";

    /// Whether nodes report what they do with files for such faults.
    pub fn is_of_files(self) -> bool {
        matches!(self, Class::Power | Class::Disk)
    }
}

/// A kind of messages between the processes of two nodes. Its name survives changes of the program:
/// what is sent, to whom, and by which function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Message {
    pub from: Node,
    pub to: Node,
    pub name: Arc<str>,
}

/// The moment of a message at which a fault begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum When {
    /// It is about to be sent.
    Before,
    /// It has left its node.
    After,
    /// It has arrived, and its receiver does not know yet.
    Arrives,
}

/// Where a fault begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum At {
    /// A message of that kind, and of that number of its kind, from 1 on.
    Message(When, Message, u64),
    /// Before a packet that the first node sends to the second: the number of its connection among
    /// those by which it has sent something, and its own number there, both from 1 on.
    Packet(Node, Node, u32, u64),
    /// Before the change of that number, from 1 on, that a node makes to files.
    File(Node, u64),
    /// At that time of the world, in nanoseconds.
    Time(u64),
}

/// The harm of a fault. Times are nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harm {
    /// For that time, packets of the first node to the second are late by as much.
    Delay(Node, Node, u64),
    /// All connections of two nodes are reset.
    Reset(Node, Node),
    /// Nothing passes between two nodes for that time.
    Cut(Node, Node, u64),
    /// Nothing passes from the first node to the second for that time.
    OneWay(Node, Node, u64),
    /// Nothing passes between a node and all others for that time.
    Alone(Node, u64),
    /// A node ends at once, and is started again after that time, or never.
    Kill(Node, Option<u64>),
    /// The machine of a node loses its power, and what was not synced with it. Other nodes do not
    /// learn it. It is started again after that time, or never.
    Power(Node, Option<u64>),
    /// For that time, a node's disk is full.
    Full(Node, u64),
    /// A node's next change to files fails.
    Broken(Node),
    /// The wall clock of a node steps by that time.
    Step(Node, i64),
    /// From here on the clocks of a node are fast by so many parts per million, or slow.
    Rate(Node, i32),
    /// For that time, datagrams of the first node to the second are lost.
    Lose(Node, Node, u64),
    /// For that time, datagrams of the first node to the second arrive twice.
    Twice(Node, Node, u64),
    /// The processes of a node stop for that time. What arrives meanwhile waits.
    Stall(Node, u64),
    /// From here on the processes of a node run in an order that a sampler picks, with that seed.
    Order(Node, Sampling, u64),
    /// From here on a process of a node waits before its operation at the first point until
    /// another one has done that at the second.
    Switch(Node, Point, Point),
}

/// A fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub place: At,
    pub what: Harm,
}

/// Writes a time for people.
pub struct Time(pub u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} s", self.0 / 1_000_000_000, self.0 / MS % 1000)
    }
}

impl Fault {
    /// Writes it as a line of a replay file.
    pub fn text(&self) -> String {
        let place = match &self.place {
            At::Message(when, m, n) => {
                let when = match when {
                    When::Before => "before",
                    When::After => "after",
                    When::Arrives => "arrives",
                };
                format!("message {when} {} {} {n}", m.from, m.to)
            }
            At::Packet(a, b, c, n) => format!("packet {a} {b} {c} {n}"),
            At::File(a, n) => format!("file {a} {n}"),
            At::Time(t) => format!("time {t}"),
        };
        let what = match self.what {
            Harm::Delay(a, b, t) => format!("delay {a} {b} {t}"),
            Harm::Reset(a, b) => format!("reset {a} {b}"),
            Harm::Cut(a, b, t) => format!("cut {a} {b} {t}"),
            Harm::OneWay(a, b, t) => format!("oneway {a} {b} {t}"),
            Harm::Alone(a, t) => format!("alone {a} {t}"),
            Harm::Kill(a, Some(t)) => format!("kill {a} {t}"),
            Harm::Kill(a, None) => format!("kill {a}"),
            Harm::Power(a, Some(t)) => format!("power {a} {t}"),
            Harm::Power(a, None) => format!("power {a}"),
            Harm::Full(a, t) => format!("full {a} {t}"),
            Harm::Broken(a) => format!("broken {a}"),
            Harm::Step(a, by) => format!("step {a} {by}"),
            Harm::Rate(a, ppm) => format!("rate {a} {ppm}"),
            Harm::Lose(a, b, t) => format!("lose {a} {b} {t}"),
            Harm::Twice(a, b, t) => format!("twice {a} {b} {t}"),
            Harm::Stall(a, t) => format!("stall {a} {t}"),
            Harm::Order(a, s, seed) => format!("order {a} {} {seed}", s.name()),
            Harm::Switch(a, at, of) => {
                format!("switch {a} {} {} {} {}", at.0, at.1, of.0, of.1)
            }
        };
        match &self.place {
            At::Message(_, m, _) => format!("{place} {what} of {}", m.name),
            _ => format!("{place} {what}"),
        }
    }

    /// Reads a line written by [`Fault::text`].
    pub fn parse(text: &str) -> Option<Fault> {
        // The name of a message comes last, and may have anything in it.
        let (text, name) = match text.strip_prefix("message ").and(text.split_once(" of ")) {
            Some((text, name)) => (text, Some(name)),
            None => (text, None),
        };
        let mut words = text.split(' ');
        fn number<T: std::str::FromStr>(w: Option<&str>) -> Option<T> {
            w?.parse().ok()
        }
        let place = match words.next()? {
            "message" => {
                let when = match words.next()? {
                    "before" => When::Before,
                    "after" => When::After,
                    "arrives" => When::Arrives,
                    _ => return None,
                };
                let message = Message {
                    from: number(words.next())?,
                    to: number(words.next())?,
                    name: name?.into(),
                };
                At::Message(when, message, number(words.next())?)
            }
            "packet" => At::Packet(
                number(words.next())?,
                number(words.next())?,
                number(words.next())?,
                number(words.next())?,
            ),
            "file" => At::File(number(words.next())?, number(words.next())?),
            "time" => At::Time(number(words.next())?),
            _ => return None,
        };
        let kind = words.next()?;
        let a: Node = number(words.next())?;
        let mut next = || words.next();
        let what = match kind {
            "delay" => Harm::Delay(a, number(next())?, number(next())?),
            "reset" => Harm::Reset(a, number(next())?),
            "cut" => Harm::Cut(a, number(next())?, number(next())?),
            "oneway" => Harm::OneWay(a, number(next())?, number(next())?),
            "alone" => Harm::Alone(a, number(next())?),
            "kill" => match next() {
                None => Harm::Kill(a, None),
                Some(t) => Harm::Kill(a, Some(t.parse().ok()?)),
            },
            "power" => match next() {
                None => Harm::Power(a, None),
                Some(t) => Harm::Power(a, Some(t.parse().ok()?)),
            },
            "full" => Harm::Full(a, number(next())?),
            "broken" => Harm::Broken(a),
            "step" => Harm::Step(a, number(next())?),
            "rate" => Harm::Rate(a, number(next())?),
            "lose" => Harm::Lose(a, number(next())?, number(next())?),
            "twice" => Harm::Twice(a, number(next())?, number(next())?),
            "stall" => Harm::Stall(a, number(next())?),
            "order" => Harm::Order(a, Sampling::named(next()?)?, number(next())?),
            "switch" => Harm::Switch(
                a,
                (number(next())?, number(next())?),
                (number(next())?, number(next())?),
            ),
            _ => return None,
        };
        words.next().is_none().then_some(Fault { place, what })
    }

    /// Says what happens, without the place.
    pub fn describe(&self) -> String {
        match self.what {
            Harm::Delay(a, b, t) => {
                format!("what n{a} sends to n{b} is late by {} for as long", Time(t))
            }
            Harm::Reset(a, b) => format!("the connections of n{a} and n{b} are reset"),
            Harm::Cut(a, b, t) => {
                format!("the link between n{a} and n{b} is cut for {}", Time(t))
            }
            Harm::OneWay(a, b, t) => {
                format!("what n{a} sends to n{b} is cut off for {}", Time(t))
            }
            Harm::Alone(a, t) => format!("n{a} is cut off from all others for {}", Time(t)),
            Harm::Kill(a, Some(t)) => format!("n{a} is killed, and starts again after {}", Time(t)),
            Harm::Kill(a, None) => format!("n{a} is killed for good"),
            Harm::Power(a, Some(t)) => {
                format!("n{a} loses its power, and starts again after {}", Time(t))
            }
            Harm::Power(a, None) => format!("n{a} loses its power for good"),
            Harm::Full(a, t) => format!("the disk of n{a} is full for {}", Time(t)),
            Harm::Broken(a) => format!("a change of n{a} to its disk fails"),
            Harm::Step(a, by) => {
                let sign = if by < 0 { "back" } else { "forward" };
                let by = Time(by.unsigned_abs());
                format!("the wall clock of n{a} steps {sign} by {by}")
            }
            Harm::Rate(a, ppm) => {
                let sign = if ppm < 0 { "slow" } else { "fast" };
                let ppm = ppm.unsigned_abs();
                format!("the clocks of n{a} are {sign} by {ppm} us a second from here on")
            }
            Harm::Lose(a, b, t) => {
                format!("datagrams of n{a} to n{b} are lost for {}", Time(t))
            }
            Harm::Twice(a, b, t) => {
                format!("datagrams of n{a} to n{b} arrive twice for {}", Time(t))
            }
            Harm::Stall(a, t) => format!("the processes of n{a} stop for {}", Time(t)),
            Harm::Order(a, s, _) => {
                let name = s.name();
                format!("the processes of n{a} run in another order from here on ({name})")
            }
            Harm::Switch(a, ..) => format!("a process of n{a} waits for another one"),
        }
    }

    /// Says where it happens.
    pub fn place(&self) -> String {
        match &self.place {
            At::Message(when, Message { from, to, name }, n) => {
                let nth = ordinal(*n);
                match when {
                    When::Before => format!("before n{from} sends n{to} the {nth} {name}"),
                    When::After => format!("after n{from} has sent n{to} the {nth} {name}"),
                    When::Arrives => format!("where n{to} gets from n{from} the {nth} {name}"),
                }
            }
            At::Packet(a, b, 0, n) => format!("before datagram {n} from n{a} to n{b}"),
            At::Packet(a, b, c, n) => {
                let c = ordinal(u64::from(*c));
                format!("before packet {n} of the {c} connection from n{a} to n{b}")
            }
            At::File(a, n) => format!("before change {n} of n{a} to files"),
            At::Time(t) => format!("at {}", Time(*t)),
        }
    }

    /// Returns smaller faults of the same kind, the smallest first.
    pub fn smaller(&self) -> Vec<Fault> {
        let with = |what| Fault {
            what,
            place: self.place.clone(),
        };
        let among = |all: &'static [u64], t: u64| {
            let all = all.iter().map(|ms| ms * MS);
            all.filter(move |s| *s < t)
        };
        let shorter = |t: u64| among(&[200, 1000, 2000, 5000, 20_000], t);
        let later = |t: u64| among(&[10, 100, 500, 1000, 1500, 2000, 3000], t);
        match self.what {
            Harm::Alone(a, t) => {
                let link = match &self.place {
                    At::Message(_, m, _) => Some((m.from, m.to)),
                    At::Packet(from, to, ..) => Some((*from, *to)),
                    _ => None,
                };
                let link = link.filter(|(x, y)| *x == a || *y == a);
                let cut = link.map(|(x, y)| with(Harm::Cut(x, y, t)));
                let shorter = shorter(t).map(|s| with(Harm::Alone(a, s)));
                cut.into_iter().chain(shorter).collect()
            }
            Harm::Cut(a, b, t) => {
                let mut v = vec![with(Harm::Reset(a, b))];
                v.extend(shorter(t).map(|s| with(Harm::Cut(a, b, s))));
                v
            }
            Harm::OneWay(a, b, t) => shorter(t).map(|s| with(Harm::OneWay(a, b, s))).collect(),
            Harm::Delay(a, b, t) => later(t).map(|s| with(Harm::Delay(a, b, s))).collect(),
            Harm::Stall(a, t) => later(t).map(|s| with(Harm::Stall(a, s))).collect(),
            Harm::Power(a, t) => vec![with(Harm::Kill(a, t))],
            Harm::Full(a, t) => {
                let mut v = vec![with(Harm::Broken(a))];
                v.extend(shorter(t).map(|s| with(Harm::Full(a, s))));
                v
            }
            Harm::Lose(a, b, t) => shorter(t).map(|s| with(Harm::Lose(a, b, s))).collect(),
            Harm::Twice(a, b, t) => shorter(t).map(|s| with(Harm::Twice(a, b, s))).collect(),
            Harm::Step(a, by) => {
                let shorter = among(&[50, 200, 500, 1000, 2000], by.unsigned_abs());
                shorter
                    .map(|s| with(Harm::Step(a, by.signum() * s as i64)))
                    .collect()
            }
            Harm::Reset(..) | Harm::Kill(..) | Harm::Broken(_) | Harm::Rate(..) => Vec::new(),
            Harm::Order(..) | Harm::Switch(..) => Vec::new(),
        }
    }

    /// Nanoseconds by which it makes something late.
    pub fn late(&self) -> u64 {
        match self.what {
            Harm::Delay(_, _, t) | Harm::Stall(_, t) => t,
            _ => 0,
        }
    }
}

/// Writes the number of something among its like.
fn ordinal(n: u64) -> String {
    let end = match (n % 10, n % 100) {
        (1, n) if n != 11 => "st",
        (2, n) if n != 12 => "nd",
        (3, n) if n != 13 => "rd",
        _ => "th",
    };
    format!("{n}{end}")
}

/// The longest time by which faults of a schedule make something late together: less than the five
/// seconds for which a call waits, unless it says otherwise.
pub const LATE_AT_MOST: u64 = 4500 * MS;

/// The messages of a kind in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Whether code of the program has sent them.
    pub is_program: bool,
    /// The turn of each, from 1 on.
    pub turns: Vec<u64>,
}

/// The profile of a run without faults, from which faults are drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Messages that were sent, and those that have arrived.
    pub sent: BTreeMap<Message, Seen>,
    pub arrived: BTreeMap<Message, Seen>,
    /// The time of the first message of the program. `None`: it has sent none.
    pub begins: Option<u64>,
    /// Number of packets by sender, receiver and connection.
    pub packets: BTreeMap<(Node, Node, u32), u64>,
    /// Number of changes to files by node, if nodes reported them.
    pub files: BTreeMap<Node, u64>,
    /// Nodes that send each other datagrams.
    pub datagrams: BTreeSet<(Node, Node)>,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// Nodes that may be killed.
    pub mortal: Vec<Node>,
    /// The time at which it ended.
    pub took: u64,
}

/// Draws an element.
fn pick<T: Copy>(numbers: &mut Stream, all: &[T]) -> Option<T> {
    all.get(numbers.below(all.len() as u64) as usize).copied()
}

impl Profile {
    /// Draws the faults of a schedule.
    pub fn draw(&self, classes: &[Class], numbers: &mut Stream) -> Vec<Fault> {
        let count = match numbers.below(10) {
            0..=5 => 1,
            6..=8 => 2,
            _ => 3,
        };
        let mut late = 0;
        let all = (0..count).filter_map(|_| self.one(classes, numbers));
        all.filter(|f| {
            late += f.late();
            late <= LATE_AT_MOST
        })
        .collect()
    }

    /// Draws the orders in which processes of nodes run.
    pub fn draw_orders(&self, numbers: &mut Stream) -> Vec<Fault> {
        let all = [
            Sampling::Walk,
            Sampling::Pos,
            Sampling::Pct(2),
            Sampling::Pct(3),
        ];
        let sampling = pick(numbers, &all).unwrap_or(Sampling::Walk);
        let place = match numbers.below(2) {
            0 => At::Time(self.begins.unwrap_or(0)),
            _ => At::Time(0),
        };
        let one = numbers.below(2 * self.nodes.len().max(1) as u64) as usize;
        let nodes = match self.nodes.get(one) {
            Some(n) => vec![*n],
            None => self.nodes.clone(),
        };
        let seed = numbers.draw() >> 32;
        let order = |n| Fault {
            place: place.clone(),
            what: Harm::Order(n, sampling, seed),
        };
        nodes.into_iter().map(order).collect()
    }

    /// Draws a message, more often one that the program has sent.
    fn message(&self, numbers: &mut Stream) -> Option<At> {
        let when = pick(numbers, &[When::Before, When::After, When::Arrives])?;
        let all = match when {
            When::Arrives => &self.arrived,
            _ => &self.sent,
        };
        let own = all.values().any(|s| s.is_program) && numbers.below(4) > 0;
        let all = all.iter().filter(|(_, s)| s.is_program || !own);
        let all: Vec<(&Message, &Seen)> = all.collect();
        let (message, seen) = pick(numbers, &all)?;
        let n = match numbers.below(3) {
            0 => 1,
            _ => 1 + numbers.below(seen.turns.len() as u64),
        };
        Some(At::Message(when, message.clone(), n))
    }

    /// Whether a run has a place for such a fault.
    fn allows(&self, class: Class) -> bool {
        match class {
            Class::Delay | Class::Reset | Class::Cut => !self.packets.is_empty(),
            Class::Kill | Class::Power => !self.mortal.is_empty(),
            Class::Disk => !self.files.is_empty(),
            Class::Clock => !self.nodes.is_empty(),
            Class::Udp => !self.datagrams.is_empty(),
        }
    }

    fn one(&self, classes: &[Class], numbers: &mut Stream) -> Option<Fault> {
        let links: Vec<((Node, Node, u32), u64)> =
            self.packets.iter().map(|(l, n)| (*l, *n)).collect();
        let link = pick(numbers, &links);
        let ((a, b, connection), packets) = link.unwrap_or_default();
        // Where something is said, or at any time.
        let place = match numbers.below(4) {
            0 | 1 => self.message(numbers),
            2 if link.is_some() => {
                let n = 1 + numbers.below(packets);
                Some(At::Packet(a, b, connection, n))
            }
            _ => None,
        };
        let (a, b) = match &place {
            Some(At::Message(_, m, _)) => (m.from, m.to),
            _ => (a, b),
        };
        let place = place.unwrap_or(At::Time(numbers.below(self.took.max(1)) / MS * MS));
        let possible = classes.iter().copied().filter(|c| self.allows(*c));
        let possible: Vec<Class> = possible.collect();
        let class = pick(numbers, &possible)?;
        let files: Vec<(Node, u64)> = self.files.iter().map(|(n, all)| (*n, *all)).collect();
        let mut change = || {
            let (node, all) = pick(numbers, &files)?;
            Some(At::File(node, 1 + numbers.below(all)))
        };
        let place = match class {
            Class::Disk => change()?,
            Class::Power => change().filter(|_| numbers.below(2) == 0).unwrap_or(place),
            _ => place,
        };
        let time = |numbers: &mut Stream, all: &[u64]| pick(numbers, all).unwrap_or(200) * MS;
        const CUTS: [u64; 6] = [200, 1000, 5000, 10_000, 20_000, 60_000];
        const BACK: [u64; 5] = [100, 500, 1000, 2000, 10_000];
        let what = match class {
            Class::Delay => {
                let t = time(numbers, &[10, 100, 500, 1000, 2000, 4500]);
                match numbers.below(3) {
                    0 => Harm::Stall(a, t),
                    _ => Harm::Delay(a, b, t),
                }
            }
            Class::Reset => Harm::Reset(a, b),
            Class::Cut => {
                let t = time(numbers, &CUTS);
                match numbers.below(8) {
                    0 | 1 => Harm::Alone(a, t),
                    2 => Harm::OneWay(a, b, t),
                    _ => Harm::Cut(a, b, t),
                }
            }
            Class::Kill | Class::Power => {
                let node = pick(numbers, &self.mortal)?;
                let back = time(numbers, &BACK);
                let back = (numbers.below(5) > 0).then_some(back);
                match class {
                    Class::Kill => Harm::Kill(node, back),
                    _ => Harm::Power(node, back),
                }
            }
            Class::Disk => {
                let At::File(node, _) = place else {
                    return None;
                };
                match numbers.below(5) {
                    0 => Harm::Stall(node, time(numbers, &[100, 500, 2000])),
                    1 | 2 => Harm::Broken(node),
                    _ => Harm::Full(node, time(numbers, &[200, 1000, 5000, 20_000])),
                }
            }
            Class::Clock => {
                let node = pick(numbers, &self.nodes)?;
                let is_ahead = numbers.below(2) == 0;
                let by = time(numbers, &[50, 500, 2000, 5000]) as i64;
                match numbers.below(4) {
                    0 => Harm::Rate(node, if is_ahead { RATES } else { -RATES }),
                    _ => Harm::Step(node, if is_ahead { by } else { -by }),
                }
            }
            Class::Udp => {
                let all: Vec<(Node, Node)> = self.datagrams.iter().copied().collect();
                let (a, b) = pick(numbers, &all)?;
                let lasts = time(numbers, &[10, 200, 1000, 5000]);
                match numbers.below(3) {
                    0 => Harm::Twice(a, b, lasts),
                    _ => Harm::Lose(a, b, lasts),
                }
            }
        };
        Some(Fault { place, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let seen = |n| Seen {
            is_program: true,
            turns: (1..=n).collect(),
        };
        let message = |name: &str| Message {
            from: 2,
            to: 3,
            name: name.into(),
        };
        Profile {
            sent: BTreeMap::from([(message("{a,_} to b, by m:f of it/1"), seen(5))]),
            arrived: BTreeMap::from([(message("{a,_} to b"), seen(4))]),
            begins: Some(700 * MS),
            packets: BTreeMap::from([((1, 2, 1), 40), ((2, 1, 1), 30), ((2, 3, 2), 1)]),
            files: BTreeMap::from([(2, 7)]),
            datagrams: BTreeSet::from([(3, 1)]),
            nodes: vec![1, 2, 3],
            mortal: vec![2, 3],
            took: 9_000 * MS,
        }
    }

    #[test]
    fn faults_survive_a_round_trip() {
        let names = Class::NAMES.replace(", ", ",");
        let all = Class::list(&names).expect("names of all kinds");
        let mut numbers = Stream::from_state(4);
        let mut seen = 0;
        for _ in 0..500 {
            let mut drawn = profile().draw(&all, &mut numbers);
            drawn.extend(profile().draw_orders(&mut numbers));
            for f in drawn {
                let text = f.text();
                assert_eq!(Fault::parse(&text), Some(f.clone()), "{text}");
                if !matches!(f.place, At::Message(..)) {
                    assert_eq!(Fault::parse(&format!("{text} 1 1 1")), None);
                }
                for s in f.smaller() {
                    assert_eq!(Fault::parse(&s.text()), Some(s));
                }
                seen += 1;
            }
        }
        assert!(seen > 500);
        assert_eq!(Fault::parse("packet 1 2 1 alone 3"), None);
        assert_eq!(Fault::parse("message before 1 2 3 reset 1 2"), None);
    }

    #[test]
    fn nothing_is_late_for_longer_than_calls_wait() {
        let mut numbers = Stream::from_state(2);
        for _ in 0..500 {
            let all = profile().draw(&[Class::Delay], &mut numbers);
            let late: u64 = all.iter().map(Fault::late).sum();
            assert!(late <= LATE_AT_MOST, "{all:?}");
        }
    }

    #[test]
    fn a_seed_decides_the_faults_and_only_those_asked_for() {
        let draw = |seed| profile().draw(&[Class::Kill], &mut Stream::from_state(seed));
        for seed in 0..50 {
            assert_eq!(draw(seed), draw(seed));
            for f in draw(seed) {
                assert!(matches!(f.what, Harm::Kill(2 | 3, _)), "{f:?}");
            }
        }
        assert_eq!(Class::list("cut,kill"), Some(vec![Class::Cut, Class::Kill]));
        assert_eq!(Class::list("cut,rain"), None);
        assert!(
            Profile::default()
                .draw(&[Class::Cut], &mut Stream::from_state(1))
                .is_empty()
        );
    }
}
