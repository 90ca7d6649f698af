//! Values of the options about files: sizes, orders, names, and how they are synced.

use super::{Quoted, Wrong, count_in};
use crate::plan::job::FileService;

/// The largest number of I/Os between two files.
const MOST_IOS: u32 = 1_000_000_000;

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
    fn a_format_has_only_known_words() {
        assert!(name_format("a.$jobnum/$filenum$clientuid").is_ok());
        for bad in ["$", "$file", "x$job.1"] {
            assert!(name_format(bad).is_err(), "{bad}");
        }
    }
}
