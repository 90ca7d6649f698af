//! Kernels in fabricated folders.

use super::*;

/// The beginning of an image of this release.
fn image(release: &str) -> Vec<u8> {
    let mut bytes = vec![0; 0x400];
    bytes[0x202..0x206].copy_from_slice(b"HdrS");
    bytes[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
    bytes.truncate(0x300);
    bytes.extend_from_slice(format!("{release} (me@here) (gcc) #1 SMP\0rest").as_bytes());
    bytes
}

fn write(root: &Path, path: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Locates a path below `root`, with `ROOT` for `root` in texts.
fn located(root: &Path, text: &str) -> std::result::Result<Kernel, String> {
    let cache = Cache::at(&root.join("cache")).unwrap();
    let shown = root.to_str().unwrap();
    let text = text.replace("ROOT", shown);
    locate(&text, &cache, &mut |_| {}).map_err(|error| error.to_string().replace(shown, "ROOT"))
}

#[test]
fn a_build_an_installed_root_and_an_image_are_found_with_their_modules() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "build/arch/x86/boot/bzImage", image("6.9.0-dirty"));
    write(root, "build/include/config/kernel.release", "6.9.0-dirty\n");
    write(root, "system/boot/vmlinuz-6.1.0", image("6.1.0"));
    write(root, "system/usr/lib/modules/6.1.0/kernel/x.ko", "");
    let system = root.join("system/usr/lib/modules/6.1.0");
    let build = located(root, "ROOT/build").unwrap();
    assert_eq!(build.release, "6.9.0-dirty");
    assert_eq!(build.image, root.join("build/arch/x86/boot/bzImage"));
    assert_eq!(build.modules, Some(root.join("build")));
    assert_eq!(build.label, format!("{}/build", root.display()));
    assert_eq!(located(root, "ROOT/build/arch/x86/boot/bzImage").unwrap().modules, build.modules);
    for text in [
        "ROOT/system",
        "ROOT/system/boot/vmlinuz-6.1.0",
        "ROOT/system/boot/vmlinuz-6.1.0,ROOT/system",
        "ROOT/system/boot/vmlinuz-6.1.0,ROOT/system/usr/lib/modules",
        "ROOT/system/boot/vmlinuz-6.1.0,ROOT/system/usr/lib/modules/6.1.0",
    ] {
        let found = located(root, text).unwrap();
        assert_eq!((found.release.as_str(), found.modules), ("6.1.0", Some(system.clone())), "{text}");
    }
    write(root, "image", image("6.6.6-nowhere"));
    assert_eq!(located(root, "ROOT/image").unwrap().modules, None);
}

#[test]
fn what_is_no_kernel_or_does_not_belong_together_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "build/include/config/kernel.release", "6.9.0\n");
    write(root, "bare/boot/vmlinuz-6.1.0", image("6.1.0"));
    write(root, "other/boot/vmlinuz-6.1.0", image("6.1.0"));
    write(root, "other/lib/modules/6.1.1/x.ko", "");
    write(root, "two/boot/vmlinuz-6.1.0", image("6.1.0"));
    write(root, "two/boot/vmlinuz-6.1.1", image("6.1.1"));
    write(root, "text", "#!/bin/sh\n");
    write(root, "vmlinux", b"\x7fELF");
    write(root, "cut", &image("6.1.0")[..0x240]);
    fs::create_dir(root.join("empty")).unwrap();
    for line in include_str!("refusals.txt").lines() {
        let (text, error) = line.split_once('\t').unwrap();
        assert_eq!(located(root, text).unwrap_err(), error);
    }
    write(root, "bad.deb", "not a package");
    let error = located(root, "ROOT/bad.deb").unwrap_err();
    assert!(error.starts_with("unpacking ROOT/bad.deb: "), "{error}");
    assert_eq!(error.lines().count(), 1);
    assert!(fs::read_dir(root.join("cache/kernels")).unwrap().next().is_none(), "nothing half-made stays");
}

#[test]
fn only_stock_kernels_of_the_version_are_taken() {
    let version = |name: &'static str| stock_version(name, "6.1");
    assert_eq!(version("6.1.0-56-amd64"), Some("6.1.0-56"));
    assert_eq!(version("6.1.0-0.deb11.6-amd64"), Some("6.1.0-0.deb11.6"));
    for other in [
        "6.1.0-56-cloud-amd64",
        "6.1.0-56-rt-amd64",
        "6.1.0-56-amd64-unsigned",
        "6.1.0-56-amd64-dbg",
        "6.1-amd64",
        "6.12.111+deb12-amd64",
        "6.1.0-56-arm64",
    ] {
        assert_eq!(version(other), None, "{other}");
    }
    assert_eq!(stock_version("6.12.111+deb12-amd64", "6.12.111+deb12"), Some("6.12.111+deb12"));
    assert_eq!(stock_version("6.12-amd64", "6.12"), None);
    let names = ["linux-image-6.1.0-9-amd64_2", "linux-image-6.1.0-56-amd64_1.9", "linux-image-6.1.0-56-amd64_1.10"];
    let names = names.map(str::to_owned);
    assert_eq!(newest(&names, "6.1").as_deref(), Some("linux-image-6.1.0-56-amd64_1.10"));
    assert_eq!(newest(&names, "6.12"), None);
}
