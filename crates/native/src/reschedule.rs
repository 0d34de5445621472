//! Calls of natives on so much data that they would occupy a scheduler for long. They are made on a
//! dirty CPU thread.
//!
//! The row of such a native says `long`, and the native calls [`dirty_if`] before it starts, with
//! its row ([`long!`](crate::long)) and its arguments. If the answer is a trap, `purlin:long/1`
//! calls the same native again with the same arguments, on a thread where it may take its time and
//! where nothing collects the heap meanwhile. An error that it raises there shows its own name.
//!
//! A native that sees no process ([`Bif::blind`]) leaves the process open to others there
//! ([`open`]): they may inspect and end the process while the native computes. A long one checks
//! now and then whether to continue, by [`go_on`], or the function that it calls checks [`ending`]
//! itself. The result of an abandoned call is dropped.
//!
//! No one can collect a process while a native reads its heap. So natives that can say in a term
//! how far they have come look for such requests too ([`is_asked`]). They leave that term
//! ([`pause`]), the process handles its signals on a scheduler, and `purlin:long/2` calls the
//! native again on a dirty thread, where it finds the term ([`resumed`]). For the others the
//! request waits until they have returned.

use crate::bif::{self, Bif};
use crate::cx::{BifResult, Context, Env, Fail};
use crate::errors::with_args;
use crate::exports;
use purlin_isa::ops::is_same;
use purlin_term::{Alloc, Term, am, atom, ending, gc, layout};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Maximum number of parts of data (cells, elements, cache lines of bytes) that a native handles
/// where it is called: a few milliseconds of work.
pub const MANY: usize = 100_000;

/// Number of bits of a binary that count as a part: those of a cache line.
pub const BITS_PER_PART: usize = 512;

/// Maximum amount of data that a family of natives handles where it is called, in a unit of its
/// own. Tests of longer calls lower it (`erts_debug:set_internal_state/2`).
pub struct Limit {
    default: usize,
    /// 0: the default.
    set: AtomicUsize,
}

/// Bytes that natives of module `binary` search, compare or copy.
pub static BINARY: Limit = Limit::new(MANY * 64);
/// Bytes and list cells that natives of module `unicode` convert.
pub static UNICODE: Limit = Limit::new(MANY * 6);

impl Limit {
    const fn new(default: usize) -> Limit {
        Limit {
            default,
            set: AtomicUsize::new(0),
        }
    }
    /// Returns the largest amount that is not too long.
    pub fn most(&self) -> usize {
        match self.set.load(Ordering::Relaxed) {
            0 => self.default,
            limit => limit,
        }
    }
    /// Whether `n` is too long.
    pub fn exceeded(&self, n: usize) -> bool {
        n > self.most()
    }
    /// Sets the limit (0: the default) and returns the previous setting.
    pub fn set(&self, n: usize) -> usize {
        self.set.swap(n, Ordering::Relaxed)
    }
}

/// Returns the row of `m:f` with that arity, if it may be called on a dirty thread.
fn row(m: Term, f: Term, arity: usize) -> Option<&'static Bif> {
    let (_, row) = bif::native(m, f, u32::try_from(arity).ok()?)?;
    row.traits.long.then_some(row)
}

/// The row of a native of `N` arguments that may be called on a dirty thread.
#[derive(Clone, Copy)]
pub struct Long<const N: usize>(&'static Bif);

impl<const N: usize> Long<N> {
    /// Returns the row of `module:name/N` in a table. [`long!`](crate::long) calls it while the
    /// program is compiled, where a name without such a row is an error.
    pub const fn of(rows: &'static [Bif], module: &str, name: &str) -> Long<N> {
        let mut i = 0;
        loop {
            assert!(i < rows.len(), "no such native in this table");
            let row = &rows[i];
            if row.arity as usize == N && is_same(row.module, module) && is_same(row.name, name) {
                assert!(row.traits.long, "the row of the native does not say `long`");
                return Long(row);
            }
            i += 1;
        }
    }
    /// The name of the native's function.
    pub fn name(self) -> &'static str {
        self.0.name
    }
    /// Module, function and arity.
    pub fn mfa(self) -> Name {
        (atom::intern(self.0.module), atom::intern(self.0.name), N)
    }
    /// A call of the native with these arguments.
    #[inline(always)]
    pub fn call(self, args: &[Term; N]) -> LongCall<'_> {
        LongCall { row: self.0, args }
    }
}

/// A call of a native that may be made again on a dirty thread.
#[derive(Clone, Copy)]
pub struct LongCall<'a> {
    row: &'static Bif,
    args: &'a [Term],
}

/// The row of a native of this file ([`Long`]), `long!("lists":"member"/2)`, or of another table,
/// `long!("erlang":"send"/2 in sending::BIFS)`.
#[macro_export]
macro_rules! long {
    ($m:literal : $n:literal / $a:literal) => {
        $crate::long!($m:$n/$a in BIFS)
    };
    ($m:literal : $n:literal / $a:literal in $rows:path) => {
        const { $crate::reschedule::Long::<$a>::of($rows, $m, $n) }
    };
}

/// Moves the call to a dirty thread if `long` says so and this isn't one. `long` is only evaluated
/// if there is a choice.
#[inline]
pub fn dirty_if<P>(
    cx: &mut Context<P>,
    call: LongCall<'_>,
    long: impl FnOnce() -> bool,
) -> Result<(), Fail> {
    if cx.dirty || cx.proc.is_null() || !long() {
        return Ok(());
    }
    Err(leave(cx, call))
}

/// Returns the length of a proper list that is an argument of `call`; moves the call to a dirty
/// thread if it is too long.
#[inline]
pub fn length<P>(cx: &mut Context<P>, l: Term, call: LongCall<'_>) -> Result<usize, Fail> {
    let mut it = l.list_iter();
    let mut n = 0;
    for _ in it.by_ref() {
        n += 1;
        if n == MANY {
            dirty_if(cx, call, || true)?;
        }
        go_on_at(n)?;
    }
    match it.tail().is_nil() {
        true => Ok(n),
        false => Err(Fail::Badarg),
    }
}

#[cold]
fn leave<P>(cx: &mut Context<P>, LongCall { row, args }: LongCall<'_>) -> Fail {
    debug_assert!(row.is_there());
    let mut call: SmallVec<[Term; 8]> = SmallVec::new();
    call.extend([row.module, row.name].map(atom::intern));
    call.extend_from_slice(args);
    let call = cx.tuple(&call);
    let target = exports::export(atom::intern("purlin"), atom::intern("long"), 1);
    cx.trap(target, &[call])
}

/// Whether no clock may decide where a native runs.
static UNTIMED: AtomicBool = AtomicBool::new(false);

/// From now on, no clock decides where natives run, so that they take the same reductions each
/// time.
pub fn stop_timing() {
    UNTIMED.store(true, Ordering::Relaxed);
}

/// Whether no clock may decide where a native runs.
pub fn is_untimed() -> bool {
    UNTIMED.load(Ordering::Relaxed)
}

/// A native by its name: module, function, arity.
pub type Name = (Term, Term, usize);

/// Lets others act for the process while the given function runs, which touches nothing of the
/// process but the context's heap. Returns true if the process has ended meanwhile.
///
/// # Safety
/// The context must be that of a dirty thread, at the call of a native.
pub type Opener = unsafe fn(*mut Env, Name, &mut dyn FnMut()) -> bool;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// Sets the function that opens processes to others: see [`open`].
pub fn set_opener(f: Opener) {
    let _ = OPENER.set(f);
}

/// Fails if nobody waits for the result any more. Long natives call it every few milliseconds.
#[inline]
pub fn go_on() -> Result<(), Fail> {
    match ending::is_over() {
        true => Err(Fail::Exited),
        false => Ok(()),
    }
}

/// As [`go_on`], but called at every step.
#[inline]
pub fn go_on_at(step: usize) -> Result<(), Fail> {
    match ending::is_over_at(step) {
        true => Err(Fail::Exited),
        false => Ok(()),
    }
}

thread_local! {
    /// The call that this dirty thread makes for `purlin:long`.
    static CALL: Cell<Option<Term>> = const { Cell::new(None) };
    /// The state that the native left when it was called for the last time.
    static LEFT: Cell<Option<Term>> = const { Cell::new(None) };
}

/// Whether the native on this thread should [`pause`].
#[inline]
pub fn is_asked() -> bool {
    ending::is_asked()
}

/// Leaves the native, which is called again later with the same arguments. It then gets `state`
/// from [`resumed`]. Only natives that [`is_asked`] has asked to may call it.
#[cold]
pub fn pause<P>(cx: &mut Context<P>, state: Term) -> Fail {
    let Some(call) = CALL.get() else {
        debug_assert!(false, "no long native is being called");
        return Fail::Again;
    };
    let target = exports::export(atom::intern("purlin"), atom::intern("long"), 2);
    cx.trap(target, &[call, state])
}

/// Whether [`resumed`] has something.
#[inline]
pub fn is_resumed() -> bool {
    LEFT.get().is_some()
}

/// Takes the state that the native left when it was paused; `None` if it begins.
#[inline]
pub fn resumed() -> Option<Term> {
    LEFT.take()
}

/// Runs a part of a native on a dirty thread, reported under `name`. The process is open to others
/// meanwhile: its signals are handled, and it may end. On a scheduler, where natives are short, the
/// function just runs.
pub fn open(cx: &mut Env, name: Name, f: impl FnOnce(&mut Env) -> BifResult) -> BifResult {
    let Some(opener) = OPENER.get().filter(|_| cx.dirty && !cx.proc.is_null()) else {
        return f(cx);
    };
    let at = cx.env_ptr();
    let (mut f, mut result) = (Some(f), Err(Fail::Exited));
    let mut run = || {
        if let Some(f) = f.take() {
            // SAFETY: the context of this thread, which nothing else uses.
            result = f(unsafe { &mut *at });
        }
    };
    // SAFETY: the context of a dirty thread, in a native. The function sees no process.
    let ended = unsafe { opener(at, name, &mut run) };
    if ended { Err(Fail::Exited) } else { result }
}

/// Number of parts that count as one reduction.
const PARTS_PER_REDUCTION: usize = 16;

/// Moves the call to a dirty thread if `t`, which the native traverses, has more than [`MANY`]
/// parts; otherwise counts reductions for the traversal.
pub fn dirty_if_large<P>(cx: &mut Context<P>, call: LongCall<'_>, t: Term) -> Result<(), Fail> {
    if cx.dirty || cx.proc.is_null() || t.is_immed() {
        return Ok(());
    }
    let n = parts(t, false, MANY);
    if n > MANY {
        return Err(leave(cx, call));
    }
    charge(cx, n);
    Ok(())
}

/// Charges the reductions of a native for `n` parts of data.
pub fn charge<P>(cx: &mut Context<P>, n: usize) {
    cx.bump(n / PARTS_PER_REDUCTION);
}

/// Whether a term has more than [`MANY`] parts.
pub fn is_large(t: Term) -> bool {
    is_larger(t, MANY)
}

/// Whether a term has more than `most` parts.
pub fn is_larger(t: Term, most: usize) -> bool {
    !t.is_immed() && parts(t, false, most) > most
}

/// Moves the call to a dirty thread if `t` has more than [`MANY`] parts. The native encodes `t`,
/// but for the bytes of binaries that start at a whole byte.
pub fn dirty_if_many<P>(cx: &mut Context<P>, call: LongCall<'_>, t: Term) -> Result<(), Fail> {
    dirty_if(cx, call, || {
        !t.is_immed() && (parts(t, true, MANY) > MANY || gc::stress_roll(4))
    })
}

/// Whether several terms together have more than `most` parts.
pub fn are_larger(terms: impl IntoIterator<Item = Term>, most: usize) -> bool {
    let mut n = 0;
    terms.into_iter().any(|t| {
        n += 1 + parts(t, false, most);
        n > most
    })
}

/// Counts the parts of a term; the result is above `most` if there are more. `kept`: binaries that
/// start at a whole byte are not copied.
fn parts(t: Term, kept: bool, most: usize) -> usize {
    let mut n = 0usize;
    let mut todo: SmallVec<[Term; 32]> = SmallVec::new();
    todo.push(t);
    while let Some(mut t) = todo.pop() {
        while let Some((h, tl)) = t.as_cons() {
            n += 1;
            if n > most {
                return n;
            }
            if !h.is_immed() {
                todo.push(h);
            }
            t = tl;
        }
        if !t.is_boxed() {
            continue;
        }
        if let Some(b) = t.as_bits() {
            n += if kept && b.bit_offset == 0 {
                1
            } else {
                b.bit_len / BITS_PER_PART
            };
        } else {
            // SAFETY: a boxed term is well formed.
            unsafe {
                let p = t.ptr();
                n += layout::object_words(p);
                let (from, to) = layout::term_range(p);
                if n <= most {
                    for i in from..to {
                        let e = *p.add(i);
                        if !e.is_immed() {
                            todo.push(e);
                        }
                    }
                }
            }
        }
        if n > most {
            return n;
        }
    }
    n
}

/// Whether a row is that of `purlin:long/1` or `purlin:long/2`.
pub fn is_long(row: &Bif) -> bool {
    (row.module, row.name) == ("purlin", "long")
}

/// Returns the native that `purlin:long/1` is to call, or `purlin:long/2`.
pub fn called(call: Term) -> Option<Name> {
    match call.as_tuple()? {
        [m, f, args @ ..] => Some((*m, *f, args.len())),
        _ => None,
    }
}

/// `purlin:long({Module, Function, Argument, …})`: the target of the traps of long calls.
fn long_1(cx: &mut Env, [call]: [Term; 1]) -> BifResult {
    long(cx, call, None)
}

/// `purlin:long({Module, Function, Argument, …}, State)`: the target of the traps of long calls
/// that continue.
fn long_2(cx: &mut Env, [call, state]: [Term; 2]) -> BifResult {
    long(cx, call, Some(state))
}

fn long(cx: &mut Env, call: Term, state: Option<Term>) -> BifResult {
    let Some(&[m, f, ref args @ ..]) = call.as_tuple() else {
        return Err(Fail::Badarg);
    };
    if !m.is_atom() || !f.is_atom() {
        return Err(Fail::Badarg);
    }
    let native = row(m, f, args.len()).ok_or(Fail::Badarg)?;
    // SAFETY: there are as many arguments as the arity of the row, by which it was found.
    let run = |cx: &mut Env| unsafe { (native.call)(cx.env_ptr(), args.as_ptr()) };
    CALL.set(Some(call));
    LEFT.set(state);
    let result = match native.blind {
        true => open(cx, (m, f, args.len()), run),
        false => run(cx),
    };
    CALL.set(None);
    LEFT.set(None);
    result.map_err(|e| {
        let reason = match e {
            Fail::Badarg => am::BADARG,
            Fail::Badarith => am::BADARITH,
            Fail::SystemLimit => am::SYSTEM_LIMIT,
            Fail::Raised => {
                cx.exc.native = Some((m, f));
                return e;
            }
            _ => return e,
        };
        let e = cx.error(reason);
        cx.exc.native = Some((m, f));
        with_args(cx, e, args)
    })
}

crate::bifs! {
    DirtyCpu "purlin":"long"/1 = long_1;
    DirtyCpu "purlin":"long"/2 = long_2;
}
