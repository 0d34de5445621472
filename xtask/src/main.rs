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
    if ["help", "-h", "--help"].contains(&name.as_str()) {
        help();
        exit(0);
    }
    let Some((_, _, run)) = COMMANDS.iter().find(|row| row.0 == name) else {
        eprintln!("xtask: there is no command '{name}'");
        help();
        exit(2);
    };
    exit(match run(&Settings::of_environment(), rest) {
        Ok(status) => status,
        Err(problem) => {
            eprintln!("{problem}");
            2
        }
    });
}

fn help() {
    println!("cargo xtask NAME [ARGUMENT…], where NAME is one of");
    for (name, text, _) in COMMANDS {
        println!("  {name:<13} {text}");
    }
    println!("The head of xtask/src/NAME.rs has the arguments and the settings.");
}
