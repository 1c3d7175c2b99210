//! The lock of a filter, which lookups of one key do without where the GIL keeps writers away.
//!
//! Lock order: detach from the interpreter before blocking on the lock; never reattach while holding it.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;

/// Whether at most one thread is attached.
const GIL: bool = cfg!(not(Py_GIL_DISABLED));

pub struct Lock<T> {
    lock: RwLock<()>,
    /// The [`Writer`]s. With a GIL, who holds it and finds none here is alone with other readers, because a writer is
    /// made under the GIL.
    writers: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: as a `RwLock`. The value is changed only with the lock, and read with it or, in `quickly`, under the GIL while
// no other thread may change it.
unsafe impl<T: Send + Sync> Sync for Lock<T> {}

impl<T: Send + Sync> Lock<T> {
    pub fn new(value: T) -> Self {
        Self { lock: RwLock::new(()), writers: AtomicUsize::new(0), value: UnsafeCell::new(value) }
    }

    /// For what takes no longer than a lookup: only if the lock is taken, the interpreter is left to wait for it.
    #[inline]
    pub fn quickly<R: Send>(&self, py: Python<'_>, read: impl FnOnce(&T) -> R + Send) -> R {
        // The order is that of the last writer's end.
        if GIL && self.writers.load(Acquire) == 0 {
            // SAFETY: writers are attached, so they wait for the GIL until `read` returns, or announced, of which there is
            // none: a thread needs the GIL to announce itself.
            return read(unsafe { &*self.value.get() });
        }
        self.quickly_locked(py, read)
    }

    /// Not inlined, for a short `quickly`.
    #[inline(never)]
    fn quickly_locked<R: Send>(&self, py: Python<'_>, read: impl FnOnce(&T) -> R + Send) -> R {
        match self.lock.try_read() {
            Ok(held) => read(&Read { lock: self, _held: held }),
            Err(_) => self.detached(py, read),
        }
    }

    pub fn quickly_mut<R: Send>(&self, py: Python<'_>, write: impl FnOnce(&mut T) -> R + Send) -> R {
        match self.lock.try_write() {
            Ok(held) => write(&mut Write { lock: self, _held: held }),
            Err(_) => self.detached_mut(py, write),
        }
    }

    /// For what takes longer. Not inlined, for a short `quickly_locked`.
    #[inline(never)]
    pub fn detached<R: Send>(&self, py: Python<'_>, read: impl FnOnce(&T) -> R + Send) -> R {
        py.detach(|| read(&self.read()))
    }

    pub fn detached_mut<R: Send>(&self, py: Python<'_>, write: impl FnOnce(&mut T) -> R + Send) -> R {
        let writer = self.writer(py);
        py.detach(|| write(&mut writer.write()))
    }

    pub fn read(&self) -> Read<'_, T> {
        Read { lock: self, _held: self.lock.read().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Announces a thread that will write detached.
    pub fn writer(&self, _attached: Python<'_>) -> Writer<'_, T> {
        // Who looks for it has held the GIL since.
        self.writers.fetch_add(1, Relaxed);
        Writer(self)
    }

    /// Locks `self` and another lock in an order of their own, so that `f |= g` and `g |= f` at once do not wait for each
    /// other.
    pub fn detached_with<R: Send>(
        &self,
        py: Python<'_>,
        other: &Self,
        write: impl FnOnce(&mut T, &T) -> R + Send,
    ) -> R {
        let writer = self.writer(py);
        py.detach(|| {
            if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
                let mut ours = writer.write();
                write(&mut ours, &other.read())
            } else {
                let theirs = other.read();
                write(&mut writer.write(), &theirs)
            }
        })
    }
}

/// A thread that may write detached.
pub struct Writer<'a, T>(&'a Lock<T>);

impl<T> Writer<'_, T> {
    pub fn write(&self) -> Write<'_, T> {
        Write { lock: self.0, _held: self.0.lock.write().unwrap_or_else(PoisonError::into_inner) }
    }
}

impl<T> Drop for Writer<'_, T> {
    fn drop(&mut self) {
        self.0.writers.fetch_sub(1, Release);
    }
}

pub struct Read<'a, T> {
    lock: &'a Lock<T>,
    _held: RwLockReadGuard<'a, ()>,
}

impl<T> Deref for Read<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}

pub struct Write<'a, T> {
    lock: &'a Lock<T>,
    /// Taken attached, or by a [`Writer`].
    _held: RwLockWriteGuard<'a, ()>,
}

impl<T> Deref for Write<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Write<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held for writing. Who reads without it needs the GIL, and that no detached thread writes.
        unsafe { &mut *self.lock.value.get() }
    }
}
