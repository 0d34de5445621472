//! Visible operations: what they touch, and whether they change it. Two operations of two processes race if they touch the same and
//! one of them changes it.

use crate::code;
use crate::cx::Cx;
use purlin_native::hashing::Hashing;
use purlin_term::fun::Export;
use purlin_term::{Term, atom, hash};
use std::collections::HashMap;
use std::sync::OnceLock;

/// What an operation is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// `x0 ! x1`
    Send,
    /// The native of that row of [`NATIVES`], with its arguments in x.
    Native(usize),
    /// A receive that ends if no message has come yet, or not in time, is about to wait.
    Receive,
}

/// The thing that an operation touches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Touch {
    /// The row of [`NATIVES`], from 1; 0: a send; [`END`]: the process ends.
    pub native: u16,
    /// A table, a process, a name: as a number. 0: unknown.
    pub object: u64,
    /// The key within a table; 0: all of it.
    pub key: u64,
    pub changes: bool,
}

/// The environment, as a thing that operations touch: all of its variables.
const ENVIRONMENT: u64 = 0xE417;

/// See [`Touch::native`].
pub const END: u16 = u16::MAX;
/// The process has become ready.
pub const WAKES: u16 = u16::MAX - 1;
/// The process waits for a message for some time.
pub const RECEIVES: u16 = u16::MAX - 2;

impl Touch {
    /// The end of the process whose pid has that data.
    pub(super) fn end(pid_data: u32) -> Touch {
        Touch {
            native: END,
            object: Term::pid(pid_data).raw(),
            key: 0,
            changes: true,
        }
    }
    /// The process whose pid has that data has become ready.
    pub(super) fn wake(pid_data: u32) -> Touch {
        Touch {
            native: WAKES,
            ..Touch::end(pid_data)
        }
    }
    /// Whether two operations of different processes race.
    pub fn races(&self, other: &Touch) -> bool {
        self.object != 0
            && self.object == other.object
            && (self.changes || other.changes)
            && (self.key == 0 || other.key == 0 || self.key == other.key)
    }
}

/// The kinds of things that natives touch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The table that the first argument names, and the key that the second is.
    Key,
    /// The same; the second argument is an object, whose key is its first element, or a list of objects.
    Object,
    /// The whole table.
    Table,
    /// The process or name that the first argument is.
    Process,
    /// The name that the first argument is; of a process, what it is registered as.
    Name,
    /// What the first argument is by itself: a reference of atomics or counters, a key of persistent terms.
    Cell,
    /// The variable of the environment that the first argument names; without one, the environment.
    Variable,
    /// The file of the name, or the open one, that the first argument is.
    File,
    /// All names, all processes, all tables.
    All,
}

/// Whether an operation sends a message, to whom it touches.
pub(super) fn sends(native: u16) -> bool {
    matches!(native, 0..=2)
}

/// Whether an operation makes a process or a port, or sets a timer.
pub(super) fn makes(native: u16) -> bool {
    row(native).is_some_and(|(m, f, _)| {
        matches!(m, "erlang" | "erts_internal")
            && (f.starts_with("spawn") || matches!(f, "send_after" | "start_timer" | "open_port"))
    })
}

/// Whether an operation that changes things may also find that it has nothing to change, as who asks for a lock does.
pub(super) fn may_fail(native: u16) -> bool {
    let name = row(native).map(|(m, f, _)| (m, f));
    matches!(
        name,
        Some(("ets", "insert_new" | "take") | ("atomics", "compare_exchange" | "exchange"))
    )
}

/// Whether an operation sets a variable of the environment, or takes it away: the key that it touches.
pub(super) fn sets_variable(native: u16) -> bool {
    matches!(row(native), Some(("os", "putenv" | "unsetenv", _)))
}

/// Whether an operation sends a signal to a process that its touch does not name.
pub(super) fn signals_unnamed(native: u16) -> bool {
    let name = row(native).map(|(m, f, _)| (m, f));
    matches!(
        name,
        Some(("erlang", "demonitor" | "unalias") | ("ets", "give_away"))
    )
}

/// A native: module, function, arity, what it touches, whether it changes that.
struct Native(&'static str, &'static str, u32, Of, bool);

/// The natives by which a process sees or changes what others see.
const NATIVES: &[Native] = {
    use Of::*;
    &[
        Native("erlang", "send", 2, Process, true),
        Native("erlang", "send", 3, Process, true),
        Native("erlang", "exit", 2, Process, true),
        Native("erlang", "exit", 3, Process, true),
        Native("erlang", "link", 1, Process, true),
        Native("erlang", "link", 2, Process, true),
        Native("erlang", "unlink", 1, Process, true),
        Native("erlang", "monitor", 2, Process, false),
        Native("erlang", "monitor", 3, Process, false),
        Native("erlang", "demonitor", 1, Cell, false),
        Native("erlang", "demonitor", 2, Cell, false),
        Native("erlang", "is_process_alive", 1, Process, false),
        Native("erlang", "process_info", 1, Process, false),
        Native("erlang", "process_info", 2, Process, false),
        Native("erlang", "suspend_process", 2, Process, true),
        Native("erlang", "resume_process", 1, Process, true),
        Native("erlang", "group_leader", 2, Process, true),
        Native("erlang", "processes", 0, All, false),
        Native("erlang", "register", 2, Name, true),
        Native("erlang", "unregister", 1, Name, true),
        Native("erlang", "whereis", 1, Name, false),
        Native("erlang", "registered", 0, All, false),
        Native("erlang", "spawn", 1, All, false),
        Native("erlang", "spawn", 3, All, false),
        Native("erlang", "spawn_link", 1, All, false),
        Native("erlang", "spawn_link", 3, All, false),
        Native("erlang", "spawn_opt", 2, All, false),
        Native("erlang", "spawn_opt", 4, All, false),
        Native("erlang", "spawn_monitor", 1, All, false),
        Native("erlang", "spawn_monitor", 3, All, false),
        Native("erlang", "cancel_timer", 1, Cell, true),
        Native("erlang", "cancel_timer", 2, Cell, true),
        Native("erlang", "read_timer", 1, Cell, false),
        Native("erlang", "send_after", 3, All, false),
        Native("erlang", "start_timer", 3, All, false),
        Native("erlang", "process_flag", 2, All, false),
        Native("erlang", "yield", 0, All, false),
        Native("erlang", "unalias", 1, Cell, true),
        Native("persistent_term", "get", 1, Cell, false),
        Native("persistent_term", "get", 2, Cell, false),
        Native("persistent_term", "put", 2, Cell, true),
        Native("persistent_term", "erase", 1, Cell, true),
        Native("atomics", "get", 2, Cell, false),
        Native("atomics", "put", 3, Cell, true),
        Native("atomics", "add", 3, Cell, true),
        Native("atomics", "add_get", 3, Cell, true),
        Native("atomics", "exchange", 3, Cell, true),
        Native("atomics", "compare_exchange", 4, Cell, true),
        Native("erts_internal", "counters_get", 2, Cell, false),
        Native("erts_internal", "counters_add", 3, Cell, true),
        Native("erts_internal", "counters_put", 3, Cell, true),
        Native("ets", "new", 2, Table, true),
        Native("ets", "whereis", 1, Table, false),
        Native("ets", "info", 1, Table, false),
        Native("ets", "info", 2, Table, false),
        Native("ets", "delete", 1, Table, true),
        Native("ets", "internal_delete_all", 2, Table, true),
        Native("ets", "rename", 2, Table, true),
        Native("ets", "give_away", 3, Table, true),
        Native("ets", "setopts", 2, Table, true),
        Native("ets", "lookup", 2, Key, false),
        Native("ets", "lookup_element", 3, Key, false),
        Native("ets", "lookup_element", 4, Key, false),
        Native("ets", "member", 2, Key, false),
        Native("ets", "insert", 2, Object, true),
        Native("ets", "insert_new", 2, Object, true),
        Native("ets", "delete", 2, Key, true),
        Native("ets", "delete_object", 2, Object, true),
        Native("ets", "take", 2, Key, true),
        Native("ets", "update_counter", 3, Key, true),
        Native("ets", "update_counter", 4, Key, true),
        Native("ets", "update_element", 3, Key, true),
        Native("ets", "update_element", 4, Key, true),
        Native("ets", "first", 1, Table, false),
        Native("ets", "last", 1, Table, false),
        Native("ets", "next", 2, Table, false),
        Native("ets", "prev", 2, Table, false),
        Native("ets", "first_lookup", 1, Table, false),
        Native("ets", "last_lookup", 1, Table, false),
        Native("ets", "next_lookup", 2, Table, false),
        Native("ets", "prev_lookup", 2, Table, false),
        Native("ets", "slot", 2, Table, false),
        Native("ets", "match", 1, Table, false),
        Native("ets", "match", 2, Table, false),
        Native("ets", "match", 3, Table, false),
        Native("ets", "match_object", 1, Table, false),
        Native("ets", "match_object", 2, Table, false),
        Native("ets", "match_object", 3, Table, false),
        Native("ets", "select", 1, Table, false),
        Native("ets", "select", 2, Table, false),
        Native("ets", "select", 3, Table, false),
        Native("ets", "select_reverse", 2, Table, false),
        Native("ets", "select_reverse", 3, Table, false),
        Native("ets", "select_count", 2, Table, false),
        Native("ets", "internal_select_delete", 2, Table, true),
        Native("ets", "select_replace", 2, Table, true),
        Native("ets", "safe_fixtable", 2, Table, false),
        Native("prim_file", "open_nif", 2, File, true),
        Native("prim_file", "close_nif", 1, File, false),
        Native("prim_file", "read_nif", 2, File, false),
        Native("prim_file", "write_nif", 2, File, true),
        Native("prim_file", "pread_nif", 3, File, false),
        Native("prim_file", "pwrite_nif", 3, File, true),
        Native("prim_file", "truncate_nif", 1, File, true),
        Native("prim_file", "read_file_nif", 1, File, false),
        Native("prim_file", "read_info_nif", 2, File, false),
        Native("prim_file", "list_dir_nif", 1, File, false),
        Native("prim_file", "read_link_nif", 1, File, false),
        Native("prim_file", "make_dir_nif", 1, File, true),
        Native("prim_file", "del_file_nif", 1, File, true),
        Native("prim_file", "del_dir_nif", 1, File, true),
        Native("prim_file", "rename_nif", 2, File, true),
        Native("prim_file", "make_hard_link_nif", 2, File, true),
        Native("prim_file", "make_soft_link_nif", 2, File, true),
        Native("prim_file", "set_permissions_nif", 2, File, true),
        Native("prim_file", "set_time_nif", 4, File, true),
        Native("prim_file", "set_owner_nif", 3, File, true),
        Native("erlang", "open_port", 2, All, false),
        Native("erlang", "port_command", 2, Cell, true),
        Native("erlang", "port_command", 3, Cell, true),
        Native("erlang", "port_control", 3, Cell, true),
        Native("erlang", "port_close", 1, Cell, true),
        Native("prim_socket", "nif_send", 4, Cell, true),
        Native("prim_socket", "nif_recv", 4, Cell, true),
        Native("prim_socket", "nif_accept", 2, Cell, true),
        Native("prim_socket", "nif_connect", 3, Cell, true),
        Native("erlang", "delete_module", 1, Name, true),
        Native("erts_internal", "purge_module", 2, Name, true),
        Native("erlang", "finish_loading", 1, All, false),
        Native("erlang", "spawn_request", 5, All, false),
        Native("erlang", "alias", 1, All, false),
        Native("erlang", "process_flag", 3, Process, true),
        Native("erts_internal", "open_port", 2, All, false),
        Native("erts_internal", "port_command", 3, Cell, true),
        Native("erts_internal", "port_control", 3, Cell, true),
        Native("erts_internal", "port_close", 1, Cell, true),
        Native("erts_internal", "port_connect", 2, Cell, true),
        Native("erts_internal", "group_leader", 2, Process, true),
        Native("erts_internal", "group_leader", 3, Process, true),
        Native("erts_internal", "suspend_process", 2, Process, true),
        Native("erts_internal", "process_flag", 3, Process, true),
        Native("prim_file", "allocate_nif", 3, File, true),
        Native("prim_file", "ipread_s32bu_p32bu_nif", 3, File, false),
        Native("prim_file", "read_handle_info_nif", 1, File, false),
        Native("prim_socket", "nif_open", 2, All, false),
        Native("prim_socket", "nif_open", 4, All, false),
        Native("prim_socket", "nif_bind", 2, Cell, true),
        Native("prim_socket", "nif_bind", 3, Cell, true),
        Native("prim_socket", "nif_connect", 1, Cell, true),
        Native("prim_socket", "nif_listen", 2, Cell, true),
        Native("prim_socket", "nif_sendto", 5, Cell, true),
        Native("prim_socket", "nif_sendmsg", 5, Cell, true),
        Native("prim_socket", "nif_sendmmsg", 4, Cell, true),
        Native("prim_socket", "nif_sendv", 3, Cell, true),
        Native("prim_socket", "nif_sendfile", 5, Cell, true),
        Native("prim_socket", "nif_recvfrom", 4, Cell, true),
        Native("prim_socket", "nif_recvmsg", 5, Cell, true),
        Native("prim_socket", "nif_recvmmsg", 6, Cell, true),
        Native("prim_socket", "nif_close", 1, Cell, true),
        Native("prim_socket", "nif_shutdown", 2, Cell, true),
        Native("prim_net", "nif_getaddrinfo", 3, All, false),
        Native("prim_net", "nif_getnameinfo", 2, All, false),
        Native("prim_net", "nif_gethostname", 0, All, false),
        Native("prim_net", "nif_getifaddrs", 1, All, false),
        Native("erts_internal", "create_dist_channel", 3, All, true),
        Native("os", "getpid", 0, All, false),
        Native("os", "getenv", 1, Variable, false),
        Native("os", "env", 0, Variable, false),
        Native("os", "putenv", 2, Variable, true),
        Native("os", "unsetenv", 1, Variable, true),
    ]
};

/// The row of the native that an export leads to, if it is a visible one.
pub fn row_of(export: *const Export) -> Option<usize> {
    static ROWS: OnceLock<HashMap<usize, usize, Hashing>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        let of = |(i, n): (usize, &Native)| {
            let e = code::export(atom::intern(n.0), atom::intern(n.1), n.2);
            (e as *const Export as usize, i)
        };
        NATIVES.iter().enumerate().map(of).collect()
    });
    rows.get(&(export as usize)).copied()
}

/// The native that [`Touch::native`] names: module, function, arity.
pub(super) fn row(native: u16) -> Option<(&'static str, &'static str, u32)> {
    let n = NATIVES.get(usize::from(native).checked_sub(1)?)?;
    Some((n.0, n.1, n.2))
}

/// The receiver of a message, or whoever a term names, as a number.
fn pid_number(t: Term) -> u64 {
    if t.is_local_pid() {
        return t.raw();
    }
    if t.is_atom() {
        return crate::process::registry::whereis(t).map_or(t.raw(), |p| p.raw());
    }
    match t.as_ref_view() {
        Some(purlin_term::layout::RefView::Local { pid: Some(p), .. }) => p.raw(),
        _ => 0,
    }
}

fn number(t: Term) -> u64 {
    match t.is_immed() {
        true => t.raw(),
        false => hash::salted(t, 0x5EED) | 1,
    }
}

fn key_of(t: Term) -> u64 {
    match t.as_tuple() {
        Some([key, ..]) => number(*key),
        _ => 0,
    }
}

impl What {
    /// The name of the native, or `!`; and its arity.
    pub fn name(&self) -> (&'static str, &'static str, usize) {
        match self {
            What::Send => ("", "!", 2),
            What::Receive => ("", "receive", 0),
            What::Native(i) => {
                let n = &NATIVES[*i];
                (n.0, n.1, n.2 as usize)
            }
        }
    }
    /// As [`Touch::native`].
    pub(super) fn row(&self) -> u16 {
        match self {
            What::Native(i) => *i as u16 + 1,
            What::Send => 0,
            What::Receive => RECEIVES,
        }
    }
    /// Whether it sends x1 to x0.
    pub fn sends(&self) -> bool {
        match self {
            What::Send => true,
            What::Native(i) => sends(*i as u16 + 1),
            What::Receive => false,
        }
    }
    /// What it touches, by its arguments in x.
    pub(super) fn touch(&self, cx: &mut Cx) -> Touch {
        let i = match *self {
            What::Native(i) => i,
            What::Send => {
                return Touch {
                    native: 0,
                    object: pid_number(cx.x[0]),
                    key: 0,
                    changes: true,
                };
            }
            What::Receive => {
                return Touch {
                    native: RECEIVES,
                    ..Touch::end(cx.process().pid().pid_data())
                };
            }
        };
        let n = &NATIVES[i];
        let x = &cx.x;
        let arg = |i: usize| x[i];
        let (object, key) = match n.3 {
            Of::Key => (number(arg(0)), number(arg(1))),
            Of::Object => (number(arg(0)), key_of(arg(1))),
            Of::Table => (number(arg(0)), 0),
            Of::Process if n.1 == "monitor" => (pid_number(arg(1)), 0),
            Of::Process => (pid_number(arg(0)), 0),
            Of::Name => (number(arg(0)), 0),
            // A file has a number of its own, whatever its name means elsewhere.
            Of::File => (number(arg(0)) ^ 0xF11E, 0),
            Of::Cell => (number(arg(0)), 0),
            Of::Variable if n.2 == 0 => (ENVIRONMENT, 0),
            Of::Variable => (ENVIRONMENT, number(arg(0))),
            Of::All => (0, 0),
        };
        Touch {
            native: i as u16 + 1,
            object,
            key,
            changes: n.4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_send() {
        let all: Vec<_> = (1..=NATIVES.len() as u16).filter(|n| sends(*n)).collect();
        assert!(
            all.iter()
                .all(|n| matches!(row(*n), Some(("erlang", "send", _))))
        );
        let named = NATIVES.iter().filter(|n| (n.0, n.1) == ("erlang", "send"));
        assert_eq!(all.len(), named.count());
    }
}
