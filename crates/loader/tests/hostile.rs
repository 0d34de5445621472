//! Tests code that a compiler never writes. It is refused if running it would read registers
//! without terms, write outside of the reserved words, or have a collection see words that are no
//! terms. Each case has a sound one beside it.

mod common;

use common::assemble;
use purlin_isa::genops as g;
use purlin_loader::lower::{Callee, Env, MapValue, lower};
use purlin_loader::{BeamFile, BigInt, GenericCode};

/// The atom's number is its index plus one.
const ATOMS: [&str; 16] = [
    "m",
    "f",
    "g",
    "erlang",
    "element",
    "atom_to_list",
    "integer",
    "string",
    "string",
    "binary",
    "error",
    "tuple_to_list",
    "all",
    "h",
    "true",
    "entry",
];
const IMPORTS: [(&str, &str, u8); 3] = [
    ("erlang", "element", 2),
    ("erlang", "tuple_to_list", 1),
    ("erlang", "error", 1),
];

struct Nothing;
impl Env for Nothing {
    fn atom(&mut self, number: u32) -> u64 {
        u64::from(number) << 6 | 0xB
    }
    fn literal(&mut self, _: u32) -> u64 {
        0xB
    }
    fn bigint(&mut self, _: &BigInt) -> u64 {
        0xB
    }
    fn map_keys(&mut self, map: u64, keys: &[u64]) -> Option<(u64, Vec<MapValue>)> {
        (map == 0xB).then(|| (0xB, (0..keys.len()).map(MapValue::Put).collect()))
    }
    fn record(&mut self, _: u32) -> Option<u64> {
        Some(0xB)
    }
    fn pair_of_atoms(&mut self, _: u64) -> Option<(u64, u64)> {
        Some((0xB, 0xB))
    }
    fn import(&mut self, _: u32) -> Callee {
        Callee {
            export: 8,
            built_in: true,
            native: Some(8),
            guard: 8,
        }
    }
    fn lambda(&mut self, _: u32) -> u64 {
        8
    }
    fn strings(&mut self) -> u64 {
        8
    }
    fn own_native(&mut self, _: u32, _: u32) -> Option<u64> {
        None
    }
    fn nif_slot(&mut self, _: usize) -> u64 {
        8
    }
    fn function_counter(&mut self, _: usize) -> Option<u64> {
        Some(8)
    }
    fn line_counter(&mut self, _: usize) -> Option<u64> {
        Some(8)
    }
    fn lines_can_break(&mut self) -> bool {
        true
    }
    fn mark(&mut self, _: usize) -> Option<u64> {
        Some(8)
    }
    fn atoms_of(&mut self, _: u64) -> Vec<String> {
        Vec::new()
    }
}

/// An operand: tag and value.
#[derive(Clone)]
enum O {
    N(u8, u32),
    Float(u32),
    List(Vec<O>),
    /// Words, floats, funs.
    Alloc(u32, u32, u32),
}
use O::{Alloc, Float, List, N};

fn u(n: u32) -> O {
    N(0, n)
}
fn i(n: u32) -> O {
    N(1, n)
}
fn a(name: &str) -> O {
    N(2, 1 + ATOMS.iter().position(|&x| x == name).unwrap() as u32)
}
const NIL: O = N(2, 0);
fn x(n: u32) -> O {
    N(3, n)
}
fn y(n: u32) -> O {
    N(4, n)
}
fn f(n: u32) -> O {
    N(5, n)
}

fn number(out: &mut Vec<u8>, tag: u8, n: u32) {
    if n < 16 {
        out.push((n << 4) as u8 | tag);
    } else if n < 2048 {
        out.extend([((n >> 8) << 5) as u8 | 8 | tag, n as u8]);
    } else {
        // Five bytes, so that the first is no sign.
        out.push((3 << 5) | 0x18 | tag);
        out.extend((u64::from(n)).to_be_bytes()[3..].iter());
    }
}
fn operand(out: &mut Vec<u8>, o: &O) {
    match o {
        N(tag, n) => number(out, *tag, *n),
        Float(n) => {
            number(out, 7, 2);
            number(out, 0, *n);
        }
        List(v) => {
            number(out, 7, 1);
            number(out, 0, v.len() as u32);
            v.iter().for_each(|o| operand(out, o));
        }
        Alloc(w, fl, fu) => {
            number(out, 7, 3);
            number(out, 0, 3);
            for (k, n) in [w, fl, fu].into_iter().enumerate() {
                number(out, 0, k as u32);
                number(out, 0, *n);
            }
        }
    }
}

type Code = Vec<(u8, Vec<O>)>;

/// Returns a module with `f/ARITY`, which has that body, and `g/2`. Labels of the body start at 5;
/// `g/2` is at label 4.
fn module(arity: u32, exported: u32, body: &Code) -> Vec<u8> {
    let head = |func: u32, name: &str, n: u32| -> Code {
        vec![
            (g::LABEL, vec![u(func)]),
            (g::FUNC_INFO, vec![a("m"), a(name), u(n)]),
            (g::LABEL, vec![u(func + 1)]),
        ]
    };
    let mut all = head(1, "f", arity);
    all.extend(body.iter().cloned());
    all.extend(head(3, "g", 2));
    all.push((g::MOVE, vec![x(1), x(0)]));
    all.push((g::RETURN, vec![]));
    all.push((g::INT_CODE_END, vec![]));
    let mut code = Vec::new();
    for n in [16u32, 0, u32::from(g::MAX), 20, 2] {
        code.extend(n.to_be_bytes());
    }
    for (op, operands) in &all {
        code.push(*op);
        operands.iter().for_each(|o| operand(&mut code, o));
    }
    let mut atoms = (ATOMS.len() as u32).to_be_bytes().to_vec();
    for name in ATOMS {
        atoms.push(name.len() as u8);
        atoms.extend(name.bytes());
    }
    let index = |name: &str| ATOMS.iter().position(|&x| x == name).unwrap() as u32 + 1;
    let mut imports = (IMPORTS.len() as u32).to_be_bytes().to_vec();
    for (m, f, n) in IMPORTS {
        for w in [index(m), index(f), u32::from(n)] {
            imports.extend(w.to_be_bytes());
        }
    }
    let mut exports = 1u32.to_be_bytes().to_vec();
    for w in [index("f"), exported, 2] {
        exports.extend(w.to_be_bytes());
    }
    assemble(&vec![
        (*b"AtU8", atoms),
        (*b"Code", code),
        (*b"StrT", b"abcd".to_vec()),
        (*b"ImpT", imports),
        (*b"ExpT", exports),
    ])
}

fn load(arity: u32, exported: u32, body: &Code) -> Result<(), String> {
    let bytes = module(arity, exported, body);
    let file = BeamFile::parse(&bytes).map_err(|e| format!("file: {e}"))?;
    let code = GenericCode::decode(&file).map_err(|e| format!("decode: {e}"))?;
    lower(&file, &code, &mut Nothing).map_err(|e| format!("lower: {e}"))?;
    Ok(())
}

fn sound(arity: u32, body: Code) {
    assert_eq!(load(arity, arity, &body), Ok(()));
}
fn refused(arity: u32, body: Code, why: &str) {
    match load(arity, arity, &body) {
        Ok(()) => panic!("loaded: {why}"),
        Err(e) => assert!(e.contains(why), "{e} instead of {why}"),
    }
}
fn ret() -> (u8, Vec<O>) {
    (g::RETURN, vec![])
}

#[test]
fn functions_get_as_many_arguments_as_they_take() {
    let call = |n| vec![(g::CALL_ONLY, vec![u(n), f(4)])];
    sound(2, call(2));
    refused(1, call(1), "another number of arguments");
    refused(3, call(3), "another number of arguments");
    let framed = |n| {
        vec![
            (g::ALLOCATE, vec![u(0), u(2)]),
            (g::CALL, vec![u(n), f(4)]),
            (g::DEALLOCATE, vec![u(0)]),
            ret(),
        ]
    };
    sound(2, framed(2));
    refused(2, framed(1), "another number of arguments");
    assert_eq!(load(2, 2, &vec![ret()]), Ok(()));
    assert!(load(2, 1, &vec![ret()]).is_err());
    assert!(load(2, 0, &vec![ret()]).is_err());
}

#[test]
fn a_module_is_loaded_by_the_start_of_a_function() {
    sound(
        0,
        vec![(g::ON_LOAD, vec![]), (g::MOVE, vec![NIL, x(0)]), ret()],
    );
    let why = "the on_load function has arguments, or does not begin here";
    refused(1, vec![(g::ON_LOAD, vec![]), ret()], why);
    refused(
        0,
        vec![(g::MOVE, vec![NIL, x(0)]), (g::ON_LOAD, vec![]), ret()],
        why,
    );
}

#[test]
fn frames_that_meet_hold_something() {
    // The two paths to label 6 have different frames; then a collection may look at all of them.
    let code = |reserve: u8| {
        vec![
            (g::IS_ATOM, vec![f(5), x(0)]),
            (reserve, vec![u(1), u(1)]),
            (g::JUMP, vec![f(6)]),
            (g::LABEL, vec![u(5)]),
            (g::LABEL, vec![u(6)]),
            (g::TEST_HEAP, vec![u(3), u(1)]),
            (g::PUT_TUPLE2, vec![x(0), List(vec![x(0), x(0)])]),
            (g::CALL_EXT_ONLY, vec![u(1), u(2)]),
        ]
    };
    let bytes = module(1, 1, &code(g::ALLOCATE));
    let file = BeamFile::parse(&bytes).unwrap();
    let decoded = GenericCode::decode(&file).unwrap();
    let lowered = lower(&file, &decoded, &mut Nothing).unwrap();
    let bytes = module(1, 1, &code(g::ALLOCATE_ZERO));
    let file = BeamFile::parse(&bytes).unwrap();
    let decoded = GenericCode::decode(&file).unwrap();
    // The frame is cleared like that of `allocate_zero`.
    assert_eq!(
        lowered.words,
        lower(&file, &decoded, &mut Nothing).unwrap().words
    );
}

#[test]
fn what_is_built_was_reserved() {
    let why = "more built";
    let pair = |d| (g::PUT_LIST, vec![x(0), NIL, x(d)]);
    sound(1, vec![(g::TEST_HEAP, vec![u(2), u(1)]), pair(0), ret()]);
    refused(
        1,
        vec![(g::TEST_HEAP, vec![u(1), u(1)]), pair(0), ret()],
        why,
    );
    // A native that makes nothing leaves the reserved words, one that makes a list does not.
    sound(
        1,
        vec![
            (g::TEST_HEAP, vec![u(2), u(1)]),
            (g::BIF2, vec![f(0), u(0), i(1), x(0), x(0)]),
            pair(0),
            ret(),
        ],
    );
    let bif = (g::BIF1, vec![f(0), u(1), x(0), x(0)]);
    refused(
        1,
        vec![(g::TEST_HEAP, vec![u(2), u(1)]), bif, pair(0), ret()],
        why,
    );
    // A failing command may follow one that has made terms.
    let bif = (g::GC_BIF2, vec![f(5), u(1), u(0), i(1), x(0), x(0)]);
    refused(
        1,
        vec![
            (g::TEST_HEAP, vec![u(2), u(1)]),
            bif,
            ret(),
            (g::LABEL, vec![u(5)]),
            pair(0),
            ret(),
        ],
        why,
    );
    refused(
        1,
        vec![
            (g::TEST_HEAP, vec![u(2), u(1)]),
            (g::BS_CONTEXT_TO_BINARY, vec![x(0)]),
            pair(0),
            ret(),
        ],
        why,
    );
    let huge = Alloc(1 << 28, 1 << 28, 1 << 28);
    assert!(load(1, 1, &vec![(g::TEST_HEAP, vec![huge, u(1)]), ret()]).is_err());
}

#[test]
fn records_are_updated_within_their_size() {
    let code = |at| {
        vec![
            (g::TEST_HEAP, vec![u(4), u(1)]),
            (
                g::UPDATE_RECORD,
                vec![a("f"), u(3), x(0), x(0), List(vec![u(at), NIL])],
            ),
            ret(),
        ]
    };
    sound(1, code(1));
    sound(1, code(3));
    refused(1, code(0), "outside the record");
    refused(1, code(4), "outside the record");
    refused(1, code(100_000), "outside the record");
}

#[test]
fn segments_and_matches_name_registers() {
    let start = || (g::BS_START_MATCH3, vec![f(0), x(0), u(1), x(0)]);
    let get = |d: O| {
        let list = List(vec![a("integer"), u(1), NIL, u(8), u(1), d]);
        vec![
            start(),
            (g::BS_MATCH, vec![f(1), x(0), list]),
            (g::MOVE, vec![NIL, x(0)]),
            ret(),
        ]
    };
    sound(1, get(x(1)));
    refused(1, get(i(7)), "the destination of a match is not a register");
    refused(
        1,
        get(Float(7)),
        "the destination of a match is not a register",
    );
    let bin = |kind: O, v: O, size: O| {
        let list = List(vec![kind, u(1), u(8), NIL, v, size]);
        vec![
            (g::BS_CREATE_BIN, vec![f(0), u(0), u(1), u(8), x(0), list]),
            ret(),
        ]
    };
    sound(1, bin(a("integer"), x(0), i(1)));
    refused(1, bin(a("integer"), Float(3), i(1)), "no value");
    refused(1, bin(a("integer"), x(0), Float(3)), "no value");
    // The atom is in the table twice: each means a piece of the string table.
    for number in [8, 9] {
        sound(1, bin(N(2, number), u(0), i(4)));
        assert!(load(1, 1, &bin(N(2, number), u(1), i(4))).is_err());
    }
}

#[test]
fn bit_strings_are_written_while_they_are_built() {
    let init = || (g::BS_INIT2, vec![f(0), u(2), u(0), u(1), u(0), x(1)]);
    let put = || (g::BS_PUT_INTEGER, vec![f(0), i(8), u(1), u(0), x(0)]);
    let end = || (g::MOVE, vec![NIL, x(0)]);
    sound(1, vec![init(), put(), put(), end(), ret()]);
    refused(1, vec![put(), end(), ret()], "no bit string");
    let collect = (g::TEST_HEAP, vec![u(2), u(1)]);
    refused(
        1,
        vec![init(), put(), collect, put(), end(), ret()],
        "no bit string",
    );
}

#[test]
fn marks_of_catches_stay_where_they_are() {
    let code = |read: Code| {
        let mut all = vec![
            (g::ALLOCATE, vec![u(1), u(1)]),
            (g::CATCH, vec![y(0), f(5)]),
        ];
        all.extend(read);
        all.extend([
            (g::CALL, vec![u(1), f(2)]),
            (g::LABEL, vec![u(5)]),
            (g::CATCH_END, vec![y(0)]),
            (g::DEALLOCATE, vec![u(1)]),
            ret(),
        ]);
        all
    };
    sound(1, code(vec![]));
    refused(
        1,
        code(vec![(g::MOVE, vec![y(0), x(0)])]),
        "mark of a catch",
    );
}

#[test]
fn elements_are_read_before_their_tuple_is_there() {
    let code = |s: O| {
        vec![
            (g::TEST_HEAP, vec![u(2), u(1)]),
            (g::PUT_TUPLE, vec![u(1), x(5)]),
            (g::PUT, vec![s]),
            (g::MOVE, vec![x(5), x(0)]),
            ret(),
        ]
    };
    sound(1, code(x(0)));
    assert!(load(1, 1, &code(x(5))).is_err());
    for op in [g::GET_TUPLE_ELEMENT, g::SET_TUPLE_ELEMENT] {
        for n in [u32::MAX, u32::MAX / 8] {
            assert!(load(1, 1, &vec![(op, vec![x(0), u(n), x(0)]), ret()]).is_err());
        }
    }
}

#[test]
fn fields_of_records_are_named_by_atoms() {
    let get = |key: O| {
        vec![
            (
                g::GET_RECORD_ELEMENTS,
                vec![f(5), x(0), List(vec![key, x(0)])],
            ),
            (g::LABEL, vec![u(5)]),
            ret(),
        ]
    };
    sound(1, get(a("all")));
    refused(1, get(x(0)), "operand 2");
    refused(1, get(i(1)), "operand 2");
    let put = |id: O, from: O, pairs: Vec<O>, live: u32| {
        let operands = vec![f(0), id, from, x(0), u(live), List(pairs)];
        vec![(g::PUT_RECORD, operands), ret()]
    };
    sound(1, put(a("h"), NIL, vec![a("all"), x(0)], 1));
    sound(1, put(a("h"), x(0), vec![], 1));
    refused(1, put(a("h"), NIL, vec![x(0), x(0)], 1), "operand 5");
    refused(1, put(x(0), NIL, vec![a("all"), x(0)], 1), "operand 1");
    refused(1, put(a("h"), NIL, vec![a("all"), x(1)], 1), "");
    refused(1, put(a("h"), x(0), vec![a("all"), x(0)], 2), "");
    refused(1, put(a("h"), NIL, vec![a("all")], 1), "");
}

#[test]
fn tables_of_records_are_whole() {
    // `all` with the field `element`, whose default is the literal `[]`, and the field `h`, which
    // has none.
    let all = (1 + ATOMS.iter().position(|&n| n == "all").unwrap()) as u8;
    let tag = |t: u8, n: u8| n << 4 | t;
    let flags = |name: &str| tag(2, 1 + ATOMS.iter().position(|&n| n == name).unwrap() as u8);
    let record = |flag: u8, first: u8, second: u8| {
        let mut b = vec![g::CALL_LAST, tag(2, all), flag, tag(7, 1), tag(0, 4)];
        b.extend([first, tag(2, 0), second, tag(0, 0)]);
        b
    };
    let load = |version: u32, records: u32, fields: u32, body: &[u8]| {
        let plain = module(1, 1, &vec![ret()]);
        let mut all = common::chunks(&plain);
        let mut data = Vec::new();
        for n in [version, records, fields] {
            data.extend(n.to_be_bytes());
        }
        data.extend(body);
        all.push((*b"Recs", data));
        BeamFile::parse(&assemble(&all)).map(|f| f.records.len())
    };
    let (e, h, yes) = (flags("element"), flags("h"), flags("true"));
    assert_eq!(load(0, 0, 0, &[]), Ok(0));
    assert_eq!(load(0, 1, 2, &record(yes, e, h)), Ok(1));
    for (version, records, fields, body) in [
        (1, 0, 0, vec![]),
        (0, 1, 0, vec![]),
        (0, 0, 1, vec![]),
        (0, u32::MAX, 0, vec![]),
        (0, 1, u32::MAX, record(yes, e, h)),
        (0, 1, 1, record(yes, e, h)),
        (0, 1, 3, record(yes, e, h)),
        (0, 2, 4, [record(yes, e, h), record(yes, e, h)].concat()),
        (0, 1, 2, record(e, e, h)),
        (0, 1, 2, record(yes, e, e)),
        (0, 1, 2, record(yes, e, h)[..4].to_vec()),
        (0, 0, 0, vec![0]),
    ] {
        assert!(load(version, records, fields, &body).is_err(), "{body:?}");
    }
}

#[test]
fn lines_that_can_break_are_as_collections() {
    let line = |kind: &str, live: u32| (g::DEBUG_LINE, vec![a(kind), u(0), u(1), u(live)]);
    sound(1, vec![line("all", 1), ret()]);
    sound(1, vec![line("entry", 5), ret()]);
    let why = "an X register that holds nothing";
    refused(1, vec![line("all", 2), ret()], why);
    refused(
        2,
        vec![line("all", 1), (g::MOVE, vec![x(1), x(0)]), ret()],
        why,
    );
    let pair = (g::PUT_LIST, vec![x(0), NIL, x(0)]);
    let reserve = (g::TEST_HEAP, vec![u(2), u(1)]);
    let before = vec![line("all", 1), reserve.clone(), pair.clone(), ret()];
    sound(1, before);
    refused(1, vec![reserve, line("all", 1), pair, ret()], "more built");
    // At the entry of a function there is another instruction, and each line has its own.
    let bytes = module(1, 1, &vec![line("all", 1), line("all", 1), ret()]);
    let file = BeamFile::parse(&bytes).unwrap();
    let decoded = GenericCode::decode(&file).unwrap();
    let lowered = lower(&file, &decoded, &mut Nothing).unwrap();
    let lines: Vec<u32> = lowered.debug_lines.iter().map(|l| l.at).collect();
    assert_eq!(lines.len(), 2);
    assert!(lowered.functions[0].entry < lines[0] && lines[0] < lines[1]);
}

#[test]
fn tables_of_lines_are_whole() {
    let tag = |t: u8, n: u8| n << 4 | t;
    let atom = |name: &str| tag(2, 1 + ATOMS.iter().position(|&n| n == name).unwrap() as u8);
    let frame = vec![g::CALL, tag(0, 0), tag(0, 3)];
    let list = |kind: u8, parts: &[u8]| {
        let mut b = vec![g::CALL, tag(0, kind), tag(7, 1), tag(0, parts.len() as u8)];
        b.extend(parts);
        b
    };
    let vars = |parts: &[u8]| list(1, parts);
    let calls = |parts: &[u8]| list(2, parts);
    let load = |version: u32, items: u32, parts: u32, body: &[u8]| {
        let plain = module(1, 1, &vec![ret()]);
        let mut all = common::chunks(&plain);
        let mut data = Vec::new();
        for n in [version, items, parts] {
            data.extend(n.to_be_bytes());
        }
        data.extend(body);
        all.push((*b"DbgB", data));
        BeamFile::parse(&assemble(&all)).map(|f| f.debug.len())
    };
    let (e, h) = (atom("element"), atom("h"));
    let (two, x1) = (tag(0, 2), tag(3, 1));
    let whole = [frame.clone(), vars(&[e, x1]), calls(&[two, e, h])].concat();
    assert_eq!(load(1, 0, 0, &[]), Ok(0));
    assert_eq!(load(2, 7, 7, &[1]), Ok(0));
    assert_eq!(load(1, 1, 0, &frame), Ok(1));
    assert_eq!(load(1, 1, 5, &whole), Ok(1));
    assert_eq!(
        load(1, 2, 5, &[whole.clone(), frame.clone()].concat()),
        Ok(2)
    );
    let later = [whole.clone(), list(3, &[two])].concat();
    assert_eq!(load(1, 1, 6, &later), Ok(1));
    let with = |more: Vec<u8>| [frame.clone(), more].concat();
    for (items, parts, body) in [
        (1, 0, vec![]),
        (2, 5, whole.clone()),
        (1, 4, whole.clone()),
        (1, 6, whole.clone()),
        (u32::MAX, 5, whole.clone()),
        (1, u32::MAX, whole.clone()),
        (1, 5, whole[..8].to_vec()),
        (1, 2, vars(&[e, x1])),
        (1, 5, with([calls(&[two, e, h]), vars(&[e, x1])].concat())),
        (1, 1, with(vars(&[e]))),
        (1, 2, with(vars(&[two, x1]))),
        (1, 2, with(vars(&[tag(2, 15) | 8, x1]))),
        (1, 2, with(calls(&[two, e]))),
        (1, 3, with(calls(&[two, x1, h]))),
        (1, 2, with(calls(&[e, two]))),
        (1, 0, vec![g::CALL, tag(0, 0), h]),
        (1, 0, vec![g::CALL_LAST, tag(0, 0), tag(0, 3)]),
    ] {
        assert!(load(1, items, parts, &body).is_err(), "{body:?}");
    }
}
