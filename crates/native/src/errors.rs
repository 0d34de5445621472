//! Exceptions that several natives on data raise, with everything that their stack trace entries
//! show.

use crate::cx::{BifResult, Context, Fail};
use purlin_term::arith::{Arith, ArithError};
use purlin_term::{Alloc, Term, am};

/// Completes an exception raised in a native: its entry in the stack trace shows `args` and carries
/// `error_info`, as it does for `badarg`.
pub fn with_args<P>(cx: &mut Context<P>, f: Fail, args: &[Term]) -> Fail {
    cx.exc.args = cx.list(args);
    cx.exc.error_info = true;
    f
}

/// `error:{badmap, T}` of the native called with `args`.
#[cold]
pub fn badmap<P>(cx: &mut Context<P>, args: &[Term], t: Term) -> Fail {
    let f = cx.error2(am::BADMAP, t);
    with_args(cx, f, args)
}

/// `error:{badkey, K}` of the native called with `args`.
#[cold]
pub fn badkey<P>(cx: &mut Context<P>, args: &[Term], k: Term) -> Fail {
    let f = cx.error2(am::BADKEY, k);
    with_args(cx, f, args)
}

/// Returns the result of an arithmetic operation as that of a native.
#[inline]
pub fn arith(r: Arith) -> BifResult {
    r.map_err(|e| match e {
        ArithError::BadArith => Fail::Badarith,
        ArithError::SystemLimit => Fail::SystemLimit,
    })
}
