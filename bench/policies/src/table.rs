//! The race's tables: one for each number of caches.
//!
//! A cell is the median over rounds, and a variant's ratio to the library's own policy in
//! the same round. Beside it stands the ratio that the review measured on 72 cores with 32
//! caches: for other numbers of caches it is what to compare with, not what to expect.

use std::fmt::Write as _;

use figures::statistics::of_rounds;
use figures::text::{middle, ratio, table};
use policies::{CHOSEN, Variant, find};

use crate::options::Options;
use crate::race::{NS, Numbers};

/// The ratio that the review measured, if it did.
fn reviewed(variant: &Variant, threads: usize) -> String {
    let of = |variant: &Variant| variant.reviewed(threads != 40);
    let ratio = of(variant).zip(find(CHOSEN).and_then(of));
    ratio.map_or(String::new(), |(its, own)| format!("{:.2}", its / own))
}

pub(crate) fn report(options: &Options, numbers: &Numbers) -> String {
    let mut text = format!(
        "Nanoseconds of an operation, waiting included ({} operations of a thread): the median of {} \
         rounds, and its ratio to {CHOSEN} in the same round (95 % interval).\n\n",
        options.operations, options.rounds
    );
    for &caches in &options.caches.0 {
        let mut head = vec!["policy".to_owned()];
        let mut rows: Vec<Vec<String>> =
            options.variants.0.iter().map(|variant| vec![variant.name.to_owned()]).collect();
        let mut better = String::new();
        for &threads in &options.threads.0 {
            let turns = &numbers[&(caches, threads)];
            // The review has numbers of these alone.
            let is_reviewed = matches!(threads, 40 | 80);
            head.extend(is_reviewed.then(|| format!("review, {threads}")));
            head.extend([format!("{threads} threads: ns"), "ratio".to_owned()]);
            let mut found = Vec::new();
            for (variant, row) in options.variants.0.iter().zip(&mut rows) {
                let ratios = turns.ratios(variant.name, CHOSEN, NS);
                row.extend(is_reviewed.then(|| reviewed(variant, threads)));
                row.extend([middle(&turns.numbers(variant.name, NS), 1.0), ratio(&ratios)]);
                found.extend(
                    of_rounds(&ratios)
                        .filter(|ratio| ratio.is_trusted() && ratio.high < 1.0)
                        .map(|ratio| format!("{} {:.2}", variant.name, ratio.value)),
                );
            }
            let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
            let _ = writeln!(
                better,
                "- {caches} caches, {threads} threads: certainly better than {CHOSEN}: {found}."
            );
        }
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        let _ = write!(text, "### {caches} caches\n\n{}{better}\n", table(&head, &rows));
    }
    let columns = options.caches.0.len() * options.threads.0.len();
    let comparisons = columns * (options.variants.0.len() - 1);
    let _ = writeln!(
        text,
        "Of {comparisons} comparisons, about {:.1} come out certainly better by chance.",
        comparisons as f64 * 0.025
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Variants;
    use figures::options::Numbers;
    use figures::record::Record;
    use figures::turns::Turns;

    #[test]
    fn ratios_are_within_a_round_and_stand_beside_the_reviews() {
        let variants = [(CHOSEN, 1.0), ("before", 1.2), ("stay", 0.5)];
        let options = Options {
            caches: Numbers(vec![8]),
            threads: Numbers(vec![40]),
            operations: 10,
            variants: Variants(variants.iter().filter_map(|(name, _)| find(name)).collect()),
            rounds: 7,
            keep: None,
        };
        // The machine is slower from round to round; the ratios stay.
        let turns = Turns::take(variants.map(|(name, _)| name), 7, |_, round, at| {
            Ok(Record::of(&[(NS, variants[at].1 * (2.0 + round as f64))]))
        });
        let text = report(&options, &[((8, 40), turns)].into());
        assert!(text.contains("\n| before | 1.19 | 6.00 | 1.20 (1.20 to 1.20) |\n"), "{text}");
        assert!(text.contains("\n| stay |  | 2.50 | 0.500 (0.500 to 0.500) |\n"), "{text}");
        assert!(text.contains(
            "8 caches, 40 threads: certainly better than precedence-4-current: stay 0.50.\n"
        ));
        assert!(
            text.ends_with("Of 2 comparisons, about 0.1 come out certainly better by chance.\n")
        );
    }
}
