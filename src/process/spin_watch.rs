//! Watches a real-time thread that reads other processes' entries in `/proc` and waits for children. If it spins in the kernel, other
//! threads get the processor for a moment.
//!
//! When a thread or a process has ended and is released, the kernel drops its cached entries of `/proc/PID`. Who looks up such an entry
//! meanwhile, or releases the process above it by waiting for it, waits by spinning (`shrink_dcache_parent` in `fs/dcache.c`, seen with Linux
//! 6.18). If that thread is real-time and has displaced the thread that drops the entries, both wait for ever, and no signal ends it, not even
//! SIGKILL. A guard did so for forty minutes, beside another real-time process that read the same job's entries, and left the machine 5 % of
//! its processors. So a thread with a higher priority notices a call that does not end, and makes the caller an ordinary thread for a moment,
//! again and again: the displaced thread then drops its entries, and the call ends.
//!
//! About every second wait for a process of many threads spins: its last thread reports the process's end before it drops its own entries,
//! and the report is what wakes the waiting thread.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, Thread};
use std::time::Duration;

use nix::unistd::{self, Pid};

use crate::process::attributes::Scheduling;
use crate::process::limits;

/// The time between two looks at a call. Usually a call takes microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A read that takes more looks than this spins or waits for other threads. It may also wait for memory, and then it needs its priority.
const READ_SPINS_AFTER: u32 = 10;

/// The number of looks for which a read gives the processor away each time. A wait for a child does so until it has ended, because it needs
/// no memory.
const READ_YIELDS_FOR: u32 = 5;

thread_local! {
    /// The calls of this thread, and the thread that watches it.
    static WATCH: OnceCell<(Arc<Calls>, Thread)> = const { OnceCell::new() };
}

/// The calls of the watched thread.
#[derive(Default)]
struct Calls {
    /// Incremented at the beginning and at the end of each call: odd during a call.
    count: AtomicU64,
    /// Whether the present or next call waits for a child.
    is_wait: AtomicBool,
}

impl Calls {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }
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
    let (thread, calls) = (unistd::gettid(), Arc::new(Calls::default()));
    let counted = Arc::clone(&calls);
    let watcher = spawn_above("neli-watch", scheduling, || (), move |()| watch(thread, scheduling, &counted))?;
    WATCH.with(|watch| drop(watch.set((calls, watcher))));
    Ok(())
}

/// Starts a thread that runs for the life of the process, with a priority above this scheduling if that is real-time. When this returns, the
/// thread has that priority, because with the same one it might never run; its stack is in memory; and it has called `prepare`, whose result `run`
/// gets.
///
/// # Errors
///
/// No thread can be started.
pub(crate) fn spawn_above<T>(
    name: &str,
    scheduling: Scheduling,
    prepare: impl FnOnce() -> T + Send + 'static,
    run: impl FnOnce(T) -> Infallible + Send + 'static,
) -> io::Result<Thread> {
    let (begins, begun) = mpsc::channel();
    let started = thread::Builder::new().name(name.to_owned()).stack_size(limits::STACK).spawn(move || {
        // If a higher priority is not allowed, the thread can still run on another processor, if there is one.
        if let Some(higher) = scheduling.next_higher().filter(|_| scheduling.is_real_time()) {
            let _ = higher.set_for(Pid::from_raw(0));
        }
        limits::use_stack();
        let prepared = prepare();
        drop::<mpsc::Sender<()>>(begins);
        run(prepared)
    })?;
    let _ = begun.recv();
    Ok(started.thread().clone())
}

/// Reads data about another process in `/proc`.
pub(crate) fn watched<T>(read: impl FnOnce() -> T) -> T {
    call(false, read)
}

/// Waits for a child that has ended or stopped, and does not block.
pub(crate) fn watched_wait<T>(wait: impl FnOnce() -> T) -> T {
    call(true, wait)
}

fn call<T>(is_wait: bool, call: impl FnOnce() -> T) -> T {
    WATCH.with(|watch| {
        let Some((calls, watcher)) = watch.get() else { return call() };
        calls.is_wait.store(is_wait, Ordering::Relaxed);
        calls.count.fetch_add(1, Ordering::Release);
        watcher.unpark();
        let result = call();
        calls.count.fetch_add(1, Ordering::Release);
        result
    })
}

/// Watches the `calls` of `thread` for the life of the process. It sleeps while there are none.
#[expect(clippy::disallowed_methods, reason = "it sleeps between two looks, and nothing waits for it")]
fn watch(thread: Pid, scheduling: Scheduling, calls: &Calls) -> Infallible {
    loop {
        thread::park();
        let (mut last, mut unchanged) = (calls.count(), 0);
        while last % 2 == 1 {
            thread::sleep(LOOK_EVERY);
            let now = calls.count();
            unchanged = if now == last { unchanged + 1 } else { 0 };
            last = now;
            let is_wait = calls.is_wait.load(Ordering::Relaxed);
            if unchanged >= if is_wait { 1 } else { READ_SPINS_AFTER } {
                let is_over = || calls.count() != now;
                give_way(thread, scheduling, if is_wait { u32::MAX } else { READ_YIELDS_FOR }, is_over);
                unchanged = 0;
            }
        }
    }
}

/// Makes `thread` an ordinary thread until the call is over, for at most so many looks.
#[expect(clippy::disallowed_methods, reason = "the time is what the other threads get")]
fn give_way(thread: Pid, scheduling: Scheduling, looks: u32, is_over: impl Fn() -> bool) {
    if Scheduling::ordinary().set_for(thread).is_ok() {
        for _ in 0..looks {
            thread::sleep(LOOK_EVERY);
            if is_over() {
                break;
            }
        }
        // It was allowed before, and is from an ordinary thread's scheduling.
        let _ = scheduling.set_for(thread);
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::hint;
    use std::process::Command;

    use harness::wait;
    use neli_kafka::clock;
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
        give_way(unistd::gettid(), own, READ_YIELDS_FOR, || false);
        assert_eq!(Scheduling::current().unwrap(), own);
    }
}
