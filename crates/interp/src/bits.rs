//! Handlers that match bitstrings. A match context refers to the original binary (never a
//! sub-binary), so its position counts from the first bit of the original's bytes. Its layout is in
//! `purlin_term::layout`.
//!
//! # A match
//! `bs_start_match` and its like put a context into a register. The ops that follow read at its
//! position and advance it. A context belongs to the function that matches: it is modified in
//! place, and the program never sees it as a term. A failing test jumps to its label with the
//! position unchanged, so that the next clause reads the same bits.
//!
//! The address of the bytes in a context is valid until the next collection, which updates it. So a
//! handler takes it from the context each time, and never keeps it across a collection. Ops whose
//! rows say `collects` do so last, with the result as a root.

use super::handler::{again, go, go_on, op, out_of_line};
use super::operands::{Dst, Reg, Source, Src, set_source};
use super::room::{collect_after, collect_for};
use super::{exc, instr};
use crate::cx::Cx;
use purlin_isa::bit_fields::cmd;
use purlin_isa::bit_fields::flags::{LITTLE, NATIVE, SIGNED};
use purlin_isa::ops::Op;
use purlin_term::layout::MATCH_CONTEXT_WORDS;
use purlin_term::word::{Subtag, header, header_arity};
use purlin_term::{Alloc, Term, am, arith, bits, layout};

op! {
    op_bs_get_integer => get_integer;
    op_bs_get_float => get_float;
    op_bs_get_binary => get_binary;
    op_bs_skip_bits => skip_bits;
    op_bs_match_string => match_string;
    get_any_utf => get_utf;
    skip_any_utf => skip_utf;
    op_bs_get_tail => get_tail;
    op_bs_match => bs_match;
    op_bs_context_to_binary => context_to_binary;
    op_bs_save => save;
    op_bs_restore => restore;
}

// The common cases end with a jump to the next handler, and leave rare ones to a second handler
// with the same operands.
op! {
    op_bs_start_match = BsStartMatch(cx, pc, e, hp, reds, op) {
        let t = op.src().get(cx, e);
        // Usually it is a context already, from the last round of a loop.
        if t.is_match_context() && op.slots() == 0 {
            op.dst().set(cx, e, t);
            go!(cx, op.next(), e, hp, reds)
        }
        op_bs_start_match_new::<F>(cx, pc, e, hp, reds)
    }
    op_bs_context = BsContext<C1: Dst>(cx, pc, e, hp, reds, op) {
        // Usually it is a context already, from the last round of a loop.
        if op.context().get(cx, e).is_match_context() {
            go!(cx, op.next(), e, hp, reds)
        }
        context::<F, C1, instr::BsContext<C1>>(cx, pc, e, hp, reds)
    }
    op_bs_context_position = BsContextPosition<C1: Dst, P: Dst>(cx, pc, e, hp, reds, op) {
        // In later rounds of a loop the register holds the context. In the first it holds the
        // bitstring, and `context` replaces it.
        let t = op.context().get(cx, e);
        if !t.is_match_context() {
            return context::<F, C1, instr::BsContextPosition<C1, P>>(cx, pc, e, hp, reds);
        }
        op.position().set(cx, e, Term::small(Ctx::of(t).pos() as i64));
        go!(cx, op.next(), e, hp, reds)
    }
    op_bs_next_byte = BsNextByte<C1: Dst, D: Dst>(cx, pc, e, hp, reds, op) {
        let t = op.context().get(cx, e);
        if !t.is_match_context() {
            return context::<F, C1, instr::BsNextByte<C1, D>>(cx, pc, e, hp, reds);
        }
        let c = Ctx::of(t);
        let pos = c.pos();
        // The position is never beyond the end, so the difference is the number of bits left.
        if c.end() - pos < 8 {
            go!(cx, op.fail().to(), e, hp, reds)
        }
        op.dst().set(cx, e, c.byte(pos));
        go!(cx, op.next(), e, hp, reds)
    }
    op_bs_next_byte_table = BsNextByteTable<C1: Dst, D: Dst>(cx, pc, e, hp, reds, op) {
        let t = op.context().get(cx, e);
        if !t.is_match_context() {
            return context::<F, C1, instr::BsNextByteTable<C1, D>>(cx, pc, e, hp, reds);
        }
        let c = Ctx::of(t);
        let pos = c.pos();
        if c.end() - pos < 8 {
            go!(cx, op.fail().to(), e, hp, reds)
        }
        let b = c.byte(pos);
        op.dst().set(cx, e, b);
        let n = op.count() as u64;
        let i = (b.small_value() as u64).wrapping_sub(op.first() as u64);
        // As in `op_jump_table`.
        if i < n {
            let to = *op.table().add(i as usize) as isize;
            if to != 0 {
                go!(cx, pc.offset(to), e, hp, reds)
            }
        }
        go!(cx, op.other().to(), e, hp, reds)
    }
    op_bs_next_byte_position = BsNextBytePosition<C1: Dst, P: Dst, D: Dst>(cx, pc, e, hp, reds, op) {
        let t = op.context().get(cx, e);
        if !t.is_match_context() {
            return context::<F, C1, instr::BsNextBytePosition<C1, P, D>>(cx, pc, e, hp, reds);
        }
        let c = Ctx::of(t);
        let pos = c.pos();
        // Before the test: if it fails, the other clauses continue from that position too.
        op.position().set(cx, e, Term::small(pos as i64));
        if c.end() - pos < 8 {
            go!(cx, op.fail().to(), e, hp, reds)
        }
        op.dst().set(cx, e, c.byte(pos));
        go!(cx, op.next(), e, hp, reds)
    }
    op_bs_get_byte = BsGetByte<C1: Src, D: Dst>(cx, pc, e, hp, reds, op) {
        let c = Ctx::of(op.context().get(cx, e));
        let pos = c.pos();
        if c.end() - pos < 8 {
            go!(cx, op.fail().to(), e, hp, reds)
        }
        op.dst().set(cx, e, c.byte(pos));
        go!(cx, op.next(), e, hp, reds)
    }
    op_bs_get_small = BsGetSmall<C1: Src, D: Dst>(cx, pc, e, hp, reds, op) {
        let c = Ctx::of(op.context().get(cx, e));
        let n = op.bits();
        let (pos, end) = (c.pos(), c.end());
        if end - pos < n {
            go!(cx, op.fail().to(), e, hp, reds)
        }
        // Shifts out the bits before the position in its first byte.
        let off = pos & 7;
        // Reads eight bytes at once if they all belong to the binary. With flags, the bits are
        // reversed or have a sign. `n` is at most 56, so eight bytes contain them all.
        if op.flags() != 0 || end - (pos - off) < 64 {
            return get_small::<F, C1, D>(cx, pc, e, hp, reds);
        }
        c.set_pos(pos + n);
        let p = c.base().add(pos >> 3);
        let bits = u64::from_be((p as *const u64).read_unaligned()) << off;
        op.dst().set(cx, e, Term::small((bits >> (64 - n)) as i64));
        go!(cx, op.next(), e, hp, reds)
    }
    op_bs_skip_fixed = BsSkipFixed<C1: Src>(cx, pc, e, hp, reds, op) {
        let c = Ctx::of(op.context().get(cx, e));
        let n = op.bits();
        if c.left() < n {
            go!(cx, op.fail().to(), e, hp, reds)
        }
        c.set_pos(c.pos() + n);
        go!(cx, op.next(), e, hp, reds)
    }
    op_bs_test_tail = BsTestTail(cx, pc, e, hp, reds, op) {
        let c = Ctx::of(op.context().get(cx, e));
        if c.left() as i64 == op.bits() {
            go!(cx, op.next(), e, hp, reds)
        }
        go!(cx, op.fail().to(), e, hp, reds)
    }
    op_bs_test_unit = BsTestUnit(cx, pc, e, hp, reds, op) {
        let c = Ctx::of(op.context().get(cx, e));
        let unit = op.unit();
        let left = c.left();
        if if unit == 8 { left & 7 == 0 } else { left.is_multiple_of(unit.max(1)) } {
            go!(cx, op.next(), e, hp, reds)
        }
        go!(cx, op.fail().to(), e, hp, reds)
    }
    op_bs_get_utf = BsGetUtf(cx, pc, e, hp, reds, op) {
        let c = Ctx::of(op.context().get(cx, e));
        let pos = c.pos();
        let (v, n) = if op.encoding() == 8 { c.utf8(pos) } else { (0, 0) };
        // Anything but a whole character at a byte boundary with enough bytes left needs a closer
        // look, or doesn't match.
        if n == 0 {
            return get_any_utf::<F>(cx, pc, e, hp, reds);
        }
        c.set_pos(pos + n);
        op.dst().set(cx, e, Term::small(i64::from(v)));
        go!(cx, op.next(), e, hp, reds)
    }
    op_bs_skip_utf = BsSkipUtf(cx, pc, e, hp, reds, op) {
        let c = Ctx::of(op.context().get(cx, e));
        let pos = c.pos();
        let (_, n) = if op.encoding() == 8 { c.utf8(pos) } else { (0, 0) };
        if n == 0 {
            return skip_any_utf::<F>(cx, pc, e, hp, reds);
        }
        c.set_pos(pos + n);
        go!(cx, op.next(), e, hp, reds)
    }
    op_bs_get_position = BsGetPosition(cx, pc, e, hp, reds, op) {
        let c = Ctx::of(op.context().get(cx, e));
        op.dst().set(cx, e, Term::small(c.pos() as i64));
        go!(cx, op.next(), e, hp, reds)
    }
    op_bs_set_position = BsSetPosition(cx, pc, e, hp, reds, op) {
        let c = Ctx::of(op.context().get(cx, e));
        let pos = op.position().get(cx, e);
        let pos = pos.small_value() as usize;
        // Handmade code may name any position.
        if pos <= c.end() {
            c.set_pos(pos);
        }
        go!(cx, op.next(), e, hp, reds)
    }
}
op! {
    op_bs_start_match_new => start_match;
}

op!(
/// The general case of `bs_get_small`, if there are enough bits.
#[inline(never)]
get_small = BsGetSmall<C1: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    let c = Ctx::of(op.context().get(cx, e));
    let n = op.bits();
    let flags = op.flags() as u64;
    let (pos, end) = (c.pos(), c.end());
    c.set_pos(pos + n);
    let p = c.base().add(pos >> 3);
    let off = pos & 7;
    let bits = if end - (pos - off) >= 64 {
        u64::from_be((p as *const u64).read_unaligned()) << off
    } else {
        tail_bits(p, off, n)
    };
    let mut v = bits >> (64 - n);
    // The loader only uses this op for little-endian segments of whole bytes.
    if little(flags) {
        v = v.swap_bytes() >> (64 - n);
    }
    if flags & SIGNED != 0 {
        v = (((v << (64 - n)) as i64) >> (64 - n)) as u64;
    }
    op.dst().set(cx, e, Term::small(v as i64));
    go!(cx, op.next(), e, hp, reds)
});

/// An op that makes a context of the bitstring in a register of kind `C1`, unless it is one.
pub(crate) trait Opens<C1> {
    /// # Safety
    /// As for `at` of the instruction.
    unsafe fn of(pc: *const u64) -> Self;
    fn register(&self) -> Reg<C1>;
    fn kept(&self) -> usize;
    /// Returns where to continue if it is no bitstring; `None` if that is an error.
    fn otherwise(&self) -> Option<*const u64>;
}
macro_rules! opens {
    ($($op:ident<C1 $(, $g:ident)*>, |$i:ident| $otherwise:expr;)*) => {$(
        impl<C1: Dst $(, $g: Dst)*> Opens<C1> for instr::$op<C1 $(, $g)*> {
            /// # Safety
            /// There must be an instruction of this type at `pc`.
            unsafe fn of(pc: *const u64) -> Self {
                Self::at(pc)
            }
            fn register(&self) -> Reg<C1> {
                self.context()
            }
            fn kept(&self) -> usize {
                self.live()
            }
            fn otherwise(&self) -> Option<*const u64> {
                let $i = self;
                $otherwise
            }
        }
    )*};
}
opens! {
    BsContext<C1>, |op| op.fail().given();
    BsContextPosition<C1, P>, |_op| None;
    BsNextByte<C1, D>, |_op| None;
    BsNextByteTable<C1, D>, |_op| None;
    BsNextBytePosition<C1, P, D>, |_op| None;
}

op!(
/// Makes a context of the bitstring in the register of the instruction, and runs the instruction
/// again.
#[inline(never)]
fn context<C1: Dst, I: Opens<C1>>(cx, pc, e, hp, reds) {
    let op = I::of(pc);
    let (t, heap) = (op.register().get(cx, e), &(*cx).heap);
    // Usually there are five free words; then the context of the process need not be updated.
    let room = (e as usize - hp as usize) / 8 >= MATCH_CONTEXT_WORDS + heap.stack_reserve;
    if room
        && !heap.gc_wanted
        && let Some((original, base, pos, end)) = place(t)
    {
        // Without save slots: code that needs some uses `bs_start_match`.
        write_context(hp, original, base, pos, end, 0);
        op.register().set(cx, e, Term::boxed_at(hp));
        return again::<F>(cx, pc, e, hp.add(MATCH_CONTEXT_WORDS), reds);
    }
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds;
    let next = out_of_line(&mut *cx, pc, |cx, pc| start_in_place::<C1, I>(cx, pc));
    // The register now holds a context, perhaps moved by a collection: the instruction takes its
    // fast path.
    if next == pc {
        let (e, hp, reds) = ((*cx).heap.stop, (*cx).heap.htop, (*cx).reds);
        return again::<F>(cx, pc, e, hp, reds);
    }
    go_on::<F>(cx, next)
});
/// The slow path of [`context`]: uses a fragment if the heap is full, and collects afterwards.
unsafe fn start_in_place<C1: Dst, I: Opens<C1>>(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = I::of(pc);
    let e = cx.heap.stop;
    let t = op.register().get(cx, e);
    match context_of(cx, t, 0) {
        Some(c) => {
            op.register().set(cx, e, c);
            collect_after(cx, op.kept(), op.register().dest().also());
            pc
        }
        None => match op.otherwise() {
            Some(to) => to,
            None => exc::error(cx, pc, am::BADARG),
        },
    }
}

/// Returns the `n` bits at bit `off` of `p`, in the upper bits of a word; reads none beyond them.
///
/// # Safety
/// There must be that many bits at `p`, in at most eight bytes.
#[inline(never)]
unsafe fn tail_bits(p: *const u8, off: usize, n: usize) -> u64 {
    // At most eight, since `n` is at most 56 and `off` at most 7.
    let bytes = (off + n).div_ceil(8);
    let mut v = 0u64;
    for i in 0..bytes.min(8) {
        v |= u64::from(*p.add(i)) << (56 - 8 * i);
    }
    v << off
}

/// A match context.
struct Ctx(*mut Term);

impl Ctx {
    fn of(t: Term) -> Ctx {
        Ctx(t.ptr())
    }
    /// The methods read the words drawn in `purlin_term::layout`.
    ///
    /// # Safety
    /// The context must still be valid.
    unsafe fn original(&self) -> Term {
        *self.0.add(layout::MATCH_ORIGINAL)
    }
    /// # Safety
    /// The context must still be valid.
    unsafe fn base(&self) -> *const u8 {
        (*self.0.add(layout::MATCH_BYTES)).raw() as *const u8
    }
    /// # Safety
    /// The context must still be valid.
    unsafe fn pos(&self) -> usize {
        (*self.0.add(layout::MATCH_POSITION)).raw() as usize
    }
    /// # Safety
    /// The context must still be valid, and have at least that many bits.
    unsafe fn set_pos(&self, pos: usize) {
        (self.0.add(layout::MATCH_POSITION) as *mut u64).write(pos as u64)
    }
    /// # Safety
    /// The context must still be valid.
    unsafe fn end(&self) -> usize {
        (*self.0.add(layout::MATCH_END)).raw() as usize
    }
    /// Returns the byte at `pos`, the current position, and advances past it.
    ///
    /// # Safety
    /// There must be eight bits left at `pos`.
    #[inline(always)]
    unsafe fn byte(&self, pos: usize) -> Term {
        self.set_pos(pos + 8);
        let p = self.base().add(pos >> 3);
        let off = pos & 7;
        let mut v = u32::from(*p);
        if off != 0 {
            // If it is not at a byte boundary, the eight bits reach into the next byte.
            v = (v << 8 | u32::from(*p.add(1))) >> (8 - off) & 0xFF;
        }
        Term::small(i64::from(v))
    }
    /// Returns the UTF-8 character at `pos` and its bits. The number of bits is 0 if the general
    /// case must decide: not at a byte boundary, among the last bytes of a text, or no character.
    ///
    /// # Safety
    /// `pos` must not be beyond the end.
    #[inline(always)]
    unsafe fn utf8(&self, pos: usize) -> (u32, usize) {
        let left = self.end() - pos;
        if pos & 7 != 0 || left < 8 {
            return (0, 0);
        }
        let p = self.base().add(pos >> 3);
        let first = u32::from(*p);
        if first < 0x80 {
            return (first, 8);
        }
        if left < 32 {
            return (0, 0);
        }
        let w = u32::from_be((p as *const u32).read_unaligned());
        let (b, c, d) = (w >> 16 & 0x3F, w >> 8 & 0x3F, w & 0x3F);
        match first {
            0xC2..=0xDF if w & 0xC0_0000 == 0x80_0000 => ((first & 0x1F) << 6 | b, 16),
            0xE0..=0xEF if w & 0xC0_C000 == 0x80_8000 => {
                let v = (first & 0xF) << 12 | b << 6 | c;
                // No overlong encoding of a two-byte character, and no surrogate of UTF-16.
                if v < 0x800 || v >> 11 == 0x1B {
                    (0, 0)
                } else {
                    (v, 24)
                }
            }
            0xF0..=0xF4 if w & 0xC0_C0C0 == 0x80_8080 => {
                let v = (first & 7) << 18 | b << 12 | c << 6 | d;
                if !(0x1_0000..=0x10_FFFF).contains(&v) {
                    (0, 0)
                } else {
                    (v, 32)
                }
            }
            _ => (0, 0),
        }
    }
    /// # Safety
    /// The context must still be valid.
    unsafe fn left(&self) -> usize {
        self.end() - self.pos()
    }
    /// # Safety
    /// The context must still be valid, and have more than `n` slots.
    unsafe fn slot(&self, n: usize) -> *mut u64 {
        self.0.add(MATCH_CONTEXT_WORDS + n) as *mut u64
    }
    /// # Safety
    /// The context must still be valid.
    unsafe fn slots(&self) -> usize {
        header_arity((*self.0).raw()) + 1 - MATCH_CONTEXT_WORDS
    }
}

/// Returns the UTF-8 character at the position of a match context, and advances past it; `None` if
/// the general case must decide.
///
/// # Safety
/// `t` must be a match context.
pub(super) unsafe fn next_utf8(t: Term) -> Option<Term> {
    let c = Ctx::of(t);
    let pos = c.pos();
    let (v, n) = c.utf8(pos);
    if n == 0 {
        return None;
    }
    c.set_pos(pos + n);
    Some(Term::small(i64::from(v)))
}

/// Whether the flags of a segment ask for little-endian.
pub(super) fn little(flags: u64) -> bool {
    flags & LITTLE != 0 || (flags & NATIVE != 0 && cfg!(target_endian = "little"))
}

/// Returns a size in units as bits; `None` if it is no size or too large.
fn size_bits(size: Term, unit: usize) -> Option<usize> {
    usize::try_from(size.as_small()?).ok()?.checked_mul(unit)
}

/// # Safety
/// `original` must be a heap binary or a counted one and have at least `end` bits.
unsafe fn new_context(cx: &mut Cx, original: Term, pos: usize, end: usize, slots: usize) -> Term {
    let base = original.as_bits().map_or(std::ptr::null(), |b| b.base);
    let p = cx.heap.alloc(MATCH_CONTEXT_WORDS + slots);
    write_context(p, original, base, pos, end, slots);
    Term::boxed_at(p)
}
/// Writes a context. Its save slots begin with the start position: `context_to_binary` reads the
/// first.
///
/// # Safety
/// There must be words for a context with that many slots. `base` must be the first byte of
/// `original`, which must have at least `end` bits.
#[inline(always)]
unsafe fn write_context(
    p: *mut Term,
    original: Term,
    base: *const u8,
    pos: usize,
    end: usize,
    slots: usize,
) {
    let w = p as *mut u64;
    w.write(header(
        Subtag::MatchContext,
        MATCH_CONTEXT_WORDS - 1 + slots,
    ));
    p.add(layout::MATCH_ORIGINAL).write(original);
    w.add(layout::MATCH_BYTES).write(base as u64);
    w.add(layout::MATCH_POSITION).write(pos as u64);
    w.add(layout::MATCH_END).write(end as u64);
    for i in 0..slots {
        w.add(MATCH_CONTEXT_WORDS + i).write(pos as u64);
    }
}
/// Returns the original of a bitstring, its first byte, and the bits of the original at which the
/// string starts and ends.
///
/// # Safety
/// `t` must be a term of the process.
#[inline(always)]
unsafe fn place(t: Term) -> Option<(Term, *const u8, usize, usize)> {
    let b = t.as_bits()?;
    if t.subtag() != Some(Subtag::SubBin) {
        return Some((t, b.base, 0, b.bit_len));
    }
    let original = *t.ptr().add(layout::SUB_BIN_ORIGINAL);
    // A sub-binary's original is no sub-binary, so one step is enough.
    let base = original.as_bits().map_or(b.base, |o| o.base);
    // Positions count from the first bit of the original.
    let pos = (b.base as usize - base as usize) * 8 + b.bit_offset as usize;
    Some((original, base, pos, pos + b.bit_len))
}

/// Returns `t` if it is a context, or a new context for it; `None` if it is no bitstring.
///
/// # Safety
/// `t` must be a term of the process, and its heap must be valid.
unsafe fn context_of(cx: &mut Cx, t: Term, slots: usize) -> Option<Term> {
    if t.is_match_context() {
        let c = Ctx::of(t);
        // A context of an earlier match with fewer slots: a new one continues at its position.
        if c.slots() < slots {
            return Some(new_context(cx, c.original(), c.pos(), c.end(), slots));
        }
        if slots > 0 {
            c.slot(0).write(c.pos() as u64);
        }
        return Some(t);
    }
    let (original, _, pos, end) = place(t)?;
    Some(new_context(cx, original, pos, end, slots))
}

unsafe fn start_match(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsStartMatch::at(pc);
    let t = op.src().value(cx);
    let Some(made) = context_of(cx, t, op.slots()) else {
        return match op.fail().given() {
            Some(to) => to,
            None => exc::error(cx, pc, am::BADARG),
        };
    };
    op.dst().put(cx, made);
    collect_after(cx, op.live(), op.dst().also());
    op.next()
}

// `bs_get_integer`, `bs_get_float` and `bs_get_binary` have the same operands.
const _: () = {
    let get = Op::BsGetInteger.row();
    let (float, binary) = (Op::BsGetFloat.row(), Op::BsGetBinary.row());
    let mut i = 0;
    while i < get.operands.len() {
        assert!(get.operands[i].kind as u8 == float.operands[i].kind as u8);
        assert!(get.operands[i].kind as u8 == binary.operands[i].kind as u8);
        i += 1;
    }
};

/// Writes `t` as the result of matching `n` bits, and advances the context.
///
/// # Safety
/// `c` must be the context of the instruction, and have that many bits left.
unsafe fn got(cx: &mut Cx, op: instr::BsGetInteger, c: Ctx, n: usize, t: Term) -> *const u64 {
    c.set_pos(c.pos() + n);
    op.dst().put(cx, t);
    collect_after(cx, op.live(), op.dst().also());
    op.next()
}

/// Matches an integer of any size, which may be a bignum. May collect with `live` and the result.
unsafe fn get_integer(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsGetInteger::at(pc);
    let c = Ctx::of(op.context().value(cx));
    let size = op.size().value(cx);
    let Some(n) = size_bits(size, op.unit()).filter(|&n| n <= c.left()) else {
        return op.fail().to();
    };
    let flags = op.flags() as u64;
    let signed = flags & SIGNED != 0;
    match bits::get_integer(&mut cx.heap, c.base(), c.pos(), n, signed, little(flags)) {
        Ok(t) => got(cx, op, c, n, t),
        // A number that is too large for any integer doesn't match.
        Err(_) => op.fail().to(),
    }
}
/// Matches a float of 16, 32 or 64 bits; a value that is not finite doesn't match. May collect
/// likewise.
unsafe fn get_float(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsGetInteger::at(pc);
    let c = Ctx::of(op.context().value(cx));
    let size = op.size().value(cx);
    let Some(n) = size_bits(size, op.unit()).filter(|&n| n <= c.left()) else {
        return op.fail().to();
    };
    match bits::get_float(c.base(), c.pos(), n, little(op.flags() as u64)) {
        Some(f) => {
            let t = cx.float(f);
            got(cx, op, c, n, t)
        }
        None => op.fail().to(),
    }
}
/// Returns bits of a matched binary. They are copied if a heap binary can hold them (as in stock,
/// so that a small part doesn't keep the whole alive), otherwise referred to.
///
/// # Safety
/// `orig` must be a heap binary or a counted one, and have `n` bits at `pos`.
unsafe fn extract(cx: &mut Cx, orig: Term, pos: usize, n: usize) -> Term {
    if n & 7 != 0 || n / 8 > layout::heap_bin_limit() {
        return cx.sub_binary(orig, pos, n);
    }
    let (t, to) = cx.heap_bin(n / 8);
    if let Some(b) = orig.as_bits() {
        let at = b.bit_offset as usize + pos;
        let part = layout::Bits {
            base: b.base.add(at >> 3),
            bit_offset: (at & 7) as u32,
            bit_len: n,
        };
        match part.as_bytes() {
            Some(s) => std::ptr::copy_nonoverlapping(s.as_ptr(), to, s.len()),
            None => std::ptr::copy_nonoverlapping(part.shifted().as_ptr(), to, n / 8),
        }
    }
    t
}
/// Returns the size in bits of a part of the remaining bits. The size may be the atom `all` in the
/// code, but not in a register.
///
/// # Safety
/// `c` must be a valid context.
unsafe fn part_bits(cx: &mut Cx, c: &Ctx, size: Source, unit: usize) -> Option<usize> {
    if size.is(am::ALL) {
        return Some(c.left()).filter(|n| unit <= 1 || n % unit == 0);
    }
    size_bits(size.value(cx), unit).filter(|&n| n <= c.left())
}
/// Matches a part of the bitstring, or all that is left. May collect likewise.
unsafe fn get_binary(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsGetInteger::at(pc);
    let c = Ctx::of(op.context().value(cx));
    let Some(n) = part_bits(cx, &c, op.size(), op.unit()) else {
        return op.fail().to();
    };
    let t = extract(cx, c.original(), c.pos(), n);
    got(cx, op, c, n, t)
}
/// As [`get_binary`], but makes nothing.
unsafe fn skip_bits(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsSkipBits::at(pc);
    let c = Ctx::of(op.context().value(cx));
    match part_bits(cx, &c, op.size(), op.unit()) {
        Some(n) => {
            c.set_pos(c.pos() + n);
            op.next()
        }
        None => op.fail().to(),
    }
}
/// Compares bits of the module with bits of the string, at most 64 at a time. The position advances
/// only if all are equal.
unsafe fn match_string(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsMatchString::at(pc);
    let c = Ctx::of(op.context().value(cx));
    let (n, s) = (op.bits(), op.bytes());
    if c.left() < n {
        return op.fail().to();
    }
    let mut at = 0;
    while at < n {
        let k = (n - at).min(64);
        // Both may begin at any bit, so they are compared as numbers.
        if bits::read_bits(c.base(), c.pos() + at, k) != bits::read_bits(s, at, k) {
            return op.fail().to();
        }
        at += k;
    }
    c.set_pos(c.pos() + n);
    op.next()
}
/// Returns the character at the position and its bits.
///
/// # Safety
/// `c` must be a valid context.
unsafe fn utf(c: &Ctx, kind: usize, flags: u64) -> Option<(u32, usize)> {
    let (base, pos, left) = (c.base(), c.pos(), c.left());
    match kind {
        8 => bits::get_utf8(base, pos, left),
        16 => bits::get_utf16(base, pos, left, little(flags)),
        _ => bits::get_utf32(base, pos, left, little(flags)).map(|v| (v, 32)),
    }
}
unsafe fn get_utf(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsGetUtf::at(pc);
    let c = Ctx::of(op.context().value(cx));
    let (kind, flags) = (op.encoding(), op.flags() as u64);
    match utf(&c, kind, flags) {
        Some((v, n)) => {
            c.set_pos(c.pos() + n);
            op.dst().put(cx, Term::small(i64::from(v)));
            op.next()
        }
        None => op.fail().to(),
    }
}
unsafe fn skip_utf(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsSkipUtf::at(pc);
    let c = Ctx::of(op.context().value(cx));
    let (kind, flags) = (op.encoding(), op.flags() as u64);
    match utf(&c, kind, flags) {
        Some((_, n)) => {
            c.set_pos(c.pos() + n);
            op.next()
        }
        None => op.fail().to(),
    }
}
/// Returns the remaining bits. The context doesn't advance. May collect with `live` and the result.
unsafe fn get_tail(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsGetTail::at(pc);
    let c = Ctx::of(op.context().value(cx));
    let t = extract(cx, c.original(), c.pos(), c.left());
    op.dst().put(cx, t);
    collect_after(cx, op.live(), op.dst().also());
    op.next()
}
unsafe fn save(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsSave::at(pc);
    let c = Ctx::of(op.context().value(cx));
    let n = op.slot();
    // The code itself gives the slot number: a damaged file must not write outside the context.
    if n < c.slots() {
        c.slot(n).write(c.pos() as u64);
    }
    op.next()
}
unsafe fn restore(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsRestore::at(pc);
    let c = Ctx::of(op.context().value(cx));
    let n = op.slot();
    if n < c.slots() {
        c.set_pos(c.slot(n).read() as usize);
    }
    op.next()
}
/// Returns the rest of the bitstring that a match context stands for.
pub fn rest_of_context(cx: &mut Cx, t: Term) -> Term {
    // SAFETY: a match context, whose original is a bitstring with these bits.
    unsafe {
        let c = Ctx::of(t);
        extract(cx, c.original(), c.pos(), c.end() - c.pos())
    }
}

/// Replaces the context in the register by the bitstring from the start of the match on.
unsafe fn context_to_binary(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsContextToBinary::at(pc);
    let t = op.context().value(cx);
    if t.is_match_context() {
        let c = Ctx::of(t);
        // Slot 0 has the position at which the match began.
        let start = if c.slots() > 0 {
            c.slot(0).read() as usize
        } else {
            c.pos()
        };
        let t = extract(cx, c.original(), start, c.end() - start);
        op.context().put(cx, t);
    }
    op.next()
}

/// Maximum size of an integer that may always be made, in bits.
const SAFE_INTEGER_BITS: u64 = 1 << 20;

/// Maximum size of an integer for which nothing is collected, in bits.
const SMALL_INTEGER_BITS: u64 = 64;

/// Whether none of the commands from `i` on can fail if `left` bits are left. Then the failure
/// label is not reached. It may need registers that the commands which make terms do not count as
/// live.
fn is_sure(mut i: usize, n: usize, mut left: usize, word: impl Fn(usize) -> u64) -> bool {
    while i < n {
        let (size, words) = match word(i) {
            cmd::INTEGER if word(i + 3) <= SAFE_INTEGER_BITS => (word(i + 3) as usize, 5),
            cmd::BINARY => (word(i + 3) as usize, 5),
            cmd::SKIP => (word(i + 1) as usize, 2),
            cmd::GET_TAIL => (0, 4),
            _ => return false,
        };
        let Some(rest) = left.checked_sub(size) else {
            return false;
        };
        left = rest;
        i += words;
    }
    true
}

/// Runs the commands of one `bs_match` in order. The context gets its new position at the end: if a
/// command fails it keeps the old one. The commands that make terms have the registers that are
/// live before them, as `live`.
unsafe fn bs_match(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::BsMatch::at(pc);
    let (n, list) = (op.count(), op.commands());
    let word = |k: usize| *list.add(k);
    // A collection moves the context, so context and stack are loaded again after it.
    let mut c = Ctx::of(op.context().value(cx));
    let mut e = cx.heap.stop;
    // Collects here if that is due, since a loop may contain nothing else that collects. After the
    // commands nothing says which registers are live.
    let mut due = cx.heap.gc_wanted;
    let mut i = 0;
    let mut pos = c.pos();
    while i < n {
        let left = c.end() - pos;
        let makes = matches!(word(i), cmd::INTEGER | cmd::BINARY | cmd::GET_TAIL);
        // Makes room for a large integer, as in stock: a process that may not grow that far ends
        // here.
        let need = match word(i) {
            cmd::INTEGER if word(i + 3) > SMALL_INTEGER_BITS => word(i + 3) as usize / 64 + 2,
            _ => 0,
        };
        if makes && (due || need > 0 && cx.heap.free_words() < need) {
            // Before the first command that makes a term: the registers that it names as live are
            // all there are, unless something can still fail.
            due = false;
            if is_sure(i, n, left, word) {
                collect_for(cx, need, word(i + 1) as usize, op.context().also());
                c = Ctx::of(op.context().value(cx));
                e = cx.heap.stop;
            }
        }
        match word(i) {
            cmd::ENSURE_AT_LEAST => {
                let (bits, unit) = (word(i + 1) as usize, word(i + 2).max(1) as usize);
                if left < bits || !(left - bits).is_multiple_of(unit) {
                    return op.fail().to();
                }
                i += 3;
            }
            cmd::ENSURE_EXACTLY => {
                if left as u64 != word(i + 1) {
                    return op.fail().to();
                }
                i += 2;
            }
            cmd::INTEGER => {
                let (flags, size, d) = (word(i + 2), word(i + 3) as usize, word(i + 4));
                if size > left {
                    return op.fail().to();
                }
                let signed = flags & SIGNED != 0;
                match bits::get_integer(&mut cx.heap, c.base(), pos, size, signed, little(flags)) {
                    Ok(t) => set_source(cx, e, d, t),
                    // Too large for any integer.
                    Err(_) => return op.fail().to(),
                }
                pos += size;
                i += 5;
            }
            cmd::BINARY => {
                let (size, d) = (word(i + 3) as usize, word(i + 4));
                if size > left {
                    return op.fail().to();
                }
                let t = extract(cx, c.original(), pos, size);
                set_source(cx, e, d, t);
                pos += size;
                i += 5;
            }
            cmd::SKIP => {
                let size = word(i + 1) as usize;
                if size > left {
                    return op.fail().to();
                }
                pos += size;
                i += 2;
            }
            cmd::GET_TAIL => {
                let t = extract(cx, c.original(), pos, left);
                set_source(cx, e, word(i + 3), t);
                i += 4;
            }
            _ => {
                let size = word(i + 1) as usize;
                if size > left {
                    return op.fail().to();
                }
                let want = Term::from_raw(word(i + 2));
                let got = bits::get_integer(&mut cx.heap, c.base(), pos, size, false, false);
                if !got.is_ok_and(|t| {
                    arith::to_u64(t) == arith::to_u64(want) && t.is_small() == want.is_small()
                }) {
                    return op.fail().to();
                }
                pos += size;
                i += 3;
            }
        }
    }
    c.set_pos(pos);
    op.next()
}
