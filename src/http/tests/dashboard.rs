//! The example dashboards and alert rules use only exported metrics and their labels, and rates only of counters. Grafana accepts the
//! dashboards.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{exported, leading, now, snapshot};
use crate::command::observe;
use crate::http::metrics;

const DASHBOARDS: [&str; 2] = [
    include_str!("../../../examples/monitoring/grafana.json"),
    include_str!("../../../examples/monitoring/observe.grafana.json"),
];
const ALERTS: [&str; 2] = [
    include_str!("../../../examples/monitoring/alerts.yaml"),
    include_str!("../../../examples/monitoring/observe.alerts.yaml"),
];

/// Labels that Prometheus adds.
const OF_PROMETHEUS: [&str; 2] = ["instance", "job"];

/// Words that may occur in an expression, besides metrics, labels and variables.
const WORDS: [&str; 15] = [
    "absent",
    "and",
    "by",
    "group_left",
    "histogram_quantile",
    "increase",
    "label_values",
    "last_over_time",
    "max",
    "on",
    "or",
    "rate",
    "sum",
    "time",
    "unless",
];

/// The metrics of a candidate, and of `observe`.
fn all_metrics() -> String {
    metrics::render(&snapshot(now(), vec![leading()]), now()) + &observe::tests::metrics_of_all_kinds()
}

/// Grafana's own variables that are used.
const OF_GRAFANA: [&str; 1] = ["__rate_interval"];

/// The width of a row in Grafana.
const COLUMNS: u64 = 24;

/// Each exported metric, by the name that queries use, with its labels.
fn labels() -> BTreeMap<String, BTreeSet<String>> {
    let text = all_metrics();
    let mut labels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, _) = line.rsplit_once(' ').expect("each has a value");
        let (name, pairs) = name.trim_end_matches('}').split_once('{').unwrap_or((name, ""));
        let names = pairs.split("\",").filter_map(|pair| pair.split_once("=\"")).map(|(label, _)| label.to_owned());
        labels.entry(name.to_owned()).or_default().extend(names.chain(OF_PROMETHEUS.map(str::to_owned)));
    }
    labels
}

/// The counters, and the parts of a histogram.
fn is_counted(metric: &str) -> bool {
    let text = all_metrics();
    let kinds = exported(&text);
    let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|part| kinds.get(metric.strip_suffix(part)?));
    kinds.get(metric) == Some(&"counter") || of_histogram == Some(&"histogram")
}

/// A part of an expression.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Sign(char),
}

fn tokens(expression: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_of_word = |c: char| c == '_' || c == '$' || c == '.' || c.is_ascii_alphanumeric();
        let length = if first == '"' {
            rest[1..].find('"').expect("a text ends") + 2
        } else if is_of_word(first) {
            rest.find(|c| !is_of_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, behind) = rest.split_at(length);
        found.push(match first {
            '"' => Token::Text(token.trim_matches('"')),
            _ if is_of_word(first) => Token::Word(token),
            sign => Token::Sign(sign),
        });
        rest = behind.trim_start();
    }
    found
}

/// The error in an expression that may use these variables; `None` if it uses only exported metrics. `legend` and similar texts name labels
/// of the result.
fn fault(expression: &str, legend: &str, variables: &BTreeSet<&str>) -> Option<String> {
    let exported = labels();
    let tokens = tokens(expression);
    let word = |at: usize| if let Some(Token::Word(word)) = tokens.get(at) { Some(*word) } else { None };
    let (mut open, mut asked, mut named) = (Vec::new(), BTreeSet::new(), Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(word);
        match *token {
            Token::Sign(sign @ ('(' | '{' | '[')) => open.push((sign, before)),
            Token::Sign(sign @ (')' | '}' | ']')) => {
                let Some((begun, _)) = open.pop() else { return Some(format!("{sign} closes nothing")) };
                if ["()", "{}", "[]"].iter().all(|pair| *pair != format!("{begun}{sign}")) {
                    return Some(format!("{begun} is closed by {sign}"));
                }
            }
            Token::Sign(_) => {}
            Token::Text(text) => {
                if let Some(unknown) = variables_of(text).find(|name| !variables.contains(name)) {
                    return Some(format!("no variable is called {unknown}"));
                }
            }
            Token::Word(word) => match open.last() {
                Some(('[', _)) => {
                    let variable = word.strip_prefix('$');
                    if variable.is_some_and(|name| !OF_GRAFANA.contains(&name)) {
                        return Some(format!("no variable is called {word}"));
                    }
                }
                Some(('{', metric)) => named.push((metric.unwrap_or_default(), word)),
                Some(('(', Some("by" | "on" | "group_left"))) => named.push(("", word)),
                _ if word.starts_with("neli_") => {
                    if !exported.contains_key(word) {
                        return Some(format!("no metric is called {word}"));
                    }
                    asked.insert(word);
                    let of_rate = open.last().is_some_and(|(_, of)| matches!(of, Some("increase" | "rate")));
                    if of_rate != is_counted(word) {
                        return Some(format!(
                            "{word} is asked for as what it is not: only of what counts there is a rate"
                        ));
                    }
                }
                _ if word.starts_with(|c: char| c.is_ascii_digit()) || WORDS.contains(&word) => {}
                Some(('(', Some("label_values"))) => named.push(("", word)),
                _ => return Some(format!("{word} is no word that is known here")),
            },
        }
    }
    if let Some((sign, _)) = open.last() {
        return Some(format!("{sign} is not closed"));
    }
    named.extend(legend.split("{{").skip(1).filter_map(|rest| Some(("", rest.split_once("}}")?.0.trim()))));
    let has = |metric: &str, label: &str| exported.get(metric).is_some_and(|labels| labels.contains(label));
    let unknown = named.iter().find(|(metric, label)| match *metric {
        "" => !asked.iter().any(|metric| has(metric, label)),
        metric => !has(metric, label),
    });
    unknown.map(|(metric, label)| format!("{metric} has no label {label}"))
}

/// The variables in a text: `$name` or `${name}`.
fn variables_of(text: &str) -> impl Iterator<Item = &str> {
    let of_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    text.split('$').skip(1).map(move |rest| {
        let rest = rest.trim_start_matches('{');
        rest.split(|c| !of_name(c)).next().unwrap_or_default()
    })
}

fn dashboards() -> [Value; 2] {
    DASHBOARDS.map(|text| serde_json::from_str(text).unwrap())
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object[field].as_array().unwrap_or_else(|| panic!("{field} is no list: {object}"))
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_else(|| panic!("{field} is no text: {object}"))
}

#[test]
fn each_expression_asks_for_what_is_exported() {
    for (dashboard, alerts) in dashboards().iter().zip(ALERTS) {
        let variables = list(&dashboard["templating"], "list");
        let names: BTreeSet<&str> = variables.iter().map(|of| text(of, "name")).collect();
        let panels = list(dashboard, "panels").iter().flat_map(|panel| list(panel, "targets"));
        let asked = panels.map(|target| (text(target, "expr"), text(target, "legendFormat")));
        let queries = variables.iter().filter(|variable| variable["type"] == "query");
        let queries = queries.map(|variable| (text(&variable["query"], "query"), ""));
        let rules = alerts.lines().filter_map(|line| Some((line.trim_start().strip_prefix("expr: ")?, "")));
        let mut count = 0;
        for (expression, legend) in asked.chain(queries).chain(rules) {
            assert_eq!(fault(expression, legend, &names), None, "{expression} {legend}");
            count += 1;
        }
        assert!(count > 15, "{count} expressions");
    }
}

#[test]
fn an_expression_that_asks_for_something_else_is_found() {
    let variables = BTreeSet::from(["group"]);
    let fault = |expression, legend| fault(expression, legend, &variables).unwrap_or_default();
    assert_eq!(fault("sum by (group) (neli_leader{group=~\"$group\"}) > 1", "{{group}} {{instance}}"), "");
    for (expression, legend, expected) in [
        ("neli_leaders", "", "no metric is called neli_leaders"),
        ("neli_echo_seconds", "", "no metric is called neli_echo_seconds"),
        ("neli_broker_up{role=\"0\"}", "", "neli_broker_up has no label role"),
        ("max by (name) (neli_leader)", "", " has no label name"),
        ("neli_leader", "{{host}}", " has no label host"),
        ("neli_leader{group=~\"$role\"}", "", "no variable is called role"),
        ("rate(neli_fences_total[$interval])", "", "no variable is called $interval"),
        (
            "rate(neli_leader[5m])",
            "",
            "neli_leader is asked for as what it is not: only of what counts there is a rate",
        ),
        (
            "neli_fences_total",
            "",
            "neli_fences_total is asked for as what it is not: only of what counts there is a rate",
        ),
        ("summe(neli_leader)", "", "summe is no word that is known here"),
        ("sum(neli_leader", "", "( is not closed"),
        ("sum(neli_leader]", "", "( is closed by ]"),
        ("neli_leader)", "", ") closes nothing"),
    ] {
        assert_eq!(fault(expression, legend), expected, "{expression} {legend}");
    }
}

/// Grafana's requirements for an imported dashboard.
#[test]
fn grafana_accepts_the_dashboards() {
    dashboards().iter().for_each(assert_accepted);
}

fn assert_accepted(dashboard: &Value) {
    assert!(
        dashboard["schemaVersion"].as_u64().is_some_and(|version| version >= 36),
        "before that it has no such panels"
    );
    assert!(!text(dashboard, "title").is_empty());
    assert!((1..=40).contains(&text(dashboard, "uid").len()), "longer ones are refused");
    assert!(dashboard["id"].is_null(), "it would overwrite another");
    let variables = list(&dashboard["templating"], "list");
    assert_eq!((&variables[0]["type"], &variables[0]["query"]), (&"datasource".into(), &"prometheus".into()));
    let source = format!("${{{}}}", text(&variables[0], "name"));
    let is_of_source = |object: &Value| {
        (text(&object["datasource"], "type"), text(&object["datasource"], "uid")) == ("prometheus", source.as_str())
    };
    assert!(variables[1..].iter().all(is_of_source));
    let names: BTreeSet<&str> = variables.iter().map(|variable| text(variable, "name")).collect();
    assert_eq!(names.len(), variables.len(), "a variable is there twice");

    let mut ids = BTreeSet::new();
    let mut places: Vec<(&str, [u64; 4])> = Vec::new();
    for panel in list(dashboard, "panels") {
        let title = text(panel, "title");
        let id = panel["id"].as_u64().filter(|id| *id > 0);
        assert!(id.is_some_and(|id| ids.insert(id)), "{title}: its id is no number, or there twice");
        assert!(!text(panel, "type").is_empty() && is_of_source(panel), "{title}");
        let targets = list(panel, "targets");
        let letters: BTreeSet<&str> = targets.iter().map(|target| text(target, "refId")).collect();
        assert!(letters.len() == targets.len() && !targets.is_empty(), "{title}: a refId is there twice");
        assert!(targets.iter().all(is_of_source), "{title}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|field| panel["gridPos"][field].as_u64().expect("a number"));
        assert!(w > 0 && h > 0 && x + w <= COLUMNS, "{title}: it is not on the page");
        for (other, [ox, oy, ow, oh]) in &places {
            let is_beside = x + w <= *ox || ox + ow <= x || y + h <= *oy || oy + oh <= y;
            assert!(is_beside, "{title} lies on {other}");
        }
        places.push((title, [x, y, w, h]));
    }
    assert!(places.len() > 5);
}
