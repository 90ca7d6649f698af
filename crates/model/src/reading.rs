//! A reading, or the reason why it is missing. A missing reading is never 0.

use serde::{Deserialize, Serialize};

/// A value read from the machine, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// The value.
    Taken(T),
    /// Why it could not be read, and how to fix that.
    Unavailable(String),
}

impl<T> Reading<T> {
    /// A missing reading with its reason.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable(reason.into())
    }

    /// The value, if it was read.
    pub fn taken(&self) -> Option<&T> {
        match self {
            Self::Taken(value) => Some(value),
            Self::Unavailable(_) => None,
        }
    }

    /// The reason, if it is missing.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Taken(_) => None,
            Self::Unavailable(reason) => Some(reason),
        }
    }

    /// Applies `change` to the value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Taken(value) => Reading::Taken(change(value)),
            Self::Unavailable(reason) => Reading::Unavailable(reason),
        }
    }
}

impl<T, E: std::fmt::Display> From<Result<T, E>> for Reading<T> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => Self::Taken(value),
            Err(error) => Self::Unavailable(error.to_string()),
        }
    }
}
