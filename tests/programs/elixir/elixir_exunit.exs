# Runs ExUnit: passing, failing and skipped tests, `setup`, `describe`, and the report of a failure.
# @exunit
ExUnit.start(seed: 0, colors: [enabled: false])

defmodule SampleTest do
  use ExUnit.Case, async: true

  setup do
    {:ok, n: 41}
  end

  test "passes", %{n: n} do
    assert n + 1 == 42
  end

  test "fails with a diff" do
    assert %{a: 1, b: [1, 2, 3]} == %{a: 1, b: [1, 5, 3]}
  end

  test "raises" do
    assert_raise ArithmeticError, fn -> 1 / String.to_integer("0") end
  end

  @tag :skip
  test "skipped" do
    flunk("not run")
  end

  describe "messages" do
    test "assert_receive" do
      send(self(), {:hello, 1})
      assert_receive {:hello, n}
      assert n == 1
      refute_received :other
    end

    test "error in another place" do
      raise "boom"
    end

    test "captures output" do
      import ExUnit.CaptureIO
      assert capture_io(fn -> IO.puts("x") end) == "x\n"
    end
  end
end
