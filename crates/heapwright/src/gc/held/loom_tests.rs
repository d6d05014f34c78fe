//! What a page holds under loom: one thread asks while others collect, sweep, allocate, move.
//!
//! ```text
//!   page     | slot 0 | slot 1 | ...      slots of 16 bytes, a bitmap of one word
//!   mutator  hands slots out of a region, lets it go, marks, ends the cycle, sweeps, goes on
//!   asks     is there an object in this slot?
//! ```
//!
//! Of an object that lives throughout the answer is always yes, and of one that was dead before
//! it was asked always no. The threads that collect are one here, or one after the other: that is the
//! world's part, and the lists' locks'.

extern crate std;

use core::ptr;

use loom::sync::{Arc, Mutex};
use loom::thread;

use super::super::region::Region;
use super::*;
use crate::sync::atomic::AtomicU64;

/// Bytes of a slot.
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

/// A page, its marks, what else is known of it, a region, and how many cycles have ended.
struct Scene {
    held: Held,
    marks: Bits,
    slot: Num,
    region: Region,
    cycles: Num,
    /// What a lock of the heap's gives: who has it sees what was done under it before.
    lists: Mutex<()>,
}

impl Scene {
    /// An empty page.
    fn new() -> Self {
        let number = Num::new;
        let pointer = || super::super::cell::Ptr::new(ptr::null_mut());
        let scene = Self {
            held: Held { state: number(0), swept: number(0), cursor: number(0), taken: bits() },
            marks: bits(),
            slot: number(0),
            region: Region { next: pointer(), end: pointer(), slot: number(SLOT), page: number(0) },
            cycles: number(0),
            lists: Mutex::new(()),
        };
        scene.held.open(&scene.marks, 0, || scene.slot.set(SLOT));
        scene
    }

    /// A mutator takes the page, from byte `from` on, which is free.
    fn take(&self, from: usize) {
        self.region.page.set(PAGE);
        self.region.open(at(from), at(4 * SLOT));
    }

    /// It allocates a slot.
    fn allocate(&self) {
        self.region.next.set(self.region.next.get().wrapping_add(SLOT));
    }

    /// It lets the page go.
    fn let_go(&self) {
        self.held.settle(self.region.next.get().addr() - BASE);
        self.region.close();
    }

    /// A cycle has marked, and ends.
    fn end_cycle(&self, marked: &[usize]) {
        marked.iter().for_each(|&offset| bits::set_shared(&self.marks, offset));
        self.cycles.set_released(self.cycles.get() + 1);
    }

    fn sweep(&self, stays: Stays) {
        self.held.sweep(&self.marks, self.cycles.get(), stays);
    }

    /// As `Heap::find_fresh`.
    fn finds(&self, offset: usize) -> bool {
        self.held.holds_or(&self.marks, &self.cycles, offset, || {
            self.region.has_handed_out(PAGE, BASE + offset, END)
        })
    }

    /// As `Heap::find`: of what was settled.
    fn holds(&self, offset: usize) -> bool {
        self.held.holds(&self.marks, &self.cycles, offset)
    }

    /// As `Heap::slot_at`, of a page that has slots of any size.
    fn finds_slot_of(&self, offset: usize) -> Option<usize> {
        let seen = self.held.look()?;
        let start = offset / self.slot.get() * self.slot.get();
        let holds = self.holds(start);
        self.held.is_still(seen).then_some(holds)?.then_some(start)
    }
}

/// Runs `does` in a thread, and `asks` in this one.
fn meanwhile(
    begin: impl Fn(&Scene) + Send + Sync + 'static,
    does: impl Fn(&Scene) + Copy + Send + Sync + 'static,
    asks: impl Fn(&Scene) + Send + Sync + 'static,
) {
    loom::model(move || {
        let scene = Arc::new(Scene::new());
        begin(&scene);
        let other = Arc::clone(&scene);
        let thread = thread::spawn(move || does(&other));
        asks(&scene);
        thread.join().unwrap();
    });
}

#[test]
fn loom_what_was_just_allocated_is_found_from_region_to_cursor_to_bit() {
    let begin = |scene: &Scene| {
        scene.take(0);
        scene.allocate();
    };
    let does = |scene: &Scene| {
        scene.let_go();
        scene.end_cycle(&[0]);
        scene.sweep(Stays::Nothing);
        scene.take(SLOT);
    };
    meanwhile(begin, does, |scene| assert!(scene.finds(0)));
}

#[test]
fn loom_what_was_just_allocated_is_found_while_its_mutator_goes_on_elsewhere() {
    let begin = |scene: &Scene| {
        scene.take(0);
        scene.allocate();
    };
    let does = |scene: &Scene| {
        scene.let_go();
        scene.region.page.set(PAGE + 1);
        scene.region.open(at(4 * SLOT), at(8 * SLOT));
        scene.allocate();
    };
    // The next slot was never anybody's, however far the region is by now.
    let asks = |scene: &Scene| {
        assert!(scene.finds(0));
        assert!(!scene.finds(SLOT));
    };
    meanwhile(begin, does, asks);
}

#[test]
fn loom_what_lives_is_found_while_its_page_is_swept() {
    for stays in [Stays::Nothing, Stays::Everything, Stays::Survivors] {
        let begin = |scene: &Scene| {
            scene.take(0);
            scene.allocate();
            scene.let_go();
        };
        let does = move |scene: &Scene| {
            scene.end_cycle(&[0]);
            scene.sweep(stays);
            scene.end_cycle(&[0]);
            scene.sweep(stays);
        };
        meanwhile(begin, does, |scene| assert!(scene.holds(0)));
    }
}

#[test]
fn loom_what_lives_is_found_while_another_allocates_behind_the_sweep() {
    loom::model(|| {
        let scene = Arc::new(Scene::new());
        scene.take(0);
        (0..2).for_each(|_| scene.allocate());
        scene.let_go();
        let (sweeps, takes) = (Arc::clone(&scene), Arc::clone(&scene));
        let sweeps = thread::spawn(move || {
            let _lists = sweeps.lists.lock().unwrap();
            sweeps.end_cycle(&[SLOT]);
            sweeps.sweep(Stays::Nothing);
        });
        // Below the object that is asked for: the cursor does not tell of that any more.
        let takes = thread::spawn(move || {
            let _lists = takes.lists.lock().unwrap();
            if takes.held.is_swept(1) {
                takes.held.settle(SLOT);
            }
        });
        assert!(scene.holds(SLOT));
        sweeps.join().unwrap();
        takes.join().unwrap();
    });
}

#[test]
fn loom_what_is_dead_is_not_found_while_its_page_is_swept() {
    for stays in [Stays::Nothing, Stays::Everything] {
        let begin = |scene: &Scene| {
            scene.take(0);
            scene.allocate();
            scene.let_go();
            scene.end_cycle(&[]);
        };
        meanwhile(begin, move |scene| scene.sweep(stays), |scene| assert!(!scene.holds(0)));
    }
}

#[test]
fn loom_an_old_object_is_found_while_another_thread_takes_its_mark() {
    loom::model(|| {
        let scene = Arc::new(Scene::new());
        scene.take(0);
        scene.allocate();
        scene.let_go();
        scene.end_cycle(&[0]);
        let (sweeps, stores) = (Arc::clone(&scene), Arc::clone(&scene));
        let sweeps = thread::spawn(move || sweeps.sweep(Stays::Everything));
        // As a store does, of a page whose marks stay.
        let stores = thread::spawn(move || {
            if stores.held.is_swept(1) {
                bits::take(&stores.marks, 0);
            }
        });
        assert!(scene.holds(0));
        sweeps.join().unwrap();
        stores.join().unwrap();
    });
}

#[test]
fn loom_an_object_is_found_while_its_page_is_prepared_for_moving() {
    let begin = |scene: &Scene| {
        scene.take(0);
        scene.allocate();
        scene.let_go();
    };
    let does = |scene: &Scene| {
        scene.end_cycle(&[0]);
        scene.held.forget_cursor(SLOT);
    };
    meanwhile(begin, does, |scene| assert!(scene.holds(0)));
}

#[test]
fn loom_nothing_is_found_in_a_page_that_becomes_another() {
    loom::model(|| {
        let scene = Arc::new(Scene::new());
        scene.held.close(State::Tomb);
        scene.held.open(&scene.marks, 0, || scene.slot.set(2 * SLOT));
        let (sweeps, takes) = (Arc::clone(&scene), Arc::clone(&scene));
        let sweeps = thread::spawn(move || {
            let _lists = sweeps.lists.lock().unwrap();
            sweeps.held.close(State::Tomb);
        });
        let takes = thread::spawn(move || {
            let _lists = takes.lists.lock().unwrap();
            if takes.held.state() == State::Tomb {
                takes.held.open(&takes.marks, 0, || takes.slot.set(SLOT));
                takes.held.settle(3 * SLOT);
            }
        });
        // As one of the large slots it begins where one of the small is that holds an object; but it is
        // none of the large, and the small one that it lies in holds nothing.
        assert_eq!(scene.finds_slot_of(3 * SLOT), None);
        sweeps.join().unwrap();
        takes.join().unwrap();
    });
}
