//! JSON, written and read, for exchange between tools.
//!
//! The parser reads what Purlin itself wrote, or a file that a user names. Its depth is bounded by
//! [`DEPTH`] and its memory by the caller's bytes. Errors have a position.

use std::fmt::{self, Write};

/// Maximum nesting of values.
const DEPTH: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// A whole number, written without a fraction.
    Int(i64),
    /// Any other number; one that is not finite is written as `null`.
    Number(f64),
    Text(String),
    List(Vec<Json>),
    /// Fields in the order in which they are written.
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn object<const N: usize>(pairs: [(&str, Json); N]) -> Json {
        Json::Object(pairs.map(|(k, v)| (k.to_string(), v)).into())
    }
    /// The value of the field `name` of an object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(pairs) => pairs.iter().find(|(k, _)| k == name).map(|(_, v)| v),
            _ => None,
        }
    }
    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }
    pub fn number(&self) -> Option<f64> {
        match *self {
            Json::Int(n) => Some(n as f64),
            Json::Number(n) => Some(n),
            _ => None,
        }
    }
    pub fn list(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            _ => &[],
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_string())
    }
}
impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}
impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}
impl From<u64> for Json {
    fn from(n: u64) -> Json {
        i64::try_from(n).map_or(Json::Number(n as f64), Json::Int)
    }
}
impl From<usize> for Json {
    fn from(n: usize) -> Json {
        Json::from(n as u64)
    }
}
impl From<f64> for Json {
    fn from(n: f64) -> Json {
        Json::Number(n)
    }
}
impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Json {
        value.map_or(Json::Null, Into::into)
    }
}
impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Json {
        Json::List(items.into_iter().map(Into::into).collect())
    }
}

/// Objects and lists with more than one level are written with a line per element, all others on
/// one line.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_at(self, f, 0)
    }
}

fn is_nested(v: &Json) -> bool {
    matches!(v, Json::List(items) if !items.is_empty())
        || matches!(v, Json::Object(pairs) if !pairs.is_empty())
}

fn write_at(value: &Json, f: &mut fmt::Formatter<'_>, level: usize) -> fmt::Result {
    let parts: usize = match value {
        Json::Null => return f.write_str("null"),
        Json::Bool(b) => return write!(f, "{b}"),
        Json::Int(n) => return write!(f, "{n}"),
        Json::Number(n) if n.is_finite() => return write!(f, "{n}"),
        Json::Number(_) => return f.write_str("null"),
        Json::Text(text) => return write_text(text, f),
        Json::List(items) => items.iter().filter(|v| is_nested(v)).count(),
        Json::Object(pairs) => pairs.iter().filter(|(_, v)| is_nested(v)).count(),
    };
    let lines = parts > 0;
    let separate = |f: &mut fmt::Formatter<'_>, first: bool, level: usize| {
        if !first {
            f.write_char(',')?;
        }
        match lines {
            true => write!(f, "\n{:1$}", "", level * 2),
            false if !first => f.write_char(' '),
            false => Ok(()),
        }
    };
    let (open, close) = match value {
        Json::List(_) => ('[', ']'),
        _ => ('{', '}'),
    };
    f.write_char(open)?;
    match value {
        Json::List(items) => {
            for (i, item) in items.iter().enumerate() {
                separate(f, i == 0, level + 1)?;
                write_at(item, f, level + 1)?;
            }
        }
        Json::Object(pairs) => {
            for (i, (name, item)) in pairs.iter().enumerate() {
                separate(f, i == 0, level + 1)?;
                write_text(name, f)?;
                f.write_str(": ")?;
                write_at(item, f, level + 1)?;
            }
        }
        _ => {}
    }
    if lines {
        write!(f, "\n{:1$}", "", level * 2)?;
    }
    f.write_char(close)
}

fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            c if c < ' ' || c == '\u{7f}' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// An error in JSON text, and its position.
#[derive(Debug, PartialEq, Eq)]
pub struct NotJson {
    pub at: usize,
    pub why: &'static str,
}

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON at byte {}: {}", self.at, self.why)
    }
}

/// Parses one value that spans all of `text`.
pub fn parse(text: &str) -> Result<Json, NotJson> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.wrong("more than one value")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, why: &'static str) -> NotJson {
        NotJson { at: self.at, why }
    }
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
    fn space(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }
    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }
    fn word(&mut self, word: &str, value: Json) -> Result<Json, NotJson> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(value);
        }
        Err(self.wrong("no such word"))
    }
    fn value(&mut self, depth: usize) -> Result<Json, NotJson> {
        if depth == DEPTH {
            return Err(self.wrong("nested too deeply"));
        }
        self.space();
        match self.peek() {
            None => Err(self.wrong("it ends early")),
            Some(b'n') => self.word("null", Json::Null),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'[') => self.items(b']', |r| r.value(depth + 1)).map(Json::List),
            Some(b'{') => self
                .items(b'}', |r| {
                    r.space();
                    let name = r.string()?;
                    r.space();
                    if !r.take(b':') {
                        return Err(r.wrong("a colon is missing"));
                    }
                    Ok((name, r.value(depth + 1)?))
                })
                .map(Json::Object),
            Some(_) => self.numeral(),
        }
    }
    /// The items between brackets, separated by commas.
    fn items<T>(
        &mut self,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Result<T, NotJson>,
    ) -> Result<Vec<T>, NotJson> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.take(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            self.space();
            if self.take(close) {
                return Ok(items);
            }
            if !self.take(b',') {
                return Err(self.wrong("a comma is missing"));
            }
        }
    }
    fn numeral(&mut self) -> Result<Json, NotJson> {
        let from = self.at;
        while self
            .peek()
            .is_some_and(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))
        {
            self.at += 1;
        }
        let text = &self.text[from..self.at];
        if let Ok(n) = text.parse::<i64>() {
            return Ok(Json::Int(n));
        }
        let number = text.parse::<f64>().ok().filter(|n| n.is_finite());
        number.map(Json::Number).ok_or(NotJson {
            at: from,
            why: "no value",
        })
    }
    fn string(&mut self) -> Result<String, NotJson> {
        if !self.take(b'"') {
            return Err(self.wrong("a text is missing"));
        }
        let mut out = String::new();
        loop {
            let from = self.at;
            while self.peek().is_some_and(|b| b != b'"' && b != b'\\') {
                self.at += 1;
            }
            out.push_str(&self.text[from..self.at]);
            if self.take(b'"') {
                return Ok(out);
            }
            if !self.take(b'\\') {
                return Err(self.wrong("a text does not end"));
            }
            let escaped = self.peek().ok_or(self.wrong("a text does not end"))?;
            self.at += 1;
            out.push(match escaped {
                b'"' | b'\\' | b'/' => escaped.into(),
                b'n' => '\n',
                b't' => '\t',
                b'r' => '\r',
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'u' => self.unicode()?,
                _ => return Err(self.wrong("no such escape")),
            });
        }
    }
    /// The four digits after `\u`, and those of the low surrogate if it is a high one.
    fn unicode(&mut self) -> Result<char, NotJson> {
        let first = self.four()?;
        let code = if (0xd800..0xdc00).contains(&first) {
            if !(self.take(b'\\') && self.take(b'u')) {
                return Err(self.wrong("half a character"));
            }
            let second = self.four()?;
            let low = second.wrapping_sub(0xdc00);
            if low >= 0x400 {
                return Err(self.wrong("half a character"));
            }
            0x10000 + ((first - 0xd800) << 10) + low
        } else {
            first
        };
        char::from_u32(code).ok_or(self.wrong("half a character"))
    }
    fn four(&mut self) -> Result<u32, NotJson> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let n = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
        let n = n.ok_or(self.wrong("four digits are missing"))?;
        self.at += 4;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let value = Json::object([
            ("n", Json::Int(-3)),
            ("x", Json::Number(0.25)),
            ("t", "a \"b\"\\\n\u{1}é😀".into()),
            (
                "l",
                Json::List(vec![Json::Null, true.into(), Json::List(vec![])]),
            ),
            ("o", Json::Object(vec![])),
        ]);
        assert_eq!(parse(&value.to_string()), Ok(value.clone()));
        assert_eq!(value.get("x").and_then(Json::number), Some(0.25));
        assert_eq!(Json::Number(f64::NAN).to_string(), "null");
        assert_eq!(Json::from(u64::MAX).number(), Some(u64::MAX as f64));
        assert_eq!(
            parse(r#" {"a" : ["\u00e9\ud83d\ude00\/", 1e3]} "#),
            Ok(Json::object([(
                "a",
                Json::List(vec!["é😀/".into(), Json::Number(1000.0)])
            )]))
        );
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for (text, at) in [
            ("", 0),
            ("[1,", 3),
            ("[1 2]", 3),
            ("{\"a\" 1}", 5),
            ("{a:1}", 1),
            ("tru", 0),
            ("1 2", 2),
            ("\"ab", 3),
            ("\"\\x\"", 3),
            ("\"\\u12\"", 3),
            ("\"\\ud800\"", 7),
            ("1e999", 0),
            ("-", 0),
            ("[é]", 1),
        ] {
            assert_eq!(parse(text).map_err(|e| e.at), Err(at), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(&deep).map_err(|e| e.why), Err("nested too deeply"));
    }
}
