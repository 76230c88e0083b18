//! A call of `execve` at which a process stands still: its arguments, and how they are replaced.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use nix::sys::ptrace;
use nix::unistd::Pid;

/// The kernel takes no more from a command.
const MAX_ARGUMENTS: usize = 8 << 20;

/// Below the stack pointer, further than the red zone of 128 bytes: nothing is there until the call returns, which it does
/// only if it fails. Goroutines have at least this much.
const BELOW_STACK: u64 = 256;

/// The size of a pointer.
const POINTER: u64 = 8;

/// A process before a call of `execve` or `execveat`.
pub(crate) struct Call {
    pid: Pid,
    registers: nix::libc::user_regs_struct,
    memory: File,
    /// True for `execveat`, which has a descriptor before the path.
    is_at: bool,
    /// The path, as the process gave it.
    pub(crate) path: Vec<u8>,
    /// The arguments, of which the first is a name for the program.
    pub(crate) arguments: Vec<Vec<u8>>,
}

impl Call {
    pub(crate) fn of(pid: Pid) -> io::Result<Self> {
        let registers = ptrace::getregs(pid)?;
        let mut call = Call {
            pid,
            is_at: machine::is_at(&registers),
            registers,
            memory: File::open(format!("/proc/{pid}/mem"))?,
            path: Vec::new(),
            arguments: Vec::new(),
        };
        let (path, vector) = (call.argument(0), call.argument(1));
        call.path = call.string(path)?;
        let mut size = 0;
        // Linux takes no vector as an empty one.
        while vector != 0 && size < MAX_ARGUMENTS {
            let mut pointer = [0; 8];
            let at = vector + POINTER * call.arguments.len() as u64;
            call.memory.read_exact_at(&mut pointer, at)?;
            let pointer = u64::from_ne_bytes(pointer);
            if pointer == 0 {
                break;
            }
            let word = call.string(pointer)?;
            size += word.len() + pointer.to_ne_bytes().len();
            call.arguments.push(word);
        }
        if call.path.is_empty() && call.is_at {
            let descriptor = machine::argument(&call.registers, 0);
            let link = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}"))?;
            call.path = link.as_os_str().as_bytes().to_owned();
        }
        Ok(call)
    }

    /// The path (0) or the vector of arguments (1).
    fn argument(&self, number: usize) -> u64 {
        machine::argument(&self.registers, number + usize::from(self.is_at))
    }

    /// The bytes up to a zero byte.
    fn string(&self, at: u64) -> io::Result<Vec<u8>> {
        const PAGE: u64 = 4096;
        let mut bytes = Vec::new();
        while bytes.len() < MAX_ARGUMENTS {
            let from = at + bytes.len() as u64;
            // The next page need not be there.
            let mut piece = vec![0; (PAGE - from % PAGE) as usize];
            self.memory.read_exact_at(&mut piece, from)?;
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                bytes.extend_from_slice(&piece[..end]);
                break;
            }
            bytes.append(&mut piece);
        }
        Ok(bytes)
    }

    /// Runs another program with the same arguments.
    pub(crate) fn run_instead(&mut self, program: &Path) -> io::Result<()> {
        let vector = self.argument(1);
        let base = self.base(program.as_os_str().len());
        self.write(base, &with_zero(program))?;
        self.set(base, vector)
    }

    /// Runs the command that begins with this argument, which is not the first; words such as `A=b` before it are variables.
    pub(crate) fn run_arguments(&mut self, first: usize) -> io::Result<()> {
        let env = Path::new("/usr/bin/env");
        let before = self.argument(1) + POINTER * (first as u64 - 1);
        let base = self.base(env.as_os_str().len());
        self.write(base, &with_zero(env))?;
        // Busybox goes by the name.
        let name = base + "/usr/bin/".len() as u64;
        self.write(before, &name.to_ne_bytes())?;
        self.set(base, before)
    }

    /// Runs this argument as a command line of a shell.
    pub(crate) fn run_line(&mut self, argument: usize) -> io::Result<()> {
        const TEXT: &[u8; 16] = b"/bin/sh\0-c\0\0\0\0\0\0";
        let mut line = [0; 8];
        let at = self.argument(1) + POINTER * argument as u64;
        self.memory.read_exact_at(&mut line, at)?;
        let base = self.base(TEXT.len() + 4 * POINTER as usize);
        let vector = base + TEXT.len() as u64;
        let words = [base + 5, base + 8, u64::from_ne_bytes(line), 0];
        self.write(base, TEXT)?;
        self.write(vector, &words.map(u64::to_ne_bytes).concat())?;
        self.set(base, vector)
    }

    /// Where there is room for so many bytes.
    fn base(&self, size: usize) -> u64 {
        (machine::stack(&self.registers) - BELOW_STACK - size as u64) & !0xf
    }

    /// Writes whole words.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        for (number, word) in bytes.chunks(8).enumerate() {
            let mut whole = [0; 8];
            whole[..word.len()].copy_from_slice(word);
            let at = at + POINTER * number as u64;
            ptrace::write(self.pid, at as *mut _, i64::from_ne_bytes(whole))?;
        }
        Ok(())
    }

    fn set(&mut self, path: u64, vector: u64) -> io::Result<()> {
        let first = usize::from(self.is_at);
        machine::set_argument(&mut self.registers, first, path);
        machine::set_argument(&mut self.registers, first + 1, vector);
        Ok(ptrace::setregs(self.pid, self.registers)?)
    }
}

fn with_zero(path: &Path) -> Vec<u8> {
    let mut bytes = path.as_os_str().as_bytes().to_owned();
    bytes.push(0);
    bytes
}

/// The registers of a system call on x86-64.
#[cfg(target_arch = "x86_64")]
mod machine {
    use nix::libc::{SYS_execveat, user_regs_struct};

    pub(super) fn is_at(registers: &user_regs_struct) -> bool {
        registers.orig_rax == SYS_execveat as u64
    }

    pub(super) fn argument(registers: &user_regs_struct, number: usize) -> u64 {
        [registers.rdi, registers.rsi, registers.rdx][number]
    }

    pub(super) fn set_argument(registers: &mut user_regs_struct, number: usize, value: u64) {
        let all = [&mut registers.rdi, &mut registers.rsi, &mut registers.rdx];
        *all.into_iter().nth(number).expect("there are three") = value;
    }

    pub(super) fn stack(registers: &user_regs_struct) -> u64 {
        registers.rsp
    }
}

/// The registers of a system call on AArch64.
#[cfg(target_arch = "aarch64")]
mod machine {
    use nix::libc::{SYS_execveat, user_regs_struct};

    pub(super) fn is_at(registers: &user_regs_struct) -> bool {
        registers.regs[8] == SYS_execveat as u64
    }

    pub(super) fn argument(registers: &user_regs_struct, number: usize) -> u64 {
        registers.regs[number]
    }

    pub(super) fn set_argument(registers: &mut user_regs_struct, number: usize, value: u64) {
        registers.regs[number] = value;
    }

    pub(super) fn stack(registers: &user_regs_struct) -> u64 {
        registers.sp
    }
}
