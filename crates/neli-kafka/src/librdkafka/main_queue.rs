//! Waits for events in a client's main queue, without rust-rdkafka's `poll`.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use rdkafka::bindings as c;
use rdkafka::client::{Client, ClientContext};
use rdkafka::types::RDKafkaQueue;

use super::Owned;

/// A client's main queue. It must be dropped before the client.
pub(crate) struct MainQueue {
    queue: Owned<RDKafkaQueue>,
    wakeup: Arc<EventFd>,
}

// SAFETY: librdkafka's queues may be used from any thread.
unsafe impl Send for MainQueue {}

impl MainQueue {
    /// The main queue of this client. A client may have one value of this type at a time.
    ///
    /// # Errors
    ///
    /// There is no free file descriptor.
    pub(crate) fn of(client: &Client<impl ClientContext>) -> io::Result<Self> {
        let wakeup = EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?;
        // SAFETY: the handle is alive as long as the client is.
        let queue = unsafe { c::rd_kafka_queue_get_main(client.native_ptr()) };
        let queue = Owned::new(queue, c::rd_kafka_queue_destroy).map_err(io::Error::other)?;
        let wakeup_bytes = 1_u64.to_ne_bytes();
        // SAFETY: the queue is alive, librdkafka copies the bytes, and does not write them after the descriptor was closed (see `drop`).
        unsafe {
            c::rd_kafka_queue_io_event_enable(
                queue.as_ptr(),
                wakeup.as_raw_fd(),
                wakeup_bytes.as_ptr().cast(),
                wakeup_bytes.len(),
            );
        }
        Ok(Self { queue, wakeup: Arc::new(wakeup) })
    }

    /// Waits until there is an event in the queue, at most for `limit` if it is given. It may return too early.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        // SAFETY: the queue is alive.
        let is_empty = unsafe { c::rd_kafka_queue_length(self.queue.as_ptr()) } == 0;
        // librdkafka writes to the descriptor when an event comes into an empty queue, and again only after the queue was polled.
        if is_empty && limit.is_none_or(|limit| self.is_written_within(limit)) {
            let _ = self.wakeup.read();
        }
    }

    fn is_written_within(&self, limit: Duration) -> bool {
        let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        poll(&mut [PollFd::new(self.wakeup.as_fd(), PollFlags::POLLIN)], timeout).is_ok_and(|ready| ready > 0)
    }

    /// A write to this ends the present wait, or the next one.
    pub(crate) fn waker(&self) -> Arc<EventFd> {
        Arc::clone(&self.wakeup)
    }
}

impl Drop for MainQueue {
    fn drop(&mut self) {
        // SAFETY: the queue is alive; after this call librdkafka writes nothing to the descriptor, which is closed later.
        unsafe { c::rd_kafka_queue_io_event_enable(self.queue.as_ptr(), -1, ptr::null(), 0) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use rdkafka::ClientContext;
    use rdkafka::config::{ClientConfig, FromClientConfigAndContext};
    use rdkafka::message::DeliveryResult;
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

    use super::*;

    #[derive(Clone, Default)]
    struct Counting(Arc<AtomicUsize>);

    impl ClientContext for Counting {}

    impl ProducerContext for Counting {
        type DeliveryOpaque = ();

        fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn producer(brokers: &str) -> (BaseProducer<Counting>, Counting) {
        let context = Counting::default();
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", brokers);
        (BaseProducer::from_config_and_context(&config, context.clone()).unwrap(), context)
    }

    #[test]
    fn each_delivery_ends_a_wait() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("topic", 1, 1).unwrap();
        let (producer, context) = producer(&cluster.bootstrap_servers());
        let queue = MainQueue::of(producer.client()).unwrap();
        for records in [1, 3, 2] {
            let before = context.0.load(Ordering::Relaxed);
            for _ in 0..records {
                producer.send(BaseRecord::<(), str>::to("topic").payload("record")).unwrap();
            }
            while context.0.load(Ordering::Relaxed) < before + records {
                queue.wait(None);
                producer.poll(Duration::ZERO);
            }
        }
        drop(queue);
    }

    #[test]
    fn a_waiting_thread_can_be_woken() {
        let (producer, _) = producer("127.0.0.1:1");
        let queue = MainQueue::of(producer.client()).unwrap();
        let waker = queue.waker();
        waker.write(1).unwrap();
        queue.wait(None);
        let waits = thread::spawn(move || queue.wait(None));
        waker.write(1).unwrap();
        waits.join().unwrap();
    }

    #[test]
    fn a_wait_may_have_a_limit() {
        let producer: BaseProducer<Counting> =
            BaseProducer::from_config_and_context(&ClientConfig::new(), Counting::default()).unwrap();
        let queue = MainQueue::of(producer.client()).unwrap();
        queue.wait(Some(Duration::from_millis(1)));
        queue.waker().write(1).unwrap();
        queue.wait(Some(Duration::from_secs(3_600)));
    }
}
