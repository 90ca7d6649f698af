//! An engine whose I/Os wait for those in flight that they overlap, if one of the two writes (`serialize_overlap`). A type of its own,
//! so that the loops of other jobs do not contain it.

use super::traits::{Queue, Stages, Sync};
use crate::workload::request_source::{Kind, Request};
use std::collections::VecDeque;
use std::fs::File;
use std::io;

pub(super) struct Serialized<'a, E> {
    engine: &'a mut E,
    /// Per slot, what the engine has in flight.
    inside: Vec<Option<Request>>,
    /// How many of them there are.
    count: u32,
    /// What waits, in order: none overtakes another.
    waiting: VecDeque<(u32, Request)>,
    /// Completions that were not reaped yet.
    done: VecDeque<(u32, i32, Option<Stages>)>,
}

/// Whether two requests must not be in flight together.
pub(super) fn collide(one: &Request, other: &Request) -> bool {
    let end = |request: &Request| request.offset.saturating_add(request.length.into());
    let changes = one.kind != Kind::Read || other.kind != Kind::Read;
    changes && one.file == other.file && one.offset < end(other) && other.offset < end(one)
}

impl<'a, E: Queue> Serialized<'a, E> {
    /// `depth`: I/Os in flight.
    pub fn new(engine: &'a mut E, depth: u32) -> Self {
        let slots = depth as usize;
        let (waiting, done) = (VecDeque::with_capacity(slots), VecDeque::with_capacity(slots));
        Self { engine, inside: vec![None; slots], count: 0, waiting, done }
    }

    fn is_free(&self, request: &Request) -> bool {
        !self.inside.iter().flatten().any(|other| collide(request, other))
    }

    fn put_in(&mut self, slot: u32, request: &Request) -> io::Result<()> {
        if let Some(place) = self.inside.get_mut(slot as usize) {
            *place = Some(*request);
            self.count += 1;
        }
        self.engine.stage(slot, request)
    }

    /// Passes on what no longer has to wait.
    fn pass_on(&mut self) -> io::Result<()> {
        while let Some((slot, request)) = self.waiting.front().copied()
            && self.is_free(&request)
        {
            self.waiting.pop_front();
            self.put_in(slot, &request)?;
        }
        Ok(())
    }
}

impl<E: Queue> Queue for Serialized<'_, E> {
    const PRIORITIZED: bool = E::PRIORITIZED;

    fn set_priority(&mut self, slot: u32, priority: u16) {
        self.engine.set_priority(slot, priority);
    }

    #[inline(always)]
    fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()> {
        if self.waiting.is_empty() && self.is_free(request) {
            return self.put_in(slot, request);
        }
        self.waiting.push_back((slot, *request));
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        self.engine.submit()
    }

    fn wait(&mut self, least: u32, most: u32) -> io::Result<()> {
        loop {
            let missing = least.saturating_sub(u32::try_from(self.done.len()).unwrap_or(u32::MAX));
            self.engine.wait(missing.min(self.count), most)?;
            let Self { engine, inside, count, done, .. } = self;
            engine.reap(most, |slot, result, stages| {
                if inside.get_mut(slot as usize).and_then(Option::take).is_some() {
                    *count -= 1;
                }
                done.push_back((slot, result, stages));
            });
            self.pass_on()?;
            if self.done.len() >= least as usize || self.count == 0 {
                // What was passed on goes out with this call, not with the next one.
                return self.engine.submit();
            }
        }
    }

    #[inline(always)]
    fn reap(&mut self, most: u32, mut each: impl FnMut(u32, i32, Option<Stages>)) {
        let count = self.done.len().min(most as usize);
        self.done.drain(..count).for_each(|(slot, result, stages)| each(slot, result, stages));
    }

    fn with_memory(&mut self, slot: u32, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.engine.with_memory(slot, length, work);
    }

    fn sync(&mut self, file: u32, what: Sync) -> io::Result<bool> {
        self.engine.sync(file, what)
    }

    /// A file can only be replaced when nothing waits for it.
    fn submit_all(&mut self) -> io::Result<bool> {
        Ok(self.waiting.is_empty() && self.engine.submit_all()?)
    }

    fn replace(&mut self, index: u32, file: File) -> io::Result<File> {
        self.engine.replace(index, file)
    }

    fn syscalls(&self) -> Option<u64> {
        self.engine.syscalls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Completes the oldest I/O of those in flight.
    #[derive(Default)]
    struct Slow {
        inside: VecDeque<(u32, Request)>,
        most: usize,
    }

    impl Queue for Slow {
        fn stage(&mut self, slot: u32, request: &Request) -> io::Result<()> {
            assert!(self.inside.iter().all(|(_, other)| !collide(request, other)), "{request:?}");
            self.inside.push_back((slot, *request));
            self.most = self.most.max(self.inside.len());
            Ok(())
        }
        fn submit(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn wait(&mut self, _: u32, _: u32) -> io::Result<()> {
            Ok(())
        }
        fn reap(&mut self, _: u32, mut each: impl FnMut(u32, i32, Option<Stages>)) {
            if let Some((slot, request)) = self.inside.pop_front() {
                each(slot, request.length.cast_signed(), None);
            }
        }
        fn sync(&mut self, _: u32, _: Sync) -> io::Result<bool> {
            Ok(true)
        }
        fn syscalls(&self) -> Option<u64> {
            None
        }
    }

    #[test]
    fn overlapping_writes_are_never_in_flight_together_and_all_complete() {
        let mut slow = Slow::default();
        let mut engine = Serialized::new(&mut slow, 8);
        let offsets = [0, 4096, 0, 2048, 8192, 8192, 100, 4096];
        for (slot, offset) in (0..).zip(offsets) {
            let kind = if offset == 8192 { Kind::Read } else { Kind::Write };
            engine.stage(slot, &Request { kind, file: 0, offset, length: 4096 }).unwrap();
        }
        engine.wait(8, 8).unwrap();
        let mut order = Vec::new();
        engine.reap(8, |slot, _, _| order.push(slot));
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7], "none overtakes another");
        assert!(slow.most >= 3 && slow.most < 8, "{}", slow.most);
    }
}
