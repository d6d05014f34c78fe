#!/bin/sh
# The .deb's last step: the folder into which root's command unpacked its libraries goes, too.
set -e
case ${1:-} in
    remove | purge) rm -rf /var/cache/heapwright ;;
esac
