//! The words of a request: the part of a list, its order, and the text by which it is filtered.

/// Number of rows of a list in an answer: default and maximum.
const ROWS: usize = 50;
const MOST_ROWS: usize = 200;
/// Maximum number of characters of a filter.
const FILTER: usize = 200;

/// The words `key=value` of a request.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of<'a>(
        words: impl Iterator<Item = &'a str>,
        keys: &[&str],
    ) -> Result<Query, String> {
        let mut all: Vec<(String, String)> = Vec::new();
        for word in words {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| format!("'{word}' is not understood"))?;
            if !keys.contains(&key) || all.iter().any(|(k, _)| k == key) {
                return Err(format!("'{key}' is not understood"));
            }
            let value = decoded(value).ok_or_else(|| format!("'{value}' is not understood"))?;
            all.push((key.to_string(), value));
        }
        Ok(Query(all))
    }
    pub(super) fn text(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(k, _)| k == key);
        found.map_or("", |(_, v)| v.as_str())
    }
    pub(super) fn number(&self, key: &str, otherwise: usize) -> Result<usize, String> {
        match self.text(key) {
            "" => Ok(otherwise),
            text => text
                .parse()
                .map_err(|_| format!("{key} takes a number, not '{text}'")),
        }
    }
    /// The text by which a list is filtered, in lower case.
    pub(super) fn filter(&self) -> Result<String, String> {
        let text = self.text("filter");
        if text.chars().count() > FILTER {
            return Err(format!("a filter has {FILTER} characters at most"));
        }
        Ok(text.to_lowercase())
    }
    /// Whether the order is descending.
    pub(super) fn descends(&self) -> Result<bool, String> {
        match self.text("order") {
            "" | "desc" => Ok(true),
            "asc" => Ok(false),
            other => Err(format!("order is asc or desc, not '{other}'")),
        }
    }
    /// The requested part of a list.
    pub(super) fn page<T>(&self, rows: Vec<T>) -> Result<Vec<T>, String> {
        let limit = self.number("limit", ROWS)?.clamp(1, MOST_ROWS);
        let offset = self.number("offset", 0)?;
        Ok(rows.into_iter().skip(offset).take(limit).collect())
    }
}

/// Decodes a percent-encoded text; `None` if it is malformed.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, more)) = rest.split_first() {
        rest = more;
        if byte == b'%' {
            let (digits, more) = rest.split_at_checked(2)?;
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            let digits = std::str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = more;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// A key for sorting rows.
pub(super) enum Key {
    Number(u64),
    Text(String),
}

/// Sorts rows. The sort is stable.
pub(super) fn sort<T>(rows: &mut [T], descends: bool, key: impl Fn(&T) -> Key) {
    use std::cmp::Ordering;
    let compare = |a: &Key, b: &Key| match (a, b) {
        (Key::Number(a), Key::Number(b)) => a.cmp(b),
        (Key::Text(a), Key::Text(b)) => match (a.is_empty(), b.is_empty()) {
            // Rows without a name come last in the order of names.
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => a.cmp(b),
        },
        _ => Ordering::Equal,
    };
    let mut keyed: Vec<(Key, usize)> = rows.iter().map(&key).zip(0..).collect();
    keyed.sort_by(|(a, i), (b, j)| {
        let o = compare(a, b);
        let o = if descends { o.reverse() } else { o };
        o.then(i.cmp(j))
    });
    // The destination of each row.
    let mut to = vec![0; rows.len()];
    for (place, (_, from)) in keyed.iter().enumerate() {
        to[*from] = place;
    }
    for i in 0..to.len() {
        while to[i] != i {
            let j = to[i];
            rows.swap(i, j);
            to.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_decoded_or_refused() {
        let of = |text: &str| Query::of(text.split_whitespace(), &["filter", "limit"]);
        let q = of("filter=a%20%C3%a9= limit=3").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(q.text("filter"), "a é=");
        assert_eq!(q.number("limit", 1), Ok(3));
        assert_eq!(q.number("offset", 7), Ok(7));
        for text in [
            "filter",
            "what=1",
            "limit=1 limit=2",
            "filter=%",
            "filter=%2",
            "filter=%+1",
            "filter=%ff",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
        let q = of("limit=x").unwrap_or_else(|e| panic!("{e}"));
        assert!(q.number("limit", 1).is_err());
    }

    #[test]
    fn rows_are_sorted_in_both_directions() {
        let mut rows = vec![(3, "b"), (1, ""), (2, "a"), (1, "c")];
        sort(&mut rows, true, |r| Key::Number(r.0));
        assert_eq!(rows, [(3, "b"), (2, "a"), (1, ""), (1, "c")]);
        sort(&mut rows, false, |r| Key::Text(r.1.to_string()));
        assert_eq!(rows, [(2, "a"), (3, "b"), (1, "c"), (1, "")]);
    }
}
