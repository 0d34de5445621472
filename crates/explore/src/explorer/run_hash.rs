//! The rolling hashes of a run: two runs are the same if their hashes are.
//!
//! # Invariant
//! The hash of the program's own operations has no ordinals in it, since code may be compiled
//! between two of them, and no numbers of natives, so a replay of another build has the same.

use crate::operation::{Operation, Point};

/// Mixed in for a deviation, and for the end of a process.
const DEVIATION: u64 = 0x0DE7_1A7E;
const END: u64 = 0xE4D;

/// The hashes, and the number of operations.
#[derive(Default)]
pub struct Hashes {
    /// Hash of all operations in order.
    pub all: u64,
    /// Hash of the program's own operations in order.
    pub own: u64,
    pub operations: u64,
    /// Whether the program's code has come to an operation.
    pub at_work: bool,
}

/// Mixes a number into a hash.
pub fn mix(h: u64, n: u64) -> u64 {
    (h ^ n)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
        .wrapping_add(n)
}

impl Hashes {
    /// Adds an operation.
    pub fn operation(&mut self, (path, op): Point, operation: Operation) {
        let n = (u64::from(op) << 16) ^ operation.number();
        self.operations += 1;
        self.all = mix(mix(self.all, path), n);
    }

    /// Adds an operation of the program.
    pub fn own_operation(&mut self, path: u64, operation: Operation) {
        self.own = mix(mix(self.own, path), operation.number());
    }

    /// Adds a deviation.
    pub fn deviation(&mut self) {
        self.all = mix(self.all, DEVIATION);
        self.own = mix(self.own, DEVIATION);
    }

    /// Adds the end of a process.
    pub fn end(&mut self, path: u64) {
        self.all = mix(self.all, path ^ END);
    }

    /// Adds the end of a process of the program.
    pub fn own_end(&mut self, path: u64) {
        self.own = mix(self.own, path ^ END);
    }
}
