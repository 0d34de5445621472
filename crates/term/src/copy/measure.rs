//! The number of words that a copy needs.

use super::object::{stays, sub_parts};
use crate::layout;
use crate::word::{Subtag, Term, header_subtag};
use smallvec::SmallVec;

/// Number of words that [`super::copy`] needs for `t`. Terms reached twice count twice; regions
/// count nothing.
pub fn size_of(t: Term) -> usize {
    size::<true>(t)
}

/// Number of words that [`super::copy_whole`] needs for `t`.
pub fn size_whole(t: Term) -> usize {
    size::<false>(t)
}

fn size<const SHARE: bool>(t: Term) -> usize {
    if stays::<SHARE>(t) {
        return 0;
    }
    let mut words = 0;
    // On the native stack while it is small, as it is for most terms.
    let mut todo: SmallVec<[Term; 32]> = SmallVec::new();
    todo.push(t);
    while let Some(mut t) = todo.pop() {
        loop {
            if stays::<SHARE>(t) {
                break;
            }
            if let Some((h, tl)) = t.as_cons() {
                words += 2;
                if !h.is_immed() {
                    todo.push(h);
                }
                t = tl;
                continue;
            }
            let p = t.ptr();
            // SAFETY: a boxed term in hand is well formed.
            unsafe {
                match header_subtag((*p).raw()) {
                    Subtag::SubBin | Subtag::MatchContext => words += bits_words::<SHARE>(t),
                    _ => {
                        words += layout::object_words(p);
                        let (a, b) = layout::term_range(p);
                        for i in a..b {
                            let e = *p.add(i);
                            if !e.is_immed() {
                                todo.push(e);
                            }
                        }
                    }
                }
            }
            break;
        }
    }
    words
}

/// Number of words for a copy of a sub-binary or match context: as a heap binary if small and
/// plain, otherwise the sub-binary and its original.
pub(crate) fn bits_words<const SHARE: bool>(t: Term) -> usize {
    // SAFETY: a sub-binary in hand is well formed.
    unsafe {
        let (orig, _, len) = sub_parts(t.ptr());
        if len & 7 == 0 && len / 8 <= layout::HEAP_BIN_LIMIT {
            layout::HEAP_BIN_HEAD_WORDS + (len / 8).div_ceil(8)
        } else {
            layout::SUB_BIN_WORDS
                + if stays::<SHARE>(orig) {
                    0
                } else {
                    layout::object_words(orig.ptr())
                }
        }
    }
}

/// Number of words that [`super::copy`] needs for `t`, if at most `limit`. Looks at little more
/// than that many.
pub fn size_within(t: Term, limit: usize) -> Option<usize> {
    bounded::<true>(t, limit)
}

/// Number of words that [`super::copy_whole`] needs for `t`, if at most `limit`.
pub fn size_whole_within(t: Term, limit: usize) -> Option<usize> {
    bounded::<false>(t, limit)
}

fn bounded<const SHARE: bool>(t: Term, limit: usize) -> Option<usize> {
    if stays::<SHARE>(t) {
        return Some(0);
    }
    let mut words = 0;
    let mut todo: SmallVec<[Term; 32]> = SmallVec::new();
    todo.push(t);
    while let Some(mut t) = todo.pop() {
        loop {
            if words > limit {
                return None;
            }
            if stays::<SHARE>(t) {
                break;
            }
            if let Some((h, tl)) = t.as_cons() {
                words += 2;
                if !h.is_immed() {
                    todo.push(h);
                }
                t = tl;
                continue;
            }
            let p = t.ptr();
            // SAFETY: a boxed term in hand is well formed.
            unsafe {
                match header_subtag((*p).raw()) {
                    Subtag::SubBin | Subtag::MatchContext => words += bits_words::<SHARE>(t),
                    _ => {
                        words += layout::object_words(p);
                        let (a, b) = layout::term_range(p);
                        todo.extend((a..b).map(|i| *p.add(i)).filter(|e| !e.is_immed()));
                    }
                }
            }
            break;
        }
    }
    (words <= limit).then_some(words)
}

/// The number of words that [`super::copy`] needs, counted in stages. Terms for which `apart`
/// returns true count nothing.
pub struct Measure<F: Fn(Term) -> bool> {
    words: usize,
    todo: SmallVec<[Term; 32]>,
    apart: F,
}

impl Measure<fn(Term) -> bool> {
    /// Measures all of `t`.
    #[inline(always)]
    pub fn of(t: Term) -> Measure<impl Fn(Term) -> bool> {
        Measure::around(t, |_| false)
    }
}

impl<F: Fn(Term) -> bool> Measure<F> {
    /// Measures `t` without the terms that are apart.
    #[inline(always)]
    pub fn around(t: Term, apart: F) -> Measure<F> {
        let mut todo = SmallVec::new();
        todo.push(t);
        Measure {
            words: 0,
            todo,
            apart,
        }
    }
    /// The number of all words, if at most `limit`. Looks at little more than that many.
    #[inline(always)]
    pub fn within(&mut self, limit: usize) -> Option<usize> {
        let mut words = self.words;
        while let Some(mut t) = self.todo.pop() {
            loop {
                if stays::<true>(t) || (self.apart)(t) {
                    break;
                }
                if words > limit {
                    self.todo.push(t);
                    self.words = words;
                    return None;
                }
                if let Some((h, tl)) = t.as_cons() {
                    words += 2;
                    if !h.is_immed() {
                        self.todo.push(h);
                    }
                    t = tl;
                    continue;
                }
                let p = t.ptr();
                // SAFETY: a boxed term in hand is well formed.
                unsafe {
                    match header_subtag((*p).raw()) {
                        Subtag::SubBin | Subtag::MatchContext => words += bits_words::<true>(t),
                        _ => {
                            words += layout::object_words(p);
                            let (a, b) = layout::term_range(p);
                            for i in a..b {
                                let e = *p.add(i);
                                if !e.is_immed() {
                                    self.todo.push(e);
                                }
                            }
                        }
                    }
                }
                break;
            }
        }
        self.words = words;
        (words <= limit).then_some(words)
    }
}
