//! Diffie and Hellman's exchange of keys, the exchanges of Secure Remote Password, and powers for whoever needs them.

use super::super::crypto::{fail, refuse};
use super::number::{is_zero, minus, number, power, random_bits};
use crate::bifs;
use crate::cx::{BifResult, Cx, Fail};
use dashu_int::UBig;
use dashu_int::ops::BitTest;
use purlin_term::{Alloc, Term, am};

fn binary(cx: &mut Cx, n: &UBig) -> Term {
    cx.binary(&n.to_be_bytes())
}

/// Prime and generator of a list of both; `arg` is the list's.
fn parameters(cx: &mut Cx, t: Term, arg: i64) -> Result<(UBig, UBig), Fail> {
    let mut items = t;
    let mut next = || {
        let (head, tail) = items.as_cons()?;
        items = tail;
        number(head)
    };
    let Some(p) = next() else {
        return Err(fail(cx, am::BADARG, line!(), arg, "Bad value of 'p'"));
    };
    let Some(g) = next() else {
        return Err(fail(cx, am::BADARG, line!(), arg, "Bad value of 'g'"));
    };
    if items != purlin_term::NIL {
        return Err(fail(cx, am::BADARG, line!(), arg, "Not a two-element list"));
    }
    Ok((p, g))
}

/// The bits that a prime of an exchange has: fewer and more are refused, as OpenSSL does.
const PRIME_BITS: std::ops::RangeInclusive<usize> = 512..=10_000;

/// `dh_generate_key_nif(Private | undefined, [P, G], 0, Bits | 0)`
fn generate_4(cx: &mut Cx, [private, params, _, bits]: [Term; 4]) -> BifResult {
    let given = match private == am::UNDEFINED {
        true => None,
        false => match number(private) {
            Some(n) => Some(n),
            None => return Err(refuse!(cx, 0, "PrivKeyIn")),
        },
    };
    let (p, g) = parameters(cx, params, 1)?;
    let bits = match bits.as_small() {
        Some(n) if n >= 0 => n as usize,
        _ => return Err(refuse!(cx, 3, "Bad value of length element")),
    };
    let refused = !PRIME_BITS.contains(&p.bit_len()) || !p.bit(0) || bits >= p.bit_len();
    let private = match given {
        _ if refused => None,
        Some(n) => Some(n),
        None => {
            let bits = if bits == 0 { p.bit_len() - 1 } else { bits };
            random_bits(bits).map(|mut n| {
                n.set_bit(bits - 1);
                n
            })
        }
    };
    let Some(private) = private else {
        return Err(fail(
            cx,
            am::ERROR,
            line!(),
            -1,
            "Can't generate DH key pair",
        ));
    };
    let public = power(&g, &private, &p);
    let (public, private) = (binary(cx, &public), binary(cx, &private));
    Ok(cx.tuple(&[public, private]))
}

/// `dh_compute_key_nif(OthersPublic, MyPrivate, [P, G])`
fn compute_3(cx: &mut Cx, [public, private, params]: [Term; 3]) -> BifResult {
    let Some(public) = number(public) else {
        return Err(refuse!(cx, 0, "Bad peer public key; binary expected"));
    };
    let (p, _) = parameters(cx, params, 2)?;
    let Some(private) = number(private) else {
        return Err(refuse!(cx, 0, "Bad peer public key; binary expected"));
    };
    // Neither 0 nor 1 nor -1, from which everybody knows the key.
    if public <= UBig::ONE || &public + UBig::ONE >= p {
        return Err(fail(cx, am::ERROR, line!(), -1, "Can't get result size"));
    }
    let shared = match PRIME_BITS.contains(&p.bit_len()) && p.bit(0) {
        true => power(&public, &private, &p),
        false => UBig::ZERO,
    };
    if shared <= UBig::ONE {
        return Err(fail(cx, am::ERROR, line!(), -1, "Can't get result"));
    }
    Ok(binary(cx, &shared))
}

/// `mod_exp_nif(Base, Exponent, Modulus, 0 | 4)`: as plain bytes, or behind their count in 32 bits and positive.
fn mod_exp_4(cx: &mut Cx, [base, exponent, modulus, head]: [Term; 4]) -> BifResult {
    let (base, exponent) = (number(base), number(exponent));
    let (Some(base), Some(exponent), Some(modulus)) = (base, exponent, number(modulus)) else {
        return Err(Fail::Badarg);
    };
    let head = head.as_small().filter(|n| [0, 4].contains(n));
    let head = head.ok_or(Fail::Badarg)?;
    let n = match (is_zero(&modulus), is_zero(&exponent)) {
        (false, _) => power(&base, &exponent, &modulus),
        (true, true) => UBig::ONE,
        (true, false) => return Err(Fail::Badarg),
    };
    if head == 0 {
        return Ok(binary(cx, &n));
    }
    let mut b = n.to_be_bytes().to_vec();
    if b.first().is_some_and(|&x| x >= 0x80) {
        b.insert(0, 0);
    }
    let count = u32::try_from(b.len()).map_err(|_| Fail::Badarg)?;
    Ok(cx.binary(&[&count.to_be_bytes(), &b[..]].concat()))
}

/// As many numbers as there are arguments, the last of which is the prime; `Err` for what is none.
fn all<const N: usize>(args: [Term; N]) -> Result<[UBig; N], Fail> {
    let all: Option<Vec<UBig>> = args.into_iter().map(number).collect();
    all.and_then(|v| v.try_into().ok()).ok_or(Fail::Badarg)
}

fn answer(cx: &mut Cx, n: Option<UBig>) -> BifResult {
    Ok(n.map_or(am::ERROR, |n| binary(cx, &n)))
}

/// `srp_value_B_nif(Multiplier, Verifier, Generator, Exponent, Prime)`: `k * v + g ^ b`
fn srp_value_b_5(cx: &mut Cx, args: [Term; 5]) -> BifResult {
    let [k, v, g, b, n] = all(args)?;
    let value = (!is_zero(&n)).then(|| (k * v + power(&g, &b, &n)) % &n);
    answer(cx, value.filter(|v| !is_zero(v)))
}

/// `srp_user_secret_nif(A, U, B, Multiplier, Generator, Exponent, Prime)`: `(B - k * g ^ x) ^ (a + u * x)`
fn srp_user_secret_7(cx: &mut Cx, args: [Term; 7]) -> BifResult {
    let [a, u, b, k, g, x, n] = all(args)?;
    if is_zero(&n) || is_zero(&(&b % &n)) {
        return Ok(am::ERROR);
    }
    let base = minus(&(b % &n), &(k * power(&g, &x, &n) % &n), &n);
    let secret = power(&base, &(a + u * x), &n);
    answer(cx, Some(secret))
}

/// `srp_host_secret_nif(Verifier, B, U, A, Prime)`: `(A * v ^ u) ^ b`
fn srp_host_secret_5(cx: &mut Cx, args: [Term; 5]) -> BifResult {
    let [v, b, u, a, n] = all(args)?;
    if is_zero(&n) || is_zero(&(&a % &n)) {
        return Ok(am::ERROR);
    }
    let base = a * power(&v, &u, &n) % &n;
    let secret = power(&base, &b, &n);
    answer(cx, Some(secret))
}

bifs! {
    DirtyCpu "crypto":"dh_generate_key_nif"/4 = generate_4;
    DirtyCpu "crypto":"dh_compute_key_nif"/3 = compute_3;
    DirtyCpu "crypto":"mod_exp_nif"/4 = mod_exp_4;
    DirtyCpu "crypto":"srp_value_B_nif"/5 = srp_value_b_5;
    DirtyCpu "crypto":"srp_user_secret_nif"/7 = srp_user_secret_7;
    DirtyCpu "crypto":"srp_host_secret_nif"/5 = srp_host_secret_5;
}
