//! Writes the table of natives in COMPATIBILITY.md: reads the natives of another runtime, one `module function arity`
//! a line with tabs between, and says for each module which of them are here. Called by scripts/compatibility.sh.

use purlin_runtime::bif::tables;
use purlin_runtime::code::is_builtin;
use purlin_term::atom;
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
