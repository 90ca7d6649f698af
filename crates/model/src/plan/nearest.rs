//! Suggests the word that the user probably meant.

/// Below this Jaro-Winkler similarity, a suggestion is more confusing than helpful. The misspellings in this module's
/// tests score above it, unrelated options below.
const SIMILAR: f64 = 0.8;

/// Longer texts are not misspelled words, and the comparison takes quadratic time.
const LONGEST_WORD: usize = 64;

/// The candidate most similar to `word`, if any is similar enough.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_similar_words_only() {
        let words = ["iodepth", "size", "filename", "fsync", "libaio", "io_uring"];
        assert_eq!(nearest("iodepht", words), Some("iodepth"));
        assert_eq!(nearest("io-depth", words), Some("iodepth"));
        assert_eq!(nearest("sise", words), Some("size"));
        assert_eq!(nearest("filenmae", words), Some("filename"));
        assert_eq!(nearest("uring", words), Some("io_uring"));
        assert_eq!(nearest("colour", words), None);
        assert_eq!(nearest("", words), None);
        assert_eq!(nearest(&"iodepth".repeat(100), words), None);
    }
}
