//! Samples of a busy thread, and the buffer and the records that carry them.

use super::*;
use crate::schedule::{allowed_cpus, pin_to, thread_id};
use std::time::{Duration, Instant};

/// Keeps the calling thread's CPU busy; any task may run on it.
fn spin(length: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < length {
        std::hint::spin_loop();
    }
}

/// `None` if this user may not sample, after checking that the error suggests a fix.
fn sampler(period_nanos: u64, pages: usize) -> Option<StackSampler> {
    let cpu = allowed_cpus().unwrap()[0];
    pin_to(&[cpu]).unwrap();
    match StackSampler::open_with_ring(cpu, period_nanos, NonZeroUsize::new(pages).unwrap()) {
        Ok(sampler) => Some(sampler),
        Err(error) => {
            assert!(error.to_string().contains("perf"), "{error}");
            None
        }
    }
}

/// Samples, and how many were lost.
fn counted(sampler: &mut StackSampler) -> (u64, u64) {
    let (mut samples, mut lost) = (0, 0);
    sampler.take();
    sampler.events(|event| match event {
        SampleEvent::Sample(_) => samples += 1,
        SampleEvent::Lost(count) => lost += count,
        _ => {}
    });
    (samples, lost)
}

#[test]
fn a_busy_second_is_sampled_as_a_second() {
    let Some(mut sampler) = sampler(DEFAULT_PERIOD_NANOS, 8192) else { return };
    one_of_ten(|| {
        let begin = Instant::now();
        sampler.enable().unwrap();
        spin(Duration::from_millis(500));
        sampler.disable().unwrap();
        let wall = begin.elapsed().as_nanos() as f64;
        let sampled = (counted(&mut sampler).0 * DEFAULT_PERIOD_NANOS) as f64;
        ((sampled / wall - 1.0).abs() < 0.1).then_some(()).ok_or(format!("{sampled} of {wall}"))
    });
    assert_eq!(counted(&mut sampler), (0, 0));
}

#[test]
fn samples_of_this_thread_have_its_stack_and_registers() {
    let Some(mut sampler) = sampler(100_000, 2048) else { return };
    sampler.enable().unwrap();
    spin(Duration::from_millis(5));
    sampler.disable().unwrap();
    let marker = 0u8;
    let here = std::ptr::from_ref(&marker).addr() as u64;
    let (own, mut seen) = (thread_id().unsigned_abs(), 0);
    sampler.take();
    sampler.events(|event| {
        if let SampleEvent::Sample(sample) = event
            && sample.thread == own
        {
            let registers = sample.registers.unwrap();
            assert!(here.abs_diff(registers.stack) < 1 << 16, "{here:x} {registers:x?}");
            assert!(sample.stack.len() > 1000, "{}", sample.stack.len());
            seen += 1;
        }
    });
    assert!(seen > 0);
}

#[test]
fn samples_dropped_by_a_full_buffer_are_counted_and_the_ring_wraps() {
    const PERIOD_NANOS: u64 = 200_000;
    let Some(mut sampler) = sampler(PERIOD_NANOS, 32) else { return };
    one_of_ten(|| {
        let begin = Instant::now();
        sampler.enable().unwrap();
        let drained = [60, 5, 17, 17, 17].map(|length_millis| {
            spin(Duration::from_millis(length_millis));
            counted(&mut sampler)
        });
        sampler.disable().unwrap();
        let drained = drained.into_iter().chain([counted(&mut sampler)]);
        let (all, lost) = drained.fold((0, 0), |(all, lost), (more, gone)| (all + more + gone, lost + gone));
        let expected = begin.elapsed().as_nanos() as u64 / PERIOD_NANOS;
        let most = all * 10 > expected * 9 && all <= expected + 1;
        (lost > expected / 10 && most).then_some(()).ok_or(format!("{all} with {lost} lost of {expected}"))
    });
}

/// Samples are late or lost while the hypervisor takes the CPU away, so one success in ten attempts suffices.
fn one_of_ten(mut attempt: impl FnMut() -> Result<(), String>) {
    let wrong: Vec<String> = (0..10).map_while(|_| attempt().err()).collect();
    assert!(wrong.len() < 10, "{wrong:?}");
}

/// Widest gap between the phases at which `samples` samples hit a timer, as a multiple of an even gap.
fn widest_gap(period_nanos: u64, timer_nanos: u64, samples: u64) -> f64 {
    let mut phases: Vec<u64> = (0..samples).map(|i| i * period_nanos % timer_nanos).collect();
    phases.sort_unstable();
    phases.push(timer_nanos + phases[0]);
    let widest = phases.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    (widest * samples) as f64 / timer_nanos as f64
}

#[test]
fn samples_spread_over_the_phases_of_common_timers_within_one_slice() {
    const SAMPLES_OF_50_MS: u64 = 36;
    for timer_millis in [1, 4, 10] {
        let gap = widest_gap(DEFAULT_PERIOD_NANOS, timer_millis * 1_000_000, SAMPLES_OF_50_MS);
        assert!(gap < 2.5, "{timer_millis} ms: {gap}");
    }
    assert!(widest_gap(1_003_009, 1_000_000, 50) > 40.0, "997 Hz, for comparison");
}

#[test]
fn bytes_that_wrap_around_are_two_pieces() {
    assert_eq!(pieces(0, 24, 64), [0..24, 0..0]);
    assert_eq!(pieces(48, 80, 64), [48..64, 0..16]);
    assert_eq!(pieces(64, 128, 64), [0..64, 0..0]);
    assert_eq!(pieces(100, 100, 64), [36..36, 0..0]);
}

#[test]
fn positions_may_wrap_and_invalid_ones_stay_inside_the_ring() {
    assert_eq!(pieces(u64::MAX - 7, 8, 64), [56..64, 0..8]);
    assert_eq!(pieces(0, 1 << 40, 64), [0..64, 0..0]);
}

fn record(kind: u32, misc: u16, words: &[u64], tail: &[u8]) -> Vec<u8> {
    let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    body.extend_from_slice(tail);
    let size = u16::try_from(HEADER_SIZE + body.len()).unwrap();
    [&kind.to_ne_bytes()[..], &misc.to_ne_bytes()[..], &size.to_ne_bytes()[..], &body].concat()
}

fn events(bytes: &[u8]) -> Vec<SampleEvent<'_>> {
    let mut events = Vec::new();
    read(bytes, |event| events.push(event));
    events
}

const IDS: u64 = 8 << 32 | 7;

#[test]
fn a_sample_has_its_chain_registers_and_the_filled_part_of_its_stack() {
    let user_context = (-512i64).cast_unsigned();
    let words = [IDS, 5, CONTEXT_KERNEL, 100, 90, user_context, 40, 2, 1, 2, 3, 16, 11, 22, 8];
    let bytes = record(RECORD_SAMPLE, 1, &words, &[]);
    let [SampleEvent::Sample(sample)] = &events(&bytes)[..] else { panic!() };
    assert_eq!((sample.process, sample.thread), (7, 8));
    assert_eq!(sample.kernel, [100, 90]);
    assert_eq!(sample.registers, Some(registers([1, 2, 3])));
    assert_eq!(sample.stack, 11u64.to_ne_bytes());
}

#[test]
fn a_thread_of_the_kernel_has_no_registers() {
    let bytes = record(RECORD_SAMPLE, 1, &[IDS, 2, CONTEXT_KERNEL, 100, 0, 0], &[]);
    let [SampleEvent::Sample(sample)] = &events(&bytes)[..] else { panic!() };
    assert_eq!((sample.registers, sample.stack, sample.kernel.as_slice()), (None, &[][..], &[100][..]));
}

#[test]
fn mappings_names_processes_and_losses_are_read_and_other_records_skipped() {
    let bytes = [
        record(RECORD_MMAP2, 2, &[IDS, 4096, 8192, 512, 0, 99, 0, 5], b"/bin/true\0\0"),
        record(RECORD_COMM, MISC_COMM_EXEC, &[IDS], b"true\0\0\0\0"),
        record(RECORD_FORK, 0, &[3 << 32 | 7, 0, 0], &[]),
        record(RECORD_LOST, 0, &[1, 40], &[]),
        record(5, 0, &[0; 3], &[]),
    ]
    .concat();
    let mapped = Mapped { process: 7, begin: 4096, length: 8192, offset: 512, inode: 99, path: b"/bin/true" };
    let named = Named { process: 7, thread: 8, name: b"true", executed: true };
    let forked = Forked { process: 7, parent: 3 };
    let expected =
        [SampleEvent::Mapped(mapped), SampleEvent::Named(named), SampleEvent::Forked(forked), SampleEvent::Lost(40)];
    assert_eq!(events(&bytes), expected);
}

#[test]
fn truncated_and_invalid_records_are_left_out() {
    let whole = record(RECORD_LOST, 0, &[1, 40], &[]);
    let torn = [&whole[..], &whole[..20]].concat();
    assert_eq!(events(&torn).len(), 1);
    assert_eq!(events(&[0; 64]), []);
    assert_eq!(events(&record(RECORD_SAMPLE, 1, &[IDS, u64::MAX, 3], &[])), []);
    assert_eq!(events(&record(RECORD_SAMPLE, 1, &[IDS, 0, 0, u64::MAX], &[])), []);
    assert_eq!(events(&record(RECORD_MMAP2, 1, &[IDS], &[])), []);
}
