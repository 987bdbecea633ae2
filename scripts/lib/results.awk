# Reads `go test -v` and prints what failed, with its output, how often something
# was skipped and why, and one closing line that begins with the variable title. If the
# variable counts names a file, it gets a line of counts for each package.

/^=== (RUN|NAME|CONT|PAUSE) / { test = $3; next }

/^ *--- (PASS|FAIL|SKIP): / {
  result = $2
  name = $3
  if ($0 ~ /^---/) count[result]++
  if (result == "FAIL:") {
    print
    if (name in output) printf "%s", output[name]
    fflush()
  }
  if (result == "SKIP:") {
    why = output[name]
    sub(/^ *[a-z0-9_]+\.go:[0-9]+: /, "", why)
    skipped[why == "" ? name "\n" : why]++
  }
  delete output[name]
  next
}

# The end of a package. Its tests are those since the last one.
/^(ok|FAIL)[ \t]+[^ \t]+\// {
  if (counts != "") print $2, count["PASS:"] - before["PASS:"], count["FAIL:"] - before["FAIL:"], count["SKIP:"] - before["SKIP:"] >>counts
  for (result in count) before[result] = count[result]
}

/^(PASS$|ok |\?)/ { next }

# The closing line of a suite.
/^ +[a-z0-9_]+_test\.go:[0-9]+: belay / {
  sub(/^[^:]*:[0-9]+: /, "")
  print
  next
}

# The end of a package that failed: what tests had said that never ended.
/^(FAIL|exit status|panic: |fatal error: )/ {
  if ($1 == "FAIL" && NF > 1) broken = broken " " $2
  for (name in output) printf "%s", output[name]
  delete output
  test = ""
  print
  next
}

test != "" { output[test] = output[test] $0 "\n"; next }
{ print }

END {
  for (why in skipped) printf "skipped %d times: %s", skipped[why], why
  printf "%s: %d passed, %d failed, %d skipped\n", title, count["PASS:"], count["FAIL:"], count["SKIP:"]
  if (broken != "") print title ": failed:" broken
  exit count["FAIL:"] > 0 || broken != "" || count["PASS:"] == 0
}
