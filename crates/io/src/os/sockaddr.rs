//! Socket addresses in the kernel's format. `port::inet::addr` encodes them for module `prim_inet`;
//! `socket::addr` makes maps of them.

use std::mem::{MaybeUninit, offset_of, size_of};

/// Size in bytes of the largest address.
pub(crate) const ROOM: usize = size_of::<libc::sockaddr_storage>();
/// Size in bytes of what comes first: the family, with the address's length before it where
/// addresses have one.
pub(crate) const FAMILY_BYTES: usize = offset_of!(libc::sockaddr, sa_data);
/// Offset of the name in a local address, and its maximum length.
pub(crate) const PATH_AT: usize = offset_of!(libc::sockaddr_un, sun_path);
pub(crate) const PATH_ROOM: usize = size_of::<libc::sockaddr_un>() - PATH_AT;

/// Family and least size of the addresses that name an interface.
#[cfg(target_os = "linux")]
mod link {
    pub(crate) const LINK_FAMILY: i32 = libc::AF_PACKET;
    pub(crate) const LINK_BYTES: usize = size_of::<libc::sockaddr_ll>();
}
#[cfg(not(target_os = "linux"))]
mod link {
    pub(crate) const LINK_FAMILY: i32 = libc::AF_LINK;
    pub(crate) const LINK_BYTES: usize = size_of::<libc::sockaddr_dl>();
}
pub(crate) use link::{LINK_BYTES, LINK_FAMILY};

/// The first bytes of an address of `len` bytes.
#[cfg(target_os = "linux")]
fn head(family: i32, _: usize) -> [u8; FAMILY_BYTES] {
    (family as libc::sa_family_t).to_ne_bytes()
}
#[cfg(not(target_os = "linux"))]
fn head(family: i32, len: usize) -> [u8; FAMILY_BYTES] {
    [len as u8, family as u8]
}

/// Splits an address into its family and the bytes behind. None for fewer bytes than a family has.
pub(crate) fn split_family(b: &[u8]) -> Option<(i32, &[u8])> {
    let (head, rest) = b.split_first_chunk::<FAMILY_BYTES>()?;
    let family = match cfg!(target_os = "linux") {
        true => u16::from_ne_bytes(*head).into(),
        false => head[1].into(),
    };
    Some((family, rest))
}

/// The hardware address in an address that names an interface.
pub(crate) fn hardware(b: &[u8]) -> &[u8] {
    if b.len() < LINK_BYTES {
        return &[];
    }
    let (at, n) = match cfg!(target_os = "linux") {
        // Eight bytes of room behind their number.
        true => (12, b[11].min(8)),
        // Behind the interface's name.
        false => (8 + usize::from(b[5]), b[6]),
    };
    b.get(at..at + usize::from(n)).unwrap_or_default()
}

/// A socket address.
#[derive(Clone, Copy)]
pub struct SockAddr {
    storage: libc::sockaddr_storage,
    /// Number of bytes in use, at most [`ROOM`].
    len: libc::socklen_t,
}

impl purlin_kernel::os::replay_log::Answer for SockAddr {
    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
    fn from_bytes(bytes: &[u8]) -> Option<SockAddr> {
        let mut a = SockAddr::zeros();
        let len = bytes.len().min(ROOM);
        // SAFETY: the bytes of the storage, all initialised; any bytes are valid.
        let b = unsafe { &mut *(&raw mut a.storage).cast::<[u8; ROOM]>() };
        b[..len].copy_from_slice(&bytes[..len]);
        a.len = len as libc::socklen_t;
        Some(a)
    }
}

impl SockAddr {
    /// An address of zeros, all of them in use.
    fn zeros() -> SockAddr {
        SockAddr {
            // SAFETY: plain bytes, for which zeros are valid.
            storage: unsafe { MaybeUninit::zeroed().assume_init() },
            len: ROOM as libc::socklen_t,
        }
    }
    /// Makes an address of `family` whose remaining bytes are `rest`. None if it is longer than any
    /// address.
    pub(crate) fn new(family: i32, rest: &[u8]) -> Option<SockAddr> {
        let mut a = SockAddr::zeros();
        let len = FAMILY_BYTES + rest.len();
        // SAFETY: the bytes of the storage, all initialised; any bytes are valid.
        let b = unsafe { &mut *(&raw mut a.storage).cast::<[u8; ROOM]>() };
        b.get_mut(FAMILY_BYTES..len)?.copy_from_slice(rest);
        b[..FAMILY_BYTES].copy_from_slice(&head(family, len));
        a.len = len as libc::socklen_t;
        Some(a)
    }
    /// The address that dissolves the association of a datagram socket.
    pub(crate) fn none() -> SockAddr {
        let mut a = SockAddr::zeros();
        a.len = size_of::<libc::sockaddr>() as libc::socklen_t;
        a
    }
    /// Runs a system call that fills in an address.
    pub(crate) fn filled<R>(
        call: impl FnOnce(*mut libc::sockaddr, *mut libc::socklen_t) -> R,
    ) -> (R, SockAddr) {
        let mut a = SockAddr::zeros();
        let r = call((&raw mut a.storage).cast(), &raw mut a.len);
        a.len = a.len.min(ROOM as libc::socklen_t);
        (r, a)
    }
    /// Pointer for the kernel, used with [`SockAddr::size`].
    pub(crate) fn ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }
    /// Number of bytes in use.
    pub(crate) fn size(&self) -> libc::socklen_t {
        self.len
    }
    /// The bytes in use.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: within the storage, all of which is initialised.
        unsafe { std::slice::from_raw_parts(self.ptr().cast(), self.len as usize) }
    }
    /// The kernel's number of the address family.
    pub(crate) fn domain(&self) -> i32 {
        self.storage.ss_family as i32
    }
    /// As the address of an IPv4 socket.
    pub(crate) fn inet(&self) -> &libc::sockaddr_in {
        // SAFETY: the storage is large and aligned enough for it, and all its bytes are
        // initialised.
        unsafe { &*(&raw const self.storage).cast() }
    }
    /// As the address of an IPv6 socket.
    pub(crate) fn inet6(&self) -> &libc::sockaddr_in6 {
        // SAFETY: the storage is large and aligned enough for it, and all its bytes are
        // initialised.
        unsafe { &*(&raw const self.storage).cast() }
    }
    /// The address in text form: `1.2.3.4:80`, `[::1]:80`, a name.
    pub(crate) fn text(&self) -> String {
        use std::net::{Ipv4Addr, Ipv6Addr};
        let port = self.port().unwrap_or(0);
        match self.domain() {
            libc::AF_INET => {
                let a = Ipv4Addr::from(u32::from_be(self.inet().sin_addr.s_addr));
                format!("{a}:{port}")
            }
            libc::AF_INET6 => {
                let a = Ipv6Addr::from(self.inet6().sin6_addr.s6_addr);
                format!("[{a}]:{port}")
            }
            libc::AF_UNIX => String::from_utf8_lossy(self.path()).replace('\0', "@"),
            other => format!("an address of family {other}"),
        }
    }
    /// The name of a local address.
    pub(crate) fn path(&self) -> &[u8] {
        let name = self.as_bytes().get(PATH_AT..).unwrap_or_default();
        let name = &name[..name.len().min(PATH_ROOM)];
        // A name that starts with a zero byte lives in the abstract namespace, where further zeros
        // do not end it.
        match name.iter().position(|&c| c == 0) {
            Some(0) | None => name,
            Some(end) => &name[..end],
        }
    }
    /// The port of an IP address.
    pub(crate) fn port(&self) -> Option<u16> {
        match self.domain() {
            libc::AF_INET => Some(u16::from_be(self.inet().sin_port)),
            libc::AF_INET6 => Some(u16::from_be(self.inet6().sin6_port)),
            _ => None,
        }
    }
}

/// Number of bytes that the system has written of an address. On Linux they are as many as the
/// family requires. Elsewhere an address says so itself, and a mask may end before its zeros.
///
/// # Safety
/// `p` points to an address of the system.
#[cfg(target_os = "linux")]
unsafe fn written(_: *const libc::sockaddr) -> usize {
    ROOM
}
/// As on Linux.
///
/// # Safety
/// As on Linux.
#[cfg(not(target_os = "linux"))]
unsafe fn written(p: *const libc::sockaddr) -> usize {
    // SAFETY: by the contract of this function.
    usize::from(unsafe { (*p).sa_len })
}

/// `N` bytes of an address from `at` on, with zeros for those that the system has left out.
///
/// # Safety
/// `p` points to an address of the system whose family has that part.
pub(crate) unsafe fn part<const N: usize>(p: *const libc::sockaddr, at: usize) -> [u8; N] {
    let mut to = [0; N];
    // SAFETY: by the contract of this function, and the system has written the bytes.
    unsafe {
        let n = N.min(written(p).saturating_sub(at));
        std::ptr::copy_nonoverlapping(p.cast::<u8>().add(at), to.as_mut_ptr(), n);
    }
    to
}

/// Copies an address whose length follows from its family, but at most `most` bytes of it.
///
/// # Safety
/// `p` points to an address of the system that is as long as its family requires.
pub(crate) unsafe fn read(p: *const libc::sockaddr, most: usize) -> SockAddr {
    let mut a = SockAddr::zeros();
    // SAFETY: by the contract of this function. At most as many bytes are read as the system has
    // written, and the storage has room for `ROOM`.
    unsafe {
        let written = written(p);
        let n = match (*p).sa_family as i32 {
            libc::AF_INET => size_of::<libc::sockaddr_in>(),
            libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
            LINK_FAMILY if cfg!(target_os = "linux") => LINK_BYTES,
            LINK_FAMILY => written,
            libc::AF_UNIX => {
                let room = PATH_ROOM.min(written.saturating_sub(PATH_AT));
                let path = std::slice::from_raw_parts(p.cast::<u8>().add(PATH_AT), room);
                PATH_AT + path.iter().take_while(|&&c| c != 0).count()
            }
            _ => FAMILY_BYTES,
        };
        let n = n.min(most).min(ROOM);
        let to = (&raw mut a.storage).cast::<u8>();
        std::ptr::copy_nonoverlapping(p.cast::<u8>(), to, n.min(written));
        a.len = n as libc::socklen_t;
    }
    a
}
