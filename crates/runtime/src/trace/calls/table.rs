//! The table of breakpoints for traces.
//!
//! # Invariants
//! * An entry stays until its module is purged, also when nobody wants anything of the function: a
//!   thread that reaches a breakpoint that has just been cleared still finds it.
//! * What is wanted of a function is changed under the lock of its entry.
//! * Breakpoints of exports are set under the lock of the module's versions, so that an export is
//!   never led to another version.
//!
//! # Orderings
//! * `COUNT` is increased with release before the breakpoint can be found, which takes a lock or a
//!   word stored with release later. So a thread that has met a breakpoint also finds the count,
//!   and may load it relaxed.
//! * `ANY_ON_LOAD` is stored with release under its lock and loaded with acquire. A module that is
//!   loaded at the same moment may miss a change, as if it had been loaded before.

use super::wanted::{All, Wanted};
use crate::code::breakpoint::*;
use crate::code::entries::entries;
use crate::code::{self, Module, breakpoint};
use crate::process::session::Session;
use crate::trace::frames::{Which, number_of};
use purlin_native::hashing::Hashing;
use purlin_term::sync::{Mutex, RwLock};
use purlin_term::{Term, am};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// See [`Breakpoints::traced_apply`](crate::code::breakpoint::Breakpoints::traced_apply).
#[cold]
pub(crate) fn find_traced_apply() -> Option<*const u64> {
    let t = table().read();
    let key = (am::ERLANG.atom_index(), am::APPLY.atom_index(), 2);
    let entry = t.by_name.get(&key)?.entry as *const u64;
    // SAFETY: the entry of a function of a module that is never purged.
    unsafe { is_breakpoint(entry) }.then_some(entry)
}

pub(crate) struct Breakpoint {
    pub(crate) mfa: (Term, Term, u32),
    /// The entry of the function.
    pub(crate) entry: usize,
    /// Whether it is a native: all its calls go through the stub of the export.
    pub(crate) native: bool,
    pub(crate) wanted: Mutex<All>,
}

#[derive(Default)]
struct Table {
    /// By entry address, and by the address of the word that an export points to.
    pub(crate) at: HashMap<usize, Arc<Breakpoint>, Hashing>,
    by_name: HashMap<(u32, u32, u32), Arc<Breakpoint>, Hashing>,
}

fn table() -> &'static RwLock<Table> {
    static T: OnceLock<RwLock<Table>> = OnceLock::new();
    T.get_or_init(RwLock::default)
}

/// The breakpoint at an entry, or at the word that an export points to.
pub(super) fn breakpoint_at(address: usize) -> Option<Arc<Breakpoint>> {
    table().read().at.get(&address).cloned()
}

/// Forgets breakpoints in code at these addresses, which is about to be freed.
pub fn forget(code: std::ops::Range<usize>) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut t = table().write();
    t.at.retain(|_, b| !code.contains(&b.entry));
    t.by_name.retain(|_, b| !code.contains(&b.entry));
}

/// Forgets breakpoints in code at these addresses, which is no longer current. Calls of it are
/// neither reported nor counted.
pub(crate) fn outdated(code: std::ops::Range<usize>) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut t = table().write();
    t.by_name.retain(|_, b| !code.contains(&b.entry));
    // A process may be about to run the word that an export pointed to, and is then in no code of
    // the module. Nothing may lead from there to the module any more, since the purge would miss
    // the process.
    t.at.retain(|&at, b| at == b.entry || !code.contains(&b.entry));
    for b in t.at.values().filter(|b| code.contains(&b.entry)) {
        *b.wanted.lock() = All::default();
        // SAFETY: the entry of a function of a module that is not freed yet. A process that arrives
        // now finds the former word.
        unsafe { entries().clear_breakpoint(b.entry as *const u64) };
    }
}

/// Changes what matching functions are traced for, and returns their number. `m` and `f` are atoms,
/// `_` for all; `None` as `arity` is any.
///
/// With `exported`, only functions that other modules can call match.
pub(crate) fn change(
    which: Which,
    m: Term,
    f: Term,
    arity: Option<u32>,
    exported: bool,
    how: &dyn Fn(&mut Wanted),
) -> usize {
    let modules = if m == am::UNDERSCORE {
        code::loaded()
    } else {
        vec![m]
    };
    let mut n = 0;
    for name in modules {
        // Under the lock of the versions: otherwise exports might already point to another version,
        // and would be pointed back.
        code::with_versions(name, |v| {
            let Some(module) = &v.current else { return };
            let exports: HashSet<(Term, u32), Hashing> = match exported {
                true => module.exports.iter().map(|e| (e.0, e.1)).collect(),
                false => HashSet::default(),
            };
            for at in &module.functions {
                // SAFETY: the word of an atom.
                let function = unsafe { Term::from_raw(at.name) };
                if (f != am::UNDERSCORE && f != function) || arity.is_some_and(|a| a != at.arity) {
                    continue;
                }
                if exported && !exports.contains(&(function, at.arity)) {
                    continue;
                }
                n += 1;
                set(which, module, (name, function, at.arity), at.entry, how);
            }
        });
    }
    n
}

/// The breakpoints of modules loaded from now on, and whether only exported functions get them.
type OnLoad = (Box<dyn Fn(&mut Wanted) + Send>, bool);

static ON_LOAD: Mutex<Vec<(Option<Arc<Session>>, OnLoad)>> = Mutex::new(Vec::new());

static ANY_ON_LOAD: AtomicUsize = AtomicUsize::new(0);

/// Applies `how` to the functions of all modules loaded from now on; `None` ends this.
pub(crate) fn on_load(which: Which, how: Option<OnLoad>) {
    let mut all = ON_LOAD.lock();
    let number = number_of(which);
    match how {
        Some(_) if which.is_some_and(|s| s.is_over()) => {}
        Some(h) => all.push((which.cloned(), h)),
        None => all.retain(|(w, _)| number_of(w.as_ref()) != number),
    }
    ANY_ON_LOAD.store(all.len(), Ordering::Release);
}

/// Whether modules get breakpoints when they are loaded.
pub(crate) fn traces_loaded() -> bool {
    ANY_ON_LOAD.load(Ordering::Acquire) != 0
}

/// A module has become current.
pub fn loaded(module: &Module) {
    if !traces_loaded() {
        return;
    }
    let all = ON_LOAD.lock();
    for (which, (how, exported)) in all.iter() {
        for at in &module.functions {
            // SAFETY: the word of an atom.
            let function = unsafe { Term::from_raw(at.name) };
            let called = |e: &(Term, u32, u32)| e.0 == function && e.1 == at.arity;
            if !*exported || module.exports.iter().any(called) {
                let mfa = (module.name, function, at.arity);
                set(which.as_ref(), module, mfa, at.entry, how);
            }
        }
    }
}

/// The address at which calls of a function arrive: its entry, or for a native the stub of its
/// export; and whether it is a native.
fn arrival(module: &Module, mfa: (Term, Term, u32), entry: u32) -> (usize, bool) {
    match code::existing_export(mfa.0, mfa.1, mfa.2) {
        Some(e) if e.bif.load(Ordering::Relaxed) != 0 => (e.stub.as_ptr() as usize, true),
        _ => (module.at(entry) as usize, false),
    }
}

fn set(
    which: Which,
    module: &Module,
    mfa: (Term, Term, u32),
    entry: u32,
    how: &dyn Fn(&mut Wanted),
) {
    if code::native(mfa.0, mfa.1, mfa.2).is_some() {
        // Makes the export, so that later references to it find the breakpoint.
        code::export(mfa.0, mfa.1, mfa.2);
    }
    let (entry, native) = arrival(module, mfa, entry);
    let key = (mfa.0.atom_index(), mfa.1.atom_index(), mfa.2);
    let mut t = table().write();
    let known = t.by_name.get(&key).filter(|b| b.entry == entry).cloned();
    let b = known.unwrap_or_else(|| {
        Arc::new(Breakpoint {
            mfa,
            entry,
            native,
            wanted: Mutex::default(),
        })
    });
    let mut w = b.wanted.lock();
    let before = w.nothing();
    w.change(which, how);
    if before && w.nothing() {
        return;
    }
    if before {
        // Before anyone can find the breakpoint: from now on, stacks are searched for trace frames.
        COUNT.fetch_add(1, Ordering::Release);
    }
    // Leads to the function's own code, where the breakpoint is.
    let own = (!w.nothing()).then_some(entry as *const u64);
    code::lead_to(mfa.0, mfa.1, mfa.2, own);
    let export = code::existing_export(mfa.0, mfa.1, mfa.2);
    let exported = export.filter(|e| {
        let to = e.address() as usize;
        to == entry || to == gate(e) as usize
    });
    t.at.insert(entry, b.clone());
    if let Some(e) = exported {
        let at = gate(e);
        t.at.insert(at as usize, b.clone());
        let to = if w.global() && !native {
            at as usize
        } else {
            entry
        };
        e.lead(to as *const u64);
    }
    let stops = w.local() || native && w.global();
    if native && stops {
        breakpoint::natives_are_traced();
    }
    let at = entry as *const u64;
    // SAFETY: the entry of a function of a loaded module, or the stub of an export.
    unsafe {
        match stops {
            true => entries().set_breakpoint(at),
            false => entries().clear_breakpoint(at),
        }
    }
    drop(w);
    t.by_name.insert(key, b);
}

/// The result of `look` on what a function's calls are traced for; `None` if there is no such
/// function.
fn look<T: Default>(m: Term, f: Term, arity: u32, look: impl FnOnce(&All) -> T) -> Option<T> {
    let module = code::with_versions(m, |v| v.current.clone())?;
    let at = module
        .functions
        .iter()
        .find(|x| x.name == f.raw() && x.arity == arity)?;
    let (entry, _) = arrival(&module, (m, f, arity), at.entry);
    let t = table().read();
    let key = (m.atom_index(), f.atom_index(), arity);
    Some(match t.by_name.get(&key).filter(|b| b.entry == entry) {
        Some(b) => look(&b.wanted.lock()),
        None => T::default(),
    })
}

/// One side's wishes for a function's calls; `None` if there is no such function.
pub(crate) fn wanted(which: Which, m: Term, f: Term, arity: u32) -> Option<Wanted> {
    look(m, f, arity, |all| match which {
        None => all.plain.clone(),
        Some(s) => {
            let found = all.sessions.iter().find(|(t, _)| Arc::ptr_eq(t, s));
            found.map(|(_, w)| w.clone()).unwrap_or_default()
        }
    })
}

/// The numbers of those who trace calls of a function (see [`number_of`]); `None` if there is no
/// such function.
pub(crate) fn who_wants(m: Term, f: Term, arity: u32) -> Option<Vec<i64>> {
    look(m, f, arity, |all| {
        let sessions = all
            .sessions
            .iter()
            .filter(|(s, w)| !s.is_over() && !w.nothing());
        let mut numbers: Vec<i64> = sessions.map(|(s, _)| number_of(Some(s))).collect();
        let mut plain = all.plain.clone();
        (plain.debug, plain.watched) = (false, false);
        if !plain.nothing() {
            numbers.push(number_of(None));
        }
        numbers
    })
}

/// Whether functions of modules loaded from now on will be traced.
pub(crate) fn wants_loaded(which: Which) -> bool {
    let all = ON_LOAD.lock();
    let number = number_of(which);
    all.iter().any(|(w, _)| number_of(w.as_ref()) == number)
}

/// One side's wishes for the functions of modules loaded from now on.
pub(crate) fn wanted_of_loaded(which: Which) -> Wanted {
    let all = ON_LOAD.lock();
    let number = number_of(which);
    let mut w = Wanted::default();
    for (_, (how, _)) in all.iter().filter(|(w, _)| number_of(w.as_ref()) == number) {
        how(&mut w);
    }
    w
}

/// Removes everything that a session wanted when it is over.
pub(crate) fn end(session: &Arc<Session>) {
    on_load(Some(session), None);
    let of_session: Vec<(Term, Term, u32)> = {
        let t = table().read();
        let wants = |b: &&Arc<Breakpoint>| {
            let w = b.wanted.lock();
            w.sessions.iter().any(|(s, _)| Arc::ptr_eq(s, session))
        };
        t.by_name.values().filter(wants).map(|b| b.mfa).collect()
    };
    for (m, f, n) in of_session {
        change(Some(session), m, f, Some(n), false, &|w| {
            *w = Wanted::default()
        });
    }
}
