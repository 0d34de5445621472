//! Threads that the runtime can't do without.

use std::io;

/// Starts a thread. Where the system has none left (`RLIMIT_NPROC`, `pids.max`) the runtime ends with a line that says so: there
/// would be something that nobody does.
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

/// There can't be that thread.
pub fn refused(name: &str, e: &io::Error) -> ! {
    purlin_term::say!("purlin: cannot start the thread \"{name}\": {e}");
    std::process::exit(1)
}
