//! A guest's kernel: from what the user names it by to its image and its modules.

use super::cache::{Cache, Part};
use super::debian::{self, Offer, Source};
use super::modules::Replaced;
use super::tool::{self, unreadable};
use lab::error::{Error, Result};
use lab::sysroot::names;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where a build leaves its image, and its release.
const BUILT_IMAGE: &str = "arch/x86/boot/bzImage";
const BUILT_RELEASE: &str = "include/config/kernel.release";
/// Where modules are installed below a root.
const INSTALLED_MODULES: [&str; 2] = ["lib/modules", "usr/lib/modules"];

/// A kernel to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// As the user named it.
    pub label: String,
    /// Its release, as `uname -r` prints it.
    pub release: String,
    /// Its image, a bzImage.
    pub image: PathBuf,
    /// The folder below which its modules are: `lib/modules/RELEASE`, or its build. `None` if the image was named alone
    /// and no modules were found for it.
    pub modules: Option<PathBuf>,
    /// Modules of the user's own, in place of those of the same names.
    pub replaced: Vec<Replaced>,
}

/// The images of the kernels that are installed below `root`, by name.
pub fn installed_images(root: &Path) -> Vec<PathBuf> {
    let boot = root.join("boot");
    names(&boot).into_iter().filter(|name| name.starts_with("vmlinuz-")).map(|name| boot.join(name)).collect()
}

/// Finds a kernel: `debian:X.Y`, a package (.deb), the folder of a build or of an installed system, an image, or an
/// image and its modules (`VMLINUZ,FOLDER`). Downloads and unpacks what the cache does not have.
///
/// # Errors
/// When it does not exist, is no kernel, has no modules or those of another release, or cannot be downloaded or unpacked.
pub fn locate(text: &str, cache: &Cache, observe: &mut dyn FnMut(String)) -> Result<Kernel> {
    let (image, release, modules) = if let Some(version) = text.strip_prefix("debian:") {
        installed(&of_debian(text, version, cache, observe)?)?
    } else {
        let path = absolute(text)?;
        match (path.is_dir(), path.exists(), text.split_once(',')) {
            (true, _, _) if path.join(BUILT_RELEASE).exists() || path.join(BUILT_IMAGE).exists() => built(&path)?,
            (true, _, _) => installed(&path)?,
            (_, true, _) if path.extension().is_some_and(|extension| extension == "deb") => {
                installed(&of_package(&path, cache, observe)?)?
            }
            (_, true, _) => alone(path)?,
            (_, false, Some((image, modules))) => with_modules(absolute(image)?, &absolute(modules)?)?,
            (_, false, None) => {
                return Err(Error::Refused(format!(
                    "kernel '{text}': no such file or folder; give debian:6.1, a .deb, a kernel build, or \
                     VMLINUZ,MODULES_FOLDER"
                )));
            }
        }
    };
    Ok(Kernel { label: text.to_owned(), release, image, modules, replaced: Vec::new() })
}

/// Image, release and modules of a [`Kernel`].
type Found = (PathBuf, String, Option<PathBuf>);

fn absolute(text: &str) -> Result<PathBuf> {
    std::path::absolute(text).map_err(|error| Error::Refused(format!("kernel '{text}': {error}")))
}

/// Begins the name of a kernel's package.
const PACKAGE: &str = "linux-image-";

/// The unpacked package of Debian's newest kernel of a version: of those that apt offers; if it offers none, of those of another
/// suite of Debian; if there are none, of those in the cache. Apt, which takes a second, is not asked again until its lists change.
fn of_debian(text: &str, version: &str, cache: &Cache, observe: &mut dyn FnMut(String)) -> Result<PathBuf> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".+-~".contains(c);
    if !version.starts_with(|c: char| c.is_ascii_digit()) || !version.contains('.') || !version.chars().all(plain) {
        return Err(Error::Refused(format!(
            "kernel '{text}': not a version; write debian:5.10, debian:6.1 or debian:6.12"
        )));
    }
    let answers = format!(".newest-{version}-");
    let answer = debian::lists_changed().map(|changed| format!("{answers}{changed}"));
    let answered = answer.as_ref().and_then(|answer| fs::read_to_string(cache.entry(Part::KERNELS, answer)).ok());
    if let Some(folder) = answered.map(|name| cache.entry(Part::KERNELS, &name)).filter(|folder| folder.is_dir()) {
        return Ok(folder);
    }
    let offered = match offered(version, &Source::System, cache) {
        Ok(None) => match Source::of_kernels(version, cache, observe) {
            Ok(Some(suite)) => offered(version, &suite, cache),
            other => other.map(|_| None),
        },
        other => other,
    };
    if let Ok(Some(offer)) = &offered {
        let folder = offer.unpacked(cache, Part::KERNELS, observe)?;
        cache.remove_earlier(Part::KERNELS, &answers, "");
        if let Some(answer) = answer {
            cache.write(Part::KERNELS, &answer, offer.stem().as_bytes())?;
        }
        return Ok(folder);
    }
    if let Some(name) = newest(&cache.names(Part::KERNELS), version) {
        return Ok(cache.entry(Part::KERNELS, &name));
    }
    offered?;
    Err(Error::Refused(format!(
        "kernel '{text}': apt knows no package {PACKAGE}{version}…-amd64; run `apt-get update`, or name another version"
    )))
}

/// The package of the newest kernel of a version in a source.
fn offered(version: &str, source: &Source, cache: &Cache) -> Result<Option<Offer>> {
    let mend = "give a .deb, a kernel build, or VMLINUZ,MODULES_FOLDER instead of a Debian version";
    let names = debian::names(&format!("{PACKAGE}{version}"), source, mend, &cache.care)?;
    newest(&names, version).map(|name| Offer::of(&name, source, &cache.care)).transpose()
}

/// The newest stock kernel of a version, of packages or of unpacked packages.
fn newest(names: &[String], version: &str) -> Option<String> {
    let kernels = names.iter().filter_map(|name| Some((stock_version(named(name)?, version)?, name)));
    // The package's version decides between equal kernel versions.
    let newest = kernels
        .max_by(|(left, name), (right, other)| debian::compare(left, right).then_with(|| debian::compare(name, other)));
    newest.map(|(_, name)| name.clone())
}

/// The release in the name of a package, or of its folder in the cache.
fn named(package: &str) -> Option<&str> {
    package.strip_prefix(PACKAGE)?.split('_').next()
}

/// The version in the rest of the package name of a stock kernel, such as `6.1.0-56-amd64`, if it is one of `asked`.
/// Kernels for clouds or real time, unsigned ones, debug symbols, and packages that only name another one are not.
fn stock_version<'a>(rest: &'a str, asked: &str) -> Option<&'a str> {
    let version = rest.strip_suffix("-amd64")?;
    let after = version.strip_prefix(asked)?;
    let stock = version.split('-').all(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    // A package that names another one has a version of two parts.
    let whole = version.split(['-', '+']).next()?.split('.').count() > 2;
    (stock && whole && (after.is_empty() || after.starts_with(['.', '-', '+', '~']))).then_some(version)
}

/// The unpacked folder of a package that the user gave. Its size and time distinguish builds of the same name.
fn of_package(path: &Path, cache: &Cache, observe: &mut dyn FnMut(String)) -> Result<PathBuf> {
    let version = tool::version(path).map_err(|error| unreadable(path, &error))?;
    let name = format!("{}-{version}", path.file_stem().unwrap_or_default().to_string_lossy());
    cache.make(Part::KERNELS, &name, |folder| {
        observe(format!("unpacking {}", path.display()));
        debian::unpack(path, folder, &cache.care)
    })
}

/// The kernel of a build.
fn built(folder: &Path) -> Result<Found> {
    let image = folder.join(BUILT_IMAGE);
    let shown = folder.display();
    if !image.exists() {
        return Err(Error::Refused(format!("{shown}: a kernel build without {BUILT_IMAGE}; run `make` there")));
    }
    Ok((image.clone(), release(&image)?, Some(folder.to_owned())))
}

/// The modules of a release that are installed below one of these folders.
fn modules_of<'a>(release: &str, roots: impl IntoIterator<Item = &'a Path>) -> Option<PathBuf> {
    let folders = roots.into_iter().flat_map(|root| INSTALLED_MODULES.map(|modules| root.join(modules).join(release)));
    folders.into_iter().find(|folder| folder.is_dir())
}

/// The only kernel of an installed system or an unpacked package.
fn installed(root: &Path) -> Result<Found> {
    let others = || INSTALLED_MODULES.iter().flat_map(|modules| names(&root.join(modules)));
    let mut images = installed_images(root);
    if images.is_empty() {
        // Some distributions keep the image with the modules.
        let beside = others().filter_map(|release| Some(modules_of(&release, [root])?.join("vmlinuz")));
        images = beside.filter(|image| image.exists()).collect();
    }
    let shown = root.display();
    let image = match images.as_slice() {
        [] => {
            return Err(Error::Refused(format!(
                "{shown}: contains no kernel: neither boot/vmlinuz-* nor {BUILT_IMAGE}; give a kernel build, or \
                 VMLINUZ,MODULES_FOLDER"
            )));
        }
        [image] => image,
        [first, ..] => {
            let (count, first) = (images.len(), first.display());
            return Err(Error::Refused(format!("{shown}: contains {count} kernels; name one, such as {first}")));
        }
    };
    let release = release(image)?;
    let Some(modules) = modules_of(&release, [root]) else {
        let others: Vec<_> = others().collect();
        let why = match others.is_empty() {
            true => "contains no modules".to_owned(),
            false => format!("contains modules of {} only", others.join(", ")),
        };
        return Err(Error::Refused(format!(
            "{shown}: the kernel is of release {release}, and the folder {why}; give VMLINUZ,MODULES_FOLDER"
        )));
    };
    Ok((image.clone(), release, Some(modules)))
}

/// An image, with the modules that are where its place suggests.
fn alone(image: PathBuf) -> Result<Found> {
    let release = release(&image)?;
    let built = image.ancestors().nth(4).filter(|folder| folder.join(BUILT_IMAGE) == image);
    if let Some(folder) = built.filter(|folder| folder.join(BUILT_RELEASE).exists()) {
        return self::built(folder);
    }
    let folder = image.parent();
    let beside = folder.filter(|folder| folder.file_name().is_some_and(|name| *name == *release));
    let roots = [folder.and_then(Path::parent), Some(Path::new("/"))];
    let modules = beside.map(Path::to_owned).or_else(|| modules_of(&release, roots.into_iter().flatten()));
    Ok((image, release, modules))
}

/// An image, and the folder of its modules: `lib/modules/RELEASE`, one of its parents, a build, or any other folder with
/// modules, whose release is compared when they are read.
fn with_modules(image: PathBuf, folder: &Path) -> Result<Found> {
    let release = release(&image)?;
    let shown = folder.display();
    if !folder.is_dir() {
        return Err(Error::Refused(format!(
            "{shown}: no such folder of modules for kernel {}; give lib/modules/{release}",
            image.display()
        )));
    }
    let own = Some(folder.join(&release)).filter(|own| own.is_dir());
    if let Some(modules) = own.or_else(|| modules_of(&release, [folder])) {
        return Ok((image, release, Some(modules)));
    }
    Ok((image, release, Some(folder.to_owned())))
}

/// The release of an image for x86, from its header (Documentation/arch/x86/boot.rst).
fn release(image: &Path) -> Result<String> {
    /// Offset of the header's magic number, and of the field that says where the release is.
    const MAGIC: usize = 0x202;
    const RELEASE: usize = 0x20e;
    /// The field counts from here.
    const RELEASE_FROM: usize = 0x200;
    /// More than the largest value of the field, and a release after it.
    const HEADER_BYTES: u64 = 0x1_0400;
    let mut header = Vec::new();
    // Opening a pipe would wait for its other end.
    if fs::metadata(image).is_ok_and(|state| !state.is_file()) {
        return Err(Error::Refused(format!("{}: is not a file, so not a kernel image", image.display())));
    }
    let read = File::open(image).and_then(|file| file.take(HEADER_BYTES).read_to_end(&mut header));
    read.map_err(|error| unreadable(image, &error))?;
    let parsed = || {
        (header.get(MAGIC..MAGIC + 4)? == b"HdrS").then_some(())?;
        let offset = u16::from_le_bytes(header.get(RELEASE..RELEASE + 2)?.try_into().ok()?);
        (offset > 0).then_some(())?;
        let text = header.get(RELEASE_FROM + usize::from(offset)..)?;
        let text = std::str::from_utf8(text.split(|byte| *byte == 0).next()?).ok()?;
        // The builder, the compiler and the date follow.
        text.split_whitespace().next().map(str::to_owned)
    };
    parsed().ok_or_else(|| {
        let what = match header.starts_with(b"\x7fELF") {
            true => format!("is an ELF file, not a kernel image; give {BUILT_IMAGE} of its build"),
            false => "is not a kernel image for x86 (a bzImage)".to_owned(),
        };
        Error::Refused(format!("{}: {what}", image.display()))
    })
}

#[cfg(test)]
mod tests;
