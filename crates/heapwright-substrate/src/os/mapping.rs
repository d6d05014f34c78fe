//! Mappings: what memory is that is not heapwright's.
//!
//! ```text
//!   name in /proc/self/maps     what lies there
//!   (the running stack's)       Stack: whatever its name
//!   [stack]                     MainStack
//!   [heap]                      Break: the C library's main heap, below the program break
//!   /path                       Data where it is writable, else Code (and constants)
//!   none, [anon...]             Anonymous: any allocator's, any program's, other stacks
//!   [vdso], ...                 Special: the kernel's
//!   anon_inode:..., ...         Other
//! ```
//!
//! Callers with a pointer outside of the window ask here: `misuse`, to say what the pointer is; the
//! debug heap, to say what it leads to; `libc_block`, which looks for the C library's blocks only
//! in anonymous memory. Each caller decides what follows from the answer.
//!
//! A program may run on a stack inside a block that it allocated. So only
//! [`what_is_at`] looks for the running stack, because its caller has a pointer
//! that is most likely a mistake; [`Mapping::contents`] goes by the name alone.

use super::{Mapping, Unknown, is_on_this_stack, mapping_of};

/// What lies in a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// The stack that this runs on.
    Stack,
    /// The main thread's stack.
    MainStack,
    /// The C library's main heap.
    Break,
    /// A file's data.
    Data,
    /// A file's code or constants.
    Code,
    /// Memory of no file.
    Anonymous,
    /// Something of the kernel's.
    Special,
    /// A device, or something else that has a name and no path.
    Other,
}

impl Mapping {
    /// What lies in it, by its name.
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

/// What is at an address that is not heapwright's, and in which mapping; `None` where
/// nothing is mapped.
pub fn what_is_at(address: usize) -> Result<Option<(Contents, Mapping)>, Unknown> {
    let Some(mapping) = mapping_of(address)? else { return Ok(None) };
    let on_stack = is_on_this_stack(address);
    Ok(Some((if on_stack { Contents::Stack } else { mapping.contents() }, mapping)))
}

/// Memory that the C library's own allocator has from the kernel.
pub struct LibcHeap {
    /// The first byte of its main heap.
    pub start: usize,
    /// One past the last byte: the program break.
    pub end: usize,
    /// Blocks that are mappings of their own.
    pub mapped: usize,
}
