//! A run in the formats of fio: its JSON, and its lines of fields between semicolons (terse, version 3).

use crate::json;
use model::finding::RunFinding;
use model::fio_report::{Bins, Directions, FioDirection, FioJob, FioReport, Ordered, Spread};

/// fio's JSON.
pub fn json(run: &RunFinding, bins: Bins) -> String {
    json::json(&FioReport::of(run, bins, time))
}

/// A line for each job.
pub fn terse(run: &RunFinding) -> String {
    FioReport::of(run, Bins::Without, time).jobs.iter().map(|job| line(job) + "\n").collect()
}

/// Percentiles in a line; the places of missing ones are filled.
const PERCENTILES: usize = 20;
/// Fields of the distribution of queue depths, which iotoll does not measure.
const DEPTHS: usize = 7;

fn line(job: &FioJob) -> String {
    // A name must not begin another field or line.
    let name: String =
        job.jobname.chars().map(|letter| if letter.is_control() || letter == ';' { '_' } else { letter }).collect();
    let mut fields = vec!["3".to_owned(), "fio-3.33".to_owned(), name, job.groupid.to_string(), job.error.to_string()];
    let none = FioDirection::default();
    // A sum stands in the place of reads.
    let [first, second] = match &job.directions {
        Directions::Each { read, write, .. } => [&**read, &**write],
        Directions::Sum { mixed } => [&**mixed, &none],
    };
    fields.extend(direction(first));
    fields.extend(direction(second));
    fields.extend([format!("{:.6}%", job.usr_cpu), format!("{:.6}%", job.sys_cpu)]);
    fields.extend([job.ctx, job.majf, job.minf].map(|count| count.to_string()));
    fields.extend(std::iter::repeat_n("0.0%".to_owned(), DEPTHS));
    // Below a microsecond counts as below two.
    let nanos: f64 = shares(&job.latency_ns).sum();
    let micros =
        shares(&job.latency_us).enumerate().map(|(place, share)| if place == 0 { share + nanos } else { share });
    fields.extend(micros.chain(shares(&job.latency_ms)).map(|share| format!("{share:.2}%")));
    fields.join(";")
}

fn shares(of: &Ordered<f64>) -> impl Iterator<Item = f64> {
    of.0.iter().map(|(_, share)| *share)
}

fn direction(of: &FioDirection) -> Vec<String> {
    let mut fields = [of.io_kbytes, of.bw, of.iops.trunc() as u64, of.runtime].map(|value| value.to_string()).to_vec();
    fields.extend(spread(&of.slat_ns));
    fields.extend(spread(&of.clat_ns));
    let percentiles = of.clat_ns.percentile.iter().flat_map(|percentile| &percentile.0);
    let told = percentiles.map(|(percent, nanos)| format!("{percent}%={}", nanos / 1000));
    fields.extend(told.chain(std::iter::repeat("0%=0".to_owned())).take(PERCENTILES));
    fields.extend(spread(&of.lat_ns));
    fields.extend([of.bw_min, of.bw_max].map(|value| value.to_string()));
    fields.push(format!("{:.6}%", of.bw_agg));
    fields.extend([of.bw_mean, of.bw_dev].map(|value| format!("{value:.6}")));
    fields
}

/// Least, largest, mean and deviation, in microseconds.
fn spread(of: &Spread) -> [String; 4] {
    let exact = |nanos: f64| format!("{:.6}", nanos / 1e3);
    [(of.min / 1000).to_string(), (of.max / 1000).to_string(), exact(of.mean), exact(of.stddev)]
}

/// "Fri Nov 27 10:59:54 2026", in UTC; empty for a time that is none.
fn time(seconds: f64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = crate::phrase::time(seconds).unwrap_or_default();
    let parts: Vec<&str> = text.split(['-', ' ']).collect();
    let [year, month, day, clock, ..] = parts.as_slice() else { return String::new() };
    let month = month.parse::<usize>().ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
    let since = DAYS.get((seconds / 86_400.0) as usize % DAYS.len());
    let (Some(month), Some(weekday)) = (month, since) else { return String::new() };
    format!("{weekday} {month} {:>2} {clock} {year}", day.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_as_ctime_writes_it() {
        assert_eq!(time(1_795_777_194.8), "Fri Nov 27 10:59:54 2026");
        assert_eq!(time(0.0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(time(f64::NAN), "");
    }
}
