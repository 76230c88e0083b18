# xfs on a SCSI disk and on an NVMe namespace that both know sectors of 4096 bytes only.
build() {
    quietly mkfs.xfs -q -f -m uuid="$UUID_1" "$SCSI_4K"
    quietly mkfs.xfs -q -f -m uuid="$UUID_2" "$NVME_4K"
    mkdir -p /srv/scsi /srv/nvme
    quietly mount "$SCSI_4K" /srv/scsi
    quietly mount "$NVME_4K" /srv/nvme
    truncate -s 64M /srv/scsi/disk.img /srv/nvme/disk.img
    quietly fallocate -l 16M /srv/scsi/reserved.img
    sync
}
facts() {
    collect /srv/scsi/disk.img /srv/nvme/disk.img /srv/scsi/reserved.img
}
tear_down() {
    quietly umount /srv/scsi
    quietly umount /srv/nvme
    quietly wipefs -a "$SCSI_4K" "$NVME_4K"
}
