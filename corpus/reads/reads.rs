// The same in Rust; see reads.c.
include!("../corpus.rs");
use std::ffi::CStr;

/// Uses what was read.
fn sink<T>(value: T) {
    black_box(value);
}

// read: copy_freed use-after-free function
fn copy_freed() {
    let all = black_box(vec![1u8; 400]);
    let (at, mut copy) = (black_box(all.as_ptr()), vec![0u8; 400]);
    bug! { drop(all); }
    unsafe { std::ptr::copy_nonoverlapping(at, copy.as_mut_ptr(), black_box(400)) };
    sink(copy);
}

// read: c_str_no_end buffer-overflow function
fn c_str_no_end() {
    let text = black_box(vec![b'a'; 40]);
    let end = black_box(vec![b'a', 0]);
    sink(unsafe { CStr::from_ptr(pick!(&text, &end).as_ptr().cast()) }.to_bytes().len());
}

// read: equal_beyond buffer-overflow function
fn equal_beyond() {
    let (a, b) = (black_box(vec![1u8; 64]), black_box(vec![1u8; 80]));
    let long = unsafe { std::slice::from_raw_parts(black_box(a.as_ptr()), pick!(80, 64)) };
    sink(black_box(long) == &b[..pick!(80, 64)]);
}

// read: vec_freed use-after-free loop
fn vec_freed() {
    let all = black_box(vec![7u64; 30]);
    let at = black_box(all.as_ptr());
    bug! { drop(all); }
    (0..30).for_each(|i| sink(unsafe { at.add(i).read_volatile() }));
}

// read: vec_grown_freed use-after-free loop
fn vec_grown_freed() {
    let mut all = black_box(vec![7u32; 20]);
    let mut at = black_box(all.as_ptr());
    all.reserve(2000);
    fix! { at = all.as_ptr(); }
    (0..20).for_each(|i| sink(unsafe { at.add(i).read_volatile() }));
    bug! { at = all.as_ptr(); }
    sink((at, all));
}

struct Node {
    next: *mut Node,
    value: u64,
}

// read: list_freed use-after-free loop
fn list_freed() {
    let mut list = std::ptr::null_mut();
    for value in 0..10 {
        list = black_box(Box::into_raw(Box::new(Node { next: list, value })));
    }
    while !list.is_null() {
        let node = list;
        fix! { list = unsafe { (&raw const (*node).next).read_volatile() }; }
        sink(unsafe { (*node).value });
        drop(unsafe { Box::from_raw(node) });
        bug! { list = unsafe { (&raw const (*node).next).read_volatile() }; }
    }
}

// read: unchecked_beyond buffer-overflow loop
fn unchecked_beyond() {
    let all = black_box(vec![7u64; 16]);
    (0..pick!(17, 16)).for_each(|i| sink(unsafe { all.as_ptr().add(black_box(i)).read_volatile() }));
}

// read: set_len_beyond buffer-overflow loop
fn set_len_beyond() {
    let mut all: Vec<u8> = black_box(Vec::with_capacity(32));
    all.resize(32, 1);
    unsafe { all.set_len(pick!(48, 32)) };
    all.iter().for_each(|byte| sink(unsafe { (&raw const *byte).read_volatile() }));
}

// read: windows_beyond buffer-overflow loop
fn windows_beyond() {
    // Each with the one behind it; the last has none.
    let all = black_box(vec![7u16; 40]);
    for i in 0..pick!(40, 39) {
        sink(unsafe { all.as_ptr().add(black_box(i) + 1).read_volatile() });
    }
}

// read: sub_before buffer-underflow loop
fn sub_before() {
    for _ in 0..4 {
        let all = black_box(vec![7u32; 24]);
        for i in (0..24).rev() {
            sink(unsafe { all.as_ptr().add(i).sub(pick!(1, 0)).read_volatile() });
        }
    }
}

fn main() {
    let asked = std::env::args().nth(1).unwrap_or_default();
    macro_rules! run {
        ($($name:ident)*) => {
            match asked.as_str() {
                $(stringify!($name) => $name(),)*
                _ => panic!("there is no program {asked:?}"),
            }
        };
    }
    run! {
        copy_freed c_str_no_end equal_beyond vec_freed vec_grown_freed list_freed unchecked_beyond set_len_beyond
        windows_beyond sub_before
    }
}
