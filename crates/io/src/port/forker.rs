//! Port number 0, which exists from the start. In stock it starts programs. Here it exists only
//! because programs look at the first port. It accepts what any port accepts and never ends.

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

/// Enters it into the table. The first process owns it but is not linked to it.
pub fn begin(first: Term) {
    let mut t = TABLE.write();
    let p = add(&mut t, FIRST, b"forker", first);
    p.core.lock().driver = Some(Box::new(Forker));
}
