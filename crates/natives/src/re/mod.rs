//! Natives of module `re`, on PCRE2.
//!
//! A compiled pattern is `{re_pattern, Groups, Unicode, UseCrLf, Bin}` as in stock. Here `Bin` is
//! the pattern's text with its options, and the machine form comes from a cache. So a pattern may
//! be stored, sent to other nodes with this runtime, and read back. Since OTP 28 a reference stands
//! for it, which means nothing to another node. Error texts are stock's where PCRE2 words the same
//! fault differently.
//!
//! Calls with lists or with `global` continue in the Erlang half of the module (`re:urun/3`,
//! `re:ucompile/2`, `re:grun/3`).

mod cache;
mod callouts;
mod capture;
mod compile;
mod errors;
mod exec;
mod matching;
mod options;
mod pattern;
mod run_natives;
mod shared;
mod utf8;

use crate::bif::Bif;
use crate::bifs;
use crate::cx::{BifResult, Env, Fail};
use compile::{Found, as_pattern, compile_1, compile_2, compiled_from, import_1};
use pcre2_sys as sys;
use purlin_term::{Alloc, Term};
use run_natives::{internal_run_4, re_long_4, run_2, run_3};
use shared::{At, namelist};

pub use run_natives::called;

fn inspect_2(cx: &mut Env, [pat, what]: [Term; 2]) -> BifResult {
    let (bin, _) = as_pattern(pat).ok_or(Fail::Badarg)?;
    if what != namelist() {
        return Err(Fail::Badarg);
    }
    let Found::Here(code) = compiled_from(&bin, 0, 0, At::DirtyThread) else {
        return Err(Fail::Badarg);
    };
    let names: Vec<Term> = code.name_list().iter().map(|n| cx.binary(n)).collect();
    let l = cx.list(&names);
    Ok(cx.tuple(&[namelist(), l]))
}

fn version_0(cx: &mut Env, []: [Term; 0]) -> BifResult {
    let mut buf = [0u8; 64];
    // SAFETY: PCRE2 documents that the version takes at most 24 bytes.
    unsafe { sys::pcre2_config_8(sys::PCRE2_CONFIG_VERSION, buf.as_mut_ptr().cast()) };
    let n = buf.iter().position(|&b| b == 0).unwrap_or(buf.len());
    Ok(cx.binary(&buf[..n]))
}

/// Whether a row is that of `purlin:re_long/4`.
pub fn is_long(row: &Bif) -> bool {
    (row.module, row.name) == ("purlin", "re_long")
}

bifs! {
    Plain "re":"compile"/1 = compile_1 [long];
    Plain "re":"compile"/2 = compile_2 [long];
    Plain "re":"import"/1 = import_1 [since(28) long];
    Plain "re":"run"/2 = run_2;
    Plain "re":"run"/3 = run_3;
    Plain "re":"internal_run"/4 = internal_run_4;
    Plain "re":"inspect"/2 = inspect_2;
    Plain "re":"version"/0 = version_0;
    DirtyCpu "purlin":"re_long"/4 = re_long_4;
}
