//! Handlers that build bitstrings: `bs_create_bin`, and the sequences of ops of OTP 24 and before,
//! which keep their place to write in `interp.build` between the ops of a sequence.
//!
//! # A segment of `bs_create_bin`
//! ```text
//! word 0  kind ([`seg`])
//! word 1  unit
//! word 2  flags; the upper half is the number of the segment in the program, for errors;
//!         0: an error has no cause
//! word 3  the value, as an operand of form S; for a string the address of its bytes
//! word 4  the size, likewise; for a string the number of its bytes
//! ```
//! A segment to which the others are appended comes first, and has the binary as its value.
//!
//! Sizes are computed before anything is made, so a failing op has changed nothing. The bytes are
//! written without a collection in between, since addresses of heap binaries are only valid until
//! the next one. An op that may collect does so at its end, with its result as an additional root.

use super::bits::little;
use super::handler::{go, op};
use super::operands::{Label, source};
use super::room::{collect_after, collect_for};
use super::{exc, instr};
use crate::collect::{Also, Collect, Sweep};
use crate::cx::Cx;
use purlin_isa::bit_fields::flags::SIGNED;
use purlin_isa::bit_fields::{SEGMENT_WORDS, seg};
use purlin_term::bits::{self, AppendError, BsWriter};
use purlin_term::layout::{HEAP_BIN_HEAD_WORDS, HEAP_BIN_LIMIT, SUB_BIN_WORDS, heap_bin_limit};
use purlin_term::release::{self, UTF_SIZES};
use purlin_term::word::{Subtag, header};
use purlin_term::{Alloc, Term, am, arith, atom, pressure};

op! {
    create_any => create;
    op_bs_init => init;
    op_bs_append => append;
    op_bs_private_append => private_append;
    op_bs_put_integer => put_integer;
    op_bs_put_float => put_float;
    op_bs_put_binary => put_binary;
    op_bs_put_string => put_string;
    op_bs_put_utf => put_utf;
    op_bs_utf_size => utf_size;
    op_bs_add => add;
    op_bs_init_writable => init_writable;
}

/// Number of bytes that may be written beyond the last one of a segment.
const SLACK: usize = 8;
/// Maximum size of a heap binary that [`op_bs_create_bin`] makes, with the slack behind it, in
/// words.
const QUICK_WORDS: usize = HEAP_BIN_HEAD_WORDS + (HEAP_BIN_LIMIT + SLACK) / 8;
const _: () = assert!(QUICK_WORDS >= SUB_BIN_WORDS);

op!(
/// Segments of whole bytes are written one after another, without computing their sizes first. They
/// go after the binary to which they are appended, if its block has room, or to the place of the
/// heap's next object. Nothing is made before the last one is written. Anything less simple, and
/// any failure, is left to the general case, which starts over.
op_bs_create_bin = BsCreateBin(cx, pc, e, hp, reds, op) {
    let list = op.segments();
    let heap = &(*cx).heap;
    let room = (e as usize - hp as usize) >> 3;
    // This path doesn't collect, so the words that the op reserves for later ops must be free after
    // the binary has been made.
    if room < op.heap() + QUICK_WORDS + heap.stack_reserve || heap.gc_wanted {
        return create_any::<F>(cx, pc, e, hp, reds);
    }
    if matches!(*list, seg::APPEND | seg::PRIVATE_APPEND) {
        return append_quick::<F>(cx, pc, e, hp, reds);
    }
    // Writes after a header that doesn't exist yet: on failure nothing has happened, since `hp`
    // hasn't moved.
    let bytes = hp.add(HEAP_BIN_HEAD_WORDS) as *mut u8;
    let most = heap_bin_limit().min(HEAP_BIN_LIMIT);
    let end = write_segments(cx, e, list, op.count(), bytes, bytes.add(most));
    if end.is_null() {
        return create_any::<F>(cx, pc, e, hp, reds);
    }
    let n = end as usize - bytes as usize;
    let words = n.div_ceil(8);
    // The rest of the last word is zero, as in any heap binary.
    end.write_bytes(0, words * 8 - n);
    (hp as *mut u64).write(header(Subtag::HeapBin, 1 + words));
    (hp.add(1) as *mut u64).write(n as u64);
    op.dst().set(cx, e, Term::boxed_at(hp));
    go!(cx, op.next(), e, hp.add(HEAP_BIN_HEAD_WORDS + words), reds)
});

op!(
/// As [`op_bs_create_bin`], if the others are appended to the first segment.
#[inline(never)]
append_quick = BsCreateBin(cx, pc, e, hp, reds, op) {
    // `grow_by` makes a sub-binary on the heap.
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    let t = appended(cx, e, op.segments(), op.count());
    if t == Term::NON_VALUE {
        return create_any::<F>(cx, pc, e, hp, reds);
    }
    op.dst().set(cx, e, t);
    go!(cx, op.next(), e, (*cx).heap.htop, reds)
});

/// Maximum number of bytes to append at once without charging reductions.
const MOST_APPENDED: usize = COPIED_BITS_PER_REDUCTION / 8;

/// Returns the term of the first segment with the others appended in place; no value if that can't
/// be done.
///
/// # Safety
/// As for the instruction whose segments are the `n` words at `list`; `e` must be the top of the
/// stack.
#[inline(never)]
unsafe fn appended(cx: *mut Cx, e: *mut Term, list: *const u64, n: usize) -> Term {
    let bin = source(cx, e, *list.add(3));
    // The size of the binary must be a multiple of the first segment's unit, and it has whole
    // bytes.
    let Some(room) = bits::room_behind(bin).filter(|_| matches!(*list.add(1), 1 | 8)) else {
        return Term::NON_VALUE;
    };
    if room.bytes() <= SLACK {
        return Term::NON_VALUE;
    }
    let limit = room.start.add((room.bytes() - SLACK).min(MOST_APPENDED));
    let end = write_segments(
        cx,
        e,
        list.add(SEGMENT_WORDS),
        n - SEGMENT_WORDS,
        room.start,
        limit,
    );
    let n = (end as usize).wrapping_sub(room.start as usize);
    let heap = &mut (*cx).heap;
    // Nothing was written, or enough bytes to make a collection due.
    if end.is_null() || n == 0 || heap.off_heap.bytes + n > heap.vheap_bytes {
        return Term::NON_VALUE;
    }
    // Only now does the binary own the bytes. Without this call they are still free room of its
    // block.
    bits::grow_by(heap, bin, room, n, *list == seg::PRIVATE_APPEND)
}

/// Writes the segments of a list of `n` words, five for each, from `to` on. Returns the end of the
/// last one, which is at most `limit`; null if one of them is not simple, or there is no room.
///
/// # Safety
/// [`SLACK`] bytes after `limit` must be writable too, and no segment may refer to the bytes from
/// `to` to there.
#[inline(never)]
unsafe fn write_segments(
    cx: *mut Cx,
    e: *mut Term,
    list: *const u64,
    n: usize,
    mut to: *mut u8,
    limit: *mut u8,
) -> *mut u8 {
    const NONE: *mut u8 = std::ptr::null_mut();
    let mut k = 0;
    while k < n {
        let s = list.add(k);
        let (kind, unit) = (*s, *s.add(1));
        let left = limit as usize - to as usize;
        if kind == seg::STRING {
            let bytes = *s.add(4) as usize;
            if bytes > left {
                return NONE;
            }
            std::ptr::copy_nonoverlapping(*s.add(3) as *const u8, to, bytes);
            to = to.add(bytes);
            k += SEGMENT_WORDS;
            continue;
        }
        let v = source(cx, e, *s.add(3));
        let size = source(cx, e, *s.add(4));
        let flags = *s.add(2) as u32 as u64;
        match kind {
            seg::INTEGER => {
                // A sign makes no difference, and a negative size is a large unsigned one.
                let count = size.small_value() as u64;
                if !(v.is_small() && size.is_small() && count <= 64 && unit <= 64) {
                    return NONE;
                }
                let bits = count * unit;
                if bits & 7 != 0 || bits.wrapping_sub(8) > 56 || (bits >> 3) as usize > left {
                    return NONE;
                }
                to = put_number(to, v.small_value() as u64, bits, flags);
            }
            seg::FLOAT => {
                // The general case handles other numbers and halves.
                let (Some(f), Some(size)) = (v.as_float(), size.as_small()) else {
                    return NONE;
                };
                let bits = u64::try_from(size).ok().and_then(|n| n.checked_mul(unit));
                let (bits, v) = match bits {
                    Some(64) => (64, f.to_bits()),
                    Some(32) => (32, u64::from((f as f32).to_bits())),
                    _ => return NONE,
                };
                if left < 8 {
                    return NONE;
                }
                to = put_number(to, v, bits, flags);
            }
            seg::BINARY => {
                let Some(bytes) = v.as_bits().and_then(|b| b.as_bytes()) else {
                    return NONE;
                };
                let n = if is_all(*s.add(4)) && matches!(unit, 1 | 8) {
                    bytes.len()
                } else if size.is_small() && unit == 8 {
                    // A negative one is too large.
                    size.small_value() as usize
                } else {
                    return NONE;
                };
                if n > bytes.len() || n > left {
                    return NONE;
                }
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, n);
                to = to.add(n);
            }
            seg::UTF8 => {
                let Some(c) = bits::code_point(v).filter(|_| left >= 4) else {
                    return NONE;
                };
                to = to.add(put_utf8(to, c));
            }
            _ => return NONE,
        }
        k += SEGMENT_WORDS;
    }
    to
}

/// Writes the lower `bits` of a number, 8 to 64 in whole bytes, and returns their end. It always
/// writes eight bytes: the excess lies within the slack, and the next segment overwrites it.
///
/// # Safety
/// Eight bytes must be writable.
#[inline(always)]
unsafe fn put_number(to: *mut u8, v: u64, bits: u64, flags: u64) -> *mut u8 {
    let bytes = match little(flags) {
        true => v.to_le_bytes(),
        false => (v << (64 - bits)).to_be_bytes(),
    };
    (to as *mut [u8; 8]).write(bytes);
    to.add((bits >> 3) as usize)
}

/// Writes a character in UTF-8 and returns its length in bytes; up to four are written.
///
/// # Safety
/// Four bytes must be writable.
#[inline(always)]
unsafe fn put_utf8(to: *mut u8, c: u32) -> usize {
    let tail = |shift: u32| 0x80 | (c >> shift & 0x3F) as u8;
    let (n, all) = match c {
        0..0x80 => (1, [c as u8, 0, 0, 0]),
        0x80..0x800 => (2, [0xC0 | (c >> 6) as u8, tail(0), 0, 0]),
        0x800..0x10000 => (3, [0xE0 | (c >> 12) as u8, tail(6), tail(0), 0]),
        _ => (4, [0xF0 | (c >> 18) as u8, tail(12), tail(6), tail(0)]),
    };
    (to as *mut [u8; 4]).write(all);
    n
}

/// Writes a character in UTF-8 at `to`, where there is room for four bytes, and returns its end;
/// null if it is no character.
///
/// # Safety
/// There must be room for four bytes at `to`; `c` must be a term of the process.
pub(super) unsafe fn put_character(to: *mut u8, c: Term) -> *mut u8 {
    match bits::code_point(c) {
        Some(c) => to.add(put_utf8(to, c)),
        None => std::ptr::null_mut(),
    }
}
/// Writes all bytes of a binary at `to` and returns their end; null if that would be beyond
/// `limit`, or if they are too many to write without charging reductions.
///
/// # Safety
/// There must be room from `to` to `limit`; `t` must be a term of the process.
pub(super) unsafe fn put_bytes(to: *mut u8, t: Term, limit: *mut u8) -> *mut u8 {
    let Some(bytes) = t.as_bits().and_then(|b| b.as_bytes()) else {
        return std::ptr::null_mut();
    };
    let left = (limit as usize).saturating_sub(to as usize);
    if bytes.len() > left.min(MOST_APPENDED) {
        return std::ptr::null_mut();
    }
    std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
    to.add(bytes.len())
}

/// Maximum size of a bitstring, in bits.
const MAX_BITS: usize = (i64::MAX as usize) >> 4;

fn utf8_bits(c: u32) -> usize {
    match c {
        0..0x80 => 8,
        0x80..0x800 => 16,
        0x800..0x10000 => 24,
        _ => 32,
    }
}
fn utf16_bits(c: u32) -> usize {
    if c < 0x10000 { 16 } else { 32 }
}

/// Why a segment is invalid: the reason for `error_info` and the value it concerns.
enum Bad {
    Arg(&'static str, Term),
    Limit(Term),
}

/// Returns a size and its unit as bits.
fn size_of(size: Term, unit: u64) -> Result<usize, Bad> {
    match size.as_small() {
        Some(n) if n >= 0 => (n as usize)
            .checked_mul(unit as usize)
            .filter(|&b| b <= MAX_BITS)
            .ok_or(Bad::Limit(size)),
        // A bignum that is not negative is a size that no memory holds.
        None if size.as_big().is_some_and(|b| !b.0) => Err(Bad::Limit(size)),
        _ => Err(Bad::Arg("size", size)),
    }
}

/// Whether the word of a size means the whole value: the atom `all` in the code. In a register that
/// is no size.
#[inline(always)]
fn is_all(size: u64) -> bool {
    size == am::ALL.raw()
}

/// Returns the size of a segment in bits. Checks everything that writing relies on, except the
/// range of floats. `all`: its size is that of the whole value.
fn segment_bits(kind: u64, unit: u64, v: Term, size: Term, all: bool) -> Result<usize, Bad> {
    match kind {
        seg::INTEGER => {
            if !v.is_integer() {
                return Err(Bad::Arg("type", v));
            }
            size_of(size, unit)
        }
        seg::FLOAT => {
            let n = size_of(size, unit)?;
            if !matches!(n, 16 | 32 | 64) {
                Err(Bad::Arg("invalid", size))
            } else if !v.is_number() {
                Err(Bad::Arg("type", v))
            } else {
                Ok(n)
            }
        }
        seg::BINARY | seg::APPEND | seg::PRIVATE_APPEND => {
            let Some(b) = v.as_bits() else {
                return Err(Bad::Arg("type", v));
            };
            if all {
                return if unit > 1 && !(b.bit_len as u64).is_multiple_of(unit) {
                    Err(Bad::Arg("unit", v))
                } else {
                    Ok(b.bit_len)
                };
            }
            let n = size_of(size, unit)?;
            if n <= b.bit_len {
                Ok(n)
            } else {
                Err(Bad::Arg("short", v))
            }
        }
        _ => {
            let Some(c) = bits::code_point(v) else {
                return Err(Bad::Arg("type", v));
            };
            Ok(match kind {
                seg::UTF8 => utf8_bits(c),
                seg::UTF16 => utf16_bits(c),
                _ => 32,
            })
        }
    }
}

/// Returns the name of a kind for errors.
fn kind_name(kind: u64) -> &'static str {
    match kind {
        seg::INTEGER => "integer",
        seg::FLOAT => "float",
        seg::UTF8 => "utf8",
        seg::UTF16 => "utf16",
        seg::UTF32 => "utf32",
        _ => "binary",
    }
}

/// Handles an invalid segment `number`: jumps to the label if there is one, as in a guard.
/// Otherwise raises with a cause for the trace, or without one if the number is 0. Nothing was
/// changed before that, except invisible room.
///
/// # Safety
/// As for the instruction at `pc`, whose operand `label` is.
unsafe fn create_failed(
    cx: &mut Cx,
    pc: *const u64,
    label: Label,
    number: usize,
    kind: u64,
    bad: Bad,
) -> *const u64 {
    if let Some(to) = label.given() {
        return to;
    }
    if number == 0 {
        return exc::error(cx, pc, value_of(bad));
    }
    let (value, reason, about) = match bad {
        Bad::Limit(size) => (am::SYSTEM_LIMIT, "size", size),
        Bad::Arg(why, t) => (am::BADARG, why, t),
    };
    let cause = cx.tuple(&[
        Term::small(number as i64),
        atom::intern(kind_name(kind)),
        atom::intern(reason),
        about,
    ]);
    let fail = cx.error(value);
    exc::raise(cx, pc, fail, exc::First::Construct(cause))
}

/// Returns the failure to report if several segments are invalid: sizes come before values. A
/// binary that is taken whole is checked when the sizes are computed, unless the others are
/// appended to it. So is the character of a UTF-32 segment; since OTP 27 that of a UTF-8 segment,
/// too. `list`: `n` words, five per segment.
///
/// # Safety
/// As for the instruction whose segments are at `list`; `e` must be the top of the stack.
unsafe fn first_failure(
    cx: *mut Cx,
    e: *mut Term,
    list: *const u64,
    n: usize,
) -> Option<(usize, Bad)> {
    let characters: &[u64] = match release::has(UTF_SIZES) {
        true => &[seg::UTF8, seg::UTF32],
        false => &[seg::UTF32],
    };
    for k in (0..n).step_by(SEGMENT_WORDS) {
        let (kind, unit) = (*list.add(k), *list.add(k + 1));
        let character = characters.contains(&kind);
        if !character && !matches!(kind, seg::INTEGER | seg::FLOAT | seg::BINARY) {
            continue;
        }
        let v = source(cx, e, *list.add(k + 3));
        if character {
            if bits::code_point(v).is_none() {
                return Some((k, Bad::Arg("type", v)));
            }
            continue;
        }
        if is_all(*list.add(k + 4)) {
            if v.as_bits().is_none() {
                return Some((k, Bad::Arg("type", v)));
            }
            continue;
        }
        let size = source(cx, e, *list.add(k + 4));
        if let Err(bad) = size_of(size, unit) {
            return Some((k, bad));
        }
    }
    for k in (0..n).step_by(SEGMENT_WORDS) {
        let (kind, unit) = (*list.add(k), *list.add(k + 1));
        if kind != seg::STRING {
            let v = source(cx, e, *list.add(k + 3));
            let size = source(cx, e, *list.add(k + 4));
            let all = is_all(*list.add(k + 4));
            if let Err(bad) = segment_bits(kind, unit, v, size, all) {
                return Some((k, bad));
            }
        }
    }
    None
}

/// The general case of [`op_bs_create_bin`]: sizes, then room, then the bytes. May collect at its
/// end, with `live` and the result.
unsafe fn create(cx: &mut Cx, pc: *const u64) -> *const u64 {
    // SAFETY: the contract is the same.
    unsafe { create_with(cx, pc, false) }
}

/// As [`create`]. `collected` says whether all garbage was collected for the binary. If it was not,
/// and a limit of memory refuses the binary, it is collected and this function called again.
unsafe fn create_with(cx: &mut Cx, pc: *const u64, collected: bool) -> *const u64 {
    let op = instr::BsCreateBin::at(pc);
    let to = op.fail();
    let (n, list) = (op.count(), op.segments());
    let e = cx.heap.stop;
    let number = |k: usize| (*list.add(k + 2) >> 32) as usize;
    // First the sizes: nothing is made before all segments are known to fit.
    let mut total = 0usize;
    let mut appends = false;
    // All sizes are kept as computed: the binary that is appended to may be an operand again, and
    // has grown by then.
    let mut sizes = [0usize; 16];
    let mut more_sizes: Vec<usize> = Vec::new();
    for (i, k) in (0..n).step_by(SEGMENT_WORDS).enumerate() {
        let (kind, unit) = (*list.add(k), *list.add(k + 1));
        if kind == seg::STRING {
            total += *list.add(k + 4) as usize * 8;
            if i >= sizes.len() {
                more_sizes.push(0);
            }
            continue;
        }
        let v = source(cx, e, *list.add(k + 3));
        let size = source(cx, e, *list.add(k + 4));
        let bits = if kind == seg::INTEGER && v.is_small() && size.is_small() && unit <= 256 {
            // By far the most frequent case.
            match size.small_value() {
                s @ 0..=0xFFFF => Ok(s as usize * unit as usize),
                _ => size_of(size, unit),
            }
        } else {
            segment_bits(kind, unit, v, size, is_all(*list.add(k + 4)))
        };
        if let Ok(b) = bits {
            match sizes.get_mut(i) {
                Some(s) => *s = b,
                None => more_sizes.push(b),
            }
        }
        match bits {
            Ok(_) if i == 0 && matches!(kind, seg::APPEND | seg::PRIVATE_APPEND) => appends = true,
            Ok(b) => total += b,
            Err(bad) => {
                let (k, bad) = first_failure(cx, e, list, n).unwrap_or((k, bad));
                return create_failed(cx, pc, to, number(k), *list.add(k), bad);
            }
        }
        if total <= MAX_BITS && !collected && pressure::refuses(total / 8) {
            // SAFETY: as at the end of the op: before it, the same registers are live. The sources
            // may have moved, so the op begins again, as its handler has begun it.
            return unsafe {
                (*cx).collect(0, op.live(), Also::NONE, Sweep::Full);
                create_with(cx, pc, true)
            };
        }
        if total > MAX_BITS || pressure::refuses(total / 8) {
            return create_failed(cx, pc, to, number(k), kind, Bad::Limit(size));
        }
    }
    if appends && pressure::is_limited() {
        let needs = bits::append_needs(source(cx, e, *list.add(3)), total);
        if pressure::refuses(needs) {
            if !collected {
                // SAFETY: nothing is built yet, so the registers that are live at the end of the op
                // are live here, and the op may begin again.
                return unsafe {
                    (*cx).collect(0, op.live(), Also::NONE, Sweep::Full);
                    create_with(cx, pc, true)
                };
            }
            let size = source(cx, e, *list.add(4));
            return create_failed(cx, pc, to, number(0), seg::BINARY, Bad::Limit(size));
        }
    }
    let (term, dst, mut pos) = if appends {
        let bin = source(cx, e, *list.add(3));
        let unit = *list.add(1) as usize;
        // Making room may move the bytes of the binary, which is charged below.
        let before = bin.as_bits();
        let made = if *list == seg::APPEND {
            bits::append(&mut cx.heap, bin, total, unit)
        } else {
            bits::private_append(&mut cx.heap, bin, total, unit)
        };
        match made {
            Ok(m) => {
                if let Some(b) = before
                    && b.base != m.1.cast_const()
                {
                    cx.reds -= (b.bit_len / MOVED_BITS_PER_REDUCTION) as i64;
                }
                m
            }
            Err(AppendError::Size) => {
                let size = source(cx, e, *list.add(4));
                return create_failed(cx, pc, to, number(0), seg::BINARY, Bad::Limit(size));
            }
            Err(AppendError::Unit) => {
                return create_failed(cx, pc, to, number(0), seg::BINARY, Bad::Arg("unit", bin));
            }
            Err(AppendError::Type) => {
                return create_failed(cx, pc, to, number(0), seg::BINARY, Bad::Arg("type", bin));
            }
        }
    } else {
        let t = BsWriter::new(&mut cx.heap, total).term;
        (
            t,
            t.as_bits()
                .map_or(std::ptr::null_mut(), |b| b.base as *mut u8),
            0,
        )
    };
    for (i, k) in (0..n).step_by(SEGMENT_WORDS).enumerate() {
        if appends && i == 0 {
            continue;
        }
        let kind = *list.add(k);
        let flags = *list.add(k + 2) & 0xFFFF_FFFF;
        if kind == seg::STRING {
            let bits = *list.add(k + 4) as usize * 8;
            bits::copy_bits(*list.add(k + 3) as *const u8, 0, dst, pos, bits);
            pos += bits;
            continue;
        }
        let v = source(cx, e, *list.add(k + 3));
        let b = match sizes.get(i) {
            Some(&b) => b,
            None => more_sizes[i - sizes.len()],
        };
        if kind == seg::INTEGER && flags & !SIGNED == 0 && v.is_small() && put_small(dst, pos, b, v)
        {
            pos += b;
            continue;
        }
        if !write(dst, pos, b, kind, flags, v) {
            return create_failed(cx, pc, to, number(k), kind, Bad::Arg("no_float", v));
        }
        pos += b;
    }
    // Copying costs reductions.
    cx.reds -= (total / COPIED_BITS_PER_REDUCTION) as i64;
    op.dst().put(cx, term);
    collect_for(cx, op.heap(), op.live(), op.dst().also());
    op.next()
}

/// Bits that are written for one reduction, as in stock.
const COPIED_BITS_PER_REDUCTION: usize = 8 * 1024;

/// Bits of a binary that are moved to a larger block for one reduction.
const MOVED_BITS_PER_REDUCTION: usize = 4 * COPIED_BITS_PER_REDUCTION;

/// Writes a small integer of whole bytes, big-endian, at a byte boundary. Returns false if it is
/// anything else.
///
/// # Safety
/// `n` bits must be writable at bit `pos` of `dst`.
#[inline(always)]
unsafe fn put_small(dst: *mut u8, pos: usize, n: usize, v: Term) -> bool {
    if (pos | n) & 7 != 0 {
        return false;
    }
    let p = dst.add(pos >> 3);
    let v = v.small_value();
    match n {
        8 => p.write(v as u8),
        16 => (p as *mut [u8; 2]).write((v as u16).to_be_bytes()),
        32 => (p as *mut [u8; 4]).write((v as u32).to_be_bytes()),
        64 => (p as *mut [u8; 8]).write(v.to_be_bytes()),
        _ => return false,
    }
    true
}

/// Writes one segment of `n` bits, whose value has been checked.
///
/// # Safety
/// `n` bits must be writable at bit `pos` of `dst`, with as much after them as [`bits`] asks for,
/// and `v` must be of that kind.
unsafe fn write(dst: *mut u8, pos: usize, n: usize, kind: u64, flags: u64, v: Term) -> bool {
    match kind {
        seg::INTEGER => bits::put_integer(dst, pos, n, v, little(flags)),
        seg::FLOAT => bits::put_float(dst, pos, n, v, little(flags)),
        seg::UTF8 => bits::code_point(v).is_some_and(|c| {
            bits::put_utf8(dst, pos, c);
            true
        }),
        seg::UTF16 => bits::code_point(v).is_some_and(|c| {
            bits::put_utf16(dst, pos, c, little(flags));
            true
        }),
        seg::UTF32 => bits::code_point(v).is_some_and(|c| {
            bits::put_utf32(dst, pos, c, little(flags));
            true
        }),
        _ => v.as_bits().is_some_and(|b| {
            bits::copy_bits(b.base, b.bit_offset as usize, dst, pos, n);
            true
        }),
    }
}

// The ops of OTP 24 and before.

/// Jumps to the label if there is one, otherwise raises `error:value`.
unsafe fn failed(cx: &mut Cx, pc: *const u64, label: Label, value: Term) -> *const u64 {
    match label.given() {
        Some(to) => to,
        None => exc::error(cx, pc, value),
    }
}
/// Returns the error value of a failure: the older ops report no cause.
fn value_of(bad: Bad) -> Term {
    match bad {
        Bad::Limit(_) => am::SYSTEM_LIMIT,
        Bad::Arg(..) => am::BADARG,
    }
}

/// Begins a binary with that many bits. The ops that write to it may not collect: `interp.build`
/// has its address.
unsafe fn init(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsInit::at(pc);
    let to = op.fail();
    let size = op.size().value(cx);
    let unit = op.unit() as u64;
    let n = match size_of(size, unit) {
        Ok(n) => n,
        Err(b) => return failed(cx, pc, to, value_of(b)),
    };
    let t = BsWriter::new(&mut cx.heap, n).term;
    let base = t
        .as_bits()
        .map_or(std::ptr::null_mut(), |b| b.base as *mut u8);
    // The following ops write the bytes. A collection here must find initialized words, and moves
    // heap bytes.
    std::ptr::write_bytes(base, 0, n.div_ceil(8));
    op.dst().put(cx, t);
    collect_for(cx, op.heap(), op.live(), op.dst().also());
    // It may have been moved.
    let t = op.dst().value(cx);
    let base = t
        .as_bits()
        .map_or(std::ptr::null_mut(), |b| b.base as *mut u8);
    cx.interp.build = (base, 0, n);
    op.next()
}
/// Begins after the bytes of a binary. These are not on the heap, so the address stays valid across
/// the collection.
unsafe fn append(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsAppend::at(pc);
    let to = op.fail();
    let size = op.size().value(cx);
    let unit = op.unit();
    let bin = op.binary().value(cx);
    // The size is in bits already.
    let n = match size_of(size, 1) {
        Ok(n) => n,
        Err(b) => return failed(cx, pc, to, value_of(b)),
    };
    if pressure::is_limited() && pressure::refuses(bits::append_needs(bin, n)) {
        (*cx).collect(0, op.live(), Also::NONE, Sweep::Full);
        if pressure::refuses(bits::append_needs(op.binary().value(cx), n)) {
            return failed(cx, pc, to, am::SYSTEM_LIMIT);
        }
    }
    let bin = op.binary().value(cx);
    match bits::append(&mut cx.heap, bin, n, unit) {
        Ok((t, dst, pos)) => {
            op.dst().put(cx, t);
            cx.interp.build = (dst, pos, pos + n);
            collect_for(cx, op.heap(), op.live(), op.dst().also());
            op.next()
        }
        Err(AppendError::Size) => failed(cx, pc, to, am::SYSTEM_LIMIT),
        Err(_) => failed(cx, pc, to, am::BADARG),
    }
}
/// The same for a binary that nothing else refers to: its own term grows. Doesn't collect.
unsafe fn private_append(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsPrivateAppend::at(pc);
    let to = op.fail();
    let size = op.size().value(cx);
    let unit = op.unit();
    let bin = op.binary().value(cx);
    // The unit applies to the size; the binary has been built from whole segments.
    let n = match size_of(size, unit as u64) {
        Ok(n) => n,
        Err(b) => return failed(cx, pc, to, value_of(b)),
    };
    // Here nothing can be collected.
    if pressure::is_limited() && pressure::refuses(bits::append_needs(bin, n)) {
        return failed(cx, pc, to, am::SYSTEM_LIMIT);
    }
    match bits::private_append(&mut cx.heap, bin, n, 1) {
        Ok((t, dst, pos)) => {
            op.dst().put(cx, t);
            cx.interp.build = (dst, pos, pos + n);
            op.next()
        }
        Err(AppendError::Size) => failed(cx, pc, to, am::SYSTEM_LIMIT),
        Err(_) => failed(cx, pc, to, am::BADARG),
    }
}
/// Writes a value where the last op has stopped. To exceed the size with which the sequence began
/// is an error of the program.
unsafe fn put(cx: &mut Cx, pc: *const u64, kind: u64) -> *const u64 {
    // The ops that write have the same operands.
    let op = instr::BsPutInteger::at(pc);
    let to = op.fail();
    let size = op.size().value(cx);
    let (unit, flags) = (op.unit() as u64, op.flags() as u64);
    let v = op.value().value(cx);
    let (dst, pos, end) = cx.interp.build;
    match segment_bits(kind, unit, v, size, op.size().is(am::ALL)) {
        Ok(n) if n <= end - pos && write(dst, pos, n, kind, flags, v) => {
            cx.interp.build.1 = pos + n;
            op.next()
        }
        Err(Bad::Limit(_)) => failed(cx, pc, to, am::SYSTEM_LIMIT),
        _ => failed(cx, pc, to, am::BADARG),
    }
}
unsafe fn put_integer(cx: &mut Cx, pc: *const u64) -> *const u64 {
    put(cx, pc, seg::INTEGER)
}
unsafe fn put_float(cx: &mut Cx, pc: *const u64) -> *const u64 {
    put(cx, pc, seg::FLOAT)
}
unsafe fn put_binary(cx: &mut Cx, pc: *const u64) -> *const u64 {
    put(cx, pc, seg::BINARY)
}
/// Writes bytes that are part of the module.
unsafe fn put_string(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsPutString::at(pc);
    let (n, s) = (op.count() * 8, op.bytes());
    let (dst, pos, end) = cx.interp.build;
    if n > end - pos {
        return exc::error(cx, pc, am::BADARG);
    }
    bits::copy_bits(s, 0, dst, pos, n);
    cx.interp.build.1 = pos + n;
    op.next()
}
/// As [`put`], for a character.
unsafe fn put_utf(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsPutUtf::at(pc);
    let to = op.fail();
    let kind = match op.encoding() {
        8 => seg::UTF8,
        16 => seg::UTF16,
        _ => seg::UTF32,
    };
    let flags = op.flags() as u64;
    let v = op.value().value(cx);
    let (dst, pos, end) = cx.interp.build;
    match segment_bits(kind, 1, v, v, false) {
        Ok(n) if n <= end - pos && write(dst, pos, n, kind, flags, v) => {
            cx.interp.build.1 = pos + n;
            op.next()
        }
        _ => failed(cx, pc, to, am::BADARG),
    }
}
/// Computes the bytes of a character, as a part of the sum with which the sequence begins.
unsafe fn utf_size(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsUtfSize::at(pc);
    let kind = op.encoding();
    let v = op.value().value(cx);
    // A value that is no character fails when it is written, after all sizes.
    let n = match bits::code_point(v) {
        Some(c) if kind == 8 => utf8_bits(c),
        Some(c) => utf16_bits(c),
        None => 32,
    };
    op.dst().put(cx, Term::small(n as i64 / 8));
    op.next()
}
/// A step of that sum: `a` plus `b` units. No bignum is such a sum, so this needs no collection.
unsafe fn add(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsAdd::at(pc);
    let to = op.fail();
    let (a, b) = (op.a().value(cx), op.b().value(cx));
    let unit = op.unit() as u64;
    let sum = size_of(a, 1).and_then(|x| size_of(b, unit).map(|y| x + y));
    match sum {
        Ok(n) if n <= MAX_BITS => {
            let t = cx.uint(n as u64);
            op.dst().put(cx, t);
            op.next()
        }
        Ok(_) => failed(cx, pc, to, am::SYSTEM_LIMIT),
        Err(b) => failed(cx, pc, to, value_of(b)),
    }
}
/// Makes room for x0 bytes, or for 1,024 if x0 is no sensible number. The result is in x0, which is
/// live.
unsafe fn init_writable(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let n = arith::to_u64(cx.x[0])
        .filter(|&n| n < 1 << 40)
        .unwrap_or(1024);
    let t = bits::init_writable(&mut cx.heap, n as usize);
    cx.x[0] = t;
    collect_after(cx, 1, Also::NONE);
    instr::BsInitWritable::at(pc).next()
}
