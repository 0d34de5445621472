//! Natives of `erts_debug` that show loaded code.

use crate::code;
use crate::cx::{BifResult, Cx, Fail};
use purlin_term::{Alloc, NIL, Term, am, arith};

/// `disassemble({M, F, A})`, or `disassemble(Address)` of an instruction. The result is
/// `{NextAddress, Text, {M, F, A}}` with the text of one op, `undef` if there is no such function,
/// or `false` if no instruction is there.
fn disassemble_1(cx: &mut Cx, [what]: [Term; 1]) -> BifResult {
    let pc = match what.as_tuple() {
        Some(&[m, f, a]) if m.is_atom() && f.is_atom() => {
            let arity = a.as_small().ok_or(Fail::Badarg)?;
            let found = code::current(m).and_then(|v| {
                let mut all = v.functions.iter();
                let one = all.find(|x| x.name == f.raw() && i64::from(x.arity) == arity)?;
                Some(v.at(one.start))
            });
            match found {
                Some(pc) => pc,
                None => return Ok(am::UNDEF),
            }
        }
        _ => arith::to_u64(what).ok_or(Fail::Badarg)? as *const u64,
    };
    let Some(d) = code::disasm_at(pc) else {
        return Ok(am::FALSE);
    };
    let next = cx.uint(d.next as u64);
    let text = cx.binary(format!("{pc:016p}: {}", d.text.trim_start()).as_bytes());
    let mfa = cx.tuple(&[d.module, d.function, Term::small(i64::from(d.arity))]);
    Ok(cx.tuple(&[next, text, mfa]))
}

/// The names of the instructions that the emulator executes.
fn instructions_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let mut l = NIL;
    for op in purlin_isa::ops::OPS.iter().rev() {
        let s = cx.string(op.name);
        l = cx.cons(s, l);
    }
    Ok(l)
}

crate::bifs! {
    Plain "erts_debug":"instructions"/0 = instructions_0;
    Plain "erts_debug":"disassemble"/1 = disassemble_1;
}
