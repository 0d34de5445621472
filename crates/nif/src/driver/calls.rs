//! Calls of drivers to their ports: output, queues, descriptors, timers, failures, monitors.

use super::abi::{Block, Data, Event, Handle, IoVec};
use super::block::Part;
use super::io_queue::Queue;
use super::port::{CPort, of_handle};
use crate::abi::Monitor;
use purlin_io::port::End;
use purlin_kernel::posix;
use purlin_term::layout::heap_bin_limit;
use purlin_term::{Alloc, NIL, Term, am, atom};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_ulong};
use std::sync::Arc;

/// Results of most functions: success and failure.
const DONE: c_int = 0;
const BAD: c_int = -1;

fn done(r: Option<()>) -> c_int {
    match r {
        Some(()) => DONE,
        None => BAD,
    }
}

/// Returns bytes of C code.
///
/// # Safety
/// There are `n` bytes at `p`, which stay for `'a`.
unsafe fn bytes<'a>(p: *const c_char, n: usize) -> &'a [u8] {
    // SAFETY: by the contract of this function.
    unsafe { crate::terms::slice(p as *const u8, n) }
}

/// Makes a binary from a part of a block.
pub fn binary(a: &mut dyn Alloc, p: Part) -> Term {
    if p.len() <= heap_bin_limit() {
        return a.binary(p.bytes());
    }
    let (bin, at, n) = p.into_parts();
    // SAFETY: the count is passed on.
    unsafe { a.refc_bin_at(bin, at, n) }
}

/// Sends `{Port, {data, Data}}` to the owner. `Data` begins with the bytes of `head` as a list.
fn deliver(p: &Arc<CPort>, head: Vec<u8>, what: Input) {
    p.ask(move |base| {
        if base.is_flushing() {
            return;
        }
        let n = match &what {
            Input::Plain(b) => b.len(),
            Input::Parts(p) | Input::One(p) => p.iter().map(Part::len).sum(),
        };
        if let (Input::Plain(b), true) = (&what, head.is_empty()) {
            return base.input(b);
        }
        base.count_in(head.len() + n);
        let (id, binary_wanted) = (base.id, base.binary);
        base.message(base.connected, |a| {
            let tail = match what {
                Input::Plain(b) if binary_wanted => a.binary(&b),
                Input::Plain(b) => a.byte_list(&b, NIL),
                Input::One(p) if binary_wanted => {
                    p.into_iter().next().map_or(NIL, |p| binary(a, p))
                }
                // The last one is the tail.
                Input::Parts(p) if binary_wanted => {
                    let all: Vec<Term> = p.into_iter().map(|p| binary(a, p)).collect();
                    let (&last, others) = all.split_last().unwrap_or((&NIL, &[]));
                    a.list_tail(others, last)
                }
                Input::Parts(p) | Input::One(p) => {
                    let mut t = NIL;
                    for p in p.iter().rev() {
                        t = a.byte_list(p.bytes(), t);
                    }
                    t
                }
            };
            let data = a.byte_list(&head, tail);
            let data = a.tuple(&[am::DATA, data]);
            a.tuple(&[id, data])
        });
    });
}

/// Input that follows the head.
enum Input {
    Plain(Vec<u8>),
    /// One binary.
    One(Vec<Part>),
    /// A list of binaries.
    Parts(Vec<Part>),
}

fn end(h: Handle, why: End) -> c_int {
    done(of_handle(h).map(|p| p.ask(move |b| b.end(why))))
}

fn reason(name: Term) -> End {
    End::Reason(name)
}

/// Changes the queue of a port. A port that is closing may end when the queue is empty.
fn queued(h: Handle, f: impl FnOnce(&mut Queue) -> Option<usize>) -> Option<usize> {
    let p = of_handle(h)?;
    let left = f(&mut p.state().queue)?;
    if left == 0 {
        // The thread in the port checks the queue afterwards.
        p.ask(|_| ());
    }
    Some(left)
}

/// Adds a part to the queue of a port.
///
/// # Safety
/// `h` is a handle that a driver has for a port.
unsafe fn add(h: Handle, part: Option<Part>, front: bool) -> c_int {
    done(of_handle(h).and_then(|p| {
        p.state().queue.push(part?, front);
        Some(())
    }))
}

/// Adds the parts of a vector to the queue of a port.
///
/// # Safety
/// `h` is a handle that a driver has for a port, and `v` is a vector of a driver with counted
/// blocks.
unsafe fn add_all(h: Handle, v: *mut IoVec, skip: usize, front: bool) -> c_int {
    done(of_handle(h).and_then(|p| {
        // SAFETY: `v` is a vector of a driver.
        let mut parts = unsafe { Queue::parts_of(v, skip, false)? };
        if front {
            parts.reverse();
        }
        let mut s = p.state();
        parts.into_iter().for_each(|part| s.queue.push(part, front));
        Some(())
    }))
}

thread_local! {
    /// The percentage of its time slice that a port has reported as used.
    static CONSUMED: Cell<(Handle, i32)> = const { Cell::new((0, 0)) };
}

exported! {
    fn driver_output(h: Handle, p: *mut c_char, n: usize) -> c_int {
        done(of_handle(h).map(|port| {
            deliver(&port, Vec::new(), Input::Plain(bytes(p, n).to_vec()))
        }))
    }
    fn driver_output2(h: Handle, head: *mut c_char, hn: usize, p: *mut c_char, n: usize) -> c_int {
        let (head, rest) = (bytes(head, hn).to_vec(), bytes(p, n).to_vec());
        done(of_handle(h).map(|port| deliver(&port, head, Input::Plain(rest))))
    }
    fn driver_output_binary(
        h: Handle, head: *mut c_char, hn: usize, b: *mut Block, at: usize, n: usize,
    ) -> c_int {
        let head = bytes(head, hn).to_vec();
        done(of_handle(h).and_then(|port| {
            let part = Part::of(b, at, n)?;
            deliver(&port, head, Input::One(vec![part]));
            Some(())
        }))
    }
    fn driver_outputv(
        h: Handle, head: *mut c_char, hn: usize, v: *mut IoVec, skip: usize,
    ) -> c_int {
        let head = bytes(head, hn).to_vec();
        done(of_handle(h).and_then(|port| {
            let parts = match v.is_null() {
                true => Vec::new(),
                false => Queue::parts_of(v, skip, true)?,
            };
            let what = match parts.is_empty() {
                true => Input::Plain(Vec::new()),
                false => Input::Parts(parts),
            };
            deliver(&port, head, what);
            Some(())
        }))
    }

    fn driver_failure_eof(h: Handle) -> c_int {
        end(h, End::Eof)
    }
    fn driver_failure_atom(h: Handle, name: *mut c_char) -> c_int {
        match crate::terms::latin1_atom(crate::terms::c_bytes(name)) {
            Some(a) => end(h, reason(a)),
            None => BAD,
        }
    }
    fn driver_failure_posix(h: Handle, error: c_int) -> c_int {
        end(h, reason(posix::errno_atom(error)))
    }
    fn driver_failure(h: Handle, code: c_int) -> c_int {
        match code {
            0 => end(h, End::Eof),
            n => end(h, reason(Term::small(n.into()))),
        }
    }
    fn driver_exit(h: Handle, error: c_int) -> c_int {
        // The owner gets no message.
        let why = match error {
            0 => am::NORMAL,
            e => posix::errno_atom(e),
        };
        done(of_handle(h).map(|p| p.ask(move |b| b.end_unlinked(why))))
    }

    fn driver_enq(h: Handle, p: *mut c_char, n: usize) -> c_int {
        add(h, Some(Part::copy_of(bytes(p, n))), false)
    }
    fn driver_pushq(h: Handle, p: *mut c_char, n: usize) -> c_int {
        add(h, Some(Part::copy_of(bytes(p, n))), true)
    }
    fn driver_enq_bin(h: Handle, b: *mut Block, at: usize, n: usize) -> c_int {
        add(h, Part::of(b, at, n), false)
    }
    fn driver_pushq_bin(h: Handle, b: *mut Block, at: usize, n: usize) -> c_int {
        add(h, Part::of(b, at, n), true)
    }
    fn driver_enqv(h: Handle, v: *mut IoVec, skip: usize) -> c_int {
        add_all(h, v, skip, false)
    }
    fn driver_pushqv(h: Handle, v: *mut IoVec, skip: usize) -> c_int {
        add_all(h, v, skip, true)
    }
    fn driver_deq(h: Handle, n: usize) -> usize {
        queued(h, |q| q.take(n)).unwrap_or(usize::MAX)
    }
    fn driver_sizeq(h: Handle) -> usize {
        of_handle(h).map_or(usize::MAX, |p| p.state().queue.size())
    }
    fn driver_peekq(h: Handle, n: *mut c_int) -> *mut libc::iovec {
        let Some(p) = of_handle(h) else {
            n.write(BAD);
            return std::ptr::null_mut();
        };
        let (v, len) = p.state().queue.peek();
        n.write(len);
        v
    }
    fn driver_peekqv(h: Handle, to: *mut IoVec) -> usize {
        let Some(p) = of_handle(h) else {
            return usize::MAX;
        };
        let v = p.state().queue.peek_blocks();
        let size = v.size;
        to.write(v);
        size
    }

    fn driver_select(h: Handle, event: Event, mode: c_int, on: c_int) -> c_int {
        match of_handle(h) {
            Some(p) if p.select(event, mode, on != 0) => DONE,
            _ => BAD,
        }
    }
    fn driver_set_timer(h: Handle, ms: c_ulong) -> c_int {
        let p = of_handle(h).filter(|p| p.code.entry.timeout.is_some());
        done(p.map(|p| p.set_timer(ms)))
    }
    fn driver_cancel_timer(h: Handle) -> c_int {
        done(of_handle(h).map(|p| p.cancel_timer()))
    }
    fn driver_read_timer(h: Handle, left: *mut c_ulong) -> c_int {
        done(of_handle(h).map(|p| left.write(p.timer_left())))
    }
    fn erl_drv_consume_timeslice(h: Handle, percent: c_int) -> c_int {
        let (of, before) = CONSUMED.get();
        let used = percent.clamp(1, 100) + if of == h { before } else { 0 };
        let over = used >= 100;
        CONSUMED.set((h, if over { 0 } else { used }));
        c_int::from(over)
    }

    fn driver_monitor_process(h: Handle, pid: Term, to: *mut Monitor) -> c_int {
        let Some(p) = of_handle(h) else {
            return BAD;
        };
        if p.code.entry.process_exit.is_none() {
            return BAD;
        }
        match p.watch(pid) {
            Some(num) => {
                if !to.is_null() {
                    to.write(Monitor { num, rest: [0; 5] });
                }
                DONE
            }
            None => 1,
        }
    }
    fn driver_demonitor_process(h: Handle, m: *const Monitor) -> c_int {
        match of_handle(h) {
            Some(p) if p.demonitor((*m).num) => DONE,
            Some(_) => 1,
            None => BAD,
        }
    }
    fn driver_get_monitored_process(h: Handle, m: *const Monitor) -> Term {
        of_handle(h).and_then(|p| p.watched((*m).num)).unwrap_or(NIL)
    }
    fn driver_compare_monitors(a: *const Monitor, b: *const Monitor) -> c_int {
        crate::resource::enif_compare_monitors(a, b)
    }

    fn set_busy_port(h: Handle, on: c_int) {
        if let Some(p) = of_handle(h) {
            p.ask(move |b| b.set_busy(on != 0));
        }
    }
    fn set_port_control_flags(h: Handle, flags: c_int) {
        if let Some(p) = of_handle(h) {
            p.state().control_flags = flags;
        }
    }
    fn get_port_flags(h: Handle) -> c_int {
        of_handle(h).map_or(0, |p| p.state().port_flags)
    }
    /// There is no message queue in front of a port; the limits are only stored and returned.
    fn erl_drv_busy_msgq_limits(h: Handle, low: *mut usize, high: *mut usize) {
        let Some(p) = of_handle(h) else {
            return;
        };
        let mut s = p.state();
        let (mut l, mut u) = s.msgq_limits;
        if l != usize::MAX {
            if !low.is_null() && *low != 0 {
                l = *low;
            }
            if !high.is_null() && *high != 0 {
                u = *high;
            }
            if l == usize::MAX || u == usize::MAX {
                (l, u) = (usize::MAX, usize::MAX);
            }
            u = u.max(l);
            s.msgq_limits = (l, u);
        }
        if !low.is_null() {
            low.write(l);
        }
        if !high.is_null() {
            high.write(u);
        }
    }

    fn driver_mk_atom(name: *mut c_char) -> Term {
        crate::terms::latin1_atom(crate::terms::c_bytes(name)).unwrap_or_else(|| atom::intern(""))
    }
    fn driver_mk_port(h: Handle) -> Term {
        of_handle(h).map_or(am::UNDEFINED, |p| p.id())
    }
    fn driver_mk_term_nil() -> Term {
        NIL
    }
    fn driver_connected(h: Handle) -> Term {
        of_handle(h).map_or(NIL, |p| p.here(|b| b.connected).unwrap_or_else(|| p.owner()))
    }
    fn driver_caller(h: Handle) -> Term {
        of_handle(h).and_then(|p| p.here(|b| b.caller)).unwrap_or(NIL)
    }
    fn driver_create_port(h: Handle, owner: Term, name: *mut c_char, data: Data) -> Handle {
        let name = String::from_utf8_lossy(crate::terms::c_bytes(name)).into_owned();
        of_handle(h)
            .and_then(|p| p.here(|b| p.create(b, &name, owner, data)).flatten())
            .unwrap_or(usize::MAX)
    }
    /// The port is open by then; an error ends it.
    fn erl_drv_init_ack(h: Handle, answer: Data) {
        let Some(p) = of_handle(h) else {
            return;
        };
        match answer as isize {
            -3 => p.ask(|b| b.end(End::Reason(am::BADARG))),
            -2 | -1 => p.ask(|b| b.end(End::Reason(posix::errno_atom(libc::EINVAL)))),
            _ => p.set_data(answer),
        }
    }
    fn erl_drv_set_os_pid(h: Handle, pid: isize) {
        if let Some(p) = of_handle(h) {
            p.state().os_pid = i32::try_from(pid).ok();
        }
    }
}
