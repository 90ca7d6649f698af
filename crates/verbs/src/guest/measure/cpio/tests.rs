//! Archives read back.

use super::*;

/// An entry as it is read back: path, mode, inode, device, content.
#[derive(Debug, PartialEq, Eq)]
struct Unpacked {
    path: String,
    mode: u32,
    inode: u32,
    device: (u32, u32),
    content: Vec<u8>,
}

/// A reader written from the format's description.
fn read(archive: &[u8]) -> Vec<Unpacked> {
    let mut entries = Vec::new();
    let mut at = 0;
    loop {
        assert_eq!(at % 4, 0);
        assert_eq!(&archive[at..at + 6], b"070701");
        let field = |index: usize| {
            let digits = &archive[at + 6 + 8 * index..at + 14 + 8 * index];
            u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()
        };
        let (size, name) = (field(6) as usize, field(11) as usize);
        let path = String::from_utf8(archive[at + 110..at + 110 + name - 1].to_vec()).unwrap();
        assert_eq!(archive[at + 110 + name - 1], 0);
        let begin = (at + 110 + name).next_multiple_of(4);
        let content = archive[begin..begin + size].to_vec();
        assert_eq!([field(2), field(3), field(5)], [0, 0, 0], "owner, group and time");
        if path == TRAILER {
            assert_eq!(begin, archive.len());
            return entries;
        }
        entries.push(Unpacked { path, mode: field(1), inode: field(0), device: (field(9), field(10)), content });
        at = (begin + size).next_multiple_of(4);
    }
}

fn sample(host: &std::path::Path) -> Initramfs {
    let mut archive = Initramfs::default();
    archive.file("/init", Content::Host(host.to_owned()), 0o755);
    archive.file("/lib/x86_64-linux-gnu/libc.so.6", Content::Bytes(b"library".to_vec()), 0o644);
    archive.file("/lib64/ld-linux-x86-64.so.2", Content::Bytes(b"loads".to_vec()), 0o755);
    archive.directory("/proc");
    archive.symlink("/var/run", "../run");
    archive.file("/usr/lib/x/../../../run/./lock", Content::Bytes(Vec::new()), 0o600);
    archive.character_device("/dev/console", 5, 1);
    archive
}

#[test]
fn an_archive_reads_back_in_order_and_libraries_are_below_usr() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host");
    std::fs::write(&host, "12345").unwrap();
    let entries = read(&sample(&host).bytes().unwrap());
    std::fs::remove_file(&host).unwrap();
    assert!(sample(&host).bytes().unwrap_err().to_string().contains("host: cannot be read"));
    let shown: Vec<_> = entries.iter().map(|entry| (entry.path.as_str(), entry.mode, entry.content.len())).collect();
    assert_eq!(
        shown,
        [
            ("bin", 0o120_777, 7),
            ("dev", 0o040_755, 0),
            ("dev/console", 0o020_600, 0),
            ("init", 0o100_755, 5),
            ("lib", 0o120_777, 7),
            ("lib64", 0o120_777, 9),
            ("proc", 0o040_755, 0),
            ("run", 0o040_755, 0),
            ("run/lock", 0o100_600, 0),
            ("sbin", 0o120_777, 8),
            ("usr", 0o040_755, 0),
            ("usr/bin", 0o040_755, 0),
            ("usr/lib", 0o040_755, 0),
            ("usr/lib/x86_64-linux-gnu", 0o040_755, 0),
            ("usr/lib/x86_64-linux-gnu/libc.so.6", 0o100_644, 7),
            ("usr/lib64", 0o040_755, 0),
            ("usr/lib64/ld-linux-x86-64.so.2", 0o100_755, 5),
            ("usr/sbin", 0o040_755, 0),
            ("var", 0o040_755, 0),
            ("var/run", 0o120_777, 6),
        ]
    );
    assert!(entries.iter().zip(1..).all(|(entry, number)| entry.inode == number));
    assert_eq!(entries[2].device, (5, 1));
    assert_eq!(entries[3].content, b"12345");
}
