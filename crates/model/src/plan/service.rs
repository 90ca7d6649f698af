//! Services: servers that a measurement starts, fills, pins and ends.
//!
//! A [`ServicePlan`] is what the user wrote. With the [`Address`] that the caller reserved, it is resolved into a [`Service`] without
//! braces. [`Names`] replaces the references in other texts (jobs, commands, options): `{NAME.uri}`.

use super::shell_text;
use super::value::Quoted;
use serde::{Deserialize, Serialize};

/// Default time to become ready.
pub const READY_TIMEOUT_SECONDS: f64 = 10.0;

/// Longest path of a Unix socket in bytes (`sun_path` in unix(7) has 108, the last is 0).
const LONGEST_SOCKET: usize = 107;

/// Keys of `{NAME.KEY}`.
const KEYS: [&str; 4] = ["uri", "port", "socket", "dir"];

/// A service as the user wrote it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServicePlan {
    /// Its name.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Its address for clients. The default is the NBD URI of its port or socket.
    pub uri: Option<String>,
    /// Text in its output that means ready. By default it is ready when its port or socket listens.
    pub ready: Option<String>,
    /// Time to become ready.
    pub timeout_seconds: Option<f64>,
    /// Shell command that runs once when it is ready; it is not measured.
    pub fill: Option<String>,
    /// CPUs that it is pinned to; empty for none in particular.
    pub cpus: Vec<u32>,
    /// The only arm that may use it, if any.
    pub arm: Option<String>,
}

/// The address and folder that are reserved for a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// A free port on 127.0.0.1.
    pub port: u16,
    /// The absolute path of its own folder.
    pub directory: String,
}

/// A service that can be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Program and arguments as they are executed. `iotoll` as the program is this very binary.
    pub command: Vec<String>,
    /// Its address for clients; `null` if unknown.
    pub uri: Option<String>,
    /// How iotoll recognises that it is ready.
    pub ready: Ready,
    /// Time to become ready.
    pub timeout_seconds: f64,
    /// Shell command that fills it once.
    pub fill: Option<String>,
    /// CPUs that it is pinned to; empty for none in particular.
    pub cpus: Vec<u32>,
    /// The only arm that uses it; `null` if all arms share it.
    pub arm: Option<String>,
    /// The port that was reserved for it.
    pub port: u16,
    /// Its folder.
    pub directory: String,
}

/// How iotoll recognises that a service is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// A line of its output contains this.
    Says(String),
    /// This TCP port listens.
    Port(u16),
    /// This Unix socket listens.
    Socket(String),
}

impl ServicePlan {
    /// Reads `NAME=COMMAND`, the command as a shell would split it.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, command) = text
            .split_once('=')
            .ok_or("expected NAME=COMMAND, such as 'server=iotoll serve --listen 127.0.0.1:{port}'")?;
        let command = shell_words::split(command).map_err(|error| format!("{error}; quote it as for a shell"))?;
        let plan = Self { name: name.to_owned(), command, ..Self::default() };
        plan.check()?;
        Ok(plan)
    }

    /// Checks the name, the command and the texts.
    fn check(&self) -> Result<(), String> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        if !self.name.starts_with(|first: char| first.is_ascii_alphabetic()) || !self.name.chars().all(plain) {
            let name = Quoted(&self.name);
            return Err(format!("{name} is no name of a service: a letter, then letters, digits, '-' and '_'"));
        }
        if self.command.first().is_none_or(String::is_empty) {
            return Err(format!("service '{}' has no command", self.name));
        }
        for (key, text) in [("uri", &self.uri), ("ready", &self.ready), ("fill", &self.fill)] {
            if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
                return Err(self.wrong(&format!("{key} is empty; leave it out")));
            }
        }
        Ok(())
    }

    fn wrong(&self, why: &str) -> String {
        format!("service '{}': {why}", self.name)
    }

    fn uses(&self, key: &str) -> bool {
        let braced = format!("{{{key}}}");
        self.command.iter().any(|word| word.contains(&braced))
    }

    /// The service at this address, before references to other services are replaced.
    fn at(&self, address: Address) -> Result<Service, String> {
        self.check()?;
        let Self { name, command, ready, timeout_seconds, fill, cpus, arm, .. } = self.clone();
        let mut service = Service {
            ready: Ready::Port(address.port),
            timeout_seconds: timeout_seconds.unwrap_or(READY_TIMEOUT_SECONDS),
            uri: None,
            port: address.port,
            directory: address.directory,
            name,
            command,
            fill,
            cpus,
            arm,
        };
        let (port, socket) = (self.uses("port"), self.uses("socket"));
        let path = service.socket();
        if socket && path.len() > LONGEST_SOCKET {
            return Err(self.wrong(&format!(
                "{{socket}} would be {path}, which has {} bytes; a Unix socket path can have {LONGEST_SOCKET}: set \
                 TMPDIR to a shorter path, or use {{port}}",
                path.len()
            )));
        }
        service.ready = match ready {
            Some(text) => Ready::Says(text),
            None if port => Ready::Port(service.port),
            None if socket => Ready::Socket(service.socket()),
            // Refused later, because an unknown name in the command is the better error.
            None => Ready::Says(String::new()),
        };
        service.uri = match &self.uri {
            Some(uri) => Some(fill_in(uri, |word| {
                let unknown = || format!("uri: unknown {{{word}}}; it can name {{port}}, {{socket}} and {{dir}}");
                service.own(word).map(Some).ok_or_else(|| self.wrong(&unknown()))
            })?),
            None if port => Some(format!("nbd://127.0.0.1:{}", service.port)),
            None if socket => Some(format!("nbd+unix:///?socket={}", escaped(&service.socket()))),
            None => None,
        };
        Ok(service)
    }
}

impl Service {
    /// The path of its Unix socket.
    pub fn socket(&self) -> String {
        format!("{}/socket", self.directory)
    }

    /// The value of `{word}` in its own texts.
    fn own(&self, word: &str) -> Option<String> {
        match word {
            "port" => Some(self.port.to_string()),
            "socket" => Some(self.socket()),
            "dir" => Some(self.directory.clone()),
            _ => None,
        }
    }

    fn value(&self, key: &str) -> Result<String, String> {
        let name = &self.name;
        if key == "uri" {
            let missing =
                || format!("{{{name}.uri}}: service '{name}' has none; write {{port}} in its command, or give uri");
            return self.uri.clone().ok_or_else(missing);
        }
        self.own(key).ok_or_else(|| format!("unknown {{{name}.{key}}}; a service has {}", KEYS.join(", ")))
    }

    /// Replaces its addresses by references, so that texts of two measurements can be compared.
    fn named_in(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (value, key) in [(self.uri.clone(), "uri"), (Some(self.directory.clone()), "dir")] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                let name = format!("{{{}.{key}}}", self.name);
                text = text.replace(&shell_text::in_single_quotes(&value), &name).replace(&value, &name);
            }
        }
        without_port(&text, self.port, &format!("{{{}.port}}", self.name))
    }
}

/// Replaces a port number by a name, except within a longer number.
fn without_port(text: &str, port: u16, name: &str) -> String {
    let port = port.to_string();
    let mut parts = text.split(&port);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let within = replaced.ends_with(|letter: char| letter.is_ascii_digit())
            || part.starts_with(|letter: char| letter.is_ascii_digit());
        replaced += if within { &port } else { name };
        replaced += part;
    }
    replaced
}

/// Replaces the addresses of services by references to them.
pub fn named_in(services: &[Service], text: &str) -> String {
    services.iter().fold(text.to_owned(), |text, service| service.named_in(&text))
}

/// Resolves services; `address` gives the address of each name, `swept` are the names of a sweep.
///
/// # Errors
/// What is wrong with them, in one line.
pub fn resolve(
    plans: &[ServicePlan],
    swept: &[String],
    address: &dyn Fn(&str) -> Address,
) -> Result<Vec<Service>, String> {
    for (place, plan) in plans.iter().enumerate() {
        if plans.iter().take(place).any(|other| other.name == plan.name) {
            return Err(format!("two services are called '{}'; name them apart", plan.name));
        }
    }
    let bare: Vec<Service> = plans.iter().map(|plan| plan.at(address(&plan.name))).collect::<Result<_, _>>()?;
    let names = Names { services: &bare, swept, arm: None };
    bare.iter().map(|service| names.complete(service)).collect()
}

/// The words of a command with their references replaced.
fn filled(words: &[String], value: impl Fn(&str) -> Result<Option<String>, String>) -> Result<Vec<String>, String> {
    let script = |place| shell_text::is_script(words, place);
    let one = |(place, word): (usize, &String)| match script(place) {
        true => fill_in_shell(word, &value),
        false => fill_in(word, &value),
    };
    words.iter().enumerate().map(one).collect()
}

/// Percent-encodes the reserved characters of a URI.
fn escaped(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The services that texts may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// All of them.
    pub services: &'a [Service],
    /// Names of a sweep, which stay in braces.
    pub swept: &'a [String],
    /// The arm of the text, if any.
    pub arm: Option<&'a str>,
}

impl Names<'_> {
    /// Replaces the references in a text.
    ///
    /// # Errors
    /// When a reference is unknown.
    pub fn fill_in(&self, text: &str) -> Result<String, String> {
        fill_in(text, |word| self.of_word(word))
    }

    /// As above, for the words of a command. A script that one of them gives to a shell is a shell command.
    ///
    /// # Errors
    /// As above, or when a value cannot be quoted.
    pub fn fill_in_all(&self, words: &[String]) -> Result<Vec<String>, String> {
        filled(words, |word| self.of_word(word))
    }

    /// As above, for a shell command, if there is one: each value is quoted for the place where it stands.
    ///
    /// # Errors
    /// As above.
    pub fn fill_in_shell(&self, command: Option<&String>) -> Result<Option<String>, String> {
        command.map(|command| fill_in_shell(command, |word| self.of_word(word))).transpose()
    }

    fn of_word(&self, word: &str) -> Result<Option<String>, String> {
        match word.split_once('.') {
            Some((name, key)) => self.of_service(name, key),
            None if self.is_swept(word) || self.services.is_empty() => Ok(None),
            None if KEYS.contains(&word) => {
                let first = self.services.first().map_or("", |service| service.name.as_str());
                Err(format!("{{{word}}}: of which service? Write {{{first}.{word}}}"))
            }
            None => Ok(None),
        }
    }

    fn is_swept(&self, word: &str) -> bool {
        self.swept.iter().any(|name| name == word)
    }

    fn of_service(&self, name: &str, key: &str) -> Result<Option<String>, String> {
        let Some(service) = self.services.iter().find(|service| service.name == name) else {
            // Other words in braces may belong to the command.
            if !KEYS.contains(&key) || self.is_swept(&format!("{name}.{key}")) {
                return Ok(None);
            }
            let known: Vec<&str> = self.services.iter().map(|service| service.name.as_str()).collect();
            let known =
                if known.is_empty() { "are no services".to_owned() } else { format!("is {}", known.join(", ")) };
            return Err(format!("{{{name}.{key}}}: no service is called '{name}'; there {known}"));
        };
        match (&service.arm, self.arm) {
            (Some(owner), Some(arm)) if owner != arm => {
                Err(format!("{{{name}.{key}}}: service '{name}' belongs to arm '{owner}', and arm '{arm}' uses it"))
            }
            _ => service.value(key).map(Some),
        }
    }

    /// Replaces the references in the texts of a service.
    fn complete(&self, service: &Service) -> Result<Service, String> {
        let value = |word: &str| match word.split_once('.') {
            Some((name, key)) => self.of_service(name, key),
            None if word == "uri" => service.value("uri").map(Some),
            None if self.is_swept(word) && service.own(word).is_none() => {
                Err(format!("{{{word}}} is swept, and a service is started once for all points of a sweep"))
            }
            None => service.own(word).map(Some).ok_or_else(|| {
                format!("unknown {{{word}}}; a service knows {{port}}, {{socket}}, {{dir}}, {{uri}} and {{NAME.uri}}")
            }),
        };
        let wrong = |why: String| format!("service '{}': {why}", service.name);
        let command = filled(&service.command, value).map_err(wrong)?;
        let fill = service.fill.as_ref().map(|fill| fill_in_shell(fill, value)).transpose().map_err(wrong)?;
        if service.ready == Ready::Says(String::new()) {
            let why = "nothing says when it is ready; write {port} or {socket} in its command, or give ready";
            return Err(wrong(why.to_owned()));
        }
        Ok(Service { command, fill, ..service.clone() })
    }
}

/// Replaces each `{word}` by its `value`; without a value it stays. A word is a letter followed by letters, digits, `.`, `-` and `_`.
/// Other braces, and `${word}`, belong to shells, awk or JSON.
///
/// # Errors
/// The error of `value`.
fn fill_in(text: &str, value: impl Fn(&str) -> Result<Option<String>, String>) -> Result<String, String> {
    fill_in_after(text, |word, _| value(word))
}

/// The same for the text of a shell command: each value is quoted for the place where it stands.
///
/// # Errors
/// The error of `value`, or a value that cannot be quoted.
fn fill_in_shell(text: &str, value: impl Fn(&str) -> Result<Option<String>, String>) -> Result<String, String> {
    fill_in_after(text, |word, before| {
        let quoted = |value: String| shell_text::quoted(&value, before).map_err(|why| format!("{{{word}}}: {why}"));
        value(word)?.map(quoted).transpose()
    })
}

/// `value` is given the word and the text before it.
fn fill_in_after(text: &str, value: impl Fn(&str, &str) -> Result<Option<String>, String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled += before;
        let word = after.split_once('}').filter(|(word, _)| is_word(word) && !before.ends_with('$'));
        let replaced = word.map(|(word, after)| Ok::<_, String>((value(word, &filled)?, after))).transpose()?;
        let (value, after) = match &replaced {
            Some((Some(value), after)) => (value.as_str(), *after),
            _ => ("{", after),
        };
        filled += value;
        rest = after;
    }
    Ok(filled + rest)
}

fn is_word(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(plain)
}

#[cfg(test)]
mod tests;
