//! Servers that iotoll started, in words.

use crate::document::Fact;
use crate::phrase::tied;
use crate::shell::command;
use model::plan::service::Service;

/// A fact for each: "server: iotoll serve --listen 127.0.0.1:4242, on CPU 1".
pub fn facts(services: &[Service]) -> impl Iterator<Item = Fact> + '_ {
    services.iter().map(|service| Fact::new("Service", sentence(service)))
}

fn sentence(service: &Service) -> String {
    let mut text = format!("{}: {}", service.name, command(&service.command));
    let cpus: Vec<String> = service.cpus.iter().map(ToString::to_string).collect();
    match cpus.as_slice() {
        [] => {}
        [cpu] => text += &format!(", {}", tied(&format!("on CPU {cpu}"))),
        several => text += &format!(", {}", tied(&format!("on CPUs {}", several.join(",")))),
    }
    if let Some(arm) = &service.arm {
        text += &format!(", for arm {arm} alone");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::service::{Address, ServicePlan, resolve};

    #[test]
    fn a_service_is_named_with_its_command_and_its_cpus() {
        let plan = ServicePlan::parse("a=iotoll serve --listen 127.0.0.1:{port} --backend 'file:/my data'").unwrap();
        let more = ServicePlan { name: "b".to_owned(), cpus: vec![0, 2], arm: Some("slow".to_owned()), ..plan.clone() };
        let one = ServicePlan { cpus: vec![1], ..plan };
        let services = resolve(&[one, more], &[], &|_| Address { port: 4242, directory: "/tmp/a".to_owned() }).unwrap();
        let texts: Vec<String> = facts(&services).map(|fact| fact.text.replace('\u{a0}', " ")).collect();
        let command = "iotoll serve --listen 127.0.0.1:4242 --backend 'file:/my data'";
        assert_eq!(
            texts,
            [format!("a: {command}, on CPU 1"), format!("b: {command}, on CPUs 0,2, for arm slow alone")]
        );
    }
}
