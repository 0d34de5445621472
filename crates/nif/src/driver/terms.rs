//! Messages that drivers describe by words: `erl_drv_output_term`, `erl_drv_send_term`.
//!
//! # Orderings
//! `flushing` belongs to the port: see `port.rs`.

use super::abi::{Block, Handle};
use super::block::Part;
use super::calls::binary;
use super::port::{CPort, of_handle};
use crate::terms::slice;
use purlin_kernel::process;
use purlin_native::exports::CodeHooks;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::{Alloc, NIL, Term, copy, etf, map};
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A reader of the words of a description.
struct Words<'a>(std::slice::Iter<'a, u64>);

impl Words<'_> {
    fn next(&mut self) -> Option<u64> {
        self.0.next().copied()
    }
    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.next()?).ok()
    }
    /// Reads an address and a length.
    ///
    /// # Safety
    /// The words are sent by a driver: the address, if any, points to that many bytes.
    unsafe fn bytes(&mut self) -> Option<&'static [u8]> {
        let p = self.next()? as *const u8;
        let n = self.count()?;
        // SAFETY: by the contract of this function.
        (n == 0 || !p.is_null()).then(|| unsafe { slice(p, n) })
    }
}

/// Takes `n` terms off the top, in their original order.
fn top(stack: &mut Vec<Term>, n: usize) -> Option<Vec<Term>> {
    let at = stack.len().checked_sub(n)?;
    Some(stack.split_off(at))
}

/// Builds the term that the words describe; each kind follows its number. None if they are invalid.
///
/// # Safety
/// The words are sent by a driver: their addresses point to what their kinds say.
unsafe fn build(words: &[u64], a: &mut Fragment) -> Option<Term> {
    let mut w = Words(words.iter());
    let mut stack: Vec<Term> = Vec::new();
    while let Some(kind) = w.next() {
        // SAFETY: the words are sent by a driver, so each is what its kind says.
        let t = unsafe {
            match kind {
                // Nil.
                1 => NIL,
                // Atom, port, pid: the word of the term.
                2 => Some(Term::from_raw(w.next()?)).filter(|t| t.is_atom())?,
                4 => Some(Term::from_raw(w.next()?)).filter(|t| t.is_local_port())?,
                10 => Some(Term::from_raw(w.next()?)).filter(|t| t.is_local_pid())?,
                // Integers: signed, unsigned, and the same by address.
                3 => a.int(w.next()? as i64),
                13 => a.uint(w.next()?),
                15 => a.int((w.next()? as *const i64).as_ref().copied()?),
                16 => a.uint((w.next()? as *const u64).as_ref().copied()?),
                // A part of a block: its address, length and offset.
                5 => {
                    let block = w.next()? as *mut Block;
                    let (n, at) = (w.count()?, w.count()?);
                    if block.is_null() {
                        return None;
                    }
                    binary(a, Part::of(block, at, n)?)
                }
                // A list of bytes; a list of bytes in front of the preceding term.
                6 => a.byte_list(w.bytes()?, NIL),
                9 => {
                    let b = w.bytes()?;
                    let tail = stack.pop()?;
                    a.byte_list(b, tail)
                }
                7 => {
                    let n = w.count()?;
                    let items = top(&mut stack, n)?;
                    a.tuple(&items)
                }
                // The last element is the tail.
                8 => {
                    let n = w.count()?.checked_sub(1)?;
                    let tail = stack.pop()?;
                    let items = top(&mut stack, n)?;
                    a.list_tail(&items, tail)
                }
                11 => {
                    let f = (w.next()? as *const f64).as_ref().copied()?;
                    f.is_finite().then(|| a.float(f))?
                }
                // An external term.
                12 => {
                    let b = w.bytes()?;
                    etf::decode(b, a, &CodeHooks, etf::Options::default())
                        .ok()?
                        .0
                }
                14 => a.binary(w.bytes()?),
                17 => {
                    let n = w.count()?;
                    let items = top(&mut stack, n.checked_mul(2)?)?;
                    let pairs: Vec<(Term, Term)> = items.chunks(2).map(|p| (p[0], p[1])).collect();
                    map::from_pairs_unique(a, &pairs)?
                }
                _ => return None,
            }
        };
        stack.push(t);
    }
    match stack[..] {
        [t] => Some(t),
        _ => None,
    }
}

/// Sends a message. Returns 1 if it is sent, 0 if there is no receiver, -1 if the words describe no
/// term.
///
/// # Safety
/// `words` are `n` words of a driver, as for [`build`].
unsafe fn send(p: Option<Arc<CPort>>, to: Option<Term>, words: *const u64, n: c_int) -> c_int {
    let mut f = Fragment::new();
    // SAFETY: by the contract of this function.
    let made = unsafe { build(slice(words, n.max(0) as usize), &mut f) };
    let Some(t) = made else {
        // SAFETY: nobody has seen its terms.
        unsafe { f.destroy() };
        return -1;
    };
    let msg = OwnedTerm::from_parts(t, f);
    let Some(p) = p else {
        return 0;
    };
    if to.is_none() && p.flushing.load(Ordering::Acquire) {
        return 0;
    }
    let owner = || p.here(|b| b.connected).unwrap_or_else(|| p.owner());
    let to = to.unwrap_or_else(owner);
    if !to.is_local_pid() {
        return 0;
    }
    let there = process::table().is_alive(to);
    // A traced port reports the message even if there is no receiver.
    let sent = p.here(|b| b.message(to, |a| copy::copy(msg.term(), a)));
    match sent {
        Some(()) => c_int::from(there),
        None => c_int::from(there && purlin_kernel::signal::send(to, msg.term())),
    }
}

/// Returns the port that a term names.
fn of_term(port: Term) -> Option<Arc<CPort>> {
    match port.is_local_port() {
        true => of_handle(port.pid_data() as Handle),
        false => None,
    }
}

exported! {
    fn erl_drv_output_term(port: Term, words: *const u64, n: c_int) -> c_int {
        send(of_term(port), None, words, n)
    }
    fn erl_drv_send_term(port: Term, to: Term, words: *const u64, n: c_int) -> c_int {
        send(of_term(port), Some(to), words, n)
    }
    fn driver_output_term(h: Handle, words: *const u64, n: c_int) -> c_int {
        send(of_handle(h), None, words, n)
    }
    fn driver_send_term(h: Handle, to: Term, words: *const u64, n: c_int) -> c_int {
        send(of_handle(h), Some(to), words, n)
    }
}

/// `driver_term_nil`
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static driver_term_nil: Term = NIL;
