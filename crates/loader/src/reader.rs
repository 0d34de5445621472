//! A cursor over big-endian bytes, and the compact encoding of tagged numbers.
//!
//! In the compact encoding the low three bits of the first byte are the tag. If bit 3 is clear, the
//! value is the high four bits. If bit 3 is set and bit 4 clear, the value has eleven bits: the
//! high three from the first byte and the rest from the next. If both are set, a big-endian number
//! follows, in two's complement if the tag is that of an integer. Its length is the high three bits
//! plus 2 or, if those are all set, 9 plus a compact unsigned number.
//!
//! Every read checks the remaining length; `None` means that the data ends too early or is
//! malformed.

/// Tags of compact numbers.
pub mod tag {
    pub(crate) const U: u8 = 0;
    /// An integer.
    pub const I: u8 = 1;
    /// An atom.
    pub const A: u8 = 2;
    /// An X register.
    pub const X: u8 = 3;
    pub(crate) const Y: u8 = 4;
    pub(crate) const F: u8 = 5;
    /// Further kinds, by the rest of the byte: a list, a literal, a typed register.
    pub const Z: u8 = 7;
}

/// The value of a compact number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Compact<'a> {
    /// An unsigned number; for the integer tag, a number below 2048, which is never negative.
    Small(u32),
    /// The bytes of a longer number, most significant first.
    Long(&'a [u8]),
}

#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    data: &'a [u8],
    pos: usize,
}

impl<'a> Reader<'a> {
    /// Reads `data` from its beginning.
    pub fn new(data: &'a [u8]) -> Self {
        Reader { data, pos: 0 }
    }

    /// Returns the offset of the next byte from the start of the data.
    pub fn pos(&self) -> usize {
        self.pos
    }

    pub(crate) fn remaining(&self) -> usize {
        self.data.len() - self.pos
    }

    #[inline(always)]
    /// Reads a byte.
    pub fn u8(&mut self) -> Option<u8> {
        let byte = *self.data.get(self.pos)?;
        self.pos += 1;
        Some(byte)
    }

    /// Returns the next byte without reading it.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.data.get(self.pos).copied()
    }

    /// Skips bytes that `peek` has shown.
    #[inline(always)]
    pub fn skip(&mut self, count: usize) {
        self.pos += count;
    }

    /// Reads `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.pos.checked_add(count)?;
        let bytes = self.data.get(self.pos..end)?;
        self.pos = end;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// Reads two bytes, big-endian.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads four bytes, big-endian.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// As [`Reader::u32`], signed.
    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// Reads a count of items that take at least `item_bytes` each. Refuses a count that the
    /// remaining bytes can't hold, so it may be used to reserve memory.
    pub fn count(&mut self, item_bytes: usize) -> Option<usize> {
        let count = self.u32()? as usize;
        (count <= self.remaining() / item_bytes).then_some(count)
    }

    /// Reads tag and value of a compact number.
    #[inline(always)]
    pub(crate) fn compact(&mut self) -> Option<(u8, Compact<'a>)> {
        let first = self.u8()?;
        let tag = first & 7;
        if first & 0x08 == 0 {
            Some((tag, Compact::Small(u32::from(first >> 4))))
        } else if first & 0x10 == 0 {
            let low = self.u8()?;
            Some((
                tag,
                Compact::Small(u32::from(first >> 5) << 8 | u32::from(low)),
            ))
        } else {
            self.long(first).map(|bytes| (tag, Compact::Long(bytes)))
        }
    }

    #[cold]
    fn long(&mut self, first: u8) -> Option<&'a [u8]> {
        let count = match first >> 5 {
            7 => {
                // The length itself may not have a length: four bytes of number exceed any file.
                let first = self.u8()?;
                if first & 7 != tag::U {
                    return None;
                }
                let count = if first & 0x08 == 0 {
                    u32::from(first >> 4)
                } else if first & 0x10 == 0 {
                    u32::from(first >> 5) << 8 | u32::from(self.u8()?)
                } else {
                    let bytes = self.bytes(usize::from(first >> 5) + 2)?;
                    u32::try_from(unsigned(bytes)?).ok()?
                };
                count as usize + 9
            }
            short => usize::from(short) + 2,
        };
        self.bytes(count)
    }

    /// Reads a compact number with the unsigned tag that fits into 32 bits.
    #[inline(always)]
    pub(crate) fn compact_u32(&mut self) -> Option<u32> {
        match self.compact()? {
            (tag::U, value) => value.to_u32(),
            _ => None,
        }
    }
}

impl Compact<'_> {
    /// Returns the value as an unsigned number, if it fits.
    #[inline(always)]
    pub(crate) fn to_u32(self) -> Option<u32> {
        match self {
            Compact::Small(value) => Some(value),
            Compact::Long(bytes) => u32::try_from(unsigned(bytes)?).ok(),
        }
    }
}

/// A big-endian unsigned number; `None` if it takes more than 64 bits.
pub fn unsigned(bytes: &[u8]) -> Option<u64> {
    let zeros = bytes.iter().take_while(|&&b| b == 0).count();
    let bytes = &bytes[zeros..];
    (bytes.len() <= 8).then(|| bytes.iter().fold(0, |n, &b| n << 8 | u64::from(b)))
}

/// A big-endian two's complement number; `None` if it takes more than 64 bits.
pub fn signed(bytes: &[u8]) -> Option<i64> {
    let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
    let sign = if negative { 0xff } else { 0 };
    let redundant = bytes.iter().take_while(|&&b| b == sign).count();
    let bytes = &bytes[redundant..];
    let start = if negative { -1i64 } else { 0 };
    match bytes.len() {
        0..=7 => {}
        // All 64 bits are given: the top one must agree with the sign.
        8 if (bytes[0] & 0x80 != 0) == negative => {}
        _ => return None,
    }
    Some(bytes.iter().fold(start, |n, &b| n << 8 | i64::from(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_numbers_by_length() {
        let cases: [(&[u8], u8, Compact); 5] = [
            (&[0x53], tag::X, Compact::Small(5)),
            (&[0xe9, 0xff], tag::I, Compact::Small(0x7ff)),
            (&[0x19, 0x80, 0x00], tag::I, Compact::Long(&[0x80, 0x00])),
            (
                &[0xf9, 0x00, 1, 2, 3, 4, 5, 6, 7, 8, 9],
                tag::I,
                Compact::Long(&[1, 2, 3, 4, 5, 6, 7, 8, 9]),
            ),
            (&[0x38, 0, 1, 0], tag::U, Compact::Long(&[0, 1, 0])),
        ];
        for (bytes, tag, value) in cases {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.compact(), Some((tag, value)), "{bytes:?}");
            assert_eq!(reader.remaining(), 0);
            for cut in 0..bytes.len() {
                assert_eq!(Reader::new(&bytes[..cut]).compact(), None);
            }
        }
    }

    #[test]
    fn numbers_at_the_edges_of_64_bits() {
        assert_eq!(signed(&[0x80, 0, 0, 0, 0, 0, 0, 0]), Some(i64::MIN));
        assert_eq!(signed(&[0, 0x80, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(signed(&[0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(signed(&[0xff, 0xff, 0x80]), Some(-128));
        assert_eq!(signed(&[0xff; 12]), Some(-1));
        assert_eq!(signed(&[0, 0, 0x7f]), Some(127));
        assert_eq!(unsigned(&[0xff; 8]), Some(u64::MAX));
        assert_eq!(unsigned(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
