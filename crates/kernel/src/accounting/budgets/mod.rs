//! Budgets: limits that hold for a process and for everything that it starts.
//!
//! Budgets form a tree below the root, which has no limits. Each process belongs to one budget and
//! inherits it to the processes that it spawns; a table and a port belong to the budget of their
//! owner. What is charged to a budget is charged to its parents too, so a child never gets more
//! than its parents have left.
//!
//! A budget is a row (`row.rs`) of a table (`tree.rs`). `counts.rs` charges it, for processes by
//! their seats (`seats.rs`, `weighing.rs`), for tables and ports (`charge.rs`), and for what a
//! thread makes outside of heaps (`paying.rs`). `fullness.rs` says when freed memory is given back.
//! `processor.rs` and `../budget_weights.rs` divide
//! processor time, `slices.rs` measures it. `rules.rs` has what `+Fbudget` says.

mod charge;
mod counts;
mod ended;
mod fullness;
mod paying;
mod processor;
mod row;
mod rules;
mod seats;
mod slices;
mod tree;
mod weighing;

use crate::keys::RefKey;
use paying::LEDGER;
use purlin_term::frag::OwnedTerm;
use purlin_term::{payer, pressure};
use tree::set_on;

pub use charge::Charge;
pub use counts::{Excess, excess_of_copy, fills_up, memory_left, note_reached};
pub use paying::{Paying, allow, charge_atom, lower_allowance, part_of, pays};
pub use row::{Budget, Counted, Events, Limits, NO_LIMIT, Over, ROOT};
pub use rules::{Whose, add_rule, has_rules, of_application, was_named};
pub use seats::{
    Seat, admit, dismiss, has_share, held_by, inherited, join, leave_seat, members, of, of_cell,
    of_pid, seat, seat_or_new, set_starts, take_seat,
};
pub use slices::{begins, ends, keeps_clean, takes_collection};
pub use tree::{
    Held, TooMany, all, bound, each, end, find, get, is_within, may_report, notified, on,
    release_ended, throttled, was_late,
};
pub use weighing::{Holder, largest, note_copy, note_place, weigh};

/// Turns budgets on: from now on, seats are looked at.
pub fn turn_on() {
    pressure::begin_allowances();
    payer::billed_by(LEDGER);
    set_on();
}

/// Makes a budget below `parent`, which the caller belongs to. Returns its index and its key.
pub fn make(parent: u32, name: OwnedTerm, limits: &Limits) -> Result<(u32, RefKey), TooMany> {
    let made = tree::insert(parent, name, limits)?;
    turn_on();
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use purlin_term::am;

    fn budget(parent: u32, processes: i64) -> u32 {
        let mut l = Limits::default();
        l.counted[Counted::Processes as usize] = Some(processes);
        let made = make(parent, OwnedTerm::copy_of(am::OK), &l);
        made.expect("room for a budget").0
    }

    #[test]
    fn a_child_counts_for_its_parents_and_gets_no_more_than_they_have() {
        let a = budget(ROOT, 3);
        let b = budget(a, 100);
        assert!(is_within(b, a) && is_within(a, ROOT) && !is_within(a, b));
        assert!(admit(b) && admit(b) && admit(a));
        assert!(!admit(b) && !admit(a));
        let used = |i: u32| get(i).expect("in use").account(Counted::Processes);
        assert_eq!(used(b), [100, 2, 3, 0]);
        assert_eq!(used(a), [3, 3, 3, 2]);
        dismiss(b);
        assert!(admit(a));
        // A budget that has ended takes nothing in, and leaves when nothing holds it.
        let key = get(b).and_then(Budget::key).expect("has a key");
        let ended = end(b);
        assert_eq!(ended, [b]);
        assert!(!admit(b) && was_late(b) && !was_late(a));
        release_ended(&ended);
        assert_eq!(get(b).and_then(Budget::key), Some(key));
        dismiss(b);
        assert_eq!(get(b).and_then(Budget::key), None);
        dismiss(a);
        dismiss(a);
        release_ended(&end(a));
        assert_eq!(get(a).and_then(Budget::key), None);
    }
}
