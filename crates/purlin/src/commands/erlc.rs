//! `erlc`: the front end of the Erlang compiler, which calls `erl_compile` in an emulator.
//!
//! `-pa`, `-pz` and `-smp` are for the emulator, everything else for the compiler. There is no
//! compile server (`-server`, `ERLC_USE_SERVER`). Stock works without it, too, if it cannot reach
//! it, with the same result.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use purlin_runtime::options::erlexec::Environment;

use super::{become_program, erl};
use crate::context::Context;
use crate::failure::{Failure, REFUSED, say};

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let mut environment = Environment::of_process();
    let emulator = environment.get("ERLC_EMULATOR").map(erl::emulator_words);
    let emulator = emulator.filter(|words| !words.is_empty());
    let plan = Plan::of(args, environment.get("ERLC_USE_SERVER"))?;
    for notice in &plan.notices {
        say(format_args!("erlc: {notice}"));
    }
    let own = || {
        crate::linker::executable()
            .unwrap_or_default()
            .into_os_string()
    };
    let configuration = emulator.as_ref().map_or_else(own, |words| words[0].clone());
    environment.set("ERLC_CONFIGURATION", configuration);
    environment.set("ESCRIPT_NAME", context.invoked_as.clone());

    let mut line = emulator.clone().unwrap_or_else(|| vec!["erl".into()]);
    let first = line.len();
    line.extend(plan.command_line());
    if plan.debug > 0 {
        let source = plan
            .source
            .as_deref()
            .unwrap_or("<no source>".as_ref())
            .to_string_lossy();
        let mut text = format!("spawning erl for {source}");
        if plan.debug > 1 {
            text.push_str(":\n  ");
            line.iter()
                .for_each(|word| text.push_str(&format!("{} ", word.to_string_lossy())));
        }
        say(text);
    }
    match emulator {
        Some(_) => Err(become_program(line[0].as_ref(), &line[1..], &environment.0)),
        None => erl::start(&context.otp()?, environment, &line[first..]),
    }
}

/// The arguments of `erlc`, split by recipient.
#[derive(Default)]
struct Plan {
    /// Arguments of the emulator, in reverse order.
    emulator: Vec<[OsString; 2]>,
    compiler: Vec<OsString>,
    source: Option<OsString>,
    debug: u32,
    notices: Vec<String>,
}

impl Plan {
    fn of(args: &[OsString], use_server: Option<&OsStr>) -> Result<Plan, Failure> {
        let mut plan = Plan::default();
        let mut server = match use_server.map(OsStr::to_string_lossy).as_deref() {
            None | Some("no" | "false") => false,
            Some("yes" | "true") => true,
            Some(other) => {
                plan.notices.push(format!(
                    "Warning: Ignoring unrecognized value '{other}' \
                     for environment value ERLC_USE_SERVER"
                ));
                false
            }
        };
        let mut args = args.iter().peekable();
        while let Some(arg) = args.next() {
            plan.source = None;
            match arg.as_bytes() {
                b"-d" => plan.debug += 1,
                b"-no-server" => server = false,
                b"-server" => server = true,
                b"-smp" => plan.emulator.push([arg.clone(), OsString::new()]),
                [b'-', b'p', letter @ (b'a' | b'z'), glued @ ..] => {
                    let value = match glued {
                        [] => args
                            .next_if(|next| !next.as_bytes().starts_with(b"-"))
                            .cloned()
                            .ok_or_else(|| {
                                Failure::of_tool(REFUSED, "erlc: No value given to -p option")
                            })?,
                        glued => OsStr::from_bytes(glued).to_os_string(),
                    };
                    let option = if *letter == b'a' { "-pa" } else { "-pz" };
                    plan.emulator.push([option.into(), value]);
                }
                [b'-' | b'+', ..] => plan.compiler.push(arg.clone()),
                _ => {
                    plan.source = Some(arg.clone());
                    plan.compiler.push(arg.clone());
                }
            }
        }
        if server {
            plan.notices
                .push("there is no compile server here, compiling without".into());
        }
        Ok(plan)
    }

    fn command_line(&self) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec!["+S1".into()];
        for [option, value] in self.emulator.iter().rev() {
            line.push(option.clone());
            if option != "-smp" {
                line.push(value.clone());
            }
        }
        line.extend(["+sbtu", "+A0", "-noinput", "-mode", "minimal"].map(OsString::from));
        line.extend(["-boot", "no_dot_erlang"].map(OsString::from));
        line.extend(["-s", "erl_compile", "compile_cmdline", "-extra"].map(OsString::from));
        line.extend(self.compiler.iter().cloned());
        line
    }
}
