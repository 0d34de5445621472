//! `erlang:decode_packet/3`. Input: type, options, two bytes for them, the bytes to decode.

use crate::Input;
use crate::world::World;
use purlin_term::{Alloc, Term, atom};

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (kind, flags, size, line) = (input.byte(), input.byte(), input.byte(), input.byte());
    const NAMES: [&str; 15] = [
        "raw",
        "asn1",
        "sunrm",
        "cdr",
        "fcgi",
        "line",
        "tpkt",
        "http",
        "httph",
        "http_bin",
        "httph_bin",
        "ssl_tls",
        "0",
        "1",
        "2",
    ];
    let mut w = World::new();
    let kind = match NAMES.get(kind as usize % (NAMES.len() + 1)) {
        Some(n) => match n.parse() {
            Ok(n) => Term::small(n),
            Err(_) => atom::intern(n),
        },
        None => Term::small(4),
    };
    let mut options = Vec::new();
    for (bit, name, value) in [
        (1, "packet_size", size as i64),
        (2, "line_length", line as i64),
        (4, "line_delimiter", size as i64),
    ] {
        if flags & bit != 0 {
            options.push(w.cx.tuple(&[atom::intern(name), Term::small(value)]));
        }
    }
    let options = w.cx.list(&options);
    let bytes = w.cx.binary(input.0);
    let total = input.0.len();
    if let Some(t) = w
        .apply("erlang", "decode_packet", &[kind, bytes, options], 1000)
        .value()
        && let Some(&[_, _, rest]) = t.as_tuple()
    {
        let left = rest.as_bits().map_or(0, |b| b.bit_len / 8);
        assert!(left <= total, "more is left than there was");
    }
}
