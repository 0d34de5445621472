//! Tests the formats of the releases, and the report on each kind of damage.

mod common;

use common::{SAMPLE, assemble, chunks, sample_with};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use purlin_loader::{BeamFile, Fault, GenericCode, LoadError, Operand, Table, disasm_generic};
use std::io::Write;

fn load(data: &[u8]) -> Result<GenericCode, LoadError> {
    GenericCode::decode(&BeamFile::parse(data)?)
}

fn word(n: i64) -> [u8; 4] {
    (n as u32).to_be_bytes()
}

/// Checks that the variant has the same tables and code as the sample.
fn assert_same(variant: &[u8]) {
    let (ours, theirs) = (
        BeamFile::parse(SAMPLE).unwrap(),
        BeamFile::parse(variant).unwrap(),
    );
    assert_eq!(ours.atoms, theirs.atoms);
    assert_eq!(ours.imports, theirs.imports);
    assert_eq!(ours.lines, theirs.lines);
    assert_eq!(ours.literal_count(), theirs.literal_count());
    for i in 0..ours.literal_count() as u32 {
        assert_eq!(ours.literal(i), theirs.literal(i));
    }
    assert_eq!(GenericCode::decode(&ours), GenericCode::decode(&theirs));
}

/// Encodes a compact unsigned number below 2048.
fn compact(n: usize) -> Vec<u8> {
    if n < 16 {
        vec![(n << 4) as u8]
    } else {
        vec![((n >> 8) << 5) as u8 | 8, n as u8]
    }
}

#[test]
fn tables_of_the_sample() {
    let file = BeamFile::parse(SAMPLE).unwrap();
    assert_eq!(file.module(), "sample");
    assert_eq!(file.atom(1), "sample");
    let has_import = |m: &str, f: &str, arity| {
        file.imports
            .iter()
            .any(|i| (file.atom(i.module), file.atom(i.function), i.arity) == (m, f, arity))
    };
    assert!(has_import("lists", "map", 2));
    assert!(
        file.exports
            .iter()
            .any(|e| (file.atom(e.function), e.arity) == ("build", 2))
    );
    assert!(file.lambdas.iter().any(|l| l.num_free == 1 && l.arity == 2));
    assert_eq!(file.line(0), None);
    assert_eq!(file.line(1), Some(("sample.erl", 8)));
    assert_eq!(file.types.as_ref().map(|t| t.version), Some(1));
    assert!(file.literal(0).is_some_and(|term| term[0] == 131));
    assert!(file.literal(file.literal_count() as u32).is_none());
    assert_eq!(
        file.locals()
            .unwrap()
            .iter()
            .filter(|l| l.arity == 2)
            .count(),
        1
    );
    // erlang:md5 over the chunks, as beam_lib:md5/1 returns it.
    let hex: String = file.md5().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, "853006b869a4300fb7228d5244ca9f4e");
}

#[test]
fn operands_of_the_sample() {
    let file = BeamFile::parse(SAMPLE).unwrap();
    let code = GenericCode::decode(&file).unwrap();
    let text = disasm_generic(&file).unwrap();
    for expected in [
        "function build/2 entry f(2)",
        "func_info sample, build, u(2)",
        "line \"sample.erl\":8",
        "call_ext",
        "lists:map/2",
        "fun:0 '-funs/1-fun-0-'/2",
        "; <<\"magic\">>",
        "'drei und vier', f(",
    ] {
        assert!(text.contains(expected), "{expected} in\n{text}");
    }
    for (instr, function) in code
        .functions
        .iter()
        .map(|f| (code.instrs[f.start as usize], f))
    {
        assert_eq!(
            code.args(&instr),
            [Operand::U(u64::from(function.func_label))]
        );
        assert_eq!(code.labels[function.func_label as usize], function.start);
        assert_ne!(function.entry_label, 0);
    }
}

#[test]
fn atoms_with_compact_lengths() {
    let long = "å".repeat(200);
    let variant = |extra: Option<&str>| {
        let file = BeamFile::parse(SAMPLE).unwrap();
        sample_with(b"AtU8", |_| {
            let atoms: Vec<&str> = file.atoms.iter().map(String::as_str).chain(extra).collect();
            let mut chunk = word(-(atoms.len() as i64)).to_vec();
            for atom in atoms {
                chunk.extend(compact(atom.len()));
                chunk.extend(atom.bytes());
            }
            Some(chunk)
        })
    };
    assert_same(&variant(None));
    let data = variant(Some(&long));
    assert_eq!(BeamFile::parse(&data).unwrap().atoms.last(), Some(&long));
    let too_long = "x".repeat(256);
    let data = variant(Some(&too_long));
    assert_eq!(
        BeamFile::parse(&data).err(),
        Some(Fault::Corrupt(Table::Atoms).into())
    );
}

#[test]
fn latin1_atoms() {
    let mut chunks = chunks(SAMPLE);
    let (name, data) = chunks.iter_mut().find(|(name, _)| name == b"AtU8").unwrap();
    *name = *b"Atom";
    let count = u32::from_be_bytes(data[..4].try_into().unwrap());
    data[..4].copy_from_slice(&(count + 1).to_be_bytes());
    data.extend([2, 0xe9, b'a']);
    assert_eq!(
        BeamFile::parse(&assemble(&chunks))
            .unwrap()
            .atoms
            .last()
            .unwrap(),
        "éa"
    );
}

#[test]
fn literals_without_compression() {
    let file = BeamFile::parse(SAMPLE).unwrap();
    let mut table = word(file.literal_count() as i64).to_vec();
    for i in 0..file.literal_count() as u32 {
        let term = file.literal(i).unwrap();
        table.extend(word(term.len() as i64));
        table.extend(term);
    }
    assert_same(&sample_with(b"LitT", |_| {
        Some([&word(0)[..], &table].concat())
    }));
    let compressed = |size: usize| {
        let mut encoder = ZlibEncoder::new(word(size as i64).to_vec(), Compression::default());
        encoder.write_all(&table).unwrap();
        let chunk = encoder.finish().unwrap();
        sample_with(b"LitT", move |_| Some(chunk.clone()))
    };
    assert_same(&compressed(table.len()));
    // A size that is larger than the data is accepted, as in stock; a smaller or absurd one isn't.
    assert_same(&compressed(table.len() + 1));
    for size in [1, table.len() - 1, u32::MAX as usize] {
        assert_eq!(
            load(&compressed(size)).err(),
            Some(Fault::Corrupt(Table::Literals).into())
        );
    }
}

#[test]
fn types_of_other_versions() {
    let file = BeamFile::parse(SAMPLE).unwrap();
    let count = file.types.as_ref().unwrap().count;
    let table = |version: i64, count: u32| {
        sample_with(b"Type", move |_| {
            let mut chunk = [word(version), word(i64::from(count))].concat();
            chunk.extend([0x0f, 0xff].repeat(count as usize));
            Some(chunk)
        })
    };
    assert_same(&table(4, count));
    let types = BeamFile::parse(&table(4, count)).unwrap().types.unwrap();
    assert_eq!((types.version, types.count), (4, count));
    assert!(matches!(
        load(&table(4, 1)).unwrap_err().fault(),
        Fault::Type(_)
    ));
    // Neither a missing table nor one of unknown version is an error; then the types are dropped.
    for data in [table(99, count), sample_with(b"Type", |_| None)] {
        let code = load(&data).unwrap();
        let mut args = code.instrs.iter().flat_map(|i| code.args(i));
        assert!(!args.any(|a| matches!(a, Operand::TypedX(..) | Operand::TypedY(..))));
    }
}

#[test]
fn gzipped_file() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(SAMPLE).unwrap();
    let packed = encoder.finish().unwrap();
    assert_same(&packed);
    assert_eq!(
        load(&packed[..packed.len() / 2]).err(),
        Some(Fault::Header.into())
    );
}

#[test]
fn unknown_line_table_is_passed_over() {
    let data = sample_with(b"Line", |chunk| Some([&word(1)[..], &chunk[4..]].concat()));
    assert_eq!(BeamFile::parse(&data).unwrap().lines, None);
    assert!(load(&data).is_ok());
}

/// Returns the code chunk with a change to its header words (from 1: instruction set, highest
/// opcode, labels, functions) and its instructions.
fn code_with(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    sample_with(b"Code", |chunk| {
        let mut chunk = chunk.to_vec();
        change(&mut chunk);
        Some(chunk)
    })
}

fn header_with(index: usize, value: impl Fn(u32) -> u32) -> Vec<u8> {
    code_with(|chunk| {
        let range = 4 * index..4 * index + 4;
        let old = u32::from_be_bytes(chunk[range.clone()].try_into().unwrap());
        chunk[range].copy_from_slice(&value(old).to_be_bytes());
    })
}

#[test]
fn damage_is_reported_as_in_stock() {
    // The log of stock 25 for the same damage.
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (
            b"hello world".to_vec(),
            "beam/beam_load.c(144): Error loading module sample:\n  corrupt file header\n",
        ),
        (
            SAMPLE[..500].to_vec(),
            "beam/beam_load.c(144): Error loading module sample:\n  corrupt file header\n",
        ),
        (
            sample_with(b"AtU8", |_| None),
            "beam/beam_load.c(146): Error loading module sample:\n  missing atom table\n",
        ),
        (
            sample_with(b"Code", |_| None),
            "beam/beam_load.c(152): Error loading module sample:\n  missing code chunk\n",
        ),
        (
            sample_with(b"ExpT", |_| None),
            "beam/beam_load.c(156): Error loading module sample:\n  missing export table\n",
        ),
        (
            sample_with(b"ImpT", |c| Some(c[..9].to_vec())),
            "beam/beam_load.c(162): Error loading module sample:\n  corrupt import table\n",
        ),
        (
            sample_with(b"LitT", |c| Some(c[..9].to_vec())),
            "beam/beam_load.c(168): Error loading module sample:\n  corrupt literal table\n",
        ),
        (
            header_with(1, |_| 1),
            "beam/beam_load.c(154): Error loading module sample:\n  corrupt code chunk\n",
        ),
        (
            header_with(3, |_| u32::MAX),
            "beam/beam_load.c(154): Error loading module sample:\n  corrupt code chunk\n",
        ),
        (
            header_with(2, |_| 250),
            "beam/beam_load.c(184): Error loading module sample:\n  This BEAM file was compiled for a later version of the runtime system than the current (Erlang/OTP 25).\n  To fix this, please re-compile this module with an Erlang/OTP 25 compiler.\n  (Use of opcode 250; this emulator supports only up to 191.)\n",
        ),
        (
            code_with(|c| c[20] = 255),
            "beam/beam_load.c(400): Error loading module sample:\n  invalid opcode\n",
        ),
        (
            sample_with(b"ImpT", |c| Some([&word(1)[..], &c[4..]].concat())),
            "beam/beam_load.c(428): Error loading function sample:FUNCTION:\n  invalid import table index INDEX\n",
        ),
    ];
    for (data, expected) in cases {
        let error = load(&data).unwrap_err();
        let mut expected = expected.to_owned();
        if let (Some((name, arity)), Fault::Import(index)) = (error.function(), error.fault()) {
            let function = format!("{name}/{arity}");
            expected = expected
                .replace("FUNCTION", &function)
                .replace("INDEX", &index.to_string());
        }
        assert_eq!(error.log_text("sample", "25"), expected);
        assert_eq!(error.reason(), "badfile");
        let since_27 = error.log_text("sample", "27");
        let advised = since_27.contains("compiler or update your Erlang/OTP version");
        assert_eq!(advised, expected.contains(" compiler"));
    }
}

#[test]
fn code_that_does_not_hang_together() {
    let label = |n: u8| [1, n << 4];
    let func = |arity: u8| [2, 0x12, 0x22, arity << 4];
    let code = |labels: u8, functions: u8, bytes: &[&[u8]]| {
        let head = [16, 0, 180, labels, functions]
            .iter()
            .flat_map(|&n| word(i64::from(n)))
            .collect();
        let chunk: Vec<u8> = [head, bytes.concat()].concat();
        let mut chunks: common::Chunks = vec![(*b"AtU8", [&word(2)[..], b"\x01m\x01f"].concat())];
        chunks.push((*b"ImpT", [word(1), word(1), word(2), word(3)].concat()));
        chunks.push((*b"ExpT", word(0).to_vec()));
        chunks.push((*b"StrT", b"abc".to_vec()));
        chunks.push((*b"Code", chunk));
        assemble(&chunks)
    };
    const END: &[u8] = &[3];
    const RETURN: &[u8] = &[19];
    let head: &[u8] = &[&label(1)[..], &func(0), &label(2)].concat();
    // Bodies of a function f/0 with the labels 1 and 2 (of 4 labels), and their faults.
    let bodies: Vec<(&[u8], Option<Fault>)> = vec![
        (&[19], None),
        (&[], None),
        (&[64, 0x53, 0x03], None),                    // move x5, x0
        (&[64, 0xa9, 9, 0x03], None),                 // move of a small integer
        (&[64, 0x02, 0x03], None),                    // move [], x0
        (&[64, 0x53, 0x02], Some(Fault::Operand(2))), // move x5, []
        (&[64, 0x32, 0x03], Some(Fault::Atom(3))),    // atom 3 of 2
        (&[64, 0x8b, 0x00, 0x03], Some(Fault::Register(1024))), // x1024
        (&[64, 0x6b, 0xff, 0x03], None),              // x1023
        (&[64, 0x47, 0x00, 0x03], Some(Fault::Literal(0))), // a literal without table
        (&[64, 0x07, 0x00, 0x03], Some(Fault::Encoding)), // the old float
        (&[64, 0x06, 0x03], Some(Fault::Encoding)),   // tag 6
        (&[64, 0xf9, 0xf0, 0x03], Some(Fault::Truncated)), // 24 bytes of integer
        (&[64, 0xf9, 0xf1, 0x03], Some(Fault::Truncated)), // a length of the wrong tag
        (&[61, 0x15], None),                          // jump f(1)
        (&[61, 0x05], Some(Fault::Operand(1))),       // jump nowhere
        (&[61, 0x35], Some(Fault::LabelUndefined(3))), // jump f(3)
        (&[61, 0x45], Some(Fault::Label(4))),         // jump f(4)
        (&[1, 0x30, 61, 0x35], None),                 // label 3, jump f(3)
        (&[1, 0x20], Some(Fault::LabelTwice(2))),     // label 2 again
        (&[1, 0x00], Some(Fault::Label(0))),          // label 0
        (&[6, 0x00, 0x25], None),                     // call_only f(2)
        (&[6, 0x00, 0x15], Some(Fault::NotFunction(1))), // call_only f(1)
        (&[78, 0x30, 0x00], None),                    // call_ext_only 3, m:f/3
        (&[78, 0x20, 0x00], Some(Fault::ImportArity(0))), // call_ext_only 2, m:f/3
        (&[78, 0x30, 0x10], Some(Fault::Import(1))),  // an import that isn't there
        (&[103, 0x00], Some(Fault::Lambda(0))),       // make_fun2 without funs
        (&[92, 0x20, 0x10], None),                    // bs_put_string 2, 1
        (&[92, 0x30, 0x10], Some(Fault::StringRange(1, 24))), // bs_put_string 3, 1
        (&[132, 0x05, 0x03, 0x08, 24, 0x00], None),   // bs_match_string, 24 bits
        (
            &[132, 0x05, 0x03, 0x08, 25, 0x00],
            Some(Fault::StringRange(0, 25)),
        ),
        (&[164, 0x03, 0x17, 0x20, 0x03, 0x13], None), // put_tuple2 x0, [x0, x1]
        (&[164, 0x03, 0x17, 0xf0, 0x03], Some(Fault::ListLength(15))), // a list beyond the end
        (
            &[59, 0x03, 0x15, 0x17, 0x10, 0x12],
            Some(Fault::ListLength(1)),
        ), // select_val with half a pair
        (&[172, 0x17, 0x10, 0x03], Some(Fault::Encoding)), // init_yregs [x0]
        (&[16, 0x37, 0x10, 0x00, 0x20, 0x00], None),  // test_heap {words 2}, 0
        (&[16, 0x37, 0x10, 0x30, 0x20, 0x00], Some(Fault::Encoding)), // allocation of sort 3
        (&[16, 0x37, 0x40], Some(Fault::ListLength(4))), // four sorts
        (&[12, 0x10, 0x88, 1], Some(Fault::Operand(2))), // allocate 1, 1025
        (&[27, 0x00, 0x00, 0x00, 0x00], Some(Fault::Obsolete)),
        (&[192], Some(Fault::UnknownOpcode(192))),
        (&[0], Some(Fault::UnknownOpcode(0))),
        (&[2, 0x12, 0x22, 0x00], Some(Fault::FunctionStructure)), // no label before
        (
            &[1, 0x30, 2, 0x12, 0x22, 0x00, 1],
            Some(Fault::TooManyFunctions(1)),
        ),
    ];
    for (body, fault) in &bodies {
        let result = load(&code(4, 1, &[head, body, END]));
        assert_eq!(
            result.as_ref().err().map(LoadError::fault),
            fault.as_ref(),
            "{body:?}"
        );
    }
    let whole: Vec<(Vec<u8>, Fault)> = vec![
        (code(4, 1, &[head, RETURN]), Fault::Truncated),
        (code(4, 2, &[head, END]), Fault::TooFewFunctions(1, 2)),
        (code(4, 1, &[RETURN, head, END]), Fault::FunctionStructure),
        (
            code(4, 1, &[&label(1), &func(0), RETURN, END]),
            Fault::FunctionStructure,
        ),
        (
            code(4, 1, &[&label(1), &func(0), END]),
            Fault::FunctionStructure,
        ),
        (code(2, 1, &[head, END]), Fault::Label(2)),
    ];
    for (data, fault) in whole {
        assert_eq!(load(&data).unwrap_err().fault(), &fault);
    }
}
