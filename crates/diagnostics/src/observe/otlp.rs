//! Metrics and profiles for a collector, as long as a client asks for them.

use super::query::Query;
use crate::json::Json;
use crate::otlp;
use purlin_kernel::options::OtlpFlag;
use std::time::{Duration, Instant};

/// Time for which they are sent after the last request.
const UNREAD_TIME_LIMIT: Duration = Duration::from_secs(15);

pub(super) fn otlp(q: &Query) -> Result<Vec<(String, Json)>, String> {
    let flag = OtlpFlag::from_words(q.text("to"))?;
    let fates = otlp::keep(&flag, Instant::now() + UNREAD_TIME_LIMIT)?;
    let sent = fates.into_iter().map(|f| {
        Json::object([
            ("what", f.name.into()),
            ("taken", f.taken.into()),
            ("why_not", f.why.into()),
        ])
    });
    Ok(vec![("sent".into(), Json::List(sent.collect()))])
}
