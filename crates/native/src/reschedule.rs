//! Calls of natives on so much data that they would hold a scheduler for long: they are made on a dirty CPU thread.
//!
//! The row of a native that may be called so says `long`, and the native asks [`dirty_if`] before it starts. Where the
//! answer is a trap, the same native is called again with the same arguments by `purlin:long/1`, on a thread where it
//! may take its time, and where nothing collects the heap meanwhile. An error that it raises there shows its own name.
//!
//! A native that sees no process ([`Bif::blind`]) leaves it open to others there ([`open`]): it is
//! looked at, and ends when it is told to, while the native computes. One that is long about it
//! asks now and then whether it is to go on: by [`go_on`], or what it calls asks [`ending`] itself.
//! What it makes when it has broken off is dropped.

use crate::bif::{self, Bif};
use crate::cx::{BifResult, Context, Env, Fail};
use crate::errors::with_args;
use crate::exports;
use purlin_term::{Alloc, Term, am, atom, ending, gc, layout};
use smallvec::SmallVec;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Parts of data (cells, elements, cache lines of bytes) that a native may work on where it is called: a few
/// milliseconds.
pub const MANY: usize = 100_000;

/// How much a family of natives works on where it is called, in a unit of its own. Tests of what happens to longer
/// calls lower it (`erts_debug:set_internal_state/2`).
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
    /// What is not too long yet.
    pub fn most(&self) -> usize {
        match self.set.load(Ordering::Relaxed) {
            0 => self.default,
            limit => limit,
        }
    }
    /// Whether so much is too long.
    pub fn exceeded(&self, n: usize) -> bool {
        n > self.most()
    }
    /// Sets the limit (0: the default) and returns what was set.
    pub fn set(&self, n: usize) -> usize {
        self.set.swap(n, Ordering::Relaxed)
    }
}

/// The row of `m:f` with so many arguments, if it may be called on a dirty thread.
fn row(m: Term, f: Term, arity: usize) -> Option<&'static Bif> {
    let (_, row) = bif::native(m, f, u32::try_from(arity).ok()?)?;
    row.traits.long.then_some(row)
}

/// Leaves for a dirty thread if `long` says so and this isn't one. `long` is not asked where there is no choice.
#[inline]
pub fn dirty_if<P>(
    cx: &mut Context<P>,
    m: &str,
    f: &str,
    args: &[Term],
    long: impl FnOnce() -> bool,
) -> Result<(), Fail> {
    if cx.dirty || cx.proc.is_null() || !long() {
        return Ok(());
    }
    Err(leave(cx, m, f, args))
}

/// Elements of a proper list that is an argument of the native `m:f(args…)`; leaves where they are too many.
#[inline]
pub fn length<P>(
    cx: &mut Context<P>,
    l: Term,
    m: &str,
    f: &str,
    args: &[Term],
) -> Result<usize, Fail> {
    let mut it = l.list_iter();
    let mut n = 0;
    for _ in it.by_ref() {
        n += 1;
        if n == MANY {
            dirty_if(cx, m, f, args, || true)?;
        }
        go_on_at(n)?;
    }
    match it.tail().is_nil() {
        true => Ok(n),
        false => Err(Fail::Badarg),
    }
}

#[cold]
fn leave<P>(cx: &mut Context<P>, m: &str, f: &str, args: &[Term]) -> Fail {
    let (m, f) = (atom::intern(m), atom::intern(f));
    debug_assert!(row(m, f, args.len()).is_some());
    let mut call: SmallVec<[Term; 8]> = SmallVec::new();
    call.extend([m, f]);
    call.extend_from_slice(args);
    let call = cx.tuple(&call);
    let target = exports::export(atom::intern("purlin"), atom::intern("long"), 1);
    cx.trap(target, &[call])
}

/// A native by its name: module, function, arity.
pub type Name = (Term, Term, usize);

/// Has others act for the process while a function runs that touches nothing of it but the context's heap. True: the process has ended
/// meanwhile.
///
/// # Safety
/// The context is that of a dirty thread, at the call of a native.
pub type Opener = unsafe fn(*mut Env, Name, &mut dyn FnMut()) -> bool;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// Says who opens processes to others: see [`open`].
pub fn set_opener(f: Opener) {
    let _ = OPENER.set(f);
}

/// To be asked by natives that are long about something, every few milliseconds: fails if nobody waits for them any more.
#[inline]
pub fn go_on() -> Result<(), Fail> {
    match ending::is_over() {
        true => Err(Fail::Exited),
        false => Ok(()),
    }
}

/// As [`go_on`], asked at every step.
#[inline]
pub fn go_on_at(step: usize) -> Result<(), Fail> {
    match ending::is_over_at(step) {
        true => Err(Fail::Exited),
        false => Ok(()),
    }
}

/// Runs a part of a native, which `name` is told for, on a dirty thread. The process is open to others meanwhile: what arrives at it is
/// acted on, and it may end for them. On a scheduler, where natives are short, it is just run.
pub fn open(cx: &mut Env, name: Name, f: impl FnOnce(&mut Env) -> BifResult) -> BifResult {
    let Some(opener) = OPENER.get().filter(|_| cx.dirty && !cx.proc.is_null()) else {
        return f(cx);
    };
    let at = cx.env_ptr();
    let (mut f, mut result) = (Some(f), Err(Fail::Exited));
    let mut run = || {
        if let Some(f) = f.take() {
            // SAFETY: the context of this thread, which nobody else has.
            result = f(unsafe { &mut *at });
        }
    };
    // SAFETY: a dirty thread's, in a native. What runs sees no process.
    let ended = unsafe { opener(at, name, &mut run) };
    if ended { Err(Fail::Exited) } else { result }
}

/// Parts that are worth a reduction.
const PARTS_PER_REDUCTION: usize = 16;

/// Leaves for a dirty thread if `t`, which the native is to walk through, has more than [`MANY`] parts; counts
/// reductions for the walk otherwise.
pub fn dirty_if_large<P>(
    cx: &mut Context<P>,
    m: &str,
    f: &str,
    args: &[Term],
    t: Term,
) -> Result<(), Fail> {
    if cx.dirty || cx.proc.is_null() || t.is_immed() {
        return Ok(());
    }
    let n = parts(t, false, MANY);
    if n > MANY {
        return Err(leave(cx, m, f, args));
    }
    cx.bump(n / PARTS_PER_REDUCTION);
    Ok(())
}

/// Whether a term has more than [`MANY`] parts.
pub fn is_large(t: Term) -> bool {
    is_larger(t, MANY)
}

/// Whether a term has more than so many parts.
pub fn is_larger(t: Term, most: usize) -> bool {
    !t.is_immed() && parts(t, false, most) > most
}

/// Leaves for a dirty thread if `t`, of which the native encodes all but the bytes of binaries that start at a byte, has more than
/// [`MANY`] parts.
pub fn dirty_if_many<P>(
    cx: &mut Context<P>,
    m: &str,
    f: &str,
    args: &[Term],
    t: Term,
) -> Result<(), Fail> {
    dirty_if(cx, m, f, args, || {
        !t.is_immed() && (parts(t, true, MANY) > MANY || gc::stress_roll(4))
    })
}

/// Whether several terms together have more than so many parts.
pub fn are_larger(terms: impl IntoIterator<Item = Term>, most: usize) -> bool {
    let mut n = 0;
    terms.into_iter().any(|t| {
        n += 1 + parts(t, false, most);
        n > most
    })
}

/// Parts of a term; a number above `most` where they are more than that. `kept`: binaries that start at a byte stay where they are.
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
                b.bit_len / 512
            };
        } else {
            // SAFETY: a boxed term in hand is well formed.
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

/// The native that `purlin:long/1` is to call.
pub fn called(call: Term) -> Option<Name> {
    match call.as_tuple()? {
        [m, f, args @ ..] => Some((*m, *f, args.len())),
        _ => None,
    }
}

/// `purlin:long({Module, Function, Argument, …})`: where long calls trap to.
fn long_1(cx: &mut Env, [call]: [Term; 1]) -> BifResult {
    let Some(&[m, f, ref args @ ..]) = call.as_tuple() else {
        return Err(Fail::Badarg);
    };
    if !m.is_atom() || !f.is_atom() {
        return Err(Fail::Badarg);
    }
    let native = row(m, f, args.len()).ok_or(Fail::Badarg)?;
    // SAFETY: as many arguments as the row's arity, by which it was found.
    let run = |cx: &mut Env| unsafe { (native.call)(cx.env_ptr(), args.as_ptr()) };
    let result = match native.blind {
        true => open(cx, (m, f, args.len()), run),
        false => run(cx),
    };
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
}
