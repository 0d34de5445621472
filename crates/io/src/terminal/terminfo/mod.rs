//! Compiled terminal descriptions (terminfo): finds one, parses it, and fills in the parameters of
//! its strings.
//!
//! A description is the content of a file: a header of six little-endian 16-bit numbers (a magic
//! number that gives the width of numbers, then sizes), the names, flags of one byte, numbers,
//! offsets of strings, and the strings, each ending with a zero byte. See term(5). Nothing in it is
//! trusted: parts beyond its end count as missing.

pub mod names;

use std::path::PathBuf;

/// Magic numbers of descriptions with numbers of 16 and of 32 bits.
const MAGIC_16: u16 = 0o432;
const MAGIC_32: u16 = 0o1036;
/// Maximum size of a description file in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// A terminal's description.
pub struct Terminal {
    flags: Vec<bool>,
    numbers: Vec<i32>,
    strings: Vec<Option<Vec<u8>>>,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Directories that may hold descriptions, in search order.
fn directories() -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let variable = |name: &[u8]| crate::osenv::get(name).map(std::ffi::OsString::from_vec);
    let mut all: Vec<PathBuf> = Vec::new();
    all.extend(variable(b"TERMINFO").map(PathBuf::from));
    all.extend(variable(b"HOME").map(|h| PathBuf::from(h).join(".terminfo")));
    if let Some(list) = variable(b"TERMINFO_DIRS") {
        all.extend(std::env::split_paths(&list).filter(|d| !d.as_os_str().is_empty()));
    }
    let usual = [
        "/etc/terminfo",
        "/lib/terminfo",
        "/usr/share/terminfo",
        "/usr/lib/terminfo",
    ];
    all.extend(usual.map(PathBuf::from));
    all
}

impl Terminal {
    /// The description of the terminal called `name`, if one is installed.
    pub fn named(name: &str) -> Option<Terminal> {
        let first = name.chars().next()?;
        if name.contains('/') || name.starts_with('.') {
            return None;
        }
        directories().iter().find_map(|d| {
            let by_letter = d.join(first.to_string()).join(name);
            let by_number = d.join(format!("{:x}", first as u32)).join(name);
            [by_letter, by_number].iter().find_map(|path| {
                let size = std::fs::metadata(path).ok()?.len();
                if size > MAX_BYTES {
                    return None;
                }
                Terminal::parse(&std::fs::read(path).ok()?)
            })
        })
    }

    /// Parses a description.
    pub fn parse(bytes: &[u8]) -> Option<Terminal> {
        let width = match u16_at(bytes, 0)? {
            MAGIC_16 => 2,
            MAGIC_32 => 4,
            _ => return None,
        };
        let size = |i: usize| u16_at(bytes, 2 * i).map(usize::from);
        let (name, flags, numbers, offsets) = (size(1)?, size(2)?, size(3)?, size(4)?);
        let at = 12 + name;
        let flag_bytes = bytes.get(at..at + flags)?;
        let at = (at + flags).next_multiple_of(2);
        let number_bytes = bytes.get(at..at + numbers * width)?;
        let at = at + numbers * width;
        let offset_bytes = bytes.get(at..at + 2 * offsets)?;
        let table = bytes.get(at + 2 * offsets..)?;
        let string = |o: &[u8]| {
            // The two largest numbers mean that there is no string.
            let from = usize::from(u16::from_le_bytes([o[0], o[1]]));
            let s = table.get(from..).filter(|_| from < 0xfffe)?;
            Some(s[..s.iter().position(|&b| b == 0)?].to_vec())
        };
        let number = |n: &[u8]| match *n {
            [a, b] => i32::from(i16::from_le_bytes([a, b])),
            [a, b, c, d] => i32::from_le_bytes([a, b, c, d]),
            _ => -1,
        };
        Some(Terminal {
            flags: flag_bytes.iter().map(|&b| b == 1).collect(),
            numbers: number_bytes.chunks(width).map(number).collect(),
            strings: offset_bytes.chunks(2).map(string).collect(),
        })
    }

    /// The flag with that termcap code.
    pub fn flag(&self, code: &str) -> bool {
        let at = names::FLAGS.iter().position(|r| r.1 == code);
        at.and_then(|i| self.flags.get(i)).copied().unwrap_or(false)
    }
    /// The number with that termcap code; -1 if the terminal or termcap has none.
    pub fn number(&self, code: &str) -> i32 {
        let at = names::NUMBERS.iter().position(|r| r.1 == code);
        let n = at.and_then(|i| self.numbers.get(i)).copied();
        n.unwrap_or(-1).max(-1)
    }
    /// The string with that termcap code.
    pub fn string_by_code(&self, code: &str) -> Option<&[u8]> {
        self.string_at(names::STRINGS.iter().position(|r| r.1 == code)?)
    }
    /// The string with that terminfo name. `Err` if there is no such name.
    pub fn string(&self, name: &str) -> Result<Option<&[u8]>, ()> {
        let at = names::STRINGS.iter().position(|r| r.0 == name);
        at.map(|i| self.string_at(i)).ok_or(())
    }
    fn string_at(&self, i: usize) -> Option<&[u8]> {
        self.strings.get(i)?.as_deref()
    }
}

/// A capability without its delays (`$<20>`), for a terminal that needs none.
pub fn without_delays(s: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(s.len());
    let mut rest = s;
    while let Some((&b, tail)) = rest.split_first() {
        match rest.strip_prefix(b"$<") {
            Some(r) if r.contains(&b'>') => {
                let end = r.iter().position(|&b| b == b'>').unwrap_or(0);
                rest = &r[end + 1..];
            }
            _ => {
                out.push(b);
                rest = tail;
            }
        }
    }
    out
}

/// Maximum number of bytes that filling in may produce, and of digits to which it may pad a number.
/// Capabilities are short.
const MAX_OUTPUT: usize = 4096;
const MAX_PAD: usize = 256;

/// Fills in the parameters of a string by the rules of terminfo(5): `%p1` pushes a parameter, `%d`
/// prints the top of the stack, `%?…%t…%e…%;` chooses.
pub fn fill_in(s: &[u8], parameters: [i64; 9]) -> Vec<u8> {
    let mut p = parameters;
    let mut vars = [0i64; 52];
    let mut stack: Vec<i64> = Vec::new();
    let mut out = Vec::new();
    let mut at = 0;
    let variable = |c: u8| match c {
        b'a'..=b'z' => Some(usize::from(c - b'a')),
        b'A'..=b'Z' => Some(26 + usize::from(c - b'A')),
        _ => None,
    };
    while at < s.len() && out.len() < MAX_OUTPUT {
        let b = s[at];
        at += 1;
        if b != b'%' {
            out.push(b);
            continue;
        }
        let Some(&c) = s.get(at) else { break };
        at += 1;
        let mut pop = || stack.pop().unwrap_or(0);
        match c {
            b'%' => out.push(b'%'),
            b'i' => {
                p[0] = p[0].wrapping_add(1);
                p[1] = p[1].wrapping_add(1);
            }
            b'c' => {
                let v = pop() as u8;
                // Zero ends a string; terminals take 128 for it.
                out.push(if v == 0 { 0x80 } else { v });
            }
            b'p' => {
                let n = s.get(at).filter(|d| (b'1'..=b'9').contains(d));
                stack.push(n.map_or(0, |d| p[usize::from(d - b'1')]));
                at += 1;
            }
            b'P' => {
                let v = pop();
                if let Some(i) = s.get(at).and_then(|&c| variable(c)) {
                    vars[i] = v;
                }
                at += 1;
            }
            b'g' => {
                let i = s.get(at).and_then(|&c| variable(c));
                stack.push(i.map_or(0, |i| vars[i]));
                at += 1;
            }
            b'\'' => {
                stack.push(s.get(at).map_or(0, |&c| i64::from(c)));
                at += 2;
            }
            b'{' => {
                let (n, digits) = number(&s[at..]);
                at += digits + 1;
                stack.push(n);
            }
            // The length of a string: no parameter is a string.
            b'l' => {
                pop();
                stack.push(0);
            }
            b'!' => {
                let v = i64::from(pop() == 0);
                stack.push(v);
            }
            b'~' => {
                let v = !pop();
                stack.push(v);
            }
            b'+' | b'-' | b'*' | b'/' | b'm' | b'&' | b'|' | b'^' | b'=' | b'<' | b'>' | b'A'
            | b'O' => {
                let (y, x) = (pop(), pop());
                stack.push(binary(c, x, y));
            }
            b'?' | b';' => {}
            b't' => {
                if pop() == 0 {
                    at = after_branch(s, at, true);
                }
            }
            // The end of a branch that was taken.
            b'e' => at = after_branch(s, at, false),
            // A format: flags, width, precision, then d, o, x, X or s.
            _ => {
                at -= 1;
                let start = at;
                while s.get(at).is_some_and(|c| b":-+# .0123456789".contains(c)) {
                    at += 1;
                }
                let Some(&conversion) = s.get(at) else { break };
                let format = &s[start..at];
                at += 1;
                print(&mut out, format, conversion, pop());
            }
        }
    }
    out
}

/// The number that the text begins with, and how many digits it has.
fn number(s: &[u8]) -> (i64, usize) {
    let digits = s.iter().take_while(|d| d.is_ascii_digit());
    let add = |n: i64, d: &u8| n.wrapping_mul(10).wrapping_add(i64::from(d - b'0'));
    (digits.clone().fold(0, add), digits.count())
}

/// The value of a binary operation.
fn binary(op: u8, x: i64, y: i64) -> i64 {
    match op {
        b'+' => x.wrapping_add(y),
        b'-' => x.wrapping_sub(y),
        b'*' => x.wrapping_mul(y),
        b'/' => x.checked_div(y).unwrap_or(0),
        b'm' => x.checked_rem(y).unwrap_or(0),
        b'&' => x & y,
        b'|' => x | y,
        b'^' => x ^ y,
        b'=' => i64::from(x == y),
        b'<' => i64::from(x < y),
        b'>' => i64::from(x > y),
        b'A' => i64::from(x != 0 && y != 0),
        _ => i64::from(x != 0 || y != 0),
    }
}

/// The end of a skipped branch: behind its `%;`, or its `%e` if `stop_at_else`.
fn after_branch(s: &[u8], mut at: usize, stop_at_else: bool) -> usize {
    let mut depth = 0;
    while at + 1 < s.len() {
        if s[at] != b'%' {
            at += 1;
            continue;
        }
        match s[at + 1] {
            b'?' => depth += 1,
            b';' if depth == 0 => return at + 2,
            b';' => depth -= 1,
            b'e' if depth == 0 && stop_at_else => return at + 2,
            _ => {}
        }
        at += 2;
    }
    s.len()
}

fn print(out: &mut Vec<u8>, format: &[u8], conversion: u8, v: i64) {
    let (mut left, mut plus, mut space, mut alternate, mut zero) =
        (false, false, false, false, false);
    let mut at = 0;
    while let Some(&c) = format.get(at) {
        match c {
            b':' => {}
            b'-' => left = true,
            b'+' => plus = true,
            b' ' => space = true,
            b'#' => alternate = true,
            b'0' => zero = true,
            _ => break,
        }
        at += 1;
    }
    let number = |at: &mut usize| {
        let mut n = 0;
        while let Some(d) = format.get(*at).filter(|d| d.is_ascii_digit()) {
            n = (n * 10 + usize::from(d - b'0')).min(MAX_PAD);
            *at += 1;
        }
        n
    };
    let width = number(&mut at);
    let precision = (format.get(at) == Some(&b'.')).then(|| {
        at += 1;
        number(&mut at)
    });
    let (sign, mut digits) = match conversion {
        b'd' => {
            let sign = match v {
                ..0 => "-",
                _ if plus => "+",
                _ if space => " ",
                _ => "",
            };
            (sign, v.unsigned_abs().to_string())
        }
        b'o' => (if alternate { "0" } else { "" }, format!("{:o}", v as u32)),
        b'x' => (if alternate { "0x" } else { "" }, format!("{:x}", v as u32)),
        b'X' => (if alternate { "0X" } else { "" }, format!("{:X}", v as u32)),
        // No parameter is a string, and nothing else is a format.
        _ => return,
    };
    let least = precision.unwrap_or(if zero && !left {
        width.saturating_sub(sign.len())
    } else {
        1
    });
    while digits.len() < least {
        digits.insert(0, '0');
    }
    let text = format!("{sign}{digits}");
    let pad = " ".repeat(width.saturating_sub(text.len()));
    let parts = if left { [text, pad] } else { [pad, text] };
    parts
        .iter()
        .for_each(|p| out.extend_from_slice(p.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(s: &str, p: &[i64]) -> String {
        let mut all = [0; 9];
        all[..p.len()].copy_from_slice(p);
        String::from_utf8_lossy(&fill_in(s.as_bytes(), all)).into_owned()
    }

    #[test]
    fn parameters() {
        assert_eq!(filled("\x1b[%i%p1%d;%p2%dH", &[4, 9]), "\x1b[5;10H");
        let colour = "\x1b[%?%p1%{8}%<%t3%p1%d%e%p1%{16}%<%t9%p1%{8}%-%d%e38;5;%p1%d%;m";
        assert_eq!(filled(colour, &[3]), "\x1b[33m");
        assert_eq!(filled(colour, &[9]), "\x1b[91m");
        assert_eq!(filled(colour, &[200]), "\x1b[38;5;200m");
        assert_eq!(filled("%p1%02x|%p1%:-4d|%p1%3d|%%", &[7]), "07|7   |  7|%");
        assert_eq!(filled("%p1%' '%+%c", &[1]), "!");
        assert_eq!(filled("%p1%Pa%ga%ga%+%d", &[21]), "42");
        assert_eq!(filled("%p1%{0}%/%d%", &[21]), "0");
        assert_eq!(filled("%?%p1%t", &[0]), "");
    }

    #[test]
    fn delays_are_cut_out() {
        assert_eq!(without_delays(b"\x1b[A$<5*/>x"), b"\x1b[Ax");
        assert_eq!(without_delays(b"a$b$<"), b"a$b$<");
    }

    #[test]
    fn a_description() {
        let mut d: Vec<u8> = Vec::new();
        for n in [0o432u16, 4, 2, 1, 2, 3] {
            d.extend(n.to_le_bytes());
        }
        d.extend(b"abc\0");
        d.extend([0, 1]);
        d.extend(80i16.to_le_bytes());
        d.extend([0xff, 0xff, 0, 0]);
        d.extend(b"\x07x\0");
        let t = Terminal::parse(&d).expect("a description");
        assert!(t.flag("am") && !t.flag("bw") && !t.flag("none"));
        assert_eq!(
            (t.number("co"), t.number("li"), t.number("??")),
            (80, -1, -1)
        );
        assert_eq!(t.string_by_code("bt"), None);
        assert_eq!(t.string("bel"), Ok(Some(&b"\x07x"[..])));
        assert_eq!(t.string("nonsense"), Err(()));
        for cut in 0..d.len() {
            let _ = Terminal::parse(&d[..cut]);
        }
    }
}
