//! What happens when the library is loaded.
//!
//! Little may be assumed here: other libraries' constructors may have run
//! before, and allocated; the program's own will run after. Nothing that the
//! allocator needs is done here, only what must be known before `main`.

use crate::{at_exit, cxx};

/// Before the constructors of a program that the archive is linked into, which
/// begin at priority 101.
#[used]
#[unsafe(link_section = ".init_array.00100")]
static CONSTRUCTOR: extern "C" fn() = construct;

/// Runs once, when the library is loaded.
extern "C" fn construct() {
    cxx::notice_replacements();
    at_exit::prepare();
}
