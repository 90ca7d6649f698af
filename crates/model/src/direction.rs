//! Changes whose sentence says the direction in a word: the number then has no sign, because "−75 % faster" says two things.

/// "75.2 % faster" for +0.752, "75.2 % slower" for −0.752, with `decimals`.
pub fn directed(change: f64, decimals: usize, more: &str, less: &str) -> String {
    let word = if change < 0.0 { less } else { more };
    format!("{:.decimals$} % {word}", change.abs() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_replaces_the_sign() {
        assert_eq!(directed(0.752, 1, "faster", "slower"), "75.2 % faster");
        assert_eq!(directed(-0.752, 1, "faster", "slower"), "75.2 % slower");
        assert_eq!(directed(-0.2, 0, "longer", "shorter"), "20 % shorter");
    }
}
