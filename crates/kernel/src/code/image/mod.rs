//! Images of modules: the output of the loader, kept in a file, so that a program built into an
//! executable starts without loading its modules anew.
//!
//! `purlin build` makes images ([`make`]) together with the runtime that goes into the executable;
//! the executable says where they are ([`set`]). An image is trusted in the same way as the program
//! itself. It belongs to one module file, whose bytes it was made from, and to one release. If
//! anything does not match, the module is loaded in the usual way.
//!
//! # How
//! * **Atoms are not looked up.** All atoms that the modules name are made first, in one order
//!   ([`Atoms`]). So they get the same numbers as when the image was made, and words of code and
//!   orders by atom number stay valid.
//! * **Addresses** of exports, natives, funs, literals and so on differ in each run. To find them,
//!   the code is generated twice, with an environment that hands out artificial addresses,
//!   different each time. The places that differ between the two are those that hold addresses.
//!   `make` checks that the first code becomes the second when these places are filled with the
//!   second's addresses.
//!
//! # Files
//! | file | contents |
//! | --- | --- |
//! | `addresses.rs` | finding the addresses in code |
//! | `format.rs` | the bytes of an image |
//! | `store.rs` | the images of the running executable, and their atoms |

mod addresses;
mod format;
mod store;

use super::coverage::Counters;
use super::names::{How, LoadFailure, Names, atoms_of, lowered, names};
use crate::options::Coverage;
use addresses::{Kind, Recorder, places, put};
pub use format::Image;
use purlin_loader::lower::{Callee, Env, Lowered, lower};
use purlin_loader::{BeamFile, Fault, GenericCode, LoadError};
use purlin_native::exports::called;
use purlin_term::{Term, etf};
pub(super) use store::find;
pub use store::{Atoms, Pair, begin, set};

/// Makes the image of a module file. Returns `None` if it cannot have one. [`Atoms::make`] must
/// have been called with the atoms of the file.
pub fn make(bytes: &[u8]) -> Option<Vec<u8>> {
    purlin_term::region::init();
    let file = BeamFile::parse(bytes).ok()?;
    let code = GenericCode::decode(&file).ok()?;
    if !file.records.is_empty() || Counters::new(&file, &code).mode != Coverage::None {
        return None;
    }
    let atoms = atoms_of(&file).ok()?;
    let md5 = file.md5();
    let n = code.functions.len();
    let how = How {
        loaded_before: false,
        lines_can_break: false,
    };
    let mut env = names(&file, atoms, md5, n, Counters::none(), how).ok()?;
    let mut pass = |number| {
        let mut r = Recorder::new(&mut env, number);
        let made = lower(&file, &code, &mut r).ok()?;
        Some((made, r.extras, r.own))
    };
    let (a, extras, own) = pass(0)?;
    let (b, others, _) = pass(1)?;
    let same = |x: &[Term], y: &[Term]| x.iter().map(|t| t.raw()).eq(y.iter().map(|t| t.raw()));
    if !same(&extras, &others) || !a.debug_lines.is_empty() || !a.counted.is_empty() {
        return None;
    }
    let options = etf::encode::Options {
        deterministic: true,
        ..Default::default()
    };
    let extras: Vec<Vec<u8>> = extras.iter().map(|&t| etf::encode(t, options)).collect();
    let words: Vec<u8> = a.words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let exports = file.exports.iter();
    let exports = exports.map(|e| a.labels.get(e.label as usize).copied());
    let image = Image {
        words: &words,
        md5,
        atoms: env.atoms.iter().map(|t| t.atom_index()).collect(),
        places: places(&a.words, &b.words)?,
        own,
        extras: extras.iter().map(|t| &t[..]).collect(),
        functions: a.functions,
        exports: exports.collect::<Option<_>>()?,
        lines: a.lines,
        facts: a.facts,
        types: a.types,
        on_load: a.on_load,
    };
    let bytes = image.to_bytes();
    let (made, exports) = lowered(&file, &code, &mut env).ok()?;
    is_right(&bytes, &made, &exports, &mut env).then_some(bytes)
}

/// Whether an image reproduces this code and these exports for the names that they were made for.
fn is_right(image: &[u8], made: &Lowered, exports: &[u32], env: &mut Names) -> bool {
    let Some(image) = Image::parse(image) else {
        return false;
    };
    let Ok((mut again, at)) = relocate(&image, env) else {
        return false;
    };
    let mut words = made.words.clone();
    // These terms were made for each of the two.
    let extras = image.places.iter().filter(|p| p.kind == Kind::Extra);
    for p in extras {
        for words in [&mut words, &mut again.words] {
            put(words, p.unit as usize, 0);
        }
    }
    again.words == words
        && at == exports
        && again.functions == made.functions
        && again.lines == made.lines
        && again.facts == made.facts
        && again.types == made.types
        && again.on_load == made.on_load
}

/// Returns the code, relocated for the names of this process, and the offsets of exported
/// functions.
pub(super) fn relocate(image: &Image, env: &mut Names) -> Result<(Lowered, Vec<u32>), LoadFailure> {
    let mut words: Vec<u64> = Vec::with_capacity(image.words.len() / 8);
    let chunks = image.words.chunks_exact(8);
    words.extend(chunks.map(|c| u64::from_le_bytes(c.try_into().unwrap_or_default())));
    let extras = env.decoded(&image.extras)?;
    let mut imports: Vec<Option<Callee>> = vec![None; env.imports()];
    let damaged = || LoadFailure::File(LoadError::from(Fault::Encoding));
    for p in &image.places {
        let i = p.number as usize;
        let mut import = || {
            let known = imports.get_mut(i)?;
            Some(*known.get_or_insert_with(|| env.import(p.number)))
        };
        let value = match p.kind {
            Kind::Literal => env.literals.get(i).map(|t| t.raw()),
            Kind::Extra => extras.get(i).map(|t| t.raw()),
            Kind::Export => import().map(|c| c.export),
            Kind::Native => import().map(|c| c.guard),
            Kind::Fun => env.funs.get(i).map(|&f| std::ptr::from_ref(f) as u64),
            Kind::Strings => {
                (i <= env.strings.len()).then(|| env.strings.as_ptr() as u64 + i as u64)
            }
            Kind::Own => image.own.get(i).and_then(|&(function, arity)| {
                let f = env.atoms.get((function as usize).checked_sub(1)?)?;
                Some(called(env.atoms[0], *f, arity) as *const _ as u64)
            }),
            Kind::NifSlot => env.nifs.get(i).map(|n| std::ptr::from_ref(n) as u64),
        };
        let value = value.filter(|v| v >> 48 == 0).ok_or_else(damaged)?;
        put(&mut words, p.unit as usize, value);
    }
    let made = Lowered {
        words,
        functions: image.functions.clone(),
        lines: image.lines.clone(),
        facts: image.facts.clone(),
        types: image.types.clone(),
        on_load: image.on_load,
        ..Lowered::default()
    };
    Ok((made, image.exports.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = include_bytes!("../../../../loader/tests/data/sample.beam");

    /// An image may name atoms that do not exist, and its numbers may be out of range: the result
    /// is an error or code, never a panic.
    #[test]
    fn damaged_images_are_refused_or_read() {
        let sound = make(SAMPLE).expect("has an image");
        let file = BeamFile::parse(SAMPLE).expect("is sound");
        let code = Image::parse(&sound).expect("is sound").words.len();
        let mut read = 0;
        // The code itself is trusted.
        for at in (0..8).chain(8 + code..sound.len()) {
            for change in [1u8, 0x40, 0xFF] {
                let mut bytes = sound.clone();
                bytes[at] ^= change;
                let Some(image) = Image::parse(&bytes) else {
                    continue;
                };
                if !image.fits(&file) {
                    continue;
                }
                let n = image.functions().min(1000);
                let how = How {
                    loaded_before: false,
                    lines_can_break: false,
                };
                let env = names(&file, image.atoms(), image.md5(), n, Counters::none(), how);
                let mut env = env.expect("is sound");
                read += usize::from(relocate(&image, &mut env).is_ok());
            }
        }
        assert!(read > 0);
        for cut in 0..sound.len() {
            assert!(Image::parse(&sound[..cut]).is_none(), "{cut}");
        }
    }
}
