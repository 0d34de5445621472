//! The images of this executable, and the atoms that they depend on.

use super::format::{Image, Reader, Writer};
use purlin_loader::BeamFile;
use purlin_term::atom;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The atoms of all modules that have images.
pub struct Atoms;

impl Atoms {
    /// Returns the names of the atoms of these files, in their order.
    pub fn named<'a>(files: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
        let mut known = std::collections::HashSet::new();
        let mut out = Vec::new();
        for f in files.filter_map(|f| BeamFile::parse(f).ok()) {
            for a in &f.atoms {
                if known.insert(a.to_string()) {
                    out.push(a.to_string());
                }
            }
        }
        out
    }
    /// Makes these atoms, as the first of an emulator of that release, and returns them as bytes.
    /// Must be called before there are any terms.
    pub fn make(release: u32, names: &[String]) -> Option<Vec<u8>> {
        purlin_term::release::settle(release);
        let mut w = Writer::default();
        w.n(release);
        w.count(names.len());
        for name in names {
            w.n(atom::try_intern_to_stay(name).ok()?.atom_index());
            w.bytes(name.as_bytes());
        }
        Some(w.0)
    }
    /// Makes them again, and returns whether they got the same numbers.
    fn again(release: u32, bytes: &'static [u8]) -> Option<bool> {
        let mut r = Reader(bytes);
        if r.n()? != release {
            return Some(false);
        }
        for _ in 0..r.n()? {
            let index = r.n()?;
            let name = std::str::from_utf8(r.bytes()?).ok()?;
            if atom::try_intern_static(name).ok()?.atom_index() != index {
                return Some(false);
            }
        }
        Some(true)
    }
}

/// A module file and its image.
pub type Pair = (&'static [u8], &'static [u8]);

static IMAGES: OnceLock<Images> = OnceLock::new();

struct Images {
    atoms: &'static [u8],
    /// Files by their [`key`].
    files: HashMap<u64, Vec<Pair>>,
    fits: OnceLock<bool>,
}

/// Returns a hash of a few parts of the file.
fn key(bytes: &[u8]) -> u64 {
    let n = bytes.len();
    let parts = [n / 4, n / 2, n / 4 * 3, n.saturating_sub(16)];
    let part = |at: usize| {
        let part = bytes.get(at..at + 8).unwrap_or_default();
        part.try_into().map_or(0, u64::from_le_bytes)
    };
    let all = parts.into_iter().map(part);
    all.fold(n as u64, |h, p| (h ^ p).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Sets the images and the atoms that they depend on. Only the first call has an effect.
pub fn set(atoms: &'static [u8], pairs: impl Iterator<Item = Pair>) {
    let mut files: HashMap<u64, Vec<Pair>> = HashMap::new();
    for p in pairs {
        files.entry(key(p.0)).or_default().push(p);
    }
    let _ = IMAGES.set(Images {
        atoms,
        files,
        fits: OnceLock::new(),
    });
}

/// Makes the atoms, once the release is known and no atoms exist but those that its emulator begins
/// with.
pub fn begin(release: u32) {
    if let Some(i) = IMAGES.get() {
        let _ = i.fits.set(Atoms::again(release, i.atoms) == Some(true));
    }
}

/// Returns the image of a module file, if there is one for this release.
pub(crate) fn find(bytes: &[u8]) -> Option<Image<'static>> {
    let images = IMAGES.get()?;
    if !*images.fits.get()? {
        return None;
    }
    let all = images.files.get(&key(bytes))?;
    let (_, image) = all.iter().find(|p| p.0 == bytes)?;
    Image::parse(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = include_bytes!("../../../../loader/tests/data/sample.beam");

    #[test]
    fn atoms_are_made_in_their_order() {
        let names = Atoms::named([SAMPLE].into_iter());
        assert!(names.contains(&"sample".to_string()));
        let mut w = Writer::default();
        w.n(25);
        w.count(2);
        for name in ["image_test_a", "image_test_b"] {
            w.n(atom::intern(name).atom_index());
            w.bytes(name.as_bytes());
        }
        // Leaked, because an executable stays too.
        let again = |release, bytes: &[u8]| Atoms::again(release, bytes.to_vec().leak());
        assert_eq!(again(25, &w.0), Some(true));
        assert_eq!(again(26, &w.0), Some(false));
        assert_eq!(again(25, &w.0[..w.0.len() - 1]), None);
        w.0[8] ^= 1;
        assert_eq!(again(25, &w.0), Some(false));
    }
}
