//! Native values behind magic references, and atoms that few files name.
//!
//! Every process that holds a magic reference shares its value, so the value is `Sync`; its mutable
//! parts have a lock of their own.

use crate::ids;
use purlin_term::layout::RefView;
use purlin_term::magic::MagicRef;
use purlin_term::{Alloc, Term};
use std::any::Any;

/// Makes a reference that owns `value`. The value is dropped with the last copy of the reference.
pub fn make<T: Any + Send + Sync>(cx: &mut impl Alloc, value: T) -> Term {
    // SAFETY: just made, with count 0, and not shared yet.
    unsafe { cx.magic_ref(MagicRef::new(ids::ref_numbers(), Box::new(value))) }
}

/// Returns the value of type `T` behind `t`; `None` if `t` is no such reference. It is valid during
/// the native call, like the term.
pub fn get<'a, T: Any>(t: Term) -> Option<&'a T> {
    match t.as_ref_view()? {
        RefView::Magic(m) => m.value.downcast_ref::<T>(),
        _ => None,
    }
}

/// Defines functions that return atoms, each looked up once: `lazy_atoms! { nomatch = "nomatch"; …
/// }`.
#[macro_export]
macro_rules! lazy_atoms {
    ($($v:vis $f:ident = $t:literal;)*) => {
        $(#[inline]
        $v fn $f() -> purlin_term::Term {
            static A: std::sync::OnceLock<purlin_term::Term> = std::sync::OnceLock::new();
            *A.get_or_init(|| purlin_term::atom::intern($t))
        })*
    };
}
