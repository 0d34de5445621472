//! The table of commands, from which dispatch, `purlin help`, the manual page and shell completions
//! are made.

use std::ffi::OsString;

use purlin_diagnostics::explain::TOPICS;
use purlin_runtime::options::flags::{FLAGS, OTHER_FLAGS};

use super::{
    bench, build, disasm, elixir, erl, erlc, erts, escript, exec, explain, help, measure, observe,
    run, schedules,
};
use crate::context::Context;
use crate::failure::Failure;

pub struct CommandRow {
    pub name: &'static str,
    pub arguments: &'static str,
    pub doc: &'static str,
    /// Whether a link of this name to Purlin acts as this command.
    pub stock: bool,
    /// The words after the command, for completion.
    pub takes: Takes,
    /// The command's own options; those of stock tools are not listed.
    pub options: &'static [OptionRow],
    pub run: fn(&Context, &[OsString]) -> Result<u8, Failure>,
}

/// An option: its name, its argument (empty if none) and what it does.
pub struct OptionRow {
    pub name: &'static str,
    pub argument: &'static str,
    pub doc: &'static str,
}

/// The kind of words after a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A file with one of these extensions.
    Files(&'static [&'static str]),
    /// Another command line.
    Command,
    Folder,
    /// The flags of `erl`.
    Flags,
    /// A process number, or a word of `explain`.
    Explained,
    Process,
    /// A topic of `help`.
    Topics,
    Nothing,
}

const PROGRAMS: Takes = Takes::Files(&["exs", "ex", "erl", "escript", "beam"]);

const fn option(name: &'static str, argument: &'static str, doc: &'static str) -> OptionRow {
    OptionRow {
        name,
        argument,
        doc,
    }
}

const RUNS: OptionRow = option("--runs", "N", "measured runs of each command (10)");
const WARMUP: OptionRow = option(
    "--warmup",
    "N",
    "rounds before them that are not measured (1)",
);
const SHOW: OptionRow = option(
    "--show",
    "",
    "show the output of commands on standard error",
);
const ANY_STATUS: OptionRow = option("--any-status", "", "measure failing commands, too");
const JSON: OptionRow = option("--json", "", "the answer as JSON");
const CSV: OptionRow = option("--csv", "", "a line for each run, with commas");

pub static COMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "run",
        arguments: "FILE [ARGS]",
        doc: "run a program: .exs .ex .erl .escript .beam",
        stock: false,
        takes: PROGRAMS,
        options: &[],
        run: run::run,
    },
    CommandRow {
        name: "erl",
        arguments: "[FLAGS]",
        doc: "the Erlang shell and emulator",
        stock: true,
        takes: Takes::Flags,
        options: &[],
        run: erl::run,
    },
    CommandRow {
        name: "erlc",
        arguments: "[OPTIONS] FILES",
        doc: "the Erlang compiler",
        stock: true,
        takes: Takes::Files(&["erl", "yrl", "xrl", "S", "core"]),
        options: &[],
        run: erlc::run,
    },
    CommandRow {
        name: "escript",
        arguments: "FILE [ARGS]",
        doc: "run an Erlang script",
        stock: true,
        takes: Takes::Files(&[]),
        options: &[],
        run: escript::run,
    },
    CommandRow {
        name: "elixir",
        arguments: "[OPTIONS] FILE",
        doc: "run Elixir scripts and code",
        stock: false,
        takes: Takes::Files(&["exs", "ex"]),
        options: &[],
        run: elixir::elixir,
    },
    CommandRow {
        name: "elixirc",
        arguments: "[OPTIONS] FILES",
        doc: "the Elixir compiler",
        stock: false,
        takes: Takes::Files(&["ex"]),
        options: &[],
        run: elixir::elixirc,
    },
    CommandRow {
        name: "iex",
        arguments: "[OPTIONS]",
        doc: "the Elixir shell",
        stock: false,
        takes: Takes::Files(&["exs", "ex"]),
        options: &[],
        run: elixir::iex,
    },
    CommandRow {
        name: "mix",
        arguments: "TASK",
        doc: "the Elixir build tool",
        stock: false,
        takes: Takes::Files(&[]),
        options: &[],
        run: elixir::mix,
    },
    CommandRow {
        name: "exec",
        arguments: "-- COMMAND [ARGS]",
        doc: "run a command with Purlin as its erl, erlc and escript",
        stock: false,
        takes: Takes::Command,
        options: &[],
        run: exec::run,
    },
    CommandRow {
        name: "erts",
        arguments: "DIR",
        doc: "make a folder for include_erts of mix release and relx",
        stock: false,
        takes: Takes::Folder,
        options: &[],
        run: erts::run,
    },
    CommandRow {
        name: "build",
        arguments: "FILE|PROJECT -o OUT",
        doc: "make one executable of a program and all it needs",
        stock: false,
        takes: Takes::Files(&["exs", "ex", "erl", "escript", "beam"]),
        options: &[
            option("--output", "OUT", "the executable to make; -o for short"),
            option("--apps", "A,B", "further applications to include"),
        ],
        run: build::run,
    },
    CommandRow {
        name: "disasm",
        arguments: "FILE.beam [MODULE:FUNCTION/ARITY]",
        doc: "show the code in a module file",
        stock: false,
        takes: Takes::Files(&["beam"]),
        options: &[
            option("--generic", "", "the instructions of the file"),
            option("--specific", "", "the ops that the interpreter runs"),
            option(
                "--native",
                "",
                "the machine code of all functions, or of the named one",
            ),
            option(
                "--machine",
                "x86-64|aarch64",
                "the machine code of that processor, for --native",
            ),
        ],
        run: disasm::run,
    },
    CommandRow {
        name: "bench",
        arguments: "FILE [ARGS]",
        doc: "measure a program on Purlin and on stock, in turn",
        stock: false,
        takes: PROGRAMS,
        options: &[
            option(
                "--against",
                "stock|DIR",
                "run the file on the stock emulator, too, or on that of another root",
            ),
            RUNS,
            WARMUP,
            SHOW,
            ANY_STATUS,
            JSON,
            CSV,
        ],
        run: bench::run,
    },
    CommandRow {
        name: "explain",
        arguments: "PID [TOPIC] | run FILE",
        doc: "show where memory and copies come from, by line",
        stock: false,
        takes: Takes::Explained,
        options: &[
            option("--top", "N", "entries of each list (10; 1000 at most)"),
            JSON,
            option("--collapsed", "", "stacks as lines, for flame graphs"),
            option("--speedscope", "", "a profile for Speedscope"),
            option("--pprof", "", "a profile for pprof"),
            option(
                "--for",
                "TIME",
                "with profile: only that time from now, as 10s or 500ms; for pprof",
            ),
            option("--process", "PID|NAME", "with --for: only that process"),
            option(
                "--application",
                "APP",
                "with --for: only the processes of that application",
            ),
            option(
                "--budget",
                "NAME",
                "with --for: only the processes of that budget",
            ),
            option("--to", "FILE", "write to this file"),
            option(
                "--fail-if",
                "'MEASURE > N'",
                "status 3 if that holds; also with <; may be repeated",
            ),
        ],
        run: explain::run,
    },
    CommandRow {
        name: "schedules",
        arguments: "-- COMMAND | show FILE",
        doc: "run a program in other orders until it fails",
        stock: false,
        takes: Takes::Command,
        options: &[
            option("--seeds", "N", "maximum number of schedules (1000)"),
            option("--for", "SECONDS", "maximum time of the search"),
            option("--seed", "N", "the seed of all random numbers"),
            option(
                "--strategy",
                "NAME",
                "portfolio, flips, pos, pct:D, surw, delays:N, stalls, random, none",
            ),
            option("--stall", "MS", "the longest delay of a process (95)"),
            option("--jobs", "N", "runs at a time (1)"),
            option("--to", "FILE", "write a failing schedule to this file"),
            option("--html", "PAGE", "write its story as a page to this file"),
            option(
                "--each-test",
                "",
                "search each test of mix test, or module of rebar3 eunit, by itself",
            ),
            JSON,
            option(
                "--test",
                "TEXT",
                "with --each-test: only those whose names contain TEXT",
            ),
            option(
                "--from",
                "FILE|M:F/A",
                "start from the schedule in a file, or at a function",
            ),
            option(
                "--nodes",
                "N",
                "run N nodes in a world of their own, with faults between them",
            ),
            option(
                "--faults",
                "KINDS",
                "with --nodes: delay (default), reset, cut, kill, power, disk, clock, udp",
            ),
            option(
                "--fail-nth",
                "CALLS",
                "fail the Nth system call of these kinds, for each N, in place of other orders",
            ),
            option(
                "--fail-for",
                "SPAN",
                "with --fail-nth: once, ever (from the Nth on) or both (both)",
            ),
            option(
                "--expect",
                "STATUSES",
                "with --fail-nth: exit statuses beside 0 that are no failure, or any",
            ),
            option(
                "--delivery",
                "ORDER",
                "any: messages of different senders may arrive in any order (order)",
            ),
            option(
                "--keep-going",
                "",
                "continue after a failure, to find others",
            ),
            option(
                "--fresh-dir",
                "",
                "each run starts in a fresh copy of the current folder",
            ),
            option(
                "--strict",
                "",
                "exit with status 5 if anything is neither decided by the seed nor recorded",
            ),
        ],
        run: schedules::run,
    },
    CommandRow {
        name: "replay",
        arguments: "FILE",
        doc: "repeat a run that failed, exactly",
        stock: false,
        takes: Takes::Files(&["psch"]),
        options: &[
            option(
                "--steps",
                "",
                "print all operations of the run to standard error",
            ),
            option(
                "--live",
                "",
                "read input from outside again, in place of the recorded input",
            ),
        ],
        run: schedules::replay,
    },
    CommandRow {
        name: "measure",
        arguments: "-- COMMAND [-- COMMAND]",
        doc: "measure commands: time, memory, energy",
        stock: false,
        takes: Takes::Command,
        options: &[
            RUNS,
            WARMUP,
            option(
                "--name",
                "TEXT",
                "the name of the first command; repeated: of the next",
            ),
            option("--input", "FILE", "the standard input of each run"),
            option("--separator", "WORD", "separates commands in place of --"),
            SHOW,
            ANY_STATUS,
            JSON,
            CSV,
        ],
        run: measure::run,
    },
    CommandRow {
        name: "observe",
        arguments: "[PID]",
        doc: "watch a running program in the browser",
        stock: false,
        takes: Takes::Process,
        options: &[
            option("--port", "N", "serve the page on this port"),
            option("--no-open", "", "don't open a browser"),
            option(
                "--otlp",
                "URL[,TIME]",
                "send metrics and profiles there, in place of a page",
            ),
        ],
        run: observe::run,
    },
    CommandRow {
        name: "help",
        arguments: "[TOPIC]",
        doc: "this text, a command's options, the flags of erl",
        stock: false,
        takes: Takes::Topics,
        options: &[],
        run: help::help,
    },
    CommandRow {
        name: "version",
        arguments: "",
        doc: "version of Purlin, and of the OTP it would use",
        stock: false,
        takes: Takes::Nothing,
        options: &[],
        run: help::version,
    },
];

/// Commands that are tools of Erlang and Elixir, which interpret their own arguments.
pub const HAND_ON: [&str; 7] = ["erl", "erlc", "escript", "elixir", "elixirc", "iex", "mix"];

/// Options before the command.
pub static GLOBAL: &[OptionRow] = &[
    option("--otp-root", "DIR", "the OTP installation to use"),
    option("-h, --help", "", "this text"),
    option("-V, --version", "", "versions"),
];

/// Environment variables and their meanings.
pub static ENVIRONMENT: &[(&str, &str)] = &[
    (
        "PURLIN_OTP_ROOT",
        "like --otp-root, which comes before it; without either, the erl on PATH decides, and after it /usr/lib/erlang",
    ),
    (
        "PURLIN_EXEC=strict",
        "exec fails if the command started an emulator that is not Purlin",
    ),
    (
        "PURLIN_EXEC=quiet",
        "exec does not look for other emulators",
    ),
    (
        "ERL_AFLAGS ERL_FLAGS ERL_ZFLAGS",
        "flags for erl, before and after those given",
    ),
];

/// Words that `explain` accepts in place of a process number.
pub const EXPLAIN_WORDS: [&str; 4] = ["run", "exec", "show", "diff"];

/// Names of the topics of `explain`.
pub fn explain_topics() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|topic| topic.name)
}

/// The same with what each answers.
pub fn explained_topics() -> impl Iterator<Item = (&'static str, &'static str)> {
    TOPICS.iter().map(|topic| (topic.name, topic.doc))
}

/// Flags of the emulator, sorted by name: name, argument, purpose, and whether the argument is a
/// separate word.
pub fn emulator_flags() -> Vec<(&'static str, &'static str, &'static str, bool)> {
    let rows = FLAGS
        .iter()
        .map(|row| (row.name, row.argument, row.doc, row.takes_next));
    let others = OTHER_FLAGS
        .iter()
        .map(|(name, argument, doc)| (*name, *argument, *doc, false));
    let mut rows: Vec<_> = rows.chain(others).collect();
    rows.sort_by_key(|(name, ..)| (name.to_lowercase(), *name));
    rows
}
