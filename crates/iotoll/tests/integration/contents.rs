//! What jobs write is as compressible, and as often the same, as what fio writes with the same options.

use super::iotoll::Folder;
use super::machine::needs;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

const BLOCK: usize = 4096;
const BLOCKS: usize = 512;

/// Options of a job; the size that zlib leaves, in percent of the blocks each by itself, and the unlike blocks, in percent of all. `None`
/// where fio's are others, deliberately.
struct Case(&'static str, Option<[u32; 2]>);

const CASES: &[Case] = &[
    Case("scramble_buffers=0", None),
    Case("refill_buffers", None),
    Case("zero_buffers", None),
    Case("refill_buffers\nzero_buffers", None),
    Case("buffer_pattern=\"iotoll\"", None),
    Case("buffer_compress_percentage=50", None),
    Case("buffer_compress_percentage=50\nbuffer_compress_chunk=0", None),
    Case("buffer_compress_percentage=30\nbuffer_compress_chunk=1000", None),
    Case("buffer_compress_percentage=100", None),
    Case("buffer_compress_percentage=50\nbuffer_pattern=0x55", None),
    Case("dedupe_percentage=50", None),
    Case("dedupe_percentage=80\nbuffer_compress_percentage=50", None),
    Case("verify=md5\ndo_verify=0\nbuffer_compress_percentage=50", None),
    // fio scrambles by default, which is measured.
    Case("bs=4k", Some([100, 0])),
];

/// Compresses each block by itself: the sum of the sizes, in percent.
fn compressed(file: &[u8]) -> u32 {
    let script = format!(
        "import sys,zlib\nd=sys.stdin.buffer.read()\n\
         print(round(100*sum(len(zlib.compress(d[i:i+{BLOCK}])) for i in range(0,len(d),{BLOCK}))/len(d)))"
    );
    let mut python = Command::new("python3");
    let mut python = python.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    python.stdin.take().unwrap().write_all(file).unwrap();
    String::from_utf8(python.wait_with_output().unwrap().stdout).unwrap().trim().parse().unwrap()
}

fn unlike(file: &[u8]) -> u32 {
    let blocks: BTreeSet<&[u8]> = file.chunks(BLOCK).collect();
    (blocks.len() * 100 / BLOCKS) as u32
}

#[test]
fn contents_are_like_those_of_fio() {
    needs!("fio", "python3");
    let job = |case: usize| format!("[j{case}]\nfilename=x{case}\n{}\n", CASES[case].0);
    let jobs: String = (0..CASES.len()).map(job).collect();
    let job = format!("[global]\nrw=write\nbs=4k\nsize={}\n{jobs}", BLOCK * BLOCKS);
    let (ours, fio) = (Folder::new(), Folder::new());
    ours.measured_job(&job);
    fio.write("job.fio", &job);
    fio.command("fio --output=fio.txt job.fio").run().done();
    for (case, Case(options, expected)) in CASES.iter().enumerate() {
        let of = |folder: &Folder| {
            let file = folder.read(&format!("x{case}"));
            assert_eq!(file.len(), BLOCK * BLOCKS);
            [compressed(&file), unlike(&file)]
        };
        let (found, expected) = (of(&ours), expected.unwrap_or_else(|| of(&fio)));
        // Chance decides which blocks repeat: six standard deviations of 512 draws are 13 %.
        let near = found[0].abs_diff(expected[0]) <= 2 && found[1].abs_diff(expected[1]) <= 13;
        assert!(near, "{options}: {found:?} % compressed and unlike, expected {expected:?}");
    }
}
