//! Iterations over the objects of a [`KeyPool`].

use core::iter::FusedIterator;
use core::marker::PhantomData;

use super::table::{Table, Walk};
use super::{KeyPool, PoolKey};

/// An iterator over keys and objects of a [`KeyPool`]; see [`KeyPool::iter`].
pub struct Iter<'p, T, K: PoolKey> {
    pub(super) table: &'p Table,
    pub(super) walk: Walk,
    pub(super) left: usize,
    pub(super) of: PhantomData<&'p (T, K)>,
}

// SAFETY: the iterator gives shared references to objects, which `T: Sync` lets threads have.
unsafe impl<T: Sync, K: PoolKey> Send for Iter<'_, T, K> {}
// SAFETY: a shared iterator can be cloned; the clone gives shared references (`T: Sync`).
unsafe impl<T: Sync, K: PoolKey> Sync for Iter<'_, T, K> {}

/// An iterator over keys and mutable objects of a [`KeyPool`]; see [`KeyPool::iter_mut`].
pub struct IterMut<'p, T, K: PoolKey> {
    pub(super) table: &'p Table,
    pub(super) walk: Walk,
    pub(super) left: usize,
    pub(super) of: PhantomData<&'p mut (T, K)>,
}

// SAFETY: the iterator gives mutable references, which `T: Send` lets another thread have.
unsafe impl<T: Send, K: PoolKey> Send for IterMut<'_, T, K> {}
// SAFETY: a shared iterator gives only its length; it cannot be cloned.
unsafe impl<T: Sync, K: PoolKey> Sync for IterMut<'_, T, K> {}

/// An iterator that empties a [`KeyPool`]; see [`KeyPool::drain`].
pub struct Drain<'p, T, K: PoolKey> {
    pub(super) pool: &'p mut KeyPool<T, K>,
    pub(super) walk: Walk,
}

// SAFETY: the iterator has the pool to itself and moves objects out (`T: Send`).
unsafe impl<T: Send, K: PoolKey> Send for Drain<'_, T, K> {}
// SAFETY: a shared iterator gives only its length; it cannot be cloned.
unsafe impl<T: Sync, K: PoolKey> Sync for Drain<'_, T, K> {}

/// An iterator over keys and objects of a [`KeyPool`], by value.
pub struct IntoIter<T, K: PoolKey> {
    pool: KeyPool<T, K>,
    walk: Walk,
}

// SAFETY: the iterator owns the pool and moves objects out, which `T: Send` lets another thread do.
unsafe impl<T: Send, K: PoolKey> Send for IntoIter<T, K> {}
// SAFETY: a shared iterator gives only its length; it cannot be cloned.
unsafe impl<T: Sync, K: PoolKey> Sync for IntoIter<T, K> {}

impl<T, K: PoolKey> Clone for Iter<'_, T, K> {
    fn clone(&self) -> Self {
        Self { walk: self.walk, ..*self }
    }
}

impl<'p, T, K: PoolKey> Iterator for Iter<'p, T, K> {
    type Item = (K, &'p T);

    #[inline]
    fn next(&mut self) -> Option<(K, &'p T)> {
        let found = self.walk.next(self.table, KeyPool::<T, K>::FORM)?;
        self.left -= 1;
        // SAFETY: the slot holds an object, and the pool is borrowed.
        Some((found.key().into(), unsafe { &*found.slot.cast::<T>() }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'p, T, K: PoolKey> Iterator for IterMut<'p, T, K> {
    type Item = (K, &'p mut T);

    #[inline]
    fn next(&mut self) -> Option<(K, &'p mut T)> {
        let found = self.walk.next(self.table, KeyPool::<T, K>::FORM)?;
        self.left -= 1;
        // SAFETY: the walk returns each object once, and the pool is borrowed mutably.
        Some((found.key().into(), unsafe { &mut *found.slot.cast::<T>() }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T, K: PoolKey> Iterator for Drain<'_, T, K> {
    type Item = (K, T);

    fn next(&mut self) -> Option<(K, T)> {
        self.pool.take_next(&mut self.walk)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.pool.len(), Some(self.pool.len()))
    }
}

impl<T, K: PoolKey> Drop for Drain<'_, T, K> {
    fn drop(&mut self) {
        self.pool.clear();
    }
}

impl<T, K: PoolKey> Iterator for IntoIter<T, K> {
    type Item = (K, T);

    fn next(&mut self) -> Option<(K, T)> {
        self.pool.take_next(&mut self.walk)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.pool.len(), Some(self.pool.len()))
    }
}

impl<T, K: PoolKey> ExactSizeIterator for Iter<'_, T, K> {}
impl<T, K: PoolKey> ExactSizeIterator for IterMut<'_, T, K> {}
impl<T, K: PoolKey> ExactSizeIterator for Drain<'_, T, K> {}
impl<T, K: PoolKey> ExactSizeIterator for IntoIter<T, K> {}
impl<T, K: PoolKey> FusedIterator for Iter<'_, T, K> {}
impl<T, K: PoolKey> FusedIterator for IterMut<'_, T, K> {}
impl<T, K: PoolKey> FusedIterator for Drain<'_, T, K> {}
impl<T, K: PoolKey> FusedIterator for IntoIter<T, K> {}

impl<'p, T, K: PoolKey> IntoIterator for &'p KeyPool<T, K> {
    type Item = (K, &'p T);
    type IntoIter = Iter<'p, T, K>;

    fn into_iter(self) -> Iter<'p, T, K> {
        self.iter()
    }
}

impl<'p, T, K: PoolKey> IntoIterator for &'p mut KeyPool<T, K> {
    type Item = (K, &'p mut T);
    type IntoIter = IterMut<'p, T, K>;

    fn into_iter(self) -> IterMut<'p, T, K> {
        self.iter_mut()
    }
}

impl<T, K: PoolKey> IntoIterator for KeyPool<T, K> {
    type Item = (K, T);
    type IntoIter = IntoIter<T, K>;

    fn into_iter(self) -> IntoIter<T, K> {
        IntoIter { pool: self, walk: Walk::new(Self::FORM) }
    }
}
