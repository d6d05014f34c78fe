//! A kernel facility for large pages that is switched off on this machine.
//!
//! Since Linux 6.8 anonymous memory may lie in pages of 64 KiB, set by one file for the whole
//! machine. A unit is 64 KiB too, so such a page is filled and given back whole. Only `always`
//! helps: with `madvise` the library's call would request the larger huge pages as well.

use super::Finding;
use std::fs;

const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";

/// Returns a remark if the kernel has pages of 64 KiB and they are switched off.
pub(crate) fn remark() -> Option<Finding> {
    let read = |name| fs::read_to_string(format!("{FOLDER}/{name}")).ok();
    is_off(&read("hugepages-64kB/enabled")?, &read("enabled")?).then(|| {
        Finding::remark(
            "small-folios-off",
            format!(
                "this machine's kernel could use pages of 64 KiB and does not: with them programs with large or \
                 growing buffers take up to 40 % less time, and up to an eighth more memory (as root: echo always > \
                 {FOLDER}/hugepages-64kB/enabled)"
            ),
        )
    })
}

/// The settings are as in `always inherit madvise [never]`.
fn is_off(of_size: &str, of_all: &str) -> bool {
    match chosen(of_size) {
        Some("inherit") => chosen(of_all) != Some("always"),
        choice => choice.is_some_and(|choice| choice != "always"),
    }
}

fn chosen(choices: &str) -> Option<&str> {
    choices.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

#[cfg(test)]
mod tests {
    use super::is_off;

    #[test]
    fn only_always_is_on() {
        let of_all = "always [madvise] never\n";
        assert!(is_off("always inherit madvise [never]\n", of_all));
        assert!(is_off("always inherit [madvise] never\n", of_all));
        assert!(is_off("always [inherit] madvise never\n", of_all));
        assert!(!is_off("always [inherit] madvise never\n", "[always] madvise never\n"));
        assert!(!is_off("[always] inherit madvise never\n", of_all));
        assert!(!is_off("always never\n", of_all));
        assert!(!is_off("", ""));
    }
}
