//! The external term format, and match specifications that come in it.

use crate::world::{Outcome, World};
use purlin_runtime::code::CodeHooks;
use purlin_term::etf::{self, decode::Options};
use purlin_term::print::{Style, format_term};
use purlin_term::{Alloc, NIL, compare, hash};

/// A term that was decoded is encoded to bytes that decode to the same.
pub fn run(data: &[u8]) {
    let mut w = World::new();
    let options = Options {
        safe: data.len() & 1 == 1,
        ..Options::default()
    };
    let mut whole = None;
    if let Ok((t, used)) = etf::decode(data, &mut *w.cx, &CodeHooks, options) {
        assert!(used <= data.len(), "more bytes used than there are");
        assert!(compare::eq_exact(t, t), "a term that differs from itself");
        let _ = (hash::phash2(t), format_term(t, Style::Write, 10_000));
        let bytes = etf::encode(t, Default::default());
        // Of funs it tells a little more, as stock does.
        let size = etf::external_size(t, Default::default());
        assert!(size.is_some_and(|n| bytes.len() <= n));
        let (again, n) = etf::decode(&bytes, &mut *w.cx, &CodeHooks, Options::default())
            .expect("what was encoded decodes");
        assert_eq!(n, bytes.len());
        assert!(compare::eq_exact(t, again), "decodes to another term");
        whole = Some(bytes);
    }
    // The same in slices, as the native does it.
    let b = w.cx.binary(data);
    let got = w.apply("erlang", "binary_to_term", &[b], 100_000);
    match (got, whole) {
        (Outcome::Value(t), Some(bytes)) => {
            assert_eq!(etf::encode(t, Default::default()), bytes)
        }
        // Names that are not there yet only matter to the first way.
        (Outcome::Value(_), None) => assert!(options.safe),
        (Outcome::Exception(_), None) => {}
        (got, _) => panic!("in slices: {got:?}"),
    }
}

/// Input: an external term, a pair of a match specification and a list of terms to match.
pub fn match_spec(data: &[u8]) {
    let mut w = World::new();
    let Ok((t, _)) = etf::decode(data, &mut *w.cx, &CodeHooks, Options::default()) else {
        return;
    };
    let (spec, terms) = match t.as_tuple() {
        Some(&[spec, terms]) => (spec, terms),
        _ => (t, NIL),
    };
    let terms = if terms.list_to_vec().is_some() {
        terms
    } else {
        w.cx.list(&[t])
    };
    if let Ok(compiled) = w.native("ets", "match_spec_compile", &[spec]) {
        let _ = w.native("ets", "match_spec_run_r", &[terms, compiled, NIL]);
    }
}
