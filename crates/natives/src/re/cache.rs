//! The cache of compiled patterns.

use super::pattern::{Code, Fault, Source};
use purlin_term::sync::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Number of compiled patterns that are kept; a full cache is emptied.
const CACHE_SIZE: usize = 1024;

/// Minimum length of a pattern that is compiled on a dirty thread, in bytes: a fraction of a
/// millisecond.
const LONG_PATTERN: usize = 4096;

/// The compiled patterns that are kept.
static CACHE: LazyLock<Mutex<HashMap<Source, Arc<Code>>>> = LazyLock::new(Default::default);

/// Whether compiling `src` takes too long for a scheduler.
pub(super) fn compiles_long(src: &Source) -> bool {
    src.text.len() > LONG_PATTERN && !CACHE.lock().contains_key(src)
}

/// Returns the compiled form of `src`, from the cache if it is there.
pub(super) fn compiled(src: &Source) -> Result<Arc<Code>, Fault> {
    if let Some(c) = CACHE.lock().get(src) {
        return Ok(c.clone());
    }
    let code = Arc::new(Code::new(src, false)?);
    if src.text.len() > LONG_PATTERN {
        // Compiled here, on a dirty thread.
        code.watched();
    }
    let mut m = CACHE.lock();
    if m.len() >= CACHE_SIZE {
        m.clear();
    }
    m.insert(src.clone(), code.clone());
    Ok(code)
}
