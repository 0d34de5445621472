//! `erl`: parses the command line as stock does, and starts the runtime in this process.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use purlin_runtime::io::embedded::ROOT;
use purlin_runtime::options::erlexec::Environment;
use purlin_runtime::options::{CpuCounts, EmulatorOptions, OtpInstall, Request, parse_erl};
use purlin_runtime::schedules::WORLD;

use super::become_program;
use crate::context::Context;
use crate::failure::{Failure, cannot_print, no_own_executable, say};
use crate::linker::Linker;
use crate::{find_otp, shims};

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    start(&context.otp()?, Environment::of_process(), args)
}

/// Runs `erl` with these arguments. Returns only if no emulator is to be started.
pub fn start(
    otp: &OtpInstall,
    mut environment: Environment,
    args: &[OsString],
) -> Result<u8, Failure> {
    let linker = Linker::of(otp).map(|linker| (linker, environment.clone()));
    environment.set_launcher_variables(otp, "erl".as_ref());
    let argv: Vec<OsString> = std::iter::once("erl".into())
        .chain(args.iter().cloned())
        .collect();
    let request = parse_erl(&argv, environment, otp, CpuCounts::detect())
        .map_err(|error| Failure::of_tool(error.exit_code, error.message))?;
    match request {
        Request::Start { options, notices } => {
            if let Some((linker, environment)) = linker {
                return Err(under(linker, otp, args, environment));
            }
            for notice in notices {
                say(notice);
            }
            start_emulator(*options)
        }
        Request::Print(text) => {
            let mut out = std::io::stdout().lock();
            out.write_all(&text)
                .and_then(|()| out.flush())
                .map_err(|error| cannot_print(&error))?;
            Ok(0)
        }
        Request::Version(text) => {
            // In stock, only this line ends with a carriage return.
            say(format!("{text}\r"));
            Ok(0)
        }
        Request::Exec { argv, environment } => Err(become_program(
            Path::new(&argv[0]),
            &argv[1..],
            &environment,
        )),
    }
}

/// Executes this same command under the root's own dynamic linker.
fn under(
    linker: Linker,
    otp: &OtpInstall,
    args: &[OsString],
    mut environment: Environment,
) -> Failure {
    environment.set(find_otp::VARIABLE, otp.root.as_os_str());
    match linker.line("erl".as_ref(), args) {
        Ok((program, line)) => become_program(&program, &line, &environment.0),
        Err(error) => no_own_executable(&error),
    }
}

/// Sets the name of the process in tools that list processes to `purlin`, however it was started
/// (`erl`, `erlexec`, `purlin`). It is not `beam.smp`, so that the two can be distinguished.
fn be_called_purlin() {
    // SAFETY: a terminated string; the call has no other effect.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"purlin".as_ptr());
    }
}

fn start_emulator(mut options: EmulatorOptions) -> ! {
    be_called_purlin();
    // An executable with a program in it needs no folder, and starts no other emulator.
    if options.otp.root != Path::new(ROOT) {
        keep_shims_first(&mut options);
    }
    if options.announce {
        let program = Path::new(&options.bindir).join("beam.smp");
        let mut text = b"Executing: ".to_vec();
        text.extend_from_slice(program.as_os_str().as_bytes());
        for arg in &options.emu_args {
            text.push(b' ');
            text.extend_from_slice(arg.as_bytes());
        }
        text.extend_from_slice(b"\n\n");
        let _ = std::io::stdout().write_all(&text);
    }
    for (name, value) in &options.environment {
        if std::env::var_os(name).as_ref() != Some(value) {
            // SAFETY: no other thread has been started yet.
            unsafe { std::env::set_var(name, value) };
        }
    }
    // A world has a name server of its own, and its nodes are the processes that it has started.
    let in_world = std::env::var_os(WORLD).is_some();
    if in_world && options.detached {
        say("purlin schedules --nodes: -detached is not modelled");
        std::process::exit(1);
    }
    if let Some(command) = options.start_epmd.as_ref().filter(|_| !in_world) {
        let status = std::process::Command::new("/bin/sh")
            .arg("-c")
            .arg(command)
            .status();
        if let Err(error) = status {
            say(format_args!(
                "Error spawning {} ({error})",
                command.to_string_lossy()
            ));
            std::process::exit(1);
        }
    }
    if options.detached {
        detach();
    }
    purlin_runtime::start(options, purlin_diagnostics::ALL)
}

/// Puts Purlin's links before the installation's own programs, which the launcher has put first, so
/// that nodes started from this one also run on Purlin.
fn keep_shims_first(options: &mut EmulatorOptions) {
    let Ok(shims) = shims::directory() else {
        return;
    };
    let root = options.otp.root.clone().into_os_string();
    let mut environment = Environment(std::mem::take(&mut options.environment));
    let path = shims::first_on_path(&shims, environment.get("PATH"));
    environment.set("PATH", path);
    environment.set(shims::VARIABLE, shims);
    environment.set(find_otp::VARIABLE, root);
    options.environment = environment.0;
}

/// Detaches from the terminal. The grandchild continues in a session without one, and the others
/// exit with status 0.
fn detach() {
    // SAFETY: there is one thread, so the child of a fork is a whole process. The descriptors that
    // are replaced are the standard ones, which nothing owns.
    unsafe {
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        libc::setsid();
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..=2 {
            libc::dup2(null, standard);
        }
        if null > 2 {
            libc::close(null);
        }
    }
}

/// Words of a variable that names another emulator, such as `erl -foo`.
pub fn emulator_words(value: &OsStr) -> Vec<OsString> {
    value
        .as_bytes()
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(|word| OsStr::from_bytes(word).to_os_string())
        .collect()
}
