//! `iolist_to_iovec/1`: an I/O list as the parts that are written.

use super::reschedule::{BITS_PER_PART, MANY, dirty_if};
use crate::cx::{BifResult, Fail};
use crate::{bifs, code, lazy_atoms};
use purlin_native::cx::Env;
use purlin_native::long;
use purlin_term::iolist::*;
use purlin_term::layout::Bits;
use purlin_term::release::{self, LARGE_PARTS_ALONE};
use purlin_term::{Alloc, NIL, Term};

/// Number of list elements that count as one reduction.
const STEPS_PER_REDUCTION: usize = 256;

/// The room beyond which `iolist_to_iovec/1` starts another binary, as in stock: the partition is
/// part of the result.
const STOCK_ROOM: usize = 32 * SMALL_LIMIT;

/// Bytes that become one binary of a vector.
struct Merged {
    bytes: Vec<u8>,
    limit: usize,
    /// The room that stock would have: it doubles as it grows, up to [`STOCK_ROOM`].
    room: usize,
}

impl Merged {
    fn new() -> Merged {
        Merged {
            bytes: Vec::new(),
            limit: small_limit(),
            room: 0,
        }
    }
    fn reserve(&mut self, cx: &mut Env, n: usize, out: &mut Vec<Term>) {
        let all = self.bytes.len() + n;
        if all <= self.room {
            return;
        }
        if self.room >= STOCK_ROOM {
            self.flush(cx, out);
        }
        self.room = match self.room {
            0 => n.max(self.limit),
            r => all.max(2 * r),
        };
    }
    fn flush(&mut self, cx: &mut Env, out: &mut Vec<Term>) {
        if !self.bytes.is_empty() {
            out.push(cx.binary(&self.bytes));
            self.bytes.clear();
        }
        self.room = 0;
    }
}

lazy_atoms! {
    prim_file = "prim_file";
}

fn iolist_to_iovec_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    if let Some(b) = t.as_bits() {
        return match b.bit_len {
            0 => Ok(NIL),
            n if n & 7 == 0 => Ok(cx.list(&[t])),
            _ => Err(Fail::Badarg),
        };
    }
    // `prim_file` hands the result to a native that gathers any list batch by batch and refuses
    // invalid ones. Gathering here first would cost memory and a copy of everything.
    if t.is_list_ptr() && code::module_at(cx.bif_pc).is_some_and(|m| m.name == prim_file()) {
        return Ok(t);
    }
    if !cx.dirty {
        let found = measure(IoWalk::new(t), MANY).map_err(|BadIoList| Fail::Badarg)?;
        let parts = |(bits, pieces): (u128, usize)| pieces as u128 + bits / BITS_PER_PART as u128;
        let most = MANY as u128;
        let many = found.map(parts).is_none_or(|n| n > most);
        dirty_if(cx, long!("erlang":"iolist_to_iovec"/1).call(&[t]), || many)?;
    }
    if release::has(LARGE_PARTS_ALONE) {
        return parted(cx, t);
    }
    let mut out: Vec<Term> = Vec::new();
    let mut merged = Merged::new();
    let limit = merged.limit;
    let mut w = IoWalk::new(t);
    let mut steps = 0;
    while let Some(p) = w.next_piece().map_err(|BadIoList| Fail::Badarg)? {
        steps += 1;
        match p {
            Piece::Byte(b) => {
                merged.reserve(cx, 1, &mut out);
                merged.bytes.push(b);
            }
            Piece::Bits(_, b) if b.bit_len == 0 => {}
            Piece::Bits(t, b) => {
                let (n, before) = (b.bit_len / 8, merged.bytes.len());
                if n >= limit && (before == 0 || before >= limit) {
                    merged.flush(cx, &mut out);
                    out.push(t);
                    continue;
                }
                // Too few bytes to stand alone are filled up from the part behind them, if enough
                // of that part is left.
                let taken = if n < limit || n + before < 2 * limit {
                    n
                } else {
                    limit - before
                };
                merged.reserve(cx, taken, &mut out);
                match b.as_bytes() {
                    Some(s) => merged.bytes.extend_from_slice(&s[..taken]),
                    None => {
                        let head = Bits {
                            bit_len: taken * 8,
                            ..b
                        };
                        merged.bytes.extend_from_slice(&head.shifted());
                    }
                }
                if taken < n {
                    merged.flush(cx, &mut out);
                    out.push(cx.part(t, taken, n - taken));
                }
            }
        }
    }
    merged.flush(cx, &mut out);
    cx.bump(steps / STEPS_PER_REDUCTION + 1);
    Ok(cx.list(&out))
}

/// The parts of a list when counted binaries stay separate and everything between two of them is
/// joined.
fn parted(cx: &mut Env, t: Term) -> BifResult {
    /// Maximum size in bytes of a part that is joined with others.
    const JOINED: usize = 512;
    // A list of one binary is its own vector.
    if let Some((head, NIL)) = t.as_cons()
        && let Some(b) = head.as_bits()
    {
        return match b.bit_len {
            0 => Ok(NIL),
            n if n & 7 == 0 => Ok(t),
            _ => Err(Fail::Badarg),
        };
    }
    let mut out: Vec<Term> = Vec::new();
    let mut joined: Vec<u8> = Vec::new();
    let flush = |cx: &mut Env, joined: &mut Vec<u8>, out: &mut Vec<Term>| {
        if !joined.is_empty() {
            out.push(cx.binary(joined));
            joined.clear();
        }
    };
    let mut w = IoWalk::new(t);
    let mut steps = 0;
    loop {
        // A binary that is not joined and so stops the walk.
        let mut alone = None;
        let stop = w.each(|p| {
            steps += 1;
            match p {
                Plain::Byte(b) => joined.push(b),
                Plain::Binary(t, s) if s.len() > JOINED => alone = Some(t),
                Plain::Binary(_, s) => append(&mut joined, s),
            }
            alone.is_none()
        });
        match stop.map_err(|BadIoList| Fail::Badarg)? {
            Stop::End => break,
            Stop::Early => {
                flush(cx, &mut joined, &mut out);
                out.extend(alone);
            }
            // A bitstring that does not begin at a byte is copied, however large.
            Stop::At(t) => {
                let whole = t.as_bits().filter(|b| b.bit_len & 7 == 0);
                joined.extend_from_slice(&whole.ok_or(Fail::Badarg)?.shifted());
                steps += 1;
            }
        }
    }
    flush(cx, &mut joined, &mut out);
    cx.bump(steps / STEPS_PER_REDUCTION + 1);
    Ok(cx.list(&out))
}

bifs! {
    Plain "erlang":"iolist_to_iovec"/1 = iolist_to_iovec_1 [long];
}
