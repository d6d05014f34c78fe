//! The shared library's symbols, the libraries that it needs, and the code of its hot functions.
mod support;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Every name that programs may bind to, and no other.
const EXPORTS: &[&str] = &[
    // C, POSIX, glibc
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "cfree",
    "free_sized",
    "free_aligned_sized",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "malloc_trim",
    "malloc_stats",
    "malloc_info",
    "mallinfo",
    "mallinfo2",
    "mallopt",
    // the process's end, its limits, and libraries
    "_exit",
    "daemon",
    "_Exit",
    "setrlimit",
    "setrlimit64",
    "prlimit",
    "prlimit64",
    "mlockall",
    "prctl",
    "syscall",
    "dup2",
    "dup3",
    "fclose",
    "dlopen",
    "dlclose",
    // signals
    "sigaction",
    "signal",
    "bsd_signal",
    "ssignal",
    "sysv_signal",
    "__sysv_signal",
    "sigset",
    "sigignore",
    // operator new
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    // operator delete
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
    // clang's allocation tokens
    "__alloc_token_malloc",
    "__alloc_token_0_malloc",
    "__alloc_token_1_malloc",
    "__alloc_token_2_malloc",
    "__alloc_token_3_malloc",
    "__alloc_token_calloc",
    "__alloc_token_0_calloc",
    "__alloc_token_1_calloc",
    "__alloc_token_2_calloc",
    "__alloc_token_3_calloc",
    "__alloc_token_realloc",
    "__alloc_token_0_realloc",
    "__alloc_token_1_realloc",
    "__alloc_token_2_realloc",
    "__alloc_token_3_realloc",
    "__alloc_token_reallocarray",
    "__alloc_token_0_reallocarray",
    "__alloc_token_1_reallocarray",
    "__alloc_token_2_reallocarray",
    "__alloc_token_3_reallocarray",
    "__alloc_token_aligned_alloc",
    "__alloc_token_0_aligned_alloc",
    "__alloc_token_1_aligned_alloc",
    "__alloc_token_2_aligned_alloc",
    "__alloc_token_3_aligned_alloc",
    "__alloc_token_memalign",
    "__alloc_token_0_memalign",
    "__alloc_token_1_memalign",
    "__alloc_token_2_memalign",
    "__alloc_token_3_memalign",
    "__alloc_token_posix_memalign",
    "__alloc_token_0_posix_memalign",
    "__alloc_token_1_posix_memalign",
    "__alloc_token_2_posix_memalign",
    "__alloc_token_3_posix_memalign",
    "__alloc_token_valloc",
    "__alloc_token_0_valloc",
    "__alloc_token_1_valloc",
    "__alloc_token_2_valloc",
    "__alloc_token_3_valloc",
    "__alloc_token_pvalloc",
    "__alloc_token_0_pvalloc",
    "__alloc_token_1_pvalloc",
    "__alloc_token_2_pvalloc",
    "__alloc_token_3_pvalloc",
    "__alloc_token__Znwm",
    "__alloc_token_0__Znwm",
    "__alloc_token_1__Znwm",
    "__alloc_token_2__Znwm",
    "__alloc_token_3__Znwm",
    "__alloc_token__Znam",
    "__alloc_token_0__Znam",
    "__alloc_token_1__Znam",
    "__alloc_token_2__Znam",
    "__alloc_token_3__Znam",
    "__alloc_token__ZnwmRKSt9nothrow_t",
    "__alloc_token_0__ZnwmRKSt9nothrow_t",
    "__alloc_token_1__ZnwmRKSt9nothrow_t",
    "__alloc_token_2__ZnwmRKSt9nothrow_t",
    "__alloc_token_3__ZnwmRKSt9nothrow_t",
    "__alloc_token__ZnamRKSt9nothrow_t",
    "__alloc_token_0__ZnamRKSt9nothrow_t",
    "__alloc_token_1__ZnamRKSt9nothrow_t",
    "__alloc_token_2__ZnamRKSt9nothrow_t",
    "__alloc_token_3__ZnamRKSt9nothrow_t",
    "__alloc_token__ZnwmSt11align_val_t",
    "__alloc_token_0__ZnwmSt11align_val_t",
    "__alloc_token_1__ZnwmSt11align_val_t",
    "__alloc_token_2__ZnwmSt11align_val_t",
    "__alloc_token_3__ZnwmSt11align_val_t",
    "__alloc_token__ZnamSt11align_val_t",
    "__alloc_token_0__ZnamSt11align_val_t",
    "__alloc_token_1__ZnamSt11align_val_t",
    "__alloc_token_2__ZnamSt11align_val_t",
    "__alloc_token_3__ZnamSt11align_val_t",
    "__alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t",
    "__alloc_token_0__ZnwmSt11align_val_tRKSt9nothrow_t",
    "__alloc_token_1__ZnwmSt11align_val_tRKSt9nothrow_t",
    "__alloc_token_2__ZnwmSt11align_val_tRKSt9nothrow_t",
    "__alloc_token_3__ZnwmSt11align_val_tRKSt9nothrow_t",
    "__alloc_token__ZnamSt11align_val_tRKSt9nothrow_t",
    "__alloc_token_0__ZnamSt11align_val_tRKSt9nothrow_t",
    "__alloc_token_1__ZnamSt11align_val_tRKSt9nothrow_t",
    "__alloc_token_2__ZnamSt11align_val_tRKSt9nothrow_t",
    "__alloc_token_3__ZnamSt11align_val_tRKSt9nothrow_t",
    // jemalloc's and gperftools' names
    "MallocExtension_GetAllocatedSize",
    "MallocExtension_GetEstimatedAllocatedSize",
    "MallocExtension_GetNumericProperty",
    "MallocExtension_GetOwnership",
    "MallocExtension_GetStats",
    "MallocExtension_GetThreadCacheSize",
    "MallocExtension_MarkThreadBusy",
    "MallocExtension_MarkThreadIdle",
    "MallocExtension_MarkThreadTemporarilyIdle",
    "MallocExtension_ReleaseFreeMemory",
    "MallocExtension_ReleaseToSystem",
    "MallocExtension_SetNumericProperty",
    "MallocExtension_VerifyAllMemory",
    "dallocx",
    "mallctl",
    "mallctlbymib",
    "mallctlnametomib",
    "malloc_stats_print",
    "mallocx",
    "nallocx",
    "rallocx",
    "sallocx",
    "sdallocx",
    "tc_calloc",
    "tc_cfree",
    "tc_delete",
    "tc_delete_aligned",
    "tc_delete_aligned_nothrow",
    "tc_delete_nothrow",
    "tc_delete_sized",
    "tc_delete_sized_aligned",
    "tc_deletearray",
    "tc_deletearray_aligned",
    "tc_deletearray_aligned_nothrow",
    "tc_deletearray_nothrow",
    "tc_deletearray_sized",
    "tc_deletearray_sized_aligned",
    "tc_free",
    "tc_free_sized",
    "tc_malloc",
    "tc_malloc_size",
    "tc_malloc_skip_new_handler",
    "tc_malloc_stats",
    "tc_mallopt",
    "tc_memalign",
    "tc_nallocx",
    "tc_new",
    "tc_new_aligned",
    "tc_new_aligned_nothrow",
    "tc_new_nothrow",
    "tc_newarray",
    "tc_newarray_aligned",
    "tc_newarray_aligned_nothrow",
    "tc_newarray_nothrow",
    "tc_posix_memalign",
    "tc_pvalloc",
    "tc_query_new_mode",
    "tc_realloc",
    "tc_set_new_mode",
    "tc_valloc",
    "tc_version",
    "xallocx",
    // include/heapwright.h
    "hw_heap_new",
    "hw_heap_alloc",
    "hw_heap_alloc_zeroed",
    "hw_heap_alloc_aligned",
    "hw_heap_free",
    "hw_heap_destroy",
    "hw_heap_walk",
    "hw_profile_begin",
    "hw_profile_end",
    "hw_profile_write",
    "hw_set_soft_limit",
    "hw_purge",
    "hw_should_move",
    "hw_malloc_uncached",
    "hw_free_uncached",
    "hw_estimate_stats",
    "hw_pool_create",
    "hw_pool_create_with",
    "hw_pool_alloc",
    "hw_pool_free",
    "hw_pool_contains",
    "hw_pool_preheat",
    "hw_pool_walk",
    "hw_pool_reset",
    "hw_pool_trim",
    "hw_pool_stats",
    "hw_pool_destroy",
    "hw_arena_create",
    "hw_arena_alloc",
    "hw_arena_alloc_aligned",
    "hw_arena_resize",
    "hw_arena_free",
    "hw_arena_mark",
    "hw_arena_rewind",
    "hw_arena_reset",
    "hw_arena_trim",
    "hw_arena_stats",
    "hw_arena_destroy",
    "hw_gc_account",
    "hw_gc_pay",
    "hw_gc_add_weak_pass",
    "hw_gc_alloc",
    "hw_gc_ask",
    "hw_gc_ask_compact",
    "hw_gc_attach",
    "hw_gc_attach_away",
    "hw_gc_attached",
    "hw_gc_balance",
    "hw_gc_collect",
    "hw_gc_collect_minor",
    "hw_gc_compact",
    "hw_gc_compact_all",
    "hw_gc_create",
    "hw_gc_defer",
    "hw_gc_defer_majors",
    "hw_gc_destroy",
    "hw_gc_detach",
    "hw_gc_dump",
    "hw_gc_enter",
    "hw_gc_external",
    "hw_gc_finalize",
    "hw_gc_finalize_cancel",
    "hw_gc_finalize_with",
    "hw_gc_find",
    "hw_gc_free",
    "hw_gc_guard",
    "hw_gc_guardian_new",
    "hw_gc_is_old",
    "hw_gc_is_pinned",
    "hw_gc_largest_slot",
    "hw_gc_leave",
    "hw_gc_major_owed",
    "hw_gc_malloc",
    "hw_gc_mark_ephemeron",
    "hw_gc_mark_full",
    "hw_gc_mark_maybe",
    "hw_gc_mark_movable_moving",
    "hw_gc_mark_range",
    "hw_gc_mark_slot_moving",
    "hw_gc_mark_weak",
    "hw_gc_moved",
    "hw_gc_object_kind",
    "hw_gc_object_size",
    "hw_gc_owed",
    "hw_gc_pin",
    "hw_gc_realloc",
    "hw_gc_remove_weak_pass",
    "hw_gc_resize",
    "hw_gc_resume",
    "hw_gc_resume_majors",
    "hw_gc_retrieve",
    "hw_gc_root_free",
    "hw_gc_root_new",
    "hw_gc_run_finalizers",
    "hw_gc_safepoint",
    "hw_gc_scan",
    "hw_gc_scan_stack",
    "hw_gc_set_policy",
    "hw_gc_set_target",
    "hw_gc_shade",
    "hw_gc_slot_size",
    "hw_gc_stats",
    "hw_gc_step",
    "hw_gc_tell_when_due",
    "hw_gc_touched",
    "hw_gc_touched_slot",
    "hw_gc_trace_rest",
    "hw_gc_traced_to",
    "hw_gc_trim",
    "hw_gc_try_enter",
    "hw_gc_unpin",
    "hw_gc_unprotect",
    "hw_gc_verify",
    "hw_gc_walk",
    "hw_gc_weak_free",
    "hw_gc_weak_new",
    "hw_gc_weak_set",
    "hw_gc_where",
    "hw_gc_wrote",
    "hw_object_size",
    "hw_owns",
    "hw_describe",
    "hw_get_stats",
    "hw_check_leaks",
    "hw_count_begin",
    "hw_count_end",
    "hw_count_sites",
    "hw_raise_shared_caches",
    "hw_version",
];

fn output(tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool)
        .args(arguments)
        .arg(support::shared_library())
        .output()
        .unwrap_or_else(|e| panic!("{tool} (of binutils): {e}"));
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn only_the_interface_is_exported() {
    let shown = output("nm", &["-D", "--defined-only"]);
    let shown: BTreeSet<&str> =
        shown.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let meant: BTreeSet<&str> = EXPORTS.iter().copied().collect();
    let extra: Vec<_> = shown.difference(&meant).collect();
    let missing: Vec<_> = meant.difference(&shown).collect();
    assert!(extra.is_empty() && missing.is_empty(), "extra {extra:?}, missing {missing:?}");
}

#[test]
fn nothing_is_needed_but_the_c_library() {
    let dynamic = output("readelf", &["-d", "-W"]);
    let needed: Vec<&str> = dynamic.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert!(needed.len() == 1 && needed[0].contains("[libc.so.6]"), "{needed:?}");
    assert!(dynamic.contains("Library soname: [libheapwright.so]"));
    for flag in ["NOW", "NODELETE"] {
        assert!(
            dynamic.lines().any(|line| line.contains("(FLAGS_1)") && line.contains(flag)),
            "{flag} is not set:\n{dynamic}"
        );
    }
    // The C library has every strong symbol.
    for line in output("nm", &["-D", "--undefined-only"]).lines() {
        let mut words = line.split_whitespace();
        let (kind, name) = (words.next().expect("a kind"), words.next().expect("a name"));
        assert!(matches!(kind, "w" | "v") || name.contains("@GLIBC_"), "{line}");
    }
    let headers = output("readelf", &["-l", "-W"]);
    assert!(headers.contains("GNU_RELRO"));
    assert!(headers.lines().any(|line| line.contains("GNU_STACK") && !line.contains("RWE")));
}

/// With debug information, gdb's `call free(p)` jumps to our function of that name.
#[test]
fn no_debug_information_is_shipped() {
    let sections = output("readelf", &["-S", "-W"]);
    assert!(sections.contains(".note.gnu.build-id"), "debuggers find debug files by it");
    assert!(!sections.contains(".debug_"), "{sections}");
}

fn disassembly() -> BTreeMap<String, Vec<String>> {
    let text = output("objdump", &["-d", "--no-show-raw-insn", "-M", "intel"]);
    let mut functions = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(start) = line.strip_suffix(">:") {
            name = start.split_once('<').expect("a symbol").1.to_owned();
            functions.insert(name.clone(), Vec::new());
        } else if let Some((_, instruction)) = line.split_once(":\t") {
            functions.get_mut(&name).expect("a function").push(instruction.to_owned());
        }
    }
    functions
}

fn targets<'a>(code: &'a [String], own: &str) -> Vec<(&'a str, &'a str)> {
    code.iter()
        .filter_map(|line| {
            let (name, rest) = line.split_once(' ')?;
            let target = rest.split_once('<')?.1.split_once('>')?.0;
            let outside = target.split(['+', '@']).next() != Some(own);
            ((name.starts_with('j') || name == "call") && outside).then_some((name, target))
        })
        .collect()
}

/// A hot function calls nothing. Its rare cases are jumps, with an empty frame. In `operator new`
/// this lets exceptions pass.
#[test]
#[cfg(target_arch = "x86_64")]
fn hot_functions_call_nothing() {
    let functions = disassembly();
    // Functions with the same code may be merged under any of their names.
    let hot = ["malloc", "free", "_ZdlPv", "_ZdlPvm", "_Znwm", "free_sized"];
    let mut seen = 0;
    for name in hot {
        let Some(code) = functions.get(name) else { continue };
        seen += 1;
        for line in code {
            assert!(!line.starts_with("call"), "{name}: {line}");
            assert!(!line.starts_with("push") && !line.contains("rsp"), "{name}: {line}");
        }
    }
    assert!(seen >= 4, "only {seen} of {hot:?} are there");
    // `operator new` ends in jumps to the slow path, which can be unwound, and never calls it.
    let jumps = |name: &str, to: &str| {
        let (name, code) = functions
            .iter()
            .find(|(symbol, _)| *symbol == name || (name == "new_medium" && symbol.contains(name)))
            .expect(name);
        let targets = targets(code, name);
        let hows: Vec<_> =
            targets.iter().filter(|way| way.1.contains(to)).map(|way| way.0).collect();
        let jumps = !hows.is_empty() && !hows.contains(&"call");
        assert!(jumps, "{name} does not end in a jump to {to}: {targets:?}");
    };
    jumps("_Znwm", "new_medium");
    jumps("new_medium", "new_slow");
    jumps("new_medium", "new_failed");
    jumps("_ZnwmSt11align_val_t", "new_slow");
}

/// The forwarding forms that debug mode tells apart jump through words. The dynamic linker fills
/// these in, with the program's own operator if it has one, and makes them read-only.
#[test]
#[cfg(target_arch = "x86_64")]
fn forwarding_forms_can_be_replaced() {
    let forms = [
        ("_Znam", "_Znwm"),
        ("_ZnamSt11align_val_t", "_ZnwmSt11align_val_t"),
        ("_ZdaPv", "_ZdlPv"),
        ("_ZdaPvm", "_ZdaPv"),
        ("_ZdaPvSt11align_val_t", "_ZdlPvSt11align_val_t"),
        ("_ZdlPvmSt11align_val_t", "_ZdlPvSt11align_val_t"),
        ("_ZdaPvmSt11align_val_t", "_ZdaPvSt11align_val_t"),
    ];
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    // Lines of six columns: place, info, kind, value, name.
    let relocations = output("readelf", &["-r", "-W"]);
    let filled: BTreeMap<u64, &str> = relocations
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [place, _, "R_X86_64_64", _, name, ..] = words[..] else { return None };
            Some((number(place)?, name.split('@').next()?))
        })
        .collect();
    let headers = output("readelf", &["-l", "-W"]);
    let read_only = headers
        .lines()
        .find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let ["GNU_RELRO", _, start, _, _, size, ..] = words[..] else { return None };
            Some(number(start)?..number(start)? + number(size)?)
        })
        .expect("a part that is made read-only");
    let functions = disassembly();
    for (form, target) in forms {
        let jump = functions[form].iter().find(|line| line.starts_with("jmp")).expect("a jump");
        let place = jump.split_once("# ").and_then(|(_, at)| number(at.split(' ').next()?));
        let place = place.unwrap_or_else(|| panic!("{form}: {jump}"));
        assert_eq!(filled.get(&place), Some(&target), "{form}: {jump}");
        assert!(read_only.contains(&place), "{form}");
    }
}

/// The compiler knows malloc's family by name, and may replace one function by another. It makes
/// `malloc` and `memset` a `calloc`, which would then call itself.
#[test]
fn no_function_of_the_family_calls_another() {
    let functions = disassembly();
    let family: BTreeSet<&str> = EXPORTS[..20].iter().copied().collect();
    for (name, code) in &functions {
        for (how, target) in targets(code, name) {
            let plain = target.split(['+', '@']).next().expect("a name");
            // mallinfo is mallinfo2, narrowed.
            let allowed = name == "mallinfo" && plain == "mallinfo2";
            assert!(
                !family.contains(plain) || target.contains('+') || allowed,
                "{name}: {how} {target}"
            );
        }
    }
    // No formatting, no unwinding, no standard library.
    for name in functions.keys() {
        for word in ["core3fmt", "_Unwind_Resume", "3std", "5alloc"] {
            let found = name.contains(word) && !name.contains("heapwright");
            assert!(!found, "{name} was linked in");
        }
    }
}

/// The notes that lead tracers to the probes of samples, and an attached tracer.
#[test]
fn tracers_find_the_probes_of_samples_and_have_blocks_sampled() {
    use support::{How, command, compile, run, scratch};
    let notes = output("readelf", &["-n", "-W"]);
    let field = |name: &str| -> BTreeSet<&str> {
        notes.lines().filter_map(|line| Some(line.split_once(name)?.1)).collect()
    };
    assert_eq!(field("Provider: "), BTreeSet::from(["otel_memory"]), "{notes}");
    assert_eq!(field("Name: "), BTreeSet::from(["alloc", "free"]), "{notes}");
    #[cfg(target_arch = "x86_64")]
    assert_eq!(field("Arguments: "), BTreeSet::from(["8@%rdi", "8@%rdi 8@%rsi 8@%rdx"]), "{notes}");
    assert!(field("Location: ").iter().all(|place| !place.contains("Base: 0x0000000000000000")));
    let semaphores: BTreeSet<&str> = notes
        .lines()
        .filter_map(|line| line.split_once("Semaphore: 0x"))
        .map(|(_, at)| at)
        .collect();
    let [semaphore] = Vec::from_iter(semaphores)[..] else { panic!("{notes}") };
    let program = compile("traced.c", How::Linked, &["-ldl"]);
    let file = scratch().join(format!("traced-{}", std::process::id()));
    run(command(&program, How::Linked).arg(semaphore).arg(&file)).is_fine("traced");
    std::fs::remove_file(file).expect("it is there");
}
