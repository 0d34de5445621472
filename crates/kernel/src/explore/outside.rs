//! Finds the kind of an operation whose result no seed decides: see [`purlin_explore::account`].

use crate::cx::Cx;
use purlin_explore::account::Kind::{self, *};
use purlin_native::bif::{Bif, Outside};
use purlin_term::{Term, atom};

/// Returns the kind of what `open_port` is asked to open.
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

/// Whether `spawn` of that name starts a driver.
fn is_driver(name: &str) -> bool {
    matches!(name, "ram_file_drv" | "tty_sl" | "forker_driver")
}

/// Returns the kind of the native that is about to be called.
pub(super) fn kind(cx: &Cx, native: &Bif) -> Option<Kind> {
    Some(match native.traits.outside? {
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
