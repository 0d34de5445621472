//! Comments and strings of Rust sources.

/// Kinds of text in a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    /// Strings and characters, without their quotes.
    Literal,
}

/// Divides a source into runs of one kind: kind, first byte, and the byte behind it.
fn parts(text: &str) -> Vec<(Part, usize, usize)> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let (mut from, mut at) = (0, 0);
    let after = |at: usize, needle: &str| {
        text.get(at..)
            .and_then(|t| t.find(needle))
            .map_or(bytes.len(), |n| at + n)
    };
    while at < bytes.len() {
        let rest = &bytes[at..];
        let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let (part, start, end) = if rest.starts_with(b"//") {
            (Part::Comment, at, after(at, "\n"))
        } else if rest.starts_with(b"/*") {
            let mut depth = 0;
            let mut end = at;
            while end < bytes.len() {
                if bytes[end..].starts_with(b"/*") {
                    (depth, end) = (depth + 1, end + 2);
                } else if bytes[end..].starts_with(b"*/") {
                    (depth, end) = (depth - 1, end + 2);
                    if depth == 0 {
                        break;
                    }
                } else {
                    end += 1;
                }
            }
            (Part::Comment, at, end)
        } else if rest[0] == b'"' {
            let mut end = at + 1;
            while end < bytes.len() && bytes[end] != b'"' {
                end += 1 + usize::from(bytes[end] == b'\\');
            }
            (Part::Literal, at + 1, end.min(bytes.len()))
        } else if !in_word && let Some(n) = raw_hashes(rest) {
            let close = format!("\"{}", "#".repeat(n));
            let start = after(at, "\"") + 1;
            (Part::Literal, start, after(start, &close))
        } else if rest[0] == b'\'' && rest.get(1) == Some(&b'\\') {
            (Part::Literal, at + 1, after(at + 3, "'"))
        } else if rest[0] == b'\''
            && let Some(c) = text[at + 1..].chars().next()
            && rest.get(1 + c.len_utf8()) == Some(&b'\'')
        {
            (Part::Literal, at + 1, at + 1 + c.len_utf8())
        } else {
            at += 1;
            while !text.is_char_boundary(at) {
                at += 1;
            }
            continue;
        };
        out.push((Part::Code, from, start));
        out.push((part, start, end));
        // Behind the closing quotes. Those of raw strings have marks, which are code.
        at = end + usize::from(part == Part::Literal);
        from = end;
    }
    out.push((Part::Code, from.min(bytes.len()), bytes.len()));
    out
}

/// Number of `#` in front of a raw string; `None` if none begins here.
fn raw_hashes(rest: &[u8]) -> Option<usize> {
    let r = rest.strip_prefix(b"br").or(rest.strip_prefix(b"cr"));
    let r = r.or(rest.strip_prefix(b"r"))?;
    let n = r.iter().take_while(|b| **b == b'#').count();
    (r.get(n) == Some(&b'"')).then_some(n)
}

/// Returns a source with blanks in place of comments, strings and characters. Lines and columns
/// stay.
pub fn blank(text: &str) -> String {
    let mut out = String::new();
    for (part, from, to) in parts(text) {
        match part {
            Part::Code => out.push_str(&text[from..to]),
            _ => out.extend(
                text[from..to]
                    .chars()
                    .map(|c| if c == '\n' { c } else { ' ' }),
            ),
        }
    }
    out
}

/// Returns the comments of a source by lines: number of the line, from 0, and text.
pub fn comments(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    for (part, from, to) in parts(text) {
        if part == Part::Comment {
            let first = text[..from].matches('\n').count();
            let lines = text[from..to].lines().enumerate();
            out.extend(lines.map(|(n, l)| (first + n, l.to_string())));
        }
    }
    out
}

#[test]
fn sources_are_divided() {
    let text = "let a = \"// \\\" no\"; // yes\nlet b = '\"'; let c = '\\''; /* and\nmore */ 'a: r#\"//\"\"#";
    let found: Vec<String> = comments(text)
        .into_iter()
        .map(|c| format!("{}{}", c.0, c.1))
        .collect();
    assert_eq!(found, ["0// yes", "1/* and", "2more */"]);
    assert_eq!(blank(text).len(), text.len());
    assert!(!blank(text).contains("no") && blank(text).contains("'a: r#\""));
}
