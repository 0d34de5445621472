//! The notes of a run: the profile of the base, the story, the steps, the account.
//!
//! # Invariant
//! Notes never decide which process runs. A narrated run takes the same course as one of the
//! search.

use crate::account::Account;
use crate::failing::Call;
use crate::kernel::Function;
use crate::operation::Op;
use crate::processes::Processes;
use crate::steps::Steps;
use crate::story::Line;
use std::collections::HashSet;

/// See the module's head.
#[derive(Default)]
pub struct Notes {
    /// The operations, if this is a run of the base.
    pub profile: Option<Vec<Op>>,
    /// The function before whose first operation nothing is tried. None: it was called, or there is
    /// none.
    pub from: Option<Function>,
    /// Whether a test runner has begun its tests, as far as a profile shows it.
    pub tests: bool,
    /// The lines of the story, if this run is narrated.
    pub story: Option<Vec<Line>>,
    /// The processes of the story.
    pub processes: Processes,
    pub steps: Steps,
    /// Where the run differs first from the one that it is compared with.
    pub differs: Option<String>,
    pub account: Account,
    /// System calls of the program, each with its place, if they are wanted.
    pub calls: Option<Vec<(Call, String)>>,
    /// The place of the program's code that did the last operation of all.
    pub own_place: Option<String>,
    /// Environment variables that the run has set: their values follow from the seed.
    pub set_variables: HashSet<u64>,
}

impl Notes {
    /// Whether the story is written.
    pub fn narrates(&self) -> bool {
        self.story.is_some()
    }

    /// Whether the run distinguishes operations of the program from those of libraries.
    pub fn counts(&self) -> bool {
        self.profile.is_some() || self.story.is_some()
    }

    /// Whether the places of the program's code are wanted.
    pub fn wants_places(&self) -> bool {
        self.calls.is_some() && self.counts()
    }

    /// Adds a system call of the program.
    pub fn call(&mut self, call: Call) {
        let counts = self.profile.is_some();
        if let Some(calls) = self.calls.as_mut().filter(|_| counts) {
            calls.push((call, self.own_place.clone().unwrap_or_default()));
        }
    }

    /// Adds a line to the story, if there is one.
    pub fn tell(&mut self, line: Line) {
        let Some(story) = &mut self.story else { return };
        if line.happens && !self.processes.is_own(&line.pid) {
            return;
        }
        self.processes.line(&line);
        story.push(line);
    }
}
