//! Commands as a shell reads them.

/// The arguments of a command, quoted for a shell.
pub fn command(arguments: &[String]) -> String {
    arguments.iter().map(|argument| quoted(argument)).collect::<Vec<_>>().join(" ")
}

/// Characters that end a line or change its direction: a name that contains one could rewrite what is beside it.
pub fn is_hidden(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One argument, quoted for a shell. Letters that a report would change (control characters, no-break spaces, those that
/// change the direction of a line) are spelled, as bash, zsh and ksh read them.
pub fn quoted(argument: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_=+,./:@%^".contains(letter);
    let spelled = |letter: char| letter.is_control() || is_hidden(letter) || letter == '\u{a0}';
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    if !argument.chars().any(spelled) {
        return format!("'{}'", argument.replace('\'', r"'\''"));
    }
    let letter = |letter: char| match letter {
        '\n' => r"\n".to_owned(),
        '\t' => r"\t".to_owned(),
        '\'' | '\\' => format!("\\{letter}"),
        letter if spelled(letter) => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    format!("$'{}'", argument.chars().map(letter).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        let arguments = ["fio", "--name=a b", "it's", ""].map(str::to_owned);
        assert_eq!(command(&arguments), r"fio '--name=a b' 'it'\''s' ''");
        assert_eq!(quoted("a\nit's \u{1b}"), r"$'a\nit\'s \u001b'");
        assert_eq!(quoted("~/x"), "'~/x'");
    }
}
