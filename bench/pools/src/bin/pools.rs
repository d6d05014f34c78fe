//! The measuring program over glibc's `malloc`: see the library.

fn main() -> std::process::ExitCode {
    pools::main()
}
