//! The cost of commands: they are run several times, in turn, and the system's counts of each run
//! are kept.
//!
//! A run ([`run`]) yields a number for each [`Quantity`]. [`statistics`] summarises the numbers of
//! a command, and decides whether two commands differ. [`energy`] reads the energy counters of the
//! processor.
//!
//! # Invariants
//! * This crate prints nothing and knows nothing of Erlang.
//! * A quantity that could not be measured is `None`, never zero.

pub mod energy;
pub mod measured_run;
pub mod relay;
pub mod statistics;

pub use measured_run::{Command, Failed, Run};
pub use relay::Relay;

/// The quantities measured in each run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    Wall,
    User,
    System,
    Peak,
    Voluntary,
    Involuntary,
    Energy,
}

/// The properties of a quantity, in the order of tables.
pub struct QuantityRow {
    pub quantity: Quantity,
    /// The name in tables.
    pub title: &'static str,
    /// The name in JSON and CSV, which ends in the unit.
    pub key: &'static str,
    pub unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Seconds,
    Bytes,
    Count,
    Joules,
}

impl Unit {
    /// A number with three digits, and its unit.
    pub fn shown(self, value: f64) -> String {
        let scaled = |steps: &[(f64, &str)]| {
            let step = steps.iter().find(|(size, _)| value >= *size);
            let (size, name) = step.or(steps.last()).copied().unwrap_or((1.0, ""));
            let v = value / size;
            let digits = if v >= 100.0 {
                0
            } else if v >= 10.0 {
                1
            } else {
                2
            };
            format!("{v:.digits$} {name}")
        };
        match self {
            Unit::Seconds if value == 0.0 => "0 s".into(),
            Unit::Seconds => scaled(&[(1.0, "s"), (1e-3, "ms"), (1e-6, "us")]),
            Unit::Bytes => scaled(&[(1073741824.0, "GiB"), (1048576.0, "MiB"), (1024.0, "KiB")]),
            Unit::Joules => scaled(&[(1.0, "J"), (1e-3, "mJ")]),
            Unit::Count => format!("{value:.0}"),
        }
    }
}

const fn row(
    quantity: Quantity,
    title: &'static str,
    key: &'static str,
    unit: Unit,
) -> QuantityRow {
    QuantityRow {
        quantity,
        title,
        key,
        unit,
    }
}

pub const QUANTITIES: &[QuantityRow] = &[
    row(Quantity::Wall, "wall", "wall_s", Unit::Seconds),
    row(Quantity::User, "user", "user_s", Unit::Seconds),
    row(Quantity::System, "system", "system_s", Unit::Seconds),
    row(Quantity::Peak, "peak memory", "peak_bytes", Unit::Bytes),
    row(
        Quantity::Voluntary,
        "waits",
        "voluntary_switches",
        Unit::Count,
    ),
    row(
        Quantity::Involuntary,
        "preemptions",
        "involuntary_switches",
        Unit::Count,
    ),
    row(Quantity::Energy, "energy", "energy_j", Unit::Joules),
];

/// Runs commands in turn: `warmup` rounds that are discarded, then `runs` rounds that are kept.
///
/// Every second round is in reverse order, so that no command always follows the same other one.
/// Returns the runs of each command, and the signal that ended them early, if any; the run it
/// interrupted is discarded.
pub fn in_turn(
    commands: &[Command],
    warmup: usize,
    runs: usize,
    mut after: impl FnMut(usize, &Run) -> Result<(), Failed>,
) -> Result<(Vec<Vec<Run>>, Option<i32>), Failed> {
    let relay = Relay::begin();
    let mut meter = energy::Meter::of_system();
    let mut kept: Vec<Vec<Run>> = commands.iter().map(|_| Vec::new()).collect();
    for round in 0..warmup + runs {
        let mut order: Vec<usize> = (0..commands.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let run = commands[index].run(&mut meter, &relay);
            if let Some(signal) = relay.ended_by() {
                return Ok((kept, Some(signal)));
            }
            let run = run?;
            after(index, &run)?;
            if round >= warmup {
                kept[index].push(run);
            }
        }
    }
    Ok((kept, None))
}
