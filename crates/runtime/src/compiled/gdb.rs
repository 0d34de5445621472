//! `gdb`'s interface for compilers: a symbol file in memory, with the names of all functions that
//! have machine code.
//!
//! There is one ELF file, which grows: its tables of symbols and names have room to spare. `gdb`
//! reads it when it attaches. While `gdb` is attached, each change calls
//! [`__jit_debug_register_code`], where it has a breakpoint, and it reads the file again.
//!
//! ```text
//! header | 5 section headers | names of sections | symbols … room | names … room
//! ```
//!
//! # Invariants
//! - The number of symbols grows after symbol and name have been written. Whenever the process is
//!   stopped, the file is whole.
//!
//! # Orderings
//! The fields of the descriptor are stored with release, in the order that the interface asks for.
//! Their reader is a debugger that has stopped the process, so it sees all stores before the
//! function in which it stops.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The entry that `gdb` looks for. Names and layouts are those of its manual ("JIT Compilation
/// Interface").
#[repr(C)]
struct Entry {
    next: *mut Entry,
    previous: *mut Entry,
    file: *const u8,
    bytes: u64,
}
#[repr(C)]
pub struct Descriptor {
    version: u32,
    action: AtomicU32,
    relevant: AtomicUsize,
    first: AtomicUsize,
}
const REGISTERED: u32 = 1;
const UNREGISTERED: u32 = 2;

/// The list that `gdb` reads when it attaches.
#[unsafe(no_mangle)]
pub static __jit_debug_descriptor: Descriptor = Descriptor {
    version: 1,
    action: AtomicU32::new(0),
    relevant: AtomicUsize::new(0),
    first: AtomicUsize::new(0),
};

/// The function at which `gdb` stops to read changes.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn __jit_debug_register_code() {
    std::hint::black_box(&__jit_debug_descriptor);
}

const HEADER: usize = 64;
const SECTION: usize = 64;
const SECTIONS: usize = 5;
const SYMBOL: usize = 24;
/// Names of the sections, as in their table. Readers use their types.
const SECTION_NAMES: &[u8] = b"\0.text\0.symbol\0.strtab\0.shstrtab\0";
const SYMBOLS_AT: usize = (HEADER + SECTIONS * SECTION + SECTION_NAMES.len()).next_multiple_of(8);
/// Initial room for symbols, and bytes of names for each.
const FIRST: usize = 64;
const NAME: usize = 40;

/// The file and its content.
pub(super) struct Symbols {
    file: Vec<u8>,
    range: Range<u64>,
    /// Number of symbols, the first of which is the null symbol, and how many there is room for.
    count: usize,
    room: usize,
    /// Bytes of names, and those of removed names.
    names: usize,
    gone: usize,
    entry: Box<Entry>,
}

// SAFETY: the pointers lead to memory of the value, or are those of the one list that contains it.
unsafe impl Send for Symbols {}

fn put(to: &mut [u8], at: usize, bytes: &[u8]) {
    to[at..at + bytes.len()].copy_from_slice(bytes);
}

impl Symbols {
    pub fn new(range: Range<u64>) -> Symbols {
        let mut s = Symbols {
            file: Vec::new(),
            range,
            count: 1,
            room: 0,
            names: 1,
            gone: 0,
            entry: Box::new(Entry {
                next: std::ptr::null_mut(),
                previous: std::ptr::null_mut(),
                file: std::ptr::null(),
                bytes: 0,
            }),
        };
        s.grow(FIRST, FIRST * NAME);
        let d = &__jit_debug_descriptor;
        let entry = &raw mut *s.entry as usize;
        d.relevant.store(entry, Ordering::Release);
        d.first.store(entry, Ordering::Release);
        s.tell(REGISTERED);
        s
    }
    fn tell(&mut self, what: u32) {
        let d = &__jit_debug_descriptor;
        d.action.store(what, Ordering::Release);
        __jit_debug_register_code();
        d.action.store(0, Ordering::Release);
    }
    /// Changes the file by `f`; `gdb`, if attached, reads it again.
    fn change(&mut self, f: impl FnOnce(&mut Symbols)) {
        self.tell(UNREGISTERED);
        f(self);
        self.tell(REGISTERED);
    }
    fn names_at(&self) -> usize {
        SYMBOLS_AT + self.room * SYMBOL
    }
    /// Makes a file with room for that many symbols and bytes of names, and copies the present
    /// ones.
    fn grow(&mut self, room: usize, names: usize) {
        let (old, old_names) = (std::mem::take(&mut self.file), self.names_at());
        let before = self.room;
        self.room = room;
        let mut file = vec![0; self.names_at() + names];
        put(&mut file, HEADER + SECTIONS * SECTION, SECTION_NAMES);
        // ELF, 64 bits, little-endian, version 1.
        put(&mut file, 0, b"\x7fELF\x02\x01\x01");
        let half = |f: &mut Vec<u8>, at, n: u16| put(f, at, &n.to_le_bytes());
        // Executable; x86-64 or aarch64.
        half(&mut file, 16, 2);
        let machine = if cfg!(target_arch = "aarch64") {
            183
        } else {
            62
        };
        half(&mut file, 18, machine);
        put(&mut file, 20, &1u32.to_le_bytes());
        put(&mut file, 40, &(HEADER as u64).to_le_bytes());
        for (at, n) in [
            (52, HEADER as u16),
            (58, SECTION as u16),
            (60, SECTIONS as u16),
            (62, SECTIONS as u16 - 1),
        ] {
            half(&mut file, at, n);
        }
        let mut used = 1;
        let mut symbols = vec![0; SYMBOL];
        let mut strings = vec![0];
        for i in 1..if before == 0 { 1 } else { self.count } {
            let s = &old[SYMBOLS_AT + i * SYMBOL..][..SYMBOL];
            let from = old_names + u32::from_le_bytes([s[0], s[1], s[2], s[3]]) as usize;
            let name = old[from..].split(|&b| b == 0).next().unwrap_or_default();
            let mut s = s.to_vec();
            put(&mut s, 0, &(strings.len() as u32).to_le_bytes());
            symbols.extend(s);
            strings.extend(name);
            strings.push(0);
            used += 1;
        }
        put(&mut file, SYMBOLS_AT, &symbols);
        let at = self.names_at();
        put(&mut file, at, &strings);
        (self.count, self.names, self.gone) = (used, strings.len(), 0);
        self.file = file;
        self.sections();
        self.entry.file = self.file.as_ptr();
        self.entry.bytes = self.file.len() as u64;
    }
    /// The section headers.
    fn sections(&mut self) {
        let (symbols, names) = (self.count * SYMBOL, self.names);
        let start = self.range.start;
        let bytes = self.range.end - start;
        let at = self.names_at() as u64;
        let shown = (HEADER + SECTIONS * SECTION) as u64;
        // Name, type, flags, address, offset, size, link, info, alignment, size of an entry.
        let rows: [[u64; 10]; SECTIONS] = [
            [0; 10],
            [1, 8, 6, start, 0, bytes, 0, 0, 16, 0],
            [
                7,
                2,
                0,
                0,
                SYMBOLS_AT as u64,
                symbols as u64,
                3,
                1,
                8,
                SYMBOL as u64,
            ],
            [15, 3, 0, 0, at, names as u64, 0, 0, 1, 0],
            [23, 3, 0, 0, shown, SECTION_NAMES.len() as u64, 0, 0, 1, 0],
        ];
        for (i, r) in rows.iter().enumerate() {
            let mut to = HEADER + i * SECTION;
            for (k, &n) in r.iter().enumerate() {
                let bytes = n.to_le_bytes();
                let width = if matches!(k, 0 | 1 | 6 | 7) { 4 } else { 8 };
                put(&mut self.file, to, &bytes[..width]);
                to += width;
            }
        }
    }
    pub fn add(&mut self, at: u64, bytes: usize, name: &str) {
        let full = self.count + 1 > self.room
            || self.names_at() + self.names + name.len() + 1 > self.file.len();
        self.change(|s| {
            if full {
                let (room, names) = (s.count * 2, (s.names + name.len() + 1) * 2);
                s.grow(room.max(FIRST), names.max(FIRST * NAME));
            }
            let (to, names) = (SYMBOLS_AT + s.count * SYMBOL, s.names_at() + s.names);
            put(&mut s.file, names, name.as_bytes());
            let index = s.names as u32;
            put(&mut s.file, to, &index.to_le_bytes());
            // A global function in section 1.
            put(&mut s.file, to + 4, &[0x12, 0, 1, 0]);
            put(&mut s.file, to + 8, &at.to_le_bytes());
            put(&mut s.file, to + 16, &(bytes as u64).to_le_bytes());
            s.names += name.len() + 1;
            s.count += 1;
            s.sections();
        });
    }
    pub fn remove(&mut self, at: u64) {
        let value = |f: &[u8], i: usize| f[SYMBOLS_AT + i * SYMBOL + 8..][..8] == at.to_le_bytes();
        let Some(i) = (1..self.count).rev().find(|&i| value(&self.file, i)) else {
            return;
        };
        self.change(|s| {
            // The last symbol takes its place.
            let last = SYMBOLS_AT + (s.count - 1) * SYMBOL;
            s.file
                .copy_within(last..last + SYMBOL, SYMBOLS_AT + i * SYMBOL);
            s.count -= 1;
            s.gone += NAME;
            s.sections();
            if s.gone * 2 > s.names + FIRST * NAME {
                let (room, names) = (s.room, s.file.len() - s.names_at());
                s.grow(room, names);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns addresses and names, as a reader of the file finds them.
    fn read(f: &[u8]) -> Vec<(u64, u64, String)> {
        let long =
            |at: usize| u64::from_le_bytes(f[at..at + 8].try_into().expect("eight")) as usize;
        let word = |at: usize| u32::from_le_bytes(f[at..at + 4].try_into().expect("four")) as usize;
        assert_eq!(&f[..4], b"\x7fELF");
        let section = |i: usize| long(40) + i * SECTION;
        let (symbols, bytes) = (long(section(2) + 24), long(section(2) + 32));
        let (names, limit) = (long(section(3) + 24), long(section(3) + 32));
        let of = |s: usize| {
            let name = word(s);
            assert!(name < limit);
            let text = f[names + name..names + limit].split(|&b| b == 0).next();
            let text = String::from_utf8(text.expect("a part").to_vec()).expect("text");
            (long(s + 8) as u64, long(s + 16) as u64, text)
        };
        (1..bytes / SYMBOL)
            .map(|i| of(symbols + i * SYMBOL))
            .collect()
    }

    #[test]
    fn all_names_are_found_and_none_that_have_gone() {
        let mut s = Symbols::new(0x1000..0x20_0000);
        let mut want: Vec<(u64, u64, String)> = Vec::new();
        for i in 0..1000u64 {
            let (at, name) = (0x1000 + i * 64, format!("$module_{i}:function/{}", i % 9));
            s.add(at, 48, &name);
            want.push((at, 48, name));
            if i % 3 == 2 {
                // Remove one of the present symbols.
                let k = (i * 7) as usize % want.len();
                s.remove(want[k].0);
                want.remove(k);
            }
            if i % 97 == 0 || i == 999 {
                let mut found = read(&s.file);
                found.sort();
                want.sort();
                assert_eq!(found, want);
            }
        }
        // Removing an unknown one changes nothing.
        s.remove(1);
        assert_eq!(read(&s.file).len(), want.len());
        // SAFETY: the one entry of the list.
        let e = unsafe { &*(__jit_debug_descriptor.first.load(Ordering::Acquire) as *const Entry) };
        assert!(e.next.is_null() && e.bytes > 64);
    }
}
