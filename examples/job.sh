#!/bin/sh
# An example job: prints a line each second, and stops when it is asked to.
trap 'echo "job $$: asked to stop, cleaning up"; exit 0' TERM INT
echo "job $$: I am the only one (term $NELI_EPOCH, run by $NELI_NAME)"
count=0
while :; do
    count=$((count + 1))
    echo "job $$: working, $count s"
    sleep 1 &
    wait $!
done
