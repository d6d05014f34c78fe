//! Golden files: whole outputs, in `golden/` of this package, for the formatters and the command.
//! They have few lines: in JSON and markup, inner lines are appended to the outer line.

use std::path::Path;

/// The elements that begin a line.
const BEGINS: [&str; 9] =
    ["<section", "<details", "<table", "<tr", "<figure", "<svg", "<error>", "<testcase", "<stack>"];

/// Compares an output, but for version, styles and scripts, or writes it (`HEAPWRIGHT_BLESS=1`).
pub(crate) fn golden(name: &str, made: &str) {
    let mut made = made.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    for (begin, end) in [("<style", "</style>"), ("<script>\n", "</script>")] {
        while let Some(from) = made.find(begin)
            && let Some(length) = made[from..].find(end)
        {
            made.replace_range(from..from + length + end.len(), "");
        }
    }
    let deepest = if name.ends_with("sarif") { 8 } else { 2 };
    let mut folded = String::new();
    for line in made.lines() {
        let inner = line.trim_start();
        let is_within = match made.as_bytes()[0] {
            b'{' => line.len() - inner.len() > deepest || inner.starts_with('}'),
            b'<' => !BEGINS.iter().any(|begin| inner.starts_with(begin)),
            _ => false,
        };
        folded += if is_within { " " } else { "\n" };
        folded += if is_within { inner } else { line };
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    if std::env::var_os("HEAPWRIGHT_BLESS").is_some() {
        return std::fs::write(&path, folded + "\n").expect("is written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let expected = expected.trim_end_matches('\n');
    let differs = folded.bytes().zip(expected.bytes()).position(|(new, old)| new != old);
    let at = differs.unwrap_or(folded.len().min(expected.len())).saturating_sub(100);
    let part = |text: &str| {
        String::from_utf8_lossy(&text.as_bytes()[at..]).chars().take(300).collect::<String>()
    };
    assert!(
        folded.trim_end_matches('\n') == expected,
        "{name} is another (HEAPWRIGHT_BLESS=1 writes it):\n{}\ninstead of\n{}",
        part(&folded),
        part(expected),
    );
}
