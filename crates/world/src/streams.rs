//! Streams of random numbers, one for each seed, node, life of the node and use.
//!
//! A draw from one stream shifts no other, so a further node, restart or draw leaves the numbers of
//! all others as they were. Each stream is SplitMix64 (Steele, Lea, Flood: Fast splittable
//! pseudorandom number generators, OOPSLA 2014). Its state begins at a mix of the four keys.

/// The use of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Use {
    /// References and other identifiers of a node.
    Ids = 1,
    /// Strong random bytes that the program asks for.
    Crypto = 2,
    /// Latencies of links.
    Links = 3,
    /// Losses of a disk whose machine loses its power.
    Disk = 4,
    /// Ports and initial offsets of clocks.
    Machine = 5,
    /// Faults and their places.
    Faults = 6,
}

/// A generator with its state.
#[derive(Clone, Debug)]
pub struct Stream(u64);

/// The increment of the state of SplitMix64.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The output function of SplitMix64: a bijection.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Advances the state of SplitMix64, and returns its next number.
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(STEP);
    mix(*state)
}

impl Stream {
    /// Returns SplitMix64 with this state.
    pub fn from_state(state: u64) -> Self {
        Stream(state)
    }

    /// Returns the stream of a seed, a node, the node's life and a use.
    pub fn new(seed: u64, node: u32, life: u32, what: Use) -> Self {
        let keys = [u64::from(node), u64::from(life), what as u64];
        Stream(
            keys.into_iter()
                .fold(mix(seed.wrapping_add(STEP)), |state, key| {
                    mix(state.wrapping_add(STEP) ^ key.wrapping_mul(STEP))
                }),
        )
    }

    /// Returns the next number.
    pub fn draw(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// Returns a number below `n`, each equally likely; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        // Draws above the largest multiple of `n` are drawn again.
        let unfair = u64::MAX - (u64::MAX % n + 1) % n;
        loop {
            let drawn = self.draw();
            if drawn <= unfair {
                return drawn % n;
            }
        }
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        for part in out.chunks_mut(8) {
            let bytes = self.draw().to_le_bytes();
            part.copy_from_slice(&bytes[..part.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the authors' own program (splitmix64.c) for the state 1234567.
    #[test]
    fn numbers_are_those_of_the_paper() {
        let mut stream = Stream::from_state(1_234_567);
        let drawn: Vec<u64> = (0..5).map(|_| stream.draw()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(drawn, published);
    }

    #[test]
    fn streams_differ_by_each_key() {
        let uses = [
            Use::Ids,
            Use::Crypto,
            Use::Links,
            Use::Disk,
            Use::Machine,
            Use::Faults,
        ];
        let mut seen = std::collections::BTreeSet::new();
        let mut made = 0;
        for seed in 0..20 {
            for node in 0..10 {
                for life in 0..5 {
                    for what in uses {
                        seen.insert(Stream::new(seed, node, life, what).draw());
                        made += 1;
                    }
                }
            }
        }
        assert_eq!(seen.len(), made);
    }

    /// Replay files depend on these numbers.
    #[test]
    fn streams_stay_the_same_among_builds() {
        let first = |s, n, l, u| Stream::new(s, n, l, u).draw();
        assert_eq!(
            [
                first(0, 0, 0, Use::Ids),
                first(7, 1, 0, Use::Crypto),
                first(7, 1, 1, Use::Crypto),
                first(u64::MAX, 32, 9, Use::Faults),
            ],
            [
                6_738_494_519_055_564_163,
                14_899_273_245_542_324_925,
                5_121_526_039_104_626_860,
                6_971_231_374_152_489_943,
            ]
        );
        let mut bytes = [0; 11];
        Stream::from_state(0).fill(&mut bytes);
        // SplitMix64 from the state 0 begins with e220a8397b1dcdaf, 6e789e6aa1b965f4.
        assert_eq!(
            bytes,
            [
                0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0xa8, 0x20, 0xe2, 0xf4, 0x65, 0xb9
            ]
        );
    }

    #[test]
    fn numbers_below_a_bound_reach_all() {
        let mut stream = Stream::from_state(5);
        let mut seen = [0; 7];
        (0..7000).for_each(|_| seen[stream.below(7) as usize] += 1);
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
        assert_eq!((stream.below(0), stream.below(1)), (0, 0));
    }
}
