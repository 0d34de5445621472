//! The machine code that the functions of a file would get, for `purlin disasm --native`.
//!
//! It is made as for a running program, but not stored in executable memory: addresses of stubs and
//! of bytecode are those of this process.

use super::{env, function_of};
use crate::code::{self, LoadFailure, Module};
use purlin_interp::compiled as engine;
use purlin_isa::ops::Op;
use purlin_jit::compiler::{Note, compile_for};
use purlin_jit::machine::Processor;
use purlin_jit::{BIF_STUBS, Env, FUN_STUBS};
use purlin_loader::lower::LoweredFunction;
use purlin_term::print::{Style, format_term};
use purlin_term::{Term, atom, fun};

/// The address for which machine code is made: within reach of a jump from the stubs, and away from
/// bytecode and this executable.
const BASE: u64 = 0x1000_0000;
const STUBS_AT: u64 = BASE - 0x10_0000;

/// An address with a name.
pub struct Symbol {
    pub address: u64,
    pub name: String,
}

/// The machine code of a module's functions.
pub struct NativeModule {
    pub name: String,
    /// Named addresses other than its functions.
    pub symbols: Vec<Symbol>,
    /// Address range of its bytecode, in words of eight bytes.
    pub bytecode: std::ops::Range<u64>,
    pub functions: Vec<NativeFunction>,
}

/// The machine code of a function.
pub struct NativeFunction {
    pub name: String,
    pub arity: u32,
    /// Address that its machine code would have.
    pub at: u64,
    pub bytes: Vec<u8>,
    /// Its bytecode instructions as text, with the byte where their machine code begins.
    pub places: Vec<(u32, String)>,
    /// Remarks on its machine code, likewise.
    pub notes: Vec<(u32, String)>,
    /// Length of its bytecode in words.
    pub words: u32,
    /// Why it would have none.
    pub refused: Option<&'static str>,
}

/// Compiles the functions of a module file for which `wanted` holds, for a processor. Returns
/// `None` if its stubs can't be made.
///
/// # Errors
/// The file is no module that can be loaded.
pub fn native_functions(
    bytes: &[u8],
    wanted: &dyn Fn(&str, u32) -> bool,
    processor: Processor,
) -> Result<Option<NativeModule>, LoadFailure> {
    let helpers = engine::helpers();
    let made = purlin_jit::stubs::make(
        processor,
        STUBS_AT,
        &engine::FIELDS,
        &helpers,
        engine::EXITS,
    );
    let Some((_, stubs)) = made else {
        return Ok(None);
    };
    fun::set_uncompiled(stubs.local as u32);
    let m = code::prepared_module(bytes)?;
    let steps = engine::steps();
    let env = Env {
        annotated: true,
        ..env(helpers, stubs, &steps, false)
    };
    let mut symbols: Vec<Symbol> = Vec::new();
    let mut name = |address, name: String| symbols.push(Symbol { address, name });
    for (address, text) in [
        (stubs.exit, "exit"),
        (stubs.leave, "leave"),
        (stubs.yields, "yield"),
        (stubs.waits, "wait"),
        (stubs.helper, "helper"),
        (stubs.leaf_helper, "leaf_helper"),
        (stubs.local, "local"),
        (stubs.resume, "resume"),
        (stubs.context, "context"),
        (stubs.base, "base"),
    ] {
        name(address, format!("stub {text}"));
    }
    for n in 0..FUN_STUBS {
        name(stubs.fun[n], format!("stub fun/{n}"));
    }
    for n in 0..BIF_STUBS {
        name(stubs.bif[n], format!("stub native/{n}"));
    }
    for (address, text) in engine::named_helpers(&helpers) {
        name(address, format!("helper {text}"));
    }
    for (v, &address) in steps.iter().enumerate() {
        if let Some(op) = Op::of(v as u16) {
            let row = op.row().name.trim_end_matches('_');
            name(address, format!("step {row}"));
        }
    }
    let functions = m
        .functions
        .iter()
        // SAFETY: the word of an atom.
        .map(|f| (f, unsafe { Term::from_raw(f.name) }))
        .filter(|(f, n)| wanted(atom::name(*n), f.arity))
        .map(|(f, _)| native_function(&m, f, &env, processor))
        .collect();
    let start = m.code.as_ptr() as u64;
    Ok(Some(NativeModule {
        name: atom::name(m.name).into(),
        symbols,
        bytecode: start..start + 8 * m.code.words().len() as u64,
        functions,
    }))
}

fn native_function(
    m: &Module,
    f: &LoweredFunction,
    env: &Env,
    processor: Processor,
) -> NativeFunction {
    let function = function_of(m, f);
    // SAFETY: the word of an atom.
    let name = unsafe { Term::from_raw(f.name) };
    let mut out = NativeFunction {
        name: format_term(name, Style::Write, 255),
        arity: f.arity,
        at: BASE,
        bytes: Vec::new(),
        places: Vec::new(),
        notes: Vec::new(),
        words: f.end - f.entry,
        refused: None,
    };
    match compile_for(processor, function, env) {
        Err(r) => out.refused = Some(r.why()),
        Ok(made) => {
            let text = |word| code::instruction_text(m, word);
            out.places = made.places.iter().map(|p| (p.0, text(p.1))).collect();
            let note = |n: &Note| match n {
                Note::Part(part) => format!("part: {part}"),
                Note::Cold(of, when) => format!("{when}; of {}", text(*of)),
            };
            out.notes = made.notes.iter().map(|n| (n.0, note(&n.1))).collect();
            match made.code.place(BASE) {
                Some(bytes) => out.bytes = bytes,
                None => out.refused = Some("its parts are too far from each other"),
            }
        }
    }
    out
}
