//! Strategies: rules by which the schedules of a search are chosen.
//!
//! A strategy may list schedules that follow from the base alone, draw schedules at random, or
//! both. A drawn schedule may hand the run over to a [`Sampler`], which picks the process to run
//! before each operation. Each file is one strategy; its head has its invariants and its source, if
//! there is one.
//!
//! # Invariants of all
//! * A strategy knows operations and deviations only: no terms, no processes, no clock.
//! * Random numbers come from the generator that is passed in, so a seed decides everything.

mod delays;
mod flips;
mod interface;
mod late;
mod pct;
mod portfolio;
mod pos;
mod sampled;
mod stalls;
mod surw;
mod walk;

use crate::deviation::Sampling;
use crate::numbers::Numbers;
use crate::premises::Shown;
pub use interface::{Mix, Sampler, Strategy, draw_priority};

/// Returns the sampler of that name. `shown`: what the base has shown.
pub fn sampler(name: Sampling, shown: &Shown, numbers: &mut Numbers) -> Box<dyn Sampler> {
    match name {
        Sampling::Walk => Box::new(walk::Walk),
        Sampling::Pos => Box::new(pos::Pos),
        Sampling::Pct(d) => Box::new(pct::Pct::new(d, shown, numbers)),
        Sampling::Surw => Box::new(surw::Surw::new(shown, numbers)),
    }
}

/// The name of a strategy, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name {
    Portfolio,
    Flips,
    Stalls,
    /// Random deviations, that many.
    Delays(usize),
    Sampled(Sampling),
    /// The base alone.
    Base,
}

/// Maximum number of deviations of `delays:N`.
const MOST_DELAYS: usize = 1000;

impl Name {
    /// Reads a name from the command line.
    pub fn parse(word: &str) -> Option<Name> {
        Some(match word {
            "portfolio" => Name::Portfolio,
            "flips" => Name::Flips,
            "stalls" => Name::Stalls,
            "delays" => Name::Delays(2),
            "none" => Name::Base,
            _ => match word.strip_prefix("delays:") {
                Some(n) => Name::Delays(n.parse().ok().filter(|n| (1..=MOST_DELAYS).contains(n))?),
                None => Name::Sampled(Sampling::named(word)?),
            },
        })
    }

    /// Returns the strategy of that name.
    pub fn strategy(self) -> Box<dyn Strategy> {
        match self {
            Name::Portfolio => Box::new(portfolio::Portfolio),
            Name::Flips => Box::new(flips::Flips),
            Name::Stalls => Box::new(stalls::Stalls),
            Name::Delays(n) => Box::new(delays::Delays(n)),
            Name::Sampled(s) => Box::new(sampled::Sampled(s)),
            Name::Base => Box::new(BaseAlone),
        }
    }
}

/// Tries the base alone: a run in virtual time, without a search.
struct BaseAlone;

impl Strategy for BaseAlone {
    fn mix(&self) -> Mix {
        Mix::Listed
    }
}
