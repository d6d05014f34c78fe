//! The blocks of one pool, arena or first-class heap that is checked.
//!
//! In `mode=debug`, and in a pool with `hw_pool_options.checked`, each object is a block of the
//! process's heap. This table knows the blocks of one owner:
//!
//! ```text
//!   allocate   a block of the heap --> table
//!   free       in the table?  --> out of it, back to the heap
//!              else           --> a finding (mode=debug), or one line and the program's end
//! ```
//!
//! | | order | words | so a leak check |
//! |---|---|---|---|
//! | pools, heaps | by hash | inverted | finds blocks that no pointer of the program leads to |
//! | pools that are walked | by hash | plain | counts blocks as reachable: a walk finds them |
//! | arenas | in the order of allocation | plain | counts blocks as reachable: they end together |
//!
//! The table lies in memory of its own (`mmap`): a block of the heap would be one of the program's.

use core::ptr;

use crate::text::Text;
use heapwright::debug::{Owner, allocate_owned, free_owned, refuse_owned};
use heapwright::{BlockState, describe, heap, process};

pub(crate) struct Owned {
    owner: Owner,
    /// `capacity` words, of which 0 is an empty one. Null before the first block.
    words: *mut usize,
    capacity: usize,
    /// Words in use: blocks, and in an arena also the gaps that frees left.
    count: usize,
    /// The exclusive-or of an address and its word.
    inversion: usize,
}

/// The word of a block that an arena has freed.
const GAP: usize = 1;
/// Words of the first table: a page.
const FIRST: usize = 512;

impl Owned {
    pub(crate) const fn new(owner: Owner) -> Self {
        let inversion = if matches!(owner, Owner::Arena) { 0 } else { usize::MAX };
        Self { owner, words: ptr::null_mut(), capacity: 0, count: 0, inversion }
    }

    fn is_ordered(&self) -> bool {
        self.owner == Owner::Arena
    }

    fn words(&mut self) -> &mut [usize] {
        if self.words.is_null() {
            return &mut [];
        }
        // SAFETY: the mapping has `capacity` words, and only this table knows it.
        unsafe { core::slice::from_raw_parts_mut(self.words, self.capacity) }
    }

    /// The number of blocks, and in an arena also of the gaps.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Allocates a block. Returns null if there is no memory.
    pub(crate) fn allocate(&mut self, size: usize, align: usize, zero: bool) -> *mut u8 {
        let block = match allocate_owned(self.owner, size, align, zero) {
            Some(block) => block.as_ptr(),
            None if heap::debugging() => ptr::null_mut(),
            None if zero => heap::calloc_aligned(size, align),
            None => heap::malloc_aligned(size, align),
        };
        if !block.is_null() && !self.insert(block.addr()) {
            self.release(block);
            return ptr::null_mut();
        }
        block
    }

    /// Frees a block, or reports that this owner has no such block.
    pub(crate) fn free(&mut self, block: *mut u8, what: &str, name: &[u8]) {
        if self.remove(block.addr()) {
            return self.release(block);
        }
        if !heap::debugging() {
            let mut line = Text::<256>::new();
            line.str("heapwright: ").str(what).str(": ").address(block.addr());
            line.str(" is no object in use of \"").name(name).str("\"\n");
            process::write_stderr(line.bytes());
            // SAFETY: the call ends the process.
            unsafe { libc::abort() };
        }
        if size_of_live(block).is_some() {
            refuse_owned(self.owner, block);
        } else {
            // SAFETY: no block is in use there, so this reports a mistake.
            unsafe { free_owned(self.owner, block) };
        }
    }

    fn release(&self, block: *mut u8) {
        if heap::debugging() {
            // SAFETY: the owner's user gave the block up.
            unsafe { free_owned(self.owner, block) };
        } else {
            // SAFETY: `allocate` took the block from the heap, and its user gave it up.
            unsafe { heap::free(block) };
        }
    }

    /// Frees all blocks, or an arena's blocks from the `from`th on. Returns their bytes.
    pub(crate) fn free_from(&mut self, from: usize) -> usize {
        let (ordered, inversion) = (self.is_ordered(), self.inversion);
        let first = if ordered { from.min(self.count) } else { 0 };
        let mut bytes = 0;
        let end = if ordered { self.count } else { self.capacity };
        for at in first..end {
            let word = core::mem::take(&mut self.words()[at]);
            if word != 0 && word != GAP {
                let block = ptr::with_exposed_provenance_mut::<u8>(word ^ inversion);
                // (`free` may have freed it, which was reported.)
                if let Some(size) = size_of_live(block) {
                    bytes += size;
                    self.release(block);
                }
            }
        }
        self.count = first;
        bytes
    }

    pub(crate) fn has(&mut self, block: usize) -> bool {
        self.find(block).is_some()
    }

    /// Calls `visit` with each block, in the order of addresses, until it returns false. Returns
    /// whether the walk came to the end. Without memory to sort in, returns false.
    pub(crate) fn walk(&mut self, mut visit: impl FnMut(*mut u8) -> bool) -> bool {
        // From now on a leak check finds the blocks that a walk finds.
        let inversion = core::mem::replace(&mut self.inversion, 0);
        if inversion != 0 {
            self.words().iter_mut().filter(|word| **word != 0).for_each(|word| *word ^= inversion);
            // (A word's place depends on the address alone, so the words can change in place.)
        }
        let Some((copy, bytes)) = map(self.capacity.max(1)) else { return false };
        // SAFETY: the mapping has room for the words, and only this call knows it.
        let sorted = unsafe { core::slice::from_raw_parts_mut(copy, self.capacity) };
        sorted.copy_from_slice(self.words());
        sorted.sort_unstable();
        let mut all = true;
        for &word in sorted.iter().filter(|word| **word > GAP) {
            all = visit(ptr::with_exposed_provenance_mut(word));
            if !all {
                break;
            }
        }
        unmap(copy, bytes);
        all
    }

    fn find(&mut self, block: usize) -> Option<usize> {
        let word = block ^ self.inversion;
        if self.is_ordered() {
            let count = self.count;
            return self.words()[..count].iter().rposition(|&other| other == word);
        }
        let mask = self.capacity.checked_sub(1)?;
        let mut at = hash(block) & mask;
        loop {
            match self.words()[at] {
                0 => return None,
                other if other == word => return Some(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn insert(&mut self, block: usize) -> bool {
        if (self.count + 1) * 4 > self.capacity * 3 && !self.grow() {
            return false;
        }
        let (word, count) = (block ^ self.inversion, self.count);
        let at = if self.is_ordered() { count } else { self.free_place(block) };
        self.words()[at] = word;
        self.count += 1;
        true
    }

    fn free_place(&mut self, block: usize) -> usize {
        let mask = self.capacity - 1;
        let mut at = hash(block) & mask;
        while self.words()[at] != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    fn remove(&mut self, block: usize) -> bool {
        let Some(mut at) = self.find(block) else { return false };
        if self.is_ordered() {
            self.words()[at] = GAP;
            // The last block's place is used again.
            let count = self.count;
            let gaps = self.words()[..count].iter().rev().take_while(|word| **word == GAP).count();
            self.count -= gaps;
            return true;
        }
        self.count -= 1;
        // Later words of the run move up, but not to before their own places.
        let (mask, inversion) = (self.capacity - 1, self.inversion);
        let mut next = at;
        loop {
            next = (next + 1) & mask;
            let word = self.words()[next];
            if word == 0 {
                break;
            }
            let wanted = hash(word ^ inversion) & mask;
            if (next.wrapping_sub(wanted) & mask) >= (next.wrapping_sub(at) & mask) {
                self.words()[at] = word;
                at = next;
            }
        }
        self.words()[at] = 0;
        true
    }

    fn grow(&mut self) -> bool {
        let capacity = (self.capacity * 2).max(FIRST);
        let Some((words, _)) = map(capacity) else { return false };
        let mut old = core::mem::replace(self, Self { words, capacity, ..Self::new(self.owner) });
        self.inversion = old.inversion;
        if self.is_ordered() {
            let count = old.count;
            self.words()[..count].copy_from_slice(&old.words()[..count]);
            self.count = count;
        } else {
            for &word in old.words().iter().filter(|word| **word != 0) {
                let at = self.free_place(word ^ self.inversion);
                self.words()[at] = word;
                self.count += 1;
            }
        }
        true
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.words.is_null() {
            unmap(self.words, self.capacity * size_of::<usize>());
        }
    }
}

fn hash(block: usize) -> usize {
    (block >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

/// Returns the bytes of the block in use that begins at an address, or `None` if there is none.
fn size_of_live(block: *const u8) -> Option<usize> {
    let found = describe(block);
    (found.state == BlockState::InUse && found.block == block.addr()).then_some(found.size)
}

/// Maps zeroed words. Returns the mapping's bytes, too.
fn map(words: usize) -> Option<(*mut usize, usize)> {
    let bytes = words.checked_mul(size_of::<usize>())?;
    let (how, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping replaces nothing.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, how, flags, -1, 0) };
    (at != libc::MAP_FAILED).then_some((at.cast(), bytes))
}

fn unmap(at: *mut usize, bytes: usize) {
    // SAFETY: a mapping of `map` with this length, which is not used any more.
    unsafe { libc::munmap(at.cast(), bytes) };
}
