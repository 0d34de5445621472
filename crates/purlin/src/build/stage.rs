//! The contents of an executable: the files of a program, release or project, laid out as an
//! installation of OTP.
//!
//! Programs of one file are laid out by Erlang code (`stage.erl`), which has the compiler and can
//! read archives and module files. Releases are taken as they are, without their own emulator and
//! scripts.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use purlin_runtime::io::embedded::ROOT;
use purlin_runtime::options::OtpInstall;
use purlin_runtime::options::otp::PRELOADED;

use super::{Content, Manifest, shown, tool};
use crate::context::Context;
use crate::failure::{
    Failure, NO_INPUT, REFUSED, SYSTEM, USAGE, cannot_make, cannot_read, cannot_run,
    no_own_executable, say_text, unknown_kind, warn,
};
use crate::find_otp;
use crate::temporary::Folder;
use purlin_messages as messages;

const STAGE: &str = include_str!("stage.erl");
/// The program that asks the system's resolver; every start of OTP runs it.
const RESOLVER: &str = "inet_gethost";
/// Maximum depth of folders; deeper ones are taken for a cycle of links.
const DEEPEST: usize = 64;

fn work_folder() -> Result<Folder, Failure> {
    Folder::temporary("purlin-build")
        .map_err(|e| failed("make a folder in", &std::env::temp_dir(), &e))
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Failure {
    cannot_make(format!("{what} {}", shown(path)), error)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    cannot_read(shown(path), error)
}

/// The program's files, and how it starts.
pub fn stage(
    context: &Context,
    input: &Path,
    apps: &str,
) -> Result<(Manifest, Vec<Content>), Failure> {
    let meta = fs::metadata(input).map_err(|e| unreadable(input, &e))?;
    let input = &fs::canonicalize(input).map_err(|e| unreadable(input, &e))?;
    if !meta.is_dir() {
        return file(context, input, apps);
    }
    if input.join("releases/start_erl.data").is_file() {
        return release(context, input);
    }
    let work = work_folder()?;
    if let Ok(project) = fs::read_to_string(input.join("mix.exs")) {
        let environment = [("MIX_ENV", "prod")];
        let mix = |words: &[&OsStr]| tool(context, input, words, &environment);
        // A project that configures an escript has a main function, which gets the arguments.
        if project.contains("escript:") {
            let made = work.0.join("escript");
            mix(&["mix".as_ref(), "do".as_ref(), "escript.build".as_ref()])?;
            let name = escript_in(input)?;
            fs::copy(&name, &made).map_err(|e| failed("copy", &name, &e))?;
            let (mut manifest, files) = file(context, &made, apps)?;
            manifest.name = name
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            return Ok((manifest, files));
        }
        let at = work.0.join("release");
        mix(&[
            "mix".as_ref(),
            "release".as_ref(),
            "--overwrite".as_ref(),
            "--quiet".as_ref(),
            "--path".as_ref(),
            at.as_ref(),
        ])?;
        return release(context, &at);
    }
    if input.join("rebar.config").is_file() {
        let at = work.0.join("rel");
        let words: [&OsStr; 6] = [
            "exec".as_ref(),
            "rebar3".as_ref(),
            "release".as_ref(),
            "-o".as_ref(),
            at.as_ref(),
            "--dev-mode=false".as_ref(),
        ];
        tool(context, input, &words, &[("PURLIN_EXEC", "quiet")])?;
        let mut made = fs::read_dir(&at)
            .map_err(|e| unreadable(&at, &e))?
            .flatten();
        let made = made
            .next()
            .ok_or_else(|| Failure::new(messages::NO_RELEASE, REFUSED, "rebar3 made no release"))?;
        return release(context, &made.path());
    }
    let input = shown(input);
    let known = "a release, a project with mix.exs, or one with rebar.config";
    let text = format!("{input} is not one of {known}");
    Err(Failure::new(messages::NO_PROJECT, USAGE, text))
}

/// The newest escript in a project's folder.
fn escript_in(dir: &Path) -> Result<PathBuf, Failure> {
    let entries = fs::read_dir(dir)
        .map_err(|e| unreadable(dir, &e))?
        .flatten();
    let escripts = entries.map(|e| e.path()).filter(|path| {
        path.is_file()
            && fs::read(path).is_ok_and(|text| {
                text.starts_with(b"#! /usr/bin/env escript")
                    || text.starts_with(b"#!/usr/bin/env escript")
            })
    });
    let newest = escripts.max_by_key(|path| fs::metadata(path).and_then(|m| m.modified()).ok());
    newest.ok_or_else(|| {
        let text = format!("mix made no escript in {}", shown(dir));
        Failure::new(messages::NO_ESCRIPT, REFUSED, text)
    })
}

/// Stages a program of one file.
fn file(context: &Context, input: &Path, apps: &str) -> Result<(Manifest, Vec<Content>), Failure> {
    let otp = context.otp()?;
    let work = work_folder()?;
    let name = input
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let first = fs::read(input).map_err(|e| unreadable(input, &e))?;
    let ending = input.extension().and_then(OsStr::to_str);
    let (kind, from) = match ending {
        Some("erl") => ("erl", input.to_path_buf()),
        Some("exs") => ("exs", input.to_path_buf()),
        Some("beam") => {
            let dir = work.0.join("beams");
            fs::create_dir(&dir).map_err(|e| failed("make", &dir, &e))?;
            let to = dir.join(input.file_name().unwrap_or_default());
            fs::copy(input, &to).map_err(|e| failed("copy", input, &e))?;
            ("beams", dir)
        }
        Some("ex") => {
            let dir = work.0.join("beams");
            fs::create_dir(&dir).map_err(|e| failed("make", &dir, &e))?;
            let words: [&OsStr; 4] = [
                "elixirc".as_ref(),
                "-o".as_ref(),
                dir.as_ref(),
                input.as_ref(),
            ];
            let options = [("ERL_COMPILER_OPTIONS", "deterministic")];
            tool(context, &work.0, &words, &options)?;
            ("beams", dir)
        }
        _ if first.starts_with(b"#!") => ("escript", input.to_path_buf()),
        _ => {
            let known = ".exs .ex .erl .beam, an escript, a release, a project";
            let input = shown(input);
            let text = format!("cannot tell what {input} is; known are {known}");
            return Err(unknown_kind(text));
        }
    };
    let out = work.0.join("out");
    fs::create_dir(&out).map_err(|e| failed("make", &out, &e))?;
    let script = work.0.join("stage.erl");
    fs::write(&script, STAGE).map_err(|e| failed("write", &script, &e))?;
    let told = work.0.join("told");
    let words: [&OsStr; 7] = [
        "run".as_ref(),
        script.as_ref(),
        kind.as_ref(),
        from.as_ref(),
        out.as_ref(),
        name.as_ref(),
        apps.as_ref(),
    ];
    let flags = lay_out(context, &words, &told)?;
    let mut args = vec![
        "-noshell".to_string(),
        "-boot".into(),
        format!("{ROOT}/bin/purlin"),
    ];
    args.extend(flags);
    if kind == "exs" {
        let script = input.file_name().unwrap_or_default().to_string_lossy();
        args.extend([
            "-elixir_root".into(),
            format!("{ROOT}/lib"),
            "-s".into(),
            "elixir".into(),
            "start_cli".into(),
        ]);
        args.extend(["-extra".into(), format!("{ROOT}/lib/{name}/priv/{script}")]);
    }
    let mut files = Vec::new();
    collect(&out, "", &mut files, 0)?;
    preloaded(&otp, &mut files)?;
    warn_of_libraries(&files);
    let manifest = Manifest {
        name,
        version: "0".into(),
        otp,
        args,
        environment: Vec::new(),
    };
    Ok((manifest, files))
}

/// Runs the script that lays files out, and returns the lines that it prints.
fn lay_out(context: &Context, words: &[&OsStr], told: &Path) -> Result<Vec<String>, Failure> {
    let own = crate::linker::executable().map_err(|e| no_own_executable(&e))?;
    let out = fs::File::create(told).map_err(|e| failed("write", told, &e))?;
    let mut command = std::process::Command::new(own);
    if let Some(root) = context.otp_root() {
        command.arg("--otp-root").arg(root);
    }
    command
        .args(words)
        .stdin(std::process::Stdio::null())
        .stdout(out);
    // Elixir's own applications are found like those of OTP.
    if let Some(elixir) = crate::commands::elixir::library(context) {
        command.env("ERL_LIBS", elixir.join("../.."));
    }
    let status = command
        .status()
        .map_err(|e| cannot_run(SYSTEM, "Erlang", &e))?;
    let text = fs::read_to_string(told).map_err(|e| unreadable(told, &e))?;
    match status.success() {
        true => Ok(text.lines().map(str::to_string).collect()),
        false => {
            // Contains the messages of the compiler.
            say_text(&text);
            let text = "the program could not be laid out; see above";
            Err(Failure::new(messages::NOT_LAID_OUT, REFUSED, text))
        }
    }
}

/// Collects all files in a folder, named relative to it.
fn collect(dir: &Path, below: &str, files: &mut Vec<Content>, depth: usize) -> Result<(), Failure> {
    if depth > DEEPEST {
        let text = format!("{} is nested too deeply", shown(dir));
        return Err(Failure::new(messages::TOO_DEEP, NO_INPUT, text));
    }
    for entry in fs::read_dir(dir).map_err(|e| unreadable(dir, &e))? {
        let path = entry.map_err(|e| unreadable(dir, &e))?.path();
        let Some(name) = path.file_name().and_then(OsStr::to_str) else {
            let text = format!("the name of {} is not UTF-8", shown(&path));
            return Err(Failure::new(messages::NAME_NOT_UTF8, NO_INPUT, text));
        };
        let name = format!("{below}{name}");
        let meta = fs::metadata(&path).map_err(|e| unreadable(&path, &e))?;
        if meta.is_dir() {
            collect(&path, &format!("{name}/"), files, depth + 1)?;
        } else if meta.is_file() {
            files.push(Content {
                name,
                bytes: fs::read(&path).map_err(|e| unreadable(&path, &e))?,
                is_program: meta.permissions().mode() & 0o111 != 0,
            });
        }
    }
    Ok(())
}

/// Adds the modules that stock preloads, and the program that resolves host names.
fn preloaded(otp: &OtpInstall, files: &mut Vec<Content>) -> Result<(), Failure> {
    let mut all = Vec::new();
    collect(
        &otp.preloaded_dir(),
        &format!("lib/erts-{}/ebin/", otp.erts_version),
        &mut all,
        0,
    )?;
    files.extend(all.into_iter().filter(|f| f.name.ends_with(".beam")));
    // A script cannot be started from memory; in a tree with a C library of its own the program is
    // one. The programs of all releases use the same protocol.
    let of = |otp: OtpInstall| {
        let bytes = fs::read(otp.bindir.join(RESOLVER)).ok()?;
        (!bytes.starts_with(b"#!")).then_some(bytes)
    };
    let bytes = of(otp.clone()).or_else(|| of(find_otp::installed()?));
    // OTP stops a node whose resolver program cannot be started.
    let bytes = bytes.ok_or_else(|| {
        let from = otp.bindir.join(RESOLVER);
        let from = shown(&from);
        let text =
            format!("{from} cannot be put into an executable, and the OTP on PATH has no other");
        Failure::new(messages::NO_RESOLVER, NO_INPUT, text)
    })?;
    files.push(Content {
        name: format!("erts-{}/bin/{RESOLVER}", otp.erts_version),
        bytes,
        is_program: true,
    });
    Ok(())
}

/// Applications and versions in the text of a `.rel` file, in order: pairs of an atom and a string,
/// after that of erts.
fn applications(rel: &str) -> Vec<(String, String)> {
    let lines = rel.lines().filter(|l| !l.trim_start().starts_with('%'));
    let text: String = lines.flat_map(|l| [l, "\n"]).collect();
    let behind = text.split_once("erts").map_or("", |(_, behind)| behind);
    let one = |part: &str| {
        let (name, rest) = part.split_once(',')?;
        let name = name.trim().trim_matches('\'');
        let version = rest.trim_start().strip_prefix('"')?.split_once('"')?.0;
        let plain = |t: &str| {
            let sign = |c: char| c.is_ascii_alphanumeric() || "_@.+-".contains(c);
            !t.is_empty() && !t.starts_with('.') && t.chars().all(sign)
        };
        (plain(name) && plain(version)).then(|| (name.to_string(), version.to_string()))
    };
    behind.split('{').filter_map(one).collect()
}

/// Adds the applications that a release without an emulator leaves to the installation, according
/// to its `.rel` file.
fn left_out(
    otp: &OtpInstall,
    dir: &Path,
    rel: &str,
    files: &mut Vec<Content>,
) -> Result<(), Failure> {
    let mut there = Vec::new();
    for (name, version) in applications(rel) {
        let below = format!("lib/{name}-{version}/");
        if files.iter().any(|f| f.name.starts_with(&below)) {
            continue;
        }
        let from = otp.root.join(&below);
        if !from.is_dir() {
            let what =
                format!("it needs {name}-{version}, which neither it nor the OTP to use has");
            return Err(release_does_not_fit(dir, &what));
        }
        for part in ["ebin", "priv"] {
            if from.join(part).is_dir() {
                collect(&from.join(part), &format!("{below}{part}/"), &mut there, 0)?;
            }
        }
    }
    files.append(&mut there);
    Ok(())
}

fn release_does_not_fit(dir: &Path, why: &str) -> Failure {
    let text = format!("{}: {why}", shown(dir));
    Failure::new(messages::RELEASE_DOES_NOT_FIT, NO_INPUT, text)
}

/// Stages a release made by `mix release` or relx.
fn release(context: &Context, dir: &Path) -> Result<(Manifest, Vec<Content>), Failure> {
    let wrong = |what: &str| release_does_not_fit(dir, what);
    let read = |path: PathBuf| fs::read_to_string(&path).map_err(|e| unreadable(&path, &e));
    let data = read(dir.join("releases/start_erl.data"))?;
    let mut words = data.split_ascii_whitespace().map(str::to_string);
    let (Some(erts), Some(version)) = (words.next(), words.next()) else {
        return Err(wrong("releases/start_erl.data names no version"));
    };
    // Its emulator's modules are taken from the installation, so that must be the one the release
    // was made with.
    let own = dir.join(format!("erts-{erts}/bin")).join(PRELOADED);
    let otp = match own.is_dir() {
        true => OtpInstall::open(dir).map_err(|e| wrong(&e.to_string()))?,
        false => context.otp()?,
    };
    if otp.erts_version != erts {
        return Err(wrong(&format!(
            "it was made with erts {erts}, and the OTP to use has {}",
            otp.erts_version
        )));
    }
    let mut files = Vec::new();
    for part in ["lib", "releases"] {
        collect(&dir.join(part), &format!("{part}/"), &mut files, 0)?;
    }
    files.retain(|f| {
        !f.name.ends_with(".tar.gz")
            && !f.name.ends_with("/COOKIE")
            && !f.name.starts_with("lib/erts-")
    });
    preloaded(&otp, &mut files)?;
    let at = format!("releases/{version}");
    let has = |name: &str| files.iter().any(|f| f.name == format!("{at}/{name}"));
    let name = name_of_release(dir, &version).unwrap_or_else(|| {
        dir.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    });
    let is_mix = has("elixir") || has("start_clean.boot") && has("env.sh");
    let boot = match has("start.boot") {
        true => "start".to_string(),
        false => name.clone(),
    };
    if !has(&format!("{boot}.boot")) {
        return Err(wrong(&format!("there is no {at}/{boot}.boot")));
    }
    let mut args: Vec<String> = ["-noshell", "-noinput", "-mode", "embedded"]
        .map(String::from)
        .to_vec();
    args.extend(["-boot".into(), format!("{ROOT}/{at}/{boot}")]);
    for variable in ["RELEASE_LIB", "ERTS_LIB_DIR"] {
        args.extend(["-boot_var".into(), variable.into(), format!("{ROOT}/lib")]);
    }
    if has("sys.config") {
        args.extend(["-config".into(), format!("{ROOT}/{at}/sys")]);
    }
    if has("vm.args") {
        args.extend(flags(&read(dir.join(&at).join("vm.args"))?));
    }
    if is_mix {
        args.extend(["-s", "elixir", "start_cli", "-extra", "--no-halt"].map(String::from));
    }
    let variable = |name: &str, value: &str| (name.to_string(), value.to_string());
    let environment = vec![
        variable("RELEASE_ROOT", ROOT),
        variable("RELEASE_NAME", &name),
        variable("RELEASE_VSN", &version),
        variable("RELEASE_COMMAND", "start"),
        variable("RELEASE_PROG", &name),
        variable("RELEASE_MODE", "embedded"),
        variable("RELEASE_SYS_CONFIG", &format!("{ROOT}/{at}/sys")),
        variable("RELEASE_ROOT_DIR", ROOT),
    ];
    if let Ok(rel) = fs::read_to_string(dir.join(&at).join(format!("{name}.rel"))) {
        left_out(&otp, dir, &rel, &mut files)?;
    }
    warn_of_libraries(&files);
    let manifest = Manifest {
        name,
        version,
        otp,
        args,
        environment,
    };
    Ok((manifest, files))
}

fn name_of_release(dir: &Path, version: &str) -> Option<String> {
    let entries = fs::read_dir(dir.join("releases").join(version))
        .ok()?
        .flatten();
    let rel = entries.map(|e| e.path()).find(|p| {
        p.extension() == Some("rel".as_ref()) && p.file_stem() != Some("start_clean".as_ref())
    })?;
    rel.file_stem()?.to_str().map(str::to_string)
}

/// The words of a file of flags. Comments begin with `#`; words may be quoted.
fn flags(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for line in text.lines() {
        let mut word = String::new();
        let (mut quote, mut begun) = (None, false);
        let mut signs = line.chars();
        while let Some(c) = signs.next() {
            match (quote, c) {
                (Some(q), c) if c == q => quote = None,
                (None, '#') if !begun => break,
                (None, '"' | '\'') => (quote, begun) = (Some(c), true),
                (Some('"') | None, '\\') => {
                    begun = true;
                    word.extend(signs.next());
                }
                (None, c) if c.is_ascii_whitespace() => {
                    if begun {
                        words.push(std::mem::take(&mut word));
                    }
                    begun = false;
                }
                (_, c) => {
                    begun = true;
                    word.push(c);
                }
            }
        }
        if begun {
            words.push(word);
        }
    }
    words
}

/// Warns of native libraries that may not work: those that need another library beside them cannot
/// be loaded from memory, and files that C code opens itself are not found.
fn warn_of_libraries(files: &[Content]) {
    for (library, needed) in tied(files) {
        let text = format!(
            "{library} will not load: it needs {needed}, which will be inside the executable, \
             where the system can't find it"
        );
        warn(messages::LIBRARY_NEEDS_LIBRARY, text);
    }
    for (library, file, n) in with_files(files) {
        let files = match n {
            1 => file.to_string(),
            n => format!("{file} and {} more", n - 1),
        };
        let text = format!(
            "{files} will be inside the executable, where {library} can't find it if it opens it \
             itself, from C"
        );
        warn(messages::LIBRARY_NEEDS_FILES, text);
    }
}

fn is_library(file: &Content) -> bool {
    file.bytes.starts_with(b"\x7fELF") && file.name.contains(".so")
}

/// Native libraries with files that the C code of their application may want to open: the first
/// one, and their number. These are all files except libraries and programs; libraries count if the
/// code opens some without asking the runtime.
fn with_files(files: &[Content]) -> Vec<(&str, &str, usize)> {
    let own_folder = |name: &str| name.find("/priv/").map(|at| name[..at + 6].to_string());
    let mut found: Vec<(&str, &str, usize)> = Vec::new();
    for library in files.iter().filter(|f| is_library(f)) {
        let Some(folder) = own_folder(&library.name) else {
            continue;
        };
        if found.iter().any(|(name, _, _)| name.starts_with(&folder)) {
            continue;
        }
        let word = b"\0dlopen\0";
        let opens = library.bytes.windows(word.len()).any(|w| w == word);
        let wanted = |f: &&Content| match is_library(f) {
            true => opens && f.name != library.name,
            false => !f.is_program,
        };
        let mut all = files
            .iter()
            .filter(|f| f.name.starts_with(&folder))
            .filter(wanted);
        if let Some(first) = all.next() {
            found.push((library.name.as_str(), first.name.as_str(), 1 + all.count()));
        }
    }
    found
}

fn tied(files: &[Content]) -> Vec<(&str, &str)> {
    let libraries: Vec<_> = files.iter().filter(|f| is_library(f)).collect();
    let mut found = Vec::new();
    for library in &libraries {
        for other in libraries.iter().filter(|o| o.name != library.name) {
            let name = other.name.rsplit('/').next().unwrap_or_default();
            let word = [b"\0", name.as_bytes(), b"\0"].concat();
            if library.bytes.windows(word.len()).any(|w| w == word) {
                found.push((library.name.as_str(), other.name.as_str()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_of_a_release() {
        let text = "%% {x,\"1\"}\n{release,{\"p\",\"1.2\"},{erts,\"17.1\"},\n [{kernel,\"11.0.4\",permanent},\n  {'my app',\"1\"},{'p_1',\"0.1.0-dev+a\",\n load},{q,\"../..\"}]}.\n";
        let expected = [("kernel", "11.0.4"), ("p_1", "0.1.0-dev+a")];
        let all = applications(text);
        assert!(
            all.iter().map(|(n, v)| (&**n, &**v)).eq(expected),
            "{all:?}"
        );
    }

    #[test]
    fn words_of_flags() {
        for (text, expected) in [
            ("## remark\n+K true\n", &["+K", "true"][..]),
            ("", &[]),
            (
                "-a 'b c' \"d \\\" e\" f\\ g",
                &["-a", "b c", "d \" e", "f g"],
            ),
            ("-name a@b#c # rest", &["-name", "a@b#c"]),
            ("-x ''", &["-x", ""]),
        ] {
            assert_eq!(flags(text), expected, "{text}");
        }
    }

    #[test]
    fn libraries_that_need_others() {
        let file = |name: &str, rest: &[u8]| Content {
            name: name.into(),
            bytes: [b"\x7fELF", rest].concat(),
            is_program: false,
        };
        let files = [
            file("lib/a/priv/a.so", b"\0libb.so.1\0"),
            file("lib/a/priv/libb.so.1", b""),
            file("lib/a/priv/c.so", b"\0libc.so.6\0"),
        ];
        assert_eq!(tied(&files), [("lib/a/priv/a.so", "lib/a/priv/libb.so.1")]);
    }

    #[test]
    fn libraries_that_may_open_files() {
        let elf = |name: &str, rest: &[u8], is_program| Content {
            name: name.into(),
            bytes: [b"\x7fELF", rest].concat(),
            is_program,
        };
        let data = |name: &str| Content {
            name: name.into(),
            bytes: b"data".to_vec(),
            is_program: false,
        };
        let files = [
            elf("lib/asks/priv/a.so", b"\0enif_dlopen\0", false),
            elf("lib/asks/priv/b.so", b"", false),
            elf("lib/opens/priv/a.so", b"\0dlopen\0", false),
            elf("lib/opens/priv/b.so", b"", false),
            elf("lib/reads/priv/a.so", b"", false),
            data("lib/reads/priv/table"),
            data("lib/reads/priv/words/en"),
            elf("lib/runs/priv/a.so", b"", false),
            elf("lib/runs/priv/program", b"", true),
            data("lib/text/priv/page.html"),
            data("lib/asks/ebin/asks.app"),
        ];
        let expected = [
            ("lib/opens/priv/a.so", "lib/opens/priv/b.so", 1),
            ("lib/reads/priv/a.so", "lib/reads/priv/table", 2),
        ];
        assert_eq!(with_files(&files), expected);
    }
}
