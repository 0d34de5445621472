//! Command lines that Purlin and the stock tools must interpret alike.
//!
//! Skipped with a message if there is no stock `erl`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

const PURLIN: &str = env!("CARGO_BIN_EXE_purlin");

/// The stock tool of that name on `PATH`.
fn stock(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|tool| tool.is_file());
    if found.is_none() {
        println!("skipped: no stock {name} on PATH");
    }
    found
}

/// This test's own directory, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("purlin-cli-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).expect("makes a scratch directory");
        Scratch(fs::canonicalize(dir).expect("exists"))
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("makes a directory");
        fs::write(&path, text).expect("writes a file");
        path
    }

    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("sets the mode");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a command in `dir` with only `PATH`, `HOME` and `env` in its environment.
fn run(program: &Path, args: &[&str], env: &[(&str, &str)], dir: &Path) -> Output {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .current_dir(dir)
        .stdin(std::process::Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", dir);
    command.envs(env.iter().copied());
    command.output().expect("runs")
}

fn purlin(args: &[&str], env: &[(&str, &str)], dir: &Path) -> Output {
    run(PURLIN.as_ref(), args, env, dir)
}

/// Exit status, standard output, and the first line of standard error, which is the message. The
/// lines after it explain flags, and differ between the programs.
fn essence(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let message = text(&output.stderr)
        .lines()
        .next()
        .unwrap_or("")
        .to_string();
    (output.status.code(), text(&output.stdout), message)
}

fn all_equal(failures: Vec<String>) {
    assert!(
        failures.is_empty(),
        "{} differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn the_emulators_vector_is_that_of_stock() {
    let Some(erl) = stock("erl") else { return };
    let scratch = Scratch::new();
    scratch.file(
        "plain.args",
        "-foo 'a b' # comment\n+P 5000 \"x y\"\\ z\n-extra tail\n",
    );
    scratch.file("nested.args", "-one -args_file plain.args -two");
    scratch.file("empty.args", "");
    scratch.file("comment.args", "# nothing\n");
    scratch.file(
        "quotes.args",
        "'' \"\" a''b \"it's\" 'say \"hi\"' back\\\\slash \"no\\escape\"",
    );
    scratch.file("env.args", "-env FOO bar -noshell");
    fs::create_dir(scratch.0.join("directory.args")).expect("makes a directory");
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("", &[]),
        ("-noshell -eval halt().", &[]),
        ("-noinput -s init stop", &[]),
        ("-detached -foo", &[]),
        ("-foo -extra -noinput +P 10 -args_file x", &[]),
        ("+P 5000 +Q 2000 a b", &[]),
        ("+P5000 +Q2000", &[]),
        ("+P", &[]),
        ("+P --", &[]),
        (
            "+A 4 +A4 +a 16 +e 10 +ec +t 10000 +T 2 +R 25 +W w +K true +i init +n a +C no_time_warp",
            &[],
        ),
        (
            "+hms 300 +hmbs 300 +hpds 8 +hmax 100 +hmaxk true +hmaxel false +hmqd on_heap +h 233 +hms300",
            &[],
        ),
        (
            "+S 2:1 +SP 50:50 +SDcpu 2:2 +SDPcpu 50:50 +SDio 5 +S2 +SDio5 +SP50",
            &[],
        ),
        ("+SDfoo 2", &[]),
        ("+SDcpux 2", &[]),
        ("+SD", &[]),
        (
            "+sct L0 +sbt db +sbwt none +sbwtdcpu none +sbwtdio none +scl true +secio true +sfwi 5",
            &[],
        ),
        (
            "+spp true +ssrct x +sss 128 +sssdcpu 40 +sssdio 40 +stbt u +sub false +swct lazy",
            &[],
        ),
        (
            "+swt low +swtdcpu low +swtdio low +sws legacy +sfoo 3 +sbtu +sbt",
            &[],
        ),
        (
            "+zdbbl 100 +zdntgc 60 +zebwt none +zosrl 10 +zfoo 1 +zdbbl100",
            &[],
        ),
        ("+B +B i +Bi x +B x +Bc +Bd +B d", &[]),
        ("+Bx", &[]),
        ("+c +c true +c false +c foo +ctrue", &[]),
        ("+IOt 2 +IOp 1 +IOPt 50 +IOPp 50 +IOs true +IOt2", &[]),
        ("+IOx 1", &[]),
        ("+I", &[]),
        ("+JPperf true +JDdump false", &[]),
        (
            "+MBas aobf +MBasaobf +Mea min +MIscs 100 +MMscs 3 +Muacul 0 +Mfoo 1 +M +Muycs 3 +Mdai max",
            &[],
        ),
        (
            "+fnu +fn u +pc unicode +pcunicode +pd x +L +L x +r x +rg 4 +rgg 4 +d x +dcg 4 +dcg4",
            &[],
        ),
        ("+v +V +x 1 +", &[]),
        ("-", &[]),
        ("-- a -- b", &[]),
        ("-version", &[]),
        ("-emu_name_exit", &[]),
        ("-emu_qouted_cmd_exit a", &[]),
        ("-emu_type opt a", &[]),
        ("-emu_type", &[]),
        ("-emu_flavor smp a", &[]),
        ("-smp enable a -smp auto -smp -smpauto -smpenable", &[]),
        ("-smp disable", &[]),
        ("-smpdisable", &[]),
        ("-compile a b", &[]),
        ("-make a +P 5000", &[]),
        ("-make -extra a", &[]),
        ("-configfd 0 -configfd 3 -config a b", &[]),
        ("-configfd", &[]),
        ("-env A b -env C d -foo", &[]),
        ("-env A", &[]),
        ("-env", &[]),
        ("-env A --", &[]),
        ("-start_epmd false -name a -sname b", &[]),
        ("-start_epmd maybe", &[]),
        ("-start_epmd", &[]),
        ("-name", &[]),
        ("-sname", &[]),
        ("-epmd", &[]),
        ("-no_epmd", &[]),
        ("-no_epmd -proto_dist inet_tcp -sname x", &[]),
        ("-proto_dist", &[]),
        (
            "-nohup -keep_window -heart -hidden -mode embedded -boot x -pa a -pz b -man_not -x",
            &[],
        ),
        ("-instr -noshel -run a b c", &[]),
        ("-args_file plain.args z", &[]),
        ("-args_file nested.args z", &[]),
        ("-args_file empty.args", &[]),
        ("-args_file comment.args", &[]),
        ("-args_file quotes.args", &[]),
        ("-args_file env.args", &[]),
        ("-args_file missing.args", &[]),
        ("-args_file directory.args", &[]),
        ("-args_file", &[]),
        ("a -extra b -args_file plain.args", &[]),
        ("-args_file plain.args -extra more", &[]),
        ("a", &[("ERL_FLAGS", "-f 'x y' +P 2000")]),
        (
            "a -extra e",
            &[
                ("ERL_FLAGS", "-f"),
                ("ERL_AFLAGS", "-a"),
                ("ERL_ZFLAGS", "-z"),
            ],
        ),
        ("", &[("ERL_FLAGS", "-f")]),
        (
            "a",
            &[("ERL_FLAGS", "-extra f"), ("ERL_ZFLAGS", "-z -extra y")],
        ),
        ("a", &[("ERL_FLAGS", "  "), ("ERL_AFLAGS", "")]),
        ("a", &[("ERL_AFLAGS", "-args_file plain.args")]),
        ("a", &[("ERL_AFLAGS", "-args_file")]),
        (
            "a",
            &[
                ("ERL_OTP25_FLAGS", "-twentyfive"),
                ("ERL_AFLAGS", "#no comment"),
            ],
        ),
        ("a +P", &[("ERL_FLAGS", "5000")]),
        ("a -s", &[("ERL_ZFLAGS", "\"\" '' x\\ y")]),
        ("a", &[("ERL_EPMD_PORT", "5000")]),
        ("a", &[("ESCRIPT_NAME", "name")]),
    ];
    let mut failures = Vec::new();
    for (line, env) in cases {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let args = [&["-emu_args_exit"][..], &words].concat();
        let expected = essence(&run(&erl, &args, env, &scratch.0));
        let args = [&["erl"][..], &args].concat();
        let got = essence(&purlin(&args, env, &scratch.0));
        if got != expected {
            failures.push(format!(
                "erl {line} {env:?}\n  stock  {expected:?}\n  purlin {got:?}"
            ));
        }
    }
    all_equal(failures);
}

#[test]
fn nonsense_is_refused_in_stocks_words() {
    let Some(erl) = stock("erl") else { return };
    let scratch = Scratch::new();
    let cases = [
        "+P foo",
        "+P 10",
        "+P 999999999",
        "+Q foo",
        "+Q 1",
        "+t 10",
        "+t x",
        "+A -1",
        "+A 2000",
        "+a 1",
        "+a 100000",
        "+e -1",
        "+T 10",
        "+T -1",
        "+R 3",
        "+R 99",
        "+W x",
        "+C sometimes",
        "+cfoo",
        "+n x",
        "+n sx",
        "+hms 0",
        "+hms x",
        "+hmbs 0",
        "+h 0",
        "+hpds 0",
        "+hmqd somewhere",
        "+hmax -1",
        "+hmaxk x",
        "+hmaxel x",
        "+S 0:0:0 +S x",
        "+S 2000",
        "+S 1:2",
        "+S -100",
        "+S :2000",
        "+S x:1",
        "+SP x",
        "+SP -1",
        "+SP 100:-1",
        "+SP 1000000",
        "+SP 10:1000",
        "+SDcpu x",
        "+SDcpu 5000",
        "+SDcpu 1:5",
        "+SDPcpu x",
        "+SDio 0",
        "+SDio x",
        "+sbt x",
        "+ssrct +sbt db",
        "+sbt ts +ssrct",
        "+sbt ts +sct L0-1c0-1",
        "+sbwt x",
        "+sbwtdcpu x",
        "+sbwtdio x",
        "+scl x",
        "+sct x",
        "+sct L0-1c0",
        "+sct L0c0:L0c1",
        "+sct c0",
        "+sct L0-1c0-2",
        "+spp x",
        "+sss 1",
        "+sssdcpu 1",
        "+sssdio 9000",
        "+stbt x",
        "+sub x",
        "+swct x",
        "+swt x",
        "+swtdcpu x",
        "+swtdio x",
        "+sws x",
        "+sfwi -1",
        "+sfoo",
        "+zdbbl 0",
        "+zdbbl x",
        "+zdbbl 99999999",
        "+zdntgc x",
        "+zdntgc -1",
        "+zdntgc 999999999",
        "+zebwt x",
        "+zosrl 0",
        "+zosrl x",
        "+zfoo",
        "+rg x",
        "+rg -1",
        "+dcgx",
        "+dcg-1",
        "+dcg",
        "+fnx",
        "+fnuz",
        "+fnaz",
        "+fn",
        "+pc x",
        "+px",
        "+fx",
        "+x",
        "+JPperf x",
        "+JDdump x",
        "+IOt 0",
        "+IOt x",
        "+IOp x",
        "+IOPt 101",
        "+IOPp -1",
        "+IOs x",
        "+IOt 1 +IOp 2",
        "+MBas x",
        "+MBx 1",
        "+Mx",
        "+Mea x",
        "+MBe x",
        "+MBlmbcs x",
        "+MYtt -1",
        "+MYfoo",
        "+MMfoo",
        "+MMscs x",
        "+Mlpm x",
        "+Mdai x",
        "+MBacul 101",
        "+MBcp X",
        "+MYe false",
        "+Musac x",
        "+P foo +S x",
        "+x +MBas x",
        "+Mx +IOt 0",
        "+",
        "-emu_type lcnt",
        "-emu_flavor foo",
    ];
    let mut failures = Vec::new();
    for line in cases {
        let words: Vec<&str> = line.split(' ').collect();
        let args = [&words[..], &["-noshell", "-s", "erlang", "halt"]].concat();
        let expected = essence(&run(&erl, &args, &[], &scratch.0));
        let args = [&["erl"][..], &args].concat();
        let got = essence(&purlin(&args, &[], &scratch.0));
        if got != expected {
            failures.push(format!(
                "erl {line}\n  stock  {expected:?}\n  purlin {got:?}"
            ));
        }
    }
    all_equal(failures);
}

#[test]
fn erlc_and_escript_call_the_emulator_as_stock_does() {
    let (Some(erlc), Some(escript)) = (stock("erlc"), stock("escript")) else {
        return;
    };
    let scratch = Scratch::new();
    let show = scratch.program(
        "show",
        "#!/bin/sh\necho \"$ESCRIPT_NAME\" | sed 's|.*/||'\nfor word; do echo \"<$word>\"; done\n",
    );
    let show = show.to_str().expect("is text");
    let two = format!("{show} -first  -second");
    scratch.file(
        "second.es",
        "#!/usr/bin/env escript\n%%! -sname foo  +P 5000 \nmain(_) -> ok.\n",
    );
    scratch.file(
        "third.es",
        "#!/usr/bin/env escript\n%% -*- erlang -*-\n%%!-a\tb\nmain(_) -> ok.\n",
    );
    scratch.file("fourth.es", "#!/bin/sh\n%%\n%%\n%%! -not\n");
    scratch.file("first.es", "%%! -not\n");
    scratch.file("none.es", "");
    let cases = [
        ("erlc", "a.erl"),
        (
            "erlc",
            "+deterministic -o out -I inc -DX=1 -W0 -Wall a.erl b.erl",
        ),
        ("erlc", "-pa x -pz y -paz -smp a.erl -b beam +'{d,x}'"),
        ("erlc", "-pa"),
        ("erlc", "-pa -pz"),
        ("erlc", "-d a.erl"),
        ("erlc", "-d a.erl -d -v"),
        ("erlc", "-no-server -nothing -server_not -pause a.erl"),
        ("erlc", ""),
        ("escript", "second.es a -b c"),
        ("escript", "third.es"),
        ("escript", "fourth.es"),
        ("escript", "first.es"),
        ("escript", "none.es x"),
        ("escript", "-c -n second.es -d"),
        ("escript", "missing.es"),
        ("escript", ""),
        ("escript", "-s"),
    ];
    let mut failures = Vec::new();
    for (tool, line) in cases {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let program = if tool == "erlc" { &erlc } else { &escript };
        for emulator in [show, two.as_str()] {
            let variable = if tool == "erlc" {
                "ERLC_EMULATOR"
            } else {
                "ESCRIPT_EMULATOR"
            };
            if tool == "escript" && emulator != show {
                continue;
            }
            let env = [(variable, emulator)];
            let expected = essence(&run(program, &words, &env, &scratch.0));
            let args = [&[tool][..], &words].concat();
            let got = essence(&purlin(&args, &env, &scratch.0));
            if got != expected {
                failures.push(format!(
                    "{tool} {line}\n  stock  {expected:?}\n  purlin {got:?}"
                ));
            }
        }
    }
    all_equal(failures);
}

#[test]
fn otp_is_found_behind_links_scripts_and_version_managers() {
    let Some(erl) = stock("erl") else { return };
    let scratch = Scratch::new();
    let erl = erl.to_str().expect("is text");
    let root = run(erl.as_ref(), &["-emu_args_exit"], &[], &scratch.0);
    let root = String::from_utf8_lossy(&root.stdout)
        .lines()
        .nth(2)
        .expect("has a root")
        .to_string();
    let directory = |name: &str| scratch.0.join(name).to_str().expect("is text").to_string();
    let link = |target: &str, name: &str| {
        let path = scratch.0.join(name);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("makes a directory");
        std::os::unix::fs::symlink(target, path).expect("makes a link");
    };
    link(&format!("{root}/bin/erl"), "link/erl");
    link(&format!("{root}/erts-13.1.5/bin/erl"), "erts/erl");
    link(PURLIN, "own/erl");
    scratch.program(
        "script/erl",
        &format!("#!/bin/sh\nROOTDIR=\"{root}\"\nexit 9\n"),
    );
    scratch.program("shim/erl", &format!("#!/bin/sh\nexec {erl} \"$@\"\n"));
    scratch.program("broken/erl", "#!/bin/sh\nexit 3\n");
    scratch.file("plain/erl", "not a program");
    for name in ["link", "erts", "script", "shim"] {
        for path in [
            format!("{}:/bin", directory(name)),
            format!(
                "{}:{}:{}:/bin",
                directory("own"),
                directory("broken"),
                directory(name)
            ),
            format!("{}:{}:/bin", directory("plain"), directory(name)),
        ] {
            let output = purlin(&["version"], &[("PATH", &path)], &scratch.0);
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                text.trim_end().ends_with(&format!("in {root}")),
                "{path}: {output:?}"
            );
        }
    }
    let (code, out, message) = essence(&purlin(
        &["--otp-root", "/etc", "erl", "-version"],
        &[],
        &scratch.0,
    ));
    assert_eq!((code, out.as_str()), (Some(69), ""));
    let expected = "purlin: --otp-root: /etc is not an Erlang/OTP installation: ";
    assert!(message.starts_with(expected), "{message}");
    let (code, _, message) = essence(&purlin(
        &["erl"],
        &[("PURLIN_OTP_ROOT", "nowhere")],
        &scratch.0,
    ));
    assert_eq!(code, Some(69));
    assert!(
        message.starts_with("purlin: PURLIN_OTP_ROOT: "),
        "{message}"
    );
    let (code, _, message) = essence(&purlin(
        &["erl", "-version"],
        &[("PURLIN_OTP_ROOT", &root)],
        &scratch.0,
    ));
    assert_eq!(code, Some(0), "{message}");
}

/// In container images with a self-compiled OTP in `/usr/local`, a link to Purlin replaces the only
/// `erl`.
#[test]
fn an_installation_below_usr_local_is_found() {
    let scratch = Scratch::new();
    let script = "mkdir otp && mount --bind /usr/lib/erlang otp && mount -t tmpfs none /usr/lib/erlang &&
        mount -t tmpfs none /usr/local/lib && mkdir /usr/local/lib/erlang && mount --bind otp /usr/local/lib/erlang &&
        PATH=$PWD/own:/usr/bin:/bin exec erl -noshell -eval 'io:put_chars(code:root_dir()),halt().'";
    fs::create_dir_all(scratch.0.join("own")).expect("makes a directory");
    std::os::unix::fs::symlink(PURLIN, scratch.0.join("own/erl")).expect("makes a link");
    let own = Command::new("unshare")
        .args(["-rm", "true"])
        .status()
        .is_ok_and(|s| s.success());
    if !own || !Path::new("/usr/lib/erlang").is_dir() {
        println!("skipped: no namespaces of mounts here, or OTP is elsewhere");
        return;
    }
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .current_dir(&scratch.0)
        .output()
        .expect("starts");
    assert_eq!(
        essence(&output),
        (Some(0), "/usr/local/lib/erlang".into(), String::new())
    );
}

#[test]
fn what_is_started_finds_purlin() {
    let Some(_) = stock("erl") else { return };
    let scratch = Scratch::new();
    let real = fs::canonicalize(PURLIN).expect("exists");
    for tool in ["erl", "erlc", "escript"] {
        let code = format!("readlink -f \"$(command -v {tool})\"");
        let output = purlin(&["exec", "--", "sh", "-c", &code], &[], &scratch.0);
        let found = String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_string();
        assert_eq!(Path::new(&found), real, "{tool}: {output:?}");
    }
    let output = purlin(
        &["exec", "erl", "-emu_args_exit", "+P", "2000"],
        &[],
        &scratch.0,
    );
    assert!(
        output.stdout.starts_with(b"-P\n2000\n--\n-root\n"),
        "{output:?}"
    );
    let output = purlin(&["exec", "--", "sh", "-c", "exit 7"], &[], &scratch.0);
    assert_eq!(output.status.code(), Some(7));
}

/// A tree with its own dynamic linker, which here is the machine's, through links.
#[test]
fn a_root_with_a_c_library_of_its_own_is_run_under_its_linker() {
    if stock("erl").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let installed = Path::new("/usr/lib/erlang");
    let libraries = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let own = Path::new("/").join(&libraries);
    if !installed.is_dir() || !own.join("libc.so.6").exists() {
        println!("skipped: no Erlang or no C library where Debian has them");
        return;
    }
    let tree = scratch.0.join("tree");
    fs::create_dir_all(tree.join("usr/lib")).expect("makes a directory");
    std::os::unix::fs::symlink(installed, tree.join("usr/lib/erlang")).expect("makes a link");
    std::os::unix::fs::symlink(&own, tree.join(&libraries)).expect("makes a link");
    let root = tree.join("usr/lib/erlang");
    let root = root.to_str().expect("is text");
    // The program that runs, in this emulator and in one that it starts through its PATH.
    let asked = r#"{ok, F} = file:read_link("/proc/self/exe"), io:format("~s ~s~n", [filename:basename(F), code:root_dir()])"#;
    let both = format!(
        r#"{asked}, io:put_chars(os:cmd("erl -noshell -eval \"$ASKED, halt().\"")), halt()."#
    );
    let env = [("PURLIN_OTP_ROOT", root), ("ASKED", asked)];
    let output = purlin(&["erl", "-noshell", "-eval", &both], &env, &scratch.0);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(lines.len(), 2, "{output:?}");
    for line in lines {
        let (program, told) = line.split_once(' ').expect("two words");
        assert!(program.starts_with("ld-linux"), "{text}");
        assert_eq!(told, root);
    }
}

#[test]
fn otps_launchers_start_purlin() {
    let Some(erl) = stock("erl") else { return };
    let scratch = Scratch::new();
    let bin = fs::canonicalize(erl).expect("exists");
    let bin = bin.parent().expect("has a directory");
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").expect("is text")
    );
    // Printed by the emulator that the tool runs on, before the tool itself begins. `ct_run` has a
    // shell, which ends the emulator when its input ends, so it gets none.
    let flags = "-noinput -eval io:put_chars(atom_to_list(erlang:function_exported(purlin,sharing,0))),halt().";
    let env = [("ERL_AFLAGS", flags), ("PATH", path.as_str())];
    scratch.file("x.erl", "#!/usr/bin/env escript\nmain(_) -> ok.\n");
    let mut tried = 0;
    for tool in ["dialyzer", "typer", "ct_run", "erlc", "escript"] {
        let file = bin.join(tool);
        if !file.is_file() {
            println!("not installed: {tool}");
            continue;
        }
        let full = file.to_str().expect("is text");
        let mut names = vec![tool];
        // Named by their path, these are the installation's own programs, which choose the emulator
        // themselves.
        if !["erlc", "escript"].contains(&tool) {
            names.push(full);
        }
        for name in names {
            let output = purlin(&["exec", "--", name, "x.erl"], &env, &scratch.0);
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("true"), "{name}: {output:?}");
            assert!(!text.contains("false"), "{name}: {output:?}");
            tried += 1;
        }
    }
    assert!(tried > 0, "no launcher in {}", bin.display());
}

/// A launcher in the installation's `bin` folder, and a `PATH` that begins with the folder; `None`
/// if it is not installed.
fn launcher(name: &str) -> Option<(PathBuf, String)> {
    let bin = fs::canonicalize(stock("erl")?).expect("exists");
    let bin = bin.parent().expect("has a directory").to_owned();
    let path = std::env::var("PATH").expect("is text");
    let path = format!("{}:{path}", bin.display());
    let file = bin.join(name);
    if !file.is_file() {
        println!("not installed: {name}");
        return None;
    }
    Some((file, path))
}

#[test]
fn erl_call_starts_purlin() {
    let Some((_, path)) = launcher("erl_call") else {
        return;
    };
    let scratch = Scratch::new();
    let home = scratch.0.to_str().expect("is text");
    let env = [("PATH", path.as_str()), ("HOME", home)];
    let node = format!("purlin_call_{}", std::process::id());
    let call = |args: &[&str]| {
        let mut all = vec!["exec", "--", "erl_call", "-c", "biscuit", "-sname", &node];
        all.extend(args);
        purlin(&all, &env, &scratch.0)
    };
    let output = call(&["-s", "-a", "erlang function_exported [purlin,sharing,0]"]);
    let stopped = call(&["-q"]);
    assert_eq!(essence(&output).1, "true", "{output:?}");
    assert_eq!(stopped.status.code(), Some(0), "{stopped:?}");
}

#[test]
fn run_erl_starts_purlin() {
    let Some((file, path)) = launcher("run_erl") else {
        return;
    };
    let scratch = Scratch::new();
    let env = [("PATH", path.as_str())];
    let told = scratch.0.join("told");
    let program = format!(
        "T = atom_to_list(erlang:function_exported(purlin,sharing,0)),\
         ok = file:write_file(\"{}.new\",T), ok = file:rename(\"{0}.new\",\"{0}\"), halt().",
        told.display()
    );
    scratch.file("start", &format!("exec erl -noinput -eval '{program}'\n"));
    let pipes = format!("{}/", scratch.0.display());
    // Runs in the foreground, so it ends with what it runs, whose terminal it is.
    for name in ["run_erl", file.to_str().expect("is text")] {
        let args = ["exec", "--", name, &pipes, &pipes, "sh start"];
        let output = purlin(&args, &env, &scratch.0);
        let text = fs::read_to_string(&told).unwrap_or_default();
        assert_eq!(text, "true", "{name}: {output:?}");
        fs::remove_file(&told).expect("is there");
    }
}

#[test]
fn a_release_with_an_emulator_of_its_own_is_told() {
    let Some(_) = stock("erl") else { return };
    let scratch = Scratch::new();
    scratch.program("rel/bin/app", "#!/bin/sh\necho started\n");
    scratch.file("rel/releases/start_erl.data", "1 0.1.0");
    let app = scratch.0.join("rel/bin/app");
    let app = app.to_str().expect("is text");
    let output = purlin(&["exec", "--", app], &[], &scratch.0);
    assert_eq!(
        essence(&output),
        (Some(0), "started\n".into(), String::new())
    );
    scratch.program("rel/erts-1/bin/beam.smp", "");
    let output = purlin(&["exec", "--", app], &[], &scratch.0);
    let (status, text, said) = essence(&output);
    assert_eq!((status, text.as_str()), (Some(0), "started\n"));
    assert!(said.contains("has an emulator of its own"), "{output:?}");
}

#[test]
fn a_folder_for_releases_starts_purlin() {
    let Some(_) = stock("erl") else { return };
    let scratch = Scratch::new();
    let output = purlin(&["erts", "out"], &[], &scratch.0);
    let made = String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let made = scratch.0.join(made);
    // A second time: nothing is overwritten.
    let output = purlin(&["erts", "out"], &[], &scratch.0);
    assert_eq!(output.status.code(), Some(71), "{output:?}");
    let output = purlin(&["erts"], &[], &scratch.0);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    // A release has the folder, its libraries, a boot file and little else. No other OTP is needed.
    let root = scratch.0.join("rel");
    let erts = root.join(made.file_name().expect("has a name"));
    fs::create_dir_all(&root).expect("makes a directory");
    fs::rename(&made, &erts).expect("moves");
    let output = purlin(&["version"], &[], &scratch.0);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let otp = PathBuf::from(text.trim_end().rsplit(' ').next().expect("names it"));
    std::os::unix::fs::symlink(otp.join("lib"), root.join("lib")).expect("makes a link");
    scratch.file("rel/releases/start_erl.data", "none 0.1.0");
    let boot = otp.join("bin/no_dot_erlang");
    let code =
        "io:format(\"~p ~s\",[erlang:function_exported(purlin,sharing,0),code:root_dir()]),halt().";
    let boot = boot.to_str().expect("is text");
    let args = ["-boot", boot, "-noshell", "-eval", code];
    let root = root.to_str().expect("is text");
    let env = [("ROOTDIR", root), ("PATH", "/usr/bin:/bin")];
    for name in ["erlexec", "erl", "dyn_erl"] {
        let output = run(&erts.join("bin").join(name), &args, &env, &scratch.0);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text, format!("true {root}"), "{name}: {output:?}");
    }
}

#[test]
fn elixirs_scripts_start_purlin() {
    if stock("elixir").is_none() {
        return;
    }
    let scratch = Scratch::new();
    scratch.file("a.exs", "IO.puts :a");
    // The emulator prints its arguments instead of starting, which shows that `erl` is Purlin's,
    // and how it was called.
    let env = [("ERL_AFLAGS", "-emu_args_exit"), ("NO_COLOR", "1")];
    for (args, last) in [
        (&["elixir", "a.exs", "x"][..], "-extra\na.exs\nx\n"),
        (&["run", "a.exs", "x"], "-extra\na.exs\nx\n"),
        (
            &["elixirc", "-o", "d", "a.ex"],
            "-extra\n+elixirc\n-o\nd\na.ex\n",
        ),
        (&["iex", "-S", "mix"], "-extra\n--no-halt\n+iex\n-S\nmix\n"),
        (&["mix", "help"], "/mix\nhelp\n"),
    ] {
        let output = purlin(args, &env, &scratch.0);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.starts_with("--\n") && text.ends_with(last),
            "{args:?}: {output:?}"
        );
    }
}

/// Modules of Elixir belong to the OTP that they were compiled on.
#[test]
fn an_otp_that_is_named_brings_the_elixir_beside_it() {
    let Some(erl) = stock("erl") else { return };
    let scratch = Scratch::new();
    let root = run(&erl, &["-emu_args_exit"], &[], &scratch.0);
    let root = String::from_utf8_lossy(&root.stdout).into_owned();
    let root = Path::new(root.lines().nth(2).expect("has a root"));
    let at = |name: &str| scratch.0.join(name);
    for (way, prefix) in [("named", "one/lib"), ("on PATH", "two/lib")] {
        fs::create_dir_all(at(prefix).join("erlang")).expect("makes a directory");
        for entry in fs::read_dir(root).expect("is read").flatten() {
            let link = at(prefix).join("erlang").join(entry.file_name());
            std::os::unix::fs::symlink(entry.path(), link).expect("makes a link");
        }
        scratch.file(&format!("{prefix}/elixir/lib/elixir/ebin/elixir.app"), "");
        let says = format!("#!/bin/sh\necho {way}, \"$@\"\n");
        scratch.program(&format!("{prefix}/elixir/bin/elixir"), &says);
    }
    let (one, two) = (at("one/lib/erlang"), at("two/lib/erlang"));
    let (one, two) = (one.to_str().expect("text"), two.to_str().expect("text"));
    scratch.program("bin/erl", &format!("#!/bin/sh\nROOTDIR={two}\n"));
    std::os::unix::fs::symlink(at("two/lib/elixir/bin/elixir"), at("bin/elixir")).expect("a link");
    let bin = format!("{}:/usr/bin:/bin", at("bin").display());
    scratch.program("own/elixir/bin/elixir", "#!/bin/sh\necho mine, \"$@\"\n");
    scratch.file("own/elixir/lib/elixir/ebin/elixir.app", "");
    let own = format!("{}:{bin}", at("own/elixir/bin").display());
    let of = |args: &[&str], env: &[(&str, &str)]| essence(&purlin(args, env, &scratch.0));
    let said = |text: &str| (Some(0), text.to_string(), String::new());
    let variable = "PURLIN_OTP_ROOT";
    let args = ["elixir", "x"];
    assert_eq!(of(&args, &[("PATH", &bin)]), said("on PATH, x\n"));
    assert_eq!(
        of(&args, &[("PATH", &bin), (variable, one)]),
        said("named, x\n")
    );
    let words = ["--otp-root", one, "elixir", "x"];
    assert_eq!(of(&words, &[("PATH", &own)]), said("named, x\n"));
    // A user whose OTP is on PATH chooses Elixir there, too.
    assert_eq!(
        of(&args, &[("PATH", &own), (variable, two)]),
        said("mine, x\n")
    );
    // An OTP without an Elixir.
    fs::remove_dir_all(at("one/lib/elixir")).expect("is removed");
    assert_eq!(
        of(&args, &[("PATH", &own), (variable, one)]),
        said("mine, x\n")
    );
}

/// The arguments with which stock's `erl` does what Purlin's emulator would be started for.
fn vector_of_start(args: &[&str], dir: &Path) -> Vec<String> {
    let env = [("ERL_AFLAGS", "-emu_args_exit"), ("NO_COLOR", "1")];
    let vector = purlin(args, &env, dir);
    let text = String::from_utf8_lossy(&vector.stdout).into_owned();
    let words = text.lines().skip_while(|word| *word != "-home").skip(3);
    words.map(str::to_string).collect()
}

/// Runs on stock what `purlin run` would start.
#[test]
fn programs_in_files_are_started() {
    let Some(erl) = stock("erl") else { return };
    let scratch = Scratch::new();
    scratch.file(
        "main1.erl",
        "-module(main1).\n-export([main/1]).\nmain(A) -> io:format(\"~p~n\", [A]).\n",
    );
    scratch.file(
        "main0.erl",
        "-module(main0).\n-export([main/0]).\nmain() -> io:format(\"main~n\").\n",
    );
    scratch.file(
        "start0.erl",
        "-module(start0).\n-export([start/0]).\nstart() -> halt(3).\n",
    );
    scratch.file("none.erl", "-module(none).\n-export([f/0]).\nf() -> ok.\n");
    scratch.file(
        "bad.erl",
        "-module(bad).\n-export([main/0]).\nmain() -> X.\n",
    );
    scratch.file(
        "crash.erl",
        "-module(crash).\n-export([main/0]).\nmain() -> error(oops).\n",
    );
    scratch.file("fake.beam", "FOR1....");
    let cases: &[(&[&str], i32, &str, &str)] = &[
        (&["main1.erl", "a", "b c"], 0, "[\"a\",\"b c\"]\n", ""),
        (&["main0.erl"], 0, "main\n", ""),
        (&["start0.erl"], 3, "", ""),
        (
            &["none.erl"],
            1,
            "",
            "none.erl: module none exports none of main/1, main/0, start/0",
        ),
        (&["bad.erl"], 1, "", "bad.erl:3:11: variable 'X' is unbound"),
        (&["crash.erl"], 1, "", "** exception error: oops"),
        (&["fake.beam"], 1, "", "fake.beam: not a module file"),
    ];
    for (args, code, out, message) in cases {
        let args = [&["run"][..], args].concat();
        let vector = vector_of_start(&args, &scratch.0);
        let words: Vec<&str> = vector.iter().map(String::as_str).collect();
        let got = essence(&run(&erl, &words, &[], &scratch.0));
        assert_eq!(
            got,
            (Some(*code), out.to_string(), message.to_string()),
            "{args:?}"
        );
    }
    for (name, code) in [("none.exs", 66), (".", 66), ("main1", 66), ("--fast", 2)] {
        assert_eq!(
            purlin(&["run", name], &[], &scratch.0).status.code(),
            Some(code),
            "{name}"
        );
    }
    scratch.file("data.txt", "data\n");
    let (code, _, message) = essence(&purlin(&["run", "data.txt"], &[], &scratch.0));
    assert_eq!(code, Some(2));
    assert!(
        message.starts_with("purlin: cannot tell how to run data.txt"),
        "{message}"
    );
}

#[test]
fn elixir_programs_in_files_are_started() {
    let (Some(erl), Some(elixirc)) = (stock("erl"), stock("elixirc")) else {
        return;
    };
    let scratch = Scratch::new();
    let module = |name: &str, function: &str| format!("defmodule {name} do\n{function}\nend\n");
    scratch.file(
        "one.ex",
        &module("One", "def main(args), do: IO.inspect(args)"),
    );
    scratch.file(
        "two.ex",
        &module("Two", "def main, do: IO.inspect(System.argv())"),
    );
    scratch.file(
        "three.ex",
        &format!("{}IO.puts(:top)\n", module("Three", "def f, do: 1")),
    );
    scratch.file("four.ex", &module("Four", "def start, do: raise(\"oops\")"));
    scratch.file("five.exs", "IO.inspect(System.argv())");
    let output = run(&elixirc, &["-o", "d", "one.ex"], &[], &scratch.0);
    assert!(output.status.success(), "{output:?}");
    let cases: &[(&[&str], i32, &str, &str)] = &[
        (
            &["one.ex", "a", "-b", "--c"],
            0,
            "[\"a\", \"-b\", \"--c\"]\n",
            "",
        ),
        (&["two.ex", "a"], 0, "[\"a\"]\n", ""),
        (&["three.ex"], 0, "top\n", ""),
        (&["four.ex"], 1, "", "** (RuntimeError) oops"),
        (&["five.exs", "-x"], 0, "[\"-x\"]\n", ""),
        (&["d/Elixir.One.beam", "b"], 0, "[\"b\"]\n", ""),
    ];
    for (args, code, out, message) in cases {
        let args = [&["run"][..], args].concat();
        let vector = vector_of_start(&args, &scratch.0);
        let words: Vec<&str> = vector.iter().map(String::as_str).collect();
        let got = essence(&run(&erl, &words, &[], &scratch.0));
        assert_eq!(
            got,
            (Some(*code), out.to_string(), message.to_string()),
            "{args:?}"
        );
    }
}

#[test]
fn purlins_own_errors_are_one_line_and_a_status() {
    let scratch = Scratch::new();
    scratch.file("empty.beam", "");
    for (args, code, message) in [
        (
            &[][..],
            2,
            "purlin: no command; try: purlin --help [PURLIN-0001]",
        ),
        (
            &["elixr"],
            2,
            "purlin: there is no command 'elixr'; did you mean 'elixir'? [PURLIN-0002]",
        ),
        (
            &["--quick"],
            2,
            "purlin: there is no option '--quick'; try: purlin --help [PURLIN-0002]",
        ),
        (
            &["--otp-root"],
            2,
            "purlin: --otp-root needs a directory [PURLIN-0004]",
        ),
        (
            &["run"],
            2,
            "purlin: run needs a file: purlin run FILE [ARGS] [PURLIN-0006]",
        ),
        (
            &["exec"],
            2,
            "purlin: exec needs a command: purlin exec -- COMMAND [ARGS] [PURLIN-0006]",
        ),
        (
            &["exec", "--"],
            2,
            "purlin: exec needs a command: purlin exec -- COMMAND [ARGS] [PURLIN-0006]",
        ),
        (
            &["disasm"],
            2,
            "purlin: disasm needs a file: purlin disasm FILE.beam [PURLIN-0006]",
        ),
        (
            &["disasm", "--all"],
            2,
            "purlin: disasm has no option '--all' [PURLIN-0003]",
        ),
        (
            &["erts", "--all"],
            2,
            "purlin: erts has no option '--all' [PURLIN-0003]",
        ),
        (
            &["exec", "--all"],
            2,
            "purlin: exec has no option '--all' [PURLIN-0003]",
        ),
        (
            &["replay", "--all"],
            2,
            "purlin: replay has no option '--all' [PURLIN-0003]",
        ),
        (
            &["version", "--all"],
            2,
            "purlin: version takes nothing, and not '--all' [PURLIN-0007]",
        ),
        (
            &["disasm", "no.beam"],
            66,
            "purlin: cannot read no.beam: No such file or directory [PURLIN-0020]",
        ),
        (
            &["help", "me"],
            2,
            "purlin: there is no help on 'me'; try: purlin help [PURLIN-0009]",
        ),
    ] {
        let output = purlin(args, &[], &scratch.0);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), error.trim_end()),
            (Some(code), message),
            "{args:?}"
        );
    }
    let output = purlin(&["disasm", "empty.beam"], &[], &scratch.0);
    assert_eq!(output.status.code(), Some(66), "{output:?}");
    let path = scratch.0.to_str().expect("is text");
    let none = [("PATH", path)];
    if !Path::new("/usr/lib/erlang").exists() {
        assert_eq!(purlin(&["erl"], &none, &scratch.0).status.code(), Some(69));
    }
    let (code, _, message) = essence(&purlin(&["mix", "help"], &none, &scratch.0));
    assert_eq!(code, Some(69));
    assert!(
        message.starts_with("purlin: no Elixir found on PATH"),
        "{message}"
    );
}

#[test]
fn help_names_every_command() {
    let scratch = Scratch::new();
    let output = purlin(&["--help"], &[], &scratch.0);
    let text = String::from_utf8_lossy(&output.stdout);
    for command in [
        "run", "erl", "erlc", "escript", "elixir", "iex", "mix", "exec", "disasm",
    ] {
        assert!(text.contains(&format!("\n  {command} ")), "{command}");
    }
    let output = purlin(&["help", "erl"], &[], &scratch.0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("+SDPcpu P1:P2"));
}

/// In the folder for releases, the program is small, is there once, and is called `purlin` while it
/// runs.
#[test]
fn a_release_holds_the_program_once() {
    let Some(_) = stock("erl") else { return };
    let scratch = Scratch::new();
    let output = purlin(&["erts", "out"], &[], &scratch.0);
    let made = String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned();
    let bin = scratch.0.join(made).join("bin");
    let large = |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.len() > 4 << 20);
    let entries = fs::read_dir(&bin).expect("is read").flatten();
    let names: Vec<_> = entries.map(|e| e.path()).filter(|p| large(p)).collect();
    assert_eq!(names, [bin.join("erlexec")]);
    let size = |path: &Path| fs::metadata(path).expect("is there").len();
    assert!(size(&names[0]) <= size(PURLIN.as_ref()) && size(&names[0]) < 24 << 20);
    let elf = fs::read(&names[0]).expect("is read");
    let symbols = elf.windows(8).any(|name| name == b".symtab\0");
    assert!(!symbols, "it has symbols");
    let code = "{ok,B}=file:read_file(\"/proc/self/comm\"),io:put_chars(B),halt().";
    let output = purlin(&["erl", "-noshell", "-eval", code], &[], &scratch.0);
    if Path::new("/proc/self/comm").exists() {
        assert_eq!(
            essence(&output),
            (Some(0), "purlin\n".into(), String::new())
        );
    }
}

/// Another emulator is found below a command however it was started: detached from its parents,
/// without an environment, under another name, by a loader, or only for a moment. One that
/// something else started meanwhile does not count.
#[test]
fn exec_finds_other_emulators() {
    let Some(erl) = stock("erl") else { return };
    if Path::new("/proc/version").exists() && !Path::new("/proc/loadavg").exists() {
        return;
    }
    let scratch = Scratch::new();
    let erl = erl.to_str().expect("is text");
    let code = "io:put_chars([code:root_dir(),10,os:getenv(\"BINDIR\"),\"/beam.smp\"]),halt().";
    let output = run(erl.as_ref(), &["-noinput", "-eval", code], &[], &scratch.0);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let (otp, beam) = told.split_once('\n').expect("are two lines");
    fs::copy(beam, scratch.0.join("renamed")).expect("is copied");
    let loader = "/lib64/ld-linux-x86-64.so.2";
    let root = "ROOTDIR=OTP BINDIR=$(dirname BEAM) EMU=beam PROGNAME=erl";
    let flags = "-- -root OTP -bindir $(dirname BEAM) -progname erl -- -home /tmp --";
    let waits = "-noinput -eval 'timer:sleep(1500),halt().' >/dev/null 2>&1";
    let mut commands = vec![
        format!("setsid -f env -i ERL {waits}"),
        format!("(setsid -f env -i ERL {waits}); sleep 0.2"),
        "sleep 0.7; env -i ERL -noinput -s erlang halt; sleep 0.3".to_owned(),
        format!("setsid -f env -i {root} $PWD/renamed {flags} {waits}"),
        "sh -c 'exec ERL -noinput -s erlang halt'".to_owned(),
    ];
    if Path::new(loader).exists() {
        commands.push(format!(
            "setsid -f env -i {root} {loader} BEAM {flags} {waits}"
        ));
    }
    for command in &commands {
        let command = command
            .replace("ERL", erl)
            .replace("BEAM", beam)
            .replace("OTP", otp);
        for mode in ["strict", "any"] {
            let env = [("PURLIN_EXEC", mode)];
            let args = ["exec", "--", "sh", "-c", command.as_str()];
            let output = purlin(&args, &env, &scratch.0);
            let (status, _, said) = essence(&output);
            let expected = if mode == "strict" { Some(1) } else { Some(0) };
            assert_eq!(status, expected, "{mode}: {command}: {output:?}");
            assert!(
                said.contains("which is not Purlin"),
                "{mode}: {command}: {said}"
            );
        }
    }
    // It is reported when it is seen: what ends with the command, like everything when the first
    // process of a container ends, could not be reported later.
    let waits_for_it = "env -i ERL -noinput -eval 'timer:sleep(9000),halt().' & \
        for i in $(seq 60); do grep -q 'not Purlin' told && echo in time && break; sleep 0.1; done; kill $!";
    let waits_for_it = format!(
        "{PURLIN} exec -- sh -c '{}' 2>told",
        waits_for_it.replace("ERL", erl).replace('\'', "'\\''")
    );
    let output = run("sh".as_ref(), &["-c", &waits_for_it], &[], &scratch.0);
    let said = fs::read_to_string(scratch.0.join("told")).expect("is told");
    assert_eq!(output.stdout, b"in time\n", "{said}");
    assert_eq!(said.matches("which is not Purlin").count(), 1, "{said}");
    // A quiet command within a strict one does not hide an emulator.
    let within = format!("PURLIN_EXEC=quiet {PURLIN} exec -- setsid -f env -i {erl} {waits}");
    let env = [("PURLIN_EXEC", "strict")];
    let output = purlin(&["exec", "--", "sh", "-c", &within], &env, &scratch.0);
    assert!(!output.status.success(), "{output:?}");
    // A stock emulator started by something else, and Purlin without its environment.
    let mut other = std::process::Command::new(erl)
        .args(["-noinput", "-eval", "timer:sleep(3000),halt()."])
        .spawn()
        .expect("starts");
    let own = format!("setsid -f env -i {PURLIN} erl {waits}; sleep 1");
    let output = purlin(&["exec", "--", "sh", "-c", &own], &env, &scratch.0);
    assert_eq!(essence(&output), (Some(0), String::new(), String::new()));
    other.wait().expect("ends");
}

/// A command that makes a release with stock's emulator gets a note, and otherwise works as usual.
#[test]
fn exec_tells_of_releases_with_another_emulator() {
    let Some(_) = stock("erl") else { return };
    let scratch = Scratch::new();
    let code =
        "mkdir -p _build/default/rel/app/erts-1/bin; : >_build/default/rel/app/erts-1/bin/beam.smp";
    let env = [("PURLIN_EXEC", "strict")];
    let output = purlin(&["exec", "--", "sh", "-c", code], &env, &scratch.0);
    let (status, _, said) = essence(&output);
    assert_eq!(status, Some(0), "{output:?}");
    assert!(
        said.contains("_build/default/rel/app contains stock's emulator"),
        "{said}"
    );
    let output = purlin(&["exec", "--", "true"], &env, &scratch.0.join("_build"));
    assert_eq!(essence(&output), (Some(0), String::new(), String::new()));
}

/// Options of help work after a command as before it. After Erlang's own tools, they belong to the
/// tool.
#[test]
fn commands_say_what_they_take() {
    let scratch = Scratch::new();
    let commands = [
        "run",
        "exec",
        "erts",
        "build",
        "disasm",
        "bench",
        "explain",
        "schedules",
        "replay",
        "measure",
        "observe",
        "version",
        "help",
    ];
    for command in commands {
        let told = purlin(&["help", command], &[], &scratch.0);
        for option in ["-h", "--help"] {
            let output = purlin(&[command, option], &[], &scratch.0);
            assert!(output.status.success(), "{command}: {output:?}");
            let same = command == "help" || output.stdout == told.stdout;
            assert!(same, "{command}: {output:?}");
        }
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        let usage = format!("Usage: purlin {command}");
        let its_own = command == "help" || text.starts_with(&usage);
        assert!(its_own, "{command}: {text}");
    }
    let of = |command| essence(&purlin(&["help", command], &[], &scratch.0)).1;
    assert!(of("run").contains("else main/0, else start/0"));
    assert!(of("exec").contains("PURLIN_EXEC=strict"));
    let mix = "Usage: purlin mix TASK\n\nthe Elixir build tool\n\n\
               Arguments are handed on as they are: the options are the tool's own.\n";
    assert_eq!(of("mix"), mix);
    let left = fs::read_dir(&scratch.0).expect("is there").count();
    assert_eq!(left, 0);
}
