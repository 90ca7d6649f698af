//! `iotoll blast`: submitters send small packets to one receiver, which counts what arrives.
//!
//! Enters: a [`BlastPlan`]; leaves: a [`BlastRecord`], written round by round. In each round every point (a method with a
//! number of submitters) has one slice, in random order, and so has the machine without packets.

mod drop_counters;
mod receiver;
mod remote;
mod shared_socket;
mod submitters;

pub use receiver::serve;

use crate::blast::plan::Point;
use crate::blast::record::{Counted, Delivery, End, Header, Receiver, Round, add};
use crate::blast::{BlastPlan, BlastRecord};
use drop_counters::DropCounters;
use jobs::workload::permutation::Shuffler;
use lab::created::Created;
use lab::error::{Error, Result};
use lab::meter::{MeterSet, Owners};
use lab::progress::{Observer, Progress};
use lab::session::{Session, Settings, outcome_of};
use model::experiment::Cell;
use model::explained::FEWEST_ROUNDS;
use model::kind::Recorded;
use model::meter::Meter;
use model::record::{Mode, Outcome};
use model::slice::{RoundRecord, SliceReading, SliceRecord, SliceWork};
use model::unit::{Bytes, Nanos};
use receiver::{CountingReceiver, Counts};
use remote::RemoteReceiver;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use submitters::Submitters;
use sys::clock::monotonic_nanos;
use sys::schedule::{Class, within_class};

/// Shortest time over which the time-stamp counter is calibrated.
const CALIBRATION: Duration = Duration::from_millis(50);
/// The machine without packets is measured for a part of a slice, at least this long.
const SHORTEST_BACKGROUND: Duration = Duration::from_millis(200);
/// Longest time that packets are waited for after the last was sent.
const LONGEST_DRAIN: Duration = Duration::from_secs(30);
/// Rounds that keep accounts, and as many for each set of events, within a quarter of the time of the others: at least as many as an interval
/// needs, and at most as many as their slices are cut for. An interval needs many rounds rather than long ones.
const EXPLAINING_ROUNDS: RangeInclusive<u32> = 5..=8;
/// Shortest slice of them.
const SHORTEST_EXPLAINING: Duration = Duration::from_millis(50);
/// Packets are over if none arrived for this time.
const QUIET: Duration = Duration::from_millis(60);

/// A plan of packets. The background of the settings is unused, because each round has its own; the CPUs are those of the plan.
pub struct Packets<'a> {
    pub plan: &'a BlastPlan,
    /// Address of the receiver; `None` if iotoll starts one on loopback.
    pub target: Option<SocketAddr>,
}

impl Packets<'_> {
    pub fn measure(&self, settings: Settings, created: &Created, observer: Observer) -> Result<BlastRecord> {
        let plan = self.plan;
        let wanted = plan.submitter_cpus.iter().chain(plan.task_cpus.iter().flatten()).chain(&plan.receiver_cpu);
        let allowed_cpus = refuse_cpus(wanted)?;
        refuse_memory(plan)?;
        let session = Session::open(&settings, &[], &mut |service| observer(Progress::Starting { service }))?;
        let mut measured = measure(self, &session, allowed_cpus, observer);
        session.close_with_end(measured.as_mut().map(|(_, end)| end), created, |end| &mut end.outcome);
        measured.map(|(record, end)| BlastRecord { end: Some(end), ..record })
    }
}

fn measure(asked: &Packets, session: &Session, allowed_cpus: usize, observer: Observer) -> Result<(BlastRecord, End)> {
    let &Packets { plan, target } = asked;
    let begun = Instant::now();
    let meters = session.meters_of_rounds()?.counting(session.settings.events.as_deref())?;
    let receiving = receiver(plan, target)?;
    let (same_machine, same_network, receive_buffer) = receiving.about();
    session.calibration.wait(CALIBRATION);
    let header = Header {
        envelope: session.envelope(BlastRecord::KIND),
        plan: plan.clone(),
        host: session.host(Vec::new()),
        meters: meters.statuses.clone(),
        probes: meters.probes.descriptors(),
        events: meters.events().cloned(),
        receiver: Receiver { address: receiving.address().to_string(), same_machine, same_network, receive_buffer },
        allowed_cpus: Some(allowed_cpus),
        services: session.services.started.clone(),
    };
    session.settings.saver.begin(&header.envelope, &header)?;
    // So that the end of a slice does not wait behind the submitters; they have ordinary priority. Without the permission it
    // comes later, and its time stamps show it.
    let real_time = within_class(Class::RealTime);
    let mut measurement =
        Measurement { plan, session, meters, receiving, shuffler: Shuffler::new(plan.seed), observer };
    let first = Instant::now();
    let (rounds, outcome) = measurement.rounds();
    let mut explaining = Vec::new();
    let outcome = outcome.and_then(|()| measurement.explain(rounds.len(), first.elapsed(), &mut explaining));
    drop((measurement, real_time));
    if rounds.is_empty() {
        return Err(match outcome {
            Ok(()) => Error::Interrupted("before the end of the first round".to_owned()),
            Err(error) => error,
        });
    }
    let outcome = match outcome {
        Err(error) => outcome_of(&error),
        Ok(()) if session.interrupted() => Outcome::Interrupted,
        Ok(()) => Outcome::Completed,
    };
    let nanos = Nanos::from(begun.elapsed());
    let end = End { outcome, tsc_hertz: session.clock().0, nanos, warnings: Vec::new() };
    Ok((BlastRecord { header, rounds, explaining, end: None }, end))
}

/// Which targets are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// Loopback, link-local and private addresses.
    Near,
    /// All: the user says that the target is theirs.
    Any,
}

/// Finds the address of a host.
///
/// # Errors
/// Refused when it has none, or is beyond what is allowed.
pub fn resolve(host: &str, port: u16, allowed: Allowed) -> Result<SocketAddr> {
    let found = (host, port).to_socket_addrs().map(|mut addresses| addresses.next());
    let address = match found {
        Ok(Some(address)) => address,
        Ok(None) => return Err(Error::Refused(format!("'{host}': the name has no address; give an IP address"))),
        Err(error) => {
            return Err(Error::Refused(format!(
                "'{host}': cannot be resolved ({error}); give a host name or an IP address"
            )));
        }
    };
    if allowed == Allowed::Near && !is_near(address.ip()) {
        return Err(Error::Refused(format!(
            "{}: is a public address, and a flood of packets disrupts hosts and networks that do not expect it; if both are yours, \
             add --target-is-mine",
            address.ip()
        )));
    }
    Ok(address)
}

/// Loopback, link-local or private (RFC 1918, RFC 4193), whose packets no router passes to the internet.
fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local() || address.is_unique_local(),
    }
}

/// Refuses CPUs on which this process may not run. Returns how many it may use.
fn refuse_cpus<'a>(mut cpus: impl Iterator<Item = &'a u32>) -> Result<usize> {
    let allowed = sys::schedule::allowed_cpus().map_err(|error| Error::instrument("listing CPUs", error))?;
    match cpus.find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => Err(Error::Refused(format!("CPU {cpu}: iotoll may not run on it here; see taskset -cp $$"))),
        None => Ok(allowed.len()),
    }
}

/// Refuses batches that would fill the memory.
fn refuse_memory(plan: &BlastPlan) -> Result<()> {
    /// Most bytes of payload that the submitters prepare at a time.
    const MOST: u64 = 1 << 30;
    let of =
        |point: &Point| u64::from(plan.batch_of(point.method)) * u64::from(plan.payload) * u64::from(point.submitters);
    match plan.points().iter().map(of).max().filter(|bytes| *bytes > MOST) {
        Some(bytes) => Err(Error::Refused(format!(
            "{} MiB of payload in the submitters' batches are more than 1024 MiB; use a smaller --payload, --batch or --submitters",
            bytes >> 20
        ))),
        None => Ok(()),
    }
}

/// The receiver: iotoll's own in this process, or another one.
trait Receiving {
    fn address(&self) -> SocketAddr;

    /// New submitters begin.
    fn begin(&self) -> Result<Counts>;

    fn counts(&self) -> Result<Counts>;

    /// Its thread, if it is one of this process.
    fn thread(&self) -> Option<u32> {
        None
    }

    /// Whether it runs on this machine, in this network, and its receive buffer.
    fn about(&self) -> (bool, bool, Option<u32>);

    /// Counters of drops at both ends; those of one network only once.
    fn drops(&self) -> Result<DropCounters> {
        Ok(DropCounters::read())
    }
}

fn receiver(plan: &BlastPlan, target: Option<SocketAddr>) -> Result<Box<dyn Receiving>> {
    let loopback = SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0));
    Ok(match target {
        Some(target) => Box::new(RemoteReceiver::connect(target)?),
        None => Box::new(CountingReceiver::bind(loopback, plan.receiver_cpu, plan.receive_buffer)?),
    })
}

struct Measurement<'a> {
    plan: &'a BlastPlan,
    session: &'a Session<'a>,
    meters: MeterSet,
    receiving: Box<dyn Receiving>,
    shuffler: Shuffler,
    observer: Observer<'a>,
}

impl Measurement<'_> {
    /// Measures all rounds. Returns the complete ones, and what ended them early.
    fn rounds(&mut self) -> (Vec<Round>, Result<()>) {
        /// A machine whose CPUs change more often has no cost.
        const MOST_REPEATED: usize = 3;
        let (mut rounds, mut repeated) = (Vec::new(), 0);
        while rounds.len() < self.plan.rounds as usize {
            match self.round(rounds.len(), self.plan.slice.duration()) {
                Ok(Some(_)) if repeated < MOST_REPEATED && self.meters.cpus_changed() => repeated += 1,
                Ok(Some(round)) => match self.session.settings.saver.append_unsynced("round", &round) {
                    Ok(()) => rounds.push(round),
                    Err(error) => return (rounds, Err(error)),
                },
                Ok(None) => break,
                Err(error) => return (rounds, Err(error)),
            }
        }
        (rounds, Ok(()))
    }

    /// Measures shorter rounds whose slices keep accounts or count events, in turn, after `rounds` others that took the time `took`. An error
    /// ends them early.
    fn explain(&mut self, rounds: usize, took: Duration, explaining: &mut Vec<RoundRecord>) -> Result<()> {
        const TIME_SHARE: u32 = 4;
        let accounts = self.meters.can_explain(Meter::Accounts).then_some(Mode::Alone(Meter::Accounts));
        let turns: Vec<Mode> = accounts.into_iter().chain(self.meters.modes_of_events()).collect();
        let in_all = |each: u32| (each as usize).saturating_mul(turns.len());
        let (fewest, most) = (in_all(*EXPLAINING_ROUNDS.start()), in_all(*EXPLAINING_ROUNDS.end()));
        let measured = self.plan.slice.duration().mul_f64(rounds as f64) / TIME_SHARE;
        let slice = measured.div_f64(most.max(1) as f64).max(SHORTEST_EXPLAINING).min(self.plan.slice.duration());
        let begun = Instant::now();
        let is_enough = |done: usize| {
            let is_late = done >= fewest && begun.elapsed() > took / TIME_SHARE;
            rounds < FEWEST_ROUNDS || is_late || done >= most
        };
        for turn in turns.iter().cycle() {
            if is_enough(explaining.len()) || !self.meters.explain(*turn) {
                break;
            }
            let round = self.round(rounds, slice);
            self.meters.stop_explaining();
            let Some(Round { slices, .. }) = round? else { break };
            self.session.settings.saver.append_unsynced("explaining", &slices)?;
            explaining.push(slices);
        }
        Ok(())
    }

    /// One round with slices of this length; `None` if it was interrupted.
    fn round(&mut self, number: usize, length: Duration) -> Result<Option<Round>> {
        if self.session.interrupted() {
            return Ok(None);
        }
        self.session.around.prepare(&Cell::default())?;
        let points = self.plan.points();
        let begin_nanos = Nanos(monotonic_nanos());
        let (mut slices, mut deliveries) = (Vec::new(), Vec::new());
        for turn in self.shuffler.shuffled((0..points.len()).map(Some).chain([None])) {
            let measured = match turn.and_then(|place| Some((place, *points.get(place)?))) {
                None => self.background(length).map(|slice| (slice, None)),
                Some((place, point)) => {
                    let (slice, delivery) = self.slice(place, point, length)?;
                    if let (false, SliceReading::Slice { work, .. }) = (self.session.interrupted(), &slice.reading) {
                        let delivered_per_second = work.ios as f64 / work.wall_nanos.seconds().max(1e-9);
                        let rounds = u32::try_from(number).unwrap_or(u32::MAX);
                        let of = self.plan.rounds;
                        let point = &format!("{} × {}", point.submitters, point.way());
                        (self.observer)(Progress::Packets { rounds, of, point, delivered_per_second });
                    }
                    Some((slice, Some(delivery)))
                }
            };
            let Some((slice, delivery)) = measured.filter(|_| !self.session.interrupted()) else { return Ok(None) };
            slices.push(slice);
            deliveries.extend(delivery);
        }
        let end_nanos = Nanos(monotonic_nanos());
        Ok(Some(Round { slices: RoundRecord { begin_nanos, end_nanos, slices, ..RoundRecord::default() }, deliveries }))
    }

    /// The machine without packets; `None` if it was interrupted.
    fn background(&mut self, slice: Duration) -> Option<SliceRecord> {
        let length = (slice / 2).max(SHORTEST_BACKGROUND);
        self.session.settings.interruption.sleep(self.plan.warm_up.duration());
        let before = Box::new(self.meters.begin_slice());
        self.session.settings.interruption.sleep(length);
        let after = Box::new(self.meters.end_slice(self.owners(BTreeSet::new())));
        let reading = SliceReading::Slice { before, after, work: SliceWork::default(), tasks: None };
        (!self.session.interrupted()).then_some(SliceRecord { case: None, reading })
    }

    fn owners(&self, workers: BTreeSet<u32>) -> Owners {
        Owners { workers, servers: self.receiving.thread().into_iter().collect(), ..Owners::default() }
    }

    /// A slice of a point, and what became of all its packets.
    fn slice(&mut self, place: usize, point: Point, length: Duration) -> Result<(SliceRecord, Delivery)> {
        let (drops, counts) = (self.receiving.drops()?, self.receiving.begin()?);
        let submitters = Submitters::start(self.plan, point, self.receiving.address())?;
        submitters.go();
        self.session.settings.interruption.sleep(self.plan.warm_up.duration());
        let before = Box::new(self.meters.begin_slice());
        let first = Instantaneous::read(self.receiving.as_ref(), &submitters)?;
        self.session.settings.interruption.sleep(length);
        let owners = self.owners(submitters.threads());
        let after = Box::new(self.meters.end_slice(owners));
        let last = Instantaneous::read(self.receiving.as_ref(), &submitters)?;
        let (sent, failed) = submitters.end();
        let counted = self.drained(sent, &counts, &drops)?;
        let delivered = last.received.saturating_sub(first.received);
        let work = SliceWork {
            ios: delivered,
            bytes: Bytes(delivered.saturating_mul(self.plan.payload.into())),
            wall_nanos: last.at_nanos.since(first.at_nanos),
            thread_nanos: last.thread_nanos.since(first.thread_nanos),
            ..SliceWork::default()
        };
        let mut dropped = Vec::new();
        let in_socket = counted.dropped.wrapping_sub(counts.dropped);
        if in_socket > 0 {
            dropped.push(Counted { what: "receive buffer of the socket".to_owned(), count: in_socket.into() });
        }
        add(&mut dropped, &self.receiving.drops()?.since(&drops, sent));
        let delivery = Delivery {
            point: place,
            slice_sent: last.sent.saturating_sub(first.sent),
            slice_failed: last.failed.saturating_sub(first.failed),
            sent,
            failed,
            delivered: counted.received.saturating_sub(counts.received),
            reordered: counted.reordered.saturating_sub(counts.reordered),
            drops: dropped,
        };
        Ok((
            SliceRecord { case: Some(place), reading: SliceReading::Slice { before, after, work, tasks: None } },
            delivery,
        ))
    }

    /// Waits until every packet has arrived or was dropped, or none arrives any more. Returns the last counts.
    fn drained(&mut self, sent: u64, before: &Counts, drops: &DropCounters) -> Result<Counts> {
        let begun = Instant::now();
        let (mut latest, mut changed) = (self.receiving.counts()?, Instant::now());
        loop {
            let drops = self.receiving.drops()?.since(drops, sent);
            let arrived = latest.received.saturating_sub(before.received);
            let known = arrived.saturating_add(latest.dropped.wrapping_sub(before.dropped).into());
            let known = drops.iter().map(|drop| drop.count).fold(known, u64::saturating_add);
            if known >= sent || changed.elapsed() > QUIET || begun.elapsed() > LONGEST_DRAIN {
                return Ok(latest);
            }
            std::thread::sleep(Duration::from_millis(2));
            let counts = self.receiving.counts()?;
            if counts.received != latest.received {
                changed = Instant::now();
            }
            latest = counts;
        }
    }
}

/// What sender and receiver had counted at an end of a slice.
struct Instantaneous {
    at_nanos: Nanos,
    received: u64,
    sent: u64,
    failed: u64,
    thread_nanos: Nanos,
}

impl Instantaneous {
    fn read(receiving: &dyn Receiving, submitters: &Submitters) -> Result<Self> {
        let asked = monotonic_nanos();
        let received = receiving.counts()?.received;
        let answered = monotonic_nanos();
        let (sent, failed) = submitters.counts();
        // The receiver counted between question and answer.
        let at_nanos = Nanos(asked.midpoint(answered));
        Ok(Self { at_nanos, received, sent, failed, thread_nanos: submitters.thread_nanos() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_internet_is_refused_unless_the_user_owns_the_target() {
        for near in ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.1.1", "::1", "fe80::1", "fd00::1"] {
            assert_eq!(resolve(near, 9, Allowed::Near).unwrap().port(), 9, "{near}");
        }
        for far in
            ["8.8.8.8", "2001:4860::1", "172.32.0.1", "::ffff:8.8.8.8", "0.0.0.0", "255.255.255.255", "224.0.0.1"]
        {
            let error = resolve(far, 9, Allowed::Near).unwrap_err().to_string();
            assert!(error.contains("--target-is-mine"), "{error}");
            assert!(resolve(far, 9, Allowed::Any).is_ok());
        }
        assert!(
            resolve("no.such.host.invalid", 9, Allowed::Any).unwrap_err().to_string().contains("cannot be resolved")
        );
    }
}
