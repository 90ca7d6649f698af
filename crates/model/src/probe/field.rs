//! Finds the number of a probe in the text of a file. Returns `None` if it is missing.
//!
//! The text may contain anything. Reading a row does not allocate and scans the text once; matching a pattern takes
//! time linear in the length of the text.

use regex_lite::Regex;

/// The place of a number in a file.
#[derive(Clone, Debug)]
pub enum Field {
    /// The number in this column of the row that begins with this word.
    Row {
        /// The row's first word.
        key: String,
        /// Column after the first word, from 0.
        column: usize,
    },
    /// The sum of all numbers in the row that begins with this word: one number for each CPU.
    RowSum(String),
    /// The sum of the first numbers of the rows that begin with these words.
    Rows(&'static [&'static str]),
    /// The number after this label, in the row that begins with this word.
    Labelled {
        /// The row's first word.
        key: String,
        /// The label, as in `total=5`.
        label: &'static str,
    },
    /// The word at this index of the file, from 0.
    Word(usize),
    /// The single capture group of the first match of a pattern.
    Pattern(Regex),
}

impl Field {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// If it is not a valid regular expression, or does not have exactly one capture group.
    pub fn pattern(text: &str) -> Result<Self, String> {
        // Such files consist of lines, so ^ and $ match at line ends.
        let pattern = Regex::new(&format!("(?m:{text})"))
            .map_err(|error| format!("is not a valid regular expression: {error}"))?;
        match pattern.captures_len() {
            2 => Ok(Self::Pattern(pattern)),
            1 => Err("has no capture group: put the number in parentheses, as in Dirty: +([0-9]+)".to_owned()),
            _ => Err("has more than one capture group: use (?:…) for groups other than the number".to_owned()),
        }
    }

    /// Reads the number from the text of the file.
    pub fn read(&self, text: &str) -> Option<f64> {
        match self {
            Self::Row { key, column } => number(row(text, key)?.nth(*column)?),
            Self::RowSum(key) => {
                let mut columns = row(text, key)?.map(number).peekable();
                columns.peek()?;
                columns.sum()
            }
            Self::Rows(keys) => keys.iter().map(|key| number(row(text, key)?.next()?)).sum(),
            Self::Labelled { key, label } => number(row(text, key)?.find_map(|word| word.strip_prefix(label))?),
            Self::Word(place) => number(text.split_ascii_whitespace().nth(*place)?),
            Self::Pattern(pattern) => number(pattern.captures(text)?.get(1)?.as_str()),
        }
    }
}

impl Field {
    /// How much of the text must be read to find the number again: up to the end of its line, if the place does not depend
    /// on what follows.
    pub fn reach(&self, text: &str) -> Option<usize> {
        let key = match self {
            Self::Row { key, .. } | Self::RowSum(key) | Self::Labelled { key, .. } => key,
            Self::Rows(_) | Self::Word(_) | Self::Pattern(_) => return None,
        };
        let mut end = 0;
        text.split_inclusive('\n').find_map(|line| {
            end += line.len();
            (line.split_ascii_whitespace().next() == Some(key)).then_some(end)
        })
    }
}

/// The remaining words of the row that begins with `key`.
fn row<'a>(text: &'a str, key: &str) -> Option<impl Iterator<Item = &'a str>> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()? == key).then_some(words)
    })
}

/// Rejects "inf" and "nan", which the parser accepts.
fn number(word: &str) -> Option<f64> {
    word.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row_of(key: &str, column: usize) -> Field {
        Field::Row { key: key.to_owned(), column }
    }

    #[test]
    fn numbers_are_where_the_kernel_puts_them() {
        let vmstat = "nr_dirty 5\nnr_dirty_threshold 77\npgfault 18446744073709551615\n";
        assert_eq!(row_of("nr_dirty", 0).read(vmstat), Some(5.0));
        assert_eq!(row_of("nr_dirt", 0).read(vmstat), None, "a part of a name is another name");
        assert_eq!(row_of("pgfault", 0).read(vmstat), Some(u64::MAX as f64));
        let stat = "cpu  1 2 3 4 5 6 7 80 9 10\ncpu0 1 2 3\nintr 123 0 9\nctxt 4321\n";
        assert_eq!(row_of("cpu", 7).read(stat), Some(80.0));
        assert_eq!(row_of("intr", 0).read(stat), Some(123.0));
        assert_eq!(row_of("ctxt", 1).read(stat), None);
        let softirqs = "          CPU0       CPU1\n  NET_RX:  844603   790382\n BLOCK:\n";
        assert_eq!(Field::RowSum("NET_RX:".into()).read(softirqs), Some(1_634_985.0));
        assert_eq!(Field::RowSum("BLOCK:".into()).read(softirqs), None, "no CPU is no zero");
        let pressure = "some avg10=11.48 avg60=7.40 avg300=8.67 total=315\nfull avg10=0.00 total=7\n";
        assert_eq!(Field::Labelled { key: "full".into(), label: "total=" }.read(pressure), Some(7.0));
        assert_eq!(Field::Labelled { key: "half".into(), label: "total=" }.read(pressure), None);
        assert_eq!(Field::Word(2).read("    2906       54    80976      186\n"), Some(80976.0));
        assert_eq!(Field::Word(0).read("12345\n"), Some(12345.0));
        assert_eq!(Field::Word(0).read(""), None);
    }

    #[test]
    fn a_row_is_reached_without_the_lines_after_it() {
        let text = "a 1\nbc 2\nd 3\n";
        assert_eq!(row_of("bc", 0).reach(text), Some("a 1\nbc 2\n".len()));
        assert_eq!(row_of("b", 0).reach(text), None);
        assert_eq!(Field::Word(1).reach(text), None);
    }

    #[test]
    fn a_pattern_captures_one_number() {
        let read = |pattern: &str, text: &str| Field::pattern(pattern).unwrap().read(text);
        let meminfo = "MemFree:  12 kB\nDirty:     42 kB\n";
        assert_eq!(read("Dirty: +([0-9]+)", meminfo), Some(42.0));
        assert_eq!(read("^Dirty: +([0-9]+) kB$", meminfo), Some(42.0), "^ and $ are the ends of a line");
        assert_eq!(read("^([0-9.]+) ", "0.53 0.60 0.70 1/99\n"), Some(0.53));
        assert_eq!(read("(-?[0-9]+)", "-7"), Some(-7.0));
        assert_eq!(read("(.*)", "inf\n"), None);
        assert_eq!(read("(.*)", "no number\n"), None);
        let wrong = |pattern: &str| Field::pattern(pattern).unwrap_err();
        assert!(wrong("Dirty: [0-9]+").contains("has no capture group"));
        assert!(wrong("([0-9]+) ([0-9]+)").contains("more than one"));
        assert!(wrong("([0-9]+").contains("not a valid regular expression"));
    }

    proptest! {
        #[test]
        fn no_text_is_a_surprise(text in any::<String>(), key in "[a-z:]{0,4}", column in 0_usize..20) {
            let fields = [
                row_of(&key, column),
                Field::RowSum(key.clone()),
                Field::Labelled { key: key.clone(), label: "total=" },
                Field::Word(column),
                Field::pattern("([0-9]+)").unwrap(),
            ];
            for field in fields {
                prop_assert!(field.read(&text).is_none_or(f64::is_finite));
            }
        }
    }
}
