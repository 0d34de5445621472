//! Writes the tables of tests/otp/natives.md.
//!
//! Reads the natives of another runtime, one `module function arity` per line, separated by tabs,
//! and reports for each module which of them exist here. With the number of a release as its
//! argument, writes one row: the natives of that release that this runtime lacks when it emulates
//! the release. Called by scripts/compatibility.sh.

use purlin_runtime::code::is_builtin;
use purlin_runtime::natives::{self, tables};
use purlin_term::{atom, release};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

fn main() {
    let mut wanted: BTreeMap<String, BTreeSet<(String, u8)>> = BTreeMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("text on standard input");
        let mut parts = line.split('\t');
        let (Some(m), Some(f), Some(a)) = (parts.next(), parts.next(), parts.next()) else {
            panic!("not a function: {line}");
        };
        let arity = a.parse().expect("an arity");
        wanted
            .entry(m.to_owned())
            .or_default()
            .insert((f.to_owned(), arity));
    }
    let here = |m: &str, f: &str, a: u8| is_builtin(atom::intern(m), atom::intern(f), u32::from(a));
    if let Some(n) = std::env::args().nth(1) {
        let number = n.parse().expect("the number of a release");
        release::settle(number);
        natives::install();
        return of_release(number, &wanted);
    }
    natives::install();
    let (mut all, mut there) = (0, 0);
    let mut rows = String::new();
    for (m, functions) in &wanted {
        let missing: Vec<String> = functions
            .iter()
            .filter(|(f, a)| !here(m, f, *a))
            .map(|(f, a)| format!("`{f}/{a}`"))
            .collect();
        all += functions.len();
        there += functions.len() - missing.len();
        rows += &format!(
            "| `{m}` | {} of {} | {} |\n",
            functions.len() - missing.len(),
            functions.len(),
            missing.join(", ")
        );
    }
    println!("{there} of {all} native functions of stock are here.\n");
    println!("| module | here | missing |\n|---|---|---|");
    print!("{rows}");
    let own: BTreeSet<String> = tables()
        .into_iter()
        .flatten()
        .filter(|b| {
            !wanted
                .get(b.module)
                .is_some_and(|s| s.contains(&(b.name.to_owned(), b.arity)))
        })
        .map(|b| format!("`{}:{}/{}`", b.module, b.name, b.arity))
        .collect();
    if !own.is_empty() {
        let own: Vec<String> = own.into_iter().collect();
        println!(
            "\nNative here, and written in Erlang there or not there at all:\n{}.",
            own.join(", ")
        );
    }
}

/// Prints a row of the table of releases.
fn of_release(number: u32, wanted: &BTreeMap<String, BTreeSet<(String, u8)>>) {
    let mut missing = Vec::new();
    let mut all = 0;
    for (m, functions) in wanted {
        all += functions.len();
        let lacks =
            |f: &(String, u8)| !is_builtin(atom::intern(m), atom::intern(&f.0), u32::from(f.1));
        let names: Vec<String> = functions
            .iter()
            .filter(|f| lacks(f))
            .map(|(f, a)| format!("`{f}/{a}`"))
            .collect();
        if !names.is_empty() {
            missing.push((m, names));
        }
    }
    let lacking: usize = missing.iter().map(|(_, names)| names.len()).sum();
    let rows: Vec<String> = missing
        .iter()
        .map(|(m, names)| format!("`{m}`: {}", names.join(", ")))
        .collect();
    println!(
        "| OTP {number} | {} of {all} | {} |",
        all - lacking,
        rows.join("; ")
    );
}
