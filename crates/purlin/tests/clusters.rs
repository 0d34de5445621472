//! `purlin schedules --nodes` runs the programs of `tests/clusters` in worlds, finds the faults
//! under which the wrong ones fail, repeats them, and finds none in the corrected versions.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

fn purlin() -> PathBuf {
    std::env::var_os("PURLIN").map_or_else(|| env!("CARGO_BIN_EXE_purlin").into(), PathBuf::from)
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clusters")
}

/// A folder for the files of a test, in which its worlds are made, too.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        // Tests run beside each other, and some have the same program.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        // The same length for all processes: programs see the place of their world.
        let name = format!("purlin-{name}-{:010}-{next:03}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    fn file(&self) -> String {
        self.0.join("found.psch").to_string_lossy().into_owned()
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut c = Command::new(purlin());
        c.args(args).current_dir(programs()).env("TMPDIR", &self.0);
        c.output().expect("runs")
    }

    fn schedules(&self, options: &[&str], command: &[&str]) -> Output {
        let file = self.file();
        let mut args = vec!["schedules", "--to", &file];
        args.extend(options);
        args.push("--");
        args.extend(command);
        self.run(&args)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(o: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&o.stdout),
        String::from_utf8_lossy(&o.stderr)
    )
}

/// The number of a run: a hash of all that its nodes asked for, with times and bytes.
fn run_of(text: &str) -> &str {
    let rest = text.split(", run ").nth(1).unwrap_or_default();
    rest.lines().next().unwrap_or_default()
}

/// Each search runs the program twice and refuses to continue if these runs differ.
#[test]
fn the_same_seed_gives_the_same_run() {
    let folder = Folder::new("same");
    let run = |seed: &str| {
        let options = ["--nodes", "2", "--seed", seed, "--seeds", "1"];
        let o = folder.schedules(&options, &["run", "ping.erl"]);
        let t = text(&o);
        assert_eq!(o.status.code(), Some(0), "{t}");
        assert!(t.contains("1 schedule passed"), "{t}");
        assert_eq!(run_of(&t).len(), 16, "{t}");
        t
    };
    let first = run("1");
    for _ in 0..9 {
        assert_eq!(run("1"), first);
    }
    assert_ne!(run_of(&run("2")), run_of(&first));
}

/// A failure is found, shrunk to this many faults, and repeated call by call. Returns what the
/// search said.
fn found_with(program: &str, options: &[&str], line: &str, faults: &str) -> String {
    let folder = Folder::new(program);
    let source = format!("{program}.erl");
    let mut all = vec!["--seed", "1", "--seeds", "2000"];
    all.extend(options);
    let o = folder.schedules(&all, &["run", &source]);
    let found = text(&o);
    assert_eq!(o.status.code(), Some(1), "{found}");
    assert!(found.contains(&format!("fails with {faults}:")), "{found}");
    assert!(found.contains(line), "{found}");
    let file = folder.file();
    for _ in 0..2 {
        let o = folder.run(&["replay", &file]);
        let t = text(&o);
        assert_eq!(o.status.code(), Some(1), "{t}");
        assert!(t.contains("this is the recorded run, call by call"), "{t}");
        assert!(t.contains(line), "{t}");
    }
    found
}

fn found(program: &str, options: &[&str], line: &str) -> String {
    found_with(program, options, line, "1 fault")
}

fn passes(program: &str, options: &[&str], schedules: &str) {
    let folder = Folder::new(program);
    let source = format!("{program}.erl");
    let mut all = vec!["--seed", "1", "--seeds", schedules];
    all.extend(options);
    let o = folder.schedules(&all, &["run", &source]);
    let t = text(&o);
    assert_eq!(o.status.code(), Some(0), "{t}");
    assert!(t.contains(&format!("{schedules} schedules passed")), "{t}");
}

#[test]
fn a_name_that_is_held_twice_after_a_cut_is_found() {
    found(
        "name_twice",
        &["--nodes", "2", "--faults", "reset,cut"],
        "FAIL: holders",
    );
}

#[test]
fn who_solves_the_conflict_passes() {
    passes(
        "name_twice_right",
        &["--nodes", "2", "--faults", "reset,cut"],
        "12",
    );
}

#[test]
fn what_a_killed_node_forgets_is_found() {
    found("forgets", &["--nodes", "2", "--faults", "kill"], "FAIL: ");
}

/// Two faults are needed: the link of two nodes is cut, or its connections are reset, to which a
/// cut may be reduced, and the third one forgets its vote.
#[test]
fn a_vote_that_a_restart_forgets_is_found() {
    let options = ["--nodes", "3", "--faults", "cut,kill"];
    let t = found_with("forgotten_vote", &options, "lead term", "2 faults");
    assert!(t.contains("is cut") || t.contains("are reset"), "{t}");
    assert!(t.contains("is killed, and starts again"), "{t}");
    passes("forgotten_vote_right", &options, "24");
}

/// The place of the fault has the name of the message, and so has the story.
#[test]
fn a_write_that_comes_after_its_lease_is_found() {
    let t = found("late_write", &["--nodes", "3"], "is kept");
    assert!(
        t.contains("{_,_,{write,_,_}} to keeper, by late_write:ask/2"),
        "{t}"
    );
    assert!(t.contains("{keeper,n1@world} ! {"), "{t}");
    passes("late_write_right", &["--nodes", "3"], "24");
}

/// Orders of the processes within a node are searched, too.
#[test]
fn a_race_within_a_node_is_found() {
    let one = "1 switch of processes";
    let t = found_with("lost_add", &["--nodes", "2"], "FAIL: ", one);
    assert!(t.contains(" before ets:insert(numbers, {number,"), "{t}");
    assert!(t.contains("has waited for that"), "{t}");
    passes("lost_add_right", &["--nodes", "2"], "24");
}

/// The file is shown as text and as a page without running anything.
#[test]
fn the_story_is_shown_as_text_and_as_a_page() {
    let folder = Folder::new("page");
    let (file, page) = (folder.file(), folder.0.join("page.html"));
    let page_text = page.to_string_lossy();
    let options = ["--nodes", "3", "--seed", "1", "--html", &page_text];
    let o = folder.schedules(&options, &["run", "late_write.erl"]);
    assert_eq!(o.status.code(), Some(1), "{}", text(&o));
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(
        html.contains("<svg") && html.contains("marker-end"),
        "{html}"
    );
    assert!(html.contains("gets {"), "{html}");
    let o = folder.run(&["schedules", "show", &file]);
    let t = text(&o);
    assert_eq!(o.status.code(), Some(0), "{t}");
    assert!(t.contains("FAIL: ") && t.contains("===="), "{t}");
    std::fs::remove_file(&page).expect("it is there");
    let o = folder.run(&["schedules", "show", &file, "--html", &page_text]);
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
    assert_eq!(std::fs::read_to_string(&page).expect("a page"), html);
}

/// Delays are legal for every program.
#[test]
fn delays_do_no_harm() {
    passes("forgets", &["--nodes", "2"], "4");
}

/// Nodes that a node starts are in the world, with their pipes.
#[test]
fn peers_are_nodes() {
    passes("peers", &["--nodes", "1"], "3");
}

/// A search writes its file into the folder in which the first node runs. That, and what else lies
/// there, makes no difference.
#[test]
fn files_beside_the_program_make_no_difference() {
    let folder = Folder::new("beside");
    let source = programs().join("peers.erl");
    let run = || {
        let mut c = Command::new(purlin());
        c.args([
            "schedules",
            "--nodes",
            "1",
            "--seed",
            "1",
            "--seeds",
            "1",
            "--",
            "run",
        ]);
        c.arg(&source)
            .current_dir(&folder.0)
            .env("TMPDIR", &folder.0);
        let o = c.output().expect("runs");
        assert_eq!(o.status.code(), Some(0), "{}", text(&o));
        run_of(&text(&o)).to_owned()
    };
    let first = run();
    for n in 0..20 {
        std::fs::write(folder.0.join(format!("file{n}")), "").expect("a file");
    }
    assert_eq!((run(), first.len()), (first, 16));
}

/// Everything that leaves the model is reported, and refused by `--strict`.
#[test]
fn what_leaves_the_model_is_reported() {
    let folder = Folder::new("leaves");
    let run = |options: &[&str]| {
        let file = folder.file();
        let mut args = vec!["schedules", "--nodes", "1", "--seed", "1", "--to", &file];
        args.extend(options);
        args.extend(["--", "run", "leaves.erl"]);
        let mut c = Command::new(purlin());
        c.args(args).current_dir(programs());
        c.env("TMPDIR", &folder.0).env("LEAVES", &folder.0);
        c.output().expect("runs")
    };
    let o = run(&[]);
    let t = text(&o);
    assert_eq!(o.status.code(), Some(0), "{t}");
    for line in [
        "n1: a program that is no emulator of Purlin was started",
        "n1: a connection to a host elsewhere",
        "n1: a socket that is none of TCP or UDP",
        "leaves was opened for writing: all nodes and runs share it",
    ] {
        assert!(t.contains(line), "{line}: {t}");
    }
    let o = run(&["--strict"]);
    assert_eq!(o.status.code(), Some(5), "{}", text(&o));
}

/// A link in the place of the folder of a world is neither followed nor removed.
#[test]
fn a_link_in_the_place_of_the_folder_is_refused() {
    let folder = Folder::new("link");
    let (victim, link) = (folder.0.join("victim"), folder.0.join("purlin-cluster-1"));
    std::fs::create_dir(&victim).expect("is made");
    std::os::unix::fs::symlink(&victim, &link).expect("is made");
    let o = folder.schedules(&["--nodes", "1", "--seed", "1"], &["run", "ping.erl"]);
    let t = text(&o);
    assert_ne!(o.status.code(), Some(0), "{t}");
    assert!(t.contains("is not a folder of this user's"), "{t}");
    assert!(link.is_symlink() && victim.is_dir());
}

#[test]
fn what_was_confirmed_before_it_was_synced_is_lost_with_the_power() {
    let options = ["--nodes", "2", "--faults", "power"];
    found("lost_write", &options, "FAIL: confirmed and lost: [");
    passes("lost_write_right", &options, "20");
}

#[test]
fn a_process_that_ends_loses_nothing_that_it_has_written() {
    passes("lost_write", &["--nodes", "2", "--faults", "kill"], "12");
}

#[test]
fn a_clock_that_steps_back_is_found() {
    let options = ["--nodes", "1", "--faults", "clock"];
    found("stepped_lease", &options, "FAIL: a lease of 100 ms took");
    passes("stepped_lease_right", &options, "12");
}

/// Erlang's clocks are slow or fast as those of a bad quartz are, and while they follow a wall
/// clock that has stepped.
#[test]
fn a_clock_with_another_rate_is_found() {
    let options = ["--nodes", "3", "--faults", "clock"];
    found("drifting_lease", &options, "has the lock, and <");
    passes("drifting_lease_right", &options, "24");
    // With another fault in the place of the one that was found.
    let folder = Folder::new("rates");
    let source = programs().join("drifting_lease.erl");
    let with = |fault: &str| {
        let command = format!("argument run\nargument {}\n", source.display());
        let head = "purlin cluster 2\nnodes 3\nseed 1\nhash 0\nverdict none\n";
        let text = format!("{head}{command}fault time 0 {fault}\n");
        std::fs::write(folder.file(), text).expect("a file");
        text_of_replay(&folder)
    };
    let t = with("rate 2 -500");
    assert!(
        t.contains("the clocks of n2 are slow by 500 us a second"),
        "{t}"
    );
    assert!(t.contains("has the lock, and <"), "{t}");
    for passing in [
        "rate 2 500",
        "rate 1 -500",
        "rate 2 -50",
        "step 2 -10000000000",
    ] {
        let t = with(passing);
        assert!(t.contains("one at a time"), "{passing}: {t}");
    }
}

/// Replays a file that was written by hand.
fn text_of_replay(folder: &Folder) -> String {
    let o = folder.run(&["replay", &folder.file()]);
    let t = text(&o);
    assert_eq!(o.status.code(), Some(4), "{t}");
    t
}

#[test]
fn a_write_to_a_full_disk_is_found() {
    let options = ["--nodes", "2", "--faults", "disk"];
    found("full_disk", &options, "FAIL: the counter is empty");
    passes("full_disk_right", &options, "20");
}

#[test]
fn datagrams_that_arrive_twice_are_found() {
    let options = ["--nodes", "2", "--faults", "udp"];
    found("added_twice", &options, "FAIL: ");
    passes("added_twice_right", &options, "20");
}

/// A node that still hears the other one believes that it is heard.
#[test]
fn a_cut_of_one_direction_is_found() {
    let all = ["--nodes", "2", "--faults", "cut"];
    let t = found("one_way", &all, "FAIL: both lead for");
    assert!(t.contains("what n1 sends to n2 is cut off for"), "{t}");
    passes("one_way_right", &all, "40");
}

/// Faults that are asked for at one node, link or direction happen there alone.
#[test]
fn faults_happen_where_they_are_asked_for() {
    passes("one_way", &["--nodes", "2", "--faults", "cut@n2>n1"], "12");
    let one = ["--nodes", "2", "--faults", "cut@n1>n2"];
    let folder = Folder::new("one");
    let o = folder.schedules(
        &[&one[..], &["--seed", "1"]].concat(),
        &["run", "one_way.erl"],
    );
    assert_eq!(o.status.code(), Some(1), "{}", text(&o));
    let file = std::fs::read_to_string(folder.file()).expect("a file");
    let faults: Vec<&str> = file.lines().filter(|l| l.starts_with("fault ")).collect();
    let is_there = |l: &&str| l.contains(" oneway 1 2 ");
    assert!(!faults.is_empty() && faults.iter().all(is_there), "{file}");
}

/// One process stops, and another one of its node goes on.
#[test]
fn a_process_that_is_late_is_found() {
    let all = ["--nodes", "2", "--faults", "delay"];
    let t = found("late_entry", &all, "is known and was changed");
    assert!(t.contains("a process of n2 stops for"), "{t}");
    passes("late_entry_right", &all, "40");
}

/// Messages of two processes may arrive in any order, if that is asked for. Those of one may not.
#[test]
fn a_message_that_is_overtaken_is_found() {
    let any = ["--nodes", "2", "--delivery", "any"];
    let t = found("overtaken_list", &any, "FAIL: [one,two] is not [one]");
    assert!(
        t.contains("other processes' messages overtake one for"),
        "{t}"
    );
    passes("overtaken_list_right", &any, "40");
    passes("overtaken_list", &["--nodes", "2"], "12");
}

/// Options that have no use, and those that are for worlds alone.
#[test]
fn options_that_do_not_fit_are_refused() {
    let folder = Folder::new("options");
    let status = |options: &[&str]| {
        let o = folder.schedules(options, &["run", "ping.erl"]);
        (o.status.code(), text(&o))
    };
    for (options, text) in [
        (&["--nodes", "0"][..], "is no number from 1 to 32"),
        (
            &["--nodes", "2", "--jobs", "2"][..],
            "--jobs has no use with --nodes",
        ),
        (&["--faults", "cut"][..], "--faults is for --nodes"),
        (
            &["--nodes", "2", "--faults", "rain"][..],
            "is no list of faults: delay, reset, cut, kill, power, disk, clock, udp",
        ),
        (
            &["--nodes", "2", "--faults", "kill@n1-n2"][..],
            "'kill@n1-n2' is no list of faults",
        ),
        (
            &["--nodes", "2", "--faults", "cut@n1>n3"][..],
            "--faults: there is no node n3",
        ),
    ] {
        let (code, said) = status(options);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(text), "{said}");
    }
}
