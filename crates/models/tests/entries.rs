//! The words of code that are patched while others run it: breakpoints and entries to compiled code.

#[path = "../../kernel/src/code/entries.rs"]
#[allow(dead_code)]
mod entries;
use purlin_models::{explore, sync};

use entries::{BREAKPOINT, Compiled, Entries, stands_at};
use loom::sync::Arc;
use loom::thread;
use std::sync::atomic::AtomicUsize as Plain;
use sync::{AtomicU16, AtomicUsize, Ordering};

/// Numbers of instructions: one of the code's own, and the one that enters compiled code.
const OWN: u16 = 7;
const ENTERS: u16 = 9;

/// The cells that lead to compiled code: the owner tells them to forget it.
struct Cells(Plain);

impl Compiled for Cells {
    fn forget(&self, _: *const u64) {
        self.0.store(0, Ordering::SeqCst);
    }
}

struct World {
    entries: Entries,
    /// The function's first instruction.
    word: Box<AtomicU16>,
    /// The code that the compiler has written for the function.
    code: AtomicUsize,
    cells: &'static Cells,
}

impl World {
    fn new() -> Arc<World> {
        let w = World {
            entries: Entries::default(),
            word: Box::new(AtomicU16::new(OWN)),
            code: AtomicUsize::new(0),
            cells: Box::leak(Box::new(Cells(Plain::new(0)))),
        };
        w.entries.install(w.cells, ENTERS);
        Arc::new(w)
    }
    fn pc(&self) -> *const u64 {
        &raw const *self.word as *const u64
    }
    fn stands(&self) -> u16 {
        // SAFETY: the word stays for as long as the world does.
        unsafe { stands_at(self.pc()) }
    }
    fn own(&self) -> u16 {
        // SAFETY: as above.
        unsafe { self.entries.opcode_at(self.pc()) }
    }
    fn set(&self) {
        // SAFETY: as above.
        unsafe { self.entries.set_breakpoint(self.pc()) }
    }
    fn clear(&self) {
        // SAFETY: as above.
        unsafe { self.entries.clear_breakpoint(self.pc()) }
    }
    fn publish(&self) -> bool {
        self.code.store(1, Ordering::Relaxed);
        let lead = || {
            self.cells.0.store(1, Ordering::SeqCst);
            true
        };
        // SAFETY: as above.
        unsafe { self.entries.publish(self.pc(), lead) }
    }
    fn withdraw(&self) {
        let unlead = || self.cells.0.store(0, Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { self.entries.withdraw(self.pc(), unlead) }
    }
    /// A thread comes to the word.
    fn run(&self) {
        let n = self.stands();
        match n {
            OWN => {}
            BREAKPOINT => assert_eq!(
                self.own(),
                OWN,
                "a breakpoint stands for another instruction"
            ),
            ENTERS => {
                sync::fence(Ordering::Acquire);
                assert_eq!(
                    self.code.load(Ordering::Relaxed),
                    1,
                    "entered before it was written"
                );
                assert_eq!(self.own(), OWN);
            }
            n => panic!("{n} stands there"),
        }
    }
}

/// A breakpoint is set and cleared while the function is compiled, and is run.
#[test]
fn the_own_instruction_is_always_found() {
    explore("the own instruction is always found", Some(3), || {
        let w = World::new();
        let tracer = w.clone();
        let tracer = thread::spawn(move || {
            tracer.set();
            let stood = tracer.stands();
            tracer.clear();
            stood
        });
        let compiler = w.clone();
        let compiler = thread::spawn(move || {
            let published = compiler.publish();
            compiler.withdraw();
            published
        });
        w.run();
        w.run();
        let stood = tracer.join().expect("runs");
        assert_eq!(
            stood, BREAKPOINT,
            "something was published over a breakpoint"
        );
        compiler.join().expect("runs");
        assert_eq!((w.stands(), w.own()), (OWN, OWN));
        assert_eq!(w.cells.0.load(Ordering::SeqCst), 0);
    });
}

/// Once a breakpoint is set nobody enters compiled code, whoever came first.
#[test]
fn a_breakpoint_wins() {
    explore("a breakpoint wins", None, || {
        let w = World::new();
        let compiler = w.clone();
        let compiler = thread::spawn(move || compiler.publish());
        w.set();
        let leads = w.cells.0.load(Ordering::SeqCst);
        assert_eq!((w.stands(), leads), (BREAKPOINT, 0));
        let published = compiler.join().expect("runs");
        assert_eq!(
            (w.stands(), w.cells.0.load(Ordering::SeqCst)),
            (BREAKPOINT, 0)
        );
        // Published before, and forgotten: then nothing is there to be withdrawn.
        if published {
            w.withdraw();
        }
        assert_eq!(w.stands(), BREAKPOINT);
        w.clear();
        assert_eq!((w.stands(), w.own()), (OWN, OWN));
        assert!(w.publish(), "what was cleared may be compiled again");
        assert_eq!((w.stands(), w.own()), (ENTERS, OWN));
    });
}

/// Two compilers: one of them publishes, and what goes with the code is forgotten.
#[test]
fn one_publishes() {
    explore("one publishes", None, || {
        let w = World::new();
        let other = w.clone();
        let other = thread::spawn(move || other.publish());
        let mine = w.publish();
        let theirs = other.join().expect("runs");
        assert!(mine != theirs, "both or none");
        let at = w.pc() as usize;
        w.entries.forget(at..at + 1);
        assert_eq!(w.cells.0.load(Ordering::SeqCst), 0);
    });
}
