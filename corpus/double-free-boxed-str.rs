// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// A text is taken back from where it was lent to, twice.
include!("corpus.rs");

fn main() {
    let raw = black_box(Box::into_raw("x".repeat(size()).into_boxed_str()));
    drop(unsafe { Box::from_raw(raw) });
    bug! { drop(unsafe { Box::from_raw(black_box(raw)) }); }
}
