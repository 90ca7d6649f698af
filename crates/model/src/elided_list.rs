//! Lists in a sentence: the first few are named, the rest is counted.

/// So many are named.
pub const NAMED: usize = 4;

/// "a, b, c, d, and 3 more", with `between` between two of them.
pub fn elided_list(items: &[String], between: &str) -> String {
    let more = items.len().saturating_sub(NAMED);
    let mut words: Vec<String> = items.iter().take(NAMED).cloned().collect();
    words.extend((more > 0).then(|| format!("and {more} more")));
    words.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_counted() {
        let items = |count: u32| (1..=count).map(|number| number.to_string()).collect::<Vec<_>>();
        assert_eq!(elided_list(&items(4), ", "), "1, 2, 3, 4");
        assert_eq!(elided_list(&items(6), "; "), "1; 2; 3; 4; and 2 more");
        assert_eq!(elided_list(&[], ", "), "");
    }
}
