//! Checks of jobs with engine `net`, in fio's words where it has some.

use super::Complaint;
use crate::plan::draft::Draft;
use crate::plan::job::{Access, EngineKind, JobPlan, NetProtocol, Order, Phase};
use std::net::Ipv4Addr;

/// Bytes of the payload.
const LONGEST_DATAGRAM: u64 = 65_507;

/// Takes the host from `filename`, as fio does.
pub(super) fn host_of_file(job: &mut JobPlan) {
    if job.engine == EngineKind::Net
        && job.net.host.is_none()
        && let [file] = job.target.files.as_slice()
    {
        job.net.host = Some(file.clone());
    }
}

/// What contradicts the protocol, or is missing.
pub(super) fn complaint(draft: &Draft) -> Option<Complaint> {
    let job = &draft.job;
    if job.engine != EngineKind::Net {
        return None;
    }
    let net = &job.net;
    let refused = |option: &'static str, why: &str| Some((option, why.to_owned()));
    if !matches!(job.access, Access::Read | Access::Write) {
        return refused(
            "rw",
            "a job with ioengine=net receives or sends; use rw=read, rw=write, or pingpong=1 for both",
        );
    }
    if job.order != Order::Sequential {
        return refused("rw", "a network has no places, so its I/O is not random; use rw=read or rw=write");
    }
    if net.protocol == NetProtocol::Unix {
        if net.port > 0 {
            return refused("port", "a Unix socket has a path, but no port; leave port out, and give hostname=PATH");
        }
        if net.host.is_none() {
            return refused(
                "hostname",
                "protocol=unix needs the path of its socket; add it, for example hostname=/tmp/net.sock",
            );
        }
        if job.copies > 1 {
            return refused(
                "numjobs",
                "copies would listen at the same path; use a job with a path of its own for each",
            );
        }
    } else if net.port == 0 {
        return refused("port", "ioengine=net needs a port for TCP or UDP; add one, for example port=8888");
    } else if u32::from(net.port).saturating_add(job.copies.max(1)) > 65_536 {
        return refused("port", "each copy has the next port, and there is none above 65535; use a smaller one");
    }
    if !net.protocol.is_tcp() && net.listens {
        return refused(
            "listen",
            "listen is for TCP; with other protocols the job that reads (rw=read) waits for the one that writes. Leave it out",
        );
    }
    let waits = net.waits(job.access);
    let group = net.host.as_deref().filter(|_| net.protocol == NetProtocol::Udp).filter(|host| is_group(host));
    if waits && net.protocol != NetProtocol::Unix && net.host.is_some() && group.is_none() {
        return refused(
            "hostname",
            "a job that waits for the other end has no hostname, unless it is a group of multicast over UDP; give it to the other job only",
        );
    }
    if !waits && net.host.is_none() {
        let forgotten = if job.access == Access::Read {
            "add one, or listen, which waits for a connection"
        } else {
            "add one, for example hostname=localhost"
        };
        return Some(("hostname", format!("ioengine=net needs a host to connect to; {forgotten}")));
    }
    if net.protocol.is_udp() && job.largest_block().0 > LONGEST_DATAGRAM {
        return refused("bs", "a datagram has at most 65507 bytes; use a smaller bs");
    }
    let syncs = [
        (job.fsync_every > 0, "fsync"),
        (job.fdatasync_every > 0, "fdatasync"),
        (job.end_fsync, "end_fsync"),
        (job.files.syncing.on_close, "fsync_on_close"),
        (job.files.syncing.range.is_some(), "sync_file_range"),
    ];
    syncs
        .into_iter()
        .find(|(given, _)| *given)
        .map(|(_, option)| (option, "a network has nothing to sync; leave it out".to_owned()))
}

/// Whether it is the address of a group of multicast.
fn is_group(host: &str) -> bool {
    host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_multicast())
}

/// As in fio, the clock of a job that waits begins when the other end is there: if that is a job of the phase, when that job begins.
pub(in super::super) fn begin_together(phase: &mut Phase) {
    let delays: Vec<_> = phase
        .jobs
        .iter()
        .filter(|job| job.engine == EngineKind::Net && !job.waits_for_other_end())
        .map(|job| (job.net.place(0), job.start_delay))
        .collect();
    for job in phase.jobs.iter_mut().filter(|job| job.waits_for_other_end()) {
        let place = job.net.place(0);
        let later = delays.iter().filter(|(of, _)| *of == place).map(|(_, delay)| *delay).max();
        job.start_delay = job.start_delay.max(later.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{Settings, parse};
    use crate::unit::Nanos;

    fn parsed(options: &str) -> Result<crate::plan::Plan, String> {
        let flags: Vec<String> =
            format!("--name=a --ioengine=net --size=1m {options}").split(' ').map(str::to_owned).collect();
        parse::flags(&flags, &Settings::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn wrong_use_is_refused_with_the_mend() {
        for (options, says) in [
            ("--rw=write --port=9", "add one, for example hostname=localhost"),
            ("--rw=read --port=9", "or listen, which waits"),
            ("--rw=write --hostname=h", "needs a port"),
            ("--rw=rw --hostname=h --port=9", "pingpong=1 for both"),
            ("--rw=randread --listen --port=9", "not random"),
            ("--rw=read --listen --port=9 --hostname=h", "give it to the other job only"),
            ("--rw=read --protocol=udp --listen --port=9", "listen is for TCP"),
            ("--rw=read --protocol=udp --hostname=h --port=9", "give it to the other job only"),
            ("--rw=write --protocol=unix --port=9 --hostname=p", "has a path, but no port"),
            ("--rw=write --protocol=unix", "needs the path"),
            ("--rw=read --protocol=unix --hostname=p --numjobs=2", "a path of its own"),
            ("--rw=write --protocol=vsock --hostname=h --port=9", "vsock"),
            ("--rw=write --protocol=udp --hostname=h --port=9 --bs=64k", "at most 65507"),
            ("--rw=write --hostname=h --port=65535 --numjobs=2", "none above 65535"),
            ("--rw=write --hostname=h --port=9 --end_fsync=1", "nothing to sync"),
            ("--rw=write --hostname=h --port=9 --fsync_on_close=1", "nothing to sync"),
            ("--rw=write --hostname=h --port=9 --sync_file_range=write:4", "nothing to sync"),
            ("--rw=write --hostname=239.1.1.1 --port=9 --protocol=udp --interface=eth0", "address of an interface"),
        ] {
            let why = parsed(options).unwrap_err();
            assert!(why.contains(says) && why.lines().count() == 1, "{options}: {why}");
        }
        for options in [
            "--rw=read --listen --port=9 --numjobs=2",
            "--rw=read --hostname=h --port=9",
            "--rw=read --protocol=udp --hostname=239.1.1.1 --port=9",
            "--rw=write --protocol=unix --filename=/tmp/s",
        ] {
            let plan = parsed(options).unwrap();
            assert!(plan.only_for_run().unwrap().contains("ioengine=net"), "{options}");
        }
    }

    #[test]
    fn the_clock_of_the_job_that_waits_begins_with_the_other_ones() {
        let text = "[global]\nioengine=net\nport=8888\nsize=1m\n[r]\nlisten\nrw=read\n[s]\nhostname=localhost\nstartdelay=1\nrw=write\n";
        let plan = parse::job_file("f", text, &Settings::default()).unwrap();
        assert_eq!(plan.phases[0].jobs.iter().map(|job| job.start_delay).collect::<Vec<_>>(), [Nanos::from_secs(1); 2]);
    }
}
