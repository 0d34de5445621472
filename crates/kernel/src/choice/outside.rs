//! What the program does that no seed decides: counted by kind, and told at the end of a search. Most kinds are recorded: see [`record`](super::record).
//!
//! Counted is what the program's own code does, in its own processes, and what servers of libraries do for it: a process that code of the
//! program has sent something acts for the program until it waits again, and so do those whom it sends something meanwhile. Code
//! that is compiled or loaded is not the program's doing.

use super::ops;
use crate::cx::Cx;
use purlin_native::bif::Outside;
use purlin_term::{Term, atom};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A kind of what no seed decides.
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

/// All kinds: one of it, and many, as people are told; whether what is done lasts beyond the run, or is shared with runs that are forked
/// from it.
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
    /// Whether what came of it stands in the file of a schedule.
    fn is_recorded(self) -> bool {
        !matches!(self, Port | Node | OpenSsl | Library)
    }
    /// Whether runs may meet what others have done so.
    pub fn lasts(self) -> bool {
        self.row().3
    }
}

/// How often what was done. Libraries in C are told apart by the module that calls them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account(BTreeMap<(Kind, String), u32>);

impl Account {
    /// It was done once more.
    pub(super) fn count(&mut self, kind: Kind, module: &str) {
        let module = match kind {
            Library => module,
            _ => "",
        };
        *self.0.entry((kind, module.to_owned())).or_default() += 1;
    }
    /// Whether there is anything that is not recorded either.
    pub fn is_open(&self) -> bool {
        self.0.keys().any(|(k, _)| !k.is_recorded())
    }
    /// Whether the seed decides all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Whether a replay needs what came from outside, in order. Variables of the environment are set when it begins.
    pub fn needs_events(&self) -> bool {
        self.0.keys().any(|(k, _)| *k != Variable)
    }
    /// Whether it has looked into the environment.
    pub fn looks_at_variables(&self) -> bool {
        self.0.keys().any(|(k, _)| *k == Variable)
    }
    /// Whether runs may meet files that others have written.
    pub fn writes_files(&self) -> bool {
        let all = self.0.keys();
        all.into_iter().any(|(k, _)| matches!(k, Written | Changed))
    }
    /// Those kinds that are not recorded, with their numbers.
    pub fn told_open(&self) -> Vec<String> {
        let open = self.0.iter().filter(|((k, _), _)| !k.is_recorded());
        Account(open.map(|(k, n)| (k.clone(), *n)).collect()).told()
    }
    /// Each kind with its number, as people are told it.
    pub fn told(&self) -> Vec<String> {
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
    /// As one word.
    pub(super) fn text(&self) -> String {
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
    /// That of such a word.
    pub(super) fn of(text: &str) -> Option<Account> {
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

/// The name of a driver, or of another thing that is to be opened as a port.
fn port(what: Term) -> Kind {
    let Some([how, rest @ ..]) = what.as_tuple() else {
        return Port;
    };
    match (how.is_atom().then(|| atom::name(*how)), rest) {
        (Some("spawn_executable"), _) => Program,
        (Some("spawn" | "spawn_driver"), [name, ..]) => {
            let mut text = String::new();
            let mut at = *name;
            while let Some((head, tail)) = at.as_cons() {
                let c = head.as_small().and_then(|n| u8::try_from(n).ok());
                text.push(c.map_or('?', char::from));
                at = tail;
            }
            let first = text.split(' ').next().unwrap_or("");
            match first {
                "tcp_inet" | "udp_inet" | "sctp_inet" => Socket,
                _ if atom::name(*how) == "spawn" && !is_driver(first) => Program,
                _ => Port,
            }
        }
        _ => Port,
    }
}

/// Drivers that `spawn` starts, too.
fn is_driver(name: &str) -> bool {
    matches!(name, "ram_file_drv" | "tty_sl" | "forker_driver")
}

/// The kind of the native that [`ops::Touch::native`] names, and that is about to be called.
pub(super) fn kind(cx: &Cx, native: u16) -> Option<Kind> {
    Some(match ops::native(native)?.traits.outside? {
        Outside::Opened => Opened,
        Outside::Read => Read,
        Outside::Written => Written,
        Outside::Changed => Changed,
        Outside::Port => port(cx.x[0]),
        Outside::Socket => Socket,
        Outside::OnSocket => OnSocket,
        Outside::Node => Node,
        Outside::Number => Number,
        Outside::Variable => Variable,
    })
}

/// Of which kind a function of a library in C is. None: what it gives follows from its arguments.
pub(super) fn library(module: &str, function: &str) -> Option<Kind> {
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
        assert_eq!(Account::of(&a.text()).as_ref(), Some(&a));
        a.count(Written, "x");
        a.count(Library, "Elixir.Some.Nif ä");
        a.count(Library, "Elixir.Some.Nif ä");
        assert_eq!(Account::of(&a.text()).as_ref(), Some(&a));
        assert_eq!(a.told(), ["1 write to files", "2 calls of C in Some.Nif ä"]);
        assert_eq!(Account::of("99:1:"), None);
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
