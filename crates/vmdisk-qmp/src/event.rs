//! Events: messages that QEMU sends on its own.

use serde_json::Value;

/// One event, such as `JOB_STATUS_CHANGE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its data; null if there is none.
    pub data: Value,
    /// Its time, in microseconds since 1970 on the host's clock; 0 if QEMU does not send it.
    pub microseconds: u64,
}

impl Event {
    /// Parses a message; `None` if it is not an event.
    pub(crate) fn of(message: &mut Value) -> Option<Self> {
        let name = message.get("event")?.as_str()?.to_owned();
        let part = |part: &str| message["timestamp"][part].as_u64();
        let microseconds = part("seconds")
            .and_then(|seconds| {
                seconds
                    .checked_mul(1_000_000)?
                    .checked_add(part("microseconds")?)
            })
            .unwrap_or_default();
        Some(Event {
            name,
            microseconds,
            data: message["data"].take(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_has_a_name_a_time_and_data() {
        let mut message = json!({
            "event": "STOP", "timestamp": { "seconds": 2, "microseconds": 7 }, "data": { "a": 1 }
        });
        let event = Event::of(&mut message).unwrap();
        assert_eq!(
            (event.name.as_str(), event.microseconds),
            ("STOP", 2_000_007)
        );
        assert_eq!(event.data, json!({ "a": 1 }));
        // QEMU writes -1 if the host's clock fails.
        let mut message =
            json!({ "event": "STOP", "timestamp": { "seconds": -1, "microseconds": -1 } });
        let event = Event::of(&mut message).unwrap();
        assert_eq!((event.microseconds, event.data), (0, Value::Null));
        assert_eq!(Event::of(&mut json!({ "return": {} })), None);
    }
}
