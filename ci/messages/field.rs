//! says: cannot lie in a realm: it does not say which references are in it
//! says: `#[trace(skip)]` at the field, or `heapwright::gc::Static<
#[derive(heapwright::gc::Trace)]
struct Held {
    lock: std::sync::Mutex<u32>,
}

fn main() {}
