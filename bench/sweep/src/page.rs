//! The page of pictures.

use crate::cells::Sweep;

/// A page.
pub(crate) fn of(_sweep: &Sweep) -> String {
    String::new()
}
