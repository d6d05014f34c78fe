//! Finds the items among many that have an effect, by halving.
//!
//! ```text
//! t1 t2 t3 t4 t5 t6 t7 t8     known to have the effect
//! t1 t2 t3 t4                 no effect: an item of the other half has it
//!             t5 t6           effect
//!             t5              no effect
//!                t6           effect: t6 is found
//!                   t7 t8     no effect
//! ```
//!
//! A search for one item among a thousand takes some twenty runs, and each further item another
//! twenty. An effect that needs items from both halves is not found.

/// A function that runs some items and returns their effects.
type Run<'r, T, E> = &'r mut dyn FnMut(&[T]) -> Result<Vec<String>, E>;

/// Returns the items of `all` that have an effect when run alone, with their effects. All items
/// together must have an effect.
pub(super) fn culprits<'t, T, E>(
    all: &'t [T],
    run: Run<'_, T, E>,
) -> Result<Vec<(&'t T, Vec<String>)>, E> {
    let mut found = Vec::new();
    among(all, true, run, &mut found)?;
    Ok(found)
}

fn among<'t, T, E>(
    some: &'t [T],
    do_it: bool,
    run: Run<'_, T, E>,
    found: &mut Vec<(&'t T, Vec<String>)>,
) -> Result<(), E> {
    if let [one] = some {
        // The last item left need not have the effect alone.
        let done = run(some)?;
        found.extend((!done.is_empty()).then_some((one, done)));
        return Ok(());
    }
    if some.is_empty() || !do_it && run(some)?.is_empty() {
        return Ok(());
    }
    let (first, second) = some.split_at(some.len() / 2);
    let before = found.len();
    among(first, false, run, found)?;
    among(second, found.len() == before, run, found)
}

#[cfg(test)]
mod unit {
    use super::*;
    use std::convert::Infallible;

    /// Returns the items found among `all` numbers, and the number of runs.
    fn found(all: usize, does: &dyn Fn(&[usize]) -> bool) -> (Vec<usize>, usize) {
        let (all, mut runs): (Vec<usize>, _) = ((0..all).collect(), 0);
        let mut run = |some: &[usize]| -> Result<Vec<String>, Infallible> {
            runs += 1;
            Ok(if does(some) { vec![String::from("something")] } else { Vec::new() })
        };
        let Ok(found) = culprits(&all, &mut run);
        (found.into_iter().map(|(one, _)| *one).collect(), runs)
    }

    #[test]
    fn each_is_found_with_few_runs() {
        for culprit in [0, 1, 511, 512, 998, 999] {
            let (found, runs) = found(1000, &|some| some.contains(&culprit));
            assert_eq!(found, [culprit]);
            assert!(runs <= 21, "{runs} runs for {culprit}");
        }
        let (three, runs) = found(1000, &|some| [3, 4, 900].iter().any(|one| some.contains(one)));
        assert_eq!(three, [3, 4, 900]);
        assert!(runs <= 60, "{runs}");
        assert_eq!(found(1, &|_| true), (vec![0], 1));
        assert_eq!(found(0, &|_| true), (Vec::new(), 0));
    }

    #[test]
    fn what_only_several_do_is_not_found() {
        let (alone, runs) = found(64, &|some| some.contains(&3) && some.contains(&60));
        assert!(alone.is_empty(), "{alone:?}");
        assert!(runs <= 14, "{runs}");
        assert_eq!(found(8, &|_| true).0, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
