//! A headless Chromium under remote control: pages as a user has them, with a real mouse.
//!
//! The DevTools protocol over a pipe: JSON messages that end with a zero byte, on the browser's file descriptors 3 and 4.

use super::iotoll::Folder;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longest wait for an answer. A machine that is busy with other tests starts a browser slowly.
const PATIENCE: Duration = Duration::from_secs(40);
/// Debian's name of the program.
pub const CHROMIUM: &str = "chromium";

/// A browser with one empty tab.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    sent: u64,
    complaints: Vec<String>,
    // Removed after the browser has ended.
    _profile: Folder,
}

/// Where a mouse button is pressed, moved to, or released.
#[derive(Clone, Copy)]
pub struct Place {
    pub x: f64,
    pub y: f64,
}

impl Browser {
    /// Starts it, or says why it does not start here.
    pub fn start() -> Result<Self, String> {
        let profile = Folder::new();
        let options = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars \
                       --disable-background-networking --window-size=1200,1600 --remote-debugging-pipe";
        let path = profile.path("profile");
        // The shell makes its standard input and output the browser's descriptors 3 and 4.
        let script = format!("exec {CHROMIUM} {options} --user-data-dir=\"$0\" 3<&0 4>&1 </dev/null >/dev/null 2>&1");
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.process_group(0).spawn().map_err(|error| error.to_string())?;
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(from).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { break };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser =
            Self { child, to, from: messages, session: None, sent: 0, complaints: Vec::new(), _profile: profile };
        let version = browser.call("Browser.getVersion", json!({}))?;
        eprintln!("{}", version["product"].as_str().unwrap_or("a browser"));
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attached =
            browser.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}))?;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Log", "Page"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        // Durations in CPU time of the page's thread, which other processes do not prolong.
        browser.call("Performance.enable", json!({"timeDomain": "threadTicks"}))?;
        Ok(browser)
    }

    /// The result of a command, or what went wrong.
    fn call(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let gone = |error: &dyn std::fmt::Display| format!("the browser does not answer {method}: {error}");
        self.to.write_all(format!("{message}\0").as_bytes()).map_err(|error| gone(&error))?;
        loop {
            let message = self.from.recv_timeout(PATIENCE).map_err(|error| gone(&error))?;
            self.notice(&message);
            if message["id"] == json!(self.sent) {
                return match message.get("error") {
                    Some(error) => Err(format!("{method}: {error}")),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    /// Keeps what a page complains about on its console.
    fn notice(&mut self, message: &Value) {
        let parameters = &message["params"];
        let complains = match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                ["error", "warning", "assert"].iter().any(|kind| parameters["type"] == *kind)
            }
            Some("Log.entryAdded") => ["error", "warning"].iter().any(|level| parameters["entry"]["level"] == *level),
            _ => false,
        };
        if complains {
            self.complaints.push(parameters.to_string());
        }
    }

    /// The console's errors and warnings so far.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    #[track_caller]
    fn must(&mut self, method: &str, parameters: Value) -> Value {
        self.call(method, parameters).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Opens a file and waits until it is loaded and painted.
    #[track_caller]
    pub fn open(&mut self, path: &Path) {
        self.must("Page.navigate", json!({"url": format!("file://{}", path.display())}));
        let painted = "new Promise(done => { const painted = () => requestAnimationFrame(() => requestAnimationFrame(done)); \
                       if (document.readyState === 'complete') painted(); else addEventListener('load', painted); })";
        self.evaluate(painted);
    }

    /// The value of an expression, or of its promise.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.must("Runtime.evaluate", parameters);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// The middle of an element, or another place in it, as parts of its width and height.
    #[track_caller]
    pub fn place(&mut self, element: &str, (across, down): (f64, f64)) -> Place {
        let found = self.evaluate(&format!(
            "(() => {{ const box = ({element}).getBoundingClientRect(); \
             return [box.left + {across} * box.width, box.top + {down} * box.height]; }})()"
        ));
        Place { x: found[0].as_f64().unwrap(), y: found[1].as_f64().unwrap() }
    }

    #[track_caller]
    fn mouse(&mut self, kind: &str, place: Place, button: &str, clicks: u32) {
        let pressed = u32::from(button == "left" && kind != "mouseReleased");
        let parameters = json!({"type": kind, "x": place.x, "y": place.y, "button": button, "buttons": pressed, "clickCount": clicks});
        self.must("Input.dispatchMouseEvent", parameters);
    }

    /// Clicks once or, as a double click, twice.
    #[track_caller]
    pub fn click(&mut self, place: Place, times: u32) {
        self.mouse("mouseMoved", place, "none", 0);
        for click in 1..=times {
            self.mouse("mousePressed", place, "left", click);
            self.mouse("mouseReleased", place, "left", click);
        }
    }

    /// Presses the button at a place and releases it at another.
    #[track_caller]
    pub fn drag(&mut self, from: Place, to: Place) {
        self.mouse("mouseMoved", from, "none", 0);
        self.mouse("mousePressed", from, "left", 1);
        self.mouse("mouseMoved", Place { x: (from.x + to.x) / 2.0, ..to }, "left", 0);
        self.mouse("mouseMoved", to, "left", 0);
        self.mouse("mouseReleased", to, "left", 1);
    }

    /// Whether pages are to be dark.
    #[track_caller]
    pub fn prefer(&mut self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.must("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// Seconds of CPU time that the page's thread has worked since the page was opened.
    #[track_caller]
    pub fn work_seconds(&mut self) -> f64 {
        let metrics = self.must("Performance.getMetrics", json!({}));
        let mut metrics = metrics["metrics"].as_array().unwrap().iter();
        metrics.find(|metric| metric["name"] == "TaskDuration").unwrap()["value"].as_f64().unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It has several processes, all in its group. They may have ended already.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
