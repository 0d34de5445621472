//! Targets for hostile input: each takes any bytes and must return. A panic, a crash, or a run
//! without end is a fault.
//!
//! Inputs that once reached new code are kept in `corpus/TARGET`, one file for each target (see
//! [`pack`]). `tests/corpora.rs` replays them with every `cargo test`. `scripts/fuzz.sh` starts
//! from them: it builds the fuzzer with coverage and keeps the inputs that it finds.

mod arguments;
mod distribution_frames;
mod external;
mod loaded_modules;
mod packets;
mod patterns;
mod replay_files;
mod streams;
mod unicode_text;
pub mod world;

/// A target: its name, which its corpus has too, and what runs on an input.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "command_line",
        run: arguments::run,
    },
    Target {
        name: "decode_packet",
        run: packets::run,
    },
    Target {
        name: "external_term",
        run: external::run,
    },
    Target {
        name: "frames",
        run: distribution_frames::run,
    },
    Target {
        name: "loader",
        run: loaded_modules::run,
    },
    Target {
        name: "match_spec",
        run: external::match_spec,
    },
    Target {
        name: "re",
        run: patterns::run,
    },
    Target {
        name: "schedule",
        run: replay_files::run,
    },
    Target {
        name: "unicode",
        run: unicode_text::run,
    },
    Target {
        name: "zlib",
        run: streams::run,
    },
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

/// Packs a corpus into one file: the inputs, the shortest first, each behind its length as a
/// big-endian number of four bytes.
pub fn pack(mut inputs: Vec<Vec<u8>>) -> Vec<u8> {
    inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let mut kept = Vec::new();
    for input in inputs {
        kept.extend_from_slice(&(input.len() as u32).to_be_bytes());
        kept.extend_from_slice(&input);
    }
    kept
}

/// The inputs of a corpus that [`pack`] made; None if it is damaged.
pub fn unpack(mut kept: &[u8]) -> Option<Vec<&[u8]>> {
    let mut inputs = Vec::new();
    while !kept.is_empty() {
        let (length, rest) = kept.split_first_chunk()?;
        let (input, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        inputs.push(input);
        kept = rest;
    }
    Some(inputs)
}

/// Takes choices off the front of an input; an input that has ended gives zeros.
pub(crate) struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn byte(&mut self) -> u8 {
        let Some((&b, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        b
    }

    /// As many bytes as the next one says.
    pub fn short(&mut self) -> &'a [u8] {
        let n = (self.byte() as usize).min(self.0.len());
        let (part, rest) = self.0.split_at(n);
        self.0 = rest;
        part
    }
}
