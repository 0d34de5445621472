//! Native values behind magic references, and atoms that are named in one place only.
//!
//! The value of a magic reference is shared by every process that holds the reference, so it is `Sync`; what changes
//! in it stands behind a lock of its own.

use crate::ids;
use purlin_term::layout::RefView;
use purlin_term::magic::MagicRef;
use purlin_term::{Alloc, Term};
use std::any::Any;

/// A reference that owns `value`, which is dropped with the last copy of it.
pub fn make<T: Any + Send + Sync>(cx: &mut impl Alloc, value: T) -> Term {
    // SAFETY: just made, count 0, and nobody else knows it.
    unsafe { cx.magic_ref(MagicRef::new(ids::ref_numbers(), Box::new(value))) }
}

/// The value of type `T` behind `t`; None if `t` is no such reference. Good for the native call, like the term.
pub fn get<'a, T: Any>(t: Term) -> Option<&'a T> {
    match t.as_ref_view()? {
        RefView::Magic(m) => m.value.downcast_ref::<T>(),
        _ => None,
    }
}

/// Functions that give atoms which are looked up once: `lazy_atoms! { nomatch = "nomatch"; … }`.
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
