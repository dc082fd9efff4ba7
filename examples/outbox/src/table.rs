//! The outbox table, and the fence that refuses an earlier leader.

use tokio_postgres::{Client, NoTls};

use crate::Error;

/// A row that is to be relayed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Row {
    /// Rows of one key are relayed in the order of their ids.
    pub id: i64,
    /// The key of the Kafka record.
    pub key: String,
    /// The payload of the Kafka record.
    pub payload: String,
}

/// The table, for one relay in one term.
///
/// The term is the fencing token: it increases with each leader. Whatever this process believes, the table accepts nothing from it once a
/// later term has begun.
#[derive(Debug)]
pub struct Table {
    client: Client,
    relay: String,
    term: i64,
}

impl Table {
    /// Connects (`host=... user=... dbname=...`) and begins `term`.
    ///
    /// # Errors
    /// [`Error::Fenced`] if a later term has begun already; [`Error::Table`] if the database can't be reached or has no such table.
    pub async fn open(database: &str, relay: &str, term: i64) -> Result<Self, Error> {
        let (client, connection) = tokio_postgres::connect(database, NoTls).await?;
        // The connection ends with the client, whose calls return its errors.
        tokio::spawn(connection);
        // In one statement: it waits for a mark that the previous leader is committing, and refuses all later ones.
        let begun = client
            .execute(
                "INSERT INTO outbox_fence (relay, term) VALUES ($1, $2)
                 ON CONFLICT (relay) DO UPDATE SET term = EXCLUDED.term WHERE outbox_fence.term <= EXCLUDED.term",
                &[&relay, &term],
            )
            .await?;
        if begun == 0 {
            return Err(Error::Fenced { term });
        }
        Ok(Self { client, relay: relay.to_owned(), term })
    }

    /// The oldest rows that are not relayed yet, at most `count`, in order.
    ///
    /// # Errors
    /// [`Error::Table`] if the database does not answer.
    pub async fn pending(&self, count: i64) -> Result<Vec<Row>, Error> {
        let rows = self
            .client
            .query("SELECT id, key, payload FROM outbox WHERE relayed_in IS NULL ORDER BY id LIMIT $1", &[&count])
            .await?;
        Ok(rows.iter().map(|row| Row { id: row.get(0), key: row.get(1), payload: row.get(2) }).collect())
    }

    /// Marks rows as relayed, if this is still the current term: the fence's row is locked until the mark is committed, so that no later
    /// term can begin in between.
    ///
    /// # Errors
    /// [`Error::Fenced`] if a later term has begun: then nothing is marked. [`Error::Table`] if the database does not answer; the rows
    /// may be marked or not.
    pub async fn mark(&self, rows: &[Row]) -> Result<(), Error> {
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let marked = self
            .client
            .execute(
                "WITH fence AS (SELECT term FROM outbox_fence WHERE relay = $1 AND term = $2 FOR UPDATE)
                 UPDATE outbox SET relayed_in = fence.term FROM fence WHERE outbox.id = ANY ($3)",
                &[&self.relay, &self.term, &ids],
            )
            .await?;
        if marked == 0 && !ids.is_empty() { Err(Error::Fenced { term: self.term }) } else { Ok(()) }
    }
}
