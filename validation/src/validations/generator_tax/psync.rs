//! psync from the page cache compared with the minimum of any program: pread in a loop.

use super::cached::File;
use crate::bench::evidence::{self, Evidence, rate};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::{Bench, read_through};
use crate::bench::{fio, rounds};
use anyhow::Context;

/// Largest slowdown relative to the bare loop.
const TAX: f64 = 0.03;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generator {
    /// A loop around the C library's function.
    Bare,
    Iotoll,
    Fio,
}

impl Generator {
    const ALL: [Self; 3] = [Self::Bare, Self::Iotoll, Self::Fio];
}

pub fn validate(bench: &mut Bench, files: &[File], evidence: &mut Evidence) -> anyhow::Result<()> {
    let with = |place: usize| Generator::ALL.iter().map(move |generator| (place, *generator));
    let cells: Vec<(usize, Generator)> = (0..files.len()).flat_map(with).collect();
    let found = bench.in_rounds(
        &cells,
        |(place, _)| *place,
        |(place, generator)| format!("psync, file {}, {generator:?}", place + 1),
        |bench, (place, generator)| measure(bench, files.get(*place).context("no such file")?, *generator),
    )?;
    let mut rows = Vec::new();
    for (file, values) in files.iter().zip(found.chunks(Generator::ALL.len())) {
        let [bare, ours, fio] = values else { continue };
        let size = format!("{} MiB", file.mebibytes);
        let ratio = rounds::ratio(ours, bare);
        rows.push(
            [
                vec![size.clone()],
                [bare, ours, fio].map(|values| rate(rounds::mean(values).value)).to_vec(),
                [&ratio, &rounds::ratio(ours, fio)].map(|ratio| evidence::interval(ratio, 3)).to_vec(),
            ]
            .concat(),
        );
        let text = format!(
            "psync, {size}: {} of a bare pread loop's IOPS, at least {:.2}",
            evidence::interval(&ratio, 3),
            1.0 - TAX
        );
        evidence.criterion(ratio.value >= 1.0 - TAX, text);
    }
    evidence.note(
        "4 KiB random reads from the page cache, one at a time: IOPS. The position of the system call instruction within its page changes \
         the cost of the call by up to a tenth, so a ratio of two programs applies to these two builds only.",
    );
    evidence.table(&["file", "bare pread loop", "iotoll psync", "fio psync", "iotoll ÷ bare", "iotoll ÷ fio"], &rows);
    Ok(())
}

fn measure(bench: &Bench, file: &File, generator: Generator) -> anyhow::Result<f64> {
    read_through(&file.path)?;
    let seconds = bench.options.seconds;
    let path = file.path.display().to_string();
    let (size, name) = (format!("--size={}m", file.mebibytes), format!("--filename={path}"));
    let job = fio::job("psync", seconds, &["--bs=4k", "--invalidate=0", &size, &name]);
    Ok(match generator {
        Generator::Bare => {
            let words = bench.load(&["bare-pread", &path, &seconds.to_string(), "4096", "cached"]);
            let (program, arguments) = words.split_first().context("an empty command")?;
            let output = bench.output(bench.command(program).args(arguments))?;
            output.trim().parse().context("the loop did not print its rate")?
        }
        Generator::Fio => fio::run(bench, &job)?.iops,
        Generator::Iotoll => iotoll::job(&iotoll::run(bench, &Measuring::LEAST, &job)?)?.iops,
    })
}
