//! The commands, one file each. A command gets its arguments unchanged and returns the exit status,
//! unless it executes another program.

mod bench;
mod build;
mod disasm;
pub mod elixir;
pub mod erl;
mod erlc;
mod erts;
mod escript;
mod exec;
pub mod explain;
pub mod help;
mod manual;
pub mod measure;
mod observe;
mod process;
mod run;
mod schedules;
mod schedules_cluster;
mod schedules_cluster_page;
mod schedules_each;
mod schedules_page;
mod shells;
pub mod table;

pub use process::{become_program, become_program_named, print};
use process::{no_option, print_bytes};
pub use table::COMMANDS;

/// The command that `name` is probably a misspelling of.
pub fn nearest(name: &str) -> Option<&'static str> {
    let near = COMMANDS
        .iter()
        .map(|row| (distance(name, row.name), row.name))
        .min()?;
    (near.0 <= 2 && near.0 < near.1.len()).then_some(near.1)
}

/// Returns the edit distance: the number of letters to insert, remove or replace. Letters of the
/// first name after the twentieth do not count.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(20).collect();
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (line, letter) in b.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for column in 0..a.len() {
            let replaced = diagonal + usize::from(a[column] != letter);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[a.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_commands() {
        for (name, expected) in [
            ("elixr", Some("elixir")),
            ("exce", Some("exec")),
            ("disams", Some("disasm")),
            ("mixx", Some("mix")),
            ("frobnicate", None),
            ("", None),
        ] {
            assert_eq!(nearest(name), expected, "{name}");
        }
    }
}
