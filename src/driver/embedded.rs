//! To come.

/// To come.
pub struct Connection;

impl Connection {
    /// To come.
    ///
    /// # Errors
    ///
    /// To come.
    pub fn create_topic(&self, _topic: &str, _partitions: i32) -> std::io::Result<()> {
        Ok(())
    }
}
