//! The environment variables of Erlang programs. They are kept apart from those of the
//! operating-system process, which no thread may change while others run. External programs inherit
//! these.

use crate::sync::RwLock;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

type Variables = BTreeMap<Vec<u8>, Vec<u8>>;

static VARIABLES: OnceLock<RwLock<Variables>> = OnceLock::new();

fn variables() -> &'static RwLock<Variables> {
    VARIABLES.get_or_init(|| RwLock::new(from_os(std::env::vars_os())))
}

fn from_os(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Variables {
    vars.into_iter()
        .map(|(k, v)| (k.into_vec(), v.into_vec()))
        .collect()
}

/// Sets all variables. Called once, when the runtime starts; otherwise they are those of the
/// operating-system process.
pub fn init(vars: impl IntoIterator<Item = (OsString, OsString)>) {
    VARIABLES.get_or_init(|| RwLock::new(from_os(vars)));
}

/// The value of a variable.
pub fn get(name: &[u8]) -> Option<Vec<u8>> {
    let v = variables().read();
    v.get(name).cloned()
}

/// Calls `f` with a function that returns the value of a variable. Returns None while a variable is
/// being changed.
pub fn try_read<R>(f: impl FnOnce(&dyn Fn(&[u8]) -> Option<Vec<u8>>) -> R) -> Option<R> {
    let v = variables().try_read()?;
    Some(f(&|name| v.get(name).cloned()))
}

/// Sets or removes a variable.
pub fn set(name: Vec<u8>, value: Option<Vec<u8>>) {
    let mut v = variables().write();
    match value {
        Some(value) => v.insert(name, value),
        None => v.remove(&name),
    };
}

/// All variables, sorted by name.
pub fn all() -> Vec<(Vec<u8>, Vec<u8>)> {
    let v = variables().read();
    v.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}
