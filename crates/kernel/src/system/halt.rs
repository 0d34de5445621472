//! Ending the emulator: `erlang:halt/0,1,2`, and ending by force.
//!
//! Exit statuses are stock's: the status asked for, 1 after a crash dump, and `abort` (a signal) if
//! the runtime finds an internal fault. Code that buffers output registers with [`on_halt`], and is
//! called before the end.
//!
//! # Orderings
//! The swap in `claim_end` is the only access to `ENDING`, so exactly one thread reads false. It
//! publishes nothing else: the atomicity of one word is enough, and a stronger ordering costs
//! nothing here.

use crate::clock;
use crate::outside::outside;
use crate::sync::Mutex;
use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Writes out buffered data within `limit` (`None`: no limit).
pub(crate) type Flush = fn(limit: Option<Duration>);

/// Exit status if writing out takes longer than the limit.
const FLUSH_TIMED_OUT: i32 = 255;

/// Maximum number of seconds for a dump after an internal fault.
const FATAL_SECONDS: u32 = 20;

static FLUSHES: Mutex<Vec<Flush>> = Mutex::new(Vec::new());
static RESTORES: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Registers a function that is called when the emulator halts and is to flush.
pub fn on_halt(f: Flush) {
    FLUSHES.lock().push(f);
}

/// Registers a function that is called whenever the emulator ends, after everything else, to
/// restore the terminal.
pub fn on_end(f: fn()) {
    RESTORES.lock().push(f);
}

/// Whether the emulator ends because the program or its user asked for it.
static ORDERLY: AtomicBool = AtomicBool::new(false);

/// Whether the emulator ends, and because the program or its user asked for it.
pub fn is_orderly() -> bool {
    ORDERLY.load(Ordering::Relaxed)
}

thread_local! {
    static HERE: Cell<bool> = const { Cell::new(false) };
}

/// Lets the first thread that ends the emulator pass; others wait for the end. A fault on the way
/// aborts at once.
fn claim_end() {
    static ENDING: AtomicBool = AtomicBool::new(false);
    if HERE.with(|h| h.replace(true)) {
        std::process::abort();
    }
    if ENDING.swap(true, Ordering::SeqCst) {
        loop {
            std::thread::park();
        }
    }
}

fn restore() {
    // Do not wait for a lock that a stuck thread may hold.
    if let Some(v) = RESTORES.try_lock() {
        v.iter().for_each(|f| f());
    }
    let _ = std::io::stdout().flush();
}

fn end(status: i32) -> ! {
    restore();
    if crate::os::exploring::on() {
        crate::os::exploring::ended(status);
    }
    #[cfg(purlin_counts)]
    write_counts();
    // SAFETY: does not return. Threads still run, so nothing that they may use is torn down first.
    unsafe { libc::_exit(status) }
}

/// Writes the execution counts of an instrumented build (`scripts/dist.sh`). The C library's `exit`
/// would do that, but it is not called here.
#[cfg(purlin_counts)]
fn write_counts() {
    unsafe extern "C" {
        fn __llvm_profile_write_file() -> std::ffi::c_int;
    }
    // SAFETY: a function of the compiler's runtime library, which such a build links; it takes no
    // arguments.
    unsafe { __llvm_profile_write_file() };
}

/// Ends the emulator with that exit status.
pub fn halt(status: i32) -> ! {
    claim_end();
    ORDERLY.store(true, Ordering::Relaxed);
    end(status)
}

/// Does the same as [`halt`] after the output of ports has been written. The time for that is
/// `limit` or that of the command line (`+zhft`), whichever is less. If it is not enough, the
/// status is `FLUSH_TIMED_OUT`.
pub fn halt_flushed(status: i32, limit: Option<Duration>) -> ! {
    claim_end();
    ORDERLY.store(true, Ordering::Relaxed);
    let allowed = crate::options::try_current()
        .and_then(|o| o.flags.halt_flush_timeout_ms)
        .map(|ms| Duration::from_millis(ms.into()));
    let limit = limit.into_iter().chain(allowed).min();
    let until = limit.map(clock::after);
    let left = || until.map(clock::left_until);
    let flushes = FLUSHES.lock().clone();
    flushes.iter().for_each(|f| f(left()));
    match left() {
        Some(Duration::ZERO) => end(FLUSH_TIMED_OUT),
        _ => end(status),
    }
}

/// Ends the emulator with a slogan on standard error and a crash dump; the exit status is 1.
pub fn halt_with_dump(slogan: &str) -> ! {
    claim_end();
    say(slogan);
    outside().crash_dump(slogan);
    end(1)
}

/// Ends the emulator by `abort`, which may leave a core dump.
pub fn abort() -> ! {
    claim_end();
    restore();
    std::process::abort()
}

/// Ends the emulator because of an internal fault or lack of memory: slogan, crash dump (unless
/// `+d` says otherwise), and the signal.
pub fn fatal(slogan: &str) -> ! {
    claim_end();
    say(slogan);
    // Locks may be held that the dump needs, so it gets a time limit. SAFETY: the default action of
    // the signal ends the process.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(FATAL_SECONDS);
    }
    let dump = crate::options::try_current().is_none_or(|o| !o.flags.crash_dump.only_core);
    if dump {
        outside().crash_dump(slogan);
    }
    restore();
    std::process::abort()
}

/// Ends the emulator with a crash dump because memory cannot be allocated.
pub fn out_of_memory(allocator: &str, bytes: usize, purpose: &str) -> ! {
    halt_with_dump(&format!(
        "{allocator}: Cannot allocate {bytes} bytes of memory (of type \"{purpose}\")."
    ))
}

/// Makes an internal fault (a panic) end the emulator instead of one thread.
pub fn watch_faults() {
    std::panic::set_hook(Box::new(|fault| {
        // The standard library has no other way to report that a new thread gets no memory for its
        // signal stack.
        let starts = |l: &std::panic::Location| l.file().ends_with("stack_overflow.rs");
        if fault.location().is_some_and(starts) {
            crate::os::thread::refused(
                std::thread::current().name().unwrap_or("of the runtime"),
                &std::io::Error::from_raw_os_error(libc::ENOMEM),
            );
        }
        fatal(&format!("Purlin has found a fault in itself: {fault}"));
    }));
}

fn say(slogan: &str) {
    crate::report::to_stderr(&format!("{slogan}\n"));
}
