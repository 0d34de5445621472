//! Visible operations: what they touch, and whether they change it. Two operations of two processes race if they touch the same and
//! one of them changes it.

use crate::code;
use crate::cx::Cx;
use purlin_isa::natives::Touches;
use purlin_native::bif::{self, Bif, Traits};
use purlin_native::hashing::Hashing;
use purlin_term::fun::Export;
use purlin_term::{Term, atom, hash};
use std::collections::HashMap;
use std::sync::OnceLock;

/// What an operation is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// `x0 ! x1`
    Send,
    /// The native of that row of [`natives`], with its arguments in x.
    Native(usize),
    /// A receive that ends if no message has come yet, or not in time, is about to wait.
    Receive,
}

/// The thing that an operation touches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Touch {
    /// The row of [`natives`], from 1; 0: a send; [`END`]: the process ends.
    pub native: u16,
    /// A table, a process, a name: as a number. 0: unknown.
    pub object: u64,
    /// The key within a table; 0: all of it.
    pub key: u64,
    pub changes: bool,
}

/// The environment, as a thing that operations touch: all of its variables.
const ENVIRONMENT: u64 = 0xE417;

/// See [`Touch::native`].
pub const END: u16 = u16::MAX;
/// The process has become ready.
pub const WAKES: u16 = u16::MAX - 1;
/// The process waits for a message for some time.
pub const RECEIVES: u16 = u16::MAX - 2;

impl Touch {
    /// The end of the process whose pid has that data.
    pub(super) fn end(pid_data: u32) -> Touch {
        Touch {
            native: END,
            object: Term::pid(pid_data).raw(),
            key: 0,
            changes: true,
        }
    }
    /// The process whose pid has that data has become ready.
    pub(super) fn wake(pid_data: u32) -> Touch {
        Touch {
            native: WAKES,
            ..Touch::end(pid_data)
        }
    }
    /// Whether two operations of different processes race.
    pub fn races(&self, other: &Touch) -> bool {
        self.object != 0
            && self.object == other.object
            && (self.changes || other.changes)
            && (self.key == 0 || other.key == 0 || self.key == other.key)
    }
}

/// The natives by which a process sees or changes what others see: those whose rows say what they touch.
fn natives() -> &'static [&'static Bif] {
    static ALL: OnceLock<Vec<&'static Bif>> = OnceLock::new();
    ALL.get_or_init(|| {
        let all = bif::all().into_iter();
        all.filter(|b| b.traits.touches.is_some()).collect()
    })
}

/// The row of the native that [`Touch::native`] names.
pub(super) fn native(native: u16) -> Option<&'static Bif> {
    let i = usize::from(native).checked_sub(1)?;
    natives().get(i).copied()
}

fn has(native: u16, property: impl Fn(&Traits) -> bool) -> bool {
    self::native(native).is_some_and(|b| property(&b.traits))
}

/// Whether an operation sends a message to the process that it touches.
pub(super) fn sends(native: u16) -> bool {
    native == 0 || has(native, |t| t.sends)
}

/// Whether an operation makes a process or a port, or starts a timer.
pub(super) fn makes(native: u16) -> bool {
    has(native, |t| t.makes)
}

/// Whether an operation that writes may also find that it has nothing to write, as whoever asks for a
/// lock does.
pub(super) fn may_fail(native: u16) -> bool {
    has(native, |t| t.may_do_nothing)
}

/// Whether an operation sets or removes a variable of the environment: the key that it touches.
pub(super) fn sets_variable(native: u16) -> bool {
    has(native, |t| t.writes && t.touches == Some(Touches::Variable))
}

/// Whether an operation sends a signal to a process that its touch does not name.
pub(super) fn signals_unnamed(native: u16) -> bool {
    has(native, |t| t.signals_unnamed)
}

/// The number of the native that an export leads to, if it is a visible one.
pub fn row_of(export: *const Export) -> Option<usize> {
    static ROWS: OnceLock<HashMap<usize, usize, Hashing>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        let of = |(i, b): (usize, &&Bif)| {
            let e = code::export(
                atom::intern(b.module),
                atom::intern(b.name),
                u32::from(b.arity),
            );
            (e as *const Export as usize, i)
        };
        natives().iter().enumerate().map(of).collect()
    });
    rows.get(&(export as usize)).copied()
}

/// The native that [`Touch::native`] names: module, function, arity.
pub(super) fn row(native: u16) -> Option<(&'static str, &'static str, u32)> {
    let b = self::native(native)?;
    Some((b.module, b.name, u32::from(b.arity)))
}

/// The receiver of a message, or whoever a term names, as a number.
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

fn key_of(t: Term) -> u64 {
    match t.as_tuple() {
        Some([key, ..]) => number(*key),
        _ => 0,
    }
}

impl What {
    /// The name of the native, or `!`; and its arity.
    pub fn name(&self) -> (&'static str, &'static str, usize) {
        match self {
            What::Send => ("", "!", 2),
            What::Receive => ("", "receive", 0),
            What::Native(i) => {
                let b = natives()[*i];
                (b.module, b.name, usize::from(b.arity))
            }
        }
    }
    /// As [`Touch::native`].
    pub(super) fn row(&self) -> u16 {
        match self {
            What::Native(i) => *i as u16 + 1,
            What::Send => 0,
            What::Receive => RECEIVES,
        }
    }
    /// Whether it sends x1 to x0.
    pub fn sends(&self) -> bool {
        match self {
            What::Send => true,
            What::Native(i) => sends(*i as u16 + 1),
            What::Receive => false,
        }
    }
    /// What it touches, by its arguments in x.
    pub(super) fn touch(&self, cx: &mut Cx) -> Touch {
        let i = match *self {
            What::Native(i) => i,
            What::Send => {
                return Touch {
                    native: 0,
                    object: pid_number(cx.x[0]),
                    key: 0,
                    changes: true,
                };
            }
            What::Receive => {
                return Touch {
                    native: RECEIVES,
                    ..Touch::end(cx.process().pid().pid_data())
                };
            }
        };
        let Traits {
            touches, writes, ..
        } = natives()[i].traits;
        let x = &cx.x;
        let arg = |i: usize| x[i];
        let (object, key) = match touches {
            Some(Touches::Key) => (number(arg(0)), number(arg(1))),
            Some(Touches::Object) => (number(arg(0)), key_of(arg(1))),
            Some(Touches::Table | Touches::Name | Touches::Cell) => (number(arg(0)), 0),
            Some(Touches::Process) => (pid_number(arg(0)), 0),
            Some(Touches::SecondProcess) => (pid_number(arg(1)), 0),
            // A file has a number of its own, whatever its name means elsewhere.
            Some(Touches::File) => (number(arg(0)) ^ 0xF11E, 0),
            Some(Touches::Variable) if natives()[i].arity == 0 => (ENVIRONMENT, 0),
            Some(Touches::Variable) => (ENVIRONMENT, number(arg(0))),
            Some(Touches::All) | None => (0, 0),
        };
        Touch {
            native: i as u16 + 1,
            object,
            key,
            changes: writes,
        }
    }
}
