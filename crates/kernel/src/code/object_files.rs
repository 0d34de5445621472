//! Copies of loaded module files in a folder, for tools that read their debug information after
//! this system has ended. Nothing is written unless a folder was named, and errors are ignored.

use purlin_term::{Term, atom};
use std::path::PathBuf;
use std::sync::OnceLock;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Maximum length of the name of a module that gets a file, in bytes.
const NAME_BYTES: usize = 200;

/// Names the folder, to which only this user may write. Only the first call has an effect.
pub fn write_to(folder: PathBuf) {
    let _ = FOLDER.set(folder);
}

/// Returns the file name of a module; None if it gets no file.
pub fn file_name(module: &str) -> Option<String> {
    let may = !module.contains(['/', '\0']) && module.len() <= NAME_BYTES;
    may.then(|| format!("{module}.beam"))
}

/// Called when a module is loaded from `object`.
pub fn prepared(module: Term, object: &[u8]) {
    let Some(folder) = FOLDER.get() else { return };
    // The debug information that readers want is in this chunk.
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
