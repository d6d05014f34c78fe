//! says: DropIsNotForValuesInARealm_FinalizeIs_OrAFieldOfItsOwn
#[derive(heapwright::gc::Trace)]
struct Held;

impl Drop for Held {
    fn drop(&mut self) {}
}

fn main() {}
