#!/bin/sh
# A heap that grows without end, in a node of 256 MiB.
purlin erlc examples/limits/limits.erl
purlin erl +Mlimit 256m -noshell -run limits main heap
