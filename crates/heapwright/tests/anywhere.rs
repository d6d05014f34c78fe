//! The parts of this crate for every system. `ci/portable.sh` builds this test for other systems,
//! and runs it under an emulator if there is one.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an ordinary program may do all that this crate itself may not"
)]

mod common;

use std::thread;

use common::HAS_HEAP;
use heapwright::arena::{Arena, DropArena, SharedArena};
use heapwright::gc::{Cell, Gc, Realm};
use heapwright::pool::{Pool, SharedPool};
use heapwright::{Heapwright, Kind, Rootable, describe};

#[global_allocator]
static HEAP: Heapwright = Heapwright;

#[test]
fn the_global_allocator_is_the_heap_or_the_systems() {
    let mut words: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
    words.retain(|word| word.len() > 2);
    assert_eq!(words.iter().map(|word| word.parse::<usize>().unwrap()).sum::<usize>(), 49_990_050);
    let kind = describe(words[0].as_ptr()).kind;
    assert_eq!(kind, if HAS_HEAP { Kind::Small } else { Kind::Foreign });
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    let mut pages = vec![Page([1; 4096])];
    (2..20).for_each(|n| pages.push(Page([n; 4096])));
    assert!(pages.iter().enumerate().all(|(n, page)| page.0[4095] as usize == n + 1));
    assert!((&raw const pages[3]).addr().is_multiple_of(4096));
    let zeros = vec![0u64; 300_000];
    assert!(zeros.iter().all(|&word| word == 0));
}

#[test]
fn objects_of_pools_have_addresses_and_owners() {
    let pool = Pool::builder().name("numbers").build();
    let kept: Vec<_> = (0..20_000_u64).map(|n| pool.boxed(n)).collect();
    assert!(kept.iter().enumerate().all(|(n, object)| **object == n as u64));
    assert!(pool.contains(&*kept[777]));
    assert_eq!(describe((&raw const *kept[3]).cast()).kind, Kind::Pool);
    let key = pool.insert(5);
    assert_eq!(pool.get(key).copied(), Some(5));
    assert_eq!(pool.len(), 20_001);
    drop(kept);
    assert_eq!(pool.len(), 1);
}

#[test]
fn threads_share_pools_and_arenas() {
    static POOL: SharedPool<[usize; 4]> = SharedPool::new();
    let arena = SharedArena::new();
    let sums: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let arena = &arena;
                scope.spawn(move || {
                    let mut sum = 0;
                    for round in 0..200 {
                        let held: Vec<_> =
                            (0..50).map(|n| POOL.boxed([thread, round, n, 1])).collect();
                        assert!(
                            held.iter()
                                .enumerate()
                                .all(|(n, object)| **object == [thread, round, n, 1])
                        );
                        sum += *arena.alloc(held.len());
                    }
                    sum
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((sums, POOL.len()), (vec![10_000; 4], 0));
}

#[test]
fn arenas_end_together() {
    let mut arena = Arena::new();
    for round in 0..3 {
        let texts: Vec<&str> =
            (0..5000).map(|n| &*arena.alloc_str(&format!("{round} {n}"))).collect();
        assert!(texts.iter().enumerate().all(|(n, text)| **text == format!("{round} {n}")));
        arena.reset();
    }
    let count = std::rc::Rc::new(());
    let dropping = DropArena::new();
    (0..100).for_each(|_| drop(dropping.alloc(count.clone()).clone()));
    assert_eq!(std::rc::Rc::strong_count(&count), 101);
    drop(dropping);
    assert_eq!(std::rc::Rc::strong_count(&count), 1);
}

#[test]
fn realms_keep_what_is_reachable() {
    type Root = Rootable!['gc => Gc<'gc, Cell<Option<Gc<'gc, (u32, Gc<'gc, u32>)>>>>];
    let mut realm = Realm::<Root>::new(|mc| mc.alloc(Cell::new(None)));
    for round in 0..20 {
        realm.mutate(|mc, root| {
            for n in 0..5000 {
                let leaf = mc.alloc(n);
                root.set(mc, *root, Some(mc.alloc((round, leaf))));
            }
        });
    }
    realm.collect();
    let found = realm.mutate(|_, root| root.get().map(|pair| (pair.0, *pair.1)));
    assert_eq!(found, Some((19, 4999)));
}

#[cfg(feature = "debug")]
#[test]
fn debug_wrappers_find_a_double_free() {
    use heapwright::debug::{Checked, Config, DebugHeap};
    use std::alloc::{GlobalAlloc, Layout, System};

    const QUIET: Config = Config { quiet: true, ..Config::DEFAULT };
    let layout = Layout::from_size_align(100, 16).unwrap();
    let twice = |heap: &dyn GlobalAlloc| {
        // SAFETY: the size is not 0.
        let block = unsafe { heap.alloc(layout) };
        // SAFETY: the block is ours.
        unsafe { block.write_bytes(7, 100) };
        for _ in 0..2 {
            // SAFETY: the second call is not safe. The checker must find this mistake.
            unsafe { heap.dealloc(block, layout) };
        }
    };
    let heap = DebugHeap::new(QUIET);
    twice(&heap);
    assert_eq!((heap.findings(), heap.deinit().blocks), (1, 0));
    let checked = Checked::with(System, QUIET);
    twice(&checked);
    assert_eq!(checked.findings(), 1);
}
