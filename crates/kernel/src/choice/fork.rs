//! Runs of the program as forks of one emulator: the base, schedules that leave it, and what has come of them.
//!
//! The emulator that is started is the *root*: it runs no process. It forks a run of the base, which notes its operations; from these
//! the [plan](super::plan) makes schedules. A *trunk* is one more run of the base: at each operation where some schedules begin to
//! deviate it forks a *branch* for each, which goes on to the end by itself. So what a schedule has in common with the base is run
//! once for many. A run writes what came of it to a file in memory that its parent has made, and its output to another.

use super::plan::{Plan, Schedule, Shrink, Strategy};
use super::{Deviation, Kind, Op, Run, ops::Touch, profile, report, run, set_deviations, story};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The settings of a search.
#[derive(Clone, Debug)]
pub struct Search {
    /// Schedules at most.
    pub schedules: usize,
    /// Time at most.
    pub time: Option<Duration>,
    /// Where numbers at random begin.
    pub seed: u64,
    pub strategy: Strategy,
    /// Nanoseconds of the longest stall; 0: none.
    pub stall: i64,
    /// Branches at a time.
    pub jobs: usize,
    /// Where a failing schedule is written; None: `purlin-schedule-SEED.psch`.
    pub to: Option<PathBuf>,
    /// The result as JSON on standard output.
    pub json: bool,
    /// Fails where a run is not decided by its seed.
    pub strict: bool,
    /// The command line, for the file.
    pub command: Vec<String>,
    /// The release of OTP, for the file.
    pub release: u32,
}

/// A schedule from a file, which is repeated.
#[derive(Clone, Debug)]
pub struct Replay {
    pub schedule: Schedule,
    pub status: i32,
    pub hash: u64,
    /// Its operations are told at the end.
    pub steps: bool,
}

/// The role of this process.
enum Role {
    /// It forks runs, and runs nothing.
    Root,
    /// It runs the base, and notes its operations.
    Base(OwnedFd),
    Trunk(Trunk),
    /// It runs a schedule.
    Branch(OwnedFd),
    Replay(Replay),
}

struct Trunk {
    to: OwnedFd,
    /// By operation: the schedules that begin to deviate there, with their numbers.
    begin: HashMap<(u64, u32), Vec<(usize, Schedule)>>,
    running: Vec<(usize, Child)>,
    done: Vec<(usize, Outcome)>,
    jobs: usize,
    seconds: u32,
}

static ROLE: Mutex<Role> = Mutex::new(Role::Root);

/// The outcome of a schedule.
#[derive(Clone, Debug)]
enum Outcome {
    Ended(Run),
    /// By a signal, or without a word.
    Died(i32),
}

impl Outcome {
    fn fails(&self) -> bool {
        !matches!(self, Outcome::Ended(r) if r.status == 0 && !r.deadlock)
    }
    fn text(&self) -> String {
        match self {
            Outcome::Ended(r) => format!(
                "ended {} {} {} {} {} {}",
                r.status,
                u8::from(r.deadlock),
                r.hash,
                r.ops,
                r.took,
                r.taken
            ),
            Outcome::Died(s) => format!("died {s}"),
        }
    }
    fn of(text: &str) -> Option<Outcome> {
        let mut w = text.split(' ');
        match w.next()? {
            "ended" => Some(Outcome::Ended(Run {
                status: w.next()?.parse().ok()?,
                deadlock: w.next()? == "1",
                hash: w.next()?.parse().ok()?,
                ops: w.next()?.parse().ok()?,
                took: w.next()?.parse().ok()?,
                taken: w.next()?.parse().ok()?,
            })),
            "died" => Some(Outcome::Died(w.next()?.parse().ok()?)),
            _ => None,
        }
    }
}

/// A run under way.
struct Child {
    pid: libc::pid_t,
    report: File,
    output: File,
}

/// A file in memory.
fn memory_file() -> Option<File> {
    // SAFETY: a name, and a descriptor that is ours.
    unsafe {
        let fd = libc::memfd_create(c"schedule".as_ptr(), libc::MFD_CLOEXEC);
        (fd >= 0).then(|| File::from(OwnedFd::from_raw_fd(fd)))
    }
}

/// Forks. In the child: where it reports to; its output goes to a file of its own.
fn fork(seconds: u32) -> Result<Child, OwnedFd> {
    let (Some(report), Some(output)) = (memory_file(), memory_file()) else {
        cannot("make a file in memory");
    };
    // SAFETY: this is the only thread. What the child has to itself afterwards is memory; descriptors are shared.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => cannot("fork"),
        0 => {
            // SAFETY: plain calls on open descriptors.
            unsafe {
                libc::dup2(output.as_raw_fd(), 1);
                libc::dup2(output.as_raw_fd(), 2);
                // A run that doesn't end is ended.
                libc::signal(libc::SIGALRM, libc::SIG_DFL);
                libc::alarm(seconds);
            }
            crate::poll::after_fork();
            Err(report.into())
        }
        pid => Ok(Child {
            pid,
            report,
            output,
        }),
    }
}

fn cannot(what: &str) -> ! {
    let e = std::io::Error::last_os_error();
    crate::report::to_stderr(&format!("purlin: schedules: cannot {what}: {e}\n"));
    // SAFETY: no return.
    unsafe { libc::_exit(71) }
}

fn text_of(mut f: &File) -> String {
    let mut v = Vec::new();
    let _ = f.seek(SeekFrom::Start(0));
    let _ = f.read_to_end(&mut v);
    String::from_utf8_lossy(&v).into_owned()
}

impl Child {
    /// Waits for its end: its exit status or minus the signal, its report.
    fn wait(self) -> (i32, String, String) {
        let mut status = 0;
        // SAFETY: a child of this process.
        while unsafe { libc::waitpid(self.pid, &mut status, 0) } < 0
            && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
        {}
        let code = match libc::WIFEXITED(status) {
            true => libc::WEXITSTATUS(status),
            false => -libc::WTERMSIG(status),
        };
        (code, text_of(&self.report), text_of(&self.output))
    }
    fn outcome(self) -> Outcome {
        let (code, report, _) = self.wait();
        let first = report.lines().next().and_then(Outcome::of);
        first.unwrap_or(Outcome::Died(code))
    }
}

fn role() -> std::sync::MutexGuard<'static, Role> {
    ROLE.lock().unwrap_or_else(|e| e.into_inner())
}

/// The process is about to do operation `op`: a trunk forks the schedules that begin there. In these: what happens.
pub(super) fn at(path: u64, op: u32) -> Option<Kind> {
    let mut r = role();
    let Role::Trunk(t) = &mut *r else { return None };
    let begin = t.begin.remove(&(path, op))?;
    for (number, schedule) in begin {
        while t.running.len() >= t.jobs.max(1) {
            let (n, c) = t.running.remove(0);
            t.done.push((n, c.outcome()));
        }
        match fork(t.seconds) {
            Ok(c) => t.running.push((number, c)),
            Err(to) => {
                *r = Role::Branch(to);
                drop(r);
                let kind = schedule.first().map(|d| d.kind);
                set_deviations(&schedule[1..]);
                return kind;
            }
        }
    }
    None
}

fn write_all(to: OwnedFd, text: &str) {
    let _ = File::from(to).write_all(text.as_bytes());
}

/// This run ends with `status`: it reports.
pub(super) fn ended(status: i32, deadlock: bool) {
    let mut r = role();
    match std::mem::replace(&mut *r, Role::Root) {
        Role::Root => {}
        Role::Base(to) => {
            let mut text = Outcome::Ended(run(status, deadlock)).text();
            text.push('\n');
            for o in profile() {
                let t = o.touch;
                let _ = writeln!(
                    text,
                    "{} {} {} {} {} {} {}",
                    o.path,
                    o.op,
                    t.native,
                    t.object,
                    t.key,
                    u8::from(t.changes),
                    u8::from(o.own)
                );
            }
            write_all(to, &text);
        }
        Role::Trunk(t) => {
            let mut done = t.done;
            for (n, c) in t.running {
                done.push((n, c.outcome()));
            }
            let mut text = Outcome::Ended(run(status, deadlock)).text();
            text.push('\n');
            for (n, o) in done {
                let _ = writeln!(text, "{n} {}", o.text());
            }
            write_all(t.to, &text);
        }
        Role::Branch(to) => {
            let mut text = Outcome::Ended(run(status, deadlock)).text();
            text.push('\n');
            text.push_str(&lines(&story()));
            write_all(to, &text);
        }
        Role::Replay(p) => {
            let now = run(status, deadlock);
            if p.steps {
                crate::report::to_stderr(&lines(&story()));
            }
            let same = now.hash == p.hash && now.status == p.status;
            let text = match same {
                true => format!(
                    "purlin: replayed: {} operations, status {status}, as recorded\n",
                    now.ops
                ),
                false => format!(
                    "purlin: the replay went another way: status {status}, recorded {}; {} of {} deviations were met\n",
                    p.status,
                    now.taken,
                    p.schedule.len()
                ),
            };
            crate::report::to_stderr(&text);
            if !same {
                // SAFETY: no return; this is the only thread.
                unsafe { libc::_exit(4) }
            }
        }
    }
}

/// Operations as text, each a line.
fn lines(all: &[report::Line]) -> String {
    let mut text = String::new();
    for l in all {
        let stopped = match l.stopped {
            None => String::new(),
            Some(Kind::Last) => " stop".into(),
            Some(Kind::Stall(ns)) => format!(" stall:{ns}"),
        };
        let _ = writeln!(
            text,
            "{}\t{}\t{} {} {}\t{}\t{}\t{}\t{stopped}",
            l.path,
            l.op,
            l.touch.object,
            l.touch.key,
            u8::from(l.touch.changes),
            l.pid,
            l.call.replace(['\t', '\n'], " "),
            l.place.as_deref().unwrap_or("").replace(['\t', '\n'], " "),
        );
    }
    text
}

/// One run of the base that ends; the modules that it loads are prepared for those that follow. False: this process is that run.
fn discover() -> bool {
    let Some(notes) = memory_file() else {
        cannot("make a file in memory");
    };
    match fork(600) {
        Ok(c) => {
            c.wait();
            super::modules::make(notes);
            true
        }
        Err(to) => {
            super::modules::note_in(notes);
            *role() = Role::Branch(to);
            false
        }
    }
}

/// Standard input is nobody's.
fn no_input() {
    // SAFETY: plain calls.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
        if null >= 0 {
            libc::dup2(null, 0);
            libc::close(null);
        }
    }
}

/// Repeats a schedule in this process.
pub fn replay(p: Replay) {
    no_input();
    if !discover() {
        return;
    }
    set_deviations(&p.schedule);
    if p.steps {
        super::set_story();
    }
    *role() = Role::Replay(p);
}

/// The schedules that have been tried.
#[derive(Default)]
struct Tried {
    schedules: usize,
    hashes: HashSet<u64>,
    took: i64,
}

/// Searches for a schedule that fails. Comes back in a run of the program, which then is run; the root ends with the emulator's exit
/// status: 0 where none failed, 1 where one has, 5 where a run is not decided by its seed and that was asked for.
pub fn search(s: &Search) {
    no_input();
    if !discover() {
        return;
    }
    let began = Instant::now();
    let mut bases = Vec::new();
    for i in 0..2 {
        match fork(600) {
            Ok(c) => bases.push(c.wait()),
            Err(to) => {
                *role() = Role::Base(to);
                super::set_profile();
                return;
            }
        }
        if i == 0
            && !matches!(
                bases[0].1.lines().next().and_then(Outcome::of),
                Some(Outcome::Ended(_))
            )
        {
            break;
        }
    }
    let first = |b: &(i32, String, String)| b.1.lines().next().and_then(Outcome::of);
    let Some(Outcome::Ended(base)) = first(&bases[0]) else {
        say(&bases[0].2);
        say(&format!(
            "purlin: schedules: the program ended by itself in no time that could be waited for ({})\n",
            bases[0].0
        ));
        exit(71)
    };
    let seconds = (base_seconds(began) * 20.0) as u32 + 10;
    let decided = matches!(first(&bases[1]), Some(Outcome::Ended(b)) if b.hash == base.hash);
    if !decided {
        say(
            "purlin: schedules: two runs of the base differ: not all that the program depends on is decided by the seed\n",
        );
        if s.strict {
            exit(5)
        }
    }
    let ops: Vec<Op> = bases[0].1.lines().skip(1).filter_map(op_of).collect();
    let mut tried = Tried::default();
    tried.schedules += 1;
    tried.hashes.insert(base.hash);
    tried.took += base.took;
    if base.status != 0 || base.deadlock {
        let failed = Failed {
            schedule: Vec::new(),
            before: 0,
            run: base,
        };
        let Some((run, story, output)) = once(&failed.schedule, seconds) else {
            return;
        };
        return tell(s, &tried, began, failed, run, &story, &output, None);
    }
    let base_ops = (base.hash, base.ops);
    let mut plan = Plan::new(&ops, s.strategy, s.stall, s.seed);
    let places = plan.places();
    let mut found: Option<(Schedule, Run)> = None;
    while tried.schedules < s.schedules && s.time.is_none_or(|t| began.elapsed() < t) {
        let batch = plan.batch(s.schedules - tried.schedules);
        if batch.is_empty() {
            break;
        }
        let Some(outcomes) = trunk(&batch, s.jobs, seconds) else {
            return;
        };
        for (schedule, o) in batch.into_iter().zip(outcomes) {
            let Some(o) = o else { continue };
            if found.is_some() {
                continue;
            }
            tried.schedules += 1;
            match &o {
                Outcome::Ended(r) => {
                    tried.hashes.insert(r.hash);
                    tried.took += r.took;
                    if o.fails() {
                        found = Some((schedule, r.clone()));
                    }
                }
                Outcome::Died(status) => {
                    let r = Run {
                        status: *status,
                        ..Run::default()
                    };
                    found = Some((schedule, r));
                }
            }
        }
        if found.is_some() {
            break;
        }
    }
    let Some((schedule, run)) = found else {
        let text = format!(
            "{} schedules ({} distinct), {:.1} s, {:.1} s of virtual time: none failed\n{} operations of the base, {} at which schedules deviate, {} of them race\n",
            tried.schedules,
            tried.hashes.len(),
            began.elapsed().as_secs_f64(),
            tried.took as f64 / 1e9,
            base_ops.1,
            places.1,
            places.0
        );
        match s.json {
            true => print(&format!(
                "{{\"failed\":false,\"schedules\":{},\"distinct\":{},\"seconds\":{:.3},\"virtual_seconds\":{:.3},\"operations\":{},\"racing\":{}}}\n",
                tried.schedules,
                tried.hashes.len(),
                began.elapsed().as_secs_f64(),
                tried.took as f64 / 1e9,
                base_ops.1,
                places.0
            )),
            false => print(&text),
        }
        exit(0)
    };
    let before = schedule.len();
    let mut shrink = Shrink::new(schedule);
    let mut forks = 0;
    for _ in 0..12 {
        let candidates = shrink.candidates();
        if candidates.is_empty() || forks > 300 {
            break;
        }
        forks += candidates.len();
        let Some(outcomes) = trunk(&candidates, s.jobs, seconds) else {
            return;
        };
        let fails: Vec<bool> = outcomes
            .iter()
            .map(|o| o.as_ref().is_some_and(|o| o.fails()))
            .collect();
        shrink.tell(candidates, &fails);
    }
    let failed = Failed {
        schedule: shrink.best().clone(),
        before,
        run,
    };
    let Some((run, story, output)) = once(&failed.schedule, seconds) else {
        return;
    };
    let margin = failed.schedule.iter().find_map(|d| match d.kind {
        Kind::Stall(ns) => Some(ns),
        Kind::Last => None,
    });
    tell(s, &tried, began, failed, run, &story, &output, margin);
}

fn base_seconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() / 2.0
}

struct Failed {
    schedule: Schedule,
    /// Deviations before it was cut down.
    before: usize,
    run: Run,
}

fn op_of(line: &str) -> Option<Op> {
    let mut w = line.split(' ');
    Some(Op {
        path: w.next()?.parse().ok()?,
        op: w.next()?.parse().ok()?,
        touch: Touch {
            native: w.next()?.parse().ok()?,
            object: w.next()?.parse().ok()?,
            key: w.next()?.parse().ok()?,
            changes: w.next()? == "1",
        },
        own: w.next()? == "1",
    })
}

/// Runs these schedules, all of which begin in one run of the base. None: this process is one of the runs.
fn trunk(all: &[Schedule], jobs: usize, seconds: u32) -> Option<Vec<Option<Outcome>>> {
    match fork(0) {
        Err(to) => {
            let mut begin: HashMap<(u64, u32), Vec<(usize, Schedule)>> = HashMap::new();
            for (i, s) in all.iter().enumerate() {
                if let Some(d) = s.first() {
                    begin
                        .entry((d.path, d.op))
                        .or_default()
                        .push((i, s.clone()));
                }
            }
            *role() = Role::Trunk(Trunk {
                to,
                begin,
                running: Vec::new(),
                done: Vec::new(),
                jobs,
                seconds,
            });
            None
        }
        Ok(c) => {
            let (_, report, _) = c.wait();
            let mut outcomes: Vec<Option<Outcome>> = vec![None; all.len()];
            for line in report.lines().skip(1) {
                if let Some((n, o)) = line.split_once(' ')
                    && let (Ok(n), Some(o)) = (n.parse::<usize>(), Outcome::of(o))
                    && n < outcomes.len()
                {
                    outcomes[n] = Some(o);
                }
            }
            Some(outcomes)
        }
    }
}

/// Runs one schedule from the start and tells it: the run, its operations, its output. None: this process is the run.
fn once(schedule: &Schedule, seconds: u32) -> Option<(Run, String, String)> {
    match fork(seconds) {
        Err(to) => {
            *role() = Role::Branch(to);
            set_deviations(schedule);
            super::set_story();
            None
        }
        Ok(c) => {
            let (code, report, output) = c.wait();
            let run = match report.lines().next().and_then(Outcome::of) {
                Some(Outcome::Ended(r)) => r,
                _ => Run {
                    status: code,
                    ..Run::default()
                },
            };
            let story = report
                .split_once('\n')
                .map_or(String::new(), |(_, s)| s.to_owned());
            Some((run, story, output))
        }
    }
}

fn say(text: &str) {
    crate::report::to_stderr(text);
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn exit(status: i32) -> ! {
    // SAFETY: no return; this is the only thread.
    unsafe { libc::_exit(status) }
}

fn kind_text(k: Kind) -> String {
    match k {
        Kind::Last => "stop".into(),
        Kind::Stall(ns) => format!("stall {ns}"),
    }
}

/// The operations that a failure depends on: those of processes on what they share, from a little before the first deviation.
fn relevant(story: &str) -> Vec<Vec<&str>> {
    let all: Vec<Vec<&str>> = story
        .lines()
        .map(|l| l.split('\t').collect::<Vec<_>>())
        .filter(|f| f.len() >= 7)
        .collect();
    let object = |f: &[&str]| f[2].split(' ').next().unwrap_or("0").to_owned();
    let stopped: Vec<usize> = (0..all.len()).filter(|&i| !all[i][6].is_empty()).collect();
    let Some(&first) = stopped.first() else {
        return all.into_iter().rev().take(30).rev().collect();
    };
    let wanted: HashSet<String> = stopped
        .iter()
        .map(|&i| object(&all[i]))
        .filter(|o| o != "0")
        .collect();
    let paths: HashSet<&str> = stopped.iter().map(|&i| all[i][0]).collect();
    let from = first.saturating_sub(12);
    let mut v: Vec<Vec<&str>> = Vec::new();
    for f in all.iter().skip(from) {
        let shared = wanted.contains(&object(f));
        let own = !f[5].is_empty();
        if !f[6].is_empty() || shared || (own && (paths.contains(f[0]) || v.len() < 40)) {
            v.push(f.clone());
        }
        if v.len() > 60 {
            break;
        }
    }
    v
}

fn json_text(s: &str) -> String {
    let mut t = String::from("\"");
    for c in s.chars() {
        match c {
            '"' => t.push_str("\\\""),
            '\\' => t.push_str("\\\\"),
            c if (c as u32) < 0x20 => {
                let _ = write!(t, "\\u{:04x}", c as u32);
            }
            c => t.push(c),
        }
    }
    t.push('"');
    t
}

/// Writes the schedule to a file and tells of it; ends with status 1.
#[allow(clippy::too_many_arguments)]
fn tell(
    s: &Search,
    tried: &Tried,
    began: Instant,
    failed: Failed,
    run: Run,
    story: &str,
    output: &str,
    margin: Option<i64>,
) {
    let path =
        s.to.clone()
            .unwrap_or_else(|| PathBuf::from(format!("purlin-schedule-{}.psch", s.seed)));
    let mut file = String::from("purlin schedule 1\n");
    let _ = writeln!(file, "release {}", s.release);
    let _ = writeln!(file, "started {}", super::started());
    let _ = writeln!(file, "status {}", run.status);
    let _ = writeln!(file, "hash {}", run.hash);
    for a in &s.command {
        let _ = writeln!(file, "argument {}", json_text(a));
    }
    for d in &failed.schedule {
        let _ = writeln!(file, "deviation {} {} {}", d.path, d.op, kind_text(d.kind));
    }
    for l in relevant(story) {
        let _ = writeln!(file, "line {}", l.join("\t"));
    }
    let written = std::fs::write(&path, &file);
    if let Err(e) = &written {
        say(&format!("purlin: cannot write {}: {e}\n", path.display()));
    }
    let same = run.status == failed.run.status || failed.run.status < 0;
    if s.json {
        print(&format!(
            "{{\"failed\":true,\"schedules\":{},\"distinct\":{},\"seconds\":{:.3},\"virtual_seconds\":{:.3},\"status\":{},\"deadlock\":{},\"deviations\":{},\"before\":{},\"file\":{},\"output\":{}}}\n",
            tried.schedules,
            tried.hashes.len(),
            began.elapsed().as_secs_f64(),
            tried.took as f64 / 1e9,
            run.status,
            run.deadlock,
            failed.schedule.len(),
            failed.before,
            json_text(&path.display().to_string()),
            json_text(output)
        ));
        exit(1)
    }
    let mut text = format!(
        "{} schedules ({} distinct), {:.1} s, {:.1} s of virtual time; ",
        tried.schedules,
        tried.hashes.len(),
        began.elapsed().as_secs_f64(),
        tried.took as f64 / 1e9
    );
    match failed.schedule.is_empty() {
        true => {
            let _ = writeln!(text, "the base itself failed with status {}", run.status);
        }
        false => {
            let _ = writeln!(text, "failed with status {}", run.status);
            let _ = writeln!(
                text,
                "Shrunk from {} deviation{} to {}. Again: purlin replay {}",
                failed.before,
                if failed.before == 1 { "" } else { "s" },
                failed.schedule.len(),
                path.display()
            );
        }
    }
    if !same {
        text.push_str(
            "The schedule that was cut down ends otherwise than the one that was found.\n",
        );
    }
    text.push('\n');
    text.push_str(&told(&relevant(story)));
    if let Some(ns) = margin {
        let _ = writeln!(
            text,
            "\nIt fails if that process is late by {} ms.",
            (ns + 999_999) / 1_000_000
        );
    }
    if !output.is_empty() {
        let _ = writeln!(text, "\nIts output:");
        for l in output.lines().take(40) {
            let _ = writeln!(text, "  {l}");
        }
    }
    print(&text);
    exit(1)
}

/// The story of a schedule as text: lines of fields that are separated by tabs, as [`lines`] gives them.
pub fn told<S: AsRef<str>>(all: &[Vec<S>]) -> String {
    let mut text = String::new();
    let mut last = String::new();
    for f in all {
        let get = |i: usize| f.get(i).map_or("", |s| s.as_ref());
        let (pid, call, place, stop) = (get(3), get(4), get(5), get(6).trim());
        match stop {
            "" => {}
            "stop" => {
                let _ = writeln!(
                    text,
                    "  {:-<12} {pid} stops before {call}, until nobody else can run",
                    ""
                );
                last.clear();
                continue;
            }
            s => {
                let ns: i64 = s.trim_start_matches("stall:").parse().unwrap_or(0);
                let _ = writeln!(
                    text,
                    "  {:-<12} {pid} is late by {:.1} ms, before {call}",
                    "",
                    ns as f64 / 1e6
                );
                last.clear();
                continue;
            }
        }
        let shown = if pid == last { "" } else { pid };
        let _ = writeln!(text, "  {shown:<12} {call:<60}  {place}");
        last = pid.to_owned();
    }
    text
}

/// A file that was written by [`search`]: the replay, the moment of its start, the release, the command, and its story.
pub struct Recorded {
    pub replay: Replay,
    pub started: i64,
    pub release: u32,
    pub command: Vec<String>,
    pub story: Vec<Vec<String>>,
}

/// Reads a file of a schedule; None: it is none.
pub fn read(text: &str) -> Option<Recorded> {
    let mut lines = text.lines();
    if lines.next()? != "purlin schedule 1" {
        return None;
    }
    let mut r = Recorded {
        replay: Replay {
            schedule: Vec::new(),
            status: 0,
            hash: 0,
            steps: false,
        },
        started: 0,
        release: 0,
        command: Vec::new(),
        story: Vec::new(),
    };
    for l in lines {
        let (key, rest) = l.split_once(' ')?;
        match key {
            "release" => r.release = rest.parse().ok()?,
            "started" => r.started = rest.parse().ok()?,
            "status" => r.replay.status = rest.parse().ok()?,
            "hash" => r.replay.hash = rest.parse().ok()?,
            "argument" => r.command.push(from_json(rest)?),
            "deviation" => {
                let mut w = rest.split(' ');
                let (path, op) = (w.next()?.parse().ok()?, w.next()?.parse().ok()?);
                let kind = match w.next()? {
                    "stop" => Kind::Last,
                    "stall" => Kind::Stall(w.next()?.parse().ok()?),
                    _ => return None,
                };
                r.replay.schedule.push(Deviation { path, op, kind });
            }
            "line" => r.story.push(rest.split('\t').map(str::to_owned).collect()),
            _ => {}
        }
    }
    Some(r)
}

fn from_json(s: &str) -> Option<String> {
    let s = s.strip_prefix('"')?.strip_suffix('"')?;
    let mut t = String::new();
    let mut chars = s.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            t.push(c);
            continue;
        }
        match chars.next()? {
            'u' => {
                let hex: String = chars.by_ref().take(4).collect();
                t.push(char::from_u32(u32::from_str_radix(&hex, 16).ok()?)?);
            }
            c => t.push(c),
        }
    }
    Some(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_go_there_and_back() {
        for s in ["", "a b", "\"\\\n\t", "ä\u{1}"] {
            assert_eq!(from_json(&json_text(s)).as_deref(), Some(s));
        }
        let o = Outcome::Ended(Run {
            status: 2,
            deadlock: true,
            hash: 77,
            ops: 5,
            took: -1,
            taken: 3,
        });
        let back = Outcome::of(&o.text()).map(|o| o.text());
        assert_eq!(back, Some(o.text()));
    }
}
