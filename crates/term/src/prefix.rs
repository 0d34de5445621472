//! A word per term that orders terms as far as it goes, to be kept beside keys: most pairs of keys
//! are then compared without a look at them.
//!
//! For terms `a` and `b` in arithmetic order, `a < b` implies `of(a) <= of(b)`, and `a == b`
//! implies `of(a) == of(b)`. So prefixes that differ decide, and equal ones say nothing.
//!
//! A prefix is the start of a code of the term, bit by bit from the highest on. The codes of two
//! terms differ first where the terms do. Numbers come first, as the integer below them. A part of
//! a term that its code does not determine, as that of an atom's first characters, ends the code.

use crate::atom;
use crate::compare::{byte_at, rank};
use crate::word::{MAX_SMALL, MIN_SMALL, Term};

/// Number of low bits of a prefix that are always 0.
pub const FREE_BITS: u32 = 2;

/// Maximum number of elements that a tuple's code tells apart.
const ARITIES: usize = (1 << 6) - 1;

/// Returns the prefix of a term.
pub fn of(t: Term) -> u64 {
    made(|code| code.term(t))
}

/// Returns a prefix of the elements of a tuple, for tuples that are equal before these.
pub fn of_elements(elements: &[Term]) -> u64 {
    made(|code| code.elements(elements))
}

/// Returns the prefix that begins with what `code` appends.
fn made(code: impl FnOnce(&mut Code) -> bool) -> u64 {
    let mut all = Code {
        word: 0,
        left: u64::BITS - FREE_BITS,
    };
    code(&mut all);
    all.word << all.left << FREE_BITS
}

/// The bits so far, and how many more there is room for.
struct Code {
    word: u64,
    left: u32,
}

impl Code {
    /// Appends the low `n` bits of `value`, or as many of the highest of them as there is room for.
    fn push(&mut self, value: u64, n: u32) {
        let n_now = n.min(self.left);
        let mask = (1u64 << n) - 1;
        self.word = self.word << n_now | (value & mask) >> (n - n_now);
        self.left -= n_now;
    }
    /// Appends the code of a term, as far as there is room. Returns whether the code determines the
    /// term, so that the code of what follows may come next.
    fn term(&mut self, t: Term) -> bool {
        if t.is_number() {
            self.push(0, 1);
            return self.number(t);
        }
        let rank = rank(t);
        self.push(1, 1);
        self.push(rank.into(), 4);
        if let Some((head, tail)) = t.as_cons() {
            return self.list(head, tail);
        }
        if let Some(elements) = t.as_tuple() {
            self.push(elements.len().min(ARITIES) as u64, 6);
            return elements.len() < ARITIES && self.elements(elements);
        }
        if t.is_atom() {
            self.push(atom::first_bytes(t).into(), 32);
        } else if let Some(b) = t.as_bits() {
            for i in 0..b.bit_len.div_ceil(8).min(8) {
                self.push(byte_at(&b, i).into(), 8);
            }
        }
        t.is_nil()
    }
    /// The code of elements of a tuple.
    fn elements(&mut self, all: &[Term]) -> bool {
        all.iter().all(|&e| self.left > 0 && self.term(e))
    }
    /// The code of a number: its size in bytes, and the integer below it.
    fn number(&mut self, t: Term) -> bool {
        let (floor, exact) = floor_of(t);
        match floor {
            ..0 => {
                self.push(0, 3);
                self.push(floor as u64, 61);
            }
            _ => {
                let class = SIZES.iter().position(|&n| floor >> n == 0).unwrap_or(6);
                self.push(class as u64 + 1, 3);
                self.push(floor as u64, SIZES[class]);
            }
        }
        self.end_unless(exact)
    }
    /// Ends the code of a number that lies above the one pushed, unless it is `exact`.
    fn end_unless(&mut self, exact: bool) -> bool {
        if !exact {
            self.push(u64::MAX, self.left);
        }
        exact
    }
    /// The code of a list behind its type: a [symbol](symbol) per element, which says too that the
    /// list continues, and one for its end.
    fn list(&mut self, mut head: Term, mut tail: Term) -> bool {
        loop {
            if self.left == 0 || !self.element(head) {
                return false;
            }
            let Some(next) = tail.as_cons() else {
                // No term but nil has the rank of nil, and lists come next.
                let below = rank(tail).cmp(&rank(crate::NIL));
                self.symbol(match below {
                    std::cmp::Ordering::Less => symbol::END_BELOW,
                    std::cmp::Ordering::Equal => symbol::END,
                    std::cmp::Ordering::Greater => symbol::END_ABOVE,
                });
                return below.is_eq();
            };
            (head, tail) = next;
        }
    }
    fn symbol(&mut self, value: u64) {
        self.push(value, symbol::BITS);
    }
    /// The code of an element of a list: for a printable character of ASCII its symbol alone.
    fn element(&mut self, t: Term) -> bool {
        if !t.is_number() {
            self.symbol(symbol::OTHER);
            return self.term(t);
        }
        let (floor, exact) = floor_of(t);
        match floor {
            ..0 => {
                self.symbol(symbol::BELOW_0);
                return self.number(t);
            }
            0..32 => {
                self.symbol(symbol::CONTROL);
                self.push(floor as u64, 5);
            }
            32..128 => self.symbol(symbol::ASCII + floor as u64 - 32),
            128..256 => {
                self.symbol(symbol::LATIN1);
                self.push(floor as u64, 7);
            }
            _ => {
                self.symbol(symbol::ABOVE_255);
                return self.number(t);
            }
        }
        self.end_unless(exact)
    }
}

/// The integer below a number, as far as small integers go, and whether the number is that integer.
fn floor_of(t: Term) -> (i64, bool) {
    match (t.as_small(), t.as_float(), t.as_big()) {
        (Some(v), ..) => (v, true),
        (_, Some(f), _) if f < MIN_SMALL as f64 => (MIN_SMALL - 1, false),
        (_, Some(f), _) if f > MAX_SMALL as f64 => (MAX_SMALL + 1, false),
        (_, Some(f), _) => match f.floor() as i64 {
            v if v > MAX_SMALL => (MAX_SMALL + 1, false),
            v => (v, v as f64 == f),
        },
        (.., Some((true, _))) => (MIN_SMALL - 1, false),
        _ => (MAX_SMALL + 1, false),
    }
}

/// Symbols for what follows an element of a list, in the order of the terms that they stand for.
mod symbol {
    /// Bits of a symbol.
    pub const BITS: u32 = 7;
    /// The tail is a term below nil.
    pub const END_BELOW: u64 = 0;
    /// The tail is nil.
    pub const END: u64 = 1;
    /// A number below 0, whose code follows.
    pub const BELOW_0: u64 = 2;
    /// An integer from 0 to 31, in 5 bits.
    pub const CONTROL: u64 = 3;
    /// The integer 32; one symbol each up to 127.
    pub const ASCII: u64 = 4;
    /// An integer from 128 to 255, in 7 bits.
    pub const LATIN1: u64 = ASCII + 96;
    /// A number from 256 on, whose code follows.
    pub const ABOVE_255: u64 = LATIN1 + 1;
    /// A term that is no number, whose code follows.
    pub const OTHER: u64 = ABOVE_255 + 1;
    /// The tail is a term above all lists.
    pub const END_ABOVE: u64 = OTHER + 1;
    const _: () = assert!(END_ABOVE < 1 << BITS);
}

/// Bits that the classes of integers from 0 on have.
const SIZES: [u32; 7] = [8, 16, 24, 32, 40, 50, 61];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frag::Fragment;
    use crate::{Alloc, NIL, am, compare};

    /// All pairs of many terms, of which most have neighbours that differ in little.
    #[test]
    fn prefixes_never_contradict_the_order() {
        let mut h = Fragment::new();
        let mut all = vec![NIL, am::OK, am::ERROR, am::TRUE, Term::pid(3), Term::pid(9)];
        let edges = [
            0,
            1,
            5,
            255,
            256,
            65_535,
            65_536,
            1 << 24,
            1 << 32,
            1 << 40,
            1 << 50,
        ];
        for v in edges.into_iter().chain([MAX_SMALL, MAX_SMALL - 1]) {
            all.extend([Term::small(v), Term::small(-v), Term::small(-v - 1)]);
        }
        all.push(Term::small(MIN_SMALL));
        for f in [
            0.0,
            -0.5,
            0.5,
            5.0,
            5.5,
            5.7,
            -5.5,
            255.5,
            1e17,
            -1e17,
            5.764607523034235e17,
            1e30,
            -1e30,
        ] {
            all.push(h.float(f));
        }
        // Elements of strings beside each other, at the limits of the symbols.
        for v in [31, 32, 65, 66, 127, 128] {
            all.push(Term::small(v));
        }
        for f in [-1.5, 31.5, 32.0, 65.0, 65.5, 127.5, 255.0] {
            all.push(h.float(f));
        }
        all.extend([h.int(MAX_SMALL + 1), h.int(MIN_SMALL - 1)]);
        for digits in [[0, 1], [1, 1 << 40]] {
            all.extend([h.big(false, &digits), h.big(true, &digits)]);
        }
        for b in [
            &b""[..],
            b"a",
            b"a\0",
            b"ab",
            b"abcdefgh",
            b"abcdefghi",
            b"\xff",
        ] {
            all.push(h.binary(b));
        }
        for _ in 0..2 {
            let some: Vec<Term> = all.iter().copied().step_by(3).collect();
            for (i, &t) in some.iter().enumerate() {
                let other = some[(i * 7 + 3) % some.len()];
                let one = h.tuple(&[t]);
                let two = h.tuple(&[t, other]);
                let three = h.tuple(&[am::OK, t, other]);
                let cell = h.cons(t, NIL);
                let longer = h.cons(t, cell);
                let improper = h.cons(t, other);
                all.extend([one, two, three, cell, longer, improper]);
            }
        }
        let string: Vec<Term> = b"a string".iter().map(|&b| Term::small(b.into())).collect();
        for n in 1..=string.len() {
            let t = h.list(&string[..n]);
            all.push(t);
        }
        for &a in &all {
            for &b in &all {
                let (order, prefixes) = (compare::cmp(a, b), of(a).cmp(&of(b)));
                assert!(prefixes.is_eq() || prefixes == order, "{a:?} {b:?}");
                assert_eq!(of(a) & ((1 << FREE_BITS) - 1), 0);
            }
        }
    }

    /// Prefixes tell apart neighbours, which is what they are made for.
    #[test]
    fn neighbours_have_prefixes_of_their_own() {
        let mut h = Fragment::new();
        let string: Vec<Term> = b"a string".iter().map(|&b| Term::small(b.into())).collect();
        let apart = |a: Term, b: Term| of(a) != of(b);
        assert!(apart(Term::small(1), Term::small(2)));
        let (a, b) = (
            h.tuple(&[Term::small(3), Term::small(70_000)]),
            h.tuple(&[Term::small(3), Term::small(70_001)]),
        );
        assert!(apart(a, b));
        assert!(apart(h.list(&string[..3]), h.list(&string[..4])));
        // Eight characters of a string count.
        let mut name = |last: u8| -> Term {
            let all: Vec<Term> = b"user100"
                .iter()
                .chain([&last])
                .map(|&b| Term::small(b.into()))
                .collect();
            h.list(&all)
        };
        let (a, b) = (name(b'1'), name(b'2'));
        assert!(of(a) < of(b));
        // SAFETY: nothing of it is used any more.
        unsafe { h.destroy() };
    }
}
