//! The port that is there from the beginning, with number 0. On stock it starts programs. Here it is only what others can see of it:
//! programs look at the first of all ports.
//!
//! It takes what any port takes, and never ends.

use super::{Base, Driver, FIRST, TABLE, add};
use crate::gather::Gather;
use crate::poll;
use purlin_term::Term;

struct Forker;

impl Driver for Forker {
    fn output(&mut self, _: &mut Base, _: &mut Gather) {}
    fn ready(&mut self, _: &mut Base, _: poll::Id, _: bool, _: bool) {}
    fn stop(&mut self, _: &mut Base) {}
}

/// Enters it into the table. It belongs to the first process, which is not linked with it.
pub fn begin(first: Term) {
    let mut t = TABLE.write();
    let p = add(&mut t, FIRST, b"forker", first);
    p.core.lock().driver = Some(Box::new(Forker));
}
