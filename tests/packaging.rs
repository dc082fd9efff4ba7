//! The contents of the packages. They are made from the program that the tests use.

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
    // The tests don't check the compression, which would take most of the time.
    command.env("DPKG_DEB_COMPRESSOR_TYPE", "none").env_remove("OLDEST_GLIBC");
    command.arg(PROGRAM).arg(into).output().unwrap()
}

/// The path of the package that the script made, which is its last line of output.
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
fn the_debian_package_is_complete() {
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
        "usr/share/doc/neli-run/README.md".to_owned(),
        "usr/share/doc/neli-run/crates/neli-election/README.md".to_owned(),
        "usr/share/doc/neli-run/examples/outbox/README.md".to_owned(),
    ];
    let names =
        |of: &str| std::fs::read_dir(root(of)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files.extend(names("docs").map(|page| format!("usr/share/doc/neli-run/docs/{page}")));
    // All that the pages speak of; the outbox is built in a checkout.
    let examples = names("examples").filter(|name| name != "outbox" && name != "monitoring");
    let rules = names("examples/monitoring").filter(|name| !name.ends_with(".test.yaml"));
    let examples = examples.chain(rules.map(|name| format!("monitoring/{name}")));
    files.extend(examples.map(|name| format!("usr/share/doc/neli-run/examples/{name}")));
    files.extend(names("man").filter(|page| page.ends_with(".1")).map(|page| format!("usr/share/man/man1/{page}.gz")));
    for file in files {
        assert!(tree.join(&file).exists(), "{file} is not in the package");
    }
    let examples = ["crontab", "neli-run.service", "neli-observe.service"].map(|name| format!("examples/{name}"));
    for name in ["README.md", "docs/cron.md", "docs/tutorial.md"].map(str::to_owned).into_iter().chain(examples) {
        let example = std::fs::read_to_string(tree.join("usr/share/doc/neli-run").join(name)).unwrap();
        assert!(example.contains("/usr/bin/neli-run ") && !example.contains("/usr/local/bin/neli-run"), "{example}");
    }
    let of = |program: &Path| succeeds(Command::new(program).arg("--version"));
    assert_eq!(of(&tree.join("usr/bin/neli-run")), of(Path::new(PROGRAM)));
    let depends = succeeds(Command::new("dpkg-deb").arg("--field").args([&package, "Depends"]));
    assert!(depends.contains("libc6 (>= "), "{depends}");
    // The package has Debian's changelog, and the checksums that `dpkg --verify` compares.
    let version = succeeds(Command::new("dpkg-deb").arg("--field").args([&package, "Version"]));
    let changelog = succeeds(Command::new("zcat").arg(tree.join("usr/share/doc/neli-run/changelog.Debian.gz")));
    assert!(
        changelog.starts_with(&format!("neli-run ({}) unstable; urgency=medium\n\n  * ", version.trim())),
        "{changelog}"
    );
    let sums = succeeds(Command::new("dpkg-deb").arg("--info").args([&package, "md5sums"]));
    assert!(sums.lines().any(|line| line.ends_with("  usr/bin/neli-run")), "{sums}");
    // The tests' program has its lines, which stay beside the package.
    let lines =
        succeeds(Command::new("readelf").args(["--section-headers", "--wide"]).arg(package.replace(".deb", ".debug")));
    assert!(lines.contains(".debug_line"), "{lines}");
    finds_no_error(&package);
}

/// Asserts that lintian finds no error. If lintian is not installed, it writes a line directly to stderr, which libtest does not
/// capture.
fn finds_no_error(package: &str) {
    // The test's package is not compressed, to save time. lintian refuses to run as root without an option.
    const SAVED: &str = "uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball";
    let arguments = ["--allow-root", "--fail-on", "error", "--suppress-tags", SAVED, package];
    match Command::new("lintian").args(arguments).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let _ = writeln!(std::io::stderr(), "packaging: lintian is not installed, so the package was not checked");
        }
        answer => assert!(answer.as_ref().unwrap().status.success(), "{answer:?}"),
    }
}

/// A tarball's program must run on every distribution, so the script refuses one that needs more than glibc.
#[test]
fn a_tarball_needs_only_glibc() {
    let directory = tempfile::tempdir().unwrap();
    let answer = pack("tarball", directory.path());
    if cfg!(all(feature = "ssl-vendored", feature = "libz-static")) {
        assert!(made(&answer).contains(".tar.gz (glibc "), "{answer:?}");
    } else if cfg!(all(feature = "ssl", not(feature = "ssl-vendored"))) {
        let message = String::from_utf8(answer.stderr).unwrap();
        assert!(
            !answer.status.success() && message.contains(" needs more than glibc: ") && message.contains("libssl"),
            "{message}"
        );
    }
}

/// The links in a tarball's pages lead into the tarball, except for those to files that only the sources have.
#[test]
fn a_tarball_has_what_its_pages_link_to() {
    const SOURCES: [&str; 2] = [".github/", "CONTRIBUTING.md"];
    let directory = tempfile::tempdir().unwrap();
    let of = |name: &str| directory.path().join(name);
    // packaging/tarball refuses the tests' program, which needs more than glibc, so this small program replaces it.
    std::fs::write(of("stub.c"), "#include <stdio.h>\nint main(void) { puts(\"neli-run 0.0.0\"); return 0; }\n")
        .unwrap();
    succeeds(Command::new("cc").args(["-o".as_ref(), of("stub").as_os_str(), of("stub.c").as_os_str()]));
    let script = root("packaging/tarball");
    let output =
        succeeds(Command::new(script).args([of("stub"), directory.path().to_owned()]).env_remove("OLDEST_GLIBC"));
    let (tarball, _) = output.split_once(" (glibc ").unwrap();
    let listed = succeeds(Command::new("tar").args(["--list", "--file", tarball]));
    let files: Vec<&str> =
        listed.lines().filter_map(|file| Some(file.split_once('/')?.1.trim_end_matches('/'))).collect();
    let mut missing = Vec::new();
    let is_page = |file: &&&str| {
        let is_markdown = Path::new(file).extension().is_some_and(|extension| extension == "md");
        is_markdown && (**file == "README.md" || file.starts_with("docs/"))
    };
    for page in files.iter().filter(is_page) {
        let text = std::fs::read_to_string(root(page)).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for target in targets.filter(|target| !target.contains("://") && !target.is_empty()) {
            let of_root = if *page == "README.md" { Some(target) } else { target.strip_prefix("../") };
            let file = of_root.map_or_else(|| format!("docs/{target}"), str::to_owned);
            if !SOURCES.iter().any(|from| file.starts_with(from)) && !files.contains(&&*file) {
                missing.push(format!("{page}: {file}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?} of {files:?}");
    assert!(files.contains(&"neli-run") && files.contains(&"docs/operating.md"), "{files:?}");
}

/// The Dockerfile follows the rules of hadolint that matter for this image.
#[test]
fn the_dockerfile_keeps_to_the_usual_rules() {
    let joined = DOCKERFILE.replace("\\\n", " ");
    let lines: Vec<&str> = joined.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let all = |name: &str| lines.iter().filter_map(|line| line.strip_prefix(name)).collect::<Vec<&str>>();
    for base in all("FROM ") {
        let (_, tag) = base.split(' ').next().unwrap().split_once(':').unwrap_or_else(|| panic!("{base}: no tag"));
        assert!(!tag.starts_with("latest") && tag.contains("bookworm"), "{base}: the release is named");
    }
    let installs: Vec<&str> = all("RUN ").into_iter().filter(|line| line.contains("apt-get")).collect();
    assert_eq!(installs.len(), 2);
    for line in installs {
        for part in ["apt-get update", "install --yes --no-install-recommends ", "rm -rf /var/lib/apt/lists/*"] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
    let last = |name: &str| all(name).last().copied().unwrap_or_else(|| panic!("no {name}")).to_owned();
    let user: u32 = last("USER ").split(':').next().unwrap().parse().unwrap();
    assert_ne!(user, 0, "the image's user is root");
    assert!(last("WORKDIR ").starts_with('/'));
    let entry: Vec<String> =
        serde_json::from_str(&last("ENTRYPOINT ")).expect("the exec form, or no signal reaches neli-run");
    assert_eq!(entry, ["/usr/local/bin/neli-run"]);
    assert!(all("ADD ").is_empty(), "COPY is enough");
}

#[test]
fn the_image_is_built_with_all_tools_that_a_build_needs() {
    let nothing = Command::new("/bin/sh").arg(root("prerequisites.sh")).env("PATH", "/nowhere").output().unwrap();
    let message = String::from_utf8(nothing.stderr).unwrap();
    let (_, packages) = message.trim().split_once("apt-get install ").unwrap();
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

/// The tag of an action can be moved to other code, which would then run with the release's rights. So each action is pinned by its
/// commit.
#[test]
fn the_workflows_pin_each_action_by_its_commit() {
    let mut count = 0;
    for entry in std::fs::read_dir(root(".github/workflows")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for action in text.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, action)| action) {
            let (name, commit) = action.split_once('@').unwrap_or((action, ""));
            let commit = commit.split(' ').next().unwrap_or_default();
            let is_pinned = commit.len() == 40 && commit.chars().all(|digit| digit.is_ascii_hexdigit());
            assert!(is_pinned || name.starts_with("./"), "{action}");
            count += 1;
        }
    }
    assert!(count >= 10, "{count} actions");
}
