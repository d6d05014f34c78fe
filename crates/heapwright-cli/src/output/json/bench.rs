//! A race, as one JSON object: `bench::results` as it is.

use crate::bench::results::Results;

/// The object, as text.
pub(crate) fn results(results: &Results) -> String {
    super::text(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::comparison::tests::example;
    use crate::bench::results::Kind;

    #[test]
    fn what_is_written_can_be_read() {
        let written = example(&[("empty", Kind::Workload), ("odd", Kind::Program)]);
        let read: Results = serde_json::from_str(&results(&written)).expect("is readable");
        assert_eq!(results(&read), results(&written));
    }

    #[test]
    fn the_words_are_those_documented() {
        let value: serde_json::Value =
            serde_json::from_str(&results(&example(&[("odd", Kind::Program)]))).expect("is JSON");
        assert_eq!(value["schema"], "heapwright-bench/1");
        assert_eq!(value["programs"][0]["kind"], "program");
        assert_eq!(value["programs"][0]["results"][2]["outcome"], "crashed");
        assert_eq!(value["programs"][0]["results"][0]["outcome"], "ok");
        assert_eq!(value["programs"][0]["results"][0]["runs"][0]["peak_rss_bytes"], 42 << 20);
        assert_eq!(value["summary"]["comparisons"][0]["measure"], "time");
    }
}
