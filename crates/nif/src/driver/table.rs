//! The table of loaded drivers: who has loaded them, and what is pending.
//!
//! A driver that was loaded from a file stays while a process that has loaded it exists, or a port
//! is open with it. When the last of those is gone, it is unloaded, or loaded anew if requested.
//! That happens later, between two processes, so that a caller gets its answer before the
//! notification.
//!
//! # Locks
//! `TABLE` guards everything. C code is called only under `LOADING`, which one thread holds at a
//! time: `init` may add drivers.
//!
//! # Orderings
//! `FILES` lets ending processes skip the table. It is incremented before the entry of the driver
//! is added under the lock. A process that has loaded the driver has either done that itself or
//! found the entry under the lock; in both cases its own end sees the increment, since the
//! scheduler orders the runs of a process. A thread that sees a decrement late takes the lock for
//! nothing. For `ports` see [`super::code`].

use super::abi::{Entry, MAJOR, MARKER, MINOR, OLDEST};
use super::code::Code;
use super::port;
use crate::terms::c_bytes;
use purlin_io::port::{Base, Driver, End, driver, drivers, settings};
use purlin_kernel::{later, signal};
use purlin_native::lazy_atoms;
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{Alloc, Term, am, atom};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

lazy_atoms! {
    pub(crate) driver_ = "driver";
    driver_unloaded = "driver_unloaded";
    pub(crate) load_cancelled = "load_cancelled";
    load_failure = "load_failure";
    pub(crate) loaded_ = "loaded";
    open_error = "open_error";
    pub(crate) permanent = "permanent";
    unload_cancelled = "unload_cancelled";
    pub(crate) unloaded = "unloaded";
}

/// The reason why a driver cannot be loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    NoInit,
    InitFailed,
    BadName,
    Version,
    /// The message of the system, as an index in [`TEXTS`].
    System(usize),
}

/// The numbers of system errors are below this.
const SYSTEM_ERRORS: i64 = -10;

/// Messages of the system about files that could not be opened.
static TEXTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Reasons, their names and texts.
const NAMES: [(Failure, &str, &str); 4] = [
    (
        Failure::NoInit,
        "no_driver_init",
        "the file has no function driver_init",
    ),
    (
        Failure::InitFailed,
        "driver_init_failed",
        "the driver's init has failed",
    ),
    (
        Failure::BadName,
        "bad_driver_name",
        "the driver has another name than its file",
    ),
    (
        Failure::Version,
        "driver_incorrect_version",
        "the driver was compiled for another version of the interface",
    ),
];

impl Failure {
    /// The form that programs see.
    pub fn term(self, a: &mut dyn Alloc) -> Term {
        match (self, NAMES.iter().find(|n| n.0 == self)) {
            (_, Some(n)) => atom::intern(n.1),
            (Failure::System(n), _) => {
                let n = Term::small(SYSTEM_ERRORS - n as i64);
                a.tuple(&[open_error(), n])
            }
            (_, None) => am::UNDEFINED,
        }
    }
    /// Returns the text of a reason in that form.
    pub fn text(t: Term) -> Option<String> {
        if t.is_atom() {
            let name = atom::name(t);
            let of = NAMES.iter().find(|n| n.1 == name);
            return of.map(|n| n.2.to_owned());
        }
        let &[what, n] = t.as_tuple()? else {
            return None;
        };
        if what != open_error() {
            return None;
        }
        let at = usize::try_from(SYSTEM_ERRORS - n.as_small()?).ok()?;
        let texts = TEXTS.lock();
        Some(match texts.get(at) {
            Some(t) => t.clone(),
            None => "an error of the system".into(),
        })
    }
    fn of_system() -> Failure {
        let text = crate::load::dl_error();
        let mut texts = TEXTS.lock();
        let at = texts.iter().position(|t| *t == text);
        Failure::System(at.unwrap_or_else(|| {
            texts.push(text);
            texts.len() - 1
        }))
    }
}

/// The state of a driver, or what is pending for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    Loaded,
    Unload,
    /// No more ports are opened with it.
    ForceUnload,
    Reload,
    /// See [`Status::ForceUnload`].
    ForceReload,
    Permanent,
}

/// The relation of a process to a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tie {
    Loaded,
    AwaitsLoad,
    AwaitsUnload,
    AwaitsUnloadOnly,
}

struct User {
    pid: Term,
    tie: Tie,
    /// The numbers of a waiting process's reference.
    reference: [u32; 3],
    /// Whether it no longer keeps the driver, which is being loaded anew.
    lets_go: bool,
}

/// A driver in the table.
pub struct Loaded {
    code: Arc<Code>,
    /// None if it was not loaded from a file.
    pub file: Option<File>,
}

/// The record of a driver that was loaded from a file.
pub struct File {
    pub path: Vec<u8>,
    pub kill_ports: bool,
    pub status: Status,
    users: Vec<User>,
    /// Its replacement: the path, and whether its ports are killed.
    reload: Option<(Vec<u8>, bool)>,
    /// Number of operations that will continue with it.
    held: usize,
}

static TABLE: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());
static LOADING: Mutex<()> = Mutex::new(());
/// Number of drivers loaded from files, so that ending processes can skip the table.
static FILES: AtomicUsize = AtomicUsize::new(0);

/// All drivers that were loaded or added.
pub fn table() -> MutexGuard<'static, Vec<Loaded>> {
    TABLE.lock()
}

pub fn find<'a>(all: &'a mut [Loaded], name: &[u8]) -> Option<&'a mut Loaded> {
    all.iter_mut().find(|l| l.code.name == name)
}

/// Returns the names of all drivers, the last one first.
pub fn names() -> Vec<Vec<u8>> {
    table().iter().rev().map(|l| l.code.name.clone()).collect()
}

impl Loaded {
    pub fn ports(&self) -> usize {
        self.code.ports.load(Ordering::Acquire)
    }
}

impl File {
    fn new(path: Vec<u8>, kill_ports: bool) -> File {
        File {
            path,
            kill_ports,
            status: Status::Loaded,
            users: Vec::new(),
            reload: None,
            held: 0,
        }
    }
    pub fn add(&mut self, pid: Term) {
        self.users.push(User {
            pid,
            tie: Tie::Loaded,
            reference: [0; 3],
            lets_go: matches!(self.status, Status::Reload | Status::ForceReload),
        });
    }
    pub fn wait(&mut self, pid: Term, tie: Tie, reference: [u32; 3]) {
        self.users.push(User {
            pid,
            tie,
            reference,
            lets_go: false,
        });
    }
    /// Removes one load of a process. Returns false if the process has not loaded it.
    pub fn remove(&mut self, pid: Term) -> bool {
        let mut mine = self.users.iter().rev();
        let at = mine.position(|u| u.pid == pid && u.tie == Tie::Loaded);
        let Some(back) = at else { return false };
        let at = self.users.len() - 1 - back;
        self.users.remove(at);
        true
    }
    /// Returns how often it is loaded.
    pub fn loads(&self) -> usize {
        self.users.iter().filter(|u| u.tie == Tie::Loaded).count()
    }
    /// Whether it is loaded exactly once, by that process.
    pub fn is_last(&self, pid: Term) -> bool {
        self.loads() == 1
            && self
                .users
                .iter()
                .any(|u| u.tie == Tie::Loaded && u.pid == pid)
    }
    /// Returns the processes with one of those ties, and how many each has.
    pub fn users(&self, ties: &[Tie]) -> Vec<(Term, i64)> {
        let mut out: Vec<(Term, i64)> = Vec::new();
        for u in self.users.iter().rev().filter(|u| ties.contains(&u.tie)) {
            match out.iter_mut().find(|o| o.0 == u.pid) {
                Some(o) => o.1 += 1,
                None => out.push((u.pid, 1)),
            }
        }
        out.reverse();
        out
    }
    /// Begins to load it anew from that path.
    pub fn begin_reload(&mut self, pid: Term, path: Vec<u8>, kill_ports: bool) {
        self.users.iter_mut().for_each(|u| u.lets_go = true);
        self.status = Status::Reload;
        self.add(pid);
        self.reload = Some((path, kill_ports));
    }
    /// Returns the file that it is to be loaded from.
    pub fn reload(&self) -> Option<(&[u8], bool)> {
        self.reload.as_ref().map(|r| (&r.0[..], r.1))
    }
    /// Begins to unload it, since nobody wants it any more.
    pub fn begin_unload(&mut self, name: Term) {
        if self.reload.take().is_some() {
            self.tell(Tie::AwaitsLoad, name, am::DOWN, load_cancelled());
        }
        self.status = Status::Unload;
    }
    /// Cancels unloading, since it is wanted again.
    pub fn cancel_unload(&mut self, name: Term) {
        self.status = Status::Loaded;
        self.tell(
            Tie::AwaitsUnload,
            name,
            atom::intern("UP"),
            unload_cancelled(),
        );
    }
    /// Makes it permanent.
    fn stay(&mut self, name: Term) {
        for tie in [Tie::AwaitsLoad, Tie::AwaitsUnload, Tie::AwaitsUnloadOnly] {
            self.tell(tie, name, atom::intern("UP"), permanent());
        }
        self.users.clear();
        self.status = Status::Permanent;
    }
    /// Notifies waiting processes with that tie, and removes them.
    fn tell(&mut self, tie: Tie, name: Term, what: Term, why: Term) {
        let (told, rest) = std::mem::take(&mut self.users)
            .into_iter()
            .partition(|u| u.tie == tie);
        self.users = rest;
        let told: Vec<User> = told;
        for u in told {
            notify(u.pid, u.reference, name, what, |_| why);
        }
    }
    fn is_kept(&self, ports: usize) -> bool {
        let mut users = self.users.iter();
        ports > 0
            || self.held > 0
            || matches!(self.status, Status::Loaded | Status::Permanent)
            || users.any(|u| u.tie == Tie::Loaded && !u.lets_go)
    }
}

/// Sends `{What, Reference, driver, Name, Why}`.
pub fn notify(
    to: Term,
    reference: [u32; 3],
    name: Term,
    what: Term,
    why: impl FnOnce(&mut dyn Alloc) -> Term,
) {
    signal::send_with(to, |a| {
        let r = a.local_ref(reference);
        let why = why(a);
        a.tuple(&[what, r, driver_(), name, why])
    });
}

/// Returns the atom of a driver's name.
pub fn name_atom(name: &[u8]) -> Term {
    crate::terms::latin1_atom(name).unwrap_or(am::UNDEFINED)
}

/// Opens a driver's file and calls its `init`.
///
/// The caller holds `LOADING`, so nobody else loads meanwhile.
fn open_code(path: &[u8], name: &[u8]) -> Result<Arc<Code>, Failure> {
    if path.contains(&0) {
        return Err(Failure::BadName);
    }
    purlin_io::port::orphans::may_make_others();
    let handle = crate::library::dl_open(path);
    if handle.is_null() {
        return Err(Failure::of_system());
    }
    // SAFETY: the handle is open until it is closed here or passes to the code.
    let r = unsafe { entry_of(handle, name) };
    match r {
        Ok(entry) => Ok(Arc::new(Code::new(name.to_vec(), entry, handle, gone))),
        Err(e) => {
            // SAFETY: the handle is open, and nothing of it is in use.
            unsafe { libc::dlclose(handle) };
            Err(e)
        }
    }
}

/// Returns the entry of a driver.
///
/// # Safety
/// `handle` is a library that is open, and stays so.
unsafe fn entry_of(handle: *mut c_void, name: &[u8]) -> Result<Entry, Failure> {
    // SAFETY: the library is open.
    let init = unsafe { libc::dlsym(handle, c"driver_init".as_ptr()) };
    if init.is_null() {
        return Err(Failure::NoInit);
    }
    // SAFETY: the type of that function by the interface; it returns null or an entry.
    let entry = unsafe {
        let f = std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const Entry>(init);
        f().as_ref()
    };
    let entry = entry.ok_or(Failure::InitFailed)?;
    let version = (entry.major_version, entry.minor_version);
    if entry.extended_marker != MARKER || version.0 < OLDEST || version > (MAJOR, MINOR) {
        return Err(Failure::Version);
    }
    if c_bytes(entry.driver_name) != name {
        return Err(Failure::BadName);
    }
    // SAFETY: the driver's function.
    if entry.init.is_some_and(|f| unsafe { f() } != 0) {
        return Err(Failure::InitFailed);
    }
    Ok(*entry)
}

/// Prepares for the first driver.
fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crate::all_exported();
        crate::fault::watch();
        drivers::set_loaded(starter);
    });
}

/// Loads a driver on behalf of a process.
pub fn load(path: Vec<u8>, name: &[u8], kill_ports: bool, pid: Term) -> Result<(), Failure> {
    begin();
    let _one = LOADING.lock();
    let code = open_code(&path, name)?;
    crate::load::taint(name_atom(name));
    let mut file = File::new(path, kill_ports);
    file.add(pid);
    FILES.fetch_add(1, Ordering::AcqRel);
    table().push(Loaded {
        code,
        file: Some(file),
    });
    Ok(())
}

/// Returns the function that opens a port with a loaded driver; None if there is none of that name.
fn starter(command: &[u8]) -> Option<driver::Starter> {
    let name = command.split(|&b| b == b' ').next().unwrap_or_default();
    let mut all = table();
    let l = find(&mut all, name)?;
    if let Some(f) = &l.file
        && matches!(f.status, Status::ForceUnload | Status::ForceReload)
    {
        return None;
    }
    l.code.opened();
    let code = Opened(Some(l.code.clone()));
    Some(Box::new(
        move |base: &mut Base,
              o: &settings::Options,
              line: &[u8]|
              -> Result<Box<dyn Driver>, settings::Error> {
            let mut code = code;
            match code.0.take() {
                Some(c) => port::start(c, base, o, line),
                None => Err(settings::Error::General),
            }
        },
    ))
}

/// A count of a driver's ports, until a port takes it over.
struct Opened(Option<Arc<Code>>);

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(c) = &self.0 {
            c.closed();
        }
    }
}

/// Called when a port of a driver has gone.
fn gone(code: &Code) {
    if code.ports.load(Ordering::Acquire) == 0 {
        check(&code.name);
    }
}

/// Schedules the pending operation of a driver if nothing keeps it.
pub fn check(name: &[u8]) {
    let mut all = table();
    let Some(l) = find(&mut all, name) else {
        return;
    };
    let ports = l.ports();
    if l.file.as_ref().is_some_and(|f| !f.is_kept(ports)) {
        drop(all);
        let name = name.to_vec();
        later::add(Box::new(move || finish(&name)));
    }
}

/// Unloads a driver that nothing keeps, and loads it anew if requested.
fn finish(name: &[u8]) {
    let _one = LOADING.lock();
    let mut all = table();
    let at = all.iter().position(|l| {
        let ports = l.ports();
        l.code.name == name && l.file.as_ref().is_some_and(|f| !f.is_kept(ports))
    });
    let Some(at) = at else { return };
    let Loaded { code, file } = all.remove(at);
    drop(all);
    let Some(mut file) = file else { return };
    let atom_of = name_atom(name);
    if let Some(f) = code.entry.finish {
        // SAFETY: the driver's function; no port is open with it.
        unsafe { f() };
    }
    // Its file is closed with the last count, which may belong to a thread that is just leaving it.
    drop(code);
    for tie in [Tie::AwaitsUnload, Tie::AwaitsUnloadOnly] {
        file.tell(tie, atom_of, am::DOWN, unloaded());
    }
    let Some((path, kill_ports)) = file.reload.take() else {
        FILES.fetch_sub(1, Ordering::AcqRel);
        return;
    };
    match open_code(&path, name) {
        Ok(code) => {
            file.path = path;
            file.kill_ports = kill_ports;
            file.status = Status::Loaded;
            file.users.iter_mut().for_each(|u| u.lets_go = false);
            file.tell(Tie::AwaitsLoad, atom_of, atom::intern("UP"), loaded_());
            // The processes that loaded it may have ended meanwhile.
            if file.loads() == 0 {
                file.status = Status::Unload;
            }
            table().push(Loaded {
                code,
                file: Some(file),
            });
            check(name);
        }
        Err(e) => {
            FILES.fetch_sub(1, Ordering::AcqRel);
            for u in file.users.iter().filter(|u| u.tie == Tie::AwaitsLoad) {
                notify(u.pid, u.reference, atom_of, am::DOWN, |a| {
                    let why = e.term(a);
                    a.tuple(&[load_failure(), why])
                });
            }
        }
    }
}

/// Keeps a driver in its state during an operation without the table's lock.
pub fn hold(name: &[u8], on: bool) {
    if let Some(f) = find(&mut table(), name).and_then(|l| l.file.as_mut()) {
        match on {
            true => f.held += 1,
            false => f.held = f.held.saturating_sub(1),
        }
    }
}

/// Ends all ports of a driver. The caller holds the driver meanwhile.
pub fn kill_ports(name: &[u8]) {
    let code = find(&mut table(), name).map(|l| l.code.clone());
    for p in code.iter().flat_map(port::all_of) {
        p.ask(|b| b.end(End::Reason(driver_unloaded())));
    }
}

/// Called when a process has ended: removes its loads.
pub fn owner_exit(pid: Term) {
    if FILES.load(Ordering::Acquire) == 0 {
        return;
    }
    let mut touched = Vec::new();
    for l in table().iter_mut() {
        let ports = l.ports();
        let Some(f) = &mut l.file else { continue };
        if f.status == Status::Permanent {
            continue;
        }
        let before = f.users.len();
        f.users.retain(|u| u.pid != pid);
        if f.users.len() == before || f.loads() > 0 {
            continue;
        }
        f.begin_unload(name_atom(&l.code.name));
        let kill = ports > 0 && f.kill_ports;
        if kill {
            f.status = Status::ForceUnload;
        }
        touched.push((l.code.name.clone(), kill));
    }
    for (name, kill) in touched {
        if kill {
            kill_ports(&name);
        }
        check(&name);
    }
}

/// Removes a waiting process by its reference.
pub fn stop_waiting(pid: Term, reference: [u32; 3]) {
    for l in table().iter_mut() {
        if let Some(f) = &mut l.file {
            f.users
                .retain(|u| u.tie == Tie::Loaded || (u.pid, u.reference) != (pid, reference));
        }
    }
}

exported! {
    /// The driver stays as long as the emulator.
    fn driver_lock_driver(h: super::abi::Handle) -> c_int {
        let Some(p) = port::of_handle(h) else {
            return -1;
        };
        let mut all = table();
        match find(&mut all, &p.code.name).and_then(|l| l.file.as_mut()) {
            Some(f) => {
                f.stay(name_atom(&p.code.name));
                0
            }
            None => -1,
        }
    }
    /// Adds a driver that is part of another one's file.
    fn add_driver_entry(entry: *const Entry) {
        begin();
        let Some(e) = entry.as_ref() else {
            return;
        };
        let name = c_bytes(e.driver_name).to_vec();
        if e.init.is_some_and(|f| f() != 0) {
            return;
        }
        let code = Arc::new(Code::new(name, *e, std::ptr::null_mut(), gone));
        table().push(Loaded { code, file: None });
    }
    /// Removes such a driver. Returns 0, or -1 if it does not exist or has ports.
    fn remove_driver_entry(entry: *const Entry) -> c_int {
        let Some(e) = entry.as_ref() else {
            return -1;
        };
        let name = c_bytes(e.driver_name);
        let mut all = table();
        let at = all.iter().position(|l| l.file.is_none() && l.code.name == name && l.ports() == 0);
        match at {
            Some(at) => {
                all.remove(at);
                0
            }
            None => -1,
        }
    }
}
