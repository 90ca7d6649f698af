//! Values of the options about files: sizes, orders, names, and how they are synced.

use super::{LARGEST_FILE, Quoted, Wrong, choice, count_in, integer_in, typed};
use crate::plan::job::{FileService, FileSize};
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
pub fn service(text: &str) -> Result<FileService, Wrong> {
    let (word, after) = text.split_once(':').map_or((text, None), |(word, after)| (word, Some(after)));
    let ios = || after.map_or(Ok(1), |after| count_in(after, &(1..=MOST_IOS)));
    match word {
        "roundrobin" => Ok(FileService::RoundRobin { ios: ios()? }),
        // A file is finished whatever the number says, as in fio.
        "sequential" => ios().map(|_| FileService::Sequential),
        "random" => Ok(FileService::Random { ios: ios()? }),
        _ => Err(Wrong::because(text, "is not supported")),
    }
}

/// The reverse of [`service`].
pub fn show_service(service: FileService) -> String {
    let with = |word: &str, ios: u32| if ios == 1 { word.to_owned() } else { format!("{word}:{ios}") };
    match service {
        FileService::RoundRobin { ios } => with("roundrobin", ios),
        FileService::Sequential => "sequential".to_owned(),
        FileService::Random { ios } => with("random", ios),
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
    if text.chars().any(char::is_control) {
        return Err(Wrong::new(format!("{} has a control character", Quoted(text))));
    }
    Ok(text.to_owned())
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
        assert_eq!(service("roundrobin"), Ok(FileService::RoundRobin { ios: 1 }));
        assert_eq!(service("random:16"), Ok(FileService::Random { ios: 16 }));
        assert_eq!(service("sequential:9"), Ok(FileService::Sequential));
        for bad in ["zipf:1.1", "random:0", "robin", "random:"] {
            assert!(service(bad).is_err(), "{bad}");
        }
        for text in ["roundrobin", "roundrobin:2", "random", "random:16", "sequential"] {
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
    fn a_format_has_only_known_words() {
        assert!(name_format("a.$jobnum/$filenum$clientuid").is_ok());
        for bad in ["$", "$file", "x$job.1"] {
            assert!(name_format(bad).is_err(), "{bad}");
        }
    }
}
