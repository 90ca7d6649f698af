//! Compiles the QEMU plugin, a shared library of its own, so that the program can carry it.

use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=plugin/count.rs");
    let variable = |name: &str| std::env::var_os(name).ok_or_else(|| format!("cargo does not set {name}"));
    let library = PathBuf::from(variable("OUT_DIR")?).join("count.so");
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.args([
        "--edition=2024",
        "--crate-type=cdylib",
        "--crate-name=count",
        "-Copt-level=3",
        "-Cpanic=abort",
        "-Cstrip=symbols",
    ]);
    rustc.arg("-o").arg(&library).arg("plugin/count.rs");
    let status = rustc.status().map_err(|error| format!("rustc cannot be started: {error}"))?;
    status.success().then_some(()).ok_or_else(|| "the QEMU plugin does not compile".to_owned())
}
