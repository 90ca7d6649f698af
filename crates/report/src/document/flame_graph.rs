//! Chains of calls and what they cost.

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlameGraph {
    pub title: String,
    pub subtitle: Option<String>,
    /// What the cost counts: cycles, instructions. It is per I/O.
    pub what: String,
    pub calls: Vec<Calls>,
}

/// A chain of calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// The outermost first, separated by semicolons.
    pub calls: String,
    /// Without what further calls from the innermost cost.
    pub cost: f64,
    /// What it cost in the baseline, for the colour.
    pub before: Option<f64>,
}
