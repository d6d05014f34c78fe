// finds: double-free
// words: 40-byte
// The raw pointer of a box is made a box again, twice.
include!("corpus.rs");

fn main() {
    let raw = black_box(Box::into_raw(Box::new([7u8; 40])));
    drop(unsafe { Box::from_raw(raw) });
    bug! { drop(unsafe { Box::from_raw(black_box(raw)) }); }
}
