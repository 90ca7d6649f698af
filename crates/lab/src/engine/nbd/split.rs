//! Splits I/Os that exceed the largest request into several requests; an I/O is done when all of them are.

use nbd::Result;
use nbd::client::{Ask, Connection, Done};
use sys::byte_store::ByteStore;

/// A connection whose slots form groups, one for each I/O.
pub(super) struct Split<C> {
    inner: C,
    /// Slots of a group.
    parts: u32,
    /// Bytes of a slot.
    part_bytes: u32,
    groups: Vec<Group>,
}

/// One I/O.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Requests without a reply yet.
    rest: u32,
    /// The result to report after the last one.
    done: Done,
}

impl<C: Connection> Split<C> {
    /// `inner` has `parts` slots of `part_bytes` for each of `slots` I/Os.
    pub(super) fn new(inner: C, slots: u32, parts: u32, part_bytes: u32) -> Self {
        let nothing = Done { slot: 0, length: 0, error: None, handed_over: 0, answered: 0 };
        Self { inner, parts, part_bytes, groups: vec![Group { rest: 0, done: nothing }; slots as usize] }
    }
}

/// Counts a finished request of a group; returns the result of the I/O after the last one.
fn note(groups: &mut [Group], parts: u32, part: Done) -> Option<Done> {
    let group = groups.get_mut((part.slot / parts) as usize)?;
    group.rest = group.rest.saturating_sub(1);
    let whole = &mut group.done;
    whole.error = whole.error.or(part.error);
    whole.handed_over = whole.handed_over.min(part.handed_over);
    whole.answered = whole.answered.max(part.answered);
    (group.rest == 0).then_some(group.done)
}

impl<C: Connection> Connection for Split<C> {
    fn arena(&self) -> &ByteStore {
        self.inner.arena()
    }

    fn begin(&self, slot: u32) -> usize {
        self.inner.begin(slot * self.parts)
    }

    fn takes(&self, ask: Ask) -> bool {
        self.inner.takes(ask)
    }

    fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> Result<()> {
        let part = match ask {
            Ask::Read | Ask::Write => self.part_bytes,
            // These have no payload.
            Ask::Trim | Ask::Flush => u32::MAX,
        };
        let count = length.div_ceil(part).max(1);
        if let Some(group) = self.groups.get_mut(slot as usize) {
            *group =
                Group { rest: count, done: Done { slot, length, error: None, handed_over: u64::MAX, answered: 0 } };
        }
        for number in 0..count {
            let before = number * part;
            self.inner.stage(slot * self.parts + number, ask, offset + u64::from(before), part.min(length - before))?;
        }
        Ok(())
    }

    fn staged_bytes(&self) -> usize {
        self.inner.staged_bytes()
    }

    fn submit(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        let Self { inner, groups, parts, .. } = self;
        inner.submit(|part| note(groups, *parts, part).into_iter().for_each(&mut each))
    }

    fn exchange(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        let Self { inner, groups, parts, .. } = self;
        inner.exchange(|part| note(groups, *parts, part).into_iter().for_each(&mut each))
    }

    fn in_flight(&self) -> u32 {
        self.inner.in_flight()
    }

    fn calls(&self) -> u64 {
        self.inner.calls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nbd::wire::WireError;

    /// Replies only when told to, and in reverse order.
    struct Late {
        arena: ByteStore,
        staged: Vec<(u32, Ask, u64, u32)>,
    }

    impl Connection for Late {
        fn arena(&self) -> &ByteStore {
            &self.arena
        }

        fn begin(&self, slot: u32) -> usize {
            slot as usize * 1000
        }

        fn takes(&self, _: Ask) -> bool {
            true
        }

        fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> Result<()> {
            self.staged.push((slot, ask, offset, length));
            Ok(())
        }

        fn staged_bytes(&self) -> usize {
            0
        }

        fn submit(&mut self, _: impl FnMut(Done)) -> Result<bool> {
            Ok(true)
        }

        fn exchange(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
            let Some((slot, _, offset, length)) = self.staged.pop() else { return Ok(false) };
            let error = (offset == 2000).then_some(WireError::EIO);
            each(Done { slot, length, error, handed_over: 10 + u64::from(slot), answered: 100 - u64::from(slot) });
            Ok(true)
        }

        fn in_flight(&self) -> u32 {
            self.staged.len() as u32
        }

        fn calls(&self) -> u64 {
            0
        }
    }

    #[test]
    fn an_io_is_done_when_all_of_its_requests_are_and_fails_if_one_does() {
        let late = Late { arena: ByteStore::zeroed(1).unwrap(), staged: Vec::new() };
        let mut split = Split::new(late, 2, 3, 1000);
        split.stage(0, Ask::Read, 0, 2500).unwrap();
        split.stage(1, Ask::Write, 1000, 2000).unwrap();
        let parts = [(0, 0, 1000), (1, 1000, 1000), (2, 2000, 500), (3, 1000, 1000), (4, 2000, 1000)];
        let staged: Vec<_> =
            split.inner.staged.iter().map(|(slot, _, offset, length)| (*slot, *offset, *length)).collect();
        assert_eq!(staged, parts);
        assert_eq!(split.begin(1), 3000);
        let mut done = Vec::new();
        while split.exchange(|whole| done.push(whole)).unwrap() {}
        let failed = Some(WireError::EIO);
        let [second, first] = done[..] else { panic!("{done:?}") };
        assert_eq!(second, Done { slot: 1, length: 2000, error: failed, handed_over: 13, answered: 97 });
        assert_eq!(first, Done { slot: 0, length: 2500, error: failed, handed_over: 10, answered: 100 });
        split.stage(0, Ask::Trim, 0, 5000).unwrap();
        assert_eq!(split.inner.staged, [(0, Ask::Trim, 0, 5000)]);
        split.exchange(|whole| assert_eq!((whole.length, whole.error), (5000, None))).unwrap();
        split.stage(0, Ask::Flush, 0, 0).unwrap();
        assert_eq!(split.inner.staged, [(0, Ask::Flush, 0, 0)]);
    }
}
