//! The whole system in numbers.

use super::query::Query;
use crate::explain;
use crate::json::Json;
use purlin_io::port;
use purlin_kernel::{clock, options, process, sched};
use purlin_runtime::compiled::report;
use purlin_term::{atom, gc, node, region};

/// Counters are reported as they are, so that a client that asks twice can compute rates.
pub fn overview(_: &Query) -> Result<Vec<(String, Json)>, String> {
    let (tables, _) = purlin_ets::totals();
    let (regions, region_count) = region::counted_totals();
    let (collections, reclaimed) = gc::totals();
    let (read, written) = port::total_bytes();
    let options = options::try_current();
    let otp = options.map_or("", |o| o.otp.version.as_str());
    let limits =
        |live: usize, most: usize| Json::object([("count", live.into()), ("limit", most.into())]);
    let topics = explain::TOPICS
        .iter()
        .map(|t| Json::object([("name", t.name.into()), ("doc", t.doc.into())]));
    let pairs: Vec<(&str, Json)> = vec![
        ("purlin", env!("CARGO_PKG_VERSION").into()),
        ("otp", otp.into()),
        ("pid", u64::from(std::process::id()).into()),
        ("node", atom::name(node::this_name()).into()),
        ("uptime_s", explain::uptime().into()),
        ("accounts", purlin_kernel::accounts::on().into()),
        // The reference for the other times.
        ("clock_ns", (clock::elapsed().max(0) as u64).into()),
        (
            "processes",
            limits(process::table().live(), process::table().limit()),
        ),
        ("ports", limits(port::count(), port::limit())),
        (
            "atoms",
            limits(atom::count() as usize, atom::limit() as usize),
        ),
        ("tables", Json::object([("count", tables.into())])),
        (
            "regions",
            Json::object([("count", region_count.into()), ("bytes", regions.into())]),
        ),
        ("machine_code", machine_code()),
        ("reductions", sched::reductions().into()),
        ("context_switches", sched::context_switches().into()),
        ("spawned", sched::spawned().into()),
        ("collections", collections.into()),
        (
            "reclaimed_bytes",
            (reclaimed as u64).saturating_mul(8).into(),
        ),
        ("read_bytes", read.into()),
        ("written_bytes", written.into()),
        ("cpu_ns", (clock::cpu_time().max(0) as u64).into()),
        ("schedulers", schedulers()),
        ("dirty", dirty()),
        ("memory", Json::Object(explain::memory::kinds())),
        ("topics", Json::List(topics.collect())),
    ];
    Ok(pairs.into_iter().map(|(k, v)| (k.to_string(), v)).collect())
}

/// Null if everything is interpreted.
fn machine_code() -> Json {
    let Some((functions, bytes, limit)) = report::totals() else {
        return Json::Null;
    };
    Json::object([
        ("functions", functions.into()),
        ("bytes", bytes.into()),
        ("limit_bytes", limit.into()),
    ])
}

fn schedulers() -> Json {
    let online = sched::online();
    let rows = sched::idle_nanoseconds()
        .into_iter()
        .zip(sched::queue_lengths())
        .zip(sched::working());
    let list = rows.enumerate().map(|(i, ((idle, queue), works))| {
        Json::object([
            ("number", (i + 1).into()),
            ("online", (i < online).into()),
            ("idle_ns", idle.into()),
            ("queue", queue.into()),
            ("works", works.into()),
        ])
    });
    Json::List(list.collect())
}

fn dirty() -> Json {
    let (cpu, io) = sched::dirty_counts();
    let (cpu_queue, io_queue) = sched::dirty_lengths();
    let [cpu_work, io_work] = sched::dirty_work();
    let rows = [
        ("processor", cpu, cpu_queue, cpu_work),
        ("input and output", io, io_queue, io_work),
    ];
    let list = rows.map(|(name, threads, queue, (busy, worked))| {
        Json::object([
            ("name", name.into()),
            ("threads", threads.into()),
            ("queue", queue.into()),
            ("busy", busy.into()),
            ("worked_ns", worked.into()),
        ])
    });
    Json::List(list.into())
}
