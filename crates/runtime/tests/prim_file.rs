//! Runs module `prim_file` of the installation on the natives of this runtime, and the natives on
//! invalid arguments.

mod common;

use purlin_runtime::cx::{Cx, Fail};
use purlin_runtime::io::{prim_file, prim_file_names};
use purlin_runtime::natives::Bif;
use purlin_runtime::process::Process;
use purlin_term::{Alloc, NIL, Term, am, atom};

fn configure() {
    purlin_runtime::filename::configure(
        purlin_runtime::options::FilenameEncoding::Utf8,
        purlin_runtime::options::FilenameWarning::Ignore,
    );
}

#[test]
fn files_behave_as_in_stock() {
    configure();
    common::against_stock(
        "prim_file_sample.erl",
        &["erlang", "prim_buffer", "prim_file", "lists"],
    );
}

/// Terms that some native accepts, and terms that none accepts; `file` is an open file.
fn terms(cx: &mut Cx, file: Term, path: &[u8]) -> Vec<Term> {
    let path_z = cx.binary(&[path, &[0]].concat());
    let path = cx.binary(path);
    let odd = cx.binary(b"/proc/none\0");
    let odd = cx.sub_binary(odd, 3, 80);
    let bits = cx.bitstring(&[0xA0], 3);
    let large = cx.big(false, &[1, 1]);
    let least = cx.big(true, &[1 << 63]);
    let float = cx.float(1.5);
    let reference = purlin_runtime::ids::make_ref(cx);
    let parts = cx.list(&[path, path_z, odd]);
    let modes = cx.list(&[am::READ, am::WRITE]);
    let improper = cx.list_tail(&[path], path);
    let tuple = cx.tuple(&[path]);
    let nulls = cx.binary(&[0; 3]);
    [
        file,
        path_z,
        path,
        odd,
        bits,
        large,
        least,
        float,
        reference,
        parts,
        modes,
        improper,
        tuple,
        nulls,
        NIL,
        am::EOF,
        am::TRUE,
        atom::intern("bof"),
        Term::small(0),
        Term::small(1),
        Term::small(-1),
        Term::small(1000),
        Term::small(i64::MAX >> 4),
        Term::small(i64::MIN >> 4),
    ]
    .to_vec()
}

#[test]
fn arguments_that_make_no_sense() {
    configure();
    purlin_term::region::init();
    let dir = std::env::temp_dir().join(format!("purlin-files-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let path = dir.join("file").into_os_string().into_encoded_bytes();
    let mut cx = Cx::boxed(0);
    let mut cell: Box<std::mem::MaybeUninit<Process>> = Box::new(std::mem::MaybeUninit::zeroed());
    // SAFETY: only the pid of the cell is read, for which zeros are valid.
    unsafe { cx.proc.set(cell.as_mut_ptr()) };
    // Natives that change the process or its environment are left out; sizes stay within limits for
    // a test.
    let harmful = [
        "set_cwd_nif",
        "file_desc_to_ref_nif",
        "allocate_nif",
        "internal_normalize_utf8",
        "del_dir_nif",
    ];
    let rows: Vec<&Bif> = [prim_file::BIFS, prim_file_names::BIFS]
        .into_iter()
        .flatten()
        .filter(|b| b.module == "prim_file" && !harmful.contains(&b.name))
        .collect();
    let call = |cx: &mut Cx, b: &Bif, args: &[Term]| {
        assert_eq!(args.len(), b.arity as usize);
        // SAFETY: as many arguments as the arity in the row.
        unsafe { (b.call)(cx.env_ptr(), args.as_ptr()) }
    };
    let open = rows
        .iter()
        .find(|b| b.name == "open_nif")
        .expect("open_nif");
    let fresh = |cx: &mut Cx| {
        let name = cx.binary(&[&path[..], &[0]].concat());
        let modes = cx.list(&[am::READ, am::WRITE]);
        cx.dirty = true;
        let r = call(cx, open, &[name, modes]).expect("opened");
        cx.dirty = false;
        r.as_tuple().expect("{ok, File}")[1]
    };
    let mut state = 7u64;
    let mut random = |n: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    for round in 0..6000 {
        let b = rows[round % rows.len()];
        let file = if round % 50 < rows.len() {
            fresh(&mut cx)
        } else {
            NIL
        };
        let pool = terms(&mut cx, file, &path);
        let mut args: Vec<Term> = (0..b.arity).map(|_| pool[random(pool.len())]).collect();
        if !file.is_nil() && b.arity > 0 && random(2) == 0 {
            args[0] = pool[random(2)];
        }
        let mut r = call(&mut cx, b, &args);
        // A native that a scheduler leaves to a dirty thread is called again as on that thread.
        if b.traits.here && matches!(r, Err(Fail::Dirty)) {
            cx.dirty = true;
            r = call(&mut cx, b, &args);
            cx.dirty = false;
        }
        match r {
            Ok(_) | Err(Fail::Badarg) => {}
            Err(e) => panic!("{}: {e:?}", b.name),
        }
        if !file.is_nil() {
            let close = rows
                .iter()
                .find(|b| b.name == "close_nif")
                .expect("close_nif");
            cx.dirty = true;
            call(&mut cx, close, &[file]).expect("closed");
            cx.dirty = false;
        }
        // SAFETY: nothing refers to the terms of a round any more.
        unsafe { purlin_term::gc::collect(&mut cx.heap, 0, &mut [], false) };
    }
    let _ = std::fs::remove_dir_all(&dir);
}
