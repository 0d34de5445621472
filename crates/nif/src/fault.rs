//! The report of a library that fails so that the emulator ends by a signal: which library, which function, on whose behalf.
//!
//! The emulator ends as it would without: after the report the signal does what it does. Whoever fails may hold any lock, so the
//! report has a few seconds.

use crate::library::under_way;
use purlin_kernel::{code, report};
use purlin_term::Term;
use purlin_term::print::{Style, format_term};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::fmt::Write;
use std::sync::Once;

/// The signals by which a fault ends a program, and their names.
const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGABRT, "SIGABRT"),
];

/// Seconds that a report may take.
const SECONDS: u32 = 5;
/// Entries of the stack that are shown.
const DEPTH: usize = 20;

/// The action where no library is at fault.
static mut BEFORE: [libc::sigaction; SIGNALS.len()] =
    // SAFETY: all zeros are the default action.
    [unsafe { std::mem::zeroed() }; SIGNALS.len()];

thread_local! {
    /// A report is under way.
    static TOLD: Cell<bool> = const { Cell::new(false) };
}

/// Those that are handled from the start: Rust's library handles them too, to find overflows of native stacks, and takes one that
/// somebody has sent for a fault that comes again. The emulator would live on after the first.
const FROM_START: std::ops::Range<usize> = 0..2;

/// Has signals that somebody sends end the emulator, as they do on stock. Called before there are libraries.
pub fn begin() {
    handle(FROM_START);
}

/// Has faults in libraries reported. Only the first call does something.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| handle(FROM_START.end..SIGNALS.len()));
}

fn handle(which: std::ops::Range<usize>) {
    for i in which {
        // SAFETY: the handler is of the form that the flags say.
        unsafe {
            let mut a: libc::sigaction = std::mem::zeroed();
            a.sa_sigaction = failed as *const () as usize;
            a.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(SIGNALS[i].0, &a, &raw mut BEFORE[i]);
        }
    }
}

/// # Safety
/// The system calls it, as the handler of a signal.
unsafe extern "C" fn failed(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let place = SIGNALS.iter().position(|s| s.0 == signal).unwrap_or(0);
    // Somebody has sent it: there is no instruction that would fail again. Stock ignores one of them.
    let sent = (*info).si_code <= 0;
    if sent && signal == libc::SIGFPE {
        return;
    }
    if under_way().is_some() && !TOLD.replace(true) {
        // Locks may be held that the report needs.
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(SECONDS);
        tell(SIGNALS[place].1, (*info).si_addr() as usize);
    }
    if sent {
        // The handler that was there before may wait for such an instruction.
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
        return;
    }
    libc::sigaction(signal, &raw const BEFORE[place], std::ptr::null_mut());
    // The instruction that failed does so again, and the signal does what it did before.
}

fn tell(signal: &str, address: usize) {
    let Some(u) = under_way() else { return };
    let mut s = format!(
        "A native library has failed: {signal}{}\n  library:  {}\n  function: {}:{}/{}\n",
        match signal {
            "SIGABRT" => String::new(),
            _ => format!(" at address {address:#x}"),
        },
        u.path,
        u.module,
        u.function,
        u.arity
    );
    // SAFETY: null, or the context of this thread, whose process called the library, and waits for it.
    let Some(cx) = (unsafe { u.cx.as_mut() }) else {
        return report::to_stderr(&s);
    };
    let pid = cx.self_pid();
    let _ = writeln!(s, "  process:  {}", format_term(pid, Style::Display, 60));
    let mut at = cx.heap.stop as *const Term;
    let mut left = DEPTH;
    while at < cx.heap.hend && left > 0 {
        // SAFETY: a word of the stack.
        let w = unsafe { *at };
        if w.is_header()
            && w.raw() != 0
            && let Some(p) = code::find((w.raw() as *const u64).wrapping_sub(1))
        {
            let name = |t: Term| format_term(t, Style::Display, 300);
            let _ = write!(
                s,
                "  called by {}:{}/{}",
                name(p.module),
                name(p.function),
                p.arity
            );
            if let Some((file, line)) = p.line {
                let _ = write!(s, " ({file}:{line})");
            }
            s.push('\n');
            left -= 1;
        }
        // SAFETY: at or below the end of the stack.
        at = unsafe { at.add(1) };
    }
    report::to_stderr(&s);
}
