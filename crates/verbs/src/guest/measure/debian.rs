//! Debian's packages, found and unpacked by the system's own tools. Nothing is installed, and the system's lists stay as they are: an
//! older or a newer kernel comes from a suite that the system does not use, by a list of sources of iotoll's own.

use super::cache::{Cache, Part};
use super::tool::{self, Care, mended};
use lab::error::{Error, Result};
use std::cmp::Ordering;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to do without Debian's tools.
const WITHOUT_APT: &str = "only a Debian system can download Debian's packages";
const WITHOUT_DPKG: &str = "install the package dpkg to unpack Debian's packages";

/// A package that can be downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    package: String,
    /// Its file name, with version and architecture.
    pub file: String,
    /// Size of the file.
    bytes: u64,
    source: Source,
}

impl Offer {
    /// The version of a package that apt would install.
    ///
    /// # Errors
    /// When there is no such package, or no apt.
    pub fn of(package: &str, source: &Source, care: &Care) -> Result<Self> {
        let what = format!("looking up the Debian package {package}");
        let mut command = source.command("apt-get");
        let command = command.args(["download", "--print-uris", package]);
        let printed = lines(command, &what, WITHOUT_APT, care).map_err(|error| match error {
            Error::Failed(why) => Error::Refused(format!("{why}; run `apt-get update`, or check the name")),
            error => error,
        })?;
        printed.iter().find_map(|line| Self::parse(package, source, line)).ok_or_else(|| {
            Error::Failed(format!("{what}: `apt-get download --print-uris` printed no address; run `apt-get update`"))
        })
    }

    /// A line such as `'http://…/pool/….deb' NAME_VERSION_amd64.deb 44952 SHA256:…`.
    fn parse(package: &str, source: &Source, line: &str) -> Option<Self> {
        let mut words = line.strip_prefix('\'')?.split_once("' ")?.1.split_whitespace();
        let file = words.next()?.to_owned();
        let bytes = words.next()?.parse().ok()?;
        let plain = file.ends_with(".deb") && !file.contains('/');
        plain.then(|| Self { package: package.to_owned(), file, bytes, source: source.clone() })
    }

    /// The package's folder in the cache, unpacked; downloaded if it is absent.
    ///
    /// # Errors
    /// When it cannot be downloaded or unpacked.
    pub fn unpacked(&self, cache: &Cache, part: Part, observe: &mut dyn FnMut(String)) -> Result<PathBuf> {
        let folder = cache.make(part, self.stem(), |folder| {
            let archive = self.downloaded(cache, observe)?;
            observe(format!("unpacking {}", self.file));
            unpack(&archive, folder, &cache.care)
        })?;
        // It is never needed again.
        let _ = fs::remove_file(cache.entry(Part::PACKAGES, &self.file));
        Ok(folder)
    }

    /// Name of the unpacked folder.
    pub fn stem(&self) -> &str {
        self.file.strip_suffix(".deb").unwrap_or(&self.file)
    }

    fn downloaded(&self, cache: &Cache, observe: &mut dyn FnMut(String)) -> Result<PathBuf> {
        let Self { package, file, bytes, source } = self;
        cache.make(Part::PACKAGES, file, |path| {
            observe(format!("downloading {file} ({:.1} MB)", *bytes as f64 / 1e6));
            let what = format!("downloading the Debian package {package}");
            let mut command = source.command("apt-get");
            command.args(["download", "-q", package]).current_dir(path.parent().unwrap_or(path));
            let ran = tool::output(&mut command, &what, WITHOUT_APT, &cache.care);
            ran.map_err(|error| mended(error, "check the network, or run `apt-get update`"))?;
            path.is_file().then_some(()).ok_or_else(|| {
                Error::Failed(format!("{what}: apt downloaded another file than {file}; run `apt-get update`"))
            })
        })
    }
}

/// Unpacks a package into a new folder.
///
/// # Errors
/// When it is no package, or dpkg is missing.
pub(super) fn unpack(archive: &Path, folder: &Path, care: &Care) -> Result<()> {
    let what = format!("unpacking {}", archive.display());
    let mut command = Command::new("dpkg-deb");
    command.arg("--extract").arg(archive).arg(folder);
    tool::output(&mut command, &what, WITHOUT_DPKG, care)?;
    Ok(())
}

/// Names of the packages that begin with `prefix`, without those that have no version. `mend` is what to do without apt.
///
/// # Errors
/// When the host has no apt.
pub(super) fn names(prefix: &str, source: &Source, mend: &str, care: &Care) -> Result<Vec<String>> {
    let mut command = source.command("apt-cache");
    command.args(["pkgnames", prefix]);
    lines(&mut command, &format!("looking up the Debian packages {prefix}…"), mend, care)
}

/// The lines that a program prints.
fn lines(command: &mut Command, what: &str, mend: &str, care: &Care) -> Result<Vec<String>> {
    let printed = tool::output(command, what, mend, care)?;
    Ok(String::from_utf8_lossy(&printed).lines().map(|line| line.trim_end().to_owned()).collect())
}

/// When apt's lists of packages last changed, as a text for a file name; `None` if there are none.
pub(super) fn lists_changed() -> Option<String> {
    let lists = fs::metadata("/var/lib/apt/lists").ok()?;
    Some(format!("{}.{}", lists.mtime(), lists.mtime_nsec()))
}

/// The libraries' packages that a package depends on, itself or through others.
///
/// # Errors
/// When there is no such package, or no apt.
pub(super) fn libraries_of(package: &str, care: &Care) -> Result<Vec<String>> {
    /// What is not needed to run a program.
    const WITHOUT: [&str; 6] =
        ["--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances"];
    let mut command = Command::new("apt-cache");
    command.args(["depends", "--recurse"]).args(WITHOUT).arg(package);
    let what = format!("looking up the dependencies of the Debian package {package}");
    let mut printed = lines(&mut command, &what, WITHOUT_APT, care)?;
    // A package's own line is not indented; its dependencies follow, indented.
    printed.retain(|line| line.starts_with("lib"));
    Ok(printed)
}

/// Whether the package is installed on the host, so that its libraries are there.
pub(super) fn is_installed(package: &str) -> bool {
    let list = |name: String| Path::new("/var/lib/dpkg/info").join(name).exists();
    list(format!("{package}.list")) || list(format!("{package}:amd64.list"))
}

/// The suites by the series of their kernels.
const SUITES: [(&str, &str); 3] = [("5.10", "bullseye"), ("6.1", "bookworm"), ("6.12", "trixie")];
/// Suites of Debian's mirrors: where the system has one of them, the others are beside it.
const KNOWN: [&str; 7] = ["bullseye", "bookworm", "trixie", "forky", "stable", "testing", "sid"];
/// Debian's keys, of all suites.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Where packages are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
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
    pub(super) fn of_kernels(version: &str, cache: &Cache, observe: &mut dyn FnMut(String)) -> Result<Option<Self>> {
        let begins = |series: &str| {
            version.strip_prefix(series).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let Some((_, suite)) = SUITES.into_iter().find(|(series, _)| begins(series)) else { return Ok(None) };
        let mut command = Command::new("apt-get");
        command.args(["indextargets", "--format", "$(CREATED_BY) $(RELEASE) $(REPO_URI)"]);
        let what = "looking up the system's mirror of Debian";
        let targets = lines(&mut command, what, WITHOUT_APT, &cache.care)?;
        let list = sources(&targets, suite, Path::new(KEYS).exists());
        if list.is_empty() {
            return Ok(None);
        }
        let begin = format!(".suite-{suite}-");
        let name = format!("{begin}{}", lists_changed().unwrap_or_default());
        let folder = cache.make(Part::PACKAGES, &name, |folder| {
            observe(format!("downloading the lists of Debian's suite {suite}"));
            let home = cache.entry(Part::PACKAGES, &name);
            configure(folder, &home, &list)
        })?;
        cache.remove_earlier(Part::PACKAGES, &begin, &name);
        let source = Self::Suite(folder.join(CONFIGURATION));
        let updated = folder.join(UPDATED);
        if !updated.exists() {
            let mut command = source.command("apt-get");
            // Without it, what cannot be downloaded is a warning.
            command.args(["update", "-q", "-o", "APT::Update::Error-Mode=any"]);
            let what = format!("downloading the lists of Debian's suite {suite}");
            let ran = tool::output(&mut command, &what, WITHOUT_APT, &cache.care);
            ran.map_err(|error| mended(error, "check the network"))?;
            fs::write(&updated, "").map_err(|error| Error::file(&updated, "noting that lists are complete", error))?;
        }
        Ok(Some(source))
    }

    /// A program of apt that reads this source.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if let Self::Suite(configuration) = self {
            command.arg("-c").arg(configuration);
        }
        command
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
fn sources(targets: &[String], suite: &str, keys: bool) -> String {
    let keys = if keys { format!(" signed-by={KEYS}") } else { String::new() };
    let mut lines: Vec<String> = Vec::new();
    for target in targets.iter().filter_map(|line| line.strip_prefix("Packages ")) {
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

/// Compares two versions as dpkg does (deb-version(7)), without epochs: parts that are not digits, and numbers, in turn.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    parts(left).cmp(&parts(right))
}

/// The parts of a version, each without digits and the number behind it; behind them an empty one, which a tilde precedes.
fn parts(mut version: &str) -> Vec<(Vec<i32>, u64)> {
    let mut parts = Vec::new();
    loop {
        let (word, rest) = version.split_at(version.find(|c: char| c.is_ascii_digit()).unwrap_or(version.len()));
        let (number, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        parts.push((word.bytes().map(weight).chain([0]).collect(), number.parse().unwrap_or(0)));
        if version.is_empty() {
            return parts;
        }
        version = rest;
    }
}

/// Order among those that are not digits: a tilde, the end, letters, all others.
fn weight(letter: u8) -> i32 {
    match letter {
        b'~' => -1,
        letter if letter.is_ascii_alphabetic() => i32::from(letter),
        other => i32::from(other) + 256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_dpkgs_order() {
        // In ascending order by `dpkg --compare-versions`.
        let ascending = [
            "6.1.0-0.deb11.6",
            "6.1.0-9",
            "6.1.0-56",
            "6.12.9+bpo",
            "6.12.74+deb13",
            "6.12.111~rc1",
            "6.12.111",
            "6.12.0111a",
            "6.12.111+deb12",
        ];
        for (index, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(compare(left, right), index.cmp(&other), "{left} {right}");
            }
        }
        assert_eq!(compare("1.02", "1.2"), Ordering::Equal);
    }

    #[test]
    fn an_offer_is_read_from_apts_line() {
        let line = "'http://deb.debian.org/debian/pool/main/n/nbd/nbd-client_3.24-1.1_amd64.deb' \
                    nbd-client_1%3a3.24-1.1_amd64.deb 44952 SHA256:8432";
        let offer = Offer::parse("nbd-client", &Source::System, line).unwrap();
        assert_eq!(offer.file, "nbd-client_1%3a3.24-1.1_amd64.deb");
        assert_eq!(offer.stem(), "nbd-client_1%3a3.24-1.1_amd64");
        assert_eq!(offer.bytes, 44_952);
        assert_eq!(Offer::parse("x", &Source::System, "'http://x/x.deb' ../x.deb 44952"), None);
        assert_eq!(Offer::parse("x", &Source::System, "Reading package lists..."), None);
    }

    #[test]
    fn the_suite_is_on_the_mirrors_of_the_system() {
        let targets = "DEP-11 bookworm http://mirror/debian/\nPackages bookworm http://mirror/debian/\n\
                       Packages bookworm-updates http://mirror/debian/\nPackages bookworm http://mirror/debian/\n\
                       Packages bookworm-security http://mirror/security/\nPackages nodistro http://other/\n";
        let list = "deb [target=Packages check-valid-until=no] http://mirror/debian/ bullseye main\n\
                    deb [target=Packages check-valid-until=no] http://mirror/security/ bullseye-security main\n";
        let sources =
            |targets: &str, keys| sources(&targets.lines().map(str::to_owned).collect::<Vec<_>>(), "bullseye", keys);
        assert_eq!(sources(targets, false), list);
        assert!(sources(targets, true).contains(" signed-by=/usr/share/keyrings/"));
        assert_eq!(sources("Packages jammy http://mirror/ubuntu/\n", false), "");
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
