//! compiles: what the derive writes is no unsafe code of the program's, and needs none of its names
#![forbid(unsafe_code)]
#![deny(warnings)]
use heapwright::gc::{Cell, Gc, Map, Realm, Static, Str, Vector};

mod core {}

#[derive(heapwright::gc::Trace)]
struct Node<'gc, T> {
    value: T,
    next: Cell<Option<Gc<'gc, Node<'gc, T>>>>,
}

#[derive(heapwright::gc::Trace)]
enum Value<'gc> {
    Nothing,
    Many { all: Vector<'gc, Gc<'gc, Value<'gc>>>, by: Map<'gc, Str<'gc>, Gc<'gc, Value<'gc>>> },
    Lock(Static<std::sync::Mutex<u32>>, #[trace(skip)] std::sync::Mutex<u32>),
}

fn main() {
    type Root = heapwright::Rootable!['gc => Gc<'gc, Node<'gc, Value<'gc>>>];
    let mut realm = Realm::<Root>::new(|mc| {
        let many = Value::Many { all: Vector::new(mc), by: Map::new(mc) };
        let next = mc.alloc(Node { value: many, next: Cell::new(None) });
        _ = mc.alloc(Node { value: Value::Lock(Static(7.into()), 8.into()), next: Cell::new(None) });
        mc.alloc(Node { value: Value::Nothing, next: Cell::new(Some(next)) })
    });
    realm.mutate(|_, root| {
        assert!(matches!(root.value, Value::Nothing));
        let value = &root.next.get().unwrap().as_ref().value;
        assert!(matches!(value, Value::Many { all, by } if all.is_empty() && by.is_empty()));
        if let Value::Lock(one, other) = value {
            drop((one.lock(), other.lock()));
        }
    });
}
