//! Natives of module `erl_ddll`: drivers in shared objects, which this runtime cannot load. Asked to, it gives the
//! errors of a file that is not there or is none; the drivers it has count as linked in.

use crate::cx::{BifResult, Cx, Fail};
use crate::port::driver;
use crate::posix::errno_of;
use crate::{bifs, filename, lazy_atoms};
use purlin_term::{Alloc, NIL, Term, am};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

lazy_atoms! {
    already_loaded = "already_loaded";
    awaiting_load = "awaiting_load";
    awaiting_unload = "awaiting_unload";
    driver_options = "driver_options";
    inconsistent = "inconsistent";
    linked_in_driver = "linked_in_driver";
    not_loaded_by_this_process = "not_loaded_by_this_process";
    not_pending = "not_pending";
    open_error = "open_error";
    permanent = "permanent";
    processes = "processes";
}

/// Numbers of errors, which `format_error_int/1` turns into text: the file can't be read, for the reason that the
/// number minus this one is; the file is there.
const UNREADABLE: i64 = -10_000;
const NOT_SUPPORTED: i64 = -11;

/// A driver's name.
fn name_arg(t: Term) -> Result<Vec<u8>, Fail> {
    filename::any_to_native(t).ok_or(Fail::Badarg)
}

fn is_builtin(name: &[u8]) -> bool {
    driver::names().any(|n| n.as_bytes() == name)
}

fn try_load_3(cx: &mut Cx, [path, name, options]: [Term; 3]) -> BifResult {
    let mut file = name_arg(path)?;
    let name = name_arg(name)?;
    if name.is_empty() || !options.is_list() {
        return Err(Fail::Badarg);
    }
    if is_builtin(&name) {
        return Ok(cx.err(linked_in_driver()));
    }
    file.push(b'/');
    file.extend_from_slice(&name);
    file.extend_from_slice(b".so");
    let number = match std::fs::File::open(OsStr::from_bytes(&file)) {
        Ok(_) => NOT_SUPPORTED,
        Err(e) => UNREADABLE - errno_of(&e) as i64,
    };
    let e = cx.tuple(&[open_error(), Term::small(number)]);
    Ok(cx.err(e))
}

fn try_unload_2(cx: &mut Cx, [name, options]: [Term; 2]) -> BifResult {
    let name = name_arg(name)?;
    if !options.is_list() {
        return Err(Fail::Badarg);
    }
    Ok(if is_builtin(&name) {
        cx.err(linked_in_driver())
    } else {
        cx.err(am::NOT_LOADED)
    })
}

fn loaded_drivers_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let names: Vec<Term> = driver::names().map(|n| cx.string(n)).collect();
    let list = cx.list_tail(&names, NIL);
    Ok(cx.ok(list))
}

fn info_2(_: &mut Cx, [name, item]: [Term; 2]) -> BifResult {
    let name = name_arg(name)?;
    if !is_builtin(&name) {
        return Err(Fail::Badarg);
    }
    match item {
        i if i == linked_in_driver() => Ok(am::TRUE),
        i if i == permanent() => Ok(am::FALSE),
        i if [
            processes(),
            driver_options(),
            am::PORT_COUNT,
            awaiting_load(),
            awaiting_unload(),
        ]
        .contains(&i) =>
        {
            Ok(linked_in_driver())
        }
        _ => Err(Fail::Badarg),
    }
}

fn format_error_int_1(cx: &mut Cx, [e]: [Term; 1]) -> BifResult {
    let text = match e {
        e if e == inconsistent() => {
            "the driver's name or options differ from those it was loaded with"
        }
        e if e == linked_in_driver() => {
            "the driver is part of the runtime and can't be loaded or unloaded"
        }
        e if e == permanent() => "the driver stays and can't be unloaded or loaded again",
        am::NOT_LOADED => "the driver is not loaded",
        e if e == not_loaded_by_this_process() => "the driver was not loaded by this process",
        e if e == not_pending() => "no load of this driver is under way",
        e if e == already_loaded() => "the driver is loaded already",
        e => match e.as_small() {
            Some(NOT_SUPPORTED) => "this runtime cannot load drivers",
            Some(n) if n <= UNREADABLE => {
                let errno = i32::try_from(UNREADABLE - n).map_err(|_| Fail::Badarg)?;
                let text = std::io::Error::from_raw_os_error(errno).to_string();
                return Ok(cx.string(&text));
            }
            _ => return Err(Fail::Badarg),
        },
    };
    Ok(cx.string(text))
}

bifs! {
    DirtyIo "erl_ddll":"try_load"/3 = try_load_3;
    Plain "erl_ddll":"try_unload"/2 = try_unload_2;
    Plain "erl_ddll":"loaded_drivers"/0 = loaded_drivers_0;
    Plain "erl_ddll":"info"/2 = info_2;
    Plain "erl_ddll":"format_error_int"/1 = format_error_int_1;
}
