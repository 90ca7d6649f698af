//! Values in fio's syntax, at their limits and beyond.

use super::*;

fn reason<T: std::fmt::Debug>(outcome: Result<T, Wrong>) -> String {
    outcome.unwrap_err().reason
}

#[test]
fn integers_have_the_values_of_fio_3_33() {
    let pairs = "0=0 010=10 4k=4096 4K=4096 4kb=4096 4kB=4096 4ki=4096 4kib=4000 4KiB=4000 1m=1048576 \
                 1mib=1000000 2g=2147483648 1t=1099511627776 1p=1125899906842624 1pib=1000000000000000 \
                 4096b=4096 0x1000=4096 0X1f=31 18446744073709551615=18446744073709551615";
    for pair in pairs.split(' ') {
        let (text, value) = pair.split_once('=').unwrap();
        assert_eq!(integer(text).map(|value| value.to_string()), Ok(value.to_owned()), "{text}");
    }
}

#[test]
fn partly_valid_numbers_are_refused() {
    for text in
        ["", "k", "-1", "+1", "4.5k", "1e3", "4k4", "4kk", "4 k", "0x", "0x4k", "0x-1", "٤k", "4é", "NaN", "(1+1)"]
    {
        assert!(integer(text).is_err(), "{text}");
    }
    assert_eq!(reason(integer("4x")), "'4x' has the unknown suffix 'x'");
    assert_eq!(reason(integer("-1")), "'-1' is not a whole number");
    assert_eq!(reason(integer("99999999999999999999")), "'99999999999999999999' is too large");
    assert_eq!(reason(integer("0x10000000000000000")), "'0x10000000000000000' is too large");
    assert_eq!(reason(integer("16384p")), "'16384p' is too large");
    assert_eq!(reason(integer_in("5", &(6..=7))), "'5' is out of range");
    assert_eq!(reason(count_in("4g", &(0..=u32::MAX))), "'4g' is out of range");
}

#[test]
fn booleans_are_digits() {
    assert_eq!((boolean("1"), boolean("0")), (Ok(true), Ok(false)));
    for text in ["", "2", "yes", "true", "01"] {
        assert!(boolean(text).is_err(), "{text}");
    }
}

#[test]
fn sizes_are_bytes_or_percent_each_within_its_range() {
    let parse = |text| size(text, &(1..=1 << 30), &(1..=100));
    assert_eq!(parse("1m"), Ok(Size::Bytes(Bytes(1 << 20))));
    assert_eq!(parse("20%"), Ok(Size::Percent(20)));
    for text in ["0", "2g", "0%", "101%", "256%", "5.5%", "5%%", "%", "-5%", "5 %"] {
        assert!(parse(text).is_err(), "{text}");
    }
    assert_eq!(percent("100"), Ok(100));
    assert!(percent("101").is_err());
    assert!(percent("5%").is_err());
}

#[test]
fn times_have_a_default_unit() {
    use TimeUnit::{Microseconds, Seconds};
    for (unit, texts) in [
        (Seconds, ["0=0", "10=10000000", "10us=10", "10usec=10", "10MSEC=10000", "1h=3600000000"]),
        (Microseconds, ["10=10", "10ms=10000", "2s=2000000", "2sec=2000000", "2m=120000000", "365d=31536000000000"]),
    ] {
        for (text, micros) in texts.map(|text| text.split_once('=').unwrap()) {
            assert_eq!(time(text, unit).map(|time| (time.0 / 1000).to_string()), Ok(micros.to_owned()), "{text}");
        }
    }
    assert_eq!(time("365d", Seconds), Ok(LONGEST_TIME));
    for text in ["", "s", "-1", "1.5", "10x", "1min", "1k", "366d", "18446744073709551615", "1µs"] {
        assert!(time(text, Seconds).is_err(), "{text}");
    }
}

#[test]
fn the_last_item_applies_to_the_directions_after_it() {
    let parse = |text| per_direction(text, &(1..=1 << 30)).map(<(_, _, _)>::from);
    let (k4, k8, k16) = (Some(4096), Some(8192), Some(16384));
    assert_eq!(parse("4k"), Ok((k4, k4, k4)));
    assert_eq!(parse("4k,"), Ok((k4, None, None)));
    assert_eq!(parse("4k,8k"), Ok((k4, k8, k8)));
    assert_eq!(parse(",8k"), Ok((None, k8, k8)));
    assert_eq!(parse("4k,,8k"), Ok((k4, None, k8)));
    assert_eq!(parse("4k,,"), Ok((k4, None, None)));
    assert_eq!(parse(",,8k"), Ok((None, None, k8)));
    assert_eq!(parse("4k,8k,16k"), Ok((k4, k8, k16)));
    for text in ["", ",", ",,", "4k,8k,16k,32k", "4k:8k", "4k-8k", "4k,0", "4k, 8k"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn cpu_lists_are_sorted_and_have_no_duplicates() {
    assert_eq!(cpus("5,0-3,2"), Ok(vec![0, 1, 2, 3, 5]));
    assert_eq!(cpus("1023"), Ok(vec![1023]));
    for text in ["", ",", "0,", "3-0", "1024", "0-1024", "a", "0-", "-1", "0-1-2", "all", "99999999999"] {
        assert!(cpus(text).is_err(), "{text}");
    }
}

#[test]
fn percentile_lists_are_sorted_and_limited() {
    assert_eq!(percentiles("99.9:50:99:50"), Ok(vec![50.0, 99.0, 99.9]));
    assert_eq!(percentiles("100"), Ok(vec![100.0]));
    for text in ["", "0", "101", "100.1", "-1", "nan", "inf", "1e1", "50,99", "50:", "50::99", ".", "0x10"] {
        assert!(percentiles(text).is_err(), "{text}");
    }
    assert!(percentiles(&vec!["50"; 20].join(":")).is_ok());
    assert!(percentiles(&vec!["50"; 21].join(":")).is_err());
}

#[test]
fn file_names_are_split_at_unescaped_colons() {
    let names = |text| file_names(text).unwrap();
    assert_eq!(names("/a:b"), ["/a", "b"]);
    assert_eq!(names(r"/dev/foo@3,0\:c"), ["/dev/foo@3,0:c"]);
    assert_eq!(names(r"F\:\name"), [r"F:\name"]);
    assert_eq!(names("größe:名前"), ["größe", "名前"]);
    for text in ["", ":", "a:", "a::b", "a\0b"] {
        assert!(file_names(text).is_err(), "{text:?}");
    }
}

#[test]
fn quoted_texts_stay_on_one_line_and_short() {
    assert_eq!(Quoted("größe").to_string(), "'größe'");
    assert_eq!(Quoted("a\nb\u{2028}c").to_string(), r"'a\nb\u{2028}c'");
    assert_eq!(Quoted(&"é".repeat(100)).to_string(), format!("'{}…'", "é".repeat(60)));
}

#[test]
fn short_numbers_use_the_largest_exact_suffix() {
    assert_eq!(
        [0, 1, 1000, 1024, 1 << 30, u64::MAX].map(|n| Short(n).to_string()),
        ["0", "1", "1000", "1k", "1g", "18446744073709551615"]
    );
}

#[test]
fn suggests_similar_words_only() {
    let words = ["iodepth", "size", "filename", "fsync", "libaio", "io_uring"];
    assert_eq!(nearest("iodepht", words), Some("iodepth"));
    assert_eq!(nearest("io-depth", words), Some("iodepth"));
    assert_eq!(nearest("sise", words), Some("size"));
    assert_eq!(nearest("filenmae", words), Some("filename"));
    assert_eq!(nearest("uring", words), Some("io_uring"));
    assert_eq!(nearest("colour", words), None);
    assert_eq!(nearest("", words), None);
    assert_eq!(nearest(&"iodepth".repeat(100), words), None);
}

#[test]
fn ranges_have_one_or_two_sizes() {
    let ends = |text| range(text, &BLOCK).map(|range| (range.least.0, range.most.0));
    assert_eq!((ends("4k-16k"), ends("16k:4k")), (Ok((4096, 16384)), Ok((4096, 16384))));
    assert_eq!(ends("4k"), Ok((4096, 4096)));
    for text in ["0", "4k-", "-4k", "0-4k", "4k-8k-16k", "4k-16g"] {
        assert!(range(text, &BLOCK).is_err(), "{text}");
    }
}

#[test]
fn a_range_of_blocks_is_a_size_for_reads_and_one_for_the_others() {
    assert_eq!(blocks("4k-512k"), Ok([Some(4096), Some(512 << 10), Some(512 << 10)]));
    assert_eq!(blocks("4k,8k,"), Ok([Some(4096), Some(8192), None]));
    for text in ["4k-", "-4k", "4k-8k-16k", "4k-8k,16k", "0-4k", "4k-4g"] {
        assert!(blocks(text).is_err(), "{text}");
    }
    assert_eq!(LARGEST_BLOCK, 4_194_300 << 10, "as the table of options says");
}

#[test]
fn splits_that_say_nothing_or_too_much_are_refused() {
    for text in ["", "4k/x", "4k/101", "4k/60:8k/50", "/50", "4k/5.5", "4k::8k"] {
        assert!(split(text).is_err(), "{text}");
    }
    assert_eq!(split("4k/5.:8k/95"), split("4k/5:8k/95"));
    assert_eq!(percentages("5%,20").unwrap(), [Some(100), Some(20), Some(20)]);
    assert!(percentages("%").is_err() && percentages("101%").is_err());
    assert_eq!(split("4k/50:8k-16k/50").unwrap().iter().map(|share| share.size.0).max(), Some(8192));
    assert!(has_ranges("4k/50:8k-16k/50") && !has_ranges("4k/50:8k/50"));
    assert_eq!(split(&vec!["4k"; 65].join(":")).unwrap_err().reason.split(' ').next_back(), Some("sizes"));
}

#[test]
fn distributions_have_the_limits_of_fio() {
    for (text, theta) in [("zipf", 1.1), ("zipf:1.2", 1.2), ("zipf:1", 1.0)] {
        assert_eq!(distribution(text), Ok(Distribution::Zipf(theta)), "{text}");
    }
    for text in ["zipf:0", "zipf:x", "zipf:-1", "zipf:1:2", "pareto:0.2", "zipf:"] {
        assert!(distribution(text).is_err(), "{text}");
    }
}

#[test]
fn a_format_has_only_known_words() {
    assert!(name_format("a.$jobnum/$filenum$clientuid").is_ok());
    for bad in ["$", "$file", "x$job.1"] {
        assert!(name_format(bad).is_err(), "{bad}");
    }
}
