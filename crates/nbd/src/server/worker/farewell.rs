//! The end of a server: what was sent by then is done and replied to, and then everybody is let go.

use super::{Happened, Worker};
use crate::server::connection::Connection;
use std::time::{Duration, Instant};

/// How long it takes at most, but for what a storage takes for a request.
const FAREWELL: Duration = Duration::from_secs(5);
/// Who is in the middle of a request, and of whom nothing comes for so long, is not waited for.
const PAUSE: Duration = Duration::from_millis(100);
/// How long replies may be on the way to the other end, where all of the time was taken by what they answer.
const DELIVERY: Duration = Duration::from_millis(200);
/// A ring begins to receive with one call and has received with the next: only after so many in which nothing happens there is nothing.
const STILL: u32 = 2;

impl Worker<'_> {
    /// What was sent is finished and replied to; then everybody is let go.
    pub(super) fn say_farewell(&mut self, happened: &mut Vec<(usize, Happened)>) {
        let end = Instant::now() + FAREWELL;
        self.may_hold = false;
        for _ in 0..STILL {
            self.look(happened, Some(Duration::ZERO));
            self.attend_until(end, happened);
        }
        // Who never stops is stopped.
        self.connections.iter_mut().flatten().for_each(Connection::hear_only_what_was_sent);
        // Nobody is held any more.
        self.working = (0..self.connections.len()).collect();
        let (mut parting, mut still) = (Vec::new(), 0);
        let mut latest = vec![Instant::now(); self.connections.len()];
        while Instant::now() < end {
            let limit = if still < STILL { Duration::ZERO } else { PAUSE };
            self.look(happened, Some(limit));
            still = if happened.is_empty() && self.working.is_empty() { still + 1 } else { 0 };
            let busy: Vec<usize> = happened.iter().map(|(place, _)| *place).chain(self.working.clone()).collect();
            // As it is seen now: what comes while others are attended to is seen by the next look.
            let paused: Vec<bool> = latest.iter().map(|latest| latest.elapsed() >= PAUSE).collect();
            self.attend_until(end, happened);
            let paused = |place: usize| paused.get(place) == Some(&true) && !busy.contains(&place);
            parting.extend(self.let_go_who_is_done(still, paused));
            busy.iter()
                .for_each(|place| latest.get_mut(*place).into_iter().for_each(|latest| *latest = Instant::now()));
            if self.connections.iter().all(Option::is_none) {
                break;
            }
        }
        // Replies that a ring was told of are handed over.
        self.look(happened, Some(Duration::ZERO));
        happened.clear();
        for place in 0..self.connections.len() {
            parting.extend(self.part(place, Some("the server had to go before it was done with it")));
        }
        // Closing a socket on which something lies unread resets the connection, and what is on the way is lost.
        let end = end.max(Instant::now() + DELIVERY);
        while Instant::now() < end && parting.iter().any(Connection::has_undelivered) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Does what there is to do after something happened, as far as there is time for it.
    fn attend_until(&mut self, end: Instant, happened: &mut Vec<(usize, Happened)>) {
        let working = std::mem::take(&mut self.working);
        let in_time = || Instant::now() < end;
        for (place, what) in happened.drain(..) {
            match what {
                // Who comes now comes too late.
                Happened::Rang => drop(self.inbox.take()),
                Happened::Ready | Happened::Gone if working.contains(&place) => {}
                what if in_time() => self.advance(place, what),
                _ => {}
            }
        }
        working.into_iter().take_while(|_| in_time()).for_each(|place| self.advance(place, Happened::Turn));
    }

    /// Parts from those for whom there is nothing more to do, when nothing has happened for so many looks, or to those who have `paused`.
    fn let_go_who_is_done(&mut self, still: u32, paused: impl Fn(usize) -> bool) -> Vec<Connection> {
        let mut gone = Vec::new();
        for place in 0..self.connections.len() {
            let Some(Some(connection)) = self.connections.get(place) else { continue };
            let paused = paused(place);
            let why = if connection.is_done(still >= STILL || paused) {
                None
            } else if (still > STILL || paused && connection.socket().unread() == 0) && !connection.is_sending() {
                Some("the server went in the middle of a request")
            } else {
                continue;
            };
            gone.extend(self.part(place, why));
        }
        gone
    }

    /// Says that nothing more is to come. What was sent may still be on the way.
    fn part(&mut self, place: usize, why: Option<&str>) -> Option<Connection> {
        let connection = self.release(place, why)?;
        connection.socket().say_no_more();
        Some(connection)
    }
}
