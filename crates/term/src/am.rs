//! The preset atoms as term constants, made from the rows of `purlin_isa::atoms`.

use crate::word::Term;

macro_rules! preset_consts {
    ($(($c:ident, $t:literal))*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(u32)]
        enum Index { $($c),* }
        $(#[doc = concat!("The atom `", $t, "`.")] pub const $c: Term = Term::atom(Index::$c as u32);)*
    };
}
purlin_isa::for_each_preset_atom!(preset_consts);

impl Term {
    /// `true` or `false`.
    #[inline(always)]
    pub const fn bool(b: bool) -> Term {
        if b { TRUE } else { FALSE }
    }
    /// `true` → Some(true), `false` → Some(false), otherwise None.
    #[inline]
    pub fn as_bool(self) -> Option<bool> {
        if self == TRUE {
            Some(true)
        } else if self == FALSE {
            Some(false)
        } else {
            None
        }
    }
}
