//! Watches a real-time thread. If it runs on for long without a wait, other threads get the processor for a moment, again and again.
//!
//! Two kinds of system calls run on until another thread has run, and no signal ends them, not even SIGKILL. If the caller is real-time and has
//! displaced that thread, both wait for ever, or until the kernel gives ordinary threads their 5 % of a processor. So a thread with a higher priority
//! notices this, and makes the caller an ordinary thread for most of the time.
//!
//! - A call that needs memory, at a memory limit: the kernel tries again and again until a process that it has killed for it has run to its end
//!   (`try_charge_memcg` in `mm/memcontrol.c`). The guards of two leaking jobs kept two processors for two seconds.
//! - A look-up of an entry in `/proc/PID`, or a wait for that process, while the kernel drops its cached entries of it (`shrink_dcache_parent` in
//!   `fs/dcache.c`, seen with Linux 6.18). A guard did so for forty minutes, beside another real-time process that read the same job's
//!   entries. About every second wait for a process of many threads spins: its last thread reports the process's end before it drops its own
//!   entries, and the report is what wakes the waiting thread.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::{self, Pid};

use crate::process::attributes::Scheduling;
use crate::process::system::Shared;
use crate::process::{limits, locked};

/// The time between two looks at the thread. Usually it waits again after microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A thread that takes more looks than this for one step spins.
const STEP_SPINS_AFTER: u32 = 10;

/// The same of a wait for a child, which takes a handover's time, and needs no memory.
const WAIT_SPINS_AFTER: u32 = 1;

/// The number of looks for which a spinning thread gives the processor away between two looks.
const YIELDS_FOR: u32 = 5;

thread_local! {
    /// What this thread does, if it is watched.
    static WATCHED: OnceCell<Arc<Watched>> = const { OnceCell::new() };
}

/// It waits for events.
const IDLE: u8 = 0;
/// It does anything else.
const BUSY: u8 = 1;
/// It waits for a child that has ended or stopped.
const REAPING: u8 = 2;

/// A watched thread.
struct Watched {
    thread: Pid,
    scheduling: Scheduling,
    /// Neither thread needs memory for it, also while a child shares the pages of this process.
    steps: Shared<Steps>,
    /// Wakes the thread that watches.
    wake: EventFd,
}

/// What it does.
#[derive(Default)]
struct Steps {
    /// Incremented with each step that it begins.
    count: AtomicU64,
    /// [`IDLE`], [`BUSY`] or [`REAPING`].
    doing: AtomicU8,
    /// Is held by the thread that has changed the watched one's scheduling, until it has changed it back.
    scheduling_lock: Mutex<()>,
}

impl Steps {
    fn begin(&self, doing: u8) {
        self.doing.store(doing, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
    }

    fn is_idle(&self) -> bool {
        self.doing.load(Ordering::Relaxed) == IDLE
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }
}

/// Watches the calling thread from now on, if it has real-time scheduling, by a thread that calls `prepare` first.
///
/// # Errors
///
/// Its scheduling can't be read, no thread can be started, or there is no free descriptor. Then it is not watched.
pub(crate) fn watch_this_thread(prepare: fn()) -> io::Result<()> {
    let scheduling = Scheduling::current()?;
    if !scheduling.is_real_time() {
        return Ok(());
    }
    let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?;
    let steps = Shared::new(Steps { doing: BUSY.into(), ..Steps::default() });
    let watched = Arc::new(Watched { thread: unistd::gettid(), scheduling, steps, wake });
    let of_watch = Arc::clone(&watched);
    spawn_above("neli-watch", scheduling, prepare, move |()| watch(&of_watch))?;
    WATCHED.with(|this| drop(this.set(watched)));
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
) -> io::Result<()> {
    let (begins, begun) = mpsc::channel();
    limits::small_thread(name).spawn(move || {
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
    Ok(())
}

/// This thread waits for events until [`end_pause`].
pub(crate) fn begin_pause() {
    WATCHED.with(|this| this.get().iter().for_each(|watched| watched.steps.begin(IDLE)));
}

/// This thread has got an event.
pub(crate) fn end_pause() {
    WATCHED.with(|this| {
        if let Some(watched) = this.get() {
            watched.steps.begin(BUSY);
            // It can't fail for a descriptor of our own.
            let _ = watched.wake.write(1);
        }
    });
}

/// Reads data about another process in `/proc`. Many reads that are not long are no reason to give the processor away.
pub(crate) fn watched<T>(read: impl FnOnce() -> T) -> T {
    step(BUSY, read)
}

/// Waits for a child that has ended or stopped, and does not block.
pub(crate) fn watched_wait<T>(wait: impl FnOnce() -> T) -> T {
    step(REAPING, wait)
}

fn step<T>(doing: u8, step: impl FnOnce() -> T) -> T {
    WATCHED.with(|this| {
        let Some(watched) = this.get() else { return step() };
        watched.steps.begin(doing);
        let result = step();
        watched.steps.begin(BUSY);
        result
    })
}

/// Runs `fork` while this thread has this scheduling. A child inherits it, and needs memory before it can change anything.
pub(crate) fn fork_with<T>(scheduling: Scheduling, fork: impl FnOnce() -> T) -> T {
    let this_thread = Pid::from_raw(0);
    WATCHED.with(|this| {
        let watched = this.get();
        // The watch may have changed the present scheduling.
        let own = watched.map_or_else(Scheduling::current, |watched| Ok(watched.scheduling));
        let _lock = watched.map(|watched| {
            watched.steps.begin(BUSY);
            locked(&watched.steps.scheduling_lock)
        });
        // If it fails, the child changes its own.
        let _ = scheduling.set_for(this_thread);
        let result = fork();
        // It was allowed before.
        let _ = own.map(|own| own.set_for(this_thread));
        result
    })
}

/// This thread is not watched any more: its scheduling is its own.
pub(crate) fn end_watch() {
    WATCHED.with(|this| {
        if let Some(watched) = this.get() {
            watched.steps.begin(BUSY);
            mem::forget(locked(&watched.steps.scheduling_lock));
        }
    });
}

/// Watches a thread for the life of the process. It sleeps while that one waits for events.
#[expect(clippy::disallowed_methods, reason = "it sleeps between two looks, and nothing waits for it")]
fn watch(watched: &Watched) -> Infallible {
    let steps = &watched.steps;
    loop {
        let (mut last, mut unchanged) = (steps.count(), 0);
        while !steps.is_idle() {
            thread::sleep(LOOK_EVERY);
            let now = steps.count();
            unchanged = if now == last { unchanged + 1 } else { 0 };
            last = now;
            let is_wait = steps.doing.load(Ordering::Relaxed) == REAPING;
            if unchanged >= if is_wait { WAIT_SPINS_AFTER } else { STEP_SPINS_AFTER } {
                give_way(watched, now);
            }
        }
        let _ = watched.wake.read();
    }
}

/// Makes the thread an ordinary one until the step with this number is over, for at most [`YIELDS_FOR`] looks.
#[expect(clippy::disallowed_methods, reason = "the time is what the other threads get")]
fn give_way(Watched { thread, scheduling, steps, .. }: &Watched, step: u64) {
    // If it is held, the thread is an ordinary one already.
    let Ok(_lock) = steps.scheduling_lock.try_lock() else { return };
    if Scheduling::ordinary().set_for(*thread).is_ok() {
        for _ in 0..YIELDS_FOR {
            thread::sleep(LOOK_EVERY);
            if steps.count() != step {
                break;
            }
        }
        // It was allowed before, and is from an ordinary thread's scheduling.
        let _ = scheduling.set_for(*thread);
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::hint;
    use std::process::Command;
    use std::sync::atomic::AtomicBool;

    use harness::wait;
    use neli_kafka::clock;
    use nix::sched::{CpuSet, sched_setaffinity};

    use super::*;
    use crate::process::system;

    /// Restricts this thread to the first processor, with this priority.
    fn run_on_first(priority: i32) -> io::Result<()> {
        let mut first = CpuSet::new();
        first.set(0)?;
        sched_setaffinity(Pid::from_raw(0), &first)?;
        Scheduling::real_time(priority).set_for(Pid::from_raw(0))
    }

    /// A thread that spins in `within` until another one with a lower priority on the same processor has done its work.
    fn yields_the_processor(within: fn(&dyn Fn())) {
        if !unistd::geteuid().is_root() {
            return harness::not_tested("only root may schedule in real time");
        }
        let (is_spinning, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
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
            let is_spinning = &is_spinning;
            scope.spawn(move || {
                run_on_first(5).unwrap();
                watch_this_thread(|| ()).unwrap();
                let begun = clock::now();
                begin_pause();
                end_pause();
                within(&|| {
                    is_spinning.store(true, Ordering::SeqCst);
                    while !is_done.load(Ordering::SeqCst) && clock::now().since(begun) < Duration::from_secs(5) {
                        hint::spin_loop();
                    }
                });
                assert!(is_done.load(Ordering::SeqCst), "it has spun for 5 s");
                // At this moment the watch may have lowered the thread's priority.
                wait::until_true("its own priority", || Scheduling::current().unwrap().priority == 5);
            });
            while !is_spinning.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            wake.send(()).unwrap();
        });
    }

    #[test]
    fn a_spinning_thread_yields_the_processor() {
        yields_the_processor(|spin| spin());
    }

    #[test]
    fn a_spinning_read_yields_the_processor() {
        yields_the_processor(|spin| watched(spin));
    }

    #[test]
    fn a_spinning_wait_yields_the_processor() {
        yields_the_processor(|spin| watched_wait(spin));
    }

    #[test]
    fn a_child_of_a_real_time_thread_never_has_its_scheduling() {
        if !unistd::geteuid().is_root() {
            return harness::not_tested("only root may schedule in real time");
        }
        let of_child = Scheduling::current().unwrap();
        let of_thread = thread::spawn(move || {
            Scheduling::real_time(5).set_for(Pid::from_raw(0)).unwrap();
            watch_this_thread(|| ()).unwrap();
            let child = fork_with(of_child, || {
                system::fork_to_execute(None, || {
                    system::exit(Scheduling::current().map_or(-1, |scheduling| scheduling.priority));
                })
            });
            // The watch changes nothing from now on, so that a priority that was not set again remains.
            begin_pause();
            assert_eq!(system::wait_for(child.unwrap(), 0).unwrap(), Some(0), "its status is its priority");
            // The fork may have lasted, and the watch may have lowered it before the pause.
            wait::until_true("its own priority", || Scheduling::current().unwrap().priority == 5);
        });
        of_thread.join().unwrap();
    }

    /// As before the guard executes the program that releases.
    #[test]
    fn a_thread_whose_watch_is_over_keeps_its_scheduling() {
        if !unistd::geteuid().is_root() {
            return harness::not_tested("only root may schedule in real time");
        }
        let of_thread = thread::spawn(|| {
            Scheduling::real_time(5).set_for(Pid::from_raw(0)).unwrap();
            watch_this_thread(|| ()).unwrap();
            let priority = || Scheduling::current().unwrap().priority;
            while priority() == 5 {
                hint::spin_loop();
            }
            end_watch();
            Scheduling::ordinary().set_for(Pid::from_raw(0)).unwrap();
            wait::poll_for(LOOK_EVERY * 10 * YIELDS_FOR, || (priority() == 5).then_some(()))
        });
        assert_eq!(of_thread.join().unwrap(), None, "it was changed back");
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
        let (steps, wake) = (Shared::new(Steps::default()), EventFd::new().unwrap());
        give_way(&Watched { thread: unistd::gettid(), scheduling: own, steps, wake }, 0);
        assert_eq!(Scheduling::current().unwrap(), own);
    }
}
