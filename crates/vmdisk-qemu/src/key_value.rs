//! QEMU's older option syntax, `first,key=value,key=value`, in which a comma is written twice.

use std::borrow::Cow;
use std::fmt;

use crate::json::{Json, JsonObject};

/// An option in key=value form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyValue {
    /// The first value, which has no key, such as the type of `-object`.
    pub first: Option<String>,
    /// Keys with their values, in order.
    pub pairs: Vec<(Cow<'static, str>, String)>,
}

impl KeyValue {
    /// An option that begins with a value without a key.
    pub fn first(value: impl Into<String>) -> Self {
        KeyValue {
            first: Some(value.into()),
            pairs: Vec::new(),
        }
    }

    /// The same option with one more pair.
    #[must_use]
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.pairs.push((key.into(), value.into()));
        self
    }

    /// The same properties as a JSON object; its member `head` becomes the value without a key.
    ///
    /// # Errors
    /// Fails with the key of a member that only JSON can express: an array, an object or `null`.
    pub fn from_json(object: &JsonObject, head: &str) -> Result<Self, String> {
        let mut option = KeyValue::default();
        for (key, value) in object.members() {
            let text = match value {
                Json::Bool(true) => "on".to_owned(),
                Json::Bool(false) => "off".to_owned(),
                Json::Number(number) => number.to_string(),
                Json::String(text) => text.clone(),
                Json::Null | Json::Array(_) | Json::Object(_) => return Err(key.to_owned()),
            };
            if key == head {
                option.first = Some(text);
            } else {
                option.pairs.push((Cow::Owned(key.to_owned()), text));
            }
        }
        Ok(option)
    }
}

impl fmt::Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        if let Some(first) = &self.first {
            f.write_str(&first.replace(',', ",,"))?;
            comma = ",";
        }
        for (key, value) in &self.pairs {
            write!(f, "{comma}{key}={}", value.replace(',', ",,"))?;
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_a_value_is_written_twice_so_that_it_ends_nothing() {
        let option = KeyValue::first("socket")
            .with("id", "chr")
            .with("path", "/run/a,server=on,b");
        assert_eq!(
            option.to_string(),
            "socket,id=chr,path=/run/a,,server=on,,b"
        );
    }

    #[test]
    fn plain_json_properties_have_a_key_value_form_and_nested_ones_have_none() {
        let object = JsonObject::new()
            .with("driver", "virtio-blk-pci")
            .with("share-rw", true)
            .with("num-queues", 4_u32)
            .with("serial", "a,b");
        let option = KeyValue::from_json(&object, "driver").unwrap();
        assert_eq!(
            option.to_string(),
            "virtio-blk-pci,share-rw=on,num-queues=4,serial=a,,b"
        );
        let nested = object.with("iothread-vq-mapping", Vec::new());
        assert_eq!(
            KeyValue::from_json(&nested, "driver"),
            Err("iothread-vq-mapping".to_owned())
        );
    }
}
