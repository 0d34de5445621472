//! The number of processors that the process may use: configured, online, in the affinity mask, and
//! granted by the container's CPU quota (cgroup v1 and v2).
//!
//! Reads `/proc` and `/sys/fs/cgroup` only, and treats anything that can't be read as "no limit".
//! [`CpuCounts::detect`] may be called again at any time to see whether the quota has changed.

use super::groups;
use std::fs;
use std::path::Path;

/// Processor counts, each at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuCounts {
    /// Processors of the machine.
    pub configured: u32,
    /// Processors that run.
    pub online: u32,
    /// Processors in the affinity mask of the process.
    pub available: u32,
    /// The container's quota of processor time in whole processors; `None` without a limit.
    pub quota: Option<u32>,
}

impl CpuCounts {
    /// Returns how many threads can run at a time.
    pub fn usable(&self) -> u32 {
        self.quota.unwrap_or(u32::MAX).min(self.available).max(1)
    }

    /// Asks the operating system.
    pub fn detect() -> CpuCounts {
        let configured = sysconf(libc::_SC_NPROCESSORS_CONF).unwrap_or(1);
        let online = sysconf(libc::_SC_NPROCESSORS_ONLN)
            .unwrap_or(configured)
            .min(configured);
        let available = affinity().unwrap_or(online).clamp(1, online);
        let quota = cgroup_quota().filter(|quota| *quota <= online);
        CpuCounts {
            configured,
            online,
            available,
            quota,
        }
    }
}

fn sysconf(name: libc::c_int) -> Option<u32> {
    // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
    let count = unsafe { libc::sysconf(name) };
    u32::try_from(count).ok().filter(|count| *count > 0)
}

#[cfg(target_os = "linux")]
fn affinity() -> Option<u32> {
    // SAFETY: cpu_set_t is plain bits, for which zero is a value; the call writes at most the given
    // size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        // The mask of the main thread, which is the one that others set for the process.
        if libc::sched_getaffinity(libc::getpid(), size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return None;
        }
        u32::try_from(libc::CPU_COUNT(&set)).ok()
    }
}

#[cfg(not(target_os = "linux"))]
fn affinity() -> Option<u32> {
    None
}

/// Returns the smallest quota on the path from the process's own group up to the mounted root.
fn cgroup_quota() -> Option<u32> {
    let (mounts, groups) = groups::own()?;
    quota_of(&mounts, &groups, &|path| fs::read_to_string(path).ok())
}

fn quota_of(mounts: &str, groups: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u32> {
    let mut least: Option<u32> = None;
    groups::each(mounts, groups, "cpu", &mut |version, group| {
        let quota = match version {
            2 => read(&group.join("cpu.max")).and_then(|text| {
                let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
                Some((fields.next()?.ok()?, fields.next()?.ok()?))
            }),
            _ => read(&group.join("cpu.cfs_quota_us")).and_then(|quota| {
                let period = read(&group.join("cpu.cfs_period_us"))?;
                Some((quota.trim().parse().ok()?, period.trim().parse().ok()?))
            }),
        };
        if let Some((quota, period)) = quota
            && quota > 0
            && period > 0
        {
            let processors = u32::try_from((quota / period).max(1)).unwrap_or(u32::MAX);
            least = Some(least.map_or(processors, |least| least.min(processors)));
        }
    });
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mounts: &str, groups: &str, files: &[(&str, &str)], expected: Option<u32>) {
        let read = |path: &Path| {
            files
                .iter()
                .find(|(name, _)| Path::new(name) == path)
                .map(|(_, text)| text.to_string())
        };
        assert_eq!(
            quota_of(mounts, groups, &read),
            expected,
            "{mounts} {groups} {files:?}"
        );
    }

    #[test]
    fn quotas() {
        let v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
        check(
            v2,
            "0::/\n",
            &[("/sys/fs/cgroup/cpu.max", "150000 100000\n")],
            Some(1),
        );
        check(
            v2,
            "0::/\n",
            &[("/sys/fs/cgroup/cpu.max", "max 100000\n")],
            None,
        );
        check(
            v2,
            "0::/\n",
            &[("/sys/fs/cgroup/cpu.max", "50000 100000\n")],
            Some(1),
        );
        check(
            v2,
            "0::/a/b\n",
            &[("/sys/fs/cgroup/a/cpu.max", "300000 100000\n")],
            Some(3),
        );
        check(
            v2,
            "0::/a/b\n",
            &[
                ("/sys/fs/cgroup/a/cpu.max", "300000 100000"),
                ("/sys/fs/cgroup/a/b/cpu.max", "800000 100000"),
            ],
            Some(3),
        );
        let v1 =
            "33 30 0:29 /docker/x /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct";
        check(
            v1,
            "4:cpu,cpuacct:/docker/x\n",
            &[
                ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n"),
                ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ],
            Some(4),
        );
        check(
            v1,
            "4:cpu,cpuacct:/docker/x\n",
            &[
                ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
                ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ],
            None,
        );
        check("", "", &[], None);
    }

    #[test]
    fn detected_counts_are_positive() {
        let counts = CpuCounts::detect();
        assert!(counts.usable() >= 1 && counts.configured >= counts.online);
    }
}
