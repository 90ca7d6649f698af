//! What is worth trying, and is tried less often while it is in vain.

/// After trials in vain so many chances at most are let go by.
const MOST_SKIPPED: u32 = 127;

/// When to try.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    /// Chances that are let go by, because trials were in vain.
    skip: u32,
    last: u32,
}

impl Backoff {
    /// A chance. Whether to take it.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        let take = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        take
    }

    /// How the trial went.
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
    fn what_is_in_vain_becomes_rare_and_what_works_is_done_again() {
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
