//! The lock of a filter. Lookups of one key skip it while the GIL keeps writers away.
//!
//! To avoid deadlocks, detach from the interpreter before you block on the lock, and never reattach while you hold it.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;

/// With a GIL, at most one thread is attached to the interpreter.
const GIL: bool = cfg!(not(Py_GIL_DISABLED));

pub struct Lock<T> {
    lock: RwLock<()>,
    /// The number of [`Writer`]s. A thread that holds the GIL and finds 0 here can read, because a thread needs the GIL
    /// to become a writer.
    writers: AtomicUsize,
    value: UnsafeCell<T>,
}

// SAFETY: the value is changed only while the lock is held for writing. It is read while the lock is held, or in
// `quickly` under the GIL while no other thread can change it. So it can be shared where a `RwLock` of it can.
unsafe impl<T: Send + Sync> Sync for Lock<T> {}

impl<T: Send + Sync> Lock<T> {
    pub fn new(value: T) -> Self {
        Self { lock: RwLock::new(()), writers: AtomicUsize::new(0), value: UnsafeCell::new(value) }
    }

    /// For reads as short as a lookup. Detaches from the interpreter only if it has to wait for the lock.
    #[inline]
    pub fn quickly<R: Send>(&self, py: Python<'_>, read: impl FnOnce(&T) -> R + Send) -> R {
        // Acquires what the last writer released when it ended.
        if GIL && self.writers.load(Acquire) == 0 {
            // SAFETY: this thread holds the GIL until `read` returns. A thread that writes attached needs the GIL, too.
            // A thread that writes detached is counted in `writers` from before it detached, and there is none.
            return read(unsafe { &*self.value.get() });
        }
        self.quickly_locked(py, read)
    }

    /// Not inlined, to keep `quickly` short.
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

    /// For reads longer than a lookup. Not inlined, to keep `quickly_locked` short.
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

    /// Counts the thread among the writers. Call it before you detach to write.
    pub fn writer(&self, _attached: Python<'_>) -> Writer<'_, T> {
        // Relaxed, because readers of the count hold the GIL, which orders them after this.
        self.writers.fetch_add(1, Relaxed);
        Writer(self)
    }

    /// Combines two filters. Locks `self` for writing and `other` for reading, in the order of their addresses, so that
    /// `f |= g` and `g |= f` cannot deadlock.
    pub fn combine(
        &self,
        py: Python<'_>,
        other: &Self,
        combine: impl FnOnce(&mut T, &T) -> PyResult<()> + Send,
    ) -> PyResult<()> {
        // A filter combined with itself does not change.
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        let writer = self.writer(py);
        py.detach(|| {
            if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
                let mut ours = writer.write();
                combine(&mut ours, &other.read())
            } else {
                let theirs = other.read();
                combine(&mut writer.write(), &theirs)
            }
        })
    }
}

/// A thread that may write while it is detached.
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
    /// Acquired by an attached thread, or by a [`Writer`].
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
        // SAFETY: the lock is held for writing. A read without the lock needs the GIL and a count of 0 writers. This
        // thread either holds the GIL or is counted as a writer.
        unsafe { &mut *self.lock.value.get() }
    }
}
