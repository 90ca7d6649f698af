//! Lists in a sentence: names the first few items and counts the rest; equal ones are told once.

/// Number of items to name.
pub const NAMED: usize = 4;

/// "a, b, c, d, and 3 more", with the separator `between`.
pub fn elided_list(items: &[String], between: &str) -> String {
    let more = items.len().saturating_sub(NAMED);
    let mut words: Vec<String> = items.iter().take(NAMED).cloned().collect();
    words.extend((more > 0).then(|| format!("and {more} more")));
    words.join(between)
}

/// Each of them once, in the order of their first occurrence.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// What belongs to each key, in the order in which the keys first occur.
pub fn grouped<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut found: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match found.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => found.push((key, vec![value])),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_items_are_counted() {
        let items = |count: u32| (1..=count).map(|number| number.to_string()).collect::<Vec<_>>();
        assert_eq!(elided_list(&items(4), ", "), "1, 2, 3, 4");
        assert_eq!(elided_list(&items(6), "; "), "1; 2; 3; 4; and 2 more");
        assert_eq!(elided_list(&[], ", "), "");
    }
}
