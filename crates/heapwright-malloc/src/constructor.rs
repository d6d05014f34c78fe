//! The start of the library when it is loaded.
//!
//! Other libraries' constructors may have run and allocated before this one. The program's
//! constructors run after it. Debug and hardened mode begin the heap here. Fast mode reads facts
//! from the kernel here, before the program can forbid itself system calls (docs/platforms.md). Its
//! heap begins with the first block.

use crate::{alloc_token, at_exit, cxx, ending_signals, fault_handler};
use heapwright::{heap, limit, status};

/// Runs before the constructors of a program with the archive, which begin at priority 101.
#[used]
#[unsafe(link_section = ".init_array.00100")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    heap::take_over();
    cxx::notice_replacements();
    if heap::debugging() {
        begin_debugging();
    } else {
        if heap::hardens() {
            let has_own_new = !cxx::distinguish_forms();
            alloc_token::begin(has_own_new);
        }
        if heap::guarding() {
            begin_guarding();
        }
    }
    #[cfg(heapwright_bounds)]
    crate::bounds::prepare();
    at_exit::prepare();
    limit::respect();
    status::publish();
}

#[cold]
fn begin_guarding() {
    fault_handler::install(heap::fault, false);
}

/// Prepares the debug heap: operators report their form, and faults and ending signals are caught.
#[cold]
pub(crate) fn begin_debugging() {
    // This block makes the heap get from the kernel now all memory that a thread's first block
    // needs. `debug_prepare` takes this block out of the counts.
    let block = heap::malloc(0);
    // SAFETY: the block is null or was just allocated, and is freed once.
    unsafe { heap::free(block) };
    cxx::distinguish_forms();
    fault_handler::install(heap::fault, true);
    ending_signals::watch();
    heap::debug_prepare();
}
