//! The race's tables: one for each number of caches.
//!
//! A cell is the median over rounds of a variant's ratio to the library's own policy in
//! the same round, with its 95 % interval (figures::statistics). Beside it stands the
//! ratio that the review measured on 72 cores with 32 caches: for other numbers of
//! caches it is what to compare with, not what to expect.

use std::fmt::Write as _;

use figures::statistics::{Estimate, estimate, median};
use policies::{CHOSEN, Review, Variant};

use crate::options::Options;
use crate::race::{Numbers, Place};

/// The review's number for a column, if it has one of this kind.
fn reviewed(variant: &Variant, threads: usize) -> Option<f64> {
    let of = |review: Review| match threads {
        40 => Some(review.threads_40),
        80 => Some(review.threads_80),
        _ => None,
    };
    variant.review.and_then(of).map(f64::from)
}

fn ratios(numbers: &Numbers, place: Place, chosen: usize) -> Option<Estimate> {
    let own = numbers.get(&Place { variant: chosen, ..place })?;
    let its = numbers.get(&place)?;
    estimate(&[its.iter().zip(own).map(|(its, own)| its / own).collect()])
}

pub(crate) fn report(options: &Options, numbers: &Numbers) -> String {
    let mut text = String::new();
    let chosen = options.variants.iter().position(|v| v.name == CHOSEN).unwrap_or(0);
    let _ = writeln!(
        text,
        "Nanoseconds of an operation, waiting included ({} operations of a thread): the median of {} \
         rounds, and its ratio to {CHOSEN} in the same round (95 % interval).\n",
        options.operations, options.rounds
    );
    for &caches in &options.caches {
        let _ = writeln!(text, "### {caches} caches\n");
        text.push_str("| policy |");
        for &threads in &options.threads {
            if matches!(threads, 40 | 80) {
                let _ = write!(text, " review, {threads} |");
            }
            let _ = write!(text, " {threads} threads: measured | ratio |");
        }
        text.push_str("\n|---|");
        for &threads in &options.threads {
            text.push_str(if matches!(threads, 40 | 80) {
                "---:|---:|---:|"
            } else {
                "---:|---:|"
            });
        }
        text.push('\n');
        for (index, variant) in options.variants.iter().enumerate() {
            let _ = write!(text, "| {} |", variant.name);
            for &threads in &options.threads {
                let place = Place { caches, threads, variant: index };
                if matches!(threads, 40 | 80) {
                    match (reviewed(variant, threads), reviewed(options.variants[chosen], threads))
                    {
                        (Some(its), Some(own)) => {
                            let _ = write!(text, " {:.2} |", its / own);
                        }
                        _ => text.push_str(" |"),
                    }
                }
                let measured = numbers.get(&place).map_or(f64::NAN, |rounds| median(rounds));
                let _ = write!(text, " {measured:.1} |");
                match ratios(numbers, place, chosen) {
                    Some(_) if index == chosen => text.push_str(" 1.00 |"),
                    Some(Estimate { value, low, high, .. }) => {
                        let _ = write!(text, " {value:.2} ({low:.2} to {high:.2}) |");
                    }
                    None => text.push_str(" |"),
                }
            }
            text.push('\n');
        }
        text.push('\n');
        for &threads in &options.threads {
            verdict(&mut text, options, numbers, Place { caches, threads, variant: chosen });
        }
        text.push('\n');
    }
    let columns = options.caches.len() * options.threads.len();
    let comparisons = columns * (options.variants.len() - 1);
    let _ = writeln!(
        text,
        "Of {comparisons} comparisons, about {:.1} come out certainly better by chance.",
        comparisons as f64 * 0.025
    );
    if options.rounds < 6 {
        text.push_str("Fewer than 6 rounds: these intervals say nothing.\n");
    }
    text
}

/// Whether any variant was certainly better than the library's own.
fn verdict(text: &mut String, options: &Options, numbers: &Numbers, own: Place) {
    let better: Vec<String> = options
        .variants
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != own.variant)
        .filter_map(|(index, variant)| {
            let ratio = ratios(numbers, Place { variant: index, ..own }, own.variant)?;
            (ratio.high < 1.0 && ratio.is_trusted())
                .then(|| format!("{} {:.2}", variant.name, ratio.value))
        })
        .collect();
    let found = if better.is_empty() { "none".to_owned() } else { better.join(", ") };
    let Place { caches, threads, .. } = own;
    let _ = writeln!(
        text,
        "- {caches} caches, {threads} threads: certainly better than {CHOSEN}: {found}."
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use policies::find;

    fn options(rounds: usize) -> Options {
        Options {
            caches: vec![8],
            threads: vec![40],
            operations: 10,
            variants: [CHOSEN, "before", "stay"].iter().filter_map(|name| find(name)).collect(),
            rounds,
            keep: None,
        }
    }

    fn numbers(rounds: usize) -> Numbers {
        let mut numbers = Numbers::new();
        for (variant, factor) in [(0, 1.0), (1, 1.2), (2, 0.5)] {
            // The machine is slower from round to round; the ratios stay.
            let seconds = (0..rounds).map(|round| factor * (2.0 + round as f64));
            numbers.insert(Place { caches: 8, threads: 40, variant }, seconds.collect());
        }
        numbers
    }

    #[test]
    fn ratios_are_within_a_round_and_stand_beside_the_reviews() {
        let text = report(&options(7), &numbers(7));
        assert!(text.contains("\n| precedence-4-current | 1.00 | 5.0 | 1.00 |\n"), "{text}");
        assert!(text.contains("\n| before | 1.19 | 6.0 | 1.20 (1.20 to 1.20) |\n"), "{text}");
        assert!(text.contains("\n| stay | | 2.5 | 0.50 (0.50 to 0.50) |\n"), "{text}");
        assert!(text.contains(
            "8 caches, 40 threads: certainly better than precedence-4-current: stay 0.50.\n"
        ));
        assert!(
            text.ends_with("\nOf 2 comparisons, about 0.1 come out certainly better by chance.\n"),
            "{text}"
        );
    }

    #[test]
    fn few_rounds_say_nothing() {
        let text = report(&options(2), &numbers(2));
        assert!(text.contains("certainly better than precedence-4-current: none.\n"), "{text}");
        assert!(text.ends_with("Fewer than 6 rounds: these intervals say nothing.\n"));
    }
}
