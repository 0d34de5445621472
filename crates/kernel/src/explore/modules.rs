//! Modules of the program, prepared once for all of its runs: preparing them takes most of the time
//! of a short run.
//!
//! The first run writes the bytes of each module that it loads to a file. The root process prepares
//! these modules in the same order, and each run is a fork of the root, which has them.
//!
//! # Invariant
//! A program sees no difference between a module prepared here and one prepared when it is loaded.

use crate::code::load::{Prepared, prepare_anew};
use crate::code::was_loaded;
use purlin_native::hashing::Hashing;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Mutex;

/// Maximum number of bytes of modules.
const MOST_BYTES: usize = 256 << 20;

/// Where modules are noted.
static NOTES: Mutex<Option<File>> = Mutex::new(None);
/// The prepared modules, by their bytes.
static MADE: Mutex<Option<HashMap<Vec<u8>, Prepared, Hashing>>> = Mutex::new(None);

/// Notes each module that is prepared from now on in that file.
pub(super) fn note_in(f: File) {
    *NOTES.lock().unwrap_or_else(|e| e.into_inner()) = Some(f);
}

/// Returns the prepared module of these bytes, once.
pub(crate) fn take(bytes: &[u8]) -> Option<Prepared> {
    if let Some(f) = &mut *NOTES.lock().unwrap_or_else(|e| e.into_inner()) {
        let _ = f
            .write_all(&(bytes.len() as u64).to_le_bytes())
            .and_then(|()| f.write_all(bytes));
        return None;
    }
    let mut made = MADE.lock().unwrap_or_else(|e| e.into_inner());
    // The literals of a module that replaces another are counted. This one was prepared as if it
    // replaced none.
    let p = made.as_mut()?.remove(bytes)?;
    (!was_loaded(p.name())).then_some(p)
}

/// Prepares all modules noted in a file.
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
