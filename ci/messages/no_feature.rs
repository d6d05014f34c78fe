//! features: none
//! says: cannot lie in a realm: it does not report its references
//! says: need heapwright's feature `std`; `gc::Vector`, `gc::Str` and `gc::Map` do not
use heapwright::gc::{Gc, Lock, Realm};

fn main() {
    Realm::<heapwright::Rootable!['gc => Lock<Vec<Gc<'gc, u32>>>]>::new(|_| Lock::new(Vec::new()));
}
