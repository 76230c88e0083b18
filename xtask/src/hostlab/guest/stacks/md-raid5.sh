# Parity over three disks, whole, given to a guest as it is.
build() {
    quietly mdadm --create /dev/md0 --run --assume-clean --level=5 --raid-devices=3 --chunk=64 --metadata=1.2 \
        --homehost=hostlab --name=parity --uuid="$UUID_1" "$C" "$D" "$SCSI_512E"
}
facts() {
    collect /dev/md0
}
tear_down() {
    quietly mdadm --stop /dev/md0
    quietly mdadm --zero-superblock "$C" "$D" "$SCSI_512E"
}
