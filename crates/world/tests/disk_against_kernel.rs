//! Compares the model of a disk with the kernel's files.
//!
//! `WORLD_DIR` names the folder for them, by default that for temporary files. With root's rights
//! programs run both with and without them.

#![cfg(target_os = "linux")]

mod truth;

use purlin_world::disk::{Access, Caller, Disk, How, Journal, Kind, Opened, ROOT, Whence};
use purlin_world::streams::Stream;
use purlin_world::{Answer, Refusal};
use rustix::fs::{self as rfs, AtFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use truth::Count;

/// The folders between the one for a program and its own root, so that `..` stays within.
const ABOVE: &str = "1/2/3/4";

/// The number of descriptors that a program has.
const SLOTS: usize = 4;

type Text = Vec<u8>;

#[derive(Clone)]
enum Call {
    Open(usize, Text, How, u32),
    Close(usize),
    Read(usize, usize),
    Pread(usize, usize, i64),
    Write(usize, u8, usize),
    Pwrite(usize, u8, usize, i64),
    Seek(usize, i64, Whence),
    Ftruncate(usize, i64),
    Fsync(usize, bool),
    Fstat(usize),
    Stat(Text, bool),
    Access(Text, u32),
    Chmod(Text, u32),
    Mkdir(Text, u32),
    Rmdir(Text),
    Unlink(Text),
    Rename(Text, Text),
    Link(Text, Text),
    Symlink(Text, Text),
    Readlink(Text),
    List(Text),
    Chdir(Text),
    Getcwd,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |t: &Text| match t.len() {
            0..60 => format!("\"{}\"", String::from_utf8_lossy(t)),
            n => format!("<{n} bytes>"),
        };
        match self {
            Call::Open(n, p, how, mode) => {
                let flags = [
                    (how.create, "CREAT"),
                    (how.exclusive, "EXCL"),
                    (how.truncate, "TRUNC"),
                    (how.append, "APPEND"),
                    (how.directory, "DIRECTORY"),
                    (how.no_follow, "NOFOLLOW"),
                    (how.sync, "SYNC"),
                ];
                let flags: Vec<_> = flags.iter().filter(|f| f.0).map(|f| f.1).collect();
                let (p, access) = (text(p), how.access);
                write!(f, "{n} = open {p} {access:?} {} {mode:o}", flags.join("|"))
            }
            Call::Close(n) => write!(f, "close {n}"),
            Call::Read(n, len) => write!(f, "read {n} {len}"),
            Call::Pread(n, len, at) => write!(f, "pread {n} {len} at {at}"),
            Call::Write(n, byte, len) => write!(f, "write {n} {len} times {byte}"),
            Call::Pwrite(n, byte, len, at) => write!(f, "pwrite {n} {len} times {byte} at {at}"),
            Call::Seek(n, by, whence) => write!(f, "seek {n} {by} {whence:?}"),
            Call::Ftruncate(n, len) => write!(f, "ftruncate {n} {len}"),
            Call::Fsync(n, data) => write!(f, "{} {n}", if *data { "fdatasync" } else { "fsync" }),
            Call::Fstat(n) => write!(f, "fstat {n}"),
            Call::Stat(p, true) => write!(f, "stat {}", text(p)),
            Call::Stat(p, false) => write!(f, "lstat {}", text(p)),
            Call::Access(p, wanted) => write!(f, "access {} {wanted}", text(p)),
            Call::Chmod(p, mode) => write!(f, "chmod {} {mode:o}", text(p)),
            Call::Mkdir(p, mode) => write!(f, "mkdir {} {mode:o}", text(p)),
            Call::Rmdir(p) => write!(f, "rmdir {}", text(p)),
            Call::Unlink(p) => write!(f, "unlink {}", text(p)),
            Call::Rename(a, b) => write!(f, "rename {} {}", text(a), text(b)),
            Call::Link(a, b) => write!(f, "link {} {}", text(a), text(b)),
            Call::Symlink(a, b) => write!(f, "symlink {} {}", text(a), text(b)),
            Call::Readlink(p) => write!(f, "readlink {}", text(p)),
            Call::List(p) => write!(f, "list {}", text(p)),
            Call::Chdir(p) => write!(f, "chdir {}", text(p)),
            Call::Getcwd => write!(f, "getcwd"),
        }
    }
}

/// The result of a call, without what the model does not have.
#[derive(PartialEq, Debug)]
enum Outcome {
    Done,
    Number(u64),
    Bytes(Text),
    Names(Vec<Text>),
    Stat(Kind, u32, Option<(u32, u64)>),
    Failed(purlin_world::Errno),
}

// ---- programs ----

fn one_of<T: Clone>(numbers: &mut Stream, all: &[T]) -> T {
    all[numbers.below(all.len() as u64) as usize].clone()
}

fn name(numbers: &mut Stream) -> Text {
    match numbers.below(60) {
        0 => vec![b'n'; 255],
        1 => vec![b'n'; 256],
        2 => b".".to_vec(),
        n => vec![b"abc"[(n % 3) as usize]],
    }
}

/// Draws a path with at most one `..`: programs stay below the folder for them.
fn path(numbers: &mut Stream) -> Text {
    let mut path = Vec::new();
    let mut above = false;
    let parts = match numbers.below(40) {
        0 => return Vec::new(),
        1 => return vec![b'p'; if numbers.below(2) == 0 { 4095 } else { 4096 }],
        2..22 => 1,
        22..36 => 2,
        _ => 3,
    };
    for n in 0..parts {
        if n > 0 {
            path.push(b'/');
        }
        if !above && numbers.below(16) == 0 {
            above = true;
            path.extend(b"..");
        } else {
            path.extend(name(numbers));
        }
    }
    if numbers.below(12) == 0 {
        path.extend(one_of(numbers, &[&b"/"[..], b"//", b"/."]));
    }
    path
}

fn mode(numbers: &mut Stream) -> u32 {
    match numbers.below(8) {
        0 => (numbers.below(8) << 6) as u32,
        1 => numbers.below(0o1000) as u32,
        2 => 0o666,
        _ => 0o777,
    }
}

fn how(numbers: &mut Stream) -> How {
    let access = one_of(numbers, &[Access::Read, Access::Write, Access::ReadWrite]);
    let mut flag = |n: u64| numbers.below(n) == 0;
    let create = !flag(3);
    How {
        access,
        create,
        exclusive: create && flag(6),
        truncate: flag(6),
        append: flag(5),
        directory: flag(if create { 60 } else { 4 }),
        no_follow: flag(8),
        sync: false,
    }
}

fn offset(numbers: &mut Stream) -> i64 {
    match numbers.below(12) {
        0 => -1,
        1 => 4096 + numbers.below(3) as i64 - 1,
        2 => numbers.below(1 << 30) as i64,
        3 => i64::MAX - 1,
        _ => numbers.below(9000) as i64,
    }
}

fn length(numbers: &mut Stream) -> usize {
    match numbers.below(8) {
        0 => 0,
        1 => 4096,
        2 => numbers.below(9000) as usize,
        _ => numbers.below(40) as usize,
    }
}

fn call(numbers: &mut Stream) -> Call {
    let slot = numbers.below(SLOTS as u64) as usize;
    let byte = 1 + numbers.below(250) as u8;
    match numbers.below(64) {
        0..10 => Call::Open(slot, path(numbers), how(numbers), mode(numbers)),
        10 | 11 => Call::Close(slot),
        12 | 13 => Call::Read(slot, length(numbers)),
        14 | 15 => Call::Pread(slot, length(numbers), offset(numbers)),
        16..20 => Call::Write(slot, byte, length(numbers)),
        20 | 21 => Call::Pwrite(slot, byte, length(numbers), offset(numbers)),
        22 | 23 => {
            let whence = one_of(numbers, &[Whence::Set, Whence::Current, Whence::End]);
            let by = offset(numbers) * one_of(numbers, &[1, 1, -1]);
            Call::Seek(slot, by, whence)
        }
        24 | 25 => Call::Ftruncate(slot, offset(numbers)),
        26 => Call::Fstat(slot),
        27 if numbers.below(20) == 0 => Call::Fsync(slot, numbers.below(2) == 0),
        27..31 => Call::Stat(path(numbers), numbers.below(2) == 0),
        31 => Call::Access(path(numbers), numbers.below(9) as u32),
        32 | 33 => Call::Chmod(path(numbers), mode(numbers)),
        34..41 => Call::Mkdir(path(numbers), mode(numbers)),
        41..43 => Call::Rmdir(path(numbers)),
        43..46 => Call::Unlink(path(numbers)),
        46..51 => Call::Rename(path(numbers), path(numbers)),
        51..54 => Call::Link(path(numbers), path(numbers)),
        54..58 => Call::Symlink(path(numbers), path(numbers)),
        58 => Call::Readlink(path(numbers)),
        59 | 60 => Call::List(path(numbers)),
        61 | 62 => Call::Chdir(path(numbers)),
        _ => Call::Getcwd,
    }
}

fn program(numbers: &mut Stream) -> Vec<Call> {
    let length = 1 + numbers.below(40);
    // At first something to find.
    let begin = (0..numbers.below(6)).map(|_| match numbers.below(3) {
        0 => Call::Mkdir(name(numbers), 0o777),
        1 => Call::Symlink(path(numbers), name(numbers)),
        _ => {
            let how = How {
                create: true,
                ..How::new(Access::ReadWrite)
            };
            Call::Open(
                numbers.below(SLOTS as u64) as usize,
                name(numbers),
                how,
                0o666,
            )
        }
    });
    let mut calls: Vec<Call> = begin.collect();
    // Most calls that fail on the model are drawn again, so that more of them do something.
    let mut model = Model::new(numbers.below(2) == 0);
    calls.iter().for_each(|c| _ = model.run(c));
    for _ in 0..length {
        let mut next = call(numbers);
        let mut tries = 0;
        while model.run(&next).is_err() && tries < 3 && numbers.below(5) > 0 {
            next = call(numbers);
            tries += 1;
        }
        calls.push(next);
    }
    calls
}

// ---- the model's side ----

struct Model {
    disk: Disk,
    caller: Caller,
    slots: [Option<Opened>; SLOTS],
}

const BAD: Refusal = Refusal::Errno(purlin_world::Errno::EBADF);

impl Model {
    fn new(privileged: bool) -> Self {
        let mut caller = Caller {
            cwd: ROOT,
            umask: 0o022,
            privileged,
        };
        let mut disk = Disk::new(1 << 30, Journal::Whole);
        for name in format!("{ABOVE}/r").split('/') {
            let name = name.as_bytes();
            disk.mkdir(&caller, name, 0o777).expect("a folder");
            caller.cwd = disk.chdir(&caller, name).expect("a folder");
        }
        Model {
            disk,
            caller,
            slots: Default::default(),
        }
    }

    fn run(&mut self, call: &Call) -> Answer<Outcome> {
        let (disk, caller) = (&mut self.disk, &mut self.caller);
        let slots = &mut self.slots;
        let done = |r: Answer<()>| r.map(|()| Outcome::Done);
        let number = |n: usize| Outcome::Number(n as u64);
        Ok(match call {
            Call::Open(n, path, how, mode) => {
                let opened = disk.open(caller, path, *how, *mode)?;
                if let Some(before) = slots[*n].replace(opened) {
                    disk.close(before);
                }
                Outcome::Done
            }
            Call::Close(n) => {
                disk.close(slots[*n].take().ok_or(BAD)?);
                Outcome::Done
            }
            Call::Read(n, len) => Outcome::Bytes(disk.read(slots[*n].as_mut().ok_or(BAD)?, *len)?),
            Call::Pread(n, len, at) => {
                Outcome::Bytes(disk.pread(slots[*n].as_ref().ok_or(BAD)?, *len, *at)?)
            }
            Call::Write(n, byte, len) => {
                number(disk.write(slots[*n].as_mut().ok_or(BAD)?, &vec![*byte; *len])?)
            }
            Call::Pwrite(n, byte, len, at) => {
                let opened = slots[*n].as_ref().ok_or(BAD)?;
                number(disk.pwrite(opened, &vec![*byte; *len], *at)?)
            }
            Call::Seek(n, by, whence) => {
                Outcome::Number(disk.seek(slots[*n].as_mut().ok_or(BAD)?, *by, *whence)?)
            }
            Call::Ftruncate(n, len) => {
                return done(disk.ftruncate(slots[*n].as_ref().ok_or(BAD)?, *len));
            }
            Call::Fsync(n, _) => return done(disk.fsync(slots[*n].as_ref().ok_or(BAD)?)),
            Call::Fstat(n) => stat(disk.fstat(slots[*n].as_ref().ok_or(BAD)?)?),
            Call::Stat(path, follows) => stat(disk.stat(caller, path, *follows)?),
            Call::Access(path, wanted) => return done(disk.access(caller, path, *wanted)),
            Call::Chmod(path, mode) => return done(disk.chmod(caller, path, *mode)),
            Call::Mkdir(path, mode) => return done(disk.mkdir(caller, path, *mode)),
            Call::Rmdir(path) => return done(disk.rmdir(caller, path)),
            Call::Unlink(path) => return done(disk.unlink(caller, path)),
            Call::Rename(from, to) => return done(disk.rename(caller, from, to)),
            Call::Link(from, to) => return done(disk.link(caller, from, to)),
            Call::Symlink(text, path) => return done(disk.symlink(caller, text, path)),
            Call::Readlink(path) => Outcome::Bytes(disk.readlink(caller, path)?),
            Call::List(path) => Outcome::Names(disk.list(caller, path)?),
            Call::Chdir(path) => {
                caller.cwd = disk.chdir(caller, path)?;
                Outcome::Done
            }
            Call::Getcwd => Outcome::Bytes(disk.getcwd(caller)?),
        })
    }
}

fn stat(stat: purlin_world::disk::Stat) -> Outcome {
    // Sizes and links of folders depend on the file system, which the kernel leaves to it.
    let rest = (stat.kind != Kind::Folder).then_some((stat.links, stat.size));
    Outcome::Stat(stat.kind, stat.mode, rest)
}

// ---- the kernel's side ----

struct Real {
    /// The folder that the model's root is.
    base: PathBuf,
    cwd: OwnedFd,
    slots: [Option<OwnedFd>; SLOTS],
}

fn flags(how: How) -> OFlags {
    let mut flags = match how.access {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::WRONLY,
        Access::ReadWrite => OFlags::RDWR,
    };
    flags.set(OFlags::CREATE, how.create);
    flags.set(OFlags::EXCL, how.exclusive);
    flags.set(OFlags::TRUNC, how.truncate);
    flags.set(OFlags::APPEND, how.append);
    flags.set(OFlags::DIRECTORY, how.directory);
    flags.set(OFlags::NOFOLLOW, how.no_follow);
    flags.set(OFlags::DSYNC, how.sync);
    flags | OFlags::CLOEXEC
}

fn real_stat(stat: rfs::Stat) -> Outcome {
    let kind = match rfs::FileType::from_raw_mode(stat.st_mode) {
        rfs::FileType::RegularFile => Kind::File,
        rfs::FileType::Directory => Kind::Folder,
        _ => Kind::Link,
    };
    let rest = (kind != Kind::Folder).then_some((stat.st_nlink as u32, stat.st_size as u64));
    Outcome::Stat(kind, stat.st_mode & 0o7777, rest)
}

impl Real {
    fn new(base: &Path) -> Self {
        let root = base.join(ABOVE).join("r");
        fs::create_dir_all(&root).expect("folders");
        let cwd = rfs::open(&root, OFlags::PATH | OFlags::DIRECTORY, Mode::empty());
        Real {
            base: base.to_path_buf(),
            cwd: cwd.expect("the folder just made"),
            slots: Default::default(),
        }
    }

    fn run(&mut self, call: &Call) -> Result<Outcome, Errno> {
        let cwd = &self.cwd;
        let slots = &mut self.slots;
        let slot = |n: usize| slots[n].as_ref().ok_or(Errno::BADF);
        let follow = |f: bool| {
            if f {
                AtFlags::empty()
            } else {
                AtFlags::SYMLINK_NOFOLLOW
            }
        };
        match call {
            Call::Open(n, path, how, mode) => {
                let mode = Mode::from_raw_mode(*mode);
                slots[*n] = Some(rfs::openat(cwd, path, flags(*how), mode)?);
            }
            Call::Close(n) => drop(slots[*n].take().ok_or(Errno::BADF)?),
            Call::Read(n, len) => {
                let mut data = vec![0; *len];
                let n = rustix::io::read(slot(*n)?, &mut data[..])?;
                data.truncate(n);
                return Ok(Outcome::Bytes(data));
            }
            Call::Pread(n, len, at) => {
                let mut data = vec![0; *len];
                let n = rustix::io::pread(slot(*n)?, &mut data[..], *at as u64)?;
                data.truncate(n);
                return Ok(Outcome::Bytes(data));
            }
            Call::Write(n, byte, len) => {
                let n = rustix::io::write(slot(*n)?, &vec![*byte; *len])?;
                return Ok(Outcome::Number(n as u64));
            }
            Call::Pwrite(n, byte, len, at) => {
                let n = rustix::io::pwrite(slot(*n)?, &vec![*byte; *len], *at as u64)?;
                return Ok(Outcome::Number(n as u64));
            }
            Call::Seek(n, by, whence) => {
                let to = match whence {
                    Whence::Set => SeekFrom::Start(*by as u64),
                    Whence::Current => SeekFrom::Current(*by),
                    Whence::End => SeekFrom::End(*by),
                };
                return Ok(Outcome::Number(rfs::seek(slot(*n)?, to)?));
            }
            Call::Ftruncate(n, len) => rfs::ftruncate(slot(*n)?, *len as u64)?,
            Call::Fsync(n, true) => rfs::fdatasync(slot(*n)?)?,
            Call::Fsync(n, false) => rfs::fsync(slot(*n)?)?,
            Call::Fstat(n) => return Ok(real_stat(rfs::fstat(slot(*n)?)?)),
            Call::Stat(path, follows) => {
                return Ok(real_stat(rfs::statat(cwd, path, follow(*follows))?));
            }
            Call::Access(path, wanted) => {
                let wanted = rfs::Access::from_bits_retain(*wanted);
                rfs::accessat(cwd, path, wanted, AtFlags::empty())?;
            }
            Call::Chmod(path, mode) => {
                rfs::chmodat(cwd, path, Mode::from_raw_mode(*mode), AtFlags::empty())?;
            }
            Call::Mkdir(path, mode) => rfs::mkdirat(cwd, path, Mode::from_raw_mode(*mode))?,
            Call::Rmdir(path) => rfs::unlinkat(cwd, path, AtFlags::REMOVEDIR)?,
            Call::Unlink(path) => rfs::unlinkat(cwd, path, AtFlags::empty())?,
            Call::Rename(from, to) => rfs::renameat(cwd, from, cwd, to)?,
            Call::Link(from, to) => rfs::linkat(cwd, from, cwd, to, AtFlags::empty())?,
            Call::Symlink(text, path) => rfs::symlinkat(text, cwd, path)?,
            Call::Readlink(path) => {
                let text = rfs::readlinkat(cwd, path, Vec::new())?;
                return Ok(Outcome::Bytes(text.into_bytes()));
            }
            Call::List(path) => return self.list(path),
            Call::Chdir(path) => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let to = rfs::openat(cwd, path, flags, Mode::empty())?;
                rfs::accessat(&to, ".", rfs::Access::EXEC_OK, AtFlags::empty())?;
                self.cwd = to;
            }
            Call::Getcwd => return self.getcwd(),
        }
        Ok(Outcome::Done)
    }

    fn list(&self, path: &Text) -> Result<Outcome, Errno> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut names = Vec::new();
        for entry in rfs::Dir::new(rfs::openat(&self.cwd, path, flags, Mode::empty())?)? {
            names.push(entry?.file_name().to_bytes().to_vec());
        }
        names.retain(|n| n != b"." && n != b"..");
        names.sort();
        Ok(Outcome::Names(names))
    }

    fn getcwd(&self) -> Result<Outcome, Errno> {
        let link = format!("/proc/self/fd/{}", self.cwd.as_raw_fd());
        let path = fs::read_link(link).expect("the path of a descriptor");
        let path = path.as_os_str().as_bytes();
        if path.ends_with(b" (deleted)") {
            return Err(Errno::NOENT);
        }
        let path = path.strip_prefix(self.base.as_os_str().as_bytes());
        Ok(Outcome::Bytes(
            match path.expect("a folder of the program") {
                b"" => b"/".to_vec(),
                path => path.to_vec(),
            },
        ))
    }
}

/// Removes a folder whatever the permissions within are.
fn clear(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    if fs::remove_dir_all(folder).is_ok() {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            clear(&entry.path());
        }
    }
    fs::remove_dir_all(folder).expect("a folder with permissions");
}

fn run(program: &[Call], base: &Path, count: &mut Count) -> Result<(), String> {
    let privileged = rustix::process::geteuid().is_root();
    let mut model = Model::new(privileged);
    let mut real = Real::new(base);
    let mut result = Ok(());
    // At last all that there is, from the root of the program on.
    let last = ["", "a", "b", "c", "a/a", "a/b", "b/a", "c/c"];
    let last = last.iter().flat_map(|p| {
        let path = [b"./", p.as_bytes()].concat();
        [Call::Stat(path.clone(), false), Call::List(path)]
    });
    for (n, call) in program.iter().cloned().chain(last).enumerate() {
        let counts = n < program.len();
        let model = match model.run(&call) {
            Ok(outcome) => outcome,
            Err(Refusal::Errno(e)) => Outcome::Failed(e),
            Err(Refusal::NotModelled(_)) => {
                if counts {
                    count.refused();
                }
                continue;
            }
        };
        let real = real.run(&call);
        let error = real
            .as_ref()
            .err()
            .map(|e| purlin_world::Errno(e.raw_os_error()));
        if counts {
            count.call(&call, error);
        }
        let real = real.unwrap_or_else(|e| Outcome::Failed(purlin_world::Errno(e.raw_os_error())));
        if model != real {
            result = Err(format!("{call:?}\n  model {model:?}\n  kernel {real:?}"));
            break;
        }
    }
    drop(real);
    clear(&base.join("1"));
    result
}

/// Returns calls on a chain of more links than a path may lead through, which none of the random
/// programs has.
fn chain() -> Vec<Call> {
    let name = |n: u32| format!("l{n}").into_bytes();
    let mut calls = vec![Call::Mkdir(name(0), 0o777)];
    for n in 1..45 {
        calls.push(Call::Symlink(name(n - 1), name(n)));
        calls.push(Call::Stat(name(n), true));
        calls.push(Call::Stat([&name(n)[..], b"/."].concat(), false));
    }
    calls
}

/// Results without which the programs show little.
const WANTED: &[(&str, &str)] = &[
    ("open", "ok"),
    ("open", "EEXIST"),
    ("open", "EISDIR"),
    ("open", "ELOOP"),
    ("read", "ok"),
    ("read", "EISDIR"),
    ("write", "ok"),
    ("pwrite", "EINVAL"),
    ("rename", "ok"),
    ("rename", "EINVAL"),
    ("rename", "ENOTEMPTY"),
    ("link", "EPERM"),
    ("rmdir", "ENOTEMPTY"),
    ("unlink", "EISDIR"),
];

/// Runs programs in a folder that is made for them.
fn programs(what: &str) {
    let place = std::env::var_os("WORLD_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let base = place.join(format!("purlin-world-{}-{what}", std::process::id()));
    fs::create_dir(&base).expect("a folder");
    // Paths of working directories are compared with this one.
    let base = base.canonicalize().expect("a path");
    if let Err(difference) = run(&chain(), &base, &mut Count::default()) {
        panic!("{what}: a chain of links: {difference}");
    }
    truth::compare(what, 1, WANTED, program, |p, count| run(p, &base, count));
    clear(&base);
}

/// The user that has no rights on any machine.
const USER: u32 = 65534;

#[test]
fn files_answer_as_the_kernel_does() {
    rustix::process::umask(Mode::from_raw_mode(0o022));
    if rustix::process::geteuid().is_root() {
        programs("files-root");
        let other = std::thread::spawn(|| {
            let (user, group) = (rfs::Uid::from_raw(USER), rfs::Gid::from_raw(USER));
            rustix::thread::set_thread_groups(&[]).expect("root's rights");
            rustix::thread::set_thread_res_gid(group, group, group).expect("root's rights");
            rustix::thread::set_thread_res_uid(user, user, user).expect("root's rights");
            programs("files");
        });
        if let Err(panic) = other.join() {
            std::panic::resume_unwind(panic);
        }
    } else {
        programs("files");
    }
}
