//! Module `math`: the C library's functions, so that results equal stock's to the last bit. The
//! error is `badarg` if an argument is no number, and `badarith` if it is too large for a float or
//! the result is not finite.

use crate::cx::{BifResult, Env, Fail};
use purlin_term::arith::to_f64;
use purlin_term::{Alloc, Term};

/// Functions of the C library. Stock calls them too, so the results are equal to the last bit.
mod c {
    unsafe extern "C" {
        pub safe fn cos(x: f64) -> f64;
        pub safe fn cosh(x: f64) -> f64;
        pub safe fn sin(x: f64) -> f64;
        pub safe fn sinh(x: f64) -> f64;
        pub safe fn tan(x: f64) -> f64;
        pub safe fn tanh(x: f64) -> f64;
        pub safe fn acos(x: f64) -> f64;
        pub safe fn acosh(x: f64) -> f64;
        pub safe fn asin(x: f64) -> f64;
        pub safe fn asinh(x: f64) -> f64;
        pub safe fn atan(x: f64) -> f64;
        pub safe fn atanh(x: f64) -> f64;
        pub safe fn erf(x: f64) -> f64;
        pub safe fn erfc(x: f64) -> f64;
        pub safe fn exp(x: f64) -> f64;
        pub safe fn log(x: f64) -> f64;
        pub safe fn log2(x: f64) -> f64;
        pub safe fn log10(x: f64) -> f64;
        pub safe fn sqrt(x: f64) -> f64;
        pub safe fn ceil(x: f64) -> f64;
        pub safe fn floor(x: f64) -> f64;
        pub safe fn atan2(x: f64, y: f64) -> f64;
        pub safe fn pow(x: f64, y: f64) -> f64;
        pub safe fn fmod(x: f64, y: f64) -> f64;
    }
}

/// Returns an argument as a float.
fn number(x: Term) -> Result<f64, Fail> {
    if !x.is_number() {
        return Err(Fail::Badarg);
    }
    to_f64(x).filter(|f| f.is_finite()).ok_or(Fail::Badarith)
}
fn finite(cx: &mut Env, f: f64) -> BifResult {
    if f.is_finite() {
        Ok(cx.float(f))
    } else {
        Err(Fail::Badarith)
    }
}

macro_rules! unary {
    ($($name:ident = $f:path;)*) => {$(
        fn $name(cx: &mut Env, [x]: [Term; 1]) -> BifResult {
            let r = $f(number(x)?);
            finite(cx, r)
        }
    )*};
}
macro_rules! binary {
    ($($name:ident = $f:path;)*) => {$(
        fn $name(cx: &mut Env, [x, y]: [Term; 2]) -> BifResult {
            let a = number(x)?;
            let b = number(y)?;
            finite(cx, $f(a, b))
        }
    )*};
}

unary! {
    cos_1 = c::cos;
    cosh_1 = c::cosh;
    sin_1 = c::sin;
    sinh_1 = c::sinh;
    tan_1 = c::tan;
    tanh_1 = c::tanh;
    acos_1 = c::acos;
    acosh_1 = c::acosh;
    asin_1 = c::asin;
    asinh_1 = c::asinh;
    atan_1 = c::atan;
    atanh_1 = c::atanh;
    erf_1 = c::erf;
    erfc_1 = c::erfc;
    exp_1 = c::exp;
    log_1 = c::log;
    log2_1 = c::log2;
    log10_1 = c::log10;
    sqrt_1 = c::sqrt;
    ceil_1 = c::ceil;
    floor_1 = c::floor;
}
binary! {
    atan2_2 = c::atan2;
    pow_2 = c::pow;
    fmod_2 = c::fmod;
}

crate::bifs! {
    Plain "math":"cos"/1 = cos_1;
    Plain "math":"cosh"/1 = cosh_1;
    Plain "math":"sin"/1 = sin_1;
    Plain "math":"sinh"/1 = sinh_1;
    Plain "math":"tan"/1 = tan_1;
    Plain "math":"tanh"/1 = tanh_1;
    Plain "math":"acos"/1 = acos_1;
    Plain "math":"acosh"/1 = acosh_1;
    Plain "math":"asin"/1 = asin_1;
    Plain "math":"asinh"/1 = asinh_1;
    Plain "math":"atan"/1 = atan_1;
    Plain "math":"atanh"/1 = atanh_1;
    Plain "math":"erf"/1 = erf_1;
    Plain "math":"erfc"/1 = erfc_1;
    Plain "math":"exp"/1 = exp_1;
    Plain "math":"log"/1 = log_1;
    Plain "math":"log2"/1 = log2_1;
    Plain "math":"log10"/1 = log10_1;
    Plain "math":"sqrt"/1 = sqrt_1;
    Plain "math":"ceil"/1 = ceil_1;
    Plain "math":"floor"/1 = floor_1;
    Plain "math":"atan2"/2 = atan2_2;
    Plain "math":"pow"/2 = pow_2;
    Plain "math":"fmod"/2 = fmod_2;
}
