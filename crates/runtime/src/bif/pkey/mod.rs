//! Public keys of module `crypto`: signatures, encryption, and the lists of what there is. Keys, numbers and curves are in
//! the other files of the folder.
//!
//! Arguments are looked at in stock's order, and what is wrong with them is told in its words: programs and the standard
//! library match on both.

pub(super) mod dh;
mod dss;
pub(super) mod ec;
pub(super) mod edwards;
mod number;
pub(super) mod rsa;

use super::crypto::{Algorithm, algorithm, bytes, fail, refuse};
use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, lazy_atoms};
use dashu_int::UBig;
use dashu_int::ops::BitTest;
use number::{minus, padded};
use purlin_term::arith::to_i64;
use purlin_term::{Alloc, NIL, Term, am, atom};
use rsa::Salt;
use std::borrow::Cow;
use subtle::ConstantTimeEq;

lazy_atoms! {
    rsa_ = "rsa";
    dss_ = "dss";
    ecdsa = "ecdsa";
    eddsa = "eddsa";
    none = "none";
    digest = "digest";
    rsa_padding = "rsa_padding";
    rsa_pad = "rsa_pad";
    rsa_pkcs1_padding = "rsa_pkcs1_padding";
    rsa_pkcs1_pss_padding = "rsa_pkcs1_pss_padding";
    rsa_pkcs1_oaep_padding = "rsa_pkcs1_oaep_padding";
    rsa_x931_padding = "rsa_x931_padding";
    rsa_no_padding = "rsa_no_padding";
    rsa_pss_saltlen = "rsa_pss_saltlen";
    rsa_mgf1_md = "rsa_mgf1_md";
    rsa_oaep_label = "rsa_oaep_label";
    rsa_oaep_md = "rsa_oaep_md";
    signature_md = "signature_md";
}

type Digest = Option<&'static Algorithm>;

/// What stands around the data in an RSA block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    Pkcs1,
    Pss,
    Oaep,
    X931,
    None,
}

impl Padding {
    fn of(name: Term) -> Option<Padding> {
        let all = [
            (rsa_pkcs1_padding(), Padding::Pkcs1),
            (rsa_pkcs1_pss_padding(), Padding::Pss),
            (rsa_pkcs1_oaep_padding(), Padding::Oaep),
            (rsa_x931_padding(), Padding::X931),
            (rsa_no_padding(), Padding::None),
        ];
        Some(all.iter().find(|(n, _)| *n == name)?.1)
    }
}

/// Fails with one of OpenSSL's texts for what went wrong behind the arguments.
fn error<T>(cx: &mut Cx, text: &str) -> Result<T, Fail> {
    Err(fail(cx, am::ERROR, line!(), -1, text))
}

fn badarg<T>(cx: &mut Cx, arg: i64, text: &str) -> Result<T, Fail> {
    Err(fail(cx, am::BADARG, line!(), arg, text))
}

fn check_algorithm(cx: &mut Cx, name: Term) -> Result<(), Fail> {
    match [rsa_(), dss_(), ecdsa(), eddsa()].contains(&name) {
        true => Ok(()),
        false => badarg(cx, 0, "Bad algorithm"),
    }
}

/// The digest of that name; None for those that sign what they are given.
fn digest_type(cx: &mut Cx, kind: Term, name: Term, arg: i64) -> Result<Digest, Fail> {
    if name == none() && kind == rsa_() || kind == eddsa() {
        return Ok(None);
    }
    match algorithm(name) {
        None => badarg(cx, arg, "Bad digest type"),
        found => Ok(found),
    }
}

/// What is signed: a digest, or data as it is where there is none.
fn to_be_signed<'a>(
    cx: &mut Cx,
    [kind, name, data]: [Term; 3],
) -> Result<(Digest, Cow<'a, [u8]>), Fail> {
    check_algorithm(cx, kind)?;
    let a = digest_type(cx, kind, name, 1)?;
    if let Some(parts) = data.as_tuple() {
        let &[tag, given] = parts else {
            return badarg(cx, 2, "Bad list");
        };
        if tag != digest() {
            return badarg(cx, 2, "Expected 'digest' as head");
        }
        let Some(given) = bytes(cx, given) else {
            return badarg(cx, 2, "Bad 2nd element in list");
        };
        if a.is_some_and(|a| a.size as usize != given.len()) {
            return badarg(cx, 2, "Bad binary size for the algorithm");
        }
        return Ok((a, given));
    }
    let Some(data) = bytes(cx, data) else {
        return badarg(cx, 2, "Expected a binary or a list");
    };
    Ok((
        a,
        match a {
            Some(a) => Cow::Owned(a.digest(&[&data])),
            None => data,
        },
    ))
}

/// How an RSA signature is made.
struct Signing {
    padding: Padding,
    masks: Digest,
    salt: i64,
}

/// Goes through a list of `{Key, Value}`.
fn options(
    cx: &mut Cx,
    kind: Term,
    list: Term,
    arg: i64,
    text: &str,
    mut each: impl FnMut(&mut Cx, Term, Term) -> Result<(), Fail>,
) -> Result<(), Fail> {
    let mut rest = list;
    if rest != NIL && rest.as_cons().is_none() {
        return badarg(cx, arg, "Expected a list");
    }
    if rest != NIL && kind != rsa_() {
        return badarg(cx, arg, "Only RSA supports Options");
    }
    while let Some((head, tail)) = rest.as_cons() {
        let Some(&[key, value]) = head.as_tuple() else {
            return badarg(cx, arg, text);
        };
        each(cx, key, value)?;
        rest = tail;
    }
    Ok(())
}

/// The digest that an option names.
fn named_digest(
    cx: &mut Cx,
    kind: Term,
    (key, value): (Term, Term),
    arg: i64,
) -> Result<Digest, Fail> {
    if !value.is_atom() {
        let text = format!("Atom expected as argument to option {}", atom::name(key));
        return badarg(cx, arg, &text);
    }
    digest_type(cx, kind, value, arg)
}

fn signing(cx: &mut Cx, kind: Term, list: Term, arg: i64, a: Digest) -> Result<Signing, Fail> {
    let mut s = Signing {
        padding: Padding::Pkcs1,
        masks: None,
        salt: -2,
    };
    let text = "Expects only two-tuples in the list";
    options(cx, kind, list, arg, text, |cx, key, value| {
        if key == rsa_mgf1_md() {
            s.masks = named_digest(cx, kind, (key, value), arg)?;
        } else if key == rsa_padding() {
            s.padding = match Padding::of(value) {
                None | Some(Padding::Oaep) => {
                    return badarg(cx, arg, "Bad value in option rsa_padding");
                }
                Some(p) => p,
            };
            if s.padding == Padding::Pss && s.masks.is_none() {
                s.masks = a;
            }
        } else if key == rsa_pss_saltlen() {
            s.salt = match to_i64(value).and_then(|n| i32::try_from(n).ok()) {
                Some(n) if n >= -2 => n.into(),
                _ => return badarg(cx, arg, "Bad value in option rsa_pss_saltlen"),
            };
        } else {
            return badarg(cx, arg, "Bad option");
        }
        Ok(())
    })?;
    Ok(s)
}

/// The byte that stands for a digest in front of the trailer of X9.31.
fn x931_number(a: &Algorithm) -> Option<u8> {
    match a.name {
        "sha" => Some(0x33),
        "sha256" => Some(0x34),
        "sha512" => Some(0x35),
        "sha384" => Some(0x36),
        _ => None,
    }
}

/// Of a signature and what is left of it to the modulus, the smaller one.
fn smaller(signature: Vec<u8>, n: &UBig) -> Vec<u8> {
    let s = UBig::from_be_bytes(&signature);
    let other = minus(&UBig::ZERO, &s, n);
    padded(if s < other { &s } else { &other }, signature.len())
}

/// What the modulus' owner signed, of which the signature may be what is left to the modulus.
fn unsmaller(block: Vec<u8>, n: &UBig) -> Vec<u8> {
    match block.last() {
        Some(b) if b & 15 != 12 => padded(
            &minus(&UBig::ZERO, &UBig::from_be_bytes(&block), n),
            block.len(),
        ),
        _ => block,
    }
}

fn x931_data(block: &[u8]) -> Option<&[u8]> {
    let body = block.strip_suffix(&[0xcc])?;
    match body.split_first()? {
        (0x6a, data) => Some(data),
        (0x6b, rest) => {
            let fill = rest.iter().take_while(|&&b| b == 0xbb).count();
            (rest.get(fill) == Some(&0xba)).then(|| &rest[fill + 1..])
        }
        _ => None,
    }
}

/// What is wrong with a digest under a padding: the text of the step of OpenSSL's that refuses it.
fn refused(a: Digest, s: &Signing) -> Option<&'static str> {
    let Some(a) = a else {
        return (s.padding == Padding::X931).then_some("Can't EVP_PKEY_CTX_set_rsa_padding");
    };
    match s.padding {
        _ if rsa::digest_head(a).is_none() => Some("Can't EVP_PKEY_CTX_set_signature_md"),
        Padding::None => Some("Can't EVP_PKEY_CTX_set_rsa_padding"),
        Padding::X931 if x931_number(a).is_none() => Some("Can't EVP_PKEY_CTX_set_rsa_padding"),
        _ => None,
    }
}

/// Digest, digest of the masks and salt of PSS; None if what is signed has another length than such a digest.
fn pss(
    a: Digest,
    s: &Signing,
    signed: &[u8],
) -> Option<(&'static Algorithm, &'static Algorithm, Salt)> {
    let a = a.or_else(|| algorithm(atom::intern("sha")))?;
    let salt = match s.salt {
        -2 => Salt::Any,
        -1 => Salt::Size(a.size as usize),
        n => Salt::Size(n as usize),
    };
    (signed.len() == a.size as usize).then_some((a, s.masks.unwrap_or(a), salt))
}

fn rsa_sign(key: &rsa::Private, a: Digest, s: &Signing, signed: &[u8]) -> Option<Vec<u8>> {
    let n = &key.public.n;
    let size = key.public.size();
    if *n <= UBig::ONE || a.is_some_and(|a| a.size as usize != signed.len()) {
        return None;
    }
    match s.padding {
        Padding::Pkcs1 => {
            let head = a.map_or(Some(Vec::new()), rsa::digest_head)?;
            key.apply(&rsa::sign_block(&[&head, signed].concat(), size)?)
        }
        Padding::Pss => {
            let (a, masks, salt) = pss(a, s, signed)?;
            key.apply(&rsa::pss_block(signed, n.bit_len(), a, masks, salt)?)
        }
        Padding::X931 => {
            let block = rsa::x931_block(&[signed, &[x931_number(a?)?]].concat(), size)?;
            Some(smaller(key.apply(&block)?, n))
        }
        Padding::None if signed.len() == size => key.apply(signed),
        Padding::None | Padding::Oaep => None,
    }
}

fn rsa_verify(key: &rsa::Public, a: Digest, s: &Signing, signed: &[u8], signature: &[u8]) -> bool {
    if key.n <= UBig::ONE || signature.len() != key.size() {
        return false;
    }
    let Some(block) = key.apply(signature) else {
        return false;
    };
    let same = |expected: &[u8], found: Option<&[u8]>| {
        found.is_some_and(|f| bool::from(f.ct_eq(expected)))
    };
    match s.padding {
        Padding::Pkcs1 => match a.map_or(Some(Vec::new()), rsa::digest_head) {
            Some(head) => same(&[&head, signed].concat(), rsa::signed_data(&block)),
            None => false,
        },
        Padding::Pss => pss(a, s, signed).is_some_and(|(a, masks, salt)| {
            rsa::pss_matches(&block, signed, key.n.bit_len(), a, masks, salt)
        }),
        Padding::X931 => {
            let number = a.and_then(x931_number).map_or(vec![], |n| vec![n]);
            let block = unsmaller(block, &key.n);
            same(&[signed, &number].concat(), x931_data(&block))
        }
        Padding::None => same(signed, Some(&block)),
        Padding::Oaep => false,
    }
}

/// DER of a sequence of two natural numbers.
fn pair_to_der(numbers: &(Vec<u8>, Vec<u8>)) -> Vec<u8> {
    let integer = |b: &[u8]| {
        let zeros = b.iter().take_while(|&&x| x == 0).count();
        let mut v = b[zeros..].to_vec();
        if v.first().is_none_or(|&x| x >= 0x80) {
            v.insert(0, 0);
        }
        // The numbers have at most a few dozen bytes each.
        [&[0x02, v.len() as u8], &v[..]].concat()
    };
    let body = [integer(&numbers.0), integer(&numbers.1)].concat();
    let head = match body.len() {
        n @ 0..=0x7f => vec![0x30, n as u8],
        n => vec![0x30, 0x81, n as u8],
    };
    [head, body].concat()
}

/// The numbers of such a sequence, if it is written as DER wants and nothing follows.
fn pair_of_der(der: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let body = match der {
        [0x30, 0x81, n @ 0x80..=0xff, body @ ..] if body.len() == usize::from(*n) => body,
        [0x30, n @ 0..=0x7f, body @ ..] if body.len() == usize::from(*n) => body,
        _ => return None,
    };
    let integer = |b: &[u8]| -> Option<(Vec<u8>, usize)> {
        let [0x02, n @ 1..=0x7f, rest @ ..] = b else {
            return None;
        };
        let v = rest.get(..usize::from(*n))?;
        let short = !matches!(v, [0, x, ..] if *x < 0x80);
        (v[0] < 0x80 && short).then(|| (v.to_vec(), 2 + v.len()))
    };
    let (r, at) = integer(body)?;
    let (s, end) = integer(&body[at..])?;
    (at + end == body.len()).then_some((r, s))
}

/// `pkey_sign_nif(Algorithm, Type, Data | {digest, Digest}, Key, Options)`
fn sign_5(cx: &mut Cx, [kind, name, data, key, list]: [Term; 5]) -> BifResult {
    if key.is_map() {
        return badarg(cx, 3, "No engine support");
    }
    let (a, signed) = to_be_signed(cx, [kind, name, data])?;
    let s = signing(cx, kind, list, 4, a)?;
    let signature = if kind == rsa_() {
        let Some(key) = rsa::Private::of(key) else {
            return badarg(cx, 3, "Couldn't get RSA private key");
        };
        if let Some(text) = refused(a, &s) {
            return error(cx, text);
        }
        rsa_sign(&key, a, &s, &signed)
    } else if kind == ecdsa() {
        let Some(key) = ec::Key::private(cx, key) else {
            return badarg(cx, 3, "Couldn't get ECDSA private key");
        };
        key.sign(&signed).map(|p| pair_to_der(&p))
    } else if kind == eddsa() {
        let Some(key) = edwards::key(key) else {
            return badarg(cx, 3, "Couldn't get EDDSA private key");
        };
        Some(edwards::sign(&key, &signed))
    } else {
        let Some(key) = dss::Key::of(key) else {
            return badarg(cx, 3, "Couldn't get DSA private key");
        };
        key.sign(&signed).map(|p| pair_to_der(&p))
    };
    match signature {
        Some(b) => Ok(cx.binary(&b)),
        None => error(cx, "Can't EVP_PKEY_sign"),
    }
}

/// `pkey_verify_nif(Algorithm, Type, Data | {digest, Digest}, Signature, Key, Options)`
fn verify_6(cx: &mut Cx, [kind, name, data, signature, key, list]: [Term; 6]) -> BifResult {
    let (a, signed) = to_be_signed(cx, [kind, name, data])?;
    let s = signing(cx, kind, list, 5, a)?;
    let Some(signature) = signature.as_binary() else {
        return badarg(cx, 3, "Expected a binary");
    };
    if key.is_map() {
        return badarg(cx, 4, "No engine support");
    }
    let good = if kind == rsa_() {
        let Some(key) = rsa::Public::of(key) else {
            return badarg(cx, 4, "Couldn't get RSA public key");
        };
        if let Some(text) = refused(a, &s) {
            return error(cx, text);
        }
        rsa_verify(&key, a, &s, &signed, &signature)
    } else if kind == ecdsa() {
        let Some(key) = ec::Key::public(cx, key) else {
            return badarg(cx, 4, "Couldn't get ECDSA public key");
        };
        pair_of_der(&signature).is_some_and(|p| key.verify(&signed, &p))
    } else if kind == eddsa() {
        let Some(key) = edwards::key(key) else {
            return badarg(cx, 4, "Couldn't get EDDSA public key");
        };
        edwards::verify(&key, &signed, &signature)
    } else {
        let Some(key) = dss::Key::of(key) else {
            return badarg(cx, 4, "Couldn't get DSA public key");
        };
        pair_of_der(&signature).is_some_and(|(r, s)| key.verify(&signed, &r, &s))
    };
    Ok(Term::bool(good))
}

/// How an RSA block is encrypted.
struct Crypting {
    padding: Padding,
    masks: Digest,
    oaep: Digest,
    label: Vec<u8>,
    signature: Digest,
}

fn crypting(cx: &mut Cx, kind: Term, list: Term) -> Result<Crypting, Fail> {
    let mut c = Crypting {
        padding: Padding::Pkcs1,
        masks: None,
        oaep: None,
        label: Vec::new(),
        signature: None,
    };
    let text = "Expect only two-tuples in the list";
    options(cx, kind, list, 3, text, |cx, key, value| {
        if key == rsa_padding() || key == rsa_pad() {
            c.padding = match Padding::of(value) {
                None | Some(Padding::Pss) => {
                    return badarg(cx, 3, "Bad padding type in option rsa_padding");
                }
                Some(p) => p,
            };
        } else if key == signature_md() {
            c.signature = named_digest(cx, kind, (key, value), 3)?;
        } else if key == rsa_mgf1_md() {
            c.masks = named_digest(cx, kind, (key, value), 3)?;
        } else if key == rsa_oaep_label() {
            let Some(b) = value.as_binary() else {
                return badarg(cx, 3, "Binary expected for option rsa_oaep_label");
            };
            c.label = b.to_vec();
        } else if key == rsa_oaep_md() {
            if !value.is_atom() {
                let text = "Atom expected as argument to option rsa_oaep_md";
                return Err(fail(cx, am::NOTSUP, line!(), 3, text));
            }
            c.oaep = digest_type(cx, kind, value, 3)?;
        } else {
            return badarg(cx, 3, "Unknown option");
        }
        Ok(())
    })?;
    Ok(c)
}

/// Whether that is a key, for those that sign only.
fn check_key(cx: &mut Cx, kind: Term, key: Term, private: bool) -> Result<(), Fail> {
    let (good, name) = if kind == ecdsa() {
        let key = match private {
            true => ec::Key::private(cx, key),
            false => ec::Key::public(cx, key),
        };
        (key.is_some(), "ECDSA")
    } else if kind == eddsa() {
        (edwards::key(key).is_some(), "EDDSA")
    } else {
        (dss::Key::of(key).is_some(), "DSA")
    };
    let half = if private { "private" } else { "public" };
    match good {
        true => Ok(()),
        false => badarg(cx, 2, &format!("Couldn't get {name} {half} key")),
    }
}

/// `pkey_crypt_nif(Algorithm, Data, Key, Options, IsPrivate, IsEncrypt)`
fn crypt_6(cx: &mut Cx, [kind, data, key, list, private, encrypt]: [Term; 6]) -> BifResult {
    let (private, encrypt) = (private == am::TRUE, encrypt == am::TRUE);
    check_algorithm(cx, kind)?;
    let Some(data) = data.as_binary() else {
        return badarg(cx, 1, "Binary expected");
    };
    if key.is_map() {
        return badarg(cx, 2, "No engine support");
    }
    if kind != rsa_() {
        check_key(cx, kind, key, private)?;
        crypting(cx, kind, list)?;
        let text = "Can't initiate encrypt/decrypt";
        return Err(fail(cx, am::NOTSUP, line!(), -1, text));
    }
    let (mine, public) = match private {
        true => match rsa::Private::of(key) {
            Some(k) => (Some(k), None),
            None => return badarg(cx, 2, "Couldn't get RSA private key"),
        },
        false => match rsa::Public::of(key) {
            Some(k) => (None, Some(k)),
            None => return badarg(cx, 2, "Couldn't get RSA public key"),
        },
    };
    let c = crypting(cx, kind, list)?;
    // Those that a signature is about: made by the private key, undone by the public one.
    let signs = private == encrypt;
    if c.signature
        .is_some_and(|a| !signs || rsa::digest_head(a).is_none())
    {
        return error(cx, "Can't EVP_PKEY_CTX_set_signature_md");
    }
    let fits = match (c.padding, c.signature) {
        (Padding::Oaep, _) => false,
        (Padding::X931, a) => a.is_some_and(|a| x931_number(a).is_some()),
        (Padding::None, a) => a.is_none(),
        _ => true,
    };
    if signs && !fits {
        return error(cx, "Couldn't set rsa padding");
    }
    if mine
        .as_ref()
        .map_or(public.as_ref(), |k| Some(&k.public))
        .is_some_and(|k| k.size() == 0)
    {
        return error(cx, "Couldn't get size of result");
    }
    let out = match (&mine, &public) {
        (Some(key), _) if encrypt => {
            let s = Signing {
                padding: c.padding,
                masks: None,
                salt: -2,
            };
            rsa_sign(key, c.signature, &s, &data)
        }
        (Some(key), _) => decrypt(key, &c, &data),
        (None, Some(key)) if encrypt => encrypt_by(key, &c, &data),
        (None, Some(key)) => recover(key, &c, &data),
        (None, None) => None,
    };
    match out {
        Some(b) => Ok(cx.binary(&b)),
        None => error(cx, "Couldn't get the result"),
    }
}

/// Digest of the label and digest of the masks of OAEP.
fn oaep(c: &Crypting) -> Option<(&'static Algorithm, &'static Algorithm)> {
    let a = c.oaep.or_else(|| algorithm(atom::intern("sha")))?;
    Some((a, c.masks.unwrap_or(a)))
}

fn encrypt_by(key: &rsa::Public, c: &Crypting, data: &[u8]) -> Option<Vec<u8>> {
    let size = key.size();
    match c.padding {
        Padding::Pkcs1 => key.apply(&rsa::encrypt_block(data, size)?),
        Padding::Oaep => {
            let (a, masks) = oaep(c)?;
            key.apply(&rsa::oaep_block(data, size, a, masks, &c.label)?)
        }
        Padding::None if data.len() == size => key.apply(data),
        Padding::None | Padding::X931 | Padding::Pss => None,
    }
}

fn decrypt(key: &rsa::Private, c: &Crypting, data: &[u8]) -> Option<Vec<u8>> {
    let block = key.apply(data)?;
    match c.padding {
        Padding::Pkcs1 => rsa::encrypted_data(&block).map(<[u8]>::to_vec),
        Padding::Oaep => {
            let (a, masks) = oaep(c)?;
            rsa::oaep_data(&block, a, masks, &c.label)
        }
        Padding::None => Some(block),
        Padding::X931 | Padding::Pss => None,
    }
}

/// What was signed.
fn recover(key: &rsa::Public, c: &Crypting, data: &[u8]) -> Option<Vec<u8>> {
    let block = key.apply(data)?;
    match c.padding {
        Padding::Pkcs1 => {
            let head = c.signature.map_or(Some(Vec::new()), rsa::digest_head)?;
            let found = rsa::signed_data(&block)?.strip_prefix(&head[..])?;
            let whole = c.signature.is_none_or(|a| a.size as usize == found.len());
            whole.then(|| found.to_vec())
        }
        Padding::X931 => {
            let block = unsmaller(block, &key.n);
            let found = x931_data(&block)?;
            found
                .strip_suffix(&[x931_number(c.signature?)?])
                .map(<[u8]>::to_vec)
        }
        Padding::None => Some(block),
        Padding::Oaep | Padding::Pss => None,
    }
}

/// `privkey_to_pubkey_nif(Algorithm, Private)`
fn public_of_2(cx: &mut Cx, [kind, key]: [Term; 2]) -> BifResult {
    check_algorithm(cx, kind)?;
    if key.is_map() {
        return badarg(cx, 1, "No engine support");
    }
    if kind == rsa_() {
        let Some(key) = rsa::Private::of(key) else {
            return badarg(cx, 1, "Couldn't get RSA private key");
        };
        let e = cx.binary(&key.public.e.to_be_bytes());
        let n = cx.binary(&key.public.n.to_be_bytes());
        return Ok(cx.list(&[e, n]));
    }
    if kind == dss_() {
        return match dss::Key::of(key) {
            None => badarg(cx, 1, "Couldn't get DSA private key"),
            Some(_) => badarg(cx, 1, "Couldn't get DSA public key from private key"),
        };
    }
    if kind == ecdsa() {
        return match ec::Key::private(cx, key) {
            None => badarg(cx, 1, "Couldn't get ECDSA private key"),
            Some(_) => Err(fail(cx, am::NOTSUP, line!(), 0, "ECDSA not implemented")),
        };
    }
    match edwards::key(key) {
        None => badarg(cx, 1, "Couldn't get EDDSA private key"),
        Some(_) => Err(refuse!(cx, 0, "Bad algorithm")),
    }
}

fn names<'a>(cx: &mut Cx, names: impl Iterator<Item = &'a str>) -> BifResult {
    let list: Vec<Term> = names.map(atom::intern).collect();
    Ok(cx.list(&list))
}

fn pubkey_algorithms_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let all = "rsa dss dh ecdsa ecdh eddsa eddh srp";
    names(cx, all.split(' '))
}

fn curve_algorithms_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let named = ec::CURVES.iter().map(|(name, _)| *name);
    names(cx, named.chain(["ed25519", "x25519"]))
}

fn rsa_opts_algorithms_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let list = [
        rsa_pkcs1_pss_padding(),
        rsa_pss_saltlen(),
        rsa_mgf1_md(),
        rsa_pkcs1_oaep_padding(),
        rsa_oaep_label(),
        rsa_oaep_md(),
        signature_md(),
        rsa_pkcs1_padding(),
        rsa_x931_padding(),
        rsa_no_padding(),
    ];
    Ok(cx.list(&list))
}

bifs! {
    DirtyCpu "crypto":"pkey_sign_nif"/5 = sign_5;
    DirtyCpu "crypto":"pkey_verify_nif"/6 = verify_6;
    DirtyCpu "crypto":"pkey_crypt_nif"/6 = crypt_6;
    Plain "crypto":"privkey_to_pubkey_nif"/2 = public_of_2;
    Plain "crypto":"pubkey_algorithms"/0 = pubkey_algorithms_0;
    Plain "crypto":"curve_algorithms"/0 = curve_algorithms_0;
    Plain "crypto":"rsa_opts_algorithms"/0 = rsa_opts_algorithms_0;
}
