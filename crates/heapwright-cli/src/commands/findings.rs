//! `heapwright findings`: the page of a kind of finding (`docs/findings/`), on the terminal.

use crate::output;
use crate::process::Exit;
use crate::wrong::wrong;

/// Explain a kind of finding: an example, its report, and the remedy
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  heapwright findings
  heapwright findings double-free")]
pub(crate) struct Args {
    /// The kind, as a report names it [default: list them]
    #[arg(value_name = "KIND")]
    kind: Option<String>,
}

macro_rules! pages {
    ($($kind:literal),* $(,)?) => {
        &[$(($kind, include_str!(concat!("../../findings/", $kind, ".md")))),*]
    };
}

/// All pages, in the order of reports.
const PAGES: &[(&str, &str)] = pages![
    "double-free",
    "invalid-free",
    "interior-free",
    "size-mismatch",
    "alignment-mismatch",
    "allocator-mismatch",
    "buffer-overflow",
    "may-overflow",
    "buffer-underflow",
    "write-after-free",
    "use-after-free",
    "use-after-poison",
    "invalid-realloc",
    "realloc-after-free",
    "uninitialised-value",
    "definitely-lost",
    "indirectly-lost",
    "possibly-lost",
    "still-reachable",
    "growth",
];

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let text = match &args.kind {
        None => PAGES.iter().map(|(kind, page)| format!("{kind:20} {}\n", first(page))).collect(),
        Some(kind) => match PAGES.iter().find(|(known, _)| known == kind) {
            Some((_, page)) => plain(page),
            None => {
                let kinds = "'heapwright findings' lists the kinds";
                return Err(wrong(format!("there is no finding '{kind}'; {kinds}")));
            }
        },
    };
    output::to_stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Code(0))
}

/// Returns the first sentence of a page.
fn first(page: &str) -> String {
    let paragraph = page.split("\n\n").nth(1).unwrap_or_default().replace('\n', " ");
    match paragraph.split_once(". ") {
        Some((sentence, _)) => format!("{sentence}."),
        None => paragraph,
    }
}

/// Returns a page without the marks of Markdown that say nothing on a terminal.
fn plain(page: &str) -> String {
    let mut text = String::new();
    for line in page.lines() {
        if line.starts_with("<!--") || line.starts_with("```") {
            continue;
        }
        text += line
            .trim_start_matches('#')
            .trim_start_matches(|letter| letter == ' ' && line.starts_with('#'));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapwright_record::debug::{FindingKind, Reach};

    #[test]
    fn each_kind_has_a_page() {
        let is_known = |word: &str| PAGES.iter().any(|(kind, _)| *kind == word);
        let kinds = FindingKind::ALL.iter().skip(1).filter(|kind| **kind != FindingKind::Leak);
        for word in kinds.map(|kind| kind.heading()) {
            assert!(is_known(word), "{word}");
        }
        for reach in Reach::ALL.iter().skip(1) {
            assert!(is_known(reach.word()), "{reach:?}");
        }
    }

    #[test]
    fn pages_are_plain_text() {
        for (kind, page) in PAGES {
            let text = plain(page);
            assert_eq!(text.lines().next(), Some(*kind));
            assert!(!text.contains("```") && !text.contains("<!--"), "{kind}");
            assert!(first(page).ends_with('.'), "{kind}: {}", first(page));
        }
    }
}
