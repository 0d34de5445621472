//! One run of a command, and what the system counts for it.
//!
//! Times, context switches and peak memory are those of the process and of the descendants that it
//! has waited for. The peak is that of the largest of them, not their sum. A process begins as a
//! copy of this one, so the system counts this one's size for it: a peak that is not above that is
//! only an upper bound ([`Run::peak_is_bound`]).

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use crate::Quantity;
use crate::Relay;
use crate::energy::{Meter, SAMPLE_EVERY};

/// A command to be run repeatedly.
pub struct Command {
    pub words: Vec<OsString>,
    /// The command's name in reports.
    pub name: String,
    /// The file for its standard input; empty input if `None`.
    pub input: Option<PathBuf>,
    /// Whether its output goes to standard error. Otherwise it is discarded.
    pub show: bool,
    /// Variables added to the environment of this process.
    pub environment: Vec<(OsString, OsString)>,
}

/// The counts of one run.
#[derive(Clone, Debug)]
pub struct Run {
    pub status: ExitStatus,
    pub wall_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    pub peak_bytes: u64,
    /// Whether the peak is only an upper bound.
    pub peak_is_bound: bool,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub energy_j: Option<f64>,
}

impl Run {
    pub fn get(&self, quantity: Quantity) -> Option<f64> {
        Some(match quantity {
            Quantity::Wall => self.wall_s,
            Quantity::User => self.user_s,
            Quantity::System => self.system_s,
            Quantity::Peak => self.peak_bytes as f64,
            Quantity::Voluntary => self.voluntary_switches as f64,
            Quantity::Involuntary => self.involuntary_switches as f64,
            Quantity::Energy => return self.energy_j,
        })
    }
}

/// The reason why there is no measurement.
#[derive(Debug)]
pub enum Failed {
    /// The command could not be started.
    Start { name: String, error: io::Error },
    /// Its input file could not be opened.
    Input { file: PathBuf, error: io::Error },
    /// It exited with a status other than 0.
    Status { name: String, status: ExitStatus },
    /// Waiting for it failed.
    Wait(io::Error),
}

impl Command {
    pub fn run(&self, meter: &mut Meter, relay: &Relay) -> Result<Run, Failed> {
        let input = match &self.input {
            None => Stdio::null(),
            Some(file) => File::open(file).map(Stdio::from).map_err(|error| {
                let file = file.clone();
                Failed::Input { file, error }
            })?,
        };
        let output = if self.show {
            Stdio::from(io::stderr())
        } else {
            Stdio::null()
        };
        let mut command = std::process::Command::new(&self.words[0]);
        command.args(&self.words[1..]).stdin(input).stdout(output);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let own_peak = own_peak_bytes();
        let before = meter.sample();
        let start = Instant::now();
        let child = command.spawn().map_err(|error| Failed::Start {
            name: self.words[0].to_string_lossy().into_owned(),
            error,
        })?;
        let waited = wait(child.id(), meter, relay);
        let (status, usage, end) = waited.map_err(Failed::Wait)?;
        let after = meter.sample();
        let peak_bytes = to_bytes(usage.ru_maxrss);
        Ok(Run {
            status,
            wall_s: (end - start).as_secs_f64(),
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            peak_bytes,
            peak_is_bound: peak_bytes <= own_peak,
            voluntary_switches: usage.ru_nvcsw.max(0) as u64,
            involuntary_switches: usage.ru_nivcsw.max(0) as u64,
            energy_j: before.zip(after).map(|(b, a)| (a - b) as f64 / 1e6),
        })
    }
}

/// Waits for a child. Meanwhile reads the meter, if there is one, before its counters wrap.
fn wait(
    child: u32,
    meter: &mut Meter,
    relay: &Relay,
) -> io::Result<(ExitStatus, libc::rusage, Instant)> {
    if !meter.is_there() {
        return wait_for(child, relay);
    }
    std::thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        scope.spawn(move || {
            while is_done.recv_timeout(SAMPLE_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                meter.sample();
            }
        });
        let waited = wait_for(child, relay);
        drop(done);
        waited
    })
}

fn wait_for(child: u32, relay: &Relay) -> io::Result<(ExitStatus, libc::rusage, Instant)> {
    relay.wait(child);
    let end = Instant::now();
    let child = child as libc::pid_t;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to large enough places in this frame; all zeros are a valid
        // usage.
        let waited = unsafe { libc::wait4(child, &raw mut status, 0, usage.as_mut_ptr()) };
        if waited == child {
            // SAFETY: the call has written it.
            return Ok((
                ExitStatus::from_raw(status),
                unsafe { usage.assume_init() },
                end,
            ));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn own_peak_bytes() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a usage, which the call writes; all zeros are a valid one, too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    to_bytes(usage.ru_maxrss)
}

/// Linux and the BSDs count kilobytes, macOS bytes.
fn to_bytes(maxrss: libc::c_long) -> u64 {
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    maxrss.max(0) as u64 * unit
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Command {
        Command {
            words: words.iter().map(OsString::from).collect(),
            name: words[0].into(),
            input: None,
            show: false,
            environment: vec![("PURLIN_MEASURED".into(), "yes".into())],
        }
    }

    #[test]
    fn a_run_is_waited_for_and_counted() {
        let mut meter = Meter::default();
        let run = command(&["sleep", "0.05"])
            .run(&mut meter, &Relay::begin())
            .expect("runs");
        assert!(run.status.success() && run.wall_s >= 0.05, "{run:?}");
        assert!(run.user_s + run.system_s < run.wall_s, "{run:?}");
        assert!(run.peak_bytes > 0 && run.voluntary_switches > 0, "{run:?}");
        assert_eq!(run.energy_j, None);
        // Children that were waited for count, too.
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let run = command(&["sh", "-c", &format!("sh -c '{busy}'; exit 3")])
            .run(&mut meter, &Relay::begin())
            .expect("runs");
        assert_eq!(run.status.code(), Some(3));
        assert!(run.user_s + run.system_s > 0.001, "{run:?}");
        let large = "head -c 60000000 /dev/zero | tail -c 59999999 >/dev/null";
        let run = command(&["sh", "-c", large])
            .run(&mut meter, &Relay::begin())
            .expect("runs");
        assert!(run.peak_bytes > 50_000_000 && !run.peak_is_bound, "{run:?}");
        let run =
            command(&["sh", "-c", "[ $PURLIN_MEASURED = yes ]"]).run(&mut meter, &Relay::begin());
        assert!(run.expect("runs").status.success());
        assert!(matches!(
            command(&["no such command"]).run(&mut meter, &Relay::begin()),
            Err(Failed::Start { .. })
        ));
    }
}
