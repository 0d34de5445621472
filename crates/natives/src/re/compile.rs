//! `compile`, `import`, and the terms that stand for compiled patterns.

use super::BIFS;
use super::cache::{compiled, compiles_long};
use super::options::{badopt, options};
use super::pattern::{Code, Fault, Source};
use super::shared::{At, continue_in, re_exported_pattern, re_pattern, ucompile};
use crate::cx::{BifResult, Env, Fail};
use crate::iolist;
use crate::long;
use crate::reschedule::{LongCall, dirty_if, is_larger};
use purlin_term::layout::RefView;
use purlin_term::magic::MagicRef;
use purlin_term::release::{self, LINE_ENDS_STAY, PATTERNS_OF_PCRE2};
use purlin_term::{Alloc, NIL, Term, gc};
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

/// Minimum number of parts of a list, as subject or pattern, that only a dirty thread flattens.
const LONG_LIST: usize = 1 << 14;

/// Number of bytes of a list that are tried to be taken as they are.
const FLAT_BYTES: usize = 1024;

/// The compiled code behind the reference in a pattern.
struct Compiled(Vec<u8>);

pub(super) fn pattern_term(cx: &mut Env, src: &Source, code: &Code) -> Term {
    let bytes = src.to_bytes();
    let bin = match release::has(PATTERNS_OF_PCRE2) {
        true => {
            let m = MagicRef::new(crate::ids::ref_numbers(), Box::new(Compiled(bytes)));
            // SAFETY: it was made just now.
            unsafe { cx.magic_ref(m) }
        }
        false => cx.binary(&bytes),
    };
    cx.tuple(&[
        re_pattern(),
        Term::small(code.groups as i64),
        Term::small(code.unicode as i64),
        Term::small(code.use_crlf as i64),
        bin,
    ])
}

/// The mark of an exported pattern of this runtime.
const EXPORTED_HERE: &[u8] = b"re-PCRE2-purlin";

/// Returns a pattern with everything that another runtime needs to compile it again.
fn exported_term(cx: &mut Env, src: &Source, opts: Term) -> Term {
    let head = cx.binary(EXPORTED_HERE);
    let text = cx.binary(&src.text);
    let bin = cx.binary(&src.to_bytes());
    cx.tuple(&[re_exported_pattern(), head, text, opts, bin])
}

/// Makes an exported pattern usable: one of another runtime is compiled again.
pub(super) fn import_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let (head, text, opts, bin) = match t.as_tuple() {
        Some(&[tag, h, t, o, b]) if tag == re_exported_pattern() => (h, t, o, b),
        _ => return Err(Fail::Badarg),
    };
    let [head, text, bin] = [head, text, bin].map(|b| b.as_binary());
    let (head, text, bin) = (
        head.ok_or(Fail::Badarg)?,
        text.ok_or(Fail::Badarg)?,
        bin.ok_or(Fail::Badarg)?,
    );
    let own = (*head == *EXPORTED_HERE)
        .then(|| Source::from_bytes(&bin))
        .flatten();
    let src = match own {
        Some(src) => src,
        None => {
            let o = options(opts).filter(|o| !o.run_only).ok_or(Fail::Badarg)?;
            o.source(text.into_owned())
        }
    };
    dirty_if(cx, long!("re":"import"/1).call(&[t]), || {
        compiles_long(&src) || gc::stress_roll(8)
    })?;
    cx.bump(src.text.len() / 8 + 1);
    let code = compiled(&src).map_err(|_| Fail::Badarg)?;
    Ok(pattern_term(cx, &src, &code))
}

pub(super) fn fault_term(cx: &mut Env, (text, at): Fault) -> Term {
    let s = cx.string(&text);
    cx.tuple(&[s, Term::small(at as i64)])
}

/// Returns the bytes of an I/O list. `here`: on a scheduler, where the result is `None` if that
/// would take long.
pub(super) fn flat(t: Term, here: bool) -> Result<Option<Vec<u8>>, Fail> {
    if here && t.is_list() {
        let (mut bytes, mut rest) = (Vec::with_capacity(32), t);
        while let Some((head, tail)) = rest.as_cons()
            && let Some(byte) = head.as_small().and_then(|n| u8::try_from(n).ok())
            && bytes.len() < FLAT_BYTES
        {
            bytes.push(byte);
            rest = tail;
        }
        if rest.is_nil() {
            return Ok(Some(bytes));
        }
    }
    if here && is_larger(t, LONG_LIST) {
        return Ok(None);
    }
    iolist::to_vec(t).map(Some).map_err(|_| Fail::Badarg)
}

/// The common part of `compile/1,2`. `call` is the one of them that was called.
pub(super) fn compile(cx: &mut Env, pat: Term, opts: Term, call: LongCall<'_>) -> BifResult {
    let Some(o) = options(opts).filter(|o| !o.run_only) else {
        return Err(badopt(cx));
    };
    if o.unicode() && !pat.is_binary() {
        return Err(continue_in(cx, ucompile(), &[pat, opts]));
    }
    let text = flat(pat, !cx.dirty)?;
    let src = text.map(|text| o.source(text));
    dirty_if(cx, call, || {
        src.as_ref().is_none_or(compiles_long) || gc::stress_roll(8)
    })?;
    let src = src.ok_or(Fail::Badarg)?;
    cx.bump(src.text.len() / 8 + 1);
    match compiled(&src) {
        Ok(code) => {
            let t = match o.export {
                true => exported_term(cx, &src, opts),
                false => pattern_term(cx, &src, &code),
            };
            Ok(cx.ok(t))
        }
        Err(f) => {
            let t = fault_term(cx, f);
            Ok(cx.err(t))
        }
    }
}

pub(super) fn compile_1(cx: &mut Env, [pat]: [Term; 1]) -> BifResult {
    compile(cx, pat, NIL, long!("re":"compile"/1).call(&[pat]))
}

pub(super) fn compile_2(cx: &mut Env, [pat, opts]: [Term; 2]) -> BifResult {
    compile(cx, pat, opts, long!("re":"compile"/2).call(&[pat, opts]))
}

/// Returns the fields of a compiled pattern's term: its binary, and whether it is for Unicode.
pub(super) fn as_pattern<'a>(t: Term) -> Option<(Cow<'a, [u8]>, bool)> {
    match t.as_tuple()? {
        &[tag, n, u, c, bin] if tag == re_pattern() => {
            n.as_small()?;
            c.as_small()?;
            let bytes = match bin.as_ref_view() {
                Some(RefView::Magic(m)) => {
                    Cow::Borrowed(&m.value.downcast_ref::<Compiled>()?.0[..])
                }
                _ => bin.as_binary()?,
            };
            Source::parts(&bytes)?;
            Some((bytes, u.as_small()? != 0))
        }
        _ => None,
    }
}

/// How the compiled form of a pattern's binary is to be had.
pub(super) enum Found {
    /// There is none: the pattern is damaged, or was compiled for other newlines.
    Nothing,
    /// By compiling it, which takes too long here.
    Long,
    Here(Arc<Code>),
}

/// Returns the compiled form of a pattern's binary. Its newlines and line ends are replaced by
/// these if they are not 0 and the release allows it. The last pattern of this thread is found
/// without the shared cache.
pub(super) fn compiled_from(bin: &[u8], newline: u8, bsr: u8, place: At) -> Found {
    thread_local! {
        static LAST: RefCell<Option<(Vec<u8>, Arc<Code>)>> = const { RefCell::new(None) };
    }
    let own = newline == 0 && bsr == 0;
    LAST.with_borrow_mut(|last| {
        match last {
            Some((b, code)) if own && b[..] == *bin => return Found::Here(code.clone()),
            _ => {}
        }
        let Some(mut src) = Source::from_bytes(bin) else {
            return Found::Nothing;
        };
        let stays = !own && release::has(LINE_ENDS_STAY);
        if newline != 0 && !stays {
            src.newline = newline;
        }
        if bsr != 0 && !stays {
            src.bsr = bsr;
        }
        if place == At::Scheduler && compiles_long(&src) {
            return Found::Long;
        }
        let code = match compiled(&src) {
            Ok(code) if !stays || code.ends_lines(newline, bsr) => code,
            _ => return Found::Nothing,
        };
        if own {
            *last = Some((bin.to_vec(), code.clone()));
        }
        Found::Here(code)
    })
}
