//! The page of `--listen` in a real browser: headless Chromium, controlled by its debugging protocol over pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use harness::candidate::Elector;
use harness::not_tested;
use harness::wait;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::election;

/// The browser's program name in Debian and elsewhere.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The width and height of a small phone, in CSS pixels.
const PHONE: (u32, u32) = (375, 667);

/// The browser reads commands at descriptor 3 and answers at descriptor 4, which are connected to its stdin and stdout pipes.
const AT_PIPES: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

/// A browser with one page.
struct Browser {
    child: Child,
    orders: ChildStdin,
    messages: Receiver<Value>,
    /// The page's session, once it is open.
    session: Option<String>,
    last_id: u64,
    /// Messages that are not answers.
    events: Vec<Value>,
}

impl Browser {
    /// Starts a browser with its files in this directory, and opens an empty page; `None` if no browser is installed.
    fn start(directory: &Path) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = NAMES
            .iter()
            .flat_map(|name| std::env::split_paths(&path).map(move |directory| directory.join(name)))
            .find(|program| program.is_file())?;
        let mut command = Command::new("sh");
        command.args(["-c", AT_PIPES, "sh"]).arg(program);
        // As root the browser has no sandbox, and in a container /dev/shm is too small.
        command.args(["--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"]);
        command.args(["--disable-background-networking", "--remote-debugging-pipe"]);
        command.arg(format!("--user-data-dir={}", directory.join("browser").display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("every Linux has a shell");
        let (orders, answers) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (sender, messages) = channel();
        thread::spawn(move || {
            // Each message ends with a zero byte.
            for message in BufReader::new(answers).split(0).map_while(Result::ok) {
                if sender.send(serde_json::from_slice(&message).expect("JSON")).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self { child, orders, messages, session: None, last_id: 0, events: Vec::new() };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", &json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        Some(browser)
    }

    /// Sends a command and waits for the answer.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let mut order = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            order["sessionId"] = session.as_str().into();
        }
        self.orders.write_all(format!("{order}\0").as_bytes()).expect("the browser runs");
        loop {
            let message = self.next(&order);
            if message["id"] == self.last_id {
                assert!(message["error"].is_null(), "{order}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// The next message of the browser. If none comes, the failure contains the expected message.
    fn next(&self, awaited: &Value) -> Value {
        self.messages
            .recv_timeout(wait::PATIENCE)
            .unwrap_or_else(|_| panic!("the browser has not sent the expected message: {awaited}"))
    }

    /// Loads a page and waits for it, because an earlier expression would run in the previous page.
    fn load(&mut self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.next(&url.into());
            self.events.push(event);
        }
    }

    /// The value of an expression in the page. If it is a promise, the browser waits for its result.
    fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until the page contains this text. The page itself reports it, so no polling is needed.
    fn await_text(&mut self, text: &str) {
        let expression = format!(
            "new Promise(done => {{
                const look = () => document.body.innerText.includes({text}) && done(true);
                new MutationObserver(look).observe(document, {{ subtree: true, childList: true, characterData: true }});
                look();
            }})",
            text = Value::from(text)
        );
        assert_eq!(self.value(&expression), true);
    }

    /// The values at `path` of all events of this kind.
    fn values_of(&self, method: &str, path: &str) -> Vec<String> {
        let events = self.events.iter().filter(|event| event["method"] == method);
        events.map(|event| event["params"].pointer(path).map(Value::to_string).unwrap_or_default()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser has replaced the shell, and its helper processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_follows_a_handover_at_a_phone_s_width() {
    let election = election(Elector::Log);
    let Some(mut browser) = Browser::start(election.directory()) else {
        return not_tested(&format!("the page in a browser: none of {} is here", NAMES.join(", ")));
    };
    let mut first = election.candidate().option("--name", "first").start();
    election.await_witness(first.await_lead());
    // Only the page's style sheet can break a word of this length.
    let long = "x".repeat(200);
    let mut second = election.candidate().option("--name", &long).option("--listen", "127.0.0.1:0").start();
    let address = second.await_event("listening").text("address").to_owned();
    second.await_event("standby");

    for domain in ["Runtime.enable", "Log.enable", "Network.enable", "Page.enable"] {
        browser.call(domain, &json!({}));
    }
    let (width, height) = PHONE;
    let phone = json!({ "width": width, "height": height, "deviceScaleFactor": 2, "mobile": true });
    browser.call("Emulation.setDeviceMetricsOverride", &phone);
    browser.load(&format!("http://{address}/"));
    browser.await_text("first leads");
    browser.await_text("live");
    assert_eq!(browser.value("document.title"), format!("{} · neli-run", election.group));
    assert_eq!(browser.value("getComputedStyle(document.querySelector('section')).borderLeftStyle"), "solid");
    // If the page were loaded again, this variable would not exist.
    browser.value("window.is_first = true");

    first.signal(Signal::SIGTERM);
    assert_eq!(first.status(), 0);
    let next = second.await_lead();
    election.await_witness(next);
    browser.await_text(&format!("{long} (this process) leads"));
    browser.await_text("running for");
    assert_eq!(browser.value("window.is_first"), true);
    assert_eq!(browser.value("document.querySelector('progress').max"), 20_000);

    // Neither the page as a whole nor any part of it is wider than the phone's screen.
    assert_eq!(browser.value("document.documentElement.clientWidth"), width);
    assert_eq!(browser.value("document.documentElement.scrollWidth"), width);
    let beyond = "[...document.querySelectorAll('body *')]
        .filter(part => part.getBoundingClientRect().right > innerWidth || part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0)
        .map(part => part.outerHTML)";
    assert_eq!(browser.value(beyond), json!([]));

    let requests = browser.values_of("Network.requestWillBeSent", "/request/url");
    let own = format!("\"http://{address}/");
    let is_own = |url: &String| url.starts_with(&own) || url.starts_with("\"data:");
    assert!(requests.len() >= 2 && requests.iter().all(is_own), "{requests:?}");
    assert_eq!(browser.values_of("Runtime.exceptionThrown", "/exceptionDetails"), [""; 0]);
    assert_eq!(browser.values_of("Runtime.consoleAPICalled", "/args"), [""; 0]);
    assert_eq!(browser.values_of("Log.entryAdded", "/entry"), [""; 0]);
    election.close([second]);
}
