//! Checks the table of workloads, and the checksum of each.

use super::*;

/// Workloads stay as they are: another checksum makes earlier measurements incomparable.
const MINIATURES: &[(&str, u64)] = &[
    ("empty", 0x0000000000000000),
    ("cfrac", 0xd62c950e2b9da29c),
    ("espresso", 0xfba7278b8c3c0c92),
    ("barnes", 0xeda8a3a9475f5b1e),
    ("tree", 0x2c4ebb23fa97a6fa),
    ("strings", 0xa0d47c3c513f92b4),
    ("alloc-test", 0x1b7f63a86feb517d),
    ("alloc-test-4", 0x1b7f5f504ab17945),
    ("random-400k", 0x02fa232f8493f7a4),
    ("large", 0x4147b76ae7bcf95a),
    ("realloc", 0xb59a2754a14a51ed),
    ("fragment", 0x2b3b03956c4dd525),
    ("larson-1", 0x2c8192192fe8c75e),
    ("larson", 0xa7808f897db1125b),
    ("larson-16", 0xc400aab703af2cb2),
    ("larson-64", 0x8501d7347d134c7c),
    ("xmalloc", 0x39e9e831c0550227),
    ("rptest", 0xcc7af5bd40652aa2),
    ("mstress", 0x530c07878e9f8eb9),
    ("threads", 0xad81003b2d722c69),
    ("burst", 0xa19e9d30f99ee449),
    ("crowd", 0xab89af67db051cee),
    ("cache-scratch", 0xf9554744ee8df060),
    ("cache-thrash", 0x7009c68d43194df1),
];

#[test]
fn every_miniature_gives_its_golden_checksum_twice() {
    let names: Vec<&str> = MINIATURES.iter().map(|&(name, _)| name).collect();
    assert_eq!(names, ALL.iter().map(|workload| workload.name).collect::<Vec<_>>());
    for (workload, &(name, golden)) in ALL.iter().zip(MINIATURES) {
        for turn in 1..=2 {
            let checksum = (workload.run)(0);
            assert_eq!(checksum, golden, "{name}, turn {turn}: {checksum:#018x}");
        }
    }
}

#[test]
fn names_are_unique_and_kebab_case() {
    for (at, workload) in ALL.iter().enumerate() {
        let name = workload.name;
        assert!(ALL[..at].iter().all(|other| other.name != name), "{name} is there twice");
        let words = || name.split('-');
        let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        assert!(words().all(|word| !word.is_empty() && word.chars().all(fine)), "{name}");
    }
}

#[test]
fn names_are_found() {
    for workload in ALL {
        assert_eq!(find(workload.name).map(|found| found.name), Some(workload.name));
    }
    assert!(find("no-such-workload").is_none());
}

#[test]
fn every_workload_says_what_it_is() {
    for Workload { name, stands_for, threads, live_bytes, operations, .. } in ALL {
        assert!(stands_for.ends_with('.') && !stands_for.contains(". "), "{name}: one sentence");
        assert!(stands_for.contains(": "), "{name}: what it models, and what it exercises");
        assert!([1, 2, 4, 16, 64, 400].contains(threads), "{name}");
        assert_eq!(*live_bytes == 0, *name == "empty");
        assert_eq!(*operations == 0, *name == "empty");
    }
    let large = ALL.iter().filter(|workload| workload.live_bytes >= 32 << 20).count();
    assert!(large >= 8, "memory is compared where much of it lives");
}

fn table() -> String {
    let mut table = String::from("| name | threads | live | stands for |\n|---|---|---|---|\n");
    for Workload { name, stands_for, threads, live_bytes, .. } in ALL {
        let live = match live_bytes {
            0 => "-".to_owned(),
            1..0x10_0000 => format!("{} KiB", live_bytes.div_ceil(1 << 10)),
            _ => format!("{:.1} MiB", *live_bytes as f64 / MIB as f64),
        };
        table.push_str(&format!("| `{name}` | {threads} | {live} | {stands_for} |\n"));
    }
    table
}

#[test]
fn the_readme_lists_all() {
    let readme = include_str!("../README.md");
    assert!(readme.contains(&table()), "README.md should contain:\n{}", table());
}
