//! Frames of another node, as a connection brings them after the handshake.

use purlin_dist::table::{self, Controller, Node};
use purlin_dist::{flags, input};
use purlin_io::port::channel::More;
use purlin_term::{Term, am, atom, node};
use std::sync::Arc;

/// Bytes that no process waits for are taken back from a connection by this many packets at a time.
const TAKEN: usize = 64;

/// Input: a byte whose bits are the capabilities of both nodes, then frames, each behind its length
/// in two bytes. All arrive on one connection, until a frame has it killed. With bit 3, frames that
/// a connection reads straight to their destination arrive in pieces.
pub fn run(data: &[u8]) {
    let Some((&capable, mut rest)) = data.split_first() else {
        return;
    };
    purlin_runtime::natives::install();
    purlin_term::region::init();
    let _ = purlin_runtime::report::set_system_logger(am::UNDEFINED);
    node::set_this(atom::intern("this@fuzz"), 1);
    let mut with = flags::of_release(25).default;
    for (bit, flag) in [
        flags::DIST_HDR_ATOM_CACHE,
        flags::FRAGMENTS,
        flags::EXIT_PAYLOAD,
    ]
    .into_iter()
    .enumerate()
    {
        if capable >> bit & 1 == 0 {
            with &= !flag;
        }
    }
    let n = table::get(atom::intern("other@fuzz"));
    let id = n.connection();
    assert_eq!(
        n.connected(Controller::Process(Term::pid(1)), with, 1, || {}),
        Some(id)
    );
    while let Some((length, more)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(more.len());
        let (frame, more) = more.split_at(length);
        rest = more;
        let good = match capable >> 3 & 1 {
            1 => in_pieces(&n, id, frame).unwrap_or_else(|| input::packet(&n, id, frame)),
            _ => input::packet(&n, id, frame),
        };
        if !good {
            break;
        }
        // What it answers is good: it is read again.
        for _ in 0..TAKEN {
            if n.next(id).is_none() {
                break;
            }
        }
    }
    n.down(id, am::NORMAL);
}

/// Delivers a frame like a port that reads it straight to its destination. Returns whether it is
/// good; None if it has no such destination.
fn in_pieces(n: &Arc<Node>, id: u32, frame: &[u8]) -> Option<bool> {
    let known = frame.len().checked_sub(1)?.min(18 + frame.len() % 7);
    let (front, mut rest) = frame.split_at(known);
    if !input::begin_packet(n, id, front, rest.len()) {
        return None;
    }
    while !rest.is_empty() {
        let piece = rest.len().min(1 + rest.len() % 5);
        let r = input::read_more(n, id, rest.len(), &mut |to| {
            Ok(to[..piece].write_copy_of_slice(&rest[..piece]))
        });
        if matches!(r, More::Bad) {
            return Some(false);
        }
        rest = &rest[piece..];
    }
    Some(true)
}
