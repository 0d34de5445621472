//! Stubs: the pieces of machine code that all compiled functions share, by which machine code is
//! entered and left. Those that enter, leave and call C are written for each processor; the others
//! are written once ([`Shared`]).

mod a64;
mod x64;

use crate::asm::Label;
use crate::machine::{Float, Host, Machine, Processor};
use crate::{Fields, Helpers, Stubs, contexts, numbers, parts, searches, trees};

/// The bytes that encode why code stopped running.
#[derive(Clone, Copy, Debug)]
pub struct Exits {
    pub yields: u8,
    pub waits: u8,
}

/// Offsets in exports and fun entries, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    pub export_address: i32,
    pub fun_address: i32,
}

/// Length of the code between the entry for compiled callers, which counts the call, and the one
/// after that, in bytes.
pub const INNER: u32 = Host::INNER;

/// Written by `chance` to the words in the context of registers whose values are in machine
/// registers: it has the tag of a header.
const NOTHING: i32 = 0x0DEA_D000;

/// Makes all stubs for address `base`, and returns their bytes and addresses.
pub fn make(
    processor: Processor,
    base: u64,
    f: &Fields,
    helpers: &Helpers,
    exits: Exits,
) -> Option<(Vec<u8>, Stubs)> {
    match processor {
        Processor::X64 => x64::make(base, f, helpers, exits),
        Processor::A64 => a64::make(base, f, helpers, exits),
    }
}

/// The stubs that need no more than the operations of [`Machine`].
struct Shared {
    context: Label,
    floats: [Label; 4],
    less: Label,
    part: Label,
    tree: Label,
    find_key: Label,
    member: Label,
}

impl Shared {
    fn make<M: Machine>(a: &mut M, leaf: Label, helpers: &Helpers) -> Shared {
        let context = contexts::make(a);
        let operations = [Float::Add, Float::Sub, Float::Mul, Float::Div];
        Shared {
            context,
            floats: operations.map(|op| numbers::operation(a, op)),
            less: numbers::less(a, leaf),
            part: parts::part(a),
            tree: trees::look_up(a, leaf, helpers.map_get.0),
            find_key: searches::find_key(a),
            member: searches::member(a),
        }
    }
}

/// Where the stubs begin: see [`Stubs`].
struct Labels {
    enter: Label,
    exit: Label,
    leave: Label,
    yields: Label,
    waits: Label,
    helper: Label,
    leaf: Label,
    local: Label,
    resume: Label,
    base: Label,
    chance: Label,
    funs: Vec<Label>,
    natives: Vec<Label>,
    /// See [`Frames`](crate::Frames).
    entered: Vec<(Label, Label)>,
    aligned: Vec<(Label, Label)>,
    shared: Shared,
}

impl Labels {
    /// Returns the addresses of code that begins at `base`.
    fn addresses(&self, base: u64, offset: impl Fn(Label) -> Option<u32>) -> Option<Stubs> {
        let of = |l| offset(l).map(|o| base + u64::from(o));
        let mut s = Stubs {
            enter: of(self.enter)?,
            exit: of(self.exit)?,
            leave: of(self.leave)?,
            yields: of(self.yields)?,
            waits: of(self.waits)?,
            helper: of(self.helper)?,
            leaf_helper: of(self.leaf)?,
            local: of(self.local)?,
            resume: of(self.resume)?,
            base: of(self.base)?,
            chance: of(self.chance)?,
            context: of(self.shared.context)?,
            less: of(self.shared.less)?,
            part: of(self.shared.part)?,
            tree: of(self.shared.tree)?,
            find_key: of(self.shared.find_key)?,
            member: of(self.shared.member)?,
            ..Stubs::default()
        };
        let all = [
            (&mut s.floats[..], &self.shared.floats[..]),
            (&mut s.fun[..], &self.funs[..]),
            (&mut s.bif[..], &self.natives[..]),
        ];
        for (to, from) in all {
            for (to, &l) in to.iter_mut().zip(from) {
                *to = of(l)?;
            }
        }
        let ranges = [
            (&mut s.frames.entered[..], &self.entered),
            (&mut s.frames.aligned[..], &self.aligned),
        ];
        for (to, from) in ranges {
            for (to, &(begin, end)) in to.iter_mut().zip(from) {
                *to = (of(begin)?, of(end)?);
            }
        }
        Some(s)
    }
}
