//! Exports and fun entries, by which code calls functions, and the stubs of the runtime.
//!
//! # Invariants
//! - Exports and fun entries are never freed or moved, because code and terms contain their
//!   addresses.
//! - An export always leads to an instruction: the function's code, a stub that calls the native,
//!   or a stub that calls the error handler.

use crate::bif::{Kind, native};
use crate::hashing::Hashing;
use purlin_isa::codec::{Value, packed};
use purlin_isa::ops::{Op, dirty};
use purlin_term::fun::{Export, FunEntry, FunName, lead_word};
use purlin_term::sync::{Mutex, RwLock};
use purlin_term::{NIL, Term, am, atom};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const SHARDS: usize = 16;

/// Exports by the indexes of the atoms and the arity. Each call of a function that is named at run
/// time looks here.
type ExportMap = HashMap<(u32, u32, u32), &'static Export, Hashing>;
/// Module, old uniq and index, uniq, index, arity, free variables.
type FunKey = (u32, i64, u32, [u8; 16], u32, u8, u8);

struct Code {
    exports: [RwLock<ExportMap>; SHARDS],
    funs: Mutex<HashMap<FunKey, &'static FunEntry>>,
    stubs: Stubs,
}

/// Code that belongs to no module.
pub struct Stubs {
    /// Calls x0:x1 with the arguments in list x2, as a tail call.
    pub apply: &'static [u64],
    /// Calls fun x0 with the arguments in list x1, as a tail call.
    pub apply_fun: &'static [u64],
    /// The same for a call of `apply/2` itself, so that an error can show which function was called
    /// by name.
    pub reapply_fun: &'static [u64],
    /// `erlang:hibernate/3`.
    pub hibernate: &'static [u64],
    /// Where a hibernating process continues.
    pub hibernated: &'static [u64],
    /// The return address of a traced call.
    pub return_trace: &'static [u64],
    /// The return address of a call whose time is measured.
    pub return_time: &'static [u64],
    /// The return address of the function that a line breakpoint has called.
    pub line_resume: &'static [u64],
    /// The return address of the first function of a process: ends the process normally.
    pub exit: &'static [u64],
}

/// Returns the words of an instruction whose operands are numbers and addresses.
pub fn stub(op: Op, operands: &[u64]) -> Vec<u64> {
    let operands: Vec<Value> = operands.iter().map(|&n| Value::N(n)).collect();
    match packed(op, &operands) {
        Ok(words) => words,
        Err(e) => unreachable!("{}: {e:?}", op.row().name),
    }
}

/// Returns an instruction of the runtime to which a call with that arity may lead.
fn stub_of(op: Op, arity: u32) -> &'static [u64] {
    let mut words = vec![lead_word(arity)];
    words.extend(stub(op, &[]));
    &words.leak()[1..]
}

fn code() -> &'static Code {
    static C: OnceLock<Code> = OnceLock::new();
    C.get_or_init(|| Code {
        exports: std::array::from_fn(|_| RwLock::default()),
        funs: Mutex::default(),
        stubs: Stubs {
            apply: stub_of(Op::IApply, 3),
            apply_fun: stub_of(Op::IApplyFun, 2),
            reapply_fun: stub_of(Op::IApplyFun, 2),
            hibernate: stub_of(Op::Hibernate, 3),
            hibernated: stub(Op::Hibernated, &[]).leak(),
            return_trace: stub(Op::ReturnTrace, &[]).leak(),
            return_time: stub(Op::ReturnTime, &[]).leak(),
            line_resume: stub(Op::LineResume, &[]).leak(),
            exit: stub(Op::ProcessExit, &[]).leak(),
        },
    })
}

/// Returns the code that belongs to no module.
#[inline]
pub fn stubs() -> &'static Stubs {
    &code().stubs
}

#[inline]
fn shard(m: u32, f: u32, a: u32) -> &'static RwLock<ExportMap> {
    let h = m
        .wrapping_mul(31)
        .wrapping_add(f)
        .wrapping_mul(31)
        .wrapping_add(a);
    &code().exports[h as usize % SHARDS]
}

/// Number of exports that a thread remembers.
const RECENT_EXPORTS: usize = 256;

thread_local! {
    /// Exports that this thread looked up last, by a hash of their names. Exports are never freed.
    static RECENT: [Cell<Option<&'static Export>>; RECENT_EXPORTS] =
        const { [const { Cell::new(None) }; RECENT_EXPORTS] };
}

/// Returns the export `m:f/arity`, if there is one.
#[inline]
pub fn existing_export(m: Term, f: Term, arity: u32) -> Option<&'static Export> {
    let (mi, fi) = (m.atom_index(), f.atom_index());
    let map = shard(mi, fi, arity).read();
    map.get(&(mi, fi, arity)).copied()
}

/// Returns the export `m:f/arity`, and makes it if there is none. `m` and `f` are atoms.
pub fn export(m: Term, f: Term, arity: u32) -> &'static Export {
    // Most calls by name go to the few functions that this thread has just looked up.
    let place = (m.atom_index().wrapping_mul(0x9E37_79B1) ^ f.atom_index()).wrapping_add(arity);
    let place = place as usize % RECENT_EXPORTS;
    if let Some(e) = RECENT.with(|r| r[place].get())
        && (e.module, e.function, e.arity) == (m, f, arity)
    {
        return e;
    }
    let e = find_export(m, f, arity);
    RECENT.with(|r| r[place].set(Some(e)));
    e
}

fn find_export(m: Term, f: Term, arity: u32) -> &'static Export {
    if let Some(e) = existing_export(m, f, arity) {
        return e;
    }
    let (mi, fi) = (m.atom_index(), f.atom_index());
    let mut map = shard(mi, fi, arity).write();
    map.entry((mi, fi, arity))
        .or_insert_with(|| new_export(m, f, arity))
}

/// Number of changes of the loaded code.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Counts a change of the loaded code: modules became current or were deleted.
pub fn code_has_changed() {
    CHANGES.fetch_add(1, Ordering::Relaxed);
}

/// Returns the export `m:f/arity` if it counts as existing: it is a native or is loaded, or code
/// has changed since it was named. (Stock puts an export that a term or a computed call names into
/// its next table of code.)
fn known_export(m: Term, f: Term, arity: u32) -> Option<&'static Export> {
    if is_builtin(m, f, arity) {
        return Some(export(m, f, arity));
    }
    existing_export(m, f, arity).filter(|e| e.is_led() || e.made != CHANGES.load(Ordering::Relaxed))
}

fn new_export(m: Term, f: Term, arity: u32) -> &'static Export {
    let mut made = Export::new(m, f, arity, std::ptr::null());
    made.made = CHANGES.load(Ordering::Relaxed);
    let e: &'static Export = Box::leak(Box::new(made));
    let here = e as *const Export as u64;
    let words = match native(m, f, arity) {
        Some((row, b)) => {
            e.bif.store(row + 1, Ordering::Relaxed);
            if b.traits.changes_code {
                e.changes_code();
            }
            let mut v = vec![here, b.entry() as usize as u64, u64::from(arity)];
            match b.kind {
                Kind::Guard | Kind::Plain => stub(Op::CallBifOnly, &v),
                Kind::DirtyIo | Kind::DirtyCpu => {
                    let pool = match b.kind {
                        Kind::DirtyIo if b.traits.here => dirty::IO_LATER,
                        Kind::DirtyIo => dirty::IO,
                        _ => dirty::CPU,
                    };
                    v.push(u64::from(pool));
                    stub(Op::CallDirty, &v)
                }
            }
        }
        None => stub(Op::ErrorHandler, &[here]),
    };
    for (s, w) in e.stub.iter().zip(words) {
        s.store(w, Ordering::Relaxed);
    }
    match own_code(m, f, arity) {
        Some(at) => e.lead(at),
        None => e.unlead(),
    }
    e
}

/// Returns the export through which a call of `m:f/arity` in code goes. Functions that are code of
/// the runtime have a separate export for that. To stock such a call is an instruction, which isn't
/// traced, while calls by a computed name or by a fun are.
pub fn called(m: Term, f: Term, arity: u32) -> &'static Export {
    static CALLED: Mutex<Vec<&'static Export>> = Mutex::new(Vec::new());
    if own_code(m, f, arity).is_none() {
        return export(m, f, arity);
    }
    let mut known = CALLED.lock();
    match known.iter().find(|e| (e.function, e.arity) == (f, arity)) {
        Some(e) => e,
        None => {
            let e = new_export(m, f, arity);
            known.push(e);
            e
        }
    }
}

/// Redirects calls of a function that is code of the runtime, under any of its exports, to `entry`;
/// `None` restores that code. Does nothing for other functions.
#[inline]
pub fn lead_to(m: Term, f: Term, arity: u32, entry: Option<*const u64>) {
    if let Some(own) = own_code(m, f, arity) {
        export(m, f, arity).lead(entry.unwrap_or(own));
    }
}

/// Returns the code of a function of `erlang` that is code of the runtime, because no native can
/// change the stack as it does.
fn own_code(m: Term, f: Term, arity: u32) -> Option<*const u64> {
    if m != am::ERLANG {
        return None;
    }
    let s = stubs();
    match (atom::name(f), arity) {
        ("apply", 2) => Some(s.apply_fun.as_ptr()),
        ("apply", 3) => Some(s.apply.as_ptr()),
        ("hibernate", 3) => Some(s.hibernate.as_ptr()),
        _ => None,
    }
}

/// Whether the runtime provides a function, whatever the file of its module says: a native, or code
/// of the runtime.
#[inline]
pub fn is_builtin(m: Term, f: Term, arity: u32) -> bool {
    native(m, f, arity).is_some() || own_code(m, f, arity).is_some()
}

/// Makes an export undefined again, for unloading. A native stays.
#[inline]
pub fn reset_export(e: &Export) {
    if is_builtin(e.module, e.function, e.arity) {
        return;
    }
    e.unlead();
}

/// Returns all entries of funs, unless another thread changes them at this moment.
pub fn try_funs() -> Option<Vec<&'static FunEntry>> {
    Some(code().funs.try_lock()?.values().copied().collect())
}

/// Returns the entry of a fun, and makes it if there is none. A new entry is undefined until its
/// module is loaded.
pub fn fun_entry(name: FunName, function: Term) -> &'static FunEntry {
    let mut m = code().funs.lock();
    // Reloading the same code finds the same entries, which are also identified by the module's
    // checksum. A fun whose arity or environment differs from the code's, as a forged external term
    // may describe it, has an entry of its own, which stays undefined.
    let key = (
        name.module.atom_index(),
        name.old_uniq,
        name.old_index,
        name.uniq,
        name.index,
        name.arity,
        name.num_free,
    );
    let entry = m
        .entry(key)
        .or_insert_with(|| Box::leak(Box::new(FunEntry::new(name, function))));
    if function != NIL {
        entry.set_function(function);
    }
    entry
}

/// Lets the codec of external terms find exports and funs.
pub struct CodeHooks;

impl purlin_term::etf::Hooks for CodeHooks {
    #[inline]
    fn export(&self, m: Term, f: Term, arity: u32, only_existing: bool) -> Option<*const Export> {
        if only_existing {
            known_export(m, f, arity).map(|e| e as *const Export)
        } else {
            Some(export(m, f, arity))
        }
    }
    #[inline]
    fn fun_entry(&self, name: FunName) -> Option<*const FunEntry> {
        Some(fun_entry(name, NIL))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fun_of_another_shape_has_no_code() {
        let of = |arity, num_free, function| {
            let name = FunName {
                module: am::OK,
                old_uniq: 1,
                old_index: 2,
                uniq: [3; 16],
                index: 2,
                arity,
                num_free,
            };
            fun_entry(name, function)
        };
        let entry = of(1, 2, NIL);
        assert!(entry.function().is_nil());
        // Its module is loaded.
        assert!(std::ptr::eq(of(1, 2, am::TRUE), entry));
        assert_eq!(entry.function(), am::TRUE);
        assert!(std::ptr::eq(of(1, 2, NIL), entry));
        assert_eq!(entry.function(), am::TRUE);
        for (arity, free) in [(0, 2), (2, 2), (1, 0), (1, 1), (1, 3), (3, 0)] {
            assert!(!std::ptr::eq(of(arity, free, NIL), entry));
        }
    }
}
