//! Allocator settings (`+M…`), checked against the switches and ranges of erts_alloc(3).
//!
//! Purlin has its own memory layout. Apart from those of the C library (`MYtt`, `MYtp`), a setting
//! is accepted and has no further effect.

use super::values::{c_long, starts_long};

/// One setting as given: `MBas` and `aobf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocSetting {
    pub name: String,
    pub value: String,
}

/// The argument that a switch takes.
#[derive(Clone, Copy)]
enum Kind {
    Bool,
    /// At least 0.
    Amount,
    /// Kilobytes, such that the bytes fit into a word.
    Kilobytes,
    /// Megabytes, likewise.
    Megabytes,
    /// Kilobytes, such that the bytes fit into an `int`.
    SmallKilobytes,
    /// 0 to 100, or `de` for the allocator's default.
    Percentage,
    Words(&'static [&'static str]),
    /// Any value.
    Any,
}

struct Row {
    name: &'static str,
    kind: Kind,
    /// The length of the prefix of the name that stock repeats when it refuses the value.
    shown: usize,
}

const fn row(name: &'static str, kind: Kind) -> Row {
    Row {
        name,
        kind,
        shown: name.len(),
    }
}

const STRATEGIES: &[&str] = &[
    "bf",
    "aobf",
    "gf",
    "af",
    "aoff",
    "aoffcbf",
    "aoffcaobf",
    "ageffcaoff",
    "ageffcbf",
    "ageffcaobf",
];
const POOLS: &[&str] = &["B", "D", "E", "F", "H", "L", "R", "S", "@", ":"];

/// Letters of the allocators to which the switches in [`PER_ALLOCATOR`] apply; `u` means all of
/// them.
const ALLOCATORS: &str = "uBIDEFHLRSTZ";

/// Switches of one allocator, after `M` and its letter. A longer name precedes its prefix.
static PER_ALLOCATOR: &[Row] = &[
    row("asbcst", Kind::Kilobytes),
    Row {
        name: "as",
        kind: Kind::Words(STRATEGIES),
        shown: 1,
    },
    row("atags", Kind::Bool),
    row("acul", Kind::Percentage),
    row("acnl", Kind::Amount),
    row("acfml", Kind::Amount),
    row("acful", Kind::Percentage),
    row("cp", Kind::Words(POOLS)),
    row("e", Kind::Bool),
    row("lmbcs", Kind::Kilobytes),
    row("mbcgs", Kind::Amount),
    row("mbsd", Kind::Amount),
    row("mmbcs", Kind::Kilobytes),
    row("mmmbc", Kind::Amount),
    row("mmsbc", Kind::Amount),
    row("ramv", Kind::Bool),
    row("rmbcmt", Kind::Amount),
    row("rsbcmt", Kind::Amount),
    row("rsbcst", Kind::Amount),
    row("sbct", Kind::Kilobytes),
    row("smbcs", Kind::Kilobytes),
    row("t", Kind::Bool),
];

/// Switches after `M` that belong to no single allocator; these are looked up first.
static GLOBAL: &[Row] = &[
    row("Iscs", Kind::Megabytes),
    row("Mamcbf", Kind::Kilobytes),
    row("Mrmcbf", Kind::Amount),
    row("Mmcs", Kind::Amount),
    row("Mscs", Kind::Megabytes),
    row("Mscrpm", Kind::Bool),
    row("Mscrfsd", Kind::Amount),
    row("Msco", Kind::Bool),
    row("Mlp", Kind::Words(&["on", "off"])),
    row("Ytt", Kind::SmallKilobytes),
    row("Ytp", Kind::SmallKilobytes),
    row("Ym", Kind::Any),
    row("Ye", Kind::Words(&["true"])),
    row(
        "ea",
        Kind::Words(&["min", "max", "config", "r9c", "r10b", "r11b"]),
    ),
    row("lpm", Kind::Words(&["all", "no"])),
    row("dai", Kind::Any),
    row("uycs", Kind::Kilobytes),
    row("umadtn", Kind::Any),
    row("ummc", Kind::Amount),
    row("usac", Kind::Bool),
];

/// Whether `+M<switch>` is a whole switch, so that its value is the next argument.
pub(super) fn takes_next(switch: &str) -> bool {
    switch == "limit"
        || GLOBAL.iter().any(|row| row.name == switch)
        || switch
            .strip_prefix(|letter| ALLOCATORS.contains(letter))
            .is_some_and(|switch| PER_ALLOCATOR.iter().any(|row| row.name == switch))
}

/// Parses `-M<switch>[value]`; `next` is the argument after it. Also returns whether that was used
/// up.
pub(super) fn parse(switch: &str, next: Option<&str>) -> Result<(AllocSetting, bool), String> {
    let refuse = |shown: usize| {
        let shown: String = switch.chars().take(shown).collect();
        format!("bad \"M{shown}\" parameter")
    };
    let global = GLOBAL.iter().find(|row| switch.starts_with(row.name));
    let (row, skipped) = match global {
        Some(row) => (row, 0),
        None => {
            let Some(letter) = switch.chars().next() else {
                return Err(refuse(0));
            };
            if !ALLOCATORS.contains(letter) {
                let shown = usize::from("MYld".contains(letter));
                return Err(refuse(shown));
            }
            let found = PER_ALLOCATOR
                .iter()
                .find(|row| switch[1..].starts_with(row.name));
            (found.ok_or_else(|| refuse(1))?, 1)
        }
    };
    let (name, glued) = switch.split_at(skipped + row.name.len());
    let bad = |value: &str| format!("bad \"M{}\" value: {value}", &switch[..skipped + row.shown]);
    let (value, used) = match glued {
        "" => (
            next.filter(|next| *next != "--").ok_or_else(|| bad(""))?,
            true,
        ),
        glued => (glued, false),
    };
    let number = || c_long(value).filter(|number| starts_long(value) && *number >= 0);
    let fits = match row.kind {
        Kind::Bool => matches!(value, "true" | "false"),
        Kind::Amount => number().is_some(),
        Kind::Kilobytes => number().is_some_and(|number| number <= 1 << 54),
        Kind::Megabytes => number().is_some_and(|number| number <= 1 << 44),
        Kind::SmallKilobytes => number().is_some_and(|number| number <= i64::from(i32::MAX) / 1024),
        Kind::Percentage => value == "de" || number().is_some_and(|number| number <= 100),
        Kind::Words(words) => words.contains(&value),
        Kind::Any => name != "dai" || value == "max" || number().is_some(),
    };
    if !fits {
        return Err(if name == "ea" { refuse(2) } else { bad(value) });
    }
    Ok((
        AllocSetting {
            name: format!("M{name}"),
            value: value.to_string(),
        },
        used,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings() {
        for (switch, next, expected) in [
            ("Bas", Some("aobf"), Ok(("MBas", "aobf", true))),
            ("Hlmbcs512", None, Ok(("MHlmbcs", "512", false))),
            ("Iscs", Some("1024"), Ok(("MIscs", "1024", true))),
            ("uacul", Some("de"), Ok(("Muacul", "de", true))),
            ("Bas", Some("xx"), Err("bad \"MBa\" value: xx")),
            ("Bxx", Some("1"), Err("bad \"MB\" parameter")),
            ("x", Some("1"), Err("bad \"M\" parameter")),
            ("", None, Err("bad \"M\" parameter")),
            ("Be", Some("maybe"), Err("bad \"MBe\" value: maybe")),
            ("Yxx", Some("1"), Err("bad \"MY\" parameter")),
            ("ea", Some("some"), Err("bad \"Mea\" parameter")),
            ("Bsbct", Some("-1"), Err("bad \"MBsbct\" value: -1")),
            ("é", None, Err("bad \"M\" parameter")),
        ] {
            let got =
                parse(switch, next).map(|(setting, used)| (setting.name, setting.value, used));
            let expected = expected
                .map(|(name, value, used)| (name.to_string(), value.to_string(), used))
                .map_err(str::to_string);
            assert_eq!(got, expected, "+M{switch} {next:?}");
        }
    }
}
