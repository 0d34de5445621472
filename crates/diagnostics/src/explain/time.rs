//! The places where processes compute, and where they wait.

use super::copies::{Cause, causes_of, word};
use super::names;
use crate::json::Json;
use purlin_kernel::accounts::{self, Frame, Kind, LENGTHS, Wait};
use purlin_kernel::sched;
use purlin_kernel::waits;
use purlin_term::atom;

/// Modules whose receive loops wait for requests: such a wait delays nothing.
const IDLE: &[&str] = &[
    "gen_server",
    "gen_statem",
    "gen_event",
    "gen_fsm",
    "supervisor",
    "supervisor_bridge",
    "application_master",
    "application_controller",
    "proc_lib",
    "code_server",
    "erl_prim_loader",
    "global_group",
    "init",
    "logger_backend",
    "erts_code_purger",
    "erts_dirty_process_signal_handler",
    "erts_literal_area_collector",
    "erl_signal_handler",
    "file_io_server",
    "group",
    "user",
    "user_drv",
    "prim_tty",
    "socket_registry",
    "inet_gethost_native",
    "timer",
    "Elixir.Kernel.CLI",
    "Elixir.Kernel.ParallelCompiler",
    "Elixir.Task.Supervised",
    "Elixir.IEx.Server",
    "Elixir.IEx.Evaluator",
];

/// Modules in which a process that waits for a message waits for a peer or a file.
const CONNECTION: &[&str] = &[
    "prim_inet",
    "gen_tcp",
    "gen_tcp_socket",
    "gen_udp",
    "gen_sctp",
    "inet",
    "socket",
    "prim_socket",
    "prim_file",
    "ssl",
    "ssl_gen_statem",
    "tls_sender",
];

pub fn work(top: usize) -> Vec<(String, Json)> {
    let all = causes_of(|k| k == Kind::Work);
    let total: u64 = all.iter().map(|c| c.sums.copied).sum();
    let list: Vec<Json> = all.iter().take(top).map(worked).collect();
    let left_out = all.len() - list.len();
    vec![
        ("reductions".into(), sched::reductions().into()),
        ("sampled_reductions".into(), total.into()),
        ("causes".into(), Json::List(list)),
        ("left_out".into(), left_out.into()),
    ]
}

fn worked(c: &Cause) -> Json {
    Json::object([
        ("kind", word(c.kind).into()),
        ("site", c.site()),
        ("own", c.is_own().into()),
        ("times", c.sums.times.into()),
        ("reductions", c.sums.copied.into()),
        ("estimated", true.into()),
        ("stack", c.stack()),
    ])
}

fn innermost(stack: &[Frame], modules: &[&str]) -> bool {
    stack
        .first()
        .is_some_and(|f| modules.contains(&atom::name(f.module)))
}

/// The kind of message that a process waits for, according to the code of its receive.
fn what(c: &Cause) -> &'static str {
    let own = c.stack.iter().any(names::is_own);
    match c.kind {
        Kind::Receive if innermost(&c.stack, CONNECTION) => "connection",
        Kind::Receive if !own || innermost(&c.stack, IDLE) => "idle",
        kind => word(kind),
    }
}

fn seconds(nanoseconds: u64) -> Json {
    (nanoseconds as f64 / 1e9).into()
}

pub fn latency(top: usize) -> Vec<(String, Json)> {
    let mut all = causes_of(Kind::is_wait);
    // Idle waits come last.
    all.sort_by_key(|c| (what(c) == "idle", std::cmp::Reverse(c.sums.copied)));
    let list: Vec<Json> = all.iter().take(top).map(waited).collect();
    let left_out = all.len() - list.len();
    let sums = accounts::waits().0;
    let totals = sums
        .iter()
        .map(|(kind, w)| (word(*kind).to_string(), total(w)))
        .collect();
    let (processors, io) = sched::dirty_lengths();
    let now = Json::object([
        (
            "run_queues",
            sched::queue_lengths().into_iter().sum::<usize>().into(),
        ),
        ("dirty_cpu_queue", processors.into()),
        ("dirty_io_queue", io.into()),
        ("waiting", under_way()),
    ]);
    vec![
        ("schedulers".into(), sched::online().into()),
        ("totals".into(), Json::Object(totals)),
        ("now".into(), now),
        ("causes".into(), Json::List(list)),
        ("left_out".into(), left_out.into()),
    ]
}

/// Timed processes that have been waiting for a while.
fn under_way() -> Json {
    let all = waits::under_way();
    let longest = all.iter().map(|w| w.1).max().unwrap_or(0);
    let stands_for: u64 = all.iter().map(|w| w.2).sum();
    Json::object([
        ("timed", all.len().into()),
        ("stand_for", stands_for.into()),
        ("longest_s", seconds(longest)),
    ])
}

/// The duration in seconds, a power of two in microseconds, that `share` of a kind's waits stay
/// below.
fn below(w: &Wait, share: f64) -> Json {
    let mut sum = 0;
    for (i, n) in w.lengths.iter().enumerate() {
        sum += n;
        if sum as f64 >= share * w.times as f64 && i + 1 < LENGTHS {
            return seconds(1000 << i);
        }
    }
    seconds(w.longest)
}

fn total(w: &Wait) -> Json {
    Json::object([
        ("times", w.times.into()),
        ("seconds", seconds(w.nanoseconds)),
        ("longest_s", seconds(w.longest)),
        ("half_below_s", below(w, 0.5)),
        ("p99_below_s", below(w, 0.99)),
        (
            "lengths",
            Json::List(w.lengths.iter().map(|n| (*n).into()).collect()),
        ),
    ])
}

fn waited(c: &Cause) -> Json {
    let s = &c.sums;
    let own = c.is_own();
    let advice = match what(c) {
        _ if !own => None,
        "ready" => Some(
            "others had the schedulers: let what computes long do it in fewer processes at a time, or at low priority",
        ),
        "busy" => Some(
            "the other side takes less than it is sent: send less, or raise the high watermark (high_watermark, +zdbbl)",
        ),
        "dirty_queue" => Some(
            "more calls than threads: +SDio (files, blocking natives) or +SDcpu (long ones) start more",
        ),
        "lock" => Some(
            "others use the same table or port at that moment: {write_concurrency, auto} or {read_concurrency, true}, smaller lists of objects, or several of them",
        ),
        _ => None,
    };
    Json::object([
        ("kind", what(c).into()),
        ("site", c.site()),
        ("own", c.is_own().into()),
        ("times", s.times.into()),
        ("seconds", seconds(s.copied)),
        ("longest_s", seconds(s.largest)),
        ("estimated", (s.samples > 0).into()),
        ("advice", advice.into()),
        ("stack", c.stack()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_waits_are_below_a_length() {
        let mut w = Wait {
            times: 100,
            longest: 5_000_000,
            ..Default::default()
        };
        w.lengths[3] = 99;
        w.lengths[13] = 1;
        assert_eq!(below(&w, 0.5).number(), Some(8e-6));
        assert_eq!(below(&w, 0.999).number(), Some(0.008192));
        assert_eq!(below(&Wait::default(), 0.5).number(), Some(1e-6));
    }
}
