//! `Trace` for the collections and a map's body: each reports its fields with references.

use heapwright_gc::raw::Tracer;

use super::super::trace::Trace;
use super::deque::Deque;
use super::map::{Body, Map};
use super::set::Set;
use super::vector::Vector;

// SAFETY: its one field is reported.
unsafe impl<T: Copy + Trace> Trace for Vector<'_, T> {
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.0.trace(tracer);
    }
}

// SAFETY: its one field is reported.
unsafe impl<T: Copy + Trace> Trace for Deque<'_, T> {
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.0.trace(tracer);
    }
}

// SAFETY: its one field is reported.
unsafe impl<K: Copy + Trace, V: Copy + Trace, S: 'static> Trace for Map<'_, K, V, S> {
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.0.trace(tracer);
    }
}

// SAFETY: its one field is reported.
unsafe impl<K: Copy + Trace, S: 'static> Trace for Set<'_, K, S> {
    #[inline]
    fn trace(&self, tracer: &Tracer) {
        self.0.trace(tracer);
    }
}

// SAFETY: entries and index are reported. A count and a 'static hasher hold no reference.
unsafe impl<K: Copy + Trace, V: Copy + Trace, S: 'static> Trace for Body<'_, K, V, S> {
    fn trace(&self, tracer: &Tracer) {
        let Self { entries, index, live: _, hasher: _ } = self;
        entries.trace(tracer);
        index.trace(tracer);
    }
}
