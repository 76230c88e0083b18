//! Checks the paths on the host.

use super::SpecPath;
use super::faults::Faults;
use super::node::shortened;

/// Checks that a path fits `sun_path` of a UNIX socket address, less its closing zero byte.
pub(super) fn check_socket_length(path: &str, at: SpecPath, faults: &mut Faults) {
    let message = "the path of a UNIX socket has at most 107 bytes";
    faults.refuse_unless(path.len() <= 107, at, message);
}

/// Checks the whole path of something on the host.
pub(super) fn check_path(path: &str, at: SpecPath, faults: &mut Faults) {
    if !path.starts_with('/') {
        let message = format!("`{}` is not an absolute path", shortened(path));
        faults.refuse(at, message).help = Some(
            "use an absolute path, because libvirt and QEMU run in other directories".to_owned(),
        );
    } else if path.contains('\0') {
        faults.refuse(at, "a path on the host cannot contain a zero byte");
    }
}
