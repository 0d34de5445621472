//! Names of captured variables, from the debug information of module files.
//!
//! The runtime knows a captured variable by its index. Only the compiler knows which variable that
//! is. So an emulator is started that reads the debug information, compiles it again, and lists
//! what each fun captures in the compiler's intermediate code. Arguments and variables bound by
//! patterns have numbers there. Core Erlang shows which name an argument gets. Whatever remains is
//! one of the fun's free variables that are still unknown: one name, or one of a few. Without a
//! file, or without debug information in it, variables have no names.

use std::path::Path;
use std::process::{Command, Stdio};

use purlin_diagnostics::json::Json;
use purlin_runtime::code::object_files;

use super::{number, word};
use crate::context::Context;
use crate::temporary::Folder;

/// Maximum number of funs that are looked up.
const MOST_FUNS: usize = 50;

/// Prints a line for each requested fun: the variables in the order of capture, and its free
/// variables in any order. The arguments are a folder to write to, then pairs of function and file.
const HELPER: &str = r#"
[Dir | Asked] = init:get_plain_arguments(),
Name = fun(V) when is_atom(V) -> atom_to_list(V); (_) -> "" end,
Funs = fun(T, Acc) ->
    case cerl:type(T) =:= 'fun' andalso lists:keyfind(id, 1, cerl:get_ann(T)) of
        {id, {_, _, F}} -> Acc#{F => [Name(V) || V <- cerl_trees:free_variables(T), not is_tuple(V)]};
        _ -> Acc
    end
end,
Values = fun(T) -> case cerl:is_c_values(T) of true -> cerl:values_es(T); false -> [T] end end,
Bound = fun(P) ->
    case cerl:type(P) of
        var -> [Name(cerl:var_name(P))];
        alias -> [Name(cerl:var_name(cerl:alias_var(P)))];
        _ -> []
    end
end,
Cases = fun(T, Acc) ->
    case cerl:type(T) of
        'case' ->
            Args = Values(cerl:case_arg(T)),
            Pairs = [{cerl:var_name(A), B} || C <- cerl:case_clauses(T),
                        length(cerl:clause_pats(C)) =:= length(Args),
                        {A, P} <- lists:zip(Args, cerl:clause_pats(C)), cerl:is_c_var(A),
                        is_integer(cerl:var_name(A)), B <- Bound(P)],
            Pairs ++ Acc;
        _ -> Acc
    end
end,
Definition = fun({_, T}, Acc) ->
    Pairs = cerl_trees:fold(Cases, [], T),
    maps:fold(fun(F, Free, A) -> A#{F => {Free, Pairs}} end, Acc, cerl_trees:fold(Funs, #{}, T))
end,
Place = fun
    ("_" ++ Digits = Token, Free, Pairs) ->
        case catch list_to_integer(Digits) of
            N when is_integer(N) ->
                case lists:usort([B || {A, B} <- Pairs, A =:= N, lists:member(B, Free)]) of
                    [B] -> B;
                    _ -> ""
                end;
            _ -> Token
        end;
    (Token, _, _) -> Token
end,
Read = fun(File) ->
    try
        Options = [binary, return, no_spawn_compiler_process],
        Compile = case filename:extension(File) of
            ".erl" ->
                fun(More) -> compile:noenv_file(File, More ++ Options) end;
            _ ->
                {ok, {M, [{debug_info, {debug_info_v1, Backend, Data}}]}} = beam_lib:chunks(File, [debug_info]),
                {ok, Forms} = Backend:debug_info(erlang_v1, M, Data, []),
                More = [no_auto_import || Backend =/= erl_abstract_code],
                fun(These) -> compile:noenv_forms(Forms, These ++ More ++ Options) end
        end,
        {ok, Module, Core, _} = Compile([to_core0]),
        {ok, _, _, _} = Compile([dssa, {outdir, Dir}]),
        {ok, Text} = file:read_file(filename:join(Dir, atom_to_list(Module) ++ ".ssa")),
        {match, Found} = re:run(Text, "make_fun \\(`('?[^`]*)`/[0-9]+\\), ([^\\n]*)",
                                [global, {capture, all_but_first, list}, unicode]),
        Places = maps:from_list([{list_to_atom(string:trim(F, both, "'")), string:split(Vs, ", ", all)} || [F, Vs] <- Found]),
        {Places, lists:foldl(Definition, #{}, cerl:module_defs(Core))}
    catch _:_ -> {#{}, #{}}
    end
end,
Line = fun(Vs) -> lists:join($ , ["." ++ V || V <- Vs]) end,
Go = fun Go([F, File | Rest], Files) ->
        {Places, Free} = Known = case Files of
            #{File := K} -> K;
            #{} -> Read(File)
        end,
        Fun = list_to_atom(F),
        {Names, Pairs} = maps:get(Fun, Free, {[], []}),
        io:format("~ts|~ts~n", [Line([Place(P, Names, Pairs) || P <- maps:get(Fun, Places, [])]), Line(Names)]),
        Go(Rest, Files#{File => Known});
    Go([], _) -> ok
end,
try Go(Asked, #{}) catch _:_ -> ok end,
halt().
"#;

/// Adds names where they can be found.
///
/// Files that the answer names are compiled, so it must come from a program of this user. `objects`
/// has the files of modules that were loaded from none.
pub fn name(context: &Context, answer: &mut Json, top: usize, objects: Option<&Path>) {
    let mut funs: Vec<[String; 2]> = Vec::new();
    let fun = |captured: &Json| {
        let name = word(captured, &["name"]).to_string();
        let file = word(captured, &["beam"]);
        // A program that was run from its source may have no debug information beside it.
        let readable = file.ends_with(".beam") || file.ends_with(".erl");
        let is_there = readable && Path::new(file).is_file();
        let object = objects.filter(|_| !is_there).and_then(|folder| {
            let object = folder.join(object_files::file_name(word(captured, &["module"]))?);
            object
                .is_file()
                .then(|| object.to_str().map(str::to_string))?
        });
        [name, object.unwrap_or_else(|| file.to_string())]
    };
    each_captured(answer, top, &mut |captured| {
        let fun = fun(captured);
        if Path::new(&fun[1]).is_absolute() && funs.len() < MOST_FUNS && !funs.contains(&fun) {
            funs.push(fun);
        }
    });
    if funs.is_empty() {
        return;
    }
    let Some(lines) = ask(context, &funs) else {
        return;
    };
    let lines: Vec<&str> = lines.lines().collect();
    each_captured(answer, top, &mut |captured| {
        let place = funs.iter().position(|f| *f == fun(captured));
        let Some((places, free)) = place.and_then(|i| lines.get(i)?.split_once('|')) else {
            return;
        };
        let names = |text| -> Vec<&str> {
            str::split(text, ' ')
                .filter_map(|n| n.strip_prefix('.'))
                .collect()
        };
        let (places, free) = (names(places), names(free));
        if places.len() != number(captured, &["count"]) as usize {
            return;
        }
        let elixir = word(captured, &["module"]).starts_with("Elixir.");
        let Some(place) = places.get(number(captured, &["index"]) as usize) else {
            return;
        };
        let known = written(place, elixir).filter(|_| free.contains(place));
        let left = free.iter().filter(|n| !places.contains(n));
        let found: Vec<&str> = match known {
            Some(name) => vec![name],
            None => left.filter_map(|n| written(n, elixir)).collect(),
        };
        if let Json::Object(pairs) = captured {
            let list: Vec<Json> = found.iter().map(|n| Json::from(*n)).collect();
            for (key, value) in pairs {
                match key.as_str() {
                    "variable" if found.len() == 1 => *value = found[0].into(),
                    "variables" => *value = Json::List(list.clone()),
                    _ => {}
                }
            }
        }
    });
}

/// A name as in the source; `None` if the compiler made it.
fn written(name: &str, elixir: bool) -> Option<&str> {
    let name = match elixir {
        true => name.strip_prefix('_')?.split('@').next()?,
        false => name.split('@').next()?,
    };
    let letter = |c: char| c.is_alphabetic() || c == '_';
    let made = name
        .strip_prefix('_')
        .is_some_and(|n| n.chars().all(|c| c.is_ascii_digit()));
    (name.starts_with(letter) && !made).then_some(name)
}

/// Calls `f` with each captured variable of the first causes.
fn each_captured(answer: &mut Json, top: usize, f: &mut impl FnMut(&mut Json)) {
    let Json::Object(pairs) = answer else {
        return;
    };
    for (name, value) in pairs {
        match (name.as_str(), value) {
            ("copies", part) => each_captured(part, top, f),
            ("causes", Json::List(causes)) => {
                for cause in causes.iter_mut().take(top) {
                    if let Json::Object(pairs) = cause
                        && let Some((_, captured)) = pairs.iter_mut().find(|(k, _)| k == "captured")
                        && *captured != Json::Null
                    {
                        f(captured);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The output of the helper.
fn ask(context: &Context, funs: &[[String; 2]]) -> Option<String> {
    let otp = context.otp().ok()?;
    let mut command = Command::new(crate::linker::executable().ok()?);
    command.arg("--otp-root").arg(&otp.root).arg("erl");
    command.args(["+Fexplain", "false", "-noinput", "-boot", "no_dot_erlang"]);
    // The compiler back ends of other languages are beside the modules compiled by them, or are
    // found as their tools are.
    if let Some(elixir) = crate::commands::elixir::library(context) {
        command.arg("-pa").arg(elixir);
    }
    let folder = Folder::temporary("purlin-variables").ok()?;
    command.args(["-eval", HELPER, "-extra"]).arg(&folder.0);
    command.args(funs.iter().flatten());
    command.stdin(Stdio::null()).stderr(Stdio::null());
    for variable in ["ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS"] {
        command.env_remove(variable);
    }
    let output = command.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(written("Data", false), Some("Data"));
        assert_eq!(written("Data@1", false), Some("Data"));
        assert_eq!(written("_Unused", false), Some("_Unused"));
        assert_eq!(written("_12", false), None);
        assert_eq!(written("", false), None);
        assert_eq!(written("_socket@1", true), Some("socket"));
        assert_eq!(written("_@1", true), None);
        assert_eq!(written("_12", true), None);
    }
}
