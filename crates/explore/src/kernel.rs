//! The interface between the explorer and the runtime system that it explores.
//!
//! The kernel calls the [`Explorer`](crate::Explorer): before an operation, when a process becomes
//! ready or ends, when time passes, and at the end. The explorer calls the kernel back by these
//! traits: [`Kernel`] is the emulator that runs, [`Operation`] is what one of its processes is
//! about to do, and [`System`] is what the operating system does for a search.
//!
//! # Invariants
//! * Everything is called by one thread.
//! * No method of these traits calls the explorer.
//! * A process is named by the index of its cell while it lives, and by its number in texts and
//!   messages.

use crate::account::Kind;
use crate::log::Playback;
use crate::operation::{Point, Touch};
use crate::recording::Variable;
use crate::story::Line;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// The emulator that runs.
pub trait Kernel: Sync {
    /// Returns the virtual time, in nanoseconds since the start.
    fn now(&self) -> i64;

    /// Returns the time at which the next known timer is due.
    fn next_timer(&self) -> i64;

    /// Moves the clock forward to that time.
    fn jump(&self, to: i64);

    /// Returns the number of the process in a cell, and that of its parent.
    fn process(&self, cell: u32) -> (u32, u32);

    /// Whether no process is in a cell.
    fn is_free(&self, cell: u32) -> bool;

    /// Returns a process as operations on it name it: see [`Touch::object`].
    fn object(&self, process: u32) -> u64;

    /// Returns the pid of a process, as it is printed.
    fn pid(&self, process: u32) -> String;

    /// Holds the message back that the process sends next.
    fn hold_back(&self, process: u32);

    /// Notes that a process did an operation: messages that were held back for it become due.
    fn done(&self, process: u32, touch: &Touch);
}

/// A function: module, name, arity.
pub type Function = (String, String, u32);

/// The operation that a process is about to do.
pub trait Operation {
    /// Returns its name: see [`crate::steps`].
    fn name(&self) -> Arc<str>;

    /// Whether the process waits for a message for a limited time. If it stops there it looks for
    /// messages again when it continues.
    fn is_receive(&self) -> bool;

    /// Returns its place in the code, which is only compared with other places.
    fn place(&self) -> usize;

    /// Returns what it touches.
    fn touch(&mut self) -> Touch;

    /// Whether the program does it, and whether code of the program is on the stack. `program`:
    /// whether the process belongs to the program.
    fn owner(&mut self, program: bool) -> (bool, bool);

    /// Whether it makes a process that belongs to the program, whichever process makes it.
    fn begins_program(&mut self) -> bool;

    /// Whether code is compiled or loaded on the stack.
    fn compiles(&mut self) -> bool;

    /// Whether that function is on the stack.
    fn is_within(&mut self, function: &Function) -> bool;

    /// Whether a test runner runs tests on the stack.
    fn runs_tests(&mut self) -> bool;

    /// Returns its kind, if no seed decides its result.
    fn outside(&mut self) -> Option<Kind>;

    /// Whether it sets or removes an environment variable: the key that it touches.
    fn sets_variable(&self) -> bool;

    /// Describes the process that it makes.
    fn role(&mut self) -> Option<String>;

    /// Returns its line in the story.
    fn line(&mut self, at: Point, touch: Touch) -> Line;
}

/// The time that a run may take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Seconds of processor time; 0 for no limit.
    pub processor: u32,
    /// Real time; None for no limit.
    pub real: Option<Duration>,
}

/// The result of a fork.
pub enum Forked {
    /// This process is the parent of that one.
    Parent(i32),
    /// This process is the child.
    Child,
}

/// The operating system, and the parts of the emulator that know terms, as a search uses them.
pub trait System: Sync {
    /// Makes a file in memory.
    fn memory_file(&self) -> std::io::Result<File>;

    /// Forks this process. The output of the child goes to that file, and the child is ended when
    /// it exceeds its limits, or when its parent ends.
    fn fork(&self, limits: Limits, output: &File) -> std::io::Result<Forked>;

    /// Waits for the end of a child: its exit status, or minus the signal that ended it.
    fn wait(&self, child: i32) -> i32;

    /// Does what [`System::wait`] does, if the child has ended.
    fn try_wait(&self, child: i32) -> Option<i32>;

    /// Whether that status is one of a run that exceeded its limits.
    fn is_endless(&self, status: i32) -> bool;

    /// Whether that status is one of a run that exceeded its real time.
    fn is_timeout(&self, status: i32) -> bool;

    /// Empties standard input. Whether something was given there, or could have been.
    fn empty_input(&self) -> bool;

    /// Prints how far the search came if the user stops it. See [`System::progress`].
    fn handle_stops(&self);

    /// Notes the number of schedules that were tried, and whether one of them failed and was not
    /// reported yet.
    fn progress(&self, schedules: usize, found: bool);

    /// Writes a message for people.
    fn say(&self, text: &str);

    /// Ends this process at once.
    fn exit(&self, status: i32) -> !;

    /// Writes the modules that this run loads to that file.
    fn note_modules(&self, to: File);

    /// Prepares the modules that a run has noted, for all runs to come.
    fn prepare_modules(&self, noted: File);

    /// Returns the atoms that prepared modules made, in order.
    fn prepared_atoms(&self) -> Vec<String>;

    /// Makes these atoms, in order.
    fn make_atoms(&self, atoms: &[String]);

    /// Returns the path on which programs are looked for.
    fn program_path(&self) -> Option<String>;

    /// Begins to record what comes from outside in that file, and which environment variables are
    /// read.
    fn begin_recording(&self, to: Option<File>);

    /// Returns the environment variables that this run has read, as they were when it began.
    fn variables_read(&self) -> Vec<Variable>;

    /// Sets environment variables as a recorded run had them.
    fn set_variables(&self, all: &[Variable]);

    /// Counts the program's system calls from here on: see [`crate::Explorer::call`].
    fn count_calls(&self);

    /// Whether this run records or replays.
    fn is_logging(&self) -> bool;

    /// Begins to answer from a log. `path`: the recorded path of programs.
    fn begin_replay(&self, log: Playback, path: Option<String>);
}
