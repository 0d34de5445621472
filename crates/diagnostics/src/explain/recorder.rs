//! The state of the record of the last minute.

use crate::json::Json;
use purlin_kernel::sync::Mutex;
use std::path::PathBuf;

/// The state of the record.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    pub file: Option<PathBuf>,
    /// Why there is no record.
    pub why: Option<String>,
    /// Size of the file, and bytes of records written so far.
    pub size: u64,
    pub written: u64,
}

static STATE: Mutex<Option<Recorder>> = Mutex::new(None);

/// Sets the state that answers have.
pub(crate) fn set(state: Recorder) {
    *STATE.lock() = Some(state);
}

pub fn recorder(_top: usize) -> Vec<(String, Json)> {
    let state = STATE.lock().clone().unwrap_or_default();
    let file = state.file.map(|f| f.display().to_string());
    vec![
        ("file".into(), file.into()),
        ("why_not".into(), state.why.into()),
        ("size_bytes".into(), state.size.into()),
        ("written_bytes".into(), state.written.into()),
    ]
}
