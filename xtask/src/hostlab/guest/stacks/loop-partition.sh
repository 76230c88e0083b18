# A partition of a disk with ext4, a file on it as a loop device of 4096-byte sectors, and that given to a guest;
# beside it the partitioned disk itself, which must not be given away.
build() {
    printf 'label: gpt\nlabel-id: %s\nsize=256M, uuid=%s\nsize=64M, uuid=%s\n' "$UUID_1" "$UUID_1" "$UUID_2" > /tmp/table
    /sbin/sfdisk -q "$SCSI_512E" < /tmp/table > /tmp/said 2>&1 || { echo "LAB $stack: $(cat /tmp/said)"; exit 1; }
    udevadm settle
    quietly mkfs.ext4 -q -U "$UUID_1" -E lazy_itable_init=0 "${SCSI_512E}1"
    mkdir -p /srv/images
    quietly mount "${SCSI_512E}1" /srv/images
    truncate -s 64M /srv/images/disk.img
    quietly losetup --sector-size 4096 --direct-io=on /dev/loop0 /srv/images/disk.img
}
facts() {
    collect /dev/loop0 "$SCSI_512E" "${SCSI_512E}2"
}
tear_down() {
    quietly losetup -d /dev/loop0
    quietly umount /srv/images
    quietly wipefs -a "${SCSI_512E}1" "$SCSI_512E"
}
