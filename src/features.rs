//! Build options of this program: Cargo's features, and librdkafka's.

use std::sync::LazyLock;

/// TLS, SCRAM and OAUTHBEARER.
pub const SSL: Feature = Feature { name: "ssl", is_built: cfg!(feature = "ssl") };
/// TLS with an OpenSSL of its own.
pub const SSL_VENDORED: Feature = Feature { name: "ssl-vendored", is_built: cfg!(feature = "ssl-vendored") };
/// Kerberos.
pub const GSSAPI: Feature = Feature { name: "gssapi", is_built: cfg!(feature = "gssapi") };
/// OAUTHBEARER with tokens from an identity provider.
pub const OIDC: Feature = Feature { name: "oidc", is_built: cfg!(feature = "oidc") };

/// zlib linked in.
pub const LIBZ_STATIC: Feature = Feature { name: "libz-static", is_built: cfg!(feature = "libz-static") };

/// A feature that a user may choose at build time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Feature {
    /// Its name for `cargo build --features`.
    pub name: &'static str,
    /// Whether this program was built with it.
    pub is_built: bool,
}

impl Feature {
    /// The advice for a user who needs the feature.
    pub(crate) fn advice(self) -> String {
        format!("this neli-run was built without the feature {0} (cargo build --features {0})", self.name)
    }
}

/// The advice if librdkafka lacks a feature's library, which it names for this reason; `None` if it has the library but needs a later version.
pub(crate) fn not_built(reason: &str) -> Option<String> {
    let libraries = [("libsasl2", GSSAPI), ("libcurl", OIDC), ("OpenSSL", SSL)];
    let (_, feature) = libraries.into_iter().find(|(library, _)| reason.contains(library))?;
    (!feature.is_built).then(|| feature.advice())
}

/// The text of `--version` after the program's name.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let built = [SSL, SSL_VENDORED, GSSAPI, OIDC, LIBZ_STATIC].into_iter().filter(|feature| feature.is_built);
        let built: Vec<&str> = built.map(|feature| feature.name).collect();
        let features = if built.is_empty() { "none".to_owned() } else { built.join(" ") };
        let librdkafka = neli_kafka::librdkafka_version();
        format!("{} (features: {features}; librdkafka {librdkafka})", env!("CARGO_PKG_VERSION"))
    });
    &VERSION
}
