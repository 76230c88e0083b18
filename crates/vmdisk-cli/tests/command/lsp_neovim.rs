//! `vmdisk lsp` in Neovim on a terminal, set up as docs/editor.md says.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use vmdisk_testing::{installed, needed, run};

use crate::{Place, UNSAFE};

/// How long Neovim may take to show something.
const TIMEOUT: Duration = Duration::from_secs(60);

const COMMAND_LINE: &str = "qemu-system-x86_64 -drive file=/a,format=raw,cache=unsafe\n";

/// A terminal with a program in it.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn start(place: &Place, file: &str) -> Self {
        let terminal = Terminal {
            // The server of an earlier terminal may still be ending.
            socket: place.path(&format!("tmux-{file}")).display().to_string(),
        };
        let bin = Path::new(crate::program()).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let started = Command::new("tmux")
            .args([
                "-S",
                &terminal.socket,
                "-f",
                "/dev/null",
                "new-session",
                "-d",
            ])
            .args(["-x", "180", "-y", "40"])
            .arg(format!("nvim -n -u init.lua {file}"))
            .current_dir(place.path(""))
            .env("PATH", path)
            .env("XDG_STATE_HOME", place.path("state"))
            .env("XDG_CACHE_HOME", place.path("cache"))
            .env("XDG_DATA_HOME", place.path("data"))
            .env("LC_ALL", "C.UTF-8")
            .status();
        assert!(started.unwrap().success());
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut all = vec!["-S", &self.socket];
        all.extend(arguments);
        run("tmux", &all).unwrap()
    }

    /// Waits until the screen shows a text, and returns the screen.
    fn wait_for(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if screen.contains(text) {
                return screen;
            }
            assert!(
                begun.elapsed() < TIMEOUT,
                "`{text}` is not on the screen:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn type_keys(&self, keys: &[&str]) {
        let mut all = vec!["send-keys"];
        all.extend(keys);
        self.tmux(&all);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = run("tmux", &["-S", &self.socket, "kill-server"]);
    }
}

#[test]
fn neovim_shows_a_finding_explains_it_and_applies_its_fix() {
    let tools = installed("nvim").and_then(|()| run("tmux", &["-V"]).map(drop));
    if needed(tools).is_none() {
        return;
    }
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/editor.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let setup = guide
        .split("```lua\n")
        .last()
        .and_then(|rest| rest.split("```").next());
    let place = Place::with(&[
        ("a.xml", UNSAFE),
        ("g.args", COMMAND_LINE),
        ("init.lua", setup.unwrap()),
    ]);
    let terminal = Terminal::start(&place, "a.xml");
    // The message stands behind the line.
    terminal.wait_for("`vda`");
    terminal.type_keys(&["/unsafe", "Enter", ":lua vim.lsp.buf.hover()", "Enter"]);
    terminal.wait_for("Page cache, and guest flushes are thrown away");
    terminal.type_keys(&["Escape", ":lua vim.lsp.buf.code_action()", "Enter"]);
    terminal.wait_for("1: ");
    terminal.type_keys(&["1", "Enter"]);
    terminal.type_keys(&[":w", "Enter"]);
    let begun = Instant::now();
    while place.read("a.xml").contains("unsafe") {
        assert!(
            begun.elapsed() < TIMEOUT,
            "{}",
            terminal.tmux(&["capture-pane", "-p"])
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    terminal.type_keys(&[":q", "Enter"]);
    drop(terminal);
    // The recipe gives command lines a type.
    Terminal::start(&place, "g.args").wait_for("discards the guest");
}
