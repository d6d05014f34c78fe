//! Decodes any bytes as a stats file. Decoding never panics. Decoded statistics are encoded, and
//! decode to the same.
#![no_main]

use heapwright_record::Stats;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(stats) = Stats::decode(bytes) {
        assert_eq!(Stats::decode(&stats.encode()), Ok(stats));
    }
});
