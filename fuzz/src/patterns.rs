//! Module `re`. Input: two bytes of options for compiling, one for running, the pattern behind its
//! length, the subject. A last option treats the pattern as one that has been compiled and stored.

use crate::Input;
use crate::world::World;
use purlin_term::{Alloc, Term, atom};

const COMPILE: [&str; 13] = [
    "unicode",
    "anchored",
    "caseless",
    "dollar_endonly",
    "dotall",
    "extended",
    "firstline",
    "multiline",
    "no_auto_capture",
    "dupnames",
    "ungreedy",
    "ucp",
    "never_utf",
];
const RUN: [&str; 4] = ["notempty", "notbol", "noteol", "notempty_atstart"];

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let flags = u16::from(input.byte()) << 8 | u16::from(input.byte());
    let how = input.byte();
    let pattern = input.short();
    let subject = input.0;
    let mut w = World::new();
    let mut options: Vec<Term> = (0..COMPILE.len())
        .filter(|i| flags >> i & 1 != 0)
        .map(|i| atom::intern(COMPILE[i]))
        .collect();
    if flags >> 13 & 1 != 0 {
        let lines = ["cr", "crlf", "lf", "anycrlf", "any"][how as usize % 5];
        options.push(w.cx.tuple(&[atom::intern("newline"), atom::intern(lines)]));
    }
    let p = w.cx.binary(pattern);
    let mp = if flags >> 15 != 0 {
        let n = |b: u16| Term::small(i64::from(b));
        let fields = [
            atom::intern("re_pattern"),
            n(flags & 7),
            n(flags >> 3 & 1),
            n(flags >> 4 & 1),
            p,
        ];
        w.cx.tuple(&fields)
    } else {
        let options = w.cx.list(&options);
        let result = w.apply("re", "compile", &[p, options], 1000).value();
        match result.and_then(|t| t.as_tuple()) {
            Some(&[ok, mp]) if ok == atom::intern("ok") => mp,
            _ => return,
        }
    };
    let s = w.cx.binary(subject);
    // Patterns may take exponential time, which is the program's business; limits keep it short.
    let mut options = Vec::new();
    for name in ["match_limit", "match_limit_recursion"] {
        options.push(w.cx.tuple(&[atom::intern(name), Term::small(20_000)]));
    }
    options.push(atom::intern("report_errors"));
    for (i, name) in RUN.iter().enumerate() {
        if how >> i & 1 != 0 {
            options.push(atom::intern(name));
        }
    }
    if how & 0x40 != 0 {
        let o = [atom::intern("offset"), Term::small(i64::from(how & 15))];
        options.push(w.cx.tuple(&o));
    }
    let kind = ["index", "list", "binary"][how as usize % 3];
    let which = ["all", "all_names", "first", "all_but_first"][(how >> 4 & 3) as usize];
    let capture = [
        atom::intern("capture"),
        atom::intern(which),
        atom::intern(kind),
    ];
    options.push(w.cx.tuple(&capture));
    let options = w.cx.list(&options);
    let _ = w.apply("re", "run", &[s, mp, options], 1000);
}
