//! The file with the record of the last minute: a ring of blocks.
//!
//! The file has its full size from the start, with holes where nothing was written. The first block
//! is the head, which describes the run. The others hold records in the order of their sequence
//! numbers: block `n`, from 1, has its place at `1 + (n - 1) % count`. A record is an object as
//! JSON, and ends with a zero byte.
//!
//! # Invariants
//! * A block is written as a whole, at a multiple of its size. A process that is killed leaves the
//!   old block or the new one, since the system copies a page of its cache at a time.
//! * The checksum covers the whole block, so any damage is found.
//! * Nothing read from a file is trusted: no length leads out of its block.

use crate::json::{self, Json};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// Bytes at its start: magic word, version, bytes in use, sequence number, checksum.
const HEAD: usize = 32;
/// Bytes of a block for records.
const ROOM: usize = BLOCK - HEAD;
const MAGIC: [u8; 8] = *b"PurlinRc";
/// The format of files. Others are refused.
const VERSION: u32 = 1;
/// Ends a record. JSON has no such byte.
const END: u8 = 0;
/// Maximum size of a file, in bytes.
const MOST_BYTES: u64 = 129 << 20;

/// Returns the checksum of a block. Each step is a bijection of the sum so far, so a change of one
/// word always changes the result.
fn checksum(block: &[u8]) -> u64 {
    let words = block.chunks_exact(8).enumerate();
    words
        // The checksum itself.
        .filter(|w| w.0 != HEAD / 8 - 1)
        .map(|w| u64::from_le_bytes(std::array::from_fn(|i| w.1[i])))
        .fold(0xcbf2_9ce4_8422_2325, |sum: u64, word| {
            (sum ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
        })
}

/// A block that is being filled.
struct Block {
    bytes: Box<[u8; BLOCK]>,
    used: usize,
    sequence: u64,
}

impl Block {
    fn new(sequence: u64) -> Block {
        Block {
            bytes: Box::new([0; BLOCK]),
            used: 0,
            sequence,
        }
    }
    /// Adds a record. Returns false if there is no room for it.
    fn add(&mut self, record: &[u8]) -> bool {
        let begin = HEAD + self.used;
        if self.used + record.len() + 1 > ROOM {
            return false;
        }
        self.bytes[begin..begin + record.len()].copy_from_slice(record);
        self.bytes[begin + record.len()] = END;
        self.used += record.len() + 1;
        true
    }
    /// Writes the block to its place among `count` blocks of records.
    fn write(&mut self, to: &File, count: u64) -> io::Result<()> {
        let b = &mut self.bytes;
        b[0..8].copy_from_slice(&MAGIC);
        b[8..12].copy_from_slice(&VERSION.to_le_bytes());
        b[12..16].copy_from_slice(&(self.used as u32).to_le_bytes());
        b[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        let sum = checksum(&b[..]);
        b[24..32].copy_from_slice(&sum.to_le_bytes());
        to.write_all_at(&b[..], place(self.sequence, count) * BLOCK as u64)
    }
}

/// The place of a block by its sequence number; 0 is the head.
fn place(sequence: u64, count: u64) -> u64 {
    match sequence.checked_sub(1) {
        None => 0,
        Some(n) => 1 + n % count,
    }
}

/// Writes the head of a file.
pub fn write_head(to: &File, head: &Json) -> io::Result<()> {
    let mut b = Block::new(0);
    match b.add(head.to_string().as_bytes()) {
        true => b.write(to, 1),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Writes records to a file.
pub struct Writer {
    file: Arc<File>,
    count: u64,
    block: Block,
    /// Whether the block has records that are not in the file.
    behind: bool,
    /// Bytes of records so far.
    pub bytes: u64,
}

impl Writer {
    /// Makes an empty file the record of a run, with that many blocks beside the head.
    pub fn new(file: Arc<File>, head: &Json, count: u64) -> io::Result<Writer> {
        file.set_len((1 + count) * BLOCK as u64)?;
        write_head(&file, head)?;
        Ok(Writer {
            file,
            count,
            block: Block::new(1),
            behind: false,
            bytes: 0,
        })
    }
    /// Adds a record. One that no block has room for is left out.
    pub fn add(&mut self, record: &Json) -> io::Result<()> {
        let text = record.to_string();
        if text.len() >= ROOM {
            return Ok(());
        }
        if !self.block.add(text.as_bytes()) {
            self.block.write(&self.file, self.count)?;
            self.block = Block::new(self.block.sequence + 1);
            self.block.add(text.as_bytes());
        }
        self.behind = true;
        self.bytes += text.len() as u64 + 1;
        Ok(())
    }
    /// Writes out what was added.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.behind {
            self.block.write(&self.file, self.count)?;
            self.behind = false;
        }
        Ok(())
    }
}

/// A record that was read.
pub struct Recording {
    /// Describes the run.
    pub head: Json,
    /// The oldest comes first.
    pub records: Vec<Json>,
    /// Whether older records were overwritten.
    pub is_part: bool,
}

/// Whether these bytes begin a record of any version.
pub fn is_recording(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Checks a block. Returns its sequence number and its records.
fn check(block: &[u8], number: u64) -> Result<(u64, &[u8]), String> {
    let damaged = |what: &str| Err(format!("damaged: block {number} has {what}"));
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| block[at + i]));
    let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| block[at + i]));
    if !is_recording(block) {
        return damaged("no magic word");
    }
    if word(8) != VERSION {
        return Err(format!(
            "of format {}, and this Purlin reads format {VERSION}",
            word(8)
        ));
    }
    if long(24) != checksum(block) {
        return damaged("another checksum");
    }
    let used = word(12) as usize;
    if used > ROOM {
        return damaged("an impossible length");
    }
    Ok((long(16), &block[HEAD..HEAD + used]))
}

/// The records of a block.
fn parsed(records: &[u8], number: u64) -> Result<Vec<Json>, String> {
    let wrong = || format!("damaged: block {number} has an unreadable record");
    let each = records.split(|b| *b == END).filter(|r| !r.is_empty());
    each.map(|r| {
        let text = std::str::from_utf8(r).map_err(|_| wrong())?;
        json::parse(text).map_err(|_| wrong())
    })
    .collect()
}

/// Reads only the head of a file.
pub fn read_head(file: &File) -> Option<Json> {
    let mut block = [0; BLOCK];
    file.read_exact_at(&mut block, 0).ok()?;
    let (0, records) = check(&block, 0).ok()? else {
        return None;
    };
    parsed(records, 0).ok()?.pop()
}

/// Reads a whole file. The error is the rest of a sentence about it: `empty`.
pub fn read(file: &File) -> Result<Recording, String> {
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    if length == 0 {
        return Err("empty".into());
    }
    if length > MOST_BYTES {
        return Err("too large".into());
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0)
        .map_err(|e| format!("unreadable: {e}"))?;
    decode(&bytes)
}

/// Decodes the bytes of a file; see [`read`].
pub fn decode(bytes: &[u8]) -> Result<Recording, String> {
    if !is_recording(bytes) {
        return Err("no record of a run".into());
    }
    let short = || "damaged: it was cut off".to_string();
    let (0, head) = check(bytes.get(..BLOCK).ok_or_else(short)?, 0)? else {
        return Err("damaged: it has no head".into());
    };
    let head = parsed(head, 0)?.pop().ok_or("damaged: its head is empty")?;
    let count = head.get("blocks").and_then(Json::number).unwrap_or(0.0) as u64;
    if count == 0 || (1 + count).checked_mul(BLOCK as u64) != Some(bytes.len() as u64) {
        return Err(short());
    }
    let mut blocks = Vec::new();
    for (n, block) in bytes.chunks_exact(BLOCK).enumerate().skip(1) {
        if block.iter().all(|b| *b == 0) {
            continue;
        }
        let (sequence, records) = check(block, n as u64)?;
        if place(sequence, count) != n as u64 {
            return Err(format!("damaged: block {n} is out of place"));
        }
        blocks.push((sequence, n as u64, records));
    }
    blocks.sort_unstable_by_key(|b| b.0);
    let mut records = Vec::new();
    for (_, n, b) in &blocks {
        records.append(&mut parsed(b, *n)?);
    }
    Ok(Recording {
        head,
        records,
        is_part: blocks.first().is_some_and(|b| b.0 > 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(blocks: u64) -> Json {
        Json::object([("blocks", blocks.into()), ("pid", 7u64.into())])
    }

    fn record(n: u64) -> Json {
        let inner = Json::object([("line", n.into())]);
        Json::object([("t", n.into()), ("text", "\u{0} é\n".into()), ("at", inner)])
    }

    /// The bytes of a file of four blocks beside the head, with that many records.
    fn file(records: u64) -> Vec<u8> {
        let path =
            std::env::temp_dir().join(format!("purlin-format-{}-{records}", std::process::id()));
        let file = File::create_new(&path).expect("is made");
        let mut w = Writer::new(Arc::new(file), &head(4), 4).expect("is written");
        for n in 1..=records {
            w.add(&record(n)).expect("is written");
            if n % 7 == 0 {
                w.flush().expect("is written");
            }
        }
        w.flush().expect("is written");
        let bytes = std::fs::read(&path).expect("is there");
        std::fs::remove_file(&path).expect("is removed");
        bytes
    }

    fn times(r: &Recording) -> Vec<u64> {
        let all = r.records.iter();
        all.map(|r| r.get("t").and_then(Json::number).expect("has it") as u64)
            .collect()
    }

    #[test]
    fn the_latest_records_are_read_in_order() {
        for (n, is_part) in [(0, false), (1, false), (50, false), (5000, true)] {
            let r = decode(&file(n)).expect("is whole");
            let t = times(&r);
            assert_eq!((r.is_part, t.last().copied().unwrap_or(0)), (is_part, n));
            assert!(t.windows(2).all(|w| w[0] + 1 == w[1]));
            // Three whole blocks at least.
            assert!(!is_part || t.len() > 3 * ROOM / 80, "{}", t.len());
            assert!(is_part || t.len() as u64 == n);
        }
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let good = file(300);
        let blocks = good.chunks(BLOCK).filter(|b| b.iter().any(|x| *x != 0));
        assert!(blocks.count() > 2);
        let mut random = 1u64;
        for _ in 0..3000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(99);
            let at = (random >> 33) as usize % (good.len() * 8);
            let mut bad = good.clone();
            bad[at / 8] ^= 1 << (at % 8);
            let e = decode(&bad).err().unwrap_or_else(|| panic!("bit {at}"));
            assert!(!e.contains('\n'));
        }
    }

    #[test]
    fn other_files_are_refused() {
        let good = file(100);
        for n in [0, 1, 31, 32, BLOCK - 1, BLOCK, 3 * BLOCK, good.len() - 1] {
            assert!(decode(&good[..n]).is_err(), "{n}");
        }
        let mut later = good.clone();
        later[8] = 2;
        let e = decode(&later).err().expect("is refused");
        assert!(e.contains("format 2"), "{e}");
        // A length beyond the block, and a block in another's place, with right checksums.
        let sign = |bad: &mut Vec<u8>, n: usize| {
            let block = &mut bad[n * BLOCK..(n + 1) * BLOCK];
            let sum = checksum(block);
            block[24..32].copy_from_slice(&sum.to_le_bytes());
        };
        let mut long = good.clone();
        long[BLOCK + 12..BLOCK + 16].copy_from_slice(&u32::MAX.to_le_bytes());
        sign(&mut long, 1);
        let e = decode(&long).err().expect("is refused");
        assert!(e.contains("impossible length"), "{e}");
        let mut moved = good.clone();
        moved[BLOCK + 16] = 2;
        sign(&mut moved, 1);
        let e = decode(&moved).err().expect("is refused");
        assert!(e.contains("out of place"), "{e}");
        let mut huge = good;
        let text = head(u64::MAX / 4096).to_string();
        huge[HEAD..HEAD + text.len()].copy_from_slice(text.as_bytes());
        huge[12..16].copy_from_slice(&(text.len() as u32).to_le_bytes());
        sign(&mut huge, 0);
        assert!(decode(&huge).is_err());
    }
}
