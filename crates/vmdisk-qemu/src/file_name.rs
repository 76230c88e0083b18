//! `-hda FILE` and its kin: options that are only a file name, and the `-drive` that QEMU makes of them.

/// The value of the `-drive` for such an option; an image without an option has the name ``.
///
/// As in QEMU's `vl.c`: `-hda` is the drive with index 0 of the machine's default interface.
pub(crate) fn drive_of(option: &str, file: &str) -> Option<String> {
    let place = match option {
        "" | "hda" => "index=0",
        "hdb" => "index=1",
        "hdc" => "index=2",
        "hdd" => "index=3",
        "cdrom" => "index=2,media=cdrom",
        "fda" => "if=floppy,index=0",
        "fdb" => "if=floppy,index=1",
        "sd" => "if=sd",
        _ => return None,
    };
    Some(format!("file={file},{place}"))
}

/// True for a file name that is the same text in a shell and in key=value.
pub(crate) fn is_plain(file: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:+@".contains(&byte);
    !file.is_empty() && file.bytes().all(is_plain)
}
