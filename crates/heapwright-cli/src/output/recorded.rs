//! What a trace holds, in a line: for `record`, and at the head of `replay`.

use super::units;
use crate::trace::Facts;

/// `2 threads, 1,200 operations, peak live 2.0 MiB, 1.9 % of frees on another thread`.
pub(crate) fn recorded(facts: &Facts) -> String {
    let mut text = format!(
        "{}, {}, peak live {} in {}",
        units::counted(facts.threads, "thread"),
        units::counted(facts.operations, "operation"),
        units::bytes(facts.peak_live_bytes),
        units::counted(facts.peak_live_blocks, "block"),
    );
    if facts.threads > 1 {
        let share = units::percent(facts.cross_thread_frees, facts.frees);
        text.push_str(&format!(", {share} of frees on another thread"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_matters() {
        let mut facts = Facts {
            threads: 1,
            operations: 1200,
            frees: 1000,
            cross_thread_frees: 19,
            peak_live_bytes: 2 << 20,
            peak_live_blocks: 1,
            ..Facts::default()
        };
        assert_eq!(recorded(&facts), "1 thread, 1,200 operations, peak live 2.0 MiB in 1 block");
        facts.threads = 2;
        assert_eq!(
            recorded(&facts),
            "2 threads, 1,200 operations, peak live 2.0 MiB in 1 block, 1.9 % of frees on another \
             thread"
        );
    }
}
