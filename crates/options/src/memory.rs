//! The amount of memory that the process may use: that of the machine, or the limit of its control
//! groups (v1 and v2); and the amount in use.
//!
//! Among nested groups, the one with the least memory left decides. The used amount is the group's
//! charge without the file pages that the system can drop at any time. `PURLIN_MEMORY_GROUP` names
//! a directory to read instead of the groups, for tests on systems where no group can be made.

use super::groups;
use std::fs;
use std::path::{Path, PathBuf};

/// `+Mlimit`: the limit of the runtime's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MemoryLimit {
    /// The control groups of the process.
    #[default]
    Groups,
    /// This many bytes, and the groups.
    Bytes(usize),
    /// Nothing.
    Off,
}

impl MemoryLimit {
    /// Parses the value of the flag: `off`, or bytes with the suffix `k`, `m` or `g`.
    pub(super) fn parse(value: &str) -> Option<MemoryLimit> {
        if value == "off" {
            return Some(MemoryLimit::Off);
        }
        let unit = match value.as_bytes().last()? {
            b'k' | b'K' => 10,
            b'm' | b'M' => 20,
            b'g' | b'G' => 30,
            _ => 0,
        };
        let digits = &value[..value.len() - usize::from(unit > 0)];
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let bytes = digits.parse::<usize>().ok()?.checked_mul(1 << unit)?;
        (LEAST_LIMIT..=1 << 60)
            .contains(&bytes)
            .then_some(MemoryLimit::Bytes(bytes))
    }
}

/// Minimum limit in bytes: no runtime starts with less.
const LEAST_LIMIT: usize = 16 << 20;

/// A limit, and the used part of it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    pub limit: usize,
    pub used: usize,
}

impl Grant {
    fn left(&self) -> isize {
        self.limit as isize - self.used as isize
    }
}

/// The groups that limit memory. They are looked up once, and may be read any number of times.
pub struct Groups(Vec<(u32, PathBuf)>);

impl Groups {
    /// Returns the groups of the process.
    pub fn own() -> Groups {
        if let Some(dir) = std::env::var_os("PURLIN_MEMORY_GROUP") {
            let dir = PathBuf::from(dir);
            let version = if dir.join("memory.limit_in_bytes").exists() {
                1
            } else {
                2
            };
            return Groups(vec![(version, dir)]);
        }
        groups::own().map_or(Groups(Vec::new()), |(mounts, own)| {
            Groups::of(&mounts, &own)
        })
    }

    /// Returns no groups.
    pub fn none() -> Groups {
        Groups(Vec::new())
    }

    fn of(mounts: &str, own: &str) -> Groups {
        let mut all = Vec::new();
        groups::each(mounts, own, "memory", &mut |version, group| {
            all.push((version, group.to_path_buf()));
        });
        Groups(all)
    }

    /// Returns the present limit and use; `None` without a limit.
    pub fn look(&self, limit: MemoryLimit) -> Option<Grant> {
        let own = match limit {
            MemoryLimit::Off => return None,
            MemoryLimit::Groups => None,
            MemoryLimit::Bytes(limit) => Some(Grant {
                limit,
                used: resident(),
            }),
        };
        least(
            self.grants(&|path| fs::read_to_string(path).ok())
                .chain(own),
        )
    }

    fn grants(&self, read: &dyn Fn(&Path) -> Option<String>) -> impl Iterator<Item = Grant> {
        self.0.iter().filter_map(|(version, group)| {
            let limit = limit_of(*version, group, read)?;
            let used = used_in(*version, group, read).unwrap_or_else(resident);
            Some(Grant { limit, used })
        })
    }
}

/// Returns the grant with the least memory left.
fn least(grants: impl Iterator<Item = Grant>) -> Option<Grant> {
    grants.min_by_key(Grant::left)
}

fn number(text: Option<String>) -> Option<usize> {
    text?.trim().parse().ok()
}

/// Returns the limit of a group. "No limit" is a word, or a number beyond any memory.
fn limit_of(version: u32, group: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Option<usize> {
    let limit = |file: &str| number(read(&group.join(file)));
    match version {
        // Above the high mark, allocating threads are throttled and pages are reclaimed.
        2 => limit("memory.max")
            .into_iter()
            .chain(limit("memory.high"))
            .min(),
        _ => limit("memory.limit_in_bytes").filter(|n| *n < NO_LIMIT),
    }
}

/// Limits from here on mean "no limit": v1 reports the largest number that it can.
const NO_LIMIT: usize = 1 << 62;

/// Returns the charge of a group without the file pages that are not mapped and have been written
/// back.
fn used_in(version: u32, group: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Option<usize> {
    let (file, prefix, mapped, dirty, writeback) = match version {
        2 => (
            "memory.current",
            "",
            "file_mapped",
            "file_dirty",
            "file_writeback",
        ),
        _ => (
            "memory.usage_in_bytes",
            "total_",
            "mapped_file",
            "dirty",
            "writeback",
        ),
    };
    let charged = number(read(&group.join(file)))?;
    let stat = read(&group.join("memory.stat")).unwrap_or_default();
    let of = |name: &str| -> usize {
        let value = stat.lines().find_map(|line| {
            let line = line.strip_prefix(prefix)?.strip_prefix(name)?;
            line.strip_prefix(' ')?.trim().parse().ok()
        });
        value.unwrap_or(0)
    };
    let files = of("inactive_file") + of("active_file");
    let kept = of(mapped) + of(dirty) + of(writeback);
    let slabs = if version == 2 {
        of("slab_reclaimable")
    } else {
        0
    };
    Some(charged.saturating_sub(files.saturating_sub(kept) + slabs))
}

/// Returns the resident memory in bytes; 0 if the system doesn't report it.
pub fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<usize>().ok());
    // SAFETY: reads a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.unwrap_or(0) * usize::try_from(page).unwrap_or(0)
}

/// Returns the memory that the process may use in bytes; `None` if the system doesn't report it.
pub fn available() -> Option<usize> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.as_deref().and_then(installed);
    let granted = granted(&Groups::own(), &|path| fs::read_to_string(path).ok());
    machine.into_iter().chain(granted).min()
}

/// Returns the number in the line `MemTotal`.
fn installed(meminfo: &str) -> Option<usize> {
    let line = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:"))?
        .trim();
    let kib: usize = line.strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the smallest limit of the groups.
fn granted(groups: &Groups, read: &dyn Fn(&Path) -> Option<String>) -> Option<usize> {
    let limits = groups
        .0
        .iter()
        .filter_map(|(version, group)| limit_of(*version, group, read));
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        assert_eq!(
            installed("MemFree: 1 kB\nMemTotal:  2048 kB\n"),
            Some(2 << 20)
        );
        let v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
        let read = |path: &Path| {
            let files = [
                ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("/sys/fs/cgroup/a/memory.max", "1000000\n"),
                ("/sys/fs/cgroup/a/memory.high", "max\n"),
                ("/sys/fs/cgroup/a/memory.current", "700000\n"),
                ("/sys/fs/cgroup/memory.max", "2000000\n"),
                ("/sys/fs/cgroup/memory.current", "1900000\n"),
                (
                    "/sys/fs/cgroup/memory.stat",
                    "anon 1\nfile_mapped 1000\nfile_dirty 500\ninactive_file 9000\nactive_file 2000\nslab_reclaimable 500\n",
                ),
                ("/sys/fs/cgroup/h/memory.max", "3000000\n"),
                ("/sys/fs/cgroup/h/memory.high", "900000\n"),
                ("/sys/fs/cgroup/h/memory.current", "1\n"),
            ];
            let known = files.iter().find(|f| Path::new(f.0) == path);
            known.map(|f| f.1.to_owned())
        };
        let (ab, c, h) = (
            Groups::of(v2, "0::/a/b\n"),
            Groups::of(v2, "0::/c\n"),
            Groups::of(v2, "0::/h\n"),
        );
        assert_eq!(granted(&ab, &read), Some(1_000_000));
        assert_eq!(granted(&c, &read), Some(2_000_000));
        assert_eq!(granted(&h, &read), Some(900_000));
        assert_eq!(granted(&Groups::of("", "0::/c\n"), &read), None);
        // The use of others in the parent group counts, without the pages that can be dropped.
        let root = Grant {
            limit: 2_000_000,
            used: 1_900_000 - 9_500 - 500,
        };
        assert_eq!(least(ab.grants(&read)), Some(root));
        let above: Vec<Grant> = h.grants(&read).collect();
        assert_eq!(
            above,
            [
                Grant {
                    limit: 900_000,
                    used: 1
                },
                root
            ]
        );
    }

    #[test]
    fn limits_of_version_1() {
        let v1 = "33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        let read = |path: &Path| {
            let files = [
                ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000000\n"),
                ("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "100000\n"),
                (
                    "/sys/fs/cgroup/memory/a/memory.stat",
                    "inactive_file 7\ntotal_mapped_file 100\ntotal_dirty 0\ntotal_inactive_file 3000\ntotal_active_file 100\n",
                ),
                (
                    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                    "9223372036854771712\n",
                ),
            ];
            let known = files.iter().find(|f| Path::new(f.0) == path);
            known.map(|f| f.1.to_owned())
        };
        let groups = Groups::of(v1, "4:memory:/a\n");
        assert_eq!(
            least(groups.grants(&read)),
            Some(Grant {
                limit: 5_000_000,
                used: 97_000
            })
        );
        assert_eq!(least(Groups::of(v1, "4:memory:/\n").grants(&read)), None);
    }

    #[test]
    fn values_of_the_flag() {
        for (value, limit) in [
            ("off", Some(MemoryLimit::Off)),
            ("268435456", Some(MemoryLimit::Bytes(256 << 20))),
            ("256m", Some(MemoryLimit::Bytes(256 << 20))),
            ("2G", Some(MemoryLimit::Bytes(2 << 30))),
            ("65536k", Some(MemoryLimit::Bytes(64 << 20))),
            ("1", None),
            ("m", None),
            ("", None),
            ("-5m", None),
            ("+64m", None),
            ("99999999999g", None),
            ("64mm", None),
        ] {
            assert_eq!(MemoryLimit::parse(value), limit, "{value}");
        }
    }
}
