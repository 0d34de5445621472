//! From the command line of `erl` to the emulator's argument vector and [`EmulatorOptions`].
//!
//! The vector is the one that stock's launcher would give the emulator: its flags with `-` for `+`,
//! then `--`, then the arguments of `init` (`-root R -bindir B -progname P -- -home H -- …`). If
//! arguments come from several sources the order is: `ERL_OTP<release>_FLAGS`, `ERL_AFLAGS`, the
//! command line, `ERL_FLAGS`, `ERL_ZFLAGS`. Each is followed by `--`, so that flags of one do not
//! swallow words of the next. The words after an `-extra` in any of them go to the very end.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::cpus::CpuCounts;
use super::flags::{self, Stop};
use super::{CliError, EmulatorOptions, MachineCode, OtpInstall, alloc};
use purlin_isa::release;

/// The differences between the launchers of the releases.
#[derive(Clone, Copy)]
struct Rules {
    release: u32,
    /// See [`release::CALL_WITH_REST`].
    call_with_rest: bool,
}

impl Rules {
    fn of(otp: &OtpInstall) -> Rules {
        Rules {
            release: otp.release,
            call_with_rest: release::CALL_WITH_REST.is_in(otp.release),
        }
    }
}

/// The marker for a `-S` of the command line, to distinguish it from one in a variable or file.
const CALL_WITH_REST: &str = "++S";

/// The request of a command line of `erl`.
#[derive(Debug)]
pub enum Request {
    /// Start the emulator. `notices` are lines for standard error.
    Start {
        options: Box<EmulatorOptions>,
        notices: Vec<String>,
    },
    /// Print these bytes to standard output and exit with status 0.
    Print(Vec<u8>),
    /// Print the emulator's version to standard error and exit with status 0.
    Version(String),
    /// Run the program with these arguments and environment instead of `erl`.
    Exec {
        argv: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
    },
}

/// The environment of the process, in order. A variable that is set again keeps its place.
#[derive(Clone, Debug, Default)]
pub struct Environment(pub Vec<(OsString, OsString)>);

impl Environment {
    /// Returns the environment of this process.
    pub fn of_process() -> Environment {
        Environment(std::env::vars_os().collect())
    }

    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        let name = name.as_ref();
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_os_str())
    }

    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(key, _)| *key == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// Sets the variables that the `erl` script of an installation exports before it runs the
    /// launcher.
    pub fn set_launcher_variables(&mut self, otp: &OtpInstall, progname: &OsStr) {
        self.set("EMU", "beam");
        self.set("ROOTDIR", otp.root.as_os_str());
        self.set("BINDIR", otp.bindir.as_os_str());
        self.set("PROGNAME", progname);
    }
}

/// Parses a command line of `erl`; `argv[0]` is the program's name. The variables that
/// [`Environment::set_launcher_variables`] sets are taken from `environment` if they are present.
pub fn parse_erl(
    argv: &[OsString],
    mut environment: Environment,
    otp: &OtpInstall,
    cpus: CpuCounts,
) -> Result<Request, CliError> {
    let rules = Rules::of(otp);
    let args = merged_arguments(argv, &environment, rules)?;
    let launcher = environment.clone();
    let variable = |name: &str| launcher.get(name).map(OsStr::to_os_string);
    let progname = variable("PROGNAME").unwrap_or_else(|| "erl".into());
    let bindir = variable("BINDIR").unwrap_or_else(|| otp.bindir.clone().into());
    let root = variable("ROOTDIR").unwrap_or_else(|| otp.root.clone().into());
    let emulator = Emulator::of(&args, variable("EMU").unwrap_or_else(|| "beam".into()))?;
    let program = Path::new(&bindir).join(&emulator.file_name);

    let mut split = Split::new(
        rules,
        variable("ESCRIPT_NAME").unwrap_or_else(|| program.clone().into()),
    );
    let path = launcher_path(rules, environment.get("PATH"), &bindir, &root);
    environment.set("PATH", path);
    let home = variable("HOME");
    if let Some(home) = &home {
        split.init_all(["-home".into(), home.clone()]);
    }
    if let Some(port) = variable("ERL_EPMD_PORT") {
        split.init_all(["-epmd_port".into(), port]);
    }
    split.init("--");
    if let Some(request) = split.arguments(&args, &mut environment)? {
        return Ok(request.request(emulator.file_name, environment));
    }
    if split.no_epmd && !split.proto_dist {
        return Err(erlexec(
            "Missing -proto_dist option, expected when using -no_epmd.",
        ));
    }
    if split.halt_afterwards {
        split.init_all(["-s".into(), "erlang".into(), "halt".into()]);
    }
    let start_epmd = split.epmd_start(&bindir);
    let mut emu_args = split.emu;
    emu_args.extend(["--".into(), "-root".into(), root.clone()]);
    emu_args.extend(["-bindir".into(), bindir.clone()]);
    emu_args.extend(["-progname".into(), progname.clone(), "--".into()]);
    emu_args.extend(split.init);
    if let Some(print) = split.print {
        return Ok(Request::Print(print.text(program.as_os_str(), &emu_args)));
    }
    emulator.check()?;

    let parsed = flags::parse(&emu_args, &environment.0, cpus, otp.release);
    let (parsed, first_init) = match parsed {
        Ok(parsed) => parsed,
        Err(Stop::Version) => {
            return Ok(Request::Version(format!(
                "Erlang (SMP,ASYNC_THREADS) (BEAM) emulator version {}",
                otp.erts_version
            )));
        }
        // The emulator also ends its output on standard error with a carriage return, even without
        // a terminal.
        Err(Stop::Refused(message)) => {
            return Err(CliError::new(format!("{message}\r")).with_usage());
        }
    };
    let mut flags = parsed.flags;
    if emulator.interpreted {
        flags.purlin.machine_code = Some(MachineCode::Off);
    }
    let options = EmulatorOptions {
        otp: otp.clone(),
        root,
        bindir,
        progname,
        home,
        init_args: emu_args[first_init..].to_vec(),
        emu_args,
        boot_module: parsed.boot_module,
        environment: environment.0,
        detached: split.detached,
        start_epmd,
        announce: split.announce,
        flags,
    };
    Ok(Request::Start {
        options: Box::new(options),
        notices: parsed.notices,
    })
}

fn erlexec(message: impl std::fmt::Display) -> CliError {
    CliError::new(format!("erlexec: {message}"))
}

fn missing(flag: &OsStr) -> CliError {
    CliError::new(format!(
        "Missing argument(s) for '{}'.",
        flag.to_string_lossy()
    ))
    .with_usage()
}

/// Returns `PATH` for the emulator: the runtime's own programs first, and not a second time later.
fn launcher_path(rules: Rules, path: Option<&OsStr>, bindir: &OsStr, root: &OsStr) -> OsString {
    let mut result = bindir.to_os_string();
    let known = path.filter(|path| find_bytes(path.as_bytes(), root.as_bytes()).is_some());
    match known {
        Some(path) if rules.call_with_rest => {
            for entry in path.as_bytes().split(|byte| *byte == b':') {
                if entry != bindir.as_bytes() {
                    result.push(":");
                    result.push(OsStr::from_bytes(entry));
                }
            }
        }
        Some(path) => {
            result.push(":");
            let slug = result.as_bytes().to_vec();
            let mut rest = path.as_bytes();
            while let Some(at) = find_bytes(rest, &slug) {
                result.push(OsStr::from_bytes(&rest[..at]));
                rest = &rest[at + slug.len()..];
            }
            result.push(OsStr::from_bytes(rest));
        }
        None => {
            result.push(":");
            result.push(root);
            result.push("/bin");
            if path.is_some() || !rules.call_with_rest {
                result.push(":");
            }
            result.push(path.unwrap_or_default());
        }
    }
    result
}

fn find_bytes(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return Some(0);
    }
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// The emulator that `-emu_type` and `-emu_flavor` name.
struct Emulator {
    file_name: OsString,
    ours: bool,
    /// Whether the flavour without machine code is requested.
    interpreted: bool,
}

impl Emulator {
    fn of(args: &[OsString], emu: OsString) -> Result<Emulator, CliError> {
        let (mut emu_type, mut flavor) = (None, OsString::from("smp"));
        let mut at = 1;
        while at < args.len() {
            match args[at].as_bytes() {
                b"-smp" if args.get(at + 1).is_some_and(|arg| arg == "disable") => {
                    return Err(no_smp_disable());
                }
                b"-smpdisable" => return Err(no_smp_disable()),
                b"-extra" => break,
                arg if arg == CALL_WITH_REST.as_bytes() => break,
                b"-emu_type" => {
                    at += 1;
                    emu_type = Some(value_of(args, at - 1)?.clone());
                }
                b"-emu_flavor" => {
                    at += 1;
                    flavor = value_of(args, at - 1)?.clone();
                }
                _ => {}
            }
            at += 1;
        }
        let mut file_name = emu;
        let emu_type = emu_type.filter(|emu_type| emu_type != "opt");
        // Stock has executables with these names if it was built with both.
        let interpreted = flavor == "emu";
        let ours = emu_type.is_none() && (interpreted || flavor == "smp" || flavor == "jit");
        if let Some(emu_type) = emu_type {
            file_name.push(".");
            file_name.push(emu_type);
        }
        file_name.push(".");
        file_name.push(flavor);
        Ok(Emulator {
            file_name,
            ours,
            interpreted,
        })
    }

    /// Checks that the plain emulator is named, since Purlin replaces no other build.
    fn check(&self) -> Result<(), CliError> {
        if self.ours {
            return Ok(());
        }
        Err(erlexec(
            "Invalid emulator type or flavor. Available combinations are: \n  -emu_flavor smp\n",
        ))
    }
}

fn no_smp_disable() -> CliError {
    CliError::new("Argument '-smp disable' not supported. Use \"+S 1\" instead.").with_usage()
}

/// Returns the argument after the flag at `at`, which must be present.
fn value_of(args: &[OsString], at: usize) -> Result<&OsString, CliError> {
    args.get(at + 1)
        .filter(|value| *value != "--")
        .ok_or_else(|| missing(&args[at]))
}

/// A request that the command line makes before the emulator is looked at.
enum Early {
    EmulatorName,
    Man(Vec<OsString>),
}

impl Early {
    /// Returns the request that ends the launcher here.
    fn request(self, emulator: OsString, mut environment: Environment) -> Request {
        match self {
            Early::EmulatorName => {
                let mut name = emulator.into_vec();
                name.push(b'\n');
                Request::Print(name)
            }
            Early::Man(argv) => {
                environment.set("MANSECT", "3erl:1:5:7");
                Request::Exec {
                    argv,
                    environment: environment.0,
                }
            }
        }
    }
}

/// A form in which the emulator's argument vector is printed instead of starting it.
enum Print {
    Lines,
    Quoted,
}

impl Print {
    /// Returns the text for that vector; `program` stands for its first word.
    fn text(&self, program: &OsStr, emu_args: &[OsString]) -> Vec<u8> {
        let mut text = Vec::new();
        let rest = emu_args[1..].iter().map(OsString::as_os_str);
        match self {
            Print::Quoted => {
                for arg in std::iter::once(program).chain(rest) {
                    text.push(b'"');
                    text.extend_from_slice(arg.as_bytes());
                    text.extend_from_slice(b"\" ");
                }
                text.push(b'\n');
            }
            Print::Lines => {
                for arg in rest {
                    text.extend_from_slice(arg.as_bytes());
                    text.push(b'\n');
                }
            }
        }
        text
    }
}

/// The command line while it is split into the emulator's part and that of `init`.
struct Split {
    rules: Rules,
    emu: Vec<OsString>,
    init: Vec<OsString>,
    detached: bool,
    announce: bool,
    print: Option<Print>,
    distributed: bool,
    start_epmd: bool,
    no_epmd: bool,
    proto_dist: bool,
    halt_afterwards: bool,
    epmd_command: Option<OsString>,
}

impl Split {
    fn new(rules: Rules, argv0: OsString) -> Split {
        Split {
            rules,
            emu: vec![argv0],
            init: Vec::new(),
            detached: false,
            announce: false,
            print: None,
            distributed: false,
            start_epmd: true,
            no_epmd: false,
            proto_dist: false,
            halt_afterwards: false,
            epmd_command: None,
        }
    }

    fn init(&mut self, arg: impl Into<OsString>) {
        self.init.push(arg.into());
    }

    fn init_all<const N: usize>(&mut self, args: [OsString; N]) {
        self.init.extend(args);
    }

    /// Returns the shell command that starts the port mapper, if the node needs it.
    fn epmd_start(&self, bindir: &OsStr) -> Option<OsString> {
        (self.distributed && self.start_epmd).then(|| {
            self.epmd_command.clone().unwrap_or_else(|| {
                let mut command = OsString::from("\"");
                command.push(Path::new(bindir).join("epmd"));
                command.push("\" -daemon");
                command
            })
        })
    }

    fn no_shell(&mut self) {
        self.init_all(["-noshell".into(), "-noinput".into()]);
    }

    fn arguments(
        &mut self,
        args: &[OsString],
        environment: &mut Environment,
    ) -> Result<Option<Early>, CliError> {
        let mut at = 1;
        while at < args.len() {
            let arg = &args[at];
            match arg.as_bytes() {
                arg if self.rules.call_with_rest && arg == CALL_WITH_REST.as_bytes() => {
                    self.init_all(["-noshell".into(), "-S".into()]);
                    self.init.extend_from_slice(&args[at + 1..]);
                    return Ok(None);
                }
                [b'+', ..] => at += self.emulator_flag(args, at)?,
                b"-compile" => {
                    self.no_shell();
                    self.init_all(["-s".into(), "c".into(), "lc_batch".into()]);
                    self.emu.push("-B".into());
                    self.halt_afterwards = false;
                }
                b"-configfd" => {
                    if value_of(args, at)? == "0" {
                        self.no_shell();
                    }
                    self.init(arg);
                }
                b"-detached" => {
                    self.detached = true;
                    if self.rules.call_with_rest {
                        self.init(arg);
                    }
                    self.no_shell();
                }
                b"-extra" => {
                    self.init.extend_from_slice(&args[at..]);
                    return Ok(None);
                }
                b"-emu_args" => self.announce = true,
                b"-emu_args_exit" => self.print = Some(Print::Lines),
                // The spelling of the flag is stock's.
                b"-emu_qouted_cmd_exit" => self.print = Some(Print::Quoted),
                b"-emu_name_exit" => return Ok(Some(Early::EmulatorName)),
                b"-keep_window" => {}
                b"-make" => {
                    self.no_shell();
                    self.init_all(["-s".into(), "make".into(), "all_or_nothing".into()]);
                    self.emu.push("-B".into());
                    self.halt_afterwards = true;
                    return Ok(None);
                }
                b"-man" => {
                    let own = args[at..]
                        .iter()
                        .take_while(|arg| !arg.as_bytes().starts_with(b"--"));
                    let mut argv: Vec<OsString> = match self.rules.call_with_rest {
                        true => own.cloned().collect(),
                        false => args[at..].to_vec(),
                    };
                    argv[0] = "man".into();
                    return Ok(Some(Early::Man(argv)));
                }
                b"-noinput" => self.no_shell(),
                b"-no_epmd" => {
                    self.init(arg);
                    self.no_epmd = true;
                    self.start_epmd = false;
                }
                b"-version" => self.emu.push("-V".into()),
                _ => match self.valued(args, at, environment)? {
                    Some(used) => at += used,
                    None => self.init(arg),
                },
            }
            at += 1;
        }
        Ok(None)
    }

    /// Handles the flag at `at` if it takes a value. Returns the number of words that it used
    /// beyond the first; `None` if it is another argument.
    fn valued(
        &mut self,
        args: &[OsString],
        at: usize,
        environment: &mut Environment,
    ) -> Result<Option<usize>, CliError> {
        let arg = &args[at];
        match arg.as_bytes() {
            b"-env" => {
                let name = value_of(args, at)?.clone();
                let value = args
                    .get(at + 2)
                    .filter(|value| *value != "--")
                    .ok_or_else(|| missing(arg))?;
                environment.set(name, value);
                return Ok(Some(2));
            }
            b"-epmd" => {
                self.epmd_command = Some(value_of(args, at)?.clone());
            }
            b"-name" | b"-sname" => {
                let value = value_of(args, at)?.clone();
                self.init_all([arg.clone(), value]);
                self.distributed = true;
            }
            b"-proto_dist" => {
                let value = value_of(args, at)?.clone();
                self.init_all([arg.clone(), value]);
                self.proto_dist = true;
            }
            b"-start_epmd" => {
                let value = value_of(args, at)?.clone();
                self.start_epmd = match value.as_bytes() {
                    b"true" => true,
                    b"false" => false,
                    _ => {
                        let message = "Expected boolean argument for '-start_epmd'.";
                        return Err(CliError::new(message).with_usage());
                    }
                };
                self.init_all([arg.clone(), value]);
            }
            _ => return Ok(None),
        }
        Ok(Some(1))
    }

    /// Moves the flag at `at`, and its value if that is the next word, to the emulator's part.
    /// Returns the number of words taken beyond the first.
    fn emulator_flag(&mut self, args: &[OsString], at: usize) -> Result<usize, CliError> {
        let arg = &args[at];
        let name = &arg.as_bytes()[1..];
        let next = args.get(at + 1).map(|next| next.as_bytes());
        let mut flag = OsString::from("-");
        flag.push(OsStr::from_bytes(name));
        let word = std::str::from_utf8(name).unwrap_or("");
        let takes_next = match name {
            [b'B', rest @ ..] => match rest.first() {
                Some(b'i' | b'c' | b'd') => false,
                Some(_) => {
                    return Err(missing(&flag));
                }
                None => matches!(next, Some(b"i" | b"c" | b"d")),
            },
            [b'D', b'i', ..] => self.rules.call_with_rest,
            [b'c'] => matches!(next, Some(b"true" | b"false")),
            [b'M', ..] => alloc::takes_next(&word[word.len().min(1)..]),
            [b'J', ..] => true,
            [b'I', ..] => {
                // An unknown polling flag counts as one without its argument.
                let (row, _) = flags::find(word, self.rules.release).ok_or_else(|| missing(arg))?;
                row.name.len() == word.len()
            }
            [b'S', b'D', kind @ ..] => {
                let known = [&b"cpu"[..], b"Pcpu", b"io"]
                    .iter()
                    .any(|known| kind.starts_with(known));
                if !known {
                    return Err(missing(arg));
                }
                matches!(kind, b"cpu" | b"Pcpu" | b"io")
            }
            _ => flags::find(word, self.rules.release)
                .is_some_and(|(row, glued)| row.takes_next && glued.is_empty()),
        };
        self.emu.push(flag);
        if takes_next {
            self.emu.push(value_of(args, at)?.clone());
        }
        Ok(usize::from(takes_next))
    }
}

/// Returns the command line with the additions from the environment and argument files, `argv[0]`
/// first.
fn merged_arguments(
    argv: &[OsString],
    environment: &Environment,
    rules: Rules,
) -> Result<Vec<OsString>, CliError> {
    let command_line = argv.get(1..).unwrap_or_default();
    let from = |name: &str| {
        let value = environment
            .get(name)
            .map(OsStr::as_bytes)
            .unwrap_or_default();
        ended_words(value, false, rules)
    };
    let mut sources = vec![
        from(&format!("ERL_OTP{}_FLAGS", rules.release)),
        from("ERL_AFLAGS"),
    ];
    let here = sources.len();
    sources.extend([command_line.to_vec(), from("ERL_FLAGS"), from("ERL_ZFLAGS")]);
    let others = sources
        .iter()
        .enumerate()
        .any(|(at, words)| at != here && !words.is_empty());
    let mut plain = command_line.iter().take_while(|arg| *arg != "-extra");
    if !rules.call_with_rest && !others && !plain.any(|arg| arg == "-args_file") {
        return Ok(argv.to_vec());
    }
    let mut merged = Merged {
        rules,
        args: argv.iter().take(1).cloned().collect(),
        extra: vec![],
    };
    let mut call = Vec::new();
    for (source, words) in sources.into_iter().enumerate() {
        let separate = source == here && !words.is_empty();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_bytes() {
                b"-args_file" => {
                    let name = words.next().ok_or_else(|| missing(&word))?;
                    merged.file(&name)?;
                }
                b"-extra" => {
                    merged.extra.extend(words.by_ref());
                    if rules.call_with_rest {
                        merged.args.push("--".into());
                    }
                }
                b"-S" if rules.call_with_rest && source == here => {
                    // A `--` of the user's must not look like one that separates sources.
                    let escaped = |word| if word == "--" { "\\--".into() } else { word };
                    call.push(CALL_WITH_REST.into());
                    call.extend(words.by_ref().map(escaped));
                    merged.args.push("--".into());
                }
                _ => merged.args.push(word),
            }
        }
        if separate {
            merged.args.push("--".into());
        }
    }
    if !merged.extra.is_empty() {
        merged.args.push("-extra".into());
        merged.args.append(&mut merged.extra);
    }
    merged.args.append(&mut call);
    Ok(merged.args)
}

/// Returns the words of a variable or file, with a `--` after them unless there are none.
fn ended_words(text: &[u8], comments: bool, rules: Rules) -> Vec<OsString> {
    let mut words = split_words(text, comments);
    let open = rules.call_with_rest && words.iter().any(|word| word == "-extra");
    if !words.is_empty() && !open {
        words.push("--".into());
    }
    words
}

struct Merged {
    rules: Rules,
    args: Vec<OsString>,
    extra: Vec<OsString>,
}

/// Maximum depth of nested argument files: more means that a file names itself.
const MAX_NESTED_FILES: usize = 100;

impl Merged {
    fn file(&mut self, name: &OsStr) -> Result<(), CliError> {
        let mut open = vec![read_arguments(name, self.rules)?];
        while let Some(words) = open.last_mut() {
            let Some(word) = words.pop_front() else {
                open.pop();
                continue;
            };
            match word.as_bytes() {
                b"-args_file" => {
                    let name = words.pop_front().ok_or_else(|| missing(&word))?;
                    if open.len() == MAX_NESTED_FILES {
                        return Err(CliError::new(format!(
                            "Arguments file \"{}\" is nested too deep: {MAX_NESTED_FILES} files",
                            name.to_string_lossy()
                        ))
                        .with_usage());
                    }
                    open.push(read_arguments(&name, self.rules)?);
                }
                b"-extra" => self.extra.extend(words.drain(..)),
                _ => self.args.push(word),
            }
        }
        Ok(())
    }
}

/// Reads the words of an argument file, with a `--` after them unless there are none.
fn read_arguments(name: &OsStr, rules: Rules) -> Result<VecDeque<OsString>, CliError> {
    let shown = name.to_string_lossy();
    let fail = |error: std::io::Error, how: String| {
        let error = error.to_string();
        let reason = error.split(" (os error").next().unwrap_or_default();
        CliError::new(format!("Failed to {how}: {reason}")).with_usage()
    };
    let mut file = std::fs::File::open(name).map_err(|error| {
        let here = std::env::current_dir().unwrap_or_default();
        fail(
            error,
            format!("open arguments file \"{shown}\" at \"{}\"", here.display()),
        )
    })?;
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut file, &mut text)
        .map_err(|error| fail(error, format!("read arguments file \"{shown}\"")))?;
    let end = text
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(text.len());
    Ok(ended_words(&text[..end], true, rules).into())
}

/// Splits a string as a shell would, with `\x`, `'…'` and `"…"` (nothing is special between
/// quotes). In files, comments go from `#` to the end of the line.
fn split_words(text: &[u8], comments: bool) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut bytes = text.iter().copied().peekable();
    let space = |byte: u8| matches!(byte, b' ' | 9..=13);
    loop {
        while bytes.next_if(|byte| space(*byte)).is_some() {}
        let Some(&first) = bytes.peek() else {
            return words;
        };
        if comments && first == b'#' {
            while bytes.next_if(|byte| *byte != b'\n').is_some() {}
            continue;
        }
        let mut word = Vec::new();
        while let Some(byte) = bytes.next_if(|byte| !(space(*byte) || comments && *byte == b'#')) {
            match byte {
                b'"' | b'\'' => {
                    while let Some(inner) = bytes.next_if(|inner| *inner != byte) {
                        word.push(inner);
                    }
                    bytes.next();
                }
                b'\\' => word.extend(bytes.next()),
                _ => word.push(byte),
            }
        }
        words.push(OsString::from_vec(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_string() {
        for (text, comments, expected) in [
            ("", false, &[][..]),
            ("  a  b\tc\n", false, &["a", "b", "c"]),
            (r#"a"b c"d 'e "f' g\ h"#, false, &["ab cd", "e \"f", "g h"]),
            (r#""" '' x"#, false, &["", "", "x"]),
            (r#""open end"#, false, &["open end"]),
            ("a#b # c", false, &["a#b", "#", "c"]),
            ("a#b # c\nd '#e'", true, &["a", "d", "#e"]),
            ("x\\", false, &["x"]),
            (r#""a\"b" c"#, false, &["a\\b c"]),
        ] {
            let got = split_words(text.as_bytes(), comments);
            assert_eq!(
                got,
                expected.iter().map(OsString::from).collect::<Vec<_>>(),
                "{text:?}"
            );
        }
    }

    #[test]
    fn path_for_the_emulator() {
        for (path, older, newer) in [
            (None, "/r/erts/bin:/r/bin:", "/r/erts/bin:/r/bin"),
            (
                Some("/bin"),
                "/r/erts/bin:/r/bin:/bin",
                "/r/erts/bin:/r/bin:/bin",
            ),
            (
                Some("/bin:/r/bin"),
                "/r/erts/bin:/bin:/r/bin",
                "/r/erts/bin:/bin:/r/bin",
            ),
            (
                Some("/r/erts/bin:/r/erts/bin:/x"),
                "/r/erts/bin:/x",
                "/r/erts/bin:/x",
            ),
        ] {
            for (expected, call_with_rest) in [(older, false), (newer, true)] {
                let rules = Rules {
                    release: 0,
                    call_with_rest,
                };
                let path = path.map(OsStr::new);
                let got = launcher_path(rules, path, "/r/erts/bin".as_ref(), "/r".as_ref());
                assert_eq!(got, expected, "{path:?}");
            }
        }
    }

    /// The differences of later releases, from their documentation.
    #[test]
    fn calling_a_function_with_the_rest() {
        let rules = Rules {
            release: 27,
            call_with_rest: true,
        };
        for (line, flags, init) in [
            (
                "a -S m f +P -- -x",
                "",
                "a -- -- -noshell -S m f +P \\-- -x",
            ),
            ("a -extra b", "", "a -- -- -extra b"),
            ("a", "-S m f", "a -- -S m f --"),
            (
                "-detached",
                "-extra b",
                "-detached -noshell -noinput -- -- -extra b",
            ),
        ] {
            let words = |line: &str| {
                line.split_whitespace()
                    .map(OsString::from)
                    .collect::<Vec<_>>()
            };
            let mut environment = Environment::default();
            environment.set("ERL_FLAGS", flags);
            let argv = [words("erl"), words(line)].concat();
            let args = merged_arguments(&argv, &environment, rules).expect("is a command line");
            let mut split = Split::new(rules, "beam".into());
            split
                .arguments(&args, &mut environment)
                .expect("is well formed");
            assert_eq!(split.init, words(init), "{line} {flags}");
        }
    }
}
