//! says: RefCell<u32>` cannot lie in a realm
//! says: `gc::Cell` and `gc::Lock` do
#[derive(heapwright::gc::Trace)]
struct Held {
    value: std::cell::RefCell<u32>,
}

fn main() {}
