//! The events of its descriptor that a socket waits for.
//!
//! # Protocol
//! A report that a descriptor is ready reaches the socket some time after it was made. Meanwhile
//! the socket may have stopped waiting: a receive has timed out, an active socket has become
//! passive, or others use the descriptor. Bytes read then would have no recipient. So before it
//! reads, the socket asks under its own lock which part of a report is [still
//! wanted](Interest::still). An unwanted event stays in the kernel, which reports it again when
//! somebody waits for it.

/// See the module head. Guarded by the port's lock.
#[derive(Default)]
pub struct Interest {
    reads: bool,
    writes: bool,
    /// Whether others use the descriptor for now. The selection is kept.
    suspended: bool,
}

impl Interest {
    /// Selects events; None leaves a selection unchanged.
    pub fn select(&mut self, reads: Option<bool>, writes: Option<bool>) {
        self.reads = reads.unwrap_or(self.reads);
        self.writes = writes.unwrap_or(self.writes);
    }
    /// Leaves the descriptor to others, or takes it back.
    pub fn suspend(&mut self, on: bool) {
        self.suspended = on;
    }
    /// Whether others use the descriptor.
    pub fn is_suspended(&self) -> bool {
        self.suspended
    }
    /// Whether input is selected.
    pub fn reads(&self) -> bool {
        self.reads
    }
    /// Whether output is selected.
    pub fn writes(&self) -> bool {
        self.writes
    }
    /// The events to request from the kernel.
    pub fn wanted(&self) -> (bool, bool) {
        (
            self.reads && !self.suspended,
            self.writes && !self.suspended,
        )
    }
    /// The part of a report that is still wanted.
    pub fn still(&self, readable: bool, writable: bool) -> (bool, bool) {
        let (reads, writes) = self.wanted();
        (readable && reads, writable && writes)
    }
}
