//! `ci/install.sh`: an installed library can be linked with, in every way.
mod support;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use support::{How, command, compile, run};

fn prefix() -> &'static PathBuf {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = support::scratch().join("prefix");
        let _ = std::fs::remove_dir_all(&prefix);
        let output = Command::new(support::root().join("ci/install.sh"))
            .arg(&prefix)
            .env("HEAPWRIGHT_LIBRARY_DIR", support::library())
            .env_remove("DESTDIR")
            .env_remove("LIBDIR")
            .output()
            .expect("the script runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        prefix
    })
}

/// The flags that pkg-config would give; not every machine has it.
fn flags() -> Vec<String> {
    let text = std::fs::read_to_string(prefix().join("lib/pkgconfig/heapwright.pc"))
        .expect("the file is installed");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.trim().to_owned()
    };
    let prefix = value("prefix=");
    let flags = format!("{} {}", value("Cflags:"), value("Libs:"))
        .replace("${includedir}", &value("includedir="))
        .replace("${libdir}", &value("libdir="))
        .replace("${prefix}", &prefix);
    assert!(!flags.contains('@') && !flags.contains('$'), "{flags}");
    flags.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn programs_find_it_with_pkg_config() {
    let mut flags = flags();
    flags.push(format!("-Wl,-rpath,{}/lib", prefix().display()));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = compile("hw_api.c", How::Plain, &flags);
    run(&mut command(&program, How::Plain)).is_fine("hw_api.c");
}

/// The installed archive's operators are weak: a program's own win.
#[test]
fn operators_may_be_replaced_in_a_static_program() {
    let archive = prefix().join("lib/libheapwright.a").display().to_string();
    for flags in [&[archive.as_str()][..], &[archive.as_str(), "-static"]] {
        for source in ["cxx_replaced.cc", "cxx_operators.cc", "cxx_handler_throws.cc"] {
            let program = compile(source, How::Plain, flags);
            run(&mut command(&program, How::Plain)).is_fine((source, flags));
        }
    }
}

#[test]
fn the_archive_shows_what_the_shared_library_shows() {
    let names = |arguments: &[&str], file: &str| {
        let output = Command::new("nm")
            .args(arguments)
            .arg(prefix().join("lib").join(file))
            .output()
            .expect("nm (of binutils) runs");
        let mut names: Vec<String> = String::from_utf8(output.stdout)
            .expect("text")
            .lines()
            .filter_map(|line| line.split_whitespace().nth(2).map(str::to_owned))
            .filter(|name| name != "dlopen" && name != "dlclose")
            .collect();
        names.sort();
        names
    };
    let archive = names(&["-g", "--defined-only"], "libheapwright.a");
    let shared = names(&["-D", "--defined-only"], "libheapwright.so");
    assert!(archive.len() > 40);
    assert_eq!(archive, shared);
}
