//! Checksums of I/O lists: CRC-32, Adler-32 and MD5.
//!
//! MD5 is implemented here because the state between `md5_update/2` calls is a term that programs
//! keep: 4 words, the count of bytes, and the unfinished block of 64 bytes, 88 bytes in all as in
//! stock.

use super::iolist::{IoWalk, Piece};
use super::reschedule::{self, LongCall, MANY, dirty_if, is_larger};
use crate::bifs;
use crate::cx::{BifResult, Env, Fail};
use crate::long;
use purlin_term::{Alloc, Term};
use std::sync::OnceLock;

/// Bytes after which a long sum checks whether to continue.
const LONG_BYTES: usize = 1 << 20;
/// Maximum number of parts of an I/O list, of a cache line each, whose MD5 is computed where the
/// native is called: a few milliseconds.
const MOST_MD5: usize = MANY / 8;

/// Calls `f` with the bytes of an I/O list, piece by piece, including empty binaries, and counts
/// the work. Returns the rest if the native should continue with it later.
fn each(cx: &mut Env, data: Term, mut f: impl FnMut(&[u8])) -> Result<Option<Term>, Fail> {
    let mut w = IoWalk::new(data);
    let mut buf = Vec::with_capacity(1024);
    let mut n = 0;
    while let Some(p) = w.next_piece().map_err(|_| Fail::Badarg)? {
        match p {
            Piece::Byte(b) => {
                buf.push(b);
                if buf.len() < 1024 {
                    continue;
                }
                n += buf.len();
                f(&buf);
                buf.clear();
                reschedule::go_on()?;
            }
            Piece::Bits(t, b) => {
                if !buf.is_empty() {
                    f(&buf);
                }
                n += buf.len() + b.bit_len / 8;
                buf.clear();
                let bytes = b.to_bytes().ok_or(Fail::Badarg)?;
                // An empty one counts too: the sum is reduced to its range.
                if bytes.is_empty() {
                    f(&bytes);
                }
                let mut done = 0;
                for part in bytes.chunks(LONG_BYTES) {
                    f(part);
                    reschedule::go_on()?;
                    done += part.len();
                    if done < bytes.len() && reschedule::is_asked() {
                        let left = cx.sub_binary(t, done * 8, b.bit_len - done * 8);
                        let rest = w.rest(cx);
                        return Ok(Some(cx.cons(left, rest)));
                    }
                }
            }
        }
        // Nothing is in `buf` here.
        if reschedule::is_asked() {
            return Ok(Some(w.rest(cx)));
        }
    }
    if !buf.is_empty() {
        f(&buf);
    }
    cx.bump((n + buf.len()) / 512 + 1);
    Ok(None)
}

fn u32_arg(t: Term) -> Result<u32, Fail> {
    t.as_small()
        .and_then(|n| u32::try_from(n).ok())
        .ok_or(Fail::Badarg)
}

fn crc32(start: u32, bytes: &[u8]) -> u32 {
    bytes.chunks(1 << 30).fold(start, |c, b| {
        // SAFETY: a slice with its length.
        unsafe { libz_sys::crc32(c as _, b.as_ptr(), b.len() as libz_sys::uInt) as u32 }
    })
}
fn adler32(start: u32, bytes: &[u8]) -> u32 {
    if bytes.is_empty() {
        // Two sums to this modulus, even if the given ones are beyond it.
        const MODULUS: u32 = 65521;
        return (((start >> 16) % MODULUS) << 16) | ((start & 0xFFFF) % MODULUS);
    }
    bytes.chunks(1 << 30).fold(start, |c, b| {
        // SAFETY: a slice with its length.
        unsafe { libz_sys::adler32(c as _, b.as_ptr(), b.len() as libz_sys::uInt) as u32 }
    })
}

fn sum(cx: &mut Env, start: u32, data: Term, f: fn(u32, &[u8]) -> u32) -> BifResult {
    let (mut c, mut data) = (start, data);
    if let Some((sum, rest)) = resumed()? {
        (c, data) = (u32_arg(sum)?, rest);
    }
    let rest = each(cx, data, |b| c = f(c, b))?;
    let c = Term::small(c as i64);
    match rest {
        None => Ok(c),
        Some(rest) => Err(pause(cx, c, rest)),
    }
}

/// Leaves a native that is to continue with the sum so far and the rest of the data.
fn pause(cx: &mut Env, sum: Term, rest: Term) -> Fail {
    let state = cx.tuple(&[sum, rest]);
    reschedule::pause(cx, state)
}

/// Returns what [`pause`] has left: the sum so far, and the rest of the data.
fn resumed() -> Result<Option<(Term, Term)>, Fail> {
    match reschedule::resumed() {
        None => Ok(None),
        Some(state) => match state.as_tuple() {
            Some(&[sum, rest]) => Ok(Some((sum, rest))),
            _ => Err(Fail::Badarg),
        },
    }
}

/// Moves the call to a dirty thread if `data` has more than `most` parts.
fn leave_if_long(cx: &mut Env, call: LongCall<'_>, data: Term, most: usize) -> Result<(), Fail> {
    dirty_if(cx, call, || is_larger(data, most))
}

fn crc32_1(cx: &mut Env, [data]: [Term; 1]) -> BifResult {
    leave_if_long(cx, long!("erlang":"crc32"/1).call(&[data]), data, MANY)?;
    sum(cx, 0, data, crc32)
}
fn crc32_2(cx: &mut Env, [old, data]: [Term; 2]) -> BifResult {
    leave_if_long(cx, long!("erlang":"crc32"/2).call(&[old, data]), data, MANY)?;
    sum(cx, u32_arg(old)?, data, crc32)
}
fn adler32_1(cx: &mut Env, [data]: [Term; 1]) -> BifResult {
    leave_if_long(cx, long!("erlang":"adler32"/1).call(&[data]), data, MANY)?;
    sum(cx, 1, data, adler32)
}
fn adler32_2(cx: &mut Env, [old, data]: [Term; 2]) -> BifResult {
    leave_if_long(
        cx,
        long!("erlang":"adler32"/2).call(&[old, data]),
        data,
        MANY,
    )?;
    sum(cx, u32_arg(old)?, data, adler32)
}
fn crc32_combine_3(_: &mut Env, [a, b, n]: [Term; 3]) -> BifResult {
    let (a, b, n) = (u32_arg(a)?, u32_arg(b)?, u32_arg(n)?);
    // SAFETY: plain numbers.
    let c = unsafe { libz_sys::crc32_combine(a as _, b as _, n as _) };
    Ok(Term::small(c as u32 as i64))
}
fn adler32_combine_3(_: &mut Env, [a, b, n]: [Term; 3]) -> BifResult {
    let (a, b, n) = (u32_arg(a)?, u32_arg(b)?, u32_arg(n)?);
    if n == 0 {
        return Ok(Term::small(i64::from(a)));
    }
    // SAFETY: plain numbers.
    let c = unsafe { libz_sys::adler32_combine(a as _, b as _, n as _) };
    Ok(Term::small(c as u32 as i64))
}

/// State of an MD5 computation (RFC 1321).
struct Md5 {
    state: [u32; 4],
    /// Number of bytes so far.
    count: u64,
    block: [u8; 64],
}

/// Size of a serialised [`Md5`] in bytes.
const MD5_STATE: usize = 88;

impl Md5 {
    fn new() -> Md5 {
        Md5 {
            state: [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476],
            count: 0,
            block: [0; 64],
        }
    }
    fn to_bytes(&self) -> [u8; MD5_STATE] {
        let mut b = [0; MD5_STATE];
        for (i, w) in self.state.iter().enumerate() {
            b[4 * i..4 * i + 4].copy_from_slice(&w.to_le_bytes());
        }
        b[16..24].copy_from_slice(&self.count.to_le_bytes());
        b[24..].copy_from_slice(&self.block);
        b
    }
    fn from_bytes(b: &[u8]) -> Option<Md5> {
        let b: &[u8; MD5_STATE] = b.try_into().ok()?;
        let mut m = Md5::new();
        for (i, w) in m.state.iter_mut().enumerate() {
            *w = u32::from_le_bytes([b[4 * i], b[4 * i + 1], b[4 * i + 2], b[4 * i + 3]]);
        }
        m.count = b[16..24].iter().rev().fold(0, |n, &x| n << 8 | x as u64);
        m.block.copy_from_slice(&b[24..]);
        Some(m)
    }
    fn update(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let at = (self.count % 64) as usize;
            let n = data.len().min(64 - at);
            self.block[at..at + n].copy_from_slice(&data[..n]);
            self.count = self.count.wrapping_add(n as u64);
            data = &data[n..];
            if at + n == 64 {
                self.compress();
            }
        }
    }
    fn compress(&mut self) {
        const SHIFT: [[u32; 4]; 4] = [
            [7, 12, 17, 22],
            [5, 9, 14, 20],
            [4, 11, 16, 23],
            [6, 10, 15, 21],
        ];
        /// The integer part of `2^32 * abs(sin(i + 1))`.
        static K: OnceLock<[u32; 64]> = OnceLock::new();
        let k = K.get_or_init(|| {
            std::array::from_fn(|i| (((i + 1) as f64).sin().abs() * 4_294_967_296.0) as u32)
        });
        let word = |i: usize| {
            let b = &self.block[4 * i..4 * i + 4];
            u32::from_le_bytes([b[0], b[1], b[2], b[3]])
        };
        let [mut a, mut b, mut c, mut d] = self.state;
        for i in 0..64 {
            let (f, g) = match i / 16 {
                0 => (b & c | !b & d, i),
                1 => (d & b | !d & c, (5 * i + 1) % 16),
                2 => (b ^ c ^ d, (3 * i + 5) % 16),
                _ => (c ^ (b | !d), 7 * i % 16),
            };
            let x = a
                .wrapping_add(f)
                .wrapping_add(k[i])
                .wrapping_add(word(g))
                .rotate_left(SHIFT[i / 16][i % 4]);
            (a, d, c, b) = (d, c, b, b.wrapping_add(x));
        }
        for (s, v) in self.state.iter_mut().zip([a, b, c, d]) {
            *s = s.wrapping_add(v);
        }
    }
    fn finish(mut self) -> [u8; 16] {
        let bits = self.count.wrapping_mul(8);
        self.update(&[0x80]);
        while self.count % 64 != 56 {
            self.update(&[0]);
        }
        self.update(&bits.to_le_bytes());
        let mut out = [0; 16];
        for (i, w) in self.state.iter().enumerate() {
            out[4 * i..4 * i + 4].copy_from_slice(&w.to_le_bytes());
        }
        out
    }
}

fn md5_1(cx: &mut Env, [data]: [Term; 1]) -> BifResult {
    leave_if_long(cx, long!("erlang":"md5"/1).call(&[data]), data, MOST_MD5)?;
    let m = md5_of(cx, Md5::new(), data)?;
    Ok(cx.binary(&m.finish()))
}
/// Returns the state after `data`. Fails if the native is to continue later.
fn md5_of(cx: &mut Env, from: Md5, data: Term) -> Result<Md5, Fail> {
    let (mut m, mut data) = (from, data);
    if let Some((state, rest)) = resumed()? {
        (m, data) = (md5_context(state)?, rest);
    }
    let Some(rest) = each(cx, data, |b| m.update(b))? else {
        return Ok(m);
    };
    let state = cx.binary(&m.to_bytes());
    Err(pause(cx, state, rest))
}
fn md5_init_0(cx: &mut Env, []: [Term; 0]) -> BifResult {
    Ok(cx.binary(&Md5::new().to_bytes()))
}
fn md5_context(t: Term) -> Result<Md5, Fail> {
    t.as_binary()
        .and_then(|b| Md5::from_bytes(&b))
        .ok_or(Fail::Badarg)
}
fn md5_update_2(cx: &mut Env, [state, data]: [Term; 2]) -> BifResult {
    let m = md5_context(state)?;
    leave_if_long(
        cx,
        long!("erlang":"md5_update"/2).call(&[state, data]),
        data,
        MOST_MD5,
    )?;
    let m = md5_of(cx, m, data)?;
    Ok(cx.binary(&m.to_bytes()))
}
fn md5_final_1(cx: &mut Env, [state]: [Term; 1]) -> BifResult {
    let m = md5_context(state)?;
    Ok(cx.binary(&m.finish()))
}

bifs! {
    Plain "erlang":"crc32"/1 = crc32_1 [long];
    Plain "erlang":"crc32"/2 = crc32_2 [long];
    Plain "erlang":"crc32_combine"/3 = crc32_combine_3;
    Plain "erlang":"adler32"/1 = adler32_1 [long];
    Plain "erlang":"adler32"/2 = adler32_2 [long];
    Plain "erlang":"adler32_combine"/3 = adler32_combine_3;
    Plain "erlang":"md5"/1 = md5_1 [long];
    Plain "erlang":"md5_init"/0 = md5_init_0;
    Plain "erlang":"md5_update"/2 = md5_update_2 [long];
    Plain "erlang":"md5_final"/1 = md5_final_1;
}

/// Returns the MD5 digest of `bytes`.
#[cfg(test)]
fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut m = Md5::new();
    m.update(bytes);
    m.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn md5_of_known_texts_in_any_pieces() {
        let hex = |d: [u8; 16]| d.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(hex(md5(b"")), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex(md5(b"abc")), "900150983cd24fb0d6963f7d28e17f72");
        let data = [7u8; 300];
        for cut in [0, 1, 55, 56, 63, 64, 65, 299] {
            let mut m = Md5::new();
            m.update(&data[..cut]);
            let mut m = Md5::from_bytes(&m.to_bytes()).expect("a state");
            m.update(&data[cut..]);
            assert_eq!(m.finish(), md5(&data));
        }
    }
}
