use super::*;

/// The hello of a process with several roles stands in another partition, and may be read after later records.
#[test]
fn an_old_hello_that_is_read_late_makes_no_standby_of_a_dead_leader() {
    let said = |observer: &mut Observer, ms| {
        let line = r#"{"v":1,"kind":"hello","member":"p","name":"p","roles":"3","partitions":2}"#;
        let hello = Hello::parse(line.as_bytes()).expect("a hello");
        observer.hello_received(later(30_000), &Arc::new(hello), false, Some(AT.wall_ms + ms));
    };
    let mut observer = observer();
    read_late(&mut observer, 0, later(30_000), 0, &claim("p", -1));
    read_late(&mut observer, 1, later(30_000), 5_200, &claim("q", 0));
    said(&mut observer, 100);
    assert_eq!(observer.standbys(later(30_000)).len(), 0);
    said(&mut observer, 25_000);
    assert_eq!(observer.standbys(later(30_000)).len(), 1);
}

/// The process sends one hello for all of its roles, and keeps the others if one is released.
#[test]
fn a_process_with_many_roles_stands_by_until_it_leaves() {
    let mut observer = observer();
    let said = |observer: &mut Observer, ms, leaves| {
        process_hello(observer, ms, if leaves { r#","leaves":true"# } else { "" });
    };
    said(&mut observer, 0, false);
    assert_eq!((observer.standbys(AT).len(), observer.journal().next()), (1, 0), "it stands in another partition");
    read(&mut observer, 0, 10, &claim("p", -1));
    assert_eq!((observer.standbys(later(10)).len(), observer.leaders_hello().is_some()), (0, true));
    read(&mut observer, 1, 20, &release("p", 0, "spread", "null"));
    assert_eq!(observer.standbys(later(20)).len(), 1);
    said(&mut observer, 30, true);
    assert_eq!(observer.standbys(later(30)).len(), 0);
}

/// A hello that a process with three roles sent when it was read; this is role 1.
fn process_hello(observer: &mut Observer, ms: u64, more: &str) {
    let line = format!(r#"{{"v":1,"kind":"hello","member":"p","name":"p","roles":"3","partitions":2{more}}}"#);
    let hello = Hello::parse(line.as_bytes()).expect("a hello");
    let leaves = hello.leaves_role(1);
    observer.hello_received(later(ms), &Arc::new(hello), leaves, Some(AT.wall_ms + ms));
}

#[test]
fn a_process_with_many_roles_does_not_stand_by_for_one_that_it_has_left() {
    for (left, standbys) in [("0,2", 1), ("1", 0), ("0-2", 0)] {
        let mut observer = observer();
        process_hello(&mut observer, 0, "");
        process_hello(&mut observer, 10, &format!(r#","left":"{left}""#));
        assert_eq!(observer.standbys(later(10)).len(), standbys, "{left}");
    }
}

/// Its hello was said before, and may be read later, because it stands in another partition.
#[test]
fn a_process_that_has_died_or_goes_stands_by_no_more() {
    for (why, standbys) in [("supervisor-died", 0), ("stopped", 0), ("refused", 0), ("fenced", 1), ("exited", 1)] {
        for reads_hello_later in [false, true] {
            let mut observer = observer();
            if !reads_hello_later {
                process_hello(&mut observer, 0, "");
            }
            read(&mut observer, 0, 10, &claim("p", -1));
            read(&mut observer, 1, 20, &release("p", 0, why, "null"));
            if reads_hello_later {
                process_hello(&mut observer, 0, "");
            }
            assert_eq!(observer.standbys(later(20)).len(), standbys, "{why}, {reads_hello_later}");
        }
    }
}
