//! Other allocators in the same process.
mod support;
use support::{How, command, compile, fine, run};

#[test]
fn blocks_of_the_c_library_are_passed_on() {
    fine("foreign_blocks.c", &[How::Plain, How::Preload, How::Linked, How::Archive]);
    let program = compile("foreign_blocks.c", How::Preload, &[]);
    for mode in ["hardened", "hardened:full", "debug"] {
        let mut command = command(&program, How::Preload);
        run(command.env("HEAPWRIGHT", format!("mode={mode}"))).is_fine(mode);
    }
}

#[test]
fn a_program_keeps_its_own_allocator() {
    fine("own_malloc.c", &[How::Plain, How::Preload, How::Linked]);
}
