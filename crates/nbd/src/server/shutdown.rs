//! Shutdown of an event loop: executes and replies to what has arrived, within five seconds, then disconnects every
//! client.

use super::connection::Connection;
use super::event_loop::{EventLoop, Ready};
use std::time::{Duration, Instant};

/// Time limit, exceeded at most by the work of a worker that has begun.
const LIMIT: Duration = Duration::from_secs(5);
/// Clients in the middle of a request are disconnected after this long without any event.
const QUIET: Duration = Duration::from_millis(100);
/// Minimum time for the last replies to reach the clients, if executing the requests took the whole time limit.
const DELIVERY: Duration = Duration::from_millis(200);

impl EventLoop<'_> {
    pub(super) fn shut_down(&mut self, ready: &mut Vec<Ready>) {
        let deadline = Instant::now() + LIMIT;
        (self.deadline, self.may_coalesce) = (Some(deadline), false);
        // Advance every connection once, without waiting for its client to send more.
        self.runnable = (0..self.slots.len()).collect();
        let mut ended = Vec::new();
        while self.slots.iter().any(Option::is_some) && Instant::now() < deadline {
            self.poll(ready, Some(if self.runnable.is_empty() { QUIET } else { Duration::ZERO }));
            let quiet = ready.is_empty() && self.runnable.is_empty();
            self.attend(ready);
            ended.extend(self.disconnect_the_done(quiet));
        }
        for place in 0..self.slots.len() {
            ended.extend(self.disconnect(place, Some("the server shut down before its requests finished")));
        }
        // Closing a socket with unread data resets the connection, which loses replies that have not been delivered.
        let delivered_by = deadline.max(Instant::now() + DELIVERY);
        while Instant::now() < delivered_by && ended.iter().any(|connection| connection.socket().has_unacknowledged()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Disconnects clients whose requests are all finished and, when `quiet`, those that stopped in the middle of a
    /// request.
    fn disconnect_the_done(&mut self, quiet: bool) -> Vec<Connection> {
        let mut ended = Vec::new();
        for place in 0..self.slots.len() {
            let Some(Some(slot)) = self.slots.get(place) else { continue };
            if slot.connection.is_done() {
                ended.extend(self.disconnect(place, None));
            } else if quiet && !slot.connection.is_sending() && !slot.connection.is_awaiting() {
                ended.extend(self.disconnect(place, Some("the server shut down in the middle of a request")));
            }
        }
        ended
    }

    /// Shuts down sending. Replies may not have been delivered yet.
    fn disconnect(&mut self, place: usize, why: Option<&str>) -> Option<Connection> {
        let connection = self.release(place, why)?;
        connection.socket().shutdown_write();
        Some(connection)
    }
}
