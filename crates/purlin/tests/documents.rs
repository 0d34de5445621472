//! Commands and transcripts in the README and in docs: commands and their options exist, and
//! transcripts are run.
//!
//! A line of code that begins with `purlin` is a command. A block of code that shows the output of
//! a command is a transcript: it has a line that begins with `$`, is marked as `text`, or has a
//! comment before it, `<!-- run: COMMAND -->`. The command of the comment, or of the `$`, runs in a
//! copy of `examples/answers`. Numbers may differ, and `…` stands for the parts that a document
//! leaves out. The paragraph before any other transcript says when it was taken ("taken in
//! November 2026").

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The README and the pages of docs, by their names.
fn documents() -> Vec<(String, String)> {
    let mut names = vec!["README.md".to_string()];
    for entry in fs::read_dir(root().join("docs")).expect("docs") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        if name.ends_with(".md") {
            names.push(format!("docs/{name}"));
        }
    }
    names.sort();
    let text = |name: &String| fs::read_to_string(root().join(name)).expect("a document");
    names.iter().map(|n| (n.clone(), text(n))).collect()
}

fn shell(line: &str) -> Output {
    let own = Path::new(env!("CARGO_BIN_EXE_purlin"));
    let mut path = own.parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    Command::new("sh")
        .args(["-c", line])
        .current_dir(std::env::temp_dir())
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .expect("runs")
}

fn out(line: &str) -> String {
    String::from_utf8_lossy(&shell(line).stdout).into_owned()
}

/// The commands of lines of code, with the place of each.
fn commands(documents: &[(String, String)]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, text) in documents {
        let (mut fenced, mut code) = (false, Vec::new());
        for (n, line) in text.lines().enumerate() {
            if line.starts_with("```") {
                fenced = !fenced;
            } else if fenced || line.starts_with("    ") {
                code.push((n + 1, line.trim_start().trim_start_matches("$ ")));
            }
        }
        for (n, line) in code {
            let line = line.split(" #").next().unwrap_or_default();
            if line.starts_with("purlin ") {
                found.push((format!("{name}:{n}"), line.to_string()));
            }
        }
    }
    found
}

#[test]
fn commands_of_documents_exist() {
    let general = out("purlin help");
    let known: Vec<&str> = general
        .lines()
        .filter_map(|l| l.strip_prefix("  ")?.split(' ').next())
        .collect();
    assert!(known.contains(&"explain"), "{general}");
    let found = commands(&documents());
    assert!(found.len() > 40, "the documents have another form");
    let mut help: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (place, line) in found {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let Some((command, rest)) = words.split_first() else {
            continue;
        };
        if command.starts_with('-') || command.contains(|c: char| c.is_ascii_uppercase()) {
            continue;
        }
        if !known.contains(command) {
            wrong.push(format!("{place}: there is no command {command}: {line}"));
            continue;
        }
        // Options of the tools that stock has, and of programs, are their own.
        let own = [
            "explain",
            "observe",
            "measure",
            "bench",
            "schedules",
            "replay",
            "build",
        ];
        if !own.contains(command) {
            continue;
        }
        let text = help
            .entry(command.to_string())
            .or_insert_with(|| out(&format!("purlin help {command}")));
        let options = rest.iter().take_while(|w| **w != "--");
        for option in options.filter(|w| w.starts_with("--") || w.starts_with("[--")) {
            let option = option.trim_matches(['[', ']']);
            let option = option.split(['=', ']']).next().unwrap_or_default();
            if !text.contains(option) {
                wrong.push(format!("{place}: {command} has no option {option}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn codes_of_documents_exist() {
    let page = fs::read_to_string(root().join("docs/messages.md")).expect("a page");
    let mut texts = documents();
    for name in [
        "CHANGELOG.md",
        "COMPATIBILITY.md",
        "CONTRIBUTING.md",
        "llms.txt",
    ] {
        let text = fs::read_to_string(root().join(name)).expect("a document");
        texts.push((name.into(), text));
    }
    texts.push(("purlin help".into(), out("purlin help")));
    for (name, text) in texts {
        for code in text.split("PURLIN-").skip(1) {
            let digits: String = code.chars().take_while(char::is_ascii_digit).collect();
            if digits.is_empty() {
                continue;
            }
            let row = format!("PURLIN-{digits}");
            assert!(page.contains(&row), "{name}: there is no code {row}");
            let help = shell(&format!("purlin help {row}"));
            assert!(help.status.success(), "{name}: no help on {row}");
        }
    }
}

#[test]
fn the_reference_is_complete() {
    let page = fs::read_to_string(root().join("docs/reference.md")).expect("a page");
    // What is in backquotes, and its parts.
    let named: Vec<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .flat_map(|t| t.split([' ', ',', '[', '\\', '\n']))
        .collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut check = |kind: &str, name: &str| {
        count += 1;
        if !named.contains(&name) {
            wrong.push(format!("the reference lacks the {kind} {name}"));
        }
    };
    for line in out("purlin help").lines().skip_while(|l| *l != "Commands:") {
        match line.strip_prefix("  ") {
            Some(l) => check("command", l.split(' ').next().unwrap_or_default()),
            None if line.is_empty() => break,
            None => {}
        }
    }
    for line in out("purlin help erl").lines() {
        if let Some(l) = line.strip_prefix("  +F") {
            let name = l.split(' ').next().unwrap_or_default();
            check(
                "flag",
                &format!("+F{}", name.split('[').next().unwrap_or_default()),
            );
        }
    }
    // Rows of natives whose names others than the runtime itself call.
    let own = [
        "begin_output",
        "code_left",
        "continue_output",
        "dirty_cpu",
        "dirty_io",
        "ets_continue",
        "length",
        "long",
        "measure_output",
        "normal",
        "re_long",
    ];
    let mut sources = vec![root().join("crates")];
    while let Some(path) = sources.pop() {
        if path.is_dir() {
            let inside = fs::read_dir(&path).expect("a folder");
            sources.extend(inside.map(|e| e.expect("an entry").path()));
            continue;
        }
        if path.extension().is_none_or(|e| e != "rs") || !path.to_string_lossy().contains("/src/") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        for row in text.split(" \"purlin\":\"").skip(1) {
            let mut parts = row.split(['"', '/', ' ']);
            let (name, arity) = (parts.next(), parts.nth(1));
            if let (Some(name), Some(arity)) = (name, arity)
                && !own.contains(&name)
            {
                check("function", &format!("{name}/{arity}"));
            }
        }
        for schema in text.split("\"purlin-").skip(1) {
            let name = schema.split('"').next().unwrap_or_default();
            if name.ends_with("/1") {
                check("schema", &format!("purlin-{name}"));
            }
        }
    }
    assert!(count > 45, "only {count} names were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A block of code of a document.
struct Block {
    place: String,
    lines: Vec<String>,
    /// The paragraph before it.
    before: String,
    /// The command of the comment `<!-- run: COMMAND -->` before it.
    run: Option<String>,
    is_text: bool,
}

fn blocks(name: &str, text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let is_code = |i: usize| lines.get(i).is_some_and(|l| l.starts_with("    "));
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let start = at;
        let mut inside = Vec::new();
        if lines[at].starts_with("```") {
            at += 1;
            while at < lines.len() && !lines[at].starts_with("```") {
                inside.push(lines[at].to_string());
                at += 1;
            }
            at += 1;
        } else if is_code(at) && (at == 0 || lines[at - 1].is_empty()) {
            // Empty lines belong to it if code follows.
            while at < lines.len() {
                let next = (at..lines.len()).find(|i| !lines[*i].is_empty());
                let is_inside = lines[at].is_empty() && next.is_some_and(is_code);
                if !is_code(at) && !is_inside {
                    break;
                }
                inside.push(lines[at].trim_start_matches("    ").to_string());
                at += 1;
            }
        } else {
            at += 1;
            continue;
        }
        let mut above = lines[..start].iter().rev().skip_while(|l| l.is_empty());
        let mut last = above.clone();
        let run = last.next().and_then(|l| l.strip_prefix("<!-- run: "));
        let run = run.and_then(|l| l.strip_suffix(" -->"));
        if run.is_some() {
            above.next();
        }
        let mut before: Vec<&str> = above
            .skip_while(|l| l.is_empty())
            .take_while(|l| !l.is_empty())
            .copied()
            .collect();
        before.reverse();
        found.push(Block {
            place: format!("{name}:{}", start + 1),
            lines: inside,
            before: before.join(" "),
            run: run.map(str::to_string),
            is_text: lines[start] == "```text",
        });
    }
    found
}

const UNITS: &[&str] = &["bytes", "KiB", "MiB", "GiB", "us", "ms", "s", "h"];

/// The text with single spaces, and with `#` in place of numbers and their units. Numbers of lines
/// and arities stay.
fn without_numbers(text: &str) -> String {
    let text: Vec<char> = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .collect();
    let mut kept = String::new();
    let mut at = 0;
    while at < text.len() {
        if !text[at].is_ascii_digit() {
            kept.push(text[at]);
            at += 1;
            continue;
        }
        let is_part = |c: &char| c.is_ascii_digit() || *c == '.' || *c == ',';
        let mut end = at + text[at..].iter().take_while(|c| is_part(c)).count();
        while !text[end - 1].is_ascii_digit() {
            end -= 1;
        }
        let is_clock = kept.trim_end_matches(':').ends_with(['#', ')']);
        let is_line = kept.ends_with(':') && !is_clock || kept.ends_with("line ");
        if is_line || kept.ends_with('/') && end == at + 1 {
            kept.extend(&text[at..end]);
            at = end;
            continue;
        }
        kept.push('#');
        at = end;
        // The month within a date.
        if let ['-', month @ .., '-'] = &text[at..text.len().min(at + 5)]
            && month.len() == 3
            && month.iter().all(char::is_ascii_alphabetic)
        {
            kept.push_str("-#-");
            at += 5;
            continue;
        }
        let word = text.iter().skip(at + 1).take_while(|c| c.is_alphanumeric());
        let word: String = word.collect();
        if text.get(at) == Some(&' ') && UNITS.contains(&word.as_str()) {
            at += 1 + word.len();
        }
    }
    kept
}

/// The part of `shown` that does not come, in this order, in what was printed. `…` stands for
/// anything.
fn missing(shown: &str, printed: &str) -> Option<String> {
    let printed = without_numbers(printed);
    let mut rest = printed.as_str();
    for part in without_numbers(shown).split('…').map(str::trim) {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return Some(part.to_string()),
        }
    }
    None
}

#[test]
fn comparing_ignores_numbers_but_not_places() {
    let printed = "at 01:29:56 <0.82.0> held 1.90 GiB\n  by keep:cache/1, keep.erl:13\nend";
    for (shown, is_there) in [
        (
            "at 21:02:11 <0.7.0> held 3,000 bytes by keep:cache/1, keep.erl:13",
            true,
        ),
        ("held … keep:cache/1, … end", true),
        ("held 1.90 GiB by keep:cache/1, keep.erl:14", false),
        ("held 1.90 GiB by keep:cache/2", false),
        ("held … by … at", false),
    ] {
        assert_eq!(missing(shown, printed).is_none(), is_there, "{shown}");
    }
}

/// A folder with the programs whose answers the documents show.
struct Programs(PathBuf);

impl Programs {
    fn new() -> Programs {
        let folder = format!("purlin-documents-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(folder.join("cache")).expect("makes a folder");
        for entry in fs::read_dir(root().join("examples/answers")).expect("examples") {
            let from = entry.expect("an entry").path();
            fs::copy(&from, folder.join(from.file_name().expect("a name"))).expect("copies");
        }
        for race in ["once_race.erl", "pool_test.exs"] {
            let from = root().join("tests/schedules").join(race);
            fs::copy(from, folder.join(race)).expect("copies");
        }
        let from = root().join("tests/clusters/name_twice.erl");
        fs::copy(from, folder.join("name_twice.erl")).expect("copies");
        let examples = fs::canonicalize(root().join("examples")).expect("examples");
        std::os::unix::fs::symlink(examples, folder.join("examples")).expect("links");
        Programs(folder)
    }

    /// Returns both outputs of the command. They go to a file: a process that is left behind may
    /// keep them open.
    fn printed(&self, line: &str) -> String {
        let own = Path::new(env!("CARGO_BIN_EXE_purlin"))
            .parent()
            .expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let output = fs::File::create(self.0.join("printed")).expect("makes a file");
        let errors = output.try_clone().expect("the same file");
        Command::new("timeout")
            .args(["-k", "1", "240", "sh", "-c", line])
            .current_dir(&self.0)
            .env("PATH", format!("{}:{path}", own.display()))
            .env("XDG_CACHE_HOME", self.0.join("cache"))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .status()
            .expect("runs");
        let printed = fs::read(self.0.join("printed")).expect("reads");
        String::from_utf8_lossy(&printed).into_owned()
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn transcripts_are_run_or_dated() {
    let otp = out("purlin version");
    let elixir = out("elixir --short-version 2>/dev/null");
    let programs = Programs::new();
    let mut run = 0;
    let mut wrong = Vec::new();
    for (name, text) in documents() {
        for block in blocks(&name, &text) {
            let commands: Vec<&str> = block
                .lines
                .iter()
                .filter_map(|l| l.strip_prefix("$ "))
                .collect();
            let answer: Vec<&str> = block
                .lines
                .iter()
                .filter(|l| !l.starts_with("$ "))
                .map(String::as_str)
                .collect();
            if answer.is_empty() || (block.run.is_none() && commands.is_empty() && !block.is_text) {
                continue;
            }
            if block.run.is_none() && block.before.contains("taken") && block.before.contains(" 20")
            {
                continue;
            }
            let command = block.run.as_deref().or(commands.first().copied());
            let Some(command) = command else {
                wrong.push(format!("{}: neither a command nor a date", block.place));
                continue;
            };
            // Lines of libraries are those of Debian 12.
            if !otp.contains("Erlang/OTP 25")
                || command.contains(".exs") && !elixir.starts_with("1.14")
            {
                println!("skipped: {}: {command}", block.place);
                continue;
            }
            let printed = programs.printed(command);
            if let Some(part) = missing(&answer.join("\n"), &printed) {
                wrong.push(format!(
                    "{}: {command}\nno: {part}\nin:\n{printed}",
                    block.place
                ));
            }
            run += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(
        run > 0 || !otp.contains("Erlang/OTP 25"),
        "no transcript was run"
    );
}

/// The anchor that a heading has in a page, by the rules of GitHub and mdbook.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The path with `.` and `..` resolved.
fn resolved(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(parts.pop()),
            std::path::Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts
}

#[test]
fn links_lead_somewhere() {
    let root = fs::canonicalize(root()).expect("the root");
    // Pages of the book link to pages of the book. scripts/book.sh names those outside of docs.
    let book = fs::read_to_string(root.join("scripts/book.sh")).expect("a script");
    let pages = [
        "ARCHITECTURE",
        "CHANGELOG",
        "COMPATIBILITY",
        "CONTRIBUTING",
        "SECURITY",
    ];
    let pages = pages.map(|p| format!("{p}.md")).into_iter();
    let results = [
        "tests/otp/results.md",
        "tests/otp/natives.md",
        "tests/applications/results.md",
        "tests/applications/servers.md",
    ];
    let mut names: Vec<String> = documents().into_iter().map(|d| d.0).collect();
    names.extend(pages.chain(results.map(String::from)));
    names.extend(["llms.txt", "examples/answers/README.md"].map(String::from));
    let (mut count, mut wrong) = (0, Vec::new());
    for name in names {
        let text = fs::read_to_string(root.join(&name)).expect("a document");
        for link in text.split("](").skip(1) {
            let link = link.split([')', ' ', '\n']).next().unwrap_or_default();
            if link.starts_with("http") || link.is_empty() {
                continue;
            }
            count += 1;
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let page = root.join(&name);
            let to = match file {
                "" => page,
                file => resolved(&page.parent().expect("a folder").join(file)),
            };
            let Ok(found) = to
                .strip_prefix(&root)
                .map(|p| p.to_string_lossy().into_owned())
            else {
                wrong.push(format!("{name}: {link} leaves the repository"));
                continue;
            };
            if !to.exists() {
                wrong.push(format!("{name}: {link} does not exist"));
                continue;
            }
            let is_page = found == "README.md" || found.starts_with("docs/");
            let is_in_book = is_page || book.contains(found.trim_end_matches(".md"));
            let is_of_book =
                !["README.md", "llms.txt", "examples/answers/README.md"].contains(&name.as_str());
            if is_of_book && !is_in_book {
                wrong.push(format!("{name}: the book has no {found}"));
            }
            if !place.is_empty() {
                let text = fs::read_to_string(&to).expect("a page");
                let mut headings = text.lines().filter(|l| l.starts_with('#'));
                if !headings.any(|h| anchor(h) == place) {
                    wrong.push(format!("{name}: {found} has no heading {place}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        count > 100,
        "{count} links: the documents have another form"
    );
}
