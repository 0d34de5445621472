//! Natives of module `erlang` that make pids, ports and references from text.
//!
//! The first number names the node: 0 is this one. Any other is the index of the node name's atom,
//! and there must be a connection, from which the node's creation is known.

use crate::cx::{BifResult, Cx, Fail};
use purlin_dist::distribution_natives::connected_by_number;
use purlin_isa::release::LONG_ALIAS_TEXT;
use purlin_native::{bif::schedulers, ids};
use purlin_natives::identifiers::numbers;
use purlin_term::node::{self, Node};
use purlin_term::release;
use purlin_term::unassigned_ids;
use purlin_term::word::{PID_DATA_BITS, PID_NUM_BITS, Subtag};
use purlin_term::{Alloc, Term};

/// Maximum characters of a text of each kind, as in stock; leading zeros of a number count.
const PID_CHARS: usize = 64;
const PORT_CHARS: usize = 38;
const REF_CHARS: usize = 71;

/// The node with that number, which is not this one. The caller owns one count of it.
fn elsewhere(number: u64) -> Result<&'static Node, Fail> {
    let (name, creation) = connected_by_number(number).ok_or(Fail::Badarg)?;
    Ok(node::intern(name, creation))
}

fn list_to_pid_1(cx: &mut Cx, [l]: [Term; 1]) -> BifResult {
    let Some(&[number, num, serial]) = numbers(l, "<", PID_CHARS).as_deref() else {
        return Err(Fail::Badarg);
    };
    if number != 0 {
        if num > u64::from(u32::MAX) || serial > u64::from(u32::MAX) {
            return Err(Fail::Badarg);
        }
        return Ok(cx.external(Subtag::ExtPid, elsewhere(number)?, num | serial << 32));
    }
    let serial = u32::try_from(serial).map_err(|_| Fail::Badarg)?;
    if num >> PID_NUM_BITS != 0 || serial >> (PID_DATA_BITS - PID_NUM_BITS) != 0 {
        return unassigned_ids::unassigned_id(Subtag::ExtPid, num, serial, cx).ok_or(Fail::Badarg);
    }
    Ok(Term::pid(num as u32 | serial << PID_NUM_BITS))
}

fn list_to_port_1(cx: &mut Cx, [l]: [Term; 1]) -> BifResult {
    match numbers(l, "#Port<", PORT_CHARS).as_deref() {
        // As on stock, which keeps 32 bits of the node's number.
        Some(&[number, num]) if number as u32 != 0 => {
            let node = elsewhere(u64::from(number as u32))?;
            Ok(cx.external(Subtag::ExtPort, node, num))
        }
        Some(&[_, num]) if num >> PID_DATA_BITS == 0 => Ok(Term::port(num as u32)),
        Some(&[_, num]) => {
            unassigned_ids::unassigned_id(Subtag::ExtPort, num, 0, cx).ok_or(Fail::Badarg)
        }
        _ => Err(Fail::Badarg),
    }
}

fn list_to_ref_1(cx: &mut Cx, [l]: [Term; 1]) -> BifResult {
    let all = numbers(l, "#Ref<", REF_CHARS).ok_or(Fail::Badarg)?;
    // The text has the numbers of the reference in reverse order.
    let (number, nums) = match all.split_first() {
        Some((&number, rest)) if (1..=5).contains(&rest.len()) => (number, rest),
        _ => return Err(Fail::Badarg),
    };
    let nums: Option<Vec<u32>> = (nums.iter().rev())
        .map(|&n| u32::try_from(n).ok())
        .collect();
    let nums = nums.ok_or(Fail::Badarg)?;
    if number != 0 {
        return Ok(cx.external_ref(elsewhere(number)?, &nums));
    }
    match nums[..] {
        [a, b, c] if is_of_this_node([a, b, c]) => Ok(cx.local_ref([a, b, c])),
        // Later releases have two more numbers for aliases. Elsewhere those say nothing.
        [a, b, c, _, _] if b & ALIAS == 0 && release::has(LONG_ALIAS_TEXT) => {
            is_of_this_node([a, b, c])
                .then(|| cx.local_ref([a, b, c]))
                .ok_or(Fail::Badarg)
        }
        _ => Err(Fail::Badarg),
    }
}

/// The bit that the second number of an alias has on stock.
const ALIAS: u32 = 1 << 16;

/// Whether stock takes these for the numbers of a reference of this node: the first has 18 bits,
/// and the low half of the second is the number of the scheduler that made it. References made here
/// have any number there, so those that may exist are right as well.
fn is_of_this_node(numbers: [u32; 3]) -> bool {
    let [a, b, _] = numbers;
    let maker = (b & 0xFFFF) as usize;
    a < 1 << 18 && (maker <= schedulers() || ids::may_be_made(numbers))
}

crate::bifs! {
    Plain "erlang":"list_to_pid"/1 = list_to_pid_1;
    Plain "erlang":"list_to_port"/1 = list_to_port_1;
    Plain "erlang":"list_to_ref"/1 = list_to_ref_1;
}
