//! The gang under loom: a few items, each of which leads to others, and workers.
//!
//! ```text
//!   0 --> 1 --> 3 4        item n leads to 2n + 1 and 2n + 2
//!     --> 2 --> 5 6
//!
//!   canary of an item      touched by its taker: once
//!   canary of the work     read by workers, written by the thread that closed the gang
//! ```
//!
//! The canary of a lost item is untouched at the end. The canary of an item that was taken twice is
//! touched twice. A worker that is not woken sleeps for ever, which loom reports (see
//! `sync::modelled`).

extern crate std;

use std::boxed::Box;
use std::vec::Vec;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::*;

struct Scene {
    gang: Gang,
    items: Vec<UnsafeCell<usize>>,
    work: UnsafeCell<usize>,
}

fn chunk(items: &[usize]) -> *mut Chunk {
    let mut chunk = Chunk { next: ptr::null_mut(), count: items.len(), home: 0, items: [0; ITEMS] };
    chunk.items[..items.len()].copy_from_slice(items);
    Box::into_raw(Box::new(chunk))
}

fn items(chunk: *mut Chunk) -> Vec<usize> {
    // SAFETY: made by `chunk`, and taken from the gang by one thread.
    let chunk = unsafe { Box::from_raw(chunk) };
    chunk.items[..chunk.count].to_vec()
}

impl Scene {
    fn new(items: usize) -> Arc<Self> {
        let items = (0..items).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Self { gang: Gang::new(), items, work: UnsafeCell::new(0) })
    }

    fn give(&self, given: &[usize]) {
        for some in given.chunks(ITEMS) {
            // SAFETY: the chunk was just made.
            unsafe { self.gang.give(chunk(some)) };
        }
    }

    /// Processes an item. Returns the items that it leads to.
    fn look(&self, item: usize) -> Vec<usize> {
        self.items[item].with_mut(|count| {
            // SAFETY: a thread that has the item has its canary; loom checks that no other has.
            unsafe { *count += 1 };
        });
        self.work.with(|_| {});
        (2 * item + 1..2 * item + 3).filter(|&item| item < self.items.len()).collect()
    }

    /// Stops the gang after `most` items. Returns whether no item is left.
    fn drain(&self, mut most: usize) -> bool {
        let mut own = Vec::new();
        loop {
            while let Some(item) = own.pop() {
                if most == 0 || self.gang.is_stopped() {
                    own.push(item);
                    self.gang.stop();
                    self.give(&own);
                    return false;
                }
                most -= 1;
                own.extend(self.look(item));
                if own.len() > 1 {
                    self.give(&own.split_off(1));
                }
            }
            match self.gang.take(0) {
                Some(chunk) => own = items(chunk),
                None => return !self.gang.is_stopped(),
            }
        }
    }

    fn help(&self, most: usize) {
        while self.gang.come() {
            if !self.drain(most) {
                self.gang.stop();
            }
            self.gang.go();
        }
    }

    fn lead(&self, most: usize) -> bool {
        self.gang.open(8);
        let through = self.drain(most);
        if !through {
            self.gang.stop();
        }
        self.gang.close();
        // All workers have left.
        self.work.with_mut(|count| {
            // SAFETY: loom checks that nobody reads it.
            unsafe { *count += 1 };
        });
        through && self.gang.is_empty()
    }

    fn finish(&self) {
        while let Some(chunk) = self.gang.take_now() {
            let mut own = items(chunk);
            while let Some(item) = own.pop() {
                own.extend(self.look(item));
            }
        }
    }

    fn end(&self) {
        assert!(self.gang.is_empty());
        for (number, item) in self.items.iter().enumerate() {
            let looks = item.with(|count| {
                // SAFETY: all other threads have ended.
                unsafe { *count }
            });
            assert_eq!(looks, 1, "item {number}");
        }
    }
}

/// Runs a leader that processes at most `most` items, and helpers with limits of their own.
fn together(count: usize, most: usize, helpers: &'static [usize]) {
    let mut model = loom::model::Builder::new();
    if helpers.len() > 1 {
        model.preemption_bound = Some(2);
    }
    model.check(move || {
        let scene = Scene::new(count);
        scene.give(&[0]);
        let others: Vec<_> = helpers
            .iter()
            .map(|&most| {
                let scene = Arc::clone(&scene);
                thread::spawn(move || scene.help(most))
            })
            .collect();
        let through = scene.lead(most);
        for other in others {
            other.join().unwrap();
        }
        if most == ALL && helpers.iter().all(|&most| most == ALL) {
            assert!(through, "nobody said stop");
        }
        scene.finish();
        scene.end();
    });
}

const ALL: usize = usize::MAX;

#[test]
fn loom_two_look_at_everything_once() {
    together(5, ALL, &[ALL]);
}

#[test]
fn loom_three_look_at_everything_once() {
    together(3, ALL, &[ALL, ALL]);
}

#[test]
fn loom_what_a_leader_leaves_is_in_the_gang() {
    together(5, 1, &[ALL]);
}

#[test]
fn loom_what_a_helper_leaves_is_in_the_gang() {
    together(5, ALL, &[1]);
}

#[test]
fn loom_a_helper_who_comes_late_has_nothing_to_do() {
    loom::model(|| {
        let scene = Scene::new(1);
        scene.give(&[0]);
        let helper = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || {
                scene.help(ALL);
                scene.help(ALL);
            })
        };
        assert!(scene.lead(ALL));
        assert!(!scene.gang.come());
        // The next step follows. A helper may be late or early for it.
        assert!(scene.lead(ALL));
        assert!(!scene.gang.come());
        helper.join().unwrap();
        scene.end();
    });
}

/// Runs a leader that waits until a helper is idle, and then calls `then`.
fn with_an_idle_helper(items: usize, then: fn(&Scene)) {
    loom::model(move || {
        let scene = Scene::new(items);
        scene.gang.open(8);
        let helper = {
            let scene = Arc::clone(&scene);
            thread::spawn(move || scene.help(ALL))
        };
        while !scene.gang.has_idle() {
            thread::yield_now();
        }
        then(&scene);
        scene.gang.close();
        helper.join().unwrap();
        scene.end();
    });
}

#[test]
fn loom_who_waits_is_told_of_work() {
    with_an_idle_helper(1, |scene| {
        scene.give(&[0]);
        // The helper takes the item, not the leader.
        while !scene.gang.is_empty() {
            thread::yield_now();
        }
        assert!(scene.gang.take(0).is_none());
    });
}

#[test]
fn loom_no_more_come_than_may() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let scene = Scene::new(1);
        // Stands for the local bitmap of one helper. Two helpers would collide there.
        let local_bitmap = Arc::new(UnsafeCell::new(0));
        scene.give(&[0]);
        let helpers = [(); 2].map(|()| {
            let (scene, local_bitmap) = (Arc::clone(&scene), Arc::clone(&local_bitmap));
            thread::spawn(move || {
                while scene.gang.come() {
                    local_bitmap.with_mut(|count| {
                        // SAFETY: loom checks that nobody else has it.
                        unsafe { *count += 1 };
                    });
                    scene.drain(ALL);
                    scene.gang.go();
                }
            })
        });
        scene.gang.open(2);
        assert!(scene.drain(ALL));
        scene.gang.close();
        let came = local_bitmap.with(|count| {
            // SAFETY: every thread that joined has left.
            unsafe { *count }
        });
        assert!(came <= 1, "one comes when another has gone");
        helpers.into_iter().for_each(|helper| helper.join().unwrap());
        scene.end();
    });
}

#[test]
fn loom_who_waits_is_told_to_stop() {
    with_an_idle_helper(0, |scene| scene.gang.stop());
}
