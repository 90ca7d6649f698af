//! Which zone a request goes to, and where in it. The rules are fio 3.33's.

use super::{State, ZonedFile, period};
use crate::workload::request_source::{Kind, Request};
use std::ops::Range;

/// What a job wants of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// The job.
    pub job: u32,
    /// Its region.
    pub begin: u64,
    pub end: u64,
    /// Its smallest block, of each direction.
    pub least: [u64; 3],
    pub random: bool,
    pub reads_beyond: bool,
    /// It reads back what it writes, so that no zone is reset while it writes.
    pub keeps: bool,
    pub job_max_open: u32,
    /// `zone_reset_threshold` in bytes, and `zone_reset_frequency`.
    pub threshold: f64,
    pub frequency: f64,
    /// It has I/Os in flight.
    pub in_flight: bool,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It is this one. `zone` is held until it completes, and then closed if the request fills it.
    Issue { request: Request, zone: Option<usize>, fills: bool },
    /// The job holds this zone, which is to be reset before the request.
    Reset(usize),
    /// The request waits until nothing of the job is in flight.
    Settle,
    /// Another job uses the zone.
    Wait,
    /// No zone can take it: the pass over the file is over.
    End,
}

/// A zone to write instead of the one that chance or order says.
enum Other {
    Zone(usize),
    Choice(Choice),
}

impl ZonedFile {
    /// Chooses a zone and a place in it for a request.
    pub fn choose(&self, wish: &Wish, drawn: &Request) -> Choice {
        let mut state = self.state();
        let zones = self.index(wish.begin)..self.index(wish.end.saturating_add(self.size - 1));
        let around = Around { file: self, wish, zones };
        let at = self.index(drawn.offset);
        let Some(zone) = state.zones.get(at) else { return Choice::End };
        let as_it_is = Choice::Issue { request: *drawn, zone: None, fills: false };
        match drawn.kind {
            Kind::Write if !zone.sequential => around.conventional(&state, at, drawn),
            _ if !zone.sequential => as_it_is,
            Kind::Read if wish.reads_beyond && !zone.offline => as_it_is,
            Kind::Read => around.read(&mut state, at, drawn),
            Kind::Write => around.write(&mut state, at, drawn),
            Kind::Trim => around.trim(&mut state, at, drawn),
        }
    }

    /// Where a write is, in a zone that the job holds and has reset.
    pub fn write_after_reset(&self, wish: &Wish, zone: usize, drawn: &Request) -> Choice {
        place(&mut self.state(), wish, zone, drawn)
    }

    /// Where the request that follows this one in sequential order is, relative to the region.
    pub fn following(&self, wish: &Wish, request: &Request, skip: u64) -> u64 {
        let state = self.state();
        let end = request.offset.saturating_add(request.length.into());
        let Some(zone) = state.zones.get(self.index(request.offset)) else { return end.saturating_sub(wish.begin) };
        let zone_end = zone.start.saturating_add(self.size);
        let filled = request.kind == Kind::Write && zone.sequential && end >= zone.capacity_end;
        let mut next = if filled { zone_end } else { end };
        let all_read = request.kind == Kind::Read && !wish.reads_beyond && zone.sequential && end >= zone.write_pointer;
        if skip > 0 && request.kind != Kind::Trim && (next >= zone_end || all_read) {
            next = zone_end.saturating_add(skip);
            if next >= wish.end {
                next = wish.begin;
            }
        }
        next.saturating_sub(wish.begin)
    }
}

struct Around<'a> {
    file: &'a ZonedFile,
    wish: &'a Wish,
    /// The zones of the job's region.
    zones: Range<usize>,
}

impl Around<'_> {
    fn least(&self, kind: Kind) -> u64 {
        self.wish.least.get(kind as usize).copied().unwrap_or(1).max(1)
    }

    /// A zone without a write pointer takes a write where it is, but not one that reaches into a zone with a pointer.
    fn conventional(&self, state: &State, at: usize, drawn: &Request) -> Choice {
        let mut request = *drawn;
        let next = state.zones.get(at + 1).filter(|zone| zone.sequential).map(|zone| zone.start);
        if let Some(next) = next {
            let least = self.least(Kind::Write);
            let room = next.saturating_sub(request.offset).min(request.length.into());
            request.length = u32::try_from(room / least * least).unwrap_or(0);
        }
        if request.length == 0 { Choice::End } else { Choice::Issue { request, zone: None, fills: false } }
    }

    /// What a request does that cannot use a zone now. Waiting with I/Os in flight, two jobs could wait for each other.
    fn later(&self) -> Choice {
        if self.wish.in_flight { Choice::Settle } else { Choice::Wait }
    }

    /// Holds a zone for a request, unless another job uses it.
    fn holds(&self, state: &mut State, at: usize) -> bool {
        let Some(zone) = state.zones.get_mut(at).filter(|zone| zone.is_free_for(self.wish.job)) else { return false };
        (zone.holder, zone.held) = (self.wish.job, zone.held + 1);
        true
    }

    fn read(&self, state: &mut State, drawn_at: usize, drawn: &Request) -> Choice {
        let least = self.least(Kind::Read);
        let (mut at, mut offset) = (drawn_at, drawn.offset);
        let Some(zone) = state.zones.get(at) else { return Choice::End };
        let behind = !self.wish.random && offset.saturating_add(least) > zone.write_pointer;
        if zone.offline || zone.written() < least || behind {
            let Some(found) = self.nearest(state, at, least) else { return Choice::End };
            at = found;
            offset = state.zones.get(at).map_or(0, |zone| zone.start);
        }
        let Some(zone) = state.zones.get(at) else { return Choice::End };
        let (written, length) = (zone.written(), u64::from(drawn.length));
        if written <= length {
            offset = zone.start;
        } else if self.wish.random {
            let within = drawn.offset.saturating_sub(drawn_at as u64 * self.file.size);
            // Unlike fio, which never reads the last block of a zone.
            offset = zone.start + within % (written - length + least) / least * least;
        }
        let room = zone.write_pointer.saturating_sub(offset).min(length) / least * least;
        let request = Request { offset, length: u32::try_from(room).unwrap_or(0), ..*drawn };
        let sequential = zone.sequential;
        if request.length == 0 {
            Choice::End
        } else if !sequential {
            Choice::Issue { request, zone: None, fills: false }
        } else if self.holds(state, at) {
            Choice::Issue { request, zone: Some(at), fills: false }
        } else {
            self.later()
        }
    }

    /// The next zone with this much to read; in random order, the nearest one.
    fn nearest(&self, state: &State, from: usize, bytes: u64) -> Option<usize> {
        let suits = |at: &usize| {
            self.zones.contains(at) && state.zones.get(*at).is_some_and(|zone| !zone.offline && zone.written() >= bytes)
        };
        if !self.wish.random {
            return (from + 1..self.zones.end).find(suits);
        }
        let places = |far| [from.checked_add(far), from.checked_sub(far)].into_iter().flatten();
        (1..=self.zones.len()).flat_map(places).find(suits)
    }

    fn write(&self, state: &mut State, drawn_at: usize, drawn: &Request) -> Choice {
        let wish = self.wish;
        if !state.zones.get(drawn_at).is_some_and(|zone| zone.is_free_for(wish.job)) {
            return self.later();
        }
        let at = if self.opens(state, drawn_at) {
            drawn_at
        } else {
            match self.other(state, drawn_at, drawn) {
                Other::Zone(at) => at,
                Other::Choice(choice) => return choice,
            }
        };
        if !self.holds(state, at) {
            return self.later();
        }
        if wish.frequency > 0.0 && state.sequential_data as f64 >= wish.threshold {
            state.until_reset = state.until_reset.saturating_sub(1);
            if state.until_reset == 0 {
                state.until_reset = period(wish.frequency);
                state.zones.get_mut(at).into_iter().for_each(|zone| zone.reset_due = true);
            }
        }
        let least = self.least(Kind::Write);
        let resets = state.zones.get(at).is_some_and(|zone| zone.reset_due || zone.is_full(least));
        if resets { Choice::Reset(at) } else { place(state, wish, at, drawn) }
    }

    /// Opens a zone, unless it is open. Returns whether it may be written.
    fn opens(&self, state: &mut State, at: usize) -> bool {
        let wish = self.wish;
        let Some(zone) = state.zones.get(at) else { return false };
        if zone.offline || wish.keeps && zone.is_full(self.least(Kind::Write)) {
            return false;
        }
        let most = self.file.most_open as usize;
        if most == 0 {
            return true;
        }
        if zone.opened_by.is_some() {
            // Writes in flight may have filled it.
            return zone.write_pointer < zone.capacity_end;
        }
        if self.job_is_at_limit(state) || state.open.len() >= most {
            return false;
        }
        state.note_open(at, wish.job);
        true
    }

    fn job_is_at_limit(&self, state: &State) -> bool {
        let most = self.wish.job_max_open as usize;
        let is_own = |number: &&u32| {
            state.zones.get(**number as usize).is_some_and(|zone| zone.opened_by == Some(self.wish.job))
        };
        most > 0 && state.open.iter().filter(is_own).count() >= most
    }

    /// A zone to write instead of one that cannot be opened: an open one, or the next that can be opened.
    fn other(&self, state: &mut State, drawn_at: usize, drawn: &Request) -> Other {
        let (wish, least) = (self.wish, self.least(Kind::Write));
        let most = self.file.most_open as usize;
        let mut at = drawn_at.clamp(self.zones.start, self.zones.end.saturating_sub(1));
        if most > 0 && !state.open.is_empty() {
            let count = state.open.len();
            let (from, length) = (drawn.offset.saturating_sub(wish.begin), wish.end.saturating_sub(wish.begin).max(1));
            let pick = usize::try_from(u128::from(from) * count as u128 / u128::from(length)).unwrap_or(0);
            let mut open = (0..count).filter_map(|step| state.open.get((pick + step) % count));
            let found = open.find_map(|number| Some(*number as usize).filter(|number| self.zones.contains(number)));
            let Some(found) = found else { return Other::Choice(Choice::End) };
            at = found;
            match state.zones.get(at) {
                Some(zone) if !zone.is_free_for(wish.job) => return Other::Choice(self.later()),
                Some(zone) if !zone.is_full(least) => return Other::Zone(at),
                _ => {}
            }
        }
        let all_open = state.open.len() == self.zones.len();
        let at_limit = all_open || most > 0 && state.open.len() >= most || self.job_is_at_limit(state);
        if at_limit && wish.in_flight {
            // Those that fill a zone close it.
            return Other::Choice(Choice::Settle);
        }
        for _ in 0..self.zones.len() {
            at = if at + 1 >= self.zones.end { self.zones.start } else { at + 1 };
            let Some(zone) = state.zones.get(at).filter(|zone| zone.sequential && zone.opened_by.is_none()) else {
                continue;
            };
            if !zone.is_free_for(wish.job) {
                return Other::Choice(self.later());
            }
            if self.opens(state, at) {
                return Other::Zone(at);
            }
        }
        let fits = |number: &usize| {
            self.zones.contains(number) && state.zones.get(*number).is_some_and(|zone| !zone.is_full(least))
        };
        let open = state.open.iter().map(|number| *number as usize).find(fits);
        open.map_or(Other::Choice(Choice::End), Other::Zone)
    }

    fn trim(&self, state: &mut State, drawn_at: usize, drawn: &Request) -> Choice {
        let mut at = drawn_at;
        if self.wish.random && state.zones.get(at).is_some_and(|zone| zone.written() == 0) {
            let Some(found) = self.nearest(state, at, 1) else { return Choice::End };
            at = found;
        }
        let Some(zone) = state.zones.get(at) else { return Choice::End };
        if zone.held > 0 && zone.holder == self.wish.job {
            return Choice::Settle;
        }
        let (start, sequential) = (zone.start, zone.sequential);
        let request = Request { offset: start, ..*drawn };
        if !sequential {
            return Choice::Issue { request, zone: None, fills: false };
        }
        if !self.holds(state, at) {
            return self.later();
        }
        if let Some(zone) = state.zones.get_mut(at) {
            zone.trim_due = zone.written() > 0;
        }
        state.forget(at);
        Choice::Issue { request, zone: Some(at), fills: false }
    }
}

/// Puts a write at the write pointer of a zone that the job holds for it.
fn place(state: &mut State, wish: &Wish, at: usize, drawn: &Request) -> Choice {
    let least = wish.least.get(Kind::Write as usize).copied().unwrap_or(1).max(1);
    let State { zones, data, sequential_data, .. } = state;
    let Some(zone) = zones.get_mut(at) else { return Choice::End };
    let offset = zone.write_pointer;
    let room = zone.capacity_end.saturating_sub(offset).min(drawn.length.into()) / least * least;
    let request = Request { offset, length: u32::try_from(room).unwrap_or(0), ..*drawn };
    if request.length == 0 || offset < wish.begin || offset >= wish.end {
        zone.held = zone.held.saturating_sub(1);
        return Choice::End;
    }
    zone.write_pointer += room;
    *data += room;
    *sequential_data += room;
    Choice::Issue { request, zone: Some(at), fills: zone.write_pointer >= zone.capacity_end }
}
