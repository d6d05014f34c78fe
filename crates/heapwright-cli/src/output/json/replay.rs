//! A replay, as one JSON object: `replay::results` as it is.

use crate::replay::results::Results;

/// The object, as text.
pub(crate) fn results(results: &Results) -> String {
    super::text(results)
}
