//! `enif_select`: messages to processes when a descriptor is ready.
//!
//! A descriptor belongs to one resource from the first select to the stop, and the resource is held
//! as long. The message for an event is replaced by the next select, and dropped after it was sent.
//!
//! # Locks
//! `SELECTED` guards everything. No C code is called under it, and no resource is released.

use crate::abi::Pid;
use crate::env::ErlNifEnv;
use crate::resource;
use purlin_kernel::poll::{self, Ready};
use purlin_kernel::signal;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{Alloc, Term, atom};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

const READ: c_int = 1;
const WRITE: c_int = 2;
const STOP: c_int = 4;
const CANCEL: c_int = 8;
const CUSTOM: c_int = 16;
const ERROR: c_int = 32;

// Results.
const STOP_CALLED: c_int = 1;
const INVALID_EVENT: c_int = 4;
const FAILED: c_int = 8;
const READ_CANCELLED: c_int = 16;
const WRITE_CANCELLED: c_int = 32;
const ERROR_CANCELLED: c_int = 64;

/// A message to send when its event comes.
struct Waiting {
    to: Term,
    message: OwnedTerm,
}

/// A selected descriptor.
struct Selected {
    /// The resource, which is held.
    data: usize,
    id: poll::Id,
    read: Option<Waiting>,
    write: Option<Waiting>,
    error: Option<Waiting>,
}

static SELECTED: Mutex<Option<HashMap<c_int, Selected>>> = Mutex::new(None);

fn selected() -> MutexGuard<'static, Option<HashMap<c_int, Selected>>> {
    SELECTED.lock()
}

/// Returns the number of descriptors that libraries have selected.
pub fn count() -> usize {
    selected().as_ref().map_or(0, HashMap::len)
}

/// Receives the events of one descriptor from the poll thread.
struct Teller(c_int);

impl Ready for Teller {
    fn ready(&self, id: poll::Id, readable: bool, writable: bool) {
        let mut all = selected();
        let Some(s) = all.as_mut().and_then(|a| a.get_mut(&self.0)) else {
            return;
        };
        if s.id != id {
            return;
        }
        let failed = s.error.is_some() && has_error(self.0);
        let told = [
            s.read.take_if(|_| readable),
            s.write.take_if(|_| writable),
            s.error.take_if(|_| failed),
        ];
        want(s);
        drop(all);
        for w in told.into_iter().flatten() {
            signal::send(w.to, w.message.term());
            // A message may hold the last count of a resource.
            drop(w);
        }
    }
}

/// Whether the system reports an error or urgent data.
fn has_error(fd: c_int) -> bool {
    let mut p = libc::pollfd {
        fd,
        events: libc::POLLPRI,
        revents: 0,
    };
    // SAFETY: one structure.
    unsafe { libc::poll(&mut p, 1, 0) > 0 && p.revents & (libc::POLLERR | libc::POLLPRI) != 0 }
}

fn want(s: &Selected) {
    poll::want_or_error(s.id, s.read.is_some(), s.write.is_some(), s.error.is_some());
}

/// Makes the message of an event: the caller's own, or `{select, Resource, Reference, Event}`.
///
/// # Safety
/// `data` is the address of a resource that is held, and `msg` is a term.
unsafe fn message(mode: c_int, data: *mut c_void, msg: Term, event: &str) -> OwnedTerm {
    if mode & CUSTOM != 0 {
        return OwnedTerm::copy_of(msg);
    }
    let mut f = Fragment::new();
    // SAFETY: the resource is held.
    let r = unsafe { resource::reference(data, &mut f) };
    let msg = purlin_term::copy::copy(msg, &mut f);
    let t = f.tuple(&[atom::intern("select"), r, msg, atom::intern(event)]);
    OwnedTerm::from_parts(t, f)
}

/// Ends the selection of a descriptor and calls the resource's `stop`.
///
/// # Safety
/// `data` is the address of a resource that is held.
unsafe fn stop(fd: c_int, data: *mut c_void) -> c_int {
    let mut all = selected();
    let gone = all.as_mut().and_then(|a| {
        let mine = a.get(&fd).is_some_and(|s| s.data == data as usize);
        if mine { a.remove(&fd) } else { None }
    });
    drop(all);
    let mut r = 0;
    if let Some(s) = &gone {
        poll::forget(s.id);
        r |= cancelled(s.read.is_some(), s.write.is_some(), s.error.is_some());
    }
    // SAFETY: the resource is held.
    unsafe { resource::stop(data, fd, true) };
    if let Some(s) = gone {
        drop(s);
        // SAFETY: the selection held the resource, and is gone.
        unsafe { resource::release(data) };
    }
    r | STOP_CALLED
}

fn cancelled(read: bool, write: bool, error: bool) -> c_int {
    let of = |yes: bool, bit: c_int| if yes { bit } else { 0 };
    of(read, READ_CANCELLED) | of(write, WRITE_CANCELLED) | of(error, ERROR_CANCELLED)
}

/// Cancels events of a descriptor.
///
/// # Safety
/// Selected resources are held.
unsafe fn cancel(fd: c_int, mode: c_int) -> c_int {
    let mut all = selected();
    let Some(s) = all.as_mut().and_then(|a| a.get_mut(&fd)) else {
        return 0;
    };
    let gone = [
        s.read.take_if(|_| mode & READ != 0),
        s.write.take_if(|_| mode & WRITE != 0),
        s.error.take_if(|_| mode & ERROR != 0),
    ];
    want(s);
    drop(all);
    cancelled(gone[0].is_some(), gone[1].is_some(), gone[2].is_some())
}

/// Implements `enif_select` and `enif_select_x`.
///
/// # Safety
/// The environment belongs to this call, `data` is the address of a resource that is held, and
/// `pid` is null or points to a pid.
unsafe fn select(
    env: *mut ErlNifEnv,
    fd: c_int,
    mode: c_int,
    data: *mut c_void,
    pid: *const Pid,
    msg: Term,
) -> c_int {
    // SAFETY: only queries a descriptor.
    if fd < 0 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return match fd < 0 {
            true => c_int::MIN | INVALID_EVENT,
            // SAFETY: by the contract of this function.
            false if mode & STOP != 0 => unsafe { stop(fd, data) },
            false => c_int::MIN | FAILED,
        };
    }
    if mode & STOP != 0 {
        // SAFETY: by the contract of this function.
        return unsafe { stop(fd, data) };
    }
    if mode & CANCEL != 0 {
        // SAFETY: selected resources are held.
        return unsafe { cancel(fd, mode) };
    }
    // SAFETY: null or a pid; null or the environment of this call.
    let (pid, env) = unsafe { (pid.as_ref(), env.as_mut()) };
    let to = match pid {
        Some(p) => *p,
        None => match env.and_then(|e| e.process()) {
            Some(cx) => crate::send::pid_of(cx),
            None => return c_int::MIN | FAILED,
        },
    };
    if !to.is_local_pid() {
        return c_int::MIN | FAILED;
    }
    let waiting = |event: &str| Waiting {
        to,
        // SAFETY: by the contract of this function.
        message: unsafe { message(mode, data, msg, event) },
    };
    let of = |bit: c_int, event: &str| (mode & bit != 0).then(|| waiting(event));
    let (read, write) = (of(READ, "ready_input"), of(WRITE, "ready_output"));
    let error = of(ERROR, "ready_error");
    let mut all = selected();
    let table = all.get_or_insert_default();
    // Another resource's descriptor: it was closed, and its number reused.
    let stale = match table.get(&fd) {
        Some(s) if s.data != data as usize => table.remove(&fd),
        _ => None,
    };
    if let Some(s) = &stale {
        poll::forget(s.id);
    }
    if let Entry::Vacant(free) = table.entry(fd) {
        match poll::register(fd, Arc::new(Teller(fd))) {
            Ok(id) => {
                // SAFETY: the resource is held.
                unsafe { resource::keep(data) };
                free.insert(Selected {
                    data: data as usize,
                    id,
                    read: None,
                    write: None,
                    error: None,
                });
            }
            Err(_) => {
                drop(all);
                // SAFETY: it held its resource.
                unsafe { end_stale(stale) };
                return c_int::MIN | FAILED;
            }
        }
    }
    let mut before = Vec::new();
    if let Some(s) = table.get_mut(&fd) {
        let mut set = |to: &mut Option<Waiting>, w: Option<Waiting>| {
            if w.is_some() {
                before.extend(std::mem::replace(to, w));
            }
        };
        set(&mut s.read, read);
        set(&mut s.write, write);
        set(&mut s.error, error);
        want(s);
    }
    drop(all);
    drop(before);
    // SAFETY: it held its resource.
    unsafe { end_stale(stale) };
    0
}

/// Releases the resource of a descriptor that now belongs to another.
///
/// # Safety
/// `stale` held its resource.
unsafe fn end_stale(stale: Option<Selected>) {
    if let Some(s) = stale {
        let data = s.data as *mut c_void;
        drop(s);
        // SAFETY: the selection held the resource, and is gone.
        unsafe { resource::release(data) };
    }
}

exported! {
    fn enif_select(
        env: *mut ErlNifEnv, fd: c_int, mode: c_int, data: *mut c_void,
        pid: *const Pid, reference: Term,
    ) -> c_int {
        select(env, fd, mode & !CUSTOM, data, pid, reference)
    }
    fn enif_select_x(
        env: *mut ErlNifEnv, fd: c_int, mode: c_int, data: *mut c_void,
        pid: *const Pid, msg: Term, own: *mut ErlNifEnv,
    ) -> c_int {
        let r = select(env, fd, mode, data, pid, msg);
        if r >= 0 && !own.is_null() && mode & (STOP | CANCEL) == 0 {
            crate::env::enif_clear_env(own);
        }
        r
    }
}
