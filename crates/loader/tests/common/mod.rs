//! Finds the installed libraries, and assembles files from chunks.
#![allow(dead_code)]

use purlin_loader::BeamFile;
use std::path::{Path, PathBuf};

/// A small module of our own, compiled by OTP 25.
pub const SAMPLE: &[u8] = include_bytes!("../data/sample.beam");

pub type Chunks = Vec<([u8; 4], Vec<u8>)>;

/// Returns the chunks of a file.
pub fn chunks(data: &[u8]) -> Chunks {
    let file = BeamFile::parse(data).expect("a sound file");
    file.chunk_sizes()
        .map(|(name, _)| (name, file.chunk(&name).unwrap_or_default().to_vec()))
        .collect()
}

/// Returns a file of these chunks.
pub fn assemble(chunks: &Chunks) -> Vec<u8> {
    let mut body = b"BEAM".to_vec();
    for (name, data) in chunks {
        body.extend_from_slice(name);
        body.extend_from_slice(&(data.len() as u32).to_be_bytes());
        body.extend_from_slice(data);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let mut file = b"FOR1".to_vec();
    file.extend_from_slice(&(body.len() as u32).to_be_bytes());
    file.append(&mut body);
    file
}

/// Returns `SAMPLE` with one chunk changed, or without it if `change` returns `None`.
pub fn sample_with(name: &[u8; 4], change: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    let mut chunks = chunks(SAMPLE);
    chunks.retain_mut(|(n, data)| {
        if n != name {
            return true;
        }
        match change(data) {
            Some(changed) => {
                *data = changed;
                true
            }
            None => false,
        }
    });
    assemble(&chunks)
}

/// Returns the library directories of the `erl` and `elixir` on the path.
pub fn library_dirs() -> Vec<PathBuf> {
    let root = |program: &str| {
        let path = std::env::var_os("PATH")?;
        let found = std::env::split_paths(&path)
            .map(|dir| dir.join(program))
            .find(|p| p.is_file())?;
        // The link leads to ROOT/bin/erl.
        let lib = found.canonicalize().ok()?.parent()?.parent()?.join("lib");
        lib.is_dir().then_some(lib)
    };
    ["erl", "elixir"].into_iter().filter_map(root).collect()
}

/// Returns all `.beam` files below a directory, sorted by name.
pub fn beam_files(dir: &Path) -> Vec<PathBuf> {
    let (mut files, mut dirs) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|ext| ext == "beam") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
