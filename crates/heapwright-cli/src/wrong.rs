//! A mistake in the user's request: every subcommand ends with exit code 2 for it.

use std::fmt;

#[derive(Debug)]
pub(crate) struct Wrong(String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

pub(crate) fn wrong(text: String) -> anyhow::Error {
    Wrong(text).into()
}

pub(crate) fn is_wrong(error: &anyhow::Error) -> anyhow::Error {
    wrong(format!("{error:#}"))
}
