//! Sets the program's version: the package version, and the commit of the build.
//!
//! The commit comes from the variable `IOTOLL_COMMIT`, from git, or from the file that cargo adds to a published crate. In
//! other tarballs it is unknown.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=IOTOLL_COMMIT");
    let named = std::env::var("IOTOLL_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = named.or_else(of_checkout).or_else(of_published_crate).unwrap_or_else(|| "commit unknown".to_owned());
    println!("cargo::rustc-env=IOTOLL_VERSION={} ({commit})", env!("CARGO_PKG_VERSION"));
}

/// The checked-out commit. If the sources were unpacked inside another repository, its commit is not theirs.
fn of_checkout() -> Option<String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?.canonicalize().ok()?;
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != workspace {
        return None;
    }
    // A checkout changes HEAD, a commit changes the branch's file, and git may move that to packed-refs. Cargo considers a
    // missing file as changed each time, so only existing files are named.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for file in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", file]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// The commit that the crate was published from.
fn of_published_crate() -> Option<String> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".cargo_vcs_info.json")).ok()?;
    text.split("\"sha1\": \"").nth(1)?.get(..12).map(str::to_owned)
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}
