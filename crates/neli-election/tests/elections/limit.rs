//! A limit for what a test awaits, so that the test fails where it would hang.

use std::future::Future;
use std::time::Duration;

/// Far above the time of any step.
const LIMIT: Duration = Duration::from_secs(60);

/// Awaits a future; the failure names `what`.
pub(crate) async fn soon<T>(what: &str, awaited: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, awaited).await.unwrap_or_else(|_| panic!("not within {LIMIT:?}: {what}"))
}
