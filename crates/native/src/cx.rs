//! The context of a thread that runs processes: registers, the heap of the running process, its
//! pending exception. Natives get it together with their arguments: as [`Env`] if they know of no
//! process, otherwise as `Cx` of crate `kernel`.
//!
//! # The contract of a native
//! - It makes terms through the context, which is an [`Alloc`]. Nothing moves while it runs, so it
//!   may hold any number of terms. The runtime collects after it has returned, if necessary.
//! - It returns a term, or a [`Fail`] made by one of the methods here.
//! - It keeps no `Term` after it returns. A term that must live longer goes into an
//!   [`purlin_term::frag::OwnedTerm`], or into the value of a magic reference.
//! - It counts work proportional to user data with [`Context::bump`]. A native that finds
//!   [`Context::out_of_reds`] during long work packs its state and returns [`Context::trap`] to a
//!   continuation (a row of module `purlin`, which can't be called by name).
//! - Work that blocks belongs in rows of kind `DirtyIo`, and long computation that cannot be split
//!   in `DirtyCpu`: a thread of that pool then runs the process.

use purlin_isa::context::KEY_HINTS;
use purlin_term::fun::Export;
use purlin_term::heap::Heap;
use purlin_term::off_heap::OffHeap;
use purlin_term::{Alloc, NIL, Term, am};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Number of X registers.
pub const X_REGS: usize = 1024;
/// Maximum number of arguments of a native, and of a trap.
pub const MAX_ARGS: usize = 255;

/// The result of a native.
pub type BifResult = Result<Term, Fail>;

/// Why a native returned no value. Details are in the context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[must_use]
pub enum Fail {
    /// `error:badarg`; the interpreter adds the native's arguments and `error_info`.
    Badarg,
    /// `error:badarith`
    Badarith,
    /// `error:system_limit`
    SystemLimit,
    /// `error:notsup`
    Notsup,
    /// `error:undef`: the native does not exist.
    Undef,
    /// Class and value are in [`Context::exc`].
    Raised,
    /// Call [`Trap::target`] with [`Trap::args`] instead of this native.
    Trap,
    /// Put the process at the end of its run queue and call this native again with the same
    /// arguments.
    Again,
    /// The process waits. The native is called again with the same arguments when a signal has
    /// arrived.
    Wait,
    /// A native whose row says [`here`](crate::bif::Traits::here) asks to be called again, with the
    /// same arguments, on a dirty I/O thread.
    Dirty,
    /// The value is the first of [`Trap::args`], and the time slice ends.
    Yield,
    /// The process has ended (it exited itself); nothing follows.
    Exited,
    /// A function of a native library asks for the call that it has left with its process
    /// ([`Scheduled`](crate::nif::Scheduled)) to be made instead.
    Scheduled,
}

/// Exception classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Class {
    Error,
    Exit,
    Throw,
}

impl Class {
    /// Returns the atom that `try … catch` sees.
    pub fn atom(self) -> Term {
        match self {
            Class::Error => am::ERROR,
            Class::Exit => am::EXIT,
            Class::Throw => am::THROW,
        }
    }
}

/// A pending exception.
pub struct Exc {
    pub class: Class,
    pub value: Term,
    /// Arguments that the first stack trace entry shows instead of the arity; NON_VALUE if none.
    pub args: Term,
    /// `cause` for `error_info`: a term; NON_VALUE if none.
    pub cause: Term,
    /// A stack trace given by the program (`erlang:raise/3`); NON_VALUE if the runtime makes it.
    pub trace: Term,
    /// Whether the first stack trace entry has `error_info`.
    pub error_info: bool,
    /// Module and function that the first stack trace entry names, if the native that failed stands
    /// for another.
    pub native: Option<(Term, Term)>,
}

/// A call to be made instead of a native.
pub struct Trap {
    pub target: *const Export,
    pub argc: usize,
    pub args: [Term; 16],
}

/// Why code stopped running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// The time slice is over. Resume at `interp.pc` with `interp.live` registers.
    Yield,
    /// Wait for a signal, then resume at `interp.pc`.
    Wait,
    /// As `Wait`, but for at most `interp.timeout` milliseconds; then resume at
    /// `interp.timeout_pc`.
    WaitTimeout,
    /// The process has ended; the exit reason is `interp.reason`.
    Exited,
    /// Go on at `interp.pc` with `interp.live` registers on a thread of the dirty I/O pool, where
    /// `cx.dirty` is set, and call a native there. [`Exit::Yield`] follows, and the process returns
    /// to a normal scheduler.
    DirtyIo,
    /// As `DirtyIo`, for the dirty CPU pool.
    DirtyCpu,
}

/// Where code stopped, and why: the engine's part of a context.
pub struct State {
    /// Where to resume.
    pub pc: *const u64,
    /// Number of X registers that hold terms there.
    pub live: usize,
    /// Milliseconds to wait, for [`Exit::WaitTimeout`].
    pub timeout: u64,
    /// Where to continue after the timeout.
    pub timeout_pc: *const u64,
    /// Exit reason of a process that ended normally or by an exception.
    pub reason: Term,
    /// The process ended by an uncaught error or throw, which is to be reported.
    pub crashed: bool,
    /// Why the process stops, if an instruction returns no next one.
    pub exit: Exit,
    /// A bitstring under construction by ops of OTP 24 and before: address, next bit, end.
    pub build: (*mut u8, usize, usize),
    /// The running instruction has raised an exception.
    #[cfg(debug_assertions)]
    pub raised: bool,
}

impl State {
    pub fn new() -> State {
        State {
            pc: std::ptr::null(),
            live: 0,
            timeout: 0,
            timeout_pc: std::ptr::null(),
            reason: purlin_term::am::NORMAL,
            crashed: false,
            exit: Exit::Exited,
            build: (std::ptr::null_mut(), 0, 0),
            #[cfg(debug_assertions)]
            raised: false,
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

/// The context of a thread. See the head of this module. `repr(C)`: the X registers are at offset
/// 0, where interpreter code addresses them.
#[repr(C)]
pub struct Context<P> {
    pub x: [Term; X_REGS],
    pub fr: [f64; X_REGS],
    /// The heap of the running process. The interpreter holds `htop` and `stop` in locals while it
    /// runs code.
    pub heap: Heap,
    /// Reductions left in this time slice; may go below zero.
    pub reds: i64,
    /// Reductions that were left when the process was last charged.
    pub charged: i64,
    /// The rest of the time slice of a process that saves its calls, besides `reds`.
    pub kept_reds: i64,
    pub exc: Exc,
    pub trap: Trap,
    /// Why the last function of a native library returned no value.
    pub failed: Fail,
    /// Words that were copied to other processes and not yet counted.
    pub words_copied: u64,
    /// Amounts until the next samples of who copies, allocates, keeps and works.
    pub until_sample: UntilSample,
    /// The running process.
    pub proc: Running<P>,
    /// Returns the pid of a process, for code that sees the process as [`Unknown`].
    pid_of: unsafe fn(*mut ()) -> Term,
    /// Index of this thread among the schedulers; dirty threads come after them.
    pub sched: usize,
    /// Whether this is a dirty thread: natives of the dirty kinds are called only there.
    pub dirty: bool,
    /// The address that the native was called from, for stack traces.
    pub bif_pc: *const u64,
    /// Where the interpreter stopped, and why.
    pub interp: State,
    /// Odd while this thread runs code. See crate `kernel`, `code::epochs`.
    pub epoch: Arc<AtomicUsize>,
    /// Where code with marks writes the mark of the running function: see crate `kernel`,
    /// `code::perf`.
    pub running: *mut u64,
    /// Whether the running process may run machine code.
    pub compiled: bool,
    /// The machine's stack pointer at entry to machine code.
    pub machine_base: *mut u8,
    /// The table of return points of machine code.
    pub returns: *const u64,
    /// Instructions until machine code exits at random, in chaos mode; otherwise 0.
    pub chaos: i64,
    /// The index at which machine code last found a key in a flat map, where it looks first next
    /// time. Any value is valid.
    pub key_hints: [u8; KEY_HINTS],
    /// The samples by which functions are chosen for compilation.
    pub sampling: Sampling,
}

/// The process that a context runs, if any. Machine code reads it.
#[repr(transparent)]
pub struct Running<P>(*mut P);

impl<P> Running<P> {
    /// Its address; null if none runs.
    #[inline(always)]
    pub fn get(&self) -> *mut P {
        self.0
    }
    /// Whether none runs.
    #[inline(always)]
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }
    /// The process, if any runs.
    ///
    /// # Safety
    /// There must be no other reference to the process meanwhile.
    #[inline(always)]
    pub unsafe fn as_mut<'a>(&self) -> Option<&'a mut P> {
        // SAFETY: by the contract of `set` it is valid, by that of this function ours alone.
        unsafe { self.0.as_mut() }
    }
    /// Changes which process runs.
    ///
    /// # Safety
    /// `p` must be null or a process that this thread has taken to run. It must stay valid until
    /// another one is set.
    #[inline(always)]
    pub unsafe fn set(&mut self, p: *mut P) {
        self.0 = p;
    }
    /// Leaves the context without a process.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.0 = std::ptr::null_mut();
    }
}

/// State of a thread's samples of what runs, by which functions are chosen for compilation. See
/// crate `kernel`, `code::sampling`.
#[repr(C)]
pub struct Sampling {
    /// Reductions of the time slice that are held back, so that a sample comes sooner.
    pub held_back: i64,
    /// Reductions that this thread has used.
    pub used: u64,
    /// Reductions until the next sample.
    pub until_next: i64,
    /// Number of time slices that might have been split for a sample.
    pub splits: u32,
    /// Number of samples in a row that found nothing to compile.
    pub fruitless: u32,
    /// Number of exits of machine code to instructions without any, by the hash of their address.
    pub exits: [i16; EXIT_COUNTERS],
}

/// Number of counters of exits: a power of two. Functions whose addresses share one are compiled
/// sooner.
pub const EXIT_COUNTERS: usize = 1 << 10;

impl Sampling {
    const NEW: Sampling = Sampling {
        held_back: 0,
        used: 0,
        until_next: 0,
        splits: 0,
        fruitless: 0,
        exits: [0; EXIT_COUNTERS],
    };
}

/// Amounts that are left until the next sample of who copies, allocates, keeps and works. See crate
/// `kernel`, `accounting::accounts`.
#[repr(C)]
pub struct UntilSample {
    /// Words copied.
    pub copied: i64,
    /// Words allocated.
    pub allocated: i64,
    /// Words kept by collections.
    pub kept: i64,
    /// Reductions used.
    pub worked: i64,
}

impl UntilSample {
    const NEW: UntilSample = UntilSample {
        copied: -NOT_STARTED,
        allocated: -NOT_STARTED,
        kept: -NOT_STARTED,
        worked: -NOT_STARTED,
    };
}

/// A new amount is this far below zero, so that it is looked at when it is first used, and is
/// recognized as new.
pub const NOT_STARTED: i64 = 1 << 60;

/// A process, as far as code that doesn't know processes needs it.
pub trait Owner {
    fn pid(&self) -> Term;
}

/// A process that can't be looked at.
pub enum Unknown {}

/// Whether natives that take a context of such processes may touch the process.
pub trait Sees {
    const PROCESS: bool;
}

impl Sees for Unknown {
    const PROCESS: bool = false;
}

/// A context as seen by natives that know of no process. It is the same context: code that knows
/// the process sees it under another type with the same layout.
pub type Env = Context<Unknown>;

impl<P: Owner> Context<P> {
    /// Makes a context for a thread. It is large, so it stays boxed.
    pub fn boxed(sched: usize) -> Box<Context<P>> {
        // SAFETY: by the contract of the field, `p` is a process.
        Context::with_pid_of(sched, |p| unsafe { (*p.cast::<P>()).pid() })
    }
}

impl Env {
    /// Makes a context without a process, for tests of natives.
    pub fn boxed(sched: usize) -> Box<Env> {
        Context::with_pid_of(sched, |_| NIL)
    }
    /// Returns `self()`, or nil if no process runs.
    pub fn self_pid(&self) -> Term {
        if self.proc.is_null() {
            return NIL;
        }
        // SAFETY: it points to a process, of the type that the context was made for.
        unsafe { (self.pid_of)(self.proc.get().cast()) }
    }
}

impl<P> Context<P> {
    fn with_pid_of(sched: usize, pid_of: unsafe fn(*mut ()) -> Term) -> Box<Context<P>> {
        Box::new(Context {
            x: [NIL; X_REGS],
            fr: [0.0; X_REGS],
            heap: Heap::empty(),
            reds: 0,
            charged: 0,
            kept_reds: 0,
            exc: Exc {
                class: Class::Error,
                value: NIL,
                args: Term::NON_VALUE,
                cause: Term::NON_VALUE,
                trace: Term::NON_VALUE,
                error_info: false,
                native: None,
            },
            trap: Trap {
                target: std::ptr::null(),
                argc: 0,
                args: [NIL; 16],
            },
            failed: Fail::Badarg,
            words_copied: 0,
            until_sample: UntilSample::NEW,
            proc: Running(std::ptr::null_mut()),
            pid_of,
            sched,
            dirty: false,
            bif_pc: std::ptr::null(),
            interp: State::new(),
            epoch: Arc::new(AtomicUsize::new(0)),
            running: std::ptr::null_mut(),
            compiled: false,
            machine_base: std::ptr::null_mut(),
            returns: std::ptr::null(),
            chaos: 0,
            key_hints: [0; KEY_HINTS],
            sampling: Sampling::NEW,
        })
    }

    fn raise(&mut self, class: Class, value: Term) -> Fail {
        self.exc = Exc {
            class,
            value,
            args: Term::NON_VALUE,
            cause: Term::NON_VALUE,
            trace: Term::NON_VALUE,
            error_info: false,
            native: None,
        };
        Fail::Raised
    }
    /// `error:value`
    pub fn error(&mut self, value: Term) -> Fail {
        self.raise(Class::Error, value)
    }
    /// `error:{tag, value}`, such as `{badmap, T}`
    pub fn error2(&mut self, tag: Term, value: Term) -> Fail {
        let t = self.tuple(&[tag, value]);
        self.raise(Class::Error, t)
    }
    /// `exit:value`
    pub fn exit(&mut self, value: Term) -> Fail {
        self.raise(Class::Exit, value)
    }
    /// `throw:value`
    pub fn throw(&mut self, value: Term) -> Fail {
        self.raise(Class::Throw, value)
    }
    /// `error:badarg` whose `error_info` has a `cause`, for the modules that format errors by it.
    pub fn badarg_cause(&mut self, cause: Term) -> Fail {
        self.error_cause(am::BADARG, cause)
    }
    /// `error:value` with `error_info` and that `cause`.
    pub(crate) fn error_cause(&mut self, value: Term, cause: Term) -> Fail {
        let f = self.raise(Class::Error, value);
        self.exc.cause = cause;
        self.exc.error_info = true;
        f
    }
    /// Calls `target` with `args` (at most 16) instead of this native: its value becomes the
    /// native's value.
    pub fn trap(&mut self, target: *const Export, args: &[Term]) -> Fail {
        self.trap.target = target;
        self.trap.argc = args.len();
        self.trap.args[..args.len()].copy_from_slice(args);
        Fail::Trap
    }
    /// Returns an immediate as the native's value, and yields before the process continues.
    pub fn yield_with(&mut self, value: Term) -> Fail {
        self.trap.args[0] = value;
        // If reductions are handed out in parts, the slice would otherwise continue with the next
        // part.
        self.sampling.held_back = 0;
        Fail::Yield
    }
    /// Counts `n` reductions of work done.
    #[inline]
    pub fn bump(&mut self, n: usize) {
        self.reds -= n as i64;
    }
    /// Ends the time slice with the running native, which traps. The rest of the slice is not
    /// charged to anyone.
    pub fn end_slice(&mut self) {
        let left = self.reds.max(0);
        self.reds -= left;
        self.charged -= left;
        self.sampling.held_back = 0;
    }
    /// Whether the time slice is used up: long work then packs its state and traps.
    #[inline]
    pub fn out_of_reds(&self) -> bool {
        self.reds <= 0
    }
    /// Returns the address of the context, for calling a native.
    #[inline]
    pub fn env_ptr(&mut self) -> *mut Env {
        (&raw mut *self).cast()
    }
    /// `{ok, T}`
    pub fn ok(&mut self, t: Term) -> Term {
        self.tuple(&[am::OK, t])
    }
    /// `{error, T}`
    pub fn err(&mut self, t: Term) -> Term {
        self.tuple(&[am::ERROR, t])
    }
}

#[cold]
#[inline(never)]
fn no_process() -> ! {
    panic!("no process runs in this context")
}

impl<P: Owner> Context<P> {
    /// Returns the running process. If there is none, the program ends.
    #[inline]
    pub fn process(&mut self) -> &mut P {
        // SAFETY: by the contract of `Running::set`; the process is this thread's.
        match unsafe { self.proc.as_mut() } {
            Some(p) => p,
            None => no_process(),
        }
    }
    /// `self()`
    #[inline]
    pub fn self_pid(&mut self) -> Term {
        self.process().pid()
    }
}

impl<P> Alloc for Context<P> {
    #[inline]
    fn alloc(&mut self, words: usize) -> *mut Term {
        self.heap.alloc(words)
    }
    #[inline]
    fn off_heap(&mut self) -> &mut OffHeap {
        &mut self.heap.off_heap
    }
    #[inline]
    fn off_heap_grew(&mut self) {
        self.heap.off_heap_grew();
    }
}
