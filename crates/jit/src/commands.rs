//! The commands of a `bs_match` that have machine code.

use crate::operands::Dst;
use purlin_isa::bit_fields::flags::{LITTLE, NATIVE, SIGNED};
use purlin_term::word::{SMALL_SHIFT, is_small_word};

/// A command of `bs_match`.
#[derive(Clone, Copy)]
pub enum Command {
    AtLeast(u64, u64),
    Exactly(u64),
    /// At most 56 bits; flags.
    Integer(u64, u64, Dst),
    Bits(u64, Dst),
    Tail(Dst),
    Skip(u64),
    /// Likewise.
    Equals(u64, u64),
}

impl Command {
    /// Returns the commands of a list, if all of them are simple.
    pub fn all(list: &[u64]) -> Option<Vec<Command>> {
        const LARGEST: u64 = 1 << 28;
        let mut out = Vec::new();
        let mut k = 0;
        let word = |k: usize| list.get(k).copied();
        while k < list.len() {
            let (c, n) = match list[k] {
                // Numbers of commands, as in `bs_match`.
                0 => (Command::AtLeast(word(k + 1)?, word(k + 2)?.max(1)), 3),
                1 => (Command::Exactly(word(k + 1)?), 2),
                2 => {
                    let (flags, bits) = (word(k + 2)?, word(k + 3)?);
                    // The native order is little-endian here; bits that are no whole bytes have
                    // another order.
                    let flags = match flags & (LITTLE | NATIVE) {
                        0 => flags & SIGNED,
                        _ if bits % 8 == 0 => flags & SIGNED | LITTLE,
                        _ => return None,
                    };
                    (Command::Integer(bits, flags, Dst::of_word(word(k + 4)?)), 5)
                }
                3 => (Command::Bits(word(k + 3)?, Dst::of_word(word(k + 4)?)), 5),
                5 => (Command::Tail(Dst::of_word(word(k + 3)?)), 4),
                4 => (Command::Skip(word(k + 1)?), 2),
                6 if is_small_word(word(k + 2)?) => {
                    let v = (word(k + 2)? as i64) >> SMALL_SHIFT;
                    (Command::Equals(word(k + 1)?, v as u64), 3)
                }
                _ => return None,
            };
            let fits = match c {
                Command::AtLeast(b, u) => b < LARGEST && u <= 256 && u.is_power_of_two(),
                Command::Exactly(b) | Command::Skip(b) => b < LARGEST,
                Command::Bits(b, _) => b < LARGEST,
                Command::Tail(_) => true,
                Command::Integer(b, ..) => (1..=56).contains(&b),
                Command::Equals(b, v) => (1..=56).contains(&b) && v >> b == 0,
            };
            if !fits {
                return None;
            }
            out.push(c);
            k += n;
        }
        Some(out)
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
