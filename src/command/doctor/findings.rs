//! The findings, one line each, for users and for programs; and the commands that fix them, for a shell with Kafka's own tools.

use std::fmt::Display;

use neli_kafka::{Client, NewTopic};
use neli_proto::leadership::ReadAt;
use serde::Serialize;
use serde_json::json;

use crate::command::output::{Style, Tone, hanging};
use crate::text::{json, one_line, timestamp};

/// The result of a check.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckOutcome {
    /// The checked item is correct.
    Ok,
    /// The item could not be checked.
    Skipped,
    /// The item works, but may fail later.
    Warn,
    /// With this problem a candidate does not start or does not lead.
    Fail,
}

/// The result of one check.
struct Finding {
    outcome: CheckOutcome,
    check: &'static str,
    text: String,
    fix: Option<String>,
}

/// All findings.
#[derive(Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    /// Adds the finding that the item is correct.
    pub(super) fn ok(&mut self, check: &'static str, text: impl AsRef<str>) {
        self.add(CheckOutcome::Ok, check, text.as_ref(), None);
    }

    /// Adds the finding that the item could not be checked.
    pub(super) fn skipped(&mut self, check: &'static str, text: impl AsRef<str>) {
        self.add(CheckOutcome::Skipped, check, text.as_ref(), None);
    }

    /// Adds the finding that the item works, but may fail later.
    pub(super) fn warn(&mut self, check: &'static str, text: impl AsRef<str>, fix: Option<String>) {
        self.add(CheckOutcome::Warn, check, text.as_ref(), fix);
    }

    /// Adds the finding that a candidate does not start or does not lead.
    pub(super) fn fail(&mut self, check: &'static str, text: impl AsRef<str>, fix: Option<String>) {
        self.add(CheckOutcome::Fail, check, text.as_ref(), fix);
    }

    /// Adds whether the item is correct; if not, why, which has this outcome, and its fix.
    pub(super) fn check(
        &mut self,
        check: &'static str,
        found: Result<&str, impl Display>,
        otherwise: CheckOutcome,
        fix: Option<&str>,
    ) {
        match found {
            Ok(right) => self.ok(check, right),
            Err(wrong) => self.add(otherwise, check, &wrong.to_string(), fix.map(str::to_owned)),
        }
    }

    /// Adds a finding with this outcome.
    pub(super) fn add(&mut self, outcome: CheckOutcome, check: &'static str, text: &str, fix: Option<String>) {
        let fix = fix.map(|fix| one_line(&fix));
        self.0.push(Finding { outcome, check, text: one_line(text), fix });
    }

    /// Whether a check fails.
    pub(super) fn have_failure(&self) -> bool {
        self.0.iter().any(|finding| finding.outcome == CheckOutcome::Fail)
    }

    /// Leaves out the findings that name no problem (`--quiet`).
    pub(super) fn keep_problems(&mut self) {
        self.0.retain(|finding| matches!(finding.outcome, CheckOutcome::Warn | CheckOutcome::Fail));
    }

    /// The last line: how many checks found what.
    pub(super) fn summary(&self) -> String {
        let count = |outcome| self.0.iter().filter(|finding| finding.outcome == outcome).count();
        let [fail, warn, skipped] = [CheckOutcome::Fail, CheckOutcome::Warn, CheckOutcome::Skipped].map(count);
        format!("{fail} FAIL, {warn} WARN, {skipped} not checked, {} checks\n", self.0.len())
    }

    /// One JSON object per finding: docs/json.md describes it.
    pub(super) fn json(&self, at: ReadAt, group: Option<&str>) -> String {
        let line = |Finding { outcome, check, text, fix }: &Finding| {
            json(&json!({
                "ts": timestamp(at.wall_ms), "group": group, "check": check, "outcome": outcome, "text": text, "fix": fix,
            })) + "\n"
        };
        self.0.iter().map(line).collect()
    }

    /// One line per finding, with its fix below; wrapped to a narrower terminal.
    pub(super) fn text(&self, style: Style) -> String {
        let checks = self.0.iter().map(|finding| finding.check.len()).max().unwrap_or_default();
        let (indent, width) = (OUTCOME + checks + 2, style.width());
        let lines = self.0.iter().map(|Finding { outcome, check, text, fix }| {
            let (word, tone) = outcome.shown();
            let painted = tone.map_or_else(|| word.to_owned(), |tone| style.paint(tone, word));
            let head = format!("{painted}{:gap$}{check:checks$}  ", "", gap = OUTCOME - word.len());
            let fix = fix.iter().map(|fix| hanging("", indent, &format!("fix: {fix}"), width));
            hanging(&head, indent, text, width) + &fix.collect::<String>()
        });
        lines.collect()
    }
}

/// The width of an outcome and the spaces behind it.
const OUTCOME: usize = 6;

impl CheckOutcome {
    const fn shown(self) -> (&'static str, Option<Tone>) {
        match self {
            Self::Ok => ("ok", Some(Tone::Good)),
            Self::Skipped => ("--", None),
            Self::Warn => ("WARN", Some(Tone::Unknown)),
            Self::Fail => ("FAIL", Some(Tone::Bad)),
        }
    }
}

/// The findings of a check, as a page without colours.
#[cfg(test)]
pub(super) fn page_of(look: impl FnOnce(&mut Findings)) -> String {
    let mut findings = Findings::default();
    look(&mut findings);
    findings.text(Style { is_coloured: false, columns: None })
}

/// The user and the address that these commands need.
pub(super) struct Fixes {
    pub(super) bootstrap: String,
    /// The user as access rules name it.
    principal: String,
    /// Whether Kafka's tools need a configuration for login or TLS.
    is_secured: bool,
}

impl Fixes {
    /// The commands for the user of this client.
    pub(super) fn of(client: &Client, bootstrap: &str) -> Self {
        let protocol = client.properties.find("security.protocol").unwrap_or("plaintext").to_lowercase();
        let user = client.properties.find("sasl.username").filter(|_| protocol.starts_with("sasl"));
        let principal = match (user, protocol.as_str()) {
            (Some(user), _) => format!("User:{user}"),
            (None, "plaintext") => "User:ANONYMOUS".to_owned(),
            (None, "ssl") => "User:<subject of the certificate>".to_owned(),
            (None, _) => "User:<the name in the ticket or token>".to_owned(),
        };
        Self { bootstrap: bootstrap.to_owned(), principal, is_secured: protocol != "plaintext" }
    }

    /// The command that allows these operations on a `--topic` or `--group` of this name.
    pub(super) fn allow(&self, operations: &[&str], (kind, name): (&str, &str)) -> String {
        let operations: Vec<String> = operations.iter().map(|operation| format!("--operation {operation}")).collect();
        let (tool, user, operations) = (self.tool("kafka-acls.sh"), quoted(&self.principal), operations.join(" "));
        format!("{tool} --add --allow-principal {user} {operations} {kind} {}", quoted(name))
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
    use neli_kafka::Properties;

    use super::*;

    fn findings() -> Findings {
        let mut findings = Findings::default();
        findings.ok("proc", "all processes are shown");
        findings.fail("open-files", "32 open files are too few", Some("ulimit -n 1024".to_owned()));
        findings.skipped("topic", "Kafka is not reached");
        findings
    }

    #[test]
    fn each_finding_is_one_line_with_its_fix_below() {
        let text = findings().text(Style { is_coloured: false, columns: None });
        let expected = "ok    proc        all processes are shown\n\
                        FAIL  open-files  32 open files are too few\n                  fix: ulimit -n 1024\n\
                        --    topic       Kafka is not reached\n";
        assert_eq!(text, expected);
        assert_eq!(findings().summary(), "1 FAIL, 0 WARN, 1 not checked, 3 checks\n");
        let mut problems = findings();
        problems.keep_problems();
        let text = problems.text(Style { is_coloured: false, columns: None });
        assert_eq!(text, "FAIL  open-files  32 open files are too few\n                  fix: ulimit -n 1024\n");
        assert!(findings().have_failure() && !Findings::default().have_failure());
        let coloured = findings().text(Style { is_coloured: true, columns: None });
        assert!(coloured.contains("\u{1b}[1;31mFAIL\u{1b}[0m  open-files  32"), "{coloured}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in [20, 59, 60, 80] {
            let text = findings().text(Style { is_coloured: false, columns: Some(columns) });
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{text}");
        }
    }

    fn fixes(properties: &[(&str, &str)]) -> Fixes {
        let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let client = Client { bootstrap: Some("a:1".to_owned()), properties: Properties(properties) };
        Fixes::of(&client, "a:1")
    }

    #[test]
    fn a_right_is_granted_to_the_user_of_the_login() {
        let plain = fixes(&[]).allow(&["Read", "Write"], ("--topic", "g.neli"));
        let expected = "kafka-acls.sh --bootstrap-server a:1 --add --allow-principal User:ANONYMOUS --operation Read --operation \
                        Write --topic g.neli";
        assert_eq!(plain, expected);
        let login = fixes(&[("security.protocol", "SASL_SSL"), ("sasl.username", "it's me")]);
        let command = login.allow(&["Read"], ("--group", "a b"));
        let expected = r"kafka-acls.sh --bootstrap-server a:1 --command-config admin.properties --add --allow-principal 'User:it'\''s me' --operation Read --group 'a b'";
        assert_eq!(command, expected);
        let certificate = fixes(&[("security.protocol", "ssl")]).allow(&["Read"], ("--group", "g"));
        assert!(
            certificate.ends_with(" 'User:<subject of the certificate>' --operation Read --group g"),
            "{certificate}"
        );
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
