//! Finds which processes were started by a command, directly or through others, even if their
//! parents have ended.
//!
//! Three signs tell, and each can be lost:
//! - The chain of parents, as long as they live.
//! - A mark in the environment, unless it is cleared (`env -i`, `sudo`).
//! - A mark in a resource limit, which a process inherits, and keeps when it executes another
//!   program, changes its user or leads a session. The limit is the time that a real-time process
//!   may compute without a pause (`RLIMIT_RTTIME`), which does not apply to ordinary processes. Its
//!   value here is many years, so it restricts nothing; its lower bits are the mark. It is lost if
//!   someone sets that limit.
//!
//! Processes started on request by a service that ran before the command are not found.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The variable with the mark.
const VARIABLE: &str = "PURLIN_EXEC_ID";
/// Bit of the limit that says that it is a mark: 146,000 years.
const MARKED: u64 = 1 << 62;
/// Bits of a mark. The limit has room for those of nested commands.
const BITS: u32 = 20;
const MASK: u64 = (1 << BITS) - 1;

/// The marks of a command.
pub struct Marks {
    id: OsString,
    /// The new limit, if it may be set.
    limit: Option<u64>,
}

impl Marks {
    pub fn new() -> Marks {
        let now = SystemTime::UNIX_EPOCH.elapsed();
        let now = now.map_or(0, |t| t.as_nanos());
        let own = std::process::id();
        // Programs that begin at the same time have different process numbers, and numbers are
        // reused at other times.
        let mark = ((now as u64 >> 10) ^ (u64::from(own) << 3)) & MASK;
        Marks {
            id: format!("{own}-{now:x}").into(),
            limit: limits().and_then(|all| marked(&all, mark)),
        }
    }

    /// The variable for the environment of the command.
    pub fn variable(&self) -> (&'static str, &OsStr) {
        (VARIABLE, &self.id)
    }

    /// Marks this process, and everything that it starts or executes.
    pub fn set(&self) {
        let (Some(mut all), Some(limit)) = (limits(), self.limit) else {
            return;
        };
        all.rlim_cur = limit;
        set_limits(&all);
    }
}

/// Sets the limit that bears marks. A system that refuses it changes nothing.
#[cfg(target_os = "linux")]
fn set_limits(all: &libc::rlimit) {
    // SAFETY: a valid limit.
    unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, all) };
}
/// No limit here may bear marks.
#[cfg(not(target_os = "linux"))]
fn set_limits(_: &libc::rlimit) {}

#[cfg(not(target_os = "linux"))]
fn limits() -> Option<libc::rlimit> {
    None
}
#[cfg(target_os = "linux")]
fn limits() -> Option<libc::rlimit> {
    let mut all = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: room for the result.
    let answer = unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &mut all) };
    (answer == 0).then_some(all)
}

/// The limit with the mark added to those that it has. A limit that is in use is left alone.
fn marked(all: &libc::rlimit, mark: u64) -> Option<u64> {
    let before = match all.rlim_cur {
        libc::RLIM_INFINITY => 0,
        limit if is_marked(limit) => limit & (MARKED - 1),
        _ => return None,
    };
    let after = (before << BITS | mark) & (MARKED - 1) | MARKED;
    (after <= all.rlim_max).then_some(after)
}

fn is_marked(limit: u64) -> bool {
    limit >> 62 == 1
}

/// Whether a limit has the mark, among others or alone.
fn has_mark(limit: u64, mark: u64) -> bool {
    is_marked(limit) && (0..3).any(|place| limit >> (place * BITS) & MASK == mark)
}

/// The processes started by a command.
pub struct Descendants {
    text: Vec<u8>,
    mark: Option<u64>,
    command: u32,
}

impl Descendants {
    pub fn new(marks: &Marks, command: u32) -> Descendants {
        let (name, id) = marks.variable();
        Descendants {
            text: [name.as_bytes(), b"=", id.as_bytes()].concat(),
            mark: marks.limit.map(|limit| limit & MASK),
            command,
        }
    }

    /// Whether this process or thread is one of them by its limit. Anyone may read that of any
    /// process.
    pub fn is_marked(&self, dir: &Path) -> bool {
        self.mark.is_some_and(|mark| {
            fs::read_to_string(dir.join("limits"))
                .is_ok_and(|all| limit_in(&all).is_some_and(|limit| has_mark(limit, mark)))
        })
    }

    /// Whether this process or thread is one of them.
    pub fn has(&self, id: u32, dir: &Path) -> bool {
        self.is_marked(dir)
            || fs::read(dir.join("environ"))
                .is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == self.text))
            || is_below(id, self.command)
    }
}

/// The limit in the system's text about a process.
fn limit_in(all: &str) -> Option<u64> {
    let line = all
        .lines()
        .find(|line| line.starts_with("Max realtime timeout"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

fn is_below(id: u32, command: u32) -> bool {
    let mut at = id;
    // The table may change meanwhile, so the search is bounded in case it looks circular.
    for _ in 0..1000 {
        if at == command {
            return true;
        }
        let Some(parent) = stat(at, PARENT).filter(|p| *p > 1) else {
            return false;
        };
        at = parent as u32;
    }
    false
}

/// Time since the process began.
pub fn age(id: u32) -> Option<Duration> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let now: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    // SAFETY: no memory is passed.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let began = stat(id, BEGINNING)? as f64 / ticks as f64;
    Duration::try_from_secs_f64((now - began).max(0.0)).ok()
}

/// Fields of the system's line about a process, counted from the one after its name.
const PARENT: usize = 1;
const BEGINNING: usize = 19;

fn stat(id: u32, field: usize) -> Option<u64> {
    let line = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in parentheses, and may have any characters.
    let (_, rest) = line.rsplit_once(')')?;
    rest.split_whitespace().nth(field)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors() {
        let own = std::process::id();
        // SAFETY: takes no arguments.
        let above = unsafe { libc::getppid() } as u32;
        assert_eq!(stat(own, PARENT), Some(u64::from(above)));
        assert!(is_below(own, own) && (above <= 1 || is_below(own, above)));
        assert!(!is_below(above, own) && !is_below(u32::MAX, own));
        assert!(age(own).is_some_and(|age| age < Duration::from_secs(3600)));
    }

    #[test]
    fn marks_of_commands_within_commands() {
        let infinite = |rlim_cur| libc::rlimit {
            rlim_cur,
            rlim_max: libc::RLIM_INFINITY,
        };
        let mut limit = libc::RLIM_INFINITY;
        for mark in [0, 5, MASK] {
            limit = marked(&infinite(limit), mark).expect("may be set");
            assert!(has_mark(limit, mark));
        }
        assert!(has_mark(limit, 0) && has_mark(limit, 5) && !has_mark(limit, 6));
        let fourth = marked(&infinite(limit), 7).expect("may be set");
        assert!(has_mark(fourth, 7) && has_mark(fourth, MASK) && !has_mark(fourth, 0));
        // A limit that is in use is left alone.
        assert_eq!(marked(&infinite(200_000), 5), None);
        let low = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: 200_000,
        };
        assert_eq!(marked(&low, 5), None);
        assert!(!has_mark(libc::RLIM_INFINITY, MASK) && !has_mark(5, 5));
        let line = format!("Max realtime timeout      {fourth}  unlimited            us        \n");
        assert_eq!(limit_in(&line), Some(fourth));
        let none = "Max realtime timeout      unlimited            unlimited            us\n";
        assert_eq!(limit_in(none), None);
    }
}
