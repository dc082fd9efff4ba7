#!/bin/sh
# An example job: prints a line each second, and stops when it is asked to.
# A shell has its children in the background ignore Ctrl-C, so it ends the sleep itself.
trap 'echo "job $$: asked to stop, cleaning up"; kill $! 2>/dev/null; wait; exit 0' TERM INT
echo "job $$: I am the only one (term $NELI_EPOCH, run by $NELI_NAME)"
count=0
while :; do
    count=$((count + 1))
    echo "job $$: working, $count s"
    sleep 1 &
    wait $!
done
