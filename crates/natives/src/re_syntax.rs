//! Translates the pattern syntax of PCRE to that of PCRE2, its successor.
//!
//! `re` is documented as PCRE. PCRE2 knows more syntax, refuses text that PCRE takes literally
//! (`[\w-.]`, `\j`), and reports faults at other offsets. [`read`] walks through a pattern once. It
//! either finds a fault of PCRE, with PCRE's text and offset, or rewrites the pattern so that PCRE2
//! takes it as PCRE did. PCRE2 judges whatever is left unchanged; [`Read::place`] returns the
//! offset that PCRE gives to such a fault.
//!
//! Nothing here decides what matches. The walk looks at each byte once, and keeps a stack of open
//! groups.

/// A text of PCRE and its offset.
pub(crate) type Fault = (&'static str, usize);

/// The requested options.
#[derive(Clone, Copy, Default)]
pub struct How {
    pub utf: bool,
    pub extended: bool,
    pub no_auto_capture: bool,
    /// Two groups may have the same name.
    pub same_names: bool,
    /// Newlines end at a carriage return too.
    pub cr: bool,
}

/// A pattern for PCRE2.
pub(crate) struct Read {
    pub text: Vec<u8>,
    /// Where offsets of the given pattern and of `text` diverge: position in `text`, and the
    /// difference from there on.
    shifts: Vec<(usize, isize)>,
    /// Ranges of the groups that matter for the place of a fault.
    groups: Vec<(usize, usize)>,
    references: Vec<Reference>,
    names: Vec<Vec<u8>>,
    captures: usize,
    /// The end of the first condition with more than two branches.
    crowded: Option<usize>,
    /// The first call that recurses to itself with nothing matched in between. PCRE reports it if
    /// everything else is valid.
    pub endless: Option<usize>,
}

pub(crate) const ENDLESS: &str = "recursive call could loop indefinitely";

enum What {
    Name(Vec<u8>),
    /// A group that is called, or that a condition asks for.
    Called(usize),
    /// `\1`: PCRE only checks whether there is such a group at the end.
    Back,
    /// Counted from its place; false: there is no such group.
    Relative(bool),
}
struct Reference {
    what: What,
    /// The offset that PCRE reports.
    at: usize,
}

/// The statement of a part of a pattern about an alternative: that it matches a character; that it
/// may match none whatever follows it (a call of a group that hasn't been read); or nothing.
type Says = Option<bool>;

/// An open group, or the whole pattern, as to whether it must match a character.
#[derive(Default)]
struct Level {
    asserts: bool,
    condition: bool,
    capture: usize,
    /// This alternative in two: all but the last part; the last part, which may yet be repeated.
    so_far: Says,
    last: Says,
    alternatives: usize,
    /// Number of earlier alternatives that must match a character.
    must: usize,
}

impl Level {
    fn settle(&mut self) {
        self.so_far = self.so_far.or(self.last.take());
    }
    fn part(&mut self, says: Says) {
        self.settle();
        self.last = says;
    }
    fn alternative(&mut self) {
        self.settle();
        self.alternatives += 1;
        self.must += usize::from(self.so_far.take() == Some(true));
    }
}

/// An open group.
struct Group {
    start: usize,
    extended: bool,
    extra: bool,
    behind: bool,
    /// It, or a group in it, has a back reference.
    refers: bool,
}

const NO_VERB: &str = "(*VERB) not recognized or malformed";
const NO_ARGUMENT: &str = "an argument is not allowed for (*ACCEPT), (*FAIL), or (*COMMIT)";
const NO_NAMES: &str = "PCRE does not support \\L, \\l, \\N{name}, \\U, or \\u";
const BAD_OPTION: &str = "unrecognized character after (? or (?-";
const BAD_RANGE: &str = "invalid range in character class";
const NOT_FIXED: &str = "lookbehind assertion is not fixed length";
const LONG_NAME: &str = "subpattern name is too long (maximum 32 characters)";
pub(crate) const SAME_NAME: &str = "two named subpatterns have the same name";
const NO_NAME: &str = "subpattern name expected";
const NO_PROPERTY: &str = "unknown property name after \\P or \\p";
const NO_ESCAPE: &str = "unrecognized character follows \\";
const NO_ASSERTION: &str = "assertion expected after (?( or (?(?C)";
const UNCLOSED: &str = "missing )";
const CONDITION_ZERO: &str = "invalid condition (?(0)";
const MALFORMED: &str = "malformed number or name after (?(";
const NO_REFERENCE: &str =
    "\\g is not followed by a braced, angle-bracketed, or quoted name/number or by a plain number";
const NO_ZERO: &str = "a numbered reference must not be zero";
const RECURSION: &str = "(?R or (?[+-]digits must be followed by )";
const NO_REPEAT: &str = "nothing to repeat";
const TOO_BIG: &str = "number is too big";

/// PCRE2's code for a lookbehind of variable but bounded length, which PCRE doesn't distinguish
/// from others.
pub(crate) const TOO_LONG: i32 = 200;

/// Properties that PCRE knows; it knows neither later ones of PCRE2 nor other spellings.
const PROPERTIES: &str = " Any Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bopomofo Brahmi Braille Buginese \
Buhid C Canadian_Aboriginal Carian Caucasian_Albanian Cc Cf Chakma Cham Cherokee Cn Co Common Coptic Cs Cuneiform Cypriot \
Cyrillic Deseret Devanagari Duployan Egyptian_Hieroglyphs Elbasan Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati \
Gurmukhi Han Hangul Hanunoo Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese \
Kaithi Kannada Katakana Kayah_Li Kharoshthi Khmer Khojki Khudawadi L L& Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Ll Lm \
Lo Lt Lu Lycian Lydian M Mahajani Malayalam Mandaic Manichaean Mc Me Meetei_Mayek Mende_Kikakui Meroitic_Cursive \
Meroitic_Hieroglyphs Miao Mn Modi Mongolian Mro Myanmar N Nabataean Nd New_Tai_Lue Nko Nl No Ogham Ol_Chiki Old_Italic \
Old_North_Arabian Old_Permic Old_Persian Old_South_Arabian Old_Turkic Oriya Osmanya P Pahawh_Hmong Palmyrene Pau_Cin_Hau Pc \
Pd Pe Pf Phags_Pa Phoenician Pi Po Ps Psalter_Pahlavi Rejang Runic S Samaritan Saurashtra Sc Sharada Shavian Siddham Sinhala \
Sk Sm So Sora_Sompeng Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Telugu Thaana Thai \
Tibetan Tifinagh Tirhuta Ugaritic Vai Warang_Citi Xan Xps Xsp Xuc Xwd Yi Z Zl Zp Zs ";

/// Settings that may begin a pattern.
const SETTINGS: [&str; 12] = [
    "UTF8)",
    "UTF)",
    "UCP)",
    "NO_AUTO_POSSESS)",
    "NO_START_OPT)",
    "CR)",
    "LF)",
    "CRLF)",
    "ANY)",
    "ANYCRLF)",
    "BSR_ANYCRLF)",
    "BSR_UNICODE)",
];

const CLASSES: [&str; 14] = [
    "alpha", "lower", "upper", "alnum", "ascii", "blank", "cntrl", "digit", "graph", "print",
    "punct", "space", "word", "xdigit",
];

struct Reader<'a> {
    p: &'a [u8],
    i: usize,
    how: How,
    out: Vec<u8>,
    shifts: Vec<(usize, isize)>,
    open: Vec<Group>,
    groups: Vec<(usize, usize)>,
    references: Vec<Reference>,
    names: Vec<Vec<u8>>,
    captures: usize,
    /// The total number of groups, if it is known already.
    all: Option<usize>,
    /// The highest group whose recursion a condition asks for.
    recursed: usize,
    extended: bool,
    extra: bool,
    /// This alternative is still empty.
    fresh: bool,
    /// The whole, and the open groups in it.
    levels: Vec<Level>,
    /// By number: whether a group that has been read must match a character.
    must: Vec<Option<bool>>,
    /// Numbers of the named groups, in the order of `names`.
    numbers: Vec<usize>,
    /// Position after a repetition, where a mark of its kind may follow.
    repeated: usize,
    crowded: Option<usize>,
    endless: Option<usize>,
}

/// Reads a pattern. Bytes that should be UTF-8 but aren't are left to PCRE2.
pub fn read(pattern: &[u8], how: How) -> Result<Read, Fault> {
    let (r, recursed) = pass(pattern, how, None)?;
    match recursed > r.captures {
        // PCRE accepts a condition that asks about recursion into a group that does not exist.
        true => pass(pattern, how, Some(r.captures)).map(|r| r.0),
        false => Ok(r),
    }
}

/// Walks once. Also returns the highest group about whose recursion a condition asks.
fn pass(pattern: &[u8], how: How, all: Option<usize>) -> Result<(Read, usize), Fault> {
    let mut r = Reader {
        p: pattern,
        i: 0,
        how,
        out: Vec::with_capacity(pattern.len()),
        shifts: Vec::new(),
        open: Vec::new(),
        groups: Vec::new(),
        references: Vec::new(),
        names: Vec::new(),
        captures: 0,
        all,
        recursed: 0,
        extended: how.extended,
        extra: false,
        fresh: true,
        levels: vec![Level::default()],
        must: Vec::new(),
        numbers: Vec::new(),
        repeated: usize::MAX,
        crowded: None,
        endless: None,
    };
    r.settings();
    while r.i < r.p.len() {
        r.item()?;
    }
    let recursed = r.recursed;
    let read = Read {
        text: r.out,
        shifts: r.shifts,
        groups: r.groups,
        references: r.references,
        names: r.names,
        captures: r.captures,
        crowded: r.crowded,
        // Alternatives that number their groups alike are not counted so here.
        endless: r
            .endless
            .filter(|_| !pattern.windows(3).any(|w| w == b"(?|")),
    };
    Ok((read, recursed))
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c >= 128
}

impl Reader<'_> {
    fn at(&self, i: usize) -> Option<u8> {
        self.p.get(i).copied()
    }
    fn has(&self, i: usize, s: &str) -> bool {
        self.p.get(i..).is_some_and(|r| r.starts_with(s.as_bytes()))
    }
    /// Copies the pattern up to `to`.
    fn copy_to(&mut self, to: usize) {
        let to = to.min(self.p.len());
        self.out.extend_from_slice(&self.p[self.i..to]);
        self.i = to;
    }
    /// Writes `s` instead of the pattern up to `to`.
    fn write_to(&mut self, to: usize, s: &[u8]) {
        self.out.extend_from_slice(s);
        self.i = to.min(self.p.len());
        let shift = self.i as isize - self.out.len() as isize;
        self.shifts.push((self.out.len(), shift));
    }
    /// Returns the first position from `i` on whose byte isn't one of those.
    fn skip(&self, i: usize, f: impl Fn(u8) -> bool) -> usize {
        let rest = self.p.get(i..).unwrap_or_default();
        i + rest.iter().position(|&c| !f(c)).unwrap_or(rest.len())
    }

    fn settings(&mut self) {
        while self.has(self.i, "(*") {
            let i = self.i + 2;
            if let Some(s) = SETTINGS.iter().find(|s| self.has(i, s)) {
                self.how.utf |= s.starts_with("UTF");
                self.copy_to(i + s.len());
                continue;
            }
            let Some(s) = ["LIMIT_MATCH=", "LIMIT_RECURSION="]
                .iter()
                .find(|s| self.has(i, s))
            else {
                return;
            };
            let end = self.skip(i + s.len(), |c| c.is_ascii_digit());
            let fits = self.number(i + s.len(), end) <= u32::MAX as usize;
            if self.at(end) != Some(b')') || !fits {
                return;
            }
            if end == i + s.len() {
                // A missing number is zero.
                self.copy_to(end);
                self.write_to(end, b"0");
            }
            self.copy_to(end + 1);
        }
    }

    fn item(&mut self) -> Result<(), Fault> {
        let i = self.i;
        let fresh = std::mem::take(&mut self.fresh);
        match self.p[i] {
            b'*' | b'+' | b'?' if fresh && (self.repeated != i || self.p[i] == b'*') => {
                Err((NO_REPEAT, i))
            }
            b'|' => {
                self.fresh = true;
                self.level().alternative();
                self.copy_to(i + 1);
                Ok(())
            }
            b'*' | b'+' | b'?' => {
                // A repetition can't be repeated.
                self.fresh = true;
                if self.repeated != i {
                    self.repeated = i + 1;
                    if self.p[i] != b'+' {
                        self.level().last = None;
                    }
                }
                self.copy_to(i + 1);
                Ok(())
            }
            b'\\' => {
                self.fresh = fresh && self.at(i + 1) == Some(b'E');
                self.escape()
            }
            b'[' => {
                let edge = self.has(i, "[[:<:]]") || self.has(i, "[[:>:]]");
                self.level().part(if edge { None } else { Some(true) });
                self.class()
            }
            b'(' => {
                self.group()?;
                self.fresh |= match (self.at(i + 1), self.at(i + 2), self.at(i + 3)) {
                    (Some(b'?'), Some(b'#'), _) => fresh,
                    // Settings, callouts and verbs; a group has been handled on its own.
                    (Some(b'?'), Some(b'-'), c) => c.is_some_and(|c| c.is_ascii_alphabetic()),
                    (Some(b'?'), Some(c), _) => b"CimsxJUX".contains(&c),
                    (Some(b'*'), ..) => self.p.get(self.i - 1) == Some(&b')'),
                    _ => false,
                };
                Ok(())
            }
            b'^' | b'$' => {
                self.fresh = true;
                self.level().part(None);
                self.copy_to(i + 1);
                Ok(())
            }
            c if self.extended && c.is_ascii_whitespace() => {
                self.fresh = fresh;
                self.repeated += usize::from(self.repeated == i);
                self.copy_to(i + 1);
                Ok(())
            }
            b')' if self.open.is_empty() => Err(("unmatched parentheses", i)),
            b')' => {
                if self.level().condition && self.level().alternatives > 1 {
                    self.crowded = self.crowded.or(Some(i));
                }
                let asserts = self.close();
                if let Some(g) = self.open.pop() {
                    self.groups.push((g.start, i));
                    self.extended = g.extended;
                    self.extra = g.extra;
                    if g.behind && g.refers {
                        return Err((NOT_FIXED, i));
                    }
                    if let Some(outer) = self.open.last_mut() {
                        // The length of an assertion doesn't matter.
                        outer.refers |= g.refers && !asserts;
                    }
                }
                self.copy_to(i + 1);
                Ok(())
            }
            b'#' if self.extended => {
                let cr = self.how.cr;
                let end = self.skip(i, |c| c != b'\n' && !(cr && c == b'\r'));
                self.fresh = fresh;
                if self.repeated == i {
                    self.repeated = end;
                }
                self.copy_to(end);
                Ok(())
            }
            b'{' => self.brace(fresh),
            _ => {
                self.level().part(Some(true));
                self.copy_to(i + 1);
                Ok(())
            }
        }
    }

    /// Handles `{1}`, `{1,}` and `{1,2}`, which repeat. PCRE2 takes more forms for a repetition,
    /// which are text.
    fn brace(&mut self, fresh: bool) -> Result<(), Fault> {
        let i = self.i;
        if let Some(end) = self.repetition(i) {
            let mut n = 0u32;
            for k in i + 1..end {
                match self.p[k] {
                    c if c.is_ascii_digit() => n = n * 10 + u32::from(c - b'0'),
                    _ => n = 0,
                }
                if n > 65535 {
                    return Err(("number too big in {} quantifier", k + 1));
                }
            }
            if fresh {
                return Err((NO_REPEAT, end - 1));
            }
            let least = self.skip(i + 1, |c| c == b'0');
            if matches!(self.at(least), Some(b',' | b'}')) {
                self.level().last = None;
            }
            self.repeated = end;
            self.fresh = true;
            self.copy_to(end);
            return Ok(());
        }
        self.level().part(Some(true));
        let end = self.skip(i + 1, |c| {
            c.is_ascii_digit() || matches!(c, b',' | b' ' | b'\t')
        });
        match self.at(end) {
            Some(b'}') => self.write_to(i + 1, b"\\{"),
            _ => self.copy_to(i + 1),
        }
        Ok(())
    }
    /// Returns the position after the repetition at `i`, if there is one.
    fn repetition(&self, i: usize) -> Option<usize> {
        let digits = |c: u8| c.is_ascii_digit();
        if self.at(i) != Some(b'{') {
            return None;
        }
        let first = self.skip(i + 1, digits);
        if first == i + 1 {
            return None;
        }
        match self.at(first)? {
            b'}' => Some(first + 1),
            b',' => {
                let second = self.skip(first + 1, digits);
                (self.at(second) == Some(b'}')).then_some(second + 1)
            }
            _ => None,
        }
    }

    fn refer(&mut self, what: What, at: usize) {
        self.references.push(Reference { what, at });
        if let Some(g) = self.open.last_mut() {
            g.refers = true;
        }
    }
    /// Records that a condition asks for it.
    fn ask(&mut self, what: What, at: usize) {
        self.references.push(Reference { what, at });
    }
    /// Records a call of a group by number, 0 for the whole: whether it may come back here at once.
    fn call(&mut self, what: What, number: usize, at: usize) {
        self.references.push(Reference { what, at });
        self.level().settle();
        let depth = match number {
            // Deeper than PCRE goes: refused anyway.
            _ if self.levels.len() > 300 => None,
            0 => Some(0),
            n => self.levels.iter().position(|l| l.capture == n),
        };
        let says = match depth {
            Some(d) => {
                // PCRE doesn't check this in a condition, which may have asked for a recursion.
                let asked = self.levels.iter().any(|l| l.condition);
                if !asked && self.levels[d..].iter().all(|l| l.so_far != Some(true)) {
                    self.endless = self.endless.or(Some(at));
                }
                Some(false)
            }
            None => match self.must.get(number).copied().flatten() {
                Some(true) => Some(true),
                Some(false) => None,
                None => Some(false),
            },
        };
        self.level().last = says;
    }
    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }
    /// Ends a group; returns whether it was an assertion.
    fn close(&mut self) -> bool {
        if self.levels.len() < 2 {
            return false;
        }
        let Some(mut l) = self.levels.pop() else {
            return false;
        };
        l.alternative();
        let must = l.must == l.alternatives && !(l.condition && l.alternatives == 1);
        if l.capture > 0 {
            if self.must.len() <= l.capture {
                self.must.resize(l.capture + 1, None);
            }
            self.must[l.capture] = Some(must);
        }
        self.level().last = (must && !l.asserts).then_some(true);
        l.asserts
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let i = self.i;
        let Some(c) = self.at(i + 1) else {
            self.copy_to(i + 1);
            return Ok(());
        };
        match c {
            b'g' | b'E' => {}
            b'Q' => {}
            b'b' | b'B' | b'A' | b'z' | b'Z' | b'G' | b'K' => {
                self.fresh = true;
                self.level().part(None);
            }
            b'k' | b'1'..=b'9' => self.level().part(None),
            _ => self.level().part(Some(true)),
        }
        match c {
            b'Q' => {
                self.quoted();
                // A repetition applies to its last character.
                let quoted = &self.p[i + 2..self.i];
                let quoted = quoted.strip_suffix(b"\\E").unwrap_or(quoted);
                for _ in 0..quoted.len().min(2) {
                    self.level().part(Some(true));
                }
            }
            b'g' => return self.reference_g(),
            b'k' => {
                let end = match self.at(i + 2) {
                    Some(b'{') => b'}',
                    Some(b'<') => b'>',
                    Some(b'\'') => b'\'',
                    _ => {
                        let text =
                            "\\k is not followed by a braced, angle-bracketed, or quoted name";
                        return Err((text, i + 1));
                    }
                };
                self.name_reference(i + 3, end, true)?;
            }
            b'0' => self.copy_to(i + 2),
            b'1'..=b'9' => {
                let end = self.skip(i + 1, |c| c.is_ascii_digit());
                if self.too_big(i + 1, end) {
                    return Err((TOO_BIG, end - 1));
                }
                let n = self.number(i + 1, end);
                if n < 8 || n <= self.captures {
                    self.refer(What::Back, 0);
                    self.copy_to(end);
                    return Ok(());
                }
                self.level().last = Some(true);
                if c >= b'8' {
                    // No octal number either: the digit itself, which must not join a number before
                    // it.
                    self.write_to(i + 2, &[b'\\', b'x', b'3', c]);
                } else {
                    self.octal()?;
                }
            }
            _ => return self.character(false),
        }
        Ok(())
    }
    fn number(&self, from: usize, to: usize) -> usize {
        let digits = &self.p[from.min(to)..to];
        digits.iter().fold(0usize, |n, c| {
            n.saturating_mul(10).saturating_add(usize::from(c - b'0'))
        })
    }
    /// Whether PCRE gives up on that number before its last digit.
    fn too_big(&self, from: usize, to: usize) -> bool {
        to > from && self.number(from, to - 1) >= i32::MAX as usize / 10
    }
    fn octal(&mut self) -> Result<(), Fault> {
        let i = self.i;
        let limit = (i + 4).min(self.p.len());
        let end = self.skip(i + 1, |c| matches!(c, b'0'..=b'7')).min(limit);
        let n = self.p[i + 1..end]
            .iter()
            .fold(0u32, |n, c| n * 8 + u32::from(c - b'0'));
        if n > 255 && !self.how.utf {
            return Err((
                "octal value is greater than \\377 in 8-bit non-UTF-8 mode",
                i + 3,
            ));
        }
        self.copy_to(end);
        Ok(())
    }
    fn quoted(&mut self) {
        let rest = &self.p[self.i + 2..];
        let end = rest.windows(2).position(|w| w == b"\\E");
        self.copy_to(end.map_or(self.p.len(), |n| self.i + 2 + n + 2));
    }

    /// Handles `\g` in its forms.
    fn reference_g(&mut self) -> Result<(), Fault> {
        let i = self.i;
        let (open, from) = match self.at(i + 2) {
            Some(c @ (b'{' | b'<' | b'\'')) => (c, i + 3),
            _ => (0, i + 2),
        };
        let close = match open {
            b'{' => b'}',
            b'<' => b'>',
            c => c,
        };
        let sign = self.at(from).filter(|c| matches!(c, b'-' | b'+'));
        let digits = from + usize::from(sign.is_some());
        let end = self.skip(digits, |c| c.is_ascii_digit());
        if open == b'{' && matches!(self.at(from), Some(b' ' | b'\t' | b'+')) {
            return Err((NO_NAME, from));
        }
        if end == digits {
            if open == 0 {
                return Err((NO_ZERO, i + 1));
            }
            if open == b'{' && self.at(from) == Some(b'}') {
                return Err((NO_ZERO, from));
            }
            if open == b'{' && self.at(from).is_none() {
                return Err((NO_REFERENCE, from));
            }
            return self.name_reference(from, close, open == b'{');
        }
        let plain = open == 0 || open == b'{' && matches!(self.at(end), Some(b'}') | None);
        if plain && self.too_big(digits, end) {
            return Err((TOO_BIG, end - 1));
        }
        if open != b'{' && self.too_big(digits, end) {
            return Err((TOO_BIG, end));
        }
        if open == b'{' && self.at(end) != Some(close) {
            return Err(match self.at(end) {
                None => (NO_REFERENCE, end),
                Some(_) => ("group name must start with a non-digit", from),
            });
        }
        if open != 0 && self.at(end) != Some(close) {
            self.copy_to(end);
            return Ok(());
        }
        // PCRE's position: at the last character.
        let at = if open == 0 { end - 1 } else { end };
        let n = self.number(digits, end);
        let calls = open == b'<' || open == b'\'';
        if n == 0 && !calls {
            return Err((NO_ZERO, at));
        }
        let what = match sign {
            Some(b'-') => What::Relative(n <= self.captures),
            Some(_) => What::Called(self.captures.saturating_add(n)),
            None if calls => What::Called(n),
            None => What::Back,
        };
        if calls {
            let number = self.counted(sign, n);
            self.call(what, number, at);
        } else {
            self.level().part(None);
            self.refer(what, at);
        }
        self.copy_to(end + usize::from(open != 0));
        Ok(())
    }

    /// Handles a name from `from` on that ends with `close`.
    fn name_reference(&mut self, from: usize, close: u8, refers: bool) -> Result<(), Fault> {
        let end = self.skip(from, is_word);
        if matches!(self.at(from), Some(b' ' | b'\t')) {
            return Err((NO_NAME, from));
        }
        if end - from > 32 {
            return Err((LONG_NAME, end));
        }
        if end > from && self.at(end) == Some(close) {
            let name = What::Name(self.p[from..end].to_vec());
            if refers {
                self.level().part(None);
                self.refer(name, end);
            } else {
                let number = self.numbered(&self.p[from..end]);
                self.call(name, number, end);
            }
            self.copy_to(end + 1);
        } else {
            self.copy_to(end.max(self.i + 1));
        }
        Ok(())
    }

    /// Handles an escape for a character or a class of them.
    fn character(&mut self, in_class: bool) -> Result<(), Fault> {
        let i = self.i;
        let c = self.p[i + 1];
        match c {
            b'L' | b'l' | b'U' | b'u' => return Err((NO_NAMES, i + 1)),
            b'N' if self.at(i + 2) == Some(b'{') && self.repetition(i + 2).is_none() => {
                return Err((NO_NAMES, i + 1));
            }
            b'N' if in_class => return Err(("\\N is not supported in a class", i + 1)),
            b'p' | b'P' => return self.property(),
            b'x' if self.at(i + 2) == Some(b'{') => {
                let end = self.skip(i + 3, |c| c.is_ascii_hexdigit());
                if self.at(end) != Some(b'}') {
                    return Err(("non-hex character in \\x{} (closing brace missing?)", end));
                }
                self.copy_to(end + 1);
            }
            b'x' => match self.at(i + 2).is_some_and(|c| c.is_ascii_hexdigit()) {
                true => self.copy_to(i + 2),
                false => self.write_to(i + 2, b"\\x00"),
            },
            b'o' if self.at(i + 2) == Some(b'{') => {
                let end = self.skip(i + 3, |c| matches!(c, b'0'..=b'7'));
                match self.at(end) {
                    Some(b'}') if end == i + 3 => {
                        return Err(("digits missing in \\x{} or \\o{}", i + 1));
                    }
                    Some(b'}') => self.copy_to(end + 1),
                    _ => {
                        return Err(("non-octal character in \\o{} (closing brace missing?)", end));
                    }
                }
            }
            // Letters without a meaning are literal, unless option X was set.
            b'i' | b'j' | b'm' | b'q' | b'y' | b'F' | b'I' | b'J' | b'M' | b'O' | b'T' | b'Y' => {
                if self.extra {
                    return Err((NO_ESCAPE, i + 1));
                }
                self.write_to(i + 2, &[c]);
            }
            b'B' | b'R' | b'X' | b'A' | b'z' | b'Z' | b'G' | b'K' | b'C' if in_class => {
                if self.extra {
                    return Err(("invalid escape sequence in character class", i + 1));
                }
                self.write_to(i + 2, &[c]);
            }
            b'c' => match self.at(i + 2) {
                // PCRE2 requires a printable character.
                Some(c) if c.is_ascii_control() => {
                    self.write_to(i + 3, format!("\\x{:02x}", c ^ 0x40).as_bytes());
                }
                _ => self.copy_to(i + 3),
            },
            _ => self.copy_to(i + 2),
        }
        Ok(())
    }

    fn property(&mut self) -> Result<(), Fault> {
        let i = self.i;
        let (name, last) = if self.at(i + 2) == Some(b'{') {
            let from = i + 3 + usize::from(self.at(i + 3) == Some(b'^'));
            let end = self.skip(from, |c| c != b'}');
            if end >= self.p.len() {
                self.copy_to(end);
                return Ok(());
            }
            (&self.p[from..end], end)
        } else {
            match self.at(i + 2) {
                Some(_) => (&self.p[i + 2..i + 3], i + 2),
                None => {
                    self.copy_to(i + 2);
                    return Ok(());
                }
            }
        };
        let name = std::str::from_utf8(name).unwrap_or("");
        if name.is_empty() || name.contains(' ') || !PROPERTIES.contains(&format!(" {name} ")) {
            return Err((NO_PROPERTY, last));
        }
        self.copy_to(last + 1);
        Ok(())
    }

    /// Handles a class of characters.
    fn class(&mut self) -> Result<(), Fault> {
        let i = self.i;
        if self.has(i, "[[:<:]]") || self.has(i, "[[:>:]]") {
            self.copy_to(i + 7);
            return Ok(());
        }
        // That is no class: PCRE2 reports it.
        self.copy_to(i + 1);
        if self.at(self.i) == Some(b'^') {
            self.copy_to(self.i + 1);
        }
        if self.at(self.i) == Some(b']') {
            self.copy_to(self.i + 1);
            self.range()?;
        }
        while let Some(c) = self.at(self.i) {
            match c {
                b']' => {
                    self.copy_to(self.i + 1);
                    return Ok(());
                }
                b'[' if self.posix_end(self.i).is_some() => {
                    self.posix()?;
                    self.hyphen_after_kind();
                }
                b'\\' if self.at(self.i + 1) == Some(b'Q') => self.quoted(),
                b'\\' if self.at(self.i + 1).is_some() => {
                    let kind = self.is_kind(self.i);
                    self.class_escape()?;
                    if kind {
                        self.hyphen_after_kind();
                    } else {
                        self.range()?;
                    }
                }
                _ => {
                    self.copy_to(self.i + 1);
                    self.range()?;
                }
            }
        }
        Ok(())
    }
    fn class_escape(&mut self) -> Result<(), Fault> {
        match self.p[self.i + 1] {
            b'E' | b'g' | b'k' => self.copy_to(self.i + 2),
            b'1'..=b'7' => self.octal()?,
            b'0' | b'8' | b'9' => self.copy_to(self.i + 2),
            _ => self.character(true)?,
        }
        Ok(())
    }
    /// Whether the escape at `i` stands for more than one character.
    fn is_kind(&self, i: usize) -> bool {
        self.at(i) == Some(b'\\') && self.at(i + 1).is_some_and(|c| b"dDwWsShHvVpP".contains(&c))
    }
    /// Handles a hyphen after a class escape: it is literal, even if it isn't the last.
    fn hyphen_after_kind(&mut self) {
        let i = self.i;
        if self.at(i) == Some(b'-') && self.at(i + 1).is_some_and(|c| c != b']') {
            self.write_to(i + 1, b"\\-");
        }
    }
    /// Handles the part after a character: perhaps a range to another.
    fn range(&mut self) -> Result<(), Fault> {
        let i = self.i;
        if self.at(i) != Some(b'-') || self.at(i + 1).is_none_or(|c| c == b']') {
            return Ok(());
        }
        if self.is_kind(i + 1) {
            return Err((BAD_RANGE, i + 2));
        }
        if self.at(i + 1) == Some(b'[') && self.posix_end(i + 1).is_some() {
            return Err((BAD_RANGE, i + 1));
        }
        self.copy_to(i + 1);
        match self.at(self.i) {
            Some(b'\\') if self.at(self.i + 1) == Some(b'Q') => {}
            Some(b'\\') if self.at(self.i + 1).is_some() => self.class_escape()?,
            _ => self.copy_to(self.i + 1),
        }
        Ok(())
    }
    /// Returns the end of `[:name:]`, `[.name.]` or `[=name=]` at `i`.
    fn posix_end(&self, i: usize) -> Option<usize> {
        let mark = self.at(i + 1).filter(|c| matches!(c, b':' | b'.' | b'='))?;
        let mut k = i + 2;
        while let Some(c) = self.at(k) {
            match c {
                b']' => return None,
                b'\\' if matches!(self.at(k + 1), Some(b']' | b'\\')) => k += 1,
                b'[' if self.at(k + 1) == Some(mark) => return None,
                c if c == mark && self.at(k + 1) == Some(b']') => return Some(k + 2),
                _ => {}
            }
            k += 1;
        }
        None
    }
    fn posix(&mut self) -> Result<(), Fault> {
        let i = self.i;
        let Some(end) = self.posix_end(i) else {
            return Ok(());
        };
        if self.p[i + 1] != b':' {
            return Err(("POSIX collating elements are not supported", i));
        }
        let from = i + 2 + usize::from(self.at(i + 2) == Some(b'^'));
        let name = &self.p[from.min(end - 2)..end - 2];
        if !CLASSES.iter().any(|c| c.as_bytes() == name) {
            return Err(("unknown POSIX class name", from));
        }
        self.copy_to(end);
        Ok(())
    }

    /// Returns the number that `(?1)`, `(?-1)` and `(?+1)` call.
    fn counted(&self, sign: Option<u8>, n: usize) -> usize {
        match sign {
            Some(b'-') => self.captures.wrapping_sub(n).wrapping_add(1),
            Some(_) => self.captures.saturating_add(n),
            None => n,
        }
    }
    /// Returns the number of the group of that name; one that doesn't exist if it has not been
    /// read.
    fn numbered(&self, name: &[u8]) -> usize {
        let n = self.names.iter().position(|n| n == name);
        n.and_then(|n| self.numbers.get(n).copied())
            .unwrap_or(usize::MAX)
    }

    fn push(&mut self, start: usize, behind: bool) {
        self.fresh = true;
        let mark = |n: usize| self.at(start + n).unwrap_or(0);
        let special = mark(1) == b'?';
        let captures = match (special, mark(2)) {
            (false, _) => !self.how.no_auto_capture,
            (_, b'<') => !matches!(mark(3), b'=' | b'!'),
            (_, b'P' | b'\'') => true,
            _ => false,
        };
        let level = Level {
            asserts: special && (matches!(mark(2), b'=' | b'!') || mark(2) == b'<' && !captures),
            condition: special && mark(2) == b'(',
            capture: if captures { self.captures } else { 0 },
            ..Level::default()
        };
        self.level().settle();
        self.levels.push(level);
        self.open.push(Group {
            start,
            extended: self.extended,
            extra: self.extra,
            behind,
            refers: false,
        });
    }

    fn group(&mut self) -> Result<(), Fault> {
        let i = self.i;
        match (self.at(i + 1), self.at(i + 2)) {
            (Some(b'*'), Some(c)) if c == b':' || c.is_ascii_alphabetic() => return self.verb(),
            (Some(b'?'), c) => return self.special(c),
            _ => {}
        }
        if !self.how.no_auto_capture {
            self.captures += 1;
        }
        self.push(i, false);
        self.copy_to(i + 1);
        Ok(())
    }

    fn verb(&mut self) -> Result<(), Fault> {
        let i = self.i;
        let name_end = self.skip(i + 2, |c| c.is_ascii_alphabetic());
        let argument = self.at(name_end) == Some(b':');
        let end = if argument {
            self.skip(name_end, |c| c != b')')
        } else {
            name_end
        };
        let name = &self.p[i + 2..name_end];
        let known: [&[u8]; 9] = [
            b"", b"MARK", b"ACCEPT", b"F", b"FAIL", b"COMMIT", b"PRUNE", b"SKIP", b"THEN",
        ];
        if self.at(end) != Some(b')') || !known.contains(&name) {
            return Err((NO_VERB, end));
        }
        let plain = [&b"ACCEPT"[..], b"F", b"FAIL", b"COMMIT"].contains(&name);
        if plain && argument && end > name_end + 1 {
            return Err((NO_ARGUMENT, end));
        }
        let accept = name == b"ACCEPT";
        self.copy_to(end + 1);
        if accept {
            if matches!(self.at(end + 1), Some(b'*' | b'+' | b'?')) {
                return Err((NO_REPEAT, end + 1));
            }
            if let Some(behind) = self.repetition(end + 1) {
                return Err((NO_REPEAT, behind - 1));
            }
        }
        Ok(())
    }

    /// Handles a group that begins with `(?`; `c` follows.
    fn special(&mut self, c: Option<u8>) -> Result<(), Fault> {
        let i = self.i;
        let Some(c) = c else {
            self.copy_to(i + 2);
            return Ok(());
        };
        match c {
            b'#' => {
                let end = self.skip(i, |c| c != b')');
                self.copy_to(end + 1);
                if self.repeated == i {
                    self.repeated = self.i;
                }
            }
            b':' | b'|' | b'>' | b'=' | b'!' => {
                self.push(i, false);
                self.copy_to(i + 3);
            }
            b'<' if matches!(self.at(i + 3), Some(b'=' | b'!')) => {
                self.push(i, true);
                self.copy_to(i + 4);
            }
            b'<' => return self.named(i + 3, b'>'),
            b'\'' => return self.named(i + 3, b'\''),
            b'P' => match self.at(i + 3) {
                Some(b'<') => return self.named(i + 4, b'>'),
                Some(b'=') => {
                    self.copy_to(i + 4);
                    return self.name_reference(i + 4, b')', true);
                }
                Some(b'>') => {
                    self.copy_to(i + 4);
                    return self.name_reference(i + 4, b')', false);
                }
                _ => return Err(("unrecognized character after (?P", i + 3)),
            },
            b'&' => {
                self.copy_to(i + 3);
                return self.name_reference(i + 3, b')', false);
            }
            b'C' => {
                let end = self.skip(i + 3, |c| c.is_ascii_digit());
                if self.at(end).is_some_and(|c| c != b')') {
                    return Err(("closing ) for (?C expected", end));
                }
                self.copy_to(end);
                // A number that is too large: PCRE2 reports it.
                self.copy_to(end + 1);
            }
            b'R' => {
                if self.at(i + 3) == Some(b')') {
                    self.call(What::Called(0), 0, i + 3);
                }
                self.copy_to(i + 4);
            }
            b'(' => return self.condition(),
            b'0'..=b'9' | b'+' => return self.recursion(),
            b'-' if self.at(i + 3).is_some_and(|c| c.is_ascii_digit()) => return self.recursion(),
            _ => return self.options(),
        }
        Ok(())
    }

    /// `(?1)`, `(?-1)`, `(?+1)`
    fn recursion(&mut self) -> Result<(), Fault> {
        let i = self.i;
        let sign = self.at(i + 2).filter(|c| matches!(c, b'-' | b'+'));
        let from = i + 2 + usize::from(sign.is_some());
        let end = self.skip(from, |c| c.is_ascii_digit());
        if end == from {
            return Err(("digit expected after (?+", from));
        }
        if self.at(end) != Some(b')') {
            return Err((RECURSION, end));
        }
        let n = self.number(from, end);
        let what = match sign {
            Some(b'-') => What::Relative(n > 0 && n <= self.captures),
            Some(_) => What::Called(self.captures.saturating_add(n)),
            None => What::Called(n),
        };
        let number = self.counted(sign, n);
        self.call(what, number, end);
        self.copy_to(end + 1);
        Ok(())
    }

    fn named(&mut self, from: usize, close: u8) -> Result<(), Fault> {
        let i = self.i;
        let end = self.skip(from, is_word);
        if end == from && close == b'>' && self.at(i + 2) == Some(b'<') {
            return Err(("unrecognized character after (?<", from));
        }
        if end - from > 32 {
            return Err((LONG_NAME, end));
        }
        let name = self.p[from..end].to_vec();
        // Alternatives that number their groups alike may use the same names: PCRE2 checks those.
        let again = !self.how.same_names && self.names.contains(&name);
        if again && self.at(end) == Some(close) && !self.p[..i].windows(3).any(|w| w == b"(?|") {
            return Err((SAME_NAME, end));
        }
        self.names.push(name);
        self.captures += 1;
        self.numbers.push(self.captures);
        self.push(i, false);
        let closed = self.at(end) == Some(close);
        self.copy_to(end.max(i + 1) + usize::from(closed));
        Ok(())
    }

    /// Handles `(?(?`, where an assertion is the condition.
    fn asserted_condition(&mut self) -> Result<(), Fault> {
        let from = self.i + 3;
        // An assertion may follow a callout.
        let digits = self.skip(from + 2, |c| c.is_ascii_digit());
        let mut asks = from;
        if self.at(from + 1) == Some(b'C') && self.at(digits) == Some(b')') {
            if self.at(digits + 1) != Some(b'(') {
                return Err((NO_ASSERTION, from - 1));
            }
            asks = digits + 2;
        }
        let next = self.at(asks + 1).filter(|_| self.at(asks) == Some(b'?'));
        let behind = matches!(self.at(asks + 2), Some(b'=' | b'!'));
        let ahead = matches!(next, Some(b'=' | b'!'));
        if !(ahead || next == Some(b'<') && behind) {
            return Err((NO_ASSERTION, from));
        }
        if ahead && asks + 2 == self.p.len() {
            return Err((UNCLOSED, asks + 2));
        }
        self.copy_to(self.i + 2);
        Ok(())
    }

    /// Handles `(?(` and the condition.
    fn condition(&mut self) -> Result<(), Fault> {
        let i = self.i;
        let from = i + 3;
        self.push(i, false);
        match self.at(from) {
            Some(b'?') => return self.asserted_condition(),
            None | Some(b')' | b'*') => return Err((NO_ASSERTION, from)),
            _ => {}
        }
        let (name, close) = match self.at(from) {
            Some(b'<') => (from + 1, Some(b'>')),
            Some(b'\'') => (from + 1, Some(b'\'')),
            Some(b'R') if self.at(from + 1) == Some(b'&') => (from + 2, None),
            Some(b'+' | b'-') => (from + 1, None),
            _ => (from, None),
        };
        let signed = matches!(self.at(from), Some(b'+' | b'-'));
        let digit = self.at(name).is_some_and(|c| c.is_ascii_digit());
        let end = match digit || signed {
            true => self.skip(name, |c| c.is_ascii_digit()),
            false => self.skip(name, is_word),
        };
        if end == name && !signed {
            return Err((NO_ASSERTION, end));
        }
        if end - name > 32 {
            return Err((LONG_NAME, end));
        }
        let last = match close {
            Some(c) if self.at(end) == Some(c) => end + 1,
            Some(_) => return Err((MALFORMED, end)),
            None => end,
        };
        if self.at(last) != Some(b')') {
            return Err((MALFORMED, last));
        }
        if close.is_none() && self.p[name..end].iter().all(|&c| c == b'0') {
            return Err((CONDITION_ZERO, last + 1));
        }
        let text = &self.p[name..end];
        let number = text.iter().all(u8::is_ascii_digit);
        let what = match self.at(from) {
            _ if number && close.is_none() => {
                let n = self.number(name, end);
                match self.at(from) {
                    Some(b'-') => Some(What::Relative(n <= self.captures)),
                    Some(b'+') => Some(What::Called(self.captures.saturating_add(n))),
                    _ => Some(What::Called(n)),
                }
            }
            _ if text == b"DEFINE" && name == from => {
                // A group may have this name.
                if self.names.iter().any(|n| n == b"DEFINE") {
                    self.write_to(last + 1, b"(?(<DEFINE>)");
                }
                None
            }
            // Recursion of the whole, or of a group.
            Some(b'R') if name == from && text[1..].iter().all(u8::is_ascii_digit) => {
                if self.too_big(name + 1, end) {
                    return Err((TOO_BIG, last + 1));
                }
                let n = self.number(name + 1, end);
                self.recursed = self.recursed.max(n);
                if self.all.is_some_and(|all| n > all) {
                    self.write_to(last + 1, b"(?(?!)");
                }
                None
            }
            _ => Some(What::Name(text.to_vec())),
        };
        if let Some(w) = what {
            self.ask(w, last + 1);
        }
        if self.i <= last {
            self.copy_to(last + 1);
        }
        Ok(())
    }

    /// Handles `(?i)` and `(?i-s:`.
    fn options(&mut self) -> Result<(), Fault> {
        let i = self.i;
        let mut written = b"(?".to_vec();
        let (mut on, mut k) = (true, i + 2);
        let (mut extended, mut extra) = (self.extended, self.extra);
        loop {
            match self.at(k) {
                Some(b'-') => {
                    on = false;
                    written.push(b'-');
                }
                Some(b'X') => extra = on,
                Some(c @ (b'i' | b'm' | b's' | b'x' | b'J' | b'U')) => {
                    if c == b'x' {
                        extended = on;
                    }
                    // Its scope is left to PCRE2.
                    self.how.same_names |= c == b'J';
                    // A double x means more to PCRE2.
                    if written.last() != Some(&c) {
                        written.push(c);
                    }
                }
                Some(b')') => {
                    self.extended = extended;
                    self.extra = extra;
                    written.push(b')');
                    break;
                }
                Some(b':') => {
                    self.push(i, false);
                    self.extended = extended;
                    self.extra = extra;
                    written.push(b':');
                    break;
                }
                _ => return Err((BAD_OPTION, k)),
            }
            k += 1;
        }
        if written == self.p[i..k + 1] {
            self.copy_to(k + 1);
        } else {
            self.write_to(k + 1, &written);
        }
        Ok(())
    }
}

impl Read {
    /// Returns the offset in the given pattern for one in `text`.
    fn original_offset(&self, at: usize) -> usize {
        let n = self.shifts.partition_point(|s| s.0 <= at);
        match n.checked_sub(1) {
            Some(n) => at.saturating_add_signed(self.shifts[n].1),
            None => at,
        }
    }
    fn end_of(&self, start: usize) -> Option<usize> {
        self.groups.iter().find(|g| g.0 == start).map(|g| g.1)
    }

    /// Returns PCRE's offset of the fault `code` that PCRE2 found at `at`, in a pattern of `len`
    /// bytes.
    pub fn place(&self, code: i32, at: usize, len: usize) -> usize {
        let at = self.original_offset(at);
        match code {
            115 => self.missing().unwrap_or(len),
            // Lookbehind: PCRE checks the group after it has read it.
            127 => self.crowded.unwrap_or(at),
            125 | 136 | TOO_LONG => self.end_of(at).unwrap_or(at),
            154 => self.end_of(at.saturating_sub(3)).unwrap_or(at),
            143 | 165 => at.saturating_sub(1),
            128 => at + 1,
            _ => at,
        }
    }
    /// Returns the place of the first reference that leads nowhere; `None` for those that are
    /// checked at the end.
    fn missing(&self) -> Option<usize> {
        let relative = |r: &&Reference| matches!(r.what, What::Relative(false));
        let nowhere = |r: &&Reference| match &r.what {
            What::Name(n) => !self.names.contains(n),
            What::Called(n) => *n > self.captures,
            What::Back | What::Relative(_) => false,
        };
        let first = self.references.iter().find(relative);
        first
            .or_else(|| self.references.iter().find(nowhere))
            .map(|r| r.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(pattern: &str, text: &str, at: usize) {
        let r = read(pattern.as_bytes(), How::default());
        assert_eq!(r.err(), Some((text, at)), "{pattern}");
    }
    #[track_caller]
    fn taken(pattern: &str, as_: &str) {
        let r = read(pattern.as_bytes(), How::default());
        let text = r.map(|r| String::from_utf8_lossy(&r.text).into_owned());
        assert_eq!(text.as_deref(), Ok(as_));
    }

    #[test]
    fn what_only_the_successor_knows_is_refused() {
        refused("(*pla:a)", NO_VERB, 7);
        refused("(*positive_lookahead:a)", NO_VERB, 10);
        refused("(*LIMIT_HEAP=1)", NO_VERB, 7);
        refused("(*ACCEPT:x)", NO_ARGUMENT, 10);
        refused("(?n)", BAD_OPTION, 2);
        refused("(?i-n)", BAD_OPTION, 4);
        refused("(?C'x')", "closing ) for (?C expected", 3);
        refused("(?(VERSION>=10)a)", MALFORMED, 10);
        refused("\\p{greek}", NO_PROPERTY, 8);
        refused("\\pz", NO_PROPERTY, 2);
        refused("\\N{U+41}", NO_NAMES, 1);
        refused("(?<=(a)\\1)", NOT_FIXED, 9);
        refused("(?<abcdefghijklmnopqrstuvwxyzabcdefg>a)", LONG_NAME, 36);
        refused("[a-\\d]", BAD_RANGE, 4);
        refused("x{2147483648}", "number too big in {} quantifier", 8);
        refused("(?<n>c)(?<n>c)(*UTF8)", SAME_NAME, 11);
        refused("\\g{99999999999}", TOO_BIG, 13);
        refused("\\99999999999", TOO_BIG, 11);
        refused("?a*(*UTF8)", NO_REPEAT, 0);
        refused("a|*", NO_REPEAT, 2);
        refused("(?i)?(*UTF8)", NO_REPEAT, 4);
        refused("a(?-i){2}(*UTF8)", NO_REPEAT, 8);
        refused("(?#x)*(*UTF8)", NO_REPEAT, 5);
        refused("a(?C)?(*UTF8)", NO_REPEAT, 5);
        refused("(*COMMIT)*(*UTF8)", NO_REPEAT, 9);
        refused("(?x) *(*UTF8)", NO_REPEAT, 5);
        refused("a|{2,3}(*UTF8)", NO_REPEAT, 6);
        refused("$*(*UTF8)", NO_REPEAT, 1);
        refused("(?x)a *(*UTF8)", NO_VERB, 12);
        refused("a(?#x)*(*UTF8)", NO_VERB, 12);
        refused("(?i:)?(*UTF8)", NO_VERB, 11);
        refused("(?R)?(*UTF8)", NO_VERB, 10);
        refused("\\b?)", NO_REPEAT, 2);
        refused("a\\K{2})", NO_REPEAT, 5);
        refused("(a))(*UTF8)", "unmatched parentheses", 3);
        refused("(?:+", NO_REPEAT, 3);
        refused("(?J)(?<n>c)(?<n>c)(*UTF8)", NO_VERB, 23);
        refused("(?|(?<n>c)|(?<n>c))(*UTF8)", NO_VERB, 24);
    }

    #[test]
    fn what_only_pcre_takes_is_written_so_that_both_do() {
        taken("[\\w-.]", "[\\w\\-.]");
        taken("[[:alpha:]-z]", "[[:alpha:]\\-z]");
        taken("a\\jb", "ajb");
        taken("[\\R]", "[R]");
        taken("\\81", "\\x381");
        taken("()\\1\\8", "()\\1\\x38");
        taken("()()()()()()()()\\8", "()()()()()()()()\\8");
        taken("a{,2}{ 1 }", "a\\{,2}\\{ 1 }");
        taken("a{1}b{2,}[{,2}]\\Q{,2}\\E", "a{1}b{2,}[{,2}]\\Q{,2}\\E");
        taken("(?xx)(?X)b", "(?x)(?)b");
        taken("\\xg\\x41", "\\x00g\\x41");
        taken("(?(R1)a|b)", "(?(?!)a|b)");
        taken("(?(R2)a|b)(c)(?(R)d)", "(?(?!)a|b)(c)(?(R)d)");
        taken("(c)(?(R1)a)", "(c)(?(R1)a)");
        taken("(*UTF8)(*LIMIT_MATCH=)a", "(*UTF8)(*LIMIT_MATCH=0)a");
    }

    #[test]
    fn places_of_faults_are_those_of_pcre() {
        let place = |p: &str, code, at| {
            read(p.as_bytes(), How::default()).map(|r| r.place(code, at, p.len()))
        };
        assert_eq!(place("(?(n))", 115, 3), Ok(5));
        assert_eq!(place("ab\\k<n>c", 115, 4), Ok(6));
        assert_eq!(place("()\\2c", 115, 4), Ok(5));
        assert_eq!(place("(?<=ab*)", 125, 0), Ok(7));
        assert_eq!(place("[\\w-.](?<=ab*)", 125, 7), Ok(13));
    }
}
