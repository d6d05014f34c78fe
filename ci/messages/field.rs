//! says: a `std::sync::Mutex<u32>` cannot lie in a realm
//! says: `#[trace(skip)]` at the field, or `heapwright::gc::Static<std::sync::Mutex<u32>>`
#[derive(heapwright::gc::Trace)]
struct Held {
    lock: std::sync::Mutex<u32>,
}

fn main() {}
