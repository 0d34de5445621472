//! File names and environment strings between Erlang and the operating system.
//!
//! The native encoding is fixed when the runtime starts: by the flag `+fn`, otherwise by the
//! locale. A name that the encoding cannot represent is passed as a raw binary.

use crate::options::{FilenameEncoding, FilenameWarning};
use purlin_term::{Alloc, Term, atom};
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

/// Encoding of file names, environment variables and command lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    Latin1,
    Utf8,
}

#[derive(Clone, Copy)]
struct Setting {
    encoding: Encoding,
    warning: FilenameWarning,
}

static SETTING: OnceLock<Setting> = OnceLock::new();

fn setting() -> Setting {
    *SETTING.get_or_init(|| Setting {
        encoding: resolve(FilenameEncoding::Locale),
        warning: FilenameWarning::Warning,
    })
}

fn resolve(e: FilenameEncoding) -> Encoding {
    match e {
        FilenameEncoding::Latin1 => Encoding::Latin1,
        FilenameEncoding::Utf8 => Encoding::Utf8,
        FilenameEncoding::Locale if locale_is_utf8() => Encoding::Utf8,
        FilenameEncoding::Locale => Encoding::Latin1,
    }
}

/// Whether the character set of the user's locale is UTF-8.
pub fn locale_is_utf8() -> bool {
    // SAFETY: the locale object is made, used and freed here; the answer is read before it is
    // freed.
    unsafe {
        let l = libc::newlocale(libc::LC_CTYPE_MASK, c"".as_ptr(), std::ptr::null_mut());
        if l.is_null() {
            return false;
        }
        // The thread has that locale meanwhile.
        let before = libc::uselocale(l);
        let set: *mut c_char = libc::nl_langinfo(libc::CODESET);
        let yes = !set.is_null() && CStr::from_ptr(set) == c"UTF-8";
        libc::uselocale(before);
        libc::freelocale(l);
        yes
    }
}

/// Sets the encoding. Called once, before any name is converted; later calls have no effect.
pub fn configure(encoding: FilenameEncoding, warning: FilenameWarning) {
    SETTING.get_or_init(|| Setting {
        encoding: resolve(encoding),
        warning,
    });
}

/// The native encoding.
pub fn encoding() -> Encoding {
    setting().encoding
}

/// The treatment of names that the encoding cannot represent.
pub fn warning() -> FilenameWarning {
    setting().warning
}

/// Returns the native form of a name: a (deep) list of characters, or an atom. None if `t` is
/// neither, or contains a null character or one that the encoding does not have. Binaries are not
/// accepted, since they are native already.
pub fn to_native(t: Term) -> Option<Vec<u8>> {
    let enc = encoding();
    let mut out = Vec::new();
    if t.is_atom() {
        for c in atom::name(t).chars() {
            push(&mut out, c as i64, enc)?;
        }
        return Some(out);
    }
    let mut at = t;
    let mut stack = Vec::new();
    loop {
        if let Some((h, rest)) = at.as_cons() {
            if let Some(c) = h.as_small() {
                push(&mut out, c, enc)?;
                at = rest;
            } else if h.is_list_ptr() {
                stack.push(rest);
                at = h;
            } else if h.is_nil() {
                at = rest;
            } else {
                return None;
            }
        } else if at.is_nil() {
            match stack.pop() {
                Some(t) => at = t,
                None => return Some(out),
            }
        } else {
            return None;
        }
    }
}

fn push(out: &mut Vec<u8>, c: i64, enc: Encoding) -> Option<()> {
    let c = u32::try_from(c).ok().filter(|&c| c != 0)?;
    match enc {
        Encoding::Latin1 => out.push(u8::try_from(c).ok()?),
        Encoding::Utf8 => {
            let c = char::from_u32(c)?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Some(())
}

/// Returns the native form of a file name for natives other than those of `prim_file`: as
/// [`to_native`], and binaries unchanged. A bit string counts by its whole bytes, as in stock.
pub fn any_to_native(t: Term) -> Option<Vec<u8>> {
    let Some(bits) = t.as_bits() else {
        return to_native(t);
    };
    let mut name = bits.shifted();
    name.truncate(bits.bit_len / 8);
    (!name.contains(&0)).then_some(name)
}

/// Decodes native bytes to a list of characters; None if they are not valid in the encoding.
pub fn from_native<A: Alloc + ?Sized>(a: &mut A, bytes: &[u8]) -> Option<Term> {
    match encoding() {
        Encoding::Latin1 => Some(a.byte_list(bytes, purlin_term::NIL)),
        Encoding::Utf8 => std::str::from_utf8(bytes).ok().map(|s| a.string(s)),
    }
}

/// Decodes native bytes to a list of characters; to a list of bytes if they are not valid in the
/// encoding.
pub fn from_native_lossy<A: Alloc + ?Sized>(a: &mut A, bytes: &[u8]) -> Term {
    match from_native(a, bytes) {
        Some(t) => t,
        None => a.byte_list(bytes, purlin_term::NIL),
    }
}
