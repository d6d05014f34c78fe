//! says: a `Node` cannot lie in a realm: it does not report its references
//! says: `#[derive(heapwright::gc::Trace)]`, with heapwright's feature `derive`
struct Node(#[allow(dead_code)] u32);

fn main() {
    heapwright::gc::Realm::<heapwright::Rootable!['gc => u8]>::new(|mc| mc.alloc(Node(7)).0 as u8);
}
