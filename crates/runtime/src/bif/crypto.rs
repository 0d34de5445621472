//! Natives of module `crypto`: digests, keyed digests, random bytes. Its ciphers are in `crypto_cipher.rs`, its public keys
//! in `pkey/`.
//!
//! Stock's are in a native library on OpenSSL, which is not loaded here. What these files lack (some ciphers and curves,
//! engines) the lists of algorithms don't name, and its functions raise what stock's raise without the library.
//!
//! A state is the value of a magic reference. One of a digest never changes, since programs go on from any of them; one of
//! a keyed digest is the same through all of its updates, as in stock.

use super::{iolist, native_state};
use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, lazy_atoms};
use digest::{Digest, FixedOutput, Mac};
use hmac::SimpleHmac;
use poly1305::Poly1305;
use poly1305::universal_hash::UniversalHash;
use purlin_term::{Alloc, Term, am, atom, map};
use std::borrow::Cow;
use std::sync::Mutex;
use subtle::ConstantTimeEq;

lazy_atoms! {
    block_size = "block_size";
    hmac_ = "hmac";
    cmac = "cmac";
    poly1305 = "poly1305";
    not_supported = "not_supported";
    c_file_name = "c_file_name";
    c_file_line_num = "c_file_line_num";
    c_function_arg_num = "c_function_arg_num";
}

/// A digest, keyed or not, of what it has been given so far.
trait State: Send + Sync {
    fn update(&mut self, bytes: &[u8]);
    fn finish(&self) -> Vec<u8>;
    fn again(&self) -> Box<dyn State>;
}

#[derive(Clone)]
struct Plain<D>(D);

impl<D: Digest + Clone + Send + Sync + 'static> State for Plain<D> {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn finish(&self) -> Vec<u8> {
        self.0.clone().finalize().to_vec()
    }
    fn again(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }
}

#[derive(Clone)]
struct Keyed<M>(M);

impl<M: Mac + Clone + Send + Sync + 'static> State for Keyed<M> {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn finish(&self) -> Vec<u8> {
        self.0.clone().finalize().into_bytes().to_vec()
    }
    fn again(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }
}

fn keyed<M>(key: &[u8]) -> Option<Box<dyn State>>
where
    M: Mac + digest::KeyInit + FixedOutput + Clone + Send + Sync + 'static,
{
    let m = <M as digest::KeyInit>::new_from_slice(key).ok()?;
    Some(Box::new(Keyed(m)))
}

/// Poly1305 (RFC 8439) of whole blocks, and what is left over to the next one.
#[derive(Clone)]
struct OneTime(Poly1305, Vec<u8>);

impl State for OneTime {
    fn update(&mut self, bytes: &[u8]) {
        self.1.extend_from_slice(bytes);
        let whole = self.1.len() / 16 * 16;
        self.0.update_padded(&self.1[..whole]);
        self.1.drain(..whole);
    }
    fn finish(&self) -> Vec<u8> {
        self.0.clone().compute_unpadded(&self.1).to_vec()
    }
    fn again(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }
}

/// Password, salt, rounds, where the derived key goes.
type Derive = fn(&[u8], &[u8], u32, &mut [u8]);

/// A digest algorithm. `number` is that of the algorithm among OpenSSL's objects; sizes are in bytes.
pub(super) struct Algorithm {
    pub name: &'static str,
    number: i64,
    block: i64,
    pub size: i64,
    new: fn() -> Box<dyn State>,
    keyed: fn(&[u8]) -> Option<Box<dyn State>>,
    /// Those that keys are derived by.
    derive: Option<Derive>,
}

impl Algorithm {
    /// The digest of those bytes, one part behind the other.
    pub fn digest(&self, parts: &[&[u8]]) -> Vec<u8> {
        let mut s = (self.new)();
        parts.iter().for_each(|p| s.update(p));
        s.finish()
    }
}

macro_rules! algorithms {
    ($($name:literal $number:literal $block:literal $size:literal $d:ty, $derive:expr;)*) => {
        &[$(Algorithm {
            name: $name,
            number: $number,
            block: $block,
            size: $size,
            new: || Box::new(Plain(<$d>::new())),
            keyed: keyed::<SimpleHmac<$d>>,
            derive: $derive,
        }),*]
    };
}

fn derive<D>(password: &[u8], salt: &[u8], rounds: u32, key: &mut [u8])
where
    D: Digest + digest::core_api::BlockSizeUser + FixedOutput + digest::Update + Clone + Sync,
{
    // Fails for a key of no length only, which the caller has refused.
    let _ = pbkdf2::pbkdf2::<SimpleHmac<D>>(password, salt, rounds, key);
}

/// In the order in which stock names them.
static ALGORITHMS: &[Algorithm] = algorithms! {
    "blake2s" 1057 64 32 blake2::Blake2s256, None;
    "blake2b" 1056 128 64 blake2::Blake2b512, None;
    "sha3_512" 1099 72 64 sha3::Sha3_512, None;
    "sha3_384" 1098 104 48 sha3::Sha3_384, None;
    "sha3_256" 1097 136 32 sha3::Sha3_256, None;
    "sha3_224" 1096 144 28 sha3::Sha3_224, None;
    "sha512" 674 128 64 sha2::Sha512, Some(derive::<sha2::Sha512>);
    "sha384" 673 128 48 sha2::Sha384, Some(derive::<sha2::Sha384>);
    "sha256" 672 64 32 sha2::Sha256, Some(derive::<sha2::Sha256>);
    "sha224" 675 64 28 sha2::Sha224, Some(derive::<sha2::Sha224>);
    "sha" 64 64 20 sha1::Sha1, Some(derive::<sha1::Sha1>);
    "ripemd160" 117 64 20 ripemd::Ripemd160, None;
    "md5" 4 64 16 md5::Md5, None;
    "md4" 257 64 16 md4::Md4, None;
};

pub(super) fn algorithm(t: Term) -> Option<&'static Algorithm> {
    let name = t.is_atom().then(|| atom::name(t))?;
    ALGORITHMS.iter().find(|a| a.name == name)
}

/// The error `{Kind, Place, Text}` from which the module makes its own; `line` is in this file, `arg` counts from 0.
pub(super) fn fail(cx: &mut Cx, kind: Term, line: u32, arg: i64, text: &str) -> Fail {
    let file = cx.string("crypto.rs");
    let place = map::from_pairs(
        cx,
        &[
            (c_file_name(), file),
            (c_file_line_num(), Term::small(line.into())),
            (c_function_arg_num(), Term::small(arg)),
        ],
    );
    let text = cx.string(text);
    let t = cx.tuple(&[kind, place, text]);
    cx.error(t)
}

/// Fails with `badarg` for an argument, counted from 0.
macro_rules! refuse {
    ($cx:expr, $arg:literal, $text:literal) => {
        $crate::bif::crypto::fail($cx, purlin_term::am::BADARG, line!(), $arg, $text)
    };
}
pub(super) use refuse;

/// The bytes of an I/O list; work is counted.
pub(super) fn bytes<'a>(cx: &mut Cx, t: Term) -> Option<Cow<'a, [u8]>> {
    let b = match t.as_binary() {
        Some(b) => b,
        None => Cow::Owned(iolist::to_vec(t).ok()?),
    };
    cx.bump(b.len() / 32);
    Some(b)
}

fn hash_info_1(cx: &mut Cx, [kind]: [Term; 1]) -> BifResult {
    let a = algorithm(kind).ok_or(Fail::Badarg)?;
    let pairs = [
        (am::SIZE, Term::small(a.size)),
        (block_size(), Term::small(a.block)),
        (am::TYPE, Term::small(a.number)),
    ];
    Ok(map::from_pairs(cx, &pairs))
}

fn hash_2(cx: &mut Cx, [kind, data]: [Term; 2]) -> BifResult {
    let Some(a) = algorithm(kind) else {
        return Err(refuse!(cx, 0, "Bad digest type"));
    };
    let Some(data) = bytes(cx, data) else {
        return Err(refuse!(cx, 1, "Not iolist"));
    };
    let mut s = (a.new)();
    s.update(&data);
    Ok(cx.binary(&s.finish()))
}

/// What a reference to a digest under way holds.
struct Hash(Box<dyn State>);

fn hash_init_1(cx: &mut Cx, [kind]: [Term; 1]) -> BifResult {
    match algorithm(kind) {
        Some(a) => Ok(native_state::make(cx, Hash((a.new)()))),
        None => Err(refuse!(cx, 0, "Bad digest type")),
    }
}

fn hash_update_2(cx: &mut Cx, [state, data]: [Term; 2]) -> BifResult {
    let Some(Hash(before)) = native_state::get::<Hash>(state) else {
        return Err(refuse!(cx, 0, "Bad state"));
    };
    let Some(data) = bytes(cx, data) else {
        return Err(refuse!(cx, 1, "Not iolist"));
    };
    let mut s = before.again();
    s.update(&data);
    Ok(native_state::make(cx, Hash(s)))
}

fn hash_final_1(cx: &mut Cx, [state]: [Term; 1]) -> BifResult {
    match native_state::get::<Hash>(state) {
        Some(Hash(s)) => Ok(cx.binary(&s.finish())),
        None => Err(refuse!(cx, 0, "Bad state")),
    }
}

/// A keyed digest that has just begun.
fn keyed_by(cx: &mut Cx, kind: Term, sub: Term, key: Term) -> Result<Box<dyn State>, Fail> {
    let Some(key) = bytes(cx, key) else {
        return Err(refuse!(cx, 2, "Bad key"));
    };
    if kind == poly1305() {
        let Ok(key) = <[u8; 32]>::try_from(&key[..]) else {
            return Err(refuse!(cx, 2, "Bad key length"));
        };
        let p = <Poly1305 as poly1305::universal_hash::KeyInit>::new(&key.into());
        return Ok(Box::new(OneTime(p, Vec::new())));
    }
    if kind == cmac() {
        return Err(fail(
            cx,
            am::NOTSUP,
            line!(),
            0,
            "Unsupported mac algorithm",
        ));
    }
    if kind != hmac_() {
        return Err(refuse!(cx, 0, "Unknown mac algorithm"));
    }
    let Some(s) = algorithm(sub).and_then(|a| (a.keyed)(&key)) else {
        return Err(refuse!(cx, 1, "Bad digest algorithm for HMAC"));
    };
    Ok(s)
}

fn mac_4(cx: &mut Cx, [kind, sub, key, data]: [Term; 4]) -> BifResult {
    let Some(data) = bytes(cx, data) else {
        return Err(refuse!(cx, 3, "Bad text"));
    };
    let mut s = keyed_by(cx, kind, sub, key)?;
    s.update(&data);
    Ok(cx.binary(&s.finish()))
}

/// What a reference to a keyed digest under way holds.
struct Code(Mutex<Box<dyn State>>);

fn mac_init_3(cx: &mut Cx, [kind, sub, key]: [Term; 3]) -> BifResult {
    let s = keyed_by(cx, kind, sub, key)?;
    Ok(native_state::make(cx, Code(Mutex::new(s))))
}

fn mac_update_2(cx: &mut Cx, [state, data]: [Term; 2]) -> BifResult {
    let Some(Code(s)) = native_state::get::<Code>(state) else {
        return Err(refuse!(cx, 0, "Bad ref"));
    };
    let Some(data) = bytes(cx, data) else {
        return Err(refuse!(cx, 1, "Bad text"));
    };
    s.lock().unwrap_or_else(|e| e.into_inner()).update(&data);
    Ok(state)
}

fn mac_final_1(cx: &mut Cx, [state]: [Term; 1]) -> BifResult {
    let Some(Code(s)) = native_state::get::<Code>(state) else {
        return Err(refuse!(cx, 0, "Bad ref"));
    };
    let code = s.lock().unwrap_or_else(|e| e.into_inner()).finish();
    Ok(cx.binary(&code))
}

/// A count of at least one; None if it is more than can be done.
fn count(cx: &mut Cx, t: Term, arg: i64) -> Result<Option<u32>, Fail> {
    match t.as_small() {
        Some(n) if n > 0 => Ok(u32::try_from(n).ok().filter(|&n| n <= i32::MAX as u32)),
        Some(0) => Err(fail(cx, am::BADARG, line!(), arg, "Must be > 0")),
        _ => Err(fail(cx, am::BADARG, line!(), arg, "Not integer")),
    }
}

/// `pbkdf2_hmac_nif(Digest, Password, Salt, Rounds, Length)`
fn pbkdf2_5(cx: &mut Cx, [kind, password, salt, rounds, length]: [Term; 5]) -> BifResult {
    let Some(a) = algorithm(kind) else {
        return Err(refuse!(cx, 0, "Bad digest type"));
    };
    let Some(derive) = a.derive else {
        return Err(refuse!(cx, 0, "Not eligible digest type"));
    };
    let Some(password) = password.as_binary() else {
        return Err(refuse!(cx, 1, "Not binary"));
    };
    let Some(salt) = salt.as_binary() else {
        return Err(refuse!(cx, 2, "Not binary"));
    };
    let (Some(rounds), Some(length)) = (count(cx, rounds, 3)?, count(cx, length, 4)?) else {
        return Err(Fail::SystemLimit);
    };
    let mut key = vec![0; length as usize];
    derive(&password, &salt, rounds, &mut key);
    Ok(cx.binary(&key))
}

fn strong_rand_bytes_1(cx: &mut Cx, [n]: [Term; 1]) -> BifResult {
    let n = n
        .as_small()
        .filter(|n| (0..=i64::from(i32::MAX)).contains(n));
    let mut b = vec![0; n.ok_or(Fail::Badarg)? as usize];
    cx.bump(b.len() / 32);
    match getrandom::fill(&mut b) {
        Ok(()) => Ok(cx.binary(&b)),
        Err(_) => Ok(am::FALSE),
    }
}

/// Without leading zeros.
fn trimmed(b: &[u8]) -> &[u8] {
    let zeros = b.iter().take_while(|&&x| x == 0).count();
    &b[zeros..]
}

/// A number below `range`, each as likely as any other; both in big-endian bytes, as many in both. None if the range is
/// empty or the system has no random bytes.
fn below(range: &[u8]) -> Option<Vec<u8>> {
    let top = *trimmed(range).first()?;
    let from = range.len() - trimmed(range).len();
    let mask = u8::MAX >> top.leading_zeros();
    let mut b = vec![0; range.len()];
    // More than every other one is below.
    loop {
        getrandom::fill(&mut b[from..]).ok()?;
        b[from] &= mask;
        if b[..] < *range {
            return Some(b);
        }
    }
}

fn strong_rand_range_1(cx: &mut Cx, [range]: [Term; 1]) -> BifResult {
    let range = range.as_binary().ok_or(Fail::Badarg)?;
    match below(&range) {
        Some(b) => Ok(cx.binary(trimmed(&b))),
        None => Ok(am::FALSE),
    }
}

/// The bytes of a number behind their count in 32 bits.
fn counted<'a>(t: Term) -> Option<Cow<'a, [u8]>> {
    let b = t.as_binary()?;
    let n = u32::from_be_bytes(*b.first_chunk()?) as usize;
    (b.len() == 4 + n).then(|| Cow::Owned(b[4..].to_vec()))
}

/// `a + b`, or `a - b`, of as many big-endian bytes; None if it doesn't fit.
fn add(a: &[u8], b: &[u8], minus: bool) -> Option<Vec<u8>> {
    let mut carry = 0;
    let mut out = vec![0; a.len()];
    for i in (0..a.len()).rev() {
        let (x, y) = (i32::from(a[i]), i32::from(b[i]));
        let s = if minus { x - y - carry } else { x + y + carry };
        out[i] = s as u8;
        carry = i32::from(!(0..256).contains(&s));
    }
    (carry == 0).then_some(out)
}

fn rand_uniform_2(cx: &mut Cx, [from, to]: [Term; 2]) -> BifResult {
    let (from, to) = (counted(from), counted(to));
    let uniform = || {
        let (from, to) = (from?, to?);
        let n = from.len().max(to.len());
        let wide = |b: &[u8]| [vec![0; n - b.len()], b.to_vec()].concat();
        let (from, to) = (wide(&from), wide(&to));
        let r = below(&add(&to, &from, true)?)?;
        add(&r, &from, false)
    };
    let number = uniform().ok_or(Fail::Badarg)?;
    let number = trimmed(&number);
    let n = u32::try_from(number.len()).map_err(|_| Fail::Badarg)?;
    Ok(cx.binary(&[&n.to_be_bytes(), number].concat()))
}

/// The system's generator needs no seed, and nothing can be taken from it by giving it one.
fn rand_seed_1(_: &mut Cx, [seed]: [Term; 1]) -> BifResult {
    seed.as_binary().map(|_| am::OK).ok_or(Fail::Badarg)
}

fn exor_2(cx: &mut Cx, [a, b]: [Term; 2]) -> BifResult {
    let (Some(a), Some(b)) = (bytes(cx, a), bytes(cx, b)) else {
        return Err(Fail::Badarg);
    };
    if a.len() != b.len() {
        return Err(Fail::Badarg);
    }
    let x: Vec<u8> = a.iter().zip(b.iter()).map(|(x, y)| x ^ y).collect();
    Ok(cx.binary(&x))
}

fn hash_equals_2(cx: &mut Cx, [a, b]: [Term; 2]) -> BifResult {
    let (Some(a), Some(b)) = (a.as_binary(), b.as_binary()) else {
        return Err(Fail::Badarg);
    };
    if a.len() != b.len() {
        return Err(Fail::Badarg);
    }
    cx.bump(a.len() / 32);
    Ok(Term::bool(a.ct_eq(&b).into()))
}

fn hash_algorithms_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let names: Vec<Term> = ALGORITHMS.iter().map(|a| atom::intern(a.name)).collect();
    Ok(cx.list(&names))
}

fn mac_algorithms_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(cx.list(&[hmac_(), poly1305()]))
}

fn info_fips_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(not_supported())
}

bifs! {
    Plain "crypto":"hash_info"/1 = hash_info_1;
    Plain "crypto":"hash_nif"/2 = hash_2;
    Plain "crypto":"hash_init_nif"/1 = hash_init_1;
    Plain "crypto":"hash_update_nif"/2 = hash_update_2;
    Plain "crypto":"hash_final_nif"/1 = hash_final_1;
    Plain "crypto":"mac_nif"/4 = mac_4;
    Plain "crypto":"mac_init_nif"/3 = mac_init_3;
    Plain "crypto":"mac_update_nif"/2 = mac_update_2;
    Plain "crypto":"mac_final_nif"/1 = mac_final_1;
    DirtyCpu "crypto":"pbkdf2_hmac_nif"/5 = pbkdf2_5;
    Plain "crypto":"strong_rand_bytes_nif"/1 = strong_rand_bytes_1;
    Plain "crypto":"strong_rand_range_nif"/1 = strong_rand_range_1;
    Plain "crypto":"rand_uniform_nif"/2 = rand_uniform_2;
    Plain "crypto":"rand_seed_nif"/1 = rand_seed_1;
    Plain "crypto":"do_exor"/2 = exor_2;
    Plain "crypto":"hash_equals_nif"/2 = hash_equals_2;
    Plain "crypto":"hash_algorithms"/0 = hash_algorithms_0;
    Plain "crypto":"mac_algorithms"/0 = mac_algorithms_0;
    Plain "crypto":"info_fips"/0 = info_fips_0;
}
