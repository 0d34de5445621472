//! The rows of `tests/applications/list.txt`, whose head describes the fields.

/// A library.
#[derive(Clone, Default)]
pub struct Library {
    pub name: String,
    /// Addresses for git, and `debian:` with the name of a source package.
    pub sources: Vec<String>,
    /// Tags: one for all releases, and `25=TAG` for one.
    tags: Vec<String>,
    /// Its kind in the list; empty if its files say it.
    pub kind: String,
    /// Whether it needs a server of PostgreSQL.
    pub wants_postgres: bool,
    pub test: String,
    pub prepare: String,
    releases: Vec<String>,
    /// The folder of the project within its sources.
    pub folder: String,
    pub needs: Vec<String>,
}

impl Library {
    /// A library that the list does not have: a checkout of that name.
    pub fn unlisted(name: &str) -> Library {
        Library {
            name: name.to_string(),
            ..Library::default()
        }
    }

    /// Parses a row.
    fn parse(line: &str) -> Library {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let field = |n: usize| fields.get(n - 1).copied().unwrap_or_default();
        let words = |n| field(n).split_whitespace().map(str::to_string).collect();
        let kind = field(4);
        Library {
            name: field(1).to_string(),
            sources: words(2),
            tags: words(3),
            kind: kind.trim_end_matches("+postgres").to_string(),
            wants_postgres: kind.ends_with("+postgres"),
            test: field(5).to_string(),
            prepare: field(6).to_string(),
            releases: words(7),
            folder: field(8).to_string(),
            needs: words(9),
        }
    }

    /// The tag of a release, or an empty text.
    pub fn tag(&self, release: &str) -> &str {
        let own = self.tags.iter().find_map(|t| {
            let (of, tag) = t.split_once('=')?;
            (of == release).then_some(tag)
        });
        let plain = self.tags.iter().rfind(|t| !t.contains('='));
        own.or(plain.map(String::as_str)).unwrap_or_default()
    }

    /// Whether its suite runs on a release.
    pub fn is_for(&self, release: &str) -> bool {
        self.releases.is_empty() || self.releases.iter().any(|r| r == release)
    }

    /// Whether it is a dependency of others alone.
    pub fn has_no_suite(&self) -> bool {
        self.kind == "-"
    }
}

/// Parses the list.
pub fn parse(text: &str) -> Vec<Library> {
    let rows = text
        .lines()
        .filter(|l| !l.starts_with('#') && !l.trim().is_empty());
    rows.map(Library::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_fields() {
        let all = parse(
            "# a | b\n\na | u v | v2 25=v1 | mix+postgres | --seed 7 | rm x | 25 27 | sub | b c | why\nb | u |",
        );
        let [a, b] = &all[..] else { panic!("two rows") };
        assert_eq!((a.name.as_str(), a.sources.len()), ("a", 2));
        assert_eq!((a.tag("25"), a.tag("27")), ("v1", "v2"));
        assert!(a.wants_postgres && a.kind == "mix" && a.test == "--seed 7");
        assert!(a.is_for("25") && !a.is_for("29") && a.needs == ["b", "c"]);
        assert_eq!((a.prepare.as_str(), a.folder.as_str()), ("rm x", "sub"));
        assert!(b.tag("25").is_empty() && b.is_for("29") && b.kind.is_empty());
    }

    #[test]
    fn the_list_is_understood() {
        let file = crate::root().join("tests/applications/list.txt");
        let all = parse(&std::fs::read_to_string(file).expect("the list"));
        let kinds = ["", "-", "mix", "rebar", "erl", "gleam", "make"];
        for library in &all {
            assert!(kinds.contains(&library.kind.as_str()), "{}", library.name);
            assert!(!library.sources.is_empty(), "{}", library.name);
        }
        assert!(all.len() > 50, "{}", all.len());
    }
}
