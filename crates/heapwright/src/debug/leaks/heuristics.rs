//! Heuristics: pointers into the middle of a block that surely lead to it.
//!
//! ```text
//!   stdstring            | length | capacity | count | characters ...   a std::string's characters
//!   length64             ... | bytes that follow | bytes ...            the bytes
//!   newarray             | cookie: count | element | element | ...      the first element
//!   multipleinheritance  | vtable | fields ... | vtable | fields ...    a second base
//! ```
//!
//! The heuristics are memcheck's (`--leak-check-heuristics`), with two differences. The length may
//! be at any offset, because allocators put it behind their headers. The cookie of an over-aligned
//! type is as long as the alignment. Called by `mark`, for a pointer to the middle of a block that
//! no better pointer has led to yet.

use heapwright_record::debug::{Origin, Root};

use crate::options::leaks::Heuristics;
use crate::os::ProcMem;

use super::index::Block;
use super::mark::BY_KERNEL;
use super::roots::Roots;

const WORD: usize = size_of::<usize>();
/// No vtable is below this address.
const LEAST_VTABLE: usize = 4096;
/// The most words read of a vtable. The first two that are not zero must lead to code.
const VTABLE_WORDS: usize = 20;

#[cold]
pub(super) fn holds(
    chosen: Heuristics,
    block: &Block,
    pointer: usize,
    proc_mem: &ProcMem,
    roots: &Roots,
) -> bool {
    let offset = pointer - block.start;
    if offset < WORD || !offset.is_multiple_of(WORD) || !block.start.is_multiple_of(WORD) {
        return false;
    }
    let word = |at: usize| word_of(block, at, proc_mem);
    let rest = block.size - offset;
    let is_string = || {
        let capacity = word(WORD);
        capacity == block.size.checked_sub(3 * WORD + 1)
            && word(0).is_some_and(|length| Some(length) <= capacity)
    };
    let count = || word(offset - WORD).filter(|&count| count != 0);
    let is_array = || count().is_some_and(|count| rest.is_multiple_of(count));
    let cookie = match Origin::from_u8(block.word.origin()) {
        Origin::AlignedNewArray => block.word.align(),
        _ => WORD,
    };
    let has_vtable = |at: usize| word(at).is_some_and(|vtable| is_vtable(vtable, proc_mem, roots));
    chosen.std_string && offset == 3 * WORD && is_string()
        || chosen.length64 && count() == Some(rest)
        || chosen.new_array && offset == cookie && is_array()
        || chosen.multiple_inheritance && has_vtable(offset) && has_vtable(0)
}

fn word_of(block: &Block, offset: usize, proc_mem: &ProcMem) -> Option<usize> {
    if offset.checked_add(WORD)? > block.size {
        return None;
    }
    if block.size < BY_KERNEL {
        let place = block.place.block().wrapping_add(offset).cast::<usize>();
        // SAFETY: an aligned word of a live block, which stays live; a concurrent write yields some
        // word.
        return Some(unsafe { place.read_volatile() });
    }
    let mut words = [0; 1];
    let got = proc_mem.read_words(block.start + offset, &mut words);
    (got == 1).then_some(words[0])
}

fn is_vtable(address: usize, proc_mem: &ProcMem, roots: &Roots) -> bool {
    if address < LEAST_VTABLE || !address.is_multiple_of(WORD) {
        return false;
    }
    let is_data = |address: usize| roots.regions(Root::Globals).any(|data| data.contains(address));
    if !is_data(address) {
        return false;
    }
    let mut words = [0; VTABLE_WORDS];
    let got = proc_mem.read_words(address, &mut words);
    let entries = words[..got].iter().filter(|&&entry| entry != 0);
    let is_code = |entry: usize| crate::stacks::module_range(entry).is_some() && !is_data(entry);
    let mut entries = entries.map(|&entry| is_code(entry));
    entries.next() == Some(true) && entries.next() == Some(true)
}
