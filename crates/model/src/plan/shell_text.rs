//! Values in the text of a shell command: quoted for the place where they stand, so that the shell takes each as it is.

use super::value::Quoted;

/// Shells whose argument after `-c` is such a text.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Outside quotes.
    Open,
    /// In single quotes.
    Single,
    /// In double quotes.
    Double,
    /// Where no quoting is right, or where it is unknown which one is.
    Unknown,
}

/// `value` as it is written after the text `before`. A value that means nothing to a shell stays as it is.
///
/// # Errors
/// When it cannot be quoted there.
pub(crate) fn quoted(value: &str, before: &str) -> Result<String, String> {
    if is_plain(value) {
        return Ok(value.to_owned());
    }
    match place_after(before) {
        Place::Open => Ok(in_single_quotes(value)),
        Place::Single => Ok(value.replace('\'', "'\\''")),
        Place::Double => Ok(value.chars().fold(String::new(), |text, letter| match letter {
            '\\' | '"' | '$' | '`' => text + "\\" + letter.encode_utf8(&mut [0; 4]),
            _ => text + letter.encode_utf8(&mut [0; 4]),
        })),
        Place::Unknown => Err(format!(
            "its value {} has characters that a shell acts on, and it cannot be quoted where it stands (behind a here-document, \
             a comment, parentheses, backquotes, a quoted script); assign it to a variable before that, or change the value",
            Quoted(value)
        )),
    }
}

/// A value in single quotes, if it needs any.
pub(crate) fn in_single_quotes(value: &str) -> String {
    if is_plain(value) { value.to_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
}

/// Whether the word at `place` of a command is a script of a shell: it follows `-c`, and an earlier word names a shell.
pub(crate) fn is_script(words: &[String], place: usize) -> bool {
    let Some((flag, before)) = words.get(..place).and_then(<[String]>::split_last) else { return false };
    is_script_flag(flag) && before.iter().any(|word| is_shell(word))
}

fn is_shell(word: &str) -> bool {
    word.rsplit('/').next().is_some_and(|name| SHELLS.contains(&name))
}

/// `-c`, also among other letters: `-ec`.
fn is_script_flag(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    letters.ends_with('c') && letters.chars().all(|letter| letter.is_ascii_alphabetic())
}

fn is_plain(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-./=,:@%+".contains(letter))
}

/// What a shell reads in another way than by quotes.
const UNSURE: [&str; 7] = ["`", "(", "<<", "#", "eval", "case", "esac"];

/// What the next character after `text` stands in. A quoted text may be a script, which a shell reads a second time.
fn place_after(text: &str) -> Place {
    let (mut place, mut unquoted) = (Place::Open, String::new());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (place, letter) {
            (Place::Single, '\'') | (Place::Double, '"') => place = Place::Open,
            (Place::Open, '\'') => place = Place::Single,
            (Place::Open, '"') => place = Place::Double,
            // The value itself would be escaped.
            (Place::Open | Place::Double, '\\') if letters.as_str().is_empty() => return Place::Unknown,
            (Place::Open | Place::Double, '\\') => _ = letters.next(),
            (Place::Open, _) | (Place::Double, '`') => unquoted.push(letter),
            (Place::Double, '$') if letters.as_str().starts_with('(') => unquoted.push('('),
            _ => {}
        }
    }
    let script = || text.split_whitespace().any(is_script_flag) && text.split_whitespace().any(is_shell);
    let doubtful = UNSURE.iter().any(|sign| unquoted.contains(sign)) || place != Place::Open && script();
    if doubtful { Place::Unknown } else { place }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    /// What a shell prints for `script` with `value` in place of `{}`.
    fn prints(script: &str, value: &str) -> String {
        let (before, after) = script.split_once("{}").unwrap();
        let text = format!("{before}{}{after}", quoted(value, before).unwrap());
        let output = Command::new("sh").args(["-c", &text]).output().unwrap();
        assert!(output.stderr.is_empty(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Each prints the value and nothing else.
    const SCRIPTS: [&str; 6] = [
        "printf %s {}",
        "printf %s \"{}\"",
        "printf %s '{}'",
        "V={}; printf %s \"$V\"",
        "true \\' \"'\" '\"'\nprintf %s {}",
        "true 'a`(#<<' \"a(#<<\\`\\$(\"; printf %s {}",
    ];

    #[test]
    fn a_shell_takes_each_value_as_it_is() {
        for value in ["/tmp/a;b$HOME`id`", "it's \"so\" \\n", "*", "a b", "$(exit 3)", "", "ü", "!x", "{a,b}", "~"] {
            for script in SCRIPTS {
                assert_eq!(prints(script, value), value, "{script}");
            }
        }
        assert_eq!(quoted("nbd://127.0.0.1:1024", "cat <<END\n"), Ok("nbd://127.0.0.1:1024".to_owned()));
    }

    #[test]
    fn a_value_that_cannot_be_quoted_is_refused() {
        for before in [
            "cat <<END\n",
            "true # ",
            "echo `cat ",
            "cat \\",
            "case x in x) ",
            "sh -c 'cat ",
            "eval \"cat ",
            "echo $(cat ",
            "echo \"$(cat ",
            "echo \"`cat ",
            "(cat ",
        ] {
            let refused = quoted("/tmp/a;b", before).unwrap_err();
            assert!(refused.contains("/tmp/a;b") && refused.contains("cannot be quoted"), "{before}: {refused}");
        }
    }

    #[test]
    fn scripts_of_shells_are_known() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(is_script(&words("nice /bin/sh -ec x"), 3));
        for (text, place) in [("gcc -c x", 2), ("sh x", 1), ("sh -c x y", 3), ("-c x", 1)] {
            assert!(!is_script(&words(text), place), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_value_is_taken_as_it_is(value in "[ -~\n]{0,12}x", place in 0..SCRIPTS.len()) {
            prop_assert_eq!(prints(SCRIPTS[place], &value), value);
        }

        #[test]
        fn any_text_may_stand_before_a_value(value in ".{0,8}", before in ".{0,40}|[\\\\'\"`$(){}<#; \n]{0,20}") {
            let _ = quoted(&value, &before);
        }
    }
}
