//! A disk in one line: `qcow2:/srv/web1.qcow2,size=40G,bus=virtio`.
//!
//! The kind of backend and its location come first, then any keys of the disk and of the backend
//! at one level. Two commas are one comma of a value, as in QEMU; a dot selects a key
//! of a group (`iotune.total-iops-sec=500`) or an element of a list (`iothread.0=1`). The kind of a network disk
//! is its protocol, and its location may be a pasted URL: `https://store.example/a.iso`.

use std::collections::BTreeMap;

use vmdisk_document::Value;
use vmdisk_model::NetworkProtocol;

use super::iotune::IotuneSpec;
#[cfg(feature = "addresses")]
use super::network_address::{self, AddressPart, Fault};
use super::node::shortened;
use super::section::{Reader, SpecValue, all_of};
use super::suggest::nearest;
use super::value::Word;
use super::{BackendSpec, DiskSpec, SpecError, SpecErrors, SpecPath, SpecPlace};

/// Largest one-liner that is read, in bytes: two paths of 4096 bytes, each comma twice, and all keys.
const MAX_ONE_LINER_BYTES: usize = 64 * 1024;

/// The words that a one-liner can begin with, beside those of the protocols of a network; `lun` is a `device` as a
/// SCSI LUN.
const KINDS: [&str; 14] = [
    "raw",
    "qcow2",
    "lvm",
    "lvm-thin",
    "device",
    "lun",
    "zvol",
    "nvme",
    "vhost-vdpa",
    "directory",
    "volume",
    "vhost-user-blk",
    "seed",
    "empty",
];

/// The group and the volume of `GROUP/VOLUME`, or what to write.
fn volume_of<'t>(kind: &str, name: &'t str) -> Result<(&'t str, &'t str), String> {
    match name.split('/').collect::<Vec<_>>()[..] {
        [group, volume] if !matches!(group, "" | "mapper") && !volume.is_empty() => {
            Ok((group, volume))
        }
        [group, pool, volume] if kind == "lvm-thin" && !group.is_empty() => {
            Err(format!("write `lvm-thin:{group}/{volume},pool={pool}`"))
        }
        _ => Err(format!("write {kind}:GROUP/VOLUME")),
    }
}

/// Every word that a one-liner can begin with.
fn kinds() -> Vec<&'static str> {
    [&KINDS[..], NetworkProtocol::ALL_WORDS].concat()
}

/// A kind of one-liner among the keys of a disk, where it is not a key.
pub(super) fn kind_among(has: impl Fn(&str) -> bool) -> Option<&'static str> {
    let mut kinds = kinds().into_iter();
    kinds.find(|kind| !BackendSpec::KINDS.contains(kind) && has(kind))
}

/// True for a text that begins as a one-liner does.
pub(super) fn begins_one_liner(text: &str) -> bool {
    let kind = text.split_once(':').map(|(kind, _)| kind);
    kind.is_some_and(|kind| kinds().contains(&kind))
}

/// The kind of disk that a path without a kind is most likely of.
fn kind_of_path(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.').unwrap_or_default();
    match extension {
        "qcow2" => Some("qcow2"),
        "img" | "raw" => Some("raw"),
        _ => path.starts_with("/dev/").then_some("device"),
    }
}

/// The help for a one-liner in the place of the keys of a disk: the keys that say the same.
pub(super) fn keys_instead(text: &str) -> String {
    let disk = DiskSpec::from_one_liner(text).ok();
    let keys = disk.and_then(|disk| serde_json::to_string(&disk.write()).ok());
    let kind = text.split(':').next().unwrap_or_default();
    match keys {
        Some(keys) => format!("write `{keys}`"),
        None if NetworkProtocol::ALL_WORDS.contains(&kind) => format!(
            "write `network: {{protocol: {kind}, name: NAME, hosts: [HOST]}}`, or the disk as `--disk {kind}:NAME,hosts=HOST`"
        ),
        None => "write the kind as a key, such as `qcow2: {path: /srv/web1.qcow2}`".to_owned(),
    }
}

impl DiskSpec {
    /// The form of a one-liner, for help texts.
    pub const ONE_LINER: &'static str = "KIND:LOCATION[,OPTION=VALUE]…, such as \
        qcow2:/srv/web1.qcow2,size=40G,preallocation=metadata or lvm:vg0/data,bus=virtio";

    /// Reads a disk from one line.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its column.
    ///
    /// ```
    /// use vmdisk_plan::{BackendSpec, DiskSpec};
    ///
    /// let disk = DiskSpec::from_one_liner("lvm:vg0/data,bus=virtio,cache=none")?;
    /// assert!(matches!(disk.backend, BackendSpec::Lvm(_)));
    ///
    /// let errors = DiskSpec::from_one_liner("raw:/srv/a.img,sise=1G").unwrap_err();
    /// assert_eq!(
    ///     errors[0].to_string(),
    ///     "line 1, column 16: sise: unknown key `sise`; did you mean `size`?"
    /// );
    /// # Ok::<(), vmdisk_plan::SpecErrors>(())
    /// ```
    pub fn from_one_liner(text: &str) -> Result<Self, SpecErrors> {
        let mut tree = Tree::default();
        let Some(kind) = tree.read(text) else {
            return Err(tree.errors.into());
        };
        let mut reader = Reader::new(BackendSpec::keys_of(kind));
        reader.not_beside = BackendSpec::KINDS;
        reader.errors = tree.errors;
        let disk = DiskSpec::read(tree.root.into_value(), &mut reader);
        let mut errors = reader.errors;
        if let Some(disk) = disk {
            if errors.is_empty() {
                errors = disk.check(&SpecPath::default());
            }
            if errors.is_empty() {
                return Ok(disk);
            }
        }
        for error in &mut errors {
            error.help = error.help.take().map(|help| Self::help_in_one_liner(&help));
            if error.place.is_none() {
                error.place = tree.places.find(&error.at, error.is_about_key);
            }
        }
        errors.sort_by_key(|error| (error.place.is_none(), error.place));
        Err(errors.into())
    }

    /// A help text for a one-liner, where keys of the disk are options: `cache=none` for `cache: none`.
    ///
    /// ```
    /// use vmdisk_plan::DiskSpec;
    ///
    /// let help = DiskSpec::help_in_one_liner("write `shareable: true` for both, or `firmware: efi`");
    /// assert_eq!(help, "write `shareable=on` for both, or `firmware: efi`");
    /// assert_eq!(DiskSpec::help_in_one_liner("`source.format: raw`"), "`source.format=raw`");
    /// ```
    pub fn help_in_one_liner(help: &str) -> String {
        let mut keys = DiskSpec::keys();
        keys.extend(
            BackendSpec::KINDS
                .iter()
                .copied()
                .flat_map(BackendSpec::keys_of),
        );
        let option = |quoted: &str| {
            let (key, value) = quoted.split_once(": ")?;
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
            let section = key.split('.').next().unwrap_or(key);
            if !keys.contains(&section) || !value.chars().all(is_word) {
                return None;
            }
            let value = match value {
                "true" => "on",
                "false" => "off",
                word => word,
            };
            Some(format!("{key}={value}"))
        };
        let parts = help.split('`').enumerate().map(|(nth, part)| {
            // Every second part is between backticks.
            let option = if nth % 2 == 1 { option(part) } else { None };
            option.unwrap_or_else(|| part.to_owned())
        });
        parts.collect::<Vec<_>>().join("`")
    }

    /// Where a one-liner says what is at a path below its disk, or what that is part of.
    ///
    /// ```
    /// use vmdisk_plan::{DiskSpec, SpecPath};
    ///
    /// let place = DiskSpec::place_in_one_liner("raw:/srv/a.img,io=native", &SpecPath::default().key("io"));
    /// assert_eq!(place.map(|place| place.column), Some(19));
    /// ```
    pub fn place_in_one_liner(text: &str, at: &SpecPath) -> Option<SpecPlace> {
        let mut tree = Tree::default();
        tree.read(text)?;
        tree.places.find(at, false)
    }
}

/// A tree of keys as it grows.
#[derive(Debug)]
enum Branch {
    Leaf(String),
    Inner(Vec<(String, Branch)>),
}

impl Branch {
    fn into_value(self) -> Value {
        match self {
            Branch::Leaf(text) => Value::Text(text),
            Branch::Inner(entries) => {
                let is_list = !entries.is_empty()
                    && entries
                        .iter()
                        .enumerate()
                        .all(|(at, (key, _))| *key == at.to_string());
                if is_list {
                    return Value::list(entries.into_iter().map(|(_, below)| below.into_value()));
                }
                Value::map(
                    entries
                        .into_iter()
                        .map(|(key, below)| (key, below.into_value())),
                )
            }
        }
    }

    /// Puts a group without keys at a key.
    fn put_empty(&mut self, key: &str) {
        if let Branch::Inner(entries) = self {
            entries.push((key.to_owned(), Branch::Inner(Vec::new())));
        }
    }

    /// Puts a text at a path; false if something is there already.
    fn put(&mut self, path: &[&str], text: String) -> bool {
        let Branch::Inner(entries) = self else {
            return false;
        };
        let Some((first, rest)) = path.split_first() else {
            return false;
        };
        let at = entries.iter().position(|(key, _)| key == first);
        match (at, rest) {
            (Some(_), []) => false,
            (Some(at), rest) => entries[at].1.put(rest, text),
            (None, []) => {
                entries.push(((*first).to_owned(), Branch::Leaf(text)));
                true
            }
            (None, rest) => {
                let mut below = Branch::Inner(Vec::new());
                let is_put = below.put(rest, text);
                entries.push(((*first).to_owned(), below));
                is_put
            }
        }
    }
}

/// The tree of a one-liner, where everything stands, and what was wrong.
struct Tree {
    root: Branch,
    places: Places,
    errors: Vec<SpecError>,
}

impl Default for Tree {
    fn default() -> Self {
        Tree {
            root: Branch::Inner(Vec::new()),
            places: Places::default(),
            errors: Vec::new(),
        }
    }
}

/// Columns of keys and of values.
#[derive(Default)]
struct Places(BTreeMap<SpecPath, (usize, usize)>);

impl Places {
    fn find(&self, at: &SpecPath, is_about_key: bool) -> Option<SpecPlace> {
        let mut at = at.clone();
        let mut is_about_key = is_about_key;
        loop {
            if let Some((key, value)) = self.0.get(&at) {
                let column = if is_about_key { *key } else { *value };
                return Some(SpecPlace { line: 1, column });
            }
            at = at.parent()?;
            is_about_key = false;
        }
    }
}

/// A part between two single commas, with its double commas made one.
struct Part {
    text: String,
    /// Column of its first character, from 1.
    column: usize,
    /// Columns by which the text is shorter than what was written, up to each of its characters.
    doubled: Vec<usize>,
}

impl Part {
    /// The column of the nth character of the text, from 0.
    fn column_of(&self, nth: usize) -> usize {
        self.column + nth + self.doubled.partition_point(|at| *at < nth)
    }
}

/// Splits at single commas.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut part = Part {
        text: String::new(),
        column: 1,
        doubled: Vec::new(),
    };
    let mut length = 0;
    let mut characters = text.chars().enumerate().peekable();
    while let Some((at, character)) = characters.next() {
        if character != ',' {
            part.text.push(character);
            length += 1;
        } else if characters.next_if(|(_, next)| *next == ',').is_some() {
            part.doubled.push(length);
            part.text.push(',');
            length += 1;
        } else {
            let next = Part {
                text: String::new(),
                column: at + 2,
                doubled: Vec::new(),
            };
            parts.push(std::mem::replace(&mut part, next));
            length = 0;
        }
    }
    parts.push(part);
    parts
}

/// The keys and texts of a place that has two; otherwise the form to write.
fn two_names<'p>(kind: &str, place: &'p str) -> Result<[(&'static str, &'p str); 2], String> {
    let (keys, form) = match kind {
        "nvme" => (
            ["address", "namespace"],
            "ADDRESS/NAMESPACE, such as 0000:01:00.0/1",
        ),
        _ => (["pool", "volume"], "POOL/VOLUME"),
    };
    match place.split_once('/') {
        Some((first, second)) => Ok([(keys[0], first), (keys[1], second)]),
        None => Err(format!("write {form}")),
    }
}

/// The key of a place with one name.
fn key_of_place(kind: &str) -> &'static str {
    match kind {
        "zvol" => "dataset",
        "vhost-user-blk" => "socket",
        _ => "path",
    }
}

impl Tree {
    fn refuse(&mut self, column: usize, message: impl Into<String>) -> &mut SpecError {
        let mut error = SpecError::value(SpecPath::default(), message);
        error.place = Some(SpecPlace { line: 1, column });
        let at = self.errors.len();
        self.errors.push(error);
        &mut self.errors[at]
    }

    /// Fills the tree; gives the key of the backend unless the beginning makes no sense.
    fn read(&mut self, text: &str) -> Option<&'static str> {
        if text.len() > MAX_ONE_LINER_BYTES {
            let message = format!(
                "{} bytes are too many for one disk, and {MAX_ONE_LINER_BYTES} are the most",
                text.len()
            );
            self.refuse(1, message);
            return None;
        }
        let parts = parts(text);
        // More than all keys there are.
        if parts.len() > 256 {
            self.refuse(
                1,
                format!("{} options are too many for one disk", parts.len() - 1),
            );
            return None;
        }
        let (first, options) = parts.split_first()?;
        let kind = self.read_kind(first)?;
        let keys = BackendSpec::keys_of(kind);
        for part in options {
            self.read_option(part, kind, &keys);
        }
        Some(kind)
    }

    fn refuse_kind(&mut self, column: usize, word: &str) {
        let message = format!("unknown kind of disk `{}`", shortened(word));
        let kinds = kinds();
        let help = match nearest(word, &kinds) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the kinds are {}", all_of(&kinds)),
        };
        self.refuse(column, message).help = Some(help);
    }

    fn read_kind(&mut self, part: &Part) -> Option<&'static str> {
        let help = format!("write {}", DiskSpec::ONE_LINER);
        let Some((word, place)) = part.text.split_once(':') else {
            let help = match part.text.starts_with("path=") {
                // The grammar of virt-install, where a size is in GiB.
                true => "write `qcow2:/srv/web1.qcow2,size=10G` for `path=/srv/web1.qcow2,size=10,format=qcow2`"
                    .to_owned(),
                false => match kind_of_path(&part.text) {
                    Some(kind) => format!("did you mean `{kind}:{}`?", shortened(&part.text)),
                    None => help,
                },
            };
            let message = match part.text.as_str() {
                "" => "expected KIND:LOCATION, found nothing".to_owned(),
                text => format!("`{}` does not name the kind of disk", shortened(text)),
            };
            self.refuse(part.column, message).help = Some(help);
            return None;
        };
        if let Some(protocol) =
            NetworkProtocol::from_word(word.strip_suffix("+unix").unwrap_or(word))
        {
            return self.read_network(part, protocol, word, place);
        }
        let Some(known) = KINDS.iter().find(|kind| **kind == word) else {
            self.refuse_kind(part.column, word);
            return None;
        };
        let column = part.column_of(word.chars().count() + 1);
        if place.is_empty() {
            self.refuse(column, format!("`{known}:` requires a location"))
                .help = Some(help);
            return None;
        }
        let kind = if *known == "lun" { "device" } else { known };
        let at = SpecPath::default().key(kind);
        self.places.0.insert(at.clone(), (part.column, column));
        if kind == "empty" {
            return self.read_empty(place, column);
        }
        let mut put = |key: &str, value: &str, column: usize| {
            self.places.0.insert(at.key(key), (column, column));
            self.root.put(&[kind, key], value.to_owned());
        };
        match kind {
            "lvm" | "lvm-thin" => {
                // The path of the device names the volume too.
                let name = place.strip_prefix("/dev/").unwrap_or(place);
                match volume_of(kind, name) {
                    Ok((group, volume)) => {
                        let before = word.len() + 1 + (place.len() - name.len());
                        put("group", group, part.column_of(before));
                        let behind = before + group.chars().count() + 1;
                        put("volume", volume, part.column_of(behind));
                    }
                    Err(help) => {
                        let place = shortened(place);
                        let message = format!("`{place}` does not name a group and a volume");
                        self.refuse(column, message).help = Some(help);
                        return None;
                    }
                }
            }
            "nvme" | "volume" => match two_names(kind, place) {
                Ok([(first, of_first), (second, of_second)]) => {
                    put(first, of_first, column);
                    put(second, of_second, column + of_first.chars().count() + 1);
                }
                Err(help) => {
                    let message = format!("`{}` has no `/` between two names", shortened(place));
                    self.refuse(column, message).help = Some(help);
                    return None;
                }
            },
            _ => put(key_of_place(kind), place, column),
        }
        if *known == "lun" {
            put("as", "lun", part.column);
        }
        BackendSpec::KINDS
            .iter()
            .copied()
            .find(|name| *name == kind)
    }

    /// A drive without a medium: its place is the kind of drive, and it has no keys.
    fn read_empty(&mut self, place: &str, column: usize) -> Option<&'static str> {
        self.root.put_empty("empty");
        self.put(&["media"], place.to_owned(), (column, column));
        Some("empty")
    }

    /// A disk behind a server: its protocol and its name, or its address.
    fn read_network(
        &mut self,
        part: &Part,
        protocol: NetworkProtocol,
        word: &str,
        place: &str,
    ) -> Option<&'static str> {
        const KIND: &str = "network";
        let behind = part.column_of(word.chars().count() + 1);
        let at = SpecPath::default().key(KIND);
        self.places.0.insert(at, (part.column, behind));
        if place.starts_with("//") {
            return self.read_address(part).then_some(KIND);
        }
        if place.is_empty() || word != protocol.as_str() {
            let help = format!("write `{word}:NAME,hosts=SERVER`, or the address");
            self.refuse(behind, format!("`{word}:` requires a name and a location"))
                .help = Some(help);
            return None;
        }
        let columns = (part.column, part.column);
        self.put(&[KIND, "protocol"], protocol.as_str().to_owned(), columns);
        self.put(&[KIND, "name"], place.to_owned(), (behind, behind));
        Some(KIND)
    }

    /// Reads the address of a server; false if it has a mistake.
    #[cfg(feature = "addresses")]
    fn read_address(&mut self, part: &Part) -> bool {
        let column = |bytes: usize| {
            let before = part.text.get(..bytes).unwrap_or(&part.text);
            part.column_of(before.chars().count())
        };
        match network_address::read(&part.text) {
            Ok(said) => {
                for AddressPart {
                    path,
                    value,
                    begins,
                } in said
                {
                    let path: Vec<&str> = std::iter::once("network")
                        .chain(path.iter().copied())
                        .collect();
                    self.put(&path, value, (column(begins), column(begins)));
                }
                true
            }
            Err(Fault { at, message, help }) => {
                self.refuse(column(at), message).help = help;
                false
            }
        }
    }

    #[cfg(not(feature = "addresses"))]
    fn read_address(&mut self, part: &Part) -> bool {
        self.refuse(
            part.column,
            "this library is built without the feature `plan`, which reads addresses",
        );
        false
    }

    /// Puts a value at a path, with the columns of its key and of itself; false if something is there already.
    fn put(&mut self, path: &[&str], value: String, columns: (usize, usize)) -> bool {
        let mut at = SpecPath::default();
        for (depth, segment) in path.iter().enumerate() {
            at = match segment.parse::<usize>() {
                Ok(index) if depth > 0 => at.index(index),
                Ok(_) | Err(_) => at.key(*segment),
            };
            self.places.0.entry(at.clone()).or_insert(columns);
        }
        self.root.put(path, value)
    }

    fn read_option(&mut self, part: &Part, kind: &'static str, keys: &[&str]) {
        let Some((key, value)) = part.text.split_once('=') else {
            let text = shortened(&part.text);
            let (message, help) = if part.text.is_empty() {
                let help = "write a comma in a value twice";
                (
                    "there is nothing between the commas".to_owned(),
                    help.to_owned(),
                )
            } else {
                (
                    format!("`{text}` has no value"),
                    format!(
                        "write `{text}=…`, or `{text}=on` for a switch; write a comma in a value twice"
                    ),
                )
            };
            self.refuse(part.column, message).help = Some(help);
            return;
        };
        let mut path: Vec<&str> = key.split('.').collect();
        if BackendSpec::KINDS.contains(&path[0]) {
            let message = format!("unknown key `{}`", shortened(key));
            self.refuse(part.column, message).help =
                Some("write the keys of the backend next to the keys of the disk".to_owned());
            return;
        }
        // Deeper than any key, so that no text makes a tree too deep to walk.
        if path.len() > 3 || path.iter().any(|segment| segment.is_empty()) {
            self.refuse(part.column, format!("unknown key `{}`", shortened(key)));
            return;
        }
        if keys.contains(&path[0]) {
            path.insert(0, kind);
        }
        if let [first] = path[..]
            && nearest(first, &DiskSpec::keys()).is_none()
            && nearest(first, keys).is_none()
            && let Some(limit) = nearest(first, &IotuneSpec::keys())
        {
            let message = format!("unknown key `{}`", shortened(key));
            self.refuse(part.column, message).help =
                Some(format!("did you mean `iotune.{limit}`?"));
            return;
        }
        let columns = (part.column, part.column_of(key.chars().count() + 1));
        if !self.put(&path, value.to_owned(), columns) {
            let message = format!("`{}` is written twice", shortened(key));
            self.refuse(part.column, message);
        }
    }
}
