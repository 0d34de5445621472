//! Packets in a byte stream: where each ends, and the meaning of HTTP and TLS packets. Used by
//! `erlang:decode_packet/3` and by sockets in packet modes. These are pure functions of bytes;
//! [`Parsed::to_term`] makes the terms that programs see.

use crate::lazy_atoms;
use purlin_term::release::{self, BRACKETED_HOSTS};
use purlin_term::{Alloc, NIL, Term, am, atom};

lazy_atoms! {
    a_abs_path = "abs_path";
    a_absolute_uri = "absoluteURI";
    pub(crate) a_http = "http";
    a_https = "https";
    a_http_eoh = "http_eoh";
    a_http_error = "http_error";
    a_http_header = "http_header";
    a_http_request = "http_request";
    a_http_response = "http_response";
    a_scheme = "scheme";
    pub(crate) a_ssl_tls = "ssl_tls";
}

/// Packet types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// All bytes that have arrived.
    Raw,
    /// A length of 1, 2 or 4 bytes in front.
    Length(u8),
    Asn1,
    /// Sun RPC records.
    SunRm,
    /// CORBA messages.
    Cdr,
    FastCgi,
    Line,
    Tpkt,
    /// HTTP from a request or response line on. Strings are binaries if `bin`.
    Http {
        bin: bool,
    },
    /// HTTP headers.
    HttpHeader {
        bin: bool,
    },
    SslTls,
}

/// Limits on packets; 0 means none.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum bytes of the contents. A longer packet is an error.
    pub packet_bytes: u32,
    /// Maximum bytes of a line. A longer line is cut.
    pub line_bytes: u32,
    /// The byte that ends a line.
    pub delimiter: u8,
}

/// The length of the first packet in some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// The number of bytes of the packet, which may be more than have arrived.
    Known(usize),
    /// More bytes are needed to tell.
    Unknown,
    Invalid,
}

fn be16(b: &[u8]) -> u32 {
    (b[0] as u32) << 8 | b[1] as u32
}
fn be32(b: &[u8]) -> u32 {
    u32::from_be_bytes([b[0], b[1], b[2], b[3]])
}
fn is_space(c: u8) -> bool {
    c == b' ' || c == b'\t'
}

/// The length of the first packet in `b`. `in_headers` is the connection's HTTP state: whether
/// headers are being read.
pub fn length(kind: Kind, b: &[u8], limits: Limits, in_headers: bool) -> Length {
    let n = b.len();
    // A header of `head` bytes, then `body` bytes. All numbers have 32 bits; a total that does not
    // fit is invalid.
    let framed = |head: usize, body: u32| {
        let total = i32::try_from(body as i64 + head as i64);
        match total {
            Ok(total) if limits.packet_bytes == 0 || body <= limits.packet_bytes => {
                Length::Known(total as usize)
            }
            _ => Length::Invalid,
        }
    };
    let head = match kind {
        Kind::Raw | Kind::Line => 1,
        Kind::Length(l) => l as usize,
        Kind::Asn1 => 2,
        Kind::SunRm | Kind::Tpkt => 4,
        Kind::Cdr => 12,
        Kind::FastCgi => 8,
        Kind::SslTls => 5,
        Kind::Http { .. } | Kind::HttpHeader { .. } => 1,
    };
    if n < head {
        return Length::Unknown;
    }
    match kind {
        Kind::Raw => Length::Known(n),
        Kind::Length(1) => framed(1, b[0] as u32),
        Kind::Length(2) => framed(2, be16(b)),
        Kind::Length(_) => framed(4, be32(b)),
        Kind::SunRm => framed(4, be32(b) & 0x7FFF_FFFF),
        Kind::Line => line_length(b, limits),
        Kind::Asn1 => match asn1_head(b) {
            Asn1::Head(head, body) => framed(head, body),
            Asn1::More => Length::Unknown,
            Asn1::Invalid => Length::Invalid,
        },
        Kind::Cdr => {
            if &b[..4] != b"GIOP" {
                return Length::Invalid;
            }
            let size = be32(&b[8..]);
            framed(
                12,
                if b[6] & 1 == 1 {
                    size.swap_bytes()
                } else {
                    size
                },
            )
        }
        Kind::FastCgi if b[0] != 1 => Length::Invalid,
        Kind::FastCgi => framed(8, be16(&b[4..]) + b[6] as u32),
        Kind::Tpkt => match be16(&b[2..]).checked_sub(4) {
            Some(body) if b[0] == 3 => framed(4, body),
            _ => Length::Invalid,
        },
        // An SSL 2 greeting, which has a header of its own.
        Kind::SslTls if b[0] & 0x80 != 0 && b[2] == 1 => match (be16(b) & 0x7FFF).checked_sub(3) {
            Some(body) => framed(5, body),
            None => Length::Invalid,
        },
        Kind::SslTls => framed(5, be16(&b[3..])),
        Kind::Http { .. } => http_length(b, limits, in_headers),
        Kind::HttpHeader { .. } => http_length(b, limits, true),
    }
}

fn line_length(b: &[u8], limits: Limits) -> Length {
    let (max, cut) = (limits.packet_bytes as usize, limits.line_bytes as usize);
    match memchr::memchr(limits.delimiter, b) {
        None if max != 0 && b.len() > max => Length::Invalid,
        None if cut != 0 && b.len() >= cut => Length::Known(cut),
        None => Length::Unknown,
        Some(i) if max != 0 && i + 1 > max => Length::Invalid,
        Some(i) if cut != 0 && i + 1 > cut => Length::Known(cut),
        Some(i) => Length::Known(i + 1),
    }
}

enum Asn1 {
    /// Number of bytes of tag and length, and of the contents.
    Head(usize, u32),
    More,
    Invalid,
}

/// Parses tag and length of a BER value of which at least two bytes have arrived.
fn asn1_head(b: &[u8]) -> Asn1 {
    let mut at = 1;
    if b[0] & 0x1F == 0x1F {
        while b.get(at).is_some_and(|c| c & 0x80 != 0) {
            at += 1;
        }
        if b.len() - at < 2 {
            return Asn1::More;
        }
        at += 1;
    }
    let first = b[at];
    at += 1;
    let short = (first & 0x7F) as usize;
    if first & 0x80 == 0 {
        return Asn1::Head(at, short as u32);
    }
    if b.len() - at < short {
        return Asn1::More;
    }
    if short > 4 {
        return Asn1::Invalid;
    }
    let body = b[at..at + short]
        .iter()
        .fold(0, |n: u32, &c| n << 8 | c as u32);
    Asn1::Head(at + short, body)
}

fn http_length(b: &[u8], limits: Limits, in_headers: bool) -> Length {
    if b == b"\n" || b == b"\r\n" {
        return Length::Known(b.len());
    }
    // Older programs limit HTTP lines by the line length.
    let max = match limits.packet_bytes {
        0 => limits.line_bytes,
        n => n,
    } as usize;
    let mut from = 0;
    loop {
        let Some(i) = memchr::memchr(b'\n', &b[from..]) else {
            return if max != 0 && b.len() >= max {
                Length::Invalid
            } else {
                Length::Unknown
            };
        };
        let len = from + i + 1;
        // A header continues if the next line starts with a space, so the next byte must have
        // arrived.
        let next = b.get(len).copied();
        if in_headers && len > 2 && next.is_some_and(is_space) {
            from = len;
            continue;
        }
        if max != 0 && len > max {
            return Length::Invalid;
        }
        return if in_headers && next.is_none() {
            Length::Unknown
        } else {
            Length::Known(len)
        };
    }
}

/// A complete packet.
#[derive(Debug)]
pub enum Parsed<'a> {
    /// The contents, without length and padding.
    Plain(&'a [u8]),
    Response {
        version: (i32, i32),
        status: i32,
        phrase: &'a [u8],
    },
    Request {
        method: &'a [u8],
        uri: Uri<'a>,
        version: (i32, i32),
    },
    Header {
        /// The name in canonical case: as [`HEADERS`] writes the names it has.
        name: std::borrow::Cow<'a, [u8]>,
        original: &'a [u8],
        value: &'a [u8],
    },
    EndOfHeaders,
    /// A line that is not HTTP.
    HttpError(&'a [u8]),
    SslTls {
        content: u8,
        version: (u8, u8),
        /// Bytes that replace the header of an SSL 2 greeting.
        prefix: Option<[u8; 4]>,
        data: &'a [u8],
    },
}

/// Makes a term of bytes.
pub(crate) type MakeTerm<'a> = &'a dyn Fn(&mut dyn Alloc, &[u8]) -> Term;

/// The target of a request.
#[derive(Debug)]
pub enum Uri<'a> {
    Star,
    Path(&'a [u8]),
    Absolute {
        https: bool,
        host: &'a [u8],
        /// 0 if not given.
        port: i32,
        path: &'a [u8],
    },
    Scheme(&'a [u8], &'a [u8]),
    Other(&'a [u8]),
}

const METHODS: &[&str] = &["OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE"];

/// Header names that are returned as atoms. A name's position, counted from 1, is the second
/// element of its tuple.
pub(crate) const HEADERS: &[&str] = &[
    "Cache-Control",
    "Connection",
    "Date",
    "Pragma",
    "Transfer-Encoding",
    "Upgrade",
    "Via",
    "Accept",
    "Accept-Charset",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "From",
    "Host",
    "If-Modified-Since",
    "If-Match",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Max-Forwards",
    "Proxy-Authorization",
    "Range",
    "Referer",
    "User-Agent",
    "Age",
    "Location",
    "Proxy-Authenticate",
    "Public",
    "Retry-After",
    "Server",
    "Vary",
    "Warning",
    "Www-Authenticate",
    "Allow",
    "Content-Base",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Location",
    "Content-Md5",
    "Content-Range",
    "Content-Type",
    "Etag",
    "Expires",
    "Last-Modified",
    "Accept-Ranges",
    "Set-Cookie",
    "Set-Cookie2",
    "X-Forwarded-For",
    "Cookie",
    "Keep-Alive",
    "Proxy-Connection",
];

/// Header names longer than this keep their case.
const MAX_NAME_BYTES: usize = 50;

/// Parses a packet whose length comes from [`length`]. `in_headers` is the connection's HTTP state,
/// which this updates.
///
/// The packet may have been measured as one of another kind, if the socket's kind was changed in
/// the middle of it. A packet too short for this kind is returned whole.
pub fn parse<'a>(kind: Kind, packet: &'a [u8], in_headers: &mut bool) -> Parsed<'a> {
    let head = match kind {
        Kind::Length(l) => l as usize,
        Kind::FastCgi => 8 + packet.get(6).map_or(0, |&padding| padding as usize),
        Kind::SslTls => 5,
        _ => 0,
    };
    if packet.len() < head {
        return Parsed::Plain(packet);
    }
    match kind {
        Kind::Length(l) => Parsed::Plain(&packet[l as usize..]),
        Kind::FastCgi => Parsed::Plain(&packet[..packet.len() - packet[6] as usize]),
        Kind::Http { .. } | Kind::HttpHeader { .. } => {
            if let Kind::HttpHeader { .. } = kind {
                *in_headers = true;
            }
            parse_http(packet, in_headers).unwrap_or(Parsed::HttpError(packet))
        }
        Kind::SslTls if packet[0] & 0x80 != 0 && packet[2] == 1 => {
            let len = (packet.len() - 3) as u32;
            Parsed::SslTls {
                content: 22,
                version: (packet[3], packet[4]),
                prefix: Some([1, (len >> 16) as u8, (len >> 8) as u8, len as u8]),
                data: &packet[3..],
            }
        }
        Kind::SslTls => Parsed::SslTls {
            content: packet[0],
            version: (packet[1], packet[2]),
            prefix: None,
            data: &packet[5..],
        },
        Kind::Raw | Kind::Asn1 | Kind::SunRm | Kind::Cdr | Kind::Line | Kind::Tpkt => {
            Parsed::Plain(packet)
        }
    }
}

/// Takes the prefix of `s` for which `is` holds.
fn take<'a>(s: &mut &'a [u8], is: impl Fn(u8) -> bool) -> &'a [u8] {
    let n = s.iter().position(|&c| !is(c)).unwrap_or(s.len());
    let (a, b) = s.split_at(n);
    *s = b;
    a
}

/// Converts digits to a number of 32 bits, wrapping around.
fn digits(s: &[u8]) -> i32 {
    s.iter().fold(0i32, |n, c| {
        n.wrapping_mul(10).wrapping_add((c - b'0') as i32)
    })
}

/// Takes `Major.Minor`.
fn version(s: &mut &[u8]) -> Option<(i32, i32)> {
    let digit = |c: u8| c.is_ascii_digit();
    let major = take(s, digit);
    let rest = s.strip_prefix(b".")?;
    *s = rest;
    let minor = take(s, digit);
    (!major.is_empty() && !minor.is_empty()).then(|| (digits(major), digits(minor)))
}

/// Whether a character ends a name.
fn is_special(c: u8) -> bool {
    !(33..128).contains(&c) || b"()<>@,;:\\\"/[]?={}".contains(&c)
}

fn parse_http<'a>(packet: &'a [u8], in_headers: &mut bool) -> Option<Parsed<'a>> {
    let n = packet.len();
    let line = if n >= 2 && packet[n - 2] == b'\r' {
        &packet[..n - 2]
    } else {
        packet.strip_suffix(b"\n").unwrap_or(packet)
    };
    if *in_headers {
        return parse_header(line, in_headers);
    }
    let mut s = line;
    if let Some(rest) = line.strip_prefix(b"HTTP/") {
        s = rest;
        let version = version(&mut s)?;
        if take(&mut s, is_space).is_empty() {
            return None;
        }
        let status = digits(take(&mut s, |c| c.is_ascii_digit()));
        if take(&mut s, is_space).is_empty() && !s.is_empty() {
            return None;
        }
        *in_headers = true;
        return Some(Parsed::Response {
            version,
            status,
            phrase: s,
        });
    }
    let method = take(&mut s, |c| !is_special(c));
    if method.is_empty() || take(&mut s, is_space).is_empty() {
        return None;
    }
    let target = take(&mut s, |c| !is_space(c));
    if target.is_empty() {
        return None;
    }
    take(&mut s, is_space);
    let version = if s.is_empty() {
        (0, 9)
    } else if s.len() < 8 {
        return None;
    } else {
        s = s.strip_prefix(b"HTTP/")?;
        version(&mut s)?
    };
    *in_headers = true;
    Some(Parsed::Request {
        method,
        uri: parse_uri(target),
        version,
    })
}

fn parse_header<'a>(line: &'a [u8], in_headers: &mut bool) -> Option<Parsed<'a>> {
    if line.is_empty() {
        *in_headers = false;
        return Some(Parsed::EndOfHeaders);
    }
    let mut s = line;
    let original = take(&mut s, |c| !is_special(c));
    s = s.strip_prefix(b":")?;
    take(&mut s, is_space);
    let name = if original.len() > MAX_NAME_BYTES {
        original.into()
    } else {
        let mut start = true;
        let cased: Vec<u8> = original
            .iter()
            .map(|&c| {
                let was_start = std::mem::replace(&mut start, false);
                if was_start {
                    return c.to_ascii_uppercase();
                }
                start = c == b'-';
                c.to_ascii_lowercase()
            })
            .collect();
        cased.into()
    };
    Some(Parsed::Header {
        name,
        original,
        value: s,
    })
}

fn parse_uri(u: &[u8]) -> Uri<'_> {
    let starts = |with: &[u8]| u.len() >= with.len() && u[..with.len()].eq_ignore_ascii_case(with);
    if u == b"*" {
        Uri::Star
    } else if u.len() <= 1 || u[0] == b'/' {
        Uri::Path(u)
    } else if starts(b"http://") {
        absolute(false, &u[7..])
    } else if starts(b"https://") {
        absolute(true, &u[8..])
    } else {
        match memchr::memchr(b':', u) {
            Some(i) => Uri::Scheme(&u[..i], &u[i + 1..]),
            None => Uri::Other(u),
        }
    }
}

fn absolute(https: bool, u: &[u8]) -> Uri<'_> {
    let (place, path) = match memchr::memchr(b'/', u) {
        Some(i) => u.split_at(i),
        None => (u, &b"/"[..]),
    };
    // Colons of a bracketed address do not end the host.
    let end = match place {
        [b'[', ..] if release::has(BRACKETED_HOSTS) => memchr::memchr(b']', place),
        _ => None,
    };
    let colon = match end {
        Some(i) if place.get(i + 1) == Some(&b':') => Some(i + 1),
        Some(_) => None,
        None => memchr::memchr(b':', place),
    };
    let (host, port) = match colon {
        Some(i) if place[i + 1..].iter().all(u8::is_ascii_digit) => {
            (&place[..i], digits(&place[i + 1..]))
        }
        Some(i) => (&place[..i], 0),
        None => (&place[..end.map_or(place.len(), |i| i + 1)], 0),
    };
    Uri::Absolute {
        https,
        host,
        port,
        path,
    }
}

impl Parsed<'_> {
    /// Makes the term for the packet. `string` makes terms for strings, `plain` for unstructured
    /// contents.
    pub fn to_term(&self, a: &mut dyn Alloc, string: MakeTerm, plain: MakeTerm) -> Term {
        let pair = |a: &mut dyn Alloc, (x, y): (i32, i32)| {
            a.tuple(&[Term::small(x as i64), Term::small(y as i64)])
        };
        match self {
            Parsed::Plain(b) => plain(a, b),
            Parsed::Response {
                version,
                status,
                phrase,
            } => {
                let version = pair(a, *version);
                let phrase = string(a, phrase);
                a.tuple(&[
                    a_http_response(),
                    version,
                    Term::small(*status as i64),
                    phrase,
                ])
            }
            Parsed::Request {
                method,
                uri,
                version,
            } => {
                let method = match METHODS.iter().find(|m| m.as_bytes() == *method) {
                    Some(m) => atom::intern(m),
                    None => string(a, method),
                };
                let uri = uri.to_term(a, string);
                let version = pair(a, *version);
                a.tuple(&[a_http_request(), method, uri, version])
            }
            Parsed::Header {
                name,
                original,
                value,
            } => {
                let known = HEADERS.iter().position(|h| h.as_bytes() == &name[..]);
                let (bit, name) = match known {
                    Some(i) => (i as i64 + 1, atom::intern(HEADERS[i])),
                    None => (0, string(a, name)),
                };
                let original = string(a, original);
                let value = string(a, value);
                a.tuple(&[a_http_header(), Term::small(bit), name, original, value])
            }
            Parsed::EndOfHeaders => a_http_eoh(),
            Parsed::HttpError(line) => {
                let line = string(a, line);
                a.tuple(&[a_http_error(), line])
            }
            Parsed::SslTls {
                content,
                version,
                prefix,
                data,
            } => {
                let version = pair(a, (version.0 as i32, version.1 as i32));
                let data = match prefix {
                    Some(p) => a.binary(&[&p[..], data].concat()),
                    None => a.binary(data),
                };
                a.tuple(&[
                    a_ssl_tls(),
                    NIL,
                    Term::small(*content as i64),
                    version,
                    data,
                ])
            }
        }
    }
}

impl Uri<'_> {
    fn to_term(&self, a: &mut dyn Alloc, string: MakeTerm) -> Term {
        match *self {
            Uri::Star => am::MULT,
            Uri::Path(p) => {
                let p = string(a, p);
                a.tuple(&[a_abs_path(), p])
            }
            Uri::Absolute {
                https,
                host,
                port,
                path,
            } => {
                let host = string(a, host);
                let path = string(a, path);
                let port = match port {
                    0 => am::UNDEFINED,
                    n => Term::small(n as i64),
                };
                let scheme = if https { a_https() } else { a_http() };
                a.tuple(&[a_absolute_uri(), scheme, host, port, path])
            }
            Uri::Scheme(scheme, rest) => {
                let scheme = string(a, scheme);
                let rest = string(a, rest);
                a.tuple(&[a_scheme(), scheme, rest])
            }
            Uri::Other(u) => string(a, u),
        }
    }
}
