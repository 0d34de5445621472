//! Type tests and sizes of module `erlang`.

use crate::cx::{BifResult, Env, Fail};
use purlin_term::release::{self, NATIVE_RECORDS};
use purlin_term::{Alloc, Term, compare};

macro_rules! tests {
    ($($name:ident = |$x:ident| $e:expr;)*) => {$(
        fn $name(_cx: &mut Env, [$x]: [Term; 1]) -> BifResult {
            Ok(Term::bool($e))
        }
    )*};
}
tests! {
    is_atom_1 = |x| x.is_atom();
    is_binary_1 = |x| x.is_binary();
    is_bitstring_1 = |x| x.is_bitstring();
    is_boolean_1 = |x| x.as_bool().is_some();
    is_float_1 = |x| x.is_float();
    is_function_1 = |x| x.is_fun();
    is_integer_1 = |x| x.is_integer();
    is_list_1 = |x| x.is_list();
    is_map_1 = |x| x.is_map();
    is_number_1 = |x| x.is_number();
    is_pid_1 = |x| x.is_pid();
    is_port_1 = |x| x.is_port();
    is_reference_1 = |x| x.is_ref();
    is_tuple_1 = |x| x.is_tuple();
}

fn is_function_2(_cx: &mut Env, [f, n]: [Term; 2]) -> BifResult {
    let n = match n.as_small() {
        Some(v) if v >= 0 => v,
        // No fun can have a large arity, but it is a valid argument.
        None if n.as_big().is_some_and(|(neg, _)| !neg) => return Ok(Term::bool(false)),
        _ => return Err(Fail::Badarg),
    };
    Ok(Term::bool(f.as_fun().is_some_and(|v| v.arity as i64 == n)))
}
/// Whether an integer is between two bounds.
fn is_integer_3(_cx: &mut Env, [x, low, high]: [Term; 3]) -> BifResult {
    if !low.is_integer() || !high.is_integer() {
        return Err(Fail::Badarg);
    }
    Ok(Term::bool(
        x.is_integer() && compare::cmp(low, x).is_le() && compare::cmp(x, high).is_le(),
    ))
}
fn is_record_1(_cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    Ok(Term::bool(t.is_record()))
}
fn is_record_2(_cx: &mut Env, [t, tag]: [Term; 2]) -> BifResult {
    if !tag.is_atom() {
        return Err(Fail::Badarg);
    }
    Ok(Term::bool(match t.as_record() {
        Some(r) => r.definition.name() == tag,
        None => t.as_tuple().is_some_and(|e| e.first() == Some(&tag)),
    }))
}
/// Tests a tuple for its tag and size, or a native record for its module and name.
fn is_record_3(_cx: &mut Env, [t, tag, n]: [Term; 3]) -> BifResult {
    if n.is_atom() && tag.is_atom() && release::has(NATIVE_RECORDS) {
        return Ok(Term::bool(t.as_record().is_some_and(|r| r.is(tag, n))));
    }
    let n = match n.as_small() {
        Some(v) if tag.is_atom() => v,
        _ => return Err(Fail::Badarg),
    };
    Ok(Term::bool(t.as_tuple().is_some_and(|e| {
        e.len() as i64 == n && e.first() == Some(&tag)
    })))
}

fn size_1(_cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    let n = match (x.as_tuple(), x.as_bits()) {
        (Some(e), _) => e.len(),
        (_, Some(b)) => b.bit_len / 8,
        _ => return Err(Fail::Badarg),
    };
    Ok(Term::small(n as i64))
}
/// Returns the number of bits of a bitstring. Since OTP 26 the compiler also applies it to match
/// contexts, for the remaining bits.
fn bit_len(x: Term) -> Result<usize, Fail> {
    x.as_bits()
        .map(|b| b.bit_len)
        .or_else(|| x.bits_left())
        .ok_or(Fail::Badarg)
}
fn byte_size_1(_cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    Ok(Term::small(bit_len(x)?.div_ceil(8) as i64))
}
fn bit_size_1(cx: &mut Env, [x]: [Term; 1]) -> BifResult {
    let n = bit_len(x)?;
    Ok(cx.uint(n as u64))
}

crate::bifs! {
    Guard "erlang":"is_atom"/1 = is_atom_1;
    Guard "erlang":"is_binary"/1 = is_binary_1;
    Guard "erlang":"is_bitstring"/1 = is_bitstring_1;
    Guard "erlang":"is_boolean"/1 = is_boolean_1;
    Guard "erlang":"is_float"/1 = is_float_1;
    Guard "erlang":"is_function"/1 = is_function_1;
    Guard "erlang":"is_function"/2 = is_function_2;
    Guard "erlang":"is_integer"/1 = is_integer_1;
    Guard "erlang":"is_integer"/3 = is_integer_3 [since(29)];
    Guard "erlang":"is_record"/1 = is_record_1 [since(29)];
    Guard "erlang":"is_list"/1 = is_list_1;
    Guard "erlang":"is_map"/1 = is_map_1;
    Guard "erlang":"is_number"/1 = is_number_1;
    Guard "erlang":"is_pid"/1 = is_pid_1;
    Guard "erlang":"is_port"/1 = is_port_1;
    Guard "erlang":"is_record"/2 = is_record_2;
    Guard "erlang":"is_record"/3 = is_record_3;
    Guard "erlang":"is_reference"/1 = is_reference_1;
    Guard "erlang":"is_tuple"/1 = is_tuple_1;
    Guard "erlang":"size"/1 = size_1;
    Guard "erlang":"byte_size"/1 = byte_size_1;
    Guard "erlang":"bit_size"/1 = bit_size_1 [template(BitSize)];
}
