//! A web service with many instances, one of which accepts writes: the others redirect writers to it.
//!
//! ```sh
//! cargo run -p neli-election --example web -- kafka-1:9092,kafka-2:9092 127.0.0.1:8001
//! cargo run -p neli-election --example web -- kafka-1:9092,kafka-2:9092 127.0.0.1:8002
//! curl -L -X POST http://127.0.0.1:8002/add
//! ```
//!
//! Each candidate's name is its address, so the leader's name tells where writes go. Every instance answers `GET`; a `POST` is answered
//! by the leader, and by the others with `307` and the leader's address, or with `503` if there is no leader.
//!
//! It handles no signal: when the leader is ended, there is none for its lease, 20 s. `examples/outbox` shows how to leave at SIGTERM, so that
//! the next one leads at once.

#![expect(clippy::print_stdout, reason = "it shows what it does")]

use std::env;
use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use neli_election::{Builder, Election, Leader, Leadership, Lease};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The state of an instance.
struct Service {
    election: Election,
    /// The lease of this instance's last lead.
    lease: Mutex<Option<Lease>>,
    /// The data; in this example each instance has its own.
    sum: AtomicU64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(brokers), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("two arguments are needed: Kafka's brokers, and the address to listen at".into());
    };
    let listener = TcpListener::bind(&address).await?;
    let builder = Election::builder("web").brokers(brokers).name(&address);
    run(builder.on_warning(|message| println!("{message}")), &listener).await
}

/// Runs one instance until it fails.
pub(crate) async fn run(candidate: Builder, listener: &TcpListener) -> Result<(), Box<dyn Error>> {
    let election = candidate.join().await?;
    let service = Arc::new(Service { election, lease: Mutex::default(), sum: AtomicU64::new(0) });
    tokio::select! {
        left = lead(&service) => Ok(left?),
        error = serve(&service, listener) => Err(error.into()),
    }
}

/// Leads whenever this instance is elected, and keeps the lease for the request handlers.
async fn lead(service: &Service) -> Result<(), neli_election::Error> {
    let lead = |lease: Lease| async move {
        println!("taking the writes, in term {}", lease.token());
        *service.lease.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease.clone());
        // Writes in progress also hold the lease, and are awaited before the release.
        lease.ending().await;
    };
    service.election.serve(lead).await
}

async fn serve(service: &Arc<Service>, listener: &TcpListener) -> io::Error {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(answer(Arc::clone(service), stream))),
            Err(error) => return error,
        }
    }
}

/// Answers one request.
async fn answer(service: Arc<Service>, stream: TcpStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    stream.read_line(&mut request).await?;
    let mut header = String::new();
    while stream.read_line(&mut header).await? > 2 {
        header.clear();
    }
    let words: Vec<&str> = request.split_whitespace().collect();
    let answer = match words[..] {
        ["GET", _, _] => ok(&service.sum.load(Ordering::Relaxed).to_string()),
        ["POST", path, _] => write(&service, path).await,
        _ => "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_owned(),
    };
    stream.write_all(answer.as_bytes()).await
}

/// Handles a write: performs it under the lease, or redirects to the leader.
async fn write(service: &Service, path: &str) -> String {
    let lease = service.lease.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(lease) = lease
        && let Ok(Some(sum)) = lease.run(async |lease| add(service, &lease)).await
    {
        return ok(&sum.to_string());
    }
    match service.election.leadership() {
        // A leader whose lease still runs, as far as this instance knows. One that is silent may still answer.
        Leadership::Led(Leader { is_self: false, name: Some(leader), .. })
        | Leadership::Silent { leader: Leader { name: Some(leader), .. }, .. } => {
            format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{leader}{path}\r\ncontent-length: 0\r\n\r\n")
        }
        Leadership::Led(_) | Leadership::Silent { .. } | Leadership::Unknown { .. } | Leadership::Vacant => {
            "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n".to_owned()
        }
    }
}

/// The effect. A remote store would be awaited here: the term is not released before that has ended.
fn add(service: &Service, lease: &Lease) -> Option<u64> {
    // Checked immediately before the effect. A store that others write to would also get the fencing token.
    lease.is_valid().then(|| service.sum.fetch_add(1, Ordering::Relaxed) + 1)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}\n", body.len() + 1)
}
