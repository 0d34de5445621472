//! How much memory the process may use: that of the machine, or what its control groups (v1 and v2) grant.

use super::groups;
use std::fs;
use std::path::Path;

/// Bytes of memory that the process may use; None where the system doesn't tell.
pub fn available() -> Option<usize> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let granted = groups::own().and_then(|(mounts, groups)| {
        granted(&mounts, &groups, &|path| fs::read_to_string(path).ok())
    });
    let machine = machine.as_deref().and_then(installed);
    machine.into_iter().chain(granted).min()
}

/// The figure of the line `MemTotal`.
fn installed(meminfo: &str) -> Option<usize> {
    let line = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:"))?
        .trim();
    let kib: usize = line.strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The smallest limit of the groups.
fn granted(mounts: &str, groups: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<usize> {
    let mut least: Option<usize> = None;
    groups::each(mounts, groups, "memory", &mut |version, group| {
        let file = match version {
            2 => "memory.max",
            _ => "memory.limit_in_bytes",
        };
        // No limit is a word, or a number beyond any memory.
        let limit = read(&group.join(file)).and_then(|text| text.trim().parse().ok());
        least = least.into_iter().chain(limit).min();
    });
    least
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
                ("/sys/fs/cgroup/memory.max", "2000000\n"),
            ];
            let known = files.iter().find(|f| Path::new(f.0) == path);
            known.map(|f| f.1.to_owned())
        };
        assert_eq!(granted(v2, "0::/a/b\n", &read), Some(1_000_000));
        assert_eq!(granted(v2, "0::/c\n", &read), Some(2_000_000));
        assert_eq!(granted("", "0::/c\n", &read), None);
    }
}
