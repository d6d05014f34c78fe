//! Mappings: classifies memory that is not heapwright's.
//!
//! ```text
//!   name in /proc/self/maps     content
//!   (the running stack's)       Stack, with any name
//!   [stack]                     MainStack
//!   [heap]                      Break: the C library's main heap, below the program break
//!   /path                       Data if it is writable, else Code (and constants)
//!   none, [anon...]             Anonymous: any allocator's, any program's, other stacks
//!   [vdso], ...                 Special: the kernel's
//!   anon_inode:..., ...         Other
//! ```
//!
//! A program may run on a stack inside a block that it allocated. So only [`what_is_at`] looks for
//! the running stack: its callers have a pointer that is most likely a mistake. Called by `misuse`,
//! `debug`, `hooks` and `libc_block`.

use super::{Mapping, Unknown, is_on_this_stack, mapping_of};

/// The content of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// The running stack.
    Stack,
    /// The main thread's stack.
    MainStack,
    /// The C library's main heap.
    Break,
    /// A file's data.
    Data,
    /// A file's code or constants.
    Code,
    /// Memory without a file.
    Anonymous,
    /// Memory of the kernel.
    Special,
    /// A device, or another thing with a name and no path.
    Other,
}

impl Mapping {
    /// The content of the mapping, by its name.
    pub fn contents(&self) -> Contents {
        match self.name() {
            b"[stack]" => Contents::MainStack,
            b"[heap]" => Contents::Break,
            b"" => Contents::Anonymous,
            name if name.starts_with(b"/") => {
                if self.writable {
                    Contents::Data
                } else {
                    Contents::Code
                }
            }
            name if name.starts_with(b"[anon") => Contents::Anonymous,
            name if name.starts_with(b"[") => Contents::Special,
            _ => Contents::Other,
        }
    }
}

/// The content and the mapping at an address that is not heapwright's. `None`: nothing is mapped.
pub fn what_is_at(address: usize) -> Result<Option<(Contents, Mapping)>, Unknown> {
    let Some(mapping) = mapping_of(address)? else { return Ok(None) };
    let on_stack = is_on_this_stack(address);
    Ok(Some((if on_stack { Contents::Stack } else { mapping.contents() }, mapping)))
}

/// The memory of the C library's own allocator.
pub struct LibcHeap {
    /// The first byte of its main heap.
    pub start: usize,
    /// One past the last byte: the program break.
    pub end: usize,
    /// The bytes of blocks that are mappings of their own.
    pub mapped: usize,
}
