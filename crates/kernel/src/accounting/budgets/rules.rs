//! The rules of `+Fbudget`: budgets of applications, and of what registered processes start.

use super::seats::set_starts;
use super::tree::on;
use crate::lazy_atoms;
use crate::sync::RwLock;
use purlin_term::Term;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The budgets of applications that `+Fbudget` names, by the atom of the name.
static APPLICATIONS: RwLock<Option<HashMap<u64, u32>>> = RwLock::new(None);

/// The same for registered names.
static NAMES: RwLock<Option<HashMap<u64, u32>>> = RwLock::new(None);

/// Whether there are any such rules.
static RULES: AtomicBool = AtomicBool::new(false);

/// Whether `+Fbudget` has named applications or processes.
#[inline(always)]
pub fn has_rules() -> bool {
    on() && RULES.load(Ordering::Relaxed)
}

/// The holder of a budget of `+Fbudget`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// An application: its master, and so all of its processes.
    Application,
    /// A registered name: the budget is for what its process starts from then on.
    Name,
}

/// Puts the processes of an application, or what a registered process starts, into a budget.
pub fn add_rule(whose: Whose, name: Term, budget: u32) {
    let rules = match whose {
        Whose::Application => &APPLICATIONS,
        Whose::Name => &NAMES,
    };
    let mut r = rules.write();
    r.get_or_insert_default().insert(name.raw(), budget);
    RULES.store(true, Ordering::Relaxed);
}

lazy_atoms! {
    proc_lib = "proc_lib";
    init_p = "init_p";
    application_master = "application_master";
    appl_data = "appl_data";
}

/// The budget of an application whose master is about to be spawned: `proc_lib` calls `init` of
/// `application_master`, one of whose arguments is the record of the application.
#[cold]
pub fn of_application([m, f, args]: [Term; 3]) -> Option<u32> {
    if m != proc_lib() || f != init_p() {
        return None;
    }
    let args: Vec<Term> = args.list_iter().collect();
    let &[_, _, module, _, init] = &args[..] else {
        return None;
    };
    if module != application_master() {
        return None;
    }
    let data = init.list_iter().find_map(|a| {
        let parts = a.as_tuple()?;
        (parts.first() == Some(&appl_data())).then_some(*parts.get(1)?)
    })?;
    APPLICATIONS.read().as_ref()?.get(&data.raw()).copied()
}

/// Called when a local process has got a registered name.
#[cold]
pub fn was_named(pid: Term, name: Term) {
    let rule = NAMES
        .read()
        .as_ref()
        .and_then(|r| r.get(&name.raw()).copied());
    if let Some(b) = rule {
        set_starts(pid, b);
    }
}
