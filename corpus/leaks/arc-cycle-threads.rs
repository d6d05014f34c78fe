// leaks: definite 1 32 at A in node with 1 32
// lsan: differs It calls both of a cycle indirectly lost, and nothing directly.
// Two threads tie what they share into a cycle.
include!("../corpus.rs");
use std::sync::{Arc, Mutex};

struct Node(Mutex<Option<Arc<Node>>>);

#[inline(never)]
fn node() -> Arc<Node> {
    Arc::new(Node(Mutex::new(None))) // LEAK A
}

fn main() {
    let (a, b) = (node(), node());
    let threads = [(Arc::clone(&a), Arc::clone(&b)), (b, Arc::clone(&a))]
        .map(|(from, to)| std::thread::spawn(move || *from.0.lock().unwrap() = Some(to)));
    for thread in threads {
        thread.join().unwrap();
    }
    fix! { a.0.lock().unwrap().take(); }
    drop(a);
    wipe();
}
