//! Text as JSON strings.

use std::fmt::Write;

/// Writes text as a JSON string.
pub(crate) fn string(s: &str) -> String {
    let mut t = String::from("\"");
    for c in s.chars() {
        match c {
            '"' => t.push_str("\\\""),
            '\\' => t.push_str("\\\\"),
            c if (c as u32) < 0x20 => {
                let _ = write!(t, "\\u{:04x}", c as u32);
            }
            c => t.push(c),
        }
    }
    t.push('"');
    t
}

/// Writes texts as a JSON array of strings.
pub(crate) fn list(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|t| string(t)).collect();
    format!("[{}]", all.join(","))
}

/// Reads a JSON string written by [`string`].
pub(crate) fn parse(s: &str) -> Option<String> {
    let s = s.strip_prefix('"')?.strip_suffix('"')?;
    let mut t = String::new();
    let mut chars = s.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            t.push(c);
            continue;
        }
        match chars.next()? {
            'u' => {
                let hex: String = chars.by_ref().take(4).collect();
                t.push(char::from_u32(u32::from_str_radix(&hex, 16).ok()?)?);
            }
            c => t.push(c),
        }
    }
    Some(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_survive_a_round_trip() {
        for s in ["", "a b", "\"\\\n\t", "ä\u{1}"] {
            assert_eq!(parse(&string(s)).as_deref(), Some(s));
        }
        assert_eq!(parse("x"), None);
    }
}
