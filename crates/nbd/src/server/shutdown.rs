//! The end of a server: what has arrived is done and replied to, within five seconds, and everybody is disconnected.

use super::connection::Connection;
use super::event_loop::{EventLoop, Ready};
use std::time::{Duration, Instant};

/// How long it takes at most, but for one request of a storage.
const LIMIT: Duration = Duration::from_secs(5);
/// Clients in the middle of a request are not waited for when nothing has happened for so long.
const QUIET: Duration = Duration::from_millis(100);
/// How long the last replies may be on the way, where all of the time was taken by what they answer.
const DELIVERY: Duration = Duration::from_millis(200);

impl EventLoop<'_> {
    pub(super) fn shut_down(&mut self, ready: &mut Vec<Ready>) {
        let deadline = Instant::now() + LIMIT;
        (self.deadline, self.may_coalesce) = (Some(deadline), false);
        // Nobody is waited for to send more.
        self.due = (0..self.slots.len()).collect();
        let mut ended = Vec::new();
        while self.slots.iter().any(Option::is_some) && Instant::now() < deadline {
            self.poll(ready, Some(if self.due.is_empty() { QUIET } else { Duration::ZERO }));
            let quiet = ready.is_empty() && self.due.is_empty();
            self.attend(ready);
            ended.extend(self.disconnect_the_done(quiet));
        }
        for place in 0..self.slots.len() {
            ended.extend(self.disconnect(place, Some("the server shut down before it was done with it")));
        }
        // Closing a socket on which something lies unread resets the connection, and what is on the way is lost.
        let delivered_by = deadline.max(Instant::now() + DELIVERY);
        while Instant::now() < delivered_by && ended.iter().any(|connection| connection.socket().has_undelivered()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Disconnects those of whom all that has arrived is done, and, where it is `quiet`, those who stopped in the middle of a request.
    fn disconnect_the_done(&mut self, quiet: bool) -> Vec<Connection> {
        let mut ended = Vec::new();
        for place in 0..self.slots.len() {
            let Some(Some(slot)) = self.slots.get(place) else { continue };
            if slot.connection.is_done() {
                ended.extend(self.disconnect(place, None));
            } else if quiet && !slot.connection.is_sending() {
                ended.extend(self.disconnect(place, Some("the server shut down in the middle of a request")));
            }
        }
        ended
    }

    /// Says that nothing more is to come. What was sent may still be on the way.
    fn disconnect(&mut self, place: usize, why: Option<&str>) -> Option<Connection> {
        let connection = self.release(place, why)?;
        connection.socket().say_no_more();
        Some(connection)
    }
}
