//! The operators of the language as functions of module `erlang`: arithmetic, comparison, boolean;
//! and the natives that round.

use super::errors::arith;
use super::reschedule::{Long, dirty_if};
use crate::cx::{BifResult, Env, Fail};
use crate::long;
use purlin_term::arith::{self as num, Effort, Rounding};
use purlin_term::compare::{cmp, eq, eq_exact};
use purlin_term::{Alloc, Term, am, atom};

macro_rules! arith2 {
    ($($name:ident = $f:path, $effort:ident;)*) => {$(
        fn $name(cx: &mut Env, [x, y]: [Term; 2]) -> BifResult {
            let made = arith($f(cx, x, y))?;
            cx.bump(Effort::$effort.reductions(x, y, made));
            Ok(made)
        }
    )*};
}
arith2! {
    add_2 = num::add, Longer;
    sub_2 = num::sub, Longer;
    band_2 = num::band, Longer;
    bor_2 = num::bor, Longer;
    bxor_2 = num::bxor, Longer;
    bsl_2 = num::bsl, Result;
    bsr_2 = num::bsr, Result;
}

macro_rules! arith2_long {
    ($($name:ident = $f:path, $effort:ident, $text:literal;)*) => {$(
        fn $name(cx: &mut Env, [x, y]: [Term; 2]) -> BifResult {
            if Effort::$effort.is_long(x, y) {
                leave(cx, long!("erlang":$text/2), [x, y])?;
            }
            let made = arith($f(cx, x, y))?;
            cx.bump(Effort::$effort.reductions(x, y, made));
            Ok(made)
        }
    )*};
}
arith2_long! {
    mul_2 = num::mul, Product, "*";
    div_2 = num::int_div, Quotient, "div";
    rem_2 = num::int_rem, Quotient, "rem";
}
/// Moves a long operation to a dirty thread, if the operator is applied as a function: an
/// instruction needs its value here.
#[cold]
fn leave(cx: &mut Env, native: Long<2>, args: [Term; 2]) -> Result<(), Fail> {
    let export = crate::exports::export(am::ERLANG, atom::intern(native.name()), 2);
    let applied = cx.bif_pc == export.stub.as_ptr() as *const u64;
    dirty_if(cx, native.call(&args), || applied)
}
fn divide_2(cx: &mut Env, [x, y]: [Term; 2]) -> BifResult {
    arith(num::div(cx, x, y))
}
fn bnot_1(cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    let made = arith(num::bnot(cx, x))?;
    cx.bump(Effort::Longer.reductions(x, made, made));
    Ok(made)
}
fn minus_1(cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    let made = arith(num::neg(cx, x))?;
    cx.bump(Effort::Longer.reductions(x, made, made));
    Ok(made)
}
fn plus_1(cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    let v = arith(num::plus(x))?;
    if x.as_float()
        .is_some_and(|f| f == 0.0 && f.is_sign_negative())
    {
        // Stock's instruction adds a zero; only an applied operator is a native.
        let export = crate::exports::export(am::ERLANG, am::PLUS, 1);
        let stub = export.stub.as_ptr() as *const u64;
        if cx.bif_pc != stub {
            return Ok(cx.float(0.0));
        }
    }
    Ok(v)
}

macro_rules! compare2 {
    ($($name:ident = |$x:ident, $y:ident| $e:expr;)*) => {$(
        fn $name(_cx: &mut Env, [$x, $y]: [Term; 2]) -> BifResult {
            Ok(Term::bool($e))
        }
    )*};
}
compare2! {
    eq_2 = |x, y| eq(x, y);
    ne_2 = |x, y| !eq(x, y);
    eq_exact_2 = |x, y| eq_exact(x, y);
    ne_exact_2 = |x, y| !eq_exact(x, y);
    lt_2 = |x, y| cmp(x, y).is_lt();
    gt_2 = |x, y| cmp(x, y).is_gt();
    le_2 = |x, y| cmp(x, y).is_le();
    ge_2 = |x, y| cmp(x, y).is_ge();
}
fn min_2(_cx: &mut Env, [x, y]: [Term; 2]) -> BifResult {
    Ok(if cmp(x, y).is_gt() { y } else { x })
}
fn max_2(_cx: &mut Env, [x, y]: [Term; 2]) -> BifResult {
    Ok(if cmp(x, y).is_lt() { y } else { x })
}

fn boolean(t: Term) -> Result<bool, Fail> {
    t.as_bool().ok_or(Fail::Badarg)
}
fn and_2(_cx: &mut Env, [x, y]: [Term; 2]) -> BifResult {
    Ok(Term::bool(boolean(x)? & boolean(y)?))
}
fn or_2(_cx: &mut Env, [x, y]: [Term; 2]) -> BifResult {
    Ok(Term::bool(boolean(x)? | boolean(y)?))
}
fn xor_2(_cx: &mut Env, [x, y]: [Term; 2]) -> BifResult {
    Ok(Term::bool(boolean(x)? ^ boolean(y)?))
}
fn not_1(_cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    Ok(Term::bool(!boolean(x)?))
}

fn abs_1(cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    if !x.is_number() {
        return Err(Fail::Badarg);
    }
    arith(num::abs(cx, x))
}
fn float_1(cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    if x.is_float() {
        return Ok(x);
    }
    match num::to_f64(x) {
        Some(f) if f.is_finite() => Ok(cx.float(f)),
        _ => Err(Fail::Badarg),
    }
}
fn rounded(cx: &mut Env, x: Term, how: Rounding) -> BifResult {
    num::to_integer(cx, x, how).ok_or(Fail::Badarg)
}
fn trunc_1(cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    rounded(cx, x, Rounding::Trunc)
}
fn round_1(cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    rounded(cx, x, Rounding::Round)
}
fn floor_1(cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    rounded(cx, x, Rounding::Floor)
}
fn ceil_1(cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    rounded(cx, x, Rounding::Ceil)
}

crate::bifs! {
    Guard "erlang":"+"/2 = add_2;
    Guard "erlang":"-"/2 = sub_2;
    Guard "erlang":"*"/2 = mul_2 [long];
    Guard "erlang":"/"/2 = divide_2 [template(Divide)];
    Guard "erlang":"div"/2 = div_2 [long];
    Guard "erlang":"rem"/2 = rem_2 [long];
    Guard "erlang":"band"/2 = band_2;
    Guard "erlang":"bor"/2 = bor_2;
    Guard "erlang":"bxor"/2 = bxor_2;
    Guard "erlang":"bsl"/2 = bsl_2;
    Guard "erlang":"bsr"/2 = bsr_2;
    Guard "erlang":"bnot"/1 = bnot_1;
    Guard "erlang":"-"/1 = minus_1;
    Guard "erlang":"+"/1 = plus_1;
    Guard "erlang":"=="/2 = eq_2;
    Guard "erlang":"/="/2 = ne_2;
    Guard "erlang":"=:="/2 = eq_exact_2;
    Guard "erlang":"=/="/2 = ne_exact_2;
    Guard "erlang":"<"/2 = lt_2;
    Guard "erlang":">"/2 = gt_2;
    Guard "erlang":"=<"/2 = le_2;
    Guard "erlang":">="/2 = ge_2;
    Guard "erlang":"min"/2 = min_2 [in_place template(Min)];
    Guard "erlang":"max"/2 = max_2 [in_place template(Max)];
    Guard "erlang":"and"/2 = and_2 [template(And)];
    Guard "erlang":"or"/2 = or_2 [template(Or)];
    Guard "erlang":"xor"/2 = xor_2 [template(Xor)];
    Guard "erlang":"not"/1 = not_1 [template(Not)];
    Guard "erlang":"abs"/1 = abs_1 [template(Abs)];
    Guard "erlang":"float"/1 = float_1;
    Guard "erlang":"trunc"/1 = trunc_1;
    Guard "erlang":"round"/1 = round_1;
    Guard "erlang":"floor"/1 = floor_1;
    Guard "erlang":"ceil"/1 = ceil_1;
}
