//! Compiles the QEMU plugin, shared libraries of their own for both of its interfaces, so that the program can carry them.

use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=plugin/count.rs");
    let variable = |name: &str| std::env::var_os(name).ok_or_else(|| format!("cargo does not set {name}"));
    for (name, flags) in [("count.so", &[][..]), ("count-of-old.so", &["--cfg=old_interface"][..])] {
        let library = PathBuf::from(variable("OUT_DIR")?).join(name);
        let mut rustc = Command::new(variable("RUSTC")?);
        rustc.args([
            "--edition=2024",
            "--crate-type=cdylib",
            "--crate-name=count",
            "--check-cfg=cfg(old_interface)",
            "-Copt-level=3",
            "-Cpanic=abort",
            "-Cstrip=symbols",
        ]);
        rustc.args(flags).arg("-o").arg(&library).arg("plugin/count.rs");
        let status = rustc.status().map_err(|error| format!("rustc cannot be started: {error}"))?;
        if !status.success() {
            return Err("the QEMU plugin does not compile".to_owned());
        }
    }
    Ok(())
}
