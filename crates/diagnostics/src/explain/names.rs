//! Functions and lines as people write them, and which of them are the program's own.

use crate::accounts::Frame;
use crate::json::Json;
use crate::process::registry;
use purlin_term::print::{Style, format_atom, format_term};
use purlin_term::{Term, atom};

/// Modules that others call to have something done: the place that did it is the first one outside of these.
const LIBRARY: &[&str] = &[
    "elixir_code_server",
    "Elixir.System",
    "Elixir.IO",
    "Elixir.Code",
    "standard_error",
    "kernel",
    "error_handler",
    "erl_signal_handler",
    "beam_lib",
    "application_controller",
    "erl_prim_loader",
    "erl_init",
    "application_master",
    "code",
    "code_server",
    "dets",
    "erl_eval",
    "erlang",
    "erpc",
    "error_logger",
    "erts_internal",
    "ets",
    "file",
    "file_io_server",
    "gen",
    "gen_event",
    "gen_fsm",
    "gen_server",
    "gen_statem",
    "gen_sctp",
    "gen_tcp",
    "gen_tcp_socket",
    "gen_udp",
    "group",
    "inet",
    "inet6_tcp",
    "inet6_udp",
    "inet_db",
    "inet_tcp",
    "inet_udp",
    "init",
    "io",
    "io_lib",
    "lists",
    "logger",
    "maps",
    "local_tcp",
    "local_udp",
    "pool",
    "prim_buffer",
    "prim_file",
    "prim_inet",
    "prim_socket",
    "proc_lib",
    "queue",
    "raw_file_io",
    "raw_file_io_compressed",
    "raw_file_io_deflate",
    "raw_file_io_delayed",
    "raw_file_io_inflate",
    "raw_file_io_list",
    "rpc",
    "socket",
    "supervisor",
    "sys",
    "timer",
    "user",
    "user_drv",
    "Elixir.Agent",
    "Elixir.Agent.Server",
    "Elixir.DynamicSupervisor",
    "Elixir.Enum",
    "Elixir.File",
    "Elixir.File.Stream",
    "Elixir.GenServer",
    "Elixir.Kernel",
    "Elixir.Kernel.SpecialForms",
    "Elixir.Keyword",
    "Elixir.Map",
    "Elixir.Port",
    "Elixir.Process",
    "Elixir.Registry",
    "Elixir.Stream",
    "Elixir.Stream.Reducers",
    "Elixir.Supervisor",
    "Elixir.Task",
    "Elixir.Task.Supervised",
    "Elixir.Task.Supervisor",
];

/// `module:function/arity`, or `Module.function/arity` for a module of Elixir.
pub fn function(module: Term, function: Term, arity: u32) -> String {
    let name = format_atom(function, Style::Write);
    let text = atom::name(module);
    match text.strip_prefix("Elixir.") {
        Some(short) => {
            let name = atom::name(function);
            format!("{short}.{name}/{arity}")
        }
        None => format!("{}:{name}/{arity}", format_atom(module, Style::Write)),
    }
}

/// The frame that people look for, in a list with the innermost first.
pub fn site(frames: &[Frame]) -> Option<&Frame> {
    frames.iter().find(|f| is_own(f)).or(frames.first())
}

/// Whether a frame is of the program, or of a library that isn't known.
pub fn is_own(f: &Frame) -> bool {
    !LIBRARY.contains(&atom::name(f.module))
}

pub fn frame(f: &Frame) -> Json {
    place(f.module, f.function, f.arity, f.line.as_ref())
}

pub fn place(module: Term, name: Term, arity: u32, line: Option<&(String, u32)>) -> Json {
    Json::object([
        ("function", function(module, name, arity).into()),
        ("file", line.map(|l| l.0.clone()).into()),
        ("line", line.map(|l| u64::from(l.1)).into()),
    ])
}

/// Characters of a file's name that are told.
const FILE_CHARS: usize = 4096;

/// The file that a module was loaded from, as the code server's table has it: None, if it came from no file, or the table isn't as
/// it is in the releases that are known.
pub fn file(module: Term) -> Option<String> {
    let server = registry::whereis(atom::intern("code_server"))?;
    // The table is called after its module since OTP 26.
    let tables = [atom::intern("code"), atom::intern("code_server")];
    let all = crate::ets::all();
    let mut table = all
        .iter()
        .filter(|t| t.owner() == server && tables.contains(&t.name()));
    crate::ets::look(table.next()?, module, |object| {
        let mut text = String::new();
        for c in object.as_tuple()?.get(1)?.list_iter().take(FILE_CHARS) {
            text.push(char::from_u32(u32::try_from(c.as_small()?).ok()?)?);
        }
        // The code path may have it from the directory that the emulator runs in.
        match text.starts_with('/') {
            true => Some(text),
            false => std::env::current_dir()
                .ok()?
                .join(text)
                .to_str()
                .map(str::to_string),
        }
    })?
}

/// A pid as the shell shows it.
pub fn pid(t: Term) -> String {
    format_term(t, Style::Write, 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_is_the_first_frame_outside_of_libraries() {
        let frame = |m: &str| Frame {
            module: atom::intern(m),
            function: atom::intern("f"),
            arity: 1,
            line: None,
        };
        let name = |v: &[&str]| {
            let frames: Vec<Frame> = v.iter().map(|m| frame(m)).collect();
            site(&frames).map(|f| atom::name(f.module).to_string())
        };
        assert_eq!(
            name(&["erlang", "proc_lib", "mine", "Elixir.Task"]).as_deref(),
            Some("mine")
        );
        assert_eq!(name(&["erlang", "lists"]).as_deref(), Some("erlang"));
        assert_eq!(name(&[]), None);
        let a = atom::intern;
        assert_eq!(function(a("Elixir.Foo.Bar"), a("a?"), 2), "Foo.Bar.a?/2");
        assert_eq!(function(a("m"), a("-f/1-fun-0-"), 2), "m:'-f/1-fun-0-'/2");
    }
}
