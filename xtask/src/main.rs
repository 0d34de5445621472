//! `cargo xtask NAME [ARGUMENT…]`: runs a command of [`xtask::COMMANDS`].

use std::process::exit;
use xtask::{COMMANDS, Settings, work_dir};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        help();
        exit(0);
    };
    if name == work_dir::JANITOR {
        exit(work_dir::janitor(rest));
    }
    if name == "help" || is_help(name) {
        help();
        exit(0);
    }
    let Some(row) = COMMANDS.iter().find(|row| row.name == name) else {
        eprintln!("xtask: there is no command '{name}'; try: cargo xtask help");
        exit(2);
    };
    if let Some(option) = rest.iter().find(|a| a.starts_with('-')) {
        if is_help(option) {
            print!("{}", row.manual());
            exit(0);
        }
        eprintln!("xtask {name}: there is no option {option}; try: cargo xtask {name} --help");
        exit(2);
    }
    exit(match (row.run)(&Settings::of_environment(), rest) {
        Ok(status) => status,
        Err(problem) => {
            eprintln!("xtask {name}: {problem}");
            2
        }
    });
}

fn is_help(word: &str) -> bool {
    ["-h", "--help"].contains(&word)
}

fn help() {
    println!("cargo xtask NAME [ARGUMENT…], where NAME is one of");
    for row in COMMANDS {
        println!("  {:<13} {}", row.name, row.doc);
    }
    println!("cargo xtask NAME --help prints the arguments and the settings.");
}
