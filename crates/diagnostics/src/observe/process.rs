//! One process: its properties, its activity and its data, as it reports them between two time
//! slices.

use super::query::Query;
use crate::explain::{names, pid, survey};
use crate::json::Json;
use purlin_kernel::cx::Cx;
use purlin_kernel::process::SENSITIVE;
use purlin_kernel::signal::receive;
use purlin_runtime::backtrace;
use purlin_runtime::natives::process::process_info;
use purlin_term::frag::Fragment;
use purlin_term::preview::preview;
use purlin_term::{Term, map};

/// Items that are reported as text.
const ITEMS: &[&str] = &[
    "status",
    "priority",
    "label",
    "trap_exit",
    "parent",
    "group_leader",
    "message_queue_data",
    "reductions",
    "memory",
    "total_heap_size",
    "heap_size",
    "stack_size",
    "garbage_collection",
    "error_handler",
    "suspending",
    "last_calls",
    "sequential_trace_token",
];
/// Maximum number of elements of a list of links or monitors.
const OTHERS: usize = 50;
/// Maximum numbers of stack frames, of slots of a frame, and of slots in total.
const FRAMES: usize = 40;
const SLOTS: usize = 16;
const ALL_SLOTS: usize = 200;
/// Maximum number of messages, and of entries of the dictionary.
const MESSAGES: usize = 20;
const ENTRIES: usize = 50;
/// Characters kept of a term.
const TEXT: usize = 400;

pub(super) fn process(q: &Query) -> Result<Vec<(String, Json)>, String> {
    let text = q.text("pid");
    let pid = pid(text).ok_or_else(|| format!("'{text}' is no process of this node"))?;
    if purlin_kernel::process::table().find(pid).is_none() {
        return Ok(vec![("alive".into(), false.into())]);
    }
    let rows = survey::ask(&[pid], told);
    match rows.into_iter().next() {
        Some(pairs) => Ok(pairs),
        None if purlin_kernel::process::table().is_alive(pid) => Err(format!(
            "{text} does not answer: it is in a native, perhaps"
        )),
        None => Ok(vec![("alive".into(), false.into())]),
    }
}

fn told(cx: &mut Cx) -> Vec<(String, Json)> {
    let sensitive = cx.process().has(SENSITIVE);
    let mut f = Fragment::new();
    let mut items = Vec::new();
    for name in ITEMS {
        if let Some(t) = process_info::item(cx, &mut f, name) {
            items.push((name.to_string(), preview(t, TEXT).into()));
        }
    }
    let mut others = |name: &str| {
        let t = process_info::item(cx, &mut f, name);
        let list = || t.iter().flat_map(|t| t.list_iter());
        let shown: Vec<Json> = list()
            .take(OTHERS)
            .map(|t| preview(t, TEXT).into())
            .collect();
        Json::object([
            ("count", list().count().into()),
            ("first", Json::List(shown)),
        ])
    };
    let links = others("links");
    let monitors = others("monitors");
    let monitored_by = others("monitored_by");
    let name = process_info::item(cx, &mut f, "registered_name");
    let name = name.filter(|n| n.is_atom()).map(|n| preview(n, TEXT));
    // SAFETY: nothing in it is used any more: everything was formatted.
    unsafe { f.destroy() };
    let mut messages = Vec::new();
    let mut dictionary = Vec::new();
    if !sensitive {
        receive::first_messages(cx.process(), MESSAGES, |m| {
            messages.push(preview(m, TEXT).into())
        });
        if let Some(e) = cx.process().ext() {
            let entries = e.dict.iter().take(ENTRIES);
            dictionary.extend(entries.map(|(key, value)| {
                Json::object([
                    ("key", preview(key, TEXT).into()),
                    ("value", preview(value, TEXT).into()),
                ])
            }));
        }
    }
    let queued = cx.process().queued_messages();
    let message_bytes = 8 * cx.process().queued_words();
    let h = &cx.heap;
    let binary_bytes = h.off_heap.bytes + h.old_off_heap.bytes;
    let region_bytes = h.off_heap.regions.bytes() + h.old_off_heap.regions.bytes();
    let pairs: Vec<(&str, Json)> = vec![
        ("alive", true.into()),
        ("pid", names::pid(cx.self_pid()).into()),
        ("name", name.into()),
        ("initial", survey::initial(cx).into()),
        ("sensitive", sensitive.into()),
        ("items", Json::Object(items)),
        ("binary_bytes", binary_bytes.into()),
        ("region_bytes", region_bytes.into()),
        ("links", links),
        ("monitors", monitors),
        ("monitored_by", monitored_by),
        ("message_count", queued.into()),
        ("message_bytes", message_bytes.into()),
        ("messages", Json::List(messages)),
        ("dictionary", Json::List(dictionary)),
        ("stack", stack(cx, sensitive)),
    ];
    pairs.into_iter().map(|(k, v)| (k.to_string(), v)).collect()
}

/// Functions with their lines, innermost first, and the contents of their stack slots.
fn stack(cx: &Cx, sensitive: bool) -> Json {
    let mut left = ALL_SLOTS;
    let frames = backtrace::frames(cx, FRAMES).into_iter().map(|frame| {
        let p = &frame.place;
        let shown = frame.slots.len().min(SLOTS).min(left);
        left -= shown;
        let shown = if sensitive { 0 } else { shown };
        let slots = frame.slots.iter().take(shown).map(|t| slot(*t).into());
        Json::object([
            (
                "function",
                names::function(p.module, p.function, p.arity).into(),
            ),
            ("file", p.line.as_ref().map(|l| l.0.clone()).into()),
            ("line", p.line.as_ref().map(|l| u64::from(l.1)).into()),
            ("slot_count", frame.slots.len().into()),
            ("slots", Json::List(slots.collect())),
        ])
    });
    Json::List(frames.collect())
}

/// A stack slot, which may hold a large state: its size comes first.
fn slot(t: Term) -> String {
    match map::size(t) {
        n if t.is_map() && n > 100 => format!("a map of {n}: {}", preview(t, TEXT)),
        _ => preview(t, TEXT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_are_read_as_they_are_shown() {
        for data in [0, 5, (1 << 15) - 1, 1 << 15, (1 << 28) - 1] {
            let t = Term::pid(data);
            assert_eq!(pid(&names::pid(t)), Some(t), "{data}");
        }
        for text in [
            "",
            "<>",
            "<0.1>",
            "<1.1.0>",
            "<0.32768.0>",
            "<0.0.8192>",
            "<0.-1.0>",
            "<0.1.0.0>",
            "0.1.0",
            "<0.99999999999999999999.0>",
        ] {
            assert_eq!(pid(text), None, "{text}");
        }
    }
}
