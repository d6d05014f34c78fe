//! Compares reports in every format with golden files.

use super::{Format, Look, Plain, explain, memcheck, profile, render};
use crate::report::explained::Explained;
use crate::report::model::{Ready, Report};
use crate::report::sample::{self, golden};
use clap::ValueEnum;
use heapwright_record::debug::Reach;

/// Returns a report in a format, as text: JSON is indented, pprof's file shows its fields.
fn written(report: &Report, format: Format) -> String {
    let mut out = Vec::new();
    render(report, format, &mut out, Look::PLAIN).expect("is written");
    match format {
        Format::Sarif | Format::Dhat => {
            let value: serde_json::Value = serde_json::from_slice(&out).expect("is JSON");
            format!("{value:#}\n")
        }
        Format::Pprof => profile::pprof_fields(&out),
        _ => String::from_utf8(out).expect("is text"),
    }
}

fn named(report: &Report, format: Format) -> (String, String) {
    let name = format.to_possible_value().expect("is one").get_name().to_owned();
    let made = written(report, format);
    match format {
        Format::MemcheckXml => assert_eq!(memcheck::protocol::check(&made), Ok(())),
        Format::Html => assert!(made.matches("<script>").count() == 1 && !made.contains("://")),
        _ => {}
    }
    if matches!(format, Format::Html | Format::Junit | Format::Flamegraph) {
        assert!(!made.contains("<script>alert") && !made.contains("<b>hi</b>"), "{name}");
    }
    (name, made)
}

/// Compares a whole report and an empty one in almost every format, and a heap profile in some.
#[test]
fn formats_are_as_they_were() {
    let mut all = sample::report();
    all.wanted.details = vec![Reach::Definite, Reach::Possible, Reach::Reachable];
    let mut nothing = String::new();
    for format in Format::value_variants() {
        let (name, made) = named(&Report::default(), *format);
        if *format != Format::Html && *format != Format::Sarif {
            let words: Vec<&str> = made.split_whitespace().collect();
            nothing += &format!("== {name}\n{}\n", words.join(" "));
        }
        let is_memcheck = *format == Format::MemcheckXml;
        all.wanted.suppressions = if is_memcheck { Ready::Block } else { Ready::Line };
        let (name, made) = named(&all, *format);
        if *format != Format::Flamegraph {
            golden(&format!("report.{name}"), &made);
        }
    }
    golden("report.nothing", &nothing);
    for format in [Format::Text, Format::Json, Format::Html, Format::Pprof] {
        let (name, made) = named(&sample::profile(), format);
        golden(&format!("profile.{name}"), &made);
    }
    let report = sample::profile();
    let explained = Explained::largest(&report).expect("there is one");
    let document = explain::recorded(&report, &explained);
    let made = |format: Plain| document.rendered(format, Look::PLAIN).expect("is made");
    golden("explain.text", &made(Plain::Text));
    golden("explain.json", &made(Plain::Json));
}

/// Writes the pages to the folder in `HEAPWRIGHT_SAMPLES`, for people and for `ci/html.sh`.
#[test]
#[ignore = "writes pages for ci/html.sh"]
fn written_as_pages() {
    let folder = std::env::var_os("HEAPWRIGHT_SAMPLES").expect("is set");
    let folder = std::path::PathBuf::from(folder);
    for (name, report) in [("report.html", sample::report()), ("profile.html", sample::profile())] {
        std::fs::write(folder.join(name), written(&report, Format::Html)).expect("is written");
    }
}
