//! Natives of module `erlang` for funs.

use super::identifiers::text_of;
use crate::cx::{BifResult, Env, Fail};
use crate::exports;
use purlin_term::layout::{FUN_WORDS, FunWords, Target};
use purlin_term::release::{self, FUNS_COUNT_AS_ONE};
use purlin_term::{Alloc, NIL, Term, am, atom};

/// Maximum number of arguments of a function.
const MOST: i64 = crate::cx::MAX_ARGS as i64;

fn make_fun_3(cx: &mut Env, [m, f, a]: [Term; 3]) -> BifResult {
    let arity = match a.as_small() {
        Some(n @ 0..=MOST) if m.is_atom() && f.is_atom() => n as u32,
        _ => return Err(Fail::Badarg),
    };
    Ok(export_fun(cx, m, f, arity))
}

/// `fun M:F/Arity`
pub(crate) fn export_fun<A: Alloc + ?Sized>(to: &mut A, m: Term, f: Term, arity: u32) -> Term {
    let export = exports::export(m, f, arity);
    let p = to.alloc(FUN_WORDS);
    // SAFETY: the words of a fun without an environment.
    unsafe {
        FunWords::write(p, Target::Export(export), arity as u8, 0, NIL);
        Term::boxed_at(p)
    }
}

fn fun_to_list_1(cx: &mut Env, [f]: [Term; 1]) -> BifResult {
    if !f.is_fun() {
        return Err(Fail::Badarg);
    }
    Ok(text_of(cx, f))
}

/// Returns the name of a local fun's function; nil while its module isn't loaded.
fn local_name(e: &purlin_term::fun::FunEntry) -> Term {
    if e.address().is_null() {
        NIL
    } else {
        e.function()
    }
}

fn fun_info_2(cx: &mut Env, [f, item]: [Term; 2]) -> BifResult {
    let v = f.as_fun().ok_or(Fail::Badarg)?;
    if !item.is_atom() {
        return Err(Fail::Badarg);
    }
    let local = v.local();
    let value = match (atom::name(item), local, v.export()) {
        ("type", Some(_), _) => am::LOCAL,
        ("type", ..) => am::EXTERNAL,
        ("module", Some(e), _) => e.module,
        ("module", _, Some(e)) => e.module,
        ("name", Some(e), _) => local_name(e),
        ("name", _, Some(e)) => e.function,
        ("arity", ..) => Term::small(i64::from(v.arity)),
        ("env", ..) => cx.list(v.env),
        ("pid", Some(_), _) => v.maker(),
        ("index", Some(e), _) => Term::small(i64::from(e.old_index)),
        ("uniq", Some(e), _) => cx.int(e.old_uniq),
        ("new_index", Some(e), _) => Term::small(i64::from(e.index)),
        ("new_uniq", Some(e), _) => cx.binary(&e.uniq),
        ("refc", Some(_), _) if release::has(FUNS_COUNT_AS_ONE) => Term::small(1),
        ("refc", Some(e), _) => cx.uint(e.count() as u64),
        ("pid" | "index" | "uniq" | "new_index" | "new_uniq" | "refc", ..) => am::UNDEFINED,
        _ => return Err(Fail::Badarg),
    };
    Ok(cx.tuple(&[item, value]))
}

fn fun_info_mfa_1(cx: &mut Env, [f]: [Term; 1]) -> BifResult {
    let v = f.as_fun().ok_or(Fail::Badarg)?;
    let (m, name) = match (v.local(), v.export()) {
        (Some(e), _) => (e.module, local_name(e)),
        (_, Some(e)) => (e.module, e.function),
        _ => return Err(Fail::Badarg),
    };
    Ok(cx.tuple(&[m, name, Term::small(i64::from(v.arity))]))
}

crate::bifs! {
    Plain "erlang":"make_fun"/3 = make_fun_3;
    Plain "erlang":"fun_to_list"/1 = fun_to_list_1;
    Plain "erlang":"fun_info"/2 = fun_info_2;
    Plain "erlang":"fun_info_mfa"/1 = fun_info_mfa_1;
}
