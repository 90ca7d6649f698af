//! The default of each option.

/// A default.
pub(super) enum Unset {
    /// The same as this value.
    As(&'static str),
    /// A description; no value has the same meaning.
    Means(&'static str),
}

use Unset::{As, Means};

/// In the order of the options.
pub(super) const DEFAULTS: &[(&str, Unset)] = &[
    ("name", Means("the section's name; required as a flag")),
    ("description", Means("none")),
    ("ioengine", As("psync")),
    ("rw", As("read")),
    ("rwmixread", As("50")),
    ("rwmixwrite", As("50")),
    ("bs", As("4k")),
    ("size", Means("the size of the files")),
    ("io_size", Means("as size")),
    ("offset", As("0")),
    ("filename", Means("JOB.COPY.0, a file for each copy")),
    ("directory", Means("the current directory")),
    ("numjobs", As("1")),
    ("thread", As("1")),
    ("group_reporting", As("0")),
    ("stonewall", As("0")),
    ("startdelay", As("0")),
    ("iodepth", As("1")),
    ("iodepth_batch_submit", As("1")),
    ("iodepth_batch_complete_min", As("1")),
    ("iodepth_batch_complete_max", As("1")),
    ("fixedbufs", Means("the engine's default")),
    ("registerfiles", Means("the engine's default")),
    ("direct", As("0")),
    ("buffered", As("1")),
    ("invalidate", Means("1; in a comparison, `--cache` decides")),
    ("unlink", As("0")),
    ("fallocate", As("native")),
    ("runtime", As("0")),
    ("time_based", As("0")),
    ("ramp_time", As("0")),
    ("number_ios", Means("no limit")),
    ("loops", As("1")),
    ("fsync", As("0")),
    ("fdatasync", As("0")),
    ("end_fsync", As("0")),
    ("norandommap", As("0")),
    ("randrepeat", As("1")),
    ("randseed", Means("see randrepeat")),
    ("rate_iops", As("0")),
    ("thinktime", As("0")),
    ("cpus_allowed", Means("all CPUs")),
    ("percentile_list", Means("fio's: 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99")),
    ("spin_cycles", As("0")),
    ("work_steps", As("0")),
    ("mem_copy", As("rep-movsb")),
    ("mem_in_flight", As("none")),
    ("rr_peer", Means("required by engine rr")),
    ("rr_connect", As("0")),
    ("inject_ns", As("0")),
    ("inject_every", As("0")),
    ("inject_at", As("submit")),
    ("uri", Means("required by engine nbd")),
    ("path_send", As("pull-up:2048")),
    ("path_receive", As("copy:4096")),
    ("path_framing", As("one-go")),
    ("path_segment", As("whole")),
    ("path_max_payload", As("32m")),
    ("path_copy", As("rep-movsb")),
    ("path_crc", As("off")),
    ("path_in_flight", As("none")),
    ("path_null", As("none")),
    ("path_tx_queue", As("none")),
    ("tx_task_cpus", As("any")),
    ("submitters", As("64")),
    ("path_coalesce", As("500")),
    ("path_busy_poll", As("0")),
];

/// The default of an option, as a value or in words.
pub(super) fn of(name: &str) -> &'static str {
    let row = DEFAULTS.iter().find(|(option, _)| *option == name);
    row.map_or("", |(_, unset)| match unset {
        As(text) | Means(text) => text,
    })
}

#[cfg(test)]
mod tests {
    use super::super::all;
    use super::*;
    use crate::plan::draft::Draft;

    #[test]
    fn every_option_has_a_default_and_giving_it_changes_nothing() {
        let options: Vec<_> = all().map(|option| option.name).collect();
        assert_eq!(options, DEFAULTS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for (option, (_, unset)) in all().zip(DEFAULTS) {
            let As(value) = unset else { continue };
            let mut draft = Draft::default();
            assert_eq!(option.apply(&mut draft, Some(value)), Ok(()), "{}", option.name);
            // `buffered` and `direct` also note which of the two was given.
            draft.cache = Draft::default().cache;
            assert_eq!(draft, Draft::default(), "{}={value}", option.name);
        }
    }

    #[test]
    fn a_default_in_a_help_text_is_the_same() {
        let mut compared = 0;
        for (option, (_, unset)) in all().zip(DEFAULTS) {
            let said = option.help.split_once("[default: ").and_then(|(_, rest)| rest.split_once(']'));
            if let (As(value), Some((said, _))) = (unset, said) {
                assert_eq!(said, *value, "{}", option.name);
                compared += 1;
            }
        }
        assert!(compared > 20, "{compared}");
    }
}
