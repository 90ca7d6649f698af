//! Modules in fabricated folders.

use super::*;

/// An ELF file for x86-64 whose section `.modinfo` contains these pairs.
fn module(information: &[&str]) -> Vec<u8> {
    const NAMES: &[u8] = b"\0.modinfo\0.shstrtab\0";
    let information: Vec<u8> = information.iter().flat_map(|pair| pair.bytes().chain([0])).collect();
    let sections = 64 + information.len() + NAMES.len();
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // A relocatable file for x86-64, version 1.
    file.extend([1, 0, 62, 0, 1, 0, 0, 0]);
    file.resize(40, 0);
    file.extend((sections as u64).to_le_bytes());
    // Flags; sizes of the headers; no program header, three sections, the third with their names.
    file.extend([0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 64, 0, 3, 0, 2, 0]);
    file.extend(&information);
    file.extend(NAMES);
    let mut section = |name: u32, kind: u32, offset: usize, size: usize| {
        file.extend([name.to_le_bytes(), kind.to_le_bytes()].concat());
        for field in [0, 0, offset as u64, size as u64, 0, 0, 0] {
            file.extend(field.to_le_bytes());
        }
    };
    section(0, 0, 0, 0);
    // Section types: contents, strings.
    section(1, 1, 64, information.len());
    section(10, 3, 64 + information.len(), NAMES.len());
    file
}

fn write(root: &Path, path: &str, information: &[&str]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, module(information)).unwrap();
}

fn kernel(folder: &Path) -> Kernel {
    let modules = Some(folder.to_owned());
    Kernel { label: "test".into(), release: "6.1.0".into(), image: folder.join("image"), modules, replaced: vec![] }
}

/// Names of the closure, or the error with `ROOT` for the folder.
fn inserted(folder: &Path, names: &[&str]) -> std::result::Result<Vec<String>, String> {
    let modules =
        closure(&kernel(folder), names).map_err(|error| error.to_string().replace(folder.to_str().unwrap(), "ROOT"))?;
    Ok(modules.into_iter().map(|module| module.name).collect())
}

#[test]
fn modules_come_after_those_that_they_need() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "kernel/net/sunrpc.ko", &["name=sunrpc", "depends="]);
    write(root, "kernel/fs/nfs-core.ko", &["depends=sunrpc,built-in", "vermagic=6.1.0 SMP mod_unload"]);
    write(
        root,
        "kernel/fs/nfs_v4.ko",
        &["depends=nfs-core", "softdep=pre: crypto-crc32c gone md5 post: late-one", "softdep=pre: nfs-v4"],
    );
    write(root, "kernel/crypto/crc32c_generic.ko", &["depends="]);
    write(root, "kernel/crypto/md5.ko", &["depends="]);
    write(root, "kernel/fs/late_one.ko", &["depends=nfs_v4"]);
    fs::write(root.join("modules.builtin"), "kernel/lib/built_in.ko\nkernel/fs/ext4/ext4.ko\n").unwrap();
    assert_eq!(
        inserted(root, &["sunrpc", "nfs-v4", "ext4", "md5"]).unwrap(),
        ["sunrpc", "nfs_core", "crc32c_generic", "md5", "nfs_v4", "late_one"]
    );
    // A replacement has precedence.
    write(root, "updates/sunrpc.ko", &["depends=md5"]);
    assert_eq!(inserted(root, &["sunrpc"]).unwrap(), ["md5", "sunrpc"]);
}

#[test]
fn what_cannot_be_inserted_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "a.ko", &["depends=b"]);
    write(root, "old.ko", &["depends=", "vermagic=5.10.0 SMP"]);
    fs::write(root.join("text.ko"), "text").unwrap();
    fs::write(root.join("bad.ko.xz"), "not compressed").unwrap();
    for (name, error) in [
        ("zz", "kernel 'test' (6.1.0): module 'zz' is neither in ROOT nor built in; use a kernel that has it"),
        (
            "a",
            "kernel 'test' (6.1.0): module 'b', which 'a' needs, is neither in ROOT nor built in; use a kernel that has it",
        ),
        (
            "old",
            "ROOT/old.ko: the module is of release 5.10.0, but kernel 'test' is of release 6.1.0; give the folder of its own modules",
        ),
        ("text", "ROOT/text.ko: is not a kernel module for x86-64"),
    ] {
        assert_eq!(inserted(root, &[name]).unwrap_err(), error);
    }
    let error = inserted(root, &["bad"]).unwrap_err();
    assert!(error.starts_with("unpacking ROOT/bad.ko.xz: "), "{error}");
    let alone = Kernel { modules: None, ..kernel(root) };
    assert!(closure(&alone, &[]).unwrap().is_empty());
    assert!(closure(&alone, &["nfs"]).unwrap_err().to_string().contains("give VMLINUZ,MODULES_FOLDER"));
}

#[test]
fn compressed_modules_are_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let plain = module(&["depends="]);
    for program in ["gzip", "xz", "zstd"] {
        write(root, program, &["depends="]);
        // A host without the program cannot have such modules either.
        let Ok(packed) = Command::new(program).arg("-c").arg(root.join(program)).output() else { continue };
        let ending = ENDINGS.iter().find(|(_, by)| *by == Some(program)).unwrap().0;
        fs::write(root.join(format!("m{ending}")), packed.stdout).unwrap();
        assert_eq!(closure(&kernel(root), &["m"]).unwrap(), [Module { name: "m".into(), bytes: plain.clone() }]);
        fs::remove_file(root.join(format!("m{ending}"))).unwrap();
    }
}

#[test]
fn a_module_is_replaced_by_name_or_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let magic = "vermagic=6.1.0 SMP mod_unload";
    write(root, "kernel/net/lib-ceph.ko", &["name=lib_ceph", magic]);
    fs::write(root.join("modules.builtin"), "kernel/net/tcp.ko\n").unwrap();
    write(root, "own/6.1.0/a.ko", &["name=lib_ceph", magic]);
    write(root, "own/other.ko", &["name=lib_ceph", "vermagic=6.2.0 SMP mod_unload"]);
    write(root, "own/rbd.ko", &["name=rbd", magic]);
    fs::write(root.join("own/text.ko"), "text").unwrap();
    // Its own folder is not among the kernel's modules.
    let kernel = kernel(&root.join("kernel"));
    let said = |text: &str| {
        let read = replaced(&text.replace("ROOT", root.to_str().unwrap()), &kernel);
        let told = |read: Vec<Replaced>| read.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let text = read.map_or_else(|error| error.to_string(), told);
        text.replace(root.to_str().unwrap(), "ROOT")
    };
    fs::rename(root.join("modules.builtin"), root.join("kernel/modules.builtin")).unwrap();
    assert_eq!(said(""), "");
    assert_eq!(said("lib-ceph=ROOT/own/{release}/a.ko"), "lib_ceph=ROOT/own/6.1.0/a.ko");
    for (text, why) in [
        ("lib_ceph", "write NAME=FILE, such as libceph=./libceph.ko"),
        ("lib_ceph=ROOT/gone.ko", "ROOT/gone.ko: no such file; give the .ko that was built for 6.1.0"),
        ("lib_ceph=ROOT/own/rbd.ko", "the file is the module 'rbd'; write rbd=ROOT/own/rbd.ko"),
        ("rbd=ROOT/own/rbd.ko", "in kernel 'test' (6.1.0) the module 'rbd' does not exist; check its name"),
        (
            "lib_ceph=ROOT/own/other.ko",
            "its vermagic is '6.2.0 SMP mod_unload', and that of kernel 'test' is '6.1.0 SMP mod_unload'; build it with the \
             headers of 6.1.0",
        ),
    ] {
        assert_eq!(said(text), format!("module '{text}': {why}"));
    }
    assert_eq!(said("lib_ceph=ROOT/own/text.ko"), "ROOT/own/text.ko: is not a kernel module for x86-64");
    write(root, "own/tcp.ko", &["name=tcp", magic]);
    let built_in = said("tcp=ROOT/own/tcp.ko");
    assert!(built_in.contains("is built in, and cannot be replaced"), "{built_in}");
}
