//! Finds by halves the items among many that have an effect.
//!
//! ```text
//! t1 t2 t3 t4 t5 t6 t7 t8     does it, that is known
//! t1 t2 t3 t4                 does not: it is of the others
//!             t5 t6           does it
//!             t5              does not
//!                t6           does: it is t6
//!                   t7 t8     does not
//! ```
//!
//! One item among a thousand takes some twenty runs, which run each item twice at most; each
//! further item costs as many again. An effect that only the whole has, and no half, is not found.

/// Runs some of them and returns what that did: nothing, or something.
type Run<'r, T, E> = &'r mut dyn FnMut(&[T]) -> Result<Vec<String>, E>;

/// Those of `all` that do it by themselves, with what each has done. That all of them do it
/// together is known.
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
        // That it is the only one left is no proof.
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

    /// What is found among a number of them, and with how many runs.
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
        // Every one of them.
        assert_eq!(found(8, &|_| true).0, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
