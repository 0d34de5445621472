//! Natives of the tags of dynamic tracing. This build has no probes, so there are no tags.

use crate::cx::{BifResult, Cx, Fail};
use purlin_term::{Term, am};

fn dt_no_tag_0(_cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(am::UNDEFINED)
}

fn dt_put_tag_1(_cx: &mut Cx, [_]: [Term; 1]) -> BifResult {
    Ok(am::UNDEFINED)
}

fn dt_same_1(_cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    Ok(t)
}

fn dt_spread_tag_1(_cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    t.as_bool().map(|_| am::TRUE).ok_or(Fail::Badarg)
}

/// Accepts the result of `dt_spread_tag/1`.
fn dt_restore_tag_1(_cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    (t == am::TRUE).then_some(t).ok_or(Fail::Badarg)
}

crate::bifs! {
    Plain "erlang":"dt_put_tag"/1 = dt_put_tag_1;
    Plain "erlang":"dt_get_tag"/0 = dt_no_tag_0;
    Plain "erlang":"dt_get_tag_data"/0 = dt_no_tag_0;
    Plain "erlang":"dt_prepend_vm_tag_data"/1 = dt_same_1;
    Plain "erlang":"dt_append_vm_tag_data"/1 = dt_same_1;
    Plain "erlang":"dt_spread_tag"/1 = dt_spread_tag_1;
    Plain "erlang":"dt_restore_tag"/1 = dt_restore_tag_1;
}
