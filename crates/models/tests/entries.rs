//! Models words of code that are patched while others run them: breakpoints and entries to compiled
//! code.

#[path = "../../kernel/src/code/entries.rs"]
#[allow(dead_code)]
mod entries;
use purlin_models::{explore, sync};

use entries::{BREAKPOINT, Entries, Invalidated, leads_to, stands_at};
use loom::sync::Arc;
use loom::thread;
use std::mem::offset_of;
use std::sync::atomic::{AtomicUsize as Plain, Ordering as PlainOrdering};
use sync::{AtomicU16, AtomicU32, AtomicUsize, Ordering};

/// Numbers of instructions: the code's own one, and the one that enters compiled code.
const OWN: u16 = 7;
const ENTERS: u16 = 9;
/// The address of compiled code, and the value for none.
const CODE: u32 = 5;
const NONE: u32 = 3;

/// The compiler: counts how often it must forget code.
struct Maker(Plain);

impl Invalidated for Maker {
    fn invalidated(&self, _: *const u64) {
        self.0.fetch_add(1, PlainOrdering::SeqCst);
    }
}

/// The entry of a function: the 32 bits before it, and the number of its first instruction.
#[repr(C)]
struct Words {
    lead: AtomicU32,
    word: AtomicU16,
}
const _: () = assert!(offset_of!(Words, word) == size_of::<AtomicU32>());

struct World {
    entries: Entries,
    words: Box<Words>,
    /// The compiled code of the function.
    code: AtomicUsize,
    maker: &'static Maker,
}

impl World {
    fn new() -> Arc<World> {
        let w = World {
            entries: Entries::default(),
            words: Box::new(Words {
                lead: AtomicU32::new(NONE),
                word: AtomicU16::new(OWN),
            }),
            code: AtomicUsize::new(0),
            maker: Box::leak(Box::new(Maker(Plain::new(0)))),
        };
        w.entries.install(w.maker, ENTERS, NONE);
        Arc::new(w)
    }
    fn pc(&self) -> *const u64 {
        let words: *const Words = &raw const *self.words;
        words.wrapping_byte_add(offset_of!(Words, word)) as *const u64
    }
    fn stands(&self) -> u16 {
        // SAFETY: the word lives as long as the world.
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
        // SAFETY: as above.
        unsafe { self.entries.publish(self.pc(), CODE) }
    }
    fn withdraw(&self) {
        // SAFETY: as above.
        unsafe { self.entries.withdraw(self.pc()) }
    }
    fn leads_to(&self) -> u32 {
        // SAFETY: as above.
        unsafe { leads_to(self.pc()) }
    }
    /// A call by compiled code, which reads the 32 bits before the entry.
    fn call(&self) {
        match self.leads_to() {
            NONE => {}
            CODE => assert_eq!(
                self.code.load(Ordering::Relaxed),
                1,
                "called before it was written"
            ),
            n => panic!("{n} stands before the entry"),
        }
    }
    /// A thread that runs the instruction at the entry.
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
                self.call();
            }
            n => panic!("{n} stands there"),
        }
    }
}

/// A breakpoint is set and cleared while the function is compiled and runs.
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
        w.call();
        let stood = tracer.join().expect("runs");
        assert_eq!(
            stood, BREAKPOINT,
            "something was published over a breakpoint"
        );
        compiler.join().expect("runs");
        assert_eq!((w.stands(), w.own()), (OWN, OWN));
        assert_eq!(w.leads_to(), NONE);
    });
}

/// Once a breakpoint is set nobody enters compiled code, in any order of the two.
#[test]
fn a_breakpoint_wins() {
    explore("a breakpoint wins", None, || {
        let w = World::new();
        let compiler = w.clone();
        let compiler = thread::spawn(move || compiler.publish());
        w.set();
        assert_eq!((w.stands(), w.leads_to()), (BREAKPOINT, NONE));
        let published = compiler.join().expect("runs");
        assert_eq!((w.stands(), w.leads_to()), (BREAKPOINT, NONE));
        let told = w.maker.0.load(PlainOrdering::SeqCst);
        assert_eq!(told, usize::from(published));
        // Published before and forgotten: then there is nothing to withdraw.
        if published {
            w.withdraw();
        }
        assert_eq!(w.stands(), BREAKPOINT);
        w.clear();
        assert_eq!((w.stands(), w.own()), (OWN, OWN));
        assert!(w.publish(), "what was cleared may be compiled again");
        assert_eq!((w.stands(), w.own(), w.leads_to()), (ENTERS, OWN, CODE));
    });
}

/// Two compilers: one of them publishes, and the other's code is dropped.
#[test]
fn one_compiler_publishes() {
    explore("one compiler publishes", None, || {
        let w = World::new();
        let other = w.clone();
        let other = thread::spawn(move || other.publish());
        let mine = w.publish();
        let theirs = other.join().expect("runs");
        assert!(mine != theirs, "both or none");
        let at = w.pc() as usize;
        w.entries.forget(at..at + 1);
        assert_eq!(w.leads_to(), NONE);
        assert_eq!(w.maker.0.load(PlainOrdering::SeqCst), 1);
    });
}
