//! Everything outside of processes (ports, nodes, tables), behind a trait for crates that do not
//! know it.

use crate::cx::{Cx, Fail};
use crate::natives::signals::sending;
use crate::process::remote::{Remote, Watched};
use purlin_dist::signals;
use purlin_kernel::outside::{How, Outside, Sent};
use purlin_term::{Alloc, Term};

/// Ports, tables, files, sockets and nodes.
pub(crate) struct World;

impl Outside for World {
    fn port_send(&self, cx: &mut Cx, port: Term, msg: Term, how: How) -> Result<Sent, Fail> {
        crate::port::send(cx, port, msg, how.no_suspend)
    }
    fn port_exit(&self, port: Term, from: Term, reason: Term) {
        crate::port::link_broken(port, from, reason);
    }
    fn port_demonitor(&self, port: Term, reference: Term) {
        crate::port::demonitor(port, reference);
    }
    fn port_is_open(&self, port: Term) -> bool {
        crate::port::find(port).is_some_and(|p| crate::port::is_open(&p))
    }
    fn watched_down(&self, reference: Term, pid: Term) {
        purlin_nif::watched_down(reference, pid);
    }
    fn watched_by(&self, reference: [u32; 3], to: &mut dyn Alloc) -> Option<Term> {
        purlin_nif::watched_by(reference, to)
    }
    fn watching(&self, pid: Term, to: &mut dyn Alloc, out: &mut Vec<Term>) {
        purlin_io::prim_file::watching(pid, to, out);
        purlin_io::socket::watching(pid, to, out);
    }
    fn process_ends(&self, cx: &mut Cx) {
        crate::port::sender_exiting(cx);
    }
    fn owner_exit(&self, pid: Term) {
        crate::ets::owner_exit(pid);
        purlin_io::prim_file::owner_exit(pid);
        purlin_io::socket::owner_exit(pid);
        purlin_io::prim_tty::owner_exit(pid);
        crate::port::sender_exited(pid);
        purlin_nif::owner_exit(pid);
        purlin_dist::observers::owner_exit(pid);
    }
    fn remote_send(&self, cx: &mut Cx, to: Term, msg: Term, how: How) -> Result<Sent, Fail> {
        signals::message(cx, to, msg, how, &sending::LONG)
    }
    fn remote_demonitor(&self, me: Term, watched: &Watched) {
        signals::demonitor(me, watched);
    }
    fn remote_end(&self, cx: &mut Cx, me: Term, ties: Remote, reason: Term) {
        signals::ended(cx.process(), me, ties, reason);
    }
    fn crash_dump(&self, slogan: &str) {
        if let Some(d) = crate::diagnostics::diagnostics() {
            d.crash_dump(slogan);
        }
    }
}
