//! The Kafka topic that the rows go to.

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};

use crate::Error;
use crate::table::Row;

/// The header with the row's id: who has seen a higher one of the same key has seen this row.
pub const ID_HEADER: &str = "outbox-id";

/// The topic that the rows go to.
pub struct Topic {
    producer: FutureProducer,
    name: String,
}

impl Topic {
    /// `brokers`: where Kafka is, `host:port,...`.
    ///
    /// # Errors
    /// [`Error::Topic`] when no producer can be made.
    pub fn open(brokers: &str, name: &str) -> Result<Self, Error> {
        let producer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            // What is sent again stays in order, and is there once.
            .set("enable.idempotence", "true")
            // Relayed rows are gone from the outbox: they must outlive a broker.
            .set("acks", "all")
            .set("linger.ms", "1")
            // What can't be sent for so long ends the relay, which is then started anew.
            .set("message.timeout.ms", "30000")
            .create()?;
        Ok(Self { producer, name: name.to_owned() })
    }

    /// Sends rows in order, and waits until all of them are kept.
    ///
    /// # Errors
    /// [`Error::Topic`] when one of them was not: those before it are kept, and those after it may be.
    pub async fn send(&self, rows: &[Row]) -> Result<(), Error> {
        let mut sent = Vec::with_capacity(rows.len());
        for row in rows {
            let id = row.id.to_string();
            let headers = OwnedHeaders::new().insert(Header { key: ID_HEADER, value: Some(&id) });
            let record = FutureRecord::to(&self.name).key(&row.key).payload(&row.payload).headers(headers);
            // No more rows are read at a time than the producer's queue takes.
            sent.push(self.producer.send_result(record).map_err(|(error, _)| error)?);
        }
        for delivery in sent {
            delivery.await.map_err(|_| KafkaError::Canceled)?.map_err(|(error, _)| error)?;
        }
        Ok(())
    }
}
