// finds: write-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// A raw pointer into a vector that has grown since.
include!("corpus.rs");

fn main() {
    let mut v = vec![1u8; size()];
    let mut at = black_box(v.as_mut_ptr());
    v.push(2);
    fix! { at = black_box(v.as_mut_ptr()); }
    unsafe { at.add(3).write_volatile(42) };
    black_box(&mut v);
    let _ = &mut at;
}
