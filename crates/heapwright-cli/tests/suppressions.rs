//! Suppressions and names as memcheck has them: the first line of a block, callers of `main`,
//! heuristics and counts, and a library's functions with and without its debug file.

mod common;

use common::{Folder, done, heapwright, stderr, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn valgrind(folder: &Folder, flags: &[&str], words: &[&str]) -> Output {
    let mut command = heapwright();
    command.current_dir(folder.path("")).env("HOME", folder.path("")).env_remove("VALGRIND_OPTS");
    done(command.arg("valgrind").args(flags).args(words))
}

fn check(flags: &[&str], words: &[&str]) -> Output {
    done(heapwright().arg("check").args(flags).arg("--").args(words))
}

/// Loses seven blocks of 1, 2, 4, ... bytes, from calls of different functions.
const MAKERS: &str = "
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
static void *volatile lost;
__attribute__((noinline)) static void of_malloc(void) { lost = malloc(1); }
__attribute__((noinline)) static void of_calloc(void) { lost = calloc(1, 2); }
__attribute__((noinline)) static void of_realloc(void) { lost = realloc(malloc(3), 4); }
__attribute__((noinline)) static void of_null(void) { lost = 0; lost = realloc(lost, 8); }
__attribute__((noinline)) static void of_memalign(void) { lost = memalign(64, 16); }
__attribute__((noinline)) static void of_posix(void) {
    void *block = 0;
    if (posix_memalign(&block, 64, 32) == 0) lost = block;
    block = 0;
}
__attribute__((noinline)) static void of_strdup(void) {
    lost = strdup(\"012345678901234567890123456789012345678901234567890123456789012\");
}
int main(void) {
    of_malloc(), of_calloc(), of_realloc(), of_null(), of_memalign(), of_posix(), of_strdup();
    lost = 0;
    char wiped[4096];
    memset(wiped, 0, sizeof wiped);
    __asm__ volatile(\"\" : : \"r\"(wiped) : \"memory\");
    return 0;
}
";

/// Returns the bytes that a suppression of leaks with these lines hid.
fn hidden(folder: &Folder, program: &Path, frames: &str) -> u64 {
    let block = format!("{{\n a\n Memcheck:Leak\n {}\n}}\n", frames.replace(' ', "\n"));
    let file = folder.file("one.supp", block.replace("(below\nmain)", "(below main)"));
    let flag = format!("--suppressions={}", text(&file));
    let printed = stderr(&valgrind(folder, &["--leak-check=full", &flag], &[text(program)]));
    let line = printed.lines().find_map(|line| line.split_once("suppressed: "));
    let amount = line.and_then(|(_, amount)| amount.split(' ').next());
    amount.and_then(|bytes| bytes.parse().ok()).unwrap_or_else(|| panic!("{frames}: {printed}"))
}

#[test]
fn the_first_line_of_a_suppression_names_the_function_that_allocated() {
    let folder = Folder::new();
    let program = folder.compile("makers", &["-g", "-O0", "-w"], MAKERS);
    for (frames, bytes) in [
        ("fun:malloc ... fun:main", 1 + 8 + 64),
        ("fun:calloc ... fun:main", 2),
        ("fun:realloc", 4),
        ("fun:memalign", 16 + 32),
        ("fun:posix_memalign fun:of_posix", 32),
        ("fun:memalign fun:posix_memalign", 32),
        ("fun:*alloc fun:of_*", 1 + 2 + 4 + 8),
        ("fun:malloc fun:realloc fun:of_null", 8),
        ("fun:malloc fun:strdup", 64),
        ("obj:*/vgpreload_memcheck-amd64-linux.so fun:of_calloc", 2),
        ("obj:* fun:of_malloc fun:main", 1),
        ("... fun:of_realloc", 4),
        ("fun:free fun:of_malloc", 0),
        ("fun:_Znwm fun:of_malloc", 0),
        ("fun:of_calloc fun:main", 2),
        // Callers of `main`.
        ("fun:malloc fun:of_malloc fun:main fun:(below main)", 1),
        ("fun:malloc fun:of_malloc ... fun:__libc_start_main*", 1),
        ("fun:malloc fun:of_malloc ... fun:_start", 1),
        ("fun:malloc fun:of_malloc fun:(below main)", 0),
    ] {
        assert_eq!(hidden(&folder, &program, frames), bytes, "{frames}");
    }
    // Generated blocks begin with this function, too.
    let flags = ["-q", "--leak-check=full", "--gen-suppressions=all"];
    let printed = stderr(&valgrind(&folder, &flags, &[text(&program)]));
    for block in [
        "   fun:malloc\n   fun:of_malloc\n",
        "   fun:calloc\n   fun:of_calloc\n",
        "   fun:realloc\n   fun:of_realloc\n",
        "   fun:memalign\n   fun:of_memalign\n",
        "   fun:memalign\n   fun:posix_memalign\n   fun:of_posix\n",
        "   fun:malloc\n   fun:strdup*\n   fun:of_strdup\n",
    ] {
        assert!(printed.contains(block), "{block}\n{printed}");
    }
    let blocks: String = printed
        .lines()
        .filter(|line| !line.starts_with("=="))
        .map(|line| format!("{line}\n"))
        .collect();
    let file = format!("--suppressions={}", text(&folder.file("all.supp", blocks)));
    let printed = stderr(&valgrind(&folder, &["--leak-check=full", &file], &[text(&program)]));
    assert!(printed.contains("suppressed: 127 bytes in 7 blocks"), "{printed}");
}

/// Exports one function under two names. Only the debug file names the other two functions.
const LIBRARY: &str = "
#include <stdlib.h>
#define GOES_ON __asm__(\"\" : : : \"memory\")
__attribute__((noinline)) static void *inner(void) { void *p = malloc(40); GOES_ON; return p; }
static inline __attribute__((always_inline)) void *inlined(void) {
    void *p = inner();
    GOES_ON;
    return p;
}
void *__internal_name_of_copy(void) { void *p = inlined(); GOES_ON; return p; }
extern __typeof(__internal_name_of_copy) copy __attribute__((alias(\"__internal_name_of_copy\")));
";

const USER: &str = "
void *copy(void);
static void *volatile lost;
__attribute__((noinline)) static void use(void) { lost = copy(); lost = 0; }
int main(void) { use(); return 0; }
";

/// Makes a program that loses a block of a library. Returns it and the library's debug file.
fn with_debug_file(folder: &Folder) -> (PathBuf, PathBuf) {
    let flags = ["-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id", "-Wl,-soname,libcopy.so"];
    let library = folder.compile("libcopy.so", &flags, LIBRARY);
    let debug = folder.path("libcopy.debug");
    for words in [
        &["--only-keep-debug", text(&library), text(&debug)][..],
        &["--strip-all", text(&library)],
        &[&*format!("--add-gnu-debuglink={}", text(&debug)), text(&library)],
    ] {
        let output = done(Command::new("objcopy").args(words));
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    }
    let rpath = format!("-Wl,-rpath,{}", text(&folder.path("")));
    let user = folder.file("user.c", USER);
    let program = folder.path("user");
    let words = ["-g", "-O0", "-o", text(&program), text(&user), text(&library), &rpath];
    let output = done(Command::new("cc").args(words));
    assert!(output.status.success(), "{}", stderr(&output));
    (program, debug)
}

#[test]
fn a_function_has_one_name_with_and_without_the_librarys_debug_file() {
    let folder = Folder::new();
    let (program, debug) = with_debug_file(&folder);
    let suggested = || {
        let printed = stderr(&check(&["--fail-on", "none"], &[text(&program)]));
        assert!(printed.contains(" in copy "), "{printed}");
        let mut lines = printed.lines().map(str::trim);
        let line = lines.find_map(|line| line.strip_prefix("to suppress it: "));
        line.expect("is suggested").to_owned()
    };
    let fingerprint = || {
        let file = folder.path("report.sarif");
        check(&["--fail-on", "none", "--format", "sarif", "-o", text(&file)], &[text(&program)]);
        let sarif = std::fs::read_to_string(file).expect("is written");
        let sarif: Value = serde_json::from_str(&sarif).unwrap_or_else(|_| panic!("{sarif}"));
        let result = &sarif["runs"][0]["results"][0];
        assert_eq!(result["ruleId"], "definitely-lost", "{sarif}");
        result["partialFingerprints"].clone()
    };
    let hides = |frames| hidden(&folder, &program, frames);
    let with = (suggested(), fingerprint());
    assert_eq!(hides("fun:malloc fun:inner fun:inlined fun:copy fun:use"), 40);
    assert_eq!(hides("fun:malloc ... fun:copy fun:use"), 40);
    let printed = {
        let flags = ["-q", "--leak-check=full", "--gen-suppressions=all"];
        stderr(&valgrind(&folder, &flags, &[text(&program)]))
    };
    let generated =
        "   fun:malloc\n   obj:*/libcopy.so*\n   ...\n   fun:copy\n   fun:use\n   fun:main\n";
    assert!(printed.contains(generated), "{printed}");
    std::fs::remove_file(debug).expect("there");
    assert_eq!((suggested(), fingerprint()), with);
    assert_eq!(with.0, "leak:*@libcopy.so <- copy@libcopy.so <- use@user <- main@user");
    assert_eq!(hides("fun:malloc fun:??? fun:copy fun:use"), 40);
    assert_eq!(hides("fun:malloc obj:*/libcopy.so* ... fun:copy fun:use fun:main"), 40);
    assert_eq!(hides("fun:malloc fun:__internal_name_of_copy"), 0);
}

/// Loses blocks in a constructor, a destructor, a thread, and a function with two names.
const KINDS: &str = "
#include <cstdlib>
#include <pthread.h>
struct Cart {
    template <typename T> Cart(T size) { lost = malloc(size); }
    ~Cart() { lost = malloc(20); lost = 0; }
    static void *volatile lost;
};
void *volatile Cart::lost;
extern \"C\" {
__attribute__((noinline)) void a_long_name() { Cart::lost = malloc(40); Cart::lost = 0; }
void brief() __attribute__((alias(\"a_long_name\")));
}
static void *work(void *) { Cart::lost = malloc(30); Cart::lost = 0; return 0; }
int main() {
    { Cart cart(10); }
    a_long_name();
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    return 0;
}
";

#[test]
fn names_that_valgrind_prefers_are_the_same_functions() {
    let folder = Folder::new();
    let program = folder.compile("kinds", &["-x", "c++", "-g", "-O0", "-pthread"], KINDS);
    for (frames, size) in [
        ("fun:malloc fun:_ZN4CartC1IiEET_ fun:main", 10),
        ("fun:malloc fun:_ZN4CartC4IiE* fun:main", 10),
        ("fun:malloc fun:_ZN4CartD0Ev fun:main", 20),
        ("fun:malloc fun:_ZL4workPv fun:start_thread fun:clone", 30),
        ("fun:malloc fun:_ZL4workPv ... fun:clone3", 30),
        ("fun:malloc fun:brief fun:main", 40),
        ("fun:malloc fun:a_long_name fun:main", 40),
        ("fun:malloc fun:_ZN4CartD1Ev fun:clone", 0),
    ] {
        assert_eq!(hidden(&folder, &program, frames), size, "{frames}");
    }
}

#[test]
fn of_a_program_without_names_a_suggestion_is_as_narrow_as_valgrinds() {
    let folder = Folder::new();
    let source = "
#include <stdlib.h>
#include <string.h>
static void *volatile lost;
__attribute__((noinline)) static void one(int size) { lost = malloc(size); lost = 0; }
__attribute__((noinline)) static void two(int size) { one(size); lost = 0; }
int main(void) {
    one(10);
    two(20);
    lost = malloc(40);
    lost = strdup(\"beside\");
    lost = 0;
    return 0;
}
";
    let program = folder.compile("bare", &["-O1", "-s"], source);
    let printed = stderr(&check(&["--fail-on", "none"], &[text(&program)]));
    assert_eq!(printed.matches("to suppress it: no function has a name here").count(), 3);
    let lines = printed.lines().filter_map(|line| line.split_once("to suppress it: leak:"));
    let lines: Vec<&str> = lines.map(|(_, chain)| chain).collect();
    assert_eq!(lines.len(), 1, "{printed}");
    assert!(lines[0].starts_with("strdup@libc.so.6 <- *@bare <- "), "{printed}");
    for (depth, size) in [(1, 40), (2, 10), (3, 20)] {
        let frames = vec!["obj:*/bare"; depth].join(" ");
        let block = format!("fun:malloc {frames} obj:*/libc.so.6*");
        assert_eq!(hidden(&folder, &program, &block), size, "{block}");
        let lines = block.replace(' ', "\n   ");
        let generated = ["--fail-on", "none", "--gen-suppressions", "valgrind"];
        let printed = stderr(&check(&generated, &[text(&program)]));
        assert!(printed.contains(&lines), "{lines}: {printed}");
    }
}

/// Keeps pointers to the middle of four blocks: behind a length, to a second table of functions,
/// behind a count, and anywhere.
const INSIDE: &str = "
#include <stdint.h>
#include <stdlib.h>
static void f(void) {}
static void g(void) {}
void (*const first[3])(void) = {f, g, f}, (*const second[3])(void) = {g, f, g};
void *kept[4];
int main(void) {
    uint64_t *sized = malloc(1000), *object = malloc(1008), *array = malloc(8 + 5 * 24);
    sized[15] = 1000 - 16 * 8;
    kept[0] = &sized[16];
    object[0] = (uintptr_t)first;
    object[20] = (uintptr_t)second;
    kept[1] = &object[20];
    array[0] = 5;
    kept[2] = &array[1];
    kept[3] = (char *)malloc(1024) + 512;
    sized = object = array = 0;
    return 0;
}
";

#[test]
fn pointers_into_blocks_lead_to_them_where_memchecks_heuristics_say_so() {
    let folder = Folder::new();
    let program = folder.compile("inside", &["-g", "-O0"], INSIDE);
    let possible = |flag: &[&str]| {
        let flags = [flag, &["--leak-check=full"]].concat();
        let printed = stderr(&valgrind(&folder, &flags, &[text(&program)]));
        let line = printed.lines().find_map(|line| line.split_once("possibly lost: "));
        line.map(|(_, amount)| amount.to_owned()).unwrap_or_else(|| panic!("{printed}"))
    };
    assert_eq!(possible(&[]), "1,024 bytes in 1 blocks");
    assert_eq!(possible(&["--leak-check-heuristics=all"]), "1,024 bytes in 1 blocks");
    assert_eq!(possible(&["--leak-check-heuristics=none"]), "3,160 bytes in 4 blocks");
    assert_eq!(possible(&["--leak-check-heuristics=length64"]), "2,160 bytes in 3 blocks");
    assert_eq!(
        possible(&["--leak-check-heuristics=multipleinheritance,newarray"]),
        "2,024 bytes in 2 blocks"
    );
    let output = valgrind(&folder, &["--leak-check-heuristics=some"], &[text(&program)]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
}

#[test]
fn counts_are_the_programs_and_a_lone_call_is_a_rule() {
    let folder = Folder::new();
    let source = "
#include <stdlib.h>
void *volatile p;
int main(void) { p = malloc(10); p = 0; return 0; }
";
    let program = folder.compile("greet", &["-g", "-O0"], source);
    let printed = stderr(&valgrind(&folder, &[], &[text(&program)]));
    assert!(printed.contains("total heap usage: 1 allocs, 0 frees, "), "{printed}");
    let printed = stderr(&check(&["--fail-on", "none"], &[text(&program)]));
    assert!(printed.contains("1 block allocated, 0 freed"), "{printed}");
    assert!(printed.contains("to suppress it: leak:main@greet\n"), "{printed}");
    let file = folder.file("rule", "leak:main@greet\n");
    let output = check(&["--suppress", text(&file)], &[text(&program)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // The C library frees its buffer at the end.
    let source = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }";
    let program = folder.compile("hello", &["-g"], source);
    let printed = stderr(&valgrind(&folder, &[], &[text(&program)]));
    assert!(printed.contains("total heap usage: 1 allocs, 1 frees, "), "{printed}");
    assert!(printed.contains("in use at exit: 0 bytes in 0 blocks"), "{printed}");
    let source = "int main(void) { return 0; }";
    let program = folder.compile("nothing", &[], source);
    let printed = stderr(&valgrind(&folder, &[], &[text(&program)]));
    assert!(printed.contains("0 allocs, 0 frees, at most 0 bytes at once"), "{printed}");
}

#[test]
fn a_stack_has_the_addresses_of_one_process() {
    let folder = Folder::new();
    let source = "
#include <stdlib.h>
void *volatile p;
__attribute__((noinline)) static void one(void) { p = malloc(10); p = 0; }
__attribute__((noinline)) static void two(void) { p = malloc(20); p = 0; }
int main(int count, char **words) { if (count > 1) two(); else one(); return 0; }
";
    let program = folder.compile("two", &["-g", "-O0", "-pie", "-fPIE"], source);
    let script = format!("{0}; {0} x; {0}; {0} x", text(&program));
    let flags = ["--fail-on", "none", "--format", "memcheck"];
    let printed = stderr(&check(&flags, &["sh", "-c", &script]));
    let address = |line: &str| {
        let (_, rest) = line.split_once("0x")?;
        u64::from_str_radix(rest.split(':').next()?, 16).ok()
    };
    let stacks: Vec<(u64, u64)> = printed
        .lines()
        .zip(printed.lines().skip(1))
        .filter(|(inner, outer)| inner.contains(" at 0x") && outer.contains(": main (two.c"))
        .filter_map(|(inner, outer)| Some((address(inner)?, address(outer)?)))
        .collect();
    assert_eq!(stacks.len(), 2, "{printed}");
    for (inner, outer) in stacks {
        assert!(inner.abs_diff(outer) < 4096, "{printed}");
    }
}

#[test]
fn options_and_types_are_understood_as_valgrind_does() {
    let folder = Folder::new();
    let program = folder.compile("makers", &["-g", "-O0", "-w"], MAKERS);
    let flags = ["-q", "--memcheck:leak-check=full", "--helgrind:history-level=none"];
    let printed = stderr(&valgrind(&folder, &flags, &[text(&program)]));
    assert!(printed.contains("are definitely lost in loss record"), "{printed}");
    let output = valgrind(&folder, &["--memcheck:leak-check=maybe"], &[text(&program)]);
    assert_eq!(output.status.code(), Some(2));
    let file = folder.file("wrong.supp", "{\n a\n Memcheck:Lake\n fun:malloc\n}\n");
    let output = valgrind(&folder, &[&format!("--suppressions={}", text(&file))], &["true"]);
    assert_eq!(output.status.code(), Some(2));
    let printed = stderr(&output);
    assert!(printed.contains("wrong.supp:3: there is nothing of the type 'Lake'"), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
}
