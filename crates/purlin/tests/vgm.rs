//! `examples/vgm`: every stage of every log equals its sum, files equal the golden ones for any
//! number of jobs, and damaged songs are reported in one line while the others continue. `PURLIN`
//! names another executable; `VGM_MUSIC=1` adds the eight songs.
//!
//! Skipped with a message if there is no Elixir.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Scratch(PathBuf);

fn example(file: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/vgm");
    fs::canonicalize(dir).expect("is there").join(file)
}

fn purlin() -> PathBuf {
    let own = || PathBuf::from(env!("CARGO_BIN_EXE_purlin"));
    std::env::var_os("PURLIN").map_or_else(own, PathBuf::from)
}

impl Scratch {
    fn new(name: &str) -> Option<Scratch> {
        let path = std::env::var_os("PATH")?;
        if !std::env::split_paths(&path).any(|dir| dir.join("elixir").is_file()) {
            println!("skipped: no Elixir on PATH");
            return None;
        }
        let dir = std::env::temp_dir().join(format!("purlin-vgm-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("makes a scratch directory");
        Some(Scratch(dir))
    }
    fn run(&self, mut command: Command, args: &[&str]) -> Output {
        command.arg(example("render.exs")).args(args);
        // Modules are compiled once for all tests of a run.
        let cache = std::env::temp_dir().join(format!("purlin-vgm-cache-{}", std::process::id()));
        command.env("XDG_CACHE_HOME", cache);
        command.current_dir(&self.0).stdin(Stdio::null());
        command.output().expect("runs")
    }
    fn render(&self, args: &[&str]) -> Output {
        let mut command = Command::new(purlin());
        command.arg("run");
        self.run(command, args)
    }
    fn stock(&self, args: &[&str]) -> Output {
        self.run(Command::new("elixir"), args)
    }
    fn read(&self, file: &str) -> Vec<u8> {
        fs::read(self.0.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }
    fn names(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(dir)).expect("is a directory");
        let mut names: Vec<String> = entries
            .map(|e| {
                e.expect("is an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn data(file: &str) -> String {
    example("data")
        .join(file)
        .to_str()
        .expect("is text")
        .to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The logs whose names begin with one of these prefixes.
fn logs(prefixes: &[&str]) -> Vec<String> {
    let entries = fs::read_dir(example("data/vgm")).expect("is a directory");
    let mut names: Vec<String> = entries
        .map(|e| {
            e.expect("is an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|n| prefixes.iter().any(|p| n.starts_with(p)))
        .map(|n| data(&format!("vgm/{n}")))
        .collect();
    names.sort();
    names
}

fn all_agree(output: &Output, songs: usize) {
    let out = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let agree = out.lines().filter(|l| l.ends_with(" stages agree"));
    assert_eq!(agree.count(), songs, "{out}");
}

#[test]
fn every_stage_of_every_log_equals_its_sum() {
    let Some(scratch) = Scratch::new("stages") else {
        return;
    };
    let sums = data("sums");
    let mut prefixes = vec!["opm_", "opnb_", "fmt_"];
    if std::env::var_os("VGM_MUSIC").is_some() {
        prefixes.push("mus_");
    }
    // The sums of these two come from two playbacks.
    let (twice, once): (Vec<String>, Vec<String>) = logs(&prefixes)
        .into_iter()
        .partition(|n| n.contains("fmt_loop"));
    assert_eq!((once.len() % 8, twice.len()), (36 % 8, 2));
    for (loops, songs) in [("1", &once), ("2", &twice)] {
        let mut args = vec!["--check", &sums, "--loops", loops];
        args.extend(songs.iter().map(String::as_str));
        all_agree(&scratch.render(&args), songs.len());
    }
    // Sums of another log never agree.
    let wrong = scratch.0.join("wrong");
    fs::create_dir_all(&wrong).expect("makes a directory");
    fs::copy(data("sums/fmt_v172.tsv"), wrong.join("fmt_vgz.tsv")).expect("copies");
    let output = scratch.render(&["--check", "wrong", &data("vgm/fmt_vgz.vgz")]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stdout).contains("fmt_vgz mix44.s16: "),
        "{output:?}"
    );
}

#[test]
fn files_are_the_same_on_both_runtimes_and_for_any_number_of_jobs() {
    let Some(scratch) = Scratch::new("files") else {
        return;
    };
    let song = data("vgm/fmt_loop.vgm");
    for format in ["wav", "au"] {
        let golden = fs::read(data(&format!("golden/fmt_loop.{format}"))).expect("is there");
        for (dir, stock) in [("purlin", false), ("stock", true)] {
            let args = ["--quiet", "--format", format, "--out", dir, &song];
            let output = if stock {
                scratch.stock(&args)
            } else {
                scratch.render(&args)
            };
            assert!(output.status.success(), "{output:?}");
            assert!(output.stderr.is_empty(), "{output:?}");
            assert!(
                text(&output.stdout).contains("Samples per second: "),
                "{output:?}"
            );
            assert!(scratch.read(&format!("{dir}/fmt_loop.{format}")) == golden);
        }
    }
    let songs = logs(&["fmt_", "opnb_fuzz"]);
    for jobs in ["1", "3", "40"] {
        let mut args = vec!["--quiet", "--jobs", jobs, "--out", jobs];
        args.extend(songs.iter().map(String::as_str));
        let output = scratch.render(&args);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(scratch.names(jobs).len(), songs.len());
        for name in scratch.names(jobs) {
            let [one, other] = ["1", jobs].map(|j| scratch.read(&format!("{j}/{name}")));
            assert!(one == other, "{name}");
        }
    }
}

#[test]
fn a_picture_is_a_png_and_the_same_on_both_runtimes() {
    let Some(scratch) = Scratch::new("picture") else {
        return;
    };
    let song = data("vgm/fmt_loop.vgm");
    let args = ["--quiet", "--picture", "--format", "au", "--out"];
    let output = scratch.render(&[&args[..], &["purlin", &song]].concat());
    assert!(output.status.success(), "{output:?}");
    let output = scratch.stock(&[&args[..], &["stock", &song]].concat());
    assert!(output.status.success(), "{output:?}");
    let png = scratch.read("purlin/fmt_loop.png");
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"));
    assert!(png == scratch.read("stock/fmt_loop.png"));
    assert_eq!(scratch.names("purlin"), ["fmt_loop.au", "fmt_loop.png"]);
}

#[test]
fn a_fade_begins_where_the_loops_end() {
    let Some(scratch) = Scratch::new("fade") else {
        return;
    };
    let song = data("vgm/fmt_loop.vgm");
    let output = scratch.render(&["--quiet", "--fade", "0.1", &song]);
    assert!(output.status.success(), "{output:?}");
    let golden = fs::read(data("golden/fmt_loop.wav")).expect("is there");
    let faded = scratch.read("fmt_loop.wav");
    assert_eq!(faded.len(), golden.len() + 4 * 4410);
    assert!(faded[44..golden.len()] == golden[44..]);
    // The end is silent, and the beginning was not.
    let loudest = |bytes: &[u8]| {
        let samples = bytes.chunks_exact(2);
        samples
            .map(|b| i16::from_le_bytes([b[0], b[1]]).unsigned_abs())
            .max()
    };
    assert!(loudest(&faded[golden.len()..golden.len() + 4000]) > Some(500));
    assert!(loudest(&faded[faded.len() - 40..]) < Some(100));
}

#[test]
fn playlists_give_their_tracks_and_say_what_they_leave_out() {
    let Some(scratch) = Scratch::new("playlists") else {
        return;
    };
    let output = scratch.render(&["--quiet", "--loops", "1", &data("edge.xspf")]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let err = text(&output.stderr);
    assert_eq!(err.lines().count(), 4, "{err}");
    assert_eq!(
        err.matches("a track without a location").count(),
        2,
        "{err}"
    );
    assert!(err.contains("http://example.org/a.vgm"), "{err}");
    assert!(
        err.contains("does_not_exist.vgm: no such file or directory"),
        "{err}"
    );
    let expected = ["fmt_loop", "fmt_noend", "fmt_v172", "fmt_vgz", "fmt_waits"];
    assert_eq!(scratch.names("."), expected.map(|n| format!("{n}.wav")));

    // Songs with equal names get numbers.
    let song = format!(
        "<track><location>{}</location></track>",
        data("vgm/fmt_v172.vgm")
    );
    let list = |text: &str| {
        format!(
            "<!DOCTYPE playlist [<!ENTITY v '17'>]>\n<playlist xmlns='http://xspf.org/ns/0/'><trackList>\n{text}</trackList></playlist>\n"
        )
    };
    fs::write(scratch.0.join("two.xspf"), list(&song.repeat(2))).expect("writes");
    let entity = song.replace("v172", "v&v;2");
    fs::write(scratch.0.join("entity.xspf"), list(&entity)).expect("writes");
    let args = ["--quiet", "--out", "two", "two.xspf", "entity.xspf"];
    let output = scratch.render(&args);
    assert!(output.status.success(), "{output:?}");
    let expected = ["fmt_v172-2.wav", "fmt_v172-3.wav", "fmt_v172.wav"];
    assert_eq!(scratch.names("two"), expected);

    for (content, reason) in [
        (list("<track>"), "damaged: line 3: track isn't closed"),
        (list("&w;"), "damaged: line 2: no entity w"),
        (
            "<a></a><b></b>".into(),
            "damaged: line 1: more than one document",
        ),
        ("<a></a>".into(), "no XSPF playlist"),
        (
            "junk".into(),
            "damaged: line 1: text outside of the document",
        ),
        (String::new(), "damaged: line 1: no element"),
    ] {
        fs::write(scratch.0.join("bad.xspf"), &content).expect("writes");
        let output = scratch.render(&["--quiet", "bad.xspf"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(text(&output.stderr), format!("bad.xspf: {reason}\n"));
    }
}

#[test]
fn broken_input_is_told_and_the_other_songs_go_on() {
    let Some(scratch) = Scratch::new("broken") else {
        return;
    };
    let log = fs::read(data("vgm/fmt_loop.vgm")).expect("is there");
    let packed = fs::read(data("vgm/fmt_vgz.vgz")).expect("is there");
    let both = fs::read(data("vgm/fmt_both.vgm")).expect("is there");
    let with = |at: usize, bytes: &[u8]| {
        let mut log = log.clone();
        log[at..at + bytes.len()].copy_from_slice(bytes);
        log
    };
    let start = 0x34 + u32::from_le_bytes(log[0x34..0x38].try_into().expect("four")) as usize;
    let mut flipped = packed.clone();
    flipped[packed.len() - 6] ^= 1;
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty", vec![], "empty"),
        ("text", b"not music at all".to_vec(), "not a VGM log"),
        (
            "short",
            log[..40].to_vec(),
            "truncated: its header is not whole",
        ),
        (
            "cut",
            log[..start + 100].to_vec(),
            "truncated: it ends within a command",
        ),
        (
            "early",
            log[..start + 99].to_vec(),
            "truncated: it ends after 4000 of 12820 samples",
        ),
        (
            "block",
            both[..2000].to_vec(),
            "truncated: it ends within a data block",
        ),
        ("command", with(start, &[0x20]), "damaged: no command 0x20"),
        (
            "loop",
            with(0x1C, &[255, 255, 255, 0]),
            "damaged: its loop begins outside of its data",
        ),
        (
            "start",
            with(0x34, &[255, 255, 255, 0]),
            "damaged: its data begin behind its end",
        ),
        ("silent", with(0x30, &[0; 4]), "no chip in it"),
        (
            "clock",
            with(0x30, &[1, 0, 0, 0]),
            "damaged: a chip's clock is 1 Hz",
        ),
        (
            "packed",
            packed[..packed.len() / 2].to_vec(),
            "damaged: its compressed data",
        ),
        ("flipped", flipped, "damaged: its compressed data"),
    ];
    let mut args = vec!["--quiet", "--out", "out"];
    let names: Vec<String> = cases.iter().map(|(n, _, _)| format!("{n}.vgm")).collect();
    for ((_, bytes, _), name) in cases.iter().zip(&names) {
        fs::write(scratch.0.join(name), bytes).expect("writes");
        args.push(name);
    }
    let good = data("vgm/fmt_v101.vgm");
    let there = data("vgm/fmt_waits.vgm");
    fs::create_dir_all(scratch.0.join("out")).expect("makes a directory");
    fs::write(scratch.0.join("out/fmt_waits.wav"), "mine").expect("writes");
    args.extend(["nothing.vgm", "out", &there, &good]);
    let output = scratch.render(&args);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(err.lines().count(), cases.len() + 3, "{err}");
    for ((name, _, reason), file) in cases.iter().zip(&names) {
        let line = format!("{file}: {reason}");
        assert!(err.lines().any(|l| l.starts_with(&line)), "{name}: {err}");
    }
    assert!(
        err.contains("nothing.vgm: no such file or directory\n"),
        "{err}"
    );
    assert!(
        err.contains("out: illegal operation on a directory\n"),
        "{err}"
    );
    assert!(
        err.contains("out/fmt_waits.wav is there already\n"),
        "{err}"
    );
    assert_eq!(scratch.names("out"), ["fmt_v101.wav", "fmt_waits.wav"]);
    assert_eq!(scratch.read("out/fmt_waits.wav"), b"mine");
    assert!(text(&output.stdout).contains("Songs:              1, and 16 failed\n"));

    // A directory that cannot be written, and one that cannot be created.
    let out = scratch.0.join("closed");
    fs::create_dir_all(&out).expect("makes a directory");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o500)).expect("closes it");
    if fs::write(out.join("x"), "").is_err() {
        let output = scratch.render(&["--quiet", "--out", "closed", &good]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            text(&output.stderr).contains("closed/fmt_v101.wav: permission denied"),
            "{output:?}"
        );
    }
    let output = scratch.render(&["--quiet", "--out", "empty.vgm/out", &good]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");

    // Invalid arguments.
    for args in [
        &["--jobs", "0", &good][..],
        &["--format", "mp3", &good],
        &["--loops", "x", &good],
        &["--what", &good],
        &[],
    ] {
        let output = scratch.render(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
    }
}
