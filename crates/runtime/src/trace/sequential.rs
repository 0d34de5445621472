//! Sequential tracing: what the tokens that go with messages tell. The tokens: `signal/token.rs`.

use super::{flag, timestamp};
use crate::lazy_atoms;
pub use crate::signal::token::*;
use purlin_term::{Term, copy};

lazy_atoms! {
    seq_trace = "seq_trace";
}

/// Tells the sequential tracer `{seq_trace, Label, {What, {Previous, Serial}, From, To, Message}}`, with a time if the
/// token asks for one.
pub fn tell(t: &Token, what: Term, to: Term, msg: Term) {
    let tracer = crate::bif::trace::sequential_tracer();
    if tracer == purlin_term::am::FALSE {
        return;
    }
    let wanted = |f: u32, time: u32| if t.flags & f != 0 { time } else { 0 };
    let time = wanted(token_flag::TIMESTAMP, flag::TIMESTAMP)
        | wanted(token_flag::STRICT_MONOTONIC, flag::STRICT_MONOTONIC)
        | wanted(token_flag::MONOTONIC, flag::MONOTONIC);
    super::tell(tracer, |a| {
        let serial = a.tuple(&[Term::small(t.previous), Term::small(t.serial)]);
        let (to, msg) = (copy::copy(to, a), copy::copy(msg, a));
        let from = copy::copy(t.from.term(), a);
        let info = a.tuple(&[what, serial, from, to, msg]);
        let mut v = vec![seq_trace(), copy::copy(t.label.term(), a), info];
        v.extend(timestamp(a, time));
        a.tuple(&v)
    });
}
