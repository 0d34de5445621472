//! `help bash`, `help zsh`, `help fish`: shell completions, made from the table of commands.
//!
//! Bash completes words of the table by `compgen`; the others also show explanations.

use std::fmt::Write as _;

use super::help;
use super::table::{
    COMMANDS, CommandRow, EXPLAIN_WORDS, GLOBAL, OptionRow, Takes, emulator_flags, explain_topics,
};

/// The names of an option: `-h, --help` has two.
fn names(option: &OptionRow) -> impl Iterator<Item = &'static str> {
    option.name.split(", ")
}

/// Names of the options before the command.
fn global() -> impl Iterator<Item = &'static str> {
    GLOBAL.iter().flat_map(names)
}

/// Words that may follow a command, besides files and the like.
fn words(row: &CommandRow) -> Vec<String> {
    match row.takes {
        Takes::Flags => emulator_flags()
            .iter()
            .map(|(name, ..)| format!("+{name}"))
            .collect(),
        Takes::Explained => EXPLAIN_WORDS
            .iter()
            .copied()
            .chain(explain_topics().filter(|topic| !EXPLAIN_WORDS.contains(topic)))
            .map(str::to_string)
            .collect(),
        Takes::Topics => {
            let topics = help::TOPICS.iter().map(|row| row.0);
            let with_options = COMMANDS.iter().filter(|row| !row.options.is_empty());
            topics
                .chain(with_options.map(|row| row.name))
                .map(str::to_string)
                .collect()
        }
        _ => Vec::new(),
    }
}

/// `text` quoted as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Lists the process numbers of emulators that answer, one per line.
const PIDS: &str = "purlin help processes 2>/dev/null | cut -f1";

pub fn bash() -> String {
    let mut text = String::from(
        "# Completions of purlin for bash, made by: purlin help bash\n\
         _purlin() {\n\
         \x20   local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at=1 command file\n\
         \x20   COMPREPLY=()\n\
         \x20   while [ $at -lt $COMP_CWORD ]; do\n\
         \x20       case ${COMP_WORDS[at]} in\n\
         \x20           --otp-root) at=$((at + 2)) ;;\n\
         \x20           -*) at=$((at + 1)) ;;\n\
         \x20           *) command=${COMP_WORDS[at]}; break ;;\n\
         \x20       esac\n\
         \x20   done\n\
         \x20   if [ \"$before\" = --otp-root ]; then\n\
         \x20       compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$word\"); return\n\
         \x20   fi\n\
         \x20   case $command in\n",
    );
    let all = |words: Vec<String>| quoted(&words.join(" "));
    let complete = |how: &str| format!("mapfile -t COMPREPLY < <(compgen {how} -- \"$word\")");
    let first = COMMANDS.iter().map(|row| row.name).chain(global());
    let first = all(first.map(str::to_string).collect());
    let _ = writeln!(text, "        '') {} ;;", complete(&format!("-W {first}")));
    for row in COMMANDS {
        let options: Vec<String> = row
            .options
            .iter()
            .flat_map(names)
            .map(str::to_string)
            .collect();
        let mut lines = Vec::new();
        if !options.is_empty() {
            lines.push(format!(
                "case $word in -*) {}; return ;; esac",
                complete(&format!("-W {}", all(options)))
            ));
        }
        match row.takes {
            Takes::Files(endings) => {
                lines.push("compopt -o filenames".into());
                lines.push("mapfile -t COMPREPLY < <(compgen -d -- \"$word\")".into());
                let wanted = match endings {
                    [] => "*".to_string(),
                    endings => endings
                        .iter()
                        .map(|e| format!("*.{e}"))
                        .collect::<Vec<_>>()
                        .join("|"),
                };
                lines.push(format!(
                    "while IFS= read -r file; do [ -d \"$file\" ] && continue; case $file in {wanted}) COMPREPLY+=(\"$file\") ;; esac; done < <(compgen -f -- \"$word\")"
                ));
            }
            Takes::Command => lines.push(complete("-c")),
            Takes::Folder => {
                lines.push("compopt -o filenames".into());
                lines.push(complete("-d"));
            }
            Takes::Flags | Takes::Topics => {
                lines.push(complete(&format!("-W {}", all(words(row)))))
            }
            Takes::Explained => {
                let topics = all(words(row));
                lines.push(format!(
                    "case $before in run|show|diff) compopt -o filenames; {};; *) {};; esac",
                    complete("-f"),
                    complete(&format!("-W {topics}\" $({PIDS})\""))
                ));
            }
            Takes::Process => lines.push(complete(&format!("-W \"$({PIDS})\""))),
            Takes::Nothing => lines.push(":".into()),
        }
        let _ = writeln!(
            text,
            "        {})\n            {} ;;",
            row.name,
            lines.join("\n            ")
        );
    }
    text.push_str("    esac\n}\ncomplete -F _purlin purlin\n");
    text
}

/// An explanation as zsh's specifications quote it.
fn for_zsh(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if matches!(c, '[' | ']' | ':' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

pub fn zsh() -> String {
    let mut text = String::from(
        "#compdef purlin\n# Completions of purlin for zsh, made by: purlin help zsh\n\
         _purlin_processes() {\n    local -a pids\n    pids=(${(f)\"$(",
    );
    let _ = write!(text, "{PIDS}");
    text.push_str(
        ")\"})\n    _describe process pids\n}\n_purlin() {\n    local context state line\n    local -a commands\n    commands=(\n",
    );
    for row in COMMANDS {
        let _ = writeln!(
            text,
            "        {}",
            quoted(&format!("{}:{}", row.name, for_zsh(row.doc)))
        );
    }
    text.push_str("    )\n    _arguments -C \\\n");
    for row in GLOBAL {
        for name in names(row) {
            let _ = writeln!(text, "        {} \\", zsh_option(name, row));
        }
    }
    text.push_str(
        "        '1:command:->command' '*::argument:->argument'\n    case $state in\n        command) _describe command commands ;;\n        argument) case $line[1] in\n",
    );
    for row in COMMANDS {
        let mut specs: Vec<String> = row
            .options
            .iter()
            .flat_map(|option| names(option).map(|name| zsh_option(name, option)))
            .collect();
        let list = |words: Vec<String>| words.join(" ");
        let spec = match row.takes {
            Takes::Files([]) => "*:file:_files".to_string(),
            Takes::Files(endings) => {
                format!("*:file:_files -g \"*.({})(-.)\"", endings.join("|"))
            }
            Takes::Command => "*::command:_normal".into(),
            Takes::Folder => "*:folder:_files -/".into(),
            Takes::Flags => format!("*:flag:({})", list(words(row))),
            Takes::Topics => format!("*:topic:({})", list(words(row))),
            Takes::Explained => format!(
                "*:what:{{_purlin_processes; compadd {}; _files}}",
                list(words(row))
            ),
            Takes::Process => "*:process:_purlin_processes".into(),
            Takes::Nothing => String::new(),
        };
        if !spec.is_empty() {
            specs.push(quoted(&spec));
        }
        let does = match specs.is_empty() {
            true => ":".to_string(),
            false => format!("_arguments {}", specs.join(" ")),
        };
        let _ = writeln!(text, "            {}) {does} ;;", row.name);
    }
    text.push_str("        esac ;;\n    esac\n}\nif [ \"$funcstack[1]\" = _purlin ]; then _purlin \"$@\"; else compdef _purlin purlin; fi\n");
    text
}

fn zsh_option(name: &str, row: &OptionRow) -> String {
    let what = match row.argument {
        "" => String::new(),
        "DIR" => ":DIR:_files -/".into(),
        "FILE" => ":FILE:_files".into(),
        argument => format!(":{}:", for_zsh(argument)),
    };
    quoted(&format!("{name}[{}]{what}", for_zsh(row.doc)))
}

pub fn fish() -> String {
    let mut text = String::from(
        "# Completions of purlin for fish, made by: purlin help fish\n\
         function __purlin_processes\n    sh -c ",
    );
    let _ = writeln!(
        text,
        "{}\nend\ncomplete -c purlin -f",
        quoted_fish("purlin help processes 2>/dev/null")
    );
    let none = "-n __fish_use_subcommand";
    for row in GLOBAL {
        let _ = writeln!(text, "complete -c purlin {none} {}", fish_option(row));
    }
    for row in COMMANDS {
        let _ = writeln!(
            text,
            "complete -c purlin {none} -a {} -d {}",
            row.name,
            quoted_fish(row.doc)
        );
    }
    for row in COMMANDS {
        let seen = format!("-n '__fish_seen_subcommand_from {}'", row.name);
        for option in row.options {
            let _ = writeln!(text, "complete -c purlin {seen} {}", fish_option(option));
        }
        let does = match row.takes {
            Takes::Files([]) | Takes::Folder => "-F".to_string(),
            Takes::Files(endings) => {
                let all: Vec<_> = endings
                    .iter()
                    .map(|ending| format!("__fish_complete_suffix .{ending}"))
                    .collect();
                format!("-k -a '({})'", all.join("; "))
            }
            Takes::Command => "-a '(__fish_complete_subcommand)'".into(),
            Takes::Flags | Takes::Topics => format!("-a {}", quoted_fish(&words(row).join(" "))),
            Takes::Explained => {
                format!(
                    "-F -a {}",
                    quoted_fish(&format!("{} (__purlin_processes)", words(row).join(" ")))
                )
            }
            Takes::Process => "-a '(__purlin_processes)'".into(),
            Takes::Nothing => continue,
        };
        let _ = writeln!(text, "complete -c purlin {seen} {does}");
    }
    text
}

/// `text` quoted as one word of fish.
fn quoted_fish(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn fish_option(row: &OptionRow) -> String {
    let mut text = String::new();
    for name in names(row) {
        let _ = match name.strip_prefix("--") {
            Some(long) => write!(text, "-l {long} "),
            None => write!(text, "-s {} ", name.trim_start_matches('-')),
        };
    }
    match row.argument {
        "" => {}
        "DIR" | "FILE" => text.push_str("-r -F "),
        _ => text.push_str("-x "),
    }
    text + "-d " + &quoted_fish(row.doc)
}
