//! The account of a search: what the program does that no seed decides, counted by kind.
//!
//! An operation is counted if code of the program does it in a process of the program, or if a
//! library server does it for the program. A process to which program code sent something works for
//! the program until it waits again, and so do processes to which it sends meanwhile. Compiling and
//! loading code is not counted. Most kinds are recorded, so that a replay gets the same results.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A kind of operation whose result no seed decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Opened,
    Read,
    Written,
    Changed,
    Program,
    Socket,
    OnSocket,
    Port,
    Node,
    Number,
    Variable,
    OpenSsl,
    Library,
}

use Kind::*;

/// All kinds: singular and plural for people, and whether the effect outlasts the run or is shared
/// with runs that are forked from it.
const KINDS: [(Kind, &str, &str, bool); 13] = [
    (Opened, "file opened", "files opened", true),
    (
        Read,
        "read of files or folders",
        "reads of files or folders",
        false,
    ),
    (Written, "write to files", "writes to files", true),
    (
        Changed,
        "file or folder made, renamed, changed or deleted",
        "files or folders made, renamed, changed or deleted",
        true,
    ),
    (Program, "program started", "programs started", true),
    (Socket, "socket opened", "sockets opened", true),
    (
        OnSocket,
        "other operation on sockets",
        "other operations on sockets",
        true,
    ),
    (Port, "other port opened", "other ports opened", true),
    (
        Node,
        "connection with another node",
        "connections with other nodes",
        true,
    ),
    (
        Number,
        "look at the number of its process of the system",
        "looks at the number of its process of the system",
        false,
    ),
    (
        Variable,
        "look at a variable of the environment",
        "looks at variables of the environment",
        false,
    ),
    (
        OpenSsl,
        "call of OpenSSL that draws numbers of its own",
        "calls of OpenSSL that draw numbers of their own",
        false,
    ),
    (Library, "call of C in", "calls of C in", false),
];

impl Kind {
    fn row(self) -> &'static (Kind, &'static str, &'static str, bool) {
        &KINDS[self as usize]
    }
    /// Whether its results are recorded.
    fn is_recorded(self) -> bool {
        !matches!(self, Port | Node | OpenSsl | Library)
    }

    /// Whether other runs may meet its effect.
    pub fn lasts(self) -> bool {
        self.row().3
    }
}

/// The number of operations of each kind. Libraries in C are told apart by the module that calls
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account(BTreeMap<(Kind, String), u32>);

impl Account {
    /// Counts one operation of that kind.
    pub fn count(&mut self, kind: Kind, module: &str) {
        let module = match kind {
            Library => module,
            _ => "",
        };
        *self.0.entry((kind, module.to_owned())).or_default() += 1;
    }

    /// Whether some operations are not recorded.
    pub fn is_open(&self) -> bool {
        self.0.keys().any(|(k, _)| !k.is_recorded())
    }

    /// Whether the seed decides everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a replay needs a recording. Environment variables are set when it begins.
    pub fn needs_events(&self) -> bool {
        self.0.keys().any(|(k, _)| *k != Variable)
    }

    /// Whether environment variables were read.
    pub fn looks_at_variables(&self) -> bool {
        self.0.keys().any(|(k, _)| *k == Variable)
    }

    /// Whether runs may meet files that others have written.
    pub fn writes_files(&self) -> bool {
        let all = self.0.keys();
        all.into_iter().any(|(k, _)| matches!(k, Written | Changed))
    }

    /// Describes the operations that are not recorded.
    pub fn describe_open(&self) -> Vec<String> {
        let open = self.0.iter().filter(|((k, _), _)| !k.is_recorded());
        Account(open.map(|(k, n)| (k.clone(), *n)).collect()).describe()
    }

    /// Describes each kind with its number.
    pub fn describe(&self) -> Vec<String> {
        let of = |((kind, module), n): (&(Kind, String), &u32)| {
            let (_, one, many, _) = kind.row();
            let mut t = format!("{n} {}", if *n == 1 { one } else { many });
            if !module.is_empty() {
                let _ = write!(t, " {}", module.trim_start_matches("Elixir."));
            }
            t
        };
        self.0.iter().map(of).collect()
    }

    /// Writes it as one word.
    pub fn text(&self) -> String {
        let of = |((kind, module), n): (&(Kind, String), &u32)| {
            let module: String = module.bytes().map(|b| format!("{b:02x}")).collect();
            format!("{}:{n}:{module}", *kind as usize)
        };
        let all: Vec<String> = self.0.iter().map(of).collect();
        match all.is_empty() {
            true => "-".into(),
            false => all.join(","),
        }
    }

    /// Reads a word written by [`Account::text`].
    pub fn parse(text: &str) -> Option<Account> {
        let mut a = Account::default();
        for part in text.split(',').filter(|p| *p != "-") {
            let mut w = part.split(':');
            let kind = KINDS.get(w.next()?.parse::<usize>().ok()?)?.0;
            let n = w.next()?.parse().ok()?;
            let byte = |b: &[u8]| u8::from_str_radix(std::str::from_utf8(b).ok()?, 16).ok();
            let module: Option<Vec<u8>> = w.next()?.as_bytes().chunks(2).map(byte).collect();
            a.0.insert((kind, String::from_utf8(module?).ok()?), n);
        }
        Some(a)
    }
}

/// Returns the kind of a function in a library in C. None: its result follows from its arguments.
pub fn library(module: &str, function: &str) -> Option<Kind> {
    match module {
        "crypto" => {
            let draws = [
                "rand_",
                "strong_rand_range",
                "generate_key",
                "sign",
                "crypt_nif",
            ];
            let seeded = matches!(function, "strong_rand_bytes_nif" | "rand_bytes_nif");
            let has = draws.iter().any(|d| function.contains(d));
            (has && !seeded && !function.contains("info")).then_some(OpenSsl)
        }
        "asn1rt_nif" => None,
        _ => Some(Library),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_their_rows() {
        for (i, row) in KINDS.iter().enumerate() {
            assert_eq!(row.0 as usize, i);
        }
    }

    #[test]
    fn an_account_goes_there_and_back() {
        let mut a = Account::default();
        assert_eq!(Account::parse(&a.text()).as_ref(), Some(&a));
        a.count(Written, "x");
        a.count(Library, "Elixir.Some.Nif ä");
        a.count(Library, "Elixir.Some.Nif ä");
        assert_eq!(Account::parse(&a.text()).as_ref(), Some(&a));
        assert_eq!(
            a.describe(),
            ["1 write to files", "2 calls of C in Some.Nif ä"]
        );
        assert_eq!(Account::parse("99:1:"), None);
    }

    #[test]
    fn functions_that_draw() {
        for (function, draws) in [
            ("hash_nif", false),
            ("strong_rand_bytes_nif", false),
            ("strong_rand_range_nif", true),
            ("rand_uniform_nif", true),
            ("evp_generate_key_nif", true),
            ("pkey_sign_nif", true),
            ("pkey_crypt_nif", true),
            ("pkey_verify_nif", false),
        ] {
            let kind = library("crypto", function);
            assert_eq!(kind.is_some(), draws, "{function}");
        }
        assert_eq!(library("other", "hash_nif"), Some(Library));
    }
}
