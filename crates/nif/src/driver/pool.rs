//! `driver_async`: work that would hold up a port is done by other threads. Their number is that of
//! `+A`, and at least one.

use super::abi::Handle;
use super::code::Code;
use super::port::of_handle;
use super::shared::Shared;
use purlin_kernel::{halt, options};
use purlin_term::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::ffi::{c_long, c_uint, c_void};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A function of C code that takes the driver's data.
type Work = unsafe extern "C" fn(*mut c_void);

/// Stack size of such a thread.
const STACK_BYTES: usize = 1 << 20;

struct Job {
    port: Handle,
    invoke: Work,
    data: *mut c_void,
    free: Option<Work>,
    /// The port's lock, if it has one.
    _lock: Option<Shared>,
    /// Keeps the driver's file open until its functions have returned: the port may be gone by
    /// then, and the driver unloaded.
    _code: Arc<Code>,
}

// SAFETY: the driver's data is meant for the thread that does its work.
unsafe impl Send for Job {}

impl Job {
    /// Does the work and notifies the port.
    ///
    /// # Safety
    /// The data is what the driver has passed with the function, once.
    unsafe fn run(self) {
        // SAFETY: the function takes the data, which it gets once.
        unsafe {
            (self.invoke)(self.data);
            self.ready();
        }
    }
    /// Notifies the port, or frees the data.
    ///
    /// # Safety
    /// The contract of [`Job::run`] holds.
    unsafe fn ready(self) {
        let told = of_handle(self.port).is_some_and(|p| match p.code.entry.ready_async {
            Some(f) => {
                let data = self.data as usize;
                // SAFETY: the driver's function, which takes the data over.
                p.call_when_free(move |_, d| unsafe { f(d, data as *mut c_void) })
            }
            None => false,
        });
        if let (false, Some(f)) = (told, self.free) {
            // SAFETY: nobody else has taken the data, which the function frees.
            unsafe { f(self.data) };
        }
    }
}

#[derive(Default)]
struct Line {
    jobs: Mutex<VecDeque<Job>>,
    some: Condvar,
}

/// The queues of the threads; fewer or none if threads cannot be started.
fn lines() -> &'static [Arc<Line>] {
    static LINES: OnceLock<Vec<Arc<Line>>> = OnceLock::new();
    LINES.get_or_init(|| {
        let n = options::current().flags.schedulers.async_threads.max(1);
        let mut lines = Vec::new();
        for i in 0..n {
            let line = Arc::new(Line::default());
            let mine = line.clone();
            let started = std::thread::Builder::new()
                .name(format!("async_{}", i + 1))
                .stack_size(STACK_BYTES)
                .spawn(move || serve(&mine));
            if started.is_err() {
                break;
            }
            lines.push(line);
        }
        lines
    })
}

fn serve(line: &Line) {
    purlin_kernel::affinity::begin_unbound();
    loop {
        let mut jobs = line.jobs.lock();
        let job = loop {
            match jobs.pop_front() {
                Some(j) => break j,
                None => jobs = line.some.wait(jobs),
            }
        };
        drop(jobs);
        // SAFETY: the driver has asked for this call.
        unsafe { job.run() };
    }
}

exported! {
    /// Returns the number of the job. Jobs with the same key are done one after another.
    fn driver_async(
        h: Handle, key: *mut c_uint, invoke: Option<Work>, data: *mut c_void, free: Option<Work>,
    ) -> c_long {
        static NUMBER: AtomicI64 = AtomicI64::new(0);
        static TURN: AtomicUsize = AtomicUsize::new(0);
        let (Some(invoke), Some(port)) = (invoke, of_handle(h)) else {
            return -1;
        };
        let _lock = port.state().lock.as_ref().map(Shared::again);
        let job = Job { port: h, invoke, data, free, _lock, _code: port.code.clone() };
        let n = NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
        let lines = lines();
        let turn = match key.as_ref() {
            Some(&k) => k as usize,
            None => TURN.fetch_add(1, Ordering::Relaxed),
        };
        match lines.get(turn.checked_rem(lines.len()).unwrap_or(0)) {
            Some(line) => {
                line.jobs.lock().push_back(job);
                line.some.notify_one();
            }
            None => halt::fatal("no thread can be started for driver_async"),
        }
        n
    }
    fn driver_async_port_key(h: Handle) -> c_uint {
        h as c_uint
    }
}
