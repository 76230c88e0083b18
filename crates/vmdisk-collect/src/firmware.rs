//! UEFI for guests, from the descriptors of `docs/interop/firmware.json` of QEMU.

use std::collections::BTreeMap;

use serde_json::Value;
use vmdisk_facts::Fact;
use vmdisk_facts::firmware::UefiFirmware;

use crate::root::Root;

/// The UEFI images on flash, in the order in which programs choose them: by the name of the descriptor, of which that of
/// the administrator counts.
pub(crate) fn firmware(root: &Root) -> Vec<UefiFirmware> {
    let mut descriptors = BTreeMap::new();
    for directory in ["/usr/share/qemu/firmware", "/etc/qemu/firmware"] {
        for name in root.names(directory).unwrap_or_default() {
            if name.ends_with(".json") {
                let text = root.text(format!("{directory}/{name}"));
                descriptors.insert(name, text.unwrap_or_default());
            }
        }
    }
    // An empty file hides one of the distribution.
    let texts = descriptors.values();
    let found = texts.filter_map(|text| described(&serde_json::from_str(text).ok()?));
    found.collect()
}

fn described(descriptor: &Value) -> Option<UefiFirmware> {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items
            .filter_map(|it| Some(it.as_str()?.to_owned()))
            .collect()
    };
    let mapping = &descriptor["mapping"];
    let is_uefi = texts(&descriptor["interface-types"]).contains(&"uefi".to_owned());
    if !is_uefi || mapping["device"] != "flash" {
        return None;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (code, template) = (&mapping["executable"], &mapping["nvram-template"]);
    let targets = descriptor["targets"].as_array()?.iter();
    let machines = targets.flat_map(|target| {
        let arch = text(&target["architecture"]).unwrap_or_default();
        let machines = texts(&target["machines"]).into_iter();
        machines.map(move |machine| format!("{arch} {machine}"))
    });
    Some(UefiFirmware {
        code: Fact::Known(text(&code["filename"])?),
        variables: text(&template["filename"]).map_or(Fact::Absent, Fact::Known),
        format: Fact::Known(text(&code["format"])?),
        machines: Fact::Known(machines.collect()),
        features: Fact::Known(texts(&descriptor["features"])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_read_in_their_order_and_one_of_the_administrator_counts() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: String| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let descriptor = |code: &str, device: &str| {
            format!(
                r#"{{"interface-types": ["uefi"], "mapping": {{"device": "{device}",
                "executable": {{"filename": "{code}", "format": "raw"}},
                "nvram-template": {{"filename": "/v.fd", "format": "raw"}}}},
                "targets": [{{"architecture": "x86_64", "machines": ["pc-q35-*", "pc-i440fx-*"]}}],
                "features": ["acpi-s3"]}}"#
            )
        };
        write(
            "usr/share/qemu/firmware/60-b.json",
            descriptor("/b.fd", "flash"),
        );
        write(
            "usr/share/qemu/firmware/50-a.json",
            descriptor("/a.fd", "flash"),
        );
        write(
            "usr/share/qemu/firmware/70-bios.json",
            descriptor("/c.bin", "memory"),
        );
        write(
            "usr/share/qemu/firmware/40-hidden.json",
            descriptor("/h.fd", "flash"),
        );
        write("etc/qemu/firmware/40-hidden.json", String::new());
        write(
            "etc/qemu/firmware/50-a.json",
            descriptor("/mine.fd", "flash"),
        );
        let found = firmware(&Root::new(folder.path()));
        let codes: Vec<_> = found.iter().map(|it| it.code.as_str()).collect();
        assert_eq!(codes, [Fact::Known("/mine.fd"), Fact::Known("/b.fd")]);
        let machines = ["x86_64 pc-q35-*", "x86_64 pc-i440fx-*"].map(str::to_owned);
        assert_eq!(found[0].machines, Fact::Known(machines.to_vec()));
        assert_eq!(found[0].variables.as_str(), Fact::Known("/v.fd"));
    }
}
