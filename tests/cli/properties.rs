//! librdkafka's properties: invalid ones are refused, and no message shows a secret.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::process::run_behind;
use crate::{WHOLE, command, one_line, output_of, refused, refused_value, run, whole};

#[test]
fn a_property_that_the_protocol_needs_is_refused_under_every_name() {
    for (key, hint) in [
        ("acks", "acks=all is required"),
        ("request.required.acks", "acks=all is required"),
        ("topic.acks", "acks=all is required"),
        ("bootstrap.servers", "say --brokers"),
        ("metadata.broker.list", "say --brokers"),
        ("group.id", "say --group"),
        ("message.timeout.ms", "it follows from --lease"),
        ("delivery.timeout.ms", "it follows from --lease"),
        ("topic.delivery.timeout.ms", "it follows from --lease"),
    ] {
        refused_property(&format!("{key}=1"), &format!("{key}: cannot be set: {hint}"));
    }
    for key in [
        "allow.auto.create.topics",
        "auto.commit.enable",
        "auto.offset.reset",
        "client.rack",
        "delivery.report.only.error",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.gapless.guarantee",
        "enable.idempotence",
        "enable.partition.eof",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "internal.termination.signal",
        "isolation.level",
        "max.poll.interval.ms",
        "partition.assignment.strategy",
        "plugin.library.paths",
        "test.mock.broker.rtt",
        "test.mock.num.brokers",
        "transactional.id",
    ] {
        let output = run(&whole(&["-X", &format!("{key}=hunter2")]));
        let line = one_line(&output);
        assert!(line.starts_with(&format!("neli-run: --property {key}: cannot be set: ")), "{line}");
        assert!(!line.contains("hunter2"), "{line}");
    }
}

#[test]
fn a_property_must_be_one_of_librdkafka() {
    refused_property("nonsense=1", "nonsense: librdkafka has no such property");
    refused_property("socket.timeout.ms=1", "socket.timeout.ms: must be 10 to 300000");
    refused_property("socket.keepalive.enable=hunter2", "socket.keepalive.enable: must be true or false");
    refused_property("compression.codec=hunter2", "compression.codec: librdkafka refuses its value");
    refused_property(
        "security.protocol=hunter2",
        "security.protocol: must be plaintext, ssl, sasl_plaintext or sasl_ssl",
    );
    let java = "sasl.jaas.config: is for Java clients; librdkafka has sasl.username and sasl.password, or its like";
    refused_property("sasl.jaas.config=hunter2", java);
    refused_property(
        "ssl.truststore.location=hunter2",
        "ssl.truststore.location: is for Java clients; librdkafka has ssl.ca.location, a file in PEM format",
    );
    refused_property(
        "sasl.client.callback.handler.class=hunter2",
        "sasl.client.callback.handler.class: is for Java clients; librdkafka has no such property",
    );
    let aws = "AWS_MSK_IAM is a mechanism of Java clients; Amazon MSK also takes SCRAM-SHA-512 (security.protocol=SASL_SSL) and client \
               certificates (security.protocol=SSL)";
    refused_property("sasl.mechanism=AWS_MSK_IAM", &format!("sasl.mechanism: {aws}"));
    refused_property("sasl.mechanisms=plain", "sasl.mechanisms: must be PLAIN, in capitals");
    refused_property(
        "sasl.mechanisms=hunter2",
        "sasl.mechanisms: must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI; those of Java clients do not exist here",
    );
    for linger in ["linger.ms", "queue.buffering.max.ms", "topic.linger.ms"] {
        let most = format!("{linger}: must be at most 10: each claim and heartbeat waits for so long");
        refused_property(&format!("{linger}=10.5"), &most);
    }
    for (property, least) in [("queue.buffering.max.messages", 30_000), ("queue.buffering.max.kbytes", 16_384)] {
        for (key, low) in [(property.to_owned(), 1), (format!("topic.{property}"), least - 1)] {
            let why = format!("{key}: must be at least {least}: all roles may claim at once");
            refused_property(&format!("{key}={low}"), &why);
        }
    }
    refused_property("fetch.min.bytes=2", "fetch.min.bytes: must be 1: a claim or heartbeat would be read late");
    refused(
        "-g g -b a:1 --properties /dev/zero -- true",
        "--properties /dev/zero: must be a file of KEY=VALUE lines, of 1 MiB at most",
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("properties");
    std::fs::write(&file, "\u{feff}security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM\n").unwrap();
    let line = one_line(&run(&whole(&["--properties", file.to_str().unwrap()])));
    assert_eq!(line, format!("neli-run: {} line 2: sasl.mechanism: {aws}", file.display()));
    let session = "property session.timeout.ms 200: must be at least 300, three times heartbeat.interval.ms";
    refused("-g g -b a:1 -X session.timeout.ms=200 -- true", session);
    refused(
        "-g g -b a:1 -X heartbeat.interval.ms=2001 -- true",
        "property heartbeat.interval.ms 2001: must be at most 2000, a third of session.timeout.ms",
    );
}

/// A property that needs a feature which this build of librdkafka lacks is refused, and the message names the feature.
#[test]
fn a_property_that_needs_another_build_is_refused_with_the_feature() {
    let features = [neli_run::features::GSSAPI, neli_run::features::OIDC, neli_run::features::SSL];
    let built = |name: &str| features.iter().any(|feature| feature.name == name && feature.is_built);
    let advice = |feature: &str| {
        format!("this neli-run was built without the feature {feature} (cargo build --features {feature})")
    };
    for (property, feature) in [
        ("sasl.kerberos.service.name=kafka", "gssapi"),
        ("sasl.oauthbearer.method=oidc", "oidc"),
        ("security.protocol=ssl", "ssl"),
        ("ssl.ca.location=/no/such/file", "ssl"),
    ] {
        let key = property.split('=').next().unwrap();
        if !built(feature) {
            refused_property(property, &format!("{key}: {}", advice(feature)));
        }
    }
    for (mechanism, feature) in [("GSSAPI", "gssapi"), ("SCRAM-SHA-512", "ssl"), ("OAUTHBEARER", "ssl")] {
        if !built(feature) {
            let line = one_line(&run(&whole(&["-X", &format!("sasl.mechanism={mechanism}")])));
            assert_eq!(line, format!("neli-run: property sasl.mechanisms {mechanism}: {}", advice(feature)));
        }
    }
    if built("ssl") {
        let bearer = ["-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=OAUTHBEARER"];
        let line = one_line(&run(&whole(&bearer)));
        assert!(line.contains("needs a property sasl.oauthbearer.method=oidc"), "{line}");
        assert_eq!(line.ends_with(&advice("oidc")), !built("oidc"), "{line}");
    }
    if !built("gssapi") {
        let line = one_line(&run(&whole(&["-X", "security.protocol=SASL_PLAINTEXT"])));
        assert!(line.contains("needs a property sasl.mechanisms") && line.ends_with(&advice("gssapi")), "{line}");
    }
}

/// OpenSSL's own words for a file that is missing are `system lib`.
#[test]
fn a_file_of_a_certificate_that_can_not_be_read_is_named_by_its_property() {
    if !neli_run::features::SSL.is_built {
        return;
    }
    for key in
        ["ssl.ca.location", "ssl.certificate.location", "ssl.crl.location", "ssl.key.location", "ssl.keystore.location"]
    {
        let property = format!("{key}=/no/such/file");
        let line = one_line(&run(&whole(&[
            "-X",
            "security.protocol=SASL_SSL",
            "-X",
            "sasl.mechanism=PLAIN",
            "-X",
            &property,
        ])));
        assert_eq!(line, format!("neli-run: property {key}: the file can't be read: no such file or directory"));
    }
}

/// OpenSSL opens the certificates of a directory by their names, and does not list it.
#[test]
fn a_directory_of_authorities_need_not_be_listed() {
    if !neli_run::features::SSL.is_built {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o311)).unwrap();
    let authorities = format!("ssl.ca.location={}", directory.path().display());
    let property = ["-X", "security.protocol=ssl", "-X", &authorities, "-X", "ssl.key.location=/no/such/file"];
    let is_root = nix::unistd::geteuid().is_root();
    // Root may list every directory.
    let limit = if is_root { r#"exec setpriv --bounding-set=-dac_override,-dac_read_search -- "$@""# } else { ":" };
    let line = one_line(&run_behind(limit, &whole(&property)));
    // So that it can be removed.
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(line, "neli-run: property ssl.key.location: the file can't be read: no such file or directory");
}

/// Small images have no time zone database. UTC is also the default of `--schedule`.
#[test]
fn utc_needs_no_time_zone_database() {
    let hidden = r#"exec unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /usr/share/zoneinfo; exec "$@"' sh "$@""#;
    for (zone, is_known) in [(None, true), (Some("UTC"), true), (Some("Etc/UTC"), true), (Some("Europe/Berlin"), false)]
    {
        let mut words = vec!["-X", "nonsense=1", "-g", "g", "-b", "a:1", "--schedule", "0 2 * * *"];
        words.extend(zone.into_iter().flat_map(|zone| ["--timezone", zone]));
        words.extend(["--", "true"]);
        let line = one_line(&run_behind(hidden, &words));
        assert_eq!(line.contains("time zone database"), !is_known, "{zone:?}: {line}");
        assert_eq!(line.contains("nonsense"), is_known, "{zone:?}: {line}");
    }
}

#[test]
fn a_secret_is_never_shown() {
    for arguments in [
        &["-X", "hunter2"][..],
        &["-X", "sasl.password", "hunter2"],
        &["-X", "a=b", "sasl.password=hunter2"],
        &["-X", "sasl.password=", "hunter2"],
        &["-Xsasl.password", "hunter2"],
        &["-X=sasl.password", "hunter2"],
        &["--property=sasl.password", "hunter2"],
        &["-X", "sasl.passwrod=hunter2"],
        &["--property=acks=hunter2"],
        &["--propperty=sasl.password=hunter2"],
        &["-X", "=hunter2"],
    ] {
        let line = one_line(&run(&whole(arguments)));
        assert!(!line.contains("hunter2"), "{arguments:?}: {line}");
    }
    let directory = tempfile::tempdir().unwrap();
    for content in ["hunter2", "sasl.passwrod=hunter2", "acks=hunter2", "socket.timeout.ms=hunter2", "=hunter2"] {
        let file = directory.path().join("properties");
        std::fs::write(&file, format!("# a comment\n\n{content}\n")).unwrap();
        let line = one_line(&run(&whole(&["--properties", file.to_str().unwrap()])));
        assert!(line.contains("properties line 3: ") && !line.contains("hunter2"), "{line}");
    }
    let mut run = command(WHOLE);
    run.env("NELI_RUN_PROPERTY", "sasl.username=a\nhunter2");
    assert_eq!(one_line(&output_of(&mut run)), "neli-run: NELI_RUN_PROPERTY: must be KEY=VALUE, and number 2 is not");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    refused_value("properties", "/no/such/file", "can't be read: no such file or directory");
    refused_value("properties", "/", "can't be read: is a directory");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("properties");
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    refused_value("properties", file.to_str().unwrap(), "must be UTF-8");
}

fn refused_property(property: &str, why: &str) {
    let output = run(&whole(&["-X", property]));
    assert_eq!(one_line(&output), format!("neli-run: --property {why}"));
    assert_eq!(output.status.code(), Some(125));
}
