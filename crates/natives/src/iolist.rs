//! Natives that convert I/O lists to binaries and back.
//!
//! A large result is made on a dirty thread, in parts ([`build_in_parts`]): between two parts the
//! process may give others their turn.
//!
//! # Invariant
//! A block whose size depends on an argument is admitted before it is made ([`admit`]): it may be
//! beyond a limit of memory.

use super::native_state;
use super::reschedule::{self, BITS_PER_PART, Long, MANY, dirty_if};
use crate::bifs;
use crate::cx::{BifResult, Env, Fail};
use crate::long;
use purlin_term::bin::RcBin;
pub use purlin_term::iolist::*;
use purlin_term::layout::{Bits, HEAP_BIN_LIMIT, heap_bin_limit};
use purlin_term::pressure::{self, Judged};
use purlin_term::release::{self, COPIES_WHOLE_BYTES};
use purlin_term::{Alloc, NIL, Term, ending};
use std::sync::Mutex;

/// Bytes of work that count as one reduction.
const BYTES_PER_REDUCTION: usize = 256;
/// Elements of a list that count as one reduction.
const STEPS_PER_REDUCTION: usize = 32;
/// Bytes of a list cell.
const CELL_BYTES: usize = 16;
/// Number of parts that count as one reduction.
const PARTS_PER_REDUCTION: usize = 16;

/// Fails if the process may not make a block of `n` bytes.
pub fn admit(n: usize) -> Result<(), Fail> {
    match pressure::judge(n) {
        Judged::Fits => Ok(()),
        Judged::AfterCollection => Err(Fail::Again),
        Judged::Refused => Err(Fail::SystemLimit),
    }
}

/// Fails if the process may not make a list of `n` elements. The next collection copies it, so it
/// takes its memory twice.
pub(crate) fn admit_list(n: usize) -> Result<(), Fail> {
    admit(n.saturating_mul(2 * CELL_BYTES))
}

/// Makes a binary of `n` bytes that `fill` writes, starting from zeroed bytes.
pub(crate) fn build_binary(cx: &mut Env, n: usize, fill: impl FnOnce(&mut [u8])) -> Term {
    if n <= HEAP_BIN_LIMIT.min(heap_bin_limit()) {
        let mut buf = [0u8; HEAP_BIN_LIMIT];
        fill(&mut buf[..n]);
        return cx.binary(&buf[..n]);
    }
    let bin = RcBin::alloc(n);
    // SAFETY: a fresh block of n bytes; they are initialised before the slice is made; the term
    // takes over its count.
    unsafe {
        let p = RcBin::bytes(bin);
        let mut at = 0;
        while at < n && !ending::is_over() {
            let part = ending::BYTES.min(n - at);
            std::ptr::write_bytes(p.add(at), 0, part);
            at += part;
        }
        // If the result is no longer wanted, nobody reads it.
        if at == n {
            fill(std::slice::from_raw_parts_mut(p, n));
        }
        cx.refc_bin(bin, n)
    }
}

/// Makes a binary of `n` bytes on a dirty thread. Each call of `more` adds some of them to those
/// that are there. If it is asked to continue later, `more` returns what it needs for that, and is
/// made again by `begin`, which gets it. The number of bytes is that of the first time.
pub(crate) fn build_in_parts<M: FnMut(&mut Env, &mut Gathered) -> Option<Term>>(
    cx: &mut Env,
    n: usize,
    begin: impl FnOnce(Option<Term>) -> M,
) -> BifResult {
    let (mut out, n, place) = match reschedule::resumed() {
        None => (Gathered::new(&[], n), n, None),
        Some(state) => {
            let Some(&[out, n, place]) = state.as_tuple() else {
                return Err(Fail::Badarg);
            };
            let out = native_state::get::<Mutex<Option<Gathered>>>(out);
            let out = out.and_then(|g| g.lock().ok()?.take());
            let n = n.as_small().unwrap_or(0) as usize;
            (out.ok_or(Fail::Badarg)?, n, Some(place))
        }
    };
    let mut more = begin(place);
    while out.len() < n {
        let place = more(cx, &mut out);
        reschedule::go_on()?;
        if let Some(place) = place
            && out.len() < n
        {
            let out = native_state::make(cx, Mutex::new(Some(out)));
            let state = cx.tuple(&[out, Term::small(n as i64), place]);
            return Err(reschedule::pause(cx, state));
        }
    }
    Ok(out.finish().to_term(cx))
}

/// Makes a list of `bytes` in front of `tail`, as [`build_in_parts`] makes a binary.
fn list_in_parts(cx: &mut Env, bytes: &[u8], tail: Term) -> BifResult {
    let (mut tail, mut left) = match reschedule::resumed() {
        None => (tail, bytes.len()),
        Some(state) => match state.as_tuple() {
            Some(&[tail, left]) => (tail, left.as_small().unwrap_or(0) as usize),
            _ => return Err(Fail::Badarg),
        },
    };
    while left > LIST_PART {
        let from = left - LIST_PART;
        tail = cx.byte_list(&bytes[from..left], tail);
        left = from;
        reschedule::go_on()?;
        if reschedule::is_asked() {
            let state = cx.tuple(&[tail, Term::small(left as i64)]);
            return Err(reschedule::pause(cx, state));
        }
    }
    Ok(cx.byte_list(&bytes[..left], tail))
}
/// Cells of a list that are made between two looks whether to continue later.
const LIST_PART: usize = 1 << 18;

/// Writes the bits of `b` at bit `at` of `out`, whose bits from there on are zero.
fn put_bits(out: &mut [u8], at: usize, b: &Bits) {
    if b.bit_len == 0 {
        return;
    }
    let src = b.shifted();
    let (mut i, s) = (at / 8, at % 8);
    if s == 0 {
        out[i..i + src.len()].copy_from_slice(&src);
        return;
    }
    for byte in src {
        out[i] |= byte >> s;
        i += 1;
        if let Some(o) = out.get_mut(i) {
            *o |= byte << (8 - s);
        }
    }
}

/// Returns one binary with the bytes of an I/O list.
pub fn to_binary(cx: &mut Env, t: Term) -> Result<Term, BadIoList> {
    let n = size(t)?;
    Ok(to_binary_of(cx, t, n))
}

/// Returns one binary with the `n` bytes of an I/O list.
fn to_binary_of(cx: &mut Env, t: Term, n: usize) -> Term {
    cx.bump(n / BYTES_PER_REDUCTION + 1);
    // Already measured, so it is an I/O list.
    build_binary(cx, n, |out| {
        let _ = write_to(t, out);
    })
}

/// Bytes of a piece of an I/O list from which on it is not merged with its neighbours.
const LARGE_PIECE: usize = 1 << 10;

/// The native `m:name(t)`, which makes one binary of an I/O list.
fn to_binary_in_turns(cx: &mut Env, native: Long<1>, t: Term) -> BifResult {
    let mut n = 0;
    if !reschedule::is_resumed() {
        n = measured(cx, native, t, IoWalk::new)? / 8;
        admit(n)?;
        if !cx.dirty || n <= HEAP_BIN_LIMIT {
            return Ok(to_binary_of(cx, t, n));
        }
        cx.bump(n / BYTES_PER_REDUCTION + 1);
    }
    build_in_parts(cx, n, |rest| {
        let mut walk = IoWalk::new(rest.unwrap_or(t));
        // The rest of a binary that is copied in pieces.
        let mut left: Option<(Term, usize)> = None;
        let mut some = Vec::with_capacity(ending::STEPS);
        move |cx: &mut Env, out: &mut Gathered| {
            some.clear();
            let mut steps = 0;
            while left.is_none() {
                let stop = walk.each(|p| {
                    steps += 1;
                    match p {
                        Plain::Byte(b) => some.push(b),
                        Plain::Binary(_, s) if s.len() < LARGE_PIECE => append(&mut some, s),
                        Plain::Binary(t, _) => left = Some((t, 0)),
                    }
                    left.is_none() && steps < ending::STEPS
                });
                match stop {
                    Ok(Stop::At(t)) => left = Some((t, 0)),
                    // Already measured, so it is an I/O list.
                    Ok(Stop::Early | Stop::End) | Err(BadIoList) => break,
                }
            }
            out.extend(&some);
            if let Some((t, at)) = left
                && let Some(b) = t.as_bits()
            {
                let end = b.bit_len / 8;
                let next = end.min(at + ending::BYTES);
                let part = cx.part(t, at, next - at);
                out.extend(&part.as_binary().unwrap_or_default());
                left = (next < end).then_some((t, next));
            }
            if !reschedule::is_asked() {
                return None;
            }
            let mut rest = walk.rest(cx);
            if let Some((t, at)) = left {
                let end = t.as_bits().map_or(at, |b| b.bit_len / 8);
                let here = cx.part(t, at, end - at);
                rest = cx.cons(here, rest);
            }
            Some(rest)
        }
    })
}

/// Returns the size in bits of a list for the native `m:name(t)`, at most as many as a machine
/// word counts (no binary is that large). Moves the call to a dirty thread if that is much, or if
/// there are many elements.
fn measured(
    cx: &mut Env,
    native: Long<1>,
    t: Term,
    walk: impl Fn(Term) -> IoWalk,
) -> Result<usize, Fail> {
    let most = if cx.dirty { usize::MAX } else { MANY };
    let found = measure(walk(t), most).map_err(bad)?;
    if let Some((bits, pieces)) = found {
        let bits = clamped(bits);
        let parts = pieces + bits / BITS_PER_PART;
        if cx.dirty || parts <= MANY {
            cx.bump(parts / PARTS_PER_REDUCTION);
            return Ok(bits);
        }
    }
    dirty_if(cx, native.call(&[t]), || true)?;
    // This is a dirty thread already.
    bit_size(walk(t)).map(clamped).map_err(bad)
}

fn clamped(bits: u128) -> usize {
    usize::try_from(bits).unwrap_or(usize::MAX)
}

fn bad(_: BadIoList) -> Fail {
    Fail::Badarg
}

fn iolist_to_binary_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    if t.is_binary() {
        return Ok(t);
    }
    to_binary_in_turns(cx, long!("erlang":"iolist_to_binary"/1), t)
}

fn list_to_binary_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    list_to_binary(cx, long!("erlang":"list_to_binary"/1), t)
}

/// `erlang:list_to_binary/1`, and natives of other names that are the same.
pub(crate) fn list_to_binary(cx: &mut Env, native: Long<1>, t: Term) -> BifResult {
    if !t.is_list() {
        return Err(Fail::Badarg);
    }
    to_binary_in_turns(cx, native, t)
}

fn iolist_size_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let most = if cx.dirty { usize::MAX } else { MANY };
    let (bits, pieces) = match measure(IoWalk::new(t), most).map_err(bad)? {
        Some(found) => found,
        None => {
            dirty_if(cx, long!("erlang":"iolist_size"/1).call(&[t]), || true)?;
            // This is a dirty thread already.
            (bit_size(IoWalk::new(t)).map_err(bad)?, MANY)
        }
    };
    cx.bump(pieces / STEPS_PER_REDUCTION + 1);
    Ok(cx.uint((bits / 8) as u64))
}

fn list_to_bitstring_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    if !t.is_list() {
        return Err(Fail::Badarg);
    }
    let bits = measured(cx, long!("erlang":"list_to_bitstring"/1), t, IoWalk::bits)?;
    admit(bits / 8)?;
    cx.bump(bits / 8 / BYTES_PER_REDUCTION + 1);
    let b = build_binary(cx, bits.div_ceil(8), |out| {
        let mut w = IoWalk::bits(t);
        let (mut at, mut pieces) = (0, 0);
        while let Ok(Some(p)) = w.next_piece() {
            pieces += 1;
            if ending::is_over_at(pieces) {
                break;
            }
            match p {
                Piece::Byte(b) => {
                    let one = Bits {
                        base: &b,
                        bit_offset: 0,
                        bit_len: 8,
                    };
                    put_bits(out, at, &one);
                    at += 8;
                }
                Piece::Bits(_, b) => {
                    put_bits(out, at, &b);
                    at += b.bit_len;
                }
            }
        }
    });
    Ok(if bits & 7 == 0 {
        b
    } else {
        cx.sub_binary(b, 0, bits)
    })
}

fn binary_to_list_1(cx: &mut Env, [b]: [Term; 1]) -> BifResult {
    let s = b.as_binary().ok_or(Fail::Badarg)?;
    dirty_if(cx, long!("erlang":"binary_to_list"/1).call(&[b]), || {
        s.len() > MANY
    })?;
    if !reschedule::is_resumed() {
        admit_list(s.len())?;
        cx.bump(s.len() / BYTES_PER_REDUCTION + 1);
    }
    list_in_parts(cx, &s, NIL)
}

fn binary_to_list_3(cx: &mut Env, [b, from, to]: [Term; 3]) -> BifResult {
    let bits = b.as_bits().ok_or(Fail::Badarg)?;
    let n = bits.bit_len / 8;
    let (from, to) = match (from.as_small(), to.as_small()) {
        (Some(f), Some(t)) if f >= 1 && f <= t && t as u64 <= n as u64 => (f as usize, t as usize),
        _ => return Err(Fail::Badarg),
    };
    let args = [b, Term::small(from as i64), Term::small(to as i64)];
    dirty_if(cx, long!("erlang":"binary_to_list"/3).call(&args), || {
        to - from > MANY
    })?;
    if !reschedule::is_resumed() {
        admit_list(to - from)?;
        cx.bump((to - from) / BYTES_PER_REDUCTION + 1);
    }
    let part = Bits {
        // SAFETY: within the bitstring.
        base: unsafe { bits.base.add(from - 1) },
        bit_len: (to - from + 1) * 8,
        ..bits
    };
    let s = part.to_bytes().ok_or(Fail::Badarg)?;
    list_in_parts(cx, &s, NIL)
}

fn bitstring_to_list_1(cx: &mut Env, [b]: [Term; 1]) -> BifResult {
    let bits = b.as_bits().ok_or(Fail::Badarg)?;
    dirty_if(cx, long!("erlang":"bitstring_to_list"/1).call(&[b]), || {
        bits.bit_len / 8 > MANY
    })?;
    if !reschedule::is_resumed() {
        admit_list(bits.bit_len / 8)?;
        cx.bump(bits.bit_len / 8 / BYTES_PER_REDUCTION + 1);
    }
    let whole = bits.bit_len & !7;
    let tail = if bits.bit_len == whole {
        NIL
    } else {
        let t = cx.sub_binary(b, whole, bits.bit_len - whole);
        cx.cons(t, NIL)
    };
    let head = Bits {
        bit_len: whole,
        ..bits
    };
    let s = head.to_bytes().ok_or(Fail::Badarg)?;
    list_in_parts(cx, &s, tail)
}

fn split_binary_2(cx: &mut Env, [b, at]: [Term; 2]) -> BifResult {
    let bits = b.as_bits().ok_or(Fail::Badarg)?.bit_len;
    match at.as_small() {
        Some(n) if n >= 0 && n as u64 <= bits as u64 / 8 => {
            let n = n as usize * 8;
            let x = cx.sub_binary(b, 0, n);
            let y = cx.sub_binary(b, n, bits - n);
            Ok(cx.tuple(&[x, y]))
        }
        _ => Err(Fail::Badarg),
    }
}

/// Returns offset and length in bytes of the part `pos`, `len` (which may be negative) of `size`
/// bytes.
pub(crate) fn part_range(size: usize, pos: Term, len: Term) -> Option<(usize, usize)> {
    let (pos, len) = (pos.as_small()?, len.as_small()?);
    let (from, n) = if len < 0 {
        (pos.checked_add(len)?, -len)
    } else {
        (pos, len)
    };
    if pos < 0 || from < 0 || from.checked_add(n)? > i64::try_from(size).ok()? {
        return None;
    }
    Some((from as usize, n as usize))
}

/// `binary_part/3`, shared with module `binary`.
pub(crate) fn binary_part_3(cx: &mut Env, [b, pos, len]: [Term; 3]) -> BifResult {
    // Whole bytes before the odd bits of a bitstring are a part like any other.
    let bits = b.as_bits().ok_or(Fail::Badarg)?;
    if bits.bit_len & 7 != 0 && release::has(COPIES_WHOLE_BYTES) {
        return Err(Fail::Badarg);
    }
    let (at, n) = part_range(bits.bit_len / 8, pos, len).ok_or(Fail::Badarg)?;
    Ok(cx.part(b, at, n))
}

/// `binary_part/2`, shared with module `binary`.
pub(crate) fn binary_part_2(cx: &mut Env, [b, pl]: [Term; 2]) -> BifResult {
    match pl.as_tuple() {
        Some(&[p, l]) => binary_part_3(cx, [b, p, l]),
        _ => Err(Fail::Badarg),
    }
}

bifs! {
    Plain "erlang":"iolist_to_binary"/1 = iolist_to_binary_1 [long];
    Plain "erlang":"list_to_binary"/1 = list_to_binary_1 [long];
    Plain "erlang":"iolist_size"/1 = iolist_size_1 [long];
    Plain "erlang":"list_to_bitstring"/1 = list_to_bitstring_1 [long];
    Plain "erlang":"binary_to_list"/1 = binary_to_list_1 [long];
    Plain "erlang":"binary_to_list"/3 = binary_to_list_3 [long];
    Plain "erlang":"bitstring_to_list"/1 = bitstring_to_list_1 [long];
    Plain "erlang":"split_binary"/2 = split_binary_2;
    Guard "erlang":"binary_part"/2 = binary_part_2;
    Guard "erlang":"binary_part"/3 = binary_part_3;
}
