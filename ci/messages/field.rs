//! says: cannot lie in a realm: it does not report its references
//! says: `#[trace(skip)]` at the field, or `heapwright::gc::Static<
#[derive(heapwright::gc::Trace)]
struct Held {
    lock: std::sync::Mutex<u32>,
}

fn main() {}
