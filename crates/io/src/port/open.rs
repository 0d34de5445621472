//! `open_port`: parses the first argument and the settings, and makes the port.
//!
//! Everything is checked before the port exists. A port whose driver does not start is removed
//! again.

use super::fd::Fd;
use super::linebuf::LineBuf;
use super::settings::{Error, Options, Target, Variable};
use super::traced::Work;
use super::{Driver, Port, drivers, enter};
use crate::filename;
use crate::os::descriptor;
use purlin_term::release::{self, PORTS_ON_FILES};
use purlin_term::{Term, am, atom};
use std::ffi::CString;
use std::os::fd::RawFd;
use std::sync::Arc;

const DEFAULT_LINE: usize = 512;

/// The settings as given, before the first argument is looked at.
struct Settings {
    o: Options,
    args: Option<Vec<CString>>,
    dir: Option<Term>,
}

/// The bytes before the first zero byte, which ends a string in C.
fn before_zero(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().position(|b| *b == 0);
    bytes.truncate(end.unwrap_or(bytes.len()));
    bytes
}

/// A command or an argument: the native form of a name, or the bytes of a binary. A name must not
/// contain zeros; a binary ends at the first one.
fn native(t: Term) -> Option<Vec<u8>> {
    let Some(bits) = t.as_bits() else {
        return filename::to_native(t);
    };
    let mut bytes = bits.shifted();
    bytes.truncate(bits.bit_len / 8);
    Some(before_zero(bytes))
}

fn c_string(t: Term) -> Option<CString> {
    CString::new(native(t)?).ok()
}

/// Parses `disabled` or `{Low, High}`.
fn limits(t: Term) -> Option<(usize, usize)> {
    if t == atom::intern("disabled") {
        return Some((usize::MAX, usize::MAX));
    }
    let &[low, high] = t.as_tuple()? else {
        return None;
    };
    let n = |t: Term| usize::try_from(t.as_small()?).ok().filter(|&n| n > 0);
    let (low, high) = (n(low)?, n(high)?);
    Some((low.min(high), high))
}

fn env_list(t: Term) -> Option<Vec<Variable>> {
    let mut v = Vec::new();
    for e in t.list_to_vec()? {
        let &[k, x] = e.as_tuple()? else {
            return None;
        };
        // Strings only, unlike file names.
        let string = |t: Term| (!t.is_atom()).then(|| filename::to_native(t)).flatten();
        let k = string(k)?;
        if k.contains(&b'=') {
            return None;
        }
        let x = if x == am::FALSE || x.is_nil() {
            None
        } else {
            Some(string(x)?)
        };
        v.push((k, x));
    }
    Some(v)
}

fn settings(t: Term) -> Option<Settings> {
    let mut o = Options::new();
    let (mut args, mut dir) = (None, None);
    for s in t.list_to_vec()? {
        if let Some(&[k, v]) = s.as_tuple() {
            match atom_text(k)? {
                "packet" => {
                    o.packet_bytes = usize::try_from(v.as_small()?).ok()?;
                    if !matches!(o.packet_bytes, 1 | 2 | 4) {
                        return None;
                    }
                }
                "line" => o.line_bytes = usize::try_from(v.as_small()?).ok().filter(|&n| n > 0)?,
                "env" => o.env = env_list(v)?,
                "args" => {
                    let v = v.list_to_vec()?;
                    args = Some(v.into_iter().map(c_string).collect::<Option<Vec<_>>>()?);
                }
                "arg0" => {
                    o.arg0 = Some(c_string(v)?);
                    args.get_or_insert_default();
                }
                "cd" => dir = Some(v),
                "parallelism" => o.parallelism = v.as_bool()?,
                "busy_limits_port" => {
                    (o.low_mark, o.high_mark) = limits(v)?;
                    o.marks_set = true;
                }
                // Ports have no message queue in front of them here.
                "busy_limits_msgq" => {
                    limits(v)?;
                }
                _ => return None,
            }
            continue;
        }
        match atom_text(s)? {
            "stream" => o.packet_bytes = 0,
            "use_stdio" => o.use_stdio = true,
            "nouse_stdio" => o.use_stdio = false,
            "stderr_to_stdout" => o.stderr_to_stdout = true,
            "line" => o.line_bytes = DEFAULT_LINE,
            "binary" => o.binary = true,
            "in" => o.read = true,
            "out" => o.write = true,
            "eof" => o.eof = true,
            "exit_status" => o.exit_status = true,
            // These mean something on Windows only.
            "hide" | "overlapped_io" => {}
            _ => return None,
        }
    }
    if !o.read && !o.write {
        (o.read, o.write) = (true, true);
    }
    if (o.line_bytes > 0 && o.packet_bytes > 0) || (o.stderr_to_stdout && !o.use_stdio) {
        return None;
    }
    Some(Settings { o, args, dir })
}

fn atom_text(t: Term) -> Option<&'static str> {
    t.is_atom().then(|| atom::name(t))
}

/// The kind of port to open, and its name.
fn target(name: Term) -> Option<(Target, Vec<u8>)> {
    if !release::has(PORTS_ON_FILES) && !name.is_tuple() {
        return None;
    }
    if name.is_atom() {
        let bytes = atom::name(name).as_bytes().to_vec();
        return Some((Target::File, before_zero(bytes)));
    }
    if name.is_list() {
        let bytes: Option<Vec<u8>> = name
            .list_to_vec()?
            .into_iter()
            .map(|c| u8::try_from(c.as_small()?).ok())
            .collect();
        let bytes = bytes.filter(|b| !b.is_empty())?;
        return Some((Target::File, before_zero(bytes)));
    }
    match *name.as_tuple()? {
        [kind, what] => {
            let t = match atom_text(kind)? {
                "spawn" => Target::Spawn,
                "spawn_driver" => Target::Driver,
                "spawn_executable" => Target::Executable { args: Vec::new() },
                _ => return None,
            };
            let name = native(what)?;
            // An empty binary names a program that cannot be found, or an empty command line.
            (!name.is_empty() || what.as_bits().is_some()).then_some((t, name))
        }
        [kind, i, o] if atom_text(kind)? == "fd" => {
            let (i, o) = (i.as_small()?, o.as_small()?);
            let n = |x: i64| i32::try_from(x).unwrap_or(-1);
            Some((
                Target::Fd(n(i), n(o)),
                format!("{}/{}", i as i32, o as i32).into_bytes(),
            ))
        }
        _ => None,
    }
}

/// Whether the first argument of `open_port` asks for a program, which takes long to start.
pub fn starts_program(name: Term) -> bool {
    match target(name) {
        Some((Target::Executable { .. }, _)) => true,
        Some((Target::Spawn, name)) => drivers::find(&name).is_none(),
        _ => false,
    }
}

/// Opens a port for `owner` and links it to the owner at the port's end. The caller is the owner;
/// it enters the link at its end before it handles signals.
pub fn open(owner: Term, name: Term, given: Term) -> Result<Arc<Port>, Error> {
    let Settings { mut o, args, dir } = settings(given).ok_or(Error::BadSettings)?;
    let (t, name) = target(name).ok_or(Error::BadArg)?;
    o.target = match (t, args) {
        (Target::Executable { .. }, args) => Target::Executable {
            args: args.unwrap_or_default(),
        },
        (_, Some(_)) => return Err(Error::BadArg),
        (t, None) => t,
    };
    if let Some(d) = dir.filter(|d| !d.is_nil()) {
        let dir = c_string(d).filter(|x| !x.is_empty() || d.as_bits().is_some());
        o.dir = Some(dir.ok_or(Error::BadArg)?);
    }
    let programs = matches!(o.target, Target::Spawn | Target::Executable { .. });
    if o.exit_status && !programs && o.target != Target::Driver {
        return Err(Error::BadArg);
    }
    let start = match o.target {
        Target::Spawn | Target::Driver => drivers::find(&name),
        _ => None,
    };
    if start.is_some() && (o.exit_status || o.marks_set) {
        return Err(Error::BadArg);
    }
    if start.is_none() && o.target == Target::Driver {
        return Err(Error::BadArg);
    }
    if let Target::Fd(i, w) = o.target {
        let max = descriptor::max_files();
        let bad = |fd: RawFd| fd < 0 || i64::from(fd) >= max;
        if (o.read && bad(i)) || (o.write && bad(w)) {
            return Err(Error::General);
        }
    }

    let port = enter(&name, owner)?;
    let mut core = port.lock();
    let b = &mut core.base;
    b.binary = o.binary;
    b.soft_eof = o.eof;
    b.parallelism = o.parallelism;
    b.lines = (o.line_bytes > 0).then(|| LineBuf::new(o.line_bytes));
    b.trace_open(owner, &name);
    b.trace_work(true, Work::Open);
    let boxed = |d: Fd| Box::new(d) as Box<dyn Driver>;
    let d = match (start, &o.target) {
        (Some(start), _) => start(b, &o, &name),
        (None, &Target::Fd(i, w)) => Fd::on(b, &o, i, w).map(boxed).map_err(Error::from),
        (None, Target::File) => Fd::file(b, &o, &name)
            .map(boxed)
            .map_err(|_| Error::General),
        (None, _) => Fd::spawned(b, &o, &name).map(boxed).map_err(Error::from),
    };
    core.base.trace_work(false, Work::Open);
    match d {
        Ok(d) => {
            core.driver = Some(d);
            core.base.add_link(owner);
            core.base.trace_link(owner, true);
            port.settle(&mut core);
            drop(core);
            Ok(port)
        }
        Err(e) => {
            core.base.closing = true;
            drop(core);
            super::remove(port.id);
            Err(e)
        }
    }
}
