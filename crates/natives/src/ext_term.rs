//! Natives of module `erlang` for the external term format.
//!
//! Terms of many parts are encoded on a dirty thread, long binaries are decoded there. With option
//! `used`, the end of the term is looked for near its beginning first ([`NEAR`]), since a small
//! term may stand before much else.

use super::errors::with_args;
use super::iolist::admit;
use super::reschedule::{MANY, dirty_if, dirty_if_large, is_larger};
use crate::cx::{BifResult, Env, Fail};
use crate::exports::CodeHooks;
use crate::long;
use purlin_term::etf::decode::{self, DecodeError, decode};
use purlin_term::etf::encode::{self, encode_all, encode_parts, external_size};
use purlin_term::etf::{VERSION, tag};
use purlin_term::pressure::{self, Judged};
use purlin_term::release::{self, LOCAL_ENCODING, SIZES_BY_ALL_OPTIONS};
use purlin_term::{Alloc, NIL, Term, am, atom};

/// The compression level of `compressed`.
const DEFAULT_LEVEL: u32 = 6;

/// Options of `term_to_binary/2`.
fn encode_options(list: Term) -> Result<encode::Options, Fail> {
    let mut o = encode::Options::default();
    let mut it = list.list_iter();
    let word = |t: Term| if t.is_atom() { atom::name(t) } else { "" };
    for x in it.by_ref() {
        match x.as_tuple() {
            Some(&[k, v]) => match (word(k), v.as_small()) {
                ("minor_version", Some(n @ 0..=2)) => o.minor_version = n as u8,
                ("compressed", Some(n @ 0..=9)) => o.compressed = n as u32,
                _ => return Err(Fail::Badarg),
            },
            _ => match word(x) {
                "compressed" => o.compressed = DEFAULT_LEVEL,
                "deterministic" => o.deterministic = true,
                "local" if release::has(LOCAL_ENCODING) => o.local = true,
                _ => return Err(Fail::Badarg),
            },
        }
    }
    if !it.tail().is_nil() || o.local && o.deterministic {
        return Err(Fail::Badarg);
    }
    Ok(o)
}

/// Options of `external_size/2` in releases that only accept the version.
fn size_options(list: Term) -> Result<encode::Options, Fail> {
    let mut o = encode::Options::default();
    let mut it = list.list_iter();
    for x in it.by_ref() {
        match x.as_tuple() {
            Some(&[k, v]) if k.is_atom() && atom::name(k) == "minor_version" => {
                o.minor_version = match v.as_small() {
                    Some(n @ 0..=1) => n as u8,
                    _ => return Err(Fail::Badarg),
                };
            }
            _ => return Err(Fail::Badarg),
        }
    }
    match it.tail().is_nil() {
        true => Ok(o),
        false => Err(Fail::Badarg),
    }
}

fn term_to_binary_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    dirty_if_large(cx, long!("erlang":"term_to_binary"/1).call(&[t]), t)?;
    to_binary(cx, t, encode::Options::default())
}
fn term_to_binary_2(cx: &mut Env, [t, options]: [Term; 2]) -> BifResult {
    let o = encode_options(options)?;
    let most = most_parts(&o);
    dirty_if(
        cx,
        long!("erlang":"term_to_binary"/2).call(&[t, options]),
        || is_larger(t, most),
    )?;
    to_binary(cx, t, o)
}
/// Returns the maximum number of parts of a term that are encoded where the native is called.
/// Compression takes many times as long.
fn most_parts(o: &encode::Options) -> usize {
    match o.compressed {
        0 => MANY,
        _ => MANY / 64,
    }
}
/// Number of parts of a term that may take more than is always allowed when it is encoded.
const MANY_TO_ADMIT: usize = pressure::ALWAYS_ALLOWED / 64;

/// Fails if the process may not make the encoding of a term, whose bytes are copied once.
fn admit_encoded(cx: &Env, t: Term, o: encode::Options) -> Result<(), Fail> {
    if pressure::is_limited() && (cx.dirty || is_larger(t, MANY_TO_ADMIT)) {
        let bytes = external_size(t, o).ok_or(Fail::SystemLimit)?;
        admit(bytes.saturating_mul(2))?;
    }
    Ok(())
}
fn to_binary(cx: &mut Env, t: Term, o: encode::Options) -> BifResult {
    admit_encoded(cx, t, o)?;
    let b = encode_all(t, o).ok_or(Fail::SystemLimit)?;
    cx.bump(b.len() / 64);
    Ok(cx.binary(&b))
}

fn term_to_iovec_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    dirty_if_large(cx, long!("erlang":"term_to_iovec"/1).call(&[t]), t)?;
    to_iovec(cx, t, encode::Options::default())
}
fn term_to_iovec_2(cx: &mut Env, [t, options]: [Term; 2]) -> BifResult {
    let o = encode_options(options)?;
    let most = most_parts(&o);
    dirty_if(
        cx,
        long!("erlang":"term_to_iovec"/2).call(&[t, options]),
        || is_larger(t, most),
    )?;
    if o.compressed > 0 {
        // A binary, and not a list of one, as in stock.
        return to_binary(cx, t, o);
    }
    to_iovec(cx, t, o)
}
/// Minimum size of binaries that are part of the result of `term_to_iovec` without a copy: those
/// that are off the heap in stock.
const SHARED_BYTES: usize = 65;
fn to_iovec(cx: &mut Env, t: Term, o: encode::Options) -> BifResult {
    if o.local {
        // The hash covers all bytes.
        let b = to_binary(cx, t, o)?;
        return Ok(cx.list(&[b]));
    }
    let parts = encode_parts(t, o, SHARED_BYTES).ok_or(Fail::SystemLimit)?;
    admit(parts.bytes.len())?;
    cx.bump(parts.bytes.len() / 64);
    let mut list = Vec::with_capacity(2 * parts.binaries.len() + 1);
    let mut at = 0;
    for (before, b) in parts.binaries {
        list.push(cx.binary(&parts.bytes[at..before]));
        list.push(match b.as_bits() {
            Some(s) if s.bit_len & 7 != 0 => cx.part(b, 0, s.bit_len / 8),
            _ => b,
        });
        at = before;
    }
    if at < parts.bytes.len() {
        list.push(cx.binary(&parts.bytes[at..]));
    }
    Ok(cx.list(&list))
}

fn external_size_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    dirty_if_large(cx, long!("erlang":"external_size"/1).call(&[t]), t)?;
    external_size_2(cx, [t, NIL])
}
fn external_size_2(cx: &mut Env, [t, options]: [Term; 2]) -> BifResult {
    let o = match release::has(SIZES_BY_ALL_OPTIONS) {
        true => encode_options(options)?,
        false => size_options(options)?,
    };
    dirty_if_large(cx, long!("erlang":"external_size"/2).call(&[t, options]), t)?;
    let n = external_size(t, o).ok_or(Fail::SystemLimit)?;
    cx.bump(n / 64);
    Ok(Term::small(n as i64))
}

/// Whether there are many bytes to decode, as given or as declared after inflation.
fn is_long_external(b: Term) -> bool {
    let bytes = b.as_bits().map_or(0, |b| b.bit_len / 8);
    inflated_bytes(b).max(bytes) > MANY_BYTES
}
/// Maximum number of bytes that are decoded where the native is called.
const MANY_BYTES: usize = 4 * MANY;

/// Returns the declared inflated size, if the term is compressed.
fn inflated_bytes(b: Term) -> usize {
    match b.as_binary().as_deref() {
        Some(&[VERSION, tag::COMPRESSED, a, b, c, d, ..]) => {
            u32::from_be_bytes([a, b, c, d]) as usize
        }
        _ => 0,
    }
}

fn binary_to_term_1(cx: &mut Env, [b]: [Term; 1]) -> BifResult {
    dirty_if(cx, long!("erlang":"binary_to_term"/1).call(&[b]), || {
        is_long_external(b)
    })?;
    from_binary(cx, b, false, usize::MAX).map(|(t, _)| t)
}
fn binary_to_term_2(cx: &mut Env, [b, options]: [Term; 2]) -> BifResult {
    let (mut safe, mut used) = (false, false);
    let mut it = options.list_iter();
    for o in it.by_ref() {
        if o == am::SAFE {
            safe = true;
        } else if o == am::USED {
            used = true;
        } else {
            return Err(bad_option(cx, &[b, options]));
        }
    }
    if !it.tail().is_nil() {
        return Err(bad_option(cx, &[b, options]));
    }
    let mut whole = None;
    if used && !cx.dirty && is_long_external(b) && inflated_bytes(b) <= MANY_BYTES {
        // Usually it is one of many terms and ends near.
        whole = from_binary(cx, b, safe, NEAR).ok();
    }
    if whole.is_none() {
        dirty_if(
            cx,
            long!("erlang":"binary_to_term"/2).call(&[b, options]),
            || is_long_external(b),
        )?;
    }
    let (t, n) = match whole {
        Some(found) => found,
        None => from_binary(cx, b, safe, usize::MAX)?,
    };
    if used {
        return Ok(cx.tuple(&[t, Term::small(n as i64)]));
    }
    Ok(t)
}
/// Number of bytes in which the end of a term is looked for before a long decoding moves to a dirty
/// thread.
const NEAR: usize = 1 << 14;

fn bad_option(cx: &mut Env, args: &[Term]) -> Fail {
    let f = cx.badarg_cause(am::BADOPT);
    with_args(cx, f, args)
}
/// Returns the term at the start of the first `most` bytes of a binary, and its encoded size.
/// Ignores the bytes after it.
fn from_binary(cx: &mut Env, b: Term, safe: bool, most: usize) -> Result<(Term, usize), Fail> {
    let all = b.as_binary().ok_or(Fail::Badarg)?;
    let bytes = &all[..all.len().min(most)];
    // Most terms take several times as much.
    admit(bytes.len().max(inflated_bytes(b)))?;
    let options = decode::Options {
        safe,
        bounded: true,
        ..Default::default()
    };
    let found = decode(bytes, cx, &CodeHooks, options);
    cx.bump(found.as_ref().map_or(bytes.len(), |f| f.1) / 64);
    found.map_err(|e| match e {
        DecodeError::AtomTableFull => Fail::SystemLimit,
        DecodeError::NoRoom => match pressure::refused() {
            Judged::AfterCollection => Fail::Again,
            _ => Fail::SystemLimit,
        },
        _ => Fail::Badarg,
    })
}

crate::bifs! {
    Plain "erlang":"term_to_binary"/1 = term_to_binary_1 [long];
    Plain "erlang":"term_to_binary"/2 = term_to_binary_2 [long];
    Plain "erlang":"term_to_iovec"/1 = term_to_iovec_1 [long];
    Plain "erlang":"term_to_iovec"/2 = term_to_iovec_2 [long];
    Plain "erlang":"external_size"/1 = external_size_1 [long];
    Plain "erlang":"external_size"/2 = external_size_2 [long];
    Plain "erlang":"binary_to_term"/1 = binary_to_term_1 [long];
    Plain "erlang":"binary_to_term"/2 = binary_to_term_2 [long];
}
