//! The assemblers, one for each processor, and what they have in common: labels, and finished code
//! without an address.

pub mod a64;
pub mod x64;

/// A place in the code that may be jumped to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(u32);

const UNBOUND: u32 = u32::MAX;

/// The labels of code under construction, by number.
#[derive(Default)]
struct Labels(Vec<u32>);

impl Labels {
    fn make(&mut self, offset: u32) -> Label {
        self.0.push(offset);
        Label(self.0.len() as u32 - 1)
    }
    fn bind(&mut self, l: Label, offset: u32) {
        debug_assert!(self.0[l.0 as usize] == UNBOUND);
        self.0[l.0 as usize] = offset;
    }
    /// Returns where a label is; `None` if it has no place yet.
    fn offset(&self, l: Label) -> Option<u32> {
        Some(self.0[l.0 as usize]).filter(|&o| o != UNBOUND)
    }
}

/// The field of an instruction that holds the distance to an address outside of the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    /// The four bytes there; counted from their end.
    Rel32,
    /// The lower 26 bits of the word there; counted in words from its start.
    Branch26,
}

/// A distance to an address outside of the code, which depends on where the code will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reloc {
    at: u32,
    field: Field,
    to: u64,
}

/// Finished code without an address.
pub struct Code {
    pub bytes: Vec<u8>,
    relocs: Vec<Reloc>,
    /// Words of eight bytes that hold the address of an offset.
    addresses: Vec<(u32, u32)>,
    /// Numbers of words that the code itself has pushed, from these offsets on; none before the
    /// first. For tools that walk the machine stack of x86-64; empty elsewhere.
    pub depths: Vec<(u32, u8)>,
}

impl Code {
    /// Returns the bytes for address `base`. `None`: a target is too far away.
    pub fn place(mut self, base: u64) -> Option<Vec<u8>> {
        for r in &self.relocs {
            let field = &mut self.bytes[r.at as usize..r.at as usize + 4];
            let d = r.to.wrapping_sub(base + u64::from(r.at)) as i64;
            match r.field {
                Field::Rel32 => {
                    let d = i32::try_from(d - 4).ok()?;
                    field.copy_from_slice(&d.to_le_bytes());
                }
                Field::Branch26 => {
                    let d = a64::words(d, 26)?;
                    field[3] &= 0xFC;
                    for (k, b) in d.to_le_bytes().into_iter().enumerate() {
                        field[k] |= b;
                    }
                }
            }
        }
        for &(at, to) in &self.addresses {
            let a = base + u64::from(to);
            self.bytes[at as usize..at as usize + 8].copy_from_slice(&a.to_le_bytes());
        }
        Some(self.bytes)
    }
}
