//! What is known of a host, and of the target it is checked for, as data.
