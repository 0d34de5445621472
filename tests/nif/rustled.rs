//! A library by crate `rustler`, old or new (`feature = "new"`), for the program `rustled.erl`: numbers, text, binaries, maps, resources,
//! dirty functions, panics, messages from threads of its own.

use rustler::{Atom, Binary, Encoder, Env, Error, LocalPid, NifResult, OwnedBinary, OwnedEnv, ResourceArc, Term};
use std::collections::HashMap;
use std::sync::Mutex;

mod atoms {
    rustler::atoms! { ok, ended, sent }
}

/// Tells who made it what it came to.
struct Counter {
    n: Mutex<i64>,
    who: LocalPid,
}

impl Drop for Counter {
    fn drop(&mut self) {
        let (n, who) = (*self.n.lock().unwrap(), self.who);
        // The crate has messages sent by threads of its users only.
        std::thread::spawn(move || {
            let _ = OwnedEnv::new().send_and_clear(&who, |env| (atoms::ended(), n).encode(env));
        });
    }
}

#[cfg(feature = "new")]
#[rustler::resource_impl]
impl rustler::Resource for Counter {}

#[rustler::nif]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[rustler::nif]
fn fail(t: Term) -> NifResult<Term> {
    Err(Error::RaiseTerm(Box::new(format!("{t:?}"))))
}

#[rustler::nif]
fn panics() -> i64 {
    panic!("by intent")
}

#[rustler::nif]
fn make(env: Env) -> ResourceArc<Counter> {
    ResourceArc::new(Counter {
        n: Mutex::new(0),
        who: env.pid(),
    })
}

#[rustler::nif]
fn bump(c: ResourceArc<Counter>, by: i64) -> i64 {
    let mut n = c.n.lock().unwrap();
    *n += by;
    *n
}

#[rustler::nif]
fn reverse<'a>(env: Env<'a>, b: Binary<'a>) -> Binary<'a> {
    let mut o = OwnedBinary::new(b.len()).unwrap();
    for (to, from) in o.as_mut_slice().iter_mut().zip(b.as_slice().iter().rev()) {
        *to = *from;
    }
    o.release(env)
}

#[rustler::nif]
fn words(s: String) -> HashMap<String, usize> {
    let mut m = HashMap::new();
    for w in s.split_whitespace() {
        *m.entry(w.to_string()).or_insert(0) += 1;
    }
    m
}

#[rustler::nif]
fn floats(v: Vec<f64>) -> (f64, usize, Vec<String>) {
    (v.iter().sum(), v.len(), v.iter().map(|f| format!("{f}")).collect())
}

#[rustler::nif(schedule = "DirtyCpu")]
fn slow(n: u64) -> u64 {
    (0..n).fold(0u64, |a, b| a.wrapping_mul(31).wrapping_add(b))
}

#[rustler::nif(schedule = "DirtyIo")]
fn slow_panics() -> i64 {
    panic!("by intent, on a dirty thread")
}

#[rustler::nif]
fn later(env: Env) -> Atom {
    let pid = env.pid();
    std::thread::spawn(move || {
        let _ = OwnedEnv::new().send_and_clear(&pid, |env| (atoms::sent(), vec![1, 2, 3], "from a thread").encode(env));
    });
    atoms::ok()
}

#[rustler::nif]
fn kinds<'a>(env: Env<'a>, l: Vec<Term<'a>>) -> Term<'a> {
    let all: Vec<String> = l.iter().map(|t| format!("{:?}", t.get_type())).collect();
    all.encode(env)
}

#[rustler::nif]
fn external_size(t: Term) -> usize {
    t.to_binary().as_slice().len()
}

#[cfg(feature = "new")]
rustler::init!("rustled");

#[cfg(not(feature = "new"))]
#[allow(non_local_definitions)]
fn load(env: Env, _: Term) -> bool {
    rustler::resource!(Counter, env);
    true
}

#[cfg(not(feature = "new"))]
rustler::init!(
    "rustled",
    [add, fail, panics, make, bump, reverse, words, floats, slow, slow_panics, later, kinds, external_size],
    load = load
);
