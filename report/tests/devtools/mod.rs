//! A browser without a window, driven by the DevTools protocol over a pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Under which names Debian and others have it.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// Ends a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub struct Browser {
    process: Child,
    input: ChildStdin,
    messages: mpsc::Receiver<Value>,
    session: String,
    last: u64,
    /// What the page said on its console, or failed with.
    pub complaints: Vec<String>,
    // Removed after the process has ended.
    _profile: tempfile::TempDir,
}

/// The installed browser, if there is one.
pub fn installed() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let all =
        std::env::split_paths(&folders).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    all.into_iter().find(|file| file.is_file())
}

impl Browser {
    /// Starts the browser at `program`.
    pub fn start(program: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        // The protocol is spoken on descriptors 3 and 4.
        let mut process = Command::new("sh")
            .args([
                "-c",
                "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1",
            ])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--remote-debugging-pipe", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (
            process.stdin.take().unwrap(),
            process.stdout.take().unwrap(),
        );
        let mut browser = Self {
            process,
            input,
            messages: listen(output),
            session: String::new(),
            last: 0,
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attached = browser.call(
            "Target.attachToTarget",
            &json!({"targetId": target["targetId"], "flatten": true}),
        );
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Calls a method and returns its result.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut text = message.to_string();
        text.push('\0');
        self.input.write_all(text.as_bytes()).unwrap();
        loop {
            let answer = self.next(method);
            if answer["id"] == self.last {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// Opens a page of so many pixels, and waits until it is there.
    pub fn open(&mut self, file: &Path, (width, height): (u32, u32), scheme: &str) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            &json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({"features": features}));
        self.call(
            "Page.navigate",
            &json!({"url": format!("file://{}", file.display())}),
        );
        while self.next("a page")["method"] != "Page.loadEventFired" {}
    }

    /// Returns what an expression in the page gives.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &parameters);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Moves, presses or releases the mouse.
    pub fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let parameters = json!({
            "type": kind, "x": x, "y": y, "clickCount": 1,
            "button": if kind == "mouseMoved" { "none" } else { "left" },
            "buttons": u8::from(kind != "mouseReleased"),
        });
        self.call("Input.dispatchMouseEvent", &parameters);
    }

    fn next(&mut self, what: &str) -> Value {
        let message = self.messages.recv_timeout(PATIENCE);
        let message =
            message.unwrap_or_else(|error| panic!("the browser does not answer {what}: {error}"));
        let parameters = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self
                .complaints
                .push(parameters["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled") => {
                self.complaints.push(parameters["args"].to_string())
            }
            Some("Log.entryAdded") => self.complaints.push(parameters["entry"].to_string()),
            Some("Network.requestWillBeSent") => {
                let address = parameters["request"]["url"].as_str().unwrap_or("?");
                if !address.starts_with("file://") && !address.starts_with("data:") {
                    self.complaints.push(format!("request of {address}"));
                }
            }
            _ => {}
        }
        message
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Messages end in a zero byte.
fn listen(output: ChildStdout) -> mpsc::Receiver<Value> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut message = Vec::new();
        while output
            .read_until(0, &mut message)
            .is_ok_and(|length| length > 0)
        {
            message.pop();
            let Ok(value) = serde_json::from_slice(&message) else {
                return;
            };
            if sender.send(value).is_err() {
                return;
            }
            message.clear();
        }
    });
    receiver
}
