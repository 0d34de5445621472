//! The search for faults of a cluster under which its program fails, and the replay of one.

use super::coordinator::{Plan, Run, Verdict};
use super::fault::{Fault, Harm, Profile, Wanted};
use super::guide::Guide;
use super::lab::{Lab, run};
use super::members::Spec;
use super::run_file::Recorded;
use super::story::{self, Kind, Line};
use crate::operation::Point;
use crate::report::write_private;
use purlin_world::streams::{Stream, Use};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Maximum number of runs that reduce a failing one, and their time.
const SHRINKS: usize = 400;
const SHRINK_TIME: Duration = Duration::from_secs(60);

/// A search.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub spec: Spec,
    pub seed: u64,
    /// Maximum number of schedules.
    pub schedules: usize,
    /// Maximum time.
    pub time: Option<Duration>,
    pub wanted: Vec<Wanted>,
    /// Whether what leaves the model is a failure.
    pub strict: bool,
    /// The replay file.
    pub to: PathBuf,
    pub command: Vec<String>,
    pub made_by: String,
}

/// The end of a search: its exit status and what is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub status: u8,
    pub text: String,
}

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Lists how a program has left the model.
fn left(all: &BTreeSet<String>) -> String {
    let mut text = String::new();
    for l in all {
        text.push_str(&format!("not modelled: {l}\n"));
    }
    text
}

fn found(status: u8, text: String) -> Found {
    Found { status, text }
}

impl Request {
    fn plan(&self, faults: &[Fault]) -> Plan {
        Plan {
            seed: self.seed,
            faults: faults.to_vec(),
            files: self.reports_files(),
        }
    }

    /// Whether nodes report what they do with files.
    fn reports_files(&self) -> bool {
        self.wanted.iter().any(|w| w.class.is_of_files())
    }

    fn recorded(&self, faults: Vec<Fault>, r: &Run) -> Recorded {
        Recorded {
            made_by: self.made_by.clone(),
            command: self.command.clone(),
            nodes: self.spec.nodes,
            verdict: r.verdict.describe(!faults.is_empty()),
            plan: self.plan(&faults),
            hash: r.hash,
            story: r.story.clone(),
        }
    }

    fn write(&self, faults: Vec<Fault>, r: &Run) -> Result<String, String> {
        let text = self.recorded(faults, r).text();
        let to = self.to.display();
        write_private(&self.to, text.as_bytes()).map_err(|e| format!("{to}: {e}"))?;
        Ok(format!("replay it by: purlin replay {to}\n"))
    }
}

/// Tells a failure from others: how the run has ended, and the first words of what a node has
/// written last that ended with a status of its own. Which node that is makes no difference: what
/// is wrong may be seen by any.
fn failure(r: &Run) -> (Verdict, String) {
    let Verdict::Status(who, status) = &r.verdict else {
        return (r.verdict.clone(), String::new());
    };
    let node = who.split('.').next().unwrap_or_default();
    let mut lines = r.story.iter().rev();
    let last = lines.find(|l| l.kind == Kind::Output && l.node == node && !l.text.is_empty());
    let text = last.map_or("", |l| l.text.as_str());
    let words = text.split(|c: char| !c.is_alphabetic());
    let words: Vec<&str> = words.filter(|w| !w.is_empty()).take(3).collect();
    (Verdict::Status(String::new(), *status), words.join(" "))
}

/// Returns the switches of processes that repeat an order: each operation that followed one of
/// another process waits for that.
fn switches(order: &Fault, run: &Run) -> Vec<Fault> {
    let Harm::Order(node, ..) = order.what else {
        return Vec::new();
    };
    let all = run.orders.get(&node).map_or(&[][..], Vec::as_slice);
    let turns = all.windows(2).filter(|w| w[0].0 != w[1].0);
    let switch = |w: &[Point]| Fault {
        place: order.place.clone(),
        what: Harm::Switch(node, w[1], w[0]),
    };
    turns.map(switch).collect()
}

fn is_switch(f: &Fault) -> bool {
    matches!(f.what, Harm::Switch(..))
}

/// Reduces orders of processes that were drawn to the switches of processes that matter, if the
/// switches of the run repeat its failure. `fails` makes a run, and returns it if it fails so.
fn to_switches(
    faults: Vec<Fault>,
    failing: Run,
    fails: &mut dyn FnMut(&[Fault]) -> Result<Option<Run>, String>,
) -> Result<(Vec<Fault>, Run), String> {
    let is_order = |f: &Fault| matches!(f.what, Harm::Order(..));
    let (orders, others): (Vec<Fault>, Vec<Fault>) = faults.iter().cloned().partition(is_order);
    let mut kept: Vec<Fault> = orders.iter().flat_map(|f| switches(f, &failing)).collect();
    if kept.is_empty() {
        return Ok((faults, failing));
    }
    let with = |kept: &[Fault]| [kept, &others].concat();
    let Some(mut best) = fails(&with(&kept))? else {
        return Ok((faults, failing));
    };
    // Most processes did not have to wait.
    let is_taken =
        |f: &Fault| matches!(f.what, Harm::Switch(n, at, _) if best.waits.contains(&(n, at)));
    let taken: Vec<Fault> = kept.iter().filter(|f| is_taken(f)).cloned().collect();
    if taken.len() < kept.len()
        && let Some(r) = fails(&with(&taken))?
    {
        (kept, best) = (taken, r);
    }
    let mut chunk = kept.len().div_ceil(2);
    while chunk > 0 && !kept.is_empty() {
        let mut at = 0;
        while at < kept.len() {
            let mut fewer = kept.clone();
            fewer.drain(at..(at + chunk).min(kept.len()));
            match fails(&with(&fewer))? {
                Some(r) => (kept, best) = (fewer, r),
                None => at += chunk,
            }
        }
        chunk /= 2;
    }
    Ok((with(&kept), best))
}

/// Lists faults, and the switches of processes that a story has.
pub fn listed(faults: &[Fault], story: &[Line]) -> String {
    let mut text = String::new();
    for f in faults.iter().filter(|f| !is_switch(f)) {
        text.push_str(&format!("  {}, {}\n", f.describe(), f.place()));
    }
    let is_wait = |l: &&Line| l.kind == Kind::Switch && l.text.starts_with("waits ");
    for l in story.iter().filter(is_wait) {
        text.push_str(&format!(
            "  on {} {} {}, {}\n",
            l.node, l.pid, l.text, l.place
        ));
    }
    text
}

/// Says how many there are of both.
fn counted(faults: &[Fault]) -> String {
    let switches = faults.iter().filter(|f| is_switch(f)).count();
    let others = faults.len() - switches;
    let switched = match switches {
        1 => "1 switch of processes".to_owned(),
        n => format!("{n} switches of processes"),
    };
    match (others, switches) {
        (_, 0) => plural(others, "fault"),
        (0, _) => switched,
        _ => format!("{} and {switched}", plural(others, "fault")),
    }
}

/// Reduces the faults of a failing run: fewer, then smaller ones, as long as it ends in the same
/// way. `run` makes a run with given faults. Returns faults, and the run that was made with them.
fn shrink(
    faults: Vec<Fault>,
    failing: Run,
    run: &mut dyn FnMut(&[Fault]) -> Result<Run, String>,
) -> Result<(Vec<Fault>, Run), String> {
    let until = Instant::now() + SHRINK_TIME;
    let mut tries = 0;
    let of = failure(&failing);
    let mut fails = |all: &[Fault]| -> Result<Option<Run>, String> {
        tries += 1;
        if tries > SHRINKS || Instant::now() > until {
            return Ok(None);
        }
        let r = run(all)?;
        Ok((failure(&r) == of).then_some(r))
    };
    let (mut faults, mut failing) = (faults, failing);
    // Faults whose place did not come are none, but may have had an effect after all: the time that
    // the program has begins after the last one.
    let happened: Vec<Fault> = (0..faults.len())
        .filter(|i| failing.happened.contains(i))
        .map(|i| faults[i].clone())
        .collect();
    if happened.len() < faults.len()
        && let Some(r) = fails(&happened)?
    {
        (faults, failing) = (happened, r);
    }
    let mut i = 0;
    while faults.len() > 1 && i < faults.len() {
        let mut fewer = faults.clone();
        fewer.remove(i);
        match fails(&fewer)? {
            Some(r) => (faults, failing) = (fewer, r),
            None => i += 1,
        }
    }
    (faults, failing) = to_switches(faults, failing, &mut fails)?;
    for i in 0..faults.len() {
        let all = faults[i].smaller();
        for smaller in all {
            let mut all = faults.clone();
            all[i] = smaller;
            if let Some(r) = fails(&all)? {
                (faults, failing) = (all, r);
                break;
            }
        }
    }
    Ok((faults, failing))
}

/// Maximum number of places at which a run is saved.
const MOST_SAVED: usize = 6;

/// Returns the turns after which a run is saved: each before the program comes to a message of a
/// kind that it has not come to before, and before some such messages of libraries.
fn cuts(base: &Profile) -> Vec<u64> {
    let of = |is_program: bool, most: usize| {
        let all = base.sent.values().filter(|s| s.is_program == is_program);
        let firsts = all.filter_map(|s| s.turns.first()).map(|t| t - 1);
        let all: BTreeSet<u64> = firsts.filter(|t| *t > 0).collect();
        let step = all.len().div_ceil(most).max(1);
        all.into_iter().step_by(step)
    };
    let all: BTreeSet<u64> = of(true, MOST_SAVED)
        .chain(of(false, MOST_SAVED / 2))
        .collect();
    all.into_iter().collect()
}

/// Searches.
pub fn search(q: &Request) -> Result<Found, String> {
    let begun = Instant::now();
    let mut lab = Lab::new(&q.spec, q.seed)?;
    let base = lab.run(&q.plan(&[]))?;
    let again = lab.run_and_save(&q.plan(&[]), &cuts(&base.profile))?;
    let mut text = left(&base.left);
    if base.hash != again.hash || base.verdict != again.verdict {
        text.push_str(
            "schedules: two runs with the same seed differ: the program depends on something that \
             the world does not decide. Nothing was searched.\n",
        );
        return Ok(found(5, text));
    }
    if q.strict && !base.left.is_empty() {
        text.push_str("schedules: the program leaves the model, and --strict refuses that\n");
        return Ok(found(5, text));
    }
    let took = base.profile.took as f64 / 1e9;
    if base.verdict != Verdict::Passes {
        text.push_str(&story::rendered(&base.story));
        text.push_str(&format!(
            "\nfails without any fault: {}\n",
            base.verdict.describe(false)
        ));
        text.push_str(&q.write(Vec::new(), &base)?);
        return Ok(found(1, text));
    }
    let packets: u64 = base.profile.packets.values().sum();
    text.push_str(&format!(
        "without faults: passes after {took:.3} s of the world's time; {}, {} between nodes, run \
         {:016x}\n",
        plural(base.turns as usize, "turn"),
        plural(packets as usize, "packet"),
        base.hash
    ));
    let mut differs = BTreeSet::new();
    let mut guide = Guide::new(&q.wanted, &base.profile);
    for n in 1..=q.schedules {
        if q.time.is_some_and(|t| begun.elapsed() > t) {
            text.push_str(&format!(
                "{} passed; the time is over\n",
                plural(n - 1, "schedule")
            ));
            return Ok(found(0, text));
        }
        let mut numbers = Stream::new(q.seed, 0, n as u32, Use::Faults);
        let faults = guide.next(&base.profile, n, &mut numbers);
        if faults.is_empty() {
            text.push_str("the nodes send each other nothing: there is no place for a fault\n");
            return Ok(found(0, text));
        }
        let r = lab.branch(&q.plan(&faults))?;
        differs.extend(r.left.difference(&base.left).cloned());
        if r.verdict == Verdict::Passes {
            guide.learn(&faults, &r.profile);
            continue;
        }
        let (faults, r) = shrink(faults, r, &mut |all| lab.branch(&q.plan(all)))?;
        // The file is for runs from the start.
        let whole = lab.run(&q.plan(&faults))?;
        if whole.verdict != r.verdict {
            lab.forget();
            continue;
        }
        text.push_str(&left(&differs));
        text.push_str(&format!(
            "\nschedule {n} fails with {}:\n",
            counted(&faults)
        ));
        text.push_str(&listed(&faults, &whole.story));
        text.push('\n');
        text.push_str(&story::rendered(&whole.story));
        text.push_str(&format!("\n{}\n", whole.verdict.describe(true)));
        text.push_str(&q.write(faults, &whole)?);
        return Ok(found(1, text));
    }
    text.push_str(&left(&differs));
    text.push_str(&format!("{} passed\n", plural(q.schedules, "schedule")));
    Ok(found(0, text))
}

/// Repeats a recorded run. Status 4: it went another way.
pub fn replay(r: &Recorded, spec: &Spec) -> Result<Found, String> {
    let again = run(spec, &r.plan)?;
    let verdict = again.verdict.describe(!r.plan.faults.is_empty());
    let mut text = left(&again.left);
    text.push_str(&story::rendered(&again.story));
    text.push_str(&format!("\n{verdict}\n"));
    if again.hash == r.hash && verdict == r.verdict {
        text.push_str("this is the recorded run, call by call\n");
        return Ok(found(1, text));
    }
    let first = again.story.iter().zip(&r.story).find(|(a, b)| a != b);
    text.push_str("the replay went another way than the recorded run");
    if let Some((got, recorded)) = first {
        let (recorded, got) = (recorded.text(), got.text());
        text.push_str(&format!("\nrecorded: {recorded}\nnow:      {got}"));
    }
    text.push('\n');
    Ok(found(4, text))
}

#[cfg(test)]
mod tests {
    use super::super::fault::{At, MS};
    use super::*;
    use crate::deviation::Sampling;

    fn fault(n: u64) -> Fault {
        Fault {
            place: At::Packet(1, 2, 1, n),
            what: Harm::Delay(1, 2, 1000 * MS),
        }
    }

    /// A run of a program that fails if `fails` holds. Its hash is that of the faults.
    fn made(all: &[Fault], happened: &[usize], fails: bool) -> Run {
        Run {
            verdict: match fails {
                true => Verdict::Deadlock,
                false => Verdict::Passes,
            },
            hash: all
                .iter()
                .fold(7, |n, f| n.wrapping_mul(31) + f.text().len() as u64),
            happened: happened.iter().copied().collect(),
            ..Run::default()
        }
    }

    #[test]
    fn one_of_three_faults_is_kept_and_shortened() {
        let all = vec![fault(1), fault(2), fault(3)];
        let first = made(&all, &[0, 1, 2], true);
        let mut runs = 0;
        let (faults, run) = shrink(all, first, &mut |all| {
            runs += 1;
            let needed = all.iter().any(|f| f.place == At::Packet(1, 2, 1, 2));
            Ok(made(all, &[0], needed))
        })
        .expect("runs");
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].place, At::Packet(1, 2, 1, 2));
        let Harm::Delay(_, _, time) = faults[0].what else {
            panic!("{faults:?}")
        };
        assert!(time < 1000 * MS && runs < SHRINKS, "{time} {runs}");
        assert_eq!(run, made(&faults, &[0], true));
    }

    /// A fault whose place did not come, without which the program passes all the same.
    #[test]
    fn a_fault_that_did_not_happen_stays_if_it_matters() {
        let all = vec![fault(1), fault(2)];
        let first = made(&all, &[0], true);
        let (faults, run) = shrink(all.clone(), first, &mut |some| {
            Ok(made(some, &[0], some.len() == 2))
        })
        .expect("runs");
        assert_eq!(faults.len(), 2);
        assert_eq!(run, made(&faults, &[0], true));
    }

    /// The one switch of an order is kept that matters.
    #[test]
    fn an_order_is_reduced_to_switches() {
        let of = |what| Fault {
            place: At::Time(5 * MS),
            what,
        };
        let all = vec![fault(1), of(Harm::Order(2, Sampling::Walk, 7))];
        let mut first = made(&all, &[0, 1], true);
        let points: Vec<Point> = (1..40).map(|i| (u64::from(i % 3), i)).collect();
        first.orders.insert(2, points.clone());
        let needed = of(Harm::Switch(2, points[20], points[19]));
        let needed_at = points[20].1;
        let mut runs = 0;
        let (faults, run) = shrink(all, first, &mut |some| {
            runs += 1;
            let order = some.iter().any(|f| matches!(f.what, Harm::Order(..)));
            let mut r = made(some, &[0, 1], order || some.contains(&needed));
            r.orders.insert(2, points.clone());
            let waits = some.iter().filter_map(|f| match f.what {
                Harm::Switch(n, at, _) if at.1 % 2 == needed_at % 2 => Some((n, at)),
                _ => None,
            });
            r.waits.extend(waits);
            Ok(r)
        })
        .expect("runs");
        assert_eq!(faults, [needed]);
        assert!(run.verdict == Verdict::Deadlock && runs < 40, "{runs}");
        assert_eq!(counted(&faults), "1 switch of processes");
    }

    #[test]
    fn a_failure_is_the_same_on_every_node() {
        let of = |node: &str, status, text: &str| Run {
            verdict: Verdict::Status(format!("{node}.2"), status),
            story: vec![
                Line {
                    kind: Kind::Output,
                    node: node.into(),
                    text: text.into(),
                    ..Line::default()
                },
                Line::default(),
            ],
            ..Run::default()
        };
        let first = failure(&of("n1", 1, "FAIL: lost [7,8] of n2"));
        assert_eq!(failure(&of("n3", 1, "FAIL: lost [] of n1")), first);
        assert_ne!(failure(&of("n1", 2, "FAIL: lost [7,8] of n2")), first);
        assert_ne!(failure(&of("n1", 1, "escript: exception error")), first);
        assert_eq!(failure(&made(&[], &[], true)).0, Verdict::Deadlock);
    }

    #[test]
    fn another_failure_is_not_the_same() {
        let all = vec![fault(1), fault(2)];
        let first = made(&all, &[0, 1], true);
        let (faults, run) = shrink(all.clone(), first.clone(), &mut |some| {
            let mut r = made(some, &[0], true);
            r.verdict = Verdict::DoesNotEnd;
            Ok(r)
        })
        .expect("runs");
        assert_eq!((faults, run), (all, first));
    }
}
