//! A Rust program whose allocator is a debug heap, and one whose allocator is a
//! checked one: collections, threads that come and go, panics, thread-locals that
//! free late. Nothing that is right is complained of; then one thing that is wrong.
//!
//! What only this finds: something that std does and a debug heap takes for a
//! mistake; a call before `main`, or in a thread that dies, that it cannot serve.
//!
//! ```text
//! cargo test -p heapwright --features debug --test debug_global
//! ```
#![cfg(feature = "debug")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "an ordinary program may do all that this crate itself may not"
)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, LinkedList, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use common::Random;
use heapwright::debug::{Checked, Config, DebugHeap, FindingKind};

const QUIET: Config = Config { quiet: true, ..Config::DEFAULT };

/// Both at once: one's blocks come from the other's.
struct Both {
    heap: DebugHeap,
    checked: Checked<System>,
}

#[global_allocator]
static BOTH: Both = Both { heap: DebugHeap::new(QUIET), checked: Checked::with(System, QUIET) };

/// Odd sizes go to the one, even ones to the other.
impl Both {
    fn of(&self, size: usize) -> &dyn GlobalAlloc {
        if size.is_multiple_of(2) { &self.heap } else { &self.checked }
    }
}

// SAFETY: a block goes back to the one that it came from, by its size.
unsafe impl GlobalAlloc for Both {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the same contract.
        unsafe { self.of(layout.size()).alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the same contract.
        unsafe { self.of(layout.size()).alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the same contract.
        unsafe { self.of(layout.size()).dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.size() % 2 == size % 2 {
            // SAFETY: the same contract.
            return unsafe { self.of(size).realloc(block, layout, size) };
        }
        // SAFETY: the caller promises that size and alignment make a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the same contract.
        let new = unsafe { self.alloc(wanted) };
        if !new.is_null() {
            // SAFETY: both have as many bytes, and the new one is ours.
            unsafe { block.copy_to_nonoverlapping(new, size.min(layout.size())) };
            // SAFETY: the same contract.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}

fn collections(seed: u64) {
    let mut random = Random::new(seed);
    let mut map: HashMap<u64, String> = HashMap::new();
    let mut tree: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for _ in 0..3000 {
        let key = random.next() % 500;
        match random.below(3) {
            0 => {
                map.insert(key, format!("{key:>width$}", width = key as usize % 100));
                tree.insert(key, vec![key as u8; key as usize]);
            }
            1 => {
                map.remove(&key);
                tree.remove(&key);
            }
            _ => {
                if let Some(bytes) = tree.get_mut(&key) {
                    bytes.extend_from_slice(&[key as u8; 77]);
                }
            }
        }
    }
    for (key, text) in &map {
        assert_eq!(text.trim_start(), key.to_string());
        assert!(tree[key].iter().all(|&byte| byte == *key as u8));
    }
    let list: LinkedList<Box<u64>> = (0..300).map(Box::new).collect();
    let ring: VecDeque<Arc<u64>> = list.into_iter().map(|number| Arc::new(*number)).collect();
    assert_eq!(ring.iter().map(|number| **number).sum::<u64>(), 44_850);
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    let pages: Vec<Box<Page>> = (0..10).map(|n| Box::new(Page([n; 4096]))).collect();
    assert!(pages.iter().enumerate().all(|(n, page)| page.0[4095] == n as u8));
    assert!(vec![0u128; 50_000].iter().all(|&n| n == 0));
}

fn threads() {
    struct Late(Vec<String>, Arc<Mutex<Vec<String>>>);
    impl Drop for Late {
        fn drop(&mut self) {
            let text = self.0.concat();
            self.0.shrink_to_fit();
            self.1.lock().unwrap().push(text);
        }
    }
    thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    }
    let said = Arc::new(Mutex::new(Vec::new()));
    let (send, receive) = channel::<Vec<u8>>();
    let running: Vec<_> = (0..4)
        .map(|n| {
            let (send, said) = (send.clone(), Arc::clone(&said));
            thread::spawn(move || {
                for round in 0..20 {
                    let said = Arc::clone(&said);
                    thread::spawn(move || {
                        let late = Late(vec![format!("{round} "); n + 1], said);
                        LATE.with(|slot| *slot.borrow_mut() = Some(late));
                    })
                    .join()
                    .unwrap();
                    send.send(vec![n as u8; round * 37]).unwrap();
                }
                collections(n as u64);
            })
        })
        .collect();
    drop(send);
    let parts: Vec<_> = receive.into_iter().collect();
    assert!(parts.iter().all(|part| part.iter().all(|byte| *byte == part[0])));
    running.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((parts.len(), said.lock().unwrap().len()), (80, 80));
}

fn panics() {
    let watch = Arc::new(());
    for depth in 0..10 {
        let held = Arc::clone(&watch);
        let caught = catch_unwind(AssertUnwindSafe(move || {
            let _kept = vec![held; 10];
            std::panic::resume_unwind(Box::new(format!("{depth}")));
        }));
        assert_eq!(*caught.unwrap_err().downcast::<String>().unwrap(), depth.to_string());
    }
    assert_eq!(Arc::strong_count(&watch), 1);
}

/// One test: it counts the findings of the whole process.
#[test]
fn what_std_does_is_right_and_what_is_wrong_is_told() {
    collections(1);
    threads();
    panics();
    BOTH.heap.sweep();
    BOTH.checked.sweep();
    assert_eq!((BOTH.heap.last_finding(), BOTH.checked.last_finding()), (None, None));
    assert!(BOTH.heap.live().blocks > 0 && BOTH.checked.live().blocks > 0);
    for layout in [Layout::new::<[u8; 40]>(), Layout::new::<[u8; 41]>()] {
        // SAFETY: the size is not zero.
        let block = unsafe { std::alloc::alloc(layout) };
        // SAFETY: ours.
        unsafe { std::alloc::dealloc(block, layout) };
        // SAFETY: a mistake, which is told and not done.
        unsafe { std::alloc::dealloc(block, layout) };
    }
    assert_eq!((BOTH.heap.findings(), BOTH.checked.findings()), (1, 1));
    assert_eq!(BOTH.heap.last_finding().unwrap().kind, FindingKind::DoubleFree);
    let finding = BOTH.checked.last_finding().unwrap();
    assert_eq!((finding.kind, finding.size), (FindingKind::DoubleFree, 41));
    // And all goes on.
    collections(2);
    assert_eq!((BOTH.heap.findings(), BOTH.checked.findings()), (1, 1));
}
