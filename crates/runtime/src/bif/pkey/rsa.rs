//! RSA (RFC 8017): keys, the paddings of signatures and of what is encrypted, and the powers they stand around.
//!
//! A power by the private exponent is taken of a number that was multiplied by a random one first, and is compared with
//! what the public exponent makes of it before it is given away.

use super::super::crypto::{Algorithm, fail, refuse};
use super::number::{
    byte_len, inverse, minus, number, numbers, padded, power, random, random_below, random_prime,
};
use crate::bifs;
use crate::cx::{BifResult, Cx};
use dashu_int::UBig;
use dashu_int::ops::BitTest;
use purlin_term::{Alloc, NIL, Term, am};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// `[E, N]`
pub struct Public {
    pub e: UBig,
    pub n: UBig,
}

/// The prime factors and what makes powers by the private exponent cheaper: `p`, `q`, `d` modulo `p - 1` and `q - 1`, and
/// the inverse of `q` modulo `p`.
type Factors = [UBig; 5];

/// `[E, N, D]` or `[E, N, D, P, Q, Dp, Dq, Qinv]`
pub struct Private {
    pub public: Public,
    d: UBig,
    factors: Option<Factors>,
}

/// The bits of a modulus that OpenSSL takes a public exponent's power by.
const MODULUS_BITS: usize = 16_384;
/// Where a modulus has more bits than this, it wants a short exponent: powers by keys that others sent would take seconds.
const SMALL_MODULUS_BITS: usize = 3_072;
const SHORT_EXPONENT_BITS: usize = 64;

impl Public {
    pub fn of(key: Term) -> Option<Public> {
        let [e, n] = numbers(key)?;
        Some(Public { e, n })
    }

    /// The bytes of the modulus, and so of whatever was encrypted or signed.
    pub fn size(&self) -> usize {
        byte_len(&self.n)
    }

    /// Whether OpenSSL computes with it.
    fn is_usable(&self) -> bool {
        let bits = self.n.bit_len();
        bits <= MODULUS_BITS
            && self.e < self.n
            && (bits <= SMALL_MODULUS_BITS || self.e.bit_len() <= SHORT_EXPONENT_BITS)
    }

    /// A power by the public exponent; None if the input is no number below the modulus, or the key is refused.
    pub fn apply(&self, input: &[u8]) -> Option<Vec<u8>> {
        if !self.is_usable() {
            return None;
        }
        let m = UBig::from_be_bytes(input);
        let fits = self.n > UBig::ONE && input.len() <= self.size() && m < self.n;
        fits.then(|| padded(&power(&m, &self.e, &self.n), self.size()))
    }
}

impl Private {
    pub fn of(key: Term) -> Option<Private> {
        let (e, n, d, factors) = match numbers(key) {
            Some([e, n, d]) => (e, n, d, None),
            None => {
                let [e, n, d, factors @ ..] = numbers::<8>(key)?;
                (e, n, d, Some(factors))
            }
        };
        let public = Public { e, n };
        Some(Private { public, d, factors })
    }

    /// By way of the factors, if those are what they should be.
    fn short_power(&self, c: &UBig) -> Option<UBig> {
        let [p, q, dp, dq, qinv] = self.factors.as_ref()?;
        if *p <= UBig::ONE || *q <= UBig::ONE || p * q != self.public.n {
            return None;
        }
        let a = power(c, dp, p);
        let b = power(c, dq, q);
        let h = minus(&a, &(&b % p), p) * qinv % p;
        Some(b + h * q)
    }

    /// A power by the private exponent; None if the input is no number below the modulus.
    pub fn apply(&self, input: &[u8]) -> Option<Vec<u8>> {
        let Public { e, n } = &self.public;
        let c = UBig::from_be_bytes(input);
        if *n <= UBig::ONE || input.len() > self.public.size() || c >= *n {
            return None;
        }
        let (mask, unmask) = loop {
            let r = random_below(n)?;
            if let Some(inverse) = inverse(&r, n) {
                break (r, inverse);
            }
        };
        let masked = c * power(&mask, e, n) % n;
        let m = match self.short_power(&masked) {
            Some(m) if power(&m, e, n) == masked => m,
            _ => power(&masked, &self.d, n),
        };
        Some(padded(&(m * unmask % n), self.public.size()))
    }
}

/// What a digest of an algorithm is called in signatures (DER of DigestInfo up to the digest); None if it has no name there.
pub fn digest_head(a: &Algorithm) -> Option<Vec<u8>> {
    let nist = |last| vec![0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, last];
    let rsa = |last| vec![0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, last];
    let name = match a.name {
        // OpenSSL's number; that of the standard ends with 4.
        "md4" => rsa(3),
        "md5" => rsa(5),
        "ripemd160" => vec![0x2b, 0x24, 0x03, 0x02, 0x01],
        "sha" => vec![0x2b, 0x0e, 0x03, 0x02, 0x1a],
        "sha256" => nist(1),
        "sha384" => nist(2),
        "sha512" => nist(3),
        "sha224" => nist(4),
        "sha3_224" => nist(7),
        "sha3_256" => nist(8),
        "sha3_384" => nist(9),
        "sha3_512" => nist(10),
        _ => return None,
    };
    let (size, n) = (a.size as u8, name.len() as u8);
    let mut head = vec![0x30, n + 8 + size, 0x30, n + 4, 0x06, n];
    head.extend(name);
    head.extend([0x05, 0x00, 0x04, size]);
    Some(head)
}

/// PKCS#1 block of type 1, for signatures: None if `data` is too long.
pub fn sign_block(data: &[u8], size: usize) -> Option<Vec<u8>> {
    let fill = size.checked_sub(data.len() + 3).filter(|&n| n >= 8)?;
    let mut b = vec![0, 1];
    b.resize(2 + fill, 0xff);
    b.push(0);
    b.extend_from_slice(data);
    Some(b)
}

/// What a block of type 1 holds.
pub fn signed_data(block: &[u8]) -> Option<&[u8]> {
    let rest = block.strip_prefix(&[0, 1])?;
    let fill = rest.iter().take_while(|&&b| b == 0xff).count();
    (fill >= 8 && rest.get(fill) == Some(&0)).then(|| &rest[fill + 1..])
}

/// PKCS#1 block of type 2, for what is encrypted: None if `data` is too long.
pub fn encrypt_block(data: &[u8], size: usize) -> Option<Vec<u8>> {
    let fill = size.checked_sub(data.len() + 3).filter(|&n| n >= 8)?;
    let mut b = vec![0, 2];
    while b.len() < 2 + fill {
        b.extend(random(1)?.into_iter().filter(|&x| x != 0));
    }
    b.push(0);
    b.extend_from_slice(data);
    Some(b)
}

/// What a block of type 2 holds. Where it begins is found in the same time for all.
pub fn encrypted_data(block: &[u8]) -> Option<&[u8]> {
    if block.len() < 11 {
        return None;
    }
    let mut good = block[0].ct_eq(&0) & block[1].ct_eq(&2);
    let mut at = 0u32;
    let mut found = Choice::from(0);
    for (i, b) in block.iter().enumerate().skip(2) {
        let zero = b.ct_eq(&0) & !found;
        at = u32::conditional_select(&at, &(i as u32), zero);
        found |= zero;
    }
    good &= found;
    (bool::from(good) && at >= 10).then(|| &block[at as usize + 1..])
}

/// The mask that `seed` grows to, put over `data`.
fn mask(a: &Algorithm, seed: &[u8], data: &mut [u8]) {
    for (i, part) in data.chunks_mut(a.size as usize).enumerate() {
        let m = a.digest(&[seed, &(i as u32).to_be_bytes()]);
        part.iter_mut().zip(m).for_each(|(x, y)| *x ^= y);
    }
}

/// OAEP block; None if `data` is too long.
pub fn oaep_block(
    data: &[u8],
    size: usize,
    a: &Algorithm,
    masks: &Algorithm,
    label: &[u8],
) -> Option<Vec<u8>> {
    let h = a.size as usize;
    let fill = size.checked_sub(data.len() + 2 * h + 2)?;
    let mut seed = random(h)?;
    let mut rest = a.digest(&[label]);
    rest.resize(h + fill, 0);
    rest.push(1);
    rest.extend_from_slice(data);
    mask(masks, &seed, &mut rest);
    mask(masks, &rest, &mut seed);
    Some([&[0], &seed[..], &rest].concat())
}

/// What an OAEP block holds. Whatever is wrong with it is found in the same time.
pub fn oaep_data(block: &[u8], a: &Algorithm, masks: &Algorithm, label: &[u8]) -> Option<Vec<u8>> {
    let h = a.size as usize;
    if block.len() < 2 * h + 2 {
        return None;
    }
    let (mut seed, mut rest) = (block[1..=h].to_vec(), block[h + 1..].to_vec());
    mask(masks, &rest, &mut seed);
    mask(masks, &seed, &mut rest);
    let mut good = block[0].ct_eq(&0) & rest[..h].ct_eq(&a.digest(&[label]));
    let mut at = 0u32;
    let mut found = Choice::from(0);
    for (i, b) in rest.iter().enumerate().skip(h) {
        let one = b.ct_eq(&1) & !found;
        good &= b.ct_eq(&0) | one | found;
        at = u32::conditional_select(&at, &(i as u32), one);
        found |= one;
    }
    good &= found;
    bool::from(good).then(|| rest.split_off(at as usize + 1))
}

/// The salt of a PSS block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Salt {
    /// As long as can be; any length is right.
    Any,
    /// That many bytes.
    Size(usize),
}

/// PSS block for a key of `bits` bits; None if there is no room for the salt.
pub fn pss_block(
    digest: &[u8],
    bits: usize,
    a: &Algorithm,
    masks: &Algorithm,
    salt: Salt,
) -> Option<Vec<u8>> {
    let h = a.size as usize;
    let size = (bits - 1).div_ceil(8);
    let room = size.checked_sub(h + 2)?;
    let salt = match salt {
        Salt::Any => room,
        Salt::Size(n) => n,
    };
    let fill = room.checked_sub(salt)?;
    let salt = random(salt)?;
    let hash = a.digest(&[&[0; 8], digest, &salt]);
    let mut block = vec![0; fill];
    block.push(1);
    block.extend(salt);
    mask(masks, &hash, &mut block);
    block[0] &= u8::MAX >> (8 * size - (bits - 1));
    block.extend(hash);
    block.push(0xbc);
    // One byte is left over if the highest bit of the key begins one.
    let mut out = vec![0; bits.div_ceil(8) - size];
    out.extend(block);
    Some(out)
}

/// Whether a PSS block of a key of `bits` bits is of that digest.
pub fn pss_matches(
    block: &[u8],
    digest: &[u8],
    bits: usize,
    a: &Algorithm,
    masks: &Algorithm,
    salt: Salt,
) -> bool {
    let h = a.size as usize;
    let size = (bits - 1).div_ceil(8);
    let (front, block) = block.split_at(block.len() - size);
    let spare = 8 * size - (bits - 1);
    let high = !(u8::MAX >> spare);
    if size < h + 2
        || front.iter().any(|&b| b != 0)
        || block[size - 1] != 0xbc
        || block[0] & high != 0
    {
        return false;
    }
    let (rest, hash) = block[..size - 1].split_at(size - h - 1);
    let mut rest = rest.to_vec();
    mask(masks, hash, &mut rest);
    rest[0] &= u8::MAX >> spare;
    let fill = rest.iter().take_while(|&&b| b == 0).count();
    if rest.get(fill) != Some(&1) {
        return false;
    }
    let found = &rest[fill + 1..];
    if let Salt::Size(n) = salt
        && n != found.len()
    {
        return false;
    }
    a.digest(&[&[0; 8], digest, found]).ct_eq(hash).into()
}

/// X9.31 block of data and its trailer; None if it doesn't fit.
pub fn x931_block(data: &[u8], size: usize) -> Option<Vec<u8>> {
    let fill = size.checked_sub(data.len() + 2)?;
    let mut b = match fill {
        0 => vec![0x6a],
        n => {
            let mut b = vec![0x6b];
            b.resize(n, 0xbb);
            b.push(0xba);
            b
        }
    };
    b.extend_from_slice(data);
    b.push(0xcc);
    Some(b)
}

/// `rsa_generate_key_nif(Bits, E)`
fn generate_2(cx: &mut Cx, [bits, e]: [Term; 2]) -> BifResult {
    let Some(bits) = bits.as_small().and_then(|n| u32::try_from(n).ok()) else {
        return Err(refuse!(cx, 0, "Can't get unsigned int"));
    };
    if bits < 256 {
        return Err(refuse!(cx, 0, "Can't be < 256"));
    }
    // As bytes it begins with one that counts.
    let plain = e.as_binary().is_some_and(|b| b.first() != Some(&0));
    let Some(e) = number(e) else {
        return Err(refuse!(cx, 1, "Can't get binary public exponent"));
    };
    if bits < 512 {
        return Err(fail(cx, am::ERROR, line!(), -1, "Can't set params"));
    }
    let parts = match plain && e.bit(0) && e > UBig::ONE {
        true => new_key(bits as usize, &e),
        false => None,
    };
    let Some(parts) = parts else {
        return Err(fail(
            cx,
            am::ERROR,
            line!(),
            -1,
            "Can't generate RSA key-pair",
        ));
    };
    let mut list = NIL;
    for n in parts.iter().rev() {
        let b = cx.binary(&n.to_be_bytes());
        list = cx.cons(b, list);
    }
    Ok(list)
}

/// `[E, N, D, P, Q, Dp, Dq, Qinv]` of a new key whose modulus has that many bits.
fn new_key(bits: usize, e: &UBig) -> Option<[UBig; 8]> {
    use dashu_int::ops::Gcd;
    let one = UBig::ONE;
    loop {
        let (mut p, mut q) = (
            random_prime(bits.div_ceil(2))?,
            random_prime(bits - bits.div_ceil(2))?,
        );
        if p < q {
            std::mem::swap(&mut p, &mut q);
        }
        let n = &p * &q;
        let (p1, q1) = (&p - &one, &q - &one);
        let orders = &p1 * &q1 / (&p1).gcd(&q1);
        if p == q || n.bit_len() != bits {
            continue;
        }
        // Primes before which the exponent has no inverse are of no use.
        let (Some(d), Some(qinv)) = (inverse(e, &orders), inverse(&q, &p)) else {
            continue;
        };
        let (dp, dq) = (&d % p1, &d % q1);
        return Some([e.clone(), n, d, p, q, dp, dq, qinv]);
    }
}

bifs! {
    DirtyCpu "crypto":"rsa_generate_key_nif"/2 = generate_2;
}
