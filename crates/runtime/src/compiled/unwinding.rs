//! Rules by which tools walk the machine stack through machine code, in the format of C's tables
//! (`.eh_frame` and `.eh_frame_hdr`, as the Linux Standard Base and DWARF describe them).
//!
//! Machine code keeps little on the machine stack but return addresses: the return address lies
//! where the stack pointer points, or some words above, where the code has pushed these
//! ([`Code::depths`](purlin_jit::asm::Code)). The stubs have two exceptions ([`Frames`]).
//!
//! The tables lie behind the code, at the next multiple of 8 bytes: `perf inject --jit` puts them
//! there too. Offsets in them are relative, so no address of the code is needed.

use purlin_jit::Frames;

/// The tables of a piece of code.
pub struct Tables {
    /// Both tables: that of rules, then the one for searching in it.
    pub bytes: Vec<u8>,
    /// Bytes of the second.
    pub header: usize,
}

/// Numbers of registers on x86-64.
const RBX: u8 = 3;
const RBP: u8 = 6;
const RSP: u8 = 7;
const R12: u8 = 12;
const R15: u8 = 15;
const RETURN: u8 = 16;

const ADVANCE: u8 = 0x04;
const DEFINE_FRAME: u8 = 0x0C;
const OFFSET: u8 = 0x80;
const RESTORE: u8 = 0xC0;

/// Encodings of addresses: four signed bytes relative to their own place, four unsigned bytes, and
/// four signed bytes relative to the table for searching.
const RELATIVE: u8 = 0x1B;
const COUNT: u8 = 0x03;
const TO_TABLE: u8 = 0x3B;

/// Registers that the stub `enter` saves, below the return address, in the order of their places.
const SAVED: [u8; 6] = [RBP, RBX, R12, 13, 14, R15];
/// Bytes from the stack pointer to the frame's end in [`Frames::entered`]: a word, the saved
/// registers and the return address.
const ENTERED: u8 = 8 * (1 + SAVED.len() as u8 + 1);

/// Pads a record and writes its length.
fn close(table: &mut Vec<u8>, begin: usize) {
    while !table.len().is_multiple_of(8) {
        table.push(0);
    }
    let length = (table.len() - begin - 4) as u32;
    table[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

/// Returns the tables for a function of `bytes` bytes that pushes words.
pub fn function(bytes: usize, depths: &[(u32, u8)]) -> Tables {
    let depths = depths.iter().map(|&(at, n)| (at, Change::Depth(n)));
    tables(bytes, depths.collect())
}

/// Returns the tables for the stubs, which are `bytes` bytes at `at`.
pub fn stubs(at: u64, bytes: usize, f: &Frames) -> Tables {
    let offset = |to: u64| to.saturating_sub(at) as u32;
    let mut all = Vec::new();
    let depths = f.depths.iter().filter(|d| d.0 != 0);
    all.extend(depths.map(|&(to, n)| (offset(to), Change::Depth(n))));
    for (ranges, from) in [(&f.entered[..], From::C), (&f.aligned[..], From::Aligned)] {
        for &(begin, end) in ranges.iter().filter(|(begin, end)| begin < end) {
            all.push((offset(begin), Change::From(from)));
            all.push((offset(end), Change::From(From::Pointer)));
        }
    }
    tables(bytes, all)
}

/// Origin from which the place of the return address is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    /// The stack pointer, and the words that were pushed.
    Pointer,
    /// The stack pointer at the entry from C.
    C,
    /// R12.
    Aligned,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Depth(u8),
    From(From),
}

fn tables(bytes: usize, changes: Vec<(u32, Change)>) -> Tables {
    let mut table: Vec<u8> = vec![0; 4];
    table.extend([0, 0, 0, 0]);
    table.extend(b"\x01zR\0");
    // Units of addresses and of places, and the column of the return address.
    table.extend([1, 0x78, RETURN, 1, RELATIVE]);
    table.extend([DEFINE_FRAME, RSP, 8, OFFSET | RETURN, 1]);
    close(&mut table, 0);
    let entry = table.len();
    table.extend([0; 4]);
    table.extend((table.len() as u32).to_le_bytes());
    let code = -((bytes.next_multiple_of(8) + table.len()) as i32);
    table.extend(code.to_le_bytes());
    table.extend((bytes as u32).to_le_bytes());
    table.push(0);
    rules(&mut table, changes);
    close(&mut table, entry);
    table.extend([0; 4]);
    let begin = table.len();
    table.extend([1, RELATIVE, COUNT, TO_TABLE]);
    table.extend((-(begin as i32 + 4)).to_le_bytes());
    table.extend(1u32.to_le_bytes());
    table.extend((-((bytes.next_multiple_of(8) + begin) as i32)).to_le_bytes());
    table.extend((entry as i32 - begin as i32).to_le_bytes());
    Tables {
        header: table.len() - begin,
        bytes: table,
    }
}

/// Writes what changes at which offsets.
fn rules(table: &mut Vec<u8>, mut changes: Vec<(u32, Change)>) {
    changes.sort_by_key(|c| c.0);
    let (mut now, mut depth, mut from) = (0, 0u8, From::Pointer);
    for at in changes.chunk_by(|a, b| a.0 == b.0) {
        let before = from;
        for (_, change) in at {
            match *change {
                Change::Depth(n) => depth = n,
                Change::From(f) => from = f,
            }
        }
        table.push(ADVANCE);
        table.extend((at[0].0 - now).to_le_bytes());
        now = at[0].0;
        if before == From::C && from != From::C {
            table.extend(SAVED.map(|r| RESTORE | r));
        }
        match from {
            From::Pointer => {
                table.extend([DEFINE_FRAME, RSP]);
                unsigned(table, 8 * (1 + u32::from(depth)));
            }
            From::C => {
                table.extend([DEFINE_FRAME, RSP, ENTERED]);
                let places = SAVED.iter().zip(2u8..);
                places.for_each(|(r, place)| table.extend([OFFSET | r, place]));
            }
            From::Aligned => table.extend([DEFINE_FRAME, R12, 8]),
        }
    }
}

/// Writes a number of variable length.
fn unsigned(table: &mut Vec<u8>, mut n: u32) {
    while n >= 0x80 {
        table.push(n as u8 | 0x80);
        n >>= 7;
    }
    table.push(n as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(t: &[u8], at: usize) -> i32 {
        i32::from_le_bytes(t[at..at + 4].try_into().expect("four bytes"))
    }

    #[test]
    fn offsets_lead_to_the_code_and_to_its_record() {
        let t = function(37, &[]);
        let rules = t.bytes.len() - t.header;
        let header = &t.bytes[rules..];
        assert_eq!(header[..4], [1, RELATIVE, COUNT, TO_TABLE]);
        // To the start of the table of rules, from the place of the number.
        assert_eq!(rules as i32 + 4 + number(header, 4), 0);
        assert_eq!(number(header, 8), 1);
        // The code begins 40 bytes before the tables.
        assert_eq!(rules as i32 + number(header, 12), -40);
        let entry = (rules as i32 + number(header, 16)) as usize;
        assert_eq!(entry + 4, number(&t.bytes, entry + 4) as usize);
        assert_eq!(entry as i32 + 8 + number(&t.bytes, entry + 8), -40);
        assert_eq!(number(&t.bytes, entry + 12), 37);
    }

    #[test]
    fn records_are_whole_words_and_end() {
        let mut f = Frames::default();
        f.entered[0] = (0x1010, 0x1020);
        f.aligned[3] = (0x1030, 0x1031);
        f.depths[0] = (0x1008, 20);
        let t = stubs(0x1000, 64, &f);
        let (mut at, mut records) = (0, 0);
        while number(&t.bytes, at) != 0 {
            let length = number(&t.bytes, at) as usize + 4;
            assert_eq!(length % 8, 0);
            (at, records) = (at + length, records + 1);
        }
        assert_eq!((records, at + 4), (2, t.bytes.len() - t.header));
    }
}
