//! Modules: parsed, disassembled, loaded, and run. Only exported functions without arguments are
//! run, of modules that call nothing but themselves and natives that only compute.

use crate::world::World;
use purlin_isa::genops;
use purlin_loader::{BeamFile, GenericCode, Operand, disasm_instr};
use purlin_runtime::code;
use purlin_runtime::natives::Kind;
use purlin_term::{Term, atom};

/// Modules all of whose natives only compute.
const PURE: [&str; 6] = ["binary", "lists", "maps", "math", "string", "unicode"];
/// Functions of module `erlang` that aren't allowed in guards, and only compute all the same.
const COMPUTE: [&str; 27] = [
    "++",
    "--",
    "atom_to_binary",
    "atom_to_list",
    "binary_to_integer",
    "binary_to_list",
    "binary_to_term",
    "bitstring_to_list",
    "error",
    "exit",
    "float_to_list",
    "get_module_info",
    "insert_element",
    "integer_to_binary",
    "integer_to_list",
    "iolist_to_binary",
    "iolist_to_iovec",
    "list_to_binary",
    "list_to_bitstring",
    "list_to_tuple",
    "make_tuple",
    "phash2",
    "raise",
    "setelement",
    "term_to_binary",
    "throw",
    "tuple_to_list",
];
/// Instructions that need a process other processes can reach, or whose callee is known only at run
/// time.
const NOT_RUN: [&str; 14] = [
    "send",
    "loop_rec",
    "loop_rec_end",
    "wait",
    "wait_timeout",
    "remove_message",
    "timeout",
    "recv_marker_reserve",
    "recv_marker_bind",
    "recv_marker_clear",
    "recv_marker_use",
    "apply",
    "apply_last",
    "on_load",
];

pub fn run(data: &[u8]) {
    let Ok(file) = BeamFile::parse(data) else {
        return;
    };
    let _ = (
        file.md5(),
        file.locals(),
        file.line(1),
        file.attributes(),
        file.compile_info(),
    );
    let Ok(generic) = GenericCode::decode(&file) else {
        return;
    };
    let mut out = String::new();
    for instr in &generic.instrs {
        disasm_instr(&mut out, &file, &generic, instr);
    }
    let runs = only_computes(&file, &generic);
    purlin_term::region::init();
    let Ok(prepared) = code::prepare(data) else {
        return;
    };
    let name = prepared.name();
    if prepared.has_on_load() {
        return;
    }
    let module = code::finish(prepared);
    if runs {
        let functions: Vec<Term> = module
            .function_names()
            .filter(|&(f, arity)| arity == 0 && module.exports_function(f, 0))
            .map(|(f, _)| f)
            .collect();
        for f in functions {
            let mut w = World::new();
            let _ = w.call(name, f, &[], 20);
        }
    }
    drop(module);
    assert_eq!(code::delete(name), Some(true));
    assert_eq!(code::purge::prepare(name, false), Some(true));
    // SAFETY: nothing runs.
    assert_eq!(unsafe { code::purge::complete(name) }, Some(true));
}

/// Whether whatever the module does stays in its own heap.
fn only_computes(file: &BeamFile, generic: &GenericCode) -> bool {
    let own = file.module();
    let imports = file.imports.iter().all(|i| {
        let (m, f) = (file.atom(i.module), file.atom(i.function));
        let native = code::native(atom::intern(m), atom::intern(f), i.arity);
        match native {
            Some((_, bif)) => {
                bif.kind == Kind::Guard
                    || PURE.contains(&m)
                    || m == "erlang" && COMPUTE.contains(&f)
            }
            None => m == own,
        }
    });
    imports
        && generic
            .instrs
            .iter()
            .all(|i| !NOT_RUN.contains(&genops::name(i.op)))
        && !goes_back(generic)
        && !trusts(generic)
}

/// Whether code takes parts of a term that no test just before has shown to be a cons cell or a
/// large enough tuple, or bits of a term that may be no match context. The loader trusts the
/// compiler with these types.
fn trusts(generic: &GenericCode) -> bool {
    let name = |k: usize| genops::name(generic.instrs[k].op);
    let arg = |k: usize, n: usize| {
        let args = generic.args(&generic.instrs[k]);
        args.get(n).map(|a| a.untyped())
    };
    let known = |at: usize, of: Option<Operand>| {
        // What it says of the same register, and doesn't change it.
        let taken = |k: &usize| {
            matches!(name(*k), "get_tuple_element" | "get_hd" | "get_tl")
                && arg(*k, 0) == of
                && !generic.args(&generic.instrs[*k])[1..]
                    .iter()
                    .any(|a| Some(a.untyped()) == of)
        };
        (0..at).rev().find(|k| !taken(k))
    };
    (0..generic.instrs.len()).any(|at| {
        let of = arg(at, 0);
        match name(at) {
            "get_list" | "get_hd" | "get_tl" => {
                known(at, of).is_none_or(|k| name(k) != "is_nonempty_list" || arg(k, 1) != of)
            }
            "get_tuple_element" => known(at, of).is_none_or(|k| {
                let tested = matches!(name(k), "test_arity" | "is_tagged_tuple");
                let large = match (arg(k, 2), arg(at, 1)) {
                    (Some(Operand::U(arity)), Some(Operand::U(i))) => i < arity,
                    _ => false,
                };
                !tested || arg(k, 1) != of || !large
            }),
            "update_record" | "set_tuple_element" => true,
            // One instruction does not show whether a register holds a match context, nor its
            // position.
            "bs_match" | "bs_match_string" | "bs_set_position" => true,
            n => ["bs_get_", "bs_skip_", "bs_test_", "bs_restore", "bs_save"]
                .iter()
                .any(|p| n.starts_with(p)),
        }
    })
}

/// Whether an instruction other than a call leads to an earlier one. A compiler emits that only for
/// receives. Such a loop may run forever, and takes no reductions.
fn goes_back(generic: &GenericCode) -> bool {
    let back = |to: Operand, at: usize| match to {
        // Where no clause fits, the function ends.
        Operand::Label(l) if generic.functions.iter().any(|f| f.func_label == l) => false,
        Operand::Label(l) => generic
            .labels
            .get(l as usize)
            .is_some_and(|&i| i as usize <= at),
        _ => false,
    };
    generic.instrs.iter().enumerate().any(|(at, i)| {
        let name = genops::name(i.op);
        let counted = name.starts_with("call") || name.starts_with("make_fun") || name == "label";
        !counted
            && generic.args(i).iter().any(|&a| match a {
                Operand::List { .. } => generic.list(a).iter().any(|&e| back(e, at)),
                a => back(a, at),
            })
    })
}
