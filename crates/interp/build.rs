//! Generates the interpreter's tables of handlers: one entry per variant of each op, in the order
//! of the table of ops. The macro into which the table is included defines the entries, see
//! `dispatch`.

use purlin_isa::ops::{Form, OPS};
use std::fmt::Write;

fn main() {
    let mut out = String::new();
    let _ = writeln!(out, "[");
    for row in OPS {
        for v in 0..row.variants() {
            let forms = row.forms(v);
            let generic: Vec<&str> = row
                .operands
                .iter()
                .zip(&forms)
                .filter(|(o, _)| o.kind.forms().len() > 1)
                .map(|(_, f)| match f {
                    Form::X => "X",
                    Form::Y => "Y",
                    _ => "C",
                })
                .collect();
            let name = row.name.trim_end_matches('_');
            let _ = writeln!(out, "handler!(op_{name} {}),", generic.join(" "));
        }
    }
    let _ = writeln!(out, "]");
    let dir = std::env::var("OUT_DIR").unwrap_or_default();
    if let Err(e) = std::fs::write(format!("{dir}/handlers.rs"), out) {
        panic!("handlers.rs: {e}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
