//! Words of terms and objects that lowering computes.

use crate::generic::Operand;

pub(super) const NIL: u64 = purlin_term::word::NIL_WORD;
pub(super) const FUN_WORDS: u32 = purlin_term::layout::FUN_WORDS as u32;

/// Returns the words that an operand of kind `Alloc` reserves. Its decoder has bounded them.
pub(super) fn alloc_words(o: Operand) -> u32 {
    match o {
        Operand::Alloc {
            words,
            floats,
            funs,
        } => words
            .saturating_add(floats.saturating_mul(2))
            .saturating_add(funs.saturating_mul(FUN_WORDS)),
        Operand::U(n) => u32::try_from(n).unwrap_or(u32::MAX),
        _ => 0,
    }
}

pub(super) fn small(v: i64) -> u64 {
    ((v as u64) << 4) | purlin_term::word::TAG_SMALL
}
pub(super) fn tuple_header(n: u64) -> u64 {
    purlin_term::word::header(purlin_term::word::Subtag::Tuple, n as usize)
}
