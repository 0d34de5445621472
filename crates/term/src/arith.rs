//! Integer and float arithmetic with Erlang's results and errors, for everything that small-integer
//! fast paths do not handle.
//!
//! Every operation takes terms and makes its result through an [`Alloc`]. Bignums are sign and
//! magnitude; bitwise operations behave as on infinite two's complement. Results are normalised: a
//! value that fits a small is one. Addition, subtraction, shifts and bitwise operations work on
//! digit slices here; multiplication and division of long numbers and conversion to and from text
//! go through `dashu-int`, whose words have the same order and size.

use crate::alloc::{Alloc, big_difference, big_of, big_product, big_sum};
use crate::release::{self, LARGE_SUMS_COUNTED, NEAREST_FLOATS, SIGNED_ZEROS, SMALLER_INTEGERS};
use crate::word::Term;
use dashu_int::UBig;
use std::cmp::Ordering;

/// Reason why an operation has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArithError {
    /// An operand of the wrong type, division by zero, or a float out of range: `badarith`.
    BadArith,
    /// An integer of more than [`max_digits`] digits: `system_limit`.
    SystemLimit,
}

/// The measure of the cost of an operation on large integers, as stock counts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// The longer operand.
    Longer,
    /// Digits of one operand times digits of the other.
    Product,
    /// Digits of the quotient times digits of the divisor.
    Quotient,
    Result,
}

impl Effort {
    /// Digits per reduction, and maximum number of reductions that one operation counts.
    const PER_REDUCTION: usize = 16;
    const MOST: usize = 4000;
    /// Products of digit counts above which a multiplication, or a division, takes some
    /// milliseconds.
    const LONG_PRODUCT: usize = 16 << 20;
    const LONG_QUOTIENT: usize = 4 << 20;

    /// Whether the operation takes long.
    #[inline]
    pub fn is_long(self, x: Term, y: Term) -> bool {
        let (Some((_, x)), Some((_, y))) = (x.as_big(), y.as_big()) else {
            return false;
        };
        let (m, n) = (x.len(), y.len());
        match self {
            // A result that is too large fails at once.
            Effort::Product => {
                m.saturating_mul(n) > Effort::LONG_PRODUCT && m + n <= max_digits() + 1
            }
            Effort::Quotient => m >= n && (m - n + 1).saturating_mul(n) > Effort::LONG_QUOTIENT,
            Effort::Longer | Effort::Result => false,
        }
    }

    /// Maximum number of bytes that the operation takes for its result, which is computed beside
    /// the heap first.
    pub fn bytes(self, x: Term, y: Term) -> usize {
        let digits = |t: Term| t.as_big().map_or(1, |b| b.1.len());
        let (m, n) = (digits(x), digits(y));
        let result = match self {
            Effort::Longer => m.max(n) + 1,
            Effort::Product => m + n,
            Effort::Quotient => m,
            // Shifts by more digits than there may be fail at once.
            Effort::Result => match y.as_small() {
                Some(by) => (m + 1).saturating_add((by.unsigned_abs() / 64) as usize),
                None => m,
            },
        };
        16 * result.min(max_digits() + 1)
    }

    /// Number of reductions for an operation that has made `made` of `x` and `y`; none for small
    /// ones.
    pub fn reductions(self, x: Term, y: Term, made: Term) -> usize {
        let large = x.is_big() || y.is_big() || self == Effort::Result && made.is_big();
        if !large || made.is_float() || !release::has(LARGE_SUMS_COUNTED) {
            return 0;
        }
        let digits = |t: Term| t.as_big().map_or(1, |b| b.1.len());
        let (m, n) = (digits(x), digits(y));
        let all = match self {
            Effort::Longer => m.max(n) + 2,
            Effort::Result => digits(made) + 2,
            Effort::Product => m.saturating_mul(n),
            Effort::Quotient if m < n => return 0,
            Effort::Quotient => (m - n + 1).saturating_mul(n),
        };
        (all / Effort::PER_REDUCTION + 1).min(Effort::MOST)
    }
}

/// Result of an operation.
pub type Arith = Result<Term, ArithError>;

/// Maximum number of 64-bit digits of a bignum in the release.
#[inline]
pub(crate) fn max_digits() -> usize {
    match release::has(SMALLER_INTEGERS) {
        true => (1 << 16) - 1,
        false => (1 << 19) - 1,
    }
}

/// The largest possible integer.
pub fn max_integer<A: Alloc + ?Sized>(a: &mut A) -> Term {
    a.big(false, &vec![u64::MAX; max_digits()])
}

use ArithError::{BadArith, SystemLimit};

/// An integer operand: sign and magnitude, without leading zeros; zero has no digits.
struct Int<'a> {
    neg: bool,
    digit: [u64; 1],
    big: Option<&'a [u64]>,
}

impl Int<'_> {
    #[inline]
    fn of(t: Term) -> Option<Int<'static>> {
        if let Some(v) = t.as_small() {
            return Some(Int {
                neg: v < 0,
                digit: [v.unsigned_abs()],
                big: None,
            });
        }
        let (neg, d) = t.as_big()?;
        Some(Int {
            neg,
            digit: [0],
            big: Some(d),
        })
    }
    #[inline]
    fn mag(&self) -> &[u64] {
        match self.big {
            Some(d) => d,
            None if self.digit[0] == 0 => &[],
            None => &self.digit,
        }
    }
}

/// The value of an integer of at most one digit: hashes, checksums and random numbers mostly
/// compute with these. Sums and bitwise combinations of two such values also fit an `i128`.
#[inline]
fn short(t: Term) -> Option<i128> {
    if let Some(v) = t.as_small() {
        return Some(v as i128);
    }
    match t.as_big()? {
        (neg, &[d]) => Some(if neg { -(d as i128) } else { d as i128 }),
        _ => None,
    }
}

#[inline]
fn shorts(x: Term, y: Term) -> Option<(i128, i128)> {
    Some((short(x)?, short(y)?))
}

fn make_short<A: Alloc + ?Sized>(a: &mut A, v: i128) -> Term {
    match i64::try_from(v) {
        Ok(v) => a.int(v),
        Err(_) => {
            let u = v.unsigned_abs();
            a.big(v < 0, &[u as u64, (u >> 64) as u64])
        }
    }
}

fn make<A: Alloc + ?Sized>(a: &mut A, neg: bool, d: &[u64]) -> Arith {
    let n = significant(d);
    if n > max_digits() {
        return Err(SystemLimit);
    }
    Ok(a.big(neg, &d[..n]))
}

/// As [`make`], for at most `n` digits, all zero, to which `fill` writes. Results of ordinary
/// length need no allocation.
#[inline(always)]
fn make_by<A: Alloc + ?Sized>(
    a: &mut A,
    neg: bool,
    n: usize,
    fill: impl FnOnce(&mut [u64]),
) -> Arith {
    #[inline(always)]
    fn on_stack<const N: usize, A: Alloc + ?Sized>(
        a: &mut A,
        neg: bool,
        n: usize,
        fill: impl FnOnce(&mut [u64]),
    ) -> Arith {
        let mut r = [0; N];
        fill(&mut r[..n]);
        make(a, neg, &r[..n])
    }
    match n {
        0..=6 => on_stack::<6, A>(a, neg, n, fill),
        7..=24 => on_stack::<24, A>(a, neg, n, fill),
        25..=72 => on_stack::<72, A>(a, neg, n, fill),
        _ => {
            let mut r = vec![0; n];
            fill(&mut r);
            make(a, neg, &r)
        }
    }
}

/// Checks the size of an integer that was made with `n` digits.
#[inline(always)]
fn within_limit((t, n): (Term, usize)) -> Arith {
    match n > max_digits() {
        true => Err(SystemLimit),
        false => Ok(t),
    }
}

fn significant(d: &[u64]) -> usize {
    d.iter().rposition(|&x| x != 0).map_or(0, |i| i + 1)
}

/// Compares magnitudes without leading zeros.
pub(crate) fn cmp_mag(a: &[u64], b: &[u64]) -> Ordering {
    a.len()
        .cmp(&b.len())
        .then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

#[inline(always)]
fn add_mag<A: Alloc + ?Sized>(a: &mut A, neg: bool, m: &[u64], n: &[u64]) -> Arith {
    let (m, n) = if m.len() >= n.len() { (m, n) } else { (n, m) };
    within_limit(big_sum(a, neg, m, n))
}

/// Makes `m - n`, where `m >= n`.
#[inline(always)]
fn sub_mag<A: Alloc + ?Sized>(a: &mut A, neg: bool, m: &[u64], n: &[u64]) -> Arith {
    within_limit(big_difference(a, neg, m, n))
}

fn add_signed<A: Alloc + ?Sized>(a: &mut A, x: &Int, y: &Int, y_neg: bool) -> Arith {
    let (m, n) = (x.mag(), y.mag());
    if x.neg == y_neg {
        return add_mag(a, x.neg, m, n);
    }
    match cmp_mag(m, n) {
        Ordering::Equal => Ok(Term::small(0)),
        Ordering::Greater => sub_mag(a, x.neg, m, n),
        Ordering::Less => sub_mag(a, y_neg, n, m),
    }
}

/// The float nearest to a number as stock computes it; None if out of range or not a number.
pub fn to_f64(t: Term) -> Option<f64> {
    if let Some(v) = t.as_small() {
        return Some(v as f64);
    }
    if let Some(f) = t.as_float() {
        return Some(f);
    }
    let (neg, d) = t.as_big()?;
    if release::has(NEAREST_FLOATS) {
        return nearest(d).map(|f| if neg { -f } else { f });
    }
    // Digit by digit, rounding each step: programs see the same last bit as with stock.
    let mut f = 0.0f64;
    for &x in d.iter().rev() {
        f = f * 18446744073709551616.0 + x as f64;
        if !f.is_finite() {
            return None;
        }
    }
    Some(if neg { -f } else { f })
}

/// The float nearest to an integer with these digits; None if it is out of range.
fn nearest(d: &[u64]) -> Option<f64> {
    let (&top, rest) = d.split_last()?;
    let Some((&next, last)) = rest.split_last() else {
        return Some(top as f64);
    };
    // The first 64 bits; of those behind them only matters whether any is set.
    let zeros = top.leading_zeros();
    let (first, cut) = match zeros {
        0 => (top, next),
        n => (top << n | next >> (64 - n), next << n),
    };
    let more = cut != 0 || last.iter().any(|&x| x != 0);
    let shift = rest.len() as i32 * 64 - zeros as i32;
    let f = (first | u64::from(more)) as f64;
    // In two steps: the power alone may be too large where the product is not.
    let f = f * 2f64.powi(shift.min(960)) * 2f64.powi((shift - 960).clamp(0, 1000));
    f.is_finite().then_some(f)
}

fn float<A: Alloc + ?Sized>(a: &mut A, f: f64) -> Arith {
    if f.is_finite() {
        Ok(a.float(f))
    } else {
        Err(BadArith)
    }
}

fn float_op<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term, op: fn(f64, f64) -> f64) -> Arith {
    let x = to_f64(x).ok_or(BadArith)?;
    let y = to_f64(y).ok_or(BadArith)?;
    float(a, op(x, y))
}

/// `X + Y`
pub fn add<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Arith {
    if let Some((m, n)) = shorts(x, y) {
        return Ok(make_short(a, m + n));
    }
    match (Int::of(x), Int::of(y)) {
        (Some(m), Some(n)) => add_signed(a, &m, &n, n.neg),
        _ => float_op(a, x, y, |m, n| m + n),
    }
}

/// `X - Y`
pub fn sub<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Arith {
    if let Some((m, n)) = shorts(x, y) {
        return Ok(make_short(a, m - n));
    }
    match (Int::of(x), Int::of(y)) {
        (Some(m), Some(n)) => add_signed(a, &m, &n, !n.neg),
        _ => float_op(a, x, y, |m, n| m - n),
    }
}

/// Number of digits of the shorter operand from which on the crate's subquadratic algorithms are
/// used.
const SCHOOLBOOK: usize = 24;

#[inline(never)]
fn mul_mag<A: Alloc + ?Sized>(a: &mut A, neg: bool, m: &[u64], n: &[u64]) -> Arith {
    let (m, n) = if m.len() >= n.len() { (m, n) } else { (n, m) };
    if n.len() >= SCHOOLBOOK {
        return make(
            a,
            neg,
            (UBig::from_words(m) * UBig::from_words(n)).as_words(),
        );
    }
    make_by(a, neg, m.len() + n.len(), |r| mul_to(r, m, n))
}

/// Writes `m * n` to `r`, which is zero and as long as both together.
#[inline(always)]
fn mul_to(r: &mut [u64], m: &[u64], n: &[u64]) {
    for (j, &y) in n.iter().enumerate() {
        let (row, rest) = r[j..].split_at_mut(m.len());
        let mut carry = 0u64;
        for (r, &x) in row.iter_mut().zip(m) {
            // At most (2^64-1)^2 + 2 (2^64-1), which is 2^128 - 1.
            let t = x as u128 * y as u128 + *r as u128 + carry as u128;
            *r = t as u64;
            carry = (t >> 64) as u64;
        }
        rest[0] = carry;
    }
}

/// `X * Y`
pub fn mul<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Arith {
    if let Some((m, n)) = shorts(x, y) {
        let p = m.unsigned_abs() * n.unsigned_abs();
        return Ok(a.big((m < 0) != (n < 0), &[p as u64, (p >> 64) as u64]));
    }
    match (Int::of(x), Int::of(y)) {
        (Some(m), Some(n)) => {
            let (p, q) = (m.mag(), n.mag());
            if p.is_empty() || q.is_empty() {
                return Ok(Term::small(0));
            }
            if p.len() + q.len() > max_digits() + 1 {
                return Err(SystemLimit);
            }
            let neg = m.neg != n.neg;
            match (p, q) {
                (&[y], m) | (m, &[y]) => within_limit(big_product(a, neg, m, y)),
                _ => mul_mag(a, neg, p, q),
            }
        }
        _ => float_op(a, x, y, |m, n| m * n),
    }
}

/// Division by a number of one digit, with a multiplication in place of each division, after Möller
/// and Granlund, "Improved division by invariant integers" (2011), algorithms 2 and 4.
struct ByWord {
    /// The divisor, shifted so that its highest bit is set, and the shift count.
    d: u64,
    shift: u32,
    /// `(2^128 - 1) / d - 2^64`
    v: u64,
}

thread_local! {
    /// The last divisor of [`ByWord::new`], shifted, and its `v`.
    static LAST_DIVISOR: std::cell::Cell<(u64, u64)> = const { std::cell::Cell::new((0, 0)) };
}

impl ByWord {
    /// Prepares division by `d`, which is not zero.
    fn new(d: u64) -> ByWord {
        let shift = d.leading_zeros();
        let d = d << shift;
        // The digits of a number are taken off by the same divisor again and again.
        let v = LAST_DIVISOR.with(|last| match last.get() {
            (e, v) if e == d => v,
            _ => {
                let v = (u128::MAX / d as u128 - (1 << 64)) as u64;
                last.set((d, v));
                v
            }
        });
        ByWord { d, shift, v }
    }
    /// Quotient and remainder of `high * 2^64 + low`, where `high < d`.
    #[inline(always)]
    fn step(&self, high: u64, low: u64) -> (u64, u64) {
        let q = self.v as u128 * high as u128 + ((high as u128) << 64 | low as u128);
        let q1 = ((q >> 64) as u64).wrapping_add(1);
        let r = low.wrapping_sub(q1.wrapping_mul(self.d));
        let (q1, r) = match r > q as u64 {
            true => (q1.wrapping_sub(1), r.wrapping_add(self.d)),
            false => (q1, r),
        };
        match r >= self.d {
            true => (q1.wrapping_add(1), r - self.d),
            false => (q1, r),
        }
    }
    /// The remainder of `m`; passes each digit of the quotient to `quotient`, the last one first.
    #[inline(always)]
    fn divide(&self, m: &[u64], mut quotient: impl FnMut(usize, u64)) -> u64 {
        // The part of a digit of the shifted number that comes from the digit below.
        let below = |i: usize| match (i, self.shift) {
            (0, _) | (_, 0) => 0,
            (i, n) => m[i - 1] >> (64 - n),
        };
        let mut r = match (m.last(), self.shift) {
            (Some(&x), 1..) => x >> (64 - self.shift),
            _ => 0,
        };
        for i in (0..m.len()).rev() {
            let q;
            (q, r) = self.step(r, m[i] << self.shift | below(i));
            quotient(i, q);
        }
        r >> self.shift
    }
}

/// `X div Y`
pub fn int_div<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Arith {
    if let (Some(m), Some(n)) = (x.as_small(), y.as_small()) {
        return if n == 0 {
            Err(BadArith)
        } else {
            Ok(a.int(m / n))
        };
    }
    let (m, n) = (Int::of(x).ok_or(BadArith)?, Int::of(y).ok_or(BadArith)?);
    if n.mag().is_empty() {
        return Err(BadArith);
    }
    let neg = m.neg != n.neg;
    let (m, n) = (m.mag(), n.mag());
    match n {
        _ if cmp_mag(m, n) == Ordering::Less => Ok(Term::small(0)),
        &[d] => make_by(a, neg, m.len(), |r| {
            ByWord::new(d).divide(m, |i, q| r[i] = q);
        }),
        _ => make(
            a,
            neg,
            (UBig::from_words(m) / UBig::from_words(n)).as_words(),
        ),
    }
}

/// `X rem Y`: has the sign of `X`.
pub fn int_rem<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Arith {
    if let (Some(m), Some(n)) = (x.as_small(), y.as_small()) {
        return if n == 0 {
            Err(BadArith)
        } else {
            Ok(a.int(m % n))
        };
    }
    let (m, n) = (Int::of(x).ok_or(BadArith)?, Int::of(y).ok_or(BadArith)?);
    if n.mag().is_empty() {
        return Err(BadArith);
    }
    let neg = m.neg;
    let (m, n) = (m.mag(), n.mag());
    match n {
        _ if cmp_mag(m, n) == Ordering::Less => Ok(x),
        &[d] => make(a, neg, &[ByWord::new(d).divide(m, |_, _| ())]),
        _ => make(
            a,
            neg,
            (UBig::from_words(m) % UBig::from_words(n)).as_words(),
        ),
    }
}

/// `X / Y`
pub fn div<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Arith {
    float_op(a, x, y, |m, n| m / n)
}

/// `-X`
pub fn neg<A: Alloc + ?Sized>(a: &mut A, x: Term) -> Arith {
    if let Some(v) = x.as_small() {
        return Ok(a.int(-v));
    }
    if let Some(f) = x.as_float() {
        return Ok(a.float(-f));
    }
    let (neg, d) = x.as_big().ok_or(BadArith)?;
    Ok(a.big(!neg, d))
}

/// `+X`: numbers only.
pub fn plus(x: Term) -> Arith {
    if x.is_number() { Ok(x) } else { Err(BadArith) }
}

/// `abs(X)`. If `x` is no number the caller raises `badarg`, not `badarith`.
pub fn abs<A: Alloc + ?Sized>(a: &mut A, x: Term) -> Arith {
    if let Some(v) = x.as_small() {
        return Ok(if v < 0 { a.int(-v) } else { x });
    }
    if let Some(f) = x.as_float() {
        // Minus zero is not less than zero, and stays in releases where it is the same as zero.
        let negative = f < 0.0 || f.is_sign_negative() && release::has(SIGNED_ZEROS);
        return Ok(if negative { a.float(f.abs()) } else { x });
    }
    let (neg, d) = x.as_big().ok_or(BadArith)?;
    Ok(if neg { a.big(false, d) } else { x })
}

/// Digit `i` of the infinite two's complement form, given the index of the first digit that is not
/// zero.
#[inline]
fn twos(d: &[u64], neg: bool, first: usize, i: usize) -> u64 {
    let v = d.get(i).copied().unwrap_or(0);
    match (neg, i.cmp(&first)) {
        (false, _) => v,
        (true, Ordering::Less) => 0,
        (true, Ordering::Equal) => v.wrapping_neg(),
        (true, Ordering::Greater) => !v,
    }
}

#[inline(always)]
fn bitwise<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term, op: impl Fn(u64, u64) -> u64) -> Arith {
    if let (Some(m), Some(n)) = (x.as_small(), y.as_small()) {
        return Ok(a.int(op(m as u64, n as u64) as i64));
    }
    if let Some((m, n)) = shorts(x, y) {
        let low = op(m as u64, n as u64);
        let high = op((m >> 64) as u64, (n >> 64) as u64);
        return Ok(make_short(a, (high as i128) << 64 | low as i128));
    }
    let (x, y) = (Int::of(x).ok_or(BadArith)?, Int::of(y).ok_or(BadArith)?);
    let (m, n) = (x.mag(), y.mag());
    if !x.neg && !y.neg {
        // All three operations are commutative.
        let (m, n) = if m.len() >= n.len() { (m, n) } else { (n, m) };
        let digits = |i| op(m[i], n.get(i).copied().unwrap_or(0));
        return within_limit(big_of(a, false, m.len(), digits));
    }
    let first = |d: &[u64]| d.iter().position(|&v| v != 0).unwrap_or(0);
    let (fm, fn_) = (first(m), first(n));
    let sign = |neg: bool| if neg { u64::MAX } else { 0 };
    let neg = op(sign(x.neg), sign(y.neg)) != 0;
    // One digit more than either operand, which holds the sign.
    make_by(a, neg, m.len().max(n.len()) + 1, |r| {
        for (i, r) in r.iter_mut().enumerate() {
            *r = op(twos(m, x.neg, fm, i), twos(n, y.neg, fn_, i));
        }
        if neg {
            negate(r);
        }
    })
}

/// Two's complement negation in place.
fn negate(d: &mut [u64]) {
    let mut carry = true;
    for x in d {
        let (v, c) = (!*x).overflowing_add(carry as u64);
        *x = v;
        carry = c;
    }
}

/// `X band Y`
pub fn band<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Arith {
    bitwise(a, x, y, |m, n| m & n)
}
/// `X bor Y`
pub fn bor<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Arith {
    bitwise(a, x, y, |m, n| m | n)
}
/// `X bxor Y`
pub fn bxor<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Arith {
    bitwise(a, x, y, |m, n| m ^ n)
}
/// `bnot X`
pub fn bnot<A: Alloc + ?Sized>(a: &mut A, x: Term) -> Arith {
    if let Some(v) = x.as_small() {
        return Ok(a.int(!v));
    }
    let (neg, d) = x.as_big().ok_or(BadArith)?;
    match neg {
        true => sub_mag(a, false, d, &[1]),
        false => add_mag(a, true, d, &[1]),
    }
}

/// `X bsl Y`; a negative count shifts right.
pub fn bsl<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Arith {
    shift(a, x, y, false)
}
/// `X bsr Y`; a negative count shifts left.
pub fn bsr<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term) -> Arith {
    shift(a, x, y, true)
}

fn shift<A: Alloc + ?Sized>(a: &mut A, x: Term, y: Term, right: bool) -> Arith {
    let v = Int::of(x).ok_or(BadArith)?;
    let count = Int::of(y).ok_or(BadArith)?;
    if v.mag().is_empty() {
        return Ok(Term::small(0));
    }
    // A count beyond smalls shifts everything out, or makes a result too large to represent.
    let n = y.as_small().map_or(u64::MAX, |c| c.unsigned_abs());
    if n == 0 {
        return Ok(x);
    }
    if let Some(v) = short(x) {
        // A value of 64 bits and its sign.
        match count.neg == right {
            true if n <= 62 => return Ok(make_short(a, v << n)),
            false => return Ok(make_short(a, v >> n.min(127))),
            _ => {}
        }
    }
    if count.neg == right {
        shift_left(a, v.neg, v.mag(), n)
    } else {
        shift_right(a, v.neg, v.mag(), n)
    }
}

fn shift_left<A: Alloc + ?Sized>(a: &mut A, neg: bool, d: &[u64], n: u64) -> Arith {
    let words = (n / 64) as usize;
    let bits = (n % 64) as u32;
    if words > max_digits() || d.len() + words > max_digits() + 1 {
        return Err(SystemLimit);
    }
    make_by(a, neg, d.len() + words + 1, |r| {
        let r = &mut r[words..];
        if bits == 0 {
            return r[..d.len()].copy_from_slice(d);
        }
        let mut low = 0;
        for (r, &x) in r.iter_mut().zip(d) {
            *r = x << bits | low;
            low = x >> (64 - bits);
        }
        r[d.len()] = low;
    })
}

fn shift_right<A: Alloc + ?Sized>(a: &mut A, neg: bool, d: &[u64], n: u64) -> Arith {
    let floor = Term::small(if neg { -1 } else { 0 });
    if n / 64 >= d.len() as u64 {
        return Ok(floor);
    }
    let words = (n / 64) as usize;
    let bits = (n % 64) as u32;
    let (cut, kept) = d.split_at(words);
    make_by(a, neg, kept.len() + 1, |r| {
        let mut lost = neg && cut.iter().any(|&x| x != 0);
        if bits == 0 {
            r[..kept.len()].copy_from_slice(kept);
        } else {
            lost |= neg && kept[0] << (64 - bits) != 0;
            let mut high = 0;
            for (r, &x) in r.iter_mut().zip(kept).rev() {
                *r = x >> bits | high;
                high = x << (64 - bits);
            }
        }
        // Rounds towards minus infinity.
        for r in r.iter_mut() {
            (*r, lost) = r.overflowing_add(lost as u64);
            if !lost {
                break;
            }
        }
    })
}

/// The integer with the value of a float, without its fraction. None if it is not finite.
pub(crate) fn from_f64<A: Alloc + ?Sized>(a: &mut A, f: f64) -> Option<Term> {
    if !f.is_finite() {
        return None;
    }
    let f = f.trunc();
    if f.abs() < 9.2e18 {
        return Some(a.int(f as i64));
    }
    let bits = f.to_bits();
    let exp = (bits >> 52 & 0x7FF) as u64;
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    // At this magnitude the exponent exceeds that of the lowest mantissa bit.
    shift_left(a, f < 0.0, &[mantissa], exp - 1075).ok()
}

/// How [`to_integer`] treats a fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    Trunc,
    /// Half away from zero.
    Round,
    Floor,
    Ceil,
}

/// `trunc/1`, `round/1`, `floor/1`, `ceil/1`. None if `x` is no number.
pub fn to_integer<A: Alloc + ?Sized>(a: &mut A, x: Term, how: Rounding) -> Option<Term> {
    if x.is_integer() {
        return Some(x);
    }
    let f = x.as_float()?;
    from_f64(
        a,
        match how {
            Rounding::Trunc => f.trunc(),
            Rounding::Round => f.round(),
            Rounding::Floor => f.floor(),
            Rounding::Ceil => f.ceil(),
        },
    )
}

/// Reason why text is no integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Empty, or a character that is no digit of the base.
    Syntax,
    /// More than [`max_digits`] digits.
    SystemLimit,
}

/// Reads an integer: an optional sign, then one or more digits of `base` (2 to 36, letters of
/// either case).
pub fn parse<A: Alloc + ?Sized>(a: &mut A, text: &[u8], base: u32) -> Result<Term, ParseError> {
    let (neg, digits) = match text {
        [b'-', d @ ..] => (true, d),
        [b'+', d @ ..] => (false, d),
        d => (false, d),
    };
    if digits.is_empty() || !(2..=36).contains(&base) {
        return Err(ParseError::Syntax);
    }
    let mut v = 0u64;
    if base == 10 && digits.len() < 18 {
        // Certainly a small integer.
        for &c in digits {
            let d = c.wrapping_sub(b'0');
            if d > 9 {
                return Err(ParseError::Syntax);
            }
            v = v * 10 + u64::from(d);
        }
        let v = v as i64;
        return Ok(Term::small(if neg { -v } else { v }));
    }
    let mut fits = true;
    for &c in digits {
        let d = (c as char).to_digit(base).ok_or(ParseError::Syntax)?;
        if fits {
            match v
                .checked_mul(base as u64)
                .and_then(|v| v.checked_add(d as u64))
            {
                Some(n) => v = n,
                None => fits = false,
            }
        }
    }
    if fits {
        return Ok(a.big(neg, &[v]));
    }
    let text = std::str::from_utf8(digits).map_err(|_| ParseError::Syntax)?;
    // A digit of base 2 is one bit: text with more characters than this after its zeros is too
    // long.
    let text = text.trim_start_matches('0');
    if text.len() as f64 * (base as f64).log2() > (max_digits() * 64 + 64) as f64 {
        return Err(ParseError::SystemLimit);
    }
    let u = UBig::from_str_radix(text, base).map_err(|_| ParseError::Syntax)?;
    make(a, neg, u.as_words()).map_err(|_| ParseError::SystemLimit)
}

/// Formats a small integer as decimal text, at the end of `room`.
pub fn decimal(v: i64, room: &mut [u8; 20]) -> &[u8] {
    let mut at = room.len();
    let mut u = v.unsigned_abs();
    loop {
        at -= 1;
        room[at] = b'0' + (u % 10) as u8;
        u /= 10;
        if u == 0 {
            break;
        }
    }
    if v < 0 {
        at -= 1;
        room[at] = b'-';
    }
    &room[at..]
}

/// Formats an integer in `base` (2 to 36, upper case). None if `x` is no integer.
pub fn print(x: Term, base: u32) -> Option<String> {
    if let Some(v) = x.as_small() {
        if base == 10 {
            return Some(v.to_string());
        }
        let mut buf = [0u8; 65];
        let mut at = buf.len();
        let mut u = v.unsigned_abs();
        loop {
            at -= 1;
            let d = char::from_digit((u % base as u64) as u32, base)?;
            buf[at] = d.to_ascii_uppercase() as u8;
            u /= base as u64;
            if u == 0 {
                break;
            }
        }
        if v < 0 {
            at -= 1;
            buf[at] = b'-';
        }
        return Some(String::from_utf8_lossy(&buf[at..]).into_owned());
    }
    let (neg, d) = x.as_big()?;
    let mut s = UBig::from_words(d).in_radix(base).to_string();
    s.make_ascii_uppercase();
    if neg {
        s.insert(0, '-');
    }
    Some(s)
}

/// Makes an unsigned or two's complement integer of its bytes, least significant first.
pub fn from_le_bytes<A: Alloc + ?Sized>(a: &mut A, bytes: &[u8], signed: bool) -> Arith {
    let neg = signed && bytes.last().is_some_and(|b| b & 0x80 != 0);
    make_by(a, neg, bytes.len().div_ceil(8), |d| {
        for (d, c) in d.iter_mut().zip(bytes.chunks(8)) {
            let mut w = if neg { [0xFF; 8] } else { [0; 8] };
            w[..c.len()].copy_from_slice(c);
            *d = u64::from_le_bytes(w);
        }
        if neg {
            negate(d);
        }
    })
}

/// Writes the low bytes of the two's complement form of an integer, least significant first.
/// Returns false if `x` is no integer.
pub fn to_le_bytes(x: Term, out: &mut [u8]) -> bool {
    let Some(v) = Int::of(x) else { return false };
    let d = v.mag();
    let first = d.iter().position(|&v| v != 0).unwrap_or(0);
    for (i, c) in out.chunks_mut(8).enumerate() {
        let w = if d.is_empty() {
            0
        } else {
            twos(d, v.neg, first, i)
        };
        c.copy_from_slice(&w.to_le_bytes()[..c.len()]);
    }
    true
}

/// The value of an integer if it fits; None otherwise.
pub fn to_i64(x: Term) -> Option<i64> {
    if let Some(v) = x.as_small() {
        return Some(v);
    }
    match x.as_big()? {
        (false, &[d]) => i64::try_from(d).ok(),
        (true, &[d]) if d <= 1 << 63 => Some((d as i64).wrapping_neg()),
        _ => None,
    }
}

/// The value of an integer from 0 to 2^64 - 1; None otherwise.
pub fn to_u64(x: Term) -> Option<u64> {
    if let Some(v) = x.as_small() {
        return u64::try_from(v).ok();
    }
    match x.as_big()? {
        (false, &[d]) => Some(d),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_by_words_are_those_of_the_machine() {
        let mut x = 88172645463325252u64;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        };
        let mut some = vec![
            1,
            2,
            3,
            7,
            10,
            (1 << 32) - 1,
            1 << 32,
            1 << 63,
            (1 << 63) + 1,
            u64::MAX - 1,
            u64::MAX,
        ];
        some.extend((0..40).map(|i| next() >> i));
        for &d in &some {
            let by = ByWord::new(d);
            for high in some.iter().flat_map(|&h| [h % by.d, by.d - 1 - h % by.d]) {
                for &low in &some {
                    let t = (high as u128) << 64 | low as u128;
                    let (q, r) = (t / by.d as u128, t % by.d as u128);
                    assert_eq!(by.step(high, low), (q as u64, r as u64), "{t} {d}");
                }
            }
            for &top in &some {
                let m = [next(), u64::MAX, 0, top];
                let mut q = [0; 4];
                let mut r = by.divide(&m, |i, v| q[i] = v);
                // In reverse: the quotient times the divisor, plus the remainder.
                for (i, &q) in q.iter().enumerate() {
                    let t = q as u128 * d as u128 + r as u128;
                    assert_eq!(t as u64, m[i]);
                    r = (t >> 64) as u64;
                }
                assert_eq!(r, 0);
            }
        }
    }
}
