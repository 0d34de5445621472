//! The disks of nodes, as far as a loss of power needs them.
//!
//! Files are those of the real machine. A node reports what it writes, syncs and renames, and a
//! model ([`purlin_world::disk`]) knows which of it is on the disk for sure. When the power goes,
//! the model loses what was not synced, and the real files become what it has then.
//!
//! Each node has a model of its own, which has the files that the node has changed.

use super::fault::Node;
use purlin_world::disk::{Access, Caller, Disk, How, Journal, Kind, Loss, Opened, ROOT};
use purlin_world::protocol::{FileCall, FileStep, open_bits};
use purlin_world::streams::Stream;
use purlin_world::{Answer, Errno, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

/// The size of a disk in bytes: more than the real one can be given.
const SIZE: u64 = 1 << 44;
/// The mode of folders that were there before.
const FOLDER_MODE: u32 = 0o755;

/// The disk of a node.
#[derive(Clone)]
struct NodeDisk {
    disk: Disk,
    /// Open files, by the life of the node and the descriptor.
    opened: BTreeMap<(u32, u64), Opened>,
    /// All paths that the model has had.
    paths: BTreeSet<Vec<u8>>,
}

/// See the module's documentation.
#[derive(Clone, Default)]
pub(super) struct Disks(BTreeMap<Node, NodeDisk>);

fn caller() -> Caller {
    Caller {
        cwd: ROOT,
        umask: 0,
        privileged: true,
    }
}

fn writable() -> How {
    How {
        create: true,
        ..How::new(Access::ReadWrite)
    }
}

impl NodeDisk {
    fn new() -> NodeDisk {
        NodeDisk {
            disk: Disk::new(SIZE, Journal::PerFolder),
            opened: BTreeMap::new(),
            paths: BTreeSet::new(),
        }
    }

    /// Makes the folders of a path that the model does not have: they were there before.
    fn add_folders(&mut self, path: &[u8]) -> Answer<()> {
        for (i, _) in path
            .iter()
            .enumerate()
            .filter(|(i, b)| **b == b'/' && *i > 0)
        {
            let folder = &path[..i];
            if self.disk.stat(&caller(), folder, false).is_err() {
                self.disk.mkdir(&caller(), folder, FOLDER_MODE)?;
                let how = How {
                    directory: true,
                    ..How::new(Access::Read)
                };
                let opened = self.disk.open(&caller(), folder, how, 0)?;
                self.disk.fsync(&opened)?;
                self.disk.close(opened);
            }
        }
        Ok(())
    }

    /// Adds a file that was there before.
    fn add_file(&mut self, path: &[u8], data: &[u8]) -> Answer<()> {
        self.add_folders(path)?;
        if self.disk.stat(&caller(), path, false).is_ok() {
            return Ok(());
        }
        let opened = self.disk.open(&caller(), path, writable(), 0o644)?;
        if !data.is_empty() {
            self.disk.pwrite(&opened, data, 0)?;
        }
        self.disk.fsync(&opened)?;
        self.disk.close(opened);
        Ok(())
    }

    fn apply(&mut self, life: u32, f: &FileCall) -> Answer<()> {
        let (me, key) = (caller(), (life, f.fd));
        let opened = self.opened.get(&key).ok_or(Refusal::Errno(Errno::EBADF));
        match f.step {
            FileStep::Begins => Ok(()),
            FileStep::Known => self.add_file(&f.path, &f.data),
            FileStep::Opened => {
                self.add_folders(&f.path)?;
                let how = How {
                    truncate: f.n & open_bits::TRUNCATED != 0,
                    sync: f.n & open_bits::SYNC != 0,
                    ..writable()
                };
                let mode = (f.n >> open_bits::MODE) as u32 & 0o777;
                let new = self.disk.open(&me, &f.path, how, mode)?;
                if let Some(before) = self.opened.insert(key, new) {
                    self.disk.close(before);
                }
                Ok(())
            }
            FileStep::Written => {
                let at = i64::try_from(f.n).map_err(|_| Errno::EINVAL)?;
                self.disk.pwrite(opened?, &f.data, at).map(drop)
            }
            FileStep::Length => {
                let len = i64::try_from(f.n).map_err(|_| Errno::EINVAL)?;
                self.disk.ftruncate(opened?, len)
            }
            FileStep::Synced => self.disk.fsync(opened?),
            FileStep::Closed => {
                if let Some(opened) = self.opened.remove(&key) {
                    self.disk.close(opened);
                }
                Ok(())
            }
            FileStep::Renamed => {
                self.add_folders(&f.data)?;
                self.disk.rename(&me, &f.path, &f.data)
            }
            FileStep::Linked => {
                self.add_folders(&f.data)?;
                self.disk.link(&me, &f.path, &f.data)
            }
            FileStep::LinkedSoftly => {
                self.add_folders(&f.path)?;
                self.disk.symlink(&me, &f.data, &f.path)
            }
            FileStep::MadeFolder => {
                self.add_folders(&f.path)?;
                self.disk.mkdir(&me, &f.path, FOLDER_MODE)
            }
            FileStep::Removed => match self.disk.stat(&me, &f.path, false)?.kind {
                Kind::Folder => self.disk.rmdir(&me, &f.path),
                _ => self.disk.unlink(&me, &f.path),
            },
        }
    }

    /// Returns the contents of a file of the model.
    fn contents(&mut self, path: &[u8], size: u64) -> Answer<Vec<u8>> {
        let how = How::new(Access::Read);
        let mut opened = self.disk.open(&caller(), path, how, 0)?;
        let data = self.disk.read(&mut opened, size as usize);
        self.disk.close(opened);
        data
    }

    /// Makes the real files what the model has.
    fn restore(&mut self) -> io::Result<()> {
        let mut gone = Vec::new();
        for path in self.paths.clone() {
            let real = Path::new(OsStr::from_bytes(&path));
            let Ok(stat) = self.disk.stat(&caller(), &path, false) else {
                gone.push(path);
                continue;
            };
            match stat.kind {
                Kind::Folder => fs::create_dir_all(real)?,
                Kind::Link => {
                    let text = self.disk.readlink(&caller(), &path).unwrap_or_default();
                    remove(real)?;
                    symlink(OsStr::from_bytes(&text), real)?;
                }
                Kind::File => {
                    let data = self.contents(&path, stat.size).unwrap_or_default();
                    if fs::symlink_metadata(real).is_ok_and(|m| m.is_file())
                        && fs::read(real).is_ok_and(|is| is == data)
                    {
                        continue;
                    }
                    remove(real)?;
                    let mut new = fs::OpenOptions::new();
                    new.write(true).create_new(true).mode(stat.mode);
                    io::Write::write_all(&mut new.open(real)?, &data)?;
                }
            }
        }
        // What is in a folder goes before it.
        for path in gone.iter().rev() {
            remove(Path::new(OsStr::from_bytes(path)))?;
        }
        Ok(())
    }
}

/// Removes a name, if there is one. Folders that have something else are left.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(m) if m.is_dir() => {
            let _ = fs::remove_dir(path);
            Ok(())
        }
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

impl Disks {
    /// Notes a step of a node in its life of that number. Returns the path that the model does not
    /// know, if the step failed there.
    pub fn step(&mut self, node: Node, life: u32, f: &FileCall) -> Result<(), String> {
        let d = self.0.entry(node).or_insert_with(NodeDisk::new);
        let result = d.apply(life, f);
        // Contents are of one file, and text of a link is no path.
        let second = matches!(f.step, FileStep::Renamed | FileStep::Linked);
        let paths = [Some(&f.path), second.then_some(&f.data)];
        let paths = paths.into_iter().flatten().filter(|p| !p.is_empty());
        d.paths.extend(paths.cloned());
        result.map_err(|_| String::from_utf8_lossy(&f.path).into_owned())
    }

    /// A node's machine loses its power: what was not synced is lost, drawn by `numbers`.
    pub fn lose_power(&mut self, node: Node, numbers: &mut Stream) -> Result<(), String> {
        let Some(d) = self.0.get_mut(&node) else {
            return Ok(());
        };
        d.opened.clear();
        d.disk.power(Loss::Drawn, numbers);
        d.restore()
            .map_err(|e| format!("files could not be taken back: {e}"))
    }

    /// The node has ended otherwise: its files stay as they are.
    pub fn ended(&mut self, node: Node) {
        if let Some(d) = self.0.get_mut(&node) {
            for opened in std::mem::take(&mut d.opened).into_values() {
                d.disk.close(opened);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(d: &mut Disks, what: FileStep, n: u64, path: &Path, data: &[u8]) {
        let f = FileCall {
            step: what,
            fd: 5,
            n,
            path: path.as_os_str().as_bytes().to_vec(),
            data: data.to_vec(),
        };
        assert_eq!(d.step(1, 1, &f), Ok(()), "{f:?}");
    }

    #[test]
    fn what_was_not_synced_is_lost() {
        let folder = std::env::temp_dir().join(format!("purlin-disks-{}", std::process::id()));
        let mut seen = BTreeSet::new();
        for seed in 0..40 {
            fs::create_dir_all(&folder).expect("a folder");
            let (log, old) = (folder.join("log"), folder.join("old"));
            let mut d = Disks::default();
            fs::write(&old, b"before").expect("a file");
            step(&mut d, FileStep::Known, 0, &old, b"before");
            fs::remove_file(&old).expect("it is removed");
            step(&mut d, FileStep::Removed, 0, &old, b"");
            fs::write(&log, b"abcdef").expect("a file");
            step(
                &mut d,
                FileStep::Opened,
                0o600 << open_bits::MODE,
                &log,
                b"",
            );
            step(&mut d, FileStep::Written, 0, Path::new(""), b"abc");
            step(&mut d, FileStep::Synced, 0, Path::new(""), b"");
            step(&mut d, FileStep::Written, 3, Path::new(""), b"def");
            let mut numbers = Stream::from_state(seed);
            d.lose_power(1, &mut numbers).expect("it is restored");
            let log = fs::read(&log).expect("it was synced");
            assert!(log.starts_with(b"abc"), "{log:?}");
            // It was removed before the sync of a file in the same folder.
            assert!(!old.exists());
            seen.insert(log.len());
            fs::remove_dir_all(&folder).expect("the folder goes");
        }
        assert_eq!(seen, BTreeSet::from([3, 6]));
    }
}
