//! Threads that the runtime cannot do without.

use std::io;

/// Starts a thread. If the system refuses (`RLIMIT_NPROC`, `pids.max`), the runtime ends with a
/// message, since some of its work would never be done.
pub fn start(
    name: &str,
    stack_bytes: usize,
    f: impl FnOnce() + Send + 'static,
) -> std::thread::Thread {
    let made = std::thread::Builder::new()
        .name(name.into())
        .stack_size(stack_bytes)
        .spawn(f);
    match made {
        Ok(h) => h.thread().clone(),
        Err(e) => refused(name, &e),
    }
}

/// Ends the runtime because that thread cannot be started.
pub fn refused(name: &str, e: &io::Error) -> ! {
    purlin_term::say::refused(format_args!("cannot start the thread \"{name}\": {e}"))
}
