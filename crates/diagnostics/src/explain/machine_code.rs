//! Functions that have machine code, its cost, and why other functions have none.

use crate::json::Json;
use purlin_runtime::compiled::report::{self, Function, Report};

pub fn machine_code(top: usize) -> Vec<(String, Json)> {
    // All is interpreted: asked for, or the system allows nothing else.
    let mode = ("mode".to_string(), Json::from(report::mode()));
    let Some(r) = report::report(top) else {
        return vec![mode];
    };
    let mut pairs = vec![mode];
    pairs.extend(totals(&r));
    for (name, list) in [("largest", &r.largest), ("slowest", &r.slowest)] {
        pairs.push((name.into(), Json::List(list.iter().map(one).collect())));
    }
    let refused = r.refused.iter().map(|(f, why)| {
        Json::object([
            ("function", f.name.as_str().into()),
            ("words", u64::from(f.words).into()),
            ("why", (*why).into()),
        ])
    });
    pairs.push(("refused".into(), Json::List(refused.collect())));
    pairs
}

fn totals(r: &Report) -> [(String, Json); 8] {
    [
        ("functions", r.functions.into()),
        ("bytes", r.bytes.into()),
        ("limit_bytes", r.limit.into()),
        ("made", r.made.into()),
        ("taken_back", r.taken_back.into()),
        ("made_s", (r.micros / 1e6).into()),
        ("no_room", r.no_room.into()),
        ("refusals", r.refusals.into()),
    ]
    .map(|(k, v): (&str, Json)| (k.to_string(), v))
}

fn one(f: &Function) -> Json {
    Json::object([
        ("function", f.name.as_str().into()),
        ("words", u64::from(f.words).into()),
        ("bytes", f.bytes.into()),
        ("made_us", f.micros.into()),
    ])
}
