//! Shared rules: the processes of one check share the rules that they have read from unwind tables.
//!
//! ```text
//!   module   build id --> 64 bits        (again when a scratch's walks reach another module)
//!   key      these bits and the address in the file, mixed
//!   file     key ^ rule | rule | ...     65,536 entries of 16 bytes, by the key's first bits
//! ```
//!
//! A build runs a thousand processes of the same programs, and each would read the same rules from
//! cold tables. The command makes the file (`rules=FILE`, sealed: see `os::map_sealed`). A module
//! without a build id, or a process without a file, uses the tables.
//!
//! # Trust
//!
//! Nothing in the file is trusted: other processes write it, without a lock. A torn or replaced
//! pair does not give the key, and is a miss. A false rule gives a wrong stack and never a fault: a
//! walk accepts any word as a rule (`rule`), and reads only readable words. Another version of this
//! library has other keys.

use core::ffi::CStr;
use core::ptr;

use super::super::rule::Rule;
use super::image::Image;
use super::modules;
use heapwright_substrate::os;
use heapwright_substrate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

const ORDER: u32 = 16;

pub(in super::super) const BYTES: usize = size_of::<Entry>() << ORDER;

#[repr(C)]
struct Entry {
    mixed: AtomicU64,
    rule: AtomicU64,
}

const _: () = assert!(BYTES == 1 << 20);

static FILE: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

pub(in super::super) fn share(path: &CStr) {
    let at = os::map_sealed(path, 0, BYTES);
    if !at.is_null() {
        FILE.store(at.cast(), Ordering::Release);
    }
}

#[inline]
fn is_shared() -> bool {
    !FILE.load(Ordering::Relaxed).is_null()
}

/// A module's key for other processes. Zeroed memory is a valid value: no key.
#[derive(Clone, Copy)]
pub(super) struct Known {
    start: usize,
    end: usize,
    bias: usize,
    id: u64,
    /// The generation in which the module is mapped, or 0.
    generation: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Key(u64);

fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 32
}

/// Returns a value that differs between library versions, as the meaning of words does.
fn version() -> u64 {
    let name = concat!(env!("CARGO_PKG_VERSION"), "-1").bytes();
    name.fold(0, |hash, byte| mix(hash, byte.into()))
}

impl Known {
    pub(super) const NONE: Self = Self { start: 0, end: 0, bias: 0, id: 0, generation: 0 };

    #[inline]
    pub(super) fn key(&self, address: usize, generation: u32) -> Option<Key> {
        let is_in = self.generation == generation && (self.start..self.end).contains(&address);
        is_in.then(|| Key(mix(self.id, address.wrapping_sub(self.bias) as u64)))
    }

    /// Sets the module from an image, if other processes can identify it.
    pub(super) fn become_of(&mut self, image: &Image, generation: u32) {
        *self = Self::NONE;
        if is_shared()
            && let Some(id) = modules::build_id_of(image)
        {
            let (words, _) = id.as_chunks::<8>();
            let known = mix(version(), id.len() as u64);
            let hash = words.iter().fold(known, |hash, word| mix(hash, u64::from_ne_bytes(*word)));
            let &Image { start, end, bias, .. } = image;
            *self = Self { start, end, bias, id: hash, generation };
        }
    }
}

fn entry(key: Key) -> Option<&'static Entry> {
    let file = FILE.load(Ordering::Acquire);
    if file.is_null() {
        return None;
    }
    let at = file.wrapping_add((key.0 >> (u64::BITS - ORDER)) as usize);
    // SAFETY: the file has an entry for each value of `ORDER` bits, is mapped for good and does not
    // shrink. All processes use it as atomics.
    Some(unsafe { &*at })
}

/// Returns the rule that another process has read, or `Rule(0)` if none is known.
pub(super) fn get(key: Key) -> Rule {
    entry(key).map_or(Rule(0), |entry| {
        let rule = entry.rule.load(Ordering::Relaxed);
        let known = entry.mixed.load(Ordering::Relaxed) ^ rule == key.0;
        Rule(if known { rule } else { 0 })
    })
}

pub(super) fn put(key: Key, rule: Rule) {
    if let Some(entry) = entry(key) {
        entry.mixed.store(key.0 ^ rule.0, Ordering::Relaxed);
        entry.rule.store(rule.0, Ordering::Relaxed);
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::super::super::tests::memfd;
    use super::*;

    #[test]
    fn a_rule_is_found_by_its_key_and_a_torn_pair_by_none() {
        share(&memfd(BYTES));
        assert!(is_shared());
        let image = super::super::image::image_of(libc::qsort as *const () as usize).unwrap();
        let mut known = Known::NONE;
        known.become_of(&image, 7);
        let address = image.start + 100;
        assert!(known.key(address, 8).is_none() && known.key(image.end, 7).is_none());
        let (key, other) = (known.key(address, 7).unwrap(), known.key(address + 1, 7).unwrap());
        let rule = Rule(0x1_0000_0804);
        put(key, rule);
        assert_eq!((get(key), get(other)), (rule, Rule(0)));
        entry(key).unwrap().rule.store(rule.0 ^ 8, Ordering::Relaxed);
        assert_eq!(get(key), Rule(0));
    }
}
