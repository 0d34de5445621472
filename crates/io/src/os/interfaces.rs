//! The system's list of interface addresses.

use super::unit;

/// The list, freed when dropped.
pub(crate) struct Interfaces(*mut libc::ifaddrs);

impl Interfaces {
    /// Fetches the list of the network namespace that this thread is in.
    pub(crate) fn list() -> Result<Interfaces, i32> {
        let mut first = std::ptr::null_mut();
        // SAFETY: room for the pointer; the list behind it is freed when the result is dropped.
        unit(unsafe { libc::getifaddrs(&mut first) })?;
        Ok(Interfaces(first))
    }
    /// The entries, one for each address, with the interface's flags. Names and addresses lie in
    /// the list's memory.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &libc::ifaddrs> {
        let mut next = self.0.cast_const();
        std::iter::from_fn(move || {
            // SAFETY: null, or an entry of the list, which lives as long as this borrow.
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
