//! Checks the word before every instruction that calls may go to, which leads to machine code.
//!
//! These are: exports with and without code, natives, functions of modules, funs, code that belongs
//! to no module, and the return code of trace frames.

use purlin_runtime::code::{self, breakpoint};
use purlin_term::fun::{lead_word, set_uncompiled};
use purlin_term::{am, atom};
use std::process::Command;

/// An address that stands for machine code in this test.
const NONE: u32 = 0x1234_5670;

fn check(pc: *const u64, arity: u32, what: &str) {
    // SAFETY: an instruction that calls go to; this reads the word before it.
    let word = unsafe { pc.sub(1).read() };
    // The lower bits belong to the instruction before, if there is one.
    assert_eq!(
        word >> 16,
        lead_word(arity) >> 16,
        "{what}/{arity}: {word:#x}"
    );
}

#[test]
fn every_address_of_a_call_leads_on() {
    set_uncompiled(NONE);
    purlin_runtime::natives::install();
    purlin_term::region::init();
    let s = code::stubs();
    for (words, arity, what) in [
        (s.apply, 3, "apply"),
        (s.apply_fun, 2, "apply_fun"),
        (s.reapply_fun, 2, "reapply_fun"),
        (s.hibernate, 3, "hibernate"),
    ] {
        check(words.as_ptr(), arity, what);
    }
    let mut natives = 0;
    for b in purlin_runtime::natives::tables().into_iter().flatten() {
        let (m, f) = (atom::intern(b.module), atom::intern(b.name));
        let e = code::export(m, f, b.arity.into());
        check(e.address(), e.arity, b.name);
        check(breakpoint::gate(e), e.arity, b.name);
        natives += 1;
    }
    assert!(natives > 500);
    let nobody = code::export(am::ERROR, am::OK, 7);
    check(nobody.address(), 7, "what nobody has loaded");
    let which = "[io:format(\"~s~n\", [code:which(M)]) || M <- [lists, maps, gen_server, beam_lib]], halt().";
    let Ok(out) = Command::new("erl")
        .args(["-noshell", "-eval", which])
        .output()
    else {
        println!("skipped: no erl");
        return;
    };
    for path in String::from_utf8_lossy(&out.stdout).lines() {
        let bytes = std::fs::read(path).expect("a library module");
        let Ok(m) = code::load(&bytes) else {
            panic!("{path}")
        };
        let mut exports = 0;
        for f in &m.functions {
            // SAFETY: the word of an atom.
            let name = unsafe { purlin_term::Term::from_raw(f.name) };
            check(m.at(f.entry), f.arity, atom::name(name));
            if let Some(e) = code::existing_export(m.name, name, f.arity)
                && e.is_led()
            {
                check(e.address(), f.arity, atom::name(name));
                check(breakpoint::gate(e), f.arity, atom::name(name));
                exports += 1;
            }
            // While the function is not loaded, calls go to the stub.
            let stub = code::export(m.name, name, f.arity).stub.as_ptr() as *const u64;
            check(stub, f.arity, atom::name(name));
        }
        assert!(exports > 3, "{path}");
    }
}
