// leaks: definite 1 32 at A in node with 1 32
// lsan: differs It calls both of a cycle indirectly lost, and nothing directly.
// Two Rc that hold each other.
include!("../corpus.rs");
use std::cell::RefCell;
use std::rc::Rc;

struct Node(RefCell<Option<Rc<Node>>>);

#[inline(never)]
fn node() -> Rc<Node> {
    Rc::new(Node(RefCell::new(None))) // LEAK A
}

fn main() {
    let (a, b) = (node(), node());
    *a.0.borrow_mut() = Some(Rc::clone(&b));
    *b.0.borrow_mut() = Some(Rc::clone(&a));
    fix! { *black_box(&a).0.borrow_mut() = None; }
    drop((a, b));
    wipe();
}
