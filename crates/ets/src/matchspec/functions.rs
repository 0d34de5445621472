//! The functions that match specifications may call.
//!
//! They are the language's guard functions, separate from the natives because their arguments may
//! lie in a locked table. Nothing here makes a term that refers to an argument, except for the
//! functions for which [`Function::builds`] says so.

use crate::cx::Cx;
use purlin_term::arith::{self, Rounding};
use purlin_term::compare::{cmp, eq, eq_exact};
use purlin_term::parts::{pid_parts, port_parts, ref_parts};
use purlin_term::release::{self, BOUNDED_INTEGERS, NATIVE_RECORDS, WIDER_MATCH_SPECS};
use purlin_term::{Alloc, Term, map, node};

macro_rules! functions {
    ($($f:ident $name:literal / $n:literal $(in $feature:ident)?;)*) => {
        /// A function of match specifications.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Function { $($f),* }

        impl Function {
            /// The function of that name and arity, if the release has it.
            pub fn find(name: &str, arity: usize) -> Option<Function> {
                match (name, arity) {
                    $(($name, $n) $(if release::has($feature))? => Some(Function::$f),)*
                    _ => None,
                }
            }
        }
    };
}

functions! {
    IsAtom "is_atom"/1;
    IsFloat "is_float"/1;
    IsInteger "is_integer"/1;
    IsList "is_list"/1;
    IsNumber "is_number"/1;
    IsPid "is_pid"/1;
    IsPort "is_port"/1;
    IsReference "is_reference"/1;
    IsTuple "is_tuple"/1;
    IsMap "is_map"/1;
    IsBinary "is_binary"/1;
    IsFunction "is_function"/1;
    IsRecord "is_record"/3;
    Abs "abs"/1;
    Element "element"/2;
    Hd "hd"/1;
    Length "length"/1;
    NodeOf "node"/1;
    Node "node"/0;
    Round "round"/1;
    Size "size"/1;
    MapSize "map_size"/1;
    MapGet "map_get"/2;
    IsMapKey "is_map_key"/2;
    BitSize "bit_size"/1;
    ByteSize "byte_size"/1;
    Part2 "binary_part"/2;
    Part3 "binary_part"/3;
    Tl "tl"/1;
    Trunc "trunc"/1;
    Float "float"/1;
    Plus "+"/1;
    Minus "-"/1;
    Add "+"/2;
    Sub "-"/2;
    Mul "*"/2;
    Divide "/"/2;
    Div "div"/2;
    Rem "rem"/2;
    Band "band"/2;
    Bor "bor"/2;
    Bxor "bxor"/2;
    Bnot "bnot"/1;
    Bsl "bsl"/2;
    Bsr "bsr"/2;
    Gt ">"/2;
    Ge ">="/2;
    Lt "<"/2;
    Le "=<"/2;
    EqExact "=:="/2;
    Eq "=="/2;
    NeExact "=/="/2;
    Ne "/="/2;
    Not "not"/1;
    Xor "xor"/2;
    IsBitstring "is_bitstring"/1 in WIDER_MATCH_SPECS;
    IsBoolean "is_boolean"/1 in WIDER_MATCH_SPECS;
    IsFunctionOf "is_function"/2 in WIDER_MATCH_SPECS;
    TupleSize "tuple_size"/1 in WIDER_MATCH_SPECS;
    Ceil "ceil"/1 in WIDER_MATCH_SPECS;
    Floor "floor"/1 in WIDER_MATCH_SPECS;
    Min "min"/2 in WIDER_MATCH_SPECS;
    Max "max"/2 in WIDER_MATCH_SPECS;
    IsIntegerWithin "is_integer"/3 in BOUNDED_INTEGERS;
}

fn part(cx: &mut Cx, of: Term, pos: Term, len: Term) -> Option<Term> {
    let (mut pos, mut len) = (pos.as_small()?, len.as_small()?);
    let bits = of.as_bits().filter(|b| b.bit_len & 7 == 0)?;
    if len < 0 {
        pos = pos.checked_add(len)?;
        len = -len;
    }
    let end = pos.checked_add(len)?;
    if pos < 0 || end as u64 > bits.bit_len as u64 / 8 {
        return None;
    }
    Some(cx.part(of, pos as usize, len as usize))
}

impl Function {
    /// Whether its result may be a new term that refers to an argument.
    pub(crate) fn builds(self) -> bool {
        matches!(self, Function::Part2 | Function::Part3)
    }

    /// Calls it with its arguments. `None` where the native would fail.
    pub fn call(self, cx: &mut Cx, a: &[Term]) -> Option<Term> {
        use Function::*;
        let is = |b: bool| Some(Term::bool(b));
        let x = a.first().copied().unwrap_or(Term::NON_VALUE);
        let y = a.get(1).copied().unwrap_or(Term::NON_VALUE);
        match self {
            IsAtom => is(x.is_atom()),
            IsFloat => is(x.is_float()),
            IsInteger => is(x.is_integer()),
            IsList => is(x.is_list()),
            IsNumber => is(x.is_number()),
            IsPid => is(x.is_pid()),
            IsPort => is(x.is_port()),
            IsReference => is(x.is_ref()),
            IsTuple => is(x.is_tuple()),
            IsMap => is(x.is_map()),
            IsBinary => is(x.is_binary()),
            IsFunction => is(x.is_fun()),
            IsRecord if a.get(2)?.is_atom() && release::has(NATIVE_RECORDS) => {
                let name = *a.get(2)?;
                is(y.is_atom() && x.as_record().is_some_and(|r| r.is(y, name)))
            }
            IsRecord => {
                let n = a.get(2)?.as_small().filter(|_| y.is_atom())?;
                is(x.as_tuple()
                    .is_some_and(|e| e.len() as i64 == n && e.first() == Some(&y)))
            }
            Abs => arith::abs(cx, x).ok(),
            Element => {
                let i = x.as_small().filter(|&i| i >= 1)?;
                y.as_tuple()?.get(i as usize - 1).copied()
            }
            Hd => x.as_cons().map(|(h, _)| h),
            Tl => x.as_cons().map(|(_, t)| t),
            Length => {
                let mut it = x.list_iter();
                let n = it.by_ref().count();
                it.tail().is_nil().then_some(Term::small(n as i64))
            }
            NodeOf => pid_parts(x)
                .map(|p| p.2)
                .or_else(|| port_parts(x).map(|p| p.1))
                .or_else(|| ref_parts(x).map(|p| p.1)),
            Node => Some(node::this_name()),
            Round => arith::to_integer(cx, x, Rounding::Round),
            Trunc => arith::to_integer(cx, x, Rounding::Trunc),
            Float => {
                if x.is_float() {
                    return Some(x);
                }
                let f = arith::to_f64(x).filter(|f| f.is_finite())?;
                Some(cx.float(f))
            }
            Size => match (x.as_tuple(), x.as_bits()) {
                (Some(e), _) => Some(Term::small(e.len() as i64)),
                (_, Some(b)) => Some(Term::small(b.bit_len as i64 / 8)),
                _ => None,
            },
            MapSize => x.map_size().map(|n| Term::small(n as i64)),
            MapGet => y.is_map().then(|| map::get(y, x)).flatten(),
            IsMapKey => y.is_map().then(|| Term::bool(map::contains(y, x))),
            BitSize => x.as_bits().map(|b| Term::small(b.bit_len as i64)),
            ByteSize => x
                .as_bits()
                .map(|b| Term::small(b.bit_len.div_ceil(8) as i64)),
            Part2 => match *y.as_tuple()? {
                [pos, len] => part(cx, x, pos, len),
                _ => None,
            },
            Part3 => part(cx, x, y, *a.get(2)?),
            Plus => arith::plus(x).ok(),
            Minus => arith::neg(cx, x).ok(),
            Add => arith::add(cx, x, y).ok(),
            Sub => arith::sub(cx, x, y).ok(),
            Mul => arith::mul(cx, x, y).ok(),
            Divide => arith::div(cx, x, y).ok(),
            Div => arith::int_div(cx, x, y).ok(),
            Rem => arith::int_rem(cx, x, y).ok(),
            Band => arith::band(cx, x, y).ok(),
            Bor => arith::bor(cx, x, y).ok(),
            Bxor => arith::bxor(cx, x, y).ok(),
            Bnot => arith::bnot(cx, x).ok(),
            Bsl => arith::bsl(cx, x, y).ok(),
            Bsr => arith::bsr(cx, x, y).ok(),
            Gt => is(cmp(x, y).is_gt()),
            Ge => is(cmp(x, y).is_ge()),
            Lt => is(cmp(x, y).is_lt()),
            Le => is(cmp(x, y).is_le()),
            EqExact => is(eq_exact(x, y)),
            Eq => is(eq(x, y)),
            NeExact => is(!eq_exact(x, y)),
            Ne => is(!eq(x, y)),
            Not => x.as_bool().map(|b| Term::bool(!b)),
            Xor => Some(Term::bool(x.as_bool()? != y.as_bool()?)),
            IsBitstring => is(x.as_bits().is_some()),
            IsBoolean => is(x.as_bool().is_some()),
            IsFunctionOf => match y.as_small() {
                Some(n) if n >= 0 => is(x.as_fun().is_some_and(|f| i64::from(f.arity) == n)),
                // The number is valid, although no fun has that many arguments.
                None if y.as_big().is_some_and(|(negative, _)| !negative) => is(false),
                _ => None,
            },
            TupleSize => x.as_tuple().map(|e| Term::small(e.len() as i64)),
            Ceil => arith::to_integer(cx, x, Rounding::Ceil),
            Floor => arith::to_integer(cx, x, Rounding::Floor),
            Min => Some(if cmp(x, y).is_le() { x } else { y }),
            Max => Some(if cmp(x, y).is_ge() { x } else { y }),
            IsIntegerWithin => {
                let high = *a.get(2)?;
                if !y.is_integer() || !high.is_integer() {
                    return None;
                }
                is(x.is_integer() && cmp(y, x).is_le() && cmp(x, high).is_le())
            }
        }
    }
}
