//! A heap snapshot: what holds how much, as Chrome's DevTools read it (V8's `.heapsnapshot`).
//!
//! A copy of the emulator ([`purlin_kernel::threads::fork`]) visits everything at one moment and
//! makes a graph of it. Below the root are processes, tables, persistent terms and modules; below
//! these are the terms that they hold, with the variable, key or message that leads to them; shared
//! regions and counted binaries are nodes of their own, since several may hold them.
//!
//! # How many nodes
//! The terms of a holder of up to [`WHOLE`] words are a node each, as long as there are less than
//! [`NODES`]. The terms of larger ones are grouped by the path of shapes that leads to them
//! (`shapes.rs`): all tuples of one tag and size in the same list are one node, whose size is their
//! sum and whose name says how many they are. A term with the shape of a group above it joins that
//! group, so a tree or a list is one. Where a holder has more than [`GROUPS`] groups, further terms
//! join the group that leads to them. If there are more than [`PROCESSES`] processes, those without
//! a name are combined by the function that they were started with.
//!
//! # Invariants
//! * Each word counts once, for the first holder that leads to it. What several processes share is
//!   in a region or a counted binary.
//! * No contents of binaries, strings or numbers are in a snapshot: only atoms that are tags of
//!   tuples, keys of maps or of the dictionary, and names.

use super::roots::{self, Root};
use super::shapes::{Kind, Shapes};
use super::{names, survey};
use crate::fnv;
use crate::json::Json;
use purlin_ets as ets;
use purlin_kernel::accounts;
use purlin_kernel::cx::Cx;
use purlin_kernel::process::ext::Hashing;
use purlin_kernel::process::{self, Enter, Process, registry};
use purlin_kernel::signal::receive;
use purlin_kernel::threads::fork;
use purlin_runtime::natives::process::process_info;
use purlin_term::bin::RcBin;
use purlin_term::frag::Fragment;
use purlin_term::print::{Style, format_term};
use purlin_term::reach::{Marks, object};
use purlin_term::region::{is_counted_ptr, is_region_ptr, region_of};
use purlin_term::{Term, atom, retaining_paths};
use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

/// See the module documentation.
const WHOLE: usize = 2000;
const NODES: usize = 200_000;
const GROUPS: usize = 500;
const PROCESSES: usize = 10_000;
/// Maximum number of groups in all, and of binaries and regions with a node of their own.
const ALL_GROUPS: usize = 300_000;
const BLOCKS: usize = 50_000;
/// Bytes of the smallest counted binary with a node of its own.
const LARGE: usize = 4096;
/// Steps up from a group in which one of the same shape is looked for.
const ABOVE: usize = 16;
/// Maximum time for a snapshot, and maximum number of its bytes.
const LOOK_TIME_LIMIT: Duration = Duration::from_secs(50);
const MOST_BYTES: usize = 200 << 20;
/// Number of holders that are listed, and of lines.
const LISTED: usize = 1000;
/// Characters of a key.
const KEY_CHARS: usize = 60;

/// How a node leads to another: kinds of V8's format.
const ELEMENT: u8 = 1;
const PROPERTY: u8 = 2;
const INTERNAL: u8 = 3;

/// A label of an edge: an index, or the number of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Label {
    Index(u32),
    Text(u32),
}

struct Node {
    kind: Kind,
    name: u32,
    /// Number of terms of a group, and bytes.
    count: u64,
    bytes: u64,
    parent: u32,
    /// The shape of a group; [`NONE`] for other nodes.
    shape: u32,
    /// The node of the holder, and the number of groups that a holder has.
    holder: u32,
    groups: u32,
    edges: Vec<(u8, Label, u32)>,
}

const NONE: u32 = u32::MAX;

#[derive(Default)]
struct Texts {
    numbers: HashMap<String, u32>,
    all: Vec<String>,
}

impl Texts {
    fn of(&mut self, text: &str) -> u32 {
        if let Some(&n) = self.numbers.get(text) {
            return n;
        }
        let n = self.all.len() as u32;
        self.all.push(text.to_string());
        self.numbers.insert(text.to_string(), n);
        n
    }
}

/// The labels that most edges have.
#[derive(Clone, Copy)]
struct Labels {
    item: Label,
    captured: Label,
    part: Label,
    field: Label,
    entry: Label,
    keys: Label,
    value: Label,
    holds: Label,
    bytes: Label,
}

impl Labels {
    fn of(texts: &mut Texts) -> Labels {
        let mut text = |t: &str| Label::Text(texts.of(t));
        Labels {
            item: text("item"),
            captured: text("captured"),
            part: text("part of"),
            field: text("field"),
            entry: text("entry"),
            keys: text("keys"),
            value: text("value"),
            holds: text("holds"),
            bytes: text("bytes"),
        }
    }
}

struct Graph {
    nodes: Vec<Node>,
    texts: Texts,
    shapes: Shapes,
    marks: Marks,
    /// Groups, by the node that leads to them, the label and the shape.
    groups: HashMap<(u32, Label, u32), u32, Hashing>,
    /// Nodes of terms that have one each, by their addresses.
    single: HashMap<usize, u32, Hashing>,
    /// Nodes of regions and counted binaries.
    regions: HashMap<u64, u32>,
    binaries: HashMap<usize, u32, Hashing>,
    labels: Labels,
    /// Texts of frames, by addresses.
    frames: HashMap<usize, u32>,
    /// Terms to visit, with the node that leads to each.
    todo: Vec<(Term, u32, Label)>,
    /// Whether the terms of the holder have a node each.
    whole: bool,
    objects: u64,
    words: u64,
    combined: bool,
}

impl Graph {
    fn new() -> Graph {
        let mut texts = Texts::default();
        let labels = Labels::of(&mut texts);
        Graph {
            nodes: Vec::new(),
            texts,
            shapes: Shapes::default(),
            marks: Marks::default(),
            groups: HashMap::default(),
            single: HashMap::default(),
            regions: HashMap::new(),
            binaries: HashMap::default(),
            labels,
            frames: HashMap::new(),
            todo: Vec::new(),
            whole: false,
            objects: 0,
            words: 0,
            combined: false,
        }
    }
    fn node(&mut self, kind: Kind, name: &str, parent: u32, label: Label) -> u32 {
        let n = self.nodes.len() as u32;
        let name = self.texts.of(name);
        self.nodes.push(Node {
            kind,
            name,
            count: 0,
            bytes: 0,
            parent,
            shape: NONE,
            holder: n,
            groups: 0,
            edges: Vec::new(),
        });
        if parent != NONE {
            self.edge(parent, label, n);
        }
        n
    }
    fn edge(&mut self, from: u32, label: Label, to: u32) {
        let kind = match label {
            Label::Index(_) => ELEMENT,
            Label::Text(_) if self.nodes[to as usize].shape == NONE => INTERNAL,
            Label::Text(_) => PROPERTY,
        };
        self.nodes[from as usize].edges.push((kind, label, to));
    }
    /// As [`Graph::edge`], unless there is such an edge.
    fn edge_once(&mut self, from: u32, label: Label, to: u32) {
        // The groups that refer to many blocks have looked at the last ones before.
        let last = self.nodes[from as usize].edges.iter().rev().take(64);
        if !last.into_iter().any(|e| e.2 == to) {
            self.edge(from, label, to);
        }
    }
    fn text(&mut self, text: &str) -> Label {
        Label::Text(self.texts.of(text))
    }
    /// A node below the root.
    fn top(&mut self, name: &str) -> u32 {
        let label = self.text(name);
        self.node(Kind::Synthetic, name, 0, label)
    }

    /// Begins with a holder of that many words.
    fn begin(&mut self, words: usize) {
        self.whole = words <= WHOLE && self.nodes.len() < NODES;
        self.single.clear();
    }
    /// Adds what `root` leads to, below the node of a holder.
    fn add(&mut self, root: Term, holder: u32, label: Label) {
        self.todo.push((root, holder, label));
        while let Some((t, parent, label)) = self.todo.pop() {
            self.visit(t, parent, label);
        }
    }
    fn visit(&mut self, t: Term, parent: u32, label: Label) {
        if t.is_immed() {
            return;
        }
        let p = t.ptr().cast_const();
        let mut parent = parent;
        let mut label = label;
        if is_region_ptr(p) {
            if !is_counted_ptr(p) {
                return;
            }
            let Some(node) = self.region(p) else { return };
            if self.nodes[parent as usize].holder != node {
                self.edge_once(parent, label, node);
                parent = node;
                label = self.labels.holds;
            }
        }
        if !self.marks.add(p) {
            if let Some(&known) = self.single.get(&(p as usize)) {
                self.edge(parent, label, known);
            }
            return;
        }
        let (words, parts) = object(t);
        self.objects += 1;
        self.words += words as u64;
        let shape = self.shapes.of(t);
        let node = self.group(parent, label, shape, p as usize);
        let n = &mut self.nodes[node as usize];
        n.count += 1;
        n.bytes += 8 * words as u64;
        if let Some((block, _, _)) = retaining_paths::block(t) {
            self.binary(block, node);
        }
        self.parts(t, node, parts);
    }
    /// Puts the terms of an object on the list.
    fn parts(&mut self, t: Term, node: u32, parts: &[Term]) {
        let item = self.labels.item;
        if t.is_list_ptr() {
            for e in [parts[1], parts[0]] {
                if !e.is_immed() {
                    self.todo.push((e, node, item));
                }
            }
            return;
        }
        if parts.iter().all(|e| e.is_immed()) {
            return;
        }
        let flat = t.as_flatmap();
        let named: Option<Label> = match () {
            () if t.is_tuple() => None,
            () if t.as_fun().is_some() => Some(self.labels.captured),
            () if t.is_bitstring() || t.is_match_context() => Some(self.labels.part),
            () if flat.is_some() => None,
            () if t.is_record() => Some(self.labels.field),
            () => Some(self.labels.entry),
        };
        for (i, &e) in parts.iter().enumerate() {
            if e.is_immed() {
                continue;
            }
            let label = match (named, flat) {
                (Some(l), _) => l,
                (None, None) => Label::Index(i as u32 + 1),
                // The first is the tuple of the keys.
                (None, Some(_)) if i == 0 => self.labels.keys,
                (None, Some((keys, _))) => match keys.get(i - 1).filter(|k| k.is_atom()) {
                    Some(k) => self.text(atom::name(*k)),
                    None => self.labels.value,
                },
            };
            self.todo.push((e, node, label));
        }
    }
    /// The node for a term of that shape.
    fn group(&mut self, parent: u32, label: Label, shape: u32, at: usize) -> u32 {
        let holder = self.nodes[parent as usize].holder;
        let tail =
            self.nodes[parent as usize].shape == shape && self.shapes.shown(shape).0 == Kind::Array;
        // What is shared is not of this holder alone.
        if self.whole && self.nodes[holder as usize].kind != Kind::Native {
            // The cells of a list, and the inner nodes of a map, are one node.
            let node = match tail {
                true => parent,
                false => self.shaped(parent, label, shape),
            };
            self.single.insert(at, node);
            return node;
        }
        if let Some(&known) = self.groups.get(&(parent, label, shape)) {
            return known;
        }
        let mut above = parent;
        for _ in 0..ABOVE {
            let n = &self.nodes[above as usize];
            if n.shape == NONE {
                break;
            }
            if n.shape == shape {
                self.groups.insert((parent, label, shape), above);
                return above;
            }
            above = n.parent;
        }
        let full = self.nodes[holder as usize].groups as usize >= GROUPS
            || self.groups.len() >= ALL_GROUPS;
        if full && self.nodes[parent as usize].shape != NONE {
            return parent;
        }
        let node = self.shaped(parent, label, shape);
        self.nodes[holder as usize].groups += 1;
        self.groups.insert((parent, label, shape), node);
        node
    }
    /// A new node for terms of that shape.
    fn shaped(&mut self, parent: u32, label: Label, shape: u32) -> u32 {
        let n = self.nodes.len() as u32;
        let (kind, text) = self.shapes.shown(shape);
        let name = self.texts.of(text);
        self.nodes.push(Node {
            kind,
            name,
            count: 0,
            bytes: 0,
            parent,
            shape,
            holder: self.nodes[parent as usize].holder,
            groups: 0,
            edges: Vec::new(),
        });
        self.edge(parent, label, n);
        n
    }
    /// The node of the region that `p` points into.
    fn region(&mut self, p: *const Term) -> Option<u32> {
        let r = region_of(p)?;
        if let Some(&n) = self.regions.get(&r.number()) {
            return Some(n);
        }
        let name = match self.regions.len() < BLOCKS {
            true => format!("shared region {}", r.number()),
            false => "other shared regions".into(),
        };
        // Nothing but what refers to it leads to it.
        let n = self.node(Kind::Native, &name, NONE, Label::Index(0));
        self.nodes[n as usize].bytes = 8 * r.area().1 as u64;
        self.regions.insert(r.number(), n);
        Some(n)
    }
    /// Adds an edge to the node of a counted binary.
    fn binary(&mut self, block: *const RcBin, from: u32) {
        let label = self.labels.bytes;
        if let Some(&n) = self.binaries.get(&(block as usize)) {
            if n != NONE {
                self.edge_once(from, label, n);
            }
            return;
        }
        // SAFETY: a term in hand refers to it.
        let bytes = unsafe { RcBin::kept_bytes(block) } as u64;
        let alone = bytes as usize >= LARGE && self.binaries.len() < BLOCKS;
        let n = match alone {
            true => {
                let n = self.node(Kind::Native, "bytes of a binary", from, label);
                self.nodes[n as usize].count = 1;
                self.binaries.insert(block as usize, n);
                n
            }
            // Small ones are together, below what refers to them first.
            false => {
                self.binaries.insert(block as usize, NONE);
                let key = (from, label, NONE);
                match self.groups.get(&key) {
                    Some(&n) => n,
                    None => {
                        let n = self.node(Kind::Native, "bytes of binaries", from, label);
                        self.groups.insert(key, n);
                        n
                    }
                }
            }
        };
        let node = &mut self.nodes[n as usize];
        node.count += u64::from(!alone);
        node.bytes += bytes;
    }

    /// The text of a variable of the function at an address.
    fn frame(&mut self, at: usize) -> Label {
        if let Some(&n) = self.frames.get(&at) {
            return Label::Text(n);
        }
        let text = match purlin_kernel::code::find(at as *const u64) {
            None => "a variable".to_string(),
            Some(p) => {
                let function = names::function(p.module, p.function, p.arity);
                match p.line {
                    Some((file, line)) => format!("variable of {function} at {file}:{line}"),
                    None => format!("variable of {function}"),
                }
            }
        };
        let n = self.texts.of(&text);
        self.frames.insert(at, n);
        Label::Text(n)
    }
    fn label(&mut self, root: Root) -> Label {
        match root {
            Root::Argument(n) => self.text(&format!("argument {n} of what it calls next")),
            Root::Frame(at) => self.frame(at),
            Root::Key => self.text("key of the dictionary"),
            Root::Dictionary(k) if k.is_atom() => {
                self.text(&format!("dictionary: {}", atom::name(k)))
            }
            Root::Dictionary(_) => self.text("dictionary"),
            Root::Message => self.text("message"),
        }
    }
}

fn show(t: Term) -> String {
    format_term(t, Style::Write, KEY_CHARS)
}

/// Visits everything in a copy of the emulator, and writes the holders, one a line, an empty line,
/// the numbers of nodes, edges, objects and bytes, and the rest of the snapshot.
fn look(to: &mut Vec<u8>) {
    let mut g = Graph::new();
    g.node(Kind::Synthetic, "", NONE, Label::Index(0));
    let processes = g.top("processes");
    let running = add_processes(&mut g, processes);
    let tables = g.top("tables");
    add_tables(&mut g, tables);
    let persistent = g.top("persistent terms");
    add_persistent_terms(&mut g, persistent);
    let modules = g.top("modules");
    add_modules(&mut g, modules);
    let atoms = g.top("atoms");
    g.nodes[atoms as usize].bytes = atom::bytes().0 as u64;
    g.write(to, running);
}

/// Adds all processes; returns the number of those that ran.
fn add_processes(g: &mut Graph, top: u32) -> usize {
    let named: HashMap<Term, Term> = registry::names()
        .into_iter()
        .filter_map(|n| Some((registry::whereis(n)?, n)))
        .collect();
    g.combined = process::table().live() > PROCESSES;
    let mut cx = Cx::boxed(0);
    let mut kinds: HashMap<String, u32> = HashMap::new();
    let mut running = 0;
    for pid in process::table().some_pids(1) {
        let Some(p) = process::table().find(pid) else {
            continue;
        };
        // SAFETY: cells are never unmapped; the state word is an atomic.
        let state = unsafe { (*p).state.load() };
        if !state.is_alive() || state.is_exiting() {
            continue;
        }
        if state.is_running() {
            running += 1;
            let name = format!("{}, which was running", names::pid(pid));
            let label = g.text("process");
            g.node(Kind::Object, &name, top, label);
            continue;
        }
        // SAFETY: in the copy, a process that does not run is this thread's.
        unsafe { add_process(g, &mut cx, p, (top, named.get(&pid)), &mut kinds) };
    }
    running
}

/// Adds a process: its node is one below `top`, or that of its kind.
///
/// # Safety
/// The process is this thread's, and packed.
unsafe fn add_process(
    g: &mut Graph,
    cx: &mut Cx,
    p: *mut Process,
    (top, name): (u32, Option<&Term>),
    kinds: &mut HashMap<String, u32>,
) {
    // SAFETY: by the contract. The process is packed again as it was.
    unsafe {
        let (pc, live) = ((*p).pc, (*p).live as usize);
        cx.enter(p);
        cx.bif_pc = pc;
        cx.interp.live = live;
        let initial = survey::initial(cx);
        let memory = process_info::memory(cx) as u64;
        let label = g.text("process");
        let node = match name {
            None if g.combined => match kinds.get(&initial) {
                Some(&n) => n,
                None => {
                    let text = format!("processes started with {initial}");
                    let n = g.node(Kind::Object, &text, top, label);
                    kinds.insert(initial, n);
                    n
                }
            },
            name => {
                let name = name.map_or(String::new(), |n| format!(" {}", show(*n)));
                let pid = names::pid(cx.self_pid());
                let text = format!("{pid}{name}, started with {initial}");
                g.node(Kind::Object, &text, top, label)
            }
        };
        let before = g.words;
        g.begin(cx.heap.used_words() + cx.heap.old_words() + cx.heap.frag_words);
        if g.combined && name.is_none() {
            g.whole = false;
        }
        let mut held = Vec::new();
        roots::each(cx, pc, &mut |root, t| held.push((root, t)));
        receive::each_in_transit(cx.process(), |t| held.push((Root::Message, t)));
        for (root, t) in held {
            if !t.is_immed() {
                let label = g.label(root);
                g.add(t, node, label);
            }
        }
        // Cell, stack, free words, and what the next collection frees.
        let other = memory.saturating_sub(8 * (g.words - before));
        let n = &mut g.nodes[node as usize];
        n.bytes += other;
        n.count += 1;
        cx.leave(pc, live);
    }
}

fn add_tables(g: &mut Graph, top: u32) {
    let label = g.text("table");
    for t in ets::all() {
        let (objects, words) = t.size_and_words();
        let mut f = Fragment::new();
        let id = match t.options.named {
            true => show(t.name()),
            false => {
                let id = ets::id(&t, &mut f).map_or_else(String::new, show);
                format!("{} {id}", show(t.name()))
            }
        };
        // SAFETY: nothing in it is used any more.
        unsafe { f.destroy() };
        let name = format!("table {id} of {}", names::pid(t.owner()));
        let node = g.node(Kind::Object, &name, top, label);
        g.begin(words);
        let before = g.words;
        let object = g.text("object");
        ets::each(&t, usize::MAX, &mut |o| g.add(o, node, object));
        let other = (words as u64).saturating_sub(g.words - before);
        let n = &mut g.nodes[node as usize];
        n.bytes = 8 * other;
        n.count = objects as u64;
    }
}

fn add_persistent_terms(g: &mut Graph, top: u32) {
    let label = g.text("persistent term");
    purlin_runtime::natives::persistent::each(|k, v| {
        let node = g.node(Kind::Object, &show(k), top, label);
        let n = &mut g.nodes[node as usize];
        n.count = 1;
        if !v.is_immed() {
            n.bytes = 8 * region_of(v.ptr()).map_or(0, |r| r.area().1) as u64;
        }
        true
    });
}

fn add_modules(g: &mut Graph, top: u32) {
    let label = g.text("module");
    for name in purlin_kernel::code::loaded() {
        let bytes = purlin_kernel::code::with_versions(name, |v| {
            v.current.as_ref().map_or(0, |m| m.bytes()) + v.old.as_ref().map_or(0, |m| m.bytes())
        });
        let node = g.node(Kind::Code, &show(name), top, label);
        g.nodes[node as usize].bytes = bytes as u64;
    }
}

/// Numbers of nodes that stay the same in the next snapshot if the path to the node does. DevTools
/// compare snapshots by these.
fn identifiers(nodes: &[Node], texts: &[String]) -> Vec<u64> {
    let mut seen = std::collections::HashSet::new();
    let mut hashes: Vec<u64> = Vec::with_capacity(nodes.len());
    let mut ids = Vec::with_capacity(nodes.len());
    for n in nodes {
        let above = hashes.get(n.parent as usize).copied().unwrap_or(0);
        let h = fnv::add(above ^ fnv::EMPTY, texts[n.name as usize].as_bytes());
        hashes.push(h);
        // Odd, as V8's are. DevTools keep all numbers in 32 bits.
        let mut id = (h >> 33) | 1;
        while !seen.insert(id) {
            id = (id + 2) & ((1 << 31) - 1);
        }
        ids.push(id);
    }
    ids
}

impl Graph {
    /// The names of the nodes below those below the root, with the sums of what is below them.
    fn holders(&self) -> Vec<(u64, u64, &str)> {
        let mut sums: HashMap<u32, (u64, u64)> = HashMap::new();
        for n in &self.nodes {
            let sum = sums.entry(n.holder).or_default();
            sum.0 += n.bytes;
            sum.1 += n.count;
        }
        let mut all: Vec<(u64, u64, &str)> = sums
            .into_iter()
            .filter(|(h, _)| *h != 0)
            .map(|(h, (bytes, count))| {
                let name = self.nodes[h as usize].name;
                (bytes, count, self.texts.all[name as usize].as_str())
            })
            .collect();
        all.sort_by(|a, b| (b.0, a.2).cmp(&(a.0, b.2)));
        all.retain(|h| h.0 > 0);
        all
    }
    /// Gives sizes that do not fit into 32 bits to several nodes.
    fn split_sizes(&mut self) {
        let label = self.text("rest");
        let mut i = 0;
        while i < self.nodes.len() {
            if let Some(rest) = self.nodes[i].bytes.checked_sub(SIZE).filter(|n| *n > 0) {
                self.nodes[i].bytes = SIZE;
                let (kind, name) = (self.nodes[i].kind, self.nodes[i].name);
                let name = self.texts.all[name as usize].clone();
                let n = self.node(kind, &name, i as u32, label);
                self.nodes[n as usize].bytes = rest;
            }
            i += 1;
        }
    }
    fn write(&mut self, to: &mut Vec<u8>, running: usize) {
        // The region's own words are those that were not visited.
        let mut visited: HashMap<u32, u64> = HashMap::new();
        for n in &self.nodes {
            if n.shape != NONE {
                *visited.entry(n.holder).or_default() += n.bytes;
            }
        }
        for n in self.regions.values() {
            let node = &mut self.nodes[*n as usize];
            node.bytes = node
                .bytes
                .saturating_sub(visited.get(n).copied().unwrap_or(0));
        }
        let mut text = String::new();
        for (bytes, count, name) in self.holders().into_iter().take(LISTED) {
            let _ = writeln!(text, "{bytes} {count} {}", name.replace('\n', " "));
        }
        self.split_sizes();
        let bytes: u64 = self.nodes.iter().map(|n| n.bytes).sum();
        let edges: usize = self.nodes.iter().map(|n| n.edges.len()).sum();
        let (nodes, objects) = (self.nodes.len(), self.objects);
        let _ = writeln!(text, "\n{nodes} {edges} {objects} {bytes} {running}");
        let ids = identifiers(&self.nodes, &self.texts.all);
        // A group's name has its number of terms.
        let names: Vec<u32> = (0..self.nodes.len())
            .map(|i| {
                let n = &self.nodes[i];
                match n.count {
                    0 | 1 => n.name,
                    count => {
                        let text = format!("{} \u{d7} {count}", self.texts.all[n.name as usize]);
                        self.texts.of(&text)
                    }
                }
            })
            .collect();
        text.push_str("\"nodes\":[");
        for (i, n) in self.nodes.iter().enumerate() {
            let comma = if i > 0 { ",\n" } else { "" };
            let (kind, name) = (n.kind as u8, names[i]);
            let (id, bytes, edges) = (ids[i], n.bytes, n.edges.len());
            let _ = write!(text, "{comma}{kind},{name},{id},{bytes},{edges},0,0");
        }
        text.push_str("],\n\"edges\":[");
        let mut first = true;
        for (kind, label, node) in self.nodes.iter().flat_map(|n| &n.edges) {
            let comma = if first { "" } else { ",\n" };
            first = false;
            let label = match label {
                Label::Index(n) | Label::Text(n) => n,
            };
            let at = *node as usize * FIELDS;
            let _ = write!(text, "{comma}{kind},{label},{at}");
        }
        text.push_str(
            "],\n\"trace_function_infos\":[],\"trace_tree\":[],\"samples\":[],\"locations\":[],\n\
             \"strings\":[",
        );
        for (i, s) in self.texts.all.iter().enumerate() {
            let comma = if i > 0 { ",\n" } else { "" };
            let _ = write!(text, "{comma}{}", Json::from(s.as_str()));
        }
        text.push_str("]}\n");
        to.extend_from_slice(text.as_bytes());
    }
}

/// Maximum size of a node.
const SIZE: u64 = u32::MAX as u64;
/// Number of fields of a node.
const FIELDS: usize = 7;

/// The description of the format, as V8 writes it.
const META: &str = concat!(
    "{\"node_fields\":[\"type\",\"name\",\"id\",\"self_size\",\"edge_count\",\"trace_node_id\",",
    "\"detachedness\"],\"node_types\":[[\"hidden\",\"array\",\"string\",\"object\",\"code\",",
    "\"closure\",\"regexp\",\"number\",\"native\",\"synthetic\",\"concatenated string\",",
    "\"sliced string\",\"symbol\",\"bigint\",\"object shape\"],\"string\",\"number\",\"number\",",
    "\"number\",\"number\",\"number\"],\"edge_fields\":[\"type\",\"name_or_index\",\"to_node\"],",
    "\"edge_types\":[[\"context\",\"element\",\"property\",\"internal\",\"hidden\",\"shortcut\",",
    "\"weak\"],\"string_or_number\",\"node\"],\"trace_function_info_fields\":[\"function_id\",",
    "\"name\",\"script_name\",\"script_id\",\"line\",\"column\"],\"trace_node_fields\":[\"id\",",
    "\"function_info_index\",\"count\",\"size\",\"children\"],\"sample_fields\":[",
    "\"timestamp_us\",\"last_assigned_id\"],\"location_fields\":[\"object_index\",\"script_id\",",
    "\"line\",\"column\"]}"
);

/// The lines of the program at which most of what collections keep was made.
fn kept_by_line() -> Json {
    let mut sums: HashMap<Option<accounts::Frame>, u64> = HashMap::new();
    for e in accounts::snapshot() {
        if e.kind == accounts::Kind::Collection {
            let words = e.sums.copied + e.sums.moved;
            *sums.entry(names::site(&e.frames).cloned()).or_default() += 8 * words;
        }
    }
    let mut lines: Vec<(Json, u64)> = sums
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(site, bytes)| (site.as_ref().map_or(Json::Null, names::frame), bytes))
        .collect();
    lines.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let lines = lines.into_iter().take(LISTED);
    let lines = lines.map(|(site, bytes)| Json::object([("site", site), ("bytes", bytes.into())]));
    Json::List(lines.collect())
}

pub fn heap(top: usize) -> Vec<(String, Json)> {
    let pairs: Vec<(&str, Json)> = match taken() {
        Err(why) => vec![("not_taken", why.into())],
        Ok((answer, took)) => {
            let text = String::from_utf8_lossy(&answer.bytes);
            let (holders, rest) = text.split_once("\n\n").unwrap_or_default();
            let (counts, rest) = rest.split_once('\n').unwrap_or_default();
            let counts: Vec<u64> = counts.split(' ').filter_map(|n| n.parse().ok()).collect();
            let count = |i: usize| counts.get(i).copied().unwrap_or(0);
            let list = holders.lines().take(top).filter_map(|l| {
                let mut words = l.splitn(3, ' ');
                let bytes: u64 = words.next()?.parse().ok()?;
                let terms: u64 = words.next()?.parse().ok()?;
                Some(Json::object([
                    ("holder", words.next()?.into()),
                    ("bytes", bytes.into()),
                    ("terms", terms.into()),
                ]))
            });
            let list: Vec<Json> = list.collect();
            let otp = purlin_kernel::options::try_current().map_or("", |o| o.otp.version.as_str());
            let uptime = purlin_kernel::clock::elapsed() as f64 / 1e9;
            let own = Json::object([
                ("schema", SCHEMA.into()),
                ("purlin", env!("CARGO_PKG_VERSION").into()),
                ("otp", otp.into()),
                ("uptime_s", uptime.into()),
                ("objects", count(2).into()),
                ("bytes", count(3).into()),
                ("kept", kept_by_line()),
            ]);
            let snapshot = format!(
                "{{\"snapshot\":{{\"meta\":{META},\"node_count\":{},\"edge_count\":{},\
                 \"trace_function_count\":0,\"purlin\":{own}}},\n{rest}",
                count(0),
                count(1),
            );
            vec![
                ("stopped_s", answer.stopped.as_secs_f64().into()),
                ("took_s", took.as_secs_f64().into()),
                ("nodes", count(0).into()),
                ("edges", count(1).into()),
                ("objects", count(2).into()),
                ("bytes", count(3).into()),
                ("running", count(4).into()),
                ("holders", Json::List(list)),
                ("snapshot", snapshot.into()),
            ]
        }
    };
    let pairs = pairs.into_iter();
    pairs.map(|(k, v)| (k.to_string(), v)).collect()
}

/// The form of what this module adds to a snapshot.
const SCHEMA: &str = "purlin-heap/1";

fn taken() -> Result<(fork::Answer, Duration), String> {
    let begun = std::time::Instant::now();
    let answer = fork::ask(LOOK_TIME_LIMIT, MOST_BYTES, || (), look)?;
    Ok((answer, begun.elapsed()))
}
