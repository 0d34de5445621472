//! temporary
use crate::bifs;
use crate::cx::{BifResult, Cx, Fail};
use purlin_term::{Term, etf};
fn b2t(cx: &mut Cx, [b]: [Term; 1]) -> BifResult {
    let bytes = b.as_binary().ok_or(Fail::Badarg)?;
    match etf::decode(&bytes, &mut cx.heap, &crate::code::CodeHooks, etf::Options::default()) {
        Ok((t, _)) => Ok(t),
        Err(_) => Err(Fail::Badarg),
    }
}
bifs! { Plain "erlang":"binary_to_term"/1 = b2t; }
