#!/bin/sh
# Checks a guest of libvirt before it starts. `vmdisk hook install` wrote this file, and replaces it when it runs again.
#
# It reads the guest from standard input and the host from files, and asks neither libvirt, which waits for it, nor another
# program. docs/hook.md says what happens in each case.
vmdisk=@VMDISK@
# Errors of these rules refuse the start.
refuse='@REFUSE@'
# What a failure of vmdisk does: `refuse` or `start`.
on_failure='@ON_FAILURE@'
# The seconds after which a check is ended.
limit='@LIMIT@'

[ "$2" = prepare ] || exit 0
PATH=/usr/sbin:/usr/bin:/sbin:/bin
# The name of the guest acts on no terminal and is no option.
guest=$(printf '%s' "$1" | LC_ALL=C tr -c ' -~' '?')

log() { logger -t vmdisk -p "daemon.$1" 2>/dev/null; }

failed() {
    why="vmdisk could not check $guest: $1"
    printf '%s\n' "$why" "$said" | log err
    [ "$on_failure" = refuse ] || return 0
    printf '%s\n' "$why" "$said" 'the start is refused (vmdisk hook install --on-failure)' >&2
    exit 1
}

# Sets `said` and `status`.
check() {
    said=$(printf '%s\n' "$xml" | timeout -k 2 "$limit" "$vmdisk" lint - --live --no-config \
        --stdin-filename="$guest" --format=concise "$@" 2>&1)
    status=$?
    # A message of many thousand lines helps nobody.
    said=$(printf '%s' "$said" | head -n 100)
}

reason() {
    case $1 in
    124 | 137) printf 'it did not end within %s seconds' "$limit" ;;
    126 | 127) printf 'the program cannot be run (%s)' "$vmdisk" ;;
    *) printf 'it ended with status %s' "$1" ;;
    esac
}

# Root's home and a vmdisk.toml there decide nothing.
cd /
xml=$(timeout "$limit" cat)
check ${refuse:+"--extend-select=$refuse"} --fail-on=error
case $status in
0 | 1) [ -z "$said" ] || printf '%s\n' "$said" | log warning ;;
*) failed "$(reason "$status")" ;;
esac
# Only a guest with an error is checked again, for the errors that refuse it.
[ "$status" = 1 ] && [ -n "$refuse" ] || exit 0
check --select="$refuse" --fail-on=error
case $status in
0) ;;
1)
    printf '%s\n' "vmdisk refuses the start of $guest" "$said" | log err
    printf '%s\n' "vmdisk refuses the start of $guest" "$said" >&2
    exit 1
    ;;
*) failed "$(reason "$status")" ;;
esac
exit 0
