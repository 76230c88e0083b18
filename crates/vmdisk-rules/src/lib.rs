//! Rules over disks, host facts and a target.
