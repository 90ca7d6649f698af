//! Values as people type them: the reverse of parsing.

use super::Short;
use crate::plan::job::*;
use crate::unit::{Bytes, Nanos};
use std::fmt::Display;

/// A value as an option has it. `None` if the option is not given.
pub fn shown<T: Shown + ?Sized>(value: &T) -> Option<String> {
    value.shown()
}

/// A value that has a text in the language of options.
pub trait Shown {
    /// The text.
    fn shown(&self) -> Option<String>;
}

impl<T: Choice + PartialEq> Shown for T {
    fn shown(&self) -> Option<String> {
        Some(word(*self).to_owned())
    }
}

impl<T: Shown> Shown for Each<T> {
    fn shown(&self) -> Option<String> {
        each_given(self, Shown::shown)
    }
}

/// Types of values that are always given, and of those that may not be.
macro_rules! shown {
    ($($type:ty: $show:expr),+ $(,)?) => {
        $(impl Shown for $type {
            fn shown(&self) -> Option<String> {
                $show(self)
            }
        }

        impl Shown for Option<$type> {
            fn shown(&self) -> Option<String> {
                self.as_ref().and_then(Shown::shown)
            }
        })+
    };
}

shown! {
    bool: |on: &bool| Some(u8::from(*on).to_string()),
    u8: printed,
    u32: printed,
    u64: printed,
    String: printed,
    Bytes: |size: &Bytes| Some(bytes(size.0)),
    Nanos: |span: &Nanos| Some(time(*span)),
    Size: |size: &Size| match size {
        Size::Bytes(size) => size.shown(),
        Size::Percent(percent) => Some(format!("{percent}%")),
    },
    SizeRange: |SizeRange { least, most }: &SizeRange| match (bytes(least.0), bytes(most.0)) {
        (least, most) if least == most => Some(least),
        (least, most) => Some(format!("{least}-{most}")),
    },
    SizeShare: |share: &SizeShare| Some(format!("{}/{}", bytes(share.size.0), share.percent)),
    Vec<SizeShare>: |shares: &Vec<SizeShare>| list(&shares.iter().filter_map(shown).collect::<Vec<_>>(), ":"),
    Vec<u32>: |numbers: &Vec<u32>| list(numbers, ","),
    Vec<f64>: |numbers: &Vec<f64>| list(numbers, ":"),
    Vec<String>: |all: &Vec<String>| list(&all.iter().map(|name| name.replace(':', "\\:")).collect::<Vec<_>>(), ":"),
    Distribution: |of: &Distribution| Some(match of {
        Distribution::Random => "random".to_owned(),
        Distribution::Zipf(theta) => format!("zipf:{theta}"),
    }),
    Pattern: |pattern: &Pattern| Some(pattern.text().to_owned()),
    Peer: printed,
    PathSend: printed,
    PathReceive: printed,
    PathSegment: printed,
    TxTaskCpus: printed,
}

impl Shown for str {
    fn shown(&self) -> Option<String> {
        Some(self.to_owned())
    }
}

fn printed(value: &impl Display) -> Option<String> {
    Some(value.to_string())
}

/// "64k" of 65536, where a unit leaves no rest.
pub fn bytes(bytes: u64) -> String {
    Short(bytes).to_string()
}

/// "10s", or in a smaller unit.
pub fn time(time: Nanos) -> String {
    match time.0 {
        0 => "0".to_owned(),
        whole if whole % 1_000_000_000 == 0 => format!("{}s", whole / 1_000_000_000),
        whole if whole % 1_000_000 == 0 => format!("{}ms", whole / 1_000_000),
        whole if whole % 1_000 == 0 => format!("{}us", whole / 1_000),
        // No job file says so, but what is shown must be exact.
        nanos => format!("{nanos}ns"),
    }
}

/// READ,WRITE,TRIM, or one value that all have.
pub fn each(values: [String; 3]) -> String {
    let [read, write, trim] = &values;
    if read == write && write == trim { read.clone() } else { values.join(",") }
}

/// Values between separators. `None` without a value.
pub fn list<T: Display>(values: &[T], separator: &str) -> Option<String> {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    (!values.is_empty()).then(|| values.join(separator))
}

/// READ,WRITE,TRIM of values that a direction may lack. `None` if all do.
pub fn each_given<T>(values: &Each<T>, show: impl Fn(&T) -> Option<String>) -> Option<String> {
    let values = values.all().map(show);
    values.iter().any(Option::is_some).then(|| each(values.map(Option::unwrap_or_default)))
}

/// The value of `rw`: "randread:4".
pub fn pattern(job: &JobPlan) -> String {
    match job.requests.run {
        0 | 1 => job.rw().to_owned(),
        run => format!("{}:{run}", job.rw()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_the_largest_unit_that_is_exact() {
        assert_eq!([4096, 1 << 20, 4097, 0].map(bytes), ["4k", "1m", "4097", "0"]);
        assert_eq!(
            [0, 10_000_000_000, 1_500_000_000, 2_000].map(|nanos| time(Nanos(nanos))),
            ["0", "10s", "1500ms", "2us"]
        );
        assert_eq!(each(["1", "1", "1"].map(str::to_owned)), "1");
        assert_eq!(each(["1", "2", "1"].map(str::to_owned)), "1,2,1");
    }
}
