//! Limits the log lines that one source causes, so that a client can neither hide the lines about others nor fill a disk.
//! What is not shown is counted.

use super::Observer;
use crate::socket::Peer;
use std::collections::HashMap;
use std::fmt::{Display, Formatter, Result as Formatted};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lines of one source that are shown in a period.
pub(crate) const LINES: u32 = 20;
/// The period, from the first line.
const PERIOD: Duration = Duration::from_secs(10);
/// Sources that are counted separately.
const SOURCES: usize = 256;

/// The log of a server.
pub(super) struct Log<'a> {
    observer: &'a dyn Observer,
    sources: Mutex<HashMap<Source, Period>>,
}

/// Who causes a line. Ports and process IDs are left out, because a new connection has new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    Server,
    Address(IpAddr),
    UnixSocket,
    /// Beyond [`SOURCES`].
    Others,
}

/// The lines of a source since the first one.
#[derive(Clone, Copy, Debug)]
struct Period {
    begun: Instant,
    shown: u32,
    hidden: u64,
}

impl From<Peer> for Source {
    fn from(peer: Peer) -> Self {
        match peer {
            Peer::Tcp(address) => Self::Address(address.ip().to_canonical()),
            Peer::Unix(_) => Self::UnixSocket,
        }
    }
}

impl Display for Source {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Formatted {
        match self {
            Self::Server => formatter.write_str("about the server itself"),
            Self::Address(address) => write!(formatter, "about clients from {address}"),
            Self::UnixSocket => formatter.write_str("about clients on the Unix socket"),
            Self::Others => formatter.write_str("about clients from other addresses"),
        }
    }
}

impl<'a> Log<'a> {
    pub(super) fn new(observer: &'a dyn Observer) -> Self {
        Self { observer, sources: Mutex::default() }
    }

    pub(super) fn observer(&self) -> &'a dyn Observer {
        self.observer
    }

    /// A line about the server itself.
    pub(super) fn note(&self, text: &str) {
        self.put(Source::Server, text.to_owned(), Instant::now());
    }

    /// A line about a client.
    pub(super) fn note_of(&self, peer: Peer, what: &str) {
        self.put(peer.into(), format!("{peer}{what}"), Instant::now());
    }

    /// Reports what has not been shown so far.
    pub(super) fn finish(&self) {
        let sources = std::mem::take(&mut *self.lock());
        sources.into_iter().filter_map(hidden).for_each(|line| self.observer.note(&line));
    }

    fn put(&self, source: Source, line: String, now: Instant) {
        let mut lines = Vec::new();
        let mut sources = self.lock();
        let ended = sources.extract_if(|_, period| now.saturating_duration_since(period.begun) >= PERIOD);
        lines.extend(ended.filter_map(hidden));
        let known = sources.contains_key(&source) || sources.len() < SOURCES;
        let source = if known { source } else { Source::Others };
        let period = sources.entry(source).or_insert(Period { begun: now, shown: 0, hidden: 0 });
        if period.shown < LINES {
            period.shown += 1;
            lines.push(line);
        } else {
            period.hidden += 1;
        }
        drop(sources);
        lines.iter().for_each(|line| self.observer.note(line));
    }

    /// No code panics while it changes the map, so a poisoned lock still protects valid data.
    fn lock(&self) -> MutexGuard<'_, HashMap<Source, Period>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The line that reports what has not been shown.
fn hidden((source, Period { hidden, .. }): (Source, Period)) -> Option<String> {
    let limit = PERIOD.as_secs();
    (hidden > 0).then(|| format!("{hidden} more lines {source} not shown (at most {LINES} within {limit} s)"))
}

#[cfg(test)]
mod tests {
    use super::super::Counters;
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Observer for Lines {
        fn note(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }

        fn so_far(&self, _: &Counters) {}
    }

    /// Every line is shown or counted, one source does not use up the lines of another, and memory is limited.
    #[test]
    fn a_source_with_many_lines_is_shown_in_part_and_counted() {
        let lines = Lines::default();
        let log = Log::new(&lines);
        let begun = Instant::now();
        for port in 0..1000 {
            let peer = Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            log.put(peer.into(), format!("{peer}: bad"), begun);
        }
        log.put(Peer::Unix(Some(1)).into(), "other".to_owned(), begun);
        let shown = lines.0.lock().unwrap().len();
        assert_eq!(shown, LINES as usize + 1);
        log.put(Source::Server, "later".to_owned(), begun + PERIOD);
        let texts = std::mem::take(&mut *lines.0.lock().unwrap());
        assert_eq!(texts[shown..].len(), 2, "{texts:?}");
        assert!(texts[shown].starts_with("980 more lines about clients from 127.0.0.1 not shown"), "{texts:?}");
        for address in 0..10_000_u32 {
            log.put(Source::Address(Ipv4Addr::from(address).into()), "bad".to_owned(), begun + PERIOD);
        }
        assert!(log.lock().len() <= SOURCES + 1);
        log.finish();
        let shown = lines.0.lock().unwrap();
        let counted: u64 = shown.iter().filter_map(|line| line.split_once(" more lines")?.0.parse::<u64>().ok()).sum();
        let whole = shown.iter().filter(|line| *line == "bad").count() as u64;
        assert_eq!(whole + counted, 10_000, "{shown:?}");
    }
}
