//! Splits input into lines, for ports opened with `{line, L}`.
//!
//! A line ends with LF or CR LF. A line longer than the limit comes in parts, all but the last
//! marked as having no end of line. A part is delivered as late as possible, when it is known
//! whether an end of line follows.

/// See the module head.
pub struct LineBuf {
    limit: usize,
    held: Vec<u8>,
    /// Whether a CR was read that belongs to the end of the line if an LF follows.
    cr: bool,
}

impl LineBuf {
    /// Makes a buffer for lines of at most `limit` bytes (at least 1).
    pub fn new(limit: usize) -> LineBuf {
        LineBuf {
            limit: limit.max(1),
            held: Vec::new(),
            cr: false,
        }
    }
    /// Bytes of room allocated now.
    pub fn capacity(&self) -> usize {
        self.held.capacity()
    }
    /// Takes input and passes each complete line, or part of one, to `line(eol, bytes)`.
    pub(crate) fn feed(&mut self, data: &[u8], mut line: impl FnMut(bool, &[u8])) {
        for &b in data {
            if b == b'\n' {
                line(true, &self.held);
                self.held.clear();
                self.cr = false;
                continue;
            }
            if self.cr {
                self.push(b'\r', &mut line);
                self.cr = false;
            }
            if b == b'\r' {
                self.cr = true;
            } else {
                self.push(b, &mut line);
            }
        }
    }
    fn push(&mut self, b: u8, line: &mut impl FnMut(bool, &[u8])) {
        if self.held.len() == self.limit {
            line(false, &self.held);
            self.held.clear();
        }
        self.held.push(b);
    }
    /// Delivers the rest at the end of the input.
    pub fn flush(&mut self, mut line: impl FnMut(bool, &[u8])) {
        if self.cr {
            self.push(b'\r', &mut line);
            self.cr = false;
        }
        if !self.held.is_empty() {
            line(false, &self.held);
            self.held.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limit: usize, input: &[&str], want: &[(bool, &str)]) {
        let mut b = LineBuf::new(limit);
        let mut got = Vec::new();
        let mut add = |e: bool, s: &[u8]| got.push((e, String::from_utf8_lossy(s).into_owned()));
        for s in input {
            b.feed(s.as_bytes(), &mut add);
        }
        b.flush(&mut add);
        let want: Vec<_> = want.iter().map(|&(e, s)| (e, s.to_string())).collect();
        assert_eq!(got, want, "{limit} {input:?}");
    }

    #[test]
    fn lines_and_parts() {
        check(
            80,
            &["one\ntwo\r\n\nrest"],
            &[(true, "one"), (true, "two"), (true, ""), (false, "rest")],
        );
        check(
            3,
            &["abcdefg\n"],
            &[(false, "abc"), (false, "def"), (true, "g")],
        );
        check(3, &["abc\n", "abc", "\n"], &[(true, "abc"), (true, "abc")]);
        check(3, &["abc\r", "\n"], &[(true, "abc")]);
        check(3, &["abc\rx\n"], &[(false, "abc"), (true, "\rx")]);
        check(5, &["a\rb\r\r\n"], &[(true, "a\rb\r")]);
        check(3, &["abc\r"], &[(false, "abc"), (false, "\r")]);
        check(1, &["\r\r\n"], &[(true, "\r")]);
    }
}
