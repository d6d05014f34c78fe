//! Compares slabs of every class with a model, on the fake operating system.
//!
//! The model knows whether each slot is untouched, out or returned. The tests fill slots that are
//! out. So they detect a page that went back too early, or a slot that was handed out twice.

extern crate std;

use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::address_map::Entry;
use crate::os::fake::Fake;
use crate::size_class::CLASSES;
use crate::testing::{cases, sample, units};

const PAGES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

#[derive(Clone, Debug)]
enum Op {
    /// Carves up to this number of untouched slots.
    Carve { most: usize },
    /// Takes up to this number of returned slots.
    Take { most: usize },
    /// Returns up to `share` quarters of the slots that are out, from one of them on.
    Put { from: Index, share: usize },
    /// Gives pages back; `refused`: the system refuses them.
    Purge { refused: bool },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => prop_oneof![0..20usize, Just(usize::MAX)].prop_map(|most| Op::Carve { most }),
        2 => (1..300usize).prop_map(|most| Op::Take { most }),
        3 => (any::<Index>(), 0..=4usize).prop_map(|(from, share)| Op::Put { from, share }),
        2 => any::<bool>().prop_map(|refused| Op::Purge { refused }),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Untouched,
    Out,
    Returned,
}

struct World {
    os: Fake,
    map: &'static AddressMap,
    unit: usize,
    class: usize,
    states: Vec<State>,
    /// Pages of `CARVE` bytes that were given back and not used since.
    purged: BTreeSet<usize>,
    stamp: u32,
}

fn is_all(bytes: &[u8], byte: u8) -> bool {
    let step = if cfg!(miri) { bytes.len() / 4 + 1 } else { 1 };
    bytes.iter().step_by(step).chain(bytes.last()).all(|&b| b == byte)
}

impl World {
    fn new(class: usize, page: usize) -> Self {
        let (os, map, unit) = units(page, 1);
        map.set_entry(unit, Entry::slab(1, class));
        let world = Self {
            os,
            map,
            unit,
            class,
            states: vec![State::Untouched; size_class::capacity(class)],
            purged: BTreeSet::new(),
            stamp: 0,
        };
        world.slab().open(true);
        world
    }

    fn slab(&self) -> Slab<'static> {
        Slab::at(self.map, self.unit, self.class)
    }

    fn size(&self) -> usize {
        size_class::size(self.class)
    }

    fn visit(&self, slots: &[usize]) -> (Vec<bool>, bool) {
        let way = WayBack::of(self.map, self.class, self.stamp);
        // SAFETY: the world's own slab, of this class.
        let mut visit = unsafe { way.visit(self.unit) };
        let taken = slots.iter().map(|slot| visit.put(slot * self.size())).collect();
        (taken, visit.finish())
    }

    /// Puts back a slot that is not out. This would end a program, so the visit is not finished.
    fn is_refused(&self, slot: usize) -> bool {
        let way = WayBack::of(self.map, self.class, self.stamp);
        // SAFETY: the world's own slab, of this class.
        let mut visit = unsafe { way.visit(self.unit) };
        !visit.put(slot * self.size())
    }

    fn count(&self, state: State) -> usize {
        self.states.iter().filter(|&&s| s == state).count()
    }

    fn slots(&self, state: State) -> Vec<usize> {
        (0..self.states.len()).filter(|&slot| self.states[slot] == state).collect()
    }

    fn byte(&self, slot: usize) -> u8 {
        (slot * 7 + self.class) as u8 | 1
    }

    fn bytes(&self, slot: usize) -> &'static mut [u8] {
        let at: *mut u8 = self.slab().slot(slot).cast();
        // SAFETY: slots lie in a committed unit of this world, and no two slices of a slot are used
        // at once.
        unsafe { core::slice::from_raw_parts_mut(at, self.size()) }
    }

    fn is_full(&self, slot: usize) -> bool {
        is_all(self.bytes(slot), self.byte(slot))
    }

    fn receive(&mut self, chain: Chain, expected: &[usize]) {
        let mut block = chain.head;
        for (at, &slot) in expected.iter().enumerate() {
            assert_eq!(block, self.slab().slot(slot), "slot {at} of the chain");
            if at + 1 == expected.len() {
                assert_eq!(block, chain.tail);
            } else {
                // SAFETY: a block of the chain before its last, so it is linked.
                block = unsafe { Block::next(block) };
            }
        }
        assert_eq!(chain.count, expected.len());
        for &slot in expected {
            let byte = self.byte(slot);
            self.bytes(slot).fill(byte);
            self.states[slot] = State::Out;
            let (from, to) = (slot * self.size(), (slot + 1) * self.size());
            self.purged.retain(|&page| (page + 1) * CARVE <= from || page * CARVE >= to);
        }
    }

    fn carve(&mut self, most: usize) {
        let untouched = self.slots(State::Untouched);
        let Some(chain) = self.slab().carve(most) else {
            assert!(untouched.is_empty(), "untouched slots are left");
            return;
        };
        assert!(chain.count > 0 && chain.count <= untouched.len().min(most.max(1)));
        let end = (untouched[0] + chain.count) * self.size();
        let first_end = (untouched[0] + 1) * self.size();
        assert!(end <= first_end.next_multiple_of(CARVE), "carved beyond a page");
        if chain.count == 1 {
            assert!(self.slab().is_zero());
            assert!(is_all(self.bytes(untouched[0]), 0), "fresh, and not zero");
        }
        self.receive(chain, &untouched[..chain.count]);
    }

    fn take(&mut self, most: usize) {
        let mut returned = self.slots(State::Returned);
        returned.truncate(most);
        self.stamp += 1;
        match self.slab().take(most, self.stamp) {
            Some(chain) => self.receive(chain, &returned),
            None => assert!(returned.is_empty(), "{} slots were there", returned.len()),
        }
    }

    fn put(&mut self, from: Index, share: usize) {
        let out = self.slots(State::Out);
        if out.is_empty() {
            return;
        }
        let from = from.index(out.len());
        let to = (from + (out.len() * share).div_ceil(4).max(1)).min(out.len());
        self.stamp += 1;
        let back = &out[from..to];
        assert!(
            back.iter().all(|&slot| self.is_full(slot)),
            "somebody wrote to a slot that is out"
        );
        let (taken, settle) = self.visit(back);
        assert!(taken.iter().all(|&taken| taken));
        back.iter().for_each(|&slot| self.states[slot] = State::Returned);
        let slab = self.slab();
        assert_eq!(settle, slab.is_empty() || !slab.is_listed());
        slab.set_listed(!slab.is_listed());
        assert!(self.is_refused(out[from]), "returned twice");
        if let Some(&never) = self.slots(State::Untouched).first() {
            assert!(self.is_refused(never), "never out, and returned");
        }
    }

    fn purge(&mut self, refused: bool) {
        let page = self.os.page_size();
        let carved = self.count(State::Untouched);
        let end = (self.states.len() - carved) * self.size();
        let idle = |at: usize| {
            let last = at + page - 1;
            let slots = at / self.size()..=(last / self.size()).min(self.states.len() - 1);
            at < end && slots.into_iter().all(|slot| self.states[slot] != State::Out)
        };
        let mut idle: Vec<usize> = (0..UNIT).step_by(page).filter(|&at| idle(at)).collect();
        if self.count(State::Returned) * self.size() < page {
            idle.clear();
        }
        let mut expected = 0;
        for at in idle {
            let parts = at / CARVE..(at + page) / CARVE;
            if !parts.clone().all(|part| self.purged.contains(&part)) && !refused {
                expected += page;
                self.purged.extend(parts);
            }
        }
        if refused {
            self.os.refuse_after(0);
        }
        assert_eq!(self.slab().purge(&self.os), expected);
        self.os.refuse_nothing();
        for &page in &self.purged {
            let at = self.map.address_of(self.unit).wrapping_add(page * CARVE);
            // SAFETY: committed, in a unit that only this world knows.
            let bytes = unsafe { core::slice::from_raw_parts(at, CARVE) };
            assert!(is_all(bytes, 0), "given back, and not zero");
        }
        for slot in self.slots(State::Out) {
            assert!(self.is_full(slot), "a slot that is out lost its contents");
        }
    }

    fn check(&self) {
        let slab = self.slab();
        assert_eq!(slab.carved(), self.states.len() - self.count(State::Untouched));
        assert_eq!(slab.free(), self.count(State::Returned));
        assert_eq!(slab.has_untouched(), self.count(State::Untouched) > 0);
        assert_eq!(slab.is_empty(), self.count(State::Out) == 0);
        for slot in (0..self.states.len() + 70).step_by(if cfg!(miri) { 29 } else { 1 }) {
            let returned = self.states.get(slot) == Some(&State::Returned);
            assert_eq!(slab.is_returned(slot), returned, "slot {slot}");
        }
        if self.stamp > 0 {
            assert_eq!(slab.stamp(), self.stamp, "when slots last came or went");
        }
    }

    fn play(&mut self, ops: &[Op]) {
        for op in ops {
            match *op {
                Op::Carve { most } => self.carve(most),
                Op::Take { most } => self.take(most),
                Op::Put { from, share } => self.put(from, share),
                Op::Purge { refused } => self.purge(refused),
            }
            self.check();
        }
    }

    fn finish(mut self) {
        self.slab().clear();
        self.class = (self.class + 13) % CLASSES;
        self.states = vec![State::Untouched; size_class::capacity(self.class)];
        self.slab().open(false);
        self.purged.clear();
        self.check();
        assert!(!self.slab().is_listed() && !self.slab().is_zero());
        // SAFETY: the world ends here, and with it all that know the window.
        unsafe { self.os.give_back() };
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn a_slab_keeps_account_of_every_slot(
        class in 0..CLASSES,
        page in prop::sample::select(&PAGES),
        ops in prop::collection::vec(op(), 1..if cfg!(miri) { 6 } else { 40 }),
    ) {
        let mut world = World::new(class, page);
        world.play(&ops);
        world.finish();
    }
}

#[test]
#[cfg_attr(miri, ignore = "every class with every page size")]
fn every_class_keeps_account_of_every_slot() {
    let ops = sample(&prop::collection::vec(op(), 24));
    for class in 0..CLASSES {
        for page in PAGES {
            let mut world = World::new(class, page);
            world.play(&ops);
            world.finish();
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "every class with every page size")]
fn no_class_loses_what_is_out_when_pages_are_given_back() {
    for class in 0..CLASSES {
        for page in PAGES {
            for keep_every in [2, 9, 100, usize::MAX] {
                let mut world = World::new(class, page);
                while world.slab().has_untouched() {
                    world.carve(usize::MAX);
                }
                let all = 0..world.states.len();
                let back: Vec<usize> = all.filter(|slot| (slot + 1) % keep_every != 0).collect();
                let (taken, _) = world.visit(&back);
                assert!(taken.iter().all(|&taken| taken));
                back.iter().for_each(|&slot| world.states[slot] = State::Returned);
                world.purge(true);
                world.purge(false);
                world.purge(false);
                let kept = world.slots(State::Out);
                assert_eq!(kept.len(), size_class::capacity(class) / keep_every);
                world.take(usize::MAX);
                assert_eq!(world.count(State::Out), size_class::capacity(class));
                world.check();
                // SAFETY: the world ends here, and with it all that know the window.
                unsafe { world.os.give_back() };
            }
        }
    }
}

#[test]
fn an_address_is_located_in_its_slot_or_behind_the_last() {
    let (os, map, unit) = units(4096, 1);
    let step = if cfg!(miri) { 997 } else { 1 };
    for class in 0..CLASSES {
        let slab = Slab::at(map, unit, class);
        let (size, capacity) = (size_class::size(class), size_class::capacity(class));
        let base = map.address_of(unit).addr();
        for offset in (0..UNIT).step_by(step) {
            let expected = (offset < capacity * size).then_some((offset / size, offset % size));
            assert_eq!(slab.locate(base + offset), expected, "{offset} in class {class}");
        }
    }
    // SAFETY: no thread uses any of it.
    unsafe { os.give_back() };
}

/// Each slot is drawn once. A page that went back is in use again when one of its slots is drawn.
#[test]
fn slots_are_drawn_once_in_every_class() {
    let step = if cfg!(miri) { CLASSES / 4 } else { 1 };
    for class in (0..CLASSES).step_by(step) {
        let world = World::new(class, CARVE);
        let (slab, capacity) = (world.slab(), world.states.len());
        let mut random = 0x9e37_79b9_u32;
        let mut draw = |most: usize, out: &mut BTreeSet<usize>| {
            random = random.wrapping_mul(0x5851_f42d).wrapping_add(0x1405_7b7f);
            let before = slab.free();
            let count = slab.draw(most, random, |slot| {
                assert!(slot < slab.carved() && out.insert(slot), "class {class}: {slot} twice");
            });
            assert_eq!(count, most.min(before), "class {class}");
            assert_eq!(slab.free(), before - count);
            count
        };
        let mut out = BTreeSet::new();
        assert_eq!(draw(1, &mut out), 0, "none was opened");
        assert!(world.is_refused(0), "never out");
        while slab.has_untouched() {
            slab.open_slots(slab.carved() + 1 + capacity / 3);
            while draw(7, &mut out) > 0 {}
        }
        assert_eq!((slab.carved(), out.len(), slab.free()), (capacity, capacity, 0));
        slab.open_slots(usize::MAX);
        assert_eq!((slab.carved(), slab.free()), (capacity, 0), "opened beyond its end");
        for &slot in out.iter().rev() {
            assert_eq!(world.visit(&[slot, slot]).0, [true, false], "class {class}: {slot}");
        }
        assert!(world.is_refused(capacity), "beyond the end");
        assert!(slab.is_empty() && slab.free() == capacity);
        let all = slab.purge(&world.os);
        out.clear();
        assert_eq!(draw(1, &mut out), 1);
        assert_eq!(world.visit(&[out.pop_first().expect("it was drawn")]).0, [true]);
        assert!(all > 0 && slab.purge(&world.os) > 0, "class {class}: its page was used again");
        assert_eq!(slab.purge(&world.os), 0);
        let words = slab.record.summary.load(Ordering::Relaxed).count_ones() as usize;
        assert_eq!(words, capacity.div_ceil(64));
        slab.clear();
        slab.open(true);
        assert_eq!(draw(64, &mut out), 0);
    }
}
