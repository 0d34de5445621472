//! `erlang:decode_packet/3`, by the rules of [`crate::net::packet`].

use super::packet::a_http;
use super::packet::a_ssl_tls;
use crate::cx::{BifResult, Cx, Fail};
use crate::net::packet::{self, Kind, Length, Limits};
use crate::{bifs, lazy_atoms};
use purlin_term::release::{self, COPIES_WHOLE_BYTES};
use purlin_term::{Alloc, NIL, Term, am, arith};

lazy_atoms! {
    asn1 = "asn1";
    cdr = "cdr";
    fcgi = "fcgi";
    http_bin = "http_bin";
    httph = "httph";
    httph_bin = "httph_bin";
    invalid = "invalid";
    line_delimiter = "line_delimiter";
    line_length = "line_length";
    more = "more";
    packet_size = "packet_size";
    raw = "raw";
    sunrm = "sunrm";
    tpkt = "tpkt";
}

fn kind_arg(t: Term) -> Option<Kind> {
    Some(match t.as_small() {
        Some(0) => Kind::Raw,
        Some(n @ (1 | 2 | 4)) => Kind::Length(n as u8),
        Some(_) => return None,
        None if t == raw() => Kind::Raw,
        None if t == am::LINE => Kind::Line,
        None if t == asn1() => Kind::Asn1,
        None if t == sunrm() => Kind::SunRm,
        None if t == cdr() => Kind::Cdr,
        None if t == fcgi() => Kind::FastCgi,
        None if t == tpkt() => Kind::Tpkt,
        None if t == a_http() => Kind::Http { bin: false },
        None if t == httph() => Kind::HttpHeader { bin: false },
        None if t == http_bin() => Kind::Http { bin: true },
        None if t == httph_bin() => Kind::HttpHeader { bin: true },
        None if t == a_ssl_tls() => Kind::SslTls,
        None => return None,
    })
}

fn limits_arg(cx: &mut Cx, kind: Kind, options: Term) -> Option<Limits> {
    let mut limits = Limits {
        packet_bytes: 0,
        line_bytes: 0,
        delimiter: b'\n',
    };
    let mut it = options.list_iter();
    for o in it.by_ref() {
        cx.bump(1);
        let &[name, n] = o.as_tuple()? else {
            return None;
        };
        let n = u32::try_from(arith::to_u64(n)?).ok()?;
        if name == packet_size() {
            limits.packet_bytes = n;
        } else if name == line_length() {
            limits.line_bytes = n;
        } else if name == line_delimiter() && kind == Kind::Line {
            limits.delimiter = u8::try_from(n).ok()?;
        } else {
            return None;
        }
    }
    it.tail().is_nil().then_some(limits)
}

fn decode_packet_3(cx: &mut Cx, [kind, data, options]: [Term; 3]) -> BifResult {
    let Some(kind) = kind_arg(kind) else {
        return Err(cx.badarg_cause(am::BADOPT));
    };
    let bits = data.as_bits().ok_or(Fail::Badarg)?;
    if bits.bit_len & 7 != 0 && release::has(COPIES_WHOLE_BYTES) {
        return Err(Fail::Badarg);
    }
    let limits = limits_arg(cx, kind, options).ok_or(Fail::Badarg)?;
    let shifted;
    let bytes = match bits.as_bytes() {
        Some(b) => b,
        None => {
            shifted = bits.shifted();
            &shifted[..bits.bit_len / 8]
        }
    };
    let known = packet::length(kind, bytes, limits, false);
    // The bytes behind the packet were not looked at.
    let seen = match known {
        Length::Known(n) => n.min(bytes.len()),
        _ => bytes.len(),
    };
    cx.bump(seen / 4096 + 1);
    let len = match known {
        Length::Known(n) if n > 0 && n <= bytes.len() => n,
        Length::Known(n) if n > 0 => {
            let n = cx.uint(n as u64);
            return Ok(cx.tuple(&[more(), n]));
        }
        Length::Known(_) | Length::Unknown => return Ok(cx.tuple(&[more(), am::UNDEFINED])),
        Length::Invalid => return Ok(cx.err(invalid())),
    };
    let parsed = packet::parse(kind, &bytes[..len], &mut false);
    let as_binaries = matches!(
        kind,
        Kind::Http { bin: true } | Kind::HttpHeader { bin: true }
    );
    let base = bytes.as_ptr() as usize;
    let string = |cx: &mut dyn Alloc, s: &[u8]| {
        let at = (s.as_ptr() as usize).wrapping_sub(base);
        if !as_binaries {
            cx.byte_list(s, NIL)
        } else if at < bytes.len() {
            cx.part(data, at, s.len())
        } else {
            cx.binary(s)
        }
    };
    let plain = |cx: &mut dyn Alloc, s: &[u8]| {
        cx.sub_binary(data, (s.as_ptr() as usize - base) * 8, s.len() * 8)
    };
    let packet = parsed.to_term(cx, &string, &plain);
    let rest = cx.sub_binary(data, len * 8, bits.bit_len - len * 8);
    Ok(cx.tuple(&[am::OK, packet, rest]))
}

bifs! {
    Plain "erlang":"decode_packet"/3 = decode_packet_3;
}
