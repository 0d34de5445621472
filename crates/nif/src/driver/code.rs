//! A loaded driver: its functions, their file, and mutual exclusion of its calls.
//!
//! # Orderings
//! `ports` is incremented under the lock of the table ([`super::table`]) when a port is opened by
//! name, or by a port of the driver that is counted already, and decremented when a port has gone.
//! A decrement releases, and the thread that reads 0 acquires; so unloading comes after everything
//! that the ports did in the driver. Unloading reads the count under the lock of the table, so no
//! port is opened by name meanwhile.

use super::abi::{Entry, PORT_LOCKING, SOFT_BUSY};
use purlin_term::sync::{Condvar, Mutex};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

/// A driver.
pub struct Code {
    pub name: Vec<u8>,
    pub entry: Entry,
    /// From `dlopen`; null if it came in another driver's file.
    handle: *mut c_void,
    /// Number of open ports.
    pub ports: AtomicUsize,
    /// Called when one of them has gone.
    pub gone: fn(&Code),
    turns: Turns,
}

// SAFETY: everything mutable is atomic or locked; the functions may be called by any thread, one at
// a time.
unsafe impl Send for Code {}
// SAFETY: everything mutable is atomic or locked.
unsafe impl Sync for Code {}

/// The thread that is in the driver, and its nesting depth.
#[derive(Default)]
struct Turns {
    holder: Mutex<Option<(ThreadId, usize)>>,
    free: Condvar,
}

/// A thread's turn in a driver. None if its ports need no turns.
pub struct Turn<'a>(Option<&'a Turns>);

impl Code {
    pub fn new(name: Vec<u8>, entry: Entry, handle: *mut c_void, gone: fn(&Code)) -> Code {
        Code {
            name,
            entry,
            handle,
            ports: AtomicUsize::new(0),
            gone,
            turns: Turns::default(),
        }
    }
    /// Counts a port.
    pub fn opened(&self) {
        self.ports.fetch_add(1, Ordering::AcqRel);
    }
    /// Uncounts a port.
    pub fn closed(&self) {
        self.ports.fetch_sub(1, Ordering::AcqRel);
        (self.gone)(self);
    }
    pub fn has_port_locks(&self) -> bool {
        self.entry.flags & PORT_LOCKING != 0
    }
    pub fn may_be_forced(&self) -> bool {
        self.entry.flags & SOFT_BUSY != 0
    }
    /// Waits until no other thread is in the driver, unless its ports are locked one by one. A
    /// thread that is already in it nests.
    pub fn turn(&self) -> Turn<'_> {
        if self.has_port_locks() {
            return Turn(None);
        }
        let me = thread::current().id();
        let mut h = self.turns.holder.lock();
        loop {
            match &mut *h {
                None => break,
                Some((who, depth)) if *who == me => {
                    *depth += 1;
                    return Turn(Some(&self.turns));
                }
                Some(_) => h = self.turns.free.wait(h),
            }
        }
        *h = Some((me, 1));
        Turn(Some(&self.turns))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(t) = self.0 else { return };
        let mut h = t.holder.lock();
        if let Some((_, depth)) = &mut *h {
            *depth -= 1;
            if *depth == 0 {
                *h = None;
                t.free.notify_one();
            }
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: from `dlopen`; no port is open with it any more, and `finish` was called.
            unsafe { libc::dlclose(self.handle) };
        }
    }
}
