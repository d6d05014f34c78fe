// finds: write-after-free
// words: 40-byte
include!("corpus.rs");

fn main() {
    let mut owner = Some(Box::new([1u8; 40]));
    let raw: *mut [u8; 40] = black_box(&mut **owner.as_mut().unwrap());
    bug! { owner = None; }
    unsafe { (*raw.cast::<[std::cell::Cell<u8>; 40]>())[5].set(42) };
    black_box(raw);
    drop(owner);
}
