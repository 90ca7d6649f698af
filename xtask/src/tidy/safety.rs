//! Unsafe code is confined to one crate. That each use states why it is sound is a lint (`undocumented_unsafe_blocks`).

use super::Breach;
use super::tree::Tree;

const UNSAFE: &str = "unsafe";
/// The crate that may contain it.
const SYS: &str = "sys";

/// No unsafe code, and no permission for it, outside `sys`.
pub fn only_in_sys(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.sources().filter(|file| file.member() != Some(SYS)) {
        for (index, line) in file.lines.iter().enumerate() {
            let permitted = line.has_word("unsafe_code") && (line.has_word("allow") || line.has_word("expect"));
            if line.has_word(UNSAFE) || permitted {
                breaches.push(Breach::new(
                    &file.path,
                    index + 1,
                    "unsafe code outside crates/sys: add a safe function to sys",
                ));
            }
        }
    }
    for file in tree.files.iter().filter(|file| file.path.ends_with("/Cargo.toml") && file.member() != Some(SYS)) {
        let inherits =
            file.text.split("[lints]").nth(1).is_some_and(|lints| lints.trim_start().starts_with("workspace = true"));
        if file.member().is_some() && !inherits {
            breaches.push(Breach::new(
                &file.path,
                1,
                "does not inherit the workspace's lints: add `[lints]` with `workspace = true`",
            ));
        }
    }
    breaches
}
