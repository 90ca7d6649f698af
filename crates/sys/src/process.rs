//! Waits for a child process and reports its exit and CPU time; per-process limits and signals, and per-thread descriptor tables.

use std::io;
use std::process::Child;

/// The exit of a child, and the CPU time of it and of its descendants that were waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Exit status or signal.
    pub how: How,
    /// User and system time in nanoseconds, with the kernel's resolution of a microsecond.
    pub cpu_nanos: u64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It exited with this status.
    Status(i32),
    /// This signal terminated it.
    Signal(i32),
}

/// Waits for `child` like [`Child::wait`], and returns its resource usage.
pub fn wait(child: Child) -> io::Result<Ended> {
    let process = i32::try_from(child.id()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage, which the kernel then fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both out-pointers are valid; the child is ours, and `Child` does not reap it by itself.
        if unsafe { libc::wait4(process, &mut status, 0, &mut usage) } == process {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let how = if libc::WIFSIGNALED(status) {
        How::Signal(libc::WTERMSIG(status))
    } else {
        How::Status(libc::WEXITSTATUS(status))
    };
    Ok(Ended { how, cpu_nanos: (micros(usage.ru_utime) + micros(usage.ru_stime)) * 1000 })
}

/// What the kernel counts for the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnUsage {
    /// CPU time in user mode, in nanoseconds.
    pub user_nanos: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub system_nanos: u64,
    /// Context switches, voluntary and not.
    pub context_switches: u64,
    /// Page faults that waited for storage.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
}

/// The usage of the calling thread; `None` if the kernel does not report it.
pub fn own_usage() -> Option<OwnUsage> {
    // SAFETY: all-zero is a valid rusage, which the kernel then fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the out-pointer is valid.
    let read = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) } == 0;
    read.then(|| OwnUsage {
        user_nanos: micros(usage.ru_utime) * 1000,
        system_nanos: micros(usage.ru_stime) * 1000,
        context_switches: usage.ru_nvcsw.unsigned_abs() + usage.ru_nivcsw.unsigned_abs(),
        major_faults: usage.ru_majflt.unsigned_abs(),
        minor_faults: usage.ru_minflt.unsigned_abs(),
    })
}

fn micros(time: libc::timeval) -> u64 {
    time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_usec.unsigned_abs()
}

/// Undoes what a parent may have left for signals, because exec keeps it: blocked signals, and ignored ones. Where SIGCHLD is
/// ignored, no child can be waited for; what a measured command ignores, cannot end it. SIGHUP stays as it is, for nohup(1).
pub fn reset_inherited_signals() {
    let defaults =
        [libc::SIGCHLD, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGALRM, libc::SIGUSR1, libc::SIGUSR2];
    for signal in defaults {
        // SAFETY: the default action runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: all-zero is storage for a set, which sigemptyset then makes a valid one.
    let mut none: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours.
    unsafe { libc::sigemptyset(&mut none) };
    // SAFETY: the set is valid, and the earlier mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) };
}

/// From now on, an access to a mapped file that the kernel cannot serve ends this process with a line that says so, instead of with a
/// bare signal. What the process has changed is undone as after a kill.
pub fn explain_bus_errors() {
    extern "C" fn explain(_: libc::c_int) {
        const WHY: &str = "iotoll: a mapped file (ioengine=mmap) has become shorter, its file system is full, or its storage has failed \
             (SIGBUS); leave the file alone while the job runs, or use another engine for an error of one I/O\n";
        // SAFETY: the bytes are static; write and _exit may be called by a signal handler.
        unsafe {
            libc::write(libc::STDERR_FILENO, WHY.as_ptr().cast(), WHY.len());
            libc::_exit(1);
        }
    }
    let handler: extern "C" fn(libc::c_int) = explain;
    // SAFETY: the handler only calls what a signal handler may call, and does not return.
    unsafe { libc::signal(libc::SIGBUS, handler as libc::sighandler_t) };
}

/// Raises this process's limit of open files to its hard limit.
pub fn raise_open_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it fails, opening a file will report it.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Gives the calling thread its own copy of the file descriptor table. From then on, descriptors that this thread opens
/// and closes affect no other thread, and all of them are closed when it ends.
pub fn unshare_descriptors() -> io::Result<()> {
    // SAFETY: descriptors that other threads own stay open in their table. In this thread's table their numbers still
    // refer to the same files, and this code passes no descriptor between threads after this call.
    Ok(unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn an_unshared_descriptor_table_is_private_to_its_thread() {
        use std::os::fd::AsRawFd;
        let opened = std::thread::spawn(|| {
            unshare_descriptors().unwrap();
            let file = std::fs::File::open("/proc/self/stat").unwrap();
            let number = file.as_raw_fd();
            let here = std::fs::read_link(format!("/proc/thread-self/fd/{number}")).unwrap();
            let elsewhere = std::fs::read_link(format!("/proc/self/fd/{number}"));
            (here, elsewhere.ok())
        });
        let (here, elsewhere) = opened.join().unwrap();
        assert_ne!(Some(here), elsewhere);
    }

    #[test]
    fn status_signal_and_cpu_time_of_descendants() {
        let script = "sh -c 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done'; exit 7";
        let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let ended = wait(child).unwrap();
        assert_eq!(ended.how, How::Status(7));
        assert!(ended.cpu_nanos > 1_000_000, "{ended:?}");
        let child = Command::new("sh").args(["-c", "kill -9 $$"]).spawn().unwrap();
        assert_eq!(wait(child).unwrap().how, How::Signal(9));
    }
}
