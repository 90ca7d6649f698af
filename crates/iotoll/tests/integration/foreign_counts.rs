//! Sources of the counts of `iotoll cost`: the JSON of fio and iperf3, and the kernel's counters.

use super::iotoll::{Folder, Running, number, whole};
use super::machine::{LoopDevice, is_root, skip, skip_without_idle_time};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const FIO: &str = "fio --name=a --rw=randread --filename=f --readonly --runtime=300ms --time_based --ioengine=psync";

/// Another user could not write to a file of ours.
#[test]
fn fio_is_counted_as_any_user() {
    if !is_root() {
        return skip("only root can become another user");
    }
    let folder = Folder::temporary();
    folder.write("f", vec![0x5a; 1 << 20]);
    for name in ["..", "."] {
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let file = folder.path("f");
    let reads = Command::new("runuser").args(["-u", "nobody", "--", "test", "-r"]).arg(&file).status();
    if !reads.is_ok_and(|status| status.success()) {
        return skip("nobody may not read temporary files");
    }
    for starter in ["runuser -u nobody --", "setpriv --reuid nobody --clear-groups"] {
        let finding = folder.measured(&format!("cost --no-output -- {starter} {FIO}"));
        assert!(whole(&finding["phases"][0]["ios"]) > 0, "{starter}: {finding}");
    }
}

/// A server of iperf3, and its port.
fn iperf3(folder: &Folder) -> (Running, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = folder.command(&format!("iperf3 -s -B 127.0.0.1 -p {port}")).start();
    (server.when(|_| TcpStream::connect(("127.0.0.1", port)).is_ok()), port)
}

/// `./check` runs them one at a time.
mod alone {
    use super::*;

    #[test]
    fn iperf3_counts_for_itself() {
        let folder = Folder::new();
        let (server, port) = iperf3(&folder);
        let client = format!("iperf3 -c 127.0.0.1 -p {port} -t 1");
        let tcp = folder.costed(&format!("cost -- {client} -l 64k"));
        let phase = &tcp["phases"][0];
        assert!(whole(&phase["bytes"]) > 1 << 20, "{phase}");
        assert_eq!(whole(&phase["ios"]), whole(&phase["bytes"]) / 65_536);
        let both = folder.measured(&format!("cost -- {client} -l 64k --bidir"));
        let job = &both["jobs"][0];
        assert!(whole(&job["read"]["bytes"]) > 1 << 20 && whole(&job["write"]["bytes"]) > 1 << 20, "{job}");
        if !skip_without_idle_time(&tcp) {
            assert!(number(&phase["cycles_per_io_gross"]) > 0.0 && phase["cycles_per_byte"].is_number(), "{phase}");
        }
        let udp = &folder.measured(&format!("cost -- {client} -u -b 10m -l 1000"))["phases"][0];
        assert_eq!(whole(&udp["bytes"]), whole(&udp["ios"]) * 1000, "{udp}");
        drop(server);
        let ended =
            folder.iotoll(&format!("cost --background 200ms --no-save --quiet --format json -- {client}")).run();
        let why = ended.json()["outcome"]["failed"].to_string();
        assert!(ended.code == Some(1) && why.contains("iperf3") && why.contains("refused"), "{ended:?}");
    }
}

#[test]
fn the_kernel_counts_packets() {
    let folder = Folder::new();
    let (_server, port) = iperf3(&folder);
    let options = format!("cost --no-output --count net:lo -- iperf3 -c 127.0.0.1 -p {port} -t 1");
    let finding = folder.measured(&options);
    let (phase, job) = (&finding["phases"][0], &finding["jobs"][0]);
    assert!(whole(&phase["ios"]) > 100 && whole(&phase["bytes"]) > 1 << 20, "{phase}");
    assert_eq!((job["name"].as_str(), job["engine"].as_str()), (Some("net:lo"), Some("counter")));
    assert!(finding["counted_by"].as_str().is_some_and(|words| words.contains("net:lo")), "{}", finding["counted_by"]);
}

#[test]
fn the_kernel_counts_blocks() {
    let folder = Folder::with_file("image", 8 << 20);
    let Some(device) = LoopDevice::attach(&folder.path("image"), &[]) else { return };
    let options =
        format!("--count block:{} -- dd if={} of=/dev/null bs=64k iflag=direct count=64", device.name(), device.path);
    let finding = folder
        .iotoll(&format!("cost --background 200ms --no-save --quiet --no-output --format json {options}"))
        .run()
        .done();
    let phase = &finding.json()["phases"][0];
    assert!(whole(&phase["ios"]) >= 64 && whole(&phase["bytes"]) >= 4 << 20, "{phase}");
}
