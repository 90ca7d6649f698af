//! Comparisons: rounds with a memory, rare slow states, and many metrics at once.

use super::{Random, Scope, contains, grid, percent};
use crate::bench::evidence::Evidence;
use crate::bench::rounds::median;
use model::experiment::Rules;
use model::stats::Evidence as _;
use model::stats::estimate::CONFIDENCE;
use model::stats::stopping::Goal;
use model::stats::{
    Good, LogRatio, Pair, PairedRound, Resolution, Verdict, confidence_of_each, exceeds_background, log_ratio,
    precise_enough, verdict,
};

/// Rounds of the default budget.
const MOST: usize = 60;
const FEWEST: usize = 10;

pub fn add(scope: Scope, evidence: &mut Evidence) {
    correlated(scope, evidence);
    skewed(scope, evidence);
    wandering(scope, evidence);
    rare_states(scope, evidence);
    many_metrics(scope, evidence);
    small_costs(scope, evidence);
}

fn rounds(baseline: &[f64], candidate: &[f64]) -> Vec<PairedRound> {
    let pair = |level: &f64| Pair { numerator: 1000.0 * level, denominator: 1.0 };
    baseline.iter().zip(candidate).map(|(a, b)| PairedRound { baseline: pair(a), candidate: pair(b) }).collect()
}

fn ratio(rounds: &[PairedRound]) -> LogRatio {
    let none = LogRatio { theta: f64::NAN, error: None, units: 0, correlation: None };
    log_ratio(rounds, Resolution::default()).unwrap_or(none)
}

/// Each arm's level has a memory of its own.
fn correlated(scope: Scope, evidence: &mut Evidence) {
    let mut least = 1.0_f64;
    let rows = [0.0, 0.3, 0.5, 0.7, 0.9].map(|correlation| (format!("ρ {correlation}"), correlation));
    let heads = ("correlated rounds (in brackets: a caveat names it)", " rounds");
    grid(evidence, heads, &rows, &[10, 20, 60, 240], |figure, correlation, count| {
        let mut told = 0_u64;
        let covered = scope.share(3 << 24 | figure, |random| {
            let level = |level: &f64| (0.02 * level).exp();
            let mut arm = || -> Vec<f64> { random.series(*count, *correlation).iter().map(level).collect() };
            let (baseline, candidate) = (arm(), arm());
            let found = ratio(&rounds(&baseline, &candidate));
            told += u64::from(found.correlation.is_some());
            contains(&found.change(CONFIDENCE), 0.0)
        });
        if *correlation <= 0.5 && *count >= 60 {
            least = least.min(covered);
        }
        format!("{} ({})", percent(covered), percent(scope.part(told)))
    });
    let wanted = 0.92 - scope.chance();
    evidence.criterion(
        least >= wanted,
        format!("correlations up to 0.5 are covered from 60 rounds on in {} % or more", percent(wanted)),
    );
}

/// A steady arm against one with a long tail.
fn skewed(scope: Scope, evidence: &mut Evidence) {
    type Draw = fn(&mut Random) -> f64;
    let shapes: [(&str, (f64, Draw)); 3] = [
        ("exponential", (1.0, Random::exponential)),
        ("Pareto 2.5", (2.5 / 1.5, |random| (random.exponential() / 2.5).exp())),
        ("Pareto 1.5", (3.0, |random| (random.exponential() / 1.5).exp())),
    ];
    let heads = ("a steady arm against one with a tail", " rounds");
    grid(evidence, heads, &shapes, &[10, 20, 60], |figure, (mean, draw), count| {
        let covered = scope.share(4 << 24 | figure, |random| {
            let baseline: Vec<f64> = (0..*count).map(|_| 1.0 + 0.01 * random.normal()).collect();
            let candidate: Vec<f64> = (0..*count).map(|_| draw(random)).collect();
            contains(&ratio(&rounds(&baseline, &candidate)).change(CONFIDENCE), mean - 1.0)
        });
        percent(covered)
    });
}

/// A state that makes rounds of the candidate slower.
#[derive(Clone, Copy)]
struct State {
    times: f64,
    /// The part of the rounds that are in it.
    part: f64,
    /// For how many rounds it lasts; with 1, each round draws it anew.
    spell: u32,
}

const fn state(name: &str, times: f64, part: f64, spell: u32) -> (&str, State) {
    (name, State { times, part, spell })
}

/// By the stopping rule, or after all rounds of the budget.
fn experiment(may_stop: bool, random: &mut Random, state: &State) -> (Verdict, usize) {
    let rules = Rules::default();
    let (mut baseline, mut candidate) = (Vec::new(), Vec::new());
    // The probability that a spell begins where none lasts.
    let spell = f64::from(state.spell);
    let begins = state.part / (spell - state.part * (spell - 1.0));
    let mut lasts = 0;
    loop {
        let mut noise = || (0.01 * random.normal()).exp();
        let noises = [noise(), noise()];
        if lasts == 0 && random.uniform() < begins {
            lasts = state.spell;
        }
        baseline.push(noises[0]);
        candidate.push(noises[1] * if lasts > 0 { state.times } else { 1.0 });
        lasts = lasts.saturating_sub(1);
        let found = ratio(&rounds(&baseline, &candidate));
        let goal = Goal { half_width: rules.precision, margin: rules.margin, confidence: confidence_of_each(2) };
        let enough = may_stop && precise_enough(&found, goal);
        if baseline.len() >= FEWEST && enough || baseline.len() >= MOST {
            let change = found.change(confidence_of_each(2));
            return (verdict(&change, rules.margin, Good::Lower), baseline.len());
        }
    }
}

fn rare_states(scope: Scope, evidence: &mut Evidence) {
    const STATES: [(&str, State); 7] = [
        state("no change", 1.0, 1.0, 1),
        state("+10 %", 1.1, 1.0, 1),
        state("1.5 × in 10 % of rounds (+5 %)", 1.5, 0.1, 1),
        state("1.5 × in 20 % of rounds (+10 %)", 1.5, 0.2, 1),
        state("3 × in 5 % of rounds (+10 %)", 3.0, 0.05, 1),
        state("1.5 × in 10 % of rounds, five at a time", 1.5, 0.1, 5),
        state("1.5 × in 30 % of rounds, five at a time", 1.5, 0.3, 5),
    ];
    const WAYS: [&str; 2] = ["% where it may stop, and median rounds", "% after all 60 rounds"];
    let mut most = 0.0_f64;
    grid(evidence, ("`no_difference`, margin 3 %", ""), &STATES, &WAYS, |figure, state, way| {
        let may_stop = *way == WAYS[0];
        let mut lengths = Vec::new();
        let none = scope.share(5 << 24 | figure, |random| {
            let (verdict, rounds) = experiment(may_stop, random, state);
            lengths.push(rounds as f64);
            verdict == Verdict::NoDifference
        });
        // What the answer names as unseen: 6 % of 49 rounds, and 26 % of spells of five.
        let would_be_seen = state.times == 1.5 && (state.spell == 1 || state.part > 0.26);
        if would_be_seen && may_stop {
            most = most.max(none);
        }
        if may_stop { format!("{}, {}", percent(none), median(&lengths)) } else { percent(none) }
    });
    let wanted = 0.05 + scope.chance();
    evidence.criterion(
        most <= wanted,
        format!(
            "a state 1.5 times slower that the answer does not name as unseen is called no difference in {} % or less",
            percent(wanted)
        ),
    );
}

/// The candidate's level wanders slowly, with half the deviation of the noise of a round.
fn wandering(scope: Scope, evidence: &mut Evidence) {
    let mut least = 1.0_f64;
    let rows = [0.9, 0.97, 0.99].map(|correlation| (format!("ρ {correlation}"), correlation));
    let heads = ("an arm that wanders below noise (in brackets: a caveat names it)", " rounds");
    grid(evidence, heads, &rows, &[20, 60, 240, 960], |figure, correlation, count| {
        let mut told = 0_u64;
        let covered = scope.share(9 << 24 | figure, |random| {
            let baseline: Vec<f64> = (0..*count).map(|_| 1.0 + 0.01 * random.normal()).collect();
            let wander = random.series(*count, *correlation);
            let candidate: Vec<f64> =
                wander.iter().map(|level| 1.0 + 0.01 * (random.normal() + 0.5 * 2f64.sqrt() * level)).collect();
            let found = ratio(&rounds(&baseline, &candidate));
            told += u64::from(found.correlation.is_some());
            contains(&found.change(CONFIDENCE), 0.0)
        });
        if *count == 960 {
            least = least.min(covered.min(scope.part(told)));
        }
        format!("{} ({})", percent(covered), percent(scope.part(told)))
    });
    let wanted = 0.86 - scope.chance();
    evidence.criterion(
        least >= wanted,
        format!("an arm that wanders is told and covered in {} % or more of 960 rounds", percent(wanted)),
    );
}

/// Identical arms, twelve metrics in each of several cells.
fn many_metrics(scope: Scope, evidence: &mut Evidence) {
    const WAYS: [&str; 2] = ["% with any difference, intervals that hold together", "% with intervals of 95 % each"];
    let (mut most, rows) = (0.0_f64, [1_usize, 8].map(|cells| (format!("cells: {cells}"), cells)));
    grid(evidence, ("identical arms, 12 independent metrics", ""), &rows, &WAYS, |figure, cells, way| {
        let confidence = if *way == WAYS[0] { confidence_of_each(12 * cells) } else { CONFIDENCE };
        let any = scope.share(6 << 24 | figure, |random| {
            (0..12 * cells).any(|_| {
                let mut arm = || -> Vec<f64> { (0..20).map(|_| (0.02 * random.normal()).exp()).collect() };
                let (baseline, candidate) = (arm(), arm());
                ratio(&rounds(&baseline, &candidate)).excludes_zero(confidence)
            })
        });
        if *way == WAYS[0] {
            most = most.max(any);
        }
        percent(any)
    });
    let wanted = 0.055 + scope.chance();
    evidence.criterion(
        most <= wanted,
        format!("of a family of identical arms, any is called different in {} % or less", percent(wanted)),
    );
}

/// A candidate that costs half more, beside a background whose level varies by 1 from one slice to the next.
fn small_costs(scope: Scope, evidence: &mut Evidence) {
    let (mut most, rows) = (0.0_f64, [0.2, 0.5, 1.0, 2.0, 5.0].map(|cost| (cost, cost)));
    let heads = ("net cost, in standard deviations of the background: % wrong", " rounds");
    grid(evidence, heads, &rows, &[6, 20], |figure, cost, count| {
        let (mut told, mut doubtful) = (0_u64, 0_u64);
        let wrong = scope.share(8 << 24 | figure, |random| {
            let unit = |numerator| Pair { numerator, denominator: 1.0 };
            let round = |_| {
                let alone = random.normal();
                let mut net = |cost: f64| unit(cost + random.normal() - alone);
                (PairedRound { baseline: net(*cost), candidate: net(1.5 * cost) }, unit(20.0 + alone))
            };
            let (rounds, alone): (Vec<PairedRound>, Vec<Pair>) = (0..*count).map(round).unzip();
            let Some(found) = log_ratio(&rounds, Resolution::default()) else { return false };
            let is_wrong = found.change(CONFIDENCE).contains(0.5) == Some(false);
            doubtful += u64::from(is_wrong);
            let arm = |arm: fn(&PairedRound) -> Pair| rounds.iter().map(arm).collect::<Vec<_>>();
            let arms = [arm(|round| round.baseline), arm(|round| round.candidate)];
            let is_told = arms.iter().all(|arm| exceeds_background(arm, &alone) == Some(true));
            told += u64::from(is_told);
            is_wrong && is_told
        });
        most = most.max(wrong);
        let [told, doubtful] = [told, doubtful].map(|count| percent(scope.part(count)));
        format!("{} ({told} told, {doubtful} wrong without the rule)", percent(wrong))
    });
    let wanted = 0.06 + scope.chance();
    evidence.criterion(
        most <= wanted,
        format!("an interval beside a noisy background is told and wrong in {} % or less", percent(wanted)),
    );
}
