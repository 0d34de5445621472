//! The functions of `erl_nif.h` that test, read and make terms, except binaries and maps.
//!
//! # Invariants
//! - A term that a function gets is valid for the environment that it is used in, and so are
//!   pointers for their lengths: the library promises that. Everything else is checked.
//! - A function that fails leaves its results as they were, except for strings, which it ends with
//!   a zero byte, as stock does.
//! - Making a term never collects.

use crate::abi::{LATIN1, UTF8};
use crate::env::ErlNifEnv;
use purlin_native::ids;
use purlin_term::word::{Subtag, header};
use purlin_term::{Alloc, NIL, Term, atom, compare, hash};
use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong};

/// Returns the number of characters that print the numbers in a term. It looks into tuples and
/// lists, but not into strings.
fn number_chars(t: Term) -> usize {
    let text = |t: Term| {
        purlin_term::print::format_term(t, purlin_term::print::Style::Display, usize::MAX / 4)
    };
    let mut n = 0;
    let mut todo = vec![t];
    while let Some(t) = todo.pop() {
        if let Some(items) = t.as_tuple() {
            todo.extend_from_slice(items);
        } else if t.as_cons().is_some() {
            let mut rest = t;
            let mut items = Vec::new();
            while let Some((h, tail)) = rest.as_cons() {
                items.push(h);
                rest = tail;
            }
            let printed = |h: &Term| {
                h.as_small()
                    .is_some_and(|c| matches!(c, 8..=13 | 27 | 32..=126))
            };
            if !(rest.is_nil() && items.iter().all(printed)) {
                todo.append(&mut items);
                todo.push(rest);
            }
        } else if t.is_number() {
            n += text(t).len();
        }
    }
    n
}

/// Returns the bytes of a C string.
pub fn c_bytes<'a>(p: *const c_char) -> &'a [u8] {
    match p.is_null() {
        true => &[],
        // SAFETY: by the interface C code passes strings that live for the call.
        false => unsafe { CStr::from_ptr(p) }.to_bytes(),
    }
}

/// Returns the `n` values at `p`, which may be null if `n` is 0.
///
/// # Safety
/// The values are there, and stay for `'a`.
pub unsafe fn slice<'a, T>(p: *const T, n: usize) -> &'a [T] {
    match n {
        0 => &[],
        // SAFETY: by the contract of this function.
        _ => unsafe { std::slice::from_raw_parts(p, n) },
    }
}

/// Returns a buffer to write to.
///
/// # Safety
/// There are `n` bytes at `p`, and nobody else uses them for `'a`.
unsafe fn buffer<'a>(p: *mut c_char, n: c_uint) -> &'a mut [u8] {
    match n {
        0 => &mut [],
        // SAFETY: by the contract of this function.
        n => unsafe { std::slice::from_raw_parts_mut(p as *mut u8, n as usize) },
    }
}

/// Decodes Latin-1.
fn from_latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| b as char).collect()
}

/// Decodes text; None if it is invalid in the encoding.
fn decoded(bytes: &[u8], encoding: c_int) -> Option<String> {
    match encoding {
        LATIN1 => Some(from_latin1(bytes)),
        UTF8 => std::str::from_utf8(bytes).ok().map(str::to_owned),
        _ => None,
    }
}

/// Returns the atom with that name, made if it is new. None if it is too long, or there are too
/// many atoms.
fn make_atom(name: &str) -> Option<Term> {
    atom::try_intern_to_stay(name).ok()
}

/// Does the same for a name in Latin-1.
pub fn latin1_atom(name: &[u8]) -> Option<Term> {
    make_atom(&from_latin1(name))
}

/// Returns the name of an atom in an encoding; None if it cannot be encoded, or `t` is no atom.
fn name_bytes(t: Term, encoding: c_int) -> Option<Vec<u8>> {
    if !t.is_atom() {
        return None;
    }
    let name = atom::name(t);
    match encoding {
        LATIN1 => name.chars().map(|c| u8::try_from(c as u32).ok()).collect(),
        UTF8 => Some(name.as_bytes().to_vec()),
        _ => None,
    }
}

/// Returns a signed 64-bit integer.
fn signed(t: Term) -> Option<i64> {
    if let Some(n) = t.as_small() {
        return Some(n);
    }
    match t.as_big()? {
        (false, &[d]) => i64::try_from(d).ok(),
        (true, &[d]) if d <= 1 << 63 => Some((d as i64).wrapping_neg()),
        _ => None,
    }
}

/// Returns an unsigned 64-bit integer.
fn unsigned(t: Term) -> Option<u64> {
    if let Some(n) = t.as_small() {
        return u64::try_from(n).ok();
    }
    match t.as_big()? {
        (false, &[d]) => Some(d),
        _ => None,
    }
}

/// Stores a value, if there is one, and returns whether there is.
///
/// # Safety
/// `to` may be written to.
unsafe fn store<T>(to: *mut T, v: Option<T>) -> c_int {
    match v {
        Some(v) => {
            // SAFETY: by the contract of this function.
            unsafe { to.write(v) };
            1
        }
        None => 0,
    }
}

/// Passes the encoded characters of a list to `take`, one after another, until it returns false.
/// None if the list is no list of characters in that encoding.
fn each_char(list: Term, encoding: c_int, mut take: impl FnMut(&[u8]) -> bool) -> Option<()> {
    let mut rest = list;
    while let Some((c, t)) = rest.as_cons() {
        let c = u32::try_from(c.as_small()?).ok()?;
        let mut four = [0; 4];
        let bytes: &[u8] = match encoding {
            LATIN1 => {
                four[0] = u8::try_from(c).ok()?;
                &four[..1]
            }
            UTF8 => char::from_u32(c)?.encode_utf8(&mut four).as_bytes(),
            _ => return None,
        };
        if !take(bytes) {
            return Some(());
        }
        rest = t;
    }
    rest.is_nil().then_some(())
}

/// Makes a list of characters.
///
/// # Safety
/// The environment belongs to this call.
unsafe fn make_string(env: *mut ErlNifEnv, bytes: &[u8], encoding: c_int) -> Term {
    // SAFETY: the environment is this call's.
    unsafe {
        match encoding {
            LATIN1 => (*env).byte_list(bytes, NIL),
            _ => match decoded(bytes, encoding) {
                Some(s) => (*env).string(&s),
                None => (*env).badarg(),
            },
        }
    }
}

/// Stores an existing atom.
///
/// # Safety
/// `to` may be written to.
unsafe fn existing(name: &[u8], to: *mut Term, encoding: c_int) -> c_int {
    // SAFETY: by the contract of this function.
    unsafe {
        store(
            to,
            decoded(name, encoding).and_then(|n| atom::existing_to_stay(&n)),
        )
    }
}

/// Stores an atom, made if it is new.
///
/// # Safety
/// `to` may be written to.
unsafe fn new_atom(name: &[u8], to: *mut Term, encoding: c_int) -> c_int {
    let made = decoded(name, encoding).and_then(|n| atom::try_intern_to_stay(&n).ok());
    // SAFETY: by the contract of this function.
    unsafe { store(to, made) }
}

fn truth(b: bool) -> c_int {
    c_int::from(b)
}

exported! {
    fn enif_is_atom(_env: *mut ErlNifEnv, t: Term) -> c_int {
        truth(t.is_atom())
    }
    fn enif_is_ref(_env: *mut ErlNifEnv, t: Term) -> c_int {
        truth(t.is_ref())
    }
    fn enif_is_fun(_env: *mut ErlNifEnv, t: Term) -> c_int {
        truth(t.is_fun())
    }
    fn enif_is_pid(_env: *mut ErlNifEnv, t: Term) -> c_int {
        truth(t.is_pid())
    }
    fn enif_is_port(_env: *mut ErlNifEnv, t: Term) -> c_int {
        truth(t.is_port())
    }
    fn enif_is_list(_env: *mut ErlNifEnv, t: Term) -> c_int {
        truth(t.is_list())
    }
    fn enif_is_empty_list(_env: *mut ErlNifEnv, t: Term) -> c_int {
        truth(t.is_nil())
    }
    fn enif_is_tuple(_env: *mut ErlNifEnv, t: Term) -> c_int {
        truth(t.is_tuple())
    }
    fn enif_is_number(_env: *mut ErlNifEnv, t: Term) -> c_int {
        truth(t.is_number())
    }
    /// The numbers are those of `ErlNifTermType`.
    fn enif_term_type(_env: *mut ErlNifEnv, t: Term) -> c_int {
        match () {
            _ if t.is_atom() => 1,
            _ if t.is_bitstring() => 2,
            _ if t.is_float() => 3,
            _ if t.is_fun() => 4,
            _ if t.is_integer() => 5,
            _ if t.is_list() => 6,
            _ if t.is_map() => 7,
            _ if t.is_pid() => 8,
            _ if t.is_port() => 9,
            _ if t.is_ref() => 10,
            _ if t.is_tuple() => 11,
            _ => -1,
        }
    }
    fn enif_is_identical(a: Term, b: Term) -> c_int {
        truth(compare::eq_exact(a, b))
    }
    fn enif_compare(a: Term, b: Term) -> c_int {
        compare::cmp(a, b) as c_int
    }
    /// 1: the salted hash of this runtime's tables. 2: `erlang:phash2/1`.
    fn enif_hash(kind: c_int, t: Term, salt: u64) -> u64 {
        match kind {
            1 => hash::salted(t, salt),
            2 => u64::from(hash::phash2(t)) & ((1 << 27) - 1),
            _ => 0,
        }
    }

    fn enif_get_int(_env: *mut ErlNifEnv, t: Term, to: *mut c_int) -> c_int {
        store(to, signed(t).and_then(|n| c_int::try_from(n).ok()))
    }
    fn enif_get_uint(_env: *mut ErlNifEnv, t: Term, to: *mut c_uint) -> c_int {
        store(to, unsigned(t).and_then(|n| c_uint::try_from(n).ok()))
    }
    fn enif_get_long(_env: *mut ErlNifEnv, t: Term, to: *mut c_long) -> c_int {
        store(to, signed(t).map(|n| n as c_long))
    }
    fn enif_get_ulong(_env: *mut ErlNifEnv, t: Term, to: *mut c_ulong) -> c_int {
        store(to, unsigned(t).map(|n| n as c_ulong))
    }
    fn enif_get_double(_env: *mut ErlNifEnv, t: Term, to: *mut f64) -> c_int {
        store(to, t.as_float())
    }
    fn enif_get_list_cell(
        _env: *mut ErlNifEnv, t: Term, head: *mut Term, tail: *mut Term,
    ) -> c_int {
        match t.as_cons() {
            Some((h, t)) => {
                head.write(h);
                tail.write(t);
                1
            }
            None => 0,
        }
    }
    fn enif_get_list_length(_env: *mut ErlNifEnv, t: Term, to: *mut c_uint) -> c_int {
        if !t.is_list() {
            return 0;
        }
        let (n, tail) = t.cells();
        store(to, tail.is_nil().then_some(n as c_uint))
    }
    /// Returns a pointer to the elements in the tuple.
    fn enif_get_tuple(
        _env: *mut ErlNifEnv, t: Term, arity: *mut c_int, to: *mut *const Term,
    ) -> c_int {
        match t.as_tuple() {
            Some(e) => {
                arity.write(e.len() as c_int);
                to.write(e.as_ptr());
                1
            }
            None => 0,
        }
    }
    fn enif_get_string(
        _env: *mut ErlNifEnv, list: Term, to: *mut c_char, room: c_uint, encoding: c_int,
    ) -> c_int {
        let to = buffer(to, room);
        if to.is_empty() {
            return 0;
        }
        let most = to.len() - 1;
        let (mut n, mut cut) = (0, false);
        let whole = each_char(list, encoding, |bytes| {
            cut = n + bytes.len() > most;
            if !cut {
                to[n..n + bytes.len()].copy_from_slice(bytes);
                n += bytes.len();
            }
            !cut
        });
        if whole.is_none() {
            to[0] = 0;
            return 0;
        }
        to[n] = 0;
        match cut {
            true => -(n as c_int + 1),
            false => n as c_int + 1,
        }
    }
    fn enif_get_string_length(
        _env: *mut ErlNifEnv, list: Term, to: *mut c_uint, encoding: c_int,
    ) -> c_int {
        let mut n = 0;
        let whole = each_char(list, encoding, |bytes| {
            n += bytes.len() as c_uint;
            true
        });
        store(to, whole.map(|_| n))
    }
    fn enif_get_atom(
        _env: *mut ErlNifEnv, t: Term, to: *mut c_char, room: c_uint, encoding: c_int,
    ) -> c_int {
        let Some(name) = name_bytes(t, encoding).filter(|n| n.len() < room as usize) else {
            return 0;
        };
        let to = buffer(to, room);
        to[..name.len()].copy_from_slice(&name);
        to[name.len()] = 0;
        name.len() as c_int + 1
    }
    fn enif_get_atom_length(
        _env: *mut ErlNifEnv, t: Term, to: *mut c_uint, encoding: c_int,
    ) -> c_int {
        store(to, name_bytes(t, encoding).map(|n| n.len() as c_uint))
    }

    fn enif_make_int(env: *mut ErlNifEnv, n: c_int) -> Term {
        (*env).int(n.into())
    }
    fn enif_make_uint(env: *mut ErlNifEnv, n: c_uint) -> Term {
        (*env).uint(n.into())
    }
    fn enif_make_long(env: *mut ErlNifEnv, n: c_long) -> Term {
        (*env).int(n as i64)
    }
    fn enif_make_ulong(env: *mut ErlNifEnv, n: c_ulong) -> Term {
        (*env).uint(n as u64)
    }
    fn enif_make_double(env: *mut ErlNifEnv, f: f64) -> Term {
        match f.is_finite() {
            true => (*env).float(f),
            false => (*env).badarg(),
        }
    }
    fn enif_make_atom(env: *mut ErlNifEnv, name: *const c_char) -> Term {
        latin1_atom(c_bytes(name)).unwrap_or_else(|| (*env).badarg())
    }
    fn enif_make_atom_len(env: *mut ErlNifEnv, name: *const c_char, n: usize) -> Term {
        latin1_atom(slice(name as *const u8, n)).unwrap_or_else(|| (*env).badarg())
    }
    fn enif_make_new_atom(
        _env: *mut ErlNifEnv, name: *const c_char, to: *mut Term, encoding: c_int,
    ) -> c_int {
        new_atom(c_bytes(name), to, encoding)
    }
    fn enif_make_new_atom_len(
        _env: *mut ErlNifEnv, name: *const c_char, n: usize, to: *mut Term, encoding: c_int,
    ) -> c_int {
        new_atom(slice(name as *const u8, n), to, encoding)
    }
    fn enif_make_existing_atom(
        _env: *mut ErlNifEnv, name: *const c_char, to: *mut Term, encoding: c_int,
    ) -> c_int {
        existing(c_bytes(name), to, encoding)
    }
    fn enif_make_existing_atom_len(
        _env: *mut ErlNifEnv, name: *const c_char, n: usize, to: *mut Term, encoding: c_int,
    ) -> c_int {
        existing(slice(name as *const u8, n), to, encoding)
    }
    fn enif_make_tuple_from_array(env: *mut ErlNifEnv, items: *const Term, n: c_uint) -> Term {
        (*env).tuple(slice(items, n as usize))
    }
    /// Makes a tuple of `n` elements and returns the address of the first. The caller writes them
    /// before anybody looks at the tuple.
    fn purlin_nif_tuple(env: *mut ErlNifEnv, n: c_uint, made: *mut Term) -> *mut Term {
        let n = n as usize;
        let p = (*env).alloc(1 + n);
        p.write(Term::from_raw(header(Subtag::Tuple, n)));
        made.write(Term::boxed_at(p));
        p.add(1)
    }
    /// Makes a tuple of two elements.
    fn purlin_nif_pair(env: *mut ErlNifEnv, first: Term, second: Term) -> Term {
        let Some(p) = (*env).at_hand(3) else {
            return pair_apart(env, first, second);
        };
        p.write(Term::from_raw(header(Subtag::Tuple, 2)));
        p.add(1).write(first);
        p.add(2).write(second);
        Term::boxed_at(p)
    }
    fn enif_make_list_from_array(env: *mut ErlNifEnv, items: *const Term, n: c_uint) -> Term {
        (*env).list(slice(items, n as usize))
    }
    fn enif_make_list_cell(env: *mut ErlNifEnv, head: Term, tail: Term) -> Term {
        let Some(p) = (*env).at_hand(2) else {
            return cell_apart(env, head, tail);
        };
        p.write(head);
        p.add(1).write(tail);
        Term::cons_at(p)
    }
    fn enif_make_reverse_list(env: *mut ErlNifEnv, list: Term, to: *mut Term) -> c_int {
        let mut made = NIL;
        let mut rest = list;
        while let Some((h, t)) = rest.as_cons() {
            made = (*env).cons(h, made);
            rest = t;
        }
        store(to, rest.is_nil().then_some(made))
    }
    fn enif_make_string(env: *mut ErlNifEnv, text: *const c_char, encoding: c_int) -> Term {
        make_string(env, c_bytes(text), encoding)
    }
    fn enif_make_string_len(
        env: *mut ErlNifEnv, text: *const c_char, n: usize, encoding: c_int,
    ) -> Term {
        make_string(env, slice(text as *const u8, n), encoding)
    }
    fn enif_make_ref(env: *mut ErlNifEnv) -> Term {
        ids::make_ref(&mut *env)
    }
    /// Bit 0: positive. Bit 1: strictly monotonic.
    fn enif_make_unique_integer(env: *mut ErlNifEnv, properties: c_int) -> Term {
        let n = match properties & 2 {
            0 => ids::unique(),
            _ => ids::unique_monotonic(),
        };
        ids::unique_integer(&mut *env, n, properties & 1 != 0)
    }
    /// Returns the number of words of a copy of the term.
    fn enif_term_size(t: Term) -> usize {
        purlin_term::copy::size_of(t)
    }
    /// Returns a number that is at most [`enif_max_atom_cache_index`] and always the same for an
    /// atom.
    fn enif_get_atom_cache_index(_env: *mut ErlNifEnv, t: Term, to: *mut c_uint) -> c_int {
        store(to, t.is_atom().then(|| t.atom_index() % ATOM_CACHE))
    }
    fn enif_max_atom_cache_index() -> c_uint {
        ATOM_CACHE - 1
    }
    /// Formats a term for `%T`, in at most `most` characters (no limit if negative), in a block
    /// from `malloc`. `counted` receives how many of them stock subtracts from the padding: those
    /// of numbers.
    fn purlin_nif_term_text(
        t: Term, most: c_long, length: *mut usize, counted: *mut usize,
    ) -> *mut c_char {
        counted.write(number_chars(t));
        let most = usize::try_from(most).unwrap_or(usize::MAX / 4);
        let s = purlin_term::print::format_term(t, purlin_term::print::Style::Display, most);
        let p = libc::malloc(s.len() + 1) as *mut u8;
        if p.is_null() {
            length.write(0);
            return p as *mut c_char;
        }
        std::ptr::copy_nonoverlapping(s.as_ptr(), p, s.len());
        p.add(s.len()).write(0);
        length.write(s.len());
        p as *mut c_char
    }
}

/// Makes a cell if the heap has no room for it. Called in tail position, so that callers need no
/// stack frame.
///
/// # Safety
/// The environment belongs to this call, and the terms belong to it.
#[cold]
#[inline(never)]
unsafe extern "C" fn cell_apart(env: *mut ErlNifEnv, head: Term, tail: Term) -> Term {
    // SAFETY: the environment is this call's.
    unsafe { (*env).cons(head, tail) }
}

/// Does the same for a tuple of two elements.
///
/// # Safety
/// The environment belongs to this call, and the terms belong to it.
#[cold]
#[inline(never)]
unsafe extern "C" fn pair_apart(env: *mut ErlNifEnv, first: Term, second: Term) -> Term {
    // SAFETY: the environment is this call's.
    unsafe { (*env).tuple(&[first, second]) }
}

/// Number of places in the atom cache of a connection to another node.
const ATOM_CACHE: c_uint = 2048;

const _: () = assert!(size_of::<c_long>() == 8);
