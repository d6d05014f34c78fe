//! The scenes: operations of several threads.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;

use crate::marks::Marks;
use crate::registry::common;
use crate::registry::shared::{Shared, Slot};
use crate::registry::thread_index::Indices;

pub(crate) const ALL: [(&str, fn()); 6] = [
    ("eight threads share one cache", || visit(1, 1, 8, 10)),
    ("eight threads share three caches", || visit(3, 3, 8, 30)),
    ("three caches become seven beside six threads", || visit(3, 7, 6, 30)),
    ("one cache becomes eight beside two threads", || visit(1, 8, 2, 60)),
    ("six threads make the objects they need", || grow(6, 20)),
    ("eight threads take five indices and release them", || take_indices(8, 20)),
];

const MOST: usize = 8;

type Caches = Shared<Marks, (), MOST>;

fn make(number: usize) -> Option<&'static Slot<Marks>> {
    // Slots are never freed.
    Some(Box::leak(Box::new(Slot::new(number, (), Marks::new(number)))))
}

/// Returns the number of visits to all caches, which are free.
fn marks(caches: &Caches) -> usize {
    let all = (0..caches.count()).map(|index| caches.slot(index));
    all.map(|slot| {
        assert!(slot.try_lock(), "a lock was not given back");
        // SAFETY: just locked.
        unsafe { slot.value() }.count()
    })
    .sum()
}

/// Threads visit caches. Meanwhile the number of caches grows.
fn visit(first: usize, last: usize, threads: usize, times: usize) {
    let caches = Arc::new(Caches::new());
    assert_eq!(caches.raise(first, make), first);
    let all: Vec<_> = (0..threads)
        .map(|thread| {
            let caches = Arc::clone(&caches);
            thread::spawn(move || {
                let mut current = caches.slot(thread % first);
                for _ in 0..times {
                    let held = caches.acquire(current).expect("waiting ends");
                    assert!(held.number < last, "there is no such cache");
                    held.visit();
                    current = held.slot();
                }
            })
        })
        .collect();
    for count in first + 1..=last {
        thread::yield_now();
        assert_eq!(caches.raise(count, make), count);
    }
    for thread in all {
        thread.join().unwrap();
    }
    assert_eq!(caches.count(), last);
    assert_eq!(marks(&caches), threads * times, "a mark was lost");
}

/// Threads use an owner's objects, and make one more if they meet, as in a shared pool.
fn grow(threads: usize, times: usize) {
    let owner = Arc::new((Caches::new(), Mutex::new(1)));
    assert_eq!(owner.0.raise(1, make), 1);
    let all: Vec<_> = (0..threads)
        .map(|thread| {
            let owner = Arc::clone(&owner);
            thread::spawn(move || {
                let (objects, growing) = &*owner;
                for _ in 0..times {
                    let current = objects.slot(thread % objects.count());
                    let more = || {
                        if let Ok(mut made) = growing.try_lock()
                            && *made < MOST
                        {
                            *made += 1;
                            assert_eq!(objects.raise(*made, make), *made);
                        }
                    };
                    common::acquire(objects, current, more).expect("waiting ends").visit();
                }
            })
        })
        .collect();
    for thread in all {
        thread.join().unwrap();
    }
    assert_eq!(marks(&owner.0), threads * times, "a mark was lost");
}

/// Threads take indices and release them. Few indices are free in the first word.
fn take_indices(threads: usize, times: usize) {
    const FREE: usize = 5;
    let room = Arc::new((Indices::<2>::new(), std::array::from_fn::<_, 128, _>(Marks::new)));
    for index in 0..64 - FREE {
        assert_eq!(room.0.take(), Some(index));
    }
    let all: Vec<_> = (0..threads)
        .map(|_| {
            let room = Arc::clone(&room);
            thread::spawn(move || {
                let (indices, marks) = &*room;
                for _ in 0..times {
                    let index = indices.take().expect("there are indices for all");
                    marks[index].visit();
                    indices.release(index);
                }
            })
        })
        .collect();
    for thread in all {
        thread.join().unwrap();
    }
    let found: usize = room.1.iter().map(Marks::count).sum();
    assert_eq!(found, threads * times, "a mark was lost");
    assert_eq!(room.0.take(), Some(64 - FREE), "an index was not released");
}
