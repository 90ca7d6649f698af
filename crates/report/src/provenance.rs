//! What every report says about where its numbers come from: the machine, what holds the files, the program and the date.

use crate::document::{Audience, Fact};
use crate::{machine, phrase};
use model::elided_list::elided_list;
use model::origin::Origin;
use model::record::Host;
use model::storage::Storage;

/// The machine for `reader`; its settings and mitigations for those who do not sit at it; what holds the files.
pub fn of_host(host: &Host, reader: Audience) -> Vec<Fact> {
    let away = Audience::POST.or(Audience::PAGE);
    let mut facts = vec![Fact::of(reader, "Machine", machine::machine(host))];
    facts.push(Fact::of(away, "Settings", machine::settings(host)));
    facts.push(Fact::of(away, "Mitigations", machine::mitigations(host)));
    facts.extend(host.storage.iter().map(|storage| Fact::new("Storage", self::storage(storage))));
    facts
}

/// "iotoll 0.1.0, method version 2, 2025-05-03 12:00:00 UTC".
pub fn made_by(origin: &Origin, method_version: u32, started_unix_seconds: f64) -> Fact {
    let version = origin.iotoll_version.as_deref().unwrap_or("of an unknown version");
    let began = phrase::time(started_unix_seconds).unwrap_or_else(|| "at an unknown time".to_owned());
    Fact::new("Made by", format!("iotoll {version}, method version {method_version}, {began}"))
}

/// "data: ext4 on /srv (/dev/vda1, rw,noatime); device vda1, model X, scheduler none".
fn storage(storage: &Storage) -> String {
    let Storage { files, file_system, mount_point, mount_options, source, device, model, scheduler } = storage;
    let within: Vec<&str> = [source, mount_options].into_iter().flatten().map(String::as_str).collect();
    let within = if within.is_empty() { String::new() } else { format!(" ({})", within.join(", ")) };
    let held = file_system.as_ref().map(|kind| {
        let at = mount_point.as_ref().map(|point| format!(" on {point}")).unwrap_or_default();
        format!("{kind}{at}{within}")
    });
    let model = model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
    let scheduler = scheduler.as_ref().map(|scheduler| format!(", scheduler {scheduler}")).unwrap_or_default();
    let device = device.as_ref().map(|device| format!("device {device}{model}{scheduler}"));
    let parts: Vec<String> = held.into_iter().chain(device).collect();
    let parts = if parts.is_empty() { "unknown".to_owned() } else { parts.join("; ") };
    format!("{}: {parts}", elided_list(files, ", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_names_the_file_system_and_the_device() {
        let text = |text: &str| Some(text.to_owned());
        let disk = Storage {
            files: vec!["data".to_owned()],
            file_system: text("ext4"),
            mount_point: text("/srv"),
            mount_options: text("rw,noatime"),
            source: text("/dev/nvme0n1p1"),
            device: text("nvme0n1p1"),
            model: text("Samsung SSD 990"),
            scheduler: text("none"),
        };
        assert_eq!(
            storage(&disk),
            "data: ext4 on /srv (/dev/nvme0n1p1, rw,noatime); device nvme0n1p1, Samsung SSD 990, scheduler none"
        );
        let bare = Storage { files: vec!["/dev/sdb".to_owned()], device: text("sdb"), ..Storage::default() };
        assert_eq!(storage(&bare), "/dev/sdb: device sdb");
        assert_eq!(storage(&Storage { files: vec!["x".to_owned()], ..Storage::default() }), "x: unknown");
    }

    #[test]
    fn the_program_and_the_date_are_named() {
        let origin = Origin { iotoll_version: Some("0.1.0".to_owned()), ..Origin::default() };
        assert_eq!(made_by(&origin, 2, 0.0).text, "iotoll 0.1.0, method version 2, 1970-01-01 00:00:00 UTC");
        let unknown = made_by(&Origin::default(), 2, f64::NAN).text;
        assert_eq!(unknown, "iotoll of an unknown version, method version 2, at an unknown time");
    }
}
