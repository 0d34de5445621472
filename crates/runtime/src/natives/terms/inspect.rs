//! Natives that inspect terms: hashes, kinds, internals of maps, sizes, and printing for debugging.

use crate::cx::{BifResult, Cx, Fail};
use purlin_native::cx::Env;
use purlin_native::errors::badmap;
use purlin_native::long;
use purlin_native::reschedule::{LongCall, MANY, charge, dirty_if_large};
use purlin_term::bits::is_small_part;
use purlin_term::map::{self, NextKind};
use purlin_term::print::{Style, display, format_term};
use purlin_term::release::{
    self, FUNS_IN_TWO, LARGE_BINARIES_IN_TWO, LEAN_FUNS, ORDERED_ITERATORS, TWO_KINDS_OF_BITS,
};
use purlin_term::word::{Subtag, header_subtag};
use purlin_term::{Alloc, NIL, Term, am, arith, atom, compare, hash, layout};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;

crate::lazy_atoms! {
    iterator = "iterator";
}

/// A range of hashes, at most 2^32.
fn range(t: Term) -> Result<u64, Fail> {
    match arith::to_u64(t) {
        Some(n @ 1..=0x1_0000_0000) => Ok(n),
        _ => Err(Fail::Badarg),
    }
}
fn phash_2(cx: &mut Env, [t, n]: [Term; 2]) -> BifResult {
    let modulus = range(n)?;
    dirty_if_large(cx, long!("erlang":"phash"/2).call(&[t, n]), t)?;
    let n = modulus;
    let h = u64::from(hash::phash(t));
    Ok(cx.uint(h % n + 1))
}
fn phash2_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let hash = portable_hash(cx, long!("erlang":"phash2"/1).call(&[t]), t)?;
    Ok(Term::small(i64::from(hash & ((1 << 27) - 1))))
}
fn phash2_2(cx: &mut Env, [t, n]: [Term; 2]) -> BifResult {
    let modulus = range(n)?;
    let hash = portable_hash(cx, long!("erlang":"phash2"/2).call(&[t, n]), t)?;
    Ok(Term::small((u64::from(hash) % modulus) as i64))
}
/// `phash2` before it is reduced to a range. A term of few parts is walked once.
fn portable_hash(cx: &mut Env, call: LongCall<'_>, t: Term) -> Result<u32, Fail> {
    if let Some((hash, parts)) = hash::phash2_of_few(t, MANY) {
        charge(cx, parts);
        return Ok(hash);
    }
    dirty_if_large(cx, call, t)?;
    Ok(hash::phash2(t))
}

fn cmp_term_2(_cx: &mut Cx, [a, b]: [Term; 2]) -> BifResult {
    Ok(Term::small(compare::cmp_exact(a, b) as i64))
}
fn same_2(_cx: &mut Cx, [a, b]: [Term; 2]) -> BifResult {
    Ok(Term::bool(a == b))
}

/// Whether the binary that a sub-binary refers to lies on a heap itself.
fn is_of_heap(t: Term) -> bool {
    let of = t.whole();
    of.boxed_header()
        .is_some_and(|h| header_subtag(h) == Subtag::HeapBin)
}

fn term_type_1(_cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let name = if t.is_list_ptr() {
        "list"
    } else if t.is_small() {
        "fixnum"
    } else if t.is_local_pid() {
        "pid"
    } else if t.is_local_port() {
        "port"
    } else if t.is_atom() {
        "atom"
    } else if t.is_nil() {
        "nil"
    } else {
        let header = t.boxed_header().ok_or(Fail::Badarg)?;
        match header_subtag(header) {
            Subtag::Tuple => "tuple",
            Subtag::PosBig | Subtag::NegBig => "bignum",
            Subtag::Ref => "reference",
            Subtag::Fun if t.as_fun().is_some_and(|f| f.external) => "export",
            Subtag::Fun => "fun",
            Subtag::Float => "hfloat",
            Subtag::RefcBin if release::has(TWO_KINDS_OF_BITS) => "sub_binary",
            Subtag::RefcBin => "refc_binary",
            Subtag::HeapBin => "heap_binary",
            Subtag::SubBin if release::has(TWO_KINDS_OF_BITS) && is_of_heap(t) => "heap_binary",
            Subtag::SubBin => "sub_binary",
            Subtag::ExtPid => "external_pid",
            Subtag::ExtPort => "external_port",
            Subtag::ExtRef => "external_reference",
            Subtag::Record => "record",
            Subtag::Map => match layout::map_kind(header) {
                layout::MAP_FLAT => "flatmap",
                layout::MAP_NODE => "hashmap_node",
                _ => "hashmap",
            },
            Subtag::MatchContext | Subtag::UnusedB => return Err(Fail::Badarg),
        }
    };
    Ok(atom::intern(name))
}

fn map_to_tuple_keys_1(cx: &mut Cx, [m]: [Term; 1]) -> BifResult {
    if !m.is_map() {
        return Err(badmap(cx, &[m], m));
    }
    map::tuple_keys(m).ok_or(Fail::Badarg)
}
fn map_hashmap_children_1(cx: &mut Cx, [m]: [Term; 1]) -> BifResult {
    if !m.is_map() {
        return Err(badmap(cx, &[m], m));
    }
    map::children(cx, m).ok_or(Fail::Badarg)
}
fn map_info_1(cx: &mut Cx, [m]: [Term; 1]) -> BifResult {
    if !m.is_map() {
        return Err(badmap(cx, &[m], m));
    }
    let s = map::shape(m).ok_or(Fail::Badarg)?;
    let number = |n: usize| Term::small(n as i64);
    let mut told = vec![cx.tuple(&[atom::intern("depth"), number(s.depth)])];
    told.push(cx.tuple(&[atom::intern("arrays"), number(s.full_roots), NIL]));
    for (name, counts) in [("bitmaps", s.nodes), ("leafs", s.leaves)] {
        let each = cx.tuple(&counts.map(number));
        let all = number(counts.iter().sum());
        told.push(cx.tuple(&[atom::intern(name), all, each]));
    }
    Ok(cx.list(&told))
}
fn map_next_3(cx: &mut Cx, [path, m, kind]: [Term; 3]) -> BifResult {
    let kind = if kind.is_list() {
        NextKind::List(kind)
    } else if kind == iterator() {
        NextKind::Iterator
    } else {
        return Err(Fail::Badarg);
    };
    // As many pairs as the time slice allows.
    let max = (cx.reds / 4).max(1) as usize;
    if path.is_list() && release::has(ORDERED_ITERATORS) && matches!(kind, NextKind::Iterator) {
        let max = (cx.reds / KEY_REDUCTIONS as i64).max(1) as usize;
        return next_of_keys(cx, path, m, max);
    }
    let (t, taken) = map::next(cx, path, m, kind, max).ok_or(Fail::Badarg)?;
    cx.bump(4 * taken);
    Ok(t)
}

/// Reductions that stock charges for a key held by an iterator.
const KEY_REDUCTIONS: usize = 32;

/// The pairs of the first `max` of `keys` in a map, each with its successor, as `{Key, Value,
/// Next}`. `Next` is `none` at the end, otherwise the iterator over the remaining keys.
fn next_of_keys(cx: &mut Cx, keys: Term, m: Term, max: usize) -> BifResult {
    if !m.is_map() {
        return Err(Fail::Badarg);
    }
    let mut pairs = Vec::new();
    let mut left = keys;
    while let Some((k, rest)) = left.as_cons()
        && pairs.len() < max
    {
        pairs.push((k, map::get(m, k).ok_or(Fail::Badarg)?));
        left = rest;
    }
    let mut next = match left.is_nil() {
        true => atom::intern("none"),
        false if left.is_list() => cx.cons(left, m),
        false => return Err(Fail::Badarg),
    };
    cx.bump(KEY_REDUCTIONS * pairs.len());
    for (k, v) in pairs.into_iter().rev() {
        next = cx.tuple(&[k, v, next]);
    }
    Ok(next)
}

/// Words of a copy of `t` without any sharing, literals included.
pub(crate) fn flat_words(t: Term) -> usize {
    let mut words = 0;
    let mut todo = vec![t];
    while let Some(mut t) = todo.pop() {
        while let Some((h, tl)) = t.as_cons() {
            words += 2;
            if !h.is_immed() {
                todo.push(h);
            }
            t = tl;
        }
        if !t.is_boxed() {
            continue;
        }
        let p = t.ptr();
        // SAFETY: a live boxed term is well formed.
        unsafe {
            match t.subtag() {
                // All empty tuples are one, which belongs to no heap.
                Some(Subtag::Tuple) if t.as_tuple().is_some_and(|e| e.is_empty()) => {}
                Some(Subtag::SubBin) => words += sub_binary_words(t),
                Some(Subtag::RefcBin) if release::has(LARGE_BINARIES_IN_TWO) => {
                    words += PART_AND_WHOLE_WORDS;
                }
                s => {
                    words += match s {
                        Some(Subtag::Fun) => fun_words(t, layout::object_words(p)),
                        _ => layout::object_words(p),
                    };
                    let (a, b) = layout::term_range(p);
                    for i in a..b {
                        let e = *p.add(i);
                        if !e.is_immed() {
                            todo.push(e);
                        }
                    }
                }
            }
        }
    }
    words
}

/// Words of a counted binary as stock counts it since OTP 27: the part and what it refers to.
const PART_AND_WHOLE_WORDS: usize = PART_WORDS + WHOLE_WORDS;
const PART_WORDS: usize = 5;
const WHOLE_WORDS: usize = 3;
/// Words of a fun and the object behind it that keeps its code alive.
const FUN_AND_CODE_WORDS: usize = FUN_WORDS + 3;
const FUN_WORDS: usize = 2 + 1;
/// Words of a fun without that object.
const LEAN_FUN_WORDS: usize = 2;

/// The size that a fun of `own` words is reported with.
fn fun_words(t: Term, own: usize) -> usize {
    let external = t.as_fun().is_some_and(|f| f.external);
    let captured = own.saturating_sub(layout::FUN_WORDS);
    match (release::has(LEAN_FUNS), release::has(FUNS_IN_TWO)) {
        (true, _) => LEAN_FUN_WORDS + captured,
        (_, true) if external => LEAN_FUN_WORDS,
        (_, true) => FUN_AND_CODE_WORDS + captured,
        _ => own,
    }
}

/// Words that a copy of a sub-binary counts as: those of the binary it refers to (a refc binary as
/// such, otherwise its own part of the bytes), and its own words unless it starts and ends at byte
/// boundaries.
fn sub_binary_words(t: Term) -> usize {
    let Some(bits) = t.as_bits() else { return 0 };
    let original = t.whole();
    if release::has(LARGE_BINARIES_IN_TWO) {
        return match is_small_part(t) || original.subtag() != Some(Subtag::RefcBin) {
            true => layout::HEAP_BIN_HEAD_WORDS + bits.bit_len.div_ceil(64),
            false => PART_AND_WHOLE_WORDS,
        };
    }
    let odd = bits.bit_offset as usize + (bits.bit_len & 7);
    let (own, extra) = match odd {
        0 => (0, 0),
        1..=8 => (layout::SUB_BIN_WORDS, 1),
        _ => (layout::SUB_BIN_WORDS, 2),
    };
    own + match original.subtag() {
        Some(Subtag::RefcBin) => layout::REFC_BIN_WORDS,
        _ => layout::HEAP_BIN_HEAD_WORDS + (bits.bit_len / 8 + extra).div_ceil(8),
    }
}

/// Words of an object that is reached for the first time, counting what it shares with others once.
///
/// `whole` says whether the binary that a large sub-binary refers to is new, too. `None`: the size
/// is that of the object's layout.
pub(crate) fn shared_words(t: Term, whole: impl FnOnce(*mut Term) -> bool) -> Option<usize> {
    if !release::has(LARGE_BINARIES_IN_TWO) {
        return None;
    }
    let part = |whole_is_new| PART_WORDS + if whole_is_new { WHOLE_WORDS } else { 0 };
    match t.subtag() {
        Some(Subtag::RefcBin) => Some(part(whole(t.ptr()))),
        Some(Subtag::SubBin) => {
            let original = t.whole();
            let small = is_small_part(t) || original.subtag() != Some(Subtag::RefcBin);
            Some(match small {
                true => sub_binary_words(t),
                false => part(whole(original.ptr())),
            })
        }
        Some(Subtag::Fun) => {
            let f = t.as_fun()?;
            let own = if release::has(LEAN_FUNS) {
                LEAN_FUN_WORDS
            } else {
                FUN_WORDS
            };
            Some(match f.external || f.env.is_empty() {
                // A literal.
                true => 0,
                false => own + f.env.len(),
            })
        }
        _ => None,
    }
}

fn flat_size_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    dirty_if_large(cx, long!("erts_debug":"flat_size"/1).call(&[t]), t)?;
    let n = flat_words(t);
    cx.bump(n / 64);
    Ok(Term::small(n as i64))
}

/// Writes text for people to read. Lines end as on a terminal in raw mode, wherever the output
/// goes.
fn show(fd: i32, text: &[u8]) {
    let mut out = Vec::with_capacity(text.len() + 8);
    for line in text.split_inclusive(|c| *c == b'\n') {
        match line.split_last() {
            Some((b'\n', before)) => {
                out.extend_from_slice(before);
                out.extend_from_slice(b"\r\n");
            }
            _ => out.extend_from_slice(line),
        }
    }
    put(fd, &out);
}
/// Failures are ignored, since there is nowhere to report them. A port on the descriptor may have
/// made it non-blocking.
fn put(fd: i32, mut left: &[u8]) {
    while !left.is_empty() {
        // SAFETY: a pointer to that many bytes.
        let n = unsafe { libc::write(fd, left.as_ptr().cast(), left.len()) };
        if n >= 0 {
            left = &left[n as usize..];
            continue;
        }
        match std::io::Error::last_os_error().kind() {
            ErrorKind::Interrupted => {}
            ErrorKind::WouldBlock => {
                let mut p = libc::pollfd {
                    fd,
                    events: libc::POLLOUT,
                    revents: 0,
                };
                // SAFETY: one descriptor to wait for.
                unsafe { libc::poll(&mut p, 1, -1) };
            }
            _ => return,
        }
    }
}
fn display_1(_cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let mut s = display(t);
    s.push(b'\n');
    show(libc::STDOUT_FILENO, &s);
    Ok(am::TRUE)
}
fn debug_display_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let mut s = display(t);
    s.push(b'\n');
    show(libc::STDOUT_FILENO, &s);
    Ok(cx.byte_list(&s, purlin_term::NIL))
}
/// The characters of a list, as UTF-8.
fn characters(l: Term) -> Result<String, Fail> {
    let mut it = l.list_iter();
    let mut s = String::new();
    for x in it.by_ref() {
        let c = x.as_small().and_then(|v| u32::try_from(v).ok());
        s.push(c.and_then(char::from_u32).ok_or(Fail::Badarg)?);
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    Ok(s)
}
fn display_string_1(_cx: &mut Cx, [l]: [Term; 1]) -> BifResult {
    show(libc::STDERR_FILENO, characters(l)?.as_bytes());
    Ok(am::TRUE)
}
/// As in stock, `stdin` means the terminal, whatever standard input is.
fn display_string_2(cx: &mut Cx, [device, text]: [Term; 2]) -> BifResult {
    let bytes = match text.as_binary() {
        Some(bytes) => bytes.to_vec(),
        None => characters(text)?.into_bytes(),
    };
    let name = if device.is_atom() {
        atom::name(device)
    } else {
        ""
    };
    match name {
        "stdout" => put(libc::STDOUT_FILENO, &bytes),
        "stderr" => put(libc::STDERR_FILENO, &bytes),
        "stdin" => {
            let terminal = std::fs::OpenOptions::new().write(true).open("/dev/tty");
            let terminal = match terminal {
                Ok(t) => t,
                Err(e) => {
                    let reason = crate::posix::errno_atom(crate::posix::errno_of(&e));
                    return Err(cx.badarg_cause(reason));
                }
            };
            put(terminal.as_raw_fd(), &bytes);
        }
        _ => return Err(Fail::Badarg),
    }
    Ok(am::TRUE)
}
/// The text that `display/1` writes, cut after about `limit` characters.
fn term_to_string_2(cx: &mut Cx, [t, limit]: [Term; 2]) -> BifResult {
    let limit = match limit.as_small() {
        Some(n) if n > 0 => n as usize,
        _ if limit == am::UNDEFINED => usize::MAX,
        _ => return Err(Fail::Badarg),
    };
    let s = format_term(t, Style::Display, limit);
    Ok(cx.byte_list(s.as_bytes(), purlin_term::NIL))
}
fn display_nl_0(_cx: &mut Cx, []: [Term; 0]) -> BifResult {
    show(libc::STDERR_FILENO, b"\n");
    Ok(am::TRUE)
}

crate::bifs! {
    Plain "erlang":"phash"/2 = phash_2 [long];
    Plain "erlang":"phash2"/1 = phash2_1 [long];
    Plain "erlang":"phash2"/2 = phash2_2 [long];
    Plain "erts_internal":"cmp_term"/2 = cmp_term_2;
    Plain "erts_internal":"term_type"/1 = term_type_1;
    Plain "erts_internal":"map_to_tuple_keys"/1 = map_to_tuple_keys_1;
    Plain "erts_internal":"map_hashmap_children"/1 = map_hashmap_children_1;
    Plain "erts_internal":"map_next"/3 = map_next_3;
    Plain "erts_debug":"map_info"/1 = map_info_1;
    Plain "erts_debug":"same"/2 = same_2;
    Plain "erts_debug":"flat_size"/1 = flat_size_1 [long];
    Plain "erts_debug":"display"/1 = debug_display_1 [before(26)];
    Plain "erlang":"display"/1 = display_1;
    Plain "erlang":"display_string"/1 = display_string_1 [before(26)];
    Plain "erlang":"display_string"/2 = display_string_2 [since(26)];
    Plain "erts_internal":"term_to_string"/2 = term_to_string_2 [since(26)];
    Plain "erlang":"display_nl"/0 = display_nl_0 [before(26)];
}
