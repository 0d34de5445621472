//! Socket addresses as the kernel has them. How module `prim_inet` encodes them is in `port::inet::addr`, how they are as maps in
//! `socket::addr`.

use std::mem::{MaybeUninit, offset_of, size_of};

/// Bytes of the largest address.
pub(crate) const ROOM: usize = size_of::<libc::sockaddr_storage>();
/// Bytes of the family, which comes first.
pub(crate) const FAMILY_BYTES: usize = offset_of!(libc::sockaddr, sa_data);
/// Where the name starts in a local address, and bytes that it has at most.
pub(crate) const PATH_AT: usize = offset_of!(libc::sockaddr_un, sun_path);
pub(crate) const PATH_ROOM: usize = size_of::<libc::sockaddr_un>() - PATH_AT;

/// A socket address.
#[derive(Clone, Copy)]
pub struct SockAddr {
    storage: libc::sockaddr_storage,
    /// Bytes that count, at most [`ROOM`].
    len: libc::socklen_t,
}

impl purlin_kernel::os::tape::Taped for SockAddr {
    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
    fn of_bytes(bytes: &[u8]) -> Option<SockAddr> {
        let mut a = SockAddr::zeros();
        let len = bytes.len().min(ROOM);
        // SAFETY: the bytes of the storage, all initialised, of which any are good.
        let b = unsafe { &mut *(&raw mut a.storage).cast::<[u8; ROOM]>() };
        b[..len].copy_from_slice(&bytes[..len]);
        a.len = len as libc::socklen_t;
        Some(a)
    }
}

impl SockAddr {
    /// Zeros, all of which count.
    fn zeros() -> SockAddr {
        SockAddr {
            // SAFETY: plain bytes, of which zeros are good.
            storage: unsafe { MaybeUninit::zeroed().assume_init() },
            len: ROOM as libc::socklen_t,
        }
    }
    /// An address of `family` with what follows that; None if it is longer than any.
    pub(crate) fn new(family: i32, rest: &[u8]) -> Option<SockAddr> {
        let mut a = SockAddr::zeros();
        let len = FAMILY_BYTES + rest.len();
        // SAFETY: the bytes of the storage, all initialised, of which any are good.
        let b = unsafe { &mut *(&raw mut a.storage).cast::<[u8; ROOM]>() };
        b.get_mut(FAMILY_BYTES..len)?.copy_from_slice(rest);
        b[..FAMILY_BYTES].copy_from_slice(&(family as libc::sa_family_t).to_ne_bytes());
        a.len = len as libc::socklen_t;
        Some(a)
    }
    /// The address that ends the association of a datagram socket.
    pub(crate) fn none() -> SockAddr {
        let mut a = SockAddr::zeros();
        a.len = size_of::<libc::sockaddr>() as libc::socklen_t;
        a
    }
    /// An address that a system call fills in.
    pub(crate) fn filled<R>(
        call: impl FnOnce(*mut libc::sockaddr, *mut libc::socklen_t) -> R,
    ) -> (R, SockAddr) {
        let mut a = SockAddr::zeros();
        let r = call((&raw mut a.storage).cast(), &raw mut a.len);
        a.len = a.len.min(ROOM as libc::socklen_t);
        (r, a)
    }
    /// For the kernel, with [`SockAddr::size`].
    pub(crate) fn ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }
    /// Bytes that count.
    pub(crate) fn size(&self) -> libc::socklen_t {
        self.len
    }
    /// The bytes that count.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: within the storage, all of which is initialised.
        unsafe { std::slice::from_raw_parts(self.ptr().cast(), self.len as usize) }
    }
    /// The kernel's code of its family.
    pub(crate) fn domain(&self) -> i32 {
        self.storage.ss_family as i32
    }
    /// As that of an IPv4 socket.
    pub(crate) fn inet(&self) -> &libc::sockaddr_in {
        // SAFETY: the storage is large and aligned enough for it, and all its bytes are initialised.
        unsafe { &*(&raw const self.storage).cast() }
    }
    /// As that of an IPv6 socket.
    pub(crate) fn inet6(&self) -> &libc::sockaddr_in6 {
        // SAFETY: as above.
        unsafe { &*(&raw const self.storage).cast() }
    }
    /// As people write it: `1.2.3.4:80`, `[::1]:80`, a name.
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
        // One that starts with a null is in a name space of its own, where nulls mean nothing.
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

/// The bytes of an address whose length is that of its family.
///
/// # Safety
/// An address of the system is there, as long as its family says.
pub(crate) unsafe fn bytes_of<'a>(p: *const libc::sockaddr) -> &'a [u8] {
    // SAFETY: by the contract of this function.
    unsafe {
        let n = match (*p).sa_family as i32 {
            libc::AF_INET => size_of::<libc::sockaddr_in>(),
            libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
            libc::AF_PACKET => size_of::<libc::sockaddr_ll>(),
            libc::AF_UNIX => {
                let path = (*p.cast::<libc::sockaddr_un>()).sun_path;
                FAMILY_BYTES + path.iter().take_while(|&&c| c != 0).count()
            }
            _ => FAMILY_BYTES,
        };
        std::slice::from_raw_parts(p.cast(), n)
    }
}
