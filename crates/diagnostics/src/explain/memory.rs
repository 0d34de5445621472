//! Memory usage.

use super::{names, survey};
use crate::json::Json;
use purlin_runtime::natives::system::memory::usage;
use purlin_term::frag::Fragment;
use purlin_term::print::{Style, format_term};

/// Characters kept of a table's name.
const NAME_CHARS: usize = 200;

pub fn memory(top: usize) -> Vec<(String, Json)> {
    let mut pairs = kinds();
    pairs.push(("processes".into(), survey::by_memory(top)));
    pairs.push(("tables".into(), tables(top)));
    pairs
}

/// Kinds of memory, and what is resident according to the system.
pub fn kinds() -> Vec<(String, Json)> {
    let u = usage();
    let named = [
        ("process_heaps", u.processes),
        ("binaries", u.binary),
        ("regions", u.regions),
        ("tables", u.ets),
        ("code", u.code),
        ("atoms", u.atom),
    ];
    let known: usize = named.iter().map(|n| n.1).sum();
    let mut kinds: Vec<(String, Json)> = named.map(|(k, n)| (k.to_string(), n.into())).into();
    kinds.push(("other".into(), u.total.saturating_sub(known).into()));
    let (resident, peak) = resident();
    vec![
        ("resident_bytes".into(), resident.into()),
        ("peak_bytes".into(), peak.into()),
        ("allocated_bytes".into(), u.total.into()),
        ("kinds".into(), Json::Object(kinds)),
        ("parts".into(), super::resident::parts()),
    ]
}

/// Resident bytes now, and at the peak; `None` if the system does not report them.
pub(super) fn resident() -> (Option<u64>, Option<u64>) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| {
        let text = status.lines().find_map(|l| l.strip_prefix(name))?;
        let number = text.trim_start_matches(':').split_whitespace().next()?;
        number.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    };
    (line("VmRSS"), line("VmHWM"))
}

pub fn tables(top: usize) -> Json {
    let mut all: Vec<_> = purlin_ets::all()
        .into_iter()
        .map(|t| {
            let (objects, words) = t.size_and_words();
            (words, objects, t)
        })
        .collect();
    all.sort_by_key(|t| std::cmp::Reverse(t.0));
    let list: Vec<Json> = all
        .iter()
        .take(top)
        .map(|(words, objects, t)| {
            let show = |t| format_term(t, Style::Write, NAME_CHARS);
            let mut f = Fragment::new();
            let id = purlin_ets::id(t, &mut f).map(show);
            // SAFETY: nothing in it is used any more.
            unsafe { f.destroy() };
            Json::object([
                ("name", show(t.name()).into()),
                ("id", id.into()),
                ("owner", names::pid(t.owner()).into()),
                ("objects", (*objects).into()),
                ("bytes", (words * 8).into()),
            ])
        })
        .collect();
    Json::object([
        ("count", all.len().into()),
        ("bytes", all.iter().map(|t| t.0 * 8).sum::<usize>().into()),
        ("top", Json::List(list)),
    ])
}
