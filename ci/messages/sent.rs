//! says: `Rc<u8>` cannot be sent between threads safely
use heapwright::gc::{Gc, SendRealm, Trace, Vector};

#[derive(Trace)]
struct Held(#[trace(skip)] std::rc::Rc<u8>);

fn main() {
    SendRealm::<heapwright::Rootable!['gc => Vector<'gc, Gc<'gc, Held>>]>::sendable(|mc| Vector::new(mc));
}
