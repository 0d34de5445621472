//! Equality and order of terms: `=:=`, `==`, `<` and the order of map keys.
//!
//! ```text
//! number < atom < reference < fun < port < pid < tuple < record < map < nil < list < bitstring
//! ```
//! Two orders differ in numbers only. In the *arithmetic* order (`<`, `==`) an integer and a float
//! compare by value, exactly, however large. In the *exact* order (`=:=`, keys of maps) every
//! integer is below every float. Maps compare by size, then by keys in exact order, then by the
//! values of the keys in that order. Native records compare by module, name, whether they are
//! exported, number of fields, field names, and then values, in the order of the declaration.
//!
//! Terms may be nested as deeply as memory allows. [`equal_nested`] has room for [`PENDING`]
//! unfinished objects, and [`ordered`] recurses to a fixed depth, [`NESTED`]; both are enough for
//! nearly all terms. What lies deeper is left to [`equal_any`] and [`order_any`], which keep
//! pending comparisons in a stack of frames.

use crate::atom;
use crate::hash;
use crate::layout::{
    self, BIN_SIZE, Bits, FLATMAP_HEAD_WORDS, FLATMAP_KEYS, HEAP_BIN_HEAD_WORDS, MAP_FLAT, MAP_SIZE,
};
use crate::parts::{hashmap_pairs, pid_parts, port_parts, ref_parts};
use crate::prefetch::prefetch;
use crate::record::Definition;
use crate::release::{self, MAP_KEYS_BY_NUMBER, SIGNED_ZEROS};
use crate::short_bytes::same_bytes;
use crate::word::{Subtag, TAG_BOXED, TAG_LIST, Term, header_arity, header_subtag};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::mem::MaybeUninit;
use std::ptr;

/// `a =:= b`.
#[inline]
pub fn eq_exact(a: Term, b: Term) -> bool {
    if a == b {
        return true;
    }
    if differ::<true>(a, b) {
        return false;
    }
    equal::<true>(a, b)
}

/// `a == b`: an integer equals a float of the same value, except in keys of maps.
#[inline]
pub fn eq(a: Term, b: Term) -> bool {
    if a == b {
        return true;
    }
    if differ::<false>(a, b) {
        return false;
    }
    equal::<false>(a, b)
}

/// The order of `<` and `==`.
#[inline]
pub fn cmp(a: Term, b: Term) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    if a.is_small() && b.is_small() {
        return a.small_value().cmp(&b.small_value());
    }
    if let Some((x, y)) = floats(a, b) {
        return x.partial_cmp(&y).unwrap_or(Ordering::Equal);
    }
    ordered::<false>(a, b, NESTED)
}

/// The order of map keys: [`cmp`] but with all integers below all floats. `Equal` is `=:=`.
#[inline]
pub fn cmp_exact(a: Term, b: Term) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    if a.is_small() && b.is_small() {
        return a.small_value().cmp(&b.small_value());
    }
    if let Some((x, y)) = floats(a, b) {
        return cmp_floats(x, y, true);
    }
    ordered::<true>(a, b, NESTED)
}

/// Both as floats, if they are floats.
#[inline(always)]
fn floats(a: Term, b: Term) -> Option<(f64, f64)> {
    // Both headers are loaded before either is looked at, so that they come from memory at the same
    // time.
    let (x, y) = (a.boxed_header()?, b.boxed_header()?);
    let both = x == y && header_subtag(x) as u8 == Subtag::Float as u8;
    if both {
        a.as_float().zip(b.as_float())
    } else {
        None
    }
}

/// Compares two floats. In exact order, the two zeros are one value, or two since OTP 27.
#[inline]
fn cmp_floats(x: f64, y: f64, exact: bool) -> Ordering {
    match x.partial_cmp(&y).unwrap_or(Ordering::Equal) {
        Ordering::Equal if exact && x == 0.0 && release::has(SIGNED_ZEROS) => x.total_cmp(&y),
        other => other,
    }
}

/// Compares an integer (small or big) with a finite float by value.
pub(crate) fn cmp_int_float(i: Term, f: f64) -> Ordering {
    if let Some(v) = i.as_small() {
        // Beyond 2^60 any float is outside the range of smalls; within it the integer part converts
        // exactly.
        if f >= (1u64 << 60) as f64 {
            return Ordering::Less;
        }
        if f <= -((1u64 << 60) as f64) {
            return Ordering::Greater;
        }
        let t = f.trunc();
        return v
            .cmp(&(t as i64))
            .then_with(|| 0.0f64.partial_cmp(&(f - t)).unwrap_or(Ordering::Equal));
    }
    let Some((negative, digits)) = i.as_big() else {
        return Ordering::Less;
    };
    if negative != (f < 0.0) {
        return if negative {
            Ordering::Less
        } else {
            Ordering::Greater
        };
    }
    let mag = cmp_magnitude(digits, f.abs());
    if negative { mag.reverse() } else { mag }
}

/// Compares a magnitude of at least 2^59 with a finite float of at least 0.
fn cmp_magnitude(digits: &[u64], f: f64) -> Ordering {
    let n = digits.iter().rposition(|&d| d != 0).map_or(0, |i| i + 1);
    let digits = &digits[..n];
    if f < 1.0 {
        return if n == 0 && f == 0.0 {
            Ordering::Equal
        } else if n == 0 {
            Ordering::Less
        } else {
            Ordering::Greater
        };
    }
    let bits = f.to_bits();
    let exp = ((bits >> 52) & 0x7FF) as i64 - 1023;
    let mant = (bits & ((1 << 52) - 1)) | (1 << 52);
    // The highest set bit of the integer against that of the float.
    let top = n as i64 * 64 - 1 - digits.last().map_or(64, |d| d.leading_zeros()) as i64;
    match top.cmp(&exp) {
        Ordering::Equal => {}
        o => return o,
    }
    // Both have 2^exp as their highest bit: compare the 53 bits of the float with the integer's,
    // then the rest.
    let bit = |i: i64| -> u64 {
        if i < 0 {
            0
        } else {
            digits[(i / 64) as usize] >> (i % 64) & 1
        }
    };
    for k in 0..53 {
        match bit(exp - k).cmp(&(mant >> (52 - k) & 1)) {
            Ordering::Equal => {}
            o => return o,
        }
    }
    let rest = exp - 53;
    if rest >= 0 {
        let full = (rest + 1) as usize / 64;
        let part = (rest + 1) as usize % 64;
        if digits[..full].iter().any(|&d| d != 0)
            || part > 0 && digits[full] & ((1u64 << part) - 1) != 0
        {
            return Ordering::Greater;
        }
    }
    Ordering::Equal
}

/// Compares two bignums.
fn cmp_big(a: (bool, &[u64]), b: (bool, &[u64])) -> Ordering {
    match (a.0, b.0) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (neg, _) => {
            let m =
                a.1.len()
                    .cmp(&b.1.len())
                    .then_with(|| a.1.iter().rev().cmp(b.1.iter().rev()));
            if neg { m.reverse() } else { m }
        }
    }
}

/// Compares two numbers by value (arithmetic order).
fn cmp_numbers(a: Term, b: Term, exact: bool) -> Ordering {
    match (a.as_float(), b.as_float()) {
        (Some(x), Some(y)) => cmp_floats(x, y, exact),
        (Some(_), None) if exact => Ordering::Greater,
        (None, Some(_)) if exact => Ordering::Less,
        (Some(x), None) => cmp_int_float(b, x).reverse(),
        (None, Some(y)) => cmp_int_float(a, y),
        (None, None) => match (a.as_small(), b.as_small()) {
            (Some(x), Some(y)) => x.cmp(&y),
            (Some(_), None) => match b.as_big() {
                Some((true, _)) => Ordering::Greater,
                _ => Ordering::Less,
            },
            (None, Some(_)) => match a.as_big() {
                Some((true, _)) => Ordering::Less,
                _ => Ordering::Greater,
            },
            (None, None) => match (a.as_big(), b.as_big()) {
                (Some(x), Some(y)) => cmp_big(x, y),
                _ => Ordering::Equal,
            },
        },
    }
}

/// Place of a term's type in the order of types.
pub(crate) fn rank(t: Term) -> u8 {
    if t.is_list_ptr() {
        return 10;
    }
    if t.is_small() {
        return 0;
    }
    if t.is_atom() {
        return 1;
    }
    if t.is_nil() {
        return 9;
    }
    if t.is_local_pid() {
        return 5;
    }
    if t.is_local_port() {
        return 4;
    }
    match t.subtag() {
        Some(Subtag::PosBig | Subtag::NegBig | Subtag::Float) => 0,
        Some(Subtag::Ref | Subtag::ExtRef) => 2,
        Some(Subtag::Fun) => 3,
        Some(Subtag::ExtPort) => 4,
        Some(Subtag::ExtPid) => 5,
        Some(Subtag::Tuple) => TUPLE,
        Some(Subtag::Record) => 7,
        Some(Subtag::Map) => 8,
        _ => 11,
    }
}

/// The order of a term and the tuples of `arity` elements of which the first is `first`. `Equal` if
/// it is one of them.
pub fn cmp_with_tuples(t: Term, arity: usize, first: Term) -> Ordering {
    match t.as_tuple() {
        Some(elements) => elements.len().cmp(&arity).then_with(|| {
            let own = elements.first();
            own.map_or(Ordering::Equal, |&e| cmp(e, first))
        }),
        None => rank(t).cmp(&TUPLE),
    }
}

/// The rank of tuples.
const TUPLE: u8 = 6;

fn cmp_node(a: (Term, u32), b: (Term, u32)) -> Ordering {
    atom::cmp(a.0, b.0).then_with(|| a.1.cmp(&b.1))
}

fn cmp_pids(a: Term, b: Term) -> Ordering {
    if a.is_local_pid() && b.is_local_pid() {
        return a.pid_data().cmp(&b.pid_data());
    }
    match (pid_parts(a), pid_parts(b)) {
        (Some(x), Some(y)) => {
            x.1.cmp(&y.1)
                .then_with(|| x.0.cmp(&y.0))
                .then_with(|| cmp_node((x.2, x.3), (y.2, y.3)))
        }
        _ => Ordering::Equal,
    }
}

fn cmp_ports(a: Term, b: Term) -> Ordering {
    match (port_parts(a), port_parts(b)) {
        (Some(x), Some(y)) => cmp_node((x.1, x.2), (y.1, y.2)).then_with(|| x.0.cmp(&y.0)),
        _ => Ordering::Equal,
    }
}

fn cmp_refs(a: Term, b: Term) -> Ordering {
    match (ref_parts(a), ref_parts(b)) {
        (Some(x), Some(y)) => cmp_node((x.1, x.2), (y.1, y.2)).then_with(|| {
            // Missing numbers count as 0; the last number weighs most.
            let n = x.0.len().max(y.0.len());
            for i in (0..n).rev() {
                let (p, q) = (
                    x.0.get(i).copied().unwrap_or(0),
                    y.0.get(i).copied().unwrap_or(0),
                );
                if p != q {
                    return p.cmp(&q);
                }
            }
            Ordering::Equal
        }),
        _ => Ordering::Equal,
    }
}

/// Compares all parts of two funs except their environments.
fn cmp_fun_heads(a: Term, b: Term) -> Ordering {
    let (Some(x), Some(y)) = (a.as_fun(), b.as_fun()) else {
        return Ordering::Equal;
    };
    match (x.local(), y.local()) {
        (Some(f), Some(g)) => {
            let same = std::ptr::eq(f, g);
            if same {
                Ordering::Equal
            } else {
                atom::cmp(f.module, g.module)
                    .then_with(|| f.index.cmp(&g.index))
                    .then_with(|| f.old_uniq.cmp(&g.old_uniq))
            }
            .then_with(|| x.env.len().cmp(&y.env.len()))
        }
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => match (x.export(), y.export()) {
            (Some(f), Some(g)) => atom::cmp(f.module, g.module)
                .then_with(|| atom::cmp(f.function, g.function))
                .then_with(|| f.arity.cmp(&g.arity)),
            _ => Ordering::Equal,
        },
    }
}

/// Byte `i` of a bitstring, shifted into place; bits beyond the end are 0.
#[inline]
pub(crate) fn byte_at(b: &Bits, i: usize) -> u8 {
    let s = b.bit_offset;
    let last = (s as usize + b.bit_len).div_ceil(8);
    // SAFETY: bytes below `last` hold bits of the string.
    let v = unsafe {
        let hi = *b.base.add(i);
        if s == 0 {
            hi
        } else {
            let lo = if i + 1 < last { *b.base.add(i + 1) } else { 0 };
            hi << s | lo >> (8 - s)
        }
    };
    let left = b.bit_len - i * 8;
    if left < 8 {
        v & 0xFFu8 << (8 - left)
    } else {
        v
    }
}

/// Compares two bitstrings: by their common bits, then the shorter is less.
pub(crate) fn cmp_bits(a: &Bits, b: &Bits) -> Ordering {
    if let (Some(x), Some(y)) = (a.as_bytes(), b.as_bytes()) {
        // Most differ in their first eight bytes, which need no call.
        if let (Some(p), Some(q)) = (x.first_chunk(), y.first_chunk()) {
            let (p, q) = (u64::from_be_bytes(*p), u64::from_be_bytes(*q));
            if p != q {
                return p.cmp(&q);
            }
        }
        return x.cmp(y);
    }
    let common = a.bit_len.min(b.bit_len);
    for i in 0..common / 8 {
        match byte_at(a, i).cmp(&byte_at(b, i)) {
            Ordering::Equal => {}
            o => return o,
        }
    }
    let tail = common % 8;
    if tail > 0 {
        let m = 0xFFu8 << (8 - tail);
        match (byte_at(a, common / 8) & m).cmp(&(byte_at(b, common / 8) & m)) {
            Ordering::Equal => {}
            o => return o,
        }
    }
    a.bit_len.cmp(&b.bit_len)
}

/// Whether two boxed terms without terms inside are equal; both have the same rank.
fn equal_leaf(a: Term, b: Term, exact: bool) -> bool {
    match rank(a) {
        0 => {
            if exact && a.is_float() != b.is_float() {
                return false;
            }
            cmp_numbers(a, b, exact).is_eq()
        }
        2 => cmp_refs(a, b).is_eq(),
        4 => cmp_ports(a, b).is_eq(),
        5 => cmp_pids(a, b).is_eq(),
        11 => match (a.as_bits(), b.as_bits()) {
            (Some(x), Some(y)) => same_bits(&x, &y),
            _ => false,
        },
        _ => false,
    }
}

/// Whether two bitstrings are equal.
#[inline(never)]
fn equal_bits(a: Term, b: Term) -> bool {
    match (a.as_bits(), b.as_bits()) {
        (Some(x), Some(y)) => same_bits(&x, &y),
        _ => false,
    }
}

#[inline]
fn same_bits(a: &Bits, b: &Bits) -> bool {
    if a.bit_len != b.bit_len {
        return false;
    }
    match (a.as_bytes(), b.as_bytes()) {
        (Some(x), Some(y)) => same_bytes(x, y),
        _ => cmp_bits(a, b).is_eq(),
    }
}

/// Whether records with these definitions are of one kind.
fn same_definition(a: Definition, b: Definition) -> bool {
    a.term() == b.term() || a.identity() == b.identity()
}

/// The order of records, as far as their definitions decide it.
fn cmp_definitions(a: Definition, b: Definition) -> Ordering {
    if same_definition(a, b) {
        return Ordering::Equal;
    }
    let (x, y) = (a.keys(), b.keys());
    atom::cmp(a.module(), b.module())
        .then_with(|| atom::cmp(a.name(), b.name()))
        .then_with(|| a.is_exported().cmp(&b.is_exported()))
        .then_with(|| x.len().cmp(&y.len()))
        .then_with(|| {
            let keys = x.iter().zip(y).find(|(x, y)| x != y);
            keys.map_or(Ordering::Equal, |(&x, &y)| atom::cmp(x, y))
        })
}

/// Depth to which comparisons use the native stack.
const NESTED: u32 = 16;

/// Whether two words that are not the same are those of different terms, whatever they point to. In
/// arithmetic order, an integer may equal a float.
#[inline(always)]
fn differ<const EXACT: bool>(a: Term, b: Term) -> bool {
    match EXACT {
        true => a.is_immed() || b.is_immed(),
        false => a.is_immed() && b.is_immed(),
    }
}

/// Number of cells that few lists exceed.
const SHORT_LIST: usize = 48;

/// Number of runs of words that [`equal_nested`] keeps in its frame while it compares those below.
const PENDING: usize = 16;

/// The object that a boxed term points at.
///
/// The tag is subtracted, not masked: so it becomes part of the addresses of the object's words,
/// and a walk from term to term waits for nothing but memory.
#[inline(always)]
fn object(t: Term) -> *const Term {
    t.raw().wrapping_sub(TAG_BOXED) as *const Term
}

/// The cell that a list points at, as [`object`].
#[inline(always)]
fn cell(t: Term) -> *const Term {
    t.raw().wrapping_sub(TAG_LIST) as *const Term
}

/// The knowledge about a pair of words.
enum Step {
    Different,
    /// They are equal, if what was put aside is.
    Same,
    /// They are equal if these are, which are not the same word and do not [`differ`].
    Pair(Term, Term),
}

/// Rests of objects. The last place is for a run that waits for a function.
type Outer = [MaybeUninit<Run>; PENDING + 1];

/// The words that [`equal_nested`] has still to compare.
struct Walk<'a> {
    /// The rest of the innermost object.
    run: Run,
    /// The rests of those around it. They lie apart, since the compiler keeps a structure in memory
    /// of which a part is found by an index; the others belong in registers.
    outer: &'a mut Outer,
    /// Number of these.
    n: usize,
}

impl Walk<'_> {
    /// Puts the current run aside, unless it is empty, and begins another one.
    ///
    /// # Safety
    /// At most [`PENDING`] runs are aside.
    #[inline(always)]
    unsafe fn enter(&mut self, a: *const Term, b: *const Term, n: usize) {
        if self.run.n > 0 {
            // SAFETY: by the contract there is room for one more.
            unsafe { self.outer.get_unchecked_mut(self.n).write(self.run) };
            self.n += 1;
        }
        self.run = Run { a, b, n };
    }
    /// Puts the current run aside, so that nothing has to be kept while a function compares.
    ///
    /// # Safety
    /// As for [`Walk::enter`].
    #[inline(always)]
    unsafe fn wait(&mut self) {
        // SAFETY: by the contract.
        unsafe { self.enter(ptr::null(), ptr::null(), 0) }
    }
    /// The next pair of words that are not the same; `Same` if there is none.
    #[inline(always)]
    fn next<const EXACT: bool>(&mut self) -> Step {
        loop {
            if self.run.n == 0 {
                let Some(n) = self.n.checked_sub(1) else {
                    return Step::Same;
                };
                self.n = n;
                // SAFETY: those below the number were written, each with words left.
                self.run = unsafe { self.outer.get_unchecked(n).assume_init() };
            }
            let Run { a, b, n } = self.run;
            // SAFETY: words are left of both.
            unsafe {
                self.run = Run {
                    a: a.add(1),
                    b: b.add(1),
                    n: n - 1,
                };
                if *a != *b {
                    return match differ::<EXACT>(*a, *b) {
                        true => Step::Different,
                        false => Step::Pair(*a, *b),
                    };
                }
            }
        }
    }
    /// Compares two terms that are not the same word and do not [`differ`], as far as this takes
    /// no other terms.
    #[inline(always)]
    fn step<const EXACT: bool>(&mut self, x: Term, y: Term) -> Step {
        if self.n == PENDING {
            // SAFETY: there is room for one.
            unsafe { self.wait() };
            return same_if(equal_any(x, y, EXACT));
        }
        if x.is_list_ptr() {
            return match y.is_list_ptr() {
                // SAFETY: both are cells, and there is room.
                true => unsafe { self.lists::<EXACT>(x, y) },
                false => Step::Different,
            };
        }
        if !y.is_boxed() || !EXACT && !x.is_boxed() {
            return same_if(!EXACT && equal_numbers(x, y));
        }
        // SAFETY: both are boxed, and there is room.
        unsafe { self.boxed::<EXACT>(x, y) }
    }
    /// # Safety
    /// Both are cells, and less than [`PENDING`] runs are aside.
    #[inline(always)]
    unsafe fn lists<const EXACT: bool>(&mut self, x: Term, y: Term) -> Step {
        // SAFETY: by the contract; cells are two words.
        unsafe {
            let (x, y) = skip_same_heads(x, y);
            if x == y {
                return Step::Same;
            }
            let both = x.is_list_ptr() && y.is_list_ptr();
            if !both {
                return match differ::<EXACT>(x, y) {
                    true => Step::Different,
                    false => Step::Pair(x, y),
                };
            }
            let (c, d) = (cell(x), cell(y));
            if differ::<EXACT>(*c, *d) {
                return Step::Different;
            }
            self.enter(c.add(1), d.add(1), 1);
            Step::Pair(*c, *d)
        }
    }
    /// # Safety
    /// Both are boxed, and less than [`PENDING`] runs are aside.
    #[inline(always)]
    unsafe fn boxed<const EXACT: bool>(&mut self, x: Term, y: Term) -> Step {
        // SAFETY: by the contract, and the layouts of tuples, binaries and maps.
        unsafe {
            let (c, d) = (object(x), object(y));
            let (h, g) = ((*c).raw(), (*d).raw());
            let is = |s: Subtag| header_subtag(h) as u8 == s as u8;
            if is(Subtag::Tuple) {
                if h != g {
                    return Step::Different;
                }
                self.enter(c.add(1), d.add(1), header_arity(h));
                return Step::Same;
            }
            if h == g && is(Subtag::HeapBin) {
                return same_if(same_heap_bins(c, d));
            }
            if h == g && h == layout::FLATMAP_HEADER {
                let size = (*c.add(MAP_SIZE)).raw() as usize;
                if size != (*d.add(MAP_SIZE)).raw() as usize {
                    return Step::Different;
                }
                if size == 0 {
                    return Step::Same;
                }
                if EXACT {
                    // The tuple of keys stands before the values.
                    self.enter(c.add(FLATMAP_KEYS), d.add(FLATMAP_KEYS), size + 1);
                    return Step::Same;
                }
                let head = FLATMAP_HEAD_WORDS;
                self.enter(c.add(head), d.add(head), size);
                return same_if(eq_exact(*c.add(FLATMAP_KEYS), *d.add(FLATMAP_KEYS)));
            }
            self.wait();
            same_if(equal_boxed::<EXACT>(x, y))
        }
    }
}

#[inline(always)]
fn same_if(equal: bool) -> Step {
    match equal {
        true => Step::Same,
        false => Step::Different,
    }
}

/// Equality of terms that are not the same word and do not [`differ`].
///
/// Most terms that differ do so in an immediate word of the outermost tuple, list or map. That much
/// is compared here, in registers alone, since [`equal_nested`] saves registers and makes a frame.
#[inline(never)]
fn equal<const EXACT: bool>(a: Term, b: Term) -> bool {
    let none = ptr::null();
    if a.is_list_ptr() && b.is_list_ptr() {
        // SAFETY: both are cells.
        let (x, y) = unsafe { skip_same_heads_of_short(a, b) };
        if x == y {
            return true;
        }
        if !x.is_list_ptr() || !y.is_list_ptr() {
            return !differ::<EXACT>(x, y) && equal_nested::<EXACT>(x, y, none, none, 0);
        }
        let (p, q) = (cell(x), cell(y));
        // SAFETY: both are cells, which are two words.
        let ((h, g), rest) = unsafe { ((*p, *q), (p.add(1), q.add(1))) };
        if h == g {
            // The lists are long.
            return equal_nested::<EXACT>(x, y, none, none, 0);
        }
        return !differ::<EXACT>(h, g) && equal_nested::<EXACT>(h, g, rest.0, rest.1, 1);
    }
    if a.is_boxed() && b.is_boxed() {
        let (mut c, mut d) = (object(a), object(b));
        // SAFETY: boxed terms begin with a header.
        let (h, g) = unsafe { ((*c).raw(), (*d).raw()) };
        if header_subtag(h) as u8 == Subtag::Tuple as u8 {
            if h != g {
                return false;
            }
            let mut n = header_arity(h);
            while n > 0 {
                n -= 1;
                // SAFETY: both tuples have that many elements more.
                let (x, y) = unsafe {
                    (c, d) = (c.add(1), d.add(1));
                    (*c, *d)
                };
                if x != y {
                    if differ::<EXACT>(x, y) {
                        return false;
                    }
                    // SAFETY: both tuples have that many elements more, or end there.
                    let rest = unsafe { (c.add(1), d.add(1)) };
                    return equal_nested::<EXACT>(x, y, rest.0, rest.1, n);
                }
            }
            return true;
        }
        if h == g && header_subtag(h) as u8 == Subtag::HeapBin as u8 {
            // SAFETY: both are heap binaries.
            return unsafe { same_heap_bins(c, d) };
        }
        if h == g && h == layout::FLATMAP_HEADER {
            // SAFETY: both are maps with a tuple of keys.
            let sizes = unsafe { ((*c.add(MAP_SIZE)).raw(), (*d.add(MAP_SIZE)).raw()) };
            if sizes.0 != sizes.1 || sizes.0 == 0 {
                return sizes.0 == sizes.1;
            }
            // Values come first: if two at one place differ, the maps do, whatever the keys are.
            for i in FLATMAP_HEAD_WORDS..FLATMAP_HEAD_WORDS + sizes.0 as usize {
                // SAFETY: both have that many values.
                let (x, y) = unsafe { (*c.add(i), *d.add(i)) };
                if x != y {
                    return !differ::<EXACT>(x, y) && equal_nested::<EXACT>(a, b, none, none, 0);
                }
            }
            // SAFETY: the tuple of keys is a field of every flat map.
            let keys = unsafe { (*c.add(FLATMAP_KEYS), *d.add(FLATMAP_KEYS)) };
            return keys.0 == keys.1 || equal::<true>(keys.0, keys.1);
        }
    }
    equal_nested::<EXACT>(a, b, none, none, 0)
}

/// Equality of two terms that are not the same word and do not [`differ`], and of the `n` words
/// each at `rest_a` and `rest_b`. Nearly all terms are compared by this one loop, which
/// calls nothing and keeps the rests of lists, tuples and maps in its frame.
#[inline(never)]
fn equal_nested<const EXACT: bool>(
    a: Term,
    b: Term,
    rest_a: *const Term,
    rest_b: *const Term,
    n: usize,
) -> bool {
    let mut outer: Outer = [const { MaybeUninit::uninit() }; PENDING + 1];
    let mut walk = Walk {
        run: Run {
            a: rest_a,
            b: rest_b,
            n,
        },
        outer: &mut outer,
        n: 0,
    };
    let (mut x, mut y) = (a, b);
    loop {
        match walk.step::<EXACT>(x, y) {
            Step::Different => return false,
            Step::Same => match walk.next::<EXACT>() {
                Step::Different => return false,
                Step::Same => return true,
                Step::Pair(a, b) => (x, y) = (a, b),
            },
            Step::Pair(a, b) => (x, y) = (a, b),
        }
    }
}

/// `a == b` for terms of which one may be an immediate.
#[cold]
fn equal_numbers(a: Term, b: Term) -> bool {
    a.is_number() && b.is_number() && cmp_numbers(a, b, false).is_eq()
}

/// Whether two heap binaries with the same header have the same bytes.
///
/// # Safety
/// Both are heap binaries.
#[inline(always)]
unsafe fn same_heap_bins(c: *const Term, d: *const Term) -> bool {
    // SAFETY: by the contract; bytes are in whole words.
    unsafe {
        let bytes = (*c.add(BIN_SIZE)).raw();
        if bytes != (*d.add(BIN_SIZE)).raw() {
            return false;
        }
        let word = |o: *const Term, i: usize| (*o.add(HEAP_BIN_HEAD_WORDS + i)).raw();
        let whole = (bytes / 8) as usize;
        for i in 0..whole {
            if word(c, i) != word(d, i) {
                return false;
            }
        }
        // What is behind the bytes in their last word is not theirs. The first is least
        // significant.
        let bits = bytes % 8 * 8;
        bits == 0
            || (u64::from_le(word(c, whole)) ^ u64::from_le(word(d, whole))) << (64 - bits) == 0
    }
}

/// As [`equal_nested`], for two boxed terms alone; the first is no tuple.
#[inline(never)]
fn equal_boxed<const EXACT: bool>(a: Term, b: Term) -> bool {
    let (Some(h), Some(g)) = (a.boxed_header(), b.boxed_header()) else {
        return equal_any(a, b, EXACT);
    };
    match header_subtag(h) {
        Subtag::HeapBin | Subtag::RefcBin | Subtag::SubBin => {
            let other = header_subtag(g);
            if !matches!(other, Subtag::HeapBin | Subtag::RefcBin | Subtag::SubBin) {
                return false;
            }
            // Most that differ do so in their length.
            // SAFETY: all of these have the number of their whole bytes in the same word.
            let sizes = unsafe {
                (
                    (*a.ptr().add(BIN_SIZE)).raw(),
                    (*b.ptr().add(BIN_SIZE)).raw(),
                )
            };
            sizes.0 == sizes.1 && equal_bits(a, b)
        }
        // In exact order, floats equal floats, and large integers those of their size.
        Subtag::Float | Subtag::PosBig | Subtag::NegBig => {
            let alike = if EXACT { h == g } else { b.is_number() };
            alike && cmp_numbers(a, b, EXACT).is_eq()
        }
        Subtag::Ref => match same_local_refs(a, b) {
            Some(same) => same,
            None => equal_any(a, b, EXACT),
        },
        _ => equal_any(a, b, EXACT),
    }
}

/// Whether two references of this runtime are equal; None if either term is none.
#[inline]
fn same_local_refs(a: Term, b: Term) -> Option<bool> {
    let a = a.as_ref_view()?.local_nums()?;
    let b = b.as_ref_view()?.local_nums()?;
    Some(a == b)
}

/// Words to compare pairwise: their addresses in both terms, and the number left.
#[derive(Clone, Copy)]
struct Run {
    a: *const Term,
    b: *const Term,
    n: usize,
}

/// A run of words, and whether to compare them exactly.
#[derive(Clone, Copy)]
struct AnyRun {
    a: *const Term,
    b: *const Term,
    n: usize,
    exact: bool,
}

/// Equality of terms of any shape. Hash maps with equal keys have equal trees, so they compare node
/// by node. A finished run of words leaves nothing behind, so that lists and last elements need no
/// stack.
#[inline(never)]
fn equal_any(a: Term, b: Term, exact: bool) -> bool {
    let mut todo: SmallVec<[AnyRun; 16]> = SmallVec::new();
    let mut run = AnyRun {
        a: &raw const a,
        b: &raw const b,
        n: 1,
        exact,
    };
    loop {
        if run.n == 0 {
            match todo.pop() {
                Some(r) => run = r,
                None => return true,
            }
            continue;
        }
        // SAFETY: both have words left, in terms in hand or in the arguments.
        let (x, y) = unsafe { (*run.a, *run.b) };
        // SAFETY: at most one behind the last.
        unsafe {
            run.a = run.a.add(1);
            run.b = run.b.add(1);
        }
        run.n -= 1;
        if x == y {
            continue;
        }
        // An integer may equal a float.
        if x.is_immed() && (run.exact || y.is_immed()) || run.exact && y.is_immed() {
            return false;
        }
        let exact = run.exact;
        let mut enter = |a: *const Term, b: *const Term, n: usize| {
            if n > 0 {
                if run.n > 0 {
                    todo.push(run);
                }
                run = AnyRun { a, b, n, exact };
            }
        };
        if x.is_list_ptr() {
            if !y.is_list_ptr() {
                return false;
            }
            // Cons cells are two words.
            enter(x.ptr(), y.ptr(), 2);
            continue;
        }
        if let Some(p) = x.as_tuple() {
            match y.as_tuple() {
                Some(q) if p.len() == q.len() => enter(p.as_ptr(), q.as_ptr(), p.len()),
                _ => return false,
            }
            continue;
        }
        let kind = rank(x);
        if kind != rank(y) {
            return false;
        }
        match kind {
            3 => {
                if !cmp_fun_heads(x, y).is_eq() {
                    return false;
                }
                if let (Some(f), Some(g)) = (x.as_fun(), y.as_fun()) {
                    enter(f.env.as_ptr(), g.env.as_ptr(), f.env.len());
                }
            }
            7 => {
                let (Some(r), Some(s)) = (x.as_record(), y.as_record()) else {
                    return false;
                };
                if !same_definition(r.definition, s.definition) {
                    return false;
                }
                enter(r.values.as_ptr(), s.values.as_ptr(), r.values.len());
            }
            8 => {
                if run.n > 0 {
                    todo.push(run);
                    run.n = 0;
                }
                if !equal_maps(x, y, exact, &mut todo) {
                    return false;
                }
            }
            _ => {
                if !equal_leaf(x, y, exact) {
                    return false;
                }
            }
        }
    }
}

/// Whether two maps may be equal. What remains to be compared goes to `todo`.
#[inline(always)]
fn equal_maps(x: Term, y: Term, exact: bool, todo: &mut SmallVec<[AnyRun; 16]>) -> bool {
    let mut later = |a: *const Term, b: *const Term, n: usize, exact: bool| {
        todo.push(AnyRun { a, b, n, exact });
    };
    // SAFETY: layout of maps; both have the same header, hence the same number of words.
    unsafe {
        let (p, q) = (x.ptr(), y.ptr());
        let h = (*p).raw();
        if h != (*q).raw() {
            return false;
        }
        let kind = layout::map_kind(h);
        if kind != layout::MAP_NODE && (*p.add(1)).raw() != (*q.add(1)).raw() {
            return false;
        }
        if kind == MAP_FLAT {
            let n = (*p.add(1)).raw() as usize;
            if n > 0 {
                later(p.add(3), q.add(3), n, exact);
                later(p.add(2), q.add(2), 1, true);
            }
            return true;
        }
        let first = if kind == layout::MAP_NODE { 1 } else { 2 };
        for i in first..layout::map_words(p) {
            let (x, y) = (*p.add(i), *q.add(i));
            if x == y {
                continue;
            }
            if x.is_list_ptr() != y.is_list_ptr() {
                return false;
            }
            if x.is_list_ptr() {
                later(x.ptr().add(1), y.ptr().add(1), 1, exact);
                later(x.ptr(), y.ptr(), 1, true);
            } else {
                later(p.add(i), q.add(i), 1, exact);
            }
        }
    }
    true
}

/// The work left once the current pair is known to be equal, or the use made of its result.
enum Frame {
    /// Words to compare pairwise while all are equal.
    Array(*const Term, *const Term, usize),
    /// Return to the arithmetic order, whatever the result.
    ArithmeticAgain,
    LeastKey(Box<LeastKey>),
    Values(Box<Values>),
}

/// Search for the least of the keys that only one of two hash maps has.
struct LeastKey {
    /// The key, and whether the left map has it.
    keys: Vec<(Term, bool)>,
    at: usize,
    best: usize,
    exact: bool,
}

/// Comparison of the values of hash maps with equal keys; the least key whose values differ
/// decides.
struct Values {
    pairs: Vec<(Term, Term, Term)>,
    at: usize,
    best: Option<(Term, Ordering)>,
    /// The result for the values at `at`, while the keys are compared.
    pending: Option<Ordering>,
    exact: bool,
}

// A term may be so deep that there is a frame for each of its words.
const _: () = assert!(size_of::<Frame>() <= 32);

/// Whether keys are in the exact order of terms.
fn in_order(keys: &[Term]) -> bool {
    keys.windows(2)
        .all(|w| match w[0].is_atom() && w[1].is_atom() {
            true => atom::cmp(w[0], w[1]).is_lt(),
            // Others always are.
            false => true,
        })
}

/// The keys that only one of two hash maps has, or their values side by side if they have the same
/// keys.
fn hashmap_frame(a: Term, b: Term, exact: bool) -> Frame {
    let (mut va, mut vb) = (Vec::new(), Vec::new());
    hashmap_pairs(a, &mut va);
    hashmap_pairs(b, &mut vb);
    if va.iter().zip(&vb).all(|(x, y)| eq_exact(x.0, y.0)) {
        return Frame::Values(Box::new(Values {
            pairs: va
                .iter()
                .zip(&vb)
                .filter(|(x, y)| x.1 != y.1)
                .map(|(x, y)| (x.0, x.1, y.1))
                .collect(),
            at: 0,
            best: None,
            pending: None,
            exact,
        }));
    }
    let mut by_hash: std::collections::HashMap<u32, SmallVec<[Term; 1]>> =
        std::collections::HashMap::with_capacity(vb.len());
    for (k, _) in &vb {
        by_hash.entry(hash::internal(*k)).or_default().push(*k);
    }
    let mut keys = Vec::new();
    for (k, _) in &va {
        let found = by_hash.get_mut(&hash::internal(*k)).and_then(|l| {
            let i = l.iter().position(|x| eq_exact(*x, *k))?;
            l.swap_remove(i);
            Some(())
        });
        if found.is_none() {
            keys.push((*k, true));
        }
    }
    for l in by_hash.values() {
        keys.extend(l.iter().map(|k| (*k, false)));
    }
    Frame::LeastKey(Box::new(LeastKey {
        keys,
        at: 1,
        best: 0,
        exact,
    }))
}

/// The order of two words; recurses `depth` levels.
#[inline(always)]
fn order_within<const EXACT: bool>(a: Term, b: Term, depth: u32) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    if a.is_small() && b.is_small() {
        return a.small_value().cmp(&b.small_value());
    }
    match depth.checked_sub(1) {
        Some(d) => ordered::<EXACT>(a, b, d),
        None => order_any(a, b, EXACT),
    }
}

/// The order of two terms that are not the same word, nor small integers both; recurses `depth`
/// levels. Short binaries are compared without a frame.
#[inline(never)]
fn ordered<const EXACT: bool>(a: Term, b: Term, depth: u32) -> Ordering {
    if let (Some(h), Some(g)) = (a.boxed_header(), b.boxed_header())
        && header_subtag(h) as u8 == Subtag::HeapBin as u8
        && header_subtag(g) as u8 == Subtag::HeapBin as u8
    {
        // SAFETY: both are heap binaries.
        return unsafe { order_heap_bins(object(a), object(b)) };
    }
    order_nested::<EXACT>(a, b, depth)
}

/// The order of two heap binaries: by their common bytes, a word at a time, then the shorter is
/// less.
///
/// # Safety
/// Both are heap binaries.
#[inline(always)]
unsafe fn order_heap_bins(c: *const Term, d: *const Term) -> Ordering {
    // SAFETY: by the contract; bytes are in whole words.
    unsafe {
        let (m, n) = ((*c.add(BIN_SIZE)).raw(), (*d.add(BIN_SIZE)).raw());
        // The first byte counts most.
        let word = |o: *const Term, i: usize| u64::from_be((*o.add(HEAP_BIN_HEAD_WORDS + i)).raw());
        let common = m.min(n);
        let whole = (common / 8) as usize;
        for i in 0..whole {
            let (x, y) = (word(c, i), word(d, i));
            if x != y {
                return x.cmp(&y);
            }
        }
        let bits = common % 8 * 8;
        if bits > 0 {
            let (x, y) = (word(c, whole) >> (64 - bits), word(d, whole) >> (64 - bits));
            if x != y {
                return x.cmp(&y);
            }
        }
        m.cmp(&n)
    }
}

/// As [`ordered`]. Tails of lists and last elements need no recursion.
fn order_nested<const EXACT: bool>(mut a: Term, mut b: Term, depth: u32) -> Ordering {
    loop {
        if a.is_list_ptr() && b.is_list_ptr() {
            // SAFETY: both are cons cells, of two words.
            unsafe {
                let (p, q) = (a.ptr(), b.ptr());
                if *p == *q {
                    (a, b) = skip_same_heads(a, b);
                } else {
                    let o = order_within::<EXACT>(*p, *q, depth);
                    if o.is_ne() {
                        return o;
                    }
                    (a, b) = (*p.add(1), *q.add(1));
                }
            }
        } else {
            let (Some(h), Some(g)) = (a.boxed_header(), b.boxed_header()) else {
                // A guard such as `C >= 0, C =< 255` compares terms of all types.
                return match order_leaves(a, b, EXACT) {
                    Some(o) => o,
                    None => order_any(a, b, EXACT),
                };
            };
            let kinds = (header_subtag(h), header_subtag(g));
            if !matches!(kinds, (Subtag::Tuple, Subtag::Tuple)) {
                return order_boxed::<EXACT>(a, b, kinds, depth);
            }
            let n = header_arity(h);
            if h != g {
                return n.cmp(&header_arity(g));
            }
            let (p, q) = (a.ptr(), b.ptr());
            // SAFETY: both are tuples of `n` elements, behind their headers.
            unsafe {
                for i in 1..n {
                    let o = order_within::<EXACT>(*p.add(i), *q.add(i), depth);
                    if o.is_ne() {
                        return o;
                    }
                }
                if n == 0 {
                    return Ordering::Equal;
                }
                (a, b) = (*p.add(n), *q.add(n));
            }
        }
        if a == b {
            return Ordering::Equal;
        }
        if a.is_small() && b.is_small() {
            return a.small_value().cmp(&b.small_value());
        }
    }
}

/// As [`ordered`], for boxed terms of these kinds, which are not both tuples.
#[inline(always)]
fn order_boxed<const EXACT: bool>(
    a: Term,
    b: Term,
    kinds: (Subtag, Subtag),
    depth: u32,
) -> Ordering {
    use Subtag::{Float, HeapBin, Map, RefcBin, SubBin};
    match kinds {
        (HeapBin | RefcBin | SubBin, HeapBin | RefcBin | SubBin) => {
            if let (Some(x), Some(y)) = (a.as_bits(), b.as_bits()) {
                return cmp_bits(&x, &y);
            }
        }
        (Float, Float) => {
            if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
                return cmp_floats(x, y, EXACT);
            }
        }
        (Map, Map) => {
            if let Some(o) = order_flat_maps::<EXACT>(a, b, depth) {
                return o;
            }
        }
        _ => {}
    }
    match order_leaves(a, b, EXACT) {
        Some(o) => o,
        None => order_any(a, b, EXACT),
    }
}

/// The order of two maps, if both are flat and have the same immediates as keys. The least key
/// whose values differ decides.
fn order_flat_maps<const EXACT: bool>(a: Term, b: Term, depth: u32) -> Option<Ordering> {
    let ((keys, x), (others, y)) = (a.as_flatmap()?, b.as_flatmap()?);
    if keys.len() != others.len() {
        return Some(keys.len().cmp(&others.len()));
    }
    if keys
        .iter()
        .zip(others)
        .any(|(k, l)| k != l || !k.is_immed())
    {
        return None;
    }
    let numbered = release::has(MAP_KEYS_BY_NUMBER);
    let mut least: Option<(Term, Ordering)> = None;
    for (&key, (&p, &q)) in keys.iter().zip(x.iter().zip(y)) {
        if p == q {
            continue;
        }
        // Atoms may be in another order among the keys; all other keys are in order.
        let before = |best: Term| {
            numbered && key.is_atom() && best.is_atom() && atom::cmp(key, best).is_lt()
        };
        if least.is_some_and(|(best, _)| !before(best)) {
            continue;
        }
        match order_within::<EXACT>(p, q, depth) {
            Ordering::Equal => {}
            o if numbered => least = Some((key, o)),
            o => return Some(o),
        }
    }
    Some(least.map_or(Ordering::Equal, |(_, o)| o))
}

/// The order of two terms, unless both are of a type that has terms inside.
#[inline]
fn order_leaves(a: Term, b: Term, exact: bool) -> Option<Ordering> {
    if a.is_small() && b.is_small() {
        return Some(a.small_value().cmp(&b.small_value()));
    }
    let (ra, rb) = (rank(a), rank(b));
    if ra != rb {
        return Some(ra.cmp(&rb));
    }
    match ra {
        0 => Some(cmp_numbers(a, b, exact)),
        1 => Some(atom::cmp(a, b)),
        2 => Some(cmp_refs(a, b)),
        4 => Some(cmp_ports(a, b)),
        5 => Some(cmp_pids(a, b)),
        11 => match (a.as_bits(), b.as_bits()) {
            (Some(x), Some(y)) => Some(cmp_bits(&x, &y)),
            _ => None,
        },
        _ => None,
    }
}

/// The order of two terms of any shape.
#[inline(never)]
fn order_any(a: Term, b: Term, exact: bool) -> Ordering {
    let mut todo: SmallVec<[Frame; 8]> = SmallVec::new();
    let (mut a, mut b, mut exact) = (a, b, exact);
    'all: loop {
        let r = 'pair: {
            if a == b {
                break 'pair Ordering::Equal;
            }
            if a.is_small() && b.is_small() {
                break 'pair a.small_value().cmp(&b.small_value());
            }
            if a.is_list_ptr() && b.is_list_ptr() {
                // SAFETY: cons cells are two words.
                unsafe {
                    // Identical heads are skipped, and small integers need no frame.
                    let (x, y) = (*a.ptr(), *b.ptr());
                    if x == y {
                        (a, b) = skip_same_heads(a, b);
                        continue 'all;
                    }
                    if x.is_small() && y.is_small() {
                        break 'pair x.small_value().cmp(&y.small_value());
                    }
                    todo.push(Frame::Array(a.ptr().add(1), b.ptr().add(1), 1));
                    a = x;
                    b = y;
                }
                continue 'all;
            }
            if let (Some(x), Some(y)) = (a.as_tuple(), b.as_tuple()) {
                let o = x.len().cmp(&y.len());
                if o.is_eq()
                    && let Some(i) = x.iter().zip(y).position(|(x, y)| x != y)
                {
                    // The elements before are the same words, and most pairs differ in a small
                    // integer.
                    let (x, y) = (&x[i..], &y[i..]);
                    if x[0].is_small() && y[0].is_small() {
                        break 'pair x[0].small_value().cmp(&y[0].small_value());
                    }
                    if x.len() > 1 {
                        todo.push(Frame::Array(x[1..].as_ptr(), y[1..].as_ptr(), x.len() - 1));
                    }
                    (a, b) = (x[0], y[0]);
                    continue 'all;
                }
                break 'pair o;
            }
            let (ra, rb) = (rank(a), rank(b));
            if ra != rb {
                break 'pair ra.cmp(&rb);
            }
            match order_of_kind(ra, a, b, &mut exact, &mut todo) {
                Ok(pair) => {
                    (a, b) = pair;
                    continue 'all;
                }
                Err(o) => o,
            }
        };
        match resume(&mut todo, &mut exact, r) {
            Ok(pair) => (a, b) = pair,
            Err(o) => return o,
        }
    }
}

/// The order of two terms of the same rank `kind`, which are neither lists nor tuples, or the next
/// pair to compare. What remains to be compared if they are equal so far goes to `todo`.
#[inline(always)]
fn order_of_kind(
    kind: u8,
    a: Term,
    b: Term,
    exact: &mut bool,
    todo: &mut SmallVec<[Frame; 8]>,
) -> Result<(Term, Term), Ordering> {
    let o = match kind {
        0 => cmp_numbers(a, b, *exact),
        1 => atom::cmp(a, b),
        2 => cmp_refs(a, b),
        3 => {
            let o = cmp_fun_heads(a, b);
            if o.is_eq()
                && let (Some(x), Some(y)) = (a.as_fun(), b.as_fun())
                && !x.env.is_empty()
            {
                todo.push(Frame::Array(x.env.as_ptr(), y.env.as_ptr(), x.env.len()));
            }
            o
        }
        4 => cmp_ports(a, b),
        5 => cmp_pids(a, b),
        7 => match (a.as_record(), b.as_record()) {
            (Some(x), Some(y)) => {
                let o = cmp_definitions(x.definition, y.definition);
                if o.is_eq() && !x.values.is_empty() {
                    let (p, q) = (x.values.as_ptr(), y.values.as_ptr());
                    todo.push(Frame::Array(p, q, x.values.len()));
                }
                o
            }
            _ => Ordering::Equal,
        },
        8 => {
            let o = a.map_size().cmp(&b.map_size());
            if o.is_eq() {
                match (a.as_flatmap(), b.as_flatmap()) {
                    // If keys are not in this order, the least one has to be searched for,
                    // as in hash maps.
                    (Some((ka, va)), Some((kb, vb)))
                        if !release::has(MAP_KEYS_BY_NUMBER)
                            || in_order(ka) && (ka == kb || in_order(kb)) =>
                    {
                        if !ka.is_empty() {
                            todo.push(Frame::Array(va.as_ptr(), vb.as_ptr(), va.len()));
                            if !*exact {
                                todo.push(Frame::ArithmeticAgain);
                                *exact = true;
                            }
                            todo.push(Frame::Array(ka.as_ptr(), kb.as_ptr(), ka.len()));
                        }
                    }
                    _ => {
                        let f = hashmap_frame(a, b, *exact);
                        todo.push(f);
                        // The frame takes a result: start with the pair that it would ask
                        // for first.
                        if let Some(Frame::LeastKey(_)) = todo.last() {
                            *exact = true;
                        }
                        return start_frame(todo, exact);
                    }
                }
            }
            o
        }
        // Nils are the same word.
        9 => Ordering::Equal,
        _ => match (a.as_bits(), b.as_bits()) {
            (Some(x), Some(y)) => cmp_bits(&x, &y),
            _ => a.raw().cmp(&b.raw()),
        },
    };
    Err(o)
}

/// Hands the result `r` of a comparison to the frames. Returns the next pair to compare, or the
/// result of all.
#[inline(always)]
fn resume(
    todo: &mut SmallVec<[Frame; 8]>,
    exact: &mut bool,
    mut r: Ordering,
) -> Result<(Term, Term), Ordering> {
    loop {
        match todo.last_mut() {
            None => return Err(r),
            Some(Frame::ArithmeticAgain) => {
                *exact = false;
                todo.pop();
            }
            Some(Frame::Array(p, q, n)) => {
                if r.is_ne() {
                    todo.pop();
                    continue;
                }
                // SAFETY: `n` counts the words left in both arrays.
                let (x, y) = unsafe { (**p, **q) };
                *n -= 1;
                if *n == 0 {
                    todo.pop();
                } else {
                    // SAFETY: at least one more word is left.
                    unsafe {
                        *p = p.add(1);
                        *q = q.add(1);
                    }
                }
                if x != y {
                    return Ok((x, y));
                }
            }
            Some(Frame::LeastKey(f)) => {
                let LeastKey { at, best, .. } = &mut **f;
                // `r` is the order of keys[at] against keys[best].
                if r.is_lt() {
                    *best = *at;
                }
                *at += 1;
                match start_frame(todo, exact) {
                    Ok(pair) => return Ok(pair),
                    Err(o) => r = o,
                }
            }
            Some(Frame::Values(f)) => {
                let Values {
                    pairs,
                    at,
                    best,
                    pending,
                    ..
                } = &mut **f;
                match pending.take() {
                    // `r` is the order of the key at `at` against the least so far.
                    Some(o) => {
                        if r.is_lt() {
                            *best = Some((pairs[*at].0, o));
                        }
                        *at += 1;
                    }
                    // `r` is the order of the values at `at`.
                    None => {
                        if r.is_eq() {
                            *at += 1;
                        } else if let Some((least, _)) = best {
                            *pending = Some(r);
                            *exact = true;
                            return Ok((pairs[*at].0, *least));
                        } else {
                            *best = Some((pairs[*at].0, r));
                            *at += 1;
                        }
                    }
                }
                match start_frame(todo, exact) {
                    Ok(pair) => return Ok(pair),
                    Err(o) => r = o,
                }
            }
        }
    }
}

/// As [`skip_same_heads`], but stops after [`SHORT_LIST`] cells.
///
/// # Safety
/// Both are cons cells.
#[inline(always)]
unsafe fn skip_same_heads_of_short(mut a: Term, mut b: Term) -> (Term, Term) {
    for _ in 0..SHORT_LIST {
        // SAFETY: cons cells are two words.
        unsafe {
            let (p, q) = (cell(a), cell(b));
            if *p != *q {
                break;
            }
            (a, b) = (*p.add(1), *q.add(1));
        }
        if a == b || !a.is_list_ptr() || !b.is_list_ptr() {
            break;
        }
    }
    (a, b)
}

/// Skips the cells of two lists as long as their heads are the same words; returns what follows.
///
/// # Safety
/// Both are cons cells.
#[inline]
unsafe fn skip_same_heads(a: Term, b: Term) -> (Term, Term) {
    // SAFETY: by the contract.
    let (mut a, mut b) = unsafe { skip_same_heads_of_short(a, b) };
    if a == b || !a.is_list_ptr() || !b.is_list_ptr() {
        return (a, b);
    }
    // The cells of a list mostly lie side by side, in either direction: those `AHEAD` cells ahead
    // are prefetched.
    const AHEAD: isize = 32;
    let fetch = |cell: *mut Term, next: *mut Term| {
        let step = (next as isize).wrapping_sub(cell as isize);
        prefetch(next.wrapping_byte_offset(step.wrapping_mul(AHEAD)));
    };
    loop {
        let (p, q) = (a.ptr(), b.ptr());
        // SAFETY: cons cells are two words.
        unsafe {
            if *p != *q {
                return (a, b);
            }
            (a, b) = (*p.add(1), *q.add(1));
        }
        fetch(p, a.ptr());
        fetch(q, b.ptr());
        if a == b || !a.is_list_ptr() || !b.is_list_ptr() {
            return (a, b);
        }
    }
}

/// The next pair that the map frame on top has to compare; if it has none, pops it and returns its
/// result.
fn start_frame(
    todo: &mut SmallVec<[Frame; 8]>,
    exact: &mut bool,
) -> Result<(Term, Term), Ordering> {
    let (done, was_exact) = match todo.last() {
        Some(Frame::LeastKey(f)) => {
            let LeastKey {
                keys,
                at,
                best,
                exact: e,
            } = &**f;
            if let Some((k, _)) = keys.get(*at) {
                *exact = true;
                return Ok((*k, keys[*best].0));
            }
            let o = match keys.get(*best) {
                Some((_, true)) => Ordering::Less,
                Some((_, false)) => Ordering::Greater,
                None => Ordering::Equal,
            };
            (o, *e)
        }
        Some(Frame::Values(f)) => {
            let Values {
                pairs,
                at,
                best,
                exact: e,
                ..
            } = &**f;
            if let Some((_, x, y)) = pairs.get(*at) {
                *exact = *e;
                return Ok((*x, *y));
            }
            (best.map_or(Ordering::Equal, |(_, o)| o), *e)
        }
        _ => return Err(Ordering::Equal),
    };
    *exact = was_exact;
    todo.pop();
    Err(done)
}
