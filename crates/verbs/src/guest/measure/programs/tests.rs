//! Programs of this host, and of fabricated packages.

#![cfg(target_arch = "x86_64")]

use super::*;

fn copy(from: &Path, root: &Path, to: &str) {
    let to = root.join(to.trim_start_matches('/'));
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
}

#[test]
fn a_program_of_the_host_comes_with_its_loader_and_libraries() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path()).unwrap();
    let program = Program { name: "sh", package: "dash" };
    let opened = Program { name: "/bin/true", package: "coreutils" };
    let placed = gather(&[program, program, opened], &["libc6".to_owned()], &cache, &mut |_| {}).unwrap();
    assert!(["/init", "/usr/bin/sh", "/bin/true"].iter().all(|path| placed.contains_key(*path)), "{placed:?}");
    assert!(placed.keys().any(|path| path.ends_with("/libc.so.6")), "{placed:?}");
    assert!(placed.keys().any(|path| path.contains("/ld-")), "{placed:?}");
    assert!(placed.values().all(|file| file.is_file()));
}

#[test]
fn what_the_host_lacks_comes_from_unpacked_packages() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(&folder.path().join("cache")).unwrap();
    let host = folder.path().join("host");
    let nothing = &mut |_| {};
    let mut gathering = Gathering::new(Path::new("/"), &cache, nothing);
    gathering.file("/usr/bin/sh", &below(Path::new("/"), "/bin/sh").unwrap(), None).unwrap();
    let shell = gathering.placed;
    let packages = ["prog_1%3a2.0_amd64", "prog_1%3a10.0_amd64"].map(|name| cache.entry(Part::PROGRAMS, name));
    let library = cache.entry(Part::PROGRAMS, "libany_1_amd64");
    for (guest_path, host_path) in &shell {
        if guest_path == "/usr/bin/sh" {
            packages.iter().for_each(|package| copy(host_path, package, "/usr/sbin/prog.real"));
        } else {
            copy(host_path, if guest_path.contains("/ld-") { &host } else { &library }, guest_path);
        }
    }
    for package in &packages {
        std::os::unix::fs::symlink("/usr/sbin/prog.real", package.join("usr/sbin/prog")).unwrap();
    }
    let nothing = &mut |_| {};
    let mut gathering = Gathering::new(&host, &cache, nothing);
    gathering.program(&Program { name: "prog", package: "prog" }).unwrap();
    let placed = gathering.placed;
    assert_eq!(placed.len(), shell.len());
    assert_eq!(placed["/usr/sbin/prog"], packages[1].join("usr/sbin/prog.real"), "the newer package");
    let with = |folder: &Path| placed.values().filter(|file| file.starts_with(folder)).count();
    assert!(with(&library) > 0);
    assert_eq!(with(&library) + with(&host) + 1, placed.len());
}

#[test]
fn what_is_found_nowhere_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(&folder.path().join("cache")).unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "#!/bin/sh\n").unwrap();
    let nothing = &mut |_| {};
    let mut gathering = Gathering::new(&folder.path().join("host"), &cache, nothing);
    let error = gathering.file("/usr/bin/text", &text, None).unwrap_err().to_string();
    assert_eq!(error, format!("{}: is not a program or library for x86-64 (ELF)", text.display()));
    let error = gathering.file("/usr/bin/sh", Path::new("/bin/sh"), None).unwrap_err().to_string();
    assert!(error.starts_with("/bin/sh: its loader /lib"), "{error}");
    let missing = Program { name: "no-such-program", package: "no-such-package" };
    let error = gather(&[missing], &[], &cache, &mut |_| {}).unwrap_err().to_string();
    assert!(error.starts_with("a guest needs `no-such-program`: looking up the Debian package"), "{error}");
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn packages_are_named_after_their_libraries() {
    for (package, library) in [
        ("libtirpc3", "libtirpc.so.3"),
        ("libtirpc3t64", "libtirpc.so.3"),
        ("libnl-3-200", "libnl-3.so.200"),
        ("libgssapi-krb5-2", "libgssapi_krb5.so.2"),
        ("libkrb5-3", "libkrb5.so.3"),
        ("libevent-core-2.1-7", "libevent_core-2.1.so.7"),
        ("libdevmapper1.02.1", "libdevmapper.so.1.02.1"),
        ("libsnappy1v5", "libsnappy.so.1"),
        ("libboost-thread1.74.0", "libboost_thread.so.1.74.0"),
    ] {
        assert!(alike(package, library), "{package} {library}");
    }
    assert!(!alike("libtirpc3", "libtirpc-common.so.3"));
    assert!(!alike("libtirpc-common", "libtirpc.so.3"));
}
