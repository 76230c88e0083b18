# A directory of the machine outside, through virtiofs: what its flushes do is decided there.
build() {
    mkdir -p /srv/images
    quietly mount -t virtiofs lab /srv/images
    truncate -s 64M /srv/images/disk.img
    sync
}
facts() {
    collect /srv/images/disk.img
}
tear_down() {
    rm -f /srv/images/disk.img
    quietly umount /srv/images
}
