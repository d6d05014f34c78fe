//! A page's objects under loom: one thread queries while others collect, sweep, allocate, move.
//!
//! ```text
//!   page     | slot 0 | slot 1 | ...      slots of 16 bytes, a bitmap of one word
//!   mutator  hands slots out of a region, releases it, marks, ends the cycle, sweeps, continues
//!   query    is there an object in this slot?
//! ```
//!
//! For an object that lives throughout, the answer is always yes; for one that was dead before, no.
//! One thread collects, or threads take turns, as the world and the lock of the lists ensure.

extern crate std;

use core::ptr;
use std::vec::Vec;

use loom::sync::{Arc, Mutex};
use loom::thread;

use super::super::cell::{Ptr, Small};
use super::super::region::Region;
use super::*;
use heapwright_substrate::sync::atomic::AtomicU64;

const SLOT: usize = 16;
/// The page's number, its place, and its end.
const PAGE: usize = 7;
const BASE: usize = 1 << 16;
const END: usize = BASE + 64 * SLOT;

fn bits() -> Bits {
    [const { () }; WORDS].map(|()| AtomicU64::new(0))
}

fn at(offset: usize) -> *mut u8 {
    ptr::without_provenance_mut(BASE + offset)
}

/// A page, its marks, its slot size (twice), a region, and the number of ended cycles.
struct Scene {
    held: Held,
    marks: Bits,
    slot: Num,
    same_slot: Num,
    region: Region,
    cycles: Num,
    /// A lock of the heap.
    lists: Mutex<()>,
}

impl Scene {
    fn new() -> Self {
        let number = Num::new;
        let pointer = || super::super::cell::Ptr::new(ptr::null_mut());
        let scene = Self {
            held: Held { state: number(0), swept: number(0), cursor: number(0), taken: bits() },
            marks: bits(),
            slot: number(0),
            same_slot: number(0),
            region: Region {
                next: pointer(),
                end: pointer(),
                hole: Ptr::new(core::ptr::null_mut()),
                slot: Small::new(SLOT),
                page: Small::new(0),
            },
            cycles: number(0),
            lists: Mutex::new(()),
        };
        scene.open(SLOT);
        scene
    }

    fn open(&self, slot: usize) {
        self.held.open(&self.marks, Words::ALL, 0, || {
            self.slot.set(slot);
            self.same_slot.set(slot);
        });
    }

    fn take(&self, from: usize) {
        self.region.page.set(PAGE);
        self.region.open(at(from), at(4 * SLOT));
    }

    fn allocate(&self) {
        self.region.next.set(self.region.next.get().wrapping_add(SLOT));
    }

    fn let_go(&self) {
        self.held.settle(self.region.next.get().addr() - BASE);
        self.region.close();
    }

    /// Ends a cycle that has marked the objects at `marked`.
    fn end_cycle(&self, marked: &[usize]) {
        marked.iter().for_each(|&offset| bits::set_shared(&self.marks, offset));
        self.cycles.set_released(self.cycles.get() + 1);
    }

    fn sweep(&self, sticky: StickyMarks) {
        self.held.sweep(&self.marks, Words::ALL, self.cycles.get(), sticky);
    }

    /// As `Heap::find_fresh`.
    fn finds(&self, offset: usize) -> bool {
        self.held.holds_or(&self.marks, &self.cycles, offset, || {
            self.region.has_handed_out(PAGE, BASE + offset, END)
        })
    }

    /// As `Space::find`, which finds settled objects.
    fn holds(&self, offset: usize) -> bool {
        self.held.holds(&self.marks, &self.cycles, offset)
    }

    /// As `Space::slot_at`, for a page with slots of any size.
    fn finds_slot_of(&self, offset: usize) -> Option<usize> {
        let seen = self.held.look()?;
        let start = offset / self.slot.get() * self.slot.get();
        let holds = self.holds(start);
        self.held.is_still(seen).then_some(holds)?.then_some(start)
    }
}

/// Runs threads that each do something with a scene, and a thread that must always see `found`.
///
/// Loom tries other orders from the last access to a word on. A thread that changes a word mostly
/// reads the word before. So the querying thread starts first in one model, and last in the other.
fn meanwhile(
    begin: impl Fn(&Scene) + Copy + Send + Sync + 'static,
    does: &[fn(&Scene)],
    asks: impl Fn(&Scene) -> bool + Copy + Send + Sync + 'static,
    found: bool,
) {
    let does = does.to_vec();
    for asks_first in [true, false] {
        let does = does.clone();
        loom::model(move || {
            let scene = Arc::new(Scene::new());
            begin(&scene);
            let ask = || {
                let scene = Arc::clone(&scene);
                thread::spawn(move || asks(&scene))
            };
            let first = asks_first.then(ask);
            let others: Vec<_> = does
                .iter()
                .map(|&does| {
                    let scene = Arc::clone(&scene);
                    thread::spawn(move || does(&scene))
                })
                .collect();
            let answer = first.unwrap_or_else(ask).join().unwrap();
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(answer, found);
        });
    }
}

fn settled(scene: &Scene, count: usize) {
    scene.take(0);
    (0..count).for_each(|_| scene.allocate());
    scene.let_go();
}

/// Ends two cycles that find the first object, and sweeps its page after each.
fn sweep_twice(scene: &Scene, sticky: StickyMarks) {
    for _ in 0..2 {
        scene.end_cycle(&[0]);
        scene.sweep(sticky);
    }
}

fn fresh(scene: &Scene) {
    scene.take(0);
    scene.allocate();
}

#[test]
fn loom_what_was_just_allocated_is_found_from_region_to_cursor_to_bit() {
    let does: fn(&Scene) = |scene| {
        scene.let_go();
        scene.end_cycle(&[0]);
        scene.sweep(StickyMarks::Nothing);
        scene.take(SLOT);
    };
    meanwhile(fresh, &[does], |scene| scene.finds(0), true);
}

#[test]
fn loom_what_was_just_allocated_is_found_while_its_mutator_goes_on_elsewhere() {
    let does: fn(&Scene) = |scene| {
        scene.let_go();
        scene.region.page.set(PAGE + 1);
        scene.region.open(at(4 * SLOT), at(8 * SLOT));
        scene.allocate();
    };
    // The next slot was never allocated, however far the region is by now.
    let asks = |scene: &Scene| scene.finds(0) && !scene.finds(SLOT);
    meanwhile(fresh, &[does], asks, true);
}

#[test]
fn loom_what_lives_is_found_while_its_page_is_swept() {
    let all: [&[fn(&Scene)]; 3] = [
        &[|scene| sweep_twice(scene, StickyMarks::Nothing)],
        &[|scene| sweep_twice(scene, StickyMarks::Everything)],
        &[|scene| sweep_twice(scene, StickyMarks::Survivors)],
    ];
    for does in all {
        meanwhile(|scene| settled(scene, 1), does, |scene| scene.holds(0), true);
    }
}

#[test]
fn loom_what_lives_is_found_while_another_allocates_behind_the_sweep() {
    let sweeps = |scene: &Scene| {
        let _lists = scene.lists.lock().unwrap();
        scene.end_cycle(&[SLOT]);
        scene.sweep(StickyMarks::Nothing);
    };
    // Allocates below the queried object, which the cursor does not cover any more.
    let takes = |scene: &Scene| {
        let _lists = scene.lists.lock().unwrap();
        if scene.held.is_swept(1) {
            scene.held.settle(SLOT);
        }
    };
    let does: &[fn(&Scene)] = &[sweeps, takes];
    meanwhile(|scene| settled(scene, 2), does, |scene| scene.holds(SLOT), true);
}

#[test]
fn loom_what_is_dead_is_not_found_while_its_page_is_swept() {
    let all: [&[fn(&Scene)]; 2] = [
        &[|scene| scene.sweep(StickyMarks::Nothing)],
        &[|scene| scene.sweep(StickyMarks::Everything)],
    ];
    let begin = |scene: &Scene| {
        settled(scene, 1);
        scene.end_cycle(&[]);
    };
    for does in all {
        meanwhile(begin, does, |scene| scene.holds(0), false);
    }
}

#[test]
fn loom_an_old_object_is_found_while_another_thread_takes_its_mark() {
    let begin = |scene: &Scene| {
        settled(scene, 1);
        scene.end_cycle(&[0]);
    };
    // Does what a store into a page with sticky marks does.
    let stores = |scene: &Scene| {
        if scene.held.is_swept(1) {
            bits::take(&scene.marks, 0);
        }
    };
    let does: &[fn(&Scene)] = &[|scene| scene.sweep(StickyMarks::Everything), stores];
    meanwhile(begin, does, |scene| scene.holds(0), true);
}

#[test]
fn loom_an_object_is_found_while_its_page_is_prepared_for_moving() {
    let does: &[fn(&Scene)] = &[|scene| scene.held.forget_cursor(SLOT)];
    // The querying thread has not seen the cycle end.
    meanwhile(|scene| settled(scene, 1), does, |scene| scene.holds(0), true);
}

fn with_large_slots(scene: &Scene) {
    scene.held.close(State::Empty);
    scene.open(2 * SLOT);
}

#[test]
fn loom_nothing_is_found_in_a_page_that_becomes_another() {
    let does = |scene: &Scene| {
        scene.held.close(State::Empty);
        scene.open(SLOT);
        scene.held.settle(3 * SLOT);
    };
    // With large slots, the byte's slot begins where a small slot with an object begins. With small
    // slots, the byte's slot holds nothing.
    let asks = |scene: &Scene| scene.finds_slot_of(3 * SLOT).is_some();
    meanwhile(with_large_slots, &[does], asks, false);
}

#[test]
fn loom_nobody_sees_half_of_one_page_and_half_of_another() {
    let closes = |scene: &Scene| {
        let _lists = scene.lists.lock().unwrap();
        scene.held.close(State::Empty);
    };
    let opens = |scene: &Scene| {
        let _lists = scene.lists.lock().unwrap();
        if scene.held.state() == State::Empty {
            scene.open(SLOT);
        }
    };
    let asks = |scene: &Scene| {
        scene.held.look().is_some_and(|seen| {
            let differ = scene.slot.get() != scene.same_slot.get();
            scene.held.is_still(seen) && differ
        })
    };
    meanwhile(with_large_slots, &[closes, opens], asks, false);
}
