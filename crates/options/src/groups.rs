//! The control groups (v1 and v2) of the process, from its own up to the mounted root.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the mounts, and the groups of the process, as the system lists them.
pub(super) fn own() -> Option<(String, String)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    Some((mounts, groups))
}

/// Visits the groups that may set limits by that controller, with the version of their files and
/// the directory of each.
pub(super) fn each(
    mounts: &str,
    groups: &str,
    controller: &str,
    visit: &mut dyn FnMut(u32, &Path),
) {
    for line in mounts.lines() {
        // Fields: id, parent, device, root, mount point, options…, "-", type, source, super
        // options.
        let Some((mount, kind)) = line.split_once(" - ") else {
            continue;
        };
        let mut mount = mount.split(' ').skip(3);
        let (Some(root), Some(point)) = (mount.next(), mount.next()) else {
            continue;
        };
        let mut kind = kind.split(' ');
        let (fs_type, super_options) = (kind.next().unwrap_or(""), kind.nth(1).unwrap_or(""));
        let version = match fs_type {
            "cgroup2" => 2,
            "cgroup" if super_options.split(',').any(|option| option == controller) => 1,
            _ => continue,
        };
        let own = groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (id, controllers) = (fields.next()?, fields.next()?);
            let path = fields.next()?;
            let mine = if version == 2 {
                id == "0" && controllers.is_empty()
            } else {
                controllers.split(',').any(|c| c == controller)
            };
            mine.then_some(path)
        });
        // The group's path is relative to the hierarchy's root; the mount may show only a part of
        // it.
        let own = own.unwrap_or("/");
        let below = own.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
        let below = below.trim_start_matches('/');
        let point = PathBuf::from(point);
        let mut group = if below.is_empty() {
            point.clone()
        } else {
            point.join(below)
        };
        loop {
            visit(version, &group);
            if group == point || !group.pop() {
                break;
            }
        }
    }
}
