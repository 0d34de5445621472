//! Contents of a file: blocks, with holes where nothing was written.

use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const BLOCK: u64 = 4096;

/// The contents of a file. Copies share blocks until one of them is written.
///
/// Invariant: bytes at and above `len` are zero in every block, and no block lies wholly above it.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Sparse {
    len: u64,
    blocks: BTreeMap<u64, Arc<[u8; BLOCK as usize]>>,
}

/// Splits bytes from `at` on at the borders of blocks: block, offset in it, range of the bytes.
fn parts(at: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let place = at + done as u64;
        let within = (place % BLOCK) as usize;
        let n = (len - done).min(BLOCK as usize - within);
        let range = done..done + n;
        done += n;
        Some((place / BLOCK, within, range))
    })
}

impl Sparse {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the number of blocks that are not holes.
    pub(super) fn count(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub(super) fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let len = (self.len.saturating_sub(at)).min(len as u64) as usize;
        let mut out = vec![0; len];
        for (block, within, range) in parts(at, len) {
            if let Some(block) = self.blocks.get(&block) {
                let n = range.len();
                out[range].copy_from_slice(&block[within..within + n]);
            }
        }
        out
    }

    /// Returns how many of `len` bytes at `at` can be written if `free` blocks may be added.
    pub(super) fn fitting(&self, at: u64, len: usize, mut free: u64) -> usize {
        for (block, _, range) in parts(at, len) {
            if !self.blocks.contains_key(&block) {
                if free == 0 {
                    return range.start;
                }
                free -= 1;
            }
        }
        len
    }

    pub(super) fn write(&mut self, at: u64, data: &[u8]) {
        for (block, within, range) in parts(at, data.len()) {
            let block = self
                .blocks
                .entry(block)
                .or_insert_with(|| Arc::new([0; BLOCK as usize]));
            Arc::make_mut(block)[within..within + range.len()].copy_from_slice(&data[range]);
        }
        if !data.is_empty() {
            self.len = self.len.max(at + data.len() as u64);
        }
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.blocks.split_off(&len.div_ceil(BLOCK));
            let within = (len % BLOCK) as usize;
            if within > 0
                && let Some(block) = self.blocks.get_mut(&(len / BLOCK))
            {
                Arc::make_mut(block)[within..].fill(0);
            }
        }
        self.len = len;
    }
}
