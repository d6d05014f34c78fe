//! says: a `u32` has no finalizer
//! says: `impl<'gc> heapwright::gc::Finalize<'gc> for ...`
fn main() {
    heapwright::gc::Realm::<heapwright::Rootable!['gc => u8]>::new(|mc| {
        mc.finalize(mc.alloc(7_u32));
        0
    });
}
