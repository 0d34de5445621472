//! Natives of the code server: loading, versions of modules, purging, `module_info`.
//!
//! `prepare_loading/2` makes code that no process can see yet, behind a reference.
//! `finish_loading/1` makes it current. A process that changes code holds the permission for that
//! ([`code::permission`]).

use crate::code::{self, FinishFailure, LoadFailure, Module, Prepared};
use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, lazy_atoms, report};
use purlin_loader::{BeamFile, Fault};
use purlin_native::{modules, native_state};
use purlin_term::fun::Export;
use purlin_term::record::Definition;
use purlin_term::release::{self, EXTREMES_NATIVE};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, NIL, Term, am, atom, compare, etf};
use std::sync::OnceLock;

lazy_atoms! {
    abort = "abort";
    duplicated = "duplicated";
    erts_code_purger = "erts_code_purger";
    is_exported = "is_exported";
    native_addresses = "native_addresses";
    not_purged = "not_purged";
    prepare = "prepare";
    prepare_on_load = "prepare_on_load";
}

/// The prepared code behind a reference from `prepare_loading/2`; empty once the module is loaded.
struct Handle(Mutex<Option<Prepared>>);

/// Names of the modules loaded before the first process, in the order of loading.
pub static PRELOADED: OnceLock<Vec<Term>> = OnceLock::new();

fn need_atom(t: Term) -> Result<Term, Fail> {
    if t.is_atom() {
        Ok(t)
    } else {
        Err(Fail::Badarg)
    }
}

fn prepare_loading_2(cx: &mut Cx, [module, bin]: [Term; 2]) -> BifResult {
    let module = need_atom(module)?;
    let bytes = bin.as_binary().ok_or(Fail::Badarg)?;
    cx.bump(bytes.len() / 64);
    let fault = match code::prepare(&bytes) {
        Ok(p) if p.name() == module => {
            code::object_files::prepared(module, &bytes);
            let made = native_state::make(cx, Handle(Mutex::new(Some(p))));
            // Code made before this still runs what was current then. Yield before the module is
            // loaded.
            return Err(cx.yield_with(made));
        }
        Ok(p) => Fault::ModuleName(atom::name(p.name()).to_owned()).into(),
        Err(LoadFailure::File(e)) => e,
        // The module is not damaged: it can be loaded once the limit is raised.
        Err(LoadFailure::AtomTableFull) => return Ok(cx.err(am::SYSTEM_LIMIT)),
        Err(e) => {
            log(
                cx,
                &format!("Error loading module {}:\n  {e}\n", atom::name(module)),
            );
            return Ok(cx.err(am::BADFILE));
        }
    };
    let release = crate::options::current().otp.release.to_string();
    let text = fault.log_text(atom::name(module), &release);
    log(cx, &text);
    Ok(cx.err(am::BADFILE))
}

fn log(cx: &mut Cx, text: &str) {
    let leader = crate::process::group_leader_of(cx);
    report::send(
        report::Level::Error,
        leader,
        cx.self_pid(),
        report::Text::Plain(text),
    );
}

fn handle<'a>(t: Term) -> Result<purlin_term::sync::MutexGuard<'a, Option<Prepared>>, Fail> {
    let h = native_state::get::<Handle>(t).ok_or(Fail::Badarg)?;
    Ok(h.0.lock())
}

fn has_prepared_code_on_load_1(_: &mut Cx, [h]: [Term; 1]) -> BifResult {
    let h = handle(h)?;
    let p = h.as_ref().ok_or(Fail::Badarg)?;
    Ok(Term::bool(p.has_on_load()))
}

fn finish_loading_1(cx: &mut Cx, [list]: [Term; 1]) -> BifResult {
    code::permission::wanted(cx)?;
    let items = list.list_to_vec().ok_or(Fail::Badarg)?;
    let mut on_load = false;
    for &t in &items {
        on_load |= handle(t)?.as_ref().ok_or(Fail::Badarg)?.has_on_load();
    }
    if on_load && items.len() > 1 {
        return Err(Fail::SystemLimit);
    }
    // Modules that more than one of the references would load.
    let mut twice = Vec::new();
    for (i, &t) in items.iter().enumerate() {
        if items[..i].iter().any(|&s| compare::eq_exact(s, t)) {
            let h = handle(t)?;
            twice.push(h.as_ref().map_or(NIL, Prepared::name));
        }
    }
    if !twice.is_empty() {
        return pair(cx, duplicated(), &twice);
    }
    let mut prepared = Vec::with_capacity(items.len());
    for &t in &items {
        prepared.push(handle(t)?.take().ok_or(Fail::Badarg)?);
    }
    match code::finish_all(prepared) {
        Ok(()) => Ok(am::OK),
        Err(FinishFailure::Duplicated(m)) => pair(cx, duplicated(), &m),
        Err(FinishFailure::NotPurged(m)) => pair(cx, not_purged(), &m),
        Err(FinishFailure::OnLoad(m)) => pair(cx, am::ON_LOAD, &m),
    }
}
fn pair(cx: &mut Cx, tag: Term, modules: &[Term]) -> BifResult {
    let l = cx.list(modules);
    Ok(cx.tuple(&[tag, l]))
}

fn call_on_load_function_1(cx: &mut Cx, [module]: [Term; 1]) -> BifResult {
    let module = need_atom(module)?;
    let waiting = code::with_versions(module, |v| v.on_load.clone()).ok_or(Fail::Badarg)?;
    match &waiting.on_load {
        Some(e) => Err(cx.trap(&**e as *const Export, &[])),
        None => Err(Fail::Badarg),
    }
}
fn finish_after_on_load_2(cx: &mut Cx, [module, keep]: [Term; 2]) -> BifResult {
    code::permission::wanted(cx)?;
    let keep = keep.as_bool().ok_or(Fail::Badarg)?;
    match code::finish_on_load(need_atom(module)?, keep) {
        true => Ok(am::TRUE),
        false => Err(Fail::Badarg),
    }
}

fn module_loaded_1(_: &mut Cx, [module]: [Term; 1]) -> BifResult {
    Ok(Term::bool(code::is_current(need_atom(module)?)))
}
fn loaded_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let l = code::loaded();
    Ok(cx.list(&l))
}
fn pre_loaded_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let l: Vec<Term> = PRELOADED
        .get()
        .into_iter()
        .flatten()
        .rev()
        .copied()
        .collect();
    Ok(cx.list(&l))
}
fn delete_module_1(cx: &mut Cx, [module]: [Term; 1]) -> BifResult {
    code::permission::wanted(cx)?;
    match code::delete(need_atom(module)?) {
        None => Ok(am::UNDEFINED),
        Some(true) => Ok(am::TRUE),
        Some(false) => {
            let name = atom::name(module);
            log(
                cx,
                &format!("Module {name} must be purged before deleting\n"),
            );
            Err(Fail::Badarg)
        }
    }
}
fn check_old_code_1(_: &mut Cx, [module]: [Term; 1]) -> BifResult {
    let module = need_atom(module)?;
    Ok(Term::bool(code::with_versions(module, |v| v.old.is_some())))
}
fn check_process_code_1(cx: &mut Cx, [module]: [Term; 1]) -> BifResult {
    let module = need_atom(module)?;
    cx.bump(1 + cx.heap.stack_words() / 64);
    let pc = cx.bif_pc;
    Ok(Term::bool(code::purge::process_is_lingering(
        cx, module, pc,
    )))
}
/// Whether the running process is the code purger, which asks every process before code is freed.
fn is_purger(cx: &mut Cx) -> bool {
    let p = cx.process();
    // SAFETY: exports are never freed.
    let began = unsafe { p.initial_call.as_ref() };
    crate::process::is_system(p.pid()) && began.is_some_and(|e| e.module == erts_code_purger())
}
fn purge_module_2(cx: &mut Cx, [module, step]: [Term; 2]) -> BifResult {
    code::permission::wanted(cx)?;
    if !is_purger(cx) {
        return Err(Fail::Notsup);
    }
    let module = need_atom(module)?;
    if step == prepare() || step == prepare_on_load() {
        let r = code::purge::prepare(module, step == prepare_on_load());
        return r.map(Term::bool).ok_or(Fail::Badarg);
    }
    if step == abort() {
        return match code::purge::abort(module) {
            true => Ok(am::FALSE),
            false => Err(Fail::Badarg),
        };
    }
    if step == am::COMPLETE {
        // SAFETY: this is the code purger, which has asked every process.
        let r = unsafe { code::purge::complete(module) };
        return r.map(Term::bool).ok_or(Fail::Badarg);
    }
    Err(Fail::Badarg)
}
fn release_area_switch_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(Term::bool(code::literal_areas::switch()))
}
/// Asks a process to count the literals of the area that it refers to. It answers `{copy_literals,
/// {Area, Kind, Pid}, ok}`.
fn send_copy_request_3(cx: &mut Cx, [pid, area, kind]: [Term; 3]) -> BifResult {
    let id = cx.tuple(&[area, kind, pid]);
    let request = cx.tuple(&[atom::intern("copy_literals"), id, am::TRUE]);
    let me = cx.self_pid();
    crate::natives::process::tasks::system_task(me, pid, atom::intern("inherit"), request)
}

fn is_static(module: Term) -> bool {
    modules::of(module).is_some_and(|m| m.is_library())
}
/// Functions that have a body in the module's own file and are replaced by a library.
///
/// Functions that stock replaces by libraries built into its emulator are natives here.
fn library_functions(m: &Module) -> Vec<(Term, u32)> {
    if !is_static(m.name) {
        return m.replaced().collect();
    }
    m.function_names()
        .filter(|&(f, a)| code::native(m.name, f, a).is_some())
        .collect()
}

/// Whether a function appears native to programs: its module's file has no code for it.
pub(crate) fn is_native(m: Term, f: Term, arity: u32) -> bool {
    let in_place = code::native(m, f, arity).is_some_and(|(_, row)| row.traits.in_place);
    // The one instruction for these was an Erlang function in earlier releases.
    let of_two = arity == 2 && m == am::ERLANG && matches!(atom::name(f), "min" | "max");
    !in_place && !is_static(m) && code::is_builtin(m, f, arity)
        || of_two && release::has(EXTREMES_NATIVE)
}

fn is_builtin_3(_: &mut Cx, [m, f, a]: [Term; 3]) -> BifResult {
    let a = arity(a)?;
    let (m, f) = (need_atom(m)?, need_atom(f)?);
    Ok(Term::bool(is_native(m, f, a)))
}
/// The arity as stock reads it: the lowest 32 bits of a small integer.
fn arity(t: Term) -> Result<u32, Fail> {
    t.as_small().map(|n| n as u32).ok_or(Fail::Badarg)
}
fn function_exported_3(_: &mut Cx, [m, f, a]: [Term; 3]) -> BifResult {
    let a = arity(a)?;
    let (m, f) = (need_atom(m)?, need_atom(f)?);
    if !is_static(m) && code::is_builtin(m, f, a) {
        return Ok(am::TRUE);
    }
    Ok(Term::bool(code::exports(m, f, a)))
}

/// The declaration of a record by a loaded module: whether it is exported, and its fields with
/// their defaults.
fn get_definition_2(cx: &mut Cx, [module, name]: [Term; 2]) -> BifResult {
    let (module, name) = (need_atom(module)?, need_atom(name)?);
    let made = code::record(module, name, false).ok_or(Fail::Badarg)?;
    let Some(&[d, defaults]) = made.as_tuple() else {
        return Err(Fail::Badarg);
    };
    let (Some(d), Some(defaults)) = (Definition::of(d), defaults.as_tuple()) else {
        return Err(Fail::Badarg);
    };
    let mut fields = Vec::with_capacity(defaults.len());
    for (&key, default) in d.keys().iter().zip(defaults) {
        fields.push(match default.as_cons() {
            Some((v, _)) => cx.tuple(&[key, v]),
            None => key,
        });
    }
    let fields = cx.list(&fields);
    let exported = Term::bool(d.is_exported());
    let options = cx.flatmap(&[is_exported()], &[exported]);
    Ok(cx.tuple(&[options, fields]))
}

fn get_module_info_1(cx: &mut Cx, [module]: [Term; 1]) -> BifResult {
    let m = code::current(need_atom(module)?).ok_or(Fail::Badarg)?;
    let mut out = Vec::new();
    for k in [
        am::MODULE,
        am::EXPORTS,
        am::ATTRIBUTES,
        am::COMPILE,
        am::MD5,
    ] {
        let v = info(cx, &m, k)?;
        out.push(cx.tuple(&[k, v]));
    }
    Ok(cx.list(&out))
}
fn get_module_info_2(cx: &mut Cx, [module, item]: [Term; 2]) -> BifResult {
    let m = code::current(need_atom(module)?).ok_or(Fail::Badarg)?;
    info(cx, &m, need_atom(item)?)
}
fn info(cx: &mut Cx, m: &Module, item: Term) -> BifResult {
    match item {
        am::MODULE => Ok(m.name),
        am::MD5 => Ok(cx.binary(&m.md5)),
        am::EXPORTS => {
            let v: Vec<(Term, u32)> = m.exports.iter().rev().map(|e| (e.0, e.1)).collect();
            Ok(names(cx, &v))
        }
        am::FUNCTIONS => {
            let v: Vec<(Term, u32)> = m.function_names().collect();
            Ok(names(cx, &v))
        }
        am::NIFS => Ok(names(cx, &library_functions(m))),
        am::ATTRIBUTES => external(cx, &m.attributes),
        am::COMPILE => external(cx, &m.compile),
        am::NATIVE => Ok(am::FALSE),
        t if t == native_addresses() => Ok(NIL),
        _ => Err(Fail::Badarg),
    }
}
fn names(cx: &mut Cx, v: &[(Term, u32)]) -> Term {
    let l: Vec<Term> = v
        .iter()
        .map(|&(f, a)| cx.tuple(&[f, Term::small(i64::from(a))]))
        .collect();
    cx.list(&l)
}
fn external(cx: &mut Cx, bytes: &[u8]) -> BifResult {
    if bytes.is_empty() {
        return Ok(NIL);
    }
    Ok(
        match etf::decode(bytes, cx, &code::CodeHooks, etf::Options::default()) {
            Ok((t, _)) => t,
            Err(_) => NIL,
        },
    )
}

fn beamfile_chunk_2(cx: &mut Cx, [bin, name]: [Term; 2]) -> BifResult {
    let name: Vec<u8> = name
        .list_to_vec()
        .ok_or(Fail::Badarg)?
        .iter()
        .map(|t| t.as_small().and_then(|n| u8::try_from(n).ok()))
        .collect::<Option<_>>()
        .ok_or(Fail::Badarg)?;
    let name: [u8; 4] = name.try_into().map_err(|_| Fail::Badarg)?;
    let bytes = bin.as_binary().ok_or(Fail::Badarg)?;
    match chunk(&bytes, &name) {
        Some(c) if !c.is_empty() => {
            cx.bump(c.len() / 1024);
            Ok(cx.binary(c))
        }
        _ => Ok(am::UNDEFINED),
    }
}
/// The chunk of that name in a form of type `BEAM`; `None` if the form is damaged before it.
fn chunk<'a>(bytes: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    let u32_at =
        |i: usize| Some(u32::from_be_bytes(bytes.get(i..i + 4)?.try_into().ok()?) as usize);
    if bytes.get(..4)? != b"FOR1" || bytes.get(8..12)? != b"BEAM" {
        return None;
    }
    let end = (8 + u32_at(4)?).min(bytes.len());
    let mut at = 12;
    while at + 8 <= end {
        let size = u32_at(at + 4)?;
        let data = bytes.get(at + 8..at + 8 + size)?;
        if &bytes[at..at + 4] == name {
            return Some(data);
        }
        at += 8 + size.next_multiple_of(4);
    }
    None
}
fn beamfile_module_md5_1(cx: &mut Cx, [bin]: [Term; 1]) -> BifResult {
    let bytes = bin.as_binary().ok_or(Fail::Badarg)?;
    cx.bump(bytes.len() / 256);
    match BeamFile::parse(&bytes) {
        Ok(f) => Ok(cx.binary(&f.md5())),
        Err(_) => Ok(am::UNDEFINED),
    }
}

bifs! {
    Plain "erts_internal":"prepare_loading"/2 = prepare_loading_2;
    Plain "erlang":"has_prepared_code_on_load"/1 = has_prepared_code_on_load_1;
    Plain "erlang":"finish_loading"/1 = finish_loading_1 [changes_code reads(All)];
    Plain "erlang":"call_on_load_function"/1 = call_on_load_function_1;
    Plain "erlang":"finish_after_on_load"/2 = finish_after_on_load_2 [changes_code];
    Plain "erlang":"module_loaded"/1 = module_loaded_1 [reads(Name)];
    Plain "erlang":"loaded"/0 = loaded_0 [reads(All)];
    Plain "erlang":"pre_loaded"/0 = pre_loaded_0;
    Plain "erlang":"delete_module"/1 = delete_module_1 [changes_code writes(Name)];
    Plain "erlang":"check_old_code"/1 = check_old_code_1 [reads(Name)];
    Plain "erts_internal":"check_process_code"/1 = check_process_code_1;
    Plain "erts_internal":"purge_module"/2 = purge_module_2 [changes_code writes(Name)];
    Plain "erts_literal_area_collector":"release_area_switch"/0 = release_area_switch_0;
    Plain "erts_literal_area_collector":"send_copy_request"/3 = send_copy_request_3;
    Plain "erlang":"is_builtin"/3 = is_builtin_3;
    Plain "erlang":"function_exported"/3 = function_exported_3 [reads(Name)];
    Plain "records":"get_definition"/2 = get_definition_2;
    Plain "erlang":"get_module_info"/1 = get_module_info_1;
    Plain "erlang":"get_module_info"/2 = get_module_info_2;
    Plain "erts_internal":"beamfile_chunk"/2 = beamfile_chunk_2;
    Plain "erts_internal":"beamfile_module_md5"/1 = beamfile_module_md5_1;
}
