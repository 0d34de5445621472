//! Modules that the program loads, prepared once for all of its runs: to prepare them is most of what a short run does.
//!
//! A first run writes down the bytes of each module that it loads. The root then prepares these in the same order, so that each run that
//! it forks finds them. What a program sees of loading is the same.

use crate::code::load::{Prepared, prepare_anew};
use crate::code::was_loaded;
use purlin_native::hashing::Hashing;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Mutex;

/// Bytes of modules that are kept at most.
const MOST_BYTES: usize = 256 << 20;

static NOTES: Mutex<Option<File>> = Mutex::new(None);
static MADE: Mutex<Option<HashMap<Vec<u8>, Prepared, Hashing>>> = Mutex::new(None);

/// Has each module that is prepared from now on noted in that file.
pub(super) fn note_in(f: File) {
    *NOTES.lock().unwrap_or_else(|e| e.into_inner()) = Some(f);
}

/// The module of these bytes, if it was made before: once.
pub(crate) fn take(bytes: &[u8]) -> Option<Prepared> {
    if let Some(f) = &mut *NOTES.lock().unwrap_or_else(|e| e.into_inner()) {
        let _ = f
            .write_all(&(bytes.len() as u64).to_le_bytes())
            .and_then(|()| f.write_all(bytes));
        return None;
    }
    let mut made = MADE.lock().unwrap_or_else(|e| e.into_inner());
    // One that takes the place of another has literals that are counted, which nobody knew then.
    let p = made.as_mut()?.remove(bytes)?;
    (!was_loaded(p.name())).then_some(p)
}

/// Prepares all modules that were noted in a file.
pub(super) fn make(mut f: File) {
    let mut all = Vec::new();
    if f.seek(SeekFrom::Start(0))
        .and_then(|_| f.read_to_end(&mut all))
        .is_err()
    {
        return;
    }
    let mut made = HashMap::default();
    let mut at = 0;
    while let Some(head) = all.get(at..at + 8) {
        let n = u64::from_le_bytes(head.try_into().unwrap_or([0; 8])) as usize;
        let Some(bytes) = all.get(at + 8..at + 8 + n) else {
            break;
        };
        at += 8 + n;
        if at > MOST_BYTES {
            break;
        }
        if !made.contains_key(bytes)
            && let Ok(p) = prepare_anew(bytes)
        {
            made.insert(bytes.to_vec(), p);
        }
    }
    *MADE.lock().unwrap_or_else(|e| e.into_inner()) = Some(made);
}
