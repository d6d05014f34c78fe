// finds: use-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// needs: guard=all
// A str whose lifetime was stretched over the end of its String.
include!("corpus.rs");

fn main() {
    let mut text = Some("t".repeat(size()));
    let view: &'static str = unsafe { std::mem::transmute(text.as_deref().unwrap()) };
    bug! { text = None; }
    let first = unsafe { black_box(view.as_ptr()).read_volatile() };
    black_box(first);
    drop(text);
}
