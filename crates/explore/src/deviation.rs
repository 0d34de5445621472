//! Deviations: the points at which a schedule differs from the base, and what happens there.

use crate::failing::Failing;
use crate::operation::Point;

/// The effect of a deviation on the process at its operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// It stops until no other process can run.
    Last,
    /// It stops for that many nanoseconds of virtual time: a stall.
    Stall(i64),
    /// It stops until the process of that path has done that operation, or no other process can
    /// run. Then it has the next turn. It does not stop if the operation was done before.
    After(u64, u32),
    /// From here on a sampler picks the process to run, with random numbers from that seed.
    Sample(Sampling, u64),
    /// The message that it sends there is held back until another process has sent to the same
    /// receiver.
    Back,
    /// A system call of the program fails. The point is that of the call: see
    /// [`crate::failing::Call::point`].
    Fail(Failing),
}

/// The name of a sampler: see [`crate::strategy::Sampler`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sampling {
    /// A random walk.
    Walk,
    /// Partial order sampling.
    Pos,
    /// Probabilistic concurrency testing, of that depth.
    Pct(u32),
    /// Selectively uniform random walk.
    Surw,
}

/// Maximum depth of `pct:D`.
const MOST_CHANGES: u32 = 1000;

impl Sampling {
    /// Returns its name on the command line and in replay files.
    pub fn name(self) -> String {
        match self {
            Sampling::Walk => "random".into(),
            Sampling::Pos => "pos".into(),
            Sampling::Pct(d) => format!("pct:{d}"),
            Sampling::Surw => "surw".into(),
        }
    }

    /// Returns the sampler of that name.
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
    /// Writes it as replay files have it.
    pub fn text(self) -> String {
        match self {
            Kind::Last => "stop".into(),
            Kind::Back => "back".into(),
            Kind::Fail(f) => format!("fail {}", f.text()),
            Kind::Stall(ns) => format!("stall {ns}"),
            Kind::After(path, op) => format!("after {path} {op}"),
            Kind::Sample(s, seed) => format!("sample {} {seed}", s.name()),
        }
    }

    /// Reads a text written by [`Kind::text`].
    pub fn parse(text: &str) -> Option<Kind> {
        let mut w = text.split(' ');
        Some(match w.next()? {
            "stop" => Kind::Last,
            "back" => Kind::Back,
            "fail" => Kind::Fail(Failing::parse(&mut w)?),
            "stall" => Kind::Stall(w.next()?.parse().ok()?),
            "after" => Kind::After(w.next()?.parse().ok()?, w.next()?.parse().ok()?),
            "sample" => Kind::Sample(Sampling::named(w.next()?)?, w.next()?.parse().ok()?),
            _ => return None,
        })
    }
}

/// A point at which a schedule differs from the base.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Deviation {
    /// The path of the process: see [`Point`].
    pub path: u64,
    /// The ordinal of the operation before which it happens.
    pub op: u32,
    pub kind: Kind,
}

/// A schedule: its deviations, in the order in which the base reaches them. The base has none.
pub type Schedule = Vec<Deviation>;

impl Deviation {
    /// Returns a deviation of that kind at a point.
    pub fn at((path, op): Point, kind: Kind) -> Deviation {
        Deviation { path, op, kind }
    }

    /// Returns its point.
    pub fn point(&self) -> Point {
        (self.path, self.op)
    }

    /// Writes it as replay files have it.
    pub fn text(&self) -> String {
        format!("{} {} {}", self.path, self.op, self.kind.text())
    }

    /// Reads a text written by [`Deviation::text`].
    pub fn parse(text: &str) -> Option<Deviation> {
        let mut w = text.splitn(3, ' ');
        let (path, op) = (w.next()?.parse().ok()?, w.next()?.parse().ok()?);
        let kind = Kind::parse(w.next()?)?;
        Some(Deviation { path, op, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failing::{Call, Reason};

    #[test]
    fn deviations_survive_a_round_trip() {
        for k in [
            Kind::Last,
            Kind::Back,
            Kind::Stall(5),
            Kind::After(7, 8),
            Kind::Sample(Sampling::Pct(4), 9),
            Kind::Sample(Sampling::Walk, 1),
            Kind::Fail(Failing {
                call: Call::Sync,
                reason: Reason::Eio,
                lasts: true,
            }),
        ] {
            let d = Deviation::at((u64::MAX, 3), k);
            assert_eq!(Deviation::parse(&d.text()), Some(d));
        }
        assert_eq!(Deviation::parse("1 2"), None);
    }
}
