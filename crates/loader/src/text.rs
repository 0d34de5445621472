//! Atoms as text for people.

use std::fmt::Write;

/// Returns an atom as Erlang writes it, quoted if necessary.
pub fn atom_text(text: &str) -> String {
    let is_lower = |c: char| matches!(c, 'a'..='z' | '\u{df}'..='\u{f6}' | '\u{f8}'..='\u{ff}');
    let is_upper = |c: char| matches!(c, 'A'..='Z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{de}');
    let is_word =
        |c: char| is_lower(c) || is_upper(c) || c.is_ascii_digit() || c == '_' || c == '@';
    if text.starts_with(is_lower) && text.chars().all(is_word) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for c in text.chars() {
        match c {
            '\'' => quoted.push_str("\\'"),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\x{{{:X}}}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}
