//! The words of fio's traces: the log of a job writes them, a replay reads them.

use super::request_source::Kind;

/// The first line of a version whose waits are lines.
pub(crate) const VERSION_2: &str = "fio version 2 iolog";
/// The first line of a version whose lines begin with their time.
pub(crate) const VERSION_3: &str = "fio version 3 iolog";

/// What a line with an offset and a length does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Io(Kind),
    /// Of a file, everything.
    Sync,
    /// Of a file, its data.
    DataSync,
}

const WORDS: [(Action, &str); 5] = [
    (Action::Io(Kind::Read), "read"),
    (Action::Io(Kind::Write), "write"),
    (Action::Io(Kind::Trim), "trim"),
    (Action::Sync, "sync"),
    (Action::DataSync, "datasync"),
];

impl Action {
    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        WORDS.iter().find(|(action, _)| *action == self).map_or("", |(_, word)| word)
    }

    /// The action of a word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        WORDS.iter().find(|(_, known)| *known == word).map(|(action, _)| *action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_word_that_is_read_back() {
        let kinds = Kind::ALL.map(Action::Io);
        for action in kinds.into_iter().chain([Action::Sync, Action::DataSync]) {
            assert_eq!(Action::parse(action.word()), Some(action));
        }
        assert_eq!((Action::parse(""), Action::parse("wait")), (None, None));
    }
}
