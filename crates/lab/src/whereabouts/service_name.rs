//! Which service of this process another process belongs to: a variable of its environment says so, which its children inherit.

use std::fs;

/// The variable that holds the process that started a service, and the service's name: `42:server`.
pub(crate) const VARIABLE: &str = "IOTOLL_SERVICE";

/// The value of the variable for a service that this process starts.
pub(crate) fn value(name: &str) -> String {
    format!("{}:{name}", std::process::id())
}

/// The name of the service of this process that a process belongs to, if any.
pub(crate) fn of(process: u32) -> Option<String> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    let ours = format!("{VARIABLE}={}", value(""));
    let mut variables = environment.split(|byte| *byte == 0);
    let name = variables.find_map(|variable| variable.strip_prefix(ours.as_bytes()))?;
    Some(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn only_services_of_this_process_have_a_name() {
        let name = |value: &str| {
            let mut command = Command::new("sleep");
            let mut child = command.arg("1000").env(VARIABLE, value).stdout(Stdio::null()).spawn().unwrap();
            // The kernel shows the environment a moment after exec.
            while fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty() {}
            let name = of(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            name
        };
        assert_eq!(name(&value("a-server")), Some("a-server".to_owned()));
        assert_eq!(name("1:server"), None);
        assert_eq!(of(std::process::id()), None);
    }
}
