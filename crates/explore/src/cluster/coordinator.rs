//! One run of a cluster: who has the turn, what time it is, and where faults happen.
//!
//! The next turn is that of the node whose next event is the earliest. It lasts until the earliest
//! moment at which another node could act, but at least a millisecond and at most a second, so that
//! nodes that compute take turns. Time passes only from one event to the next: there is no wait.
//!
//! # Invariants
//! * One member has the turn, and only it runs.
//! * Time never goes back.
//! * The hash of a run covers all questions that follow from command, seed and faults.

use super::disks::Disks;
use super::fault::{At, Fault, Harm, MS, Message, Node, Profile, Seen, When, halves};
use super::members::{Door, Kept, Link, Member, Open, RunFolder, Spec, State, is_gone};
use super::story::{Kind, Line};
use super::wires::{Answered, Wires};
use purlin_world::clock::NodeClock;
use purlin_world::net::FAILED;
use purlin_world::protocol::{
    self, Call, FileCall, FileStep, Note, NoteStep, Point, Question, Reply, Switch, Thing, Turn,
    Welcome, numbers,
};
use purlin_world::streams::{Stream, Use};
use purlin_world::{Errno, Refusal};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::unix::net::UnixStream;

/// The time for which a node may go on beside others that could run.
const TURN: u64 = MS;
/// The longest turn.
const LONGEST_TURN: u64 = 1000 * MS;
/// The time that a program has to end, after the last fault.
const PROGRAM_LIMIT: u64 = 600_000 * MS;
/// Maximum number of nodes.
pub(super) const MOST_NODES: u32 = 32;
/// The wall clock when every world begins, in nanoseconds since 1970: 1 January 2026.
const BEGINNING: u64 = 1_767_225_600_000_000_000;

/// The seed and the faults, which decide a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    pub faults: Vec<Fault>,
    /// Whether nodes report what they do with files.
    pub files: bool,
}

/// How a run has ended.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Verdict {
    #[default]
    Passes,
    /// A node has ended with that status.
    Status(String, i32),
    /// A node has ended without a status, by a signal.
    Died(String),
    /// No node can run, and nothing is under way.
    Deadlock,
    /// The program has not ended in its time.
    DoesNotEnd,
}

impl Verdict {
    /// Says it. `healed`: there were faults.
    pub fn describe(&self, healed: bool) -> String {
        match self {
            Verdict::Passes => "passes".into(),
            Verdict::Status(n, s) => format!("{n} ends with status {s}"),
            Verdict::Died(n) => format!("{n} ends by a signal"),
            Verdict::Deadlock => "deadlock: no node can run, and nothing is under way".into(),
            Verdict::DoesNotEnd if healed => {
                "does not recover: 600 s after the last fault the program has not ended".into()
            }
            Verdict::DoesNotEnd => "does not end within 600 s".into(),
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Run {
    pub verdict: Verdict,
    /// A hash of the questions of all nodes, with their times and bytes, but for those about real
    /// processes (`Hello`, `Started`) and about orders.
    pub hash: u64,
    pub profile: Profile,
    /// Events and output, in order.
    pub story: Vec<Line>,
    /// How the program has left the model.
    pub left: BTreeSet<String>,
    pub turns: u64,
    /// The faults that have happened, by their place in the plan.
    pub happened: BTreeSet<usize>,
    /// The operations of processes, in order, on nodes on which a sampler picked them.
    pub orders: BTreeMap<Node, Vec<Point>>,
    /// The points before which processes have waited for others, as the order of processes had it.
    pub waits: BTreeSet<(Node, Point)>,
}

/// Something that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The link of two nodes is whole again, or one direction of it is.
    Heal(Node, Node),
    HealWay(Node, Node),
    InTime(Node, Node),
    /// Datagrams arrive again, or once again.
    Arrive(Node, Node),
    Once(Node, Node),
    /// The disk has room again.
    Room(Node),
    /// Erlang's clock agrees with the wall clock again.
    Agrees(Node),
    /// Its processes go on.
    Goes(Node),
    Restart(Node),
    Fault(usize),
}

/// The next step of a member after a question.
enum Then {
    /// It has its answer, and asks another one.
    Another,
    /// It waits for a turn, or for its answer.
    Waits,
    Ended,
}

/// A message between two nodes that was sent: what it is, its number, and whether the program has
/// sent it.
type UnderWay = (String, u64, bool);

/// Maximum number of messages under way that are kept for each link.
const MOST_UNDER_WAY: usize = 1000;

/// All that a run consists of, but the nodes' processes.
#[derive(Clone)]
pub(super) struct World {
    wires: Wires,
    members: Vec<Member>,
    /// Programs that nodes have started, by their words: the pipes of their input and output.
    started: BTreeMap<String, (Open, Open)>,
    due: BTreeSet<(u64, Due)>,
    /// The end of each effect that overlapping faults have extended.
    over: BTreeMap<Due, u64>,
    now: u64,
    lives: BTreeMap<Node, u32>,
    outputs: BTreeMap<Node, u64>,
    disks: Disks,
    /// Nodes whose disk is full, and those whose next change to files fails.
    full: BTreeSet<Node>,
    broken: BTreeSet<Node>,
    /// Clocks that are not exact, or have stepped.
    clocks: BTreeMap<Node, NodeClock>,
    /// Nodes whose processes stop, and until when.
    stalled: BTreeMap<Node, u64>,
    /// Orders that nodes do not know yet.
    orders: BTreeMap<Node, String>,
    /// The time for which the process stops whose message is noted now.
    pause: Option<u64>,
    /// The time by which that message is late.
    late: Option<u64>,
    /// Names of nodes.
    names: BTreeMap<String, Node>,
    /// Messages that are not known to have arrived.
    under_way: BTreeMap<(Node, Node), VecDeque<UnderWay>>,
    last_message: u64,
    /// Messages that leave with the next packet, by member and receiver.
    leaving: BTreeMap<(usize, Node), Vec<(Message, u64)>>,
    run: Run,
    /// The time by which the program is to have ended.
    ends: u64,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            wires: Wires::new(seed),
            members: Vec::new(),
            started: BTreeMap::new(),
            due: BTreeSet::new(),
            over: BTreeMap::new(),
            now: 0,
            lives: BTreeMap::new(),
            outputs: BTreeMap::new(),
            disks: Disks::default(),
            full: BTreeSet::new(),
            broken: BTreeSet::new(),
            clocks: BTreeMap::new(),
            stalled: BTreeMap::new(),
            orders: BTreeMap::new(),
            pause: None,
            late: None,
            names: BTreeMap::new(),
            under_way: BTreeMap::new(),
            last_message: 0,
            leaving: BTreeMap::new(),
            run: Run::default(),
            ends: PROGRAM_LIMIT,
        }
    }

    /// Whether the place of a fault is still to come.
    pub fn is_before(&self, f: &Fault) -> bool {
        let profile = &self.run.profile;
        let seen = |all: &BTreeMap<Message, Seen>, m: &Message| {
            all.get(m).map_or(0, |s| s.turns.len() as u64)
        };
        match &f.place {
            At::Message(When::Arrives, m, n) => seen(&profile.arrived, m) < *n,
            At::Message(_, m, n) => seen(&profile.sent, m) < *n,
            At::Packet(a, b, c, n) => {
                let sent = self.wires.packets.get(&(*a, *b, *c));
                sent.is_none_or(|sent| sent < n)
            }
            At::File(a, n) => profile.files.get(a).is_none_or(|p| p < n),
            At::Time(t) => self.now < *t,
        }
    }

    /// Returns what the clock of a node shows at a time of the world.
    fn shows(&self, node: Node, at: u64) -> u64 {
        self.clocks.get(&node).map_or(at, |c| c.monotonic(at))
    }

    /// Returns the time of the world at which the clock of a node shows `reading`.
    fn when(&self, node: Node, reading: u64) -> u64 {
        self.clocks.get(&node).map_or(reading, |c| c.when(reading))
    }

    /// How far the nodes' output was read.
    pub fn outputs(&self) -> &BTreeMap<Node, u64> {
        &self.outputs
    }

    /// Whether each node waits for a turn or has ended.
    fn can_be_saved(&self) -> bool {
        let waits = |m: &Member| matches!(m.state, State::Idle(..) | State::Over(_) | State::Ended);
        self.members.iter().all(waits)
    }
}

/// A run.
pub(super) struct Cluster<'a> {
    pub spec: &'a Spec,
    pub plan: &'a Plan,
    pub place: &'a RunFolder,
    pub door: &'a mut Door,
    /// The processes of members, by their places.
    pub links: Vec<Link>,
    /// Numbers of turns after which the cluster is saved.
    pub cuts: VecDeque<u64>,
    pub saved: Vec<Saved>,
    pub world: World,
}

/// A cluster as it was after some turn: processes that wait for orders to copy themselves.
pub(super) struct Saved {
    pub world: World,
    pub copies: Vec<Option<UnixStream>>,
    /// The content of the nodes' own folders.
    pub kept: Kept,
}

impl<'a> Cluster<'a> {
    /// Makes the cluster of a run that begins at the start.
    pub fn new(
        spec: &'a Spec,
        plan: &'a Plan,
        place: &'a RunFolder,
        door: &'a mut Door,
    ) -> Cluster<'a> {
        Cluster {
            spec,
            plan,
            place,
            door,
            links: Vec::new(),
            cuts: VecDeque::new(),
            saved: Vec::new(),
            world: World::new(plan.seed),
        }
    }

    /// Starts all nodes, and goes on to the end.
    pub fn begin(self) -> Result<(Run, Vec<Saved>), String> {
        self.finish(Cluster::start)
    }

    fn start(&mut self) -> Result<(), String> {
        for node in 1..=self.spec.nodes {
            self.world.wires.add_machine(node);
            self.begin_root(node)?;
        }
        self.all()
    }

    /// Goes on from where it was saved.
    pub fn resume(self) -> Result<(Run, Vec<Saved>), String> {
        self.finish(Cluster::all)
    }

    fn finish(
        mut self,
        go: impl FnOnce(&mut Cluster<'a>) -> Result<(), String>,
    ) -> Result<(Run, Vec<Saved>), String> {
        for (i, f) in self.plan.faults.iter().enumerate() {
            if let At::Time(t) = f.place {
                self.world.due.insert((t, Due::Fault(i)));
            }
        }
        let result = go(&mut self);
        self.end_all();
        result?;
        let w = &mut self.world;
        w.run.profile.packets = std::mem::take(&mut w.wires.packets);
        w.run.profile.took = w.now;
        w.run.profile.nodes = w.lives.keys().copied().collect();
        let first_mortal = if self.spec.nodes == 1 { 2 } else { 1 };
        w.run.profile.mortal = (w.lives.keys().copied())
            .filter(|n| *n >= first_mortal)
            .collect();
        Ok((std::mem::take(&mut w.run), self.saved))
    }

    fn all(&mut self) -> Result<(), String> {
        loop {
            while self
                .cuts
                .front()
                .is_some_and(|c| *c <= self.world.run.turns)
            {
                self.cuts.pop_front();
                self.save()?;
            }
            if let Some(verdict) = self.verdict() {
                self.world.run.verdict = verdict;
                return Ok(());
            }
            let Some((at, who)) = self.next() else {
                self.world.run.verdict = Verdict::Deadlock;
                return Ok(());
            };
            if at > self.world.ends {
                self.world.run.verdict = Verdict::DoesNotEnd;
                return Ok(());
            }
            self.pass(at);
            match who {
                Some(i) => self.turn(i)?,
                None => self.happen()?,
            }
        }
    }

    fn tell(&mut self, line: Line) {
        let at = self.world.now;
        self.world.run.story.push(Line { at, ..line });
    }

    /// Adds an event to the story.
    fn say(&mut self, text: &str) {
        self.tell(Line {
            text: text.to_owned(),
            ..Line::default()
        });
    }

    /// Adds the begin or the end of a fault.
    fn say_fault(&mut self, text: &str) {
        self.tell(Line {
            kind: Kind::Fault,
            text: text.to_owned(),
            ..Line::default()
        });
    }

    /// Keeps an effect until that time at least: overlapping faults extend it.
    fn lasts(&mut self, what: Due, until: u64) {
        let over = self.world.over.entry(what).or_default();
        *over = until.max(*over);
        self.world.due.insert((until, what));
    }

    /// Starts the command on a node.
    fn begin_root(&mut self, node: Node) -> Result<(), String> {
        let life = self.world.lives.entry(node).or_default();
        *life += 1;
        let life = *life;
        let (mut child, word) = self.place.start(self.spec, self.door, node, life)?;
        let mut gone = || child.try_wait().is_ok_and(|s| s.is_some());
        let joined = self.door.wait(&word, &mut gone);
        let mut m = Member::new(node, life);
        m.now = self.world.now;
        match joined {
            Ok(stream) => {
                self.links.push(Link {
                    stream: Some(stream),
                    child: Some(child),
                });
                self.world.members.push(m);
            }
            Err(why) => {
                Link {
                    stream: None,
                    child: Some(child),
                }
                .end();
                let said = self.output(node).join("\n");
                return Err(format!("n{node}: {why}\n{said}"));
            }
        }
        let name = self
            .world
            .members
            .last()
            .map(Member::name)
            .unwrap_or_default();
        self.say(&format!("{name} begins"));
        Ok(())
    }

    /// Returns the lines that a node has written since the last call.
    fn output(&mut self, node: Node) -> Vec<String> {
        let at = self.world.outputs.entry(node).or_default();
        let text = self.place.new_output(node, at);
        text.lines().map(str::to_owned).collect()
    }

    fn tell_output(&mut self, node: Node) {
        for text in self.output(node) {
            self.tell(Line {
                kind: Kind::Output,
                node: format!("n{node}"),
                text,
                ..Line::default()
            });
        }
    }

    /// Says how the run has ended, if it has.
    fn verdict(&self) -> Option<Verdict> {
        let mut all_ended = true;
        for node in 1..=self.spec.nodes {
            let last = self.world.members.iter().rev().find(|m| m.node == node)?;
            let restarts = self.world.due.iter().any(|(_, d)| *d == Due::Restart(node));
            all_ended &= !last.is_alive() && !restarts;
            if last.is_alive() || last.killed {
                continue;
            }
            match last.status {
                Some(0) => {}
                Some(s) => return Some(Verdict::Status(last.name(), s)),
                None => return Some(Verdict::Died(last.name())),
            }
        }
        all_ended.then_some(Verdict::Passes)
    }

    /// Returns the time from which a member can run.
    fn ready_at(&self, m: &Member) -> Option<u64> {
        let ready = match &m.state {
            State::Ended => None,
            State::Begun | State::Over(_) | State::Held => Some(m.now),
            State::Idle(next, watched) => match self.ready(m, watched).is_empty() {
                false => Some(m.now),
                true => next.map(|n| self.world.when(m.node, n).max(m.now)),
            },
        }?;
        let stalled = self.world.stalled.get(&m.node);
        Some(stalled.map_or(ready, |until| ready.max(*until)))
    }

    fn ready(&self, m: &Member, watched: &[(Thing, u32)]) -> Vec<(Thing, u32)> {
        let ended = |i: usize| !self.world.members[i].is_alive();
        let of = |(thing, events): &(Thing, u32)| {
            let what = *m.things.get(thing)?;
            let ready = self.world.wires.ready(what, ended) & (events | FAILED);
            (ready != 0).then_some((*thing, ready))
        };
        watched.iter().filter_map(of).collect()
    }

    /// Returns the time of the next event, and the member whose turn it is. None: the world's.
    fn next(&self) -> Option<(u64, Option<usize>)> {
        let world = self.world.wires.net.next_time().into_iter();
        let world = world.chain(self.world.due.first().map(|(t, _)| *t));
        let members = self.world.members.iter().enumerate();
        let members = members.filter_map(|(i, m)| Some((self.ready_at(m)?, 1, i)));
        let all = world.map(|t| (t, 0, 0)).chain(members);
        let (at, kind, i) = all.min()?;
        Some((at, (kind == 1).then_some(i)))
    }

    /// Returns the time until which a member may go on.
    fn until(&self, me: usize, begun: u64) -> u64 {
        let node = self.world.members[me].node;
        if self
            .world
            .stalled
            .get(&node)
            .is_some_and(|t| *t > self.world.now)
        {
            return begun;
        }
        let world = self.world.wires.net.next_time().into_iter();
        let world = world.chain(self.world.due.first().map(|(t, _)| *t));
        let others = self
            .world
            .members
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != me);
        let others = others.filter_map(|(_, m)| self.ready_at(m));
        let next = world.chain(others).min().unwrap_or(u64::MAX);
        next.clamp(begun + TURN, begun + LONGEST_TURN)
    }

    /// Advances the time.
    fn pass(&mut self, to: u64) {
        self.world.now = self.world.now.max(to);
        self.world.wires.advance(self.world.now);
    }

    /// Runs all events that are due.
    fn happen(&mut self) -> Result<(), String> {
        while let Some((t, what)) = self.world.due.first().copied() {
            if t > self.world.now {
                return Ok(());
            }
            self.world.due.pop_first();
            if self.world.over.get(&what).is_some_and(|over| *over > t) {
                continue;
            }
            let text = match what {
                Due::Heal(a, b) => {
                    self.heal(a, b, Due::HealWay(a, b));
                    self.heal(b, a, Due::HealWay(b, a));
                    format!("the link between n{a} and n{b} is whole again")
                }
                Due::HealWay(a, b) => {
                    self.heal(a, b, Due::Heal(a.min(b), a.max(b)));
                    format!("what n{a} sends reaches n{b} again")
                }
                Due::InTime(a, b) => {
                    self.world.wires.set_late(a, b, 0);
                    format!("n{a} reaches n{b} in time again")
                }
                Due::Arrive(a, b) => {
                    self.world.wires.lost.remove(&(a, b));
                    format!("datagrams of n{a} reach n{b} again")
                }
                Due::Once(a, b) => {
                    self.world.wires.twice.remove(&(a, b));
                    format!("datagrams of n{a} reach n{b} once again")
                }
                Due::Room(node) => {
                    self.world.full.remove(&node);
                    format!("the disk of n{node} has room again")
                }
                Due::Agrees(node) => {
                    self.correct(node);
                    continue;
                }
                Due::Goes(node) => {
                    self.world.stalled.remove(&node);
                    format!("the processes of n{node} go on")
                }
                Due::Restart(node) => {
                    self.world.wires.start_machine(node);
                    self.begin_root(node)?;
                    continue;
                }
                Due::Fault(i) => {
                    self.harm(i);
                    continue;
                }
            };
            self.say_fault(&text);
        }
        Ok(())
    }

    /// Has a fault happen.
    fn harm(&mut self, i: usize) {
        let Some(fault) = self.plan.faults.get(i).cloned() else {
            return;
        };
        if let Harm::Kill(node, _) | Harm::Power(node, _) = fault.what
            && (self.begins(node) || self.living(node).is_none())
        {
            return;
        }
        if !self.world.run.happened.insert(i) {
            return;
        }
        // A switch has a line of its own where it happens.
        if !matches!(fault.what, Harm::Switch(..)) {
            self.say_fault(&format!("{}, {}", fault.describe(), fault.place()));
        }
        let now = self.world.now;
        let mut over = 0;
        match fault.what {
            Harm::Delay(a, b, late) => {
                self.world.wires.set_late(a, b, late);
                self.lasts(Due::InTime(a, b), now + late);
                over = 2 * late;
            }
            Harm::Reset(a, b) => self.world.wires.reset(a, b),
            Harm::Cut(a, b, time) => {
                self.cut(a, b, now + time);
                over = time;
            }
            Harm::OneWay(a, b, time) => {
                self.world.wires.cut(a, b, true);
                self.lasts(Due::HealWay(a, b), now + time);
                over = time;
            }
            Harm::Alone(a, time) => {
                for b in self.world.wires.others(a) {
                    self.cut(a, b, now + time);
                }
                over = time;
            }
            Harm::Halves(half, time) => {
                let all: Vec<Node> = self.world.lives.keys().copied().collect();
                let (some, others) = halves(half, &all);
                for a in some {
                    for b in &others {
                        self.cut(a, *b, now + time);
                    }
                }
                over = time;
            }
            Harm::Kill(node, back) | Harm::Power(node, back) => {
                match fault.what {
                    Harm::Power(..) => self.lose_power(node),
                    _ => self.kill(node),
                }
                if let Some(t) = back.filter(|_| node <= self.spec.nodes) {
                    self.world.due.insert((now + t, Due::Restart(node)));
                    over = t;
                }
            }
            Harm::Full(node, time) => {
                self.world.full.insert(node);
                self.lasts(Due::Room(node), now + time);
                over = time;
            }
            Harm::Broken(node) => {
                self.world.broken.insert(node);
            }
            Harm::Step(node, by) => {
                self.clock(node).step(by);
                self.correct(node);
            }
            Harm::Rate(node, ppm) => {
                self.clock(node).set_rate(now, ppm);
                self.correct(node);
            }
            Harm::Lose(a, b, time) => {
                self.world.wires.lost.insert((a, b));
                self.lasts(Due::Arrive(a, b), now + time);
                over = time;
            }
            Harm::Twice(a, b, time) => {
                self.world.wires.twice.insert((a, b));
                self.lasts(Due::Once(a, b), now + time);
                over = time;
            }
            Harm::Stall(node, time) => {
                let until = self.world.stalled.entry(node).or_default();
                *until = (*until).max(now + time);
                self.lasts(Due::Goes(node), now + time);
                over = time;
            }
            Harm::Pause(_, time) => {
                self.world.pause = Some(time);
                over = time;
            }
            Harm::Overtaken(_, time) => {
                self.world.late = Some(time);
                over = time;
            }
            Harm::Order(node, sampling, seed) => {
                let order = format!("{} {seed}", sampling.name());
                self.world.orders.insert(node, order);
            }
            Harm::Switch(node, at, of) => {
                let order = self.world.orders.entry(node).or_insert("after".into());
                *order += &format!(" {} {} {} {}", at.0, at.1, of.0, of.1);
            }
        }
        self.world.ends = self.world.ends.max(now + over + PROGRAM_LIMIT);
    }

    /// Returns the clocks of a node.
    fn clock(&mut self, node: Node) -> &mut NodeClock {
        let (now, wall) = (self.world.now, self.wall_at_start());
        let wall = i64::try_from(wall + now).unwrap_or(i64::MAX);
        let clocks = &mut self.world.clocks;
        clocks
            .entry(node)
            .or_insert_with(|| NodeClock::new(now, wall))
    }

    /// Has the clock of Erlang on a node follow its wall clock.
    fn correct(&mut self, node: Node) {
        let now = self.world.now;
        if let Some(at) = self.clock(node).correct(now) {
            self.world.due.insert((at, Due::Agrees(node)));
        }
    }

    /// Cuts the link of two nodes until that time at least.
    fn cut(&mut self, a: Node, b: Node, until: u64) {
        self.world.wires.cut(a, b, true);
        self.world.wires.cut(b, a, true);
        self.lasts(Due::Heal(a.min(b), a.max(b)), until);
    }

    /// Heals one direction of a link, unless another cut holds it that is over then.
    fn heal(&mut self, from: Node, to: Node, other: Due) {
        let now = self.world.now;
        if self.world.over.get(&other).is_none_or(|over| *over <= now) {
            self.world.wires.cut(from, to, false);
        }
    }

    /// Whether a node was started by another one and has sent nothing yet. What waits for it to
    /// begin would rightly fail without it.
    fn begins(&self, node: Node) -> bool {
        node > self.spec.nodes
            && !self
                .world
                .wires
                .packets
                .keys()
                .any(|(from, ..)| *from == node)
    }

    /// Returns the living member of a node.
    fn living(&self, node: Node) -> Option<usize> {
        let living = |m: &Member| m.node == node && m.is_alive();
        self.world.members.iter().position(living)
    }

    /// The machine of a node loses its power.
    fn lose_power(&mut self, node: Node) {
        let Some(i) = self.living(node) else { return };
        self.world.wires.stop_machine(node);
        self.kill(node);
        let life = self.world.members[i].life;
        let mut numbers = Stream::new(self.plan.seed, node, life, Use::Disk);
        if let Err(why) = self.world.disks.lose_power(node, &mut numbers) {
            self.world.run.left.insert(format!("n{node}: {why}"));
        }
    }

    fn kill(&mut self, node: Node) {
        let Some(i) = self.living(node) else { return };
        self.world.members[i].killed = true;
        self.ended(i);
    }

    /// A member has ended: its machine closes what it had open.
    fn ended(&mut self, i: usize) {
        let m = &mut self.world.members[i];
        m.state = State::Ended;
        match m.killed {
            true => self.links[i].end(),
            false => self.links[i].wait(),
        }
        let things = std::mem::take(&mut m.things);
        let node = m.node;
        for what in things.into_values() {
            self.world.wires.close(what);
        }
        self.world.leaving.retain(|(member, _), _| *member != i);
        self.world.disks.ended(node);
        self.tell_output(node);
    }

    fn end_all(&mut self) {
        // A node ends when its connection does.
        self.links.iter_mut().for_each(Link::end);
    }

    fn reply(&mut self, i: usize, begun: u64, answer: Result<Vec<u8>, Refusal>) {
        let answer = match answer {
            Ok(bytes) => Ok(bytes),
            Err(Refusal::Errno(e)) => Err(e.0),
            Err(Refusal::NotModelled(what)) => {
                let name = self.world.members[i].name();
                self.world.run.left.insert(format!("{name}: {what}"));
                Err(Errno::EOPNOTSUPP.0)
            }
        };
        let until = self.until(i, begun);
        let until = self.world.shows(self.world.members[i].node, until);
        let bytes = Reply { until, answer }.to_bytes();
        if let Some(stream) = &mut self.links[i].stream {
            // If it has ended, the next question does not come.
            let _ = protocol::send(stream, &bytes);
        }
    }

    fn hash(&mut self, i: usize, q: &Question) {
        // Numbers of real processes are none of the run, and notes of its order change nothing.
        if matches!(
            q.call,
            Call::Hello { .. } | Call::Started { .. } | Call::Order { .. }
        ) {
            return;
        }
        let mut h = self.world.run.hash ^ (i as u64 + 1);
        for b in q.to_bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        self.world.run.hash = h.rotate_left(23).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// Gives a member the turn, and answers it until it gives it back.
    fn turn(&mut self, i: usize) -> Result<(), String> {
        self.world.run.turns += 1;
        let begun = self.world.now;
        let node = self.world.members[i].node;
        let state = std::mem::replace(&mut self.world.members[i].state, State::Begun);
        if let (State::Begun, Some(clock)) = (&state, self.world.clocks.get_mut(&node)) {
            clock.begin(begun);
            self.world.due.retain(|(_, d)| *d != Due::Agrees(node));
        }
        let shown = self.world.shows(node, begun);
        let first = match &state {
            State::Begun => self.welcome(i).to_bytes(),
            State::Idle(_, watched) | State::Over(watched) => Turn {
                now: shown,
                started: self.wall(node),
                ready: self.ready(&self.world.members[i], watched),
                fork: String::new(),
                order: self.world.orders.remove(&node).unwrap_or_default(),
            }
            .to_bytes(),
            State::Held => numbers(&[shown]),
            State::Ended => return Ok(()),
        };
        self.reply(i, begun, Ok(first));
        loop {
            let Some(q) = self.links[i].question() else {
                // It has died, or a fault has ended it.
                if self.world.members[i].is_alive() {
                    self.links[i].end();
                    self.ended(i);
                    let name = self.world.members[i].name();
                    self.say(&format!("{name} has died"));
                }
                return Ok(());
            };
            self.hash(i, &q);
            let now = self.world.when(node, q.now);
            self.pass(now);
            self.world.members[i].now = now;
            match self.answer(i, begun, q.call) {
                Then::Another => {}
                Then::Waits => break,
                Then::Ended => return Ok(()),
            }
        }
        self.tell_output(node);
        Ok(())
    }

    /// Answers a question of a member, whose turn began at that time.
    fn answer(&mut self, i: usize, begun: u64, call: Call) -> Then {
        let answer = match call {
            Call::Idle { next, watched } => {
                // What has not left by now never will: there is no connection.
                self.world.leaving.retain(|(member, _), _| *member != i);
                self.world.members[i].state = State::Idle(next, watched);
                return Then::Waits;
            }
            Call::Over { watched } => {
                self.world.members[i].state = State::Over(watched);
                return Then::Waits;
            }
            Call::Ended { status, .. } => {
                self.world.members[i].status = Some(status as i32);
                self.reply(i, begun, Ok(Vec::new()));
                self.ended(i);
                let name = self.world.members[i].name();
                self.say(&format!("{name} ends with status {status}"));
                return Then::Ended;
            }
            Call::Left { how } => {
                let name = self.world.members[i].name();
                self.world.run.left.insert(format!("{name}: {how}"));
                Ok(Vec::new())
            }
            Call::Start { input, output } => Ok(self.prepare(i, input, output).into_bytes()),
            Call::Started { word, process } => Ok(numbers(&[self.started(i, &word, process)])),
            Call::EndOf { of } => self.end_of(i, of),
            Call::Ready { of } => {
                let w = &self.world;
                let ended = |i: usize| !w.members[i].is_alive();
                let thing = w.members[i].things.get(&of);
                let ready = thing.map_or(0, |t| w.wires.ready(*t, ended));
                Ok(numbers(&[ready.into()]))
            }
            Call::Note(n) => {
                self.note(i, n);
                let pause = self.world.pause.take();
                let late = self.world.late.take();
                if self.holds(i) {
                    return Then::Waits;
                }
                Ok(self.noted(i, pause, late))
            }
            Call::Order { points } => {
                let node = self.world.members[i].node;
                self.world
                    .run
                    .orders
                    .entry(node)
                    .or_default()
                    .extend(points);
                Ok(Vec::new())
            }
            Call::Switch(s) => {
                self.switch(i, s);
                Ok(Vec::new())
            }
            Call::File(f) => {
                let answer = self.file(i, &f);
                if answer.is_ok() && self.holds(i) {
                    return Then::Waits;
                }
                answer
            }
            call => self.network(i, &call),
        };
        if !self.world.members[i].is_alive() {
            return Then::Ended;
        }
        self.reply(i, begun, answer);
        Then::Another
    }

    /// Answers a call on a socket or a pipe. Faults may end the member before or after it.
    fn network(&mut self, i: usize, call: &Call) -> Answered {
        let w = &mut self.world;
        let from = w.members[i].node;
        let to = match call {
            Call::Send { of, .. } => w.wires.receiver(w.members[i].things.get(of)),
            Call::SendTo { to, .. } => {
                let to = w.wires.datagram_receiver(*to);
                let link = to.filter(|to| *to != from).map(|to| (from, to));
                w.run.profile.datagrams.extend(link);
                to
            }
            _ => None,
        };
        if let Some(to) = to {
            self.packet(i, to, call);
        }
        if !self.world.members[i].is_alive() {
            return Ok(Vec::new());
        }
        let w = &mut self.world;
        let answer = w.wires.answer(&mut w.members[i], call);
        if let Some(to) = to {
            self.has_left(i, to);
        }
        answer
    }

    /// A member is about to send something to a node: a fault may have its place here.
    fn packet(&mut self, i: usize, to: Node, call: &Call) {
        let from = self.world.members[i].node;
        if from == to {
            return;
        }
        let connection = match call {
            Call::Send { of, .. } => self.world.members[i].things.get(of).copied(),
            _ => None,
        };
        let wires = &mut self.world.wires;
        let connection = wires.connection(from, to, connection);
        let n = wires.packets.entry((from, to, connection)).or_default();
        *n += 1;
        let here = At::Packet(from, to, connection, *n);
        self.arrive_at(&here);
    }

    /// Whether the processes of a member stop now: it gets its answer when they go on.
    fn holds(&mut self, i: usize) -> bool {
        let m = &mut self.world.members[i];
        let until = self.world.stalled.get(&m.node);
        let holds = m.is_alive() && until.is_some_and(|t| *t > self.world.now);
        if holds {
            m.state = State::Held;
        }
        holds
    }

    /// A packet of a member to a node has left, and the messages that it brings with it.
    fn has_left(&mut self, i: usize, to: Node) {
        let Some(all) = self.world.leaving.remove(&(i, to)) else {
            return;
        };
        for (message, n) in all {
            self.arrive_at(&At::Message(When::After, message, n));
        }
    }

    /// Returns the node of a name. 0: it is unknown.
    fn named(&mut self, name: &str) -> Node {
        match self.world.wires.named(name) {
            Some(node) => {
                self.world.names.insert(name.to_owned(), node);
                node
            }
            // It has gone, or is not known to the name server.
            None => self.world.names.get(name).copied().unwrap_or(0),
        }
    }

    /// A member is about to send something to another node's process, or to hand a message of one
    /// to a process of its own.
    fn note(&mut self, i: usize, n: Note) {
        let (me, who) = (self.world.members[i].node, self.world.members[i].name());
        let other = self.named(&n.other);
        let sends = n.step == NoteStep::Sends;
        let (from, to) = if sends { (me, other) } else { (other, me) };
        let message = Message {
            from,
            to,
            name: n.class.into(),
        };
        if sends && self.pauses(&message) {
            return;
        }
        let w = &mut self.world;
        let way = w.under_way.entry((from, to)).or_default();
        let (number, is_program) = match sends {
            true => {
                w.last_message += 1;
                if way.len() == MOST_UNDER_WAY {
                    way.pop_front();
                }
                way.push_back((n.shape, w.last_message, n.is_program));
                (w.last_message, n.is_program)
            }
            false => {
                let at = way.iter().position(|(shape, ..)| *shape == n.shape);
                let sent = at.and_then(|at| way.remove(at));
                sent.map_or((0, false), |(_, number, own)| (number, own))
            }
        };
        self.tell(Line {
            kind: if sends {
                Kind::Sends(number)
            } else {
                Kind::Gets(number)
            },
            node: who,
            pid: n.pid,
            name: n.name,
            text: n.text,
            place: n.place,
            is_program,
            ..Line::default()
        });
        let (now, turn) = (self.world.now, self.world.run.turns);
        let profile = &mut self.world.run.profile;
        if is_program {
            profile.begins.get_or_insert(now);
        }
        let all = match sends {
            true => &mut profile.sent,
            false => &mut profile.arrived,
        };
        let seen = all.entry(message.clone()).or_default();
        seen.is_program |= is_program;
        seen.turns.push(turn);
        let nth = seen.turns.len() as u64;
        if sends {
            let leaving = self.world.leaving.entry((i, to)).or_default();
            leaving.push((message.clone(), nth));
        }
        let when = if sends { When::Before } else { When::Arrives };
        self.arrive_at(&At::Message(when, message, nth));
    }

    /// Whether a fault begins here by which the process stops that is about to send this message.
    /// It asks again before it sends it.
    fn pauses(&mut self, message: &Message) -> bool {
        let seen = self.world.run.profile.sent.get(message);
        let nth = seen.map_or(0, |s| s.turns.len() as u64) + 1;
        let here = At::Message(When::Before, message.clone(), nth);
        let mut all = self.plan.faults.iter();
        let at = all.position(|f| f.place == here && matches!(f.what, Harm::Pause(..)));
        if let Some(fault) = at {
            self.harm(fault);
        }
        self.world.pause.is_some()
    }

    /// Returns the answer to a note, which has what clocks show if they have stepped, and how long
    /// the process stops and by how much the message is late, if so.
    fn noted(&self, i: usize, pause: Option<u64>, late: Option<u64>) -> Vec<u8> {
        let (node, now) = (self.world.members[i].node, self.world.now);
        let shown = || [self.world.shows(node, now), self.wall(node)];
        match (pause.or(late), self.world.clocks.contains_key(&node)) {
            (None, false) => Vec::new(),
            (None, true) => numbers(&shown()),
            (Some(_), _) => {
                let [now, wall] = shown();
                numbers(&[now, wall, pause.unwrap_or(0), late.unwrap_or(0)])
            }
        }
    }

    /// Says how a node has ended that a member has started.
    fn end_of(&self, i: usize, of: Thing) -> Result<Vec<u8>, Refusal> {
        let Some(Open::End(Some(ended))) = self.world.members[i].things.get(&of) else {
            return Err(Errno::EBADF.into());
        };
        let m = &self.world.members[*ended];
        match (m.status, m.killed) {
            (Some(status), _) => Ok(numbers(&[(status as u64 & 0xFF) << 8])),
            // It was ended as by a signal.
            (None, true) => Ok(numbers(&[9])),
            (None, false) => Err(Errno::EBADF.into()),
        }
    }

    /// A process of a member waits for another one, or has done what one has waited for.
    fn switch(&mut self, i: usize, s: Switch) {
        let line = Line {
            kind: Kind::Switch,
            node: self.world.members[i].name(),
            pid: s.pid,
            name: s.name,
            text: s.text,
            place: s.place,
            ..Line::default()
        };
        let node = self.world.members[i].node;
        self.world.run.waits.extend(s.at.map(|at| (node, at)));
        self.tell(line);
    }

    /// The run has come to a place: the faults happen that begin there.
    fn arrive_at(&mut self, here: &At) {
        let faults = self.plan.faults.iter().enumerate();
        let due = faults.filter(|(_, f)| f.place == *here);
        let due: Vec<usize> = due.map(|(i, _)| i).collect();
        for f in due {
            self.harm(f);
        }
    }

    /// A member does something with a file.
    fn file(&mut self, i: usize, f: &FileCall) -> Result<Vec<u8>, Refusal> {
        let (node, life) = (self.world.members[i].node, self.world.members[i].life);
        if f.step != FileStep::Begins {
            if let Err(path) = self.world.disks.step(node, life, f) {
                let what = format!("n{node}: {path}: a change that no loss of power takes back");
                self.world.run.left.insert(what);
            }
            return Ok(Vec::new());
        }
        let n = self.world.run.profile.files.entry(node).or_default();
        *n += 1;
        let here = At::File(node, *n);
        self.arrive_at(&here);
        if self.world.broken.remove(&node) {
            return Err(Errno::EIO.into());
        }
        match f.n == 1 && self.world.full.contains(&node) {
            true => Err(Errno::ENOSPC.into()),
            false => Ok(Vec::new()),
        }
    }

    /// Returns what wall clocks showed when the world began.
    fn wall_at_start(&self) -> u64 {
        let mut machine = Stream::new(self.plan.seed, 0, 0, Use::Machine);
        BEGINNING + machine.below(1_000_000_000)
    }

    /// Returns what the wall clock of a node showed at the node's time 0, as it goes now.
    fn wall(&self, node: Node) -> u64 {
        match self.world.clocks.get(&node) {
            None => self.wall_at_start(),
            Some(clock) => u64::try_from(clock.zero(self.world.now)).unwrap_or(0),
        }
    }

    /// Has all nodes make copies of themselves, from which other runs can go on.
    fn save(&mut self) -> Result<(), String> {
        if !self.world.can_be_saved() {
            return Ok(());
        }
        // A node alone runs in a folder of the real machine, and says if it writes there.
        let kept = match self.spec.nodes {
            1 => self.world.run.left.is_empty().then(Kept::default),
            n => (self.place.keep(n, self.world.run.turns)).map_err(|e| e.to_string())?,
        };
        let Some(kept) = kept else { return Ok(()) };
        let mut copies = Vec::new();
        for i in 0..self.links.len() {
            let copy = match self.world.members[i].is_alive() {
                true => Some(self.links[i].copy(self.door)?),
                false => None,
            };
            copies.push(copy);
        }
        let world = self.world.clone();
        self.saved.push(Saved {
            world,
            copies,
            kept,
        });
        Ok(())
    }

    fn welcome(&self, i: usize) -> Welcome {
        let m = &self.world.members[i];
        let of = |what| Stream::new(self.plan.seed, m.node, m.life, what).draw();
        Welcome {
            now: self.world.shows(m.node, self.world.now),
            started: self.wall(m.node),
            ids: of(Use::Ids),
            random: of(Use::Crypto),
            process: u64::from(m.node) * 1000 + u64::from(m.life),
            pipes: m.pipes,
            files: self.plan.files,
            libraries: self.spec.libraries.clone(),
        }
    }

    /// A member is about to start a program: returns its word.
    fn prepare(&mut self, i: usize, input: Thing, output: Thing) -> String {
        let things = &mut self.world.members[i].things;
        let word = format!("p{}", self.world.started.len() + 1);
        if let (Some(r), Some(w)) = (things.remove(&input), things.remove(&output)) {
            self.world.started.insert(word.clone(), (r, w));
        }
        word
    }

    /// A member has started a program. Returns the thing that is its end.
    fn started(&mut self, i: usize, word: &str, process: u64) -> Thing {
        let joined = self.door.wait(word, || is_gone(process));
        let by = self.world.members[i].name();
        let pipes = self.world.started.get(word).copied();
        let (Ok(stream), Some((input, output))) = (joined, pipes) else {
            self.world.run.left.insert(format!(
                "{by}: a program that is no emulator of Purlin was started; what it did is lost"
            ));
            for what in pipes.into_iter().flat_map(|(r, w)| [r, w]) {
                self.world.wires.close(what);
            }
            return self.world.members[i].add(Open::End(None));
        };
        let node = self.world.lives.keys().next_back().map_or(1, |n| n + 1);
        self.world.lives.insert(node, 1);
        self.world.wires.add_machine(node);
        let mut m = Member::new(node, 1);
        self.links.push(Link {
            stream: Some(stream),
            child: None,
        });
        m.now = self.world.now;
        m.pipes = Some((m.add(input), m.add(output)));
        self.world.members.push(m);
        let new = self.world.members.len() - 1;
        self.say(&format!("n{node} begins, started by {by}"));
        self.world.members[i].add(Open::End(Some(new)))
    }
}
