//! A file of properties.

#![no_main]

#[path = "../../tests/bytes/holds.rs"]
mod holds;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A private file.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let file = std::env::temp_dir().join(format!("neli-run-fuzz-{}", std::process::id()));
    fs::write(&file, "").expect("a directory for what is temporary");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("ours");
    file
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| holds::of_a_file_of_properties(bytes, &FILE));
