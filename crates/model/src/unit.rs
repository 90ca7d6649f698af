//! Units as types, so that a nanosecond is never added to a byte.
//!
//! Names of serialized fields end in the unit (`wall_nanos`); the types serialize as plain numbers.

use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign, Sub};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The difference to an earlier reading; 0 if `earlier` is later.
            pub fn since(self, earlier: Self) -> Self {
                Self(self.0.saturating_sub(earlier.0))
            }

            /// The count as a floating-point number. Exact below 2^53.
            pub fn as_f64(self) -> f64 {
                self.0 as f64
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                self.since(other)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self(0), Add::add)
            }
        }
    };
}

unit!(
    /// Nanoseconds of CLOCK_MONOTONIC or of CPU time.
    Nanos
);
unit!(
    /// Ticks of the time-stamp counter (TSC).
    Ticks
);
unit!(
    /// Bytes of payload.
    Bytes
);

impl Nanos {
    /// From whole microseconds.
    pub fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// From whole milliseconds.
    pub fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// From whole seconds.
    pub fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// As seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// As a standard duration.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(duration: std::time::Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The rate of the reference clock: TSC ticks per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hertz(pub f64);

impl Hertz {
    /// The duration of `ticks` of this clock.
    pub fn nanos(self, ticks: Ticks) -> Nanos {
        Nanos((ticks.0 as f64 * 1e9 / self.0) as u64)
    }

    /// The number of ticks in `nanos`.
    pub fn ticks(self, nanos: Nanos) -> Ticks {
        Ticks((nanos.0 as f64 * self.0 / 1e9) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_went_backwards_is_zero_not_a_wrap() {
        assert_eq!(Nanos(3).since(Nanos(5)), Nanos(0));
        assert_eq!(Nanos(5) - Nanos(3), Nanos(2));
    }

    #[test]
    fn ticks_and_nanos_convert_both_ways() {
        let clock = Hertz(2.5e9);
        assert_eq!(clock.nanos(Ticks(2500)), Nanos(1000));
        assert_eq!(clock.ticks(Nanos(1000)), Ticks(2500));
    }
}
