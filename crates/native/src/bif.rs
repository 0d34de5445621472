//! The row of a native: its name, how it may be called, and the function that implements it.
//!
//! Natives are listed in tables, one for each file that has any. The crate that assembles the
//! runtime knows all tables and installs them once, before anything is loaded. Everything else
//! looks a native up here by its name.

use crate::cx::{BifResult, Context, Env, Sees};
use crate::hashing::Hashing;
use crate::modules::BifModule;
pub use purlin_isa::natives::{Outside, Template, Touches};
pub use purlin_isa::release::{before, since};
use purlin_term::release::{self, ALWAYS, Feature};
use purlin_term::{NIL, Term, atom};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a native may be called and what it may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Allowed in guards too: it has no side effect and never traps.
    Guard,
    /// An ordinary native.
    Plain,
    /// Blocks on the operating system: runs on the dirty I/O pool.
    DirtyIo,
    /// Computes for long without being able to yield: runs on the dirty CPU pool.
    DirtyCpu,
}

/// The function of a native. It gets the context, and the address of as many arguments as the row
/// says.
///
/// # Safety
/// The context must be that of a thread that runs processes, under its own type
/// ([`Context::env_ptr`]). The arguments must be terms of the running process.
pub type Call = unsafe fn(*mut Env, *const Term) -> BifResult;

/// Returns the context under the type that the native takes.
///
/// # Safety
/// `cx` must come from [`Context::env_ptr`] of a `Context<P>`, or `P` must be
/// [`Unknown`](crate::cx::Unknown).
#[inline(always)]
pub unsafe fn known_as<'a, P>(cx: *mut Env) -> &'a mut Context<P> {
    // SAFETY: by the contract; the layout is the same.
    unsafe { &mut *cx.cast() }
}

/// Whether a native touches nothing of the process but its heap, which follows from the type of
/// context that it takes.
pub const fn is_blind<P: Sees, const N: usize>(
    _: fn(&mut Context<P>, [Term; N]) -> BifResult,
) -> bool {
    !P::PROCESS
}

/// A native.
pub struct Bif {
    pub module: &'static str,
    pub name: &'static str,
    pub arity: u8,
    pub kind: Kind,
    /// The properties of its whole module.
    pub home: &'static BifModule,
    pub traits: Traits,
    /// It only makes terms and touches nothing else of the process, so others may act for the
    /// process meanwhile. See [`open`](crate::reschedule::open).
    pub blind: bool,
    /// Calls it with the `arity` arguments at that address.
    pub call: Call,
}

/// Decides which natives code enters through another function, and returns that function.
static INSTEAD: OnceLock<fn(&Bif) -> Option<Call>> = OnceLock::new();

/// Sets the function that decides how natives are entered. Must be called before anything is
/// loaded.
pub fn enter_by(instead: fn(&Bif) -> Option<Call>) {
    let _ = INSTEAD.set(instead);
}

impl Bif {
    /// Whether the OTP release in use has it.
    pub fn is_there(&self) -> bool {
        release::has(self.traits.releases) && release::has(self.home.releases)
    }
    /// Returns the function that code calls.
    pub fn entry(&self) -> Call {
        let instead = INSTEAD.get().and_then(|f| f(self));
        instead.unwrap_or(self.call)
    }
}

/// The special properties of a native.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits {
    /// With much data it is called again on a dirty CPU thread. See
    /// [`reschedule`](crate::reschedule).
    pub long: bool,
    /// It replaces Erlang code in the file of its module, and is not reported as native.
    pub in_place: bool,
    /// It only raises its argument: the stack trace starts where it was called.
    pub raises: bool,
    /// A native of the dirty I/O pool that a scheduler calls first. There it does the work that
    /// doesn't block, or else returns [`Fail::Dirty`](crate::cx::Fail::Dirty).
    pub here: bool,
    /// It makes other code current, removes code or patches it. A caller that holds something made
    /// from code must drop it before calling such a native.
    pub changes_code: bool,
    /// The shared state that it reads (`reads(Key)`) or writes (`writes(Key)`). Calls of such
    /// natives are the scheduling points of the race finder.
    pub touches: Option<Touches>,
    /// It writes that state.
    pub writes: bool,
    /// It sends its second argument to its first.
    pub sends: bool,
    /// It makes a process or a port, or starts a timer.
    pub makes: bool,
    /// It is a write that may find nothing to write, like a request for a lock.
    pub may_do_nothing: bool,
    /// It sends a signal to a process that its arguments do not name.
    pub signals_unnamed: bool,
    /// Its result comes from outside the program: a replay uses the recorded one.
    pub recorded: bool,
    /// How it reaches the world outside the program.
    pub outside: Option<Outside>,
    /// The template that machine code uses instead of a call.
    pub template: Option<Template>,
    /// The releases that have it (`since(28)`, `before(26)`).
    pub releases: Feature,
}

impl Traits {
    /// An ordinary native.
    pub const NONE: Traits = Traits {
        long: false,
        in_place: false,
        raises: false,
        here: false,
        changes_code: false,
        touches: None,
        writes: false,
        sends: false,
        makes: false,
        may_do_nothing: false,
        signals_unnamed: false,
        recorded: false,
        outside: None,
        template: None,
        releases: ALWAYS,
    };
}

/// Sets one of the [`Traits`], as written in the row of a native.
#[doc(hidden)]
#[macro_export]
macro_rules! native_trait {
    ($t:ident reads($of:ident)) => {
        $t.touches = Some($crate::bif::Touches::$of)
    };
    ($t:ident writes($of:ident)) => {
        $t.touches = Some($crate::bif::Touches::$of);
        $t.writes = true
    };
    ($t:ident outside($of:ident)) => {
        $t.outside = Some($crate::bif::Outside::$of)
    };
    ($t:ident template($of:ident)) => {
        $t.template = Some($crate::bif::Template::$of)
    };
    ($t:ident since($release:literal)) => {
        $t.releases = $crate::bif::since($release)
    };
    ($t:ident before($release:literal)) => {
        $t.releases = $crate::bif::before($release)
    };
    ($t:ident $flag:ident) => {
        $t.$flag = true
    };
}

/// Defines the rows of a file: `bifs! { Guard "erlang":"abs"/1 = abs_1; … }`. The implementation is
/// `fn abs_1(cx: &mut Env, args: [Term; 1]) -> BifResult`, or takes `Cx`. Special properties follow
/// in brackets, under the names of [`Traits`]: `Plain "lists":"member"/2 = member_2 [long
/// template(Member)];`
#[macro_export]
macro_rules! bifs {
    ($($kind:ident $m:literal : $n:literal / $a:literal = $f:path $([$($trait:ident $(($arg:tt))?)*])?;)*) => {
        /// The natives of this file.
        pub const BIFS: &[$crate::bif::Bif] = &[$($crate::bif::Bif {
            module: $m,
            name: $n,
            arity: $a,
            kind: $crate::bif::Kind::$kind,
            home: $crate::modules::named($m),
            #[allow(unused_mut)]
            traits: {
                let mut t = $crate::bif::Traits::NONE;
                $($($crate::native_trait!(t $trait $(($arg))?);)*)?
                t
            },
            blind: $crate::bif::is_blind::<_, $a>($f),
            call: {
                /// # Safety
                /// See [`Call`]($crate::bif::Call).
                unsafe fn shim(cx: *mut $crate::cx::Env, args: *const purlin_term::Term) -> $crate::cx::BifResult {
                    #[cfg(debug_assertions)]
                    {
                        static SEEN: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
                        $crate::coverage_counts::note(&SEEN, format_args!("bif {}:{}/{}", $m, $n, $a));
                    }
                    // SAFETY: by the contract of `Call`.
                    unsafe {
                        $f($crate::bif::known_as(cx), $crate::bif::arguments::<$a>(args))
                    }
                }
                shim
            },
        }),*];
    };
}

/// Reads the arguments of a native one by one. The caller has often just written them one by one. A
/// load of two at once, such as a copy of the array, waits until both stores have left the
/// processor's store buffer, some twelve cycles.
///
/// # Safety
/// There must be `N` terms at `args`.
#[inline(always)]
pub unsafe fn arguments<const N: usize>(args: *const Term) -> [Term; N] {
    let mut all = [NIL; N];
    for (i, a) in all.iter_mut().enumerate() {
        // SAFETY: by the contract of this function. Volatile reads are not merged into larger
        // loads.
        *a = unsafe { args.add(i).read_volatile() };
    }
    all
}

static SCHEDULERS: AtomicUsize = AtomicUsize::new(1);

/// Returns the number of schedulers: that of the command line, or more if the program has asked for
/// more. Data that is kept for each scheduler has this size.
pub fn schedulers() -> usize {
    SCHEDULERS.load(Ordering::Relaxed)
}

/// Raises the number of schedulers to at least `n`.
pub fn count_schedulers(n: usize) {
    SCHEDULERS.fetch_max(n, Ordering::Relaxed);
}

/// Row number and row, by the words of module and name, and the arity.
type Natives = HashMap<(u64, u64, u32), (u32, &'static Bif), Hashing>;

static NATIVES: OnceLock<Natives> = OnceLock::new();

/// Installs the natives of these tables that the OTP release in use has. The number of a row is its
/// index in their concatenation. Must be called before anything is loaded; later calls change
/// nothing.
pub fn install(tables: &[&'static [Bif]]) {
    #[cfg(debug_assertions)]
    crate::coverage_counts::natives(
        tables
            .iter()
            .flat_map(|t| t.iter())
            .filter(|b| b.is_there())
            .map(|b| format!("{}:{}/{}", b.module, b.name, b.arity)),
    );
    NATIVES.get_or_init(|| {
        tables
            .iter()
            .flat_map(|t| t.iter())
            .enumerate()
            .filter(|(_, b)| b.is_there())
            .map(|(i, b)| (key_of(b), (i as u32, b)))
            .collect()
    });
}

static RAISING: OnceLock<Box<[(u64, u32)]>> = OnceLock::new();

/// Whether a native of module `erlang` only raises its argument ([`Traits::raises`]).
pub fn raises(f: Term, arity: u32) -> bool {
    let all = RAISING.get_or_init(|| {
        let rows = NATIVES.get().into_iter().flatten();
        rows.filter(|(_, (_, b))| b.module == "erlang" && b.traits.raises)
            .map(|(&(_, f, arity), _)| (f, arity))
            .collect()
    });
    all.contains(&(f.raw(), arity))
}

fn key_of(b: &Bif) -> (u64, u64, u32) {
    let word = |name| atom::intern(name).raw();
    (word(b.module), word(b.name), u32::from(b.arity))
}

/// Returns all installed natives, sorted by module, name and arity.
pub fn all() -> Vec<&'static Bif> {
    let mut all: Vec<&Bif> = NATIVES
        .get()
        .into_iter()
        .flatten()
        .map(|(_, (_, b))| *b)
        .collect();
    all.sort_unstable_by_key(|b| (b.module, b.name, b.arity));
    all
}

/// Returns the native of that name, with its row number.
pub fn native(m: Term, f: Term, arity: u32) -> Option<(u32, &'static Bif)> {
    NATIVES.get()?.get(&(m.raw(), f.raw(), arity)).copied()
}
