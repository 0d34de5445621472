//! Visible operations of processes, as the explorer knows them: what each one touches, by its
//! arguments.
//!
//! # Invariant
//! The properties of a native are in its row ([`Traits`]); here are only the positions of its
//! arguments.

use crate::code;
use crate::cx::Cx;
use purlin_explore::operation::{Effects, Operation, Touch};
use purlin_explore::steps;
use purlin_isa::natives::Touches;
use purlin_native::bif::{self, Bif, Traits};
use purlin_native::hashing::Hashing;
use purlin_term::fun::Export;
use purlin_term::{Term, atom, hash};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// An operation that is about to be done, with its arguments in the X registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// `x0 ! x1`
    Send,
    /// A call of the visible native with that index.
    Native(usize),
    /// A receive that ends if no message comes in time is about to wait.
    Receive,
}

/// The environment, as a thing that operations touch: all of its variables.
const ENVIRONMENT: u64 = 0xE417;

/// Mixed into the names of files, so that they differ from other things of that name.
const FILE: u64 = 0xF11E;

/// A native by which a process sees or changes what others see.
struct Visible {
    native: &'static Bif,
    operation: Operation,
    /// `module:name/arity`
    name: Arc<str>,
}

/// Returns the natives whose rows say what they touch.
fn visible() -> &'static [Visible] {
    static ALL: OnceLock<Vec<Visible>> = OnceLock::new();
    ALL.get_or_init(|| {
        let all = bif::all().into_iter();
        let all = all.filter(|b| b.traits.touches.is_some());
        all.map(|native| {
            let name = format!("{}:{}/{}", native.module, native.name, native.arity);
            Visible {
                native,
                operation: Operation::native(&name),
                name: name.into(),
            }
        })
        .collect()
    })
}

/// Returns the index of the visible native to which an export leads.
pub fn index(export: *const Export) -> Option<usize> {
    static INDICES: OnceLock<HashMap<usize, usize, Hashing>> = OnceLock::new();
    let indices = INDICES.get_or_init(|| {
        let of = |(i, v): (usize, &Visible)| {
            let b = v.native;
            let e = code::export(
                atom::intern(b.module),
                atom::intern(b.name),
                u32::from(b.arity),
            );
            (e as *const Export as usize, i)
        };
        visible().iter().enumerate().map(of).collect()
    });
    indices.get(&(export as usize)).copied()
}

/// Returns the process that a term names, as a number.
fn pid_number(t: Term) -> u64 {
    if t.is_local_pid() {
        return t.raw();
    }
    if t.is_atom() {
        return crate::process::registry::whereis(t).map_or(t.raw(), |p| p.raw());
    }
    match t.as_ref_view() {
        Some(purlin_term::layout::RefView::Local { pid: Some(p), .. }) => p.raw(),
        _ => 0,
    }
}

fn number(t: Term) -> u64 {
    match t.is_immed() {
        true => t.raw(),
        false => hash::salted(t, 0x5EED) | 1,
    }
}

/// Returns the key of an object of a table, as a number.
fn key_of(t: Term) -> u64 {
    match t.as_tuple() {
        Some([key, ..]) => number(*key),
        _ => 0,
    }
}

impl What {
    /// Returns the native, if it is one.
    pub(super) fn native(self) -> Option<&'static Bif> {
        match self {
            What::Native(i) => Some(visible()[i].native),
            What::Send | What::Receive => None,
        }
    }

    /// Returns its name in replay files.
    pub(super) fn name(self) -> Arc<str> {
        match self {
            What::Native(i) => visible()[i].name.clone(),
            What::Send => steps::SEND.into(),
            What::Receive => steps::RECEIVE.into(),
        }
    }

    fn has(self, property: impl Fn(&Traits) -> bool) -> bool {
        self.native().is_some_and(|b| property(&b.traits))
    }

    /// Whether it sends x1 to x0.
    pub fn sends(self) -> bool {
        self == What::Send || self.has(|t| t.sends)
    }

    /// Whether it sets or removes an environment variable.
    pub(super) fn sets_variable(self) -> bool {
        self.has(|t| t.writes && t.touches == Some(Touches::Variable))
    }

    /// Whether it sends a signal to a process that it does not name.
    pub(super) fn signals_unnamed(self) -> bool {
        self.has(|t| t.signals_unnamed)
    }

    /// Returns what it touches, by its arguments in the X registers.
    pub(super) fn touch(self, cx: &mut Cx) -> Touch {
        let i = match self {
            What::Native(i) => i,
            What::Send => {
                return Touch {
                    operation: Operation::Send,
                    object: pid_number(cx.x[0]),
                    key: 0,
                    changes: true,
                    effects: Effects {
                        sends: true,
                        ..Effects::default()
                    },
                };
            }
            What::Receive => {
                return Touch {
                    operation: Operation::Receive,
                    ..Touch::end(cx.process().pid().raw())
                };
            }
        };
        let Visible {
            native, operation, ..
        } = &visible()[i];
        let x = &cx.x;
        let (object, key) = match native.traits.touches {
            Some(Touches::Key) => (number(x[0]), number(x[1])),
            Some(Touches::Object) => (number(x[0]), key_of(x[1])),
            Some(Touches::Table | Touches::Name | Touches::Cell) => (number(x[0]), 0),
            Some(Touches::Process) => (pid_number(x[0]), 0),
            Some(Touches::SecondProcess) => (pid_number(x[1]), 0),
            Some(Touches::File) => (number(x[0]) ^ FILE, 0),
            Some(Touches::Variable) if native.arity == 0 => (ENVIRONMENT, 0),
            Some(Touches::Variable) => (ENVIRONMENT, number(x[0])),
            Some(Touches::All) | None => (0, 0),
        };
        Touch {
            operation: *operation,
            object,
            key,
            changes: native.traits.writes,
            effects: Effects {
                sends: native.traits.sends,
                makes: native.traits.makes,
                may_do_nothing: native.traits.may_do_nothing,
            },
        }
    }
}
