//! `erlang:load_nif/2`.
//!
//! # Orderings
//! `accepted` is stored with release when `load` or `upgrade` has succeeded, before the slots lead
//! to the functions. Who ends the library loads it with acquire and sees what `load` has written.
//! For `priv_data` see `library.rs`.

use crate::abi::{self, Entry, Func, OldFunc};
use crate::env::ErlNifEnv;
use crate::library::{Attached, Library, pool};
use crate::resource::Opening;
use purlin_kernel::code::{self, Module, breakpoint};
use purlin_kernel::cx::{BifResult, Cx, Fail};
use purlin_kernel::filename;
use purlin_native::{bifs, lazy_atoms, modules};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, Term, am, atom};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};

lazy_atoms! {
    bad_lib = "bad_lib";
    load = "load";
    load_failed = "load_failed";
    old_code = "old_code";
    reload = "reload";
    upgrade = "upgrade";
}

/// Functions of libraries that are part of the emulator, called with the second argument. Other
/// built-in libraries ignore it.
const ON_LOAD: &[(&str, fn(Term))] = &[("prim_socket", purlin_io::socket::on_load)];

/// Prepares for the first library.
fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crate::all_exported();
        crate::fault::watch();
        purlin_kernel::halt::on_halt(crate::library::halting);
    });
}

/// Modules that have loaded a library, accepted or not, in that order.
static TAINTS: Mutex<Vec<Term>> = Mutex::new(Vec::new());

/// Records that a module or a driver has C code.
pub fn taint(module: Term) {
    let mut t = TAINTS.lock();
    if !t.contains(&module) {
        t.push(module);
    }
}

/// Returns the modules whose libraries may harm the emulator (`erlang:system_info(taints)`).
pub fn taints() -> Vec<Term> {
    TAINTS.lock().clone()
}

/// The reason of a failure: its atom and its text.
struct Refused(Term, String);

fn bad(text: String) -> Refused {
    Refused(bad_lib(), text)
}

/// An open library without an owner.
struct Open(*mut c_void);

impl Open {
    fn take(mut self) -> *mut c_void {
        std::mem::replace(&mut self.0, std::ptr::null_mut())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: from `dlopen`; nothing of it is in use.
            unsafe { libc::dlclose(self.0) };
        }
    }
}

/// Returns the system's text for the last failure on this thread. Each byte of a file name is one
/// character.
pub fn dl_error() -> String {
    // SAFETY: null, or a string that is valid until the next such call of this thread.
    unsafe {
        let e = libc::dlerror();
        match e.is_null() {
            true => String::new(),
            false => CStr::from_ptr(e)
                .to_bytes()
                .iter()
                .map(|&b| b as char)
                .collect(),
        }
    }
}

fn load_nif_2(cx: &mut Cx, [path, info]: [Term; 2]) -> BifResult {
    code::permission::wanted(cx)?;
    // A call by name comes from no module's code. If the call is traced, its return address is the
    // caller. SAFETY: an instruction; if it is a breakpoint, the native is called through its
    // export.
    let pc = unsafe {
        match breakpoint::is_breakpoint(cx.bif_pc) {
            true => breakpoint::return_address(cx.heap.stop),
            false => cx.bif_pc,
        }
    };
    let Some(m) = code::module_at(pc) else {
        let text = "load_nif/2 must be explicitly called from the NIF module. \
                    It cannot be called through apply/3.";
        return refuse(cx, bad(text.into()));
    };
    // A binary may contain zeros.
    let path = match path.as_binary() {
        Some(b) => Some(b.to_vec()),
        None => path.is_list().then(|| filename::to_native(path)).flatten(),
    };
    let mut path = path.ok_or(Fail::Badarg)?;
    if modules::of(m.name).is_some_and(|m| m.is_library()) {
        if let Some(on_load) = ON_LOAD.iter().find(|l| l.0 == atom::name(m.name)) {
            (on_load.1)(info);
        }
        return Ok(am::OK);
    }
    // C strings end at a zero.
    path.truncate(path.iter().position(|&b| b == 0).unwrap_or(path.len()));
    match attach(cx, &m, path, info) {
        Ok(()) => Ok(am::OK),
        Err(r) => refuse(cx, r),
    }
}

fn refuse(cx: &mut Cx, r: Refused) -> BifResult {
    let s = cx.string(&r.1);
    let e = cx.tuple(&[r.0, s]);
    Ok(cx.err(e))
}

/// Only one library is loaded at a time: resource types and slots are checked before they are
/// changed.
static LOADING: Mutex<()> = Mutex::new(());

/// Loads the library at `path` for a module.
fn attach(cx: &mut Cx, m: &Arc<Module>, path: Vec<u8>, info: Term) -> Result<(), Refused> {
    let is = |v: &Option<Arc<Module>>| v.as_ref().is_some_and(|v| Arc::ptr_eq(v, m));
    let v = code::with_versions(m.name, |v| v.clone());
    if v.is_old(m) {
        let text = format!(
            "Calling load_nif from old module '{}' not allowed",
            written(m.name)
        );
        return Err(Refused(old_code(), text));
    }
    // The version whose library this one takes over from.
    let before = match is(&v.on_load) {
        true => v.current.clone().or(v.old.clone()),
        false => v.old.clone(),
    };
    drop(v);
    let _one = LOADING.lock();
    if m.library.get().is_some() {
        let text = "NIF library already loaded (reload disallowed since OTP 20).";
        return Err(Refused(reload(), text.into()));
    }
    let (open, file) = open_file(path)?;
    // SAFETY: the handle is open.
    let named = |name: &std::ffi::CStr| unsafe { libc::dlsym(open.0, name.as_ptr()) };
    let mut init = named(c"nif_init");
    if init.is_null() {
        init = named(c"_nif_init");
    }
    if init.is_null() {
        let why = dl_error();
        return Err(bad(format!(
            "Failed to find library init function: '{why}'"
        )));
    }
    begin();
    taint(m.name);
    // SAFETY: the type of that function by the interface.
    let entry = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const Entry>(init)()
    };
    // SAFETY: null or, by the interface, an entry.
    let Some(entry) = (unsafe { entry.as_ref() }) else {
        return Err(bad("Library init-call unsuccessful".into()));
    };
    let init_bytes = check(entry, m)?;
    let mut library = Library::new(open.take(), m.name, file, entry.unload, init_bytes);
    add_functions(&mut library, entry, m)?;
    let library = library.publish();
    let mut opening = Opening::new(library.clone());
    let former = before.as_ref().and_then(|b| b.library.get());
    let former = former.and_then(|l| l.downcast_ref::<Attached>());
    let code = call_load(
        cx,
        entry,
        &library,
        former.map(|f| &f.0),
        info,
        &mut opening,
    )?;
    if code != 0 {
        return Err(match former {
            Some(_) => Refused(
                upgrade(),
                format!("Library upgrade-call unsuccessful ({code})."),
            ),
            None => Refused(load(), format!("Library load-call unsuccessful ({code}).")),
        });
    }
    library.accepted.store(true, Ordering::Release);
    opening.commit();
    for f in library.functions() {
        if let Some(Ok(s)) = m.nif_slot(f.base.function, f.base.arity) {
            s.set(&raw const f.base);
        }
    }
    let _ = m.library.set(Box::new(Attached(library)));
    Ok(())
}

/// Whether a library needs at least that version of the interface.
fn version_is(entry: &Entry, major: c_int, minor: c_int) -> bool {
    (entry.major, entry.minor) >= (major, minor)
}

/// Checks that a library fits this emulator and the module. Returns the size of its version of
/// `ErlNifResourceTypeInit`; 0 if that has no `members` field.
fn check(entry: &Entry, m: &Module) -> Result<usize, Refused> {
    let at_least = |major, minor| version_is(entry, major, minor);
    let minor = known_minor();
    if at_least(abi::MAJOR, minor + 1) {
        let needs = match at_least(2, 14) {
            true => text(entry.min_erts),
            false => "erts-?".into(),
        };
        return Err(bad(format!(
            "That '{}' NIF library needs {needs} or newer. \
             Either try to recompile the NIF lib or use a newer erts runtime.",
            written(m.name)
        )));
    }
    if entry.major < 2 || (entry.major, entry.minor) == (2, 5) {
        return Err(bad(format!(
            "That old NIF library ({}.{}) is not compatible with this erts runtime ({}.{minor}). \
             Try recompile the NIF lib.",
            entry.major,
            entry.minor,
            abi::MAJOR
        )));
    }
    if at_least(2, 1) && text(entry.vm_variant) != "beam.vanilla" {
        return Err(bad(format!(
            "Library ({}) not compiled for this vm variant (beam.vanilla).",
            text(entry.vm_variant)
        )));
    }
    if text(entry.name) != atom::name(m.name) {
        return Err(bad(format!(
            "Library module name '{}' does not match calling module '{}'",
            text(entry.name),
            written(m.name)
        )));
    }
    Ok(match at_least(2, 12) {
        true => entry.sizeof_resource_type_init,
        false => 0,
    })
}

/// Adds the functions of a library, each of which the module must declare.
fn add_functions(library: &mut Library, entry: &Entry, m: &Module) -> Result<(), Refused> {
    for f in functions(entry, version_is(entry, 2, 7)) {
        let (function, arity) = (text(f.name), f.arity);
        let mfa = || format!("{}:{function}/{arity}", written(m.name));
        let known = atom::existing(&function);
        let slot = known.and_then(|a| Some((a, m.nif_slot(a, arity)?)));
        let (function_atom, _) = match slot {
            None => return Err(bad(format!("Function not found {}", mfa()))),
            Some((_, Err(code::NotNif))) => {
                return Err(bad(format!("Function not declared as nif {}", mfa())));
            }
            Some((a, Ok(s))) => (a, s),
        };
        let Some(pool) = pool(f.flags) else {
            let flags = f.flags as c_int;
            return Err(bad(format!(
                "Illegal flags field value {flags} for NIF {}",
                mfa()
            )));
        };
        let same =
            |o: &purlin_native::nif::NifFunction| (o.function, o.arity) == (function_atom, arity);
        if library.functions().iter().any(|o| same(&o.base)) {
            return Err(bad(format!("Duplicate NIF entry for {}", mfa())));
        }
        let Some(fptr) = f.fptr else {
            return Err(bad(format!("Function not found {}", mfa())));
        };
        library.add((m.name, function_atom, arity), pool, fptr);
    }
    Ok(())
}

/// Calls `load`, or `upgrade` if it takes over from another library, and returns the result.
fn call_load(
    cx: &mut Cx,
    entry: &Entry,
    library: &Arc<Library>,
    former: Option<&Arc<Library>>,
    info: Term,
    opening: &mut Opening,
) -> Result<c_int, Refused> {
    let mut env = ErlNifEnv::of_process(cx, Arc::as_ptr(library), cx.bif_pc);
    env.opening = opening;
    // The library may ask for what it stores there while it is being loaded.
    let data = library.priv_data.as_ptr();
    let code = match (former, entry.load, entry.upgrade) {
        (Some(_), _, None) => {
            let text = "Upgrade not supported by this NIF library.";
            return Err(Refused(upgrade(), text.into()));
        }
        (Some(f), _, Some(up)) => {
            let was = f.priv_data.load(Ordering::Acquire);
            // SAFETY: the library is open, and this is the type of the function.
            let code = unsafe { up(&mut env, data, f.priv_data.as_ptr(), info) };
            if code != 0 {
                f.priv_data.store(was, Ordering::Release);
            }
            code
        }
        // SAFETY: the library is open, and this is the type of the function.
        (None, Some(l), _) => unsafe { l(&mut env, data, info) },
        (None, None, _) => 0,
    };
    Ok(code)
}

/// Minor version that libraries may need: that of the running release.
fn known_minor() -> c_int {
    minor_of(purlin_kernel::options::current().otp.release)
}

/// Returns the minor version of the interface in an OTP release.
pub fn minor_of(release: u32) -> c_int {
    match release {
        ..22 => 14,
        22 | 23 => 15,
        24 | 25 => 16,
        26..29 => 17,
        _ => abi::MINOR,
    }
}

/// Opens a library, adding the extension to its file name. Also returns the name, one character for
/// each byte.
fn open_file(path: Vec<u8>) -> Result<(Open, String), Refused> {
    purlin_io::port::orphans::may_make_others();
    let handle = crate::library::dl_open(&path);
    let name: &str = &path.iter().map(|&b| b as char).collect::<String>();
    let file = format!("{name}.so");
    if handle.is_null() {
        let why = dl_error();
        let text = match why.contains(name) {
            true => format!("Failed to load NIF library: '{why}'"),
            false => format!("Failed to load NIF library {name}: '{why}'"),
        };
        return Err(Refused(load_failed(), text));
    }
    Ok((Open(handle), file))
}

/// Returns a string of a library. Each byte is one character, since names are Latin-1.
fn text(p: *const c_char) -> String {
    crate::terms::c_bytes(p)
        .iter()
        .map(|&b| b as char)
        .collect()
}

/// Formats an atom as Erlang source.
fn written(a: Term) -> String {
    purlin_term::print::format_atom(a, purlin_term::print::Style::Display)
}

/// Returns its functions in the form of the last version of the interface.
fn functions(entry: &Entry, has_flags: bool) -> Vec<Func> {
    let n = entry.num_of_funcs.max(0) as usize;
    // SAFETY: the library says how many there are, and their form is that of its version.
    unsafe {
        match has_flags {
            true => crate::terms::slice(entry.funcs, n).to_vec(),
            false => crate::terms::slice(entry.funcs as *const OldFunc, n)
                .iter()
                .map(|f| Func {
                    name: f.name,
                    arity: f.arity,
                    fptr: f.fptr,
                    flags: 0,
                })
                .collect(),
        }
    }
}

bifs! {
    Plain "erlang":"load_nif"/2 = load_nif_2;
}
