//! Completion scripts.

use super::GeneratedFile;
use crate::arguments::{CompletionShell, documented};
use clap::ValueEnum;
use clap_complete::Shell;

/// The script of each shell, with the file name that the shell expects.
pub fn files() -> Vec<GeneratedFile> {
    let file = |shell: &CompletionShell| {
        let name = match shell {
            CompletionShell::Bash => "iotoll.bash",
            CompletionShell::Zsh => "_iotoll",
            CompletionShell::Fish => "iotoll.fish",
        };
        GeneratedFile { name: name.to_owned(), text: script(*shell) }
    };
    CompletionShell::value_variants().iter().map(file).collect()
}

/// The script of one shell.
pub fn script(shell: CompletionShell) -> String {
    let generator = match shell {
        CompletionShell::Bash => Shell::Bash,
        CompletionShell::Zsh => Shell::Zsh,
        CompletionShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut documented(), "iotoll", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    if shell == CompletionShell::Bash { script.replacen(BASH_WORDS, BASH_WORDS_AT_EQUALS, 1) } else { script }
}

/// The place in clap_complete's script after it sets the current and the previous word.
const BASH_WORDS: &str = "    cmd=\"\"\n    opts=\"\"\n";
/// bash splits `--rw=randread`, the form of fio's options, at the `=`.
const BASH_WORDS_AT_EQUALS: &str = r#"    if [[ "$cur" == "=" ]]; then
        cur=""
    elif [[ "$prev" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}"
    fi
    cmd=""
    opts=""
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bash_completes_a_value_behind_an_equals_sign() {
        assert!(script(CompletionShell::Bash).contains(BASH_WORDS_AT_EQUALS), "clap_complete's script has changed");
    }

    #[test]
    fn every_script_knows_the_options_of_a_job_and_their_words() {
        for shell in CompletionShell::value_variants() {
            let script = script(*shell);
            for word in ["ioengine", "io_uring", "randread", "path_tx_queue", "mp-ring", "candidate-cmd"] {
                assert!(script.contains(word), "{shell:?} {word}");
            }
            assert!(!script.contains("guardian"), "{shell:?}");
        }
    }
}
