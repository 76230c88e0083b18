# The namespaces of one NVMe drive as they are, one with sectors of 512 and one of 4096 bytes.
build() {
    :
}
facts() {
    collect "$NVME_512" "$NVME_4K"
}
tear_down() {
    :
}
