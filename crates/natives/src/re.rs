//! Natives of module `re`, on PCRE2.
//!
//! A compiled pattern is `{re_pattern, Groups, Unicode, UseCrLf, Bin}` as in stock. Here `Bin` is
//! the pattern's text with its options, and the machine form comes from a cache. So a pattern may
//! be stored, sent to other nodes with this runtime, and read back. Since OTP 28 a reference stands
//! for it, which means nothing to another node. Error texts are stock's where PCRE2 words the same
//! fault differently.
//!
//! Calls with lists or with `global` continue in the Erlang half of the module (`re:urun/3`,
//! `re:ucompile/2`, `re:grun/3`).

use super::binary::nomatch;
use super::iolist::{self, IoSlice};
use super::re_syntax;
use super::reschedule::{self, LongCall, dirty_if, is_larger};
use crate::bif::Bif;
use crate::cx::{BifResult, Env, Fail};
use crate::long;
use crate::{bifs, lazy_atoms};
use pcre2_sys as sys;
use purlin_term::layout::RefView;
use purlin_term::magic::MagicRef;
use purlin_term::release::{
    self, EXPORTED_PATTERNS, LINE_ENDS_STAY, NO_MATCH_WITHIN_CHARACTERS, NUL_ENDS_LINES,
    PATTERNS_OF_PCRE2,
};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, NIL, Term, am, atom, ending, gc};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ops::ControlFlow;
use std::ptr;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

lazy_atoms! {
    re = "re";
    re_pattern = "re_pattern";
    re_exported_pattern = "re_exported_pattern";
    ucompile = "ucompile";
    urun = "urun";
    grun = "grun";
    match_ = "match";
    match_limit = "match_limit";
    match_limit_recursion = "match_limit_recursion";
    capture = "capture";
    offset = "offset";
    newline = "newline";
    index = "index";
    first = "first";
    all_names = "all_names";
    all_but_first = "all_but_first";
    purlin = "purlin";
    re_long = "re_long";
    namelist = "namelist";
}

fn continue_in(cx: &mut Env, function: Term, args: &[Term]) -> Fail {
    continue_at(cx, re(), function, args)
}

fn continue_at(cx: &mut Env, module: Term, function: Term, args: &[Term]) -> Fail {
    let target = crate::exports::export(module, function, args.len() as u32);
    cx.trap(target, args)
}

/// Maximum backtracking memory of a match, in kilobytes.
const HEAP_LIMIT_KB: u32 = 512 * 1024;
/// As [`HEAP_LIMIT_KB`], for a match on a scheduler, which keeps that memory for its next one. A
/// match that needs more starts over on a dirty thread.
const SHORT_HEAP_LIMIT_KB: u32 = 1024;
/// The maximum number of reductions of a match on a scheduler that starts over.
const SHORT_REDUCTIONS: usize = 1_000;

/// Minimum length of a pattern that is compiled on a dirty thread, in bytes: a fraction of a
/// millisecond.
const LONG_PATTERN: usize = 4096;
/// Minimum number of parts of a list, as subject or pattern, that only a dirty thread flattens.
const LONG_LIST: usize = 1 << 14;
/// Number of bytes of a list that are tried to be taken as they are.
const FLAT_BYTES: usize = 1024;
/// Minimum size of a subject whose UTF-8 only a dirty thread checks, in bytes.
const LONG_CHECK: usize = 1 << 20;

/// Number of compiled patterns that are kept; a full cache is emptied.
const CACHE_SIZE: usize = 1024;
/// Start of a serialised pattern.
const MAGIC: &[u8; 4] = b"PRE1";

/// The source of a compiled pattern.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Source {
    options: u32,
    newline: u8,
    bsr: u8,
    text: Vec<u8>,
}

impl Source {
    fn to_bytes(&self) -> Vec<u8> {
        let mut v = MAGIC.to_vec();
        v.extend_from_slice(&self.options.to_le_bytes());
        v.extend_from_slice(&[self.newline, self.bsr]);
        v.extend_from_slice(&self.text);
        v
    }
    /// Returns the fixed part of a serialised pattern, and the text.
    fn parts(b: &[u8]) -> Option<(&[u8], &[u8])> {
        b.strip_prefix(MAGIC)?.split_at_checked(6)
    }
    fn from_bytes(b: &[u8]) -> Option<Source> {
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
struct Code {
    code: *mut sys::pcre2_code_8,
    groups: u32,
    /// By option, or by a setting in the pattern.
    unicode: bool,
    utf: bool,
    dupnames: bool,
    use_crlf: bool,
    /// Group numbers by name, sorted by name.
    names: Vec<(Vec<u8>, usize)>,
    /// Its matches reach callouts.
    calls_out: bool,
    /// The source of a pattern without callouts, from which forms with callouts can be made.
    source: Source,
    /// The form with a callout at each place where a match may start; `None` if PCRE2 refuses it.
    watched: OnceLock<Option<Arc<Code>>>,
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

/// The number of an option that is given several times. The last one counts with PCRE2. With PCRE,
/// they are bits of one number, which may be that of another option, or of none.
fn one_of_several(before: u8, option: u32) -> u8 {
    match release::has(PATTERNS_OF_PCRE2) {
        true => option as u8,
        false => before | option as u8,
    }
}

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
type Fault = (String, usize);

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
    fn ends_lines(&self, newline: u8, bsr: u8) -> bool {
        // SAFETY: the pattern is this one's; both answers are numbers of 32 bits.
        let is = |n: u8, what| n == 0 || unsafe { info(self.code, what, 0u32) } == u32::from(n);
        is(newline, sys::PCRE2_INFO_NEWLINE) && is(bsr, sys::PCRE2_INFO_BSR)
    }
    /// Compiles `src`. `watched`: with a callout before the first item.
    fn new(src: &Source, watched: bool) -> Result<Code, Fault> {
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
        // Stock looks at settings by option or at the pattern's start.
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
    fn watched(&self) -> Option<&Arc<Code>> {
        let form = || Code::new(&self.source, true).ok().map(Arc::new);
        self.watched.get_or_init(form).as_ref()
    }
    /// Returns the form with a callout before each item of the pattern, for matches with many steps
    /// from one place. A pattern that is too large with callouts has none.
    fn calling_out(self: &Arc<Code>) -> Arc<Code> {
        let mut src = self.source.clone();
        src.options |= sys::PCRE2_AUTO_CALLOUT;
        compiled(&src).unwrap_or_else(|_| self.clone())
    }

    /// Returns the distinct names (all entries unless `dupnames`).
    fn name_list(&self) -> Vec<&[u8]> {
        let mut v: Vec<&[u8]> = self.names.iter().map(|(n, _)| &n[..]).collect();
        if self.dupnames {
            v.dedup();
        }
        v
    }
}

/// Settings that only the start of a pattern may have, without the number that some end with.
const SETTINGS: &[&[u8]] = &[
    b"UTF",
    b"UTF8",
    b"UCP",
    b"CR",
    b"LF",
    b"CRLF",
    b"ANY",
    b"NUL",
    b"ANYCRLF",
    b"BSR_ANYCRLF",
    b"BSR_UNICODE",
    b"NOTEMPTY",
    b"NOTEMPTY_ATSTART",
    b"NO_AUTO_POSSESS",
    b"NO_DOTSTAR_ANCHOR",
    b"NO_JIT",
    b"NO_START_OPT",
    b"CASELESS_RESTRICT",
    b"TURKISH_CASING",
    b"LIMIT_MATCH=",
    b"LIMIT_DEPTH=",
    b"LIMIT_HEAP=",
    b"LIMIT_RECURSION=",
];

/// Returns the length of the settings at the start of a pattern.
fn settings_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(rest) = text[at..].strip_prefix(b"(*") {
        let Some(end) = rest.iter().position(|&c| c == b')') else {
            break;
        };
        let digits = rest[..end].iter().rev();
        let digits = digits.take_while(|c| c.is_ascii_digit()).count();
        let name = &rest[..end];
        let numbered = name[..end - digits].ends_with(b"=");
        let name = if numbered {
            &name[..end - digits]
        } else {
            name
        };
        if !SETTINGS.contains(&name) {
            break;
        }
        at += 2 + end + 1;
    }
    at
}

/// Returns the text of a compile error, in stock's words if the fault is the same.
fn error_text(code: c_int) -> String {
    let stock = match code {
        107 => "invalid escape sequence in character class",
        109 => "nothing to repeat",
        114 => "missing )",
        117 => "unknown option bit(s) set",
        118 => "missing ) after comment",
        119 | 186 => "regular expression is too complicated",
        121 => "failed to get memory",
        122 => "unmatched parentheses",
        124 => "malformed number or name after (?(",
        125 | re_syntax::TOO_LONG => "lookbehind assertion is not fixed length",
        127 => "conditional group contains more than two branches",
        128 => "assertion expected after (?( or (?(?C)",
        129 => "digit expected after (?+",
        133 => "parentheses are too deeply nested (stack check)",
        134 => "character value in \\x{} or \\o{} is too large",
        136 => "\\C not allowed in lookbehind assertion",
        137 => "PCRE does not support \\L, \\l, \\N{name}, \\U, or \\u",
        138 => "number after (?C is > 255",
        139 => "closing ) for (?C expected",
        142 => "syntax error in subpattern name (missing terminator)",
        143 => re_syntax::SAME_NAME,
        144 => "group name must start with a non-digit",
        147 => "unknown property name after \\P or \\p",
        148 => "subpattern name is too long (maximum 32 characters)",
        150 => "invalid range in character class",
        154 => "DEFINE group contains more than one branch",
        158 => "(?R or (?[+-]digits must be followed by )",
        161 => "number is too big",
        168 => "\\c must be followed by an ASCII character",
        174 => "setting UTF is disabled by the application",
        178 => "digits missing in \\x{} or \\o{}",
        c if c < 0 => "invalid UTF-8 string",
        _ => "",
    };
    if !stock.is_empty() {
        return stock.into();
    }
    text_of_pcre2(code)
}

/// Returns PCRE2's own text of a compile error.
fn text_of_pcre2(code: c_int) -> String {
    let mut buf = [0u8; 256];
    // SAFETY: the buffer's size is passed.
    let n = unsafe { sys::pcre2_get_error_message_8(code, buf.as_mut_ptr(), buf.len()) };
    String::from_utf8_lossy(&buf[..usize::try_from(n).unwrap_or(0).min(buf.len())]).into_owned()
}

/// Returns where stock's version, a later one, sees a fault that this one sees at `at`: after the
/// faulty text, not before it.
fn behind_fault(err: c_int, at: usize, text: &[u8]) -> usize {
    let behind = |end: &[u8]| {
        let rest = text.get(at..)?;
        let n = rest.windows(end.len()).position(|w| w == end)?;
        Some(at + n + end.len())
    };
    let escaped_digit =
        || at > 0 && text[at - 1] == b'\\' && text.get(at).is_some_and(u8::is_ascii_digit);
    match err {
        // PCRE2's place is one byte earlier for errors of ranges, quantifiers, letters after `(?`,
        // `)`, conditions, names, digits of both kinds, `\c`, and delimiters.
        108 | 109 | 111 | 122 | 128 | 144 | 164 | 167 | 168 | 182 => (at + 1).min(text.len()),
        // A reference by its number alone, and `\N{name}`.
        115 if escaped_digit() => at + 1,
        137 if text.get(at) == Some(&b'{') => at + 1,
        // A POSIX class outside of a class.
        112 => behind(b":]").unwrap_or(at),
        // `\N{U+41}`
        193 => behind(b"}").unwrap_or(at),
        _ => at,
    }
}

/// The compiled patterns that are kept.
static CACHE: LazyLock<Mutex<HashMap<Source, Arc<Code>>>> = LazyLock::new(Default::default);

/// Whether compiling `src` takes too long for a scheduler.
fn compiles_long(src: &Source) -> bool {
    src.text.len() > LONG_PATTERN && !CACHE.lock().contains_key(src)
}

/// Returns the compiled form of `src`, from the cache if it is there.
fn compiled(src: &Source) -> Result<Arc<Code>, Fault> {
    if let Some(c) = CACHE.lock().get(src) {
        return Ok(c.clone());
    }
    let code = Arc::new(Code::new(src, false)?);
    if src.text.len() > LONG_PATTERN {
        // Compiled here, on a dirty thread.
        code.watched();
    }
    let mut m = CACHE.lock();
    if m.len() >= CACHE_SIZE {
        m.clear();
    }
    m.insert(src.clone(), code.clone());
    Ok(code)
}

/// Options of `compile` and `run`.
#[derive(Default)]
struct Options {
    compile: u32,
    run: u32,
    newline: u8,
    bsr: u8,
    /// An option that only `run` takes was given.
    run_only: bool,
    /// An option that only `compile` takes was given.
    compile_only: bool,
    /// The compiled pattern is to be exported.
    export: bool,
    global: bool,
    report_errors: bool,
    offset: usize,
    match_limit: Option<u32>,
    depth_limit: Option<u32>,
    /// The parts to return, and their form.
    capture: Option<(Term, Term)>,
}

fn limit(t: Term) -> Option<u32> {
    t.as_small()
        .filter(|n| (0..=i32::MAX as i64).contains(n))
        .map(|n| n as u32)
}

fn options(list: Term) -> Option<Options> {
    let mut o = Options::default();
    let mut it = list.list_iter();
    for item in it.by_ref() {
        match item.as_tuple() {
            Some(&[k, what, kind]) if k == capture() => {
                o.capture = Some((what, kind));
                o.run_only = true;
            }
            Some(&[k, v]) if k == newline() && v.is_atom() => {
                let newline = match atom::name(v) {
                    "cr" => sys::PCRE2_NEWLINE_CR,
                    "lf" => sys::PCRE2_NEWLINE_LF,
                    "crlf" => sys::PCRE2_NEWLINE_CRLF,
                    "any" => sys::PCRE2_NEWLINE_ANY,
                    "anycrlf" => sys::PCRE2_NEWLINE_ANYCRLF,
                    "nul" if release::has(NUL_ENDS_LINES) => sys::PCRE2_NEWLINE_NUL,
                    _ => return None,
                };
                o.newline = one_of_several(o.newline, newline);
            }
            Some(&[k, v]) => {
                o.run_only = true;
                if k == capture() {
                    o.capture = Some((v, index()));
                } else if k == offset() {
                    o.offset = limit(v)? as usize;
                } else if k == match_limit() {
                    o.match_limit = Some(limit(v)?);
                } else if k == match_limit_recursion() {
                    o.depth_limit = Some(limit(v)?);
                } else {
                    return None;
                }
            }
            Some(_) => return None,
            None if item.is_atom() => atom_option(&mut o, atom::name(item))?,
            None => return None,
        }
    }
    it.tail().is_nil().then_some(o)
}

fn atom_option(o: &mut Options, name: &str) -> Option<()> {
    let compile = match name {
        "anchored" => {
            o.compile |= sys::PCRE2_ANCHORED;
            o.run |= sys::PCRE2_ANCHORED;
            return Some(());
        }
        "export" if release::has(EXPORTED_PATTERNS) => {
            o.export = true;
            o.compile_only = true;
            return Some(());
        }
        "bsr_anycrlf" => {
            o.bsr = one_of_several(o.bsr, sys::PCRE2_BSR_ANYCRLF);
            return Some(());
        }
        "bsr_unicode" => {
            o.bsr = one_of_several(o.bsr, sys::PCRE2_BSR_UNICODE);
            return Some(());
        }
        "notempty" | "notempty_atstart" | "notbol" | "noteol" | "report_errors" | "global" => {
            o.run_only = true;
            match name {
                "notempty" => o.run |= sys::PCRE2_NOTEMPTY,
                "notempty_atstart" => o.run |= sys::PCRE2_NOTEMPTY_ATSTART,
                "notbol" => o.run |= sys::PCRE2_NOTBOL,
                "noteol" => o.run |= sys::PCRE2_NOTEOL,
                "report_errors" => o.report_errors = true,
                _ => o.global = true,
            }
            return Some(());
        }
        "no_start_optimize" => sys::PCRE2_NO_START_OPTIMIZE,
        "caseless" => sys::PCRE2_CASELESS,
        "dollar_endonly" => sys::PCRE2_DOLLAR_ENDONLY,
        "dotall" => sys::PCRE2_DOTALL,
        "extended" => sys::PCRE2_EXTENDED,
        "firstline" => sys::PCRE2_FIRSTLINE,
        "multiline" => sys::PCRE2_MULTILINE,
        "no_auto_capture" => sys::PCRE2_NO_AUTO_CAPTURE,
        "dupnames" => sys::PCRE2_DUPNAMES,
        "ungreedy" => sys::PCRE2_UNGREEDY,
        "ucp" => sys::PCRE2_UCP,
        "never_utf" => sys::PCRE2_NEVER_UTF,
        "unicode" => sys::PCRE2_UTF,
        _ => return None,
    };
    o.compile |= compile;
    o.compile_only = true;
    Some(())
}

impl Options {
    fn unicode(&self) -> bool {
        self.compile & sys::PCRE2_UTF != 0
    }
    fn source(&self, text: Vec<u8>) -> Source {
        Source {
            options: self.compile,
            newline: self.newline,
            bsr: self.bsr,
            text,
        }
    }
}

fn badopt(cx: &mut Env) -> Fail {
    cx.badarg_cause(am::BADOPT)
}

/// The compiled code behind the reference in a pattern.
struct Compiled(Vec<u8>);

fn pattern_term(cx: &mut Env, src: &Source, code: &Code) -> Term {
    let bytes = src.to_bytes();
    let bin = match release::has(PATTERNS_OF_PCRE2) {
        true => {
            let m = MagicRef::new(crate::ids::ref_numbers(), Box::new(Compiled(bytes)));
            // SAFETY: it was made just now.
            unsafe { cx.magic_ref(m) }
        }
        false => cx.binary(&bytes),
    };
    cx.tuple(&[
        re_pattern(),
        Term::small(code.groups as i64),
        Term::small(code.unicode as i64),
        Term::small(code.use_crlf as i64),
        bin,
    ])
}

/// The mark of an exported pattern of this runtime.
const EXPORTED_HERE: &[u8] = b"re-PCRE2-purlin";

/// Returns a pattern with everything that another runtime needs to compile it again.
fn exported_term(cx: &mut Env, src: &Source, opts: Term) -> Term {
    let head = cx.binary(EXPORTED_HERE);
    let text = cx.binary(&src.text);
    let bin = cx.binary(&src.to_bytes());
    cx.tuple(&[re_exported_pattern(), head, text, opts, bin])
}

/// Makes an exported pattern usable: one of another runtime is compiled again.
fn import_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let (head, text, opts, bin) = match t.as_tuple() {
        Some(&[tag, h, t, o, b]) if tag == re_exported_pattern() => (h, t, o, b),
        _ => return Err(Fail::Badarg),
    };
    let [head, text, bin] = [head, text, bin].map(|b| b.as_binary());
    let (head, text, bin) = (
        head.ok_or(Fail::Badarg)?,
        text.ok_or(Fail::Badarg)?,
        bin.ok_or(Fail::Badarg)?,
    );
    let own = (*head == *EXPORTED_HERE)
        .then(|| Source::from_bytes(&bin))
        .flatten();
    let src = match own {
        Some(src) => src,
        None => {
            let o = options(opts).filter(|o| !o.run_only).ok_or(Fail::Badarg)?;
            o.source(text.into_owned())
        }
    };
    dirty_if(cx, long!("re":"import"/1).call(&[t]), || {
        compiles_long(&src) || gc::stress_roll(8)
    })?;
    cx.bump(src.text.len() / 8 + 1);
    let code = compiled(&src).map_err(|_| Fail::Badarg)?;
    Ok(pattern_term(cx, &src, &code))
}

fn fault_term(cx: &mut Env, (text, at): Fault) -> Term {
    let s = cx.string(&text);
    cx.tuple(&[s, Term::small(at as i64)])
}

/// Returns the bytes of an I/O list. `here`: on a scheduler, where the result is `None` if that
/// would take long.
fn flat(t: Term, here: bool) -> Result<Option<Vec<u8>>, Fail> {
    if here && t.is_list() {
        let (mut bytes, mut rest) = (Vec::with_capacity(32), t);
        while let Some((head, tail)) = rest.as_cons()
            && let Some(byte) = head.as_small().and_then(|n| u8::try_from(n).ok())
            && bytes.len() < FLAT_BYTES
        {
            bytes.push(byte);
            rest = tail;
        }
        if rest.is_nil() {
            return Ok(Some(bytes));
        }
    }
    if here && is_larger(t, LONG_LIST) {
        return Ok(None);
    }
    iolist::to_vec(t).map(Some).map_err(|_| Fail::Badarg)
}

/// The common part of `compile/1,2`. `call` is the one of them that was called.
fn compile(cx: &mut Env, pat: Term, opts: Term, call: LongCall<'_>) -> BifResult {
    let Some(o) = options(opts).filter(|o| !o.run_only) else {
        return Err(badopt(cx));
    };
    if o.unicode() && !pat.is_binary() {
        return Err(continue_in(cx, ucompile(), &[pat, opts]));
    }
    let text = flat(pat, !cx.dirty)?;
    let src = text.map(|text| o.source(text));
    dirty_if(cx, call, || {
        src.as_ref().is_none_or(compiles_long) || gc::stress_roll(8)
    })?;
    let src = src.ok_or(Fail::Badarg)?;
    cx.bump(src.text.len() / 8 + 1);
    match compiled(&src) {
        Ok(code) => {
            let t = match o.export {
                true => exported_term(cx, &src, opts),
                false => pattern_term(cx, &src, &code),
            };
            Ok(cx.ok(t))
        }
        Err(f) => {
            let t = fault_term(cx, f);
            Ok(cx.err(t))
        }
    }
}
fn compile_1(cx: &mut Env, [pat]: [Term; 1]) -> BifResult {
    compile(cx, pat, NIL, long!("re":"compile"/1).call(&[pat]))
}
fn compile_2(cx: &mut Env, [pat, opts]: [Term; 2]) -> BifResult {
    compile(cx, pat, opts, long!("re":"compile"/2).call(&[pat, opts]))
}

/// Returns the fields of a compiled pattern's term: its binary, and whether it is for Unicode.
fn as_pattern<'a>(t: Term) -> Option<(Cow<'a, [u8]>, bool)> {
    match t.as_tuple()? {
        &[tag, n, u, c, bin] if tag == re_pattern() => {
            n.as_small()?;
            c.as_small()?;
            let bytes = match bin.as_ref_view() {
                Some(RefView::Magic(m)) => {
                    Cow::Borrowed(&m.value.downcast_ref::<Compiled>()?.0[..])
                }
                _ => bin.as_binary()?,
            };
            Source::parts(&bytes)?;
            Some((bytes, u.as_small()? != 0))
        }
        _ => None,
    }
}

/// How the compiled form of a pattern's binary is to be had.
enum Found {
    /// There is none: the pattern is damaged, or was compiled for other newlines.
    Nothing,
    /// By compiling it, which takes too long here.
    Long,
    Here(Arc<Code>),
}

/// Returns the compiled form of a pattern's binary. Its newlines and line ends are replaced by
/// these if they are not 0 and the release allows it. The last pattern of this thread is found
/// without the shared cache.
fn compiled_from(bin: &[u8], newline: u8, bsr: u8, place: At) -> Found {
    thread_local! {
        static LAST: RefCell<Option<(Vec<u8>, Arc<Code>)>> = const { RefCell::new(None) };
    }
    let own = newline == 0 && bsr == 0;
    LAST.with_borrow_mut(|last| {
        match last {
            Some((b, code)) if own && b[..] == *bin => return Found::Here(code.clone()),
            _ => {}
        }
        let Some(mut src) = Source::from_bytes(bin) else {
            return Found::Nothing;
        };
        let stays = !own && release::has(LINE_ENDS_STAY);
        if newline != 0 && !stays {
            src.newline = newline;
        }
        if bsr != 0 && !stays {
            src.bsr = bsr;
        }
        if place == At::Scheduler && compiles_long(&src) {
            return Found::Long;
        }
        let code = match compiled(&src) {
            Ok(code) if !stays || code.ends_lines(newline, bsr) => code,
            _ => return Found::Nothing,
        };
        if own {
            *last = Some((bin.to_vec(), code.clone()));
        }
        Found::Here(code)
    })
}

/// A group in the result of a match.
enum Group {
    Number(i64),
    /// The first of these groups that took part.
    AnyOf(Vec<usize>),
}

/// The result that is wanted of a match.
enum Wanted {
    Nothing,
    /// All groups from that one on.
    From(usize),
    These(Vec<Group>),
}

#[derive(Clone, Copy, PartialEq)]
enum As {
    Index,
    List,
    Binary,
}

fn group_named(code: &Code, name: &[u8]) -> Group {
    let all: Vec<usize> = (code.names.iter())
        .filter(|(n, _)| n == name)
        .map(|e| e.1)
        .collect();
    match all[..] {
        [] => Group::Number(-1),
        [n] => Group::Number(n as i64),
        _ => Group::AnyOf(all),
    }
}

fn wanted(code: &Code, spec: Option<(Term, Term)>) -> Option<(Wanted, As)> {
    let Some((what, kind)) = spec else {
        return Some((Wanted::From(0), As::Index));
    };
    let kind = if kind == index() {
        As::Index
    } else if kind == am::LIST {
        As::List
    } else if kind == am::BINARY {
        As::Binary
    } else {
        return None;
    };
    let w = if what == am::ALL {
        Wanted::From(0)
    } else if what == am::NONE || what.is_nil() {
        Wanted::Nothing
    } else if what == all_but_first() {
        Wanted::From(1)
    } else if what == first() {
        Wanted::These(vec![Group::Number(0)])
    } else if what == all_names() {
        let names = code.name_list();
        if names.is_empty() {
            Wanted::Nothing
        } else {
            Wanted::These(names.iter().map(|n| group_named(code, n)).collect())
        }
    } else {
        let mut v = Vec::new();
        for t in what.list_to_vec()? {
            v.push(if let Some(n) = t.as_small().filter(|&n| n >= 0) {
                Group::Number(n)
            } else if t.is_atom() {
                group_named(code, atom::name(t).as_bytes())
            } else if t.is_list() || t.is_binary() {
                group_named(code, &iolist::to_vec(t).ok()?)
            } else {
                return None;
            });
        }
        Wanted::These(v)
    };
    Some((w, kind))
}

/// Ranges of the groups of a match; `None` for groups that took no part. It is large, so it stays
/// in the frame of who asked for the match.
type Groups = SmallVec<[Option<(usize, usize)>; 8]>;

/// The working memory of PCRE2 in a match: match data and context.
struct Bench {
    /// The compiled pattern for which the match data was made.
    code: Arc<Code>,
    data: *mut sys::pcre2_match_data_8,
    ctx: *mut sys::pcre2_match_context_8,
}

impl Bench {
    /// Returns `None` if there is no memory for it.
    fn new(code: &Arc<Code>) -> Option<Bench> {
        // SAFETY: the pattern is valid; the new objects are freed once, when this is dropped.
        let (data, ctx) = unsafe {
            (
                sys::pcre2_match_data_create_from_pattern_8(code.code, ptr::null_mut()),
                sys::pcre2_match_context_create_8(ptr::null_mut()),
            )
        };
        let made = !data.is_null() && !ctx.is_null();
        let code = code.clone();
        let bench = Bench { code, data, ctx };
        made.then_some(bench)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // SAFETY: made in `new`; null is allowed.
        unsafe {
            sys::pcre2_match_data_free_8(self.data);
            sys::pcre2_match_context_free_8(self.ctx);
        }
    }
}

unsafe extern "C" {
    /// Makes a match with this context call `f` with `data` at each callout; a negative result ends
    /// the match with that error.
    fn pcre2_set_callout_8(
        ctx: *mut sys::pcre2_match_context_8,
        f: Option<extern "C" fn(*mut c_void, *mut c_void) -> c_int>,
        data: *mut c_void,
    ) -> c_int;
}

/// A callout of a match on a dirty thread: ends it if the result is no longer wanted.
extern "C" fn at_callout(_: *mut c_void, _: *mut c_void) -> c_int {
    match ending::is_over() {
        true => sys::PCRE2_ERROR_CALLOUT,
        false => 0,
    }
}

/// Maximum time of a match on a scheduler, but for what it takes from its last place.
const SHORT_TIME: Duration = Duration::from_millis(1);
/// Aim of the time between two looks at the clock.
const LOOK_EVERY: Duration = Duration::from_micros(20);
/// Number of places between two looks at the clock, at first and at most.
const PLACES: std::ops::RangeInclusive<u32> = 4..=32;

/// The time that a match on a scheduler has.
struct Watch {
    /// Places at which a match was tried.
    places: u32,
    /// Number of places at the next look at the clock.
    next: u32,
    /// Number of places from the last look to that one.
    step: u32,
    /// First and last look.
    looks: Option<(Instant, Instant)>,
}

impl Watch {
    fn new() -> Watch {
        Watch {
            places: 0,
            next: *PLACES.start(),
            step: *PLACES.start(),
            looks: None,
        }
    }
    /// Whether the time is over.
    #[cold]
    fn look(&mut self) -> bool {
        let now = Instant::now();
        let (first, last) = self.looks.unwrap_or((now, now));
        self.looks = Some((first, now));
        if now.duration_since(first) > SHORT_TIME && !reschedule::is_untimed() {
            return true;
        }
        let quick = now.duration_since(last) < LOOK_EVERY;
        self.step = match quick {
            true => (self.step * 2).min(*PLACES.end()),
            false => (self.step / 4).max(1),
        };
        self.next = self.places.saturating_add(self.step);
        false
    }
}

/// A callout of a match on a scheduler, at each place where it may start.
extern "C" fn at_place(_: *mut c_void, watch: *mut c_void) -> c_int {
    // SAFETY: `exec` sets it to a watch that it has borrowed for the match, which is all on this
    // thread.
    let watch = unsafe { &mut *watch.cast::<Watch>() };
    watch.places = watch.places.saturating_add(1);
    match watch.places >= watch.next && watch.look() {
        true => sys::PCRE2_ERROR_CALLOUT,
        false => 0,
    }
}

/// Matches once, and writes the groups. `Err` is PCRE2's code. `short`: on a scheduler, with a
/// limit of steps; the working memory is kept for the next match of this pattern. The watch counts
/// for forms with callouts. `part`: the subject goes on behind these bytes, so the result is
/// `PCRE2_ERROR_PARTIAL` if that may matter.
fn exec(
    code: &Arc<Code>,
    subject: &[u8],
    o: &Options,
    check: bool,
    short: Option<&mut Watch>,
    part: bool,
    groups: &mut Groups,
) -> Result<(), c_int> {
    thread_local! {
        static SPARE: Cell<Option<Bench>> = const { Cell::new(None) };
    }
    let mut flags = o.run;
    if !check {
        flags |= sys::PCRE2_NO_UTF_CHECK;
    }
    if part {
        flags |= sys::PCRE2_PARTIAL_HARD;
    }
    // A limit that was set once stays. So the limit of steps is set each time, and other limits
    // disable reuse.
    let keeps = short.is_some() && o.match_limit.is_some() && o.depth_limit.is_none();
    let spare = if keeps { SPARE.take() } else { None };
    let bench = spare
        .filter(|b| Arc::ptr_eq(&b.code, code))
        .or_else(|| Bench::new(code))
        .ok_or(sys::PCRE2_ERROR_NOMEMORY)?;
    let (data, ctx) = (bench.data, bench.ctx);
    // SAFETY: match data and context are valid, made for this pattern, and unshared; the subject is
    // a slice with its length; the vector has `rc` pairs after a match. The UTF check is skipped
    // only for valid UTF-8 from a character's first byte on (see `known_utf8`). The callout and its
    // data are set for each match that has callouts.
    let found = unsafe {
        let heap = match short {
            Some(_) => SHORT_HEAP_LIMIT_KB,
            None => HEAP_LIMIT_KB,
        };
        sys::pcre2_set_heap_limit_8(ctx, heap);
        if code.calls_out {
            match short {
                Some(watch) => {
                    pcre2_set_callout_8(ctx, Some(at_place), ptr::from_mut(watch).cast())
                }
                None => pcre2_set_callout_8(ctx, Some(at_callout), ptr::null_mut()),
            };
        }
        if let Some(n) = o.match_limit {
            sys::pcre2_set_match_limit_8(ctx, n);
        }
        if let Some(n) = o.depth_limit {
            sys::pcre2_set_depth_limit_8(ctx, n);
        }
        let rc = sys::pcre2_match_8(
            code.code,
            subject.as_ptr(),
            subject.len(),
            o.offset,
            flags,
            data,
            ctx,
        );
        if rc > 0 && part && sys::pcre2_get_startchar_8(data) >= subject.len() {
            // It starts where nothing was seen.
            Err(sys::PCRE2_ERROR_PARTIAL)
        } else if rc > 0 {
            let v = sys::pcre2_get_ovector_pointer_8(data);
            let v = std::slice::from_raw_parts(v, 2 * rc as usize);
            // `\K` in a look-ahead can put a start after its end.
            groups.clear();
            groups.extend(
                v.chunks_exact(2)
                    .map(|p| (p[0] != usize::MAX).then(|| (p[0].min(p[1]), p[1]))),
            );
            Ok(())
        } else {
            Err(rc)
        }
    };
    if keeps {
        SPARE.set(Some(bench));
    }
    found
}

/// Returns where the character begins and ends that contains `offset`; `None` at a character's
/// first byte, or if `bytes` aren't UTF-8.
fn within_character(bytes: &[u8], offset: usize) -> Option<(usize, usize)> {
    if bytes.get(offset)? & 0xC0 != 0x80 || std::str::from_utf8(bytes).is_err() {
        return None;
    }
    let goes_on = |&&b: &&u8| b & 0xC0 == 0x80;
    let at = offset - bytes[..=offset].iter().rev().take_while(goes_on).count() + 1;
    Some((
        at - 1,
        offset + bytes[offset..].iter().take_while(goes_on).count(),
    ))
}

/// Returns the result of a match that begins within a character, or after text that is no UTF-8.
fn fails_within(bytes: &[u8]) -> BifResult {
    // Stock looks at this many characters in a time slice, and has forgotten that one was cut when
    // it continues.
    const LONG: usize = 39_900;
    let long = || std::str::from_utf8(bytes).is_ok_and(|s| s.chars().count() >= LONG);
    match release::has(NO_MATCH_WITHIN_CHARACTERS) && bytes.len() >= LONG && long() {
        true => Ok(nomatch()),
        false => Err(Fail::Badarg),
    }
}

/// Matches from within the character at `at..end`. PCRE, which checks nothing twice, takes the
/// remaining bytes of it for a character with the first one's number. PCRE2 may only be given
/// characters, so it is given that one. The text before is seen whole.
fn exec_within(
    code: &Arc<Code>,
    bytes: &[u8],
    (at, end): (usize, usize),
    o: &mut Options,
    short: Option<&mut Watch>,
    groups: &mut Groups,
) -> Result<(), c_int> {
    let offset = std::mem::replace(&mut o.offset, end);
    let mut buffer = [0; 4];
    let rest = char::from(bytes[offset])
        .encode_utf8(&mut buffer)
        .as_bytes();
    let subject = [&bytes[..end], rest, &bytes[end..]].concat();
    let found = exec(code, &subject, o, true, short, false, groups);
    o.offset = offset;
    found?;
    let place = |p: usize| match p {
        p if p >= end + rest.len() => p - rest.len(),
        p if p >= end => offset,
        p => p.min(at),
    };
    // A range that ends with the character, and began before it, was looked back at.
    let range =
        |(a, b): (usize, usize)| (place(a), if a < end && b == end { end } else { place(b) });
    for g in groups.iter_mut().flatten() {
        *g = range(*g);
    }
    Ok(())
}

/// Minimum size of subjects that are remembered as valid UTF-8, in bytes.
const REMEMBER_FROM: usize = 4096;
/// Number of subjects that all threads remember together as valid UTF-8.
const REMEMBERED: usize = 4;

/// Subjects above [`LONG`] that are valid UTF-8, the last one first. They stay while they are
/// here, so an address means the same subject.
static VALID: Mutex<Vec<IoSlice>> = Mutex::new(Vec::new());

fn is_slice(s: &IoSlice, bytes: &[u8]) -> bool {
    let b = s.as_bytes();
    b.as_ptr() == bytes.as_ptr() && b.len() == bytes.len()
}

/// Whether the subject with this data, which is longer than [`LONG`], was found to be valid UTF-8.
fn is_remembered(bytes: &[u8]) -> bool {
    VALID.lock().iter().any(|s| is_slice(s, bytes))
}

/// Whether `bytes`, the data of `subject`, are known to be UTF-8 with a character starting at
/// `offset`, so that many matches in one long subject (`global`) check it once. The subject is kept
/// alive until another replaces it, so remembering it is sound.
fn known_utf8(subject: Term, bytes: &[u8], offset: usize) -> bool {
    thread_local! {
        static LAST: RefCell<Option<IoSlice>> = const { RefCell::new(None) };
    }
    if bytes.len() < REMEMBER_FROM || bytes.get(offset).is_none_or(|b| b & 0xC0 == 0x80) {
        return false;
    }
    let slice = || {
        IoSlice::of_binary(subject)
            .filter(|s| is_slice(s, bytes) && std::str::from_utf8(s.as_bytes()).is_ok())
    };
    if bytes.len() > LONG {
        if is_remembered(bytes) {
            return true;
        }
        let Some(new) = slice() else {
            return false;
        };
        let mut valid = VALID.lock();
        valid.insert(0, new);
        let forgotten = match valid.len() > REMEMBERED {
            true => valid.pop(),
            false => None,
        };
        drop(valid);
        drop(forgotten);
        return true;
    }
    LAST.with_borrow_mut(|last| {
        if last.as_ref().is_some_and(|s| is_slice(s, bytes)) {
            return true;
        }
        *last = slice();
        last.is_some()
    })
}

fn group_term(
    cx: &mut Env,
    kind: As,
    subject: Term,
    bytes: &[u8],
    g: Option<(usize, usize)>,
) -> Term {
    match (kind, g) {
        (As::Index, None) => cx.tuple(&[Term::small(-1), Term::small(0)]),
        (As::Index, Some((a, b))) => {
            cx.tuple(&[Term::small(a as i64), Term::small((b - a) as i64)])
        }
        (As::List, g) => {
            let (a, b) = g.unwrap_or((0, 0));
            cx.byte_list(&bytes[a..b], NIL)
        }
        (As::Binary, g) => {
            let (a, b) = g.unwrap_or((0, 0));
            if subject.is_list() {
                cx.binary(&bytes[a..b])
            } else {
                cx.part(subject, a, b - a)
            }
        }
    }
}

/// Maximum number of bytes for a match without a watch on a scheduler. A longer one goes by the
/// clock, too, for which it has a callout at each place where a match may start: that takes some
/// nanoseconds.
const UNWATCHED: usize = 1024;
/// Steps of a match without a watch, by bytes of the subject, as there may be as many places to
/// start at. A step takes some twenty nanoseconds.
const UNWATCHED_STEPS: usize = 20_000;
/// Steps of a match with a watch from one place in the subject, by bytes of it: between two steps,
/// a match may go through all of it (`a*b`).
const WATCHED_STEPS: usize = 4_000_000;
/// Bounds of these numbers. A match that needs more starts over on a dirty thread: PCRE2 can't
/// pause, and some patterns take as many steps as they get.
const SHORT_STEPS: std::ops::RangeInclusive<usize> = 16..=20_000;

/// Number of bytes that a match on a scheduler may see of a longer subject. Where that isn't
/// enough, a dirty thread matches.
const WINDOW: usize = 64 << 10;
/// Maximum length of a subject, from where the match begins, that is seen whole on a scheduler.
const LONG: usize = WINDOW + 2 * WINDOW_SLACK;
/// Maximum number of bytes by which a window is shorter than [`WINDOW`].
const WINDOW_SLACK: usize = 4096;

/// Returns where a window into a subject ends, at most at `most`. A match can't tell the places
/// around it from those around the end of the subject, so they are no newlines, and a character is
/// whole. `None` if there is no such place nearby.
fn window_end(bytes: &[u8], most: usize, utf: bool) -> Option<usize> {
    let plain = |b: u8| (b' '..=b'~').contains(&b);
    // First bytes of characters of UTF-8 that are no newlines.
    let wide = |b: u8| utf && matches!(b, 0xC3..=0xE1 | 0xE3..=0xF4);
    let first = |b: u8| plain(b) || wide(b);
    let fits = |&end: &usize| {
        let before = bytes[..end].iter().rposition(|b| b & 0xC0 != 0x80);
        let before = before.filter(|&at| at + 4 >= end && (utf || at + 1 == end));
        first(bytes[end]) && before.is_some_and(|at| first(bytes[at]))
    };
    let least = most.saturating_sub(WINDOW_SLACK.min(most / 2));
    (least..=most).rev().find(fits)
}

/// Maximum number of steps of a match on a dirty thread from one place, by bytes of the subject,
/// before it starts over with a callout before each item of the pattern. Those make it take twice
/// as long.
const UNTOLD_STEPS: usize = 4_000_000_000;
/// Bounds of that number. The upper one is PCRE2's default limit, and takes a sixth of a second.
const FEW_CALLOUTS: std::ops::RangeInclusive<usize> = 1_000..=10_000_000;

/// Where a match runs.
#[derive(Clone, Copy, PartialEq)]
enum At {
    /// On a scheduler: one that turns out to be long starts over elsewhere.
    Scheduler,
    DirtyThread,
}

/// A match of a pattern with a subject.
struct Match<'a> {
    code: &'a Arc<Code>,
    bytes: &'a [u8],
    groups: &'a mut Groups,
    /// The character that contains the offset.
    within: Option<(usize, usize)>,
    /// PCRE2 checks that the subject is UTF-8.
    check: bool,
}

impl Match<'_> {
    /// Returns the number of bytes from the offset on.
    fn rest(&self, o: &Options) -> usize {
        self.bytes.len().saturating_sub(o.offset)
    }
    fn exec(
        &mut self,
        form: &Arc<Code>,
        o: &mut Options,
        short: Option<&mut Watch>,
    ) -> Result<(), c_int> {
        match self.within {
            Some(character) => exec_within(form, self.bytes, character, o, short, self.groups),
            None => exec(form, self.bytes, o, self.check, short, false, self.groups),
        }
    }
    /// Matches on a scheduler. `None`: that would take long.
    fn here(&mut self, o: &mut Options) -> Option<Result<(), c_int>> {
        let asked = o.match_limit;
        let steps = |all: usize, bytes: usize| {
            let n = (all / (bytes + 1)).clamp(*SHORT_STEPS.start(), *SHORT_STEPS.end()) as u32;
            (n.min(asked.unwrap_or(n)), asked.is_none_or(|a| a > n))
        };
        let rest = self.rest(o);
        if gc::stress() {
            if gc::stress_roll(4) {
                return None;
            }
            if gc::stress_roll(2) && rest > 8 {
                return self.in_window(o, o.offset + rest / 2, steps(WATCHED_STEPS, rest).0);
            }
        }
        if rest > LONG {
            return self.in_window(o, o.offset + WINDOW, steps(WATCHED_STEPS, WINDOW).0);
        }
        if rest <= UNWATCHED && !gc::stress_roll(2) {
            let (limit, cut) = steps(UNWATCHED_STEPS, rest);
            o.match_limit = Some(limit);
            match self.exec(self.code, o, Some(&mut Watch::new())) {
                Err(sys::PCRE2_ERROR_MATCHLIMIT) if cut => {}
                Err(sys::PCRE2_ERROR_HEAPLIMIT) => return None,
                result => return Some(result),
            }
        }
        let (limit, cut) = steps(WATCHED_STEPS, rest);
        o.match_limit = Some(limit);
        match self.exec(self.code.watched()?, o, Some(&mut Watch::new())) {
            Err(sys::PCRE2_ERROR_MATCHLIMIT) if cut => None,
            Err(sys::PCRE2_ERROR_HEAPLIMIT | sys::PCRE2_ERROR_CALLOUT) => None,
            result => Some(result),
        }
    }
    /// Matches with the first part of a long subject, up to about `most`. `None` if that doesn't
    /// decide the result.
    fn in_window(&mut self, o: &mut Options, most: usize, steps: u32) -> Option<Result<(), c_int>> {
        let checks = self.check && self.code.utf;
        if checks || self.within.is_some() || o.run & sys::PCRE2_NOTEOL != 0 {
            return None;
        }
        let end = window_end(self.bytes, most, self.code.utf).filter(|&end| end > o.offset)?;
        o.match_limit = Some(steps);
        let window = &self.bytes[..end];
        let watch = &mut Watch::new();
        let form = self.code.watched()?;
        exec(form, window, o, false, Some(watch), true, self.groups)
            .ok()
            .map(Ok)
    }
    /// Matches on a dirty thread.
    fn run_whole(&mut self, o: &mut Options) -> Result<(), c_int> {
        if !ending::may_come() {
            return self.exec(self.code, o, None);
        }
        let asked = o.match_limit;
        let (few, most) = (FEW_CALLOUTS.start(), FEW_CALLOUTS.end());
        let limit = (UNTOLD_STEPS / (self.rest(o) + 1)).clamp(*few, *most) as u32;
        let cut = asked.map_or(limit < *most as u32, |n| n > limit);
        if let Some(form) = self.code.watched() {
            o.match_limit = Some(limit.min(asked.unwrap_or(limit)));
            let found = self.exec(form, o, None);
            o.match_limit = asked;
            if !cut || !matches!(found, Err(sys::PCRE2_ERROR_MATCHLIMIT)) {
                return found;
            }
        }
        self.exec(&self.code.calling_out(), o, None)
    }
}

fn run(cx: &mut Env, subject: Term, pat: Term, opts: Term, first: bool) -> BifResult {
    run_at(cx, subject, pat, opts, first, At::Scheduler)
}

/// Returns the compiled form of the pattern of a match, or the result of the match if that is a
/// fault of the pattern. Fails if the Erlang half of the module continues. `None`: compiling the
/// pattern takes too long for a scheduler.
fn to_run(
    cx: &mut Env,
    subject: Term,
    pat: Term,
    opts: Term,
    o: &Options,
    place: At,
) -> Result<ControlFlow<Term, Option<Arc<Code>>>, Fail> {
    let lists = o.capture.is_some_and(|(_, k)| k == am::LIST) && !o.global;
    let code = match pat.as_tuple() {
        Some(t) if t.len() == 5 => {
            if o.compile_only {
                return Err(Fail::Badarg);
            }
            let (bin, unicode) = as_pattern(pat).ok_or(Fail::Badarg)?;
            if unicode && (!subject.is_binary() || lists) {
                return Err(continue_in(cx, urun(), &[subject, pat, opts]));
            }
            if o.global {
                let r = cx.tuple(&[opts, am::FALSE]);
                return Err(continue_in(cx, grun(), &[subject, pat, r]));
            }
            match compiled_from(&bin, o.newline, o.bsr, place) {
                Found::Nothing => return Err(Fail::Badarg),
                Found::Long => None,
                Found::Here(code) => Some(code),
            }
        }
        _ => {
            if !pat.is_binary() && !pat.is_list() {
                return Err(Fail::Badarg);
            }
            if o.unicode() && (!pat.is_binary() || !subject.is_binary() || lists) {
                return Err(continue_in(cx, urun(), &[subject, pat, opts]));
            }
            let here = place == At::Scheduler;
            let Some(text) = flat(pat, here)? else {
                return Ok(ControlFlow::Continue(None));
            };
            let src = o.source(text);
            if here && compiles_long(&src) {
                return Ok(ControlFlow::Continue(None));
            }
            cx.bump(src.text.len() / 8 + 1);
            let code = match compiled(&src) {
                Ok(c) => c,
                Err(f) if o.report_errors => {
                    let t = fault_term(cx, f);
                    let t = cx.tuple(&[am::COMPILE, t]);
                    return Ok(ControlFlow::Break(cx.err(t)));
                }
                Err(_) => return Err(Fail::Badarg),
            };
            if o.global {
                let p = pattern_term(cx, &src, &code);
                let r = cx.tuple(&[opts, Term::bool(o.compile_only), pat]);
                return Err(continue_in(cx, grun(), &[subject, p, r]));
            }
            Some(code)
        }
    };
    Ok(ControlFlow::Continue(code))
}

/// Returns the result of a match that ended with PCRE2's error `e`.
fn no_match(cx: &mut Env, e: c_int, report_errors: bool, bytes: &[u8]) -> BifResult {
    match e {
        sys::PCRE2_ERROR_MATCHLIMIT if report_errors => Ok(cx.err(match_limit())),
        sys::PCRE2_ERROR_DEPTHLIMIT | sys::PCRE2_ERROR_HEAPLIMIT if report_errors => {
            Ok(cx.err(match_limit_recursion()))
        }
        sys::PCRE2_ERROR_NOMATCH
        | sys::PCRE2_ERROR_MATCHLIMIT
        | sys::PCRE2_ERROR_DEPTHLIMIT
        | sys::PCRE2_ERROR_HEAPLIMIT
        | sys::PCRE2_ERROR_RECURSELOOP => Ok(nomatch()),
        sys::PCRE2_ERROR_UTF8_ERR21..=sys::PCRE2_ERROR_UTF8_ERR1 => Err(Fail::Badarg),
        sys::PCRE2_ERROR_BADUTFOFFSET => fails_within(bytes),
        // PCRE has another error for an offset beyond the end, which stock doesn't know.
        sys::PCRE2_ERROR_BADOFFSET if release::has(PATTERNS_OF_PCRE2) => Err(Fail::Badarg),
        sys::PCRE2_ERROR_CALLOUT => Err(Fail::Exited),
        _ => {
            let f = cx.error(am::INTERNAL_ERROR);
            cx.exc.error_info = true;
            Err(f)
        }
    }
}

/// Returns the range of a group of a match.
fn range_of(found: &Groups, g: &Group) -> Option<(usize, usize)> {
    match g {
        Group::Number(n) => usize::try_from(*n)
            .ok()
            .and_then(|n| found.get(n).copied().flatten()),
        Group::AnyOf(v) => v.iter().find_map(|&n| found.get(n).copied().flatten()),
    }
}

fn run_at(cx: &mut Env, subject: Term, pat: Term, opts: Term, first: bool, place: At) -> BifResult {
    let Some(mut o) = options(opts) else {
        return Err(badopt(cx));
    };
    let here = place == At::Scheduler;
    let leave = |cx: &mut Env| {
        let args = [subject, pat, opts, Term::bool(first)];
        Err(continue_at(cx, purlin(), re_long(), &args))
    };
    let code = match to_run(cx, subject, pat, opts, &o, place)? {
        ControlFlow::Continue(Some(code)) => code,
        ControlFlow::Continue(None) => return leave(cx),
        ControlFlow::Break(result) => return Ok(result),
    };
    let (want, kind) = wanted(&code, o.capture).ok_or(Fail::Badarg)?;
    let owned;
    let bytes: &[u8] = match subject.as_bits().and_then(|b| b.as_bytes()) {
        Some(b) => b,
        None => match flat(subject, here)? {
            Some(bytes) => {
                owned = bytes;
                &owned
            }
            None => return leave(cx),
        },
    };
    let remembers = code.unicode && (!first || bytes.len() > LONG);
    if here && code.utf && bytes.len() > LONG_CHECK && !(remembers && is_remembered(bytes)) {
        return leave(cx);
    }
    let known = remembers && known_utf8(subject, bytes, o.offset);
    // PCRE2 only looks at data after the offset; PCRE looks at all of it.
    let before = bytes.get(..o.offset).unwrap_or_default();
    let looks_at_all = !known && !release::has(PATTERNS_OF_PCRE2);
    if looks_at_all && first && code.unicode && std::str::from_utf8(before).is_err() {
        return fails_within(bytes);
    }
    // `global` advances byte by byte if the pattern, not the options, says that the subject is
    // UTF-8.
    let within = match !first && code.utf {
        true => within_character(bytes, o.offset),
        false => None,
    };
    let mut groups = Groups::new();
    let mut this = Match {
        code: &code,
        bytes,
        groups: &mut groups,
        within,
        check: !known,
    };
    let found = match place {
        At::Scheduler => this.here(&mut o),
        At::DirtyThread => Some(this.run_whole(&mut o)),
    };
    let Some(found) = found else {
        cx.bump(SHORT_REDUCTIONS);
        return leave(cx);
    };
    // Data after the match was not looked at, unless it was checked.
    let seen = match &found {
        Ok(()) if known || !code.utf => groups.first().copied().flatten().map_or(0, |g| g.1),
        _ => bytes.len(),
    };
    cx.bump(seen.saturating_sub(o.offset) / 64 + 10);
    if let Err(e) = found {
        return no_match(cx, e, o.report_errors, bytes);
    }
    let mut term = |g| group_term(cx, kind, subject, bytes, g);
    let terms: SmallVec<[Term; 8]> = match want {
        Wanted::Nothing => return Ok(match_()),
        Wanted::From(n) => groups.iter().skip(n).map(|&g| term(g)).collect(),
        Wanted::These(v) => v.iter().map(|g| term(range_of(&groups, g))).collect(),
    };
    let l = cx.list(&terms);
    Ok(cx.tuple(&[match_(), l]))
}

fn run_2(cx: &mut Env, [s, p]: [Term; 2]) -> BifResult {
    run(cx, s, p, NIL, true)
}
fn run_3(cx: &mut Env, [s, p, o]: [Term; 3]) -> BifResult {
    run(cx, s, p, o, true)
}
fn internal_run_4(cx: &mut Env, [s, p, o, is_first]: [Term; 4]) -> BifResult {
    let is_first = is_first.as_bool().ok_or(Fail::Badarg)?;
    run(cx, s, p, o, is_first)
}

/// Whether a row is that of `purlin:re_long/4`.
pub fn is_long(row: &Bif) -> bool {
    (row.module, row.name) == ("purlin", "re_long")
}

/// Returns the native that `purlin:re_long/4` continues, by its last two arguments.
pub fn called(options: Term, is_first: Term) -> reschedule::Name {
    let (f, arity) = match (is_first == am::TRUE, options.is_nil()) {
        (true, true) => ("run", 2),
        (true, false) => ("run", 3),
        _ => ("internal_run", 4),
    };
    (re(), atom::intern(f), arity)
}

/// `purlin:re_long(Subject, Pattern, Options, IsFirst)`: a long match, from its beginning.
fn re_long_4(cx: &mut Env, [s, p, o, is_first]: [Term; 4]) -> BifResult {
    let name = called(o, is_first);
    let is_first = is_first.as_bool().ok_or(Fail::Badarg)?;
    reschedule::open(cx, name, |cx| {
        run_at(cx, s, p, o, is_first, At::DirtyThread)
    })
}

fn inspect_2(cx: &mut Env, [pat, what]: [Term; 2]) -> BifResult {
    let (bin, _) = as_pattern(pat).ok_or(Fail::Badarg)?;
    if what != namelist() {
        return Err(Fail::Badarg);
    }
    let Found::Here(code) = compiled_from(&bin, 0, 0, At::DirtyThread) else {
        return Err(Fail::Badarg);
    };
    let names: Vec<Term> = code.name_list().iter().map(|n| cx.binary(n)).collect();
    let l = cx.list(&names);
    Ok(cx.tuple(&[namelist(), l]))
}

fn version_0(cx: &mut Env, []: [Term; 0]) -> BifResult {
    let mut buf = [0u8; 64];
    // SAFETY: PCRE2 documents that the version takes at most 24 bytes.
    unsafe { sys::pcre2_config_8(sys::PCRE2_CONFIG_VERSION, buf.as_mut_ptr().cast()) };
    let n = buf.iter().position(|&b| b == 0).unwrap_or(buf.len());
    Ok(cx.binary(&buf[..n]))
}

bifs! {
    Plain "re":"compile"/1 = compile_1 [long];
    Plain "re":"compile"/2 = compile_2 [long];
    Plain "re":"import"/1 = import_1 [since(28) long];
    Plain "re":"run"/2 = run_2;
    Plain "re":"run"/3 = run_3;
    Plain "re":"internal_run"/4 = internal_run_4;
    Plain "re":"inspect"/2 = inspect_2;
    Plain "re":"version"/0 = version_0;
    DirtyCpu "purlin":"re_long"/4 = re_long_4;
}
