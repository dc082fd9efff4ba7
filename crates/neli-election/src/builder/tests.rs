use super::*;

fn builder() -> Builder {
    Election::builder("billing").brokers("kafka:9092")
}

/// Without a runtime nothing is joined, and what is wrong with an option is known before.
fn refused(builder: Builder) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _runtime = runtime.enter();
    match builder.settings() {
        Ok(_) => panic!("it is taken"),
        Err(error) => error.to_string(),
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn each_refusal_names_option_value_and_what_would_be_right() {
    for (builder, line) in [
        (Election::builder("billing"), "brokers: is required: HOST:PORT,.. of Kafka's bootstrap servers"),
        (Election::builder(" ").brokers("kafka:9092"), "group  : must not be blank"),
        (builder().brokers("kafka"), "brokers kafka: must be HOST:PORT,.. and 'kafka' has no port"),
        (
            Election::builder("a b").brokers("kafka:9092"),
            "group a b: the topic 'a b.neli' would not be 1 to 249 of a-z A-Z 0-9 . _ -, and neither . nor ..; give another by \
             topic",
        ),
        (
            builder().brokers("a:9092\nb:9092"),
            "brokers a:9092\\nb:9092: must be HOST:PORT,.. and 'a:9092\\nb' is no host (an IPv6 address stands in brackets: [::1]:9092)",
        ),
        (builder().topic(".."), "topic ..: must be 1 to 249 of a-z A-Z 0-9 . _ -, and neither . nor .."),
        (builder().name("\n"), "name \\n: must not be blank"),
        (builder().lease(ms(299)), "lease 299ms: must be 300ms to 60s, in whole milliseconds"),
        (builder().lease(ms(61_000)), "lease 61s: must be 300ms to 60s, in whole milliseconds"),
        (builder().heartbeat_interval(ms(9)), "heartbeat_interval 9ms: must be 10ms to a third of the lease"),
        (builder().fence_warning(ms(10_001)), "fence_warning 10.001s: must be 0 to half of the lease"),
        (
            builder().margin(ms(19)),
            "margin 19ms: must be at least 20ms, and leave a tenth of the lease besides itself, the heartbeat \
             interval and the fence warning",
        ),
        (builder().spread(false), "spread false: has no meaning without roles"),
        (builder().max_roles(3), "max_roles 3: has no meaning without roles"),
        (builder().elector(Elector::Log).patience(None), "patience: has no meaning with the elector Log"),
        (
            builder().property("group.id", "x"),
            "property group.id: cannot be set: it is the name that the builder was given",
        ),
        (
            builder().property("message.timeout.ms", "1"),
            "property message.timeout.ms: cannot be set: it follows from lease",
        ),
        (builder().property("nonsense", "secret"), "property nonsense: librdkafka has no such property"),
        (
            builder().property("session.timeout.ms", "200"),
            "property session.timeout.ms: must be at least three times heartbeat.interval.ms",
        ),
    ] {
        assert_eq!(refused(builder), line);
    }
    let broker = EmbeddedBroker::start().unwrap();
    assert_eq!(refused(builder().embedded(&broker)), "brokers kafka:9092: can't be combined with embedded");
}

#[test]
fn outside_of_a_runtime_nothing_is_joined() {
    let Err(error) = builder().settings() else { panic!("it is taken") };
    assert_eq!(error.to_string(), "join must be called within a tokio runtime");
}

/// Whatever the lease, the margin that is chosen leaves room for the other durations.
#[test]
fn the_margin_is_a_tenth_of_the_lease_unless_it_is_given() {
    let margin = |lease| builder().lease(lease).timings(timings::Elector::Log);
    for lease in (300..=60_000).step_by(97).map(ms) {
        assert_eq!(margin(lease).unwrap().kill_margin, lease / 10);
    }
}
