//! The line that is being edited on a terminal: the driver's copy of it, and the bytes that bring
//! the screen up to date.
//!
//! # Cells
//! The line is a row of cells. A printable character is one cell. Others take several: control
//! characters two (`^X`), a tab as many as reach the next multiple of 8, a character that the
//! terminal cannot show as many as its escaped form (`\ooo`, `\x{hh}`) has. The first of them
//! carries the character, the others are padding; the cursor steps over them together. An escape
//! character is one cell and is sent unchanged.
//!
//! Columns are counted from cells: escape sequences take none, other characters as many as the
//! locale says. The cursor is at a cell. Text written there replaces the cells, unless it is
//! inserted.

use crate::os::terminal;

/// Byte sequences that move the cursor by one, and a property of the terminal.
pub(crate) struct Caps {
    pub up: Vec<u8>,
    pub down: Vec<u8>,
    pub left: Vec<u8>,
    pub right: Vec<u8>,
    /// Whether a character in the last column leaves the cursor there until the next one comes.
    pub glitch: bool,
}

/// One cell. See the module head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cell {
    Char(u32),
    /// A control character, or a tab or escape.
    Control(u8),
    ControlPad,
    Escaped(u32),
    EscapedPad,
}

impl Cell {
    fn is_pad(self) -> bool {
        matches!(self, Cell::ControlPad | Cell::EscapedPad)
    }
}

const TAB: u8 = b'\t';
const ESC: u8 = 0x1B;
/// Number of cells beyond which a line is ended by force.
const MAX_CELLS: usize = 1 << 16;

/// The locale's knowledge of characters.
pub(crate) trait Locale {
    /// Number of columns; negative if the character cannot be shown.
    fn width(&self, c: u32) -> i32;
    /// Whether a character below 256 can be shown.
    fn printable(&self, c: u8) -> bool;
}

/// See the module head.
pub(crate) struct Line<L> {
    cells: Vec<Cell>,
    /// Cell of the cursor; may be the end.
    at: usize,
    pub columns: usize,
    /// Whether the terminal shows UTF-8.
    pub utf8: bool,
    caps: Caps,
    locale: L,
    /// The bytes that must be written.
    pub out: Vec<u8>,
}

/// The next character of UTF-8. A byte that is not part of one counts as a character.
fn next_char(s: &[u8]) -> (u32, usize) {
    match decode(s) {
        Decoded::Char(c, n) => (c, n),
        _ => (u32::from(s[0]), 1),
    }
}

/// The character or sequence at the start of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// A character and its length in bytes.
    Char(u32, usize),
    /// The beginning of a character.
    Incomplete,
    Invalid,
}

/// Decodes the first character of UTF-8 in `s`, which is not empty.
pub fn decode(s: &[u8]) -> Decoded {
    let n = match s[0] {
        0..=0x7F => return Decoded::Char(u32::from(s[0]), 1),
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return Decoded::Invalid,
    };
    let have = &s[..n.min(s.len())];
    match std::str::from_utf8(have) {
        Ok(t) => match t.chars().next() {
            Some(c) => Decoded::Char(c as u32, n),
            None => Decoded::Invalid,
        },
        Err(e) if e.error_len().is_none() => Decoded::Incomplete,
        Err(_) => Decoded::Invalid,
    }
}

/// The escaped form of a character, without the backslash.
fn escaped(c: u32) -> String {
    if c < 0o1000 {
        format!("{c:03o}")
    } else {
        format!("x{{{c:X}}}")
    }
}

impl<L: Locale> Line<L> {
    pub fn new(caps: Caps, locale: L, columns: usize, utf8: bool) -> Line<L> {
        Line {
            cells: Vec::new(),
            at: 0,
            columns: columns.max(1),
            utf8,
            caps,
            locale,
            out: Vec::new(),
        }
    }

    /// Writes characters over the cells at the cursor.
    pub fn put(&mut self, text: &[u8]) {
        self.end_long_line();
        let n = self.overwrite(text);
        self.show(self.at - n, self.at, false);
    }

    /// Inserts characters at the cursor.
    pub fn insert(&mut self, text: &[u8]) {
        self.end_long_line();
        let tail = self.cells.split_off(self.at);
        let n = self.overwrite(text);
        self.cells.truncate(self.at);
        self.cells.extend_from_slice(&tail);
        let end = self.cells.len();
        self.show(self.at - n, end, false);
        self.move_cursor(end, self.at);
    }

    /// Moves the cursor by characters.
    pub fn step(&mut self, n: i32) {
        let to = self.over(n);
        self.move_cursor(self.at, to);
        self.at = to;
    }

    /// Deletes characters behind the cursor, or (negative) before it.
    pub fn delete(&mut self, n: i32) {
        let to = self.over(n);
        let gone = if to > self.at {
            let w = self.column(to).saturating_sub(self.column(self.at));
            self.cells.drain(self.at..to);
            w
        } else if to < self.at {
            let w = self.move_cursor(self.at, to).unsigned_abs();
            self.cells.drain(to..self.at);
            self.at = to;
            w
        } else {
            return;
        };
        let end = self.cells.len();
        self.show(self.at, end, false);
        self.out.extend(std::iter::repeat_n(b' ', gone));
        if self.caps.glitch && (self.column(end) + gone).is_multiple_of(self.columns) {
            self.out.push(b' ');
            self.left(1);
        }
        self.move_cursor(end + gone, self.at);
    }

    pub(crate) fn beep(&mut self) {
        self.out.push(7);
    }

    fn end_long_line(&mut self) {
        if self.at > MAX_CELLS {
            self.new_line(0, b'\n');
        }
    }

    /// The cell `n` characters away from the cursor, or the nearest end.
    fn over(&self, n: i32) -> usize {
        let mut to = self.at;
        for _ in 0..n {
            if to >= self.cells.len() {
                break;
            }
            to += 1;
            while self.cells.get(to).is_some_and(|c| c.is_pad()) {
                to += 1;
            }
        }
        for _ in n..0 {
            if to == 0 {
                break;
            }
            to -= 1;
            while to > 0 && self.cells[to].is_pad() {
                to -= 1;
            }
        }
        to
    }

    fn set(&mut self, c: Cell) {
        match self.cells.get_mut(self.at) {
            Some(p) => *p = c,
            None => self.cells.push(c),
        }
        self.at += 1;
    }

    /// Puts characters into cells from the cursor on. A line end shows the text before it and
    /// begins a new line. Returns the number of cells that are still to be shown; they end at the
    /// cursor.
    fn overwrite(&mut self, mut text: &[u8]) -> usize {
        let mut from = self.at;
        while !text.is_empty() {
            let (c, n) = next_char(text);
            text = &text[n..];
            let byte = u8::try_from(c).ok();
            if (self.utf8 && c >= 128) || byte.is_some_and(|b| self.locale.printable(b)) {
                self.set(Cell::Char(c));
                continue;
            }
            match byte {
                Some(TAB) => {
                    self.set(Cell::Control(TAB));
                    while !self.at.is_multiple_of(8) {
                        self.set(Cell::ControlPad);
                    }
                }
                Some(ESC) => self.set(Cell::Control(ESC)),
                Some(b @ (b'\n' | b'\r')) => {
                    self.new_line(from, b);
                    from = 0;
                }
                Some(b) if b < 128 => {
                    self.set(Cell::Control(b));
                    self.set(Cell::ControlPad);
                }
                _ => {
                    self.set(Cell::Escaped(c));
                    for _ in 0..escaped(c).len() {
                        self.set(Cell::EscapedPad);
                    }
                }
            }
        }
        self.at - from
    }

    /// Shows the cells from `from` to the cursor and ends the line there. The cells behind the
    /// cursor stay.
    fn new_line(&mut self, from: usize, by: u8) {
        self.show(from, self.at, true);
        self.out.push(b'\r');
        if by == b'\n' {
            self.out.push(b'\n');
        }
        self.cells.drain(..self.at);
        self.at = 0;
    }

    /// Writes cells. The cursor of the screen is at the first of them. `line_ends`: the next output
    /// ends the line.
    fn show(&mut self, from: usize, to: usize, line_ends: bool) {
        let mut last: Vec<u8> = vec![b' '];
        let mut i = from;
        while i < to {
            match self.cells[i] {
                Cell::Char(c) => {
                    last.clear();
                    match char::from_u32(c).filter(|_| self.utf8) {
                        Some(c) => {
                            last.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        None => last.push(c as u8),
                    }
                    self.out.extend_from_slice(&last);
                }
                Cell::Control(TAB) | Cell::ControlPad if self.in_tab(i) => {
                    last = vec![b' '];
                    self.out.push(b' ');
                }
                Cell::Control(ESC) => {
                    last = vec![ESC];
                    self.out.push(ESC);
                }
                Cell::Control(b) => {
                    last = vec![if b == 0x7F { b'?' } else { b | 0x40 }];
                    self.out.push(b'^');
                    self.out.extend_from_slice(&last);
                }
                Cell::Escaped(c) => {
                    let s = escaped(c);
                    self.out.push(b'\\');
                    self.out.extend_from_slice(s.as_bytes());
                    last = s.as_bytes()[s.len() - 1..].to_vec();
                }
                Cell::ControlPad | Cell::EscapedPad => {}
            }
            i += 1;
        }
        if !line_ends && self.caps.glitch && to != 0 && self.column(to).is_multiple_of(self.columns)
        {
            // Makes the terminal wrap now.
            if to >= self.cells.len() {
                self.out.push(b' ');
            } else {
                self.out.extend_from_slice(&last);
            }
            self.left(1);
        }
    }
    fn in_tab(&self, i: usize) -> bool {
        let first = self.cells[..=i]
            .iter()
            .rposition(|c| *c != Cell::ControlPad);
        first.is_some_and(|f| self.cells[f] == Cell::Control(TAB))
    }

    /// Number of columns before a cell, over all screen rows of the line.
    fn column(&self, cell: usize) -> usize {
        let end = self.cells.len();
        let mut col = cell.saturating_sub(end);
        let cell = cell.min(end);
        let mut i = 0;
        while i < cell {
            match self.cells[i] {
                Cell::Control(ESC) => i += self.escape_cells(i),
                Cell::Char(c) => {
                    col += usize::try_from(self.locale.width(c)).unwrap_or(0);
                    i += 1;
                }
                _ => i += 1,
            }
        }
        col
    }
    /// Number of cells of the escape sequence at a cell: a colour sequence up to its final byte.
    fn escape_cells(&self, at: usize) -> usize {
        let rest = &self.cells[at..];
        match rest.get(1) {
            None => 1,
            Some(Cell::Char(c)) if *c == u32::from(b'[') => {
                let parameters = rest[2..].iter().take_while(|c| match c {
                    Cell::Char(c) => {
                        *c == u32::from(b';') || (u32::from(b'0')..=u32::from(b'9')).contains(c)
                    }
                    _ => false,
                });
                3 + parameters.count()
            }
            Some(_) => 2,
        }
    }

    /// Moves the cursor of the screen between cells. Returns the number of columns.
    fn move_cursor(&mut self, from: usize, to: usize) -> isize {
        let (from, to) = (self.column(from), self.column(to));
        let n = self.columns;
        let (rows, cols) = (
            (to / n) as isize - (from / n) as isize,
            (to % n) as isize - (from % n) as isize,
        );
        for _ in 0..rows {
            self.out.extend_from_slice(&self.caps.down);
        }
        for _ in rows..0 {
            self.out.extend_from_slice(&self.caps.up);
        }
        for _ in 0..cols {
            self.out.extend_from_slice(&self.caps.right);
        }
        self.left((-cols).max(0));
        to as isize - from as isize
    }
    fn left(&mut self, n: isize) {
        for _ in 0..n {
            self.out.extend_from_slice(&self.caps.left);
        }
    }
}

impl Locale for terminal::SystemLocale {
    fn width(&self, c: u32) -> i32 {
        terminal::char_width(c)
    }
    fn printable(&self, c: u8) -> bool {
        terminal::is_printable(c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain;
    impl Locale for Plain {
        fn width(&self, c: u32) -> i32 {
            match c {
                0x1100..=0x115F | 0x3040..=0xFFFF => 2,
                0x300..=0x36F => 0,
                _ => 1,
            }
        }
        fn printable(&self, c: u8) -> bool {
            (32..127).contains(&c)
        }
    }

    fn line(columns: usize, utf8: bool) -> Line<Plain> {
        let caps = Caps {
            up: b"U".into(),
            down: b"D".into(),
            left: b"<".into(),
            right: b">".into(),
            glitch: true,
        };
        Line::new(caps, Plain, columns, utf8)
    }
    fn check(l: &mut Line<Plain>, want: &str) {
        assert_eq!(String::from_utf8_lossy(&std::mem::take(&mut l.out)), want);
    }

    #[test]
    fn editing_within_a_line() {
        let mut l = line(80, true);
        l.put(b"1> ");
        check(&mut l, "1> ");
        l.insert(b"abc");
        check(&mut l, "abc");
        l.step(-2);
        check(&mut l, "<<");
        l.insert(b"X");
        check(&mut l, "Xbc<<");
        l.delete(-1);
        check(&mut l, "<bc <<<");
        l.delete(1);
        check(&mut l, "c <<");
        l.step(100);
        check(&mut l, ">");
        l.put(b"\nnext");
        check(&mut l, "\r\nnext");
        l.step(-100);
        check(&mut l, "<<<<");
        l.beep();
        check(&mut l, "\u{7}");
    }

    #[test]
    fn characters_that_take_more_than_a_cell() {
        let mut l = line(80, true);
        l.insert("a\u{3042}\u{e9}".as_bytes());
        check(&mut l, "a\u{3042}\u{e9}");
        l.step(-2);
        check(&mut l, "<<<");
        l.put(b"\x01\t|");
        check(&mut l, "^A     |");
        l.step(-3);
        check(&mut l, "<");
        let mut l = line(80, false);
        l.put("\u{e9}\u{3042}".as_bytes());
        // No columns are counted for these, so the end of the line seems to be at the edge of the
        // screen.
        check(&mut l, "\\351\\x{3042} <");
        let mut l = line(80, true);
        l.put(b"\x1b[31mab\x1b[0m");
        check(&mut l, "\x1b[31mab\x1b[0m");
        l.step(-100);
        check(&mut l, "<<");
    }

    #[test]
    fn lines_longer_than_the_screen() {
        let mut l = line(5, true);
        l.put(b"abcde");
        check(&mut l, "abcde <");
        l.insert(b"fg");
        check(&mut l, "fg");
        l.step(-4);
        check(&mut l, "U>");
        l.delete(-1);
        check(&mut l, "<defg U");
        l.step(10);
        check(&mut l, "D<");
    }
}
