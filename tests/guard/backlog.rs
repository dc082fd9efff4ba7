//! Orders for which the guard's socket has no room: none is lost, and a stop does not wait behind signals.

use std::os::fd::AsFd;

use neli_proto::job::JobStatus;
use neli_run::guard::{Answer, Order, Target};
use nix::libc::{SIGTERM, SIGUSR1};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};

use crate::fixture::{GuardFixture, far_deadline};

/// The first real-time signal that programs may use.
const REAL_TIME: i32 = 34;

/// Sends the queued orders as the guard makes room.
fn flush(fixture: &GuardFixture) {
    while fixture.handle().has_backlog() {
        poll(&mut [PollFd::new(fixture.handle().as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE).unwrap();
        fixture.handle().flush().unwrap();
    }
}

#[test]
fn a_stop_comes_before_the_signals_that_a_guard_has_not_read() {
    let job = r#"trap 'echo signalled > "$PIPE"' USR1; trap 'echo asked > "$PIPE"; exit 0' TERM
        echo ready > "$PIPE"; while :; do sleep 600 & wait; done"#;
    let mut fixture = GuardFixture::running(job);
    fixture.start(0, far_deadline());
    assert_eq!(fixture.pipe.next_line(), "ready");
    // The guard is stopped, as if all processors of a busy machine were in use.
    kill(fixture.handle().pid(), Signal::SIGSTOP).unwrap();
    // The socket holds as many as it can, and this process queues the rest.
    while !fixture.handle().has_backlog() {
        fixture.send(&Order::Signal { signal: SIGUSR1, to: Target::Main });
    }
    for _ in 0..2_000 {
        fixture.send(&Order::Signal { signal: SIGUSR1, to: Target::Main });
    }
    fixture.send(&Order::Stop { signal: Some(SIGTERM), kill_at: far_deadline() });
    kill(fixture.handle().pid(), Signal::SIGCONT).unwrap();
    flush(&fixture);
    let Answer::Exited { status: JobStatus::Exited(0), .. } = fixture.receive() else {
        panic!("it was not asked to stop")
    };
}

#[test]
fn no_real_time_signal_is_lost() {
    const SENT: usize = 2_000;
    // With unsafe signals each one is counted on delivery. Otherwise Perl queues at most 120.
    let job = r#"exec env PERL_SIGNALS=unsafe perl -e '
        sub say { open(W, ">", $ENV{PIPE}); print W "$_[0]\n"; close W }
        my $heard = 0; $SIG{RTMIN} = sub { $heard++ }; say("ready");
        select(undef, undef, undef, 0.01) while $heard < 2000; say($heard)'"#;
    let mut fixture = GuardFixture::running(job);
    fixture.start(0, far_deadline());
    assert_eq!(fixture.pipe.next_line(), "ready");
    kill(fixture.handle().pid(), Signal::SIGSTOP).unwrap();
    for _ in 0..SENT {
        fixture.send(&Order::Signal { signal: REAL_TIME, to: Target::Main });
    }
    kill(fixture.handle().pid(), Signal::SIGCONT).unwrap();
    flush(&fixture);
    assert_eq!(fixture.pipe.next_line(), SENT.to_string());
}
