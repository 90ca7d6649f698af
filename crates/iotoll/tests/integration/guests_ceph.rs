//! The kernel's rbd in guests, with a Ceph cluster in each: what is counted, what proves the path, and how each failure is told.

use super::guests::{CACHE, guest, ready};
use super::iotoll::{Folder, Iotoll, at_once, number, whole};
use super::machine::{has, skip, tool};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const RBD: &str =
    "--kernel debian:6.1 --replicates 1 --quiet --stack rbd --direct=1 --size=1m --bs=64k --number_ios=20";

/// Two executions in a guest of 600 MiB take half a minute, so `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn rbd_is_counted_exactly_and_proven_by_messages() {
        let Some(folder) = ready() else { return };
        let words = format!(
            "run {RBD} --no-save --format json --stack rbd-v2 --sweep rw=write,read --sweep mount=,queue_depth=16 --by-function"
        );
        let Some(()) = prepared(&folder, &["rbd", "rbd-v2"]) else { return };
        let first = guest(&folder, &words, &[]).run().found();
        assert_eq!(first["points"], guest(&folder, &words, &[]).run().json()["points"]);
        let points = first["points"].as_array().unwrap();
        assert_eq!(points.len(), 8);
        for point in points {
            let proof = &point["path_proof"];
            let of = |key: &str| whole(&proof[key]);
            assert_eq!((of("block_ios"), of("osd_ops")), (20, 20), "{proof}");
            assert!(of("osd_messages_received") >= 20 && of("osd_messages_sent") >= 20, "{proof}");
            assert!(of("loopback_bytes") > 20 * (64 << 10), "{proof}");
            let functions = point["functions"].as_array().unwrap();
            assert!(functions.iter().any(|function| function["module"] == "libceph"), "libceph has functions");
            assert!(functions.iter().any(|function| function["program"] == "ceph-osd"), "the OSD is counted");
            assert!(number(&point["instructions_per_io"]["value"]) > 100_000.0);
        }
    }

    #[test]
    fn what_fails_in_the_cluster_is_told_in_one_line() {
        let Some(folder) = ready().filter(|_| has("cc")) else { return };
        let Some(()) = prepared(&folder, &["rbd"]) else { return };
        let failing = |name: &str, text: &str| with_osd(&folder, name, text);
        let run = |more: &str| guest(&folder, &format!("run {RBD} --no-save {more}"), &[]);
        let dies = "fputs(\"osd: nothing works\\n\", stderr); return 28;";
        let waits = "fputs(\"osd: waiting\\n\", stderr); pause();";
        let cases: [(Iotoll, &[&str]); 4] = [
            (failing("dies", dies), &["`ceph-osd` has ended (exit status: 28): osd: nothing works"]),
            (
                failing("waits", waits),
                &["the pool 'rbd' does not become active", "120 s", "ceph-osd says: osd: waiting"],
            ),
            (run("--rw=read --mount no_such"), &["no_such", "the kernel says: "]),
            // Memory becomes short while it measures: the kernel ends the OSD.
            (run("--rw=write --size=64m --sysctl vm.min_free_kbytes=300000"), &["`ceph-osd` has ended (signal: 9"]),
        ];
        at_once(cases, |(command, named)| command.run().refused(1, named));
        without_package(&folder);
        folder.assert_no_processes();
    }

    /// Boots the guests of these stacks, one at a time: it takes half a minute each. `None` if the machine cannot have them.
    fn prepared(folder: &Folder, stacks: &[&str]) -> Option<()> {
        for stack in stacks {
            let words = RBD.replace("--stack rbd", &format!("--stack {stack}"));
            let ended = guest(folder, &format!("run {words} --rw=read --no-save"), &[]).run();
            if ended.code != Some(0) && ["looking up", "downloading"].iter().any(|reason| ended.stderr.contains(reason))
            {
                skip(ended.stderr.trim());
                return None;
            }
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        }
        Some(())
    }

    /// A run whose cache has another program as OSD: after `--mkfs` it does what `text` says.
    fn with_osd(folder: &Folder, name: &str, text: &str) -> Iotoll {
        let cache = folder.path(name);
        let programs = cache.join("iotoll/programs");
        fs::create_dir_all(&programs).unwrap();
        symlink(Path::new(CACHE).join("iotoll/kernels"), cache.join("iotoll/kernels")).unwrap();
        for entry in fs::read_dir(Path::new(CACHE).join("iotoll/programs")).unwrap().flatten() {
            let (place, is_osd) =
                (programs.join(entry.file_name()), entry.file_name().to_string_lossy().starts_with("ceph-osd_"));
            if !is_osd {
                symlink(entry.path(), place).unwrap();
                continue;
            }
            fs::create_dir_all(place.join("usr/bin")).unwrap();
            let source = folder.path(&format!("{name}.c"));
            let main = format!(
                "#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\nint main(int n, char **words) {{\n\
                 while (n-- > 1) if (!strcmp(words[n], \"--mkfs\")) return 0;\n{text}\nreturn 0; }}\n"
            );
            fs::write(&source, main).unwrap();
            tool("cc", &["-o", place.join("usr/bin/ceph-osd").to_str().unwrap(), source.to_str().unwrap()]).unwrap();
        }
        let cache = format!("XDG_CACHE_HOME={}", cache.display());
        guest(folder, &format!("run {RBD} --rw=read --no-save"), &[&cache])
    }

    /// A package that apt does not have.
    fn without_package(folder: &Folder) {
        let cache = folder.path("bare");
        fs::create_dir_all(cache.join("iotoll")).unwrap();
        symlink(Path::new(CACHE).join("iotoll/kernels"), cache.join("iotoll/kernels")).unwrap();
        fs::create_dir(folder.path("bin")).unwrap();
        folder.write("bin/apt-get", "#!/bin/sh\necho \"E: Unable to locate package $3\" >&2\nexit 100\n");
        fs::set_permissions(folder.path("bin/apt-get"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("PATH={}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap());
        let cache = format!("XDG_CACHE_HOME={}", cache.display());
        let command = guest(folder, &format!("run {RBD} --rw=read --no-save"), &[&cache, &path]);
        command.run().refused(2, &["a guest needs", "Unable to locate package", "run `apt-get update`"]);
    }
}
