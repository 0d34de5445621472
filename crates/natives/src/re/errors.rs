//! Faults of patterns, in stock's words: PCRE2 has settings, texts and offsets that differ from
//! those of PCRE.

use crate::re_syntax;
use pcre2_sys as sys;
use std::ffi::c_int;

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
pub(super) fn settings_length(text: &[u8]) -> usize {
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
pub(super) fn error_text(code: c_int) -> String {
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
pub(super) fn text_of_pcre2(code: c_int) -> String {
    let mut buf = [0u8; 256];
    // SAFETY: the buffer's size is passed.
    let n = unsafe { sys::pcre2_get_error_message_8(code, buf.as_mut_ptr(), buf.len()) };
    String::from_utf8_lossy(&buf[..usize::try_from(n).unwrap_or(0).min(buf.len())]).into_owned()
}

/// Returns where stock's version, a later one, sees a fault that this one sees at `at`: after the
/// faulty text, not before it.
pub(super) fn behind_fault(err: c_int, at: usize, text: &[u8]) -> usize {
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
