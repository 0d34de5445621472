//! Places at which a schedule leaves the base, and what happens there: as files have it. Also what an operation is, and the numbers
//! that strategies draw. Pure: knows no process.

use super::ops::Touch;

/// What a deviation does to the process at its operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// It stops until nobody else can run.
    Last,
    /// It stops for so many nanoseconds of virtual time.
    Stall(i64),
    /// It stops until the process of that path has done that operation, or nobody else can run; then it has the next turn.
    After(u64, u32),
    /// From here on a sampler decides whose turn it is, with numbers from that seed.
    Sample(Sampling, u64),
    /// The message that it sends there is held back: see [`back`](super::back).
    Back,
}

/// How whose turn it is is drawn: see [`sample`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sampling {
    /// A random walk: any process, before each operation.
    Walk,
    /// Partial order sampling.
    Pos,
    /// Priorities that change at so many places, less one.
    Pct(u32),
    /// Weights by what is left to do.
    Surw,
}

/// Places at which `pct:D` may have priorities change.
const MOST_CHANGES: u32 = 1000;

impl Sampling {
    /// Its name, as on the command line.
    pub fn name(self) -> String {
        match self {
            Sampling::Walk => "random".into(),
            Sampling::Pos => "pos".into(),
            Sampling::Pct(d) => format!("pct:{d}"),
            Sampling::Surw => "surw".into(),
        }
    }
    /// The one of that name.
    pub fn named(name: &str) -> Option<Sampling> {
        Some(match name.split_once(':') {
            Some(("pct", d)) => {
                Sampling::Pct(d.parse().ok().filter(|d| (1..=MOST_CHANGES).contains(d))?)
            }
            None => match name {
                "random" => Sampling::Walk,
                "pos" => Sampling::Pos,
                "pct" => Sampling::Pct(3),
                "surw" => Sampling::Surw,
                _ => return None,
            },
            _ => return None,
        })
    }
}

impl Kind {
    /// As a file has it.
    pub fn text(self) -> String {
        match self {
            Kind::Last => "stop".into(),
            Kind::Back => "back".into(),
            Kind::Stall(ns) => format!("stall {ns}"),
            Kind::After(path, op) => format!("after {path} {op}"),
            Kind::Sample(s, seed) => format!("sample {} {seed}", s.name()),
        }
    }
    /// That of the text, as [`Kind::text`] gives it.
    pub fn of(text: &str) -> Option<Kind> {
        let mut w = text.split(' ');
        Some(match w.next()? {
            "stop" => Kind::Last,
            "back" => Kind::Back,
            "stall" => Kind::Stall(w.next()?.parse().ok()?),
            "after" => Kind::After(w.next()?.parse().ok()?, w.next()?.parse().ok()?),
            "sample" => Kind::Sample(Sampling::named(w.next()?)?, w.next()?.parse().ok()?),
            _ => return None,
        })
    }
}

/// A place at which a schedule leaves the base.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Deviation {
    /// The path of the process: a hash of its parent's and of its number among its parent's children.
    pub path: u64,
    /// Its visible operations so far, with the one before which it stops.
    pub op: u32,
    /// What happens there.
    pub kind: Kind,
}

/// An operation of the schedule that runs.
#[derive(Clone, Debug)]
pub struct Op {
    pub path: u64,
    pub op: u32,
    pub touch: Touch,
    /// Code of the program is on the stack, or the process was made by such code, and there is none of a compiler or loader above it.
    pub own: bool,
    /// It is on the stack.
    pub code: bool,
    /// The function from which on schedules are tried has been called.
    pub begun: bool,
    /// Processes of the program that could run instead.
    pub others: u32,
    /// There are some, or a server that does what the program has asked for could.
    pub served: bool,
    /// Virtual time; and when the next timer is due, as far as it is known.
    pub at: i64,
    pub due: i64,
    /// A runner of tests has begun with them.
    pub tests: bool,
    /// What it does lasts beyond the run, or is shared with runs that are forked from it later.
    pub lasts: bool,
}

/// A generator of numbers (SplitMix64; Steele, Lea, Flood 2014): the same seed gives the same numbers everywhere.
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.draw() % n.max(1) as u64) as usize
    }
}
