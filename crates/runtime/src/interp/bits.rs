//! Handlers that match bit strings. A match context refers to the original binary (never a sub-binary), so that its
//! position counts from the first bit of the original's bytes. Layout: `purlin_term::layout`.

use super::operands::*;
use super::{Exit, collect_after, exc, go, outlined, slow_op};
use crate::cx::Cx;
use crate::process::collect::Also;
use crate::trace::calls;
use purlin_loader::lower::bits::{LITTLE, NATIVE, SIGNED, cmd};
use purlin_term::layout::MATCH_CONTEXT_WORDS;
use purlin_term::word::{Subtag, header, header_arity};
use purlin_term::{Alloc, Term, am, arith, bits, layout};

slow_op! {
    op_bs_get_integer => get_integer;
    op_bs_get_float => get_float;
    op_bs_get_binary => get_binary;
    op_bs_skip_bits => skip_bits;
    op_bs_match_string => match_string;
    op_bs_get_utf => get_utf;
    op_bs_skip_utf => skip_utf;
    op_bs_get_tail => get_tail;
    op_bs_match => bs_match;
    op_bs_context_to_binary => context_to_binary;
    op_bs_save => save;
    op_bs_restore => restore;
}

macro_rules! handlers {
    ($($name:ident $(<$($g:ident : $b:ident),*>)? ($cx:ident, $pc:ident, $e:ident, $hp:ident, $reds:ident, $u:ident) $body:block)*) => {$(
        pub unsafe fn $name $(<$($g: $b),*>)? ($cx: *mut Cx, $pc: *const u64, $e: *mut Term, $hp: *mut Term, $reds: i64) -> Exit {
            let $u = ($pc as *const u16).add(1);
            $body
        }
    )*};
}
#[inline(always)]
unsafe fn label(pc: *const u64, u: *const u16) -> *const u64 {
    pc.offset((u as *const i32).read_unaligned() as isize)
}
#[inline(always)]
unsafe fn quad(u: *const u16) -> u64 {
    (u as *const u64).read_unaligned()
}
handlers! {
    op_bs_start_match(cx, pc, e, hp, reds, u) {
        let t = source(cx, e, quad(u.add(2)));
        // Mostly it is a context already, of a loop's last round.
        if t.is_match_context() && *u.add(8) == 0 {
            set_dst(cx, e, *u.add(6), t);
            go!(cx, pc.add(words(9)), e, hp, reds)
        }
        op_bs_start_match_new(cx, pc, e, hp, reds)
    }
    op_bs_context<C1: Dst>(cx, pc, e, hp, reds, u) {
        // Mostly it is a context already, of a loop's last round.
        if C1::get(cx, e, u.add(2)).is_match_context() {
            go!(cx, pc.add(words(4)), e, hp, reds)
        }
        context::<C1, true, 2, 3>(cx, pc, e, hp, reds)
    }
    op_bs_context_position<C1: Dst, P: Dst>(cx, pc, e, hp, reds, u) {
        let t = C1::get(cx, e, u);
        if !t.is_match_context() {
            return context::<C1, false, 0, 2>(cx, pc, e, hp, reds);
        }
        P::set(cx, e, u.add(1), Term::small(Ctx::of(t).pos() as i64));
        go!(cx, pc.add(words(3)), e, hp, reds)
    }
    op_bs_next_byte<C1: Dst, D: Dst>(cx, pc, e, hp, reds, u) {
        let t = C1::get(cx, e, u.add(2));
        if !t.is_match_context() {
            return context::<C1, false, 2, 4>(cx, pc, e, hp, reds);
        }
        let c = Ctx::of(t);
        let pos = c.pos();
        if c.end() - pos < 8 {
            go!(cx, label(pc, u), e, hp, reds)
        }
        D::set(cx, e, u.add(3), c.byte(pos));
        go!(cx, pc.add(words(5)), e, hp, reds)
    }
    op_bs_next_byte_table<C1: Dst, D: Dst>(cx, pc, e, hp, reds, u) {
        let t = C1::get(cx, e, u.add(2));
        if !t.is_match_context() {
            return context::<C1, false, 2, 4>(cx, pc, e, hp, reds);
        }
        let c = Ctx::of(t);
        let pos = c.pos();
        if c.end() - pos < 8 {
            go!(cx, label(pc, u), e, hp, reds)
        }
        let b = c.byte(pos);
        D::set(cx, e, u.add(3), b);
        let n = (u.add(11) as *const u32).read_unaligned() as u64;
        let i = (b.small_value() as u64).wrapping_sub(quad(u.add(7)));
        // As in `op_jump_table`.
        if i < n {
            let to = *pc.add(words(13)).add(i as usize) as isize;
            if to != 0 {
                go!(cx, pc.offset(to), e, hp, reds)
            }
        }
        go!(cx, label(pc, u.add(5)), e, hp, reds)
    }
    op_bs_next_byte_position<C1: Dst, P: Dst, D: Dst>(cx, pc, e, hp, reds, u) {
        let t = C1::get(cx, e, u.add(2));
        if !t.is_match_context() {
            return context::<C1, false, 2, 5>(cx, pc, e, hp, reds);
        }
        let c = Ctx::of(t);
        let pos = c.pos();
        P::set(cx, e, u.add(3), Term::small(pos as i64));
        if c.end() - pos < 8 {
            go!(cx, label(pc, u), e, hp, reds)
        }
        D::set(cx, e, u.add(4), c.byte(pos));
        go!(cx, pc.add(words(6)), e, hp, reds)
    }
    op_bs_get_byte<C1: Src, D: Dst>(cx, pc, e, hp, reds, u) {
        let c = Ctx::of(C1::get(cx, e, u.add(2)));
        let pos = c.pos();
        if c.end() - pos < 8 {
            go!(cx, label(pc, u), e, hp, reds)
        }
        D::set(cx, e, u.add(3), c.byte(pos));
        go!(cx, pc.add(words(4)), e, hp, reds)
    }
    op_bs_get_small<C1: Src, D: Dst>(cx, pc, e, hp, reds, u) {
        let c = Ctx::of(C1::get(cx, e, u.add(2)));
        let n = *u.add(3) as usize;
        let (pos, end) = (c.pos(), c.end());
        if end - pos < n {
            go!(cx, label(pc, u), e, hp, reds)
        }
        let off = pos & 7;
        // Eight bytes are read at once if they all belong to the binary.
        if *u.add(4) != 0 || end - (pos - off) < 64 {
            return get_small::<C1, D>(cx, pc, e, hp, reds);
        }
        c.set_pos(pos + n);
        let p = c.base().add(pos >> 3);
        let bits = u64::from_be((p as *const u64).read_unaligned()) << off;
        D::set(cx, e, u.add(5), Term::small((bits >> (64 - n)) as i64));
        go!(cx, pc.add(words(6)), e, hp, reds)
    }
    op_bs_skip_fixed<C1: Src>(cx, pc, e, hp, reds, u) {
        let c = Ctx::of(C1::get(cx, e, u.add(2)));
        let n = (u.add(3) as *const u32).read_unaligned() as usize;
        if c.left() < n {
            go!(cx, label(pc, u), e, hp, reds)
        }
        c.set_pos(c.pos() + n);
        go!(cx, pc.add(words(5)), e, hp, reds)
    }
    op_bs_test_tail(cx, pc, e, hp, reds, u) {
        let c = Ctx::of(source(cx, e, quad(u.add(2))));
        if c.left() as u64 == quad(u.add(6)) {
            go!(cx, pc.add(words(10)), e, hp, reds)
        }
        go!(cx, label(pc, u), e, hp, reds)
    }
    op_bs_test_unit(cx, pc, e, hp, reds, u) {
        let c = Ctx::of(source(cx, e, quad(u.add(2))));
        let unit = (u.add(6) as *const u32).read_unaligned() as usize;
        let left = c.left();
        if if unit == 8 { left & 7 == 0 } else { left.is_multiple_of(unit.max(1)) } {
            go!(cx, pc.add(words(8)), e, hp, reds)
        }
        go!(cx, label(pc, u), e, hp, reds)
    }
    op_bs_get_position(cx, pc, e, hp, reds, u) {
        let c = Ctx::of(source(cx, e, quad(u)));
        set_dst(cx, e, *u.add(4), Term::small(c.pos() as i64));
        go!(cx, pc.add(words(6)), e, hp, reds)
    }
    op_bs_set_position(cx, pc, e, hp, reds, u) {
        let c = Ctx::of(source(cx, e, quad(u)));
        let pos = source(cx, e, quad(u.add(4)));
        let pos = pos.small_value() as usize;
        if pos <= c.end() {
            c.set_pos(pos);
        }
        go!(cx, pc.add(words(8)), e, hp, reds)
    }
}
slow_op! {
    op_bs_start_match_new => start_match;
}

/// The general case of `bs_get_small`, where there are enough bits.
#[inline(never)]
unsafe fn get_small<C1: Src, D: Dst>(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    let u = (pc as *const u16).add(1);
    let c = Ctx::of(C1::get(cx, e, u.add(2)));
    let n = *u.add(3) as usize;
    let flags = u64::from(*u.add(4));
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
    if little(flags) {
        v = v.swap_bytes() >> (64 - n);
    }
    if flags & SIGNED != 0 {
        v = (((v << (64 - n)) as i64) >> (64 - n)) as u64;
    }
    D::set(cx, e, u.add(5), Term::small(v as i64));
    go!(cx, pc.add(words(6)), e, hp, reds)
}

/// Makes a context of the bit string in the register at operand `AT`, and runs the instruction again. Its label is the
/// first operand, if it may have one; at `LIVE` stands what is live.
#[inline(never)]
unsafe fn context<C1: Dst, const LABEL: bool, const AT: usize, const LIVE: usize>(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    let u = (pc as *const u16).add(1);
    let (t, heap) = (C1::get(cx, e, u.add(AT)), &(*cx).heap);
    let room = (e as usize - hp as usize) / 8 >= MATCH_CONTEXT_WORDS + heap.stack_reserve;
    if room
        && !heap.gc_wanted
        && let Some((original, base, pos, end)) = place(t)
    {
        write_context(hp, original, base, pos, end, 0);
        C1::set(cx, e, u.add(AT), Term::boxed_at(hp));
        return again(cx, pc, e, hp.add(MATCH_CONTEXT_WORDS), reds);
    }
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds;
    let next = outlined(&mut *cx, pc, |cx, pc| {
        start_in_place::<C1, LABEL, AT, LIVE>(cx, pc)
    });
    if next.is_null() {
        return (*cx).interp.exit;
    }
    let (e, hp, reds) = ((*cx).heap.stop, (*cx).heap.htop, (*cx).reds);
    if next == pc {
        return again(cx, pc, e, hp, reds);
    }
    go!(cx, next, e, hp, reds)
}
/// Runs the instruction at `pc` once more.
#[inline(always)]
unsafe fn again(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit {
    if calls::is_breakpoint(pc) {
        // At the entry of a traced function, whose call has been told already.
        let h = super::HANDLERS[calls::original(pc) as usize];
        return h(cx, pc, e, hp, reds);
    }
    go!(cx, pc, e, hp, reds)
}
unsafe fn start_in_place<C1: Dst, const LABEL: bool, const AT: usize, const LIVE: usize>(
    cx: &mut Cx,
    pc: *const u64,
) -> *const u64 {
    let u = (pc as *const u16).add(1);
    let e = cx.heap.stop;
    let t = C1::get(cx, e, u.add(AT));
    match context_of(cx, t, 0) {
        Some(c) => {
            C1::set(cx, e, u.add(AT), c);
            collect_after(cx, *u.add(LIVE) as usize, Also::dst(*u.add(AT) | C1::MARK));
            pc
        }
        None => {
            let to = label(pc, u);
            if LABEL && to != pc {
                to
            } else {
                exc::error(cx, pc, am::BADARG)
            }
        }
    }
}

/// The `n` bits at bit `off` of `p`, in the upper bits of a word; none behind them is read.
#[inline(never)]
unsafe fn tail_bits(p: *const u8, off: usize, n: usize) -> u64 {
    let bytes = (off + n).div_ceil(8);
    let mut v = 0u64;
    for i in 0..bytes.min(8) {
        v |= u64::from(*p.add(i)) << (56 - 8 * i);
    }
    v << off
}

/// A match context in hand.
struct Ctx(*mut Term);

impl Ctx {
    fn of(t: Term) -> Ctx {
        Ctx(t.ptr())
    }
    unsafe fn original(&self) -> Term {
        *self.0.add(1)
    }
    unsafe fn base(&self) -> *const u8 {
        (*self.0.add(2)).raw() as *const u8
    }
    unsafe fn pos(&self) -> usize {
        (*self.0.add(3)).raw() as usize
    }
    unsafe fn set_pos(&self, pos: usize) {
        (self.0.add(3) as *mut u64).write(pos as u64)
    }
    unsafe fn end(&self) -> usize {
        (*self.0.add(4)).raw() as usize
    }
    /// The byte at `pos`, where it is, and goes on behind it.
    #[inline(always)]
    unsafe fn byte(&self, pos: usize) -> Term {
        self.set_pos(pos + 8);
        let p = self.base().add(pos >> 3);
        let off = pos & 7;
        let mut v = u32::from(*p);
        if off != 0 {
            v = (v << 8 | u32::from(*p.add(1))) >> (8 - off) & 0xFF;
        }
        Term::small(i64::from(v))
    }
    unsafe fn left(&self) -> usize {
        self.end() - self.pos()
    }
    unsafe fn slot(&self, n: usize) -> *mut u64 {
        self.0.add(MATCH_CONTEXT_WORDS + n) as *mut u64
    }
    unsafe fn slots(&self) -> usize {
        header_arity((*self.0).raw()) + 1 - MATCH_CONTEXT_WORDS
    }
}

/// Whether the flags of a segment ask for little-endian.
pub(super) fn little(flags: u64) -> bool {
    flags & LITTLE != 0 || (flags & NATIVE != 0 && cfg!(target_endian = "little"))
}

/// Bits of a size in units; `None` if it is no size or too large.
fn size_bits(size: Term, unit: u32) -> Option<usize> {
    usize::try_from(size.as_small()?)
        .ok()?
        .checked_mul(unit as usize)
}

unsafe fn new_context(cx: &mut Cx, original: Term, pos: usize, end: usize, slots: usize) -> Term {
    let base = original.as_bits().map_or(std::ptr::null(), |b| b.base);
    let p = cx.heap.alloc(MATCH_CONTEXT_WORDS + slots);
    write_context(p, original, base, pos, end, slots);
    Term::boxed_at(p)
}
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
    p.add(1).write(original);
    w.add(2).write(base as u64);
    w.add(3).write(pos as u64);
    w.add(4).write(end as u64);
    for i in 0..slots {
        w.add(MATCH_CONTEXT_WORDS + i).write(pos as u64);
    }
}
/// Of a bit string: the original, its first byte, and where in its bits the string starts and ends.
#[inline(always)]
unsafe fn place(t: Term) -> Option<(Term, *const u8, usize, usize)> {
    let b = t.as_bits()?;
    if t.subtag() != Some(Subtag::SubBin) {
        return Some((t, b.base, 0, b.bit_len));
    }
    let original = *t.ptr().add(4);
    let base = original.as_bits().map_or(b.base, |o| o.base);
    let pos = (b.base as usize - base as usize) * 8 + b.bit_offset as usize;
    Some((original, base, pos, pos + b.bit_len))
}

/// A context for `t`, or that it is; `None` for what is no bit string.
unsafe fn context_of(cx: &mut Cx, t: Term, slots: usize) -> Option<Term> {
    if t.is_match_context() {
        let c = Ctx::of(t);
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
    let mut r = Rd::new(pc);
    let to = r.l();
    let t = r.s(cx);
    let d = r.d();
    let live = r.h() as usize;
    let slots = r.h() as usize;
    let Some(made) = context_of(cx, t, slots) else {
        return if to != 0 {
            pc.offset(to)
        } else {
            exc::error(cx, pc, am::BADARG)
        };
    };
    set_dst(cx, cx.heap.stop, d, made);
    collect_after(cx, live, Also::dst(d));
    r.end()
}

/// Operands that the get ops share.
struct Get {
    to: isize,
    c: Ctx,
    size: Term,
    unit: u32,
    flags: u64,
    d: u16,
    live: usize,
    next: *const u64,
}

unsafe fn operands(cx: &mut Cx, pc: *const u64) -> Get {
    let mut r = Rd::new(pc);
    let to = r.l();
    let c = Ctx::of(r.s(cx));
    let size = r.s(cx);
    let unit = r.w();
    let flags = u64::from(r.h());
    let d = r.d();
    let live = r.h() as usize;
    Get {
        to,
        c,
        size,
        unit,
        flags,
        d,
        live,
        next: r.end(),
    }
}

unsafe fn got(cx: &mut Cx, g: &Get, n: usize, t: Term) -> *const u64 {
    g.c.set_pos(g.c.pos() + n);
    set_dst(cx, cx.heap.stop, g.d, t);
    collect_after(cx, g.live, Also::dst(g.d));
    g.next
}

unsafe fn get_integer(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let g = operands(cx, pc);
    let Some(n) = size_bits(g.size, g.unit).filter(|&n| n <= g.c.left()) else {
        return pc.offset(g.to);
    };
    let signed = g.flags & SIGNED != 0;
    match bits::get_integer(
        &mut cx.heap,
        g.c.base(),
        g.c.pos(),
        n,
        signed,
        little(g.flags),
    ) {
        Ok(t) => got(cx, &g, n, t),
        // A number too large for any doesn't match.
        Err(_) => pc.offset(g.to),
    }
}
unsafe fn get_float(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let g = operands(cx, pc);
    let Some(n) = size_bits(g.size, g.unit).filter(|&n| n <= g.c.left()) else {
        return pc.offset(g.to);
    };
    match bits::get_float(g.c.base(), g.c.pos(), n, little(g.flags)) {
        Some(f) => {
            let t = cx.float(f);
            got(cx, &g, n, t)
        }
        None => pc.offset(g.to),
    }
}
/// Bits of a binary that was matched: copied where a heap binary holds them (as in stock, so that a small part doesn't
/// keep the whole), else by reference.
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
unsafe fn get_binary(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let g = operands(cx, pc);
    let left = g.c.left();
    let n = if g.size == am::ALL {
        Some(left).filter(|n| g.unit <= 1 || n % g.unit as usize == 0)
    } else {
        size_bits(g.size, g.unit).filter(|&n| n <= left)
    };
    let Some(n) = n else {
        return pc.offset(g.to);
    };
    let t = extract(cx, g.c.original(), g.c.pos(), n);
    got(cx, &g, n, t)
}
unsafe fn skip_bits(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let to = r.l();
    let c = Ctx::of(r.s(cx));
    let size = r.s(cx);
    let unit = r.w();
    let n = if size == am::ALL {
        Some(c.left()).filter(|n| unit <= 1 || n % unit as usize == 0)
    } else {
        size_bits(size, unit).filter(|&n| n <= c.left())
    };
    match n {
        Some(n) => {
            c.set_pos(c.pos() + n);
            r.end()
        }
        None => pc.offset(to),
    }
}
unsafe fn match_string(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let to = r.l();
    let c = Ctx::of(r.s(cx));
    let n = r.w() as usize;
    let s = r.q() as *const u8;
    if c.left() < n {
        return pc.offset(to);
    }
    let mut at = 0;
    while at < n {
        let k = (n - at).min(64);
        if bits::read_bits(c.base(), c.pos() + at, k) != bits::read_bits(s, at, k) {
            return pc.offset(to);
        }
        at += k;
    }
    c.set_pos(c.pos() + n);
    r.end()
}
/// The character at the position and its bits.
unsafe fn utf(c: &Ctx, kind: u16, flags: u64) -> Option<(u32, usize)> {
    let (base, pos, left) = (c.base(), c.pos(), c.left());
    match kind {
        8 => bits::get_utf8(base, pos, left),
        16 => bits::get_utf16(base, pos, left, little(flags)),
        _ => bits::get_utf32(base, pos, left, little(flags)).map(|v| (v, 32)),
    }
}
unsafe fn get_utf(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let to = r.l();
    let c = Ctx::of(r.s(cx));
    let (kind, flags) = (r.h(), u64::from(r.h()));
    let d = r.d();
    match utf(&c, kind, flags) {
        Some((v, n)) => {
            c.set_pos(c.pos() + n);
            set_dst(cx, cx.heap.stop, d, Term::small(i64::from(v)));
            r.end()
        }
        None => pc.offset(to),
    }
}
unsafe fn skip_utf(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let to = r.l();
    let c = Ctx::of(r.s(cx));
    let (kind, flags) = (r.h(), u64::from(r.h()));
    match utf(&c, kind, flags) {
        Some((_, n)) => {
            c.set_pos(c.pos() + n);
            r.end()
        }
        None => pc.offset(to),
    }
}
unsafe fn get_tail(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let c = Ctx::of(r.s(cx));
    let d = r.d();
    let live = r.h() as usize;
    let t = extract(cx, c.original(), c.pos(), c.left());
    set_dst(cx, cx.heap.stop, d, t);
    collect_after(cx, live, Also::dst(d));
    r.end()
}
unsafe fn save(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let c = Ctx::of(r.s(cx));
    let n = r.h() as usize;
    if n < c.slots() {
        c.slot(n).write(c.pos() as u64);
    }
    r.end()
}
unsafe fn restore(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let c = Ctx::of(r.s(cx));
    let n = r.h() as usize;
    if n < c.slots() {
        c.set_pos(c.slot(n).read() as usize);
    }
    r.end()
}
/// The rest of the bit string that a match context stands for.
pub fn rest_of_context(cx: &mut Cx, t: Term) -> Term {
    // SAFETY: a match context, whose original is a bit string with these bits.
    unsafe {
        let c = Ctx::of(t);
        extract(cx, c.original(), c.pos(), c.end() - c.pos())
    }
}

/// The register gets the bit string from the start of the match on.
unsafe fn context_to_binary(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let w = r.q();
    let t = source(cx, cx.heap.stop, w);
    if t.is_match_context() {
        let c = Ctx::of(t);
        let start = if c.slots() > 0 {
            c.slot(0).read() as usize
        } else {
            c.pos()
        };
        let t = extract(cx, c.original(), start, c.end() - start);
        set_source(cx, cx.heap.stop, w, t);
    }
    r.end()
}

unsafe fn bs_match(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let to = r.l();
    let c = Ctx::of(r.s(cx));
    let n = r.w() as usize;
    let list = r.end();
    let word = |k: usize| *list.add(k);
    let e = cx.heap.stop;
    let mut i = 0;
    let mut pos = c.pos();
    while i < n {
        let left = c.end() - pos;
        match word(i) {
            cmd::ENSURE_AT_LEAST => {
                let (bits, unit) = (word(i + 1) as usize, word(i + 2).max(1) as usize);
                if left < bits || !(left - bits).is_multiple_of(unit) {
                    return pc.offset(to);
                }
                i += 3;
            }
            cmd::ENSURE_EXACTLY => {
                if left as u64 != word(i + 1) {
                    return pc.offset(to);
                }
                i += 2;
            }
            cmd::INTEGER => {
                let (flags, size, d) = (word(i + 2), word(i + 3) as usize, word(i + 4));
                if size > left {
                    return pc.offset(to);
                }
                let signed = flags & SIGNED != 0;
                match bits::get_integer(&mut cx.heap, c.base(), pos, size, signed, little(flags)) {
                    Ok(t) => set_source(cx, e, d, t),
                    Err(_) => return pc.offset(to),
                }
                pos += size;
                i += 5;
            }
            cmd::BINARY => {
                let (size, d) = (word(i + 3) as usize, word(i + 4));
                if size > left {
                    return pc.offset(to);
                }
                let t = extract(cx, c.original(), pos, size);
                set_source(cx, e, d, t);
                pos += size;
                i += 5;
            }
            cmd::SKIP => {
                let size = word(i + 1) as usize;
                if size > left {
                    return pc.offset(to);
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
                    return pc.offset(to);
                }
                let want = Term::from_raw(word(i + 2));
                let got = bits::get_integer(&mut cx.heap, c.base(), pos, size, false, false);
                if !got.is_ok_and(|t| {
                    arith::to_u64(t) == arith::to_u64(want) && t.is_small() == want.is_small()
                }) {
                    return pc.offset(to);
                }
                pos += size;
                i += 3;
            }
        }
    }
    c.set_pos(pos);
    list.add(n)
}
