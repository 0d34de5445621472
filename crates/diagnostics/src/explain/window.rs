//! Profiles of some time: `window begin MILLISECONDS [WHOSE]`, then `window end NUMBER TOP`.
//!
//! While a window is open, time is sampled too. With `WHOSE` (`process NAME`, `application NAME` or
//! `budget NAME`) the answer to the end is a profile of these processes only. Without it nothing
//! else is kept: the client compares two answers to the topic `profile`.
//!
//! # Invariant
//! A window that is not ended is over [`OVERDUE_NANOSECONDS`] after its time.

use super::budgets::MOST_OF_NAME;
use purlin_kernel::accounts::Entry;
use purlin_kernel::budgets;
use purlin_kernel::clock;
use purlin_kernel::process::registry;
use purlin_kernel::profile::{self, Use};
use purlin_kernel::selection::{self, Who};
use purlin_term::print::{Style, format_term};
use purlin_term::{Term, atom};

/// Nanoseconds after its time after which a window is over.
const OVERDUE_NANOSECONDS: i64 = 30_000_000_000;
/// Maximum time of a window in milliseconds: a day.
const MOST_MS: i64 = 86_400_000;
/// Maximum number of objects of a table that are searched.
const SEARCHED: usize = 100_000;

/// The answer to a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// The number of a window that was opened; 0 if it has no selection.
    Opened(u64),
    /// The places of a closed window, and the number of stacks of each kind that the client
    /// wants.
    Closed(Vec<Entry>, usize),
}

/// The answer to the words after `window`.
pub(super) fn answer(words: &str) -> Result<Answer, String> {
    let wrong = || format!("'window{words}' is not understood");
    let mut parts = words.trim().splitn(3, ' ');
    let verb = parts.next().unwrap_or_default();
    let number = parts.next().and_then(|n| n.parse::<u64>().ok());
    let rest = parts.next().unwrap_or_default().trim();
    match (verb, number) {
        ("begin", Some(ms)) => begin(ms, rest),
        ("end", Some(number)) => {
            let top = rest.parse::<usize>().map_err(|_| wrong())?;
            let all = selection::close(number).ok_or("that window is over")?;
            Ok(Answer::Closed(all, top))
        }
        _ => Err(wrong()),
    }
}

fn begin(ms: u64, whose: &str) -> Result<Answer, String> {
    let ms = i64::try_from(ms).unwrap_or(MOST_MS).min(MOST_MS);
    let until = clock::elapsed() + ms * 1_000_000 + OVERDUE_NANOSECONDS;
    let number = match whose {
        "" => 0,
        whose => {
            let open = selection::open(who(whose)?, until);
            open.ok_or_else(|| format!("there are {} windows already", selection::MOST_SELECTIONS))?
        }
    };
    if !profile::keep(Use::Window, until) {
        let _ = selection::close(number);
        return Err("no thread can be started that samples time".into());
    }
    Ok(Answer::Opened(number))
}

/// The processes that these words select.
fn who(words: &str) -> Result<Who, String> {
    let (what, name) = words.split_once(' ').unwrap_or((words, ""));
    match what {
        "process" => process(name)
            .map(Who::Process)
            .ok_or_else(|| format!("there is no process '{name}'")),
        "application" => master(name)
            .map(Who::Led)
            .ok_or_else(|| format!("the application '{name}' does not run")),
        "budget" => budget(name)
            .map(Who::Budget)
            .ok_or_else(|| format!("there is no budget '{name}'")),
        _ => Err(format!("'{what}' selects no processes")),
    }
}

/// The local pid with that text, such as `<0.12.3>`.
pub(crate) fn pid(text: &str) -> Option<Term> {
    let inner = text.trim().strip_prefix('<')?.strip_suffix('>')?;
    let mut numbers = inner.split('.').map(|n| n.parse::<u64>().ok());
    let (node, number, serial) = (numbers.next()??, numbers.next()??, numbers.next()??);
    if numbers.next().is_some() || node != 0 || number >= 1 << 15 || serial >= 1 << 13 {
        return None;
    }
    Some(Term::pid(u32::try_from(number | serial << 15).ok()?))
}

/// The atom that is written like this, quoted or not, or that is a module of Elixir.
fn atom_of(text: &str) -> Option<Term> {
    let inner = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
    let elixir = || atom::existing(&format!("Elixir.{text}"));
    inner
        .and_then(atom::existing)
        .or_else(|| atom::existing(text))
        .or_else(elixir)
}

/// The living process with that pid or registered name.
fn process(text: &str) -> Option<Term> {
    let found = match text.starts_with('<') {
        true => pid(text),
        // A module of Elixir is registered under its full name; a short one may be an atom too.
        false => {
            let elixir = || atom::existing(&format!("Elixir.{text}"));
            let named = |name: Option<Term>| registry::whereis(name?);
            named(atom_of(text)).or_else(|| named(elixir()))
        }
    };
    found.filter(|p| p.is_local_pid() && purlin_kernel::process::table().is_alive(*p))
}

/// The application master, which is the group leader of the processes of an application. The
/// application controller keeps it in its table under `{application_master, Name}`.
fn master(name: &str) -> Option<Term> {
    let name = atom_of(name)?;
    let (table, key) = (
        atom::existing("ac_tab")?,
        atom::existing("application_master")?,
    );
    let all = purlin_ets::all();
    let table = all.iter().find(|t| t.name() == table)?;
    let mut found = None;
    purlin_ets::each(table, SEARCHED, &mut |object| {
        let Some(&[of, pid]) = object.as_tuple() else {
            return;
        };
        if of.as_tuple() == Some(&[key, name]) {
            found = Some(pid);
        }
    });
    found.filter(|p: &Term| p.is_local_pid())
}

/// The budget with that number or name.
fn budget(text: &str) -> Option<u32> {
    let by_number = text.parse::<u32>().ok();
    let named = |i: u32| {
        let b = budgets::get(i)?;
        let shown = |style| b.with_name(|t| format_term(t, style, MOST_OF_NAME).to_string());
        Some(shown(Style::Display) == text || shown(Style::Write) == text)
    };
    let mut all = budgets::all().into_iter();
    all.find(|&i| by_number == Some(i) || named(i) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_refused() {
        for words in [
            "",
            " begin",
            " begin x",
            " end 1",
            " end 1 x",
            " stop 1",
            " begin 10 all",
        ] {
            assert!(answer(words).is_err(), "{words}");
        }
        assert_eq!(
            answer(" end 77 10").err().as_deref(),
            Some("that window is over")
        );
    }

    #[test]
    fn pids_are_read_or_refused() {
        assert_eq!(pid("<0.5.0>"), Some(Term::pid(5)));
        for text in ["", "<0.5>", "<1.5.0>", "<0.99999.0>", "0.5.0", "<0.5.0.0>"] {
            assert_eq!(pid(text), None, "{text}");
        }
    }
}
