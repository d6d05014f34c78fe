//! Facts about a program -> findings, in words.
//!
//! The findings of `heapwright doctor` about a binary follow from facts about the file, its place
//! and the caller. So their tests need no program.

use super::elf::{Facts, Inside, Kind, RustAllocator, machine_name};
use super::privilege::{Caller, Gain, Place};
use super::{Finding, Target, runtimes};
use std::path::Path;

pub(super) fn program(path: &Path, facts: &Facts, place: &Place, target: Target) -> Vec<Finding> {
    let mut findings = Vec::new();
    if place.noexec {
        findings.push(Finding::no("noexec", "it is on a file system mounted noexec"));
    }
    match place.gain(Caller::current()) {
        Some(gain) => findings.push(privileged(gain)),
        None if place.may_gain() => findings.push(Finding::remark(
            "privileged-for-others",
            "it gains privileges for other users: for them the loader ignores LD_PRELOAD",
        )),
        None => {}
    }
    findings.extend(format(facts, target));
    if let (Some(inside), true) = (&facts.inside, facts.loader.is_some()) {
        findings.extend(allocator(inside));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A link such as java -> openjdk/bin/java is known by either name.
        let target = path.canonicalize().ok();
        let target = target.as_deref().and_then(Path::file_name).unwrap_or_default();
        let target = target.to_string_lossy();
        let mut remarks: Vec<_> = runtimes::remarks(&name, &inside.needed)
            .chain(runtimes::remarks(&target, &inside.needed))
            .map(|(code, text)| Finding::remark(code, text))
            .collect();
        remarks.dedup();
        findings.extend(remarks);
    }
    findings
}

fn privileged(gain: Gain) -> Finding {
    let (code, what) = match gain {
        Gain::SetUid => ("set-uid", "it is set-uid"),
        Gain::SetGid => ("set-gid", "it is set-gid"),
        Gain::Capabilities => ("capabilities", "it has file capabilities"),
    };
    let text = format!("{what}: the loader ignores LD_PRELOAD in programs that gain privileges");
    Finding::no(code, text)
}

/// Returns a finding if no loader could load the library into such a file.
fn format(facts: &Facts, target: Target) -> Option<Finding> {
    if facts.machine != target.machine {
        let theirs = machine_name(facts.machine);
        let ours = machine_name(target.machine);
        let text = format!("it is a program for {theirs}; this heapwright is for {ours}");
        return Some(Finding::no("other-machine", text));
    }
    if facts.bits != 64 {
        return Some(Finding::no("32-bit", "it is a 32-bit program; heapwright is 64-bit"));
    }
    match facts.kind {
        Kind::Other => return Some(Finding::no("not-a-program", "it is ELF, but not a program")),
        Kind::Library if facts.loader.is_none() => {
            return Some(Finding::no("not-a-program", "it is a shared library, not a program"));
        }
        _ => {}
    }
    let Some(loader) = &facts.loader else {
        let text = if facts.inside.as_ref().is_some_and(|inside| inside.go) {
            "it is a statically linked Go program: no loader runs that could preload a library, \
             and Go has a heap of its own"
        } else {
            "it is statically linked: no loader runs that could preload a library"
        };
        return Some(Finding::no("static", text));
    };
    let name = loader.rsplit('/').next().unwrap_or_default();
    let for_musl = name.starts_with("ld-musl");
    if for_musl && !target.is_musl {
        let text = "it uses the musl C library, and the library is built for glibc: build one for musl \
                    (docs/platforms.md), and name it with HEAPWRIGHT_LIBRARY; a Rust program may name \
                    heapwright as its #[global_allocator], a static C program link libheapwright.a";
        Some(Finding::no("musl", text))
    } else if !Path::new(loader).exists() {
        let text = format!("its loader {loader} does not exist here, so it cannot run");
        Some(Finding::no("no-loader", text))
    } else if for_musl {
        None
    } else if name.starts_with("ld-linux") || name.starts_with("ld64") || name == "ld.so.1" {
        target.is_musl.then(|| {
            let text = "it uses glibc, and the library is built for musl";
            Finding::no("glibc", text)
        })
    } else {
        let text = format!("it is loaded by {loader}, which may not heed LD_PRELOAD");
        Some(Finding::unknown("other-loader", text))
    }
}

/// Returns findings about the malloc that the program would use.
fn allocator(inside: &Inside) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(sanitizer) = inside.sanitizer {
        let text = format!("it is built with {sanitizer}, which has to provide malloc itself");
        findings.push(Finding::no("sanitizer", text));
        return findings;
    }
    let rust = inside.rust;
    let carried = inside.carries.join(" and ");
    if !inside.exports_malloc.is_empty() {
        let names = inside.exports_malloc.join(", ");
        let whose = if carried.is_empty() { String::new() } else { format!(" ({carried})") };
        let text =
            format!("it defines {names} itself{whose}, and its own come before preloaded ones");
        findings.push(Finding::no("own-malloc", text));
    } else if inside.private_malloc && !inside.imports_malloc {
        let text = "it has a malloc of its own inside and asks no library for one";
        findings.push(Finding::no("own-malloc", text));
    } else if !carried.is_empty() && rust == Some(RustAllocator::Chosen) {
        let text = format!(
            "its Rust code allocates from {carried}, chosen by #[global_allocator]; only C \
             libraries in it would use heapwright"
        );
        findings.push(Finding::no("global-allocator", text));
    } else if !carried.is_empty() && !inside.imports_malloc {
        let text = format!("it carries {carried} and asks no library for malloc");
        findings.push(Finding::no("own-allocator", text));
    } else if !carried.is_empty() {
        let text = format!(
            "it carries {carried}; how much of its memory comes from there, only a run shows"
        );
        findings.push(Finding::unknown("own-allocator", text));
    } else if rust == Some(RustAllocator::Chosen) {
        let text = "its Rust code has a #[global_allocator]; whether that stands on malloc, only a run shows";
        findings.push(Finding::unknown("global-allocator", text));
    } else if inside.private_malloc {
        let text = "it has a malloc of its own inside besides the libraries'";
        findings.push(Finding::unknown("own-malloc", text));
    }
    if inside.go {
        let text = "it is a Go program: its heap is Go's own; only memory of C code would move";
        findings.push(Finding::no("go", text));
    }
    if findings.is_empty() {
        findings.extend(hints(inside));
    }
    for library in &inside.needed {
        if let Some(allocator) = super::allocators::of_library(library) {
            let text = format!(
                "it is linked with {library}; a preloaded library comes before that, so malloc is \
                 heapwright's and {} serves only calls by its own names",
                allocator.name
            );
            findings.push(Finding::remark("linked-allocator", text));
        }
    }
    for (name, function) in &inside.asks_for {
        let text =
            format!("it calls {name} by its own names ({function}); that memory does not move");
        findings.push(Finding::remark("named-calls", text));
    }
    findings
}

/// Returns a suspicion about a program whose facts allow no certain verdict.
fn hints(inside: &Inside) -> Option<Finding> {
    if !inside.has_sections {
        let text = "its section tables are stripped, so what it allocates with cannot be seen";
        return Some(Finding::unknown("stripped", text));
    }
    // A needed library of that name explains the text.
    let linked = |name: &str| {
        inside
            .needed
            .iter()
            .any(|library| super::allocators::of_library(library).is_some_and(|a| a.name == name))
    };
    if let Some(name) = inside.hints_at.iter().find(|name| !linked(name)) {
        let text = format!("it contains messages of {name} and may carry it");
        return Some(Finding::unknown("own-allocator", text));
    }
    if inside.rust == Some(RustAllocator::NotVisible) {
        let text = "it is a stripped or merged Rust program: a #[global_allocator], if it has one, cannot be seen";
        return Some(Finding::remark("rust-allocator-hidden", text));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    const X86_64: u16 = 62;

    fn ordinary() -> Facts {
        Facts {
            bits: 64,
            big_endian: false,
            machine: X86_64,
            kind: Kind::MovableProgram,
            loader: Some(String::from("/proc/self/root/bin/sh")),
            inside: Some(Inside {
                needed: vec![String::from("libc.so.6")],
                has_sections: true,
                has_symbols: true,
                imports_malloc: true,
                ..Inside::default()
            }),
        }
    }

    fn with(change: impl FnOnce(&mut Inside)) -> Vec<Finding> {
        let mut inside = ordinary().inside.expect("has one");
        change(&mut inside);
        allocator(&inside)
    }

    fn codes(findings: &[Finding]) -> Vec<(&'static str, Verdict)> {
        findings.iter().map(|finding| (finding.code, finding.verdict)).collect()
    }

    #[test]
    fn an_ordinary_program_has_nothing_to_say() {
        assert_eq!(with(|_| ()), []);
    }

    #[test]
    fn formats_that_no_library_gets_into() {
        let judged = |change: fn(&mut Facts)| {
            let mut facts = ordinary();
            change(&mut facts);
            format(&facts, Target { machine: X86_64, is_musl: false })
                .map(|finding| (finding.code, finding.verdict))
        };
        assert_eq!(judged(|f| f.loader = None), Some(("static", Verdict::No)));
        assert_eq!(judged(|f| f.machine = 183), Some(("other-machine", Verdict::No)));
        assert_eq!(judged(|f| f.bits = 32), Some(("32-bit", Verdict::No)));
        assert_eq!(judged(|f| f.kind = Kind::Other), Some(("not-a-program", Verdict::No)));
        assert_eq!(
            judged(|f| f.loader = Some("/no/ld-linux.so".into())),
            Some(("no-loader", Verdict::No))
        );
        assert_eq!(
            judged(|f| f.loader = Some("/lib/ld-musl-x86_64.so.1".into())),
            Some(("musl", Verdict::No))
        );
        // The loader's stand-in exists but is not a known loader.
        assert_eq!(judged(|_| ()), Some(("other-loader", Verdict::Unknown)));
    }

    #[test]
    fn a_library_for_musl_gets_into_programs_for_musl() {
        let folder = crate::statistics::Folder::quietly().expect("made");
        let judged = |loader: &str| {
            let loader = folder.path().join(loader);
            std::fs::write(&loader, "").expect("written");
            let facts = Facts { loader: loader.to_str().map(str::to_owned), ..ordinary() };
            format(&facts, Target { machine: X86_64, is_musl: true }).map(|finding| finding.code)
        };
        assert_eq!(judged("ld-musl-x86_64.so.1"), None);
        assert_eq!(judged("ld-linux-x86-64.so.2"), Some("glibc"));
    }

    #[test]
    fn allocators_inside() {
        let no = Verdict::No;
        let unknown = Verdict::Unknown;
        let exported = with(|i| i.exports_malloc = vec!["malloc".into(), "free".into()]);
        assert_eq!(codes(&exported), [("own-malloc", no)]);
        assert_eq!(
            exported[0].text,
            "it defines malloc, free itself, and its own come before preloaded ones"
        );
        let jemalloc = with(|i| {
            i.exports_malloc = vec!["malloc".into()];
            i.carries = vec!["jemalloc"];
        });
        assert!(jemalloc[0].text.contains("itself (jemalloc), and"), "{}", jemalloc[0].text);
        let rust = with(|i| {
            i.carries = vec!["mimalloc"];
            i.rust = Some(RustAllocator::Chosen);
        });
        assert_eq!(codes(&rust), [("global-allocator", no)]);
        let counting = with(|i| i.rust = Some(RustAllocator::Chosen));
        assert_eq!(codes(&counting), [("global-allocator", unknown)]);
        let carried = with(|i| i.carries = vec!["rpmalloc"]);
        assert_eq!(codes(&carried), [("own-allocator", unknown)]);
        let alone = with(|i| {
            i.carries = vec!["rpmalloc"];
            i.imports_malloc = false;
        });
        assert_eq!(codes(&alone), [("own-allocator", no)]);
        assert_eq!(codes(&with(|i| i.private_malloc = true)), [("own-malloc", unknown)]);
        assert_eq!(codes(&with(|i| i.go = true)), [("go", no)]);
        let asan = with(|i| i.sanitizer = Some("AddressSanitizer"));
        assert_eq!(codes(&asan), [("sanitizer", no)]);
    }

    #[test]
    fn allocators_beside_are_preceded() {
        let linked = with(|i| {
            i.needed.push("libjemalloc.so.2".into());
            i.hints_at = vec!["jemalloc"];
            i.asks_for = vec![("jemalloc", "mallocx".into())];
        });
        assert_eq!(
            codes(&linked),
            [("linked-allocator", Verdict::Yes), ("named-calls", Verdict::Yes)]
        );
    }

    #[test]
    fn stripped_programs_are_suspected_not_convicted() {
        let hinted = with(|i| i.hints_at = vec!["mimalloc"]);
        assert_eq!(codes(&hinted), [("own-allocator", Verdict::Unknown)]);
        let rust = with(|i| i.rust = Some(RustAllocator::NotVisible));
        assert_eq!(codes(&rust), [("rust-allocator-hidden", Verdict::Yes)]);
        let bare = with(|i| i.has_sections = false);
        assert_eq!(codes(&bare), [("stripped", Verdict::Unknown)]);
    }
}
