//! The example `web`: an instance forwards a write to the leader, whichever instance gets the request, and to the next leader when that
//! leader has ended.

use std::time::Duration;

use neli_election::{Election, Elector, EmbeddedBroker, Follower};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::limit::soon;

#[path = "../../examples/web.rs"]
#[expect(dead_code, reason = "its main is not called here")]
mod web;

/// The address of an instance, and its task.
async fn instance(broker: &EmbeddedBroker) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let builder = Election::builder("web").embedded(broker).elector(Elector::Log).name(&address);
    let builder = builder.lease(Duration::from_secs(2));
    let task = tokio::spawn(async move { web::run(builder, &listener).await.unwrap() });
    (address, task)
}

async fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{request} HTTP/1.1\r\nhost: web\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn write(address: &str) -> String {
    ask(address, "POST /add").await
}

/// Waits until this instance is known as the leader and accepts writes.
async fn leads(follower: &mut Follower, address: &str) {
    let wait = async {
        while follower.leader().and_then(|leader| leader.name).as_deref() != Some(address) {
            follower.changed().await.unwrap();
        }
        while !write(address).await.starts_with("HTTP/1.1 200 ") {
            tokio::task::yield_now().await;
        }
    };
    soon("a leader that accepts writes", wait).await;
}

#[tokio::test(flavor = "current_thread")]
async fn writes_go_to_the_leader() {
    let broker = EmbeddedBroker::start().unwrap();
    let mut follower = Election::builder("web").embedded(&broker).follow().unwrap();
    let (first, first_task) = instance(&broker).await;
    leads(&mut follower, &first).await;
    let (second, second_task) = instance(&broker).await;
    // The instance does not know the leader before it has joined.
    let ask_second = async {
        loop {
            let answer = write(&second).await;
            if !answer.starts_with("HTTP/1.1 503 ") {
                return answer;
            }
        }
    };
    let elsewhere = soon("an instance that knows the leader", ask_second).await;
    assert!(elsewhere.starts_with("HTTP/1.1 307 "), "{elsewhere}");
    assert!(elsewhere.contains(&format!("location: http://{first}/add\r\n")), "{elsewhere}");
    assert!(ask(&second, "GET /").await.ends_with("\r\n\r\n0\n"), "its own store");

    // This has the same effect as the end of its process.
    first_task.abort();
    leads(&mut follower, &second).await;
    second_task.abort();
}
