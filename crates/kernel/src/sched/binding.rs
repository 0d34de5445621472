//! Binding of schedulers to processors in an order that the user chooses: `+sbt`, `+stbt`, `+sct`
//! and `system_flag(scheduler_bind_type | cpu_topology, _)`, as described in erl(1) and the manual
//! page of module `erlang`.
//!
//! Each scheduler binds its own thread when it next looks for work. No thread changes where another
//! may run, so [`super::processor::leave`] finds the mask that its thread has chosen itself.
//! [`crate::affinity`] removes the binding of threads that a bound thread starts.
//!
//! # Orderings
//! `PLANS` is increased under the lock, with the plan. A scheduler loads it relaxed, and reads the
//! plan under the same lock if the number is new; one that misses the change finds it the next
//! time.

use super::{MAX_SCHEDULERS, multi_scheduling};
use crate::affinity::{self, allowed};
use crate::options::topology::CpuTopologyEntry;
use crate::options::{self, BindType, CpuCounts};
use crate::sync::{AtomicU32, Ordering};
use purlin_term::sync::Mutex;

struct State {
    /// The user's topology; `None` to use the one that the system reports.
    defined: Option<Vec<CpuTopologyEntry>>,
    how: BindType,
    /// Processors of the schedulers, from the first on. Later schedulers have none.
    plan: Vec<usize>,
}

static STATE: Mutex<State> = Mutex::new(State {
    defined: None,
    how: BindType::Unbound,
    plan: Vec::new(),
});

/// Number of plans so far. 0 means that no scheduler has ever been bound.
static PLANS: AtomicU32 = AtomicU32::new(0);

/// Applies the command line, before schedulers start.
pub fn start() {
    let flags = &options::current().flags.schedulers;
    allowed();
    let mut s = STATE.lock();
    s.defined = flags.cpu_topology.clone();
    s.how = flags.bind_type;
    // Nothing is bound if the system reports no processors.
    if s.how != BindType::Unbound && s.used().is_empty() {
        s.how = BindType::Unbound;
    }
    s.plan();
}

impl State {
    fn used(&self) -> Vec<CpuTopologyEntry> {
        self.defined.clone().unwrap_or_else(detected)
    }
    /// Makes a new plan for the schedulers.
    fn plan(&mut self) {
        let unbound = self.how == BindType::Unbound;
        if unbound && PLANS.load(Ordering::Relaxed) == 0 {
            return;
        }
        self.plan = match unbound {
            true => Vec::new(),
            false => order(&self.used(), self.how)
                .into_iter()
                .filter_map(|p| usize::try_from(p).ok())
                .filter(|p| allowed().contains(p))
                .take(MAX_SCHEDULERS)
                .collect(),
        };
        affinity::begin_binding();
        PLANS.fetch_add(1, Ordering::Release);
    }
}

/// Returns the user's topology.
pub fn defined() -> Option<Vec<CpuTopologyEntry>> {
    STATE.lock().defined.clone()
}

/// Returns the topology in use; empty if none is known.
pub fn used() -> Vec<CpuTopologyEntry> {
    STATE.lock().used()
}

/// Sets the topology; `None` for the one that the system reports.
pub fn define(topology: Option<Vec<CpuTopologyEntry>>) {
    let mut s = STATE.lock();
    s.defined = topology;
    s.plan();
}

pub fn bind_type() -> BindType {
    STATE.lock().how
}

/// Sets the bind type and returns the previous one; `None` if no topology is known to bind by.
pub fn set_bind_type(how: BindType) -> Option<BindType> {
    let mut s = STATE.lock();
    if s.used().is_empty() {
        return None;
    }
    let before = std::mem::replace(&mut s.how, how);
    s.plan();
    Some(before)
}

/// Makes a new plan because the system reports other processors.
pub fn replan() {
    STATE.lock().plan();
}

/// Returns the processor that each of `total` schedulers is bound to. Those that are offline are
/// bound to none.
pub fn bindings(total: usize) -> Vec<Option<usize>> {
    let online = multi_scheduling::schedulers_online();
    let s = STATE.lock();
    (0..total)
        .map(|i| (i < online).then(|| s.plan.get(i).copied()).flatten())
        .collect()
}

/// Moves scheduler `i`, the calling thread, to its processor if the plan has changed. `seen` is the
/// number of the plan that it followed last, 0 at first.
#[inline]
pub(crate) fn follow(i: usize, seen: &mut u32) {
    let now = PLANS.load(Ordering::Relaxed);
    if now != *seen {
        *seen = now;
        follow_plan(i);
    }
}

#[cold]
fn follow_plan(i: usize) {
    let own = STATE.lock().plan.get(i).copied();
    match &own {
        Some(p) => affinity::bind(std::slice::from_ref(p)),
        None => affinity::bind(allowed()),
    };
}

/// Returns the topology that the operating system reports, with the processors in order; empty if
/// it reports none or is not asked (`+ssrct`, `+sct`).
pub fn detected() -> Vec<CpuTopologyEntry> {
    if options::current().flags.schedulers.skip_cpu_topology {
        return Vec::new();
    }
    let read = |cpu: u32, file: &str| -> Option<i32> {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    let mut all = Vec::new();
    for cpu in 0..CpuCounts::detect().configured {
        let (Some(package), Some(core)) = (read(cpu, "physical_package_id"), read(cpu, "core_id"))
        else {
            return Vec::new();
        };
        all.push(CpuTopologyEntry {
            node: node_of(cpu),
            processor: package,
            processor_node: -1,
            core,
            thread: 0,
            logical: cpu as i32,
        });
    }
    // Threads of a core are numbered in the order of their processors.
    for i in 0..all.len() {
        let same = |e: &CpuTopologyEntry| e.processor == all[i].processor && e.core == all[i].core;
        let before = all[..i].iter().filter(|e| same(e)).count();
        all[i].thread = before as i32;
    }
    all.sort_by_key(|e| (e.node, e.processor, e.core, e.thread));
    all
}

/// Returns the memory node of a processor; -1 if the system reports none.
fn node_of(cpu: u32) -> i32 {
    let entries = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}"));
    let node = |name: &str| name.strip_prefix("node")?.parse().ok();
    entries
        .into_iter()
        .flatten()
        .flatten()
        .find_map(|e| node(e.file_name().to_str()?))
        .unwrap_or(-1)
}

/// The ranks of a logical processor among its siblings at each level.
struct Ranked {
    /// A node of processors, or a processor of nodes.
    outer: usize,
    processor: usize,
    /// Rank of its processor among neighbours: those in the same node of processors, or adjacent
    /// ones in none.
    beside: usize,
    inner_node: usize,
    core: usize,
    thread: usize,
    logical: i32,
}

fn ranked(topology: &[CpuTopologyEntry]) -> Vec<Ranked> {
    let mut all = topology.to_vec();
    all.sort_by_key(|e| (e.processor, e.node, e.processor_node, e.core, e.thread));
    // The identifiers from the outermost level down to a container name it.
    let outer = |e: &CpuTopologyEntry| match (e.node, e.processor_node) {
        (0.., _) => (e.node, -1),
        (_, 0..) => (-1, e.processor),
        _ => (-1, -1),
    };
    let levels = |e: &CpuTopologyEntry| [e.processor, e.processor_node, e.core, e.thread];
    let mut outers = Vec::new();
    let mut beside: Vec<usize> = Vec::new();
    for (i, e) in all.iter().enumerate() {
        let rank = match i.checked_sub(1).map(|j| (&all[j], beside[j])) {
            Some((b, n)) if b.node == e.node => n + usize::from(b.processor != e.processor),
            _ => 0,
        };
        beside.push(rank);
    }
    all.iter()
        .zip(&beside)
        .map(|(e, &beside)| {
            let own = outer(e);
            let at = outers.iter().position(|&o| o == own).unwrap_or_else(|| {
                outers.push(own);
                outers.len() - 1
            });
            // Number of different siblings that come before at a level, within their container.
            let rank = |level: usize| {
                let mut before: Vec<i32> = all
                    .iter()
                    .filter(|o| outer(o) == own && levels(o)[..level] == levels(e)[..level])
                    .map(|o| levels(o)[level])
                    .filter(|&id| id < levels(e)[level])
                    .collect();
                before.sort_unstable();
                before.dedup();
                before.len()
            };
            Ranked {
                outer: at,
                processor: rank(0),
                beside,
                inner_node: rank(1),
                core: rank(2),
                thread: rank(3),
                logical: e.logical,
            }
        })
        .collect()
}

/// Returns the logical processors of a topology in the order in which schedulers are bound to them.
/// Unbound: the order without spreading.
pub fn order(topology: &[CpuTopologyEntry], how: BindType) -> Vec<i32> {
    let mut all = ranked(topology);
    all.sort_by_key(|r| {
        let Ranked {
            outer: o,
            processor: p,
            inner_node: n,
            core: c,
            thread: t,
            ..
        } = *r;
        match how {
            BindType::Unbound | BindType::NoSpread => [o, p, n, c, t],
            BindType::ThreadSpread => [t, o, p, n, c],
            BindType::ProcessorSpread => [t, n, c, o, p],
            BindType::Spread => [t, c, n, r.beside, o],
            BindType::NoNodeThreadSpread => [o, n, t, p, c],
            BindType::NoNodeProcessorSpread => [o, n, t, c, p],
            BindType::ThreadNoNodeProcessorSpread | BindType::Default => [t, o, n, c, p],
        }
    });
    all.iter().map(|r| r.logical).collect()
}
