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

/// The flags of pkg-config, which not every machine has. `is_static` means for a static program.
fn flags(is_static: bool) -> Vec<String> {
    let text = std::fs::read_to_string(prefix().join("lib/pkgconfig/heapwright.pc"))
        .expect("the file is installed");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.trim().to_owned()
    };
    let prefix = value("prefix=");
    let private = if is_static { value("Libs.private:") } else { String::new() };
    let flags = format!("{} {} {private}", value("Cflags:"), value("Libs:"))
        .replace("${includedir}", &value("includedir="))
        .replace("${libdir}", &value("libdir="))
        .replace("${prefix}", &prefix);
    assert!(!flags.contains('@') && !flags.contains('$'), "{flags}");
    flags.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn programs_find_it_with_pkg_config() {
    let mut flags = flags(false);
    flags.push(format!("-Wl,-rpath,{}/lib", prefix().display()));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = compile("hw_api.c", How::Plain, &flags);
    run(&mut command(&program, How::Plain)).is_fine("hw_api.c");
}

fn builds_and_runs(compiler: &str, source: &std::path::Path, words: &[&str]) {
    let shared = format!("{} -Wl,-rpath,{}/lib", flags(false).join(" "), prefix().display());
    let fixed = format!("-static {}", flags(true).join(" "));
    for linked in [shared, fixed] {
        // Tests run at the same time: each source has a program of its own.
        let name = source.file_name().expect("is a file").to_string_lossy();
        let program = support::scratch().join(format!("installed-{name}.out"));
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

#[test]
fn a_program_for_each_part_builds_from_the_installed_tree() {
    let page = std::fs::read_to_string(support::root().join("docs/book/reference/c.md"));
    let page = page.expect("there");
    let mut count = 0;
    for block in page.split("<!-- file: ").skip(1) {
        let (name, rest) = block.split_once(" -->\n```c\n").expect("a program behind its name");
        let source = support::scratch().join(name);
        std::fs::write(&source, rest.split("```").next().expect("ends")).expect("written");
        builds_and_runs("cc", &source, &[]);
        count += 1;
    }
    assert!(count >= 7, "only {count} programs");
}

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

#[test]
fn pkg_config_gives_these_flags() {
    for (words, is_static) in
        [(&["--cflags", "--libs"][..], false), (&["--cflags", "--static", "--libs"], true)]
    {
        let asked = Command::new("pkg-config")
            .args(words)
            .arg("heapwright")
            .env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"))
            .output();
        let Ok(asked) = asked else { return support::skip("there is no pkg-config here") };
        assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
        let told = String::from_utf8(asked.stdout).expect("is text");
        assert_eq!(told.split_whitespace().collect::<Vec<_>>(), flags(is_static));
    }
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
