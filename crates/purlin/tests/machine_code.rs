//! Machine code on systems that refuse part of what it needs, and when it is turned off.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::os::unix::process::CommandExt;
use std::process::Command;

/// A request that the system refuses.
#[derive(Clone, Copy, PartialEq)]
enum Refuses {
    Nothing,
    /// Files in memory.
    Files,
    /// Files in memory, and execution of written memory.
    All,
}

const ASKS: &str = "io:format(\"~p ~p~n\", [erlang:system_info(emu_flavor), \
    lists:sum([X * X || X <- lists:seq(1, 100000)])]), halt().";
const SUM: &str = "333338333350000";

/// The emulator's description of itself with those flags, and its standard error; `None` if there
/// is no OTP.
fn says(flags: &[&str], refuses: Refuses) -> Option<(String, String)> {
    let mut c = Command::new(env!("CARGO_BIN_EXE_purlin"));
    c.arg("erl").args(flags).args(["-noshell", "-eval", ASKS]);
    c.env_remove("PURLIN_JIT");
    // SAFETY: only system calls between fork and exec.
    unsafe {
        c.pre_exec(move || {
            let r = match refuses {
                Refuses::Nothing => 0,
                Refuses::Files => filter(false),
                Refuses::All => filter(true),
            };
            match r {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    if Command::new("erl").arg("-version").output().is_err() {
        return None;
    }
    let out = c.output().expect("purlin starts");
    let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
    Some((text(out.stdout), text(out.stderr)))
}

/// Makes files in memory, and with `execution` executable memory, fail with `EPERM` for this
/// process and its children.
fn filter(execution: bool) -> i32 {
    const LOAD: u16 = 0x20;
    const EQUAL: u16 = 0x15;
    const SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7FFF_0000;
    const REFUSE: u32 = 0x0005_0000 | libc::EPERM as u32;
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let memfd = libc::SYS_memfd_create as u32;
    let mprotect = if execution {
        libc::SYS_mprotect as u32
    } else {
        u32::MAX
    };
    let mut program = [
        // The number of the system call.
        op(LOAD, 0, 0, 0),
        op(EQUAL, 4, 0, memfd),
        op(EQUAL, 0, 2, mprotect),
        // The lower half of its third argument.
        op(LOAD, 0, 0, 32),
        op(SET, 1, 0, libc::PROT_EXEC as u32),
        op(RETURN, 0, 0, ALLOW),
        op(RETURN, 0, 0, REFUSE),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: plain system calls; the program outlives them.
    unsafe {
        match libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) {
            0 => libc::prctl(libc::PR_SET_SECCOMP, 2, &raw const program),
            r => r,
        }
    }
}

fn check(flags: &[&str], refuses: Refuses, flavor: &str, error: &str) {
    let Some((out, err)) = says(flags, refuses) else {
        println!("skipped: no erl");
        return;
    };
    assert_eq!(out, format!("{flavor} {SUM}\n"), "{flags:?}: {err}");
    match error {
        "" => assert_eq!(err, "", "{flags:?}"),
        part => {
            assert!(err.contains(part), "{flags:?}: {err}");
            assert_eq!(err.lines().count(), 1, "{err}");
        }
    }
}

#[test]
fn it_is_on_unless_turned_off() {
    check(&[], Refuses::Nothing, "jit", "");
    check(&["+Fjit", "always"], Refuses::Nothing, "jit", "");
    check(&["+Fjit", "off"], Refuses::Nothing, "emu", "");
    check(&["-emu_flavor", "emu"], Refuses::Nothing, "emu", "");
    check(&["-emu_flavor", "jit"], Refuses::Nothing, "jit", "");
    // Some functions have none once the limit is reached.
    check(
        &["+Fjitmem", "1", "+Fjit", "always"],
        Refuses::Nothing,
        "jit",
        "",
    );
}

#[test]
fn without_files_in_memory_it_is_mapped_once() {
    check(&[], Refuses::Files, "jit", "");
    check(&["+Fjit", "always"], Refuses::Files, "jit", "");
}

#[test]
fn where_all_is_refused_a_line_says_so() {
    check(&[], Refuses::All, "emu", "all is interpreted");
    // If machine code is off, there is nothing to report.
    check(&["+Fjit", "off"], Refuses::All, "emu", "");
}

/// An invalid value of the environment variable is reported, as one of the flag is.
#[test]
fn what_the_environment_says_is_looked_at() {
    for (word, right) in [
        ("off", true),
        ("", true),
        ("chaos", true),
        ("chaos:7", true),
        ("bogus", false),
        ("chaos:x", false),
        ("chaotic", false),
    ] {
        let mut c = Command::new(env!("CARGO_BIN_EXE_purlin"));
        c.args(["erl", "-noshell", "-eval", "halt(7)."]);
        let out = c.env("PURLIN_JIT", word).output().expect("purlin starts");
        let said = String::from_utf8_lossy(&out.stderr);
        if said.contains("no Erlang/OTP") {
            return;
        }
        assert_eq!(
            out.status.code(),
            Some(if right { 7 } else { 1 }),
            "{word}: {said}"
        );
        assert_eq!(said.contains("bad PURLIN_JIT"), !right, "{word}: {said}");
    }
}
