//! Values of the options about files: sizes, orders, names, and how they are synced.

use super::{LARGEST_FILE, Quoted, Wrong, choice, count_in, integer_in, typed};
use crate::plan::job::{FileSize, RangeSync, Service};
use crate::unit::Bytes;

/// The largest number of I/Os between two files.
const MOST_IOS: u32 = 1_000_000_000;

/// A size, or a range of sizes.
pub fn size(text: &str) -> Result<FileSize, Wrong> {
    let bytes = |text: &str| integer_in(text, &(1..=LARGEST_FILE)).map(Bytes);
    let (least, most) = match text.split_once('-') {
        None => bytes(text).map(|size| (size, size))?,
        Some((least, most)) => (bytes(least)?, bytes(most)?),
    };
    if least > most {
        return Err(Wrong::because(text, "begins with the larger size"));
    }
    Ok(FileSize { least, most })
}

/// The reverse of [`size`].
pub fn show_size(size: FileSize) -> String {
    let (least, most) = (typed::bytes(size.least.0), typed::bytes(size.most.0));
    if least == most { least } else { format!("{least}-{most}") }
}

/// An order of files, with the number of I/Os or the parameter behind a colon.
pub fn service(text: &str) -> Result<Service, Wrong> {
    let (word, after) = text.split_once(':').map_or((text, None), |(word, after)| (word, Some(after)));
    let ios = || after.map_or(Ok(1), |after| count_in(after, &(1..=MOST_IOS)));
    let number = |usual: f64, range: std::ops::RangeInclusive<f64>| {
        let number =
            after.map_or(Ok(usual), str::parse).map_err(|_| Wrong::because(text, "has no number behind ':'"))?;
        if range.contains(&number) { Ok(number) } else { Err(Wrong::because(text, "is out of range")) }
    };
    match word {
        "roundrobin" => Ok(Service::RoundRobin { ios: ios()? }),
        // A file is finished whatever the number says, as in fio.
        "sequential" => ios().map(|_| Service::Sequential),
        "random" => Ok(Service::Random { ios: ios()? }),
        "zipf" => match number(1.1, 0.01..=10.0)? {
            1.0 => Err(Wrong::because(text, "is not supported: the exponent is not 1")),
            theta => Ok(Service::Zipf { theta }),
        },
        "pareto" => Ok(Service::Pareto { power: number(0.2, 0.000_1..=0.999_9)? }),
        "normal" | "gauss" => Ok(Service::Gauss { deviation: number(0.0, 0.0..=100.0)? }),
        _ => Err(Wrong::because(text, "is not supported")),
    }
}

/// The reverse of [`service`].
pub fn show_service(service: Service) -> String {
    let with = |word: &str, ios: u32| if ios == 1 { word.to_owned() } else { format!("{word}:{ios}") };
    match service {
        Service::RoundRobin { ios } => with("roundrobin", ios),
        Service::Sequential => "sequential".to_owned(),
        Service::Random { ios } => with("random", ios),
        Service::Zipf { theta } => format!("zipf:{theta}"),
        Service::Pareto { power } => format!("pareto:{power}"),
        Service::Gauss { deviation } => format!("gauss:{deviation}"),
    }
}

/// The words that a format of file names may contain, and what they stand for.
const WORDS: [&str; 4] = ["jobname", "jobnum", "filenum", "clientuid"];

/// A format of file names. fio leaves a word that it does not know in the name.
pub fn name_format(text: &str) -> Result<String, Wrong> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('$') {
        if !WORDS.iter().any(|word| after.starts_with(word)) {
            return Err(Wrong::because(text, "has a '$' with another word"));
        }
        rest = after;
    }
    folder(text)
}

/// A path: one line without control characters.
pub fn folder(text: &str) -> Result<String, Wrong> {
    if text.chars().any(char::is_control) {
        return Err(Wrong::new(format!("{} has a control character", Quoted(text))));
    }
    Ok(text.to_owned())
}

/// The flags of sync_file_range(2), separated by commas or bars, and how often it is called.
pub fn range_sync(text: &str) -> Result<RangeSync, Wrong> {
    let (flags, every) = text.split_once(':').map_or((text, None), |(flags, every)| (flags, Some(every)));
    let every = every.map_or(Ok(1), |every| count_in(every, &(1..=MOST_IOS)))?;
    let mut sync = RangeSync { wait_before: false, write: false, wait_after: false, every };
    for flag in flags.split(['|', ',']) {
        match flag {
            "wait_before" => sync.wait_before = true,
            "write" => sync.write = true,
            "wait_after" => sync.wait_after = true,
            _ => return Err(Wrong::because(flag, "is not supported")),
        }
    }
    Ok(sync)
}

/// The reverse of [`range_sync`].
pub fn show_range_sync(sync: RangeSync) -> String {
    let flags = [(sync.wait_before, "wait_before"), (sync.write, "write"), (sync.wait_after, "wait_after")];
    let flags: Vec<&str> = flags.into_iter().filter_map(|(on, word)| on.then_some(word)).collect();
    format!("{}:{}", flags.join(","), sync.every)
}

/// A choice that may also be left out.
pub fn optional<T: super::Choice>(text: &str) -> Result<Option<T>, Wrong> {
    choice(text).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_fio_words_and_numbers() {
        assert_eq!(service("roundrobin"), Ok(Service::RoundRobin { ios: 1 }));
        assert_eq!(service("random:16"), Ok(Service::Random { ios: 16 }));
        assert_eq!(service("sequential:9"), Ok(Service::Sequential));
        assert_eq!(service("zipf"), Ok(Service::Zipf { theta: 1.1 }));
        assert_eq!(service("pareto:0.9"), Ok(Service::Pareto { power: 0.9 }));
        assert_eq!(service("normal:40"), service("gauss:40"));
        for bad in ["zipf:1", "zipf:x", "pareto:1", "gauss:101", "random:0", "robin", "random:"] {
            assert!(service(bad).is_err(), "{bad}");
        }
        for text in
            ["roundrobin", "roundrobin:2", "random", "random:16", "sequential", "zipf:1.2", "pareto:0.3", "gauss:5"]
        {
            assert_eq!(service(text).map(show_service), Ok(text.to_owned()));
        }
    }

    #[test]
    fn sizes_of_files_are_one_or_a_range() {
        assert_eq!(size("8k-40k").map(show_size), Ok("8k-40k".to_owned()));
        assert_eq!(size("1m").map(show_size), Ok("1m".to_owned()));
        for bad in ["0", "2-1", "1-", "-1", "1-2-3", "8k-x"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn flags_of_a_range_are_separated_by_commas_or_bars() {
        assert_eq!(range_sync("write:2").map(show_range_sync), Ok("write:2".to_owned()));
        assert_eq!(range_sync("wait_before|write").map(show_range_sync), Ok("wait_before,write:1".to_owned()));
        assert!(range_sync("write:0").is_err() && range_sync("").is_err() && range_sync("fsync:2").is_err());
    }

    #[test]
    fn a_format_has_only_known_words() {
        assert!(name_format("a.$jobnum/$filenum$clientuid").is_ok());
        for bad in ["$", "$file", "x$job.1"] {
            assert!(name_format(bad).is_err(), "{bad}");
        }
    }
}
