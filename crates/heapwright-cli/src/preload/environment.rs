//! The two variables that run a program on heapwright.
//!
//! Values that were set before are kept. Other preloaded libraries are loaded after ours. The
//! library reads options from left to right, so later options win.

use crate::symbols::is_heapwright;
use crate::wrong::wrong;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The longest value that the library reads: it has no heap yet for a longer one.
const LONGEST: usize = 2048;

/// Puts `library` before the old value: the loader uses the first of two libraries that define
/// malloc. A second library of heapwright is left out: both would write statistics at the end.
pub(crate) fn preload_variable(library: &Path, before: Option<&OsStr>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    let before = before.unwrap_or_default();
    let is_separator = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b':');
    for other in before.as_bytes().split(is_separator) {
        if !other.is_empty() && !is_heapwright(other) {
            value.push(":");
            value.push(OsStr::from_bytes(other));
        }
    }
    value
}

#[derive(Default)]
pub(crate) struct Options {
    value: OsString,
}

impl Options {
    /// Starts with a default option, which the variable's old value may overrule.
    pub(crate) fn inherited_over(default: &str, before: Option<&OsStr>) -> Self {
        let mut options = Self::default();
        options.push(OsStr::new(default));
        options.push(before.unwrap_or_default());
        options
    }

    pub(crate) fn inherited(before: Option<&OsStr>) -> Self {
        let mut options = Self::default();
        options.push(before.unwrap_or_default());
        options
    }

    /// Takes options in the user's form: `key=value`, or several of them.
    pub(crate) fn add(&mut self, option: &str) -> anyhow::Result<()> {
        match option.split_once('=') {
            Some((key, _)) if !key.trim().is_empty() => {
                self.push(OsStr::new(option));
                Ok(())
            }
            _ => Err(wrong(format!("option '{option}' is not of the form KEY=VALUE"))),
        }
    }

    /// Requests a stats file `prefix.<pid>` from each process.
    pub(crate) fn stats_file(&mut self, prefix: &Path) {
        self.path("stats_file=", prefix);
    }

    /// Requests a debug record `prefix.<pid>` from each process.
    pub(crate) fn record(&mut self, prefix: &Path) {
        self.path("record=", prefix);
    }

    /// Requests that each process guard the sites in this file of an earlier run.
    pub(crate) fn sites(&mut self, file: &Path) {
        self.path("sites=", file);
    }

    /// Requests a trace `prefix.<pid>` from each process.
    pub(crate) fn trace(&mut self, prefix: &Path) {
        self.path("trace=", prefix);
    }

    /// Requests a time line `prefix.<pid>` from each process.
    pub(crate) fn timeline(&mut self, prefix: &Path) {
        self.path("timeline=", prefix);
    }

    /// Requests a heap profile `prefix.<pid>` from each process.
    pub(crate) fn profile(&mut self, prefix: &Path) {
        self.path("profile=", prefix);
    }

    fn path(&mut self, key: &str, path: &Path) {
        let mut option = OsString::from(key);
        option.push(path);
        self.push(&option);
    }

    /// Fills the value up with options without effect. Values then have one length, and programs
    /// that inherit them have their stacks at the same addresses.
    pub(crate) fn fill_up(&mut self) {
        let missing = LONGEST.saturating_sub(self.value.len());
        self.value.push(",".repeat(missing));
    }

    pub(crate) fn value(&self) -> anyhow::Result<Option<&OsStr>> {
        let length = self.value.len();
        if length > LONGEST {
            return Err(wrong(format!(
                "the options are {length} bytes long, and the library reads {LONGEST}"
            )));
        }
        Ok((length > 0).then_some(&*self.value))
    }

    fn push(&mut self, options: &OsStr) {
        if options.is_empty() {
            return;
        }
        if !self.value.is_empty() {
            self.value.push(",");
        }
        self.value.push(options);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preload(before: &str) -> String {
        let value = preload_variable(Path::new("/x/libheapwright.so"), Some(OsStr::new(before)));
        value.into_string().expect("is text")
    }

    #[test]
    fn ours_comes_first_and_once() {
        assert_eq!(preload(""), "/x/libheapwright.so");
        assert_eq!(preload("a.so:/b.so"), "/x/libheapwright.so:a.so:/b.so");
        assert_eq!(preload(" a.so  b.so "), "/x/libheapwright.so:a.so:b.so");
        assert_eq!(preload("a.so:/x/libheapwright.so"), "/x/libheapwright.so:a.so");
        assert_eq!(preload("/y/libheapwright-check.so b.so"), "/x/libheapwright.so:b.so");
    }

    #[test]
    fn options_are_kept_in_order_of_precedence() {
        let mut options = Options::inherited(Some(OsStr::new("purge=10,stats=exit")));
        options.add("purge=20").expect("is an option");
        options.add("a=1,b=2").expect("are options");
        options.stats_file(Path::new("/tmp/x/s"));
        assert_eq!(
            options.value().expect("is short"),
            Some(OsStr::new("purge=10,stats=exit,purge=20,a=1,b=2,stats_file=/tmp/x/s"))
        );
        for nothing in [None, Some(OsStr::new(""))] {
            assert_eq!(Options::inherited(nothing).value().expect("is short"), None);
        }
        options.fill_up();
        let filled = options.value().expect("is not too long").expect("is something");
        assert_eq!(filled.len(), LONGEST);
        options.add(&format!("x={}", "y".repeat(LONGEST))).expect("is an option");
        options.value().expect_err("the library would not read it");
    }

    #[test]
    fn an_option_without_a_key_or_value_is_refused() {
        for wrong in ["", "purge", "=250", " =1"] {
            let error = Options::default().add(wrong).expect_err("is refused");
            assert_eq!(error.to_string(), format!("option '{wrong}' is not of the form KEY=VALUE"));
        }
    }
}
