//! `run FILE [ARGS]`: runs a program from one file, compiled in memory by the stock compilers.
//!
//! Calls `Module:main(Args)`, else `main()`, else `start()`, of the module in the file. When it
//! returns, the program ends with status 0. An uncaught error is printed to standard error and ends
//! it with status 1. Arguments are strings: lists in Erlang, binaries in Elixir.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use purlin_runtime::options::erlexec::Environment;

use super::{elixir, erl, escript, no_option};
use crate::context::Context;
use crate::failure::{Failure, cannot_read, missing_argument, unknown_kind, wrong_file};

/// Code after the definition of `Start(Module, Args)`. It always ends the emulator.
const ERLANG_PRELUDE: &str = "\
    [File | Args] = init:get_plain_arguments(), \
    Say = fun(Format, Data) -> io:format(standard_error, Format, Data) end, \
    Start = fun(Module) -> \
        Has = fun(Name, Arity) -> erlang:function_exported(Module, Name, Arity) end, \
        try \
            case {Has(main, 1), Has(main, 0), Has(start, 0)} of \
                {true, _, _} -> Module:main(Args); \
                {_, true, _} -> Module:main(); \
                {_, _, true} -> Module:start(); \
                _ -> Say(\"~ts: module ~tw exports none of main/1, main/0, start/0~n\", \
                         [File, Module]), \
                     halt(1) \
            end \
        of _ -> halt(0) \
        catch Class:Reason:Stack -> \
            Trim = fun(M, _, _) -> M =:= erl_eval end, \
            Say(\"** ~ts~n\", [erl_error:format_exception(Class, Reason, Stack, \
                               #{stack_trim_fun => Trim})]), \
            halt(1) \
        end \
    end, ";

const RUN_ERL: &str = "\
    Show = fun(Kind, Messages) -> \
        [Say(\"~ts:~ts~ts~ts~n\", \
             [Name, \
              case Place of {Line, Column} -> io_lib:format(\"~w:~w: \", [Line, Column]); \
                            Line when is_integer(Line) -> io_lib:format(\"~w: \", [Line]); \
                            _ -> \" \" end, \
              Kind, Formatter:format_error(Text)]) \
         || {Name, Found} <- Messages, \
            {Place, Formatter, Text} <- [case One of {F, T} -> {none, F, T}; _ -> One end \
                                         || One <- Found]] \
    end, \
    case compile:file(File, [binary, return]) of \
        {ok, Module, Code, Warnings} -> \
            Show(\"Warning: \", Warnings), \
            {module, Module} = code:load_binary(Module, File, Code), \
            Start(Module); \
        {error, Errors, Warnings} -> \
            Show(\"\", Errors), \
            Show(\"Warning: \", Warnings), \
            halt(1) \
    end.";

const RUN_BEAM: &str = "\
    {ok, Code} = file:read_file(File), \
    case beam_lib:chunks(Code, []) of \
        {ok, {Module, []}} -> \
            case code:load_binary(Module, File, Code) of \
                {module, Module} -> Start(Module); \
                {error, Why} -> Say(\"~ts: cannot be loaded: ~tw~n\", [File, Why]), halt(1) \
            end; \
        {error, beam_lib, _} -> Say(\"~ts: not a module file~n\", [File]), halt(1) \
    end.";

/// Code that uses `modules`, the list of what was loaded, and `args`.
const ELIXIR_START: &str = "\
    has = fn name, arity -> \
      Enum.find(modules, &function_exported?(&1, name, arity)) end; \
    cond do \
      module = has.(:main, 1) -> module.main(args); \
      module = has.(:main, 0) -> module.main(); \
      module = has.(:start, 0) -> module.start(); \
      true -> :ok \
    end";

const RUN_EX: &str = "\
    [file | args] = System.argv(); \
    System.argv(args); \
    modules = for {module, _code} <- Code.require_file(file), do: module; ";

const RUN_ELIXIR_BEAM: &str = "\
    [file | args] = System.argv(); \
    System.argv(args); \
    code = File.read!(file); \
    {:ok, {module, []}} = :beam_lib.chunks(code, []); \
    {:module, ^module} = :code.load_binary(module, String.to_charlist(file), code); \
    modules = [module]; ";

/// The way in which a file is run.
enum Kind {
    ElixirScript,
    ElixirModule,
    ElixirBeam,
    Erlang,
    Beam,
    Escript,
}

/// The runner of a program: arguments for `erl`, for the script `elixir`, or for `escript`.
pub enum Program {
    Erl(Vec<OsString>),
    Elixir(Vec<OsString>),
    Escript(Vec<OsString>),
}

pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    match program("run", args)? {
        Program::Erl(words) => erl::start(&context.otp()?, Environment::of_process(), &words),
        Program::Elixir(words) => elixir::script(context, "elixir", &words),
        Program::Escript(args) => escript::run(context, &args),
    }
}

/// The runner for `FILE [ARGS]`, on behalf of the command of that name.
pub fn program(command: &str, args: &[OsString]) -> Result<Program, Failure> {
    let args = match args {
        [first, rest @ ..] if first == "--" => rest,
        args => args,
    };
    let Some((file, rest)) = args.split_first() else {
        let text = format!("{command} needs a file: purlin {command} FILE [ARGS]");
        return Err(missing_argument(text));
    };
    no_option(command, file)?;
    let unreadable = |error| {
        let file = file.to_string_lossy();
        cannot_read(file, &error)
    };
    let source = File::open(file).map_err(unreadable)?;
    if source.metadata().map_err(unreadable)?.is_dir() {
        return Err(wrong_file(file.to_string_lossy(), "it is a directory"));
    }
    let kind = match kind_of_name(Path::new(file)) {
        Some(kind) => kind,
        None => kind_of_first_line(source).ok_or_else(|| {
            let file = file.to_string_lossy();
            let known = ".exs .ex .erl .escript .beam";
            unknown_kind(format!("cannot tell how to run {file}; known are {known}"))
        })?,
    };
    let elixir_code = |code: String| {
        let mut words: Vec<OsString> = vec!["-e".into(), code.into(), "--".into()];
        words.extend(args.iter().cloned());
        Program::Elixir(words)
    };
    let erlang_code = |code: &str| {
        let mut words: Vec<OsString> = vec!["-noshell".into(), "-eval".into()];
        words.extend([format!("{ERLANG_PRELUDE}{code}").into(), "-extra".into()]);
        words.extend(args.iter().cloned());
        Program::Erl(words)
    };
    Ok(match kind {
        Kind::ElixirScript => Program::Elixir([file].into_iter().chain(rest).cloned().collect()),
        Kind::ElixirModule => elixir_code(format!("{RUN_EX}{ELIXIR_START}")),
        Kind::ElixirBeam => elixir_code(format!("{RUN_ELIXIR_BEAM}{ELIXIR_START}")),
        Kind::Erlang => erlang_code(RUN_ERL),
        Kind::Beam => erlang_code(RUN_BEAM),
        Kind::Escript => Program::Escript(args.to_vec()),
    })
}

fn kind_of_name(file: &Path) -> Option<Kind> {
    match file.extension()?.to_str()? {
        "exs" => Some(Kind::ElixirScript),
        "ex" => Some(Kind::ElixirModule),
        "erl" => Some(Kind::Erlang),
        "escript" => Some(Kind::Escript),
        "beam" => {
            let name = file.file_name().unwrap_or_default();
            let elixir = name.as_bytes().starts_with(b"Elixir.");
            Some(if elixir { Kind::ElixirBeam } else { Kind::Beam })
        }
        _ => None,
    }
}

/// The kind of a file whose name does not tell, from its first line: `#!/usr/bin/env escript`.
fn kind_of_first_line(source: File) -> Option<Kind> {
    let mut line = Vec::new();
    BufReader::new(source)
        .take(1024)
        .read_until(b'\n', &mut line)
        .ok()?;
    let interpreter = line.strip_prefix(b"#!")?;
    let mut words = interpreter
        .split(u8::is_ascii_whitespace)
        .filter_map(|word| Path::new(OsStr::from_bytes(word)).file_name());
    words.find_map(|word| match word.to_str()? {
        "escript" => Some(Kind::Escript),
        "elixir" => Some(Kind::ElixirScript),
        _ => None,
    })
}
