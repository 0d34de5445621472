//! The environment variables that Erlang programs see. Kept apart from those of this operating-system process, which
//! no thread may change while others run; programs that are started get these.

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

/// Sets all variables. Called once, when the runtime starts; without, they are those of the operating-system process.
pub fn init(vars: impl IntoIterator<Item = (OsString, OsString)>) {
    VARIABLES.get_or_init(|| RwLock::new(from_os(vars)));
}

/// The value of a variable.
pub fn get(name: &[u8]) -> Option<Vec<u8>> {
    let v = variables().read();
    v.get(name).cloned()
}

/// Calls `f` with what gives the value of a variable; None while somebody changes one.
pub fn try_read<R>(f: impl FnOnce(&dyn Fn(&[u8]) -> Option<Vec<u8>>) -> R) -> Option<R> {
    let v = variables().try_read()?;
    Some(f(&|name| v.get(name).cloned()))
}

/// Sets a variable, or takes it away.
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
