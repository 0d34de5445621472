//! Strips from executables the parts that only debuggers read.
//!
//! The parts that a program needs to run are loaded from the front of its file: segments, which the
//! program headers name. Tables of symbols and lines follow, which are four fifths of a Purlin
//! built with them. [`stripped`] leaves those out, as `strip` does: the loaded part stays byte for
//! byte, so exported functions are found as before, and the section headers are rewritten for the
//! remaining sections.

/// Offsets and sizes in the 64-bit format, from the specification of ELF.
const HEADER: usize = 64;
const SECTION: usize = 64;
const SEGMENT: usize = 56;
const LOAD: u32 = 1;
const ALLOCATED: u64 = 2;
const NO_BITS: u32 = 8;

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut all = [0; 8];
    all[..N].copy_from_slice(bytes.get(at..at.checked_add(N)?)?);
    Some(u64::from_le_bytes(all))
}

/// The table of `count` entries of `size` bytes at `at`.
fn table(file: &[u8], at: u64, count: u64, size: usize) -> Option<Vec<&[u8]>> {
    let at = usize::try_from(at).ok()?;
    let length = usize::try_from(count).ok()?.checked_mul(size)?;
    let bytes = file.get(at..at.checked_add(length)?)?;
    Some(bytes.chunks_exact(size).collect())
}

/// The same program without the sections that are not loaded. `None` if `file` is not a 64-bit
/// little-endian executable of the usual layout.
pub fn stripped(file: &[u8]) -> Option<Vec<u8>> {
    if file.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    if number::<2>(file, 54)? as usize != SEGMENT || number::<2>(file, 58)? as usize != SECTION {
        return None;
    }
    let segments = table(
        file,
        number::<8>(file, 32)?,
        number::<2>(file, 56)?,
        SEGMENT,
    )?;
    let sections = table(
        file,
        number::<8>(file, 40)?,
        number::<2>(file, 60)?,
        SECTION,
    )?;
    let loaded = segments
        .iter()
        .filter(|s| number::<4>(s, 0) == Some(LOAD.into()));
    let mut end = number::<8>(file, 32)? + (segments.len() * SEGMENT) as u64;
    for segment in loaded {
        end = end.max(number::<8>(segment, 8)?.checked_add(number::<8>(segment, 32)?)?);
    }
    let mut out = file.get(..usize::try_from(end).ok()?)?.to_vec();

    let names = sections.get(number::<2>(file, 62)? as usize)?;
    let names = {
        let at = usize::try_from(number::<8>(names, 24)?).ok()?;
        let size = usize::try_from(number::<8>(names, 32)?).ok()?;
        file.get(at..at.checked_add(size)?)?
    };
    let keep = |section: &[u8]| {
        let flags = number::<8>(section, 8)?;
        let kind = number::<4>(section, 4)?;
        let inside = kind == u64::from(NO_BITS)
            || number::<8>(section, 24)?.checked_add(number::<8>(section, 32)?)? <= end;
        Some(kind == 0 || (flags & ALLOCATED != 0 && inside))
    };
    // The new numbers of sections, which refer to each other by number.
    let mut places = Vec::new();
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for section in &sections {
        let stays = keep(section)?;
        places.push(stays.then_some(kept.len() as u32));
        if stays {
            kept.push(section.to_vec());
        }
    }
    let mut texts = vec![0];
    for section in &mut kept {
        let at = number::<4>(section, 0)? as usize;
        let name = names.get(at..)?.split(|b| *b == 0).next()?;
        let place = match name {
            [] => 0,
            name => {
                let place = texts.len() as u32;
                texts.extend_from_slice(name);
                texts.push(0);
                place
            }
        };
        section[..4].copy_from_slice(&place.to_le_bytes());
        let mut renumber = |at: usize| {
            let old = number::<4>(section, at)? as usize;
            let new = places.get(old).copied().flatten().unwrap_or(0);
            section[at..at + 4].copy_from_slice(&new.to_le_bytes());
            Some(())
        };
        renumber(40)?;
        // `sh_info` is a section's number if the flag SHF_INFO_LINK says so.
        if number::<8>(section, 8)? & 0x40 != 0 {
            let old = number::<4>(section, 44)? as usize;
            let new = places.get(old).copied().flatten().unwrap_or(0);
            section[44..48].copy_from_slice(&new.to_le_bytes());
        }
    }
    let name = texts.len() as u32;
    texts.extend_from_slice(b".shstrtab\0");
    let mut own = [0u8; SECTION];
    own[..4].copy_from_slice(&name.to_le_bytes());
    own[4..8].copy_from_slice(&3u32.to_le_bytes());
    own[24..32].copy_from_slice(&(out.len() as u64).to_le_bytes());
    own[32..40].copy_from_slice(&(texts.len() as u64).to_le_bytes());
    own[48..56].copy_from_slice(&1u64.to_le_bytes());
    kept.push(own.to_vec());
    out.extend_from_slice(&texts);
    out.resize(out.len().next_multiple_of(8), 0);
    let at = out.len() as u64;
    kept.iter()
        .for_each(|section| out.extend_from_slice(section));
    out[40..48].copy_from_slice(&at.to_le_bytes());
    out[60..62].copy_from_slice(&u16::try_from(kept.len()).ok()?.to_le_bytes());
    out[62..64].copy_from_slice(&(u16::try_from(kept.len()).ok()? - 1).to_le_bytes());
    debug_assert!(out.len() >= HEADER);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripped_program_runs() {
        let file = std::fs::read(std::env::current_exe().expect("has a file")).expect("is read");
        let small = stripped(&file).expect("is an executable");
        assert!(small.len() < file.len());
        // A stripped file stays the same.
        assert_eq!(stripped(&small).map(|s| s.len()), Some(small.len()));
        let path = std::env::temp_dir().join(format!("purlin-stripped-{}", std::process::id()));
        std::fs::write(&path, &small).expect("is written");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("is executable");
        let output = std::process::Command::new(&path)
            .args(["--list", "a_stripped_program"])
            .output();
        std::fs::remove_file(&path).expect("cleans up");
        let output = output.expect("starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("a_stripped_program_runs: test"), "{output:?}");
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let file = std::fs::read(std::env::current_exe().expect("has a file")).expect("is read");
        assert_eq!(stripped(b""), None);
        assert_eq!(stripped(b"#!/bin/sh\n"), None);
        for cut in [5, 40, 63, 64, 1000, file.len() - 1] {
            // Wherever the file is cut, nothing is read beyond its end.
            let _ = stripped(&file[..cut]);
        }
        for at in 0..HEADER {
            let mut damaged = file[..4096].to_vec();
            damaged[at] = 0xff;
            let _ = stripped(&damaged);
        }
    }
}
