//! The list of interface addresses that the system gives.

use super::unit;

/// The list, which is freed with this.
pub(crate) struct Interfaces(*mut libc::ifaddrs);

impl Interfaces {
    /// Asks for it, of the network namespace that this thread is in.
    pub(crate) fn list() -> Result<Interfaces, i32> {
        let mut first = std::ptr::null_mut();
        // SAFETY: room for the pointer; what it points at is freed with the result.
        unit(unsafe { libc::getifaddrs(&mut first) })?;
        Ok(Interfaces(first))
    }
    /// Its entries, one for each address, with what their flags say. Names and addresses are in the list's memory.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &libc::ifaddrs> {
        let mut next = self.0.cast_const();
        std::iter::from_fn(move || {
            // SAFETY: an entry of the list, which is there for as long as this is borrowed; or null.
            let i = unsafe { next.as_ref() }?;
            next = i.ifa_next;
            Some(i)
        })
    }
}

impl Drop for Interfaces {
    fn drop(&mut self) {
        // SAFETY: made by `getifaddrs`, and freed once.
        unsafe { libc::freeifaddrs(self.0) };
    }
}
