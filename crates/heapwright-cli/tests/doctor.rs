//! `heapwright doctor` on programs of many kinds, which the tests make.

mod common;

use common::{Folder, done, heapwright, stderr, stdout, text};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

const HELLO: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) { char *p = malloc(100); if (!p) return 1; puts("hello"); free(p); return 0; }
"#;

/// A malloc that is good enough to start a program.
const OWN_MALLOC: &str = r#"
#include <stddef.h>
#include <string.h>
static char memory[1 << 24];
static size_t used;
void *malloc(size_t n) {
    n = (n + 31) & ~(size_t)15;
    if (used + n > sizeof memory) return 0;
    size_t *p = (size_t *)(memory + used);
    used += n;
    *p = n - 16;
    return p + 2;
}
void free(void *p) { (void)p; }
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n) {
    void *q = malloc(n);
    if (p && q) { size_t old = ((size_t *)p)[-2]; memcpy(q, p, old < n ? old : n); }
    return q;
}
"#;

fn ask(command: &mut Command) -> (i32, Value) {
    let output = done(command);
    let text = stdout(&output);
    let value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", stderr(&output)));
    (output.status.code().expect("exited"), value)
}

fn doctor(program: &Path) -> (i32, Value) {
    ask(heapwright().args(["doctor", "--format", "json", "--"]).arg(program))
}

/// Returns the codes of the doctor's findings, without those about the machine.
fn codes(answer: &Value) -> Vec<&str> {
    let findings = answer["findings"].as_array().expect("is a list");
    let codes = findings.iter().map(|finding| finding["code"].as_str().expect("is text"));
    codes.filter(|&code| !["small-folios-off", "hardened"].contains(&code)).collect()
}

#[track_caller]
fn says(program: &Path, exit: i32, expected: &[&str]) {
    let (code, answer) = doctor(program);
    assert_eq!(codes(&answer), expected, "{answer:#}");
    assert_eq!(code, exit, "{answer:#}");
    let verdict = ["yes", "no", "unknown"][usize::try_from(exit).expect("is small")];
    assert_eq!(answer["verdict"], json!(verdict));
}

#[test]
fn dynamic_programs_are_taken_over() {
    let folder = Folder::new();
    says(&folder.compile("pie", &["-pie", "-fPIE"], HELLO), 0, &[]);
    says(&folder.compile("fixed", &["-no-pie"], HELLO), 0, &[]);
    says(&folder.compile("stripped", &["-s"], HELLO), 0, &[]);
}

#[test]
fn static_programs_are_not() {
    let folder = Folder::new();
    says(&folder.compile("static", &["-static"], HELLO), 1, &["static"]);
    says(&folder.compile("static-pie", &["-static-pie", "-fPIE"], HELLO), 1, &["static"]);
    says(&folder.compile("static-stripped", &["-static", "-s"], HELLO), 1, &["static"]);
}

#[test]
fn files_that_are_no_programs_are_reported() {
    let folder = Folder::new();
    let library = folder.compile("lib.so", &["-shared", "-fPIC"], "int x;");
    says(&library, 1, &["not-a-program"]);
    let object = folder.compile("x.o", &["-c"], "int x;");
    fs::set_permissions(&object, PermissionsExt::from_mode(0o755)).expect("set");
    says(&object, 1, &["not-a-program"]);
    says(&folder.file("data", [0, 1, 2]), 1, &["not-executable"]);
    says(&folder.script("binary", "\0\u{1}\u{2}"), 1, &["not-elf"]);
    says(&folder.script("damaged", "\x7fELF\u{2}\u{1}"), 2, &["damaged"]);
    let (code, answer) = doctor(Path::new("/nonexistent"));
    assert_eq!((code, codes(&answer), &answer["verdict"]), (2, vec!["not-found"], &json!("no")));
    says(&folder.path(""), 1, &["not-executable"]);
}

#[test]
fn foreign_formats_are_reported() {
    let folder = Folder::new();
    let bytes = fs::read(folder.compile("x", &[], HELLO)).expect("there");
    let patched = |name: &str, at: usize, value: u8| {
        let mut copy = bytes.clone();
        copy[at] = value;
        let path = folder.file(name, copy);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("set");
        path
    };
    // In an ELF header, e_machine 8 is MIPS, and EI_CLASS 1 is 32-bit.
    says(&patched("mips", 18, 8), 1, &["other-machine"]);
    says(&patched("short", 4, 1), 1, &["32-bit"]);
    let loader = |name: &str| {
        let flag = format!("-Wl,--dynamic-linker={name}");
        folder.compile("loader", &[&flag], HELLO)
    };
    says(&loader("/lib/ld-musl-x86_64.so.1"), 1, &["musl"]);
    says(&loader("/nonexistent/ld-linux.so.2"), 1, &["no-loader"]);
    says(&loader("/bin/true"), 2, &["other-loader"]);
}

#[test]
fn own_allocators_are_found() {
    let folder = Folder::new();
    let with = |name: &str, flags: &[&str], more: &str| {
        folder.compile(name, flags, &format!("{HELLO}\n{more}"))
    };
    says(&with("own", &[], OWN_MALLOC), 1, &["own-malloc"]);
    let (_, answer) = doctor(&folder.path("own"));
    let words = answer["findings"][0]["text"].as_str().expect("is text");
    for name in ["malloc", "calloc", "realloc", "free"] {
        assert!(words.contains(name), "{words}");
    }
    let hidden = "-fvisibility=hidden";
    says(&with("hidden", &[hidden], OWN_MALLOC), 1, &["own-malloc"]);
    let mimalloc = "void *mi_malloc(size_t n) { return malloc(n); }";
    says(&with("carried", &[], mimalloc), 2, &["own-allocator"]);
    let says_so = "const char text[] = \"<jemalloc>: Error\\n\";";
    says(&with("hinted", &["-s"], says_so), 2, &["own-allocator"]);
    let sanitizer = "void __asan_init(void) {}";
    says(&with("sanitized", &[], sanitizer), 1, &["sanitizer"]);
    let go = "__attribute__((section(\".go.buildinfo\"))) const char info[16] = \"x\";";
    says(&with("go", &[], go), 1, &["go"]);
}

#[test]
fn linked_allocators_are_preceded() {
    let folder = Folder::new();
    let library =
        "void *malloc(unsigned long); void *mallocx(unsigned long n) { return malloc(n); }";
    let flags = ["-shared", "-fPIC", "-Wl,-soname,libjemalloc.so.2"];
    let library = folder.compile("libjemalloc.so.2", &flags, library);
    let search = format!("-Wl,-rpath,{}", text(&folder.path("")));
    let source = format!("{HELLO}\nvoid *mallocx(size_t);\nvoid *(*use)(size_t) = mallocx;");
    let code = folder.file("linked.c", source);
    let program = folder.path("linked");
    let status = Command::new("cc")
        .arg(&search)
        .arg("-o")
        .arg(&program)
        .args([&code, &library])
        .status()
        .expect("compiles");
    assert!(status.success());
    says(&program, 0, &["linked-allocator", "named-calls"]);
}

#[test]
fn rust_programs_are_known_by_their_allocator() {
    let folder = Folder::new();
    let rust = |name: &str, flags: &[&str], source: &str| {
        let code = folder.file(&format!("{name}.rs"), source);
        let path = folder.path(name);
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = done(Command::new(compiler).args(flags).arg("-o").arg(&path).arg(&code));
        assert!(output.status.success(), "{}", stderr(&output));
        path
    };
    let main = "fn main() { println!(\"{:?}\", vec![1; std::env::args().count()]); }";
    let counting = format!(
        "{main}
        struct Counting;
        unsafe impl std::alloc::GlobalAlloc for Counting {{
            unsafe fn alloc(&self, l: std::alloc::Layout) -> *mut u8 {{
                unsafe {{ std::alloc::System.alloc(l) }}
            }}
            unsafe fn dealloc(&self, p: *mut u8, l: std::alloc::Layout) {{
                unsafe {{ std::alloc::System.dealloc(p, l) }}
            }}
        }}
        #[global_allocator]
        static A: Counting = Counting;"
    );
    let carrying = format!(
        "{counting}
        #[unsafe(no_mangle)]
        pub extern \"C\" fn mi_malloc(_: usize) -> *mut u8 {{ std::ptr::null_mut() }}
        #[used]
        static KEEP: extern \"C\" fn(usize) -> *mut u8 = mi_malloc;"
    );
    says(&rust("plain", &[], main), 0, &[]);
    says(&rust("stripped", &["-Cstrip=symbols"], main), 0, &["rust-allocator-hidden"]);
    let merged = ["-Clto=fat", "-Copt-level=3"];
    says(&rust("merged", &merged, main), 0, &["rust-allocator-hidden"]);
    says(&rust("counting", &[], &counting), 2, &["global-allocator"]);
    says(&rust("carrying", &[], &carrying), 1, &["global-allocator"]);
}

#[test]
fn programs_that_gain_privileges_are_reported() {
    let folder = Folder::new();
    let program = folder.compile("gains", &[], HELLO);
    let owner = fs::metadata(&program).expect("there").uid();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("set");
    // The program is ours: we gain nothing, and others are warned.
    says(&program, 0, &["privileged-for-others"]);
    if owner == 0 {
        chown(&program, Some(65534), Some(65534)).expect("given away");
        fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("set");
        says(&program, 1, &["set-uid"]);
        fs::set_permissions(&program, PermissionsExt::from_mode(0o2755)).expect("set");
        says(&program, 1, &["set-gid"]);
        let output = done(&mut common::run(&["--stats"], &[text(&program)]));
        assert!(
            stderr(&output).contains("it is set-gid: the loader ignores"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn scripts_lead_to_their_interpreters() {
    let folder = Folder::new();
    let own = folder.compile("own", &[], &format!("{HELLO}\n{OWN_MALLOC}"));
    let script = |name: &str, line: &str| folder.script(name, &format!("#!{line}\n"));
    says(&script("sh", "/bin/sh -e"), 0, &["script"]);
    says(&script("env", "/usr/bin/env sh"), 0, &["script"]);
    says(&script("clean", "/usr/bin/env -S -i sh"), 1, &["environment-dropped", "script"]);
    says(&script("own-malloc", text(&own)), 1, &["script", "own-malloc"]);
    says(&script("lost", "/nonexistent/x"), 1, &["script", "not-found"]);
    says(&folder.script("text", "echo hello\n"), 0, &["no-interpreter-line"]);
    let circle = folder.path("circle");
    let circle = folder.script("circle", &format!("#!{}\n", circle.display()));
    let (code, answer) = doctor(&circle);
    assert_eq!((code, codes(&answer).last()), (1, Some(&"loop")));

    let nested = folder.script("nested", &format!("#!{}\n", folder.path("sh").display()));
    let (_, answer) = doctor(&nested);
    let steps = answer["steps"].as_array().expect("is a list");
    assert_eq!(steps.len(), 3, "{answer:#}");
    assert_eq!(steps[0]["path"], json!(text(&nested)));
    assert_eq!(steps[2]["path"], json!("/bin/sh"));
}

#[test]
fn commands_are_found_as_the_shell_finds_them() {
    let folder = Folder::new();
    let program = folder.compile("hw-test-program", &[], HELLO);
    let link = folder.path("hw-test-link");
    symlink(&program, &link).expect("linked");
    for name in ["hw-test-program", "hw-test-link"] {
        let mut command = heapwright();
        command.args(["doctor", "--format", "json", name]).env("PATH", folder.path(""));
        let (code, answer) = ask(&mut command);
        assert_eq!(code, 0, "{answer:#}");
        assert_eq!(answer["steps"][0]["path"], json!(text(&folder.path(name))));
    }
}

#[test]
fn nothing_is_run_unless_asked() {
    let folder = Folder::new();
    let mark = folder.path("mark");
    let script = folder.script("touches", &format!("#!/bin/sh\necho hi; >'{}'\n", text(&mark)));
    let output = done(heapwright().arg("doctor").arg(&script));
    assert_eq!(output.status.code(), Some(0));
    assert!(!mark.exists());
    let output = done(heapwright().args(["doctor", "--try"]).arg(&script));
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(mark.exists());
    assert!(stdout(&output).starts_with("yes: heapwright takes effect on "), "{}", stdout(&output));
    assert_eq!(stderr(&output), "hi\n", "the program's stdout belongs on stderr");
}

#[test]
fn trying_settles_what_files_do_not_show() {
    let folder = Folder::new();
    let tried = |program: &Path| {
        let mut command = heapwright();
        command.args(["doctor", "--format", "json", "--try"]).arg(program);
        let (code, answer) = ask(&mut command);
        (code, answer["trial"]["outcome"].as_str().expect("is text").to_owned(), answer)
    };
    let (code, outcome, answer) = tried(&folder.compile("plain", &[], HELLO));
    assert_eq!((code, &*outcome), (0, "loaded"));
    assert!(answer["trial"]["allocations"].as_u64() > Some(0), "{answer:#}");
    let carried = format!("{HELLO}\nvoid *mi_malloc(size_t n) {{ return malloc(n); }}");
    let (code, outcome, _) = tried(&folder.compile("carried", &[], &carried));
    assert_eq!((code, &*outcome), (0, "loaded"), "the run overrules the suspicion");
    let (code, outcome, _) = tried(&folder.compile("static", &["-static"], HELLO));
    assert_eq!((code, &*outcome), (1, "not-loaded"));
    let killed = "#include <signal.h>\nint main(void) { return raise(SIGKILL); }";
    let (code, outcome, _) = tried(&folder.compile("killed", &[], killed));
    assert_eq!((code, &*outcome), (0, "killed"), "the files' answer stands");
    let (code, outcome, _) = tried(Path::new("/nonexistent"));
    assert_eq!((code, &*outcome), (2, "not-started"));
}

#[test]
fn a_command_that_is_not_there_is_a_mistake() {
    let output = done(heapwright().args(["doctor", "heapwright-no-such-command"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("command not found"), "{}", stdout(&output));
}

#[test]
fn arguments_are_refused_where_nothing_is_run() {
    let output = done(heapwright().args(["doctor", "ls", "-l"]));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output), "heapwright: arguments of the program are only used with --try\n");
}

#[test]
fn what_hardened_mode_would_have_is_said() {
    let folder = Folder::new();
    let program = folder.compile("plain", &[], HELLO);
    let said = |answer: &Value| -> Option<String> {
        let findings = answer["findings"].as_array().expect("is a list");
        let found = findings.iter().find(|finding| finding["code"] == "hardened")?;
        assert_eq!(found["verdict"], json!("yes"), "a remark, and no more");
        Some(found["text"].as_str().expect("is text").to_owned())
    };
    let (code, answer) = doctor(&program);
    let text = said(&answer).expect("is said");
    assert_eq!(code, 0);
    for words in ["guards", "read-only", "random choices by ", "at a random place"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The limits of this process apply to the program, too.
    let mut limited = Command::new("sh");
    let script = "ulimit -v 4000000; exec \"$@\"";
    limited.args(["-c", script, "sh", env!("CARGO_BIN_EXE_heapwright"), "doctor"]);
    limited
        .args(["--format", "json"])
        .arg(&program)
        .env_remove("HEAPWRIGHT")
        .env_remove("LD_PRELOAD");
    let (code, answer) = ask(&mut limited);
    let text = said(&answer).expect("is said");
    assert_eq!(code, 0);
    assert!(text.contains("limited to 3906 MiB (ulimit -v)"), "{text}");
    // If the library does not get into a program, the answer promises nothing.
    let (_, answer) = doctor(&folder.compile("static", &["-static"], HELLO));
    assert_eq!(said(&answer), None);
}

/// Each program file counts once, in its kind. A script, and a link to a program, do not count.
#[test]
fn a_whole_machine_is_counted_by_what_becomes_of_its_programs() {
    let folder = Folder::new();
    folder.compile("dynamic", &[], HELLO);
    folder.compile("static", &["-static"], HELLO);
    let privileged = folder.compile("privileged", &[], HELLO);
    fs::set_permissions(&privileged, PermissionsExt::from_mode(0o4755)).expect("set");
    folder.script("script", "#!/bin/sh\n");
    symlink("dynamic", folder.path("link")).expect("linked");
    let (code, answer) = ask(heapwright()
        .args(["doctor", "--system", "--format", "json"])
        .env("PATH", folder.path("")));
    // The exit code depends only on this machine's /etc/ld.so.preload.
    let wrong =
        answer["preload"].as_array().expect("is a list").iter().any(|of| of["wrong"] == true);
    assert_eq!(code, i32::from(wrong), "{answer:#}");
    assert_eq!(answer["programs"], 3, "{answer:#}");
    let kinds = answer["kinds"].as_array().expect("is a list");
    let mut kinds: Vec<_> =
        kinds.iter().map(|kind| (kind["code"].as_str(), &kind["examples"])).collect();
    kinds.sort_by_key(|kind| kind.0);
    assert_eq!(
        kinds,
        [(Some("privileged"), &json!(["privileged"])), (Some("static"), &json!(["static"]))]
    );

    let output = done(heapwright().args(["doctor", "--system", "ls"]));
    assert_eq!(output.status.code(), Some(2));
}
