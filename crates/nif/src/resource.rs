//! Resources: blocks of C code's own that terms refer to, with what is called when they are no longer referred to
//! (destructors), when a process that they watch ends, and by other modules.
//!
//! # A resource in memory
//! One block: a head, then the bytes that C code knows the address of. The count of those who hold it is that of its magic
//! reference ([`MagicRef`]): each term, each binary made of it, and each `enif_keep_resource`. When the count falls to 0 the
//! value behind the reference is dropped, wherever that is (in a collection, mostly), and the rest is done later by a
//! scheduler: watching ends, the destructor is called, the block is freed.
//!
//! # Who keeps a type
//! The registry of types, while the library that owns it is loaded, each resource of it, and each library that has opened it, whose
//! code may make resources of it for as long as it runs. A type keeps its library if it has callbacks there and is in the registry, or
//! has resources: [`ResourceType::used`] counts these. Where the count falls to 0 the library is let go of.
//!
//! # Locks
//! `WATCHES` guards who watches what. A head is freed only after its watches were taken from there, so whoever finds a watch
//! under that lock may look at the head, and hold the resource if its count isn't 0 yet.

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
    /// Resources of it, and one more while it is in the registry.
    used: AtomicUsize,
    /// Callbacks, and the library that they are in.
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    init: TypeInit,
    /// The library that has opened it last.
    opener: Weak<Library>,
    /// That library, if there are callbacks in it, while the type is used.
    owner: Option<Arc<Library>>,
    /// It is in the registry.
    registered: bool,
}

impl State {
    fn has_callbacks(&self) -> bool {
        let i = &self.init;
        i.dtor.is_some() || i.stop.is_some() || i.down.is_some() || i.dyncall.is_some()
    }
}

impl ResourceType {
    /// The callback, and the library that it is in: nothing, if that one is gone.
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
    /// There is one use of it more.
    fn enter(&self) {
        if self.used.fetch_add(1, Ordering::AcqRel) == 0 {
            self.own();
        }
    }
    /// The library is kept from now on. It is there: its code has just made the first resource since the type was used last.
    /// While `unload` runs it is not kept: nothing of it is called any more.
    #[cold]
    fn own(&self) {
        let mut s = self.state.write();
        if s.owner.is_none() && s.has_callbacks() {
            s.owner = s.opener.upgrade();
        }
    }
    /// There is one use of it less. With the last one the library is let go of, which the caller drops where it may be closed.
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

/// By the words of module and name.
static TYPES: Mutex<Option<HashMap<(u64, u64), Arc<ResourceType>>>> = Mutex::new(None);

fn types() -> MutexGuard<'static, Option<HashMap<(u64, u64), Arc<ResourceType>>>> {
    TYPES.lock()
}

/// The types that a library opens as it is loaded. They are as they were until it is accepted.
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
    /// They are the library's from now on.
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
        // The last count of another library may be among them.
        drop(former);
    }
}

/// The module of a library was purged: nobody opens its types any more.
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

/// Opens a type for the library that is being loaded. `members`: how many fields of `init` count. `tried`: what was done, or what was
/// asked for where that can't be done.
///
/// # Safety
/// `name` is text that ends in a zero byte, `tried` null or may be written to, and the environment that of a library which is
/// being loaded.
unsafe fn open(
    env: *mut ErlNifEnv,
    name: *const c_char,
    init: TypeInit,
    flags: c_int,
    tried: *mut c_int,
) -> *const ResourceType {
    if !tried.is_null() {
        tried.write(flags);
    }
    let Some(opening) = (*env).opening.as_mut() else {
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
        tried.write(op);
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
    /// The magic reference that counts it, and has it as its value.
    magic: *const MagicRef,
    size: usize,
    kind: Arc<ResourceType>,
    /// Its reference was encoded as an external term: it is in `NUMBERS`.
    encoded: AtomicBool,
    /// It has ever watched a process.
    watched: AtomicBool,
    /// Nobody holds it any more. Said under the lock of `WATCHES`: as it is let go of if it has ever watched, else before its
    /// destructor is called, which watches nobody any more.
    dying: bool,
    /// References of the processes that it watches.
    watches: HashSet<[u32; 3], Hashing>,
}

const HEAD: usize = size_of::<Head>();
/// Bytes that stock counts for what is before the bytes of a resource, where programs see its size.
const STOCK_HEAD: usize = 40;
const _: () = assert!(HEAD.is_multiple_of(16));

fn layout(size: usize) -> Option<Layout> {
    // Whole multiples of the alignment: where freed blocks are fenced off, blocks end where pages do.
    let size = HEAD.checked_add(size)?.checked_next_multiple_of(16)?;
    Layout::from_size_align(size, 16).ok()
}

/// The value behind a resource's reference.
struct Value(*mut Head);

// SAFETY: what C code does with a resource it does from any thread, by the rules of the interface.
unsafe impl Send for Value {}
// SAFETY: as above.
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

/// Ends a resource that nobody holds.
///
/// # Safety
/// Nobody holds the resource, and it has not ended yet.
unsafe fn end(head: *mut Head) {
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
    // The type, and its library, may end with this.
    std::ptr::drop_in_place(head);
    drop((owner, last));
    if let Some(l) = layout(size) {
        fence::deallocate(head as *mut u8, l);
    }
}

/// # Safety
/// `head` was made by [`alloc`].
unsafe fn data_of(head: *mut Head) -> *mut c_void {
    (head as *mut u8).add(HEAD) as *mut c_void
}

/// The head of the resource that C code knows by that address.
///
/// # Safety
/// `data` came from [`data_of`].
unsafe fn head_of(data: *const c_void) -> *mut Head {
    (data as *mut u8).sub(HEAD) as *mut Head
}

/// The resource that a reference refers to, or a binary that stands for bytes of it.
fn behind(t: Term) -> Option<*mut Head> {
    if let Some(bin) = t.block() {
        // SAFETY: the block of a term in hand.
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

/// Resources by the numbers of their references, as far as those were in external terms.
static NUMBERS: Mutex<Option<HashMap<[u32; 3], ManuallyDrop<Value>>>> = Mutex::new(None);

fn numbers() -> MutexGuard<'static, Option<HashMap<[u32; 3], ManuallyDrop<Value>>>> {
    NUMBERS.lock()
}

/// A reference was encoded: a plain one with its numbers may come back.
fn encoded(m: &MagicRef) {
    let Some(v) = m.value.downcast_ref::<Value>() else {
        return;
    };
    let mut all = numbers();
    // SAFETY: whoever encodes the reference holds the resource.
    unsafe { (*v.0).encoded.store(true, Ordering::Release) };
    all.get_or_insert_default()
        .entry(m.num)
        .or_insert(ManuallyDrop::new(Value(v.0)));
}

/// As [`behind`], of a plain reference that comes from an external term too. The environment then holds the resource.
///
/// # Safety
/// The environment is this call's, and `t` a term of it.
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
    // Its number is forgotten under this lock before it goes.
    if !MagicRef::try_retain((*head).magic) {
        return None;
    }
    drop(all);
    (*env).keep(Temporary::Resource(data_of(head)));
    Some(head)
}

/// Adds a holder.
///
/// # Safety
/// `data` is the address of a resource that is held.
pub unsafe fn keep(data: *mut c_void) {
    (*(*head_of(data)).magic).retain();
}

/// A holder less.
///
/// # Safety
/// `data` is the address of a resource, of which the caller has a count to give up.
pub unsafe fn release(data: *mut c_void) {
    MagicRef::release((*head_of(data)).magic);
}

/// Whether the type of a resource says what to do when its descriptor isn't selected any more; does it.
///
/// # Safety
/// `data` is the address of a resource that is held.
pub unsafe fn stop(data: *mut c_void, fd: c_int, direct: bool) {
    let (init, owner) = (*head_of(data)).kind.callbacks();
    if let Some(f) = init.stop {
        let library = owner.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        callback(library, |e| f(e, data, fd, c_int::from(direct)));
    }
}

/// A reference to a resource.
///
/// # Safety
/// `data` is the address of a resource that is held.
pub unsafe fn reference(data: *mut c_void, to: &mut dyn Alloc) -> Term {
    to.magic_ref((*head_of(data)).magic)
}

/// A process that a resource watches.
struct Watch {
    head: *mut Head,
    pid: Term,
}

// SAFETY: see the module head on locks.
unsafe impl Send for Watch {}

/// By the numbers of their references.
static WATCHES: Mutex<Option<HashMap<[u32; 3], Watch>>> = Mutex::new(None);

fn watches() -> MutexGuard<'static, Option<HashMap<[u32; 3], Watch>>> {
    WATCHES.lock()
}

/// Holds a resource if somebody else does. To be called under the lock of `WATCHES`: the count goes when the resource dies,
/// which is said under that lock before.
///
/// # Safety
/// The lock of `WATCHES` is held since before `head` was found in it.
unsafe fn try_keep(head: *mut Head) -> bool {
    !(*head).dying && MagicRef::try_retain((*head).magic)
}

fn stop_watching(num: [u32; 3], pid: Term) {
    let r = RefWords::new(num);
    // SAFETY: a fresh signal.
    unsafe {
        send::push_or_free(pid, Signal::tuple_of(Kind::Demonitor, &[r.term(), NIL]));
    }
}

/// A process has ended that a resource may watch by that reference. False: none does.
pub(crate) fn watched_down(num: [u32; 3], pid: Term) -> bool {
    let head = {
        let mut all = watches();
        let Some(w) = all.as_mut().and_then(|a| a.remove(&num)) else {
            return false;
        };
        // SAFETY: see the module head on locks.
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
        // SAFETY: it is held since it was found.
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

/// The resource that watches by that reference, or that it is on its way out. None: none watches by it.
pub(crate) fn watched_by(num: [u32; 3], to: &mut dyn Alloc) -> Option<Option<Term>> {
    let all = watches();
    let head = all.as_ref()?.get(&num)?.head;
    // SAFETY: see the module head on locks.
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

/// # Safety
/// `kind` is a type of resources that is not freed.
unsafe fn alloc(kind: *const ResourceType, size: usize) -> *mut c_void {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| magic::on_encode(encoded));
    let Some(l) = layout(size) else {
        return std::ptr::null_mut();
    };
    let p = fence::allocate(fence::Kind::Magic, l) as *mut Head;
    if p.is_null() {
        return std::ptr::null_mut();
    }
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

/// A binary that stood for bytes of a resource is gone.
///
/// # Safety
/// `data` is the address of a resource, of which the binary had a count.
unsafe fn let_go(data: *mut u8) {
    release(data as *mut c_void);
}

exported! {
    fn enif_open_resource_type(
        env: *mut ErlNifEnv, _module: *const c_char, name: *const c_char, dtor: Option<crate::abi::DtorFn>,
        flags: c_int, tried: *mut c_int,
    ) -> *const ResourceType {
        let init = TypeInit {
            dtor,
            ..TypeInit::default()
        };
        open(env, name, init, flags, tried)
    }
    fn enif_open_resource_type_x(
        env: *mut ErlNifEnv, name: *const c_char, init: *const TypeInit, flags: c_int, tried: *mut c_int,
    ) -> *const ResourceType {
        // Destructor, stop and down: as many as the library's version knows.
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
        env: *mut ErlNifEnv, name: *const c_char, init: *const TypeInit, flags: c_int, tried: *mut c_int,
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
        // Memory that hangs on the heap without being on it presses for a collection as bytes of binaries do.
        env.off_heap().bytes += (*head_of(data)).size;
        env.off_heap_grew();
        t
    }
    fn enif_make_resource_binary(env: *mut ErlNifEnv, data: *mut c_void, bytes: *const u8, size: usize) -> Term {
        keep(data);
        let keeps = (*head_of(data)).size + STOCK_HEAD;
        let bin = RcBin::foreign(let_go, data as *mut u8, keeps);
        (*env).refc_bin_at(bin, bytes, size)
    }
    fn enif_get_resource(env: *mut ErlNifEnv, t: Term, kind: *const ResourceType, to: *mut *mut c_void) -> c_int {
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
        // In the caller's environment, for whom it may make terms. The library is kept meanwhile.
        f(env, data_of(h), call);
        drop(owner);
        0
    }

    /// Below 0: the type has no callback for it. Above 0: there is no such process.
    fn enif_monitor_process(_env: *mut ErlNifEnv, data: *mut c_void, pid: *const Pid, to: *mut Monitor) -> c_int {
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
    /// 0: it was watched, and isn't any more.
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

/// A resource stops to watch by that reference; whom it watched.
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
    (*head).watches.remove(&num);
    Some(w.pid)
}
