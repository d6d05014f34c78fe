//! A tuning, as one JSON object: `tune::results` as it is.

use crate::tune::results::Results;

/// The object, as text.
pub(crate) fn results(results: &Results) -> String {
    super::text(results)
}
