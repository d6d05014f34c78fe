// finds: use-after-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// needs: guard=all
// A thread got an address; the vector did not wait for it.
include!("corpus.rs");

fn main() {
    let mut v = Some(vec![1u8; size()]);
    let address = v.as_ref().unwrap().as_ptr() as usize;
    bug! { v = None; }
    std::thread::spawn(move || black_box(unsafe { (address as *const u8).add(1).read_volatile() })).join().unwrap();
    drop(v);
}
