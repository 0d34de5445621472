//! Runs of the program as forks of one emulator: the base, schedules that leave it, and what has come of them.
//!
//! The emulator that is started is the *root*: it runs no process. It forks a run of the base, which notes its operations; from these
//! the [plan](super::plan) makes schedules. A *trunk* is one more run of the base: at each operation where some schedules begin to
//! deviate it forks a *branch* for each, which goes on to the end by itself. So what a schedule has in common with the base is run
//! once for many. A run writes what came of it to a file in memory that its parent has made, and its output to another.

use super::given::{Given, Step};
use super::outside::Account;
use super::plan::{self, Plan, Schedule, Shrink, Strategy};
use super::record::{self, Recording};
use super::told::{Failed, Failure, account, alone, json_list, lines, tell};
use super::trunk::{Comes, Ground, Trunk, Waits, trunk};
use super::way::ways;
use super::wrote;
use super::{
    Kind, Op, Run, Stuck, ops::Touch, profile, run, sampled, set_deviations, steps, story, who,
};
use crate::os::parted;
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What is asked for.
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
    /// Fails where anything that the program does is not decided by the seed.
    pub strict: bool,
    /// Goes on after a schedule that fails, for those that fail in another way.
    pub keep_going: bool,
    /// Messages may be held back: see [`back`](super::back).
    pub any: bool,
    /// A schedule that is tried first.
    pub first: Schedule,
    /// Schedules deviate from the first operation of this function on: module, function, arity.
    pub from: Option<(String, String, u32)>,
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
    /// What its run was given, and the operations that it did then.
    pub given: Given,
    pub did: Vec<Step>,
    /// Its operations are told at the end.
    pub steps: bool,
    /// What came from outside, if that was recorded and is to be given again.
    pub outside: Option<Recording>,
    /// Variables of the environment that its run has asked for, as they were when it began.
    pub variables: Vec<record::Variable>,
    /// What it has written: see [`wrote`].
    pub wrote: Vec<u32>,
}

/// What this process is.
enum Role {
    /// It forks runs, and runs nothing.
    Root,
    /// It runs the base, and notes its operations.
    Base(OwnedFd),
    /// It runs the base up to some operation, and has trunks begin there.
    Waits(Waits),
    Trunk(Trunk),
    /// It runs a schedule.
    Branch(OwnedFd),
}

/// Runs, and time, for cutting a schedule down.
const MOST_FORKS: usize = 400;
const MOST_CUT: Duration = Duration::from_secs(20);
/// Schedules that nothing is drawn for, which are tried at a time in place of one that was drawn.
const SIMPLE: usize = 32;
/// Ways to fail that are told of one search.
const MOST_WAYS: usize = 20;

static ROLE: Mutex<Role> = Mutex::new(Role::Root);

/// What has come of a schedule.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Ended(Run),
    /// By a signal, or without a word.
    Died(i32),
}

impl Outcome {
    fn fails(&self) -> bool {
        !matches!(self, Outcome::Ended(r) if r.passes())
    }
    pub(super) fn text(&self) -> String {
        match self {
            Outcome::Ended(r) => format!(
                "ended {} {} {} {} {} {} {} {} {} {}",
                r.status,
                r.stuck as u8,
                r.hash,
                r.own_hash,
                r.ops,
                r.took,
                r.taken,
                r.quiet,
                r.outside.text(),
                numbers(&r.ways)
            ),
            Outcome::Died(s) => format!("died {s}"),
        }
    }
    pub(super) fn of(text: &str) -> Option<Outcome> {
        let mut w = text.split(' ');
        match w.next()? {
            "ended" => Some(Outcome::Ended(Run {
                status: w.next()?.parse().ok()?,
                stuck: Stuck::of(w.next()?)?,
                hash: w.next()?.parse().ok()?,
                own_hash: w.next()?.parse().ok()?,
                ops: w.next()?.parse().ok()?,
                took: w.next()?.parse().ok()?,
                taken: w.next()?.parse().ok()?,
                quiet: w.next()?.parse().ok()?,
                outside: Account::of(w.next()?)?,
                ways: w
                    .next()?
                    .split(',')
                    .filter(|w| !w.is_empty())
                    .map(|w| w.parse().ok())
                    .collect::<Option<_>>()?,
            })),
            "died" => Some(Outcome::Died(w.next()?.parse().ok()?)),
            _ => None,
        }
    }
}

fn numbers(all: &BTreeSet<u64>) -> String {
    let all: Vec<String> = all.iter().map(u64::to_string).collect();
    all.join(",")
}

/// A run under way.
pub(super) struct Child {
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

/// Seconds of real time for one of processor time that a run may have: other work of the machine does not end it.
const LOADED: u32 = 10;

/// Whether a run with that exit status, or minus the signal that has ended it, was ended since it did not end.
pub(super) fn is_endless(status: i32) -> bool {
    [libc::SIGALRM, libc::SIGPROF].contains(&-status)
}

/// Forks. In the child, which has so many seconds of processor time, if that isn't 0: where it reports to; its output goes to a file of its own.
pub(super) fn fork(seconds: u32) -> Result<Child, OwnedFd> {
    fork_for(seconds, seconds.saturating_mul(LOADED))
}

/// When the time of `--for` ends, which holds for whatever is run.
static ENDS: Mutex<Option<Instant>> = Mutex::new(None);

/// Sets it; what it was.
fn ends_at(t: Option<Instant>) -> Option<Instant> {
    let mut e = ENDS.lock().unwrap_or_else(|e| e.into_inner());
    std::mem::replace(&mut *e, t)
}

/// What is left of it, if there is an end.
fn left() -> Option<Duration> {
    let ends = *ENDS.lock().unwrap_or_else(|e| e.into_inner());
    ends.map(|e| e.saturating_duration_since(Instant::now()))
}

/// Whether it has ended: nothing more is begun, and a run that was ended by it has come to nothing.
pub(super) fn is_over() -> bool {
    left().is_some_and(|l| l.is_zero())
}

/// The same, with so many seconds of real time, too.
fn fork_for(seconds: u32, real: u32) -> Result<Child, OwnedFd> {
    let (Some(report), Some(output)) = (memory_file(), memory_file()) else {
        cannot("make a file in memory");
    };
    let real = match (real, left()) {
        (0, left) => left,
        (n, left) => Some(Duration::from_secs(n.into()).min(left.unwrap_or(Duration::MAX))),
    };
    let files = parted::open_files();
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
                libc::signal(libc::SIGPROF, libc::SIG_DFL);
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                libc::signal(libc::SIGTERM, libc::SIG_DFL);
                // Nor does one go on that nobody waits for any more.
                #[cfg(target_os = "linux")]
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let mut most: libc::itimerval = std::mem::zeroed();
                most.it_value.tv_sec = seconds.into();
                libc::setitimer(libc::ITIMER_PROF, &most, std::ptr::null_mut());
                if let Some(t) = real {
                    most.it_value.tv_sec = t.as_secs() as libc::time_t;
                    // None at all would be no limit.
                    most.it_value.tv_usec = t.subsec_micros().max(1).into();
                    libc::setitimer(libc::ITIMER_REAL, &most, std::ptr::null_mut());
                }
            }
            crate::poll::after_fork();
            parted::part(&files);
            Err(report.into())
        }
        pid => Ok(Child {
            pid,
            report,
            output,
        }),
    }
}

/// Forks a run of the program from its start, with so many seconds of processor time and of real time. Called by the root.
fn fork_run(seconds: u32, real: u32) -> Result<Child, OwnedFd> {
    if let Err(e) = super::folder::renew() {
        say(&format!(
            "purlin: schedules: cannot make the folder of a run: {e}\n"
        ));
        exit(71)
    }
    fork_for(seconds, real)
}

pub(super) fn cannot(what: &str) -> ! {
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

/// The exit status of a process, or minus the signal that has ended it.
fn code_of(status: i32) -> i32 {
    match libc::WIFEXITED(status) {
        true => libc::WEXITSTATUS(status),
        false => -libc::WTERMSIG(status),
    }
}

impl Child {
    /// Waits for its end: its exit status or minus the signal, its report.
    pub(super) fn wait(self) -> (i32, String, String) {
        let mut status = 0;
        // SAFETY: a child of this process.
        while unsafe { libc::waitpid(self.pid, &mut status, 0) } < 0
            && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
        {}
        (
            code_of(status),
            text_of(&self.report),
            text_of(&self.output),
        )
    }
    /// Waits for its end, and shows its output as it comes.
    fn shown(self) -> (i32, String, String) {
        let (mut at, mut status) = (0, 0);
        let mut all = Vec::new();
        loop {
            // SAFETY: a child of this process.
            let n = unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) };
            let over = n == self.pid
                || (n < 0 && std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR));
            let mut some = [0; 1 << 16];
            // Its own place in the file is the run's.
            while let Ok(n @ 1..) = self.output.read_at(&mut some, at) {
                at += n as u64;
                let mut out = std::io::stdout().lock();
                let _ = out.write_all(&some[..n]).and_then(|()| out.flush());
                all.extend_from_slice(&some[..n]);
            }
            if over {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = String::from_utf8_lossy(&all).into_owned();
        (code_of(status), text_of(&self.report), output)
    }
    /// What has come of it. None: the time was over before it ended.
    pub(super) fn outcome(self) -> Option<Outcome> {
        let (code, report, output) = self.wait();
        let mut o = match report.lines().next().and_then(Outcome::of) {
            Some(o) => o,
            None if is_over() && code == -libc::SIGALRM => return None,
            None => Outcome::Died(code),
        };
        if o.fails()
            && let Outcome::Ended(r) = &mut o
        {
            r.ways = ways(r.status, r.stuck != Stuck::No, &output);
        }
        Some(o)
    }
}

fn role() -> std::sync::MutexGuard<'static, Role> {
    ROLE.lock().unwrap_or_else(|e| e.into_inner())
}

/// This process becomes the run of the schedules that a trunk forks.
pub(super) fn become_trunk(t: Trunk) {
    *role() = Role::Trunk(t);
}

/// This process becomes one that waits with the base at some operation.
pub(super) fn become_waiting(w: Waits) {
    *role() = Role::Waits(w);
}

/// The process is about to do operation `op`: a trunk forks the schedules that begin there. In these: what happens.
pub(super) fn at(path: u64, op: u32) -> Option<Kind> {
    let mut r = role();
    if let Role::Waits(w) = &mut *r {
        let t = w.comes(path, op)?;
        *r = Role::Trunk(t);
    }
    let Role::Trunk(t) = &mut *r else { return None };
    match t.comes(path, op) {
        Comes::Nothing => None,
        Comes::Over => {
            // All have left it.
            drop(r);
            ended(0, Stuck::No);
            exit(0)
        }
        Comes::Branch(to, schedule) => {
            *r = Role::Branch(to);
            drop(r);
            let kind = schedule.first().map(|d| d.kind);
            set_deviations(&schedule[1..]);
            kind
        }
    }
}

fn write_all(to: OwnedFd, text: &str) {
    let _ = File::from(to).write_all(text.as_bytes());
}

/// This run ends with `status`: it reports.
pub(super) fn ended(status: i32, stuck: Stuck) {
    let mut r = role();
    match std::mem::replace(&mut *r, Role::Root) {
        // The operation did not come.
        Role::Root | Role::Waits(_) => {}
        Role::Base(to) => {
            let mut text = Outcome::Ended(run(status, stuck)).text();
            text.push('\n');
            for o in profile() {
                let t = o.touch;
                let _ = writeln!(
                    text,
                    "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}",
                    o.path,
                    o.op,
                    t.native,
                    t.object,
                    t.key,
                    u8::from(t.changes),
                    u8::from(o.own),
                    u8::from(o.code),
                    o.others,
                    o.at,
                    o.due,
                    u8::from(o.begun),
                    u8::from(o.lasts),
                    u8::from(o.served),
                    u8::from(o.tests)
                );
            }
            write_all(to, &text);
        }
        Role::Trunk(t) => {
            let mut text = Outcome::Ended(run(status, stuck)).text();
            text.push('\n');
            let to = t.ends(&mut text);
            write_all(to, &text);
        }
        Role::Branch(to) => {
            let mut text = Outcome::Ended(run(status, stuck)).text();
            text.push('\n');
            for (path, op) in sampled() {
                let _ = writeln!(text, "order {path} {op}");
            }
            text.push_str(&steps());
            text.push_str(&record::variables());
            text.push_str(&who());
            text.push_str(&lines(&story()));
            write_all(to, &text);
        }
    }
}

/// Schedules that were tried so far.
static SO_FAR: AtomicUsize = AtomicUsize::new(0);

/// The search is stopped: says so and ends. Calls nothing that a handler may not.
extern "C" fn stopped(signal: i32) {
    let mut digits = [0; 20];
    let (mut n, mut at) = (SO_FAR.load(Ordering::Relaxed), digits.len());
    while at > 0 && (n > 0 || at == digits.len()) {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
    }
    let parts: [&[u8]; 3] = [
        b"purlin: schedules: stopped after ",
        &digits[at..],
        match FOUND.load(Ordering::Relaxed) {
            true => b" schedules; one had failed, and was not yet told\n",
            false => b" schedules; none had failed\n",
        },
    ];
    for p in parts {
        // SAFETY: bytes that are there.
        unsafe { libc::write(2, p.as_ptr().cast(), p.len()) };
    }
    // SAFETY: no return.
    unsafe { libc::_exit(128 + signal) }
}

/// Seconds that a run of the base has at most.
const MOST_BASE: u32 = 600;

/// One run of the base that ends, within so many seconds; the modules that it loads are prepared for those that follow. False: this
/// process is that run.
fn discover(seconds: u32) -> bool {
    let Some(notes) = memory_file() else {
        cannot("make a file in memory");
    };
    match fork_run(0, seconds) {
        Ok(c) => {
            if is_endless(c.wait().0) {
                too_long(seconds);
            }
            record::keeps_atoms(|| super::modules::make(notes));
            true
        }
        Err(to) => {
            super::modules::note_in(notes);
            *role() = Role::Branch(to);
            false
        }
    }
}

/// The base does not end in its time: within so many seconds, or in what is left of the time of a search.
fn too_long(seconds: u32) -> ! {
    if is_over() {
        say("purlin: schedules: --for: the program as it is takes longer than that\n");
        exit(2)
    }
    say(&format!(
        "purlin: schedules: the program as it is does not end within {seconds} s\n"
    ));
    exit(1)
}

/// Something was given on standard input, or could have been.
static GIVEN: AtomicBool = AtomicBool::new(false);

/// Whether the command was given something on standard input, which the program does not get.
pub(super) fn was_given_input() -> bool {
    GIVEN.load(Ordering::Relaxed)
}

/// Standard input is nobody's.
fn no_input() {
    // SAFETY: plain calls.
    unsafe {
        let mut s: libc::stat = std::mem::zeroed();
        if libc::fstat(0, &raw mut s) == 0 {
            let kind = s.st_mode & libc::S_IFMT;
            let some = kind == libc::S_IFIFO || (kind == libc::S_IFREG && s.st_size > 0);
            GIVEN.store(some, Ordering::Relaxed);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
        if null >= 0 {
            libc::dup2(null, 0);
            libc::close(null);
        }
    }
}

/// Repeats a schedule. Comes back in the run, which then is run; the root ends with the emulator's exit status: 1 where it has failed
/// as recorded, 4 where it went another way.
pub fn replay(p: Replay) {
    no_input();
    let began = Instant::now();
    // Who is given what came from outside does without a run that would ask for it.
    match &p.outside {
        Some(r) => r.make_atoms(),
        None if !discover(MOST_BASE) => return,
        None => {}
    }
    super::lay_down(&p.given);
    record::set_variables(&p.variables);
    let seconds = match &p.outside {
        // How long the base takes nobody knows.
        Some(_) if !is_endless(p.status) => MOST_BASE,
        _ => most_seconds(began.elapsed()),
    };
    let child = match begin(&p.schedule, seconds, Some(p.did.clone()), p.steps) {
        Some(c) => c,
        None => {
            if let Some(r) = p.outside {
                record::play(r, p.status);
            }
            return;
        }
    };
    let (code, report, output) = child.shown();
    let first = report.lines().next().and_then(Outcome::of);
    let another = report.lines().find_map(|l| l.strip_prefix("another "));
    let wrote = wrote::missing(&p.wrote, &output);
    if p.steps {
        let told = |l: &&str| l.contains('\t') && !l.starts_with("who ");
        let story: Vec<&str> = report.lines().filter(told).collect();
        say(&(story.join("\n") + "\n"));
    }
    let (status, hash, ops, taken) = match first {
        Some(Outcome::Ended(r)) => (r.status, r.own_hash, r.ops, r.taken),
        _ => (code, 0, 0, 0),
    };
    if another.is_none() && status == p.status && hash == p.hash && wrote.is_none() {
        let ended = match status {
            s if s < 0 => format!("ended by signal {}", -s),
            s => format!("status {s}"),
        };
        say(&format!(
            "purlin: replayed: {ops} operations, {ended}, as recorded\n"
        ));
        exit(1)
    }
    let why = match another {
        Some(a) => a.to_owned(),
        None if status != p.status => "at its end".to_owned(),
        None if let Some(n) = wrote => format!("line {n} of its output was not written again"),
        None => match p.schedule.len() {
            n if taken as usize >= n => "in what its operations touch".to_owned(),
            1 => "its deviation was not met".to_owned(),
            n => format!("{taken} of {n} deviations were met"),
        },
    };
    say(&format!(
        "purlin: the replay went another way: {why}; status {status}, recorded {}\n",
        p.status
    ));
    exit(4)
}

/// What has been tried.
#[derive(Default)]
pub(super) struct Tried {
    pub schedules: usize,
    pub hashes: HashSet<u64>,
    pub took: i64,
    /// Those that have failed beside others, and not by themselves.
    pub alone: usize,
}

/// Searches for a schedule that fails. Comes back in a run of the program, which then is run; the root ends with the emulator's exit
/// status: 0 where none failed, 1 where one has, 5 where a run is not decided by its seed and that was asked for.
pub fn search(s: &Search) {
    no_input();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: a handler that keeps to what handlers may do.
        unsafe { libc::signal(signal, stopped as extern "C" fn(i32) as libc::sighandler_t) };
    }
    ends_at(s.time.and_then(|t| Instant::now().checked_add(t)));
    if !discover(MOST_BASE) {
        return;
    }
    let began = Instant::now();
    let mut bases = Vec::new();
    for i in 0..2 {
        match fork_run(0, MOST_BASE) {
            Ok(c) => bases.push(c.wait()),
            Err(to) => {
                *role() = Role::Base(to);
                super::set_profile();
                if let Some(from) = &s.from {
                    super::set_from(from);
                }
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
        if i == 0 {
            // Whose code runs in a process shows late: the second run knows it from the start.
            super::lay_down(&plan::given(&ops_of(&bases[0].1), 0));
        }
    }
    let first = |b: &(i32, String, String)| b.1.lines().next().and_then(Outcome::of);
    let Some(Outcome::Ended(base)) = first(&bases[0]) else {
        if is_endless(bases[0].0) {
            too_long(MOST_BASE);
        }
        say(&bases[0].2);
        say(&format!(
            "purlin: schedules: the program ended by itself in no time that could be waited for ({})\n",
            bases[0].0
        ));
        exit(71)
    };
    let seconds = most_seconds(began.elapsed() / 2);
    let decided = matches!(first(&bases[1]), Some(Outcome::Ended(b)) if b.hash == base.hash);
    if is_over() {
        // Nothing was compared.
    } else if !decided {
        say(
            "purlin: schedules: two runs of the base differ: not all that the program depends on is decided by the seed\n",
        );
        if s.strict {
            exit(5)
        }
    }
    let ops = ops_of(&bases[if decided { 1 } else { 0 }].1);
    let mut tried = Tried::default();
    tried.schedules += 1;
    tried.hashes.insert(base.hash);
    tried.took += base.took;
    let given = plan::given(&ops, super::quiet::most(base.quiet));
    let base_takes = began.elapsed() / 2;
    if !base.passes() {
        let failed = Failed {
            schedule: Vec::new(),
            margin: Vec::new(),
            before: 0,
            run: base,
            // It is told as it was run.
            given: plan::given(&ops, 0),
            seconds,
        };
        super::lay_down(&failed.given);
        let Some(failure) = told(failed, base_takes) else {
            return;
        };
        return tell(s, &tried, began, vec![failure], decided);
    }
    super::lay_down(&given);
    if let Some((m, f, a)) = &s.from
        && !ops.iter().any(|o| o.begun)
    {
        say(&format!(
            "purlin: schedules: the program does not call {m}:{f}/{a} before a visible operation\n"
        ));
        exit(2)
    }
    let base_ops = (base.hash, base.ops);
    let outside = base.outside.clone();
    let mut plan = Plan::new(&ops, s.strategy, s.stall, s.any, s.seed);
    let ground = Ground::new(s.jobs, &ops, seconds, plan.begins());
    if !s.first.is_empty() {
        let mut first = s.first.clone();
        plan.sort(&mut first);
        plan.begin_with(first);
    }
    let places = plan.places();
    let mut failures: Vec<Failure> = Vec::new();
    // What has failed in those.
    let mut known: BTreeSet<u64> = BTreeSet::new();
    'search: while tried.schedules < s.schedules && !is_over() {
        let batch = plan.batch(s.schedules - tried.schedules);
        if batch.is_empty() {
            break;
        }
        let Some(outcomes) = trunk(&batch, &ground) else {
            return;
        };
        for (schedule, o) in batch.into_iter().zip(outcomes) {
            let Some(o) = o else { continue };
            tried.schedules += 1;
            SO_FAR.store(tried.schedules, Ordering::Relaxed);
            let fails = o.fails();
            let run = match o {
                Outcome::Ended(r) => {
                    tried.hashes.insert(r.hash);
                    tried.took += r.took;
                    r
                }
                Outcome::Died(status) => Run {
                    status,
                    ways: ways(status, false, ""),
                    ..Run::default()
                },
            };
            if !fails || run.ways.is_subset(&known) {
                continue;
            }
            let wanted: BTreeSet<u64> = run.ways.difference(&known).copied().collect();
            let failed = Failed {
                before: schedule.len(),
                margin: schedule.clone(),
                schedule,
                run,
                given: given.clone(),
                seconds,
            };
            let wanted = s.keep_going.then_some(wanted);
            match confirmed(&plan, failed, wanted, &ground, base_takes) {
                None => return,
                Some(None) => tried.alone += 1,
                Some(Some(f)) => {
                    known.extend(&f.run.ways);
                    known.extend(&f.failed.run.ways);
                    failures.push(f);
                }
            }
            if !failures.is_empty() && (!s.keep_going || failures.len() >= MOST_WAYS) {
                break 'search;
            }
        }
    }
    if failures.is_empty() {
        let text = format!(
            "{} schedules ({} distinct), {:.1} s, {:.1} s of virtual time: none failed\n{} operations of the base, {} at which schedules deviate, {} of them race\n{}",
            tried.schedules,
            tried.hashes.len(),
            began.elapsed().as_secs_f64(),
            tried.took as f64 / 1e9,
            base_ops.1,
            places.1,
            places.0,
            account(s, &outside) + &alone(&tried)
        );
        match s.json {
            true => print(&format!(
                "{{\"failed\":false,\"schedules\":{},\"distinct\":{},\"virtual_seconds\":{:.3},\"operations\":{},\"racing\":{},\"unrepeated\":{},\"outside\":{}}}\n",
                tried.schedules,
                tried.hashes.len(),
                tried.took as f64 / 1e9,
                base_ops.1,
                places.0,
                tried.alone,
                json_list(&outside.told())
            )),
            false => print(&text),
        }
        exit(strictly(s, 0, outside.is_open() || tried.alone > 0))
    }
    tell(s, &tried, began, failures, decided);
}

/// The status of a search that has found out `status`. `open`: there is something that no seed decides.
pub(super) fn strictly(s: &Search, status: i32, open: bool) -> i32 {
    if s.strict && open {
        say("purlin: schedules: --strict: the seed does not decide all that the program does\n");
        return 5;
    }
    status
}

/// A schedule that has failed beside others, if it fails by itself, too: cut down, and told. `wanted`: what has failed that is
/// to fail in what is told, where that matters. None: this process is the run of one.
fn confirmed(
    plan: &Plan,
    failed: Failed,
    wanted: Option<BTreeSet<u64>>,
    g: &Ground,
    base_takes: Duration,
) -> Option<Option<Failure>> {
    // Who stops the search knows of what was found.
    FOUND.store(true, Ordering::Relaxed);
    let as_it_was = told(failed, base_takes)?;
    if as_it_was.run.passes() {
        FOUND.store(false, Ordering::Relaxed);
        return Some(None);
    }
    let again = |r: &Run| {
        let wanted = wanted.as_ref();
        !r.passes() && wanted.is_none_or(|w| r.ways.iter().any(|f| w.contains(f)))
    };
    // A run that is told may fail in another way than one beside others, by its output; then what it does counts.
    let same = again(&as_it_was.run);
    let same = |o: &Option<Outcome>| match o {
        Some(Outcome::Ended(r)) if same => again(r),
        Some(o) => o.fails(),
        None => false,
    };
    let schedule = as_it_was.failed.schedule.clone();
    let c = cut(plan, schedule, g, &same, &as_it_was.order)?;
    if c.schedule == as_it_was.failed.schedule {
        let mut failure = as_it_was;
        failure.failed.margin = c.margin;
        return Some(Some(failure));
    }
    let failed = Failed {
        schedule: c.schedule,
        margin: c.margin,
        before: c.before,
        run: as_it_was.failed.run.clone(),
        given: as_it_was.failed.given.clone(),
        ..as_it_was.failed
    };
    let short = told(failed, base_takes)?;
    let fails = same(&Some(Outcome::Ended(short.run.clone())));
    Some(Some(if fails { short } else { as_it_was }))
}

/// Something was found.
static FOUND: AtomicBool = AtomicBool::new(false);

/// A schedule that fails, cut down. `same`: whether a run has failed in the same way. `drawn`: the operations whose order was drawn in its run.
/// None: this process is a run of one.
fn cut(
    plan: &Plan,
    mut schedule: Schedule,
    g: &Ground,
    same: &dyn Fn(&Option<Outcome>) -> bool,
    drawn: &[(u64, u32)],
) -> Option<Cut> {
    let began = Instant::now();
    if let [d] = &schedule[..]
        && matches!(d.kind, Kind::Sample(..))
    {
        // The order that was drawn becomes deviations, each of which may go.
        let repeated = plan.repeats(drawn);
        if !repeated.is_empty() {
            let all = [repeated];
            let outcomes = trunk(&all, g)?;
            if outcomes.iter().all(same) {
                [schedule] = all;
            }
        }
        // A schedule that nothing is drawn for tells more.
        for some in plan.rest().chunks(SIMPLE) {
            if !matches!(&schedule[..], [d] if matches!(d.kind, Kind::Sample(..)))
                || began.elapsed() > MOST_CUT
                || is_over()
            {
                break;
            }
            let outcomes = trunk(some, g)?;
            if let Some(i) = outcomes.iter().position(same) {
                schedule = some[i].clone();
            }
        }
    }
    let before = schedule.len();
    let mut shrink = Shrink::new(schedule);
    let mut forks = 0;
    let began = Instant::now();
    for _ in 0..60 {
        let candidates = shrink.candidates();
        if candidates.is_empty() || forks > MOST_FORKS || began.elapsed() > MOST_CUT || is_over() {
            break;
        }
        forks += candidates.len();
        let outcomes = trunk(&candidates, g)?;
        let fails: Vec<bool> = outcomes.iter().map(same).collect();
        shrink.tell(candidates, &fails);
    }
    let best = shrink.best().clone();
    // A stall at its margin would depend on each nanosecond: it is kept a quarter longer, if that is allowed, and it fails so, too.
    let longer = plan.with_more(&best);
    let fails = longer != best && trunk(std::slice::from_ref(&longer), g)?.iter().any(same);
    Some(Cut {
        schedule: if fails { longer } else { best.clone() },
        margin: best,
        before,
    })
}

/// A schedule that was cut down.
struct Cut {
    schedule: Schedule,
    /// With stalls no longer than they must be.
    margin: Schedule,
    /// How many deviations there were before.
    before: usize,
}

/// What is told of a schedule that fails. `takes`: for how long the base runs; where the time of the search is over it has that, twice, and no
/// longer. None: this process is its run.
fn told(failed: Failed, takes: Duration) -> Option<Failure> {
    let ends = ends_at(None);
    let allowed = Instant::now() + takes * 2 + LEAST_TOLD;
    ends_at(ends.map(|e| e.max(allowed)));
    record::next_in(memory_file());
    let (run, story, output) = once(&failed.schedule, failed.seconds)?;
    ends_at(ends);
    Some(Failure {
        failed,
        order: order_in(&story),
        run,
        story,
        output,
        events: record::taken(),
    })
}

/// What a run that is told has at least, beside twice the time of the base.
const LEAST_TOLD: Duration = Duration::from_secs(1);

/// Seconds after which a run is ended, by the time that the base takes.
fn most_seconds(base: Duration) -> u32 {
    (base.as_secs_f64() * 20.0) as u32 + 10
}

/// The operations that a run of the base has noted.
fn ops_of(report: &str) -> Vec<Op> {
    report.lines().skip(1).filter_map(op_of).collect()
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
        code: w.next()? == "1",
        others: w.next()?.parse().ok()?,
        at: w.next()?.parse().ok()?,
        due: w.next()?.parse().ok()?,
        begun: w.next()? == "1",
        lasts: w.next()? == "1",
        served: w.next()? == "1",
        tests: w.next()? == "1",
    })
}

/// The order of operations in what a run with a sampler has reported.
fn order_in(report: &str) -> Vec<(u64, u32)> {
    let of = |l: &str| {
        let (path, op) = l.strip_prefix("order ")?.split_once(' ')?;
        Some((path.parse().ok()?, op.parse().ok()?))
    };
    report.lines().filter_map(of).collect()
}

/// Begins a run of one schedule, from the start, which may tell its operations, or be held against those that are expected. None: this
/// process is the run.
pub(super) fn begin(
    schedule: &Schedule,
    seconds: u32,
    expected: Option<Vec<Step>>,
    told: bool,
) -> Option<Child> {
    match fork_run(seconds, seconds.saturating_mul(LOADED)) {
        Err(to) => {
            *role() = Role::Branch(to);
            set_deviations(schedule);
            if told || expected.is_some() {
                super::set_steps(expected);
            }
            if told {
                super::set_story();
                record::notes_variables();
                record::begin();
            }
            None
        }
        Ok(c) => Some(c),
    }
}

/// Runs one schedule from the start and tells it: the run, its operations, its output. None: this process is the run.
fn once(schedule: &Schedule, seconds: u32) -> Option<(Run, String, String)> {
    let (code, report, output) = begin(schedule, seconds, None, true)?.wait();
    let mut run = match report.lines().next().and_then(Outcome::of) {
        Some(Outcome::Ended(r)) => r,
        _ => Run {
            status: code,
            ..Run::default()
        },
    };
    if !run.passes() {
        run.ways = ways(run.status, run.stuck != Stuck::No, &output);
    }
    let story = report
        .split_once('\n')
        .map_or(String::new(), |(_, s)| s.to_owned());
    Some((run, story, output))
}

pub(super) fn say(text: &str) {
    crate::report::to_stderr(text);
}

/// The result could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// Prints the result. Who has closed standard output does not want it.
pub(super) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let done = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(e) = done
        && e.kind() != std::io::ErrorKind::BrokenPipe
    {
        LOST.store(true, Ordering::Relaxed);
        say(&format!("purlin: schedules: cannot write: {e}\n"));
    }
}

pub(super) fn exit(status: i32) -> ! {
    if let Role::Root = *role() {
        super::trunk::end();
        super::folder::remove();
    }
    let status = match status {
        0 if LOST.load(Ordering::Relaxed) => 71,
        s => s,
    };
    // SAFETY: no return; this is the only thread.
    unsafe { libc::_exit(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_goes_there_and_back() {
        let o = Outcome::Ended(Run {
            status: 2,
            stuck: Stuck::Hang,
            hash: 77,
            own_hash: 78,
            ops: 5,
            took: -1,
            taken: 3,
            outside: Account::of("2:5:").expect("an account"),
            quiet: 9,
            ways: BTreeSet::from([8, 7]),
        });
        let back = Outcome::of(&o.text()).map(|o| o.text());
        assert_eq!(back, Some(o.text()));
    }
}
