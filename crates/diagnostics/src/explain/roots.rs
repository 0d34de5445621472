//! The terms that a process holds directly, and where.

use purlin_kernel::cx::Cx;
use purlin_kernel::signal::receive;
use purlin_term::Term;

/// Where a process holds a term.
#[derive(Clone, Copy)]
pub(super) enum Root {
    /// An argument of what it calls next, from 1.
    Argument(usize),
    /// A variable of the function in which this address of code lies.
    Frame(usize),
    /// The value of this key of its dictionary.
    Dictionary(Term),
    /// A key of its dictionary.
    Key,
    Message,
}

/// Calls `f` with each term that the process in the context holds, immediates included: registers,
/// stack, dictionary, mailbox. The process is between two time slices, or waits at `pc`.
pub(super) fn each(cx: &mut Cx, pc: *const u64, f: &mut dyn FnMut(Root, Term)) {
    let live = cx.interp.live.min(cx.x.len());
    for (n, &t) in cx.x[..live].iter().enumerate() {
        f(Root::Argument(n + 1), t);
    }
    // A frame begins with the address to which its function returns.
    let (mut here, mut back) = (pc as usize, None);
    let (mut p, end) = (cx.heap.stop, cx.heap.hend);
    while !p.is_null() && p < end {
        // SAFETY: a word of the stack, between its top and the end of the block.
        let t = unsafe { *p };
        p = p.wrapping_add(1);
        match t.raw() as usize {
            w if t.is_header() && w != 0 => {
                here = back.unwrap_or(here);
                back = Some(w - 8);
            }
            _ if t.is_header() || t.is_catch() => {}
            _ => f(Root::Frame(here), t),
        }
    }
    if let Some(e) = cx.process().ext() {
        for (k, v) in e.dict.iter() {
            f(Root::Key, k);
            f(Root::Dictionary(k), v);
        }
    }
    receive::each_message(cx.process(), |t| {
        if t != Term::NON_VALUE {
            f(Root::Message, t);
        }
        true
    });
}
