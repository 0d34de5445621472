//! Checks that references run one way: between crates, and between the folders of a crate. Numbers
//! that may only fall are in `tidy/gates.rs`.
//!
//! A reference that runs back fails here with the two files at its ends. `cargo test -p purlin
//! --test tidy -- --nocapture` prints all that there are.

#[path = "tidy/gates.rs"]
mod gates;
#[path = "tidy/text.rs"]
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates, and which of the others each may use.
const CRATES: &[(&str, &[&str])] = &[
    ("isa", &[]),
    ("messages", &[]),
    ("options", &["isa", "messages"]),
    ("explore", &["messages", "world"]),
    ("term", &["isa"]),
    ("loader", &["isa", "messages", "term"]),
    ("jit", &["isa", "term"]),
    ("native", &["isa", "term"]),
    ("natives", &["isa", "term", "native"]),
    (
        "kernel",
        &[
            "explore", "isa", "messages", "options", "term", "loader", "native", "world",
        ],
    ),
    ("interp", &["isa", "term", "jit", "native", "kernel"]),
    ("ets", &["term", "native", "kernel"]),
    ("io", &["term", "native", "kernel"]),
    ("nif", &["isa", "term", "native", "kernel", "io"]),
    ("dist", &["term", "native", "kernel", "io"]),
    (
        "runtime",
        &[
            "explore", "isa", "messages", "term", "loader", "jit", "native", "natives", "kernel",
            "interp", "ets", "io", "nif", "dist",
        ],
    ),
    (
        "diagnostics",
        &["messages", "term", "kernel", "ets", "io", "dist", "runtime"],
    ),
    ("measure", &[]),
    ("world", &[]),
    (
        "purlin",
        &["loader", "measure", "messages", "runtime", "diagnostics"],
    ),
];

/// For crates with layers: their folders and files, lower ones first, and the number of references
/// between files that may run back up. These numbers may only fall.
const LAYERS: &[(&str, &[&str], usize)] = &[
    (
        "isa",
        &[
            "atoms",
            "context",
            "genops",
            "helpers",
            "ops",
            "release",
            "contract",
            "value",
            "bit_fields",
            "cache_lines",
            "codec",
            "types",
            "view",
            "known",
            "natives",
        ],
        1,
    ),
    (
        "term",
        &[
            "say",
            "errno",
            "counts",
            "refusal",
            "ending",
            "prefetch",
            "short_bytes",
            "pressure",
            "test_modes",
            "payer",
            "stress",
            "delays",
            "plants",
            "sync",
            "readers",
            "word",
            "am",
            "sys",
            "atom_room",
            "atom_names",
            "atom",
            "snapshot",
            "atom_collection",
            "background_free",
            "fun",
            "refcount",
            "small_blocks",
            "fence",
            "node",
            "record",
            "release",
            "blocks",
            "gc::sizes",
            "binary_blocks",
            "magic",
            "bin",
            "layout",
            "parts",
            "hash",
            "compare",
            "prefix",
            "off_heap",
            "alloc",
            "print",
            "arith",
            "definition",
            "iolist_sample",
            "iolist",
            "map",
            "region",
            "region_set",
            "sent_terms",
            "unassigned_ids",
            "bits",
            "copy",
            "frag",
            "etf",
            "heap",
            "heap_halves",
            "retaining_paths",
            "reach",
            "preview",
            "verify",
            "gc",
            "packed",
            "graph",
        ],
        3,
    ),
    (
        "loader",
        &[
            "text", "error", "reader", "iff", "file", "debug", "generic", "disasm", "lower",
        ],
        1,
    ),
    (
        "jit",
        &[
            "asm", "machine", "decode", "operands", "commands", "ranges", "contexts", "numbers",
            "parts", "searches", "trees", "stubs", "chaos", "compiler",
        ],
        0,
    ),
    (
        "native",
        &[
            "cx",
            "modules",
            "coverage_counts",
            "hashing",
            "bif",
            "errors",
            "exports",
            "ids",
            "reschedule",
            "native_state",
            "nif",
        ],
        0,
    ),
    (
        "options",
        &[
            "values",
            "groups",
            "memory",
            "cpus",
            "topology",
            "alloc",
            "otp",
            "budget_flag",
            "flags",
            "erlexec",
        ],
        0,
    ),
    (
        "world",
        &[
            "errno",
            "streams",
            "protocol",
            "clock",
            "event_queue",
            "descriptors",
            "name_server",
            "disk::sparse",
            "disk::inodes",
            "disk::durability",
            "disk::walk",
            "disk::naming",
            "disk::opened",
            "disk",
            "net::states",
            "net::links",
            "net::sockets",
            "net::sending",
            "net::udp",
            "net::tcp",
            "net::delivery",
            "net::readiness",
            "net",
        ],
        0,
    ),
    (
        "explore",
        &[
            "checksum",
            "numbers",
            "json",
            "operation",
            "failing",
            "deviation",
            "premises",
            "base",
            "strategy",
            "sampling",
            "plan",
            "shrink",
            "hang",
            "fingerprint",
            "output",
            "fresh_dir",
            "log",
            "recording",
            "account",
            "steps",
            "story",
            "processes",
            "kernel",
            "run",
            "sweep",
            "request",
            "branch",
            "explorer",
            "report",
            "cluster",
            "file",
            "search",
            "sweeping",
        ],
        0,
    ),
    (
        "kernel",
        &[
            "sync",
            "os",
            "message",
            "process",
            "accounting",
            "poll",
            "outside",
            "events",
            "sched",
            "post",
            "timer",
            "system",
            "collect",
            "signal",
            "code",
            "lifecycle",
            "explore",
            "threads",
        ],
        0,
    ),
    (
        "interp",
        &[
            "operands",
            "room",
            "instr",
            "exc",
            "handler",
            "bits",
            "call",
            "catch",
            "floats",
            "lines",
            "maps",
            "marks",
            "skip",
            "messages",
            "records",
            "bits_build",
            "fast",
            "traced",
            "apply",
            "arith",
            "libraries",
            "natives",
            "shortcuts",
            "funs",
            "hibernation",
            "compiled",
            "perf",
            "contract",
            "dispatch",
            "exploring",
        ],
        2,
    ),
    (
        "ets",
        &[
            "fixation",
            "object",
            "matchspec",
            "try_lock",
            "ahead",
            "hash",
            "tree",
            "natives",
        ],
        0,
    ),
    (
        "io",
        &[
            "embedded",
            "os",
            "blocking",
            "iovec",
            "gather",
            "port",
            "file",
            "net",
            "terminal",
            "port::drivers",
            "port::open",
        ],
        0,
    ),
    (
        "nif",
        &[
            "threads",
            "abi",
            "env",
            "terms",
            "ioq",
            "send",
            "binary",
            "map_functions",
            "resource",
            "library",
            "select",
            "fault",
            "tracer",
            "load",
            "system",
            "driver",
        ],
        5,
    ),
    (
        "dist",
        &[
            "flags",
            "share",
            "frame",
            "control",
            "send_queue",
            "observers",
            "full",
            "table",
            "signals",
            "input",
            "distribution_natives",
        ],
        4,
    ),
    (
        "runtime",
        &[
            "diagnostics",
            "backtrace",
            "trace",
            "natives",
            "compiled",
            "outside",
            "schedules",
            "start",
        ],
        0,
    ),
    (
        "diagnostics",
        &[
            "http",
            "fnv",
            "json",
            "protobuf",
            "explain",
            "metrics",
            "otlp",
            "recorder",
            "observe",
            "crash_dump",
            "break_handler",
        ],
        0,
    ),
];

/// Maximum number of files in a cycle of references within a crate.
const LARGEST_CIRCLE: usize = 6;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn crates_use_only_those_below() {
    for (name, allowed) in CRATES {
        let toml = fs::read_to_string(root().join(name).join("Cargo.toml")).expect("a manifest");
        let used: BTreeSet<&str> = toml
            .lines()
            .take_while(|l| !l.starts_with("[build-dependencies]"))
            .filter_map(|l| l.strip_prefix("purlin-")?.split('.').next())
            .collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        let more: Vec<_> = used.difference(&allowed).collect();
        assert!(more.is_empty(), "{name} may not use {more:?}");
    }
}

/// Files with messages of Purlin's own that have no code, and why.
const WITHOUT_CODES: &[(&str, &str)] = &[
    ("messages/src/lib.rs", "the place where codes are added"),
    ("purlin/src/failure.rs", "lines that only inform"),
    ("purlin/src/observe/server.rs", "the beginning is taken off"),
    (
        "diagnostics/src/metrics/mod.rs",
        "the address of the metrics",
    ),
    (
        "diagnostics/src/recorder/mod.rs",
        "the record of the last run",
    ),
    ("explore/src/search.rs", "a replay went as recorded"),
    (
        "kernel/src/explore/system.rs",
        "how far a stopped search came",
    ),
    ("kernel/src/explore/deadlock.rs", "the finding of a search"),
    ("term/src/atom_collection.rs", "the emulator's own"),
    ("term/src/fence.rs", "the report of a debugging aid"),
    ("term/src/gc/invariants.rs", "the report of a debugging aid"),
    ("term/src/refusal.rs", "the emulator's own, as stock's"),
    ("term/src/say.rs", "the emulator's own"),
    ("term/src/sys.rs", "the emulator's own"),
    ("term/src/verify.rs", "the report of a debugging aid"),
    (
        "term/src/verify/objects.rs",
        "the report of a debugging aid",
    ),
];

#[test]
fn codes_of_messages_are_used_once() {
    let mut uses: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut without = BTreeSet::new();
    for (name, _) in CRATES {
        for (path, text) in sources(name) {
            let from = path.find(&format!("{name}/src/")).unwrap_or_default();
            let file = path[from..].to_string();
            let program = text.split("mod tests {").next().unwrap_or_default();
            if program.contains("\"purlin: ") {
                without.insert(file.clone());
            }
            for row in purlin_messages::TABLE {
                let name = format!("messages::{}", row.name);
                for (at, found) in program.match_indices(&name) {
                    let next = program[at + found.len()..].chars().next();
                    if !next.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                        uses.entry(row.name).or_default().push(file.clone());
                    }
                }
            }
        }
    }
    for row in purlin_messages::TABLE {
        let uses = uses.get(row.name).map_or(&[][..], Vec::as_slice);
        assert!(
            uses.len() == 1,
            "{} {}: used in {uses:?}",
            row.code,
            row.name
        );
    }
    let allowed: BTreeSet<String> = WITHOUT_CODES.iter().map(|w| w.0.to_string()).collect();
    let more: Vec<_> = without.symmetric_difference(&allowed).collect();
    assert!(
        more.is_empty(),
        "messages without codes, or no longer: {more:?}"
    );
}

#[test]
fn arrows_within_crates_run_one_way() {
    for (name, _) in CRATES {
        let tree = Tree::read(&root().join(name).join("src"));
        let circle = largest_circle(&tree.arrows());
        if circle.len() > 1 {
            println!(
                "{name}: circle of {} files: {}",
                circle.len(),
                circle.join(" ")
            );
        }
        assert!(
            circle.len() <= LARGEST_CIRCLE,
            "{name}: a circle of {} files",
            circle.len()
        );
    }
    for (name, layers, most) in LAYERS {
        let tree = Tree::read(&root().join(name).join("src"));
        // A file that is listed itself has its own layer, other files that of their folder.
        let place = |file: &str| {
            let mut path = file;
            loop {
                if let Some(at) = layers.iter().position(|l| *l == path) {
                    return Some(at);
                }
                path = path.rsplit_once("::")?.0;
            }
        };
        for file in tree.files.keys().filter(|f| !f.is_empty()) {
            assert!(place(file).is_some(), "{name}: {file} has no layer");
        }
        let back: Vec<String> = tree
            .arrows()
            .iter()
            .filter(|(from, to)| place(from) < place(to))
            .map(|(from, to)| format!("{from} -> {to}"))
            .collect();
        for b in &back {
            println!("{name}: {b}");
        }
        assert!(
            back.len() <= *most,
            "{name}: {} arrows run back",
            back.len()
        );
    }
}

/// The journeys of ARCHITECTURE.md are calls that exist.
///
/// A step is a path in backquotes followed by a function in brackets. `->` between two steps says
/// that the first calls the second by name, itself or through functions in its file. `=>` is a call
/// through a table, a trait, a queue or a pointer, where both functions must exist.
#[test]
fn journeys_are_calls_that_exist() {
    let text = fs::read_to_string(root().join("../ARCHITECTURE.md")).expect("a map");
    let section = text
        .split("\n## ")
        .find(|s| s.contains("journeys\n"))
        .expect("a section of journeys");
    let mut wrong = Vec::new();
    let mut calls = 0;
    let section = section.replace(";", ". ").replace(".\n", ". ");
    for chain in section.split("\n- ").skip(1).flat_map(|j| j.split(". ")) {
        if !chain.contains('`') {
            continue;
        }
        let mut last: Option<(String, String)> = None;
        for (by_name, step) in steps(chain) {
            let Some((path, function)) = step else {
                wrong.push(format!("no path and function: {}", chain.trim()));
                break;
            };
            let Ok(source) = fs::read_to_string(root().join("..").join(&path)) else {
                wrong.push(format!("no file {path}"));
                break;
            };
            let bodies = functions(&code(&source));
            if !bodies.contains_key(&function) {
                wrong.push(format!("no function {function} in {path}"));
            }
            if let Some((from, caller)) = last.filter(|_| by_name) {
                calls += 1;
                let source = fs::read_to_string(root().join("..").join(&from)).unwrap_or_default();
                if !calls_by_name(&functions(&code(&source)), &caller, &function) {
                    wrong.push(format!("{caller} in {from} doesn't call {function}"));
                }
            }
            last = Some((path, function));
        }
    }
    println!("{calls} calls of journeys");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(calls > 20, "{calls} calls: the section has another form");
}

/// The row of an op that ARCHITECTURE.md shows is in the table.
#[test]
fn the_row_that_is_shown_is_in_the_table() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a file");
    let (map, table) = (read("../ARCHITECTURE.md"), read("isa/src/ops.rs"));
    let mut rows = map.lines().map(str::trim).filter(|l| l.ends_with("\";"));
    let row = rows.next().expect("a row");
    assert!(table.contains(row), "no such row: {row}");
}

/// The steps of a chain: whether an arrow of calls by name leads to it, path and function.
fn steps(chain: &str) -> Vec<(bool, Option<(String, String)>)> {
    let mut all = Vec::new();
    let mut rest = chain;
    let mut by_name = false;
    loop {
        let arrow = [rest.find("->"), rest.find("=>")];
        let end = arrow.into_iter().flatten().min().unwrap_or(rest.len());
        let mut quoted = rest[..end].split('`').skip(1).step_by(2);
        let path = quoted.find(|q| q.ends_with(".rs"));
        let step = path.zip(quoted.next()).map(|(path, function)| {
            let path = match path.starts_with("crates/") {
                true => path.to_string(),
                false => format!("crates/kernel/src/{path}"),
            };
            (path, function.to_string())
        });
        all.push((by_name, step));
        if end == rest.len() {
            return all;
        }
        by_name = rest[end..].starts_with("->");
        rest = &rest[end + 2..];
    }
}

/// The functions and macros of a file with their bodies, combined by name. `op!(name = ...)` makes
/// a handler.
fn functions(text: &str) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for head in ["fn ", "op!(", "macro_rules! "] {
        for (at, _) in text.match_indices(head) {
            let rest = &text[at + head.len()..];
            let name: String = rest
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            let mut inside = 0;
            let body = rest.char_indices().find_map(|(i, c)| {
                inside += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
                (c == '{' && inside <= 0 || c == ';' && inside == 0).then_some(i)
            });
            let Some(body) = body.filter(|_| !name.is_empty() && name != "fn") else {
                continue;
            };
            let mut depth = 0;
            let end = rest[body..].char_indices().find_map(|(i, c)| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                (depth == 0).then_some(body + i + 1)
            });
            all.entry(name)
                .or_default()
                .push_str(&rest[body..end.unwrap_or(rest.len())]);
        }
    }
    all
}

/// Whether a function names another one, directly or through functions of its file that it names.
fn calls_by_name(bodies: &BTreeMap<String, String>, caller: &str, called: &str) -> bool {
    let mut seen = BTreeSet::from([caller]);
    let mut todo = vec![caller];
    while let Some(f) = todo.pop() {
        let Some(body) = bodies.get(f) else { continue };
        for word in body.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
            if word == called {
                return true;
            }
            if let Some((name, _)) = bodies.get_key_value(word)
                && seen.insert(name)
            {
                todo.push(name);
            }
        }
    }
    false
}

#[test]
fn layouts_are_written_in_their_home() {
    for (name, _) in CRATES.iter().filter(|c| !["isa", "term"].contains(&c.0)) {
        let tree = Tree::read(&root().join(name).join("src"));
        let mut found = 0;
        for (file, text) in &tree.files {
            for line in text.lines().filter(|l| knows_a_layout(l)) {
                println!("{name}: {file}: {}", line.trim());
                found += 1;
            }
        }
        assert!(found == 0, "{name}: {found} numbers of layouts");
    }
}

/// The macros of the standard library that write to standard output or standard error panic if that
/// is impossible. The runtime uses `purlin_term::say` instead, the command line `failure::say` and
/// `process::print`.
#[test]
fn nobody_panics_for_want_of_a_reader() {
    let macros = ["print!(", "println!(", "eprint!(", "eprintln!(", "dbg!("];
    let mut found = Vec::new();
    for (name, _) in CRATES {
        let tree = Tree::read(&root().join(name).join("src"));
        for (file, text) in &tree.files {
            let written = |l: &&str| {
                macros.iter().any(|m| {
                    l.match_indices(m).any(|(at, _)| {
                        !l[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
                    })
                })
            };
            found.extend(
                text.lines()
                    .filter(written)
                    .map(|l| format!("{name}: {file}: {l}")),
            );
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Operands of an instruction are read by the names in its row (`crates/jit/src/operands.rs`), and
/// so are the members of its list: the words of a list are private to that file.
#[test]
fn templates_read_operands_by_name() {
    let tree = Tree::read(&root().join("jit").join("src"));
    let mut found = 0;
    for (file, text) in &tree.files {
        for line in text.lines().filter(|l| reads_by_index(l)) {
            println!("{file}: {}", line.trim());
            found += 1;
        }
    }
    assert!(found == 0, "{found} operands are read by their index");
}

/// Whether a line takes an operand, or a word of a list, by its number.
fn reads_by_index(line: &str) -> bool {
    // The type itself indexes its operands.
    if line.contains("self.operands[..") {
        return false;
    }
    ["args", "args()", "operands", "operands()", "list", "words"]
        .iter()
        .flat_map(|name| {
            ["[", ".get(", ".iter().nth(", ".first()", ".last()"].map(|f| format!("{name}{f}"))
        })
        .any(|f| {
            line.match_indices(&f)
                .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
}

/// Whether a line uses a number for a tag or for a word of an object.
fn knows_a_layout(line: &str) -> bool {
    let word = line.match_indices("ptr().add(").any(|(at, call)| {
        let next = line[at + call.len()..].chars().next();
        next.is_some_and(|c| c.is_ascii_digit())
    });
    // Words of objects in machine code. The header is word 0.
    let word = word
        || ["boxed(", " word(", "at(HP"]
            .iter()
            .flat_map(|f| line.split(f).skip(1))
            .any(|call| {
                let n = call.split([',', ')']).nth(1).unwrap_or_default().trim();
                n != "0" && n.parse::<u32>().is_ok()
            });
    // The word before the entry of a function.
    let word = word
        || ["at(A, -", "at(B, -", "at(K, -", "at(R, -"]
            .iter()
            .any(|f| {
                let n = line.split(f).nth(1).and_then(|n| n.chars().next());
                n.is_some_and(|c| c.is_ascii_digit())
            });
    let masks = [
        "if_bits(Cond::Ne, R, 3,",
        "if_bits(Cond::Ne, R, 15,",
        "& 3 ==",
        "& 3 !=",
        "& 15 ==",
        "& 15 !=",
        "& 0x3F ==",
        "& 0x3F !=",
    ];
    word || line.contains("const TAG_") || masks.iter().any(|m| line.contains(m))
}

/// Properties of a native are in its row, and no other file names the native. Its own file may: the
/// native traps to itself or to its parts.
#[test]
fn natives_are_named_in_their_rows_only() {
    // `erlang:apply/2` starts processes of `proc_lib`; it is not a native.
    const ALLOWED: &[(&str, &str)] = &[("kernel/src/explore/stack.rs", "erlang:apply")];
    let all: Vec<(String, String)> = CRATES.iter().flat_map(|(name, _)| sources(name)).collect();
    let natives: BTreeSet<String> = all.iter().flat_map(|(_, text)| native_rows(text)).collect();
    assert!(natives.len() > 600, "the rows have another form");
    let mut wrong = Vec::new();
    for (file, text) in &all {
        let text = text.split("mod tests {").next().unwrap_or_default();
        let own = native_rows(text);
        for name in named_functions(text).filter(|n| !own.contains(n)) {
            let allowed = |(f, n): &(&str, &str)| file.ends_with(f) && *n == name;
            if natives.contains(&name) && !ALLOWED.iter().any(allowed) {
                wrong.push(format!("{file}: {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The natives that have rows in a file, as `module:function`.
fn native_rows(text: &str) -> Vec<String> {
    let kinds = ["Guard \"", "Plain \"", "DirtyIo \"", "DirtyCpu \""];
    let rows = text.lines().filter_map(|l| {
        let rest = kinds.iter().find_map(|k| l.trim_start().strip_prefix(k))?;
        let (module, rest) = rest.split_once("\":\"")?;
        let (function, _) = rest.split_once("\"/")?;
        Some(format!("{module}:{function}"))
    });
    rows.collect()
}

/// The functions that a file names: two strings in a row, `"lists", "reverse"`, or one string,
/// `"lists:reverse/2"`.
fn named_functions(text: &str) -> impl Iterator<Item = String> {
    let code: Vec<&str> = text
        .lines()
        .filter(|l| !l.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n");
    let parts: Vec<&str> = code.split('"').collect();
    let is_name = |s: &str| {
        !s.is_empty()
            && s.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let pairs = parts
        .windows(3)
        .filter(|w| w[1].trim() == "," && is_name(w[0]) && is_name(w[2]))
        .map(|w| format!("{}:{}", w[0], w[2]));
    let whole = parts.iter().filter_map(|s| {
        let (name, arity) = s.split_once('/')?;
        let (module, function) = name.split_once(':')?;
        let is_arity = !arity.is_empty() && arity.chars().all(|c| c.is_ascii_digit());
        (is_name(module) && is_name(function) && is_arity).then(|| name.to_string())
    });
    let all: BTreeSet<String> = pairs.chain(whole).collect();
    all.into_iter()
}

#[test]
fn unsafe_functions_say_what_they_ask() {
    for (name, _) in CRATES {
        let mut unsaid = Vec::new();
        for (at, text) in sources(name) {
            unsaid.extend(unsaid_in(&text, *name == "interp", &at));
        }
        for u in &unsaid {
            println!("{name}: {u}");
        }
        let n = unsaid.len();
        assert!(n == 0, "{name}: {n} unsafe functions ask nothing");
    }
}

/// The paths and texts of a crate's sources.
fn sources(name: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut folders = vec![root().join(name).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).expect("text");
                out.push((path.display().to_string(), text));
            }
        }
    }
    out
}

/// The unsafe functions of a file without a section on safety. Functions of a trait's
/// implementation have the trait's, functions made by a macro the macro's. With `handlers`, those
/// that take a context and an instruction have the contract of handlers.
fn unsaid_in(text: &str, handlers: bool, file: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    // The indentation of the trait implementation that the line is in.
    let mut of_trait: Option<usize> = None;
    for (i, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let begins = code.split(' ').take(2).any(|w| w.starts_with("impl"));
        if of_trait.is_none() && begins && code.contains(" for ") && code.ends_with('{') {
            of_trait = Some(indent);
        } else if code == "}" && of_trait == Some(indent) {
            of_trait = None;
        }
        let is_fn = code
            .split_once("unsafe ")
            .filter(|(before, _)| {
                before.is_empty() || before.starts_with("pub") || *before == "const "
            })
            .is_some_and(|(_, f)| f.starts_with("fn ") || f.starts_with("extern \"C\" fn "));
        if !is_fn || of_trait.is_some() || code.contains("fn $") {
            continue;
        }
        let signature: String = lines[i..].iter().take(4).map(|l| l.trim()).collect();
        let of_handlers = ["cx: &mut Cx,pc:", "cx: *mut Cx,pc:", "cx: &mut Cx,_pc:"];
        let signature = signature.replace(", ", ",");
        if handlers && of_handlers.iter().any(|h| signature.contains(h)) {
            continue;
        }
        let above = lines[..i].iter().rev();
        let said = above
            .take_while(|l| l.trim_start().starts_with("///") || l.trim_start().starts_with("#["))
            .any(|l| l.contains("# Safety"));
        if !said {
            out.push(format!("{file}:{}: {code}", i + 1));
        }
    }
    out
}

/// The files of a crate by their module paths (`a::b`; the root is empty), without comments,
/// strings and tests.
struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    fn read(src: &Path) -> Tree {
        let mut files = BTreeMap::new();
        let mut folders = vec![(src.to_path_buf(), String::new())];
        while let Some((folder, path)) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder").flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let at = |name: &str| match path.as_str() {
                    "" => name.to_string(),
                    path => format!("{path}::{name}"),
                };
                if entry.path().is_dir() {
                    folders.push((entry.path(), at(&name)));
                } else if let Some(stem) = name.strip_suffix(".rs") {
                    let module = match stem {
                        "lib" | "main" | "mod" => path.clone(),
                        stem => at(stem),
                    };
                    let text = fs::read_to_string(entry.path()).expect("text");
                    files.insert(module, code(&text));
                }
            }
        }
        // Files of tests are those of modules that only tests have.
        let tests: Vec<String> = files
            .iter()
            .flat_map(|(module, text)| {
                text.split("#[cfg(test)]").skip(1).filter_map(move |t| {
                    let name = t.trim_start().strip_prefix("mod ")?.split(';').next()?;
                    Some(match module.as_str() {
                        "" => name.to_string(),
                        m => format!("{m}::{name}"),
                    })
                })
            })
            .collect();
        tests.iter().for_each(|t| {
            files.remove(t);
        });
        Tree { files }
    }

    /// References from file to file. A name in the root counts only if it is defined there.
    fn arrows(&self) -> BTreeSet<(String, String)> {
        let mut arrows = BTreeSet::new();
        for (module, text) in self.files.iter().filter(|(m, _)| !m.is_empty()) {
            let mut named = BTreeMap::new();
            for path in uses(text) {
                if let Some((to, rest)) = self.resolve(module, &path) {
                    if rest.is_empty() {
                        let last = path.rsplit("::").find(|s| *s != "self");
                        named.insert(last.unwrap_or_default().to_string(), to.clone());
                    }
                    self.arrow(&mut arrows, module, &to, &rest);
                }
            }
            for path in paths(text) {
                let (first, others) = path.split_once("::").unwrap_or((&path, ""));
                let path = match named.get(first) {
                    Some(to) => format!("crate::{to}::{others}"),
                    None => path.clone(),
                };
                if let Some((to, rest)) = self.resolve(module, &path) {
                    self.arrow(&mut arrows, module, &to, &rest);
                }
            }
        }
        arrows
    }

    fn arrow(&self, all: &mut BTreeSet<(String, String)>, from: &str, to: &str, name: &str) {
        let to = self.home(to, name, 0);
        if from != to && !to.is_empty() {
            all.insert((from.to_string(), to));
        }
    }

    /// The file that a path leads to, and the name after it; `None` if it leads out of the crate.
    fn resolve(&self, from: &str, path: &str) -> Option<(String, String)> {
        let mut parts = path.split("::").filter(|s| !s.is_empty()).peekable();
        let mut at: Vec<&str> = from.split("::").filter(|s| !s.is_empty()).collect();
        match *parts.peek()? {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                while parts.peek() == Some(&"super") {
                    at.pop();
                    parts.next();
                }
            }
            first => {
                at.push(first);
                let known = self.files.contains_key(&at.join("::"));
                at.pop();
                if !known {
                    return None;
                }
            }
        }
        if matches!(parts.peek(), Some(&"crate" | &"self")) {
            parts.next();
        }
        while let Some(next) = parts.peek() {
            at.push(next);
            if !self.files.contains_key(&at.join("::")) {
                at.pop();
                break;
            }
            parts.next();
        }
        let name = parts.next().filter(|n| *n != "self").unwrap_or_default();
        Some((at.join("::"), name.to_string()))
    }

    /// The file that defines a name which `module` re-exports.
    fn home(&self, module: &str, name: &str, depth: usize) -> String {
        if let Some(text) = self.files.get(module)
            && !name.is_empty()
            && depth < 8
        {
            for path in uses(text) {
                if path.rsplit("::").next() == Some(name)
                    && let Some((to, name)) = self.resolve(module, &path)
                    && to != module
                {
                    return self.home(&to, &name, depth + 1);
                }
            }
        }
        module.to_string()
    }
}

/// Code without comments, strings and the bodies of tests.
fn code(text: &str) -> String {
    let mut out = String::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if text[at..].starts_with("//") {
            at += text[at..].find('\n').unwrap_or(bytes.len() - at);
        } else if bytes[at] == b'"' {
            at += 1;
            while at < bytes.len() && bytes[at] != b'"' {
                at += 1 + usize::from(bytes[at] == b'\\');
            }
            at += 1;
        } else if bytes[at] == b'\''
            && (bytes.get(at + 2) == Some(&b'\'') || bytes.get(at + 1) == Some(&b'\\'))
        {
            at += 2;
            at += 1 + text[at + 1..].find('\'').map_or(0, |n| n + 1)
                * usize::from(bytes[at] != b'\'');
        } else {
            let n = text[at..].chars().next().map_or(1, char::len_utf8);
            out.push_str(&text[at..at + n]);
            at += n;
        }
    }
    while let Some(from) = out
        .find("#[cfg(test)]\nmod tests {")
        .or(out.find("#[cfg(test)]\npub mod tests {"))
    {
        let body = from + out[from..].find('{').unwrap_or(0);
        let mut depth = 0;
        let end = out[body..].char_indices().find_map(|(i, c)| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            (depth == 0).then_some(body + i + 1)
        });
        out.replace_range(from..end.unwrap_or(out.len()), "");
    }
    out
}

/// The paths of `use` items, one for each name.
fn uses(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (at, _) in text.match_indices("use ") {
        if text[..at]
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric() || c == '_')
        {
            continue;
        }
        let Some(end) = text[at..].find(';') else {
            continue;
        };
        let mut todo = vec![(String::new(), text[at + 4..at + end].to_string())];
        while let Some((before, item)) = todo.pop() {
            let item = item.split(" as ").next().unwrap_or_default().trim();
            let Some((head, list)) = item.split_once('{') else {
                all.push(format!("{before}{item}").replace(char::is_whitespace, ""));
                continue;
            };
            let before = format!("{before}{head}");
            let list = list.rsplit_once('}').map_or(list, |l| l.0);
            let (mut depth, mut from) = (0, 0);
            for (i, c) in list.char_indices().chain([(list.len(), ',')]) {
                depth += i32::from(c == '{') - i32::from(c == '}');
                if c == ',' && depth == 0 {
                    if !list[from..i].trim().is_empty() {
                        todo.push((before.clone(), list[from..i].to_string()));
                    }
                    from = i + 1;
                }
            }
        }
    }
    all
}

/// Paths of at least two parts.
fn paths(text: &str) -> Vec<String> {
    let inside = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    text.split(|c| !inside(c))
        // A path with such an end is the beginning of a list, which [`uses`] reads.
        .filter(|p| p.contains("::") && !p.starts_with(':') && !p.ends_with(':'))
        .map(str::to_string)
        .collect()
}

/// The largest set of files each of which leads to all others.
fn largest_circle(arrows: &BTreeSet<(String, String)>) -> Vec<String> {
    let reach = |forward: bool, start: &str| {
        let mut seen = BTreeSet::from([start.to_string()]);
        let mut todo = vec![start.to_string()];
        while let Some(at) = todo.pop() {
            for (a, b) in arrows {
                let (from, to) = if forward { (a, b) } else { (b, a) };
                if *from == at && seen.insert(to.clone()) {
                    todo.push(to.clone());
                }
            }
        }
        seen
    };
    let mut left: BTreeSet<String> = arrows.iter().map(|a| a.0.clone()).collect();
    let mut best = Vec::new();
    while let Some(start) = left.first().cloned() {
        let circle: Vec<String> = reach(true, &start)
            .intersection(&reach(false, &start))
            .cloned()
            .collect();
        left.remove(&start);
        for f in &circle {
            left.remove(f);
        }
        if circle.len() > best.len() {
            best = circle;
        }
    }
    best
}
