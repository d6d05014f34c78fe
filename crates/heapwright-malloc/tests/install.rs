//! `packaging/install.sh`: programs can link an installed library in every way.
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
        let output = Command::new(support::root().join("packaging/install.sh"))
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

/// The flags of pkg-config, which not every machine has.
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

/// Compiles a source with the installed files and nothing of this repository, and runs it.
fn builds_and_runs(compiler: &str, source: &std::path::Path, words: &[&str]) {
    let archive = prefix().join("lib/libheapwright.a").display().to_string();
    let shared = format!("{} -Wl,-rpath,{}/lib", flags().join(" "), prefix().display());
    let fixed = format!("-I{}/include {archive} -static", prefix().display());
    for linked in [shared, fixed] {
        let program = support::scratch().join("installed-example");
        let output = Command::new(compiler)
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(source)
            .args(linked.split(' '))
            .arg("-pthread")
            .output()
            .expect("there is a compiler");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} with {linked}: {told}", source.display());
        let outcome = run(command(&program, How::Plain).args(words));
        assert!(outcome.status.success(), "{} with {linked}: {outcome:?}", source.display());
        assert_eq!(outcome.stderr, "", "{} with {linked}", source.display());
    }
}

/// The README's examples and the tutorial's program, built as a user builds them.
#[test]
fn examples_build_from_the_installed_tree() {
    let root = support::root();
    let readme = std::fs::read_to_string(root.join("README.md")).expect("there");
    let block = readme.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let (include, body) = block.and_then(|block| block.split_once('\n')).expect("has C");
    let example = support::scratch().join("readme.c");
    let text = format!(
        "{include}\nstruct node {{ struct node *next; }};\nint main(void)\n{{\n{body}\n\
         return d.offset != 12;\n}}\n"
    );
    std::fs::write(&example, text).expect("written");
    builds_and_runs("cc", &example, &[]);
    builds_and_runs("c++", &support::source("hw_api_cxx.cc"), &[]);
    builds_and_runs("cc", &root.join("docs/toy-vm/toy.c"), &[]);
}

/// The flags above are those of pkg-config, if there is one.
#[test]
fn pkg_config_gives_these_flags() {
    let asked = Command::new("pkg-config")
        .args(["--cflags", "--libs", "heapwright"])
        .env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"))
        .output();
    let Ok(asked) = asked else { return support::skip("there is no pkg-config here") };
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let told = String::from_utf8(asked.stdout).expect("is text");
    assert_eq!(told.split_whitespace().collect::<Vec<_>>(), flags());
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
