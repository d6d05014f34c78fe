//! A Rust program whose allocator is heapwright: collections, strings, threads,
//! panics that are caught, thread-locals that free late, over-aligned types.
//!
//! What only this finds: a call that std makes and the other tests do not, such
//! as an allocation before `main`, in a destructor of a dying thread, or while a
//! panic unwinds.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an ordinary program may do all that this crate itself may not"
)]

mod common;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, LinkedList, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Random, pass_alone};
use heapwright::{BlockState, Kind, describe, heap};

#[global_allocator]
static HEAP: heapwright::Heapwright = heapwright::Heapwright;

#[test]
fn collections_live_on_the_heap() {
    let mut random = Random::new(1);
    let mut map: HashMap<u64, String> = HashMap::new();
    let mut tree: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for _ in 0..20_000 {
        let key = random.next() % 3000;
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
        if !text.is_empty() {
            assert_eq!(describe(text.as_ptr()).state, BlockState::InUse);
        }
    }
    let set: BTreeSet<u64> = map.keys().copied().collect();
    let sorted: Vec<u64> = BinaryHeap::from_iter(map.into_keys()).into_sorted_vec();
    assert!(set.into_iter().eq(sorted));
    let list: LinkedList<Box<u64>> = (0..1000).map(Box::new).collect();
    let ring: VecDeque<Rc<u64>> = list.into_iter().map(|number| Rc::new(*number)).collect();
    assert_eq!(ring.iter().map(|number| **number).sum::<u64>(), 499_500);
}

#[test]
fn over_aligned_values_are_aligned() {
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

#[test]
fn panics_unwind_and_free_what_they_pass() {
    let watch = Arc::new(());
    for depth in 0..50 {
        let held = Arc::clone(&watch);
        let caught = catch_unwind(AssertUnwindSafe(move || {
            let _kept = vec![held; 10];
            assert!(depth > 100, "with a message of its own: {depth}");
        }));
        let message = *caught.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(message, format!("with a message of its own: {depth}"));
    }
    assert_eq!(Arc::strong_count(&watch), 1);
    let failed = thread::spawn(|| -> () { panic!("in a thread: {}", "x".repeat(3000)) }).join();
    assert_eq!(failed.unwrap_err().downcast::<String>().unwrap().len(), 3013);
}

#[test]
fn thread_locals_free_and_allocate_while_their_thread_dies() {
    struct Late(Vec<String>, Arc<Mutex<Vec<String>>>);
    impl Drop for Late {
        fn drop(&mut self) {
            // Allocates, frees, and gives away, when the thread's cache may be gone.
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
    for round in 0..100 {
        let said = Arc::clone(&said);
        thread::spawn(move || {
            let late = |n: usize| Late(vec![format!("{round} "); n], Arc::clone(&said));
            LATE.with(|slot| *slot.borrow_mut() = Some(late(3)));
            LATER.with(|slot| *slot.borrow_mut() = Some(late(1000)));
        })
        .join()
        .unwrap();
    }
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 200);
    for (at, text) in said.iter().enumerate() {
        let word = format!("{} ", at / 2);
        assert!(*text == word.repeat(3) || *text == word.repeat(1000), "{text:.20}");
    }
}

#[test]
fn messages_between_threads_arrive_whole() {
    let (send, receive) = channel::<(usize, Vec<u8>, String)>();
    let senders: Vec<_> = (0..4)
        .map(|id| {
            let send = send.clone();
            thread::spawn(move || {
                let mut random = Random::new(id as u64 + 20);
                for _ in 0..2000 {
                    let size = random.size();
                    send.send((id, vec![size as u8; size], size.to_string())).unwrap();
                }
            })
        })
        .collect();
    drop(send);
    let mut kept = Vec::new();
    for (number, (id, bytes, size)) in receive.into_iter().enumerate() {
        assert_eq!(bytes.len().to_string(), size);
        assert!(bytes.iter().all(|&byte| byte == bytes.len() as u8));
        if number % 50 == id {
            kept.push((bytes, size));
        }
    }
    for sender in senders {
        sender.join().unwrap();
    }
    assert!(kept.iter().all(|(bytes, size)| bytes.len().to_string() == *size));
}

#[test]
fn the_program_itself_is_on_the_heap() {
    let argument = std::env::args().next().unwrap();
    assert_eq!(describe(argument.as_ptr()).kind, Kind::Small);
    assert!(heap::owns(argument.as_ptr()));
    assert!(!heap::owns(b"a constant".as_ptr()));
    // The loader's and the C library's own blocks are not: they are passed on.
    // SAFETY: strdup copies a C string.
    let theirs = unsafe { libc::strdup(c"theirs".as_ptr()) };
    assert_eq!(describe(theirs.cast()).kind, Kind::Foreign);
    // SAFETY: a block of the C library, in use.
    assert!(unsafe { heap::usable_size(theirs.cast()) } >= 7);
    // SAFETY: as above.
    let theirs = unsafe { heap::realloc(theirs.cast(), 10_000) };
    // SAFETY: a block of the C library, in use, and this is the last use.
    unsafe { heap::free(theirs) };
}

/// The same once more where every call is counted, which goes another way.
#[test]
fn all_this_holds_where_every_call_is_counted() {
    if common::case().is_some() {
        return;
    }
    for test in [
        "collections_live_on_the_heap",
        "over_aligned_values_are_aligned",
        "thread_locals_free_and_allocate_while_their_thread_dies",
        "messages_between_threads_arrive_whole",
    ] {
        pass_alone(test, "counted", "stats_file=/tmp/never-written");
        pass_alone(test, "large pages", "page=64k,purge=0");
    }
}
