//! Patterns: the source of one, and its machine form, which PCRE2 makes.

use super::cache::compiled;
use super::errors::{behind_fault, error_text, settings_length, text_of_pcre2};
use crate::re_syntax;
use pcre2_sys as sys;
use purlin_term::release::{self, PATTERNS_OF_PCRE2};
use std::ffi::c_int;
use std::ptr;
use std::sync::{Arc, OnceLock};

/// Start of a serialised pattern.
const MAGIC: &[u8; 4] = b"PRE1";

/// The source of a compiled pattern.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Source {
    pub(super) options: u32,
    pub(super) newline: u8,
    pub(super) bsr: u8,
    pub(super) text: Vec<u8>,
}

impl Source {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut v = MAGIC.to_vec();
        v.extend_from_slice(&self.options.to_le_bytes());
        v.extend_from_slice(&[self.newline, self.bsr]);
        v.extend_from_slice(&self.text);
        v
    }
    /// Returns the fixed part of a serialised pattern, and the text.
    pub(super) fn parts(b: &[u8]) -> Option<(&[u8], &[u8])> {
        b.strip_prefix(MAGIC)?.split_at_checked(6)
    }
    pub(super) fn from_bytes(b: &[u8]) -> Option<Source> {
        let (head, text) = Source::parts(b)?;
        Some(Source {
            options: u32::from_le_bytes([head[0], head[1], head[2], head[3]]) & COMPILE_OPTIONS,
            newline: head[4],
            bsr: head[5],
            text: text.to_vec(),
        })
    }
}

/// Options that `compile/2` can set: anything else that a stored pattern claims is dropped.
const COMPILE_OPTIONS: u32 = sys::PCRE2_ANCHORED
    | sys::PCRE2_NO_START_OPTIMIZE
    | sys::PCRE2_CASELESS
    | sys::PCRE2_DOLLAR_ENDONLY
    | sys::PCRE2_DOTALL
    | sys::PCRE2_EXTENDED
    | sys::PCRE2_FIRSTLINE
    | sys::PCRE2_MULTILINE
    | sys::PCRE2_NO_AUTO_CAPTURE
    | sys::PCRE2_DUPNAMES
    | sys::PCRE2_UNGREEDY
    | sys::PCRE2_UCP
    | sys::PCRE2_NEVER_UTF
    | sys::PCRE2_UTF;

/// A compiled pattern.
pub(super) struct Code {
    pub(super) code: *mut sys::pcre2_code_8,
    pub(super) groups: u32,
    /// By option, or by a setting in the pattern.
    pub(super) unicode: bool,
    pub(super) utf: bool,
    dupnames: bool,
    pub(super) use_crlf: bool,
    /// Group numbers by name, sorted by name.
    pub(super) names: Vec<(Vec<u8>, usize)>,
    /// Its matches reach callouts.
    pub(super) calls_out: bool,
    /// The source of a pattern without callouts, from which forms with callouts can be made.
    pub(super) source: Source,
    /// The form with a callout at each place where a match may start; `None` if PCRE2 refuses it.
    pub(super) watched: OnceLock<Option<Arc<Code>>>,
}

// SAFETY: PCRE2 only reads a compiled pattern while matching.
unsafe impl Send for Code {}

// SAFETY: PCRE2 only reads a compiled pattern while matching.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: made by pcre2_compile and owned here.
        unsafe { sys::pcre2_code_free_8(self.code) }
    }
}

/// Character tables for ISO 8859-1, in which patterns without `unicode` are matched: lower case,
/// other case, ten class bitmaps, and types, in PCRE2's layout.
fn latin1_tables() -> &'static [u8; 1088] {
    static T: OnceLock<Box<[u8; 1088]>> = OnceLock::new();
    T.get_or_init(|| {
        let mut t = Box::new([0u8; 1088]);
        for c in 0..=255u8 {
            let i = c as usize;
            let upper = c.is_ascii_uppercase() || matches!(c, 192..=214 | 216..=222);
            let cased_lower = c.is_ascii_lowercase() || matches!(c, 224..=246 | 248..=254);
            let lower = cased_lower || matches!(c, 170 | 181 | 186 | 223 | 255);
            let space = matches!(c, 9..=13 | 32);
            let graph = c.is_ascii_graphic() || c >= 160;
            let letter = upper || lower;
            let word = letter || c.is_ascii_digit() || c == b'_';
            t[i] = if upper { c + 32 } else { c };
            t[256 + i] = match c {
                _ if upper => c + 32,
                _ if cased_lower => c - 32,
                _ => c,
            };
            let classes = [
                space,
                c.is_ascii_hexdigit(),
                c.is_ascii_digit(),
                upper,
                lower,
                word,
                graph,
                graph || c == 32,
                graph && !letter && !c.is_ascii_digit(),
                c.is_ascii_control() || matches!(c, 128..=159),
            ];
            for (k, _) in classes.iter().enumerate().filter(|(_, m)| **m) {
                t[512 + 32 * k + i / 8] |= 1 << (i % 8);
            }
            t[832 + i] = space as u8
                | (letter as u8) << 1
                | (lower as u8) << 2
                | (c.is_ascii_digit() as u8) << 3
                | (word as u8) << 4;
        }
        t
    })
}

/// The largest number of an option for what `\R` matches. Both together make a larger one.
const MOST_BSR: u8 = sys::PCRE2_BSR_ANYCRLF as u8;

/// The limit of PCRE's memory for parsing: more nested groups are refused.
const MOST_NESTED: u32 = 798;

/// Maximum number of bytes of the native stack that compiling a pattern may take.
const MOST_STACK: usize = 768 << 10;

/// Whether the stack is used up: `first` is an address in the frame in which compiling began.
extern "C" fn nests_too_deep(_depth: u32, first: *mut std::ffi::c_void) -> c_int {
    let here = 0u8;
    let used = first.addr().wrapping_sub(std::ptr::from_ref(&here).addr());
    c_int::from(used > MOST_STACK)
}

/// PCRE2 looks for the first character of a match by a set in which `\w` has no letters beyond
/// ASCII in UTF-8, whatever the tables say. Sets the option that turns this off for patterns that
/// need such letters.
fn with_letters_beyond_ascii(text: &[u8], options: u32, plain: bool) -> u32 {
    let utf = options & sys::PCRE2_UTF != 0 || text.starts_with(b"(*UTF");
    let needed = !plain && utf && options & sys::PCRE2_UCP == 0;
    match needed && text.windows(2).any(|w| w == b"\\w") {
        true => sys::PCRE2_NO_START_OPTIMIZE,
        false => 0,
    }
}

/// Why a pattern did not compile: text and offset.
pub(super) type Fault = (String, usize);

/// Asks about a compiled pattern.
///
/// # Safety
/// `code` is a compiled pattern, and `T` is the type that PCRE2 documents for `what`.
unsafe fn info<T>(code: *const sys::pcre2_code_8, what: u32, zero: T) -> T {
    let mut v = zero;
    // SAFETY: by the contract, `v` has the type of the answer.
    unsafe { sys::pcre2_pattern_info_8(code, what, (&raw mut v).cast()) };
    v
}

/// Compiles the text of a pattern with these options. The result is null if PCRE2 finds a fault,
/// with its number and offset in `err` and `at`. The native stack is measured from the frame of
/// `err`.
fn pcre2_compile(
    src: &Source,
    text: &[u8],
    options: u32,
    plain: bool,
    err: &mut c_int,
    at: &mut usize,
) -> Result<*mut sys::pcre2_code_8, Fault> {
    // SAFETY: the context lives for the call; the tables are static; the text is a slice with
    // its length.
    unsafe {
        let ctx = sys::pcre2_compile_context_create_8(ptr::null_mut());
        if ctx.is_null() {
            return Err(("failed to get memory".into(), 0));
        }
        let most = match plain {
            true => sys::PCRE2_NEWLINE_NUL,
            false => sys::PCRE2_NEWLINE_ANYCRLF,
        };
        if u32::from(src.newline) > most || src.bsr > MOST_BSR {
            sys::pcre2_compile_context_free_8(ctx);
            return Err(("inconsistent NEWLINE options".into(), 0));
        }
        let nl = if src.newline == 0 {
            sys::PCRE2_NEWLINE_LF
        } else {
            src.newline as u32
        };
        sys::pcre2_set_newline_8(ctx, nl);
        let first_frame = std::ptr::from_ref::<c_int>(err).addr();
        sys::pcre2_set_compile_recursion_guard_8(
            ctx,
            Some(nests_too_deep),
            ptr::without_provenance_mut(first_frame),
        );
        sys::pcre2_set_parens_nest_limit_8(ctx, if plain { 10_000 } else { MOST_NESTED });
        if !plain {
            // PCRE2's own tables know the letters of ASCII.
            sys::pcre2_set_character_tables_8(ctx, latin1_tables().as_ptr());
            // Lookbehind has a fixed length, and `\K` is allowed in assertions.
            sys::pcre2_set_max_varlookbehind_8(ctx, 0);
            let extra = sys::PCRE2_EXTRA_ALLOW_LOOKAROUND_BSK;
            sys::pcre2_set_compile_extra_options_8(ctx, extra);
        }
        if src.bsr != 0 {
            sys::pcre2_set_bsr_8(ctx, src.bsr as u32);
        }
        let code = sys::pcre2_compile_8(text.as_ptr(), text.len(), options, err, at, ctx);
        sys::pcre2_compile_context_free_8(ctx);
        Ok(code)
    }
}

/// Returns the names of a compiled pattern's groups, with their numbers.
///
/// # Safety
/// `code` is a compiled pattern.
unsafe fn names_of(code: *mut sys::pcre2_code_8) -> Vec<(Vec<u8>, usize)> {
    // SAFETY: by the contract; these are two numbers of 32 bits and an address.
    let (count, size, table) = unsafe {
        (
            info(code, sys::PCRE2_INFO_NAMECOUNT, 0u32) as usize,
            info(code, sys::PCRE2_INFO_NAMEENTRYSIZE, 0u32) as usize,
            info(code, sys::PCRE2_INFO_NAMETABLE, ptr::null::<u8>()),
        )
    };
    let mut names = Vec::with_capacity(count);
    for i in 0..count {
        // SAFETY: the name table has `count` entries of `size` bytes: two of number, then the
        // name, NUL-ended.
        let e = unsafe { std::slice::from_raw_parts(table.add(i * size), size) };
        let name = e[2..].split(|&b| b == 0).next().unwrap_or_default();
        names.push((name.to_vec(), (e[0] as usize) << 8 | e[1] as usize));
    }
    names
}

impl Code {
    /// Whether it has these newlines and line ends, as far as they are not 0.
    pub(super) fn ends_lines(&self, newline: u8, bsr: u8) -> bool {
        // SAFETY: the pattern is this one's; both answers are numbers of 32 bits.
        let is = |n: u8, what| n == 0 || unsafe { info(self.code, what, 0u32) } == u32::from(n);
        is(newline, sys::PCRE2_INFO_NEWLINE) && is(bsr, sys::PCRE2_INFO_BSR)
    }
    /// Compiles `src`. `watched`: with a callout before the first item.
    pub(super) fn new(src: &Source, watched: bool) -> Result<Code, Fault> {
        let (mut err, mut at): (c_int, usize) = (0, 0);
        let set = |o: u32| src.options & o != 0;
        let how = re_syntax::How {
            utf: set(sys::PCRE2_UTF),
            extended: set(sys::PCRE2_EXTENDED),
            no_auto_capture: set(sys::PCRE2_NO_AUTO_CAPTURE),
            same_names: set(sys::PCRE2_DUPNAMES),
            cr: src.newline != 0 && u32::from(src.newline) != sys::PCRE2_NEWLINE_LF,
        };
        // Since OTP 28 patterns are PCRE2's own.
        let plain = release::has(PATTERNS_OF_PCRE2);
        // PCRE gets a C string, and sees nothing after a zero.
        let end = src.text.iter().position(|&c| c == 0 && !plain);
        let given = &src.text[..end.unwrap_or(src.text.len())];
        // Text that is no UTF-8 is refused before anything else is looked at.
        let sound = !how.utf || std::str::from_utf8(given).is_ok();
        let read = match (sound && !plain).then(|| re_syntax::read(given, how)) {
            Some(Err((text, at))) => return Err((text.into(), at)),
            Some(Ok(r)) => Some(r),
            None => None,
        };
        let text = read.as_ref().map_or(given, |r| &r.text);
        let flags = src.options | with_letters_beyond_ascii(text, src.options, plain);
        let calling;
        let text = match watched {
            true => {
                let (settings, rest) = text.split_at(settings_length(text));
                calling = [settings, b"(?C)", rest].concat();
                &calling[..]
            }
            false => text,
        };
        let code = pcre2_compile(src, text, flags, plain, &mut err, &mut at)?;
        if code.is_null() {
            if let Some(r) = &read {
                at = r.place(err, at, given.len());
            }
            if plain {
                // Later versions name no place if the memory for parsing is used up.
                let at = if err == 186 {
                    0
                } else {
                    behind_fault(err, at, text)
                };
                return Err((text_of_pcre2(err), at));
            }
            let open = err == 114 && given.ends_with(b"(?");
            return Err((error_text(if open { 111 } else { err }), at));
        }
        if let Some(at) = read.as_ref().and_then(|r| r.endless) {
            // SAFETY: made just now, and not stored.
            unsafe { sys::pcre2_code_free_8(code) };
            return Err((re_syntax::ENDLESS.into(), at));
        }
        // Settings come from options or from the start of the pattern, as in stock.
        // SAFETY: a compiled pattern; the answers are numbers of 32 bits.
        let (names, nl, groups, options) = unsafe {
            (
                names_of(code),
                info(code, sys::PCRE2_INFO_NEWLINE, 0u32),
                info(code, sys::PCRE2_INFO_CAPTURECOUNT, 0u32),
                info(code, sys::PCRE2_INFO_ALLOPTIONS, 0u32),
            )
        };
        Ok(Code {
            code,
            groups,
            unicode: src.options & sys::PCRE2_UTF != 0,
            utf: options & sys::PCRE2_UTF != 0,
            dupnames: src.options & sys::PCRE2_DUPNAMES != 0,
            use_crlf: matches!(
                nl,
                sys::PCRE2_NEWLINE_ANY | sys::PCRE2_NEWLINE_CRLF | sys::PCRE2_NEWLINE_ANYCRLF
            ),
            names,
            calls_out: watched || src.options & sys::PCRE2_AUTO_CALLOUT != 0,
            source: src.clone(),
            watched: OnceLock::new(),
        })
    }
    /// Returns the form with a callout at each place where a match may start. It takes the same
    /// steps as the plain form. A pattern that is too large with the callout has none.
    pub(super) fn watched(&self) -> Option<&Arc<Code>> {
        let form = || Code::new(&self.source, true).ok().map(Arc::new);
        self.watched.get_or_init(form).as_ref()
    }
    /// Returns the form with a callout before each item of the pattern, for matches with many steps
    /// from one place. A pattern that is too large with callouts has none.
    pub(super) fn calling_out(self: &Arc<Code>) -> Arc<Code> {
        let mut src = self.source.clone();
        src.options |= sys::PCRE2_AUTO_CALLOUT;
        compiled(&src).unwrap_or_else(|_| self.clone())
    }

    /// Returns the distinct names (all entries unless `dupnames`).
    pub(super) fn name_list(&self) -> Vec<&[u8]> {
        let mut v: Vec<&[u8]> = self.names.iter().map(|(n, _)| &n[..]).collect();
        if self.dupnames {
            v.dedup();
        }
        v
    }
}
