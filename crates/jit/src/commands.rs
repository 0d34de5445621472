//! The commands of a `bs_match` that have machine code.

use crate::operands::{Dst, list};
use purlin_isa::bit_fields::flags::{LITTLE, NATIVE, SIGNED};
use purlin_isa::bit_fields::{self, Field, cmd};
use purlin_isa::codec::Value;
use purlin_term::word::{SMALL_SHIFT, is_small_word};

/// A command of `bs_match`.
#[derive(Clone, Copy)]
pub enum Command {
    AtLeast(u64, u64),
    Exactly(u64),
    /// Bits, 56 at most, flags and destination.
    Integer(u64, u64, Dst),
    Bits(u64, Dst),
    Tail(Dst),
    Skip(u64),
    /// Bits, 56 at most, and their value.
    Equals(u64, u64),
}

/// Bound of the bits of other commands: a position and its distance fit into 32 bits.
const LARGEST: u64 = 1 << 28;

impl Command {
    /// Returns the commands of a list, if all of them are simple.
    pub fn all(commands: list::Commands) -> Option<Vec<Command>> {
        commands.all()?.iter().map(Command::of).collect()
    }
    fn of(c: &bit_fields::Command) -> Option<Command> {
        let number = |f: Field| c.field(f).map(Value::word);
        let (bits, flags) = (number(Field::Bits), number(Field::Flags));
        let dst = c.write().map(Dst::of_value);
        let is_short = |bits: u64| (1..=56).contains(&bits);
        let is_long = |bits: u64| bits < LARGEST;
        Some(match c.number {
            cmd::ENSURE_AT_LEAST => {
                let unit = number(Field::Unit)?.max(1);
                if unit > 256 || !unit.is_power_of_two() {
                    return None;
                }
                Command::AtLeast(bits.filter(|b| is_long(*b))?, unit)
            }
            cmd::ENSURE_EXACTLY => Command::Exactly(bits.filter(|b| is_long(*b))?),
            cmd::INTEGER => {
                let (bits, flags) = (bits.filter(|b| is_short(*b))?, flags?);
                // The native order is little-endian here; bits that are no whole bytes have
                // another order.
                let flags = match flags & (LITTLE | NATIVE) {
                    0 => flags & SIGNED,
                    _ if bits % 8 == 0 => flags & SIGNED | LITTLE,
                    _ => return None,
                };
                Command::Integer(bits, flags, dst?)
            }
            cmd::BINARY => Command::Bits(bits.filter(|b| is_long(*b))?, dst?),
            cmd::SKIP => Command::Skip(bits.filter(|b| is_long(*b))?),
            cmd::GET_TAIL => Command::Tail(dst?),
            cmd::EQ => {
                let term = number(Field::Term).filter(|t| is_small_word(*t))?;
                let value = (term as i64 >> SMALL_SHIFT) as u64;
                let bits = bits.filter(|b| is_short(*b) && value >> b == 0)?;
                Command::Equals(bits, value)
            }
            _ => return None,
        })
    }
}

/// Returns the leading commands that one read handles, and their bits. They make or compare
/// integers, or skip some bits. There is more than one only if that many bits are known to be left;
/// the last one skips nothing.
pub fn run_at(commands: &[Command], sure: u64) -> (&[Command], u64) {
    let mut best = (1, 0);
    let mut all = 0;
    for (k, c) in commands.iter().enumerate() {
        let bits = match *c {
            Command::Integer(bits, ..) | Command::Equals(bits, _) | Command::Skip(bits) => bits,
            _ => break,
        };
        all += bits;
        if k == 0 {
            best = (1, all);
        }
        let fits = all <= 56 || all == 64;
        if all > 64 || all > sure {
            break;
        }
        if fits && !matches!(c, Command::Skip(_)) {
            best = (k + 1, all);
        }
    }
    (&commands[..best.0], best.1)
}
