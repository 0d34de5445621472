//! The page of `purlin observe` in a browser: headless Chromium clicks and types through it.
//!
//! Skipped with a message if there is no Chromium (Debian's packages `chromium` or
//! `chromium-headless-shell`), if it does not start, or if there is no OTP.
//! `PURLIN_PICTURES=FOLDER` writes screenshots there.

mod observed;

use observed::{App, Observer, PATIENCE, text};
use purlin_diagnostics::json::{self, Json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const BROWSERS: &[&str] = &[
    "chromium",
    "chromium-headless-shell",
    "chromium-browser",
    "google-chrome",
];

/// A browser with one page, controlled by the DevTools protocol over two pipes.
struct Browser {
    child: Child,
    input: ChildStdin,
    answers: Receiver<Json>,
    number: i64,
    session: String,
    /// The console output of the page, and its errors.
    complaints: Vec<String>,
    folder: PathBuf,
}

impl Browser {
    /// `None`, with a message, if there is no browser.
    fn start(folder: &Path) -> Option<Browser> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .flat_map(|d| BROWSERS.iter().map(move |b| d.join(b)))
            .find(|p| p.is_file());
        let Some(program) = found else {
            println!("skipped: no Chromium (Debian: apt install chromium-headless-shell)");
            return None;
        };
        let folder = folder.join("browser");
        // The protocol uses descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", folder.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let input = child.stdin.take().expect("is a pipe");
        let output = BufReader::new(child.stdout.take().expect("is a pipe"));
        let (tell, answers) = channel();
        std::thread::spawn(move || {
            for message in output.split(0) {
                let Ok(message) = message else { return };
                let message = String::from_utf8_lossy(&message).into_owned();
                let Ok(message) = json::parse(&message) else {
                    continue;
                };
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            child,
            input,
            answers,
            number: 0,
            session: String::new(),
            complaints: Vec::new(),
            folder,
        };
        if browser.call("Browser.getVersion", &[]).is_none() {
            println!("skipped: Chromium does not start");
            return None;
        }
        let target = browser.done("Target.createTarget", &[("url", "about:blank".into())]);
        let id = text(&target, &["targetId"]).to_string();
        let session = browser.done(
            "Target.attachToTarget",
            &[("targetId", id.into()), ("flatten", true.into())],
        );
        browser.session = text(&session, &["sessionId"]).to_string();
        browser.done("Runtime.enable", &[]);
        browser.done("Page.enable", &[]);
        browser.done("Log.enable", &[]);
        Some(browser)
    }

    /// The result of a command; `None` if it did not arrive in time.
    fn call(&mut self, method: &str, parameters: &[(&str, Json)]) -> Option<Json> {
        self.number += 1;
        let parameters = parameters.iter().map(|(k, v)| (k.to_string(), v.clone()));
        let mut command = vec![
            ("id".to_string(), Json::Int(self.number)),
            ("method".to_string(), method.into()),
            ("params".to_string(), Json::Object(parameters.collect())),
        ];
        if !self.session.is_empty() {
            command.push(("sessionId".to_string(), self.session.clone().into()));
        }
        let bytes = format!("{}\0", Json::Object(command));
        self.input.write_all(bytes.as_bytes()).ok()?;
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = self.answers.recv_timeout(left).ok()?;
            let number = message.get("id").and_then(Json::number);
            if number == Some(self.number as f64) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message.get("result").cloned();
            }
            match text(&message, &["method"]) {
                "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" => {
                    self.complaints.push(message.to_string())
                }
                // Responses with 4xx are logged, too; the page itself is checked for those.
                "Log.entryAdded" if text(&message, &["params", "entry", "source"]) != "network" => {
                    self.complaints.push(message.to_string());
                }
                _ => {}
            }
        }
    }
    fn done(&mut self, method: &str, parameters: &[(&str, Json)]) -> Json {
        let answer = self.call(method, parameters);
        answer.unwrap_or_else(|| panic!("{method}: no answer"))
    }
    /// The value of an expression in the page.
    fn value(&mut self, expression: &str) -> Json {
        let parameters = [
            ("expression", expression.into()),
            ("returnByValue", true.into()),
            ("awaitPromise", true.into()),
        ];
        let answer = self.done("Runtime.evaluate", &parameters);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer}"
        );
        answer
            .get("result")
            .and_then(|r| r.get("value"))
            .cloned()
            .unwrap_or(Json::Null)
    }
    /// Waits until an expression in the page is true.
    fn until(&mut self, expression: &str) {
        let begun = Instant::now();
        // The elements it refers to may not exist yet.
        let tried =
            format!("(() => {{ try {{ return !!({expression}) }} catch {{ return false }} }})()");
        while self.value(&tried) != Json::Bool(true) {
            if begun.elapsed() > PATIENCE {
                let page = self.value("document.body.innerText");
                panic!(
                    "{expression} does not become true; {:?}; {}",
                    self.complaints,
                    page.text().unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    fn open(&mut self, address: &str) {
        self.done("Page.navigate", &[("url", address.into())]);
    }
    /// Clicks the element that a selector finds, as a pointer does.
    fn click(&mut self, selector: &str) {
        self.until(&format!("document.querySelector({selector:?})"));
        self.value(&format!("document.querySelector({selector:?}).click()"));
    }
    fn key(&mut self, key: &str, code: i64) {
        for kind in ["keyDown", "keyUp"] {
            let mut parameters = vec![
                ("type", kind.into()),
                ("key", key.into()),
                ("windowsVirtualKeyCode", Json::Int(code)),
            ];
            if kind == "keyDown" && key == "Enter" {
                parameters.push(("text", "\r".into()));
            }
            self.done("Input.dispatchKeyEvent", &parameters);
        }
    }
    fn write(&mut self, words: &str) {
        self.done("Input.insertText", &[("text", words.into())]);
    }
    fn focus(&mut self, selector: &str) {
        self.until(&format!("document.querySelector({selector:?})"));
        self.value(&format!("document.querySelector({selector:?}).focus()"));
    }
    fn scheme(&mut self, name: &str) {
        let feature = Json::object([
            ("name", "prefers-color-scheme".into()),
            ("value", name.into()),
        ]);
        self.done(
            "Emulation.setEmulatedMedia",
            &[("features", Json::List(vec![feature]))],
        );
    }
    fn size(&mut self, width: i64, height: i64) {
        let parameters = [
            ("width", Json::Int(width)),
            ("height", Json::Int(height)),
            ("deviceScaleFactor", Json::Int(1)),
            ("mobile", false.into()),
        ];
        self.done("Emulation.setDeviceMetricsOverride", &parameters);
    }
    /// Writes a screenshot, if requested.
    fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("PURLIN_PICTURES") else {
            return;
        };
        let answer = self.done("Page.captureScreenshot", &[("format", "png".into())]);
        let bytes = base64(text(&answer, &["data"]));
        std::fs::write(PathBuf::from(folder).join(format!("{name}.png")), bytes)
            .expect("writes a picture");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |b: u8| match b {
        b'A'..=b'Z' => u32::from(b - b'A'),
        b'a'..=b'z' => u32::from(b - b'a') + 26,
        b'0'..=b'9' => u32::from(b - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> = text.bytes().filter(|b| *b != b'=').map(digit).collect();
    let mut out = Vec::new();
    for part in digits.chunks(4) {
        let word = part
            .iter()
            .enumerate()
            .fold(0, |w, (i, d)| w | d << (18 - 6 * i));
        out.extend_from_slice(&word.to_be_bytes()[1..part.len()]);
    }
    out
}

/// The text of a cell in the first row, by the title of its column.
fn cell(title: &str) -> String {
    format!(
        "[...document.querySelectorAll('main td')][[...document.querySelectorAll('main th')]\
         .findIndex((t) => t.innerText.startsWith({title:?}))].innerText"
    )
}

#[test]
fn the_page_is_clicked_through() {
    let Some(mut app) = App::start() else { return };
    let Some(mut b) = Browser::start(&app.folder()) else {
        return;
    };
    let observer = Observer::unopened(&app, &[&app.pid().to_string(), "--no-open"]);
    b.size(1280, 720);
    b.scheme("light");
    b.open(&observer.address);
    b.until("document.querySelector('main h2')?.innerText === 'Overview'");
    b.until("document.querySelector('#status').innerText === 'Live'");
    // The token has disappeared.
    assert_eq!(b.value("location.hash").text(), Some("#overview"));
    b.until("document.querySelectorAll('main svg polyline').length >= 6");
    b.until("[...document.querySelectorAll('main .card')].some((c) => c.innerText.startsWith('Reductions per second'))");
    // Graphs have descriptions for screen readers.
    b.until("document.querySelector('main svg[role=img]').getAttribute('aria-label').includes('between')");

    // Processes: sorted by a button, filtered by typing, and the cursor stays where it is.
    b.click("nav a[href='#processes']");
    b.until("document.querySelector('main h2')?.innerText === 'Processes'");
    assert_eq!(b.value("document.activeElement.id").text(), Some("main"));
    b.until("document.querySelector('nav a[aria-current=page]').innerText === 'Processes'");
    b.click("[data-k='sort-messages']");
    b.until("document.querySelector('th[aria-sort=descending]')?.innerText.startsWith('Messages')");
    b.until(&format!("{} === 'hog'", cell("Name or label")));
    b.until(&format!("{} === '300'", cell("Messages")));
    b.picture("observe-processes-light");
    b.focus("[data-k=filter]");
    b.write("app:hog");
    b.until("document.querySelectorAll('main tbody tr').length === 1");
    b.until("document.activeElement.getAttribute('data-k') === 'filter' && document.activeElement.value === 'app:hog'");
    // By keyboard alone: to the process, and to what it holds.
    b.value("document.querySelector('main tbody a').focus()");
    b.key("Enter", 13);
    b.until("document.querySelector('main h2')?.innerText === 'Process' && document.body.innerText.includes('of the hog')");
    b.until(
        "document.querySelector('main').innerText.includes('{order,1,[1,2,3,4,5,6,7,8,9,10]}')",
    );
    b.until("document.querySelectorAll('main ol li').length === 20");

    // The answers of explain, down to the line.
    b.click("nav a[href='#memory']");
    b.click("[data-k='tab-copies']");
    b.until("document.querySelectorAll('main details').length > 0");
    b.click("main details summary");
    b.until(
        "document.querySelector('main details[open] table caption')?.innerText.startsWith('Stack')",
    );
    b.click("[data-k='tab-memory']");
    b.until("[...document.querySelectorAll('main caption')].some((c) => c.innerText === 'Kinds')");

    for (view, words) in [
        ("schedulers", "At work since the last look"),
        ("regions", "Holders in all"),
        ("tables", "cache"),
        ("ports", "tcp_inet"),
        ("budgets", "0 budgets"),
    ] {
        b.click(&format!("nav a[href='#{view}']"));
        b.until(&format!("document.querySelector('main table') && document.querySelector('main').innerText.includes({words:?})"));
    }

    // A flame graph, by arrow keys.
    b.click("nav a[href='#flame']");
    b.until("[...document.querySelectorAll('.flame button')].some((x) => x.innerText.includes('app:spin/1'))");
    b.picture("observe-flame-light");
    b.focus(".flame button[tabindex='0']");
    b.key("ArrowDown", 40);
    b.until("document.activeElement.closest('.flame') && document.activeElement.tabIndex === -1");
    b.key("Enter", 13);
    b.until("document.querySelectorAll('.flame button').length > 1");
    b.key("Escape", 27);
    b.click("[data-k='tab-allocation']");
    b.until(
        "document.querySelector('main .note').innerText.startsWith('Bytes that processes filled')",
    );

    // A trace, by typing.
    b.click("nav a[href='#trace']");
    b.focus("[data-k='trace-function']");
    b.write("app:tick/2");
    // Typed text stays when the view is redrawn.
    b.until("document.querySelector(\"[data-k='trace-function']\").value === 'app:tick/2'");
    b.focus("[data-k='trace-calls']");
    b.value("document.activeElement.value = '3', document.activeElement.dispatchEvent(new Event('input')), 0");
    b.key("Enter", 13);
    b.until("document.querySelector('#trace-state')?.innerText.includes('off; 3 calls seen')");
    b.until("document.querySelectorAll('main tbody tr').length === 3");
    b.focus("[data-k='trace-function']");
    b.value("document.activeElement.select()");
    b.write("app:nothing/2");
    b.key("Enter", 13);
    b.until("document.querySelector('#status').innerText.startsWith(\"there is no function 'app:nothing/2'\")");

    // It pauses on request, and keeps what it needs when it is reloaded.
    b.click("#pause");
    b.until("document.querySelector('#pause').getAttribute('aria-pressed') === 'true'");
    b.click("#pause");
    b.value("location.hash = '#overview'");
    b.scheme("dark");
    b.until("document.querySelectorAll('main svg polyline').length >= 6");
    b.picture("observe-overview-dark");
    b.done("Page.reload", &[]);
    b.until("document.querySelector('#status')?.innerText === 'Live' && document.querySelector('main h2')?.innerText === 'Overview'");
    assert_eq!(
        b.value("getComputedStyle(document.body).backgroundColor")
            .text(),
        Some("rgb(23, 22, 20)")
    );
    // Every button, link and input has a name, and all tables have captions.
    let nameless = "[...document.querySelectorAll('button, a, input')].filter((e) => !(e.innerText || e.getAttribute('aria-label') || e.labels?.length)).length";
    assert_eq!(b.value(nameless), Json::Int(0));
    assert_eq!(
        b.value("[...document.querySelectorAll('table')].filter((t) => !t.caption).length"),
        Json::Int(0)
    );
    // It fits on a small screen.
    b.size(390, 800);
    b.until("document.documentElement.scrollWidth <= 390");

    app.kill();
    let why = format!("Process {} has ended.", app.pid());
    b.until(&format!("document.querySelector('#alert').innerText === {why:?} && !document.querySelector('#alert').hidden"));
    assert!(b.complaints.is_empty(), "{:?}", b.complaints);
}

/// Texts of the page whose contrast with what is behind them is below that of WCAG AA: 4.5, or 3
/// for large letters. Colours that are partly transparent are mixed with what is behind them.
const PALE: &str = r#"(() => {
  const colour = (text) => {
    const n = text.match(/[\d.]+/g).map(Number);
    return [n[0], n[1], n[2], n[3] ?? 1];
  };
  const mixed = (over, under) =>
    over.slice(0, 3).map((c, i) => c * over[3] + under[i] * (1 - over[3]));
  const behind = (e) => {
    if (!e) return [255, 255, 255];
    const c = colour(getComputedStyle(e).backgroundColor);
    return c[3] === 1 ? c.slice(0, 3) : mixed(c, behind(e.parentElement));
  };
  const light = (c) => {
    const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, text = walk.currentNode.data.trim();
    if (!text || !e.checkVisibility() || e.closest("script, style, svg, :disabled")) continue;
    const style = getComputedStyle(e), back = behind(e);
    const [a, b] = [light(mixed(colour(style.color), back)), light(back)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize), bold = +style.fontWeight >= 700;
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (size >= 24 || (bold && size >= 18.66) ? 3 : 4.5)) found.add(`${ratio.toFixed(2)} ${text.slice(0, 40)}`);
  }
  return [...found].join("; ");
})()"#;

/// Elements that reach beyond the right edge of the page, outside of what scrolls by itself.
const WIDE: &str = r#"(() => {
  const scrolls = (e) => e && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
  const edge = document.documentElement.clientWidth + 1;
  const wide = [...document.querySelectorAll("body *")].filter((e) =>
    e.checkVisibility() && e.getBoundingClientRect().right > edge && !scrolls(e.parentElement));
  const page = document.documentElement.scrollWidth > edge ? ["the page"] : [];
  return page.concat(wide.map((e) => `${e.tagName} ${e.className} ${e.innerText?.slice(0, 30)}`)).join("; ");
})()"#;

/// The outline of what has the focus; empty if it is not to be seen.
const OUTLINE: &str = r#"(() => {
  const e = document.activeElement;
  if (!e || e === document.body) return "body";
  const style = getComputedStyle(e);
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 ? e.id || e.innerText || e.tagName : "";
})()"#;

#[test]
fn each_view_fits_and_can_be_read() {
    let Some(app) = App::start() else { return };
    let Some(mut b) = Browser::start(&app.folder()) else {
        return;
    };
    let observer = Observer::unopened(&app, &[&app.pid().to_string(), "--no-open"]);
    b.open(&observer.address);
    b.until("document.querySelector('#status').innerText === 'Live'");
    let views =
        b.value("[...document.querySelectorAll('nav a')].map((a) => a.hash.slice(1)).join(' ')");
    let views = views.text().expect("views").to_string();
    assert!(views.split(' ').count() > 8, "{views}");
    let mut wrong = Vec::new();
    for (width, scheme) in [
        (1280, "light"),
        (1280, "dark"),
        (400, "light"),
        (400, "dark"),
    ] {
        b.size(width, 800);
        b.scheme(scheme);
        for view in views.split(' ') {
            b.click(&format!("nav a[href='#{view}']"));
            b.until(&format!(
                "document.querySelector('nav a[aria-current=page]').hash === '#{view}' && document.querySelector('main h2').innerText === views['{view}'].title"
            ));
            if view == "flame" {
                b.until("document.querySelectorAll('.flame button').length > 1");
            }
            for (what, script) in [("too pale", PALE), ("too wide", WIDE)] {
                let found = b.value(script);
                let found = found.text().unwrap_or("no answer");
                if !found.is_empty() {
                    wrong.push(format!("{view}, {width}, {scheme}: {what}: {found}"));
                }
            }
        }
    }
    // The keyboard reaches each view, and the focus is always to be seen.
    b.value("document.activeElement.blur(), 0");
    let mut reached = Vec::new();
    for _ in 0..views.split(' ').count() + 4 {
        b.key("Tab", 9);
        match b.value(OUTLINE).text() {
            Some("") => wrong.push(format!("the focus is not to be seen after {reached:?}")),
            found => reached.push(found.unwrap_or_default().to_string()),
        }
    }
    for id in ["skip", "pause"] {
        assert!(reached.iter().any(|r| r == id), "{id}: {reached:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(b.complaints.is_empty(), "{:?}", b.complaints);
}

#[test]
fn an_address_that_was_used_says_so() {
    let Some(app) = App::start() else { return };
    let Some(mut b) = Browser::start(&app.folder()) else {
        return;
    };
    let observer = Observer::start(&app);
    b.open(&observer.address);
    b.until(
        "document.querySelector('#alert').innerText.startsWith('This address was used before')",
    );
    b.until("!document.querySelector('main table')");
}
