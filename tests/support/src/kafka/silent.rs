//! A broker that never answers.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A broker that accepts connections and never answers.
#[derive(Debug)]
pub struct SilentBroker {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl SilentBroker {
    /// Listens on a port of its own.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        thread::spawn(move || {
            // Connections are kept open until the end, because closing one would be an answer.
            let mut held = Vec::new();
            while let Ok((connection, _)) = listener.accept() {
                if seen.load(Ordering::Relaxed) {
                    return;
                }
                held.push(connection);
            }
        });
        Self { address, over }
    }

    /// Its `HOST:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for SilentBroker {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread; the connection fails if the thread has ended already.
        let _ = TcpStream::connect(self.address);
    }
}
