//! `disasm FILE.beam`: prints the code of a module file. With `--native`, prints the machine code
//! of its functions, each part below the instruction that it is made from.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write;
use std::ops::Range;
use std::rc::Rc;

use iced_x86::{Decoder, DecoderOptions, FastFormatter, SymbolResolver, SymbolResult};

use purlin_loader::{BeamFile, disasm_generic};
use purlin_runtime::compiled::{NativeFunction, Processor, native_functions};
use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

use crate::context::Context;
use crate::failure::{
    Failure, NO_INPUT, SYSTEM, bad_value, cannot_print, cannot_read, missing_argument, no_option,
    surplus_argument,
};
use purlin_messages as messages;

pub fn run(_context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let request = Request::parse(args)?;
    let shown = request.file.to_string_lossy();
    let bytes = std::fs::read(request.file).map_err(|error| cannot_read(&shown, &error))?;
    let damaged = |code, error: &dyn std::fmt::Display| {
        Failure::new(code, NO_INPUT, format!("{shown}: {error}"))
    };
    let mut text = String::new();
    if request.generic || !(request.specific || request.native) {
        text = BeamFile::parse(&bytes)
            .and_then(|module| disasm_generic(&module))
            .map_err(|error| damaged(error.code(), &error))?;
    }
    if request.specific {
        purlin_runtime::natives::install();
        text += &purlin_runtime::code::disasm_specific(&bytes)
            .map_err(|error| damaged(error.code(), &error))?;
    }
    if request.native {
        show_native(&mut text, &request, &bytes)?;
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(cannot_print(&error)),
        Ok(()) => Ok(0),
    }
}

/// The arguments of the command.
struct Request<'a> {
    file: &'a OsString,
    generic: bool,
    specific: bool,
    native: bool,
    /// The function whose machine code is printed. None: all of them.
    function: Option<Wanted>,
    processor: Processor,
}

impl Request<'_> {
    fn parse(args: &[OsString]) -> Result<Request<'_>, Failure> {
        let mut file = None;
        let (mut generic, mut specific, mut native) = (false, false, false);
        let mut function = None;
        let mut processor = Processor::HOST;
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match arg.to_str() {
                Some("--generic") => generic = true,
                Some("--specific") => specific = true,
                Some("--native") => native = true,
                Some("--machine") => {
                    processor = match rest.next().and_then(|name| name.to_str()) {
                        Some("x86-64") => Processor::X64,
                        Some("aarch64") => Processor::A64,
                        _ => {
                            let text = "--machine needs a processor: x86-64 or aarch64";
                            return Err(bad_value(text));
                        }
                    };
                }
                Some(option) if option.starts_with('-') => {
                    return Err(no_option("disasm", option));
                }
                Some(name) if native && file.is_some() && function.is_none() => {
                    function = Some(wanted(name)?);
                }
                _ if file.is_some() => {
                    return Err(surplus_argument("disasm shows one file at a time"));
                }
                _ => file = Some(arg),
            }
        }
        let Some(file) = file else {
            let text = "disasm needs a file: purlin disasm FILE.beam";
            return Err(missing_argument(text));
        };
        Ok(Request {
            file,
            generic,
            specific,
            native,
            function,
            processor,
        })
    }
}

/// Writes the machine code of the requested functions of a module.
fn show_native(text: &mut String, request: &Request, bytes: &[u8]) -> Result<(), Failure> {
    purlin_runtime::natives::install();
    let no_input = |code, what: &dyn std::fmt::Display| {
        let shown = request.file.to_string_lossy();
        Failure::new(code, NO_INPUT, format!("{shown}: {what}"))
    };
    let function = request.function.as_ref();
    let is_wanted = |name: &str, arity: u32| {
        function.is_none_or(|f| f.name == name && f.arity.is_none_or(|a| a == arity))
    };
    let made = native_functions(bytes, &is_wanted, request.processor)
        .map_err(|error| no_input(error.code(), &error))?;
    let Some(mut module) = made else {
        return Err(Failure::new(
            messages::NO_MACHINE_CODE,
            SYSTEM,
            "there is no machine code for this machine",
        ));
    };
    let right = function.is_none_or(|f| f.module.as_ref().is_none_or(|m| *m == module.name));
    if module.functions.is_empty() || !right {
        return Err(no_input(
            messages::NO_FUNCTION,
            &"there is no such function",
        ));
    }
    let _ = writeln!(text, "module {}", module.name);
    let functions = std::mem::take(&mut module.functions);
    let symbols = std::mem::take(&mut module.symbols);
    let known = symbols.into_iter().map(|s| (s.address, s.name));
    let names = Names {
        known: Rc::new(known.collect()),
        bytecode: module.bytecode,
        code: 0..0,
    };
    for f in &functions {
        show(text, f, &names, request.processor);
    }
    Ok(())
}

/// A requested function.
struct Wanted {
    module: Option<String>,
    name: String,
    arity: Option<u32>,
}

/// Parses `MODULE:FUNCTION/ARITY`; module and arity are optional.
fn wanted(text: &str) -> Result<Wanted, Failure> {
    let wrong = || bad_value(format!("'{text}' is not MODULE:FUNCTION/ARITY"));
    let (module, rest) = match text.split_once(':') {
        Some((m, rest)) => (Some(m.to_string()), rest),
        None => (None, text),
    };
    // Names of operators and funs may have slashes.
    let (name, arity) = match rest.rsplit_once('/') {
        Some((name, arity)) if !name.is_empty() => {
            (name, Some(arity.parse().map_err(|_| wrong())?))
        }
        _ => (rest, None),
    };
    let bare = |t: &str| t.trim_matches('\'').to_string();
    match name {
        "" => Err(wrong()),
        name => Ok(Wanted {
            module: module.map(|m| bare(&m)),
            name: bare(name),
            arity,
        }),
    }
}

/// Names of addresses in machine code.
#[derive(Clone)]
struct Names {
    known: Rc<HashMap<u64, String>>,
    /// The address range of the bytecode, and the function.
    bytecode: Range<u64>,
    code: Range<u64>,
}

impl Names {
    /// Returns the name of an address, if it has one.
    fn of(&self, address: u64) -> Option<Cow<'_, str>> {
        if let Some(name) = self.known.get(&address) {
            return Some(name.into());
        }
        if self.code.contains(&address) {
            return Some(format!("+{:04x}", address - self.code.start).into());
        }
        // Counted as by `--specific`.
        let word = || format!("word {}", (address - self.bytecode.start) / 8).into();
        self.bytecode.contains(&address).then(word)
    }
}

impl SymbolResolver for Names {
    fn symbol(
        &mut self,
        _: &iced_x86::Instruction,
        _: u32,
        _: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        self.of(address).map(|name| match name {
            Cow::Borrowed(name) => SymbolResult::with_str(address, name),
            Cow::Owned(name) => SymbolResult::with_string(address, name),
        })
    }
}

/// Returns each instruction of machine code: its offset, its text, and whether it is a trap.
fn instructions(
    f: &NativeFunction,
    names: Names,
    processor: Processor,
) -> Vec<(u32, String, bool)> {
    match processor {
        Processor::X64 => {
            let mut formatter = FastFormatter::try_with_options(Some(Box::new(names))).ok();
            Decoder::with_ip(64, &f.bytes, f.at, DecoderOptions::NONE)
                .iter()
                .map(|i| {
                    let mut text = String::new();
                    match &mut formatter {
                        Some(formatter) => formatter.format(&i, &mut text),
                        None => text.push('?'),
                    }
                    let at = (i.ip() - f.at) as u32;
                    (at, text, i.code() == iced_x86::Code::Ud2)
                })
                .collect()
        }
        Processor::A64 => {
            let decoder = InstDecoder::default();
            let words = f.bytes.chunks_exact(4).enumerate();
            words
                .map(|(k, word)| {
                    let text = match decoder.decode(&mut U8Reader::new(word)) {
                        Ok(i) => with_target(&i.to_string(), f.at + 4 * k as u64, &names),
                        // A trap, or a word of a table.
                        Err(_) => format!(
                            ".word 0x{:08x}",
                            u32::from_le_bytes([word[0], word[1], word[2], word[3]])
                        ),
                    };
                    (4 * k as u32, text, word == [0; 4])
                })
                .collect()
        }
    }
}

/// Returns the text of an instruction at an address, with a name for the target of a branch, which
/// the disassembler shows as a distance: `$+0x40`.
fn with_target(text: &str, address: u64, names: &Names) -> String {
    let target = || {
        let (before, distance) = text.split_once('$')?;
        let digits = distance.get(3..)?;
        let n = u64::from_str_radix(digits, 16).ok()?;
        let to = match distance.get(..3)? {
            "+0x" => address.wrapping_add(n),
            "-0x" => address.wrapping_sub(n),
            _ => return None,
        };
        Some(match names.of(to) {
            Some(name) => format!("{before}{name}"),
            None => format!("{before}0x{to:x}"),
        })
    };
    target().unwrap_or_else(|| text.to_string())
}

fn show(text: &mut String, f: &NativeFunction, names: &Names, processor: Processor) {
    let _ = write!(text, "\nfunction {}/{}: ", f.name, f.arity);
    if let Some(why) = f.refused {
        let _ = writeln!(text, "interpreted, {why}");
        return;
    }
    let _ = writeln!(text, "{} bytes from {} words", f.bytes.len(), f.words);
    let names = Names {
        code: f.at..f.at + f.bytes.len() as u64,
        ..names.clone()
    };
    let mut places = f.places.iter().peekable();
    let mut notes = f.notes.iter().peekable();
    let last = f.places.last().map_or(0, |p| p.0);
    let mut cold = false;
    for (at, shown, trap) in instructions(f, names, processor) {
        while let Some(p) = places.next_if(|p| p.0 <= at) {
            let _ = writeln!(text, "; {}", p.1);
        }
        while let Some(n) = notes.next_if(|n| n.0 <= at) {
            let _ = writeln!(text, ";   {}", n.1);
        }
        let _ = writeln!(text, "  {at:04x}  {shown}");
        // The body ends with a trap; rare paths are behind it.
        if !cold && at >= last && trap {
            let _ = writeln!(text, "; what is rare");
            cold = true;
        }
    }
}
