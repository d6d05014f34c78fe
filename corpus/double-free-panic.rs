// finds: double-free
// sizes: 24 3000
// words: %SIZE%-byte
// While a panic unwinds, a slot that was moved out of is dropped again.
include!("corpus.rs");

fn replace(slot: &mut Vec<u8>, with: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    unsafe {
        let old = std::ptr::read(slot);
        fix! { std::ptr::write(slot, Vec::new()); }
        std::ptr::write(slot, with(old));
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let n = size();
    let outcome = std::panic::catch_unwind(|| {
        let mut slot = vec![1u8; n];
        replace(&mut slot, |old| {
            drop(black_box(old));
            panic!("in the middle");
        });
    });
    assert!(outcome.is_err());
}
