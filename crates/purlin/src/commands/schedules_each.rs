//! `schedules --each-test -- COMMAND`: the tests of a suite, each searched by itself.
//!
//! A suite of ExUnit (`mix test …`) runs once as it is, with `--trace`, which prints the place of
//! each test. For eunit (`rebar3 eunit …`) the modules are found by their files, since rebar3
//! selects by module. Then each has a search of its own, in a process like the one that `schedules`
//! without the option becomes.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::print;
use super::schedules::Options;
use crate::context::Context;
use crate::failure::{Failure, SYSTEM, USAGE, cannot_run, do_not_fit, say_text};
use purlin_messages as messages;

/// A test, or a module of tests.
#[derive(PartialEq, Debug)]
struct Test {
    name: String,
    /// The arguments behind the command that select it.
    chosen_by: Vec<String>,
}

/// Searches each test of the command `words`. Returns the worst status.
pub(super) fn run(context: &Context, o: &Options, words: &[OsString]) -> Result<u8, Failure> {
    let texts: Vec<String> = words
        .iter()
        .map(|w| w.to_string_lossy().into_owned())
        .collect();
    let (command, tests) = match texts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["mix", "test", ..] => of_exunit(context, &texts)?,
        ["rebar3", "eunit", ..] => of_eunit(&texts)?,
        _ => {
            return Err(do_not_fit(
                "--each-test knows the tests of 'mix test …' and of 'rebar3 eunit …'",
            ));
        }
    };
    let wanted = |t: &Test| o.test.as_ref().is_none_or(|part| t.name.contains(part));
    let tests: Vec<Test> = tests.into_iter().filter(wanted).collect();
    if tests.is_empty() {
        return Err(no_tests("--test: no test has that in its name"));
    }
    let mut worst = 0;
    let mut failed = 0;
    for (n, test) in tests.iter().enumerate() {
        let file = o.file_of(n + 1);
        let mut args = o.child_args(&file);
        args.extend(command.iter().chain(&test.chosen_by).map(OsString::from));
        let out = own(context, &args)?;
        let status = out.status.code().unwrap_or(1).clamp(0, 255) as u8;
        let said = String::from_utf8_lossy(&out.stdout);
        let also = String::from_utf8_lossy(&out.stderr);
        if o.json {
            print(&format!(
                "{{\"test\":\"{}\",\"status\":{status},\"search\":{}}}\n",
                escaped(&test.name),
                match said.trim() {
                    "" => "null",
                    json => json,
                }
            ))?;
        } else {
            print(&format!("{}\n{}\n", test.name, indented(&said)))?;
        }
        if !also.trim().is_empty() {
            say_text(&also);
        }
        o.write_page(&file, status)?;
        failed += usize::from(status != 0);
        worst = worst.max(status);
    }
    if !o.json {
        print(&format!(
            "{} tests, each searched: {failed} failed\n",
            tests.len()
        ))?;
    }
    Ok(worst)
}

/// Returns this program with other arguments.
fn command(context: &Context, args: &[OsString]) -> Result<Command, Failure> {
    let mut c = Command::new(std::env::current_exe().map_err(no_start)?);
    if let Some(root) = context.otp_root() {
        c.arg("--otp-root").arg(root);
    }
    c.args(args);
    Ok(c)
}

fn no_start(e: std::io::Error) -> Failure {
    cannot_run(SYSTEM, "Purlin", &e)
}

fn no_tests(text: &str) -> Failure {
    Failure::new(messages::NO_TESTS, USAGE, text)
}

/// Runs this program with other arguments, and returns its output.
fn own(context: &Context, args: &[OsString]) -> Result<Output, Failure> {
    let mut c = command(context, args)?;
    c.stdin(Stdio::null()).output().map_err(no_start)
}

/// Runs this program with other arguments and this process's input and output, and returns its
/// status.
pub(super) fn own_status(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let status = command(context, args)?.status().map_err(no_start)?;
    Ok(status.code().unwrap_or(1).clamp(0, 255) as u8)
}

/// Escapes text for a JSON string.
pub(super) fn escaped(text: &str) -> String {
    let mut t = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => t.extend(['\\', c]),
            c if c.is_control() => t.push_str(&format!("\\u{:04x}", c as u32)),
            c => t.push(c),
        }
    }
    t
}

fn indented(text: &str) -> String {
    let line = |l: &str| match l.is_empty() {
        true => "\n".into(),
        false => format!("  {l}\n"),
    };
    text.trim_end().lines().map(line).collect()
}

/// Whether a word of a command names a file or folder, perhaps with a line number.
fn is_path(word: &str) -> bool {
    let path = word.split_once(".exs:").map(|(p, _)| format!("{p}.exs"));
    !word.starts_with('-') && Path::new(path.as_deref().unwrap_or(word)).exists()
}

/// Returns the command without its files, and its tests.
fn of_exunit(context: &Context, words: &[String]) -> Result<(Vec<String>, Vec<Test>), Failure> {
    let mut args: Vec<OsString> = vec!["exec".into(), "--".into()];
    args.extend(words.iter().map(OsString::from));
    args.push("--trace".into());
    let out = own(context, &args)?;
    let said = String::from_utf8_lossy(&out.stdout);
    let tests = exunit_tests(&said);
    if tests.is_empty() {
        say_text(&format!("{said}{}", String::from_utf8_lossy(&out.stderr)));
        return Err(no_tests("'mix test … --trace' listed no test"));
    }
    for t in &tests {
        let place = &t.chosen_by[0];
        if !is_path(place) {
            return Err(do_not_fit(format!(
                "{place} is not below this folder: --each-test wants to be called in the application's own"
            )));
        }
    }
    let (first, rest) = words.split_at(2);
    let rest = rest.iter().filter(|w| !is_path(w)).cloned();
    Ok((first.iter().cloned().chain(rest).collect(), tests))
}

/// Reads the tests that ran from the output of ExUnit with `--trace`, in the order of the source,
/// since ExUnit shuffles them.
fn exunit_tests(said: &str) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut file = "";
    for line in said.lines() {
        // A line is printed when the test begins, and again over it when the test has ended.
        let line = line.rsplit('\r').next().unwrap_or(line);
        let Some(test) = line.strip_prefix("  * ") else {
            if let Some((_, path)) = line.rsplit_once(" [")
                && !line.starts_with(' ')
                && let Some(path) = path.strip_suffix(']')
                && path.contains(".exs")
            {
                file = path;
            }
            continue;
        };
        let Some((name, place)) = test.rsplit_once(" [L#") else {
            continue;
        };
        let Some(at) = place.strip_suffix(']').filter(|n| is_number(n)) else {
            continue;
        };
        let Some((name, how)) = name.rsplit_once(" (") else {
            continue;
        };
        if !how.ends_with("ms)") || file.is_empty() {
            continue;
        }
        let test = Test {
            name: format!("{file}:{at} {name}"),
            chosen_by: vec![format!("{file}:{at}")],
        };
        let number: u64 = at.parse().unwrap_or(u64::MAX);
        tests.push(((file, number), test));
    }
    tests.sort_by_key(|(place, _)| *place);
    tests.into_iter().map(|(_, test)| test).collect()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the command, and the test modules of the project in this folder.
fn of_eunit(words: &[String]) -> Result<(Vec<String>, Vec<Test>), Failure> {
    if words.iter().any(|w| w.starts_with("--module")) {
        return Err(do_not_fit(
            "--each-test chooses the modules of 'rebar3 eunit' itself",
        ));
    }
    let mut modules: Vec<String> = Vec::new();
    for folder in ["src", "test", "eunit"] {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for path in entries.flatten().map(|e| e.path()) {
            let is_erl = path.extension().is_some_and(|e| e == "erl");
            if let Some(name) = path.file_stem().and_then(|s| s.to_str())
                && is_erl
                && std::fs::read_to_string(&path).is_ok_and(|text| has_tests(&text))
            {
                modules.push(name.to_owned());
            }
        }
    }
    modules.sort();
    modules.dedup();
    if modules.is_empty() {
        return Err(no_tests("no module in src or test has a test of eunit"));
    }
    let test = |m: String| Test {
        chosen_by: vec![format!("--module={m}")],
        name: m,
    };
    Ok((words.to_vec(), modules.into_iter().map(test).collect()))
}

/// Whether a source has a function that eunit regards as a test or a generator.
fn has_tests(text: &str) -> bool {
    text.lines().any(|l| {
        let name = l.split_once('(').map_or("", |(name, _)| name);
        let plain = name.starts_with(|c: char| c.is_ascii_lowercase());
        plain && (name.ends_with("_test") || name.ends_with("_test_"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_exunit_tells_of() {
        let said = "\nShopTest [test/shop_test.exs]\n  * test adds [L#4]\r  * test adds (6.4ms) [L#4]\n\n  1) test adds (ShopTest)\n\
     test/shop_test.exs:4\n  * test odd (name) [L#3] [L#11]\r  * test odd (name) [L#3] (0.00ms) [L#11]\n\
  * test left (skipped) [L#20]\r  * test left (skipped) [L#20]\n  * test first (0.1ms) [L#2]\n";
        let places: Vec<_> = exunit_tests(said)
            .into_iter()
            .map(|t| (t.chosen_by, t.name))
            .collect();
        let row = |place: &str, name: &str| {
            (
                vec![place.to_owned()],
                format!("test/shop_test.exs:{} {name}", &place[19..]),
            )
        };
        assert_eq!(
            places,
            [
                row("test/shop_test.exs:2", "test first"),
                row("test/shop_test.exs:4", "test adds"),
                row("test/shop_test.exs:11", "test odd (name) [L#3]")
            ]
        );
    }

    #[test]
    fn sources_with_tests_of_eunit() {
        assert!(has_tests("a_test() -> ok.\n"));
        assert!(has_tests("-export([]).\nall_test_() ->\n"));
        assert!(!has_tests("test() -> ok.\n%% a_test() -> ok.\n"));
    }
}
