//! Records that several tests use.

use neli_proto::record::Body;

/// A hello of a candidate with this priority and no other properties.
pub(crate) const fn hello(priority: u16) -> Body {
    Body::Hello {
        host: None,
        pid: None,
        version: None,
        elector: None,
        group_member: None,
        group_refuses: None,
        listen: None,
        priority,
        overlap_ms: None,
        waits_ms: None,
        joined: None,
        leaves: false,
    }
}
