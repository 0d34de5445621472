//! One run of a cluster: who has the turn, what time it is, and where faults happen.
//!
//! The next turn is that of the node whose next event is the earliest. It lasts until the earliest
//! moment at which another node could act, or a millisecond longer, so that nodes that compute take
//! turns. Time passes only from one event to the next: there is no wait.

use super::disks::Disks;
use super::fault::{At, Fault, Harm, MS, Node, Profile, Time};
use super::members::{Door, Member, Open, RunFolder, Spec, State, end, is_gone};
use super::wires::Wires;
use purlin_world::protocol::{
    self, Call, FileCall, FileStep, Question, Reply, Thing, Turn, Welcome, numbers,
};
use purlin_world::streams::{Stream, Use};
use purlin_world::{Errno, Refusal};
use std::collections::{BTreeMap, BTreeSet};

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
    /// A hash of all questions of all nodes, with their times and bytes.
    pub hash: u64,
    pub profile: Profile,
    /// Events and output, in order.
    pub story: Vec<String>,
    /// How the program has left the model.
    pub left: BTreeSet<String>,
    pub turns: u64,
    /// The faults that have happened, by their place in the plan.
    pub happened: BTreeSet<usize>,
}

/// Something that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Heal(Node, Node),
    InTime(Node, Node),
    /// Datagrams arrive once again.
    Reliable(Node, Node),
    /// The disk has room again.
    Room(Node),
    Restart(Node),
    Fault(usize),
}

struct Cluster<'a> {
    spec: &'a Spec,
    plan: &'a Plan,
    place: RunFolder,
    door: Door,
    wires: Wires,
    members: Vec<Member>,
    /// Programs that nodes have started, by their words: the pipes of their input and output.
    started: BTreeMap<String, (Open, Open)>,
    due: BTreeSet<(u64, Due)>,
    now: u64,
    lives: BTreeMap<Node, u32>,
    outputs: BTreeMap<Node, u64>,
    disks: Disks,
    /// Nodes whose disk is full, and those whose next change to files fails.
    full: BTreeSet<Node>,
    broken: BTreeSet<Node>,
    /// Nanoseconds by which wall clocks have stepped.
    steps: BTreeMap<Node, i64>,
    run: Run,
    /// The time by which the program is to have ended.
    ends: u64,
}

/// Runs a cluster once.
pub fn run(spec: &Spec, plan: &Plan) -> Result<Run, String> {
    if spec.nodes == 0 || spec.nodes > MOST_NODES {
        return Err(format!("a cluster has from 1 to {MOST_NODES} nodes"));
    }
    let place = RunFolder::new(plan.seed)?;
    let door = Door::new(&place.folder).map_err(|e| e.to_string())?;
    let mut due = BTreeSet::new();
    for (i, f) in plan.faults.iter().enumerate() {
        if let At::Time(t) = f.place {
            due.insert((t, Due::Fault(i)));
        }
    }
    let mut cluster = Cluster {
        spec,
        plan,
        place,
        door,
        wires: Wires::new(plan.seed),
        members: Vec::new(),
        started: BTreeMap::new(),
        due,
        now: 0,
        lives: BTreeMap::new(),
        outputs: BTreeMap::new(),
        disks: Disks::default(),
        full: BTreeSet::new(),
        broken: BTreeSet::new(),
        steps: BTreeMap::new(),
        run: Run::default(),
        ends: PROGRAM_LIMIT,
    };
    let result = cluster.all();
    cluster.end_all();
    result?;
    cluster.run.profile.packets = std::mem::take(&mut cluster.wires.packets);
    cluster.run.profile.took = cluster.now;
    cluster.run.profile.nodes = cluster.lives.keys().copied().collect();
    let first_mortal = if spec.nodes == 1 { 2 } else { 1 };
    cluster.run.profile.mortal = (cluster.lives.keys().copied())
        .filter(|n| *n >= first_mortal)
        .collect();
    Ok(std::mem::take(&mut cluster.run))
}

impl Cluster<'_> {
    fn all(&mut self) -> Result<(), String> {
        for node in 1..=self.spec.nodes {
            self.wires.add_machine(node);
            self.begin_root(node)?;
        }
        loop {
            if let Some(verdict) = self.verdict() {
                self.run.verdict = verdict;
                return Ok(());
            }
            let Some((at, who)) = self.next() else {
                self.run.verdict = Verdict::Deadlock;
                return Ok(());
            };
            if at > self.ends {
                self.run.verdict = Verdict::DoesNotEnd;
                return Ok(());
            }
            self.pass(at);
            match who {
                Some(i) => self.turn(i)?,
                None => self.happen()?,
            }
        }
    }

    fn say(&mut self, text: &str) {
        self.run
            .story
            .push(format!("{:>10}  {text}", Time(self.now).to_string()));
    }

    /// Starts the command on a node.
    fn begin_root(&mut self, node: Node) -> Result<(), String> {
        let life = self.lives.entry(node).or_default();
        *life += 1;
        let life = *life;
        let (mut child, word) = self.place.start(self.spec, &self.door, node, life)?;
        let mut gone = || child.try_wait().is_ok_and(|s| s.is_some());
        let joined = self.door.wait(&word, &mut gone);
        let mut m = Member::new(node, life);
        m.now = self.now;
        match joined {
            Ok(stream) => {
                m.stream = Some(stream);
                m.child = Some(child);
                self.members.push(m);
            }
            Err(why) => {
                end(&mut child);
                let said = self.output(node).join("\n");
                return Err(format!("n{node}: {why}\n{said}"));
            }
        }
        let name = self.members.last().map(Member::name).unwrap_or_default();
        self.say(&format!("{name} begins"));
        Ok(())
    }

    /// Returns the lines that a node has written since the last call.
    fn output(&mut self, node: Node) -> Vec<String> {
        let at = self.outputs.entry(node).or_default();
        let text = self.place.new_output(node, at);
        text.lines().map(str::to_owned).collect()
    }

    fn tell_output(&mut self, node: Node) {
        for line in self.output(node) {
            self.say(&format!("n{node} | {line}"));
        }
    }

    /// Says how the run has ended, if it has.
    fn verdict(&self) -> Option<Verdict> {
        let mut all_ended = true;
        for node in 1..=self.spec.nodes {
            let last = self.members.iter().rev().find(|m| m.node == node)?;
            let restarts = self.due.iter().any(|(_, d)| *d == Due::Restart(node));
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
        match &m.state {
            State::Ended => None,
            State::Begun | State::Over(_) => Some(m.now),
            State::Idle(next, watched) => match self.ready(m, watched).is_empty() {
                false => Some(m.now),
                true => next.map(|n| n.max(m.now)),
            },
        }
    }

    fn ready(&self, m: &Member, watched: &[(Thing, u32)]) -> Vec<(Thing, u32)> {
        // An error or the end of the other side counts in any case.
        const FAILS: u32 = 8 | 16;
        let ended = |i: usize| !self.members[i].is_alive();
        let of = |(thing, events): &(Thing, u32)| {
            let what = *m.things.get(thing)?;
            let ready = self.wires.ready(what, ended) & (events | FAILS);
            (ready != 0).then_some((*thing, ready))
        };
        watched.iter().filter_map(of).collect()
    }

    /// Returns the time of the next event, and the member whose turn it is. None: the world's.
    fn next(&self) -> Option<(u64, Option<usize>)> {
        let world = self.wires.net.next_time().into_iter();
        let world = world.chain(self.due.first().map(|(t, _)| *t));
        let members = self.members.iter().enumerate();
        let members = members.filter_map(|(i, m)| Some((self.ready_at(m)?, 1, i)));
        let all = world.map(|t| (t, 0, 0)).chain(members);
        let (at, kind, i) = all.min()?;
        Some((at, (kind == 1).then_some(i)))
    }

    /// Returns the time until which a member may go on.
    fn until(&self, me: usize, begun: u64) -> u64 {
        let world = self.wires.net.next_time().into_iter();
        let world = world.chain(self.due.first().map(|(t, _)| *t));
        let others = self.members.iter().enumerate().filter(|(i, _)| *i != me);
        let others = others.filter_map(|(_, m)| self.ready_at(m));
        let next = world.chain(others).min().unwrap_or(u64::MAX);
        next.clamp(begun + TURN, begun + LONGEST_TURN)
    }

    /// Advances the time.
    fn pass(&mut self, to: u64) {
        self.now = self.now.max(to);
        self.wires.advance(self.now);
    }

    /// Runs all events that are due.
    fn happen(&mut self) -> Result<(), String> {
        while let Some((t, what)) = self.due.first().copied() {
            if t > self.now {
                return Ok(());
            }
            self.due.pop_first();
            match what {
                Due::Heal(a, b) => {
                    self.wires.cut(a, b, false);
                    self.say(&format!(
                        "==== the link between n{a} and n{b} is whole again"
                    ));
                }
                Due::InTime(a, b) => {
                    self.wires.set_late(a, b, 0);
                    self.say(&format!("==== n{a} reaches n{b} in time again"));
                }
                Due::Reliable(a, b) => {
                    self.wires.lost.remove(&(a, b));
                    self.wires.twice.remove(&(a, b));
                    self.say(&format!("==== datagrams of n{a} to n{b} arrive once again"));
                }
                Due::Room(node) => {
                    self.full.remove(&node);
                    self.say(&format!("==== the disk of n{node} has room again"));
                }
                Due::Restart(node) => {
                    self.wires.start_machine(node);
                    self.begin_root(node)?;
                }
                Due::Fault(i) => self.harm(i),
            }
        }
        Ok(())
    }

    /// Has a fault happen.
    fn harm(&mut self, i: usize) {
        let Some(fault) = self.plan.faults.get(i).copied() else {
            return;
        };
        if let Harm::Kill(node, _) | Harm::Power(node, _) = fault.what
            && self.begins(node)
        {
            return;
        }
        if !self.run.happened.insert(i) {
            return;
        }
        self.say(&format!("==== {}, {}", fault.describe(), fault.place()));
        let now = self.now;
        let over = match fault.what {
            Harm::Delay(a, b, late) => {
                self.wires.set_late(a, b, late);
                self.due.insert((now + late, Due::InTime(a, b)));
                2 * late
            }
            Harm::Reset(a, b) => {
                self.wires.reset(a, b);
                0
            }
            Harm::Cut(a, b, lasts) => {
                self.wires.cut(a, b, true);
                self.due.insert((now + lasts, Due::Heal(a, b)));
                lasts
            }
            Harm::Alone(a, lasts) => {
                for b in self.wires.others(a) {
                    self.wires.cut(a, b, true);
                    self.due.insert((now + lasts, Due::Heal(a, b)));
                }
                lasts
            }
            Harm::Kill(node, back) => {
                self.kill(node);
                let back = back.filter(|_| node <= self.spec.nodes);
                if let Some(t) = back {
                    self.due.insert((now + t, Due::Restart(node)));
                }
                back.unwrap_or(0)
            }
            Harm::Power(node, back) => {
                self.lose_power(node);
                let back = back.filter(|_| node <= self.spec.nodes);
                if let Some(t) = back {
                    self.due.insert((now + t, Due::Restart(node)));
                }
                back.unwrap_or(0)
            }
            Harm::Full(node, lasts) => {
                self.full.insert(node);
                self.due.insert((now + lasts, Due::Room(node)));
                lasts
            }
            Harm::Broken(node) => {
                self.broken.insert(node);
                0
            }
            Harm::Step(node, by) => {
                *self.steps.entry(node).or_default() += by;
                0
            }
            Harm::Lose(a, b, lasts) => {
                self.wires.lost.insert((a, b));
                self.due.insert((now + lasts, Due::Reliable(a, b)));
                lasts
            }
            Harm::Twice(a, b, lasts) => {
                self.wires.twice.insert((a, b));
                self.due.insert((now + lasts, Due::Reliable(a, b)));
                lasts
            }
        };
        self.ends = self.ends.max(now + over + PROGRAM_LIMIT);
    }

    /// Whether a node was started by another one and has sent nothing yet. What waits for it to
    /// begin would rightly fail without it.
    fn begins(&self, node: Node) -> bool {
        node > self.spec.nodes && !self.wires.packets.keys().any(|(from, _)| *from == node)
    }

    /// The machine of a node loses its power.
    fn lose_power(&mut self, node: Node) {
        let living = |m: &Member| m.node == node && m.is_alive();
        let Some(i) = self.members.iter().position(living) else {
            return;
        };
        self.wires.stop_machine(node);
        self.members[i].killed = true;
        self.ended(i);
        let life = self.members[i].life;
        let mut numbers = Stream::new(self.plan.seed, node, life, Use::Disk);
        if let Err(why) = self.disks.lose_power(node, &mut numbers) {
            self.run.left.insert(format!("n{node}: {why}"));
        }
    }

    fn kill(&mut self, node: Node) {
        let living = |m: &Member| m.node == node && m.is_alive();
        let Some(i) = self.members.iter().position(living) else {
            return;
        };
        self.members[i].killed = true;
        self.ended(i);
    }

    /// A member has ended: its machine closes what it had open.
    fn ended(&mut self, i: usize) {
        let m = &mut self.members[i];
        m.state = State::Ended;
        // A node ends when its connection does.
        m.stream = None;
        let things = std::mem::take(&mut m.things);
        if let Some(child) = &mut m.child {
            if m.killed {
                let _ = child.kill();
            }
            let _ = child.wait();
        }
        let node = m.node;
        for what in things.into_values() {
            self.wires.close(what);
        }
        self.disks.ended(node);
        self.tell_output(node);
    }

    fn end_all(&mut self) {
        for m in &mut self.members {
            m.stream = None;
            if let Some(child) = &mut m.child {
                end(child);
            }
        }
    }

    fn reply(&mut self, i: usize, begun: u64, answer: Result<Vec<u8>, Refusal>) {
        let answer = match answer {
            Ok(bytes) => Ok(bytes),
            Err(Refusal::Errno(e)) => Err(e.0),
            Err(Refusal::NotModelled(what)) => {
                let name = self.members[i].name();
                self.run.left.insert(format!("{name}: {what}"));
                Err(Errno::EOPNOTSUPP.0)
            }
        };
        let until = self.until(i, begun);
        let bytes = Reply { until, answer }.to_bytes();
        if let Some(stream) = &mut self.members[i].stream {
            // If it has ended, the next question does not come.
            let _ = protocol::send(stream, &bytes);
        }
    }

    fn hash(&mut self, i: usize, q: &Question) {
        // Numbers of real processes are none of the run.
        if matches!(q.call, Call::Hello { .. } | Call::Started { .. }) {
            return;
        }
        let mut h = self.run.hash ^ (i as u64 + 1);
        for b in q.to_bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        self.run.hash = h.rotate_left(23).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// Gives a member the turn, and answers it until it gives it back.
    fn turn(&mut self, i: usize) -> Result<(), String> {
        self.run.turns += 1;
        let begun = self.now;
        let state = std::mem::replace(&mut self.members[i].state, State::Begun);
        let first = match &state {
            State::Begun => self.welcome(i).to_bytes(),
            State::Idle(_, watched) | State::Over(watched) => Turn {
                now: begun,
                started: self.wall(self.members[i].node),
                ready: self.ready(&self.members[i], watched),
            }
            .to_bytes(),
            State::Ended => return Ok(()),
        };
        self.reply(i, begun, Ok(first));
        let node = self.members[i].node;
        loop {
            let Some(q) = self.members[i].question() else {
                // It has died, or a fault has ended it.
                if self.members[i].is_alive() {
                    self.ended(i);
                    let name = self.members[i].name();
                    self.say(&format!("{name} has died"));
                }
                return Ok(());
            };
            self.hash(i, &q);
            self.pass(q.now);
            self.members[i].now = q.now;
            match q.call {
                Call::Idle { next, watched } => {
                    self.members[i].state = State::Idle(next, watched);
                    break;
                }
                Call::Over { watched } => {
                    self.members[i].state = State::Over(watched);
                    break;
                }
                Call::Ended { status, .. } => {
                    self.members[i].status = Some(status as i32);
                    self.reply(i, begun, Ok(Vec::new()));
                    self.ended(i);
                    let name = self.members[i].name();
                    self.say(&format!("{name} ends with status {status}"));
                    return Ok(());
                }
                Call::Left { how } => {
                    let name = self.members[i].name();
                    self.run.left.insert(format!("{name}: {how}"));
                    self.reply(i, begun, Ok(Vec::new()));
                }
                Call::Start { input, output } => {
                    let word = self.prepare(i, input, output);
                    self.reply(i, begun, Ok(word.into_bytes()));
                }
                Call::Started { word, process } => {
                    let end = self.started(i, &word, process);
                    self.reply(i, begun, Ok(numbers(&[end])));
                }
                Call::Ready { of } => {
                    let m = &self.members[i];
                    let ended = |i: usize| !self.members[i].is_alive();
                    let ready = m.things.get(&of).map_or(0, |w| self.wires.ready(*w, ended));
                    self.reply(i, begun, Ok(numbers(&[ready.into()])));
                }
                Call::File(f) => {
                    let answer = self.file(i, &f);
                    if !self.members[i].is_alive() {
                        return Ok(());
                    }
                    self.reply(i, begun, answer);
                }
                call => {
                    let to = match &call {
                        Call::Send { of, .. } => {
                            self.wires.receiver(self.members[i].things.get(of))
                        }
                        Call::SendTo { to, .. } => {
                            let to = self.wires.datagram_receiver(*to);
                            let from = self.members[i].node;
                            let link = to.filter(|to| *to != from).map(|to| (from, to));
                            self.run.profile.datagrams.extend(link);
                            to
                        }
                        _ => None,
                    };
                    if let Some(to) = to {
                        self.packet(i, to);
                        if !self.members[i].is_alive() {
                            return Ok(());
                        }
                    }
                    let answer = self.wires.answer(&mut self.members[i], &call);
                    self.reply(i, begun, answer);
                }
            }
        }
        self.tell_output(node);
        Ok(())
    }

    /// A member is about to send something to a node: a fault may have its place here.
    fn packet(&mut self, i: usize, to: Node) {
        let from = self.members[i].node;
        if from == to {
            return;
        }
        let n = self.wires.packets.entry((from, to)).or_default();
        *n += 1;
        let here = At::Packet(from, to, *n);
        self.arrive_at(here);
    }

    /// The run has come to a place: the faults happen that begin there.
    fn arrive_at(&mut self, here: At) {
        let faults = self.plan.faults.iter().enumerate();
        let due = faults.filter(|(_, f)| f.place == here);
        let due: Vec<usize> = due.map(|(i, _)| i).collect();
        for f in due {
            self.harm(f);
        }
    }

    /// A member does something with a file.
    fn file(&mut self, i: usize, f: &FileCall) -> Result<Vec<u8>, Refusal> {
        let (node, life) = (self.members[i].node, self.members[i].life);
        if f.step != FileStep::Begins {
            if let Err(path) = self.disks.step(node, life, f) {
                let what = format!("n{node}: {path}: a change that no loss of power takes back");
                self.run.left.insert(what);
            }
            return Ok(Vec::new());
        }
        let n = self.run.profile.files.entry(node).or_default();
        *n += 1;
        let here = At::File(node, *n);
        self.arrive_at(here);
        if self.broken.remove(&node) {
            return Err(Errno::EIO.into());
        }
        match f.n == 1 && self.full.contains(&node) {
            true => Err(Errno::ENOSPC.into()),
            false => Ok(Vec::new()),
        }
    }

    /// Returns what the wall clock of a node showed when the world began, as it has it now.
    fn wall(&self, node: Node) -> u64 {
        let mut machine = Stream::new(self.plan.seed, 0, 0, Use::Machine);
        let started = BEGINNING + machine.below(1_000_000_000);
        started.saturating_add_signed(self.steps.get(&node).copied().unwrap_or(0))
    }

    fn welcome(&self, i: usize) -> Welcome {
        let m = &self.members[i];
        let of = |what| Stream::new(self.plan.seed, m.node, m.life, what).draw();
        Welcome {
            now: self.now,
            started: self.wall(m.node),
            ids: of(Use::Ids),
            random: of(Use::Crypto),
            process: u64::from(m.node) * 1000 + u64::from(m.life),
            pipes: m.pipes,
            files: self.plan.files,
        }
    }

    /// A member is about to start a program: returns its word.
    fn prepare(&mut self, i: usize, input: Thing, output: Thing) -> String {
        let things = &mut self.members[i].things;
        let word = format!("p{}", self.started.len() + 1);
        if let (Some(r), Some(w)) = (things.remove(&input), things.remove(&output)) {
            self.started.insert(word.clone(), (r, w));
        }
        word
    }

    /// A member has started a program. Returns the thing that is its end.
    fn started(&mut self, i: usize, word: &str, process: u64) -> Thing {
        let joined = self.door.wait(word, || is_gone(process));
        let by = self.members[i].name();
        let pipes = self.started.get(word).copied();
        let (Ok(stream), Some((input, output))) = (joined, pipes) else {
            self.run.left.insert(format!(
                "{by}: a program that is no emulator of Purlin was started; what it did is lost"
            ));
            for what in pipes.into_iter().flat_map(|(r, w)| [r, w]) {
                self.wires.close(what);
            }
            return self.members[i].add(Open::End(None));
        };
        let node = self.lives.keys().next_back().map_or(1, |n| n + 1);
        self.lives.insert(node, 1);
        self.wires.add_machine(node);
        let mut m = Member::new(node, 1);
        m.stream = Some(stream);
        m.now = self.now;
        m.pipes = Some((m.add(input), m.add(output)));
        self.members.push(m);
        let new = self.members.len() - 1;
        self.say(&format!("n{node} begins, started by {by}"));
        self.members[i].add(Open::End(Some(new)))
    }
}
