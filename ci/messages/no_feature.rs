//! features: none
//! says: cannot lie in a realm: it does not say which references are in it
//! says: heapwright's feature `std`; without it, and better: `gc::Vector`, `gc::Str`, `gc::Map`
use heapwright::gc::{Gc, Lock, Realm};

fn main() {
    Realm::<heapwright::Rootable!['gc => Lock<Vec<Gc<'gc, u32>>>]>::new(|_| Lock::new(Vec::new()));
}
