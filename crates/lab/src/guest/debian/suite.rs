//! Suites of Debian that the system does not use: an older or a newer kernel comes from the same mirror, by a list of sources of
//! iotoll's own. The system's lists stay as they are.

use super::{WITHOUT_APT, lists_changed};
use crate::error::{Error, Result};
use crate::guest::cache::{Cache, Part};
use crate::guest::tool;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The suites by the series of their kernels.
const SUITES: [(&str, &str); 3] = [("5.10", "bullseye"), ("6.1", "bookworm"), ("6.12", "trixie")];
/// Suites of Debian's mirrors: where the system has one of them, the others are beside it.
const KNOWN: [&str; 7] = ["bullseye", "bookworm", "trixie", "forky", "stable", "testing", "sid"];
/// Debian's keys, of all suites.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Where packages are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::guest) enum Source {
    /// What the system uses.
    System,
    /// A suite: apt's configuration for it.
    Suite(PathBuf),
}

impl Source {
    /// The suite with the kernels of a version, with lists that are as old as the system's. `None` if no suite is known for it, or
    /// the system has no mirror of Debian.
    ///
    /// # Errors
    /// When its lists cannot be downloaded.
    pub(in crate::guest) fn of_kernels(
        version: &str,
        cache: &Cache,
        observe: &mut dyn FnMut(String),
    ) -> Result<Option<Self>> {
        let begins = |series: &str| {
            version.strip_prefix(series).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let Some((_, suite)) = SUITES.into_iter().find(|(series, _)| begins(series)) else { return Ok(None) };
        let mut command = Command::new("apt-get");
        command.args(["indextargets", "--format", "$(CREATED_BY) $(RELEASE) $(REPO_URI)"]);
        let what = "looking up the system's mirror of Debian";
        let printed = tool::output(&mut command, what, WITHOUT_APT, cache.care())?;
        let list = sources(&String::from_utf8_lossy(&printed), suite, Path::new(KEYS).exists());
        if list.is_empty() {
            return Ok(None);
        }
        let begin = format!(".suite-{suite}-");
        let name = format!("{begin}{}", lists_changed().unwrap_or_default());
        let folder = cache.make(Part::Packages, &name, |folder| {
            observe(format!("downloading the lists of Debian's suite {suite}"));
            let home = cache.entry(Part::Packages, &name);
            configure(folder, &home, &list)
        })?;
        for earlier in fs::read_dir(folder.parent().unwrap_or(&folder)).into_iter().flatten().flatten() {
            let other = earlier.file_name();
            if other.to_str().is_some_and(|other| other.starts_with(&begin) && other != name) {
                let _ = fs::remove_dir_all(earlier.path());
            }
        }
        let source = Self::Suite(folder.join(CONFIGURATION));
        if !folder.join(UPDATED).exists() {
            source.update(suite, &folder, cache)?;
        }
        Ok(Some(source))
    }

    /// A program of apt that reads this source.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if let Self::Suite(configuration) = self {
            command.arg("-c").arg(configuration);
        }
        command
    }

    fn update(&self, suite: &str, folder: &Path, cache: &Cache) -> Result<()> {
        let mut command = self.command("apt-get");
        // Without it, what cannot be downloaded is a warning.
        command.args(["update", "-q", "-o", "APT::Update::Error-Mode=any"]);
        let what = format!("downloading the lists of Debian's suite {suite}");
        tool::output(&mut command, &what, WITHOUT_APT, cache.care()).map_err(|error| match error {
            Error::Failed(why) => Error::Failed(format!("{why}; check the network")),
            error => error,
        })?;
        let done = folder.join(UPDATED);
        fs::write(&done, "").map_err(|error| Error::file(&done, "noting that lists are complete", error))
    }
}

const CONFIGURATION: &str = "apt.conf";
const LIST: &str = "sources.list";
const LISTS: &str = "lists";
const UPDATED: &str = "updated";

/// Writes apt's configuration for a list of sources into `folder`, which will be `home`.
fn configure(folder: &Path, home: &Path, list: &str) -> Result<()> {
    let at = |name: &str| home.join(name).display().to_string();
    // The last line: the folder is the user's, and apt's own user cannot write to it.
    let configuration = format!(
        "#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n\
         Dir::Etc::sourcelist \"{}\";\nDir::Etc::sourceparts \"/dev/null\";\nDir::State::lists \"{}\";\n\
         Dir::Cache::pkgcache \"\";\nDir::Cache::srcpkgcache \"\";\nAcquire::Languages \"none\";\nAPT::Sandbox::User \"root\";\n",
        at(LIST),
        at(LISTS)
    );
    let partial = folder.join(LISTS).join("partial");
    fs::create_dir_all(&partial).map_err(|error| Error::file(&partial, "making the folder", error))?;
    for (name, text) in [(LIST, list), (CONFIGURATION, &configuration)] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| Error::file(&path, "writing", error))?;
    }
    Ok(())
}

/// The sources of a suite on the mirrors of the system's suites, and of its security updates. `targets` has a line for each index:
/// what made it, its release, the mirror. A suite that is no longer supported is not renewed, so its age is not checked.
fn sources(targets: &str, suite: &str, keys: bool) -> String {
    let keys = if keys { format!(" signed-by={KEYS}") } else { String::new() };
    let mut lines: Vec<String> = Vec::new();
    for target in targets.lines().filter_map(|line| line.strip_prefix("Packages ")) {
        let Some((release, mirror)) = target.split_once(' ') else { continue };
        let (base, ending) = match release.strip_suffix("-security") {
            Some(base) => (base, "-security"),
            None => (release, ""),
        };
        let line = format!("deb [target=Packages check-valid-until=no{keys}] {mirror} {suite}{ending} main\n");
        if KNOWN.contains(&base) && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_is_on_the_mirrors_of_the_system() {
        let targets = "DEP-11 bookworm http://mirror/debian/\nPackages bookworm http://mirror/debian/\n\
                       Packages bookworm-updates http://mirror/debian/\nPackages bookworm http://mirror/debian/\n\
                       Packages bookworm-security http://mirror/security/\nPackages nodistro http://other/\n";
        let list = "deb [target=Packages check-valid-until=no] http://mirror/debian/ bullseye main\n\
                    deb [target=Packages check-valid-until=no] http://mirror/security/ bullseye-security main\n";
        assert_eq!(sources(targets, "bullseye", false), list);
        assert!(sources(targets, "bullseye", true).contains(" signed-by=/usr/share/keyrings/"));
        assert_eq!(sources("Packages jammy http://mirror/ubuntu/\n", "bullseye", false), "");
    }

    #[test]
    fn apts_configuration_names_only_files_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        configure(folder.path(), Path::new("/home"), "deb x\n").unwrap();
        let text = fs::read_to_string(folder.path().join(CONFIGURATION)).unwrap();
        assert!(text.contains("Dir::Etc::sourcelist \"/home/sources.list\";"), "{text}");
        assert!(text.contains("Dir::State::lists \"/home/lists\";"), "{text}");
        assert!(folder.path().join("lists/partial").is_dir());
        assert_eq!(fs::read_to_string(folder.path().join(LIST)).unwrap(), "deb x\n");
        let command = Source::Suite("/x/apt.conf".into()).command("apt-get");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["-c", "/x/apt.conf"]);
        assert_eq!(Source::System.command("apt-get").get_args().count(), 0);
    }
}
