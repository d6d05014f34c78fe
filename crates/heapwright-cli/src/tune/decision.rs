//! From measured rounds to what is chosen: pure functions of numbers.
//!
//! ```text
//! finalists   screening: better than the defaults by 95 % intervals, one option at a time
//!               -> the best value of each option, and these combined; for each of four aims:
//!                  less time, less memory, and each without cost in the other
//! decide      deciding: certainly better, by intervals for all finalists together
//!               -> fastest, leanest; and those that may be recommended, in order
//! judge       check: the program itself, each of the latter beside the defaults
//!               -> the first that is kept is recommended; else the defaults
//! ```
//!
//! **A gain** is certain if the interval of the ratio to the defaults lies below 1, and counts if it is
//! at least [`LEAST_GAIN`], at least what the control differs from the defaults, and, of
//! memory, at least [`LEAST_BYTES`]. Everything else is a tie.
//!
//! **A cost** of the other measure may be [`MOST_COST`] (or, of memory, [`LEAST_BYTES`]): by the median in
//! the replay, and by the interval's upper end in the check, which decides. More time in the replay costs the
//! program only as much of its time as its calls for memory take: their *share*.
//!
//! **Of what ties with the best**, round by round, the one with the fewest options is chosen, and the others
//! are named.

#![forbid(unsafe_code)]

use super::candidates::{Candidate, Key};
use crate::bench::statistics::{Estimate, Ratios, Verdict, median};
use std::collections::BTreeMap;

/// The smallest part of time or memory that is called a gain.
const LEAST_GAIN: f64 = 0.01;

/// The smallest difference in memory that counts: the kernel counts a process's pages to
/// about 128 KiB for each core.
const LEAST_BYTES: f64 = (1 << 20) as f64;

/// The most that a gain in one may cost of the other.
const MOST_COST: f64 = 0.05;

/// What is recommended, in one sentence for a reader.
pub(crate) const RULE: &str = "recommended is what certainly gains the most time and needs at most \
    5 % more peak memory than the defaults; if nothing does, what certainly gains the most memory and costs at most \
    5 % of the program's time (of the replay's, if there is no program); and only what the program itself \
    confirms: it certainly takes less time or memory with it, and at most 5 % more of the other";

/// The most candidates that the program itself is run with. A second and a third one are there for
/// where the first one gains more in the replay, and costs the program too much.
const MOST_CHECKED: usize = 3;

/// What is measured of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Measure {
    Time,
    Memory,
}

impl Measure {
    fn other(self) -> Self {
        match self {
            Self::Time => Self::Memory,
            Self::Memory => Self::Time,
        }
    }
}

/// A candidate's rounds: `time[i]` and `memory[i]` of all candidates belong to round `i`.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) candidate: Candidate,
    /// In any unit.
    pub(crate) time: Vec<f64>,
    /// In bytes.
    pub(crate) memory: Vec<f64>,
}

/// Ratios of one row to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Compared {
    pub(crate) time: Estimate,
    pub(crate) memory: Estimate,
}

impl Compared {
    fn of(&self, measure: Measure) -> &Estimate {
        match measure {
            Measure::Time => &self.time,
            Measure::Memory => &self.memory,
        }
    }
}

impl Measured {
    fn of(&self, measure: Measure) -> &[f64] {
        match measure {
            Measure::Time => &self.time,
            Measure::Memory => &self.memory,
        }
    }

    fn ratios(&self, to: &Self, measure: Measure) -> Option<Ratios> {
        let pairs = self.of(measure).iter().zip(to.of(measure));
        Ratios::new(pairs.map(|(&this, &that)| (this, that)))
    }

    /// This to another, as one of so many comparisons. None: there is nothing to compare.
    pub(crate) fn compared(&self, to: &Self, comparisons: usize) -> Option<Compared> {
        let of = |measure| Some(self.ratios(to, measure)?.estimate_among(comparisons));
        Some(Compared { time: of(Measure::Time)?, memory: of(Measure::Memory)? })
    }
}

/// What a difference must exceed.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least_time: f64,
    least_memory: f64,
    /// The defaults' peak, in bytes.
    memory: f64,
    /// The part of the program's time that was measured.
    share: f64,
}

impl Bounds {
    fn new(defaults: &Measured, control: Option<&Measured>, share: f64) -> Self {
        let noise = |measure| {
            let ratios = control.and_then(|control| control.ratios(defaults, measure));
            ratios.map_or(0.0, |ratios| (ratios.estimate().value - 1.0).abs())
        };
        Self {
            least_time: LEAST_GAIN.max(noise(Measure::Time)),
            least_memory: LEAST_GAIN.max(noise(Measure::Memory)),
            memory: median(&defaults.memory).unwrap_or_default(),
            share: share.clamp(0.0, 1.0),
        }
    }

    /// Whether a part of this measure is too small to count.
    fn is_small(&self, measure: Measure, part: f64) -> bool {
        match measure {
            Measure::Time => part < self.least_time,
            Measure::Memory => part < self.least_memory || part * self.memory < LEAST_BYTES,
        }
    }

    fn gains(&self, compared: &Compared, measure: Measure) -> bool {
        let estimate = compared.of(measure);
        estimate.verdict() == Verdict::Less && !self.is_small(measure, 1.0 - estimate.value)
    }

    fn loses(&self, compared: &Compared, measure: Measure) -> bool {
        let estimate = compared.of(measure);
        estimate.verdict() == Verdict::More && !self.is_small(measure, estimate.value - 1.0)
    }

    /// Whether so much more is beyond what a gain in the other may cost.
    fn is_costly(&self, measure: Measure, ratio: f64) -> bool {
        let share = if measure == Measure::Time { self.share } else { 1.0 };
        (ratio - 1.0) * share > MOST_COST && !self.is_small(measure, ratio - 1.0)
    }

    /// Whether it costs too much of a measure, as far as is known.
    fn costs(&self, compared: &Compared, measure: Measure) -> bool {
        self.is_costly(measure, compared.of(measure).value)
    }

    /// Whether that cannot be excluded.
    fn may_cost(&self, compared: &Compared, measure: Measure) -> bool {
        let estimate = compared.of(measure);
        let most = estimate.interval.map_or(f64::INFINITY, |(_, high)| high);
        self.is_costly(measure, most)
    }

    /// Whether it is certain.
    fn certainly_costs(&self, compared: &Compared, measure: Measure) -> bool {
        let least = compared.of(measure).interval.map_or(0.0, |(low, _)| low);
        self.is_costly(measure, least)
    }
}

/// What the deciding rounds are to be made of, after screening `singles`, each of one option.
/// `share` is the part of the program's time that its calls for memory take; 1 if that is
/// not known. Empty: nothing looks better than the defaults.
pub(crate) fn finalists(defaults: &Measured, singles: &[Measured], share: f64) -> Vec<Candidate> {
    let bounds = Bounds::new(defaults, None, share);
    let compared: Vec<(&Candidate, Compared)> = singles
        .iter()
        .filter_map(|one| Some((&one.candidate, one.compared(defaults, 1)?)))
        .collect();
    let mut all: Vec<Candidate> = Vec::new();
    for goal in [Measure::Time, Measure::Memory] {
        for without_cost in [false, true] {
            let fits = |compared: &Compared| {
                bounds.gains(compared, goal)
                    && !(without_cost && bounds.costs(compared, goal.other()))
            };
            // Of each option the best value.
            let mut winners: BTreeMap<Key, (f64, &Candidate)> = BTreeMap::new();
            for (candidate, compared) in compared.iter().filter(|(_, compared)| fits(compared)) {
                let Some(key) = candidate.keys().next() else { continue };
                let value = compared.of(goal).value;
                let place = winners.entry(key).or_insert((value, candidate));
                if value < place.0 {
                    *place = (value, candidate);
                }
            }
            let winners: Vec<Candidate> =
                winners.into_values().map(|(_, candidate)| candidate.clone()).collect();
            let combined = winners.iter().fold(Candidate::defaults(), |all, one| all.and(one));
            for one in winners.into_iter().chain([combined]) {
                if one.len() > 0 && !all.contains(&one) {
                    all.push(one);
                }
            }
        }
    }
    all
}

/// How many comparisons with the defaults there are of so many candidates.
pub(crate) fn comparisons(candidates: usize) -> usize {
    2 * candidates
}

/// Options that were chosen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) candidate: Candidate,
    /// What it was chosen for.
    pub(crate) goal: Measure,
    /// It, to the defaults.
    pub(crate) compared: Compared,
    /// Others that cannot be distinguished from it in what it was chosen for.
    pub(crate) ties: Vec<Candidate>,
}

/// What is chosen. None: the defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Decision {
    pub(crate) fastest: Option<Choice>,
    pub(crate) leanest: Option<Choice>,
    /// By the replay, what is to be recommended, in order: if the program does not confirm the
    /// first, the next.
    pub(crate) eligible: Vec<Choice>,
}

/// Chooses among finalists, by [`RULE`]; `share` is that of `finalists`.
pub(crate) fn decide(
    defaults: &Measured,
    control: Option<&Measured>,
    finalists: &[Measured],
    share: f64,
) -> Decision {
    let bounds = Bounds::new(defaults, control, share);
    let comparisons = comparisons(finalists.len());
    let compared: Vec<(&Measured, Compared)> = finalists
        .iter()
        .filter_map(|one| Some((one, one.compared(defaults, comparisons)?)))
        .collect();
    let best = |compared: &[(&Measured, Compared)], goal: Measure, without_cost: bool| {
        let fitting: Vec<&(&Measured, Compared)> = compared
            .iter()
            .filter(|(_, compared)| bounds.gains(compared, goal))
            .filter(|(_, compared)| !(without_cost && bounds.costs(compared, goal.other())))
            .collect();
        chosen(&fitting, goal, comparisons)
    };
    let (mut rest, mut eligible) = (compared.clone(), Vec::new());
    while eligible.len() < MOST_CHECKED {
        let next = best(&rest, Measure::Time, true).or_else(|| best(&rest, Measure::Memory, true));
        let Some(next) = next else { break };
        rest.retain(|(one, _)| one.candidate != next.candidate);
        eligible.push(next);
    }
    Decision {
        fastest: best(&compared, Measure::Time, false),
        leanest: best(&compared, Measure::Memory, false),
        eligible,
    }
}

/// The best, or the simplest of those that tie with it.
fn chosen(fitting: &[&(&Measured, Compared)], goal: Measure, comparisons: usize) -> Option<Choice> {
    let value = |one: &(&Measured, Compared)| one.1.of(goal).value;
    let best = fitting.iter().min_by(|a, b| value(a).total_cmp(&value(b)))?;
    let ties_with_best = |one: &&&(&Measured, Compared)| {
        let ratios = one.0.ratios(best.0, goal);
        let verdict = ratios.map(|ratios| ratios.estimate_among(comparisons).verdict());
        verdict.is_none_or(|verdict| verdict == Verdict::Tie)
    };
    let mut equals: Vec<_> = fitting.iter().filter(ties_with_best).collect();
    equals.sort_by(|a, b| {
        let options = |one: &(&Measured, Compared)| one.0.candidate.len();
        options(a).cmp(&options(b)).then(value(a).total_cmp(&value(b)))
    });
    let (first, others) = equals.split_first()?;
    Some(Choice {
        candidate: first.0.candidate.clone(),
        goal,
        compared: first.1,
        ties: others.iter().map(|one| one.0.candidate.clone()).collect(),
    })
}

/// What the program itself says of the options recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Judgement {
    /// It gains as well.
    Kept,
    /// It shows no certain gain.
    Tie,
    /// It gains, and may cost too much in the other measure.
    Costly,
    /// It is worse.
    Contradicted,
}

/// Judges options that were chosen for `goal`, one of so many, by runs of the program itself.
/// None: there is nothing to judge by.
pub(crate) fn judge(
    defaults: &Measured,
    chosen: &Measured,
    goal: Measure,
    checked: usize,
) -> Option<(Judgement, Compared)> {
    let bounds = Bounds::new(defaults, None, 1.0);
    let compared = chosen.compared(defaults, comparisons(checked))?;
    let both = [Measure::Time, Measure::Memory];
    let gains: Vec<Measure> =
        both.into_iter().filter(|&measure| bounds.gains(&compared, measure)).collect();
    let judgement = if bounds.loses(&compared, goal)
        || both.iter().any(|&measure| bounds.certainly_costs(&compared, measure))
    {
        Judgement::Contradicted
    } else if gains.is_empty() {
        Judgement::Tie
    } else if gains.iter().all(|measure| bounds.may_cost(&compared, measure.other())) {
        Judgement::Costly
    } else {
        Judgement::Kept
    };
    Some((judgement, compared))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: f64 = (1 << 20) as f64;

    /// Rounds around a time and a size in MiB, with some noise that differs by `seed`.
    fn measured(candidate: Candidate, time: f64, mib: f64, noise: f64, seed: u64) -> Measured {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut around = |value: f64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            value * (1.0 + noise * ((state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5))
        };
        let rounds = (0..15).map(|_| (around(time), around(mib * MIB)));
        let (time, memory) = rounds.unzip();
        Measured { candidate, time, memory }
    }

    fn defaults() -> Measured {
        measured(Candidate::defaults(), 100.0, 64.0, 0.02, 1)
    }

    fn cache(value: &str) -> Candidate {
        Candidate::of(Key::Cache, value)
    }

    fn purge(value: &str) -> Candidate {
        Candidate::of(Key::Purge, value)
    }

    fn texts(candidates: &[Candidate]) -> Vec<String> {
        candidates.iter().map(Candidate::text).collect()
    }

    fn text(choice: Option<&Choice>) -> String {
        choice.map_or_else(|| "the defaults".to_owned(), |choice| choice.candidate.text())
    }

    #[test]
    fn equal_rows_are_ties_and_the_defaults_stay() {
        let rows: Vec<Measured> = ["exclusive", "percpu"]
            .iter()
            .zip(2..)
            .map(|(value, seed)| measured(cache(value), 100.0, 64.0, 0.02, seed))
            .collect();
        assert_eq!(finalists(&defaults(), &rows, 1.0), []);
        let decision = decide(&defaults(), None, &rows, 1.0);
        assert_eq!(decision, Decision::default());
    }

    #[test]
    fn a_certain_gain_without_cost_is_recommended() {
        let rows = [measured(cache("percpu"), 80.0, 64.0, 0.02, 2)];
        assert_eq!(texts(&finalists(&defaults(), &rows, 1.0)), ["cache=percpu"]);
        let decision = decide(&defaults(), None, &rows, 1.0);
        assert_eq!(text(decision.fastest.as_ref()), "cache=percpu");
        assert_eq!(text(decision.leanest.as_ref()), "the defaults");
        let recommended = decision.eligible.first().expect("is one");
        assert_eq!(
            (recommended.candidate.text(), recommended.goal),
            ("cache=percpu".to_owned(), Measure::Time)
        );
        assert!((recommended.compared.time.value - 0.8).abs() < 0.02, "{recommended:?}");
    }

    #[test]
    fn the_fastest_is_not_recommended_if_it_costs_memory() {
        let rows = [
            measured(purge("never"), 80.0, 96.0, 0.02, 2),
            measured(cache("percpu"), 90.0, 64.0, 0.02, 3),
        ];
        // The best value of each, and both combined.
        let finalists = finalists(&defaults(), &rows, 1.0);
        assert_eq!(texts(&finalists), ["cache=percpu", "purge=never", "cache=percpu,purge=never"]);
        let decision = decide(&defaults(), None, &rows, 1.0);
        assert_eq!(text(decision.fastest.as_ref()), "purge=never");
        assert_eq!(text(decision.eligible.first()), "cache=percpu");
    }

    #[test]
    fn where_nothing_is_faster_the_leanest_is_recommended() {
        let lean = measured(purge("0"), 102.0, 32.0, 0.02, 2);
        let leaner = measured(cache("shared:1"), 150.0, 16.0, 0.02, 3);
        let decision = decide(&defaults(), None, &[lean, leaner], 1.0);
        assert_eq!(text(decision.fastest.as_ref()), "the defaults");
        assert_eq!(text(decision.leanest.as_ref()), "cache=shared:1");
        assert_eq!(text(decision.eligible.first()), "purge=0");
    }

    #[test]
    fn what_may_be_recommended_is_ranked() {
        let rows = [
            measured(purge("0"), 100.0, 32.0, 0.02, 2),
            measured(cache("shared:1"), 100.0, 48.0, 0.02, 3),
            measured(cache("percpu"), 90.0, 64.0, 0.02, 4),
            measured(cache("exclusive"), 80.0, 64.0, 0.02, 5),
        ];
        let ranked: Vec<Candidate> = decide(&defaults(), None, &rows, 1.0)
            .eligible
            .into_iter()
            .map(|choice| choice.candidate)
            .collect();
        assert_eq!(texts(&ranked), ["cache=exclusive", "cache=percpu", "purge=0"]);
    }

    #[test]
    fn time_of_a_replay_costs_the_program_its_share() {
        let rows = [measured(purge("0"), 130.0, 32.0, 0.02, 2)];
        let recommended = |share| text(decide(&defaults(), None, &rows, share).eligible.first());
        assert_eq!(recommended(1.0), "the defaults");
        assert_eq!(recommended(0.1), "purge=0");
        assert_eq!(recommended(0.2), "the defaults");
    }

    #[test]
    fn of_ties_the_simplest_is_chosen_and_the_others_are_named() {
        let simple = measured(cache("percpu"), 80.2, 64.0, 0.02, 2);
        let combined = measured(cache("percpu").and(&purge("never")), 80.0, 64.0, 0.02, 3);
        let decision = decide(&defaults(), None, &[combined, simple], 1.0);
        let fastest = decision.fastest.expect("is one");
        assert_eq!(fastest.candidate.text(), "cache=percpu");
        assert_eq!(texts(&fastest.ties), ["cache=percpu,purge=never"]);
    }

    #[test]
    fn a_gain_must_exceed_what_the_control_differs_by() {
        let rows = [measured(cache("percpu"), 95.0, 64.0, 0.01, 2)];
        let quiet = measured(Candidate::control(), 100.0, 64.0, 0.01, 3);
        let noisy = measured(Candidate::control(), 107.0, 64.0, 0.01, 3);
        let fastest =
            |control| text(decide(&defaults(), Some(control), &rows, 1.0).fastest.as_ref());
        assert_eq!(fastest(&quiet), "cache=percpu");
        assert_eq!(fastest(&noisy), "the defaults");
    }

    #[test]
    fn a_few_kib_are_no_gain_in_memory() {
        let of = |mib: f64, seed| measured(purge("0"), 100.0, mib, 0.001, seed);
        let small = Measured { candidate: Candidate::defaults(), ..of(2.0, 1) };
        assert_eq!(finalists(&small, &[of(1.5, 2)], 1.0), []);
        assert_eq!(texts(&finalists(&small, &[of(0.5, 2)], 1.0)), ["purge=0"]);
    }

    #[test]
    fn one_round_decides_nothing() {
        let one = |candidate, time| Measured { candidate, time: vec![time], memory: vec![MIB] };
        let rows = [one(cache("percpu"), 50.0)];
        let decision = decide(&one(Candidate::defaults(), 100.0), None, &rows, 1.0);
        assert_eq!(decision.fastest, None);
    }

    #[test]
    fn the_program_confirms_withdraws_or_contradicts() {
        let judged = |time, mib, goal| {
            let row = measured(cache("percpu"), time, mib, 0.02, 9);
            judge(&defaults(), &row, goal, 1).expect("is judged").0
        };
        for goal in [Measure::Time, Measure::Memory] {
            assert_eq!(judged(95.0, 64.0, goal), Judgement::Kept);
            assert_eq!(judged(100.0, 50.0, goal), Judgement::Kept);
            assert_eq!(judged(100.0, 64.0, goal), Judgement::Tie);
            // Faster, but for much memory; leaner, but for much time.
            assert_eq!(judged(90.0, 90.0, goal), Judgement::Contradicted);
            assert_eq!(judged(110.0, 50.0, goal), Judgement::Contradicted);
        }
        // Faster, but perhaps for much memory.
        let mut unclear = measured(cache("percpu"), 90.0, 64.0, 0.02, 9);
        unclear.memory.iter_mut().step_by(2).for_each(|bytes| *bytes *= 1.2);
        let judged_unclear = judge(&defaults(), &unclear, Measure::Time, 1).expect("is judged");
        assert_eq!(judged_unclear.0, Judgement::Costly);
        // Slower by more than nothing is not what was promised.
        assert_eq!(judged(103.0, 50.0, Measure::Time), Judgement::Contradicted);
        assert_eq!(judged(103.0, 50.0, Measure::Memory), Judgement::Kept);
        let nothing = Measured { time: Vec::new(), memory: Vec::new(), ..defaults() };
        assert_eq!(judge(&defaults(), &nothing, Measure::Time, 1), None);
    }

    /// Of candidates that are equal in truth, one looks better in more than one of ten tunings, and is called
    /// better in at most one of twenty.
    #[test]
    fn equal_candidates_seldom_win() {
        let trials = 100;
        let (mut looked, mut won) = (0, 0);
        for trial in 0..trials {
            let row = |at: u64, set: u64| {
                let candidate = match at {
                    0 => Candidate::defaults(),
                    1..6 => cache(&at.to_string()),
                    _ => purge(&at.to_string()),
                };
                measured(candidate, 100.0, 64.0, 0.2, trial * 1000 + set * 100 + at + 1)
            };
            let screened: Vec<Measured> = (1..11).map(|at| row(at, 0)).collect();
            let chosen = finalists(&row(0, 0), &screened, 1.0);
            looked += u64::from(!chosen.is_empty());
            let again: Vec<Measured> = chosen
                .into_iter()
                .zip(20..)
                .map(|(candidate, at)| Measured { candidate, ..row(at, 1) })
                .collect();
            let decision = decide(&row(0, 1), None, &again, 1.0);
            won += u64::from(decision.fastest.is_some() || decision.leanest.is_some());
        }
        assert!(looked * 10 >= trials && won * 20 <= trials, "{looked} and {won} of {trials}");
    }

    proptest! {
        #[test]
        fn what_is_chosen_is_better_by_its_interval(
            times in prop::collection::vec(50.0_f64..150.0, 1..8),
            sizes in prop::collection::vec(32.0_f64..96.0, 8),
            noise in 0.0_f64..0.2
        ) {
            let rows: Vec<Measured> = times.iter().zip(&sizes).zip(1_u64..)
                .map(|((&time, &mib), at)| measured(cache(&at.to_string()), time, mib, noise, at + 9))
                .collect();
            let decision = decide(&defaults(), None, &rows, 1.0);
            if let Some(choice) = &decision.fastest {
                prop_assert_eq!(choice.compared.time.verdict(), Verdict::Less);
            }
            if let Some(choice) = &decision.leanest {
                prop_assert_eq!(choice.compared.memory.verdict(), Verdict::Less);
            }
            for choice in &decision.eligible {
                let cost = choice.compared.of(choice.goal.other()).value;
                prop_assert!(cost <= 1.0 + MOST_COST, "{choice:?}");
                prop_assert_eq!(choice.compared.of(choice.goal).verdict(), Verdict::Less);
            }
        }

        #[test]
        fn the_order_of_the_finalists_does_not_matter(
            times in prop::collection::vec(70.0_f64..110.0, 2..6), turn in 0_usize..6
        ) {
            let rows: Vec<Measured> = times.iter().zip(1_u64..)
                .map(|(&time, at)| measured(cache(&at.to_string()), time, 64.0, 0.02, at + 9))
                .collect();
            let mut turned = rows.clone();
            turned.rotate_left(turn % rows.len());
            let (one, other) = (decide(&defaults(), None, &rows, 1.0), decide(&defaults(), None, &turned, 1.0));
            prop_assert_eq!(one, other);
        }
    }
}
