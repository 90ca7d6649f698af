//! The threads of the C library that perform the I/O of all jobs with engine `posixaio`, and the part of their CPU time that each
//! job has.
//!
//! glibc starts such a thread when all others are occupied, and lets one end that finds nothing to do, also amid a job. What ended
//! threads used is only known of the whole process: it is what the process used and its living threads did not. A new thread has
//! the name of the one that starts it, a job or another such thread: so all of these have one name, by which the meters know them.

use crate::proc_files::numbered;
use model::account::LIBRARY_THREADS;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::CString;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sys::clock::{ThreadClock, own_thread_nanos, process_nanos};
use sys::schedule;

const THREADS: &str = "/proc/self/task";

/// CPU time of threads that ended, are none of the library's, and called [`ended_beside`].
static ENDED_BESIDE: AtomicU64 = AtomicU64::new(0);

/// The calling thread ends soon, while jobs may run, and is none of the library's.
pub(crate) fn ended_beside() {
    ENDED_BESIDE.fetch_add(own_thread_nanos(), Ordering::Relaxed);
}

#[derive(Debug)]
struct Threads {
    /// Jobs that use them now, and their own threads.
    users: BTreeMap<u64, u32>,
    next: u64,
    /// Whether a thread of the process has the name, by its number. A name is read once: that takes most of the time.
    named: Option<HashMap<u32, bool>>,
    /// CPU time of all threads of the library when it was divided last, from an arbitrary origin.
    divided: i64,
    /// The part of a job that has used them from the origin on, in nanoseconds.
    each: i64,
}

static STATE: Mutex<Threads> =
    Mutex::new(Threads { users: BTreeMap::new(), next: 0, named: None, divided: 0, each: 0 });

fn state() -> MutexGuard<'static, Threads> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    /// All living threads of the process, each with whether it is one of the library's.
    fn living(&mut self) -> Vec<(u32, bool)> {
        let before = self.named.take().unwrap_or_default();
        let users: BTreeSet<u32> = self.users.values().copied().collect();
        let mut named = HashMap::new();
        for thread in numbered(Path::new(THREADS)) {
            let known = before.get(&thread).copied();
            named.insert(thread, known.unwrap_or_else(|| has_name(thread)));
        }
        let all = named.iter().map(|(thread, named)| (*thread, *named && !users.contains(thread))).collect();
        self.named = Some(named);
        all
    }

    /// CPU time of the library's threads, from an arbitrary origin.
    fn now(&mut self) -> i64 {
        let (mut all, mut of_library) = (0_u64, 0_u64);
        for (thread, is_one) in self.living() {
            // One that just ended is among the ended ones.
            let nanos = ThreadClock::of_thread(thread).nanos().unwrap_or(0);
            all += nanos;
            of_library += if is_one { nanos } else { 0 };
        }
        let process = process_nanos(std::process::id()).unwrap_or(all);
        let ended = process.wrapping_sub(all).cast_signed();
        let beside = ENDED_BESIDE.load(Ordering::Relaxed).cast_signed();
        of_library.cast_signed().saturating_add(ended).saturating_sub(beside)
    }

    /// Divides what the threads used since the last time among the jobs that use them.
    fn divide(&mut self) {
        let now = self.now();
        let used = now - std::mem::replace(&mut self.divided, now);
        if let Ok(users @ 1..) = i64::try_from(self.users.len()) {
            self.each = self.each.saturating_add(used / users);
        }
    }
}

fn has_name(thread: u32) -> bool {
    let name = fs::read(Path::new(THREADS).join(thread.to_string()).join("comm")).unwrap_or_default();
    name.trim_ascii_end() == LIBRARY_THREADS.as_bytes()
}

/// CPU time of the library's threads in nanoseconds, from an arbitrary origin.
pub(crate) fn nanos() -> i64 {
    state().now()
}

/// The library's threads that live.
pub(crate) fn thread_ids() -> Vec<u32> {
    state().living().into_iter().filter(|(_, is_one)| *is_one).map(|(thread, _)| thread).collect()
}

/// What a job has of the threads: an equal part of their CPU time with each job that uses them at the same time, because they do not
/// say whose I/O they perform.
#[derive(Debug)]
pub(crate) struct Share {
    number: u64,
    from: i64,
    /// Its part, when it has left.
    at_last: Mutex<Option<u64>>,
}

impl Share {
    /// The calling thread uses the threads of the library until it leaves.
    ///
    /// # Errors
    /// When the thread cannot be named.
    pub(super) fn join() -> io::Result<Arc<Self>> {
        rustix::thread::set_name(&CString::new(LIBRARY_THREADS)?)?;
        let mut all = state();
        all.divide();
        let number = all.next;
        all.next += 1;
        let own = schedule::thread_id().unsigned_abs();
        all.users.insert(number, own);
        if let Some(named) = &mut all.named {
            named.insert(own, true);
        }
        // From here on its time is not the library's.
        all.divided = all.now();
        Ok(Arc::new(Self { number, from: all.each, at_last: Mutex::new(None) }))
    }

    /// The job uses them no longer.
    pub(super) fn leave(&self) {
        let nanos = self.nanos();
        self.at_last.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(nanos);
        let mut all = state();
        if let Some(own) = all.users.remove(&self.number) {
            let _ = rustix::thread::set_name(c"iotoll-done");
            if let Some(named) = &mut all.named {
                named.remove(&own);
            }
            all.divided = all.now();
        }
    }

    /// Its part so far, in nanoseconds.
    pub(crate) fn nanos(&self) -> u64 {
        if let Some(nanos) = *self.at_last.lock().unwrap_or_else(PoisonError::into_inner) {
            return nanos;
        }
        let mut all = state();
        all.divide();
        // Threads go on while their clocks are read: a part may seem to shrink by that.
        (all.each - self.from).max(0).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use sys::buffer::AlignedBuffer;
    use sys::posix_aio::PosixAio;
    use sys::ring_slots::{Transfer, Way};

    /// Reads /dev/zero by the library until its threads have used this time; returns what they used.
    fn used(least: i64) -> i64 {
        const LENGTH: u32 = 4 << 20;
        let zeros = vec![File::open("/dev/zero").unwrap()];
        let mut aio = PosixAio::new(zeros, AlignedBuffer::zeroed(LENGTH as usize).unwrap(), 1).unwrap();
        let begin = nanos();
        while nanos() - begin < least {
            aio.start(0, &Transfer { way: Way::Read, file: 0, offset: 0, length: LENGTH }).unwrap();
            aio.wait(1, 1);
            aio.reap(|completion| assert_eq!(completion.result, LENGTH.cast_signed()));
        }
        nanos() - begin
    }

    /// Run in a process of its own: other tests have threads that end, and use the library too.
    #[test]
    fn each_user_has_its_part_of_what_the_threads_use_and_nothing_else() {
        const CHILD: &str = "IOTOLL_TEST_LIBRARY_THREADS";
        const MILLIS: i64 = 1_000_000;
        if std::env::var_os(CHILD).is_none() {
            let own = std::env::current_exe().unwrap();
            let name = "engine::posixaio::library_threads::tests::each_user_has_its_part_of_what_the_threads_use_and_nothing_else";
            let child = std::process::Command::new(own).args([name, "--exact", "--nocapture"]).env(CHILD, "1").output();
            let child = child.unwrap();
            let printed = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
            assert!(child.status.success() && printed.contains("1 passed"), "{printed}");
            return;
        }
        let one = Share::join().unwrap();
        let alone = used(60 * MILLIS);
        assert!(!thread_ids().is_empty());
        let near = |share: &Share, expected: i64| {
            let nanos = share.nanos().cast_signed();
            assert!((nanos - expected).abs() < expected / 10 + 3 * MILLIS, "{nanos} {expected}");
        };
        near(&one, alone);
        let begin = own_thread_nanos();
        while own_thread_nanos() - begin < 60_000_000 {}
        // A thread that ends and says so.
        let beside = || {
            let begin = own_thread_nanos();
            while own_thread_nanos() - begin < 60_000_000 {}
            ended_beside();
        };
        std::thread::spawn(beside).join().unwrap();
        near(&one, alone);
        let other = Share::join().unwrap();
        let both = used(60 * MILLIS);
        near(&other, both / 2);
        near(&one, alone + both / 2);
        one.leave();
        let left = one.nanos();
        let rest = used(30 * MILLIS);
        assert_eq!(one.nanos(), left);
        near(&other, both / 2 + rest);
        other.leave();
        // Idle threads of glibc end after a second: what they used stays known.
        let before = nanos();
        let begun = std::time::Instant::now();
        while !thread_ids().is_empty() {
            assert!(begun.elapsed().as_secs() < 10);
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        assert!((nanos() - before).abs() < 10 * MILLIS, "{before} {}", nanos());
    }
}
