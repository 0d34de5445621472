//! Natives of processes: making them, names, dictionary, flags, garbage collection, suspension.

use super::links;
use crate::collect::compact;
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::lifecycle::spawn::{self, Reply, SpawnError};
use crate::process::ext::{AliasMode, MaxHeap, Peer, RefKey, Settings};
use crate::process::saved;
use crate::process::state::Priority;
use crate::process::{self, OFF_HEAP_QUEUE, Process, SENSITIVE, TRAP_EXIT, registry, table};
use crate::signal::send::{self, Sent};
use crate::signal::{handle, receive, suspend};
use crate::{bifs, ids};
use purlin_dist::input;
use purlin_kernel::threads::dirty_calls;
use purlin_term::alloc::{LISTED_PAIR_WORDS, list_of_pairs};
use purlin_term::frag::OwnedTerm;
use purlin_term::release::{
    self, PRIORITY_MESSAGES, SHARED_BINARIES_IN_LIMIT, SUSPENDED_AFTER_NATIVES,
};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, NIL, Term, am, atom, copy, unassigned_ids};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

lazy_atoms! {
    a_include_shared_binaries = "include_shared_binaries";
    a_noconnect = "noconnect";
    a_major = "major"; a_garbage_collect = "garbage_collect";
    a_check_process_code = "check_process_code"; a_copy_literals = "copy_literals";
    a_sensitive = "sensitive"; a_save_calls = "save_calls";
    a_monitor_nodes = "monitor_nodes"; a_async_dist = "async_dist"; a_scheduler = "scheduler"; a_thread = "thread"; a_own = "own";
    a_reply = "reply";
    a_reply_tag = "reply_tag"; a_yes = "yes"; a_no = "no"; a_error_only = "error_only";
    a_success_only = "success_only"; a_unless_suspending = "unless_suspending"; a_asynchronous = "asynchronous";
    a_notalive = "notalive"; a_badtype = "badtype";
}

fn erl_flag(t: Term) -> Option<bool> {
    if t == am::TRUE {
        Some(true)
    } else if t == am::FALSE {
        Some(false)
    } else {
        None
    }
}

/// The priority that an atom names.
pub(crate) fn priority_of(t: Term) -> Option<Priority> {
    [
        (am::LOW, Priority::Low),
        (am::NORMAL, Priority::Normal),
        (am::HIGH, Priority::High),
        (am::MAX, Priority::Max),
    ]
    .into_iter()
    .find(|p| p.0 == t)
    .map(|p| p.1)
}
/// The atom of a priority.
pub(crate) fn priority_atom(p: Priority) -> Term {
    match p {
        Priority::Low => am::LOW,
        Priority::Normal => am::NORMAL,
        Priority::High => am::HIGH,
        Priority::Max => am::MAX,
    }
}

fn self_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    Ok(cx.self_pid())
}

// Spawning.

struct Parsed {
    o: spawn::Options,
    /// How the new process is to be watched.
    monitor: Option<(AliasMode, Option<Box<OwnedTerm>>)>,
    monitor_ref: Option<Term>,
    /// Whether the link has priority, and the monitor.
    urgent: (bool, bool),
    reply_tag: Term,
    reply: Term,
}

fn is_proper(l: Term) -> bool {
    let mut it = l.list_iter();
    it.by_ref().for_each(drop);
    it.tail().is_nil()
}

/// A limit of the heap: an integer, or a map.
pub(crate) fn max_heap(t: Term, old: Option<MaxHeap>) -> Option<MaxHeap> {
    let mut m = old.unwrap_or_else(process::max_heap_flags);
    if let Some(n) = t.as_small() {
        m.words = usize::try_from(n).ok()?;
        return Some(m);
    }
    if !t.is_map() {
        return None;
    }
    let get = |k| purlin_term::map::get(t, k);
    m.words = usize::try_from(get(am::SIZE)?.as_small()?).ok()?;
    if let Some(v) = get(am::KILL) {
        m.kill = erl_flag(v)?;
    }
    if let Some(v) = get(am::ERROR_LOGGER) {
        m.error_logger = erl_flag(v)?;
    }
    if let Some(v) = get(a_include_shared_binaries()) {
        m.include_shared_binaries = erl_flag(v)?;
    }
    Some(m)
}

/// The options of a link: whether it has priority.
fn link_options(l: Term) -> Option<bool> {
    let mut it = l.list_iter();
    let mut urgent = false;
    for o in it.by_ref() {
        if o != am::PRIORITY {
            return None;
        }
        urgent = true;
    }
    it.tail().is_nil().then_some(urgent)
}

fn new_monitor_ref(cx: &mut Cx, alias: AliasMode) -> (RefKey, Term) {
    let k = RefKey::new(ids::ref_bits());
    let t = if alias == AliasMode::None {
        cx.local_ref(k.numbers())
    } else {
        let me = cx.self_pid();
        cx.pid_ref(k.numbers(), me)
    };
    (k, t)
}

/// `None`: an option is wrong.
fn spawn_options(cx: &mut Cx, l: Term, request: bool) -> Option<Parsed> {
    let mut p = parse_options(l, request)?;
    if let Some((alias, tag)) = p.monitor.take() {
        let (k, t) = new_monitor_ref(cx, alias);
        p.o.monitor = Some((k, alias, tag));
        p.monitor_ref = Some(t);
    }
    Some(p)
}

/// How a process is to be made that another node asks for. `None`: an option is wrong.
pub fn wanted_elsewhere(l: Term) -> Option<input::Wanted> {
    let p = parse_options(l, false)?;
    Some(input::Wanted {
        link: p.o.link,
        monitor: p.monitor.is_some(),
        options: p.o,
    })
}

fn parse_options(l: Term, request: bool) -> Option<Parsed> {
    let mut p = Parsed {
        o: spawn::Options::default(),
        monitor: None,
        monitor_ref: None,
        urgent: (false, false),
        reply_tag: am::SPAWN_REPLY,
        reply: a_yes(),
    };
    p.o.off_heap_queue = process::default_off_heap_queue();
    p.o.max_heap = process::default_max_heap();
    let mut set = Settings::default();
    let mut it = l.list_iter();
    for o in it.by_ref() {
        if o == am::LINK {
            p.o.link = true;
        } else if o == am::MONITOR {
            p.monitor = Some((AliasMode::None, None));
        } else if let Some(&[k, v]) = o.as_tuple() {
            let n = v.as_small();
            if k == am::MONITOR {
                let o = links::monitor_options(v)?;
                p.urgent.1 |= o.urgent;
                p.monitor = Some((o.alias, o.tag));
            } else if k == am::LINK && release::has(PRIORITY_MESSAGES) {
                p.urgent.0 = link_options(v)?;
                p.o.link = true;
            } else if k == am::PRIORITY {
                p.o.priority = Some(priority_of(v)?);
            } else if k == am::FULLSWEEP_AFTER {
                set.fullsweep_after = Some(n.filter(|&n| n >= 0)?.min(65535) as u32);
            } else if k == am::MIN_HEAP_SIZE {
                let n = n.filter(|&n| (0..1 << 31).contains(&n))?;
                set.min_heap_words = asked_heap(n as usize);
            } else if k == am::MIN_BIN_VHEAP_SIZE {
                let n = n.filter(|&n| (0..1 << 31).contains(&n))?;
                set.min_vheap_words = Some(asked_vheap(n as usize));
            } else if k == am::MAX_HEAP_SIZE {
                p.o.max_heap = Some(max_heap(v, p.o.max_heap)?);
            } else if k == am::MESSAGE_QUEUE_DATA {
                p.o.off_heap_queue = match v {
                    v if v == am::ON_HEAP => false,
                    v if v == am::OFF_HEAP => true,
                    _ => return None,
                };
            } else if k == a_scheduler() {
                let n = usize::try_from(n?).ok();
                p.o.scheduler = n.filter(|&n| n <= crate::sched::count())?;
            } else if k == a_thread() {
                // Stock knows no such option, and refuses it as any that is unknown.
                if v != a_own() {
                    return None;
                }
                p.o.own_thread = true;
            } else if k == a_async_dist() {
                p.o.async_dist = Some(erl_flag(v)?);
            } else if request && k == a_reply_tag() {
                p.reply_tag = v;
            } else if request && k == a_reply() {
                if ![a_yes(), a_no(), a_error_only(), a_success_only()].contains(&v) {
                    return None;
                }
                p.reply = v;
            } else {
                return None;
            }
        } else {
            return None;
        }
    }
    let least = process::least_heap(set.min_heap_words).max(process::least_heap(None));
    let most = p.o.max_heap.as_ref().map_or(0, |m| m.words);
    p.o.settings = set;
    (it.tail().is_nil() && (most == 0 || most >= least)).then_some(p)
}

/// Words of a heap that is to have so many at least; None if that is no more than all have, which start with what they need.
fn asked_heap(words: usize) -> Option<u32> {
    let n = purlin_term::gc::heap_size_for(words);
    (n > process::least_heap(None)).then_some(n as u32)
}

/// Words of a virtual heap of binaries that is to have so many at least: never fewer than the default.
fn asked_vheap(words: usize) -> u32 {
    let least = process::DEFAULTS.min_vheap_words.load(Ordering::Relaxed);
    least.max(purlin_term::gc::heap_size_for(words) as u32)
}

fn spawn_with(cx: &mut Cx, m: Term, f: Term, args: Term, mut o: spawn::Options) -> BifResult {
    if cx.process().has(process::SEQUENTIAL) && o.request.is_none() {
        // A process that is made by a call is told of as if there had been messages.
        let options = if o.link {
            let l = cx.list(&[am::LINK]);
            Some(OwnedTerm::copy_of(l))
        } else {
            None
        };
        let reference = ids::make_ref(cx);
        o.request = Some(request(reference, am::SPAWN_REPLY, options, Reply::Call));
    }
    let (args, _held) = crate::signal::share::share(cx, crate::accounts::Kind::Spawn, args);
    // SAFETY: the running process is owned by this thread.
    match unsafe { spawn::spawn(cx.proc, m, f, args, o) } {
        Ok((pid, words)) => {
            crate::accounts::copied(cx, crate::accounts::Kind::Spawn, words, args);
            Ok(pid)
        }
        Err(SpawnError::SystemLimit) => {
            use crate::report::{Level, Text, send};
            let leader = group_leader_of(cx);
            send(
                Level::Error,
                leader,
                NIL,
                Text::Plain("Too many processes\n"),
            );
            Err(Fail::SystemLimit)
        }
    }
}

fn request(
    reference: Term,
    tag: Term,
    options: Option<OwnedTerm>,
    reply: Reply,
) -> Box<spawn::Request> {
    Box::new(spawn::Request {
        reference,
        tag: OwnedTerm::copy_of(tag),
        options,
        reply,
    })
}

fn default_options() -> spawn::Options {
    spawn::Options {
        off_heap_queue: process::default_off_heap_queue(),
        scheduler: 0,
        max_heap: process::default_max_heap(),
        ..Default::default()
    }
}

/// The link with a new process has priority, and the monitor, if so asked for.
fn prioritize(cx: &mut Cx, pid: Term, (link, monitor): (bool, bool), r: Option<Term>) {
    let e = cx.process().ext_mut();
    if link {
        e.prioritize_link(process::ext::Peer::of(pid), true);
    }
    if monitor && let Some(k) = r.and_then(RefKey::of) {
        e.prioritize(k);
    }
}

fn spawn_3(cx: &mut Cx, [m, f, a]: [Term; 3]) -> BifResult {
    if !m.is_atom() || !f.is_atom() || !is_proper(a) {
        return Err(Fail::Badarg);
    }
    cx.bump(10);
    spawn_with(cx, m, f, a, default_options())
}
fn spawn_link_3(cx: &mut Cx, [m, f, a]: [Term; 3]) -> BifResult {
    if !m.is_atom() || !f.is_atom() || !is_proper(a) {
        return Err(Fail::Badarg);
    }
    cx.bump(10);
    let o = spawn::Options {
        link: true,
        ..default_options()
    };
    spawn_with(cx, m, f, a, o)
}
fn spawn_opt_4(cx: &mut Cx, [m, f, a, opts]: [Term; 4]) -> BifResult {
    let Some(mut p) = spawn_options(cx, opts, false) else {
        return Err(cx.badarg_cause(am::BADOPT));
    };
    if !m.is_atom() || !f.is_atom() || !is_proper(a) {
        return Err(Fail::Badarg);
    }
    cx.bump(10);
    let r = p.monitor_ref;
    if cx.process().has(process::SEQUENTIAL) {
        let reference = r.unwrap_or_else(|| ids::make_ref(cx));
        let options = Some(OwnedTerm::copy_of(opts));
        p.o.request = Some(request(reference, am::SPAWN_REPLY, options, Reply::Call));
    }
    let pid = spawn_with(cx, m, f, a, p.o)?;
    if p.urgent != (false, false) {
        prioritize(cx, pid, p.urgent, r);
    }
    Ok(match r {
        Some(r) => cx.tuple(&[pid, r]),
        None => pid,
    })
}
fn reply_spawn(to: Term, tag: &OwnedTerm, r: Term, result: Term, value: Term) {
    send::send_with(to, |b| {
        let tag = copy::copy(tag.term(), b);
        let r = copy::copy(r, b);
        b.tuple(&[tag, r, result, value])
    });
}
fn spawn_request_4(cx: &mut Cx, [m, f, a, opts]: [Term; 4]) -> BifResult {
    if !m.is_atom() || !f.is_atom() || !is_proper(a) {
        return Ok(am::BADARG);
    }
    if !is_proper(opts) {
        return Ok(am::BADOPT);
    }
    let Some(mut p) = spawn_options(cx, opts, true) else {
        return Ok(refuse_spawn(cx, opts));
    };
    let r = match p.monitor_ref {
        Some(r) => r,
        None => ids::make_ref(cx),
    };
    // Sharing the arguments may move what else refers to their parts.
    let (tag, reply) = (OwnedTerm::copy_of(p.reply_tag), p.reply);
    let how = if reply == a_yes() || reply == a_success_only() {
        Reply::Message
    } else {
        Reply::Nothing
    };
    let traced = cx.process().has(process::SEQUENTIAL);
    let options = traced.then(|| OwnedTerm::copy_of(opts));
    p.o.request = Some(request(r, tag.term(), options, how));
    let me = cx.self_pid();
    let made = spawn_with(cx, m, f, a, p.o);
    if let (Ok(pid), true) = (&made, p.urgent != (false, false)) {
        prioritize(cx, *pid, p.urgent, Some(r));
    }
    if made.is_err() && (reply == a_yes() || reply == a_error_only()) {
        reply_spawn(me, &tag, r, am::ERROR, am::SYSTEM_LIMIT);
    }
    Ok(r)
}
/// The answer to a request with options that can't be taken: a message, if the options that say how ask for one.
fn refuse_spawn(cx: &mut Cx, opts: Term) -> Term {
    let (mut tag, mut reply) = (am::SPAWN_REPLY, a_yes());
    for o in opts.list_iter() {
        match o.as_tuple() {
            Some(&[k, v]) if k == a_reply_tag() => tag = v,
            Some(&[k, v])
                if k == a_reply()
                    && [a_yes(), a_no(), a_error_only(), a_success_only()].contains(&v) =>
            {
                reply = v;
            }
            _ => {}
        }
    }
    let r = ids::make_ref(cx);
    if reply == a_yes() || reply == a_error_only() {
        let me = cx.self_pid();
        reply_spawn(me, &OwnedTerm::copy_of(tag), r, am::ERROR, am::BADOPT);
    }
    r
}
fn spawn_system_process_3(cx: &mut Cx, [m, f, a]: [Term; 3]) -> BifResult {
    if !m.is_atom() || !f.is_atom() || !is_proper(a) {
        return Err(Fail::Badarg);
    }
    let o = spawn::Options {
        system: true,
        ..default_options()
    };
    spawn_with(cx, m, f, a, o)
}

// Names.

fn register_2(cx: &mut Cx, [name, who]: [Term; 2]) -> BifResult {
    match register(cx, name, who)? {
        t if t == am::TRUE => Ok(t),
        cause => Err(cx.badarg_cause(cause)),
    }
}

/// Whether the process that runs refers to the old code of a module.
fn check_process_code(cx: &mut Cx, module: Term) -> bool {
    let pc = cx.process().pc;
    crate::code::purge::process_is_lingering(cx, module, pc)
}

/// `true`, or the cause that the error tells.
fn register(cx: &mut Cx, name: Term, who: Term) -> BifResult {
    if !name.is_atom() || name == am::UNDEFINED {
        return Ok(am::NONE);
    }
    if who.is_local_port() {
        return Ok(if crate::port::register(who, name) {
            am::TRUE
        } else if registry::whereis(name).is_none() && crate::port::find(who).is_some() {
            am::REGISTERED_NAME
        } else {
            am::NONE
        });
    }
    if !who.is_local_pid() {
        return Ok(am::NONE);
    }
    if who == cx.self_pid() {
        match registry::register(name, who) {
            Ok(()) => {}
            Err(registry::Refused::HasName) => return Ok(am::REGISTERED_NAME),
            Err(_) => return Ok(am::NONE),
        }
        cx.process().ext_mut().name = name;
        crate::trace::tie(cx.process(), crate::trace::Tie::Register, name);
        return Ok(am::TRUE);
    }
    // The other process has it at once, wherever it is, and notes it later.
    match registry::register_for(name, who, || crate::process::table().is_alive(who)) {
        Ok(()) => {}
        Err(registry::Refused::Ended) => return Ok(a_notalive()),
        Err(registry::Refused::HasName) => return Ok(am::REGISTERED_NAME),
        Err(registry::Refused::Taken) => return Ok(am::NONE),
    }
    send::run_in(
        who,
        Box::new(move |cx| {
            let has = registry::record(name, who, cx.is_none());
            if let Some(cx) = cx {
                let p = cx.process();
                if has {
                    p.ext_mut().name = name;
                }
                crate::trace::tie(p, crate::trace::Tie::Register, name);
            }
        }),
    );
    Ok(am::TRUE)
}

/// Has the process `who` compute an atom for this native, which waits for it. `p` is `None` where `who` has ended.
fn ask(
    cx: &mut Cx,
    who: Term,
    f: impl FnOnce(Option<&mut Process>) -> Term + Send + 'static,
) -> BifResult {
    ask_term(cx, who, move |cx| {
        let p = cx.map(|c| c.process());
        OwnedTerm::copy_of(f(p))
    })
}

/// Whether a process runs code, and has done all that this one sent it before: what is true of any such process needs no answer by
/// itself, which it gives when its native has returned.
pub(crate) fn runs_undisturbed(cx: &mut Cx, who: Term) -> bool {
    let asked = cx.process().ext().is_some_and(|e| e.bif_state.is_some());
    let Some(p) = table().find(who).filter(|_| !asked) else {
        return false;
    };
    // SAFETY: cells are never unmapped; both words are atomics. The cell was that process's before the look and after it.
    unsafe {
        (*p).state.load().runs_undisturbed() && (*p).id.load(Ordering::Acquire) == who.pid_data()
    }
}

type Answer = Arc<Mutex<Option<OwnedTerm>>>;

/// As `ask`, for terms of any kind.
pub(crate) fn ask_term(
    cx: &mut Cx,
    who: Term,
    f: impl FnOnce(Option<&mut Cx>) -> OwnedTerm + Send + 'static,
) -> BifResult {
    ask_with(cx, who, move |cx, answer| answer(f(cx)))
}

/// As [`ask_term`], where the answer may come later.
pub(crate) fn ask_with(
    cx: &mut Cx,
    who: Term,
    f: impl FnOnce(Option<&mut Cx>, Box<dyn FnOnce(OwnedTerm) + Send>) + Send + 'static,
) -> BifResult {
    let waiting = cx
        .process()
        .ext()
        .and_then(|e| e.bif_state.as_ref())
        .and_then(|s| s.downcast_ref::<Answer>())
        .cloned();
    let answer = match waiting {
        Some(a) => a,
        None => {
            let a: Answer = Arc::default();
            cx.process().ext_mut().bif_state = Some(Box::new(a.clone()));
            let to = a.clone();
            let me = cx.self_pid();
            send::run_in(
                who,
                Box::new(move |cx| {
                    let answer = move |t| {
                        *to.lock() = Some(t);
                        send::wake(me);
                    };
                    f(cx, Box::new(answer));
                }),
            );
            a
        }
    };
    let got = answer.lock().take();
    match got {
        None => Err(Fail::Wait),
        Some(t) => {
            // What the other has done to this process before it answered, or ended, is to be seen behind the answer.
            handle::fetch(cx);
            if cx.process().has(process::EXIT_PENDING) {
                return Err(Fail::Exited);
            }
            if let Some(e) = cx.process().ext() {
                e.bif_state = None;
            }
            Ok(copy::copy(t.term(), cx))
        }
    }
}

fn unregister_1(cx: &mut Cx, [name]: [Term; 1]) -> BifResult {
    if !name.is_atom() {
        return Err(Fail::Badarg);
    }
    let Some(who) = registry::whereis(name) else {
        return Err(Fail::Badarg);
    };
    if who == cx.self_pid() {
        if !registry::unregister_of(name, who) {
            return Err(Fail::Badarg);
        }
        cx.process().ext_mut().name = NIL;
        crate::trace::tie(cx.process(), crate::trace::Tie::Unregister, name);
        return Ok(am::TRUE);
    }
    if who.is_local_port() {
        crate::port::unregister(who, name);
        return Ok(am::TRUE);
    }
    if !registry::unregister_of(name, who) {
        // It has ended meanwhile, or lost its name, which may be another's by now.
        return unregister_1(cx, [name]);
    }
    send::run_in(
        who,
        Box::new(move |cx| {
            // It may have registered itself by that name again.
            let Some(p) = cx.map(|c| c.process()) else {
                return;
            };
            if let Some(e) = p.ext()
                && e.name == name
                && registry::whereis(name) != Some(who)
            {
                e.name = NIL;
            }
            crate::trace::tie(p, crate::trace::Tie::Unregister, name);
        }),
    );
    Ok(am::TRUE)
}
fn whereis_1(_: &mut Cx, [name]: [Term; 1]) -> BifResult {
    if !name.is_atom() {
        return Err(Fail::Badarg);
    }
    Ok(registry::whereis(name).unwrap_or(am::UNDEFINED))
}
fn registered_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    let v = registry::names();
    Ok(cx.list(&v))
}

// Sending.

fn send_2(cx: &mut Cx, [to, msg]: [Term; 2]) -> BifResult {
    crate::signal::deliver(cx, to, msg)
}
fn send_3(cx: &mut Cx, [to, msg, opts]: [Term; 3]) -> BifResult {
    let mut how = send::How::default();
    let mut it = opts.list_iter();
    for o in it.by_ref() {
        if o == a_noconnect() {
            how.no_connect = true;
        } else if o == am::NOSUSPEND {
            how.no_suspend = true;
        } else if o == am::PRIORITY && release::has(PRIORITY_MESSAGES) {
            how.urgent = true;
        } else {
            return Err(cx.badarg_cause(am::BADOPT));
        }
    }
    if !it.tail().is_nil() {
        return Err(cx.badarg_cause(am::BADOPT));
    }
    let how = send::How {
        options: Some(opts),
        ..how
    };
    Ok(match send::deliver_as(cx, to, msg, how)? {
        Sent::Done | Sent::Nowhere => am::OK,
        Sent::NotConnected => a_noconnect(),
        Sent::Busy => am::NOSUSPEND,
    })
}

fn is_process_alive_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    if pid.is_pid() && unassigned_ids::is_unassigned_id(pid) {
        return Ok(am::FALSE);
    }
    if !pid.is_local_pid() {
        return Err(Fail::Badarg);
    }
    if pid == cx.self_pid() {
        return Ok(am::TRUE);
    }
    if runs_undisturbed(cx, pid) {
        return Ok(am::TRUE);
    }
    // Signals that this process sent before may be about to end it: it answers itself.
    ask(cx, pid, |p| {
        if p.is_some_and(|p| !p.has(process::EXIT_PENDING)) {
            am::TRUE
        } else {
            am::FALSE
        }
    })
}
fn is_process_alive_2(cx: &mut Cx, [pid, r]: [Term; 2]) -> BifResult {
    if !pid.is_local_pid() || r.as_ref_view().is_none() {
        return Err(Fail::Badarg);
    }
    let me = cx.self_pid();
    let r = OwnedTerm::copy_of(r);
    send::run_in(
        pid,
        Box::new(move |cx| {
            let alive = cx.is_some_and(|c| !c.process().has(process::EXIT_PENDING));
            send::send_with(me, |b| {
                let r = copy::copy(r.term(), b);
                b.tuple(&[r, if alive { am::TRUE } else { am::FALSE }])
            });
        }),
    );
    Ok(am::OK)
}
fn processes_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    let mut v = table().pids();
    v.sort_unstable_by_key(|p| p.raw());
    cx.bump(v.len() / 8);
    Ok(cx.list(&v))
}

/// Cells of the process table that are looked at in one call.
const CELLS_AT_ONCE: u32 = 1000;

/// The base of `erlang:processes_next/1`: some pids, and where the next are; `none` behind the last.
fn processes_next_1(cx: &mut Cx, [from]: [Term; 1]) -> BifResult {
    let from = from.as_small().and_then(|n| u32::try_from(n).ok());
    let from = from.filter(|&n| (n as usize) <= table().limit());
    match table().range(from.ok_or(Fail::Badarg)?, CELLS_AT_ONCE) {
        Some((pids, next)) => {
            cx.bump(pids.len() / 8 + 1);
            let list = cx.list(&pids);
            Ok(cx.tuple(&[Term::small(next.into()), list]))
        }
        None => Ok(atom::intern("none")),
    }
}

// The dictionary.

fn put_2(cx: &mut Cx, [k, v]: [Term; 2]) -> BifResult {
    let d = &mut cx.process().ext_mut().dict;
    Ok(d.put(k, v).unwrap_or(am::UNDEFINED))
}
fn get_1(cx: &mut Cx, [k]: [Term; 1]) -> BifResult {
    let d = cx.process().ext().map(|e| &e.dict);
    Ok(d.and_then(|d| d.get(k)).unwrap_or(am::UNDEFINED))
}
/// What `f` makes of the entries of the dictionary, in a list. Each time that it is asked of the same entry it says the same.
fn dict_list(cx: &mut Cx, f: impl Fn((Term, Term)) -> Option<Term>) -> Term {
    let v: Vec<Term> = match cx.process().ext().map(|e| &e.dict) {
        Some(d) => d.iter().filter_map(f).collect(),
        None => Vec::new(),
    };
    cx.list(&v)
}
fn get_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    let n = cx.process().ext().map_or(0, |e| e.dict.len());
    if n == 0 {
        return Ok(NIL);
    }
    let at = cx.alloc(n * LISTED_PAIR_WORDS);
    match cx.process().ext().map(|e| &e.dict) {
        // SAFETY: fresh words for as many pairs as the dictionary has.
        Some(d) => Ok(unsafe { list_of_pairs(at, d.iter()) }),
        None => Ok(NIL),
    }
}
fn get_keys_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    Ok(dict_list(cx, |e| Some(e.0)))
}
fn get_keys_1(cx: &mut Cx, [value]: [Term; 1]) -> BifResult {
    Ok(dict_list(cx, |e| {
        purlin_term::compare::eq_exact(e.1, value).then_some(e.0)
    }))
}
fn erase_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    let l = get_0(cx, [])?;
    if let Some(e) = cx.process().ext() {
        e.dict = Default::default();
    }
    Ok(l)
}
fn erase_1(cx: &mut Cx, [k]: [Term; 1]) -> BifResult {
    let d = cx.process().ext().map(|e| &mut e.dict);
    Ok(d.and_then(|d| d.erase(k)).unwrap_or(am::UNDEFINED))
}

// Group leaders.

pub use crate::process::group_leader_of;
fn group_leader_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    Ok(group_leader_of(cx))
}
fn group_leader_2(cx: &mut Cx, [gl, pid]: [Term; 2]) -> BifResult {
    if !gl.is_pid() || !pid.is_pid() {
        return Ok(am::BADARG);
    }
    if !pid.is_local_pid() {
        return purlin_dist::signals::group_leader(cx, gl, pid);
    }
    if pid == cx.self_pid() {
        process::set_group_leader(cx.process(), gl);
        return Ok(am::TRUE);
    }
    Ok(am::FALSE)
}
fn group_leader_3(cx: &mut Cx, [gl, pid, r]: [Term; 3]) -> BifResult {
    if !gl.is_pid() || !pid.is_local_pid() || r.as_ref_view().is_none() {
        return Err(Fail::Badarg);
    }
    let me = cx.self_pid();
    let (gl, r) = (OwnedTerm::copy_of(gl), OwnedTerm::copy_of(r));
    send::run_in(
        pid,
        Box::new(move |cx| {
            let res = match cx {
                Some(c) => {
                    process::set_group_leader(c.process(), gl.term());
                    am::TRUE
                }
                None => am::BADARG,
            };
            send::send_with(me, |b| {
                let r = copy::copy(r.term(), b);
                b.tuple(&[r, res])
            });
        }),
    );
    Ok(am::OK)
}

// Garbage collection and other work that one process asks another to do.

/// Waits for a message, with a small heap, and goes on; a call of it is never a call of Erlang code, which would call it again.
fn hibernate_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    cx.interp.live = 0;
    if receive::has_current(cx) {
        compact::cancel_hibernation(cx.process());
        return Ok(am::OK);
    }
    // SAFETY: as behind any call of a native: it has no arguments, and all that lives is on the stack.
    match unsafe { compact::hibernates(cx, 0) } {
        true => {
            crate::sched::mark_early_yield();
            Err(Fail::Again)
        }
        false => Err(Fail::Wait),
    }
}

fn garbage_collect_1(cx: &mut Cx, [mode]: [Term; 1]) -> BifResult {
    if mode != a_major() && mode != atom::intern("minor") {
        return Err(Fail::Badarg);
    }
    cx.heap.gc_wanted = true;
    if mode == a_major() {
        cx.heap.need_fullsweep = true;
    } else {
        cx.heap.keep_generations();
    }
    Ok(am::TRUE)
}

/// Work to be done where the registers of the process are known to be roots.
pub(super) fn system_task(
    cx: &mut Cx,
    requester: Term,
    target: Term,
    prio: Term,
    request: Term,
) -> BifResult {
    let _ = cx;
    if !target.is_pid() || (priority_of(prio).is_none() && prio != atom::intern("inherit")) {
        return Err(Fail::Badarg);
    }
    let (kind, id, arg) = match request.as_tuple() {
        Some(&[kind, id, arg]) => (kind, id, arg),
        // Work that is nothing but its answer, for trying the order of such work.
        Some(&[kind, id]) if kind == atom::intern("system_task_test") => (kind, id, NIL),
        _ => return Err(Fail::Badarg),
    };
    let fits = match () {
        _ if kind == a_garbage_collect() => arg == a_major() || arg == atom::intern("minor"),
        _ if kind == a_check_process_code() => arg.is_atom(),
        _ => kind == a_copy_literals() || kind == atom::intern("system_task_test"),
    };
    if !fits || !target.is_local_pid() {
        return Err(Fail::Badarg);
    }
    let id = OwnedTerm::copy_of(id);
    let answer = move |res: Term| {
        send::send_with(requester, |b| {
            let id = copy::copy(id.term(), b);
            b.tuple(&[kind, id, res])
        });
    };
    let at = priority_of(prio).unwrap_or_else(crate::sched::running_priority);
    send::run_in_at(
        target,
        at,
        Box::new(move |cx| {
            let Some(cx) = cx else {
                let told = kind == a_garbage_collect() || kind == a_check_process_code();
                answer(if told { am::FALSE } else { am::OK });
                return;
            };
            // The native of a dirty thread may be long about it. Its caller's frame is where it was called.
            if cx.dirty && kind == a_check_process_code() {
                let pc = cx.bif_pc;
                let uses = crate::code::purge::process_is_lingering(cx, arg, pc);
                answer(Term::bool(uses));
                return;
            }
            let work: crate::signal::Task = Box::new(move |cx| {
                let Some(cx) = cx else {
                    answer(if kind == a_copy_literals() {
                        am::OK
                    } else {
                        am::FALSE
                    });
                    return;
                };
                let live = cx.interp.live;
                if kind == a_garbage_collect() {
                    // SAFETY: deferred tasks run between time slices, where `live` registers are all there is.
                    unsafe { compact::collect_for_another(cx, live, arg == a_major()) };
                    answer(am::TRUE);
                } else if kind == a_check_process_code() {
                    answer(if check_process_code(cx, arg) {
                        am::TRUE
                    } else {
                        am::FALSE
                    });
                } else if kind == a_copy_literals() {
                    // SAFETY: as above.
                    unsafe { crate::code::literal_areas::count(cx, live) };
                    answer(am::OK);
                } else {
                    answer(am::TRUE);
                }
            });
            let e = cx.process().ext_mut();
            match e.collections_held.as_mut() {
                Some(held) if kind == a_garbage_collect() => held.push((at, work)),
                _ => e.deferred.push((at, work)),
            }
        }),
    );
    Ok(am::OK)
}
fn request_system_task_3(cx: &mut Cx, [target, prio, request]: [Term; 3]) -> BifResult {
    let me = cx.self_pid();
    system_task(cx, me, target, prio, request)
}
fn request_system_task_4(cx: &mut Cx, [by, target, prio, request]: [Term; 4]) -> BifResult {
    system_task(cx, by, target, prio, request)
}

// Flags.

/// The term of a `max_heap_size`.
pub(crate) fn max_heap_term(cx: &mut Cx, m: Option<MaxHeap>) -> Term {
    let m = m.unwrap_or_else(process::max_heap_flags);
    let b = |v| if v { am::TRUE } else { am::FALSE };
    let mut t = cx.flatmap(&[], &[]);
    let mut items = vec![
        (am::ERROR_LOGGER, b(m.error_logger)),
        (am::KILL, b(m.kill)),
        (am::SIZE, Term::small(m.words as i64)),
    ];
    if release::has(SHARED_BINARIES_IN_LIMIT) {
        items.push((a_include_shared_binaries(), b(m.include_shared_binaries)));
    }
    for (k, v) in items {
        t = purlin_term::map::put(cx, t, k, v);
    }
    t
}

fn process_flag_2(cx: &mut Cx, [flag, value]: [Term; 2]) -> BifResult {
    if flag == am::TRAP_EXIT {
        let on = erl_flag(value).ok_or(Fail::Badarg)?;
        // Signals that have arrived are judged by the old setting.
        handle::fetch(cx);
        let p = cx.process();
        let old = p.has(TRAP_EXIT);
        if p.has(process::EXIT_PENDING) {
            return Err(Fail::Again);
        }
        p.set_flag(TRAP_EXIT, on);
        return Ok(if old { am::TRUE } else { am::FALSE });
    }
    if flag == am::ERROR_HANDLER {
        if !value.is_atom() {
            return Err(Fail::Badarg);
        }
        let e = cx.process().ext_mut();
        let old = std::mem::replace(&mut e.error_handler, value);
        return Ok(if old == NIL { am::ERROR_HANDLER } else { old });
    }
    if flag == am::PRIORITY {
        let new = priority_of(value).ok_or(Fail::Badarg)?;
        let old = cx.process().state.priority();
        cx.process().state.set_priority(new);
        return Ok(priority_atom(old));
    }
    if flag == am::MIN_HEAP_SIZE || flag == am::MIN_BIN_VHEAP_SIZE {
        let n = value
            .as_small()
            .filter(|&n| (0..1 << 31).contains(&n))
            .ok_or(Fail::Badarg)?;
        return Ok(if flag == am::MIN_HEAP_SIZE {
            let old = process::reported_min_heap(cx.process());
            let asked = asked_heap(n as usize);
            cx.process().ext_mut().settings.min_heap_words = asked;
            cx.heap.min_heap_words = asked.map_or_else(process::default_min_heap, |n| n as usize);
            Term::small(old as i64)
        } else {
            let n = asked_vheap(n as usize);
            let old = cx.heap.min_vheap_words;
            cx.process().ext_mut().settings.min_vheap_words = Some(n);
            cx.heap.min_vheap_words = n as usize;
            Term::small(old as i64)
        });
    }
    if flag == am::FULLSWEEP_AFTER {
        let n = value.as_small().filter(|&n| n >= 0).ok_or(Fail::Badarg)?;
        let old = cx.heap.fullsweep_after;
        let n = n.min(65535) as u32;
        cx.process().ext_mut().settings.fullsweep_after = Some(n);
        cx.heap.fullsweep_after = n;
        return Ok(Term::small(i64::from(old)));
    }
    if flag == am::MAX_HEAP_SIZE {
        let old = cx.process().ext().and_then(|e| e.max_heap);
        let new = max_heap(value, old).ok_or(Fail::Badarg)?;
        if new.words != 0 && new.words < process::reported_min_heap(cx.process()) {
            return Err(Fail::Badarg);
        }
        let t = max_heap_term(cx, old);
        cx.process().ext_mut().max_heap = Some(new);
        return Ok(t);
    }
    if flag == am::MESSAGE_QUEUE_DATA {
        let on = match value {
            v if v == am::ON_HEAP => false,
            v if v == am::OFF_HEAP => true,
            _ => return Err(Fail::Badarg),
        };
        let old = cx.process().has(OFF_HEAP_QUEUE);
        cx.process().set_flag(OFF_HEAP_QUEUE, on);
        return Ok(if old { am::OFF_HEAP } else { am::ON_HEAP });
    }
    if flag == a_sensitive() {
        let on = erl_flag(value).ok_or(Fail::Badarg)?;
        let old = cx.process().has(SENSITIVE);
        cx.process().set_flag(SENSITIVE, on);
        cx.process().state.set_sensitive(on);
        return Ok(if old { am::TRUE } else { am::FALSE });
    }
    if flag == a_async_dist() {
        let on = erl_flag(value).ok_or(Fail::Badarg)?;
        let old = cx.process().is_async_dist();
        cx.process().ext_mut().async_dist = Some(on);
        return Ok(Term::bool(old));
    }
    if flag == a_save_calls() {
        let Some(n) = value.as_small().filter(|n| (0..=10_000).contains(n)) else {
            return Err(cx.badarg_cause(am::NONE));
        };
        let old = saved::set(cx.process(), n as usize);
        let old = Term::small(old as i64);
        // Machine code notes no calls: the interpreter goes on, in the next slice.
        return if n == 0 {
            Ok(old)
        } else {
            Err(cx.yield_with(old))
        };
    }
    if flag == a_scheduler() {
        let n = value
            .as_small()
            .and_then(|n| usize::try_from(n).ok())
            .filter(|&n| n <= crate::sched::count())
            .ok_or(Fail::Badarg)?;
        let before = crate::sched::bind(cx.proc, n);
        // The code that follows is to run there.
        return Err(cx.yield_with(Term::small(before as i64)));
    }
    if flag == a_monitor_nodes()
        || flag
            .as_tuple()
            .is_some_and(|t| t.len() == 2 && t[0] == a_monitor_nodes())
    {
        return purlin_dist::natives::monitor_nodes(cx, flag, value);
    }
    Err(cx.badarg_cause(am::BADOPT))
}
fn process_flag_3(cx: &mut Cx, [pid, flag, value]: [Term; 3]) -> BifResult {
    if !pid.is_local_pid() {
        return Ok(a_badtype());
    }
    if pid != cx.self_pid() && table().find(pid).is_none() {
        return Ok(a_badtype());
    }
    if flag != a_save_calls() {
        return Ok(am::BADARG);
    }
    if pid == cx.self_pid() {
        return match process_flag_2(cx, [flag, value]) {
            Ok(old) => Ok(old),
            Err(Fail::Yield) => Err(Fail::Yield),
            Err(_) => Ok(am::BADARG),
        };
    }
    let Some(n) = value.as_small().filter(|n| (0..=10_000).contains(n)) else {
        return Ok(am::BADARG);
    };
    let r = ids::make_ref(cx);
    let (me, key) = (cx.self_pid(), OwnedTerm::copy_of(r));
    send::run_in(
        pid,
        Box::new(move |cx| {
            let old = cx.map(|c| {
                let old = saved::set(c.process(), n as usize);
                if n != 0 {
                    saved::begin(c);
                    // Machine code notes no calls, and is left where a collection is wanted.
                    c.compiled = false;
                    c.heap.gc_wanted = true;
                }
                old
            });
            send::send_with(me, |b| {
                let r = copy::copy(key.term(), b);
                b.tuple(&[r, old.map_or(am::BADARG, |n| Term::small(n as i64))])
            });
        }),
    );
    Ok(r)
}

// Suspension.

fn suspend_process_2(cx: &mut Cx, [pid, opts]: [Term; 2]) -> BifResult {
    // The process is looked at before the options.
    if !pid.is_local_pid() || pid == cx.self_pid() {
        return Ok(am::BADARG);
    }
    let (mut unless, mut asynchronous, mut reply) = (false, false, None);
    let mut it = opts.list_iter();
    for o in it.by_ref() {
        if o == a_unless_suspending() {
            unless = true;
        } else if o == a_asynchronous() {
            asynchronous = true;
        } else {
            match o.as_tuple() {
                Some(&[k, v]) if k == a_asynchronous() => {
                    asynchronous = true;
                    reply = Some(OwnedTerm::copy_of(v));
                }
                _ => return Ok(am::BADOPT),
            }
        }
    }
    if !it.tail().is_nil() {
        return Ok(am::BADOPT);
    }
    let me = cx.self_pid();
    let gone = table().find(pid).is_none();
    if gone && !asynchronous {
        return Ok(am::BADARG);
    }
    if gone {
        // Who doesn't wait for it is told, if at all, by a message.
        if let Some(t) = &reply {
            send::send_with(me, |b| {
                let t = copy::copy(t.term(), b);
                b.tuple(&[t, am::BADARG])
            });
        }
        return Ok(am::TRUE);
    }
    let mine = &mut cx.process().ext_mut().suspending;
    let stopped = match mine.get_mut(&Peer::of(pid)) {
        Some((_, stopped)) if unless && (asynchronous || stopped.load(Ordering::Acquire)) => {
            return Ok(am::FALSE);
        }
        // It has not heard of it yet, and is waited for.
        Some(_) if unless => {
            let r = ids::make_ref(cx);
            let told = OwnedTerm::copy_of(r);
            let task = move |cx: Option<&mut Cx>| {
                send::send_with(me, |b| {
                    let r = copy::copy(told.term(), b);
                    b.tuple(&[r, if cx.is_some() { am::FALSE } else { am::BADARG }])
                });
            };
            send::run_in(pid, Box::new(task));
            return Ok(r);
        }
        Some((n, stopped)) => {
            *n += 1;
            stopped.clone()
        }
        None => {
            let stopped = Arc::new(AtomicBool::new(false));
            mine.insert(Peer::of(pid), (1, stopped.clone()));
            stopped
        }
    };
    let r = if asynchronous {
        None
    } else {
        let r = ids::make_ref(cx);
        Some((r, OwnedTerm::copy_of(r)))
    };
    let (r_term, r_own) = match r {
        Some((t, o)) => (Some(t), Some(o)),
        None => (None, None),
    };
    let answer = move |there: bool| {
        stopped.store(true, Ordering::Release);
        if let Some(r) = &r_own {
            send::send_with(me, |b| {
                let r = copy::copy(r.term(), b);
                b.tuple(&[r, if there { am::TRUE } else { am::BADARG }])
            });
        }
        if let Some(t) = &reply {
            send::send_with(me, |b| {
                let t = copy::copy(t.term(), b);
                let what = atom::intern(if there { "suspended" } else { "exited" });
                b.tuple(&[t, what])
            });
        }
    };
    let stop = move |c: &mut Cx| {
        suspend::suspend(c.process(), me);
        // What runs on until the end of its slice is made to stop soon.
        c.reds = 0;
        crate::port::request_rest(c);
    };
    send::run_in(
        pid,
        Box::new(move |cx| {
            let Some(c) = cx else {
                return answer(false);
            };
            let native = c.dirty && dirty_calls::within_native(c).is_none();
            if native && release::has(SUSPENDED_AFTER_NATIVES) {
                // It runs on until the native that it is in has returned.
                let task = move |cx: Option<&mut Cx>| {
                    let there = cx.is_some();
                    cx.into_iter().for_each(stop);
                    answer(there);
                };
                let deferred = &mut c.process().ext_mut().deferred;
                deferred.push((Priority::Normal, Box::new(task)));
                return;
            }
            stop(c);
            if c.dirty || dirty_calls::within_native(c).is_some() {
                return answer(true);
            }
            // In the midst of a time slice it may still end, and was not suspended then.
            let task = move |cx: Option<&mut Cx>| answer(cx.is_some());
            let deferred = &mut c.process().ext_mut().deferred;
            deferred.push((Priority::Normal, Box::new(task)));
        }),
    );
    Ok(r_term.unwrap_or(am::TRUE))
}
fn resume_process_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    let me = cx.self_pid();
    if !pid.is_local_pid() || pid == me {
        return Err(Fail::Badarg);
    }
    let mine = &mut cx.process().ext_mut().suspending;
    let peer = Peer::of(pid);
    if table().find(pid).is_none() {
        // It has ended, and is suspended no more.
        mine.remove(&peer);
    }
    let (n, _) = mine.get_mut(&peer).ok_or(Fail::Badarg)?;
    *n -= 1;
    if *n == 0 {
        mine.remove(&peer);
    }
    suspend::resume(me, pid);
    Ok(am::TRUE)
}

fn is_system_process_1(_: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    if !pid.is_local_pid() {
        return Err(Fail::Badarg);
    }
    // `init` is none, though nothing goes on without it.
    let is = pid.pid_data() != 0 && crate::process::is_system(pid);
    Ok(Term::bool(is))
}

fn make_ref_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    Ok(ids::make_ref(cx))
}

/// The time slice ends with the next call.
fn yield_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    Err(cx.yield_with(am::TRUE))
}

bifs! {
    Plain "erlang":"yield"/0 = yield_0 [reads(All)];
    Plain "erlang":"self"/0 = self_0;
    Plain "erlang":"make_ref"/0 = make_ref_0;
    Plain "erlang":"spawn"/3 = spawn_3 [reads(All) makes];
    Plain "erlang":"spawn_link"/3 = spawn_link_3 [reads(All) makes];
    Plain "erlang":"spawn_opt"/4 = spawn_opt_4 [reads(All) makes];
    Plain "erts_internal":"spawn_request"/4 = spawn_request_4 [reads(All) makes];
    Plain "erts_internal":"spawn_system_process"/3 = spawn_system_process_3;
    Plain "erlang":"register"/2 = register_2 [writes(Name)];
    Plain "erlang":"unregister"/1 = unregister_1 [writes(Name)];
    Plain "erlang":"whereis"/1 = whereis_1 [reads(Name)];
    Plain "erlang":"registered"/0 = registered_0 [reads(All)];
    Plain "erlang":"!"/2 = send_2 [writes(Process) sends];
    Plain "erlang":"send"/2 = send_2 [long writes(Process) sends];
    Plain "erlang":"send"/3 = send_3 [long writes(Process) sends];
    Plain "erlang":"is_process_alive"/1 = is_process_alive_1 [reads(Process)];
    Plain "erts_internal":"is_process_alive"/2 = is_process_alive_2 [reads(Process)];
    Plain "erlang":"processes"/0 = processes_0 [reads(All)];
    Plain "erlang":"put"/2 = put_2;
    Plain "erlang":"get"/0 = get_0;
    Plain "erlang":"get"/1 = get_1;
    Plain "erlang":"get_keys"/0 = get_keys_0;
    Plain "erlang":"get_keys"/1 = get_keys_1;
    Plain "erlang":"erase"/0 = erase_0;
    Plain "erlang":"erase"/1 = erase_1;
    Plain "erlang":"group_leader"/0 = group_leader_0;
    Plain "erts_internal":"group_leader"/2 = group_leader_2 [writes(Process)];
    Plain "erts_internal":"group_leader"/3 = group_leader_3 [writes(Process)];
    Plain "erts_internal":"processes_next"/1 = processes_next_1 [since(28) reads(All)];
    Plain "erlang":"hibernate"/0 = hibernate_0 [in_place since(28)];
    Plain "erts_internal":"garbage_collect"/1 = garbage_collect_1;
    Plain "erts_internal":"request_system_task"/3 = request_system_task_3;
    Plain "erts_internal":"request_system_task"/4 = request_system_task_4;
    Plain "erlang":"process_flag"/2 = process_flag_2 [reads(All)];
    Plain "erts_internal":"process_flag"/3 = process_flag_3 [writes(Process)];
    Plain "erts_internal":"suspend_process"/2 = suspend_process_2 [writes(Process)];
    Plain "erlang":"resume_process"/1 = resume_process_1 [writes(Process)];
    Plain "erts_internal":"is_system_process"/1 = is_system_process_1;
}

/// Keeps the fetched messages' list in one place for `process_info`.
pub fn messages(cx: &mut Cx) -> Term {
    let p: *const Process = cx.proc;
    // SAFETY: the running process is owned by this thread.
    receive::messages_list(unsafe { &*p }, cx)
}
