//! `cargo xtask chart [--check]`: draws `docs/chart.svg`, the chart of the README, from the tables
//! in `docs/benchmarks` that `sh bench` has printed. `--check` writes nothing; it fails if the
//! chart is not the one that those tables give.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::environment::{Settings, root};

const CHART: &str = "docs/chart.svg";
const TABLES: &str = "docs/benchmarks";

const WIDTH: f64 = 760.0;
const GREEN: &str = "#2f6f4f";
const GREY: &str = "#b9b3a8";
const INK: &str = "#222";

/// Runs the command; see the module head.
pub fn run(_: &Settings, arguments: &[String]) -> Result<i32, String> {
    let check = match arguments {
        [] => false,
        [a] if a == "--check" => true,
        _ => return Err("chart: takes --check or nothing".to_owned()),
    };
    let chart = drawn(&root())?;
    let path = root().join(CHART);
    if !check {
        fs::write(&path, chart).map_err(|e| format!("{}: {e}", path.display()))?;
        return Ok(0);
    }
    match fs::read_to_string(&path) {
        Ok(text) if text == chart => Ok(0),
        _ => Err(format!(
            "{CHART} does not show the tables of {TABLES}: cargo xtask chart draws it"
        )),
    }
}

/// A row of a table: its name, and the values of Purlin and of stock.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    purlin: f64,
    stock: f64,
}

/// Returns the chart that the tables below `root` give.
fn drawn(root: &Path) -> Result<String, String> {
    let table = |name: &str| {
        let path = root.join(TABLES).join(name);
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let mut pieces = applications(&table("applications.txt")?)?;
    pieces.sort_by(|a, b| (b.purlin / b.stock).total_cmp(&(a.purlin / a.stock)));
    let memory = million(&table("million.txt")?)?;
    let pages = pages(&table("http.txt")?)?;
    let mut picture = Picture::default();
    picture.heading("Processor time of pieces of applications (OTP 29 = 1)");
    for row in &pieces {
        picture.ratio(row);
    }
    picture.heading("Memory of a million sleeping processes, MiB");
    picture.pairs(&memory);
    picture.heading("Web pages, 400 connections: 99th percentile of an answer's time, ms");
    picture.pairs(&pages);
    Ok(picture.finish())
}

/// The rows of `sh bench applications`: name, milliseconds of Purlin and of stock.
fn applications(text: &str) -> Result<Vec<Row>, String> {
    let rows = rows(text, |fields| match fields {
        [name, purlin, stock, _, _, _] => Some((name, purlin.parse().ok()?, stock.parse().ok()?)),
        _ => None,
    });
    at_least(rows, 20, "applications.txt")
}

/// The rows of `sh bench million`: step, processes, MiB of Purlin and of stock.
fn million(text: &str) -> Result<Vec<Row>, String> {
    let rows = rows(text, |fields| match fields {
        [name, "1000000", "|", purlin, stock, ..] => {
            Some((name, purlin.parse().ok()?, stock.parse().ok()?))
        }
        _ => None,
    });
    at_least(rows, 3, "million.txt")
}

/// The rows of `sh bench http`: page, requests per second and their ratio, 99th percentiles.
fn pages(text: &str) -> Result<Vec<Row>, String> {
    let rows = rows(text, |fields| match fields {
        [name, _, _, _, "|", purlin, stock, "|", ..] => {
            Some((name, milliseconds(purlin)?, milliseconds(stock)?))
        }
        _ => None,
    });
    at_least(rows, 3, "http.txt")
}

fn rows<'a>(text: &'a str, of: impl Fn(&[&'a str]) -> Option<(&'a str, f64, f64)>) -> Vec<Row> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    lines
        .filter_map(|line| of(&line.split_whitespace().collect::<Vec<_>>()))
        .map(|(name, purlin, stock)| Row {
            name: name.replace('_', " "),
            purlin,
            stock,
        })
        .filter(|row| row.stock > 0.0)
        .collect()
}

fn at_least(rows: Vec<Row>, n: usize, file: &str) -> Result<Vec<Row>, String> {
    match rows.len() >= n {
        true => Ok(rows),
        false => Err(format!("{TABLES}/{file} has {} rows, not {n}", rows.len())),
    }
}

/// A time as `wrk` prints it, in milliseconds.
fn milliseconds(text: &str) -> Option<f64> {
    let units = [("us", 0.001), ("ms", 1.0), ("s", 1000.0)];
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    Some(number.parse::<f64>().ok()? * factor)
}

/// The elements of the picture so far, and where the next one goes.
#[derive(Default)]
struct Picture {
    elements: String,
    y: f64,
}

impl Picture {
    /// Left end of the bars.
    const LEFT: f64 = 170.0;
    /// Length of the longest bar.
    const LENGTH: f64 = 480.0;

    fn heading(&mut self, text: &str) {
        self.y += 34.0;
        self.text(16.0, 15, 600, text);
        self.y += 10.0;
    }
    fn text(&mut self, x: f64, size: u32, weight: u32, text: &str) {
        let y = self.y;
        let _ = writeln!(
            self.elements,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" font-weight=\"{weight}\" \
             fill=\"{INK}\">{text}</text>"
        );
    }
    /// A bar of `length` with its text behind it.
    fn bar(&mut self, length: f64, height: f64, colour: &str, text: &str) {
        let top = self.y - height + 2.0;
        let _ = writeln!(
            self.elements,
            "<rect x=\"{}\" y=\"{top}\" width=\"{length:.1}\" height=\"{height}\" rx=\"2\" \
             fill=\"{colour}\"/>",
            Self::LEFT
        );
        self.text(Self::LEFT + length.round() + 6.0, 12, 400, text);
    }
    /// A bar of Purlin's share of stock's value, on a bar of stock's.
    fn ratio(&mut self, row: &Row) {
        self.y += 15.0;
        self.text(16.0, 12, 400, &row.name);
        let ratio = row.purlin / row.stock;
        let (top, scale) = (self.y - 8.0, Self::LENGTH / 1.25);
        let _ = writeln!(
            self.elements,
            "<rect x=\"{}\" y=\"{top}\" width=\"{scale:.1}\" height=\"10\" rx=\"2\" \
             fill=\"{GREY}\" opacity=\"0.45\"/>",
            Self::LEFT
        );
        self.bar(ratio * scale, 10.0, GREEN, &format!("{ratio:.2}"));
    }
    /// Two bars a row, Purlin's above stock's.
    fn pairs(&mut self, rows: &[Row]) {
        let longest = rows
            .iter()
            .flat_map(|r| [r.purlin, r.stock])
            .fold(0.0, f64::max);
        for row in rows {
            self.y += 17.0;
            self.text(16.0, 12, 400, &row.name);
            for (value, colour, who) in [(row.purlin, GREEN, "Purlin"), (row.stock, GREY, "OTP 29")]
            {
                let text = match value {
                    0.0..10.0 => format!("{value:.1} {who}"),
                    _ => format!("{value:.0} {who}"),
                };
                self.bar(value / longest * Self::LENGTH, 10.0, colour, &text);
                self.y += 13.0;
            }
            self.y -= 9.0;
        }
    }
    fn finish(mut self) -> String {
        self.y += 28.0;
        self.text(
            16.0,
            11,
            400,
            "Two cores; less is better. The tables, the commands and the date: docs/benchmarks.",
        );
        let height = self.y + 14.0;
        let label = "Purlin beside OTP 29: processor time of applications, memory of a million \
                     processes, tail latency of web pages";
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"system-ui, sans-serif\" role=\"img\" aria-label=\"{label}\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n{}</svg>\n",
            self.elements
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_of_the_readme_shows_the_tables() {
        let settings = Settings::of_environment();
        assert_eq!(run(&settings, &["--check".to_owned()]), Ok(0));
    }

    #[test]
    fn rows_are_read_as_the_commands_print_them() {
        let row = |name: &str, purlin, stock| Row {
            name: name.to_owned(),
            purlin,
            stock,
        };
        let text = "# remark 1 2 3 4 5\npiece  Purlin ms   other ms   ratio  Purlin MB   other MB\n\
                    ex_unit   1750   1810    0.97   87.1   118.8\n";
        assert!(applications(text).is_err());
        let of = |text| {
            rows(text, |f| {
                (f.len() == 6).then(|| f[1].parse().ok().map(|v| (f[0], v, 2.0)))?
            })
        };
        assert_eq!(of(text), [row("ex unit", 1750.0, 2.0)]);
        assert_eq!(milliseconds("53.25ms"), Some(53.25));
        assert_eq!(milliseconds("1.50s"), Some(1500.0));
        assert_eq!(milliseconds("250us"), Some(0.25));
        assert_eq!(milliseconds("-"), None);
        let text = "task  1000000 |  1010  3979  0.25 |  1059  4172 |  7.8  13.9  0.56\n\
                    spawn 1000000 |  401  2895  0.14 |  420  3035 |  2.2  10.4  0.21\n\
                    count 1000000 |  338  2695  0.13 |  354  2826 |  1.4  10.3  0.14\n\
                    flags at 1000000: skipped\n";
        assert_eq!(million(text).unwrap()[0], row("task", 1010.0, 3979.0));
        let text = "index  100 90 1.1 |  4.00ms  5.00ms |  1 2 | none\n\
                    whole  100 90 1.1 |  26.1ms  13.0ms |  1 2 | none\n\
                    count  100 90 1.1 |  1.00s   2.00s |  1 2 | none\n";
        assert_eq!(pages(text).unwrap()[1], row("whole", 26.1, 13.0));
    }
}
