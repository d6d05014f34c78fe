//! The memory use of ordinary Rust programs, for tests that install one of our allocators.
//!
//! ```text
//!   collections      maps, trees, strings and lists grow, shrink, and are dropped
//!   over_aligned     values with an alignment above 16
//!   panics           unwinding frees values
//!   dying_threads    thread-locals that free and allocate while their thread ends
//!   messages         blocks that one thread makes and another frees
//! ```
//!
//! The test chooses the amount of work, because a debug heap unwinds a stack for each block.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an ordinary program may do all that this crate itself may not"
)]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, LinkedList, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use super::Random;

/// Passes each kept text to `look`.
pub(crate) fn collections(seed: u64, changes: usize, keys: u64, look: impl Fn(&str)) {
    let mut random = Random::new(seed);
    let mut map: HashMap<u64, String> = HashMap::new();
    let mut tree: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for _ in 0..changes {
        let key = random.next() % keys;
        match random.below(4) {
            0 => {
                map.insert(key, format!("{key:>width$}", width = key as usize % 100));
                tree.insert(key, vec![key as u8; key as usize]);
            }
            1 => {
                map.remove(&key);
                tree.remove(&key);
            }
            2 => {
                if let Some(bytes) = tree.get_mut(&key) {
                    bytes.extend_from_slice(&[key as u8; 77]);
                }
            }
            _ => {
                if let Some(bytes) = tree.get_mut(&key) {
                    bytes.truncate(key as usize / 2);
                    bytes.shrink_to_fit();
                }
            }
        }
    }
    assert_eq!(map.len(), tree.len());
    for (key, text) in &map {
        assert_eq!(text.trim_start(), key.to_string());
        assert!(tree[key].iter().all(|&byte| byte == *key as u8));
        look(text);
    }
    let set: BTreeSet<u64> = map.keys().copied().collect();
    let sorted: Vec<u64> = BinaryHeap::from_iter(map.into_keys()).into_sorted_vec();
    assert!(set.into_iter().eq(sorted));
    let list: LinkedList<Box<u64>> = (0..keys).map(Box::new).collect();
    let ring: VecDeque<Rc<u64>> = list.into_iter().map(|number| Rc::new(*number)).collect();
    assert_eq!(ring.iter().map(|number| **number).sum::<u64>(), keys * (keys - 1) / 2);
}

pub(crate) fn over_aligned() {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    #[repr(align(128))]
    #[derive(Clone)]
    struct Lines(u64);
    let pages: Vec<Box<Page>> = (0..20).map(|n| Box::new(Page([n; 4096]))).collect();
    for (n, page) in pages.iter().enumerate() {
        assert!((&raw const **page).addr().is_multiple_of(4096));
        assert!(page.0.iter().all(|&byte| byte == n as u8));
    }
    let mut lines = Vec::new();
    for n in 0..5000 {
        lines.push(Lines(n));
        assert!(lines.as_ptr().addr().is_multiple_of(128));
    }
    lines.truncate(10);
    lines.shrink_to_fit();
    assert!(lines.as_ptr().addr().is_multiple_of(128));
    assert!(lines.iter().enumerate().all(|(n, line)| line.0 == n as u64));
    let zeroed = vec![0u128; 100_000];
    assert!(zeroed.iter().all(|&n| n == 0));
}

pub(crate) fn panics(times: usize) {
    let watch = Arc::new(());
    for time in 0..times {
        let held = Arc::clone(&watch);
        let caught = catch_unwind(AssertUnwindSafe(move || -> () {
            let _kept = vec![held; 10];
            panic!("with a message of its own: {time}");
        }));
        let message = *caught.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(message, format!("with a message of its own: {time}"));
    }
    assert_eq!(Arc::strong_count(&watch), 1);
}

pub(crate) fn dying_threads(threads: usize) {
    struct Late(Vec<String>, Arc<Mutex<Vec<String>>>);
    impl Drop for Late {
        fn drop(&mut self) {
            // Allocates, frees, and gives a block away, when the thread's cache may be gone.
            let text: String = self.0.concat();
            self.0.clear();
            self.0.shrink_to_fit();
            self.1.lock().unwrap().push(text);
        }
    }
    thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        static LATER: RefCell<Option<Late>> = const { RefCell::new(None) };
    }
    let said = Arc::new(Mutex::new(Vec::new()));
    for thread in 0..threads {
        let said = Arc::clone(&said);
        thread::spawn(move || {
            let late = |n: usize| Late(vec![format!("{thread} "); n], Arc::clone(&said));
            LATE.with(|slot| *slot.borrow_mut() = Some(late(3)));
            LATER.with(|slot| *slot.borrow_mut() = Some(late(1000)));
        })
        .join()
        .unwrap();
    }
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 2 * threads);
    for (at, text) in said.iter().enumerate() {
        let word = format!("{} ", at / 2);
        assert!(*text == word.repeat(3) || *text == word.repeat(1000), "{text:.20}");
    }
}

pub(crate) fn messages(each: usize) {
    let (send, receive) = channel::<(usize, Vec<u8>, String)>();
    let senders: Vec<_> = (0..4)
        .map(|id| {
            let send = send.clone();
            thread::spawn(move || {
                let mut random = Random::new(id as u64 + 20);
                for _ in 0..each {
                    let size = random.size();
                    send.send((id, vec![size as u8; size], size.to_string())).unwrap();
                }
            })
        })
        .collect();
    drop(send);
    let mut kept = Vec::new();
    let mut received = 0;
    for (number, (id, bytes, size)) in receive.into_iter().enumerate() {
        assert_eq!(bytes.len().to_string(), size);
        assert!(bytes.iter().all(|&byte| byte == bytes.len() as u8));
        if number % 50 == id {
            kept.push((bytes, size));
        }
        received += 1;
    }
    for sender in senders {
        sender.join().unwrap();
    }
    assert_eq!(received, 4 * each);
    assert!(kept.iter().all(|(bytes, size)| bytes.len().to_string() == *size));
}
