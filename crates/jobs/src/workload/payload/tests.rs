//! Blocks are prepared as the options say, and wrong ones are found and named.

use super::*;
use crate::workload::target::{Span, Target};
use model::plan::{Content, Verify};
use std::collections::BTreeSet;
use std::path::PathBuf;

const BLOCK: u32 = 4096;

fn copy(plan: &JobPlan) -> JobCopy<'_> {
    let target = Target { path: PathBuf::from("x"), span: Span { begin: 0, length: 1 << 20, beyond: 0 } };
    JobCopy { plan, number: 0, targets: vec![target], replay: None }
}

fn payload(plan: &JobPlan) -> Option<Payload> {
    Payload::new(&copy(plan), Hertz(1e9))
}

fn writing(content: Content, method: Option<VerifyMethod>) -> JobPlan {
    let verify = Verify { method, ..Verify::default() };
    JobPlan { name: "a".to_owned(), access: Access::Write, content, verify, ..JobPlan::default() }
}

fn request(kind: Kind, block: u64) -> Request {
    Request { kind, file: 0, offset: block * u64::from(BLOCK), length: BLOCK }
}

/// The blocks that a job writes.
fn blocks(plan: &JobPlan, count: u64) -> Vec<Vec<u8>> {
    let mut payload = payload(plan).unwrap();
    let written = (0..count).map(|block| {
        let mut memory = vec![0; BLOCK as usize];
        payload.before_write(&request(Kind::Write, block), &mut memory);
        memory
    });
    written.collect()
}

#[test]
fn only_jobs_that_ask_for_it_have_a_payload() {
    let read = JobPlan { access: Access::Read, ..writing(Content { refill: true, ..Content::default() }, None) };
    assert!(payload(&read).is_none());
    for content in [
        Content::default(),
        Content { zero: true, refill: true, ..Content::default() },
        Content { pattern: Some(Pattern::try_from("12".to_owned()).unwrap()), ..Content::default() },
        Content { compress_percent: 100, ..Content::default() },
    ] {
        assert!(payload(&writing(content.clone(), None)).is_none(), "{content:?}");
    }
}

#[test]
fn buffers_are_filled_once_as_the_job_says() {
    let once = |content: Content| {
        let mut memory = vec![1; 8192];
        fill_once(&writing(content, None), &mut memory, 4096, |memory| memory.fill(9));
        memory
    };
    assert!(once(Content::default()).iter().all(|byte| *byte == 9));
    assert!(once(Content { zero: true, ..Content::default() }).iter().all(|byte| *byte == 0));
    assert!(once(Content { compress_percent: 100, ..Content::default() }).iter().all(|byte| *byte == 0));
    let pattern = Some(Pattern::try_from("\"abc\"".to_owned()).unwrap());
    let memory = once(Content { pattern, ..Content::default() });
    assert_eq!((&memory[..4], &memory[4096..4100]), (&b"abca"[..], &b"abca"[..]), "each slot begins with it");
}

#[test]
fn refilled_blocks_all_differ() {
    for content in
        [Content { refill: true, ..Content::default() }, Content { compress_percent: 50, ..Content::default() }]
    {
        let blocks = blocks(&writing(content.clone(), None), 50);
        assert!(blocks.iter().all(|block| block.iter().any(|byte| *byte != 0)));
        assert_eq!(blocks.iter().collect::<BTreeSet<_>>().len(), 50, "{content:?}");
    }
}

#[test]
fn a_wrong_block_is_counted_and_named() {
    let mut plan = writing(Content::default(), Some(VerifyMethod::Crc32c));
    let mut payload = payload(&plan).unwrap();
    let mut memory = vec![vec![0; BLOCK as usize]; 4];
    for (block, memory) in (0..).zip(&mut memory) {
        payload.before_write(&request(Kind::Write, block), memory);
    }
    let mut payload = payload.reading_back(false);
    memory[2][100] ^= 1;
    // The third write is lost: the block there is an older one, whose header is right.
    payload.expect([0, 1, 2, 4]);
    let results = [0, 1, 2, 3].map(|block| {
        let request = request(Kind::Read, block);
        let expected = payload.expectation(&request).unwrap();
        payload.after_read(&request, expected, BLOCK as i32, &memory[block as usize])
    });
    assert_eq!(results, [4096, 4096, WRONG, WRONG]);
    assert_eq!((payload.verified.ios, payload.verified.wrong), (4, 2));
    let complaint = payload.complaint().unwrap();
    let begin = "job 'a': verify: x: the block of 4096 bytes at offset 8192: the crc32c of its data is ";
    assert!(complaint.starts_with(begin), "{complaint}");
    assert!(complaint.ends_with("(2 of 4 blocks read back so far are wrong)"), "{complaint}");
    plan.access = Access::Read;
    let mut reader = super::Payload::new(&copy(&plan), Hertz(1e9)).unwrap();
    let expected = reader.expectation(&request(Kind::Read, 2)).unwrap();
    assert_eq!(reader.after_read(&request(Kind::Read, 2), expected, 4096, &memory[2]), WRONG);
    assert_eq!(reader.after_read(&request(Kind::Read, 3), expected, 4096, &memory[3]), 4096, "right in itself");
}

fn marks(method: VerifyMethod) -> Option<Marks> {
    let verify = Verify { method: Some(method), ..Verify::default() };
    Marks::new(&JobPlan { verify, ..JobPlan::default() }, 0)
}

#[test]
fn each_changed_byte_is_found() {
    let write = Write { seed: 9, number: 70_000, nanos: 5_000_000_007 };
    for (word, method) in VerifyMethod::words() {
        let Some(marks) = marks(method) else { continue };
        let mut memory: Vec<u8> = (0..2048_u32).map(|byte| (byte * 7) as u8).collect();
        marks.mark(&mut memory, 4096, write);
        let check = |memory: &[u8], expected| marks.check(memory, 4096, expected);
        assert_eq!(check(&memory, Some((9, 70_000))), Ok(()), "{word}");
        assert!(check(&memory, Some((9, 70_001))).unwrap_err().contains("number of the write"));
        assert!(check(&memory, Some((8, 70_000))).unwrap_err().contains("not of this run"));
        for at in (0..2048).step_by(37) {
            let mut wrong = memory.clone();
            wrong[at] ^= 4;
            assert!(check(&wrong, None).is_err(), "{word} {at}");
        }
    }
}

#[test]
fn what_is_wrong_is_said() {
    let of = |word: &str| marks(model::plan::options::choice(word).unwrap()).unwrap();
    let mut memory = vec![7; 512];
    assert_eq!(of("md5").check(&memory, 0, None).unwrap_err(), "has no header: it begins with 0x0707, expected 0xacca");
    of("md5").mark(&mut memory, 1024, Write { seed: 0, number: 0, nanos: 0 });
    let check = |word, offset| of(word).check(&memory, offset, None);
    assert_eq!(check("md5", 0).unwrap_err(), "the offset in the header is 1024, expected 0");
    assert_eq!(check("crc32", 1024).unwrap_err(), "was written with verify=md5");
    memory[300] = 8;
    let wrong = of("md5").check(&memory, 1024, None).unwrap_err();
    assert!(wrong.starts_with("the md5 of its data is ") && wrong.contains(", expected "), "{wrong}");
}
