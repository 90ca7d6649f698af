//! Completion scripts.

use super::GeneratedFile;
use crate::arguments::{SHELLS, documented};
use clap_complete::{Generator, Shell};

/// The script of each shell, with the file name that the shell expects.
pub fn files() -> Vec<GeneratedFile> {
    SHELLS.iter().map(|shell| GeneratedFile { name: shell.file_name("iotoll"), text: script(*shell) }).collect()
}

/// The script of one shell.
pub fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut documented(), "iotoll", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Bash { script.replacen(BASH_WORDS, BASH_WORDS_AT_EQUALS, 1) } else { script }
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
        assert!(script(Shell::Bash).contains(BASH_WORDS_AT_EQUALS), "clap_complete's script has changed");
    }

    #[test]
    fn every_script_knows_the_options_of_a_job_and_their_words() {
        for shell in &SHELLS {
            let script = script(*shell);
            for word in ["ioengine", "io_uring", "randread", "path_tx_queue", "mp-ring", "candidate-cmd"] {
                assert!(script.contains(word), "{shell:?} {word}");
            }
            assert!(!script.contains("guardian"), "{shell:?}");
        }
    }
}
