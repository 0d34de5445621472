#!/bin/sh
# The test of pool_test.exs, mended, in 200 orders.
sed 's/:ets.lookup.*self/:ets.insert_new(pool, {:db, self/' pool_test.exs >mended_test.exs
purlin schedules --seed 1 --seeds 200 -- run mended_test.exs
