//! Natives of module `prim_buffer`: a queue of bytes behind a magic reference, which the library's
//! file buffering uses.
//!
//! One process at a time uses a buffer (it takes the buffer's own lock first); the mutex makes
//! misuse harmless.
//!
//! # Orderings
//! `try_lock` swaps with acquire and `unlock` with release, as a lock does. The bytes have a mutex,
//! which orders them anyway.

use super::iolist::{self, IoSlice, IoVec};
use super::native_state;
use crate::cx::{BifResult, Env, Fail};
use crate::{bifs, lazy_atoms};
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{Alloc, Term, am};
use std::sync::atomic::{AtomicBool, Ordering};

lazy_atoms! {
    acquired = "acquired";
    busy = "busy";
    not_found = "not_found";
}

struct Buffer {
    data: Mutex<IoVec>,
    /// Whether `try_lock` holds it.
    locked: AtomicBool,
}

fn buffer<'a>(t: Term) -> Result<&'a Buffer, Fail> {
    native_state::get::<Buffer>(t).ok_or(Fail::Badarg)
}

fn data<'a>(t: Term) -> Result<MutexGuard<'a, IoVec>, Fail> {
    Ok(buffer(t)?.data.lock())
}

fn size_arg(t: Term) -> Result<usize, Fail> {
    t.as_small()
        .and_then(|n| usize::try_from(n).ok())
        .ok_or(Fail::Badarg)
}

fn new_0(cx: &mut Env, []: [Term; 0]) -> BifResult {
    Ok(native_state::make(
        cx,
        Buffer {
            data: Mutex::new(IoVec::default()),
            locked: AtomicBool::new(false),
        },
    ))
}

fn size_1(cx: &mut Env, [b]: [Term; 1]) -> BifResult {
    let n = data(b)?.bytes;
    Ok(cx.uint(n as u64))
}

fn peek_head_1(cx: &mut Env, [b]: [Term; 1]) -> BifResult {
    let d = data(b)?;
    let head = d.parts.front().ok_or(Fail::Badarg)?;
    Ok(head.to_term(cx))
}

fn copying_read_2(cx: &mut Env, [b, n]: [Term; 2]) -> BifResult {
    let mut d = data(b)?;
    let n = size_arg(n)?;
    if n > d.bytes {
        return Err(Fail::Badarg);
    }
    cx.bump(n / 1024 + 1);
    let t = iolist::build_binary(cx, n, |out| {
        let mut at = 0;
        for s in d.parts.iter() {
            let take = s.len().min(n - at);
            out[at..at + take].copy_from_slice(&s.as_bytes()[..take]);
            at += take;
            if at == n {
                break;
            }
        }
    });
    d.advance(n);
    Ok(t)
}

fn write_2(cx: &mut Env, [b, iovec]: [Term; 2]) -> BifResult {
    let mut d = data(b)?;
    if !iovec.is_list() {
        return Err(Fail::Badarg);
    }
    let mut parts = Vec::new();
    let mut it = iovec.list_iter();
    for t in it.by_ref() {
        parts.push(IoSlice::of_binary(t).ok_or(Fail::Badarg)?);
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    cx.bump(parts.len() / 16 + 1);
    for p in parts {
        d.push(p);
    }
    Ok(am::OK)
}

fn skip_2(_: &mut Env, [b, n]: [Term; 2]) -> BifResult {
    let mut d = data(b)?;
    let n = size_arg(n)?;
    if n > d.bytes {
        return Err(Fail::Badarg);
    }
    d.advance(n);
    Ok(am::OK)
}

fn find_byte_index_2(cx: &mut Env, [b, byte]: [Term; 2]) -> BifResult {
    let d = data(b)?;
    let byte = byte
        .as_small()
        .and_then(|n| u8::try_from(n).ok())
        .ok_or(Fail::Badarg)?;
    let mut at = 0;
    for s in d.parts.iter() {
        if let Some(i) = memchr::memchr(byte, s.as_bytes()) {
            cx.bump((at + i) / 4096 + 1);
            let n = cx.uint((at + i) as u64);
            return Ok(cx.ok(n));
        }
        at += s.len();
    }
    cx.bump(at / 4096 + 1);
    Ok(not_found())
}

fn try_lock_1(_: &mut Env, [b]: [Term; 1]) -> BifResult {
    Ok(if buffer(b)?.locked.swap(true, Ordering::Acquire) {
        busy()
    } else {
        acquired()
    })
}

fn unlock_1(_: &mut Env, [b]: [Term; 1]) -> BifResult {
    if buffer(b)?.locked.swap(false, Ordering::Release) {
        Ok(am::OK)
    } else {
        Err(Fail::Badarg)
    }
}

bifs! {
    Plain "prim_buffer":"new"/0 = new_0;
    Plain "prim_buffer":"size"/1 = size_1;
    Plain "prim_buffer":"peek_head"/1 = peek_head_1;
    Plain "prim_buffer":"copying_read"/2 = copying_read_2;
    Plain "prim_buffer":"write"/2 = write_2;
    Plain "prim_buffer":"skip"/2 = skip_2;
    Plain "prim_buffer":"find_byte_index"/2 = find_byte_index_2;
    Plain "prim_buffer":"try_lock"/1 = try_lock_1;
    Plain "prim_buffer":"unlock"/1 = unlock_1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use purlin_term::NIL;

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let mut cx = Env::boxed(0);
        let cx = &mut *cx;
        let b = new_0(cx, []).expect("a buffer");
        let small = cx.binary(b"one\ntwo");
        let large = cx.binary(&[b'x'; 1000]);
        let parts = cx.list(&[small, large]);
        assert_eq!(write_2(cx, [b, parts]), Ok(am::OK));
        assert_eq!(size_1(cx, [b]), Ok(Term::small(1007)));
        let at = find_byte_index_2(cx, [b, Term::small(10)]).expect("an index");
        assert_eq!(at.as_tuple(), Some(&[am::OK, Term::small(3)][..]));
        let t = copying_read_2(cx, [b, Term::small(9)]).expect("bytes");
        assert_eq!(t.as_binary().as_deref(), Some(&b"one\ntwoxx"[..]));
        let head = peek_head_1(cx, [b]).expect("the head");
        assert_eq!(head.as_binary().map(|s| s.len()), Some(998));
        assert_eq!(skip_2(cx, [b, Term::small(999)]), Err(Fail::Badarg));
        assert_eq!(skip_2(cx, [b, Term::small(998)]), Ok(am::OK));
        assert_eq!(size_1(cx, [b]), Ok(Term::small(0)));
        assert_eq!(find_byte_index_2(cx, [b, Term::small(10)]), Ok(not_found()));
        assert_eq!(try_lock_1(cx, [b]), Ok(acquired()));
        assert_eq!(try_lock_1(cx, [b]), Ok(busy()));
        assert_eq!(unlock_1(cx, [b]), Ok(am::OK));
        assert_eq!(unlock_1(cx, [b]), Err(Fail::Badarg));
        assert_eq!(size_1(cx, [NIL]), Err(Fail::Badarg));
    }
}
