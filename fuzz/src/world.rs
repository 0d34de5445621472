//! A process without a scheduler, to call natives and loaded functions in.

use purlin_runtime::code;
use purlin_runtime::code::start;
use purlin_runtime::cx::{Cx, Fail};
use purlin_runtime::interp::{self, Exit};
use purlin_runtime::process::Process;
use purlin_term::{Term, am, atom};
use std::mem::MaybeUninit;

/// A context with a process in it.
pub struct World {
    pub cx: Box<Cx>,
    _process: Box<MaybeUninit<Process>>,
}

/// How a call ended. Terms live until the next call.
#[derive(Debug)]
pub enum Outcome {
    Value(Term),
    /// The reason that the process would have ended with.
    Exception(Term),
    /// It waits, or was still busy when its time was over.
    Unfinished,
}

impl Outcome {
    /// The value, where there is one.
    pub fn value(self) -> Option<Term> {
        match self {
            Outcome::Value(t) => Some(t),
            _ => None,
        }
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

impl World {
    pub fn new() -> World {
        purlin_runtime::natives::install();
        purlin_term::region::init();
        let mut cx = Cx::boxed(0);
        let mut process: Box<MaybeUninit<Process>> = Box::new(MaybeUninit::zeroed());
        // SAFETY: only the identifier of the process is used, and state for which zeros are valid;
        // the heap is empty.
        unsafe {
            (*process.as_mut_ptr())
                .id
                .store(0, purlin_term::sync::Ordering::Relaxed);
            cx.proc.set(process.as_mut_ptr());
            purlin_term::gc::collect(&mut cx.heap, 233, &mut [], false);
        }
        World {
            cx,
            _process: process,
        }
    }

    /// Calls `module:function(args)` under the interpreter, for at most `slices` time slices of
    /// 4000 reductions. The heap is collected in between, and verified at the end.
    pub fn apply(&mut self, module: &str, function: &str, args: &[Term], slices: usize) -> Outcome {
        let (m, f) = (atom::intern(module), atom::intern(function));
        self.call(m, f, args, slices)
    }

    /// As [`World::apply`].
    pub fn call(&mut self, m: Term, f: Term, args: &[Term], slices: usize) -> Outcome {
        use purlin_term::Alloc;
        let cx = &mut *self.cx;
        let l = cx.list(args);
        cx.x[0] = l;
        // SAFETY: the live registers hold terms of this heap. The collections reserve room for the
        // bottom of the stack in its block.
        unsafe {
            let mut roots = [l];
            cx.heap.stop = cx.heap.hend;
            purlin_term::gc::collect(&mut cx.heap, 233, &mut [&mut roots], false);
            start::enter_apply(cx, m, f, roots[0]);
            for _ in 0..slices {
                cx.reds = 4000;
                let pc = cx.interp.pc;
                match interp::run(cx, pc) {
                    Exit::Yield => {
                        cx.dirty = false;
                        let live = cx.interp.live;
                        let x = std::slice::from_raw_parts_mut(cx.x.as_mut_ptr(), live);
                        purlin_term::gc::collect(&mut cx.heap, 0, &mut [x], false);
                        cx.heap.gc_wanted = false;
                    }
                    Exit::DirtyIo | Exit::DirtyCpu => cx.dirty = true,
                    Exit::Exited => {
                        cx.dirty = false;
                        let ok = cx.interp.reason == am::NORMAL;
                        let mut roots = [if ok { cx.x[0] } else { cx.interp.reason }];
                        cx.heap.stop = cx.heap.hend;
                        purlin_term::gc::collect(&mut cx.heap, 0, &mut [&mut roots], false);
                        let [t] = roots;
                        if let Err(e) = purlin_term::verify::verify(&cx.heap, &[&[t]]) {
                            panic!("a damaged heap: {e}");
                        }
                        return if ok {
                            Outcome::Value(t)
                        } else {
                            Outcome::Exception(t)
                        };
                    }
                    _ => break,
                }
            }
        }
        self.cx.dirty = false;
        Outcome::Unfinished
    }

    /// Calls a native directly: nothing moves, all terms stay.
    pub fn native(&mut self, module: &str, function: &str, args: &[Term]) -> Result<Term, Fail> {
        let (m, f) = (atom::intern(module), atom::intern(function));
        let (_, bif) = code::native(m, f, args.len() as u32)
            .unwrap_or_else(|| panic!("{module}:{function}/{} is no native", args.len()));
        self.cx.reds = 1 << 40;
        // SAFETY: as many arguments as its row says, for that is how it was found.
        unsafe { (bif.call)(self.cx.env_ptr(), args.as_ptr()) }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: a holder of terms of it borrows the world.
        unsafe { purlin_term::gc::destroy(&mut self.cx.heap) }
    }
}
