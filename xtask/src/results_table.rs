//! The table of `tests/applications/results.md`, and the measurements from which it is made.

use std::fs;
use std::path::Path;

/// The numbers of a suite on one runtime.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    pub passed: u64,
    pub failed: u64,
    /// Elapsed time.
    pub seconds: f64,
    /// Peak of one process.
    pub bytes: f64,
    /// Processor time.
    pub processor: f64,
}

/// The measurement of a library on a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub release: String,
    pub name: String,
    pub version: String,
    pub stock: Side,
    pub purlin: Side,
    pub date: String,
}

impl Measured {
    /// A line of `target/applications/results.txt`.
    pub fn line(&self) -> String {
        let side = |s: &Side| {
            format!(
                "{} {} {} {} {}",
                s.passed, s.failed, s.seconds, s.bytes, s.processor
            )
        };
        format!(
            "{} {} {} {} {} {}",
            self.release,
            self.name,
            self.version,
            side(&self.stock),
            side(&self.purlin),
            self.date
        )
    }

    /// Reads such a line.
    pub fn parse(line: &str) -> Option<Measured> {
        let w: Vec<&str> = line.split_whitespace().collect();
        let side = |at: usize| {
            let n = |i: usize| w.get(at + i)?.parse::<f64>().ok();
            Some(Side {
                passed: n(0)? as u64,
                failed: n(1)? as u64,
                seconds: n(2)?,
                bytes: n(3)?,
                processor: n(4)?,
            })
        };
        Some(Measured {
            release: w.first()?.to_string(),
            name: w.get(1)?.to_string(),
            version: w.get(2)?.to_string(),
            stock: side(3)?,
            purlin: side(8)?,
            date: w.get(13)?.to_string(),
        })
    }

    /// A row of the table.
    fn row(&self) -> String {
        let (s, p) = (&self.stock, &self.purlin);
        let ratio = |of: f64, by: f64| if by > 0.0 { of / by } else { 0.0 };
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {:.1} | {:.2} | {:.1} | {:.2} | {:.0} | {:.2} | {} |",
            self.name,
            self.version,
            self.release,
            s.passed,
            s.failed,
            p.passed,
            p.failed,
            s.seconds,
            ratio(p.seconds, s.seconds),
            s.processor,
            ratio(p.processor, s.processor),
            s.bytes / 1_048_576.0,
            ratio(p.bytes, s.bytes),
            self.date
        )
    }
}

const BEGIN: &str = "<!-- applications: begin -->";
const END: &str = "<!-- applications: end -->";
const HEAD: &str = "\
| library | version | OTP | stock passes | fails | Purlin passes | fails | stock, s | \
Purlin/stock | stock, s of processors | Purlin/stock | stock, MB | Purlin/stock | measured |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// Library and release of a row.
fn key(row: &str) -> (String, u64) {
    let field = |n: usize| row.split('|').nth(n).unwrap_or_default().trim();
    (field(1).to_string(), field(3).parse().unwrap_or(0))
}

/// Puts measurements into the table of a page. A row takes the place of the older one for the same
/// library and release; other rows stay.
pub fn with_rows(page: &str, measured: &[Measured]) -> Result<String, String> {
    let (before, rest) = page.split_once(BEGIN).ok_or("no begin of the table")?;
    let (table, after) = rest.split_once(END).ok_or("no end of the table")?;
    let mut rows: Vec<String> = measured.iter().map(Measured::row).collect();
    let new: Vec<(String, u64)> = rows.iter().map(|r| key(r)).collect();
    let old = table.lines().filter(|l| {
        let is_row = l.starts_with("| ") && !l.starts_with("| library");
        is_row && !new.contains(&key(l))
    });
    rows.extend(old.map(str::to_string));
    rows.sort_by_key(|r| key(r));
    let rows = rows.join("\n");
    Ok(format!("{before}{BEGIN}\n\n{HEAD}\n{rows}\n\n{END}{after}"))
}

/// Writes what `results` measured into `page`.
pub fn write(page: &Path, results: &Path) -> Result<(), String> {
    let text = fs::read_to_string(results).unwrap_or_default();
    let measured: Vec<Measured> = text.lines().filter_map(Measured::parse).collect();
    let old = fs::read_to_string(page).map_err(|e| format!("{}: {e}", page.display()))?;
    let new = with_rows(&old, &measured).map_err(|e| format!("{}: {e}", page.display()))?;
    fs::write(page, new).map_err(|e| format!("{}: {e}", page.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "27 jason v1 10 1 2 1048576 1.5 11 0 1 2097152 3 2026-01-02";

    #[test]
    fn lines_are_read_as_they_were_written() {
        let one = Measured::parse(LINE).expect("a line");
        assert_eq!(one.line(), LINE);
        assert_eq!((one.stock.failed, one.purlin.passed), (1, 11));
        assert!(Measured::parse("27 jason v1 - - 0 0 0").is_none());
    }

    #[test]
    fn new_rows_take_the_place_of_old_ones() {
        let page = format!(
            "x\n{BEGIN}\n\n{HEAD}\n| jason | v0 | 27 | 1 |\n| abc | v1 | 29 | 2 |\n| abc | v1 | 25 | 2 |\n\n{END}\ny\n"
        );
        let one = Measured::parse(LINE).expect("a line");
        let page = with_rows(&page, &[one]).expect("a table");
        let row = "| jason | v1 | 27 | 10 | 1 | 11 | 0 | 2.0 | 0.50 | 1.5 | 2.00 | 1 | 2.00 | 2026-01-02 |";
        let table = format!("| abc | v1 | 25 | 2 |\n| abc | v1 | 29 | 2 |\n{row}\n\n{END}\ny\n");
        assert!(page.ends_with(&table), "{page}");
        assert!(with_rows("nothing", &[]).is_err());
    }

    #[test]
    fn the_page_keeps_its_rows() {
        let page = crate::root().join("tests/applications/results.md");
        let page = fs::read_to_string(page).expect("the page");
        assert_eq!(with_rows(&page, &[]), Ok(page));
    }
}
