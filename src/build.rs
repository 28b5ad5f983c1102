//! Gives the build its commit, so that every record says which code made it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=.git/HEAD");
    println!("cargo::rerun-if-changed=src/build.rs");
    let commit = Command::new("git")
        .args(["rev-parse", "--short=9", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map(|commit| format!("+{}", commit.trim()))
        .unwrap_or_default();
    println!("cargo::rustc-env=RAMPDECK_COMMIT={commit}");
}
