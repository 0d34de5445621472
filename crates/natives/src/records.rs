//! Natives of module `records`: native records created, updated and accessed at run time.

use super::errors::{badmap, with_args};
use super::reschedule;
use crate::cx::{BifResult, Env, Fail};
use crate::lazy_atoms;
use crate::long;
use purlin_term::definition::{define, record};
use purlin_term::record::{Definition, Record};
use purlin_term::{Alloc, Term, am, map};

lazy_atoms! {
    badfield = "badfield";
    is_exported = "is_exported";
}

fn badrecord(cx: &mut Env, args: &[Term], t: Term) -> Fail {
    let f = cx.error2(am::BADRECORD, t);
    with_args(cx, f, args)
}

/// `error:{badfield, {{Module, Name}, Key}}`
fn bad_field(cx: &mut Env, args: &[Term], module: Term, name: Term, key: Term) -> Fail {
    let id = cx.tuple(&[module, name]);
    let what = cx.tuple(&[id, key]);
    let f = cx.error2(badfield(), what);
    with_args(cx, f, args)
}

fn create_4(cx: &mut Env, args @ [module, name, fields, options]: [Term; 4]) -> BifResult {
    if !module.is_atom() || !name.is_atom() {
        return Err(badrecord(cx, &args, name));
    }
    if !options.is_map() {
        return Err(badmap(cx, &args, options));
    }
    let exported = match map::size(options) {
        1 => map::get(options, is_exported()).and_then(Term::as_bool),
        _ => None,
    };
    let exported = exported.ok_or(Fail::Badarg)?;
    reschedule::length(cx, fields, long!("records":"create"/4).call(&args))?;
    let all = fields.list_to_vec().ok_or(Fail::Badarg)?;
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for pair in all {
        let Some(&[k, v]) = pair.as_tuple() else {
            return Err(Fail::Badarg);
        };
        if !k.is_atom() {
            return Err(bad_field(cx, &args, module, name, k));
        }
        keys.push(k);
        values.push(v);
    }
    cx.bump(keys.len() / 4);
    let d = define(cx, module, name, exported, &keys).and_then(Definition::of);
    Ok(record(cx, d.ok_or(Fail::Badarg)?, &values))
}

fn update_4(cx: &mut Env, args @ [t, module, name, fields]: [Term; 4]) -> BifResult {
    let Some(r) = t.as_record() else {
        return Err(badrecord(cx, &args, t));
    };
    if name != am::UNDERSCORE && !r.is(module, name) {
        return Err(badrecord(cx, &args, name));
    }
    if !fields.is_map() {
        return Err(badmap(cx, &args, fields));
    }
    if map::size(fields) == 0 {
        return Ok(t);
    }
    let d = r.definition;
    let mut values = r.values.to_vec();
    let mut pairs = Vec::new();
    purlin_term::parts::hashmap_pairs(fields, &mut pairs);
    cx.bump((values.len() + pairs.len()) / 4);
    let mut unknown: Option<Term> = None;
    for (k, v) in pairs {
        match d.place(k, 0) {
            Some(at) => values[at] = v,
            None if unknown.is_none_or(|u| map::cmp_keys(k, u).is_lt()) => unknown = Some(k),
            None => {}
        }
    }
    match unknown {
        Some(k) => Err(bad_field(cx, &args, d.module(), d.name(), k)),
        None => Ok(record(cx, d, &values)),
    }
}

fn get_2(_cx: &mut Env, [key, t]: [Term; 2]) -> BifResult {
    t.as_record().and_then(|r| r.get(key)).ok_or(Fail::Badarg)
}
fn viewed<'a>(t: Term) -> Result<Record<'a>, Fail> {
    t.as_record().ok_or(Fail::Badarg)
}
fn get_module_1(_cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    Ok(viewed(t)?.definition.module())
}
fn get_name_1(_cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    Ok(viewed(t)?.definition.name())
}
fn get_field_names_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    match t.as_record() {
        Some(r) => Ok(cx.list(r.definition.keys())),
        None => Err(badrecord(cx, &[t], t)),
    }
}
fn is_exported_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    match t.as_record() {
        Some(r) => Ok(Term::bool(r.definition.is_exported())),
        None => Err(badrecord(cx, &[t], t)),
    }
}

crate::bifs! {
    Plain "records":"create"/4 = create_4 [long];
    Plain "records":"update"/4 = update_4;
    Plain "records":"get"/2 = get_2;
    Plain "records":"get_module"/1 = get_module_1;
    Plain "records":"get_name"/1 = get_name_1;
    Plain "records":"get_field_names"/1 = get_field_names_1;
    Plain "records":"is_exported"/1 = is_exported_1;
}
