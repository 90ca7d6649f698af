//! Limits the log lines that one source causes, so that a client can neither hide the lines about others nor fill a disk.
//! What is not shown is counted.

use super::Observer;
use crate::lock;
use crate::socket::Peer;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Lines of one source that are shown in a period.
const LINES: u32 = 20;
/// The period, from the first line.
const PERIOD: Duration = Duration::from_secs(10);
/// Sources that are counted separately.
const SOURCES: usize = 256;

/// The source of lines about no client, and that of lines beyond [`SOURCES`].
const SERVER: &str = "about the server itself";
const OTHERS: &str = "about clients from other addresses";

/// The log of a server.
pub(super) struct Log<'a> {
    pub(super) observer: &'a dyn Observer,
    sources: Mutex<HashMap<Cow<'static, str>, Period>>,
}

/// The lines of a source since the first one.
#[derive(Clone, Copy, Debug)]
struct Period {
    begun: Instant,
    shown: u32,
    hidden: u64,
}

/// Who causes a line about a client. Ports and process IDs are left out, because a new connection has new ones.
fn source(peer: Peer) -> Cow<'static, str> {
    match peer {
        Peer::Tcp(address) => format!("about clients from {}", address.ip().to_canonical()).into(),
        Peer::Unix(_) => "about clients on the Unix socket".into(),
    }
}

impl<'a> Log<'a> {
    pub(super) fn new(observer: &'a dyn Observer) -> Self {
        Self { observer, sources: Mutex::default() }
    }

    /// A line about the server itself.
    pub(super) fn note(&self, text: &str) {
        self.put(SERVER.into(), text.to_owned(), Instant::now());
    }

    /// A line about a client.
    pub(super) fn note_of(&self, peer: Peer, what: &str) {
        self.put(source(peer), format!("{peer}{what}"), Instant::now());
    }

    /// Reports what has not been shown so far.
    pub(super) fn finish(&self) {
        let sources = std::mem::take(&mut *lock(&self.sources));
        sources.into_iter().filter_map(hidden).for_each(|line| self.observer.note(&line));
    }

    fn put(&self, source: Cow<'static, str>, line: String, now: Instant) {
        let mut lines = Vec::new();
        let mut sources = lock(&self.sources);
        let ended = sources.extract_if(|_, period| now.saturating_duration_since(period.begun) >= PERIOD);
        lines.extend(ended.filter_map(hidden));
        let known = sources.contains_key(&source) || sources.len() < SOURCES;
        let source = if known { source } else { OTHERS.into() };
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
}

/// The line that reports what has not been shown.
fn hidden((source, Period { hidden, .. }): (Cow<str>, Period)) -> Option<String> {
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
            log.put(source(peer), format!("{peer}: bad"), begun);
        }
        log.put(source(Peer::Unix(Some(1))), "other".to_owned(), begun);
        let shown = lines.0.lock().unwrap().len();
        assert_eq!(shown, LINES as usize + 1);
        log.put(SERVER.into(), "later".to_owned(), begun + PERIOD);
        let texts = std::mem::take(&mut *lines.0.lock().unwrap());
        assert_eq!(texts[shown..].len(), 2, "{texts:?}");
        assert!(texts[shown].starts_with("980 more lines about clients from 127.0.0.1 not shown"), "{texts:?}");
        for address in 0..10_000_u32 {
            log.put(Ipv4Addr::from(address).to_string().into(), "bad".to_owned(), begun + PERIOD);
        }
        assert!(lock(&log.sources).len() <= SOURCES + 1);
        log.finish();
        let shown = lines.0.lock().unwrap();
        let counted: u64 = shown.iter().filter_map(|line| line.split_once(" more lines")?.0.parse::<u64>().ok()).sum();
        let whole = shown.iter().filter(|line| *line == "bad").count() as u64;
        assert_eq!(whole + counted, 10_000, "{shown:?}");
    }
}
