//! The functions of `erl_nif.h` for maps.
//!
//! # Invariant
//! An iterator of a tree map owns a copy of its keys and values, and one of a flat map points into
//! the map. So both are read in the same way, and only `enif_map_iterator_destroy` frees the copy.

use crate::abi::MapIterator;
use crate::env::ErlNifEnv;
use purlin_term::{Alloc, Term, map};
use std::ffi::c_int;

/// Stores a value, if there is one, and returns whether there is.
///
/// # Safety
/// `to` may be written to.
unsafe fn store(to: *mut Term, v: Option<Term>) -> c_int {
    match v {
        Some(v) => {
            // SAFETY: by the contract of this function.
            unsafe { to.write(v) };
            1
        }
        None => 0,
    }
}

exported! {
    fn enif_is_map(_env: *mut ErlNifEnv, t: Term) -> c_int {
        c_int::from(t.is_map())
    }
    fn enif_get_map_size(_env: *mut ErlNifEnv, t: Term, to: *mut usize) -> c_int {
        match t.map_size() {
            Some(n) => {
                to.write(n);
                1
            }
            None => 0,
        }
    }
    fn enif_make_new_map(env: *mut ErlNifEnv) -> Term {
        (*env).flatmap(&[], &[])
    }
    fn enif_make_map_put(env: *mut ErlNifEnv, m: Term, k: Term, v: Term, to: *mut Term) -> c_int {
        store(to, m.is_map().then(|| map::put(&mut *env, m, k, v)))
    }
    fn enif_make_map_update(
        env: *mut ErlNifEnv, m: Term, k: Term, v: Term, to: *mut Term,
    ) -> c_int {
        let made = match m.is_map() {
            true => map::update(&mut *env, m, k, v),
            false => None,
        };
        store(to, made)
    }
    fn enif_make_map_remove(env: *mut ErlNifEnv, m: Term, k: Term, to: *mut Term) -> c_int {
        store(to, m.is_map().then(|| map::remove(&mut *env, m, k)))
    }
    fn enif_get_map_value(_env: *mut ErlNifEnv, m: Term, k: Term, to: *mut Term) -> c_int {
        let v = match m.is_map() {
            true => map::get(m, k),
            false => None,
        };
        store(to, v)
    }
    fn enif_make_map_from_arrays(
        env: *mut ErlNifEnv, keys: *const Term, values: *const Term, n: usize, to: *mut Term,
    ) -> c_int {
        let keys = crate::terms::slice(keys, n);
        let values = crate::terms::slice(values, n);
        let pairs: Vec<(Term, Term)> = keys.iter().copied().zip(values.iter().copied()).collect();
        store(to, map::from_pairs_unique(&mut *env, &pairs))
    }
    /// The pairs of a flat map are read in place; those of a tree map are copied to a block.
    fn enif_map_iterator_create(
        _env: *mut ErlNifEnv, m: Term, to: *mut MapIterator, entry: c_int,
    ) -> c_int {
        let Some(size) = m.map_size() else {
            return 0;
        };
        let (keys, values) = match m.as_flatmap() {
            Some((k, v)) => (k.as_ptr(), v.as_ptr()),
            None => {
                let mut all = Vec::with_capacity(2 * size);
                all.extend(map::iter(m).map(|p| p.0));
                all.extend(map::iter(m).map(|p| p.1));
                let p = Box::into_raw(all.into_boxed_slice()) as *const Term;
                (p, p.add(size))
            }
        };
        to.write(MapIterator {
            map: m,
            size,
            at: if entry == 2 { size } else { 1 },
            keys,
            values,
            spare: [std::ptr::null_mut(); 2],
        });
        1
    }
    fn enif_map_iterator_destroy(_env: *mut ErlNifEnv, i: *mut MapIterator) {
        let i = &mut *i;
        if i.map.as_flatmap().is_none() && !i.keys.is_null() {
            let all = std::ptr::slice_from_raw_parts_mut(i.keys as *mut Term, 2 * i.size);
            drop(Box::from_raw(all));
        }
        i.keys = std::ptr::null();
    }
    fn enif_map_iterator_is_head(_env: *mut ErlNifEnv, i: *mut MapIterator) -> c_int {
        c_int::from((*i).at == 0)
    }
    fn enif_map_iterator_is_tail(_env: *mut ErlNifEnv, i: *mut MapIterator) -> c_int {
        c_int::from((*i).at > (*i).size)
    }
    fn enif_map_iterator_next(_env: *mut ErlNifEnv, i: *mut MapIterator) -> c_int {
        let i = &mut *i;
        i.at = i.size.min(i.at) + 1;
        c_int::from(i.at <= i.size)
    }
    fn enif_map_iterator_prev(_env: *mut ErlNifEnv, i: *mut MapIterator) -> c_int {
        let i = &mut *i;
        i.at = i.at.saturating_sub(1);
        c_int::from(i.at > 0)
    }
    fn enif_map_iterator_get_pair(
        _env: *mut ErlNifEnv, i: *mut MapIterator, k: *mut Term, v: *mut Term,
    ) -> c_int {
        let i = &*i;
        if i.at == 0 || i.at > i.size {
            return 0;
        }
        k.write(*i.keys.add(i.at - 1));
        v.write(*i.values.add(i.at - 1));
        1
    }
}
