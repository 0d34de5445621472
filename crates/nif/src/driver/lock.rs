//! Locks that a port shares with other threads (`driver_pdl_create`).

use super::abi::Handle;
use super::port::of_handle;
use super::shared::{PortLock, Shared};
use crate::threads::check;

exported! {
    /// Null if the port already has a lock, or is gone.
    fn driver_pdl_create(h: Handle) -> *mut PortLock {
        let Some(p) = of_handle(h) else {
            return std::ptr::null_mut();
        };
        let mut s = p.state();
        if s.lock.is_some() {
            return std::ptr::null_mut();
        }
        let lock = Shared::new();
        let address = lock.address();
        s.lock = Some(lock);
        address
    }
    fn driver_pdl_lock(l: *mut PortLock) {
        check(libc::pthread_mutex_lock((*l).mutex()), "driver_pdl_lock");
    }
    fn driver_pdl_unlock(l: *mut PortLock) {
        check(libc::pthread_mutex_unlock((*l).mutex()), "driver_pdl_unlock");
    }
    fn driver_pdl_get_refc(l: *mut PortLock) -> isize {
        (*l).count()
    }
    fn driver_pdl_inc_refc(l: *mut PortLock) -> isize {
        (*l).hold()
    }
    fn driver_pdl_dec_refc(l: *mut PortLock) -> isize {
        PortLock::let_go(l)
    }
}
