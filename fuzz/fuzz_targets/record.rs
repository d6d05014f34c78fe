//! Any bytes as a stats file: decoding never panics, and what decodes encodes
//! to something that decodes to the same.
#![no_main]

use heapwright_record::Stats;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(stats) = Stats::decode(bytes) {
        assert_eq!(Stats::decode(&stats.encode()), Ok(stats));
    }
});
