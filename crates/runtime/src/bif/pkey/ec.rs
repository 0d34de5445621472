//! Keys on elliptic curves over prime fields: made, agreed on (ECDH) and signed with (ECDSA).
//!
//! The curves are those that the RustCrypto project keeps, in constant time. A key comes with the parameters of its curve;
//! `crypto` puts the name beside them if the program gave one.

use super::super::crypto::{fail, refuse};
use super::number::{byte_len, number, padded, random_below};
use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, lazy_atoms};
use dashu_int::UBig;
use elliptic_curve::generic_array::typenum::Unsigned;
use elliptic_curve::group::{Curve as _, Group};
use elliptic_curve::ops::{Invert, LinearCombination, MulByGenerator, Reduce};
use elliptic_curve::point::AffineCoordinates;
use elliptic_curve::sec1::{EncodedPoint, FromEncodedPoint, ModulusSize, ToEncodedPoint};
use elliptic_curve::{
    AffinePoint, CurveArithmetic, Field, FieldBytes, FieldBytesSize, PrimeField, ProjectivePoint,
    Scalar,
};
use purlin_term::{Alloc, Term, am, atom};

lazy_atoms! {
    prime_field = "prime_field";
    characteristic_two_field = "characteristic_two_field";
    none = "none";
}

/// A signature's two numbers, big-endian.
pub type Pair = (Vec<u8>, Vec<u8>);

/// What is done on a curve. Private keys are numbers below the order, as many bytes as the order has.
pub struct Operations {
    /// The bytes of the order.
    size: usize,
    /// Uncompressed.
    generator: fn() -> Vec<u8>,
    order: fn() -> UBig,
    generate: fn() -> Option<Vec<u8>>,
    /// The public key of a private one; None if that is zero or not below the order.
    public: fn(&[u8]) -> Option<Vec<u8>>,
    /// What a public and a private key agree on.
    agree: fn(&[u8], &[u8]) -> Option<Vec<u8>>,
    /// Whether those bytes are a public key.
    on_curve: fn(&[u8]) -> bool,
    sign: fn(&[u8], &[u8]) -> Option<Pair>,
    verify: fn(&[u8], &[u8], &Pair) -> bool,
}

fn scalar<C: CurveArithmetic>(private: &[u8]) -> Option<Scalar<C>> {
    let size = FieldBytesSize::<C>::USIZE;
    (private.len() == size).then_some(())?;
    let s = Scalar::<C>::from_repr(FieldBytes::<C>::clone_from_slice(private));
    Option::<Scalar<C>>::from(s).filter(|s| !bool::from(s.is_zero()))
}

fn point<C>(public: &[u8]) -> Option<AffinePoint<C>>
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: FromEncodedPoint<C>,
{
    let p = match public {
        [2..=4, ..] => EncodedPoint::<C>::from_bytes(public).ok()?,
        // Both numbers, and in the first byte which of two the second is.
        [kind @ 6..=7, .., last] if kind & 1 == last & 1 => {
            let plain = [&[4], &public[1..]].concat();
            EncodedPoint::<C>::from_bytes(plain).ok()?
        }
        _ => return None,
    };
    AffinePoint::<C>::from_encoded_point(&p).into()
}

fn encode<C>(p: &ProjectivePoint<C>) -> Vec<u8>
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: ToEncodedPoint<C>,
{
    p.to_affine().to_encoded_point(false).as_bytes().to_vec()
}

/// A number below the order that isn't zero, each as likely as any other.
fn random_scalar<C: CurveArithmetic>() -> Option<Scalar<C>> {
    let size = FieldBytesSize::<C>::USIZE;
    let n = random_below(&order::<C>())?;
    scalar::<C>(&padded(&n, size))
}

/// The order: one more than the greatest number below it.
fn order<C: CurveArithmetic>() -> UBig {
    let greatest = -Scalar::<C>::ONE;
    UBig::from_be_bytes(&greatest.to_repr()) + UBig::ONE
}

/// The leading bits of a digest, as many as the order has at most. The orders here have 521 bits, which no digest has, or
/// whole bytes.
fn digest_scalar<C: CurveArithmetic>(digest: &[u8]) -> Scalar<C> {
    let size = FieldBytesSize::<C>::USIZE;
    let digest = &digest[..digest.len().min(size)];
    let mut z = FieldBytes::<C>::default();
    z[size - digest.len()..].copy_from_slice(digest);
    <Scalar<C> as Reduce<C::Uint>>::reduce_bytes(&z)
}

fn reduced_x<C: CurveArithmetic>(p: &ProjectivePoint<C>) -> Scalar<C> {
    <Scalar<C> as Reduce<C::Uint>>::reduce_bytes(&p.to_affine().x())
}

fn sign<C: CurveArithmetic>(private: &[u8], digest: &[u8]) -> Option<Pair> {
    let d = scalar::<C>(private)?;
    let z = digest_scalar::<C>(digest);
    loop {
        let k = random_scalar::<C>()?;
        let r = reduced_x::<C>(&ProjectivePoint::<C>::mul_by_generator(&k));
        let inverse: Option<Scalar<C>> = Invert::invert(&k).into();
        let s = inverse? * (z + r * d);
        if !bool::from(r.is_zero() | s.is_zero()) {
            return Some((r.to_repr().to_vec(), s.to_repr().to_vec()));
        }
    }
}

fn verify<C>(public: &[u8], digest: &[u8], (r, s): &Pair) -> bool
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: FromEncodedPoint<C>,
{
    let wide = |n: &[u8]| scalar::<C>(&padded(&UBig::from_be_bytes(n), FieldBytesSize::<C>::USIZE));
    let (Some(q), Some(r), Some(s)) = (point::<C>(public), wide(r), wide(s)) else {
        return false;
    };
    let Some(w) = Option::<Scalar<C>>::from(Invert::invert_vartime(&s)) else {
        return false;
    };
    let (u, v) = (digest_scalar::<C>(digest) * w, r * w);
    let generator = ProjectivePoint::<C>::generator();
    let p = ProjectivePoint::<C>::lincomb(&generator, &u, &ProjectivePoint::<C>::from(q), &v);
    !bool::from(p.is_identity()) && reduced_x::<C>(&p) == r
}

const fn operations<C>() -> Operations
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: FromEncodedPoint<C> + ToEncodedPoint<C>,
{
    Operations {
        size: FieldBytesSize::<C>::USIZE,
        generator: || encode::<C>(&ProjectivePoint::<C>::generator()),
        order: order::<C>,
        generate: || Some(random_scalar::<C>()?.to_repr().to_vec()),
        public: |private| {
            let d = scalar::<C>(private)?;
            Some(encode::<C>(&ProjectivePoint::<C>::mul_by_generator(&d)))
        },
        agree: |public, private| {
            let p = ProjectivePoint::<C>::from(point::<C>(public)?) * scalar::<C>(private)?;
            (!bool::from(p.is_identity())).then(|| p.to_affine().x().to_vec())
        },
        on_curve: |public| point::<C>(public).is_some(),
        sign: sign::<C>,
        verify: verify::<C>,
    }
}

/// In the order in which stock names them; one curve may have several names.
pub static CURVES: &[(&str, Operations)] = &[
    ("secp224r1", operations::<p224::NistP224>()),
    ("secp256k1", operations::<k256::Secp256k1>()),
    ("secp384r1", operations::<p384::NistP384>()),
    ("secp521r1", operations::<p521::NistP521>()),
    ("secp192r1", operations::<p192::NistP192>()),
    ("prime192v1", operations::<p192::NistP192>()),
    ("secp256r1", operations::<p256::NistP256>()),
    ("prime256v1", operations::<p256::NistP256>()),
    ("wtls12", operations::<p224::NistP224>()),
];

/// The curve of `{{Field, {A, B, Seed}, Generator, Order, Cofactor}, Name}`. The errors are those of a library that lacks
/// what isn't here.
fn curve(cx: &mut Cx, definition: Term, text: &str) -> Result<&'static Operations, Fail> {
    let bad = |cx: &mut Cx, arg, text| Err(fail(cx, am::ERROR, line!(), arg, text));
    let Some(&[params, name]) = definition.as_tuple() else {
        return bad(cx, -1, "Tuple arity 2 expected.");
    };
    let Some(&[field, coefficients, generator, order, cofactor]) = params.as_tuple() else {
        return bad(cx, 1, "Bad curve def. Expect 5-tuple.");
    };
    let Some(generator) = generator.as_binary() else {
        return bad(cx, 1, "Bad Generator (Point)");
    };
    let Some(order) = number(order) else {
        return bad(cx, 1, "Bad order");
    };
    if cofactor == none() {
        return bad(cx, 1, "Cofactor must be != none");
    }
    if number(cofactor).is_none() {
        return bad(cx, 1, "Bad cofactor");
    }
    let Some(&[a, b, _]) = coefficients.as_tuple() else {
        return bad(cx, 1, "Bad Prime");
    };
    if number(a).is_none() {
        return bad(cx, 1, "Bad a");
    }
    if number(b).is_none() {
        return bad(cx, 1, "Bad b");
    }
    match field.as_tuple() {
        None => return bad(cx, 1, "Bad Field"),
        Some(&[kind, prime]) if kind == prime_field() => {
            if number(prime).is_none() {
                return bad(cx, 1, "Bad p (Prime)");
            }
        }
        Some(&[kind, _, _]) if kind == characteristic_two_field() => {
            let text = "Unsupported field-type (characteristic_two_field)";
            return Err(fail(cx, am::NOTSUP, line!(), 1, text));
        }
        Some(_) => return bad(cx, 1, "Bad field-type"),
    }
    let found = match name.is_atom() && name != am::UNDEFINED {
        true => CURVES.iter().find(|(n, _)| *n == atom::name(name)),
        // By what no other curve has: the order and a point of that order.
        false => CURVES.iter().find(|(_, c)| {
            let g = (c.generator)();
            let x = g.get(1..=c.size);
            let compressed = matches!(generator.first(), Some(2 | 3));
            let same = generator[..] == g[..] || compressed && generator.get(1..) == x;
            same && order == (c.order)()
        }),
    };
    match found {
        Some((_, c)) => Ok(c),
        None => bad(cx, -1, text),
    }
}

/// The bytes of a private key. One that has as many bytes as the order but isn't below it stands for what is left of it;
/// None if it has more bytes.
fn private_key(curve: &Operations, n: &UBig) -> Option<Vec<u8>> {
    (byte_len(n) <= curve.size).then(|| padded(&(n % (curve.order)()), curve.size))
}

/// A key on a curve, private or public.
pub struct Key {
    curve: &'static Operations,
    bytes: Vec<u8>,
}

impl Key {
    /// `{Curve, Private}`
    pub fn private(cx: &mut Cx, key: Term) -> Option<Key> {
        let &[definition, private] = key.as_tuple()? else {
            return None;
        };
        let private = number(private)?;
        let curve = curve(cx, definition, "").ok()?;
        let bytes = private_key(curve, &private)?;
        Some(Key { curve, bytes })
    }

    /// `{Curve, Public}`
    pub fn public(cx: &mut Cx, key: Term) -> Option<Key> {
        let &[definition, public] = key.as_tuple()? else {
            return None;
        };
        let bytes = public.as_binary()?.to_vec();
        let curve = curve(cx, definition, "").ok()?;
        // No signature is by the point at infinity.
        (bytes == [0] || (curve.on_curve)(&bytes)).then_some(Key { curve, bytes })
    }

    pub fn sign(&self, digest: &[u8]) -> Option<Pair> {
        (self.curve.sign)(&self.bytes, digest)
    }

    pub fn verify(&self, digest: &[u8], signature: &Pair) -> bool {
        (self.curve.verify)(&self.bytes, digest, signature)
    }
}

/// `ec_generate_key_nif(Curve, Private | undefined)`
fn generate_2(cx: &mut Cx, [definition, private]: [Term; 2]) -> BifResult {
    if private == am::UNDEFINED {
        let Ok(curve) = curve(cx, definition, "Can't EVP_PKEY_CTX_set_params") else {
            return Err(refuse!(cx, 0, "Couldn't get Curve definition"));
        };
        let pair = (curve.generate)().and_then(|d| Some(((curve.public)(&d)?, d)));
        let Some((public, private)) = pair else {
            return Err(fail(cx, am::ERROR, line!(), -1, "Couldn't generate EC key"));
        };
        let (public, private) = (cx.binary(&public), cx.binary(&private));
        return Ok(cx.tuple(&[public, private]));
    }
    let Some(n) = number(private) else {
        return Err(refuse!(cx, 0, "Bad private key"));
    };
    let curve = curve(cx, definition, "Can't do fromdata")?;
    if n == UBig::ZERO {
        return Err(refuse!(cx, 1, "peer priv key must not be 0"));
    }
    let public = private_key(curve, &n).and_then(|d| (curve.public)(&d));
    let Some(public) = public else {
        return Err(fail(cx, am::ERROR, line!(), -1, "Couldn't get EC key"));
    };
    let (public, private) = (cx.binary(&public), cx.binary(&padded(&n, curve.size)));
    Ok(cx.tuple(&[public, private]))
}

/// `ecdh_compute_key_nif(OthersPublic, Curve, MyPrivate)`
fn agree_3(cx: &mut Cx, [public, definition, private]: [Term; 3]) -> BifResult {
    let Some(public) = public.as_binary() else {
        return Err(refuse!(cx, 0, "Bad peer public key; binary expected"));
    };
    let curve = curve(cx, definition, "Can't do fromdata")?;
    // The point at infinity is on every curve, and nothing is agreed on by it.
    if public[..] != [0] && !(curve.on_curve)(&public) {
        return Err(fail(cx, am::ERROR, line!(), -1, "Can't do fromdata"));
    }
    let Some(private) = number(private) else {
        return Err(refuse!(cx, 0, "Bad peer public key; binary expected"));
    };
    match private_key(curve, &private).and_then(|d| (curve.agree)(&public, &d)) {
        Some(b) => Ok(cx.binary(&b)),
        None => Err(fail(cx, am::ERROR, line!(), -1, "Can't get result")),
    }
}

bifs! {
    DirtyCpu "crypto":"ec_generate_key_nif"/2 = generate_2;
    DirtyCpu "crypto":"ecdh_compute_key_nif"/3 = agree_3;
}
