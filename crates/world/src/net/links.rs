//! Links between machines: latency, bandwidth and cuts, each direction for itself.

use crate::streams::Stream;

/// The properties of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Time on the way, in nanoseconds.
    pub latency: u64,
    /// The highest time that is drawn in addition, in nanoseconds.
    pub jitter: u64,
    /// Bytes a second; 0 is no limit.
    pub bandwidth: u64,
}

impl Speed {
    /// The way within a machine.
    pub const LOOPBACK: Speed = Speed {
        latency: 10_000,
        jitter: 0,
        bandwidth: 0,
    };
    /// The way to another machine of the same network.
    pub const NETWORK: Speed = Speed {
        latency: 200_000,
        jitter: 0,
        bandwidth: 0,
    };
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(super) struct Link<P> {
    pub(super) speed: Speed,
    pub(super) is_cut: bool,
    /// The time until which earlier packets occupy it.
    busy: u64,
    /// Packets that wait for the end of a cut.
    pub(super) held: Vec<P>,
}

impl<P> Link<P> {
    pub(super) fn new(speed: Speed) -> Self {
        Link {
            speed,
            is_cut: false,
            busy: 0,
            held: Vec::new(),
        }
    }

    /// Returns the time at which `bytes` that leave now arrive.
    pub(super) fn arrival(&mut self, now: u64, bytes: usize, numbers: &mut Stream) -> u64 {
        let mut sent = now;
        if self.speed.bandwidth > 0 {
            let takes = bytes as u128 * 1_000_000_000 / u128::from(self.speed.bandwidth);
            sent = self
                .busy
                .max(now)
                .saturating_add(u64::try_from(takes).unwrap_or(u64::MAX));
            self.busy = sent;
        }
        let drawn = match self.speed.jitter {
            0 => 0,
            jitter => numbers.below(jitter.saturating_add(1)),
        };
        sent.saturating_add(self.speed.latency)
            .saturating_add(drawn)
    }
}
