//! A mistake in the user's request, as opposed to a failure of ours.
//!
//! Every subcommand ends with exit code 2 for such an error.

use std::fmt;

/// What the user got wrong, in words.
#[derive(Debug)]
pub(crate) struct Wrong(String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

/// An error that is the user's mistake.
pub(crate) fn wrong(text: String) -> anyhow::Error {
    Wrong(text).into()
}

/// The same error, as the user's mistake.
pub(crate) fn is_wrong(error: &anyhow::Error) -> anyhow::Error {
    wrong(format!("{error:#}"))
}
