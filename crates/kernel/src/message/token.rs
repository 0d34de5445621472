//! Sequential trace tokens, as they travel with messages.

use purlin_term::frag::OwnedTerm;
use purlin_term::{Alloc, Term, copy};

/// Flags of a token, as numbers in its tuple.
pub mod token_flag {
    pub const SEND: u32 = 1;
    pub(crate) const RECEIVE: u32 = 1 << 1;
    pub(crate) const PRINT: u32 = 1 << 2;
    pub const TIMESTAMP: u32 = 1 << 3;
    pub const STRICT_MONOTONIC: u32 = 1 << 4;
    pub const MONOTONIC: u32 = 1 << 5;
    /// Their names as components of the token.
    pub(crate) const NAMES: &[(&str, u32)] = &[
        ("send", SEND),
        ("receive", RECEIVE),
        ("print", PRINT),
        ("timestamp", TIMESTAMP),
        ("strict_monotonic_timestamp", STRICT_MONOTONIC),
        ("monotonic_timestamp", MONOTONIC),
    ];
}

/// The sequential tracing state of a process.
#[derive(Default)]
pub struct Sequence {
    /// Counter of what it sends.
    pub clock: i64,
    /// The serial number that it received last.
    pub last: i64,
    pub token: Option<Token>,
}

/// The token that travels with messages; see [`crate::signal::token`].
pub struct Token {
    pub label: OwnedTerm,
    pub flags: u32,
    pub serial: i64,
    /// The pid of the sending process, possibly on another node.
    pub from: OwnedTerm,
    pub previous: i64,
}

impl Token {
    /// Returns a copy of the token.
    pub fn duplicate(&self) -> Token {
        Token {
            label: OwnedTerm::copy_of(self.label.term()),
            from: OwnedTerm::copy_of(self.from.term()),
            ..*self
        }
    }
    /// Returns `{Flags, Label, Serial, From, Previous}`.
    pub fn term(&self, a: &mut (impl Alloc + ?Sized)) -> Term {
        let label = copy::copy(self.label.term(), a);
        let (serial, previous) = (Term::small(self.serial), Term::small(self.previous));
        let from = copy::copy(self.from.term(), a);
        a.tuple(&[
            Term::small(self.flags.into()),
            label,
            serial,
            from,
            previous,
        ])
    }
    /// Words that [`Token::term`] takes.
    pub fn words(&self) -> usize {
        6 + copy::size_of(self.label.term()) + copy::size_of(self.from.term())
    }
    /// Returns the token of a term that [`Token::term`] made; `None` for any other term.
    pub fn of_term(t: Term) -> Option<Token> {
        let &[flags, label, serial, from, previous] = t.as_tuple()? else {
            return None;
        };
        Some(Token {
            label: OwnedTerm::copy_of(label),
            flags: flags.as_small()? as u32,
            serial: serial.as_small()?,
            from: OwnedTerm::copy_of(from),
            previous: previous.as_small()?,
        })
    }
}
