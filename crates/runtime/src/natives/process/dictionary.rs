//! Natives of the process dictionary, which only its own process reads and writes.

use crate::bifs;
use crate::cx::{BifResult, Cx};
use purlin_natives::iolist::admit;
use purlin_term::alloc::{LISTED_PAIR_WORDS, list_of_pairs};
use purlin_term::{Alloc, NIL, Term, am};

fn put_2(cx: &mut Cx, [k, v]: [Term; 2]) -> BifResult {
    let d = &mut cx.process().ext_mut().dict;
    let grows_by = d.next_bytes();
    if grows_by != 0 {
        admit(grows_by)?;
    }
    Ok(d.put(k, v).unwrap_or(am::UNDEFINED))
}

fn get_1(cx: &mut Cx, [k]: [Term; 1]) -> BifResult {
    Ok(cx.process().dictionary_value(k))
}

/// A list of the results of `f` on the entries of the dictionary.
fn dict_list(cx: &mut Cx, f: impl Fn((Term, Term)) -> Option<Term>) -> Term {
    let v: Vec<Term> = match cx.process().ext().map(|e| &e.dict) {
        Some(d) => d.iter().filter_map(f).collect(),
        None => Vec::new(),
    };
    cx.list(&v)
}

fn get_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    let n = cx.process().ext().map_or(0, |e| e.dict.len());
    if n == 0 {
        return Ok(NIL);
    }
    let at = cx.alloc(n * LISTED_PAIR_WORDS);
    match cx.process().ext().map(|e| &e.dict) {
        // SAFETY: fresh words for as many pairs as the dictionary has.
        Some(d) => Ok(unsafe { list_of_pairs(at, d.iter()) }),
        None => Ok(NIL),
    }
}

fn get_keys_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    Ok(dict_list(cx, |e| Some(e.0)))
}

fn get_keys_1(cx: &mut Cx, [value]: [Term; 1]) -> BifResult {
    Ok(dict_list(cx, |e| {
        purlin_term::compare::eq_exact(e.1, value).then_some(e.0)
    }))
}

fn erase_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    let l = get_0(cx, [])?;
    if let Some(e) = cx.process().ext() {
        e.dict = Default::default();
    }
    Ok(l)
}

fn erase_1(cx: &mut Cx, [k]: [Term; 1]) -> BifResult {
    let d = cx.process().ext().map(|e| &mut e.dict);
    Ok(d.and_then(|d| d.erase(k)).unwrap_or(am::UNDEFINED))
}

bifs! {
    Plain "erlang":"put"/2 = put_2;
    Plain "erlang":"get"/0 = get_0;
    Plain "erlang":"get"/1 = get_1 [template(DictionaryValue)];
    Plain "erlang":"get_keys"/0 = get_keys_0;
    Plain "erlang":"get_keys"/1 = get_keys_1;
    Plain "erlang":"erase"/0 = erase_0;
    Plain "erlang":"erase"/1 = erase_1;
}
