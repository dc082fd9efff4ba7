//! Short scripts as executable files.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that every user may execute.
///
/// Another process writes it. A child that another thread forks at that moment would inherit a descriptor that can write to the file, and
/// until the child has executed its own program, the kernel refuses to execute this one ("text file busy").
pub fn write(path: &Path, text: &str) {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(path);
    let mut child = install.stdin(Stdio::piped()).spawn().expect("coreutils");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(text.as_bytes()).expect("read");
    drop(input);
    assert!(child.wait().expect("a child can be waited for").success(), "{} can't be written", path.display());
}
