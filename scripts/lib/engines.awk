# Reads `go test -v` of the packages of lock engines and prints what failed, with its
# output, how many checks of each engine passed, and a closing line. A check is a test
# without parts, or a part of one.

/^=== (RUN|NAME|CONT|PAUSE) / { test = $3; next }

/^ *--- (PASS|FAIL|SKIP): / {
  result[$3] = $2
  parent = $3
  while (sub(/\/[^\/]*$/, "", parent)) whole[parent] = 1
  if ($2 == "FAIL:") { print; printf "%s", output[$3]; fflush() }
  next
}

# The end of a package.
/^(ok|FAIL)[ \t]+[^ \t]+[ \t]/ {
  name = $2
  sub(/.*\//, "", name)
  passed = failed = skipped = 0
  for (check in result) {
    if (check in whole) continue
    if (result[check] == "PASS:") passed++
    if (result[check] == "FAIL:") failed++
    if (result[check] == "SKIP:") skipped++
  }
  if ($1 == "FAIL" && failed == 0) failed = 1 # it ended before its tests did
  if ($1 == "FAIL" && test != "") printf "%s", output[test]
  if (passed + failed > 0) {
    engines++
    printf "%s: %d passed, %d failed, %d that it does not promise\n", name, passed, failed, skipped
    fflush()
  }
  checks += passed
  failures += failed
  split("", result)
  split("", whole)
  split("", output)
  test = ""
  next
}

/^(PASS|FAIL|\?)/ { next }
/^(panic: |fatal error: )/ { print }
test != "" { output[test] = output[test] $0 "\n"; next }
{ print }

END {
  printf "belay engines: %d engines, %d checks passed, %d failed\n", engines, checks, failures
  exit failures > 0 || engines < want
}
