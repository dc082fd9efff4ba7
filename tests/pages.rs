//! Checks of claims in the pages.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

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
    let readme = std::fs::read_to_string(root("README.md")).unwrap().replace('\n', " ");
    for line in [&build, tests] {
        assert!(readme.contains(&format!("(`apt-get install {line}`)")), "README.md does not say {line}");
    }
    let more = packages(&prerequisites(&["oidc", "gssapi"], true));
    assert!(more.ends_with("libssl-dev libsasl2-dev libcurl4-openssl-dev"), "{more}");
    // This machine can build, since it has built this test.
    let here = prerequisites(&[], false);
    assert!(here.status.success() && here.stderr.is_empty(), "{here:?}");
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
