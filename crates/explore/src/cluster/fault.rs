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
    /// Not among those with names: messages are overtaken by those of other processes.
    Overtaken,
}

impl Class {
    fn named(name: &str) -> Option<Class> {
        Some(match name {
            "delay" => Class::Delay,
            "reset" => Class::Reset,
            "cut" => Class::Cut,
            "kill" => Class::Kill,
            "power" => Class::Power,
            "disk" => Class::Disk,
            "clock" => Class::Clock,
            "udp" => Class::Udp,
            _ => return None,
        })
    }

    /// The names of all kinds.
    pub const NAMES: &str = "delay, reset, cut, kill, power, disk, clock, udp";

    /// Whether nodes report what they do with files for such faults.
    pub fn is_of_files(self) -> bool {
        matches!(self, Class::Power | Class::Disk)
    }

    /// Whether such faults are of links.
    fn is_of_links(self) -> bool {
        matches!(self, Class::Delay | Class::Reset | Class::Cut | Class::Udp)
    }
}

/// The part of a cluster in which faults of a kind may happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    All,
    Node(Node),
    /// The link of two nodes.
    Link(Node, Node),
    /// The direction from the first node to the second.
    Way(Node, Node),
    /// Between two halves of all nodes.
    Halves,
}

/// The faults that a search may use: a kind of them, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    pub class: Class,
    pub scope: Scope,
}

impl From<Class> for Wanted {
    fn from(class: Class) -> Wanted {
        let scope = Scope::All;
        Wanted { class, scope }
    }
}

impl Wanted {
    /// Reads kinds of faults, separated by commas: `kill`, `kill@n2`, `cut@n1-n2`, `cut@n1>n2`,
    /// `cut@halves`.
    pub fn list(text: &str) -> Option<Vec<Wanted>> {
        text.split(',').map(Wanted::one).collect()
    }

    fn one(word: &str) -> Option<Wanted> {
        let Some((name, scope)) = word.split_once('@') else {
            return Class::named(word).map(Wanted::from);
        };
        let class = Class::named(name)?;
        let node = |text: &str| text.strip_prefix('n')?.parse().ok().filter(|n| *n > 0);
        let two = |(a, b): (&str, &str)| Some((node(a)?, node(b)?)).filter(|(a, b)| a != b);
        let scope = match (scope.split_once('>'), scope.split_once('-')) {
            (Some(ends), _) => two(ends).map(|(a, b)| Scope::Way(a, b))?,
            (_, Some(ends)) => two(ends).map(|(a, b)| Scope::Link(a, b))?,
            _ if scope == "halves" => Scope::Halves,
            _ => Scope::Node(node(scope)?),
        };
        let fits = match scope {
            Scope::Halves => class == Class::Cut,
            // A reset has no direction.
            Scope::Way(..) => class.is_of_links() && class != Class::Reset,
            Scope::Link(..) => class.is_of_links(),
            _ => true,
        };
        fits.then_some(Wanted { class, scope })
    }

    /// The node with the highest number that is named.
    pub fn highest(&self) -> Node {
        match self.scope {
            Scope::All | Scope::Halves => 0,
            Scope::Node(n) => n,
            Scope::Link(a, b) | Scope::Way(a, b) => a.max(b),
        }
    }

    /// Whether a fault is one of these.
    pub fn has(&self, what: &Harm) -> bool {
        if what.class() != Some(self.class) {
            return false;
        }
        match self.scope {
            Scope::All => true,
            Scope::Halves => matches!(what, Harm::Halves(..)),
            Scope::Node(n) => what.is_of(n),
            Scope::Link(a, b) => what.way().is_some_and(|w| w == (a, b) || w == (b, a)),
            Scope::Way(a, b) => !matches!(what, Harm::Cut(..)) && what.way() == Some((a, b)),
        }
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
    /// Nothing passes between the nodes whose bits are set, from the lowest one for the first node
    /// on, and all others for that time.
    Halves(u32, u64),
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
    /// The process of a node that is about to send the message of the place, or has got it, stops
    /// for that time.
    Pause(Node, u64),
    /// The message of the place, which a node gets, is late by that time. Those of other processes
    /// pass by it, what its own sender sends afterwards does not.
    Overtaken(Node, u64),
    /// From here on the processes of a node run in an order that a sampler picks, with that seed.
    Order(Node, Sampling, u64),
    /// From here on a process of a node waits before its operation at the first point until
    /// another one has done that at the second.
    Switch(Node, Point, Point),
}

impl Harm {
    /// Its kind. `None` for orders of processes.
    pub fn class(&self) -> Option<Class> {
        Some(match self {
            Harm::Delay(..) | Harm::Stall(..) | Harm::Pause(..) => Class::Delay,
            Harm::Reset(..) => Class::Reset,
            Harm::Cut(..) | Harm::OneWay(..) | Harm::Alone(..) | Harm::Halves(..) => Class::Cut,
            Harm::Kill(..) => Class::Kill,
            Harm::Power(..) => Class::Power,
            Harm::Full(..) | Harm::Broken(_) => Class::Disk,
            Harm::Step(..) | Harm::Rate(..) => Class::Clock,
            Harm::Lose(..) | Harm::Twice(..) => Class::Udp,
            Harm::Overtaken(..) => Class::Overtaken,
            Harm::Order(..) | Harm::Switch(..) => return None,
        })
    }

    /// The two nodes of a link, in the direction that is hit, if there is one.
    fn way(&self) -> Option<(Node, Node)> {
        match *self {
            Harm::Delay(a, b, _)
            | Harm::Reset(a, b)
            | Harm::Cut(a, b, _)
            | Harm::OneWay(a, b, _)
            | Harm::Lose(a, b, _)
            | Harm::Twice(a, b, _) => Some((a, b)),
            _ => None,
        }
    }

    /// Whether it hits that node.
    fn is_of(&self, n: Node) -> bool {
        match *self {
            Harm::Alone(a, _)
            | Harm::Kill(a, _)
            | Harm::Power(a, _)
            | Harm::Full(a, _)
            | Harm::Broken(a)
            | Harm::Step(a, _)
            | Harm::Rate(a, _)
            | Harm::Stall(a, _)
            | Harm::Pause(a, _)
            | Harm::Overtaken(a, _) => a == n,
            _ => self.way().is_some_and(|(a, b)| a == n || b == n),
        }
    }
}

/// Returns the nodes whose bits are set in a half, and the others of `all`.
pub(super) fn halves(half: u32, all: &[Node]) -> (Vec<Node>, Vec<Node>) {
    all.iter().partition(|n| half & (1 << (**n - 1)) != 0)
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
            Harm::Halves(half, t) => format!("halves {half} {t}"),
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
            Harm::Pause(a, t) => format!("pause {a} {t}"),
            Harm::Overtaken(a, t) => format!("overtaken {a} {t}"),
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
            "halves" => Harm::Halves(a, number(next())?),
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
            "pause" => Harm::Pause(a, number(next())?),
            "overtaken" => Harm::Overtaken(a, number(next())?),
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
            Harm::Halves(half, t) => {
                let of = (1..=32).filter(|n| half & (1 << (n - 1)) != 0);
                let of: Vec<String> = of.map(|n| format!("n{n}")).collect();
                let verb = if of.len() == 1 { "is" } else { "are" };
                let of = of.join(" and ");
                format!("{of} {verb} cut off from all others for {}", Time(t))
            }
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
            Harm::Pause(a, t) => format!("a process of n{a} stops for {}", Time(t)),
            Harm::Overtaken(_, t) => {
                format!("other processes' messages overtake one for {}", Time(t))
            }
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
            Harm::Halves(half, t) => {
                let parts = self.link().filter(|(x, y)| {
                    let is_in = |n: Node| half & (1 << (n - 1)) != 0;
                    is_in(*x) != is_in(*y)
                });
                let cut = parts.map(|(x, y)| with(Harm::Cut(x, y, t)));
                let alone = parts.map(|(x, _)| with(Harm::Alone(x, t)));
                let shorter = shorter(t).map(|s| with(Harm::Halves(half, s)));
                cut.into_iter().chain(alone).chain(shorter).collect()
            }
            Harm::Alone(a, t) => {
                let link = self.link();
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
            Harm::Pause(a, t) => later(t).map(|s| with(Harm::Pause(a, s))).collect(),
            Harm::Overtaken(a, t) => later(t).map(|s| with(Harm::Overtaken(a, s))).collect(),
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
            Harm::Delay(_, _, t)
            | Harm::Stall(_, t)
            | Harm::Pause(_, t)
            | Harm::Overtaken(_, t) => t,
            _ => 0,
        }
    }

    /// The link on which its place is.
    fn link(&self) -> Option<(Node, Node)> {
        match &self.place {
            At::Message(_, m, _) => Some((m.from, m.to)),
            At::Packet(from, to, ..) => Some((*from, *to)),
            _ => None,
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

/// How often a fault is drawn until one is where it is wanted.
const MOST_DRAWN: usize = 1000;

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
    pub fn draw(&self, classes: &[Wanted], numbers: &mut Stream) -> Vec<Fault> {
        let count = match numbers.below(10) {
            0..=5 => 1,
            6..=8 => 2,
            _ => 3,
        };
        let mut late = 0;
        let all = (0..count).filter_map(|_| self.wanted(classes, numbers));
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

    /// Draws a cut at a link for that time.
    fn cut(&self, (a, b): (Node, Node), scope: Scope, t: u64, numbers: &mut Stream) -> Harm {
        // One of two halves of three nodes is a node alone.
        let n = self.nodes.len() as u64;
        match (numbers.below(8), scope) {
            (_, Scope::Halves) => Harm::Halves(self.half(numbers), t),
            (_, Scope::Way(a, b)) => Harm::OneWay(a, b, t),
            (0 | 1, _) if n > 3 && numbers.below(2) == 0 => Harm::Halves(self.half(numbers), t),
            (0 | 1, _) => Harm::Alone(a, t),
            (2, _) => Harm::OneWay(a, b, t),
            _ => Harm::Cut(a, b, t),
        }
    }

    /// Draws one half of the nodes, which has the first of them.
    fn half(&self, numbers: &mut Stream) -> u32 {
        let mut others: Vec<Node> = self.nodes.iter().skip(1).copied().collect();
        let mut half = self.nodes.first().map_or(0, |n| 1 << (n - 1));
        for _ in 1..self.nodes.len() / 2 {
            let n = others.swap_remove(numbers.below(others.len() as u64) as usize);
            half |= 1 << (n - 1);
        }
        half
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
            Class::Overtaken => !self.arrived.is_empty(),
            Class::Kill | Class::Power => !self.mortal.is_empty(),
            Class::Disk => !self.files.is_empty(),
            Class::Clock => !self.nodes.is_empty(),
            Class::Udp => !self.datagrams.is_empty(),
        }
    }

    /// Draws a fault that is wanted where it happens.
    fn wanted(&self, all: &[Wanted], numbers: &mut Stream) -> Option<Fault> {
        let mut drawn = (0..MOST_DRAWN).filter_map(|_| self.one(all, numbers));
        drawn.find(|f| all.iter().any(|w| w.has(&f.what)))
    }

    fn one(&self, classes: &[Wanted], numbers: &mut Stream) -> Option<Fault> {
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
        let possible = classes.iter().copied().filter(|c| self.allows(c.class));
        let possible: Vec<Wanted> = possible.collect();
        let Wanted { class, scope } = pick(numbers, &possible)?;
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
                match (numbers.below(4), &place) {
                    (0, At::Message(When::Before, ..)) => Harm::Pause(a, t),
                    (0, At::Message(When::Arrives, ..)) => Harm::Pause(b, t),
                    (1, _) => Harm::Stall(a, t),
                    _ => Harm::Delay(a, b, t),
                }
            }
            Class::Reset => Harm::Reset(a, b),
            Class::Cut => {
                let t = time(numbers, &CUTS);
                self.cut((a, b), scope, t, numbers)
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
            Class::Overtaken => {
                let At::Message(When::Arrives, ..) = place else {
                    return None;
                };
                Harm::Overtaken(b, time(numbers, &[10, 100, 1000, 4500]))
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
        let all = Wanted::list(&names).expect("names of all kinds");
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
            let all = profile().draw(&[Class::Delay.into()], &mut numbers);
            let late: u64 = all.iter().map(Fault::late).sum();
            assert!(late <= LATE_AT_MOST, "{all:?}");
        }
    }

    #[test]
    fn a_seed_decides_the_faults_and_only_those_asked_for() {
        let draw = |seed| profile().draw(&[Class::Kill.into()], &mut Stream::from_state(seed));
        for seed in 0..50 {
            assert_eq!(draw(seed), draw(seed));
            for f in draw(seed) {
                assert!(matches!(f.what, Harm::Kill(2 | 3, _)), "{f:?}");
            }
        }
        let two = vec![Class::Cut.into(), Class::Kill.into()];
        assert_eq!(Wanted::list("cut,kill"), Some(two));
        assert_eq!(Wanted::list("cut,rain"), None);
        assert!(
            Profile::default()
                .draw(&[Class::Cut.into()], &mut Stream::from_state(1))
                .is_empty()
        );
    }

    #[test]
    fn faults_are_only_where_they_are_wanted() {
        let mut numbers = Stream::from_state(3);
        let five = Profile {
            nodes: (1..=5).collect(),
            mortal: (1..=5).collect(),
            ..profile()
        };
        let mut drawn = |text: &str, is_right: fn(&Harm) -> bool| {
            let wanted = Wanted::list(text).expect(text);
            let mut seen = 0;
            for _ in 0..200 {
                for f in five.draw(&wanted, &mut numbers) {
                    assert!(is_right(&f.what), "{text}: {f:?}");
                    assert_eq!(Fault::parse(&f.text()), Some(f));
                    seen += 1;
                }
            }
            assert!(seen > 100, "{text}: {seen}");
        };
        drawn("kill@n2", |h| matches!(h, Harm::Kill(2, _)));
        drawn("cut@n2>n1", |h| matches!(h, Harm::OneWay(2, 1, _)));
        drawn("cut@n1-n2", |h| {
            matches!(
                h,
                Harm::Cut(1, 2, _)
                    | Harm::Cut(2, 1, _)
                    | Harm::OneWay(1, 2, _)
                    | Harm::OneWay(2, 1, _)
            )
        });
        drawn("cut@halves", |h| match h {
            Harm::Halves(half, _) => half & 1 == 1 && half.count_ones() == 2,
            _ => false,
        });
        drawn("delay@n3", |h| h.is_of(3));
        for wrong in [
            "cut@",
            "cut@2",
            "cut@n0",
            "cut@n1-n1",
            "kill@n1-n2",
            "reset@n1>n2",
            "kill@halves",
        ] {
            assert_eq!(Wanted::list(wrong), None, "{wrong}");
        }
        let halves = Fault::parse("message before 2 3 1 halves 5 1000000000 of ask");
        let halves = halves.expect("a fault");
        let smaller: Vec<Harm> = halves.smaller().into_iter().map(|f| f.what).collect();
        assert_eq!(smaller[0], Harm::Cut(2, 3, 1000 * MS));
        assert!(halves.describe().starts_with("n1 and n3 are cut off"));
    }
}
