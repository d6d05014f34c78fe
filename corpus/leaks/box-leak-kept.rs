// leaks: reachable 1 40 at A in main
// Box::leak for a reference that is kept in a static, on purpose.
include!("../corpus.rs");
use std::sync::OnceLock;

static SETTINGS: OnceLock<&'static [u8; 40]> = OnceLock::new();

fn main() {
    let leaked = Box::leak(Box::new(black_box([7u8; 40]))); // LEAK A
    SETTINGS.set(leaked).unwrap();
    assert_eq!(black_box(SETTINGS.get().unwrap())[3], 7);
    fix! { drop(unsafe { Box::from_raw(black_box(*SETTINGS.get().unwrap()) as *const _ as *mut [u8; 40]) }); }
    wipe();
}
