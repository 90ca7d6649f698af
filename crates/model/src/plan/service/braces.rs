//! Replacing words in braces.

use crate::plan::shell_text;

/// Replaces each `{word}` by its `value`; without a value it stays. A word is a letter followed by letters, digits, `.`, `-` and `_`.
/// Other braces, and `${word}`, belong to shells, awk or JSON.
///
/// # Errors
/// The error of `value`.
pub(super) fn fill_in(text: &str, value: impl Fn(&str) -> Result<Option<String>, String>) -> Result<String, String> {
    fill_in_after(text, |word, _| value(word))
}

/// The same for the text of a shell command: each value is quoted for the place where it stands.
///
/// # Errors
/// The error of `value`, or a value that cannot be quoted.
pub(super) fn fill_in_shell(
    text: &str,
    value: impl Fn(&str) -> Result<Option<String>, String>,
) -> Result<String, String> {
    fill_in_after(text, |word, before| {
        let quoted = |value: String| shell_text::quoted(&value, before).map_err(|why| format!("{{{word}}}: {why}"));
        value(word)?.map(quoted).transpose()
    })
}

/// `value` is given the word and the text before it.
fn fill_in_after(text: &str, value: impl Fn(&str, &str) -> Result<Option<String>, String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled += before;
        let word = after.split_once('}').filter(|(word, _)| is_word(word) && !before.ends_with('$'));
        let replaced = word.map(|(word, after)| Ok::<_, String>((value(word, &filled)?, after))).transpose()?;
        let (value, after) = match &replaced {
            Some((Some(value), after)) => (value.as_str(), *after),
            _ => ("{", after),
        };
        filled += value;
        rest = after;
    }
    Ok(filled + rest)
}

fn is_word(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_in_braces_are_replaced_and_other_braces_stay() {
        let shout = |text: &str| fill_in(text, |word| Ok((word != "stays").then(|| word.to_uppercase()))).unwrap();
        for (text, filled) in [
            ("a {b} c{d.e}f", "a B cD.Ef"),
            ("{a}{b}", "AB"),
            ("{stays} {a}", "{stays} A"),
            ("${HOME} awk '{ print }' {1..3} {} {", "${HOME} awk '{ print }' {1..3} {} {"),
            ("{{a}}", "{A}"),
            ("{\"json\": {a}}", "{\"json\": A}"),
            ("übel {a} ü", "übel A ü"),
        ] {
            assert_eq!(shout(text), filled);
        }
        assert_eq!(fill_in("x {a}", |word| Err(format!("no {word}"))), Err("no a".to_owned()));
    }

    proptest! {
        #[test]
        fn a_text_of_which_nothing_is_known_stays_as_it_is(text in ".{0,80}|[{}$a.]{0,20}") {
            prop_assert_eq!(fill_in(&text, |_| Ok(None)).unwrap(), text);
        }

        #[test]
        fn each_word_is_asked_for_once(words in proptest::collection::vec("[a-z][a-z.]{0,5}", 0..6)) {
            let text: String = words.iter().map(|word| format!("-{{{word}}}")).collect();
            let filled = fill_in(&text, |word| Ok(Some(word.to_owned()))).unwrap();
            prop_assert_eq!(filled, words.iter().map(|word| format!("-{word}")).collect::<String>());
        }
    }
}
