//! Natives of module `erl_ddll`.
//!
//! `decide_load` and `decide_unload` change the table of drivers ([`table`]) and say what follows
//! from it; [`finish`] then kills ports and lets the caller wait, with the table unlocked.

use super::table::driver_;
use super::table::load_cancelled;
use super::table::loaded_;
use super::table::permanent;
use super::table::unloaded;
use super::table::{self, Failure, Status, Tie};
use purlin_io::port::drivers;
use purlin_kernel::cx::{BifResult, Cx, Fail};
use purlin_kernel::filename;
use purlin_native::{bifs, ids, lazy_atoms};
use purlin_term::{Alloc, NIL, Term, am, atom, iolist};

lazy_atoms! {
    already_loaded = "already_loaded";
    awaiting_load = "awaiting_load";
    awaiting_unload = "awaiting_unload";
    driver_options = "driver_options";
    inconsistent = "inconsistent";
    kill_ports = "kill_ports";
    linked_in_driver = "linked_in_driver";
    not_loaded_by_this_process = "not_loaded_by_this_process";
    not_pending = "not_pending";
    pending = "pending";
    pending_driver = "pending_driver";
    pending_process = "pending_process";
    pending_reload = "pending_reload";
    processes = "processes";
    reload_ = "reload";
    unloaded_only = "unloaded_only";
    up = "UP";
}

/// A driver's name: an atom, or an I/O list.
fn name_arg(t: Term) -> Result<Vec<u8>, Fail> {
    if t.is_atom() {
        let name = atom::name(t);
        return match name.is_empty() {
            true => Err(Fail::Badarg),
            false => Ok(name.as_bytes().to_vec()),
        };
    }
    iolist::to_vec(t).map_err(|_| Fail::Badarg)
}

fn is_builtin(name: &[u8]) -> bool {
    drivers::names().any(|n| n.as_bytes() == name)
}

/// The ties that a request waits for: the driver's ports only, or other processes too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pending {
    Driver,
    All,
}

fn pending_arg(t: Term) -> Result<Pending, Fail> {
    match t {
        t if t == pending_driver() => Ok(Pending::Driver),
        t if t == pending() => Ok(Pending::All),
        _ => Err(Fail::Badarg),
    }
}

/// The outcome of a call.
enum Answer {
    /// Done or begun. The tie is set if the caller is notified when it is done.
    Ok(Term, Option<Tie>),
    Error(Term),
    Failed(Failure),
}

/// Answers `{ok, What}` or `{ok, What, Reference}`.
fn answer(cx: &mut Cx, name: &[u8], a: Answer) -> BifResult {
    match a {
        Answer::Ok(what, None) => Ok(cx.tuple(&[am::OK, what])),
        Answer::Ok(what, Some(tie)) => {
            let num = ids::ref_numbers();
            let me = cx.self_pid();
            let mut all = table::table();
            if let Some(f) = table::find(&mut all, name).and_then(|l| l.file.as_mut()) {
                f.wait(me, tie, num);
            }
            drop(all);
            let r = cx.local_ref(num);
            Ok(cx.tuple(&[am::OK, what, r]))
        }
        Answer::Error(why) => Ok(cx.err(why)),
        Answer::Failed(e) => {
            let why = e.term(cx);
            Ok(cx.err(why))
        }
    }
}

fn try_load_3(cx: &mut Cx, [path, name, options]: [Term; 3]) -> BifResult {
    let (mut monitor, mut reload, mut kills) = (None, None, false);
    for o in options.list_to_vec().ok_or(Fail::Badarg)? {
        let Some(&[k, v]) = o.as_tuple() else {
            return Err(Fail::Badarg);
        };
        match k {
            k if k == driver_options() => {
                for o in v.list_to_vec().ok_or(Fail::Badarg)? {
                    if o != kill_ports() {
                        return Err(Fail::Badarg);
                    }
                    kills = true;
                }
            }
            am::MONITOR => monitor = Some(pending_arg(v)?),
            k if k == reload_() => reload = Some(pending_arg(v)?),
            _ => return Err(Fail::Badarg),
        }
    }
    let name = name_arg(name)?;
    let mut file = filename::any_to_native(path).ok_or(Fail::Badarg)?;
    while file.last() == Some(&b'/') {
        file.pop();
    }
    file.push(b'/');
    file.extend_from_slice(&name);
    if is_builtin(&name) {
        return Ok(cx.err(linked_in_driver()));
    }
    let me = cx.self_pid();
    let mut kill_now = false;
    let a = decide_load(me, file, &name, kills, monitor, reload, &mut kill_now);
    finish(cx, &name, kill_now, a)
}

/// Continues after the table was changed: kills ports, records the waiting caller, and lets the
/// driver go.
fn finish(cx: &mut Cx, name: &[u8], kill_now: bool, a: Answer) -> BifResult {
    table::hold(name, true);
    if kill_now {
        table::kill_ports(name);
    }
    let r = answer(cx, name, a);
    table::hold(name, false);
    table::check(name);
    r
}

fn decide_load(
    me: Term,
    path: Vec<u8>,
    name: &[u8],
    kills: bool,
    monitor: Option<Pending>,
    reload: Option<Pending>,
    kill_now: &mut bool,
) -> Answer {
    let mut all = table::table();
    let Some(l) = table::find(&mut all, name) else {
        drop(all);
        if reload.is_some() {
            return Answer::Error(am::NOT_LOADED);
        }
        return match table::load(path, name, kills, me) {
            Ok(()) => Answer::Ok(loaded_(), None),
            Err(e) => Answer::Failed(e),
        };
    };
    let Some(f) = &mut l.file else {
        return Answer::Error(linked_in_driver());
    };
    let waits = |m: Option<Pending>| m.map(|_| Tie::AwaitsLoad);
    match f.status {
        Status::Loaded => {
            let Some(how) = reload else {
                if f.path != path || f.kill_ports != kills {
                    return Answer::Error(inconsistent());
                }
                f.add(me);
                return Answer::Ok(already_loaded(), None);
            };
            if how == Pending::Driver && !f.is_last(me) {
                return Answer::Error(pending_process());
            }
            if f.kill_ports != kills {
                return Answer::Error(inconsistent());
            }
            if !f.remove(me) {
                return Answer::Error(not_loaded_by_this_process());
            }
            f.begin_reload(me, path, kills);
            if f.kill_ports {
                *kill_now = true;
                f.status = Status::ForceReload;
            }
            let what = match how {
                Pending::Driver => pending_driver(),
                Pending::All => pending_process(),
            };
            Answer::Ok(what, waits(monitor))
        }
        Status::Unload | Status::ForceUnload => {
            if reload.is_some() {
                return Answer::Error(not_loaded_by_this_process());
            }
            if f.path != path || f.kill_ports != kills {
                return Answer::Error(inconsistent());
            }
            f.cancel_unload(table::name_atom(name));
            f.add(me);
            Answer::Ok(already_loaded(), None)
        }
        Status::Reload | Status::ForceReload => {
            if reload.is_some() {
                return Answer::Error(pending_reload());
            }
            if f.reload() != Some((&path[..], kills)) {
                return Answer::Error(inconsistent());
            }
            f.add(me);
            Answer::Ok(pending_driver(), Some(Tie::AwaitsLoad))
        }
        Status::Permanent => Answer::Error(permanent()),
    }
}

fn try_unload_2(cx: &mut Cx, [name, options]: [Term; 2]) -> BifResult {
    let (mut monitor, mut kills) = (None, false);
    for o in options.list_to_vec().ok_or(Fail::Badarg)? {
        match o.as_tuple() {
            None if o == kill_ports() => kills = true,
            Some(&[am::MONITOR, v]) => monitor = Some(pending_arg(v)?),
            _ => return Err(Fail::Badarg),
        }
    }
    let name = name_arg(name)?;
    if is_builtin(&name) {
        return Ok(cx.err(linked_in_driver()));
    }
    let me = cx.self_pid();
    let mut kill_now = false;
    let a = decide_unload(me, &name, kills, monitor, &mut kill_now);
    finish(cx, &name, kill_now, a)
}

fn decide_unload(
    me: Term,
    name: &[u8],
    kills: bool,
    monitor: Option<Pending>,
    kill_now: &mut bool,
) -> Answer {
    let mut all = table::table();
    let Some(l) = table::find(&mut all, name) else {
        return Answer::Error(am::NOT_LOADED);
    };
    let ports = l.ports();
    let Some(f) = &mut l.file else {
        return Answer::Error(linked_in_driver());
    };
    if f.status == Status::Permanent {
        return Answer::Error(permanent());
    }
    if !f.remove(me) && f.loads() > 0 {
        return Answer::Error(not_loaded_by_this_process());
    }
    if f.loads() > 0 {
        let tie = monitor.filter(|&m| m == Pending::All);
        return Answer::Ok(pending_process(), tie.map(|_| Tie::AwaitsUnload));
    }
    f.begin_unload(table::name_atom(name));
    if (kills || f.kill_ports) && ports > 0 {
        *kill_now = true;
        f.status = Status::ForceUnload;
    }
    Answer::Ok(pending_driver(), monitor.map(|_| Tie::AwaitsUnload))
}

fn loaded_drivers_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let mut names: Vec<Term> = Vec::new();
    for n in table::names() {
        names.push(cx.byte_list(&n, NIL));
    }
    names.extend(drivers::names().map(|n| cx.string(n)));
    let list = cx.list_tail(&names, NIL);
    Ok(cx.ok(list))
}

fn info_2(cx: &mut Cx, [name, item]: [Term; 2]) -> BifResult {
    let name = name_arg(name)?;
    let is = |i: Term| item == i;
    let known = [
        linked_in_driver(),
        permanent(),
        processes(),
        driver_options(),
        am::PORT_COUNT,
        awaiting_load(),
        awaiting_unload(),
    ];
    if !known.contains(&item) {
        return Err(Fail::Badarg);
    }
    let mut all = table::table();
    let l = table::find(&mut all, &name);
    if l.is_none() && !is_builtin(&name) {
        return Err(Fail::Badarg);
    }
    let ports = l.as_ref().map_or(0, |l| l.ports());
    let Some(f) = l.and_then(|l| l.file.as_ref()) else {
        return Ok(match item {
            i if i == linked_in_driver() => am::TRUE,
            i if i == permanent() => am::FALSE,
            _ => linked_in_driver(),
        });
    };
    let stays = f.status == Status::Permanent;
    if is(linked_in_driver()) {
        return Ok(am::FALSE);
    }
    if is(permanent()) {
        return Ok(Term::bool(stays));
    }
    if is(driver_options()) {
        return Ok(match f.kill_ports {
            true => cx.list(&[kill_ports()]),
            false => NIL,
        });
    }
    if stays {
        return Ok(permanent());
    }
    if is(am::PORT_COUNT) {
        return Ok(Term::small(ports as i64));
    }
    let ties: &[Tie] = match item {
        i if i == processes() => &[Tie::Loaded],
        i if i == awaiting_load() => &[Tie::AwaitsLoad],
        _ => &[Tie::AwaitsUnload, Tie::AwaitsUnloadOnly],
    };
    let users = f.users(ties);
    drop(all);
    let users: Vec<Term> = users
        .into_iter()
        .map(|(pid, n)| cx.tuple(&[pid, Term::small(n)]))
        .collect();
    Ok(cx.list(&users))
}

/// `monitor(driver, {Name, When})`
fn monitor_2(cx: &mut Cx, [kind, what]: [Term; 2]) -> BifResult {
    let Some(&[name_term, when]) = what.as_tuple() else {
        return Err(Fail::Badarg);
    };
    if kind != driver_() {
        return Err(Fail::Badarg);
    }
    let name = name_arg(name_term)?;
    let tie = match when {
        w if w == loaded_() => Tie::AwaitsLoad,
        w if w == unloaded() => Tie::AwaitsUnload,
        w if w == unloaded_only() => Tie::AwaitsUnloadOnly,
        _ => return Err(Fail::Badarg),
    };
    let num = ids::ref_numbers();
    let me = cx.self_pid();
    let mut all = table::table();
    // What is reported at once because there is nothing to wait for.
    let at_once = match table::find(&mut all, &name) {
        None if is_builtin(&name) => Some((up(), permanent())),
        None => Some((am::DOWN, unloaded())),
        Some(l) => match &mut l.file {
            None => Some((up(), permanent())),
            Some(f) => match (f.status, tie) {
                (Status::Permanent, _) => Some((up(), permanent())),
                (Status::Loaded, Tie::AwaitsLoad) => Some((up(), loaded_())),
                (Status::Unload | Status::ForceUnload, Tie::AwaitsLoad) => {
                    Some((am::DOWN, load_cancelled()))
                }
                _ => {
                    f.wait(me, tie, num);
                    None
                }
            },
        },
    };
    drop(all);
    if let Some((what, why)) = at_once {
        signal_now(me, num, name_term, what, why);
    }
    Ok(cx.local_ref(num))
}

/// Reports the name as it was given.
fn signal_now(to: Term, num: [u32; 3], name: Term, what: Term, why: Term) {
    purlin_kernel::signal::send_with(to, |a| {
        let r = a.local_ref(num);
        let name = purlin_term::copy::copy(name, a);
        a.tuple(&[what, r, driver_(), name, why])
    });
}

fn demonitor_1(cx: &mut Cx, [r]: [Term; 1]) -> BifResult {
    let num = r.as_ref_view().and_then(|r| r.local_nums());
    table::stop_waiting(cx.self_pid(), num.ok_or(Fail::Badarg)?);
    Ok(am::TRUE)
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
        e if e == pending_reload() => "the driver is about to be loaded anew",
        e if e == pending_process() => "other processes have loaded the driver",
        e => {
            let text = Failure::text(e).ok_or(Fail::Badarg)?;
            return Ok(cx.string(&text));
        }
    };
    Ok(cx.string(text))
}

bifs! {
    DirtyIo "erl_ddll":"try_load"/3 = try_load_3;
    Plain "erl_ddll":"try_unload"/2 = try_unload_2;
    Plain "erl_ddll":"loaded_drivers"/0 = loaded_drivers_0;
    Plain "erl_ddll":"info"/2 = info_2;
    Plain "erl_ddll":"monitor"/2 = monitor_2;
    Plain "erl_ddll":"demonitor"/1 = demonitor_1;
    Plain "erl_ddll":"format_error_int"/1 = format_error_int_1;
}
