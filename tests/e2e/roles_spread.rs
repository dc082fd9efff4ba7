//! Many roles on few candidates: every candidate leads a fair share, and a configuration in which two candidates would lead one role is
//! refused.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use harness::candidate::{Elector, Event, Running};
use harness::election::TestElection;
use harness::kafka::Kafka;
use harness::wait;
use nix::sys::signal::Signal;

use crate::roles::{are_all_led, candidate, close, led, numbers, role_of, runs};
use crate::{election, with_both_electors};

/// Waits until the numbers of roles that they lead differ by at most one.
///
/// A candidate that did not take a role that was handed to it gets none for a minute. This may happen under load, so the wait includes it.
fn await_fair(election: &TestElection, candidates: &[Running], roles: &[String]) {
    const BAR: Duration = Duration::from_secs(60);
    let fair = roles.len() / candidates.len()..=roles.len().div_ceil(candidates.len());
    let are_fair = || {
        are_all_led(election, candidates, roles)
            && candidates.iter().all(|candidate| fair.contains(&led(candidate).len()))
    };
    let within = BAR + wait::PATIENCE;
    assert!(wait::poll_for(within, || are_fair().then_some(())).is_some(), "no fair shares within {within:?}");
}

/// The roles whose partitions are assigned to a candidate, according to its log.
fn assigned(candidate: &Running) -> BTreeSet<String> {
    let mut assigned = BTreeSet::new();
    for event in candidate.history() {
        match event.name() {
            "assigned" => drop(assigned.insert(role_of(&event))),
            "revoked" => drop(assigned.remove(&role_of(&event))),
            _ => {}
        }
    }
    assigned
}

/// The number of roles that a candidate has handed over.
fn handed_over(candidate: &Running) -> usize {
    candidate.events("released").iter().filter(|event| event.text("why") == "spread").count()
}

/// The number of roles that other candidates than the last one have claimed since each had logged this many events. The expected number is
/// 0, except for roles that the last one claimed so late that the others stopped waiting (500 ms).
fn claimed_in_its_place(candidates: &[Running], logged: &[usize]) -> usize {
    // The lines of two logs are each read slightly late.
    const LONG: Duration = Duration::from_millis(300);
    let releases: Vec<Event> = candidates.iter().flat_map(|candidate| candidate.events("released")).collect();
    let was_vacant_for_long = |claim: &Event| {
        let before = releases.iter().filter(|release| role_of(release) == role_of(claim) && release.at < claim.at);
        before.map(|release| Duration::from_nanos(claim.at - release.at)).min().is_some_and(|vacant| vacant > LONG)
    };
    let others = candidates.iter().zip(logged).flat_map(|(other, logged)| other.history_from(*logged));
    others.filter(|event| event.name() == "claiming" && was_vacant_for_long(event)).count()
}

/// Stops one of them and waits for its end.
fn stop(candidate: &mut Running) {
    candidate.signal(Signal::SIGTERM);
    candidate.status();
}

with_both_electors! {
    /// Two joins and a leave: the shares are fair after each, and a join moves only the roles that the new candidate gets.
    fn shares_are_fair_after_each_join_and_leave(elector) {
        let election = election(elector);
        let roles = numbers(7);
        let mut candidates = vec![candidate(&election, "7").start()];
        await_fair(&election, &candidates, &roles);
        for joins in [3, 2] {
            let before: usize = candidates.iter().map(handed_over).sum();
            let logged: Vec<usize> = candidates.iter().map(|candidate| candidate.history().len()).collect();
            candidates.push(candidate(&election, "7").start());
            await_fair(&election, &candidates, &roles);
            let moved = candidates.iter().map(handed_over).sum::<usize>() - before;
            let needed = joins + claimed_in_its_place(&candidates, &logged);
            assert_eq!(moved, needed, "{:?}", candidates.iter().map(led).collect::<Vec<_>>());
        }
        let mut first = candidates.remove(0);
        stop(&mut first);
        await_fair(&election, &candidates, &roles);
        candidates.push(first);
        close(&election, candidates, &roles);
    }

    /// Each candidate is replaced in turn, without waiting for a fair share in between.
    fn a_rolling_restart_ends_fair(elector) {
        let election = election(elector);
        let roles = numbers(6);
        let mut candidates: Vec<Running> = (0..3).map(|_| candidate(&election, "6").start()).collect();
        await_fair(&election, &candidates, &roles);
        for replaced in &mut candidates {
            stop(replaced);
            *replaced = candidate(&election, "6").start();
            replaced.await_event("standby");
        }
        await_fair(&election, &candidates, &roles);
        close(&election, candidates, &roles);
    }

    /// A candidate's death moves only its own roles.
    fn a_death_moves_the_dead_ones_roles_only(elector) {
        let election = election(elector);
        let roles = numbers(8);
        let mut candidates: Vec<Running> = (0..3).map(|_| candidate(&election, "8").start()).collect();
        await_fair(&election, &candidates, &roles);
        let dead = candidates.remove(0);
        let before: Vec<BTreeMap<String, u64>> = candidates.iter().map(led).collect();
        dead.signal(Signal::SIGKILL);
        await_fair(&election, &candidates, &roles);
        for (candidate, before) in candidates.iter().zip(before) {
            let now = led(candidate);
            assert!(before.iter().all(|role| now.get(role.0) == Some(role.1)), "{before:?} became {now:?}");
        }
        close(&election, candidates, &roles);
    }

    /// Roles beyond all limits have no leader until a candidate with a free place joins.
    fn no_process_leads_more_roles_than_its_limit(elector) {
        let election = election(elector);
        let roles = numbers(5);
        let of_two = || candidate(&election, "5").option("--max-roles", "2").start();
        let mut candidates = vec![of_two(), of_two()];
        wait::until_true("four roles that are led", || candidates.iter().map(|candidate| led(candidate).len()).sum::<usize>() == 4);
        candidates.push(candidate(&election, "5").start());
        wait::until_true("all of them", || are_all_led(&election, &candidates, &roles));
        for candidate in &candidates[..2] {
            // What happens at once is logged in the order of the roles' numbers. So the loss of a role may be logged after the claim that it
            // allows, but not after that claim's answer.
            let (mut led, mut too_many) = (BTreeSet::new(), BTreeSet::new());
            for event in candidate.history() {
                let role = || role_of(&event);
                match event.name() {
                    "claiming" => {
                        led.insert(role());
                        if led.len() > 2 {
                            too_many.insert(role());
                        }
                    }
                    name @ ("leading" | "released" | "standby" | "fenced") => {
                        assert!(!too_many.contains(&role()), "{led:?} at {event:?}");
                        if name != "leading" {
                            led.remove(&role());
                        }
                    }
                    _ => {}
                }
                if led.len() <= 2 {
                    too_many.clear();
                }
            }
            assert!(too_many.is_empty(), "{led:?}");
        }
        close(&election, candidates, &roles);
    }

    /// `--spread no`: a new candidate gets no role until another one leaves, although the group assigns some to it.
    fn without_spreading_no_role_moves(elector) {
        let election = election(elector);
        let roles = numbers(4);
        let start = || candidate(&election, "4").option("--spread", "no").start();
        let mut first = start();
        wait::until_true("all of them led", || led(&first).len() == 4);
        let second = start();
        wait::until_true("a standby for each", || {
            second.events("standby").iter().map(role_of).collect::<BTreeSet<_>>().len() == 4
        });
        if elector == Elector::Group {
            wait::until_true("a part of them assigned", || assigned(&second).len() == 2);
        }
        stop(&mut first);
        let candidates = vec![first, second];
        wait::until_true("all of them led by the other", || led(&candidates[1]).len() == 4);
        assert_eq!((candidates[0].count("leading"), handed_over(&candidates[0])), (4, 0));
        close(&election, candidates, &roles);
    }

    /// If the hello of a process with many roles did not contain its priority, each leader would count as one of the lowest.
    fn without_spreading_a_leader_of_the_same_priority_keeps_its_roles(elector) {
        let election = election(elector);
        let roles = numbers(2);
        let start = |priority: &str| {
            let candidate = candidate(&election, "2").option("--spread", "no").option("--priority", priority);
            candidate.option("--preempt", "1s").start()
        };
        let first = start("10");
        wait::until_true("both of them led", || led(&first).len() == 2);
        let mut equal = start("10");
        equal.await_event("standby");
        assert!(equal.await_event_within("preempting", Duration::from_secs(5)).is_none());
        let candidates = vec![first, equal, start("11")];
        wait::until_true("both of them led by the one of the highest priority", || led(&candidates[2]).len() == 2);
        close(&election, candidates, &roles);
    }

    /// With another order of the names two candidates would lead one role. So the later one does not start, and names the other.
    fn a_candidate_that_maps_a_role_elsewhere_does_not_start(elector) {
        let election = election(elector);
        let roles = ["ingest", "bill"].map(str::to_owned);
        let first = vec![candidate(&election, "ingest,bill").option("--name", "web1").start()];
        wait::until_true("a job of both", || are_all_led(&election, &first, &roles));
        let mut other = candidate(&election, "bill,ingest").start();
        assert_eq!(other.status(), 125);
        let error = other.await_event("error");
        let expected = "--roles bill,ingest on 2 partitions: role bill would be in partition 0, and web1 has it in partition 1";
        assert!(error.text("message").starts_with(expected), "{error:?}");
        assert_eq!(other.count("leading"), 0);
        close(&election, first, &roles);
    }

    /// Partitions that are added to the topic have no effect on running candidates, which log it once. A candidate that starts then would
    /// look for roles in the new partitions, and is refused.
    fn partitions_may_be_added_under_running_candidates(elector) {
        let election = election(elector);
        let roles = numbers(5);
        Kafka::shared().create_partitioned_topic(&election.topic(), 3);
        let mut candidates: Vec<Running> = (0..2).map(|_| candidate(&election, "5").start()).collect();
        wait::until_true("a lead of each", || are_all_led(&election, &candidates, &roles) && candidates.iter().all(|it| !led(it).is_empty()));
        let message = |candidate: &Running| {
            let has_grown = |event: &Event| event.text("message").contains("had 3 partitions and has 6 now");
            candidate.events("warning").iter().filter(|event| has_grown(event)).count()
        };
        Kafka::shared().add_partitions(&election.topic(), 6);
        wait::until_true("a warning of each", || candidates.iter().all(|candidate| message(candidate) == 1));
        let is_led = || {
            let status = election.ask("status", &["--role", "3"]);
            assert_eq!(status.status, 0, "{status:?}");
        };
        is_led();
        let doctor = election.ask("doctor", &["--roles", "5"]).text;
        assert!(doctor.contains("role 3 would be in partition 3, and "), "{doctor}");
        let mut new = candidate(&election, "5").start();
        assert_eq!(new.status(), 125);
        is_led();
        stop(&mut candidates[0]);
        wait::until_true("all of them led by the other", || led(&candidates[1]).len() == 5);
        assert_eq!(message(&candidates[1]), 1);
        close(&election, candidates, &roles);
    }

    /// One candidate has numbered roles, the others named ones. These are different elections, and no role is handed to a candidate that
    /// does not stand for it. Each candidate logs that.
    fn a_candidate_that_shares_no_role_is_named_and_given_none(elector) {
        let election = election(elector);
        let of_five = numbers(5);
        let five = vec![candidate(&election, "5").option("--name", "web1").start()];
        wait::until_true("a job of each number", || are_all_led(&election, &five, &of_five));
        let named = ["ingest", "bill"].map(str::to_owned);
        let two = vec![candidate(&election, "ingest,bill").option("--name", "web2").start()];
        for (candidate, message) in [
            (&two[0], "web1 stands in this group for other roles (0 to 4) than those here (ingest, bill)"),
            (&five[0], "web2 stands in this group for other roles (ingest, bill) than those here (0 to 4)"),
        ] {
            let warnings = || {
                let mut warnings = candidate.events("warning");
                warnings.retain(|warning| warning.text("message").starts_with(message));
                warnings
            };
            wait::until_true("a warning of the other", || !warnings().is_empty());
            let remedy = "give all candidates the same --roles, or give candidates of other roles another --group";
            assert!(warnings()[0].text("message").ends_with(remedy), "{:?}", warnings());
        }
        wait::until_true("a job of each role", || are_all_led(&election, &five, &of_five) && are_all_led(&election, &two, &named));
        let all = election.ask("status", &["--json"]);
        assert_eq!((all.status, all.text.lines().count()), (0, 7), "{all:?}");
        for role in ["1", "bill"] {
            let one = election.ask("status", &["--role", role]);
            assert_eq!(one.status, 0, "{one:?}");
        }
        for candidate in [&five[0], &two[0]] {
            let released = candidate.events("released");
            assert!(released.iter().all(|event| event.text("why") != "spread"), "{released:?}");
            let warnings = candidate.events("warning");
            let named = warnings.iter().filter(|event| event.text("message").contains("for other roles"));
            assert_eq!(named.count(), 1, "{warnings:?}");
        }
        close(&election, five, &of_five);
        close(&election, two, &named);
    }

    /// The documented way to another mapping: all candidates are stopped first. Then another topic may be used, also one with fewer
    /// partitions.
    fn with_all_stopped_a_role_may_be_mapped_elsewhere(elector) {
        let election = election(elector);
        let roles = ["ingest", "bill"].map(str::to_owned);
        let mut all: Vec<Running> = Vec::new();
        for (before, (typed, topic)) in (0..).zip([("ingest,bill", ""), ("bill,ingest", ""), ("ingest,bill", "another")]) {
            let of_mapping = || match topic {
                "" => candidate(&election, typed),
                another => candidate(&election, typed).option("--topic", format!("{}.{another}", election.topic())),
            };
            let mut candidates = vec![of_mapping().start(), of_mapping().start()];
            wait::until_true("another run of both", || roles.iter().all(|role| runs(&election, role).len() > before));
            let are_warned = |candidates: &[Running]| {
                candidates.iter().any(|candidate| !candidate.warnings_with("reset the highest one in stores").is_empty())
            };
            if typed == "bill,ingest" {
                // By the one that read first, which may be the one that leads nothing.
                wait::until_true("a warning of the other partitions", || are_warned(&candidates));
            }
            candidates.iter_mut().for_each(stop);
            assert_eq!(are_warned(&candidates), typed == "bill,ingest", "{candidates:?}");
            all.append(&mut candidates);
        }
        for role in &roles {
            let runs = runs(&election, role);
            assert!(runs.len() >= 3 && runs.windows(2).all(|pair| pair[0].1 < pair[1].0), "role {role}: {runs:?}");
        }
        election.close(all);
    }
}

/// With `--patience never` the group's choice leads. A member whose job for a role has ended keeps the role's partition, and does not stand for
/// the role any more: it must not stay without a leader for as long as that member is there.
#[test]
fn a_role_that_the_group_s_choice_has_left_is_led_by_another() {
    let election = election(Elector::Group);
    let job = format!("[ $NELI_NAME = short ] || exec sleep 1000; {}", election.until_go_file());
    let start = |name: &str| {
        let candidate = election.candidate().option("--roles", "2").option("--restart", "no").option("--name", name);
        candidate.option("--patience", "never").job(["sh", "-c", &job]).start()
    };
    let candidates = ["long", "short"].map(start);
    wait::until_true("a fair share", || candidates.each_ref().map(|candidate| led(candidate).len()) == [1, 1]);
    election.create_go_file();
    wait::until_true("both roles", || led(&candidates[0]).len() == 2);
    assert_eq!(candidates[1].count("exited"), 0, "it stands for the other role");
    election.close(candidates);
}

/// With `--patience never` a leader that was asked to resign keeps the role's partition as well: another leads before the leader may again, after two
/// leases.
#[test]
fn a_role_that_the_group_s_choice_was_asked_to_give_up_is_led_by_another() {
    let election = election(Elector::Group);
    let start = |name: &str| {
        let candidate =
            election.candidate().option("--roles", "2").option("--name", name).option("--patience", "never");
        candidate.job(["sleep", "1000"]).start()
    };
    let candidates = ["first", "second"].map(start);
    wait::until_true("a fair share", || candidates.each_ref().map(|candidate| led(candidate).len()) == [1, 1]);
    let role = led(&candidates[0]).into_keys().next().expect("it leads a role");
    let answer = election.ask("resign", &["--role", &role]);
    assert_eq!(answer.status, 0, "{answer:?}");
    wait::until_true("a lead of that role", || led(&candidates[1]).contains_key(&role));
    election.close(candidates);
}

/// With `--restart no` a candidate does not stand for a role any more when its job for it has ended. Only roles for which it still stands are
/// handed to it: any other would have no leader for two leases.
#[test]
fn a_candidate_is_given_only_roles_for_which_it_stands() {
    let election = election(Elector::Log);
    let job = format!("[ $NELI_NAME = short ] || exec sleep 1000; {}", election.until_go_file());
    let start = |name: &str| {
        let candidate = election.candidate().option("--roles", "4").option("--restart", "no").option("--name", name);
        candidate.job(["sh", "-c", &job]).start()
    };
    let long = start("long");
    wait::until_true("a lead of each role", || led(&long).len() == 4);
    let mut short = start("short");
    wait::until_true("a fair share", || [&long, &short].map(|candidate| led(candidate).len()) == [2, 2]);
    election.create_go_file();
    assert_eq!(short.status(), 0, "it stands for no role any more: {short:?}");
    let of_each: BTreeSet<String> = short.events("leading").iter().map(role_of).collect();
    assert_eq!((short.count("leading"), of_each), (4, numbers(4).into_iter().collect()), "each of them once");
    wait::until_true("a lead of each role again", || led(&long).len() == 4);
    assert_eq!([&long, &short].map(handed_over), [4, 0]);
    election.close([long]);
}
