//! `make install` and `make uninstall`, the manual page, and shell completions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PURLIN: &str = env!("CARGO_BIN_EXE_purlin");

/// The root of the sources.
fn tree() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("lies in crates").into()
}

/// A test's own directory, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("purlin-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("makes a directory");
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn output(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, text)
}

fn help(topic: &str) -> String {
    let (output, text) = output(Command::new(PURLIN).args(["help", topic]));
    assert!(output.status.success(), "{output:?}");
    text
}

fn is_there(program: &str) -> bool {
    let there = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|o| o.status.success());
    if !there {
        println!("skipped: there is no {program}");
    }
    there
}

/// All files in a directory and its subdirectories.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).expect("is read").flatten() {
            match entry.path() {
                path if path.is_dir() => left.push(path),
                path => all.push(path),
            }
        }
    }
    all.sort();
    all
}

#[test]
fn installed_and_taken_away() {
    if !is_there("strip") {
        return;
    }
    let scratch = Scratch::new("install");
    let script = |args: &[&str]| {
        let script = tree().join("scripts/install.sh");
        let (output, _) = output(
            Command::new("sh")
                .arg(script)
                .args(args)
                .env("PURLIN", PURLIN)
                .env("PREFIX", "/opt/p")
                .env("DESTDIR", &scratch.0),
        );
        assert!(output.status.success(), "{output:?}");
    };
    script(&[]);
    let at = scratch.0.join("opt/p");
    for file in [
        "bin/purlin",
        "share/man/man1/purlin.1",
        "share/bash-completion/completions/purlin",
        "share/zsh/site-functions/_purlin",
        "share/fish/vendor_completions.d/purlin.fish",
        "share/doc/purlin/README.md",
        "share/doc/purlin/docs/releases.md",
    ] {
        let meta = fs::metadata(at.join(file)).expect(file);
        assert!(
            meta.len() > 0 && meta.permissions().mode() & 0o444 == 0o444,
            "{file}"
        );
    }
    let program = at.join("bin/purlin");
    let size = |path: &Path| fs::metadata(path).expect("is there").len();
    // With symbols it is several times as large; a stripped program stays as large as it is.
    assert!(size(&program) <= size(PURLIN.as_ref()));
    assert!(size(&program) < 24 << 20, "{} bytes", size(&program));
    let (_, text) = output(Command::new(&program).arg("--version"));
    let version = format!("purlin {}\n", env!("CARGO_PKG_VERSION"));
    assert!(text.starts_with(&version), "{text}");
    // Files installed by others stay.
    let foreign = at.join("share/man/man1/other.1");
    fs::write(&foreign, "").expect("is written");
    // A second time, over itself.
    script(&[]);
    script(&["--uninstall"]);
    assert_eq!(files(&scratch.0), [foreign]);
    script(&["--uninstall"]);
}

/// Invalid settings are refused before anything is written.
#[test]
fn nothing_is_installed_anywhere_else() {
    let scratch = Scratch::new("refused");
    for (prefix, argument) in [("opt", None), ("/opt/p", Some("--remove"))] {
        let (output, _) = output(
            Command::new("sh")
                .arg(tree().join("scripts/install.sh"))
                .args(argument)
                .env("PURLIN", PURLIN)
                .env("PREFIX", prefix)
                .env("DESTDIR", &scratch.0),
        );
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
        assert_eq!(files(&scratch.0), [] as [PathBuf; 0]);
    }
}

#[test]
fn the_manual_page_names_all_commands() {
    let page = help("man");
    for (command, _) in commands() {
        assert!(page.contains(&format!("\\fB{command}\\fR")), "{command}");
    }
    if is_there("mandoc") {
        let path = std::env::temp_dir().join(format!("purlin-{}.1", std::process::id()));
        fs::write(&path, &page).expect("is written");
        let (output, text) = output(
            Command::new("mandoc")
                .args(["-T", "lint", "-W", "error"])
                .arg(&path),
        );
        fs::remove_file(&path).expect("cleans up");
        assert_eq!((output.status.code(), text.as_str()), (Some(0), ""));
    }
}

/// Names of the commands, from the general help, and whether each has options.
fn commands() -> Vec<(String, bool)> {
    let (_, text) = output(Command::new(PURLIN).arg("help"));
    let lines = text.lines().skip_while(|l| *l != "Commands:").skip(1);
    let names = lines.take_while(|l| !l.is_empty());
    let names: Vec<String> = names
        .filter_map(|l| l.split_ascii_whitespace().next())
        .map(str::to_string)
        .collect();
    assert!(names.len() > 10, "{text}");
    names
        .into_iter()
        .map(|name| {
            let has = help(&name).starts_with(&format!("Usage: purlin {name} [OPTIONS]"));
            (name, has)
        })
        .collect()
}

/// Options in help are options that commands accept.
#[test]
fn options_of_help_exist() {
    let mut seen = 0;
    for (command, _) in commands().iter().filter(|(_, options)| *options) {
        let text = help(command);
        let options = text.lines().skip_while(|l| *l != "Options:").skip(1);
        for line in options {
            let Some(option) = line
                .split_ascii_whitespace()
                .next()
                .filter(|o| o.starts_with("--"))
            else {
                continue;
            };
            // Commands exit at once on an unknown option: `observe` would otherwise stay with a
            // program that this user runs.
            let (output, _) = output(Command::new(PURLIN).args([command, option, "--no-such"]));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let unknown = format!("no option '{option}'");
            assert!(!said.contains(&unknown), "{command} {option}: {said}");
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen}");
}

/// Bash's completions for the words of a command line, the last of which is incomplete.
fn bash_completes(words: &[&str], dir: &Path) -> Vec<String> {
    let file = dir.join("completions");
    fs::write(&file, help("bash")).expect("is written");
    let words: Vec<String> = words.iter().map(|w| format!("'{w}'")).collect();
    // `compopt` works only during completion.
    let code = format!(
        "compopt() {{ :; }}; . '{}'; COMP_WORDS=({}); COMP_CWORD={}; _purlin; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        file.display(),
        words.join(" "),
        words.len() - 1
    );
    let (output, text) = output(
        Command::new("bash")
            .args(["--norc", "-c", &code])
            .current_dir(dir),
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words:?}");
    let mut all: Vec<String> = text
        .lines()
        .filter(|l| !l.is_empty())
        .map(str::to_string)
        .collect();
    all.sort();
    all
}

#[test]
fn bash_completes_words() {
    if !is_there("bash") {
        return;
    }
    let scratch = Scratch::new("bash");
    for file in ["a.exs", "a b.erl", "a.txt", "a.beam"] {
        fs::write(scratch.0.join(file), "").expect("is written");
    }
    fs::create_dir(scratch.0.join("an")).expect("is made");
    for (words, expected) in [
        (&["purlin", "es"][..], &["escript"][..]),
        (&["purlin", "--otp-root", "a"], &["an"]),
        (&["purlin", "--otp-root", "x", "mea"], &["measure"]),
        (
            &["purlin", "run", "a"],
            &["a b.erl", "a.beam", "a.exs", "an"],
        ),
        (&["purlin", "disasm", "a"], &["a.beam", "an"]),
        (&["purlin", "disasm", "--s"], &["--specific"]),
        (&["purlin", "bench", "--r"], &["--runs"]),
        (&["purlin", "erl", "+SDPc"], &["+SDPcpu"]),
        (&["purlin", "explain", "bina"], &["binaries"]),
        (&["purlin", "explain", "run"], &["run"]),
        (&["purlin", "explain", "run", "a.t"], &["a.txt"]),
        (&["purlin", "help", "fi"], &["fish"]),
        (&["purlin", "erts", "a"], &["an"]),
        (&["purlin", "version", "a"], &[]),
    ] {
        assert_eq!(bash_completes(words, &scratch.0), expected, "{words:?}");
    }
}

#[test]
fn other_shells_read_their_completions() {
    let scratch = Scratch::new("shells");
    for shell in ["zsh", "fish"] {
        let text = help(shell);
        for (command, _) in commands() {
            assert!(text.contains(&command), "{shell}: {command}");
        }
        if !is_there(shell) {
            continue;
        }
        let file = scratch.0.join(shell);
        fs::write(&file, text).expect("is written");
        let (output, _) = output(Command::new(shell).arg("-n").arg(&file));
        assert!(output.status.success(), "{output:?}");
    }
    if is_there("fish") {
        let code = format!(
            "source {}/fish; complete -C 'purlin disasm --s'",
            scratch.0.display()
        );
        let (_, text) = output(
            Command::new("fish")
                .args(["-N", "-c", &code])
                .env("HOME", &scratch.0),
        );
        assert!(text.starts_with("--specific\t"), "{text}");
        let code = format!(
            "source {}/fish; complete -C 'purlin esc'",
            scratch.0.display()
        );
        let (_, text) = output(
            Command::new("fish")
                .args(["-N", "-c", &code])
                .env("HOME", &scratch.0),
        );
        assert!(text.starts_with("escript\t"), "{text}");
    }
    if is_there("zsh") {
        // Zsh's whole completion system, with the file where it would be installed.
        fs::create_dir_all(scratch.0.join("functions")).expect("is made");
        fs::copy(scratch.0.join("zsh"), scratch.0.join("functions/_purlin")).expect("is copied");
        let code = "fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u -d $PWD/dump; \
                    print -r -- ${_comps[purlin]}; autoload -U +X _purlin && print loaded";
        let (output, text) = output(
            Command::new("zsh")
                .args(["-f", "-c", code])
                .current_dir(&scratch.0),
        );
        assert_eq!(text, "_purlin\nloaded\n", "{output:?}");
    }
}
