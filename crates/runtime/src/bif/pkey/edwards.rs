//! Keys on Curve25519: agreed on (X25519, RFC 7748) and signed with (Ed25519, RFC 8032).

use super::super::crypto::{fail, refuse};
use super::number::random;
use crate::cx::{BifResult, Cx};
use crate::{bifs, lazy_atoms};
use curve25519_dalek::MontgomeryPoint;
use ed25519_dalek::{Signature, Signer, SigningKey, Verifier, VerifyingKey};
use purlin_term::{Alloc, NIL, Term, am};
use subtle::ConstantTimeEq;

lazy_atoms! {
    x25519 = "x25519";
    ed25519 = "ed25519";
}

/// The key of `[Key, ed25519]`: 32 bytes, whether private or public.
pub fn key(t: Term) -> Option<[u8; 32]> {
    let (key, rest) = t.as_cons()?;
    let (curve, rest) = rest.as_cons()?;
    let key = key.as_binary()?;
    (curve == ed25519() && rest == NIL).then_some(())?;
    key[..].try_into().ok()
}

pub fn sign(private: &[u8; 32], data: &[u8]) -> Vec<u8> {
    SigningKey::from_bytes(private).sign(data).to_vec()
}

pub fn verify(public: &[u8; 32], data: &[u8], signature: &[u8]) -> bool {
    let key = VerifyingKey::from_bytes(public);
    let signature = Signature::from_slice(signature);
    match (key, signature) {
        (Ok(key), Ok(signature)) => key.verify(data, &signature).is_ok(),
        _ => false,
    }
}

/// `evp_generate_key_nif(Curve, Private | undefined)`
fn generate_2(cx: &mut Cx, [curve, private]: [Term; 2]) -> BifResult {
    if curve != x25519() && curve != ed25519() {
        return Err(refuse!(cx, 0, "Bad curve"));
    }
    let private = match private == am::UNDEFINED {
        true => match random(32) {
            Some(b) => b,
            None => return Err(fail(cx, am::ERROR, line!(), -1, "Can't EVP_PKEY_keygen")),
        },
        false => match private.as_binary() {
            Some(b) => b.to_vec(),
            None => return Err(fail(cx, am::ERROR, line!(), 1, "Can't get max size")),
        },
    };
    let Ok(key) = <[u8; 32]>::try_from(&private[..]) else {
        let text = "Can't EVP_PKEY_new_raw_private_key";
        return Err(fail(cx, am::ERROR, line!(), 1, text));
    };
    let public = match curve == x25519() {
        true => MontgomeryPoint::mul_base_clamped(key).to_bytes(),
        false => SigningKey::from_bytes(&key).verifying_key().to_bytes(),
    };
    let (public, private) = (cx.binary(&public), cx.binary(&private));
    Ok(cx.tuple(&[public, private]))
}

/// `evp_compute_key_nif(Curve, OthersPublic, MyPrivate)`
fn agree_3(cx: &mut Cx, [curve, public, private]: [Term; 3]) -> BifResult {
    if curve != x25519() {
        return Err(refuse!(cx, 0, "Bad curve"));
    }
    let Some(private) = private.as_binary() else {
        return Err(refuse!(cx, 2, "Binary expected"));
    };
    let Ok(private) = <[u8; 32]>::try_from(&private[..]) else {
        return Err(refuse!(cx, 2, "Not a valid raw private key"));
    };
    let Some(public) = public.as_binary() else {
        return Err(refuse!(cx, 1, "Binary expected"));
    };
    let Ok(public) = <[u8; 32]>::try_from(&public[..]) else {
        return Err(refuse!(cx, 1, "Not a raw public peer key"));
    };
    let shared = MontgomeryPoint(public).mul_clamped(private).to_bytes();
    // The peer's point was of a small order: everybody knows the key.
    if shared.ct_eq(&[0; 32]).into() {
        return Err(fail(cx, am::ERROR, line!(), -1, "Can't EVP_PKEY_derive"));
    }
    Ok(cx.binary(&shared))
}

bifs! {
    Plain "crypto":"evp_generate_key_nif"/2 = generate_2;
    Plain "crypto":"evp_compute_key_nif"/3 = agree_3;
}
