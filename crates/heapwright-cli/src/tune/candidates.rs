//! What is tried: sets of options for the library.
//!
//! ```text
//! {}                               the defaults
//! {cache: auto}                    the control: the defaults, spelt out
//! {cache: percpu}                  one option by itself
//! {cache: percpu, purge: never}    a combination
//! ```
//!
//! **Invariant:** a candidate has one value an option, and its options have one order, so that two
//! equal ones are equal and have one text.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

/// An option that is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Cache,
    Purge,
    HugePages,
}

impl Key {
    /// Its name in the option string.
    fn name(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Purge => "purge",
            Self::HugePages => "huge_pages",
        }
    }
}

/// A set of options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidate(BTreeMap<Key, String>);

impl Candidate {
    /// No option.
    pub(crate) fn defaults() -> Self {
        Self::default()
    }

    /// The defaults, spelt out: what it differs by from them is noise.
    pub(crate) fn control() -> Self {
        Self::of(Key::Cache, "auto")
    }

    /// One option by itself.
    pub(crate) fn of(key: Key, value: &str) -> Self {
        Self(BTreeMap::from([(key, value.to_owned())]))
    }

    /// The options of both; where both have a value, that of `other`.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        all.extend(other.0.clone());
        Self(all)
    }

    /// The options that are set.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.0.keys().copied()
    }

    /// How many options are set.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The option string: `cache=percpu,purge=never`; empty for the defaults.
    pub(crate) fn text(&self) -> String {
        let options: Vec<String> =
            self.0.iter().map(|(key, value)| format!("{}={value}", key.name())).collect();
        options.join(",")
    }
}

/// The machine and the program, as far as they decide what is worth trying.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    /// Threads of the program.
    pub(crate) threads: u64,
    /// Processors of the machine.
    pub(crate) cores: usize,
    /// When the kernel uses huge pages: `always`, `madvise`, `never`, or a word that is not known.
    pub(crate) huge_pages: &'a str,
}

/// Every option by itself.
///
/// A program with one thread has one shared cache whatever their number is, and huge pages can
/// only be switched off where the kernel has them.
pub(crate) fn singles(setting: Setting<'_>) -> Vec<Candidate> {
    let mut all =
        vec![Candidate::of(Key::Cache, "exclusive"), Candidate::of(Key::Cache, "shared:1")];
    if setting.threads > 1 && setting.cores > 1 {
        all.push(Candidate::of(Key::Cache, &format!("shared:{}", setting.cores.min(MOST_SHARED))));
    }
    all.push(Candidate::of(Key::Cache, "percpu"));
    all.extend(PURGE.map(|wait| Candidate::of(Key::Purge, wait)));
    if matches!(setting.huge_pages, "always" | "madvise") {
        all.push(Candidate::of(Key::HugePages, "never"));
    }
    all
}

/// What `shared` without a number has at most.
const MOST_SHARED: usize = 32;

/// How long free pages wait, in milliseconds: not at all, as long as at least by default, as long
/// as at most by default, for ever.
const PURGE: [&str; 4] = ["0", "250", "5500", "never"];

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(threads: u64, cores: usize, huge_pages: &str) -> Vec<String> {
        singles(Setting { threads, cores, huge_pages }).iter().map(Candidate::text).collect()
    }

    #[test]
    fn what_cannot_matter_is_not_tried() {
        let purge = ["purge=0", "purge=250", "purge=5500", "purge=never"];
        let caches = ["cache=exclusive", "cache=shared:1", "cache=percpu"];
        assert_eq!(texts(1, 8, "never"), [&caches[..], &purge].concat());
        assert_eq!(texts(8, 1, "unknown"), [&caches[..], &purge].concat());
        let all = texts(2, 8, "madvise");
        assert!(all.contains(&"cache=shared:8".to_owned()), "{all:?}");
        assert_eq!(all.last().map(String::as_str), Some("huge_pages=never"));
        assert!(texts(2, 100, "never").contains(&"cache=shared:32".to_owned()));
    }

    #[test]
    fn equal_sets_have_one_text() {
        let (cache, purge) = (Candidate::of(Key::Cache, "percpu"), Candidate::of(Key::Purge, "0"));
        assert_eq!(cache.and(&purge), purge.and(&cache));
        assert_eq!(purge.and(&cache).text(), "cache=percpu,purge=0");
        assert_eq!(purge.and(&Candidate::of(Key::Purge, "never")).text(), "purge=never");
        assert_eq!((Candidate::defaults().text(), Candidate::defaults().len()), (String::new(), 0));
        assert_eq!(cache.keys().collect::<Vec<_>>(), [Key::Cache]);
    }
}
