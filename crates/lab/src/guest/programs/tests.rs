//! Programs of this host, and of fabricated packages.

#![cfg(target_arch = "x86_64")]

use super::*;

fn paths(placed: &[Placed]) -> Vec<&str> {
    placed.iter().map(|placed| placed.guest_path.as_str()).collect()
}

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
    let opened = Opened { path: "/bin/true", package: "coreutils" };
    let wanted = Wanted { programs: &[program, program], opened: &[opened], library_packages: &["libc6"] };
    let placed = gather(wanted, &cache, &mut |_| {}).unwrap();
    let paths = paths(&placed);
    assert!(paths.contains(&"/usr/bin/sh") && paths.contains(&"/bin/true"), "{paths:?}");
    assert!(paths.iter().any(|path| path.ends_with("/libc.so.6")), "{paths:?}");
    assert!(paths.iter().any(|path| path.contains("/ld-")), "{paths:?}");
    assert!(placed.iter().all(|placed| placed.host_path.is_file()));
    assert_eq!(BTreeSet::from_iter(&paths).len(), paths.len(), "one file at each path");
}

#[test]
fn what_the_host_lacks_comes_from_unpacked_packages() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(&folder.path().join("cache")).unwrap();
    let host = folder.path().join("host");
    let shell = closure_of(&below(Path::new("/"), "/bin/sh").unwrap(), "/usr/bin/sh", &cache).unwrap();
    let packages = ["prog_1%3a2.0_amd64", "prog_1%3a10.0_amd64"].map(|name| cache.entry(Part::Programs, name));
    let library = cache.entry(Part::Programs, "libany_1_amd64");
    for Placed { guest_path, host_path } in &shell {
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
    let placed: Vec<_> = gathering.placed.into_iter().collect();
    assert_eq!(placed.len(), shell.len());
    let program = placed.iter().find(|placed| placed.guest_path == "/usr/sbin/prog").unwrap();
    assert_eq!(program.host_path, packages[1].join("usr/sbin/prog.real"), "the newer package");
    let with = |folder: &Path| placed.iter().filter(|placed| placed.host_path.starts_with(folder)).count();
    assert!(with(&library) > 0);
    assert_eq!(with(&library) + with(&host) + 1, placed.len());
}

#[test]
fn what_is_found_nowhere_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(&folder.path().join("cache")).unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "#!/bin/sh\n").unwrap();
    let error = closure_of(&text, "/usr/bin/text", &cache).unwrap_err().to_string();
    assert_eq!(error, format!("{}: is not a program or library for x86-64 (ELF)", text.display()));
    let nothing = &mut |_| {};
    let mut gathering = Gathering::new(&folder.path().join("host"), &cache, nothing);
    let error = gathering.file("/usr/bin/sh", Path::new("/bin/sh"), None).unwrap_err().to_string();
    assert!(error.starts_with("/bin/sh: its loader /lib"), "{error}");
    let missing = Program { name: "no-such-program", package: "no-such-package" };
    let wanted = Wanted { programs: &[missing], opened: &[], library_packages: &[] };
    let error = gather(wanted, &cache, &mut |_| {}).unwrap_err().to_string();
    assert!(error.starts_with("a guest needs `no-such-program`: looking up the Debian package"), "{error}");
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn a_program_with_debug_information_is_stripped_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(&folder.path().join("cache")).unwrap();
    let this = std::env::current_exe().unwrap();
    let bytes = fs::read(&this).unwrap();
    if !elf::has_debug_information(&bytes) || Command::new("strip").arg("--version").output().is_err() {
        return;
    }
    let program = folder.path().join("program");
    fs::copy(&this, &program).unwrap();
    let copied = stripped(&program, &bytes, &cache);
    assert!(copied.starts_with(cache.folder()));
    let small = fs::read(&copied).unwrap();
    assert!(small.len() < bytes.len());
    assert!(!elf::has_debug_information(&small));
    assert_eq!(elf::linking(&small), elf::linking(&bytes));
    assert_eq!(stripped(&program, &bytes, &cache), copied);
    fs::copy(&this, &program).unwrap();
    assert_ne!(stripped(&program, &bytes, &cache), copied, "the program has changed");
    assert_eq!(cache.names(Part::Programs).len(), 1);
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
