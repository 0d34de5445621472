//! DSA (FIPS 186-4): signatures by keys of the multiplicative group of a prime field.

use super::number::{byte_len, is_zero, numbers, power, random_below};
use dashu_int::UBig;
use dashu_int::ops::BitTest;
use purlin_term::Term;

/// `[P, Q, G, Key]`, the key being private or public.
pub struct Key {
    p: UBig,
    q: UBig,
    g: UBig,
    key: UBig,
}

/// The limits of OpenSSL: bits of the prime and of the order for which it verifies, of the order and the private key for
/// which it signs.
const VERIFY_P_BITS: usize = 10_000;
const VERIFY_Q_BITS: [usize; 3] = [160, 224, 256];
const SIGN_Q_BITS: usize = 128;
const SIGN_KEY_BITS: usize = 768;

impl Key {
    pub fn of(t: Term) -> Option<Key> {
        let [p, q, g, key] = numbers(t)?;
        Some(Key { p, q, g, key })
    }

    /// Whether there is anything that can be computed with it.
    fn is_usable(&self) -> bool {
        self.p > UBig::ONE && self.q > UBig::from(2u8)
    }

    /// The leading bits of a digest, as many as the order has at most.
    fn digest(&self, digest: &[u8]) -> UBig {
        let digest = &digest[..digest.len().min(byte_len(&self.q))];
        let spare = (digest.len() * 8).saturating_sub(self.q.bit_len());
        (UBig::from_be_bytes(digest) >> spare) % &self.q
    }

    /// The two numbers of a signature by the private key; None if there is none by such a key.
    pub fn sign(&self, digest: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let Key { p, q, g, key } = self;
        let refused = q.bit_len() < SIGN_Q_BITS || key.bit_len() > SIGN_KEY_BITS;
        if refused || !self.is_usable() || *key >= *q || is_zero(key) {
            return None;
        }
        let z = self.digest(digest);
        // Numbers that aren't prime have no inverses by Fermat's theorem; a few tries tell.
        for _ in 0..16 {
            let k = random_below(q)?;
            let r = power(g, &k, p) % q;
            let inverse = power(&k, &(q - UBig::from(2u8)), q);
            if &k * &inverse % q != UBig::ONE {
                return None;
            }
            // A random factor stands before the key, so that the time of the product tells nothing.
            let mask = random_below(q)?;
            let unmask = power(&mask, &(q - UBig::from(2u8)), q);
            let s = (&mask * &z % q + (&mask * key % q) * &r % q) * unmask % q * inverse % q;
            if !is_zero(&r) && !is_zero(&s) {
                return Some((r.to_be_bytes().into(), s.to_be_bytes().into()));
            }
        }
        None
    }

    /// Whether a signature is by the private key that belongs to this public one.
    pub fn verify(&self, digest: &[u8], r: &[u8], s: &[u8]) -> bool {
        let Key { p, q, g, key } = self;
        if p.bit_len() > VERIFY_P_BITS || !VERIFY_Q_BITS.contains(&q.bit_len()) {
            return false;
        }
        let (r, s) = (UBig::from_be_bytes(r), UBig::from_be_bytes(s));
        if !self.is_usable() || is_zero(&r) || is_zero(&s) || r >= *q || s >= *q {
            return false;
        }
        let Some(w) = super::number::inverse(&s, q) else {
            return false;
        };
        let (u, v) = (self.digest(digest) * &w % q, &r * w % q);
        power(g, &u, p) * power(key, &v, p) % p % q == r
    }
}
