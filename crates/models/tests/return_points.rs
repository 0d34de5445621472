//! The table of return points: threads look addresses up while machine code is published and taken
//! back, and the table grows.

#[path = "../../kernel/src/code/epochs.rs"]
#[allow(dead_code)]
mod real;
#[path = "../../kernel/src/code/returns.rs"]
pub mod returns;
/// Where the files under test look for each other.
mod code {
    pub use crate::returns;

    pub mod epochs {
        pub use crate::real::{Epochs, Since, enter, leave};

        loom::lazy_static! {
            static ref EPOCHS: Epochs = Epochs::default();
        }
        pub fn epochs() -> &'static Epochs {
            &EPOCHS
        }
    }

    pub mod compiled {
        use loom::sync::atomic::{AtomicUsize, Ordering};

        loom::lazy_static! {
            static ref RETURNS: AtomicUsize = AtomicUsize::new(0);
        }
        pub fn set_returns(table: *const u64) {
            RETURNS.store(table as usize, Ordering::Release);
        }
        /// As a time slice begins.
        pub fn returns() -> *const u64 {
            RETURNS.load(Ordering::Acquire) as *const u64
        }
    }
}
#[path = "../../runtime/src/compiled/returns.rs"]
#[allow(dead_code)]
mod table;

/// Loom's, with a look at who reads what is freed: loom sees no reads of memory that has gone.
mod sync {
    pub use purlin_models::sync::*;
    use std::sync::Mutex as Plain;

    /// The tables that threads read.
    static READ: Plain<Vec<usize>> = Plain::new(Vec::new());

    /// A thread reads a table until the value is dropped.
    pub struct Reads(pub usize);
    impl Reads {
        pub fn new(table: *const u64) -> Reads {
            READ.lock().expect("no panic").push(table as usize);
            Reads(table as usize)
        }
    }
    impl Drop for Reads {
        fn drop(&mut self) {
            let mut all = READ.lock().unwrap_or_else(|e| e.into_inner());
            let at = all.iter().position(|&t| t == self.0);
            at.map(|k| all.swap_remove(k));
        }
    }

    #[derive(Default)]
    pub struct AtomicU64(purlin_models::sync::AtomicU64);
    impl AtomicU64 {
        pub fn new(n: u64) -> AtomicU64 {
            AtomicU64(purlin_models::sync::AtomicU64::new(n))
        }
        pub fn load(&self, o: Ordering) -> u64 {
            self.0.load(o)
        }
        pub fn store(&self, n: u64, o: Ordering) {
            self.0.store(n, o);
        }
    }
    impl Drop for AtomicU64 {
        fn drop(&mut self) {
            // The first word of a table is where the table is.
            let at = &raw const *self as usize;
            let read = READ.lock().is_ok_and(|all| all.contains(&at));
            assert!(
                !read || std::thread::panicking(),
                "a table is freed that is read"
            );
        }
    }
}

use code::compiled;
use code::epochs::{enter, epochs, leave};
use loom::sync::Arc;
use loom::thread;
use purlin_models::explore;
use std::sync::Arc as Plain;
use sync::{AtomicUsize, Ordering, Reads};
use table::Returns;

/// States of machine code.
const NOT_WRITTEN: usize = 0;
const WRITTEN: usize = 1;
const FREED: usize = 2;

/// Pieces of machine code, whose addresses are their numbers from 1.
struct Codes([AtomicUsize; 3]);

impl Codes {
    fn new() -> Arc<Codes> {
        Arc::new(Codes(std::array::from_fn(|_| {
            AtomicUsize::new(NOT_WRITTEN)
        })))
    }
    fn set(&self, address: u64, state: usize) {
        self.0[address as usize - 1].store(state, Ordering::Relaxed);
    }
    fn runs(&self, address: u64) {
        let state = self.0[address as usize - 1].load(Ordering::Relaxed);
        assert_eq!(state, WRITTEN, "code runs that is not there");
    }
}

/// Addresses of bytecode that begin at the same slot of a table of two.
fn clashing(n: usize) -> Vec<u64> {
    let first = returns::place(8) & 1;
    let same = (1..)
        .map(|k| 8 * k)
        .filter(|&pc| returns::place(pc) & 1 == first);
    same.take(n).collect()
}

/// Time slices of a thread that looks an address up in each; whether it has found it in all.
fn slices(codes: &Codes, word: &Plain<AtomicUsize>, pc: u64, n: usize) -> bool {
    let mut all = true;
    for _ in 0..n {
        enter(word);
        let table = compiled::returns();
        let reads = Reads::new(table);
        // SAFETY: the table that is published in this slice.
        match unsafe { returns::find(table, pc) } {
            Some(address) => codes.runs(address),
            None => all = false,
        }
        drop(reads);
        leave(word);
    }
    all
}

/// Waits until nobody runs what was there before.
fn passes() {
    let mut since = epochs().since();
    while !since.passed() {
        thread::yield_now();
    }
}

/// Machine code is taken back and freed, and other code takes its place.
#[test]
fn code_that_is_found_is_there() {
    explore("code that is found is there", Some(3), || {
        let codes = Codes::new();
        let word = Plain::new(AtomicUsize::new(0));
        let _member = epochs().join(&word);
        let mut r = Returns::new(4);
        codes.set(1, WRITTEN);
        r.set(8, 1);
        let other = codes.clone();
        let t = thread::spawn(move || slices(&other, &word, 8, 2));
        r.remove(8);
        codes.set(2, WRITTEN);
        r.set(8, 2);
        passes();
        codes.set(1, FREED);
        t.join().expect("runs");
    });
}

/// The table grows twice, past addresses that begin at one slot, and former ones are freed.
#[test]
fn a_table_may_be_replaced() {
    explore("a table may be replaced", Some(3), || {
        let codes = Codes::new();
        let word = Plain::new(AtomicUsize::new(0));
        let _member = epochs().join(&word);
        let pcs = clashing(3);
        let mut r = Returns::new(2);
        codes.set(1, WRITTEN);
        r.set(pcs[0], 1);
        let (other, pc) = (codes.clone(), pcs[0]);
        let t = thread::spawn(move || {
            assert!(slices(&other, &word, pc, 2), "what stays is always found");
        });
        for (k, &pc) in pcs.iter().enumerate().skip(1) {
            codes.set(k as u64 + 1, WRITTEN);
            r.set(pc, k as u64 + 1);
            r.tidy();
        }
        passes();
        r.tidy();
        t.join().expect("runs");
    });
}

/// An address is looked for that is published meanwhile.
#[test]
fn what_is_published_is_whole() {
    explore("what is published is whole", Some(3), || {
        let codes = Codes::new();
        let word = Plain::new(AtomicUsize::new(0));
        let _member = epochs().join(&word);
        let pcs = clashing(2);
        let mut r = Returns::new(8);
        codes.set(1, WRITTEN);
        r.set(pcs[0], 1);
        let (other, pc) = (codes.clone(), pcs[1]);
        let t = thread::spawn(move || slices(&other, &word, pc, 2));
        codes.set(2, WRITTEN);
        r.set(pcs[1], 2);
        r.remove(pcs[0]);
        t.join().expect("runs");
    });
}
