//! Other allocators in the same process.
mod support;
use support::{How, fine};

#[test]
fn blocks_of_the_c_library_are_passed_on() {
    fine("foreign_blocks.c", &[How::Plain, How::Preload, How::Linked, How::Archive]);
}

#[test]
fn a_program_keeps_its_own_allocator() {
    fine("own_malloc.c", &[How::Plain, How::Preload, How::Linked]);
}
