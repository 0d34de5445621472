//! The sources of OTP's and Elixir's suites, compiled and ready to run.
//!
//! `scripts/sources.sh` fetches them, as it does for the scripts that compile OTP and Elixir.

use crate::environment::{Settings, root};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where suites and their results are kept.
pub struct Sources {
    /// The settings with which stock's tools run: those of `RELEASE`.
    pub settings: Settings,
    pub cache: PathBuf,
    /// The library of an Elixir that `RELEASE` brings.
    elixir_library: Option<PathBuf>,
    otp: Option<PathBuf>,
    elixir: Option<PathBuf>,
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |e| format!("{}: {e}", path.display())
}

impl Sources {
    /// Reads what `scripts/sources.sh` decides: cache, `PATH` and the root of OTP.
    pub fn new(settings: &Settings) -> Result<Sources, String> {
        let said = shell(
            settings,
            "echo \"$cache\"; echo \"$PATH\"; echo \"${PURLIN_OTP_ROOT:-}\"",
        )?;
        let lines: Vec<&str> = said.lines().collect();
        let [cache, path, otp_root] = lines[..] else {
            return Err("scripts/sources.sh says something else".to_string());
        };
        let mut own = settings.clone();
        own.set("PATH", path);
        own.set("PURLIN_OTP_ROOT", otp_root);
        if otp_root.is_empty() {
            own.remove("PURLIN_OTP_ROOT");
        }
        let of_root = settings.is_set("RELEASE").then_some(otp_root);
        let above = of_root.and_then(|r| Path::new(r).parent()?.to_path_buf().into());
        let elixir_library = above.map(|lib: PathBuf| lib.join("elixir/lib"));
        let cache = PathBuf::from(cache);
        for name in ["suites", "from"] {
            let dir = cache.join(name);
            fs::create_dir_all(&dir).map_err(io(&dir))?;
        }
        Ok(Sources {
            settings: own,
            cache,
            elixir_library,
            otp: None,
            elixir: None,
        })
    }

    /// Finds the sources that some suites need, and compiles the modules of `tests/otp`.
    pub fn find(&mut self, suites: &[String]) -> Result<(), String> {
        if suites.iter().any(|s| s.starts_with("elixir/")) {
            self.elixir = Some(shell(&self.settings, "elixir_source")?.trim_end().into());
        }
        if suites.iter().any(|s| !s.starts_with("elixir/")) {
            self.otp = Some(shell(&self.settings, "otp_source")?.trim_end().into());
            let code = "halt(length([M || M <- [ct, eunit_autoexport], \
                        code:which(M) =:= non_existing])).";
            let mut erl = self.settings.command("erl");
            let status = erl.args(["-noshell", "-eval", code]).status();
            if !status.is_ok_and(|s| s.success()) {
                return Err("common_test or eunit is missing: apt-get install \
                            erlang-common-test erlang-eunit"
                    .to_string());
            }
            let dir = root().join("tests/otp");
            let entries = fs::read_dir(&dir).map_err(io(&dir))?;
            let mut modules: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
            modules.retain(|f| f.extension().is_some_and(|e| e == "erl"));
            self.settings.compile(&self.cache, &modules)?;
        }
        Ok(())
    }

    /// The folder of a compiled suite and its data; `None` if it cannot be compiled here.
    pub fn prepare(&self, suite: &str) -> Result<Option<PathBuf>, String> {
        let (app, name) = suite.split_once('/').unwrap_or(("", suite));
        for side in ["stock", "purlin", "measured"] {
            let dir = self.cache.join(side).join(app);
            fs::create_dir_all(&dir).map_err(io(&dir))?;
        }
        if app == "elixir" {
            return self.prepare_elixir(name);
        }
        let Some(otp) = &self.otp else {
            return Ok(None);
        };
        let places = [format!("lib/{app}/test"), format!("erts/{app}/test")];
        let sources = places.iter().map(|p| otp.join(p));
        let mut found = sources.filter(|p| p.join(format!("{name}.erl")).exists());
        let Some(sources) = found.next() else {
            return Ok(None);
        };
        // `-include_lib("APP/src/...")`: an installed application may be without its sources. The
        // headers that it has itself stay those that are found, because some are generated.
        let include = self.cache.join("include").join(app);
        fs::create_dir_all(&include).map_err(io(&include))?;
        let link = include.join("src");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(otp.join(format!("lib/{app}/src")), &link).map_err(io(&link))?;
        // Not a folder named as the application: on the code path that would stand for it, with its
        // libraries.
        let dir = self.cache.join("suites").join(app).join("test");
        if !dir.is_dir() {
            self.copy_tests(otp, app, &sources, &dir)?;
        }
        if !dir.join(format!("{name}.beam")).exists() {
            self.compile_suite(otp, app, name, &dir)?;
        }
        Ok(dir.join(format!("{name}.beam")).exists().then_some(dir))
    }

    /// Folders of headers.
    fn includes(&self, otp: &Path, app: &str, dir: &Path) -> Vec<PathBuf> {
        let lib = [
            format!("lib/{app}/src"),
            format!("lib/{app}/include"),
            "lib/kernel/src".to_string(),
            "lib/kernel/include".to_string(),
            "lib/stdlib/src".to_string(),
            "lib/compiler/src".to_string(),
            "lib/stdlib/test".to_string(),
        ];
        let mut all = vec![dir.to_path_buf()];
        all.extend(lib.iter().map(|l| otp.join(l)));
        all.push(self.cache.join("include"));
        all
    }

    /// The compiler, in a folder.
    fn erlc(&self, otp: &Path, app: &str, dir: &Path) -> Command {
        let mut erlc = self.settings.command("erlc");
        erlc.args(["-W0", "+debug_info"]).current_dir(dir);
        for include in self.includes(otp, app, dir) {
            erlc.arg("-I").arg(include);
        }
        erlc
    }

    /// Copies the tests of an application, since suites write beside their data. Helpers that they
    /// call are compiled with them.
    fn copy_tests(&self, otp: &Path, app: &str, sources: &Path, dir: &Path) -> Result<(), String> {
        let new = dir.with_extension("new");
        let above = dir.parent().ok_or("no folder above the tests")?;
        fs::create_dir_all(above).map_err(io(above))?;
        let _ = fs::remove_dir_all(&new);
        copy(sources, &new)?;
        if app == "kernel" {
            // Two of the examples are what suites about nodes run over.
            let script = "cp \"$0\"/lib/kernel/examples/*_dist/src/*_dist.erl \"$1\"";
            let mut sh = self.settings.command("sh");
            let _ = sh.args(["-c", script]).arg(otp).arg(&new).status();
        }
        for entry in fs::read_dir(&new).map_err(io(&new))?.flatten() {
            let file = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".erl") && !name.ends_with("_SUITE.erl") {
                // Those that don't compile are missed by the suites that need them.
                let _ = self.erlc(otp, app, &new).arg(&file).output();
            }
        }
        fs::rename(&new, dir).map_err(io(dir))
    }

    /// Compiles a suite, and the modules and libraries in C among its data. Programs in C are left
    /// alone.
    fn compile_suite(&self, otp: &Path, app: &str, name: &str, dir: &Path) -> Result<(), String> {
        let log = self.cache.join(format!("compile-{name}.log"));
        let out = File::create(&log).map_err(io(&log))?;
        let both = || out.try_clone().map_err(io(&log));
        let mut erlc = self.erlc(otp, app, dir);
        erlc.arg(format!("{name}.erl"));
        let status = erlc.stdout(both()?).stderr(both()?).status();
        status.map_err(|e| format!("erlc: {e}"))?;
        for makefile in find(&dir.join(format!("{name}_data")), "Makefile.src") {
            let text = fs::read(&makefile).map_err(io(&makefile))?;
            let text = String::from_utf8_lossy(&text).into_owned();
            let Some(made) = self.makefile(&text) else {
                continue;
            };
            fs::write(makefile.with_extension(""), made).map_err(io(&makefile))?;
            let folder = makefile.parent().unwrap_or(dir);
            let mut make = self.settings.command("make");
            make.args(["-s", "-k", "-C"]).arg(folder);
            // What cannot be made is left out, on both sides.
            let _ = make.stdout(both()?).stderr(both()?).status();
        }
        Ok(())
    }

    /// A Makefile from its template: for native libraries and drivers, where there is a C compiler
    /// and OTP has its headers, or for modules. `None` if it makes programs in C.
    fn makefile(&self, template: &str) -> Option<String> {
        let makes_libraries = template.lines().any(|l| l.starts_with("@SHLIB_RULES@"));
        if !makes_libraries {
            let low = template.to_lowercase();
            let in_c = ["@cc@", "@dll@", "@shlib"].iter().any(|w| low.contains(w));
            let text = template.replace("@EMULATOR@", "beam");
            return (!in_c).then(|| text.replace("@erl_name@", "erl"));
        }
        let code = "io:put_chars(code:root_dir()), halt().";
        let erl = self
            .settings
            .command("erl")
            .args(["-noshell", "-eval", code])
            .output();
        let otp = String::from_utf8_lossy(&erl.ok()?.stdout).into_owned();
        let rule = format!(
            "%.so: %.c\n\tcc -shared -fPIC -O1 -w -D_GNU_SOURCE -I. -I{otp}/usr/include -o $@ $<"
        );
        let mut out = String::new();
        for line in template.lines() {
            let line = if line.starts_with("@SHLIB_RULES@") {
                &rule
            } else {
                line
            };
            let line = line.replace("@dll@", ".so").replace("@obj@", ".o");
            out += &without_names(&line);
            out.push('\n');
        }
        Some(out)
    }

    /// Gives each side a tree of Elixir's sources, because suites write into it. Its library is the
    /// installed one.
    fn prepare_elixir(&self, app: &str) -> Result<Option<PathBuf>, String> {
        let Some(elixir) = &self.elixir else {
            return Ok(None);
        };
        let library = match &self.elixir_library {
            Some(library) => library.clone(),
            None => installed_elixir(&self.settings)?,
        };
        for side in ["stock", "purlin"] {
            let tree = self.elixir_tree(side);
            if !tree.is_dir() {
                let new = tree.with_extension("new");
                let _ = fs::remove_dir_all(&new);
                copy(elixir, &new)?;
                fs::rename(&new, &tree).map_err(io(&tree))?;
            }
            let lib = tree.join("lib");
            for entry in fs::read_dir(&lib).map_err(io(&lib))?.flatten() {
                let ebin = entry.path().join("ebin");
                if !ebin.exists() {
                    let from = library.join(entry.file_name()).join("ebin");
                    std::os::unix::fs::symlink(from, &ebin).map_err(io(&ebin))?;
                }
            }
        }
        let dir = elixir.join(format!("lib/{app}/test"));
        Ok(dir.is_dir().then_some(dir))
    }

    /// The tree of Elixir's sources for a side.
    pub fn elixir_tree(&self, side: &str) -> PathBuf {
        self.cache.join(format!("elixir-tree-{side}"))
    }
}

/// Runs a shell command with the functions of `scripts/sources.sh`, and returns what it prints.
fn shell(settings: &Settings, text: &str) -> Result<String, String> {
    let script = format!(". scripts/sources.sh || exit 1\n{text}");
    let mut sh = settings.command("sh");
    sh.args(["-c", &script])
        .current_dir(root())
        .env("here", root());
    sh.stderr(std::process::Stdio::inherit());
    let out = sh.output().map_err(|e| format!("sh: {e}"))?;
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        false => Err("scripts/sources.sh finds no sources".to_string()),
    }
}

/// The library of the installed Elixir.
fn installed_elixir(settings: &Settings) -> Result<PathBuf, String> {
    let mut sh = settings.command("sh");
    let script = "readlink -f \"$(command -v elixir)\"";
    let out = sh.args(["-c", script]).output();
    let out = out.map_err(|e| format!("sh: {e}"))?;
    let program = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim_end());
    let bin = program.parent().and_then(Path::parent);
    Ok(bin.ok_or("elixir is not installed")?.join("lib"))
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let status = Command::new("cp").arg("-r").arg(from).arg(to).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("{} cannot be copied", from.display())),
    }
}

/// The files of a name below a folder, sorted.
fn find(dir: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                todo.push(path);
            } else if entry.file_name() == name {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A line without its names between two `@`.
fn without_names(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('@') {
        let after = &rest[at + 1..];
        let end = after.find('@').filter(|&end| {
            let name = &after[..end];
            name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
        });
        match end {
            Some(end) => {
                out += &rest[..at];
                rest = &after[end + 1..];
            }
            None => {
                out += &rest[..=at];
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_templates_are_removed() {
        assert_eq!(without_names("a@LIBS@ b @x y@Z@"), "a b @x y");
        assert_eq!(without_names("$@ $<"), "$@ $<");
    }
}
