//! Unsafe code is confined to one crate, and each use states why it is sound.

use super::Breach;
use super::tree::{File, Tree};

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

/// Each unsafe block and impl has its `SAFETY:`, each unsafe function its `# Safety`.
pub fn explained(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.sources() {
        for (index, line) in file.lines.iter().enumerate() {
            let code = &line.code;
            if !line.has_word(UNSAFE) || is_type(code) {
                continue;
            }
            let function = code.contains("unsafe fn ") || (code.contains("unsafe extern ") && code.contains(" fn "));
            let wanted = if function { "# Safety" } else { "SAFETY:" };
            if !line.comment.contains(wanted) && !comment_above(file, index).contains(wanted) {
                breaches.push(Breach::new(
                    &file.path,
                    index + 1,
                    format!("unsafe without `{wanted}`: state why it is sound"),
                ));
            }
        }
    }
    breaches
}

/// `unsafe fn` as a type or in an attribute performs nothing unsafe.
fn is_type(code: &str) -> bool {
    code.contains("unsafe fn(") || code.contains("unsafe extern \"\" fn(") || code.trim_start().starts_with("#")
}

/// The comment of a line: the lines above it, up to one that has neither a comment nor the start of the same statement.
fn comment_above(file: &File, index: usize) -> String {
    let above = file.lines.iter().take(index).rev();
    let part = above.take_while(|line| {
        let code = line.code.trim();
        let continued = !code.is_empty() && !code.ends_with([';', '{', '}']);
        !line.comment.is_empty() || continued
    });
    part.map(|line| line.comment.as_str()).collect::<Vec<_>>().join("\n")
}
