# A disk that control groups limit for guests, and for whoever asks.
build() {
    mkdir -p /sys/fs/cgroup
    quietly mount -t cgroup2 none /sys/fs/cgroup
    echo '+io +memory' > /sys/fs/cgroup/cgroup.subtree_control
    mkdir /sys/fs/cgroup/machine.slice /sys/fs/cgroup/asking
    number=$(cat "/sys/class/block/${C##*/}/dev")
    echo "$number rbps=10485760 wiops=200" > /sys/fs/cgroup/machine.slice/io.max
    echo 536870912 > /sys/fs/cgroup/machine.slice/memory.max
    echo "$number wbps=1048576" > /sys/fs/cgroup/asking/io.max
    # Whatever this shell starts is in its group.
    echo 0 > /sys/fs/cgroup/asking/cgroup.procs
}
facts() {
    collect "$C"
}
tear_down() {
    echo 0 > /sys/fs/cgroup/cgroup.procs
    quietly rmdir /sys/fs/cgroup/machine.slice /sys/fs/cgroup/asking
    quietly umount /sys/fs/cgroup
}
