//! Reports of faults in native libraries: when the emulator is killed by a signal, which library
//! and function failed, and for which process.
//!
//! The emulator then ends as it would without a report: the signal takes its usual effect. The
//! failing thread may hold any lock, so the report has a time limit of a few seconds.

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

/// Maximum number of seconds for a report.
const REPORT_SECONDS: u32 = 5;
/// Number of stack entries that are shown.
const DEPTH: usize = 20;

/// The previous action, for faults outside of libraries.
static mut BEFORE: [libc::sigaction; SIGNALS.len()] =
    // SAFETY: all zeros are the default action.
    [unsafe { std::mem::zeroed() }; SIGNALS.len()];

thread_local! {
    /// Whether a report is under way.
    static TOLD: Cell<bool> = const { Cell::new(false) };
}

/// Signals that are handled from the start. Rust's standard library handles them too, to find
/// native stack overflows, and takes a signal that was sent for a fault that will recur; the
/// emulator would survive the first one.
const FROM_START: std::ops::Range<usize> = 0..2;

/// Makes signals that are sent end the emulator, as on stock. Called before there are libraries.
pub fn begin() {
    handle(FROM_START);
}

/// Turns reports of faults in libraries on. Only the first call has an effect.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| handle(FROM_START.end..SIGNALS.len()));
}

fn handle(which: std::ops::Range<usize>) {
    for i in which {
        // SAFETY: the handler has the signature that the flags specify.
        unsafe {
            let mut a: libc::sigaction = std::mem::zeroed();
            a.sa_sigaction = failed as *const () as usize;
            a.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(SIGNALS[i].0, &a, &raw mut BEFORE[i]);
        }
    }
}

/// Handles a signal.
///
/// # Safety
/// Called only by the system, as the handler of a signal.
unsafe extern "C" fn failed(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let place = SIGNALS.iter().position(|s| s.0 == signal).unwrap_or(0);
    // It was sent by someone: no instruction will fail again. Stock ignores SIGFPE in that case.
    // SAFETY: the system passes the information of the signal.
    let sent = unsafe { (*info).si_code } <= 0;
    if sent && signal == libc::SIGFPE {
        return;
    }
    if under_way().is_some() && !TOLD.replace(true) {
        // The report may need locks that are held.
        // SAFETY: the default action of the signal ends the process; `info` is as above.
        let address = unsafe {
            libc::signal(libc::SIGALRM, libc::SIG_DFL);
            libc::alarm(REPORT_SECONDS);
            (*info).si_addr() as usize
        };
        tell(SIGNALS[place].1, address);
        record(SIGNALS[place].1);
    }
    if sent {
        // The previous handler may wait for such an instruction.
        // SAFETY: the default action of the signal ends the process.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    }
    // SAFETY: the action was stored when this handler was installed, and does not change.
    unsafe { libc::sigaction(signal, &raw const BEFORE[place], std::ptr::null_mut()) };
    // The failing instruction runs again, and the signal has its previous effect.
}

/// Adds the failure to the record of the last minute.
fn record(signal: &'static str) {
    let Some(u) = under_way() else { return };
    // SAFETY: the call is under way on this thread, so its context is alive.
    let pid = unsafe { u.cx.as_mut() }.map(|cx| cx.self_pid());
    let function = format!("{}:{}/{}", u.module, u.function, u.arity);
    purlin_kernel::recorder::fault(signal, pid, function, &u.path.to_string());
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
    // SAFETY: null, or the context of this thread, whose process called the library and waits for
    // it.
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
