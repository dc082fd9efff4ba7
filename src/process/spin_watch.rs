//! Watches a real-time thread that reads other processes' entries in `/proc`. If it spins in the kernel, other threads get the processor
//! for a moment.
//!
//! When a process has been waited for, the kernel drops its cached entries of `/proc/PID`. A thread that looks up such an entry meanwhile
//! waits by spinning (`shrink_dcache_parent` in `fs/dcache.c`, seen with Linux 6.18). If that thread is real-time and has displaced the
//! thread that drops the entries, both wait for ever, and no signal ends it, not even SIGKILL. A guard did so for forty minutes, beside
//! another real-time process that read the same job's entries, and left the machine 5 % of its processors. So a thread with a higher
//! priority notices a read that does not end, and makes the reader an ordinary thread for a moment, again and again: the displaced thread then
//! drops its entries, and the read ends.

use std::cell::OnceCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, Thread};
use std::time::Duration;

use nix::unistd::{self, Pid};

use crate::process::scheduling::Scheduling;

/// A read that takes longer than this spins or waits for other threads; a read usually takes microseconds.
const SPINS_AFTER: Duration = Duration::from_millis(10);

/// For how long the processor is given away each time.
const YIELDS_FOR: Duration = Duration::from_millis(5);

/// The thread needs a few hundred bytes of stack.
const STACK: usize = 16 * 1024;

thread_local! {
    /// The watch of this thread.
    static WATCH: OnceCell<SpinWatch> = const { OnceCell::new() };
}

/// The watch over one thread.
struct SpinWatch {
    /// Incremented at the beginning and at the end of each read: odd during a read.
    reads: Arc<AtomicU64>,
    watcher: Thread,
}

/// Watches the calling thread from now on, if it has real-time scheduling.
///
/// # Errors
///
/// Its scheduling can't be read, or no thread can be started. Then it is not watched.
pub(crate) fn watch_this_thread() -> io::Result<()> {
    let scheduling = Scheduling::current()?;
    if !scheduling.is_real_time() {
        return Ok(());
    }
    let (thread, reads) = (unistd::gettid(), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&reads);
    let (begins, begun) = mpsc::channel();
    let watcher = thread::Builder::new().stack_size(STACK).spawn(move || {
        // If a higher priority is not allowed, the watch can still run on another processor, if there is one.
        if let Some(higher) = scheduling.next_higher() {
            let _ = higher.set_for(Pid::from_raw(0));
        }
        drop::<mpsc::Sender<()>>(begins);
        watch(thread, scheduling, &counted)
    })?;
    // This thread waits for the watch to raise its priority, because with the same priority the watch might never run.
    let _ = begun.recv();
    WATCH.with(|watch| drop(watch.set(SpinWatch { reads, watcher: watcher.thread().clone() })));
    Ok(())
}

/// Reads data about another process in `/proc`.
pub(crate) fn watched<T>(read: impl FnOnce() -> T) -> T {
    WATCH.with(|watch| {
        let Some(SpinWatch { reads, watcher }) = watch.get() else { return read() };
        reads.fetch_add(1, Ordering::Relaxed);
        watcher.unpark();
        let result = read();
        reads.fetch_add(1, Ordering::Relaxed);
        result
    })
}

/// Watches the reads of `thread`, which are counted, for the life of the process. It sleeps while there are no reads.
#[expect(clippy::disallowed_methods, reason = "it sleeps between two looks, and nothing waits for it")]
fn watch(thread: Pid, scheduling: Scheduling, reads: &AtomicU64) -> ! {
    loop {
        thread::park();
        let mut last = reads.load(Ordering::Relaxed);
        while last % 2 == 1 {
            thread::sleep(SPINS_AFTER);
            let now = reads.load(Ordering::Relaxed);
            if now == last {
                give_way(thread, scheduling);
            }
            last = now;
        }
    }
}

/// Makes `thread` an ordinary thread for a moment.
#[expect(clippy::disallowed_methods, reason = "the moment is what the other thread gives away")]
fn give_way(thread: Pid, scheduling: Scheduling) {
    if Scheduling::ordinary().set_for(thread).is_ok() {
        thread::sleep(YIELDS_FOR);
        // It was allowed before, and is from an ordinary thread's scheduling.
        let _ = scheduling.set_for(thread);
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::hint;
    use std::process::Command;
    use std::sync::atomic::AtomicBool;

    use harness::wait;
    use neli::program::clock;
    use nix::sched::{CpuSet, sched_setaffinity};

    use super::*;

    /// Restricts this thread to the first processor, with this priority.
    fn run_on_first(priority: i32) -> io::Result<()> {
        let mut first = CpuSet::new();
        first.set(0)?;
        sched_setaffinity(Pid::from_raw(0), &first)?;
        Scheduling::real_time(priority).set_for(Pid::from_raw(0))
    }

    /// A reader that spins until another thread with a lower priority on the same processor has finished the work that the reader waits
    /// for.
    #[test]
    fn a_spinning_read_yields_the_processor() {
        if !unistd::geteuid().is_root() {
            return harness::not_tested("only root may schedule in real time");
        }
        let (is_reading, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        let (wake, woken) = mpsc::channel();
        let (is_ready, ready) = mpsc::channel();
        thread::scope(|scope| {
            let is_done = &is_done;
            scope.spawn(move || {
                run_on_first(3).unwrap();
                is_ready.send(()).unwrap();
                woken.recv().unwrap();
                is_done.store(true, Ordering::SeqCst);
            });
            ready.recv().unwrap();
            let is_reading = &is_reading;
            scope.spawn(move || {
                run_on_first(5).unwrap();
                watch_this_thread().unwrap();
                let begun = clock::now();
                watched(|| {
                    is_reading.store(true, Ordering::SeqCst);
                    while !is_done.load(Ordering::SeqCst) && clock::now().since(begun) < Duration::from_secs(5) {
                        hint::spin_loop();
                    }
                });
                assert!(is_done.load(Ordering::SeqCst), "it has spun for 5 s");
                // At this moment the watch may have lowered the thread's priority.
                wait::until_true("its own priority", || Scheduling::current().unwrap().priority == 5);
            });
            while !is_reading.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            wake.send(()).unwrap();
        });
    }

    /// A guard of an ordinary user may schedule in real time by `RLIMIT_RTPRIO` alone. The test executes itself without `CAP_SYS_NICE`, and
    /// there an ordinary thread stands for the guard's: not every machine lets a test raise that limit.
    #[test]
    fn a_thread_without_cap_sys_nice_gets_its_scheduling_back() {
        const WITHOUT: &str = "NELI_TEST_WITHOUT_CAP_SYS_NICE";
        if unistd::geteuid().is_root() && env::var_os(WITHOUT).is_none() {
            let name = "process::spin_watch::tests::a_thread_without_cap_sys_nice_gets_its_scheduling_back";
            let mut command = Command::new("setpriv");
            command.args(["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--"]).arg(env::current_exe().unwrap());
            let run = command.args([name, "--exact"]).env(WITHOUT, "1").output();
            let run = run.expect("setpriv is part of util-linux: apt-get install util-linux");
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
            return;
        }
        let own = Scheduling::current().unwrap();
        give_way(unistd::gettid(), own);
        assert_eq!(Scheduling::current().unwrap(), own);
    }
}
