//! Tests of the remote stack and the ownership under loom. Loom tries every order of two or three
//! threads, and every value that the memory model lets a load see. `ci/loom.sh` removes the fences
//! one by one and expects these tests to fail.
//!
//! Links are loom's cells, so a test also fails if two threads touch a block without an order.

extern crate std;

use std::boxed::Box;

use loom::sync::Arc;
use loom::thread;

use super::*;

struct Owner {
    stack: RemoteStack,
    ownership: Ownership,
    home: AtomicUsize,
}

fn owner() -> Arc<Owner> {
    Arc::new(Owner {
        stack: RemoteStack::new(),
        ownership: Ownership::held(),
        home: AtomicUsize::new(0),
    })
}

fn chain(n: usize) -> (*mut Block, *mut Block) {
    let tail = Box::into_raw(Box::new(Block { next: UnsafeCell::new(ptr::null_mut()) }));
    let mut head = tail;
    for _ in 1..n {
        head = Box::into_raw(Box::new(Block { next: UnsafeCell::new(head) }));
    }
    (head, tail)
}

fn push(owner: &Owner, n: usize) {
    let (head, tail) = chain(n);
    // SAFETY: a linked chain that no other thread knows.
    unsafe { owner.stack.push(head, tail, n, 16 * n) };
}

fn drain(owner: &Owner) {
    let (mut block, bound) = owner.stack.take();
    let mut found = 0;
    while !block.is_null() {
        found += 1;
        assert!(found <= bound, "the count must bound the chain");
        // SAFETY: the chain was taken whole, so it is ours alone.
        let next = unsafe { Block::next(block) };
        // SAFETY: made by `chain`, and out of the chain now.
        drop(unsafe { Box::from_raw(block) });
        block = next;
    }
    owner.stack.taken(found, 16 * found);
    // A load and a store: two holders at once would lose a count.
    let home = owner.home.load(Ordering::Relaxed);
    owner.home.store(home + found, Ordering::Relaxed);
}

fn leave(owner: &Owner) {
    loop {
        drain(owner);
        if !owner.ownership.let_go(&owner.stack) || !owner.ownership.try_claim() {
            return;
        }
    }
}

fn free_late(owner: &Owner, n: usize) {
    push(owner, n);
    if owner.ownership.needs_drainer() && owner.ownership.try_claim() {
        leave(owner);
    }
}

fn all_came_home(owner: &Owner, blocks: usize) {
    assert!(owner.stack.is_empty(), "blocks wait for nobody");
    assert_eq!(owner.home.load(Ordering::Relaxed), blocks);
    assert_eq!((owner.stack.len(), owner.stack.bytes()), (0, 0));
}

#[test]
fn loom_frees_after_the_owner_left_are_never_lost() {
    loom::model(|| {
        let owner = owner();
        let freers: [_; 2] = core::array::from_fn(|i| {
            let owner = Arc::clone(&owner);
            thread::spawn(move || free_late(&owner, i + 1))
        });
        leave(&owner);
        for freer in freers {
            freer.join().unwrap();
        }
        all_came_home(&owner, 3);
    });
}

#[test]
fn loom_an_adopter_and_a_late_free_agree() {
    loom::model(|| {
        let owner = owner();
        let freer = {
            let owner = Arc::clone(&owner);
            thread::spawn(move || free_late(&owner, 1))
        };
        let adopter = {
            let owner = Arc::clone(&owner);
            thread::spawn(move || {
                if owner.ownership.try_claim() {
                    drain(&owner);
                    leave(&owner);
                }
            })
        };
        leave(&owner);
        freer.join().unwrap();
        adopter.join().unwrap();
        all_came_home(&owner, 1);
    });
}

#[test]
fn loom_pushes_and_takes_keep_every_block() {
    loom::model(|| {
        let owner = owner();
        let freers: [_; 2] = core::array::from_fn(|_| {
            let owner = Arc::clone(&owner);
            thread::spawn(move || push(&owner, 2))
        });
        drain(&owner);
        for freer in freers {
            freer.join().unwrap();
        }
        drain(&owner);
        all_came_home(&owner, 4);
    });
}
