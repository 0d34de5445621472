//! The menu that Ctrl-C opens on the terminal: end the emulator, inspect it, or continue.
//!
//! While the menu is open, ports neither read from nor write to the terminal, and since OTP 26 the
//! terminal driver does not read either. A second Ctrl-C ends the emulator.
//!
//! # Orderings
//! `OPEN` says whether the menu is open, and protects no other memory. Only its exchange has to be
//! atomic.

use purlin_ets::{self as ets, WriteConcurrency};
use purlin_io::os::descriptor;
use purlin_io::port;
use purlin_io::terminal::{prim_tty, tty};
use purlin_kernel::process::{self, registry};
use purlin_kernel::{code, halt, signal};
use purlin_runtime::natives::process::process_info;
use purlin_runtime::natives::system::memory;
use purlin_term::frag::Fragment;
use purlin_term::print::{Style, format_atom, format_term};
use purlin_term::{Term, am, atom, node};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const MENU: &str = "\nBREAK: (a)bort (A)bort with dump (c)ontinue (p)roc info (i)nfo\n       (l)oaded (v)ersion (k)ill (D)b-tables (d)istribution\n";

/// Maximum number of characters shown of a term.
const TERM_CHARS: usize = 10_000;

static OPEN: AtomicBool = AtomicBool::new(false);

/// Handles Ctrl-C. Called on the thread that handles signals.
pub(crate) fn requested() {
    if OPEN.swap(true, Ordering::SeqCst) {
        halt::halt(0);
    }
    let t = std::thread::Builder::new().name("break".into()).spawn(|| {
        port::hold_terminal(|| {
            prim_tty::hold(true);
            tty::set_outer_modes();
            menu();
            tty::set_shell_modes();
            prim_tty::hold(false);
        });
        OPEN.store(false, Ordering::SeqCst);
    });
    if t.is_err() {
        halt::halt(0);
    }
}

/// The first byte of the next line typed; `None` at the end of input.
fn key() -> Option<u8> {
    let _ = std::io::stdout().flush();
    let mut buf = [0; 64];
    descriptor::poll_one(0, false, -1);
    match descriptor::read(0, &mut buf) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(buf[0]),
    }
}

/// Writes to standard output. Errors are ignored: if nobody reads it, nothing can be done.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn menu() {
    say(MENU);
    loop {
        match key() {
            None | Some(b'a' | b'q' | b'*') => halt::halt(0),
            Some(b'A') => halt::fatal("Crash dump requested by user"),
            Some(b'c' | b'm') => break,
            Some(b'p') => {
                processes();
                ports();
                break;
            }
            Some(b'o') => {
                ports();
                break;
            }
            Some(b'i') => {
                info();
                break;
            }
            Some(b'l') => {
                loaded();
                break;
            }
            Some(b'v') => {
                let version = purlin_kernel::options::try_current()
                    .map_or("", |o| o.otp.erts_version.as_str());
                say(&format!("Erlang (BEAM) emulator version {version}\n"));
                break;
            }
            Some(b'd') => {
                distribution();
                break;
            }
            Some(b'D') => {
                tables();
                break;
            }
            Some(b'k') => {
                killer();
                break;
            }
            Some(b'\n') => {}
            Some(c) => say(&format!(
                "Invalid option '{}'. Please enter one of the following:\n{}",
                char::from(c),
                MENU.trim_start()
            )),
        }
    }
    let _ = std::io::stdout().flush();
}

fn show(t: Term) -> String {
    format_term(t, Style::Display, TERM_CHARS)
}

/// The lines shown for a process, named as in a crash dump.
const SHOWN: &[(&str, &str)] = &[
    ("status", "State"),
    ("registered_name", "Name"),
    ("initial_call", "Spawned as"),
    ("current_function", "Current call"),
    ("parent", "Spawned by"),
    ("message_queue_len", "Message queue length"),
    ("messages", "Message queue"),
    ("links", "Link list"),
    ("dictionary", "Dictionary"),
    ("reductions", "Reductions"),
    ("total_heap_size", "Stack+heap"),
    ("memory", "Memory"),
];

/// Time limit for a process to describe itself. A process in a long native does not answer.
const ANSWER_TIME: Duration = Duration::from_millis(200);

/// A process's description of itself.
fn process_text(pid: Term) -> String {
    let (tell, told) = mpsc::channel();
    signal::send::run_in(
        pid,
        Box::new(move |cx| {
            let mut s = String::new();
            if let Some(cx) = cx {
                for &(item, title) in SHOWN {
                    let mut f = Fragment::new();
                    let Some(v) = process_info::item(cx, &mut f, item) else {
                        continue;
                    };
                    // Empty lists are not shown.
                    if !v.is_nil() {
                        let v = match v.as_tuple() {
                            Some(&[m, f, a]) if item != "messages" => {
                                format!("{}:{}/{}", show(m), show(f), show(a))
                            }
                            _ => show(v),
                        };
                        s.push_str(&format!("{title}: {v}\n"));
                    }
                    // SAFETY: nothing in it is used any more.
                    unsafe { f.destroy() };
                }
            }
            let _ = tell.send(s);
        }),
    );
    let text = told
        .recv_timeout(ANSWER_TIME)
        .unwrap_or_else(|_| "State: Running\n".into());
    format!("=proc:{}\n{text}", show(pid))
}

fn pids() -> Vec<Term> {
    let mut v = process::table().pids();
    v.sort_by_key(|p| p.pid_data());
    v
}

fn processes() {
    for p in pids() {
        say(&process_text(p));
    }
}

fn list(v: &[Term]) -> String {
    v.iter().map(|&t| show(t)).collect::<Vec<_>>().join(", ")
}

fn ports() {
    for id in port::all() {
        let Some(p) = port::find(id) else { continue };
        say(&format!("=port:{}\n", show(id)));
        // Ports that hold the terminal while the menu is open are not asked.
        let Some(i) = port::try_info(&p) else {
            say("State: busy\n");
            continue;
        };
        say(&format!(
            "Slot: {}\nConnected: {}\n",
            id.pid_data(),
            show(i.connected)
        ));
        if !i.links.is_empty() {
            say(&format!("Links: {}\n", list(&i.links)));
        }
        if let Some(n) = i.registered {
            say(&format!("Registered as: {}\n", show(n)));
        }
        if !i.monitored_by.is_empty() {
            say(&format!("Monitors: {}\n", list(&i.monitored_by)));
        }
        say(&format!(
            "Input: {}\nOutput: {}\nQueue: {}\n",
            i.bytes_in, i.bytes_out, i.queued
        ));
        if i.os_pid.is_some() {
            let name = String::from_utf8_lossy(&p.name);
            say(&format!("Port controls external process: {name}\n"));
        }
    }
}

/// Prints the sizes of memory that are known, under stock's names.
fn info() {
    let u = memory::usage();
    let lines = [
        ("total", u.total),
        ("processes", u.processes),
        ("processes_used", u.processes_used),
        ("system", u.system()),
        ("atom", u.atom),
        ("atom_used", u.atom),
        ("binary", u.binary),
        ("code", u.code),
        ("ets", u.ets),
    ];
    say("=memory\n");
    for (name, bytes) in lines {
        say(&format!("{name}: {bytes}\n"));
    }
    say(&format!(
        "=index_table:atom_tab\nlimit: {}\nentries: {}\n",
        atom::limit(),
        atom::count()
    ));
    say(&format!(
        "=index_table:module_code\nentries: {}\n",
        code::loaded().len()
    ));
    say(&format!(
        "=hash_table:process_reg\nobjs: {}\n",
        registry::names().len()
    ));
}

fn tables() {
    for t in ets::all() {
        let mut f = Fragment::new();
        let id = ets::id(&t, &mut f).map_or_else(String::new, show);
        // SAFETY: nothing in it is used any more.
        unsafe { f.destroy() };
        let (objects, words) = t.size_and_words();
        let o = &t.options;
        let (kind, protection) = (o.kind.name(), t.protection().name());
        say(&format!(
            "=ets:{}\nTable: {id}\nName: {}\n",
            show(t.owner()),
            show(t.name())
        ));
        say(&format!(
            "Objects: {objects}\nWords: {words}\nType: {kind}\nProtection: {protection}\n"
        ));
        say(&format!(
            "Compressed: {}\nWrite Concurrency: {}\nRead Concurrency: {}\n",
            o.compressed,
            o.write_concurrency != WriteConcurrency::No,
            o.read_concurrency
        ));
    }
}

fn loaded() {
    let mut v: Vec<(Term, usize, Option<usize>)> = code::loaded()
        .into_iter()
        .map(|m| {
            code::with_versions(m, |v| {
                let now = v.current.as_ref().map_or(0, |m| m.bytes());
                (m, now, v.old.as_ref().map(|m| m.bytes()))
            })
        })
        .collect();
    v.sort_by(|a, b| atom::cmp(a.0, b.0));
    let (current, old) = v
        .iter()
        .fold((0, 0), |(c, o), m| (c + m.1, o + m.2.unwrap_or(0)));
    say(&format!("Current code: {current}\nOld code: {old}\n"));
    for (m, now, old) in v {
        let old = old.map_or_else(String::new, |n| format!(" ({n} old)"));
        say(&format!("{} {now}{old}\n", format_atom(m, Style::Display)));
    }
}

fn distribution() {
    let me = node::this_name();
    say(&format!("=node:{}\n", format_atom(me, Style::Display)));
    if me == am::NONODE_AT_NOHOST {
        say("=no_distribution\n");
    }
}

/// Shows processes one by one, newest first, and kills those that the user selects.
fn killer() {
    say("\n\nProcess Information\n\n--------------------------------------------------\n");
    for p in pids().into_iter().rev() {
        say(&process_text(p));
        say("(k)ill (n)ext (r)eturn:\n");
        match key() {
            None => halt::halt(0),
            Some(b'k') => signal::send::exit_signal(Term::pid(0), p, am::KILL),
            Some(b'n') => {}
            Some(_) => return,
        }
    }
}
