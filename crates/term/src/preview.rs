//! The beginning of a term as text, for people who watch a running program.
//!
//! [`crate::print`] writes terms whole, or cuts the text when it is long enough. Here the time and
//! memory taken do not depend on the size of a term, since this runs on a scheduler, in the process
//! whose term it is: it reads only the first bytes of a binary, the size of a large integer,
//! and the first pairs of a tree map.

use crate::layout::Bits;
use crate::print::{Style, format_atom, format_term};
use crate::{Term, map};

/// Number of bytes of a binary that are shown.
const BYTES_SHOWN: usize = 64;
/// Number of elements of a tuple, list or map that are shown.
const ELEMENTS: usize = 32;
/// Maximum number of words of an integer that is shown in decimal.
const DIGITS: usize = 8;
/// Maximum nesting of terms.
const DEPTH: usize = 12;

enum Todo {
    Term(Term, usize),
    Text(&'static str),
    /// The rest of a list: the tail, the number of elements that may follow, the depth.
    Tail(Term, usize, usize),
}

/// The text of `t`, cut off with `...` after about `limit` characters.
pub fn preview(t: Term, limit: usize) -> String {
    let mut out = String::new();
    let mut todo = vec![Todo::Term(t, 0)];
    while let Some(next) = todo.pop() {
        if out.len() >= limit {
            out.push_str("...");
            break;
        }
        match next {
            Todo::Text(text) => out.push_str(text),
            Todo::Tail(t, left, depth) => match t.as_cons() {
                Some(_) if left == 0 => out.push_str(",...]"),
                Some((head, tail)) => {
                    out.push(',');
                    todo.push(Todo::Tail(tail, left - 1, depth));
                    todo.push(Todo::Term(head, depth));
                }
                None if t.is_nil() => out.push(']'),
                None => {
                    out.push('|');
                    todo.push(Todo::Text("]"));
                    todo.push(Todo::Term(t, depth));
                }
            },
            Todo::Term(t, depth) => term(&mut out, &mut todo, t, depth),
        }
    }
    out
}

fn term(out: &mut String, todo: &mut Vec<Todo>, t: Term, depth: usize) {
    if t.is_atom() {
        out.push_str(&format_atom(t, Style::Write));
    } else if let Some((negative, digits)) = t.as_big() {
        match digits.len() > DIGITS {
            true => {
                let sign = if negative { "-" } else { "" };
                out.push_str(&format!("{sign}#Integer<{} bits>", digits.len() * 64));
            }
            false => out.push_str(&format_term(t, Style::Write, 1000)),
        }
    } else if let Some(bits) = t.as_bits() {
        binary(out, &bits);
    } else if let Some((head, tail)) = t.as_cons() {
        if let Some(text) = text_of(t) {
            out.push_str(&text);
        } else if depth == DEPTH {
            out.push_str("[...]");
        } else {
            out.push('[');
            todo.push(Todo::Tail(tail, ELEMENTS - 1, depth + 1));
            todo.push(Todo::Term(head, depth + 1));
        }
    } else if let Some(elements) = t.as_tuple() {
        if depth == DEPTH && !elements.is_empty() {
            out.push_str("{...}");
            return;
        }
        out.push('{');
        todo.push(Todo::Text(if elements.len() > ELEMENTS {
            ",...}"
        } else {
            "}"
        }));
        for (i, e) in elements.iter().enumerate().take(ELEMENTS).rev() {
            todo.push(Todo::Term(*e, depth + 1));
            if i > 0 {
                todo.push(Todo::Text(","));
            }
        }
    } else if t.is_map() {
        let size = map::size(t);
        if depth == DEPTH && size > 0 {
            out.push_str("#{...}");
            return;
        }
        out.push_str("#{");
        let pairs: Vec<(Term, Term)> = map::iter(t).take(ELEMENTS).collect();
        todo.push(Todo::Text(if size > ELEMENTS { ",...}" } else { "}" }));
        for (i, (key, value)) in pairs.iter().enumerate().rev() {
            todo.push(Todo::Term(*value, depth + 1));
            todo.push(Todo::Text(" => "));
            todo.push(Todo::Term(*key, depth + 1));
            if i > 0 {
                todo.push(Todo::Text(","));
            }
        }
    } else {
        // Everything else is small: a number, pid, port, reference or fun.
        out.push_str(&format_term(t, Style::Write, 1000));
    }
}

fn printable(c: char) -> bool {
    !c.is_control() || matches!(c, '\n' | '\r' | '\t')
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Text, if a binary begins with some; otherwise bytes.
fn binary(out: &mut String, bits: &Bits) {
    let shown = Bits {
        base: bits.base,
        bit_offset: bits.bit_offset,
        bit_len: bits.bit_len.min(BYTES_SHOWN * 8),
    };
    let cut = shown.bit_len < bits.bit_len;
    let bytes = shown.shifted();
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => Some(text),
        // A character was cut in two.
        Err(e) if cut && e.valid_up_to() + 4 > bytes.len() => {
            std::str::from_utf8(&bytes[..e.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    let text = text
        .filter(|t| bits.bit_len.is_multiple_of(8) && !t.is_empty() && t.chars().all(printable));
    out.push_str("<<");
    match text {
        Some(text) => quoted(out, text),
        None => {
            let left = shown.bit_len % 8;
            for (i, byte) in bytes.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                match left > 0 && i + 1 == bytes.len() {
                    true => out.push_str(&format!("{}:{left}", byte >> (8 - left))),
                    false => out.push_str(&byte.to_string()),
                }
            }
        }
    }
    if cut {
        out.push_str(&format!(",... {} bytes", bits.bit_len.div_ceil(8)));
    }
    out.push_str(">>");
}

/// A list that is text, or begins with much text.
fn text_of(t: Term) -> Option<String> {
    let mut text = String::new();
    let mut list = t.list_iter();
    for element in list.by_ref().take(BYTES_SHOWN) {
        let c = element.as_small().and_then(|n| u32::try_from(n).ok());
        text.push(c.and_then(char::from_u32).filter(|c| printable(*c))?);
    }
    let mut out = String::new();
    quoted(&mut out, &text);
    match list.tail() {
        rest if rest.is_nil() => {}
        rest if rest.as_cons().is_some() => out.push_str("..."),
        _ => return None,
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frag::Fragment;
    use crate::{Alloc, atom};

    fn shown(limit: usize, make: impl FnOnce(&mut Fragment) -> Term) -> String {
        let mut f = Fragment::new();
        let t = make(&mut f);
        let text = preview(t, limit);
        // SAFETY: nothing of it is used any more.
        unsafe { f.destroy() };
        text
    }

    #[test]
    fn small_terms_are_shown_whole() {
        let n = Term::small;
        let a = atom::intern;
        assert_eq!(
            shown(100, |f| {
                let list = f.list(&[n(1), n(-2)]);
                let text = f.string("hé\"y\n");
                let bin = f.binary(b"abc");
                let bytes = f.binary(&[0, 255]);
                let pair = f.cons(n(1), n(2));
                let m = f.flatmap(&[a("k")], &[n(7)]);
                f.tuple(&[a("Up"), list, text, bin, bytes, pair, m])
            }),
            "{'Up',[1,-2],\"hé\\\"y\\n\",<<\"abc\">>,<<0,255>>,[1|2],#{k => 7}}"
        );
    }

    #[test]
    fn large_terms_are_cut() {
        let text = shown(10_000, |f| {
            let all: Vec<Term> = (0..100_000).map(|i| Term::small(-i)).collect();
            f.list(&all)
        });
        assert!(text.ends_with(",-31,...]"), "{text}");
        let text = shown(10_000, |f| f.binary("é".repeat(40_000).as_bytes()));
        assert!(text.ends_with("é\",... 80000 bytes>>"), "{text}");
        let text = shown(10_000, |f| f.string(&"x".repeat(5000)));
        assert_eq!(text.len(), BYTES_SHOWN + 5, "{text}");
        let text = shown(20, |f| {
            let all: Vec<Term> = (0..30).map(Term::small).collect();
            f.tuple(&all)
        });
        assert_eq!(text, "{0,1,2,3,4,5,6,7,8,9...");
        let deep = |f: &mut Fragment| (0..1_000_000).fold(Term::small(0), |t, _| f.tuple(&[t]));
        assert_eq!(
            shown(10_000, deep),
            "{".repeat(12) + "{...}" + &"}".repeat(12)
        );
    }
}
