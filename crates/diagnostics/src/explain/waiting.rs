//! Waiting processes that cannot be woken: what a copy of the emulator finds out
//! ([`purlin_kernel::threads::fork`]).
//!
//! A process that waits in a receive without a timeout can only be woken by what knows it. All
//! other processes are alive, and so is every process that something outside of processes knows: a
//! name, a timer, a port, a socket, another node, a library, a tracer, a table that processes find
//! by name, a persistent term. A process that is alive makes those alive that it knows: by its heap
//! and messages, as links and monitors in either direction, by tables, or as its group leader. The
//! rest waits for ever, even if the processes of a circle know each other.
//!
//! # Invariants
//! * A process that is running at that moment, in a native on a dirty thread, cannot be looked at.
//!   It says itself what it knows (`leaks.rs`).
//! * In doubt a process counts as alive.

use super::roots;
use purlin_ets::{self as ets, Protection, Table};
use purlin_io::port;
use purlin_kernel::code;
use purlin_kernel::cx::Cx;
use purlin_kernel::outside::outside;
use purlin_kernel::process::ext::{Ext, Target};
use purlin_kernel::process::{self, Enter, Process, exported, registry};
use purlin_kernel::signal::receive;
use purlin_kernel::timer::message as timers;
use purlin_term::Term;
use purlin_term::frag::Fragment;
use purlin_term::reach::{Name, Reach};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

/// Number of monitors of one process by another from which they count as a pile, and the same for
/// timers of one receiver.
pub(super) const MONITORS: usize = 100;
pub(super) const TIMERS: usize = 1000;

/// The numbers of a reference.
type Numbers = [u32; 3];

/// A process that cannot be woken.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stuck {
    /// The data of its pid.
    pub pid: u32,
    /// Seconds for which it has waited, if that is known.
    pub seconds: Option<u64>,
    pub messages: usize,
    /// The processes that it monitors and those that monitor it, and its links.
    pub monitors: usize,
    pub watchers: usize,
    pub links: usize,
    /// Processes of this kind that know it.
    pub known_by: Vec<u32>,
}

/// Monitors or timers whose references are lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pile {
    /// The data of the pid of the monitoring process; none for timers.
    pub owner: Option<u32>,
    /// The word of the monitored process or of the receiver.
    pub target: u64,
    pub count: usize,
}

/// The findings of a look.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub processes: usize,
    /// Processes that wait in a receive without a timeout, and that nothing outside knows.
    pub candidates: usize,
    /// Number of objects visited.
    pub objects: u64,
    /// The data of the pids of processes that could not be looked at.
    pub running: Vec<u32>,
    pub stuck: Vec<Stuck>,
    pub piles: Vec<Pile>,
    /// Timers for a name that no process has: the name's word, and their number.
    pub nameless: Vec<(u64, usize)>,
}

/// A look at everything.
#[derive(Default)]
struct Look {
    reach: Reach,
    /// The processes that might be stuck, by the data of their pids.
    waiting: HashMap<u32, usize>,
    /// Those of them that are not.
    alive: HashSet<u32>,
    /// Processes that are alive and have not been looked into.
    todo: Vec<usize>,
    /// All tables, by their addresses.
    tables: HashMap<usize, Arc<Table>>,
    owned: HashMap<u64, Vec<usize>>,
    seen_tables: HashSet<usize>,
    /// Tables that were found and have not been looked into.
    next_tables: Vec<usize>,
    /// References of piles that were not found yet.
    unheld: HashSet<Numbers>,
}

/// Looks at everything, in a copy of the emulator, and writes what [`Found::read`] reads.
pub(super) fn look(to: &mut Vec<u8>) {
    let mut found = Found::default();
    let mut look = Look::default();
    let mut cx = Cx::boxed(0);
    let mut piles: Vec<(Pile, Vec<Numbers>)> = Vec::new();
    for pid in process::table().some_pids(1) {
        let Some(p) = process::table().find(pid) else {
            continue;
        };
        // SAFETY: cells are never unmapped; the state word is an atomic.
        let state = unsafe { (*p).state.load() };
        if !state.is_alive() {
            continue;
        }
        found.processes += 1;
        if state.is_running() || state.is_exiting() {
            found.running.push(pid.pid_data());
            continue;
        }
        // SAFETY: in the copy, a process that does not run is this thread's.
        let it = unsafe { &mut *p };
        monitor_piles(it, &mut piles);
        if state.is_queued() || state.is_suspended() || !may_be_stuck(it, pid) {
            look.todo.push(p as usize);
        } else {
            look.waiting.insert(pid.pid_data(), p as usize);
        }
    }
    found.candidates = look.waiting.len();
    timer_piles(&mut piles, &mut found.nameless);
    look.unheld = piles.iter().flat_map(|p| p.1.iter().copied()).collect();
    for t in ets::all() {
        let at = Arc::as_ptr(&t) as usize;
        look.owned.entry(t.owner().raw()).or_default().push(at);
        look.tables.insert(at, t);
    }
    look.roots(&found.running);
    look.go_on(&mut cx);
    found.stuck = look.stuck(&mut cx);
    found.objects = look.reach.visited;
    for (mut pile, numbers) in piles {
        let left = numbers.iter().filter(|n| look.unheld.contains(*n));
        pile.count = left.count();
        let many = pile.owner.map_or(TIMERS, |_| MONITORS);
        if pile.count >= many {
            found.piles.push(pile);
        }
    }
    found.write(to);
}

/// Adds the monitors of a process that has many of the same target.
fn monitor_piles(p: &mut Process, piles: &mut Vec<(Pile, Vec<Numbers>)>) {
    let owner = p.pid().pid_data();
    let Some(e) = p.ext() else { return };
    if e.monitors.iter().take(MONITORS).count() < MONITORS {
        return;
    }
    let mut by_target: HashMap<u64, Vec<Numbers>> = HashMap::new();
    for (key, m) in e.monitors.iter() {
        if let Target::Local(t) | Target::Named(t, _) = m.target() {
            by_target.entry(t.raw()).or_default().push(key.numbers());
        }
    }
    for (target, numbers) in by_target {
        if numbers.len() >= MONITORS {
            let pile = Pile {
                owner: Some(owner),
                target,
                count: 0,
            };
            piles.push((pile, numbers));
        }
    }
}

/// Adds the timers of receivers that have many, and counts those for names that no process has.
fn timer_piles(piles: &mut Vec<(Pile, Vec<Numbers>)>, nameless: &mut Vec<(u64, usize)>) {
    let mut by_receiver: HashMap<u64, Vec<Numbers>> = HashMap::new();
    timers::each_reference(&mut |to, numbers, _| {
        by_receiver.entry(to.raw()).or_default().push(numbers);
    });
    for (target, numbers) in by_receiver {
        // SAFETY: the word of a pid or an atom.
        let to = unsafe { Term::from_raw(target) };
        if to.is_atom() && registry::whereis(to).is_none() {
            nameless.push((target, numbers.len()));
        } else if numbers.len() >= TIMERS {
            let pile = Pile {
                owner: None,
                target,
                count: 0,
            };
            piles.push((pile, numbers));
        }
    }
}

/// Whether a process that is neither ready nor suspended waits in a receive without a timeout, and
/// nothing outside of processes and their terms knows it.
fn may_be_stuck(p: &mut Process, pid: Term) -> bool {
    use process::{BUSY, EXIT_PENDING, SYSTEM, TIMER, WAITING};
    // SAFETY: the process was waiting, so it resumes at an instruction of loaded code.
    let receives = p.has(WAITING) && !p.pc.is_null() && unsafe { code::stack::is_receive(p.pc) };
    if !receives
        || p.has(BUSY | EXIT_PENDING | SYSTEM | TIMER)
        || process::is_system(pid)
        || !p.in_transit.is_empty()
        || exported::is_noted(pid)
        || p.ext().is_some_and(is_known_outside)
    {
        return false;
    }
    let mut f = Fragment::new();
    let mut watching = Vec::new();
    outside().watching(pid, &mut f, &mut watching);
    // SAFETY: nothing in it is used any more.
    unsafe { f.destroy() };
    watching.is_empty()
}

/// Whether something that is no process of this node is tied to a process.
fn is_known_outside(e: &mut Ext) -> bool {
    e.remote.is_some()
        || e.bif_state.is_some()
        || e.scheduled.is_some()
        || !e.deferred.is_empty()
        || e.collections_held.is_some()
        || !e.suspended.is_empty()
        || e.links.iter().any(|(l, _)| l.term().is_local_port())
        || e.watchers.iter().any(|(_, w)| w.by().is_nil())
        || e.monitors.iter().any(|(_, m)| match m.target() {
            Target::Local(t) | Target::Named(t, _) => !t.is_local_pid(),
            Target::Clock | Target::Gone | Target::Remote => true,
        })
}

impl Look {
    /// Notes that a process is known to one that is alive.
    fn knows(&mut self, pid: Term) {
        if pid.is_local_pid()
            && let Some(&p) = self.waiting.get(&pid.pid_data())
            && self.alive.insert(pid.pid_data())
        {
            self.todo.push(p);
        }
    }
    /// Visits what a term of a process that is alive reaches.
    fn see(&mut self, root: Term) {
        self.see_in(root, false);
    }
    /// As [`Look::see`]. `literal`: the term lies in memory that is not counted.
    fn see_in(&mut self, root: Term, literal: bool) {
        let Look {
            reach,
            waiting,
            alive,
            todo,
            unheld,
            tables,
            next_tables,
            ..
        } = self;
        let mut names = |name: Name| {
            let pid = match name {
                Name::Pid(p) | Name::Ref(_, Some(p)) => Some(p),
                _ => None,
            };
            if let Some(pid) = pid
                && let Some(&p) = waiting.get(&pid.pid_data())
                && alive.insert(pid.pid_data())
            {
                todo.push(p);
            }
            next_tables.extend(table_in(name, tables));
            if let Name::Ref(numbers, _) = name {
                unheld.remove(&numbers);
            }
        };
        match literal {
            true => reach.visit_literal(root, &mut names),
            false => reach.visit(root, &mut names),
        }
    }
    /// Makes those alive that something outside of processes knows. `running`: processes that
    /// cannot be looked at.
    fn roots(&mut self, running: &[u32]) {
        for name in registry::names() {
            if let Some(t) = registry::whereis(name) {
                self.knows(t);
            }
        }
        for id in port::all() {
            let info = port::find(id).and_then(|p| port::try_info(&p));
            if let Some(i) = info {
                let known = [i.connected].into_iter().chain(i.links);
                known.chain(i.monitored_by).for_each(|t| self.knows(t));
                i.watches
                    .into_iter()
                    .chain(i.awaited_by)
                    .for_each(|t| self.knows(t));
            }
        }
        let mut timed = Vec::new();
        timers::each(&mut |to, message| timed.push((to, message)));
        for (to, message) in timed {
            self.knows(to);
            self.see(message);
        }
        for t in purlin_runtime::trace::monitor::receivers() {
            self.knows(t);
        }
        for t in purlin_dist::observers::pids() {
            self.knows(t);
        }
        purlin_runtime::natives::persistent::each(|k, v| {
            self.see_in(k, true);
            self.see_in(v, true);
            true
        });
        for (&at, t) in &self.tables {
            if t.options.named && t.protection() != Protection::Private {
                self.next_tables.push(at);
            }
        }
        for &data in running {
            self.own_tables(Term::pid(data));
        }
    }
    fn own_tables(&mut self, owner: Term) {
        let own = self.owned.get(&owner.raw());
        self.next_tables.extend(own.into_iter().flatten());
    }
    /// Looks into everybody who is alive.
    fn go_on(&mut self, cx: &mut Cx) {
        loop {
            if let Some(at) = self.next_tables.pop() {
                self.table(at);
            } else if let Some(p) = self.todo.pop() {
                self.process(cx, p as *mut Process);
            } else {
                return;
            }
        }
    }
    fn table(&mut self, at: usize) {
        if !self.seen_tables.insert(at) {
            return;
        }
        let Some(t) = self.tables.get(&at).cloned() else {
            return;
        };
        if let Some(heir) = t.heir() {
            self.knows(heir);
        }
        ets::each(&t, usize::MAX, &mut |object| self.see(object));
    }
    fn process(&mut self, cx: &mut Cx, p: *mut Process) {
        // SAFETY: in the copy, a process that does not run is this thread's.
        unsafe { each_term(cx, p, &mut |t| self.see(t)) };
        // SAFETY: a process that does not run is this thread's, and nothing else refers to it here.
        let p = unsafe { &mut *p };
        each_tie(p, &mut |t| self.knows(t));
        self.own_tables(p.pid());
    }
    /// Describes the processes that are not alive.
    fn stuck(&mut self, cx: &mut Cx) -> Vec<Stuck> {
        let dead: Vec<(u32, usize)> = self
            .waiting
            .iter()
            .filter(|(pid, _)| !self.alive.contains(*pid))
            .map(|(pid, p)| (*pid, *p))
            .collect();
        let numbers: HashSet<u32> = dead.iter().map(|d| d.0).collect();
        let mut known_by: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut all = Vec::new();
        for &(pid, at) in &dead {
            let p = at as *mut Process;
            // What one of them knows is looked at for itself: others may know the same.
            let mut reach = Reach::default();
            let mut known: HashSet<u32> = HashSet::new();
            let (unheld, visited) = (&mut self.unheld, &mut self.reach.visited);
            // SAFETY: in the copy, a process that does not run is this thread's.
            unsafe {
                each_term(cx, p, &mut |t| {
                    reach.visit(t, &mut |name| match name {
                        Name::Pid(t) => drop(known.insert(t.pid_data())),
                        Name::Ref(numbers, alias) => {
                            known.extend(alias.map(|t| t.pid_data()));
                            unheld.remove(&numbers);
                        }
                        _ => {}
                    });
                });
            }
            *visited += reach.visited;
            // SAFETY: a process that does not run is this thread's, and nothing else refers to it
            // here.
            let p = unsafe { &mut *p };
            each_tie(p, &mut |t| {
                if t.is_local_pid() {
                    known.insert(t.pid_data());
                }
            });
            for other in known.into_iter().filter(|k| *k != pid) {
                if numbers.contains(&other) {
                    known_by.entry(other).or_default().push(pid);
                }
            }
            let seconds = purlin_kernel::waits::waiting_for(p).map(|ns| ns / 1_000_000_000);
            let messages = p.queued_messages();
            let e = p.ext();
            let (monitors, watchers, links) = e.map_or((0, 0, 0), |e| {
                let monitors = e.monitors.iter().count();
                (monitors, e.watchers.len(), e.links.len())
            });
            all.push(Stuck {
                pid,
                seconds,
                messages,
                monitors,
                watchers,
                links,
                known_by: Vec::new(),
            });
        }
        for s in &mut all {
            s.known_by = known_by.remove(&s.pid).unwrap_or_default();
            s.known_by.sort_unstable();
        }
        all.sort_unstable_by_key(|s| s.pid);
        all
    }
}

/// The address of the table that a name in a term leads to.
fn table_in(name: Name, tables: &HashMap<usize, Arc<Table>>) -> Option<usize> {
    let at = match name {
        Name::Magic(m) => std::ptr::from_ref(ets::of_magic(m)?) as usize,
        Name::Ref(numbers, None) => Arc::as_ptr(&ets::of_numbers(numbers)?) as usize,
        _ => return None,
    };
    tables.contains_key(&at).then_some(at)
}

/// Calls `f` with each term that a process holds, signals in transit included.
///
/// # Safety
/// The process is this thread's, and packed.
unsafe fn each_term(cx: &mut Cx, p: *mut Process, f: &mut dyn FnMut(Term)) {
    // SAFETY: by the contract. The process is packed again as it was.
    unsafe {
        let (pc, live) = ((*p).pc, (*p).live as usize);
        cx.enter(p);
        cx.interp.live = live;
        roots::each(cx, pc, &mut |_, t| f(t));
        receive::each_in_transit(cx.process(), f);
        cx.leave(pc, live);
    }
}

/// Calls `f` with the processes and ports that a process is tied to.
pub(super) fn each_tie(p: &mut Process, f: &mut dyn FnMut(Term)) {
    f(p.group_leader);
    let Some(e) = p.ext() else { return };
    e.links.iter().for_each(|(l, _)| f(l.term()));
    e.watchers.iter().for_each(|(_, w)| f(w.by()));
    for (_, m) in e.monitors.iter() {
        if let Target::Local(t) | Target::Named(t, _) = m.target() {
            f(t);
        }
    }
    e.suspended.iter().for_each(|(s, _)| f(s.term()));
    e.suspending.iter().for_each(|(s, _)| f(s.term()));
    if let process::tracer::Tracer::Local(t) = e.tracer {
        f(t);
    }
}

impl Found {
    /// Writes a line for each part.
    fn write(&self, to: &mut Vec<u8>) {
        let mut text = String::new();
        let list = |l: &[u32]| {
            let all: Vec<String> = l.iter().map(u32::to_string).collect();
            all.join(" ")
        };
        let (n, c, o) = (self.processes, self.candidates, self.objects);
        let _ = writeln!(text, "all {n} {c} {o}");
        let _ = writeln!(text, "running {}", list(&self.running));
        for s in &self.stuck {
            let seconds = s.seconds.map_or(-1, |s| s as i64);
            let _ = writeln!(
                text,
                "stuck {} {seconds} {} {} {} {} {}",
                s.pid,
                s.messages,
                s.monitors,
                s.watchers,
                s.links,
                list(&s.known_by)
            );
        }
        for p in &self.piles {
            let owner = p.owner.map_or(-1, i64::from);
            let _ = writeln!(text, "pile {owner} {} {}", p.target, p.count);
        }
        for (name, n) in &self.nameless {
            let _ = writeln!(text, "nameless {name} {n}");
        }
        to.extend_from_slice(text.as_bytes());
    }
    /// Reads what a look has written; `None` if it is something else.
    pub fn read(bytes: &[u8]) -> Option<Found> {
        let mut found = Found::default();
        for line in std::str::from_utf8(bytes).ok()?.lines() {
            let mut words = line.split_whitespace();
            let kind = words.next()?;
            let n: Vec<i64> = words
                .map(|w| {
                    w.parse::<i64>()
                        .or_else(|_| w.parse::<u64>().map(|n| n as i64))
                })
                .collect::<Result<_, _>>()
                .ok()?;
            let data = |n: &[i64]| n.iter().map(|n| *n as u32).collect::<Vec<u32>>();
            match (kind, &n[..]) {
                ("all", &[processes, candidates, objects]) => {
                    found.processes = processes as usize;
                    found.candidates = candidates as usize;
                    found.objects = objects as u64;
                }
                ("running", n) => found.running = data(n),
                ("stuck", [pid, seconds, messages, monitors, watchers, links, by @ ..]) => {
                    found.stuck.push(Stuck {
                        pid: *pid as u32,
                        seconds: u64::try_from(*seconds).ok(),
                        messages: *messages as usize,
                        monitors: *monitors as usize,
                        watchers: *watchers as usize,
                        links: *links as usize,
                        known_by: data(by),
                    });
                }
                ("pile", &[owner, target, count]) => found.piles.push(Pile {
                    owner: u32::try_from(owner).ok(),
                    target: target as u64,
                    count: count as usize,
                }),
                ("nameless", &[name, n]) => found.nameless.push((name as u64, n as usize)),
                _ => return None,
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_read_as_it_was_written() {
        let found = Found {
            processes: 3,
            candidates: 2,
            objects: 1 << 40,
            running: vec![7, 9],
            stuck: vec![
                Stuck {
                    pid: 4,
                    seconds: Some(5),
                    messages: 1,
                    monitors: 2,
                    watchers: 3,
                    links: 4,
                    known_by: vec![8, 9],
                },
                Stuck::default(),
            ],
            piles: vec![
                Pile {
                    owner: Some(1),
                    target: u64::MAX - 5,
                    count: 100,
                },
                Pile {
                    owner: None,
                    target: 3,
                    count: 1000,
                },
            ],
            nameless: vec![(11, 2)],
        };
        let mut bytes = Vec::new();
        found.write(&mut bytes);
        assert_eq!(Found::read(&bytes), Some(found));
        assert_eq!(Found::read(b"stuck 1"), None);
        assert_eq!(Found::read(b"pile x 2 3"), None);
    }
}
