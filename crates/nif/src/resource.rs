//! Resources: blocks of C code's own that terms refer to. Callbacks are called when a resource is
//! no longer referred to (destructor), when a process that it monitors ends, and by other modules.
//!
//! # Layout
//! One block: a head, then the bytes whose address C code has. The count of the resource is that of
//! its magic reference ([`MagicRef`]). Each term, each binary made of it, and each
//! `enif_keep_resource` holds one. When the count falls to 0, the value behind the reference is
//! dropped, mostly during a collection. A scheduler does the rest later: it ends the monitors,
//! calls the destructor and frees the block.
//!
//! # References to a type
//! A type is kept by the registry of types while the library that owns it is loaded, by each
//! resource of it, and by each library that has opened it, whose code may make resources of it as
//! long as it runs. A type keeps its library if it has callbacks there and is in the registry or
//! has resources: [`ResourceType::used`] counts these. When the count falls to 0, the library is
//! released.
//!
//! # Locks
//! `WATCHES` guards all monitors. A head is freed only after its monitors were removed there. So a
//! thread that finds a monitor under that lock may access the head, and may hold the resource if
//! its count is not 0 yet.
//!
//! # Orderings
//! * `used`: a decrement in `leave` releases the thread's work with the type, and the one that
//!   reaches 0 acquires that of all others. It then reads `used` again under the lock of `state`.
//!   An `enter` whose `own` had that lock before is seen there. An `enter` that is missed runs
//!   `own` later, finds `owner` empty and sets it again from `opener`.
//! * `watched`, `encoded`: stored with release by a holder, before the entry that they announce is
//!   added under a lock. They are read with acquire after the last count is gone, whose release and
//!   acquire make the stores of all holders visible. So no entry is missed.
//! * `owns_types`: stored with release when the types are committed. `orphan` reads it with acquire
//!   and then takes the locks.

use crate::abi::{Monitor, Pid, RT_CREATE, RT_TAKEOVER, TypeInit};
use crate::env::{ErlNifEnv, Temporary, callback};
use crate::library::Library;
use purlin_kernel::later;
use purlin_kernel::process::{self, ext::Hashing};
use purlin_kernel::signal::{Kind, Signal, send};
use purlin_native::ids;
use purlin_term::bin::RcBin;
use purlin_term::fence;
use purlin_term::layout::{RefView, RefWords};
use purlin_term::magic::{self, MagicRef};
use purlin_term::sync::{Mutex, MutexGuard, RwLock};
use purlin_term::{Alloc, NIL, Term};
use std::alloc::Layout;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once, Weak};

/// A type of resources. C code knows it by its address.
pub struct ResourceType {
    module: Term,
    name: Term,
    /// Number of its resources, plus one while it is in the registry.
    used: AtomicUsize,
    /// Callbacks, and the library that contains them.
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    init: TypeInit,
    /// The library that opened it last.
    opener: Weak<Library>,
    /// The opener, if it contains callbacks, while the type is used.
    owner: Option<Arc<Library>>,
    /// Whether it is in the registry.
    registered: bool,
}

impl State {
    fn has_callbacks(&self) -> bool {
        let i = &self.init;
        i.dtor.is_some() || i.stop.is_some() || i.down.is_some() || i.dyncall.is_some()
    }
}

impl ResourceType {
    /// Returns the callbacks and their library. There are none if the library is gone.
    fn callbacks(&self) -> (TypeInit, Option<Arc<Library>>) {
        let s = self.state.read();
        if !s.has_callbacks() {
            return (s.init, None);
        }
        match s.owner.clone().or_else(|| s.opener.upgrade()) {
            Some(l) => (s.init, Some(l)),
            None => (TypeInit::default(), None),
        }
    }
    /// Adds a use.
    fn enter(&self) {
        if self.used.fetch_add(1, Ordering::AcqRel) == 0 {
            self.own();
        }
    }
    /// Keeps the library from now on. The library exists: its code has just made the first resource
    /// since the type was last used. While `unload` runs it is not kept, since nothing of it is
    /// called any more.
    #[cold]
    fn own(&self) {
        let mut s = self.state.write();
        if s.owner.is_none() && s.has_callbacks() {
            s.owner = s.opener.upgrade();
        }
    }
    /// Removes a use. The last one releases the library, which the caller drops where it may be
    /// closed.
    #[must_use]
    fn leave(&self) -> Option<Arc<Library>> {
        if self.used.fetch_sub(1, Ordering::AcqRel) != 1 {
            return None;
        }
        let mut s = self.state.write();
        match self.used.load(Ordering::Acquire) {
            0 => s.owner.take(),
            _ => None,
        }
    }
}

/// All types, by the words of module and name.
static TYPES: Mutex<Option<HashMap<(u64, u64), Arc<ResourceType>>>> = Mutex::new(None);

fn types() -> MutexGuard<'static, Option<HashMap<(u64, u64), Arc<ResourceType>>>> {
    TYPES.lock()
}

/// The types that a library opens while it is loaded. They change only when the library is
/// accepted.
pub struct Opening {
    library: Arc<Library>,
    opened: Vec<(Arc<ResourceType>, TypeInit)>,
}

impl Opening {
    pub fn new(library: Arc<Library>) -> Opening {
        Opening {
            library,
            opened: Vec::new(),
        }
    }
    /// Assigns the types to the library.
    pub fn commit(self) {
        let mut former = Vec::new();
        for (t, init) in self.opened {
            let mut s = t.state.write();
            s.init = init;
            s.opener = Arc::downgrade(&self.library);
            let owner = s.has_callbacks().then(|| self.library.clone());
            former.push(std::mem::replace(&mut s.owner, owner));
            if !std::mem::replace(&mut s.registered, true) {
                t.used.fetch_add(1, Ordering::AcqRel);
            }
            drop(s);
            self.library.opened.lock().push(t.clone());
            let key = (t.module.raw(), t.name.raw());
            types().get_or_insert_default().insert(key, t);
        }
        self.library.owns_types.store(true, Ordering::Release);
        // These may include the last reference to another library.
        drop(former);
    }
}

/// Called when the module of a library was purged: its types can no longer be opened.
pub fn orphan(library: &Arc<Library>) {
    if !library.owns_types.load(Ordering::Acquire) {
        return;
    }
    let mut gone = Vec::new();
    if let Some(all) = types().as_mut() {
        all.retain(|_, t| {
            let mut s = t.state.write();
            let mine = std::ptr::eq(s.opener.as_ptr(), Arc::as_ptr(library));
            if mine {
                s.registered = false;
                gone.push(t.clone());
            }
            !mine
        });
    }
    for t in gone {
        drop(t.leave());
    }
}

/// Opens a type for the library that is being loaded. `tried` receives what was done, or what was
/// asked for if that is impossible.
///
/// # Safety
/// `name` is a C string, `tried` is null or may be written to, and the environment is that of a
/// library that is being loaded.
unsafe fn open(
    env: *mut ErlNifEnv,
    name: *const c_char,
    init: TypeInit,
    flags: c_int,
    tried: *mut c_int,
) -> *const ResourceType {
    if !tried.is_null() {
        // SAFETY: it may be written to.
        unsafe { tried.write(flags) };
    }
    // SAFETY: null, or the types of the library that is being loaded on this thread.
    let Some(opening) = (unsafe { (*env).opening.as_mut() }) else {
        return std::ptr::null();
    };
    let Some(name) = crate::terms::latin1_atom(crate::terms::c_bytes(name)) else {
        return std::ptr::null();
    };
    let module = opening.library.module;
    let known = types()
        .as_ref()
        .and_then(|t| t.get(&(module.raw(), name.raw())).cloned());
    let op = match known {
        Some(_) => RT_TAKEOVER,
        None => RT_CREATE,
    };
    if flags & op == 0 {
        return std::ptr::null();
    }
    if !tried.is_null() {
        // SAFETY: it may be written to.
        unsafe { tried.write(op) };
    }
    let t = known.unwrap_or_else(|| {
        Arc::new(ResourceType {
            module,
            name,
            used: AtomicUsize::new(0),
            state: RwLock::default(),
        })
    });
    let p = Arc::as_ptr(&t);
    opening.opened.push((t, init));
    p
}

/// The head of a resource.
#[repr(C, align(16))]
struct Head {
    /// The magic reference that counts it, and that has it as its value.
    magic: *const MagicRef,
    size: usize,
    kind: Arc<ResourceType>,
    /// Whether its reference was ever encoded as an external term: then it is in `NUMBERS`.
    encoded: AtomicBool,
    /// Whether it has ever monitored a process.
    watched: AtomicBool,
    /// Whether nobody holds it any more. Set under the lock of `WATCHES`: when it is released if it
    /// ever monitored a process, else before its destructor is called, after which it monitors
    /// none.
    dying: bool,
    /// References of its monitors.
    watches: HashSet<[u32; 3], Hashing>,
}

const HEAD: usize = size_of::<Head>();
/// Size of the head on stock, which counts where programs see the size of a resource.
const STOCK_HEAD: usize = 40;
const _: () = assert!(HEAD.is_multiple_of(16));

fn layout(size: usize) -> Option<Layout> {
    // Rounded to the alignment: with the fence on, blocks end at page boundaries.
    let size = HEAD.checked_add(size)?.checked_next_multiple_of(16)?;
    Layout::from_size_align(size, 16).ok()
}

/// The value behind a resource's reference.
struct Value(*mut Head);

// SAFETY: by the rules of the interface C code may use a resource from any thread.
unsafe impl Send for Value {}
// SAFETY: by the rules of the interface C code may use a resource from any thread.
unsafe impl Sync for Value {}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the head lives until `end`.
        unsafe {
            if (*self.0).watched.load(Ordering::Acquire) {
                let _all = watches();
                (*self.0).dying = true;
            }
            if (*self.0).encoded.load(Ordering::Acquire)
                && let Some(all) = numbers().as_mut()
            {
                all.remove(&(*(*self.0).magic).num);
            }
        }
        let head = ManuallyDrop::new(Value(self.0));
        later::add(Box::new(move || {
            let head = head;
            // SAFETY: nobody holds the resource, and this is done once.
            unsafe { end(head.0) };
        }));
    }
}

/// Ends a resource.
///
/// # Safety
/// Nobody holds the resource, and it has not ended yet.
unsafe fn end(head: *mut Head) {
    // SAFETY: nobody holds the resource, so the head is this thread's; `WATCHES` is locked where
    // others may still look at it.
    unsafe {
        let watches = {
            let mut all = watches();
            (*head).dying = true;
            let mine = std::mem::take(&mut (*head).watches);
            let mut left = Vec::new();
            for num in mine {
                left.extend(
                    all.as_mut()
                        .and_then(|a| a.remove(&num))
                        .map(|w| (num, w.pid)),
                );
            }
            left
        };
        for (num, pid) in watches {
            stop_watching(num, pid);
        }
        let (init, owner) = (*head).kind.callbacks();
        if let Some(dtor) = init.dtor {
            let library = owner.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
            callback(library, |e| dtor(e, data_of(head)));
        }
        let size = (*head).size;
        let last = (*head).kind.leave();
        // This may drop the type and its library.
        std::ptr::drop_in_place(head);
        drop((owner, last));
        if let Some(l) = layout(size) {
            fence::deallocate(head as *mut u8, l);
        }
    }
}

/// Returns the address that C code knows a resource by.
///
/// # Safety
/// `head` was made by [`alloc`].
unsafe fn data_of(head: *mut Head) -> *mut c_void {
    // SAFETY: the data follows the head in the same block.
    unsafe { (head as *mut u8).add(HEAD) as *mut c_void }
}

/// Returns the head of the resource that C code knows by that address.
///
/// # Safety
/// `data` came from [`data_of`].
unsafe fn head_of(data: *const c_void) -> *mut Head {
    // SAFETY: the head precedes the data in the same block.
    unsafe { (data as *mut u8).sub(HEAD) as *mut Head }
}

/// Returns the resource that a reference refers to, or that a binary shows bytes of.
fn behind(t: Term) -> Option<*mut Head> {
    if let Some(bin) = t.block() {
        // SAFETY: the block of a live term.
        return unsafe {
            let (end, data) = RcBin::foreign_parts(bin)?;
            std::ptr::fn_addr_eq(end, let_go as unsafe fn(*mut u8))
                .then(|| head_of(data as *const c_void))
        };
    }
    match t.as_ref_view()? {
        RefView::Magic(m) => m.value.downcast_ref::<Value>().map(|v| v.0),
        _ => None,
    }
}

/// Resources by the numbers of their references, for those that were encoded as external terms.
static NUMBERS: Mutex<Option<HashMap<[u32; 3], ManuallyDrop<Value>>>> = Mutex::new(None);

fn numbers() -> MutexGuard<'static, Option<HashMap<[u32; 3], ManuallyDrop<Value>>>> {
    NUMBERS.lock()
}

/// Called when a reference is encoded: a plain reference with its numbers may come back.
fn encoded(m: &MagicRef) {
    let Some(v) = m.value.downcast_ref::<Value>() else {
        return;
    };
    let mut all = numbers();
    // SAFETY: a value holds a reference to its resource, and `m` holds the value.
    unsafe { (*v.0).encoded.store(true, Ordering::Release) };
    all.get_or_insert_default()
        .entry(m.num)
        .or_insert(ManuallyDrop::new(Value(v.0)));
}

/// Does the same as [`behind`], and also accepts a plain reference that was decoded from an
/// external term. In that case the environment holds the resource.
///
/// # Safety
/// The environment belongs to this call, and `t` is a term of it.
unsafe fn behind_any(env: *mut ErlNifEnv, t: Term) -> Option<*mut Head> {
    let found = behind(t);
    if found.is_some() {
        return found;
    }
    let Some(RefView::Local { num, pid: None }) = t.as_ref_view() else {
        return None;
    };
    let all = numbers();
    let head = all.as_ref()?.get(&num)?.0;
    // Its number is removed under this lock before it is freed.
    // SAFETY: so the head and its reference are alive.
    if !unsafe { MagicRef::try_retain((*head).magic) } {
        return None;
    }
    drop(all);
    // SAFETY: the environment is this call's, and takes the count.
    unsafe { (*env).keep(Temporary::Resource(data_of(head))) };
    Some(head)
}

/// Adds a count.
///
/// # Safety
/// `data` is the address of a resource that is held.
pub unsafe fn keep(data: *mut c_void) {
    // SAFETY: the resource is held.
    unsafe { (*(*head_of(data)).magic).retain() };
}

/// Releases a count.
///
/// # Safety
/// `data` is the address of a resource, and the caller gives up one of its counts.
pub unsafe fn release(data: *mut c_void) {
    // SAFETY: the caller's count keeps the resource until it is released here.
    unsafe { MagicRef::release((*head_of(data)).magic) };
}

/// Calls the `stop` callback of a resource, if its type has one, when its descriptor is no longer
/// selected.
///
/// # Safety
/// `data` is the address of a resource that is held.
pub unsafe fn stop(data: *mut c_void, fd: c_int, direct: bool) {
    // SAFETY: the resource is held.
    let (init, owner) = unsafe { (*head_of(data)).kind.callbacks() };
    if let Some(f) = init.stop {
        let library = owner.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        // SAFETY: by the interface the function takes these arguments; `owner` keeps its library.
        callback(library, |e| unsafe { f(e, data, fd, c_int::from(direct)) });
    }
}

/// Makes a reference to a resource.
///
/// # Safety
/// `data` is the address of a resource that is held.
pub unsafe fn reference(data: *mut c_void, to: &mut dyn Alloc) -> Term {
    // SAFETY: the resource is held.
    unsafe { to.magic_ref((*head_of(data)).magic) }
}

/// A monitor of a resource.
struct Watch {
    head: *mut Head,
    pid: Term,
}

// SAFETY: see the module documentation on locks.
unsafe impl Send for Watch {}

/// Monitors by the numbers of their references.
static WATCHES: Mutex<Option<HashMap<[u32; 3], Watch>>> = Mutex::new(None);

fn watches() -> MutexGuard<'static, Option<HashMap<[u32; 3], Watch>>> {
    WATCHES.lock()
}

/// Holds a resource if it has another holder. Must be called under the lock of `WATCHES`: the count
/// is freed when the resource dies, and `dying` is set under that lock before.
///
/// # Safety
/// The lock of `WATCHES` has been held since before `head` was found in it.
unsafe fn try_keep(head: *mut Head) -> bool {
    // SAFETY: the head is freed only after its monitors were removed under the lock, which is held.
    unsafe { !(*head).dying && MagicRef::try_retain((*head).magic) }
}

fn stop_watching(num: [u32; 3], pid: Term) {
    let r = RefWords::new(num);
    // SAFETY: a new signal.
    unsafe {
        send::push_or_free(pid, Signal::tuple_of(Kind::Demonitor, &[r.term(), NIL]));
    }
}

/// Handles the end of a process that a resource may monitor by that reference. Returns false if
/// none does.
pub(crate) fn watched_down(num: [u32; 3], pid: Term) -> bool {
    let head = {
        let mut all = watches();
        let Some(w) = all.as_mut().and_then(|a| a.remove(&num)) else {
            return false;
        };
        // SAFETY: see the module documentation on locks.
        unsafe {
            if !try_keep(w.head) {
                return true;
            }
            (*w.head).watches.remove(&num);
        }
        ManuallyDrop::new(Value(w.head))
    };
    later::add(Box::new(move || {
        let head = head;
        // SAFETY: it has been held since it was found.
        unsafe {
            let (init, owner) = (*head.0).kind.callbacks();
            if let Some(f) = init.down {
                let library = owner.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
                let (mut pid, mut m) = (pid, Monitor { num, rest: [0; 5] });
                callback(library, |e| f(e, data_of(head.0), &mut pid, &mut m));
            }
            MagicRef::release((*head.0).magic);
        }
    }));
    true
}

/// Returns the resource that monitors by that reference, or `Some(None)` if that is dying. None if
/// there is no such monitor.
pub(crate) fn watched_by(num: [u32; 3], to: &mut dyn Alloc) -> Option<Option<Term>> {
    let all = watches();
    let head = all.as_ref()?.get(&num)?.head;
    // SAFETY: see the module documentation on locks.
    unsafe {
        if !try_keep(head) {
            return Some(None);
        }
        let t = to.magic_ref((*head).magic);
        drop(all);
        MagicRef::release((*head).magic);
        Some(Some(t))
    }
}

/// Allocates a resource.
///
/// # Safety
/// `kind` is a type of resources that is not freed.
unsafe fn alloc(kind: *const ResourceType, size: usize) -> *mut c_void {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| magic::on_encode(encoded));
    let Some(l) = layout(size) else {
        return std::ptr::null_mut();
    };
    // SAFETY: the layout is not empty, since it contains the head.
    let p = unsafe { fence::allocate(fence::Kind::Magic, l) } as *mut Head;
    if p.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the type is alive, so its count may grow, and `p` is a new block for a head.
    unsafe {
        Arc::increment_strong_count(kind);
        (*kind).enter();
        let reference = MagicRef::with_end(ids::ref_numbers(), Box::new(Value(p)));
        (*reference).retain();
        p.write(Head {
            magic: reference,
            size,
            kind: Arc::from_raw(kind),
            encoded: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            dying: false,
            watches: HashSet::default(),
        });
        data_of(p)
    }
}

/// Called when a binary that showed bytes of a resource is freed.
///
/// # Safety
/// `data` is the address of a resource, of which the binary had a count.
unsafe fn let_go(data: *mut u8) {
    // SAFETY: the binary's count is given up.
    unsafe { release(data as *mut c_void) };
}

exported! {
    fn enif_open_resource_type(
        env: *mut ErlNifEnv, _module: *const c_char, name: *const c_char,
        dtor: Option<crate::abi::DtorFn>,
        flags: c_int, tried: *mut c_int,
    ) -> *const ResourceType {
        let init = TypeInit {
            dtor,
            ..TypeInit::default()
        };
        open(env, name, init, flags, tried)
    }
    fn enif_open_resource_type_x(
        env: *mut ErlNifEnv, name: *const c_char, init: *const TypeInit, flags: c_int,
        tried: *mut c_int,
    ) -> *const ResourceType {
        // Destructor, stop and down, as far as the library's version has them.
        let known = (*env).library.as_ref().map_or(0, |l| l.type_init_bytes) / 8;
        let at = |n: usize| known > n;
        let init = TypeInit {
            dtor: (*init).dtor.filter(|_| at(0)),
            stop: (*init).stop.filter(|_| at(1)),
            down: (*init).down.filter(|_| at(2)),
            members: 3,
            dyncall: None,
        };
        open(env, name, init, flags, tried)
    }
    fn enif_init_resource_type(
        env: *mut ErlNifEnv, name: *const c_char, init: *const TypeInit, flags: c_int,
        tried: *mut c_int,
    ) -> *const ResourceType {
        let given = &*init;
        let has = |n: c_int| given.members >= n;
        let init = TypeInit {
            dtor: if has(1) { given.dtor } else { None },
            stop: if has(2) { given.stop } else { None },
            down: if has(3) { given.down } else { None },
            members: given.members,
            dyncall: if has(4) { given.dyncall } else { None },
        };
        open(env, name, init, flags, tried)
    }
    fn enif_alloc_resource(kind: *const ResourceType, size: usize) -> *mut c_void {
        alloc(kind, size)
    }
    fn enif_release_resource(data: *mut c_void) {
        release(data);
    }
    fn enif_keep_resource(data: *mut c_void) {
        keep(data);
    }
    fn enif_make_resource(env: *mut ErlNifEnv, data: *mut c_void) -> Term {
        let env = &mut *env;
        let t = reference(data, env);
        // Memory that the heap keeps alive urges a collection, as bytes of binaries do.
        env.off_heap().bytes += (*head_of(data)).size;
        env.off_heap_grew();
        t
    }
    fn enif_make_resource_binary(
        env: *mut ErlNifEnv, data: *mut c_void, bytes: *const u8, size: usize,
    ) -> Term {
        keep(data);
        let keeps = (*head_of(data)).size + STOCK_HEAD;
        let bin = RcBin::foreign(let_go, data as *mut u8, keeps);
        (*env).refc_bin_at(bin, bytes, size)
    }
    fn enif_get_resource(
        env: *mut ErlNifEnv, t: Term, kind: *const ResourceType, to: *mut *mut c_void,
    ) -> c_int {
        match behind_any(env, t) {
            Some(h) if std::ptr::eq(Arc::as_ptr(&(*h).kind), kind) => {
                to.write(data_of(h));
                1
            }
            _ => 0,
        }
    }
    fn enif_sizeof_resource(data: *mut c_void) -> usize {
        (*head_of(data)).size
    }
    fn enif_dynamic_resource_call(
        env: *mut ErlNifEnv, module: Term, name: Term, t: Term, call: *mut c_void,
    ) -> c_int {
        let Some(h) = behind(t).filter(|_| t.is_ref()) else {
            return 1;
        };
        let kind = &(*h).kind;
        if (kind.module, kind.name) != (module, name) {
            return 1;
        }
        let (init, owner) = kind.callbacks();
        let Some(f) = init.dyncall else {
            return 1;
        };
        // Called in the caller's environment, in which it may make terms. The library is kept
        // meanwhile.
        f(env, data_of(h), call);
        drop(owner);
        0
    }

    /// Returns a negative number if the type has no callback for it, a positive one if the process
    /// does not exist.
    fn enif_monitor_process(
        _env: *mut ErlNifEnv, data: *mut c_void, pid: *const Pid, to: *mut Monitor,
    ) -> c_int {
        let head = head_of(data);
        if (*head).kind.callbacks().0.down.is_none() {
            return -1;
        }
        let pid = *pid;
        if !pid.is_local_pid() {
            return 1;
        }
        let num = ids::ref_numbers();
        (*head).watched.store(true, Ordering::Release);
        let mut all = watches();
        if (*head).dying {
            return 1;
        }
        all.get_or_insert_default().insert(num, Watch { head, pid });
        (*head).watches.insert(num);
        drop(all);
        let r = RefWords::new(num);
        let alive = process::table().is_alive(pid)
            && send::push_or_free(pid, Signal::tuple_of(Kind::Monitor, &[r.term(), NIL, NIL]));
        if !alive {
            forget(head, num);
            return 1;
        }
        if !to.is_null() {
            to.write(Monitor { num, rest: [0; 5] });
        }
        0
    }
    /// Returns 0 if the monitor existed and is removed.
    fn enif_demonitor_process(_env: *mut ErlNifEnv, data: *mut c_void, m: *const Monitor) -> c_int {
        let num = (*m).num;
        match forget(head_of(data), num) {
            Some(pid) => {
                stop_watching(num, pid);
                0
            }
            None => 1,
        }
    }
    fn enif_compare_monitors(a: *const Monitor, b: *const Monitor) -> c_int {
        let key = |m: *const Monitor| [(*m).num[2], (*m).num[1], (*m).num[0]];
        key(a).cmp(&key(b)) as c_int
    }
    fn enif_make_monitor_term(env: *mut ErlNifEnv, m: *const Monitor) -> Term {
        (*env).local_ref((*m).num)
    }
}

/// Ends the monitor of a resource with that reference, and returns the process that it watched.
///
/// # Safety
/// `head` is a resource that is held.
unsafe fn forget(head: *mut Head, num: [u32; 3]) -> Option<Term> {
    let mut all = watches();
    let all = all.as_mut()?;
    if !std::ptr::eq(all.get(&num)?.head, head) {
        return None;
    }
    let w = all.remove(&num)?;
    // SAFETY: the resource is held, and the lock of `WATCHES` guards the set.
    unsafe { (*head).watches.remove(&num) };
    Some(w.pid)
}
