//! The row of a native: its name, how it may be called, and the function that does it.
//!
//! Natives stand in tables, one for each file that has any. Whoever puts the runtime together knows all tables and installs
//! them once, before anything is loaded; all others find a native here by its name.

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
    /// Allowed in guards too: has no side effect and never traps.
    Guard,
    /// An ordinary native.
    Plain,
    /// Blocks on the operating system: run on the dirty I/O pool.
    DirtyIo,
    /// Computes long without being able to yield: run on the dirty CPU pool.
    DirtyCpu,
}

/// The function of a native: the context, and the address of as many arguments as the row says.
///
/// # Safety
/// The context is one of a thread that runs processes, seen as what it is ([`Context::env_ptr`]); the arguments are terms of
/// the process that runs.
pub type Call = unsafe fn(*mut Env, *const Term) -> BifResult;

/// The context as what the native knows it as.
///
/// # Safety
/// `cx` is from [`Context::env_ptr`] of a `Context<P>`, or `P` is unknown.
#[inline(always)]
pub unsafe fn known_as<'a, P>(cx: *mut Env) -> &'a mut Context<P> {
    // SAFETY: by the contract; the layout is the same.
    unsafe { &mut *cx.cast() }
}

/// Whether a native touches nothing of the process but its heap: by the type of context that it takes.
pub const fn is_blind<P: Sees, const N: usize>(
    _: fn(&mut Context<P>, [Term; N]) -> BifResult,
) -> bool {
    !P::PROCESS
}

/// One native.
pub struct Bif {
    pub module: &'static str,
    pub name: &'static str,
    pub arity: u8,
    pub kind: Kind,
    /// The properties of its whole module.
    pub home: &'static BifModule,
    pub traits: Traits,
    /// It only makes terms, and touches nothing else of the process: others may act for that meanwhile. See
    /// [`open`](crate::reschedule::open).
    pub blind: bool,
    /// Calls it with the `arity` arguments at that address.
    pub call: Call,
}

/// In the place of some natives code enters another function: which, if any.
static INSTEAD: OnceLock<fn(&Bif) -> Option<Call>> = OnceLock::new();

/// Says by which function natives are entered. To be called before anything is loaded.
pub fn enter_by(instead: fn(&Bif) -> Option<Call>) {
    let _ = INSTEAD.set(instead);
}

impl Bif {
    /// Whether the release that is stood in for has it.
    pub fn is_there(&self) -> bool {
        release::has(self.traits.releases) && release::has(self.home.releases)
    }
    /// The function that code is to call.
    pub fn entry(&self) -> Call {
        let instead = INSTEAD.get().and_then(|f| f(self));
        instead.unwrap_or(self.call)
    }
}

/// The special properties of a native.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits {
    /// On much data it is called again on a dirty CPU thread. See [`reschedule`](crate::reschedule).
    pub long: bool,
    /// It stands in for Erlang code in the file of its module: nobody is told that it is native.
    pub in_place: bool,
    /// It only raises what it is told to: the stack trace starts where it was called.
    pub raises: bool,
    /// One of the dirty I/O pool that a scheduler calls first: what doesn't block it does there, else it says
    /// [`Fail::Dirty`](crate::cx::Fail::Dirty).
    pub here: bool,
    /// It makes other code current, takes code away or patches it: who has made anything of code, and holds it in hand across a call
    /// of natives, lets it go before this one.
    pub changes_code: bool,
    /// The shared thing that it reads (`reads(Key)`) or writes (`writes(Key)`). Calls of such natives are
    /// the scheduling points of the race finder.
    pub touches: Option<Touches>,
    /// It writes what it touches.
    pub writes: bool,
    /// It sends its second argument to its first.
    pub sends: bool,
    /// It makes a process or a port, or starts a timer.
    pub makes: bool,
    /// It writes, but may find that it has nothing to write, as whoever asks for a lock does.
    pub may_do_nothing: bool,
    /// It sends a signal to a process that its arguments do not name.
    pub signals_unnamed: bool,
    /// Its result comes from outside the program: a replay is given the recorded one.
    pub recorded: bool,
    /// How it reaches what is outside the program.
    pub outside: Option<Outside>,
    /// Machine code has a template for it.
    pub template: Option<Template>,
    /// The releases that have it (`since(28)`, `before(26)`).
    pub releases: Feature,
}

impl Traits {
    /// An ordinary one.
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

/// Sets one of the [`Traits`] as the row of a native writes it.
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

/// The rows of a file: `bifs! { Guard "erlang":"abs"/1 = abs_1; … }`, the implementation being
/// `fn abs_1(cx: &mut Env, args: [Term; 1]) -> BifResult`, or with `Cx`. Special properties follow in
/// brackets, as [`Traits`] names them: `Plain "lists":"member"/2 = member_2 [long template(Member)];`
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
                        $crate::coverage::note(&SEEN, format_args!("bif {}:{}/{}", $m, $n, $a));
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

/// The arguments of a native, each read by itself. Who calls has often just written them one by one: a load of two at once, as a copy
/// of the array would be, waits until both stores have left the processor's buffer, some twelve cycles.
///
/// # Safety
/// There are `N` terms at `args`.
#[inline(always)]
pub unsafe fn arguments<const N: usize>(args: *const Term) -> [Term; N] {
    let mut all = [NIL; N];
    for (i, a) in all.iter_mut().enumerate() {
        // SAFETY: by the contract of this function. What is volatile is not joined to larger loads.
        *a = unsafe { args.add(i).read_volatile() };
    }
    all
}

static SCHEDULERS: AtomicUsize = AtomicUsize::new(1);

/// Schedulers that there are: those of the command line, or more where the program has asked for more. What is kept for each
/// of them is as large.
pub fn schedulers() -> usize {
    SCHEDULERS.load(Ordering::Relaxed)
}

/// There are at least so many schedulers from now on.
pub fn count_schedulers(n: usize) {
    SCHEDULERS.fetch_max(n, Ordering::Relaxed);
}

/// By the words of module and name, and the arity.
type Natives = HashMap<(u64, u64, u32), (u32, &'static Bif), Hashing>;

static NATIVES: OnceLock<Natives> = OnceLock::new();

/// Makes the natives of these tables known that the release has which is stood in for: a row's index in their concatenation is
/// its number. To be called before anything is loaded; later calls change nothing.
pub fn install(tables: &[&'static [Bif]]) {
    #[cfg(debug_assertions)]
    crate::coverage::natives(
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

/// Whether a native of module `erlang` only raises what it is told to ([`Traits::raises`]).
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

/// All natives that are installed, sorted by module, name and arity.
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

/// The native of that name, with its row number.
pub fn native(m: Term, f: Term, arity: u32) -> Option<(u32, &'static Bif)> {
    NATIVES.get()?.get(&(m.raw(), f.raw(), arity)).copied()
}
