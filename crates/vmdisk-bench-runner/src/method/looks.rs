//! When a run that repeats until it is precise enough may look at its results, and what looking costs.
//!
//! Whoever looks again and again, and stops when it suits, is wrong more often than one interval says.
//! Here looks are few and their rounds are fixed beforehand, and the probability to be wrong is shared
//! out among them: whatever makes the run stop, all looks together miss the true ratio at most as often
//! as the run says (Bonferroni's inequality; nothing is assumed of why it stopped).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fewest rounds that can show anything: of five, not even all in one direction are rare enough.
pub const FEWEST_ROUNDS: u32 = 6;

/// How often a run repeats itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repetition {
    /// Rounds that are run in any case, and after which a run that adapts looks for the first time.
    pub rounds: u32,
    /// Most rounds; equal to `rounds` if the run does not adapt.
    pub most_rounds: u32,
    /// A run that adapts ends at the first look at which all comparisons are this precise: 0.05 means ±5 %.
    pub precision: f64,
    /// Probability that an interval holds the true ratio.
    pub confidence: f64,
}

impl Default for Repetition {
    fn default() -> Self {
        Repetition {
            rounds: FEWEST_ROUNDS,
            most_rounds: FEWEST_ROUNDS,
            precision: 0.05,
            confidence: 0.95,
        }
    }
}

/// Most rounds that a run may have.
const MOST_ROUNDS: u32 = 1_000;

impl Repetition {
    /// The first inconsistency of settings that were read.
    pub fn problem(&self) -> Option<&'static str> {
        let Repetition {
            rounds,
            most_rounds,
            precision,
            confidence,
        } = self;
        if *rounds == 0 || rounds > most_rounds || *most_rounds > MOST_ROUNDS {
            Some("a run has 1 to 1000 rounds, and no fewer at most than at least")
        } else if !(0.5..=0.9999).contains(confidence) {
            Some("the confidence is a share from 0.5 to 0.9999")
        } else if *precision <= 0.0 {
            Some("the precision is a share above 0")
        } else {
            None
        }
    }

    /// The rounds after which the run looks: `rounds`, then half as many more each time, then the most.
    pub fn looks(&self) -> Vec<u32> {
        let mut looks = vec![self.rounds];
        let mut next = self.rounds;
        loop {
            next = next.saturating_add((next / 2).max(1));
            if next >= self.most_rounds {
                break;
            }
            looks.push(next);
        }
        if self.most_rounds > self.rounds {
            looks.push(self.most_rounds);
        }
        looks
    }

    /// The probability to be wrong that an interval is made with, if `rounds` are complete.
    ///
    /// A run that was stopped between two looks, by its budget or by somebody, uses the share of the
    /// next one.
    pub fn alpha(&self, rounds: u32) -> f64 {
        let looks = self.looks();
        let index = looks.iter().position(|look| rounds <= *look);
        let alpha = 1.0 - self.confidence;
        match (index, looks.len()) {
            (_, 1) => alpha,
            // The last look has the most data and gets half; the others share the rest.
            (Some(index), count) if index + 1 < count => 0.5 * alpha / (count as f64 - 1.0),
            (Some(_) | None, _) => 0.5 * alpha,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adaptive(rounds: u32, most_rounds: u32) -> Repetition {
        Repetition {
            rounds,
            most_rounds,
            ..Repetition::default()
        }
    }

    #[test]
    fn looks_are_few_and_their_shares_add_up() {
        assert_eq!(Repetition::default().looks(), [6]);
        assert!((Repetition::default().alpha(6) - 0.05).abs() < 1e-12);
        for (rounds, most, looks) in [
            (6, 7, vec![6, 7]),
            (6, 9, vec![6, 9]),
            (6, 24, vec![6, 9, 13, 19, 24]),
            (8, 20, vec![8, 12, 18, 20]),
        ] {
            let repetition = adaptive(rounds, most);
            assert_eq!(repetition.looks(), looks);
            let total: f64 = looks.iter().map(|look| repetition.alpha(*look)).sum();
            assert!((total - 0.05).abs() < 1e-12, "{total}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        assert_eq!(adaptive(6, 24).problem(), None);
        for (rounds, most_rounds) in [(0, 6), (7, 6), (6, 1_001)] {
            assert!(adaptive(rounds, most_rounds).problem().is_some());
        }
        let confident = Repetition {
            confidence: 1.5,
            ..Repetition::default()
        };
        assert!(confident.problem().is_some());
    }

    #[test]
    fn a_run_that_is_stopped_between_looks_uses_the_next_share() {
        let repetition = adaptive(6, 24);
        assert_eq!(repetition.alpha(7), repetition.alpha(9));
        assert_eq!(repetition.alpha(3), repetition.alpha(6));
        assert_eq!(repetition.alpha(20), repetition.alpha(24));
    }
}
