//! The measuring program with mimalloc v3 as its global allocator. `Box` uses it, and so do pools
//! that take their chunks from the global allocator.

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    pools::main()
}
