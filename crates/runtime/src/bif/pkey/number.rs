//! Natural numbers of any size for public keys: powers, random numbers, primes; and how module `crypto` writes them.
//!
//! Powers take as long for every exponent and base of a size, since exponents are secret mostly. Sums, products and
//! remainders go through `dashu-int` and don't promise that; where they take a secret, the caller blinds it.

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};
use dashu_int::UBig;
use dashu_int::fast_div::ConstDivisor;
use dashu_int::ops::BitTest;
use purlin_term::Term;

/// The number whose big-endian bytes a binary has.
pub fn number(t: Term) -> Option<UBig> {
    let b = t.as_binary()?;
    (b.len() <= i32::MAX as usize).then(|| UBig::from_be_bytes(&b))
}

/// As many numbers as a list has, which must be `N`.
pub fn numbers<const N: usize>(t: Term) -> Option<[UBig; N]> {
    let list: Option<Vec<UBig>> = t.list_to_vec()?.into_iter().map(number).collect();
    list?.try_into().ok()
}

/// Big-endian bytes of a number, `size` of them at least, by zeros in front.
pub fn padded(n: &UBig, size: usize) -> Vec<u8> {
    let b = n.to_be_bytes();
    let mut out = vec![0; size.saturating_sub(b.len())];
    out.extend_from_slice(&b);
    out
}

/// How many bytes a number has.
pub fn byte_len(n: &UBig) -> usize {
    n.bit_len().div_ceil(8)
}

pub fn is_zero(n: &UBig) -> bool {
    *n == UBig::ZERO
}

fn boxed(n: &UBig, limbs: usize) -> BoxedUint {
    let words = n.as_words().iter().copied();
    let zeros = limbs.max(1).saturating_sub(n.as_words().len());
    BoxedUint::from_words(words.chain(std::iter::repeat_n(0, zeros)))
}

/// `base` to the power of `exponent`, modulo `modulus`, which is not zero. For an odd modulus the time depends on the sizes
/// only.
pub fn power(base: &UBig, exponent: &UBig, modulus: &UBig) -> UBig {
    if *modulus == UBig::ONE {
        return UBig::ZERO;
    }
    let base = base % modulus;
    let limbs = modulus.as_words().len();
    let odd: Option<Odd<BoxedUint>> = boxed(modulus, limbs).to_odd().into();
    match odd {
        Some(odd) => {
            let params = BoxedMontyParams::new_vartime(odd);
            let base = BoxedMontyForm::new(boxed(&base, limbs), params);
            let exponent = boxed(exponent, exponent.as_words().len());
            UBig::from_words(base.pow(&exponent).retrieve().as_words())
        }
        None => {
            let ring = ConstDivisor::new(modulus.clone());
            ring.reduce(base).pow(exponent).residue()
        }
    }
}

/// The inverse of `n` modulo `modulus`, which is more than one; None if there is none.
pub fn inverse(n: &UBig, modulus: &UBig) -> Option<UBig> {
    let ring = ConstDivisor::new(modulus.clone());
    Some(ring.reduce(n.clone()).inv()?.residue())
}

/// `a - b` modulo `modulus`; both are below it.
pub fn minus(a: &UBig, b: &UBig, modulus: &UBig) -> UBig {
    match a >= b {
        true => a - b,
        false => a + modulus - b,
    }
}

/// Random bytes; None if the system has none.
pub fn random(size: usize) -> Option<Vec<u8>> {
    let mut b = vec![0; size];
    getrandom::fill(&mut b).ok()?;
    Some(b)
}

/// A number of exactly `bits` bits at most, each as likely as any other.
pub fn random_bits(bits: usize) -> Option<UBig> {
    let mut b = random(bits.div_ceil(8))?;
    if let Some(first) = b.first_mut().filter(|_| !bits.is_multiple_of(8)) {
        *first &= u8::MAX >> (8 - bits % 8);
    }
    Some(UBig::from_be_bytes(&b))
}

/// A number from 1 to `limit - 1`, each as likely as any other; None if there is none.
pub fn random_below(limit: &UBig) -> Option<UBig> {
    if *limit <= UBig::ONE {
        return None;
    }
    // More than every other one will do, except below 2.
    loop {
        let n = random_bits(limit.bit_len())?;
        if !is_zero(&n) && n < *limit {
            return Some(n);
        }
    }
}

/// The odd primes below `limit`.
fn small_primes(limit: usize) -> Vec<u32> {
    let mut composite = vec![false; limit];
    let mut primes = Vec::new();
    for n in (3..limit).step_by(2) {
        if !composite[n] {
            primes.push(n as u32);
            (n * n..limit)
                .step_by(2 * n)
                .for_each(|m| composite[m] = true);
        }
    }
    primes
}

/// Whether no round of the test by Miller and Rabin, with random bases, finds that odd `n` above 3 is composite.
fn seems_prime(n: &UBig, rounds: usize) -> Option<bool> {
    let before = n - UBig::ONE;
    let twos = before.trailing_zeros().unwrap_or(0);
    let odd = &before >> twos;
    'rounds: for _ in 0..rounds {
        let base = random_below(&before)?;
        let mut x = power(&base, &odd, n);
        if x == UBig::ONE || x == before {
            continue;
        }
        for _ in 1..twos {
            x = x.sqr() % n;
            if x == before {
                continue 'rounds;
            }
        }
        return Some(false);
    }
    Some(true)
}

/// A random prime of `bits` bits, at least 64, whose two highest bits are set, so that the product of two has twice as many.
pub fn random_prime(bits: usize) -> Option<UBig> {
    let small = small_primes(1 << 13);
    loop {
        let mut start = random_bits(bits)?;
        start.set_bit(bits - 1);
        start.set_bit(bits - 2);
        start.set_bit(0);
        let rests: Vec<u32> = small
            .iter()
            .map(|&p| u32::try_from(&start % UBig::from(p)).unwrap_or(0))
            .collect();
        for step in (0..1 << 13).step_by(2) {
            let divides = |(&p, &rest): (&u32, &u32)| (rest + step).is_multiple_of(p);
            if small.iter().zip(&rests).any(divides) {
                continue;
            }
            let n = &start + UBig::from(step);
            // A random candidate of such a size that is composite passes one round very rarely; the other rounds are for
            // those that were not random.
            if n.bit_len() == bits && seems_prime(&n, 1)? && seems_prime(&n, 24)? {
                return Some(n);
            }
        }
    }
}
