//! Releases of a system on Purlin, step by step: `cargo xtask releases [ROOT…]`.
//!
//! `mix release` and relx (rebar3) get the folder that `purlin erts` makes, on the machine's OTP
//! (`machine`) and on those of roots that `scripts/roots.sh` has made (otp27, otp29). Each command
//! of the release's script runs, from a read-only file system, as another user, with and without
//! distribution, and there is a hot upgrade.
//!
//! `PURLIN` names the program (`target/release/purlin`), `STEP_SECONDS` (60) limits a step, and
//! `ONLY` (`mix relx`) names the tools. The last line is the count: N passed, N failed. It needs
//! root, to mount and to be another user.

use crate::Outcome;
use crate::environment::{Settings, root, status_number};
use crate::otp_release::Otp;
use crate::work_dir::{WorkDir, processes};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The user that releases run as, who owns nothing but a home.
const USER: &str = "nobody";

/// Runs the steps on each root, and prints how many passed.
pub fn run(settings: &Settings, arguments: &[String]) -> Outcome {
    if fs::metadata("/proc/self").map_or(1, |m| m.uid()) != 0 {
        return Err("this mounts file systems: run it as root".to_string());
    }
    let machine = ["machine".to_string()];
    let roots = if arguments.is_empty() {
        &machine
    } else {
        arguments
    };
    let purlin = settings.path("PURLIN", root().join("target/release/purlin"));
    let purlin = fs::canonicalize(&purlin).map_err(|e| format!("{}: {e}", purlin.display()))?;
    let work = WorkDir::new("releases")?;
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(work.path(), open).map_err(|e| e.to_string())?;
    let only = settings.get("ONLY").unwrap_or("mix relx");
    let mut rebar3 = settings.command("sh");
    let rebar3 = rebar3.args(["-c", "command -v rebar3 >/dev/null"]).status();
    let has_rebar3 = rebar3.is_ok_and(|s| s.success());
    if !has_rebar3 {
        eprintln!("rebar3 is missing: relx is left out");
    }
    let mut checks = Checks {
        seconds: settings.number("STEP_SECONDS", 60)?,
        output: work.path().join("output"),
        ..Checks::default()
    };
    for name in roots {
        let otp = match Otp::named(settings, name) {
            Ok(otp) => otp,
            Err(problem) => {
                checks.result(name, false, &problem);
                continue;
            }
        };
        let mut own = settings.clone();
        own.remove("PURLIN_OTP_ROOT");
        let own = otp.settings(&own);
        for (tool, steps) in [("mix", mix_release as Steps), ("relx", relx_release)] {
            if !only.contains(tool) || tool == "relx" && !has_rebar3 {
                continue;
            }
            let dir = work.folder(&format!("{name}/{tool}"))?;
            let site = Site {
                label: format!("{name} {tool}"),
                settings: own.clone(),
                purlin: purlin.clone(),
                dir,
            };
            if let Err(problem) = steps(&site, &mut checks, &otp) {
                checks.result(&site.label, false, &problem);
            }
        }
    }
    println!("{} passed, {} failed", checks.passed, checks.failed);
    Ok(i32::from(checks.failed > 0))
}

type Steps = fn(&Site, &mut Checks, &Otp) -> Result<(), String>;

/// Where a release is made.
struct Site {
    label: String,
    settings: Settings,
    purlin: PathBuf,
    dir: PathBuf,
}

/// A line that a step must print.
enum Says<'a> {
    Anything,
    Line(&'a str),
    /// One of these within a line.
    Part(&'a [&'a str]),
}

impl Says<'_> {
    fn is_in(&self, text: &str) -> bool {
        match self {
            Says::Anything => true,
            Says::Line(line) => text.lines().any(|l| l == *line),
            Says::Part(parts) => parts.iter().any(|p| text.contains(p)),
        }
    }
}

/// A command line.
type Words = Vec<String>;

fn words(all: &[&str]) -> Words {
    all.iter().map(|w| w.to_string()).collect()
}

/// Counts of steps that passed and failed.
#[derive(Default)]
struct Checks {
    passed: usize,
    failed: usize,
    seconds: u64,
    output: PathBuf,
}

impl Checks {
    fn result(&mut self, name: &str, passed: bool, why: &str) {
        if passed {
            self.passed += 1;
            println!("ok: {name}");
            return;
        }
        self.failed += 1;
        let text = format!("FAILED: {name}: {why}");
        text.lines().take(20).for_each(|l| println!("{l}"));
    }

    /// The command ends well in time, and prints a line of that kind.
    fn step(&mut self, site: &Site, name: &str, says: Says, cwd: &Path, command: &[String]) {
        let name = format!("{}: {name}", site.label);
        match site.output(command, cwd, self.seconds, &self.output) {
            Ok((0, text)) if says.is_in(&text) => self.result(&name, true, ""),
            Ok((status, text)) => self.result(&name, false, &format!("status {status}: {text}")),
            Err(e) => self.result(&name, false, &e.to_string()),
        }
    }

    fn holds(&mut self, site: &Site, name: &str, holds: bool, why: &str) {
        self.result(&format!("{}: {name}", site.label), holds, why);
    }
}

impl Site {
    /// The status and the output of a command, with what it writes to standard error.
    fn output(
        &self,
        command: &[String],
        cwd: &Path,
        seconds: u64,
        file: &Path,
    ) -> std::io::Result<(i32, String)> {
        let out = File::create(file)?;
        let mut timed = self.settings.ended_after(seconds, 5);
        timed.args(command).current_dir(cwd);
        let status = timed.stdout(out.try_clone()?).stderr(out).status()?;
        let text = fs::read(file)?;
        Ok((
            status_number(status),
            String::from_utf8_lossy(&text).into_owned(),
        ))
    }

    /// The last line that a command prints within 20 seconds.
    fn line(&self, command: &[String]) -> Option<String> {
        let mut timed = self.settings.ended_after(20, 5);
        let out = timed.args(command).current_dir(&self.dir).output().ok()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        Some(text.lines().last()?.to_string())
    }

    /// Runs a command again until its output fits, for at most that many seconds.
    fn until(&self, seconds: u32, command: &[String], fits: impl Fn(&str) -> bool) {
        for _ in 0..seconds {
            if self.line(command).is_some_and(|l| fits(&l)) {
                return;
            }
            pause(1);
        }
    }

    /// Runs a preparation, whose output says nothing unless it fails.
    fn prepare(&self, cwd: &Path, command: &[String]) -> Result<(), String> {
        let mut run = self.settings.ended_after(300, 5);
        run.args(command).current_dir(cwd).env("HOME", &self.dir);
        let out = run.output().map_err(|e| format!("timeout: {e}"))?;
        match out.status.success() {
            true => Ok(()),
            false => Err(format!(
                "{}: {}{}",
                command.join(" "),
                String::from_utf8_lossy(&out.stdout),
                String::from_utf8_lossy(&out.stderr)
            )),
        }
    }

    /// Makes the folder that a release takes for that of the emulator.
    fn erts(&self, otp: &Otp) -> Result<String, String> {
        let to = self.dir.join("erts");
        let mut make = self.settings.command(&self.purlin);
        let out = make.arg("erts").arg(&to).current_dir(&self.dir).output();
        let out = out.map_err(|e| format!("purlin erts: {e}"))?;
        let erts = String::from_utf8_lossy(&out.stdout).trim_end().to_string();
        if !out.status.success() || !Path::new(&erts).is_dir() {
            return Err(format!("purlin erts: {}", out.status));
        }
        if otp.root.is_some() {
            own_programs(Path::new(&erts))?;
        }
        Ok(erts)
    }

    fn purlin(&self, arguments: &[&str]) -> Words {
        let mut all = vec![self.purlin.display().to_string()];
        all.extend(words(arguments));
        all
    }

    /// A command of the other user, who has these variables and no others.
    fn as_user(&self, variables: &[String], command: &[&str]) -> Words {
        let user = format!("--reuid={USER}");
        let mut all = words(&["setpriv", &user, "--regid=65534", "--clear-groups"]);
        all.extend(words(&["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]));
        all.push("LANG=C.UTF-8".to_string());
        all.extend_from_slice(variables);
        all.extend(words(command));
        all
    }

    /// Runs a shell command for its effect.
    fn shell(&self, cwd: &Path, text: &str) -> Result<(), String> {
        self.prepare(cwd, &words(&["sh", "-c", text]))
    }

    /// The release contains no stock emulator, and Purlin once.
    fn holds_purlin_once(&self, checks: &mut Checks, release: &Path) {
        let (mut stock, mut large, mut bytes) = (0, 0, 0);
        let mut todo = vec![release.to_path_buf()];
        while let Some(path) = todo.pop() {
            let Ok(data) = fs::symlink_metadata(&path) else {
                continue;
            };
            if data.is_dir() {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                todo.extend(entries.map(|e| e.path()));
            }
            stock += usize::from(path.file_name().is_some_and(|n| n == "beam.smp"));
            large += usize::from(data.is_file() && data.len() > 4 << 20);
            bytes += if data.is_file() { data.len() } else { 0 };
        }
        let name = "no stock emulator, the program once";
        let why = format!("{stock} stock emulators, {large} files of more than 4 MB");
        checks.holds(self, name, stock == 0 && large == 1, &why);
        println!("{}: {} MB", self.label, bytes >> 20);
    }
}

fn pause(seconds: u64) {
    std::thread::sleep(Duration::from_secs(seconds));
}

/// Programs of a root are scripts, which find what they start by where they lie. In a release they
/// are the machine's own.
fn own_programs(erts: &Path) -> Result<(), String> {
    let installed = fs::read_dir("/usr/lib/erlang").into_iter().flatten();
    let installed = installed.flatten().map(|e| e.path()).find(|p| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("erts-")
    });
    let programs = fs::read_dir(erts.join("bin")).map_err(|e| e.to_string())?;
    for program in programs.flatten().map(|e| e.path()) {
        let name = program.file_name().unwrap_or_default();
        let is_script = fs::read(&program).is_ok_and(|t| t.starts_with(b"#!"));
        let own = installed.as_ref().map(|i| i.join("bin").join(name));
        if let Some(own) = own.filter(|o| o.exists() && is_script)
            && !["erl", "erlexec", "preloaded"].iter().any(|p| name == *p)
        {
            fs::copy(own, &program).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

const READ_ONLY: &str = r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0""#;

fn read_only(site: &Site, dir: &Path) -> Result<(), String> {
    let dir_text = dir.display().to_string();
    site.prepare(&site.dir, &words(&["sh", "-c", READ_ONLY, &dir_text]))
}

fn write(path: PathBuf, text: &str) -> Result<(), String> {
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Replaces text in a file, in which it must be.
fn replace(path: &Path, what: &str, by: &str) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if !text.contains(what) {
        return Err(format!("{} doesn't contain {what}", path.display()));
    }
    write(path.into(), &text.replace(what, by))
}

fn is_number(line: &str) -> bool {
    !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit())
}

/// The process whose executable is `erlexec` in a folder of the release.
fn emulator_in(release: &Path) -> Option<String> {
    let found = processes().into_iter().find(|p| {
        let exe = fs::read_link(p.join("exe")).unwrap_or_default();
        exe.starts_with(release) && exe.file_name().is_some_and(|n| n == "erlexec")
    })?;
    Some(found.file_name()?.to_string_lossy().into_owned())
}

/// Whether a process handles SIGTERM: bit 14 of the signals that it catches.
fn catches_sigterm(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
    let mask = line.and_then(|l| u64::from_str_radix(l.trim(), 16).ok());
    mask.is_some_and(|m| m >> 14 & 1 == 1)
}

const HAS_SHARING: &str = ":erlang.function_exported(:purlin, :sharing, 0)";

/// A project of mix, its release, and each command of the script of the release.
fn mix_release(site: &Site, checks: &mut Checks, otp: &Otp) -> Result<(), String> {
    let erts = site.erts(otp)?;
    site.prepare(&site.dir, &site.purlin(&["mix", "new", "demo", "--sup"]))?;
    let demo = site.dir.join("demo");
    let releases = format!("deps: deps(), releases: [demo: [include_erts: \"{erts}\"]]");
    replace(&demo.join("mix.exs"), "deps: deps()", &releases)?;
    fs::create_dir_all(demo.join("config")).map_err(|e| e.to_string())?;
    write(demo.join("config/config.exs"), "import Config\n")?;
    let run_time = "import Config\nconfig :demo, said: System.get_env(\"SAID\", \"nothing\")\n";
    write(demo.join("config/runtime.exs"), run_time)?;
    let mut make = words(&["env", "MIX_ENV=prod"]);
    make.extend(site.purlin(&["mix", "release"]));
    checks.step(
        site,
        "release",
        Says::Part(&["Release created"]),
        &demo,
        &make,
    );
    let release = demo.join("_build/prod/rel/demo");
    site.holds_purlin_once(checks, &release);

    let home = site.dir.join("home");
    let home_text = home.display().to_string();
    site.shell(
        &demo,
        &format!(
            "mkdir -p '{home_text}/tmp' && chown -R {USER} '{home_text}' &&
             chmod 755 '{0}' && chmod a+r '{0}/releases/COOKIE'",
            release.display()
        ),
    )?;
    read_only(site, &release)?;
    let variables = words(&[
        &format!("HOME={home_text}"),
        &format!("RELEASE_TMP={home_text}/tmp"),
        "RELEASE_COOKIE=c",
        &format!("RELEASE_NODE=demo_{}", std::process::id()),
    ]);
    let script = release.join("bin/demo").display().to_string();
    mix_daemon(site, checks, &variables, &script);
    mix_foreground(site, checks, &variables, &release)?;
    // The port mapper that the node has started continues.
    site.shell(&site.dir, &format!("umount -l '{}'", release.display()))
}

/// The commands of the script of `mix release` that talk to a node in the background.
fn mix_daemon(site: &Site, checks: &mut Checks, variables: &[String], script: &str) {
    let dir = &site.dir;
    let run = |arguments: &[&str]| {
        let command: Vec<&str> = [&[script], arguments].concat();
        site.as_user(variables, &command)
    };
    checks.step(
        site,
        "version",
        Says::Line("demo 0.1.0"),
        dir,
        &run(&["version"]),
    );
    let code = format!(
        "Application.load(:demo); IO.puts(\"#{{{HAS_SHARING}}} \
         #{{Application.get_env(:demo, :said)}} #{{System.otp_release()}}\")"
    );
    let with_said = [variables, &["SAID=this".to_string()]].concat();
    let eval = site.as_user(&with_said, &[script, "eval", &code]);
    let said = ["true this 25", "true this 27", "true this 29"];
    checks.step(site, "eval", Says::Part(&said), dir, &eval);
    let daemon = site.output(&run(&["daemon"]), dir, 20, &dir.join("daemon.out"));
    let status = daemon.as_ref().map_or(1, |d| d.0);
    checks.holds(site, "daemon", status == 0, &format!("status {status}"));
    site.until(20, &run(&["pid"]), is_number);
    let inspect = format!("IO.inspect({HAS_SHARING})");
    checks.step(
        site,
        "rpc",
        Says::Line("true"),
        dir,
        &run(&["rpc", &inspect]),
    );
    let pid = site.line(&run(&["pid"])).unwrap_or_default();
    checks.holds(site, "pid", is_number(&pid), &pid);
    checks.step(site, "the same pid", Says::Line(&pid), dir, &run(&["pid"]));
    let comm = words(&["cat", &format!("/proc/{pid}/comm")]);
    let name = "the process is called purlin";
    checks.step(site, name, Says::Line("purlin"), dir, &comm);
    // Left by Ctrl-G and q: at the end of its input a remote shell of OTP 27 takes the node along,
    // on stock too.
    let with_term = [variables, &["TERM=dumb".to_string()]].concat();
    let remote = format!("{script} remote");
    let remote = site.as_user(
        &with_term,
        &["timeout", "15", "script", "-qec", &remote, "/dev/null"],
    );
    let typed = "(sleep 3; echo '6 * 7'; sleep 2; printf '\\007'; sleep 1; printf 'q\\r'; \
                 sleep 2) | \"$0\" \"$@\"; true";
    let shell = [words(&["sh", "-c", typed]), remote].concat();
    checks.step(site, "remote", Says::Part(&["42"]), dir, &shell);
    // The node may go before its answer has come.
    let _ = site.output(
        &run(&["restart"]),
        dir,
        checks.seconds,
        &dir.join("restart.out"),
    );
    pause(2);
    site.until(20, &run(&["pid"]), is_number);
    let up = run(&["rpc", "IO.inspect(:up)"]);
    checks.step(site, "rpc after restart", Says::Line(":up"), dir, &up);
    checks.step(site, "stop", Says::Anything, dir, &run(&["stop"]));
}

/// The release of mix without distribution: in the foreground, until a signal.
fn mix_foreground(
    site: &Site,
    checks: &mut Checks,
    variables: &[String],
    release: &Path,
) -> Result<(), String> {
    let variables = [variables, &["RELEASE_DISTRIBUTION=none".to_string()]].concat();
    let script = release.join("bin/demo").display().to_string();
    // The node that was stopped may still be on its way out.
    for _ in 0..20 {
        if emulator_in(release).is_none() {
            break;
        }
        pause(1);
    }
    let start = site.as_user(&variables, &[&script, "start"]);
    let out = File::create(site.dir.join("start.out")).map_err(|e| e.to_string())?;
    let both = out.try_clone().map_err(|e| e.to_string())?;
    let mut command = site.settings.command(&start[0]);
    command.args(&start[1..]).stdout(out).stderr(both);
    let mut child = command.spawn().map_err(|e| format!("setpriv: {e}"))?;
    let until = Instant::now() + Duration::from_secs(20);
    let pid = loop {
        let found = emulator_in(release).filter(|p| catches_sigterm(p));
        if found.is_some() || Instant::now() > until {
            break found;
        }
        pause(1);
    };
    checks.holds(
        site,
        "start without distribution",
        pid.is_some(),
        "no emulator that handles SIGTERM",
    );
    let Some(pid) = pid else {
        let _ = child.kill();
        let _ = child.wait();
        return Ok(());
    };
    // It catches the signal early, and stops in order once the kernel application runs.
    pause(3);
    let _ = Command::new("kill").args(["-TERM", &pid]).status();
    let status = child.wait().map_or(1, status_number);
    let why = format!("status {status}");
    checks.holds(site, "ends by SIGTERM", status == 0, &why);
    let eval = site.as_user(&variables, &[&script, "eval", "IO.puts(node())"]);
    let name = "eval without distribution";
    checks.step(site, name, Says::Part(&["nonode"]), &site.dir, &eval);
    Ok(())
}

/// A project of relx in a version: its configuration, and a module that says the version.
fn relx_version(site: &Site, version: &str) -> Result<(), String> {
    let project = site.dir.join("rr");
    let erts = site.dir.join("erts");
    let config = format!(
        r#"{{erl_opts, [debug_info]}}.
{{relx, [{{release, {{rr, "{version}"}}, [rr, sasl, runtime_tools, compiler]}}, {{mode, prod}},
        {{include_erts, "{}"}},
        {{sys_config, "./config/sys.config"}}, {{vm_args, "./config/vm.args"}},
        {{extended_start_script, true}}]}}.
"#,
        erts.display()
    );
    write(project.join("rebar.config"), &config)?;
    let module =
        format!("-module(rr_version).\n-export([version/0]).\nversion() -> \"{version}\".\n");
    write(project.join("apps/rr/src/rr_version.erl"), &module)?;
    site.shell(
        &project,
        &format!(
            r#"sed -i 's/{{vsn, "[^"]*"}}/{{vsn, "{version}"}}/' apps/rr/src/rr.app.src &&
               sed -i 's/^-setcookie .*/-setcookie c/' config/vm.args"#
        ),
    )
}

/// A project of relx, its release, each command of the script of the release, and an upgrade.
fn relx_release(site: &Site, checks: &mut Checks, otp: &Otp) -> Result<(), String> {
    site.erts(otp)?;
    let dir = &site.dir;
    let new = site.purlin(&["exec", "--", "rebar3", "new", "release", "rr"]);
    site.prepare(dir, &new)?;
    relx_version(site, "0.1.0")?;
    let project = dir.join("rr");
    let rebar3 = |arguments: &[&str]| {
        let mut all = words(&["env", &format!("HOME={}", dir.display())]);
        all.extend(site.purlin(&["exec", "--", "rebar3"]));
        all.extend(words(arguments));
        all
    };
    let made = Says::Part(&["successfully assembled"]);
    checks.step(site, "release", made, &project, &rebar3(&["release"]));
    let built = project.join("_build/default/rel/rr");
    site.holds_purlin_once(checks, &built);
    let release = dir.join("target");
    let home = dir.join("home");
    let home_text = home.display().to_string();
    site.shell(
        &project,
        &format!(
            "cp -a '{}' '{1}' && mkdir -p '{home_text}/log' && chown -R {USER} '{home_text}' &&
             chmod -R a+rX '{1}'",
            built.display(),
            release.display()
        ),
    )?;
    relx_foreground(site, checks, &release, &home_text)?;

    // A running release is upgraded.
    relx_version(site, "0.2.0")?;
    let copy = format!("cp -a '{}/.' '{}/'", release.display(), built.display());
    site.shell(&project, &copy)?;
    let made = Says::Part(&["successfully assembled"]);
    checks.step(
        site,
        "the next release",
        made,
        &project,
        &rebar3(&["release"]),
    );
    let appup = "{\"0.2.0\", [{\"0.1.0\", [{load_module, rr_version}]}], \
                 [{\"0.1.0\", [{load_module, rr_version}]}]}.\n";
    write(built.join("lib/rr-0.2.0/ebin/rr.appup"), appup)?;
    let library = project.join("_build/default/lib/rr/ebin");
    fs::create_dir_all(&library).map_err(|e| e.to_string())?;
    write(library.join("rr.appup"), appup)?;
    let relup = rebar3(&["relup", "-n", "rr", "-v", "0.2.0", "-u", "0.1.0"]);
    checks.step(site, "relup", Says::Anything, &project, &relup);
    checks.step(site, "tar", Says::Anything, &project, &rebar3(&["tar"]));
    site.shell(
        &project,
        &format!("chown -R {USER} '{}'", release.display()),
    )?;
    relx_upgrade(site, checks, &release, &built, &home_text)
}

/// The commands of relx's script that ask a node, whose release is read-only.
fn relx_foreground(
    site: &Site,
    checks: &mut Checks,
    release: &Path,
    home: &str,
) -> Result<(), String> {
    let dir = &site.dir;
    let script = release.join("bin/rr").display().to_string();
    // The script writes its configuration where these variables say.
    read_only(site, release)?;
    let variables = words(&[
        &format!("HOME={home}"),
        &format!("RELX_OUT_FILE_PATH={home}"),
        &format!("RUNNER_LOG_DIR={home}/log"),
        &format!("PIPE_BASE_DIR={home}/"),
    ]);
    let run = |arguments: &[&str]| {
        let command: Vec<&str> = [&[script.as_str()], arguments].concat();
        site.as_user(&variables, &command)
    };
    // Its parent is not this process: the script's stop waits until there is no such process, and
    // one that nobody waits for is there.
    let start = run(&["foreground"]);
    let out = File::create(dir.join("foreground.out")).map_err(|e| e.to_string())?;
    let both = out.try_clone().map_err(|e| e.to_string())?;
    let mut command = site.settings.command("setsid");
    command.arg("--fork").args(start).stdout(out).stderr(both);
    let started = command.stdin(Stdio::null()).process_group(0).status();
    started.map_err(|e| format!("setsid: {e}"))?;
    site.until(20, &run(&["ping"]), |l| l.contains("pong"));
    let ping = run(&["ping"]);
    checks.step(site, "ping, read-only", Says::Part(&["pong"]), dir, &ping);
    let eval = run(&["eval", "erlang:function_exported(purlin,sharing,0)."]);
    checks.step(site, "eval", Says::Line("true"), dir, &eval);
    let pid = site.line(&run(&["pid"])).unwrap_or_default();
    let comm = words(&["cat", &format!("/proc/{pid}/comm")]);
    checks.step(site, "pid", Says::Line("purlin"), dir, &comm);
    let versions = site.line(&run(&["versions"])).unwrap_or_default();
    let is_permanent = versions.contains("0.1.0") && versions.contains("permanent");
    checks.holds(site, "versions", is_permanent, &versions);
    checks.step(site, "stop", Says::Anything, dir, &run(&["stop"]));
    site.shell(dir, &format!("umount '{}'", release.display()))
}

/// A running release is upgraded and downgraded.
fn relx_upgrade(
    site: &Site,
    checks: &mut Checks,
    release: &Path,
    built: &Path,
    home: &str,
) -> Result<(), String> {
    let dir = &site.dir;
    let script = release.join("bin/rr").display().to_string();
    let variables = [format!("HOME={home}")];
    let run = |arguments: &[&str]| {
        let command: Vec<&str> = [&[script.as_str()], arguments].concat();
        site.as_user(&variables, &command)
    };
    let _ = site.output(&run(&["daemon"]), dir, 20, &dir.join("daemon.out"));
    site.until(20, &run(&["ping"]), |l| l.contains("pong"));
    let version = run(&["eval", "rr_version:version()."]);
    let name = "the old version runs";
    checks.step(site, name, Says::Part(&["0.1.0"]), dir, &version);
    let pid = site.line(&run(&["pid"])).unwrap_or_default();
    checks.holds(site, "pid of the daemon", is_number(&pid), &pid);
    let tar = built.join("rr-0.2.0.tar.gz");
    let copy = format!(
        "cp '{}' '{1}/releases/' && chown {USER} '{1}/releases/rr-0.2.0.tar.gz'",
        tar.display(),
        release.display()
    );
    site.shell(dir, &copy)?;
    let upgrade = run(&["upgrade", "0.2.0"]);
    checks.step(site, "upgrade", Says::Anything, dir, &upgrade);
    let name = "the new version runs";
    checks.step(site, name, Says::Part(&["0.2.0"]), dir, &version);
    let name = "in the same process";
    checks.step(site, name, Says::Line(&pid), dir, &run(&["pid"]));
    let downgrade = run(&["downgrade", "0.1.0"]);
    checks.step(site, "downgrade", Says::Anything, dir, &downgrade);
    let name = "the old version runs again";
    checks.step(site, name, Says::Part(&["0.1.0"]), dir, &version);
    checks.step(site, "stop", Says::Anything, dir, &run(&["stop"]));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_compared_by_lines() {
        assert!(Says::Line("1").is_in("x\n1\n"));
        assert!(!Says::Line("1").is_in("10\n"));
        assert!(Says::Part(&["no", "ong"]).is_in("pong"));
        assert!(!Says::Part(&["ping"]).is_in("pong"));
        assert!(Says::Anything.is_in(""));
    }

    #[test]
    fn numbers_are_digits() {
        assert!(is_number("42") && !is_number("") && !is_number("4x"));
        assert!(emulator_in(Path::new("/nowhere")).is_none());
        // This process handles no SIGTERM.
        assert!(!catches_sigterm(&std::process::id().to_string()));
    }
}
