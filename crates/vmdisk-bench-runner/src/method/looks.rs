//! The rounds after which an adaptive run looks at its results, and the cost of each look.
//!
//! A run that looks after every round and stops at a convenient moment is wrong more often than one interval claims.
//! Here looks are few, their rounds are fixed in advance, and the error probability is divided among them. Whatever
//! ends the run, all looks together miss the true ratio at most as often as the run states (Bonferroni's inequality,
//! which assumes nothing about the reason for stopping).

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fewest rounds that can show a difference: even five ratios in the same direction are not rare enough.
pub const MIN_ROUNDS: u32 = 6;

/// The number of rounds of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Repetition {
    /// Rounds that always run; an adaptive run looks at its results for the first time after them.
    pub rounds: u32,
    /// Maximum number of rounds; equal to `rounds` if the run is not adaptive.
    pub most_rounds: u32,
    /// An adaptive run ends at the first look at which all comparisons are this precise: 0.05 means ±5 %.
    pub precision: f64,
    /// Probability that an interval holds the true ratio.
    pub confidence: f64,
    /// True if cells that do not fit into the time budget are left out, and if the rounds beyond the minimum measure only
    /// the best two of each comparison, and their baseline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_race: bool,
}

impl Default for Repetition {
    fn default() -> Self {
        Repetition {
            rounds: MIN_ROUNDS,
            most_rounds: MIN_ROUNDS,
            precision: 0.05,
            confidence: 0.95,
            is_race: false,
        }
    }
}

/// Maximum number of rounds of a run.
const MAX_ROUNDS: u32 = 1_000;

impl Repetition {
    /// Returns the first inconsistency of parsed settings.
    pub fn problem(&self) -> Option<&'static str> {
        let Repetition {
            rounds,
            most_rounds,
            precision,
            confidence,
            is_race: _, /* a switch */
        } = self;
        if *rounds == 0 || rounds > most_rounds || *most_rounds > MAX_ROUNDS {
            Some("rounds must be from 1 to 1000, and the maximum must not be below the minimum")
        } else if !(0.5..=0.9999).contains(confidence) {
            Some("the confidence must be from 0.5 to 0.9999")
        } else if *precision <= 0.0 {
            Some("the precision must be above 0")
        } else {
            None
        }
    }

    /// Returns the rounds after which the run looks: `rounds`, then half as many more each time, then the maximum.
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

    /// Returns the error probability of an interval after `rounds` complete rounds.
    ///
    /// A run that was stopped between two looks, by its time budget or by the user, uses the share of the
    /// next one.
    pub fn alpha(&self, rounds: u32) -> f64 {
        let looks = self.looks();
        let index = looks.iter().position(|look| rounds <= *look);
        let alpha = 1.0 - self.confidence;
        match (index, looks.len()) {
            (_, 1) => alpha,
            // The last look has the most data and gets half of alpha; the others share the rest.
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
    fn inconsistent_settings_are_reported() {
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
