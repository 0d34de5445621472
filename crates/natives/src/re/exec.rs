//! One match by PCRE2, and its working memory.

use super::callouts::{Watch, at_callout, at_place, pcre2_set_callout_8};
use super::capture::Groups;
use super::options::Options;
use super::pattern::Code;
use pcre2_sys as sys;
use std::cell::Cell;
use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

/// Maximum backtracking memory of a match, in kilobytes.
const HEAP_LIMIT_KB: u32 = 512 * 1024;

/// As [`HEAP_LIMIT_KB`], for a match on a scheduler, which keeps that memory for its next one. A
/// match that needs more starts over on a dirty thread.
const SHORT_HEAP_LIMIT_KB: u32 = 1024;

/// The working memory of PCRE2 in a match: match data and context.
struct Bench {
    /// The compiled pattern for which the match data was made.
    pub(super) code: Arc<Code>,
    pub(super) data: *mut sys::pcre2_match_data_8,
    pub(super) ctx: *mut sys::pcre2_match_context_8,
}

impl Bench {
    /// Returns `None` if there is no memory for it.
    pub(super) fn new(code: &Arc<Code>) -> Option<Bench> {
        // SAFETY: the pattern is valid; the new objects are freed once, when this is dropped.
        let (data, ctx) = unsafe {
            (
                sys::pcre2_match_data_create_from_pattern_8(code.code, ptr::null_mut()),
                sys::pcre2_match_context_create_8(ptr::null_mut()),
            )
        };
        let made = !data.is_null() && !ctx.is_null();
        let code = code.clone();
        let bench = Bench { code, data, ctx };
        made.then_some(bench)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // SAFETY: made in `new`; null is allowed.
        unsafe {
            sys::pcre2_match_data_free_8(self.data);
            sys::pcre2_match_context_free_8(self.ctx);
        }
    }
}

/// Matches once, and writes the groups. `Err` is PCRE2's code. `short`: on a scheduler, with a
/// limit of steps; the working memory is kept for the next match of this pattern. The watch counts
/// for forms with callouts. `part`: the subject goes on behind these bytes, so the result is
/// `PCRE2_ERROR_PARTIAL` if that may matter.
pub(super) fn exec(
    code: &Arc<Code>,
    subject: &[u8],
    o: &Options,
    check: bool,
    short: Option<&mut Watch>,
    part: bool,
    groups: &mut Groups,
) -> Result<(), c_int> {
    thread_local! {
        static SPARE: Cell<Option<Bench>> = const { Cell::new(None) };
    }
    let mut flags = o.run;
    if !check {
        flags |= sys::PCRE2_NO_UTF_CHECK;
    }
    if part {
        flags |= sys::PCRE2_PARTIAL_HARD;
    }
    // A limit that was set once stays. So the limit of steps is set each time, and other limits
    // disable reuse.
    let keeps = short.is_some() && o.match_limit.is_some() && o.depth_limit.is_none();
    let spare = if keeps { SPARE.take() } else { None };
    let bench = spare
        .filter(|b| Arc::ptr_eq(&b.code, code))
        .or_else(|| Bench::new(code))
        .ok_or(sys::PCRE2_ERROR_NOMEMORY)?;
    let (data, ctx) = (bench.data, bench.ctx);
    // SAFETY: match data and context are valid, made for this pattern, and unshared; the subject is
    // a slice with its length; the vector has `rc` pairs after a match. The UTF check is skipped
    // only for valid UTF-8 from a character's first byte on (see `known_utf8`). The callout and its
    // data are set for each match that has callouts.
    let found = unsafe {
        let heap = match short {
            Some(_) => SHORT_HEAP_LIMIT_KB,
            None => HEAP_LIMIT_KB,
        };
        sys::pcre2_set_heap_limit_8(ctx, heap);
        if code.calls_out {
            match short {
                Some(watch) => {
                    pcre2_set_callout_8(ctx, Some(at_place), ptr::from_mut(watch).cast())
                }
                None => pcre2_set_callout_8(ctx, Some(at_callout), ptr::null_mut()),
            };
        }
        if let Some(n) = o.match_limit {
            sys::pcre2_set_match_limit_8(ctx, n);
        }
        if let Some(n) = o.depth_limit {
            sys::pcre2_set_depth_limit_8(ctx, n);
        }
        let rc = sys::pcre2_match_8(
            code.code,
            subject.as_ptr(),
            subject.len(),
            o.offset,
            flags,
            data,
            ctx,
        );
        if rc > 0 && part && sys::pcre2_get_startchar_8(data) >= subject.len() {
            // It starts where nothing was seen.
            Err(sys::PCRE2_ERROR_PARTIAL)
        } else if rc > 0 {
            let v = sys::pcre2_get_ovector_pointer_8(data);
            let v = std::slice::from_raw_parts(v, 2 * rc as usize);
            // `\K` in a look-ahead can put a start after its end.
            groups.clear();
            groups.extend(
                v.chunks_exact(2)
                    .map(|p| (p[0] != usize::MAX).then(|| (p[0].min(p[1]), p[1]))),
            );
            Ok(())
        } else {
            Err(rc)
        }
    };
    if keeps {
        SPARE.set(Some(bench));
    }
    found
}

/// Matches from within the character at `at..end`. PCRE, which checks nothing twice, takes the
/// remaining bytes of it for a character with the first one's number. PCRE2 may only be given
/// characters, so it is given that one. The text before is seen whole.
pub(super) fn exec_within(
    code: &Arc<Code>,
    bytes: &[u8],
    (at, end): (usize, usize),
    o: &mut Options,
    short: Option<&mut Watch>,
    groups: &mut Groups,
) -> Result<(), c_int> {
    let offset = std::mem::replace(&mut o.offset, end);
    let mut buffer = [0; 4];
    let rest = char::from(bytes[offset])
        .encode_utf8(&mut buffer)
        .as_bytes();
    let subject = [&bytes[..end], rest, &bytes[end..]].concat();
    let found = exec(code, &subject, o, true, short, false, groups);
    o.offset = offset;
    found?;
    let place = |p: usize| match p {
        p if p >= end + rest.len() => p - rest.len(),
        p if p >= end => offset,
        p => p.min(at),
    };
    // A range that ends with the character, and began before it, was looked back at.
    let range =
        |(a, b): (usize, usize)| (place(a), if a < end && b == end { end } else { place(b) });
    for g in groups.iter_mut().flatten() {
        *g = range(*g);
    }
    Ok(())
}
