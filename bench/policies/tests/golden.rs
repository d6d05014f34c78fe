//! The same seed gives the same text, byte by byte, wherever it runs.
//!
//! `BLESS=1 cargo test -p policies --test golden` writes down what comes now.

use policies::simulator::calibration::{Calibration, Costs};
use policies::simulator::study::{Wanted, report};

#[test]
fn a_miniature_is_the_same_everywhere() {
    let calibration = Calibration {
        date: "never".into(),
        machine: "a miniature".into(),
        load: "0".into(),
        costs: Costs {
            try_unlock: 4,
            line: 40,
            look: 25,
            clock: 25,
            wake_none: 250,
            wake_call: 3000,
            wake_latency: 8000,
            switch: 2000,
            slice: 60_000,
            cold_lines: 2,
            op: vec![20, 60, 200],
            work: vec![50, 90, 160],
        },
    };
    let wanted = Wanted {
        cpus: 6,
        caches: 3,
        threads: [4, 8],
        ms: 1,
        seeds: 3,
        sensitivity: true,
        most_cpus: 8,
    };
    let text = report(&calibration, &wanted);
    for heading in text.lines().filter(|line| line.starts_with('#')) {
        assert!(heading.starts_with("### Simulated: "), "{heading}");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    for (number, (now, before)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(now, before, "line {} changed", number + 1);
    }
    assert_eq!(text, golden);
}
