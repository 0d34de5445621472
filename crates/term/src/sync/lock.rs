//! Locks like those of `std::sync` without poisoning: a thread that panics while it holds one ends
//! the emulator anyway, and until then others see the data as it is. [`Condvar`] goes with them.

use std::ops::{Deref, DerefMut};
use std::sync;
use std::time::Duration;

pub use std::sync::{RwLockReadGuard, RwLockWriteGuard};

/// Holds a [`Mutex`]. Its release may be followed by a delay ([`crate::delays`]): fields are
/// dropped in this order.
#[derive(Debug)]
pub struct MutexGuard<'a, T: ?Sized> {
    held: sync::MutexGuard<'a, T>,
    after: After,
}

/// See [`MutexGuard`].
#[derive(Debug)]
struct After;

impl Drop for After {
    #[inline(always)]
    fn drop(&mut self) {
        crate::delays::here();
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    #[inline(always)]
    fn new(held: sync::MutexGuard<'a, T>) -> Self {
        MutexGuard { held, after: After }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

/// As [`std::sync::Mutex`].
#[derive(Default, Debug)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(t: T) -> Mutex<T> {
        Mutex(sync::Mutex::new(t))
    }
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(|e| e.into_inner())
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until nobody else holds it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard::new(self.0.lock().unwrap_or_else(|e| e.into_inner()))
    }
    /// Returns `None` if it is held.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(g) => Some(MutexGuard::new(g)),
            Err(sync::TryLockError::Poisoned(e)) => Some(MutexGuard::new(e.into_inner())),
            Err(sync::TryLockError::WouldBlock) => None,
        }
    }
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(|e| e.into_inner())
    }
}

/// As [`std::sync::RwLock`].
#[derive(Default, Debug)]
pub struct RwLock<T: ?Sized>(sync::RwLock<T>);

impl<T> RwLock<T> {
    pub const fn new(t: T) -> RwLock<T> {
        RwLock(sync::RwLock::new(t))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Returns `None` if a thread writes, or waits to write.
    #[inline]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        match self.0.try_read() {
            Ok(g) => Some(g),
            Err(sync::TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(sync::TryLockError::WouldBlock) => None,
        }
    }
    /// Returns `None` if a thread reads or writes.
    #[inline]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        match self.0.try_write() {
            Ok(g) => Some(g),
            Err(sync::TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(sync::TryLockError::WouldBlock) => None,
        }
    }
    /// Waits until nobody writes.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(|e| e.into_inner())
    }
    /// Waits until nobody reads or writes.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(|e| e.into_inner())
    }
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(|e| e.into_inner())
    }
}

/// As [`std::sync::Condvar`].
#[derive(Default, Debug)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    pub const fn new() -> Condvar {
        Condvar(sync::Condvar::new())
    }
    pub fn notify_one(&self) {
        self.0.notify_one();
    }
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
    /// Releases the lock and waits until it is notified. May also wake up spuriously.
    pub fn wait<'a, T>(&self, g: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let MutexGuard { held, after } = g;
        let held = self.0.wait(held).unwrap_or_else(|e| e.into_inner());
        MutexGuard { held, after }
    }
    /// As [`Condvar::wait`], for at most `most`. Does not report a timeout: the caller checks its
    /// condition.
    pub fn wait_timeout<'a, T>(&self, g: MutexGuard<'a, T>, most: Duration) -> MutexGuard<'a, T> {
        let MutexGuard { held, after } = g;
        let waited = self.0.wait_timeout(held, most);
        let held = waited.unwrap_or_else(|e| e.into_inner()).0;
        MutexGuard { held, after }
    }
}
