# Of the output of repeated tests: all of it, and how often each test failed.

{ print; fflush() }
/^--- FAIL: / { failed[$3]++; red++ }
/^(panic: |WARNING: DATA RACE|FAIL.*\[build failed\])/ { red++ }
/^(ok|FAIL)[ \t]/ { ran = 1 }
END {
  if (!ran) exit
  for (name in failed) printf "failed %d times: %s\n", failed[name], name
  printf "belay flaky: %s runs beside busy loops, %d failures\n", runs, red
}
