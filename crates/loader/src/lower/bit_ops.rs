//! Lowering of the bit syntax.
//!
//! Matching and construction each have their ops. A sequence of instructions that built a bitstring
//! before OTP 25 becomes one `bs_create_bin` where that is possible ([`sequence`]).

use super::lowering::Lower;
use super::words::NIL;
use crate::generic::{Instr, Operand};
use crate::lower::emit::{Arg, count};
use purlin_isa::bit_fields::flags::{self, ALIGNED, EXACT, LITTLE, NATIVE, SIGNED};
use purlin_isa::bit_fields::{Content, SEGMENTS, Segment, cmd, seg};
use purlin_isa::genops::{self as g};
use purlin_isa::ops::Op;
use purlin_term::am;

/// Lowers an instruction of the bit syntax; returns `false` if it is none.
pub(super) fn lower(l: &mut Lower, op: u8, a: &[Operand]) -> bool {
    matching(l, op, a) || construction(l, op, a)
}

/// Lowers an instruction that matches a bitstring; returns `false` if it is none.
fn matching(l: &mut Lower, op: u8, a: &[Operand]) -> bool {
    match op {
        g::BS_START_MATCH2 => {
            let (s, d) = (l.s(a[1]), l.s(a[4]));
            let slots = count(l.u(a[3]).min(1024) as u32 + 1);
            l.e.op(Op::BsStartMatch, &[l.label(a[0]), s, d, l.h(a[2]), slots]);
        }
        g::BS_START_MATCH3 => {
            let (s, d) = (l.s(a[1]), l.s(a[3]));
            start(l, l.label(a[0]), s, d, l.h(a[2]));
        }
        g::BS_START_MATCH4 => {
            let (s, d) = (l.s(a[2]), l.s(a[3]));
            start(l, l.label(a[0]), s, d, l.h(a[1]));
        }
        g::BS_GET_INTEGER2 => get(l, Op::BsGetInteger, a),
        g::BS_GET_FLOAT2 => get(l, Op::BsGetFloat, a),
        g::BS_GET_BINARY2 => get(l, Op::BsGetBinary, a),
        g::BS_SKIP_BITS2 => {
            let (c, s) = (l.s(a[1]), l.s(a[2]));
            if let Some(n) = fixed(a[2], l.u(a[3]))
                && matches!(c, Arg::X(_) | Arg::Y(_))
            {
                l.e.op(Op::BsSkipFixed, &[l.label(a[0]), c, count(n)]);
                return true;
            }
            l.e.op(Op::BsSkipBits, &[l.label(a[0]), c, s, w(l, a[3])]);
        }
        g::BS_TEST_TAIL2 => {
            let c = l.s(a[1]);
            let n = match a[2] {
                Operand::U(n) => n,
                _ => u64::MAX,
            };
            l.e.op(Op::BsTestTail, &[l.label(a[0]), c, Arg::N(n)]);
        }
        g::BS_TEST_UNIT => {
            let c = l.s(a[1]);
            l.e.op(Op::BsTestUnit, &[l.label(a[0]), c, w(l, a[2])]);
        }
        g::BS_MATCH_STRING => {
            let c = l.s(a[1]);
            let at = l.env.strings() + l.u(a[3]);
            l.e.op(
                Op::BsMatchString,
                &[l.label(a[0]), c, w(l, a[2]), Arg::N(at)],
            );
        }
        g::BS_GET_UTF8 | g::BS_GET_UTF16 | g::BS_GET_UTF32 => {
            let n = match op {
                g::BS_GET_UTF8 => 8,
                g::BS_GET_UTF16 => 16,
                _ => 32,
            };
            let (c, d) = (l.s(a[1]), l.s(a[4]));
            l.e.op(Op::BsGetUtf, &[l.label(a[0]), c, count(n), l.h(a[3]), d]);
        }
        g::BS_SKIP_UTF8 | g::BS_SKIP_UTF16 | g::BS_SKIP_UTF32 => {
            let n = match op {
                g::BS_SKIP_UTF8 => 8,
                g::BS_SKIP_UTF16 => 16,
                _ => 32,
            };
            let c = l.s(a[1]);
            l.e.op(Op::BsSkipUtf, &[l.label(a[0]), c, count(n), l.h(a[3])]);
        }
        g::BS_GET_TAIL | g::BS_GET_POSITION => {
            let (c, d) = (l.s(a[0]), l.s(a[1]));
            let op = if op == g::BS_GET_TAIL {
                Op::BsGetTail
            } else {
                Op::BsGetPosition
            };
            l.e.op(op, &[c, d, l.h(a[2])]);
        }
        g::BS_SET_POSITION => l.ss(Op::BsSetPosition, &a[..2]),
        g::BS_CONTEXT_TO_BINARY => l.ss(Op::BsContextToBinary, &a[..1]),
        g::BS_SAVE2 | g::BS_RESTORE2 => {
            let c = l.s(a[0]);
            // Slot 0 is the start, which an atom names.
            let slot = match a[1] {
                Operand::U(n) => u32::try_from(n).unwrap_or(u32::MAX).saturating_add(1),
                _ => 0,
            };
            let op = if op == g::BS_SAVE2 {
                Op::BsSave
            } else {
                Op::BsRestore
            };
            l.e.op(op, &[c, count(slot)]);
        }
        g::BS_MATCH => bs_match(l, a),
        _ => return false,
    }
    true
}

/// Lowers an instruction that builds a bitstring; returns `false` if it is none.
fn construction(l: &mut Lower, op: u8, a: &[Operand]) -> bool {
    match op {
        g::BS_CREATE_BIN => create(l, a),
        g::BS_INIT2 | g::BS_INIT_BITS => {
            let s = l.s(a[1]);
            let d = l.s(a[5]);
            let unit = if op == g::BS_INIT2 { 8 } else { 1 };
            l.e.op(
                Op::BsInit,
                &[l.label(a[0]), s, l.heap(a[2]), l.h(a[3]), count(unit), d],
            );
        }
        g::BS_APPEND => {
            let (size, bin, d) = (l.s(a[1]), l.s(a[5]), l.s(a[7]));
            l.e.op(
                Op::BsAppend,
                &[
                    l.label(a[0]),
                    size,
                    l.heap(a[2]),
                    l.h(a[3]),
                    w(l, a[4]),
                    bin,
                    d,
                ],
            );
        }
        g::BS_PRIVATE_APPEND => {
            let (size, bin, d) = (l.s(a[1]), l.s(a[3]), l.s(a[5]));
            l.e.op(
                Op::BsPrivateAppend,
                &[l.label(a[0]), size, w(l, a[2]), bin, d],
            );
        }
        g::BS_PUT_INTEGER => put(l, Op::BsPutInteger, a),
        g::BS_PUT_FLOAT => put(l, Op::BsPutFloat, a),
        g::BS_PUT_BINARY => put(l, Op::BsPutBinary, a),
        g::BS_PUT_STRING => {
            let at = l.env.strings() + l.u(a[1]);
            l.e.op(Op::BsPutString, &[w(l, a[0]), Arg::N(at)]);
        }
        g::BS_PUT_UTF8 => put_utf(l, 8, a),
        g::BS_PUT_UTF16 => put_utf(l, 16, a),
        g::BS_PUT_UTF32 => put_utf(l, 32, a),
        g::BS_UTF8_SIZE | g::BS_UTF16_SIZE => {
            let n = if op == g::BS_UTF8_SIZE { 8 } else { 16 };
            let (s, d) = (l.s(a[1]), l.s(a[2]));
            l.e.op(Op::BsUtfSize, &[l.label(a[0]), count(n), s, d]);
        }
        g::BS_ADD => {
            let (x, y, d) = (l.s(a[1]), l.s(a[2]), l.s(a[4]));
            l.e.op(Op::BsAdd, &[l.label(a[0]), x, y, w(l, a[3]), d]);
        }
        g::BS_INIT_WRITABLE => l.e.op(Op::BsInitWritable, &[]),
        _ => return false,
    }
    true
}

fn w(l: &Lower, o: Operand) -> Arg {
    count(u32::try_from(l.u(o)).unwrap_or(u32::MAX))
}

fn start(l: &mut Lower, fail: Arg, s: Arg, d: Arg, live: Arg) {
    if s == d && matches!(d, Arg::X(_) | Arg::Y(_)) {
        l.e.op(Op::BsContext, &[fail, d, live]);
    } else {
        l.e.op(Op::BsStartMatch, &[fail, s, d, live, count(0)]);
    }
}

fn get(l: &mut Lower, op: Op, a: &[Operand]) {
    let (c, size, d) = (l.s(a[1]), l.s(a[3]), l.s(a[6]));
    let register = matches!(c, Arg::X(_) | Arg::Y(_));
    if let Some(n) = fixed(a[3], l.u(a[4])).filter(|&n| register && (1..=56).contains(&n)) {
        let f = l.u(a[5]) & !(ALIGNED | EXACT);
        // Little-endian numbers that end inside a byte are rare, and not simple.
        if op == Op::BsGetInteger && n == 8 && f & SIGNED == 0 {
            l.e.op(Op::BsGetByte, &[l.label(a[0]), c, d]);
            return;
        }
        if op == Op::BsGetInteger && (f & (LITTLE | NATIVE) == 0 || n % 8 == 0) {
            let n = count(n);
            l.e.op(Op::BsGetSmall, &[l.label(a[0]), c, n, count(f as u32), d]);
            return;
        }
    }
    l.e.op(
        op,
        &[l.label(a[0]), c, size, w(l, a[4]), l.h(a[5]), d, l.h(a[2])],
    );
}

/// Returns the bits of a size that is in the code.
fn fixed(size: Operand, unit: u64) -> Option<u32> {
    let n = match size.untyped() {
        Operand::U(n) => n,
        Operand::Int(n) => u64::try_from(n).ok()?,
        _ => return None,
    };
    u32::try_from(n.checked_mul(unit)?).ok()
}

fn put(l: &mut Lower, op: Op, a: &[Operand]) {
    let (size, v) = (l.s(a[1]), l.s(a[4]));
    l.e.op(op, &[l.label(a[0]), size, w(l, a[2]), l.h(a[3]), v]);
}

fn put_utf(l: &mut Lower, n: u32, a: &[Operand]) {
    let v = l.s(a[2]);
    l.e.op(Op::BsPutUtf, &[l.label(a[0]), count(n), l.h(a[1]), v]);
}

/// Returns flags given as a list of atoms (or nil).
fn flags_of(l: &mut Lower, o: Operand) -> u64 {
    if let Operand::U(n) = o {
        return n;
    }
    let t = l.s(o).word();
    let names = l.env.atoms_of(t);
    let bit = |name: &String| flags::NAMES.iter().find(|f| f.0 == name);
    names.iter().filter_map(bit).fold(0, |all, f| all | f.1)
}

/// Returns a number in a list.
fn number(l: &Lower, o: Operand) -> u64 {
    match o {
        Operand::Int(n) => n as u64,
        o => l.u(o),
    }
}

fn create(l: &mut Lower, a: &[Operand]) {
    let code = l.code;
    let d = l.s(a[4]);
    let mut words = Vec::new();
    for s in code.list(a[5]).chunks_exact(6) {
        let name = match s[0] {
            Operand::Atom(n) => l.file.atom(n),
            _ => "",
        };
        let kind = SEGMENTS.iter().position(|row| row.0 == name);
        let kind = kind.map_or(seg::INTEGER, |k| k as u64);
        let (value, size) = match SEGMENTS[kind as usize].1 {
            Content::Bytes => (
                Arg::N(l.env.strings() + number(l, s[4])),
                Arg::N(number(l, s[5])),
            ),
            Content::Terms => (l.s(s[4]), l.s(s[5])),
        };
        let segment = Segment {
            kind,
            unit: l.u(s[2]),
            flags: flags_of(l, s[3]),
            // For errors: the compiler joins constant segments.
            number: number(l, s[1]) as u32,
            value,
            size,
        };
        words.extend(segment.words().map(Arg::N));
    }
    let n = count(words.len() as u32);
    l.e.op_list(
        Op::BsCreateBin,
        &[l.label(a[0]), d, l.heap(a[1]), l.h(a[2]), n],
        &words,
    );
}

/// Converts a sequence of OTP 24 and before that begins at `i` into one `bs_create_bin`. Its
/// segments have the number 0, so that failures report no cause, like those of the sequence.
/// Returns the number of its instructions. `None`: it stays a sequence, because
/// - it has different labels,
/// - its size is constant and not that of its segments,
/// - an operand is read after its result was written,
/// - there are other instructions between its own, or
/// - it appends in place, and no `test_heap` before it says which registers are live.
pub(super) fn sequence(l: &mut Lower, instrs: &[Instr], i: usize) -> Option<usize> {
    let code = l.code;
    let ins = &instrs[i];
    let a = code.args(ins);
    let (size, heap, live, unit, first, to) = match ins.op {
        g::BS_INIT2 | g::BS_INIT_BITS => {
            let unit = if ins.op == g::BS_INIT2 { 8 } else { 1 };
            (a[1], l.heap(a[2]), l.h(a[3]), unit, None, a[5])
        }
        g::BS_APPEND => {
            let first = (seg::APPEND, l.u(a[4]), a[5]);
            (a[1], l.heap(a[2]), l.h(a[3]), 1, Some(first), a[7])
        }
        g::BS_PRIVATE_APPEND => {
            let before = &instrs[i.checked_sub(1)?];
            if before.op != g::TEST_HEAP {
                return None;
            }
            let b = code.args(before);
            let first = (seg::PRIVATE_APPEND, 1, a[3]);
            let unit = l.u(a[2]);
            (a[1], l.heap(b[0]), l.h(b[1]), unit, Some(first), a[5])
        }
        _ => return None,
    };
    let puts: Vec<&Instr> = instrs[i + 1..]
        .iter()
        .take_while(|p| is_put(p.op))
        .collect();
    let behind = &instrs[i + 1 + puts.len()..];
    let goes_on = |p: &Instr| is_put(p.op) || p.op == g::LABEL || begins_sequence(p.op);
    if behind
        .iter()
        .find(|p| goes_on(p))
        .is_some_and(|p| is_put(p.op))
    {
        return None;
    }
    let mut sum = Some(0u64);
    for p in &puts {
        let b = code.args(p);
        let (bits, reads) = match p.op {
            g::BS_PUT_STRING => (l.u(b[0]).checked_mul(8), &[][..]),
            g::BS_PUT_UTF8 | g::BS_PUT_UTF16 | g::BS_PUT_UTF32 => (None, &b[2..3]),
            _ => (fixed(b[1], l.u(b[2])).map(u64::from), &[b[1], b[4]][..]),
        };
        if reads.iter().any(|r| r.untyped() == to.untyped()) {
            return None;
        }
        if p.op != g::BS_PUT_STRING && b[0] != a[0] {
            return None;
        }
        sum = sum.zip(bits).and_then(|(x, y)| x.checked_add(y));
    }
    let constant = !matches!(size.untyped(), Operand::X(_) | Operand::Y(_));
    if constant && (sum.is_none() || sum != fixed(size, unit).map(u64::from)) {
        return None;
    }
    if puts.is_empty() {
        return None;
    }
    let mut words = Vec::new();
    if let Some((kind, unit, binary)) = first {
        let all = Arg::C(am::ALL.raw());
        words.extend(segment(kind, unit, 0, l.s(binary), all).words());
    }
    for p in &puts {
        words.extend(segment_of(l, p).words());
    }
    let words: Vec<Arg> = words.into_iter().map(Arg::N).collect();
    let d = l.s(to);
    let n = count(words.len() as u32);
    let fail = l.label(a[0]);
    l.e.op_list(Op::BsCreateBin, &[fail, d, heap, live, n], &words);
    Some(1 + puts.len())
}

fn begins_sequence(op: u8) -> bool {
    matches!(
        op,
        g::BS_INIT2 | g::BS_INIT_BITS | g::BS_APPEND | g::BS_PRIVATE_APPEND
    )
}

/// Returns a segment without a number: failures report no cause.
fn segment(kind: u64, unit: u64, flags: u64, value: Arg, size: Arg) -> Segment {
    Segment {
        kind,
        unit,
        flags,
        number: 0,
        value,
        size,
    }
}

/// Returns the segment that an instruction of OTP 24 and before writes.
fn segment_of(l: &mut Lower, put: &Instr) -> Segment {
    let a = l.code.args(put);
    let kind = match put.op {
        g::BS_PUT_STRING => {
            let at = l.env.strings() + l.u(a[1]);
            return segment(seg::STRING, 8, 0, Arg::N(at), Arg::N(l.u(a[0])));
        }
        g::BS_PUT_UTF8 => seg::UTF8,
        g::BS_PUT_UTF16 => seg::UTF16,
        g::BS_PUT_UTF32 => seg::UTF32,
        g::BS_PUT_FLOAT => seg::FLOAT,
        g::BS_PUT_BINARY => seg::BINARY,
        _ => seg::INTEGER,
    };
    match kind {
        seg::UTF8 | seg::UTF16 | seg::UTF32 => segment(kind, 0, l.u(a[1]), l.s(a[2]), Arg::C(NIL)),
        _ => {
            let (size, value) = (l.s(a[1]), l.s(a[4]));
            segment(kind, l.u(a[2]), l.u(a[3]), value, size)
        }
    }
}

/// Whether an instruction of OTP 24 and before writes a segment of the bitstring under
/// construction.
pub(super) fn is_put(op: u8) -> bool {
    matches!(
        op,
        g::BS_PUT_INTEGER
            | g::BS_PUT_FLOAT
            | g::BS_PUT_BINARY
            | g::BS_PUT_STRING
            | g::BS_PUT_UTF8
            | g::BS_PUT_UTF16
            | g::BS_PUT_UTF32
    )
}

fn bs_match(l: &mut Lower, a: &[Operand]) {
    let code = l.code;
    let c = l.s(a[1]);
    let m = code.list(a[2]);
    let mut out = Vec::new();
    let mut i = 0;
    let num = |l: &Lower, k: usize| m.get(k).map_or(0, |&o| number(l, o));
    while i < m.len() {
        let name = match m[i] {
            Operand::Atom(n) => l.file.atom(n),
            _ => "",
        };
        match name {
            "ensure_at_least" => {
                out.extend([cmd::ENSURE_AT_LEAST, num(l, i + 1), num(l, i + 2)].map(Arg::N));
                i += 3;
            }
            "ensure_exactly" => {
                out.extend([cmd::ENSURE_EXACTLY, num(l, i + 1)].map(Arg::N));
                i += 2;
            }
            "integer" | "binary" if i + 5 < m.len() => {
                let code = if name == "integer" {
                    cmd::INTEGER
                } else {
                    cmd::BINARY
                };
                let f = flags_of(l, m[i + 2]);
                let bits = num(l, i + 3).saturating_mul(num(l, i + 4));
                out.extend([code, num(l, i + 1), f, bits].map(Arg::N));
                out.push(l.s(m[i + 5]));
                i += 6;
            }
            "skip" => {
                out.extend([cmd::SKIP, num(l, i + 1)].map(Arg::N));
                i += 2;
            }
            "get_tail" if i + 3 < m.len() => {
                out.extend([cmd::GET_TAIL, num(l, i + 1), num(l, i + 2)].map(Arg::N));
                out.push(l.s(m[i + 3]));
                i += 4;
            }
            "=:=" if i + 3 < m.len() => {
                out.extend([cmd::EQ, num(l, i + 2)].map(Arg::N));
                out.push(l.s(m[i + 3]));
                i += 4;
            }
            // The decoder accepts any atom; one that is no command matches nothing.
            _ => {
                out.extend([cmd::ENSURE_EXACTLY, u64::MAX].map(Arg::N));
                break;
            }
        }
    }
    let n = count(out.len() as u32);
    l.e.op_list(Op::BsMatch, &[l.label(a[0]), c, n], &out);
}
