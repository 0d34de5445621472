//! Natives of module `prim_file` that work on names, and those that convert names.
//!
//! Operations run on dirty threads. Two of them, whose rows say `here`, are tried on the scheduler
//! first: `read_info_nif` and `list_dir_nif` of what is in memory take less time than the way to
//! another thread.

use super::at_once;
use super::prim_file::{done, int_arg, name_here, path_arg, posix_error};
use crate::cx::{BifResult, Cx, Fail};
use crate::filename::{self, Encoding};
use crate::options::FilenameWarning;
use crate::os::file_calls;
use crate::{bifs, embedded, lazy_atoms};
use purlin_term::{Alloc, NIL, Term, am, arith, atom};
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;

lazy_atoms! {
    device = "device";
    pub(crate) directory = "directory";
    file_info_tag = "file_info";
    other = "other";
    read_write = "read_write";
    regular = "regular";
    symlink = "symlink";
}

/// Runs an operation on a path that has no result.
fn on_path(cx: &mut Cx, path: Term, op: impl FnOnce(&CStr) -> Result<(), i32>) -> BifResult {
    let r = path_arg(path).and_then(|p| op(&p));
    done(cx, r)
}

/// Runs an operation on two paths that has no result.
fn on_paths(
    cx: &mut Cx,
    a: Term,
    b: Term,
    op: impl FnOnce(&CStr, &CStr) -> Result<(), i32>,
) -> BifResult {
    let r = path_arg(a).and_then(|a| path_arg(b).and_then(|b| op(&a, &b)));
    done(cx, r)
}

/// `{ok, T}` or `{error, Name}`.
fn ok_or_error(cx: &mut Cx, r: Result<Term, i32>) -> BifResult {
    Ok(match r {
        Ok(t) => cx.ok(t),
        Err(e) => posix_error(cx, e),
    })
}

/// The record `file_info` of the library's `file.hrl`. `access`: bit 0 reading, bit 1 writing.
/// Numbers of devices, links and nodes have 32 bits there, as in stock.
pub(super) fn file_info(cx: &mut Cx, st: &libc::stat, access: u8) -> Term {
    let kind = match st.st_mode & libc::S_IFMT {
        libc::S_IFCHR | libc::S_IFBLK => device(),
        libc::S_IFDIR => directory(),
        libc::S_IFREG => regular(),
        libc::S_IFLNK => symlink(),
        _ => other(),
    };
    let access = match access {
        0 => am::NONE,
        1 => am::READ,
        2 => am::WRITE,
        _ => read_write(),
    };
    let low = |n: u64| Term::small(n as u32 as i64);
    let items = [
        file_info_tag(),
        cx.uint(st.st_size as u64),
        kind,
        access,
        cx.int(st.st_atime),
        cx.int(st.st_mtime),
        cx.int(st.st_ctime),
        low(st.st_mode as u64),
        low(st.st_nlink as u64),
        low(st.st_dev as u64),
        low(st.st_rdev as u64),
        low(st.st_ino as u64),
        low(st.st_uid as u64),
        low(st.st_gid as u64),
    ];
    cx.tuple(&items)
}

fn stat(path: &CStr, follow: bool) -> Result<(libc::stat, u8), i32> {
    if let Some(r) = embedded::status(path.to_bytes()) {
        return r.map(|st| (st, 1));
    }
    let (st, access) = file_calls::status(path, follow)?;
    at_once::learn_device(path, st.st_dev, follow);
    Ok((st, access))
}

fn read_info_2(cx: &mut Cx, [path, follow]: [Term; 2]) -> BifResult {
    let follow = int_arg(follow)? != 0;
    let found = match cx.dirty {
        true => path_arg(path).and_then(|p| stat(&p, follow)),
        false => {
            let within = |p: &[u8]| Some(embedded::status(p)?.map(|st| (st, 1)));
            name_here(path, within, |p| at_once::look(p, follow))?
        }
    };
    Ok(match found {
        Ok((st, access)) => file_info(cx, &st, access),
        Err(e) => posix_error(cx, e),
    })
}

fn set_permissions_2(cx: &mut Cx, [path, mode]: [Term; 2]) -> BifResult {
    let mode = arith::to_u64(mode)
        .and_then(|n| u32::try_from(n).ok())
        .ok_or(Fail::Badarg)?;
    on_path(cx, path, |p| file_calls::set_mode(p, mode))
}

fn set_owner_3(cx: &mut Cx, [path, uid, gid]: [Term; 3]) -> BifResult {
    // -1 leaves the owner or the group unchanged.
    let (uid, gid) = (int_arg(uid)? as u32, int_arg(gid)? as u32);
    on_path(cx, path, |p| file_calls::set_owner(p, uid, gid))
}

fn set_time_4(cx: &mut Cx, [path, accessed, modified, created]: [Term; 4]) -> BifResult {
    let seconds = |t| arith::to_i64(t).ok_or(Fail::Badarg);
    let (accessed, modified, _) = (seconds(accessed)?, seconds(modified)?, seconds(created)?);
    on_path(cx, path, |p| file_calls::set_times(p, accessed, modified))
}

fn read_link_1(cx: &mut Cx, [path]: [Term; 1]) -> BifResult {
    let r = path_arg(path).and_then(|p| {
        if let Some(r) = embedded::find(p.to_bytes()) {
            return Err(r.err().unwrap_or(libc::EINVAL));
        }
        let to = file_calls::read_link(&p)?;
        Ok(cx.binary(to.as_os_str().as_bytes()))
    });
    ok_or_error(cx, r)
}

/// The names that a scheduler has found in a directory.
enum Listed {
    Embedded(Vec<&'static str>),
    Read(at_once::Names),
}

/// Names made for each reduction.
const NAMES_PER_REDUCTION: usize = 16;

fn names_term<'a>(cx: &mut Cx, names: impl Iterator<Item = &'a [u8]>) -> Term {
    let mut list = NIL;
    for (n, name) in names.enumerate() {
        let name = cx.binary(name);
        list = cx.cons(name, list);
        if n % NAMES_PER_REDUCTION == 0 {
            cx.bump(1);
        }
    }
    list
}

/// The names in a directory, in reverse order of reading.
fn list_dir_1(cx: &mut Cx, [path]: [Term; 1]) -> BifResult {
    if !cx.dirty {
        let within = |p: &[u8]| Some(embedded::list(p)?.map(Listed::Embedded));
        let known = |p: &CStr| Some(at_once::list(p)?.map(Listed::Read));
        let r = name_here(path, within, known)?.map(|found| match found {
            Listed::Embedded(names) => names_term(cx, names.iter().map(|n| n.as_bytes())),
            Listed::Read(names) => names_term(cx, names.iter()),
        });
        return ok_or_error(cx, r);
    }
    let r = path_arg(path).and_then(|p| {
        if let Some(r) = embedded::list(p.to_bytes()) {
            return Ok(names_term(cx, r?.iter().map(|n| n.as_bytes())));
        }
        let mut names = NIL;
        for (n, entry) in file_calls::list(&p)?.enumerate() {
            // A directory that cannot be read further ends there, as in stock.
            let Ok(entry) = entry else { break };
            let name = cx.binary(entry.file_name().as_bytes());
            names = cx.cons(name, names);
            if n % NAMES_PER_REDUCTION == 0 {
                cx.bump(1);
            }
        }
        at_once::learn_path(&p);
        Ok(names)
    });
    ok_or_error(cx, r)
}

fn rename_2(cx: &mut Cx, [from, to]: [Term; 2]) -> BifResult {
    on_paths(cx, from, to, |from, to| {
        file_calls::rename(from, to).map_err(|e| match e {
            libc::ENOTEMPTY => libc::EEXIST,
            _ if from == c"/" => libc::EINVAL,
            e => e,
        })
    })
}

fn make_hard_link_2(cx: &mut Cx, [old, new]: [Term; 2]) -> BifResult {
    on_paths(cx, old, new, file_calls::link)
}

fn make_soft_link_2(cx: &mut Cx, [old, new]: [Term; 2]) -> BifResult {
    on_paths(cx, old, new, file_calls::link_softly)
}

fn make_dir_1(cx: &mut Cx, [path]: [Term; 1]) -> BifResult {
    on_path(cx, path, file_calls::make_dir)
}

fn del_file_1(cx: &mut Cx, [path]: [Term; 1]) -> BifResult {
    on_path(cx, path, |p| {
        file_calls::unlink(p).map_err(|e| match e {
            // The error that POSIX requires for a directory, unlike Linux's.
            libc::EISDIR => libc::EPERM,
            e => e,
        })
    })
}

fn del_dir_1(cx: &mut Cx, [path]: [Term; 1]) -> BifResult {
    on_path(cx, path, |p| {
        file_calls::remove_dir(p).map_err(|e| match e {
            libc::EEXIST | libc::ENOTEMPTY if is_cwd(p) => libc::EINVAL,
            libc::ENOTEMPTY => libc::EEXIST,
            e => e,
        })
    })
}

fn is_cwd(p: &CStr) -> bool {
    let of = |p| stat(p, true).map(|(st, _)| (st.st_dev, st.st_ino));
    of(p).is_ok_and(|a| of(c".") == Ok(a))
}

/// No device has a current directory of its own here.
fn get_device_cwd_1(cx: &mut Cx, [index]: [Term; 1]) -> BifResult {
    int_arg(index)?;
    Ok(posix_error(cx, libc::ENOTSUP))
}

fn get_cwd_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let r = file_calls::current_dir().map(|p| cx.binary(p.as_os_str().as_bytes()));
    ok_or_error(cx, r)
}

fn set_cwd_1(cx: &mut Cx, [path]: [Term; 1]) -> BifResult {
    on_path(cx, path, file_calls::set_current_dir)
}

/// Files have no alternative names here.
fn altname_1(cx: &mut Cx, [path]: [Term; 1]) -> BifResult {
    let e = path_arg(path).err().unwrap_or(libc::ENOTSUP);
    Ok(posix_error(cx, e))
}

/// A name in the system's form, with a final zero.
fn internal_name2native_1(cx: &mut Cx, [name]: [Term; 1]) -> BifResult {
    if name.is_atom() {
        return Err(Fail::Badarg);
    }
    let mut native = filename::any_to_native(name).ok_or(Fail::Badarg)?;
    cx.bump(native.len() / 256);
    native.push(0);
    Ok(cx.binary(&native))
}

fn internal_native2name_1(cx: &mut Cx, [native]: [Term; 1]) -> BifResult {
    let b = native.as_binary().ok_or(Fail::Badarg)?;
    cx.bump(b.len() / 256);
    Ok(match filename::from_native(cx, &b) {
        Some(t) => t,
        None => {
            let how = match filename::warning() {
                FilenameWarning::Warning => am::WARNING,
                FilenameWarning::Ignore => am::IGNORE,
                FilenameWarning::Error => am::ERROR,
            };
            cx.err(how)
        }
    })
}

/// The characters of a name in composed form, which the library's module `unicode` makes.
fn internal_normalize_utf8_1(cx: &mut Cx, [name]: [Term; 1]) -> BifResult {
    let b = name.as_binary().ok_or(Fail::Badarg)?;
    std::str::from_utf8(&b).map_err(|_| Fail::Badarg)?;
    let to = crate::code::export(am::UNICODE, atom::intern("characters_to_nfc_list"), 1);
    Err(cx.trap(to, &[name]))
}

fn is_translatable_1(_: &mut Cx, [name]: [Term; 1]) -> BifResult {
    let b = name.as_binary().ok_or(Fail::Badarg)?;
    let yes = filename::encoding() == Encoding::Latin1 || std::str::from_utf8(&b).is_ok();
    Ok(Term::bool(yes))
}

fn native_name_encoding_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(match filename::encoding() {
        Encoding::Latin1 => am::LATIN1,
        Encoding::Utf8 => am::UTF8,
    })
}

bifs! {
    DirtyIo "prim_file":"read_info_nif"/2 = read_info_2 [here reads(File) recorded outside(Read)];
    DirtyIo "prim_file":"set_permissions_nif"/2 = set_permissions_2 [writes(File) recorded outside(Changed)];
    DirtyIo "prim_file":"set_owner_nif"/3 = set_owner_3 [writes(File) recorded outside(Changed)];
    DirtyIo "prim_file":"set_time_nif"/4 = set_time_4 [writes(File) recorded outside(Changed)];
    DirtyIo "prim_file":"read_link_nif"/1 = read_link_1 [reads(File) recorded outside(Read)];
    DirtyIo "prim_file":"list_dir_nif"/1 = list_dir_1 [here reads(File) recorded outside(Read)];
    DirtyIo "prim_file":"rename_nif"/2 = rename_2 [writes(File) recorded outside(Changed)];
    DirtyIo "prim_file":"make_hard_link_nif"/2 = make_hard_link_2 [writes(File) recorded outside(Changed)];
    DirtyIo "prim_file":"make_soft_link_nif"/2 = make_soft_link_2 [writes(File) recorded outside(Changed)];
    DirtyIo "prim_file":"make_dir_nif"/1 = make_dir_1 [writes(File) recorded outside(Changed)];
    DirtyIo "prim_file":"del_file_nif"/1 = del_file_1 [writes(File) recorded outside(Changed)];
    DirtyIo "prim_file":"del_dir_nif"/1 = del_dir_1 [writes(File) recorded outside(Changed)];
    DirtyIo "prim_file":"get_device_cwd_nif"/1 = get_device_cwd_1 [recorded];
    DirtyIo "prim_file":"get_cwd_nif"/0 = get_cwd_0 [recorded];
    DirtyIo "prim_file":"set_cwd_nif"/1 = set_cwd_1 [recorded];
    DirtyIo "prim_file":"altname_nif"/1 = altname_1 [recorded];
    Plain "prim_file":"internal_name2native"/1 = internal_name2native_1 [recorded];
    Plain "prim_file":"internal_native2name"/1 = internal_native2name_1 [recorded];
    Plain "prim_file":"internal_normalize_utf8"/1 = internal_normalize_utf8_1 [recorded];
    Plain "prim_file":"is_translatable"/1 = is_translatable_1 [recorded];
    Plain "file":"native_name_encoding"/0 = native_name_encoding_0;
}
