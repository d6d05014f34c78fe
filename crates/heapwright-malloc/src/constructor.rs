//! What happens when the library is loaded.
//!
//! Little may be assumed here: other libraries' constructors may have run
//! before, and allocated; the program's own will run after. Debug and hardened mode begin the heap
//! here. Fast mode asks the kernel here for facts that it needs, before the program can forbid
//! itself system calls (docs/platforms.md). Its heap begins with the first block.

use crate::{alloc_token, at_exit, cxx, ending_signals, fault_handler};
use heapwright::{heap, limit, status};

/// Before the constructors of a program that the archive is linked into, which
/// begin at priority 101.
#[used]
#[unsafe(link_section = ".init_array.00100")]
static CONSTRUCTOR: extern "C" fn() = construct;

/// Runs once, when the library is loaded.
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

/// What guarded blocks of fast mode need: to be told of faults.
#[cold]
fn begin_guarding() {
    fault_handler::install(heap::fault, false);
}

/// What only the debug heap needs: to know which call it was, and of faults.
#[cold]
pub(crate) fn begin_debugging() {
    // The heap asks the kernel now for all that the first block of a thread needs.
    let block = heap::malloc(1);
    // SAFETY: null, or a block of ours, freed once.
    unsafe { heap::free(block) };
    cxx::distinguish_forms();
    fault_handler::install(heap::fault, true);
    ending_signals::watch();
    heap::debug_prepare();
}
