//! Zones under random jobs: no job does what a zoned device would refuse.

use super::*;
use crate::workload::permutation::{below, split_mix};
use crate::workload::request_source::{Kind, Request};
use model::unit::Bytes;

const BLOCK: u64 = 4096;
const ZONE: u64 = 4 * BLOCK;

fn file(zones: u64, most_open: u32) -> ZonedFile {
    ZonedFile {
        identity: (0, 0),
        size: ZONE,
        most_open,
        is_device: false,
        resetting: OnceLock::new(),
        state: Mutex::new(State { zones: device::emulated(zones * ZONE, ZONE, ZONE), ..State::default() }),
        freed: Condvar::new(),
    }
}

fn wish(job: u32, zones: u64) -> Wish {
    Wish {
        job,
        begin: 0,
        end: zones * ZONE,
        least: [BLOCK; 3],
        random: true,
        reads_beyond: false,
        keeps: false,
        job_max_open: 0,
        threshold: 0.0,
        frequency: 0.0,
        in_flight: false,
    }
}

fn request(kind: Kind, block: u64) -> Request {
    Request { kind, file: 0, offset: block * BLOCK, length: BLOCK as u32 }
}

/// Jobs with several I/Os in flight each, in an order of chance.
#[test]
fn jobs_of_one_file_write_each_zone_in_order_and_read_what_is_written() {
    const ZONES: u64 = 9;
    for seed in 0..60 {
        let state = &mut (seed + 1);
        let most_open = below(split_mix(state), 4) as u32;
        let file = file(ZONES, most_open);
        let mut pointers = [0; ZONES as usize];
        let jobs = 3;
        let mut inside: Vec<Vec<(Option<usize>, bool)>> = vec![Vec::new(); jobs];
        let mut held: Vec<Option<(Request, Option<usize>)>> = vec![None; jobs];
        let (mut issued, mut resets) = (0, 0);
        for _ in 0..4000 {
            let job = below(split_mix(state), jobs as u64) as usize;
            let complete = |inside: &mut Vec<(Option<usize>, bool)>| {
                for (zone, fills) in inside.drain(..) {
                    zone.into_iter().for_each(|zone| file.leave(zone, fills));
                }
            };
            if below(split_mix(state), 3) == 0 {
                complete(&mut inside[job]);
            }
            let (drawn, reserved) = held[job].take().unwrap_or_else(|| {
                let kind = if below(split_mix(state), 4) == 0 { Kind::Read } else { Kind::Write };
                (request(kind, below(split_mix(state), ZONES * 4)), None)
            });
            let wish = Wish {
                in_flight: !inside[job].is_empty(),
                job_max_open: most_open.min(2),
                frequency: if seed % 2 == 0 { 0.2 } else { 0.0 },
                threshold: (ZONES * ZONE / 2) as f64,
                ..wish(job as u32, ZONES)
            };
            let choice = match reserved {
                Some(zone) => file.write_after_reset(&wish, zone, &drawn),
                None => file.choose(&wish, &drawn),
            };
            match choice {
                Choice::Issue { request, zone, fills } => {
                    let at = (request.offset / ZONE) as usize;
                    let relative = request.offset % ZONE;
                    if request.kind == Kind::Write {
                        assert_eq!(relative, pointers[at], "{seed} {request:?}");
                        pointers[at] += u64::from(request.length);
                    } else {
                        assert!(relative + u64::from(request.length) <= pointers[at], "{seed} {request:?}");
                    }
                    inside[job].push((zone, fills));
                    issued += 1;
                }
                Choice::Reset(zone) => {
                    // The job holds it, so that no other one has anything in it.
                    complete(&mut inside[job]);
                    resets += file.reset(zone).unwrap();
                    pointers[zone] = 0;
                    held[job] = Some((drawn, Some(zone)));
                }
                Choice::Settle => {
                    assert!(!inside[job].is_empty());
                    complete(&mut inside[job]);
                    held[job] = Some((drawn, None));
                }
                // Another job has it; that one goes on.
                Choice::Wait => {
                    assert!(inside[job].is_empty());
                    held[job] = Some((drawn, None));
                }
                Choice::End => {
                    assert!(drawn.kind == Kind::Read && !file.has_data() || most_open > 0, "{seed} {drawn:?}")
                }
            }
            let open = file.state().open.len() as u32;
            assert!(most_open == 0 && open == 0 || open <= most_open, "{open} of {most_open}");
            if most_open > 0 {
                // By what was written, whatever is noted.
                let begun = pointers.iter().filter(|pointer| (1..ZONE).contains(*pointer)).count() as u32;
                assert!(begun <= most_open, "{begun} of {most_open}");
                let of_job = file.state().zones.iter().filter(|zone| zone.opened_by == Some(job as u32)).count() as u32;
                assert!(of_job <= most_open.min(2), "{of_job} of job {job}");
            }
        }
        assert!(issued > 1000 && resets > 20, "{seed}: {issued} {resets}");
    }
}

#[test]
fn a_job_that_reads_back_what_it_wrote_leaves_full_zones_alone() {
    let file = file(3, 0);
    let keeps = Wish { keeps: true, ..wish(0, 3) };
    let mut written = std::collections::BTreeSet::new();
    while let Choice::Issue { request, zone, fills } = file.choose(&keeps, &request(Kind::Write, 0)) {
        assert!(written.insert(request.offset));
        file.leave(zone.unwrap(), fills);
    }
    assert_eq!(written.len(), 12, "until there is no room");
    assert_eq!(file.begin_pass((0, 3 * ZONE), 0.0, true).unwrap(), 3);
    assert!(!file.has_data() && matches!(file.choose(&keeps, &request(Kind::Write, 0)), Choice::Issue { .. }));
}

#[test]
fn a_trim_empties_a_zone_and_a_random_one_looks_for_data() {
    let file = file(4, 0);
    let wish = wish(0, 4);
    let issue = |drawn: &Request| match file.choose(&wish, drawn) {
        Choice::Issue { request, zone, fills } => {
            zone.into_iter().for_each(|zone| file.leave(zone, fills));
            Some(request.offset / ZONE)
        }
        _ => None,
    };
    let trim = Request { length: ZONE as u32, ..request(Kind::Trim, 0) };
    assert_eq!(issue(&trim), None, "nothing is written");
    assert_eq!((issue(&request(Kind::Write, 8)), issue(&trim), issue(&trim)), (Some(2), Some(2), None));
    assert_eq!(file.trim(2 * ZONE).unwrap().unwrap(), 0, "no call for a file");
}

#[test]
fn sequential_order_goes_from_the_capacity_of_a_zone_to_the_next_and_skips_zones() {
    let file = file(4, 0);
    file.state().zones.iter_mut().for_each(|zone| zone.capacity_end -= BLOCK);
    let wish = Wish { random: false, ..wish(0, 4) };
    let mut places = vec![0];
    let mut passes = 0;
    while places.len() < 8 {
        let drawn = Request { offset: *places.last().unwrap(), ..request(Kind::Write, 0) };
        let choice = match file.choose(&wish, &drawn) {
            Choice::Reset(zone) => {
                assert_eq!(file.reset(zone).unwrap(), 1, "it was full");
                file.write_after_reset(&wish, zone, &drawn)
            }
            choice => choice,
        };
        let Choice::Issue { request, zone, fills } = choice else { panic!("{places:?}") };
        file.leave(zone.unwrap(), fills);
        places.push(file.following(&wish, &request, ZONE));
        passes += u32::from(places.last() == Some(&0));
    }
    let blocks: Vec<u64> = places.iter().map(|place| place / BLOCK).collect();
    assert_eq!((blocks.as_slice(), passes), ([0, 1, 2, 8, 9, 10, 0, 1].as_slice(), 1));
}

#[test]
fn a_region_is_rounded_to_whole_zones_and_what_a_file_cannot_do_is_named() {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&path, vec![0; 60 << 10]).unwrap();
    let mut plan = JobPlan { access: Access::Write, ..JobPlan::default() };
    (plan.requests.zones.device.on, plan.requests.zones.size) = (true, Bytes(ZONE));
    let fitted = |plan: &JobPlan, begin, length| {
        let mut span = Span { begin, length, beyond: 7 };
        fit(plan, &path, &mut span).map(|()| (span.begin, span.length)).map_err(|error| error.to_string())
    };
    assert_eq!(fitted(&plan, 1, 50 << 10), Ok((ZONE, 2 * ZONE)));
    assert!(fitted(&plan, 1, 30 << 10).unwrap_err().contains("no whole zone of 16384 bytes"));
    let read = JobPlan { access: Access::Read, ..plan.clone() };
    assert_eq!(fitted(&read, 1, 50 << 10), Ok((1, 50 << 10)));
    let of = |size: u64, most: u32| {
        let mut plan = plan.clone();
        (plan.requests.zones.size, plan.requests.zones.device.max_open) = (Bytes(size), most);
        let target =
            Target { path: path.to_path_buf(), span: Span { begin: 0, length: ZONE, beyond: 0 }, to_be_made: false };
        ZonedFile::of(&plan, &target).map(drop).map_err(|error| error.to_string())
    };
    assert!(of(0, 0).unwrap_err().contains("add zonesize="));
    assert!(of(1 << 20, 0).unwrap_err().contains("less than a zone"));
    assert_eq!((of(ZONE, 2), of(ZONE, 0), of(ZONE, 2)), (Ok(()), Ok(()), Ok(())));
    assert!(of(2 * ZONE, 2).unwrap_err().contains("for an earlier job"));
    assert!(of(ZONE, 3).unwrap_err().contains("one number for all jobs"));
}
