# One disk that is reached in two ways, joined by device-mapper as multipathd would.
build() {
    # multipathd itself is not run; what it tells the kernel is this table.
    ways=
    for block in /sys/block/sd*; do
        case "$(cat "$block/device/model")" in Array*) ways="$ways /dev/${block##*/} 1" ;; esac
    done
    sectors=524288
    quietly dmsetup create mpatha --uuid mpath-35000c50015ea71cc --table \
        "0 $sectors multipath 0 0 1 1 round-robin 0 2 1$ways"
}
facts() {
    collect /dev/mapper/mpatha
}
tear_down() {
    quietly dmsetup remove mpatha
}
