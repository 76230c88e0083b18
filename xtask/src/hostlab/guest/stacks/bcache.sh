# A slow disk behind a fast one that takes its writes first.
bcache=
build() {
    quietly make-bcache --writeback --wipe-bcache --cset-uuid "$UUID_1" -B "$SCSI_512E" -C "$C"
    # udev may have been quicker.
    for member in "$SCSI_512E" "$C"; do
        [ -e "/sys/class/block/${member##*/}/bcache" ] || echo "$member" > /sys/fs/bcache/register
    done
    udevadm settle
    tries=0
    until [ "$(cat /sys/block/bcache0/bcache/state 2>/dev/null)" = clean ] || [ $tries = 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
}
facts() {
    # Both disks have names that are made up anew each time.
    for link in /dev/disk/by-uuid/*; do
        case "$(readlink -f "$link")" in "$C" | "$SCSI_512E") rm "$link" ;; esac
    done
    collect /dev/bcache0
}
tear_down() {
    echo 1 > /sys/block/bcache0/bcache/stop
    echo 1 > "/sys/fs/bcache/$UUID_1/stop"
    tries=0
    while [ -e "/sys/fs/bcache/$UUID_1" ] || [ -e /sys/block/bcache0 ]; do
        tries=$((tries + 1))
        [ $tries -lt 50 ] || { echo "LAB $stack: bcache does not stop" > /dev/console; exit 1; }
        sleep 0.1
    done
    # The disks are let go a moment later than the devices are gone.
    tries=0
    until wipefs -a "$C" "$SCSI_512E" > /dev/null 2>&1 || [ $tries = 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    quietly wipefs -a "$C" "$SCSI_512E"
}
