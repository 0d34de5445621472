//! The explorer with a kernel of two processes that only count.

use super::*;
use crate::kernel::{Forked, Limits};
use crate::log::Playback;
use crate::operation::{Effects, Operation as Kind_};
use crate::recording::Variable;
use std::fs::File;
use std::io::{Error, Result};
use std::sync::atomic::{AtomicI64, Ordering};

/// A kernel with one process in each cell, whose number is that of the cell.
struct Counting {
    now: AtomicI64,
}

impl Kernel for Counting {
    fn now(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }
    fn next_timer(&self) -> i64 {
        i64::MAX
    }
    fn jump(&self, to: i64) {
        self.now.fetch_max(to, Ordering::Relaxed);
    }
    fn process(&self, cell: u32) -> (u32, u32) {
        (cell, cell)
    }
    fn is_free(&self, _: u32) -> bool {
        false
    }
    fn object(&self, process: u32) -> u64 {
        process.into()
    }
    fn pid(&self, process: u32) -> String {
        format!("<0.{process}.0>")
    }
    fn hold_back(&self, _: u32) {}
    fn done(&self, _: u32, _: &Touch) {}
}

/// A system that has no processes: nothing here forks.
struct Nothing;

impl System for Nothing {
    fn memory_file(&self) -> Result<File> {
        Err(Error::other("no files"))
    }
    fn fork(&self, _: Limits, _: &File) -> Result<Forked> {
        Err(Error::other("no processes"))
    }
    fn count_calls(&self) {}
    fn wait(&self, _: i32) -> i32 {
        0
    }
    fn try_wait(&self, _: i32) -> Option<i32> {
        None
    }
    fn is_endless(&self, _: i32) -> bool {
        false
    }
    fn is_timeout(&self, _: i32) -> bool {
        false
    }
    fn empty_input(&self) -> bool {
        false
    }
    fn handle_stops(&self) {}
    fn progress(&self, _: usize, _: bool) {}
    fn say(&self, text: &str) {
        panic!("{text}")
    }
    fn exit(&self, status: i32) -> ! {
        panic!("exits with {status}")
    }
    fn note_modules(&self, _: File) {}
    fn prepare_modules(&self, _: File) {}
    fn prepared_atoms(&self) -> Vec<String> {
        Vec::new()
    }
    fn make_atoms(&self, _: &[String]) {}
    fn program_path(&self) -> Option<String> {
        None
    }
    fn begin_recording(&self, _: Option<File>) {}
    fn variables_read(&self) -> Vec<Variable> {
        Vec::new()
    }
    fn set_variables(&self, _: &[Variable]) {}
    fn is_logging(&self) -> bool {
        false
    }
    fn begin_replay(&self, _: Playback, _: Option<String>) {}
}

/// A write of the program to one shared thing.
struct Write;

const THING: u64 = 77;

impl Operation for Write {
    fn name(&self) -> Arc<str> {
        "m:write/1".into()
    }
    fn is_receive(&self) -> bool {
        false
    }
    fn place(&self) -> usize {
        1
    }
    fn touch(&mut self) -> Touch {
        Touch {
            operation: Kind_::native("m:write/1"),
            object: THING,
            key: 0,
            changes: true,
            effects: Effects::default(),
        }
    }
    fn owner(&mut self, _: bool) -> (bool, bool) {
        (true, true)
    }
    fn begins_program(&mut self) -> bool {
        false
    }
    fn compiles(&mut self) -> bool {
        false
    }
    fn is_within(&mut self, _: &Function) -> bool {
        false
    }
    fn runs_tests(&mut self) -> bool {
        false
    }
    fn outside(&mut self) -> Option<account::Kind> {
        None
    }
    fn sets_variable(&self) -> bool {
        false
    }
    fn role(&mut self) -> Option<String> {
        None
    }
    fn line(&mut self, (path, op): Point, touch: Touch) -> Line {
        Line {
            path,
            op,
            touch,
            pid: "<0.1.0>".into(),
            call: "m:write(a)".into(),
            place: None,
            stopped: None,
            at: 0,
            happens: false,
            name: None,
        }
    }
}

/// Operations of each process.
const EACH: usize = 3;

fn explorer() -> Explorer {
    let kernel = Box::leak(Box::new(Counting {
        now: AtomicI64::new(0),
    }));
    let mut x = Explorer::new(kernel, &Nothing, 0);
    let programs = [1, 2].map(|id| mix(1, id));
    x.turns.programs.extend(programs);
    x
}

/// Returns the point of an operation of a process, from 1.
fn point(process: u32, op: u32) -> Point {
    (mix(1, process.into()), OWN + op)
}

/// Runs both processes to their ends: the order of their operations, by process.
fn order(x: &mut Explorer) -> Vec<u32> {
    let mut left = [0, EACH, EACH];
    let mut all = Vec::new();
    x.ready(1, false);
    x.ready(2, false);
    while left != [0; 3] {
        let Some((cell, _)) = x.next_process() else {
            if !x.release_last() {
                let t = x.next_release().expect("somebody stalls");
                x.kernel.jump(t);
            }
            continue;
        };
        let n = &mut left[cell as usize];
        let mut stopped = false;
        while *n > 0 && !stopped {
            stopped = x.before(cell, &mut Write);
            if !stopped {
                *n -= 1;
                all.push(cell);
            }
        }
        x.ran(cell, !stopped, false);
        if stopped {
            x.ready(cell, false);
        }
    }
    all
}

#[test]
fn the_base_runs_processes_in_turn() {
    let mut x = explorer();
    assert_eq!(order(&mut x), [1, 1, 1, 2, 2, 2]);
    let run = x.run(0, Stuck::No);
    assert_eq!((run.ops, run.taken), (6, 0));
}

#[test]
fn a_process_stops_at_its_deviation() {
    for kind in [Kind::Last, Kind::Stall(5)] {
        let mut x = explorer();
        x.set_schedule(&[Deviation::at(point(1, 2), kind)]);
        assert_eq!(order(&mut x), [1, 2, 2, 2, 1, 1], "{kind:?}");
        assert_eq!(x.run(0, Stuck::No).taken, 1);
    }
}

#[test]
fn a_process_waits_for_an_operation_and_then_has_the_next_turn() {
    let mut x = explorer();
    let (path, op) = point(2, 1);
    x.set_schedule(&[Deviation::at(point(1, 2), Kind::After(path, op))]);
    assert_eq!(order(&mut x), [1, 2, 1, 1, 2, 2]);
}

/// An operation that was already done is not waited for.
#[test]
fn a_process_does_not_wait_for_an_operation_that_is_over() {
    let mut x = explorer();
    let (path, op) = point(2, 1);
    let after = |n| Deviation::at(point(1, n), Kind::After(path, op));
    x.set_schedule(&[after(2), after(3)]);
    assert_eq!(order(&mut x), [1, 2, 1, 1, 2, 2]);
    assert_eq!(x.run(0, Stuck::No).taken, 2);
}

#[test]
fn a_sampled_order_follows_from_its_seed() {
    let mut orders = BTreeSet::new();
    for seed in 0..20 {
        let sampled = || {
            let mut x = explorer();
            let kind = Kind::Sample(crate::deviation::Sampling::Walk, seed);
            x.set_schedule(&[Deviation::at(point(1, 1), kind)]);
            let order = order(&mut x);
            let points = x.course.sampling.take().expect("a sampler").order;
            (order, points)
        };
        let (all, points) = sampled();
        assert_eq!(sampled(), (all.clone(), points.clone()));
        // The sampler has noted what it picked: all but the operation at which it began.
        let process = |p: &Point| if p.0 == mix(1, 1) { 1 } else { 2 };
        let noted: Vec<u32> = points.iter().map(process).collect();
        assert_eq!(noted, all[1..]);
        orders.insert(all);
    }
    assert!(orders.len() > 5, "{orders:?}");
}

#[test]
fn a_replay_is_held_against_its_steps() {
    let mut x = explorer();
    x.set_steps(None);
    order(&mut x);
    let Steps::Noted(steps) = std::mem::take(&mut x.notes.steps) else {
        panic!("no steps");
    };
    assert_eq!(steps.len(), 2 * EACH);
    let mut same = explorer();
    same.set_steps(Some(steps.clone()));
    order(&mut same);
    assert_eq!(same.notes.differs, None);
    let mut other = explorer();
    // An operation counts when a process reaches it, even if it stops there.
    other.set_steps(Some(steps));
    other.set_schedule(&[Deviation::at(point(1, 2), Kind::Last)]);
    order(&mut other);
    let differs = other.notes.differs.expect("it differs");
    assert!(
        differs.starts_with("at operation 3: expected m:write/1"),
        "{differs}"
    );
}
