//! `cargo xtask sbom [PACKAGE]`: prints the software bill of materials of a package (purlin), as
//! CycloneDX 1.5 in JSON: each crate that is linked or runs in the build, with its version,
//! licence, origin and SHA-256, and what each depends on. It is made from `cargo tree` and
//! `Cargo.lock`. The time is `SOURCE_DATE_EPOCH`'s, if it is set, so the same tree gives the same
//! text. C libraries that Purlin links (PCRE2, zlib, zstd) are parts of the crates that are named
//! after them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::environment::{Settings, root};

/// Runs the command; see the module head.
pub fn run(_: &Settings, arguments: &[String]) -> Result<i32, String> {
    let package = match arguments {
        [] => "purlin",
        [name] => name,
        _ => return Err("sbom: takes one package".to_owned()),
    };
    let lock = root().join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(|e| format!("{}: {e}", lock.display()))?;
    let tree = tree(package)?;
    let date = std::env::var("SOURCE_DATE_EPOCH").ok();
    let date = date.and_then(|d| d.parse().ok());
    print!("{}", bill(package, &used(&tree), &locked(&lock), date)?);
    Ok(0)
}

/// Returns what `cargo tree` prints of the crates that are linked or run in the build.
fn tree(package: &str) -> Result<String, String> {
    let out = Command::new("cargo")
        .current_dir(root())
        .args(["tree", "--locked", "--prefix", "none", "--no-dedupe"])
        .args(["-e", "normal,build", "-f", "{p}\t{l}", "-p", package])
        .output()
        .map_err(|e| format!("cargo tree: {e}"))?;
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&out.stderr).into_owned()),
    }
}

/// Name and version of a crate.
type Id = (String, String);

/// A crate in `Cargo.lock`.
#[derive(Debug, Default, PartialEq)]
struct Locked {
    checksum: Option<String>,
    /// As the file has them: a name, with the version where there are several.
    dependencies: Vec<String>,
}

/// Returns the crates of a tree, with their licences.
fn used(tree: &str) -> BTreeMap<Id, String> {
    let mut all = BTreeMap::new();
    for line in tree.lines() {
        let (crate_, licence) = line.split_once('\t').unwrap_or((line, ""));
        let mut words = crate_.split(' ');
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            let version = version.trim_start_matches('v').to_owned();
            all.insert((name.to_owned(), version), licence.trim().to_owned());
        }
    }
    all
}

/// Reads the packages of `Cargo.lock`.
fn locked(text: &str) -> BTreeMap<Id, Locked> {
    let quoted = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
    let mut all = BTreeMap::new();
    for part in text.split("[[package]]").skip(1) {
        let (mut name, mut version, mut row) = (String::new(), String::new(), Locked::default());
        for line in part.lines() {
            match line.split(' ').next() {
                Some("name") => name = quoted(line),
                Some("version") => version = quoted(line),
                Some("checksum") => row.checksum = Some(quoted(line)),
                _ if line.starts_with(" \"") => row.dependencies.push(quoted(line)),
                _ => {}
            }
        }
        all.insert((name, version), row);
    }
    all
}

fn bill(
    package: &str,
    used: &BTreeMap<Id, String>,
    locked: &BTreeMap<Id, Locked>,
    seconds: Option<u64>,
) -> Result<String, String> {
    let main = used.keys().find(|id| id.0 == package);
    let main = main.ok_or_else(|| format!("sbom: there is no package {package}"))?;
    let mut components = Vec::new();
    let mut depends = Vec::new();
    for (id, licence) in used {
        let row = locked
            .get(id)
            .ok_or_else(|| format!("sbom: Cargo.lock has no {} {}", id.0, id.1))?;
        if id != main {
            components.push(component("library", id, licence, row));
        }
        let names: BTreeSet<String> = row
            .dependencies
            .iter()
            .filter_map(|d| {
                let mut words = d.split(' ');
                let (name, version) = (words.next()?, words.next());
                let is = |id: &&Id| id.0 == name && version.is_none_or(|v| v == id.1);
                used.keys().find(is).map(reference)
            })
            .collect();
        let names: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
        depends.push(format!(
            "    {{\"ref\": \"{}\", \"dependsOn\": [{}]}}",
            reference(id),
            names.join(", ")
        ));
    }
    let mut text =
        String::from("{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.5\",\n");
    text += "  \"version\": 1,\n  \"metadata\": {\n";
    if let Some(seconds) = seconds {
        let _ = writeln!(text, "    \"timestamp\": \"{}\",", date(seconds));
    }
    let row = locked.get(main).ok_or("sbom: no such package")?;
    let main = component("application", main, &used[main], row);
    let _ = writeln!(text, "    \"component\": {}\n  }},", main.trim());
    let _ = writeln!(
        text,
        "  \"components\": [\n{}\n  ],",
        components.join(",\n")
    );
    let _ = writeln!(
        text,
        "  \"dependencies\": [\n{}\n  ]\n}}",
        depends.join(",\n")
    );
    Ok(text)
}

fn reference(id: &Id) -> String {
    format!("pkg:cargo/{}@{}", id.0, id.1)
}

fn component(kind: &str, id: &Id, licence: &str, row: &Locked) -> String {
    let mut text = format!(
        "    {{\"type\": \"{kind}\", \"bom-ref\": \"{at}\", \"name\": \"{}\", \"version\": \"{}\", \
         \"purl\": \"{at}\"",
        id.0,
        id.1,
        at = reference(id)
    );
    if !licence.is_empty() {
        // Some crates have the older form, with a slash.
        let expression = licence.replace(" / ", "/").replace('/', " OR ");
        let _ = write!(
            text,
            ", \"licenses\": [{{\"expression\": \"{expression}\"}}]"
        );
    }
    if let Some(sum) = &row.checksum {
        let _ = write!(
            text,
            ", \"hashes\": [{{\"alg\": \"SHA-256\", \"content\": \"{sum}\"}}]"
        );
    }
    text + "}"
}

/// Returns seconds since 1970 as a date of ISO 8601, in UTC.
fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that the leap day is the last of one.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\ndependencies = [\n \"b 2.0.0\",\n \"c\",\n]\n\n\
        [[package]]\nname = \"b\"\nversion = \"1.0.0\"\n\n\
        [[package]]\nname = \"b\"\nversion = \"2.0.0\"\nsource = \"registry\"\nchecksum = \"abc\"\n";

    #[test]
    fn what_is_used_is_in_the_bill() {
        let used = used(
            "a v1.0.0 (/tree/a)\tApache-2.0\nb v2.0.0\tMIT/Apache-2.0\nb v2.0.0\tMIT/Apache-2.0\n",
        );
        let text = bill("a", &used, &locked(LOCK), Some(1_700_000_000)).expect("a bill");
        for part in [
            "\"timestamp\": \"2023-11-14T22:13:20Z\"",
            "\"component\": {\"type\": \"application\", \"bom-ref\": \"pkg:cargo/a@1.0.0\"",
            "\"licenses\": [{\"expression\": \"MIT OR Apache-2.0\"}]",
            "\"hashes\": [{\"alg\": \"SHA-256\", \"content\": \"abc\"}]",
            "{\"ref\": \"pkg:cargo/a@1.0.0\", \"dependsOn\": [\"pkg:cargo/b@2.0.0\"]}",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.matches("\"type\": \"library\"").count(), 1, "{text}");
    }

    #[test]
    fn what_the_lock_does_not_have_is_refused() {
        let used = used("a v1.0.1\t\n");
        assert!(bill("a", &used, &locked(LOCK), None).is_err());
        assert!(bill("x", &used, &locked(LOCK), None).is_err());
    }

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }
}
