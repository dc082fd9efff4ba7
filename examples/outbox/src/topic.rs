//! The Kafka topic for the rows.

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};

use crate::Error;
use crate::table::Row;

/// The header with the row's id: a reader that has seen a higher id of the same key has seen this row.
pub const ID_HEADER: &str = "outbox-id";

/// The topic for the rows.
pub struct Topic {
    producer: FutureProducer,
    name: String,
}

impl Topic {
    /// `brokers`: `host:port,...`.
    ///
    /// # Errors
    /// [`Error::Topic`] if no producer can be created.
    pub fn open(brokers: &str, name: &str) -> Result<Self, Error> {
        let producer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            // Records that are sent again stay in order and are not duplicated.
            .set("enable.idempotence", "true")
            // If Kafka refuses a row, the producer stops: a later row of the same key must not be stored before it.
            .set("enable.gapless.guarantee", "true")
            // Relayed rows are not sent again: their records must survive the failure of a broker.
            .set("acks", "all")
            .set("linger.ms", "1")
            // If a record can't be sent for this long, the relay ends and is started again.
            .set("message.timeout.ms", "30000")
            .create()?;
        Ok(Self { producer, name: name.to_owned() })
    }

    /// Sends rows in order, and waits until all of them are stored.
    ///
    /// # Errors
    /// [`Error::Topic`] if one of them was not: those before it are stored, and those after it may be.
    pub async fn send(&self, rows: &[Row]) -> Result<(), Error> {
        let mut sent = Vec::with_capacity(rows.len());
        for row in rows {
            let id = row.id.to_string();
            let headers = OwnedHeaders::new().insert(Header { key: ID_HEADER, value: Some(&id) });
            let record = FutureRecord::to(&self.name).key(&row.key).payload(&row.payload).headers(headers);
            // No more rows are read at a time than the producer's queue holds.
            sent.push(self.producer.send_result(record).map_err(|(error, _)| error)?);
        }
        for delivery in sent {
            delivery.await.map_err(|_| KafkaError::Canceled)?.map_err(|(error, _)| error)?;
        }
        Ok(())
    }
}
