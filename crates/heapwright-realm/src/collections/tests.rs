//! Tests of the collections' parts: rings, indexes under bad hashes, numbers that wrap. Tests of
//! their public behaviour, beside std's, are in `tests/collections.rs`.

extern crate std;

use core::hash::{BuildHasher, Hasher};
use std::collections::VecDeque;
use std::vec::Vec;

use super::super::buffer::Buffer;
use super::super::{Mutation, Realm, Rootable};
use super::map::Map;

fn mutate(with: impl for<'gc> FnOnce(&Mutation<'gc>)) {
    let mut realm = Realm::<dyn for<'gc> Rootable<'gc, Root = ()>>::new(|_| ());
    realm.mutate(|mc, _| with(mc));
}

fn numbers() -> impl FnMut(usize) -> usize {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    }
}

fn all<T: Copy + super::super::trace::Trace>(of: Buffer<'_, T>) -> Vec<T> {
    (0..of.len()).filter_map(|n| of.get(n)).collect()
}

#[test]
fn a_buffer_is_a_ring() {
    mutate(|mc| {
        let mut next = numbers();
        for capacity in [0, 1, 2, 3, 7, 8] {
            let buffer = mc.buffer::<u32>(capacity);
            let mut model = VecDeque::new();
            let mut first = 0_isize;
            for n in 0..if cfg!(miri) { 60 } else { 2000 } {
                let full = model.len() == capacity;
                match next(7) {
                    0 | 1 => {
                        assert_eq!(buffer.push_back(mc, n), !full);
                        if !full {
                            model.push_back(n);
                        }
                    }
                    2 => {
                        assert_eq!(buffer.push_front(mc, n), !full);
                        if !full {
                            model.push_front(n);
                            first -= 1;
                        }
                    }
                    3 => assert_eq!(buffer.pop_back(), model.pop_back()),
                    4 => {
                        let taken = model.pop_front();
                        assert_eq!(buffer.pop_front(), taken);
                        first += isize::from(taken.is_some());
                    }
                    5 => {
                        let at = next(9);
                        assert_eq!(buffer.set(mc, at, n), at < model.len());
                        if let Some(value) = model.get_mut(at) {
                            *value = n;
                        }
                    }
                    _ => {
                        let more = [n, n + 1, n + 2];
                        let fits = model.len() + 3 <= capacity;
                        assert_eq!(buffer.extend(mc, &more), fits);
                        if fits {
                            model.extend(more);
                        }
                    }
                }
                assert_eq!(all(buffer), model.iter().copied().collect::<Vec<_>>());
                assert_eq!(buffer.first() as isize, first);
                assert_eq!(buffer.get(model.len()), None);
            }
            let larger = mc.buffer_of(buffer, capacity + 3);
            assert_eq!(all(larger), all(buffer));
            assert_eq!((larger.first(), larger.is(buffer)), (buffer.first(), false));
            let shorter = mc.buffer_of(buffer, capacity / 2);
            assert_eq!(all(shorter), all(buffer)[..(capacity / 2).min(buffer.len())]);
            buffer.truncate(1);
            assert_eq!(all(buffer), all(larger)[..model.len().min(1)]);
        }
    });
}

#[test]
fn a_buffer_of_values_without_size_counts() {
    mutate(|mc| {
        let buffer = mc.buffer::<()>(3);
        assert!(buffer.push_back(mc, ()) && buffer.push_front(mc, ()) && buffer.push_back(mc, ()));
        assert!(!buffer.push_back(mc, ()));
        assert_eq!((buffer.len(), buffer.pop_front()), (3, Some(())));
    });
}

/// Hashes badly: to few values, or to one.
struct Bad(u64);

struct BadHasher(u64, u64);

impl BuildHasher for Bad {
    type Hasher = BadHasher;
    fn build_hasher(&self) -> BadHasher {
        BadHasher(self.0, 0)
    }
}

impl Hasher for BadHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.1 = self.1.wrapping_mul(31).wrapping_add(byte.into()));
    }
    fn finish(&self) -> u64 {
        self.1 % self.0
    }
}

/// Checks that a word behind a free one is in its own place, and others are in Robin Hood order.
fn check_index<'gc, S: BuildHasher + 'static>(map: Map<'gc, u32, u32, S>) {
    let body = map.0.as_ref();
    let Some(index) = body.index.get() else { return };
    let entries = body.entries.get().expect("an index is of entries");
    let mask = index.len() - 1;
    let distance = |at: usize, word: u64| at.wrapping_sub((word >> 32) as usize & mask) & mask;
    let mut words = 0;
    for at in 0..index.len() {
        let (word, next) = (index[at].get(), index[(at + 1) & mask].get());
        if next != 0 {
            let reach = if word == 0 { 0 } else { distance(at, word) + 1 };
            assert!(distance((at + 1) & mask, next) <= reach, "a word is out of order");
        }
        if word != 0 {
            words += 1;
            let n = (word as u32).wrapping_sub(entries.first() as u32) as usize;
            assert!(matches!(entries.get(n), Some(Some(_))), "a word leads to no entry");
        }
    }
    assert_eq!(words, map.len());
    assert!(words <= index.len() / 8 * 7);
    let holes = entries.len() - map.len();
    assert_eq!((0..entries.len()).filter(|&n| matches!(entries.get(n), Some(None))).count(), holes);
}

#[test]
fn an_index_stays_in_order_however_keys_hash() {
    mutate(|mc| {
        let mut next = numbers();
        for hashes in [1, 3, 40, u64::MAX] {
            let map = Map::<u32, u32, Bad>::with_hasher(mc, Bad(hashes));
            let mut model = Vec::<(u32, u32)>::new();
            for n in 0..if cfg!(miri) { 120 } else { 3000 } {
                let key = next(if n % 1000 < 500 { 60 } else { 12 }) as u32;
                let known = model.iter().position(|&(known, _)| known == key);
                if next(5) < 3 {
                    let old = known.map(|at| core::mem::replace(&mut model[at].1, n));
                    if known.is_none() {
                        model.push((key, n));
                    }
                    assert_eq!(map.insert(mc, key, n), old);
                } else {
                    assert_eq!(map.remove(mc, &key), known.map(|at| model.remove(at).1));
                }
                assert_eq!(map.len(), model.len());
                assert_eq!(
                    map.get(&key),
                    model.iter().find(|pair| pair.0 == key).map(|pair| pair.1)
                );
                if n % 7 == 0 {
                    check_index(map);
                    assert!(map.iter().eq(model.iter().copied()), "in the order of insertion");
                }
            }
        }
    });
}

#[test]
fn numbers_of_entries_wrap() {
    mutate(|mc| {
        let map = Map::<u32, u32>::new(mc);
        (0..20).for_each(|n| _ = map.insert(mc, n, n));
        // Numbers as if almost 2^32 entries had been inserted and removed.
        let (body, far) = (map.0.as_ref(), u32::MAX as usize - 5);
        let entries = body.entries.get().expect("there are 20");
        (0..20).for_each(|_| _ = entries.pop_front());
        let away = mc.buffer_of(entries, 0);
        away.renumber(far);
        let again = mc.buffer_of(away, 28);
        body.entries.set(mc, map.0, Some(again));
        body.index.get().expect("an index").iter().for_each(|word| word.put(0));
        body.live.put(0);
        for n in 0..24 {
            assert_eq!(map.insert(mc, n, n * 2), None);
        }
        check_index(map);
        assert_eq!(map.pop_first(mc), Some((0, 0)));
        assert_eq!(map.remove(mc, &10), Some(20));
        for n in 24..40 {
            assert_eq!(map.insert(mc, n, n * 2), None);
        }
        check_index(map);
        assert!(map.keys().eq((1..40).filter(|&n| n != 10)));
        assert!((1..40).filter(|&n| n != 10).all(|n| map.get(&n) == Some(n * 2)));
    });
}

#[test]
fn a_queue_of_keys_takes_no_more_room_than_it_holds() {
    mutate(|mc| {
        let map = Map::<u32, u32>::new(mc);
        for n in 0..if cfg!(miri) { 200 } else { 20_000 } {
            map.insert(mc, n, n);
            if n >= 20 {
                assert_eq!(map.pop_first(mc), Some((n - 20, n - 20)));
            }
        }
        let room = map.0.as_ref().entries.get().map_or(0, Buffer::capacity);
        assert!(room <= 56, "{room} for 20 keys");
        while map.pop_last(mc).is_some() {}
        assert!(map.is_empty());
        map.shrink_to_fit(mc);
        assert!(map.0.as_ref().entries.get().is_none());
    });
}
