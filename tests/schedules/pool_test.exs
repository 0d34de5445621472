ExUnit.start()
defmodule PoolTest do
  use ExUnit.Case
  test "opens one connection" do
    pool = :ets.new(:pool, [:public])
    open = fn -> :ets.lookup(pool, :db) == [] and :ets.insert(pool, {:db, self()}) end
    tasks = [Task.async(open), Task.async(open)]
    assert Enum.count(tasks, &Task.await/1) == 1
  end
end
