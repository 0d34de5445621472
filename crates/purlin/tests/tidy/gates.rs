//! Gates: numbers that may only fall.
//!
//! Each test counts something that the tree should have less of. A number above its bound fails. A
//! number below it fails too, until the bound is lowered to it, so that it cannot rise again. Run
//! with `--nocapture` to see what is counted.
//!
//! That each op with a template has its machine code compared with its step is held by
//! `machine_code_does_what_steps_do` in `crates/runtime/tests/compiled_ops.rs`.

use super::text::{blank, comments};
use super::{CRATES, LAYERS, Tree, root};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;

/// Longest line of comments and documents, in characters.
const COLUMNS: usize = 100;

/// Fails unless `found` has exactly `bound` elements.
fn only_falls(what: &str, found: &[String], bound: usize) {
    let n = found.len();
    found.iter().for_each(|f| println!("{what}: {f}"));
    assert!(n <= bound, "{what}: {n}, and there may be {bound}");
    assert!(
        n >= bound,
        "{what}: only {n} are left: lower the bound to that, it is {bound}"
    );
}

/// The root of the repository.
fn top() -> PathBuf {
    root().join("..")
}

/// The files below some folders or files, relative to the root of the repository, sorted.
fn files(places: &[&str], accept: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut todo: Vec<PathBuf> = places.iter().map(|p| top().join(p)).collect();
    while let Some(path) = todo.pop() {
        let name = path.strip_prefix(top()).expect("below the root");
        let name = name.display().to_string();
        if name == "target" {
            continue;
        }
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder").flatten();
            todo.extend(entries.map(|e| e.path()));
        } else if accept(&name)
            && let Ok(text) = fs::read_to_string(&path)
        {
            out.push((name, text));
        }
    }
    out.sort();
    out
}

/// The Rust files of all crates, with their tests.
fn rust() -> Vec<(String, String)> {
    files(&["crates", "fuzz", "xtask"], |f| f.ends_with(".rs"))
}

/// The documents that people write. Tables of results are written by scripts.
fn documents() -> Vec<(String, String)> {
    let generated = ["results.md", "natives.md"];
    files(&["."], |f| {
        f.ends_with(".md") && !generated.iter().any(|g| f.ends_with(g))
    })
}

fn is_too_long(line: &str) -> bool {
    line.chars().count() > COLUMNS
}

#[test]
fn comments_have_short_lines() {
    let mut found = Vec::new();
    for (file, text) in rust() {
        let lines: Vec<&str> = text.lines().collect();
        let of_comments: BTreeSet<usize> = comments(&text).into_iter().map(|c| c.0).collect();
        let long = of_comments.into_iter().filter(|&l| is_too_long(lines[l]));
        found.extend(long.map(|l| format!("{file}:{}", l + 1)));
    }
    only_falls("lines of comments over 100 columns", &found, 0);
}

/// Scripts, and programs in Erlang and Elixir. Indented text may show wide commands.
#[test]
fn scripts_and_programs_have_short_comments() {
    let ends = [".erl", ".hrl", ".ex", ".exs", ".sh"];
    let places = [
        "tests", "benches", "examples", "training", "scripts", "Makefile", "bench", "demo", "test",
    ];
    let mut found = Vec::new();
    let whole = |f: &str| !f.contains('.') || ends.iter().any(|e| f.ends_with(e));
    for (file, text) in files(&places, whole) {
        let long = text.lines().enumerate().filter(|(_, l)| {
            let text = l.trim_start().trim_start_matches(['%', '#']);
            let is_comment = l.trim_start().len() > text.len() && text.starts_with(' ');
            is_comment && !text.starts_with("  ") && is_too_long(l)
        });
        found.extend(long.map(|(n, _)| format!("{file}:{}", n + 1)));
    }
    only_falls("comments of scripts over 100 columns", &found, 0);
}

/// Rows of tables may be longer, and indented code may show wide output.
#[test]
fn documents_have_short_lines() {
    let mut found = Vec::new();
    for (file, text) in documents() {
        let long = text
            .lines()
            .enumerate()
            .filter(|(_, l)| is_too_long(l) && !["    ", "|"].iter().any(|s| l.starts_with(s)));
        found.extend(long.map(|(n, _)| format!("{file}:{}", n + 1)));
    }
    only_falls("lines of documents over 100 columns", &found, LONG_LINES);
}
const LONG_LINES: usize = 0;

/// The documentation of an item begins with a noun or a verb.
#[test]
fn documentation_begins_with_what_the_item_is() {
    let words = ["What", "Who", "Whoever", "Whose", "Whom", "Of", "That"];
    let mut found = Vec::new();
    for (file, text) in rust() {
        let mut above = "";
        for (n, line) in text.lines().enumerate() {
            let of = |l: &str| {
                ["///", "//!"]
                    .into_iter()
                    .find(|m| l.trim_start().starts_with(m))
            };
            if let Some(mark) = of(line)
                && of(above) != Some(mark)
            {
                let said = line.trim_start()[3..].trim_start();
                let first = said.split(' ').next().unwrap_or_default();
                if words.contains(&first) {
                    found.push(format!("{file}:{}: {said}", n + 1));
                }
            }
            above = line;
        }
    }
    only_falls(
        "documentation that begins with a relative clause",
        &found,
        0,
    );
}

#[test]
fn functions_are_short() {
    let mut found = Vec::new();
    for (file, text) in rust().into_iter().filter(|f| f.0.contains("/src/")) {
        for (name, from, to) in functions(&blank(&text)) {
            if to - from + 1 > 100 {
                found.push(format!(
                    "{file}:{}: {name}: {} lines",
                    from + 1,
                    to - from + 1
                ));
            }
        }
    }
    only_falls("functions over 100 lines", &found, LONG_FUNCTIONS);
}
const LONG_FUNCTIONS: usize = 7;

/// The functions of a file whose comments and strings are blank: name, first line, last line.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let line = |at: usize| text[..at].matches('\n').count();
    let mut out = Vec::new();
    for (at, _) in text.match_indices("fn ") {
        if text[..at].ends_with(is_word) {
            continue;
        }
        let rest = &text[at + 3..];
        let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
        if name.is_empty() {
            continue;
        }
        let mut depth = 0;
        let body = rest.char_indices().find_map(|(i, c)| {
            depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
            (depth == 0 && matches!(c, '{' | ';')).then_some((i, c))
        });
        let Some((body, '{')) = body else { continue };
        let mut depth = 0;
        let end = rest[body..].char_indices().find_map(|(i, c)| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            (depth == 0).then_some(body + i)
        });
        let end = at + 3 + end.unwrap_or_else(|| panic!("{name} has no end"));
        out.push((name, line(at), line(end)));
    }
    out
}

/// Denied by the workspace, except in the interpreter.
#[test]
fn unsafe_operations_are_in_blocks() {
    let workspace = fs::read_to_string(top().join("Cargo.toml")).expect("a manifest");
    assert!(
        workspace.contains("\nunsafe_op_in_unsafe_fn = \"deny\"\n"),
        "not denied"
    );
    let manifests = files(&["crates", "fuzz", "xtask"], |f| f.ends_with("Cargo.toml"));
    let mut found: Vec<String> = manifests
        .into_iter()
        .filter(|(_, t)| !t.contains("[lints]\nworkspace = true"))
        .map(|(f, _)| format!("{f} does not have the lints of the workspace"))
        .collect();
    for (file, text) in rust().iter().filter(|f| f.0 != "crates/interp/src/lib.rs") {
        let attributes = text.lines().filter(|l| l.trim_start().starts_with("#"));
        if attributes
            .filter(|l| l.contains("unsafe_op_in_unsafe_fn"))
            .count()
            > 0
        {
            found.push(file.clone());
        }
    }
    only_falls("exceptions from unsafe_op_in_unsafe_fn", &found, 0);
}

/// Each `unsafe` block has a `SAFETY` line of its own, at most eight lines above.
#[test]
fn unsafe_blocks_have_safety_lines() {
    let mut found = Vec::new();
    let mut blocks = 0;
    for (file, text) in rust().into_iter().filter(|f| f.0.contains("/src/")) {
        let mut all: Vec<&str> = text.lines().collect();
        for n in unsafe_blocks(&text) {
            blocks += 1;
            let reason = (n.saturating_sub(8)..=n).rfind(|&i| all[i].contains("SAFETY"));
            match reason {
                // No other block has this line.
                Some(i) => all[i] = "",
                None => found.push(format!("{file}:{}", n + 1)),
            }
        }
    }
    assert!(blocks > 1000, "unsafe blocks have another form");
    only_falls("unsafe blocks without a SAFETY line", &found, 0);
}

/// The lines, from 0, in which an unsafe block begins. What a macro makes of its arguments is
/// explained where the macro is.
fn unsafe_blocks(text: &str) -> Vec<usize> {
    let text = blank(text);
    let all = text.lines().enumerate();
    let begins = |l: &str| {
        l.match_indices("unsafe {")
            .any(|(at, _)| !l[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    all.filter(|(_, l)| begins(l) && !l.contains('$'))
        .map(|(n, _)| n)
        .collect()
}

/// Sizes and words of objects in machine code are constants of `purlin_term::layout`.
#[test]
fn machine_code_has_no_numbers_of_layouts() {
    let mut found = Vec::new();
    for (file, text) in files(&["crates/jit/src"], |f| f.ends_with(".rs")) {
        for (n, line) in blank(&text).lines().enumerate() {
            if has_a_layout(line) {
                found.push(format!("{file}:{}: {}", n + 1, line.trim()));
            }
        }
    }
    only_falls("numbers of layouts in jit", &found, 0);
}

/// Whether a line multiplies a number by the size of a word, or subtracts a tag that is a number.
fn has_a_layout(line: &str) -> bool {
    let is_number = |t: &str| t.trim().parse::<u32>().is_ok();
    let words = line.match_indices(" * 8").any(|(at, _)| {
        let before = line[..at]
            .rsplit([' ', '(', ','])
            .next()
            .unwrap_or_default();
        is_number(before)
    });
    // The word before an entry is at -4 from it, and tags are 1 and 2.
    let tag = ["at(A, -", "at(B, -", "at(K, -", "at(R, -"]
        .iter()
        .any(|f| {
            let n = line.split(f).nth(1).and_then(|n| n.chars().next());
            n.is_some_and(|c| c.is_ascii_digit())
        });
    // The tail of a cons cell, at 8 less its tag.
    let word = line.match_indices("at(").any(|(at, _)| {
        let place = line[at..].split_once(", ").map_or("", |p| p.1);
        let number = place.trim_start_matches(|c: char| c.is_ascii_digit());
        number.len() < place.len() && number.starts_with(" - ")
    });
    words || tag || word
}

/// Cache lines have their sizes in one file, and the size of a page is the system's.
#[test]
fn pages_and_lines_have_no_numbers() {
    let mut found = Vec::new();
    let sources = |f: &str| f.ends_with(".rs") && f.contains("/src/");
    for (file, text) in files(&["crates"], sources) {
        let lines = "crates/isa/src/cache_lines.rs";
        let pages = ["crates/term/src/sys.rs", "crates/options/src/memory.rs"];
        for (n, line) in blank(&text).lines().enumerate() {
            if file != lines && aligns_to_a_line(line)
                || has_a_page(line, pages.contains(&file.as_str()))
            {
                found.push(format!("{file}:{}: {}", n + 1, line.trim()));
            }
        }
    }
    only_falls("numbers of pages and cache lines", &found, 0);
}

/// Whether a line aligns a type to 64 bytes or more.
fn aligns_to_a_line(line: &str) -> bool {
    line.split("align(").skip(1).any(|rest| {
        let number = rest.split(')').next().and_then(|n| n.parse::<u32>().ok());
        number.is_some_and(|n| n >= 64)
    })
}

/// Whether a line has the size of a page as a number, or asks for it elsewhere than in `home`.
fn has_a_page(line: &str, home: bool) -> bool {
    let words = || line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let number = words().any(|w| ["4096", "4095", "0xFFF", "0x1000", "4_096"].contains(&w))
        || line.contains("<< 12")
        || line.contains(">> 12");
    let page = words().any(|w| {
        let w = w.to_ascii_lowercase();
        w.split('_').any(|part| part == "page" || part == "pages")
    });
    number && page || !home && (line.contains("_SC_PAGE") || line.contains("getpagesize"))
}

#[test]
fn numbers_of_pages_and_lines_are_found() {
    assert!(aligns_to_a_line("#[repr(C, align(64))]"));
    assert!(!aligns_to_a_line("#[repr(align(16))]"));
    assert!(has_a_page("let n = pages * 4096;", true));
    assert!(has_a_page("let number = page_at >> 12;", true));
    assert!(has_a_page("libc::sysconf(libc::_SC_PAGESIZE)", false));
    assert!(!has_a_page("libc::sysconf(libc::_SC_PAGESIZE)", true));
    assert!(!has_a_page("let mut buffer = [0u8; 4096];", false));
}

/// Templates, and the stubs that all processors share, name registers by their roles.
#[test]
fn templates_name_no_processor() {
    let own = ["/asm/", "/machine/", "/stubs/"];
    let mut found = Vec::new();
    for (file, text) in files(&["crates/jit/src"], |f| f.ends_with(".rs")) {
        if own.iter().any(|d| file.contains(d)) {
            continue;
        }
        for (n, line) in blank(&text).lines().enumerate() {
            if names_a_processor(line) {
                found.push(format!("{file}:{}: {}", n + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "registers of a processor: {found:#?}");
}
fn names_a_processor(line: &str) -> bool {
    const REGISTERS: [&str; 13] = [
        "RAX", "RBX", "RCX", "RDX", "RSI", "RDI", "RBP", "RSP", "R10", "R11", "R12", "x64", "a64",
    ];
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| REGISTERS.contains(&word))
}

/// `code/entries.rs` owns the half word before an entry, in which machine code finds its target.
#[test]
fn only_the_owner_stores_before_entries() {
    let home = "crates/kernel/src/code/entries.rs";
    let mut found = Vec::new();
    for (file, text) in rust()
        .into_iter()
        .filter(|f| f.0.contains("/src/") && f.0 != home)
    {
        let text = blank(&text);
        for (n, line) in text.lines().enumerate() {
            if calls_lead(line) {
                found.push(format!("{file}:{}: {}", n + 1, line.trim()));
            }
        }
    }
    only_falls(
        "uses of the word before an entry outside its owner",
        &found,
        0,
    );
}

/// Whether a line calls `lead`, which is the owner's, and not a method of that name.
fn calls_lead(line: &str) -> bool {
    line.match_indices("lead(").any(|(at, _)| {
        let before = &line[..at];
        let other = before.ends_with(|c: char| c.is_alphanumeric() || "._".contains(c));
        !other && !before.ends_with("fn ")
    })
}

/// The first unit of an instruction, which patches replace, is shared between threads.
#[test]
fn only_the_owner_stores_into_running_code() {
    let places = ["kernel", "interp", "runtime", "diagnostics", "nif"];
    let places = places.map(|c| format!("crates/{c}/src"));
    let found = outside(
        &places.each_ref().map(String::as_str),
        "crates/kernel/src/code/entries.rs",
        &[
            "*const AtomicU16",
            "*mut AtomicU16",
            "AtomicU16::from_ptr",
            "*mut u16",
        ],
    );
    only_falls("words of code that are used outside their owner", &found, 0);
}

#[test]
fn only_one_file_collects_processes() {
    let home = "crates/kernel/src/collect/mod.rs";
    let found = outside(
        &["crates"],
        home,
        &["gc::collect(", "use purlin_term::gc::collect"],
    );
    only_falls("collections outside their file", &found, 0);
}

/// Each call of a program on a file can be made to fail by the race finder.
#[test]
fn files_are_reached_by_one_door() {
    // These look at numbers, and at the user.
    let free = ["major(", "minor(", "makedev(", "geteuid(", "getegid("];
    let mut found = Vec::new();
    for name in ["prim_file.rs", "prim_file_names.rs"] {
        let file = format!("crates/io/src/file/{name}");
        let (_, text) = rust()
            .into_iter()
            .find(|f| f.0 == file)
            .unwrap_or_else(|| panic!("{file}"));
        let text = blank(&text);
        let text = text.split("mod tests {").next().unwrap_or_default();
        for (n, line) in text.lines().enumerate() {
            let calls = line.split("libc::").skip(1).any(|rest| {
                let name = rest
                    .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .next();
                let len = name.map_or(0, str::len);
                let is_call = rest[len..].starts_with('(') && rest.starts_with(char::is_lowercase);
                is_call && !free.iter().any(|f| rest.starts_with(f))
            });
            let std = ["std::fs::", "env::current_dir", "env::set_current_dir"];
            if calls || std.iter().any(|s| line.contains(s)) {
                found.push(format!("{file}:{}: {}", n + 1, line.trim()));
            }
        }
    }
    only_falls(
        "calls on files outside `io/src/os/file_calls.rs`",
        &found,
        0,
    );
}

/// Lines with one of these texts in all files but their home, before their unit tests.
fn outside(places: &[&str], home: &str, code: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut at_home = 0;
    for (file, text) in files(places, |f| f.ends_with(".rs") && f.contains("/src/")) {
        let text = blank(&text);
        let text = text.split("mod tests {").next().unwrap_or_default();
        let found_in = |l: &str| code.iter().any(|c| l.contains(c));
        for (n, _) in text.lines().enumerate().filter(|(_, l)| found_in(l)) {
            match file == home {
                true => at_home += 1,
                false => found.push(format!("{file}:{}", n + 1)),
            }
        }
    }
    assert!(at_home > 0, "{home} has none of {code:?}");
    found
}

/// The files of a node that use the standard library's clocks, and why virtual time need not decide
/// there.
const REAL_TIME: [(&str, &str); 15] = [
    (
        "crates/kernel/src/threads/upkeep.rs",
        "a thread that the race finder does not start",
    ),
    (
        "crates/kernel/src/threads/watch.rs",
        "a thread that the race finder does not start",
    ),
    ("crates/kernel/src/timer/mod.rs", "its tests"),
    (
        "crates/native/src/ids.rs",
        "the first numbers of a run without a seed",
    ),
    (
        "crates/natives/src/re/callouts.rs",
        "off in the race finder: `reschedule::stop_timing`",
    ),
    (
        "crates/runtime/src/compiled/mod.rs",
        "times in a report of the compiler",
    ),
    (
        "crates/runtime/src/compiled/report.rs",
        "times in a report of the compiler",
    ),
    (
        "crates/runtime/src/schedules.rs",
        "the start of the race finder",
    ),
    (
        "crates/runtime/src/trace/watch.rs",
        "`purlin observe`, which asks in real time",
    ),
    (
        "crates/term/src/gc/steps.rs",
        "off in the race finder: `STEPS_ABOVE_WORDS`",
    ),
    ("crates/term/src/stress.rs", "the seed of a stress run"),
    (
        "crates/term/src/atom_collection.rs",
        "how long a cycle took, which no program sees",
    ),
    (
        "crates/term/src/atom_room.rs",
        "pauses between cycles, which no program sees",
    ),
    (
        "crates/term/src/snapshot.rs",
        "the patience with threads that do not stop",
    ),
    (
        "crates/kernel/src/accounting/recorder.rs",
        "off in the race finder, which records everything",
    ),
];

/// The node's clock (`kernel/src/os/clock.rs`) decides what a program sees, so that virtual time
/// decides it for the race finder.
#[test]
fn nodes_have_one_clock() {
    let node = [
        "term", "native", "natives", "kernel", "interp", "ets", "io", "nif", "dist", "runtime",
    ];
    let places = node.map(|c| format!("crates/{c}/src"));
    let places = places.each_ref().map(String::as_str);
    let mut found = Vec::new();
    let mut used = HashSet::new();
    for (file, text) in files(&places, |f| f.ends_with(".rs") && !f.contains("/os/")) {
        let text = blank(&text);
        for (n, line) in text.lines().enumerate() {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            if !words.any(|w| w == "Instant" || w == "SystemTime") {
                continue;
            }
            match REAL_TIME.iter().find(|row| row.0 == file) {
                Some(row) => {
                    used.insert(row.0);
                }
                None => found.push(format!("{file}:{}", n + 1)),
            }
        }
    }
    only_falls("uses of real time outside `os`", &found, 0);
    let unused = REAL_TIME.iter().filter(|row| !used.contains(row.0));
    let unused: Vec<String> = unused.map(|row| row.0.to_owned()).collect();
    only_falls("files that use real time no longer", &unused, 0);
}

/// The folders of the kernel refer to lower ones only.
#[test]
fn folders_of_the_kernel_refer_to_lower_ones() {
    let (_, layers, _) = LAYERS.iter().find(|l| l.0 == "kernel").expect("the kernel");
    let folders: Vec<&str> = layers
        .iter()
        .copied()
        .filter(|l| !l.contains("::"))
        .collect();
    let place = |file: &str| {
        let folder = file.split("::").next().unwrap_or_default();
        folders.iter().position(|f| *f == folder)
    };
    let source = root().join("kernel/src");
    let loose = fs::read_dir(&source).expect("a folder").flatten();
    let loose = loose.filter(|e| e.path().is_file() && e.file_name() != "lib.rs");
    assert_eq!(loose.count(), 0, "the kernel has folders only");
    let tree = Tree::read(&source);
    let back = tree
        .arrows()
        .into_iter()
        .filter(|(from, to)| place(from) < place(to));
    let found: Vec<String> = back.map(|(from, to)| format!("{from} -> {to}")).collect();
    only_falls(
        "references between folders of the kernel that run back",
        &found,
        0,
    );
}

/// A name that three files have says little. `mod.rs`, `lib.rs`, `main.rs` and the file of each
/// processor are named by their folders, and so are tests and examples by the crate they belong
/// to.
#[test]
fn names_of_files_are_few_times_the_same() {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, _) in rust().into_iter().filter(|f| f.0.contains("/src/")) {
        let name = file.rsplit('/').next().unwrap_or_default().to_string();
        if !["mod.rs", "lib.rs", "main.rs", "x64.rs", "a64.rs"].contains(&name.as_str()) {
            names.entry(name).or_default().push(file);
        }
    }
    let often = names.into_iter().filter(|(_, files)| files.len() >= 3);
    let found: Vec<String> = often
        .map(|(n, files)| format!("{n}: {}", files.join(" ")))
        .collect();
    only_falls("names that three files have", &found, SAME_NAMES);
}
const SAME_NAMES: usize = 9;

/// Words that the glossary (`docs/words.md`) has better ones for, in comments and documents.
#[test]
fn words_that_get_rarer() {
    const WORDS: &[(&str, usize)] = &[
        ("told", 6),
        ("tells of", 0),
        ("whoever", 0),
        ("somebody", 5),
        ("nobody", 186),
        ("reckon", 0),
        ("reckoned", 0),
        ("by lot", 0),
        ("led on", 0),
        ("leave away", 0),
        ("left away", 0),
        ("thereby", 0),
        ("what it is for", 0),
        ("held against", 0),
        ("hangs on", 0),
        ("goes on with", 0),
        ("comes by", 0),
        ("anew", 20),
    ];
    let mut prose: Vec<(String, String)> = documents();
    prose.retain(|d| !d.0.ends_with("docs/words.md"));
    // Reasons why cases of other people's suites fail.
    prose.extend(files(&["tests"], |f| f.contains("/known-failures")));
    for (file, text) in rust() {
        let all: Vec<String> = comments(&text).into_iter().map(|c| c.1).collect();
        prose.push((file, all.join("\n")));
    }
    let mut counts = vec![0; WORDS.len()];
    for (_, text) in &prose {
        let text = text.to_lowercase();
        let words: Vec<&str> = text
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\''))
            .filter(|w| !w.is_empty())
            .collect();
        for ((phrase, _), count) in WORDS.iter().zip(&mut counts) {
            let phrase: Vec<&str> = phrase.split(' ').collect();
            *count += words.windows(phrase.len()).filter(|w| *w == phrase).count();
        }
    }
    let mut wrong = Vec::new();
    for ((phrase, bound), count) in WORDS.iter().zip(counts) {
        println!("(\"{phrase}\", {count}),");
        if count > *bound {
            wrong.push(format!(
                "\"{phrase}\" stands {count} times, and may {bound} times"
            ));
        } else if count < *bound {
            wrong.push(format!(
                "\"{phrase}\" stands {count} times only: lower its bound {bound}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An atom that has a row among the presets is a constant: a file that makes its own at run time
/// pays for a look-up.
#[test]
fn lazy_atoms_are_no_preset_ones() {
    let source = fs::read_to_string(top().join("crates/isa/src/atoms.rs")).expect("reads");
    let presets: BTreeSet<&str> = source
        .split(", \"")
        .skip(1)
        .filter_map(|part| part.split_once("\")").map(|(text, _)| text))
        .collect();
    assert!(presets.len() > 100, "only {} rows", presets.len());
    let mut wrong = Vec::new();
    for (file, text) in rust() {
        for block in text.split("lazy_atoms! {").skip(1) {
            let block = block.split("\n}").next().unwrap_or_default();
            for row in block.split(';') {
                let text = row.split('"').nth(1).unwrap_or_default();
                if presets.contains(text) {
                    wrong.push(format!("{file}: {text}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "preset atoms: {}", wrong.join("\n"));
}

/// The files of a folder share an atom: the lowest of those that name it has it.
#[test]
fn lazy_atoms_stand_once_in_a_folder() {
    let mut homes: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (file, text) in rust().into_iter().filter(|f| f.0.contains("/src/")) {
        let folder = file.rsplit_once('/').map_or("", |f| f.0).to_string();
        for block in text.split("lazy_atoms! {\n").skip(1) {
            for line in block.lines().take_while(|l| *l != "}") {
                if let Some((_, rest)) = line.split_once(" = \"")
                    && let Some((atom, _)) = rest.split_once('"')
                {
                    let key = (folder.clone(), atom.to_string());
                    homes.entry(key).or_default().push(file.clone());
                }
            }
        }
    }
    assert!(homes.len() > 300, "lazy atoms have another form");
    let twice = homes.into_iter().filter(|(_, files)| files.len() > 1);
    let found: Vec<String> = twice
        .map(|((_, atom), files)| format!("{atom}: {}", files.join(" ")))
        .collect();
    only_falls("lazy atoms that files of a folder repeat", &found, 0);
}

#[test]
fn traits_of_a_crate_have_names_of_their_own() {
    let mut found = Vec::new();
    for (name, _) in CRATES {
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for (file, text) in files(&[&format!("crates/{name}/src")], |f| f.ends_with(".rs")) {
            for line in blank(&text).lines() {
                let Some(name) = trait_in(line) else {
                    continue;
                };
                if let Some(other) = seen.insert(name.to_string(), file.clone()) {
                    found.push(format!("{name}: {other} and {file}"));
                }
            }
        }
    }
    only_falls("traits of one crate with the same name", &found, 0);
}

/// The name of the trait that a line defines.
fn trait_in(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    for word in ["pub(crate) ", "pub(super) ", "pub ", "unsafe "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let rest = rest.strip_prefix("trait ")?;
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .next()
}

/// A file with atomics stronger than relaxed says in a section `# Orderings` which write pairs with
/// which read.
#[test]
fn strong_orderings_have_a_section() {
    let strong = [
        "Acquire",
        "AcqRel",
        "SeqCst",
        "Ordering::Release",
        "Release)",
        "fence(Ordering",
    ];
    let mut files = 0;
    let mut found = Vec::new();
    for (file, text) in rust().into_iter().filter(|f| f.0.contains("/src/")) {
        let code = super::code(&text);
        if file.starts_with("crates/models/") || !strong.iter().any(|w| code.contains(w)) {
            continue;
        }
        files += 1;
        if !text.contains("# Orderings") {
            found.push(file);
        }
    }
    assert!(files > 50, "orderings have another form");
    only_falls(
        "files with strong orderings that say nothing of them",
        &found,
        0,
    );
}

/// The reason of unsafe code stands with it, and not somewhere above.
#[test]
fn reasons_of_unsafe_code_stand_with_it() {
    let mut found = Vec::new();
    for (file, text) in rust().into_iter().filter(|f| f.0.contains("/src/")) {
        for (n, line) in text.lines().enumerate() {
            let Some((_, reason)) = line.split_once("// SAFETY: ") else {
                continue;
            };
            let elsewhere = ["as above", "as below", "as in ", "as for "];
            if elsewhere.iter().any(|w| reason.starts_with(w)) {
                found.push(format!("{file}:{}", n + 1));
            }
        }
    }
    only_falls("unsafe code whose reason stands elsewhere", &found, 0);
}

/// Documents name no flag of Purlin's own that `erl` does not have, and have each that it has.
#[test]
fn documents_name_the_flags_that_exist() {
    let flags = fs::read_to_string(top().join("crates/options/src/flags.rs")).expect("a file");
    let is_letter = |c: char| c.is_ascii_lowercase();
    let exist: BTreeSet<&str> = flags
        .split('"')
        .filter(|s| {
            s.strip_prefix('F')
                .is_some_and(|s| !s.is_empty() && s.chars().all(is_letter))
        })
        .collect();
    assert!(exist.len() > 10, "flags have another form");
    let mut named = BTreeSet::new();
    let mut found = Vec::new();
    for (file, text) in documents() {
        for (at, _) in text.match_indices("+F") {
            let rest = &text[at + 1..];
            let end = 1 + rest[1..].find(|c| !is_letter(c)).unwrap_or(rest.len() - 1);
            match exist.get(&rest[..end]) {
                Some(flag) => _ = named.insert(*flag),
                None if end > 1 => found.push(format!("{file}: +{}", &rest[..end])),
                None => {}
            }
        }
    }
    only_falls("flags that erl does not have", &found, 0);
    let missing: Vec<String> = exist.difference(&named).map(|f| f.to_string()).collect();
    only_falls("flags that no document names", &missing, 0);
}

#[test]
fn make_help_lists_each_target() {
    let text = fs::read_to_string(top().join("Makefile")).expect("a Makefile");
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-%".contains(c);
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else {
            continue;
        };
        let is_target = !name.is_empty() && name.chars().all(is_name) && !rest.starts_with('=');
        if is_target && !rest.contains("## ") {
            found.push(name.to_string());
        }
    }
    only_falls("targets that make help does not list", &found, 0);
    let help = text.lines().find(|l| l.contains("grep -hE"));
    assert!(
        help.is_some_and(|h| h.contains("'^[a-z][a-z0-9%-]*:.*##'")),
        "help has another form"
    );
}

#[test]
fn contributing_names_each_file_of_models() {
    let text = fs::read_to_string(top().join("CONTRIBUTING.md")).expect("a document");
    let all = files(&["crates/models/tests"], |f| f.ends_with(".rs"));
    let names = all.iter().filter_map(|f| f.0.rsplit('/').next());
    let missing = names.filter(|n| !text.contains(&format!("`{n}`")));
    let found: Vec<String> = missing.map(str::to_string).collect();
    only_falls("models that CONTRIBUTING.md does not name", &found, 0);
}

/// Each script is run by a target of make, by one of the scripts `test`, `bench` and `demo`, or by
/// a script that is.
#[test]
fn each_script_has_a_way_to_be_run() {
    let scripts = files(&["scripts"], |_| true);
    let read = |f: &str| fs::read_to_string(top().join(f)).expect("a file");
    let mut todo: Vec<String> = ["Makefile", "test", "bench", "demo"].map(&read).to_vec();
    let mut left: BTreeMap<&str, &str> = BTreeMap::new();
    for (file, text) in &scripts {
        left.insert(file.strip_prefix("scripts/").unwrap_or(file), text);
    }
    while let Some(text) = todo.pop() {
        // The lines of a script that are no comments.
        let code: Vec<&str> = text
            .lines()
            .filter(|l| !l.trim_start().starts_with('#'))
            .collect();
        let code = code.join("\n");
        let named = |s: &&&str| {
            code.match_indices(**s).any(|(at, _)| {
                let other = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
                !code[..at].ends_with(other) && !code[at + s.len()..].starts_with(other)
            })
        };
        let next: Vec<&str> = left.keys().filter(named).copied().collect();
        for s in next {
            todo.extend(left.remove(s).map(str::to_string));
        }
    }
    let found: Vec<String> = left.keys().map(|s| s.to_string()).collect();
    only_falls("scripts that nothing runs", &found, 0);
}

/// Cases of OTP's and Elixir's suites that fail here and not on stock. Each line has a reason.
#[test]
fn known_failures_get_fewer() {
    const BOUNDS: &[(&str, usize)] = &[
        ("tests/elixir/known-failures.txt", 7),
        ("tests/otp/known-failures-compiler.txt", 1),
        ("tests/otp/known-failures-emulator.txt", 50),
        ("tests/otp/known-failures-kernel.txt", 4),
        ("tests/otp/known-failures-stdlib.txt", 10),
        ("tests/programs/known_failures.txt", 0),
    ];
    let all = files(&["tests"], |f| {
        let name = f.rsplit('/').next().unwrap_or_default();
        name.starts_with("known-failures") || name.starts_with("known_failures")
    });
    let names: Vec<&str> = all.iter().map(|f| f.0.as_str()).collect();
    assert_eq!(
        names,
        BOUNDS.iter().map(|b| b.0).collect::<Vec<_>>(),
        "the lists that there are"
    );
    for ((file, text), (_, bound)) in all.iter().zip(BOUNDS) {
        let rows = text
            .lines()
            .filter(|l| !l.starts_with('#') && !l.trim().is_empty());
        let rows: Vec<String> = rows.map(str::to_string).collect();
        only_falls(file, &rows, *bound);
        for row in &rows {
            assert!(row.split(' ').count() > 3, "{file}: no reason: {row}");
            assert!(
                !["there is no native code", "needs distribution"]
                    .iter()
                    .any(|r| row.contains(r)),
                "{file}: not so: {row}"
            );
        }
    }
}

/// The functions above find what they look for.
#[test]
fn what_is_counted_is_found() {
    let text =
        "fn a(x: [u8; 3]) {\n  let s = \"}\"; // }\n  { '{' }\n}\nfn b();\nunsafe fn c() {}\n";
    let all = functions(&blank(text));
    assert_eq!(all, [("a".to_string(), 0, 3), ("c".to_string(), 5, 5)]);
    for line in [
        "const ENV: i32 = 5 * 8 - 2;",
        "a.load(R, at(B, -4));",
        "at(R, 3 * 8)",
        "a.load(K, at(K, 8 - LIST));",
    ] {
        assert!(has_a_layout(line), "{line}");
    }
    assert!(!has_a_layout("at(HP, words * 8)"));
    assert!(names_a_processor("a.mov(RCX, R);"));
    assert!(names_a_processor("use crate::asm::x64::Asm;"));
    assert!(!names_a_processor("a.mov(R, X_REGS[0]); // R100"));
    let unsafe_ones = "a();\nlet x = unsafe { f() };\n// unsafe {\nunsafe fn g() {}\n";
    assert_eq!(unsafe_blocks(unsafe_ones), [1]);
    for line in [
        "unsafe { lead(pc).store(0, Release) }",
        "entries::lead(pc)",
        "(lead(pc))",
    ] {
        assert!(calls_lead(line), "{line}");
    }
    for line in ["e.lead(to);", "fn lead(pc: u64) {", "clear_lead(pc)"] {
        assert!(!calls_lead(line), "{line}");
    }
    assert_eq!(
        trait_in("pub(crate) unsafe trait Owner: Sync {"),
        Some("Owner")
    );
    assert_eq!(trait_in("impl Owner for A {"), None);
}

/// The compiler holds what ARCHITECTURE.md says of crates without unsafe code.
#[test]
fn crates_without_unsafe_code_forbid_it() {
    let text = std::fs::read_to_string(top().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let mut crates = 0;
    for section in text.split("\n### `").skip(1) {
        let unwrapped = section.split_whitespace().collect::<Vec<_>>().join(" ");
        if !unwrapped.contains("no unsafe code") {
            continue;
        }
        let path = section.split('`').next().unwrap_or_default();
        let root = std::fs::read_to_string(top().join(path).join("src/lib.rs")).expect(path);
        assert!(root.contains("#![forbid(unsafe_code)]"), "{path}");
        crates += 1;
    }
    assert!(crates >= 5, "the sections have another form: {crates}");
}
