//! The packages hold what they are for, made of the program that the tests have.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_neli-run");
const DOCKERFILE: &str = include_str!("../packaging/Dockerfile");

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn pack(script: &str, into: &Path) -> Output {
    let mut command = Command::new(root("packaging").join(script));
    // What a package is compressed with is no matter of this test, and would take most of its time.
    command.env("DPKG_DEB_COMPRESSOR_TYPE", "none").env_remove("OLDEST_GLIBC");
    command.arg(PROGRAM).arg(into).output().unwrap()
}

/// The package that the script made, as it says on its last line.
fn made(answer: &Output) -> String {
    assert!(answer.status.success(), "{answer:?}");
    String::from_utf8(answer.stdout.clone()).unwrap().trim().to_owned()
}

fn succeeds(command: &mut Command) -> String {
    let answer = command.output().unwrap();
    assert!(answer.status.success(), "{command:?}: {answer:?}");
    String::from_utf8(answer.stdout).unwrap()
}

#[test]
fn the_debian_package_has_program_manual_completions_and_unit() {
    if let Err(error) = Command::new("dpkg-shlibdeps").arg("--version").output() {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let _ = writeln!(std::io::stderr(), "packaging: dpkg-dev is not here, and packaging/deb was not tried");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let package = made(&pack("deb", directory.path()));
    let tree = directory.path().join("tree");
    succeeds(Command::new("dpkg-deb").arg("--extract").args([&package, tree.to_str().unwrap()]));
    let mut files = vec![
        "etc/neli-run".to_owned(),
        "usr/lib/systemd/system/neli-run@.service".to_owned(),
        "usr/share/bash-completion/completions/neli-run".to_owned(),
        "usr/share/fish/vendor_completions.d/neli-run.fish".to_owned(),
        "usr/share/zsh/vendor-completions/_neli-run".to_owned(),
        "usr/share/doc/neli-run/copyright".to_owned(),
    ];
    let pages = std::fs::read_dir(root("man")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files.extend(pages.filter(|page| page.ends_with(".1")).map(|page| format!("usr/share/man/man1/{page}.gz")));
    for file in files {
        assert!(tree.join(&file).exists(), "{file} is not in the package");
    }
    let of = |program: &Path| succeeds(Command::new(program).arg("--version"));
    assert_eq!(of(&tree.join("usr/bin/neli-run")), of(Path::new(PROGRAM)));
    let depends = succeeds(Command::new("dpkg-deb").arg("--field").args([&package, "Depends"]));
    assert!(depends.contains("libc6 (>= "), "{depends}");
}

/// A tarball's program must run everywhere: one that needs more than glibc is refused.
#[test]
fn a_tarball_needs_glibc_alone() {
    let directory = tempfile::tempdir().unwrap();
    let answer = pack("tarball", directory.path());
    if cfg!(all(feature = "ssl-vendored", feature = "libz-static")) {
        assert!(made(&answer).contains(".tar.gz (glibc "), "{answer:?}");
    } else if cfg!(all(feature = "ssl", not(feature = "ssl-vendored"))) {
        let said = String::from_utf8(answer.stderr).unwrap();
        assert!(
            !answer.status.success() && said.contains(" needs more than glibc: ") && said.contains("libssl"),
            "{said}"
        );
    }
}

#[test]
fn the_image_is_built_of_what_a_build_needs() {
    let nothing = Command::new("/bin/sh").arg(root("prerequisites.sh")).env("PATH", "/nowhere").output().unwrap();
    let said = String::from_utf8(nothing.stderr).unwrap();
    let (_, packages) = said.trim().split_once("apt-get install ").unwrap();
    let build = DOCKERFILE.split("\nFROM ").nth(1).unwrap();
    let has = |package: &&str| build.contains(&format!(" {package} "));
    // The base image has a C compiler.
    let missing: Vec<&str> =
        packages.split(' ').filter(|package| !["gcc", "libc6-dev"].contains(package) && !has(package)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let rust = format!("rust:{}-slim-", env!("CARGO_PKG_RUST_VERSION"));
    assert!(build.starts_with(&rust), "{rust}");
    for line in ["USER 65532:65532", "STOPSIGNAL SIGTERM", "ENTRYPOINT [\"/usr/local/bin/neli-run\"]"] {
        assert!(DOCKERFILE.lines().any(|found| found == line), "{line}");
    }
}
