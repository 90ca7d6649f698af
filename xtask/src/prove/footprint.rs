//! A system call costs more after a caller that touched more: why the floor of a large generator is not all that it adds.

use super::bench::Bench;
use super::evidence::{self, Evidence};
use super::rounds;
use anyhow::Context;

/// Pages that the caller touches before each call, a line of each.
const PAGES: [u32; 6] = [0, 4, 16, 64, 256, 1024];
/// From so many on it is to be seen.
const MANY: u32 = 64;

pub fn prove(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("footprint", 16)?;
    let found = bench.in_rounds(
        &PAGES,
        |_| 0,
        |pages| format!("{pages} pages"),
        |bench, pages| {
            let (path, seconds, pages) = (file.display(), bench.options.seconds, pages);
            let words = bench.load(&["cold-pread", &path.to_string(), &seconds.to_string(), &pages.to_string()]);
            let (program, arguments) = words.split_first().context("no load")?;
            let said = bench.output(bench.command(program).args(arguments))?;
            said.trim().parse::<f64>().context("the load says something else")
        },
    )?;
    let least = found.first().context("nothing was measured")?;
    let mut evidence = Evidence::default();
    let mut rows = Vec::new();
    for (pages, calls) in PAGES.iter().zip(&found) {
        let more = rounds::mean(&rounds::differences(calls, least));
        let cycles = evidence::number(Some(rounds::mean(calls).value), 0);
        rows.push(vec![pages.to_string(), cycles, evidence::interval(&more, 0)]);
        if *pages == MANY {
            let text = format!("after {MANY} pages a call takes {} cycles more", evidence::interval(&more, 0));
            evidence.criterion(more.low.is_some_and(|low| low > 0.0), text);
        }
    }
    evidence.note(
        "Cycles of a pread of 4 KiB from the page cache, its caller's work not counted, after a caller that touched one line of so \
         many pages of its own. Means over rounds.",
    );
    evidence.table(&["pages touched before", "cycles of a call", "more than after none"], &rows);
    Ok(evidence)
}
