//! Test suites of other people's libraries, on stock and on Purlin in turn, on several releases:
//! tests that pass and fail, elapsed time, memory.
//!
//! ```text
//! cargo xtask applications                all of tests/applications/list.txt
//! cargo xtask applications jason plug     these
//! cargo xtask applications table          writes tests/applications/results.md alone
//! ```
//!
//! - `RELEASES` ("27 29"): 25 is the machine's own Erlang and Elixir, others are roots of
//!   `scripts/roots.sh` (`ROOTS`). Those that are not there are left out, with a line.
//! - `APPS`: folders with checkouts, separated by colons. A checkout that has the name of a row
//!   takes the place of what would be fetched: at the row's version if it is a repository of git
//!   that has that tag, else as it is. One that no row names is run too, unless `LISTED=1`, as what
//!   it is recognised by: `mix.exs`, `rebar.config`, `gleam.toml` or `Makefile`.
//! - What `APPS` does not have is cloned from the row's address, or taken from Debian's source
//!   package if the row names one. Rows that cannot be had are left out, with a line.
//! - `PGHOST` and `PGPORT`: a server of PostgreSQL that lets its user postgres in. Rows that want
//!   one are left out without.
//! - `LIMIT` (600): seconds for a step, building or testing. `PURLIN`: the executable. `KEEP=1`:
//!   what is built stays. `WORK`: the working folder (`target/applications`).
//!
//! Dependencies come from the same list, without a registry: `mix` gets
//! `tests/applications/overlay.exs` as its project, `rebar3` gets
//! `tests/applications/overlay.config.script` and folders in `_checkouts`. What the list does not
//! have is left out; the file `.left` beside the log of a project names it. Each runtime builds
//! everything for itself, in a tree of its own.
//!
//! The output of a suite is in `WORK/otpRELEASE/logs`. Tests that fail on one runtime only are
//! reported in lines of their own, and are in `.differ`. The status is 1 if there was such a test.

use crate::Outcome;
use crate::environment::{Settings, root};
use crate::library_list::{Library, parse};
use crate::otp_release::roots;
use crate::results_table::{self, Measured, Side};
use crate::suite_output::{counts, failures};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the suites of libraries, and writes the table.
pub fn run(settings: &Settings, arguments: &[String]) -> Outcome {
    let data = root().join("tests/applications");
    let work = settings.path("WORK", root().join("target/applications"));
    let page = data.join("results.md");
    let results = work.join("results.txt");
    if arguments.first().is_some_and(|a| a == "table") {
        results_table::write(&page, &results)?;
        return Ok(0);
    }
    let list = fs::read_to_string(data.join("list.txt")).map_err(|e| format!("the list: {e}"))?;
    let list = parse(&list);
    let checkouts = checkouts(settings);
    let is_there = |name: &str| {
        let of_name = |dir: &PathBuf| dir.file_name().is_some_and(|n| n == name);
        list.iter().any(|l| l.name == name) || checkouts.iter().any(of_name)
    };
    if let Some(name) = arguments.iter().find(|name| !is_there(name)) {
        return Err(format!(
            "{name}: neither in tests/applications/list.txt nor a folder of APPS"
        ));
    }
    fs::create_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
    let mut all = Applications {
        settings: settings.clone(),
        data,
        work,
        list,
        purlin: settings.executable()?,
        limit: settings.number("LIMIT", 600)?,
        unreachable: BTreeSet::new(),
        differs: false,
    };
    let mut releases = settings.words("RELEASES");
    if releases.is_empty() {
        releases = vec!["27".to_string(), "29".to_string()];
    }
    for name in releases {
        match Release::of(&all, &name) {
            Ok(release) => all.release(&release, arguments)?,
            Err(problem) => println!("{problem}"),
        }
    }
    results_table::write(&page, &results)?;
    Ok(i32::from(all.differs))
}

const RUNTIMES: [&str; 2] = ["stock", "purlin"];

struct Applications {
    settings: Settings,
    data: PathBuf,
    work: PathBuf,
    list: Vec<Library>,
    purlin: PathBuf,
    /// Seconds for a step.
    limit: u64,
    /// Hosts that git does not reach.
    unreachable: BTreeSet<String>,
    /// Whether a test failed on one runtime only, or a suite said nothing.
    differs: bool,
}

/// A release of OTP and its tools.
struct Release {
    /// Its number, such as `27`.
    name: String,
    settings: Settings,
    rebar3: Option<PathBuf>,
    /// The folder of its trees and logs.
    base: PathBuf,
}

/// A command line in a folder, and where its output goes.
struct Step<'a> {
    runtime: &'a str,
    dir: &'a Path,
    log: PathBuf,
    command: String,
    variables: &'a [(&'a str, String)],
}

/// The results of a suite on one runtime.
#[derive(Clone)]
struct SuiteResult {
    /// `None` if the suite did not say how many tests there were.
    side: Option<Side>,
    failures: Vec<String>,
}

fn program(settings: &Settings, name: &str) -> Option<PathBuf> {
    let path = settings.search_path();
    let mut all = path.split(':').map(|dir| Path::new(dir).join(name));
    all.find(|file| file.is_file())
}

fn say_io(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |e| format!("{}: {e}", path.display())
}

impl Release {
    fn of(all: &Applications, name: &str) -> Result<Release, String> {
        let absent = || format!("OTP {name} is not here (scripts/roots.sh)");
        let base = all.work.join(format!("otp{name}"));
        let tools = base.join("tools");
        fs::create_dir_all(&tools).map_err(say_io(&tools))?;
        let mut settings = all.settings.clone();
        settings.remove("PURLIN_OTP_ROOT");
        if name == "25" {
            let code = "io:put_chars(erlang:system_info(otp_release)), halt().";
            let erl = settings
                .command("erl")
                .args(["-noshell", "-eval", code])
                .output();
            if erl.map_or(true, |out| out.stdout != b"25") {
                return Err(absent());
            }
            let rebar3 = program(&settings, "rebar3");
            return Ok(Release {
                name: name.to_string(),
                settings,
                rebar3,
                base,
            });
        }
        let root = roots(&all.settings).join(format!("otp{name}"));
        let root = fs::canonicalize(root).map_err(|_| absent())?;
        if !root.join("bin/erl").exists() {
            return Err(absent());
        }
        let own = tools.join("rebar3");
        if !own.exists() {
            fetch_rebar3(&settings, &root, &tools, name);
        }
        let rebar3 = Some(own).filter(|r| r.exists());
        let rebar3 = rebar3.or_else(|| program(&settings, "rebar3"));
        let path = settings.get("PATH").unwrap_or_default().to_string();
        let bin = root.join("bin");
        let path = format!("{}:{}:{path}", tools.display(), bin.display());
        settings.set("PATH", &path);
        let otp = root.join("usr/lib/erlang").display().to_string();
        settings.set("PURLIN_OTP_ROOT", &otp);
        Ok(Release {
            name: name.to_string(),
            settings,
            rebar3,
            base,
        })
    }

    /// The tree of a library for a runtime.
    fn tree(&self, runtime: &str, name: &str) -> PathBuf {
        self.base.join(runtime).join(name)
    }
}

/// Takes rebar3 from the Debian that a root comes from, by the lists of `scripts/roots.sh`.
fn fetch_rebar3(settings: &Settings, root: &Path, tools: &Path, release: &str) {
    let suite = if release == "27" { "trixie" } else { "sid" };
    let script = r#"
        for apt in "$0"/../apt/*; do
          grep -q " $2 " "$apt/sources.list" || continue
          cd "$1" || exit 1
          apt-get -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- \
            -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status" \
            -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root download -qq rebar3 >&2 &&
            dpkg-deb --fsys-tarfile rebar3*.deb | tar -xO ./usr/bin/rebar3 >rebar3.new &&
            chmod 755 rebar3.new && mv rebar3.new rebar3
          rm -f rebar3.new
        done"#;
    let mut sh = settings.command("sh");
    let sh = sh.args(["-c", script]).arg(root).arg(tools).arg(suite);
    if let Err(e) = sh.status() {
        eprintln!("sh: {e}");
    }
}

/// The tool that builds a project, by its files.
fn kind_of(dir: &Path) -> Option<&'static str> {
    let all = [
        ("mix.exs", "mix"),
        ("rebar.config", "rebar"),
        ("gleam.toml", "gleam"),
        ("Makefile", "make"),
    ];
    let found = all.iter().find(|(file, _)| dir.join(file).exists());
    found.map(|(_, kind)| *kind)
}

/// The shell text that builds or tests a project.
fn command_of(kind: &str, test: &str, data: &Path, build: bool) -> String {
    let or = |default| if test.is_empty() { default } else { test };
    let erl = data.join("erl.sh").display().to_string();
    match (kind, build) {
        ("mix", true) => "mix deps.compile && mix compile --no-deps-check".to_string(),
        ("mix", false) => format!("MIX_QUIET= mix test --no-deps-check {test}"),
        ("rebar", true) => "rebar3 as test compile".to_string(),
        ("rebar", false) => format!("rebar3 {}", or("eunit")),
        ("erl", true) => format!("sh {erl} build"),
        ("erl", false) => format!("sh {erl} test {test}"),
        ("gleam", true) => "gleam build".to_string(),
        ("gleam", false) => "gleam test".to_string(),
        (_, true) => "make".to_string(),
        (_, false) => format!("make {}", or("tests")),
    }
}

/// The folders in those of `APPS`.
fn checkouts(settings: &Settings) -> Vec<PathBuf> {
    let tops = settings.get("APPS").unwrap_or_default().split(':');
    let entries = tops
        .filter_map(|t| fs::read_dir(t).ok())
        .flatten()
        .flatten();
    let mut all: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    all.sort();
    all
}

impl Applications {
    /// Fetches all sources, then runs the suites of a release.
    fn release(&mut self, release: &Release, names: &[String]) -> Result<(), String> {
        // All sources first: each may be a dependency of another.
        for library in self.list.clone() {
            self.fetch(release, &library)?;
        }
        let mut others = Vec::new();
        for dir in self.checkouts() {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            let is_listed = self.list.iter().any(|l| l.name == name);
            if is_listed || kind_of(&dir).is_none() {
                continue;
            }
            let library = Library::unlisted(&name);
            self.fetch(release, &library)?;
            others.push(library);
        }
        let mut chosen: Vec<Library> = Vec::new();
        if names.is_empty() {
            chosen.extend(self.list.iter().cloned());
            if !self.settings.is_set("LISTED") {
                chosen.extend(others);
            }
        }
        for name in names {
            let listed = self.list.iter().find(|l| l.name == *name);
            chosen.push(listed.cloned().unwrap_or_else(|| Library::unlisted(name)));
        }
        for library in chosen {
            if let Err(problem) = self.library(release, &library) {
                println!("{}: {problem}", library.name);
            }
        }
        Ok(())
    }

    fn checkouts(&self) -> Vec<PathBuf> {
        checkouts(&self.settings)
    }

    /// Gives each runtime a tree with the sources of a library. Both are copies of what has not
    /// been built.
    fn fetch(&mut self, release: &Release, library: &Library) -> Result<(), String> {
        let [stock, purlin] = RUNTIMES.map(|r| release.tree(r, &library.name));
        if purlin.is_dir() {
            return Ok(());
        }
        let plain = release.tree("sources", &library.name);
        for dir in [&plain, &stock] {
            let _ = fs::remove_dir_all(dir);
        }
        for dir in ["stock", "purlin"].map(|r| release.base.join(r)) {
            fs::create_dir_all(&dir).map_err(say_io(&dir))?;
        }
        if !self.unpack(release, library, &plain)? {
            return Ok(());
        }
        // Others that depend on it want it prepared too. What needs a server is left until its own
        // suite runs.
        if !library.wants_postgres {
            self.prepare(release, &plain, &library.prepare);
        }
        self.shell(
            release,
            &release.base,
            "cp -a \"$0\" \"$1\"",
            &[&plain, &stock],
        )?;
        fs::rename(&plain, &purlin).map_err(say_io(&purlin))
    }

    /// Runs a shell command with paths as its arguments. It must succeed.
    fn shell(
        &self,
        release: &Release,
        dir: &Path,
        text: &str,
        paths: &[&Path],
    ) -> Result<(), String> {
        let mut sh = release.settings.command("sh");
        sh.args(["-c", text]).args(paths).current_dir(dir);
        sh.env("APPLICATIONS_DATA", &self.data);
        match sh.status() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(format!("{}: {text}: failed", dir.display())),
        }
    }

    /// Runs a row's command in its folder, once.
    fn prepare(&self, release: &Release, dir: &Path, command: &str) {
        let mark = dir.join(".prepared");
        if mark.exists() {
            return;
        }
        if !command.is_empty()
            && let Err(problem) = self.shell(release, dir, command, &[])
        {
            eprintln!("{problem}");
        }
        let _ = File::create(mark);
    }

    /// Puts the sources of a library into a folder: from a checkout, by git, or from Debian.
    /// Returns whether they could be had.
    fn unpack(
        &mut self,
        release: &Release,
        library: &Library,
        into: &Path,
    ) -> Result<bool, String> {
        fs::create_dir_all(into).map_err(say_io(into))?;
        let tag = library.tag(&release.name).to_string();
        let head = if tag.is_empty() { "head" } else { &tag };
        let version = into.join(".version");
        fs::write(&version, head).map_err(say_io(&version))?;
        let checkout = self.checkouts().into_iter();
        let mut checkout = checkout.filter(|d| d.file_name().is_some_and(|n| *n == *library.name));
        if let Some(from) = checkout.next() {
            self.checkout_source(release, &from, &tag, into)?;
            return Ok(true);
        }
        let store = self.work.join(format!("sources/{}-{head}", library.name));
        if !store.is_dir() && !self.download(release, library, &tag, &store)? {
            let _ = fs::remove_dir_all(into);
            return Ok(false);
        }
        let copy = "cd \"$0\" && tar -c --exclude=.git . | tar -x -C \"$1\"";
        self.shell(release, into, copy, &[&store, into])?;
        Ok(true)
    }

    /// Copies a checkout at a tag, or as it is.
    fn checkout_source(
        &self,
        release: &Release,
        from: &Path,
        tag: &str,
        into: &Path,
    ) -> Result<(), String> {
        let script = r#"
            describe() { git -C "$0" describe --tags --always 2>/dev/null; }
            tag=$TAG
            # A repository without a working tree has nothing that could be taken as it is.
            if [ -z "$tag" ] && [ "$(git -C "$0" rev-parse --is-bare-repository 2>/dev/null)" = true ]
            then
              tag=HEAD
              describe >"$1/.version"
            fi
            if [ -n "$tag" ] && git -C "$0" rev-parse -q --verify "$tag^{tree}" >/dev/null 2>&1; then
              # File by file: one that the repository lacks, as those that are large may be, hinders
              # no other.
              export GIT_INDEX_FILE="$2/index"
              git -C "$0" read-tree "$tag"
              GIT_DIR=$(git -C "$0" rev-parse --absolute-git-dir) \
                git --work-tree="$1" checkout-index -a -f 2>"$2/git.txt" || :
              rm -f "$2/index"
            else
              (cd "$0" && tar -c --exclude=.git --exclude=_build --exclude=deps .) | tar -x -C "$1"
              describe >"$1/.version" || echo "as it is" >"$1/.version"
            fi"#;
        let mut sh = release.settings.command("sh");
        sh.args(["-c", script]).arg(from).arg(into).arg(&self.work);
        let status = sh.env("TAG", tag).current_dir(&self.work).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            _ => Err(format!("{} cannot be copied", from.display())),
        }
    }

    /// Fetches sources from the addresses of a row.
    fn download(
        &mut self,
        release: &Release,
        library: &Library,
        tag: &str,
        store: &Path,
    ) -> Result<bool, String> {
        let new = store.with_file_name(format!("{}.new", library.name));
        if let Some(above) = store.parent() {
            fs::create_dir_all(above).map_err(say_io(above))?;
        }
        for source in &library.sources {
            let _ = fs::remove_dir_all(&new);
            let fetched = match source.strip_prefix("debian:") {
                Some(package) => self.debian_source(release, package, &new),
                None => self.clone_repository(source, tag, &new),
            };
            if fetched {
                fs::rename(&new, store).map_err(say_io(store))?;
                return Ok(true);
            }
        }
        let _ = fs::remove_dir_all(&new);
        Ok(false)
    }

    /// Clones a tag, unless the host could not be reached before.
    fn clone_repository(&mut self, address: &str, tag: &str, into: &Path) -> bool {
        let host = address.split('/').nth(2).unwrap_or_default().to_string();
        if self.unreachable.contains(&host) {
            return false;
        }
        let mut git = self.settings.ended_after(300, 5);
        git.args(["git", "clone", "-q", "--depth", "1"]);
        if !tag.is_empty() {
            git.args(["-b", tag]);
        }
        git.arg(address).arg(into).env("GIT_TERMINAL_PROMPT", "0");
        let Ok(out) = git.output() else { return false };
        let text = String::from_utf8_lossy(&out.stderr);
        let _ = fs::write(self.work.join("git.txt"), text.as_bytes());
        // A host that has no address has none for the next row either.
        if text.contains("resolve host") || text.contains("unable to access") {
            eprintln!("git reaches nothing at {host}");
            self.unreachable.insert(host);
        }
        out.status.success()
    }

    /// Takes a source package of the release's Debian. What apt prints goes to `apt.txt`.
    fn debian_source(&self, release: &Release, package: &str, into: &Path) -> bool {
        let script = r#"
            . scripts/sources.sh || exit 1
            source_package "$0" 2>>"$2" || {
              echo "the mirror of Debian doesn't hold the sources of $0 (apt.txt)" >&2
              exit 1
            }
            unpacked=$(ls -d "$cache/$0"-*/ 2>/dev/null | head -1)
            [ -n "$unpacked" ] && cp -r "$unpacked" "$1" &&
              echo "${unpacked##*-}" | tr -d / >"$1/.version""#;
        let mut sh = self.settings.command("sh");
        let log = self.work.join("apt.txt");
        sh.args(["-c", script, package]).arg(into).arg(log);
        let root_name = format!("otp{}", release.name);
        let own = if release.name == "25" { "" } else { &root_name };
        sh.env("RELEASE", own).env("here", root());
        sh.env("CACHE", self.work.join("debian"))
            .current_dir(root());
        sh.status().is_ok_and(|s| s.success())
    }

    /// Builds a library on both runtimes, runs its suite, and reports the results.
    fn library(&mut self, release: &Release, library: &Library) -> Result<(), String> {
        if !library.is_for(&release.name) || library.has_no_suite() {
            return Ok(());
        }
        let has_server = self.settings.is_set("PGHOST") && self.settings.is_set("PGPORT");
        if library.wants_postgres && !has_server {
            return Err("PGHOST and PGPORT name no server of PostgreSQL".to_string());
        }
        let kind = self.kind(release, library)?;
        let logs = release.base.join("logs");
        fs::create_dir_all(&logs).map_err(say_io(&logs))?;
        let log = |ending: &str| logs.join(format!("{}.{ending}", library.name));
        remove_logs(&logs, &library.name);
        let suite = Suite {
            all: self,
            release,
            library,
            kind,
            logs: &logs,
        };
        let mut results = Vec::new();
        for runtime in RUNTIMES {
            suite.build(runtime)?;
            results.push(suite.run(runtime)?);
        }
        // What depends on time fails now and then on a busy machine: a runtime with failures that
        // the other one has not is asked once more.
        let first = results.clone();
        for (n, runtime) in RUNTIMES.iter().enumerate() {
            if !only_in(&first[n].failures, &first[1 - n].failures).is_empty() {
                let again = suite.run(runtime)?;
                results[n] = fewer_failures(results[n].clone(), again);
            }
        }
        if !self.settings.is_set("KEEP") {
            for runtime in RUNTIMES {
                let build = suite.dir(runtime).join("_build");
                let _ = fs::remove_dir_all(build);
            }
        }
        sort_lines(&log("left"));
        self.report(release, library, &results, &log("differ"))
    }

    /// The tool that builds a library, if it is there.
    fn kind(&self, release: &Release, library: &Library) -> Result<String, String> {
        let mut kind = library.kind.clone();
        for runtime in RUNTIMES {
            let dir = release.tree(runtime, &library.name);
            if !dir.is_dir() {
                return Err("neither APPS nor its addresses have it".to_string());
            }
            if kind.is_empty() {
                let unknown = "no known project (mix.exs, rebar.config, gleam.toml, Makefile)";
                kind = kind_of(&dir).ok_or(unknown)?.to_string();
            }
        }
        match kind.as_str() {
            "gleam" if program(&release.settings, "gleam").is_none() => {
                Err("there is no gleam".to_string())
            }
            "rebar" if release.rebar3.is_none() => Err("there is no rebar3".to_string()),
            _ => Ok(kind),
        }
    }

    /// Prints the results of a suite, and keeps them for the table.
    fn report(
        &mut self,
        release: &Release,
        library: &Library,
        results: &[SuiteResult],
        differ: &Path,
    ) -> Result<(), String> {
        let (name, otp) = (&library.name, &release.name);
        let [of_stock, of_purlin] = results else {
            return Err("two results are missing".to_string());
        };
        let (Some(stock), Some(purlin)) = (&of_stock.side, &of_purlin.side) else {
            let logs = differ.with_extension("stock");
            println!(
                "{name}, OTP {otp}: a suite that doesn't say how many tests there were: {}, {}",
                logs.display(),
                differ.with_extension("purlin").display()
            );
            self.differs = true;
            return Ok(());
        };
        let file = release.tree("stock", name).join(".version");
        let version = fs::read_to_string(file).unwrap_or_else(|_| "head".to_string());
        let measured = Measured {
            release: otp.clone(),
            name: name.clone(),
            version: version.trim().replace(' ', "-"),
            stock: stock.clone(),
            purlin: purlin.clone(),
            date: date(),
        };
        self.keep(&measured)?;
        println!(
            "{name} {} OTP {otp}: stock {} passed, {} failed, {:.1} s, {:.0} MB; \
             Purlin {}, {}, {:.1} s, {:.0} MB",
            measured.version,
            stock.passed,
            stock.failed,
            stock.seconds,
            stock.bytes / 1_048_576.0,
            purlin.passed,
            purlin.failed,
            purlin.seconds,
            purlin.bytes / 1_048_576.0
        );
        let mut lines = Vec::new();
        for (runtime, own, other) in [
            ("stock", of_stock, of_purlin),
            ("Purlin", of_purlin, of_stock),
        ] {
            let only = only_in(&own.failures, &other.failures);
            lines.extend(only.iter().map(|f| format!("  {runtime} alone fails: {f}")));
        }
        if !lines.is_empty() {
            println!("{}", lines.join("\n"));
            fs::write(differ, lines.join("\n") + "\n").map_err(say_io(differ))?;
        }
        let same = (stock.passed, stock.failed) == (purlin.passed, purlin.failed);
        self.differs |= !lines.is_empty() || !same;
        Ok(())
    }

    /// Puts a measurement into the file of results, in place of an older one.
    fn keep(&self, measured: &Measured) -> Result<(), String> {
        let file = self.work.join("results.txt");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let own = format!("{} {} ", measured.release, measured.name);
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines.retain(|l| !l.starts_with(&own));
        lines.push(measured.line());
        fs::write(&file, lines.join("\n") + "\n").map_err(say_io(&file))
    }
}

/// One suite, as it runs.
struct Suite<'a> {
    all: &'a Applications,
    release: &'a Release,
    library: &'a Library,
    kind: String,
    logs: &'a Path,
}

impl Suite<'_> {
    /// The folder of the project for a runtime.
    fn dir(&self, runtime: &str) -> PathBuf {
        let tree = self.release.tree(runtime, &self.library.name);
        match self.library.folder.as_str() {
            "" => tree,
            folder => tree.join(folder),
        }
    }

    fn log(&self, ending: &str) -> PathBuf {
        self.logs.join(format!("{}.{ending}", self.library.name))
    }

    fn variables(&self, runtime: &str) -> Vec<(&'static str, String)> {
        let text = |p: PathBuf| p.display().to_string();
        let data = &self.all.data;
        let rebar3 = self.release.rebar3.clone().unwrap_or_default();
        vec![
            ("MIX_EXS", text(data.join("overlay.exs"))),
            ("MIX_ENV", "test".to_string()),
            ("MIX_REBAR3", text(rebar3)),
            ("APPLICATIONS_DEPS", text(self.release.base.join(runtime))),
            ("APPLICATIONS_LEFT_OUT", text(self.log("left"))),
            ("APPLICATIONS_WITH", self.library.needs.join(" ")),
            ("REBAR_CONFIG", text(data.join("overlay.config"))),
            ("HEX_OFFLINE", "1".to_string()),
            ("MIX_QUIET", "1".to_string()),
            ("ERL_CRASH_DUMP", "/dev/null".to_string()),
        ]
    }

    fn build(&self, runtime: &str) -> Result<(), String> {
        let tree = self.release.tree(runtime, &self.library.name);
        self.all.prepare(self.release, &tree, &self.library.prepare);
        let dir = self.dir(runtime);
        if self.kind == "rebar" && !self.library.needs.is_empty() {
            let own = dir.join("_checkouts");
            fs::create_dir_all(&own).map_err(say_io(&own))?;
            for name in &self.library.needs {
                let (from, link) = (self.release.tree(runtime, name), own.join(name));
                if from.is_dir() {
                    let _ = fs::remove_file(&link);
                    std::os::unix::fs::symlink(&from, &link).map_err(say_io(&link))?;
                }
            }
        }
        self.step(runtime, &format!("{runtime}.build"), true)?;
        Ok(())
    }

    fn run(&self, runtime: &str) -> Result<SuiteResult, String> {
        let measured = self.step(runtime, runtime, false)?;
        if measured.is_none() {
            println!(
                "{}, OTP {}, {runtime}: not done in {} seconds",
                self.library.name, self.release.name, self.all.limit
            );
        }
        let text = fs::read(self.log(runtime)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let (seconds, bytes, processor) = measured.unwrap_or_default();
        let side = counts(&text).map(|c| Side {
            passed: c.passed,
            failed: c.failed,
            seconds,
            bytes,
            processor,
        });
        Ok(SuiteResult {
            side,
            failures: failures(&text),
        })
    }

    /// Builds or tests. Returns elapsed seconds, bytes, and seconds of processors.
    fn step(
        &self,
        runtime: &str,
        log: &str,
        build: bool,
    ) -> Result<Option<(f64, f64, f64)>, String> {
        let test = &self.library.test;
        let dir = self.dir(runtime);
        self.all.step(
            &self.release.settings,
            &Step {
                runtime,
                dir: &dir,
                log: self.log(log),
                command: command_of(&self.kind, test, &self.all.data, build),
                variables: &self.variables(runtime),
            },
        )
    }
}

impl Applications {
    /// Runs a command below `purlin measure`. What it prints goes to its log.
    fn step(&self, settings: &Settings, step: &Step) -> Result<Option<(f64, f64, f64)>, String> {
        let log = step.log.display().to_string();
        let file = |ending: &str| PathBuf::from(format!("{log}.{ending}"));
        let script = file("sh");
        let text = format!("cd '{}' && {}\n", step.dir.display(), step.command);
        fs::write(&script, text).map_err(say_io(&script))?;
        let mut command: Command = settings.ended_after(self.limit, 10);
        command.arg(&self.purlin).args(["measure", "--runs", "1"]);
        command.args(["--warmup", "0", "--any-status", "--csv"]);
        command.args(["--name", "suite", "--separator", "+++", "+++"]);
        if step.runtime != "stock" {
            command.arg(&self.purlin).args(["exec", "--"]);
        }
        command.args(["sh", "-c", "sh \"$0\" >\"$1\" 2>&1"]);
        command.arg(&script).arg(&log).env("PURLIN_EXEC", "quiet");
        command.envs(step.variables.iter().map(|(k, v)| (k, v)));
        let (csv, err) = (file("csv"), file("err"));
        command.stdout(File::create(&csv).map_err(say_io(&csv))?);
        command.stderr(File::create(&err).map_err(say_io(&err))?);
        command.status().map_err(|e| format!("timeout: {e}"))?;
        Ok(last_row(&fs::read_to_string(&csv).unwrap_or_default()))
    }
}

/// Elapsed seconds, bytes, and seconds of processors in the last row of `purlin measure --csv`.
fn last_row(csv: &str) -> Option<(f64, f64, f64)> {
    let fields: Vec<&str> = csv.lines().last()?.split(',').collect();
    let n = |at: usize| fields.get(at - 1)?.parse::<f64>().ok();
    Some((n(5)?, n(8)?, n(6)? + n(7)?))
}

/// The lines of one list that another has not.
fn only_in(own: &[String], other: &[String]) -> Vec<String> {
    let own = own.iter().filter(|f| !other.contains(f));
    own.cloned().collect()
}

/// Picks the result with fewer failures, and the first of equals.
fn fewer_failures(first: SuiteResult, again: SuiteResult) -> SuiteResult {
    let failed = |r: &SuiteResult| r.side.as_ref().map(|s| s.failed);
    match (failed(&first), failed(&again)) {
        (Some(f), Some(a)) if a < f => again,
        (None, Some(_)) => again,
        _ => first,
    }
}

/// Removes the logs that a run before has left for a library.
fn remove_logs(logs: &Path, name: &str) {
    let own = format!("{name}.");
    for entry in fs::read_dir(logs).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&own) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Sorts the lines of a file, if it is there, and removes those that are twice.
fn sort_lines(file: &Path) {
    let Ok(text) = fs::read_to_string(file) else {
        return;
    };
    let lines: BTreeSet<&str> = text.lines().collect();
    let text: String = lines.iter().map(|l| format!("{l}\n")).collect();
    let _ = fs::write(file, text);
}

/// Today's date.
fn date() -> String {
    let out = Command::new("date").arg("+%F").output();
    let text = out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string());
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_measurements_are_read() {
        let csv = "name,run,status,x,seconds,user,system,bytes\nsuite,1,0,-,2.5,1,0.25,4096\n";
        assert_eq!(last_row(csv), Some((2.5, 4096.0, 1.25)));
        assert_eq!(last_row("name,run\n"), None);
    }

    #[test]
    fn fewer_failures_count() {
        let of = |failed| SuiteResult {
            side: Some(Side {
                passed: 1,
                failed,
                seconds: 0.0,
                bytes: 0.0,
                processor: 0.0,
            }),
            failures: Vec::new(),
        };
        let failed = |r: SuiteResult| r.side.map(|s| s.failed);
        assert_eq!(failed(fewer_failures(of(2), of(1))), Some(1));
        assert_eq!(failed(fewer_failures(of(1), of(2))), Some(1));
        let nothing = SuiteResult {
            side: None,
            failures: Vec::new(),
        };
        assert_eq!(failed(fewer_failures(nothing, of(3))), Some(3));
    }

    #[test]
    fn commands_have_their_tests() {
        let data = Path::new("/d");
        assert_eq!(command_of("rebar", "", data, false), "rebar3 eunit");
        assert_eq!(command_of("make", "", data, false), "make tests");
        assert_eq!(
            command_of("erl", "ct:a", data, false),
            "sh /d/erl.sh test ct:a"
        );
    }
}
