//! The measuring program with mimalloc v3 as its global allocator: what `Box`,
//! and every pool that takes its chunks from the global allocator, then uses.

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    pools::main()
}
