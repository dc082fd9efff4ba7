use alloc::string::String;
use alloc::vec;

use super::*;

fn record(body: Body) -> Record {
    Record { member: Some(MemberId::from("m1")), name: Some("a:1".into()), seq: Some(7), body }
}

fn bodies() -> Vec<Body> {
    vec![
        Body::Beat {
            term: 3,
            seen: 9,
            lease_ms: 5000,
            job: Some(Job { state: JobState::Running, pid: Some(12), attempt: Some(1), since_ms: Some(40) }),
            overlap: Some(Overlap { within_ms: 150, over: None, yields: true }),
        },
        Body::Claim { after: -1, lease_ms: 300, overlap: None },
        Body::Claim {
            after: 4,
            lease_ms: 300,
            overlap: Some(Overlap { within_ms: 150, over: Some(2), yields: false }),
        },
        Body::Release {
            term: 0,
            seen: 0,
            why: Some("stopped".into()),
            exit: Some(143),
            late_ms: None,
            group_member: Some("neli-run-1".into()),
            once: None,
            successor: None,
        },
        Body::Release {
            term: 0,
            seen: 0,
            why: Some("fenced".into()),
            exit: None,
            late_ms: Some(2_501),
            group_member: None,
            once: Some(KeyedRun { key: "v1.42".into(), is_window: Some(false) }),
            successor: Some(MemberId::from("m2")),
        },
        Body::Request { what: What::End, term: None, by: Some("ann".into()), reason: None, successor: None },
    ]
}

#[test]
fn written_values_are_read_back() {
    for body in bodies() {
        let written = record(body);
        assert_eq!(Record::parse(&written.to_bytes()), Some(written));
    }
}

#[test]
fn the_line_is_as_the_protocol_says() {
    let line = record(Body::Claim { after: 41, lease_ms: 5000, overlap: None }).to_bytes();
    let said = r#"{"v":1,"member":"m1","name":"a:1","seq":7,"kind":"claim","after":41,"lease_ms":5000}"#;
    assert_eq!(String::from_utf8(line).unwrap(), said);
}

#[test]
fn the_job_stands_among_the_other_fields_of_a_beat() {
    let line = [
        r#"{"v":1,"member":"m1","name":"a:1","seq":7,"kind":"beat","term":3,"seen":9,"lease_ms":5000"#,
        r#""state":"running","pid":12,"attempt":1,"since_ms":40,"overlap_ms":150,"yields":true}"#,
    ];
    assert_eq!(String::from_utf8(record(bodies().remove(0)).to_bytes()).unwrap(), line.join(","));
}

#[test]
fn an_invalid_field_that_the_law_does_not_use_is_unknown() {
    let line = br#"{"v":1,"kind":"beat","term":3,"seen":4,"lease_ms":300,"state":"flying","pid":-4,"name":9,"x":{}}"#;
    let read = Record::parse(line).unwrap();
    assert_eq!((read.member, read.name, read.seq), (None, None, None));
    assert_eq!(read.body, Body::Beat { term: 3, seen: 4, lease_ms: 300, job: None, overlap: None });
}

#[test]
fn fields_that_the_law_uses_must_be_valid() {
    for line in [
        &b"not json"[..],
        b"",
        b"[1]",
        b"\xff\xfe",
        br#"{"kind":"claim","after":1,"lease_ms":300}"#,
        br#"{"v":9,"kind":"claim","after":1,"lease_ms":300}"#,
        br#"{"v":"1","kind":"claim","after":1,"lease_ms":300}"#,
        br#"{"v":1,"kind":"coup","after":1,"lease_ms":300}"#,
        br#"{"v":1,"kind":"claim","after":"1","lease_ms":300}"#,
        br#"{"v":1,"kind":"claim","after":1.5,"lease_ms":300}"#,
        br#"{"v":1,"kind":"claim","after":1}"#,
        br#"{"v":1,"kind":"claim","after":99999999999999999999,"lease_ms":300}"#,
        br#"{"v":1,"kind":"beat","term":1,"lease_ms":300}"#,
        br#"{"v":1,"kind":"request","what":"dance"}"#,
    ] {
        assert_eq!(Record::parse(line), None, "{}", String::from_utf8_lossy(line));
    }
    let long = |bytes| {
        let mut line = br#"{"v":1,"kind":"claim","after":1,"lease_ms":300,"x":""#.to_vec();
        line.resize(bytes - 2, b'x');
        line.extend(br#""}"#);
        Record::parse(&line)
    };
    assert!(long(MAX_BYTES).is_some());
    assert_eq!(long(MAX_BYTES + 1), None);
}

/// As docs/protocol.md says it, for readers that are written with another parser.
#[test]
fn what_not_every_parser_of_json_takes_is_not_read() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    // Each is the value of an unknown field in the claim, which is the first level.
    let values: [(String, bool); 7] = [
        (nested(126), true),
        (nested(127), false),
        (r#""\ud83d\ude00""#.into(), true),
        (r#""\ud83d""#.into(), false),
        ("1e308".into(), true),
        ("1e309".into(), false),
        ("9".repeat(400), false),
    ];
    for (value, is_read) in values {
        let line = format!(r#"{{"v":1,"kind":"claim","after":1,"lease_ms":300,"x":{value}}}"#);
        assert_eq!(Record::parse(line.as_bytes()).is_some(), is_read, "{line}");
    }
    for (fields, is_read) in [
        (r#""after":1.0,"lease_ms":300"#, false),
        (r#""after":-0,"lease_ms":300"#, false),
        (r#""after":1,"lease_ms":3e2"#, false),
        (r#""after":1.0,"after":1,"lease_ms":300"#, true),
        (r#""after":1,"after":1.0,"lease_ms":300"#, false),
    ] {
        let line = format!(r#"{{"v":1,"kind":"claim",{fields}}}"#);
        assert_eq!(Record::parse(line.as_bytes()).is_some(), is_read, "{line}");
    }
}

#[test]
fn a_record_refers_to_earlier_offsets() {
    let beat = |term, seen, lease_ms| record(Body::Beat { term, seen, lease_ms, job: None, overlap: None });
    let claim = |after, lease_ms| record(Body::Claim { after, lease_ms, overlap: None });
    let release = |term, seen| {
        record(Body::Release {
            term,
            seen,
            why: None,
            exit: None,
            late_ms: None,
            group_member: None,
            once: None,
            successor: None,
        })
    };
    let resign = |term| record(Body::Request { what: What::Resign, term, by: None, reason: None, successor: None });

    assert!(claim(-1, 300).makes_sense_at(0));
    assert!(claim(9, 60_000).makes_sense_at(10));
    assert!(beat(9, 9, 300).makes_sense_at(10));
    assert!(release(0, 9).makes_sense_at(10));
    assert!(resign(Some(9)).makes_sense_at(10));

    assert!(!claim(10, 300).makes_sense_at(10));
    assert!(!claim(-2, 300).makes_sense_at(10));
    assert!(!claim(9, 299).makes_sense_at(10));
    assert!(!claim(9, 60_001).makes_sense_at(10));
    assert!(!beat(9, 8, 300).makes_sense_at(10));
    assert!(!beat(9, 10, 300).makes_sense_at(10));
    assert!(!beat(-1, 9, 300).makes_sense_at(10));
    assert!(!beat(9, 9, 299).makes_sense_at(10));
    assert!(!release(9, 10).makes_sense_at(10));
    assert!(!release(9, 8).makes_sense_at(10));
    assert!(!release(-1, 9).makes_sense_at(10));
    assert!(!resign(None).makes_sense_at(10));
    assert!(!resign(Some(10)).makes_sense_at(10));
}

#[test]
fn a_state_of_the_job_has_the_name_that_beats_contain() {
    for state in [JobState::Restarting, JobState::Running, JobState::Starting, JobState::Stopping] {
        assert_eq!(serde_json::to_value(state).unwrap(), state.name());
    }
}

// ---- keys ------------------------------------------------------------------------------------------

#[test]
fn a_key_names_its_election() {
    let elections = ["a/0", "a/b/ingest", "a/0/hello", "a/hello", "a/hello/hello", "a", "/0", "a/", "", "/hello"]
        .map(|key| election_of(key.as_bytes()));
    let key = |group, role, is_hello| Some((group, role, is_hello));
    // No role is called hello.
    let expected =
        [key("a", "0", false), key("a/b", "ingest", false), key("a", "0", true), None, key("a", "hello", true)];
    let expected = [&expected[..], &[None; 5]].concat();
    assert_eq!(elections[..], expected);
    assert_eq!(label_of_group(b"a/b/hello", "a/b"), Some((&b"hello"[..], false)));
    assert_eq!(label_of_group(b"a/b/c/hello", "a/b"), Some((&b"c"[..], true)));
    assert_eq!(label_of_group(b"a/b/c/d", "a/b"), None);
}
