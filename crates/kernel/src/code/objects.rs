//! Module files of what is loaded, written to a folder for who reads their debug information after this system has ended. Nothing is written
//! where no folder was named, and nobody waits for what can't be.

use purlin_term::{Term, atom};
use std::path::PathBuf;
use std::sync::OnceLock;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Bytes of the longest name of a module that gets a file.
const NAME_BYTES: usize = 200;

/// Names the folder. It must be one to which only this user writes. Only the first call does.
pub fn write_to(folder: PathBuf) {
    let _ = FOLDER.set(folder);
}

/// The name of the file of a module; None for those that make none.
pub fn file_name(module: &str) -> Option<String> {
    let may = !module.contains(['/', '\0']) && module.len() <= NAME_BYTES;
    may.then(|| format!("{module}.beam"))
}

/// A module is being loaded from `object`.
pub fn prepared(module: Term, object: &[u8]) {
    let Some(folder) = FOLDER.get() else { return };
    // What it would be read for is in a chunk of its own.
    if object.windows(4).any(|w| w == b"Dbgi")
        && let Some(name) = file_name(atom::name(module))
    {
        let _ = std::fs::write(folder.join(name), object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_in_the_folder() {
        assert_eq!(file_name("Elixir.A.B").as_deref(), Some("Elixir.A.B.beam"));
        assert_eq!(file_name("..").as_deref(), Some("...beam"));
        assert_eq!(file_name("../a"), None);
        assert_eq!(file_name(&"a".repeat(201)), None);
    }
}
