//! Programs that run the program which their arguments name.

/// How the arguments name the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Each of its words is an argument.
    Words,
    /// One argument is a command line for a shell.
    Text,
    /// One argument is a command line for a shell, several are the words.
    Either,
}

/// A program that runs another.
#[derive(Clone, Copy, Debug)]
pub struct Runner {
    /// Its file name.
    pub name: &'static str,
    /// The words of which one stands before the command, such as `-e`; none if the command follows the options.
    pub after: &'static [&'static str],
    /// Options whose value is the next word.
    pub valued: &'static [&'static str],
    /// Further words before the command, such as a mask of CPUs.
    pub skipped: usize,
    /// The form of the command.
    pub command: Command,
}

const fn plain(name: &'static str, valued: &'static [&'static str], skipped: usize) -> Runner {
    Runner {
        name,
        after: &[],
        valued,
        skipped,
        command: Command::Words,
    }
}

const fn after(
    name: &'static str,
    after: &'static [&'static str],
    valued: &'static [&'static str],
    command: Command,
) -> Runner {
    Runner {
        name,
        after,
        valued,
        skipped: 0,
        command,
    }
}

const SCRIPT: &[&str] = &["-c", "-ec", "-ce", "-lc", "-xc", "-euc", "-exc"];

/// The programs behind which a start of QEMU is found. Only their arguments are read so: those of `apt-get`, `docker`, `ssh` or
/// `pkill` name no program that they start on this machine.
pub const RUNNERS: &[Runner] = &[
    plain("builtin", &[], 0),
    plain("catchsegv", &[], 0),
    plain("cgexec", &["-g"], 0),
    plain("chroot", &[], 1),
    plain("chrt", &["-D", "-P", "-T"], 1),
    plain("command", &[], 0),
    plain("dbus-run-session", &["--config-file"], 0),
    plain("doas", &["-C", "-u"], 0),
    plain("env", &["-C", "-u", "--chdir", "--unset"], 0),
    plain("exec", &["-a"], 0),
    plain("faketime", &[], 1),
    plain("firejail", &[], 0),
    plain("ionice", &["-c", "-n", "-t", "--class", "--classdata"], 0),
    plain("ltrace", &["-e", "-o", "-p", "-s", "-u"], 0),
    plain("nice", &["-n", "--adjustment"], 0),
    plain("nohup", &[], 0),
    plain("nsenter", &["-S", "-G", "-t", "--target"], 0),
    plain(
        "numactl",
        &[
            "-C",
            "-N",
            "-i",
            "-m",
            "-p",
            "--cpunodebind",
            "--interleave",
            "--membind",
            "--physcpubind",
            "--preferred",
        ],
        0,
    ),
    plain("prlimit", &[], 0),
    plain("proxychains", &["-f"], 0),
    plain("runuser", &["-u", "-g", "-G"], 0),
    plain(
        "screen",
        &["-S", "-c", "-dmS", "-e", "-h", "-mdS", "-p", "-s", "-t"],
        0,
    ),
    plain("setpriv", &[], 0),
    plain("setsid", &[], 0),
    plain("stdbuf", &["-e", "-i", "-o"], 0),
    plain(
        "strace",
        &["-E", "-P", "-a", "-b", "-e", "-o", "-p", "-s", "-u"],
        0,
    ),
    plain(
        "sudo",
        &[
            "-C", "-D", "-R", "-T", "-U", "-g", "-h", "-p", "-r", "-t", "-u", "--user", "--group",
        ],
        0,
    ),
    plain(
        "systemd-inhibit",
        &["--what", "--who", "--why", "--mode"],
        0,
    ),
    plain(
        "systemd-run",
        &[
            "-E",
            "-H",
            "-M",
            "-p",
            "-u",
            "--property",
            "--setenv",
            "--slice",
            "--unit",
            "--description",
        ],
        0,
    ),
    plain("taskset", &[], 1),
    plain("time", &["-f", "-o"], 0),
    plain("timeout", &["-k", "-s", "--kill-after", "--signal"], 1),
    plain("torsocks", &[], 0),
    plain("unbuffer", &[], 0),
    plain("unshare", &[], 0),
    plain("valgrind", &[], 0),
    after("alacritty", &["-e", "--command"], &[], Command::Words),
    after("bash", SCRIPT, &[], Command::Text),
    after("dash", SCRIPT, &[], Command::Text),
    after("gdb", &["--args", "-args"], &[], Command::Words),
    after("gnome-terminal", &["--", "-x"], &[], Command::Words),
    Runner {
        skipped: 1,
        ..after("ip", &["exec"], &[], Command::Words)
    },
    after("konsole", &["-e"], &[], Command::Words),
    after("ksh", SCRIPT, &[], Command::Text),
    after("lxterminal", &["-e"], &[], Command::Either),
    after(
        "perf",
        &["record", "stat", "trace"],
        &["-C", "-F", "-e", "-o"],
        Command::Words,
    ),
    after("rr", &["record"], &[], Command::Words),
    after("script", &["-c", "--command"], &[], Command::Text),
    after("sh", SCRIPT, &[], Command::Text),
    after("su", &["-c", "--command"], &[], Command::Text),
    after(
        "tmux",
        &[
            "new",
            "new-session",
            "new-window",
            "neww",
            "send",
            "send-keys",
            "split-window",
            "splitw",
        ],
        &[
            "-F", "-c", "-e", "-f", "-l", "-n", "-p", "-s", "-t", "-x", "-y",
        ],
        Command::Either,
    ),
    after("urxvt", &["-e"], &[], Command::Words),
    after("x-terminal-emulator", &["-e"], &[], Command::Either),
    after("xfce4-terminal", &["-x"], &[], Command::Words),
    after("xterm", &["-e"], &[], Command::Either),
];

impl Runner {
    /// The program that a word names.
    pub fn named(word: &str) -> Option<&'static Runner> {
        let name = word.rsplit('/').next().unwrap_or(word);
        RUNNERS.iter().find(|runner| runner.name == name)
    }

    /// The number of the argument at which the command begins.
    pub fn command_at(&self, arguments: &[&str]) -> Option<usize> {
        let mut at = 0;
        if !self.after.is_empty() {
            at = 1 + arguments.iter().position(|it| self.after.contains(it))?;
            if self.command == Command::Text {
                return (at < arguments.len()).then_some(at);
            }
        }
        let mut skipped = 0;
        while let Some(word) = arguments.get(at) {
            let has_assignments = matches!(self.name, "env" | "sudo" | "doas");
            let is_option = word.starts_with('-') && word.len() > 1;
            let is_assignment = || word.split_once('=').is_some_and(|(name, _)| is_name(name));
            if is_option && self.valued.contains(word) {
                at += 2;
            } else if is_option || has_assignments && is_assignment() {
                at += 1;
            } else if skipped < self.skipped {
                skipped += 1;
                at += 1;
            } else {
                return Some(at);
            }
        }
        None
    }
}

/// True for the name of a variable.
pub(crate) fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(is_part) && text.starts_with(|it: char| it == '_' || it.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::Runner;

    #[test]
    fn the_command_of_a_program_is_found_behind_its_options() {
        for line in [
            "sudo -u q -E A=/b nice -n 5",
            "env -i A=b -- ",
            "taskset -c 0-3",
            "timeout -k 5 30",
            "numactl -N 0 --membind=0",
            "ip netns exec blue",
            "gdb -q --args",
            "xterm -hold -e",
            "tmux new-session -d -s vm",
            "systemd-run --scope -p MemoryMax=1G --",
            "perf stat -e cycles",
        ] {
            let line = format!("{line} qemu -S");
            let mut words: Vec<&str> = line.split_whitespace().collect();
            while let Some(runner) = Runner::named(words[0]) {
                let at = runner.command_at(&words[1..]).unwrap();
                words.drain(..=at);
            }
            assert_eq!(words, ["qemu", "-S"], "{line}");
        }
        assert_eq!(
            Runner::named("bash").unwrap().command_at(&["-c", "a b"]),
            Some(1)
        );
        assert!(Runner::named("apt-get").is_none());
    }
}
