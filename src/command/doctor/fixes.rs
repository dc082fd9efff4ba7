//! Commands that fix a finding, for a shell with Kafka's own tools.

use neli_kafka::{Client, NewTopic};

/// The user and the address that these commands need.
pub(super) struct Fixes {
    bootstrap: String,
    /// The user as access rules name it.
    principal: String,
    /// Whether Kafka's tools need a configuration for login or TLS.
    is_secured: bool,
}

/// The resource of an access rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Resource<'a> {
    /// The cluster.
    Cluster,
    /// A consumer group.
    Group(&'a str),
    /// A topic.
    Topic(&'a str),
}

impl Fixes {
    /// The commands for the user of this client.
    pub(super) fn of(client: &Client, bootstrap: &str) -> Self {
        let protocol = client.properties.find("security.protocol").unwrap_or("plaintext").to_lowercase();
        let user = client.properties.find("sasl.username").filter(|_| protocol.starts_with("sasl"));
        let principal = match (user, protocol.as_str()) {
            (Some(user), _) => format!("User:{user}"),
            (None, "plaintext") => "User:ANONYMOUS".to_owned(),
            // The name in a certificate, ticket or token.
            (None, _) => "User:NAME".to_owned(),
        };
        Self { bootstrap: bootstrap.to_owned(), principal, is_secured: protocol != "plaintext" }
    }

    /// The command that allows these operations.
    pub(super) fn allow(&self, operations: &[&str], resource: Resource<'_>) -> String {
        let on = match resource {
            Resource::Cluster => "--cluster".to_owned(),
            Resource::Group(name) => format!("--group {}", quoted(name)),
            Resource::Topic(name) => format!("--topic {}", quoted(name)),
        };
        let operations: Vec<String> = operations.iter().map(|operation| format!("--operation {operation}")).collect();
        let (tool, user, operations) = (self.tool("kafka-acls.sh"), quoted(&self.principal), operations.join(" "));
        format!("{tool} --add --allow-principal {user} {operations} {on}")
    }

    /// The command that sets a topic's setting.
    pub(super) fn configure(&self, topic: &str, setting: &str, value: &str) -> String {
        format!("{} --alter --topic {topic} --add-config {setting}={value}", self.tool("kafka-configs.sh"))
    }

    /// The command that creates the topic.
    pub(super) fn create(&self, NewTopic { name, partitions, replicas, settings }: &NewTopic<'_>) -> String {
        let settings: Vec<String> =
            settings.iter().map(|(setting, value)| format!("--config {setting}={value}")).collect();
        // Without the option the cluster's default applies.
        let replicas = replicas.map_or_else(String::new, |count| format!(" --replication-factor {count}"));
        let (tool, settings) = (self.tool("kafka-topics.sh"), settings.join(" "));
        format!("{tool} --create --topic {name} --partitions {partitions}{replicas} {settings}")
    }

    fn tool(&self, name: &str) -> String {
        // The administrator's login is unknown here.
        let login = if self.is_secured { " --command-config admin.properties" } else { "" };
        format!("{name} --bootstrap-server {}{login}", self.bootstrap)
    }
}

/// The argument quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-:/@=,+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use neli_kafka::{Brokers, Properties};

    use super::*;

    fn fixes(properties: &[(&str, &str)]) -> Fixes {
        let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let client = Client { brokers: Brokers::At("a:1".to_owned()), properties: Properties(properties) };
        Fixes::of(&client, "a:1")
    }

    #[test]
    fn a_right_is_granted_to_the_user_of_the_login() {
        let plain = fixes(&[]).allow(&["Read", "Write"], Resource::Topic("g.neli"));
        let expected = "kafka-acls.sh --bootstrap-server a:1 --add --allow-principal User:ANONYMOUS --operation Read --operation \
                        Write --topic g.neli";
        assert_eq!(plain, expected);
        let login = fixes(&[("security.protocol", "SASL_SSL"), ("sasl.username", "it's me")]);
        let command = login.allow(&["Read"], Resource::Group("a b"));
        let expected = r"kafka-acls.sh --bootstrap-server a:1 --command-config admin.properties --add --allow-principal 'User:it'\''s me' --operation Read --group 'a b'";
        assert_eq!(command, expected);
        let certificate = fixes(&[("security.protocol", "ssl")]).allow(&["Read"], Resource::Cluster);
        assert!(certificate.ends_with(" User:NAME --operation Read --cluster"), "{certificate}");
    }

    #[test]
    fn a_topic_is_made_with_its_settings() {
        let topic =
            NewTopic { name: "g.neli", partitions: 2, replicas: Some(3), settings: vec![("a.b", "1".to_owned())] };
        let expected = "kafka-topics.sh --bootstrap-server a:1 --create --topic g.neli --partitions 2 --replication-factor 3 --config a.b=1";
        assert_eq!(fixes(&[]).create(&topic), expected);
        let by_default = NewTopic { replicas: None, ..topic };
        assert_eq!(fixes(&[]).create(&by_default), expected.replace(" --replication-factor 3", ""));
    }
}
