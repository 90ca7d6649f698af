//! Backoff for an optional attempt: after each failure, more chances are skipped before the next attempt.

/// Largest number of chances skipped in a row.
const MOST_SKIPPED: u32 = 127;

/// Decides when to try.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    /// Chances left to skip.
    skip: u32,
    last: u32,
}

impl Backoff {
    /// Whether to use this chance.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        let take = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        take
    }

    /// Records the result of an attempt.
    #[inline]
    pub(crate) fn note(&mut self, worked: bool) {
        self.last = if worked { 0 } else { (self.last * 2 + 1).min(MOST_SKIPPED) };
        self.skip = self.last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_make_attempts_rare_and_success_restores_them() {
        let mut backoff = Backoff::default();
        let mut tried = |worked: fn(usize) -> bool| -> Vec<usize> {
            let chances = 0..1000;
            chances
                .filter(|chance| {
                    let take = backoff.take();
                    if take {
                        backoff.note(worked(*chance));
                    }
                    take
                })
                .collect()
        };
        let in_vain = tried(|_| false);
        assert_eq!(in_vain[..5], [0, 2, 6, 14, 30]);
        assert_eq!(in_vain.last().unwrap() - in_vain[in_vain.len() - 2], 128);
        let works = tried(|_| true);
        assert!(works.len() >= 1000 - 127, "{}", works.len());
    }
}
