//! Frames of another node, as a connection brings them after the handshake.

use purlin_dist::table::{self, Controller};
use purlin_dist::{flags, input};
use purlin_term::{Term, am, atom, node};

/// Bytes that no process waits for are taken back from a connection by this many packets at a time.
const TAKEN: usize = 64;

/// Input: what both nodes are capable of, as the bits of a byte, then frames, each behind its length in two bytes. All come
/// on one connection, until it is to be killed.
pub fn run(data: &[u8]) {
    let Some((&capable, mut rest)) = data.split_first() else {
        return;
    };
    purlin_runtime::bif::install();
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
        if !input::packet(&n, id, frame) {
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
