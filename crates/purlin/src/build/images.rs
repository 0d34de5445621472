//! Images of the modules in an executable (`purlin_kernel::code::image`): a file for each module file, below [`FOLDER`], and one with the
//! atoms that they go by.

use super::Content;
use purlin_runtime::code::image::{self, Atoms};
use purlin_runtime::io::embedded::EmbeddedFile;
use purlin_runtime::options::OtpInstall;

const FOLDER: &str = "images/";
const ATOMS: &str = "images.atoms";

/// Applications whose modules come first, since each program loads those: what is made first has the lowest numbers.
const FIRST: [&str; 3] = ["lib/erts-", "lib/kernel-", "lib/stdlib-"];

/// Adds images of all modules among the files.
pub fn add(otp: &OtpInstall, files: &mut Vec<Content>) {
    let mut modules: Vec<&Content> = files.iter().filter(|f| f.name.ends_with(".beam")).collect();
    let rank = |name: &str| {
        FIRST
            .iter()
            .position(|f| name.starts_with(f))
            .unwrap_or(FIRST.len())
    };
    modules.sort_by(|a, b| (rank(&a.name), &a.name).cmp(&(rank(&b.name), &b.name)));
    let names = Atoms::named(modules.iter().map(|f| &f.bytes[..]));
    let Some(atoms) = Atoms::make(otp.release, &names) else {
        return;
    };
    purlin_runtime::bif::install();
    let file = |name: String, bytes| Content {
        name,
        bytes,
        is_program: false,
    };
    let mut made = vec![file(ATOMS.into(), atoms)];
    for m in modules {
        if let Some(bytes) = image::make(&m.bytes) {
            made.push(file(format!("{FOLDER}{}", m.name), bytes));
        }
    }
    files.extend(made);
}

/// Says where the images of an executable are.
pub fn set(files: &[EmbeddedFile]) {
    let find = |name: &str| {
        let at = files.binary_search_by(|f| f.name.cmp(name)).ok()?;
        Some(files[at].bytes)
    };
    let Some(atoms) = find(ATOMS) else { return };
    let images = files.iter().filter_map(|f| {
        let module = find(f.name.strip_prefix(FOLDER)?)?;
        Some((module, f.bytes))
    });
    image::set(atoms, images);
}
