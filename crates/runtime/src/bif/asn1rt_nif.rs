//! Natives of module `asn1rt_nif`: tags, lengths and values of BER (ITU-T X.690) apart and together, and the bit stream of
//! complete PER (X.691) from the instructions that compiled codecs write.
//!
//! Nesting is followed on stacks of their own, and input that ends early is an error value.

use super::iolist;
use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, lazy_atoms};
use purlin_term::arith::to_u64;
use purlin_term::{Alloc, NIL, Term};

lazy_atoms! {
    invalid_tag = "invalid_tag";
    invalid_length = "invalid_length";
    invalid_value = "invalid_value";
    unknown = "unknown";
}

/// Levels of values within values; stock gives up when its native stack has grown by as much as these take.
const MAX_DEPTH: usize = 585;

/// Why bytes are no BER.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bad {
    Tag,
    Length,
    Value,
    Depth,
}

/// A constructed value whose parts are being read.
struct Open {
    tag: Term,
    /// Where its first part stands among those read.
    first: usize,
    /// The end of what its parts may take.
    limit: usize,
    /// Ends with two zero bytes, not at `limit`.
    indefinite: bool,
}

/// What stands behind a tag.
enum Content {
    Primitive(usize),
    Constructed(usize),
    Indefinite,
}

/// Reads values from the front of `bytes`; `at` is where an error is reported.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// The number of a tag, its class in bits 16 and 17, and whether it is of a constructed value.
    fn tag(&mut self, limit: usize) -> Result<(i64, bool), Bad> {
        if self.at + 2 > limit {
            return Err(Bad::Value);
        }
        let first = self.bytes[self.at];
        let constructed = first & 0x20 != 0;
        let mut tag = i64::from(first & 0xc0) << 10;
        if first & 0x1f != 0x1f {
            tag |= i64::from(first & 0x1f);
        } else {
            if self.at + 3 > limit {
                return Err(Bad::Value);
            }
            self.at += 1;
            let mut b = self.bytes[self.at];
            if b >= 0x80 {
                tag |= i64::from(b & 0x7f) << 7;
                self.at += 1;
                b = self.bytes[self.at];
            }
            // No more than two bytes of seven bits.
            if b >= 0x80 {
                return Err(Bad::Tag);
            }
            tag |= i64::from(b);
        }
        self.at += 1;
        match self.at < limit {
            true => Ok((tag, constructed)),
            false => Err(Bad::Tag),
        }
    }

    fn content(&mut self, constructed: bool, limit: usize) -> Result<Content, Bad> {
        let first = self.bytes[self.at];
        if first == 0x80 {
            self.at += 1;
            return match self.at + 1 < limit && constructed {
                true => Ok(Content::Indefinite),
                false => Err(Bad::Length),
            };
        }
        let mut length = usize::from(first);
        if first > 0x80 {
            let count = usize::from(first & 0x7f);
            if count > limit - (self.at + 1) {
                return Err(Bad::Length);
            }
            length = 0;
            for _ in 0..count {
                self.at += 1;
                // A length has 32 bits.
                if length >= 1 << 24 {
                    return Err(Bad::Length);
                }
                length = length << 8 | usize::from(self.bytes[self.at]);
            }
        }
        if length > limit - (self.at + 1) {
            return Err(Bad::Value);
        }
        self.at += 1;
        Ok(match constructed {
            true => Content::Constructed(self.at + length),
            false => Content::Primitive(length),
        })
    }

    /// The first value, as `{Tag, Binary}` or `{Tag, [Value]}`.
    fn value(&mut self, cx: &mut Cx) -> Result<Term, Bad> {
        let mut open: Vec<Open> = Vec::new();
        let mut done: Vec<Term> = Vec::new();
        let mut limit = self.bytes.len();
        loop {
            let (tag, constructed) = self.tag(limit)?;
            let tag = Term::small(tag);
            if open.len() >= MAX_DEPTH {
                return Err(Bad::Depth);
            }
            match self.content(constructed, limit)? {
                Content::Primitive(length) => {
                    let value = cx.binary(&self.bytes[self.at..self.at + length]);
                    self.at += length;
                    let value = cx.tuple(&[tag, value]);
                    done.push(value);
                }
                content => {
                    let indefinite = matches!(content, Content::Indefinite);
                    if let Content::Constructed(end) = content {
                        limit = end;
                    }
                    open.push(Open {
                        tag,
                        first: done.len(),
                        limit,
                        indefinite,
                    });
                }
            }
            // Values that end here.
            loop {
                let Some(last) = open.last() else {
                    return done.pop().ok_or(Bad::Value);
                };
                limit = last.limit;
                if last.indefinite {
                    if self.at + 1 >= limit {
                        return Err(Bad::Length);
                    }
                    if self.bytes[self.at..self.at + 2] != [0, 0] {
                        break;
                    }
                    self.at += 2;
                } else if self.at < limit {
                    break;
                }
                let list = cx.list(&done[last.first..]);
                let value = cx.tuple(&[last.tag, list]);
                done.truncate(last.first);
                done.push(value);
                open.pop();
            }
        }
    }
}

fn decode_ber_tlv_1(cx: &mut Cx, [data]: [Term; 1]) -> BifResult {
    let bytes = super::crypto::bytes(cx, data).ok_or(Fail::Badarg)?;
    let mut reader = Reader {
        bytes: &bytes,
        at: 0,
    };
    match reader.value(cx) {
        Ok(value) => {
            let rest = cx.binary(&bytes[reader.at..]);
            Ok(cx.tuple(&[value, rest]))
        }
        Err(bad) => {
            let why = match bad {
                Bad::Tag => invalid_tag(),
                Bad::Length => invalid_length(),
                Bad::Value => invalid_value(),
                Bad::Depth => unknown(),
            };
            let place = Term::small(reader.at as i64);
            let e = cx.tuple(&[why, place]);
            Ok(cx.err(e))
        }
    }
}

/// What is left to be written, last first.
enum Step {
    Value(Term),
    /// Length and tag of the constructed value whose parts begin there.
    Close(usize, Term),
}

/// Length and tag in front of a value, from the last byte to the first.
fn put_head(out: &mut Vec<u8>, length: usize, tag: Term, constructed: u8) -> Option<()> {
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let used = length.to_be_bytes().iter().skip_while(|&&b| b == 0).count();
        out.extend(&length.to_le_bytes()[..used]);
        out.push(0x80 | used as u8);
    }
    let tag = u32::try_from(to_u64(tag)?).ok()?;
    let class = constructed | ((tag & 0x30000) >> 10) as u8;
    let mut number = tag & 0xffff;
    if number <= 30 {
        out.push(class | number as u8);
        return Some(());
    }
    out.push(number as u8 & 0x7f);
    number >>= 7;
    while number > 0 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(class | 0x1f);
    Some(())
}

/// The bytes of `{Tag, Binary | [Value]}`, last byte first, since lengths stand before what they count.
fn encoded(t: Term) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut steps = vec![Step::Value(t)];
    while let Some(step) = steps.pop() {
        let t = match step {
            Step::Close(from, tag) => {
                let length = out.len() - from;
                put_head(&mut out, length, tag, 0x20)?;
                continue;
            }
            Step::Value(t) => t,
        };
        let [tag, value, ..] = *t.as_tuple()? else {
            return None;
        };
        if value == NIL || value.as_cons().is_some() {
            steps.push(Step::Close(out.len(), tag));
            let parts = value.list_to_vec()?;
            steps.extend(parts.into_iter().map(Step::Value));
        } else {
            let b = value.as_binary()?;
            out.extend(b.iter().rev());
            put_head(&mut out, b.len(), tag, 0)?;
        }
    }
    out.reverse();
    Some(out)
}

fn encode_ber_tlv_1(cx: &mut Cx, [value]: [Term; 1]) -> BifResult {
    match encoded(value) {
        Some(b) => {
            cx.bump(b.len() / 32);
            Ok(cx.binary(&b))
        }
        None => Ok(cx.err(Term::small(-1))),
    }
}

/// Bits that are put one behind the other. The last byte of `out` has `free` bits left, 1 to 8.
struct Bits {
    out: Vec<u8>,
    free: u32,
}

impl Bits {
    fn last(&mut self) -> &mut u8 {
        let n = self.out.len() - 1;
        &mut self.out[n]
    }

    fn next(&mut self) {
        self.out.push(0);
        self.free = 8;
    }

    fn align(&mut self) {
        if self.free != 8 {
            self.next();
        }
    }

    fn bit(&mut self, one: bool) {
        let free = self.free;
        *self.last() |= u8::from(one) << (free - 1);
        match free {
            1 => self.next(),
            _ => self.free -= 1,
        }
    }

    /// The low `count` bits, at most 8, of a byte that has no others.
    fn low(&mut self, count: u32, value: u8) {
        let free = self.free;
        if count < free {
            *self.last() |= (u32::from(value) << (free - count)) as u8;
            self.free -= count;
        } else {
            *self.last() |= value >> (count - free);
            self.next();
            let left = count - free;
            *self.last() |= (u32::from(value) << (8 - left)) as u8;
            self.free = 8 - left;
        }
    }

    /// Goes on by the high `count` bits, at most 8, of a byte; others that fit into the byte begun go with them.
    fn high(&mut self, count: u32, value: u8) {
        let free = self.free;
        *self.last() |= value >> (8 - free);
        if count < free {
            self.free -= count;
        } else {
            self.next();
            let left = count - free;
            if left > 0 {
                *self.last() = (u32::from(value) << free) as u8;
            }
            self.free = 8 - left;
        }
    }

    fn octets(&mut self, bytes: &[u8]) {
        for &b in bytes {
            let free = self.free;
            *self.last() |= b >> (8 - free);
            self.out.push((u32::from(b) << free) as u8);
        }
    }

    fn zeros(&mut self, count: usize) {
        for _ in 0..count {
            self.bit(false);
        }
    }
}

/// The stream of instructions for [`complete`].
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes that are still to be accounted for: what an instruction says it takes, which may be more than it reads.
    left: usize,
}

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<usize> {
        self.take(1).map(|b| usize::from(b[0]))
    }

    fn number(&mut self, size: usize) -> Option<usize> {
        Some(
            self.take(size)?
                .iter()
                .fold(0, |n, &b| n << 8 | usize::from(b)),
        )
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let b = self.bytes.get(self.at..self.at + count)?;
        self.at += count;
        Some(b)
    }

    fn account(&mut self, count: usize) -> Option<()> {
        self.left = self.left.checked_sub(count)?;
        Some(())
    }
}

/// The bits that instructions give, up to a whole byte; None if an instruction is unknown or not all there.
fn complete(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bits = Bits {
        out: vec![0],
        free: 8,
    };
    let mut input = Input {
        bytes,
        at: 0,
        left: bytes.len(),
    };
    while input.left > 0 {
        input.left -= 1;
        let instruction = input.byte()?;
        match instruction {
            0 | 1 => bits.bit(instruction == 1),
            2 => bits.align(),
            // Count of bits, byte of which the low ones are meant.
            10 => {
                let count = input.byte()?;
                let value = input.byte()? as u8;
                input.account(2)?;
                if count > 8 {
                    return None;
                }
                bits.low(count as u32, value);
            }
            // Count in one byte or two, bytes that are aligned.
            20 | 21 => {
                let size = instruction - 19;
                let count = input.number(size)?;
                input.account(size + count)?;
                bits.align();
                bits.octets(input.take(count)?);
            }
            // Unused bits of the last byte, count in one byte or two, bytes.
            30 | 31 => {
                let unused = input.byte()?;
                let size = instruction - 29;
                let count = input.number(size)?;
                input.account(1 + size + count)?;
                if unused == 0 {
                    bits.octets(input.take(count)?);
                } else if unused <= 8 {
                    bits.octets(input.take(count.saturating_sub(1))?);
                    let last = input.byte()? as u8;
                    bits.high(8 - unused as u32, last);
                } else {
                    return None;
                }
            }
            // Bits wanted, count of bytes, each in one byte or two; each of the bytes is a bit.
            40..=43 => {
                let (wide, long) = ([1, 1, 2, 2], [1, 2, 1, 2]);
                let (a, b) = (wide[instruction - 40], long[instruction - 40]);
                let wanted = input.number(a)?;
                let count = input.number(b)?;
                input.account(a + b + count)?;
                for &bit in &input.take(count)?[..count.min(wanted)] {
                    match bit {
                        0 | 1 => bits.bit(bit == 1),
                        _ => return None,
                    }
                }
                bits.zeros(wanted.saturating_sub(count));
            }
            // The same of bytes whose bits are meant.
            45..=47 => {
                let (wide, long) = ([1, 2, 2], [1, 1, 2]);
                let (a, b) = (wide[instruction - 45], long[instruction - 45]);
                let wanted = input.number(a)?;
                let count = input.number(b)?;
                input.account(a + b + count)?;
                if wanted < count * 8 {
                    // Goes on behind the last byte of which a bit was wanted, wherever the count says that it ends.
                    bits.octets(input.take(wanted / 8)?);
                    let last = input.byte()? as u8;
                    bits.high(wanted as u32 % 8, last);
                } else {
                    bits.octets(input.take(count)?);
                    bits.zeros(wanted - count * 8);
                }
            }
            _ => return None,
        }
    }
    if bits.free == 8 && bits.out.len() > 1 {
        bits.out.pop();
    }
    Some(bits.out)
}

fn encode_per_complete_1(cx: &mut Cx, [data]: [Term; 1]) -> BifResult {
    let data = iolist::to_vec(data).map_err(|_| Fail::Badarg)?;
    cx.bump(data.len() / 32);
    if data.is_empty() {
        return Ok(cx.binary(&[]));
    }
    match complete(&data) {
        Some(b) => Ok(cx.binary(&b)),
        // The character `1`.
        None => Ok(cx.err(Term::small(0x31))),
    }
}

bifs! {
    Plain "asn1rt_nif":"decode_ber_tlv_raw"/1 = decode_ber_tlv_1;
    Plain "asn1rt_nif":"encode_ber_tlv"/1 = encode_ber_tlv_1;
    Plain "asn1rt_nif":"encode_per_complete"/1 = encode_per_complete_1;
}
