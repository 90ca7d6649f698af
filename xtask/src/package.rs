//! `xtask deb` and `xtask static`: build a Debian package and a static binary.

use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files of `iotoll generate completions`, and their paths in a Debian package.
const COMPLETIONS: [(&str, &str); 3] = [
    ("iotoll.bash", "usr/share/bash-completion/completions/iotoll"),
    ("_iotoll", "usr/share/zsh/vendor-completions/_iotoll"),
    ("iotoll.fish", "usr/share/fish/vendor_completions.d/iotoll.fish"),
];

pub fn usage() -> &'static str {
    "       xtask deb [--program PATH]   (a Debian package of the release build, or of the program at PATH)\n       \
     xtask static   (a release build without shared libraries)"
}

/// Builds a Debian package; dpkg-deb prints its path.
///
/// # Errors
/// When the program cannot be built, or a tool of Debian's is missing or fails.
pub fn deb(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let program = match arguments {
        [] => {
            run(cargo(root).args(["build", "--locked", "--release", "--quiet", "--package", "iotoll"]))?;
            root.join("target/release/iotoll")
        }
        ["--program", path] => PathBuf::from(path),
        _ => bail!("unknown arguments: {}", arguments.join(" ")),
    };
    let version = output(Command::new(&program).arg("--version"))?;
    let version = version.split_whitespace().nth(1).context("the program does not print its version")?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let target = root.join("target/deb");
    let staged = target.join("staged");
    if staged.exists() {
        fs::remove_dir_all(&staged).with_context(|| staged.display().to_string())?;
    }
    let place = |path: &str| -> anyhow::Result<PathBuf> {
        let path = staged.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&staged))?;
        Ok(path)
    };
    let installed = place("usr/bin/iotoll")?;
    // Debian ships debug information in separate packages.
    run(Command::new("strip").args(["--strip-unneeded", "-o"]).args([&installed, &program]))?;
    let man = place("usr/share/man/man1/iotoll.1")?;
    run(Command::new(&program).args(["generate", "man"]).arg(man.parent().unwrap_or(&staged)))?;
    run(Command::new(&program).args(["generate", "completions"]).arg(&target))?;
    for (name, path) in COMPLETIONS {
        fs::copy(target.join(name), place(path)?).with_context(|| name.to_owned())?;
    }
    fs::write(place("usr/share/doc/iotoll/copyright")?, copyright(root)?)?;
    let changelog = place("usr/share/doc/iotoll/changelog")?;
    fs::copy(root.join("CHANGELOG.md"), &changelog).context("CHANGELOG.md")?;
    let pages = fs::read_dir(man.parent().unwrap_or(&staged))?.map(|page| Ok(page?.path()));
    let pages: Vec<PathBuf> = pages.collect::<anyhow::Result<_>>()?;
    run(Command::new("gzip").args(["-9", "--no-name", "--force"]).args(pages).arg(&changelog))?;
    let size = output(Command::new("du").args(["--summarize", "--apparent-size", "--block-size=1K"]).arg(&staged))?;
    let kibibytes = size.split_whitespace().next().context("du printed nothing")?;
    let (architecture, glibc) = (&*architecture, &*glibc(&installed)?);
    let values = [("version", version), ("architecture", architecture), ("kibibytes", kibibytes), ("glibc", glibc)];
    fs::write(place("DEBIAN/control")?, filled(include_str!("../debian/control"), &values))?;
    // Independent of the umask; what is executable stays so.
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&staged))?;
    let package = root.join(format!("target/deb/iotoll_{version}_{architecture}.deb"));
    run(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).args([&staged, &package]))?;
    Ok(())
}

/// A file of `xtask/debian` with its values.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value))
}

/// The license in Debian's machine-readable format.
fn copyright(root: &Path) -> anyhow::Result<String> {
    let license = fs::read_to_string(root.join("LICENSE-MIT")).context("LICENSE-MIT")?;
    let text = license.split_once("\n\n").and_then(|(_, rest)| rest.split_once("\n\n")).context("LICENSE-MIT")?.1;
    let indented = |line: &str| if line.is_empty() { " .".to_owned() } else { format!(" {line}") };
    let lines: Vec<String> = text.trim_end().lines().map(indented).collect();
    Ok(filled(include_str!("../debian/copyright"), &[("license", &lines.join("\n"))]))
}

/// The newest C library version that the program needs.
fn glibc(program: &Path) -> anyhow::Result<String> {
    const NAME: &[u8] = b"GLIBC_2.";
    let bytes = fs::read(program)?;
    let places = bytes.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    let minor = places.filter_map(|(place, _)| {
        let digits: Vec<u8> =
            bytes.iter().skip(place + NAME.len()).take_while(|byte| byte.is_ascii_digit()).copied().collect();
        String::from_utf8(digits).ok()?.parse::<u32>().ok()
    });
    Ok(format!("2.{}", minor.max().context("the program names no version of the C library; is it static?")?))
}

/// Builds a static binary, and prints its path.
///
/// # Errors
/// When it cannot be built.
pub fn static_program(root: &Path) -> anyhow::Result<()> {
    let host = crate::host()?;
    let target = root.join("target/static");
    let mut build = cargo(root);
    // With an explicit target, build scripts and macros stay dynamic: the compiler loads macros as libraries.
    build.args(["build", "--locked", "--release", "--quiet", "--package", "iotoll", "--target", &host, "--target-dir"]);
    run(build.arg(&target).env("RUSTFLAGS", "-C target-feature=+crt-static"))?;
    println!("{}", target.join(host).join("release/iotoll").display());
    Ok(())
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root);
    cargo
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    output(command.stdout(Stdio::inherit())).map(|_| ())
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::inherit()).output().with_context(|| program.clone())?;
    ensure!(output.status.success(), "{program} failed: {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_license_of_the_package_is_whole() {
        let text = copyright(&crate::workspace()).unwrap();
        assert!(text.contains("\n Permission is hereby granted") && text.contains("\n .\n THE SOFTWARE IS"), "{text}");
        assert!(!text.contains("\n\n\n") && text.lines().all(|line| !line.ends_with(' ')), "{text}");
    }

    #[test]
    fn a_program_needs_the_newest_library_that_it_names() {
        let name = format!("iotoll-glibc-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0").unwrap();
        let found = glibc(&path);
        fs::remove_file(&path).unwrap();
        assert_eq!(found.unwrap(), "2.34");
    }

    #[test]
    fn arguments_that_are_not_known_are_refused_before_anything_is_built() {
        assert!(deb(Path::new("/nowhere"), &["--fast"]).unwrap_err().to_string().contains("--fast"));
    }
}
