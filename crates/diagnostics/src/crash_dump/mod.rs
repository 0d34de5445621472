//! `erl_crash.dump`: the state of an emulator that ends by a failure, in the format that stock
//! writes and that its tools (`crashdump_viewer`, `recon`) read.
//!
//! `ERL_CRASH_DUMP` names the file. `ERL_CRASH_DUMP_SECONDS` limits the time for writing and
//! `ERL_CRASH_DUMP_BYTES` the size; 0 for either means no dump. Each process is first taken from
//! the schedulers (see [`purlin_kernel::process::state`]), so that nothing else runs it; one that
//! is running at that time is shown without its heap. The emulator exits after the dump.

mod dumped_terms;

use dumped_terms::{Binaries, Objects};
use purlin_ets::WriteConcurrency;
use purlin_io::port;
use purlin_kernel::budgets::{self, Counted, NO_LIMIT};
use purlin_kernel::cx::Cx;
use purlin_kernel::options::CrashDumpFlags;
use purlin_kernel::process::Enter;
use purlin_kernel::process::state::Snapshot;
use purlin_kernel::process::{self, Process, SYSTEM};
use purlin_kernel::report::to_stderr;
use purlin_kernel::{code, osenv, sched};
use purlin_runtime::natives;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::print::{Style, format_atom, format_term};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, Term, atom};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

/// Time to wait for schedulers to reach the end of their time slices.
const STOP: Duration = Duration::from_secs(1);

/// Number of return addresses in the stack trace of a scheduler's process.
const LIMITED_STACK: usize = 20;

/// A file that accepts a limited number of bytes.
struct Limited {
    to: File,
    left: u64,
}

impl Write for Limited {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = buf
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if n == 0 && !buf.is_empty() {
            return Err(io::Error::other("limit reached"));
        }
        let n = self.to.write(&buf[..n])?;
        self.left -= n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A descriptor reserved for the dump, in case the emulator exits because it has run out of them.
static RESERVE: Mutex<Option<File>> = Mutex::new(None);

/// Address space reserved for the dump, in case memory is exhausted. It is never touched, so it
/// takes no memory.
static ROOM: Mutex<Vec<u8>> = Mutex::new(Vec::new());
const ROOM_BYTES: usize = 16 << 20;

/// Reserves what the dump needs, unless dumps are off. Called before programs run.
pub(crate) fn reserve() {
    let flags = purlin_kernel::options::try_current().map(|o| &o.flags.crash_dump);
    if flags.is_none_or(|f| f.seconds == Some(0) || f.bytes == Some(0)) {
        return;
    }
    *RESERVE.lock() = File::open("/dev/null").ok();
    *ROOM.lock() = Vec::with_capacity(ROOM_BYTES);
}

fn create(path: &std::ffi::OsStr) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // The exiting thread is alone here. Another thread may take the descriptor first, though.
    drop(RESERVE.try_lock().map(|mut f| f.take()));
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o640)
        .open(path)
}

/// The flags from the environment as it is now. While a thread is changing it, those at start are
/// used: the emulator may be exiting in the middle of the change.
fn flags_now(at_start: &CrashDumpFlags) -> CrashDumpFlags {
    let mut flags = at_start.clone();
    osenv::try_read(|get| {
        flags.read_environment(|name| get(name.as_bytes()).map(OsString::from_vec));
    });
    flags
}

/// The port to the program that watches the emulator, if there is one.
fn heart() -> Option<Term> {
    let port = process::registry::whereis(atom::intern("heart_port"));
    port.filter(|p| p.is_local_port())
}

/// Tells the watching program that a dump is about to be written.
fn prepare(heart: Term) {
    const PREPARING: u8 = 8;
    let mut f = Fragment::new();
    let data = f.binary(&[PREPARING]);
    let data = OwnedTerm::from_parts(data, f);
    purlin_io::port::command_from_library(heart, None, data.term());
}

/// Writes the dump, if the environment allows one, and says so on standard error.
pub fn write(slogan: &str) {
    let Some(o) = purlin_kernel::options::try_current() else {
        return;
    };
    let flags = &flags_now(&o.flags.crash_dump);
    if flags.seconds == Some(0) || flags.bytes == Some(0) {
        return;
    }
    if let Some(heart) = heart() {
        if flags.seconds.is_none() {
            return;
        }
        // The watching program then waits for that long.
        prepare(heart);
    }
    if let Some(s) = flags.seconds.filter(|s| *s > 0) {
        // SAFETY: the default action of the signal ends the process, as the time limit requires.
        unsafe {
            libc::signal(libc::SIGALRM, libc::SIG_DFL);
            libc::alarm(s.min(u32::MAX as i64) as u32);
        }
    }
    if let Some(n) = flags.nice {
        // SAFETY: a plain call, which may be refused without harm.
        unsafe { libc::nice(n.min(39)) };
    }
    drop(ROOM.try_lock().map(|mut r| std::mem::take(&mut *r)));
    let default = OsString::from("erl_crash.dump");
    let path = flags.file.as_ref().unwrap_or(&default);
    let Ok(file) = create(path) else {
        return;
    };
    to_stderr(&format!(
        "\nCrash dump is being written to: {}...",
        path.display()
    ));
    let left = flags
        .bytes
        .and_then(|b| u64::try_from(b).ok())
        .unwrap_or(u64::MAX);
    let mut w = BufWriter::with_capacity(1 << 16, Limited { to: file, left });
    // If the disk is full or the limit reached, the part that is written is still useful.
    let _ = dump(&mut w, slogan).and_then(|()| w.flush());
    to_stderr("done\n");
}

fn dump(w: &mut dyn Write, slogan: &str) -> io::Result<()> {
    let now = purlin_kernel::clock::DateTime::local_now();
    writeln!(w, "=erl_crash_dump:0.5")?;
    writeln!(w, "{}", ctime(&now))?;
    writeln!(w, "Slogan: {slogan}")?;
    write!(
        w,
        "System version: {}",
        purlin_runtime::natives::system::system_info::system_version()
    )?;
    writeln!(w, "Taints: ")?;
    writeln!(w, "Atoms: {}", atom::count())?;
    let me = sched::current();
    if me != 0 {
        writeln!(w, "Calling Thread: scheduler:{me}")?;
    } else {
        let name = std::thread::current().name().unwrap_or("").to_string();
        writeln!(w, "Calling Thread: {name}")?;
    }
    // What runs and waits is known only before the schedulers stop, and where it runs only
    // afterwards.
    let lengths = (sched::queue_lengths(), sched::dirty_lengths());
    let running = (sched::running(), sched::dirty_running());
    sched::stop(STOP);
    schedulers(w, lengths, running)?;
    general(w)?;
    let mut owned = Vec::new();
    all_processes(w, Some(&mut owned))?;
    ports(w)?;
    tables(w)?;
    timers(w)?;
    nodes(w)?;
    modules(w)?;
    funs(w)?;
    persistent_terms(w)?;
    let mut binaries = Binaries::default();
    heaps(w, &owned, &mut binaries)?;
    binaries.write(w)?;
    writeln!(w, "=atoms")?;
    let all = (0..atom::made()).rev().map(Term::atom);
    for a in all.filter(|a| atom::is_known(*a)) {
        writeln!(w, "{}", format_atom(a, Style::Write))?;
    }
    writeln!(w, "=end")
}

/// Processes that schedulers and dirty threads (processor; input and output) run.
type Running = (Vec<Option<Term>>, (Vec<Option<Term>>, Vec<Option<Term>>));

/// Writes the schedulers and dirty threads, with what they ran before they were stopped, and the
/// queues as they were then.
fn schedulers(
    w: &mut dyn Write,
    (queues, dirty): (Vec<usize>, (usize, usize)),
    (running, (cpu, io)): Running,
) -> io::Result<()> {
    let mut cx = Cx::boxed(0);
    for (i, n) in queues.into_iter().enumerate() {
        writeln!(w, "=scheduler:{}", i + 1)?;
        writeln!(w, "Run Queue Max Length: 0")?;
        writeln!(w, "Run Queue High Length: 0")?;
        writeln!(w, "Run Queue Normal Length: {n}")?;
        writeln!(w, "Run Queue Low Length: 0")?;
        writeln!(w, "Run Queue Port Length: 0")?;
        current_process(w, &mut cx, running.get(i).copied().flatten())?;
    }
    let mut number = running.len();
    for (name, n, threads) in [("cpu", dirty.0, cpu), ("io", dirty.1, io)] {
        for pid in threads {
            number += 1;
            writeln!(w, "=dirty_{name}_scheduler:{number}")?;
            current_process(w, &mut cx, pid)?;
        }
        writeln!(w, "=dirty_{name}_run_queue")?;
        writeln!(w, "Run Queue Normal Length: {n}")?;
    }
    Ok(())
}

/// Writes the process that a scheduler ran. One that still runs is shown without its place: no
/// other thread can read it.
fn current_process(w: &mut dyn Write, cx: &mut Cx, pid: Option<Term>) -> io::Result<()> {
    let Some(pid) = pid else {
        return writeln!(w, "Current Process: ");
    };
    writeln!(w, "Current Process: {}", show(pid))?;
    let Some(p) = process::table().find(pid) else {
        return writeln!(w, "Current Process State: Non Existing");
    };
    // SAFETY: cells are never unmapped; the state word is an atomic.
    let state = unsafe { (*p).state.load() };
    writeln!(w, "Current Process State: {}", state_name(state))?;
    if !is_left(state) {
        return Ok(());
    }
    // SAFETY: schedulers have stopped, so a process that is not running belongs to this thread.
    unsafe {
        let (pc, live) = ((*p).pc, (*p).live as usize);
        writeln!(
            w,
            "Current Process Program counter: 0x{:016x} ({})",
            pc as usize,
            place(pc)
        )?;
        cx.enter(p);
        let returns = stack_words(cx).filter_map(|(at, t)| Some((at, return_address(t)?)));
        let returns: Vec<(*const Term, usize)> = returns.take(LIMITED_STACK).collect();
        cx.leave(pc, live);
        writeln!(w, "Current Process Limited Stack Trace:")?;
        returns
            .into_iter()
            .try_for_each(|(at, to)| write_return(w, at, to))
    }
}

/// Name of a state of processes, as stock has it.
fn state_name(s: Snapshot) -> &'static str {
    match s {
        s if !s.is_alive() => "Non Existing",
        s if s.is_exiting() => "Exiting",
        s if s.is_running() => "Running",
        s if s.is_suspended() => "Suspended",
        s if s.is_queued() => "Scheduled",
        _ => "Waiting",
    }
}

/// Whether no thread runs the process: after schedulers have stopped, it belongs to this one.
fn is_left(s: Snapshot) -> bool {
    s.is_alive() && !s.is_running() && !s.is_exiting()
}

/// Writes the entries of all funs, unless a thread that was stopped is changing them.
fn funs(w: &mut dyn Write) -> io::Result<()> {
    for f in code::try_funs().unwrap_or_default() {
        writeln!(w, "=fun")?;
        writeln!(w, "Module: {}", show(f.module))?;
        writeln!(w, "Uniq: {}", f.old_uniq)?;
        writeln!(w, "Index: {}", f.index)?;
        writeln!(w, "Address: 0x{:016x}", f.address() as usize)?;
        writeln!(w, "Refc: {}", f.count())?;
    }
    Ok(())
}

/// Writes the persistent terms, and as literals all objects in them. There are none of them if a
/// thread that was stopped is changing the table.
fn persistent_terms(w: &mut dyn Write) -> io::Result<()> {
    writeln!(w, "=persistent_terms")?;
    let mut objects = Objects::default();
    let mut result = Ok(());
    natives::persistent::try_all(&mut |all| {
        result = all
            .iter()
            .try_for_each(|&(key, value)| {
                objects.element(w, key)?;
                write!(w, "|")?;
                objects.element(w, value)?;
                writeln!(w)
            })
            .and_then(|()| writeln!(w, "=literals"))
            .and_then(|()| objects.write(w, None));
    });
    result
}

fn show(t: Term) -> String {
    format_term(t, Style::Display, 10_000)
}

/// `=memory` and the sections after it: the state of the whole system.
pub fn info(w: &mut Vec<u8>) -> io::Result<()> {
    general(w)
}

fn general(w: &mut dyn Write) -> io::Result<()> {
    memory(w)?;
    writeln!(w, "=index_table:atom_tab")?;
    writeln!(w, "limit: {}", atom::limit())?;
    writeln!(w, "entries: {}", atom::count())?;
    writeln!(w, "=index_table:module_code")?;
    writeln!(w, "entries: {}", code::loaded().len())?;
    writeln!(w, "=hash_table:process_reg")?;
    writeln!(w, "objs: {}", process::registry::names().len())?;
    if let Some(all) = code::try_funs() {
        writeln!(w, "=hash_table:fun_table")?;
        writeln!(w, "objs: {}", all.len())?;
    }
    all_budgets(w)
}

/// `=budget:NUMBER` for each budget: stock has no such sections.
fn all_budgets(w: &mut dyn Write) -> io::Result<()> {
    use std::fmt::Write as _;
    let mut text = String::new();
    budgets::each(|number, b| {
        let name = b.try_with_name(|t| format_term(t, Style::Display, 200).to_string());
        let _ = writeln!(text, "=budget:{number}");
        let _ = writeln!(text, "Name: {}", name.as_deref().unwrap_or("unknown"));
        let _ = writeln!(text, "Parent: {}", b.parent());
        for (what, of) in Counted::ALL {
            let [limit, used, peak, reached] = b.account(what);
            let limit = match limit {
                NO_LIMIT => "infinity".to_owned(),
                n => n.to_string(),
            };
            let _ = writeln!(
                text,
                "{of}: {used} of {limit}, peak {peak}, reached {reached}"
            );
        }
        let (_, nanoseconds, waited) = b.cpu();
        let _ = writeln!(text, "cpu: {} ms, waited {waited}", nanoseconds / 1_000_000);
    });
    w.write_all(text.as_bytes())
}

/// All processes, as in `erlang:system_info(procs)`.
pub fn processes(w: &mut Vec<u8>) -> io::Result<()> {
    all_processes(w, None)
}

/// Writes all processes. With `owned`, schedulers have stopped: processes that are not running,
/// which only this thread may touch now, are added to it.
fn all_processes(w: &mut dyn Write, mut owned: Option<&mut Vec<*mut Process>>) -> io::Result<()> {
    let mut cx = Cx::boxed(0);
    let mut pids = process::table().pids();
    pids.sort_by_key(|p| p.pid_data());
    let names = process::registry::names().into_iter();
    let names: HashMap<u64, Term> = names
        .filter_map(|name| Some((process::registry::whereis(name)?.raw(), name)))
        .collect();
    for pid in pids {
        let Some(p) = process::table().find(pid) else {
            continue;
        };
        writeln!(w, "=proc:{}", show(pid))?;
        // SAFETY: cells are never unmapped; the state word is an atomic.
        let state = unsafe { (*p).state.load() };
        writeln!(w, "State: {}", state_name(state))?;
        if let Some(name) = names.get(&pid.raw()) {
            writeln!(w, "Name: {}", show(*name))?;
        }
        if let Some(owned) = owned.as_deref_mut()
            && is_left(state)
        {
            // SAFETY: schedulers have stopped, so a process that is not running belongs to this
            // thread.
            let system = unsafe {
                owned_process(w, &mut cx, p)?;
                (*p).has(SYSTEM)
            };
            if !system {
                owned.push(p);
            }
        }
    }
    Ok(())
}

/// Writes the parts of a process that only its owner may read.
///
/// # Safety
/// The caller owns `p`, which is packed, and `cx` runs no process.
unsafe fn owned_process(w: &mut dyn Write, cx: &mut Cx, p: *mut Process) -> io::Result<()> {
    // SAFETY: by the contract of this function.
    unsafe {
        let pid = (*p).pid();
        if let Some(e) = (*p).initial_call.as_ref() {
            let (m, f) = (show(e.module), show(e.function));
            writeln!(w, "Spawned as: {m}:{f}/{}", e.arity)?;
        }
        // As on stock, only for processes that have something to do.
        if (*p).state.load().is_queued()
            && let Some(at) = code::find((*p).pc)
        {
            let (m, f) = (show(at.module), show(at.function));
            writeln!(w, "Current call: {m}:{f}/{}", at.arity)?;
        }
        let parent = (*p).parent;
        let parent = if parent == pid.pid_data() {
            "[]".to_string()
        } else {
            show(Term::pid(parent))
        };
        writeln!(w, "Spawned by: {parent}")?;
        writeln!(w, "Message queue length: {}", (*p).queued_messages())?;
        cx.enter(p);
        let h = &cx.heap;
        writeln!(w, "Number of heap fragments: {}", h.frags.len())?;
        writeln!(w, "Heap fragment data: {}", h.frag_words)?;
        if let Some(e) = (*p).ext() {
            let mut links: Vec<String> = e.links.iter().map(|(k, _)| show(k.term())).collect();
            links.sort();
            if !links.is_empty() {
                writeln!(w, "Link list: [{}]", links.join(", "))?;
            }
        }
        writeln!(w, "Reductions: {}", (*p).reductions)?;
        let old = h.old_block_words();
        let old_used = h.old_words() - h.old_free_words();
        writeln!(w, "Stack+heap: {}", h.block_words())?;
        writeln!(w, "OldHeap: {old}")?;
        writeln!(w, "Heap unused: {}", h.free_words())?;
        writeln!(w, "OldHeap unused: {}", old - old_used)?;
        writeln!(w, "BinVHeap: {}", h.off_heap.bytes / 8)?;
        writeln!(w, "OldBinVHeap: {}", h.old_off_heap.bytes / 8)?;
        let unused = h.vheap_bytes.saturating_sub(h.off_heap.bytes) / 8;
        writeln!(w, "BinVHeap unused: {unused}")?;
        let unused = h.old_vheap_bytes.saturating_sub(h.old_off_heap.bytes) / 8;
        writeln!(w, "OldBinVHeap unused: {unused}")?;
        let outside = if h.inline_block { 0 } else { h.block_words() };
        let bytes = process::table::CELL_BYTES + (outside + old + h.frag_words) * 8;
        writeln!(w, "Memory: {bytes}")?;
        let pc = (*p).pc;
        writeln!(w, "Program counter: 0x{:016x} ({})", pc as usize, place(pc))?;
        let live = (*p).live as usize;
        writeln!(w, "arity = {live}")?;
        // The process is left as it was found, though nothing will run it any more.
        cx.leave(pc, live);
        Ok(())
    }
}

/// Writes the heaps of processes one after the other, since the text of all would take several
/// times their memory.
fn heaps(w: &mut dyn Write, owned: &[*mut Process], binaries: &mut Binaries) -> io::Result<()> {
    let mut cx = Cx::boxed(0);
    for &p in owned {
        // SAFETY: schedulers have stopped since the process was found not to run, so it belongs to
        // this thread.
        unsafe {
            let (pc, live) = ((*p).pc, (*p).live as usize);
            cx.enter(p);
            write_heap(w, &mut cx, p, binaries)?;
            cx.leave(pc, live);
        }
    }
    Ok(())
}

/// The function at an address.
fn place(pc: *const u64) -> String {
    match code::find(pc) {
        Some(p) => format!("{}:{}/{} + 0", show(p.module), show(p.function), p.arity),
        None => "unknown function".into(),
    }
}

/// Returns the words of the stack of the process in the context, with their addresses.
///
/// # Safety
/// The caller owns the process, and leaves its stack alone meanwhile.
unsafe fn stack_words(cx: &Cx) -> impl Iterator<Item = (*const Term, Term)> + use<> {
    let (from, to) = (cx.heap.stop.cast_const(), cx.heap.hend.cast_const());
    let words = (to as usize).saturating_sub(from as usize) / size_of::<Term>();
    (0..words).map(move |i| {
        let at = from.wrapping_add(i);
        // SAFETY: by the contract; the stack is all words between the two.
        (at, unsafe { *at })
    })
}

/// Address that a word of the stack returns to; `None` for any other word.
fn return_address(t: Term) -> Option<usize> {
    (t.is_header() && t.raw() != 0).then_some(t.raw() as usize)
}

fn write_return(w: &mut dyn Write, at: *const Term, to: usize) -> io::Result<()> {
    let what = if std::ptr::eq(to as *const u64, code::stubs().exit.as_ptr()) {
        "<terminate process normally>".into()
    } else {
        place((to - 8) as *const u64)
    };
    writeln!(w, "0x{:016x}:SReturn addr 0x{to:X} ({what})", at as usize)
}

/// Writes messages, dictionary, stack and heap of the process in the context.
///
/// # Safety
/// `p` is that process, and the caller owns it.
unsafe fn write_heap(
    w: &mut dyn Write,
    cx: &mut Cx,
    p: *mut Process,
    binaries: &mut Binaries,
) -> io::Result<()> {
    // SAFETY: by the contract of this function.
    unsafe {
        let pid = show((*p).pid());
        let mut objects = Objects::default();
        if let Some(m) = (*p).mailbox.as_ref().filter(|m| !m.is_empty()) {
            writeln!(w, "=proc_messages:{pid}")?;
            for s in m.iter().filter(|s| !s.is_undecoded()) {
                objects.element(w, s.term)?;
                writeln!(w, ":N")?;
            }
        }
        if let Some(d) = (*p).ext().map(|e| &e.dict).filter(|d| !d.is_empty()) {
            writeln!(w, "=proc_dictionary:{pid}")?;
            // The pairs are made for the dump, in the place of those that stock has on the heap.
            let pairs: Vec<(Term, Term)> = d.iter().collect();
            for (k, v) in pairs {
                let t = purlin_term::Alloc::tuple(cx, &[k, v]);
                objects.element(w, t)?;
                writeln!(w)?;
            }
        }
        writeln!(w, "=proc_stack:{pid}")?;
        let mut y = 0;
        for (at, t) in stack_words(cx) {
            if let Some(to) = return_address(t) {
                write_return(w, at, to)?;
                y = 0;
            } else if t.is_catch() {
                let pc = t.catch_addr() as usize;
                let what = place(pc as *const u64);
                writeln!(w, "y{y}:SCatch 0x{pc:X} ({what})")?;
                y += 1;
            } else if !t.is_header() {
                write!(w, "y{y}:")?;
                objects.element(w, t)?;
                writeln!(w)?;
                y += 1;
            }
        }
        writeln!(w, "=proc_heap:{pid}")?;
        objects.write(w, Some(binaries))
    }
}

fn ports(w: &mut dyn Write) -> io::Result<()> {
    for id in port::all() {
        writeln!(w, "=port:{}", show(id))?;
        let Some(p) = port::find(id) else { continue };
        // Ports that are busy are not waited for.
        match port::try_info(&p) {
            Some(i) => one_port(w, id, &p, &i)?,
            None => writeln!(w, "State: CONNECTED|BUSY")?,
        }
    }
    Ok(())
}

fn one_port(w: &mut dyn Write, id: Term, p: &port::Port, i: &port::Info) -> io::Result<()> {
    let list = |v: &[Term]| v.iter().map(|&t| show(t)).collect::<Vec<_>>().join(", ");
    let flags = port::try_flags(p);
    // The names of those that hold, with a bar between them.
    let named = |all: &[(bool, &'static str)]| -> String {
        let on = all.iter().filter(|f| f.0);
        on.map(|f| f.1).collect::<Vec<_>>().join("|")
    };
    let of = |f: fn(&port::Flags) -> bool| flags.as_ref().is_some_and(f);
    let state = [
        (true, "CONNECTED"),
        (of(|f| f.binary), "BINARY_IO"),
        (of(|f| f.soft_eof), "SOFT_EOF"),
        (of(|f| f.by_lines), "LINEBUF_IO"),
        (i.own_lock, "PORT_LOCK"),
    ];
    writeln!(w, "State: {}", named(&state))?;
    let tasks = named(&[
        (of(|f| f.busy), "BUSY_PORT"),
        (i.parallelism, "PARALLELISM"),
    ]);
    if !tasks.is_empty() {
        writeln!(w, "Task Flags: {tasks}")?;
    }
    if let Some(f) = flags.as_ref().filter(|f| !f.suspended.is_empty()) {
        writeln!(w, "Suspended: {}", list(&f.suspended))?;
    }
    writeln!(w, "Slot: {}", id.pid_data())?;
    writeln!(w, "Connected: {}", show(i.connected))?;
    if !i.links.is_empty() {
        writeln!(w, "Links: {}", list(&i.links))?;
    }
    if !i.watched.is_empty() {
        let one = |(by, reference): &(Term, String)| format!("({},{reference})", show(*by));
        let all: Vec<String> = i.watched.iter().map(one).collect();
        writeln!(w, "Monitors: {}", all.join(", "))?;
    }
    if let Some(n) = i.registered {
        writeln!(w, "Registered as: {}", show(n))?;
    }
    let name = String::from_utf8_lossy(&p.name);
    // Ports of descriptors are named by numbers: the one they read from, and the one they write to.
    let is_number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let descriptors = name
        .split_once('/')
        .is_some_and(|(from, to)| is_number(from) && is_number(to));
    match i.os_pid {
        Some(_) => writeln!(w, "Port controls external process: {name}")?,
        None if name == "forker" => writeln!(w, "Port controls forker process: {name}")?,
        None if descriptors => writeln!(w, "Port is UNIX fd not opened by emulator: {name}")?,
        None => writeln!(w, "Port controls linked-in driver: {name}")?,
    }
    writeln!(w, "Input: {}", i.bytes_in)?;
    writeln!(w, "Output: {}", i.bytes_out)?;
    writeln!(w, "Queue: {}", i.queued)?;
    match flags.and_then(|f| f.data) {
        Some(data) => writeln!(w, "Port Data: {data}"),
        None => Ok(()),
    }
}

fn tables(w: &mut dyn Write) -> io::Result<()> {
    for t in purlin_ets::all() {
        let (objects, words) = t.size_and_words();
        writeln!(w, "=ets:{}", show(t.owner()))?;
        writeln!(w, "Slot: {}", std::sync::Arc::as_ptr(&t) as usize)?;
        let mut f = Fragment::new();
        if let Some(id) = purlin_ets::id(&t, &mut f) {
            writeln!(w, "Table: {}", show(id))?;
        }
        // SAFETY: nothing in it is used any more.
        unsafe { f.destroy() };
        let o = &t.options;
        writeln!(w, "Name: {}", show(t.name()))?;
        writeln!(w, "Objects: {objects}")?;
        writeln!(w, "Words: {words}")?;
        writeln!(w, "Type: {}", o.kind.name())?;
        writeln!(w, "Protection: {}", t.protection().name())?;
        writeln!(w, "Compressed: {}", o.compressed)?;
        let concurrent = o.write_concurrency != WriteConcurrency::No;
        writeln!(w, "Write Concurrency: {concurrent}")?;
        writeln!(w, "Read Concurrency: {}", o.read_concurrency)?;
    }
    Ok(())
}

fn timers(w: &mut dyn Write) -> io::Result<()> {
    for (to, message, left) in purlin_kernel::timer::message::all() {
        writeln!(w, "=timer:{}", show(to))?;
        writeln!(w, "Message: {message}")?;
        writeln!(w, "Time left: {left}")?;
    }
    Ok(())
}

fn nodes(w: &mut dyn Write) -> io::Result<()> {
    let name = format_atom(purlin_term::node::this_name(), Style::Display);
    writeln!(w, "=node:{name}")?;
    if !purlin_term::node::is_alive() {
        writeln!(w, "=no_distribution")?;
    }
    Ok(())
}

fn modules(w: &mut dyn Write) -> io::Result<()> {
    let mut rows = Vec::new();
    for name in code::loaded() {
        let bytes = code::with_versions(name, |v| {
            (
                v.current.as_ref().map_or(0, |m| m.bytes()),
                v.old.as_ref().map_or(0, |m| m.bytes()),
            )
        });
        rows.push((format_atom(name, Style::Write), bytes));
    }
    writeln!(w, "=loaded_modules")?;
    writeln!(
        w,
        "Current code: {}",
        rows.iter().map(|r| r.1.0).sum::<usize>()
    )?;
    writeln!(w, "Old code: {}", rows.iter().map(|r| r.1.1).sum::<usize>())?;
    for (name, (current, old)) in rows {
        writeln!(w, "=mod:{name}")?;
        writeln!(w, "Current size: {current}")?;
        if old != 0 {
            writeln!(w, "Old size: {old}")?;
        }
    }
    Ok(())
}

fn memory(w: &mut dyn Write) -> io::Result<()> {
    let u = purlin_runtime::natives::system::memory::usage();
    writeln!(w, "=memory")?;
    for (name, bytes) in u.named() {
        writeln!(w, "{name}: {bytes}")?;
    }
    Ok(())
}

/// A date as C's `ctime` formats it.
fn ctime(d: &purlin_kernel::clock::DateTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let day = DAYS[d.to_posix().div_euclid(86_400).rem_euclid(7) as usize];
    let month = MONTHS[(d.month - 1).clamp(0, 11) as usize];
    format!(
        "{day} {month} {:2} {:02}:{:02}:{:02} {}",
        d.day, d.hour, d.minute, d.second, d.year
    )
}
