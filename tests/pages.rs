//! Checks of claims in the pages.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The output of `prerequisites.sh`: with only a shell in the PATH, or on this machine as it is.
fn prerequisites(words: &[&str], has_nothing: bool) -> Output {
    let mut shell = Command::new("/bin/sh");
    if has_nothing {
        shell.env("PATH", "/nowhere").env_remove("CC").env_remove("CXX").env_remove("PKG_CONFIG");
        shell.env_remove("OPENSSL_DIR").env_remove("OPENSSL_LIB_DIR");
    }
    shell.arg(root("prerequisites.sh")).args(words).output().unwrap()
}

/// The packages that the script would install.
fn packages(answer: &Output) -> String {
    let said = String::from_utf8(answer.stderr.clone()).unwrap();
    assert!(answer.status.code() == Some(1) && answer.stdout.is_empty(), "{said}");
    let [missing, install] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(missing.starts_with("missing for a build: "), "{said}");
    install.strip_prefix("on Debian or Ubuntu: apt-get install ").unwrap().to_owned()
}

#[test]
fn missing_build_tools_are_named_at_once() {
    let (build, all) = (packages(&prerequisites(&[], true)), packages(&prerequisites(&["tests"], true)));
    let tests = all.strip_prefix(&build).unwrap().trim_start();
    let page = std::fs::read_to_string(root("docs/install.md")).unwrap().replace('\n', " ");
    for line in [&build, tests] {
        assert!(page.contains(&format!("(`apt-get install {line}`)")), "docs/install.md does not say {line}");
    }
    let more = packages(&prerequisites(&["oidc", "gssapi"], true));
    assert!(more.ends_with("libssl-dev libsasl2-dev libcurl4-openssl-dev"), "{more}");
    // This machine can build, since it has built this test.
    let here = prerequisites(&[], false);
    assert!(here.status.success() && here.stderr.is_empty(), "{here:?}");
}

/// A machine that has a program of that name is not always one that can build.
#[test]
fn tools_that_are_too_old_or_incomplete_are_named() {
    let tools = tempfile::tempdir().unwrap();
    let add = |name: &str, script: &str| {
        let path = tools.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    };
    let said = |words: &[&str]| {
        let mut shell = Command::new("/bin/sh");
        let answer = shell.env("PATH", tools.path()).arg(root("prerequisites.sh")).args(words).output().unwrap();
        String::from_utf8(answer.stderr).unwrap()
    };
    for (version, message) in [
        (
            "cargo 1.87.0 (99624be96 2025-05-06)",
            Some("Rust 1.88 or later (https://rustup.rs; this is cargo 1.87.0 (99624be96 2025-05-06))"),
        ),
        ("cargo 1.88.0", None),
        ("cargo 1.100.0-nightly (0a1b2c3d4 2027-01-01)", None),
        ("", Some("Rust 1.88 or later (https://rustup.rs)")),
    ] {
        add("cargo", &format!("echo '{version}'"));
        let said = said(&[]);
        assert_eq!(said.contains("Rust"), message.is_some(), "{version}: {said}");
        assert!(said.contains(message.unwrap_or_default()), "{version}: {said}");
    }
    let oldest = std::fs::read_to_string(root("prerequisites.sh")).unwrap();
    assert!(oldest.contains(&format!("\noldest_rust={}\n", env!("CARGO_PKG_RUST_VERSION"))), "{oldest}");
    // As in Debian's perl-base.
    add("perl", r#"case "$*" in *FindBin*) echo "Can't locate FindBin.pm in @INC" >&2; exit 2 ;; esac"#);
    assert!(
        said(&["ssl-vendored"]).contains(", perl with FindBin, IPC::Cmd and Time::Piece"),
        "{}",
        said(&["ssl-vendored"])
    );
    assert!(said(&["deb"]).trim_end().ends_with(" dpkg-dev"), "{}", said(&["deb"]));
}

#[test]
fn an_unknown_word_of_a_build_is_refused() {
    let answer = prerequisites(&["test"], false);
    let said = String::from_utf8(answer.stderr).unwrap();
    let words = "the words are deb, gssapi, libz-static, oidc, ssl-vendored and tests";
    assert_eq!((answer.status.code(), said), (Some(2), format!("prerequisites.sh: unknown word \"test\"; {words}\n")));
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
